"""What the fit of a click model counts: rows by their place among the clicks, pairs that got the same, and tails of sessions.

Cells are all that pbm and ubm know of a pair, and in most logs many pairs have the same few of them: these are one.
In the chains (dbn, ccm) all rows down to the last click were examined, so they are counted, and what is left is the tail: the pair clicked
last and the skips below it. Sessions with the same tail are one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import kernel

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

# Where a row stands among the clicks of its session.
SKIP_ABOVE, SKIP_BETWEEN, SKIP_BELOW, SKIP_ALONE, FIRST, MIDDLE, LAST, ONLY = range(8)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


# --- places ---------------------------------------------------------------------------------------------------------------------


@kernel
def add_places(index: Any, click: Any, offsets: Any, weights: Any, columns: Any, base: Any, out: Any) -> None:
    """out[index[i] - base, columns[place of row i among the clicks]] += the weight of its session.

    Places: a skip above, between, below the clicks, or in a session without any; the first click of several, one in the middle, the last,
    the only one.
    """
    for s in range(offsets.shape[0] - 1):
        start, stop, w = offsets[s], offsets[s + 1], weights[s]
        n_clicks = 0
        for i in range(start, stop):
            n_clicks += click[i]
        met = 0
        for i in range(start, stop):
            if click[i]:
                place = 7 if n_clicks == 1 else 4 if met == 0 else 6 if met == n_clicks - 1 else 5
                met += 1
            else:
                place = 3 if n_clicks == 0 else 0 if met == 0 else 2 if met == n_clicks else 1
            out[index[i] - base, columns[place]] += w


def count_places(log: ClickLog, by: str, *groups: tuple[int, ...]) -> np.ndarray:
    """float64[n_groups, n]: per pair or rank, the weight of its rows at the places of each group; other places are left out."""
    columns = np.full(8, len(groups))
    for column, group in enumerate(groups):
        columns[list(group)] = column
    index, base, n = (log.qd, 0, log.n_pairs) if by == "pair" else (log.position, 1, log.n_positions)
    out = np.zeros((n, len(groups) + 1))
    add_places(index, log.click, log.offsets, log.weights, columns, base, out)
    return np.ascontiguousarray(out.T[:-1])


# --- pairs that got the same ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Kinds:
    """Pairs with the same cells.

    of: int32[n_pairs], the kind of each pair. pair, times: int64[n_kinds] and float64[n_kinds], one pair of each kind, and how many it has.
    """

    of: np.ndarray
    pair: np.ndarray
    times: np.ndarray


@kernel
def _same_cells(start: Any, cells: Any, p: Any, r: Any) -> Any:
    """Whether two pairs have the same cells."""
    if start[p + 1] - start[p] != start[r + 1] - start[r]:
        return False
    for j in range(start[p + 1] - start[p]):
        for field in range(cells.shape[1]):
            if cells[start[p] + j, field] != cells[start[r] + j, field]:
                return False
    return True


@kernel
def merge_pairs(start: Any, cells: Any, table: Any, of: Any, pair: Any, found: Any) -> None:
    """of[p]: the kind of pair p, pair[k]: the first pair of kind k; found[0] kinds.

    cells: whatever tells cells apart, as whole numbers, a row per cell. table: from `_slots`.
    """
    n_kinds, mask = 0, np.uint64(table.shape[0] - 1)
    for p in range(start.shape[0] - 1):
        code = np.uint64(0)
        for c in range(start[p], start[p + 1]):
            for field in range(cells.shape[1]):
                code = (code ^ cells[c, field]) * _MULTIPLIER
                code ^= code >> np.uint64(29)
        slot = code & mask
        while table[slot] >= 0 and not _same_cells(start, cells, p, pair[table[slot]]):
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = n_kinds
            pair[n_kinds] = p
            n_kinds += 1
        of[p] = table[slot]
    found[0] = n_kinds


def count_kinds(start: np.ndarray, parameter: np.ndarray, n: np.ndarray, clicks: np.ndarray) -> Kinds:
    """The kinds of pairs whose cells, from start[p] to start[p + 1], have these parameters, rows and clicks."""
    cells = np.column_stack([parameter.astype(np.uint64), n.view(np.uint64), clicks.view(np.uint64)])
    n_pairs = len(start) - 1
    of, pair, found = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int64), np.zeros(1, np.int64)
    merge_pairs(start, cells, _slots(n_pairs), of, pair, found)
    n_kinds = int(found[0])
    return Kinds(of, pair[:n_kinds].copy(), np.bincount(of, minlength=n_kinds).astype(np.float64))


def _slots(n: int) -> np.ndarray:
    """An empty table of hashes for n entries: a power of two of slots, at least twice as many, each -1."""
    return np.full(1 << (2 * n).bit_length(), -1, np.int32)


# --- tails ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tails:
    """Ends of sessions that a chain cannot tell apart: the pair clicked last, -1 for none, and those skipped below it.

    Tail t skips pairs[offsets[t]] to pairs[offsets[t + 1]], at least one, weight[t] times. The tails of query q are by_query[q] to
    by_query[q + 1]: queries share no pairs. at_end: per pair, the weight of the sessions that end with a click on it.
    """

    offsets: np.ndarray
    pairs: np.ndarray
    head: np.ndarray
    weight: np.ndarray
    by_query: np.ndarray
    at_end: np.ndarray


@kernel
def find_tails(click: Any, offsets: Any, out: Any) -> None:
    """The row below the last click of each session; its first row where nothing was clicked."""
    for s in range(offsets.shape[0] - 1):
        i = offsets[s + 1]
        while i > offsets[s] and not click[i - 1]:
            i -= 1
        out[s] = i


@kernel
def _same_tail(qd: Any, offsets: Any, begins: Any, s: Any, t: Any) -> Any:
    """Whether two sessions have the same pair clicked last and the same skipped below it."""
    n = offsets[s + 1] - begins[s]
    headed = begins[s] > offsets[s]
    if offsets[t + 1] - begins[t] != n or headed != (begins[t] > offsets[t]):
        return False
    j = -1 if headed else 0
    while j < n and qd[begins[s] + j] == qd[begins[t] + j]:
        j += 1
    return j == n


@kernel
def merge_tails(
    order: Any,
    qd: Any,
    offsets: Any,
    begins: Any,
    weights: Any,
    alone: Any,
    table: Any,
    sessions: Any,
    merged: Any,
    at_end: Any,
    found: Any,
) -> None:
    """sessions[t]: a session with tail t, and merged[t] the weight of all such sessions; found[0] tails. Sessions come in `order`.

    alone: whether sessions without clicks have a tail, too.
    table: a table of hashes from `_slots`, whose slots come to hold the numbers of tails.
    """
    n_tails, mask = 0, np.uint64(table.shape[0] - 1)
    for at in range(order.shape[0]):
        s = order[at]
        begin, stop, headed = begins[s], offsets[s + 1], begins[s] > offsets[s]
        if begin == stop or not (headed or alone):
            if headed:
                at_end[qd[begin - 1]] += weights[s]
            continue
        code = np.uint64(qd[begin - 1] + 1) if headed else np.uint64(0)
        for i in range(begin, stop):
            code = (code ^ np.uint64(qd[i])) * _MULTIPLIER
            code ^= code >> np.uint64(29)
        slot = code & mask
        while table[slot] >= 0 and not _same_tail(qd, offsets, begins, s, sessions[table[slot]]):
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = n_tails
            sessions[n_tails] = s
            merged[n_tails] = 0.0
            n_tails += 1
        merged[table[slot]] += weights[s]
    found[0] = n_tails


@kernel
def copy_tails(qd: Any, begins: Any, sessions: Any, offsets: Any, pairs: Any) -> None:
    """Write the skipped pairs of each tail one after the other."""
    for t in range(sessions.shape[0]):
        begin = begins[sessions[t]]
        for j in range(offsets[t + 1] - offsets[t]):
            pairs[offsets[t] + j] = qd[begin + j]


def count_tails(log: ClickLog, *, alone: bool = True) -> Tails:
    """The tails of a log, query by query; those of sessions without clicks if `alone`."""
    from fastrank.io.grouping import stable_order

    n, n_queries = log.n_sessions, len(log.pair_offsets) - 1
    begins, sessions, merged = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n)
    at_end, found = np.zeros(log.n_pairs), np.zeros(1, np.int64)
    find_tails(log.click, log.offsets, begins)
    order = np.asarray(stable_order(log.query.astype(np.int64), n_queries), np.int64)
    merge_tails(order, log.qd, log.offsets, begins, log.weights, alone, _slots(n), sessions, merged, at_end, found)
    sessions = sessions[: found[0]].copy()
    offsets = np.append(0, np.cumsum(log.offsets[sessions + 1] - begins[sessions]))
    pairs = np.empty(offsets[-1], np.int32)
    copy_tails(log.qd, begins, sessions, offsets, pairs)
    headed = begins[sessions] > log.offsets[sessions]
    head = np.full(len(sessions), -1, np.int32)
    head[headed] = log.qd[begins[sessions][headed] - 1]
    by_query = np.searchsorted(log.query[sessions], np.arange(n_queries + 1))
    return Tails(offsets, pairs, head, merged[: found[0]].copy(), by_query, at_end)

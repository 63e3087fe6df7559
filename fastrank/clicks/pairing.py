"""Kernels that number the pairs of query and document, and count what happened to each at each position."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel


@kernel
def fill_positions(offsets: Any, first: Any, last: Any, out: Any) -> None:
    """The rank of each row within its session, from 1."""
    for s in range(first, last):
        start = offsets[s]
        for i in range(start, offsets[s + 1]):
            out[i] = i - start + 1


@kernel
def number_pairs(
    order: Any, offsets: Any, query: Any, doc: Any, seen: Any, shown: Any, code: Any, qd: Any, pair_doc: Any, found: Any
) -> None:
    """Number the documents of each query in the order in which its sessions show them; `order` brings a query's sessions together.

    seen, shown, code: per document the query and the session (+ 1) that had it last, and its number there; 0 to begin with.
    found[0] becomes the number of pairs, found[1 + q] that of query q, and found[-1] a row that shows a document
    of its session again, or -1.
    """
    n_pairs = 0
    for at in range(order.shape[0]):
        s = order[at]
        q = query[s]
        for i in range(offsets[s], offsets[s + 1]):
            d = doc[i]
            if seen[d] != q + 1:
                seen[d] = q + 1
                code[d] = n_pairs
                pair_doc[n_pairs] = d
                n_pairs += 1
                found[1 + q] += 1
            if shown[d] == s + 1 and found[found.shape[0] - 1] < 0:
                found[found.shape[0] - 1] = i
            shown[d] = s + 1
            qd[i] = code[d]
    found[0] = n_pairs


@kernel
def count_rows(group: Any, out: Any) -> None:
    """Add to out[g + 1] the rows of each group g; a group below 0 is none."""
    for i in range(group.shape[0]):
        if group[i] >= 0:
            out[group[i] + 1] += 1


@kernel
def bring_positions(group: Any, position: Any, click: Any, first: Any, last: Any, base: Any, place: Any, out: Any) -> None:
    """Position and click of each row of groups first <= g < last in one number, at the next place of its group, counted from base."""
    for i in range(group.shape[0]):
        g = group[i]
        if first <= g < last:
            out[place[g] - base] = 2 * position[i] + click[i]
            place[g] += 1


@kernel
def bring_previous(offsets: Any, group: Any, position: Any, click: Any, first: Any, last: Any, base: Any, place: Any, out: Any) -> None:
    """The same with the number of the position p and of the one clicked last before it (0: none): p (p - 1) / 2 + previous."""
    for s in range(offsets.shape[0] - 1):
        previous = 0
        for i in range(offsets[s], offsets[s + 1]):
            g, p = group[i], position[i]
            if first <= g < last:
                out[place[g] - base] = 2 * (p * (p - 1) // 2 + previous) + click[i]
                place[g] += 1
            if click[i]:
                previous = p


@kernel
def bring_weights(offsets: Any, group: Any, weight: Any, first: Any, last: Any, base: Any, place: Any, out: Any) -> None:
    """The weight of each row's session, at the places that the two above take."""
    for s in range(offsets.shape[0] - 1):
        for i in range(offsets[s], offsets[s + 1]):
            g = group[i]
            if first <= g < last:
                out[place[g] - base] = weight[s]
                place[g] += 1


@kernel
def count_cells(start: Any, packed: Any, base: Any, seen: Any, first: Any, last: Any, out: Any) -> None:
    """Fill out[g + 1] with the distinct keys of each group's rows. seen: per key the group (+ 1) that had it last."""
    for g in range(first, last):
        n = 0
        for i in range(start[g] - base, start[g + 1] - base):
            key = packed[i] >> 1
            if seen[key] != g + 1:
                seen[key] = g + 1
                n += 1
        out[g + 1] = n


@kernel
def fill_cells(
    start: Any, packed: Any, weight: Any, step: Any, base: Any, cells: Any, seen: Any, first: Any, last: Any, key: Any, n: Any, c: Any
) -> None:
    """Group g's cells stand from cells[g] on, by key: rows and clicks of each, weighed by weight[i * step] (step 0: all alike)."""
    shown, clicked = np.zeros(seen.shape[0]), np.zeros(seen.shape[0])
    for g in range(first, last):
        at, low, high = cells[g], seen.shape[0], -1
        for i in range(start[g] - base, start[g + 1] - base):
            k = packed[i] >> 1
            if seen[k] != g + 1:
                seen[k] = g + 1
                shown[k], clicked[k] = 0.0, 0.0
                key[at] = k
                at += 1
                low, high = min(low, k), max(high, k)
            shown[k] += weight[i * step]
            clicked[k] += weight[i * step] * (packed[i] & 1)
        _sort_keys(key, cells[g], at, low, high, seen, g + 1)
        for j in range(cells[g], at):
            n[j], c[j] = shown[key[j]], clicked[key[j]]


@kernel
def _sort_keys(key: Any, start: Any, stop: Any, low: Any, high: Any, seen: Any, mark: Any) -> None:
    """Put key[start:stop] in ascending order: by a look at every key between, or by insertion where few lie far apart."""
    size = stop - start
    if high - low < size * size:
        for k in range(low, high + 1):
            if seen[k] == mark:
                key[start] = k
                start += 1
        return
    for j in range(start + 1, stop):
        k, place = key[j], j
        while place > start and key[place - 1] > k:
            key[place] = key[place - 1]
            place -= 1
        key[place] = k

"""Cells: how often each group of rows was shown at each position, and clicked there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank._kernel import map_blocks, query_blocks
from fastrank.arrays import frozen
from fastrank.clicks.pairing import bring_positions, bring_previous, bring_weights, count_cells, count_rows, fill_cells
from fastrank.errors import InputError

BLOCK = 1 << 16
# Rows that are brought together at once: all of them would take as much room as the log. It is gone through once for each such part.
PART = 1 << 24
# A key and a click share 32 bits.
MOST_KEYS = 1 << 30


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows added up by group, position and, at order 1, the position clicked last before.

    Group g has the cells start[g] to start[g + 1], ascending by position and previous.

    start: int64[n_groups + 1]. group, position: int32[n_cells]. previous: int32[n_cells], 0 where nothing was clicked before; None at
    order 0. n, clicks: float64[n_cells], how often the cell was shown and clicked, by the weights of the sessions.
    """

    start: np.ndarray
    group: np.ndarray
    position: np.ndarray
    previous: np.ndarray | None
    n: np.ndarray
    clicks: np.ndarray

    def __len__(self) -> int:
        return len(self.n)


def add_up(
    group: np.ndarray,
    n_groups: int,
    offsets: np.ndarray,
    position: np.ndarray,
    click: np.ndarray,
    weight: np.ndarray | None,
    *,
    order: int = 0,
    threads: int | None = None,
) -> Cells:
    """The cells of a grouping of rows, int32[n_rows], in which a row below 0 belongs to no group."""
    deepest = int(position.max(initial=0))
    n_keys = deepest + 1 if order == 0 else deepest * (deepest + 1) // 2 + 1
    if n_keys > MOST_KEYS:
        raise InputError(f"positions down to {deepest} are too deep for counts by the click before. Cut the sessions.")
    start = np.zeros(n_groups + 1, np.int64)
    count_rows(group, start)
    np.cumsum(start, out=start)
    place, places = start[:-1].copy(), start[:-1].copy()
    cells = np.zeros(n_groups + 1, np.int64)
    parts = [(np.empty(0, np.int32), np.empty(0), np.empty(0))]
    for first, last in query_blocks(start, PART):
        base = int(start[first])
        span = first, last, base
        packed = np.empty(int(start[last]) - base, np.int32)
        if order:
            bring_previous(offsets, group, position, click, *span, place, packed)
        else:
            bring_positions(group, position, click, *span, place, packed)
        weights, step = np.ones(1), 0
        if weight is not None:
            weights, step = np.empty(len(packed)), 1
            bring_weights(offsets, group, weight, *span, places, weights)
        parts.append(_part(start[first : last + 1], packed, weights, step, cells[first : last + 1], n_keys, threads))
    np.cumsum(cells, out=cells)
    keys, n, clicks = (np.concatenate(column) for column in zip(*parts, strict=True))
    previous = None
    if order:
        depth = np.arange(deepest + 1)
        lowest = depth * (depth - 1) // 2
        ranks = np.searchsorted(lowest[1:], keys, side="right")
        keys, previous = ranks.astype(np.int32), frozen(keys - lowest[ranks], np.int32)
    groups = np.repeat(np.arange(n_groups, dtype=np.int32), np.diff(cells))
    return Cells(
        frozen(cells, np.int64),
        frozen(groups, np.int32),
        frozen(keys, np.int32),
        previous,
        frozen(n, np.float64),
        frozen(clicks, np.float64),
    )


def _part(
    start: np.ndarray, packed: np.ndarray, weights: np.ndarray, step: int, sizes: np.ndarray, n_keys: int, threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, rows and clicks of the cells of some groups, whose rows were brought together. sizes[1:] becomes the cells of each."""
    base = int(start[0])
    _in_blocks(lambda first, last: count_cells(start, packed, base, np.zeros(n_keys, np.int64), first, last, sizes), start - base, threads)
    cells = np.append(0, np.cumsum(sizes[1:]))
    keys, n, clicks = np.empty(int(cells[-1]), np.int32), np.empty(int(cells[-1])), np.empty(int(cells[-1]))

    def fill(first: int, last: int) -> None:
        fill_cells(start, packed, weights, step, base, cells, np.zeros(n_keys, np.int64), first, last, keys, n, clicks)

    _in_blocks(fill, start - base, threads)
    return keys, n, clicks


def _in_blocks(work: Any, offsets: np.ndarray, threads: int | None) -> None:
    map_blocks(work, offsets, documents=BLOCK, threads=threads)

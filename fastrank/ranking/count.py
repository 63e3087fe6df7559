"""Ranking by counting: the rank of a document is one plus the number of larger scores.

Best for short lists and for few counted documents: nothing is sorted. A list is copied as float32, padded with -inf to whole vectors,
and sixteen of its scores are compared at once; so are the scores of the counted documents among themselves, which says where to write
each. Scores of 8 bytes keep their order when narrowed, but some may become equal: where a counted document shares its narrowed score,
it is counted again by the scores as given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import copy_narrowed, count_above, count_at_least, kernel, pointer


@kernel
def rank_by_count(
    scores: Any, mine: Any, offsets: Any, starts: Any, longest: int, most: int, row: Any, label: Any, placed: Any, label_out: Any,
    n_tied: Any,
) -> None:  # fmt: skip
    """Write the counted documents of each query in rank order; equal scores share a rank and are ordered by label, largest first.

    scores are those of all documents, mine[row[i]] that of counted document i. No list is longer than `longest`; queries with more than
    `most` counted documents are left alone. placed: the rank, the span and the row of each document. n_tied[0] counts the queries with
    equal scores at one of the counted documents.
    """
    space = np.empty(longest + most + 64, np.float32)
    # Whole vectors are read, and at half the speed where they straddle two lines of the cache.
    room = space[16 - space.ctypes.data % 64 // 4 :]
    rank, span, row_out = placed[0], placed[1], placed[2]
    listed, own, rows, keys = pointer(scores), pointer(mine), pointer(row), pointer(room)
    tied = 0
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        among = (n + 15) // 16 * 16
        for i in range(r):
            room[among + i] = np.float32(mine[row[low + i]])
        room[among + r : among + r + 16] = -np.inf
        _load(scores, start, n, room)
        shares = False
        for i in range(r):
            above, equal, before = _count(listed, own, keys, start, n, rows, low, r, among, i, scores.itemsize == 8)
            place = low + before
            rank[place] = above + 1
            span[place] = equal
            label_out[place] = label[low + i]
            row_out[place] = rows[low + i]
            shares |= equal > 1
        if shares:
            tied += 1
            _order_by_label(rank, label_out, row_out, low, low + r)
    n_tied[0] = tied


@kernel
def _load(scores: Any, start: int, n: int, room: Any) -> None:
    """Copy a list as float32 and pad it with the lowest score there is."""
    given, target = pointer(scores), pointer(room)
    d = 0
    while d < n and start + d + 16 <= scores.shape[0]:  # beyond the list is the next one
        copy_narrowed(given, start + d, target, d, n - d)
        d += 16
    if d < n:
        for e in range(d, n):
            room[e] = np.float32(scores[start + e])
        for e in range(n, d + 16):
            room[e] = -np.inf


@kernel
def _count(
    scores: Any, mine: Any, keys: Any, start: int, n: int, row: Any, low: int, r: int, among: int, i: int, narrowed: bool
) -> Any:  # fmt: skip
    """Documents with a larger score than counted document i; with the same, itself included; and counted documents to stand before it.

    Counted documents of one score stand as they come. Their narrowed scores begin at keys[among].
    """
    x = keys[among + i]
    n_above = n_not_below = before = np.int64(0)
    for d in range(0, n, 16):
        n_above += count_above(keys, d, x)
        n_not_below += count_at_least(keys, d, x)
    for j in range(among, among + r, 16):
        before += count_above(keys, j, x)
    if x == -np.inf:
        n_not_below = np.int64(n)  # the padding is equal to it
    if n_not_below - n_above > 1:
        score = mine[row[low + i]]
        if narrowed:
            n_above = n_not_below = np.int64(0)
            for d in range(start, start + n):
                n_above += scores[d] > score
                n_not_below += scores[d] >= score
        before = np.int64(0)
        for j in range(r):
            other = mine[row[low + j]]
            before += (other > score) | ((other == score) & (j < i))
    return n_above, n_not_below - n_above, before


@kernel
def _order_by_label(rank: Any, label: Any, row: Any, low: int, high: int) -> None:
    """Let documents of one rank change places until their labels descend."""
    for i in range(low + 1, high):
        y, d = label[i], row[i]
        j = i
        while j > low and rank[j - 1] == rank[i] and label[j - 1] < y:
            label[j] = label[j - 1]
            row[j] = row[j - 1]
            j -= 1
        label[j] = y
        row[j] = d

"""Ranking by counting: the rank of a document is one plus the number of larger scores.

Best for short lists and for few counted documents: nothing is sorted. A list is copied as float32, padded with -inf to whole vectors,
and sixteen of its scores are compared at once. Scores of 8 bytes keep their order when narrowed, but some may become equal: where a
counted document shares its narrowed score, its counts are taken again from the scores as given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import copy_narrowed, count_above, count_at_least, count_below, kernel, pointer


@kernel
def rank_shared(
    scores: Any, mine: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, above: Any, equal: Any,
    rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the counted documents of each query in rank order; equal scores share a rank and are ordered by label, largest first.

    scores are those of all documents, mine[row[i]] that of counted document i. Queries with more than `most` counted documents are left
    alone; above and equal have room for 16 more than that, padded for 32 more than the longest list. n_tied[0] counts the queries with
    equal scores at one of the counted documents.
    """
    tied = 0
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        _load(scores, start, n, padded)
        _count(scores, mine, padded, start, n, row, low, r, above, equal)
        tied += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)
    n_tied[0] = tied


@kernel
def rank_input(
    scores: Any, mine: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, above: Any, equal: Any,
    rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand in the order of the input."""
    tied = 0
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        _load(scores, start, n, padded)
        _count(scores, mine, padded, start, n, row, low, r, above, equal)
        for i in range(r):
            if equal[i] > 1:
                x = scores[row[low + i]]
                n_earlier = np.int32(0)
                for d in range(start, row[low + i]):
                    n_earlier = np.int32(n_earlier + (scores[d] == x))
                above[i] += n_earlier
        tied += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)
    n_tied[0] = tied


@kernel
def rank_docid(
    scores: Any, mine: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, above: Any, equal: Any,
    rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any, text: Any, id_start: Any, id_stop: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand by document id, the larger in bytes first. Only ids of equal scores are compared."""
    tied = 0
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        _load(scores, start, n, padded)
        _count(scores, mine, padded, start, n, row, low, r, above, equal)
        for i in range(r):
            if equal[i] > 1:
                own = row[low + i]
                for d in range(start, start + n):
                    if scores[d] == scores[own]:
                        above[i] += _larger_id(text, id_start[d], id_stop[d], id_start[own], id_stop[own])
        tied += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)
    n_tied[0] = tied


@kernel
def _load(scores: Any, start: int, n: int, padded: Any) -> None:
    """Copy a list as float32 and pad it with the lowest score there is."""
    given, target = pointer(scores), pointer(padded)
    d = 0
    while d < n and start + d + 16 <= scores.shape[0]:  # beyond the list is the next one
        copy_narrowed(given, start + d, target, d, n - d)
        d += 16
    if d < n:
        padded[d : d + 16] = -np.inf
        for e in range(d, n):
            padded[e] = np.float32(scores[start + e])


@kernel
def _count(
    scores: Any, mine: Any, padded: Any, start: int, n: int, row: Any, low: int, r: int, above: Any, equal: Any
) -> None:  # fmt: skip
    """above[i] = documents with a larger score than counted document i, equal[i] = with the same, itself included."""
    keys = pointer(padded)
    for i in range(r):
        score = mine[row[low + i]]
        x = np.float32(score)
        n_above = n_not_below = np.int64(0)
        for d in range(0, n, 16):
            n_above += count_above(keys, d, x)
            n_not_below += count_at_least(keys, d, x)
        if x == -np.inf:
            n_not_below = np.int64(n)  # the padding is equal to it
        if n_not_below - n_above > 1 and scores.itemsize == 8:
            n_above = n_not_below = np.int64(0)
            for d in range(start, start + n):
                n_above += scores[d] > score
                n_not_below += scores[d] >= score
        above[i] = n_above
        equal[i] = n_not_below - n_above


@kernel
def _write(above: Any, equal: Any, label: Any, row: Any, low: int, r: int, rank: Any, span: Any, label_out: Any, row_out: Any) -> Any:
    """Write the documents of a query in order; tells whether any shares its score.

    A document's place is the number of those before it: for a hundred documents that is cheaper than a sort, since sixteen are compared
    at once. A few are compared one by one: what has just been written piece by piece cannot be read at once.
    """
    counts = pointer(above)
    tied = False
    if r > 6:
        above[r : r + 16] = 2147483647
    for i in range(r):
        x = above[i]
        place = low
        if r > 6:
            for j in range(0, r, 16):
                place += count_below(counts, j, x)
        else:
            for j in range(r):
                place += above[j] < x
        if equal[i] > 1:
            tied = True
            for j in range(i):
                place += above[j] == x
        rank[place] = x + 1
        span[place] = equal[i]
        label_out[place] = label[low + i]
        row_out[place] = row[low + i]
    if tied:
        _order_by_label(rank, label_out, row_out, low, low + r)
    return tied


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


@kernel
def _larger_id(text: Any, a: int, a_stop: int, b: int, b_stop: int) -> Any:
    """Whether text[a:a_stop] is larger than text[b:b_stop], byte by byte; a longer id is larger than its own beginning."""
    while a < a_stop and b < b_stop:
        if text[a] != text[b]:
            return text[a] > text[b]
        a += 1
        b += 1
    return a < a_stop

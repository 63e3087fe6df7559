"""Ranking by counting: the rank of a document is one plus the number of larger scores.

Best for short lists and for few counted documents: nothing is sorted. Scores arrive as the bits of floats, or as integers; turned
into integers of the same order, they are compared in one loop that has nothing else in it and that LLVM vectorises. Counts are of 32
bits, which keeps the vectors full; a list of 2^31 documents is beyond this way of ranking anyhow.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel


@kernel
def rank_shared(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, four: Any,
    above: Any, equal: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the counted documents of each query in rank order; equal scores share a rank and are ordered by label, largest first.

    bits are the scores of all documents, mine those of the counted ones. Queries with more than `most` counted documents are left
    alone; above and equal have room for that many, a multiple of four. n_tied[0] counts the queries with equal scores at one of them.
    """
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, r, four, above, equal)
        n_tied[0] += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)


@kernel
def rank_input(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, four: Any,
    above: Any, equal: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand in the order of the input."""
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, r, four, above, equal)
        for i in range(r):
            if equal[i] > 1:
                x = _key(mine[low + i], flip, lowest)
                n_earlier = np.int32(0)
                for d in range(row[low + i] - start):
                    n_earlier = np.int32(n_earlier + (padded[d] == x))
                above[i] += n_earlier
        n_tied[0] += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)


@kernel
def rank_docid(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, padded: Any, four: Any,
    above: Any, equal: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
    text: Any, id_start: Any, id_stop: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand by document id, the larger in bytes first. Only ids of equal scores are compared."""
    for q in range(offsets.shape[0] - 1):
        low, r = starts[q], starts[q + 1] - starts[q]
        if r == 0 or r > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, r, four, above, equal)
        for i in range(r):
            if equal[i] > 1:
                own = row[low + i]
                x = padded[own - start]
                for d in range(start, start + n):
                    if padded[d - start] == x:
                        above[i] += _larger_id(text, id_start[d], id_stop[d], id_start[own], id_stop[own])
        n_tied[0] += _write(above, equal, label, row, low, r, rank, span, label_out, row_out)


@kernel
def arrange_many(
    above: Any, equal: Any, starts: Any, most: int, label: Any, row: Any, order: Any, scratch: Any, rank: Any, span: Any,
    label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the queries that `rank_shared` left alone, whose documents have been counted otherwise."""
    for q in range(starts.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low <= most:
            continue
        _sort_many(above, label, low, high, order, scratch)
        tied = False
        for i in range(low, high):
            e = order[i]
            rank[i], span[i], label_out[i], row_out[i] = above[e] + 1, equal[e], label[e], row[e]
            tied |= equal[e] > 1
        n_tied[0] += tied


@kernel
def _key(b: Any, flip: Any, lowest: Any) -> Any:
    """An integer in the order of the scores.

    flip is all bits but the sign for floats, 0 for integers: a negative float's bits grow with its size, so they are inverted.
    lowest is the pattern of -0.0, which must equal 0.0.
    """
    if flip != 0 and b == lowest:
        b = b ^ b
    return b ^ ((b >> 63) & flip)


@kernel
def _load(bits: Any, flip: Any, lowest: Any, start: int, n: int, padded: Any) -> Any:
    """Copy a list as integers in the order of its scores, padded to a multiple of 16 so that no vector loop has a remainder."""
    for d in range(n):
        padded[d] = _key(bits[start + d], flip, lowest)
    room = (n + 15) // 16 * 16
    for d in range(n, room):
        padded[d] = lowest
    return room


@kernel
def _count(
    padded: Any, room: int, n: int, flip: Any, lowest: Any, mine: Any, low: int, r: int, four: Any, above: Any, equal: Any
) -> None:  # fmt: skip
    """above[i] = documents with a larger score than counted document i, equal[i] = with the same, itself included; four at once."""
    for i in range(0, r, 4):
        for j in range(4):
            four[8 + j] = _key(mine[low + min(i + j, r - 1)], flip, lowest)
        _count_four(padded, room, four)
        for j in range(4):
            above[i + j] = four[j]
            # The padding is equal to a document with the lowest score there is.
            equal[i + j] = four[4 + j] - four[j] - (room - n if four[8 + j] == lowest else 0)


@kernel
def _count_four(padded: Any, room: int, four: Any) -> None:
    """four[:8] = numbers of padded scores above each of four[8:], then of those not below."""
    x0, x1, x2, x3 = four[8], four[9], four[10], four[11]
    a0 = a1 = a2 = a3 = np.int32(0)
    b0 = b1 = b2 = b3 = np.int32(0)
    for d in range(room):
        x = padded[d]
        a0 = np.int32(a0 + (x > x0))
        b0 = np.int32(b0 + (x >= x0))
        a1 = np.int32(a1 + (x > x1))
        b1 = np.int32(b1 + (x >= x1))
        a2 = np.int32(a2 + (x > x2))
        b2 = np.int32(b2 + (x >= x2))
        a3 = np.int32(a3 + (x > x3))
        b3 = np.int32(b3 + (x >= x3))
    four[0], four[1], four[2], four[3] = a0, a1, a2, a3
    four[4], four[5], four[6], four[7] = b0, b1, b2, b3


@kernel
def _write(above: Any, equal: Any, label: Any, row: Any, low: int, r: int, rank: Any, span: Any, label_out: Any, row_out: Any) -> Any:
    """Write the documents of a query in order; tells whether any shares its score.

    A document's place is the number of those before it: for a hundred documents that is cheaper than a sort, since it vectorises.
    Counts are filled up to a multiple of four, so that the usual few documents take the same path through the loops every time.
    """
    tied = False
    room = (r + 3) // 4 * 4
    for j in range(r, room):
        above[j] = 2147483647
    for i in range(r):
        x = above[i]
        place = np.int32(0)
        for j in range(room):
            place = np.int32(place + ((above[j] < x) | ((above[j] == x) & (j < i))))
        rank[low + place] = x + 1
        span[low + place] = equal[i]
        label_out[low + place] = label[low + i]
        row_out[low + place] = row[low + i]
        tied |= equal[i] > 1
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
def _sort_many(above: Any, label: Any, low: int, high: int, order: Any, scratch: Any) -> None:
    """Order by the number above, then by label, merging bottom up."""
    for i in range(low, high):
        order[i] = i
    width = 1
    while width < high - low:
        for first in range(low, high, 2 * width):
            middle = min(first + width, high)
            last = min(first + 2 * width, high)
            i = first
            j = middle
            for out in range(first, last):
                if i < middle and (j >= last or not _before(above, label, order[j], order[i])):
                    scratch[out] = order[i]
                    i += 1
                else:
                    scratch[out] = order[j]
                    j += 1
        order[low:high] = scratch[low:high]
        width *= 2


@kernel
def _before(above: Any, label: Any, i: int, j: int) -> Any:
    return above[i] < above[j] or (above[i] == above[j] and label[i] > label[j])


@kernel
def _larger_id(text: Any, a: int, a_stop: int, b: int, b_stop: int) -> Any:
    """Whether text[a:a_stop] is larger than text[b:b_stop], byte by byte; a longer id is larger than its own beginning."""
    while a < a_stop and b < b_stop:
        if text[a] != text[b]:
            return text[a] > text[b]
        a += 1
        b += 1
    return a < a_stop

"""Ranking by counting: the rank of a document is one plus the number of larger scores.

Best for short lists and for few counted documents: nothing is sorted. Scores arrive as the bits of floats, or as integers; turned
into integers of the same order, they are compared in one loop that has nothing else in it and that LLVM vectorises.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel

# Up to here placing by counting, which vectorises, beats merging.
FEW = 128


@kernel
def rank_shared(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, four: Any,
    above: Any, equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the counted documents of each query in rank order; equal scores share a rank and are ordered by key, largest first.

    bits are the scores of all documents, mine those of the counted ones. Queries with more than `most` counted documents are left
    alone. n_tied[0] counts the queries with equal scores at one of them.
    """
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, high, four, above, equal)
        _sort_few(above, key, low, high, order)
        n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


@kernel
def rank_input(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, four: Any,
    above: Any, equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand in the order of the input."""
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, high, four, above, equal)
        for i in range(low, high):
            if equal[i] > 1:
                x = padded[row[i] - start]
                n_earlier = np.int32(0)
                for d in range(row[i] - start):
                    n_earlier = np.int32(n_earlier + (padded[d] == x))
                above[i] += n_earlier
        _sort_few(above, key, low, high, order)
        n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


@kernel
def rank_docid(
    bits: Any, mine: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, four: Any,
    above: Any, equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
    text: Any, id_start: Any, id_stop: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand by document id, the larger in bytes first. Only ids of equal scores are compared."""
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, flip, lowest, mine, low, high, four, above, equal)
        for i in range(low, high):
            if equal[i] > 1:
                x = padded[row[i] - start]
                for d in range(start, start + n):
                    if padded[d - start] == x:
                        above[i] += larger_id(text, id_start[d], id_stop[d], id_start[row[i]], id_stop[row[i]])
        _sort_few(above, key, low, high, order)
        n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


@kernel
def larger_id(text: Any, a: int, a_stop: int, b: int, b_stop: int) -> Any:
    """Whether text[a:a_stop] is larger than text[b:b_stop], byte by byte; a longer id is larger than its own beginning."""
    while a < a_stop and b < b_stop:
        if text[a] != text[b]:
            return text[a] > text[b]
        a += 1
        b += 1
    return a < a_stop


@kernel
def arrange_many(
    above: Any, equal: Any, starts: Any, most: int, label: Any, row: Any, key: Any, order: Any, scratch: Any, rank: Any, span: Any, label_out: Any,
    row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the queries that `rank_shared` left alone, whose documents have been counted otherwise."""
    for q in range(starts.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low > most:
            _sort_many(above, key, low, high, order, scratch)
            n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


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
    padded[n:room] = lowest
    return room


@kernel
def _count(
    padded: Any, room: int, n: int, flip: Any, lowest: Any, mine: Any, low: int, high: int, four: Any, above: Any, equal: Any
) -> None:  # fmt: skip
    """above[i] = documents with a larger score than counted document i, equal[i] = with the same, itself included; four at once."""
    last = high - 1
    for i in range(low, high, 4):
        four[8] = _key(mine[i], flip, lowest)
        four[9] = _key(mine[min(i + 1, last)], flip, lowest)
        four[10] = _key(mine[min(i + 2, last)], flip, lowest)
        four[11] = _key(mine[min(i + 3, last)], flip, lowest)
        _count_four(padded, room, four)
        for j in range(min(4, high - i)):
            above[i + j] = four[j]
            equal[i + j] = four[4 + j] - four[j]
            if four[8 + j] == lowest:
                equal[i + j] -= room - n  # the padding is equal to a document with the lowest score there is


@kernel
def _count_four(padded: Any, room: int, four: Any) -> None:
    """four[:8] = numbers of padded scores above each of four[8:], then of those not below. 32-bit counters keep the vectors full."""
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
def _before(above: Any, key: Any, i: int, j: int) -> Any:
    return above[i] < above[j] or (above[i] == above[j] and key[i] > key[j])


@kernel
def _sort_few(above: Any, key: Any, low: int, high: int, order: Any) -> None:
    """Place by the number above, counting how many stand before; then let documents with equal scores change places by key."""
    for i in range(low, high):
        x = above[i]
        place = np.int32(0)
        for j in range(low, i):
            place = np.int32(place + (above[j] <= x))
        for j in range(i + 1, high):
            place = np.int32(place + (above[j] < x))
        order[low + place] = i
    for i in range(low + 1, high):
        e = order[i]
        j = i
        while j > low and _before(above, key, e, order[j - 1]):
            order[j] = order[j - 1]
            j -= 1
        order[j] = e


@kernel
def _sort_many(above: Any, key: Any, low: int, high: int, order: Any, scratch: Any) -> None:
    """Order by the number above, then by key, merging bottom up."""
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
                if i < middle and (j >= last or not _before(above, key, order[j], order[i])):
                    scratch[out] = order[i]
                    i += 1
                else:
                    scratch[out] = order[j]
                    j += 1
        order[low:high] = scratch[low:high]
        width *= 2


@kernel
def _write(
    above: Any, equal: Any, label: Any, row: Any, low: int, high: int, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any
) -> Any:  # fmt: skip
    """Write the documents in order; tells whether any shares its score."""
    tied = False
    for i in range(low, high):
        e = order[i]
        rank[i] = above[e] + 1
        span[i] = equal[e]
        label_out[i] = label[e]
        row_out[i] = row[e]
        tied |= equal[e] > 1
    return tied

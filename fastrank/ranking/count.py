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
    bits: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, eight: Any, above: Any,
    equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """Write the counted documents of each query in rank order; equal scores share a rank and are ordered by key, largest first.

    Queries with more than `most` counted documents are left alone. n_tied[0] counts the queries with equal scores at one of them.
    """
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, start, lowest, row, low, high, eight, above, equal)
        _sort_few(above, key, low, high, order)
        n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


@kernel
def rank_input(
    bits: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, eight: Any, above: Any,
    equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand in the order of the input."""
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, start, lowest, row, low, high, eight, above, equal)
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
    bits: Any, flip: Any, lowest: Any, offsets: Any, starts: Any, most: int, row: Any, label: Any, key: Any, padded: Any, eight: Any, above: Any,
    equal: Any, order: Any, rank: Any, span: Any, label_out: Any, row_out: Any, n_tied: Any, doc_order: Any,
) -> None:  # fmt: skip
    """As `rank_shared`, but equal scores stand by doc_order, smaller first."""
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if low == high or high - low > most:
            continue
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        room = _load(bits, flip, lowest, start, n, padded)
        _count(padded, room, n, start, lowest, row, low, high, eight, above, equal)
        for i in range(low, high):
            if equal[i] > 1:
                x, place = padded[row[i] - start], doc_order[row[i]]
                n_before = np.int32(0)
                for d in range(n):
                    n_before = np.int32(n_before + ((padded[d] == x) & (doc_order[start + d] < place)))
                above[i] += n_before
        _sort_few(above, key, low, high, order)
        n_tied[0] += _write(above, equal, label, row, low, high, order, rank, span, label_out, row_out)


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
def _load(bits: Any, flip: Any, lowest: Any, start: int, n: int, padded: Any) -> Any:
    """Copy a list as integers in the order of its scores, padded to a multiple of 16 so that no vector loop has a remainder.

    flip is all bits but the sign for floats, 0 for integers: a negative float's bits grow with its size, so they are inverted.
    lowest is the pattern of -0.0, which must equal 0.0.
    """
    for d in range(n):
        b = bits[start + d]
        if flip != 0 and b == lowest:
            b = b ^ b
        padded[d] = b ^ ((b >> 63) & flip)
    room = (n + 15) // 16 * 16
    padded[n:room] = lowest
    return room


@kernel
def _count(
    padded: Any, room: int, n: int, start: int, lowest: Any, row: Any, low: int, high: int, eight: Any, above: Any, equal: Any
) -> None:  # fmt: skip
    """above[i] = documents with a larger score than counted document i, equal[i] = with the same, itself included; four at once."""
    for i in range(low, high, 4):
        a, b = padded[row[i] - start], padded[row[min(i + 1, high - 1)] - start]
        c, d = padded[row[min(i + 2, high - 1)] - start], padded[row[min(i + 3, high - 1)] - start]
        _count_four(padded, room, a, b, c, d, eight)
        for j in range(min(4, high - i)):
            above[i + j] = eight[j]
            equal[i + j] = eight[4 + j] - eight[j]
            if padded[row[i + j] - start] == lowest:
                equal[i + j] -= room - n  # the padding is equal to a document with the lowest score there is


@kernel
def _count_four(padded: Any, room: int, x0: Any, x1: Any, x2: Any, x3: Any, eight: Any) -> None:
    """eight = numbers of padded scores above each of four, then of those not below. 32-bit counters keep the vectors full."""
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
    eight[0], eight[1], eight[2], eight[3] = a0, a1, a2, a3
    eight[4], eight[5], eight[6], eight[7] = b0, b1, b2, b3


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

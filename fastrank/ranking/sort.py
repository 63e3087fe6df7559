"""Sorting: values within their queries, labels by a histogram, rows by document id."""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def _sort_descending(values: Any, start: int, stop: int, scratch: Any) -> None:
    """Sort values[start:stop] in place, largest first: runs of 16 by insertion, then merged bottom up."""
    for low in range(start, stop, 16):
        for i in range(low + 1, min(low + 16, stop)):
            x = values[i]
            j = i
            while j > low and values[j - 1] < x:
                values[j] = values[j - 1]
                j -= 1
            values[j] = x
    width = 16
    while width < stop - start:
        for low in range(start, stop, 2 * width):
            middle = min(low + width, stop)
            high = min(low + 2 * width, stop)
            i = low
            j = middle
            for out in range(low, high):
                if i < middle and (j >= high or values[i] >= values[j]):
                    scratch[out] = values[i]
                    i += 1
                else:
                    scratch[out] = values[j]
                    j += 1
        values[start:stop] = scratch[start:stop]
        width *= 2


@kernel
def sort_queries(values: Any, starts: Any, scratch: Any) -> None:
    """Sort the values of each query in place, largest first."""
    for q in range(starts.shape[0] - 1):
        _sort_descending(values, starts[q], starts[q + 1], scratch)


@kernel
def rank_labels(code: Any, starts: Any, gains: Any, histogram: Any, out: Any) -> None:
    """out = gains of each query in descending order of label, for labels that are small whole numbers.

    The usual few documents are placed by counting the larger ones, more of them by a histogram of the labels.
    """
    for q in range(starts.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low <= 12:
            for i in range(low, high):
                place = low
                for j in range(low, high):
                    place += (code[j] > code[i]) | ((code[j] == code[i]) & (j < i))
                out[place] = gains[code[i]]
            continue
        for i in range(low, high):
            histogram[code[i]] += 1
        i = low
        for c in range(histogram.shape[0] - 1, -1, -1):
            for _ in range(histogram[c]):
                out[i] = gains[c]
                i += 1
            histogram[c] = 0


@kernel
def sort_ids(visit: Any, text: Any, id_start: Any, id_stop: Any, scratch: Any) -> None:
    """Put rows by document id, the larger in bytes first: merging bottom up."""
    n = visit.shape[0]
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle = min(low + width, n)
            high = min(low + 2 * width, n)
            i = low
            j = middle
            for out in range(low, high):
                if j >= high or (i < middle and not _larger_id(text, id_start, id_stop, visit[j], visit[i])):
                    scratch[out] = visit[i]
                    i += 1
                else:
                    scratch[out] = visit[j]
                    j += 1
        visit[:] = scratch
        width *= 2


@kernel
def _larger_id(text: Any, id_start: Any, id_stop: Any, one: int, other: int) -> Any:
    """Whether the id of one row is larger in bytes than another's. It stands in `count` too: kernels call none of another file."""
    a, a_stop, b, b_stop = id_start[one], id_stop[one], id_start[other], id_stop[other]
    while a < a_stop and b < b_stop:
        if text[a] != text[b]:
            return text[a] > text[b]
        a += 1
        b += 1
    return a < a_stop

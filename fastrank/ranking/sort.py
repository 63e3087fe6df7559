"""Ranking by sorting: for long lists with many counted documents.

Only the scores of the counted documents are sorted; every document of the list is then placed among them by binary search, so the
cost is n log r for n documents of which r count, and no full sort happens.
"""

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
def ordered_keys(bits: Any, flip: Any, lowest: Any, keys: Any) -> None:
    """keys = integers in the order of the scores, as `count` loads them."""
    for d in range(bits.shape[0]):
        b = bits[d]
        if flip != 0 and b == lowest:
            b = b ^ b
        keys[d] = b ^ ((b >> 63) & flip)


@kernel
def sort_chosen(keys: Any, starts: Any, most: int, row: Any, sorted_keys: Any, scratch: Any) -> None:
    """Gather the keys of the counted documents and sort them, for queries with more than `most` of them."""
    for q in range(starts.shape[0] - 1):
        if starts[q + 1] - starts[q] > most:
            for i in range(starts[q], starts[q + 1]):
                sorted_keys[i] = keys[row[i]]
            _sort_descending(sorted_keys, starts[q], starts[q + 1], scratch)


@kernel
def place_counted(
    keys: Any, visit: Any, offsets: Any, starts: Any, most: int, sorted_keys: Any, slot: Any, n_larger: Any, n_equal: Any, earlier: Any
) -> None:  # fmt: skip
    """Place every document among the sorted keys; counts stand at the first place of each distinct key.

    n_larger = documents above that key, n_equal = documents with it, earlier[i] = documents with counted document i's score that
    `visit` comes to before it. `visit` lists the rows query by query, equal scores in the order in which they stand; slot[row] is a
    row's place among the counted documents, or -1.
    """
    for q in range(offsets.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low <= most:
            continue
        for v in range(offsets[q], offsets[q + 1]):
            d = visit[v]
            p = _first_not_above(sorted_keys, low, high, keys[d])
            if p < high and sorted_keys[p] == keys[d]:
                if slot[d] >= 0:
                    earlier[slot[d]] = n_equal[p]
                n_equal[p] += 1
            elif p < high:
                n_larger[p] += 1
        n_above = 0
        for p in range(low, high):
            if p == low or sorted_keys[p] != sorted_keys[p - 1]:
                n_above += n_larger[p]
                n_larger[p] = n_above
                n_above += n_equal[p]


@kernel
def read_places(
    keys: Any, starts: Any, most: int, row: Any, sorted_keys: Any, n_larger: Any, n_equal: Any, above: Any, equal: Any
) -> None:  # fmt: skip
    """Give each counted document the counts that stand at its key."""
    for q in range(starts.shape[0] - 1):
        if starts[q + 1] - starts[q] > most:
            for i in range(starts[q], starts[q + 1]):
                p = _first_not_above(sorted_keys, starts[q], starts[q + 1], keys[row[i]])
                above[i] = n_larger[p]
                equal[i] = n_equal[p]


@kernel
def sort_ids(visit: Any, starts: Any, offsets: Any, most: int, text: Any, id_start: Any, id_stop: Any, scratch: Any) -> None:
    """Put the rows of each query with more than `most` counted documents by document id, the larger in bytes first: merging."""
    for q in range(offsets.shape[0] - 1):
        start, stop = offsets[q], offsets[q + 1]
        width = 1
        while width < stop - start and starts[q + 1] - starts[q] > most:
            for low in range(start, stop, 2 * width):
                middle = min(low + width, stop)
                high = min(low + 2 * width, stop)
                i = low
                j = middle
                for out in range(low, high):
                    if j >= high or (i < middle and not _larger_id(text, id_start, id_stop, visit[j], visit[i])):
                        scratch[out] = visit[i]
                        i += 1
                    else:
                        scratch[out] = visit[j]
                        j += 1
            visit[start:stop] = scratch[start:stop]
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


@kernel
def _first_not_above(sorted_keys: Any, low: int, high: int, x: Any) -> Any:
    """The first place in a descending run that is not empty whose key is not larger than x; `high` if all are.

    The halves are chosen by a conditional move, not by a branch that the processor would guess wrong every other time.
    """
    n = high - low
    while n > 1:
        half = n // 2
        low = low + half if sorted_keys[low + half - 1] > x else low
        n -= half
    return low + (sorted_keys[low] > x)

"""The walk down labels that stand in rank order and are small whole numbers: nothing is listed and nothing is sorted.

Most short lists have few documents that count. What those add comes out of tables, without a branch that the processor would have to
foresee: that is what a list of twenty costs.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fastrank._kernel import bits_at_least, kernel, pointer, set_bits, trailing_zeros
from fastrank.gains import Discount, Gain, discounts, gain_table

# Documents that count in a list which is walked by tables, and the labels that such a table tells apart: 3 bits for each.
FEW = 4
FEW_CODES = 8
# Documents of a longer list that are listed in turn.
LISTED = 1024


@functools.cache
def few_precisions() -> np.ndarray:
    """Precision at ranks 1 ... 64 where the relevant document is number 1 ... `FEW`, a row a number; after each row a 0 for none."""
    table = np.zeros((FEW, 65))
    table[:, :64] = np.arange(1, FEW + 1)[:, np.newaxis] / np.arange(1, 65)
    table.setflags(write=False)
    return table.ravel()


@functools.lru_cache(maxsize=64)
def few_ideals(gain: Gain | None, discount: Discount, n_codes: int) -> np.ndarray:
    """Ideal gain at cutoffs 1 ... `FEW`, a row a cutoff, of at most `FEW` labels: number i at bits 3 i and up of the place, 0 for none.

    Summed term by term from the best label down, as any list is.
    """
    gains = np.zeros(FEW_CODES)
    gains[1:n_codes] = gain_table(gain, n_codes)[1:]
    labels = np.arange(FEW_CODES**FEW)[:, np.newaxis] >> np.arange(0, 3 * FEW, 3) & FEW_CODES - 1
    best, table = gains[np.sort(labels)[:, ::-1]], np.zeros((FEW, FEW_CODES**FEW))
    for place in range(FEW):
        table[place] = table[place - 1 if place else 0] + best[:, place] * discounts(discount, FEW)[place]
    table.setflags(write=False)
    return table.ravel()


@kernel
def walk_in_order(
    labels: Any, offsets: Any, least: Any, rel: Any, gain: Any, discount: Any, cutoffs: Any, precisions: Any, ideals: Any, histogram: Any,
    room: Any, listed: Any, out: Any, n_relevant: Any,
) -> None:  # fmt: skip
    """As `walk_placed` for labels in rank order that are whole numbers, with the ideal gain and the number of relevant documents.

    gain[label] does not fall with the label. Only labels from `least` up count, of which 64 are compared at once. precisions and ideals
    are the tables of lists with few documents that count; ideals is empty where there may be other labels than those of the table.
    histogram is zero before and after, and so is where room begins; it has 2 * `FEW` + 10 places more than the longest list, and listed 8
    more than `LISTED`. out is flat: hits, gain, precisions, reciprocal rank and ideal gain; of each, per cutoff, a value a query.
    """
    n_queries, n_tabled = offsets.shape[0] - 1, labels.shape[0] - 64 if ideals.shape[0] > 0 else -1
    y, gains, weight, places, written = pointer(labels), pointer(gain), pointer(discount), pointer(listed), pointer(out)
    known, best, counts, after, ideal = (
        pointer(precisions),
        pointer(ideals),
        pointer(histogram),
        pointer(room),
        pointer(room[2 * FEW + 2 :]),
    )
    for q in range(n_queries):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        if start <= n_tabled and 0 < n <= 64:
            inside = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - n)
            bits, hits = bits_at_least(y, start, least) & inside, bits_at_least(y, start, rel) & inside
            if set_bits(bits) <= FEW:
                place = _walk_few(y, start, bits, hits, gains, weight, known, after)
                _write_few(bits, hits, known, after, best, place, cutoffs, written, q, n_queries)
                n_relevant[q] = set_bits(hits)
                continue
        _walk_many(labels, start, start + n, least, rel, gains, weight, cutoffs, counts, places, written, q, n_queries)
        n_relevant[q] = _ideal(
            counts, gains, gain.shape[0], rel, weight, cutoffs, ideal, written, 4 * cutoffs.shape[0] * n_queries + q, n_queries
        )


@kernel
def _walk_few(y: Any, start: int, bits: Any, hits: Any, gain: Any, weight: Any, known: Any, after: Any) -> Any:
    """Write the gain and the sum of precisions after each of at most `FEW` documents. Returns where the table of ideals has their labels.

    A document that is not there is at place 64: its label reads as 0, which gains nothing, and its precision is 0.
    """
    total = precision = 0.0
    labels = np.int64(0)
    for j in range(FEW):
        i = np.int64(trailing_zeros(bits))
        label = np.int64(y[start + (i & 63)]) & ((i >> 6) - 1)
        total += gain[label] * weight[i & 63]
        after[j + 1] = total
        labels |= label << 3 * j
        bits &= bits - np.uint64(1)
        precision += known[65 * j + np.int64(trailing_zeros(hits))]
        after[FEW + j + 2] = precision
        hits &= hits - np.uint64(1)
    return labels


@kernel
def _write_few(
    bits: Any, hits: Any, known: Any, after: Any, ideals: Any, labels: int, cutoffs: Any, out: Any, q: int, n_queries: int
) -> None:  # fmt: skip
    """Write what was met at each cutoff: the number of documents up to there is the place of what stood after them."""
    n_cutoffs = cutoffs.shape[0]
    step = n_cutoffs * n_queries
    for c in range(n_cutoffs):
        k = min(cutoffs[c], 64)
        inside = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - k)
        n_met, place = np.int64(set_bits(hits & inside)), c * n_queries + q
        out[place] = n_met
        out[place + step] = after[np.int64(set_bits(bits & inside))]
        out[place + 2 * step] = after[FEW + 1 + n_met]
        out[place + 3 * step] = known[np.int64(trailing_zeros(hits & inside))]
        out[place + 4 * step] = ideals[(min(k, FEW) - 1) * FEW_CODES**FEW + labels]


@kernel
def _walk_many(
    labels: Any, start: int, stop: int, least: Any, rel: Any, gain: Any, weight: Any, cutoffs: Any, counts: Any, listed: Any, out: Any,
    q: int, n_queries: int,
) -> None:  # fmt: skip
    """Walk a list of any length, and count its labels."""
    y, n_cutoffs = pointer(labels), cutoffs.shape[0]
    step = n_cutoffs * n_queries
    n_met = total = precision = first = 0.0
    d = start
    for c in range(n_cutoffs):
        end = start + min(cutoffs[c], stop - start)
        while d < end:
            for j in range(_list(labels, d, min(end, d + LISTED), least, listed)):
                i = listed[j]
                code = y[i]
                counts[np.int64(code)] += 1
                total += gain[np.int64(code)] * weight[i - start]
                if code >= rel:
                    n_met += 1.0
                    precision += n_met / (i - start + 1)
                    if n_met == 1.0:
                        first = precision
            d += LISTED
        d, place = end, c * n_queries + q
        out[place] = n_met
        out[place + step] = total
        out[place + 2 * step] = precision
        out[place + 3 * step] = first
    while d < stop:
        for j in range(_list(labels, d, min(stop, d + LISTED), least, listed)):
            counts[np.int64(y[listed[j]])] += 1
        d += LISTED


@kernel
def _list(labels: Any, d: int, end: int, least: Any, listed: Any) -> Any:
    """List the documents from d to end that count. Returns how many.

    Eight are written of every 64, and the next ones overwrite what is too much: no branch depends on how many there are, up to eight.
    """
    n = np.int64(0)
    while d < end:
        bits = _counted(labels, d, end, least)
        more = np.int64(set_bits(bits))
        for j in range(8):
            listed[n + j] = d + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
        for j in range(8, more):
            listed[n + j] = d + np.int64(trailing_zeros(bits))
            bits &= bits - np.uint64(1)
        n += more
        d += 64
    return n


@kernel
def _counted(labels: Any, d: int, end: int, least: Any) -> Any:
    """A word whose bits tell which of the next 64 documents count."""
    if d + 64 <= labels.shape[0]:
        bits = bits_at_least(pointer(labels), d, least)
        return bits & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - min(end - d, 64)))
    bits = np.uint64(0)
    for i in range(d, end):
        bits |= np.uint64(labels[i] >= least) << np.uint64(i - d)
    return bits


@kernel
def ideal_of_labels(
    label: Any, starts: Any, longest: int, gain: Any, discount: Any, cutoffs: Any, out: Any
) -> None:  # fmt: skip
    """As `ideal_walk` for labels that are whole numbers, where gain[label] does not fall with the label. Nothing is sorted.

    No query has more documents than `longest`.
    """
    n_queries = starts.shape[0] - 1
    histogram, room = np.zeros(gain.shape[0], np.int64), np.empty(longest + 8)
    y, counts, best, written = pointer(label), pointer(histogram), pointer(room), pointer(out)
    for q in range(n_queries):
        for i in range(starts[q], starts[q + 1]):
            counts[np.int64(y[i])] += 1
        _ideal(counts, pointer(gain), gain.shape[0], 0, pointer(discount), cutoffs, best, written, q, n_queries)
    room[0] = histogram[0]  # numba frees an array after the last use of its name, and a pointer to it is none


@kernel
def _ideal(
    counts: Any, gain: Any, n_codes: int, rel: Any, weight: Any, cutoffs: Any, best: Any, out: Any, place: int, step: int
) -> Any:  # fmt: skip
    """Sum the gains from the highest label down, and clear the histogram. Returns the number of relevant documents.

    Eight gains are written for every label and the next label overwrites what is too much, and eight are summed at once, with zeros at
    the end: few branches depend on how many there are. What is summed is summed in order; a zero changes no bit.
    """
    n = n_relevant = np.int64(0)
    for code in range(n_codes - 1, -1, -1):
        m = counts[code]
        for j in range(8):
            best[n + j] = gain[code]
        for j in range(8, m):
            best[n + j] = gain[code]
        n += m
        n_relevant += m if code >= np.int64(rel) else 0
        counts[code] = 0
    for j in range(8):
        best[n + j] = 0.0
    total = 0.0
    i = np.int64(0)
    for c in range(cutoffs.shape[0]):
        end = min((n + 7) & -8, cutoffs[c])
        while i + 8 <= end:
            for j in range(i, i + 8):
                total += best[j] * weight[j]
            i += 8
        while i < end:
            total += best[i] * weight[i]
            i += 1
        out[place + c * step] = total
    return n_relevant

"""The walk: once down the documents of each query that count, for every cutoff and most metrics together.

Five columns leave it, one value per query and cutoff: the number of relevant documents met, the discounted gain, the sum of the
precisions at them, the reciprocal rank of the first, and whether there was one. With ties each is the expected value over the orders
of equal scores (McSherry and Najork, ECIR 2008, and the same argument for the rest).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import bits_at_least, kernel, pointer, trailing_zeros


@kernel
def walk_placed(
    rank: Any, gain: Any, by_label: bool, label: Any, starts: Any, rel: float, discount: Any, cutoffs: Any, stride: int, out: Any
) -> None:  # fmt: skip
    """Fill the columns for documents that no longer tie. Cutoffs ascend; query q has cutoffs[q * stride]: stride 0 shares one row.

    gain has a value a label if by_label, else a value a document. out is flat: per column, then per cutoff, a value a query.
    """
    n_queries, n_cutoffs = starts.shape[0] - 1, cutoffs.shape[1]
    ranks, gains, labels, weight, written = pointer(rank), pointer(gain), pointer(label), pointer(discount), pointer(out)
    for q in range(n_queries):
        i, stop = starts[q], starts[q + 1]
        n_met = first = np.int64(0)
        total = precision = 0.0
        for c in range(n_cutoffs):
            k = cutoffs[q * stride, c]
            while i < stop and ranks[i] <= k:
                place = ranks[i]
                total += gains[np.int64(labels[i]) if by_label else i] * weight[place - 1]
                if labels[i] >= rel:
                    n_met += 1
                    precision += n_met / place
                    first = place if n_met == 1 else first
                i += 1
            _write_placed(written, c * n_queries + q, n_cutoffs * n_queries, n_met, total, precision, first)


@kernel
def _block(gain: Any, by_label: bool, label: Any, rank: Any, span: Any, i: int, stop: int, rel: float, block: Any) -> Any:
    """Describe the block of ties that begins at i: its mean gain and its relevant documents. Returns where it ends.

    Equal gains are not averaged: their sum over their number can miss them in the last bit.
    """
    j = i
    total = 0.0
    n_relevant = 0
    uniform = True
    first = gain[np.int64(label[i]) if by_label else i]
    while j < stop and rank[j] == rank[i]:
        own = gain[np.int64(label[j]) if by_label else j]
        total += own
        n_relevant += label[j] >= rel
        uniform &= own == first
        j += 1
    block[0] = first if uniform and j - i == span[i] else total / span[i]
    block[1] = n_relevant
    return j


@kernel
def walk_ties(
    rank: Any, span: Any, gain: Any, by_label: bool, label: Any, starts: Any, rel: float, discount: Any, cutoffs: Any, stride: int,
    out: Any, block: Any,
) -> None:  # fmt: skip
    """As `walk_placed`, in expectation over the orders of equal scores. A document alone gives the same bits as there."""
    n_queries, n_cutoffs = starts.shape[0] - 1, cutoffs.shape[1]
    written, step = pointer(out), n_cutoffs * n_queries
    for q in range(n_queries):
        i, stop = starts[q], starts[q + 1]
        c = 0
        before, total, precision, expected_rr, found = 0.0, 0.0, 0.0, 0.0, 0.0
        while i < stop and c < n_cutoffs and rank[i] <= cutoffs[q * stride, n_cutoffs - 1]:
            n, above = span[i], rank[i] - 1
            i = _block(gain, by_label, label, rank, span, i, stop, rel, block)
            r = block[1]
            unmet = 1.0  # chance that none of the block's relevant documents has come yet
            for j in range(1, n + 1):
                while c < n_cutoffs and cutoffs[q * stride, c] < above + j:
                    _write(written, c * n_queries + q, step, before + r * (j - 1) / n, total, precision, expected_rr, found)
                    c += 1
                if c == n_cutoffs:
                    break
                place = above + j
                total += block[0] * discount[place - 1]
                if r > 0:
                    more = (j - 1) * (r - 1) / (n - 1) if n > 1 else 0.0
                    precision += r / n * ((before + 1.0 + more) / place)
                    if before == 0.0 and unmet > 0.0:
                        expected_rr += unmet * (r / (n - j + 1)) / place
                        unmet = unmet * (n - r - (j - 1)) / (n - (j - 1))
                        found = 1.0 - unmet
            before += r
        while c < n_cutoffs:
            _write(written, c * n_queries + q, step, before, total, precision, expected_rr, found)
            c += 1


@kernel
def _write_placed(out: Any, place: int, step: int, n_met: int, total: float, precision: float, first: int) -> None:
    found = 1.0 if n_met > 0 else 0.0
    _write(out, place, step, n_met, total, precision, found / max(first, 1), found)


@kernel
def _write(out: Any, place: int, step: int, n_met: float, total: float, precision: float, first: float, found: float) -> None:
    out[place] = n_met
    out[place + step] = total
    out[place + 2 * step] = precision
    out[place + 3 * step] = first
    out[place + 4 * step] = found


@kernel
def ideal_walk(gains: Any, starts: Any, n_documents: Any, discount: Any, cutoffs: Any, stride: int, out: Any) -> None:
    """out[c, q] = discounted gain of the ideal order, summed term by term as `walk_placed` sums, so that an ideal list gives exactly 1.

    Gains descend within a query; documents that are not listed gain 0 and stand before those with a negative gain.
    """
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        for c in range(out.shape[0]):
            k = cutoffs[q * stride, c]
            while i < stop:
                place = i - starts[q] if gains[i] >= 0 else n_documents[q] - (stop - i)
                if place >= k:
                    break
                total += gains[i] * discount[place]
                i += 1
            out[c, q] = total


@kernel
def walk_in_order(
    labels: Any, offsets: Any, least: Any, rel: int, gain: Any, discount: Any, cutoffs: Any, histogram: Any, best: Any, out: Any,
    n_relevant: Any,
) -> None:  # fmt: skip
    """As `walk_placed` for labels in rank order that are whole numbers, with the ideal gain and the number of relevant documents.

    gain[label] does not fall with the label. Only labels from `least` up count: 64 are compared at once and the set bits visited one after
    the other, which is one branch a query that the processor cannot foresee, instead of one a document. The ideal needs no sort: the
    histogram of the labels, zero before and after, gives its order. best has room for 8 more than the longest list. out is flat: per
    column of the walk, then for the ideal, per cutoff, a value a query.
    """
    n_queries, n_cutoffs = offsets.shape[0] - 1, cutoffs.shape[0]
    y, gains, weight, counts, written = pointer(labels), pointer(gain), pointer(discount), pointer(histogram), pointer(out)
    for q in range(n_queries):
        start, stop = offsets[q], offsets[q + 1]
        n_met = first = np.int64(0)
        total = precision = 0.0
        d = start
        for c in range(n_cutoffs):
            end = start + min(cutoffs[c], stop - start)
            while d < end:
                bits = _counted(labels, d, end, least)
                while bits != 0:
                    i = d + np.int64(trailing_zeros(bits))
                    code = np.int64(y[i])
                    counts[code] += 1
                    total += gains[code] * weight[i - start]
                    if code >= rel:
                        n_met += 1
                        precision += n_met / (i - start + 1)
                        first = i - start + 1 if n_met == 1 else first
                    bits &= bits - np.uint64(1)
                d += 64
            d = end
            _write_placed(written, c * n_queries + q, n_cutoffs * n_queries, n_met, total, precision, first)
        _add_labels(labels, d, stop, least, counts)
        n_relevant[q] = _ideal(counts, gain, rel, weight, cutoffs, pointer(best), written, 5 * n_cutoffs * n_queries + q, n_queries)


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
def _add_labels(labels: Any, d: int, stop: int, least: Any, counts: Any) -> None:
    while d < stop:
        bits = _counted(labels, d, stop, least)
        while bits != 0:
            counts[np.int64(labels[d + np.int64(trailing_zeros(bits))])] += 1
            bits &= bits - np.uint64(1)
        d += 64


@kernel
def ideal_of_labels(
    label: Any, starts: Any, gain: Any, discount: Any, cutoffs: Any, histogram: Any, best: Any, out: Any
) -> None:  # fmt: skip
    """As `ideal_walk` for labels that are whole numbers, where gain[label] does not fall with the label. Nothing is sorted.

    histogram is zero before and after; best has room for 8 more than the most documents of a query.
    """
    n_queries = starts.shape[0] - 1
    y, counts, room, written = pointer(label), pointer(histogram), pointer(best), pointer(out)
    for q in range(n_queries):
        for i in range(starts[q], starts[q + 1]):
            counts[np.int64(y[i])] += 1
        _ideal(counts, gain, 0, pointer(discount), cutoffs, room, written, q, n_queries)


@kernel
def _ideal(counts: Any, gain: Any, rel: int, weight: Any, cutoffs: Any, best: Any, out: Any, place: int, step: int) -> Any:
    """Sum the gains from the highest label down, and clear the histogram. Returns the number of relevant documents.

    Eight gains are written for every label and the next label overwrites what is too much: no branch depends on how many there are.
    """
    n = n_relevant = np.int64(0)
    for code in range(gain.shape[0] - 1, -1, -1):
        m = counts[code]
        for j in range(8):
            best[n + j] = gain[code]
        for j in range(8, m):
            best[n + j] = gain[code]
        n += m
        n_relevant += m if code >= rel else 0
        counts[code] = 0
    total = 0.0
    i = np.int64(0)
    for c in range(cutoffs.shape[0]):
        end = min(n, cutoffs[c])
        while i < end:
            total += best[i] * weight[i]
            i += 1
        out[place + c * step] = total
    return n_relevant

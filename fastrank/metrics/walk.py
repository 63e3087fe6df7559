"""The walk: once down the documents of each query that count, for every cutoff and most metrics together.

Five columns leave it, one value per query and cutoff: the number of relevant documents met, the discounted gain, the sum of the
precisions at them, the reciprocal rank of the first, and whether there was one. With ties each is the expected value over the orders
of equal scores (McSherry and Najork, ECIR 2008, and the same argument for the rest).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel, pointer


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

"""The walk: once down the documents of each query that count, for every cutoff and most metrics together.

Five columns leave it, one value per query and cutoff: the number of relevant documents met, the discounted gain, the sum of the
precisions at them, the reciprocal rank of the first, and whether there was one. With ties each is the expected value over the orders
of equal scores (McSherry and Najork, ECIR 2008, and the same argument for the rest).
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def walk_placed(
    rank: Any, gain: Any, label: Any, starts: Any, rel: float, discount: Any, cutoffs: Any, stride: int, hits: Any, dcg: Any,
    precisions: Any, rr: Any, success: Any,
) -> None:  # fmt: skip
    """Fill the columns for documents that no longer tie. Cutoffs ascend; query q has cutoffs[q * stride]: stride 0 shares one row."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        n_met = 0
        total = 0.0
        precision = 0.0
        first = 0.0
        for c in range(hits.shape[0]):
            k = cutoffs[q * stride, c]
            while i < stop and rank[i] <= k:
                total += gain[i] * discount[rank[i] - 1]
                if label[i] >= rel:
                    n_met += 1
                    precision += n_met / rank[i]
                    if n_met == 1:
                        first = 1.0 / rank[i]
                i += 1
            hits[c, q] = n_met
            dcg[c, q] = total
            precisions[c, q] = precision
            rr[c, q] = first
            success[c, q] = n_met > 0


@kernel
def _block(gain: Any, label: Any, rank: Any, span: Any, i: int, stop: int, rel: float, block: Any) -> Any:
    """Describe the block of ties that begins at i: its mean gain and its relevant documents. Returns where it ends.

    Equal gains are not averaged: their sum over their number can miss them in the last bit.
    """
    j = i
    total = 0.0
    n_relevant = 0
    uniform = True
    while j < stop and rank[j] == rank[i]:
        total += gain[j]
        n_relevant += label[j] >= rel
        uniform &= gain[j] == gain[i]
        j += 1
    block[0] = gain[i] if uniform and j - i == span[i] else total / span[i]
    block[1] = n_relevant
    return j


@kernel
def walk_ties(
    rank: Any, span: Any, gain: Any, label: Any, starts: Any, rel: float, discount: Any, cutoffs: Any, stride: int, hits: Any, dcg: Any,
    precisions: Any, rr: Any, success: Any, block: Any,
) -> None:  # fmt: skip
    """As `walk_placed`, in expectation over the orders of equal scores. A document alone gives the same bits as there."""
    n_cutoffs = hits.shape[0]
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        c = 0
        before, total, precision, expected_rr, found = 0.0, 0.0, 0.0, 0.0, 0.0
        while i < stop and c < n_cutoffs and rank[i] <= cutoffs[q * stride, n_cutoffs - 1]:
            n, above = span[i], rank[i] - 1
            i = _block(gain, label, rank, span, i, stop, rel, block)
            r = block[1]
            unmet = 1.0  # chance that none of the block's relevant documents has come yet
            for j in range(1, n + 1):
                while c < n_cutoffs and cutoffs[q * stride, c] < above + j:
                    _write(q, c, before + r * (j - 1) / n, total, precision, expected_rr, found, hits, dcg, precisions, rr, success)
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
            _write(q, c, before, total, precision, expected_rr, found, hits, dcg, precisions, rr, success)
            c += 1


@kernel
def _write(
    q: int, c: int, n_met: float, total: float, precision: float, first: float, found: float, hits: Any, dcg: Any, precisions: Any,
    rr: Any, success: Any,
) -> None:  # fmt: skip
    hits[c, q] = n_met
    dcg[c, q] = total
    precisions[c, q] = precision
    rr[c, q] = first
    success[c, q] = found


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

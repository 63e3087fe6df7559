"""Metrics of graded labels along the ranks: DCG, its ideal, their quotient, and expected reciprocal rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrank.errors import InputError
from fastrank.reference._gains import Discount, Gain, discounts_of, gains_of
from fastrank.reference._layout import (
    Cutoff,
    FloatArray,
    HeldBlocks,
    IntArray,
    Ranking,
    cutoffs,
    held_blocks,
    places,
    rank,
    ratio,
    reduce_by,
    running_count,
    scan,
    settle,
    sort_descending,
    spans,
)


def dcg(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    gain: Gain = "exp2",
    discount: Discount = "log2",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Discounted cumulative gain: DCG@k = sum over ranks r <= k of gain(label) * discount(r).

    ``gain`` is "exp2" (2^label - 1), "linear", a table {label: gain} or an array indexed by label; ``discount`` is "log2"
    (1 / log2(r + 1)), "ln", "zipf" (1 / r), "power:B" (r^-B), "geometric:P" (P^(r-1)), "jarvelin:B" (1 below rank B, then 1 / log_B(r)),
    "step:K" (1 down to rank K, then 0) or an array over ranks. An unjudged document (label NaN) gains 0. A document of a block of equal
    scores gains the block's mean.
    Source: Järvelin and Kekäläinen, TOIS 2002; gain 2^label - 1: Burges et al., ICML 2005; ties: McSherry and Najork, ECIR 2008.

    >>> dcg([3, 2, 0, 1, 2], k=4)  # 7 + 3 / log2(3) + 1 / log2(5)
    array([9.32346582])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    gains = expected_gains(ranking, gains_of(ranking.labels, gain))
    return _discounted_sum(gains, ranking, k, discount)


def idcg(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    gain: Gain = "exp2",
    discount: Discount = "log2",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Ideal DCG: the DCG@k of all documents, unretrieved ones included, in falling order of their gains.

    Called as ``dcg`` is, though no order of the documents changes it: scores only say which were retrieved, where k is a share of those.
    Source: Järvelin and Kekäläinen, TOIS 2002.

    >>> idcg([2, 0, 3])  # 7 + 3 / log2(3)
    array([8.89278926])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    return _discounted_sum(sort_descending(gains_of(ranking.labels, gain), ranking.offsets), ranking, k, discount)


def ndcg(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    gain: Gain = "exp2",
    discount: Discount = "log2",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Normalised DCG: NDCG@k = DCG@k / IDCG@k. Where the ideal is not above 0 there is nothing to find: ``no_relevant`` decides.

    Source: Järvelin and Kekäläinen, TOIS 2002.

    >>> ndcg([0, 1]).round(4)  # 1 / log2(3), against an ideal of 1
    array([0.6309])
    >>> ndcg([2, 1, 0])
    array([1.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    gains = gains_of(ranking.labels, gain)
    ideal = _discounted_sum(sort_descending(gains, ranking.offsets), ranking, k, discount)
    actual = _discounted_sum(expected_gains(ranking, gains), ranking, k, discount)
    found = ideal > 0
    # Gains one rounding apart can carry the quotient past 1 by a bit, and an unretrieved loss by more.
    return settle(np.minimum(ratio(actual, ideal), 1.0), ~found, no_relevant)


def err(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    max_label: float = 4,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Expected reciprocal rank: ERR@k = sum over ranks r <= k of p_r / r * product over the documents before r of (1 - p).

    p = (2^label - 1) / 2^max_label is the chance that the reader stops; a negative or missing label never stops anyone.
    A label above max_label is an InputError. Nothing to find: no label above 0.
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009.

    >>> err([2, 0, 1], max_label=2)  # 3/4 at once, else 1/4 at rank 3: 3/4 + (1/4) (1/4) / 3
    array([0.77083333])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    above_zero = np.flatnonzero(ranking.labels > 0)
    label = ranking.labels[above_zero].astype(np.float64)
    if label.size and label.max() > max_label:
        raise InputError(f"labels must not exceed max_label = {max_label:g} in ERR: got {label.max():g}. Raise max_label=.")
    pass_on = 1.0 - (np.exp2(label) - 1.0) / 2.0**max_label
    depth = np.minimum(cutoffs(k, ranking.n_retrieved), ranking.n_retrieved)
    held = held_blocks(ranking, above_zero)
    first = running_count(held.n_marked)
    past_block = reduce_by(np.multiply, pass_on, first)
    past = scan(np.multiply, past_block, places(held.per_query))
    # The chance of reaching a block is that of passing all those before it, and 1 for the first of a query.
    reach = np.concatenate((np.ones(1), past[:-1]))[: len(past)]
    reach[held.n_before == 0] = 1.0
    room = np.clip(np.repeat(depth, held.per_query) - held.above, 0, held.size)
    stop_here = np.where(room > 0, (1.0 - past_block) / (held.above + 1), 0.0)
    tied = np.flatnonzero((held.size > 1) & (room > 0))
    stop_here[tied] = _stopping_in_blocks(pass_on, held, first, room, tied)
    return settle(reduce_by(np.add, reach * stop_here, held.bounds), held.per_query == 0, no_relevant)


def _discounted_sum(gains: FloatArray, ranking: Ranking, k: Cutoff, discount: Discount) -> FloatArray:
    """Sum of gain times discount over the first k places of all documents.

    The ideal and the actual order pass here with the same number of terms a query, so that equal terms give equal bits.
    """
    depth = np.minimum(cutoffs(k, ranking.n_retrieved), ranking.sizes) if k is not None else ranking.sizes
    weight = discounts_of(int(depth.max(initial=0)), discount)
    terms = weight[places(depth)]
    terms *= gains if len(terms) == len(gains) else gains[spans(ranking.starts, depth)]
    return reduce_by(np.add, terms, running_count(depth))


def expected_gains(ranking: Ranking, gains: FloatArray) -> FloatArray:
    """Each place's expected gain: the mean over its block of equal scores, 0 for the unretrieved."""
    if ranking.blocks is None:
        return gains
    gains = gains.copy()
    gains[spans(ranking.starts + ranking.n_retrieved, ranking.sizes - ranking.n_retrieved)] = 0.0
    sizes = np.diff(ranking.blocks)
    tied = sizes > 1
    starts, sizes = ranking.blocks[:-1][tied], sizes[tied]
    documents = spans(starts, sizes)
    bounds = running_count(sizes)
    values = gains[documents]
    # The mean of equal numbers must be that number to the bit, or a perfect order with ties would miss 1.
    least, most = reduce_by(np.minimum, values, bounds), reduce_by(np.maximum, values, bounds)
    mean = np.clip(reduce_by(np.add, values, bounds) / sizes, least, most)
    gains[documents] = np.repeat(mean, sizes)
    return gains


def _stopping_in_blocks(pass_on: FloatArray, held: HeldBlocks, first: IntArray, room: IntArray, tied: IntArray) -> FloatArray:
    """Expected 1/rank of stopping inside each tied block, for a reader who reaches it: sum over i <= room of (E[i-1] - E[i]) / (above + i).

    E[m] is the mean over all m-subsets of the block of the product of their chances to pass on. It is 1 for a block of documents that never
    stop anyone; the others join one at a time, E[m] <- ((j - m) E[m] + m q E[m-1]) / j for the j-th (stable: no binomials).
    The blocks run side by side, those with most such documents first, so that the ones not yet complete stay a prefix.
    """
    by_count = np.argsort(-held.n_marked[tied], kind="stable")
    block = tied[by_count]
    width = room[block] + 1
    bounds = running_count(width)
    m = places(width)
    expected = np.ones(len(m))
    for t in range(int(held.n_marked[block].max(initial=0))):
        n_active = np.count_nonzero(held.n_marked[block] > t)
        active, repeats, stop = block[:n_active], width[:n_active], bounds[n_active]
        j = np.repeat(held.size[active] - held.n_marked[active] + t + 1, repeats)
        stays = np.maximum(j - m[:stop], 0) / j
        q = np.repeat(pass_on[first[active] + t], repeats)
        # At m = 0 the share that moves is 0, so the neighbour's last value is never taken in.
        expected[1:stop] = stays[1:] * expected[1:stop] + ((1.0 - stays) * q)[1:] * expected[: stop - 1]
    drop = np.where(m > 0, -np.diff(expected, prepend=1.0), 0.0) / (np.repeat(held.above[block], width) + np.maximum(m, 1))
    result = np.empty(len(tied))
    result[by_count] = reduce_by(np.add, drop, bounds)
    return result

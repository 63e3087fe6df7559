"""Metrics of relevant documents (label >= rel) along the ranks: hits, precisions, reciprocal rank, and counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrank.errors import InputError
from fastrank.reference._layout import (
    Cutoff,
    FloatArray,
    HeldBlocks,
    IntArray,
    Ranking,
    count_by_query,
    cutoffs,
    expected_hits,
    held_blocks,
    places,
    rank,
    ratio,
    reduce_by,
    running_count,
    scan,
    settle,
)

AP_DENOMINATORS = ("relevant", "min_k", "min_k_retrieved", "hits")


def reciprocal_rank(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    above: float | None = None,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Reciprocal rank: RR@k = 1 / rank of the first document with label >= rel, 0 when that rank passes k.

    ``above``: a document whose score is not above it is not retrieved.

    In a block of n equal scores, r of them relevant, the first relevant one is i-th with chance C(n - i, r - 1) / C(n, r).
    Source: Voorhees, TREC-8 1999; ties: McSherry and Najork, ECIR 2008.

    >>> reciprocal_rank([0, 1, 1])
    array([0.5])
    >>> reciprocal_rank([0, 1, 1], scores=[7, 7, 7])  # first with chance 2/3, second with 1/3
    array([0.83333333])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    n_relevant = count_by_query(np.flatnonzero(ranking.labels >= rel), ranking.offsets)
    held = held_blocks(ranking, _found(ranking, rel, above))
    query = np.flatnonzero(held.per_query)
    first = held.bounds[query]
    before, size, n_marked = held.above[first], held.size[first], held.n_marked[first]
    room = np.clip(_depth(ranking, k)[query] - before, 0, size - n_marked + 1)
    i = places(room)
    # Chance by chance, each from the one before: (n - r - i + 1) / (n - i) times it, from r / n on (i from 0).
    left = np.repeat(size, room) - i
    step = np.where(i == 0, np.repeat(n_marked / size, room), (left - np.repeat(n_marked, room) + 1) / left)
    terms = scan(np.multiply, step, i) / (np.repeat(before, room) + i + 1)
    values = np.zeros(len(ranking.n_retrieved))
    values[query] = np.minimum(reduce_by(np.add, terms, running_count(room)), 1.0)
    return settle(values, n_relevant == 0, no_relevant)


def average_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    above: float | None = None,
    denominator: str = "relevant",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Average precision: AP@k = sum over relevant documents at ranks r <= k of P@r, divided by ``denominator``.

    ``denominator`` is "relevant" (all P relevant documents, unretrieved ones included), "min_k" (min(P, k)), "min_k_retrieved"
    (min(P, k, n_retrieved)) or "hits" (relevant documents at ranks <= k; 0 without any). ``above``: a document whose score is not above
    it is not retrieved.
    In a block of n equal scores below s documents, R relevant, of its own r relevant documents, place i adds on average
    (r / n) (R + 1 + (i - 1)(r - 1) / (n - 1)) / (s + i).
    Source: Buckley and Voorhees, in TREC: Experiment and Evaluation 2005; ties: McSherry and Najork, ECIR 2008.

    >>> average_precision([3, 0, 2, 3, 1])  # (1 + 2/3 + 3/4 + 4/5) / 4
    array([0.80416667])
    """
    if denominator not in AP_DENOMINATORS:
        raise InputError(f"denominator of AP must be one of {', '.join(AP_DENOMINATORS)}: got {denominator!r}.")
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant = count_by_query(relevant, ranking.offsets)
    found = _found(ranking, rel, above)
    held = held_blocks(ranking, found)
    depth = _depth(ranking, k)
    if denominator == "hits":
        values = _precision_per_hit(ranking, held, found, depth)
    else:
        limit = n_relevant
        if denominator == "min_k" and k is not None:
            limit = np.minimum(n_relevant, cutoffs(k, ranking.n_retrieved))
        elif denominator == "min_k_retrieved":
            limit = np.minimum(n_relevant, depth)
        values = ratio(_sum_of_precisions(held, depth), limit)
    return settle(np.minimum(values, 1.0), n_relevant == 0, no_relevant)


def precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    above: float | None = None,
    denominator: str = "k",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Precision: P@k = relevant documents at ranks <= k, divided by k ("k") or by min(k, n_retrieved) ("retrieved").

    Without k: by n_retrieved, 0 for an empty list. ``above``: a document whose score is not above it is no hit.
    Source: Kent, Berry, Luehrs and Perry, American Documentation 1955; trec_eval.

    >>> precision([1, 0, 1], k=5)  # 2 hits of 5, also where the list is shorter
    array([0.4])
    """
    if denominator not in ("k", "retrieved"):
        raise InputError(f"denominator of P must be one of k, retrieved: got {denominator!r}.")
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    depth = _depth(ranking, k)
    hits = expected_hits(ranking, _found(ranking, rel, above), depth)
    return ratio(hits, depth if denominator == "retrieved" else cutoffs(k, ranking.n_retrieved))


def recall(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    above: float | None = None,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Recall: R@k = relevant documents at ranks <= k, divided by all relevant ones, unretrieved included.

    ``above``: a document whose score is not above it is not retrieved.

    Source: Kent, Berry, Luehrs and Perry, American Documentation 1955.

    >>> recall([1, 0, 1, 1], k=3)  # 2 hits of 3
    array([0.66666667])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    n_relevant = count_by_query(np.flatnonzero(ranking.labels >= rel), ranking.offsets)
    hits = expected_hits(ranking, _found(ranking, rel, above), _depth(ranking, k))
    return settle(ratio(hits, n_relevant), n_relevant == 0, no_relevant)


def f(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    beta: float = 1.0,
    k: Cutoff = None,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """F of P@k and R@k, recall weighing beta times as much: F@k = (1 + beta^2) hits / (beta^2 P + k), P the relevant documents.

    Without k it is n_retrieved. Source: van Rijsbergen, Information Retrieval 1979.

    >>> f([1, 0, 1, 1], k=2)  # 2 * 1 / (3 + 2)
    array([0.4])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant = count_by_query(relevant, ranking.offsets)
    hits = expected_hits(ranking, relevant, _depth(ranking, k))
    values = ratio((1.0 + beta**2) * hits, beta**2 * n_relevant + cutoffs(k, ranking.n_retrieved))
    return settle(values, n_relevant == 0, no_relevant)


def success(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Success, or hit rate: 1 where a document with label >= rel stands at a rank <= k, else 0.

    In a block of n equal scores, r of them relevant and m within k, the chance is 1 - C(n - m, r) / C(n, r).
    Source: trec_eval.

    >>> success([0, 0, 1], scores=[2, 1, 1], k=2)  # one of two tied documents
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    held = held_blocks(ranking, np.flatnonzero(ranking.labels >= rel))
    query = np.flatnonzero(held.per_query)
    first = held.bounds[query]
    size, n_marked = held.size[first], held.n_marked[first]
    room = np.clip(_depth(ranking, k)[query] - held.above[first], 0, size - n_marked + 1)
    left = np.repeat(size, room) - places(room)
    values = np.zeros(len(ranking.n_retrieved))
    values[query] = 1.0 - reduce_by(np.multiply, (left - np.repeat(n_marked, room)) / left, running_count(room), empty=1.0)
    return settle(values, held.per_query == 0, no_relevant)


def r_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    multiple: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """R-precision: P@R, where R is the number of relevant documents of the query, or P at int(multiple * R + 0.9). Source: trec_eval.

    >>> r_precision([1, 0, 1])  # R = 2: one hit in the first two
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant = count_by_query(relevant, ranking.offsets)
    depth = (multiple * n_relevant + 0.9).astype(np.int64)
    hits = expected_hits(ranking, relevant, np.minimum(depth, ranking.n_retrieved))
    return settle(ratio(hits, depth), n_relevant == 0, no_relevant)


def judged(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Judged@k = documents with a label (not NaN) at ranks <= k, divided by min(k, n_retrieved); 0 for an empty list.

    Source: MacAvaney, Macdonald and Ounis, ECIR 2022 (ir_measures).

    >>> judged([1, float("nan"), 0, 0], k=2)
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    depth = _depth(ranking, k)
    return ratio(expected_hits(ranking, np.flatnonzero(ranking.labels == ranking.labels), depth), depth)


def num_ret(labels: ArrayLike, scores: ArrayLike | None = None, offsets: ArrayLike | None = None) -> FloatArray:
    """Number of retrieved documents: those with a score. Source: trec_eval.

    >>> num_ret([1, 0, 1], scores=[0.3, 0.2, float("nan")])
    array([2.])
    """
    return rank(labels, scores, offsets, "average", None).n_retrieved.astype(np.float64)


def num_rel(labels: ArrayLike, scores: ArrayLike | None = None, offsets: ArrayLike | None = None, *, rel: float = 1) -> FloatArray:
    """Number of documents with label >= rel, unretrieved ones included. Source: trec_eval.

    >>> num_rel([1, 0, 1], scores=[0.3, 0.2, float("nan")])
    array([2.])
    """
    ranking = rank(labels, scores, offsets, "average", None)
    return count_by_query(np.flatnonzero(ranking.labels >= rel), ranking.offsets).astype(np.float64)


def num_rel_ret(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Number of documents with label >= rel at ranks <= k. Source: trec_eval.

    >>> num_rel_ret([1, 0, 1], k=2)
    array([1.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    return expected_hits(ranking, np.flatnonzero(ranking.labels >= rel), _depth(ranking, k))


def _found(ranking: Ranking, rel: float, above: float | None) -> IntArray:
    """The documents with label >= rel, without those whose score is not above the bound."""
    found = ranking.labels >= rel
    if above is not None and ranking.scores is not None:
        found &= ~(ranking.scores <= above)
    return np.flatnonzero(found)


def _depth(ranking: Ranking, k: Cutoff) -> IntArray:
    """How many ranks count: min(k, n_retrieved)."""
    return np.minimum(cutoffs(k, ranking.n_retrieved), ranking.n_retrieved)


def _sum_of_precisions(held: HeldBlocks, depth: IntArray) -> FloatArray:
    """Expected sum, over the relevant documents within ``depth``, of the precision at each."""
    depths = np.repeat(depth, held.per_query)
    if held.size.max(initial=1) == 1:
        return reduce_by(np.add, np.where(held.above < depths, (held.n_before + 1) / (held.above + 1), 0.0), held.bounds)
    room = np.clip(depths - held.above, 0, held.size)
    i = places(room)
    share = held.n_marked / held.size
    # Of the documents before a relevant one in its block, each is relevant with chance (r - 1) / (n - 1).
    others = (held.n_marked - 1) / np.maximum(held.size - 1, 1)
    met = np.repeat(held.n_before + 1, room) + i * np.repeat(others, room)
    terms = np.repeat(share, room) * met / (np.repeat(held.above + 1, room) + i)
    return reduce_by(np.add, terms, running_count(room)[held.bounds])


def _precision_per_hit(ranking: Ranking, held: HeldBlocks, relevant: IntArray, depth: IntArray) -> FloatArray:
    """Expected mean precision over the hits within ``depth``.

    Only in a block that depth cuts does the number of hits vary: h of its m places within depth are relevant with the hypergeometric
    chance, and given h they stand anywhere in the m places.
    """
    start, stop = ranking.block_around(ranking.starts + depth)
    above = start - ranking.starts
    m = depth - above
    n_before = np.searchsorted(relevant, start) - np.searchsorted(relevant, ranking.starts)
    r = np.searchsorted(relevant, stop) - np.searchsorted(relevant, start)
    n = stop - start
    fewest = np.maximum(m - (n - r), 0)
    n_cases = np.minimum(r, m) - fewest + 1
    bounds = running_count(n_cases)
    case = places(n_cases)
    h = np.repeat(fewest, n_cases) + case
    places_within = np.repeat(m, n_cases)
    chance = _hypergeometric(np.repeat(n, n_cases), np.repeat(r, n_cases), places_within, h, case, bounds)
    # Sums over the m places of 1 / rank and (place - 1) / rank.
    i = places(m)
    inverse_rank = 1.0 / (np.repeat(above, m) + i + 1)
    in_block = running_count(m)
    flat, rising = reduce_by(np.add, inverse_rank, in_block), reduce_by(np.add, i * inverse_rank, in_block)
    flat = np.repeat((n_before + 1) * flat, n_cases)
    rising = np.repeat(rising, n_cases) * (h - 1) / np.maximum(places_within - 1, 1)
    total = np.repeat(_sum_of_precisions(held, above), n_cases) + ratio(h, places_within) * (flat + rising)
    return reduce_by(np.add, chance * ratio(total, np.repeat(n_before, n_cases) + h), bounds)


def _hypergeometric(n: IntArray, r: IntArray, m: IntArray, h: IntArray, case: IntArray, bounds: IntArray) -> FloatArray:
    """Chance of h relevant documents among m drawn from n with r relevant, for every possible h of each segment."""
    # Ratios of neighbouring chances, summed as logarithms: binomials of blocks above 1,030 documents overflow.
    h_before = np.where(case > 0, h - 1, h)
    up = np.where(case > 0, (r - h_before) * (m - h_before), 1)
    down = np.where(case > 0, h * (n - r - m + h), 1)
    weight = scan(np.add, np.log(up / down), case)
    sizes = np.diff(bounds)
    weight = np.exp(weight - np.repeat(reduce_by(np.maximum, weight, bounds), sizes))
    return weight / np.repeat(reduce_by(np.add, weight, bounds), sizes)

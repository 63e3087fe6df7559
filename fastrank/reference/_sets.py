"""Metrics of what was retrieved, whatever its order: relative precision, set average precision, utility, and counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from fastrank.reference._layout import Cutoff, FloatArray, count_by_query, cutoffs, expected_hits, rank, ratio, settle


def relative_precision(
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
    """Precision over the greatest possible: relevant documents at ranks <= k, divided by min(k, P); without k by min(n_retrieved, P).

    Source: trec_eval.

    >>> relative_precision([1, 0, 1], k=3)  # 2 of the 2 that there are
    array([1.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant = count_by_query(relevant, ranking.offsets)
    depth = cutoffs(k, ranking.n_retrieved)
    hits = expected_hits(ranking, relevant, np.minimum(depth, ranking.n_retrieved))
    return settle(ratio(hits, np.minimum(depth, n_relevant)), n_relevant == 0, no_relevant)


def set_average_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Precision times recall of all retrieved documents. Source: trec_eval.

    >>> set_average_precision([1, 0])  # 1/2 * 1
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant = count_by_query(relevant, ranking.offsets)
    hits = expected_hits(ranking, relevant, ranking.n_retrieved)
    return settle(ratio(hits**2, ranking.n_retrieved * n_relevant), n_relevant == 0, no_relevant)


def utility(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: Sequence[float] = (1, -1, 0, 0),
    collection: float = 0,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Weights times the cells of the table retrieved / relevant: relevant and others retrieved, relevant and others left.

    Source: trec_eval.

    >>> utility([1, 0, 0])  # 1 - 2
    array([-1.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    n_relevant, n = count_by_query(relevant, ranking.offsets), ranking.n_retrieved
    hits = expected_hits(ranking, relevant, n)
    table = np.stack((hits, n - hits, n_relevant - hits, collection + hits - n - n_relevant))
    return np.asarray(weights, np.float64) @ table


def num_q(labels: ArrayLike, scores: ArrayLike | None = None, offsets: ArrayLike | None = None) -> FloatArray:
    """1 for every query. Source: trec_eval.

    >>> num_q([1, 0, 1])
    array([1.])
    """
    return np.ones(len(rank(labels, scores, offsets, "average", None).n_retrieved))


def num_non_rel_ret(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Retrieved documents with 0 <= label < rel. Source: trec_eval.

    >>> num_non_rel_ret([1, 0, float("nan"), 0])
    array([2.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    return expected_hits(ranking, np.flatnonzero((ranking.labels >= 0) & (ranking.labels < rel)), ranking.n_retrieved)


def unjudged(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Documents at ranks <= k without a label from 0 up, divided by k; without k by n_retrieved. Source: trec_eval.

    >>> unjudged([1, float("nan"), 0], k=4)
    array([0.25])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    depth = np.minimum(cutoffs(k, ranking.n_retrieved), ranking.n_retrieved)
    hits = expected_hits(ranking, np.flatnonzero(~(ranking.labels >= 0)), depth)
    return ratio(hits, cutoffs(k, ranking.n_retrieved))

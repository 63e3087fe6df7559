"""Rank-biased precision, its residual, and rank-biased overlap with an ideal ranking."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrank.errors import InputError
from fastrank.reference._gains import Gain, gains_of
from fastrank.reference._graded import expected_gains
from fastrank.reference._layout import (
    Cutoff,
    FloatArray,
    cutoffs,
    each_query,
    places,
    rank,
    rank_strictly,
    reduce_by,
    running_count,
    settle,
    spans,
)


def rbp(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    p: float = 0.8,
    gain: Gain = "binary",
    rel: float = 1,
    k: Cutoff = None,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Rank-biased precision: RBP@k = (1 - p) * sum over ranks r <= k of gain * p^(r-1).

    ``gain`` is "binary" (1 for a label >= rel), "scaled" (the label over the largest one of the query, where that is above 1) or a gain
    as DCG takes it. Source: Moffat and Zobel, TOIS 2008.

    >>> rbp([1, 0, 1], p=0.5)  # (1/2) (1 + 1/4)
    array([0.625])
    """
    if not 0 < p < 1:
        raise InputError(f"p of RBP must lie strictly between 0 and 1: got {p}.")
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    if isinstance(gain, str) and gain == "binary":
        gains = (ranking.labels >= rel).astype(np.float64)
    else:
        gains = gains_of(ranking.labels, "linear" if isinstance(gain, str) and gain == "scaled" else gain)
    scale = np.ones(len(ranking.sizes))
    if isinstance(gain, str) and gain == "scaled":
        scale = np.maximum(reduce_by(np.maximum, gains, ranking.offsets), 1.0)
    depth = np.minimum(cutoffs(k, ranking.n_retrieved), ranking.n_retrieved)
    terms = expected_gains(ranking, gains)[spans(ranking.starts, depth)] * p ** places(depth)
    return (1.0 - p) * reduce_by(np.add, terms, running_count(depth)) / scale


def rbp_residual(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    p: float = 0.8,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Residual of RBP: (1 - p) * sum over retrieved documents without a label from 0 up of p^(r-1), and p^n for what follows n documents.

    0 where all retrieved documents are judged. Source: trec_eval.

    >>> rbp_residual([1, float("nan")], p=0.5)  # (1/2) (1/2) + 1/4
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    unjudged = expected_gains(ranking, np.where(ranking.labels >= 0, 0.0, 1.0))
    n = ranking.n_retrieved
    unjudged = unjudged[spans(ranking.starts, n)]
    bounds = running_count(n)
    values = (1.0 - p) * reduce_by(np.add, unjudged * p ** places(n), bounds) + p**n
    return np.where(reduce_by(np.add, unjudged, bounds) > 0, values, 0.0)


def compatibility(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    p: float = 0.95,
    normalize: bool = True,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Rank-biased overlap of the ranking with its ideal: documents with a label above 0, largest first, equal ones as they are ranked.

    Source: Clarke, Vtyurina and Smucker, TOIS 2021.

    >>> compatibility([0, 1], p=0.5)  # (0 + (1/2) (1/2)) / (1 + (1/2) (1/2))
    array([0.2])
    """
    ranking = rank_strictly(labels, scores, offsets, ties, doc_ids)
    values, nothing = [], []
    for query in each_query(ranking):
        both = np.concatenate((query.ranked, query.missing))
        n_relevant = int(np.sum(both > 0))
        ideal = np.argsort(np.where(both > 0, -both, np.inf), kind="stable")[:n_relevant]
        depth = max(len(query.ranked), n_relevant)
        i = np.arange(1, depth + 1)
        # Documents of the list are numbered by rank: those in its top d are below d.
        in_list = np.array([np.count_nonzero(ideal[:d] < min(d, len(query.ranked))) for d in range(1, depth + 1)])
        own = np.minimum(i, n_relevant) / i @ p ** (i - 1.0)
        best = own if normalize else np.sum(p ** (i - 1.0))
        values.append(in_list / i @ p ** (i - 1.0) / best if best > 0 else 0.0)
        nothing.append(n_relevant == 0)
    return settle(np.minimum(np.array(values, np.float64), 1.0), np.array(nothing, np.bool_), no_relevant)


def accuracy(
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
    """Share of the pairs of a relevant and another document of the top k in which the relevant one ranks first; a tie counts 1/2.

    0 without a relevant document there, else 1 without another. Nothing to find: all retrieved documents are of one kind.
    Source: ir_measures.

    >>> accuracy([1, 0, 1, 0], k=3)  # one of two pairs
    array([0.5])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    depth = np.minimum(cutoffs(k, ranking.n_retrieved), ranking.n_retrieved)
    values, nothing = [], []
    for query, cut in zip(each_query(ranking), depth.tolist(), strict=True):
        block = np.searchsorted(query.blocks, np.arange(cut), side="right")
        relevant = query.ranked[:cut] >= rel
        mine, other = block[relevant, None], block[None, ~relevant]
        n_pairs = mine.size * other.size
        right = np.sum(mine < other) + 0.5 * np.sum(mine == other)
        values.append(float(right / n_pairs) if n_pairs else float(mine.size > 0))
        found = query.ranked >= rel
        nothing.append(not found.any() or bool(found.all()))
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)

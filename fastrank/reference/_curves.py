"""Metrics of the precision at each relevant document: interpolated, inferred, and as a logit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from fastrank.errors import InputError
from fastrank.reference._layout import FloatArray, each_query, rank_strictly, settle

ROUNDINGS = ("nearest", "up", "trec_eval9")


def interpolated_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    recall: float = 0,
    rounding: str = "nearest",
    rel: float = 1,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Interpolated precision: the greatest precision at any rank where recall has reached ``recall``.

    Of P relevant documents it takes recall * P, rounded to the "nearest" number (trec_eval 10), "up", or as "trec_eval9" does.
    Source: Salton and McGill 1983; trec_eval.

    >>> interpolated_precision([1, 0, 1], recall=1)
    array([0.66666667])
    """
    return average_interpolated_precision(
        labels, scores, offsets, recalls=(recall,), rounding=rounding, rel=rel, ties=ties, doc_ids=doc_ids, no_relevant=no_relevant
    )


def average_interpolated_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    recalls: Sequence[float] = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1),
    rounding: str = "nearest",
    rel: float = 1,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Mean of the interpolated precisions at several levels of recall. Source: trec_eval (11pt_avg).

    >>> average_interpolated_precision([1, 0, 1], recalls=(0.2, 0.5, 0.8)).round(4)
    array([0.8889])
    """
    if rounding not in ROUNDINGS:
        raise InputError(f"rounding must be one of {', '.join(ROUNDINGS)}: got {rounding!r}.")
    values, nothing = [], []
    for query in each_query(rank_strictly(labels, scores, offsets, ties, doc_ids)):
        relevant = query.ranked >= rel
        n_relevant = int(relevant.sum() + (query.missing >= rel).sum())
        hits, ranks = np.cumsum(relevant), np.arange(1, len(relevant) + 1)
        reached = [hits >= _needed(recall, n_relevant, rounding) for recall in recalls]
        values.append(sum((hits[there] / ranks[there]).max(initial=0.0) for there in reached) / len(reached))
        nothing.append(n_relevant == 0)
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)


def _needed(recall: float, n_relevant: int, rounding: str) -> int:
    """The number of relevant documents at which a level of recall is reached."""
    if rounding == "up":
        return math.ceil(Fraction(str(recall)) * n_relevant)
    if rounding == "trec_eval9":
        return int(recall * n_relevant + 0.9)
    down = math.floor(recall * n_relevant)
    return down + (recall * n_relevant - down >= 0.5)


def yaap(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Yet another average precision: ln((1 + S) / (1 + P - S)), S the sum of the precisions at the P relevant documents.

    Source: Robertson, ECIR 2012.

    >>> yaap([1, 0]).round(4)  # ln 2
    array([0.6931])
    """
    values = []
    for query in each_query(rank_strictly(labels, scores, offsets, ties, doc_ids)):
        relevant = query.ranked >= rel
        total = np.sum((np.cumsum(relevant) / np.arange(1, len(relevant) + 1))[relevant])
        values.append(math.log((1 + total) / (1 + relevant.sum() + (query.missing >= rel).sum() - total)))
    return np.array(values, np.float64)


def inferred_average_precision(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Inferred average precision; a label below 0 marks a document of the pool that was not judged.

    The precision at rank r is 1/r + (r - 1)/r * (share of the pool above) * (share of relevant documents among the judged above).
    Source: Yilmaz and Aslam, CIKM 2006, as trec_eval computes it.

    >>> inferred_average_precision([1, float("nan"), 1]).round(4)  # (1 + 1/3 + (2/3) (1/2)) / 2
    array([0.8333])
    """
    epsilon = 0.00001
    values, nothing = [], []
    for query in each_query(rank_strictly(labels, scores, offsets, ties, doc_ids)):
        label = query.ranked
        relevant = label >= rel
        n_relevant = int(relevant.sum() + (query.missing >= rel).sum())
        r = np.arange(1, len(label) + 1)
        above = [np.cumsum(kind) - kind for kind in (relevant, label >= 0, label == label)]
        share = (above[0] + epsilon) / (above[1] + 2 * epsilon)
        expected = 1 / r + (r - 1) / r * (above[2] / np.maximum(r - 1, 1)) * share
        values.append(np.sum(expected[relevant]) / n_relevant if n_relevant else 0.0)
        nothing.append(n_relevant == 0)
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)

"""trec_eval's experimental measures of gains against an ideal list at the same rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrank.reference._gains import Gain, discounts_of, gains_of
from fastrank.reference._graded import expected_gains
from fastrank.reference._layout import FloatArray, each_query, rank, rank_strictly, settle


def g(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    gain: Gain = "linear",
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Normalised gain: sum of gain / log2(2 + cost - gain so far), divided by all gains.

    A rank costs what the ideal list gains there, 1 at least. Source: trec_eval.

    >>> g([1, 0, 2]).round(4)  # (1 / log2(3) + 2 / log2(3)) / 3
    array([0.6309])
    """
    values, nothing = [], []
    for query in each_query(rank_strictly(labels, scores, offsets, ties, doc_ids)):
        gains, ideal = _gains(query.ranked, query.missing, gain)
        cost = np.ones(len(gains))
        m = min(len(gains), len(ideal))
        cost[:m] = np.maximum(ideal[:m], 1.0)
        total = np.sum(gains / np.log2(2.0 + np.cumsum(cost) - np.cumsum(gains)))
        values.append(min(total / ideal.sum(), 1.0) if len(ideal) else 0.0)
        nothing.append(len(ideal) == 0)
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)


def bin_g(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Binary G: the mean over relevant documents of 1 / log2(2 + others above it), 0 for one that was not retrieved.

    Of m others in a block of equal scores 0 ... m stand above a given relevant document, each as likely. Source: trec_eval.

    >>> bin_g([1, 0, 1]).round(4)  # (1 + 1 / log2(3)) / 2
    array([0.8155])
    """
    values, nothing = [], []
    for query in each_query(rank(labels, scores, offsets, ties, doc_ids)):
        relevant = query.ranked >= rel
        total, others = 0.0, 0
        for start, stop in zip(query.blocks[:-1], query.blocks[1:], strict=True):
            m = int(np.sum(~relevant[start:stop]))
            total += np.sum(relevant[start:stop]) * np.mean(1.0 / np.log2(2.0 + others + np.arange(m + 1)))
            others += m
        n_relevant = relevant.sum() + np.sum(query.missing >= rel)
        values.append(total / n_relevant if n_relevant else 0.0)
        nothing.append(n_relevant == 0)
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)


def ndcg_rel(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    gain: Gain = "linear",
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """NDCG at the rank of each document that gains, averaged; of the whole list for one that was not retrieved. Source: trec_eval.

    Within a block of equal scores, the products of "gains here" and "gain there" are averaged over all pairs of its documents.

    >>> ndcg_rel([1, 0, 1]).round(4)  # (1 + 1.5 / (1 + 1 / log2(3))) / 2
    array([0.9599])
    """
    values, nothing = [], []
    for query in each_query(rank(labels, scores, offsets, ties, doc_ids)):
        gains, ideal = _gains(query.ranked, query.missing, gain)
        discount = discounts_of(len(gains) + len(ideal), "log2")
        best = np.cumsum(ideal * discount[: len(ideal)])
        total, dcg = 0.0, 0.0
        for start, stop in zip(query.blocks[:-1], query.blocks[1:], strict=True):
            here, n = gains[start:stop], int(stop - start)
            pairs = np.outer(here > 0, here)
            together = np.full((n, n), (pairs.sum() - np.trace(pairs)) / max(n * (n - 1), 1))
            np.fill_diagonal(together, np.trace(pairs) / n)
            expected = np.mean(here > 0) * dcg + np.tril(together) @ discount[start:stop]
            if np.any(here > 0):
                total += np.sum(expected / best[np.minimum(np.arange(start, stop), len(ideal) - 1)])
            dcg += np.mean(here) * discount[start:stop].sum()
        if len(ideal):
            total += (len(ideal) - np.sum(gains > 0)) * dcg / best[-1]
        values.append(np.clip(total / len(ideal), 0.0, 1.0) if len(ideal) else 0.0)
        nothing.append(len(ideal) == 0)
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)


def r_ndcg(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    gain: Gain = "linear",
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """NDCG averaged over the last rank of each gain of the ideal list, and the list's end where it lies more than a rank beyond.

    Nothing to find: no gain, or no label >= rel. Source: trec_eval.

    >>> r_ndcg([2, 1, 0, 0])
    array([1.])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    smooth = expected_gains(ranking, gains_of(ranking.labels, gain))
    values, nothing = [], []
    for query, start in zip(each_query(ranking), ranking.starts.tolist(), strict=True):
        _, ideal = _gains(query.ranked, query.missing, gain)
        n = len(query.ranked)
        discount = discounts_of(n + len(ideal), "log2")
        dcg = np.cumsum(np.append(0.0, smooth[start : start + n] * discount[:n]))
        best = np.cumsum(np.append(0.0, ideal * discount[: len(ideal)]))
        points = (np.flatnonzero(np.diff(ideal, append=0.0)) + 1).tolist()
        if points and n > points[-1] + 1:
            points.append(n)
        found = [dcg[min(point, n)] / best[min(point, len(ideal))] for point in points]
        values.append(min(np.mean(found), 1.0) if found else 0.0)
        nothing.append(not found or not (np.any(query.ranked >= rel) or np.any(query.missing >= rel)))
    return settle(np.array(values, np.float64), np.array(nothing, np.bool_), no_relevant)


def _gains(ranked: ArrayLike, missing: ArrayLike, gain: Gain) -> tuple[FloatArray, FloatArray]:
    """Gains in rank order, and the positive gains of all documents, largest first."""
    gains, others = gains_of(np.asarray(ranked), gain), gains_of(np.asarray(missing), gain)
    ideal = np.concatenate((gains, others))
    return gains, -np.sort(-ideal[ideal > 0])

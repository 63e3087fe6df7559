"""Metrics of the C/W/L framework: the gain per document of a reader who goes on from rank r with probability C(r).

Gains are labels scaled to 0 ... 1; ranks go to the horizon, where a shorter list has documents that gain nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from fastrank.reference._graded import expected_gains
from fastrank.reference._layout import Cutoff, FloatArray, Ranking, cutoffs, rank, rank_strictly

# Continuation probabilities of ranks 1, 2, ... from the gains there.
Patience = Callable[[FloatArray], FloatArray]


def _rates(
    patience: Patience,
    labels: ArrayLike,
    scores: ArrayLike | None,
    offsets: ArrayLike | None,
    k: Cutoff,
    min_label: float,
    max_label: float,
    horizon: int,
    ties: str,
    doc_ids: ArrayLike | None,
    averages: bool = False,
) -> FloatArray:
    """Sum of W(r) gain(r) of each query, W(r) proportional to C(1) ... C(r - 1), ranks to min(k, horizon)."""
    ranking = (rank if averages else rank_strictly)(labels, scores, offsets, ties, doc_ids)
    gains = expected_gains(ranking, _scaled(ranking, min_label, max_label))
    limits = np.full(len(ranking.sizes), horizon) if k is None else np.minimum(cutoffs(k, ranking.n_retrieved), horizon)
    values = []
    for start, n, limit in zip(ranking.starts.tolist(), ranking.n_retrieved.tolist(), limits.tolist(), strict=True):
        here = np.zeros(limit)
        here[: min(n, limit)] = gains[start : start + min(n, limit)]
        weights = np.cumprod(np.append(1.0, patience(here)[:-1]))
        values.append(weights @ here / weights.sum())
    return np.array(values, np.float64)


def _scaled(ranking: Ranking, min_label: float, max_label: float) -> FloatArray:
    label = np.where(np.isnan(ranking.labels.astype(np.float64)), 0.0, ranking.labels.astype(np.float64))
    return np.clip((label - min_label) / (max_label - min_label), 0.0, 1.0)


def sdcg(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Scaled DCG: discounted gains over those of a list of perfect documents. C(r) = log2(r + 1) / log2(r + 2). Source: cwl_eval.

    >>> sdcg([4, 0, 2], k=3).round(4)  # (1 + 0.5 / 2) / (1 + 1 / log2(3) + 1 / 2)
    array([0.5866])
    """

    def patience(gains: FloatArray) -> FloatArray:
        r = np.arange(1.0, len(gains) + 1.0)
        return np.log2(r + 1) / np.log2(r + 2)

    return _rates(patience, labels, scores, offsets, k, min_label, max_label, horizon, ties, doc_ids, averages=True)


def insq(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    T: float = 1,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """INSQ: C(r) = ((r + 2T - 1) / (r + 2T))^2. Source: Moffat, Scholer and Thomas, ADCS 2012.

    >>> insq([1, 0], max_label=1, horizon=2).round(4)  # 1 / (1 + (2/3)^2)
    array([0.6923])
    """

    def patience(gains: FloatArray) -> FloatArray:
        r = np.arange(1.0, len(gains) + 1.0)
        return ((r + 2 * T - 1) / (r + 2 * T)) ** 2

    return _rates(patience, labels, scores, offsets, None, min_label, max_label, horizon, ties, doc_ids, averages=True)


def inst(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    T: float = 1,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """INST: C(r) = ((r + T + T_r - 1) / (r + T + T_r))^2, T_r = T less the gains up to r. Source: Moffat et al., ADCS 2015.

    >>> inst([1, 0], max_label=1, horizon=2)  # 1 / (1 + (1/2)^2)
    array([0.8])
    """

    def patience(gains: FloatArray) -> FloatArray:
        x = np.arange(1.0, len(gains) + 1.0) + 2 * T - np.cumsum(gains)
        return ((x - 1) / x) ** 2

    return _rates(patience, labels, scores, offsets, None, min_label, max_label, horizon, ties, doc_ids)


def bpm(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    T: float = 1,
    k: Cutoff = None,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Bejeweled player model: C(r) = 1 until the gains reach T. Source: Zhang et al., SIGIR 2017.

    >>> bpm([0, 1, 1], max_label=1, k=3)
    array([0.5])
    """
    return _rates(
        lambda gains: np.where(np.cumsum(gains) < T, 1.0, 0.0), labels, scores, offsets, k, min_label, max_label, horizon, ties, doc_ids
    )


def nerr8(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Nearly ERR, equation 8: C(r) = 1 - gain. Source: Azzopardi, Mackenzie and Moffat, ICTIR 2021.

    >>> nerr8([1, 1], max_label=2, k=2)
    array([0.5])
    """
    return _rates(lambda gains: 1 - gains, labels, scores, offsets, k, min_label, max_label, horizon, ties, doc_ids)


def nerr9(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    k: Cutoff = None,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Nearly ERR, equation 9: C(r) = r / (r + 1) * (1 - gain). Source: as nerr8.

    >>> nerr9([1, 2], max_label=2, k=2)  # (0.5 + 0.25) / 1.25
    array([0.6])
    """

    def patience(gains: FloatArray) -> FloatArray:
        r = np.arange(1.0, len(gains) + 1.0)
        return r / (r + 1) * (1 - gains)

    return _rates(patience, labels, scores, offsets, k, min_label, max_label, horizon, ties, doc_ids)


def nerr10(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    p: float = 0.9,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Nearly ERR, equation 10: C(r) = p * (1 - gain). Source: as nerr8.

    >>> nerr10([1, 2], max_label=2).round(4)  # 0.95 / 1.45
    array([0.6552])
    """
    return _rates(lambda gains: p * (1 - gains), labels, scores, offsets, None, min_label, max_label, horizon, ties, doc_ids)


def nerr11(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    T: float = 1,
    min_label: float = 0,
    max_label: float = 4,
    horizon: int = 1000,
    ties: str = "worst",
    doc_ids: ArrayLike | None = None,
) -> FloatArray:
    """Nearly ERR, equation 11: C(r) = ((r + 2T - 1) / (r + 2T))^2 * (1 - gain). Source: as nerr8.

    >>> nerr11([1, 2], max_label=2).round(4)  # (1/2 + 2/9) / (1 + 2/9)
    array([0.5909])
    """

    def patience(gains: FloatArray) -> FloatArray:
        r = np.arange(1.0, len(gains) + 1.0)
        return ((r + 2 * T - 1) / (r + 2 * T)) ** 2 * (1 - gains)

    return _rates(patience, labels, scores, offsets, None, min_label, max_label, horizon, ties, doc_ids)

"""Exact sums as rows of whole numbers: they add up between processes as any array of int64 does, and lose no bit."""

from __future__ import annotations

import numpy as np

from fastrank.evaluation import Evaluation
from fastrank.metrics.base import Metric
from fastrank.statistics import SCALE, Moments

# A sum of doubles is a whole multiple of 2^-1074 below 2^1088 or so. Limbs of 32 bits in 64 can be added two thousand million times.
_LIMB = 32
_LIMBS = 68
# n, NaN values, and NaN values left out; then the sum.
WIDTH = 3 + _LIMBS
_AGGREGATES = {"sum": "total", "gmean": "geometric_mean"}


def totals_of(evaluation: Evaluation) -> np.ndarray:
    """int64[n_metrics, WIDTH]: counts and exact sum of each metric; of logarithms where its aggregate is a geometric mean."""
    rows = np.zeros((len(evaluation.metrics), WIDTH), np.int64)
    for row, metric, sums in zip(rows, evaluation.metrics, evaluation.moments, strict=True):
        total = (sums.sum_w_log or 0) if metric.aggregation == "gmean" else sums.sum_wx
        whole = abs(total) >> SCALE
        limbs = np.frombuffer(whole.to_bytes(_LIMBS * _LIMB // 8, "little"), "<u4").astype(np.int64)
        row[:3] = sums.n, sums.n_nan, sums.n_skipped
        row[3:] = -limbs if total < 0 else limbs
    return rows


def aggregates(metrics: tuple[Metric, ...], totals: np.ndarray) -> list[float]:
    """Each metric's own aggregate (the mean, for counts the sum) from added totals, correctly rounded."""
    values = []
    for metric, (n, n_nan, n_skipped, *limbs) in zip(metrics, totals.tolist(), strict=True):
        total = sum(limb << (_LIMB * place) for place, limb in enumerate(limbs)) << SCALE
        sums = Moments(n, n_nan, n_skipped, sum_w=n << SCALE, sum_wx=total, sum_w_log=total)
        values.append(getattr(sums, _AGGREGATES.get(metric.aggregation, "mean")))
    return values

"""LambdaRank by its definition: exchange two documents, compute the metric again, and take the difference."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fastrank.reference._gains import Discount, Gain, discounts_of, gains_of
from fastrank.reference._layout import FloatArray

Metric = Callable[[list[float]], float]


def lambda_gradients(
    labels: ArrayLike,
    scores: ArrayLike,
    offsets: ArrayLike,
    *,
    metric: str = "ndcg",
    gain: Gain = "exp2",
    discount: Discount = "log2",
    k: int | None = None,
    ideal_k: int | None = None,
    rel: float = 1.0,
    max_label: float = 4.0,
    sigma: float = 1.0,
    score_norm: bool = False,
    group_norm: str = "none",
    hess_scale: float = 1.0,
    pairs: Iterable[tuple[int, int]] | None = None,
    propensities: tuple[ArrayLike, ArrayLike] | None = None,
    positions: ArrayLike | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gradients, second derivatives and the loss of each query; as `fastrank.training.lambda_gradients`.

    pairs: rows that meet, possibly twice; None for all pairs of a query of which one stands among the first k. positions from 1.
    """
    y, s, bounds = np.asarray(labels, np.float64), np.asarray(scores, np.float64), np.asarray(offsets)
    grad, hess, loss = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(bounds) - 1)
    given = None if pairs is None else list(pairs)
    for q, (start, stop) in enumerate(itertools.pairwise(bounds.tolist())):
        if start == stop:
            continue
        order = sorted(range(start, stop), key=lambda d: -s[d])
        rank = {d: r for r, d in enumerate(order)}
        value, worth = _metric(
            metric, [float(y[d]) for d in range(start, stop)], gain, discount, k if ideal_k is None else ideal_k, rel, max_label
        )
        best, worst = s[order[0]], s[order[-1]]
        total = 0.0
        met = itertools.combinations(range(start, stop), 2) if given is None else (p for p in given if start <= p[0] < stop)
        for one, other in met:
            i, j = (one, other) if worth(y[one]) > worth(y[other]) else (other, one)
            if worth(y[i]) == worth(y[j]) or (given is None and k is not None and min(rank[i], rank[j]) >= k):
                continue
            swapped = list(order)
            swapped[rank[i]], swapped[rank[j]] = j, i
            weight = 1.0 if metric == "pairwise" else abs(value([float(y[d]) for d in swapped]) - value([float(y[d]) for d in order]))
            apart = s[i] - s[j]
            if score_norm and best != worst:
                weight /= 0.01 + abs(apart)
            if propensities is not None:
                shown = [int(np.asarray(positions)[d]) - 1 if positions is not None else d - start for d in (i, j)]
                weight /= np.asarray(propensities[0])[shown[0]] * np.asarray(propensities[1])[shown[1]]
            rho = 1.0 / (1.0 + math.exp(sigma * apart))
            grad[i] -= sigma * rho * weight
            grad[j] += sigma * rho * weight
            for d in (i, j):
                hess[d] += sigma * sigma * rho * (1.0 - rho) * weight * hess_scale
            total += 2.0 * sigma * rho * weight
            loss[q] += weight * math.log1p(math.exp(-sigma * apart))
        if group_norm == "log2" and total > 0:
            grad[start:stop] *= math.log2(1.0 + total) / total
            hess[start:stop] *= math.log2(1.0 + total) / total
    return grad, hess, loss


def _metric(
    name: str, labels: list[float], gain: Gain, discount: Discount, ideal_k: int | None, rel: float, max_label: float
) -> tuple[Metric, Callable[[Any], float]]:
    """The metric of labels in rank order, and what it makes of one label."""

    def gain_of(label: float) -> float:
        return float(gains_of(np.array([label]), gain)[0])

    def dcg(ranked: Iterable[float], cutoff: int | None = None) -> float:
        terms = zip([gain_of(label) for label in ranked][:cutoff], discounts_of(len(labels), discount), strict=False)
        return sum(gained * discounted for gained, discounted in terms)

    def relevant(label: float) -> float:
        return float(label >= rel)

    def stop(label: float) -> float:
        return (2.0**label - 1.0) / 2.0**max_label

    def average_precision(ranked: list[float]) -> float:
        found = [relevant(label) for label in ranked]
        return sum(here * sum(found[: r + 1]) / (r + 1) for r, here in enumerate(found)) / max(sum(found), 1.0)

    def reciprocal_rank(ranked: list[float]) -> float:
        return next((1.0 / (r + 1) for r, label in enumerate(ranked) if relevant(label)), 0.0)

    def expected_reciprocal_rank(ranked: list[float]) -> float:
        return sum(stop(label) / (r + 1) * math.prod(1.0 - stop(above) for above in ranked[:r]) for r, label in enumerate(ranked))

    if name == "ndcg":
        ideal = dcg(sorted(labels, key=gain_of, reverse=True), ideal_k) or 1.0
        return lambda ranked: dcg(ranked) / ideal, gain_of
    if name in ("map", "mrr"):
        return average_precision if name == "map" else reciprocal_rank, relevant
    return expected_reciprocal_rank, stop

"""Tests of several systems at once: randomised Tukey HSD, and two-way analysis of variance with Tukey's HSD.

Both take the number of systems into account, so that no further correction over the pairs is due.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank.comparison.paired import LEAST_P, Chance, pairs_of, permutation
from fastrank.comparison.resampling import SHUFFLES, key_of, shuffled_ranges
from fastrank.comparison.studentised_range import range_tail
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.comparison.units import Units


def randomised_tukey(units: Units, pairs: list[tuple[int, int]], chance: Chance) -> np.ndarray:
    """Randomised Tukey HSD: shuffle the systems' names on each query, and count how often best and worst are as far apart as the pair.

    (count + 1) / (n_resamples + 1). Of two systems it is the sign-flip test, exact where few queries differ.
    Source: Carterette, TOIS 2012; Sakai, Laboratory Experiments in Information Retrieval, 2018, section 4.4.
    """
    differences = pairs_of(units, pairs)
    if len(units.sums) == 2:
        return permutation(differences, chance)
    rows = np.ascontiguousarray(units.sums.T)
    ranges = np.sort(shuffled_ranges(rows, chance.n_resamples, key_of(chance.root, SHUFFLES), chance.threads))
    seen = np.abs(differences.rows.sum(axis=1)) - differences.slack - 1e-12 * np.abs(rows).max(initial=0.0)
    count = chance.n_resamples - np.searchsorted(ranges, seen, side="left")
    return (count + 1) / (chance.n_resamples + 1)


@dataclass(frozen=True)
class Variation:
    """One source of variation: sum of squares, degrees of freedom, mean square, and F with its p (NaN for the residual)."""

    source: str
    sum_of_squares: float
    degrees: int
    mean_square: float
    f: float
    p: float


@dataclass(frozen=True)
class Anova:
    """Two-way analysis of variance without replication: systems, queries and the residual.

    `margin` is half the width of the interval of each system's mean, t · sqrt(residual mean square / n_queries).
    """

    systems: Variation
    queries: Variation
    residual: Variation
    margin: float


def anova_of(values: np.ndarray, confidence: float) -> Anova:
    """The analysis of values, float64[n_systems, n_queries], two of each at least.

    x_ij = mean + system_i + query_j + residual_ij. Source: Sakai, Laboratory Experiments in Information Retrieval, 2018, section 3.2.
    """
    from scipy.special import stdtrit

    k, n = values.shape
    mean, system, query = values.mean(), values.mean(axis=1), values.mean(axis=0)
    residuals = values - system[:, None] - query[None, :] + mean
    residuals[np.abs(residuals) <= 1e-15 * np.abs(values).max(initial=0.0)] = 0.0
    residual_degrees = (k - 1) * (n - 1)
    squares = float((residuals * residuals).sum())
    square = squares / residual_degrees

    def factor(name: str, effects: np.ndarray, times: int) -> Variation:
        total, degrees = times * float(((effects - mean) ** 2).sum()), len(effects) - 1
        f = total / degrees / square if square else (math.inf if total > 1e-30 else math.nan)
        return Variation(name, total, degrees, total / degrees, f, _f_tail(degrees, residual_degrees, f))

    residual = Variation("residual", squares, residual_degrees, square, math.nan, math.nan)
    margin = float(stdtrit(residual_degrees, (1 + confidence) / 2)) * math.sqrt(square / n)
    return Anova(factor("systems", system, n), factor("queries", query, k), residual, margin)


def _f_tail(degrees: int, residual_degrees: int, f: float) -> float:
    from scipy.special import fdtrc

    return 1.0 if math.isnan(f) else max(float(fdtrc(degrees, residual_degrees, f)), LEAST_P)


def anova_tukey(units: Units, pairs: list[tuple[int, int]], chance: Chance) -> np.ndarray:
    """Tukey's HSD on the two-way analysis of variance: p of the studentised range sqrt(n / residual mean square) · |difference|.

    Where nothing is left as residual there is no such ratio, and the randomised test decides.
    Source: Sakai, Laboratory Experiments in Information Retrieval, 2018, section 4.3; Tukey 1953.
    """
    if units.n_units != units.n_queries or not units.even:
        raise InputError("anova knows neither weights nor clusters: use test='tukey' (randomised) or 'permutation'.")
    k, n = units.sums.shape
    square = anova_of(units.sums, 0.95).residual.mean_square if n > 1 else 0.0
    if not square:
        return randomised_tukey(units, pairs, chance)
    q = np.abs(pairs_of(units, pairs).rows.sum(axis=1)) / math.sqrt(n * square)
    return np.clip(range_tail(q, k, (k - 1) * (n - 1)), LEAST_P, 1.0)

"""Tests of two systems on the same queries: sign flips, Student's t, Wilcoxon's signed ranks, the bootstrap.

All are two-sided, never 0, never NaN, and 1 where the systems agree on every query. A column holds the differences of one pair and
metric, summed per unit (a query or a cluster); columns tested together see the same random words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank.comparison.resampling import BOOTSTRAP, FLIPS, flipped_share, key_of, resampled_sums
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.comparison.units import Units

LEAST_P = math.ulp(0.0)
# The exact distribution of the signed ranks takes n * n * (n + 1) steps.
_MOST_RANKED_EXACTLY = 50


@dataclass(frozen=True)
class Chance:
    """Where the random words of a test come from, and how many resamples it takes."""

    root: int
    n_resamples: int
    threads: int | None


@dataclass(frozen=True)
class Pairs:
    """The differences of some pairs, float64[n_pairs, n_units], and what goes with them.

    `slack` is by how much the sum of a row may be off through rounding of the values it was taken from; `size` the weight of each unit.
    """

    rows: np.ndarray
    slack: np.ndarray
    size: np.ndarray
    single: bool

    @property
    def residuals(self) -> np.ndarray:
        """The rows less their mean times the size of the unit."""
        means = self.rows.sum(axis=1) / self.size.sum()
        residuals = self.rows - means[:, None] * self.size
        # What is left of equal differences is rounding.
        residuals[np.abs(residuals).max(axis=1, initial=0.0) <= self.slack] = 0.0
        return residuals


def pairs_of(units: Units, pairs: list[tuple[int, int]]) -> Pairs:
    """The differences of pairs (baseline, system) of columns. Differences that are rounding alone become 0."""
    one, other = (units.sums[[pair[side] for pair in pairs]] for side in (0, 1))
    rows = other - one
    rows[np.abs(rows) <= 2.0**-50 * np.maximum(np.abs(one), np.abs(other))] = 0.0
    # A value is a rounded quotient of rounded sums, off by a few units of its last place; such errors add up as the root of their number.
    slack = 2.0**-49 * math.sqrt(max(1, units.n_units)) * np.abs(units.sums).max(initial=0.0)
    single = units.n_units == units.n_queries and units.even
    return Pairs(rows, np.full(len(rows), slack), units.size, single)


def permutation(pairs: Pairs, chance: Chance) -> np.ndarray:
    """Sign flips of the differences: how often the mean is as far from 0 when each sign is a coin's.

    All 2^m sign patterns where at most 16 differences are not 0, else (count + 1) / (n_resamples + 1) of random ones.
    Source: Fisher, The Design of Experiments, 1935; Smucker, Allan and Carterette, CIKM 2007; the + 1: Phipson and Smyth, SAGMB 2010.
    """
    return flipped_share(pairs.rows, pairs.slack, chance.n_resamples, key_of(chance.root, FLIPS), chance.threads)


def student(pairs: Pairs, chance: Chance) -> np.ndarray:
    """Student's paired t, n - 1 degrees of freedom, in its form for weighted means and clusters.

    Where the differences have no spread there is no t, and sign flips decide.
    Source: Student, Biometrika 1908; Cochran, Sampling Techniques, 1977, section 2.11.
    """
    from scipy.special import stdtr

    n = pairs.rows.shape[1]
    t, spread = _t_values(pairs)
    p = np.ones(len(t))
    if n > 1:
        p[spread] = 2 * stdtr(n - 1, -np.abs(t[spread]))
    return _without_spread(pairs, chance, p, spread)


def wilcoxon(pairs: Pairs, _chance: Chance) -> np.ndarray:
    """Wilcoxon's signed ranks, zeros left out: exact up to 50 differences (ties or not), else normal with the correction for ties.

    Source: Wilcoxon, Biometrics Bulletin 1945; Pratt and Gibbons, Concepts of Nonparametric Theory, 1981.
    """
    if not pairs.single:
        raise InputError("wilcoxon ranks single queries and knows neither weights nor clusters: use test='permutation' or 't'.")
    return np.array([_signed_ranks(row) for row in pairs.rows])


def bootstrap(pairs: Pairs, chance: Chance) -> np.ndarray:
    """The studentised bootstrap: how often t of resampled differences, centred at 0, is as far from 0 as t of those seen.

    (count + 1) / (n_resamples + 1). A resample without spread counts as far. Where the differences have no spread sign flips decide.
    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 16.4; Sakai, SIGIR 2006.
    """
    n = pairs.rows.shape[1]
    t, spread = _t_values(pairs)
    p, e, b, even = np.ones(len(t)), pairs.residuals, pairs.size, bool((pairs.size == 1.0).all())
    for c in np.flatnonzero(spread):
        columns = [e[c], e[c] * e[c]] if even else [e[c], e[c] * e[c], b, e[c] * b, b * b]
        sums = resampled_sums(np.array(columns), chance.n_resamples, key_of(chance.root, BOOTSTRAP), chance.threads).T
        size = float(n) if even else sums[2]
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = sums[0] / size
            variance = sums[1] - (shift * sums[0] if even else 2 * shift * sums[3] - shift * shift * sums[4])
            variance[variance < 1e-13 * sums[1]] = 0.0
            resampled = np.abs(shift) * size / np.sqrt(n / (n - 1) * variance)
        # Not "as near as": a resample without spread (0 / 0) or without weight counts as far.
        p[c] = (np.count_nonzero(~(resampled < abs(t[c]))) + 1) / (chance.n_resamples + 1)
    return _without_spread(pairs, chance, p, spread)


def _t_values(pairs: Pairs) -> tuple[np.ndarray, np.ndarray]:
    """t of each row, and whether it has one."""
    n = pairs.rows.shape[1]
    error = standard_errors(pairs)
    spread = error > 0
    t = np.zeros(len(error))
    if n > 1:
        t[spread] = pairs.rows.sum(axis=1)[spread] / pairs.size.sum() / error[spread]
    return t, spread


def standard_errors(pairs: Pairs) -> np.ndarray:
    """The standard error of each mean difference; 0 without spread or with one unit."""
    n = pairs.rows.shape[1]
    if n < 2:
        return np.zeros(len(pairs.rows))
    residuals = pairs.residuals
    return np.sqrt(n / (n - 1) * np.einsum("pu,pu->p", residuals, residuals)) / pairs.size.sum()


def _without_spread(pairs: Pairs, chance: Chance, p: np.ndarray, spread: np.ndarray) -> np.ndarray:
    shifted = ~spread & pairs.rows.any(axis=1)
    if shifted.any():
        rest = Pairs(pairs.rows[shifted], pairs.slack[shifted], pairs.size, pairs.single)
        p[shifted] = permutation(rest, chance)
    return np.clip(p, LEAST_P, 1.0)


def _signed_ranks(row: np.ndarray) -> float:
    from scipy.special import ndtr

    d = row[row != 0]
    n = len(d)
    if not n:
        return 1.0
    # Sizes that differ by rounding alone are equal.
    sizes = np.round(np.abs(d) / np.abs(d).max(), 12)
    _, place, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    # Twice the mean rank of each group of equal sizes: a whole number.
    doubled = (2 * np.cumsum(counts) - counts + 1)[place]
    positive = int(doubled[d > 0].sum())
    if n <= _MOST_RANKED_EXACTLY:
        return _exact_ranks(doubled, positive)
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((counts.astype(np.float64) ** 3 - counts).sum()) / 48
    z = (positive / 2 - n * (n + 1) / 4) / math.sqrt(variance)
    return max(float(2 * ndtr(-abs(z))), LEAST_P)


def _exact_ranks(doubled: np.ndarray, positive: int) -> float:
    """The chance of a sum of positive ranks as far from its middle as the one seen, over all signs."""
    total = int(doubled.sum())
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for rank in doubled.tolist():
        chance[rank:] = 0.5 * chance[rank:] + 0.5 * chance[: total + 1 - rank]
        chance[:rank] *= 0.5
    far = np.abs(2 * np.arange(total + 1) - total) >= abs(2 * positive - total)
    return min(1.0, float(chance[far].sum()))

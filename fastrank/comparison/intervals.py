"""Intervals of means, and of differences and ratios of means: Student's t, and the bootstrap (percentile, BCa, studentised).

Everything is a ratio of two sums over the units that are drawn (queries, or clusters of them). For an estimate t = Σ a / Σ b let
e = a - t b, so that Σ e = 0. A resample has the estimate t + Σ* e / Σ* b, and the standard error is sqrt(n / (n - 1) · Σ e²) / Σ b.

    mean         a = w x         b = w
    difference   a = w (x - y)   b = w
    ratio        a = w x         b = w y

Sources: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12 to 14; Cochran, Sampling Techniques, 3rd ed. 1977,
section 2.11 (ratios); Cameron, Gelbach and Miller, REStat 2008 (clusters are drawn whole).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrank.arrays import as_array
from fastrank.comparison.resampling import BOOTSTRAP, check_resamples, key_of, resampled_sums, root_of
from fastrank.comparison.units import Units, alike, cluster_codes, codes_of, part, units_of, values_of
from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.evaluation import Estimate, Evaluation, Note, Summary

# Closer to 0 or 1 the middle or the tails vanish in the rounding of (1 + confidence) / 2, and quantiles with them.
LEAST_SHARE = 1e-12
METHODS = ("t", "percentile", "bca", "studentised")
KINDS = ("mean", "difference", "ratio")


@dataclass(frozen=True)
class Interval:
    """An estimate and where it may lie: a confidence interval.

    `standard_error` is that of the estimate by the formula of sums, whatever the method; `n_units` counts what was drawn (queries or
    clusters). `low` and `high` are NaN where there is no telling: fewer than two units, or no spread to resample.

    >>> interval = Interval(0.25, 0.2, 0.3, 0.02, 100, "t", 0.95)
    >>> interval
    0.25 [0.2, 0.3] (95% interval, t)
    """

    estimate: float
    low: float
    high: float
    standard_error: float
    n_units: int
    method: str
    confidence: float

    def __repr__(self) -> str:
        return f"{self.estimate:.5g} [{self.low:.5g}, {self.high:.5g}] ({100 * self.confidence:g}% interval, {self.method})"


class Quantity(NamedTuple):
    """A mean (of column i), or the difference or ratio of two (column i to column j)."""

    kind: str
    i: int
    j: int = -1

    def top(self, residuals: np.ndarray, ratio: float) -> np.ndarray:
        """Σ e, or e of each unit, from the same of the columns' means."""
        if self.kind == "mean":
            return residuals[self.i]
        return residuals[self.i] - (1.0 if self.kind == "difference" else ratio) * residuals[self.j]

    def bottom(self, residuals: np.ndarray, size: np.ndarray, means: np.ndarray) -> np.ndarray:
        """Σ b, or b of each unit."""
        return residuals[self.j] + means[self.j] * size if self.kind == "ratio" else size

    def estimate(self, means: np.ndarray) -> float:
        """The value itself; NaN for a ratio to 0."""
        if self.kind == "mean":
            return float(means[self.i])
        if self.kind == "difference":
            return float(means[self.i] - means[self.j])
        return float(means[self.i] / means[self.j]) if means[self.j] else math.nan


@dataclass(frozen=True)
class Plan:
    """How intervals are made."""

    method: str
    confidence: float
    n_resamples: int
    key: np.uint64
    threads: int | None


def make_plan(method: str, confidence: float, n_resamples: int, root: int, threads: int | None) -> Plan:
    """A checked plan."""
    one_of("interval", method, METHODS)
    return Plan(method, check_confidence(confidence), check_resamples(n_resamples), key_of(root, BOOTSTRAP), threads)


def check_confidence(confidence: Any) -> float:
    """A legal confidence."""
    if isinstance(confidence, bool) or not isinstance(confidence, int | float | np.number) or not 0 < confidence < 1:
        raise InputError(f"confidence must lie strictly between 0 and 1, such as 0.95, not {confidence!r}.")
    return min(max(float(confidence), LEAST_SHARE), 1 - LEAST_SHARE)


def intervals(units: Units, quantities: Sequence[Quantity], plan: Plan) -> list[Interval]:
    """The interval of each quantity; all see the same resamples."""
    means, n = units.means, units.n_units
    residuals = units.sums - means[:, None] * units.size
    # What is left of equal values, or of equal differences, is rounding and no spread.
    rounding = 1e-14 * float(np.abs(units.sums).max(initial=0.0))
    parts = [_Part(quantity, residuals, units.size, means, rounding) for quantity in quantities]
    if plan.method == "t" or n < 2:
        return [each.student(plan, n) for each in parts]
    columns = [residuals] if units.even else [units.size[None], residuals]
    further = [each.squares(units.even) for each in parts] if plan.method == "studentised" else []
    sums = resampled_sums(np.concatenate([*columns, *further]), plan.n_resamples, plan.key, plan.threads).T
    size = np.full(plan.n_resamples, float(n)) if units.even else sums[0]
    at = len(sums) - sum(map(len, further))
    found = []
    for i, each in enumerate(parts):
        own = sums[at : at + len(further[i])] if further else sums[:0]
        at += len(own)
        found.append(each.resampled(plan, n, sums[0 if units.even else 1 :], size, own))
    return found


class _Part:
    """One quantity: its estimate, e and b of each unit, and its interval from sums of resamples."""

    def __init__(self, quantity: Quantity, residuals: np.ndarray, size: np.ndarray, means: np.ndarray, rounding: float) -> None:
        self.quantity, self.means = quantity, means
        self.estimate = quantity.estimate(means)
        self.e = quantity.top(residuals, self.estimate)
        if math.isnan(self.estimate) or np.abs(self.e).max(initial=0.0) <= rounding:
            self.e = np.zeros_like(self.e)
        self.b = quantity.bottom(residuals, size, means)

    def standard_error(self) -> float:
        n = len(self.e)
        if n < 2 or math.isnan(self.estimate):
            return math.nan
        return math.sqrt(n / (n - 1) * float(self.e @ self.e)) / abs(float(self.b.sum()))

    def student(self, plan: Plan, n: int) -> Interval:
        error = self.standard_error()
        half = t_quantile(n - 1, (1 + plan.confidence) / 2) * error if n > 1 else math.nan
        return Interval(self.estimate, self.estimate - half, self.estimate + half, error, n, plan.method, plan.confidence)

    def squares(self, even: bool) -> np.ndarray:
        """The columns whose resampled sums give the standard error of a resample."""
        if even and self.quantity.kind != "ratio":
            return (self.e * self.e)[None]
        return np.array([self.e * self.e, self.e * self.b, self.b * self.b])

    def resampled(self, plan: Plan, n: int, sums: np.ndarray, size: np.ndarray, squares: np.ndarray) -> Interval:
        error = self.standard_error()
        if error == 0:
            return Interval(self.estimate, self.estimate, self.estimate, error, n, plan.method, plan.confidence)
        with np.errstate(divide="ignore", invalid="ignore"):
            top, bottom = self.quantity.top(sums, self.estimate), self.quantity.bottom(sums, size, self.means)
            # A resample may hold nothing but units of weight 0, or nothing but zeros below a ratio. What is left of that is rounding, and
            # the estimate infinite or, where nothing stands above either, none.
            bottom = np.where(np.abs(bottom) <= 1e-12 * abs(float(self.b.sum())), 0.0, bottom)
            top = np.where(np.abs(top) <= 1e-12 * float(np.abs(self.e).sum()), 0.0, top)
            shift = top / bottom
            known = ~np.isnan(shift)
            shift, top, bottom, squares = shift[known], top[known], bottom[known], squares[:, known]
            low = high = math.nan
            if plan.method == "studentised" and len(shift):
                low, high = self._studentised(plan, n, shift, top, bottom, squares, error)
            elif plan.method == "bca" and len(shift):
                low, high = self._bca(plan, shift)
            elif len(shift):
                low, high = _quantiles(shift, np.array([(1 - plan.confidence) / 2, (1 + plan.confidence) / 2]))
        return Interval(self.estimate, self.estimate + low, self.estimate + high, error, n, plan.method, plan.confidence)

    def _studentised(self, plan: Plan, n: int, shift: Any, top: Any, bottom: Any, squares: Any, error: float) -> tuple[float, float]:
        """The shift of each resample in standard errors of its own. A resample without spread is infinitely many away."""
        if len(squares) == 1:
            variance = squares[0] - top * top / n
        else:
            variance = squares[0] - 2 * shift * squares[1] + shift * shift * squares[2]
        # Sums of whole numbers cancel to 0 or to the rounding of the columns.
        variance[variance < 1e-13 * squares[0]] = 0.0
        t = shift / (np.sqrt(n / (n - 1) * variance) / np.abs(bottom))
        t = np.where(shift == 0, 0.0, np.where(np.isinf(shift), shift, t))
        high, low = _quantiles(t, np.array([(1 - plan.confidence) / 2, (1 + plan.confidence) / 2]))
        return -low * error, -high * error

    def _bca(self, plan: Plan, shift: np.ndarray) -> tuple[float, float]:
        """Percentiles moved by the bias (the share of resamples below the estimate) and the skew (of the estimates without one unit)."""
        from scipy.special import ndtr, ndtri

        below = (np.count_nonzero(shift < 0) + np.count_nonzero(shift <= 0)) / (2 * len(shift))
        bias = ndtri(np.clip(below, 0.5 / len(shift), 1 - 0.5 / len(shift)))
        without = -self.e / (self.b.sum() - self.b)
        away = without.mean() - without
        squares = float(away @ away)
        skew = float((away**3).sum()) / (6 * squares**1.5) if 0 < squares < math.inf else 0.0
        z = bias + ndtri(np.array([(1 - plan.confidence) / 2, (1 + plan.confidence) / 2]))
        return _quantiles(shift, ndtr(bias + z / (1 - skew * z)))


def _quantiles(values: np.ndarray, shares: np.ndarray) -> tuple[float, float]:
    """Two quantiles; by rank where infinities leave nothing to interpolate."""
    method: Any = "linear" if np.isfinite(values).all() else "closest_observation"
    low, high = np.quantile(values, shares, method=method)
    return float(low), float(high)


def t_quantile(degrees: int, share: float) -> float:
    """Student's t: the value that a share of the distribution lies below."""
    from scipy.special import stdtrit  # scipy.stats would give the same and takes a second to import

    return float(stdtrit(degrees, share))


# --- for users ------------------------------------------------------------------------------------------------------------------


def confidence_interval(
    values: Any,
    baseline: Any = None,
    *,
    of: str | None = None,
    method: str = "bca",
    confidence: float = 0.95,
    weights: Any = None,
    clusters: Any = None,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    threads: int | None = None,
) -> Interval:
    """The interval of a mean over queries, or of the difference or ratio of the means of two systems on the same queries.

    Parameters
    ----------
    values, baseline
        float64[n_queries], the metric of each query; of a second system on the same queries in the same order.
    of
        "mean" (Σ w x / Σ w), "difference" (of the means of values and baseline) or "ratio" (values to baseline). Default: "difference"
        where there is a baseline, else "mean".
    method
        "t" (Student, n - 1 degrees of freedom), or the bootstrap over queries: "percentile", "bca" (bias-corrected and accelerated) or
        "studentised" (bootstrap-t).
    weights, clusters
        One weight a query, 0 or above; one label a query for those that belong together (a user, a session): clusters are drawn whole.
    n_resamples, seed
        Resamples of the bootstrap; a whole number or a numpy.random.Generator. The same seed gives the same bits for every `threads`.

    Returns
    -------
    Interval
        estimate, low, high, standard_error.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 12 to 14.

    Examples
    --------
    >>> import fastrank as fr
    >>> fr.confidence_interval([1.0, 0.5, 0.25, 1.0, 0.0], method="t")
    0.55 [-0.005289, 1.1053] (95% interval, t)
    >>> new, old = [0.9, 0.4, 0.7, 0.6], [0.8, 0.2, 0.7, 0.5]
    >>> round(fr.confidence_interval(new, old, method="percentile").estimate, 3)
    0.1
    """
    kind = ("mean" if baseline is None else "difference") if of is None else one_of("of", of, KINDS)
    if (baseline is None) != (kind == "mean"):
        cure = "takes no baseline: leave it out." if kind == "mean" else "compares two systems: give baseline=."
        raise InputError(f"of={kind!r} {cure}")
    plan = make_plan(method, confidence, n_resamples, root_of(seed), threads)
    columns = [_column("values", values)] + ([] if baseline is None else [_column("baseline", baseline)])
    w = None if weights is None else _column("weights", weights)
    groups = None if clusters is None else _cluster_column(clusters)
    for name, array in (("baseline", columns[-1]), ("weights", w), ("clusters", groups)):
        if array is not None and len(array) != len(columns[0]):
            raise InputError(f"{name} must have one entry per query, as values has {len(columns[0])}, not {len(array)}.")
    if not len(columns[0]):
        raise InputError("values hold no query, so they have no mean.")
    if w is not None and w.min() < 0:
        raise InputError(f"weights must not be negative: weights[{w.argmin()}] = {w.min():g}.")
    return intervals(units_of(np.array(columns), w, groups), [Quantity(kind, 0, 1)], plan)[0]


def _column(name: str, values: Any) -> np.ndarray:
    array, missing = as_array(name, values)
    numbers = np.array(array, dtype=np.float64)
    if numbers.ndim != 1:
        raise InputError(f"{name} must have one dimension, not {numbers.ndim}: one number per query.")
    bad = ~np.isfinite(numbers) if missing is None else ~np.isfinite(numbers) | missing
    if bad.any():
        raise InputError(f"{name} must be finite numbers, but {name}[{bad.argmax()}] is none. Leave such queries out.")
    return numbers


def _cluster_column(clusters: Any) -> np.ndarray:
    from fastrank.batch import id_array

    return codes_of(id_array("clusters", clusters))


def summary_with(
    evaluation: Evaluation,
    *,
    confidence: float,
    method: str,
    cluster: str | None,
    n_resamples: int,
    seed: int | np.random.Generator,
    threads: int | None,
) -> Summary:
    """The summary of an evaluation with the intervals of another method."""
    plan = make_plan(method, confidence, n_resamples, root_of(seed), threads)
    values = values_of(evaluation).T
    codes = cluster_codes(evaluation.by, cluster)
    summary = evaluation.summary(plan.confidence)

    def replaced(rows: Sequence[Any], chosen: np.ndarray | None = None) -> tuple[Any, ...]:
        where = slice(None) if chosen is None else chosen
        found = _mean_intervals(values[:, where], part(evaluation.weights, where), part(codes, where), plan)
        return tuple(_with_interval(row, interval) for row, interval in zip(rows, found, strict=True))

    slices: dict[str, dict[Any, Any]] = {}
    for column, by_value in summary.slices.items():
        numbers = codes_of(evaluation.by[column])
        listed = evaluation.by[column].to_pylist()
        slices[column] = {
            value: dataclasses.replace(each, rows=replaced(each.rows, numbers == numbers[_place(listed, value)]))
            for value, each in by_value.items()
        }
    return dataclasses.replace(summary, rows=replaced(summary.rows), slices=slices, method=method)


def summary_of_replicates(evaluation: Evaluation, confidence: float, cluster: str | None) -> Summary:
    """The summary of an evaluation with percentiles of the Poisson resamples that came with it."""
    confidence = check_confidence(confidence)
    if evaluation.replicates is None:
        raise InputError('method="poisson" reads resamples, and none were kept: evaluate with n_resamples=1000.')
    if cluster is not None:
        raise InputError('method="poisson" draws single queries: leave out cluster=, or use method="bca".')
    plain = evaluation.summary(confidence)
    rows = []
    for row, means in zip(plain.rows, evaluation.replicates.T, strict=True):
        known = means[~np.isnan(means)]
        if len(known) and not math.isnan(row.mean):
            low, high = _quantiles(known, np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
            row = dataclasses.replace(row, low=low, high=high, standard_error=float(np.std(known, ddof=1)))
        rows.append(row)
    notes = plain.notes
    if plain.slices:
        notes += (Note("slice_intervals", len(plain.slices), "the intervals of slices are Student's t."),)
    return dataclasses.replace(plain, rows=tuple(rows), notes=notes, method="poisson")


def _place(values: list[Any], value: Any) -> int:
    return next(i for i, each in enumerate(values) if each == value or (each != each and value != value))


def _mean_intervals(values: np.ndarray, weights: np.ndarray | None, codes: np.ndarray | None, plan: Plan) -> list[Interval | None]:
    """The interval of each column's mean over the queries that have a value; None without any."""
    found: list[Interval | None] = [None] * len(values)
    for columns, mask in alike([~np.isnan(column) for column in values]):
        if not mask.any():
            continue
        units = units_of(values[columns][:, mask], part(weights, mask), part(codes, mask))
        for column, interval in zip(columns, intervals(units, [Quantity("mean", i) for i in range(len(columns))], plan), strict=True):
            found[column] = interval
    return found


def _with_interval(row: Estimate, interval: Interval | None) -> Estimate:
    # A NaN that counts makes the mean NaN, and no interval can be had of it.
    if interval is None or math.isnan(row.mean):
        return row
    return dataclasses.replace(row, low=interval.low, high=interval.high, standard_error=interval.standard_error)

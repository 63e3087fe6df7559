"""Limits of NDCG as the number of documents grows, in closed form, and how far a finite list is from them.

Documents are independent draws; y(s) is the chance that the document which a ranker puts at quantile s (1 the top) is relevant, p their
mean. With a discount that falls as r^-b (b = 0 for the logarithm) and a cutoff at the share c of the list (1 for none), NDCG tends to

    (1 - b) × integral from 0 to c of y(1 - x) x^-b dx / min(c, p)^(1 - b)     for 0 <= b < 1

with the cutoff, or without it for b > 0; to 1 for the logarithm without a cutoff; to y(1) for 1/r; and to nothing where the discounts
have a finite sum. Source: Wang, Wang, Li, He, Chen and Liu, COLT 2013.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank.analysis.discounting import CONSTANT, CRITICAL, FEASIBLE, decay_of, discount_table
from fastrank.analysis.outcome import Finding
from fastrank.analysis.quantiles import RelevanceCurve, line_through
from fastrank.comparison.intervals import Interval, check_confidence
from fastrank.errors import InputError

# Draws of the bins of an estimated curve, from which the interval of a limit is read.
DRAWS = 400
# Nodes of a piece of an estimated curve.
NODES = 16


def limit(discount: Any, ybar: Any, p: float | None = None, k_share: float | None = None) -> float:
    """What NDCG tends to as the number of documents grows; NaN where it tends to nothing.

    Parameters
    ----------
    discount
        As `discount_table`. Of a table or function the exponent is estimated (`check_discount`).
    ybar
        The chance that the document at quantile s is relevant, s = 1 the top: a function of a number, or a `RelevanceCurve`.
    p
        The share of relevant documents; None: the mean of ybar.
    k_share
        Cut at this share of the list; None: not at all. A fixed cutoff is a discount with a finite sum: no limit.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Wang, Wang, Li, He, Chen and Liu, COLT 2013.

    Examples
    --------
    >>> import fastrank as fr
    >>> ybar = lambda s: 0.1 + 0.6 * s
    >>> round(fr.analysis.limit("power:0.5", ybar), 6), round(fr.analysis.limit("zipf", ybar), 6)
    (0.790569, 0.7)
    >>> round(fr.analysis.limit("log2", ybar, k_share=0.2), 6), fr.analysis.limit("log2", ybar)
    (0.64, 1.0)
    >>> fr.analysis.limit("geometric:0.5", ybar)
    nan
    """
    return _limit(decay_of(discount), ybar, p, k_share)


def _limit(decay: tuple[str, float], ybar: Any, p: float | None, k_share: float | None) -> float:
    side, exponent = decay
    function = _as_function(ybar)
    share = 1.0 if k_share is None else _share("k_share", k_share)
    mean = _integral(function, 1.0, 0.0, _kinks(ybar)) if p is None else _share("p", p)
    if not mean > 0:
        raise InputError("ybar must not be 0 throughout: without relevant documents there is no NDCG.")
    if side == CRITICAL:
        return _checked(function(1.0), 1.0)
    if side not in (FEASIBLE, CONSTANT):
        return math.nan
    if k_share is None and exponent == 0:
        return 1.0
    return _integral(function, share, exponent, _kinks(ybar)) / min(share, mean) ** (1.0 - exponent)


def limit_interval(
    discount: Any, curve: RelevanceCurve, k_share: float | None = None, *, confidence: float = 0.95, seed: int = 0
) -> Interval:
    """The limit under an estimated y(s), with an interval: the bins are drawn anew as shares of so many documents, the limit each time.

    Errors: `InputError`, one line that says what, where and the cure.

    >>> import fastrank as fr
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.random(20_000)
    >>> curve = fr.analysis.relevance_curve(rng.random(20_000) < 0.1 + 0.6 * s, s)
    >>> found = fr.analysis.limit_interval("power:0.5", curve)
    >>> found.low < 0.790569 < found.high
    True
    """
    confidence = check_confidence(confidence)
    if not isinstance(curve, RelevanceCurve):
        raise InputError("curve must be a RelevanceCurve, as relevance_curve() returns. For a function ybar call limit().")
    rng = np.random.default_rng(seed)
    # A little of one half keeps a bin of zeros or ones from claiming certainty.
    hits = curve.value * curve.n
    drawn = rng.beta(hits + 0.5, curve.n - hits + 0.5, size=(DRAWS, len(curve.n)))
    decay = decay_of(discount)
    found = [_limit(decay, _Drawn(curve.edges, row), float(np.average(row, weights=curve.n)), k_share) for row in drawn]
    low, high = np.quantile(found, [(1 - confidence) / 2, (1 + confidence) / 2])
    estimate = _limit(decay, curve, curve.p, k_share)
    return Interval(estimate, float(low), float(high), float(np.std(found)), int(curve.n.sum()), "bins drawn anew", confidence)


@dataclass(frozen=True, eq=False)
class _Drawn:
    edges: np.ndarray
    value: np.ndarray

    def __call__(self, s: Any) -> Any:
        return line_through(self.edges, self.value, s)


def _as_function(ybar: Any) -> Callable[[Any], Any]:
    if not callable(ybar):
        raise InputError(f"ybar must be a function of the quantile, such as lambda s: 0.1 + 0.6 * s, or a RelevanceCurve, not {ybar!r}.")
    return ybar


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not 0 < float(value) <= 1:
        raise InputError(f"{name} must be a share, above 0 and at most 1, not {value!r}.")
    return float(value)


def _checked(value: Any, s: float) -> float:
    found = float(value)
    if not -1e-12 <= found <= 1 + 1e-12:
        raise InputError(f"ybar must be a chance, from 0 to 1: at {s:g} it is {found:g}.")
    return found


def _kinks(ybar: Any) -> list[float]:
    """Where the curve bends, as places x = 1 - s from the top."""
    edges = getattr(ybar, "edges", None)
    return [] if edges is None else sorted(1.0 - (edges[:-1] + edges[1:]) / 2)


def _integral(function: Callable[[Any], Any], stop: float, exponent: float, kinks: list[float]) -> float:
    """(1 - b) × integral of y(1 - x) x^-b dx: with u = x^(1 - b) it is the integral of y(1 - u^(1 / (1 - b))) du, which is smooth.

    Between the bends of an estimated curve a fixed rule is as good as an adaptive one and takes all pieces at once.
    """
    power = 1.0 - exponent
    if kinks:
        ends = np.array([0.0, *(x for x in kinks if 0 < x < stop), stop]) ** power
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        half = np.diff(ends)[:, None] / 2
        u = (ends[:-1, None] + ends[1:, None]) / 2 + half * nodes
        return float((function(1.0 - u ** (1.0 / power)) * half * weights).sum())
    from scipy.integrate import quad

    def integrand(u: float) -> float:
        s = 1.0 - float(u ** (1.0 / power))
        return _checked(function(s), s)

    # With full_output a function that bends or jumps costs digits, not a warning.
    return float(quad(integrand, 0.0, stop**power, epsabs=1e-10, epsrel=1e-10, limit=200, full_output=1)[0])


# --- finite lists ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Gap(Finding):
    """NDCG of finite lists beside its limit.

    Attributes
    ----------
    sizes
        int64[m]: documents.
    mean, sd, standard_error
        float64[m]: mean and standard deviation of NDCG over the simulated lists, and the standard error of the mean.
    limit
        What it tends to (NaN: nothing).
    rate
        How the gap shrinks in theory: "n^-0.5", "1/log n", or "none".
    slope
        Of the gap against the rate, fitted through 0 with the standard errors as weights; NaN without a limit.
    explained
        The share of the gaps' weighted square that the fit explains; 1: the gap shrinks as the theory says.
    n_lists
        Lists simulated of each size.
    """

    sizes: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    standard_error: np.ndarray
    limit: float
    rate: str
    slope: float
    explained: float
    n_lists: int

    @property
    def gap(self) -> np.ndarray:
        """mean - limit."""
        return np.asarray(self.mean - self.limit)

    def columns(self) -> dict[str, Any]:
        """A row per size."""
        return {"n": self.sizes, "mean": self.mean, "standard_error": self.standard_error, "sd": self.sd, "gap": self.gap}


def simulate_gap(
    discount: Any, ybar: Any, sizes: Any = (1_000, 10_000, 100_000), *, k_share: float | None = None, n_lists: int = 50, seed: int = 0
) -> Gap:
    """Simulate lists of n documents and compare their NDCG with the limit.

    The quantiles of a list are n uniform draws in order; the document at quantile s is relevant with the chance y(s).

    Parameters
    ----------
    discount, ybar, k_share
        As `limit`; ybar takes an array.
    sizes
        Numbers of documents.
    n_lists
        Lists of each size, 2 or more.
    seed
        Of the draws.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> found = fr.analysis.simulate_gap("power:0.5", lambda s: 0.1 + 0.6 * s, [1_000, 10_000], n_lists=200)
    >>> found.rate, bool(abs(found.gap[1]) < 3 * found.standard_error[1] + 0.01)
    ('n^-0.5', True)
    """
    if isinstance(n_lists, bool) or not isinstance(n_lists, int | np.integer) or n_lists < 2:
        raise InputError(f"n_lists must be a whole number from 2 up, not {n_lists!r}.")
    counts = np.atleast_1d(np.asarray(sizes))
    if counts.dtype.kind not in "iu" or counts.ndim != 1 or not len(counts) or counts.min() < 2:
        raise InputError(f"sizes must be whole numbers from 2 up, not {sizes!r}.")
    counts = np.unique(counts).astype(np.int64)
    function, share = _as_function(ybar), None if k_share is None else _share("k_share", k_share)
    tends_to = limit(discount, ybar, None, share)
    rng = np.random.default_rng(seed)
    values = np.array([_simulated(discount, function, int(n), share, int(n_lists), rng) for n in counts])
    mean, sd = values.mean(axis=1), values.std(axis=1, ddof=1)
    error = sd / math.sqrt(n_lists)
    rate, x = _rate(discount, counts)
    slope = explained = math.nan
    if x is not None and not math.isnan(tends_to):
        weight = 1.0 / np.maximum(error, 1e-15) ** 2
        gap = mean - tends_to
        slope = float((weight * x * gap).sum() / (weight * x * x).sum())
        explained = float(1.0 - (weight * (gap - slope * x) ** 2).sum() / (weight * gap**2).sum())
    return Gap(counts, mean, sd, error, tends_to, rate, slope, explained, int(n_lists))


def _simulated(
    discount: Any, function: Callable[[Any], Any], n: int, share: float | None, n_lists: int, rng: np.random.Generator
) -> np.ndarray:
    table = discount_table(discount, n)
    cut = n if share is None else min(n, math.ceil(share * n - 1e-9))
    ideal = np.concatenate(([0.0], np.cumsum(table[:cut])))
    found = np.empty(n_lists)
    for i in range(n_lists):
        # Partial sums of exponential draws, divided by the last, are uniform draws in order.
        sums = np.cumsum(rng.standard_exponential(n + 1))
        chance = np.broadcast_to(np.asarray(function(1.0 - sums[:-1] / sums[-1]), dtype=np.float64), (n,))
        relevant = rng.random(n) < chance
        n_relevant = int(np.count_nonzero(relevant))
        best = ideal[min(n_relevant, cut)]
        found[i] = float(table[:cut] @ relevant[:cut]) / best if n_relevant else 0.0
    return found


def _rate(discount: Any, counts: np.ndarray) -> tuple[str, np.ndarray | None]:
    """How fast the gap shrinks: the sum of r^-b misses its integral by a constant, that of 1 / log r by a factor of 1 + 1 / log n."""
    side, exponent = decay_of(discount)
    if side == CRITICAL or (side == FEASIBLE and exponent == 0):
        return "1/log n", 1.0 / np.log(counts)
    if side == FEASIBLE:
        return f"n^-{1 - exponent:.3g}", counts ** -(1.0 - exponent)
    return "none", None

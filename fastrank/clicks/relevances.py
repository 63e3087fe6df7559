"""Relevance of documents from their clicks, corrected for the positions at which they were shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.clicks.checks import check_level, check_log
from fastrank.clicks.outcome import Outcome
from fastrank.clicks.propensities import Propensity
from fastrank.clicks.rates import pair_keys
from fastrank.errors import InputError
from fastrank.evaluation import Note

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog


@dataclass(frozen=True, repr=False, eq=False)
class Relevance(Outcome):
    """How likely each pair of query and document is to be clicked where it is examined.

    Attributes
    ----------
    qd
        int32[n_pairs]: the number of the pair in the log.
    keys
        {"query", "doc"}: Arrow arrays of ids.
    clicks, exposure
        float64[n_pairs]: clicks, and the sum of the propensities of the positions at which it was shown.
    value, lo, hi
        float64[n_pairs]: the rate, and its interval; NaN where nothing was exposed. Values above 1 are left as they are.
    se
        Standard error of the clicks as independent draws, over the exposure.
    n_above_one
        How many values are above 1: chance, or propensities that are too small.
    prior, level
        Clicks and exposure added to each; the confidence of the interval.
    notes
        What to know before using it.
    """

    qd: np.ndarray
    keys: dict[str, Any]
    clicks: np.ndarray
    exposure: np.ndarray
    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    se: np.ndarray
    n_above_one: int
    prior: tuple[float, float]
    level: float
    notes: tuple[Note, ...]

    def columns(self) -> dict[str, Any]:
        """A row per pair."""
        return self.keys | {name: getattr(self, name) for name in ("clicks", "exposure", "value", "lo", "hi", "se")}


def relevance(
    log: ClickLog, theta: Any, beta: Any = None, prior: tuple[float, float] = (0.0, 0.0), level: float = 0.95, *, extend: bool = False
) -> Relevance:
    """Clicks over exposure, r = Σ c / Σ theta_k, per pair of query and document: the Poisson maximum likelihood estimate.

    Parameters
    ----------
    theta
        float64[n_positions], theta[k - 1] at position k, or what `propensity` returns.
    beta
        float64[n_positions]: clicks at each position on what is not relevant (trust), P(click) = theta_k r + beta_k. Then
        r = Σ (c - beta_k) / Σ theta_k, which may be below 0.
    prior
        (a, b): clicks and exposure added to every pair, r = (Σ c + a) / (Σ theta + b), a gamma prior with mean a / b.
    level
        The confidence of the interval: the exact one of a Poisson count over the exposure; with a prior, quantiles of the posterior.
    extend
        Whether positions deeper than theta take its last value. Otherwise they are an error.

    With theta the log's own click-through rates, relative to position 1, this is what practitioners call COEC, clicks over expected
    clicks: it is biased, as better documents stand higher.

    Errors: `InputError`; a propensity that is 0, NaN or missing at a position with a click is one.

    Source: Zhang and Jones, WWW 2007; Garwood, Biometrika 1936 (the interval).

    Examples
    --------
    100 clicks of 1,000 at the top, and 35 of 1,000 where one user in three looks, are the same relevance, the second less surely so:

    >>> import numpy as np
    >>> from fastrank.clicks import ClickLog, relevance
    >>> click = np.concatenate([np.arange(1000) < 100, np.arange(1000) < 35])
    >>> log = ClickLog(np.arange(2001), np.repeat(["A", "B"], 1000), click, position=np.repeat([1, 2], 1000))
    >>> found = relevance(log, theta=[1.0, 0.35])
    >>> found.value.round(3).tolist(), found.se.round(4).tolist()
    ([0.1, 0.1], [0.0095, 0.0166])
    """
    check_log(log)
    level = check_level(level)
    a, b = _prior(prior)
    exposures = position_table(log, "theta", theta, extend=extend, clicked=True)
    offset = None if beta is None else position_table(log, "beta", beta, extend=extend, clicked=False)
    cells, n = log.cells(), log.n_pairs
    known = np.isfinite(exposures)
    exposed = np.where(known, exposures, 0.0)[cells.position]
    clicks, exposure = np.bincount(cells.group, cells.clicks, n), np.bincount(cells.group, cells.n * exposed, n)
    noise = np.zeros(n) if offset is None else np.bincount(cells.group, cells.n * np.where(exposed > 0, offset[cells.position], 0.0), n)
    squares = np.bincount(cells.group, cells.n * exposed * exposed, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (clicks - noise + a) / (exposure + b)
        low, high = (np.where(exposure + b > 0, (end - noise) / (exposure + b), np.nan) for end in _gamma(clicks, a, b, level))
        plain = (clicks - noise) / exposure
        # Each draw has the variance p (1 - p); with trust, that of its clicks.
        variance = clicks - plain * plain * squares if offset is None else clicks
        se = np.sqrt(np.maximum(variance, 0.0)) / (exposure + b)
        se[exposure == 0] = np.nan
        value[exposure + b == 0] = np.nan
    above = int(np.count_nonzero(value > 1))
    notes = []
    if above:
        notes.append(Note("above_one", above, f"{above} of {n} values are above 1: chance, or propensities that are too small."))
    blank = int(np.count_nonzero(exposure == 0))
    if blank:
        notes.append(Note("not_exposed", blank, f"{blank} of {n} pairs were never shown where anyone looks: there is nothing to tell."))
    lost = float(cells.n[~known[cells.position]].sum())
    if lost:
        notes.append(Note("no_propensity", round(lost), f"{lost:g} rows at positions without a propensity are left out; none was clicked."))
    return Relevance(
        qd=frozen(np.arange(n), np.int32),
        keys=pair_keys(log),
        clicks=frozen(clicks, np.float64),
        exposure=frozen(exposure, np.float64),
        value=frozen(value, np.float64),
        lo=frozen(low, np.float64),
        hi=frozen(high, np.float64),
        se=frozen(se, np.float64),
        n_above_one=above,
        prior=(a, b),
        level=level,
        notes=tuple(notes),
    )


def pooled(log: ClickLog, theta: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Σ (c - noise) / Σ theta of each pair, both by position from entry 1 on; 0 where nothing was exposed."""
    cells, n = log.cells(), log.n_pairs
    clicks = np.bincount(cells.group, cells.clicks - cells.n * noise[cells.position], n)
    exposure = np.bincount(cells.group, cells.n * theta[cells.position], n)
    return np.divide(clicks, exposure, out=np.zeros(n), where=exposure > 0)


def _gamma(clicks: np.ndarray, a: float, b: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Both ends for a Poisson count: quantiles of gamma distributions."""
    from scipy.special import gammaincinv

    tail = (1 - level) / 2
    if a == b == 0:
        return np.where(clicks > 0, gammaincinv(np.maximum(clicks, 1e-300), tail), 0.0), gammaincinv(clicks + 1, 1 - tail)
    shape = np.maximum(clicks + a, 1e-300)
    return np.where(clicks + a > 0, gammaincinv(shape, tail), 0.0), np.where(clicks + a > 0, gammaincinv(shape, 1 - tail), 0.0)


def _prior(prior: Any) -> tuple[float, float]:
    numbers = prior if isinstance(prior, Sequence) and len(prior) == 2 else ()
    if not all(isinstance(each, int | float | np.number) and math.isfinite(each) and each >= 0 for each in numbers) or not numbers:
        raise InputError(f"prior must be (clicks, exposure), two numbers from 0 up such as (1, 10), not {prior!r}.")
    return float(numbers[0]), float(numbers[1])


def position_table(log: ClickLog, name: str, value: Any, *, extend: bool, clicked: bool) -> np.ndarray:
    """float64[n_positions + 1]: a number per position, of which entry 0 is none.

    `clicked`: it is divided by, so that it must be above 0 wherever the log has a click.
    """
    if isinstance(value, Propensity):
        value = value.theta
    array, missing = as_array(name, value)
    if array.ndim != 1:
        raise InputError(f"{name} must have one number per position, in one dimension, not {array.ndim}.")
    numbers = array.astype(np.float64)
    if missing is not None:
        numbers[missing] = np.nan
    wrong = np.isinf(numbers) | (numbers < 0)
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{name} must be a number from 0 up at every position: at position {k + 1} it is {numbers[k]:g}.")
    deepest = log.n_positions
    if len(numbers) < deepest:
        if not extend or not len(numbers):
            raise InputError(
                f"{name} has {len(numbers)} positions, and the log shows documents down to position {deepest}. "
                "Give one number per position, or take the last one for all below with extend=True."
            )
        numbers = np.append(numbers, np.full(deepest - len(numbers), numbers[-1]))
    if clicked:
        cells = log.cells()
        hit = np.bincount(cells.position, cells.clicks, deepest + 1)[1:]
        wrong = (hit > 0) & ~(numbers[:deepest] > 0)
        if wrong.any():
            k = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{name} must be above 0 where there are clicks: at position {k + 1}, which has {hit[k]:g}, it is {numbers[k]:g}. "
                "Estimate it, or leave the rows below out of the log."
            )
    return np.append(np.nan, numbers[:deepest])

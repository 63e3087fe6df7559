"""The maximum of the conditional-Poisson likelihood of position propensities, and the spread of its clusters' scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import frozen
from fastrank.clicks.blocks import summed
from fastrank.clicks.cells import Cells
from fastrank.clicks.curves import expected_shares, likelihood_of, link_positions, slopes_of, square_scores

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

# MM steps before Newton's, which then need a handful.
MM_STEPS = 5
MOST_STEPS = 200
CLOSE = 1e-12


@dataclass(frozen=True, eq=False)
class Strata:
    """The cells that say something: of strata with two positions or more and a click. groups: the number that each stratum had."""

    groups: np.ndarray
    start: np.ndarray
    position: np.ndarray
    n: np.ndarray
    clicks: np.ndarray

    @classmethod
    def of(cls, cells: Cells, wanted: np.ndarray) -> Strata:
        """Those of the wanted positions, counted from 0."""
        n_groups = len(cells.start) - 1
        kept = wanted[cells.position - 1] & (cells.n > 0)
        degree = np.bincount(cells.group[kept], minlength=n_groups)
        clicked = np.bincount(cells.group[kept], cells.clicks[kept], n_groups)
        says = (degree > 1) & (clicked > 0)
        kept &= says[cells.group]
        groups = np.flatnonzero(says)
        start = np.append(0, np.cumsum(degree[groups]))
        position = frozen(cells.position[kept] - 1, np.int32)
        return cls(groups, frozen(start, np.int64), position, frozen(cells.n[kept], np.float64), frozen(cells.clicks[kept], np.float64))


def tied_to(strata: Strata, n_positions: int, anchor: int) -> np.ndarray:
    """Positions that chains of clicks lead to from the anchor, and from which they lead back.

    Elsewhere the likelihood has no maximum: the odds of a position that never won against another go to 0 (Ford, American Mathematical
    Monthly 1957).
    """
    links = np.zeros((n_positions, n_positions), np.uint8)
    link_positions(strata.start, strata.position, strata.clicks, 0, len(strata.groups), links)

    def reached(step: np.ndarray) -> np.ndarray:
        seen = np.zeros(n_positions, bool)
        seen[anchor] = True
        while True:
            wider = seen | step[seen].any(axis=0)
            if np.array_equal(wider, seen):
                return seen
            seen = wider

    return reached(links) & reached(links.T)


class CurveFit:
    """The maximum of the likelihood over log theta at the free positions; 0 at the anchor."""

    def __init__(self, strata: Strata, n_positions: int, anchor: int, free: np.ndarray, threads: int | None) -> None:
        self.strata, self.n_positions, self.anchor, self.free, self.threads = strata, n_positions, anchor, free, threads
        self.clicks = np.bincount(strata.position, strata.clicks, n_positions)

    def maximise(self) -> tuple[np.ndarray, np.ndarray, float, int]:
        """log theta, the curvature over the free positions, the log-likelihood, and the steps of Newton's method."""
        at = np.zeros(self.n_positions)
        free = self.free
        if not len(free):
            return at, np.zeros((0, 0)), self._likelihood(at), 0
        for _ in range(MM_STEPS):
            expected = self._sum(expected_shares, at, (self.n_positions,))
            at[free] = np.log(self.clicks[free] / expected[free]) - np.log(self.clicks[self.anchor] / expected[self.anchor])
        value = self._likelihood(at)
        for n_steps in range(1, MOST_STEPS + 1):  # noqa: B007 - read after the loop
            slope, curvature = self._slopes(at)
            move = np.linalg.solve(curvature, slope)
            value, scale = self._climb(at, move, value)
            if float(np.abs(move).max()) * scale < CLOSE:
                break
        return at, self._slopes(at)[1], value, n_steps

    def _climb(self, at: np.ndarray, move: np.ndarray, value: float) -> tuple[float, float]:
        """Go the whole step, or the first of its halves that does not lead down by more than rounding."""
        scale, before = 1.0, at[self.free].copy()
        while True:
            at[self.free] = before + scale * move
            reached = self._likelihood(at)
            if reached >= value - 1e-12 * abs(value):
                return reached, scale
            scale /= 2

    def _likelihood(self, at: np.ndarray) -> float:
        return float(self._sum(likelihood_of, at, (1,))[0])

    def _slopes(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sums = self._sum(_slopes_in_one, at, (self.n_positions + 1, self.n_positions))
        return sums[0, self.free], sums[1:][np.ix_(self.free, self.free)]

    def _sum(self, kernel: Callable[..., None], at: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        theta, cells = frozen(np.exp(at), np.float64), self.strata
        return summed(
            cells.start,
            shape,
            lambda first, last, out: kernel(cells.start, cells.position, cells.n, cells.clicks, theta, first, last, out),
            self.threads,
        )


def _slopes_in_one(start: Any, position: Any, n: Any, clicks: Any, theta: Any, first: int, last: int, out: np.ndarray) -> None:
    slopes_of(start, position, n, clicks, theta, first, last, out[0], out[1:])


def squared_scores(
    log: ClickLog, group: np.ndarray, n_groups: int, strata: Strata, theta: np.ndarray, threads: int | None
) -> tuple[np.ndarray, int]:
    """The sum over clusters of the outer products of their scores, and how many clusters there are."""
    from fastrank.io.grouping import stable_order

    tied = ~np.isnan(theta)
    known = np.where(tied, theta, 0.0)
    number = np.full(n_groups + 1, -1, np.int32)  # the last is that of rows that do not enter
    number[strata.groups] = np.arange(len(strata.groups), dtype=np.int32)
    counts = tied[log.position - 1] & np.repeat(log.weights > 0, np.diff(log.offsets))
    stratum = frozen(np.where(counts, number[group], np.int32(-1)), np.int32)
    exposure = strata.n * known[strata.position]
    per_stratum = np.repeat(np.arange(len(strata.groups)), np.diff(strata.start))
    total = frozen(np.bincount(per_stratum, exposure, len(strata.groups)), np.float64)
    rate = frozen(np.bincount(per_stratum, strata.clicks, len(strata.groups)) / total, np.float64)
    share = frozen(exposure / total[per_stratum], np.float64)
    ones = frozen(np.ones(log.n_sessions), np.float64)
    if log.cluster is None:
        # A weight says how often a session came: as many clusters, all alike.
        order, bounds, weight, scale = np.arange(log.n_sessions), np.arange(log.n_sessions + 1), ones, log.weights
        sizes = log.offsets
    else:
        n_clusters = int(log.cluster.max(initial=-1)) + 1
        order = stable_order(log.cluster.astype(np.int64), n_clusters)
        bounds = np.append(0, np.cumsum(np.bincount(log.cluster, minlength=n_clusters)))
        weight, scale = log.weights, frozen(np.ones(n_clusters), np.float64)
        sizes = np.append(0, np.cumsum(np.diff(log.offsets)[order]))[bounds]
    order, bounds, position = frozen(order, np.int64), frozen(bounds, np.int64), frozen(log.position - 1, np.int32)
    n_positions = len(theta)
    known = frozen(known, np.float64)
    spare: list[tuple[np.ndarray, ...]] = []

    def work(first: int, last: int, out: np.ndarray) -> None:
        try:
            scratch = spare.pop()  # a block's scratch serves the next one of its thread
        except IndexError:
            held, score = np.zeros((2, len(strata.groups))), np.zeros((2, n_positions))
            scratch = np.zeros(len(strata.groups), np.int64), held, np.zeros(n_positions, np.int64), score
        square_scores(
            order,
            bounds,
            log.offsets,
            stratum,
            position,
            log.click,
            weight,
            scale,
            known,
            strata.start,
            strata.position,
            share,
            total,
            rate,
            *scratch,
            first,
            last,
            out,
        )
        spare.append(scratch)

    sums = summed(frozen(sizes, np.int64), (n_positions, n_positions), work, threads)
    return sums, _clusters_that_enter(log, stratum)


def _clusters_that_enter(log: ClickLog, stratum: np.ndarray) -> int:
    sessions = np.unique(np.repeat(np.arange(log.n_sessions), np.diff(log.offsets))[stratum >= 0])
    return len(sessions) if log.cluster is None else len(np.unique(log.cluster[sessions]))


def strength(log_theta: np.ndarray, covariance: np.ndarray, ranks: np.ndarray) -> tuple[float, float]:
    """eta and its standard error: the line through 0 of log theta on -log of the rank, weighed by the inverse covariance."""
    if not len(log_theta):
        return math.nan, math.nan
    x = -np.log(ranks)
    weighed = np.linalg.lstsq(covariance, np.column_stack([x, log_theta]), rcond=None)[0]
    precision = float(x @ weighed[:, 0])
    return (float(x @ weighed[:, 1]) / precision, math.sqrt(1 / precision)) if precision > 0 else (math.nan, math.nan)

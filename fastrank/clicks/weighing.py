"""Clicks weighed by the inverse of the exposure that they had: the estimates of a new and of the logged ranker, and their spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank._cached import cached_property
from fastrank._kernel import map_blocks
from fastrank.arrays import frozen
from fastrank.clicks.blocks import BLOCK
from fastrank.clicks.checks import normal_quantile
from fastrank.clicks.relevances import pooled
from fastrank.clicks.replay import weigh_sessions, weigh_slots

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog


class Estimate(NamedTuple):
    """A value and its interval."""

    estimate: float
    low: float
    high: float


class Values(NamedTuple):
    """The new ranker's value, that of the logged one, their difference, and the new ranker's value in each session."""

    new: Estimate
    logged: float
    diff: Estimate
    per_session: np.ndarray


class _Tables(NamedTuple):
    """At one strength of the bias: exposure and guess, the exposure of each slot as clipped, and which slots were not."""

    theta: np.ndarray
    guess: np.ndarray
    inverse: np.ndarray
    free: np.ndarray


@dataclass(frozen=True, eq=False)
class Replay:
    """A log, a new ranking of what it shows, and how clicks are weighed.

    A slot is what has an exposure of its own: a position, or, with `policy`, a pair of query and document. gain: λ by rank. theta, noise:
    by position, from 1 on. guess: by pair; None with `guesses` for the relevance that the log says. clip: 0 for none. covariance: of log
    theta.
    """

    log: ClickLog
    new_position: np.ndarray
    gain: np.ndarray
    theta: np.ndarray
    noise: np.ndarray
    policy: bool
    snips: bool
    guess: np.ndarray | None
    guesses: bool
    clip: float
    weight: np.ndarray | None
    covariance: np.ndarray | None
    level: float
    threads: int | None

    def values(self, strength: float) -> Values:
        """The estimates with propensities theta ** strength, and their intervals."""
        tables = self._tables(strength)
        new, logged, mass = self._per_session(tables)
        total = self._total
        denominator = float(mass @ self.log.weights) / total if self.snips else 1.0
        slopes = None if self.covariance is None else strength * self._slopes(tables)
        found = []
        for column, slope in ((new, (1.0, 0.0)), (logged, (0.0, 1.0)), (new - logged, (1.0, -1.0))):
            with np.errstate(divide="ignore", invalid="ignore"):
                value = float(np.divide(float(column @ self.log.weights) / total, denominator)) if total else math.nan
            residual = column - value * (mass if self.snips else 1.0)
            variance = self._variance(residual) / denominator**2 if denominator else math.nan
            if slopes is not None:
                along = (slope[0] * slopes[0] + slope[1] * slopes[1] - (value * slopes[2] if self.snips else 0.0)) / denominator
                variance += float(along @ self.covariance @ along)
            half = normal_quantile(self.level) * math.sqrt(variance)
            found.append(Estimate(value, value - half, value + half))
        return Values(found[0], found[1].estimate, found[2], new)

    def difference(self, strength: float) -> float:
        """The difference of the values alone."""
        tables = self._tables(strength)
        if self.guesses:
            new, logged, _ = self._per_session(tables)
            return float((new - logged) @ self.log.weights)
        sums = self._slot_sums(tables)
        return float((sums[0] - sums[1]) @ tables.inverse)

    def naive(self) -> float:
        """The new ranker's value if all positions were examined."""
        rows, times = self._clicked
        ranks = np.minimum(self.new_position[rows], len(self.gain) - 1)
        return float(self.gain[ranks] @ times) / self._total if self._total else math.nan

    def spread(self) -> dict[str, Any]:
        """How evenly the clicks weigh, and what is lost of them."""
        tables = self._tables(1.0)
        rows, times = self._clicked
        weight = tables.inverse[self._slot[rows]]
        exposure = self._exposure(tables.theta)[self._slot[rows]]
        unclipped = 1 / exposure
        total, full = float(weight @ times), float(unclipped @ times)
        new = self.gain[np.minimum(self.new_position[rows], len(self.gain) - 1)] * weight
        logged = self._logged_gain[self._slot[rows]] * weight
        dropped = self.new_position[rows] == 0
        return {
            "ess": _effective(weight, times),
            "max_share": float(weight.max(initial=0.0)) / total if total else math.nan,
            "ess_new": _effective(new, times),
            "ess_logged": _effective(logged, times),
            "clipped": int(np.count_nonzero(exposure < self.clip)),
            "clipped_mass": 1 - total / full if full else math.nan,
            "clicked_missing": float(weight[dropped] @ times[dropped]) / total if total else math.nan,
            "relevant_per_session": total / self._total if self._total else math.nan,
        }

    @property
    def n_clusters(self) -> int:
        """What the intervals take as independent: clusters, or sessions."""
        return self.log.n_sessions if self.log.cluster is None else len(np.unique(self.log.cluster))

    @property
    def n_dropped(self) -> int:
        """Clicks on documents that the new ranker does not rank."""
        return int(np.count_nonzero(self.new_position[self._clicked[0]] == 0))

    @property
    def n_left_out(self) -> int:
        """Clicked pairs that some sessions of their query do not show."""
        if self.log.queries is None:
            return 0
        cells, n = self.log.cells(), self.log.n_pairs
        shown, clicked = np.bincount(cells.group, cells.n, n), np.bincount(cells.group, cells.clicks, n)
        return int(np.count_nonzero((clicked > 0) & (shown < self._sessions_of_query[self.log.pair_query] - 1e-9)))

    # --- what does not change with the strength ----------------------------------------------------------------------------------

    @cached_property
    def _total(self) -> float:
        return float(self.log.weights.sum())

    @cached_property
    def _slot(self) -> np.ndarray:
        return self.log.qd if self.policy else self.log.position

    @cached_property
    def _logged_gain(self) -> np.ndarray:
        """λ of the logged ranker per slot: at a position, or, of a pair, the mean over the sessions of its query.

        A pair's clicks are spread over the positions at which it was shown, so that λ at the position of a click would count the better
        ones, where more clicks are, for more than their share.
        """
        at_position = self.gain[np.minimum(np.arange(self.log.n_positions + 1), len(self.gain) - 1)]
        if not self.policy:
            return frozen(at_position, np.float64)
        return frozen(self._mean_over_sessions(at_position), np.float64)

    @cached_property
    def _sessions_of_query(self) -> np.ndarray:
        return np.bincount(self.log.query, self.log.weights, len(self.log.pair_offsets) - 1)

    @cached_property
    def _row_weights(self) -> tuple[np.ndarray, int]:
        return (frozen(np.ones(1), np.float64), 0) if self.weight is None else (frozen(self.weight, np.float64), 1)

    @cached_property
    def _clicked(self) -> tuple[np.ndarray, np.ndarray]:
        """Clicked rows and how often each counts."""
        rows = np.flatnonzero(self.log.click)
        session = np.searchsorted(self.log.offsets, rows, side="right") - 1
        times = self.log.weights[session] * (1.0 if self.weight is None else self.weight[rows])
        return rows, times

    @cached_property
    def _plain_sums(self) -> np.ndarray:
        return self._sums_of(self._tables(1.0))

    # --- at one strength ---------------------------------------------------------------------------------------------------------

    def _tables(self, strength: float) -> _Tables:
        theta = np.where(self.theta > 0, self.theta, np.nan) ** strength
        theta = np.where(self.theta > 0, theta, 0.0)
        exposure = self._exposure(theta)
        raised = np.maximum(exposure, self.clip)
        inverse = np.divide(1.0, raised, out=np.zeros(len(raised)), where=raised > 0)
        guess = np.zeros(1)
        if self.guesses:
            guess = self.guess if self.guess is not None else pooled(self.log, theta, np.nan_to_num(self.noise))
        return _Tables(
            frozen(theta, np.float64), frozen(guess, np.float64), frozen(inverse, np.float64), frozen(exposure >= self.clip, np.bool_)
        )

    def _exposure(self, theta: np.ndarray) -> np.ndarray:
        """Of each slot: of a position theta, of a pair the mean over the sessions of its query."""
        return self._mean_over_sessions(theta) if self.policy else theta

    def _mean_over_sessions(self, at_position: np.ndarray) -> np.ndarray:
        """Of each pair the mean over the sessions of its query of what belongs to a position, 0 where it was not shown."""
        cells = self.log.cells()
        summed = np.bincount(cells.group, cells.n * at_position[cells.position], self.log.n_pairs)
        return summed / np.maximum(self._sessions_of_query[self.log.pair_query], 1e-300)

    def _arguments(self, tables: _Tables) -> tuple[Any, ...]:
        """What the kernels take in common: rows, expected, weight, gains."""
        log = self.log
        rows = log.offsets, log.position, self.new_position, log.click, log.qd, self._slot
        expected = frozen(np.nan_to_num(self.noise), np.float64), tables.theta, tables.guess, int(self.guesses)
        return rows, expected, self._row_weights, (self.gain, self._logged_gain)

    def _per_session(self, tables: _Tables) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums of each session under the new and the logged ranks, and of the weights alone."""
        log = self.log
        new, logged, mass = np.zeros(log.n_sessions), np.zeros(log.n_sessions), np.zeros(log.n_sessions)
        arguments = self._arguments(tables)

        def work(first: int, last: int) -> None:
            weigh_sessions(*arguments, tables.inverse, first, last, new, logged, mass)

        map_blocks(work, log.offsets, documents=BLOCK, threads=self.threads)
        if self.guesses:
            for column, guessed in zip((new, logged), self._guessed(tables), strict=True):
                column += guessed
        return new, logged, mass

    def _guessed(self, tables: _Tables) -> tuple[np.ndarray, np.ndarray]:
        """Σ λ · guess per session, of all documents that either ranker places; "row" knows of the logged one what the session shows."""
        log, n_queries = self.log, len(self.log.pair_offsets) - 1
        rank = np.zeros(log.n_pairs, np.int64)
        rank[log.qd] = np.minimum(self.new_position, len(self.gain) - 1)
        new = np.bincount(log.pair_query, self.gain[rank] * tables.guess, n_queries)[log.query]
        if self.policy:
            return new, np.bincount(log.pair_query, self._logged_gain * tables.guess, n_queries)[log.query]
        session = np.repeat(np.arange(log.n_sessions), np.diff(log.offsets))
        return new, np.bincount(session, self._logged_gain[log.position] * tables.guess[log.qd], log.n_sessions)

    def _slot_sums(self, tables: _Tables) -> np.ndarray:
        """float64[3, n_slots]: what the exposure of each slot divides. The strength matters to it only where theta stands in a guess."""
        return self._sums_of(tables) if self.guesses else self._plain_sums

    def _sums_of(self, tables: _Tables) -> np.ndarray:
        sums = np.zeros((3, len(tables.inverse)))
        weigh_slots(*self._arguments(tables), self.log.weights, 0, self.log.n_sessions, sums)
        return sums

    def _slopes(self, tables: _Tables) -> np.ndarray:
        """float64[3, n_positions]: derivatives of the three means by log theta. Clipped exposures do not move."""
        n_positions = len(self.theta) - 1
        pull = -self._slot_sums(tables) * tables.inverse**2 * tables.free
        slopes = np.zeros((3, n_positions + 1))
        if self.policy:
            cells = self.log.cells()
            part = cells.n * tables.theta[cells.position] / self._sessions_of_query[self.log.pair_query[cells.group]]
            for row, of_pair in zip(slopes, pull, strict=True):
                row += np.bincount(cells.position, of_pair[cells.group] * part, n_positions + 1)
        else:
            slopes += pull * tables.theta
        if self.guesses:
            slopes -= self._slope_of_guesses(tables)
        return slopes[:, 1:] / self._total

    def _slope_of_guesses(self, tables: _Tables) -> np.ndarray:
        """What of the derivatives comes from the theta in click - theta · guess."""
        log = self.log
        expected = (
            tables.theta[log.position] * tables.guess[log.qd] * tables.inverse[self._slot] * np.repeat(log.weights, np.diff(log.offsets))
        )
        if self.weight is not None:
            expected *= self.weight
        new = self.gain[np.minimum(self.new_position, len(self.gain) - 1)]
        gains = (new, self._logged_gain[self._slot], np.ones(log.n_rows))
        return np.array([np.bincount(log.position, gain * expected, len(self.theta)) for gain in gains])

    def _variance(self, residual: np.ndarray) -> float:
        """Of the mean, given what is left of each session's value: over clusters, or sessions that came as often as they weigh."""
        log, total = self.log, self._total
        if log.cluster is None:
            squares, n = float(log.weights @ (residual * residual)), total
        else:
            sums = np.bincount(log.cluster, log.weights * residual)
            squares, n = float(sums @ sums), float(self.n_clusters)
        return squares * n / (n - 1) / total**2 if n > 1 else math.nan


def _effective(weight: np.ndarray, times: np.ndarray) -> float:
    """(Σ w)² / Σ w², each weight as often as it came."""
    squares = float(times @ (weight * weight))
    return float(weight @ times) ** 2 / squares if squares else 0.0

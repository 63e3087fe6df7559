"""The records that a comparison is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fastrank.comparison.intervals import Interval
from fastrank.comparison.planning import power_curve

# What is said of a pair on a metric.
BETTER, WORSE, OPEN, IDENTICAL = "better", "worse", "open", "identical"


@dataclass(frozen=True)
class Difference:
    """One system against another, its baseline, on one metric.

    `difference` is the mean of the system minus that of the baseline, `ratio` the one divided by the other; `effect_size` is Cohen's dz,
    the difference in standard deviations of the differences over queries (NaN without spread); `won`, `tied` and `lost` count queries.
    `p` and `p_corrected` are None for a watched metric, and so is `verdict`: "better", "worse", "open" (not told apart) or "identical".
    """

    metric: str
    baseline: str
    system: str
    n_queries: int
    mean_baseline: float
    mean_system: float
    difference: Interval
    ratio: Interval
    effect_size: float
    won: int
    tied: int
    lost: int
    p: float | None = None
    p_corrected: float | None = None
    verdict: str | None = None

    @property
    def sd(self) -> float:
        """The standard deviation of the differences over queries, as the power needs it: the standard error times sqrt(n_queries)."""
        return float(self.difference.standard_error * self.n_queries**0.5)


@dataclass(frozen=True)
class SliceDifference:
    """The difference on the queries that share one value of a `by` column; p is corrected over all slices of the metric."""

    column: str
    value: Any
    found: Difference


@dataclass(frozen=True)
class Planning:
    """How many queries one pair takes on one metric, at the level each comparison is held to.

    `needed`: the queries to see a difference as large as the one found (None where it is 0 or without spread); `smallest`: the smallest
    true difference that these queries show (NaN without spread); both with the given `power`. `curve()`: numbers of queries and the power
    to see the one found.
    """

    metric: str
    baseline: str
    system: str
    n_queries: int
    difference: float
    sd: float
    power: float
    level: float
    needed: int | None
    smallest: float

    def curve(self) -> list[tuple[int, float]]:
        """Numbers of queries, those at hand among them, and the power on so many; empty without spread."""
        return power_curve(self.n_queries, abs(self.difference), self.sd, 1 - self.level) if self.sd > 0 else []


@dataclass(frozen=True)
class Agreement:
    """How far two metrics order the systems alike: Kendall's tau-b, and tau-AP (the mean of both directions)."""

    metric: str
    other: str
    tau: float
    tau_ap: float


@dataclass(frozen=True)
class Discrimination:
    """Which share of all pairs of systems a metric tells apart.

    `n_apart` of `n_pairs` are told apart on these queries. `queries_half`: from how many queries on half of all pairs can be expected to
    be, and `queries_most`, nine in ten, if the differences and spreads found are the true ones (None: never). `curve`: numbers of queries
    and the expected share.
    """

    metric: str
    n_pairs: int
    n_apart: int
    queries_half: int | None
    queries_most: int | None
    curve: tuple[tuple[int, float], ...]

    @property
    def share(self) -> float:
        """The discriminative power: told apart, of all pairs."""
        return self.n_apart / self.n_pairs


@dataclass(frozen=True)
class Mover:
    """A query with what two systems make of it."""

    query_id: Any
    place: int
    baseline: float
    system: float

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.system - self.baseline

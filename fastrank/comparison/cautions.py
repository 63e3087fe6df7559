"""Notes that keep a reader from false conclusions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.comparison.resampling import MOST_ENUMERATED
from fastrank.evaluation import ACHIEVED, FEW_VALUES, Evaluation, Note

if TYPE_CHECKING:
    from fastrank.comparison.alignment import Aligned
    from fastrank.comparison.findings import Difference
    from fastrank.metrics.base import Metric

FEW_QUERIES = 25
SATURATED = 0.95
# Deeper than any user looks.
DEEP = 100
# Pairs of which a note of one kind and metric is spelt out; the further ones are counted.
MOST_TOLD = 3


@dataclass(frozen=True)
class Setting:
    """How a comparison was made.

    `tested`: places of the metrics it tests; `named`: whether one was named as the one that decides; `family`: what p is corrected over,
    in words; `n_units`: what is drawn, queries or clusters; `sampled`: whether p is a share of `n_resamples`; `level`: what p is held to.
    """

    tested: Sequence[int]
    named: bool
    family: str
    n_comparisons: int
    n_units: int
    sampled: bool
    n_resamples: int
    level: float


class Cautions:
    """What a reader of one comparison should know. The metrics on which it decides are looked at, not those it watches."""

    def __init__(self, aligned: Aligned, setting: Setting, differences: Sequence[Difference]) -> None:
        self.aligned, self.setting = aligned, setting
        self.tested = setting.tested
        self.differences = [each for each in differences if each.verdict is not None]

    def notes(self) -> list[Note]:
        """All notes, those on the data first."""
        parts = [self._left_out(), self._skipped(), self._family(), self._resamples(), self._few_units()]
        for m in self.tested:
            parts += [self._few_changes(m), self._few_values(m), self._without_spread(m), self._ties(m), self._unjudged(m)]
            parts += [self._cutoff(m), self._nothing_to_find(m), self._saturated(m)]
        return [note for part in parts for note in part]

    def _told(self, notes: Iterator[Note], m: int) -> Iterator[Note]:
        """Notes on pairs of systems: the first ones, and how many there are beyond."""
        by_kind: dict[str, list[Note]] = {}
        for note in notes:
            by_kind.setdefault(note.kind, []).append(note)
        for kind, found in by_kind.items():
            yield from found[:MOST_TOLD]
            further = len(found) - MOST_TOLD
            if further > 0:
                yield Note(kind, further, f"The same holds of {_plural(further, 'further pair')} of systems in {self._name(m)}.")

    # --- queries -----------------------------------------------------------------------------------------------------------------

    def _left_out(self) -> Iterator[Note]:
        for name, out in self.aligned.left_out.items():
            named = ", ".join(map(str, out.examples)) + (", …" if out.count > len(out.examples) else "")
            yield Note(
                "left_out", out.count, f"{_plural(out.count, 'query')} of {name} left out, since not all systems have them: {named}."
            )

    def _skipped(self) -> Iterator[Note]:
        for m in self.tested:
            count = int(np.isnan(self.aligned.values[:, m]).any(axis=0).sum())
            if count:
                yield Note("skipped", count, f"{_plural(count, 'query')} without a value of {self._name(m)} in some system left out of it.")

    def _family(self) -> Iterator[Note]:
        if not self.setting.named:
            yield Note(
                "no_primary",
                len(self.tested),
                f"No metric was named as the one that decides (primary=), so all are tested and p is corrected over {self.setting.family}.",
            )

    def _resamples(self) -> Iterator[Note]:
        """Whether p can be small enough at all."""
        setting = self.setting
        least = setting.n_comparisons / (setting.n_resamples + 1)
        many = any(each.won + each.lost > MOST_ENUMERATED for each in self.differences)
        if setting.sampled and many and least > setting.level:
            needed = math.ceil(setting.n_comparisons / setting.level)
            yield Note(
                "few_resamples",
                setting.n_resamples,
                f"Of {setting.n_resamples:,} resamples no p is below {1 / (setting.n_resamples + 1):.2g}, which corrected over "
                f"{setting.n_comparisons:,} comparisons is {min(least, 1):.2g}: no difference can be seen. Ask for "
                f"n_resamples={needed} or more, or for another test.",
            )

    def _few_units(self) -> Iterator[Note]:
        n = self.setting.n_units
        if n == 1:
            yield Note("few_queries", n, f"One {self._unit()} has no spread: there is no interval, and no difference can be seen.")
        elif n < FEW_QUERIES:
            number = _plural(n, self._unit())
            yield Note("few_queries", n, f"{number} can show large differences only, and an interval of so few is a rough guess.")

    def _unit(self) -> str:
        return "query" if self.setting.n_units == self.aligned.n_queries else "cluster"

    def _few_changes(self, m: int) -> Iterator[Note]:
        return self._told(self._each_few_changes(m), m)

    def _each_few_changes(self, m: int) -> Iterator[Note]:
        for found in self._of(m):
            changed = found.won + found.lost
            if 0 < changed < FEW_VALUES <= found.n_queries:
                yield Note(
                    "few_changes",
                    changed,
                    f"{found.system} and {found.baseline} differ on {_plural(changed, 'query')} of {found.n_queries} in {found.metric}: "
                    f"with fewer than {FEW_VALUES} the interval may be too narrow ({ACHIEVED}).",
                )

    def _few_values(self, m: int) -> Iterator[Note]:
        """The system whose mean rests on the fewest queries."""
        values = self.aligned.values[:, m]
        filled = np.count_nonzero(np.nan_to_num(values), axis=1)
        s = int(filled.argmin())
        if 0 < filled[s] < FEW_VALUES <= values.shape[1]:
            yield Note(
                "few_values",
                int(filled[s]),
                f"{self._name(m)} of {self.aligned.names[s]} is 0 on all but {_plural(int(filled[s]), 'query')} of {values.shape[1]:,}: "
                f"with fewer than {FEW_VALUES} the interval of its mean may be too narrow ({ACHIEVED}).",
            )

    def _without_spread(self, m: int) -> Iterator[Note]:
        return self._told(self._each_without_spread(m), m)

    def _each_without_spread(self, m: int) -> Iterator[Note]:
        where = "query" if self.aligned.weights is None else "query of any weight"
        for found in self._of(m):
            pair = f"{found.system} and {found.baseline}"
            if not found.won + found.lost:
                yield Note("identical", found.tied, f"{pair} have the same {found.metric} on every query: p is 1.")
            elif found.difference.standard_error == 0:
                yield Note(
                    "no_spread",
                    found.n_queries,
                    f"{pair} differ by the same {found.difference.estimate:+.4f} in {found.metric} on every {where}: there is no spread, "
                    "so t, effect size and interval say nothing; p is that of sign flips.",
                )

    # --- metrics -----------------------------------------------------------------------------------------------------------------

    def _moved(self, m: int, bounds: list[tuple[float, float] | None]) -> Iterator[tuple[Difference, float, float]]:
        """Differences that could move by more than they are, with the least and the greatest that they could be."""
        for found in self._of(m):
            one, other = (bounds[self.aligned.names.index(name)] for name in (found.baseline, found.system))
            if one is None or other is None:
                continue
            least, greatest = other[0] - one[1], other[1] - one[0]
            d = found.difference.estimate
            if max(greatest - d, d - least) > abs(d) and greatest - least > 1e-12:
                yield found, least, greatest

    def _ties(self, m: int) -> Iterator[Note]:
        tied = max((note.count for each in self.aligned.evaluations for note in each.notes if note.kind == "ties"), default=0)
        bounds = [self._bounds(s, m, ("low", "high")) for s in range(len(self.aligned.names))]
        if tied and None in bounds:
            words = "evaluate with bounds=True to learn whether their order could turn the result"
            yield Note("ties", tied, f"{_plural(tied, 'query')} with equal scores: {words}.")
        moved = (
            Note(
                "ties",
                tied,
                f"Equal scores could move more than is at stake: by their order alone {found.system} minus {found.baseline} in "
                f"{found.metric} lies between {least:+.4f} and {greatest:+.4f}.",
            )
            for found, least, greatest in self._moved(m, bounds)
        )
        yield from self._told(moved, m)

    def _bounds(self, s: int, m: int, sides: tuple[str, str]) -> tuple[float, float] | None:
        """The mean of both sides of a system's bounds, where it was evaluated with them; the lesser first."""
        evaluation, rows = self.aligned.evaluations[s], self.aligned.rows[s]
        if evaluation.bounds is None:
            return None
        column = evaluation.metrics.index(self.aligned.metrics[m])
        values = {"values": evaluation.values} | vars(evaluation.bounds)
        low, high = sorted(_mean(values[side][rows, column], self.aligned.weights) for side in sides)
        return low, high

    def _unjudged(self, m: int) -> Iterator[Note]:
        """What unjudged documents could do, by the bounds where there are any, else the share of them, where Judged was asked for."""
        bounds = [self._bounds(s, m, ("values", "if_relevant")) for s in range(len(self.aligned.names))]
        moved = (
            Note(
                "unjudged",
                found.n_queries,
                f"Documents that nobody judged could move more than is at stake: as all of one system's are relevant and none of the "
                f"other's, {found.system} minus {found.baseline} in {found.metric} lies between {least:+.4f} and {greatest:+.4f}.",
            )
            for found, least, greatest in self._moved(m, bounds)
        )
        yield from self._told(moved, m)
        for s, (name, evaluation) in enumerate(zip(self.aligned.names, self.aligned.evaluations, strict=True)):
            column = _judged_column(evaluation, self.aligned.metrics[m])
            if column is None or bounds[s] is not None:
                continue
            judged = _mean(evaluation[evaluation.names[column]][self.aligned.rows[s]], self.aligned.weights)
            if judged < 1:
                share = 1 - judged
                yield Note(
                    "unjudged",
                    round(share * 100),
                    f"{_percent(share)} of the documents that {evaluation.names[column]} looks at are unjudged in {name}, and count as not "
                    f"relevant in {self._name(m)}: a system that finds what nobody judged looks worse than it is.",
                )

    def _cutoff(self, m: int) -> Iterator[Note]:
        metric = self.aligned.metrics[m]
        k = metric.k
        short = _note_count(self.aligned.evaluations, "k_beyond_list")
        n = min(each.n_queries for each in self.aligned.evaluations)
        if k is not None and not isinstance(k, Fraction) and short > n / 2 and _is_longest(metric, self.aligned.metrics):
            yield Note(
                "long_cutoff",
                short,
                f"{short} of {n} lists are shorter than the cutoff of {self._name(m)}: it judges whole lists there, whatever the k.",
            )
        if metric.family == "R" and (k is None or (not isinstance(k, Fraction) and k >= DEEP)):
            depth = "the whole list" if k is None else f"rank {k}"
            yield Note(
                "deep_recall",
                0,
                f"{self._name(m)} counts what is found down to {depth}, where no user looks: it says what a re-ranker could work with, "
                "not how good a ranking is.",
            )

    def _nothing_to_find(self, m: int) -> Iterator[Note]:
        metric = self.aligned.metrics[m]
        count = max(each.no_relevant[each.metrics.index(metric)] for each in self.aligned.evaluations)
        rule = getattr(metric, "no_relevant", None)
        if count and rule in ("zero", "one"):
            value = {"zero": "0", "one": "1"}[rule]
            yield Note(
                "no_relevant",
                count,
                f"{_plural(count, 'query')} with nothing to find count as {value} in {self._name(m)} of every system: they shrink each "
                "difference and never tell systems apart (no_relevant='skip' leaves them out).",
            )

    def _saturated(self, m: int) -> Iterator[Note]:
        values = self.aligned.values[:, m]
        if not _at_most_one(values):
            return
        with np.errstate(invalid="ignore"):
            perfect = np.nanmean((values >= 1 - 1e-12).all(axis=0))
            means = np.nanmean(values, axis=1)
        if means.min() >= SATURATED or perfect >= SATURATED:
            yield Note(
                "saturated",
                round(float(perfect) * values.shape[1]),
                f"{self._name(m)} is close to its largest value: the lowest mean is {means.min():.4f}, and every system is perfect on "
                f"{_percent(float(perfect))} of the queries. Another metric or harder queries would tell more.",
            )

    def _name(self, m: int) -> str:
        return self.aligned.metric_names[m]

    def _of(self, m: int) -> list[Difference]:
        return [each for each in self.differences if each.metric == self._name(m)]


def _judged_column(evaluation: Evaluation, metric: Metric) -> int | None:
    """The Judged metric whose cutoff comes nearest to that of a metric, from above if there is one."""
    judged = [(i, each.k) for i, each in enumerate(evaluation.metrics) if each.family == "Judged" and metric.family != "Judged"]
    if not judged:
        return None
    wanted: Any = metric.k if isinstance(metric.k, int) else 10**9
    return min(judged, key=lambda pair: abs((pair[1] if isinstance(pair[1], int) else 10**9) - wanted))[0]


def _is_longest(metric: Metric, metrics: Sequence[Metric]) -> bool:
    """Whether the engine's count of short lists is about this metric's cutoff: it counts for the longest."""
    others = [each.k for each in metrics if isinstance(each.k, int)]
    return isinstance(metric.k, int) and metric.k >= max(others)


def _note_count(evaluations: Sequence[Evaluation], kind: str) -> int:
    return max((note.count for each in evaluations for note in each.notes if note.kind == kind), default=0)


def _mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    there = ~np.isnan(values)
    return float(np.average(values[there], weights=None if weights is None else weights[there])) if there.any() else float("nan")


def _at_most_one(values: np.ndarray) -> bool:
    there = values[~np.isnan(values)]
    return bool(there.size) and bool((there >= 0).all()) and bool((there <= 1 + 1e-9).all())


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _plural(count: int, what: str) -> str:
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else many}"

"""`Comparison`: what `compare` returns."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.comparison.corrections import TITLES
from fastrank.comparison.findings import (
    BETTER,
    IDENTICAL,
    WORSE,
    Agreement,
    Difference,
    Discrimination,
    Mover,
    Planning,
    SliceDifference,
)
from fastrank.comparison.significance import TESTS
from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.evaluation import to_json

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.comparison.alignment import LeftOut
    from fastrank.comparison.intervals import Interval
    from fastrank.comparison.many import Anova
    from fastrank.convention import Convention
    from fastrank.evaluation import Note
    from fastrank.metrics.base import Metric

FORMAT = 1
# Systems named in a sentence, and pairs of systems listed in a table; with more of them those of the best system are.
MOST_NAMED = 6
MOST_LISTED = 30


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """Systems on the same queries, and what may be concluded.

    Attributes
    ----------
    systems, metrics, names
        Names of the systems; the metrics and the name of each.
    primary
        The metric that decides; None: all are tested.
    means
        Per metric and system, the mean with its interval.
    differences
        Per metric and pair of systems: `Difference`, with p and verdict where the metric is tested.
    slices, planning, anova, agreement, discrimination
        Where; how many queries it takes; the analysis of variance (test="anova"); between metrics, and of metrics (three systems or more).
    left_out
        Per system, the queries that not all systems have.
    notes
        What to know before concluding.
    n_comparisons
        How many comparisons p is corrected over.
    query_ids, values, weights
        The common queries; float64[n_systems, n_metrics, n_queries].
    verdict
        The conclusion in words.
    """

    systems: tuple[str, ...]
    metrics: tuple[Metric, ...]
    names: tuple[str, ...]
    conventions: tuple[Convention, ...]
    primary: str | None
    baseline: str | None
    test: str
    correction: str
    n_comparisons: int
    interval: str
    confidence: float
    n_resamples: int
    seed: int
    cluster: str | None
    n_queries: int
    n_units: int
    left_out: dict[str, LeftOut]
    means: dict[str, dict[str, Interval]]
    differences: tuple[Difference, ...]
    slices: tuple[SliceDifference, ...]
    planning: tuple[Planning, ...]
    anova: dict[str, Anova]
    agreement: tuple[Agreement, ...]
    discrimination: tuple[Discrimination, ...]
    notes: tuple[Note, ...]
    query_ids: pa.Array
    values: np.ndarray
    weights: np.ndarray | None

    # --- in words ----------------------------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """What may be concluded, a sentence a tested pair and metric; many systems in one sentence a metric."""
        return " ".join(self.sentences())

    def sentences(self) -> list[str]:
        """The verdict, sentence by sentence."""
        tested = [each for each in self.differences if each.verdict is not None]
        metrics = list(dict.fromkeys(each.metric for each in tested))
        if len(self.systems) == 2:
            return [sentence for found in tested for sentence in self._pair(found)]
        return [sentence for name in metrics for sentence in self._many(name, [each for each in tested if each.metric == name])]

    def _pair(self, found: Difference) -> list[str]:
        """One pair: the finding, and where nothing was seen what could have been."""
        if found.verdict == IDENTICAL:
            return [f"{found.system} and {found.baseline} have the same {found.metric} on {_all_queries(found.n_queries)}."]
        d = found.difference
        span = "no interval" if math.isnan(d.low) else f"{100 * self.confidence:g}% interval {_end(d.low)} to {_end(d.high)}"
        numbers = (
            f"{found.mean_system:.4f} against {found.mean_baseline:.4f}, {d.estimate:+.4f} ({span}), {p_text(found.p_corrected)} by "
            f"{self.method()} on {_queries(found.n_queries)}"
        )
        if found.verdict in (BETTER, WORSE):
            return [f"{found.system} is {found.verdict} than {found.baseline} on {found.metric}: {numbers}."]
        sentence = f"{found.system} and {found.baseline} are not told apart on {found.metric}: {numbers}."
        return [sentence, *(self._outlook(plan) for plan in self.planning if _same(plan, found) and plan.sd > 0)]

    def _outlook(self, plan: Planning) -> str:
        shown = f"These queries would show a difference of {plan.smallest:.4f} with {100 * plan.power:g}% power"
        if plan.needed is None or plan.needed <= plan.n_queries:
            return f"{shown}."
        return f"{shown}; one of {abs(plan.difference):.4f} takes about {about(plan.needed)} queries."

    def _many(self, name: str, tested: list[Difference]) -> list[str]:
        metric = self.metrics[self.names.index(name)]
        sign = 1 if metric.higher_is_better else -1
        if self.baseline is not None:
            return [self._against(self.baseline, name, tested)]
        if all(each.verdict == IDENTICAL for each in tested):
            return [f"{_list(list(self.systems))} have the same {name} on {_all_queries(tested[0].n_queries)}."]
        ranked = sorted(self.systems, key=lambda system: -sign * self.means[name][system].estimate)
        best = ranked[0]
        apart = {frozenset((each.baseline, each.system)) for each in tested if each.verdict in (BETTER, WORSE)}
        beaten = [other for other in ranked[1:] if frozenset((best, other)) in apart]
        rest = [other for other in ranked[1:] if other not in beaten]
        parts = [words + _list(names) for words, names in (("better than ", beaten), ("not told apart from ", rest)) if names]
        family = f"{len(apart)} of {len(tested)} pairs of systems are told apart by {self.method()} on {_queries(tested[0].n_queries)}"
        return [f"{best} has the best {name} ({self.means[name][best].estimate:.4f}): {', '.join(parts)}.", f"{family}."]

    def _against(self, baseline: str, name: str, tested: list[Difference]) -> str:
        words = {BETTER: "better: ", WORSE: "worse: ", "open": "not told apart: ", IDENTICAL: "identical: "}
        found = {word: [each.system for each in tested if each.verdict == word] for word in words}
        parts = [words[word] + _list(systems) for word, systems in found.items() if systems]
        return f"Against {baseline} on {name}, by {self.method()} on {_queries(tested[0].n_queries)}: {'; '.join(parts)}."

    def method(self) -> str:
        """The test and the correction, as a sentence has them."""
        title = TESTS[self.test].title
        if self.n_comparisons == 1:
            return title
        correction = TITLES["bonferroni" if TESTS[self.test].over_pairs else self.correction]
        return f"{title} with {correction} over {self.n_comparisons} comparisons"

    def listed(self, metric: str) -> set[tuple[str, str]]:
        """The pairs (baseline, system) that tables list for a metric: all, or, where they are too many, those of its best system."""
        pairs = {(each.baseline, each.system) for each in self.differences if each.metric == metric}
        if len(pairs) <= MOST_LISTED or self.baseline is not None:
            return pairs
        sign = 1 if self.metrics[self._metric(metric)].higher_is_better else -1
        best = max(self.means[metric], key=lambda system: sign * self.means[metric][system].estimate)
        return {pair for pair in pairs if best in pair}

    # --- queries -----------------------------------------------------------------------------------------------------------------

    def movers(
        self, baseline: str | None = None, system: str | None = None, *, metric: str | None = None, n: int = 10, only: str | None = None
    ) -> list[Mover]:
        """The queries that moved most between two systems, the largest movement first; queries that did not move are left out.

        By default between the first pair compared, on the primary (or first) metric. `only`: "gains" or "losses" of the system.
        InputError for an unknown name.
        """
        first = self.differences[0]
        i = self._system(first.baseline if baseline is None else baseline)
        j = self._system(first.system if system is None else system)
        m = self._metric(metric or self.primary or self.names[0])
        one, other = self.values[i, m], self.values[j, m]
        moved = other - one if self.metrics[m].higher_is_better else one - other
        moved[~(np.abs(moved) > 1e-12)] = 0.0
        if only is not None:
            moved = np.maximum(moved if one_of("only", only, ("gains", "losses")) == "gains" else -moved, 0.0)
        places = [int(q) for q in np.argsort(-np.abs(moved), kind="stable")[:n] if moved[q]]
        return [Mover(self.query_ids[q].as_py(), q, float(one[q]), float(other[q])) for q in places]

    def _system(self, name: str) -> int:
        if name not in self.systems:
            raise InputError(f"{name!r} is not among the systems: {', '.join(self.systems)}.")
        return self.systems.index(name)

    def _metric(self, name: str) -> int:
        if name not in self.names:
            raise InputError(f"{name!r} is not among the metrics: {', '.join(self.names)}.")
        return self.names.index(name)

    # --- out ---------------------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single queries, as plain dicts and lists: settings, means, differences, verdict, notes, formulas."""
        settings = ("primary", "baseline", "cluster", "test", "correction", "n_comparisons", "interval", "confidence")
        return {
            "format": FORMAT,
            "systems": list(self.systems),
            "n_queries": self.n_queries,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            **{name: getattr(self, name) for name in settings},
            "verdict": self.verdict,
            "metrics": [
                {"name": name, "full_name": str(metric), "formula": metric.formula, "source": metric.source, "watched": self.watched(name)}
                for name, metric in zip(self.names, self.metrics, strict=True)
            ],
            "conventions": [convention.name for convention in self.conventions],
            "means": {name: {system: _plain(each) for system, each in systems.items()} for name, systems in self.means.items()},
            "differences": [_plain(each) for each in self.differences],
            "slices": [{"by": each.column, "value": each.value} | _plain(each.found) for each in self.slices],
            "planning": [_plain(each) for each in self.planning],
            "anova": {name: _plain(each) for name, each in self.anova.items()},
            "agreement": [_plain(each) for each in self.agreement],
            "discrimination": [_plain(each) | {"share": each.share} for each in self.discrimination],
            "left_out": {name: _plain(each) for name, each in self.left_out.items()},
            "notes": [_plain(note) for note in self.notes],
        }

    @property
    def deciding(self) -> Metric:
        """The primary metric; the first one where none was named."""
        return self.metrics[self._metric(self.primary or self.names[0])]

    def watched(self, name: str) -> bool:
        """Whether a metric is shown without a verdict."""
        return self.primary is not None and name != self.primary

    def to_json(self) -> str:
        """`to_dict` as strict JSON; NaN is null."""
        return to_json(self.to_dict())

    def records(self) -> list[dict[str, Any]]:
        """A flat record per metric, pair and slice, all with the same fields."""
        sliced = bool(self.slices)
        whole = [({"by": None, "value": None} if sliced else {}) | _record(each) for each in self.differences]
        slices = [
            {"by": each.column, "value": "null" if each.value is None else str(each.value)} | _record(each.found) for each in self.slices
        ]
        return whole + slices

    def to_arrow(self) -> pa.Table:
        """`records` as an Arrow table; the schema's metadata holds, under "fastrank", the rest as JSON."""
        import pyarrow as pa

        table = pa.Table.from_pylist(self.records())
        # A column of nothing but None would have no type.
        numbers = ("p", "p_corrected")
        fields = [pa.field(f.name, pa.float64()) if f.name in numbers else f for f in table.schema]
        words = ("by", "value", "verdict")
        fields = [pa.field(f.name, pa.string()) if f.name in words else f for f in fields]
        return table.cast(pa.schema(fields, metadata={"fastrank": to_json(self.to_dict(), indent=None)}))

    def __repr__(self) -> str:
        from fastrank.report.compared import comparison_text

        return comparison_text(self)

    def _repr_html_(self) -> str:
        from fastrank.report.compared import comparison_text

        return comparison_text(self, "html")

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure: the forest plot of the differences, and those of single queries; of many systems every pair that is tested.

        `dark` draws it for a dark background. Needs matplotlib (`pip install 'fastrank-metrics[plot]'`); InputError where it is missing.
        """
        from fastrank.report.plots import comparison_figure

        return comparison_figure(self, dark=dark)

    def to_html(self, explain: Callable[[str, Any], Any] | None = None, *, title: str | None = None) -> str:
        """A page that needs nothing beside itself: plots, tables, movers, notes and formulas, in light and dark.

        `explain(system, query_id)` may give the `Worked` value of a query (as `fr.explain` returns it), or None; it is asked for the
        queries that moved most, and the page links them to it.
        """
        from fastrank.report.page import comparison_page

        return comparison_page(self, explain, title)

    def save_html(self, path: str | Path, explain: Callable[[str, Any], Any] | None = None, *, title: str | None = None) -> None:
        """Write `to_html` to a file, which appears whole or not at all."""
        from fastrank.io.atomic import write_text

        write_text(path, self.to_html(explain, title=title))


def _same(plan: Planning, found: Difference) -> bool:
    return (plan.metric, plan.baseline, plan.system) == (found.metric, found.baseline, found.system)


def _list(names: list[str]) -> str:
    if len(names) > MOST_NAMED:
        names = [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} others"]
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + f" and {names[-1]}"


def _queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def _all_queries(count: int) -> str:
    return "the one query" if count == 1 else f"all {count:,} queries"


def _end(value: float) -> str:
    return f"{value:+.4f}".replace("inf", "∞")


def p_text(p: float | None) -> str:
    """p as a sentence has it: two digits that count."""
    assert p is not None
    if p >= 0.9995:
        return "p = 1"
    return f"p = {p:.2g}" if p >= 1e-300 else "p < 1e-300"


def about(count: int) -> str:
    """A large count in two digits, with thousands set apart."""
    digits = max(0, len(str(count)) - 2)
    return f"{round(count, -digits):,}"


def _record(found: Difference) -> dict[str, Any]:
    """A difference without nesting: difference, difference_low, difference_high, ratio, ..."""
    record: dict[str, Any] = {}
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        if field.name in ("difference", "ratio"):
            record |= {field.name: value.estimate, f"{field.name}_low": value.low, f"{field.name}_high": value.high}
            if field.name == "difference":
                record["standard_error"] = value.standard_error
        else:
            record[field.name] = value
    return record


def _plain(record: Any) -> dict[str, Any]:
    plain: dict[str, Any] = dataclasses.asdict(record)
    return plain

"""A comparison as text: a table for the terminal, Markdown, LaTeX, HTML, and JSON, CSV and TSV in full precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from fastrank.comparison.corrections import SOURCES, TITLES
from fastrank.comparison.findings import Difference, Planning, SliceDifference
from fastrank.comparison.outcome import Comparison, p_text
from fastrank.comparison.significance import TESTS
from fastrank.errors import InputError
from fastrank.report.drawing import Grid, Report, formulas, latex, markdown, notebook, separated, show_value, terminal

if TYPE_CHECKING:
    from fastrank.comparison.many import Variation

INTERVALS = {
    "t": ("t interval", "Student, Biometrika 1908"),
    "percentile": ("percentile bootstrap", "Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13"),
    "bca": ("BCa bootstrap", "Efron, JASA 1987: percentiles corrected for bias and skew"),
    "studentised": ("studentised bootstrap", "Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 12"),
}
N_MOVERS = 5


def comparison_text(comparison: Comparison, form: str = "table", *, stream: TextIO | None = None) -> str:
    """A comparison as text that ends in no line break.

    `form` is one of `FORMS`, or "html". `stream` is where the text will be written: its width and colours are used where it is a
    terminal. InputError where the form is not known.
    """
    if form not in _WRITERS:
        raise InputError(f"format must be one of {', '.join(map(repr, FORMS))}, not {form!r}.")
    return _WRITERS[form](comparison, stream).rstrip("\n")


def report_of(comparison: Comparison) -> Report:
    """All of it, ready to be drawn."""
    return Report(list(grids(comparison)), explanations(comparison), [note.message for note in comparison.notes], comparison.sentences())


# --- tables ---------------------------------------------------------------------------------------------------------------------


def grids(comparison: Comparison) -> Iterator[Grid]:
    """The tables: means, differences, slices, planning, movers, and what only many systems have."""
    yield means(comparison)
    yield from differences(comparison)
    yield from slices(comparison)
    if comparison.planning:
        yield planning(comparison)
    for name, table in comparison.anova.items():
        yield anova(name, (table.systems, table.queries, table.residual))
    if comparison.discrimination:
        yield discrimination(comparison)
    if comparison.agreement:
        yield agreement(comparison)
    if len(comparison.systems) == 2:
        yield from movers(comparison)


def means(comparison: Comparison) -> Grid:
    """The mean of each metric and system, its interval below it."""
    conventions = dict.fromkeys(convention.name for convention in comparison.conventions)
    drawn = f"{comparison.n_queries} queries" + (
        "" if comparison.cluster is None else f" in {comparison.n_units} clusters by {comparison.cluster}"
    )
    title = f"{len(comparison.systems)} systems on {drawn}, convention {', '.join(conventions)}, mean and {interval_title(comparison)}"
    rows = [
        [labelled(comparison, name), *(f"{number(each.estimate)}\n{span(each.low, each.high)}" for each in systems.values())]
        for name, systems in comparison.means.items()
    ]
    return Grid(title, ["metric", *comparison.systems], rows)


def differences(comparison: Comparison) -> Iterator[Grid]:
    """Two systems: a row a metric. More: a table of pairs for each tested metric, and one for those watched."""
    if len(comparison.systems) == 2:
        found = comparison.differences
        title = f"{found[0].system} minus {found[0].baseline}"
        yield _pairs(comparison, title, "metric", [(labelled(comparison, each.metric), each) for each in found])
        return
    for name in comparison.names:
        if not comparison.watched(name):
            own = listed(comparison, name)
            yield _pairs(
                comparison, f"{name}, {differences_title(comparison, name, len(own))}", "pair", [(pair(each), each) for each in own]
            )
    watched = [name for name in comparison.names if comparison.watched(name)]
    if watched:
        by_pair: dict[str, list[str]] = {}
        shown = comparison.listed(comparison.primary or comparison.names[0])
        for each in comparison.differences:
            if each.metric in watched and (each.baseline, each.system) in shown:
                d = each.difference
                by_pair.setdefault(pair(each), []).append(f"{signed(d.estimate)}\n{span(d.low, d.high, signed)}")
        title = f"watched: difference and {interval_title(comparison)}, without a verdict"
        yield Grid(title, ["pair", *watched], [[name, *cells] for name, cells in by_pair.items()])


def listed(comparison: Comparison, metric: str) -> list[Difference]:
    """The differences in a metric that tables list."""
    shown = comparison.listed(metric)
    return [each for each in comparison.differences if each.metric == metric and (each.baseline, each.system) in shown]


def differences_title(comparison: Comparison, metric: str, n: int) -> str:
    """What the differences of many systems are called, n of which are listed; which these are where not all."""
    n_all = sum(each.metric == metric for each in comparison.differences)
    return "differences of systems" + ("" if n == n_all else f": {n} of {n_all} pairs, those of the best system")


def _pairs(comparison: Comparison, title: str, what: str, rows: Sequence[tuple[str, Difference]]) -> Grid:
    header = [what, "difference", interval_title(comparison), p_title(comparison), "verdict", "change", "won / tied / lost", "dz"]
    return Grid(title, header, [[name, *_cells(each)] for name, each in rows])


def _cells(found: Difference) -> list[str]:
    d = found.difference
    return [
        signed(d.estimate),
        span(d.low, d.high, signed),
        p_cell(found.p_corrected),
        verdict(found),
        percent(found.ratio.estimate),
        f"{found.won} / {found.tied} / {found.lost}",
        _decimals(found.effect_size, 2),
    ]


def slices(comparison: Comparison) -> Iterator[Grid]:
    """A table a `by` column: the difference on the queries of each value."""
    many = len(comparison.systems) > 2
    several = len({each.found.metric for each in comparison.slices}) > 1
    for column in dict.fromkeys(each.column for each in comparison.slices):
        own = [each for each in listed_slices(comparison) if each.column == column]
        names = [column] + ["metric"] * several + ["pair"] * many
        header = [*names, "queries", "difference", interval_title(comparison), "p (corrected)", "verdict"]
        rows = []
        for each in own:
            found, d = each.found, each.found.difference
            named = [show_value(each.value)] + [found.metric] * several + [pair(found)] * many
            cells = [str(found.n_queries), signed(d.estimate), span(d.low, d.high, signed), p_cell(found.p_corrected), verdict(found)]
            rows.append([*named, *cells])
        title = f"by {column}" + ("" if several else f", {own[0].found.metric}")
        if not many:
            title += f": {own[0].found.system} minus {own[0].found.baseline}"
        yield Grid(title, header, rows, n_names=len(names))


def listed_slices(comparison: Comparison) -> list[SliceDifference]:
    """The slices of the pairs that tables list."""
    shown = {name: comparison.listed(name) for name in comparison.names}
    return [each for each in comparison.slices if (each.found.baseline, each.found.system) in shown[each.found.metric]]


def planning(comparison: Comparison) -> Grid:
    """How many queries each tested difference takes."""
    first = comparison.planning[0]
    many, several = len(comparison.systems) > 2, len({each.metric for each in comparison.planning}) > 1
    names = ["metric"] * several + ["pair"] * (many or not several)
    header = [*names, "difference found", "spread (sd)", "smallest difference these queries show", "queries needed for the one found"]
    title = f"how many queries, at {100 * first.power:g}% power and level {first.level:.2g}"
    rows = []
    shown = {name: comparison.listed(name) for name in comparison.names}
    for plan in comparison.planning:
        if (plan.baseline, plan.system) not in shown[plan.metric]:
            continue
        named = [plan.metric] * several + [f"{plan.system} − {plan.baseline}"] * (many or not several)
        rows.append([*named, signed(plan.difference), number(plan.sd), number(plan.smallest), needed(plan)])
    return Grid(title, header, rows, n_names=len(names))


def needed(plan: Planning) -> str:
    """The queries it takes, as a table shows them."""
    return "–" if plan.needed is None else f"{plan.needed:,}"


def anova(name: str, rows: Sequence[Variation]) -> Grid:
    """An analysis of variance."""
    header = ["source", "sum of squares", "degrees", "mean square", "F", "p"]
    cells = [
        [row.source, number(row.sum_of_squares), str(row.degrees), f"{row.mean_square:.3g}", _decimals(row.f, 2), p_cell(row.p)]
        for row in rows
    ]
    return Grid(f"{name}, analysis of variance", header, cells)


def discrimination(comparison: Comparison) -> Grid:
    """Which metric tells systems apart."""
    header = ["metric", "pairs told apart", "share", "half of them from", "nine in ten from"]
    rows = [
        [
            each.metric,
            f"{each.n_apart} of {each.n_pairs}",
            f"{100 * each.share:.0f}%",
            *map(_queries, (each.queries_half, each.queries_most)),
        ]
        for each in comparison.discrimination
    ]
    title = "discriminative power: pairs of systems that a metric tells apart, and from how many queries on (expected)"
    return Grid(title, header, rows)


def _queries(count: int | None) -> str:
    return "never" if count is None else f"{count:,} queries"


def agreement(comparison: Comparison) -> Grid:
    """How alike the metrics order the systems."""
    names = comparison.names
    found = {(each.metric, each.other): each for each in comparison.agreement}
    rows = []
    for i, name in enumerate(names[:-1]):
        cells = ["" if j <= i else _agreed(found[name, other]) for j, other in enumerate(names) if j]
        rows.append([name, *cells])
    return Grid("agreement on the order of the systems: Kendall's tau, tau-AP below it", ["metric", *names[1:]], rows)


def _agreed(found: Any) -> str:
    return f"{_decimals(found.tau, 2)}\n{_decimals(found.tau_ap, 2)}"


def movers(comparison: Comparison, n: int = N_MOVERS) -> Iterator[Grid]:
    """The queries that moved most between two systems."""
    found = comparison.movers(n=n)
    if found:
        first = comparison.differences[0]
        metric = comparison.primary or comparison.names[0]
        rows = [[show_value(each.query_id), number(each.baseline), number(each.system), signed(each.difference)] for each in found]
        yield Grid(f"queries that moved most, {metric}", ["query", first.baseline, first.system, "difference"], rows)


# --- words and numbers ----------------------------------------------------------------------------------------------------------


def explanations(comparison: Comparison) -> list[tuple[str, str]]:
    """What the numbers are and where they come from: each metric's formula, the intervals, the test, the correction."""
    named = list(zip(comparison.names, comparison.metrics, strict=True))
    return formulas(named) + methods(comparison)


def methods(comparison: Comparison) -> list[tuple[str, str]]:
    """The statistics with their sources."""
    title, source = INTERVALS[comparison.interval]
    unit = "queries" if comparison.cluster is None else "clusters"
    resamples = f", {comparison.n_resamples:,} resamples of {unit}, seed {comparison.seed}" if comparison.interval != "t" else ""
    test = TESTS[comparison.test]
    entries = [(f"intervals: {title}{resamples}", source), (f"p: {test.title}, two-sided", test.source)]
    if comparison.n_comparisons > 1:
        correction = "bonferroni" if test.over_pairs else comparison.correction
        entries.append((f"{TITLES[correction]}, {comparison.n_comparisons} comparisons", SOURCES[correction]))
    dz = "mean of the differences over queries / their standard deviation"
    return [*entries, ("dz: effect size", f"{dz}: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988")]


def labelled(comparison: Comparison, name: str) -> str:
    """A metric's name; the one that decides is marked where others are watched."""
    return f"{name} (decides)" if name == comparison.primary and len(comparison.names) > 1 else name


def pair(found: Any) -> str:
    """A pair of systems as a difference."""
    return f"{found.system} − {found.baseline}"


def interval_title(comparison: Comparison) -> str:
    """What the intervals are called at the head of a column."""
    name = {"t": "", "bca": " (BCa)"}.get(comparison.interval, f" ({comparison.interval})")
    return f"{100 * comparison.confidence:g}% interval{name}"


def p_title(comparison: Comparison) -> str:
    """The head of a column of p-values."""
    return "p (corrected)" if comparison.n_comparisons > 1 else "p"


def verdict(found: Difference) -> str:
    """The verdict as a table shows it."""
    return {None: "watched", "open": "not told apart"}.get(found.verdict, str(found.verdict))


def p_cell(p: float | None) -> str:
    """p in a table."""
    return "" if p is None or math.isnan(p) else p_text(p).removeprefix("p = ").removeprefix("p ")


def number(value: float) -> str:
    """Four decimals."""
    return _decimals(value, 4)


def signed(value: float) -> str:
    """Four decimals and a sign."""
    return f"{value:+.4f}" if math.isfinite(value) else _decimals(value, 4)


def span(low: float, high: float, show: Callable[[float], str] = number) -> str:
    """An interval."""
    return "–" if math.isnan(low) or math.isnan(high) else f"[{show(low)}, {show(high)}]"


def percent(ratio: float) -> str:
    """A ratio of means as a change."""
    return "–" if math.isnan(ratio) else f"{100 * (ratio - 1):+.1f}%"


def _decimals(value: float, digits: int) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}" if math.isfinite(value) else "∞" if value > 0 else "−∞"


# --- forms ----------------------------------------------------------------------------------------------------------------------


def _drawn(draw: Callable[[Report, TextIO | None], str]) -> Callable[[Comparison, TextIO | None], str]:
    return lambda comparison, stream: draw(report_of(comparison), stream)


def _separated(comparison: Comparison, delimiter: str) -> str:
    records = [{name: "" if value is None else value for name, value in record.items()} for record in comparison.records()]
    return separated(records, delimiter)


FORMS = ("table", "json", "csv", "tsv", "markdown", "latex")
_WRITERS: dict[str, Callable[[Comparison, TextIO | None], str]] = {
    "table": _drawn(terminal),
    "json": lambda comparison, _stream: comparison.to_json(),
    "csv": lambda comparison, _stream: _separated(comparison, ","),
    "tsv": lambda comparison, _stream: _separated(comparison, "\t"),
    "markdown": _drawn(markdown),
    "latex": _drawn(latex),
    "html": _drawn(notebook),
}

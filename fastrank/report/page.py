"""The page: a comparison as one HTML file that needs nothing beside itself, for light, dark, narrow and paper."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.comparison.findings import BETTER, WORSE, Difference, Mover, SliceDifference
from fastrank.evaluation import to_json
from fastrank.report import compared
from fastrank.report.charts import MOST_BARS, curves, forest_axis, forest_row, forest_scale, histogram, sorted_differences
from fastrank.report.drawing import escape, show_value
from fastrank.report.markup import (
    Column,
    counted,
    effect,
    grid_table,
    percent,
    side,
    signed,
    table,
    verdict,
    worked_value,
)
from fastrank.report.style import CSS, SCRIPT

if TYPE_CHECKING:
    from fastrank.comparison.intervals import Interval
    from fastrank.comparison.outcome import Comparison

Explain = Callable[[str, Any], Any]

# Widths of a chart on a screen and on a telephone; the style sheet shows one of them.
_WIDTHS = (("wide", 1040), ("narrow", 344))
# Pairs of many systems whose queries are shown, and queries of each in either direction.
_MOST_PAIRS, _MOVERS = 3, 10
# Nothing is fetched, and nothing but what stands in the file runs.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{css}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header>{head}</header>
<nav aria-label="On this page"><ul>{listed}</ul></nav>
<main id="main" tabindex="-1">
{body}
</main>
<footer>{foot}</footer>
<script type="application/json" id="comparison">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def comparison_page(comparison: Comparison, explain: Explain | None = None, title: str | None = None) -> str:
    """The whole page. `explain(system, query_id)` may give a query's `Worked` value, to which the queries that moved most are linked."""
    return _Page(comparison, explain, title).text()


def queries_shown(comparison: Comparison) -> list[Any]:
    """The ids of the queries that the page lists as those that moved most, which `explain` is asked for."""
    page = _Page(comparison, None, None)
    return list(dict.fromkeys(each.query_id for found in page.pairs for side in page.movers(found) for each in side))


class _Page:
    """One page in the making."""

    def __init__(self, comparison: Comparison, explain: Explain | None, title: str | None) -> None:
        self.comparison, self.explain = comparison, explain
        two = len(comparison.systems) == 2
        self.title = title or (" against ".join(reversed(comparison.systems)) if two else f"{len(comparison.systems)} systems compared")
        self.metric = comparison.primary or comparison.names[0]
        self.better = 1 if comparison.metrics[comparison.names.index(self.metric)].higher_is_better else -1
        self.pairs = self._pairs()
        self.worked: dict[int, dict[str, Any]] = {}
        self.n_charts = 0

    def _pairs(self) -> list[Difference]:
        """The pairs whose queries are shown: all of few, else those of the best system with the ones that come next."""
        found = [each for each in self.comparison.differences if each.metric == self.metric]
        if len(found) <= _MOST_PAIRS:
            return found
        means = self.comparison.means[self.metric]
        best = max(means, key=lambda system: self.better * means[system].estimate)
        own = [each for each in found if best in (each.baseline, each.system)] or found
        return sorted(own, key=lambda each: abs(each.difference.estimate))[:_MOST_PAIRS]

    def text(self) -> str:
        """The file."""
        sections = [
            ("by-how-much", "By how much", self._differences()),
            ("notes", "Notes", self._notes()),
            ("means", "Means", self._means()),
            ("queries", "Query by query", self._queries()),
            ("movers", "Queries that moved most", self._movers()),
            ("where", "Where", self._slices()),
            ("how-many", "How many queries", self._planning()),
            ("metrics", "Which metric tells systems apart", self._metrics()),
            ("formulas", "Formulas and sources", self._formulas()),
            ("worked", "Worked queries", self._worked()),
        ]
        parts = [(name, title, "\n".join(body)) for name, title, body in sections]
        parts = [part for part in parts if part[2]]
        body = "\n".join(
            f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{inside}\n</section>' for name, title, inside in parts
        )
        return _PAGE.format(
            policy=_POLICY,
            title=escape(self.title),
            css=CSS,
            head=self._head(),
            listed="".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in parts),
            body=body,
            foot=self._foot(),
            data=to_json(self.comparison.to_dict(), indent=None).replace("<", "\\u003c"),
            script=SCRIPT,
        )

    # --- head and foot -----------------------------------------------------------------------------------------------------------

    def _head(self) -> str:
        comparison = self.comparison
        conventions = ", ".join(dict.fromkeys(each.name for each in comparison.conventions))
        clusters = "" if comparison.cluster is None else f" in {comparison.n_units:,} clusters by {comparison.cluster}"
        found = {each.verdict for each in comparison.differences if each.verdict is not None}
        kind = side(comparison.differences[0]) if len(found) == 1 and found <= {BETTER, WORSE} else ""
        sentences = "".join(f"<p>{escape(each)}</p>" for each in comparison.sentences())
        n = len(comparison.notes)
        hint = f"<p><a href='#notes'>{counted(n, 'note')} to read before you conclude</a></p>" if n else ""
        return (
            f"<h1>{escape(self.title)}</h1>"
            f"<p class='soft'>{escape(f'{comparison.n_queries:,} queries{clusters}, convention {conventions}')}</p>"
            f"<div class='verdict {kind}'>{sentences}{hint}</div>{self._tiles()}"
        )

    def _tiles(self) -> str:
        """The numbers of two systems at a glance."""
        if len(self.comparison.systems) > 2:
            return ""
        found = self.pairs[0]
        d = found.difference
        tiles = [
            (f"{self.metric}, difference", "", f"{signed(d.estimate)}<small>{percent(found.ratio.estimate)}</small>"),
            (compared.interval_title(self.comparison), "span", f"{signed(d.low)} to {signed(d.high)}"),
            (compared.p_title(self.comparison), "", compared.p_cell(found.p_corrected)),
            ("won / tied / lost", "", f"{found.won:,} / {found.tied:,} / {found.lost:,}"),
            ("effect size dz", "", effect(found.effect_size)),
        ]
        cells = "".join(f"<div><dt>{escape(name)}</dt><dd class='{kind}'>{value}</dd></div>" for name, kind, value in tiles)
        return f"<dl class='tiles'>{cells}</dl>"

    def _foot(self) -> str:
        settings = ", ".join(
            f"{name}={getattr(self.comparison, name)}" for name in ("test", "correction", "interval", "n_resamples", "seed")
        )
        return (
            f"<p>fastrank {escape(sys.modules['fastrank'].__version__)}; {escape(settings)}: the same data and seed give the same numbers. "
            "All of them stand, in full precision, in this file's element <code>#comparison</code> as JSON.</p>"
        )

    # --- tables with intervals ---------------------------------------------------------------------------------------------------

    def _plotted(self, found: Sequence[Difference], name: Callable[[Any], str], width: int = 220) -> list[Column]:
        """The columns of a forest plot of differences: the drawing, and the same in numbers. `name` says whose row it is."""
        scale = forest_scale([each.difference for each in found], zero=True, width=width)

        def drawn(each: Difference) -> str:
            d = each.difference
            words = f"{name(each)}: {signed(d.estimate)}, interval {signed(d.low)} to {signed(d.high)}"
            return forest_row(scale, d.estimate, d.low, d.high, side(each), zero=True, words=words)

        return [
            Column(forest_axis(scale), drawn, "plot"),
            Column("difference", lambda each: signed(each.difference.estimate)),
            Column(compared.interval_title(self.comparison), lambda each: compared.span(each.difference.low, each.difference.high, signed)),
        ]

    def _differences(self) -> Iterator[str]:
        comparison = self.comparison
        legend = "a square is the difference, the line its interval, the dotted line no difference"
        if len(comparison.systems) == 2:
            first = comparison.differences[0]
            caption = f"{first.system} minus {first.baseline}: {legend}"
            yield self._tested(caption, "metric", comparison.differences, lambda each: str(each.metric))
        else:
            for name in comparison.names:
                if not comparison.watched(name):
                    found = compared.listed(comparison, name)
                    yield self._tested(
                        f"{name}, {compared.differences_title(comparison, name, len(found))}: {legend}", "pair", found, compared.pair
                    )
        watched = [name for name in comparison.names if comparison.watched(name)]
        if watched:
            words = "decides. The other metrics are watched: shown with their movement, not tested."
            yield f"<p class='soft'>{escape(comparison.primary)} {words}</p>"
        if watched and len(comparison.systems) > 2:
            yield "<div class='pair'>"
            for name in watched:
                found = compared.listed(comparison, name)
                columns = [Column("pair", lambda each: escape(compared.pair(each))), *self._plotted(found, compared.pair, 110)]
                yield table(f"{name}, watched", columns, found)
            yield "</div>"

    def _tested(self, caption: str, what: str, found: Sequence[Difference], name: Callable[[Any], str]) -> str:
        decides = self.comparison.primary if what == "metric" and len(found) > 1 else None
        columns = [
            Column(what, lambda each: escape(name(each))),
            *self._plotted(found, name),
            Column(compared.p_title(self.comparison), lambda each: compared.p_cell(each.p_corrected)),
            Column("verdict", verdict, "word"),
            Column("change", lambda each: percent(each.ratio.estimate), "less"),
            Column("won / tied / lost", lambda each: f"{each.won} / {each.tied} / {each.lost}", "less"),
            Column("dz", lambda each: effect(each.effect_size), "less"),
        ]
        return table(caption, columns, found, lambda each: "decides" if each.metric == decides else "")

    def _means(self) -> Iterator[str]:
        yield "<div class='pair'>"
        for name, systems in self.comparison.means.items():
            scale = forest_scale(list(systems.values()), zero=False, width=150)

            def drawn(row: tuple[str, Interval], scale: Any = scale) -> str:
                system, each = row
                words = f"{system}: {compared.number(each.estimate)}, interval {compared.number(each.low)} to {compared.number(each.high)}"
                return forest_row(scale, each.estimate, each.low, each.high, "", zero=False, words=words)

            columns = [
                Column(escape(name), lambda row: escape(row[0])),
                Column(forest_axis(scale), drawn, "plot"),
                Column("mean", lambda row: compared.number(row[1].estimate)),
                Column(compared.interval_title(self.comparison), lambda row: compared.span(row[1].low, row[1].high)),
            ]
            yield table(f"{name} of each system", columns, list(systems.items()))
        yield (
            "</div><p class='soft'>Whether two systems differ cannot be read off these intervals, which overlap more than they need to: "
            "each query is hard or easy for both. The differences above take that into account.</p>"
        )

    def _slices(self) -> Iterator[str]:
        comparison = self.comparison
        many, several = len(comparison.systems) > 2, len({each.found.metric for each in comparison.slices}) > 1
        listed = compared.listed_slices(comparison)
        for by in dict.fromkeys(each.column for each in listed):
            own = [each for each in listed if each.column == by]
            name = _names(own)

            found = [each.found for each in own]
            columns = [
                Column(escape(by), _escaped(name)),
                *([Column("metric", lambda each: escape(each.metric), "word")] if several else []),
                *([Column("pair", lambda each: escape(compared.pair(each)), "word")] if many else []),
                *self._plotted(found, name, 160 if many else 220),
                Column("queries", lambda each: f"{each.n_queries:,}"),
                Column("p (corrected)", lambda each: compared.p_cell(each.p_corrected)),
                Column("verdict", verdict, "word"),
            ]
            yield table(f"by {by}" + ("" if several else f", {found[0].metric}") + ": p is corrected over all slices", columns, found)

    # --- queries -----------------------------------------------------------------------------------------------------------------

    def _figure(self, caption: str, draw: Callable[..., str], *what: Any) -> str:
        """A chart in two widths, of which the style sheet shows one. `draw` takes a name, a width, a title, and what there is to draw."""
        self.n_charts += 1
        drawn = "".join(
            draw(f"chart-{self.n_charts}-{kind}", width, caption, *what).replace("chart ", f"chart {kind} ", 1) for kind, width in _WIDTHS
        )
        return f"<figure><figcaption>{escape(caption)}</figcaption>{drawn}</figure>"

    def _queries(self) -> Iterator[str]:
        comparison = self.comparison
        m = comparison.names.index(self.metric)
        for found in self.pairs:
            one, other = (comparison.values[comparison.systems.index(name), m] for name in (found.baseline, found.system))
            there = np.flatnonzero(~np.isnan(one) & ~np.isnan(other))
            moved = other[there] - one[there]
            moved[np.abs(moved) <= 1e-12] = 0.0
            few = len(moved) <= MOST_BARS
            ids = [show_value(comparison.query_ids[int(q)].as_py()) for q in there] if few else []
            name = f"{found.system} minus {found.baseline}"
            if len(self.pairs) > 1:
                yield f"<h3>{escape(name)}</h3>"
            words = f"{found.won} queries won, {found.tied} tied, {found.lost} lost by {found.system} against {found.baseline}."
            caption = f"Difference in {self.metric} of each query, {name}, sorted" + ("; point at a bar to see its query" if few else "")
            yield self._figure(caption, sorted_differences, words, moved, self.better, ids)
            words = f"{found.baseline} as bars, {found.system} as a line; means {found.mean_baseline:.4f} and {found.mean_system:.4f}."
            series = [(found.baseline, one[there]), (found.system, other[there])]
            yield self._figure(f"Distribution of {self.metric} over queries", histogram, words, series)

    def movers(self, found: Difference) -> tuple[list[Mover], list[Mover]]:
        """The largest losses and the largest gains of a pair."""
        movers = functools.partial(self.comparison.movers, found.baseline, found.system, metric=self.metric, n=_MOVERS)
        return movers(only="losses"), movers(only="gains")

    def _movers(self) -> Iterator[str]:
        for found in self.pairs:
            losses, gains = self.movers(found)
            if not losses + gains:
                continue
            if len(self.pairs) > 1:
                yield f"<h3>{escape(found.system)} minus {escape(found.baseline)}</h3>"
            columns = [
                Column("query", functools.partial(self._query, found)),
                Column(escape(found.baseline), lambda each: compared.number(each.baseline)),
                Column(escape(found.system), lambda each: compared.number(each.system)),
                Column("difference", lambda each: signed(each.difference)),
            ]
            parts = (("losses", losses), ("gains", gains))
            tables = [table(f"largest {words} in {self.metric}", columns, some) for words, some in parts if some]
            yield f"<div class='pair'>{''.join(tables)}</div>"

    def _query(self, found: Difference, mover: Mover) -> str:
        """A query's id, linked to its worked values where there are any."""
        name = escape(mover.query_id)
        if self.explain is None:
            return name
        known = self.worked.setdefault(mover.place, {})
        for system in (found.baseline, found.system):
            if system not in known and (worked := self.explain(system, mover.query_id)) is not None:
                known[system] = worked
        return f"<a href='#q-{mover.place}'>{name}</a>" if known else name

    def _worked(self) -> Iterator[str]:
        for place, known in sorted(self.worked.items()):
            if known:
                columns = "".join(
                    f"<div class='work'><h3>{escape(system)}</h3>{worked_value(each)}</div>" for system, each in known.items()
                )
                query = escape(self.comparison.query_ids[place].as_py())
                values = ", ".join(f"{escape(system)} {each.value:.4f}" for system, each in known.items())
                yield f"<details id='q-{place}'><summary>{query}: {values}</summary><div class='pair'>{columns}</div></details>"

    # --- planning and metrics ----------------------------------------------------------------------------------------------------

    def _planning(self) -> Iterator[str]:
        comparison = self.comparison
        shown = [(each.metric, each.baseline, each.system) for each in self.pairs]
        for plan in comparison.planning:
            if (plan.metric, plan.baseline, plan.system) in shown and plan.sd > 0:
                name, aim = f"{plan.system} minus {plan.baseline}", f"{100 * plan.power:g}%"
                marks = [(plan.n_queries, f"these {plan.n_queries:,}")]
                if plan.needed is not None and abs(math.log(plan.needed / plan.n_queries)) > 0.05:
                    marks.append((plan.needed, f"{plan.needed:,} for {aim}"))
                caption = f"Chance of seeing a difference of {abs(plan.difference):.4f} in {self.metric}, by number of queries ({name})"
                words = f"Power of a paired test at level {plan.level:.2g}; differences spread by {plan.sd:.4f}. The dashed line is {aim}."
                yield self._figure(caption, curves, words, [(name, plan.curve())], marks, plan.power)
        if comparison.planning:
            yield grid_table(compared.planning(comparison))
            yield (
                "<p class='soft'>Read the curve as a plan for the next experiment, not as a second verdict on this one: it takes the "
                "difference and the spread found here for the true ones.</p>"
            )

    def _metrics(self) -> Iterator[str]:
        comparison = self.comparison
        for name, found in comparison.anova.items():
            yield grid_table(compared.anova(name, (found.systems, found.queries, found.residual)))
        if comparison.discrimination:
            yield grid_table(compared.discrimination(comparison))
            series = [(each.metric, each.curve) for each in comparison.discrimination if each.curve]
            caption = "Share of all pairs of systems that a metric tells apart, expected by number of queries"
            words = "One line a metric; the table above has the shares on these queries."
            yield self._figure(caption, curves, words, series, [(comparison.n_queries, f"these {comparison.n_queries:,}")], 0.5)
        if comparison.agreement:
            yield grid_table(compared.agreement(comparison))

    # --- words -------------------------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        if self.comparison.notes:
            yield f"<ul class='notes'>{''.join(f'<li>{escape(note.message)}</li>' for note in self.comparison.notes)}</ul>"

    def _formulas(self) -> Iterator[str]:
        named = zip(self.comparison.names, self.comparison.metrics, strict=True)
        entries = [(f"{name}: {metric}", f"{escape(metric.formula)}<br>", metric.source) for name, metric in named]
        entries += [(name, "", source) for name, source in compared.methods(self.comparison)]
        rows = (f"<dt>{escape(name)}</dt><dd>{formula}<small>{escape(source)}</small></dd>" for name, formula, source in entries)
        yield f"<dl class='formulas'>{''.join(rows)}</dl>"


def _names(slices: Sequence[SliceDifference]) -> Callable[[Any], str]:
    """From a slice's difference to the value that its queries share."""
    values = {id(each.found): show_value(each.value) for each in slices}
    return lambda found: values[id(found)]


def _escaped(name: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda row: escape(name(row))

"""The page: a comparison as one HTML file that needs nothing beside itself, for light, dark, narrow and paper."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fastrank import __version__
from fastrank.comparison.findings import BETTER, WORSE, Difference
from fastrank.comparison.outcome import Comparison, Mover
from fastrank.evaluation import to_json
from fastrank.report import compared
from fastrank.report.charts import (
    Scale,
    curves,
    forest_axis,
    forest_row,
    forest_scale,
    histogram,
    sorted_differences,
)
from fastrank.report.drawing import Grid, show_value
from fastrank.report.style import CSS, SCRIPT

Explain = Callable[[str, Any], Any]

# Widths of a chart on a screen and on a telephone; the style sheet shows one of them.
_WIDTHS = (("wide", 1000), ("narrow", 344))
# Pairs of many systems whose queries are shown, and queries of each in either direction.
_MOST_PAIRS, _MOVERS = 3, 10
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def comparison_page(comparison: Comparison, explain: Explain | None = None, title: str | None = None) -> str:
    """The whole page. `explain(system, query_id)` may give a query's `Worked` value, to which the queries that moved most are linked."""
    return _Page(comparison, explain, title).text()


def escape(value: Any) -> str:
    """Text that means itself in HTML."""
    return html.escape(show_value(value))


class _Page:
    """One page in the making."""

    def __init__(self, comparison: Comparison, explain: Explain | None, title: str | None) -> None:
        self.comparison, self.explain = comparison, explain
        self.title = title or " against ".join(reversed(comparison.systems[:2])) if len(comparison.systems) == 2 else title
        self.title = self.title or f"{len(comparison.systems)} systems compared"
        self.metric = comparison.primary or comparison.names[0]
        self.better = 1 if comparison.metrics[comparison.names.index(self.metric)].higher_is_better else -1
        self.pairs = self._pairs()
        self.linked: dict[int, list[tuple[str, Any]]] = {}
        self.n_charts = 0

    def _pairs(self) -> list[Difference]:
        """The pairs whose queries are shown: all of few, else those of the best system with the next ones."""
        found = [each for each in self.comparison.differences if each.metric == self.metric]
        if len(found) <= _MOST_PAIRS:
            return found
        means = self.comparison.means[self.metric]
        best = max(means, key=lambda system: self.better * means[system].estimate)
        return sorted((each for each in found if best in (each.baseline, each.system)), key=lambda each: abs(each.difference.estimate))[
            :_MOST_PAIRS
        ]

    def text(self) -> str:
        """The file."""
        sections = [
            ("by-how-much", "By how much", self._differences()),
            ("means", "Means", self._means()),
            ("queries", "Query by query", self._queries()),
            ("movers", "Queries that moved most", self._movers()),
            ("where", "Where", self._slices()),
            ("how-many", "How many queries", self._planning()),
            ("metrics", "Which metric tells systems apart", self._metrics()),
            ("worked", "Worked queries", self._worked()),
            ("notes", "Notes", self._notes()),
            ("formulas", "Formulas and sources", self._formulas()),
        ]
        parts = [(name, title, "\n".join(body)) for name, title, body in sections]
        parts = [part for part in parts if part[2]]
        listed = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title, _ in parts)
        body = "\n".join(
            f'<section aria-labelledby="{name}"><h2 id="{name}">{title}</h2>\n{inside}\n</section>' for name, title, inside in parts
        )
        data = to_json(self.comparison.to_dict(), indent=None).replace("<", "\\u003c")
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{html.escape(self.title or "")}</title>\n'
            f'<link rel="icon" href="data:,">\n<style>{CSS}</style>\n</head>\n<body>\n<a class="skip" href="#main">Skip to the results</a>\n'
            f"<header>{self._head()}</header>\n<nav aria-label='On this page'><ul>{listed}</ul></nav>\n"
            f'<main id="main" tabindex="-1">\n{body}\n</main>\n<footer>{self._foot()}</footer>\n'
            f'<script type="application/json" id="comparison">{data}</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n'
        )

    # --- head and foot -----------------------------------------------------------------------------------------------------------

    def _head(self) -> str:
        comparison = self.comparison
        conventions = ", ".join(dict.fromkeys(each.name for each in comparison.conventions))
        clusters = "" if comparison.cluster is None else f" in {comparison.n_units:,} clusters by {comparison.cluster}"
        about = f"{comparison.n_queries:,} queries{clusters}, convention {conventions}"
        found = [each.verdict for each in comparison.differences if each.verdict is not None]
        kind = found[0] if len(set(found)) == 1 and found[0] in (BETTER, WORSE) else "open"
        sentences = "".join(f"<p>{html.escape(each)}</p>" for each in comparison.sentences())
        warned = [note for note in comparison.notes if note.kind not in ("identical",)]
        hint = f'<p><a href="#notes">{_count(len(warned), "note")} to read before you conclude</a></p>' if warned else ""
        return (
            f'<h1>{html.escape(self.title or "")}</h1><p class="soft">{html.escape(about)}</p>'
            f'<div class="verdict {kind}">{sentences}{hint}</div>{self._tiles()}'
        )

    def _tiles(self) -> str:
        """The numbers of two systems at a glance."""
        if len(self.comparison.systems) > 2:
            return ""
        found = self.pairs[0]
        d = found.difference
        level = f"{100 * self.comparison.confidence:g}%"
        tiles = [
            (f"{self.metric}, difference", f"{signed(d.estimate)}<small>{percent(found.ratio.estimate)}</small>"),
            (f"{level} interval", f"{signed(d.low)} to {signed(d.high)}"),
            (compared.p_title(self.comparison), compared.p_cell(found.p_corrected)),
            ("won / tied / lost", f"{found.won:,} / {found.tied:,} / {found.lost:,}"),
            ("effect size dz", compared.number(found.effect_size)[:5]),
        ]
        cells = (f"<div><dt>{escape(name)}</dt><dd{' class=span' if ' to ' in value else ''}>{value}</dd></div>" for name, value in tiles)
        return f"<dl class='tiles'>{''.join(cells)}</dl>"

    def _foot(self) -> str:
        comparison = self.comparison
        settings = f"test={comparison.test}, correction={comparison.correction}, interval={comparison.interval}, n_resamples={comparison.n_resamples}"
        return (
            f"<p>fastrank {html.escape(__version__)}; {html.escape(settings)}, seed={comparison.seed}: the same data and seed give the same "
            "numbers. All of them stand, in full precision, in this file's element <code>#comparison</code> as JSON.</p>"
        )

    # --- tables with intervals ---------------------------------------------------------------------------------------------------

    def _differences(self) -> Iterator[str]:
        comparison = self.comparison
        groups = (
            [(f"{self.pairs[0].system} minus {self.pairs[0].baseline}", "metric", list(comparison.differences))]
            if len(comparison.systems) == 2
            else [
                (
                    name + (", watched: no verdict" if comparison.watched(name) else ""),
                    "pair",
                    [d for d in comparison.differences if d.metric == name],
                )
                for name in sorted(comparison.names, key=comparison.watched)
            ]
        )
        for title, what, found in groups:
            scale = forest_scale([end for each in found for end in (each.difference.low, each.difference.high)], zero=True)
            head = (
                f"<th scope='col' class='name'>{what}</th><th scope='col' class='plot'>{forest_axis(scale)}</th>"
                f"<th scope='col'>difference</th><th scope='col'>{compared.interval_title(comparison)}</th>"
                f"<th scope='col'>{compared.p_title(comparison)}</th><th scope='col' class='name'>verdict</th>"
                "<th scope='col' class='less'>change</th><th scope='col' class='less'>won / tied / lost</th><th scope='col' class='less'>dz</th>"
            )
            rows = "".join(self._difference_row(each, scale, each.metric if what == "metric" else compared.pair(each)) for each in found)
            yield _table(f"{title}: a square is the difference, the line its interval, and the dotted line no difference", head, rows)
        if len(comparison.names) > 1 and comparison.primary is not None:
            yield f"<p class='soft'>{escape(comparison.primary)} decides. The other metrics are watched: shown with their movement, not tested.</p>"

    def _difference_row(self, found: Difference, scale: Scale, name: str) -> str:
        d = found.difference
        kind = found.verdict if found.verdict in (BETTER, WORSE) else ""
        words = f"{name}: {signed(d.estimate)}, interval {signed(d.low)} to {signed(d.high)}"
        decides = found.metric == self.comparison.primary and len(self.comparison.systems) == 2 and len(self.comparison.names) > 1
        return (
            f"<tr{' class=decides' if decides else ''}><th scope='row'>{escape(name)}</th>"
            f"<td class='plot'>{forest_row(scale, d.estimate, d.low, d.high, kind or '', zero=True, words=words)}</td>"
            f"<td>{signed(d.estimate)}</td><td>{span(d.low, d.high, signed)}</td>"
            f"<td>{compared.p_cell(found.p_corrected)}</td><td class='word'>{_verdict(found)}</td>"
            f"<td class='less'>{percent(found.ratio.estimate)}</td><td class='less'>{found.won} / {found.tied} / {found.lost}</td>"
            f"<td class='less'>{compared.number(found.effect_size)[:5]}</td></tr>"
        )

    def _means(self) -> Iterator[str]:
        comparison = self.comparison
        yield "<div class='pair'>"
        for name, systems in comparison.means.items():
            scale = forest_scale([end for each in systems.values() for end in (each.low, each.high)], zero=False, width=150)
            head = (
                f"<th scope='col' class='name'>{escape(name)}</th><th scope='col' class='plot'>{forest_axis(scale)}</th>"
                f"<th scope='col'>mean</th><th scope='col'>{compared.interval_title(comparison)}</th>"
            )
            rows = ""
            for system, each in systems.items():
                words = f"{system}: {compared.number(each.estimate)}, interval {compared.number(each.low)} to {compared.number(each.high)}"
                rows += (
                    f"<tr><th scope='row'>{escape(system)}</th>"
                    f"<td class='plot'>{forest_row(scale, each.estimate, each.low, each.high, '', zero=False, words=words)}</td>"
                    f"<td>{compared.number(each.estimate)}</td><td>{span(each.low, each.high)}</td></tr>"
                )
            yield _table(f"{name} of each system", head, rows)
        yield (
            "</div><p class='soft'>Whether two systems differ cannot be read off these intervals, which overlap more than they need to: "
            "each query is hard or easy for both. The differences above take that into account.</p>"
        )

    def _slices(self) -> Iterator[str]:
        comparison = self.comparison
        many, several = len(comparison.systems) > 2, len({each.found.metric for each in comparison.slices}) > 1
        for column in dict.fromkeys(each.column for each in comparison.slices):
            own = [each for each in comparison.slices if each.column == column]
            scale = forest_scale([end for each in own for end in (each.found.difference.low, each.found.difference.high)], zero=True)
            more = ["metric"] * several + ["pair"] * many
            head = "".join(f"<th scope='col' class='name'>{escape(each)}</th>" for each in [column, *more])
            head += (
                f"<th scope='col' class='plot'>{forest_axis(scale)}</th><th scope='col'>queries</th><th scope='col'>difference</th>"
                f"<th scope='col'>{compared.interval_title(comparison)}</th><th scope='col'>p (corrected)</th><th scope='col' class='name'>verdict</th>"
            )
            rows = ""
            for each in own:
                found, d = each.found, each.found.difference
                kind = found.verdict if found.verdict in (BETTER, WORSE) else ""
                named = "".join(
                    f"<td class='word'>{escape(word)}</td>" for word in [found.metric] * several + [compared.pair(found)] * many
                )
                words = f"{show_value(each.value)}: {signed(d.estimate)}, interval {signed(d.low)} to {signed(d.high)}"
                rows += (
                    f"<tr><th scope='row'>{escape(each.value)}</th>{named}"
                    f"<td class='plot'>{forest_row(scale, d.estimate, d.low, d.high, kind or '', zero=True, words=words)}</td>"
                    f"<td>{found.n_queries:,}</td><td>{signed(d.estimate)}</td>"
                    f"<td>{span(d.low, d.high, signed)}</td><td>{compared.p_cell(found.p_corrected)}</td>"
                    f"<td class='word'>{_verdict(found)}</td></tr>"
                )
            yield _table(f"by {column}, {own[0].found.metric}: p is corrected over all slices", head, rows)

    # --- queries -----------------------------------------------------------------------------------------------------------------

    def _values(self, found: Difference) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of both systems on the queries that have them, and where those stand."""
        comparison = self.comparison
        m = comparison.names.index(found.metric)
        one, other = (comparison.values[comparison.systems.index(name), m] for name in (found.baseline, found.system))
        there = np.flatnonzero(~np.isnan(one) & ~np.isnan(other))
        return one[there], other[there], there

    def _queries(self) -> Iterator[str]:
        for found in self.pairs:
            one, other, there = self._values(found)
            moved = other - one
            moved[np.abs(moved) <= 1e-12] = 0.0
            few = len(moved) <= 300
            ids = [show_value(self.comparison.query_ids[int(q)].as_py()) for q in there] if few else []
            name = f"{found.system} minus {found.baseline}"
            if len(self.pairs) > 1:
                yield f"<h3>{escape(name)}</h3>"
            words = f"{found.won} queries won, {found.tied} tied, {found.lost} lost by {found.system} against {found.baseline} in {self.metric}."
            title = f"Difference in {self.metric} of each query, {name}"
            yield self._figure(
                f"{title}, sorted" + ("; point at a bar to see its query" if few else ""),
                lambda chart, width, moved=moved, ids=ids, title=title, words=words: sorted_differences(
                    chart, width, moved, self.better, ids, title, words
                ),
            )
            title = f"Distribution of {self.metric} over queries"
            words = f"{found.baseline} as bars, {found.system} as a line; means {found.mean_baseline:.4f} and {found.mean_system:.4f}."
            series = [(found.baseline, one), (found.system, other)]
            yield self._figure(
                title, lambda chart, width, series=series, title=title, words=words: histogram(chart, width, series, title, words)
            )

    def _figure(self, caption: str, draw: Callable[[str, int], str]) -> str:
        """A chart in two widths, one of which is shown."""
        self.n_charts += 1
        drawn = [
            draw(f"chart-{self.n_charts}-{kind}", width).replace('class="chart ', f'class="chart {kind} ', 1) for kind, width in _WIDTHS
        ]
        return f"<figure><figcaption>{escape(caption)}</figcaption>{''.join(drawn)}</figure>"

    def _movers(self) -> Iterator[str]:
        for found in self.pairs:
            movers = self.comparison.movers(found.baseline, found.system, metric=self.metric, n=self.comparison.n_queries)
            gains = [each for each in movers if each.difference * self.better > 0][:_MOVERS]
            losses = [each for each in movers if each.difference * self.better < 0][:_MOVERS]
            if not movers:
                continue
            if len(self.pairs) > 1:
                yield f"<h3>{escape(found.system)} minus {escape(found.baseline)}</h3>"
            tables = [
                self._mover_table(found, words, some) for words, some in (("largest losses", losses), ("largest gains", gains)) if some
            ]
            yield f"<div class='pair'>{''.join(tables)}</div>"

    def _mover_table(self, found: Difference, words: str, movers: Sequence[Mover]) -> str:
        head = (
            "<th scope='col' class='name'>query</th>"
            f"<th scope='col'>{escape(found.baseline)}</th><th scope='col'>{escape(found.system)}</th><th scope='col'>difference</th>"
        )
        rows = ""
        for each in movers:
            name = escape(each.query_id)
            if self._explained(each, found):
                name = f"<a href='#q-{each.place}'>{name}</a>"
            rows += (
                f"<tr><th scope='row'>{name}</th><td>{compared.number(each.baseline)}</td><td>{compared.number(each.system)}</td>"
                f"<td>{signed(each.difference)}</td></tr>"
            )
        return _table(f"{words} in {self.metric}", head, rows)

    def _explained(self, mover: Mover, found: Difference) -> bool:
        """Whether the query is worked out below, for both systems."""
        if self.explain is None:
            return False
        known = self.linked.setdefault(mover.place, [])
        for system in (found.baseline, found.system):
            if system not in [name for name, _ in known]:
                worked = self.explain(system, mover.query_id)
                if worked is not None:
                    known.append((system, worked))
        return bool(known)

    def _worked(self) -> Iterator[str]:
        for place, known in sorted(self.linked.items()):
            if known:
                columns = "".join(f"<div class='work'><h3>{escape(system)}</h3>{_work(worked)}</div>" for system, worked in known)
                query = escape(self.comparison.query_ids[place].as_py())
                values = ", ".join(f"{escape(system)} {worked.value:.4f}" for system, worked in known)
                yield f"<details id='q-{place}'><summary>{query}: {values}</summary><div class='pair'>{columns}</div></details>"

    # --- planning and metrics ----------------------------------------------------------------------------------------------------

    def _planning(self) -> Iterator[str]:
        plans = [each for each in self.comparison.planning if each.metric == self.metric and each.curve]
        shown = [(each.baseline, each.system) for each in self.pairs]
        for plan in plans:
            if (plan.baseline, plan.system) not in shown:
                continue
            name = f"{plan.system} minus {plan.baseline}"
            marks = [(plan.n_queries, f"these {plan.n_queries:,}")]
            if plan.needed is not None and abs(math.log(plan.needed / plan.n_queries)) > 0.05:
                marks.append((plan.needed, f"{plan.needed:,} for {100 * plan.power:g}%"))
            title = f"Chance of seeing a difference of {abs(plan.difference):.4f} in {self.metric} by number of queries ({name})"
            words = f"Power of a paired test at level {plan.level:.2g} where differences spread by {plan.sd:.4f}; the dashed line is {100 * plan.power:g}%."
            series = [(name, plan.curve)]
            yield self._figure(
                title,
                lambda chart, width, series=series, marks=marks, plan=plan, title=title, words=words: curves(
                    chart, width, series, marks, plan.power, title, words
                ),
            )
        if self.comparison.planning:
            yield _grid(compared.planning(self.comparison))
            yield (
                "<p class='soft'>Read the curve as a plan for the next experiment, not as a second verdict on this one: it takes the difference "
                "and the spread found here for the true ones.</p>"
            )

    def _metrics(self) -> Iterator[str]:
        comparison = self.comparison
        for name, table in comparison.anova.items():
            yield _grid(compared.anova(name, (table.systems, table.queries, table.residual)))
        if comparison.discrimination:
            yield _grid(compared.discrimination(comparison))
            series = [(each.metric, each.curve) for each in comparison.discrimination if each.curve]
            title = "Share of all pairs of systems told apart, expected by number of queries"
            words = "One line a metric; the table above has the shares on these queries."
            marks = [(comparison.n_queries, f"these {comparison.n_queries:,}")]
            yield self._figure(title, lambda chart, width: curves(chart, width, series, marks, 0.5, title, words))
        if comparison.agreement:
            yield _grid(compared.agreement(comparison))

    # --- words -------------------------------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[str]:
        if self.comparison.notes:
            yield "<ul class='notes'>" + "".join(f"<li>{escape(note.message)}</li>" for note in self.comparison.notes) + "</ul>"

    def _formulas(self) -> Iterator[str]:
        entries = [
            (f"{name}: {metric}", metric.formula, metric.source)
            for name, metric in zip(self.comparison.names, self.comparison.metrics, strict=True)
        ]
        entries += [(name, "", source) for name, source in compared.methods(self.comparison)]
        rows = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(formula)}{'<br>' if formula else ''}<small>{escape(source)}</small></dd>"
            for name, formula, source in entries
        )
        yield f"<dl class='formulas'>{rows}</dl>"


# --- pieces ---------------------------------------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """A difference with a minus sign as typesetters have it, which also keeps it on the line of its number."""
    return compared.signed(value).replace("-", "−")


def span(low: float, high: float, show: Callable[[float], str] = compared.number) -> str:
    """An interval."""
    return compared.span(low, high, show)


def percent(ratio: float) -> str:
    """A change."""
    return compared.percent(ratio).replace("-", "−")


def _table(caption: str, head: str, rows: str) -> str:
    """A table that scrolls by itself where the screen is too narrow; the keyboard reaches it."""
    return (
        f"<div class='scroll' role='region' tabindex='0' aria-label='{html.escape(caption, quote=True)}'><table><caption>{html.escape(caption)}"
        f"</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _grid(grid: Grid) -> str:
    """A table of the text report."""
    named = grid.n_names
    head = "".join(f"<th scope='col'{' class=name' if c < named else ''}>{_lines(cell)}</th>" for c, cell in enumerate(grid.header))
    rows = "".join(
        "<tr>"
        + "".join(f"<th scope='row'>{_lines(cell)}</th>" if c < named else f"<td>{_lines(cell)}</td>" for c, cell in enumerate(row))
        + "</tr>"
        for row in grid.rows
    )
    return _table(grid.title, head, rows)


def _lines(cell: str) -> str:
    first, *rest = html.escape(cell).split("\n")
    return "".join([first, *(f"<br><small>{each}</small>" for each in rest)])


def _verdict(found: Difference) -> str:
    words = html.escape(compared.verdict(found))
    return f"<span class='{found.verdict}-word'>{words}</span>" if found.verdict in (BETTER, WORSE) else words


def _work(worked: Any) -> str:
    """A worked value: formula, ranking, ideal order and the steps of the calculation."""
    parts = [f"<p class='formula'>{escape(str(worked.metric))}<br>{escape(worked.metric.formula)}</p>"]
    for sheet in worked.worksheets():
        head = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in sheet.header)
        rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in sheet.rows)
        if sheet.total:
            rows += "<tr class='total'>" + "".join(f"<td>{escape(cell)}</td>" for cell in sheet.total) + "</tr>"
        parts.append(_table(sheet.title, head, rows))
    parts.append(f"<p class='steps'>{'<br>'.join(map(escape, worked.steps))}</p>")
    return "".join(parts)


def _count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

"""Findings of the analysis of metrics as text and figures."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from fastrank.analysis.cutoffs import CutoffChoice
from fastrank.analysis.discounting import DiscountCheck
from fastrank.analysis.limits import Gap
from fastrank.analysis.prefixes import PrefixCurve
from fastrank.analysis.quantiles import RelevanceCurve
from fastrank.analysis.telling import Distinctions
from fastrank.report.drawing import Grid, Report, notebook, terminal
from fastrank.report.plots import colours_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Rows of a table of curves.
_ROWS = 12
_LINES = {
    False: ("#1f5fbf", "#b8480d", "#1b7f5c", "#8e3a9d", "#8a6a00", "#0b7285", "#a61e4d", "#495057"),
    True: ("#7fb0ff", "#ff9e64", "#63d2a8", "#d9a0e6", "#e3c35a", "#66d3e0", "#ff8fb1", "#b5bcc5"),
}
_DASHES = ("-", (0, (9, 4)), (0, (3, 3)), (0, (12, 3, 3, 3)), (0, (6, 3)), "-", (0, (2, 4)), (0, (14, 4)))


def text(found: Any, form: str = "table", *, stream: TextIO | None = None) -> str:
    """A finding as a table; `form` is "table" or "html"."""
    report = report_of(found)
    return (notebook(report) if form == "html" else terminal(report, stream)).rstrip("\n")


@functools.singledispatch
def report_of(found: Any) -> Report:
    """The tables of a finding."""
    raise TypeError(f"no report of {type(found).__name__}")


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


@report_of.register
def _prefixes(found: PrefixCurve) -> Report:
    last = len(found.sizes) - 1
    rows = np.unique(np.geomspace(1, last + 1, min(_ROWS, last + 1)).astype(np.int64)) - 1
    grids = []
    for m, metric in enumerate(found.metrics):
        cells = [[f"{found.sizes[i]:,}", *(_number(found.values[s, m, i]) for s in range(len(found.systems)))] for i in rows]
        grids.append(Grid(f"{metric} of the first n documents", ["n", *found.systems], cells))
    return Report(grids, [], [f"{len(rows)} of {last + 1:,} sizes are shown; `values` has all."] if len(rows) <= last else [])


@report_of.register
def _checked(found: DiscountCheck) -> Report:
    def exponent(value: float) -> str:
        return "infinite" if math.isinf(value) else f"{value + 0.0:.3f}"

    rows = [
        ["falls as r to the power of minus", exponent(found.exponent)],
        ["and as log r to the power of minus", exponent(found.log_exponent)],
        ["sum of all discounts", "finite" if found.finite_sum else "infinite"],
        [f"half of the sum of {found.ranks:,} ranks lies in the first", f"{found.first_half:,}"],
    ]
    return Report(
        [Grid(f"discount {found.discount}", ["property", "value"], rows)], [], [], [f"{found.side.capitalize()}: {found.meaning}"]
    )


@report_of.register
def _relevance(found: RelevanceCurve) -> Report:
    header = ["quantile", "documents", "relevant", f"{100 * found.confidence:g}% interval"]
    rows = [
        [
            f"{found.edges[i]:.3g} to {found.edges[i + 1]:.3g}",
            f"{found.n[i]:,}",
            _number(found.value[i]),
            f"[{found.low[i]:.4f}, {found.high[i]:.4f}]",
        ]
        for i in reversed(range(len(found.n)))
    ]
    return Report([Grid(f"relevance by quantile, 1 the top; p = {found.p:.4f}", header, rows)], [], [])


@report_of.register
def _gap(found: Gap) -> Report:
    rows = [
        [f"{n:,}", _number(mean), f"{error:.6f}", "-" if math.isnan(gap) else f"{gap:+.6f}"]
        for n, mean, error, gap in zip(found.sizes, found.mean, found.standard_error, found.gap, strict=True)
    ]
    grid = Grid(
        f"NDCG of {found.n_lists:,} lists of n documents, limit {_number(found.limit)}", ["n", "mean", "standard error", "gap"], rows
    )
    fit = f"gap = {found.slope:.4f} x {found.rate} explains {100 * found.explained:.1f}% of the gaps."
    return Report([grid], [], [] if math.isnan(found.slope) else [fit])


@report_of.register
def _cutoffs(found: CutoffChoice) -> Report:
    header = ["k", "lists shorter", f"discounts beyond rank {found.visible}", *(f"{one} - {other}" for one, other in found.pairs)]
    rows = []
    for i, verdicts in enumerate(found.verdicts()):
        cells = [f"{d:+.4f} {verdict}" for d, verdict in zip(found.difference[i], verdicts, strict=True)]
        rows.append([f"{found.k[i]:,}", f"{100 * found.shorter[i]:.1f}%", f"{100 * found.unseen[i]:.1f}%", *cells])
    note = f"The better system is named where p, corrected over the pairs of one k, is at most {1 - found.confidence:.3g}."
    return Report([Grid("NDCG@k by k", header, rows)], [], [note] if found.pairs else [])


@report_of.register
def _distinctions(found: Distinctions) -> Report:
    per_metric = []
    for metric in found.best:
        power = next(each for each in found.power if each.metric == metric)
        pairs = found.of(metric)
        sure = sum(pair.from_queries is not None for pair in pairs)
        queries = [pair.from_queries for pair in pairs if pair.from_queries is not None]
        documents = [pair.from_documents for pair in pairs if pair.from_documents is not None]
        per_metric.append(
            [
                metric,
                f"{power.n_apart} of {power.n_pairs}",
                f"{np.mean([pair.right for pair in pairs]):.3f}",
                f"{max(queries):,}" if sure == len(pairs) else "-",
                f"{max(documents):,}" if len(documents) == len(pairs) else "-",
            ]
        )
    rows = [
        [
            pair.metric,
            f"{pair.better} > {pair.worse}",
            f"{pair.difference:.4f}",
            f"{pair.right:.3f}",
            _count(pair.from_queries),
            _count(pair.from_documents),
        ]
        for metric in found.best
        for pair in found.of(metric)
    ]
    level = f"{100 * found.level:g}%"
    best = next(each for each in found.power if each.metric == found.best[0])
    lead = f"Report {best.metric}: on these {found.n_queries:,} queries it tells {best.n_apart} of {best.n_pairs} pairs of systems apart."
    header = ["metric", "pairs apart", "mean chance of the right order", "all right from queries", "all right from documents"]
    single = ["metric", "order", "difference", "chance", "from queries", "from documents"]
    note = (
        f"The order is that of the means over all queries. From so many queries or documents a list on it stays in {level} of all draws; "
        f"-: not within those tried, up to {found.documents[-1]:,} documents a list."
    )
    grids = [Grid("metrics, that which tells most pairs apart first", header, per_metric), Grid("pairs", single, rows, n_names=2)]
    return Report(grids, [], [note], [lead])


# --- figures --------------------------------------------------------------------------------------------------------------------


def line_style(place: int, dark: bool) -> dict[str, Any]:
    """Colour and dashes of the line at a place: told apart in grey, too."""
    return {"color": _LINES[dark][place % 8], "linestyle": _DASHES[place % 8], "linewidth": 1.6}


def finish(panel: Axes, colours: dict[str, str], title: str, x: str, *, legend: bool = True) -> None:
    """Title, name of the axis and legend."""
    panel.set_title(title, loc="left", color=colours["ink"], fontsize=11, parse_math=False)
    panel.set_xlabel(x, color=colours["soft"])
    if legend:
        box = panel.legend(frameon=False, labelcolor=colours["ink"], fontsize=9)
        for entry in box.get_texts():
            entry.set_parse_math(False)


def prefix_figure(found: PrefixCurve, *, dark: bool = False) -> Figure:
    """A panel per metric, a line per system."""
    colours = colours_of(dark)
    figure, panels = new_figure(colours, (7.5, 0.6 + 2.4 * len(found.metrics)), [1.0] * len(found.metrics))
    for m, (panel, metric) in enumerate(zip(panels, found.metrics, strict=True)):
        for s, system in enumerate(found.systems):
            panel.plot(found.sizes, found.values[s, m], label=system, **line_style(s, dark))
        finish(panel, colours, metric, "first n documents")
    return figure


def relevance_figure(found: RelevanceCurve, *, dark: bool = False) -> Figure:
    """The share of relevant documents by quantile, with its intervals."""
    colours = colours_of(dark)
    figure, (panel,) = new_figure(colours, (6.0, 3.4), [1.0])
    middle = (found.edges[:-1] + found.edges[1:]) / 2
    panel.vlines(middle, found.low, found.high, color=colours["better"], linewidth=2)
    panel.plot(middle, found.value, marker="s", markersize=4, **line_style(0, dark))
    finish(panel, colours, "relevant documents by quantile", "quantile, 1 is the top", legend=False)
    return figure


def distinction_figure(found: Distinctions, *, dark: bool = False) -> Figure:
    """Over pairs of systems: the chance that the order is right for good by documents, and the share told apart by queries."""
    colours = colours_of(dark)
    figure, (by_documents, by_queries) = new_figure(colours, (8.0, 7.0), [1.0, 1.0])
    for m, metric in enumerate(found.metrics):
        style = line_style(m, dark)
        by_documents.plot(found.documents, np.mean([pair.for_good_at for pair in found.of(metric)], axis=0), label=metric, **style)
        curve = found.power[m].curve
        if curve:
            by_queries.plot(*zip(*curve, strict=True), label=metric, **style)
    for panel in (by_documents, by_queries):
        panel.set_xscale("log")
        panel.set_ylim(-0.02, 1.02)
    by_documents.axhline(found.level, color=colours["soft"], linewidth=1, linestyle=":")
    by_queries.axvline(found.n_queries, color=colours["soft"], linewidth=1, linestyle=":")
    finish(by_documents, colours, "chance that the order is right from so many documents on", "documents of a list")
    finish(by_queries, colours, "share of pairs expected to be told apart", f"queries ({found.n_queries:,} at hand)", legend=False)
    return figure

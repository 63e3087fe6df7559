"""Figures with matplotlib, for light and for dark backgrounds: the same colours as the page, readable in grey on paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.comparison.findings import BETTER, WORSE
from fastrank.errors import InputError
from fastrank.report import compared

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fastrank.comparison.findings import Difference
    from fastrank.comparison.outcome import Comparison
    from fastrank.evaluation import Evaluation

# More pairs than these, those of eleven systems, make no picture.
MOST_DRAWN = 60
_LIGHT = {
    "page": "#ffffff",
    "ink": "#1a1d21",
    "soft": "#59616b",
    "grid": "#e8ebef",
    "better": "#1f5fbf",
    "worse": "#b8480d",
    "plain": "#626b76",
}
_DARK = {
    "page": "#14171a",
    "ink": "#e8eaed",
    "soft": "#a3abb6",
    "grid": "#2c3238",
    "better": "#7fb0ff",
    "worse": "#ff9e64",
    "plain": "#99a2ad",
}


def colours_of(dark: bool) -> dict[str, str]:
    """The colours of a figure by what they are for."""
    return _DARK if dark else _LIGHT


def comparison_figure(comparison: Comparison, *, dark: bool = False) -> Figure:
    """The forest plot of the differences, and each query's difference.

    Of two systems all metrics are shown, and the queries on the deciding one; of more those metrics that are tested, and each pair's
    queries beside its interval: all pairs, or, where these are more than `MOST_DRAWN`, those that tables list.
    """
    colours = colours_of(dark)
    if len(comparison.systems) == 2:
        found = list(comparison.differences)
        figure, (forest, queries) = new_figure(colours, (8.0, 3.9 + 0.32 * len(found)), [0.6 + 0.32 * len(found), 2.4])
        _forest(forest, colours, comparison, found)
        _queries(queries, colours, comparison)
        return figure
    tested = [each for each in comparison.differences if not comparison.watched(each.metric)]
    found = tested
    if len(tested) > MOST_DRAWN:
        found = [each for name in dict.fromkeys(each.metric for each in tested) for each in compared.listed(comparison, name)]
    figure, (forest, queries) = new_figure(colours, (12.0, 1.6 + 0.32 * len(found)), [1.0, 0.6], side_by_side=True)
    _forest(forest, colours, comparison, found)
    _movements(queries, colours, comparison, found)
    return figure


def evaluation_figure(evaluation: Evaluation, *, confidence: float = 0.95, dark: bool = False) -> Figure:
    """Each metric's mean with its t interval, and the distribution of its values over queries."""
    colours = colours_of(dark)
    rows = evaluation.summary(confidence).rows
    n_panels = 1 if evaluation.values is None else 2
    figure, panels = new_figure(colours, (8.0, 0.9 + 0.45 * len(rows)), [1.0, 1.0][:n_panels], side_by_side=True)
    places = np.arange(len(rows))[::-1]
    means = panels[0]
    for place, row in zip(places, rows, strict=True):
        _interval(means, place, row.mean, row.low, row.high, colours["better"])
    _named(means, places, [f"{row.name}  {row.mean:.4f}" for row in rows], colours)
    means.set_xlabel(f"mean and {100 * confidence:g}% interval over {evaluation.n_queries:,} queries", color=colours["soft"])
    if n_panels == 2:
        spread = panels[1]
        for place, row in zip(places, rows, strict=True):
            values = evaluation[row.name]
            _distribution(spread, place, values[~np.isnan(values)], colours)
        _named(spread, places, [""] * len(rows), colours)
        spread.set_xlabel("values of single queries", color=colours["soft"])
    return figure


def new_figure(
    colours: dict[str, str], size: tuple[float, float], shares: list[float], *, side_by_side: bool = False
) -> tuple[Figure, Any]:
    """A figure with panels above each other or side by side. It belongs to no window: nothing is left open in pyplot."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError("plot() needs matplotlib, which is not installed: pip install 'fastrank-metrics[plot]'.") from None
    figure = Figure(figsize=size, facecolor=colours["page"], layout="constrained")
    across = len(shares) if side_by_side else 1
    ratios = {"width_ratios": shares} if side_by_side else {"height_ratios": shares}
    panels = figure.subplots(len(shares) // across, across, squeeze=False, gridspec_kw=ratios).ravel()
    for panel in panels:
        panel.set_facecolor(colours["page"])
        panel.tick_params(colors=colours["soft"], length=3)
        panel.grid(axis="x" if side_by_side else "both", color=colours["grid"], linewidth=0.8)
        panel.set_axisbelow(True)
        for side, spine in panel.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(colours["soft"])
    return figure, panels


def _named(panel: Axes, places: np.ndarray, names: Sequence[str], colours: dict[str, str]) -> None:
    panel.set_yticks(places, names, color=colours["ink"], parse_math=False)
    panel.set_ylim(-0.7, len(places) - 0.3)
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")


def _titled(panel: Axes, title: str, colours: dict[str, str], room: int = 54) -> None:
    # Names are no formulas. A panel has room for some fifty letters, one beside another for less; longer titles are broken.
    panel.set_title(textwrap.fill(title, room), loc="left", color=colours["ink"], fontsize=11, parse_math=False)


def _interval(panel: Axes, place: float, estimate: float, low: float, high: float, colour: str) -> None:
    # An interval without an end runs to the edge of the panel.
    for end, side in ((low, 0.0), (high, 1.0)):
        if np.isfinite(end):
            panel.plot([estimate, end], [place, place], color=colour, linewidth=2, solid_capstyle="butt")
        elif np.isinf(end):
            panel.annotate(
                "",
                (side, place),
                (estimate, place),
                panel.get_yaxis_transform(),
                "data",
                {"arrowstyle": "->", "color": colour, "linewidth": 2},
            )
    panel.plot([estimate], [place], marker="s", markersize=6, color=colour, linestyle="")


def _forest(panel: Axes, colours: dict[str, str], comparison: Comparison, found: list[Difference]) -> None:
    places = np.arange(len(found))[::-1]
    for place, each in zip(places, found, strict=True):
        colour = colours[each.verdict if each.verdict in (BETTER, WORSE) else "plain"]
        _interval(panel, place, each.difference.estimate, each.difference.low, each.difference.high, colour)
    panel.axvline(0, color=colours["soft"], linewidth=1, linestyle=":")
    many, several = len(comparison.systems) > 2, len({each.metric for each in found}) > 1
    first = found[0]
    differences = compared.differences_title(comparison, first.metric, sum(each.metric == first.metric for each in found))
    named = [[each.metric] * (several or not many) + [compared.pair(each)] * many for each in found]
    names = [
        f"{', '.join(parts)}  {compared.signed(each.difference.estimate)}  {_word(each)}" for parts, each in zip(named, found, strict=True)
    ]
    _named(panel, places, names, colours)
    title = f"{'' if several else f'{first.metric}, '}{differences}" if many else f"{first.system} minus {first.baseline}"
    _titled(panel, f"{title}, {comparison.n_queries:,} queries, {compared.interval_title(comparison)}", colours, 36 if many else 54)


def _word(found: Difference) -> str:
    return (
        "watched"
        if found.verdict is None
        else f"{compared.verdict(found)} ({'p = ' if found.p_corrected else ''}{compared.p_cell(found.p_corrected)})"
    )


def _movement(comparison: Comparison, found: Difference) -> tuple[np.ndarray, int]:
    """Each query's difference where both systems have a value, and 1 or -1: which way is better."""
    m = comparison.names.index(found.metric)
    one, other = (comparison.values[comparison.systems.index(name), m] for name in (found.baseline, found.system))
    moved = other - one
    return moved[~np.isnan(moved)], 1 if comparison.metrics[m].higher_is_better else -1


def _queries(panel: Axes, colours: dict[str, str], comparison: Comparison) -> None:
    """Each query's difference, from the largest loss to the largest gain."""
    metric = comparison.primary or comparison.names[0]
    found = next(each for each in comparison.differences if each.metric == metric)
    moved, better = _movement(comparison, found)
    moved = moved[np.argsort(moved * better, kind="stable")]
    steps = np.arange(len(moved) + 1)
    for kind, chosen in (("worse", moved * better < 0), ("better", moved * better > 0)):
        heights = np.where(chosen, moved, 0.0)
        panel.fill_between(steps, np.append(heights, heights[-1]), step="post", color=colours[kind], linewidth=0)
    panel.set_xlim(0, len(moved))
    _titled(panel, f"difference in {metric} of each query, {found.system} minus {found.baseline}", colours)
    panel.set_xlabel(f"queries, sorted: {found.lost} lost, {found.tied} tied, {found.won} won", color=colours["soft"])


def _movements(panel: Axes, colours: dict[str, str], comparison: Comparison, found: list[Difference]) -> None:
    """Beside each pair's interval a histogram of its queries' differences; those that did not move are counted only."""
    places = np.arange(len(found))[::-1]
    moves = [_movement(comparison, each) for each in found]
    reach = max((float(np.abs(moved).max(initial=0.0)) for moved, _ in moves), default=0.0) or 1.0
    edges = np.linspace(-reach, reach, 41)
    for place, (moved, better) in zip(places, moves, strict=True):
        heights, _ = np.histogram(moved[moved != 0], bins=edges)
        kinds = [colours["better" if edge * better >= 0 else "worse"] for edge in edges[:-1] + edges[1:]]
        tall = 0.8 * heights / max(1, heights.max())
        panel.bar(edges[:-1], tall, np.diff(edges), place - 0.4, align="edge", color=kinds, edgecolor=colours["page"], linewidth=0.4)
    panel.axvline(0, color=colours["soft"], linewidth=1, linestyle=":")
    panel.yaxis.tick_right()
    _named(panel, places, [f"{each.lost} lost, {each.tied} tied, {each.won} won" for each in found], colours)
    _titled(panel, "differences of single queries", colours, 24)


def _distribution(panel: Axes, place: float, values: np.ndarray, colours: dict[str, str]) -> None:
    """A histogram lying on the metric's row."""
    if not len(values):
        return
    inside = values.min() >= 0 and values.max() <= 1
    heights, edges = np.histogram(values, bins=20, range=(0.0, 1.0) if inside else None)
    tall = 0.8 * heights / heights.max()
    panel.bar(
        edges[:-1],
        tall,
        width=np.diff(edges),
        align="edge",
        bottom=place - 0.4,
        color=colours["plain"],
        edgecolor=colours["page"],
        linewidth=0.6,
    )

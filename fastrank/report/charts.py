"""Charts as SVG: plain text with classes that a style sheet colours, so that one drawing serves light, dark and paper.

Each has a title and a description for those who do not see it; the numbers stand in the tables beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank.report.drawing import escape

if TYPE_CHECKING:
    from fastrank.comparison.intervals import Interval

# Up to so many queries each gets a bar of its own, with its name.
MOST_BARS = 300
_BINS = 20


@dataclass(frozen=True)
class Scale:
    """From values to places: linear, or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, value = (math.log(x) if self.log else x for x in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + min(max(share, -0.02), 1.02) * (self.stop - self.start), 1)

    def ticks(self, n: float) -> list[float]:
        """About n round values."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            decades = [10.0**power for power in powers]
            if len(decades) >= 3:
                return decades
            return [
                m * 10.0**p for p in range(powers.start - 1, powers.stop + 1) for m in (1, 2, 5) if self.low <= m * 10.0**p <= self.high
            ]
        rough = (self.high - self.low) / n
        if rough <= 0:
            return [self.low]
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 12) for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A tick's label, without zeros at the end."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4f}".rstrip("0").rstrip(".").replace("-", "−") if value else "0"


def svg(name: str, size: tuple[int, int], title: str, description: str, parts: Sequence[str], kind: str = "") -> str:
    """A drawing with its title and description; `name` is unique on the page."""
    width, height = size
    return (
        f'<svg class="chart {kind}" role="img" aria-labelledby="{name}-t {name}-d" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}"><title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
        + "".join(parts)
        + "</svg>"
    )


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'


def text(x: float, y: float, words: str, kind: str = "label", anchor: str = "middle") -> str:
    """A line of text; `anchor` is start, middle or end."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    """A bar, which may have a name to show on hover."""
    named = f"<title>{escape(title)}</title>" if title else ""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{max(width, 0.4):.4g}" height="{max(height, 0):.4g}">{named}</rect>'


def path(points: Sequence[tuple[float, float]], kind: str, *, closed: bool = False) -> str:
    """A line through points."""
    steps = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path class="{kind}" d="{steps}{" Z" if closed else ""}"/>'


# --- intervals ------------------------------------------------------------------------------------------------------------------

_ROW = 30
_MARGIN = 14


def forest_scale(rows: Sequence[Interval], *, zero: bool, width: int = 220) -> Scale:
    """The scale that all rows of a forest plot share, `width` pixels wide."""
    places = [place for row in rows for place in (row.estimate, row.low, row.high)]
    finite = [place for place in places if math.isfinite(place)] + ([0.0] if zero else [])
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    room = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return Scale(low - room, high + room, _MARGIN, width - _MARGIN)


def forest_row(scale: Scale, estimate: float, low: float, high: float, kind: str, *, zero: bool, words: str) -> str:
    """A point with its interval, one row of a forest plot. The row's cells say the same in numbers."""
    width, height = scale.stop + _MARGIN, _ROW
    middle = height / 2
    parts = [line(scale(0), 0, scale(0), height, "zero")] if zero else []
    if math.isfinite(estimate):
        ends = [(low, scale.low, 1), (high, scale.high, -1)]
        left, right = (scale(end if math.isfinite(end) else edge) for end, edge, _ in ends)
        if not (math.isnan(low) or math.isnan(high)):
            parts.append(line(left, middle, right, middle, f"whisker {kind}"))
            for (end, _, way), x in zip(ends, (left, right), strict=True):
                if math.isfinite(end):
                    parts.append(line(x, middle - 4, x, middle + 4, f"whisker {kind}"))
                else:  # no end: an arrow
                    parts.append(path([(x + 5 * way, middle - 4), (x, middle), (x + 5 * way, middle + 4)], f"whisker arrow {kind}"))
        parts.append(rect(scale(estimate) - 4, middle - 4, 8, 8, f"point {kind}"))
    return (
        f'<svg class="chart forest" role="img" aria-label="{escape(words)}" viewBox="0 0 {width:g} {height}" '
        f'width="{width:g}" height="{height}">{"".join(parts)}</svg>'
    )


def forest_axis(scale: Scale) -> str:
    """The axis above the rows."""
    width = scale.stop + _MARGIN
    parts = [line(scale.start, 19.5, scale.stop, 19.5, "axis")]
    for tick in scale.ticks(width / 50):
        parts += [line(scale(tick), 16, scale(tick), 19.5, "axis"), text(scale(tick), 12, tick_text(tick), "tick")]
    return f'<svg class="chart forest" aria-hidden="true" viewBox="0 0 {width:g} 20" width="{width:g}" height="20">{"".join(parts)}</svg>'


# --- queries --------------------------------------------------------------------------------------------------------------------


def sorted_differences(
    name: str, width: int, title: str, description: str, differences: np.ndarray, better: int, ids: Sequence[str]
) -> str:
    """Each query's difference, from the largest loss to the largest gain; `better` is 1 where more is better, else -1."""
    height, left, top, bottom = (230 if width < 500 else 280), 52, 12, 34
    order = np.argsort(differences * better, kind="stable")
    values = differences[order]
    n, most = len(values), float(np.abs(values).max(initial=0.0)) or 1.0
    across, up = Scale(0, n, left, width - 8), Scale(-most, most, height - bottom, top)
    parts = []
    for tick in Scale(-most, most, 0, 0).ticks(4):
        parts += [line(left, up(tick), width - 8, up(tick), "grid"), text(left - 8, up(tick) + 4, signed_tick(tick), "tick", "end")]
    if n <= MOST_BARS:
        for i, value in enumerate(values.tolist()):
            if value:
                y = up(max(value, 0.0))
                tall = abs(up(value) - up(0))
                words = f"{ids[int(order[i])]}: {value:+.4f}"
                parts.append(rect(across(i) + 0.5, y, (width - 8 - left) / n - 1, tall, _side(value * better), words))
    else:
        parts += _areas(values, better, across, up)
    parts.append(line(left, up(0), width - 8, up(0), "axis"))
    counts = [int(np.count_nonzero(values * better < 0)), int(np.count_nonzero(values == 0)), int(np.count_nonzero(values * better > 0))]
    for (words, kind, anchor), count in zip(
        (("lost", "worse", "start"), ("tied", "", "middle"), ("won", "better", "end")), counts, strict=True
    ):
        x = {"start": left, "middle": (left + width - 8) / 2, "end": width - 8}[anchor]
        parts.append(text(x, height - 10, f"{count:,} {words} ({100 * count / n:.0f}%)", f"label strong {kind}", anchor))
    return svg(name, (width, height), title, description, parts)


def _side(value: float) -> str:
    return "better" if value > 0 else "worse"


def _areas(values: np.ndarray, better: int, across: Scale, up: Scale) -> list[str]:
    """The same for many queries: two areas through about 400 of them."""
    parts = []
    for sign in (-1, 1):
        places = np.flatnonzero(values * better * sign > 0)
        if len(places):
            first, last = int(places[0]), int(places[-1])
            picks = np.unique(np.linspace(first, last, min(len(places), 400)).astype(int))
            points = [(across(i + 0.5), up(float(values[i]))) for i in picks.tolist()]
            base = [(across(last + 1), up(0)), (across(first), up(0))]
            parts.append(path([*points, *base], _side(sign), closed=True))
    return parts


def signed_tick(value: float) -> str:
    """A tick of differences."""
    return ("+" if value > 0 else "") + tick_text(value)


def histogram(name: str, width: int, title: str, description: str, series: Sequence[tuple[str, np.ndarray]]) -> str:
    """How the values of up to two systems are distributed over queries: the first as bars, the second as a line."""
    height, left, top, bottom = (200 if width < 500 else 240), 52, 26, 44
    everything = np.concatenate([values for _, values in series])
    low, high = float(everything.min()), float(everything.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, _BINS + 1)
    shares = [np.histogram(values, edges)[0] / max(1, len(values)) for _, values in series]
    most = max(float(share.max()) for share in shares) or 1.0
    across, up = Scale(low, high, left, width - 12), Scale(0, most, height - bottom, top)
    parts = []
    for tick in up.ticks(3):
        parts += [line(left, up(tick), width - 12, up(tick), "grid"), text(left - 8, up(tick) + 4, f"{100 * tick:.3g}%", "tick", "end")]
    for tick in across.ticks(5):
        parts += [line(across(tick), up(0), across(tick), up(0) + 4, "axis"), text(across(tick), up(0) + 17, tick_text(tick), "tick")]
    for i, share in enumerate(shares[0].tolist()):
        x, right = across(edges[i]), across(edges[i + 1])
        words = f"{series[0][0]}: {100 * share:.1f}% from {edges[i]:.3g} to {edges[i + 1]:.3g}"
        parts.append(rect(x + 0.5, up(share), right - x - 1, up(0) - up(share), "first", words))
    for share_of in shares[1:]:
        corners = [(across(low), up(0))]
        for i, share in enumerate(share_of.tolist()):
            corners += [(across(edges[i]), up(share)), (across(edges[i + 1]), up(share))]
        parts.append(path([*corners, (across(high), up(0))], "second"))
    parts.append(line(left, up(0), width - 12, up(0), "axis"))
    x = float(left)
    for i, (words, _) in enumerate(series):
        parts += [rect(x, 6, 12, 10, "first") if i == 0 else line(x, 11, x + 12, 11, "second"), text(x + 17, 15, words, "label", "start")]
        x += 40 + 7 * len(words)
    return svg(name, (width, height), title, description, parts)


# --- curves ---------------------------------------------------------------------------------------------------------------------


def curves(
    name: str,
    width: int,
    title: str,
    description: str,
    series: Sequence[tuple[str, Sequence[tuple[int, float]]]],
    marks: Sequence[tuple[int, str]],
    level: float,
) -> str:
    """Shares (a power) by the number of queries, on a logarithmic axis.

    `marks` are numbers of queries with a name, `level` is the share aimed at.
    """
    narrow = width < 500
    height, left, top = (240 if narrow else 280), 46, 14
    legend = 22 * -(-len(series) // (1 if narrow else 3)) if len(series) > 1 else 0
    bottom = 46 + legend
    sizes = [n for _, curve in series for n, _ in curve]
    height += legend
    across = Scale(min(sizes), max(max(sizes), min(sizes) + 1), left, width - 16, log=True)
    up = Scale(0, 1, height - bottom, top)
    parts = []
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts += [line(left, up(tick), width - 16, up(tick), "grid"), text(left - 8, up(tick) + 4, f"{100 * tick:.0f}%", "tick", "end")]
    for tick in across.ticks(5):
        parts += [line(across(tick), up(0), across(tick), up(0) + 4, "axis"), text(across(tick), up(0) + 17, f"{tick:,.0f}", "tick")]
    parts += [line(left, up(level), width - 16, up(level), "aim"), line(left, up(0), width - 16, up(0), "axis")]
    parts.append(text((left + width - 16) / 2, up(0) + 34, "queries", "label"))
    for i, (_, curve) in enumerate(series):
        parts.append(path([(across(n), up(share)) for n, share in curve], f"curve c{i % 8}"))
    for row, (n, words) in enumerate(marks):
        if across.low <= n <= across.high:
            x, y = across(n), up(_at(series[0][1], n)) if len(series) == 1 else up(0.02)
            anchor = "end" if x > width * 0.6 else "start"
            parts += [line(x, up(0), x, top, "mark"), f'<circle class="dot" cx="{x:g}" cy="{y:g}" r="4"/>' if len(series) == 1 else ""]
            parts.append(text(x + (-7 if anchor == "end" else 7), up(0.12) - 18 * row, words, "label strong", anchor))
    if len(series) > 1:
        columns = 1 if narrow else 3
        for i, (words, _) in enumerate(series):
            x, y = left + (i % columns) * (width - left) / columns, height - legend + 14 + 22 * (i // columns)
            parts += [line(x, y - 4, x + 22, y - 4, f"curve c{i % 8}"), text(x + 28, y, words, "label", "start")]
    return svg(name, (width, height), title, description, parts)


def _at(curve: Sequence[tuple[int, float]], n: int) -> float:
    return float(np.interp(math.log(n), [math.log(size) for size, _ in curve], [share for _, share in curve]))

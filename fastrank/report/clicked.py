"""Results of click logs as text and figures."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from fastrank.clicks.counterfactual import Counterfactual
from fastrank.clicks.design import SwapSample
from fastrank.clicks.interleaving import Interleaving
from fastrank.clicks.likelihood import EPS, Score
from fastrank.clicks.propensities import Propensity
from fastrank.clicks.rates import Rate
from fastrank.clicks.relevances import Relevance
from fastrank.clicks.summaries import Summary
from fastrank.report.drawing import Grid, Report, markdown, notebook, show_value, terminal
from fastrank.report.plots import colours_of, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Rows of a table that is shown; all are in `to_arrow`.
MOST_ROWS = 20
_DRAW: dict[str, Callable[[Report, TextIO | None], str]] = {"table": terminal, "markdown": markdown, "html": notebook}
FORMS = tuple(name for name in _DRAW if name != "html")


def text(found: Any, form: str = "table", *, stream: TextIO | None = None) -> str:
    """A result as a table with its notes; `form` is "table", "markdown" or "html"."""
    return _DRAW[form](report_of(found), stream).rstrip("\n")


@functools.singledispatch
def report_of(found: Any) -> Report:
    """The tables of a result."""
    raise TypeError(f"no report of {type(found).__name__}")


# --- tables ---------------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4f}"


def _span(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"[{low:.4f}, {high:.4f}]"


def _count(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def _keyed(keys: dict[str, Any], rows: Sequence[int]) -> list[list[str]]:
    return [[show_value(_plain(column[i])) for column in keys.values()] for i in rows]


def _plain(value: Any) -> Any:
    return value.as_py() if hasattr(value, "as_py") else value.item() if hasattr(value, "item") else value


def _cut(n: int, what: str) -> Iterator[str]:
    if n > MOST_ROWS:
        yield f"{MOST_ROWS:,} of {n:,} {what} are shown; to_arrow() has all."


@report_of.register
def _rate(found: Rate) -> Report:
    n = len(found.n)
    rows = list(range(n)) if found.by == "position" else np.argsort(-found.n, kind="stable").tolist()
    rows = rows[:MOST_ROWS]
    header = [*found.keys, "shown", "clicks", "rate", f"{100 * found.level:g}% interval"]
    cells = [
        [*key, _count(found.n[i]), _count(found.clicks[i]), _number(found.value[i]), _span(found.lo[i], found.hi[i])]
        for key, i in zip(_keyed(found.keys, rows), rows, strict=True)
    ]
    title = "click-through rate" + ("" if found.by == "all" else f" by {'query and document' if found.by == 'pair' else found.by}")
    what = {"position": "positions", "doc": "documents", "query": "queries", "pair": "pairs"}.get(found.by, "rows")
    return Report([Grid(title, header, cells, n_names=len(found.keys))], [], list(_cut(n, what)))


@report_of.register
def _propensity(found: Propensity) -> Report:
    notes = [note.message for note in found.notes]
    grids = [_curve(found, "propensities by position")]
    for value, part in found.segments.items():
        grids.append(_curve(part, f"propensities in segment {show_value(value)}"))
        notes += [f"segment {show_value(value)}: {note.message}" for note in part.notes]
    lead = []
    if not math.isnan(found.eta):
        lead.append(f"Examination falls with the rank about as (1 / rank) ** {found.eta:.2f} (standard error {found.eta_se:.2f}).")
    return Report(grids, [("theta_k: P(click at k) = theta_k * P(relevant)", _CURVE)], notes, lead)


_CURVE = "argmax of sum over strata g of sum_k c_gk * log(n_gk * theta_k / sum_j n_gj * theta_j), theta = 1 at the anchor"


def _curve(found: Propensity, title: str) -> Grid:
    header = ["position", "theta", f"{100 * found.level:g}% interval", "clicks"]
    rows = [
        [str(k + 1), _number(found.theta[k]), _span(found.lo[k], found.hi[k]), _count(found.n_clicks[k])] for k in range(len(found.theta))
    ]
    strata = f"{found.n_strata:,} {'stratum' if found.n_strata == 1 else 'strata'}"
    return Grid(f"{title}, {strata}, {found.n_clusters:,} clusters", header, rows)


@report_of.register
def _relevance(found: Relevance) -> Report:
    n = len(found.value)
    rows = np.argsort(-found.exposure, kind="stable").tolist()[:MOST_ROWS]
    header = [*found.keys, "clicks", "exposure", "relevance", f"{100 * found.level:g}% interval"]
    cells = [
        [*key, _count(found.clicks[i]), f"{found.exposure[i]:,.1f}", _number(found.value[i]), _span(found.lo[i], found.hi[i])]
        for key, i in zip(_keyed(found.keys, rows), rows, strict=True)
    ]
    a, b = found.prior
    formula = "(sum c + a) / (sum theta + b)" + (f", a = {a:g}, b = {b:g}" if a or b else ", a = b = 0")
    notes = [note.message for note in found.notes] + list(_cut(n, "pairs"))
    return Report([Grid("relevance, the most exposed first", header, cells, n_names=len(found.keys))], [("relevance", formula)], notes)


@report_of.register
def _counterfactual(found: Counterfactual) -> Report:
    interval = f"{100 * found.level:g}% interval"
    values = [
        ["difference", _signed(found.diff), _signed_span(found.diff_lo, found.diff_hi)],
        ["new ranker", _number(found.value), _span(found.lo, found.hi)],
        ["logged ranker", _number(found.logged), ""],
        ["new ranker, clicks as they are", _number(found.naive), ""],
    ]
    support = [
        ["sessions", _count(found.n_sessions)],
        ["effective clicks", f"{found.ess:.1f}"],
        ["effective clicks for the new ranker", f"{found.ess_new:.1f}"],
        ["largest weight, share of all", f"{100 * found.max_share:.2f}%"],
        ["clipped clicks", f"{found.clipped:,}"],
        ["weight of clicks that the new ranker drops", f"{100 * found.clicked_missing:.2f}%"],
        ["top of the new ranker never shown", "-" if math.isnan(found.unsupported) else f"{100 * found.unsupported:.2f}%"],
    ]
    how = f"{found.name} per session by {found.estimator}" + (", policy-aware" if found.exposure == "policy" else "")
    grids = [Grid(how, ["ranker", "estimate", interval], values), Grid("what it rests on", ["clicks and lists", "value"], support)]
    sweep = found.sweep
    if len(sweep["strength"]):
        rows = [
            [f"{t:g}", _number(new), _number(logged), _signed(diff), _signed_span(low, high)]
            for t, new, logged, diff, low, high in zip(*sweep.values(), strict=True)
        ]
        grids.append(Grid("by the strength of the bias, theta ** strength", ["strength", "new", "logged", "difference", interval], rows))
    return Report(grids, [], [note.message for note in found.notes], [found.verdict])


def _signed(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:+.4f}"


def _signed_span(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"[{low:+.4f}, {high:+.4f}]"


@report_of.register
def _interleaving(found: Interleaving) -> Report:
    rows = [
        ["A wins", _count(found.wins_a)],
        ["B wins", _count(found.wins_b)],
        ["ties", _count(found.ties)],
        ["delta", _signed(found.delta)],
        [f"{100 * found.level:g}% interval", _signed_span(found.lo, found.hi)],
        ["p (sign test)", f"{found.p:.4g}"],
    ]
    return Report([Grid(f"interleaving, {found.method.replace('_', ' ')}", ["result", "value"], rows)], [], [])


@report_of.register
def _swap_sample(found: SwapSample) -> Report:
    rows = [
        ["clicks at each of the two positions", _count(found.clicks)],
        ["clicks at position k, the anchor having many more", _count(found.clicks_at_k)],
        ["sessions of each order", "-" if math.isnan(found.sessions) else _count(found.sessions)],
    ]
    title = f"to know theta_k to {100 * found.half_width:g}% with {100 * found.level:g}% confidence"
    return Report([Grid(title, ["needed", "at least"], rows)], [], [])


@report_of.register
def _score(found: Score) -> Report:
    return Report([_fit_of(found), _by_rank(found, "perplexity by position")], [], list(_cautions(found)))


@report_of.register
def _summary(found: Summary) -> Report:
    scored = found.score
    known = []
    if found.model in ("gctr", "dbn", "ccm"):
        kind, values = ("exam", found.exam) if found.exam is not None else ("cont", found.cont)
        known.append([kind, ", ".join(_number(value) for value in ([] if values is None else values.tolist()))])
    if found.n_pairs:
        known.append(["documents with parameters", f"{found.n_pairs:,}"])
    if not math.isnan(found.log_posterior):
        known.append(["log posterior", f"{found.log_posterior:,.3f}"])
    notes = list(_cautions(scored))
    if not found.converged:
        notes.insert(0, f"Not converged after {found.n_iterations:,} iterations: allow more, or a larger tolerance.")
    elif found.n_iterations:
        known.append(["iterations", f"{found.n_iterations:,}"])
    grids = [Grid(f"click model {found.model}", ["parameters", "value"], known)] if known else []
    return Report([*grids, _fit_of(scored), _by_rank(found, "by position")], [], notes)


def _fit_of(found: Score) -> Grid:
    rows = [
        ["log-likelihood per document", _number(found.ll_doc)],
        ["log-likelihood per session", _number(found.ll_session)],
        ["perplexity", _number(found.ppl)],
        ["perplexity given the clicks above", _number(found.cond_ppl)],
    ]
    return Grid("how well the clicks are foretold", ["score", "value"], rows)


def _by_rank(found: Score | Summary, title: str) -> Grid:
    columns = found.columns()
    header = {"n": "sessions", "ppl": "perplexity", "cond_ppl": "given the clicks above"}
    shown = [[_count(value) if name in ("position", "n") else _number(value) for value in column] for name, column in columns.items()]
    rows = [list(row) for row in zip(*shown, strict=True)]
    return Grid(title, [header.get(name, name) for name in columns], rows[:MOST_ROWS])


def _cautions(found: Score) -> Iterator[str]:
    if found.unseen > 0:
        yield f"{100 * found.unseen:.2f}% of the rows show a document or a rank that the model has no parameter for."
    if found.clipped > 0:
        share = f"{100 * found.clipped:.2f}%"
        yield f"{share} of the rows had a probability outside {EPS:g} ... 1 - {EPS:g} and count with the nearer of these."
    yield from _cut(len(found.n_at), "positions")


# --- figures --------------------------------------------------------------------------------------------------------------------


def _band(panel: Axes, x: np.ndarray, y: np.ndarray, low: np.ndarray, high: np.ndarray, colour: str, label: str | None = None) -> None:
    """Points joined by a line, each with its interval; what is not known leaves a gap."""
    panel.plot(x, y, color=colour, marker="o", markersize=4, linewidth=1.5, label=label)
    panel.vlines(x, low, high, color=colour, linewidth=2)


def _labelled(panel: Axes, title: str, across: str, colours: dict[str, str]) -> None:
    if across == "position":
        from matplotlib.ticker import MaxNLocator

        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    panel.set_title(title, loc="left", color=colours["ink"], fontsize=11)
    panel.set_xlabel(across, color=colours["soft"])


def rate_figure(found: Rate, *, dark: bool = False) -> Figure:
    """Rates with their intervals: over positions, or the most shown rows from the highest rate down."""
    colours = colours_of(dark)
    figure, (panel,) = new_figure(colours, (7.0, 3.6), [1.0])
    if found.by == "position":
        _band(panel, np.arange(1, len(found.n) + 1), found.value, found.lo, found.hi, colours["better"])
        _labelled(panel, f"click-through rate with {100 * found.level:g}% intervals", "position", colours)
    else:
        most = np.argsort(-found.n, kind="stable")[:MOST_ROWS]
        order = most[np.argsort(-found.value[most], kind="stable")]
        places = np.arange(len(order))
        panel.plot(places, found.value[order], color=colours["better"], marker="o", markersize=4, linestyle="")
        panel.vlines(places, found.lo[order], found.hi[order], color=colours["better"], linewidth=2)
        names = [" ".join(each) for each in _keyed(found.keys, order.tolist())]
        panel.set_xticks(places, names, rotation=45, ha="right", parse_math=False)
        _labelled(panel, f"click-through rate with {100 * found.level:g}% intervals, the most shown", found.by, colours)
    panel.set_ylim(bottom=0)
    return figure


def propensity_figure(found: Propensity, *, dark: bool = False) -> Figure:
    """The position curve, or that of each segment, with intervals."""
    colours = colours_of(dark)
    figure, (panel,) = new_figure(colours, (7.0, 3.6), [1.0])
    curves = {show_value(value): part for value, part in found.segments.items()} or {"": found}
    shades = [colours["better"], colours["worse"], colours["plain"], colours["ink"], colours["soft"]]
    for i, (name, part) in enumerate(curves.items()):
        x = np.arange(1, len(part.theta) + 1) + 0.12 * (i - (len(curves) - 1) / 2)
        _band(panel, x, part.theta, part.lo, part.hi, shades[i % len(shades)], name)
    if len(curves) > 1:
        panel.legend(frameon=False, labelcolor=colours["ink"])
    _labelled(panel, f"propensity with {100 * found.level:g}% intervals, 1 at position {found.anchor}", "position", colours)
    panel.set_ylim(bottom=0)
    return figure


def counterfactual_figure(found: Counterfactual, *, dark: bool = False) -> Figure:
    """The difference over the strength of the position bias."""
    colours = colours_of(dark)
    figure, (panel,) = new_figure(colours, (7.0, 3.6), [1.0])
    sweep = found.sweep if len(found.sweep["strength"]) else _one(found)
    _band(panel, sweep["strength"], sweep["diff"], sweep["diff_lo"], sweep["diff_hi"], colours["better"])
    panel.axhline(0, color=colours["soft"], linewidth=1, linestyle=":")
    if not math.isnan(found.crossover):
        panel.axvline(found.crossover, color=colours["worse"], linewidth=1.5, linestyle="--")
        panel.annotate(
            f" {found.crossover:.3f}", (found.crossover, 1), xycoords=("data", "axes fraction"), va="top", color=colours["worse"]
        )
    title = f"new minus logged ranker, {found.name} per session with {100 * found.level:g}% intervals"
    _labelled(panel, title, "strength of the position bias: theta ** strength", colours)
    return figure


def _one(found: Counterfactual) -> dict[str, np.ndarray]:
    values = {"strength": 1.0, "diff": found.diff, "diff_lo": found.diff_lo, "diff_hi": found.diff_hi}
    return {name: np.array([value]) for name, value in values.items()}

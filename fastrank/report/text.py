"""Results as text: a table for the terminal, Markdown, LaTeX, HTML, and JSON, CSV and TSV in full precision.

All tables are drawn from the same grids, so that every form shows the same numbers, the formulas and the notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

from fastrank.errors import InputError
from fastrank.evaluation import Estimate, Evaluation, Summary, SummaryRow, to_json
from fastrank.report.drawing import Grid, Report, formulas, latex, markdown, notebook, separated, show_value, terminal

Results = Evaluation | Summary | Mapping[str, Evaluation] | Mapping[str, Summary]
Summaries = dict[str, Summary]


def table(results: Results, form: str = "table", *, confidence: float = 0.95, stream: TextIO | None = None) -> str:
    """One result, or several systems side by side ({name: result}), as text that ends in no line break.

    `form` is one of `FORMS`, or "html". `confidence` is that of the intervals; a Summary brings its own. `stream` is where the text
    will be written: its width and colours are used where it is a terminal (NO_COLOR turns colours off). InputError where the form
    is not known, or the systems were judged by different metrics.
    """
    if form not in _WRITERS:
        raise InputError(f"format must be one of {', '.join(map(repr, FORMS))}, not {form!r}.")
    summaries = _summaries(results, confidence)
    return _WRITERS[form](summaries, stream).rstrip("\n")


def notes(results: Results, *, confidence: float = 0.95) -> list[str]:
    """The notes as the tables show them, for forms that have no place for sentences."""
    return _notes(_summaries(results, confidence))


def _summaries(results: Results, confidence: float) -> Summaries:
    named = results if isinstance(results, Mapping) else {"": results}
    if not named:
        raise InputError("there is no result to show: the dict of systems is empty.")
    summaries = {name: each.summary(confidence) if isinstance(each, Evaluation) else each for name, each in named.items()}
    first, *others = summaries
    for other in others:
        theirs, ours = ([str(row.metric) for row in summaries[name].rows] for name in (other, first))
        if theirs != ours:
            differing = [name for name in (*ours, *theirs) if name not in ours or name not in theirs] or ours
            raise InputError(
                f"{first!r} and {other!r} were judged by different metrics: {', '.join(differing)}. Evaluate both by the same ones."
            )
    return summaries


# --- grids ----------------------------------------------------------------------------------------------------------------------


def _grids(summaries: Summaries) -> Iterator[Grid]:
    if len(summaries) == 1:
        ((name, summary),) = summaries.items()
        yield _one_system(name, summary)
    else:
        yield _systems(summaries)
    for name, summary in summaries.items():
        yield from _slices(name, summary)


def _one_system(name: str, summary: Summary) -> Grid:
    rows = summary.rows
    columns: dict[str, list[str]] = {
        "metric": [row.name for row in rows],
        "mean": [_number(row.mean) for row in rows],
        _interval_header(summary): [_interval(row.low, row.high) for row in rows],
    }
    if any(row.metric.aggregation != "mean" for row in rows):
        columns["aggregate"] = [_aggregate(row) for row in rows]
    if any(row.bounds for row in rows):
        columns["tie bounds"] = [_interval(*row.bounds) if row.bounds else "" for row in rows]
    columns["queries"] = [str(row.n_queries) for row in rows]
    columns["nothing relevant"] = [str(row.n_no_relevant) for row in rows]
    return Grid(_title(name, summary), list(columns), list(zip(*columns.values(), strict=True)))


def _systems(summaries: Summaries) -> Grid:
    parts = list(summaries.values())
    header = ["metric", "nothing relevant", *summaries]
    rows = []
    for same in zip(*(summary.rows for summary in parts), strict=True):
        cells = [_cell(row, summary) for row, summary in zip(same, parts, strict=True)]
        counts = [str(row.n_no_relevant) for row in same]
        rows.append([same[0].name, counts[0] if len(set(counts)) == 1 else "\n".join(counts), *cells])
    rows.append(["queries", "", *(str(summary.n_queries) for summary in parts)])
    names = list(dict.fromkeys(summary.convention.name for summary in parts))
    title = f"{len(parts)} systems, convention {', '.join(names)}, mean and {_interval_header(parts[0])}"
    return Grid(title, header, rows)


def _slices(name: str, summary: Summary) -> Iterator[Grid]:
    for column, values in summary.slices.items():
        header = [column, "queries", *(row.name for row in summary.rows)]
        rows = [[show_value(each.value), str(each.n_queries), *(_cell(row, None) for row in each.rows)] for each in values.values()]
        yield Grid(f"by {column}" + (f", {name}" if name else ""), header, rows)


def _title(name: str, summary: Summary) -> str:
    queries = "1 query" if summary.n_queries == 1 else f"{summary.n_queries} queries"
    return (f"{name}: " if name else "") + f"{queries}, convention {summary.convention.name}"


def _cell(row: Estimate, summary: Summary | None) -> str:
    """The mean, below it the interval and what else cannot be left out."""
    lines = [_number(row.mean), _interval(row.low, row.high)]
    if summary is not None and row.n_queries != summary.n_queries:
        lines.append(f"n = {row.n_queries}")
    if isinstance(row, SummaryRow) and row.metric.aggregation != "mean":
        lines.append(_aggregate(row))
    if isinstance(row, SummaryRow) and row.bounds:
        lines.append(f"ties {_interval(*row.bounds)}")
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:.4f}"


def _interval(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"[{_number(low)}, {_number(high)}]"


def _interval_header(summary: Summary) -> str:
    return summary.interval_title


def _aggregate(row: SummaryRow) -> str:
    value = row.aggregate
    if row.metric.aggregation == "mean":
        return ""
    return f"{row.metric.aggregation} {value:.0f}" if value.is_integer() else f"{row.metric.aggregation} {_number(value)}"


def _formulas(summaries: Summaries) -> list[tuple[str, str]]:
    return formulas([(row.name, row.metric) for row in next(iter(summaries.values())).rows])


def _notes(summaries: Summaries) -> list[str]:
    """What is true of every system comes without their names."""
    systems: dict[str, list[str]] = {}
    for name, summary in summaries.items():
        for note in summary.notes:
            systems.setdefault(note.message, []).append(name)
    return [message if len(names) == len(summaries) else f"{', '.join(names)}: {message}" for message, names in systems.items()]


# --- other programs -------------------------------------------------------------------------------------------------------------


def _json(summaries: Summaries, _stream: TextIO | None) -> str:
    named = {name: summary.to_dict() for name, summary in summaries.items()}
    return to_json(named.get("", {"systems": named}))


def _records(summaries: Summaries) -> Iterator[dict[str, Any]]:
    """A record per system, slice and metric, all with the same fields."""
    for name, summary in summaries.items():
        end = {"convention": summary.convention.name, "notes": " ".join(note.message for note in summary.notes)}
        system = {} if name == "" else {"system": name}
        sliced = bool(summary.slices)
        for row in summary.rows:
            bounds = {} if row.bounds is None else dict(zip(("lowest", "highest"), row.bounds, strict=True))
            own = {"n_no_relevant": row.n_no_relevant, "aggregation": row.metric.aggregation, "aggregate": row.aggregate}
            yield system | ({"by": "", "value": ""} if sliced else {}) | _estimate(row) | own | bounds | _meaning(row) | end
        for values in summary.slices.values():
            for each in values.values():
                for part in each.rows:
                    yield system | {"by": each.column, "value": each.value} | _estimate(part) | _meaning(part) | end


def _estimate(row: Estimate) -> dict[str, Any]:
    return {
        "metric": row.name,
        "mean": row.mean,
        "low": row.low,
        "high": row.high,
        "standard_error": row.standard_error,
        "n_queries": row.n_queries,
    }


def _meaning(row: Estimate) -> dict[str, Any]:
    return {"full_name": str(row.metric), "formula": row.metric.formula}


def _drawn(draw: Callable[[Report, TextIO | None], str]) -> Callable[[Summaries, TextIO | None], str]:
    return lambda summaries, stream: draw(Report(list(_grids(summaries)), _formulas(summaries), _notes(summaries)), stream)


def _separated(delimiter: str) -> Callable[[Summaries, TextIO | None], str]:
    return lambda summaries, _stream: separated(list(_records(summaries)), delimiter)


FORMS = ("table", "json", "csv", "tsv", "markdown", "latex")
_WRITERS: dict[str, Callable[[Summaries, TextIO | None], str]] = {
    "table": _drawn(terminal),
    "json": _json,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "markdown": _drawn(markdown),
    "latex": _drawn(latex),
    "html": _drawn(notebook),
}

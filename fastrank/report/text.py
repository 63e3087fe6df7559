"""Results as text: a table for the terminal, Markdown, LaTeX, HTML, and JSON, CSV and TSV in full precision.

All tables are drawn from the same grids, so that every form shows the same numbers, the formulas and the notes.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from fastrank.errors import InputError
from fastrank.evaluation import Estimate, Evaluation, Summary, SummaryRow, to_json

if TYPE_CHECKING:
    from rich.console import Console

Results = Evaluation | Summary | Mapping[str, Evaluation] | Mapping[str, Summary]
Summaries = dict[str, Summary]

# Of a table that goes nowhere in particular, such as a repr.
_WIDTH = 80
# Longer headers and row names are broken into lines, at the first of these widths that serves.
_HEADER_WIDTHS = (16, 9)
_NAME_WIDTHS = (36, 24, 16)
_GAP = "  "


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


@dataclass(frozen=True)
class Grid:
    """A table before it is drawn. A cell may have several lines. The first `n_names` columns name the row and stand left."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    n_names: int = 1

    def part(self, columns: Sequence[int]) -> Grid:
        """The row names with some of the other columns."""
        kept = [*range(self.n_names), *columns]
        return dataclasses.replace(self, header=[self.header[c] for c in kept], rows=[[row[c] for c in kept] for row in self.rows])


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
        rows = [[_value(each.value), str(each.n_queries), *(_cell(row, None) for row in each.rows)] for each in values.values()]
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
    return f"{100 * summary.confidence:g}% interval"


def _aggregate(row: SummaryRow) -> str:
    value = row.aggregate
    if row.metric.aggregation == "mean":
        return ""
    return f"{row.metric.aggregation} {value:.0f}" if value.is_integer() else f"{row.metric.aggregation} {_number(value)}"


def _value(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "null" if value is None else str(value)


def _formulas(summaries: Summaries) -> list[tuple[str, str]]:
    """Names with the full name behind them, and the formula. Metrics that differ in the cutoff alone share an entry."""
    groups: dict[str, list[SummaryRow]] = {}
    for row in next(iter(summaries.values())).rows:
        full = str(row.metric)
        groups.setdefault(full if row.metric.k is None else full.rpartition("@")[0], []).append(row)
    entries = []
    for without_cutoff, rows in groups.items():
        name, metric = rows[0].name, rows[0].metric
        if len(rows) == 1:
            entries.append((f"{name}: {metric}", metric.formula))
        else:
            entries.append((f"{', '.join(row.name for row in rows)}: {without_cutoff}", f"{name} = {metric.formula}"))
    return entries


def _notes(summaries: Summaries) -> list[str]:
    """What is true of every system comes without their names."""
    systems: dict[str, list[str]] = {}
    for name, summary in summaries.items():
        for note in summary.notes:
            systems.setdefault(note.message, []).append(name)
    return [message if len(names) == len(summaries) else f"{', '.join(names)}: {message}" for message, names in systems.items()]


# --- the terminal ---------------------------------------------------------------------------------------------------------------


def console_for(stream: TextIO | None) -> Console:
    """A console as wide as the stream and as colourful as it can be; None: 80 columns without colours."""
    from rich.console import Console

    if stream is None:
        return Console(file=io.StringIO(), width=_WIDTH, color_system=None)
    return Console(file=stream, color_system=None if os.environ.get("NO_COLOR") else "auto")


def _terminal(summaries: Summaries, stream: TextIO | None) -> str:
    console = console_for(stream)
    with console.capture() as capture:
        for grid in _grids(summaries):
            write(grid.title, console, "", "  ", style="bold")
            for part in _fitting(grid, console.width):
                _draw(part, console)
                console.print()
        for name, formula in _formulas(summaries):
            write(name, console, "", "    ")
            write(formula, console, "    ", "    ")
        notes = _notes(summaries)
        if notes:
            console.print()
        for note in notes:
            write(note, console, "note: ", "      ", style="yellow")
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _fitting(grid: Grid, width: int) -> list[Grid]:
    """The grid in the fewest parts that are no wider than `width`; names are broken no more than that takes."""
    choices = [list(_parts(grid, width, names, header)) for header in _HEADER_WIDTHS for names in _NAME_WIDTHS]
    return min(choices, key=lambda parts: (max(map(_width, parts)) > width, len(parts)))


def _parts(grid: Grid, width: int, name_width: int, header_width: int) -> Iterator[Grid]:
    n_names = grid.n_names
    rows = [[*(_broken(name, name_width) for name in row[:n_names]), *row[n_names:]] for row in grid.rows]
    widths = [max((_cell_width(row[c]) for row in rows), default=0) for c in range(len(grid.header))]
    header = [_broken(text, max(header_width, widths[c])) for c, text in enumerate(grid.header)]
    widths = [max(cells, _cell_width(text)) + len(_GAP) for cells, text in zip(widths, header, strict=True)]
    broken = dataclasses.replace(grid, header=header, rows=rows)
    part: list[int] = []
    used = start = sum(widths[:n_names]) - len(_GAP)
    for c in range(n_names, len(widths)):
        if part and used + widths[c] > width:
            yield broken.part(part)
            part, used = [], start
        part.append(c)
        used += widths[c]
    yield broken.part(part)


def _broken(text: str, width: int) -> str:
    return "\n".join(line for old in text.splitlines() for line in textwrap.wrap(old, width)) or text


def _width(grid: Grid) -> int:
    columns = zip(grid.header, *grid.rows, strict=True)
    return sum(max(map(_cell_width, column)) + len(_GAP) for column in columns) - len(_GAP)


def _cell_width(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def _draw(grid: Grid, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, len(_GAP) - 1, 0, 0), header_style="bold")
    for c, text in enumerate(grid.header):
        drawn.add_column(Text(text), justify="left" if c < grid.n_names else "right", no_wrap=True, vertical="top")
    for row in grid.rows:
        drawn.add_row(*(_styled(text, named=c < grid.n_names) for c, text in enumerate(row)))
    # On a screen too narrow for a name and one column, lines run on: no number is ever cut.
    console.print(drawn, width=max(console.width, _width(grid)), crop=False)


def _styled(text: str, *, named: bool) -> Any:
    from rich.text import Text

    first, *rest = text.split("\n")
    styled = Text(first, style="cyan" if named else "")
    for line in rest:
        styled.append("\n" + line, style="" if named else "dim")
    return styled


def write(text: str, console: Console, first: str = "", further: str = "", style: str = "dim") -> None:
    """A paragraph, broken to the console's width; `first` and `further` begin its lines."""
    from rich.text import Text

    lines = textwrap.wrap(text, max(console.width, 20), initial_indent=first, subsequent_indent=further, break_on_hyphens=False)
    console.print(Text("\n".join(lines), style=style), soft_wrap=True)


# --- Markdown, LaTeX, HTML ------------------------------------------------------------------------------------------------------


def _markdown(summaries: Summaries, _stream: TextIO | None) -> str:
    lines = []
    for grid in _grids(summaries):
        rows = [[_joined(cell).replace("|", "\\|") for cell in row] for row in (grid.header, *grid.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
        rule = ["-" * width if c < grid.n_names else "-" * (width - 1) + ":" for c, width in enumerate(widths)]
        aligned = [
            [cell.ljust(width) if c < grid.n_names else cell.rjust(width) for c, (cell, width) in enumerate(zip(row, widths, strict=True))]
            for row in rows
        ]
        lines += [f"**{grid.title}**", "", *(f"| {' | '.join(row)} |" for row in (aligned[0], rule, *aligned[1:])), ""]
    lines += [f"- `{name}`\n  `{formula}`" for name, formula in _formulas(summaries)]
    lines += ["", *(f"> {note}  " for note in _notes(summaries))]
    return "\n".join(lines)


_LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$"}
    | {"'": r"\textquotesingle{}", "−": "$-$", "·": r"$\cdot$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "Σ": r"$\Sigma$"}
)


def _tex(text: str) -> str:
    return _joined(text).replace("<=", "≤").replace(">=", "≥").translate(_LATEX)


def _latex(summaries: Summaries, _stream: TextIO | None) -> str:
    lines = [r"% \usepackage{booktabs,textcomp}"]
    for grid in _grids(summaries):
        rows = [" & ".join(_tex(cell) for cell in row) + r" \\" for row in (grid.header, *grid.rows)]
        align = "l" * grid.n_names + "r" * (len(grid.header) - grid.n_names)
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{_tex(grid.title)}}}", rf"\begin{{tabular}}{{{align}}}"]
        lines += [r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    remarks = [f"{name}: {formula}" for name, formula in _formulas(summaries)] + _notes(summaries)
    lines += [r"{\footnotesize", *(rf"\noindent {_tex(remark)}\par" for remark in remarks), "}"]
    return "\n".join(lines)


def _html(summaries: Summaries, _stream: TextIO | None) -> str:
    from fastrank.report.notebook import page_part

    return page_part(_grids(summaries), _formulas(summaries), _notes(summaries))


def _joined(cell: str) -> str:
    return cell.replace("\n", " ")


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


def _separated(delimiter: str) -> Callable[[Summaries, TextIO | None], str]:
    def write(summaries: Summaries, _stream: TextIO | None) -> str:
        records = list(_records(summaries))
        fields = list(dict.fromkeys(field for record in records for field in record))
        out = io.StringIO()
        writer = csv.DictWriter(out, fields, delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _value(value) for name, value in record.items()} for record in records)
        return out.getvalue()

    return write


FORMS = ("table", "json", "csv", "tsv", "markdown", "latex")
_WRITERS: dict[str, Callable[[Summaries, TextIO | None], str]] = {
    "table": _terminal,
    "json": _json,
    "csv": _separated(","),
    "tsv": _separated("\t"),
    "markdown": _markdown,
    "latex": _latex,
    "html": _html,
}

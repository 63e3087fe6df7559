"""Reports drawn: tables, formulas and notes for the terminal, Markdown, LaTeX, HTML, CSV and TSV.

All forms are drawn from the same grids, so that they show the same numbers.
"""

from __future__ import annotations

import csv
import dataclasses
import html
import io
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from fastrank.metrics.base import Metric

# Of a table that goes nowhere in particular, such as a repr.
_WIDTH = 80
# Longer headers and row names are broken into lines, at the first of these widths that serves.
_HEADER_WIDTHS = (16, 9)
_NAME_WIDTHS = (36, 24, 16)
_GAP = "  "


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


@dataclass(frozen=True)
class Report:
    """What is drawn: sentences first, then tables, (name, formula) of each metric, and notes.

    Control characters in names and values, which could move a terminal's cursor, are put as `visible` has them.
    """

    grids: Sequence[Grid]
    formulas: Sequence[tuple[str, str]]
    notes: Sequence[str]
    lead: Sequence[str] = ()

    def __post_init__(self) -> None:
        grids = [
            dataclasses.replace(
                grid,
                title=visible(grid.title),
                header=[visible(text) for text in grid.header],
                rows=[[visible(text) for text in row] for row in grid.rows],
            )
            for grid in self.grids
        ]
        object.__setattr__(self, "grids", grids)
        for texts in ("notes", "lead"):
            object.__setattr__(self, texts, [visible(text) for text in getattr(self, texts)])


def visible(text: str) -> str:
    r"""Text without control characters but line breaks: an escape becomes \x1b, four characters."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def formulas(named: Sequence[tuple[str, Metric]]) -> list[tuple[str, str]]:
    """Names with the full name behind them, and the formula. Metrics that differ in the cutoff alone share an entry."""
    groups: dict[str, list[tuple[str, Metric]]] = {}
    for name, metric in named:
        full = str(metric)
        groups.setdefault(full if metric.k is None else full.rpartition("@")[0], []).append((name, metric))
    entries = []
    for without_cutoff, members in groups.items():
        name, metric = members[0]
        if len(members) == 1:
            entries.append((f"{name}: {metric}", metric.formula))
        else:
            entries.append((f"{', '.join(each for each, _ in members)}: {without_cutoff}", f"{name} = {metric.formula}"))
    return entries


# --- the terminal ---------------------------------------------------------------------------------------------------------------


def console_for(stream: TextIO | None) -> Console:
    """A console as wide as the stream and as colourful as it can be; None: 80 columns without colours."""
    from rich.console import Console

    if stream is None:
        return Console(file=io.StringIO(), width=_WIDTH, color_system=None)
    return Console(file=stream, color_system=None if os.environ.get("NO_COLOR") else "auto")


def terminal(report: Report, stream: TextIO | None) -> str:
    """For a screen: as wide and as colourful as the stream, lines broken between words."""
    console = console_for(stream)
    with console.capture() as capture:
        for sentence in report.lead:
            write(sentence, console, style="bold")
        if report.lead:
            console.print()
        for grid in report.grids:
            write(grid.title, console, "", "  ", style="bold")
            for part in _fitting(grid, console.width):
                _draw(part, console)
                console.print()
        for name, formula in report.formulas:
            write(name, console, "", "    ")
            write(formula, console, "    ", "    ")
        if report.notes:
            console.print()
        for note in report.notes:
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


def markdown(report: Report, _stream: TextIO | None = None) -> str:
    """Pipe tables, formulas as a list, notes as a quotation."""
    lines = [line for sentence in report.lead for line in (_marked(sentence), "")]
    for grid in report.grids:
        rows = [[_marked(cell) for cell in row] for row in (grid.header, *grid.rows)]
        widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
        rule = ["-" * width if c < grid.n_names else "-" * (width - 1) + ":" for c, width in enumerate(widths)]
        aligned = [
            [cell.ljust(width) if c < grid.n_names else cell.rjust(width) for c, (cell, width) in enumerate(zip(row, widths, strict=True))]
            for row in rows
        ]
        lines += [f"**{_marked(grid.title)}**", "", *(f"| {' | '.join(row)} |" for row in (aligned[0], rule, *aligned[1:])), ""]
    lines += [f"- `{name}`\n  `{formula}`" for name, formula in report.formulas]
    lines += ["", *(f"> {_marked(note)}  " for note in report.notes)]
    return "\n".join(lines)


def _marked(text: str) -> str:
    """Text that means itself in Markdown, inside a line: no tag, entity, emphasis, code, link or end of a cell."""
    return _MARKUP.sub(lambda found: "\\" + found[0], _joined(text))


_MARKUP = re.compile(r"[\\`*<|]|&(?=#?\w+;)|\](?=\()")


_LATEX = str.maketrans(
    {character: "\\" + character for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$"}
    | {"'": r"\textquotesingle{}", "−": "$-$", "·": r"$\cdot$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "Σ": r"$\Sigma$"}
)


def _tex(text: str) -> str:
    return _joined(text).replace("<=", "≤").replace(">=", "≥").translate(_LATEX)


def latex(report: Report, _stream: TextIO | None = None) -> str:
    """Tables of the booktabs package, formulas and notes as small paragraphs."""
    lines = [r"% \usepackage{booktabs,textcomp}", *(rf"\noindent {_tex(sentence)}\par" for sentence in report.lead)]
    for grid in report.grids:
        rows = [" & ".join(_tex(cell) for cell in row) + r" \\" for row in (grid.header, *grid.rows)]
        # The end of a row takes a bracket or a star at the start of the next for its own.
        rows = ["{}" + row if row.startswith(("[", "*")) else row for row in rows]
        align = "l" * grid.n_names + "r" * (len(grid.header) - grid.n_names)
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{_tex(grid.title)}}}", rf"\begin{{tabular}}{{{align}}}"]
        lines += [r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
    remarks = [f"{name}: {formula}" for name, formula in report.formulas] + list(report.notes)
    lines += [r"{\footnotesize", *(rf"\noindent {_tex(remark)}\par" for remark in remarks), "}"]
    return "\n".join(lines)


def notebook(report: Report, _stream: TextIO | None = None) -> str:
    """HTML for a cell of a notebook."""
    from fastrank.report.notebook import page_part

    return page_part(report)


def _joined(cell: str) -> str:
    return cell.replace("\n", " ")


# --- other programs -------------------------------------------------------------------------------------------------------------


def separated(records: Sequence[Mapping[str, Any]], delimiter: str) -> str:
    """Records as CSV or TSV, a line each, with a header of all their fields."""
    fields = list(dict.fromkeys(field for record in records for field in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in record.items()} for record in records)
    return out.getvalue()


def _cell(value: Any) -> str:
    """A value in a file that a spreadsheet may open: text that it would take for a formula begins with an apostrophe."""
    shown = show_value(value)
    return f"'{shown}" if isinstance(value, str | bytes) and _FORMULA.match(shown) else shown


# A sign before a number is no formula.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?!\d+(\.\d*)?(e[+-]?\d+)?$)")


def show_value(value: Any) -> str:
    """A value of a column as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return "null" if value is None else str(value)


def escape(value: Any) -> str:
    """Text that means itself in HTML."""
    return html.escape(visible(show_value(value)))

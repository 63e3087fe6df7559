"""Pieces of the page: tables by columns, worked values, and numbers as a page sets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fastrank.comparison.findings import BETTER, WORSE, Difference
from fastrank.report import compared
from fastrank.report.drawing import Grid, escape


class Column(NamedTuple):
    """A column of a table: its head (HTML), the cell of each row (HTML), and the classes of its cells."""

    head: str
    cell: Callable[[Any], str]
    kind: str = ""


def table(caption: str, columns: Sequence[Column], rows: Sequence[Any], mark: Callable[[Any], str] = lambda _row: "") -> str:
    """A table whose first column names the rows; `mark` gives the class of a row.

    It scrolls by itself where the screen is too narrow, and the keyboard reaches it.
    """
    head = "".join(
        f"<th scope='col' class='{'name ' if c == 0 or 'word' in each.kind else ''}{each.kind}'>{each.head}</th>"
        for c, each in enumerate(columns)
    )
    body = ""
    for row in rows:
        first, *rest = columns
        cells = f"<th scope='row'>{first.cell(row)}</th>" + "".join(f"<td class='{each.kind}'>{each.cell(row)}</td>" for each in rest)
        body += f"<tr class='{mark(row)}'>{cells}</tr>"
    return framed(caption, f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>").replace(" class=''", "")


def framed(caption: str, inside: str) -> str:
    """A table with its caption, in a region that scrolls."""
    return (
        f"<div class='scroll' role='region' tabindex='0' aria-label='{escape(caption)}'>"
        f"<table><caption><span>{escape(caption)}</span></caption>{inside}</table></div>"
    )


def grid_table(grid: Grid) -> str:
    """A table of the text report."""
    named = grid.n_names
    head = "".join(f"<th scope='col'{' class=name' if c < named else ''}>{_lines(cell)}</th>" for c, cell in enumerate(grid.header))
    body = ""
    for row in grid.rows:
        cells = (f"<th scope='row'>{_lines(cell)}</th>" if c < named else f"<td>{_lines(cell)}</td>" for c, cell in enumerate(row))
        body += f"<tr>{''.join(cells)}</tr>"
    return framed(grid.title, f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>")


def _lines(cell: str) -> str:
    first, *rest = escape(cell).split("\n")
    return "".join([first, *(f"<br><small>{each}</small>" for each in rest)])


def worked_value(worked: Any) -> str:
    """A worked value: formula, ranking, ideal order and the steps of the calculation."""
    parts = [f"<p class='formula'>{escape(str(worked.metric))}<br>{escape(worked.metric.formula)}</p>"]
    for sheet in worked.worksheets():
        head = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in sheet.header)
        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in sheet.rows)
        if sheet.total:
            rows += f"<tr class='total'>{''.join(f'<td>{escape(cell)}</td>' for cell in sheet.total)}</tr>"
        parts.append(framed(sheet.title, f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"))
    parts.append(f"<p class='steps'>{'<br>'.join(map(escape, worked.steps))}</p>")
    return "".join(parts)


# --- words and numbers ----------------------------------------------------------------------------------------------------------


def signed(value: float) -> str:
    """A difference with a minus sign as typesetters have it, which also stays on the line of its number."""
    return compared.signed(value).replace("-", "−")


def percent(ratio: float) -> str:
    """A change."""
    return compared.percent(ratio).replace("-", "−")


def effect(value: float) -> str:
    """An effect size."""
    return "–" if value != value else f"{value:.2f}".replace("-", "−")


def side(found: Difference) -> str:
    """The class that colours a difference: better, worse, or none."""
    return found.verdict if found.verdict in (BETTER, WORSE) else ""


def verdict(found: Difference) -> str:
    """The verdict, coloured where there is one; the word says it without the colour."""
    words = escape(compared.verdict(found))
    return f"<span class='{side(found)}-word'>{words}</span>" if side(found) else words


def counted(count: int, what: str) -> str:
    """A count with its noun."""
    return f"{count} {what}{'' if count == 1 else 's'}"

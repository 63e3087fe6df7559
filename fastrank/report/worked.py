"""The worked table of one query, drawn for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from fastrank.report.drawing import console_for, write

if TYPE_CHECKING:
    from rich.table import Table

    from fastrank.engine.worked import Worked, Worksheet


def worked_table(worked: Worked, stream: TextIO | None = None) -> str:
    """Formula, ranking, ideal order and steps as text that ends in no line break; `stream` is where it will be written."""
    console = console_for(stream)
    with console.capture() as capture:
        write(str(worked.metric), console, further="    ", style="bold")
        write(worked.metric.formula, console, "    ", "    ")
        for sheet in worked.worksheets():
            console.print()
            console.print(sheet.title, style="bold")
            # Lines run on where the screen is too narrow: no number is ever cut.
            console.print(_drawn(sheet), width=max(console.width, _width(sheet)), crop=False)
        console.print()
        for step in worked.steps[:-1]:
            write(step, console, further="    ", style="")
        write(worked.steps[-1], console, further="    ", style="bold")
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _drawn(sheet: Worksheet) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    total = sheet.total or ("",) * len(sheet.header)
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), show_footer=sheet.total is not None)
    table.header_style = table.footer_style = "bold"
    for name, added in zip(sheet.header, total, strict=True):
        table.add_column(Text(name), Text(added), justify="right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*map(Text, row))
    return table


def _width(sheet: Worksheet) -> int:
    rows = [sheet.header, *sheet.rows, *([sheet.total] if sheet.total else [])]
    return sum(max(map(len, column)) + 2 for column in zip(*rows, strict=True))

"""Results as HTML for a notebook: colours and fonts are those of the page, so it reads well on light and on dark ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrank.report.drawing import escape

if TYPE_CHECKING:
    from fastrank.report.drawing import Grid, Report

# Notebooks stripe tables and set them in columns of equal right-aligned text; !important is what it takes to undo that. Lines are half
# transparent grey: visible on any page.
STYLE = """
.fastrank { line-height: 1.45; max-width: 100%; overflow-x: auto }
.fastrank table { border-collapse: collapse; margin: 0 0 1.2em !important; border: 0 !important;
  font-size: inherit; font-variant-numeric: tabular-nums }
.fastrank caption { caption-side: top; text-align: left; font-weight: 600; color: inherit; padding: 0 0 .5em }
.fastrank tr, .fastrank th, .fastrank td { background: none !important; color: inherit !important }
.fastrank th, .fastrank td { padding: .3em 0 .3em 2em !important; border: 0 !important;
  border-bottom: 1px solid rgba(128, 128, 128, .25) !important;
  text-align: right !important; vertical-align: top !important; white-space: nowrap }
.fastrank thead th { border-bottom: 1px solid rgba(128, 128, 128, .8) !important; font-weight: 600; vertical-align: bottom !important }
.fastrank th:first-child, .fastrank td:first-child { padding-left: 0 !important }
.fastrank tbody th, .fastrank .name { text-align: left !important; font-weight: 500; white-space: normal; max-width: 28em }
.fastrank thead .name { font-weight: 600 }
.fastrank small { font-size: .9em; opacity: .75 }
.fastrank dl { margin: 0 0 1em; font-size: .92em }
.fastrank dt { font-weight: 500; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .95em }
.fastrank dd { margin: 0 0 .5em 1.5em; opacity: .85 }
.fastrank ul { margin: 0; padding: 0 0 0 1.2em }
"""


def page_part(report: Report) -> str:
    """Sentences, tables, the formulas of their metrics, and notes, in one element that brings its style along."""
    lines = ['<div class="fastrank">', f"<style>{STYLE}</style>", *(f"<p><b>{escape(each)}</b></p>" for each in report.lead)]
    for grid in report.grids:
        lines += ["<table>", f"<caption>{escape(grid.title)}</caption>"]
        head = "".join(f"<th scope='col'{_named(c, grid)}>{_lines(cell)}</th>" for c, cell in enumerate(grid.header))
        lines += [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
        lines += [f"<tr>{''.join(_cell(c, cell, grid) for c, cell in enumerate(row))}</tr>" for row in grid.rows]
        lines += ["</tbody>", "</table>"]
    entries = [f"<dt>{escape(name)}</dt><dd>{escape(formula)}</dd>" for name, formula in report.formulas]
    lines += ["<dl>", *entries, "</dl>"]
    if report.notes:
        lines += ["<ul>", *(f"<li>{escape(note)}</li>" for note in report.notes), "</ul>"]
    return "\n".join([*lines, "</div>"])


def _named(column: int, grid: Grid) -> str:
    return " class='name'" if column < grid.n_names else ""


def _cell(column: int, cell: str, grid: Grid) -> str:
    return f"<th scope='row'>{_lines(cell)}</th>" if column < grid.n_names else f"<td>{_lines(cell)}</td>"


def _lines(cell: str) -> str:
    """The first line, and what qualifies it below."""
    first, *rest = escape(cell).split("\n")
    return "<br>".join([first, *(f"<small>{line}</small>" for line in rest)])

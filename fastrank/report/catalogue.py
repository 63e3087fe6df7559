"""Metrics and conventions to choose from, as pages for a terminal."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TextIO

from fastrank.convention import Convention, as_convention, conventions
from fastrank.gains import tidy
from fastrank.metrics.base import families, show_cutoff, show_rel
from fastrank.metrics.grammar import list_metrics, parse_metric
from fastrank.report.drawing import console_for, write

if TYPE_CHECKING:
    from rich.console import Console


def metrics_page(stream: TextIO | None = None) -> str:
    """Every metric family: its name, what it is, its other names, its parameters."""

    def draw(console: Console) -> None:
        rows = [(info.name, info.title, ", ".join(info.aliases), ", ".join(info.parameters)) for info in list_metrics()]
        _table(console, ("metric", "title", "also", "parameters"), rows)
        console.print()
        write(
            "A cutoff is written @10 or @20%, a parameter as in nDCG(gain='linear')@10. One metric in full: fastrank metrics NAME.", console
        )

    return _page(draw, stream)


def metrics_markdown() -> str:
    """Every metric family as a Markdown page: a table, then formula under the default convention, example and source of each."""
    infos = list_metrics()
    lines = [
        "# Metrics",
        "",
        "Written by `fastrank metrics --markdown`. A cutoff is written `@10` or `@20%`, a parameter as in `nDCG(gain='linear')@10`; what a",
        "name leaves open the convention of the call decides, and the formulas here are those of the default one. One metric in full, with",
        "what each convention makes of it: `fastrank metrics NAME`.",
        "",
        "| metric | title | also called | parameters |",
        "|---|---|---|---|",
    ]
    for info in infos:
        others, parameters = (", ".join(f"`{name}`" for name in names) for names in (info.aliases, info.parameters))
        lines.append(f"| [`{info.name}`](#{info.name.lower()}) | {info.title} | {others} | {parameters} |")
    for info in infos:
        doc = inspect.cleandoc(families[info.name].__doc__ or "")
        better = "" if info.higher_is_better else " Lower is better."
        lines += ["", f"## {info.name}", "", doc + better, "", "```text", info.formula, "```", "", f"Example: {info.example}  "]
        lines.append(f"Source: {info.source}")
    return "\n".join(lines) + "\n"


def metric_page(name: str, convention: str = "fastrank", stream: TextIO | None = None) -> str:
    """One metric, by any spelling: its formula under a convention, what every convention makes of the name, example and source."""
    asked = parse_metric(name)
    chosen = as_convention(convention)
    metric, family = asked.fill(chosen), families[asked.family]

    def draw(console: Console) -> None:
        write(f"{family.title}: {metric}", console, further="    ", style="bold")
        write(metric.formula, console, "    ", "    ", style="")
        if family.aliases:
            write(f"Also called {', '.join(family.aliases)}.", console, style="")
        direction = "Higher" if family.higher_is_better else "Lower"
        write(f"{direction} is better. Aggregated by the {family.aggregation} over queries.", console, style="")
        console.print()
        names = family.parameters()[: -1 if family.whole_list_only else None]
        filled = [(each.name, asked.fill(each)) for each in conventions.values()]
        rows = [(label, *(_choice(parameter, getattr(each, parameter)) for parameter in names)) for label, each in filled]
        console.print(f"what {asked.short_name} means under each convention", style="bold")
        _table(console, ("convention", *names), rows)
        console.print()
        write(f"Example: {family.example}", console, further="    ", style="")
        write(f"Source: {family.source}", console, further="    ", style="")

    return _page(draw, stream)


def conventions_page(stream: TextIO | None = None) -> str:
    """Every convention: its name, what it reproduces, and the choices on which tools differ most."""

    def draw(console: Console) -> None:
        rows = [(each.name, str(each.gain), each.ties, each.no_relevant, each.source) for each in conventions.values()]
        _table(console, ("convention", "gain", "ties", "nothing to find", "what it reproduces"), rows)
        console.print()
        write("Single metrics may differ from their convention's rule. One convention in full: fastrank conventions NAME.", console)

    return _page(draw, stream)


def convention_page(name: str, stream: TextIO | None = None) -> str:
    """Every choice of one convention, and what single metrics do otherwise."""
    convention = as_convention(name)

    def draw(console: Console) -> None:
        write(f"{convention.name}: {convention.source}", console, further="    ", style="bold")
        console.print()
        _table(console, ("choice", "value"), _choices(convention))

    return _page(draw, stream)


def _choices(convention: Convention) -> list[tuple[str, str]]:
    rows = [
        ("gain", str(convention.gain)),
        ("discount", str(convention.discount)),
        ("equal scores", convention.ties),
        ("nothing to find", convention.no_relevant),
        ("relevant", show_rel(convention.rel)),
        ("scores compared as", convention.scores or "given"),
        ("labels held as", convention.labels or "given"),
        ("negative labels", "legal" if convention.negative_labels else "an error"),
    ]
    if convention.binary_only:
        rows.append(("labels 0 and 1 only", ", ".join(convention.binary_only)))
    for family, choices in convention.families:
        rows += [(f"{family}: {name}", _choice(name, value)) for name, value in choices]
    return rows


def _choice(name: str, value: Any) -> str:
    if name == "k":
        return "whole list" if value is None else show_cutoff(value)
    return str(tidy(value)) if isinstance(value, float) else str(value)


# --- drawing --------------------------------------------------------------------------------------------------------------------


def _page(draw: Callable[[Console], None], stream: TextIO | None) -> str:
    console = console_for(stream)
    with console.capture() as capture:
        draw(console)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def _table(console: Console, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Text in columns; long cells are broken into lines, names are not."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        table.add_column(Text(name), style="cyan" if place == 0 else "", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)

"""Measuring rows and telling what came out: a table for the terminal, JSON, and the README's tables and plots."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.comparison import Kind, Result
from benchmarks.data import Setting
from benchmarks.rows import ROWS, Row
from benchmarks.timing import ROOT, check, facts, measure

BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
MISSED, UNEQUAL = "missed", "unequal"


@dataclass(frozen=True)
class Places:
    """Where a report is written: its JSON, the page with what the marks came to, and the folder of all its lines and the plots."""

    results: Path = ROOT / "benchmarks" / "results" / "report.json"
    page: Path = ROOT / "README.md"
    folder: Path = ROOT / "docs"

    @property
    def lines(self) -> Path:
        """The page with every line."""
        return self.folder / "benchmarks.md"

    @classmethod
    def inside(cls, folder: Path) -> Places:
        """A report apart from the repository's."""
        return cls(folder / "report.json", folder / "README.md", folder / "docs")


# What one row came to: the setting, the machine, and its results.
Measured = dict[str, Any]


def measure_row(row: Row, setting: Setting, console: Console) -> Measured:
    """Measure every comparison of a row, and print them as a table."""
    began = facts()
    results = []
    with console.status(row.name) as status:
        for comparison in row.comparisons(setting):
            other = comparison.other.name if comparison.other else "alone"
            status.update(f"{row.name}: {comparison.shape}, {comparison.ours.name} / {other}")
            results.append(measure(comparison, rounds=setting.rounds, seconds=setting.seconds))
    console.print(_rich_table(row, results))
    at = datetime.now(UTC).isoformat(timespec="seconds")
    return {"setting": setting.name, "at": at, "machine": began, "results": [result.to_dict() for result in results]}


def results_of(measured: Measured) -> list[Result]:
    """The results in a row's entry of the JSON."""
    return [Result.from_dict(plain) for plain in measured["results"]]


def run(rows: Iterable[Row], setting: Setting, places: Places | None, *, keep: bool, console: Console) -> dict[str, Measured]:
    """Measure rows, writing the JSON after each and the page and the plots at the end.

    `keep`: rows that are not measured now stay as they were measured before.
    """
    everything = read_report(places.results) if places is not None and keep else {}
    for row in rows:
        everything[row.name] = measure_row(row, setting, console)
        if places is not None:
            write_report(everything, places.results)
    if places is not None:
        write_page(everything, places)
    return everything


def read_report(path: Path) -> dict[str, Measured]:
    """Rows of an earlier report; none where there is no such file."""
    return dict(json.loads(path.read_text())["rows"]) if path.exists() else {}


def write_report(everything: dict[str, Measured], path: Path) -> None:
    """The JSON, its rows in the order of the table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    in_order = {name: everything[name] for name in ROWS if name in everything}
    path.write_text(json.dumps({"rows": in_order}, indent=1) + "\n")


def unequal(everything: dict[str, Measured]) -> list[Result]:
    """The comparisons whose sides did not agree."""
    return [result for measured in everything.values() for result in results_of(measured) if result.status == UNEQUAL]


def smoke(rows: Iterable[Row], setting: Setting, console: Console) -> list[str]:
    """Check that both sides of every comparison compute the same, and time nothing. What does not, one line each."""
    failures = []
    for row in rows:
        n_equal = 0
        for comparison in row.comparisons(setting):
            refused = check(comparison)
            n_equal += refused is None
            if refused is not None:
                line = f"{row.name}, {refused.shape}, {refused.ours} / {refused.other}: {refused.status}, {refused.note}"
                console.print(line, highlight=False, markup=False)
                if refused.status == UNEQUAL:
                    failures.append(line)
        console.print(f"{row.name}: {n_equal} comparisons agree", highlight=False)
    return failures


# --- figures as text -------------------------------------------------------------------------------------------------------------


def three_digits(value: float) -> str:
    """A measured figure with three significant digits, or the whole number when it has more."""
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 9.995 else f"{value:.1f}"


def exactly(value: float) -> str:
    """A mark, as it was set; one that follows from a ratio, with four significant digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def seconds_text(seconds: float, number: Callable[[float], str] = three_digits) -> str:
    """Seconds with a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if abs(seconds) >= size:
            return f"{number(seconds / size)} {unit}"
    return f"{number(seconds / 1e-9)} ns"


def figure_text(row: Row, result: Result, figure: float | None) -> str:
    """One side's figure: per document where the row counts them, else the whole time, or memory."""
    if figure is None:
        return "–"
    if result.kind == "bytes":
        return f"{figure / 1e6:,.0f} MB"
    if row.each is None:
        return seconds_text(figure)
    return f"{three_digits(figure / result.n_documents * 1e9)} ns"


def reached_text(kind: Kind, value: float | None, number: Callable[[float], str] = three_digits) -> str:
    """What was reached, or is to be, in the unit of the mark."""
    if value is None:
        return ""
    if kind == "bytes":
        return f"{value / 1e6:,.0f} MB"
    if kind == "excess":
        return f"{seconds_text(value, number)} more"
    return seconds_text(value, number) if kind == "seconds" else f"{number(value)}×"


def mark_text(result: Result) -> str:
    """The mark: what must be reached, and what is aimed at."""
    if result.must is None:
        return ""
    sign = "≥" if result.kind == "faster" else "≤"
    must = f"{sign} {reached_text(result.kind, result.must, exactly)}"
    return must if result.aim is None else f"{must}, aim {reached_text(result.kind, result.aim, exactly)}"


def verdict_text(result: Result) -> str:
    """What is said of the mark."""
    return {"aim": "reached, and the aim", "must": "reached", MISSED: "missed", None: ""}[result.verdict]


def side_text(name: str | None, threads: int | None) -> str:
    """A call with its threads, where it was told how many."""
    if name is None:
        return ""
    return name if threads is None else f"{name} ({threads} thread{'s' if threads > 1 else ''})"


SUMMARY = ("work", "shape", "mark", "reached")
HEADER = ("shape", "ours", "time", "against", "time", "reached", "mark", "")


def cells(row: Row, result: Result) -> tuple[str, ...]:
    """A line of the table."""
    reached = reached_text(result.kind, result.reached)
    verdict = verdict_text(result)
    if result.status != "measured":
        reached, verdict = result.status, result.note
    return (
        result.shape,
        side_text(result.ours, result.ours_threads),
        figure_text(row, result, result.ours_figure),
        side_text(result.other, result.other_threads),
        figure_text(row, result, result.other_figure) if result.other else "",
        reached,
        mark_text(result),
        verdict,
    )


def _caption(row: Row) -> str:
    unit = f"; times are for one {row.each}" if row.each else ""
    return f"{row.title}{unit}"


def _rich_table(row: Row, results: Sequence[Result]) -> Table:
    table = Table(title=f"{row.name}: {_caption(row)}", title_justify="left", show_lines=False)
    for place, name in enumerate(HEADER):
        table.add_column(name, justify="right" if place in (2, 4, 5) else "left", overflow="fold")
    for result in results:
        style = {"unequal": "bold red", "not available": "dim"}.get(result.status, "yellow" if result.verdict == MISSED else "")
        table.add_row(*cells(row, result), style=style)
    return table


# --- the page --------------------------------------------------------------------------------------------------------------------


def write_page(everything: dict[str, Measured], places: Places) -> None:
    """Draw the plots, rewrite the page between its marks, and write the page with every line."""
    from benchmarks import plots

    drawn = plots.draw(everything, places.folder)
    text = places.page.read_text() if places.page.exists() else f"{BEGIN}\n{END}\n"
    folder = f"{places.folder.relative_to(places.page.parent)}/"
    region = page_region(everything, [_picture(each, folder) for each in drawn], f"{folder}{places.lines.name}")
    places.page.write_text(replace_region(text, region))
    places.folder.mkdir(parents=True, exist_ok=True)
    places.lines.write_text(every_line(everything, [_picture(each, "") for each in drawn]))


def replace_region(text: str, region: str) -> str:
    """The page with what stands between the marks replaced."""
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"the page must hold {BEGIN} and, after it, {END}, each once.")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{region}\n{END}{rest.split(END)[1]}"


def _picture(drawn: tuple[str, str], folder: str) -> str:
    """The picture NAME-light.svg, or NAME-dark.svg where the reader's screen is dark."""
    name, caption = drawn
    dark, light = (f"{folder}{name}-{theme}.svg" for theme in ("dark", "light"))
    return f'<picture><source media="(prefers-color-scheme: dark)" srcset="{dark}"><img alt="{caption}" src="{light}"></picture>'


def page_region(everything: dict[str, Measured], pictures: Sequence[str], lines: str) -> str:
    """What the marks came to, and the pictures, as Markdown."""
    measured = {name: each for name, each in everything.items() if name in ROWS}
    groups: dict[tuple[str, ...], list[Result]] = {}
    for name, each in measured.items():
        for result in results_of(each):
            if result.must is not None and not ROWS[name].plotted:
                sides = side_text(result.ours, result.ours_threads), side_text(result.other, result.other_threads)
                groups.setdefault((ROWS[name].title, *sides), []).append(result)
    table = _table(SUMMARY, (3,), (_summary(*key, results) for key, results in groups.items()))
    return "\n\n".join([_provenance(list(measured.values())), *pictures, table, f"Every line, with times: [{lines}]({lines})."])


def _summary(title: str, ours: str, other: str, results: Sequence[Result]) -> tuple[str, ...]:
    """A line for the same two calls on several shapes."""

    def each(text: Callable[[Result], str]) -> str:
        texts = [text(result) for result in results]
        return texts[0] if len(set(texts)) == 1 else " · ".join(texts)

    def reached(result: Result) -> str:
        text = reached_text(result.kind, result.reached) if result.status == "measured" else f"{result.status}: {result.note}"
        return f"**{text}**" if result.verdict in ("must", "aim") else text

    sides = f"{ours} / {other}" if other else ours
    return f"{title}: {sides}", each(lambda result: result.shape), each(mark_text), each(reached)


def every_line(everything: dict[str, Measured], pictures: Sequence[str]) -> str:
    """The page with every line of every table."""
    measured = {name: each for name, each in everything.items() if name in ROWS}
    parts = ["# Benchmarks", _provenance(list(measured.values())), *pictures]
    for name, row in ROWS.items():
        if name in measured and not row.plotted:
            lines = (cells(row, result) for result in results_of(measured[name]))
            parts.append(f"**{_caption(row)}**\n\n{_table(HEADER, (2, 4, 5), lines)}")
    return "\n\n".join(parts) + "\n"


def _provenance(measured: Sequence[Measured]) -> str:
    """On what it was measured; each machine once."""
    machines = []
    for each in measured:
        machine = each["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
        shapes = "" if each["setting"] == "full" else f" Shapes: {each['setting']}, smaller than those of the marks."
        memory = f", {machine['memory_bytes'] / 2**30:.0f} GB" if machine["memory_bytes"] else ""
        machines.append(f"{machine['processor']}, {machine['processors']} processors{memory}, {machine['system']}; {versions}.{shapes}")
    head = "Written by `python -m benchmarks report`: medians, measured in turn on the same data after a check that both sides agree."
    head += " Figures in bold reach their mark."
    return "\n\n".join([head, *dict.fromkeys(machines)])


def _table(header: Sequence[str], right: Sequence[int], lines: Iterable[Sequence[str]]) -> str:
    def line(texts: Iterable[str]) -> str:
        return "| " + " | ".join(re.sub(r"\|", r"\\|", text) for text in texts) + " |"

    rule = line("--:" if place in right else "---" for place in range(len(header)))
    return "\n".join([line(header), rule, *map(line, lines)])

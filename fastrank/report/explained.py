"""The difference of two values of one metric, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from fastrank.comparison.choices import in_words
from fastrank.report.drawing import Grid, Report, notebook, show_value, terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastrank.comparison.explanation import Explanation


def explanation_text(explanation: Explanation, form: str = "table", *, stream: TextIO | None = None) -> str:
    """The sentence, the choices and the queries that move most, as text for a terminal or as HTML; ends in no line break."""
    formulas = [(f"{side}: {metric}", metric.formula) for side, metric in zip(explanation.sides, explanation.metrics, strict=True)]
    report = Report(list(_grids(explanation)), formulas, [], [explanation.sentence])
    return (notebook if form == "html" else terminal)(report, stream).rstrip("\n")


def _grids(explanation: Explanation) -> Iterator[Grid]:
    one, two = explanation.sides
    if explanation.choices:
        shares = {name: share for share in explanation.shares for name in share.choices}
        rows = []
        for choice in explanation.choices:
            share = shares.get(choice.name)
            own = ("-", "-") if choice.alone is None else (f"{choice.alone:+.4f}", str(choice.n_moved))
            turn = ("-", "-") if share is None else (f"{share.shift:+.4f}", str(share.n_moved))
            rows.append([in_words(choice.name), *choice.values, *own, *turn])
        header = ["choice", one, two, "switched alone", "queries moved", "switched in turn", "queries moved"]
        yield Grid(
            f"choices on which {one} and {two} differ, and what each adds to the mean of {explanation.n_queries} queries", header, rows
        )
    if explanation.movers:
        rows = [
            [show_value(each.query), *(f"{value:.4f}" for value in each.values), f"{each.difference:+.4f}"] for each in explanation.movers
        ]
        yield Grid(f"queries that move most, of {explanation.n_moved}", ["query", one, two, "difference"], rows)

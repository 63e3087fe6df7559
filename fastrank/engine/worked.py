"""`explain`: the value of one query worked out as a textbook would, term by term."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrank.arrays import as_array
from fastrank.batch import id_array
from fastrank.convention import Convention
from fastrank.engine.calls import evaluate
from fastrank.errors import InputError
from fastrank.gains import tidy
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import parse_metric
from fastrank.metrics.working import Block, Document, Ranking, Row, Work

# A list is shown to this many rows, a block of ties to this many labels, a sum to this many terms.
MOST_ROWS, MOST_LABELS, MOST_TERMS = 60, 6, 10


class Worksheet(NamedTuple):
    """A table of text, ready to draw: the first line of `rows` below the header, `total` last (None: it adds up to nothing)."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    total: tuple[str, ...] | None


@dataclass(frozen=True, repr=False)
class Worked:
    """One query's value and how it comes about.

    Attributes: `metric`, filled by the `convention`; `value`, as `evaluate` computes it; `work`, the terms and what they are divided
    by; `rows` and `ideal_rows`, a dict per line of the tables; `steps`, the calculation below them, a sentence a line.
    """

    metric: Metric
    convention: Convention
    value: float
    work: Work
    steps: tuple[str, ...]

    @property
    def rows(self) -> list[Row]:
        """The ranking, a dict per rank, or per block of tied ranks."""
        return self.work.rows

    @property
    def ideal_rows(self) -> list[Row]:
        """The ideal order in the same form; empty for metrics that do not look at it."""
        return self.work.ideal_rows

    def worksheets(self) -> tuple[Worksheet, ...]:
        """The tables as text: the ranking, and the ideal order where the metric looks at it. Without documents there are none."""
        quotient = self.work.divisor.symbol if self.work.divisor and self.ideal_rows else ""
        tables = ((self.work.title, self.rows, self.work.total), ("ideal order", self.ideal_rows, quotient))
        return tuple(_worksheet(title, rows, self.work, total) for title, rows, total in tables if rows)

    def __repr__(self) -> str:
        lines = [str(self.metric), self.metric.formula, ""]
        for sheet in self.worksheets():
            body = [sheet.header, *sheet.rows, *([sheet.total] if sheet.total else [])]
            widths = [max(map(len, column)) for column in zip(*body, strict=True)]
            drawn = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in body]
            rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
            drawn.insert(1, rule)
            if sheet.total:
                drawn.insert(len(drawn) - 1, rule)
            lines += [sheet.title, *drawn, ""]
        return "\n".join([*lines, *self.steps])

    def _repr_html_(self) -> str:
        parts = [f"<p><code>{html.escape(str(self.metric))}</code><br>{html.escape(self.metric.formula)}</p>"]
        for sheet in self.worksheets():
            rows = [("th", sheet.header), *(("td", row) for row in sheet.rows), *([("th", sheet.total)] if sheet.total else [])]
            cells = ["".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for tag, row in rows]
            parts += [f"<table><caption>{sheet.title}</caption>", *(f"<tr>{row}</tr>" for row in cells), "</table>"]
        return "\n".join([*parts, *(f"<p>{html.escape(step)}</p>" for step in self.steps)])


def explain(
    metric: str | Metric,
    labels: Any,
    scores: Any = None,
    *,
    doc_ids: Any = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
) -> Worked:
    """Work out the value of one query: rank, label, gain, discount, term; then the ideal order; then the quotient.

    What other metrics are made of is shown in the same manner: average precision by the precision at each relevant rank, reciprocal
    rank by the first relevant document, AUC by the pairs won. Documents of equal score stand in one line when ties are averaged, with
    their ranks ("2-4"), mean gain and sum of discounts, so that the terms always add up to the value.

    Parameters
    ----------
    metric
        One metric, by name or as a value.
    labels, scores
        The documents of one query, as `fr.evaluate` takes them. None among them: unjudged, and not retrieved.
    doc_ids
        Their ids, shown in the table; needed for ``ties="docid"``.
    convention, ties, no_relevant, depth, judged_only
        As `fr.evaluate`.

    Returns
    -------
    Worked
        value, rows, ideal_rows and steps; printed, a table.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> worked = fr.explain("nDCG@5", [3, 2, 0, 1, 2])
    >>> worked.rows[0]
    {'rank': 1, 'label': 3, 'gain': 7, 'discount': 1.0, 'term': 7.0}
    >>> for step in worked.steps:
    ...     print(step)
    DCG@5 = 7 + 1.8928 + 0.4307 + 1.1606 = 10.484
    IDCG@5 = 7 + 1.8928 + 1.5 + 0.4307 = 10.8235
    nDCG@5 = DCG@5 / IDCG@5 = 10.484 / 10.8235 = 0.9686
    """
    evaluation = evaluate(
        labels,
        scores,
        metrics=parse_metric(metric),
        doc_ids=doc_ids,
        convention=convention,
        ties=ties,
        no_relevant=no_relevant,
        depth=depth,
        judged_only=judged_only,
        threads=1,
    )
    if evaluation.n_queries != 1:
        raise InputError(f"explain works out one query, and labels hold {evaluation.n_queries}, one a row. Give one of them.")
    assert evaluation.values is not None
    filled, chosen, value = evaluation.metrics[0], evaluation.convention, float(evaluation.values[0, 0])
    alone = judged_only or bool(filled.judged_only)
    ranking = _ranking(_documents(labels, scores, doc_ids, chosen), filled.ties or chosen.ties, depth, alone, in_order=scores is None)
    work = filled.work(ranking)
    return Worked(filled, chosen, value, work, tuple(_steps(filled, work, ranking, value, nothing=evaluation.no_relevant[0] > 0)))


# --- the ranking ----------------------------------------------------------------------------------------------------------------


def _documents(labels: Any, scores: Any, doc_ids: Any, convention: Convention) -> list[Document]:
    """The documents in the order given, with the numbers that the convention makes of them."""

    def numbers(name: str, given: Any, width: str | None) -> list[Any]:
        array, missing = as_array(name, given)
        values = (array if width is None else array.astype(width)).ravel().tolist()
        return values if missing is None else [None if gone else x for gone, x in zip(missing.ravel(), values, strict=True)]

    label = [None if x is None else tidy(x) for x in numbers("labels", labels, convention.labels)]
    score = [None] * len(label) if scores is None else numbers("scores", scores, convention.scores)
    names = [None] * len(label) if doc_ids is None else id_array("doc_ids", doc_ids).to_pylist()
    return [Document(*each) for each in zip(label, score, names, strict=True)]


def _ranking(documents: list[Document], rule: str, depth: int | None, judged_only: bool, *, in_order: bool) -> Ranking:
    """All documents in rank order: what the kernels do for the few that count, in plain Python."""
    listed = [each for each in documents if (in_order or each.score is not None) and not (judged_only and each.label is None)]
    aside = tuple(each for each in documents if not in_order and each.score is None and each.label is not None)
    blocks = [[each] for each in listed]
    if not in_order:
        blocks = _by_score(listed, rule)
    firsts = np.cumsum([1, *map(len, blocks)]).tolist()
    return Ranking(tuple(Block(first, tuple(block)) for first, block in zip(firsts, blocks, strict=False)), aside, depth)


def _by_score(documents: list[Document], rule: str) -> list[list[Document]]:
    """Documents by score, largest first, those that share it as the rule has them."""
    if rule == "docid":
        ordered = sorted(documents, key=lambda each: each.name if isinstance(each.name, bytes) else str(each.name).encode(), reverse=True)
    elif rule == "input":
        ordered = list(documents)
    else:
        # An unjudged document is worth as little as one of label 0, and less where being judged counts.
        ordered = sorted(documents, key=lambda each: (each.label or 0.0, each.label is not None), reverse=rule != "worst")
    blocks: list[list[Document]] = []
    for each in sorted(ordered, key=lambda each: each.score or 0, reverse=True):
        if rule == "average" and blocks and blocks[-1][0].score == each.score:
            blocks[-1].append(each)
        else:
            blocks.append([each])
    return blocks


# --- the calculation ------------------------------------------------------------------------------------------------------------


def _steps(metric: Metric, work: Work, ranking: Ranking, value: float, *, nothing: bool) -> Iterable[str]:
    name = metric.short_name
    if work.column is None:
        yield f"{name} = {_short(value)}"
        return
    total = work.sum_of(work.rows)
    yield f"{work.total} = {_addition(work, work.rows, work.spelled)}"
    if work.ideal_rows and work.divisor is not None:
        yield f"{work.divisor.symbol} = {_addition(work, work.ideal_rows, {})}"
    named = [part for part in (work.factor, work.divisor) if part is not None]
    for part in named:
        if part.meaning:
            yield f"{part.symbol.strip('()')} = {_short(part.value)}, {part.meaning}"
    yield from work.remarks
    yield from _remarks(metric, ranking, work.rows)
    if nothing:
        rule = getattr(metric, "no_relevant", None)
        yield f"{name} = {_short(value)}, for there is nothing to find, and no_relevant={rule!r}."
    elif named:
        symbols, numbers = (_quotient(work, of) for of in (lambda part: part.symbol, lambda part: _short(part.value)))
        numbers = numbers.replace(work.total, _short(total), 1)
        by_zero = work.divisor is not None and work.divisor.value == 0
        yield f"{name} = {symbols} = {numbers} = {_short(value)}" + (", by definition." if by_zero else "")


def _quotient(work: Work, of: Any) -> str:
    before = "" if work.factor is None else f"{of(work.factor)} * "
    after = "" if work.divisor is None else f" / {of(work.divisor)}"
    return before + work.total + after


def _addition(work: Work, rows: list[Row], spelled: dict[int, str]) -> str:
    """The terms that are not 0, and what they add up to."""
    assert work.column is not None
    terms = [spelled.get(place, _short(row[work.column])) for place, row in enumerate(rows) if row[work.column]]
    total = _short(work.sum_of(rows))
    if len(terms) > MOST_TERMS:
        terms = [*terms[: MOST_TERMS - 2], f"... ({len(terms)} terms)", terms[-1]]
    return total if terms in ([], [total]) else f"{' + '.join(terms)} = {total}".replace("+ -", "- ")


def _remarks(metric: Metric, ranking: Ranking, rows: list[Row]) -> Iterable[str]:
    """What the table does not show of itself: ties, signs, and where it was cut."""
    tied = [row["rank"] for row in rows if isinstance(row["rank"], str)]
    if tied:
        places = ", ".join(tied[:MOST_LABELS]) + (", ..." if len(tied) > MOST_LABELS else "")
        yield f"Scores are equal at ranks {places}: terms there are means over all orders of these documents."
    if any(row["label"] is None or (isinstance(row["label"], tuple) and None in row["label"]) for row in rows):
        yield "A label - stands for an unjudged document."
    if any(row["rank"] is None for row in rows):
        yield "A rank - stands for documents that were judged, but not retrieved."
    cutoff, n = ranking.cutoff(metric.k), sum(block.span for block in ranking.blocks)
    if n == 0:
        yield "No document was retrieved."
    last = min(n, ranking.n_retrieved if cutoff is None else cutoff)
    if last < n and metric.sees_ties:
        across = any(block.first <= last < block.first + block.span - 1 for block in ranking.blocks)
        yield f"The list has {n} documents; those below rank {last} do not count" + (
            ", nor do places of a tie below it." if across else "."
        )


# --- text -----------------------------------------------------------------------------------------------------------------------


def _short(number: float) -> str:
    """Four decimals, without zeros at the end; powers of ten for what is very large or small."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    if not 1e-4 <= abs(number) < 1e9:
        return f"{number:.4g}"
    return f"{number:.4f}".rstrip("0").rstrip(".")


def _worksheet(title: str, rows: list[Row], work: Work, total: str) -> Worksheet:
    columns = list(rows[0])
    shown = rows if len(rows) <= MOST_ROWS else [*rows[: MOST_ROWS - 10], *rows[-9:]]
    # The sum is laid out with its column, as a last row, so that its point stands below the others.
    added = dict.fromkeys(columns) | {work.column: work.sum_of(rows)}
    cells = {name: _cells(name, [*(row[name] for row in shown), added[name]]) for name in columns}
    last = (total, *(cells[name][-1] if name == work.column else "" for name in columns[1:]))
    lines = list(zip(*(column[: len(shown)] for column in cells.values()), strict=True))
    if len(shown) < len(rows):
        lines.insert(MOST_ROWS - 10, ("...", *[""] * (len(columns) - 1)))
    return Worksheet(title, tuple(name.replace("_", " ") for name in columns), tuple(lines), last if work.column in columns else None)


def _cells(name: str, values: list[Any]) -> list[str]:
    """A column as text. Numbers that are not all whole get four decimals, so that their points stand below each other."""
    numbers = [value for value in values if isinstance(value, float)]
    given = name in ("score", "document", "rank")
    even = (
        not given
        and any(not number.is_integer() for number in numbers)
        and all(abs(x) < 1e9 and (x == 0 or abs(x) >= 1e-4) for x in numbers)
    )

    def cell(value: Any) -> str:
        if value is None:
            return "-"
        if isinstance(value, tuple):
            return ", ".join(map(cell, value[:MOST_LABELS])) + (f", ... ({len(value)})" if len(value) > MOST_LABELS else "")
        if given:
            return str(value)
        return f"{value:.4f}" if even else _short(value) if isinstance(value, int | float) else str(value)

    return [cell(value) for value in values]

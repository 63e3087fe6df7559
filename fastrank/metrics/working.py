"""Working a metric out by hand: one query's documents in rank order, and the sum that gives the value.

A value is a sum of terms over documents, times a factor, divided by a divisor. `Metric.work` says which, from a `Ranking`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

from fastrank._cached import cached_property

# One line of a worked table: column -> value. Columns of one table are the same in every row.
Row = dict[str, Any]


class Document(NamedTuple):
    """A document of the query. `label` is None when it is unjudged, `score` and `name` when there are none."""

    label: float | None
    score: float | None = None
    name: Any = None


class Block(NamedTuple):
    """Documents that share the places from rank `first` on: one, or, where equal scores are averaged, all of one score.

    Documents that were not retrieved share a last block, whose places are no ranks.
    """

    first: int
    documents: tuple[Document, ...]
    retrieved: bool = True

    @property
    def span(self) -> int:
        """Number of places."""
        return len(self.documents)

    def count(self, accepts: Callable[[float], bool]) -> int:
        """Judged documents of the block whose label is accepted."""
        return sum(document.label is not None and accepts(document.label) for document in self.documents)

    def n_relevant(self, rel: float) -> int:
        """Documents of the block whose label is at least `rel`."""
        return self.count(lambda label: label >= rel)


@dataclass(frozen=True)
class Ranking:
    """One query: its blocks in rank order, and the judged documents that were not retrieved. `depth` cuts the list first."""

    blocks: tuple[Block, ...]
    unretrieved: tuple[Document, ...] = ()
    depth: int | None = None

    @property
    def n_retrieved(self) -> int:
        """Documents of the list, after `depth`."""
        n = sum(block.span for block in self.blocks)
        return n if self.depth is None else min(n, self.depth)

    def cutoff(self, k: int | Fraction | None) -> int | None:
        """The cutoff as a rank: k itself, or the exact share of the list, rounded up."""
        return math.ceil(k * self.n_retrieved) if isinstance(k, Fraction) else k

    def within(self, k: int | Fraction | None) -> Iterator[tuple[Block, int]]:
        """The blocks that reach into the top k, each with the number of its places there."""
        cutoff = self.cutoff(k)
        last = self.n_retrieved if cutoff is None else min(cutoff, self.n_retrieved)
        for block in self.blocks:
            if block.first <= last:
                yield block, min(block.span, last - block.first + 1)

    def every(self) -> Iterator[Block]:
        """All blocks, the documents that were not retrieved last."""
        yield from self.blocks
        if self.unretrieved:
            yield Block(sum(block.span for block in self.blocks) + 1, self.unretrieved, retrieved=False)

    def n_relevant(self, rel: float) -> int:
        """Documents, retrieved or not, whose label is at least `rel`."""
        return sum(block.n_relevant(rel) for block in self.every())

    def row(self, block: Block, **columns: Any) -> Row:
        """The line of a block: rank ("2-4" for ties, None where it has none), document and score where known, label, `columns`.

        What a block of several documents has several of comes as a tuple.
        """
        row: Row = {"rank": self.rank(block)}
        if self._named:
            row["document"] = _alone([document.name for document in block.documents])
        if self._scored:
            row["score"] = block.documents[0].score
        return row | {"label": _alone([document.label for document in block.documents])} | columns

    @cached_property
    def _named(self) -> bool:
        return any(document.name is not None for block in self.every() for document in block.documents)

    @cached_property
    def _scored(self) -> bool:
        return any(block.documents[0].score is not None for block in self.blocks)

    @staticmethod
    def rank(block: Block) -> int | str | None:
        """The places of a block as they stand in a table."""
        if not block.retrieved:
            return None
        return block.first if block.span == 1 else f"{block.first}-{block.first + block.span - 1}"


def _alone(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True)
class Quantity:
    """A number with its name: `symbol` as it stands in the last line, `meaning` a sentence that says where it comes from."""

    symbol: str
    value: float
    meaning: str = ""


@dataclass(frozen=True)
class Work:
    """value = factor * (sum of `column` over `rows`) / divisor.

    `total` names the sum, `title` the table. `spelled` holds terms that read better as written than as decimals (row number -> "2/3").
    `ideal_rows` is a second table, whose sum is the divisor. `remarks` are sentences. Without a column the table adds up to nothing.
    """

    rows: list[Row]
    total: str = "sum"
    title: str = "ranking"
    column: str | None = "term"
    factor: Quantity | None = None
    divisor: Quantity | None = None
    spelled: dict[int, str] = field(default_factory=dict)
    ideal_rows: list[Row] = field(default_factory=list)
    remarks: tuple[str, ...] = ()

    def sum_of(self, rows: list[Row]) -> float:
        """The terms of a table, added exactly."""
        return math.fsum(row[self.column] for row in rows if self.column is not None and row[self.column] is not None)

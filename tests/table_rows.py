"""Tables whose labels count their rows, and what reading them must give, by definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fastrank.io.columns import Columns
from fastrank.io.tables import Scattered, read_columns


def columns(table: Any, *, query: str = "q", label: str = "y", scores: tuple[str, ...] = ("s",), **options: Any) -> Iterator[Columns]:
    return read_columns(table, query=query, label=label, scores=scores, **options)


def only(table: Any, **options: Any) -> Columns:
    [batch] = columns(table, **options)
    return batch


def small(ids: Any, **others: Any) -> pa.Table:
    """A table of these ids whose labels count the rows and whose scores are half of that."""
    rows = range(len(ids))
    return pa.table({"q": ids, "y": list(rows), "s": [row / 2 for row in rows], **others})


def by_query(batches: list[Columns]) -> list[tuple[Any, list[int]]]:
    """Each query with its labels, which are row numbers in ``small``, in the order they came."""
    found = []
    for batch in batches:
        found += [
            (query, batch.labels[start:stop].tolist())
            for query, start, stop in zip(batch.query_ids.to_pylist(), batch.offsets[:-1], batch.offsets[1:], strict=True)
        ]
        assert batch.offsets.dtype == np.int64
        assert batch.offsets[0] == 0
        assert batch.offsets[-1] == len(batch.labels)
        assert batch.scores["s"].tolist() == [label / 2 for label in batch.labels.tolist()]
        assert [batch.source_row(row) for row in range(len(batch.labels))] == batch.labels.tolist()
    return found


def definition(ids: list[Any]) -> tuple[list[tuple[Any, list[int]]], int]:
    """What must come out for these ids, and how many queries are scattered: one row at a time, from the words of the docstring."""
    rows: dict[Any, list[int]] = {}
    for row, query in enumerate(ids):
        rows.setdefault(query, []).append(row)
    scattered = sum(own != list(range(own[0], own[-1] + 1)) for own in rows.values())
    return (sorted(rows.items()) if scattered else list(rows.items())), scattered


def read_whatever_comes(table: Any, **options: Any) -> list[Columns]:
    """What the engine does: start over when a file turns out to be scattered."""
    try:
        return list(columns(table, **options))
    except Scattered:
        return list(columns(table, regroup=True, **options))

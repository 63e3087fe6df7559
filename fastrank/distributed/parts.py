"""One part of an evaluation that is spread over processes: rows in, an `Evaluator` out, and all of them merged."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fastrank.convention import Convention
from fastrank.engine.evaluator import Evaluator
from fastrank.engine.tables import feed
from fastrank.errors import InputError
from fastrank.io.arrow import decoded, reading
from fastrank.io.keys import query_keys
from fastrank.io.roles import Roles
from fastrank.io.sources import Ascending, find
from fastrank.io.tables import Scattered, read_columns


@dataclass(frozen=True)
class Job:
    """What every part computes: the columns by their roles, and the options of its `Evaluator`."""

    query: str
    label: str
    score: str
    doc: str | None
    weight: str | None
    by: tuple[str, ...]
    metrics: Any
    convention: str | Convention
    options: dict[str, Any]

    @property
    def columns(self) -> list[str]:
        """The columns that are read, each once."""
        return self.roles.columns

    @property
    def roles(self) -> Roles:
        """The columns by what they are."""
        return Roles(self.query, self.label, (self.score,), self.doc, self.weight, self.by)

    def evaluator(self) -> Evaluator:
        """An empty one. It takes one thread: the engine gives a processor to each part."""
        return Evaluator(self.metrics, self.convention, **self.options, threads=1)

    def evaluate_file(self, path: str) -> Evaluator:
        """Evaluate a file that holds all rows of each of its queries."""
        return self._evaluate(path)

    def evaluate(self, batches: Iterator[pa.RecordBatch]) -> Evaluator:
        """Evaluate record batches of these columns, sorted by query. Any number may come: one query after the other is held."""
        batches = (batch.rename_columns(self.columns) for batch in batches)
        first = next(batches, None)
        if first is None:
            return self.evaluator()
        return self._evaluate(Ascending("a partition of the data frame", first.schema, itertools.chain([first], batches), self.roles))

    def select(self, table: pa.Table) -> pa.Table:
        """The columns that are read, if they are there and of types that can play their parts."""
        self.roles.check_names(table.column_names, "the dataset")
        table = table.select(self.columns)
        self.roles.check_types(table.schema)
        return table

    def evaluate_rows(self, table: pa.Table) -> Evaluator:
        """Evaluate all rows of each of some queries, in any order."""
        return self._evaluate(table)

    def _evaluate(self, table: Any) -> Evaluator:
        roles: dict[str, Any] = {"query": self.query, "label": self.label, "scores": [self.score]}
        roles |= {"doc": self.doc, "weight": self.weight, "by": self.by}
        made = self.evaluator()
        try:
            feed({self.score: made}, read_columns(table, **roles), None)
        except Scattered as scattered:
            made = self.evaluator()
            feed({self.score: made}, read_columns(scattered.source, **roles, regroup=True), None)
        return made


# --- are the queries of files whole? --------------------------------------------------------------------------------------------


def id_range(path: str, query: str) -> bytes:
    """Bounds of the query ids of a Parquet file as an Arrow table: low, high and rows of each row group; none if one does not tell."""
    bounds: list[tuple[Any, Any, int]] = []
    with reading(path), find(path)[0].open_file() as source, pq.ParquetFile(source) as file:
        names = [file.schema.column(place).path for place in range(len(file.schema))]
        for group in range(file.metadata.num_row_groups):
            of_group = file.metadata.row_group(group)
            found = of_group.column(names.index(query)).statistics
            if found is None or not found.has_min_max:
                bounds.clear()
                break
            bounds.append((found.min, found.max, of_group.num_rows))
    sink = pa.BufferOutputStream()
    table = pa.table({name: [bound[place] for bound in bounds] for place, name in enumerate(("low", "high", "rows"))})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def are_apart(ranges: Sequence[bytes]) -> bool:
    """Whether no two files can share an id, because the ranges of their ids are apart."""
    if len(ranges) < 2:
        return True
    tables = [pa.ipc.open_stream(data).read_all() for data in ranges]
    if not all(map(len, tables)):
        return False
    bounds = sorted((min(table.column("low").to_pylist()), max(table.column("high").to_pylist())) for table in tables)
    return all(one[1] < other[0] for one, other in itertools.pairwise(bounds))


def tasks_of(ranges: Sequence[bytes], most: int) -> list[slice]:
    """The files that each task reads: neighbours with about `most` rows together, or one file."""
    sizes = [sum(pa.ipc.open_stream(data).read_all().column("rows").to_pylist()) or most for data in ranges]
    n_tasks = max(1, -(-sum(sizes) // most))
    middles = np.cumsum(sizes) - np.array(sizes) / 2
    task = np.minimum(middles * n_tasks // max(sum(sizes), 1), n_tasks - 1)
    bounds = np.flatnonzero(np.diff(task, prepend=-1) > 0).tolist()
    return [slice(first, last) for first, last in itertools.pairwise([*bounds, len(sizes)])]


def longest_query(ranges: Sequence[bytes]) -> int:
    """The rows of the longest query, as far as row groups tell that hold nothing else."""
    rows: Counter[Any] = Counter()
    for data in ranges:
        for group in pa.ipc.open_stream(data).read_all().to_pylist():
            if group["low"] == group["high"]:
                rows[group["low"]] += group["rows"]
    return max(rows.values(), default=0)


def distinct_keys(path: str, query: str) -> np.ndarray:
    """The keys of a file's queries, int64, each once; from the id column alone."""
    with reading(path), find(path)[0].open_file() as source:
        column = pq.read_table(source, columns=[query]).column(query)
        ids = decoded(pc.unique(column).drop_null())
    return np.unique(query_keys(ids).view(np.int64))


# --- errors ---------------------------------------------------------------------------------------------------------------------


PARTS = pa.schema([("part", pa.int64()), ("data", pa.binary()), ("error", pa.string())])


def told(part: int, work: Callable[[], bytes]) -> pa.RecordBatch:
    """A row with the number of a part and what ``work`` gives, or the one line that says why there is nothing: no traceback travels."""
    try:
        data, error = work(), None
    except InputError as wrong:
        data, error = None, str(wrong)
    return pa.record_batch([pa.array([part]), pa.array([data], pa.binary()), pa.array([error], pa.string())], schema=PARTS)

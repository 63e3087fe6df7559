"""Blocks of rows in no promised order, evaluated where they lie: most queries stand inside one block, a few over the edge between two.

A block is evaluated but for its first and its last query, whose rows are handed on and joined with those of other blocks. So rows in
the order of their queries may be cut anywhere. Queries are told apart by the hash of their id: two that share one only cost time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.distributed.parts import Job, told
from fastrank.distributed.runs import JUDGED, LABEL
from fastrank.engine.evaluator import Evaluator
from fastrank.errors import InputError
from fastrank.io.arrow import first_null, single
from fastrank.io.grouping import Runs, find_runs
from fastrank.io.keys import query_keys

# The column of keys, int64, by which rows that must move are sorted.
KEY = "fastrank key"
# The process that merges holds so many rows of edges (some 0.5 GB) and so many keys (1 GB), and no more.
MOST_EDGES, MOST_KEYS = 1 << 24, 1 << 27

SCHEMA = pa.schema(
    [
        ("data", pa.binary()),
        ("error", pa.string()),
        ("keys", pa.binary()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("edges", pa.binary()),
    ]
)


class Work(Protocol):
    """What every block computes: a `Job` or a `RunJob`."""

    @property
    def query(self) -> str:
        """The column of query ids."""

    def select(self, table: pa.Table) -> pa.Table:
        """The columns that are read, if they are there and of types that can play their parts."""

    def evaluator(self) -> Evaluator:
        """An empty one."""

    def evaluate_rows(self, table: pa.Table) -> Evaluator:
        """Evaluate all rows of each of some queries, in any order."""


# --- where the block is ---------------------------------------------------------------------------------------------------------


def evaluate_block(table: pa.Table, *, work: Work, is_whole: bool = False) -> pa.Table:
    """What a block gives, in a row of `SCHEMA`; nothing for one without rows.

    ``is_whole``: it has a column `KEY`, by which it is sorted, and no query goes on in another block.
    """
    if not len(table):
        return SCHEMA.empty_table()
    return _row(table, functools.partial(_of_whole if is_whole else _of_edged, work))


def with_keys(table: pa.Table, *, work: Work) -> pa.Table:
    """The columns that are read, without dictionaries, and the key of each row's query."""
    if not len(table):
        return pa.table({})
    table = work.select(table)
    runs = _runs(table, work)
    return _plain(table).append_column(KEY, pa.array(np.repeat(_keys(runs), np.diff(runs.offsets))))


def query_values(table: pa.Table, *, job: Job) -> pa.Table:
    """The values of each query in a block that has keys and whole queries: the id, then a double per metric."""
    if not len(table):
        return pa.table({})
    result = job.evaluate_rows(table.drop_columns(KEY)).result()
    assert result.values is not None
    return pa.table([result.query_ids, *map(pa.array, result.values.T.copy())], names=[job.query, *result.names])


def one_side(table: pa.Table, *, names: dict[str, str], schema: pa.Schema) -> pa.Table:
    """Judgements or a ranking in the columns that both have together, `names` telling what they are called here."""
    columns = {column: table.column(name) for column, name in names.items()} if len(table) else {}
    columns |= {JUDGED: pa.repeat(LABEL in names, len(table))}
    return pa.table({of.name: columns[of.name].cast(of.type) if of.name in columns else pa.nulls(len(table), of.type) for of in schema})


@dataclass
class _Found:
    """What becomes a row of `SCHEMA`."""

    evaluator: Evaluator
    first: int
    last: int
    keys: np.ndarray | None = None
    edges: pa.Table | None = None


def _row(table: pa.Table, work: Callable[[pa.Table], _Found]) -> pa.Table:
    found: list[_Found] = []

    def data() -> bytes:
        found.append(work(table))
        return found[0].evaluator.to_bytes()

    row = dict.fromkeys(SCHEMA.names) | told(0, data).to_pylist()[0]
    del row["part"]
    if row["error"] is None:
        row |= {"first": found[0].first, "last": found[0].last}
        row["keys"] = None if found[0].keys is None else found[0].keys.tobytes()
        row["edges"] = None if found[0].edges is None else _bytes(found[0].edges)
    return pa.Table.from_pylist([row], SCHEMA)


def _of_whole(work: Work, table: pa.Table) -> _Found:
    keys = table.column(KEY)
    return _Found(work.evaluate_rows(table.drop_columns(KEY)), keys[0].as_py(), keys[-1].as_py())


def _of_edged(work: Work, table: pa.Table) -> _Found:
    table = work.select(table)
    runs = _runs(table, work)
    keys = _keys(runs)
    at_edge = (keys == keys[0]) | (keys == keys[-1])
    rows_at_edge = pa.array(np.repeat(at_edge, np.diff(runs.offsets)))
    inside = table.filter(pc.invert(rows_at_edge))
    made = work.evaluate_rows(inside) if len(inside) else work.evaluator()
    return _Found(made, int(keys[0]), int(keys[-1]), np.unique(keys[~at_edge]), _plain(table.filter(rows_at_edge)))


def _runs(table: pa.Table, work: Work) -> Runs:
    runs = find_runs(table.column(work.query))
    if first_null(runs.values) is not None:
        raise InputError(f'query column "{work.query}" must not be null: some rows are. Fill it or filter them out.')
    return runs


def _keys(runs: Runs) -> np.ndarray:
    return query_keys(runs.values).view(np.int64)


def _plain(table: pa.Table) -> pa.Table:
    """Values instead of dictionaries, which blocks need not have alike."""
    return pa.table([single(column) for column in table.columns], names=table.column_names)


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


# --- where all of them are merged -----------------------------------------------------------------------------------------------


@dataclass
class Gathered:
    """What blocks gave, in any order."""

    work: Work
    most_edges: int = MOST_EDGES
    most_keys: int = MOST_KEYS
    _blocks: list[dict[str, Any]] = field(default_factory=list)
    _edges: list[pa.Table] = field(default_factory=list)
    _keys: list[np.ndarray] = field(default_factory=list)
    _n_looked_through: int = 0

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, row: dict[str, Any]) -> str | None:
        """Add a row of `SCHEMA`. Why the rows of the table must be moved, if that is seen by now; or the error of the block."""
        if row["error"] is not None:
            raise InputError(row["error"])
        if row["edges"] is not None:
            self._edges.append(pa.ipc.open_stream(row["edges"]).read_all())
            self._keys.append(np.frombuffer(row["keys"], np.int64))
        self._blocks.append({name: row[name] for name in ("first", "last", "data")})
        if sum(map(len, self._edges)) > self.most_edges:
            return "blocks hold few whole queries"
        # Looking when there is twice as much keeps the work linear.
        n_keys = sum(map(len, self._keys))
        return self.split() if n_keys >= 2 * self._n_looked_through else None

    def split(self) -> str | None:
        """Why what has been added cannot be merged: a query stands in several blocks, not at their edges alone."""
        if not self._edges:
            blocks = sorted((block["first"], block["last"]) for block in self._blocks)
            return "a query stands in several blocks" if any(a[1] >= b[0] for a, b in itertools.pairwise(blocks)) else None
        keys = np.sort(np.concatenate(self._keys))
        self._n_looked_through = len(keys)
        if len(keys) > self.most_keys:
            return f"more than {self.most_keys:,} queries to tell apart"
        edges = np.array([[block["first"], block["last"]] for block in self._blocks], np.int64)
        is_split = bool((keys[1:] == keys[:-1]).any()) or bool(np.isin(edges, keys).any())
        return "a query stands inside several blocks" if is_split else None

    def merged(self) -> Evaluator:
        """All blocks in one, whatever the order in which they came, queries sorted by id."""
        made = self.work.evaluator()
        for block in sorted(self._blocks, key=lambda block: (block["first"], block["last"])):
            made.merge(Evaluator.from_bytes(block["data"], made.convention))
        if self._edges:
            edges = pa.concat_tables(self._edges, promote_options="permissive")
            made.merge(self.work.evaluate_rows(edges.sort_by(self.work.query)))
        made.sort_queries()
        return made

"""Parquet files and Arrow data as a stream of `Columns`, each of whole queries."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fastrank._kernel import query_blocks
from fastrank.errors import InputError
from fastrank.io.arrow import first_null, is_id, is_number, is_text, joined, normal, numbers, reading, single, valid, value_type
from fastrank.io.columns import Columns
from fastrank.io.grouping import Groups, Runs, ascends, find_runs, group

THE_TABLE = "the table"


class Scattered(Exception):  # noqa: N818 - not a failure: the reader asks for another way through the file
    """A query came back after other queries of a file had been handed out: forget them and read with ``regroup=True``."""


def read_columns(
    table: Any,
    *,
    query: str,
    label: str,
    scores: Sequence[str],
    doc: str | None = None,
    weight: str | None = None,
    by: Sequence[str] = (),
    rows_per_batch: int = 1 << 20,
    regroup: bool = False,
) -> Iterator[Columns]:
    """Whole queries of a table, in batches of about ``rows_per_batch`` rows; a longer query is a batch of its own.

    Only the columns named are read. What is wrong with names, types or the file itself is said at the call, the rest while
    iterating. A table without rows gives one `Columns` without queries, so there is always at least one.

    Queries come in order of appearance, unless the rows of one stand in several places: then all are brought together in memory
    (rows keep their order within a query) and queries come sorted by id. Arrow data is looked through beforehand. A file is read as
    a stream, in memory that does not grow with it while ids ascend. At the first id that does not, the id column alone is read to
    its end: if a query is scattered and batches are already out, `Scattered` is raised, and the caller starts over with
    ``regroup=True``. Nothing but a file ever raises it, so a stream that can be read once never has to be read twice.

    Parameters
    ----------
    table
        Path of a Parquet file; pyarrow Table, RecordBatch or RecordBatchReader; or anything with ``__arrow_c_stream__`` or
        ``__arrow_c_array__`` (polars, pandas 2.2 and later, duckdb relations). In a pandas column of NumPy floats NaN means null.
    query, label, scores, doc, weight, by
        Names of columns. Ids: text, bytes, integers, dates, booleans or decimals, in any encoding. Labels and scores: any numeric
        type. ``weight`` and ``by`` must be constant within a query.

    Raises
    ------
    InputError
        A column is missing, stands twice or has the wrong type; an id or weight is null; a weight or slice changes within a query;
        the file is not a whole Parquet file.

    Examples
    --------
    >>> table = pa.table({"query_id": ["a", "a", "b"], "label": [1, 0, 2], "score": [0.5, 0.7, 0.1]})
    >>> batch = next(read_columns(table, query="query_id", label="label", scores=["score"]))
    >>> batch.query_ids.to_pylist(), batch.offsets.tolist(), batch.scores["score"].tolist()
    (['a', 'b'], [0, 2, 3], [0.5, 0.7, 0.1])
    """
    roles = _Roles(query, label, tuple(scores), doc, weight, tuple(by))
    if isinstance(table, str | os.PathLike):
        file = _ParquetFile(os.fsdecode(table), roles)
        batches = _from_memory(file.table(), roles, rows_per_batch) if regroup else _stream(file, roles, rows_per_batch)
        return _with_place(batches, file.where)
    return _with_place(_from_memory(_in_memory(table, roles), roles, rows_per_batch), THE_TABLE)


def _with_place(batches: Iterator[Columns], where: str) -> Iterator[Columns]:
    """A damaged page may be noticed only by what is done with it: an index beyond its dictionary, text that is not UTF-8."""
    with reading(where):
        yield from batches


@dataclass(frozen=True)
class _Roles:
    """Which column is what."""

    query: str
    label: str
    scores: tuple[str, ...]
    doc: str | None
    weight: str | None
    by: tuple[str, ...]

    def __post_init__(self) -> None:
        for role, names in (("score", self.scores), ("by", self.by)):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f'{role} names the column "{name}" twice: name each column once.')

    def asked(self) -> Iterator[tuple[str, str]]:
        """Role and name of each column, as the caller knows them."""
        yield "query", self.query
        yield "label", self.label
        yield from (("score", name) for name in self.scores)
        yield from ((role, name) for role, name in (("doc", self.doc), ("weight", self.weight)) if name is not None)
        yield from (("by", name) for name in self.by)

    @property
    def columns(self) -> list[str]:
        """Names of all columns, each once."""
        return list(dict.fromkeys(name for _, name in self.asked()))

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Every column must be there, once."""
        for role, name in self.asked():
            count = names.count(name)
            if count > 1:
                raise InputError(f'{role} column "{name}" stands {count} times in {where}: rename or drop all but one.')
            if count == 0:
                raise InputError(f'{role}: there is no column "{name}" in {where}; {_nearest(name, names)}.')

    def check_types(self, schema: pa.Schema) -> None:
        """Every column must be of a type that can play its part."""
        for role, name in self.asked():
            of = schema.field(name).type
            values = value_type(of)
            if role in ("query", "doc") and pa.types.is_floating(values):
                raise InputError(f'{role} column "{name}" is {of}, and floats are not ids: cast it to integer or string.')
            if role in ("query", "doc") and not is_id(of):
                raise InputError(f'{role} column "{name}" is {of}, which cannot be an id: cast it to integer or string.')
            if role in ("label", "score", "weight") and not is_number(of):
                raise InputError(f'{role} column "{name}" is {of}, not a number: cast it to float64, or name another column.')
            if role == "by" and not (is_id(of) or pa.types.is_floating(values)):
                raise InputError(f'by column "{name}" is {of}, which cannot be a slice: cast it to string.')


def _nearest(name: str, names: Sequence[str]) -> str:
    lower = {present.lower(): present for present in names}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower)]
    shown = ", ".join(f'"{present}"' for present in near or names[:8])
    if near:
        return f"the nearest name is {shown}" if len(near) == 1 else f"the nearest names are {shown}"
    return f"its columns are {shown}{', ...' if len(names) > 8 else ''}" if names else "it has no columns"


# --- sources --------------------------------------------------------------------------------------------------------------------


class _ParquetFile:
    """A Parquet file as record batches of the columns asked for; can be read again."""

    def __init__(self, path: str, roles: _Roles) -> None:
        self.where, self.columns = path, roles.columns
        with reading(path):
            self.file = pq.ParquetFile(path)
            schema = self.file.schema_arrow
        roles.check_names(schema.names, path)
        roles.check_types(schema)
        # Indices into a dictionary are compared and handed over several times as fast as the texts themselves. Not so for
        # doc_ids, nearly all of which differ.
        text = [name for name in dict.fromkeys((roles.query, *roles.by)) if is_text(schema.field(name).type)]
        if text:
            with reading(path), self.file as opened:
                self.file = pq.ParquetFile(path, metadata=opened.metadata, read_dictionary=text)
        self.schema = pa.schema([self.file.schema_arrow.field(name) for name in self.columns])

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Record batches of at most ``rows_per_batch`` rows."""
        for batch in self.file.iter_batches(rows_per_batch, columns=columns):
            yield batch.select(columns)

    def table(self) -> pa.Table:
        """All rows."""
        with reading(self.where):
            return pa.Table.from_batches(list(self.batches(self.columns, 1 << 20)), self.schema)


def _in_memory(table: Any, roles: _Roles) -> pa.Table:
    """Arrow data of any make as a table of the columns asked for. A stream gives up its other columns batch by batch."""
    columns = roles.columns
    if isinstance(table, pa.Table):
        roles.check_names(table.schema.names, THE_TABLE)
        table = table.select(columns)
    else:
        with reading(THE_TABLE):
            reader = _reader(table, roles)
        roles.check_names(reader.schema.names, THE_TABLE)
        schema = pa.schema([reader.schema.field(name) for name in columns])
        with reading(THE_TABLE):
            table = pa.Table.from_batches([batch.select(columns) for batch in reader], schema)
    roles.check_types(table.schema)
    return table


def _reader(table: Any, roles: _Roles) -> pa.RecordBatchReader:
    kind = type(table)
    if hasattr(table, "__arrow_c_stream__"):
        library = kind.__module__.partition(".")[0]
        if library in ("pandas", "polars") and hasattr(table, "columns"):
            # The other columns cost time, or are of a kind that Arrow does not have. Index levels of pandas become columns too.
            names = [str(name) for name in table.columns]
            levels = [str(name) for name in table.index.names] if library == "pandas" else []
            roles.check_names(names + levels, THE_TABLE)
            wanted = [name in roles.columns for name in names]
            table = table.loc[:, wanted] if library == "pandas" else table.select(roles.columns)
        return pa.RecordBatchReader.from_stream(table)
    if hasattr(table, "__arrow_c_array__"):
        batch = pa.record_batch(table)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    known = "the path of a Parquet file, Arrow data, or a data frame with __arrow_c_stream__"
    raise InputError(f"table must be {known}, not {kind.__module__}.{kind.__qualname__}. For arrays use evaluate.")


# --- whole queries --------------------------------------------------------------------------------------------------------------


def _from_memory(table: pa.Table, roles: _Roles, rows_per_batch: int) -> Iterator[Columns]:
    """Slices of a table between queries, its rows brought together first where they have to be."""
    groups = group(_query_runs(table, roles, 0))
    if groups.order is not None:
        # Access row by row needs one chunk a column, of a type that has it. The ids are known already.
        others = dict.fromkeys(name for role, name in roles.asked() if role != "query")
        table = pa.table({name: joined([normal(chunk) for chunk in table.column(name).chunks]) for name in others})
    yield from _batches(table, roles, groups, 0, rows_per_batch)


def _batches(part: pa.Table, roles: _Roles, groups: Groups, first_row: int, rows_per_batch: int) -> Iterator[Columns]:
    """Cut whole queries into batches; at least one, if without queries."""
    for first, last in list(query_blocks(groups.offsets, rows_per_batch)) or [(0, 0)]:
        start, stop = int(groups.offsets[first]), int(groups.offsets[last])
        if groups.order is None:
            yield _columns(part.slice(start, stop - start), roles, _between(groups, first, last), first_row + start, None)
        else:
            rows = groups.order[start:stop]
            yield _columns(part.take(pa.array(rows)), roles, _between(groups, first, last), int(rows[0]), rows)


def _between(groups: Groups, first: int, last: int) -> Groups:
    offsets = groups.offsets[first : last + 1]
    return Groups(groups.query_ids.slice(first, last - first), offsets - offsets[0], None, groups.scattered[first:last])


def _stream(file: _ParquetFile, roles: _Roles, rows_per_batch: int) -> Iterator[Columns]:
    """Batches as they come from the file, as long as no query can have been seen before."""
    greatest: list[pa.Array] = []
    each_query_together = False
    with file.file:
        for part, groups, first_row in _whole_queries(file, roles, rows_per_batch):
            ids = joined([*greatest, groups.query_ids])
            if not each_query_together and not ascends(ids):
                if _is_scattered(file, roles, rows_per_batch):
                    if first_row:
                        raise Scattered(f"{file.where}: a query's rows stand in several places.")
                    yield from _from_memory(file.table(), roles, rows_per_batch)
                    return
                each_query_together = True
            greatest = [ids[-1:]]
            # What came in one piece stays one batch, unless a long query made it long.
            yield from _batches(part, roles, groups, first_row, 2 * rows_per_batch)


def _whole_queries(file: _ParquetFile, roles: _Roles, rows_per_batch: int) -> Iterator[tuple[pa.Table, Groups, int]]:
    """Rows up to the last query that may go on, its rows held for the next batch; and the row of the file they begin with."""
    held: list[pa.RecordBatch] = []
    n_held, first_row, enough = 0, 0, rows_per_batch
    for batch in file.batches(file.columns, rows_per_batch):
        held.append(batch)
        n_held += len(batch)
        if n_held < enough:
            continue
        part = pa.Table.from_batches(held)
        runs = _query_runs(part, roles, first_row)
        cut = int(runs.starts[-1])
        if cut == 0:
            # One query so far. Looking again only when there is twice as much keeps the work linear in its length.
            enough = 2 * n_held
            continue
        yield part.slice(0, cut), _in_place(runs.values[:-1], runs.starts), first_row
        held = part.slice(cut).to_batches()
        n_held, first_row, enough = n_held - cut, first_row + cut, rows_per_batch
    part = pa.Table.from_batches(held, file.schema)
    runs = _query_runs(part, roles, first_row)
    yield part, _in_place(runs.values, runs.offsets), first_row


def _in_place(query_ids: pa.Array, offsets: np.ndarray) -> Groups:
    return Groups(query_ids, offsets, None, np.zeros(len(query_ids), bool))


def _is_scattered(file: _ParquetFile, roles: _Roles, rows_per_batch: int) -> bool:
    """Whether a query's rows stand in several places, from the id column alone: each run's id must be there once."""
    ids = [find_runs(pa.chunked_array([batch.column(0)])).values for batch in file.batches([roles.query], rows_per_batch)]
    heads = find_runs(pa.chunked_array(ids)).values
    return len(heads.unique()) < len(heads)


# --- columns --------------------------------------------------------------------------------------------------------------------


def _query_runs(part: pa.Table, roles: _Roles, first_row: int) -> Runs:
    runs = find_runs(part.column(roles.query))
    null = first_null(runs.values)
    if null is not None:
        row = first_row + int(runs.starts[null])
        raise InputError(f'query column "{roles.query}" must not be null: row {row} is. Fill it or filter the row out.')
    return runs


def _columns(part: pa.Table, roles: _Roles, groups: Groups, first_row: int, rows: np.ndarray | None) -> Columns:
    columns = Columns(
        labels=numbers(part.column(roles.label)),
        scores={name: numbers(part.column(name), ordinal=True) for name in roles.scores},
        offsets=groups.offsets,
        query_ids=groups.query_ids,
        doc_ids=None if roles.doc is None else valid(single(part.column(roles.doc))),
        weights=None,
        by={},
        first_row=first_row,
        regrouped=int(np.count_nonzero(groups.scattered)),
        rows=rows,
    )
    if columns.doc_ids is not None:
        null = first_null(columns.doc_ids)
        if null is not None:
            row = columns.source_row(null)
            raise InputError(f'doc column "{roles.doc}" must not be null: row {row} is. Fill it or filter the row out.')
    columns.by.update((name, _one_per_query("by", name, part, columns)) for name in roles.by)
    if roles.weight is None:
        return columns
    weights = _one_per_query("weight", roles.weight, part, columns)
    null = first_null(weights)
    if null is not None:
        query, row = columns.query_ids[null].as_py(), columns.source_row(int(columns.offsets[null]))
        raise InputError(f'weight column "{roles.weight}" must not be null: query {query!r} has none (row {row}). Give it a number.')
    return replace(columns, weights=numbers(pa.chunked_array([weights])).astype(np.float64))


def _one_per_query(role: str, name: str, part: pa.Table, columns: Columns) -> pa.Array:
    """The value of each query, which all its rows must have."""
    runs = find_runs(part.column(name))
    starts = columns.offsets[:-1]
    may_change = np.zeros(runs.n_rows, bool)
    may_change[starts] = True
    wrong = np.flatnonzero(~may_change[runs.starts])
    if len(wrong):
        row = int(runs.starts[wrong[0]])
        query = columns.query_ids[int(np.searchsorted(starts, row, side="right")) - 1].as_py()
        one, other = (runs.values[int(wrong[0]) - step].as_py() for step in (1, 0))
        places = f"row {columns.source_row(row - 1)} has {one!r} and row {columns.source_row(row)} has {other!r}"
        raise InputError(f'{role} column "{name}" must be constant within a query: in query {query!r} {places}.')
    return runs.values.take(pa.array(np.searchsorted(runs.starts, starts, side="right") - 1))

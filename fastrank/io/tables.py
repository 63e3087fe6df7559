"""Tables of any make as a stream of `Columns`, each of whole queries."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from fastrank._kernel import query_blocks
from fastrank.errors import InputError
from fastrank.io.arrow import first_null, joined, normal, numbers, reading, single, valid
from fastrank.io.columns import Columns
from fastrank.io.grouping import RowsByQuery, Runs, ascends, find_runs, group
from fastrank.io.roles import Roles
from fastrank.io.sources import ROW, THE_TABLE, Source, Stoppable, from_row, open_source, with_numbers
from fastrank.io.spill import STARTS, tables_by_query
from fastrank.io.temporary import DEFAULT_LIMIT


class Scattered(Exception):  # noqa: N818 - not a failure: the reader asks for another way through the file
    """A query came back after others had been handed out: forget them, and read ``source`` with ``regroup=True``."""

    def __init__(self, source: Source) -> None:
        super().__init__(f"{source.where}: a query's rows stand in several places.")
        self.source = source


def read_columns(
    table: Any,
    *,
    query: str,
    label: str,
    scores: Sequence[str],
    doc: str | None = None,
    weight: str | None = None,
    by: Sequence[str] = (),
    filter: Any = None,  # noqa: A002 - pyarrow's word
    rows_per_batch: int = 1 << 20,
    regroup: bool = False,
    start: int | None = None,
    memory_limit: int = DEFAULT_LIMIT,
    stop: threading.Event | None = None,
) -> Iterator[Columns]:
    """Whole queries of a table, in batches of about ``rows_per_batch`` rows; a longer query is a batch of its own.

    Only the columns named are read. What is wrong with names, types or the file itself is said at the call, the rest while
    iterating. A table without rows gives one `Columns` without queries, so there is always at least one.

    Queries come in order of appearance, unless the rows of one stand in several places: then all are brought together (rows keep
    their order within a query) and queries come sorted by id. Arrow data is looked through beforehand. Files and datasets are read as
    a stream, in memory that does not grow with them while ids ascend. At the first id that does not, the id column alone is read, to
    its end or to the first query that is scattered: if there is one and batches are already out, `Scattered` is raised, and the caller
    starts over with what it holds, and ``regroup=True``.
    Rows of files that cannot be regrouped in ``memory_limit`` bytes go through temporary files, with the same result, and so does a
    stream of Arrow data (but no data frame, which is in memory already).

    Parameters
    ----------
    table
        Path, list of paths, pattern, directory or URI of files in Parquet, CSV or TSV, JSON lines, Arrow IPC or ORC, plain or
        compressed; a binary file object; pyarrow Table, RecordBatch, RecordBatchReader or Dataset; or anything with
        ``__arrow_c_stream__`` or ``__arrow_c_array__`` (polars, pandas 2.2 and later, duckdb relations). In a pandas column of NumPy
        floats NaN means null. In CSV ids are the text that is written, and an empty field without quotes is null.
    query, label, scores, doc, weight, by
        Names of columns. Ids: text, bytes, integers, dates, booleans or decimals, in any encoding. Labels and scores: any numeric
        type. ``weight`` and ``by`` must be constant within a query.
    rows_per_batch, regroup, memory_limit
        See above.
    start
        Of files: the row to begin with, where an earlier call had handed out all queries before it. A query whose rows stand in several
        places then always raises `Scattered`.
    stop
        Another thread may set it, and the reading of a file ends by `Stopped`.
    filter
        An expression of ``pyarrow.compute``: only rows for which it is true are read. It may look at any column; those of a CSV file
        are text, except labels, scores and weights.

    Raises
    ------
    InputError
        A column is missing, stands twice or has the wrong type, in one of the files or in all; an id or weight is null; a weight or
        slice changes within a query; a file is missing, empty, damaged or in no known format. Rows in messages are counted from 0
        over all files, before the filter.

    Examples
    --------
    >>> table = pa.table({"query_id": ["a", "a", "b"], "label": [1, 0, 2], "score": [0.5, 0.7, 0.1]})
    >>> batch = next(read_columns(table, query="query_id", label="label", scores=["score"]))
    >>> batch.query_ids.to_pylist(), batch.offsets.tolist(), batch.scores["score"].tolist()
    (['a', 'b'], [0, 2, 3], [0.5, 0.7, 0.1])
    """
    roles = Roles(query, label, tuple(scores), doc, weight, tuple(by), filter)
    source = open_source(table, roles, memory_limit)
    if isinstance(source, pa.Table):
        return _with_place(_from_memory(source, roles, rows_per_batch), THE_TABLE)
    if stop is not None:
        source = Stoppable(source, stop)
    if regroup:
        return _with_place(_regrouped(source, roles, rows_per_batch, memory_limit), source.where)
    return _with_place(_stream(source, roles, rows_per_batch, memory_limit, start), source.where)


def _with_place(batches: Iterator[Columns], where: str) -> Iterator[Columns]:
    """A damaged page may be noticed only by what is done with it: an index beyond its dictionary, text that is not UTF-8."""
    with reading(where):
        yield from batches


def whole_table(source: Source) -> pa.Table:
    """All rows of a source."""
    with reading(source.where):
        return pa.Table.from_batches(list(source.batches(source.schema.names, 1 << 20)), source.schema)


# --- whole queries --------------------------------------------------------------------------------------------------------------


def _regrouped(source: Source, roles: Roles, rows_per_batch: int, memory_limit: int) -> Iterator[Columns]:
    """All rows of a source, brought together where they have to be."""
    for table in tables_by_query(source, roles.query, memory_limit):
        yield from _from_memory(table, roles, rows_per_batch)


def _from_memory(table: pa.Table, roles: Roles, rows_per_batch: int) -> Iterator[Columns]:
    """Slices of a table between queries, its rows brought together first where they have to be."""
    spilled = STARTS in table.schema.names
    groups = group(_query_runs(table, roles, 0), by_id=spilled)
    if spilled:
        # Rows of other queries that stood between are elsewhere: only the mark tells of them.
        starts = table.column(STARTS).to_numpy()
        n_runs = np.add.reduceat(starts if groups.order is None else starts[groups.order], groups.offsets[:-1], dtype=np.int64)
        groups = replace(groups, scattered=n_runs > 1)
    if groups.order is not None:
        # Access row by row needs one chunk a column, of a type that has it. The ids are known already.
        others = dict.fromkeys(name for role, name in roles.asked() if role != "query")
        others |= dict.fromkeys(name for name in table.schema.names if name == ROW)
        table = pa.table({name: joined([normal(chunk) for chunk in table.column(name).chunks]) for name in others})
    yield from _batches(table, roles, groups, 0, rows_per_batch)


def _batches(part: pa.Table, roles: Roles, groups: RowsByQuery, first_row: int, rows_per_batch: int) -> Iterator[Columns]:
    """Cut whole queries into batches; at least one, if without queries."""
    for first, last in list(query_blocks(groups.offsets, rows_per_batch)) or [(0, 0)]:
        start, stop = int(groups.offsets[first]), int(groups.offsets[last])
        if groups.order is None:
            yield _columns(part.slice(start, stop - start), roles, _between(groups, first, last), first_row + start, None)
        else:
            rows = groups.order[start:stop]
            yield _columns(part.take(pa.array(rows)), roles, _between(groups, first, last), int(rows[0]), rows)


def _between(groups: RowsByQuery, first: int, last: int) -> RowsByQuery:
    offsets = groups.offsets[first : last + 1]
    return RowsByQuery(groups.query_ids.slice(first, last - first), offsets - offsets[0], None, groups.scattered[first:last])


def _stream(source: Source, roles: Roles, rows_per_batch: int, memory_limit: int, start: int | None) -> Iterator[Columns]:
    """Batches as they come from the file, as long as no query can have been seen before."""
    greatest: list[pa.Array] = [_id_of_row(source, roles, rows_per_batch, start - 1)] if start else []
    each_query_together = False
    for part, groups, first_row in _whole_queries(source, roles, rows_per_batch, start or 0):
        ids = joined([*greatest, groups.query_ids])
        if not each_query_together and not ascends(ids):
            if _is_scattered(source, roles, rows_per_batch):
                if first_row or start is not None:
                    raise Scattered(source.source if isinstance(source, Stoppable) else source)
                del part, groups, ids
                yield from _regrouped(source, roles, rows_per_batch, memory_limit)
                return
            each_query_together = True
        greatest = [ids[-1:]]
        # What came in one piece stays one batch, unless a long query made it long.
        yield from _batches(part, roles, groups, first_row, 2 * rows_per_batch)


def _id_of_row(source: Source, roles: Roles, rows_per_batch: int, row: int) -> pa.Array:
    batch = next(from_row(source, [roles.query], rows_per_batch, row))
    return find_runs(pa.chunked_array([batch.column(0)[:1]])).values


def _whole_queries(source: Source, roles: Roles, rows_per_batch: int, first_row: int) -> Iterator[tuple[pa.Table, RowsByQuery, int]]:
    """Rows up to the last query that may go on, its rows held for the next batch; and the row of the file they begin with."""
    held: list[pa.RecordBatch] = []
    n_held, enough = 0, rows_per_batch
    for batch in from_row(source, roles.columns, rows_per_batch, first_row):
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
    part = pa.Table.from_batches(held, source.schema)
    runs = _query_runs(part, roles, first_row)
    yield part, _in_place(runs.values, runs.offsets), first_row


def _in_place(query_ids: pa.Array, offsets: np.ndarray) -> RowsByQuery:
    return RowsByQuery(query_ids, offsets, None, np.zeros(len(query_ids), bool))


def _is_scattered(source: Source, roles: Roles, rows_per_batch: int) -> bool:
    """Whether a query's rows stand in several places, from the id column alone: each run's id must be there once.

    Of all ids so far, one of each query is held. They are compared when there are twice as many, which keeps the work linear.
    """
    ids: list[pa.Array] = []
    n_ids = enough = 0
    for batch in source.batches([roles.query], rows_per_batch):
        ids.append(find_runs(pa.chunked_array([batch.column(0)])).values)
        n_ids += len(ids[-1])
        if n_ids > enough:
            heads = find_runs(pa.chunked_array(ids)).values
            if len(heads.unique()) < len(heads):
                return True
            ids, n_ids, enough = [heads], len(heads), 2 * len(heads)
    heads = find_runs(pa.chunked_array(ids)).values
    return len(heads.unique()) < len(heads)


# --- columns --------------------------------------------------------------------------------------------------------------------


def _query_runs(part: pa.Table, roles: Roles, first_row: int) -> Runs:
    runs = find_runs(part.column(roles.query))
    null = first_null(runs.values)
    if null is not None:
        row = _source_row(int(runs.starts[null]), first_row, _source_rows(part, None))
        raise InputError(f'query column "{roles.query}" must not be null: row {row} is. Fill it or filter the row out.')
    return runs


def _source_rows(part: pa.Table, rows: np.ndarray | None) -> np.ndarray | None:
    """Row of the source that each row of a part was, or None when they follow one another."""
    return part.column(ROW).to_numpy() if ROW in part.schema.names else rows


def _source_row(row: int, first_row: int, rows: np.ndarray | None) -> int:
    return first_row + row if rows is None else int(rows[row])


def _columns(part: pa.Table, roles: Roles, groups: RowsByQuery, first_row: int, rows: np.ndarray | None) -> Columns:
    rows = _source_rows(part, rows)
    if rows is not None and len(rows):
        first_row = int(rows[0])
    part = with_numbers(part, roles, lambda row: _source_row(row, first_row, rows))
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

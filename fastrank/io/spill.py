"""Scattered rows brought together in bounded memory: by ranges of query ids, in temporary files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.io.arrow import decoded, joined, normal
from fastrank.io.grouping import differs, find_runs, stable_order
from fastrank.io.sources import ROW, Source
from fastrank.io.temporary import TIMES_A_TABLE, TemporaryRows, bytes_in

# A column beside those of spilled rows: whether the row before it, in the source, was of another query.
STARTS = "__run_starts_here__"
# Ranges of ids end at so many ids at most; each id that ends one gets a file of its own besides, since it may be a very long query.
MOST_ENDS = 31
# So many ids tell where ranges should end; and no batch has fewer rows, however small the limit is.
SAMPLE = 1 << 14
FEWEST_ROWS = 1 << 12


def tables_by_query(source: Source, query: str, limit: int) -> Iterator[pa.Table]:
    """All rows of a source, in tables that hold all rows of their queries and can be regrouped in about ``limit`` bytes.

    Where all rows can, they come as they are. Otherwise queries come in the order of their ids, range by range, rows in the order of
    the source, with the columns `ROW` and `STARTS`. A query longer than the limit makes a table of its own.
    """
    share = max(1, limit // TIMES_A_TABLE)
    held: list[pa.RecordBatch] = []
    size = 0
    batches = source.batches(source.schema.names, 1 << 20)
    for batch in batches:
        held.append(batch)
        size += bytes_in(batch)
        if size > share:
            break
    else:
        yield pa.Table.from_batches(held, source.schema)
        return
    bytes_a_row = size / sum(len(batch) for batch in held)
    del held, batch, batches
    rows = max(FEWEST_ROWS, min(1 << 20, int(share / bytes_a_row)))
    with _Parts(source, query, bytes_a_row, share, rows) as parts:
        for place, part in parts.in_order():
            # Odd places hold one query each.
            if part.n_bytes > share and place % 2 == 0:
                yield from tables_by_query(part, query, limit)
            else:
                yield part.table()
            part.close()


class _Parts:
    """The rows of a source, dealt out to files by their query: one for each range of ids, and for each id that ends one."""

    def __init__(self, source: Source, query: str, bytes_a_row: float, share: int, rows: int) -> None:
        self._source, self._query, self._rows = source, query, rows
        ids, n_rows = _sample(source, query, rows)
        n_ranges = min(MOST_ENDS + 1, 2 + int(2 * n_rows * bytes_a_row / share))
        picked = np.linspace(0, len(ids) - 1, n_ranges + 1).round().astype(np.int64)[1:-1]
        # Ascending already.
        self._ends = ids.take(pa.array(picked)).unique()
        self._files: dict[int, TemporaryRows] = {}

    def __enter__(self) -> Self:
        try:
            for table in _numbered(self._source, self._query, self._rows):
                self._deal(table)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._files.values():
            file.close()

    def in_order(self) -> Iterator[tuple[int, TemporaryRows]]:
        """Each file with its place, in the order of the ids."""
        for place in sorted(self._files):
            yield place, self._files[place]

    def _deal(self, table: pa.Table) -> None:
        runs = find_runs(table.column(self._query))
        places = np.repeat(self._places(runs.values), np.diff(runs.offsets))
        n_places = 2 * len(self._ends) + 1
        table = table.take(pa.array(stable_order(places, n_places)))
        stops = np.cumsum(np.bincount(places, minlength=n_places))
        for place in np.unique(places).tolist():
            start = int(stops[place - 1]) if place else 0
            if place not in self._files:
                self._files[place] = TemporaryRows(self._source.where, table.schema)
            self._files[place].add(table.slice(start, int(stops[place]) - start))

    def _places(self, ids: pa.Array) -> np.ndarray:
        """For each id twice the number of range ends below it, and one more where it is such an end."""
        encoded = ids.dictionary_encode()
        distinct, n_ends = encoded.dictionary, len(self._ends)
        order = pc.sort_indices(joined([self._ends, distinct])).to_numpy()
        is_end = order < n_ends
        place = np.empty(len(distinct), np.int64)
        place[order[~is_end] - n_ends] = 2 * np.cumsum(is_end)[~is_end]
        own = pc.index_in(distinct, value_set=self._ends)
        at_end = pc.is_valid(own).to_numpy(zero_copy_only=False)
        place[at_end] = 2 * own.drop_null().to_numpy() + 1
        each: np.ndarray = place[encoded.indices.to_numpy()]
        return each


def _sample(source: Source, query: str, rows: int) -> tuple[pa.Array, int]:
    """Some of the ids in ascending order, as often as they come, and the number of rows."""
    random = np.random.default_rng(0)
    kept, n_kept, n_rows, one_in = [], 0, 0, 1
    for batch in source.batches([query], rows):
        n_rows += len(batch)
        chosen = np.sort(random.choice(len(batch), -(-len(batch) // one_in), replace=False)) if len(batch) else np.zeros(0, np.int64)
        kept.append(decoded(normal(batch.column(0)).take(pa.array(chosen))))
        n_kept += len(chosen)
        while n_kept > 2 * SAMPLE:
            one_in *= 2
            whole = joined(kept)
            kept = [whole.take(pa.array(np.sort(random.choice(n_kept, n_kept // 2, replace=False))))]
            n_kept //= 2
    ids = joined(kept)
    return ids.take(pc.sort_indices(ids)), n_rows


def _numbered(source: Source, query: str, rows: int) -> Iterator[pa.Table]:
    """Tables of plain columns with about so many rows, each row with its number in the source, and whether a run of its query starts."""
    n_rows, last = 0, None
    for table in _together(source, rows):
        if STARTS not in table.schema.names:
            runs = find_runs(table.column(query))
            starts = np.zeros(len(table), bool)
            starts[runs.starts] = True
            if last is not None:
                starts[0] = differs(last, runs.values[:1])[0]
            last = runs.values[-1:]
            table = table.append_column(STARTS, pa.array(starts))
        if ROW not in table.schema.names:
            table = table.append_column(ROW, pa.array(np.arange(n_rows, n_rows + len(table))))
        n_rows += len(table)
        yield table


def _together(source: Source, rows: int) -> Iterator[pa.Table]:
    """Batches of a source joined to tables of so many rows at least, but the last; one chunk a column, of plain values."""
    held: list[pa.RecordBatch] = []
    for batch in itertools.chain(source.batches(source.schema.names, rows), (None,)):
        if batch is not None:
            held.append(batch)
        if held and (batch is None or sum(map(len, held)) >= rows):
            table = pa.Table.from_batches(held)
            held = []
            if len(table):
                yield pa.table({name: joined([decoded(chunk) for chunk in table.column(name).chunks]) for name in table.schema.names})

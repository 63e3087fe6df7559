"""Runs of equal values in Arrow columns, and the order that brings scattered rows together.

Values are compared themselves, never by a hash alone, and not one step is taken per row in Python.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.io.arrow import decoded, joined, normal, single, valid

# Chunks with fewer rows than this, on the average, are joined first: a chunk costs as much as that many rows.
SHORT_CHUNK = 1 << 14


@dataclass(frozen=True, eq=False)
class Runs:
    """Run i holds values[i] in every row from starts[i] to the next start; neighbours differ. Values are decoded."""

    starts: np.ndarray
    values: pa.Array
    n_rows: int

    @property
    def offsets(self) -> np.ndarray:
        """int64[n_runs + 1]: the starts, and the number of rows."""
        return np.append(self.starts, self.n_rows)


@dataclass(frozen=True, eq=False)
class RowsByQuery:
    """Rows by query. order: row of the source for each row, None when they stay where they are; scattered: per query, whether it was."""

    query_ids: pa.Array
    offsets: np.ndarray
    order: np.ndarray | None
    scattered: np.ndarray


def differs(left: pa.Array, right: pa.Array) -> np.ndarray:
    """Where two arrays of one type differ; a null equals a null and a NaN a NaN."""
    of = left.type
    if pa.types.is_null(of):
        return np.zeros(len(left), bool)
    if pa.types.is_float16(of):
        left, right = left.cast(pa.float32()), right.cast(pa.float32())
    different = pc.not_equal(left, right)
    if pa.types.is_floating(of):
        different = pc.and_not(different, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    if left.null_count or right.null_count:
        different = pc.or_(pc.fill_null(different, False), pc.xor(left.is_null(), right.is_null()))
    return different.to_numpy(zero_copy_only=False)


def find_runs(column: pa.ChunkedArray) -> Runs:
    """Runs of equal neighbours. Within a chunk dictionary indices stand for values; values decide where indices change."""
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if not chunks:
        return Runs(np.zeros(0, np.int64), single(column), 0)
    if len(column) < SHORT_CHUNK * len(chunks):
        chunks = [joined([normal(chunk) for chunk in chunks])]
    starts, values, n_rows = [], [], 0
    for chunk in map(normal, chunks):
        keys = chunk.indices if pa.types.is_dictionary(chunk.type) else chunk
        begin = np.concatenate(([0], np.flatnonzero(differs(keys[:-1], keys[1:])) + 1))
        starts.append(begin + n_rows)
        values.append(decoded(chunk.take(pa.array(begin))))
        n_rows += len(chunk)
    start, value = np.concatenate(starts), valid(joined(values))
    # Two indices can mean one value, and a run can go on in the next chunk.
    new = np.concatenate(([True], differs(value[:-1], value[1:])))
    return Runs(start, value, n_rows) if new.all() else Runs(start[new], value.filter(pa.array(new)), n_rows)


def ascends(values: pa.Array) -> bool:
    """Whether each value is greater than the one before: then none stands twice."""
    return len(values) < 2 or bool(pc.all(pc.less(values[:-1], values[1:])).as_py())


def group(runs: Runs, *, by_id: bool = False) -> RowsByQuery:
    """Queries in order of appearance, or sorted by id when the rows of one stood in several places (rows keep their order).

    ``by_id``: sorted by id always.
    """
    encoded = None if ascends(runs.values) else runs.values.dictionary_encode()
    if encoded is None or (len(encoded.dictionary) == len(encoded) and not by_id):
        return RowsByQuery(runs.values, runs.offsets, None, np.zeros(len(runs.values), bool))
    sorted_ids = pc.sort_indices(encoded.dictionary)
    place = np.empty(len(sorted_ids), np.int64)
    place[sorted_ids.to_numpy()] = np.arange(len(sorted_ids))
    query = place[encoded.indices.to_numpy()]
    order = stable_order(query, len(sorted_ids))
    sizes = np.diff(runs.offsets)[order]
    ends = np.cumsum(sizes)
    rows = np.repeat(runs.starts[order] - (ends - sizes), sizes)
    rows += np.arange(runs.n_rows)
    last_runs = np.cumsum(np.bincount(query)) - 1
    return RowsByQuery(encoded.dictionary.take(sorted_ids), np.append(0, ends[last_runs]), rows, np.diff(last_runs, prepend=-1) > 1)


def stable_order(keys: np.ndarray, n_keys: int) -> np.ndarray:
    """Places of ``keys`` (whole numbers below ``n_keys``) in ascending order, equal ones as they came."""
    bits = max(len(keys) - 1, 0).bit_length()
    if bits + n_keys.bit_length() > 63:
        return np.argsort(keys, kind="stable")
    # Key and place in one integer: sorting those is ten times as fast as a stable argsort.
    packed = keys << bits
    packed |= np.arange(len(keys))
    packed.sort()
    packed &= (1 << bits) - 1
    return packed

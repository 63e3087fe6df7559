"""Columns with one value per query: weights of the mean and slices. Both may be given per document, constant within a query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def plain(value: Any) -> Any:
    """A column as Arrow takes it: an array in the machine's byte order, or a list."""
    array = value if isinstance(value, np.ndarray) else value.to_numpy() if hasattr(value, "to_numpy") else value
    if isinstance(array, np.ndarray):
        return array.tolist() if array.dtype.kind in "USO" else np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    return list(array)


def _one_per_query(name: str, n: int, bounds: np.ndarray, order: np.ndarray | None) -> np.ndarray | None:
    """Which entries to take when there is one value a document; None when there is one a query."""
    n_queries, n_documents = len(bounds) - 1, int(bounds[-1])
    if n == n_queries and (n != n_documents or order is None):
        return None
    if n != n_documents:
        raise InputError(f"{name} must have one entry a query, {n_queries}, not {n}.")
    return np.arange(n_documents) if order is None else order


def weights_of_queries(weights: Any, bounds: np.ndarray, order: np.ndarray | None) -> np.ndarray | None:
    """A weight a query, float64; None where none were given."""
    if weights is None:
        return None
    array, missing = as_array("weights", weights)
    array = array.astype(np.float64).ravel()
    wrong = ~(np.isfinite(array) & (array >= 0)) if missing is None else ~(np.isfinite(array) & (array >= 0)) | missing
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        given = "null" if missing is not None and missing[place] else array[place]
        raise InputError(f"weights must be finite and not negative: weights[{place}] = {given}.")
    rows = _one_per_query("weights", len(array), bounds, order)
    if rows is not None:
        array = array[rows]
        _check_constant("weights", array[1:] != array[:-1], bounds)
        if np.any(np.diff(bounds) == 0):
            raise InputError("weights given per document say nothing of a query without documents: give one weight a query.")
        array = array[bounds[:-1]]
    return frozen(array, np.float64)


def slices_of_queries(by: Any, bounds: np.ndarray, order: np.ndarray | None) -> Mapping[str, pa.Array] | None:
    """Arrow arrays by name, a value a query; None where none were given."""
    if by is None:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    columns: Mapping[Any, Any] = by if isinstance(by, Mapping) else {"by": by}
    slices = {}
    for name, column in columns.items():
        values = _slice_values(f"by {name!r}", column)
        rows = _one_per_query(f"by {name!r}", len(values), bounds, order)
        if rows is not None:
            values = values.take(pa.array(rows))
            codes = pc.fill_null(values.dictionary_encode().indices, -1).to_numpy(zero_copy_only=False)
            _check_constant(f"by {name!r}", codes[1:] != codes[:-1], bounds)
            values = values.take(pa.array(bounds[:-1], mask=np.diff(bounds) == 0))
        slices[str(name)] = values
    return slices


def _slice_values(name: str, column: Any) -> pa.Array:
    import pyarrow as pa

    try:
        values = pa.array(plain(column)) if not isinstance(column, pa.Array | pa.ChunkedArray) else column
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, OverflowError, UnicodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{name} must be a column of values of one type, text or numbers ({reason}): give one a query.") from None
    if pa.types.is_nested(values.type):
        raise InputError(f"{name} must be a column of text or numbers, not of {values.type}: give one value a query.")
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _check_constant(name: str, changes: np.ndarray, bounds: np.ndarray) -> None:
    """A value given per document must be the same for every document of a query."""
    inside = np.ones(len(changes) + 1, bool)
    inside[bounds[:-1][bounds[:-1] < len(inside)]] = False
    wrong = np.flatnonzero(changes & inside[1:])
    if wrong.size:
        row = int(wrong[0]) + 1
        q = int(np.searchsorted(bounds, row, side="right")) - 1
        raise InputError(f"{name} must be the same for every document of a query: it changes at document {row} in query {q}.")

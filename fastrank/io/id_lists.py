"""Ids of documents in lists: what was retrieved, in rank order, and what is relevant, in any form that Python, NumPy and Arrow have.

Integers stay 64-bit integers where both sides have them; otherwise ids are compared by their text, as everywhere.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.arrays import as_array, frozen
from fastrank.batch import DocIds
from fastrank.errors import InputError
from fastrank.io import lines
from fastrank.io.arrow import single
from fastrank.io.judgements import Pairs, Qrels, Run
from fastrank.io.mapping import doubles, id_column, integers, read_each

# The integer that names no document: what nearest-neighbour indexes return when they find fewer than they were asked for.
NOBODY = -1
_WIDTH = 8
_FORMS = "a dict {query: ids}, a list of lists, a matrix (a query a row), a list column, or a tuple (ids, offsets)"


@dataclass(frozen=True, eq=False)
class IdLists:
    """Query q's ids are ids[offsets[q]:offsets[q + 1]], 64-bit integers or an Arrow array, with their labels (None: 1 for each).

    query_ids is None where queries are told apart by their place alone.
    """

    query_ids: pa.Array | None
    ids: np.ndarray | pa.Array
    offsets: np.ndarray
    labels: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def without_padding(self) -> IdLists:
        """Only what names a document."""
        if isinstance(self.ids, np.ndarray):
            kept = self.ids != NOBODY
            ids = self.ids if kept.all() else self.ids[kept]
        else:
            kept = self.ids.is_valid().to_numpy(zero_copy_only=False)
            ids = self.ids.drop_null()
        if len(ids) == len(kept):
            return self
        labels = None if self.labels is None else self.labels[kept]
        return IdLists(self.query_ids, ids, np.append(0, np.cumsum(kept))[self.offsets], labels)


# --- reading --------------------------------------------------------------------------------------------------------------------


def read_lists(name: str, value: Any, *, ranked: bool) -> IdLists:
    """Lists in any form. ranked: their order matters, so that a set is none, nor a dict {id: label}. Errors: `InputError`."""
    if isinstance(value, Mapping):
        lists = _of_items(name, list(value), list(value.values()), ranked)
        return replace(lists, query_ids=id_column(f"{name}: queries", list(value))).without_padding()
    if isinstance(value, tuple):
        return _of_offsets(name, value).without_padding()
    if isinstance(value, list):
        return _of_items(name, range(len(value)), value, ranked).without_padding()
    array = _unwrapped(value)
    if isinstance(array, pa.Array):
        return _of_column(name, array).without_padding()
    if not isinstance(array, np.ndarray):
        raise InputError(f"{name} must be {_FORMS}, not {type(value).__name__}.")
    if array.ndim == 1 and array.dtype.kind == "O":
        return _of_items(name, range(len(array)), array.tolist(), ranked).without_padding()
    if array.ndim != 2:
        raise InputError(f"{name} must have two dimensions, a query a row, not {array.ndim}. Give lists of any length as (ids, offsets).")
    offsets = np.arange(array.shape[0] + 1, dtype=np.int64) * array.shape[1]
    return IdLists(None, _ids(name, array.ravel()), offsets).without_padding()


def _unwrapped(value: Any) -> Any:
    """A NumPy or an Arrow array, where it is one of some library."""
    if hasattr(value, "detach"):  # a tensor that may carry a gradient or lie on another device
        return value.detach().cpu().numpy()
    if isinstance(value, np.ndarray | pa.Array):
        return value
    if isinstance(value, pa.ChunkedArray):
        return single(value)
    if hasattr(value, "isna") and hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "__arrow_c_stream__"):
        return single(pa.chunked_array(value))
    return pa.array(value) if hasattr(value, "__arrow_c_array__") else value


def _of_offsets(name: str, value: tuple[Any, ...]) -> IdLists:
    if len(value) != 2:
        raise InputError(f"{name} as a tuple must be (ids, offsets), not {len(value)} entries. Give a list of lists as a list.")
    ids = _ids(name, _unwrapped(value[0]))
    offsets, missing = as_array(f"{name} offsets", value[1])
    whole = missing is None and offsets.ndim == 1 and np.array_equal(offsets, np.trunc(offsets))
    bounds = offsets.astype(np.int64) if whole else np.zeros(0, np.int64)
    if len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != len(ids) or np.any(bounds[1:] < bounds[:-1]):
        rule = f"must say where each query's ids begin, ascend from 0, and end with the number of ids, {len(ids)}"
        raise InputError(f"{name} offsets {rule}. Give a list of lists as a list, not as a tuple.")
    return IdLists(None, ids, bounds)


def _of_column(name: str, column: pa.Array) -> IdLists:
    """A list column; a null list is an empty one."""
    if not hasattr(column, "flatten") or not hasattr(column.type, "value_type"):
        raise InputError(f"{name} must be {_FORMS}, not a column of {column.type}.")
    sizes = pc.list_value_length(column).fill_null(0).to_numpy()
    return IdLists(None, _ids(name, single(pa.chunked_array([column.flatten()]))), np.append(0, np.cumsum(sizes, dtype=np.int64)))


def _of_items(name: str, queries: Sequence[Any], items: list[Any], ranked: bool) -> IdLists:
    """Something with ids for each query: a list, an array, None; where order does not matter a set, or a dict of labels."""
    plain = (list, tuple) if ranked else (list, tuple, set, frozenset, dict)
    listed, labelled = [], {}
    for query, item in zip(queries, items, strict=True):
        if isinstance(item, Mapping) and not ranked:
            labelled[query] = item
        listed.append(item if type(item) in plain else _listed(name, query, item, ranked))
    offsets = np.append(0, np.cumsum(list(map(len, listed)), dtype=np.int64))
    labels = None
    if labelled:
        each = zip(items, listed, strict=True)
        values = chain.from_iterable(item.values() if isinstance(item, Mapping) else repeat(1.0, len(ids)) for item, ids in each)
        labels = doubles(values, int(offsets[-1]))
        if labels is None or not np.isfinite(labels).all():
            read_each(name, "labels", labelled, math.isfinite)
    return IdLists(None, _ids(name, list(chain.from_iterable(listed))), offsets, labels)


def _listed(name: str, query: Any, item: Any, ranked: bool) -> list[Any]:
    """The ids of one query as a list."""
    where = f"{name}[{query!r}]"
    if item is None:
        return []
    if ranked and isinstance(item, Mapping | set | frozenset):
        cure = "For scores use evaluate_run." if isinstance(item, Mapping) else "Give a list, best first."
        raise InputError(f"{where} must be ids in rank order, not a {type(item).__name__}. {cure}")
    array = _unwrapped(item)
    if isinstance(array, str | bytes) or not hasattr(array, "__iter__"):
        cure = "For one query give a list of one list." if not isinstance(array, str | bytes) else "Give a list with one id in it."
        raise InputError(f"{where} must be a list of ids, not {type(item).__name__}: {item!r:.40}. {cure}")
    if getattr(array, "ndim", 1) != 1:
        raise InputError(f"{where} must be a list of ids, not an array of {array.ndim} dimensions.")
    return list(array.tolist() if isinstance(array, np.ndarray | pa.Array) else array)


# --- ids ------------------------------------------------------------------------------------------------------------------------


def _ids(name: str, values: Any) -> np.ndarray | pa.Array:
    """Ids as 64-bit integers, -1 where there is none, or else as an Arrow array, null where there is none."""
    if isinstance(values, pa.Array):
        return _of_arrow(name, values)
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        plain = np.ma.getdata(values)
        if values.dtype == np.uint64 and plain.max(initial=0) > np.iinfo(np.int64).max:
            return pa.array(plain, mask=np.ma.getmaskarray(values))
        return frozen(np.ma.filled(values.astype(np.int64, copy=False), NOBODY), np.int64)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "USTO":
        raise InputError(f"{name} must hold ids, text or integers, not {values.dtype}. {_cure(values.dtype.kind)}")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return _of_list(name, listed)


def _cure(kind: str) -> str:
    if kind == "b":
        return "For a mask of relevant documents use evaluate."
    return "Cast them to integers: a float array cannot hold every id, and pads with NaN." if kind == "f" else "Cast them to text."


def _of_list(name: str, values: list[Any]) -> np.ndarray | pa.Array:
    """Ids in a Python list; None, NaN and NA stand for none."""
    if values and isinstance(values[0], bool):
        raise InputError(f"{name} must hold ids, text or integers, not bool. {_cure('b')}")
    numbers = None if values and isinstance(values[0], str | bytes) else integers(values, len(values))
    if numbers is not None:
        return frozen(numbers, np.int64)
    nobodies = {kind for kind in set(map(type, values)) if _may_be_nobody(kind)}
    if not nobodies:
        return _of_arrow(name, id_column(f"{name}: documents", values))
    there = np.array([type(value) not in nobodies or (isinstance(value, float) and value == value) for value in values])
    ids = id_column(f"{name}: documents", [value for value, is_id in zip(values, there.tolist(), strict=True) if is_id])
    return _of_arrow(name, ids.take(pa.array(np.cumsum(there) - 1, mask=~there)))


def _may_be_nobody(kind: type) -> bool:
    return kind is type(None) or issubclass(kind, float) or kind.__name__ in ("NAType", "NaTType")


def _of_arrow(name: str, ids: pa.Array) -> np.ndarray | pa.Array:
    kind = ids.type
    if pa.types.is_null(kind):
        return np.full(len(ids), NOBODY, np.int64)
    if pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        raise InputError(f"{name} must hold ids, text or integers, not {kind}. {_cure('f' if pa.types.is_floating(kind) else 'b')}")
    if not pa.types.is_integer(kind):
        return ids
    try:
        return frozen(ids.cast(pa.int64()).fill_null(NOBODY).to_numpy(zero_copy_only=False), np.int64)
    except pa.ArrowInvalid:  # beyond 63 bits
        return ids


# --- as judgements and a ranking ------------------------------------------------------------------------------------------------


class _Listed(Pairs):
    """Rows that were lists."""

    def place(self, row: int) -> str:
        """Where in its list a row is, from 1."""
        return f"place {row - int(self.offsets[self.query_of(row)]) + 1}"


class Relevant(_Listed, Qrels):
    """Labels of what is relevant."""


class Retrieved(_Listed, Run):
    """A ranking whose scores say nothing: the documents of a query stand in rank order."""


class _Numbered(_Listed):
    """Ids are the bytes of 64-bit integers."""

    def document_name(self, row: int) -> str:
        """A document as messages show it."""
        ids = self.doc_ids
        return f"document {int.from_bytes(ids.text[ids.start[row] : ids.stop[row]].tobytes(), sys.byteorder, signed=True)}"


class RelevantNumbers(_Numbered, Relevant):
    """Labels of what is relevant, by number."""


class RetrievedNumbers(_Numbered, Retrieved):
    """A ranking of numbers."""


def pair_up(retrieved: IdLists, relevant: IdLists | Qrels) -> tuple[Qrels, Run]:
    """Both sides with ids of one kind; where neither names its queries, with the same queries."""
    scores = np.zeros(len(retrieved.ids))
    if isinstance(relevant, Qrels):
        return relevant, _as_run(retrieved, scores)
    labels = np.ones(len(relevant.ids)) if relevant.labels is None else relevant.labels
    if relevant.query_ids is None:
        queries = pa.array(np.arange(len(relevant)))
        retrieved, relevant = replace(retrieved, query_ids=queries), replace(relevant, query_ids=queries)
    if isinstance(retrieved.ids, np.ndarray) and isinstance(relevant.ids, np.ndarray):
        judged = RelevantNumbers(*_of_numbers("relevant", relevant, labels))
        return judged, RetrievedNumbers(*_of_numbers("retrieved", retrieved, scores))
    ids = _as_arrow(relevant.ids)
    return Relevant.from_arrays(relevant.query_ids, ids, labels, offsets=relevant.offsets, name="relevant"), _as_run(retrieved, scores)


def _as_run(lists: IdLists, scores: np.ndarray) -> Run:
    return Retrieved.from_arrays(lists.query_ids, _as_arrow(lists.ids), scores, offsets=lists.offsets, name="retrieved")


def _as_arrow(ids: np.ndarray | pa.Array) -> pa.Array:
    return pa.array(ids) if isinstance(ids, np.ndarray) else ids


def _of_numbers(name: str, lists: IdLists, values: np.ndarray) -> tuple[str, pa.Array, np.ndarray, DocIds, np.ndarray, np.ndarray]:
    """What `Pairs` holds, with integers as ids of eight bytes each, where they lie."""
    assert isinstance(lists.ids, np.ndarray)
    ends = np.arange(len(lists.ids) + 1, dtype=np.int64) * _WIDTH
    ids = DocIds(frozen(lists.ids.view(np.uint8), np.uint8), frozen(ends[:-1], np.int64), frozen(ends[1:], np.int64))
    code = np.empty(len(lists.ids), np.uint64)
    lines.hash_ids(ids.text, ids.start, ids.stop, code)
    return name, lists.query_ids, frozen(lists.offsets, np.int64), ids, frozen(code, np.uint64), frozen(values, np.float64)

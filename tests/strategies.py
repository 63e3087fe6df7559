"""Hypothesis strategies over ragged batches, and every form in which a caller may hand one over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

import fastrank as fr
from fastrank.ranking.standing import MOST_COUNTED

GRADES = (0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 1.7, 2.0, 3.0, 4.0)
WHOLE_GRADES = (0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0)
SIGNED_GRADES = (-2.0, -0.5, *GRADES)

CUTOFFS = (1, 2, 3, 5, 10, 1000, "7%", 0.2, "50%")


class Batch(NamedTuple):
    """Ragged queries. labels, float64: NaN where unjudged. scores, float64: NaN where not retrieved. offsets: int64."""

    labels: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray

    @property
    def n_queries(self) -> int:
        return len(self.offsets) - 1

    def query(self, q: int) -> Batch:
        """One query as a batch of its own."""
        rows = slice(self.offsets[q], self.offsets[q + 1])
        return Batch(self.labels[rows], self.scores[rows], np.array([0, len(self.labels[rows])]))

    def arguments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, scores and offsets as `evaluate` takes them: missing values masked."""
        return masked(self.labels), masked(self.scores), self.offsets

    def untied(self) -> Batch:
        """The same order, equal scores in the order in which they stand."""
        scores = self.scores.copy()
        for q in range(self.n_queries):
            rows = slice(self.offsets[q], self.offsets[q + 1])
            order = np.argsort(-self.scores[rows], kind="stable")
            places = np.empty(len(order))
            places[order] = -np.arange(len(order))
            scores[rows] = np.where(np.isnan(self.scores[rows]), np.nan, places)
        return Batch(self.labels, scores, self.offsets)

    def shuffled(self, seed: int) -> Batch:
        """The rows of each query in another order."""
        draw = np.random.default_rng(seed)
        query = np.repeat(np.arange(self.n_queries), np.diff(self.offsets))
        order = np.lexsort((draw.random(len(self.labels)), query))
        return Batch(self.labels[order], self.scores[order], self.offsets)


def masked(values: np.ndarray) -> np.ndarray:
    """Missing values as a mask, where there are any."""
    missing = np.isnan(values)
    return np.ma.masked_array(np.where(missing, 0, values), missing) if missing.any() else values


def as_batch(queries: list[tuple[np.ndarray, np.ndarray]]) -> Batch:
    """Queries given as pairs of labels and scores, one after the other."""
    sizes = [len(labels) for labels, _ in queries]
    labels = np.concatenate([np.empty(0), *(labels for labels, _ in queries)])
    scores = np.concatenate([np.empty(0), *(scores for _, scores in queries)])
    return Batch(labels, scores, np.cumsum([0, *sizes], dtype=np.int64))


def random_batch(
    seed: int,
    n_queries: int,
    longest: int,
    *,
    grades: tuple[float, ...] = GRADES,
    n_levels: int = 6,
    shortest: int = 0,
    missing: bool = False,
) -> Batch:
    """A seeded batch with many equal scores; with `missing`, documents that are unjudged or not retrieved (never both)."""
    draw = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(draw.integers(shortest, longest + 1, n_queries)))).astype(np.int64)
    n = offsets[-1]
    labels, scores = draw.choice(np.array(grades, np.float64), n), draw.integers(0, n_levels, n) / 4
    if missing:
        fate = draw.choice(3, n, p=[0.7, 0.15, 0.15])
        labels[fate == 1], scores[fate == 2] = np.nan, np.nan
    return Batch(labels, scores, offsets)


@st.composite
def batches(draw: st.DrawFn, *, grades: tuple[float, ...] = GRADES, missing: bool = True, most: int = 5, long: bool = True) -> Batch:
    """Batches of every awkward shape: no query at all, empty and single lists, all tied, nothing or all relevant, ideal order, long."""
    kinds = st.sampled_from(["any", "any", "empty", "single", "tied", "nothing", "everything", "ideal", *(["long"] if long else [])])
    return as_batch([_query(draw, kind, grades, missing) for kind in draw(st.lists(kinds, max_size=most))])


def _query(draw: st.DrawFn, kind: str, grades: tuple[float, ...], missing: bool) -> tuple[np.ndarray, np.ndarray]:
    if kind == "long":
        random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        n = MOST_COUNTED + draw(st.integers(80, 140))
        labels, scores = random.choice(grades, n), random.integers(0, draw(st.sampled_from([3, 40, 10**6])), n) / 4
        # Enough counted documents for the list to be ranked by sorting.
        counted = random.permutation(n)[: MOST_COUNTED + 20]
        labels[counted] = np.maximum(labels[counted], 1)
        return labels, scores
    n = {"empty": 0, "single": 1}[kind] if kind in ("empty", "single") else draw(st.integers(2, 9))
    possible = {"nothing": (0.0,), "everything": tuple(grade for grade in grades if grade > 0)}.get(kind, grades)
    labels = np.array(draw(st.lists(st.sampled_from(possible), min_size=n, max_size=n)), dtype=np.float64)
    levels = 1 if kind == "tied" else draw(st.sampled_from([2, 4, 30]))
    scores = np.array(draw(st.lists(st.integers(-levels, levels), min_size=n, max_size=n)), dtype=np.float64) / 4
    if kind == "tied":
        scores[:] = 0.25
    elif kind == "ideal":
        scores = labels.copy()
    if missing:
        fate = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 0, 1, 2]), min_size=n, max_size=n)), dtype=np.int64)
        labels[fate == 1], scores[fate == 2] = np.nan, np.nan
    return labels, scores


# --- forms of one column -------------------------------------------------------------------------------------------------------
# Each makes a column out of whole numbers 0 ... 4, float64, NaN where missing.


def _of_dtype(dtype: Any) -> Callable[[np.ndarray], Any]:
    return lambda values: _with_mask(values, np.where(np.isnan(values), 0, values).astype(dtype))


def _with_mask(values: np.ndarray, array: np.ndarray) -> np.ndarray:
    return np.ma.masked_array(array, np.isnan(values)) if np.isnan(values).any() else array


def _read_only(values: np.ndarray) -> np.ndarray:
    array = values.copy()
    array.flags.writeable = False
    return _with_mask(values, array)


def _strided(values: np.ndarray) -> np.ndarray:
    return _with_mask(values, np.repeat(values, 3)[1::3])


def _backwards(values: np.ndarray) -> np.ndarray:
    return _with_mask(values, values[::-1].copy()[::-1])


def _unaligned(values: np.ndarray) -> np.ndarray:
    room = np.zeros(values.nbytes + 1, np.uint8)
    array = room[1:].view(np.float64)
    array[:] = values
    return _with_mask(values, array)


def _objects(values: np.ndarray) -> list[float | None]:
    return [None if np.isnan(value) else value for value in values.tolist()]


def _pandas(dtype: str) -> Callable[[np.ndarray], Any]:
    def make(values: np.ndarray) -> Any:
        import pandas as pd

        whole = [None if value is None else int(value) for value in _objects(values)]
        return pd.Series(whole, index=np.arange(len(whole))[::-1], dtype=dtype)

    return make


def _arrow(kind: str) -> Callable[[np.ndarray], Any]:
    def make(values: np.ndarray) -> Any:
        import pyarrow as pa

        column = pa.array(_objects(values), pa.float64())
        if kind == "chunked":
            middle = len(column) // 2
            return pa.chunked_array([column[:0], column[:middle], column[middle:]], pa.float64())
        if kind == "sliced":
            return pa.concat_arrays([pa.array([9.0, None], pa.float64()), column])[2:]
        if kind == "dictionary":
            return column.dictionary_encode()
        if kind == "decimal":
            return column.cast(pa.decimal128(10, 2))
        return column.cast(kind)

    return make


def _polars(dtype: str) -> Callable[[np.ndarray], Any]:
    def make(values: np.ndarray) -> Any:
        import polars as pl

        return pl.Series(_objects(values), dtype=pl.Float64).cast(getattr(pl, dtype))

    return make


FORMS: dict[str, Callable[[np.ndarray], Any]] = {
    **{
        f"numpy {dtype}": _of_dtype(dtype)
        for dtype in (
            "u1",
            "i1",
            "u2",
            "i2",
            "u4",
            "i4",
            "u8",
            "i8",
            "f2",
            "f4",
            "f8",
            "longdouble",
            ">f2",
            ">f4",
            ">f8",
            ">i4",
            ">u8",
            "object",
        )
    },
    "read-only": _read_only,
    "strided": _strided,
    "backwards": _backwards,
    "unaligned": _unaligned,
    "list": _objects,
    "tuple": lambda values: tuple(_objects(values)),
    "objects": lambda values: np.array(_objects(values), dtype=object),
    **{
        f"pandas {dtype}": _pandas(dtype)
        for dtype in ("Int64", "UInt8", "Float32", "Float64", "object", "int64[pyarrow]", "double[pyarrow]")
    },
    **{
        f"arrow {kind}": _arrow(kind)
        for kind in ("uint8", "int64", "halffloat", "float", "double", "chunked", "sliced", "dictionary", "decimal")
    },
    **{f"polars {dtype}": _polars(dtype) for dtype in ("UInt8", "Int32", "Float32", "Float64")},
}


# --- results in short ------------------------------------------------------------------------------------------------------------


def values(*data: Any, metrics: Any = "RR", **options: Any) -> list[Any]:
    """The values of one metric, one a query; of several, a list a query."""
    found = fr.evaluate(*data, metrics=metrics, **options).values
    return found[:, 0].tolist() if found.shape[1] == 1 else found.tolist()


def counts(result: fr.Evaluation) -> dict[str, int]:
    """How often each kind of note was taken."""
    return {note.kind: note.count for note in result.notes}

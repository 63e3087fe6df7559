"""Bringing evaluations of several systems together: the same metrics, the same queries in the same order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.comparison.units import codes_of, values_of
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, unique_names

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.metrics.base import Metric

# Queries named in a note.
_NAMED = 3


@dataclass(frozen=True)
class LeftOut:
    """Queries of one system that another has not: how many, and the first of them."""

    count: int
    examples: tuple[Any, ...]


@dataclass(frozen=True)
class Aligned:
    """Systems side by side on the queries that all have.

    `values`: float64[n_systems, n_metrics, n_queries]. `rows`: per system, where the queries stand in its evaluation. `left_out`: per
    system, the queries that not all have. `by`, the slicing columns, and `weights` are those of the common queries.
    """

    names: tuple[str, ...]
    evaluations: tuple[Evaluation, ...]
    metrics: tuple[Metric, ...]
    metric_names: tuple[str, ...]
    values: np.ndarray
    rows: tuple[np.ndarray, ...]
    query_ids: pa.Array
    weights: np.ndarray | None
    by: dict[str, pa.Array]
    left_out: dict[str, LeftOut]

    @property
    def n_queries(self) -> int:
        """Queries that all systems have."""
        return int(self.values.shape[2])


def align(systems: Mapping[str, Evaluation]) -> Aligned:
    """Match the queries of all systems, after checking that their metrics mean the same.

    InputError where they do not, where no query is common, or where weights or slices of a query differ.
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InputError("systems must be a dict of two or more evaluations by name, such as {'bm25': a, 'dense': b}.")
    for name, each in systems.items():
        if not isinstance(each, Evaluation):
            raise InputError(f"systems[{name!r}] must be an Evaluation, as evaluate returns it, not {type(each).__name__}.")
    names, evaluations = _names(systems), tuple(systems.values())
    for name, other in zip(names[1:], evaluations[1:], strict=True):
        _check_metrics(names[0], evaluations[0], name, other)
    rows, left_out = _match(names, evaluations)
    first = evaluations[0]
    # The metrics of another system may stand in another order.
    columns = [[each.metrics.index(metric) for metric in first.metrics] for each in evaluations]
    values = np.array(
        [values_of(each, repr(name))[row][:, column].T for name, each, row, column in zip(names, evaluations, rows, columns, strict=True)]
    )
    return Aligned(
        names,
        evaluations,
        first.metrics,
        unique_names(first.metrics),
        values,
        rows,
        _ids(first).take(_arrow(rows[0])),
        _weights(names, evaluations, rows),
        _by(names, evaluations, rows),
        left_out,
    )


def _names(systems: Mapping[Any, Any]) -> tuple[str, ...]:
    """Names that can be told apart, and printed in a sentence."""
    names = tuple(map(str, systems))
    for i, name in enumerate(names):
        if not name.strip() or not name.isprintable():
            raise InputError(f"systems must have names of printable characters that are not blanks alone, not {name!r}.")
        if name in names[:i]:
            raise InputError(f"systems must have names of their own: two are called {name!r}.")
    return names


# --- metrics --------------------------------------------------------------------------------------------------------------------


def _check_metrics(one: str, ours: Evaluation, other: str, theirs: Evaluation) -> None:
    mine, yours = set(ours.metrics), set(theirs.metrics)
    for metric in ours.metrics:
        if metric not in yours:
            raise InputError(_difference(metric, theirs.metrics, one, other))
    for metric in theirs.metrics:
        if metric not in mine:
            raise InputError(_difference(metric, ours.metrics, other, one))
    for field, what in (("scores", "compares scores"), ("labels", "holds labels")):
        a, b = (getattr(each.convention, field) or "given" for each in (ours, theirs))
        if a != b:
            raise InputError(
                f"{one!r} and {other!r} read their input differently: convention {ours.convention.name!r} {what} as {a}, "
                f"{theirs.convention.name!r} as {b}. Evaluate both under one convention."
            )


def _difference(metric: Metric, others: Sequence[Metric], here: str, there: str) -> str:
    for twin in others:
        if type(twin) is type(metric) and twin.k == metric.k:
            parts = [name for name in metric.parameters() if getattr(metric, name) != getattr(twin, name)]
            mine, yours = (", ".join(f"{name}={getattr(each, name)!r}" for name in parts) for each in (metric, twin))
            return (
                f"{metric.short_name} does not mean the same: {mine} in {here!r}, {yours} in {there!r}. "
                f"Evaluate both under one convention, or spell the parameters."
            )
    return f"{metric.short_name} is among the metrics of {here!r}, but not of {there!r}. Evaluate both by the same metrics."


# --- queries --------------------------------------------------------------------------------------------------------------------


def _match(names: Sequence[str], evaluations: Sequence[Evaluation]) -> tuple[tuple[np.ndarray, ...], dict[str, LeftOut]]:
    """Per system the rows of the common queries, in the order of the first system; and the queries left out."""
    import pyarrow.compute as pc

    if any(each.query_ids is None for each in evaluations):
        return _by_place(names, evaluations), {}
    ids = _of_one_type([_ids(each) for each in evaluations])
    for name, own in zip(names, ids, strict=True):
        if len(own.unique()) < len(own):
            raise InputError(f"{name!r} has two queries of one id, so queries cannot be matched. Give each query an id of its own.")
    common = ids[0]
    for other in ids[1:]:
        common = common.filter(pc.is_in(common, value_set=other))
    if not len(common):
        a, b = (_example(name, own) for name, own in zip(names[:2], ids[:2], strict=True))
        raise InputError(f"the systems have no query in common: for instance {a}, {b}.")
    rows = tuple(pc.index_in(common, value_set=own).to_numpy().astype(np.int64) for own in ids)
    left_out = {}
    for name, own in zip(names, ids, strict=True):
        if len(own) > len(common):
            rest = own.filter(pc.invert(pc.is_in(own, value_set=common)))
            left_out[name] = LeftOut(len(rest), tuple(rest[:_NAMED].to_pylist()))
    return rows, left_out


def _example(name: str, ids: pa.Array) -> str:
    return f"{ids[0].as_py()!r} ({ids.type}) in {name!r}" if len(ids) else f"none in {name!r}"


def _by_place(names: Sequence[str], evaluations: Sequence[Evaluation]) -> tuple[np.ndarray, ...]:
    sizes = [each.n_queries for each in evaluations]
    named = [name for name, each in zip(names, evaluations, strict=True) if each.query_ids is not None]
    cure = "Evaluate with query_ids=, so that they can be matched."
    if named:
        unnamed = next(name for name in names if name not in named)
        raise InputError(f"{named[0]!r} has query ids and {unnamed!r} has none. {cure}")
    if len(set(sizes)) > 1:
        raise InputError(f"the systems have no query ids and different numbers of queries ({', '.join(map(str, sizes))}). {cure}")
    if not sizes[0]:
        raise InputError("the systems hold no query, so there is nothing to compare.")
    return (np.arange(sizes[0]),) * len(names)


def _ids(evaluation: Evaluation) -> pa.Array:
    import pyarrow as pa

    ids = evaluation.query_ids
    if ids is None:
        return pa.array(np.arange(evaluation.n_queries))
    return ids.cast(ids.type.value_type) if pa.types.is_dictionary(ids.type) else ids


def _of_one_type(ids: list[pa.Array]) -> list[pa.Array]:
    """Ids that can be compared: a number equals its decimal text where one system has numbers and another text."""
    import pyarrow as pa

    if len({each.type for each in ids}) == 1:
        return ids
    if all(pa.types.is_integer(each.type) for each in ids):
        return [each.cast(pa.int64()) for each in ids]
    return [each.cast(pa.large_string()) for each in ids]


def _arrow(rows: np.ndarray) -> pa.Array:
    import pyarrow as pa

    return pa.array(rows)


def _weights(names: Sequence[str], evaluations: Sequence[Evaluation], rows: Sequence[np.ndarray]) -> np.ndarray | None:
    weights = [None if each.weights is None else each.weights[row] for each, row in zip(evaluations, rows, strict=True)]
    first = weights[0]
    for name, other in zip(names[1:], weights[1:], strict=True):
        if (first is None) != (other is None) or (first is not None and other is not None and not np.array_equal(first, other)):
            raise InputError(f"{names[0]!r} and {name!r} weigh queries differently. Evaluate both with the same weights, or none.")
    return first


def _by(names: Sequence[str], evaluations: Sequence[Evaluation], rows: Sequence[np.ndarray]) -> dict[str, pa.Array]:
    import pyarrow as pa

    by: dict[str, Any] = {}
    owner: dict[str, str] = {}
    for name, each, row in zip(names, evaluations, rows, strict=True):
        for column, array in each.by.items():
            here = array.take(_arrow(row))
            if column not in by:
                by[column], owner[column] = here, name
                continue
            there = by[column]
            texts = [each if there.type == here.type else each.cast(pa.large_string()) for each in (there, here)]
            # As numbers of one dictionary, null equals null and NaN equals NaN.
            codes = codes_of(pa.concat_arrays(texts))
            same = codes[: len(here)] == codes[len(here) :]
            if not same.all():
                raise InputError(
                    f"{owner[column]!r} and {name!r} put {int((~same).sum())} queries into different slices of {column!r}. "
                    "Evaluate both with the same values of it."
                )
    return by

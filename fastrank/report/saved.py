"""Evaluations as Arrow tables and Parquet files, from which they come back bit for bit.

The table has a row per query. Its metadata holds, under "fastrank", JSON with everything else: full names, formulas, convention,
notes and counts. Where single queries were not kept, the table has one row, with the values of each slice and their exact sums.
"""

from __future__ import annotations

import ast
import dataclasses
import json
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fastrank.convention import Convention, conventions
from fastrank.errors import InputError
from fastrank.evaluation import Bounds, Evaluation, Note, SliceMoments, convention_to_dict, metric_to_dict, to_json
from fastrank.gains import as_discount, as_gain
from fastrank.io.arrow import UNREADABLE, joined, normal, reading
from fastrank.io.atomic import Path, write_file
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import parse_metric
from fastrank.statistics import Moments

# Written into every file; a reader refuses what it does not know.
FORMAT = 1
KEY = b"fastrank"
# Names of other formats, which a Parquet file must not bear.
MISLEADING = (
    *(".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".md", ".tex", ".html", ".pkl", ".pickle"),
    *(".arrow", ".feather", ".ipc", ".orc", ".xlsx", ".npy", ".npz"),
)


def save(evaluation: Evaluation, path: Path) -> None:
    """Write an evaluation to a Parquet file, whole or not at all; `load` gives it back. `InputError` where it cannot be written."""
    suffix = os.path.splitext(os.fsdecode(path))[1].lower()
    if suffix in MISLEADING:
        cure = "name it .parquet, or write another format by to_json, to_pandas or the command line's --format and --per-query"
        raise InputError(f"save writes Parquet, and {os.fsdecode(path)} is named {suffix}: {cure}.")
    write_file(path, parquet_writer(evaluation))


def load(path: Path) -> Evaluation:
    """Read an evaluation that `Evaluation.save` or the command line's ``--per-query`` has written to a Parquet file.

    It equals the one saved in every number, to the last bit: values, means, intervals, slices, bounds and notes. Nothing in the
    file is ever run.

    Raises
    ------
    InputError
        The file is missing, damaged, not written by fastrank, or written by a newer version in a format that this one does not know.

    Examples
    --------
    >>> import fastrank as fr, tempfile
    >>> result = fr.evaluate([[3, 2, 0], [0, 1, 1]], metrics="nDCG@10,RR")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/bm25.parquet")
    ...     again = fr.load(f"{folder}/bm25.parquet")
    >>> again.mean() == result.mean()
    True
    """
    shown = os.fsdecode(path)
    with reading(f"{shown} cannot be loaded"), open(path, "rb") as file:
        table = pq.read_table(file)
    about = (table.schema.metadata or {}).get(KEY)
    if about is None:
        raise InputError(f"{shown} is no saved Evaluation: fastrank has not written it. To judge the rankings in it use evaluate_table.")
    try:
        return from_table(table, json.loads(about))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise InputError(f"{shown} cannot be loaded: {error}") from error
        raise InputError(f"{shown} is damaged: its metadata do not describe it ({type(error).__name__}: {error}).") from error


def is_saved(path: Path) -> bool:
    """Whether a file is a saved Evaluation, by its first bytes and its metadata. A file that cannot be read is none."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"PAR1" and KEY in (pq.read_schema(file).metadata or {})
    except UNREADABLE:
        return False


def parquet_writer(evaluation: Evaluation) -> Callable[[BinaryIO], None]:
    """What writes an evaluation into an open file."""

    def write(file: BinaryIO) -> None:
        table = to_table(evaluation) if evaluation.values is not None else _sums_to_table(evaluation)
        # A dictionary of floats would take one zero or NaN for another.
        names = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
        pq.write_table(table, file, compression="zstd", use_dictionary=names)

    return write


# --- out ------------------------------------------------------------------------------------------------------------------------


def to_table(evaluation: Evaluation) -> pa.Table:
    """One row per query: query_id, the `by` columns, weight, then a float64 column per metric (and three for its bounds)."""
    if evaluation.values is None:
        raise InputError("the values of single queries were not kept: evaluate with per_query=True, or use summary().")
    ids = pa.array(np.arange(evaluation.n_queries)) if evaluation.query_ids is None else normal(evaluation.query_ids)
    columns: dict[str, Any] = {"query_id": ids}
    by = {name: _free(name, ("query_id", "weight")) for name in evaluation.by}
    columns |= {by[name]: normal(array) for name, array in evaluation.by.items()}
    if evaluation.weights is not None:
        columns["weight"] = pa.array(evaluation.weights)
    sides = {"": evaluation.values}
    if evaluation.bounds is not None:
        sides |= {f".{field.name}": getattr(evaluation.bounds, field.name) for field in dataclasses.fields(Bounds)}
    metrics = _metrics(evaluation)
    for i, described in enumerate(metrics):
        described["column"] = _free(described["name"], columns, tuple(sides))
        columns |= {described["column"] + side: pa.array(np.ascontiguousarray(values[:, i])) for side, values in sides.items()}
    ours = {"by": by, "numbered": evaluation.query_ids is None, "bounds": evaluation.bounds is not None}
    return pa.table(columns, metadata=_metadata(evaluation, metrics, ours))


def _sums_to_table(evaluation: Evaluation) -> pa.Table:
    """One row: for each `by` column the list of its values, and beside it that of their sums."""
    columns: dict[str, pa.Array] = {}
    for i, values in enumerate(evaluation.slice_moments.values()):
        columns[f"values {i}"] = _one_list(pa.array(list(values)))
        columns[f"sums {i}"] = _one_list(pa.array([_sums_to_json(sums) for sums in values.values()], pa.string()))
    ours = {"by": list(evaluation.slice_moments), "sums": _sums_to_json(evaluation.moments)}
    return pa.table(columns, metadata=_metadata(evaluation, _metrics(evaluation), ours))


def _metrics(evaluation: Evaluation) -> list[dict[str, Any]]:
    described = zip(evaluation.names, evaluation.metrics, evaluation.no_relevant, strict=True)
    return [metric_to_dict(name, metric) | {"spelled": metric.spelled, "n_no_relevant": count} for name, metric, count in described]


def _metadata(evaluation: Evaluation, metrics: list[dict[str, Any]], ours: dict[str, Any]) -> dict[bytes, str]:
    about = {
        "format": FORMAT,
        "n_queries": evaluation.n_queries,
        "convention": convention_to_dict(evaluation.convention),
        "metrics": metrics,
        "notes": [dataclasses.asdict(note) for note in evaluation.notes],
    }
    if evaluation.replicates is not None:
        about["replicates"] = evaluation.replicates.tolist()
    return {KEY: to_json(about | ours, indent=None)}


def _one_list(values: pa.Array) -> pa.Array:
    return pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)


def _sums_to_json(sums: tuple[Moments, ...]) -> str:
    return json.dumps([each.to_dict() for each in sums])


def _free(name: str, taken: Any, endings: tuple[str, ...] = ("",)) -> str:
    while any(name + ending in taken for ending in endings):
        name += "_"
    return name


# --- in -------------------------------------------------------------------------------------------------------------------------


def from_table(table: pa.Table, about: Mapping[str, Any]) -> Evaluation:
    """The evaluation that a table with these metadata holds."""
    if about["format"] != FORMAT:
        raise InputError(f"it was written in format {about['format']}, and this version reads format {FORMAT}. Use a newer fastrank.")
    metrics = [_metric(described) for described in about["metrics"]]
    common: dict[str, Any] = {
        "n_queries": about["n_queries"],
        "no_relevant": [described["n_no_relevant"] for described in about["metrics"]],
        "notes": [Note(**note) for note in about["notes"]],
        "replicates": np.array(about["replicates"], np.float64) if "replicates" in about else None,
    }
    convention = _convention(about["convention"])
    if "sums" in about:
        sums, slices = _sums(about["sums"]), _slice_sums(table, about["by"])
        return Evaluation(metrics, convention, values=None, moments=sums, slice_moments=slices, **common)
    if table.num_rows != about["n_queries"]:
        raise InputError(f"it has {table.num_rows} rows for {about['n_queries']} queries: another program has changed it.")

    def matrix(side: str) -> np.ndarray:
        return np.column_stack([table.column(described["column"] + side).to_numpy() for described in about["metrics"]])

    return Evaluation(
        metrics,
        convention,
        values=matrix(""),
        query_ids=None if about["numbered"] else _whole(table, "query_id"),
        weights=table.column("weight").to_numpy() if "weight" in table.column_names else None,
        by={name: _whole(table, column) for name, column in about["by"].items()},
        bounds=Bounds(*(matrix(f".{field.name}") for field in dataclasses.fields(Bounds))) if about["bounds"] else None,
        **common,
    )


def _whole(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    return joined(column.chunks or [pa.nulls(0, column.type)])


def _metric(described: Mapping[str, Any]) -> Metric:
    return dataclasses.replace(parse_metric(described["full_name"]), spelled=tuple(described["spelled"]))


def _convention(fields: Mapping[str, Any]) -> Convention:
    """The convention of these fields: the named one itself where nothing was overridden."""
    known = {field.name for field in dataclasses.fields(Convention)}
    if unknown := sorted(set(fields) - known):
        raise InputError(f"its convention makes choices that this version does not know: {', '.join(unknown)}. Use a newer fastrank.")
    made = Convention(**{name: _choice(name, value) for name, value in fields.items()})
    named = conventions.get(made.name)
    return named if named == made else made


def _choice(name: str, value: Any) -> Any:
    """A value as it was before it became JSON: tuples became lists, and tables of gains or discounts their text."""
    if name == "families":
        return tuple((family, tuple((key, _choice(key, choice)) for key, choice in choices)) for family, choices in value)
    if name in ("gain", "discount") and value[:1] in ("{", "["):
        return (as_gain if name == "gain" else as_discount)(ast.literal_eval(value))
    return tuple(value) if isinstance(value, list) else value


def _sums(text: str) -> tuple[Moments, ...]:
    return tuple(Moments.from_dict(each) for each in json.loads(text))


def _slice_sums(table: pa.Table, columns: list[str]) -> SliceMoments:
    slices: SliceMoments = {}
    for i, name in enumerate(columns):
        values, sums = (table.column(f"{what} {i}")[0].as_py() for what in ("values", "sums"))
        # One NaN object, so that NaN of two results is the same key.
        slices[name] = {math.nan if value != value else value: _sums(text) for value, text in zip(values, sums, strict=True)}
    return slices

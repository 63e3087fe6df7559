"""Click models as Parquet or .npz files, from which they come back bit for bit."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fastrank.clicks.models import NEEDS, ClickModel
from fastrank.errors import InputError
from fastrank.io.arrow import reading
from fastrank.io.atomic import Path, write_file

# Written into every file; a reader refuses what it does not know.
FORMAT = 1
KEY = b"fastrank.clicks"
# The same in an .npz file, beside an array per column.
ABOUT = "about"
IDS = {"query_id": "queries", "doc_id": "docs"}


def save(model: ClickModel, path: Path) -> None:
    """Write a model, whole or not at all. `InputError` where it cannot be written."""
    columns = {name: getattr(model, field) for name, field in {**IDS, "attr": "attr", "sat": "sat"}.items()}
    about = {
        "format": FORMAT,
        "name": model.name,
        # Of the user browsing model's table, the ranks that can have been clicked before each rank.
        "exam": None if model.exam is None else [row[~np.isnan(row)].tolist() for row in np.atleast_2d(model.exam)],
        "cont": None if model.cont is None else model.cont.tolist(),
        "unseen": model.unseen,
        "objective": model.objective.tolist(),
        "n_iterations": model.n_iterations,
        "converged": model.converged,
    }
    if os.fsdecode(path).endswith(".npz"):
        arrays: dict[str, Any] = {name: _plain(name, column) for name, column in columns.items() if column is not None}
        write_file(path, lambda file: np.savez_compressed(file, **{ABOUT: np.array(json.dumps(about))} | arrays))
        return
    table = pa.table({name: column for name, column in columns.items() if column is not None}, metadata={KEY: json.dumps(about)})
    ids = [name for name in IDS if name in table.column_names]
    write_file(path, lambda file: pq.write_table(table, file, compression="zstd", use_dictionary=ids))


def _plain(name: str, column: Any) -> np.ndarray:
    """A column as an array that needs no pickle: text and bytes of one width."""
    if isinstance(column, np.ndarray):
        return column
    values = column.to_pylist()
    array = np.array(values) if values else np.zeros(0, np.str_)
    if array.dtype == object or array.tolist() != values:  # NumPy drops zeros from the end of text
        raise InputError(
            f"{name} holds ids that an .npz file cannot keep, such as text that ends in a zero byte: save the model as .parquet."
        )
    return array


def load(path: Path) -> ClickModel:
    """Read a model; see `ClickModel.load`."""
    shown = os.fsdecode(path)
    with reading(f"{shown} cannot be loaded"), open(path, "rb") as file:
        is_zip = file.read(2) == b"PK"
        file.seek(0)
        columns, about = _from_npz(file, shown) if is_zip else _from_parquet(file)
    if about is None:
        raise InputError(f"{shown} is no saved click model: ClickModel.save and fastrank clicks fit --save write such files.")
    try:
        return _model(columns, json.loads(about))
    except InputError as error:
        raise InputError(f"{shown} cannot be loaded: {error}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{shown} cannot be loaded: what it says of its model is damaged. Write it anew with ClickModel.save.") from error


def _from_parquet(file: BinaryIO) -> tuple[dict[str, Any], bytes | None]:
    table = pq.read_table(file)
    columns = {name: table.column(name) for name in table.column_names}
    columns |= {name: columns[name].to_numpy() for name in ("attr", "sat") if name in columns}
    return columns, (table.schema.metadata or {}).get(KEY)


def _from_npz(file: BinaryIO, shown: str) -> tuple[dict[str, Any], str | None]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            columns = {name: arrays[name] for name in arrays.files}
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{shown} cannot be loaded: {error}. Write it anew with ClickModel.save.") from error
    return columns, str(columns.pop(ABOUT)) if ABOUT in columns else None


def _model(found: dict[str, Any], about: dict[str, Any]) -> ClickModel:
    if about["format"] != FORMAT:
        raise InputError(f"it was written in format {about['format']}, and this version reads format {FORMAT}. Use a newer fastrank.")
    columns = {field: found[name] for name, field in (IDS | {"attr": "attr", "sat": "sat"}).items() if name in found}
    exam = about["exam"]
    if exam is not None and NEEDS[about["name"]]["exam"] == "last":
        exam = np.array([row + [np.nan] * (len(exam) + 1 - len(row)) for row in exam]).reshape(len(exam), len(exam) + 1)
    elif exam is not None:
        exam = exam[0]
    rest = {name: about[name] for name in ("cont", "objective", "n_iterations", "converged")}
    return ClickModel(about["name"], exam=exam, unseen=tuple(about["unseen"]), **columns, **rest)

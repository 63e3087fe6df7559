"""Click models as Parquet files, from which they come back bit for bit."""

from __future__ import annotations

import json
import os
from typing import Any

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
    table = pa.table({name: column for name, column in columns.items() if column is not None}, metadata={KEY: json.dumps(about)})
    ids = [name for name in IDS if name in table.column_names]
    write_file(path, lambda file: pq.write_table(table, file, compression="zstd", use_dictionary=ids))


def load(path: Path) -> ClickModel:
    """Read a model; see `ClickModel.load`."""
    shown = os.fsdecode(path)
    with reading(f"{shown} cannot be loaded"), open(path, "rb") as file:
        table = pq.read_table(file)
    about = (table.schema.metadata or {}).get(KEY)
    if about is None:
        raise InputError(f"{shown} is no saved click model: ClickModel.save and fastrank clicks fit --save write such files.")
    try:
        return _model(table, json.loads(about))
    except InputError as error:
        raise InputError(f"{shown} cannot be loaded: {error}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"{shown} cannot be loaded: what it says of its model is damaged. Write it anew with ClickModel.save.") from error


def _model(table: pa.Table, about: dict[str, Any]) -> ClickModel:
    if about["format"] != FORMAT:
        raise InputError(f"it was written in format {about['format']}, and this version reads format {FORMAT}. Use a newer fastrank.")
    columns: dict[str, Any] = {field: table.column(name) for name, field in IDS.items() if name in table.column_names}
    columns |= {name: table.column(name).to_numpy() for name in ("attr", "sat") if name in table.column_names}
    exam = about["exam"]
    if exam is not None and NEEDS[about["name"]]["exam"] == "last":
        exam = np.array([row + [np.nan] * (len(exam) + 1 - len(row)) for row in exam]).reshape(len(exam), len(exam) + 1)
    elif exam is not None:
        exam = exam[0]
    rest = {name: about[name] for name in ("cont", "objective", "n_iterations", "converged")}
    return ClickModel(about["name"], exam=exam, unseen=tuple(about["unseen"]), **columns, **rest)

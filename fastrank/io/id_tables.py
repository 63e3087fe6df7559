"""Tables whose rows name a query and a document, with a label or a score: judgements and rankings in any format there is."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastrank.errors import InputError
from fastrank.io.arrow import first_null, numbers, reading, single, valid
from fastrank.io.formats import open_rows
from fastrank.io.recognition import DOC, QUERY
from fastrank.io.roles import Roles
from fastrank.io.sources import THE_TABLE, open_source, readable_again, with_numbers
from fastrank.io.tables import whole_table

# Usual names of labels.
LABELS = ("label", "relevance")


class IdRows(NamedTuple):
    """The rows of a table: two ids and a number each, masked where it is null. name: where they come from."""

    name: str
    query_ids: pa.Array
    doc_ids: pa.Array
    values: np.ndarray


def read_id_rows(table: Any, roles: Roles) -> IdRows:
    """All rows of a table, whose label, or else one score, is the number. Errors: as `read_columns`."""
    if roles.doc is None or not (roles.label or roles.scores):
        raise InputError("doc and label, or score in a run, must be names of columns, not None.")
    source = open_source(table, roles)
    name = THE_TABLE if isinstance(source, pa.Table) else source.where
    with reading(name):
        rows = with_numbers(source if isinstance(source, pa.Table) else whole_table(source), roles, int)
        if roles.label is not None:
            values = numbers(rows.column(roles.label))
        else:
            values = numbers(rows.column(roles.scores[0]), ordinal=True)
        return IdRows(name, _ids(rows, "query", roles.query), _ids(rows, "doc", str(roles.doc)), values)


def _ids(rows: pa.Table, role: str, column: str) -> pa.Array:
    ids = valid(single(rows.column(column)))
    null = first_null(ids)
    if null is not None:
        raise InputError(f'{role} column "{column}" must not be null: row {null} is. Fill it or filter the row out.')
    return ids


def label_column(table: Any) -> str:
    """The name of the column that holds labels: the first usual one that is there, or the first."""
    names = _column_names(table)
    return next((name for name in LABELS if name in names), LABELS[0])


def _column_names(table: Any) -> list[str]:
    """Names of columns, without reading a row; none where only reading would tell."""
    if isinstance(table, str | os.PathLike | list | tuple):
        place = readable_again(table)[0]
        with reading(place.where):
            return [*open_rows(place, Roles(QUERY, None, (), DOC)).schema.names, *place.folders]
    names = getattr(getattr(table, "schema", None), "names", None)
    if isinstance(names, list):
        return names
    return [str(name) for name in getattr(table, "columns", ())]

"""How many rows a file has, before they are read: for the time that is left."""

from __future__ import annotations

import os
from typing import Any

import pyarrow.parquet as pq

from fastrank.errors import InputError
from fastrank.io.arrow import reading
from fastrank.io.formats import Place
from fastrank.io.recognition import MAGIC
from fastrank.io.sources import readable_again

PARQUET = b"PAR1"


def expected_rows(table: Any) -> int | None:
    """The rows of files: what Parquet tells, and for text an estimate from its first lines. None where there is no telling.

    What can be read once is not touched, and what cannot be read is left for others to complain about.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".csv") as file:
    ...     _ = file.write(b"query_id,label,score\\n" + b"q,1,0.5\\n" * 1000)
    ...     file.flush()
    ...     expected_rows(file.name)
    1001
    """
    if not isinstance(table, str | os.PathLike) or (os.path.exists(table) and not (os.path.isfile(table) or os.path.isdir(table))):
        return None
    try:
        counts = [_rows_of(place) for place in readable_again(table)]
    except InputError:
        return None
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _rows_of(place: Place) -> int | None:
    with reading(place.where):
        if place.compression is not None:
            return None
        start = place.start(max(map(len, MAGIC)))
        if start.startswith(PARQUET):
            with place.random() as file:
                return int(pq.read_metadata(file).num_rows)
        if start.startswith(MAGIC):
            return None
        with place.open_file() as file:
            size = int(file.size())
        n_lines = place.head.count(b"\n")
        return round(n_lines * size / len(place.head)) if n_lines else None

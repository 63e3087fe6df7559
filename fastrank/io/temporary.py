"""Rows in temporary files, and how much memory they may take before they go there.

The files have no name: the operating system drops them when they are closed, or when the process ends, whatever ends it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
import os
import re
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fastrank.errors import InputError
from fastrank.io.arrow import FROM_ARROW

# How much memory rows that must be regrouped may take, unless it is said.
DEFAULT_LIMIT = 10**9
# What regrouping a table takes, in units of its own size: the rows as read, their columns joined, their order, a batch of them in order.
TIMES_A_TABLE = 4

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]i?)?b?\s*", re.IGNORECASE)


def bytes_of(limit: int | str | None) -> int:
    """A number of bytes, as a whole number or as text with a unit.

    >>> bytes_of("1.5 GB"), bytes_of("512MiB"), bytes_of(10_000)
    (1500000000, 536870912, 10000)
    """
    if limit is None:
        return DEFAULT_LIMIT
    given: object = limit
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 1:
        return int(given)
    found = SIZE.fullmatch(given) if isinstance(given, str) else None
    size = 0 if found is None else math.floor(float(found[1]) * UNITS[(found[2] or "").lower()])
    if size < 1:
        raise InputError(f'memory_limit must be a number of bytes from 1 up, or text such as "500MB", not {limit!r}.')
    return size


def bytes_in(rows: pa.RecordBatch | pa.Table) -> int:
    """What rows take in memory."""
    try:
        return int(rows.nbytes)
    except FROM_ARROW:  # older Arrow cannot tell what a part of a view takes: all of its buffers
        return int(rows.get_total_buffer_size())


class TemporaryRows:
    """Rows in a temporary file, as a source: all written first, then read as often as they are wanted."""

    def __init__(self, where: str, schema: pa.Schema) -> None:
        self.where, self.schema = where, schema
        self.n_bytes = 0
        with _on_disk():
            self._file: Any = tempfile.TemporaryFile(prefix="fastrank-")  # noqa: SIM115  (closed by close)
            weakref.finalize(self, self._file.close)
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writer: Any = pa.ipc.new_stream(self._file, schema, options=options)

    def add(self, rows: pa.Table) -> None:
        """Write rows."""
        self.n_bytes += bytes_in(rows)
        with _on_disk():
            self._writer.write_table(rows)

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The rows as they were written."""
        places = [self.schema.names.index(name) for name in columns]
        for batch in self._read(places):
            for start in range(0, len(batch), rows_per_batch):
                yield batch.select(columns).slice(start, rows_per_batch)

    def table(self) -> pa.Table:
        """All rows."""
        return pa.Table.from_batches(list(self._read(None)), self.schema)

    def _read(self, places: list[int] | None) -> Iterator[pa.RecordBatch]:
        with _on_disk():
            if self._writer is not None:
                self._writer.close()
                self._writer = None
            with pa.ipc.open_stream(_FromStart(self._file), options=pa.ipc.IpcReadOptions(included_fields=places)) as reader:
                yield from reader

    def close(self) -> None:
        """Give the file back."""
        self._file.close()


class _FromStart(io.RawIOBase):
    """A file read from its start, wherever others read it meanwhile."""

    def __init__(self, file: Any) -> None:
        self._file, self._place = file, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._file.seek(self._place)
        n: int = self._file.readinto(buffer)
        self._place += n
        return n


def in_memory_or_not(batches: Iterator[pa.RecordBatch], schema: pa.Schema, where: str, limit: int | None) -> pa.Table | TemporaryRows:
    """All rows as a table, or, when there are more than so many bytes of them, in a temporary file."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        held.append(batch)
        size += 0 if limit is None else bytes_in(batch)
        if limit is not None and size > limit:
            break
    else:
        return pa.Table.from_batches(held, schema)
    rows = TemporaryRows(where, schema)
    for batch in itertools.chain(held, batches):
        rows.add(pa.Table.from_batches([batch]))
    return rows


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    """What the disk says, in one line."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        cure = "Give memory_limit= more, or set TMPDIR to a folder with more room"
        raise InputError(f"temporary file in {tempfile.gettempdir()}: {reason}. {cure}.") from error

"""Everything that can be read as a table: files in any number, place and format, and Arrow data of any make.

A path may be a file, a directory, a pattern or the URI of any of them. Folders named ``key=value`` give a column each, as text.
"""

from __future__ import annotations

import glob
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from fastrank.errors import InputError
from fastrank.io.arrow import UNREADABLE, NotANumber, decoded, is_text, normal, numbers_of_text, reading, single, value_type
from fastrank.io.formats import ParquetRows, Place, Rows, Skipped, open_rows
from fastrank.io.recognition import URI, WILD
from fastrank.io.roles import NUMBERS, Roles
from fastrank.io.temporary import DEFAULT_LIMIT, TIMES_A_TABLE, TemporaryRows, in_memory_or_not

THE_TABLE = "the table"
# A column beside those of a filtered source: the row that each was before.
ROW = "__row_of_the_source__"

KNOWN = "a path, pattern or URI, a list of paths, Arrow data, or a data frame with __arrow_c_stream__"


class Source(Protocol):
    """Rows that can be read more than once. ``schema``: the columns that are wanted."""

    where: str
    schema: pa.Schema

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Record batches of these columns, in this order."""


def open_source(table: Any, roles: Roles, memory_limit: int = DEFAULT_LIMIT) -> Source | pa.Table:
    """What can be read again, and a stream too long for memory, as a source, all else as a table in memory.

    Names and types are checked, the filter is applied. A source that was opened before is returned.
    """
    if isinstance(table, Files | Dataset | Filtered | TemporaryRows | Ascending):
        return table
    if _names_files(table):
        source: Source = Files(table, roles)
    elif type(table).__module__ == "pyarrow._dataset" and hasattr(table, "scanner"):
        source = Dataset(table, roles)
    else:
        rows = _in_memory(table, roles, memory_limit)
        if isinstance(rows, pa.Table):
            if roles.filter is None:
                return rows
            _check_filter(rows.schema, roles)
            return _filtered(rows, roles, 0)
        source = rows
    return source if roles.filter is None or isinstance(source, Dataset) else Filtered(source, roles)


def from_row(source: Source, columns: list[str], rows_per_batch: int, start: int) -> Iterator[pa.RecordBatch]:
    """The record batches of a source, of files where ``start``, the first row that is wanted, is not 0."""
    if start and isinstance(source, Files | Filtered | Stoppable):
        return source.batches(columns, rows_per_batch, start)
    return source.batches(columns, rows_per_batch)


def is_one_file(table: Any) -> bool:
    """Whether a table is the path of a single file here, and so may be text of another kind."""
    return isinstance(table, str | os.PathLike) and os.path.isfile(table)


def readable_again(table: Any) -> Any:
    """What names files as the list of them, with the bytes of those that can be read only once; all else as it is."""
    if not _names_files(table):
        return table
    return [place for item in (table if isinstance(table, list | tuple) else [table]) for place in find(item)]


def stamps(table: Any) -> dict[str, list[int | None]]:
    """Of each file that a table names, its size in bytes and the time of its last change in nanoseconds."""
    if not _names_files(table):
        raise InputError("checkpoint= needs files, which can be read from where a call had got to, and this is none: give their paths.")
    found = {}
    for place in readable_again(table):
        if place.stamp is None:
            raise InputError(f"{place.where}: checkpoint= needs files that can be read again, and this can be read once only.")
        found[place.where] = list(place.stamp())
    return found


# --- files ----------------------------------------------------------------------------------------------------------------------


class Files:
    """Files with the same columns, one after the other."""

    def __init__(self, table: Any, roles: Roles) -> None:
        places: list[Place] = readable_again(table)
        for where, count in Counter(place.where for place in places).items():
            if count > 1:
                raise InputError(f"{where}: the file is named {count} times. Name each file once.")
        self.where = places[0].where if len(places) == 1 else f"these {len(places)} files"
        self._parts = [_Part.open(place, roles) for place in places]
        self.schema = self._common(roles)

    def _common(self, roles: Roles) -> pa.Schema:
        """Types that hold the values of every file."""
        first, *others = self._parts
        untyped = set(roles.columns)
        for part in self._parts:
            roles.check_types(part.schema, part.untyped)
            untyped &= part.untyped
        schema = first.schema
        for part in others:
            for i, one in enumerate(schema):
                other = part.schema.field(one.name)
                if one.type != other.type:
                    schema = schema.set(i, pa.field(one.name, _wider(one, other, first.where, part.where)))
        roles.check_types(schema, untyped)
        return schema

    def batches(self, columns: list[str], rows_per_batch: int, start: int = 0) -> Iterator[pa.RecordBatch | Skipped]:
        """The record batches of each file in turn, from row ``start`` on."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for part in self._parts:
            with reading(part.where):
                for batch in part.batches(columns, rows_per_batch, start):
                    n_rows, before = batch.n_rows if isinstance(batch, Skipped) else len(batch), start
                    start = max(0, start - n_rows)
                    if before >= n_rows:
                        continue
                    if isinstance(batch, Skipped):
                        yield Skipped(n_rows - before)
                        continue
                    batch = batch.slice(before)
                    yield batch if batch.schema.types == schema.types else batch.cast(schema)


@dataclass(frozen=True, eq=False)
class _Part:
    """One of the files, with the columns that its folders name. ``untyped``: those whose values are text for want of types."""

    where: str
    rows: Rows
    folders: dict[str, str | None]
    schema: pa.Schema
    untyped: frozenset[str]

    @classmethod
    def open(cls, place: Place, roles: Roles) -> _Part:
        with reading(place.where):
            rows = open_rows(place, roles)
        names = rows.schema.names
        folders = {name: value for name, value in place.folders.items() if name not in names}
        roles.check_names([*names, *folders], place.where)
        of_folder = pa.dictionary(pa.int32(), pa.string())
        wanted = roles.read([*names, *folders])
        schema = pa.schema([pa.field(name, of_folder) if name in folders else rows.schema.field(name) for name in wanted])
        return cls(place.where, rows, folders, schema, frozenset(wanted if rows.untyped else folders))

    def batches(self, columns: list[str], rows_per_batch: int, start: int) -> Iterator[pa.RecordBatch | Skipped]:
        own = [name for name in columns if name not in self.folders]
        # The number of rows must come from somewhere.
        asked = own or [next((name for name in self.schema.names if name not in self.folders), self.rows.schema.names[0])]
        if start and isinstance(self.rows, ParquetRows):
            batches = self.rows.batches(asked, rows_per_batch, start)
        else:
            batches = self.rows.batches(asked, rows_per_batch)
        for batch in batches:
            if isinstance(batch, Skipped):
                yield batch
                continue
            arrays = dict(zip(asked, batch.columns, strict=True))
            for name in set(columns) - set(own):
                arrays[name] = _repeated(self.folders[name], len(batch))
            yield pa.record_batch([arrays[name] for name in columns], names=columns)


def _repeated(value: str | None, n: int) -> pa.DictionaryArray:
    places = pa.nulls(n, pa.int32()) if value is None else pa.array(np.zeros(n, np.int32))
    return pa.DictionaryArray.from_arrays(places, pa.array([] if value is None else [value], pa.string()))


def _wider(one: pa.Field, other: pa.Field, where: str, other_where: str) -> pa.DataType:
    """A type for the values of both: longer integers, floats, longer text."""
    fields = [pa.field(each.name, decoded(pa.nulls(0, each.type)).type) for each in (one, other)]
    try:
        return pa.unify_schemas([pa.schema([each]) for each in fields], promote_options="permissive").field(0).type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        types = f"{fields[0].type} in {where} and {fields[1].type} in {other_where}"
        raise InputError(f'column "{one.name}" is {types}: write all files alike.') from None


# --- places ---------------------------------------------------------------------------------------------------------------------


def find(item: Any) -> list[Place]:
    """The files that a path, pattern, directory, URI or open file means; those of a directory or pattern sorted by name."""
    if isinstance(item, Place):
        return [item]
    if hasattr(item, "read"):
        return [_read_once(item)]
    text = os.fsdecode(item)
    places = _remote(text) if URI.match(text) else _local(os.path.expanduser(text))
    if not places:
        what = "no file matches this pattern" if WILD.search(text) else "a directory without files"
        raise InputError(f"{text}: {what}.")
    return places


def _read_once(file: Any) -> Place:
    where = str(getattr(file, "name", "the open file"))
    with reading(where):
        content = file.read()
    if isinstance(content, str):
        raise InputError(f"{where}: the file is open as text. Open it in binary mode, or give its path.")
    return Place(where, where, lambda: pa.BufferReader(content))


def _local(path: str) -> list[Place]:
    system = fs.LocalFileSystem()
    if os.path.lexists(path) or not WILD.search(path):
        return _of_path(system, path, path)
    return [place for match in sorted(glob.glob(path, recursive=True)) for place in _of_path(system, match, match)]


def _remote(uri: str) -> list[Place]:
    """Files of a URI. A question mark begins the options of the file system; the other wildcards make a pattern."""
    with reading(uri):
        address, mark, options = uri.partition("?")
        wild = WILD.search(address)
        if wild is None:
            system, path = fs.FileSystem.from_uri(uri)
            return _of_path(system, path, uri)
        folder = address[: address.rindex("/", 0, wild.start())]
        system, base = fs.FileSystem.from_uri(folder + mark + options)
        pattern = re.compile(_regex(base + address[len(folder) :]))
        found = system.get_file_info(fs.FileSelector(base, allow_not_found=True, recursive=True))
        files = sorted(info.path for info in found if info.type == fs.FileType.File and pattern.fullmatch(info.path))
        return [_place(system, path, folder + path[len(base) :]) for path in files]


def _regex(pattern: str) -> str:
    """A pattern of paths as a regular expression: ``**/`` is any folders, ``*`` anything but a slash."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*|\[[^]]+\])", pattern)
    return "".join(words.get(part, part if part.startswith("[") else re.escape(part)) for part in parts)


def _of_path(system: fs.FileSystem, path: str, where: str) -> list[Place]:
    with reading(where):
        # Arrow's file systems take names in UTF-8 alone.
        kind = system.get_file_info(path).type if _is_utf8(path) else fs.FileType.Unknown
        if kind == fs.FileType.Unknown:
            # A pipe, a device: its bytes come once.
            with open(path, "rb") as file:
                return [_read_once(file)]
        if kind != fs.FileType.Directory:
            return [_place(system, path, where)]
        base = path.rstrip("/") or path
        try:
            found = system.get_file_info(fs.FileSelector(base, recursive=True))
            files = [info.path for info in found if info.type == fs.FileType.File]
        except UnicodeDecodeError:
            files = [os.path.join(folder, name) for folder, _, names in os.walk(base) for name in names]
    wanted = [(each, where.rstrip("/") + each[len(base) :]) for each in sorted(files) if not _is_hidden(each[len(base) :])]
    return [place for each, name in wanted for place in ([_place(system, each, name)] if _is_utf8(each) else _of_path(system, each, name))]


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_hidden(path: str) -> bool:
    """What Spark and other writers lay beside their data begins with an underscore or a dot."""
    return any(part.startswith(("_", ".")) for part in path.split("/"))


def _place(system: fs.FileSystem, path: str, where: str) -> Place:
    def stamp() -> tuple[int, int | None]:
        with reading(where):
            info = system.get_file_info(path)
            return info.size, info.mtime_ns

    return Place(where, path, lambda: system.open_input_file(path), stamp)


def _names_files(table: Any) -> bool:
    if isinstance(table, list | tuple):
        return bool(table) and all(isinstance(item, str | os.PathLike | Place) for item in table)
    is_arrow = hasattr(table, "__arrow_c_stream__") or hasattr(table, "__arrow_c_array__")
    return isinstance(table, str | os.PathLike) or (hasattr(table, "read") and not is_arrow)


# --- Arrow data -----------------------------------------------------------------------------------------------------------------


class Dataset:
    """A pyarrow Dataset. It applies the filter itself, so rows are counted after it."""

    def __init__(self, dataset: Any, roles: Roles) -> None:
        self.where, self._dataset, self._filter = "the dataset", dataset, roles.filter
        names = dataset.schema.names
        roles.check_names(names, self.where)
        roles.check_types(dataset.schema)
        self.schema = pa.schema([dataset.schema.field(name) for name in roles.columns])
        if roles.filter is not None:
            _check_filter(dataset.schema, roles)

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Record batches in the order of the dataset's files."""
        yield from self._dataset.scanner(columns=columns, filter=self._filter, batch_size=rows_per_batch).to_batches()


def _in_memory(table: Any, roles: Roles, memory_limit: int) -> pa.Table | TemporaryRows:
    """Arrow data of any make as a table of the columns wanted. A stream gives up its other columns batch by batch."""
    if isinstance(table, pa.Table):
        roles.check_names(table.schema.names, THE_TABLE)
        table = table.select(roles.read(table.schema.names))
        roles.check_types(table.schema)
        return table
    with reading(THE_TABLE):
        reader = _reader(table, roles)
    roles.check_names(reader.schema.names, THE_TABLE)
    columns = roles.read(reader.schema.names)
    schema = pa.schema([reader.schema.field(name) for name in columns])
    roles.check_types(schema)
    limit = None if _is_frame(table) else memory_limit // TIMES_A_TABLE
    with reading(THE_TABLE):
        return in_memory_or_not((batch.select(columns) for batch in reader), schema, THE_TABLE, limit)


def _is_frame(table: Any) -> bool:
    """Whether this is a data frame, all of which is in memory."""
    return type(table).__module__.partition(".")[0] in ("pandas", "polars") and hasattr(table, "columns")


def _reader(table: Any, roles: Roles) -> pa.RecordBatchReader:
    kind = type(table)
    if hasattr(table, "__arrow_c_stream__"):
        if _is_frame(table):
            # The other columns cost time, or are of a kind that Arrow does not have. Index levels of pandas become columns too.
            names = [str(name) for name in table.columns]
            is_pandas = kind.__module__.startswith("pandas")
            levels = [str(name) for name in table.index.names] if is_pandas else []
            roles.check_names(names + levels, THE_TABLE)
            columns = roles.read(names + levels)
            wanted = [name in columns for name in names]
            table = table.loc[:, wanted] if is_pandas else table.select(columns)
        return pa.RecordBatchReader.from_stream(table)
    if hasattr(table, "__arrow_c_array__"):
        batch = pa.record_batch(table)
        return pa.RecordBatchReader.from_batches(batch.schema, [batch])
    raise InputError(f"table must be {KNOWN}, not {kind.__module__}.{kind.__qualname__}. For arrays use evaluate.")


class Ascending:
    """Record batches that pass by once, in ascending order of query ids: one partition of a table that was sorted elsewhere."""

    def __init__(self, where: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch], roles: Roles) -> None:
        roles.check_names(schema.names, where)
        roles.check_types(schema)
        self.where, self.schema, self._batches = where, pa.schema([schema.field(name) for name in roles.columns]), batches
        self._query, self._is_read = roles.query, False

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The record batches. Asked for a second time, where ids did not ascend, an error."""
        if self._is_read:
            raise InputError(f'{self.where}: query column "{self._query}" must ascend: sort by it.')
        self._is_read = True
        for batch in self._batches:
            for start in range(0, len(batch), rows_per_batch):
                yield batch.select(columns).slice(start, rows_per_batch)


class Stopped(Exception):  # noqa: N818 - not a failure: nobody wants the rows any more
    """What reads a source that was told to stop."""


class Stoppable:
    """A source that ends as soon as ``stop`` is set, by `Stopped`: reading a long file through must not outlast a Ctrl-C."""

    def __init__(self, source: Source, stop: threading.Event) -> None:
        self.where, self.schema, self.source, self._stop = source.where, source.schema, source, stop

    def batches(self, columns: list[str], rows_per_batch: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """The same record batches."""
        for batch in from_row(self.source, columns, rows_per_batch, start):
            if self._stop.is_set():
                raise Stopped
            yield batch


# --- filters --------------------------------------------------------------------------------------------------------------------


class Filtered:
    """The rows of a source that pass a filter, with the row that each was in a column of its own."""

    def __init__(self, source: Source, roles: Roles) -> None:
        self.where, self._source, self._roles = source.where, source, roles
        _check_filter(source.schema, roles)
        self.schema = _filtered(source.schema.empty_table(), roles, 0).schema

    def batches(self, columns: list[str], rows_per_batch: int, start: int = 0) -> Iterator[pa.RecordBatch]:
        """Record batches of the rows that are left, from row ``start`` of the source on."""
        n_rows = start
        for batch in from_row(self._source, self._source.schema.names, rows_per_batch, start):
            if isinstance(batch, Skipped):
                n_rows += batch.n_rows
                continue
            kept = _filtered(pa.Table.from_batches([batch]), self._roles, n_rows).select(list(dict.fromkeys([*columns, ROW])))
            n_rows += len(batch)
            yield from kept.combine_chunks().to_batches()


def _filtered(table: pa.Table, roles: Roles, first_row: int) -> pa.Table:
    """The rows that pass, of the columns asked for and `ROW`, in types from which Arrow can take rows."""
    table = pa.table({name: _normal(table.column(name)) for name in table.schema.names})
    compared = _comparable(table, roles, first_row).append_column(ROW, pa.array(np.arange(len(table))))
    # Arrow filters in several threads, which may finish in any order.
    passing = np.sort(compared.filter(roles.filter).column(ROW).to_numpy())
    return table.select(roles.columns).take(pa.array(passing)).append_column(ROW, pa.array(passing + first_row))


def _normal(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([normal(chunk) for chunk in column.chunks] or [normal(pa.nulls(0, column.type))])


def _comparable(table: pa.Table, roles: Roles, first_row: int) -> pa.Table:
    """The columns that the filter may look at, in types that it can compare: labels, scores and weights of a CSV file as numbers."""
    table = with_numbers(table, roles, lambda row: first_row + row)
    return pa.table({name: single(table.column(name)) for name in table.schema.names})


def with_numbers(table: pa.Table, roles: Roles, row_of: Callable[[int], int]) -> pa.Table:
    """The table, with labels, scores and weights that are text, for want of types in their format, as numbers."""
    for role, name in roles.asked():
        if role in NUMBERS and is_text(value_type(table.schema.field(name).type)):
            text = single(table.column(name))
            try:
                values = numbers_of_text(text)
            except NotANumber as error:
                row = pc.index(text, error.text).as_py()
                raise InputError(f'{role} column "{name}" must hold numbers: row {row_of(row)} has {error.text!r}.') from None
            table = table.set_column(table.schema.names.index(name), name, values)
    return table


def _check_filter(schema: pa.Schema, roles: Roles) -> None:
    """Whether the columns of a filter are there, and of types that it can compare."""
    try:
        _comparable(schema.empty_table(), roles, 0).filter(roles.filter)
    except UNREADABLE as error:
        missing = re.match(r"No match for FieldRef\.Name\((.*?)\) in ", str(error))
        reason = f'there is no column "{missing[1]}"' if missing else " ".join(str(error).split())
        raise InputError(f"filter {roles.filter}: {reason}.") from error

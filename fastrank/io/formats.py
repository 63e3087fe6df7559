"""One file of rows, in any format: what it is by its first bytes, and its columns as record batches, as often as they are wanted.

CSV has no types: there every value comes as the text it is written as, and unquoted nothing as null.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from fastrank._cached import cached_property
from fastrank.errors import InputError
from fastrank.io.arrow import FROM_ARROW, is_text, value_type
from fastrank.io.roles import IDS, Roles

# How much is looked at to tell what a file is. The header of a CSV file, and some lines of JSON, must fit.
HEAD = 1 << 20
# The longest line that a CSV or JSON file may have.
BLOCK = 1 << 24
# How much of a JSON file is read at a time.
PIECE = 2 * BLOCK

COMPRESSION = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4", b"BZh": "bz2"}
COMPRESSED_SUFFIX = re.compile(r"\.(gz|gzip|zst|zstd|lz4|bz2)$")
# What Hive and Spark write for a null in the name of a folder.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
ROWS_BELOW = re.compile(r"[\r\n]+[^\r\n]")
DELIMITERS = (",", "\t", ";", "|")
KNOWN = "Parquet, CSV, TSV, JSON lines, Arrow IPC and ORC, plain or compressed by gzip, zstd, bz2 or lz4"


@dataclass(frozen=True, eq=False)
class Place:
    """Bytes by name: a file in a file system, or what was read from something that can be read once."""

    where: str
    name: str
    open_file: Callable[[], pa.NativeFile] = field(repr=False)
    # Size in bytes and time of the last change in nanoseconds; None for what can be read once only.
    stamp: Callable[[], tuple[int, int | None]] | None = field(default=None, repr=False)

    @cached_property
    def compression(self) -> str | None:
        """The codec that the first bytes tell."""
        with self.open_file() as file:
            start = file.read(4)
        return next((codec for magic, codec in COMPRESSION.items() if start.startswith(magic)), None)

    def start(self, n_bytes: int) -> bytes:
        """The first bytes, unpacked."""
        with self.stream() as stream:
            return bytes(stream.read(n_bytes))

    @cached_property
    def head(self) -> bytes:
        """As many bytes as tell what a text file holds."""
        return self.start(HEAD)

    def stream(self) -> pa.NativeFile:
        """The bytes in order, unpacked."""
        file = self.open_file()
        return file if self.compression is None else pa.CompressedInputStream(file, self.compression)

    def random(self) -> pa.NativeFile:
        """The bytes in any order, unpacked: in memory where they are compressed as a whole."""
        if self.compression is None:
            return self.open_file()
        with self.stream() as stream:
            return pa.BufferReader(stream.read())

    @property
    def suffix(self) -> str:
        """The end of the name, without that of a compression."""
        name = COMPRESSED_SUFFIX.sub("", self.name.lower())
        return name[name.rfind(".") :] if "." in name.rsplit("/", 1)[-1] else ""

    @cached_property
    def folders(self) -> dict[str, str | None]:
        """Columns and values in a path such as ``locale=de/day=2024-01-01/part-0.parquet``."""
        pairs = (part.partition("=") for part in self.name.replace(os.sep, "/").split("/")[:-1])
        return {unquote(key): None if value == NO_VALUE else unquote(value) for key, equals, value in pairs if key and equals}


class Skipped(NamedTuple):
    """In place of rows of which none can pass the filter, or is wanted again."""

    n_rows: int


class Rows(Protocol):
    """A file that has been opened: its columns, by name and type, and rows. Only where there is a filter may some be skipped."""

    untyped: ClassVar[bool]
    schema: pa.Schema

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch | Skipped]:
        """Record batches of these columns, in this order, with about so many rows."""


Opener = Callable[[Place, Roles], Rows]


def open_rows(place: Place, roles: Roles) -> Rows:
    """Find out what a file is and open it."""
    return _format_of(place)(place, roles)


def _format_of(place: Place) -> Opener:
    """What the first bytes say; for text, which has no sign of its own, the name."""
    start = place.start(16)
    if not start:
        raise InputError(f"{place.where}: the file is empty.")
    for magic, kind in MAGIC.items():
        if start.startswith(magic):
            return kind
    if start.startswith(UTF_16):
        raise InputError(f"{place.where}: the file is text in UTF-16. Save it as UTF-8.")
    if place.suffix in BINARY_SUFFIXES:
        return BINARY_SUFFIXES[place.suffix]
    if b"\0" in place.head:
        raise InputError(f"{place.where}: the file is in no format that is known here. These are {KNOWN}.")
    first = place.head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if first == b"[" and place.suffix in JSON_SUFFIXES:
        raise InputError(f"{place.where}: the file is one JSON array. Write one object a line instead (JSON lines).")
    return JsonRows if first == b"{" or place.suffix in JSON_SUFFIXES else CsvRows


# --- binary formats -------------------------------------------------------------------------------------------------------------


class ParquetRows:
    """A Parquet file."""

    untyped: ClassVar[bool] = False

    def __init__(self, place: Place, roles: Roles) -> None:
        self.place, self._roles = place, roles
        with place.random() as source, pq.ParquetFile(source) as file:
            self.schema, self._metadata = file.schema_arrow, file.metadata
        # Indices into a dictionary are compared and handed over several times as fast as the texts themselves. Not so for
        # doc_ids, nearly all of which differ.
        names = self.schema.names
        coded = (name for name in dict.fromkeys((roles.query, *roles.by)) if names.count(name) == 1)
        self._coded = [name for name in coded if is_text(self.schema.field(name).type)]
        if self._coded:
            with place.random() as source, self._open(source) as file:
                self.schema = file.schema_arrow

    def _open(self, source: pa.NativeFile) -> pq.ParquetFile:
        return pq.ParquetFile(source, metadata=self._metadata, read_dictionary=self._coded)

    def batches(self, columns: list[str], rows_per_batch: int, start: int = 0) -> Iterator[pa.RecordBatch | Skipped]:
        """Record batches of at most ``rows_per_batch`` rows; row groups whose statistics exclude the filter are skipped.

        Row groups that end before row ``start`` are skipped unread.
        """
        n_rows = [self._metadata.row_group(group).num_rows for group in range(self._metadata.num_row_groups)]
        wanted = {group for group in self._wanted_groups() if sum(n_rows[: group + 1]) > start}
        with self.place.random() as source:
            for is_wanted, groups in itertools.groupby(range(len(n_rows)), wanted.__contains__):
                if not is_wanted:
                    yield Skipped(sum(n_rows[group] for group in groups))
                    continue
                for some in _windows(groups, n_rows, rows_per_batch):
                    # A reader keeps all that it has read: a new one gives it back.
                    with self._open(source) as file:
                        for batch in file.iter_batches(rows_per_batch, row_groups=some, columns=columns):
                            yield batch.select(columns)

    def _wanted_groups(self) -> Collection[int]:
        every = range(self._metadata.num_row_groups)
        if self._roles.filter is None:
            return every
        names = [name for name in self._roles.filtered(self.schema.names) if self.schema.names.count(name) == 1]
        plain = pa.schema([(name, value_type(self.schema.field(name).type)) for name in names])
        if any(pa.types.is_floating(of) for of in plain.types):
            return every  # statistics do not tell of NaN, which may pass where no number does
        from pyarrow import dataset

        with self.place.random() as source:
            fragment = dataset.ParquetFileFormat().make_fragment(source)
            try:
                return {group.id for group in fragment.subset(self._roles.filter, schema=plain).row_groups}
            except FROM_ARROW:  # a column that is no column of this file, or a value of another type: the filter itself will tell
                return every


def _windows(groups: Iterable[int], n_rows: list[int], enough: int) -> Iterator[list[int]]:
    """Row groups that together have enough rows, one window after the other."""
    window: list[int] = []
    for group in groups:
        window.append(group)
        if sum(n_rows[each] for each in window) >= enough:
            yield window
            window = []
    if window:
        yield window


class IpcRows:
    """Arrow IPC: a file (Feather version 2) or a stream."""

    untyped: ClassVar[bool] = False

    def __init__(self, place: Place, _roles: Roles) -> None:
        self.place = place
        self._is_file = place.start(len(IPC_FILE)) == IPC_FILE
        with self._bytes() as source, self._reader(source, None) as reader:
            self.schema = reader.schema

    def _bytes(self) -> pa.NativeFile:
        return self.place.random() if self._is_file else self.place.stream()

    def _reader(self, source: pa.NativeFile, columns: list[int] | None) -> Any:
        options = pa.ipc.IpcReadOptions(included_fields=columns)
        return (pa.ipc.open_file if self._is_file else pa.ipc.open_stream)(source, options=options)

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The record batches of the file; long ones in parts."""
        places = [self.schema.names.index(name) for name in columns]
        with self._bytes() as source, self._reader(source, places) as reader:
            found = map(reader.get_batch, range(reader.num_record_batches)) if self._is_file else reader
            for batch in found:
                # Nothing else vouches for what the offsets in these bytes point to.
                batch.validate(full=True)
                yield from _parts(batch.select(columns), rows_per_batch)


class OrcRows:
    """An ORC file."""

    untyped: ClassVar[bool] = False

    def __init__(self, place: Place, _roles: Roles) -> None:
        from pyarrow.orc import ORCFile

        self.place, self._open = place, ORCFile
        with place.random() as source:
            self.schema = ORCFile(source).schema

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """The stripes of the file, in parts."""
        with self.place.random() as source:
            file = self._open(source)
            for i in range(file.nstripes):
                yield from _parts(file.read_stripe(i, columns=columns).select(columns), rows_per_batch)


def _feather_1(place: Place, _roles: Roles) -> Rows:
    raise InputError(f"{place.where}: version 1 of the Feather format is not read here. Write it again in version 2, or as Parquet.")


def _parts(batch: pa.RecordBatch, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(batch), rows_per_batch):
        yield batch.slice(start, rows_per_batch)


# --- text formats ---------------------------------------------------------------------------------------------------------------


class CsvRows:
    """Values separated by commas, tabs, semicolons or bars, under a line of names."""

    untyped: ClassVar[bool] = True

    def __init__(self, place: Place, roles: Roles) -> None:
        self.place = place
        text = place.head.decode("utf-8-sig", "replace").lstrip("\r\n")
        headers = {delimiter: next(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter), []) for delimiter in DELIMITERS}
        # Which one it is the names tell: no guess is needed. Otherwise the one that the suffix promises shows what is missing.
        wanted = set(roles.columns) - set(place.folders)
        usual = "\t" if place.suffix in TAB_SUFFIXES else max(DELIMITERS, key=lambda delimiter: len(headers[delimiter]))
        self._delimiter = next((delimiter for delimiter, names in headers.items() if wanted <= set(names)), usual)
        self.schema = pa.schema([(name, pa.string()) for name in headers[self._delimiter]])
        self._has_rows = ROWS_BELOW.search(text) is not None

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Record batches of text: the blocks of the file, long ones in parts."""
        from pyarrow import csv as arrow_csv

        if not self._has_rows:
            return
        reading = arrow_csv.ReadOptions(block_size=BLOCK)
        parsing = arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True)
        converting = arrow_csv.ConvertOptions(
            include_columns=columns,
            column_types=dict.fromkeys(columns, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with self.place.stream() as source, arrow_csv.open_csv(source, reading, parsing, converting) as reader:
            for batch in reader:
                yield from _parts(batch, rows_per_batch)


class JsonRows:
    """JSON lines: an object a line. Text stays the text it is and never becomes a date; numbers are integers or doubles."""

    untyped: ClassVar[bool] = False

    def __init__(self, place: Place, roles: Roles) -> None:
        self.place = place
        types = _json_types(place)
        found = {name: types[name] for name in roles.read(list(types)) if name in types}
        mixed = next((name for name in roles.columns if name in found and pa.types.is_struct(found[name])), None)
        if mixed is not None:
            raise InputError(f'{place.where}: column "{mixed}" must hold nothing but text, or numbers, or booleans. Write all lines alike.')
        types |= {name: _json_type(name, of, roles) for name, of in found.items()}
        # A fraction may come after whole numbers only. Where the type makes no difference but to ids, only reading tells.
        doubtful = [name for name in found if pa.types.is_integer(types[name]) and not _own_roles(name, roles) & {*IDS}]
        if doubtful and not self._are_whole(doubtful):
            types |= dict.fromkeys(doubtful, pa.float64())
        self.schema = pa.schema(list(types.items()))

    def _are_whole(self, names: list[str]) -> bool:
        try:
            for piece in self._pieces():
                _read_json(piece, pa.schema(dict.fromkeys(names, pa.int64())))
        except pa.ArrowInvalid:
            return False
        return True

    def batches(self, columns: list[str], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
        """Record batches of at most ``rows_per_batch`` rows."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        for piece in self._pieces():
            yield from _read_json(piece, schema).to_batches(rows_per_batch)

    def _pieces(self) -> Iterator[bytes]:
        """Whole lines of the file, some blocks at a time."""
        begun = b""
        with self.place.stream() as source:
            while read := source.read(PIECE):
                whole, feed, rest = read.rpartition(b"\n")
                if feed:
                    yield begun + whole
                begun = rest if feed else begun + rest
        if begun:
            yield begun


def _read_json(text: bytes, schema: pa.Schema) -> pa.Table:
    """The columns of lines that have these; nothing for blank ones."""
    from pyarrow import json as arrow_json

    parsing = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    if not text.strip():
        return schema.empty_table()
    return arrow_json.read_json(pa.BufferReader(text), arrow_json.ReadOptions(block_size=BLOCK), parsing)


def _json_types(place: Place) -> dict[str, pa.DataType]:
    """The columns that the first lines have, by their values: Arrow's own guess would take text for dates."""
    head, limit = (place.head, HEAD) if b"\n" in place.head else (place.start(BLOCK), BLOCK)
    lines = head.removeprefix(codecs.BOM_UTF8).splitlines()
    if len(head) == limit and len(lines) > 1:
        del lines[-1]  # cut off somewhere
    kinds: dict[str, set[type]] = {}
    inside: dict[str, set[type]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InputError(f"{place.where}, line {number}: no JSON object ({error}). Write one object a line.") from None
        if not isinstance(row, dict):
            raise InputError(f"{place.where}, line {number}: no JSON object. Write one object a line.")
        for name, value in row.items():
            kinds.setdefault(name, set()).add(type(value))
            if isinstance(value, list):
                inside.setdefault(name, set()).update(map(type, value))
    return {name: _type_of(found - {type(None)}, inside.get(name, set()) - {type(None)}) for name, found in kinds.items()}


def _type_of(kinds: set[type], inside: set[type]) -> pa.DataType:
    if kinds == {list}:
        # Lists that are empty so far are most likely of ids.
        return pa.list_(_type_of(inside, set()) if inside else pa.string())
    for known, of in JSON_TYPES:
        if kinds <= known:
            return of
    return pa.struct([])


def _own_roles(name: str, roles: Roles) -> set[str]:
    return {role for role, asked in roles.asked() if asked == name}


def _json_type(name: str, of: pa.DataType, roles: Roles) -> pa.DataType:
    """Labels and weights are doubles; a column of nothing but null so far may still become what its role wants."""
    own = _own_roles(name, roles)
    if pa.types.is_null(of):
        return pa.string() if own & {*IDS, "by"} or not own else pa.float64()
    return pa.float64() if pa.types.is_integer(of) and own and own <= {"label", "weight"} else of


IPC_FILE = b"ARROW1"
MAGIC: dict[bytes, Opener] = {
    b"PAR1": ParquetRows,
    IPC_FILE: IpcRows,
    b"\xff\xff\xff\xff": IpcRows,
    b"ORC": OrcRows,
    b"FEA1": _feather_1,
}
# Files of these names that do not begin as they should are damaged: their reader says so.
BINARY_SUFFIXES: dict[str, Opener] = {
    ".parquet": ParquetRows,
    ".orc": OrcRows,
    ".arrow": IpcRows,
    ".arrows": IpcRows,
    ".feather": IpcRows,
    ".ipc": IpcRows,
}
JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
TAB_SUFFIXES = (".tsv", ".tab")
JSON_TYPES: tuple[tuple[set[type], pa.DataType], ...] = (
    (set(), pa.null()),
    ({str}, pa.string()),
    ({bool}, pa.bool_()),
    ({int}, pa.int64()),
    ({int, float}, pa.float64()),
)

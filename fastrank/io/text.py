"""Texts as bytes: from paths, bytes, file objects and standard input, packed or not, read in pieces and never mapped.

A mapped file that shrinks kills the process, and a packed or piped one cannot be mapped.
"""

from __future__ import annotations

import abc
import bz2
import contextlib
import gzip
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastrank.arrays import frozen
from fastrank.errors import InputError
from fastrank.io.arrow import reading
from fastrank.io.lines import PADDING

# What is found in a piece, and where, stays in the second-level cache beside it.
PIECE = 1 << 18
BLOCK, SHORT_BLOCK = 1 << 20, 1 << 12
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FEED = b"\n"

# The first bytes of packed files.
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
# Text can begin with "BZh9": what comes next, a block or the end, decides.
_BZ2 = tuple(b"BZh%d" % level + then for level in range(1, 10) for then in (b"1AY&SY", b"\x17rE8P\x90"))
_LONGEST_MARK = 10


class Piece(NamedTuple):
    """Whole lines, data[first:last]: the last byte is a line feed, and `PADDING` bytes more can be read. data[0] is byte `place`."""

    data: np.ndarray
    first: int
    last: int
    place: int

    def line(self, i: int) -> bytes:
        """The line that begins at data[i], without white space at its ends."""
        size, feed = SHORT_BLOCK, -1
        while feed < 0:
            size *= 2
            feed = self.data[i : min(i + size, self.last)].tobytes().find(FEED)
        return self.data[i : i + feed].tobytes().strip()


class Text(abc.ABC):
    """Lines from byte `begin` to byte `end`. The last one may lack its line feed; the last piece has it."""

    def __init__(self, name: str, begin: int, end: int) -> None:
        self.name, self.begin, self.end = name, begin, end

    @abc.abstractmethod
    def read(self, first: int, last: int) -> bytes:
        """Bytes first ... last - 1."""

    @abc.abstractmethod
    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        """The lines from one place to another at which lines begin, in pieces of about `PIECE` bytes. Each is gone when the next comes."""

    def cut(self, n_parts: int) -> list[int]:
        """Places at which lines begin, so that there are about n_parts of equal size between them; the first and the last included."""
        aims = (self.begin + (self.end - self.begin) * part // n_parts for part in range(1, n_parts))
        return sorted({self.begin, *map(self._next_line, aims), self.end})

    def _next_line(self, place: int) -> int:
        """Where the first line after the one that holds a place begins."""
        while place < self.end:
            block = self.read(place, min(place + SHORT_BLOCK, self.end))
            found = block.find(FEED)
            if found >= 0:
                return place + found + 1
            place += len(block) or self.end
        return self.end

    def line_number(self, place: int) -> int:
        """Number of the line that a place is in, from 1."""
        return 1 + sum(self.read(first, min(first + BLOCK, place)).count(FEED) for first in range(0, place, BLOCK))


class _InMemory(Text):
    def __init__(self, name: str, data: np.ndarray, begin: int, n: int) -> None:
        super().__init__(name, begin, n if n == begin or data[n - 1] == FEED[0] else n + 1)
        self.data = frozen(data[: n + PADDING + 1], np.uint8)

    def read(self, first: int, last: int) -> bytes:
        return self.data[first:last].tobytes()

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        while first < last:
            stop = self._next_line(first + PIECE) if first + PIECE < last else last
            yield Piece(self.data, first, stop, 0)
            first = stop


class _OnDisk(Text):
    """A plain file: its pieces go through one buffer, which stays in the second-level cache."""

    def read(self, first: int, last: int) -> bytes:
        with reading(self.name), open(self.name, "rb", buffering=0) as file:
            file.seek(first)
            return file.read(last - first)

    def pieces(self, first: int, last: int) -> Iterator[Piece]:
        data, n = np.empty(PIECE + PADDING, np.uint8), 0
        with reading(self.name), open(self.name, "rb", buffering=0) as file:
            file.seek(first)
            while True:
                room = min(len(data) - PADDING - n, last - first - n)
                got = file.readinto(data.data[n : n + room]) if room else 0
                n += got or 0
                stop = after_last_feed(data, n)
                if not got and first + n < last and n + PADDING == len(data):
                    data = np.append(data, np.empty(len(data), np.uint8))  # a line longer than the buffer
                    continue
                if not got and n:
                    data[n] = FEED[0]  # the last line; or the file has become shorter
                    stop = n = n + 1
                if stop:
                    yield Piece(frozen(data, np.uint8), 0, stop, first)
                if not got:
                    return
                data[: n - stop] = data[stop:n].copy()
                first, n = first + stop, n - stop


def after_last_feed(data: np.ndarray, n: int) -> int:
    """One more than the place of the last line feed among the first n bytes; 0 where there is none."""
    while n > 0:
        first = max(n - SHORT_BLOCK, 0)
        found = data[first:n].tobytes().rfind(FEED)
        if found >= 0:
            return first + found + 1
        n = first
    return 0


def open_text(source: Any) -> Text:
    """A text, unpacked, without its byte order mark.

    source is a path ("-": standard input), bytes, or a file object open for reading bytes. gzip (all members), bzip2, Zstandard and
    LZ4 are known by their first bytes, whatever the name. A plain file is read when its pieces are asked for, anything else here.
    Errors: `InputError` naming the file and what is wrong with it.
    """
    name, size, file = _open(source)
    with reading(name), file as raw:
        head = b""
        while len(head) < _LONGEST_MARK and (more := raw.read(_LONGEST_MARK - len(head))):
            if not isinstance(more, bytes | bytearray | memoryview):
                raise InputError(f"{name}: the file must be open for reading bytes: open it with mode 'rb'.")
            head += more
        with _unpacked(head, raw) as plain:
            if plain is raw and size:
                return _OnDisk(name, len(BYTE_ORDER_MARK) if head.startswith(BYTE_ORDER_MARK) else 0, size)
            data, n = _read_all(b"" if plain is not raw else head, plain)
    begin = len(BYTE_ORDER_MARK) if data[: min(n, len(BYTE_ORDER_MARK))].tobytes() == BYTE_ORDER_MARK else 0
    return _InMemory(name, data, begin, n)


def read_start(path: str, n_bytes: int) -> bytes:
    """The first bytes of a file, unpacked. Errors: as `open_text`."""
    name, _, file = _open(path)
    with reading(name), file as raw:
        head = raw.read(_LONGEST_MARK)
        with _unpacked(head, raw) as plain:
            return (head if plain is raw else b"") + bytes(plain.read(n_bytes))


def _open(source: Any) -> tuple[str, int, contextlib.AbstractContextManager[Any]]:
    """A name for messages, the size of a file that can be opened again by its name, and the open file: closed if it was opened here."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "<bytes>", 0, io.BytesIO(source)
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        if path == "-":
            return "<standard input>", 0, contextlib.nullcontext(sys.stdin.buffer)
        with reading(path):
            file = open(path, "rb", buffering=0)  # noqa: SIM115  (closed by the caller)
        status = os.fstat(file.fileno())
        return path, status.st_size if stat.S_ISREG(status.st_mode) else 0, file
    if hasattr(source, "read"):
        return str(getattr(source, "name", "<file>")), 0, contextlib.nullcontext(source)
    raise InputError(f"a file is given by its path, as bytes, or as an open file, not as {type(source).__name__}.")


@contextlib.contextmanager
def _unpacked(head: bytes, raw: Any) -> Iterator[Any]:
    """A stream of the unpacked text where the first bytes say that it is packed, else the file itself."""
    whole = io.BufferedReader(_Rejoined(head, raw), BLOCK)
    if head.startswith(_GZIP):
        with gzip.GzipFile(fileobj=whole) as plain:
            yield plain
    elif len(head) > len(b"BZh9") and any(mark.startswith(head) for mark in _BZ2):
        with bz2.BZ2File(whole) as plain:
            yield plain
    elif head.startswith((_ZSTD, _LZ4)):
        with pa.CompressedInputStream(pa.PythonFile(whole, "r"), "zstd" if head.startswith(_ZSTD) else "lz4") as plain:
            yield plain
    else:
        yield raw


class _Rejoined(io.RawIOBase):
    """The first bytes of a file, which have been read, and the rest of it."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._head[: len(buffer)]
        self._head = self._head[len(chunk) :]
        chunk = chunk or self._rest.read(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _read_all(head: bytes, file: Any) -> tuple[np.ndarray, int]:
    """The rest of a file after its first bytes, with room for the padding, and how many bytes there are."""
    data = np.empty(BLOCK + 1 + PADDING, np.uint8)
    data[: len(head)] = np.frombuffer(head, np.uint8)
    n = len(head)
    into = file.readinto if hasattr(file, "readinto") else _Rejoined(b"", file).readinto
    while got := into(data.data[n : min(n + BLOCK, len(data) - PADDING - 1)]):
        n += got
        if n + PADDING + 1 == len(data):
            longer = np.empty(2 * len(data), np.uint8)
            longer[:n] = data[:n]
            data = longer
    data[n : n + PADDING + 1] = FEED[0]
    return data, n

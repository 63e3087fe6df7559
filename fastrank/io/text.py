"""Whole texts as bytes: from paths, bytes, file objects and standard input, packed or not, read in blocks and never mapped.

A mapped file that shrinks kills the process, and a packed or piped one cannot be mapped: all take the same path.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from fastrank.arrays import frozen
from fastrank.errors import InputError
from fastrank.io.arrow import reading
from fastrank.io.lines import PADDING

BLOCK = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
FEED = b"\n"
# The longest part of a line that a message shows.
SHOWN = 60

# The first bytes of packed files.
_GZIP, _ZSTD, _LZ4 = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18"
# Text can begin with "BZh9": what comes next, a block or the end, decides.
_BZ2 = tuple(b"BZh%d" % level + then for level in range(1, 10) for then in (b"1AY&SY", b"\x17rE8P\x90"))
_LONGEST_MARK = 10


@dataclass(frozen=True, eq=False)
class Text:
    """Lines from `begin` to `end`, in bytes followed by `PADDING` line feeds. The last line has its line feed, given or added."""

    name: str
    data: np.ndarray
    begin: int
    end: int

    def line_number(self, place: int) -> int:
        """Number of the line that a place is in, from 1."""
        before = 0
        for first in range(0, place, BLOCK):
            before += int(np.count_nonzero(self.data[first : min(first + BLOCK, place)] == FEED[0]))
        return before + 1

    def line(self, place: int) -> bytes:
        """The line that a place is in, without white space at its ends."""
        first = self.data[:place].tobytes().rfind(FEED, self.begin) + 1 if place else 0
        return self.data[max(first, self.begin) : self.find_feed(place)].tobytes().strip()

    def find_feed(self, place: int) -> int:
        """Place of the first line feed from a place on; there is one."""
        while True:
            found = self.data[place : place + SHOWN * SHOWN].tobytes().find(FEED)
            if found >= 0:
                return place + found
            place += SHOWN * SHOWN

    def malformed(self, place: int, rule: str) -> InputError:
        """What is wrong with the line at a place: file, line number, rule, and the beginning of the line."""
        line = self.line(place)
        shown = line[:SHOWN].decode("utf-8", "replace")
        return InputError(f"{self.name}, line {self.line_number(place)}: {rule}: {shown!r}{' ...' if len(line) > SHOWN else ''}")


def read_text(source: Any) -> Text:
    """All of a text, unpacked, without its byte order mark.

    source is a path ("-": standard input), bytes, or a file object open for reading bytes. gzip (all members), bzip2, Zstandard and
    LZ4 are known by their first bytes, whatever the name. Errors: `InputError` naming the file and what is wrong with it.
    """
    name, size, file = _open(source)
    with reading(name), file as raw:
        head = b""
        while len(head) < _LONGEST_MARK and (more := raw.read(_LONGEST_MARK - len(head))):
            if not isinstance(more, bytes | bytearray | memoryview):
                raise InputError(f"{name}: the file must be open for reading bytes: open it with mode 'rb'.")
            head += more
        with _unpacked(head, raw) as plain:
            data, n = _read_all(*((b"", plain, 0) if plain is not raw else (head, raw, size)))
    begin = len(BYTE_ORDER_MARK) if data[: len(BYTE_ORDER_MARK)].tobytes() == BYTE_ORDER_MARK and n >= len(BYTE_ORDER_MARK) else 0
    end = n if n == begin or data[n - 1] == FEED[0] else n + 1
    return Text(name, frozen(data[: n + PADDING], np.uint8), begin, end)


def _open(source: Any) -> tuple[str, int, contextlib.AbstractContextManager[Any]]:
    """A name for messages, the size where it is known, and the open file: closed at the end when it was opened here."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "<bytes>", len(source), io.BytesIO(source)
    if isinstance(source, str | os.PathLike):
        path = os.fsdecode(source)
        if path == "-":
            return "<standard input>", 0, contextlib.nullcontext(sys.stdin.buffer)
        with reading(path):
            file = open(path, "rb", buffering=0)  # noqa: SIM115  (closed by the caller)
        return path, os.fstat(file.fileno()).st_size, file
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


def _read_all(head: bytes, file: Any, size: int) -> tuple[np.ndarray, int]:
    """The rest of a file after its first bytes, with room for the padding, and how many bytes there are."""
    data = np.empty(max(size, BLOCK) + 1 + PADDING, np.uint8)
    data[: len(head)] = np.frombuffer(head, np.uint8)
    n = len(head)
    into = file.readinto if hasattr(file, "readinto") else _Rejoined(b"", file).readinto
    while got := into(data.data[n : min(n + BLOCK, len(data) - PADDING)]):
        n += got
        if n + PADDING == len(data):
            longer = np.empty(2 * len(data), np.uint8)
            longer[:n] = data[:n]
            data = longer
    data[n : n + PADDING] = FEED[0]
    return data, n

"""The lines of qrels and runs: where the fields of each begin, and its number.

A run line is ``query Q0 document rank score tag``, a line of qrels ``query iteration document label``, separated by any white space.
The rank is not looked at. Lines that begin with ``#`` are comments; blank lines, carriage returns, a byte order mark and a missing
last line feed do not matter.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastrank._kernel import available_threads, map_blocks
from fastrank.arrays import frozen
from fastrank.errors import InputError
from fastrank.io import lines
from fastrank.io.text import Piece, Text, after_last_feed

# Less text than this is not worth a second thread; and each thread gets a few parts, in case others want the processor, too.
FEWEST = 1 << 20
PARTS = 2
# Numbers and lines that a kernel leaves to Python before it returns for them.
NOTED = 4096
# The longest part of a line that a message shows.
SHOWN = 60

_DECIMAL = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)
_HEXADECIMAL = re.compile(rb"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.IGNORECASE)


class Line(NamedTuple):
    """A line of a file, to be told of in a message."""

    file: str
    number: int
    text: bytes

    def malformed(self, rule: str) -> InputError:
        """What is wrong with it: file, line number, rule, and the beginning of the line."""
        shown = self.text[:SHOWN].decode("utf-8", "replace")
        return InputError(f"{self.file}, line {self.number}: {rule}: {shown!r}{' ...' if len(self.text) > SHOWN else ''}")


@dataclass(frozen=True, eq=False)
class Fields:
    """A text row by row: ids[start:stop] is the document, `code` its hash, `value` the score or label.

    turns are the rows at which another query begins; ids[names:name_stops] is its id. skips: for each line without a row, the number of
    rows before it. tag: the last field of the first row. first_longer: the first of the n_longer lines with too many fields.
    """

    source: str
    ids: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    code: np.ndarray
    value: np.ndarray
    turns: np.ndarray
    names: np.ndarray
    name_stops: np.ndarray
    skips: np.ndarray
    n_comments: int
    tag: str | None
    last_tag: str | None
    n_longer: int
    first_longer: Line | None


class Form(NamedTuple):
    """What the lines of a kind of file look like: the kernel that reads them, their fields, and what its numbers may be."""

    kernel: Any
    kind: str
    n_fields: int
    numbered: int
    fields: str
    number: str
    is_legal: Callable[[float], bool]

    def wrong(self, line: bytes) -> str:
        """What to say of a line with another number of fields."""
        n_fields = len(line.split())
        swapped = "; qrels come first, then the run" if n_fields in (4, 6) else ""
        return f"a line of {self.kind} has {self.n_fields} fields ({self.fields}), not {n_fields}{swapped}"


RUN = Form(
    lines.read_run_lines, "a run", 6, 4, "query, Q0, document, rank, score and tag", "score must be a number", lambda score: score == score
)
QRELS = Form(lines.read_qrels_lines, "qrels", 4, 3, "query, iteration, document and label", "label must be a finite number", math.isfinite)


def read_fields(text: Text, form: Form, threads: int | None = None) -> Fields:
    """Find the fields of every line, in parts of the text that may be read at once. Errors: an `InputError` for the first wrong line."""
    n_threads = threads or available_threads()
    n_parts = 1 if n_threads == 1 or text.end - text.begin < FEWEST else PARTS * n_threads
    reader = _Reader(text, form, text.cut(n_parts))
    map_blocks(lambda p, _: reader.read(p), np.arange(len(reader.parts) + 1), documents=1, threads=threads)
    return reader.fields(threads)


class _Fault(NamedTuple):
    """A wrong line: where it begins in the file, what is wrong, and the line."""

    place: int
    rule: str
    line: bytes


class _Part:
    """What was read of one part of a text, into rows of shared arrays from `base` on."""

    def __init__(self, first: int, last: int, base: int, id_base: int) -> None:
        self.first, self.last, self.base = first, last, base
        self.state = np.zeros(lines.WRONG + 1, np.int64)
        self.state[lines.FILLED], self.state[lines.WRONG] = id_base, -1
        self.skips: list[np.ndarray] = []
        self.tag: bytes | None = None
        self.last_tag: bytes | None = None
        self.longer: tuple[int, bytes] | None = None
        self.fault: _Fault | None = None


class _Reader:
    """Reads the parts of a text.

    Each part has as many rows as its bytes allow, and as many bytes for ids: memory that is never written to costs nothing.
    """

    def __init__(self, text: Text, form: Form, places: list[int]) -> None:
        self.text, self.form = text, form
        self.parts: list[_Part] = []
        n_rows = n_bytes = 0
        for first, last in itertools.pairwise(places):
            self.parts.append(_Part(first, last, n_rows, n_bytes))
            n_rows += (last - first) // (2 * form.n_fields) + 1  # a field and a blank are two bytes
            n_bytes += last - first + lines.PADDING
        self.ids = np.empty(n_bytes + lines.PADDING, np.uint8)
        self.start, self.stop, self.turns, self.names, self.name_stops = (np.empty(n_rows, np.int64) for _ in range(5))
        self.code, self.value = np.empty(n_rows, np.uint64), np.empty(n_rows)

    def read(self, p: int) -> None:
        """Read part p, up to the first line that is wrong."""
        part = self.parts[p]
        ends, counts = np.empty(0, np.int64), np.zeros(3, np.int64)
        for piece in self.text.pieces(part.first, part.last):
            if len(ends) < (piece.last - piece.first) // 2 + lines.PADDING:
                ends = np.empty((piece.last - piece.first) // 2 + lines.PADDING, np.int64)
            lines.find_field_ends(piece.data, piece.first, piece.last, ends, counts)
            self._read_piece(part, piece, ends, *counts.tolist())
            if part.fault is not None:
                return

    def _read_piece(self, part: _Part, piece: Piece, ends: np.ndarray, n_ends: int, n_blanks: int, n_feeds: int) -> None:
        state, odd, skips = part.state, np.empty(4 * NOTED, np.int64), np.empty(NOTED, np.int64)
        rows = (self.ids, self.start, self.stop, self.code, self.value, self.turns, self.names, self.name_stops)
        state[lines.PLACE], state[lines.FIELD] = piece.first, 0
        n_before = int(state[lines.ROWS])
        if n_ends == n_blanks == n_feeds * self.form.n_fields:
            fixed = (piece.data, piece.first, ends, n_ends, self.form.n_fields, self.form.numbered)
            lines.read_plain_lines(*fixed, part.base, state, *powers_of_ten(), *rows)
        while state[lines.PLACE] < piece.last and part.fault is None:
            state[lines.ODD] = state[lines.SKIPPED] = 0
            self.form.kernel(piece.data, ends, n_ends, piece.last, part.base, state, *powers_of_ten(), *rows, odd, skips, NOTED)
            part.skips.append(skips[: state[lines.SKIPPED]].copy())
            part.fault = self._odd_fault(piece, odd[: 4 * state[lines.ODD]]) or self._wrong_line(piece, int(state[lines.WRONG]))
        if self.form is RUN and part.fault is None and state[lines.ROWS] > n_before:
            part.tag, part.last_tag = part.tag or _first_tag(piece), _last_tag(piece)
        if part.longer is None and state[lines.LONGER]:
            line = int(state[lines.FIRST_LONGER])
            part.longer = piece.place + line, piece.line(line)

    def _odd_fault(self, piece: Piece, odd: np.ndarray) -> _Fault | None:
        """Read the numbers that the kernel did not; the first that is none is a fault."""
        for row, line, start, stop in odd.reshape(-1, 4).tolist():
            value = number(piece.data[start:stop].tobytes())
            if not self.form.is_legal(value):
                return _Fault(piece.place + line, self.form.number, piece.line(line))
            self.value[row] = value
        return None

    def _wrong_line(self, piece: Piece, i: int) -> _Fault | None:
        return None if i < 0 else _Fault(piece.place + i, self.form.wrong(piece.line(i)), piece.line(i))

    def fields(self, threads: int | None) -> Fields:
        """Everything that was read, without gaps between parts."""
        faults = [part.fault for part in self.parts if part.fault is not None]
        if faults:
            raise self._line(min(faults).place, min(faults).line).malformed(min(faults).rule)
        state = np.array([part.state for part in self.parts], np.int64).reshape(-1, lines.WRONG + 1)
        n_rows, n_turns = state[:, lines.ROWS], state[:, lines.TURNS]
        before = np.append(0, np.cumsum(n_rows))[:-1]
        by_row, by_turn = (self.start, self.stop, self.code, self.value), (self.turns, self.names, self.name_stops)
        columns = [(array, n_rows) for array in by_row] + [(array, n_turns) for array in by_turn]
        map_blocks(lambda c, _: self._close_up(*columns[c]), np.arange(len(columns) + 1), documents=1, threads=threads)
        start, stop, code, value = (frozen(array[: n_rows.sum()], array.dtype) for array in by_row)
        turns, names, name_stops = (array[: n_turns.sum()] for array in by_turn)
        skips = [rows + n for part, n in zip(self.parts, before, strict=True) for rows in part.skips]
        tag = next((part.tag for part in self.parts if part.tag is not None), None)
        last_tag = next((part.last_tag for part in reversed(self.parts) if part.last_tag is not None), None)
        longer = next((part.longer for part in self.parts if part.longer is not None), None)
        return Fields(
            source=self.text.name,
            ids=frozen(self.ids, np.uint8),
            start=start,
            stop=stop,
            code=code,
            value=value,
            turns=turns + np.repeat(before, n_turns),
            names=names,
            name_stops=name_stops,
            skips=np.concatenate(skips) if skips else np.zeros(0, np.int64),
            n_comments=int(state[:, lines.COMMENTS].sum()),
            tag=None if tag is None else tag.decode("utf-8", "replace"),
            last_tag=None if last_tag is None else last_tag.decode("utf-8", "surrogateescape"),
            n_longer=int(state[:, lines.LONGER].sum()),
            first_longer=None if longer is None else self._line(*longer),
        )

    def _line(self, place: int, line: bytes) -> Line:
        return Line(self.text.name, self.text.line_number(place), line)

    def _close_up(self, array: np.ndarray, n_used: np.ndarray) -> None:
        """Move the first n_used[p] entries of each part p to where those of the part before end."""
        n = 0
        for part, n_here in zip(self.parts, n_used.tolist(), strict=True):
            if n < part.base:
                array[n : n + n_here] = array[part.base : part.base + n_here]
            n += n_here


def _first_tag(piece: Piece) -> bytes:
    """The last field of the first row of a piece that has one."""
    rows = (line.split() for line in piece.data[piece.first : piece.last].tobytes().split(b"\n"))
    return next(words for words in rows if words and not words[0].startswith(b"#"))[RUN.n_fields - 1]


def _last_tag(piece: Piece) -> bytes:
    """The last field of the last row of a piece that has one."""
    stop = piece.last
    while True:
        start = max(after_last_feed(piece.data, stop - 1), piece.first)
        words = piece.data[start:stop].tobytes().split()
        if words and not words[0].startswith(b"#"):
            return words[RUN.n_fields - 1]
        stop = start


def number(word: bytes) -> float:
    """What C's strtod reads of a whole word, correctly rounded; NaN for NaN and for what is no number."""
    if _DECIMAL.fullmatch(word):
        return float(word)
    if _HEXADECIMAL.fullmatch(word):
        try:
            return float.fromhex(word.decode())
        except OverflowError:
            return -math.inf if word.startswith(b"-") else math.inf
    return math.nan


@functools.cache
def powers_of_ten() -> tuple[np.ndarray, np.ndarray]:
    """10^0 ... 10^22, which are doubles; and the upper and lower half of the first 128 bits of 5^-MOST ... 5^MOST."""
    halves = []
    for exponent in range(-lines.MOST, lines.MOST + 1):
        power = 5 ** abs(exponent)
        if exponent < 0:  # the reciprocal, rounded up
            bits = (power - 1).bit_length()
            power = 2 ** (bits + 127 if exponent >= -27 else 2 * bits + 128) // power + 1
        surplus = power.bit_length() - 128
        power = power >> surplus if surplus > 0 else power << -surplus
        halves += divmod(power, 1 << 64)
    return frozen(np.array([10.0**n for n in range(lines.N_EXACT)]), np.float64), frozen(np.array(halves, np.uint64), np.uint64)


def ids_of(text: np.ndarray, start: np.ndarray, stop: np.ndarray) -> pa.Array:
    """Slices of a text as Arrow strings, or as bytes where one is not UTF-8."""
    offsets = np.append(0, np.cumsum(stop - start))
    data = np.empty(int(offsets[-1]), np.uint8)
    lines.gather_bytes(text, start, offsets, data)
    ids = pa.Array.from_buffers(pa.large_binary(), len(start), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    try:
        return ids.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return ids.cast(pa.binary())

"""The lines of qrels and runs: where the fields of each begin, and its number.

A run line is ``query Q0 document rank score tag``, a line of qrels ``query iteration document label``, separated by any white space.
The rank is not looked at. Lines that begin with ``#`` are comments; blank lines, carriage returns, a byte order mark and a missing
last line feed do not matter.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastrank._kernel import available_threads, map_blocks, query_blocks
from fastrank.arrays import frozen
from fastrank.io import lines
from fastrank.io.text import Text

# The text of a piece, where its fields end, and what is written of it stay in the second-level cache.
PIECE = 1 << 18
# Less text than this is not worth a second thread; and each thread gets a few parts, in case others want the processor, too.
FEWEST = 1 << 20
PARTS = 4
# Numbers that a kernel leaves to Python before it returns for them.
ODD = 4096

_DECIMAL = re.compile(rb"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)", re.IGNORECASE)
_HEXADECIMAL = re.compile(rb"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Fields:
    """A text row by row: text[start:stop] is the document, `code` its hash, `value` the score or label.

    turns are the rows at which another query begins; text[name:name_stop] is its id. first_longer: where the first of the n_longer
    lines with too many fields begins.
    """

    text: Text
    start: np.ndarray
    stop: np.ndarray
    code: np.ndarray
    value: np.ndarray
    turns: np.ndarray
    name: np.ndarray
    name_stop: np.ndarray
    n_comments: int
    n_longer: int
    first_longer: int


class Form(NamedTuple):
    """What the lines of a kind of file look like: the kernel that reads them, the shortest of them, and what to say of others."""

    kernel: Any
    n_fields: int
    fields: str
    number: str
    is_legal: Callable[[float], bool]

    @property
    def shortest(self) -> int:
        """Bytes of the shortest line: one for each field, and one after it."""
        return 2 * self.n_fields


RUN = Form(lines.read_run_lines, 6, "query, Q0, document, rank, score and tag", "score must be a number", lambda score: score == score)
QRELS = Form(lines.read_qrels_lines, 4, "query, iteration, document and label", "label must be a finite number", math.isfinite)


def read_fields(text: Text, form: Form, threads: int | None = None) -> Fields:
    """Find the fields of every line, in parts of the text that may run at once. Errors: an `InputError` for the first wrong line."""
    n_threads = threads or available_threads()
    bounds = _pieces(text)
    size = text.end - text.begin
    n_parts = 1 if n_threads == 1 or size < FEWEST else PARTS * n_threads
    parts = list(query_blocks(bounds, max(size // n_parts, PIECE)))
    each_alone = np.arange(len(parts) + 1)
    # A single part may have as many rows as its bytes allow: memory that is never written to costs nothing.
    n_lines = np.full((len(parts), 1), size // form.shortest + 1)
    if len(parts) > 1:
        n_lines[:] = 0
        map_blocks(lambda p, _: _count(text, bounds, parts[p], n_lines[p]), each_alone, documents=1, threads=threads)
    reader = _Reader(text, form, bounds, np.append(0, np.cumsum(n_lines)))
    map_blocks(lambda p, _: reader.read(p, *parts[p]), each_alone, documents=1, threads=threads)
    return reader.fields()


def _pieces(text: Text) -> np.ndarray:
    """Where pieces of about PIECE bytes and whole lines begin, and the end of the text."""
    bounds = [text.begin]
    while bounds[-1] < text.end:
        after = bounds[-1] + PIECE
        bounds.append(text.end if after >= text.end else text.find_feed(after) + 1)
    return np.array(bounds, np.int64)


def _count(text: Text, bounds: np.ndarray, part: tuple[int, int], out: np.ndarray) -> None:
    first, last = part
    lines.count_feeds(text.data, bounds[first], bounds[last], out)


class _Reader:
    """Reads parts of a text into rows of shared arrays: part p's from bases[p] on."""

    def __init__(self, text: Text, form: Form, bounds: np.ndarray, bases: np.ndarray) -> None:
        self.text, self.form, self.bounds, self.bases = text, form, bounds, bases
        n = int(bases[-1])
        self.start, self.stop, self.turns, self.name, self.name_stop = (np.empty(n, np.int64) for _ in range(5))
        self.code, self.value = np.empty(n, np.uint64), np.empty(n)
        self.longest = int(np.diff(bounds).max(initial=0))
        self.progress = np.zeros((len(bases) - 1, lines.WRONG + 1), np.int64)
        self.progress[:, lines.WRONG] = -1
        self.faults: list[tuple[int, str]] = []

    def read(self, p: int, first: int, last: int) -> None:
        """Read part p, pieces first ... last - 1, up to the first line that is wrong."""
        state, base = self.progress[p], int(self.bases[p])
        ends, n_ends = np.empty(self.longest // 2 + lines.PADDING, np.int64), np.zeros(1, np.int64)
        odd = np.empty(3 * ODD, np.int64)
        rows = (self.start, self.stop, self.code, self.value, self.turns, self.name, self.name_stop)
        for begin, end in zip(self.bounds[first:last].tolist(), self.bounds[first + 1 : last + 1].tolist(), strict=True):
            lines.find_field_ends(self.text.data, begin, end, ends, n_ends)
            state[lines.PLACE], state[lines.FIELD] = begin, 0
            while state[lines.PLACE] < end:
                state[lines.ODD] = 0
                self.form.kernel(self.text.data, ends, int(n_ends[0]), end, base, state, *powers_of_ten(), *rows, odd, ODD)
                fault = self._read_odd(odd[: 3 * state[lines.ODD]].reshape(-1, 3)) or self._wrong_line(int(state[lines.WRONG]))
                if fault is not None:
                    self.faults.append(fault)
                    return

    def _read_odd(self, odd: np.ndarray) -> tuple[int, str] | None:
        """Read numbers that the kernel did not; the place and the rule of the first that is none."""
        for row, start, stop in odd.tolist():
            value = number(self.text.data[start:stop].tobytes())
            if not self.form.is_legal(value):
                return start, self.form.number
            self.value[row] = value
        return None

    def _wrong_line(self, place: int) -> tuple[int, str] | None:
        if place < 0:
            return None
        n_fields = len(self.text.line(place).split())
        swapped = n_fields == (QRELS if self.form is RUN else RUN).n_fields
        cure = "; qrels come first, then the run" if swapped else ""
        kind = "a run" if self.form is RUN else "qrels"
        return place, f"a line of {kind} has {self.form.n_fields} fields ({self.form.fields}), not {n_fields}{cure}"

    def fields(self) -> Fields:
        """Everything that was read, without gaps between parts."""
        if self.faults:
            raise self.text.malformed(*min(self.faults))
        n_rows, n_turns, longer = (self.progress[:, column] for column in (lines.LINES, lines.TURNS, lines.LONGER))
        start, stop, code, value = (self._closed_up(array, n_rows) for array in (self.start, self.stop, self.code, self.value))
        turns, name, name_stop = (self._closed_up(array, n_turns) for array in (self.turns, self.name, self.name_stop))
        turns = turns + np.repeat(np.cumsum(n_rows) - n_rows, n_turns)
        first_longer = int(self.progress[longer > 0, lines.FIRST_LONGER].min(initial=self.text.end))
        n_comments = int(self.progress[:, lines.COMMENTS].sum())
        return Fields(self.text, start, stop, code, value, turns, name, name_stop, n_comments, int(longer.sum()), first_longer)

    def _closed_up(self, array: np.ndarray, n_used: np.ndarray) -> np.ndarray:
        """The first n_used[p] entries of each part p, one after the other."""
        if np.array_equal(n_used[:-1], np.diff(self.bases)[:-1]):
            return frozen(array[: n_used.sum()], array.dtype)
        parts = [array[base : base + n] for base, n in zip(self.bases[:-1], n_used, strict=True)]
        return frozen(np.concatenate(parts), array.dtype)


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


def ids_of(text: Text, start: np.ndarray, stop: np.ndarray) -> pa.Array:
    """Slices of a text as Arrow strings, or as bytes where one is not UTF-8."""
    offsets = np.append(0, np.cumsum(stop - start))
    data = np.empty(int(offsets[-1]), np.uint8)
    lines.gather_bytes(text.data, start, offsets, data)
    ids = pa.Array.from_buffers(pa.large_binary(), len(start), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    try:
        return ids.cast(pa.large_string()).cast(pa.string())
    except pa.ArrowInvalid:
        return ids.cast(pa.binary())

"""LETOR and SVMlight ranking text: ``label qid:ID 1:0.5 2:... # comment``, with scores and group sizes in files of their own."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.errors import InputError
from fastrank.io.arrow import reading
from fastrank.io.columns import Columns
from fastrank.io.grouping import RowsByQuery, Runs, find_runs, group

Path = str | os.PathLike[str]

BUFFER = 1 << 18
GZIP = b"\x1f\x8b"
PARQUET = b"PAR1"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# The longest part of a line that is looked at to tell what a file is, and the longest that a message shows.
LOOKED_AT = 1 << 16
SHOWN = 60

QUERY = b"qid:"
SECOND_WORD = re.compile(rb"qid:.+|[0-9]+:[^:]+")
WHOLE_NUMBER = re.compile(rb"[0-9]+")


def read_letor(path: Path, scores: Path | None = None, groups: Path | None = None) -> Columns:
    """Labels and queries of a LETOR file, and the score of each row from a second one.

    A line is ``label [qid:ID] feature:value ... [# comment]``. Features and comments are ignored, as are blank lines, a byte order
    mark and carriage returns. Each file may be compressed by gzip, which is known by its first bytes.

    Parameters
    ----------
    path
        The LETOR file. Query ids are any text without white space and ``#``; they come as strings (as bytes when one is not UTF-8).
        Queries come in order of appearance, or sorted by id when the rows of one stand in several places.
    scores
        One number a line, in the order of the rows of ``path``. It becomes ``Columns.scores["score"]``; without it there are none.
    groups
        The number of rows of each query, one a line, for a file without ``qid:`` (LightGBM's ``.query``, XGBoost's ``.group``).
        Query ids are then 0, 1, ...; a query may have no rows.

    Raises
    ------
    InputError
        A line, score or size that cannot be read (with its line number and text); as many scores or rows in groups as there are not
        rows; neither or both of ``qid:`` and ``groups``.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".letor") as file:
    ...     _ = file.write(b"2 qid:a 1:0.5\\n0 qid:a 1:0.1 # doc7\\n1 qid:b\\n")
    ...     file.flush()
    ...     rows = read_letor(file.name)
    >>> rows.labels.tolist(), rows.offsets.tolist(), rows.query_ids.to_pylist()
    ([2.0, 0.0, 1.0], [0, 2, 3], ['a', 'b'])
    """
    text = _Text(os.fspath(path))
    text.read()
    labels = np.array(text.labels)
    queries = text.queries() if groups is None else text.groups(os.fspath(groups))
    columns = {} if scores is None else {"score": _scores(os.fspath(scores), len(labels), text.path)}
    order = queries.order
    return Columns(
        labels=labels if order is None else labels[order],
        scores=columns if order is None else {name: score[order] for name, score in columns.items()},
        offsets=queries.offsets,
        query_ids=queries.query_ids,
        doc_ids=None,
        weights=None,
        by={},
        first_row=0 if order is None else int(order[0]),
        regrouped=int(np.count_nonzero(queries.scattered)),
        rows=order,
    )


def is_letor(path: Path) -> bool:
    """Whether a file is LETOR text, judged by its first bytes and its first line with content, not by its name.

    That line must begin with a number, followed by ``qid:ID``, by ``feature:value`` or by nothing. Parquet begins with ``PAR1``; an
    empty file is no LETOR file. Errors: an `InputError` when the file cannot be opened, or its gzip stream is damaged.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"# made by hand\\n2 qid:a 1:0.5\\n")
    ...     file.flush()
    ...     is_letor(file.name)
    True
    """
    with _opened(os.fspath(path)) as file:
        if file.peek(len(PARQUET))[: len(PARQUET)] == PARQUET:
            return False
        line = file.readline(LOOKED_AT)
        while line and not _content(line):
            line = file.readline(LOOKED_AT)
    words = _content(line)
    try:
        _number(words[0])
    except (IndexError, ValueError):
        return False
    return len(words) == 1 or SECOND_WORD.fullmatch(words[1]) is not None


# --- files ----------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _opened(path: str) -> Iterator[io.BufferedReader[Any]]:
    """The lines of a file, unpacked, without its byte order mark."""
    with reading(path), io.BufferedReader(io.FileIO(path), BUFFER) as file:
        packed = file.peek(len(GZIP))[: len(GZIP)] == GZIP
        # A second buffer, since gzip makes its lines in Python.
        with io.BufferedReader(gzip.GzipFile(fileobj=file), BUFFER) if packed else file as lines:
            if lines.peek(len(BYTE_ORDER_MARK))[: len(BYTE_ORDER_MARK)] == BYTE_ORDER_MARK:
                lines.read(len(BYTE_ORDER_MARK))
            yield lines


def _content(line: bytes) -> list[bytes]:
    """Label, second word and the rest of a line, as far as they are there before a comment."""
    return line.partition(b"#")[0].split(None, 2)


def _number(word: bytes) -> float:
    """The nearest double. Python's own syntax with underscores is no number here."""
    if b"_" in word:
        raise ValueError(word)
    return float(word)


def _malformed(path: str, number: int, rule: str, line: bytes) -> InputError:
    text = line.strip()[:SHOWN].decode("utf-8", "replace")
    return InputError(f"{path}, line {number}: {rule}: {text!r}{' ...' if len(line.strip()) > SHOWN else ''}")


# --- rows and their queries -----------------------------------------------------------------------------------------------------


class _Text:
    """Labels, and where runs of rows with one query begin. ``bare`` is the first row without a query."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.labels = array("d")
        self.starts: list[int] = []
        self.ids: list[bytes] = []
        self.bare: tuple[int, bytes] | None = None
        self._known: dict[bytes, float] = {}

    def read(self) -> None:
        """Read all lines. One that brings no new label and goes on with the query before is a few steps."""
        labels, known = self.labels, self._known
        last = b"\n"  # the second word of the row before: no word has a line feed
        with _opened(self.path) as lines:
            for number, line in enumerate(lines, 1):
                words = line.split(None, 2)
                try:
                    label, second = known[words[0]], words[1]
                except (IndexError, KeyError):
                    words = _content(line)
                    if not words:
                        continue
                    label, second = self._label(number, line, words[0]), words[1] if len(words) > 1 else b""
                if second != last:
                    last = second
                    self._second_word(number, line, second)
                labels.append(label)

    def _label(self, number: int, line: bytes, word: bytes) -> float:
        try:
            return self._known.setdefault(word, _number(word))
        except ValueError:
            raise _malformed(self.path, number, "a line must begin with its label, a number", line) from None

    def _second_word(self, number: int, line: bytes, word: bytes) -> None:
        word = word.partition(b"#")[0]
        if word.startswith(QUERY):
            if word == QUERY:
                raise _malformed(self.path, number, "qid: must be followed by the query's id, without a blank", line)
            self.starts.append(len(self.labels))
            self.ids.append(word.removeprefix(QUERY))
        elif word and b":" not in word:
            raise _malformed(self.path, number, "after the label must come qid:ID or feature:value", line)
        elif self.bare is None:
            self.bare = (number, line)

    def queries(self) -> RowsByQuery:
        """Queries by their qid:."""
        if self.bare is not None:
            number, line = self.bare
            cure = "every row needs one" if self.ids else "add it, or give the group sizes in a file as groups="
            raise _malformed(self.path, number, f"no qid: after the label ({cure})", line)
        ids = pa.array(self.ids, pa.binary())
        with contextlib.suppress(pa.ArrowInvalid):  # bytes that are not UTF-8 stay bytes
            ids = ids.cast(pa.string())
        # One query may have been spelled with and without a comment: "qid:7" and "qid:7#".
        runs = find_runs(pa.chunked_array([ids]))
        return group(Runs(np.array(self.starts, np.int64)[runs.starts], runs.values, len(self.labels)))

    def groups(self, path: str) -> RowsByQuery:
        """Queries by the sizes that a second file gives."""
        if self.ids:
            raise InputError(f"{self.path} has qid:, and {path} was given as groups=: leave out groups=.")
        sizes = []
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                word = line.strip()
                if WHOLE_NUMBER.fullmatch(word):
                    sizes.append(int(word))
                elif word:
                    raise _malformed(path, number, "a line must be the size of one group, a whole number", line)
        if sum(sizes) != len(self.labels):
            raise InputError(f"{path}: the group sizes sum to {sum(sizes)}, but {self.path} has {len(self.labels)} rows.")
        offsets = np.append(0, np.cumsum(sizes, dtype=np.int64))
        return RowsByQuery(pa.array(np.arange(len(sizes))), offsets, None, np.zeros(len(sizes), bool))


def _scores(path: str, n_rows: int, letor: str) -> np.ndarray:
    blocks = [np.zeros(0)]
    n_lines = 0
    with _opened(path) as file:
        while lines := file.readlines(BUFFER):
            try:
                # Correctly rounded, as by Python, in a third of the time.
                block = pc.ascii_trim_whitespace(pa.array(lines, pa.string())).cast(pa.float64()).to_numpy()
            except pa.ArrowInvalid:
                # A blank line, or one that is wrong.
                block = np.array([_score(path, number, line) for number, line in enumerate(lines, n_lines + 1) if line.strip()])
            blocks.append(block)
            n_lines += len(lines)
    scores = np.concatenate(blocks)
    if len(scores) != n_rows:
        raise InputError(f"{path} has {len(scores)} scores, but {letor} has {n_rows} rows: give one score a row, each on its line.")
    return scores


def _score(path: str, number: int, line: bytes) -> float:
    try:
        return _number(line)
    except ValueError:
        raise _malformed(path, number, "a line must be one score, a number", line) from None

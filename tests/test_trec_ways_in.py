"""Judgements and rankings from packed and open files and from arrays; their hashes and memory."""

from __future__ import annotations

import bz2
import gzip
import io
import math
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from trec_rows import COMPILED, QRELS, RUN, rows

import fastrank as fr
from fastrank import _kernel
from fastrank.errors import InputError
from fastrank.io import lines, text

# --- packed and open files ------------------------------------------------------------------------------------------------------


def packed(content: bytes, kind: str) -> bytes:
    if kind == "gzip":
        return gzip.compress(content)
    if kind == "bz2":
        return bz2.compress(content)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, kind) as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


KINDS = ["gzip", "bz2", "zstd", "lz4"]
LONG = b"".join(b"q%d Q0 d%d 1 %d.5 t\n" % (i // 10, i, i) for i in range(200_000 if COMPILED else 2_000))


@pytest.mark.parametrize("kind", KINDS)
def test_packed_files_are_known_by_their_first_bytes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"  # the name says nothing
    path.write_bytes(packed(b"\xef\xbb\xbf" + RUN, kind))
    assert rows(fr.Run.read(path)) == rows(fr.Run.read(str(path))) == rows(fr.Run.read(RUN))


@pytest.mark.parametrize("kind", KINDS)
def test_files_packed_one_after_the_other_are_read_to_the_end(kind: str) -> None:
    assert rows(fr.Qrels.read(packed(QRELS, kind) + packed(b"3 0 c 1\n", kind))) == [*rows(fr.Qrels.read(QRELS)), ("3", b"c", 1.0)]
    assert rows(fr.Qrels.read(packed(b"", kind))) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_packed_file_is_named(kind: str, tmp_path: Path) -> None:
    path, content = tmp_path / "a.gz", packed(LONG, kind)
    assert fr.Run.read(content).n_documents == LONG.count(b"\n")
    for size in (len(content) - 1, len(content) // 2):
        path.write_bytes(content[:size])
        with pytest.raises(InputError, match=rf"^{path}: (Compressed file ended|Truncated)[^\n]*$"):
            fr.Run.read(path)


@pytest.mark.parametrize("kind", ["gzip", "bz2", "zstd"])  # an LZ4 frame need not hold a checksum
def test_a_damaged_packed_file_is_named(kind: str) -> None:
    content = bytearray(packed(LONG, kind))
    content[len(content) // 2] ^= 0x55
    with pytest.raises(InputError, match=r"^<bytes>: [^\n]+$"):
        fr.Run.read(content)


def test_text_that_begins_like_a_packed_file() -> None:
    assert rows(fr.Qrels.read(b"BZh9 0 a 1\n")) == [("BZh9", b"a", 1.0)]
    assert rows(fr.Qrels.read(b"BZ 0 a 1\n")) == [("BZ", b"a", 1.0)]


class OnlyRead:
    """A file object that can do nothing but read, a few bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self.rest = content

    def read(self, size: int) -> bytes:
        size = min(size, 7)
        chunk, self.rest = self.rest[:size], self.rest[size:]
        return chunk


def test_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    expected = rows(fr.Run.read(RUN))
    with path.open("rb") as file:
        run = fr.Run.read(file)
        assert not file.closed
    assert (rows(run), run.name) == (expected, str(path))
    for content in (bytearray(RUN), memoryview(RUN), io.BytesIO(RUN), OnlyRead(RUN), OnlyRead(gzip.compress(RUN))):
        assert rows(fr.Run.read(content)) == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(RUN)))
    run = fr.Run.read("-")
    assert (rows(run), run.name) == (expected, "<standard input>")


def test_a_file_of_unknown_size_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 100)
    content = RUN * 100
    assert rows(fr.Run.read(OnlyRead(content))) == rows(fr.Run.read(content))


@pytest.mark.parametrize("name", ["missing.run", "."])
def test_a_file_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*: (No such file or directory|Is a directory)$"):
        fr.Run.read(tmp_path / name)


def test_what_is_no_file() -> None:
    with pytest.raises(InputError, match=r"^<file>: the file must be open for reading bytes: open it with mode 'rb'\.$"):
        fr.Run.read(io.StringIO("1 Q0 a 1 1 t"))
    with pytest.raises(InputError, match=r"^a file is given by its path, as bytes, or as an open file, not as int\.$"):
        fr.Run.read(3)


def test_a_file_that_fails_on_the_way() -> None:
    class Failing(OnlyRead):
        def read(self, size: int) -> bytes:
            if not self.rest:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(InputError, match=r"^<file>: Input/output error$"):
        fr.Run.read(Failing(RUN))


# --- arrays ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [list, tuple, np.array, pa.array, pd.Series, pl.Series, lambda ids: pa.array(ids).dictionary_encode()])
def test_arrays_give_what_a_file_gives(form: Any) -> None:
    run = fr.Run.from_arrays(form(["1", "1", "2"]), form(["a", "b", "a"]), form([2.5, 1.5, -1.0]))
    assert rows(run) == rows(fr.Run.read(RUN))
    qrels = fr.Qrels.from_arrays(form(["1", "2"]), form(["a", "b", "a"]), form([1, 0, 2]), offsets=[0, 2, 3])
    assert rows(qrels) == rows(fr.Qrels.read(QRELS))
    assert np.array_equal(run.code, fr.Run.read(RUN).code)


def test_ids_of_any_type() -> None:
    for ids in ([7, 8], np.array([7, 8], np.uint8), pa.array([7, 8], pa.int16()), [b"7", b"8"], ["7", "8"]):
        qrels = fr.Qrels.from_arrays(ids, ids, [1, 0])
        assert [document for _, document, _ in rows(qrels)] == [b"7", b"8"]
        assert qrels.query_keys.to_pylist() == [b"7", b"8"]
    assert fr.Qrels.from_arrays([7, 8], [7, 8], [1, 0]).query_ids.to_pylist() == [7, 8]


def test_arrays_are_regrouped_and_nulls_left_out() -> None:
    run = fr.Run.from_arrays(["b", "a", "b", "a"], ["w", "x", "y", "z"], pa.array([1.0, None, 3.0, 4.0]))
    assert rows(run) == [("a", b"z", 4.0), ("b", b"w", 1.0), ("b", b"y", 3.0)]
    assert run.regrouped == 2
    assert [run.place(row) for row in range(3)] == ["row 3", "row 0", "row 2"]
    qrels = fr.Qrels.from_arrays(["a", "b"], ["w", "x"], pa.array([None, 1]))
    assert (len(qrels), rows(qrels)) == (2, [("b", b"x", 1.0)])


def test_scores_keep_their_type() -> None:
    for kind in (np.float32, np.float64, np.int64):
        assert fr.Run.from_arrays(["q"], ["a"], np.array([1], kind)).scores.dtype == kind
    assert fr.Run.from_arrays([], [], []).n_documents == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"doc_ids": ["a"]}, r"scores must have one entry a document, 1, not 2\."),
        ({"values": [[1.0, 2.0]]}, r"scores must have one entry a document, 2, not 1x2\."),
        ({"query_ids": ["q"]}, r"query_ids must have one entry a document, 2, not 1\."),
        ({"query_ids": [0.5, 1.5]}, r"query_ids must be text or integers, not floats: .*"),
        ({"query_ids": ["q", None]}, r"query_ids must not be null: row 1 is\."),
        ({"doc_ids": ["a", None]}, r"doc_ids must not be null: row 1 is\."),
        ({"doc_ids": [0.5, 1.5]}, r"doc_ids must be text or integers, not floats: .*"),
        ({"values": ["x", "y"]}, r"scores must be numbers, not .*"),
        ({"values": [1.0, math.nan]}, r"run: scores must not be NaN: nan at query 'q', document 'b' \(row 1\)\. .*"),
        (
            {"query_ids": ["q", "r"], "offsets": [0, 1]},
            r"offsets must be 3 numbers that ascend from 0 to 2, one more than there are query_ids\.",
        ),
        ({"query_ids": ["q", "r"], "offsets": [0, 3, 2]}, r"offsets must be 3 numbers that ascend from 0 to 2, .*"),
        (
            {"query_ids": ["q", "q"], "offsets": [0, 1, 2]},
            r"query_ids with offsets must name each query of the run once: 'q' stands there twice\.",
        ),
    ],
)
def test_arrays_that_cannot_be_read(given: dict[str, Any], message: str) -> None:
    given = {"query_ids": ["q", "q"], "doc_ids": ["a", "b"], "values": [1.0, 2.0]} | given
    values = given.pop("values")
    with pytest.raises(InputError, match=rf"^{message}$"):
        fr.Run.from_arrays(scores=values, **given)


def test_labels_that_are_not_finite() -> None:
    with pytest.raises(InputError, match=r"^qrels: labels must be finite: inf at query 'q', document 'b' \(row 1\)\. .*$"):
        fr.Qrels.from_arrays(["q", "q"], ["a", "b"], [1.0, math.inf])


# --- hashes and memory ----------------------------------------------------------------------------------------------------------


def test_equal_hashes_are_not_equal_ids() -> None:
    ids = [b"d%d" % i for i in range(20)] + [b"%d-document-%d" % (i % 3, i) for i in range(20)]
    content = b"".join(b"q Q0 %s 1 %d t\n" % (document, i) for i, document in enumerate(ids[::2]))
    judged = b"".join(b"q 0 %s %d\n" % (document, i % 2) for i, document in enumerate(ids[::3]))
    qrels, run = fr.Qrels.read(judged), fr.Run.read(content)
    expected = fr.evaluate_run(qrels, run, "AP,nDCG,NumRelRet")
    colliding = [replace(pairs, code=np.zeros_like(pairs.code)) for pairs in (qrels, run)]
    assert np.array_equal(fr.evaluate_run(*colliding, "AP,nDCG,NumRelRet").values, expected.values)


def test_hashes_spread() -> None:
    ids = [f"D{i}" for i in range(2000)] + ["x" * n for n in range(50)] + ["\0" * n for n in range(1, 50)]
    code = fr.Run.from_arrays(["q"] * len(ids), ids, np.zeros(len(ids))).code
    assert len(np.unique(code)) == len(code)
    assert np.bincount((code & np.uint64(255)).astype(np.int64), minlength=256).max() < 40


def test_nothing_given_is_written_to_or_kept_writeable() -> None:
    given = np.array([0.5, 0.25])
    run = fr.Run.from_arrays(["q", "q"], ["a", "b"], given)
    for array in (run.scores, run.offsets, run.code, run.doc_ids.text, run.doc_ids.start):
        assert not array.flags.writeable
    assert given.flags.writeable


@pytest.mark.compiled
def test_the_kernels_see_one_type_each() -> None:
    for blank in (b" ", b"  "):  # what is separated by single blanks has a kernel of its own
        fr.Run.read(RUN.replace(b" ", blank))
        fr.Qrels.read(QRELS.replace(b" ", blank))
    fr.Run.from_arrays(["q"], ["a"], [1.0])
    for kernel in (lines.read_plain_lines, lines.read_run_lines, lines.read_qrels_lines, lines.find_field_ends, lines.hash_ids):
        assert len(kernel.signatures) == 1


def test_bits_of_bytes_by_its_twin() -> None:
    data = np.arange(256, dtype=np.uint8)
    for lowest, n in ((32, 1), (9, 5), (250, 6)):
        for place in (0, 3, 192):
            word = int(_kernel.bits_of_bytes.twin(data, place, lowest, n))
            assert word == sum(1 << i for i, byte in enumerate(data[place : place + 64].tolist()) if lowest <= byte < lowest + n)


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[LONG])
    writer.start()
    run = fr.Run.read(path)
    writer.join()
    assert rows(run) == rows(fr.Run.read(LONG))

"""Qrels and runs as files: fields, numbers, ids, packed files, what is wrong in them; and the same from arrays."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trec_rows import COMPILED, QRELS, RUN, rows

import fastrank as fr
from fastrank.errors import InputError
from fastrank.io import text, trec
from fastrank.io.judgements import Pairs

# --- fields ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content",
    [
        RUN,
        RUN[:-1],
        b"\xef\xbb\xbf" + RUN,
        RUN.replace(b"\n", b"\r\n"),
        RUN.replace(b" ", b"\t"),
        RUN.replace(b" ", b" \t\v\f "),
        RUN.replace(b"\n", b" \n  "),
        b"\n\n" + RUN.replace(b"\n", b"\n \r\n\n"),
        b"# made by hand\n" + RUN.replace(b"\n", b"\n# 1 Q0 c 1 9 t\n  #\n"),
        RUN.replace(b" t\n", b" another-tag\n"),
        RUN.replace(b" 1 2.5", b" -7 2.5").replace(b" 2 1.5", b" first 1.5"),
    ],
)
def test_ways_to_write_the_same_run(content: bytes) -> None:
    run = fr.Run.read(content)
    assert rows(run) == [("1", b"a", 2.5), ("1", b"b", 1.5), ("2", b"a", -1.0)]
    assert run.query_ids.type == pa.string()
    assert (len(run), run.n_documents, run.regrouped, run.n_longer) == (2, 3, 0, 0)


def test_lines_that_have_six_fields_only_on_the_average() -> None:
    five, seven, comment = b"1 Q0 a 1 2.5\n", b"1 Q0 b 2 1.5 t u\n", b"# Q0 c 3 0.5 t\n"
    with pytest.raises(InputError, match=r"line 1: a line of a run has 6 fields .*, not 5"):
        fr.Run.read(five + seven)
    with pytest.raises(InputError, match=r"line 2: a line of a run has 6 fields .*, not 5"):
        fr.Run.read(seven + five)
    with pytest.raises(InputError, match=r"line 1: a line of qrels has 4 fields .*, not 3"):
        fr.Qrels.read(b"1 0 a\n1 0 b 1 1\n")
    run = fr.Run.read(comment + RUN + comment)
    assert (rows(run), run.n_comments) == ([("1", b"a", 2.5), ("1", b"b", 1.5), ("2", b"a", -1.0)], 2)
    assert rows(fr.Run.read(RUN + b"2 Q0 b 2 -inf t\n"))[3:] == [("2", b"b", -math.inf)]


@pytest.mark.parametrize(
    "content", [QRELS, QRELS[:-1], b"\xef\xbb\xbf" + QRELS, QRELS.replace(b" ", b"\t  "), b"#\n\n" + QRELS.replace(b"\n", b" \r\n")]
)
def test_ways_to_write_the_same_qrels(content: bytes) -> None:
    qrels = fr.Qrels.read(content)
    assert rows(qrels) == [("1", b"a", 1.0), ("1", b"b", 0.0), ("2", b"a", 2.0)]
    assert qrels.labels.tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("content", [b"", b"\n", b"#\n", b"\xef\xbb\xbf", b" \t\r\n\n", b"# no line feed"])
def test_no_rows_are_no_queries(content: bytes) -> None:
    for pairs in (fr.Run.read(content), fr.Qrels.read(content)):
        assert (len(pairs), pairs.n_documents, pairs.offsets.tolist(), rows(pairs)) == (0, 0, [0], [])
    assert fr.Run.read(content).tag is None


def test_comments_are_counted() -> None:
    assert fr.Run.read(b"# one\n" + RUN + b" # two\n").n_comments == 2
    assert fr.Qrels.read(QRELS.replace(b"a", b"#a")).n_comments == 0


# Bytes that some reader takes for white space, quotes, separators or the end of the text; no ASCII white space among them.
CONTROLS = [b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\x00", b"\x00\x00a", b"\x0e", b"\x08"]
STRANGE = [*CONTROLS, b"\xc2\xa0", b"\x85", b"\xe2\x80\xa8", b"\xff\xfe", b"\x80"]
NUMERIC = [b"007", b"7", b"1e5", b"NA", b"nan", b"None", b"-", b"0x1p3"]
ORDINARY = [*NUMERIC, b"a,b", b'"a', b"'", b"a;b|c", b"\\", b"#1", b"a#", "ü".encode(), b"x" * 10_000]


@pytest.mark.parametrize("document", STRANGE + ORDINARY, ids=repr)
def test_ids_are_any_bytes_but_white_space(document: bytes) -> None:
    query = document if not document.startswith(b"#") else b"q"
    [(found_query, found, score)] = rows(fr.Run.read(query + b" Q0 " + document + b" 1 0.5 t"))
    assert (found, score) == (document, 0.5)
    assert found_query == query or found_query.encode() == query
    [(_, found, label)] = rows(fr.Qrels.read(b"q\t0\t" + document + b"\t1"))
    assert (found, label) == (document, 1.0)


def test_query_ids_that_are_not_utf8_stay_bytes() -> None:
    assert fr.Qrels.read(b"\xff 0 a 1\nb 0 a 1\n").query_ids.to_pylist() == [b"\xff", b"b"]


def test_the_last_tag_is_the_last_rows() -> None:
    assert fr.Run.read(b"2 Q0 a 1 1 first more\n2 Q0 c 1 1 third more\n# x\n\n").last_tag == "third"
    many = b"".join(b"%d Q0 a 1 1 t%d\n" % (row, row) for row in range(60_000))
    assert fr.Run.read(many + b"#" * 70_000 + b"\n", threads=2).last_tag == "t59999"
    assert fr.Run.read(b"# nothing\n").last_tag is None


def test_the_tag_is_the_first_lines() -> None:
    assert fr.Run.read(b"# x\n2 Q0 a 1 1 first more\n1 Q0 b 1 1 second\n2 Q0 c 1 1 third\n").tag == "first"
    assert fr.Run.read(b"2 Q0 a 1 1 \xff\n").tag == "\ufffd"
    assert fr.Run.from_arrays(["q"], ["a"], [1.0]).tag is None


def test_a_run_tells_what_it_is() -> None:
    assert repr(fr.Run.read(RUN)) == "Run(2 queries, 3 documents, from <bytes>)"
    assert repr(fr.Qrels.read(QRELS)) == "Qrels(2 queries, 3 documents, from <bytes>)"


def test_queries_come_in_order_of_appearance() -> None:
    assert fr.Run.read(b"b Q0 x 1 1 t\na Q0 x 1 1 t\nc Q0 x 1 1 t\n").query_ids.to_pylist() == ["b", "a", "c"]


def test_scattered_queries_come_sorted_with_their_rows_in_order() -> None:
    run = fr.Run.read(b"b Q0 x 1 1 t\na Q0 y 1 2 t\nb Q0 z 1 3 t\nc Q0 x 1 4 t\na Q0 w 1 5 t\n")
    assert rows(run) == [("a", b"y", 2.0), ("a", b"w", 5.0), ("b", b"x", 1.0), ("b", b"z", 3.0), ("c", b"x", 4.0)]
    assert run.regrouped == 2
    assert [run.place(row) for row in range(5)] == ["line 2", "line 5", "line 1", "line 3", "line 4"]


def test_more_than_six_fields_are_counted() -> None:
    run = fr.Run.read(RUN + b"3 Q0 my doc 1 2.0 t\n3 Q0 d 1 2.0 t more junk\n")
    assert rows(run)[-2:] == [("3", b"my", 1.0), ("3", b"d", 2.0)]
    assert run.n_longer == 2


class Row(NamedTuple):
    query: bytes
    document: bytes
    value: float
    line: int


def number(word: bytes) -> float:
    return float.fromhex(word.decode()) if b"x" in word else float(word)


def line_by_line(content: bytes, n_fields: int) -> list[Row]:
    """The plainest reader of lines that are well formed: rows as they come out, sorted by query when those of one are not together."""
    found = []
    for line, written in enumerate(content.split(b"\n"), 1):
        words = written.split()  # bytes: ASCII white space alone
        if words and not words[0].startswith(b"#"):
            found.append(Row(words[0], words[2], number(words[4 if n_fields == 6 else 3]), line))
    turns = [row.query for i, row in enumerate(found) if i == 0 or found[i - 1].query != row.query]
    return found if len(turns) == len(set(turns)) else sorted(found, key=lambda row: row.query)


BLANKS = st.sampled_from([b" ", b"\t", b"  ", b" \v\f\r "])
WORDS = st.sampled_from([b"a", b"b", b"ab", b"12345678", b"123456789", b"x" * 70, b"\xc3\xa9", b"\x00", b"\x1fz", b"Q0"])
SHORT_NUMBERS = [b"0", b"1", b"-2", b"0.5", b"12.25", b"1e-3", b"+.5", b"7."]
NUMBERS = st.sampled_from([*SHORT_NUMBERS, b"123456789.123456789", b"3.0847406", b"1e400", b"0x1p3"])
EMPTY = st.sampled_from([b"", b"  ", b"#", b"# a b c", b" # x", b"\r", b"\t"])


@st.composite
def texts(draw: st.DrawFn, n_fields: int) -> bytes:
    """Lines of qrels or runs with everything in them that does not matter."""
    content = b""
    for _ in range(draw(st.integers(0, 20))):
        if draw(st.integers(0, 5)) == 0:
            content += draw(EMPTY) + b"\n"
            continue
        fields = [
            draw(st.sampled_from([b"q", b"q", b"r", b"rr", b"query-12", b"query-123", b"query-124", b"other-124"])),
            *(draw(WORDS) for _ in range(n_fields - 1)),
        ]
        fields[4 if n_fields == 6 else 3] = draw(NUMBERS if n_fields == 6 else st.sampled_from([b"0", b"1", b"-1", b"2.5"]))
        if n_fields == 6 and draw(st.integers(0, 4)) == 0:
            fields.append(draw(WORDS))
        content += draw(st.sampled_from([b"", b" "])) + b"".join(field + draw(BLANKS) for field in fields).rstrip(b" ") + b"\n"
    return content[:-1] if draw(st.booleans()) else content


@pytest.mark.parametrize(("kind", "n_fields"), [(fr.Run, 6), (fr.Qrels, 4)])
@given(data=st.data(), size=st.sampled_from([1, 40, 10**6]), on_disk=st.booleans())
def test_any_text_gives_the_rows_of_the_plainest_reader(
    kind: type[Pairs], n_fields: int, data: st.DataObject, size: int, on_disk: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = data.draw(texts(n_fields))
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(content)
    plain = line_by_line(content, n_fields)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "PIECE", size)
        patch.setattr(trec, "FEWEST", size)
        for threads in (1, 3):
            pairs = kind.read(path if on_disk else content, threads=threads)
            found = [(query.encode(), document, value) for query, document, value in rows(pairs)]
            assert found == [row[:3] for row in plain]
            assert [pairs.place(i) for i in range(len(plain))] == [f"line {row.line}" for row in plain]


def test_more_lines_without_a_row_than_a_kernel_notes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec, "NOTED", 3)
    run = fr.Run.read(b"\n" * 10 + RUN + b"# x\n" * 10 + b"3 Q0 a 1 1 t\n")
    assert [run.place(row) for row in range(4)] == ["line 11", "line 12", "line 13", "line 24"]


def test_a_file_that_becomes_shorter_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(RUN)
    opened = text.open_text(path)
    path.write_bytes(RUN[:-4])
    pieces = [piece.data[piece.first : piece.last].tobytes() for piece in opened.pieces(opened.begin, opened.end)]
    assert b"".join(pieces) == RUN[:-4] + b"\n"
    path.write_bytes(b"")
    assert list(opened.pieces(opened.begin, opened.end)) == []
    assert opened.cut(3) == [0, len(RUN)]


# --- numbers --------------------------------------------------------------------------------------------------------------------


def scores(words: list[str]) -> np.ndarray:
    return fr.Run.read("".join(f"q Q0 d{i} 1 {word} t\n" for i, word in enumerate(words)).encode()).scores


def same_bits(found: np.ndarray, expected: list[float]) -> bool:
    return np.array_equal(found.view(np.uint64), np.array(expected).view(np.uint64))


DECIMAL = """
0 -0 +0 1 00012 5. .5 +.5 -.5e1 1e3 1.0E+3 -1.5e-3 1e-400 -1e-400 1e400 -1e400 1e22 1e23 1e0005 1e-00000005
12345678 123456789 1234567.8 12345678.9 0.12345678 0.123456789 0.1234567890123456 0.12345678901234567 1.3333333333333333333
3.0847406 2.59424812345678 9007199254740993 9007199254740992.5 123456789012345678901234567890 0.0000000000000000000000000000001
2.2250738585072011e-308 5e-324 2.4703282292062327e-324 1.7976931348623157e308 inf -inf +INF Infinity -infinity
"""
HEXADECIMAL = {"0x1p3": 8.0, "0X1.8P1": 3.0, "-0x10": -16.0, "0x.8": 0.5, "0x1p99999": math.inf, "-0x1p99999": -math.inf}


@pytest.mark.parametrize("word", [*DECIMAL.split(), "1" + "0" * 400])
def test_scores_are_the_nearest_doubles(word: str) -> None:
    assert same_bits(scores([word]), [float(word)])


@pytest.mark.parametrize(("word", "value"), HEXADECIMAL.items())
def test_hexadecimal_scores_are_what_c_reads(word: str, value: float) -> None:
    assert same_bits(scores([word]), [value])


def halfway(draw: random.Random) -> str:
    """The decimal expansion of the number in the middle between two doubles: the hardest to round."""
    bits = draw.getrandbits(52) | 1 << 52
    return format(Decimal(2 * bits + 1) * Decimal(2) ** draw.randint(-12, 12), "f")


def awkward_numbers(draw: random.Random, n: int) -> list[str]:
    kinds: list[Callable[[], str]] = [
        lambda: repr(draw.random() * 10 ** draw.randint(-5, 5)),
        lambda: repr(struct.unpack("d", struct.pack("Q", draw.getrandbits(64)))[0]),
        lambda: f"{draw.gauss(0, 1) * 10.0 ** draw.randint(-300, 300):.{draw.randint(0, 19)}e}",
        lambda: f"{draw.gauss(0, 1) * 10.0 ** draw.randint(-5, 5):.{draw.randint(0, 25)}f}",
        lambda: str(draw.randint(-(10 ** draw.randint(1, 25)), 10 ** draw.randint(1, 25))),
        lambda: repr(float(np.float32(draw.gauss(0, 10)))),
        lambda: f"{draw.getrandbits(63)}e{draw.randint(-340, 300)}",
        lambda: halfway(draw),
    ]
    words = [draw.choice(kinds)() for _ in range(n)]
    return [word for word in words if "n" not in word]  # neither inf nor nan


def test_every_number_is_correctly_rounded() -> None:
    words = awkward_numbers(random.Random(7), 20_000 if COMPILED else 500)
    assert same_bits(scores(words), [float(word) for word in words])


def test_numbers_of_any_count_of_digits_around_the_point() -> None:
    digits = "9081726354" * 2
    forms = [(before, after) for before in range(11) for after in range(19) if before + after > 0]
    words = [sign + digits[:before] + "." + digits[-after:] * (after > 0) for sign in ("", "-") for before, after in forms]
    words += [digits[-n:] for n in range(1, 19)]
    assert same_bits(scores(words), [float(word) for word in words])


@given(value=st.floats(allow_nan=False))
def test_what_python_writes_is_read_back(value: float) -> None:
    assert same_bits(scores([repr(value)]), [value])


def test_more_odd_numbers_than_a_kernel_notes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trec, "NOTED", 3)
    words = ["0x1p3", "1", "inf", "0x1p4"] * 5
    assert scores(words).tolist() == [8.0, 1.0, math.inf, 16.0] * 5


# --- what is wrong --------------------------------------------------------------------------------------------------------------


NO_NUMBERS = ["abc", "nan", "-NaN", "1_0", "1,5", "1.5f", "1e", "e5", ".", "1..2", "+", "--1", "0x", "1\xa0", "1\x00", "infin", "1e5e5"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"1 Q0 a 2.0 t", r"a line of a run has 6 fields \(query, Q0, document, rank, score and tag\), not 5"),
        (b"1", r"a line of a run has 6 fields .*, not 1"),
        (b"1 0 a 1", r"a line of a run has 6 fields .*, not 4; qrels come first, then the run"),
        *((b"1 Q0 a 1 " + word.encode() + b" t", r"score must be a number") for word in NO_NUMBERS),
    ],
)
def test_a_malformed_run_line_is_named_by_its_number_and_text(line: bytes, rule: str, tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_bytes(b"# comment\n1 Q0 x 1 1 t\n\n" + line + b"\n1 Q0 y 1 abc t\n")
    with pytest.raises(InputError, match=rf"^{path}, line 4: {rule}: '[^\n]*'$") as caught:
        fr.Run.read(path)
    assert repr(line.decode("utf-8", "replace"))[1:-1] in str(caught.value)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"1 0 a", r"a line of qrels has 4 fields \(query, iteration, document and label\), not 3"),
        (b"1 0 my doc 1", r"a line of qrels has 4 fields .*, not 5"),
        (b"1 Q0 a 1 2.0 t", r"a line of qrels has 4 fields .*, not 6; qrels come first, then the run"),
        *((b"1 0 a " + word, r"label must be a finite number") for word in (b"abc", b"nan", b"inf", b"1e400", b"1-2")),
    ],
)
def test_a_malformed_qrels_line_is_named_by_its_number_and_text(line: bytes, rule: str) -> None:
    with pytest.raises(InputError, match=rf"^<bytes>, line 4: {rule}: '[^\n]*'$"):
        fr.Qrels.read(b"\xef\xbb\xbf1 0 x 1\r\n\r\n#\r\n" + line + b"\r\n1 0 y abc\r\n")


@pytest.mark.parametrize("size", [1, 30, 10**6])
def test_the_first_wrong_line_is_named_whatever_the_parts(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "PIECE", size)
    monkeypatch.setattr(trec, "FEWEST", size)
    content = RUN + b"3 Q0 a 1 x t\n" + RUN + b"4 Q0\n"
    with pytest.raises(InputError, match=r"line 4: score must be a number: '3 Q0 a 1 x t'$"):
        fr.Run.read(content, threads=3)


def test_a_long_malformed_line_is_cut() -> None:
    with pytest.raises(InputError, match=r"line 1: .*: 'x{60}' \.\.\.$"):
        fr.Run.read(b"x" * 100_000)

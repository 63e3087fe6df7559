"""LETOR and SVMlight ranking text."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrank.errors import InputError
from fastrank.io.columns import Columns
from fastrank.io.letor import is_letor, read_letor

CONFORMANCE = Path(__file__).resolve().parents[2] / "shared" / "conformance" / "ltr"
SAMPLE = Path(__file__).parent.parent / "bench_data"


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write a file of these bytes and give its path."""

    def to_file(content: bytes, name: str = "rank.txt") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return to_file


def by_query(rows: Columns) -> list[tuple[Any, list[float]]]:
    ends = zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
    return [(query, rows.labels[start:stop].tolist()) for query, (start, stop) in zip(rows.query_ids.to_pylist(), ends, strict=True)]


# --- labels and queries ---------------------------------------------------------------------------------------------------------


def test_labels_and_queries_come_in_order_of_appearance(write: Any) -> None:
    rows = read_letor(write(b"2 qid:b 1:0.5 2:1\n0 qid:b 1:0.1\n1 qid:a 7:3\n"))
    assert by_query(rows) == [("b", [2.0, 0.0]), ("a", [1.0])]
    assert rows.labels.dtype == np.float64
    assert rows.offsets.dtype == np.int64
    assert rows.query_ids.type == pa.string()
    assert (rows.scores, rows.doc_ids, rows.weights, rows.by, rows.first_row, rows.regrouped, rows.rows) == ({}, None, None, {}, 0, 0, None)


@pytest.mark.parametrize(
    "text",
    [
        b"2 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:0.2",
        b"2 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:0.2\n",
        b"\xef\xbb\xbf2 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:0.2\n",
        b"2 qid:1 1:0.5\r\n0 qid:1 1:0.1\r\n1 qid:2 1:0.2\r\n",
        b"2\tqid:1\t1:0.5\n 0   qid:1  1:0.1 \n\t1 qid:2\n",
        b"\n\n2 qid:1 1:0.5\n  \n0 qid:1 1:0.1\n\r\n1 qid:2 1:0.2\n\n",
        b"# made by hand\n2 qid:1 1:0.5 # doc7 qid:9\n0 qid:1 # 1:0.1\n #\n1 qid:2 1:0.2 #\n",
        b"2 qid:1#5\n0 qid:1# 1:0.1\n1 qid:2#\n",
        b"+2 qid:1\n0.0 qid:1\n1e0 qid:2\n",
        gzip.compress(b"2 qid:1 1:0.5\n0 qid:1 1:0.1\n1 qid:2 1:0.2\n"),
        gzip.compress(b"\xef\xbb\xbf2 qid:1\n") + gzip.compress(b"0 qid:1\n1 qid:2"),
    ],
)
def test_ways_to_write_the_same_rows(write: Any, text: bytes) -> None:
    rows = read_letor(write(text))
    assert by_query(rows) == [("1", [2.0, 0.0]), ("2", [1.0])]
    assert rows.regrouped == 0


@pytest.mark.parametrize("text", [b"", b"\n", b"# nothing\n", b"\xef\xbb\xbf"])
def test_no_rows_are_no_queries(write: Any, text: bytes) -> None:
    path, nothing = write(text), write(b"", "empty.txt")
    for rows in (read_letor(path), read_letor(path, nothing), read_letor(path, groups=nothing)):
        assert rows.labels.shape == (0,)
        assert rows.offsets.tolist() == [0]
        assert len(rows.query_ids) == 0


def test_query_ids_are_text_not_numbers(write: Any) -> None:
    ids = ["007", "7", "1e5", "NA", "nan", "a:b", "qid:x", "ü", "-1", "x" * 10_000]
    text = "".join(f"1 qid:{query} 1:1\n" for query in ids)
    assert read_letor(write(text.encode())).query_ids.to_pylist() == ids


def test_query_ids_that_are_not_utf8_stay_bytes(write: Any) -> None:
    assert read_letor(write(b"1 qid:\xff\n0 qid:a\n")).query_ids.to_pylist() == [b"\xff", b"a"]


def test_scattered_queries_come_sorted_with_their_rows_in_order(write: Any) -> None:
    text, scores = write(b"0 qid:b\n1 qid:a\n2 qid:b\n3 qid:c\n4 qid:a\n"), write(b"0\n0.1\n0.2\n0.3\n0.4\n", "scores.txt")
    rows = read_letor(text, scores)
    assert by_query(rows) == [("a", [1.0, 4.0]), ("b", [0.0, 2.0]), ("c", [3.0])]
    assert rows.scores["score"].tolist() == [0.1, 0.4, 0.0, 0.2, 0.3]
    assert rows.regrouped == 2
    assert [rows.source_row(row) for row in range(5)] == [1, 4, 0, 2, 3]
    assert rows.first_row == 1


def line_by_line(text: bytes) -> tuple[list[float], list[bytes]]:
    """The plainest reader: labels and ids of the rows."""
    labels, ids = [], []
    for line in text.decode("latin-1").split("\n"):
        words = line.split("#")[0].split()
        if words:
            labels.append(float(words[0]))
            ids.append(words[1].removeprefix("qid:").encode("latin-1"))
    return labels, ids


LABELS = st.sampled_from(["0", "1", "4", "-1", "2.5", "1e-3", "0.1"])
LINES = st.one_of(
    st.sampled_from(["", "  ", "#", "# 1 qid:2", "\r"]),
    st.builds(
        "{}{}{}qid:{}{}{}".format,
        st.sampled_from(["", " "]),
        LABELS,
        st.sampled_from([" ", "\t", "  "]),
        st.sampled_from("abc"),
        st.sampled_from(["", "#", " 1:0.5", " 1:0.5 2:1 # x", " # 3", "\t"]),
        st.sampled_from(["", "\r", " "]),
    ),
)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(LINES, max_size=25), last=st.sampled_from(["", "\n"]), packed=st.booleans())
def test_any_text_gives_the_rows_of_the_plainest_reader(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], last: str, packed: bool
) -> None:
    text = ("\n".join(lines) + last).encode()
    path = tmp_path_factory.getbasetemp() / "any.letor"
    path.write_bytes(gzip.compress(text, 0) if packed else text)
    rows = read_letor(path)
    labels, ids = line_by_line(text)
    assert [labels[rows.source_row(row)] for row in range(len(labels))] == rows.labels.tolist()
    of_row = np.repeat(np.arange(len(rows.query_ids)), np.diff(rows.offsets))
    found = [rows.query_ids[int(query)].as_py().encode() for query in of_row]
    assert [ids[rows.source_row(row)] for row in range(len(ids))] == found
    assert len(set(rows.query_ids.to_pylist())) == len(rows.query_ids)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        (b"x qid:1 1:0.5", r"a line must begin with its label, a number"),
        (b"qid:1 1:0.5", r"a line must begin with its label, a number"),
        (b"1_0 qid:1", r"a line must begin with its label, a number"),
        (b"0x1p3 qid:1", r"a line must begin with its label, a number"),
        (b"1,0 qid:1", r"a line must begin with its label, a number"),
        (b"\x00\x01", r"a line must begin with its label, a number"),
        (b"1 qid: 7 1:0.5", r"qid: must be followed by the query's id, without a blank"),
        (b"1 qid:#7", r"qid: must be followed by the query's id, without a blank"),
        (b"1 seven 1:0.5", r"after the label must come qid:ID or feature:value"),
        (b"1 1:0.5 qid:1", r"no qid: after the label \(every row needs one\)"),
        (b"1", r"no qid: after the label \(every row needs one\)"),
        (b"1 # qid:1", r"no qid: after the label \(every row needs one\)"),
    ],
)
def test_a_malformed_line_is_named_by_its_number_and_text(write: Any, line: bytes, rule: str) -> None:
    path = write(b"# comment\n2 qid:1 1:0.5\n\n" + line + b"\n1 qid:1 1:0.5\n")
    with pytest.raises(InputError, match=rf"^{path}, line 4: {rule}: '[^\n]*'$") as caught:
        read_letor(path)
    assert repr(line.decode())[1:-1] in str(caught.value)


def test_a_long_malformed_line_is_cut(write: Any) -> None:
    with pytest.raises(InputError, match=r"line 1: .*: 'x{60}' \.\.\.$"):
        read_letor(write(b"x" * 100_000))


def test_labels_are_the_nearest_doubles_whatever_they_are(write: Any) -> None:
    words = ["0.1", "1e400", "-1e-400", "nan", "inf", "9007199254740993", "2.2250738585072011e-308"]
    labels = read_letor(write("".join(f"{word} qid:1\n" for word in words).encode())).labels
    assert [math.nan if label != label else label for label in labels.tolist()][:3] == [0.1, math.inf, -0.0]
    assert np.isnan(labels[3])
    assert labels[4:].tolist() == [math.inf, 9007199254740992.0, 2.2250738585072011e-308]


# --- scores ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        b"0.5\n-1e-3\n.25\n",
        b"0.5\r\n-1e-3\r\n.25",
        b"\xef\xbb\xbf 0.5 \n\t-1e-3\n+.25\n",
        b"\n0.5\n\n-0.001\n0.25\n\n",
        gzip.compress(b"0.5\n-0.001\n0.25\n"),
    ],
)
def test_scores_are_one_number_a_line(write: Any, text: bytes) -> None:
    rows = read_letor(write(b"1 qid:1\n1 qid:1\n1 qid:2\n"), write(text, "scores.txt"))
    assert rows.scores["score"].tolist() == [0.5, -0.001, 0.25]
    assert rows.scores["score"].dtype == np.float64


def test_scores_survive_the_round_trip_to_text(write: Any) -> None:
    bits = np.random.default_rng(3).integers(0, 2**64, 2000, np.uint64).view(np.float64)
    values = bits[np.isfinite(bits)].tolist()
    text, scores = write(b"1 qid:1\n" * len(values)), write("\n".join(map(repr, values)).encode(), "scores.txt")
    assert read_letor(text, scores).scores["score"].tolist() == values


@pytest.mark.parametrize("n_scores", [0, 2, 4])
def test_as_many_scores_as_rows(write: Any, n_scores: int) -> None:
    text, scores = write(b"1 qid:1\n" * 3), write(b"0.5\n" * n_scores, "scores.txt")
    with pytest.raises(InputError, match=rf"scores\.txt has {n_scores} scores, but \S*rank\.txt has 3 rows: give one score a row"):
        read_letor(text, scores)


@pytest.mark.parametrize("line", [b"high", b"0.5 0.7", b"1_0", b"0x1p3", b"0,5", b"1\t2"])
def test_a_score_that_is_no_number_is_named_by_its_line(write: Any, line: bytes) -> None:
    text, scores = write(b"1 qid:1\n" * 3), write(b"0.5\n\n" + line + b"\n0.5\n", "scores.txt")
    with pytest.raises(InputError, match=r"^\S*scores\.txt, line 3: a line must be one score, a number: '[^\n]*'$"):
        read_letor(text, scores)


def test_a_wrong_line_far_down_is_named_by_its_number(write: Any) -> None:
    text, scores = write(b"1 qid:1\n" * 501), write(b"0.25\n" * 500 + b"x\n", "scores.txt")
    with pytest.raises(InputError, match=r"scores\.txt, line 501: "):
        read_letor(text, scores)
    with pytest.raises(InputError, match=r"rank\.txt, line 502: "):
        read_letor(write(b"1 qid:1\n" * 501 + b"x\n"))


# --- group sizes ----------------------------------------------------------------------------------------------------------------


def test_group_sizes_give_the_queries_of_a_file_without_qid(write: Any) -> None:
    text, sizes = write(b"2 1:0.5\n0\n1 1:0.5\n0 # none\n"), write(b"3\r\n\n0\n1\n", "rank.group")
    rows = read_letor(text, groups=sizes)
    assert by_query(rows) == [(0, [2.0, 0.0, 1.0]), (1, []), (2, [0.0])]
    assert (rows.regrouped, rows.first_row, rows.rows) == (0, 0, None)


@pytest.mark.parametrize(("sizes", "total"), [(b"1\n2\n", 3), (b"4\n1\n", 5), (b"", 0), (b"9" * 30, int("9" * 30))])
def test_group_sizes_sum_to_the_rows(write: Any, sizes: bytes, total: int) -> None:
    with pytest.raises(InputError, match=rf"rank\.group: the group sizes sum to {total}, but \S*rank\.txt has 4 rows"):
        read_letor(write(b"1 1:0.5\n" * 4), groups=write(sizes, "rank.group"))


@pytest.mark.parametrize("line", [b"-1", b"2.0", b"x", b"1 1", b"1_0"])
def test_a_group_size_is_a_whole_number(write: Any, line: bytes) -> None:
    with pytest.raises(InputError, match=r"^\S*rank\.group, line 2: a line must be the size of one group, a whole number: '[^\n]*'$"):
        read_letor(write(b"1 1:0.5\n" * 4), groups=write(b"4\n" + line, "rank.group"))


def test_exactly_one_of_qid_and_groups(write: Any) -> None:
    bare = write(b"1 1:0.5\n0 1:0.1\n", "bare.txt")
    with pytest.raises(
        InputError, match=r"bare\.txt, line 1: no qid: after the label \(add it, or give the group sizes in a file as groups=\)"
    ):
        read_letor(bare)
    with pytest.raises(InputError, match=r"rank\.txt has qid:, and \S*rank\.group was given as groups=: leave out groups="):
        read_letor(write(b"1 qid:1\n0 qid:1\n"), groups=write(b"2\n", "rank.group"))


# --- files ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["path", "scores", "groups"])
def test_a_file_that_cannot_be_read_is_one_line(write: Any, tmp_path: Path, part: str) -> None:
    packed = gzip.compress(b"1 1:0.5\n" * 1000)
    for wrong, reason in (
        (tmp_path / "none", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (write(packed[:-20], "cut.gz"), r"\S[^\n]*"),
        (write(packed[:20] + b"\xff" * 20, "bad.gz"), r"\S[^\n]*"),
        (write(packed[:-8] + b"\x00" * 8, "sum.gz"), r"\S[^\n]*"),
    ):
        files = {"path": write(b"1 1:0.5\n"), "scores": write(b"1\n", "scores"), "groups": write(b"1\n", "groups"), part: wrong}
        with pytest.raises(InputError, match=rf"^{wrong}: {reason}$"):
            read_letor(**files)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"2 qid:1 1:0.5\n", True),
        (b"\n# comment\n  2.5 qid:a:b # x\n", True),
        (b"\xef\xbb\xbf0 1:0.5 2:1\r\n", True),
        (b"-1 12:1e-5", True),
        (b"0\n1 1:0.5\n", True),  # a row whose features are all 0 has none in sparse text
        (gzip.compress(b"2 qid:1 1:0.5\n"), True),
        (b"PAR1", False),
        (b"", False),
        (b"\n\n", False),
        (b"# only a comment\n", False),
        (b"301 0 d1 1\n", False),  # qrels
        (b"301 Q0 d1 1 0.5 tag\n", False),  # a run
        (b"query_id,label,score\n", False),
        (b"1,2,0.5\n", False),
        (b'{"label": 1}\n', False),
        (b"1 2 0.5\n", False),
        (b"1 10:30:00\n", False),
        (b"1 qid: 5\n", False),
        (b"ARROW1\x00\x00", False),
        (b"\x00" * 200_000, False),
    ],
)
def test_letor_text_is_known_by_its_content(write: Any, content: bytes, expected: bool) -> None:
    assert is_letor(write(content, "no-suffix")) is expected


def test_a_parquet_file_is_not_letor_text(tmp_path: Path) -> None:
    pq.write_table(pa.table({"q": [1]}), tmp_path / "rank.letor")
    assert not is_letor(tmp_path / "rank.letor")


def test_a_file_that_cannot_be_looked_into_is_one_line(write: Any, tmp_path: Path) -> None:
    for wrong in (tmp_path, tmp_path / "none", write(gzip.compress(b"1 qid:1\n" * 9)[:15], "cut.gz")):
        with pytest.raises(InputError, match=rf"^{wrong}: [^\n]+$"):
            is_letor(wrong)


# --- real files -----------------------------------------------------------------------------------------------------------------


def test_lightgbms_files_give_the_queries_of_the_same_data_in_a_table() -> None:
    if not CONFORMANCE.is_dir():
        pytest.skip(f"no conformance data at {CONFORMANCE}")
    rows = read_letor(CONFORMANCE / "rank.train", groups=CONFORMANCE / "rank.train.query")
    table = pq.read_table(CONFORMANCE / "train.parquet")
    sizes = [int(line) for line in (CONFORMANCE / "rank.train.query").read_text().split()]
    assert np.diff(rows.offsets).tolist() == sizes
    assert rows.labels.tolist() == table["label"].to_pylist()
    assert np.repeat(rows.query_ids.to_numpy(), sizes).tolist() == table["query_id"].to_pylist()
    assert is_letor(CONFORMANCE / "rank.train")
    assert not is_letor(CONFORMANCE / "train.parquet")


def test_the_sample_is_the_same_in_letor_and_parquet() -> None:
    rows = read_letor(SAMPLE / "sample.letor", SAMPLE / "sample.scores")
    table = pq.read_table(SAMPLE / "sample.parquet")
    assert rows.labels.tolist() == table["label"].to_pylist()
    assert rows.scores["score"].astype(np.float32).tolist() == table["score"].to_pylist()
    assert np.repeat(rows.query_ids.to_numpy(zero_copy_only=False), np.diff(rows.offsets)).tolist() == table["query_id"].to_pylist()
    assert [int(line) for line in (SAMPLE / "sample.group").read_text().split()] == np.diff(rows.offsets).tolist()

"""What cannot be read is said in one line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from source_files import FILES, TABLE, csv_file, one_line, parts, to_csv, to_ipc_stream, written

import fastrank as fr
from fastrank.errors import InputError

# --- what cannot be read --------------------------------------------------------------------------------------------------------


def test_nothing_there_is_one_line(tmp_path: Path) -> None:
    assert one_line(tmp_path / "*.parquet") == f"{tmp_path}/*.parquet: no file matches this pattern."
    assert one_line(f"{tmp_path.as_uri()}/*.parquet") == f"{tmp_path.as_uri()}/*.parquet: no file matches this pattern."
    assert one_line(tmp_path) == f"{tmp_path}: a directory without files."
    assert one_line(tmp_path / "none.csv") == f"{tmp_path}/none.csv: No such file or directory"
    assert one_line((tmp_path / "none.csv").as_uri()).endswith("none.csv: No such file or directory")
    assert "not builtins.list" in one_line([])
    assert "not builtins.list" in one_line([TABLE])
    assert one_line("http://example.org/t.parquet").startswith("http://example.org/t.parquet: Unrecognized filesystem type")


def test_a_file_named_twice_is_one_line(tmp_path: Path) -> None:
    paths = parts(tmp_path)
    assert one_line([paths[0], tmp_path / "*.parquet"]) == f"{paths[0]}: the file is named 2 times. Name each file once."


CONTENTS = {
    "empty": (b"", "t.csv", "t.csv: the file is empty."),
    "nothing in gzip": (gzip.compress(b""), "t.csv.gz", "t.csv.gz: the file is empty."),
    "UTF-16": ("q,y\n".encode("utf-16"), "t.csv", "text in UTF-16. Save it as UTF-8"),
    "a picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "t.png", "t.png: the file is in no format that is known here. These are Parquet, CSV"),
    "JSON array": (b'[{"q": 1}]', "t.json", "t.json: the file is one JSON array. Write one object a line"),
    "pretty JSON": (b'{\n  "q": 1\n}\n', "t.json", "t.json, line 1: no JSON object"),
    "JSON of numbers": (b'{"q": 1}\n7\n', "t.jsonl", "t.jsonl, line 2: no JSON object."),
    "Feather 1": (b"FEA1" + bytes(50), "t.feather", "version 1 of the Feather format"),
    "no Parquet": (b"q,y\n", "t.parquet", "t.parquet: "),
    "no IPC": (b"q,y\n" * 9, "t.arrow", "t.arrow: "),
    "no ORC": (b"q,y\n" * 9, "t.orc", "t.orc: "),
    "a row too short": (b"q,d,y,s,t,w,seg,year\na,1\n", "t.csv", "Expected 8 columns, got 2"),
    "an open quote": (b'q,d,y,s,t,w,seg,year\n"a,1,1,1,1,1,1,1\n', "t.csv", "t.csv: "),
    "no UTF-8": (b"q,d,y,s,t,w,seg,year\n\xff,1,1,1,1,1,1,1\n", "t.csv", "invalid UTF8 data. Save it as UTF-8."),
    "garbage after gzip": (gzip.compress(b"q,d,y,s,t,w,seg,year\n" * 9) + b"garbage", "t.csv.gz", "t.csv.gz: "),
    "a column twice": (b"q,d,y,s,s,t,w,seg,year\n", "t.csv", 'score column "s" stands 2 times in'),
    "a column missing": (b"q,d,Y,s,t,w,seg,year\n", "t.csv", 'label: there is no column "y" in'),
    "a column missing in JSON": (b'{"q": 1, "Y": 2}\n', "t.jsonl", 'the nearest name is "Y"'),
    "floats as ids": (b'{"q": 1.5, "d": 1, "y": 1, "s": 1, "t": 1, "w": 1, "seg": "a", "year": 1}\n', "t.jsonl", "floats are not ids"),
    "text as score": (
        b'{"q": "a", "d": 1, "y": 1, "s": "1", "t": 1, "w": 1, "seg": "a", "year": 1}\n',
        "t.jsonl",
        'score column "s" is string',
    ),
    "mixed ids": (
        b'{"q": "a", "d": 1, "y": 1, "s": 1, "t": 1, "w": 1, "seg": "a", "year": 1}\n{"q": 7}\n',
        "t.jsonl",
        't.jsonl: column "q" must hold',
    ),
    "a key twice": (b'{"q": "a", "q": "a", "d": 1, "y": 1, "s": 1, "t": 1, "w": 1, "seg": "a", "year": 1}\n', "t.jsonl", "specified twice"),
}


@pytest.mark.parametrize("what", CONTENTS)
def test_what_is_wrong_with_a_file_is_one_line_that_names_it(what: str, tmp_path: Path) -> None:
    content, name, message = CONTENTS[what]
    (tmp_path / name).write_bytes(content)
    text = one_line(tmp_path / name)
    assert message in text
    assert str(tmp_path / name) in text or "column" in text


@pytest.mark.parametrize(
    "name", [name for name in FILES if name.startswith("t.") and name not in ("t.csv", "t.tsv", "t.jsonl", "t.arrows")]
)
def test_a_file_that_was_cut_off_is_an_error_and_never_a_result(name: str, tmp_path: Path) -> None:
    path = written(name, FILES[name])(TABLE, tmp_path)
    whole = path.read_bytes()
    for length in {len(whole) - 1, len(whole) - 5, len(whole) // 2, 20}:
        path.write_bytes(whole[:length])
        assert str(path) in one_line(path)


def test_a_stream_cut_inside_a_message_is_an_error(tmp_path: Path) -> None:
    path = written("t.arrows", to_ipc_stream)(TABLE, tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    assert str(path) in one_line(path)


def test_offsets_of_an_ipc_file_that_point_elsewhere_are_an_error(tmp_path: Path) -> None:
    table = pa.table({"query_id": ["a", "b"], "label": [0, 1], "score": [0.5, 0.1]})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    right, wrong = (np.array(offsets, np.int32).tobytes() for offsets in ([0, 1, 2], [0, 1, 2**30]))
    content = (tmp_path / "t.arrow").read_bytes()
    assert content.count(right) == 1
    (tmp_path / "t.arrow").write_bytes(content.replace(right, wrong))
    with pytest.raises(InputError, match=r"t\.arrow: "):
        fr.evaluate_table(tmp_path / "t.arrow")


def test_files_with_other_columns_or_types_are_one_line(tmp_path: Path) -> None:
    paths = parts(tmp_path)
    pq.write_table(TABLE.rename_columns(["q", "d", "label", *TABLE.column_names[3:]]), paths[1])
    assert f'label: there is no column "y" in {paths[1]}' in one_line(tmp_path)
    number = TABLE.set_column(0, "q", pa.array(range(len(TABLE))))
    pq.write_table(number, paths[1])
    assert one_line(tmp_path) == f'column "q" is string in {paths[0]} and int64 in {paths[1]}: write all files alike.'
    (tmp_path / "part-1.parquet").unlink()
    to_csv()(TABLE, tmp_path / "part-3.csv")
    assert "write all files alike" in one_line(tmp_path)


def test_one_file_of_many_that_is_damaged_is_named(tmp_path: Path) -> None:
    paths = parts(tmp_path, "csv")
    paths[1].write_bytes(paths[1].read_bytes() + b"too,short\n")
    assert one_line(paths).startswith(f"{paths[1]}: CSV parse error")


def test_a_text_file_object_says_to_open_it_otherwise(tmp_path: Path) -> None:
    with csv_file(tmp_path, "q,y\n").open() as file:
        assert "the file is open as text. Open it in binary mode" in one_line(file)


def test_a_file_of_which_nothing_may_be_read_is_one_line(tmp_path: Path) -> None:
    path = written("t.csv", to_csv())(TABLE, tmp_path)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert "Permission denied" in one_line(path)


def test_letor_text_takes_no_filter(tmp_path: Path) -> None:
    path = csv_file(tmp_path, "1 qid:a 1:0.5\n", "t.txt")
    scores = csv_file(tmp_path, "0.5\n", "s.txt")
    with pytest.raises(InputError, match="leave out score, doc, weight, by and filter"):
        fr.evaluate_table(path, scores=scores, filter=pc.field("label") > 0)


@pytest.mark.parametrize("roles", [{"score": 1}, {"score": [["s"]]}, {"score": None}, {"by": 1}, {"by": ["w", 2]}, {"label": None}])
def test_a_column_is_named_by_text(roles: dict[str, Any]) -> None:
    table = pa.table({"query_id": ["a"], "label": [1], "score": [0.5], "w": ["x"]})
    with pytest.raises(InputError, match=f"{next(iter(roles))} must be the name of a column, as text, not "):
        fr.evaluate_table(table, "RR", **roles)

"""Formats of text, and filters: what is read as what, and which rows are left."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from source_files import EXPECTED, FILES, MEMORY, TABLE, csv_file, evaluated, same, to_json_lines, written

import fastrank as fr
from fastrank.errors import InputError
from fastrank.io import formats
from fastrank.io.arrow import NotANumber, numbers_of_text
from fastrank.io.tables import read_columns

# --- text -----------------------------------------------------------------------------------------------------------------------


def test_numbers_in_text_are_the_nearest_doubles_and_nothing_is_null(tmp_path: Path) -> None:
    rows = ["1,+.5", "0,NA", "2, 1e-400 ", ",1e400", "NULL,5e-324", "true,-inf", "3.5,0.1000000000000000055511151231257827"]
    path = csv_file(tmp_path, "query_id,label,score\n" + "".join(f"a,{row}\n" for row in rows))
    [batch] = read_columns(path, query="query_id", label="label", scores=["score"])
    assert batch.labels.tolist() == [1, 0, 2, None, None, 1, 3.5]
    assert batch.scores["score"].tolist() == [0.5, None, 0.0, np.inf, 5e-324, -np.inf, 0.1]


def test_integers_that_doubles_would_make_equal_stay_apart(tmp_path: Path) -> None:
    scores = [2**53, 2**53 + 1, 2**62 + 1]
    lines = csv_file(tmp_path, "".join(json.dumps({"query_id": 1, "label": 0, "score": score}) + "\n" for score in scores), "t.jsonl")
    for path in (csv_file(tmp_path, "query_id,label,score\n" + "".join(f"a,0,{score}\n" for score in scores)), lines):
        [batch] = read_columns(path, query="query_id", label="label", scores=["score"])
        assert batch.scores["score"].tolist() == scores
    assert numbers_of_text(pa.array(["18446744073709551615", "1"])).to_pylist() == [2.0**64, 1.0]


@pytest.mark.parametrize("word", ["abc", "0x1p3", "0x10", "1_000", "1,5", "1 2", "--1", "1e", "NaNa"])
def test_text_where_a_number_should_be_is_an_error_with_its_row(word: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path, f'query_id;label;score\na;0;1\na;1;"{word}"\n')
    with pytest.raises(InputError, match=r'^score column "score" must hold numbers: row 1 has ') as caught:
        fr.evaluate_table(path)
    assert repr(word) in str(caught.value)
    with pytest.raises(NotANumber):
        numbers_of_text(pa.array(["1", word]))


def test_nan_in_text_is_nan_and_so_an_error_that_names_the_row(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"NaN.*\brow 1\b|row 1\b.*NaN"):
        fr.evaluate_table(csv_file(tmp_path, "query_id,label,score\na,0,1\na,1,nan\n"))


def test_an_empty_id_is_null_unless_it_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'query column "query_id" must not be null: row 1 is'):
        fr.evaluate_table(csv_file(tmp_path, "query_id,label,score\na,0,1\n,1,1\n"))
    result = fr.evaluate_table(csv_file(tmp_path, 'query_id,label,score\na,0,1\n"",1,1\n'), "RR")
    assert result.query_ids.to_pylist() == ["a", ""]


@pytest.mark.parametrize(
    "text", ["query_id,label,score\n", "query_id,label,score", '"query_id","label","score"\r\n', "\n\nquery_id,label,score\n\n\n"]
)
def test_a_header_alone_is_an_empty_result(text: str, tmp_path: Path) -> None:
    result = fr.evaluate_table(csv_file(tmp_path, text), "RR")
    assert result.n_queries == 0
    assert np.isnan(result.mean()["RR"])


def test_json_lines_keep_the_types_that_are_written(tmp_path: Path) -> None:
    rows = [
        {"q": "2024-01-01", "y": None, "s": 1, "b": True, "z": {"deep": [1]}},
        {"q": "2024-01-01", "y": None, "s": 2, "b": True, "z": "mixed"},
        {"y": 1, "s": 0.5, "q": "12:00", "b": None},
    ]
    path = csv_file(tmp_path, "\n".join(["", *map(json.dumps, rows)]), "t.jsonl")
    [batch] = read_columns(path, query="q", label="y", scores=["s"], by=["b"])
    assert batch.query_ids.to_pylist() == ["2024-01-01", "12:00"]
    assert batch.labels.tolist() == [None, None, 1]
    assert batch.scores["s"].tolist() == [1, 2, 0.5]
    assert batch.by["b"].to_pylist() == [True, None]


def test_json_fields_that_come_later_than_nulls_take_the_type_of_their_role(tmp_path: Path) -> None:
    late = 70_000  # beyond what is looked at
    first = json.dumps({"q": None, "y": None, "s": None, "b": None}) + "\n"
    path = tmp_path / "t.jsonl"
    path.write_text(first * late + json.dumps({"q": "a", "y": 2, "s": 0.5, "b": "x"}) + "\n")
    [batch] = read_columns(path, query="q", label="y", scores=["s"], by=["b"], filter=pc.field("q").is_valid())
    assert (batch.query_ids.to_pylist(), batch.labels.tolist(), batch.by["b"].to_pylist()) == (["a"], [2], ["x"])
    assert batch.first_row == late


def test_json_lines_are_read_in_pieces_of_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written("t.jsonl", to_json_lines)(TABLE, tmp_path)
    rows_together = [json.dumps({"q": "a", "y": row, "s": row}) for row in range(50)]
    late_fraction = csv_file(tmp_path, "\n".join([*rows_together, '{"q": "b", "y": 0.5, "s": 0.5}']), "late.jsonl")
    blank = csv_file(tmp_path, "\n" * 300 + "\n".join(rows_together) + "\n\n", "blank.jsonl")
    for piece in (1, 100, 1000):
        monkeypatch.setattr(formats, "PIECE", piece)
        same(evaluated(path), EXPECTED)
        [batch] = read_columns(late_fraction, query="q", label="y", scores=["s"])
        assert batch.labels.tolist() == batch.scores["s"].tolist() == [*range(50), 0.5]
        [batch] = read_columns(blank, query="q", label="y", scores=["s"])
        assert batch.scores["s"].tolist() == [*range(50)]
        assert batch.scores["s"].dtype == np.int64


# --- filters --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [*("t.parquet", "t.csv", "t.jsonl", "t.feather", "t.orc", "row groups.parquet"), *MEMORY])
def test_a_filter_is_the_same_as_filtering_before(how: str, tmp_path: Path) -> None:
    extra = TABLE.append_column("lang", pa.array(["de" if i % 5 else "fr" for i in range(len(TABLE))]))
    source = written(how, FILES[how])(extra, tmp_path) if how in FILES else MEMORY[how](extra)
    expression = (pc.field("lang") == "de") & (pc.field("t") >= 0.2)
    expected = extra.filter(pc.and_(pc.equal(extra["lang"], "de"), pc.greater_equal(extra["t"], 0.2)))
    same(evaluated(source, filter=expression), evaluated(expected))


def test_a_filter_on_labels_works_in_text_too(tmp_path: Path) -> None:
    for name in ("t.csv", "t.parquet"):
        path = written(name, FILES[name])(TABLE, tmp_path)
        same(evaluated(path, filter=pc.field("y") > 0), evaluated(TABLE.filter(pc.field("y") > 0)))


def test_rows_in_messages_are_those_before_the_filter(tmp_path: Path) -> None:
    table = pa.table(
        {
            "query_id": ["a", "a", "b", None],
            "label": [0, 1, 1, 1],
            "score": [0.5, 0.1, float("nan"), 1.0],
            "keep": [False, True, True, False],
        }
    )
    keep = pc.field("keep")
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        with pytest.raises(InputError, match=r"\brow 2\b"):
            fr.evaluate_table(source, filter=keep)
        with pytest.raises(InputError, match=r"must not be null: row 3 is"):
            fr.evaluate_table(source, filter=~keep)
    lines = "query_id,label,score\nb,0,1\na,0,x\nb,0,1\na,1,1\n"
    with pytest.raises(InputError, match=r"row 1 has 'x'"):
        fr.evaluate_table(csv_file(tmp_path, lines), filter=pc.field("query_id") == "a")


def test_a_filter_that_leaves_nothing_is_an_empty_result(tmp_path: Path) -> None:
    for name in ("t.csv", "t.parquet"):
        path = written(name, FILES[name])(TABLE, tmp_path)
        assert evaluated(path, filter=pc.field("q") == "no such")["s"].n_queries == 0
    assert evaluated(TABLE, filter=pc.field("q") == "no such")["s"].n_queries == 0


@pytest.mark.parametrize(
    ("expression", "groups"),
    [
        (pc.field("y") >= 7, [7, 8, 9]),
        (pc.field("lang") == "de", [0, 1, 2]),  # read as categories, but written as text
        ((pc.field("q") >= "q03") & (pc.field("q") < "q05"), [3, 4]),
        ((pc.field("lang") == "de") & (pc.field("y") == 2), [2]),
        (pc.field("y") > 100, []),
        (~(pc.field("s") < 5), list(range(10))),  # a NaN passes, of which statistics do not tell
        (pc.utf8_length(pc.field("q")) == 3, list(range(10))),
    ],
)
def test_row_groups_that_cannot_pass_the_filter_are_not_read(
    expression: pc.Expression, groups: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table(
        {
            "q": [f"q{i:02d}" for i in range(10) for _ in range(4)],
            "y": [i for i in range(10) for _ in range(4)],
            "s": [float("nan") if row == 2 else row / 4 for row in range(40)],
            "lang": ["de"] * 12 + ["fr"] * 28,
            "row": range(40),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=4)
    read: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def noted(file: pq.ParquetFile, *arguments: Any, row_groups: list[int], **options: Any) -> Any:
        read.extend(row_groups)
        return iter_batches(file, *arguments, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    batches = list(read_columns(tmp_path / "t.parquet", query="q", label="y", scores=["s"], by=["lang"], filter=expression))
    assert read == groups
    expected = table.filter(expression)
    assert [query for batch in batches for query in batch.query_ids.to_pylist()] == list(dict.fromkeys(expected["q"].to_pylist()))
    rows = [batch.source_row(row) for batch in batches for row in range(int(batch.offsets[-1]))]
    assert rows == expected["row"].to_pylist()


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (pc.field("lang") == "de", r'^filter \(lang == "de"\): there is no column "lang"\.$'),
        (pc.field("q") > 3, r"^filter .*: .*no kernel.*\.$"),
        (pc.add(pc.field("t"), 1), r"^filter .*: .*bool.*\.$"),
        ("q == 'a'", r"^filter must be an expression of pyarrow\.compute, such as .*, not \"q == 'a'\"\.$"),
        ([("q", "==", "a")], r"^filter must be an expression"),
    ],
)
def test_a_filter_that_cannot_be_applied_is_one_line(expression: Any, message: str, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    for source in (TABLE, tmp_path / "t.parquet", ds.dataset(TABLE)):
        with pytest.raises(InputError, match=message):
            evaluated(source, filter=expression)


def test_a_file_may_have_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv"))
    try:
        path.write_text("query_id,label,score\na,0,0.5\na,1,0.25\n")
    except OSError:
        pytest.skip("this file system takes names in UTF-8 alone")
    assert fr.evaluate_table(path, "RR").mean() == {"RR": 1 / 2}


def test_a_folder_may_hold_files_with_names_that_are_not_utf8(tmp_path: Path) -> None:
    for name, query in ((b"\xff.csv", "b"), (b"a.csv", "a"), (b"_\xfe.csv", "hidden")):
        try:
            Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_text(f"query_id,label,score\n{query},0,0.5\n{query},1,0.25\n")
        except OSError:
            pytest.skip("this file system takes names in UTF-8 alone")
    result = fr.evaluate_table(tmp_path, "RR")
    assert (result.query_ids.to_pylist(), result["RR"].tolist()) == (["a", "b"], [0.5, 0.5])

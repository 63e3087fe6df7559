"""The same evaluation through every way in gives the same bits."""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from source_files import EXPECTED, FILES, MEMORY, TABLE, evaluated, excel_csv, parts, same, to_csv, values_of, with_strays, written

import fastrank as fr
import fastrank.engine.tables
from fastrank import cli
from fastrank.io.tables import Scattered, read_columns

# --- files ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    path = written(name, FILES[name])(TABLE, tmp_path)
    same(evaluated(path), EXPECTED)
    same(evaluated(str(path)), EXPECTED)


def test_csv_of_pandas_with_a_byte_order_mark_gives_the_same_bits(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    same(evaluated(written("excel.csv", excel_csv)(TABLE, tmp_path)), EXPECTED)


def test_bz2_files_of_the_standard_library_are_read(tmp_path: Path) -> None:
    to_csv()(TABLE, tmp_path / "t.csv")
    (tmp_path / "t.csv.bz2").write_bytes(bz2.compress((tmp_path / "t.csv").read_bytes()))
    same(evaluated(tmp_path / "t.csv.bz2"), EXPECTED)


MANY: dict[str, Callable[[Path], Any]] = {
    "list": lambda folder: parts(folder),
    "tuple of texts": lambda folder: tuple(map(str, parts(folder))),
    "list of CSV files": lambda folder: parts(folder, "csv"),
    "list of JSON lines": lambda folder: parts(folder, "jsonl"),
    "list of patterns": lambda folder: [parts(folder)[0], folder / "part-[12].parquet"],
    "pattern": lambda folder: parts(folder) and folder / "*.parquet",
    "pattern of any depth": lambda folder: parts(folder / "a" / "b") and str(folder / "**" / "*.parquet"),
    "pattern of folders": lambda folder: parts(folder / "run=1") and str(folder / "run=*"),
    "directory": with_strays,
    "URI": lambda folder: FILES["t.parquet"](TABLE, folder / "t.parquet") or (folder / "t.parquet").as_uri(),
    "URI of a directory": lambda folder: with_strays(folder).as_uri(),
    "URI with a pattern": lambda folder: parts(folder / "a") and f"{folder.as_uri()}/*/part-?.parquet".replace("?", "[0-2]"),
    "URI of any depth": lambda folder: parts(folder / "a") and f"{folder.as_uri()}/**/*.parquet",
    "a file named like a pattern": lambda folder: (
        parts(folder)[0].rename(folder / "part[0].parquet") and [folder / f"part{i}.parquet" for i in ("[0]", "-1", "-2")]
    ),
    "open file": lambda folder: io.BytesIO(b"".join(written("t.csv", to_csv())(TABLE, folder).open("rb"))),
    "open Parquet file": lambda folder: written("t.parquet", FILES["t.parquet"])(TABLE, folder).open("rb"),
}


@pytest.mark.parametrize("how", MANY)
def test_files_in_any_number_and_place_give_the_same_bits(how: str, tmp_path: Path) -> None:
    same(evaluated(MANY[how](tmp_path)), EXPECTED)


def test_a_home_directory_may_be_written_as_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    pq.write_table(TABLE, tmp_path / "t.parquet")
    same(evaluated("~/t.parquet"), EXPECTED)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this system")
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_pipe_is_read_once_even_when_its_rows_are_apart(name: str, tmp_path: Path) -> None:
    shuffled = TABLE.take(np.random.default_rng(0).permutation(len(TABLE)))
    content = written(name, FILES[name])(shuffled, tmp_path).read_bytes()
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    feeder.start()
    same(evaluated(tmp_path / "pipe"), evaluated(shuffled))
    feeder.join()


def test_folders_named_key_value_are_columns_of_text(tmp_path: Path) -> None:
    for year in ("2020", "2021"):
        for segment in ("head", "tail", None):
            rows = TABLE.filter((pc.field("year") == year) & (pc.field("seg").is_null() if segment is None else pc.field("seg") == segment))
            folder = tmp_path / "data" / f"year={year}" / f"seg={segment or '__HIVE_DEFAULT_PARTITION__'}"
            folder.mkdir(parents=True)
            pq.write_table(rows.drop_columns(["year", "seg"]), folder / "0.parquet")
    for table in (tmp_path / "data", str(tmp_path / "data" / "*" / "*" / "*.parquet"), (tmp_path / "data").as_uri()):
        for system, result in evaluated(table).items():
            # Queries come in the order of the folders.
            assert values_of(result) == values_of(EXPECTED[system])
            assert json.loads(result.to_json())["slices"] == json.loads(EXPECTED[system].to_json())["slices"]


def test_the_query_itself_and_numbers_may_be_names_of_folders(tmp_path: Path) -> None:
    for query, weight in (("007", "2.5"), ("a/b", "1")):
        folder = tmp_path / f"q={query.replace('/', '%2F')}" / f"w={weight}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"y": [0, 1], "s": [0.5, 0.1]}), folder / "0.parquet")
    result = fr.evaluate_table(tmp_path, "RR", query="q", label="y", score="s", weight="w")
    assert result.query_ids.to_pylist() == ["007", "a/b"]
    assert result.weights.tolist() == [2.5, 1.0]
    assert result["RR"].tolist() == [0.5, 0.5]


def test_what_a_file_holds_comes_before_the_names_of_its_folders(tmp_path: Path) -> None:
    (tmp_path / "y=9").mkdir()
    pq.write_table(pa.table({"q": ["a", "a"], "y": [0, 1], "s": [0.5, 0.1]}), tmp_path / "y=9" / "t.parquet")
    assert fr.evaluate_table(tmp_path, "RR", query="q", label="y", score="s")["RR"].tolist() == [0.5]


def test_files_may_differ_in_the_width_of_their_types(tmp_path: Path) -> None:
    one, other = TABLE.slice(0, 60), TABLE.slice(60)
    one = one.set_column(0, "q", one["q"].cast(pa.large_string())).set_column(2, "y", one["y"].cast(pa.int8()))
    other = other.set_column(0, "q", other["q"].dictionary_encode()).set_column(2, "y", other["y"].cast(pa.float32()))
    other = other.set_column(6, "seg", other["seg"].cast(pa.string_view()))
    pq.write_table(one, tmp_path / "0.parquet")
    with pa.OSFile(str(tmp_path / "1.arrow"), "wb") as file, pa.ipc.new_file(file, other.schema) as writer:
        writer.write_table(other)
    same(evaluated(tmp_path), EXPECTED)


# --- Arrow data and data frames -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", MEMORY)
def test_arrow_data_and_data_frames_give_the_same_bits(how: str) -> None:
    same(evaluated(MEMORY[how](TABLE)), EXPECTED)


INTEGERS = [
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
    pa.uint64(),
    pa.dictionary(pa.int8(), pa.int64()),
]


@pytest.mark.parametrize("of", INTEGERS, ids=str)
def test_integer_ids_of_every_width(of: pa.DataType, tmp_path: Path) -> None:
    ids = pa.array([3, 3, 1, 2], pa.int64())
    table = pa.table(
        {
            "query_id": ids.dictionary_encode() if pa.types.is_dictionary(of) else ids.cast(of),
            "label": [0, 1, 1, 0],
            "score": [0.5, 0.1, 1, 1],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", ds.dataset(table)):
        result = fr.evaluate_table(source, "RR")
        assert result.query_ids.to_pylist() == [3, 1, 2]
        assert result["RR"].tolist() == [0.5, 1.0, 0.0]


def test_ids_that_are_bytes_stay_bytes(tmp_path: Path) -> None:
    table = pa.table({"query_id": pa.array([b"\xff", b"\xff", b"a"]), "label": [0, 1, 1], "score": [0.5, 0.1, 1]})
    pq.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, tmp_path / "t.arrow")
    for source in (table, tmp_path / "t.parquet", tmp_path / "t.arrow"):
        assert fr.evaluate_table(source, "RR").query_ids.to_pylist() == [b"\xff", b"a"]


# --- rows apart -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["t.parquet", "t.csv", "t.jsonl", "t.feather", "t.arrows", "t.orc", "dataset", "pandas", "reader"])
def test_rows_apart_are_brought_together_with_a_note(how: str, tmp_path: Path) -> None:
    shuffled = TABLE.take(np.random.default_rng(0).permutation(len(TABLE)))
    results = evaluated(written(how, FILES[how])(shuffled, tmp_path) if how in FILES else MEMORY[how](shuffled))
    expected = evaluated(shuffled)
    same(results, expected)
    assert results["s"].query_ids.to_pylist() == sorted(set(TABLE["q"].to_pylist()))
    [note] = [note for note in results["s"].notes if note.kind == "regrouped"]
    assert note.count > 10


@pytest.mark.parametrize("how", ["t.parquet", "t.csv", "t.jsonl", "t.feather", "t.arrows", "t.orc", "parts", "dataset"])
def test_a_source_that_turns_out_scattered_is_read_again(how: str, tmp_path: Path) -> None:
    table = pa.concat_tables([TABLE.sort_by("q")] * 2)
    if how == "parts":
        pq.write_table(table.slice(0, 100), tmp_path / "0.parquet")
        pq.write_table(table.slice(100), tmp_path / "1.parquet")
    source = tmp_path if how == "parts" else ds.dataset(table) if how == "dataset" else written(how, FILES[how])(table, tmp_path)
    roles: dict[str, Any] = {"query": "q", "label": "y", "scores": ["s"], "rows_per_batch": 20}
    if how not in ("t.csv", "t.orc"):  # small files of these come in one piece
        with pytest.raises(Scattered):
            list(read_columns(source, **roles))
    again = list(read_columns(source, **roles, regroup=True))
    assert sum(batch.regrouped for batch in again) == 30
    assert [query for batch in again for query in batch.query_ids.to_pylist()] == sorted(set(TABLE["q"].to_pylist()))


def test_the_engine_starts_over_with_a_scattered_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.concat_tables([TABLE.sort_by("q")] * 2)
    pq.write_table(table, tmp_path / "t.parquet")
    monkeypatch.setattr(fastrank.engine.tables, "read_columns", functools.partial(read_columns, rows_per_batch=20))
    same(evaluated(tmp_path / "t.parquet", doc=None), evaluated(table, doc=None))


def test_dictionaries_that_hold_null_are_joined() -> None:
    chunks = [pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(values)) for values in (["a", None], [None, "b"])]
    table = pa.table({"query_id": ["a", "b", "c", "d"], "label": [1] * 4, "score": [1] * 4, "seg": pa.chunked_array(chunks)})
    result = fr.evaluate_table(table, "RR", by="seg")
    assert result.by["seg"].to_pylist() == ["a", None, None, "b"]


# --- from outside -----------------------------------------------------------------------------------------------------------


def command(*arguments: object, stdin: bytes | None = None) -> Result:
    flags = ["--query", "q", "--label", "y", "--score", "s", "-m", "RR"]
    return CliRunner().invoke(cli.commands, ["evaluate", *map(str, arguments), *flags], input=stdin)


def test_the_command_line_takes_uris_patterns_and_standard_input(tmp_path: Path) -> None:
    paths = parts(tmp_path / "run", "csv")
    pq.write_table(TABLE, tmp_path / "t.parquet")
    uri = command((tmp_path / "t.parquet").as_uri(), "--per-query", tmp_path / "out.csv")
    assert uri.exit_code == 0, uri.exception
    assert "30 queries" in uri.stdout
    assert (tmp_path / "out.csv").read_text("utf-8").count("\n") == 30 + 1 + 1  # an id holds a line feed
    rows = paths[0].read_bytes() + b"".join(path.read_bytes().split(b"\n", 1)[1] for path in paths[1:])
    for found in (command(tmp_path / "run" / "*.csv"), command(tmp_path / "run"), command("-", stdin=gzip.compress(rows))):
        assert found.stdout == uri.stdout
    assert "the file is empty" in str(command("-", stdin=b"").exception)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.jsonl"])
def test_a_file_does_not_load_what_only_datasets_need(name: str, tmp_path: Path) -> None:
    path = written(name, FILES[name])(TABLE, tmp_path)
    program = (
        "import sys\n"
        "from fastrank.io.tables import read_columns\n"
        f"[rows] = read_columns({str(path)!r}, query='q', label='y', scores=['s'])\n"
        "print(sorted({'pyarrow.dataset', 'pyarrow.acero', 'pyarrow.orc', 'polars', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""The same evaluation through every way in gives the same bits; what cannot be read is said in one line."""

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
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

import fastrank as fr
import fastrank.engine.tables
from fastrank import cli
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation
from fastrank.io import formats
from fastrank.io.arrow import NotANumber, numbers_of_text
from fastrank.io.tables import Scattered, read_columns

METRICS = ("nDCG@3", "RR", "AP", "NumRel")
ROLES: dict[str, Any] = {"query": "q", "label": "y", "score": ["s", "t"], "doc": "d", "weight": "w", "by": ["seg", "year"]}
# Ids that a reader with types in mind would change.
IDS = [
    "007",
    "7",
    "1e5",
    "100000",
    "NA",
    "null",
    "nan",
    "true",
    "2024-01-01",
    " x",
    "x ",
    'a,"b"',
    "tab\tid",
    "ü",
    "line\nfeed",
    "b;c",
    "{",
    "-0",
]


def made(n_queries: int = 30) -> pa.Table:
    """Lists with ties, unjudged and unretrieved documents, in two systems, whose scores need all their digits."""
    rng = np.random.default_rng(3)
    ids = [*IDS, *(f"q{i}" for i in range(n_queries - len(IDS)))]
    sizes = rng.integers(1, 9, n_queries)
    query = np.repeat(np.arange(n_queries), sizes)
    n = len(query)
    score = rng.choice([0.1, 1 / 3, 1e-300, 5e-324, -2.5, 1e22, 123456789.123456789], n) * rng.choice([1, 1, 3], n)
    return pa.table(
        {
            "q": [ids[i] for i in query],
            "d": [f"{row:03d}" for row in range(n)],
            "y": pa.array(rng.integers(0, 4, n), mask=rng.random(n) < 0.1),
            "s": pa.array(score, mask=rng.random(n) < 0.1),
            "t": np.round(rng.random(n), 1),
            "w": (rng.random(n_queries) + 0.1)[query],
            "seg": pa.array([("head", "tail", None)[i % 3] for i in query], pa.string()),
            "year": [str(2020 + i % 2) for i in query],
        }
    )


TABLE = made()


def evaluated(table: Any, **options: Any) -> dict[str, Evaluation]:
    results = fr.evaluate_table(table, METRICS, **ROLES | options)
    assert isinstance(results, dict)
    return results


EXPECTED = evaluated(TABLE)


def same(results: dict[str, Evaluation], expected: dict[str, Evaluation]) -> None:
    """Equal in every bit."""
    for system, result in expected.items():
        found = results[system]
        assert found.values is not None
        assert result.values is not None
        assert found.values.tobytes() == result.values.tobytes()
        assert found.query_ids.to_pylist() == result.query_ids.to_pylist()
        assert found.to_json() == result.to_json()


def values_of(result: Evaluation) -> dict[Any, bytes]:
    assert result.values is not None
    return {query: row.tobytes() for query, row in zip(result.query_ids.to_pylist(), result.values, strict=True)}


# --- files ----------------------------------------------------------------------------------------------------------------------


def written(name: str, write: Callable[[pa.Table, Path], object]) -> Callable[[pa.Table, Path], Path]:
    def writer(table: pa.Table, folder: Path) -> Path:
        path = folder / name
        write(table, path)
        return path

    return writer


def to_csv(delimiter: str = ",") -> Callable[[pa.Table, Path], object]:
    options = pa.csv.WriteOptions(delimiter=delimiter)
    return lambda table, path: pa.csv.write_csv(table, path, options)


def to_json_lines(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist()), "utf-8")


def to_ipc_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=20)


def compressed(write: Callable[[pa.Table, Path], object], codec: str) -> Callable[[pa.Table, Path], object]:
    def writer(table: pa.Table, path: Path) -> None:
        write(table, path)
        content = path.read_bytes()
        with pa.CompressedOutputStream(str(path), codec) as out:
            out.write(content)

    return writer


def gzip_members(table: pa.Table, path: Path) -> None:
    """As bgzip and concatenation make them."""
    to_csv()(table, path)
    content = path.read_bytes()
    path.write_bytes(gzip.compress(content[:500]) + gzip.compress(content[500:]))


def excel_csv(table: pa.Table, path: Path) -> None:
    """A byte order mark, CRLF, and a column that nobody asks for."""
    path.write_bytes(b"\xef\xbb\xbf")
    text = io.StringIO(newline="")
    table.append_column("note", pa.array(["x"] * len(table))).to_pandas().to_csv(text, index=False, lineterminator="\r\n")
    with path.open("ab") as file:
        file.write(text.getvalue().encode())


FILES: dict[str, Callable[[pa.Table, Path], object]] = {
    "t.parquet": pq.write_table,
    "row groups.parquet": lambda table, path: pq.write_table(table, path, row_group_size=11, compression="zstd"),
    "t.csv": to_csv(),
    "t.tsv": to_csv("\t"),
    "semicolons.csv": to_csv(";"),
    "bars.txt": to_csv("|"),
    "no_suffix": to_csv(),
    "members.csv.gz": gzip_members,
    **{
        f"t.csv.{suffix}": compressed(to_csv(), codec)
        for suffix, codec in (("gz", "gzip"), ("zst", "zstd"), ("bz2", "bz2"), ("lz4", "lz4"))
    },
    "gzip by its bytes.csv": compressed(to_csv(), "gzip"),
    "t.jsonl": to_json_lines,
    "t.ndjson.gz": compressed(to_json_lines, "gzip"),
    "json by its bytes.txt": to_json_lines,
    "t.arrow": lambda table, path: pa.feather.write_feather(table, path, compression="uncompressed"),
    "t.feather": lambda table, path: pa.feather.write_feather(table, path, compression="zstd", chunksize=20),
    "t.arrows": to_ipc_stream,
    "stream.arrow.zst": compressed(to_ipc_stream, "zstd"),
    "t.orc": pa.orc.write_table,
    "t.parquet.gz": compressed(pq.write_table, "gzip"),
    "parquet by its bytes.csv": pq.write_table,
    "orc by its bytes": pa.orc.write_table,
}


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


def parts(folder: Path, suffix: str = "parquet") -> list[Path]:
    """The table in three files; a query may go on in the next one."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{i}.{suffix}" for i in range(3)]
    for i, path in enumerate(paths):
        FILES[f"t.{suffix}"](TABLE.slice(50 * i, 50 if i < 2 else None), path)
    return paths


def with_strays(folder: Path) -> Path:
    parts(folder / "data" / "deep")
    for name in ("_SUCCESS", ".part-0.parquet.crc", "deep/_temporary/x.parquet"):
        (folder / "data" / name).parent.mkdir(exist_ok=True)
        (folder / "data" / name).write_bytes(b"no data")
    return folder / "data"


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


def pandas_frame(table: pa.Table, **options: Any) -> Any:
    return pytest.importorskip("pandas") and table.to_pandas(**options)


def pandas_arrow(table: pa.Table) -> Any:
    pandas = pytest.importorskip("pandas")
    return table.to_pandas(types_mapper=pandas.ArrowDtype)


def polars_frame(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def recoded(table: pa.Table, of: Callable[[pa.DataType], pa.DataType]) -> pa.Table:
    fields = [pa.field(each.name, of(each.type) if pa.types.is_string(each.type) else each.type) for each in table.schema]
    return table.cast(pa.schema(fields))


MEMORY: dict[str, Callable[[pa.Table], Any]] = {
    "record batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=7),
    "dataset": ds.dataset,
    "chunks": lambda table: pa.Table.from_batches(table.to_batches(max_chunksize=7)),
    "large_string": lambda table: recoded(table, lambda _: pa.large_string()),
    "string_view": lambda table: recoded(table, lambda _: pa.string_view()),
    "dictionaries": lambda table: recoded(table, lambda _: pa.dictionary(pa.int16(), pa.string())),
    "narrow labels": lambda table: table.set_column(2, "y", table["y"].cast(pa.uint8())),
    "float labels": lambda table: table.set_column(2, "y", table["y"].cast(pa.float32())),
    "pandas": pandas_frame,
    "pandas, nullable": lambda table: pandas_frame(table).convert_dtypes(),
    "pandas, Arrow": pandas_arrow,
    "pandas, categories": lambda table: pandas_frame(table).astype({"q": "category", "seg": "category"}),
    "pandas, index": lambda table: pandas_frame(table).set_index(["q", "d"]),
    "polars": polars_frame,
    "polars, categories": lambda table: polars_frame(table).cast({"q": pytest.importorskip("polars").Categorical}),
    "duckdb": lambda table: pytest.importorskip("duckdb").from_arrow(table),
}


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


# --- text -----------------------------------------------------------------------------------------------------------------------


def csv_file(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8", newline="")
    return path


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


# --- what cannot be read --------------------------------------------------------------------------------------------------------


def one_line(table: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        evaluated(table, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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
    "no UTF-8": (b"q,d,y,s,t,w,seg,year\n\xff,1,1,1,1,1,1,1\n", "t.csv", "invalid UTF8"),
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

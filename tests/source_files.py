"""One table written in every format and handed over in every make, and what evaluating it must give."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation

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


def csv_file(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, "utf-8", newline="")
    return path


def one_line(table: Any, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        evaluated(table, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)

"""Streams of DuckDB and polars are judged as they come: the bits of their rows, in memory that does not grow with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrank as fr

duckdb = pytest.importorskip("duckdb", reason="needs duckdb: pip install duckdb")
pl = pytest.importorskip("polars", reason="needs polars: pip install 'fastrank-metrics[polars]'")

STREAMS: dict[str, Callable[[str], Any]] = {
    "duckdb relation": lambda path: duckdb.sql(f"select * replace (score * 2 as score) from '{path}'"),
    "duckdb reader": lambda path: duckdb.sql(f"select * replace (score * 2 as score) from '{path}'").to_arrow_reader(1000),
    "polars batches": lambda path: pl.scan_parquet(path).with_columns(pl.col("score") * 2).collect_batches(lazy=True, chunk_size=1000),
}


@pytest.mark.parametrize("limit", [None, 1000])
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("order", ["sorted", "scattered"])
def test_a_stream_has_the_bits_of_its_rows(kind: str, order: str, limit: int | None, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(500), 8) if order == "sorted" else rng.permutation(np.repeat(np.arange(500), 8))
    table = pa.table({"query_id": ids, "label": rng.integers(0, 3, 4000), "score": rng.random(4000), "other": ["x"] * 4000})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=700)
    found = fr.evaluate_table(STREAMS[kind](str(tmp_path / "t.parquet")), "nDCG@10,RR", memory_limit=limit)
    whole = fr.evaluate_table(table.set_column(2, "score", pa.array(table["score"].to_numpy() * 2)), "nDCG@10,RR")
    assert found.values.tobytes() == whole.values.tobytes()
    assert found.query_ids.to_pylist() == whole.query_ids.to_pylist()
    assert found.notes == whole.notes


PROGRAM = """
import resource, sys
import fastrank as fr

def stream(path):
    if sys.argv[1] == "duckdb":
        import duckdb
        return duckdb.sql(f"select * replace (score * 2 as score) from '{path}'")
    import polars as pl
    return pl.scan_parquet(path).with_columns(pl.col("score") * 2).collect_batches(lazy=True, chunk_size=100_000)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

for path in sys.argv[2:]:
    result = fr.evaluate_table(stream(path), "nDCG@10", per_query=False, memory_limit="20MB")
    print(result.n_queries, peak())
"""


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux")
@pytest.mark.parametrize("library", ["duckdb", "polars"])
def test_memory_does_not_grow_with_a_stream(library: str, tmp_path: Path) -> None:
    # As long as the first one is, a stream has filled every buffer on its way; the second one adds six times its rows.
    sizes = (2_000_000, 12_000_000)
    for n in sizes:
        schema = pa.schema({"query_id": pa.int64(), "label": pa.int64(), "score": pa.float64()})
        with pq.ParquetWriter(tmp_path / f"{n}.parquet", schema) as file:
            for first in range(0, n, 100_000):
                row = np.arange(first, first + 100_000)
                file.write_table(pa.table([row // 20, row % 3, row * 7919 % 1000 / 1000], schema=schema))
    paths = [str(tmp_path / f"{n}.parquet") for n in sizes]
    done = subprocess.run([sys.executable, "-c", PROGRAM, library, *paths], capture_output=True, text=True, check=True)
    (n_few, few), (n_many, many) = ([int(word) for word in line.split()] for line in done.stdout.splitlines())
    assert (n_few, n_many) == tuple(n // 20 for n in sizes)
    bytes_a_row = 24
    assert many - few < (sizes[1] - sizes[0]) * bytes_a_row / 2

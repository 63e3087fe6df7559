"""Every way in: from a file, a table or dicts to the means."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastrank as fr
from bench_data import make
from benchmarks import peers
from benchmarks.data import Data, Setting, dicts, trec_files

METRICS = "nDCG@10,RR,AP"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, n_queries: int) -> Path:
    """The data as Parquet and LETOR files."""
    out = tmp_path_factory.mktemp("files")
    with contextlib.redirect_stdout(io.StringIO()):
        make.main(["tenth100", "--out", str(out), "--queries", str(n_queries), "--formats", "parquet,letor"])
    return out


def frame_of(library: str, table: pa.Table) -> Any:
    if (reason := peers.why_absent(library)) is not None:
        pytest.skip(reason)
    if library == "pandas":
        return table.to_pandas()
    import polars as pl

    return pl.from_arrow(table)


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Parquet": lambda out: out / "tenth100.parquet",
    "Arrow table": lambda out: pq.read_table(out / "tenth100.parquet"),
    "Arrow batches": lambda out: pq.read_table(out / "tenth100.parquet").to_reader(),
    "pandas": lambda out: frame_of("pandas", pq.read_table(out / "tenth100.parquet")),
    "polars": lambda out: frame_of("polars", pq.read_table(out / "tenth100.parquet")),
    "LETOR text": lambda out: out / "tenth100.letor",
}


@pytest.mark.parametrize("source", SOURCES)
def test_tables(benchmark: BenchmarkFixture, data: Data, files: Path, source: str) -> None:
    benchmark.group = "tables"
    more = {"scores": files / "tenth100.scores"} if source == "LETOR text" else {}

    def fresh() -> tuple[tuple[Any, str], dict[str, Any]]:
        return (SOURCES[source](files), METRICS), {**more, "threads": 1}  # a reader of batches can be read once

    result = benchmark.pedantic(fr.evaluate_table, setup=fresh, rounds=10, warmup_rounds=1)
    assert result.mean() == pytest.approx(fr.evaluate(*data, metrics=METRICS).mean(), abs=1e-12)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, n_queries: int) -> dict[str, tuple[Any, Any]]:
    """The same judgements and run as TREC files and as dicts."""
    found = trec_files(Setting("suite", folder=tmp_path_factory.mktemp("trec")), "tenth100", n_queries)
    return {"TREC files": (found.qrels, found.run), "dicts of dicts": dicts("tenth100", n_queries)}


@pytest.mark.parametrize("source", ["TREC files", "dicts of dicts"])
def test_runs(benchmark: BenchmarkFixture, runs: dict[str, tuple[Any, Any]], source: str) -> None:
    benchmark.group = "runs"
    qrels, run = runs[source]
    result = benchmark(lambda: fr.evaluate_run(qrels, run, METRICS, threads=1))
    # The files hold every score as the shortest text that gives it back.
    expected = fr.evaluate_run(*runs["TREC files"], METRICS)
    np.testing.assert_allclose(list(result.mean().values()), list(expected.mean().values()), atol=1e-4)

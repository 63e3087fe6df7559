"""Memory: the peak of a process that streams a Parquet file, which must not grow with the file.

It stands in the JSON (``--benchmark-json FILE``), under ``extra_info``.
"""

from __future__ import annotations

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastrank as fr
from benchmarks.child import METRICS
from benchmarks.data import Setting, draw, parquet_file
from benchmarks.timing import child


@pytest.mark.parametrize("times", [1, 10, 100])
@pytest.mark.parametrize("shape", ["fixed100", "lognormal"])
def test_stream(benchmark: BenchmarkFixture, tmp_path_factory: pytest.TempPathFactory, n_queries: int, shape: str, times: int) -> None:
    benchmark.group = f"stream, {shape}"
    path = parquet_file(Setting("suite", folder=tmp_path_factory.getbasetemp()), shape, times * n_queries)
    found: dict[str, Any] = benchmark.pedantic(child, ("stream", str(path), "2"), rounds=1)
    benchmark.extra_info["peak_megabytes"] = round(found["peak_bytes"] / 1e6)
    benchmark.extra_info["seconds"] = found["seconds"]
    data = draw(shape, times * n_queries)
    assert found["mean"] == fr.evaluate(*data, metrics=METRICS).mean()
    assert found["peak_bytes"] < 700e6 + 16 * int(data.sizes.max())

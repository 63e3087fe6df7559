"""Compiling and loading, each in a process of its own: the import, and `fastrank evaluate` with an empty and with a filled cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.rows import EVALUATE
from benchmarks.timing import run_python


@pytest.mark.parametrize("statement", ["pass", "import fastrank", "import fastrank; fastrank.evaluate", "import numba"])
def test_import(benchmark: BenchmarkFixture, statement: str) -> None:
    benchmark.group = "python -c"
    benchmark.pedantic(run_python, ("-c", statement), rounds=5, warmup_rounds=1)


def test_empty_cache(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    benchmark.group = "fastrank evaluate"
    benchmark.pedantic(run_python, EVALUATE, {"kernels": tmp_path}, rounds=1)


def test_filled_cache(benchmark: BenchmarkFixture, tmp_path_factory: pytest.TempPathFactory) -> None:
    benchmark.group = "fastrank evaluate"
    benchmark.pedantic(run_python, EVALUATE, {"kernels": tmp_path_factory.getbasetemp() / "kernels"}, rounds=5, warmup_rounds=1)


def test_every_kernel(benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    benchmark.group = "fastrank warmup"
    benchmark.pedantic(run_python, ("-m", "fastrank", "warmup"), {"kernels": tmp_path}, rounds=1)

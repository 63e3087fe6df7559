"""Statistics: bootstrap resamples, sign flips and shuffles, against scipy and ranx, by draw, flip and permutation.

``python -m pytest benchmarks/bench_comparison.py --queries 100000`` measures on as many queries as the marks speak of. Each benchmark's
``extra_info`` has nanoseconds of processor time per draw and metric (or per flip), the figure to compare: the sides do different numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastrank as fr
from benchmarks import peers
from benchmarks.statistics_rows import FEW, N_METRICS
from fastrank.comparison.intervals import Quantity, intervals, make_plan
from fastrank.comparison.paired import Chance, pairs_of, permutation
from fastrank.comparison.resampling import key_of, shuffled_ranges
from fastrank.comparison.units import units_of


@pytest.fixture
def values(n_queries: int) -> np.ndarray:
    """Values of five metrics, float64[5, n_queries]."""
    return np.random.default_rng(0).beta(0.5, 2, (N_METRICS, n_queries))


def per_unit(benchmark: BenchmarkFixture, run: Callable[[], Any], n_units: int) -> Any:
    """Measure, and note the processor time of one unit of the work."""
    run()
    began = time.thread_time_ns()
    found = run()
    benchmark.extra_info["ns per unit"] = (time.thread_time_ns() - began) / n_units
    benchmark.pedantic(run, rounds=3)
    return found


@pytest.mark.parametrize("n_metrics", [1, N_METRICS])
@pytest.mark.parametrize("method", ["percentile", "bca", "studentised"])
def test_bootstrap(benchmark: BenchmarkFixture, values: np.ndarray, method: str, n_metrics: int) -> None:
    benchmark.group = "bootstrap, per draw and metric"
    n_resamples = 400
    units = units_of(values[:n_metrics], None, None)
    quantities = [Quantity("mean", i) for i in range(n_metrics)]
    plan = make_plan(method, 0.95, n_resamples, 0, 1)
    found = per_unit(benchmark, lambda: intervals(units, quantities, plan), n_resamples * values.shape[1] * n_metrics)
    assert [each.estimate for each in found] == pytest.approx(values[:n_metrics].mean(axis=1))


def test_bootstrap_of_scipy(benchmark: BenchmarkFixture, values: np.ndarray) -> None:
    benchmark.group = "bootstrap, per draw and metric"
    per_unit(benchmark, peers.scipy_bootstrap(values, FEW), FEW * values.size)


def test_sign_flips(benchmark: BenchmarkFixture, values: np.ndarray) -> None:
    benchmark.group = "sign flips, per flip"
    n_resamples = 10_000
    pairs = pairs_of(units_of(values[:2], None, None), [(0, 1)])
    p = per_unit(benchmark, lambda: permutation(pairs, Chance(0, n_resamples, 1)), n_resamples * values.shape[1])
    assert 0 < p[0] <= 1


@pytest.mark.parametrize("peer", [peers.SCIPY_FLIPS, peers.RANX_FLIPS], ids=lambda peer: str(peer.library))
def test_sign_flips_of_others(benchmark: BenchmarkFixture, values: np.ndarray, peer: peers.FlipPeer) -> None:
    benchmark.group = "sign flips, per flip"
    if absent := peers.why_absent(peer.library):
        pytest.skip(absent)
    per_unit(benchmark, peer.prepare(values[:2], FEW), FEW * values.shape[1])


@pytest.mark.parametrize("n_systems", [3, 10, 50])
def test_shuffles(benchmark: BenchmarkFixture, n_queries: int, n_systems: int) -> None:
    benchmark.group = "randomised Tukey HSD, per query and system"
    rows = np.random.default_rng(0).random((n_queries, n_systems))
    per_unit(benchmark, lambda: shuffled_ranges(rows, 100, key_of(0, 2), 1), 100 * rows.size)


@pytest.mark.parametrize("n_systems", [2, 6])
def test_compare(benchmark: BenchmarkFixture, n_queries: int, n_systems: int) -> None:
    benchmark.group = "compare, as called"
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (n_queries, 20))
    systems = {
        f"system {i}": fr.evaluate(labels, 0.1 * i * labels + rng.random(labels.shape), metrics="nDCG@10,RR,AP,P@5,R@10")
        for i in range(n_systems)
    }
    found = benchmark.pedantic(lambda: fr.compare(systems, primary="nDCG@10", threads=1), rounds=3, warmup_rounds=1)
    assert found.differences[0].metric == "nDCG@10"

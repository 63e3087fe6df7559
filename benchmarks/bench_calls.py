"""What a call costs before it has computed anything: small inputs, and names."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastrank as fr
from benchmarks.data import Data, draw
from fastrank import reference

SIZES = {"one query of 10": ("tenth10", 1), "32 queries of 100": ("tenth100", 32)}


@pytest.fixture(params=SIZES)
def small(request: pytest.FixtureRequest, benchmark: BenchmarkFixture) -> Data:
    benchmark.group = request.param
    return draw(*SIZES[request.param])


def expected(data: Data) -> np.ndarray:
    return reference.ndcg(*data, k=10)


def test_function(benchmark: BenchmarkFixture, small: Data) -> None:
    np.testing.assert_allclose(benchmark(lambda: fr.ndcg(*small, k=10)), expected(small), atol=1e-12)


def test_evaluate(benchmark: BenchmarkFixture, small: Data) -> None:
    result = benchmark(lambda: fr.evaluate(*small, metrics="nDCG@10"))
    np.testing.assert_allclose(result.values[:, 0], expected(small), atol=1e-12)


def test_evaluate_and_mean(benchmark: BenchmarkFixture, small: Data) -> None:
    mean = benchmark(lambda: fr.evaluate(*small, metrics="nDCG@10").mean())
    assert mean["nDCG@10"] == pytest.approx(expected(small).mean(), abs=1e-12)


def test_labelled_queries(benchmark: BenchmarkFixture, small: Data) -> None:
    queries = fr.LabelledQueries(small.labels, small.offsets)
    result = benchmark(lambda: queries.evaluate(small.scores, metrics="nDCG@10"))
    np.testing.assert_allclose(result.values[:, 0], expected(small), atol=1e-12)


def test_update_of_an_evaluator(benchmark: BenchmarkFixture, small: Data) -> None:
    evaluator = fr.Evaluator("nDCG@10", per_query=False)
    benchmark(lambda: evaluator.update(*small))
    assert evaluator.result().mean()["nDCG@10"] == pytest.approx(expected(small).mean(), abs=1e-12)


def test_names(benchmark: BenchmarkFixture) -> None:
    benchmark.group = "names"
    assert len(benchmark(lambda: fr.parse_metrics("nDCG@10,RR,AP@100,P.5,10"))) == 5

"""Ranking: by list length and share of relevant documents, by the rule for ties, and by the types of labels and scores."""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import fastrank as fr
from benchmarks.data import Data, draw
from fastrank import reference
from fastrank.convention import TIE_RULES

# Of each about as many documents as `--queries` lists of 100 hold.
LENGTHS = {"tenth10": 10, "tenth20": 20, "tenth100": 100, "tenth1000": 1000, "five1000": 1000, "tenth10000": 10_000}


@pytest.mark.parametrize("shape", LENGTHS)
def test_scores_of_each_shape(benchmark: BenchmarkFixture, n_queries: int, shape: str) -> None:
    benchmark.group = "by shape"
    data = draw(shape, max(1, 100 * n_queries // LENGTHS[shape]))
    found = benchmark(lambda: fr.evaluate(*data, metrics="RR", threads=1)["RR"])
    np.testing.assert_allclose(found, reference.reciprocal_rank(*data), atol=1e-12)


def test_labels_in_rank_order(benchmark: BenchmarkFixture, data: Data) -> None:
    benchmark.group = "by shape"
    found = benchmark(lambda: fr.evaluate(data.labels, None, data.offsets, metrics="RR", threads=1)["RR"])
    np.testing.assert_allclose(found, reference.reciprocal_rank(data.labels, None, data.offsets), atol=1e-12)


@pytest.mark.parametrize("ties", TIE_RULES)
def test_ties(benchmark: BenchmarkFixture, n_queries: int, ties: str) -> None:
    benchmark.group = "by rule for ties, ten documents to a score"
    data = draw("ties", n_queries)
    ids = np.random.default_rng(0).permutation(data.n_documents)
    found = benchmark(lambda: fr.evaluate(*data, metrics="RR", ties=ties, doc_ids=ids if ties == "docid" else None, threads=1)["RR"])
    # Ids are compared as text.
    expected = reference.reciprocal_rank(*data, ties=ties, doc_ids=ids.astype("U20").astype("S20") if ties == "docid" else None)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
def test_types_of_scores(benchmark: BenchmarkFixture, data: Data, kind: str) -> None:
    benchmark.group = "by type of scores"
    scores = (data.scores * (1e6 if kind == "int64" else 1)).astype(kind)
    found = benchmark(lambda: fr.evaluate(data.labels, scores, data.offsets, metrics="RR", threads=1)["RR"])
    np.testing.assert_allclose(found, reference.reciprocal_rank(data.labels, scores, data.offsets), atol=1e-12)


@pytest.mark.parametrize("kind", ["bool", "uint8", "int64", "float32", "float64"])
def test_types_of_labels(benchmark: BenchmarkFixture, data: Data, kind: str) -> None:
    benchmark.group = "by type of labels"
    labels = data.labels.astype(kind)
    found = benchmark(lambda: fr.evaluate(labels, data.scores, data.offsets, metrics="RR", threads=1)["RR"])
    np.testing.assert_allclose(found, reference.reciprocal_rank(*data), atol=1e-12)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", ["tenth100", "lognormal", "zipf"])
def test_threads(benchmark: BenchmarkFixture, n_queries: int, shape: str, threads: int) -> None:
    benchmark.group = f"threads, {shape}"
    data = draw(shape, 10 * n_queries)
    found = benchmark(lambda: fr.evaluate(*data, metrics="nDCG@10,RR", threads=threads).values)
    np.testing.assert_array_equal(found, fr.evaluate(*data, metrics="nDCG@10,RR", threads=1).values)

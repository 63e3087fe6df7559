"""Each metric family of the table that maps families to peers: ours, the reference, and the other programs, from flat arrays to values.

A peer's figure includes bringing the arrays into the form that it takes, as its users must.
"""

from __future__ import annotations

import numpy as np
import pytest
from metric_peers import Peer
from metric_table import PEERS, TABLE, instances, reference_of
from pytest_benchmark.fixture import BenchmarkFixture
from strategies import Batch

import fastrank as fr
from benchmarks.data import Data

# Pairs of metrics and rules for ties that are known by their first instance.
FAMILIES = {family: found[0] for family in TABLE if (found := instances(family, "average") or instances(family, "worst"))}


@pytest.mark.parametrize("family", FAMILIES)
def test_ours(benchmark: BenchmarkFixture, data: Data, family: str) -> None:
    benchmark.group = family
    metric = FAMILIES[family]
    result = benchmark(lambda: fr.evaluate(*data, metrics=metric, threads=1))
    np.testing.assert_allclose(result[metric], reference_of(metric)(*data), rtol=0, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_reference(benchmark: BenchmarkFixture, data: Data, family: str) -> None:
    benchmark.group = family
    compute = reference_of(FAMILIES[family])
    benchmark(lambda: compute(*data))


def fitting(peer: Peer, data: Data) -> Batch:
    """The data as a peer can take it."""
    labels, scores = data.labels.astype(np.float64), data.scores.astype(np.float64)
    if peer.binary:
        labels = np.minimum(labels, 1)
    batch = Batch(labels, scores, data.offsets)
    if peer.both_classes:
        relevant = np.add.reduceat(labels > 0, data.offsets[:-1])
        kept = (relevant > 0) & (relevant < data.sizes)
        rows = np.repeat(kept, data.sizes)
        batch = Batch(labels[rows], scores[rows], np.append(0, np.cumsum(data.sizes[kept])))
    return batch.untied() if peer.untied else batch


@pytest.mark.parametrize("side", ["ours", "theirs"])
@pytest.mark.parametrize("peer", PEERS, ids=str)
def test_peer(benchmark: BenchmarkFixture, data: Data, peer: Peer, side: str) -> None:
    if (reason := peer.why_absent()) is not None:
        pytest.skip(reason)
    benchmark.group = f"{peer.metric.family}: {peer}"
    batch = fitting(peer, data)

    def ours() -> np.ndarray:
        result = fr.evaluate(*batch, metrics=peer.metric, convention=peer.convention, ties=peer.ties, threads=1)
        return result[result.metrics[0]]

    def theirs() -> np.ndarray | float:
        return peer.values(*batch)

    expected, found = ours(), theirs()
    np.testing.assert_allclose(expected.mean() if peer.mean_only else expected, found, rtol=0, atol=peer.tolerance)
    benchmark.pedantic(ours if side == "ours" else theirs, rounds=5, warmup_rounds=1)

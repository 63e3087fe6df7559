"""Evaluation loops of networks: an epoch's metrics as other libraries' users reckon them, and here."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Data, Setting, draw
from benchmarks.peers import why_absent

MARK = Mark("faster", 100.0)
# Their name, and ours under convention="torchmetrics".
RETRIEVAL = (("RetrievalNormalizedDCG", "nDCG@10"), ("RetrievalMRR", "RR@10"))


def networks(setting: Setting) -> Iterator[Comparison]:
    """`update` and `compute` of 10,000 lists of 20, one thread; then one evaluator of sentence-transformers."""
    data = draw("tenth20", setting.queries(10_000, small=True))
    for theirs, ours in RETRIEVAL:
        for ids in ("indexes", "offsets"):
            yield _torch(data, theirs, ours, ids)
    yield _retrieval(setting.queries(2_000, small=True))


def _torch(data: Data, theirs: str, ours: str, ids: str) -> Comparison:
    absent = why_absent("torch") or why_absent("torchmetrics")
    calls: list[Callable[[], Any]] = [lambda: 0.0] * 2
    if absent is None:
        import torch
        from torchmetrics import retrieval

        from fastrank.training.torch import RankingMetric

        torch.set_num_threads(1)
        scores, labels = torch.from_numpy(data.scores.copy()), torch.from_numpy((data.labels > 0).astype(np.int64))
        queries, offsets = torch.from_numpy(data.query_ids.astype(np.int64)), torch.from_numpy(data.offsets.copy())
        made = RankingMetric(ours, convention="torchmetrics", threads=1), getattr(retrieval, theirs)(top_k=10)
        given = {"indexes": queries} if ids == "indexes" else {"offsets": offsets}
        calls = [lambda: _epoch(made[0], scores, labels, given), lambda: _epoch(made[1], scores, labels, {"indexes": queries})]
    one, other = Call(f"RankingMetric, {ours}, by {ids}", calls[0], 1), Call(f"torchmetrics {theirs}", calls[1], 1)
    difference = {"difference": lambda: abs(one.run() - other.run()), "tolerance": 1e-5}  # theirs is in float32
    return Comparison(data.title, data.n_documents, data.n_queries, one, other, MARK, absent=absent, **difference)


def _epoch(metric: Any, scores: Any, labels: Any, named: dict[str, Any]) -> float:
    metric.reset()
    metric.update(scores, labels, **named)
    return float(metric.compute())


def _retrieval(n_queries: int) -> Comparison:
    """All metrics of sentence-transformers' evaluator of retrieval, from the hits: 100 of 20,000 documents a query."""
    absent = why_absent("sentence_transformers")
    calls: list[Callable[[], Any]] = [dict, dict]
    if absent is None:
        generator = np.random.default_rng(0)
        documents = generator.integers(0, 20_000, (n_queries, 100))
        hits = [[{"corpus_id": f"d{i}", "score": float(-rank)} for rank, i in enumerate(dict.fromkeys(row))] for row in documents.tolist()]
        corpus = {f"d{i}": "" for i in range(20_000)}
        queries = {f"q{i}": "" for i in range(n_queries)}
        relevant = {f"q{i}": {f"d{j}" for j in [*documents[i, :40:8].tolist(), i]} for i in range(n_queries)}
        modules = ("fastrank.training.sentence_transformers", "sentence_transformers.sentence_transformer.evaluation")
        makers = [importlib.import_module(module).InformationRetrievalEvaluator for module in modules]
        calls = [functools.partial(make(queries, corpus, relevant).compute_metrics, hits) for make in makers]
    names = "InformationRetrievalEvaluator.compute_metrics"
    one, other = Call(f"{names} here", calls[0], 1), Call(f"sentence-transformers {names}", calls[1], 1)

    def difference() -> float:
        values, others = one.run(), other.run()
        return max(abs(values[name][k] - value) for name, means in others.items() for k, value in means.items())

    return Comparison(
        f"{n_queries:,} × 100", n_queries * 100, n_queries, one, other, Mark("faster", 1.0), difference=difference, absent=absent
    )

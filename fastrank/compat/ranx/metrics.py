"""ranx's metrics as functions of judgements and a ranking: float64[n_queries].

Each takes `Qrels` and `Run`, dicts of dicts, or rows of document ids and labels or scores per query, as ranx does; `k`: look at the
first k documents, 0 for all; `rel_lvl`: the lowest label that counts as relevant.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from fastrank.compat.ranx.data import Qrels, as_qrels, as_run
from fastrank.engine.runs import evaluate_run
from fastrank.errors import InputError
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import ranx_metric

__all__ = [
    "average_precision",
    "bpref",
    "dcg",
    "dcg_burges",
    "f1",
    "hit_rate",
    "hits",
    "ndcg",
    "ndcg_burges",
    "precision",
    "r_precision",
    "rank_biased_precision",
    "recall",
    "reciprocal_rank",
]

_NAMES = ("hits", "hit_rate", "precision", "recall", "f1", "r-precision", "mrr", "map", "ndcg", "ndcg_burges", "dcg", "dcg_burges", "bpref")


def read_metric(name: str) -> Metric:
    """The metric that ranx means by a name such as ``"ndcg@10-l2"`` or ``"rbp.95"``. Errors: those of ranx."""
    head = name.partition("-l")[0]
    if "rbp" in head and "." not in head and "@" not in head:
        raise ValueError("RBP requires persistence value. Example: `rpb.95`")
    family, _, cutoff = head.partition("@")
    if "rbp" not in head and cutoff and int(cutoff) < 0:
        raise AssertionError("k must be grater or equal to 0")
    try:
        return ranx_metric(name)
    except InputError as error:
        if family.partition(".")[0] in (*_NAMES, "rbp"):
            raise
        known = ", ".join(f"`{each}`" for each in (*_NAMES, "rbp.95"))
        raise ValueError(f"Metric {family} not supported. Supported metrics are {known}.") from error


def values_of(qrels: Any, run: Any, metrics: list[Metric], threads: int | None = None) -> list[np.ndarray]:
    """The values of each metric, float64[n_queries]: in the order of the queries' ids for `Qrels`, else in that of the qrels."""
    judged, ranked = as_qrels(qrels), as_run(run)
    if not len(judged):
        return [np.empty(0) for _ in metrics]
    result = evaluate_run(judged, ranked, metrics, convention="ranx", threads=threads)
    values = [result[metric] for metric in metrics]
    if isinstance(qrels, Qrels):
        assert result.query_ids is not None
        names = list(map(str, result.query_ids.to_pylist()))
        order = sorted(range(len(names)), key=names.__getitem__)
        values = [column[order] for column in values]
    return values


def _function(metric: str, name: str, title: str) -> Callable[..., np.ndarray]:
    def function(qrels: Any, run: Any, k: int = 0, rel_lvl: int = 1) -> np.ndarray:
        if k < 0:
            raise AssertionError("k must be grater or equal to 0")
        [values] = values_of(qrels, run, [read_metric(f"{metric}@{k}-l{rel_lvl}")])
        return values

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{title} of each query."
    return function


hits = _function("hits", "hits", "The number of relevant documents among the first k")
hit_rate = _function("hit_rate", "hit_rate", "1 if there is a relevant document among the first k, else 0,")
precision = _function("precision", "precision", "The share of relevant documents among the first k")
recall = _function("recall", "recall", "The share of the relevant documents that is among the first k")
f1 = _function("f1", "f1", "The harmonic mean of precision and recall at k")
r_precision = _function("r-precision", "r_precision", "The precision at the number of relevant documents")
reciprocal_rank = _function("mrr", "reciprocal_rank", "1 / the rank of the first relevant document")
average_precision = _function("map", "average_precision", "The mean of the precisions at all relevant documents")
dcg = _function("dcg", "dcg", "Discounted cumulative gain, gain = label,")
dcg_burges = _function("dcg_burges", "dcg_burges", "Discounted cumulative gain, gain = 2^label - 1,")
ndcg = _function("ndcg", "ndcg", "DCG divided by that of the ideal ranking, gain = label,")
ndcg_burges = _function("ndcg_burges", "ndcg_burges", "DCG divided by that of the ideal ranking, gain = 2^label - 1,")
bpref = _function("bpref", "bpref", "Binary preference")


def rank_biased_precision(qrels: Any, run: Any, p: float, rel_lvl: int = 1) -> np.ndarray:
    """Rank-biased precision of each query with persistence p, gain = label: it may exceed 1."""
    metric: Any = read_metric(f"rbp.5-l{rel_lvl}")
    [values] = values_of(qrels, run, [dataclasses.replace(metric, p=p)])
    return values

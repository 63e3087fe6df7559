"""Tables that are spread over the parts of a cluster, and what must be alike in every result of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

METRICS = "nDCG@10,RR,AP,DCG(gain='linear')"
OPTIONS: dict[str, Any] = {"weight": "weight", "by": "part", "n_resamples": 100, "per_query": True}


def rows(n: int = 4000, seed: int = 0) -> pa.Table:
    """Queries of 1 to 9 documents, sorted by id, with ties, nulls, weights and slices."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(n), rng.integers(1, 10, n))[:n]
    labels = pa.array(rng.integers(0, 4, n), mask=rng.random(n) < 0.1)
    scores = pa.array(rng.integers(0, 5, n).astype(np.float64), mask=rng.random(n) < 0.1)
    names = pa.array([f"q{q:05d}" for q in query])
    return pa.table({"query_id": names, "label": labels, "score": scores, "weight": 1 + query % 3 / 7, "part": pa.array(query % 3)})


TABLE = rows()


def judgements(seed: int, n_queries: int = 200) -> tuple[pa.Table, pa.Table]:
    """Qrels and a run that share most queries and documents, rows in any order."""
    rng = np.random.default_rng(seed)

    def side(first: int, n: int) -> dict[str, Any]:
        pairs = np.unique(rng.integers(0, [n_queries, 30], (n, 2)), axis=0)
        pairs = rng.permutation(pairs[pairs[:, 0] >= first])
        return {"query_id": [f"q{q}" for q in pairs[:, 0]], "doc_id": [f"d{d}" for d in pairs[:, 1]]}

    qrels, run = side(5, 900), side(0, 2500)
    kept = [i for i, query in enumerate(run["query_id"]) if query not in ("q7", "q11")]
    run = {name: [values[i] for i in kept] for name, values in run.items()}
    qrels["label"] = rng.integers(-1, 4, len(qrels["doc_id"]))
    run["score"] = rng.integers(0, 9, len(run["doc_id"])) / 4
    return pa.table(qrels), pa.table(run)


def bits(result: Any) -> tuple[Any, ...]:
    """Everything in a result but the way in which its rows were brought together."""
    values = None if result.values is None else result.values.tobytes()
    ids = None if result.query_ids is None else result.query_ids.to_pylist()
    notes = [note for note in result.notes if note.kind not in ("plan", "regrouped")]
    resampled = None if result.replicates is None else result.replicates.tobytes()
    return result.n_queries, values, ids, result.moments, result.slice_moments, notes, result.no_relevant, resampled


def by_id(result: Any) -> dict[str, bytes]:
    """The bits of each query's values."""
    return {query: row.tobytes() for query, row in zip(result.query_ids.to_pylist(), result.values, strict=True)}


def plan_of(result: Any) -> str:
    """The plan that the result's notes tell of."""
    (note,) = (note for note in result.notes if note.kind == "plan")
    return str(note.message)

"""Failures that users met in tools of this kind: how an entry of field_reports.jsonl becomes a test.

Qrels and runs are joined into the rows that `evaluate` takes: a judged document that was not retrieved has no score, an unjudged one
no label. `LEFT` lists the entries that arrays and tables cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import conformance
import numpy as np
import pytest

import fastrank as fr

conformance.require()

_TEXT = "text files of qrels and runs"
_COMPARE = "comparison of several runs"
_CLICKS = "clicks"
LEFT = {
    29: "queries of a run without qrels: dicts of qrels and runs",
    31: _TEXT,
    75: "interpolated precision, and the two versions of trec_eval",
    77: _TEXT,
    79: _TEXT,
    83: _TEXT,
    85: _TEXT,
    87: _TEXT,
    89: _TEXT,
    91: _TEXT,
    121: "no data in it: a read-only cache directory, tested with the kernels",
    123: "no data in it: a call after os.fork, tested with the kernels",
    125: "no data in it: memory, a matter of the benchmarks",
    127: "no data in it: upper bounds of dependencies, tested with the packaging",
    129: _COMPARE,
    133: _COMPARE,
    135: _COMPARE,
    137: _CLICKS,
    139: _CLICKS,
}
TESTED: set[int] = set()

Qrels = Mapping[str, Mapping[str, float]]
Values = dict[str, Any]


def report(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a test of an entry's `given` (its input) and `right` (its values; empty where it has none)."""
    entry = conformance.field_reports()[number]
    assert number not in TESTED
    TESTED.add(number)
    return pytest.mark.parametrize(("given", "right"), [pytest.param(entry["input"], entry["right"].get("values", {}), id=str(number))])


# --- from qrels and runs to rows ---------------------------------------------------------------------------------------------------


def masked(values: Iterable[float | None], dtype: Any = np.float64) -> np.ma.MaskedArray:
    listed = list(values)
    data = np.array([0 if value is None else value for value in listed], dtype)
    return np.ma.MaskedArray(data, [value is None for value in listed])


def joined(qrels: Qrels, run: Qrels, dtype: Any = np.float64) -> dict[str, Any]:
    """Arguments of `evaluate`: per judged query, retrieved documents in the order of the run, then the other judged ones."""
    rows = [
        (query, doc, labels.get(doc), run.get(query, {}).get(doc))
        for query, labels in qrels.items()
        for doc in dict.fromkeys([*run.get(query, {}), *labels])
    ]
    queries, docs, label, score = zip(*rows, strict=True)
    return {"labels": masked(label), "scores": masked(score, dtype), "query_ids": list(queries), "doc_ids": list(docs)}


def ours(name: str) -> str:
    """trec_eval's names of measures in a call under the default convention, whose gain is another."""
    return "nDCG(gain='linear')" if name == "ndcg" else name


def judged(
    qrels: Qrels, run: Qrels, names: Iterable[str], *, ties: str | None = "docid", dtype: Any = np.float64, **options: Any
) -> Values:
    """Values by query and means, both by the names asked for."""
    asked = list(names)
    result = fr.evaluate(**joined(qrels, run, dtype), metrics=[ours(name) for name in asked], ties=ties, **options)
    ids = result.query_ids.to_pylist()
    return {
        "per_query": {query: {name: result[ours(name)][q] for name in asked} for q, query in enumerate(ids)},
        "mean": {name: mean(result, ours(name)) for name in asked},
    }


def mean(result: fr.Evaluation, name: str) -> float:
    return list(result.mean().values())[result.metrics.index(fr.parse_metric(name, result.convention))]


def agrees(found: Any, right: Any) -> None:
    """Both have the same names, and values within the last bits."""
    if isinstance(right, Mapping):
        assert set(found) == set(right)
        for name in right:
            agrees(found[name], right[name])
    else:
        assert found == pytest.approx(right, rel=0, abs=1e-12)


def check(qrels: Qrels, run: Qrels, right: Values, **options: Any) -> None:
    """Values by query and means are those of an entry."""
    agrees(judged(qrels, run, right["mean"], **options), right)


def value(name: str, labels: Any, scores: Any = None, **options: Any) -> float:
    """One metric of one query."""
    return fr.evaluate(labels, scores, metrics=name, **options).values.item()


def in_order(ranking: Iterable[str]) -> dict[str, float]:
    return {doc: float(-rank) for rank, doc in enumerate(ranking)}

"""The row of prefix curves: a metric of every prefix of a stream, against ranking each prefix anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastrank as fr
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting, draw
from benchmarks.peers import why_absent

Curve = Callable[[], np.ndarray]


def prefixes(setting: Setting) -> Iterator[Comparison]:
    """As many documents as a loop can take, and 100,000; a tenth is relevant, and no scores are equal."""
    labels, scores = _stream(setting.queries(2_000))
    yield _compare(labels, scores, "nDCG", Call("NumPy, a loop over the prefixes", _in_numpy(labels, scores), 1))
    absent = why_absent("sklearn")
    loop = (lambda: None) if absent else _in_sklearn(labels, scores)
    yield _compare(labels, scores, "nDCG(gain='linear')", Call("scikit-learn ndcg_score, a loop over the prefixes", loop, 1), absent)
    yield _compare(*_stream(setting.queries(100_000)), "nDCG", None)


def _stream(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and distinct scores of one stream."""
    data = draw("tenth10", -(-n // 10))
    return data.labels[:n], np.argsort(np.argsort(data.scores[:n], kind="stable")).astype(np.float64)


def _compare(labels: np.ndarray, scores: np.ndarray, metric: str, other: Call | None, absent: str | None = None) -> Comparison:
    def curve() -> np.ndarray:
        return fr.analysis.prefix_curve(labels, scores, metric, threads=1)[metric][0]

    options: dict[str, Any] = {} if other is None else {"difference": lambda: float(np.abs(curve() - other.run()).max())}
    n = len(labels)
    mark = Mark("seconds") if other is None else Mark()
    return Comparison(f"{n:,} prefixes", n, 1, Call(f"fastrank prefix_curve, {metric}", curve, 1), other, mark, absent=absent, **options)


def _in_numpy(labels: np.ndarray, scores: np.ndarray) -> Curve:
    gain, discount = 2.0**labels - 1, 1 / np.log2(np.arange(2, len(labels) + 2))

    def ndcg(n: int) -> float:
        ideal = np.sort(gain[:n])[::-1] @ discount[:n]
        return float(gain[:n][np.argsort(-scores[:n], kind="stable")] @ discount[:n] / ideal) if ideal else 0.0

    return lambda: np.array([ndcg(n) for n in range(1, len(labels) + 1)])


def _in_sklearn(labels: np.ndarray, scores: np.ndarray) -> Curve:
    """It does not take one document alone."""
    from sklearn.metrics import ndcg_score

    first = float(labels[0] > 0)
    return lambda: np.array([first, *(ndcg_score(labels[None, :n], scores[None, :n]) for n in range(2, len(labels) + 1))])

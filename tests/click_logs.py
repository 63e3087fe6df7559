"""Click logs for tests, and what plain loops over their rows say of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from fastrank.clicks import ClickLog


def cells_log(cells: list[tuple[Any, int, int, int]], **options: Any) -> ClickLog:
    """A log of sessions of one document, from (document, position, impressions, clicks)."""
    rows = [(doc, position, i < clicks) for doc, position, n, clicks in cells for i in range(n)]
    doc, position, click = zip(*rows, strict=True)
    return ClickLog(np.arange(len(rows) + 1), list(doc), list(click), position=list(position), **options)


def random_log(
    seed: int,
    n_sessions: int = 60,
    *,
    longest: int = 6,
    n_queries: int = 4,
    n_docs: int = 9,
    weighted: bool = False,
    clustered: bool = False,
    gaps: bool = False,
) -> ClickLog:
    """Ragged sessions, some empty, of documents in random order."""
    generator = np.random.default_rng(seed)
    sizes = generator.integers(0, longest + 1, n_sessions)
    offsets = np.append(0, np.cumsum(sizes))
    doc = np.concatenate([generator.permutation(n_docs)[:n] for n in sizes] or [np.zeros(0, int)]).astype(np.int64)
    position = None
    if gaps:
        position = np.concatenate([np.sort(generator.permutation(longest + 2)[:n]) + 1 for n in sizes])
    return ClickLog(
        offsets,
        doc,
        generator.random(len(doc)) < 0.35,
        generator.integers(0, n_queries, n_sessions),
        position,
        generator.integers(0, max(n_sessions // 5, 1), n_sessions) if clustered else None,
        generator.integers(0, 4, n_sessions).astype(float) if weighted else None,
    )


def shown_in_two_orders(
    seed: int, n_sessions: int = 20_000, n_queries: int = 500, k: int = 5, n_docs: int = 7
) -> tuple[np.ndarray, ClickLog]:
    """The true propensities and a log by the position-based model, in which three rankers show good documents higher."""
    generator = np.random.default_rng(seed)
    theta = 1 / np.arange(1, k + 1)
    relevant = generator.beta(1, 4, (n_queries, n_docs))
    orders = np.stack([np.argsort(-(relevant + noise * generator.random((n_queries, n_docs))), axis=1)[:, :k] for noise in (0.1, 0.3, 0.6)])
    query = generator.integers(0, n_queries, n_sessions)
    docs = orders[generator.integers(0, 3, n_sessions), query]
    click = generator.random((n_sessions, k)) < relevant[query[:, None], docs] * theta
    return theta, ClickLog(np.arange(n_sessions + 1) * k, docs.ravel(), click.ravel(), query)


def rows_of(log: ClickLog) -> list[dict[str, Any]]:
    """Every row with what belongs to it."""
    rows = []
    for s, (start, stop) in enumerate(itertools.pairwise(log.offsets.tolist())):
        previous = 0
        for i in range(start, stop):
            rows.append(
                {
                    "row": i,
                    "session": s,
                    "query": int(log.query[s]),
                    "pair": int(log.qd[i]),
                    "position": int(log.position[i]),
                    "click": int(log.click[i]),
                    "weight": float(log.weights[s]),
                    "cluster": s if log.cluster is None else int(log.cluster[s]),
                    "previous": previous,
                }
            )
            previous = int(log.position[i]) if log.click[i] else previous
    return rows

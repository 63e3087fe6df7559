"""Systems to compare, drawn at random or value by value."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastrank as fr

QUALITIES = {"a": 0.2, "b": 0.35, "c": 0.36, "d": 0.7}
METRICS = ["nDCG@10", "RR", "P@1"]


def labels_and_scores(n_queries: int, qualities: dict[str, float], seed: int = 0, n_documents: int = 12) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (n_queries, n_documents))
    shared = rng.normal(size=labels.shape)
    return labels, {name: quality * labels + shared + 0.7 * rng.normal(size=labels.shape) for name, quality in qualities.items()}


def systems(
    n_queries: int = 60, qualities: dict[str, float] | None = None, metrics: Any = METRICS, seed: int = 0, **options: Any
) -> dict[str, fr.Evaluation]:
    labels, scores = labels_and_scores(n_queries, qualities or {"old": 0.3, "new": 0.6}, seed)
    return {name: fr.evaluate(labels, each, metrics=metrics, **options) for name, each in scores.items()}


def per_query(one: list[float], other: list[float], **options: Any) -> dict[str, fr.Evaluation]:
    """Two systems whose P@10 per query is what is asked for, in tenths."""

    def judged(values: list[float]) -> fr.Evaluation:
        lists = [[1] * round(10 * value) + [0] * (10 - round(10 * value)) for value in values]
        return fr.evaluate(np.array(lists), metrics=["P@10"], **options)

    return {"one": judged(one), "other": judged(other)}


def compare(evaluations: Any, **options: Any) -> fr.Comparison:
    """`fr.compare`, with few resamples where none are named: as plain Python the kernels are slow."""
    return fr.compare(evaluations, **({"n_resamples": 200} | options))


def kinds(found: fr.Comparison) -> list[str]:
    return [note.kind for note in found.notes]

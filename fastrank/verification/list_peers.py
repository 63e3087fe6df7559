"""The programs that `verify` asks about labels and scores: scikit-learn, LightGBM and XGBoost, a query at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fastrank.verification.peers import Answers, Peer, library
from fastrank.verification.query_sets import QuerySet

_KS = (1, 3, 5, 20)
# What LightGBM takes; XGBoost takes a label more.
_LARGEST_LABEL, _LONGEST_LIST = 30, 10_000


def _each(
    queries: QuerySet, accepts: Callable[[np.ndarray], bool], values: Callable[[np.ndarray, np.ndarray], Mapping[str, float]]
) -> Answers:
    """The values of each query whose labels are accepted."""
    answers: Answers = {}
    for query, labels, scores in queries.lists():
        if accepts(labels):
            for name, value in values(labels, scores).items():
                answers.setdefault(name, {})[query] = value
    return answers


def sklearn_peer() -> Peer:
    """scikit-learn: lists of two documents and more, labels from 0 up."""
    metrics, version = library("sklearn.metrics", "scikit-learn")
    names = {f"{name}_score(k={k})": f"{ours}{at}" for name, ours in (("dcg", "DCG"), ("ndcg", "nDCG")) for k, at in _cutoffs()}

    def values(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        return {
            f"{name}(k={k})": float(getattr(metrics, name)([labels], [scores], k=k))
            for name, (k, _) in itertools.product(("dcg_score", "ndcg_score"), _cutoffs())
        }

    def ask(queries: QuerySet) -> Answers:
        return _each(queries, lambda labels: len(labels) > 1 and labels.min() >= 0, values)

    return Peer("sklearn", version, "sklearn", names, ask, skip_missing=True, as_lists=True)


def _cutoffs() -> list[tuple[int | None, str]]:
    return [(None, ""), *((k, f"@{k}") for k in _KS)]


def lightgbm_peer() -> Peer:
    """LightGBM's own evaluation of a model that has not learned anything, over initial scores."""
    lightgbm, version = library("lightgbm", "lightgbm")
    quiet = {"verbose": -1, "num_threads": 1}
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": list(_KS)} | quiet

    def values(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        data = lightgbm.Dataset(np.zeros((len(labels), 1)), labels, group=[len(labels)], init_score=scores, params=quiet)
        return {name: float(value) for _, name, value, *_ in lightgbm.Booster(settings, data).eval_train()}

    def accepts(labels: np.ndarray) -> bool:
        return labels.min() >= 0 and labels.max() <= _LARGEST_LABEL and len(labels) <= _LONGEST_LIST

    names = {f"{name}@{k}": f"{name}@{k}" for name in ("ndcg", "map") for k in _KS}
    return Peer("lightgbm", version, "lightgbm", names, lambda queries: _each(queries, accepts, values), skip_missing=True, as_lists=True)


def xgboost_peer() -> Peer:
    """XGBoost's own evaluation of a model without trees; map and pre take labels 0 and 1 alone."""
    xgboost, version = library("xgboost", "xgboost")
    graded = [f"ndcg{at}{dash}" for _, at in _cutoffs() for dash in ("", "-")]
    binary = [*(f"map{at}{dash}" for _, at in _cutoffs() for dash in ("", "-")), *(f"pre{at}" for _, at in _cutoffs())]

    def values(labels: np.ndarray, scores: np.ndarray) -> dict[str, float]:
        matrix = xgboost.DMatrix(np.zeros((len(labels), 1)), labels)
        matrix.set_group([len(labels)])
        matrix.set_base_margin(scores)
        names = [*graded, *(binary if labels.max() <= 1 else ())]
        chosen: dict[str, Any] = {"objective": "rank:ndcg", "eval_metric": names, "base_score": 0.0, "nthread": 1, "verbosity": 0}
        line = xgboost.Booster(chosen, [matrix]).eval(matrix, "train")
        pairs = [entry.removeprefix("train-").rpartition(":") for entry in line.split("\t")[1:]]
        return {name: float(value) for name, _, value in pairs}

    def ask(queries: QuerySet) -> Answers:
        return _each(queries, lambda labels: labels.min() >= 0 and labels.max() <= _LARGEST_LABEL + 1, values)

    names = {name: name for name in (*graded, *binary)}
    return Peer("xgboost", version, "xgboost", names, ask, skip_missing=True, as_lists=True)

"""XGBoost: metrics for `custom_metric` and LambdaRank for `obj` of `xgb.train`. Nothing here needs the library itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastrank.errors import InputError
from fastrank.training.rounds import RoundGradients, RoundMetrics, no_groups

if TYPE_CHECKING:
    from fastrank.convention import Convention
    from fastrank.engine.calls import Metrics
    from fastrank.training.options import LambdaChoices

_XGBRANKER = (
    "XGBRanker calls a metric once per query and weights the mean by the sizes of the queries (values 1, 0, 1 of 1, 2 and 7 documents give "
    "0.8), counts a query of one document as 1, and forgets the weights of queries. Train with xgb.train(..., custom_metric=...) on a "
    "DMatrix with group=, and read the saved model with XGBRanker().load_model."
)


def _read(data: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels, boundaries and group weights of a DMatrix."""
    bounds = data.get_uint_info("group_ptr")
    if len(bounds) < 2:
        raise no_groups("XGBoost DMatrix")
    weights = data.get_weight()
    return data.get_label(), bounds, weights if len(weights) else None


class XgboostMetric(RoundMetrics):
    """What `xgboost_metric` returns."""

    __name__ = "fastrank"  # XGBRanker asks for one before it calls

    def __call__(self, preds: Any, data: Any) -> list[tuple[str, float]]:
        """(name, mean) of each metric."""
        if not hasattr(data, "get_uint_info"):
            raise InputError(_XGBRANKER)
        labels, bounds, weights = _read(data)
        return self.means(data, labels, bounds, weights, preds)


class XgboostObjective(RoundGradients):
    """What `xgboost_objective` returns."""

    def __call__(self, preds: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and second derivatives."""
        labels, bounds, weights = _read(data)
        return self.at(data, labels, bounds, weights, preds)


def xgboost_metric(metrics: Metrics = "nDCG@10", *, convention: str | Convention = "xgboost", threads: int | None = None) -> XgboostMetric:
    """Metrics for ``xgb.train(params, data, evals=[...], custom_metric=xgboost_metric("nDCG@10,RR"))``, at every boosting round.

    Parameters
    ----------
    metrics
        Names or metrics, as in `fastrank.evaluate`; all of them share one ranking.
    convention
        "xgboost" gives XGBoost's own numbers, bare names cut at 32 like its own; "xgboost-" those with the suffix "-".
    threads
        None: every processor.

    Early stopping needs the direction: ``xgb.callback.EarlyStopping(rounds=10, metric_name="nDCG@10", data_name="valid", maximize=True)``.
    XGBoost writes custom metrics down with six decimals; what is returned to it has all. What the labels say is worked out at the first
    round and kept for as long as the DMatrix lives; it is worked out again should its labels, groups or weights change.

    Errors: `InputError`; among them that of an `XGBRanker`, which would average any metric wrongly.

    >>> import fastrank as fr
    >>> fr.training.xgboost_metric("ndcg,map@10").names
    ('nDCG', 'AP@10')
    """
    return XgboostMetric(metrics, convention, threads)


def xgboost_objective(
    *,
    preset: str | None = "xgboost",
    propensities: Any = None,
    positions: Any = None,
    threads: int | None = None,
    **choices: Unpack[LambdaChoices],
) -> XgboostObjective:
    """LambdaRank as XGBoost's objective: ``xgb.train({"base_score": 0, ...}, data, obj=xgboost_objective(metric="err"))``.

    All choices are those of `fastrank.training.lambda_gradients`; without any, the gradients are those of XGBoost's own `rank:ndcg`.
    `propensities` and `positions` (one a row of the training data) debias clicks. XGBoost's group weights multiply the gradients.
    Errors: `InputError`.

    >>> import fastrank as fr
    >>> fr.training.xgboost_objective(metric="recall")
    Traceback (most recent call last):
    fastrank.errors.InputError: metric must be one of 'ndcg', 'pairwise', 'map', 'mrr', 'err', not 'recall'.
    """
    return XgboostObjective(preset, propensities, positions, threads, **choices)

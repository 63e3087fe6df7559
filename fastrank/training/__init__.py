"""Ranking metrics inside training loops, gradients of LambdaRank, and listwise losses.

Names are resolved when they are first used, as in the package itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrank._lazy import attributes

if TYPE_CHECKING:
    from fastrank.training.catboost import CatboostMetric as CatboostMetric
    from fastrank.training.catboost import catboost_metric as catboost_metric
    from fastrank.training.gradients import Gradients as Gradients
    from fastrank.training.gradients import LambdaTargets as LambdaTargets
    from fastrank.training.gradients import lambda_gradients as lambda_gradients
    from fastrank.training.lightgbm import LightgbmMetric as LightgbmMetric
    from fastrank.training.lightgbm import LightgbmObjective as LightgbmObjective
    from fastrank.training.lightgbm import lightgbm_metric as lightgbm_metric
    from fastrank.training.lightgbm import lightgbm_objective as lightgbm_objective
    from fastrank.training.losses import Loss as Loss
    from fastrank.training.losses import approximate_ndcg as approximate_ndcg
    from fastrank.training.losses import hinge as hinge
    from fastrank.training.losses import listmle as listmle
    from fastrank.training.losses import listnet as listnet
    from fastrank.training.losses import ranknet as ranknet
    from fastrank.training.xgboost import XgboostMetric as XgboostMetric
    from fastrank.training.xgboost import XgboostObjective as XgboostObjective
    from fastrank.training.xgboost import xgboost_metric as xgboost_metric
    from fastrank.training.xgboost import xgboost_objective as xgboost_objective

# Where each public name is defined.
_HOMES: dict[str, str | None] = {
    **dict.fromkeys(("CatboostMetric", "catboost_metric"), "catboost"),
    **dict.fromkeys(("LightgbmMetric", "LightgbmObjective", "lightgbm_metric", "lightgbm_objective"), "lightgbm"),
    **dict.fromkeys(("XgboostMetric", "XgboostObjective", "xgboost_metric", "xgboost_objective"), "xgboost"),
    **dict.fromkeys(("Gradients", "LambdaTargets", "lambda_gradients"), "gradients"),
    **dict.fromkeys(("Loss", "approximate_ndcg", "hinge", "listmle", "listnet", "ranknet"), "losses"),
}

# A module per library whose classes it builds on; asking for one imports that library.
_MODULES = ("huggingface", "jax", "keras", "sentence_transformers", "sklearn", "torch")

__all__ = sorted(_HOMES)
_HOMES.update(dict.fromkeys(_MODULES))

__getattr__, __dir__ = attributes(__name__, _HOMES)

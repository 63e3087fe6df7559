"""Ranking metrics inside training loops, gradients of LambdaRank, and listwise losses.

Names are resolved when they are first used, as in the package itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
_HOMES: dict[str, str] = {
    **dict.fromkeys(("CatboostMetric", "catboost_metric"), "catboost"),
    **dict.fromkeys(("LightgbmMetric", "LightgbmObjective", "lightgbm_metric", "lightgbm_objective"), "lightgbm"),
    **dict.fromkeys(("XgboostMetric", "XgboostObjective", "xgboost_metric", "xgboost_objective"), "xgboost"),
    **dict.fromkeys(("Gradients", "LambdaTargets", "lambda_gradients"), "gradients"),
    **dict.fromkeys(("Loss", "approximate_ndcg", "hinge", "listmle", "listnet", "ranknet"), "losses"),
}

# A module per library whose classes it builds on; asking for one imports that library.
_MODULES = ("huggingface", "jax", "keras", "sentence_transformers", "sklearn", "torch")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"fastrank.training.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fastrank.training' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fastrank.training.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__, *_MODULES]

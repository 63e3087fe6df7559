"""The losses by name, as autograd libraries ask for them: the value of each query, and the gradient by the scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastrank.convention import one_of
from fastrank.training import losses
from fastrank.training.gradients import lambda_gradients

LOSSES = ("lambda", "listnet", "listmle", "approximate_ndcg", "ranknet", "hinge")
REDUCTIONS = ("mean", "sum", "none")


def loss_and_gradient(
    name: str, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray, options: Mapping[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """float64[n_queries] and float64[n_documents]: losses, and the derivative of their sum by each score."""
    one_of("loss", name, LOSSES)
    if name == "lambda":
        found = lambda_gradients(labels, scores, offsets, costs=True, **options)
        assert found.loss is not None
        return found.loss, found.grad
    listwise = getattr(losses, name)(labels, scores, offsets, **options)
    return listwise.value, listwise.grad

"""Hugging Face: ranking metrics as the `compute_metrics` of a `transformers.Trainer`.

>>> import numpy as np
>>> from types import SimpleNamespace
>>> from fastrank.training.huggingface import RankingMetrics
>>> compute_metrics = RankingMetrics("RR")
>>> scores, labels, queries = np.array([0.1, 0.9, 0.3, 0.7]), np.array([1, 0, 0, 2]), np.array([5, 5, 8, 8])
>>> compute_metrics(SimpleNamespace(predictions=scores, label_ids=(labels, queries)))
{'RR': 0.75}
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.convention import Convention
from fastrank.engine.calls import DEFAULT_METRICS, Metrics, check_threads, evaluate
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError

__all__ = ["RankingMetrics"]

# What the Trainer pads labels with.
PADDING = -100


class RankingMetrics:
    """`compute_metrics` of a Trainer whose model scores documents.

    One document a sample: the query id travels as a second label. Two dimensions: a padded list a sample. Labels of -100 are padding::

        arguments = TrainingArguments(
            ...,
            label_names=["labels", "query_id"],
            remove_unused_columns=False,
            metric_for_best_model="nDCG@10",
            load_best_model_at_end=True,
        )
        Trainer(model, arguments, ..., compute_metrics=RankingMetrics("nDCG@10"))

    With ``batch_eval_metrics=True`` the Trainer hands over batch by batch and keeps no logits itself; only one score, label and id a
    document are kept here, as a batch may end within a query.

    Parameters: as `fr.evaluate`. Called with an `EvalPrediction`, it returns the mean (for counts the sum) of each metric by name.

    Predictions must be one number a document, of the labels' shape or with one dimension of length 1 more: a model that returns more is
    reduced by the Trainer's `preprocess_logits_for_metrics`. Errors: `InputError`.
    """

    def __init__(
        self,
        metrics: Metrics = DEFAULT_METRICS,
        convention: str | Convention = "fastrank",
        *,
        ties: str | None = None,
        no_relevant: str | None = None,
        threads: int | None = None,
    ) -> None:
        plan = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant)
        self.metrics, self.convention, self._names = plan.metrics, plan.convention, plan.names
        self._threads = check_threads(threads)
        self._batches: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._lists = 0

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Add a batch; with `compute_result`, judge all since the last result."""
        self._batches.append(self._read(prediction))
        if not compute_result:
            return {}
        columns = [np.concatenate(column) for column in zip(*self._batches, strict=True)]
        self._batches, self._lists = [], 0
        labels, scores, ids = columns
        given: dict[str, Any] = {"metrics": self.metrics, "convention": self.convention, "threads": self._threads}
        found = evaluate(labels, scores, query_ids=ids, **given).aggregate()
        return dict(zip(self._names, found.values(), strict=True))

    def _read(self, prediction: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Labels, scores and ids of the documents of a batch, flat and without padding."""
        given = prediction.label_ids if isinstance(prediction.label_ids, tuple | list) else (prediction.label_ids,)
        labels, *others = map(_array, given)
        if isinstance(prediction.predictions, tuple | list):
            cure = "Let preprocess_logits_for_metrics of the Trainer return the scores alone."
            raise InputError(f"predictions must be one array of scores, not {len(prediction.predictions)} arrays. {cure}")
        scores = _array(prediction.predictions)
        if scores.shape not in (labels.shape, (*labels.shape, 1)):
            cure = "Let preprocess_logits_for_metrics of the Trainer return one score a document."
            raise InputError(f"predictions must have the shape of the labels, {labels.shape}, not {scores.shape}. {cure}")
        if labels.ndim == 2:
            ids = np.repeat(np.arange(self._lists, self._lists + len(labels)), labels.shape[1]).reshape(labels.shape)
            self._lists += len(labels)
        elif len(others) == 1 and others[0].shape == labels.shape:
            ids = others[0]
        else:
            cure = 'give TrainingArguments(label_names=["labels", "query_id"], remove_unused_columns=False)'
            raise InputError(f"the query of each document must come as a second label, one a document: {cure}.")
        there = labels != PADDING
        return labels[there], scores.reshape(labels.shape)[there], ids[there]


def _array(values: Any) -> np.ndarray:
    if not hasattr(values, "detach"):
        return np.asarray(values)
    from fastrank.training.torch import host_array

    return host_array(values)

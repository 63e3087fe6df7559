"""Keras 3: ranking metrics of held-out lists after every epoch, for its log, early stopping and checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.convention import Convention
from fastrank.engine.calls import DEFAULT_METRICS, LabelledQueries, Metrics, check_threads
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError

try:
    import keras
except ImportError as error:
    install = "pip install 'fastrank-metrics[keras]'"
    if error.name == "keras":
        raise ImportError(f"fastrank.training.keras needs keras, which is not installed: {install}.") from None
    cure = f"set KERAS_BACKEND to jax, torch or tensorflow, whichever is installed; {install} brings jax"
    raise ImportError(f"keras cannot load its backend ({error}): {cure}.") from None

__all__ = ["RankingCallback"]


class RankingCallback(keras.callbacks.Callback):  # type: ignore[misc]  # the type checker does not look into Keras
    """Writes ranking metrics of held-out data into the logs of each epoch.

    Put it **before** `EarlyStopping`, `ModelCheckpoint` and others that read the logs: callbacks run in the order of their list. A metric's
    key is `prefix` and its name::

        held_out = RankingCallback(x, labels, sizes=sizes, metrics="nDCG@10")
        stop = keras.callbacks.EarlyStopping("val_nDCG@10", mode="max", patience=3, restore_best_weights=True)
        model.fit(..., callbacks=[held_out, stop])

    Parameters
    ----------
    x
        What `model.predict` takes: a row a document for flat labels, or a padded list a row for labels with two dimensions.
    labels, offsets, sizes, query_ids
        As `fr.LabelledQueries`: what depends on them alone is worked out once.
    mask
        The shape of labels with two dimensions: True for documents, False for padding.
    metrics, convention, ties, no_relevant, threads
        As `fr.evaluate`.
    prefix
        What the keys in the logs begin with.
    batch_size
        Of `model.predict`.

    Errors: `InputError`.
    """

    def __init__(
        self,
        x: Any,
        labels: Any,
        offsets: Any = None,
        *,
        sizes: Any = None,
        query_ids: Any = None,
        mask: Any = None,
        metrics: Metrics = DEFAULT_METRICS,
        convention: str | Convention = "fastrank",
        ties: str | None = None,
        no_relevant: str | None = None,
        prefix: str = "val_",
        batch_size: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__()
        self.x, self.batch_size = x, batch_size
        self._options: dict[str, Any] = {"ties": ties, "no_relevant": no_relevant, "threads": check_threads(threads)}
        plan = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant)
        self._metrics, self._keys = plan.metrics, [prefix + name for name in plan.names]
        self._mask = None
        if mask is not None:
            self._mask = np.asarray(mask, bool)
            if self._mask.ndim != 2 or self._mask.shape != np.shape(labels):
                raise InputError(f"mask goes with labels of two dimensions and its own shape, {self._mask.shape}, not {np.shape(labels)}.")
            labels, sizes = np.asarray(labels)[self._mask], self._mask.sum(axis=1)
        self._shape = np.shape(labels)
        self._queries = LabelledQueries(labels, offsets, sizes=sizes, query_ids=query_ids, convention=convention)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Predict, judge, and write into the logs."""
        found = self._queries.evaluate(self._scores(), metrics=self._metrics, **self._options).aggregate()
        if logs is not None:
            logs.update(zip(self._keys, found.values(), strict=True))

    def _scores(self) -> np.ndarray:
        """What the model predicts, in the shape of the labels."""
        predicted = np.asarray(self.model.predict(self.x, batch_size=self.batch_size, verbose=0))
        shape = self._shape if self._mask is None else self._mask.shape
        if predicted.shape not in (shape, (*shape, 1)):
            raise InputError(f"the model must predict one score a document, of shape {shape}, not {predicted.shape}.")
        if predicted.dtype.kind != "f":  # bfloat16, which NumPy does not have
            predicted = predicted.astype(np.float32)
        scores = predicted.reshape(shape)
        return scores if self._mask is None else scores[self._mask]

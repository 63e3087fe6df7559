"""What gradients and losses read: whole queries with a label and a finite score for every document."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.batch import QueryBatch, check_scores, make_batch
from fastrank.convention import conventions
from fastrank.errors import InputError


def labelled(labels: Any, offsets: Any, sizes: Any) -> tuple[QueryBatch, tuple[int, ...]]:
    """The labels as a batch, and the shape that gradients have."""
    batch = make_batch(labels, None, offsets, sizes=sizes, convention=conventions["fastrank"])
    if batch.labels.dtype.kind == "f" and np.isnan(batch.labels).any():
        raise InputError("labels must not be null: a gradient needs the label of every document. Give unjudged documents label 0.")
    return batch, tuple(np.shape(labels)) if np.ndim(labels) == 2 else (len(batch.labels),)


def finite_scores(batch: QueryBatch, scores: Any) -> np.ndarray:
    """Scores as float64, one a document."""
    score, absent = as_array("scores", scores)
    if absent is not None:
        raise InputError("scores must not be null: a gradient needs the score of every document. Leave documents without one out.")
    score = frozen(check_scores(batch, score, conventions["fastrank"]), np.float64)
    if score.size and not np.isfinite(score.sum()) and not np.isfinite(score).all():
        row = int(np.flatnonzero(~np.isfinite(score))[0])
        raise InputError(f"scores must be finite here: row {row} is {score[row]}. Leave out the documents that are not to be ranked.")
    return score

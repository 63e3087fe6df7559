"""`Columns`: rows of whole queries as their source holds them. `QueryBatch` checks the numbers; here they are only laid out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Columns:
    """Whole queries. Query q is rows offsets[q] ... offsets[q + 1] of labels, of each score column and of doc_ids.

    Attributes
    ----------
    labels
        Any numeric dtype; a ``np.ma.MaskedArray`` where values are null (unjudged).
    scores
        One entry per score column, in the order asked for; masked where null (judged, not retrieved). Empty when none was given.
    offsets
        int64[n_queries + 1].
    query_ids
        One per query, never null. Categories come as their values.
    doc_ids
        One per row, never null, or None when no column was named.
    weights
        float64, one per query, or None.
    by
        Slices: one value per query and column.
    first_row
        Row of the source, counted from 0, that row 0 here was.
    regrouped
        How many of these queries had their rows in more than one place.
    rows
        Row of the source that each row was, or None when they follow ``first_row`` one by one.
    """

    labels: np.ndarray
    scores: dict[str, np.ndarray]
    offsets: np.ndarray
    query_ids: pa.Array
    doc_ids: pa.Array | None
    weights: np.ndarray | None
    by: dict[str, pa.Array]
    first_row: int
    regrouped: int
    rows: np.ndarray | None = None

    def source_row(self, row: int) -> int:
        """Row of the source, counted from 0, that ``row`` was."""
        return self.first_row + row if self.rows is None else int(self.rows[row])

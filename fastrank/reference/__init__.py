"""Every metric in plain vectorised NumPy: the definition, the oracle of the tests and the baseline of the benchmarks.

Each function takes labels, scores and offsets as flat arrays and returns one float64 per query; it shares no code with the kernels.

- ``labels``: numbers; NaN is an unjudged document, which counts as not relevant.
- ``scores``: numbers, higher first; NaN is a document that was judged and not retrieved: it counts in the ideal and among the relevant,
  and stands below every rank. Left out: the labels stand in rank order.
- ``offsets``: int64[n_queries + 1]. Left out: one query, or one query a row of a matrix.
- ``k``: a whole number, a share of the retrieved list (0.2 or "20%"), or None for all of it.
- ``ties``: "average" (the exact mean over all orders of equal scores), "input", "worst" and "best" (labels ascending or descending within
  equal scores) or "docid" (greater of ``doc_ids`` first).
- ``no_relevant``: the value of a query with nothing to find: "zero", "one", "nan" or "skip" (both NaN).
"""

from __future__ import annotations

from fastrank.reference._binary import (
    average_precision,
    f,
    judged,
    num_rel,
    num_rel_ret,
    num_ret,
    precision,
    r_precision,
    rbp,
    recall,
    reciprocal_rank,
    success,
)
from fastrank.reference._graded import dcg, err, idcg, ndcg
from fastrank.reference._pairs import auc, bpref, concordance, p_norm_push

__all__ = [
    "auc",
    "average_precision",
    "bpref",
    "concordance",
    "dcg",
    "err",
    "f",
    "idcg",
    "judged",
    "ndcg",
    "num_rel",
    "num_rel_ret",
    "num_ret",
    "p_norm_push",
    "precision",
    "r_precision",
    "rbp",
    "recall",
    "reciprocal_rank",
    "success",
]

"""Every metric in plain vectorised NumPy: the definition, the oracle of the tests and the baseline of the benchmarks.

Each function takes labels, scores and offsets as flat arrays and returns one float64 per query; it shares no code with the kernels.
Those of judgements by subtopic or judge take dicts: ``{query: {group: {document: label}}}`` and ``{query: {document: score}}``.

- ``labels``: numbers; NaN is an unjudged document, which counts as not relevant.
- ``scores``: numbers, higher first; NaN is a document that was judged and not retrieved: it counts in the ideal and among the relevant,
  and stands below every rank. Left out: the labels stand in rank order.
- ``offsets``: int64[n_queries + 1]. Left out: one query, or one query a row of a matrix.
- ``k``: a whole number, a share of the retrieved list (0.2 or "20%"), or None for all of it.
- ``ties``: "average" (the exact mean over all orders of equal scores), "input", "worst" and "best" (labels ascending or descending within
  equal scores) or "docid" (greater of ``doc_ids`` first). Metrics whose mean has no closed form default to "worst" and refuse "average".
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
    recall,
    reciprocal_rank,
    success,
)
from fastrank.reference._curves import average_interpolated_precision, inferred_average_precision, interpolated_precision, yaap
from fastrank.reference._gain_ranks import bin_g, g, ndcg_rel, r_ndcg
from fastrank.reference._graded import dcg, err, idcg, ndcg
from fastrank.reference._grouped import (
    alpha_dcg,
    alpha_ndcg,
    ap_avgjg,
    ap_ia,
    err_ia,
    n_err_ia,
    n_nrbp,
    nrbp,
    num_prefs,
    num_prefs_ful,
    p_avgjg,
    p_ia,
    prefs_ful,
    prefs_r_nonrel,
    rprec_avgjg,
    st_recall,
)
from fastrank.reference._lambda_rank import lambda_gradients
from fastrank.reference._pairs import auc, bpref, concordance, p_norm_push
from fastrank.reference._rank_biased import accuracy, compatibility, rbp, rbp_residual
from fastrank.reference._sets import num_non_rel_ret, num_q, relative_precision, set_average_precision, unjudged, utility
from fastrank.reference._user_models import bpm, insq, inst, nerr8, nerr9, nerr10, nerr11, sdcg

__all__ = [
    "accuracy",
    "alpha_dcg",
    "alpha_ndcg",
    "ap_avgjg",
    "ap_ia",
    "auc",
    "average_interpolated_precision",
    "average_precision",
    "bin_g",
    "bpm",
    "bpref",
    "compatibility",
    "concordance",
    "dcg",
    "err",
    "err_ia",
    "f",
    "g",
    "idcg",
    "inferred_average_precision",
    "insq",
    "inst",
    "interpolated_precision",
    "judged",
    "lambda_gradients",
    "n_err_ia",
    "n_nrbp",
    "ndcg",
    "ndcg_rel",
    "nerr8",
    "nerr9",
    "nerr10",
    "nerr11",
    "nrbp",
    "num_non_rel_ret",
    "num_prefs",
    "num_prefs_ful",
    "num_q",
    "num_rel",
    "num_rel_ret",
    "num_ret",
    "p_avgjg",
    "p_ia",
    "p_norm_push",
    "precision",
    "prefs_ful",
    "prefs_r_nonrel",
    "r_ndcg",
    "r_precision",
    "rbp",
    "rbp_residual",
    "recall",
    "reciprocal_rank",
    "relative_precision",
    "rprec_avgjg",
    "sdcg",
    "set_average_precision",
    "st_recall",
    "success",
    "unjudged",
    "utility",
    "yaap",
]

"""Functions of graded relevance and of whole lists: labels and scores in, one value per query out.

All take the same data, in the same order: labels, scores, offsets. `ndcg` says how each is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.engine.one_metric import Cutoffs, judge
from fastrank.metrics import AUC, DCG, ERR, IDCG, RBP, Bpref, Concordance, Judged, PNormPush, nDCG


def ndcg(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    gain: Any = "exp2",
    discount: Any = "log2",
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Normalised discounted cumulative gain of each query: DCG / IDCG, between 0 and 1.

    DCG@k = sum over ranks r <= k of gain(label) * discount(r); IDCG is the DCG of the labels in their best order.
    Source: Järvelin and Kekäläinen, TOIS 2002; Burges et al., ICML 2005.

    Parameters
    ----------
    labels
        Graded relevance: flat, or two-dimensional with a query a row. Masked or null values are unjudged.
    scores
        The same shape, higher ranks first. None: the labels already stand in rank order.
    offsets, sizes, query_ids
        At most one: where each query begins (n_queries + 1 numbers), how many documents it has, or each document's query.
        Without one, flat labels are one query.
    k
        Cutoff: a whole number, a share of each list (0.2 or "20%"), or a sequence of them. None: the whole list.
    gain
        "exp2" (2^label - 1), "linear", a table {label: gain}, or an array indexed by label.
    discount
        "log2", "ln", "zipf" (1/r), "power:0.5", "geometric:0.5", "jarvelin:2", "step:10" (1 down to rank
        10, then 0), or an array over ranks 1, 2, ...
    ties
        Order of equal scores: "average" (the exact expectation), "input", "worst" or "best".
    no_relevant
        Value of a query whose ideal is 0: "zero", "one", "nan" or "skip" (both NaN).

    Returns
    -------
    float64[n_queries], or float64[n_queries, len(k)] for a sequence of cutoffs.

    Errors: `InputError`, one line that says what, where and the cure.

    >>> import fastrank as fr
    >>> fr.ndcg([3, 2, 0, 1, 2], k=5).round(4)
    array([0.9686])
    >>> fr.ndcg([[1, 0, 0], [0, 0, 1]], [[0.3, 0.2, 0.1], [0.3, 0.2, 0.1]], k=[1, 3])
    array([[1. , 1. ],
           [0. , 0.5]])
    """
    return judge(
        nDCG, k, {"gain": gain, "discount": discount, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids
    )


def dcg(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    gain: Any = "exp2",
    discount: Any = "log2",
    ties: str = "average",
) -> np.ndarray:
    """Discounted cumulative gain: sum over ranks r <= k of gain(label) * discount(r).

    Source: Järvelin and Kekäläinen, TOIS 2002.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`. `gain` and `discount` as there.

    >>> import fastrank as fr
    >>> fr.dcg([3, 2, 0, 1, 2], k=5).round(4)  # 7 + 3/log2(3) + 1/log2(5) + 3/log2(6)
    array([10.484])
    """
    return judge(DCG, k, {"gain": gain, "discount": discount, "ties": ties}, labels, scores, offsets, sizes, query_ids)


def idcg(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    gain: Any = "exp2",
    discount: Any = "log2",
) -> np.ndarray:
    """DCG of the ideal order: the labels of a query from best to worst.

    Source: Järvelin and Kekäläinen, TOIS 2002.

    Data and `k` as in `ndcg`; float64[n_queries]; errors: `InputError`. `gain` and `discount` as there.

    >>> import fastrank as fr
    >>> fr.idcg([3, 2, 0, 1, 2], k=5).round(4)  # 7 + 3/log2(3) + 3/log2(4) + 1/log2(5)
    array([10.8235])
    """
    return judge(IDCG, k, {"gain": gain, "discount": discount}, labels, scores, offsets, sizes, query_ids)


def err(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    max_label: float = 4,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Expected reciprocal rank of the document at which a user stops.

    ERR@k = sum over ranks r <= k of p_r / r * product over the ranks before of (1 - p), p = (2^label - 1) / 2^max_label.
    Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    A label above `max_label` is an error.

    >>> import fastrank as fr
    >>> fr.err([4, 0, 1]) == 15 / 16 + 1 / 3 * 1 / 16 * 1 / 16
    array([ True])
    """
    return judge(ERR, k, {"max_label": max_label, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def rbp(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    p: float = 0.8,
    rel: float | str = 1,
    ties: str = "average",
) -> np.ndarray:
    """Rank-biased precision: (1 - p) * sum over relevant ranks r <= k of p^(r - 1).

    Source: Moffat and Zobel, TOIS 2008.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.rbp([1, 0, 1]).round(4)  # 0.2 * (1 + 0.64)
    array([0.328])
    """
    return judge(RBP, k, {"p": p, "rel": rel, "ties": ties}, labels, scores, offsets, sizes, query_ids)


def bpref(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Binary preference: judged relevant against judged non-relevant documents; unjudged (masked) ones do not matter.

    bpref = 1/R * sum over retrieved relevant documents of 1 - min(judged non-relevant above, R) / min(N, R).
    Source: Buckley and Voorhees, SIGIR 2004, as trec_eval computes it.

    Data and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.bpref([1, 0, None, 1])  # (1 + (1 - 1/1)) / 2
    array([0.5])
    """
    return judge(Bpref, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def auc(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Area under the ROC curve: the chance that a relevant document stands above a non-relevant one, ties one half.

    Source: Hanley and McNeil, Radiology 1982.

    Data and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.auc([1, 0, 1, 0])  # one of four pairs is lost
    array([0.75])
    """
    return judge(AUC, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def concordance(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Graded pairwise agreement: the share of pairs with different labels that stand in the right order, ties one half.

    1 - concordance is the pairwise disagreement. Source: Harrell et al., JAMA 1982; Duchi, Mackey and Jordan, ICML 2010.

    Data and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.

    >>> import fastrank as fr
    >>> fr.concordance([2, 0, 1]).round(4)  # 0 stands above 1: two of three pairs
    array([0.6667])
    """
    return judge(Concordance, None, {"ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def p_norm_push(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    p: float = 4,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Mean over non-relevant documents of (share of the relevant ones ranked below)^p: lower is better; p = 1 is 1 - AUC.

    Source: Rudin, JMLR 2009, divided by its largest value.

    Data and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.p_norm_push([0, 1, 0])  # (1^4 + 0^4) / 2
    array([0.5])
    """
    return judge(PNormPush, None, {"p": p, "rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def judged(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    ties: str = "average",
) -> np.ndarray:
    """Share of the top k that has been judged at all; 0 for an empty list.

    Source: Yilmaz, Craswell, Mitra and Campos, SIGIR 2020.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.

    >>> import fastrank as fr
    >>> fr.judged([1, None, 0], k=[1, 2])
    array([[1. , 0.5]])
    """
    return judge(Judged, k, {"ties": ties}, labels, scores, offsets, sizes, query_ids)

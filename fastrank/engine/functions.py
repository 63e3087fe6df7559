"""One function per metric family: labels and scores in, one value per query out.

All take the same data, in the same order: labels, scores, offsets. `ndcg` says how each is read.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrank.batch import make_batch
from fastrank.engine.plan import Plan, make_plan
from fastrank.engine.run import Run, run_blocks
from fastrank.errors import InputError
from fastrank.metrics import AP, AUC, DCG, ERR, IDCG, RBP, RR, Bpref, Concordance, F, Judged, Metric, P, PNormPush, R, Rprec, Success, nDCG

Cutoffs = int | float | str | Sequence[int | float | str] | None


def _judge(
    metric: type[Metric], k: Cutoffs, parameters: dict[str, Any], labels: Any, scores: Any, offsets: Any, sizes: Any, query_ids: Any
) -> np.ndarray:
    several = isinstance(k, Sequence | np.ndarray) and not isinstance(k, str)
    if several and not len(k):
        raise InputError("k is an empty sequence. Give at least one cutoff, or None for the whole list.")
    question = metric, tuple(k) if several else (k,), tuple(parameters.items())
    try:
        plan, places = _plan(*question)
    except TypeError:  # a gain or discount given as a table cannot be looked up
        plan, places = _plan.__wrapped__(*question)
    batch = make_batch(labels, scores, offsets, sizes=sizes, query_ids=query_ids, convention=plan.convention)
    plan.check(batch)
    work = Run(plan, batch, batch.scores)
    run_blocks(work, None)
    return work.columns[places].T if several else work.columns[0]


@functools.lru_cache(maxsize=256)
def _plan(metric: type[Metric], ks: tuple[Any, ...], parameters: tuple[tuple[str, Any], ...]) -> tuple[Plan, list[int]]:
    """The plan of a call, and which of its metrics stands at each cutoff: the same cutoff may be asked for twice."""
    metrics = [metric(k=k, **dict(parameters)) for k in ks]
    plan = make_plan(metrics, "fastrank")
    return plan, [plan.metrics.index(each.fill(plan.convention)) for each in metrics]


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
        "log2", "ln", "zipf" (1/r), "power:0.5", "geometric:0.5", "jarvelin:2", or an array over ranks 1, 2, ...
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
    return _judge(
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
    return _judge(DCG, k, {"gain": gain, "discount": discount, "ties": ties}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(IDCG, k, {"gain": gain, "discount": discount}, labels, scores, offsets, sizes, query_ids)


def reciprocal_rank(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """1 over the rank of the first relevant document, 0 when the top k holds none. The mean over queries is the MRR.

    Source: Voorhees, TREC-8, 1999.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.reciprocal_rank([1, 0, 0, 1, 0, 0, 0, 1], sizes=[1, 3, 4]).tolist()
    [1.0, 0.3333333333333333, 0.25]
    """
    return _judge(RR, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def average_precision(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    denominator: str = "relevant",
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Precision at the rank of each relevant document, averaged. The mean over queries is MAP.

    AP@k = sum over relevant ranks r <= k of hits(r) / r, divided by `denominator`: "relevant" (P, all relevant documents), "min_k"
    (min(P, k)), "min_k_retrieved" (min(P, k, list length)) or "hits" (relevant documents in the top k).
    Source: Buckley and Voorhees, SIGIR 2000; trec_eval.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.average_precision([3, 0, 2, 3, 1]).round(4)  # (1 + 2/3 + 3/4 + 4/5) / 4
    array([0.8042])
    """
    return _judge(
        AP, k, {"rel": rel, "denominator": denominator, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids
    )


def precision(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    denominator: str = "k",
    ties: str = "average",
) -> np.ndarray:
    """Share of the top k that is relevant.

    P@k = hits(k) / k, also for lists shorter than k; denominator="retrieved" divides by min(k, list length).
    Source: van Rijsbergen, Information Retrieval, 1979.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.precision([1, 0, 1, 1, 0], k=[1, 5])
    array([[1. , 0.6]])
    """
    return _judge(P, k, {"rel": rel, "denominator": denominator, "ties": ties}, labels, scores, offsets, sizes, query_ids)


def recall(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Share of the relevant documents that is in the top k: hits(k) / P.

    Source: van Rijsbergen, Information Retrieval, 1979.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.recall([1, 0, 0, 1, 0], k=[1, 5])
    array([[0.5, 1. ]])
    """
    return _judge(R, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def f1(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Harmonic mean of precision and recall at k: 2 * hits(k) / (k + P).

    Source: van Rijsbergen, Information Retrieval, 1979. Other weights: the metric F(beta=...).

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.f1([1, 0, 1, 1, 0], k=2)  # 2 * 1 / (2 + 3)
    array([0.4])
    """
    return _judge(F, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def success(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    k: Cutoffs = None,
    rel: float | str = 1,
    ties: str = "average",
    no_relevant: str = "zero",
) -> np.ndarray:
    """Hit rate: 1 when the top k holds a relevant document, else 0; with ties the chance of it.

    Source: trec_eval, success.

    Data, `k` and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.success([0, 1, 1], k=[1, 2])
    array([[0., 1.]])
    """
    return _judge(Success, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


def r_precision(
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
    """Precision at rank P, the number of relevant documents.

    Source: trec_eval, Rprec.

    Data and `ties` as in `ndcg`; float64[n_queries]; errors: `InputError`.
    `rel`: the lowest relevant label, or a bound such as ">0.5".

    >>> import fastrank as fr
    >>> fr.r_precision([1, 0, 1, 1, 0]).round(4)  # 2 of the first 3
    array([0.6667])
    """
    return _judge(Rprec, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(ERR, k, {"max_label": max_label, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(RBP, k, {"p": p, "rel": rel, "ties": ties}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(Bpref, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(AUC, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(Concordance, None, {"ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return _judge(
        PNormPush, None, {"p": p, "rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids
    )


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
    return _judge(Judged, k, {"ties": ties}, labels, scores, offsets, sizes, query_ids)

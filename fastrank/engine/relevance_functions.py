"""Functions of relevant against not relevant: labels and scores in, one value per query out.

All take the same data, in the same order: labels, scores, offsets. `ndcg` says how each is read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.engine.one_metric import Cutoffs, judge
from fastrank.metrics import AP, RR, F, P, R, Rprec, Success


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
    return judge(RR, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return judge(
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
    return judge(P, k, {"rel": rel, "denominator": denominator, "ties": ties}, labels, scores, offsets, sizes, query_ids)


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
    return judge(R, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return judge(F, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return judge(Success, k, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)


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
    return judge(Rprec, None, {"rel": rel, "ties": ties, "no_relevant": no_relevant}, labels, scores, offsets, sizes, query_ids)

"""Losses of whole lists and of pairs, value and gradient together, for loops that step down them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import map_blocks
from fastrank.arrays import frozen
from fastrank.engine.calls import check_threads
from fastrank.errors import InputError
from fastrank.training import loss_kernels
from fastrank.training.gradients import LambdaTargets
from fastrank.training.inputs import finite_scores, labelled

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch

BLOCK = 32_768


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss and its gradient.

    Attributes
    ----------
    value
        float64[n_queries]: the loss of each query, 0 for one that asks for no order.
    grad
        float64, the shape of the labels: derivative of the sum of `value` by each score.
    """

    value: np.ndarray
    grad: np.ndarray


Work = Callable[[int, int, np.ndarray, np.ndarray], None]


def _filled(batch: QueryBatch, shape: tuple[int, ...], threads: int | None, work: Work) -> Loss:
    value, grad = np.empty(batch.n_queries), np.empty(len(batch.labels))
    map_blocks(lambda first, last: work(first, last, value, grad), batch.offsets, documents=BLOCK, threads=check_threads(threads))
    return Loss(value, grad.reshape(shape))


def _read(labels: Any, scores: Any, offsets: Any, sizes: Any) -> tuple[QueryBatch, np.ndarray, np.ndarray, tuple[int, ...]]:
    batch, shape = labelled(labels, offsets, sizes)
    return batch, frozen(batch.labels, np.float64), finite_scores(batch, scores), shape


def _above_zero(name: str, value: Any) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf:
        return float(value)
    raise InputError(f"{name} must be a number above 0, not {value!r}.")


def listnet(labels: Any, scores: Any, offsets: Any = None, *, sizes: Any = None, threads: int | None = None) -> Loss:
    """ListNet: the cross entropy of two distributions of the top document, softmax(labels) and softmax(scores).

    loss_q = - sum over d of softmax(labels)_d log softmax(scores)_d;  gradient = softmax(scores) - softmax(labels)

    labels, scores: one number a document, flat with `offsets` or `sizes`, or two-dimensional with a query a row. Errors: `InputError`.
    Source: Cao, Qin, Liu, Tsai and Li, ICML 2007 (top-one probabilities).

    >>> import fastrank as fr
    >>> fr.training.listnet([1, 0], [0.0, 0.0]).grad.round(4).tolist()
    [-0.2311, 0.2311]
    """
    batch, label, score, shape = _read(labels, scores, offsets, sizes)

    def work(first: int, last: int, value: np.ndarray, grad: np.ndarray) -> None:
        loss_kernels.list_net(label, score, batch.offsets, first, last, value, grad)

    return _filled(batch, shape, threads, work)


def listmle(labels: Any, scores: Any, offsets: Any = None, *, sizes: Any = None, threads: int | None = None) -> Loss:
    """ListMLE: minus the log-likelihood of the order by label under the Plackett-Luce model of the scores.

    loss_q = sum over i of (log sum over j >= i of exp(s_j)) - s_i, documents by descending label, equal labels as they stand

    labels, scores: as `listnet`. Errors: `InputError`. Source: Xia, Liu, Wang, Zhang and Li, ICML 2008.

    >>> import fastrank as fr
    >>> fr.training.listmle([1, 0], [0.0, 0.0]).grad.tolist()
    [-0.5, 0.5]
    """
    batch, label, score, shape = _read(labels, scores, offsets, sizes)
    query = np.repeat(np.arange(batch.n_queries), np.diff(batch.offsets))
    order = frozen(np.lexsort((-label, query)), np.int64)
    rest = np.empty(len(label))

    def work(first: int, last: int, value: np.ndarray, grad: np.ndarray) -> None:
        loss_kernels.list_mle(order, score, batch.offsets, first, last, rest, value, grad)

    return _filled(batch, shape, threads, work)


def approximate_ndcg(
    labels: Any,
    scores: Any,
    offsets: Any = None,
    *,
    sizes: Any = None,
    alpha: float = 10.0,
    gain: Any = "exp2",
    threads: int | None = None,
) -> Loss:
    """1 - NDCG with ranks made smooth, so that it has a gradient.

    loss_q = 1 - sum over d of gain_d / log2(1 + rank_d) / ideal,  rank_d = 1 + sum over j != d of 1 / (1 + exp(alpha (s_d - s_j)))

    labels, scores: as `listnet`. `alpha`: how sharply a document counts as above another; the larger, the closer to NDCG and the flatter
    away from ties. A query whose documents all gain the same asks for no order: its loss is 0. Errors: `InputError`.
    Source: Qin, Liu and Li, Information Retrieval 2010.

    >>> import fastrank as fr
    >>> fr.training.approximate_ndcg([1, 0], [3.0, 0.0]).value.round(4).tolist()
    [0.0]
    """
    alpha = _above_zero("alpha", alpha)
    targets = LambdaTargets(labels, offsets, sizes=sizes, gain=gain)
    batch, gains, inverse = targets.batch, targets.values, targets.inverse
    score, longest = finite_scores(batch, scores), max(batch.longest, 1)

    def work(first: int, last: int, value: np.ndarray, grad: np.ndarray) -> None:
        loss_kernels.approximate_ndcg(gains, inverse, score, batch.offsets, alpha, first, last, np.empty(longest), value, grad)

    return _filled(batch, targets.shape, threads, work)


def ranknet(labels: Any, scores: Any, offsets: Any = None, *, sizes: Any = None, sigma: float = 1.0, threads: int | None = None) -> Loss:
    """RankNet: the logistic loss of every pair of unlike labels.

    loss_q = sum over pairs with label_i > label_j of log(1 + exp(-sigma (s_i - s_j)))

    labels, scores: as `listnet`. Errors: `InputError`. Source: Burges et al., ICML 2005.

    >>> import fastrank as fr
    >>> fr.training.ranknet([1, 0], [0.0, 0.0]).grad.tolist()
    [-0.5, 0.5]
    """
    sigma = _above_zero("sigma", sigma)
    batch, label, score, shape = _read(labels, scores, offsets, sizes)

    def work(first: int, last: int, value: np.ndarray, grad: np.ndarray) -> None:
        loss_kernels.logistic_pairs(label, score, batch.offsets, sigma, first, last, value, grad)

    return _filled(batch, shape, threads, work)


def hinge(labels: Any, scores: Any, offsets: Any = None, *, sizes: Any = None, margin: float = 1.0, threads: int | None = None) -> Loss:
    """RankSVM: the hinge loss of every pair of unlike labels.

    loss_q = sum over pairs with label_i > label_j of max(0, margin - (s_i - s_j)); where a pair stands exactly at the margin its
    subgradient is taken as 0

    labels, scores: as `listnet`. Errors: `InputError`. Source: Joachims, KDD 2002.

    >>> import fastrank as fr
    >>> fr.training.hinge([1, 0], [0.0, 0.0]).grad.tolist()
    [-1.0, 1.0]
    """
    margin = _above_zero("margin", margin)
    batch, label, score, shape = _read(labels, scores, offsets, sizes)

    def work(first: int, last: int, value: np.ndarray, grad: np.ndarray) -> None:
        loss_kernels.hinge_pairs(label, score, batch.offsets, margin, first, last, value, grad)

    return _filled(batch, shape, threads, work)

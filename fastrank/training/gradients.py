"""`lambda_gradients`: gradients and second derivatives of LambdaRank over flat arrays."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastrank._kernel import map_blocks
from fastrank.arrays import as_array, frozen
from fastrank.engine.calls import check_threads
from fastrank.errors import InputError
from fastrank.gains import discounts, gain_table, gains_of
from fastrank.metrics.cascade import ERR
from fastrank.metrics.cumulative_gain import nDCG
from fastrank.training.inputs import finite_scores, labelled
from fastrank.training.options import LambdaChoices, LambdaOptions, lambda_options
from fastrank.training.pairs import COUNTED, METRICS, SCRATCH, draw_partners, gain_gradients, ideal_sums, pair_gradients, sampled_gradients

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch

# Documents of a block: a few thousand queries, so that threads share the work evenly and scratch is made seldom.
BLOCK = 32_768
_NOTHING, _NO_PLACES = frozen(np.zeros(0), np.float64), frozen(np.zeros(0), np.int64)
# No position is so far down: numbers beyond it are as wrong as this one.
_FAR = 2.0**53


@dataclass(frozen=True, eq=False)
class Gradients:
    """What a boosting round or a backward pass needs.

    Attributes
    ----------
    grad, hess
        The shape of the labels: first and second derivatives of the loss to be minimised, by each score.
    loss
        float64[n_queries], or None without `costs`: the sum over pairs of |change of the metric| log(1 + exp(-sigma (s_i - s_j))).
    costs
        float64[2, n_positions], or None without `costs`: the loss of the pairs whose larger label (row 0) or smaller (row 1) stood at each
        position, divided by the other document's propensity: what propensities are estimated from.
    """

    grad: np.ndarray
    hess: np.ndarray
    loss: np.ndarray | None = None
    costs: np.ndarray | None = None


class LambdaTargets:
    """Labels that stay while scores change: gains, ideals and propensities are worked out once, and each `gradients` is one pass.

    Parameters: as `lambda_gradients`.

    >>> import fastrank as fr
    >>> targets = fr.training.LambdaTargets([2, 0, 1], preset="lightgbm")
    >>> targets.gradients([0.1, 0.5, 0.3]).grad.round(3).tolist()
    [-0.614, 0.674, -0.06]
    """

    def __init__(
        self,
        labels: Any,
        offsets: Any = None,
        *,
        sizes: Any = None,
        weights: Any = None,
        propensities: Any = None,
        positions: Any = None,
        preset: str | None = None,
        **choices: Unpack[LambdaChoices],
    ) -> None:
        self.options = lambda_options(preset, choices)
        self.batch, self.shape = labelled(labels, offsets, sizes)
        batch = self.batch
        self.values = _values(batch, self.options)
        self._discount = discounts(self.options.discount, batch.longest)
        self.inverse = self._inverses()
        self._weights = _weights(weights, batch, self.options)
        self._positions = positions
        self._round = 0
        self._tables = _inverse_propensities(propensities)
        self._place = _NO_PLACES if self._tables is None else self._places(len(self._tables[0]) - 1)

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self.batch.n_queries

    def _inverses(self) -> np.ndarray:
        """What divides the change of the metric, inverted; 0 for a query without two values, which has no pair."""
        batch, options = self.batch, self.options
        ideal = np.empty(batch.n_queries)
        ranks = np.ones(max(batch.longest, 1)) if options.metric != "ndcg" else self._discount
        cutoff = batch.longest if options.metric != "ndcg" or options.ideal_k is None else options.ideal_k

        def work(first: int, last: int) -> None:
            order, spare = self._orders(first, last)
            ideal_sums(self.values, batch.offsets, ranks, cutoff, COUNTED, first, last, order, spare, ideal)

        map_blocks(work, batch.offsets, documents=BLOCK, threads=None)
        if options.metric in ("ndcg", "map"):
            return np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal != 0)
        return (ideal != 0).astype(np.float64)

    def _orders(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
        longest = int(np.diff(self.batch.offsets[first : last + 1]).max(initial=0))
        return np.empty(longest, np.int64), np.empty(longest, np.int64)

    def _places(self, known: int | None) -> np.ndarray:
        """The place in tables of `known` positions where each document was shown, from 0; `known` for what they do not reach."""
        batch = self.batch
        if self._positions is None:
            place = np.arange(len(batch.labels)) - np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
        else:
            array, missing = as_array("positions", self._positions)
            if array.size != len(batch.labels):
                raise InputError(f"positions must have one entry a document, {len(batch.labels)}, not {array.size}.")
            given = array.ravel().astype(np.float64)
            wrong = ~((given >= 1) & (given == np.trunc(given)) & (given < _FAR)) | (False if missing is None else missing.ravel())
            if wrong.any():
                row = int(np.flatnonzero(wrong)[0])
                raise InputError(f"positions must be whole numbers from 1 up, where each document was shown; that of row {row} is not.")
            place = given.astype(np.int64) - 1
        if known is None:
            return frozen(place, np.int64)
        beyond = np.flatnonzero(place >= known)
        if len(beyond) and self.options.preset != "xgboost":  # which leaves documents beyond its tables as they are
            cure = "Give the propensity of every position, or leave those documents out."
            raise InputError(f"propensities end at position {known}, and row {beyond[0]} stood at position {place[beyond[0]] + 1}. {cure}")
        return frozen(np.minimum(place, known), np.int64)

    def gradients(
        self, scores: Any, *, out: tuple[np.ndarray, np.ndarray] | None = None, costs: bool = False, threads: int | None = None
    ) -> Gradients:
        """Gradients at new scores, one per document in the order of the labels. Options and errors as `lambda_gradients`."""
        batch, options = self.batch, self.options
        score = finite_scores(batch, scores)
        grad, hess = self._buffers(out)
        place, tables = self._place, self._tables
        if costs and tables is None:
            place = self._places(None)
            tables = (np.ones(int(place.max(initial=0)) + 2),) * 2
        plus, minus = (_NOTHING, _NOTHING) if tables is None else tables
        loss = np.zeros(batch.n_queries if costs else 0)
        parts: dict[int, np.ndarray] = {}
        truncation = max(batch.longest, 1) if options.k is None else options.k

        settings = (float(options.sigma), 1.0 if options.score_norm else 0.0, options.hessian_floor, options.group_norm == "log2")
        metric, scale, slope = METRICS.index(options.metric), float(options.hess_scale), float(options.cost_slope)
        partner = self._draw() if options.pairs == "sampled" else None
        mean = 1.0 / options.n_pairs if options.group_norm == "mean" else 1.0

        def work(first: int, last: int) -> None:
            order, spare = self._orders(first, last)
            scratch = np.empty((SCRATCH, max(len(order), 2)))
            parts[first] = np.zeros((2, len(plus) if costs else 0))
            places = (place, plus, minus, slope, COUNTED, first, last, order, spare, scratch, grad, hess, parts[first], loss)
            given = (score, self.values, self.inverse, batch.offsets)
            if partner is None and options.metric == "ndcg" and not len(place):
                norms, rest = (*settings, scale), (COUNTED, first, last, order, spare, scratch, grad, hess)
                gain_gradients(*given, self._discount, truncation, *norms, *rest)
            elif partner is None:
                pair_gradients(*given, metric, self._discount, truncation, *settings, scale, *places)
            else:
                sampled_gradients(*given, partner, metric, self._discount, *settings, mean, scale, *places)
            if len(self._weights):
                rows = slice(batch.offsets[first], batch.offsets[last])
                grad[rows] *= self._weights[rows]
                hess[rows] *= self._weights[rows]

        map_blocks(work, batch.offsets, documents=BLOCK, threads=check_threads(threads))
        result = Gradients(grad.reshape(self.shape), hess.reshape(self.shape))
        if not costs:
            return result
        # Parts are those of fixed blocks, added in order: the same bits whichever thread came first.
        total = sum((parts[first] for first in sorted(parts)), np.zeros((2, len(plus))))
        return dataclasses.replace(result, loss=loss, costs=total[:, :-1])

    def _draw(self) -> np.ndarray:
        """Partners of this round: others than those of the last, and the same in every run."""
        batch, partner = self.batch, np.empty((len(self.batch.labels), self.options.n_pairs), np.int64)
        key = np.uint64((self.options.seed + self._round) % (1 << 64))
        self._round += 1

        def work(first: int, last: int) -> None:
            draw_partners(key, self.values, batch.offsets, COUNTED, first, last, *self._orders(first, last), partner)

        map_blocks(work, batch.offsets, documents=BLOCK, threads=None)
        return partner

    def _buffers(self, out: tuple[np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, np.ndarray]:
        n = len(self.batch.labels)
        if out is None:
            return np.empty(n), np.empty(n)
        grad, hess = (self._buffer(name, array) for name, array in zip(("grad", "hess"), out, strict=True))
        if np.may_share_memory(grad, hess):
            raise InputError("out must be two arrays that share no memory.")
        if grad.dtype != hess.dtype:
            raise InputError(f"out must be two arrays of one type, not {grad.dtype} and {hess.dtype}.")
        return grad, hess

    def _buffer(self, name: str, array: Any) -> np.ndarray:
        good = (
            isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64) and array.flags.carray and array.shape == self.shape
        )
        if not good:
            given = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            rule = f"a contiguous, writeable float32 or float64 array of shape {list(self.shape)}"
            raise InputError(f"out: {name} must be {rule}, not {given}.")
        return array.reshape(-1)


def _values(batch: QueryBatch, options: LambdaOptions) -> np.ndarray:
    """What the metric makes of each label: gain, label, relevance or the chance to stop. Pairs are of unlike values."""
    if options.metric == "pairwise":
        return frozen(batch.labels, np.float64)
    if options.metric in ("map", "mrr"):
        return frozen(batch.labels >= options.rel, np.float64)

    def distinct() -> np.ndarray:
        return np.unique(batch.labels).astype(np.float64)

    if options.metric == "err":
        ERR(max_label=options.max_label).check_labels(batch.largest_label, distinct)
        return frozen(gains_of(batch.labels.astype(np.float64), "exp2") / 2.0**options.max_label, np.float64)
    nDCG(gain=options.gain).check_labels(batch.largest_label, distinct)
    if batch.label_codes:
        return frozen(gain_table(options.gain, batch.label_codes)[batch.labels.astype(np.int64, copy=False)], np.float64)
    return frozen(gains_of(batch.labels, options.gain), np.float64)


def _weights(weights: Any, batch: QueryBatch, options: LambdaOptions) -> np.ndarray:
    """A weight per document; none where all are 1. XGBoost scales them to the mean 1."""
    if weights is None:
        return _NOTHING
    array, missing = as_array("weights", weights)
    given = array.ravel().astype(np.float64)
    wrong = ~(np.isfinite(given) & (given >= 0)) | (False if missing is None else missing.ravel())
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"weights must be finite and not negative: weights[{row}] is not.")
    if len(given) not in (batch.n_queries, len(batch.labels)):
        raise InputError(f"weights must have one entry a query, {batch.n_queries}, or a document, {len(batch.labels)}, not {len(given)}.")
    if options.preset == "xgboost" and given.sum() > 0:
        given = given * (len(given) / given.sum())
    return frozen(given if len(given) == len(batch.labels) else np.repeat(given, np.diff(batch.offsets)), np.float64)


def _inverse_propensities(propensities: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """1 / propensity by position, of the document with the larger label and of the other, and 1 beyond the last position."""
    if propensities is None:
        return None
    theta = getattr(propensities, "theta", propensities)
    pair = isinstance(theta, tuple | list) and len(theta) == 2 and all(np.ndim(one) == 1 for one in theta)
    plus, minus = theta if pair else (theta, None)
    one = _inverse_table(plus)
    other = np.ones_like(one) if minus is None else _inverse_table(minus)
    if len(one) != len(other):
        raise InputError(f"propensities (t_plus, t_minus) must be equally long, not {len(one) - 1} and {len(other) - 1}.")
    return one, other


def _inverse_table(theta: Any) -> np.ndarray:
    array, missing = as_array("propensities", theta)
    if array.ndim != 1 or missing is not None:
        raise InputError("propensities must be one number a position, or a pair (t_plus, t_minus) of such.")
    wrong = ~((array > 0) & np.isfinite(array))
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"propensities must be finite and above 0: that of position {place + 1} is {array[place]}. Cut the table before it."
        )
    return frozen(np.append(1.0 / array.astype(np.float64), 1.0), np.float64)


def lambda_gradients(
    labels: Any,
    scores: Any,
    offsets: Any = None,
    *,
    sizes: Any = None,
    metric: str | None = None,
    gain: Any = None,
    discount: Any = None,
    k: int | None = None,
    ideal_k: int | None = None,
    rel: float | None = None,
    max_label: float | None = None,
    sigma: float | None = None,
    score_norm: bool | None = None,
    group_norm: str | None = None,
    hess_scale: float | None = None,
    pairs: str | None = None,
    n_pairs: int | None = None,
    seed: int | None = None,
    preset: str | None = None,
    weights: Any = None,
    propensities: Any = None,
    positions: Any = None,
    out: tuple[np.ndarray, np.ndarray] | None = None,
    costs: bool = False,
    threads: int | None = None,
) -> Gradients:
    """Gradients of LambdaRank at the given scores.

    A pair (i, j) of a query's documents with label_i > label_j has the loss w log(1 + exp(-sigma (s_i - s_j))), where w is the change of
    the metric if the two exchanged ranks. With rho = 1 / (1 + exp(sigma (s_i - s_j))), each pair adds -sigma rho w to grad_i and
    +sigma rho w to grad_j, and sigma^2 rho (1 - rho) w times `hess_scale` to both second derivatives: a loss to be minimised. Ranks are
    by descending score, equal scores as they stand.

    Parameters
    ----------
    labels, scores
        One number a document, flat, or two-dimensional with a query a row. Scores must be finite.
    offsets, sizes
        At most one: where each query begins (n_queries + 1 numbers, the first 0), or how many documents it has.
    metric
        "ndcg" (default), "map" and "mrr" (relevant: label >= `rel`, 1 unless given), "err" (a document satisfies with the chance
        (2^label - 1) / 2^max_label, `max_label` 4 unless given), or "pairwise" (w = 1: RankNet).
    gain, discount
        Of NDCG, as everywhere: "exp2" and "log2" unless given.
    k, ideal_k
        Only pairs with a document among the first k (`pairs` "topk"), and the cutoff of the ideal DCG: k unless given.
    sigma
        Steepness of the logistic loss, 1 unless given.
    score_norm
        Divide w by 0.01 + |s_i - s_j|, in queries whose scores are not all the same.
    group_norm
        "log2": times log2(1 + S) / S in each query, S the sum of 2 |lambda| over its pairs; "mean": divided by `n_pairs`; or "none".
    hess_scale
        1, or 2 as XGBoost has it.
    pairs
        "all", "topk" (where k is given), or "sampled": each document meets `n_pairs` others of unlike label, drawn with `seed` (a
        `LambdaTargets` draws others at each call, with seed, seed + 1, ...).
    preset
        "lightgbm" (k 30, both norms) or "xgboost" (k 32, both norms, second derivatives twice as large and never below 1e-16 w, weights
        scaled to the mean 1): the values of their own objectives. What else is given is kept.
    weights
        One per query or per document; gradients are multiplied by them.
    propensities, positions
        Debiasing of clicks: the chance that each position is examined, as numbers, as `fastrank.clicks.propensity` returns them, or as a
        pair (t_plus, t_minus), for the document with the larger label and the other: w is divided by both. `positions`, from 1 up, say
        where each document was shown; None: in the order of the rows.
    out
        (grad, hess): arrays of the labels' shape, float32 or float64, to be filled.
    costs
        Return the loss too, per query and per position.
    threads
        None: every processor. The result has the same bits for any number.

    Returns
    -------
    Gradients
        grad and hess, float64 unless `out` is given, in the shape of the labels.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: Burges, Ragno and Le, NIPS 2006; Hu, Wang, Peng and Li, WWW 2019 (propensities); LightGBM 4.7, XGBoost 3.2 (norms).

    Examples
    --------
    >>> import fastrank as fr
    >>> result = fr.training.lambda_gradients([2, 0, 1], [0.1, 0.5, 0.3], preset="lightgbm")
    >>> result.grad.round(3).tolist()
    [-0.614, 0.674, -0.06]
    """
    targets = LambdaTargets(
        labels, offsets, sizes=sizes, metric=metric, gain=gain, discount=discount, k=k, ideal_k=ideal_k, rel=rel, max_label=max_label,
        sigma=sigma, score_norm=score_norm, group_norm=group_norm, hess_scale=hess_scale, pairs=pairs, n_pairs=n_pairs, seed=seed,
        preset=preset, weights=weights, propensities=propensities, positions=positions,
    )  # fmt: skip
    return targets.gradients(scores, out=out, costs=costs, threads=threads)

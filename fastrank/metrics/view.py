"""`View`: a block of queries as a metric sees it. Walks are made at the first question and answered from then on."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fastrank._cached import cached_property
from fastrank.arrays import FLOAT64, UINT8, frozen
from fastrank.gains import Discount, Gain, discounts, gain_table, rises
from fastrank.metrics.base import Cutoff, Request
from fastrank.metrics.in_order import FEW, FEW_CODES, LISTED, few_ideals, few_precisions, ideal_of_labels, walk_in_order
from fastrank.metrics.walk import ideal_walk, walk_placed, walk_ties
from fastrank.ranking.standing import WHOLE, Judged, JudgedRanks, own_lines, stand


class Columns:
    """What the walk wrote for one cutoff, float64[n_queries] each."""

    def __init__(self, written: np.ndarray, place: int) -> None:
        self._written, self._place = written, place

    @property
    def hits(self) -> np.ndarray:
        """Relevant documents met."""
        return self._written[0, self._place]

    @property
    def dcg(self) -> np.ndarray:
        """Sum of gain times discount."""
        return self._written[1, self._place]

    @property
    def precisions(self) -> np.ndarray:
        """Sum of the precisions at relevant documents."""
        return self._written[2, self._place]

    @property
    def reciprocal_rank(self) -> np.ndarray:
        """1 over the rank of the first relevant document, 0 without one."""
        return self._written[3, self._place]

    @property
    def success(self) -> np.ndarray:
        """Whether a relevant document was met: 1 or 0, or the chance of it. Without ties it follows from the number of them."""
        return self._written[4, self._place] if len(self._written) > 4 else np.minimum(self.hits, 1.0)


@dataclass(frozen=True, eq=False)  # a key of what was walked, and as such itself and no other: quickly found
class Walk:
    """One walk of the plan: the requests that share a gain, a discount and a threshold, and their cutoffs."""

    rel: float | None
    gain: Gain | None
    discount: Discount | None
    cutoffs: tuple[Cutoff, ...]


# The lowest relevant label, gains by label, discounts, and cutoffs with their stride.
Terms = tuple[float, np.ndarray, np.ndarray, np.ndarray, int]

_NO_IDEALS = frozen(np.empty(0), FLOAT64)

# Which walk answers a request, and at which of its cutoffs.
Answers = dict[Request, tuple[Walk, int]]


def plan_walks(requests: Sequence[Request]) -> Answers:
    """As few walks as the requests allow. A cutoff that differs per query (a share of the list) takes a walk of its own."""
    walks: list[tuple[list[Request], Walk]] = []
    for request in sorted(set(requests), key=lambda request: sum(field is None for field in request[1:])):
        own = isinstance(request.k, Fraction)
        for place, (served, walk) in enumerate(walks):
            pairs = list(zip(request[1:], (walk.rel, walk.gain, walk.discount), strict=True))
            if not own and type(walk.cutoffs[0]) is not Fraction and all(None in pair or pair[0] == pair[1] for pair in pairs):
                merged: list[Any] = [mine if wanted is None else wanted for wanted, mine in pairs]
                cutoffs = tuple(sorted({*walk.cutoffs, request.k}, key=_ascending))
                walks[place] = [*served, request], Walk(merged[0], merged[1], merged[2], cutoffs)
                break
        else:
            walks.append(([request], Walk(request.rel, request.gain, request.discount, (request.k,))))
    return {request: (walk, walk.cutoffs.index(request.k)) for served, walk in walks for request in served}


def _ascending(k: Cutoff) -> float:
    return np.inf if k is None else float(k)


def share_of_each(sizes: np.ndarray, share: Fraction) -> np.ndarray:
    """The share of each size, exact and rounded up, 1 at least."""
    if int(sizes.max(initial=0)) * share.numerator < 2**63 and share.denominator < 2**63:
        return np.maximum(1, -((-sizes * share.numerator) // share.denominator))
    distinct, place = np.unique(sizes, return_inverse=True)
    return np.array([max(1, math.ceil(share * int(size))) for size in distinct], np.int64)[place]


class View:
    """Where the counted documents of a block stand, with the walks that the plan foresees.

    Attributes: `judged`; `n_queries`; `depth`, or None.
    """

    def __init__(self, judged: Judged, ranks: JudgedRanks | None, answers: Answers, depth: int | None, n_ranks: int) -> None:
        self.judged = judged
        self.n_queries = judged.n_queries
        self.depth = depth
        self._ranks = ranks
        self._answers = answers
        self._n_ranks = n_ranks
        self._made: dict[Walk, np.ndarray] = {}
        # What metrics work out from where the documents stand.
        self.kept: dict[object, Any] = {}

    @cached_property
    def n_retrieved(self) -> np.ndarray:
        """Documents of each list after `depth`."""
        size = self.judged.list_size if self._ranks is None else self._ranks.list_size
        return size if self.depth is None else np.minimum(size, self.depth)

    @property
    def ranks(self) -> JudgedRanks:
        """Where the documents stand. Labels in rank order are listed when a metric asks for more than the walk tells."""
        if self._ranks is None:
            self._ranks = stand(self.judged, None, "average")
        return self._ranks

    def n_relevant(self, rel: float) -> np.ndarray:
        """Relevant documents of each query, unretrieved ones included."""
        return self.judged.n_relevant(rel)

    def cutoff(self, k: Cutoff) -> np.ndarray:
        """The cutoff of each query, int64[n_queries]: k itself, or the exact share of the list, rounded up, 1 at least.

        An empty list is cut at 1, so that it counts 0 where something was to be found and not as a query with nothing to find.
        """
        if type(k) is Fraction:
            return share_of_each(self.n_retrieved, k)
        return np.full(self.n_queries, WHOLE if k is None else k)

    def limits(self, ks: tuple[Cutoff, ...]) -> tuple[np.ndarray, int]:
        """Cutoffs as kernels take them, after `depth`: a row for all queries and stride 0, or a row a query and stride 1."""
        if type(ks[0]) is Fraction:
            return self.cutoff(ks[0]).reshape(-1, 1), 1
        return _shared_cutoffs(ks, self.depth), 0

    def discounts(self, discount: Discount) -> np.ndarray:
        """The discount of every rank that a document of the batch could have."""
        return discounts(discount, self._n_ranks)

    def columns(self, request: Request) -> Columns:
        """The walk's answer to a request that the plan knew of."""
        found, place = self._answers[request]
        made = self._made.get(found)
        if made is None:
            if self._ranks is None and self._is_in_order(found):
                made = self._walk_in_order(found, np.inf if found.rel is None else found.rel)
            else:
                made = self._walk(found.gain, self._terms_of(found))
            self._made[found] = made
        return Columns(made, place)

    def at(self, limits: np.ndarray, rel: float) -> Columns:
        """A walk with a cutoff of its own for each query, for metrics that cut at a number of relevant documents."""
        limits = limits if self.depth is None else np.minimum(limits, self.depth)
        return Columns(self._walk(None, (rel, gain_table(None, self.judged.codes), self.discounts("zipf"), limits.reshape(-1, 1), 1)), 0)

    def _terms_of(self, walk: Walk) -> Terms:
        """What a walk needs besides the ranks. Kept beside the labels, except for cutoffs that depend on what is retrieved."""
        kept = self.judged.kept
        terms: Terms | None = kept.get((walk, self.depth))
        if terms is None:
            rel, table = np.inf if walk.rel is None else walk.rel, discounts(walk.discount or "zipf", self._n_ranks)
            terms = rel, gain_table(walk.gain, self.judged.codes), table, *self.limits(walk.cutoffs)
            if type(walk.cutoffs[0]) is not Fraction:
                kept[walk, self.depth] = terms
        return terms

    def _walk(self, gain: Gain | None, terms: Terms) -> np.ndarray:
        ranks, judged = self._ranks or self.ranks, self.judged
        rel, gains, discount, cutoffs, stride = terms
        by_label = judged.codes > 0
        if not by_label:
            gains = frozen(np.zeros(len(ranks.label)) if gain is None else judged.gains(ranks.label, gain), FLOAT64)
        n_cutoffs = cutoffs.shape[1]
        out = np.empty(5 * n_cutoffs * self.n_queries)
        if ranks.shared:
            spans = (ranks.rank, ranks.span, gains, by_label, ranks.label, ranks.starts)
            walk_ties(*spans, rel, discount, cutoffs, stride, out, own_lines(2))
        else:
            walk_placed(ranks.rank, gains, by_label, ranks.label, ranks.starts, rel, discount, cutoffs, stride, out)
        return out.reshape(5, n_cutoffs, self.n_queries)

    def _is_in_order(self, walk: Walk) -> bool:
        """Whether a walk may go down the labels themselves: they stand in rank order, are small whole numbers, and none is elsewhere.

        That is three times as fast as listing the documents that count, then their ranks, gains and ideals, then walking.
        """
        if self.depth is not None or not self.judged.codes:
            return False
        rising = walk.gain is None or rises(walk.gain)
        shared = type(walk.cutoffs[0]) is not Fraction
        return rising and shared and self.judged.all_retrieved and self.judged.bound is not None

    def _walk_in_order(self, walk: Walk, rel: float) -> np.ndarray:
        """The columns of the walk; what it learns of the labels alone is kept for whoever asks."""
        judged, shape = self.judged, (5, len(walk.cutoffs), self.n_queries)
        out, n_relevant = np.empty(math.prod(shape)), np.empty(self.n_queries, np.int64)
        labels, codes, bound, discount = judged.labels, judged.codes, judged.bound, walk.discount or "zipf"
        rel_code = labels.dtype.type(math.ceil(min(max(rel, 0.0), codes)))
        few = labels.dtype == UINT8 and codes <= FEW_CODES and self.judged.least > 0
        tables = few_precisions(), few_ideals(walk.gain, discount, codes) if few else _NO_IDEALS
        room = own_lines(codes, np.int64), own_lines(judged.longest + 2 * FEW + 10), own_lines(LISTED + 8, np.int64)
        fixed = (labels, judged.offsets, bound, rel_code, gain_table(walk.gain, codes), self.discounts(discount))
        walk_in_order(*fixed, _shared_cutoffs(walk.cutoffs, None)[0], *tables, *room, out, n_relevant)
        columns = out.reshape(shape)
        if walk.rel is not None:
            judged.kept["relevant", walk.rel] = n_relevant
        if walk.gain is not None:
            for k, ideal in zip(walk.cutoffs, columns[4], strict=True):
                judged.kept["ideal", walk.gain, walk.discount, k] = ideal
        return columns[:4]

    def ideal(self, gain: Gain, discount: Discount, k: Cutoff) -> np.ndarray:
        """What the ideal order gains at k, float64[n_queries]. Kept beside the labels: it does not change with the scores.

        It is cut at k, not at the depth of the ranking: what was not retrieved belongs to it.
        """
        key: tuple[object, ...] = ("ideal", gain, discount, k)
        if type(k) is Fraction:  # a share of the list depends on what is retrieved
            key = (*key, self.depth, self._ranks is None or self._ranks.size is None)
        kept = self.judged.kept
        found: np.ndarray | None = kept.get(key)
        if found is None and self._ranks is None and (request := Request(k, gain=gain, discount=discount)) in self._answers:
            self.columns(request)
            found = kept.get(key)
        if found is None:
            found = kept[key] = self._ideal(gain, discounts(discount, self._n_ranks), k)
        return found

    def _ideal(self, gain: Gain, discount: np.ndarray, k: Cutoff) -> np.ndarray:
        judged = self.judged
        if judged.codes and rises(gain) and type(k) is not Fraction:
            ideal = np.empty(self.n_queries)
            listed = judged.all_labels, judged.all_starts, judged.longest
            ideal_of_labels(*listed, gain_table(gain, judged.codes), discount, _shared_cutoffs((k,), None)[0], ideal)
            return ideal
        gains, out = judged.ideal_gains(gain), np.empty((1, self.n_queries))
        cutoffs, stride = (self.cutoff(k).reshape(-1, 1), 1) if type(k) is Fraction else (_shared_cutoffs((k,), None), 0)
        ideal_walk(gains, judged.all_starts, judged.list_size + judged.n_unretrieved, discount, cutoffs, stride, out)
        return out[0]


@functools.cache
def _shared_cutoffs(ks: tuple[Cutoff, ...], depth: int | None) -> np.ndarray:
    row = np.array([[WHOLE if k is None else k for k in ks]], np.int64)
    return row if depth is None else np.minimum(row, depth)


def by_query(reduce: np.ufunc, values: np.ndarray, starts: np.ndarray, empty: float = 0.0) -> np.ndarray:
    """Reduce the values of each query, query q's from starts[q] on; `empty` for a query without any."""
    out = np.full(len(starts) - 1, empty)
    filled = np.flatnonzero(starts[1:] > starts[:-1])
    if len(filled):
        out[filled] = reduce.reduceat(values, starts[:-1][filled])
    return out


def share_of(counts: np.ndarray, total: np.ndarray) -> np.ndarray:
    """counts / total for whole numbers; 0 where the total is 0, since then the count is."""
    return counts / np.maximum(total, 1)

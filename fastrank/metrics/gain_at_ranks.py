"""Experimental measures of trec_eval that combine gains with what an ideal list has at the same rank: G, binG, ndcg_rel, Rndcg."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.gains import Gain, as_gain, describe_gain
from fastrank.metrics.base import Metric, Request, no_relevant_parameter, parameter, rel_parameter, show_rel, threshold
from fastrank.metrics.binary import RecallLike
from fastrank.metrics.cumulative_gain import Gained
from fastrank.metrics.view import by_query, share_of

if TYPE_CHECKING:
    from fastrank.metrics.view import View

_TREC = "trec_eval (Buckley, 2008, experimental)"


@kernel
def gain_against_cost(rank: Any, gain: Any, starts: Any, ideal: Any, ideal_starts: Any, cutoffs: Any, out: Any) -> None:
    """out[q] = sum over documents of gain / log2(2 + cost - gain so far). Each rank costs what the ideal list gains there, 1 at least."""
    for q in range(starts.shape[0] - 1):
        total, gained, cost = 0.0, 0.0, 0.0
        place = ideal_starts[q]
        paid = 0
        for i in range(starts[q], starts[q + 1]):
            if rank[i] > cutoffs[0, 0]:
                break
            while place < ideal_starts[q + 1] and ideal[place] > 1.0 and paid < rank[i]:
                cost += ideal[place]
                place += 1
                paid += 1
            cost += rank[i] - paid
            paid = rank[i]
            gained += gain[i]
            if gain[i] != 0.0:
                total += gain[i] / np.log2(2.0 + cost - gained)
        out[q] = total


@kernel
def gain_after_others(rank: Any, label: Any, span: Any, starts: Any, rel: float, cutoffs: Any, out: Any) -> None:
    """out[q] = sum over relevant documents of 1 / log2(2 + not relevant above).

    In a block of ties the number of its other documents above a given relevant one is uniform on 0 ... m.
    """
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        met = 0
        while i < stop and rank[i] <= cutoffs[0, 0]:
            first = i
            r = 0
            while i < stop and rank[i] == rank[first]:
                r += label[i] >= rel
                i += 1
            if r > 0:
                others = rank[first] - 1 - met
                mean = 0.0
                for above in range(others, others + span[first] - r + 1):
                    mean += 1.0 / np.log2(2.0 + above)
                total += r * (mean / (span[first] - r + 1))
            met += r
        out[q] = total


@kernel
def ndcg_at_relevant(
    rank: Any, gain: Any, span: Any, starts: Any, ideal: Any, ideal_starts: Any, discount: Any, depth: Any, n_relevant: Any, out: Any
) -> None:
    """out[q] = sum over the documents that gain of nDCG at their rank; those that were not retrieved have it at the list's end.

    In a block of n equal scores with r such documents and gains that sum to S (P: of those r), the gain above an expected one is
    (r S - P) / (n (n - 1)) at each place of the block above it.
    """
    for q in range(starts.shape[0] - 1):
        i, place = starts[q], ideal_starts[q]
        total, dcg, best = 0.0, 0.0, 0.0
        found = 0
        while i < starts[q + 1] and rank[i] <= depth[q]:
            first = i
            r, gained, of_those = 0, 0.0, 0.0
            while i < starts[q + 1] and rank[i] == rank[first]:
                gained += gain[i]
                if gain[i] > 0.0:
                    r += 1
                    of_those += gain[i]
                i += 1
            n = span[first]
            inside = 0.0
            beside = (r * gained - of_those) / (n * (n - 1.0)) if n > 1 else 0.0
            for at in range(rank[first] - 1, rank[first] - 1 + n):
                while place < ideal_starts[q + 1] and place - ideal_starts[q] <= at and ideal[place] > 0.0:
                    best += ideal[place] * discount[place - ideal_starts[q]]
                    place += 1
                if r > 0:
                    total += (r / n * dcg + of_those / n * discount[at] + beside * inside) / best
                inside += discount[at]
            dcg += gained / n * inside
            found += r
        while place < ideal_starts[q + 1] and ideal[place] > 0.0:
            best += ideal[place] * discount[place - ideal_starts[q]]
            place += 1
        out[q] = total + (n_relevant[q] - found) * dcg / best if best > 0.0 else 0.0


@kernel
def ndcg_at_levels(rank: Any, gain: Any, span: Any, starts: Any, ideal: Any, ideal_starts: Any, discount: Any, size: Any, out: Any) -> None:
    """out[q] = mean of nDCG at the ranks where the ideal list's gain changes, and at the list's end when that lies beyond the next rank."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        begin, place = ideal_starts[q], ideal_starts[q]
        total, dcg, best = 0.0, 0.0, 0.0
        n_points, inside = 0, 0
        while place < ideal_starts[q + 1] and ideal[place] > 0.0:
            best += ideal[place] * discount[place - begin]
            place += 1
            if place == ideal_starts[q + 1] or ideal[place] != ideal[place - 1]:
                dcg, i, inside = _gain_up_to(rank, gain, span, discount, i, stop, min(place - begin, size[q]), dcg, inside)
                total += dcg / best
                n_points += 1
        if n_points > 0 and size[q] > place - begin + 1:
            dcg, i, inside = _gain_up_to(rank, gain, span, discount, i, stop, size[q], dcg, inside)
            total += dcg / best
            n_points += 1
        out[q] = total / n_points if n_points > 0 else 0.0


@kernel
def _gain_up_to(rank: Any, gain: Any, span: Any, discount: Any, i: int, stop: int, last: int, dcg: float, inside: int) -> Any:
    """Go on to rank `last`: the discounted gain, the document to go on with, and how many places of its block are behind."""
    while i < stop and rank[i] + inside <= last:
        j = i
        gained = 0.0
        while j < stop and rank[j] == rank[i]:
            gained += gain[j]
            j += 1
        while inside < span[i] and rank[i] + inside <= last:
            dcg += gained / span[i] * discount[rank[i] - 1 + inside]
            inside += 1
        if inside < span[i]:
            break
        i = j
        inside = 0
    return dcg, i, inside


@dataclass(frozen=True, kw_only=True)
class binG(RecallLike):  # noqa: N801  (trec_eval's spelling)
    """Binary G: each relevant document gains less the more others stand above it, whatever the relevant ones above."""

    family: ClassVar[str] = "binG"
    title: ClassVar[str] = "Binary G"
    source: ClassVar[str] = _TREC
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,1: binG = (1 + 1/log2(3)) / 2 = 0.8155"

    @property
    def formula(self) -> str:
        return f"sum over retrieved documents with {show_rel(self.rel)} of 1 / log2(2 + others above), divided by P"

    def requests(self) -> tuple[Request, ...]:
        return ()

    def check_depth(self) -> None:
        _refuse_depth(self)

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        gain_after_others(ranks.rank, ranks.label, ranks.span, ranks.starts, self.least, view.limits((None,))[0], total)
        return share_of(total, view.n_relevant(self.least))


@dataclass(frozen=True, kw_only=True)
class _GainAtRanks(Gained):
    """What the graded ones share: the gains of the documents that count, and of the ideal list."""

    source: ClassVar[str] = _TREC
    whole_list_only: ClassVar[bool] = True
    own_defaults: ClassVar[tuple[str, ...]] = ("gain",)

    gain: Gain | None = parameter(lambda name, value: as_gain(value), "linear")
    no_relevant: str | None = no_relevant_parameter()

    def _gains(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Of the documents in rank order, and in the ideal order."""
        assert self.gain is not None
        return view.judged.gains(view.ranks.label, self.gain), view.judged.ideal_gains(self.gain)

    @property
    def _described(self) -> str:
        assert self.gain is not None
        return describe_gain(self.gain)

    def nothing_to_find(self, view: View) -> np.ndarray:
        _, ideal = self._gains(view)
        return by_query(np.maximum, ideal, view.judged.all_starts) <= 0


@dataclass(frozen=True, kw_only=True)
class G(_GainAtRanks):
    """Normalised gain: a document gains less the further the list has fallen behind the ideal one."""

    family: ClassVar[str] = "G"
    title: ClassVar[str] = "Normalised gain G"
    has_bounds: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,0,2: G = (1/log2(3) + 2/log2(3)) / 3 = 0.6309"

    @property
    def formula(self) -> str:
        terms = f"sum over documents of {self._described} / log2(2 + cost - gain up to it)"
        return f"{terms}, divided by the gains of the ideal list; each rank costs what the ideal list gains there, 1 at least"

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        gains, ideal = self._gains(view)
        gain_against_cost(ranks.rank, gains, ranks.starts, ideal, view.judged.all_starts, view.limits((None,))[0], total)
        below = by_query(np.add, np.maximum(ideal, 0.0), view.judged.all_starts)
        # The two are summed in different orders.
        return np.minimum(np.divide(total, below, out=np.zeros(view.n_queries), where=below > 0), 1.0)


@dataclass(frozen=True, kw_only=True)
class nDCGrel(_GainAtRanks):  # noqa: N801  (the field's spelling)
    """nDCG at the rank of each document that gains, averaged over them; one that was not retrieved has nDCG of the whole list."""

    family: ClassVar[str] = "nDCGrel"
    title: ClassVar[str] = "nDCG averaged over relevant documents"
    aliases: ClassVar[tuple[str, ...]] = ("ndcg_rel",)
    has_bounds: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,0,1: nDCGrel = (1 + 1.5 / (1 + 1/log2(3))) / 2 = 0.9599"

    @property
    def formula(self) -> str:
        return f"mean over documents with {self._described} > 0 of nDCG at their rank, that of the whole list for those not retrieved"

    def check_depth(self) -> None:
        _refuse_depth(self)

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        gains, ideal = self._gains(view)
        n_relevant = by_query(np.add, (ideal > 0).astype(np.float64), view.judged.all_starts)
        lists = (ranks.rank, gains, ranks.span, ranks.starts, ideal, view.judged.all_starts)
        ndcg_at_relevant(*lists, view.discounts("log2"), view.n_retrieved, n_relevant, total)
        return np.clip(share_of(total, n_relevant), 0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Rndcg(_GainAtRanks):
    """nDCG at each rank where the ideal list's gain falls, averaged over these ranks and the end of the list.

    The end of the list counts when more than one rank lies beyond the last gain, as trec_eval has it.
    """

    family: ClassVar[str] = "Rndcg"
    title: ClassVar[str] = "nDCG averaged over levels of relevance"
    example: ClassVar[str] = "labels 1,2,0,0: Rndcg = (1/2 + 2 * (1 + 2/log2(3)) / (2 + 1/log2(3))) / 3 = 0.7398"

    rel: float | str | None = rel_parameter()

    @property
    def formula(self) -> str:
        points = f"the last rank of each {self._described} > 0 in the ideal list, and the end of the list"
        return f"mean of nDCG at {points}; nothing to find without a document with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        gains, ideal = self._gains(view)
        lists = (ranks.rank, gains, ranks.span, ranks.starts, ideal, view.judged.all_starts)
        ndcg_at_levels(*lists, view.discounts("log2"), view.n_retrieved, total)
        return np.minimum(total, 1.0)

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(super().nothing_to_find(view) | (view.n_relevant(threshold(self.rel)) == 0))


def _refuse_depth(metric: Metric) -> None:
    if metric.ties == "average":
        cure = "Give ties='worst', 'best', 'input' or 'docid'."
        raise InputError(f"{metric.family} has no closed form for ties across depth=. {cure}")

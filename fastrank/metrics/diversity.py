"""Metrics of diversity: how soon a ranking covers the subtopics of a query, and how little it repeats itself.

A document that is relevant to subtopics which c_1, c_2, ... documents above it were relevant to as well has the novel gain
g = (1 - alpha)^c_1 + (1 - alpha)^c_2 + ... Only the subtopics with a relevant document count; S is their number.
Sources: Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, SIGIR 2008; Clarke, Kolla and Vechtomova, ICTIR 2009;
Chapelle, Metzler, Zhang and Grinspan, CIKM 2009; Agrawal, Gollapudi, Halverson and Ieong, WSDM 2009; as in ndeval (TREC Web track).

Under a list of relevant documents that are all relevant to every subtopic the novel gains are S, S (1 - alpha), S (1 - alpha)^2, ...:
alpha_DCG and ERR_IA are divided by what that list has. ndeval leaves out this division at cutoff 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.gains import discounts
from fastrank.metrics.base import as_share, between, no_relevant_parameter, parameter, show_rel, up_to
from fastrank.metrics.grouped import Relevant, RelevantByGroup, groups_of, relevant
from fastrank.metrics.view import by_query, share_of
from fastrank.ranking.standing import UNRETRIEVED

if TYPE_CHECKING:
    from fastrank.metrics.view import View

# So many terms are a sum of a tenth of a second.
MOST_TERMS = 10**7

_CLARKE = "Clarke et al., SIGIR 2008, as in ndeval"
_CHAPELLE = "Chapelle et al., CIKM 2009, as in ndeval"
_NRBP = "Clarke, Kolla and Vechtomova, ICTIR 2009, as in ndeval"


@kernel
def order_greedily(starts: Any, bounds: Any, group: Any, keep: float, deepest: int, left: Any, gain: Any, rank: Any) -> None:
    """rank[d] = rank of document d in the order that at each rank takes the greatest novel gain, the first of equal ones.

    It goes to rank `deepest`; further documents have rank 0. Query q has the documents starts[q] ... starts[q + 1] - 1, and document d is
    relevant to the groups group[bounds[d]:bounds[d + 1]]. left[g], 1 at first, is what a further document of the group gains, keep times
    as much after each; gain is scratch.
    """
    for q in range(starts.shape[0] - 1):
        first, stop = starts[q], starts[q + 1]
        for d in range(first, stop):
            gain[d] = np.inf
            rank[d] = 0
        for r in range(1, min(stop - first, deepest) + 1):
            best, most = first, -1.0
            for d in range(first, stop):
                # Gains only fall: what was not more before is not more now.
                if rank[d] == 0 and gain[d] > most:
                    gain[d] = 0.0
                    for i in range(bounds[d], bounds[d + 1]):
                        gain[d] += left[group[i]]
                    if gain[d] > most:
                        best, most = d, gain[d]
            rank[best] = r
            for i in range(bounds[best], bounds[best + 1]):
                left[group[i]] *= keep


def ideal_order(view: View, least: float, alpha: float, most: int) -> Relevant:
    """The relevant documents of each group in the greedy order to rank `most`; ties go to the greater id. Kept beside the labels."""
    key = ("greedy order", least, alpha, most)
    kept = view.judged.kept
    if key not in kept:
        groups, found = groups_of(view), relevant(view, least)
        order = np.lexsort((found.group, found.document))
        # One entry for each document that is relevant to something.
        documents, n_groups = np.unique(found.document, return_counts=True)
        starts, bounds = np.searchsorted(documents, groups.document_offsets), np.append(0, np.cumsum(n_groups))
        place, gain, left = np.empty(len(documents), np.int64), np.empty(len(documents)), np.ones(len(groups.starts) - 1)
        order_greedily(starts, bounds, found.group[order], 1.0 - alpha, most, left, gain, place)
        rank = np.where(place > 0, place, UNRETRIEVED)[np.searchsorted(documents, found.document)]
        order = np.lexsort((rank, found.group))
        kept[key] = found._replace(document=found.document[order], rank=rank[order])
    ideal: Relevant = kept[key]
    return ideal


@dataclass(frozen=True, kw_only=True)
class _Diverse(RelevantByGroup):
    """A metric of the subtopics of a query. Nothing to find: no subtopic has a relevant document."""

    source: ClassVar[str] = _CLARKE

    def found(self, view: View) -> Relevant:
        """The relevant documents of each subtopic."""
        return relevant(view, self.least)

    def n_subtopics(self, view: View) -> np.ndarray:
        """S, the subtopics of each query that have a relevant document."""
        return by_query(np.add, (self.found(view).n > 0).astype(np.float64), groups_of(view).offsets)


@dataclass(frozen=True, kw_only=True)
class _Novel(_Diverse):
    """A sum over ranks of novel gains and discounts."""

    alpha: float | None = parameter(as_share, 0.5)

    discount: ClassVar[str] = "log2"
    ideal: ClassVar[bool] = False

    @property
    def _gain(self) -> str:
        return f"the novel gain g = sum over subtopics with {show_rel(self.rel)} of {1 - (self.alpha or 0):g}^(such documents above)"

    @property
    def keep(self) -> float:
        """What of a subtopic's gain is left for the next document."""
        assert self.alpha is not None
        return 1.0 - self.alpha

    def table(self, n: int) -> np.ndarray:
        """The discounts of ranks 1 ... n."""
        return discounts(self.discount, n)

    def total(self, view: View, found: Relevant) -> np.ndarray:
        """The sum over ranks up to the cutoff of novel gain and discount."""
        there = found.rank <= self.limit(view, found)
        rank = np.where(there, found.rank, 1)
        table = self.table(int(rank.max(initial=1)))
        return self.sum_of(view, np.where(there, self.keep**found.place * table[rank - 1], 0.0), found)

    def values(self, view: View) -> np.ndarray:
        total = self.total(view, self.found(view))
        if self.ideal:
            most = int(view.cutoff(self.k).max(initial=1))
            best = self.total(view, ideal_order(view, self.least, self.alpha or 0.0, most))
            return total / np.where(best > 0, best, np.inf)
        return share_of(total, self.n_subtopics(view)) / self.everything(view)

    def everything(self, view: View) -> Any:
        """The sum for relevant documents that are relevant to a lone subtopic, at every rank up to the cutoff."""
        # Without a cutoff: to the end of the list.
        limits = np.maximum(view.n_retrieved, 1) if self.k is None else view.cutoff(self.k)
        if 0.0 < self.keep < 1.0:  # beyond this place a term is less than 2^-60 of the first
            limits = np.minimum(limits, int(-60.0 / math.log2(self.keep)) + 2)
        n = int(limits.max(initial=1))
        if n > MOST_TERMS:
            raise InputError(f"{self.short_name} sums as many terms as its cutoff, {n}, at most {MOST_TERMS}. Give a smaller cutoff.")
        return np.cumsum(self.keep ** np.arange(n) * self.table(n)[:n])[limits - 1]


@dataclass(frozen=True, kw_only=True)
class alpha_DCG(_Novel):  # noqa: N801  (the field's spelling)
    """Discounted cumulative novel gain, divided by that of a list in which every document is relevant to every subtopic."""

    family: ClassVar[str] = "alpha_DCG"
    title: ClassVar[str] = "Novelty-biased discounted cumulative gain"
    aliases: ClassVar[tuple[str, ...]] = ("α_DCG", "alpha-DCG")
    example: ClassVar[str] = (
        "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: alpha_DCG@2 = (1 + (0.5 + 1) / log2(3)) / (2 + 1 / log2(3)) = 0.7398"
    )

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        perfect = f"sum of S * {self.keep:g}^(r - 1) / log2(r + 1)"
        return f"sum over ranks r{up_to(self.k)} of g(r) / log2(r + 1), divided by the {perfect}; {self._gain}"


@dataclass(frozen=True, kw_only=True)
class alpha_nDCG(_Novel):  # noqa: N801  (the field's spelling)
    """Discounted cumulative novel gain over that of the ideal order, in which each document is the one of the greatest novel gain.

    Finding the very best order is NP-complete: this greedy one is the field's ideal. In rare cases another has a little more, so that
    the value is above 1.
    """

    family: ClassVar[str] = "alpha_nDCG"
    title: ClassVar[str] = "Novelty-biased normalised discounted cumulative gain"
    aliases: ClassVar[tuple[str, ...]] = ("α_nDCG", "alpha-nDCG")
    ideal: ClassVar[bool] = True
    example: ClassVar[str] = (
        "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: alpha_nDCG@2 = (1 + 1.5 / log2(3)) / (2 + 0.5 / log2(3)) = 0.8406"
    )

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"sum over ranks r{up_to(self.k)} of g(r) / log2(r + 1), divided by that of the greedy order; {self._gain}"


@dataclass(frozen=True, kw_only=True)
class ERR_IA(_Novel):  # noqa: N801  (the field's spelling)
    """Intent-aware expected reciprocal rank, divided by that of a list in which every document is relevant to every subtopic."""

    family: ClassVar[str] = "ERR_IA"
    title: ClassVar[str] = "Intent-aware expected reciprocal rank"
    aliases: ClassVar[tuple[str, ...]] = ("ERR-IA",)
    source: ClassVar[str] = _CHAPELLE
    discount: ClassVar[str] = "zipf"
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: ERR_IA@2 = (1 + (0.5 + 1) / 2) / (2 + 1 / 2) = 0.7"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"sum over ranks r{up_to(self.k)} of g(r) / r, divided by the sum of S * {self.keep:g}^(r - 1) / r; {self._gain}"


@dataclass(frozen=True, kw_only=True)
class nERR_IA(_Novel):  # noqa: N801  (the field's spelling)
    """Intent-aware expected reciprocal rank over that of the greedy order, the ideal of alpha_nDCG."""

    family: ClassVar[str] = "nERR_IA"
    title: ClassVar[str] = "Normalised intent-aware expected reciprocal rank"
    aliases: ClassVar[tuple[str, ...]] = ("nERR-IA",)
    source: ClassVar[str] = _CHAPELLE
    discount: ClassVar[str] = "zipf"
    ideal: ClassVar[bool] = True
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: nERR_IA@2 = (1 + 1.5 / 2) / (2 + 0.5 / 2) = 0.7778"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"sum over ranks r{up_to(self.k)} of g(r) / r, divided by that of the greedy order; {self._gain}"


@dataclass(frozen=True, kw_only=True)
class _NoveltyRankBiased(_Novel):
    """Novel gain to a reader who goes on from each document with probability beta."""

    source: ClassVar[str] = _NRBP
    whole_list_only: ClassVar[bool] = True

    beta: float | None = parameter(between(0, 1), 0.5)
    no_relevant: str | None = no_relevant_parameter()

    def table(self, n: int) -> np.ndarray:
        assert self.beta is not None
        return self.beta ** np.arange(n)


@dataclass(frozen=True, kw_only=True)
class NRBP(_NoveltyRankBiased):
    """Novelty- and rank-biased precision: 1 for an endless list in which every document is relevant to every subtopic."""

    family: ClassVar[str] = "NRBP"
    title: ClassVar[str] = "Novelty- and rank-biased precision"
    example: ClassVar[str] = (
        "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: NRBP = (1 - 0.5 * 0.5) / 2 * (1 + 0.5 * (0.5 + 1)) = 0.6562"
    )

    @property
    def formula(self) -> str:
        return f"(1 - {self.keep:g} * {self.beta}) / S * sum over ranks r of g(r) * {self.beta}^(r - 1); {self._gain}"

    def everything(self, view: View) -> float:
        assert self.beta is not None
        return 1.0 / (1.0 - self.keep * self.beta)


@dataclass(frozen=True, kw_only=True)
class nNRBP(_NoveltyRankBiased):  # noqa: N801  (the field's spelling)
    """Novelty- and rank-biased precision over that of the greedy order, the ideal of alpha_nDCG."""

    family: ClassVar[str] = "nNRBP"
    title: ClassVar[str] = "Normalised novelty- and rank-biased precision"
    ideal: ClassVar[bool] = True
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: nNRBP = (1 + 0.5 * 1.5) / (2 + 0.5 * 0.5) = 0.7778"

    @property
    def formula(self) -> str:
        return f"sum over ranks r of g(r) * {self.beta}^(r - 1), divided by that of the greedy order; {self._gain}"


@dataclass(frozen=True, kw_only=True)
class AP_IA(_Diverse):  # noqa: N801  (the field's spelling)
    """Intent-aware average precision: that of each subtopic, averaged over the subtopics that have a relevant document."""

    family: ClassVar[str] = "AP_IA"
    title: ClassVar[str] = "Intent-aware average precision"
    aliases: ClassVar[tuple[str, ...]] = ("MAP_IA", "MAP-IA")
    source: ClassVar[str] = "Agrawal et al., WSDM 2009, as in ndeval"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: AP_IA = ((1 + 2/2) / 2 + 1/2) / 2 = 0.75"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"mean over subtopics of AP: the sum over ranks r of its documents with {show_rel(self.rel)} of hits(r) / r, divided by P"

    def values(self, view: View) -> np.ndarray:
        found = self.found(view)
        precisions = np.where(found.rank < UNRETRIEVED, (found.place + 1) / found.rank, 0.0)
        return share_of(self.sum_of(view, precisions / found.n[found.group], found), self.n_subtopics(view))


@dataclass(frozen=True, kw_only=True)
class P_IA(_Diverse):  # noqa: N801  (the field's spelling)
    """Intent-aware precision: that of each subtopic, averaged over the subtopics that have a relevant document."""

    family: ClassVar[str] = "P_IA"
    title: ClassVar[str] = "Intent-aware precision"
    aliases: ClassVar[tuple[str, ...]] = ("P-IA",)
    source: ClassVar[str] = "Agrawal et al., WSDM 2009, as in ndeval"
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: P_IA@2 = (2/2 + 1/2) / 2 = 0.75"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        below = "the number of retrieved documents" if self.k is None else "k"
        return f"mean over subtopics of the documents with {show_rel(self.rel)} at ranks r{up_to(self.k)}, divided by {below}"

    def values(self, view: View) -> np.ndarray:
        found = self.found(view)
        hits = self.sum_of(view, (found.rank <= self.limit(view, found)).astype(np.float64), found)
        below = view.n_retrieved if self.k is None else view.cutoff(self.k)
        return share_of(hits, self.n_subtopics(view) * np.maximum(below, 1))


@dataclass(frozen=True, kw_only=True)
class StRecall(_Diverse):
    """Subtopic recall: the share of the subtopics that a document of the top k is relevant to."""

    family: ClassVar[str] = "StRecall"
    title: ClassVar[str] = "Subtopic recall"
    aliases: ClassVar[tuple[str, ...]] = ("strec",)
    source: ClassVar[str] = "Zhai, Cohen and Lafferty, SIGIR 2003, as in ndeval"
    example: ClassVar[str] = "ranking a,b; a is relevant to subtopic 1, b to 1 and 2: StRecall@1 = 1/2"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"(subtopics with a document with {show_rel(self.rel)} at ranks r{up_to(self.k)}) / S"

    def values(self, view: View) -> np.ndarray:
        found = self.found(view)
        covers = (found.place == 0) & (found.rank <= self.limit(view, found))
        return share_of(self.sum_of(view, covers.astype(np.float64), found), self.n_subtopics(view))

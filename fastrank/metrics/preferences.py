"""Metrics of preferences: judges who say which of two documents is the better one.

A judge prefers the document of the greater label in each part of a judgement; with several parts, a > b and b > c make a > c. A
preference is fulfilled when the better document stands above the other, or is retrieved and the other is not. A label of 0 says that a
document is not relevant; labels below 0 say nothing.
Source: trec_eval -R prefs and -R qrels_prefs (Buckley), whose counts these are. In these metrics alone it orders equal scores by ascending
id: ties="ascending_docid".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fastrank._kernel import kernel
from fastrank.convention import TIE_RULES
from fastrank.metrics.base import no_relevant_parameter, parameter, word
from fastrank.metrics.grouped import GroupedMetric, document_ranks, groups_of
from fastrank.metrics.view import by_query, share_of
from fastrank.ranking.standing import ASCENDING, UNRETRIEVED

if TYPE_CHECKING:
    from fastrank.metrics.view import View

# Which pairs of documents count, and how that is said: also the order of the counts below.
AMONG = {
    "all": "all preferences",
    "any_retrieved": "preferences of which a document is retrieved",
    "both_retrieved": "preferences of which both documents are retrieved",
}


@kernel
def _list_preferences(place: Any, part: Any, label: Any, first: int, last: int, level: Any, before: Any, own: Any) -> Any:
    """before[a, b] = 1 where judgements first ... last - 1, ordered by part, prefer the document at place a to that at b.

    level[a] = the label of the document; own lists the places, and their number is returned with that of the parts.
    """
    n_own, n_parts = 0, 0
    i = first
    while i < last:
        stop = i
        while stop < last and part[stop] == part[i]:
            stop += 1
        n_parts += 1
        for j in range(i, stop):
            if label[j] >= 0:
                a = place[j]
                if level[a] < 0:
                    own[n_own] = a
                    n_own += 1
                level[a] = label[j]
                for k in range(i, stop):
                    if 0 <= label[k] < label[j]:
                        before[a, place[k]] = 1
        i = stop
    if n_parts > 1:  # one part is complete
        for c in own[:n_own]:
            for a in own[:n_own]:
                if before[a, c]:
                    for b in own[:n_own]:
                        before[a, b] |= before[c, b]
    return n_own, n_parts


@kernel
def _count(before: Any, own: Any, n_own: int, level: Any, bar: int, nearest: int, farthest: int, n_retrieved: int, out: Any) -> None:
    """Add to out the fulfilled and the possible preferences between a place below `nearest` and one below `farthest`.

    Documents of level 0 at places from `bar` on are left out.
    """
    for a in own[:n_own]:
        if level[a] == 0 and a >= bar:
            continue
        for b in own[:n_own]:
            if before[a, b] and min(a, b) < nearest and max(a, b) < farthest and (level[b] != 0 or b < bar):
                out[0] += a < b and a < n_retrieved
                out[1] += 1


@kernel
def _place_of_zero(level: Any, n: int, wanted: int) -> Any:
    """The place of the document of level 0 that has so many such before it; n where there are not as many."""
    for a in range(n):
        if level[a] == 0:
            if wanted == 0:
                return a
            wanted -= 1
    return n


@kernel
def _balance(before: Any, own: Any, n_own: int, level: Any, n: int, limit: int, n_retrieved: int, complete: bool, out: Any) -> None:
    """Preferences when there are as many non-relevant documents as relevant ones, R, among the places below `limit`, as trec_eval counts.

    Fewer: the missing ones are added, below all. More: the first R count. Where the judgement has one part, the others are compared
    with these, too; where it has several, R is the number of all relevant documents.
    """
    relevant, relevant_here, others_here, relevant_retrieved = 0, 0, 0, 0
    for a in own[:n_own]:
        relevant += level[a] > 0
        relevant_retrieved += level[a] > 0 and a < n_retrieved
        relevant_here += level[a] > 0 and a < limit
        others_here += level[a] == 0 and a < limit
    if relevant_here >= others_here:
        _count(before, own, n_own, level, n, limit, limit, n_retrieved, out)
        out[0] += relevant_retrieved * (relevant_here - others_here)
        out[1] += relevant * (relevant_here - others_here)
        return
    kept = relevant_here if complete else relevant
    bar = _place_of_zero(level, n, kept)
    _count(before, own, n_own, level, bar, limit, limit, n_retrieved, out)
    if complete:
        above = 0
        for a in range(min(bar, n_retrieved)):
            if level[a] == 0:
                above += 1
                out[0] += kept - above
        out[1] += others_here * kept


@kernel
def count_preferences(
    offsets: Any, documents: Any, starts: Any, place: Any, part: Any, label: Any, n_retrieved: Any, level: Any, before: Any, votes: Any,
    own: Any, of_groups: Any, of_pairs: Any,
) -> None:  # fmt: skip
    """Count the preferences of each group, and the pairs of documents of each query between which there are some.

    place[j]: that of judgement j's document among all that are judged for the query: retrieved ones by rank, then the others.
    of_groups[g, c] = fulfilled and possible preferences: of all, of pairs with a retrieved document, of pairs with two, then both
    balanced. of_pairs[q, c] = the pairs' shares of fulfilled preferences, summed, and the pairs. level -1, before and votes 0 at first.
    """
    for q in range(offsets.shape[0] - 1):
        n, there = documents[q + 1] - documents[q], n_retrieved[q]
        for g in range(offsets[q], offsets[q + 1]):
            n_own, n_parts = _list_preferences(place, part, label, starts[g], starts[g + 1], level, before, own)
            _count(before, own, n_own, level, n, n, n, there, of_groups[g, 0])
            _count(before, own, n_own, level, n, there, n, there, of_groups[g, 1])
            _count(before, own, n_own, level, n, there, there, there, of_groups[g, 2])
            _balance(before, own, n_own, level, n, n, there, n_parts == 1, of_groups[g, 3])
            _balance(before, own, n_own, level, n, there, there, n_parts == 1, of_groups[g, 4])
            for a in own[:n_own]:
                level[a] = -1.0
                for b in own[:n_own]:
                    votes[a, b] += before[a, b]
                    before[a, b] = 0
        for a in range(n):
            for b in range(a + 1, n):
                both = votes[a, b] + votes[b, a]
                if both > 0:
                    share = votes[a, b] / both if a < there else 0.0
                    for c in range(1 + (a < there) + (b < there)):
                        of_pairs[q, c, 0] += share
                        of_pairs[q, c, 1] += 1
                    votes[a, b] = votes[b, a] = 0


class Counts(NamedTuple):
    """What `count_preferences` found in a block."""

    of_groups: np.ndarray
    of_pairs: np.ndarray


def counts_of(view: View) -> Counts:
    """The counts of a block: one pass serves all metrics."""
    if "preferences" not in view.kept:
        groups, rank = groups_of(view), document_ranks(view)
        n_groups, n_queries = len(groups.starts) - 1, groups.n_queries
        query = np.repeat(np.arange(n_queries), np.diff(groups.document_offsets))
        order = np.lexsort((-np.arange(len(rank)), rank, query))
        place = np.empty(len(rank), np.int64)
        place[order] = np.arange(len(rank)) - groups.document_offsets[query]
        retrieved = by_query(np.add, (rank < UNRETRIEVED).astype(np.float64), groups.document_offsets).astype(np.int64)
        most = int(np.diff(groups.document_offsets).max(initial=0))
        found = Counts(np.zeros((n_groups, 5, 2)), np.zeros((n_queries, 3, 2)))
        count_preferences(
            groups.offsets, groups.document_offsets, groups.starts, place[groups.document], groups.part, groups.label, retrieved,
            np.full(most, -1.0), np.zeros((most, most), np.uint8), np.zeros((most, most), np.int32), np.empty(most, np.int64), *found,
        )  # fmt: skip
        view.kept["preferences"] = found
    kept: Counts = view.kept["preferences"]
    return kept


@dataclass(frozen=True, kw_only=True)
class _Preferences(GroupedMetric):
    """A metric of preferences; they are read from the whole list."""

    source: ClassVar[str] = "trec_eval -R prefs (Buckley)"
    whole_list_only: ClassVar[bool] = True

    ties: str | None = parameter(word(*TIE_RULES, ASCENDING))

    def tie_rules(self) -> tuple[str, ...]:
        return ("docid", ASCENDING, "input")

    def sums(self, view: View, kind: int) -> np.ndarray:
        """Fulfilled and possible preferences of each query, over its judges."""
        counts = counts_of(view).of_groups[:, kind]
        return np.array([by_query(np.add, column, groups_of(view).offsets) for column in counts.T])


@dataclass(frozen=True, kw_only=True)
class NumPrefs(_Preferences):
    """Number of preferences that the judges have expressed, summed over queries in the aggregate."""

    family: ClassVar[str] = "NumPrefs"
    title: ClassVar[str] = "Number of preferences"
    aggregation: ClassVar[str] = "sum"
    example: ClassVar[str] = "a judge's labels a:2, b:1, c:0: NumPrefs = 3, a > b, a > c and b > c"

    @property
    def formula(self) -> str:
        return "number of pairs (a, b) of which a judge prefers a to b, summed over judges"

    def values(self, view: View) -> np.ndarray:
        return self.sums(view, 0)[1]


@dataclass(frozen=True, kw_only=True)
class NumPrefsFul(_Preferences):
    """Number of preferences that the ranking fulfils, summed over queries in the aggregate."""

    family: ClassVar[str] = "NumPrefsFul"
    title: ClassVar[str] = "Number of fulfilled preferences"
    aggregation: ClassVar[str] = "sum"
    example: ClassVar[str] = "a judge's labels a:2, b:1, c:0, ranking b,a: NumPrefsFul = 2, a > c and b > c"

    among: str | None = parameter(word(*AMONG), "all")

    @property
    def formula(self) -> str:
        return f"number of {AMONG[str(self.among)]} whose better document is retrieved, and above the other one if that is, over judges"

    def values(self, view: View) -> np.ndarray:
        return self.sums(view, list(AMONG).index(str(self.among)))[0]


@dataclass(frozen=True, kw_only=True)
class PrefsFul(_Preferences):
    """Share of preferences that the ranking fulfils: of all of them, or the mean share over pairs of documents, or over judges.

    A judge without such a preference counts 0 in the mean over judges. Nothing to find: nobody prefers anything.
    """

    family: ClassVar[str] = "PrefsFul"
    title: ClassVar[str] = "Share of fulfilled preferences"
    example: ClassVar[str] = "a judge's labels a:2, b:1, c:0, ranking b,a: PrefsFul = 2/3 = 0.6667, for b > a is wrong"

    among: str | None = parameter(word(*AMONG), "all")
    over: str | None = parameter(word("preferences", "pairs", "judges"), "preferences")
    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        share = f"fulfilled / possible, of {AMONG[str(self.among)]}"
        return share if self.over == "preferences" else f"mean over {'pairs of documents' if self.over == 'pairs' else 'judges'} of {share}"

    def values(self, view: View) -> np.ndarray:
        kind = list(AMONG).index(str(self.among))
        if self.over == "preferences":
            return share_of(*self.sums(view, kind))
        if self.over == "pairs":
            return share_of(*counts_of(view).of_pairs[:, kind].T)
        return _mean_over_judges(view, kind)

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(self.sums(view, 0)[1] == 0)


@dataclass(frozen=True, kw_only=True)
class PrefsRnonrel(_Preferences):
    """Mean over judges of the share of fulfilled preferences, with as many non-relevant documents (label 0) as relevant ones, R.

    If a judge has fewer, the missing ones are taken to stand below all; if more, the first R count. These are trec_eval's numbers, with
    its ways: in a judgement of one part, each of the non-relevant documents counts as if it were preferred to the first R of them; with
    several parts, among="both_retrieved" keeps as many as there are relevant documents, retrieved or not. A judge without anything to
    compare counts 0, where trec_eval gives 0 to the whole query. Nothing to find: that is so for all judges.
    """

    family: ClassVar[str] = "PrefsRnonrel"
    title: ClassVar[str] = "Share of fulfilled preferences, R non-relevant documents"
    example: ClassVar[str] = "a judge's labels a:1, b:1, c:0, ranking a,c,b: PrefsRnonrel = (1 + 2) / (2 + 2) = 0.75, with a document added"

    among: str | None = parameter(word("all", "both_retrieved"), "all")
    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"mean over judges of fulfilled / possible, of {AMONG[str(self.among)]}, with R documents of label 0"

    def values(self, view: View) -> np.ndarray:
        return _mean_over_judges(view, 3 if self.among == "all" else 4)

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(self.sums(view, 3)[1] == 0)


def _mean_over_judges(view: View, kind: int) -> np.ndarray:
    """The mean over the judges of a query of fulfilled / possible."""
    offsets = groups_of(view).offsets
    return by_query(np.add, share_of(*counts_of(view).of_groups[:, kind].T), offsets) / np.diff(offsets)

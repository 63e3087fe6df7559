"""What metrics of judgements by subtopic or by judge have in common, and the means over judges of AP, P and R-precision.

A group is a subtopic of the query or one of its judges. Its relevant documents have a label of at least `rel` there, and stand in the
ranking of the query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from fastrank.metrics.base import Metric, between, no_relevant_parameter, parameter, rel_parameter, show_rel, threshold, up_to
from fastrank.metrics.binary import at_multiple
from fastrank.metrics.view import by_query, share_of
from fastrank.ranking.standing import UNRETRIEVED

if TYPE_CHECKING:
    from fastrank.groups import Groups
    from fastrank.metrics.view import View


class Relevant(NamedTuple):
    """The relevant documents of all groups, by group and then by rank: that of the ranking, UNRETRIEVED where it is not in it.

    place: how many of its group stand before. n: how many each group has.
    """

    group: np.ndarray
    document: np.ndarray
    rank: np.ndarray
    place: np.ndarray
    n: np.ndarray


def groups_of(view: View) -> Groups:
    """The groups of the block: the plan has seen to it that there are some."""
    assert view.judged.groups is not None
    return view.judged.groups


def document_ranks(view: View) -> np.ndarray:
    """The rank of each document that is judged in a group, UNRETRIEVED where it does not stand in the ranking."""
    kept = view.kept
    if "document ranks" not in kept:
        ranks, row = view.ranks, groups_of(view).row
        at_row = np.full(view.judged.n_documents + 1, UNRETRIEVED)  # the last one is where row is -1
        there = ranks.row >= 0 if view.depth is None else (ranks.row >= 0) & (ranks.rank <= view.depth)
        at_row[ranks.row[there]] = ranks.rank[there]
        kept["document ranks"] = at_row[row]
    found: np.ndarray = kept["document ranks"]
    return found


def relevant(view: View, least: float, *, among_judged: bool = False) -> Relevant:
    """The relevant documents of each group; among_judged: with ranks among the documents that the group has judged."""
    key = ("relevant by group", least, among_judged)
    if key not in view.kept:
        groups, rank = groups_of(view), document_ranks(view)
        by_rank = np.argsort(rank, kind="stable")
        place = np.empty(len(rank), np.int64)
        place[by_rank] = np.arange(len(rank))
        # One number for group and place: sorting those is several times as fast as sorting by two keys.
        keys = groups.group * len(rank) + place[groups.document]
        order = np.argsort(keys)
        keys, label = keys[order], groups.label[order]
        # A document that stands in several parts of a group counts once, with its greatest label.
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
        keys, label = keys[starts], np.maximum.reduceat(label, starts) if len(starts) else label
        if among_judged:
            keys, label = keys[label >= 0], label[label >= 0]
        group, document = keys // max(len(rank), 1), by_rank[keys % max(len(rank), 1)]
        ranks = rank[document]
        if among_judged:
            ranks = np.where(ranks < UNRETRIEVED, _places(group, len(groups.starts)) + 1, ranks)
        met = label >= least
        group = group[met]
        n = np.bincount(group, minlength=len(groups.starts) - 1)
        view.kept[key] = Relevant(group, document[met], ranks[met], _places(group, len(groups.starts)), n)
    found: Relevant = view.kept[key]
    return found


def _places(group: np.ndarray, n_bounds: int) -> np.ndarray:
    """How many of the same group stand before; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, np.arange(n_bounds))[group]


@dataclass(frozen=True, kw_only=True)
class GroupedMetric(Metric):
    """A metric of judgements by subtopic or judge.

    The documents of one place are in no order that is the best or the worst for all groups, and few of these metrics have a mean over
    orders in closed form: equal scores are ordered by document id, or as they came.
    """

    grouped: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = False

    def tie_rules(self) -> tuple[str, ...]:
        return ("docid", "input")

    def least_label(self) -> float:
        return 0.0


@dataclass(frozen=True, kw_only=True)
class RelevantByGroup(GroupedMetric):
    """What metrics with a relevance threshold in each group share."""

    rel: float | str | None = rel_parameter()

    @property
    def least(self) -> float:
        """The threshold as a number."""
        return threshold(self.rel)

    def least_label(self) -> float:
        return self.least

    def nothing_to_find(self, view: View) -> np.ndarray:
        return by_query(np.add, relevant(view, self.least).n.astype(np.float64), groups_of(view).offsets) == 0

    def sum_of(self, view: View, terms: np.ndarray, found: Relevant) -> np.ndarray:
        """The sum of terms, one for each relevant document of a group, for each query."""
        groups = groups_of(view)
        return by_query(np.add, terms, np.searchsorted(found.group, groups.offsets))

    def limit(self, view: View, found: Relevant) -> Any:
        """The cutoff of each relevant document."""
        return view.cutoff(self.k)[groups_of(view).query[found.group]]


@dataclass(frozen=True, kw_only=True)
class _OverJudges(RelevantByGroup):
    """A mean over the judges of a query. judged_only leaves out, for each judge, what that judge has not judged (trec_eval -J)."""

    source: ClassVar[str] = "trec_eval -R qrels_jg (Buckley)"

    def found(self, view: View) -> Relevant:
        """The relevant documents of each judge."""
        return relevant(view, self.least, among_judged=bool(self.judged_only))

    def mean_of(self, view: View, terms: np.ndarray, found: Relevant) -> np.ndarray:
        """The mean over judges of the sum of their terms."""
        return self.sum_of(view, terms, found) / np.diff(groups_of(view).offsets)


@dataclass(frozen=True, kw_only=True)
class AP_avgjg(_OverJudges):  # noqa: N801  (trec_eval's spelling)
    """Average precision by the judgements of each judge, averaged over the judges of the query."""

    family: ClassVar[str] = "AP_avgjg"
    title: ClassVar[str] = "Average precision, mean over judges"
    aliases: ClassVar[tuple[str, ...]] = ("MAP_avgjg",)
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "ranking a,b,c; judge 1 likes b, judge 2 a and c: AP_avgjg = (1/2 + (1 + 2/3) / 2) / 2 = 0.6667"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return (
            f"mean over judges of AP: the sum over ranks r of the judge's documents with {show_rel(self.rel)} of hits(r) / r, divided by P"
        )

    def values(self, view: View) -> np.ndarray:
        found = self.found(view)
        terms = np.where(found.rank < UNRETRIEVED, (found.place + 1) / found.rank, 0.0)
        return self.mean_of(view, terms / found.n[found.group], found)


@dataclass(frozen=True, kw_only=True)
class P_avgjg(_OverJudges):  # noqa: N801  (trec_eval's spelling)
    """Precision by the judgements of each judge, averaged over the judges of the query. Without a cutoff: of the retrieved documents."""

    family: ClassVar[str] = "P_avgjg"
    title: ClassVar[str] = "Precision, mean over judges"
    example: ClassVar[str] = "ranking a,b,c; judge 1 likes b, judge 2 a and c: P_avgjg@2 = (1/2 + 1/2) / 2 = 0.5"

    @property
    def formula(self) -> str:
        below = "the number of retrieved documents" if self.k is None else "k"
        return f"mean over judges of the documents with {show_rel(self.rel)} at ranks r{up_to(self.k)}, divided by {below}"

    def values(self, view: View) -> np.ndarray:
        found = self.found(view)
        hits = found.rank <= self.limit(view, found)
        below = view.n_retrieved if self.k is None else view.cutoff(self.k)
        return self.mean_of(view, hits.astype(np.float64), found) / np.maximum(below, 1)


@dataclass(frozen=True, kw_only=True)
class Rprec_avgjg(_OverJudges):  # noqa: N801  (trec_eval's spelling)
    """R-precision by the judgements of each judge, averaged over the judges: precision at a multiple of the judge's relevant documents."""

    family: ClassVar[str] = "Rprec_avgjg"
    title: ClassVar[str] = "R-precision, mean over judges"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "ranking a,b,c; judge 1 likes b, judge 2 a and c: Rprec_avgjg = (0 + 1/2) / 2 = 0.25"

    multiple: float | None = parameter(between(0), 1)
    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return (
            f"mean over judges of hits(k) / k with k = floor({self.multiple} * P + 0.9), P the judge's documents with {show_rel(self.rel)}"
        )

    def values(self, view: View) -> np.ndarray:
        assert self.multiple is not None
        found = self.found(view)
        cutoffs = at_multiple(found.n, self.multiple)[found.group]
        return self.mean_of(view, share_of((found.rank <= cutoffs).astype(np.float64), cutoffs), found)

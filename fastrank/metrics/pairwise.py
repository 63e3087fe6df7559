"""Metrics over pairs of documents: AUC, concordance, P-norm push.

A pair is lost when the document that should stand lower stands higher, and half lost when both have the same score. Judged documents
that were not retrieved share one last place. With n documents none of these reads a pair: ranks alone give the counts.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.gains import tidy
from fastrank.metrics.base import ANY_GAIN, Metric, Request, between, no_relevant_parameter, parameter, show_rel, up_to
from fastrank.metrics.binary import BinaryMetric
from fastrank.metrics.working import Block, Quantity, Ranking, Work
from fastrank.ranking.standing import UNRETRIEVED

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@kernel
def relevant_pairs_lost(rank: Any, span: Any, label: Any, starts: Any, rel: float, list_size: Any, unretrieved: int, out: Any) -> None:
    """out[q] = pairs of a relevant and a non-relevant document that are lost, ties as halves."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        lost = 0.0
        before = 0
        while i < stop:
            j = i
            n_relevant = 0
            while j < stop and rank[j] == rank[i]:
                n_relevant += label[j] >= rel
                j += 1
            above = list_size[q] if rank[i] == unretrieved else rank[i] - 1
            lost += n_relevant * (above - before + 0.5 * (span[i] - n_relevant))
            before += n_relevant
            i = j
        out[q] = lost


@kernel
def pairs_lost_within(rank: Any, span: Any, label: Any, starts: Any, rel: float, depth: Any, out: Any) -> None:
    """out[q] = pairs of a relevant and another document, both at ranks up to depth[q], that are lost; ties as halves."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        lost = 0.0
        before = 0
        while i < stop and rank[i] <= depth[q]:
            j = i
            n_relevant = 0
            while j < stop and rank[j] == rank[i]:
                n_relevant += label[j] >= rel
                j += 1
            lost += n_relevant * (rank[i] - 1 - before + 0.5 * (span[i] - n_relevant))
            before += n_relevant
            i = j
        out[q] = lost


@kernel
def sum_push(
    rank: Any, span: Any, label: Any, starts: Any, rel: float, list_size: Any, unretrieved: int, n_relevant: Any, power: float, out: Any
) -> None:
    """out[q] = sum over non-relevant documents of (share of the relevant ones below it)^power, in expectation over ties."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        before, passed = 0, 0
        while i < stop:
            j = i
            r = 0
            while j < stop and rank[j] == rank[i]:
                r += label[j] >= rel
                j += 1
            if r > 0:
                above = list_size[q] if rank[i] == unretrieved else rank[i] - 1
                total += (above - before - passed) * ((n_relevant[q] - before) / n_relevant[q]) ** power
                passed = above - before
                if span[i] > r:
                    # The relevant documents of the block below a given non-relevant one: 0 ... r, each as likely.
                    mean = 0.0
                    for below in range(r + 1):
                        mean += ((n_relevant[q] - before - below) / n_relevant[q]) ** power
                    total += (span[i] - r) * mean / (r + 1)
                    passed += span[i] - r
                before += r
            i = j
        out[q] = total


@kernel
def count_inversions(values: Any, starts: Any, scratch: Any, out: Any) -> None:
    """out[q] = pairs i < j with values[i] < values[j]; sorts values by merging bottom up."""
    for q in range(starts.shape[0] - 1):
        start, stop = starts[q], starts[q + 1]
        lost = 0.0
        width = 1
        while width < stop - start:
            for low in range(start, stop, 2 * width):
                middle = min(low + width, stop)
                high = min(low + 2 * width, stop)
                i = low
                j = middle
                for place in range(low, high):
                    if i < middle and (j >= high or values[i] >= values[j]):
                        scratch[place] = values[i]
                        i += 1
                    else:
                        lost += middle - i
                        scratch[place] = values[j]
                        j += 1
            values[start:stop] = scratch[start:stop]
            width *= 2
        out[q] = lost


@kernel
def add_pairs_lost(rank: Any, span: Any, label: Any, starts: Any, list_size: Any, uncounted: Any, unretrieved: int, out: Any) -> None:
    """Add to out[q] the pairs lost to documents that do not count (label 0), and half of the tied pairs."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        lost = 0.0
        while i < stop:
            above = (list_size[q] if rank[i] == unretrieved else rank[i] - 1) - (i - starts[q])
            j = i
            same = 0
            while j < stop and rank[j] == rank[i]:
                # Labels descend within a block: `same` counts the equal ones just before.
                same = same + 1 if j > i and label[j] == label[j - 1] else 0
                lost += 0.5 * (j - i - same)
                j += 1
            tied = span[i] - (j - i)
            for e in range(i, j):
                if label[e] > 0:
                    lost += above + 0.5 * tied
                elif label[e] < 0:
                    lost += uncounted[q] - above - 0.5 * tied
            i = j
        out[q] += lost


@kernel
def count_pairs(labels: Any, starts: Any, uncounted: Any, out: Any) -> None:
    """out[q] = pairs of documents with different labels; labels descend within a query."""
    for q in range(starts.shape[0] - 1):
        pairs = 0.0
        same = 0
        for i in range(starts[q], starts[q + 1]):
            same = same + 1 if i > starts[q] and labels[i] == labels[i - 1] else 0
            pairs += i - starts[q] - same
            if labels[i] != 0:
                pairs += uncounted[q]
        out[q] = pairs


def _refuse_depth(metric: Metric) -> None:
    raise InputError(f"{metric.family} compares all documents of a list, so it takes no depth=. Leave out depth or the metric.")


@dataclass(frozen=True, kw_only=True)
class _RelevantPairs(BinaryMetric):
    whole_list_only: ClassVar[bool] = True

    no_relevant: str | None = no_relevant_parameter()

    def requests(self) -> tuple[Request, ...]:
        return ()

    def check_depth(self) -> None:
        _refuse_depth(self)

    def classes(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Relevant and non-relevant documents of each query."""
        n_relevant = view.n_relevant(self.least)
        return n_relevant, view.ranks.list_size + view.judged.n_unretrieved - n_relevant

    def classes_in(self, ranking: Ranking) -> tuple[int, int]:
        """`classes` of one query."""
        n_relevant = ranking.n_relevant(self.least)
        return n_relevant, sum(block.span for block in ranking.every()) - n_relevant

    def nothing_to_find(self, view: View) -> np.ndarray:
        n_relevant, n_other = self.classes(view)
        return np.asarray((n_relevant == 0) | (n_other == 0))


@dataclass(frozen=True, kw_only=True)
class AUC(_RelevantPairs):
    """Area under the ROC curve: the chance that a relevant document stands above a non-relevant one."""

    family: ClassVar[str] = "AUC"
    title: ClassVar[str] = "Area under the ROC curve"
    source: ClassVar[str] = "Hanley and McNeil, Radiology 143(1), 1982"
    example: ClassVar[str] = "labels 1,0,1,0: AUC = 1 - 1/4 = 0.75"

    @property
    def formula(self) -> str:
        return f"pairs with {show_rel(self.rel)} ranked above the other, ties one half, / (relevant * non-relevant)"

    def values(self, view: View) -> np.ndarray:
        ranks, lost = view.ranks, np.empty(view.n_queries)
        relevant_pairs_lost(ranks.rank, ranks.span, ranks.label, ranks.starts, self.least, ranks.list_size, UNRETRIEVED, lost)
        n_relevant, n_other = self.classes(view)
        return np.asarray(1.0 - np.divide(lost, n_relevant * n_other, out=np.ones(view.n_queries), where=n_relevant * n_other > 0))

    def work(self, ranking: Ranking) -> Work:
        n_relevant, n_other = self.classes_in(ranking)
        rows, below = [], n_other
        for block in ranking.every():
            r = block.n_relevant(self.least)
            tied = block.span - r
            below -= tied
            won = {"others_below": below, "others_tied": tied, "pairs_won": tidy(r * (below + 0.5 * tied))}
            rows.append(ranking.row(block, relevant=r, **(won if r else dict.fromkeys(won))))
        pairs = Quantity("pairs", n_relevant * n_other, f"of {n_relevant} relevant and {n_other} other documents")
        return Work(rows, total="pairs won", column="pairs_won", divisor=pairs)


@dataclass(frozen=True, kw_only=True)
class Accuracy(BinaryMetric):
    """AUC of the top k alone: the share of its pairs of a relevant and another document that stand in the right order.

    Without a relevant document there it is 0, else without another one 1. Nothing to find: all documents retrieved are of one kind.
    """

    family: ClassVar[str] = "Accuracy"
    title: ClassVar[str] = "Pairwise accuracy of the top k"
    source: ClassVar[str] = "ir_measures (Accuracy)"
    example: ClassVar[str] = "labels 1,0,1,0: Accuracy@3 = 1/2, for one of the two relevant documents stands above the other one"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"pairs with {show_rel(self.rel)} ranked above the other, ties one half, / (relevant * others), ranks r{up_to(self.k)}"

    def tie_rules(self) -> tuple[str, ...]:
        # How many relevant documents a cut through a tie leaves is a matter of chance, and the value divides by it.
        every = super().tie_rules()
        return every if self.k is None else tuple(rule for rule in every if rule != "average")

    def requests(self) -> tuple[Request, ...]:
        return (Request(self.k, rel=self.least), Request(None, rel=self.least))

    def check_depth(self) -> None:
        if self.ties == "average":
            raise InputError("Accuracy has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.")

    def values(self, view: View) -> np.ndarray:
        ranks, lost = view.ranks, np.empty(view.n_queries)
        depth = np.minimum(view.cutoff(self.k), view.n_retrieved)
        pairs_lost_within(ranks.rank, ranks.span, ranks.label, ranks.starts, self.least, depth, lost)
        n_relevant = view.columns(self.requests()[0]).hits
        pairs = n_relevant * (depth - n_relevant)
        return np.where(pairs > 0, 1.0 - lost / np.maximum(pairs, 1), n_relevant > 0)

    def nothing_to_find(self, view: View) -> np.ndarray:
        # Of the whole list: this does not change with the scores.
        found = view.columns(self.requests()[1]).hits
        return np.asarray((found == 0) | (found == view.n_retrieved))


@dataclass(frozen=True, kw_only=True)
class PNormPush(_RelevantPairs):
    """P-norm push: how many relevant documents stand below non-relevant ones, the top of the list weighing most. Lower is better."""

    family: ClassVar[str] = "PNormPush"
    title: ClassVar[str] = "P-norm push"
    source: ClassVar[str] = "Rudin, JMLR 10, 2009, divided by its largest value"
    higher_is_better: ClassVar[bool] = False
    example: ClassVar[str] = "labels 0,1,0, p = 4: PNormPush = (1^4 + 0^4) / 2 = 0.5"

    p: float | None = parameter(between(0), 4)

    @property
    def formula(self) -> str:
        return f"mean over non-relevant documents of (share of documents with {show_rel(self.rel)} ranked below it)^{self.p}"

    def values(self, view: View) -> np.ndarray:
        assert self.p is not None
        ranks, total = view.ranks, np.empty(view.n_queries)
        n_relevant, n_other = self.classes(view)
        sum_push(
            ranks.rank, ranks.span, ranks.label, ranks.starts, self.least, ranks.list_size, UNRETRIEVED, n_relevant, float(self.p), total
        )
        return np.divide(total, n_other, out=np.zeros(view.n_queries), where=n_other > 0)

    def work(self, ranking: Ranking) -> Work:
        assert self.p is not None
        n_relevant, n_other = self.classes_in(ranking)
        rows, below = [], n_relevant
        for block in ranking.every():
            r = block.n_relevant(self.least)
            below -= r
            # Of the relevant documents of its block, 0 ... r stand below a given other one, each as likely.
            shares = [(below + i) / n_relevant if n_relevant else 0.0 for i in range(r + 1)]
            term = (block.span - r) * math.fsum(share**self.p for share in shares) / len(shares)
            pushed = {"relevant_below": below if r == 0 else f"{below}-{below + r}", "term": term}
            rows.append(ranking.row(block, relevant=r, **(pushed if block.span > r else dict.fromkeys(pushed))))
        others = Quantity("N", n_other, "the documents that are not relevant")
        remark = f"A term is (relevant below / P)^{self.p} with P = {n_relevant} relevant documents."
        return Work(rows, total="sum", divisor=others, remarks=(remark,))


@dataclass(frozen=True, kw_only=True)
class Concordance(Metric):
    """Graded pairwise agreement: the share of pairs with different labels that stand in the right order."""

    family: ClassVar[str] = "Concordance"
    title: ClassVar[str] = "Pairwise agreement"
    source: ClassVar[str] = "Harrell et al., JAMA 247, 1982; 1 - it is the pairwise disagreement of Duchi et al., ICML 2010"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 2,0,1: Concordance = 2/3, for 0 stands above 1"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return "pairs with label_i > label_j and i ranked above j, ties one half, / pairs with label_i > label_j"

    def least_label(self) -> float:
        return ANY_GAIN

    def check_depth(self) -> None:
        _refuse_depth(self)

    def _uncounted(self, view: View) -> np.ndarray:
        return view.ranks.list_size + view.judged.n_unretrieved - np.diff(view.ranks.starts)

    def _pairs(self, view: View) -> np.ndarray:
        pairs = np.empty(view.n_queries)
        count_pairs(view.judged.ideal_gains("linear"), view.judged.all_starts, self._uncounted(view), pairs)
        return pairs

    def values(self, view: View) -> np.ndarray:
        ranks, lost, pairs = view.ranks, np.empty(view.n_queries), self._pairs(view)
        count_inversions(ranks.label.copy(), ranks.starts, np.empty_like(ranks.label), lost)
        uncounted = self._uncounted(view)
        add_pairs_lost(ranks.rank, ranks.span, ranks.label, ranks.starts, ranks.list_size, uncounted, UNRETRIEVED, lost)
        return np.asarray(1.0 - np.divide(lost, pairs, out=np.ones(view.n_queries), where=pairs > 0))

    def work(self, ranking: Ranking) -> Work:
        def labels(block: Block) -> list[float]:
            return [document.label or 0.0 for document in block.documents]

        everywhere = Counter(label for block in ranking.every() for label in labels(block))
        below = everywhere.copy()
        rows, n_pairs = [], 0
        for block in ranking.every():
            tied = Counter(labels(block))
            below -= tied
            pairs = sum(count for label in labels(block) for other, count in everywhere.items() if other < label)
            won = sum((below[other] + 0.5 * tied[other]) for label in labels(block) for other in everywhere if other < label)
            rows.append(ranking.row(block, pairs=pairs, pairs_won=tidy(won)))
            n_pairs += pairs
        return Work(rows, total="pairs won", column="pairs_won", divisor=Quantity("pairs", n_pairs, "pairs with different labels"))

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(self._pairs(view) == 0)

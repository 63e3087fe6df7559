"""Expected reciprocal rank.

ERR@k = sum over ranks r <= k of p_r / r * product over the documents before r of (1 - p),  p = (2^label - 1) / 2^max_label
Source: Chapelle, Metzler, Zhang and Grinspan, CIKM 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.metrics.base import ANY_GAIN, Metric, between, no_relevant_parameter, parameter, up_to
from fastrank.metrics.working import Ranking, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@kernel
def expected_reciprocal_rank(rank: Any, stop_chance: Any, starts: Any, cutoffs: Any, stride: int, out: Any) -> None:
    """Fill out[q] with ERR at the query's cutoff, for documents that no longer tie."""
    for q in range(starts.shape[0] - 1):
        k = cutoffs[q * stride, 0]
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        unsatisfied = 1.0
        while i < stop and rank[i] <= k:
            total += unsatisfied * (stop_chance[i] / rank[i])
            unsatisfied *= 1.0 - stop_chance[i]
            i += 1
        out[q] = total


@kernel
def expected_reciprocal_rank_ties(
    rank: Any, span: Any, stop_chance: Any, starts: Any, cutoffs: Any, stride: int, unmet: Any, out: Any
) -> None:
    """As above, in expectation over the orders of equal scores.

    unmet[m] is the mean over all m-subsets of a block of the product of (1 - p): the chance of passing m documents of it. It is 1
    for the documents with p = 0, the last of a block, and the others are added one at a time, which is stable for a block of any size.
    """
    for q in range(starts.shape[0] - 1):
        k = cutoffs[q * stride, 0]
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        unsatisfied = 1.0
        while i < stop and rank[i] <= k:
            above, n = rank[i] - 1, span[i]
            deepest = min(n, k - above)
            j, last = i, i
            while j < stop and rank[j] == rank[i]:
                last += stop_chance[j] > 0.0
                j += 1
            if n == 1:
                total += unsatisfied * (stop_chance[i] / rank[i])
            else:
                unmet[: deepest + 1] = 1.0
                for e in range(i, last):
                    _add_document(unmet, deepest, n - last + e + 1, 1.0 - stop_chance[e])
                for m in range(1, deepest + 1):
                    total += unsatisfied * ((unmet[m - 1] - unmet[m]) / (above + m))
            for e in range(i, last):
                unsatisfied *= 1.0 - stop_chance[e]
            i = j
        out[q] = total


@kernel
def _add_document(unmet: Any, deepest: int, added: int, pass_chance: float) -> None:
    for m in range(min(deepest, added), 0, -1):
        kept = unmet[m] if m < added else 0.0
        unmet[m] = ((added - m) * kept + m * pass_chance * unmet[m - 1]) / added


@dataclass(frozen=True, kw_only=True)
class ERR(Metric):
    """Expected reciprocal rank of the document at which a user stops, each stopping with a chance that rises with the label."""

    family: ClassVar[str] = "ERR"
    title: ClassVar[str] = "Expected reciprocal rank"
    source: ClassVar[str] = "Chapelle, Metzler, Zhang and Grinspan, CIKM 2009"
    example: ClassVar[str] = "labels 4,0,1: ERR = 15/16 + 1/3 * 1/16 * 1/16 = 0.9388"

    max_label: float | None = parameter(between(0, 1000), 4)
    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return (
            f"sum over ranks r{up_to(self.k)} of p(r) / r * product over ranks before r of (1 - p), p = (2^label - 1) / 2^{self.max_label}"
        )

    def least_label(self) -> float:
        return ANY_GAIN

    def check_labels(self, largest: float, distinct: Callable[[], np.ndarray]) -> None:
        assert self.max_label is not None
        if largest > self.max_label:
            cure = f"Give max_label, such as ERR(max_label={largest:g})."
            raise InputError(f"label {largest:g} is above the largest label of ERR, max_label={self.max_label}. {cure}")

    def values(self, view: View) -> np.ndarray:
        assert self.max_label is not None
        ranks = view.ranks
        chance = (np.exp2(np.maximum(ranks.label, 0.0)) - 1.0) / 2.0**self.max_label
        cutoffs, stride = view.limits((self.k,))
        out = np.empty(view.n_queries)
        if ranks.shared:
            room = np.empty(int(ranks.span.max()) + 1)
            expected_reciprocal_rank_ties(ranks.rank, ranks.span, chance, ranks.starts, cutoffs, stride, room, out)
        else:
            expected_reciprocal_rank(ranks.rank, chance, ranks.starts, cutoffs, stride, out)
        return out

    def work(self, ranking: Ranking) -> Work:
        assert self.max_label is not None
        rows, reaches = [], 1.0
        for block, inside in ranking.within(self.k):
            stops = [(2.0 ** max(document.label or 0.0, 0.0) - 1.0) / 2.0**self.max_label for document in block.documents]
            # unmet[m]: the chance of passing m documents of the block, averaged over which ones come first.
            unmet = [1.0, *[0.0] * block.span]
            for added, stop in enumerate(stops, 1):
                for m in range(added, 0, -1):
                    unmet[m] = ((added - m) * unmet[m] + m * (1.0 - stop) * unmet[m - 1]) / added
            term = math.fsum(reaches * (unmet[m] - unmet[m + 1]) / (block.first + m) for m in range(inside))
            rows.append(ranking.row(block, reaches=reaches, stops=1.0 - unmet[-1], term=term))
            reaches *= unmet[-1]
        remark = f"A user who reaches a document stops there with the chance (2^label - 1) / 2^{self.max_label}."
        return Work(rows, total=self.short_name, remarks=(remark,))

    def nothing_to_find(self, view: View) -> np.ndarray:
        return view.n_relevant(ANY_GAIN) == 0

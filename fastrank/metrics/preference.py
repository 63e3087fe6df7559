"""Bpref: judged relevant documents against judged non-relevant ones; the unjudged do not matter.

bpref = 1/R * sum over retrieved relevant documents of 1 - min(judged non-relevant above, R) / min(N, R)
with R relevant and N judged non-relevant documents.
Source: Buckley and Voorhees, SIGIR 2004, as trec_eval computes it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.metrics.base import Request, no_relevant_parameter, show_rel
from fastrank.metrics.binary import BinaryMetric
from fastrank.metrics.view import share_of
from fastrank.metrics.working import Ranking, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@kernel
def binary_preference(
    rank: Any, label: Any, starts: Any, rel: float, cutoffs: Any, stride: int, n_relevant: Any, n_judged: Any, out: Any
) -> None:
    """out[q] = sum over retrieved relevant documents of the preferences they keep.

    In a block of ties the number of its judged non-relevant documents before a given relevant one is uniform on 0 ... m.
    """
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        most = n_relevant[q]
        least = min(most, n_judged[q] - most)
        total = 0.0
        worse = 0
        while i < stop and rank[i] <= cutoffs[q * stride, 0]:
            first = rank[i]
            r = 0
            m = 0
            while i < stop and rank[i] == first:
                r += label[i] >= rel
                m += 0 <= label[i] < rel
                i += 1
            if r > 0:
                kept = 0.0
                for above in range(worse, worse + m + 1):
                    kept += 1.0 - min(above, most) / least if above > 0 else 1.0
                total += r * (kept / (m + 1))
            worse += m
        out[q] = total


@dataclass(frozen=True, kw_only=True)
class Bpref(BinaryMetric):
    """Binary preference: how seldom a judged non-relevant document stands above a relevant one."""

    family: ClassVar[str] = "Bpref"
    title: ClassVar[str] = "Binary preference"
    source: ClassVar[str] = "Buckley and Voorhees, SIGIR 2004, as in trec_eval"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,unjudged,1: bpref = (1 + (1 - 1/1)) / 2 = 0.5"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"1/R * sum over retrieved documents with {show_rel(self.rel)} of 1 - min(judged non-relevant above, R) / min(N, R)"

    def least_label(self) -> float:
        return 0.0

    def requests(self) -> tuple[Request, ...]:
        return ()

    def check_depth(self) -> None:
        if self.ties == "average":
            raise InputError("Bpref has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.")

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        n_relevant, cutoffs = view.n_relevant(self.least), view.limits((None,))
        binary_preference(ranks.rank, ranks.label, ranks.starts, self.least, *cutoffs, n_relevant, view.n_relevant(0.0), total)
        return share_of(total, n_relevant)

    def work(self, ranking: Ranking) -> Work:
        n_relevant = self.relevant_in(ranking)
        most = int(n_relevant.value)
        n_judged = ranking.n_relevant(0.0)
        least = min(most, n_judged - most)
        rows, worse = [], 0
        for block, _ in ranking.within(None):
            r = block.n_relevant(self.least)
            m = block.count(lambda label: 0 <= label < self.least)
            shown: dict[str, Any] = {"worse_above": None, "term": None}
            if r:
                kept = [1.0 - min(above, most) / least if above else 1.0 for above in range(worse, worse + m + 1)]
                shown = {"worse_above": f"{worse}-{worse + m}" if m else worse, "term": r * math.fsum(kept) / len(kept)}
            rows.append(ranking.row(block, relevant=r, **shown))
            worse += m
        remark = (
            f"R = {most} relevant and N = {n_judged - most} judged non-relevant documents; a term is 1 - min(worse above, R) / min(N, R)."
        )
        return Work(rows, total="sum", divisor=replace(n_relevant, symbol="R", meaning=""), remarks=(remark,))

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(view.n_relevant(self.least) == 0)

"""Inferred average precision: average precision estimated from a pool of which a part was judged.

infAP = 1/R * sum over retrieved relevant documents at rank r of
        1/r + (r-1)/r * (documents of the pool above) / (r-1) * (relevant above + e) / (judged above + 2 e),  e = 0.00001
The pool is what was judged (a label from 0 up) and what could have been (a label below 0).
Source: Yilmaz and Aslam, CIKM 2006, as trec_eval computes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.metrics.base import Request, show_rel
from fastrank.metrics.binary import RecallLike
from fastrank.metrics.view import share_of

if TYPE_CHECKING:
    from fastrank.metrics.view import View

EPSILON = 0.00001


@kernel
def infer_precisions(rank: Any, label: Any, starts: Any, rel: float, cutoffs: Any, epsilon: float, out: Any) -> None:
    """out[q] = sum over retrieved relevant documents of the precision that the judged ones above let expect."""
    for q in range(starts.shape[0] - 1):
        total = 0.0
        relevant, judged = 0, 0
        for i in range(starts[q], starts[q + 1]):
            if rank[i] > cutoffs[0, 0]:
                break
            if label[i] >= rel:
                above = rank[i] - 1
                total += 1.0 / rank[i]
                if above > 0:
                    share = (relevant + epsilon) / (judged + 2.0 * epsilon)
                    total += above / rank[i] * ((i - starts[q]) / above) * share
                relevant += 1
            judged += label[i] >= 0
        out[q] = total


@dataclass(frozen=True, kw_only=True)
class infAP(RecallLike):  # noqa: N801  (the field's spelling)
    """Inferred average precision: unjudged documents outside the pool count as not relevant, those in the pool as the judged ones do."""

    family: ClassVar[str] = "infAP"
    title: ClassVar[str] = "Inferred average precision"
    source: ClassVar[str] = "Yilmaz and Aslam, CIKM 2006, as in trec_eval"
    whole_list_only: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,unjudged,1: infAP = (1 + 1/3 + 2/3 * 1/2 * (1 + e) / (1 + 2e)) / 2 = 0.8333"

    @property
    def formula(self) -> str:
        expected = "1/r + pool(r) / r * (relevant(r) + e) / (judged(r) + 2 e)"
        counts = "pool, relevant and judged documents above rank r, e = 0.00001"
        return f"sum over ranks r with {show_rel(self.rel)} of {expected}, divided by P; {counts}"

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")

    def least_label(self) -> float:
        return 0.0

    def requests(self) -> tuple[Request, ...]:
        return ()

    def values(self, view: View) -> np.ndarray:
        ranks, total = view.ranks, np.empty(view.n_queries)
        infer_precisions(ranks.rank, ranks.label, ranks.starts, self.least, view.limits((None,))[0], EPSILON, total)
        return share_of(total, view.n_relevant(self.least))

"""Compatibility: how far a ranking overlaps, rank by rank, with an ideal one.

RBO(ranking, ideal) = sum over depths i of p^(i-1) * (documents that both have in their top i) / i, divided by the sum of p^(i-1)
Source: Clarke, Vtyurina and Smucker, TOIS 39(3), 2021; rank-biased overlap: Webber, Moffat and Zobel, TOIS 28(4), 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.metrics.base import ANY_GAIN, Metric, between, no_relevant_parameter, parameter

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@kernel
def overlap_with_ideal(rank: Any, place: Any, starts: Any, depth: Any, reach: Any, out: Any) -> None:
    """out[q] = sum over relevant documents of what they add from the depth on where both lists have them. place: in the ideal, from 1."""
    for q in range(starts.shape[0] - 1):
        total = 0.0
        for i in range(starts[q], starts[q + 1]):
            both = max(rank[i], place[i])
            if both <= depth[q]:
                total += reach[depth[q]] - reach[both - 1]
        out[q] = total


def _as_switch(name: str, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(f"{name} must be True or False, not {value!r}.")


@dataclass(frozen=True, kw_only=True)
class Compat(Metric):
    """Compatibility: rank-biased overlap with the ideal ranking that is most like this one.

    The ideal has all documents with a label above 0, the largest labels first and those of one label in the order of the ranking. With
    `normalize` the value is divided by that of the ideal ranking itself, so that 1 can be reached.
    """

    family: ClassVar[str] = "Compat"
    title: ClassVar[str] = "Compatibility"
    source: ClassVar[str] = "Clarke, Vtyurina and Smucker, TOIS 2021, as in ir_measures"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 0,1, p = 0.5: Compat = (0 + 0.5 * 1/2) / (1 + 0.5 * 1/2) = 0.2"

    p: float | None = parameter(between(0, 1), 0.95)
    normalize: bool | None = parameter(_as_switch, True)
    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        below = "the same sum for the ideal list" if self.normalize else "the sum of p^(i - 1)"
        shared = "p^(i - 1) * (documents in the top i of the list and of the ideal) / i"
        return f"sum over depths i up to the longer of both of {shared}, divided by {below}, p = {self.p}"

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")

    def least_label(self) -> float:
        return ANY_GAIN

    def values(self, view: View) -> np.ndarray:
        assert self.p is not None
        ranks, out = view.ranks, np.empty(view.n_queries)
        sizes = np.diff(ranks.starts)
        query = np.repeat(np.arange(view.n_queries), sizes)
        order = np.lexsort((np.where(ranks.label > 0, -ranks.label, np.inf), query))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.repeat(ranks.starts[:-1], sizes) + 1
        n_relevant = view.n_relevant(ANY_GAIN)
        depth = np.maximum(view.n_retrieved, n_relevant)
        weight = view.discounts(f"geometric:{self.p!r}")[: depth.max(initial=0)]
        reach = np.cumsum(np.append(0.0, weight / np.arange(1.0, len(weight) + 1.0)))
        limit = view.n_retrieved
        both = np.where((ranks.label > 0) & (ranks.rank <= np.repeat(limit, sizes)), ranks.rank, len(reach))
        overlap_with_ideal(both, place, ranks.starts, depth, reach, out)
        whole = np.cumsum(np.append(0.0, weight))
        if not self.normalize:
            return np.divide(out, whole[depth], out=np.zeros(view.n_queries), where=depth > 0)
        # The ideal list has min(i, P) documents in common with itself at depth i.
        best = whole[n_relevant] + n_relevant * (reach[depth] - reach[n_relevant])
        return np.minimum(np.divide(out, best, out=np.zeros(view.n_queries), where=best > 0), 1.0)

    def nothing_to_find(self, view: View) -> np.ndarray:
        return np.asarray(view.n_relevant(ANY_GAIN) == 0)

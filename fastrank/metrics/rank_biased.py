"""Rank-biased precision, and what it leaves open where documents are unjudged.

RBP = (1 - p) * sum over ranks r of gain(r) * p^(r - 1): a reader goes from one document to the next with probability p.
Source: Moffat and Zobel, TOIS 27(1), 2008.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank.errors import InputError
from fastrank.gains import Gain, Indicator, as_gain, describe_gain, gain_of_zero, gains_of, rises, tidy
from fastrank.metrics.base import ANY_GAIN, Metric, Request, between, parameter, show_rel, up_to
from fastrank.metrics.binary import BinaryMetric
from fastrank.metrics.view import by_query
from fastrank.metrics.working import Quantity, Ranking, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View

_SOURCE = "Moffat and Zobel, TOIS 27(1), 2008"


def _as_rbp_gain(_: str, value: Any) -> Gain:
    return value if value in ("binary", "scaled") else as_gain(value)


@dataclass(frozen=True, kw_only=True)
class RBP(BinaryMetric):
    """Rank-biased precision: the expected gain per document of a reader who goes on with probability p.

    `gain` is "binary" (1 for a relevant document), "scaled" (the label over the largest label of the query, where that is above 1) or
    any gain of the cumulative-gain metrics; "linear" is the label itself, so that the value can exceed 1.
    """

    family: ClassVar[str] = "RBP"
    title: ClassVar[str] = "Rank-biased precision"
    source: ClassVar[str] = f"{_SOURCE}; graded: trec_eval 10 ('scaled'), ranx ('linear')"
    example: ClassVar[str] = "labels 1,0,1, p = 0.8: RBP = 0.2 * (1 + 0.64) = 0.328"
    own_defaults: ClassVar[tuple[str, ...]] = ("gain",)

    p: float | None = parameter(between(0, 1), 0.8)
    gain: Gain | None = parameter(_as_rbp_gain, "binary")

    @property
    def _walked(self) -> Gain:
        """The gain that is summed."""
        assert self.gain is not None
        return Indicator(self.least) if self.gain == "binary" else "linear" if self.gain == "scaled" else self.gain

    @property
    def formula(self) -> str:
        summed = f"(1 - p) * sum over ranks r{up_to(self.k)}"
        if self.gain == "binary":
            return f"{summed} with {show_rel(self.rel)} of p^(r - 1), p = {self.p}"
        divided = " / max(1, the largest label of the query)" if self.gain == "scaled" else ""
        return f"{summed} of {describe_gain(self._walked)} * p^(r - 1){divided}, p = {self.p}"

    def least_label(self) -> float:
        if self.gain == "binary":
            return self.least
        return 0.0 if gain_of_zero(self._walked) else ANY_GAIN

    def merit(self) -> Gain | None:
        return None if rises(self._walked) else self._walked

    def requests(self) -> tuple[Request, ...]:
        return (Request(self.k, gain=self._walked, discount=f"geometric:{self.p!r}"),)

    def values(self, view: View) -> np.ndarray:
        assert self.p is not None
        found = (1.0 - self.p) * view.columns(self.requests()[0]).dcg
        if self.gain != "scaled":
            return found
        return found / np.maximum(by_query(np.maximum, view.judged.all_labels, view.judged.all_starts), 1.0)

    def work(self, ranking: Ranking) -> Work:
        assert self.p is not None
        rows = []
        for block, inside in ranking.within(self.k):
            labels = np.array([0.0 if document.label is None else document.label for document in block.documents])
            known = np.array([document.label is not None for document in block.documents])
            share = math.fsum(np.where(known, gains_of(labels, self._walked), 0.0)) / block.span
            weight = math.fsum(self.p ** (block.first - 1 + i) for i in range(inside))
            column = "relevant" if self.gain == "binary" else "gain"
            rows.append(ranking.row(block, **{column: tidy(share)}, weight=weight, term=share * weight))
        labels_of_all = [document.label or 0 for block in ranking.every() for document in block.documents]
        largest = max([1, *labels_of_all])
        divisor = Quantity("max", largest, "the largest label of the query, or 1") if self.gain == "scaled" else None
        return Work(rows, total="sum", factor=Quantity("(1 - p)", 1.0 - self.p, f"p = {self.p}"), divisor=divisor)


@dataclass(frozen=True, kw_only=True)
class RBPResid(Metric):
    """Residual of rank-biased precision: how much it could grow if every document that nobody judged were relevant.

    Documents of the list that are unjudged (a label below 0 counts as such) and all that could follow the list add their weights. A
    list that was judged to its end has no residual, as trec_eval has it.
    """

    family: ClassVar[str] = "RBPResid"
    title: ClassVar[str] = "Residual of rank-biased precision"
    source: ClassVar[str] = f"{_SOURCE}; as in trec_eval 10"
    example: ClassVar[str] = "labels 1,unjudged, p = 0.8: RBPResid = 0.2 * 0.8 + 0.8^2 = 0.8"
    higher_is_better: ClassVar[bool] = False
    whole_list_only: ClassVar[bool] = True

    p: float | None = parameter(between(0, 1), 0.8)

    @property
    def formula(self) -> str:
        open_weight = f"(1 - p) * sum over ranks r without a label of p^(r - 1) + p^(documents retrieved), p = {self.p}"
        return f"{open_weight}; 0 when all retrieved documents are judged"

    def least_label(self) -> float:
        return 0.0

    def merit(self) -> Gain:
        return Indicator(0.0)

    def requests(self) -> tuple[Request, ...]:
        return (Request(None, rel=0.0, gain=Indicator(0.0), discount=f"geometric:{self.p!r}"),)

    def check_depth(self) -> None:
        if self.ties == "average":
            raise InputError("RBPResid has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.")

    def values(self, view: View) -> np.ndarray:
        assert self.p is not None
        found = view.columns(self.requests()[0])
        return np.where(found.hits < view.n_retrieved, 1.0 - (1.0 - self.p) * found.dcg, 0.0)

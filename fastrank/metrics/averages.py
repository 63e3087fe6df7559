"""Other ways to average precision: geometric means over queries, and a logit that can be averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fastrank.metrics.base import show_rel
from fastrank.metrics.binary import AP, BinaryMetric
from fastrank.metrics.preference import Bpref

if TYPE_CHECKING:
    from fastrank.metrics.view import View

_GEOMETRIC = "; aggregated by exp(mean(log(max(value, 1e-5))))"


@dataclass(frozen=True, kw_only=True)
class GMAP(AP):
    """Average precision whose mean over queries is geometric, so that the hard queries count. Values below 1e-5 count as 1e-5."""

    family: ClassVar[str] = "GMAP"
    title: ClassVar[str] = "Geometric mean average precision"
    aliases: ClassVar[tuple[str, ...]] = ("gm_map",)
    source: ClassVar[str] = "Robertson, CIKM 2006, as in trec_eval (gm_map)"
    aggregation: ClassVar[str] = "gmean"
    example: ClassVar[str] = "two queries with AP 0.5 and 0.02: GMAP = sqrt(0.5 * 0.02) = 0.1"

    @property
    def formula(self) -> str:
        return super().formula + _GEOMETRIC


@dataclass(frozen=True, kw_only=True)
class GMBpref(Bpref):
    """Bpref whose mean over queries is geometric. Values below 1e-5 count as 1e-5."""

    family: ClassVar[str] = "GMBpref"
    title: ClassVar[str] = "Geometric mean bpref"
    aliases: ClassVar[tuple[str, ...]] = ("gm_bpref",)
    source: ClassVar[str] = "trec_eval (gm_bpref)"
    aggregation: ClassVar[str] = "gmean"
    example: ClassVar[str] = "two queries with bpref 0.9 and 0.4: GMBpref = sqrt(0.9 * 0.4) = 0.6"

    @property
    def formula(self) -> str:
        return super().formula + _GEOMETRIC


@dataclass(frozen=True, kw_only=True)
class YAAP(BinaryMetric):
    """Yet another average precision: the logit of smoothed average precision, whose mean over queries no query dominates."""

    family: ClassVar[str] = "YAAP"
    title: ClassVar[str] = "Yet another average precision"
    source: ClassVar[str] = "Robertson, ECIR 2012, as in trec_eval (yaap)"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0: YAAP = ln((1 + 1) / (1 + 1 - 1)) = 0.6931"

    @property
    def formula(self) -> str:
        total = f"S = sum over ranks r with {show_rel(self.rel)} of hits(r) / r"
        return f"ln((1 + S) / (1 + P - S)), {total}, P all documents with {show_rel(self.rel)}"

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")

    def values(self, view: View) -> np.ndarray:
        total = self.columns(view).precisions
        return np.log((1.0 + total) / (1.0 + view.n_relevant(self.least) - total))

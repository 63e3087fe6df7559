"""Counts of documents: retrieved, relevant, both, and the share that was judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fastrank.gains import Gain, Indicator, tidy
from fastrank.metrics.base import Metric, Request, show_rel, up_to
from fastrank.metrics.binary import BinaryMetric
from fastrank.metrics.view import share_of
from fastrank.metrics.working import Quantity, Ranking, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@dataclass(frozen=True, kw_only=True)
class NumRelRet(BinaryMetric):
    """Relevant documents retrieved, as a number. Aggregated by the sum."""

    family: ClassVar[str] = "NumRelRet"
    title: ClassVar[str] = "Number of relevant documents retrieved"
    aliases: ClassVar[tuple[str, ...]] = ("num_rel_ret", "hits")
    aggregation: ClassVar[str] = "sum"
    example: ClassVar[str] = "labels 1,0,1: NumRelRet = 2, NumRelRet@1 = 1"

    @property
    def formula(self) -> str:
        return f"number of {self._hits[1:-1]}"

    def values(self, view: View) -> np.ndarray:
        return self.columns(view).hits

    def work(self, ranking: Ranking) -> Work:
        return replace(super().work(ranking), total=self.short_name)


@dataclass(frozen=True, kw_only=True)
class NumRel(BinaryMetric):
    """Relevant documents of the query, retrieved or not. Aggregated by the sum."""

    family: ClassVar[str] = "NumRel"
    title: ClassVar[str] = "Number of relevant documents"
    aliases: ClassVar[tuple[str, ...]] = ("num_rel",)
    aggregation: ClassVar[str] = "sum"
    whole_list_only: ClassVar[bool] = True
    sees_ties: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,0,1: NumRel = 2"

    @property
    def formula(self) -> str:
        return f"number of documents with {show_rel(self.rel)}, retrieved or not"

    def requests(self) -> tuple[Request, ...]:
        return ()

    def values(self, view: View) -> np.ndarray:
        return view.n_relevant(self.least).astype(np.float64)

    def work(self, ranking: Ranking) -> Work:
        rows = [ranking.row(block, relevant=block.n_relevant(self.least)) for block in ranking.every()]
        return Work(rows, total=self.short_name, column="relevant")


@dataclass(frozen=True, kw_only=True)
class Judged(Metric):
    """The share of the top k that has been judged at all, 0 for an empty list."""

    family: ClassVar[str] = "Judged"
    title: ClassVar[str] = "Share of judged documents"
    source: ClassVar[str] = "Yilmaz, Craswell, Mitra and Campos, SIGIR 2020 (Judged@k)"
    example: ClassVar[str] = "labels 1,unjudged,0: Judged@2 = 1/2"

    @property
    def formula(self) -> str:
        if self.k is None:
            return "judged documents retrieved / documents retrieved"
        return f"judged documents at ranks r{up_to(self.k)} / min(k, documents retrieved)"

    def least_label(self) -> float:
        return 0.0

    def merit(self) -> Gain:
        return Indicator(-np.inf)

    def requests(self) -> tuple[Request, ...]:
        # A threshold below every label: each judged document is a hit.
        return (Request(self.k, rel=-np.inf),)

    def values(self, view: View) -> np.ndarray:
        return share_of(view.columns(self.requests()[0]).hits, np.minimum(view.cutoff(self.k), view.n_retrieved))

    def work(self, ranking: Ranking) -> Work:
        rows = []
        for block, inside in ranking.within(self.k):
            rows.append(ranking.row(block, judged=tidy(block.n_relevant(-np.inf) * inside / block.span)))
        n_retrieved, k = ranking.n_retrieved, ranking.cutoff(self.k)
        if k is None:
            below = Quantity("retrieved", n_retrieved, "documents retrieved")
        else:
            below = Quantity("min(k, retrieved)", min(k, n_retrieved), f"for {n_retrieved} documents retrieved")
        return Work(rows, total="judged", column="judged", divisor=below)


@dataclass(frozen=True, kw_only=True)
class NumRet(Metric):
    """Documents retrieved, as a number. Aggregated by the sum."""

    family: ClassVar[str] = "NumRet"
    title: ClassVar[str] = "Number of documents retrieved"
    aliases: ClassVar[tuple[str, ...]] = ("num_ret",)
    source: ClassVar[str] = "trec_eval"
    aggregation: ClassVar[str] = "sum"
    whole_list_only: ClassVar[bool] = True
    sees_ties: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,0,1: NumRet = 3"

    @property
    def formula(self) -> str:
        return "number of documents retrieved"

    def least_label(self) -> float:
        return np.inf

    def values(self, view: View) -> np.ndarray:
        return view.n_retrieved.astype(np.float64)

    def work(self, ranking: Ranking) -> Work:
        rows = [ranking.row(block, retrieved=inside) for block, inside in ranking.within(None)]
        return Work(rows, total=self.short_name, column="retrieved")

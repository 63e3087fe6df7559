"""Counts: queries, documents retrieved, relevant and both, and the share of a ranking that was judged or not."""

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
        return replace(self.hits_work(ranking), total=self.short_name)


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
class NumNonRelRet(BinaryMetric):
    """Retrieved documents that were judged not relevant, as a number. Aggregated by the sum."""

    family: ClassVar[str] = "NumNonRelRet"
    title: ClassVar[str] = "Number of judged non-relevant documents retrieved"
    aliases: ClassVar[tuple[str, ...]] = ("num_nonrel_judged_ret",)
    aggregation: ClassVar[str] = "sum"
    higher_is_better: ClassVar[bool] = False
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,unjudged,0: NumNonRelRet = 2"

    @property
    def formula(self) -> str:
        return f"number of retrieved documents with a label from 0 up, without those with {show_rel(self.rel)}"

    def least_label(self) -> float:
        return 0.0

    def merit(self) -> Gain:
        return Indicator(0.0, self.least)

    def requests(self) -> tuple[Request, ...]:
        return (Request(None, rel=0.0), Request(None, rel=self.least))

    def values(self, view: View) -> np.ndarray:
        judged, relevant = (view.columns(request).hits for request in self.requests())
        return judged - relevant

    def work(self, ranking: Ranking) -> Work:
        rows = []
        for block, inside in ranking.within(None):
            n = block.count(lambda label: 0 <= label < self.least)
            rows.append(ranking.row(block, not_relevant=tidy(n * inside / block.span)))
        return Work(rows, total=self.short_name, column="not_relevant")


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


@dataclass(frozen=True, kw_only=True)
class Unjudged(Metric):
    """The share of the top k that nobody judged. Places beyond the end of a short list count as judged."""

    family: ClassVar[str] = "Unjudged"
    title: ClassVar[str] = "Share of unjudged documents"
    source: ClassVar[str] = "trec_eval 10 (unj)"
    higher_is_better: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,unjudged,0: Unjudged@2 = 1/2"

    @property
    def formula(self) -> str:
        below = "documents retrieved" if self.k is None else "k"
        return f"documents without a label, or with one below 0, at ranks r{up_to(self.k)} / {below}"

    def least_label(self) -> float:
        return 0.0

    def merit(self) -> Gain:
        return Indicator(0.0)

    def requests(self) -> tuple[Request, ...]:
        return (Request(self.k, rel=0.0),)

    def values(self, view: View) -> np.ndarray:
        depth = view.cutoff(self.k)
        unjudged = np.minimum(depth, view.n_retrieved) - view.columns(self.requests()[0]).hits
        return share_of(unjudged, view.n_retrieved if self.k is None else depth)

    def work(self, ranking: Ranking) -> Work:
        rows = []
        for block, inside in ranking.within(self.k):
            rows.append(ranking.row(block, unjudged=tidy((block.span - block.n_relevant(0.0)) * inside / block.span)))
        n_retrieved, k = ranking.n_retrieved, ranking.cutoff(self.k)
        below = Quantity("retrieved", n_retrieved, "documents retrieved") if k is None else Quantity("k", k)
        return Work(rows, total="unjudged", column="unjudged", divisor=below)


@dataclass(frozen=True, kw_only=True)
class NumQ(Metric):
    """1 for every query: the sum is the number of queries that entered the evaluation."""

    family: ClassVar[str] = "NumQ"
    title: ClassVar[str] = "Number of queries"
    aliases: ClassVar[tuple[str, ...]] = ("num_q",)
    source: ClassVar[str] = "trec_eval"
    aggregation: ClassVar[str] = "sum"
    whole_list_only: ClassVar[bool] = True
    sees_ties: ClassVar[bool] = False
    example: ClassVar[str] = "labels 1,0,1: NumQ = 1"

    @property
    def formula(self) -> str:
        return "1"

    def least_label(self) -> float:
        return np.inf

    def values(self, view: View) -> np.ndarray:
        return np.ones(view.n_queries)

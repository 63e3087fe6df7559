"""Metrics of relevant against not relevant: precision, recall, F, success, reciprocal rank, average precision, R-precision.

A document is relevant when its label reaches `rel`. hits(k) is the number of relevant documents in the top k and P the number of
relevant documents of the query, unretrieved ones included. All of them read the columns of the shared walk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fastrank.gains import Indicator
from fastrank.metrics.base import (
    Metric,
    Request,
    between,
    no_relevant_parameter,
    parameter,
    rel_parameter,
    show_rel,
    threshold,
    up_to,
    word,
)
from fastrank.metrics.view import share_of

if TYPE_CHECKING:
    from fastrank.metrics.view import Columns, View

_TREC = "trec_eval (Buckley and Voorhees); van Rijsbergen, Information Retrieval, 1979"


@dataclass(frozen=True, kw_only=True)
class BinaryMetric(Metric):
    """What metrics with a relevance threshold share."""

    source: ClassVar[str] = _TREC

    rel: float | str | None = rel_parameter()

    @property
    def least(self) -> float:
        """The threshold as a number."""
        return threshold(self.rel)

    def least_label(self) -> float:
        return self.least

    def requests(self) -> tuple[Request, ...]:
        return (Request(self.k, rel=self.least),)

    def columns(self, view: View) -> Columns:
        """The walk's columns at this metric's cutoff."""
        return view.columns(Request(self.k, rel=self.least))

    def depth_of_judgement(self, view: View) -> np.ndarray:
        """k, or the number of retrieved documents when there is no cutoff: what precision divides by."""
        return view.n_retrieved if self.k is None else view.cutoff(self.k)

    @property
    def _hits(self) -> str:
        return f"(documents with {show_rel(self.rel)} at ranks r{up_to(self.k)})" if self.k else f"(retrieved documents with {show_rel(self.rel)})"


@dataclass(frozen=True, kw_only=True)
class P(BinaryMetric):
    """Precision: the share of the top k that is relevant."""

    family: ClassVar[str] = "P"
    title: ClassVar[str] = "Precision"
    aliases: ClassVar[tuple[str, ...]] = ("Precision", "pre")
    example: ClassVar[str] = "labels 1,0,1,1,0: P@5 = 3/5 = 0.6"

    denominator: str | None = parameter(word("k", "retrieved"), "k")

    @property
    def formula(self) -> str:
        below = "documents retrieved" if self.k is None else "k" if self.denominator == "k" else "min(k, documents retrieved)"
        return f"{self._hits} / {below}"

    def values(self, view: View) -> np.ndarray:
        below = self.depth_of_judgement(view)
        return share_of(self.columns(view).hits, below if self.denominator == "k" else np.minimum(below, view.n_retrieved))


@dataclass(frozen=True, kw_only=True)
class _RecallLike(BinaryMetric):
    """A metric that has no value of its own when nothing is relevant."""

    no_relevant: str | None = no_relevant_parameter()

    def nothing_to_find(self, view: View) -> np.ndarray:
        return view.n_relevant(self.least) == 0


@dataclass(frozen=True, kw_only=True)
class R(_RecallLike):
    """Recall: the share of the relevant documents that is in the top k."""

    family: ClassVar[str] = "R"
    title: ClassVar[str] = "Recall"
    aliases: ClassVar[tuple[str, ...]] = ("Recall",)
    example: ClassVar[str] = "labels 1,0,1,1,0: R@2 = 1/3 = 0.3333"

    @property
    def formula(self) -> str:
        return f"{self._hits} / P, all documents with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        return share_of(self.columns(view).hits, view.n_relevant(self.least))


@dataclass(frozen=True, kw_only=True)
class F(_RecallLike):
    """F measure: the weighted harmonic mean of precision and recall, beta = 1 weighting them alike."""

    family: ClassVar[str] = "F"
    title: ClassVar[str] = "F measure"
    example: ClassVar[str] = "labels 1,0,1,1,0: F@2 = 2 * 1 / (2 + 3) = 0.4"

    beta: float | None = parameter(between(0), 1)

    @property
    def formula(self) -> str:
        depth = "documents retrieved" if self.k is None else "k"
        return f"(1 + b^2) * {self._hits} / (b^2 * P + {depth}), b = {self.beta}, P all documents with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        assert self.beta is not None
        square = float(self.beta) ** 2
        below = square * view.n_relevant(self.least) + self.depth_of_judgement(view)
        return share_of((1 + square) * self.columns(view).hits, below)


@dataclass(frozen=True, kw_only=True)
class Success(_RecallLike):
    """Success, also hit rate: 1 when the top k holds a relevant document."""

    family: ClassVar[str] = "Success"
    title: ClassVar[str] = "Success (hit rate)"
    aliases: ClassVar[tuple[str, ...]] = ("HitRate", "hit_rate", "Hit")
    example: ClassVar[str] = "labels 0,1,1: Success@1 = 0, Success@2 = 1"

    @property
    def formula(self) -> str:
        return f"1 if {self._hits} > 0, else 0"

    def values(self, view: View) -> np.ndarray:
        return self.columns(view).success


@dataclass(frozen=True, kw_only=True)
class RR(_RecallLike):
    """Reciprocal rank: 1 over the rank of the first relevant document, 0 when the top k holds none. Its mean is the MRR."""

    family: ClassVar[str] = "RR"
    title: ClassVar[str] = "Reciprocal rank"
    aliases: ClassVar[tuple[str, ...]] = ("MRR",)
    source: ClassVar[str] = "Voorhees, TREC-8 question answering track, 1999"
    example: ClassVar[str] = "first relevant documents at ranks 1, 2, 4, 1 and never: mean RR = 2.75/5 = 0.55"

    @property
    def formula(self) -> str:
        return f"1 / rank of the first document with {show_rel(self.rel)}, ranks r{up_to(self.k)}" if self.k else f"1 / rank of the first document with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        return self.columns(view).reciprocal_rank


_DENOMINATORS = {
    "relevant": "P",
    "min_k": "min(P, k)",
    "min_k_retrieved": "min(P, k, documents retrieved)",
    "hits": "hits(k)",
}


@dataclass(frozen=True, kw_only=True)
class AP(_RecallLike):
    """Average precision: precision at the rank of each relevant document, averaged over the relevant documents. Its mean is MAP."""

    family: ClassVar[str] = "AP"
    title: ClassVar[str] = "Average precision"
    aliases: ClassVar[tuple[str, ...]] = ("MAP",)
    source: ClassVar[str] = "trec_eval map, map_cut (Buckley and Voorhees, SIGIR 2000)"
    example: ClassVar[str] = "labels 3,0,2,3,1: AP = (1 + 2/3 + 3/4 + 4/5) / 4 = 0.8042"

    denominator: str | None = parameter(word(*_DENOMINATORS), "relevant")

    @property
    def formula(self) -> str:
        assert self.denominator is not None
        below = _DENOMINATORS[self.denominator if self.k or self.denominator != "min_k" else "relevant"]
        return f"sum over ranks r{up_to(self.k)} with {show_rel(self.rel)} of hits(r) / r, divided by {below}"

    def tie_rules(self) -> tuple[str, ...]:
        # The expectation of a ratio whose two sides both depend on the order has no closed form.
        every = super().tie_rules()
        return every if self.denominator != "hits" else tuple(rule for rule in every if rule != "average")

    def values(self, view: View) -> np.ndarray:
        columns, below = self.columns(view), view.n_relevant(self.least)
        if self.denominator == "hits":
            return share_of(columns.precisions, columns.hits)
        if self.denominator != "relevant" and self.k is not None:
            below = np.minimum(below, view.cutoff(self.k))
        if self.denominator == "min_k_retrieved":
            below = np.minimum(below, view.n_retrieved)
        return share_of(columns.precisions, below)


@dataclass(frozen=True, kw_only=True)
class Rprec(_RecallLike):
    """R-precision: precision at rank P, the number of relevant documents."""

    family: ClassVar[str] = "Rprec"
    title: ClassVar[str] = "R-precision"
    aliases: ClassVar[tuple[str, ...]] = ("RPrecision", "r_precision", "r-precision")
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,1,1,0: Rprec = 2/3 = 0.6667"

    @property
    def formula(self) -> str:
        return f"(documents with {show_rel(self.rel)} at ranks r <= P) / P"

    def requests(self) -> tuple[Request, ...]:
        return ()

    def values(self, view: View) -> np.ndarray:
        n_relevant = view.n_relevant(self.least)
        return share_of(view.at(n_relevant, self.least).hits, n_relevant)


@dataclass(frozen=True, kw_only=True)
class RBP(BinaryMetric):
    """Rank-biased precision: the expected share of looks at relevant documents by a user who goes on with probability p."""

    family: ClassVar[str] = "RBP"
    title: ClassVar[str] = "Rank-biased precision"
    source: ClassVar[str] = "Moffat and Zobel, TOIS 27(1), 2008"
    example: ClassVar[str] = "labels 1,0,1, p = 0.8: RBP = 0.2 * (1 + 0.64) = 0.328"

    p: float | None = parameter(between(0, 1), 0.8)

    @property
    def formula(self) -> str:
        return f"(1 - p) * sum over ranks r{up_to(self.k)} with {show_rel(self.rel)} of p^(r - 1), p = {self.p}"

    def requests(self) -> tuple[Request, ...]:
        return (self._weighted(),)

    def _weighted(self) -> Request:
        return Request(self.k, gain=Indicator(self.least), discount=f"geometric:{self.p!r}")

    def values(self, view: View) -> np.ndarray:
        assert self.p is not None
        return (1.0 - self.p) * view.columns(self._weighted()).dcg

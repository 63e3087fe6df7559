"""Metrics of relevant against not relevant: precision, recall, F, success, reciprocal rank, average precision, R-precision.

A document is relevant when its label reaches `rel`. hits(k) is the number of relevant documents in the top k and P the number of
relevant documents of the query, unretrieved ones included. All of them read the columns of the shared walk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fastrank._cached import cached_property
from fastrank.gains import tidy
from fastrank.metrics.base import (
    Cutoff,
    Metric,
    Request,
    as_number,
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
from fastrank.metrics.working import Block, Quantity, Ranking, Row, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import Columns, View

_TREC = "trec_eval (Buckley and Voorhees); van Rijsbergen, Information Retrieval, 1979"


@dataclass(frozen=True, kw_only=True)
class BinaryMetric(Metric):
    """What metrics with a relevance threshold share."""

    source: ClassVar[str] = _TREC

    rel: float | str | None = rel_parameter()

    @cached_property
    def least(self) -> float:
        """The threshold as a number."""
        return threshold(self.rel)

    def least_label(self) -> float:
        return self.least

    def requests(self) -> tuple[Request, ...]:
        return (self._request,)

    @cached_property
    def _request(self) -> Request:
        return Request(self.k, rel=self.least)

    def columns(self, view: View) -> Columns:
        """The walk's columns at this metric's cutoff."""
        return view.columns(self._request)

    def depth_of_judgement(self, view: View) -> np.ndarray:
        """k, or the number of retrieved documents when there is no cutoff: what precision divides by."""
        return view.n_retrieved if self.k is None else view.cutoff(self.k)

    def hit_rows(self, ranking: Ranking, k: Cutoff) -> list[Row]:
        """Each place of the top k with its relevant documents (expected ones where it is shared), and how many there are so far."""
        rows, met = [], 0.0
        for block, inside in ranking.within(k):
            hits = self.met_in(block) * inside / block.span
            met += hits
            rows.append(ranking.row(block, relevant=tidy(hits), hits=tidy(met)))
        return rows

    def met_in(self, block: Block) -> int:
        """Relevant documents of a block that count as retrieved."""
        return block.n_relevant(self.least)

    def hits_work(self, ranking: Ranking) -> Work:
        """`work` of a metric that is a multiple of the number of hits in the top k; it adds what that is multiplied and divided by."""
        return Work(self.hit_rows(ranking, self.k), total="hits", column="relevant")

    def depth_in(self, ranking: Ranking) -> Quantity:
        """`depth_of_judgement` of one query."""
        k = ranking.cutoff(self.k)
        if k is None:
            return Quantity("retrieved", ranking.n_retrieved, "documents retrieved")
        return Quantity("k", k)

    def relevant_in(self, ranking: Ranking) -> Quantity:
        """P, the relevant documents of one query."""
        n_relevant = ranking.n_relevant(self.least)
        return Quantity("P", n_relevant, f"the documents with {show_rel(self.rel)}, retrieved or not")

    @property
    def relevant_words(self) -> str:
        """What makes a retrieved document count, as it stands in a formula."""
        return show_rel(self.rel)

    @property
    def _hits(self) -> str:
        relevant = f"documents with {self.relevant_words}"
        return f"({relevant} at ranks r{up_to(self.k)})" if self.k else f"(retrieved {relevant})"


@dataclass(frozen=True, kw_only=True)
class ScoreBoundMetric(BinaryMetric):
    """A metric for which a document whose score is not above `above` is not retrieved. It keeps its place in the list all the same."""

    above: float | None = parameter(as_number)

    def met_in(self, block: Block) -> int:
        score = block.documents[0].score
        below = self.above is not None and score is not None and score <= self.above
        return 0 if below else super().met_in(block)

    @property
    def relevant_words(self) -> str:
        return super().relevant_words + ("" if self.above is None else f" and score > {self.above}")


@dataclass(frozen=True, kw_only=True)
class P(ScoreBoundMetric):
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

    def work(self, ranking: Ranking) -> Work:
        below = self.depth_in(ranking)
        if self.k is not None and self.denominator == "retrieved":
            n_retrieved = ranking.n_retrieved
            below = Quantity("min(k, retrieved)", min(below.value, n_retrieved), f"for {n_retrieved} documents retrieved")
        return replace(self.hits_work(ranking), divisor=below)


@dataclass(frozen=True, kw_only=True)
class RecallLike(BinaryMetric):
    """A metric that has no value of its own when nothing is relevant."""

    no_relevant: str | None = no_relevant_parameter()

    def nothing_to_find(self, view: View) -> np.ndarray:
        return view.judged.nothing_reaches(self.least)


@dataclass(frozen=True, kw_only=True)
class R(ScoreBoundMetric, RecallLike):
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

    def work(self, ranking: Ranking) -> Work:
        return replace(self.hits_work(ranking), divisor=self.relevant_in(ranking))


@dataclass(frozen=True, kw_only=True)
class F(RecallLike):
    """F measure: the weighted harmonic mean of precision and recall, beta = 1 weighting them alike."""

    family: ClassVar[str] = "F"
    title: ClassVar[str] = "F measure"
    example: ClassVar[str] = "labels 1,0,1,1,0: F@2 = 2 * 1 / (2 + 3) = 0.4"

    beta: float | None = parameter(between(0, 1e100), 1)

    @property
    def formula(self) -> str:
        depth = "documents retrieved" if self.k is None else "k"
        return f"(1 + b^2) * {self._hits} / (b^2 * P + {depth}), b = {self.beta}, P all documents with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        assert self.beta is not None
        square = float(self.beta) ** 2
        below = square * view.n_relevant(self.least) + self.depth_of_judgement(view)
        return share_of((1 + square) * self.columns(view).hits, below)

    def work(self, ranking: Ranking) -> Work:
        assert self.beta is not None
        square, n_relevant, depth = tidy(float(self.beta) ** 2), self.relevant_in(ranking), self.depth_in(ranking)
        below = square * n_relevant.value + depth.value
        meaning = f"of b = {self.beta}, P = {n_relevant.value}, {depth.symbol} = {depth.value}: P {n_relevant.meaning}"
        return replace(
            self.hits_work(ranking),
            factor=Quantity("(1 + b^2)", 1 + square),
            divisor=Quantity(f"(b^2 * P + {depth.symbol})", below, meaning),
        )


def first_relevant_rows(metric: BinaryMetric, ranking: Ranking) -> list[Row]:
    """The ranking down to the first relevant document: the chance that it stands in a row, and the expected 1 / rank of it."""
    rows = []
    for block, inside in ranking.within(metric.k):
        n, r = block.span, metric.met_in(block)
        unmet, expected = 1.0, 0.0
        for place in range(min(inside, n - r + 1) if r else 0):
            expected += unmet * (r / (n - place)) / (block.first + place)
            unmet *= (n - r - place) / (n - place)
        rows.append(ranking.row(block, relevant=r, first=tidy(1.0 - unmet), term=expected))
        if r:
            break
    return rows


@dataclass(frozen=True, kw_only=True)
class Success(RecallLike):
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

    def work(self, ranking: Ranking) -> Work:
        rows = first_relevant_rows(self, ranking)
        return Work(rows, total=self.short_name, column="first")


@dataclass(frozen=True, kw_only=True)
class RR(ScoreBoundMetric, RecallLike):
    """Reciprocal rank: 1 over the rank of the first relevant document, 0 when the top k holds none. Its mean is the MRR."""

    family: ClassVar[str] = "RR"
    title: ClassVar[str] = "Reciprocal rank"
    aliases: ClassVar[tuple[str, ...]] = ("MRR",)
    source: ClassVar[str] = "Voorhees, TREC-8 question answering track, 1999"
    example: ClassVar[str] = "first relevant documents at ranks 1, 2, 4, 1 and never: mean RR = 2.75/5 = 0.55"

    @property
    def formula(self) -> str:
        return f"1 / rank of the first document with {self.relevant_words}" + (f", ranks r{up_to(self.k)}" if self.k else "")

    def values(self, view: View) -> np.ndarray:
        return self.columns(view).reciprocal_rank

    def work(self, ranking: Ranking) -> Work:
        rows = first_relevant_rows(self, ranking)
        spelled = {place: f"1/{row['rank']}" for place, row in enumerate(rows) if row["first"] == 1 and isinstance(row["rank"], int)}
        return Work(rows, total=self.short_name, spelled=spelled)


_DENOMINATORS = {
    "relevant": "P",
    "min_k": "min(P, k)",
    "min_k_retrieved": "min(P, k, documents retrieved)",
    "hits": "hits(k)",
}


@dataclass(frozen=True, kw_only=True)
class AP(ScoreBoundMetric, RecallLike):
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
        return f"sum over ranks r{up_to(self.k)} with {self.relevant_words} of hits(r) / r, divided by {below}"

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

    def work(self, ranking: Ranking) -> Work:
        rows, spelled, met = self.hit_rows(ranking, self.k), {}, 0
        for place, (block, inside) in enumerate(ranking.within(self.k)):
            n, r = block.span, self.met_in(block)
            rows[place]["precision"] = None
            if r:
                more = (r - 1) / (n - 1) if n > 1 else 0.0
                precisions = [(met + 1 + i * more) / (block.first + i) for i in range(inside)]
                rows[place]["precision"] = r / n * math.fsum(precisions)
            if n == r == 1:
                spelled[place] = f"{met + 1}/{block.first}"
            met += r
        return Work(rows, column="precision", divisor=self._divisor_in(ranking), spelled=spelled)

    def _divisor_in(self, ranking: Ranking) -> Quantity:
        k, n_relevant = ranking.cutoff(self.k), self.relevant_in(ranking)
        if self.denominator == "hits":
            hits = self.hit_rows(ranking, self.k)[-1]["hits"] if ranking.n_retrieved else 0
            return Quantity("hits", hits, "the relevant documents ranked")
        limits = {"P": n_relevant.value}
        if self.denominator != "relevant" and k is not None:
            limits["k"] = k
        if self.denominator == "min_k_retrieved":
            limits["retrieved"] = ranking.n_retrieved
        if len(limits) == 1:
            return n_relevant
        return Quantity(
            f"min({', '.join(limits)})", min(limits.values()), f"of {', '.join(map(str, limits.values()))}: P {n_relevant.meaning}"
        )


def at_multiple(n_relevant: np.ndarray, multiple: float) -> np.ndarray:
    """The rank at a multiple of the number of relevant documents, as trec_eval rounds, in doubles: that number for the multiple 1."""
    return np.trunc(multiple * n_relevant + 0.9).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Rprec(RecallLike):
    """R-precision: precision at rank P, the number of relevant documents, or at a multiple of it."""

    family: ClassVar[str] = "Rprec"
    title: ClassVar[str] = "R-precision"
    aliases: ClassVar[tuple[str, ...]] = ("RPrecision", "r_precision", "r-precision")
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,1,1,0: Rprec = 2/3 = 0.6667"

    multiple: float | None = parameter(between(0), 1)

    @property
    def formula(self) -> str:
        cut = "P" if self.multiple == 1 else f"c, c = int({self.multiple} P + 0.9)"
        return f"(documents with {show_rel(self.rel)} at ranks r <= {cut}) / {cut[0]}"

    def requests(self) -> tuple[Request, ...]:
        return ()

    def _cutoffs(self, n_relevant: np.ndarray) -> np.ndarray:
        assert self.multiple is not None
        return at_multiple(n_relevant, self.multiple)

    def values(self, view: View) -> np.ndarray:
        cutoffs = self._cutoffs(view.n_relevant(self.least))
        return share_of(view.at(cutoffs, self.least).hits, cutoffs)

    def work(self, ranking: Ranking) -> Work:
        below = self.relevant_in(ranking)
        if self.multiple != 1:
            meaning = f"the whole part of {self.multiple} P + 0.9, P = {below.value}"
            below = Quantity("c", int(self._cutoffs(np.array(below.value))), meaning)
        rows = self.hit_rows(ranking, int(below.value) or None)
        return Work(rows, total="hits", column="relevant", divisor=below, remarks=(f"Only the first {below.symbol} ranks count.",))

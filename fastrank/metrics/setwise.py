"""Metrics of the retrieved documents as a set, whatever their order: relative precision, set average precision, utility.

Set precision, recall and F are P, R and F without a cutoff.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank.errors import InputError
from fastrank.metrics.base import as_number, parameter, show_rel
from fastrank.metrics.binary import BinaryMetric, RecallLike
from fastrank.metrics.view import share_of
from fastrank.metrics.working import Quantity, Ranking, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@dataclass(frozen=True, kw_only=True)
class RelP(RecallLike):
    """Relative precision: precision over the greatest precision that is possible there. Precision up to rank P, recall from there on."""

    family: ClassVar[str] = "RelP"
    title: ClassVar[str] = "Relative precision"
    aliases: ClassVar[tuple[str, ...]] = ("SetRelP", "set_relative_P")
    example: ClassVar[str] = "labels 1,0,1,1,0: RelP@2 = 1/2, RelP@5 = 3/3 = 1"

    @property
    def formula(self) -> str:
        depth = "documents retrieved" if self.k is None else "k"
        return f"{self._hits} / min({depth}, P), P all documents with {show_rel(self.rel)}"

    def values(self, view: View) -> np.ndarray:
        return share_of(self.columns(view).hits, np.minimum(self.depth_of_judgement(view), view.n_relevant(self.least)))

    def work(self, ranking: Ranking) -> Work:
        depth, n_relevant = self.depth_in(ranking), self.relevant_in(ranking)
        meaning = f"of {depth.value} and P = {n_relevant.value}, {n_relevant.meaning}"
        below = Quantity(f"min({depth.symbol}, P)", min(depth.value, n_relevant.value), meaning)
        return replace(self.hits_work(ranking), divisor=below)


@dataclass(frozen=True, kw_only=True)
class SetAP(RecallLike):
    """Set average precision: precision times recall of the retrieved documents, as if every relevant one stood at the end."""

    family: ClassVar[str] = "SetAP"
    title: ClassVar[str] = "Set average precision"
    aliases: ClassVar[tuple[str, ...]] = ("set_map",)
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,1,0 and one relevant document missed: SetAP = 2/4 * 2/3 = 0.3333"

    @property
    def formula(self) -> str:
        hits = self._hits
        return f"{hits} / documents retrieved * {hits} / P, P all documents with {show_rel(self.rel)}"

    def check_depth(self) -> None:
        if self.ties == "average":
            raise InputError("SetAP has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.")

    def values(self, view: View) -> np.ndarray:
        hits = self.columns(view).hits
        return share_of(hits * hits, view.n_retrieved * view.n_relevant(self.least))

    def work(self, ranking: Ranking) -> Work:
        found, n_relevant, n_retrieved = self.hits_work(ranking), self.relevant_in(ranking), ranking.n_retrieved
        hits = found.sum_of(found.rows)
        below = Quantity("retrieved * P", n_retrieved * n_relevant.value, f"for {n_retrieved} retrieved; P = {n_relevant.value}")
        return replace(found, factor=Quantity("hits", hits), divisor=below)


def _as_weights(name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InputError(f"{name} must be four numbers, such as (1, -1, 0, 0), not {value!r}.")
    numbers = tuple(as_number(name, number) for number in value)
    if len(numbers) != 4:
        raise InputError(f"{name} must be four numbers, such as (1, -1, 0, 0), not {len(numbers)}.")
    return numbers


def _as_size(name: str, value: Any) -> float:
    number = as_number(name, value)
    if number < 0 or not float(number).is_integer():
        raise InputError(f"{name} must be a whole number from 0 up, not {value!r}.")
    return number


@dataclass(frozen=True, kw_only=True)
class Utility(BinaryMetric):
    """Linear utility: each document is worth what its cell of the table retrieved / relevant says.

    `weights` are those of relevant and other documents retrieved, then of relevant and other documents left; the last one needs
    `collection`, the number of documents in the collection.
    """

    family: ClassVar[str] = "Utility"
    title: ClassVar[str] = "Linear utility"
    source: ClassVar[str] = "trec_eval (Lewis, TREC-4 filtering track, 1995)"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0,0: Utility = 1 - 2 = -1"

    weights: tuple[float, ...] | None = parameter(_as_weights, (1, -1, 0, 0))
    collection: float | None = parameter(_as_size, 0)

    @property
    def formula(self) -> str:
        assert self.weights is not None
        a, b, c, d = self.weights
        cells = f"{a} * (relevant retrieved) + {b} * (others retrieved) + {c} * (relevant left) + {d} * (others left)"
        return f"{cells}, relevant {show_rel(self.rel)}, {self.collection} documents in the collection"

    def values(self, view: View) -> np.ndarray:
        assert self.weights is not None
        hits, n_relevant, n_retrieved = self.columns(view).hits, view.n_relevant(self.least), view.n_retrieved
        cells = (hits, n_retrieved - hits, n_relevant - hits, self.collection + hits - n_retrieved - n_relevant)
        return np.asarray(sum(weight * cell for weight, cell in zip(self.weights, cells, strict=True)))

    def work(self, ranking: Ranking) -> Work:
        assert self.weights is not None
        assert self.collection is not None
        found, n_retrieved, n_relevant = self.hits_work(ranking), ranking.n_retrieved, ranking.n_relevant(self.least)
        hits = found.sum_of(found.rows)
        cells = {
            "relevant, retrieved": hits,
            "others, retrieved": n_retrieved - hits,
            "relevant, left": n_relevant - hits,
            "others, left": self.collection + hits - n_retrieved - n_relevant,
        }
        rows = [
            {"rank": None, "label": kind, "documents": cell, "weight": weight, "term": weight * cell}
            for (kind, cell), weight in zip(cells.items(), self.weights, strict=True)
        ]
        return Work(rows, total=self.short_name, title="contingency table")

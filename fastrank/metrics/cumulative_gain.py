"""Discounted cumulative gain and its normalised form.

DCG@k = sum over ranks r <= k of gain(label) * discount(r).  IDCG: the same over the best order.  nDCG = DCG / IDCG.
Source: Järvelin and Kekäläinen, TOIS 20(4), 2002; the gain 2^label - 1 and the discount 1 / log2(r + 1): Burges et al., ICML 2005.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._cached import cached_property
from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.gains import (
    LARGEST_NUMBER,
    Discount,
    Gain,
    GainTable,
    as_discount,
    as_gain,
    describe_discount,
    describe_gain,
    discounts,
    gain_of_zero,
    gains_of,
    largest_label,
    rises,
    tidy,
)
from fastrank.metrics.base import ANY_GAIN, Metric, Request, no_relevant_parameter, parameter, show_cutoff, up_to
from fastrank.metrics.working import Block, Quantity, Ranking, Row, Work

if TYPE_CHECKING:
    from fastrank.metrics.view import View

_ZERO = np.array(0.0)  # NumPy takes longer to make one than to compare a hundred numbers


@kernel
def normalise(dcg: Any, ideal: Any, out: Any) -> None:
    """out = dcg / ideal, and 0 where there is nothing to gain. An average over ties can round to just above the ideal: 1 is the most."""
    for q in range(out.shape[0]):
        ratio = dcg[q] / ideal[q] if ideal[q] > 0.0 else 0.0
        out[q] = min(ratio, 1.0)


@dataclass(frozen=True, kw_only=True)
class Gained(Metric):
    """A metric of the gains of documents."""

    gain: Gain | None = parameter(lambda name, value: as_gain(value))

    def least_label(self) -> float:
        assert self.gain is not None
        return 0.0 if gain_of_zero(self.gain) else ANY_GAIN

    def merit(self) -> Gain | None:
        assert self.gain is not None
        return None if rises(self.gain) else self.gain

    def check_labels(self, largest: float, distinct: Callable[[], np.ndarray]) -> None:
        assert self.gain is not None
        if largest > (most := largest_label(self.gain)):
            if most == LARGEST_NUMBER:
                raise InputError(f"label {largest:g} is too large to sum: gains may reach {most:g}. Scale the labels down.")
            cure = "Use gain='linear' or a table such as gain={0: 0, 1: 1, ...}."
            raise InputError(f"label {largest:g} is too large for the gain 2^label - 1, which overflows above {most:g}. {cure}")
        if isinstance(self.gain, GainTable) and self.gain.others is None:
            known = {label for label, _ in self.gain.entries}
            for label in distinct().tolist():
                if label not in known:
                    raise InputError(f"label {label:g} has no entry in the gain table {self.gain!r}. Add one, such as {{{label:g}: 0}}.")


@dataclass(frozen=True, kw_only=True)
class _CumulativeGain(Gained):
    source: ClassVar[str] = "Järvelin and Kekäläinen, TOIS 2002; exponential gain: Burges et al., ICML 2005"

    discount: Discount | None = parameter(lambda name, value: as_discount(value))

    @property
    def _sum(self) -> str:
        assert self.gain is not None
        assert self.discount is not None
        return f"sum over ranks r{up_to(self.k)} of {describe_gain(self.gain)}{describe_discount(self.discount)}"

    @cached_property
    def _request(self) -> Request:
        return Request(self.k, gain=self.gain, discount=self.discount)

    def _gain(self, label: float | None) -> float:
        assert self.gain is not None
        return 0.0 if label is None else float(gains_of(np.array([label]), self.gain)[0])

    def _terms(self, ranking: Ranking, k: int | None) -> list[Row]:
        """Gain times discount of each place. Equal scores: the mean gain times the sum of the discounts."""
        assert self.discount is not None
        rows = []
        for block, inside in ranking.within(k):
            gain = math.fsum(self._gain(document.label) for document in block.documents) / block.span
            places = discounts(self.discount, block.first + inside)[block.first - 1 : block.first - 1 + inside]
            discount = math.fsum(places.tolist())
            rows.append(ranking.row(block, gain=tidy(gain), discount=discount, term=gain * discount))
        return rows

    def _ideal_terms(self, ranking: Ranking) -> list[Row]:
        """The same for all documents, retrieved or not, in descending order of gain."""
        documents = [document._replace(score=None) for block in ranking.every() for document in block.documents]
        documents.sort(key=lambda document: self._gain(document.label), reverse=True)
        ideal = Ranking(tuple(Block(rank, (document,)) for rank, document in enumerate(documents, 1)))
        return self._terms(ideal, ranking.cutoff(self.k))

    def _at(self, name: str) -> str:
        return name if self.k is None else f"{name}@{show_cutoff(self.k)}"


@dataclass(frozen=True, kw_only=True)
class DCG(_CumulativeGain):
    """Discounted cumulative gain."""

    family: ClassVar[str] = "DCG"
    title: ClassVar[str] = "Discounted cumulative gain"
    example: ClassVar[str] = "labels 3,2,0,1,2: DCG@5 = 7 + 3/log2(3) + 1/log2(5) + 3/log2(6) = 10.4840"

    @property
    def formula(self) -> str:
        return self._sum

    def requests(self) -> tuple[Request, ...]:
        return (self._request,)

    def values(self, view: View) -> np.ndarray:
        return view.columns(self._request).dcg

    def work(self, ranking: Ranking) -> Work:
        return Work(self._terms(ranking, ranking.cutoff(self.k)), total=self._at("DCG"))


@dataclass(frozen=True, kw_only=True)
class IDCG(_CumulativeGain):
    """DCG of the ideal order: labels from best to worst, unretrieved documents included."""

    family: ClassVar[str] = "IDCG"
    title: ClassVar[str] = "DCG of the ideal order"
    sees_ties: ClassVar[bool] = False
    example: ClassVar[str] = "labels 3,2,0,1,2: IDCG@5 = 7 + 3/log2(3) + 3/log2(4) + 1/log2(5) = 10.8235"

    @property
    def formula(self) -> str:
        return f"{self._sum}, labels in descending order of gain"

    def values(self, view: View) -> np.ndarray:
        assert self.gain is not None
        assert self.discount is not None
        return view.ideal(self.gain, self.discount, self.k)

    def work(self, ranking: Ranking) -> Work:
        return Work(self._ideal_terms(ranking), total=self._at("IDCG"), title="ideal order")


@dataclass(frozen=True, kw_only=True)
class nDCG(_CumulativeGain):  # noqa: N801  (the field's spelling)
    """Normalised discounted cumulative gain."""

    family: ClassVar[str] = "nDCG"
    title: ClassVar[str] = "Normalised discounted cumulative gain"
    example: ClassVar[str] = "labels 3,2,0,1,2: nDCG@5 = 10.4840 / 10.8235 = 0.9686"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"{self._sum}, divided by the same sum over the ideal order"

    def requests(self) -> tuple[Request, ...]:
        return (self._request,)

    def write(self, view: View, out: np.ndarray) -> None:
        assert self.gain is not None
        assert self.discount is not None
        normalise(view.columns(self._request).dcg, view.ideal(self.gain, self.discount, self.k), out)

    def work(self, ranking: Ranking) -> Work:
        ideal = self._ideal_terms(ranking)
        divisor = Quantity(self._at("IDCG"), math.fsum(row["term"] for row in ideal))
        return Work(self._terms(ranking, ranking.cutoff(self.k)), total=self._at("DCG"), divisor=divisor, ideal_rows=ideal)

    def nothing_to_find(self, view: View) -> np.ndarray:
        assert self.gain is not None
        assert self.discount is not None
        nothing: np.ndarray = view.ideal(self.gain, self.discount, self.k) <= _ZERO
        return nothing

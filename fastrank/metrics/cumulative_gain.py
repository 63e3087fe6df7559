"""Discounted cumulative gain and its normalised form.

DCG@k = sum over ranks r <= k of gain(label) * discount(r).  IDCG: the same over the best order.  nDCG = DCG / IDCG.
Source: Järvelin and Kekäläinen, TOIS 20(4), 2002; the gain 2^label - 1 and the discount 1 / log2(r + 1): Burges et al., ICML 2005.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fastrank.errors import InputError
from fastrank.gains import (
    LARGEST_EXP2_LABEL,
    Discount,
    Gain,
    GainTable,
    as_discount,
    as_gain,
    describe_discount,
    describe_gain,
    gain_of_zero,
)
from fastrank.metrics.base import ANY_GAIN, Metric, Request, no_relevant_parameter, parameter, up_to

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@dataclass(frozen=True, kw_only=True)
class _CumulativeGain(Metric):
    source: ClassVar[str] = "Järvelin and Kekäläinen, TOIS 2002; exponential gain: Burges et al., ICML 2005"

    gain: Gain | None = parameter(lambda name, value: as_gain(value))
    discount: Discount | None = parameter(lambda name, value: as_discount(value))

    def least_label(self) -> float:
        assert self.gain is not None
        return 0.0 if gain_of_zero(self.gain) else ANY_GAIN

    @property
    def _sum(self) -> str:
        assert self.gain is not None
        assert self.discount is not None
        return f"sum over ranks r{up_to(self.k)} of {describe_gain(self.gain)}{describe_discount(self.discount)}"

    def _request(self) -> Request:
        return Request(self.k, gain=self.gain, discount=self.discount)

    def check_labels(self, largest: float, distinct: Callable[[], np.ndarray]) -> None:
        if self.gain == "exp2" and largest > LARGEST_EXP2_LABEL:
            cure = "Use gain='linear' or a table such as gain={0: 0, 1: 1, ...}."
            raise InputError(f"label {largest:g} is too large for the gain 2^label - 1, which overflows above {LARGEST_EXP2_LABEL}. {cure}")
        if isinstance(self.gain, GainTable):
            known = {label for label, _ in self.gain.entries}
            for label in distinct().tolist():
                if label not in known:
                    raise InputError(f"label {label:g} has no entry in the gain table {self.gain!r}. Add one, such as {{{label:g}: 0}}.")


@dataclass(frozen=True, kw_only=True)
class DCG(_CumulativeGain):
    """Discounted cumulative gain."""

    family: ClassVar[str] = "DCG"
    title: ClassVar[str] = "Discounted cumulative gain"
    example: ClassVar[str] = "labels 3,2,0,1,2: DCG@5 = 7 + 3/log2(3) + 1/log2(5) + 3/log2(6) = 10.4841"

    @property
    def formula(self) -> str:
        return self._sum

    def requests(self) -> tuple[Request, ...]:
        return (self._request(),)

    def values(self, view: View) -> np.ndarray:
        return view.columns(self._request()).dcg


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
        return view.ideal_dcg(self.gain, self.discount, self.k)


@dataclass(frozen=True, kw_only=True)
class nDCG(_CumulativeGain):  # noqa: N801  (the field's spelling)
    """Normalised discounted cumulative gain."""

    family: ClassVar[str] = "nDCG"
    title: ClassVar[str] = "Normalised discounted cumulative gain"
    example: ClassVar[str] = "labels 3,2,0,1,2: nDCG@5 = 10.4841 / 10.8235 = 0.9686"

    no_relevant: str | None = no_relevant_parameter()

    @property
    def formula(self) -> str:
        return f"{self._sum}, divided by the same sum over the ideal order"

    def requests(self) -> tuple[Request, ...]:
        return (self._request(),)

    def values(self, view: View) -> np.ndarray:
        assert self.gain is not None
        assert self.discount is not None
        ideal = view.ideal_dcg(self.gain, self.discount, self.k)
        ratio = np.divide(view.columns(self._request()).dcg, ideal, out=np.zeros(view.n_queries), where=ideal > 0)
        # An average over ties can round to just above the ideal; mathematically nothing exceeds it.
        return np.minimum(ratio, 1.0)

    def nothing_to_find(self, view: View) -> np.ndarray:
        assert self.gain is not None
        assert self.discount is not None
        return np.asarray(view.ideal_dcg(self.gain, self.discount, self.k) <= 0)

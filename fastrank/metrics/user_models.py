"""Metrics of the C/W/L framework: the expected gain per document of a reader who goes on from rank i with probability C(i).

value = sum over ranks i of W(i) * gain(i),  W(i) = C(1) ... C(i - 1) / sum over ranks of the same
Gains are labels scaled to 0 ... 1. Ranks go to the `horizon`: a shorter list goes on with documents that gain nothing.
Source: Moffat, Bailey, Scholer and Thomas, TOIS 35(3), 2017; Azzopardi, Thomas and Moffat, SIGIR 2019 (cwl_eval).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.gains import DiscountTable, Scaled, describe_gain
from fastrank.metrics.base import Metric, Request, as_number, as_whole, between, parameter, show_cutoff, up_to

if TYPE_CHECKING:
    from fastrank.metrics.view import View


@kernel
def rate_until_satisfied(rank: Any, gain: Any, starts: Any, limits: Any, go_on: Any, out: Any) -> None:
    """out[q] = expected gain per document, going on from rank r with probability go_on[r - 1] * (1 - its gain)."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        chance, total, looked = 1.0, 0.0, 0.0
        for r in range(1, limits[q] + 1):
            here = 0.0
            if i < stop and rank[i] == r:
                here = gain[i]
                i += 1
            total += chance * here
            looked += chance
            chance *= go_on[r - 1] * (1.0 - here)
            if chance == 0.0:
                break
        out[q] = total / looked if looked > 0.0 else 0.0


@kernel
def rate_until_goal(rank: Any, gain: Any, starts: Any, limits: Any, goal: float, out: Any) -> None:
    """out[q] = gain per document up to the rank at which the gain reaches the goal, or the limit."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        total = 0.0
        last = limits[q]
        while i < stop and rank[i] <= limits[q]:
            total += gain[i]
            if total >= goal:
                last = rank[i]
                break
            i += 1
        out[q] = total / last if last > 0 else 0.0


@kernel
def rate_of_learner(rank: Any, gain: Any, starts: Any, limits: Any, goal: float, out: Any) -> None:
    """out[q] = expected gain per document with C(r) = ((r + T + T_r - 1) / (r + T + T_r))^2, T_r what is left of T after rank r."""
    for q in range(starts.shape[0] - 1):
        i, stop = starts[q], starts[q + 1]
        chance, total, looked, left = 1.0, 0.0, 0.0, goal
        for r in range(1, limits[q] + 1):
            if i < stop and rank[i] == r:
                total += chance * gain[i]
                left -= gain[i]
                i += 1
            looked += chance
            expected = r + goal + left
            chance *= ((expected - 1.0) / expected) ** 2
        out[q] = total / looked if looked > 0.0 else 0.0


def _as_label(name: str, value: Any) -> float:
    number = as_number(name, value)
    if number < 0:
        raise InputError(f"{name} must not be below 0, not {value!r}.")
    return number


@dataclass(frozen=True, kw_only=True)
class UserModel(Metric):
    """What these metrics share: scaled gains and the horizon.

    A label up to `min_label` gains nothing, one from `max_label` on gains 1.
    """

    source: ClassVar[str] = "Moffat, Bailey, Scholer and Thomas, TOIS 2017, as in cwl_eval"

    min_label: float | None = parameter(_as_label, 0)
    max_label: float | None = parameter(between(0), 4)
    horizon: int | None = parameter(as_whole, 1000)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.min_label, self.max_label
        if low is not None and high is not None and low >= high:
            raise InputError(f"min_label must be below max_label, not {low} and {high}.")

    @property
    def scaled(self) -> Scaled:
        """The gain of a label."""
        assert self.min_label is not None
        assert self.max_label is not None
        return Scaled(self.min_label, self.max_label)

    @property
    def _gain(self) -> str:
        return f"gain(r) = {describe_gain(self.scaled)}"

    @property
    def _rate(self) -> str:
        return f"sum over ranks r of W(r) gain(r), {self._gain}, W(r) proportional to C(1) ... C(r - 1)"

    def least_label(self) -> float:
        # The smallest label that gains anything.
        return float(np.nextafter(float(self.scaled.low), np.inf))

    def limits(self, view: View) -> np.ndarray:
        """The last rank that each query's reader can look at."""
        assert self.horizon is not None
        return np.full(view.n_queries, self.horizon) if self.k is None else np.minimum(view.cutoff(self.k), self.horizon)

    def placed(self, view: View) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ranks and gains of the documents that count, and where each query's begin; beyond depth= nothing gains."""
        ranks = view.ranks
        gains = view.judged.gains(ranks.label, self.scaled)
        return ranks.rank, gains if view.depth is None else np.where(ranks.rank <= view.depth, gains, 0.0), ranks.starts


@dataclass(frozen=True, kw_only=True)
class _Adaptive(UserModel):
    """A reader whose patience depends on what was found: no closed form for ties."""

    has_bounds: ClassVar[bool] = False

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")


@dataclass(frozen=True, kw_only=True)
class _Static(UserModel):
    """A reader whose patience depends on the rank alone: discounted gain over the sum of discounts."""

    def discount(self) -> np.ndarray:
        """C(1) ... C(r - 1) of ranks 1 ... horizon."""
        raise AssertionError(f"{type(self).__name__} has no discount")

    def requests(self) -> tuple[Request, ...]:
        table = DiscountTable(tuple(self.discount().tolist()))
        return (Request(self.k, gain=self.scaled, discount=table),)

    def values(self, view: View) -> np.ndarray:
        seen = np.cumsum(np.append(0.0, self.discount()))
        return view.columns(self.requests()[0]).dcg / seen[self.limits(view)]


@dataclass(frozen=True, kw_only=True)
class SDCG(_Static):
    """Scaled discounted cumulative gain: DCG over the DCG of a list of perfect documents only, however few there are."""

    family: ClassVar[str] = "SDCG"
    title: ClassVar[str] = "Scaled discounted cumulative gain"
    source: ClassVar[str] = "Moffat, Bailey, Scholer and Thomas, TOIS 2017, as in cwl_eval (NDCG-k)"
    example: ClassVar[str] = "labels 4,0,2, max_label = 4: SDCG@3 = (1 + 0.5/2) / (1 + 1/log2(3) + 1/2) = 0.5866"

    @property
    def formula(self) -> str:
        last = "horizon" if self.k is None else f"min(k, {self.horizon})"
        return f"sum over ranks r{up_to(self.k)} of gain(r) / log2(r + 1), divided by the sum of 1 / log2(r + 1) to {last}; {self._gain}"

    def discount(self) -> np.ndarray:
        assert self.horizon is not None
        return 1.0 / np.log2(np.arange(2.0, self.horizon + 2.0))


@dataclass(frozen=True, kw_only=True)
class INSQ(_Static):
    """INSQ: the reader goes on from rank r with probability ((r + 2T - 1) / (r + 2T))^2, T the gain that is hoped for."""

    family: ClassVar[str] = "INSQ"
    title: ClassVar[str] = "INSQ"
    source: ClassVar[str] = "Moffat, Scholer and Thomas, ADCS 2012, as in cwl_eval"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0, max_label = 1, T = 1, horizon 2: INSQ = 1 / (1 + (2/3)^2) = 0.6923"

    T: float | None = parameter(between(0), 1)

    @property
    def formula(self) -> str:
        return f"{self._rate}, C(r) = ((r + 2T - 1) / (r + 2T))^2, T = {self.T}, ranks to {self.horizon}"

    def discount(self) -> np.ndarray:
        assert self.T is not None
        assert self.horizon is not None
        return _squares(self.T, self.horizon)


def _squares(goal: float, horizon: int) -> np.ndarray:
    """Products of ((r + 2T - 1) / (r + 2T))^2 over the ranks before: they telescope."""
    return (2.0 * goal / (np.arange(horizon) + 2.0 * goal)) ** 2


@dataclass(frozen=True, kw_only=True)
class INST(_Adaptive):
    """INST: as INSQ, but a reader who has found some of the gain that was hoped for is less patient."""

    family: ClassVar[str] = "INST"
    title: ClassVar[str] = "INST"
    source: ClassVar[str] = "Moffat, Bailey, Scholer and Thomas, ADCS 2015, as in cwl_eval"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,0, max_label = 1, T = 1, horizon 2: INST = 1 / (1 + (1/2)^2) = 0.8"

    T: float | None = parameter(between(0), 1)

    @property
    def formula(self) -> str:
        patience = f"C(r) = ((r + T + T_r - 1) / (r + T + T_r))^2, T = {self.T}, T_r = T - gains up to r"
        return f"{self._rate}, {patience}, ranks to {self.horizon}"

    def values(self, view: View) -> np.ndarray:
        assert self.T is not None
        out = np.empty(view.n_queries)
        rate_of_learner(*self.placed(view), self.limits(view), float(self.T), out)
        return out


@dataclass(frozen=True, kw_only=True)
class BPM(_Adaptive):
    """Bejeweled player model: the reader stops when the gain has reached T or the cutoff is reached, and gets the mean gain up to there."""

    family: ClassVar[str] = "BPM"
    title: ClassVar[str] = "Bejeweled player model"
    source: ClassVar[str] = "Zhang, Liu, Li, Zhang, Xu and Ma, SIGIR 2017 (static), as in cwl_eval"
    example: ClassVar[str] = "labels 0,1,1, max_label = 1, T = 1: BPM@3 = 1/2"

    T: float | None = parameter(between(0), 1)

    @property
    def formula(self) -> str:
        last = self.horizon if self.k is None else f"min({show_cutoff(self.k)}, {self.horizon})"
        return f"mean gain of the documents up to the first rank where the gains reach T = {self.T}, or rank {last}; {self._gain}"

    def values(self, view: View) -> np.ndarray:
        assert self.T is not None
        out = np.empty(view.n_queries)
        rate_until_goal(*self.placed(view), self.limits(view), float(self.T), out)
        return out


@dataclass(frozen=True, kw_only=True)
class _NearlyERR(_Adaptive):
    """Not (but nearly) expected reciprocal rank: the better a document, the likelier the reader stops there."""

    source: ClassVar[str] = "Azzopardi, Mackenzie and Moffat, ICTIR 2021, as in cwl_eval"

    def go_on(self, rank: np.ndarray) -> np.ndarray:
        """How likely the reader goes on from a rank whose document gains nothing."""
        raise AssertionError(f"{type(self).__name__} has no patience")

    @property
    def _patience(self) -> str:
        raise AssertionError(f"{type(self).__name__} has no patience")

    @property
    def formula(self) -> str:
        last = f"ranks r{up_to(self.k)}" if self.k is not None else f"ranks to {self.horizon}"
        return f"{self._rate}, C(r) = {self._patience}, {last}"

    def values(self, view: View) -> np.ndarray:
        assert self.horizon is not None
        out = np.empty(view.n_queries)
        patience = self.go_on(np.arange(1.0, self.horizon + 1.0))
        rate_until_satisfied(*self.placed(view), self.limits(view), patience, out)
        return out


@dataclass(frozen=True, kw_only=True)
class NERR8(_NearlyERR):
    """NERR by equation 8: the reader goes on from a document with probability 1 - gain."""

    family: ClassVar[str] = "NERR8"
    title: ClassVar[str] = "Nearly expected reciprocal rank, equation 8"
    example: ClassVar[str] = "labels 1,1, max_label = 2: NERR8@2 = (0.5 + 0.5 * 0.5) / (1 + 0.5) = 0.5"

    @property
    def _patience(self) -> str:
        return "1 - gain(r)"

    def go_on(self, rank: np.ndarray) -> np.ndarray:
        return np.ones(len(rank))


@dataclass(frozen=True, kw_only=True)
class NERR9(_NearlyERR):
    """NERR by equation 9: the reader goes on from rank r with probability r / (r + 1) * (1 - gain)."""

    family: ClassVar[str] = "NERR9"
    title: ClassVar[str] = "Nearly expected reciprocal rank, equation 9"
    example: ClassVar[str] = "labels 1,2, max_label = 2: NERR9@2 = (0.5 + 0.25 * 1) / (1 + 0.25) = 0.6"

    @property
    def _patience(self) -> str:
        return "r / (r + 1) * (1 - gain(r))"

    def go_on(self, rank: np.ndarray) -> np.ndarray:
        return rank / (rank + 1.0)


@dataclass(frozen=True, kw_only=True)
class NERR10(_NearlyERR):
    """NERR by equation 10: the reader goes on with probability p * (1 - gain)."""

    family: ClassVar[str] = "NERR10"
    title: ClassVar[str] = "Nearly expected reciprocal rank, equation 10"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,2, max_label = 2, p = 0.9: NERR10 = (0.5 + 0.45 * 1) / (1 + 0.45) = 0.6552"

    p: float | None = parameter(between(0, 1), 0.9)

    @property
    def _patience(self) -> str:
        return f"{self.p} * (1 - gain(r))"

    def go_on(self, rank: np.ndarray) -> np.ndarray:
        return np.full(len(rank), self.p)


@dataclass(frozen=True, kw_only=True)
class NERR11(_NearlyERR):
    """NERR by equation 11: the reader goes on from rank r with probability ((r + 2T - 1) / (r + 2T))^2 * (1 - gain)."""

    family: ClassVar[str] = "NERR11"
    title: ClassVar[str] = "Nearly expected reciprocal rank, equation 11"
    whole_list_only: ClassVar[bool] = True
    example: ClassVar[str] = "labels 1,2, max_label = 2, T = 1: NERR11 = (0.5 + 2/9 * 1) / (1 + 2/9) = 0.5909"

    T: float | None = parameter(between(0), 1)

    @property
    def _patience(self) -> str:
        return f"((r + 2T - 1) / (r + 2T))^2 * (1 - gain(r)), T = {self.T}"

    def go_on(self, rank: np.ndarray) -> np.ndarray:
        assert self.T is not None
        return ((rank + 2.0 * self.T - 1.0) / (rank + 2.0 * self.T)) ** 2

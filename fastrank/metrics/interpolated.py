"""Interpolated precision: the precision-recall curve at fixed levels of recall, and its average.

IPrec@x is the greatest precision at any rank where recall has reached x. How many relevant documents that takes, of P, is a matter of
rounding: "nearest" takes x P to the nearest whole number (trec_eval 10), "trec_eval9" takes the whole part of x P + 0.9 and "up" the
next whole number, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError
from fastrank.metrics.base import Request, as_share, parameter, show_rel, word
from fastrank.metrics.binary import RecallLike

if TYPE_CHECKING:
    from fastrank.metrics.view import View

_NEEDED = {"nearest": "x P rounded to the nearest", "up": "x P rounded up", "trec_eval9": "the whole part of x P + 0.9"}


@kernel
def interpolate_precision(rank: Any, label: Any, starts: Any, rel: float, cutoffs: Any, needed: Any, out: Any) -> None:
    """out[c, q] = greatest precision at or after the relevant document number needed[c, q]; 0 when so many were not retrieved."""
    for q in range(starts.shape[0] - 1):
        stop = starts[q]
        met = 0
        while stop < starts[q + 1] and rank[stop] <= cutoffs[0, 0]:
            met += label[stop] >= rel
            stop += 1
        out[:, q] = 0.0
        best = 0.0
        for i in range(stop - 1, starts[q] - 1, -1):
            if label[i] >= rel:
                best = max(best, met / rank[i])
                for c in range(out.shape[0]):
                    if needed[c, q] == met:
                        out[c, q] = best
                met -= 1
        for c in range(out.shape[0]):
            if needed[c, q] == 0:
                out[c, q] = best


@dataclass(frozen=True, kw_only=True)
class _Interpolated(RecallLike):
    source: ClassVar[str] = "trec_eval (Buckley and Voorhees); Salton and McGill, Introduction to Modern Information Retrieval, 1983"
    whole_list_only: ClassVar[bool] = True

    rounding: str | None = parameter(word(*_NEEDED), "nearest")

    def tie_rules(self) -> tuple[str, ...]:
        return tuple(rule for rule in super().tie_rules() if rule != "average")

    def requests(self) -> tuple[Request, ...]:
        return ()

    @property
    def _levels(self) -> tuple[float, ...]:
        raise AssertionError(f"{type(self).__name__} has no levels of recall")

    def curve(self, view: View) -> np.ndarray:
        """Interpolated precision at each level of recall, float64[n_levels, n_queries]."""
        ranks, n_relevant = view.ranks, view.n_relevant(self.least)
        needed = np.array([_round(level, n_relevant, self.rounding) for level in self._levels], np.int64)
        out = np.empty((len(self._levels), view.n_queries))
        interpolate_precision(ranks.rank, ranks.label, ranks.starts, self.least, view.limits((None,))[0], needed, out)
        return out

    @property
    def _curve(self) -> str:
        relevant = f"documents with {show_rel(self.rel)}"
        assert self.rounding is not None
        return f"max over ranks r with hits(r) >= {_NEEDED[self.rounding]} of hits(r) / r, hits and P {relevant}"


def _round(level: float, n_relevant: np.ndarray, rounding: str | None) -> np.ndarray:
    """How many relevant documents a level of recall takes."""
    if rounding == "up":
        share = Fraction(str(level))
        return -(-n_relevant * share.numerator // share.denominator)
    wanted = level * n_relevant
    if rounding == "trec_eval9":
        return np.trunc(wanted + 0.9)
    # Halves go up, as in C: adding 0.5 first would take 0.49999999999999994 to 1.
    whole = np.trunc(wanted)
    return whole + (wanted - whole >= 0.5)


@dataclass(frozen=True, kw_only=True)
class IPrec(_Interpolated):
    """Interpolated precision at a level of recall: `IPrec@0.1`."""

    family: ClassVar[str] = "IPrec"
    title: ClassVar[str] = "Interpolated precision at a recall"
    at: ClassVar[str] = "recall"
    example: ClassVar[str] = "labels 1,0,1: IPrec@0.5 = 1, IPrec@1 = 2/3 = 0.6667"

    recall: float | None = parameter(as_share, 0)

    @property
    def formula(self) -> str:
        return f"{self._curve}, x = {self.recall}"

    @property
    def _levels(self) -> tuple[float, ...]:
        assert self.recall is not None
        return (self.recall,)

    def values(self, view: View) -> np.ndarray:
        return self.curve(view)[0]


def _as_shares(name: str, value: Any) -> tuple[float, ...]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise InputError(f"{name} must be numbers from 0 to 1, such as (0.2, 0.5, 0.8), not {value!r}.")
    shares = tuple(as_share(name, share) for share in value)
    if not shares:
        raise InputError(f"{name} must hold at least one number from 0 to 1.")
    return shares


@dataclass(frozen=True, kw_only=True)
class AvgIPrec(_Interpolated):
    """Interpolated precision averaged over levels of recall: over 0, 0.1, ..., 1 it is the 11-point average precision."""

    family: ClassVar[str] = "AvgIPrec"
    title: ClassVar[str] = "Average interpolated precision"
    aliases: ClassVar[tuple[str, ...]] = ("11pt_avg", "11-pt_avg")
    example: ClassVar[str] = "labels 1,0,1: AvgIPrec(recalls=(0.2, 0.5, 0.8)) = (1 + 1 + 2/3) / 3 = 0.8889"

    recalls: tuple[float, ...] | None = parameter(_as_shares, (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1))

    @property
    def formula(self) -> str:
        return f"mean over x in {', '.join(map(str, self._levels))} of {self._curve}"

    @property
    def _levels(self) -> tuple[float, ...]:
        assert self.recalls is not None
        return self.recalls

    def values(self, view: View) -> np.ndarray:
        curve = self.curve(view)
        # Level after level, so that a query's bits do not depend on the others of its block.
        return np.asarray(sum(curve) / len(curve))

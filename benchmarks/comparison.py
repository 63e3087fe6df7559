"""What is compared: a call of ours, another one or a limit, the check that both compute the same, and the mark to reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["faster", "share", "seconds", "excess", "bytes"]
Status = Literal["measured", "not available", "unequal"]


@dataclass(frozen=True)
class Call:
    """Something to be measured. `reports`: it runs elsewhere, and `run` returns its figure (seconds or bytes) instead of taking it."""

    name: str
    run: Callable[[], Any]
    threads: int | None = None
    reports: bool = False


@dataclass(frozen=True)
class Mark:
    """What a comparison is to reach, and, where there is one, the better figure to aim at; without either it only tells.

    - faster: how many times as fast as the other call, at least;
    - share: our time as a share of the other's, at most;
    - seconds: our time, at most;
    - excess: seconds by which our time exceeds the other's, at most;
    - bytes: our figure, at most.
    """

    kind: Kind = "faster"
    must: float | None = None
    aim: float | None = None

    def reached(self, ours: float, other: float | None) -> float:
        """The figure to be held to the mark."""
        if self.kind in ("seconds", "bytes"):
            return ours
        assert other is not None
        return {"faster": other / ours, "share": ours / other, "excess": ours - other}[self.kind]

    def verdict(self, reached: float) -> str | None:
        """How far a figure comes: "aim", "must" or "missed"; None without a mark."""
        if self.must is None:
            return None
        for name, bound in (("aim", self.aim), ("must", self.must)):
            if bound is not None and (reached >= bound if self.kind == "faster" else reached <= bound):
                return name
        return "missed"


@dataclass(frozen=True)
class Comparison:
    """One line of a row.

    `difference` says how far the two results, or ours and a known value, lie apart; only where that is within `tolerance` is
    anything timed. `absent`: why the other side cannot be asked. `once`: so slow that one run must do.
    """

    shape: str
    n_documents: int
    n_queries: int
    ours: Call
    other: Call | None
    mark: Mark = Mark()
    difference: Callable[[], float] = lambda: 0.0
    tolerance: float = 1e-9
    absent: str | None = None
    once: bool = False


@dataclass(frozen=True)
class Result:
    """What a comparison came to. Figures are medians over `rounds`, in seconds, or in bytes where the kind of the mark says so."""

    shape: str
    n_documents: int
    n_queries: int
    ours: str
    ours_threads: int | None
    other: str | None
    other_threads: int | None
    status: Status
    kind: Kind
    must: float | None
    aim: float | None
    note: str = ""
    rounds: int = 0
    ours_figure: float | None = None
    other_figure: float | None = None
    reached: float | None = None
    verdict: str | None = None

    @classmethod
    def of(cls, comparison: Comparison, status: Status, note: str = "", **figures: Any) -> Result:
        """The outcome of a comparison."""
        ours, other, mark = comparison.ours, comparison.other, comparison.mark
        return cls(
            shape=comparison.shape,
            n_documents=comparison.n_documents,
            n_queries=comparison.n_queries,
            ours=ours.name,
            ours_threads=ours.threads,
            other=None if other is None else other.name,
            other_threads=None if other is None else other.threads,
            status=status,
            kind=mark.kind,
            must=mark.must,
            aim=mark.aim,
            note=note,
            **figures,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Result:
        """What `to_dict` gave."""
        return cls(**plain)

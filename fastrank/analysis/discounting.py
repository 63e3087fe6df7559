"""Discounts by name, rule, table or function, and on which side of the critical point r^-1 they are."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank.analysis.outcome import Finding
from fastrank.errors import InputError
from fastrank.gains import DISCOUNTS, DiscountTable, as_discount, discounts

FEASIBLE, CRITICAL, TOO_FAST, CONSTANT = "feasible", "critical", "too fast", "constant"
# Ranks that a check reads.
RANKS = 1_000_000
# Exponents closer than this are told apart by no table of a million ranks.
_NEAR = 0.02
# A local exponent beyond this leaves no doubt that the sum is finite.
_STEEP = 1.5

_MEANING = {
    FEASIBLE: "NDCG tends to a limit of each ranker, and from some number of documents on two different rankers keep one order.",
    CRITICAL: "NDCG tends to the relevance of the very top alone: rankers are told apart only where their tops differ.",
    TOO_FAST: "NDCG has no limit: the first few documents decide for ever, and a random ranker can look like a trained one.",
    CONSTANT: "NDCG of the whole list is 1 for every ranker: only a cutoff tells rankers apart.",
}
_SLOW = "NDCG tends to 1 for every ranker, slowly, and yet from some number of documents on two different rankers keep one order."


@dataclass(frozen=True, repr=False)
class DiscountCheck(Finding):
    """What a discount can do.

    Attributes
    ----------
    discount
        Its name, or "table" or "function".
    side
        "feasible", "critical", "too fast" or "constant".
    exponent, log_exponent
        The discount falls as r^-exponent x (log r)^-log_exponent; infinite for what falls faster than every power.
    finite_sum
        Whether the discounts of all ranks have a finite sum.
    first_half
        The rank down to which half of the sum lies, of `ranks` ranks.
    ranks
        How many ranks were read.
    meaning
        The consequence in a sentence.
    """

    discount: str
    side: str
    exponent: float
    log_exponent: float
    finite_sum: bool
    first_half: int
    ranks: int
    meaning: str

    def columns(self) -> dict[str, Any]:
        """One row."""
        return {name: [value] for name, value in self.to_dict().items()}


def discount_table(discount: Any, n: int) -> np.ndarray:
    """Discounts of ranks 1 ... n, float64[n].

    Parameters
    ----------
    discount
        "log2", "ln", "zipf" (1/r), "power:B" (r^-B), "geometric:P" (P^(r-1)), "jarvelin:B", "step:K" (1 down to rank K, then 0); numbers
        of ranks 1, 2, ... (0 beyond their end); or a function of an array of ranks.
    n
        How many ranks.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> fr.analysis.discount_table("step:2", 4).tolist()
    [1.0, 1.0, 0.0, 0.0]
    >>> table = fr.analysis.discount_table(lambda r: r**-0.25, 1000)
    >>> round(float(fr.ndcg([0, 1, 1], discount=table)[0]), 4)
    0.8695
    """
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n must be a whole number from 1 up, not {n!r}.")
    n = int(n)
    if callable(discount):
        return _from_function(discount, n)
    if isinstance(discount, str) and discount.partition(":")[0] not in {known.partition(":")[0] for known in DISCOUNTS}:
        raise InputError(f"discount {discount!r} is not known. Use {', '.join(DISCOUNTS)}, an array over ranks 1, 2, ... or a function.")
    return discounts(as_discount(discount), n)[:n].copy()


def _from_function(discount: Callable[[np.ndarray], Any], n: int) -> np.ndarray:
    found = np.asarray(discount(np.arange(1, n + 1, dtype=np.float64)), dtype=np.float64)
    if found.shape not in ((n,), ()):
        raise InputError(
            f"the discount function must return one number a rank, {n}, not shape {found.shape}. It is given an array of ranks."
        )
    table = np.broadcast_to(found, (n,)).copy()
    wrong = np.flatnonzero(~np.isfinite(table))
    if len(wrong):
        raise InputError(f"the discount function must be finite: at rank {wrong[0] + 1} it is {table[wrong[0]]}.")
    return table


def check_discount(discount: Any, *, ranks: int = RANKS) -> DiscountCheck:
    """On which side of the critical point r^-1 a discount is, and what follows for NDCG.

    Feasible: it falls more slowly than r^-1. Critical: as r^-1, or faster by so little that the sum stays infinite. Too fast: the
    sum of all discounts is finite. For a table or a function this is read off its first `ranks` ranks: log D is fitted by log r and log
    log r; a table that ends is 0 from there on.

    Parameters
    ----------
    discount
        As `discount_table`.
    ranks
        How many ranks to read, from 1,000 up.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Wang, Wang, Li, He, Chen and Liu, COLT 2013, theorems 1 to 6.

    Examples
    --------
    >>> import fastrank as fr
    >>> [fr.analysis.check_discount(name).side for name in ("log2", "power:0.5", "zipf", "geometric:0.5", "step:10")]
    ['feasible', 'feasible', 'critical', 'too fast', 'too fast']
    >>> found = fr.analysis.check_discount(lambda r: r**-0.5 / np.log(r + 1))
    >>> found.side, round(found.exponent, 2), round(found.log_exponent, 1)
    ('feasible', 0.5, 1.0)
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int | np.integer) or ranks < 1000:
        raise InputError(f"ranks must be a whole number from 1,000 up, not {ranks!r}.")
    table = discount_table(discount, int(ranks))
    if table[0] <= 0 or table.min() < 0:
        raise InputError(
            f"discounts must not be negative, and that of rank 1 must be above 0: rank {int(np.argmin(table)) + 1} has {table.min():g}."
        )
    rising = np.flatnonzero(np.diff(table) > 1e-12 * table[:-1])
    if len(rising):
        raise InputError(
            f"discounts must not rise down the list: that of rank {rising[0] + 2} is larger than that of rank {rising[0] + 1}."
        )
    exponent, log_exponent = decay(discount) if isinstance(discount, str) else _fitted(table)
    side = _side(exponent, log_exponent, 0.0 if isinstance(discount, str) else _NEAR)
    sums = np.cumsum(table)
    name = discount if isinstance(discount, str) else "function" if callable(discount) else "table"
    meaning = _SLOW if side == FEASIBLE and exponent < _NEAR else _MEANING[side]
    half = int(np.searchsorted(sums, sums[-1] / 2)) + 1
    return DiscountCheck(name, side, exponent, log_exponent, side == TOO_FAST, half, int(ranks), meaning)


def _side(exponent: float, log_exponent: float, near: float) -> str:
    """The side of exponents known to within `near`: 0 of a discount by name, where they are exact."""
    if abs(exponent) < near and abs(log_exponent) < 10 * near:
        return CONSTANT
    if exponent < 1 - near:
        return FEASIBLE
    # The sum of 1 / (r (log r)^c) is finite for c above 1.
    return TOO_FAST if exponent > 1 + near or log_exponent > 1 + 10 * near else CRITICAL


@functools.cache
def decay(discount: str) -> tuple[float, float]:
    """The exponents of r and of log r with which a named discount falls."""
    kind, _, number = discount.partition(":")
    if kind == "power":
        return float(number), 0.0
    return {"zipf": (1.0, 0.0), "geometric": (math.inf, 0.0), "step": (math.inf, 0.0)}.get(kind, (0.0, 1.0))


def decay_of(discount: Any) -> tuple[str, float]:
    """The side of a discount and its exponent, 0 where it falls more slowly than every power."""
    if isinstance(discount, str):
        discount_table(discount, 1)  # says so where the name is not known
        exponent, log_exponent = decay(discount)
        return _side(exponent, log_exponent, 0.0), exponent
    found = check_discount(discount.values if isinstance(discount, DiscountTable) else discount)
    return found.side, 0.0 if abs(found.exponent) < _NEAR else found.exponent


def _fitted(table: np.ndarray) -> tuple[float, float]:
    """log D fitted by log r and log log r, over ranks spread evenly in log r; infinite where D falls like no power."""
    if table[-1] == 0:
        return math.inf, 0.0
    n = len(table)
    last, tenth = math.log(table[-1]), math.log(table[n // 10 - 1])
    if (tenth - last) / math.log(10) > _STEEP:
        steeper = (math.log(table[n // 100 - 1]) - tenth) / math.log(10)
        local = (tenth - last) / math.log(10)
        return (math.inf if local > 2 * steeper else local), 0.0
    rank = np.unique(np.geomspace(max(20.0, n**0.4), n, 400).astype(np.int64))
    x = np.log(rank)
    design = np.column_stack([np.ones(len(rank)), x, np.log(x)])
    _, power, log_power = np.linalg.lstsq(design, np.log(table[rank - 1]), rcond=None)[0]
    return float(-power), float(-log_power)

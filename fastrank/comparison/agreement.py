"""Whether metrics agree on the order of systems, and which of them can tell systems apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrank.errors import InputError


def kendall_tau(one: Any, other: Any) -> float:
    """Kendall's tau-b of two lists of scores of the same items: 1 the same order, -1 the reverse, 0 no relation.

    tau = (C - D) / sqrt((n0 - ties in one) (n0 - ties in other)): C pairs in the same order, D in the reverse, n0 all. NaN where a list
    has no two different scores.

    Source: Kendall, Biometrika 1945. Errors: `InputError` for lists of unequal length and for scores that are not finite.

    >>> kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]) == (5 - 1) / 6
    True
    """
    x, y = _scores(one, other)
    above = np.triu_indices(len(x), 1)
    signs, others = (np.sign(np.subtract.outer(each, each)[above]) for each in (x, y))
    pairs = math.sqrt(np.count_nonzero(signs) * np.count_nonzero(others))
    return float((signs * others).sum() / pairs) if pairs else math.nan


def tau_ap(one: Any, other: Any) -> float:
    """The correlation of two orders that counts disagreement at the top most: 1 the same order, -1 the reverse.

    With the items ranked by `one`, 2 / (n - 1) · Σ over ranks i = 2 … n of C(i) / (i - 1), minus 1, where C(i) counts the items above
    rank i that `other`, too, has above the item at i; a pair tied in `other` counts one half, and items tied in `one` share the mean over
    their orders. NaN where a list has no two different scores. Not symmetric: `other` is the true order.
    Source: Yilmaz, Aslam and Robertson, SIGIR 2008; ties: Urbano and Marrero, ICTIR 2017. Errors: as `kendall_tau`.

    >>> tau_ap([4, 3, 2, 1], [4, 3, 1, 2]) == 2 / 3 * (1 + 1 + 2 / 3) - 1
    True
    """
    x, y = _scores(one, other)
    n = len(x)
    if n < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    # agrees[i, j]: how far `other`, too, has j above i.
    agrees = 0.5 * (np.sign(np.subtract.outer(-y, -y)) + 1)
    total = 0.0
    for item in range(n):
        higher, tied = x > x[item], (x == x[item]) & (np.arange(n) != item)
        before, mates = int(higher.sum()), int(tied.sum())
        sure, by_chance = float(agrees[item, higher].sum()), float(agrees[item, tied].sum())
        # At each place of its block the item has a share of its mates above it.
        for place in range(mates + 1):
            above = before + place
            if above:
                total += (sure + (by_chance * place / mates if mates else 0.0)) / above / (mates + 1)
    return 2 * total / (n - 1) - 1


def _scores(one: Any, other: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = (np.asarray(each, dtype=np.float64) for each in (one, other))
    if x.ndim != 1 or x.shape != y.shape:
        raise InputError(f"the two lists of scores must be of one length, one score an item, not of shapes {x.shape} and {y.shape}.")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("scores to be ordered must be finite.")
    return x, y

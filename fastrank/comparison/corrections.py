"""Corrections of p-values for having looked more than once."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.convention import one_of

CORRECTIONS = ("holm", "bh", "bonferroni", "none")

# How each is written in a sentence, and where it comes from.
TITLES = {
    "holm": "Holm's correction",
    "bh": "Benjamini and Hochberg's correction",
    "bonferroni": "Bonferroni's correction",
    "none": "no correction",
}
SOURCES = {
    "holm": "Holm, Scandinavian Journal of Statistics 1979: no false finding among all, at the level of the test",
    "bh": "Benjamini and Hochberg, JRSS B 1995: a bounded share of false findings among those reported",
    "bonferroni": "Dunn, JASA 1961: p times the number of comparisons",
    "none": "each comparison stands by itself",
}


def corrected(p_values: Any, method: str = "holm") -> np.ndarray:
    """Corrected p-values, float64, in the order given; each may be held against the level of the whole family.

    "bonferroni": m p. "holm": the running maximum, from the smallest up, of (m - i + 1) p_(i). "bh": the running minimum, from the largest
    down, of m p_(i) / i. All capped at 1; p_(i) is the i-th smallest of the m.

    >>> corrected([0.01, 0.04, 0.03], "holm").tolist()
    [0.03, 0.06, 0.06]
    """
    one_of("correction", method, CORRECTIONS)
    p = np.asarray(p_values, dtype=np.float64)
    m = len(p)
    if method == "none" or not m:
        return p.copy()
    if method == "bonferroni":
        return np.minimum(p * m, 1.0)
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, m + 1)
    if method == "holm":
        steps = np.maximum.accumulate(p[order] * (m - ranks + 1))
    else:
        steps = np.minimum.accumulate((p[order] * (m / ranks))[::-1])[::-1]
    out = np.empty(m)
    out[order] = np.minimum(steps, 1.0)
    return out

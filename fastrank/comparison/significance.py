"""The tests by name, and the families over which their p-values are corrected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank.comparison.corrections import corrected
from fastrank.comparison.many import anova_tukey, randomised_tukey
from fastrank.comparison.paired import Chance, bootstrap, pairs_of, permutation, student, wilcoxon
from fastrank.comparison.units import alike, part, units_of

if TYPE_CHECKING:
    from fastrank.comparison.units import Units

Test = Callable[["Units", list[tuple[int, int]], Chance], np.ndarray]


@dataclass(frozen=True)
class Method:
    """A test: what a sentence calls it, and where it comes from.

    `over_pairs`: its p-values are corrected over the pairs already; `sampled`: they are shares of a number of resamples.
    """

    title: str
    source: str
    run: Test
    over_pairs: bool = False
    sampled: bool = False


def _paired(test: Callable[..., np.ndarray]) -> Test:
    return lambda units, pairs, chance: test(pairs_of(units, pairs), chance)


TESTS = {
    "permutation": Method(
        "a permutation test",
        "sign flips of the differences: Fisher 1935; Smucker, Allan and Carterette, CIKM 2007; never 0: Phipson and Smyth, SAGMB 2010",
        _paired(permutation),
        sampled=True,
    ),
    "t": Method("a paired t test", "Student, Biometrika 1908", _paired(student)),
    "wilcoxon": Method("Wilcoxon's signed-rank test", "Wilcoxon, Biometrics Bulletin 1945", _paired(wilcoxon)),
    "bootstrap": Method(
        "a studentised bootstrap test",
        "Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 16.4; Sakai, SIGIR 2006",
        _paired(bootstrap),
        sampled=True,
    ),
    "tukey": Method("a randomised Tukey HSD test", "Carterette, TOIS 2012", randomised_tukey, over_pairs=True, sampled=True),
    "anova": Method(
        "two-way analysis of variance with Tukey's HSD",
        "Sakai, Laboratory Experiments in Information Retrieval, 2018, chapters 3 and 4",
        anova_tukey,
        over_pairs=True,
    ),
}


def p_values(
    test: str,
    values: np.ndarray,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    pairs: list[tuple[int, int]],
    chance: Chance,
) -> np.ndarray:
    """p of each pair and metric, float64[n_metrics, n_pairs], for values, float64[n_systems, n_metrics, n_queries].

    A query without a value in one of the systems is left out of that metric. Without any query p is 1.
    """
    out = np.ones((values.shape[1], len(pairs)))
    for columns, mask in alike([~np.isnan(values[:, m]).any(axis=0) for m in range(values.shape[1])]):
        if mask.any():
            for m in columns:
                out[m] = TESTS[test].run(units_of(values[:, m][:, mask], part(weights, mask), part(clusters, mask)), pairs, chance)
    return out


def corrected_over(p: np.ndarray, test: str, correction: str) -> np.ndarray:
    """p-values, float64[n_metrics, n_pairs], corrected over all of them.

    A test that is corrected over the pairs already leaves the metrics, and Bonferroni's bound holds for whatever they share.
    """
    if TESTS[test].over_pairs:
        return p if correction == "none" else np.minimum(p * len(p), 1.0)
    return corrected(p.ravel(), correction).reshape(p.shape)


def n_corrected(shape: tuple[int, ...], test: str, correction: str) -> int:
    """How many comparisons a correction runs over; 1 where there is none."""
    n_metrics, n_pairs = shape
    return 1 if correction == "none" else n_metrics * (1 if TESTS[test].over_pairs else n_pairs)

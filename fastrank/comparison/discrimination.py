"""Discriminative power: of all pairs of systems, the share that a metric tells apart, and from how many queries on."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from fastrank.comparison.alignment import align
from fastrank.comparison.corrections import CORRECTIONS
from fastrank.comparison.findings import Discrimination
from fastrank.comparison.intervals import check_confidence
from fastrank.comparison.paired import Chance, pairs_of, standard_errors
from fastrank.comparison.planning import MOST_QUERIES, powers
from fastrank.comparison.resampling import check_resamples, root_of
from fastrank.comparison.significance import TESTS, corrected_over, n_corrected, p_values
from fastrank.comparison.units import alike, cluster_codes, part, units_of
from fastrank.convention import one_of
from fastrank.evaluation import Evaluation

HALF, MOST = 0.5, 0.9


def discriminative_power(
    systems: Mapping[str, Evaluation],
    *,
    test: str = "permutation",
    correction: str = "holm",
    confidence: float = 0.95,
    cluster: str | None = None,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    threads: int | None = None,
) -> tuple[Discrimination, ...]:
    """For each metric the share of all pairs of systems that it tells apart, and from how many queries on.

    Evaluate the systems by every metric, cutoff and discount in question, and see which of them serves. The correction runs over the pairs
    of one metric, so that metrics are judged alike.

    Parameters
    ----------
    systems
        Evaluations by name, on the same queries by the same metrics.
    test, correction, confidence, cluster, n_resamples, seed, threads
        As `compare`.

    Returns
    -------
    tuple of Discrimination
        One a metric: n_apart of n_pairs, their share, queries_half, queries_most, curve.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Sakai, SIGIR 2006 (discriminative power); Carterette, TOIS 2012 (many systems).

    Examples
    --------
    >>> import fastrank as fr
    >>> labels = [[3, 2, 0, 1], [1, 0, 0, 2], [0, 2, 1, 0], [1, 1, 0, 3]] * 8
    >>> scores = {"a": [[4, 3, 2, 1]] * 32, "b": [[4, 3, 1, 2]] * 32, "c": [[2, 4, 1, 3]] * 32}
    >>> systems = {name: fr.evaluate(labels, s, metrics=["nDCG", "P@1"]) for name, s in scores.items()}
    >>> [(found.metric, found.n_apart, found.n_pairs) for found in fr.discriminative_power(systems)]
    [('nDCG', 1, 3), ('P@1', 0, 3)]
    """
    one_of("test", test, tuple(TESTS))
    one_of("correction", correction, CORRECTIONS)
    aligned = align(systems)
    chance = Chance(root_of(seed), check_resamples(n_resamples), threads)
    codes = cluster_codes(aligned.by, cluster)
    return discriminations(
        aligned.metric_names, aligned.values, aligned.weights, codes, test, correction, check_confidence(confidence), chance
    )


def discriminations(
    names: tuple[str, ...],
    values: np.ndarray,
    weights: np.ndarray | None,
    codes: np.ndarray | None,
    test: str,
    correction: str,
    confidence: float,
    chance: Chance,
) -> tuple[Discrimination, ...]:
    """The same for values, float64[n_systems, n_metrics, n_queries]."""
    pairs = list(combinations(range(len(values)), 2))
    p = p_values(test, values, weights, codes, pairs, chance)
    level = (1 - confidence) / n_corrected((1, len(pairs)), "permutation", correction)
    found = {}
    for columns, mask in alike([~np.isnan(values[:, m]).any(axis=0) for m in range(values.shape[1])]):
        for m in columns:
            n_apart = int(np.count_nonzero(corrected_over(p[m : m + 1], test, correction) <= 1 - confidence))
            if mask.any():
                units = units_of(values[:, m][:, mask], part(weights, mask), part(codes, mask))
                differences = pairs_of(units, pairs)
                d = differences.rows.sum(axis=1) / units.size.sum()
                found[m] = _discrimination(names[m], n_apart, d, standard_errors(differences), units.n_queries, level)
            else:
                found[m] = Discrimination(names[m], len(pairs), 0, None, None, ())
    return tuple(found[m] for m in range(len(names)))


def _discrimination(name: str, n_apart: int, differences: np.ndarray, errors: np.ndarray, n: int, level: float) -> Discrimination:
    # In standard deviations of the differences over queries: without spread any difference shows on two queries.
    with np.errstate(divide="ignore", invalid="ignore"):
        effects = np.where(differences == 0, 0.0, np.abs(differences) / (errors * np.sqrt(n)))

    def share(queries: int) -> float:
        return float(powers(queries, effects, 1 - level).mean())

    half, most = (_from(share, part) for part in (HALF, MOST))
    last = max(10 * n, min(half or 0, 1000 * n))
    sizes = sorted({max(2, round(2 * (last / 2) ** (i / 40))) for i in range(41)} | {max(2, n)})
    return Discrimination(name, len(effects), n_apart, half, most, tuple((size, share(size)) for size in sizes))


def _from(share: object, part: float) -> int | None:
    """The fewest queries from which on the expected share is `part`."""
    assert callable(share)
    low, high = 1, 2
    while share(high) < part:
        low, high = high, 2 * high
        if high > MOST_QUERIES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if share(middle) >= part else (middle, high)
    return high

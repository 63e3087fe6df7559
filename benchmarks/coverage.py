"""What intervals and tests achieve, simulated: ``python -m benchmarks.coverage`` writes ``docs/coverage.md``.

Populations are known, so it is known what an interval should cover and whether a test should find anything. The suite runs short forms of
the same (tests/test_comparison_*.py); this is the long one, of 2,000 repetitions, which takes about a quarter of an hour of one processor.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import stats

import fastrank as fr
from fastrank.comparison.intervals import METHODS, Quantity, intervals, make_plan
from fastrank.comparison.many import randomised_tukey
from fastrank.comparison.paired import Chance
from fastrank.comparison.significance import TESTS, corrected_over, p_values
from fastrank.comparison.units import units_of

OUT = Path(__file__).parent.parent / "docs" / "coverage.md"
Draw = Callable[[np.random.Generator, int], np.ndarray]


@dataclass(frozen=True)
class Population:
    """Where values of queries come from, and their mean."""

    title: str
    draw: Draw
    mean: float


def _zeros(share: float) -> Draw:
    return lambda rng, n: np.where(rng.random(n) < share, 0.0, rng.beta(2, 2, n))


def _reciprocal_ranks(rng: np.random.Generator, n: int) -> np.ndarray:
    """Ranks of the first relevant document, geometric; beyond 10 it is not found."""
    ranks = rng.geometric(0.35, n)
    return np.where(ranks <= 10, 1.0 / ranks, 0.0)


_RR = float(sum(0.35 * 0.65 ** (rank - 1) / rank for rank in range(1, 11)))

POPULATIONS = (
    Population("normal (a difference of two systems)", lambda rng, n: rng.normal(0.02, 0.2, n), 0.02),
    Population("skewed: beta(0.5, 2)", lambda rng, n: rng.beta(0.5, 2, n), 0.2),
    Population("reciprocal ranks", _reciprocal_ranks, _RR),
    Population("skewed without a bound: exponential", lambda rng, n: rng.exponential(0.1, n), 0.1),
    Population("many zeros: 75%, else beta(2, 2)", _zeros(0.75), 0.125),
    Population("many zeros: 90%, else beta(2, 2)", _zeros(0.9), 0.05),
)
SIZES = (30, 100, 500, 5000)


# --- intervals ------------------------------------------------------------------------------------------------------------------


def coverage(task: tuple[int, int, int]) -> list[list[str]]:
    """The rows of the table of means for one number of queries: the share of intervals that cover the mean, a column a method.

    A repetition draws all populations anew, and one bootstrap serves them all, as it serves the metrics of one evaluation.
    """
    n, repetitions, n_resamples = task
    rng = np.random.default_rng([1, n])
    quantities = [Quantity("mean", i) for i in range(len(POPULATIONS))]
    covered = np.zeros((len(POPULATIONS), len(METHODS)))
    nonzero = np.zeros(len(POPULATIONS))
    for repetition in range(repetitions):
        values = np.array([population.draw(rng, n) for population in POPULATIONS])
        nonzero += np.count_nonzero(values, axis=1)
        units = units_of(values, None, None)
        for j, method in enumerate(METHODS):
            found = intervals(units, quantities, make_plan(method, 0.95, n_resamples, repetition, 1))
            covered[:, j] += [each.low <= of.mean <= each.high for each, of in zip(found, POPULATIONS, strict=True)]
    rows = []
    for population, hits, filled in zip(POPULATIONS, covered / repetitions, nonzero / repetitions, strict=True):
        promised = filled >= 20 and n >= 100
        rows.append([population.title, f"{n:,}", f"{filled:,.0f}", *(_share(share, mark=promised) for share in hits)])
    return rows


def _share(share: float, *, mark: bool) -> str:
    return f"{100 * share:.1f}%" + (" (!)" if mark and not 0.93 <= share <= 0.97 else "")


def _paired(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two systems on the same queries: correlated, the second better by 0.02."""
    hard = rng.beta(1, 2, n)
    return np.stack([hard + rng.normal(0, 0.05, n), hard + 0.02 + rng.normal(0, 0.1, n)])


def combined(task: tuple[str, int, int, int]) -> list[str]:
    """A row of the table of differences, ratios, weights and clusters."""
    kind, n, repetitions, n_resamples = task
    rng = np.random.default_rng([2, len(kind), n])
    covered = dict.fromkeys(METHODS, 0)
    truth = {"difference": 0.02, "ratio": (1 / 3 + 0.02) / (1 / 3), "weighted mean": 0.0, "clustered mean": 0.2}[kind]
    for repetition in range(repetitions):
        weights = clusters = None
        quantity = Quantity(kind, 1, 0) if kind in ("difference", "ratio") else Quantity("mean", 0)
        if quantity.kind != "mean":
            values = _paired(rng, n)
        elif kind == "weighted mean":
            # The weight goes with the value, as frequent queries are easier: the mean is that of the weighted population.
            weights = rng.lognormal(0, 0.7, n)
            values = np.log(weights)[None] / 0.7 * 0.2 - 0.14 + rng.normal(0, 0.3, n)
        else:
            # Users with one to nine queries, which have the user's level in common.
            sizes = rng.integers(1, 10, n)
            clusters = np.repeat(np.arange(n), sizes)
            values = (np.repeat(rng.beta(1, 4, n), sizes) + rng.normal(0, 0.1, sizes.sum()))[None]
        units = units_of(values, weights, clusters)
        for method in METHODS:
            found = intervals(units, [quantity], make_plan(method, 0.95, n_resamples, repetition, 1))[0]
            covered[method] += found.low <= truth <= found.high
    return [kind, f"{n:,}", *(_share(covered[method] / repetitions, mark=True) for method in METHODS)]


# --- tests ----------------------------------------------------------------------------------------------------------------------

NULLS = (
    Population("normal", lambda rng, n: rng.normal(0, 1, n), 0.0),
    Population("skewed: beta(0.5, 2)", lambda rng, n: rng.beta(0.5, 2, n), 0.2),
    Population("reciprocal ranks", _reciprocal_ranks, _RR),
)


def size(task: tuple[str, int, int, int]) -> list[str]:
    """A row of the table of sizes: how often p is at most each level where two systems do not differ."""
    test, index, n, repetitions = task
    rng = np.random.default_rng([3, index, n])
    p = np.array(
        [
            p_values(test, NULLS[index].draw(rng, 2 * n).reshape(2, 1, n), None, None, [(0, 1)], Chance(repetition, 1000, 1))[0, 0]
            for repetition in range(repetitions)
        ]
    )
    uniform = stats.kstest(p, "uniform").pvalue
    return [test, NULLS[index].title, f"{n:,}", *(f"{100 * np.mean(p <= level):.1f}%" for level in (0.01, 0.05, 0.1)), f"{uniform:.2f}"]


def family(task: tuple[str, int]) -> list[str]:
    """How often any of ten pairs of five systems that do not differ is told apart, at the level 5%."""
    method, repetitions = task
    rng = np.random.default_rng(4)
    pairs = list(itertools.combinations(range(5), 2))
    found = 0
    for repetition in range(repetitions):
        values = rng.beta(0.5, 2, (5, 1, 60))
        chance = Chance(repetition, 2000, 1)
        if method == "tukey":
            p = randomised_tukey(units_of(values[:, 0], None, None), pairs, chance)[None]
        else:
            p = corrected_over(p_values("permutation", values, None, None, pairs, chance), "permutation", method)
        found += bool((p <= 0.05).any())
    return ["randomised Tukey HSD" if method == "tukey" else f"permutation, {method}", f"{100 * found / repetitions:.1f}%"]


def power(task: tuple[str, int, float, int]) -> list[str]:
    """Power as predicted and as achieved."""
    test, n, effect, repetitions = task
    rng = np.random.default_rng([5, n])
    seen = 0
    for repetition in range(repetitions):
        values = np.stack([np.zeros((1, n)), rng.normal(effect, 1, (1, n))])
        seen += p_values(test, values, None, None, [(0, 1)], Chance(repetition, 1000, 1))[0, 0] <= 0.05
    return [test, f"{n:,}", f"{effect:g}", f"{100 * fr.power(n, effect, 1.0):.1f}%", f"{100 * seen / repetitions:.1f}%"]


# --- the page -------------------------------------------------------------------------------------------------------------------


def _table(header: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'|'.join(['---', *['--:'] * (len(header) - 1)])}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def page(repetitions: int, n_resamples: int, processes: int | None) -> Iterator[str]:
    """The lines of the file."""
    yield "# What intervals and tests achieve"
    yield ""
    yield f"Simulated by `python -m benchmarks.coverage`: {repetitions:,} repetitions, {n_resamples:,} resamples each. Shares of so many"
    yield f"repetitions are off by {100 * 1.96 * (0.05 * 0.95 / repetitions) ** 0.5:.1f} points at 95%, and more towards 50%."
    yield ""
    with ProcessPoolExecutor(processes) as pool:
        yield "## 95% intervals of a mean"
        yield ""
        yield "The share that covers the true mean. Where there are at least 100 queries and 20 values that are not 0 it should lie"
        yield "between 93% and 97%; (!) marks those that do not. Below that nothing is promised, and `compare` says so in a note."
        yield ""
        by_size = list(pool.map(coverage, [(n, repetitions, n_resamples) for n in SIZES]))
        rows = [row for of_population in zip(*by_size, strict=True) for row in of_population]
        yield from _table(["population", "queries", "not 0 (mean)", *METHODS], rows)
        yield "## 95% intervals of differences, ratios, weighted and clustered means"
        yield ""
        kinds = ("difference", "ratio", "weighted mean", "clustered mean")
        yield from _table(
            ["", "queries or clusters", *METHODS],
            list(pool.map(combined, [(k, n, repetitions, n_resamples) for k in kinds for n in (100, 1000)])),
        )
        yield "## Tests where nothing differs"
        yield ""
        yield "How often p is at most 1%, 5% and 10%, and p of a test of whether all p are uniform."
        yield ""
        tests = [(test, i, n, repetitions) for test in TESTS if test != "tukey" for i in range(len(NULLS)) for n in (30, 200)]
        yield from _table(["test", "population", "queries", "p ≤ 1%", "p ≤ 5%", "p ≤ 10%", "uniform"], list(pool.map(size, tests)))
        yield "## Five systems that do not differ"
        yield ""
        yield "How often any of the ten pairs is told apart at the level 5%."
        yield ""
        yield from _table(
            ["test and correction", "any pair"],
            list(pool.map(family, [(m, repetitions) for m in ("tukey", "holm", "bonferroni", "bh", "none")])),
        )
        yield "## Power"
        yield ""
        yield "The chance of seeing a difference of so many standard deviations, as `fr.power` predicts it and as achieved."
        yield ""
        plans = [
            (test, n, effect, repetitions)
            for test in ("t", "permutation", "wilcoxon")
            for n, effect in ((20, 0.6), (50, 0.4), (200, 0.2), (1000, 0.05))
        ]
        yield from _table(["test", "queries", "difference / sd", "predicted", "achieved"], list(pool.map(power, plans)))


def main() -> None:
    """Simulate and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--resamples", type=int, default=2000)
    parser.add_argument("--processes", type=int, help="default: all processors")
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.write_text("\n".join(page(given.repetitions, given.resamples, given.processes)).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The row of statistics: bootstrap resamples, by draw and metric, and sign flips, both on one thread; and the memory they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting
from benchmarks.timing import child, seconds_of
from fastrank.comparison.intervals import Quantity, intervals, make_plan
from fastrank.comparison.paired import Chance, pairs_of, permutation
from fastrank.comparison.units import units_of

N_METRICS = 5
N_RESAMPLES = 10_000
# Theirs does so many, and the figure is that of all: the time grows in proportion.
FEW = 40
# Both sides are held together on so many queries, where theirs can do all resamples, too.
N_CHECKED = 100
# Of 10,000 resamples a bound is off by 0.03 standard errors and p by 0.005, by chance: five times as much on both sides.
BOUNDS_APART, P_APART = 0.2, 0.035


def statistics(setting: Setting) -> Iterator[Comparison]:
    """10,000 resamples of 100,000 queries, against scipy and ranx."""
    n_queries = setting.queries(100_000)
    values, few = _values(n_queries), _values(N_CHECKED)
    for method, mark in (("percentile", Mark(must=15)), ("bca", Mark(must=15)), ("studentised", Mark())):
        yield _resampled(
            f"{n_queries:,} queries × {N_METRICS} metrics",
            values,
            Call(f"fastrank bootstrap, {method}", _bootstrap(values, method), 1),
            Call("scipy.stats.bootstrap, percentile", peers.scipy_bootstrap(values, FEW), 1),
            mark,
            difference=lambda method=method: _bounds_apart(few, method),
            tolerance=BOUNDS_APART,
        )
    pair, few = values[:2], few[:2]
    for peer, mark in ((peers.SCIPY_FLIPS, Mark(must=150)), (peers.RANX_FLIPS, Mark(must=20))):
        absent = peers.why_absent(peer.library)
        yield _resampled(
            f"{n_queries:,} queries",
            pair[:1],
            Call("fastrank sign flips", _flips(pair), 1),
            Call(peer.name, (lambda: None) if absent else peer.prepare(pair, FEW), 1),
            mark,
            absent=absent,
            difference=lambda peer=peer: abs(_flips(few)() - peer.prepare(few, N_RESAMPLES)()),
            tolerance=P_APART,
        )
    for n, n_resamples in ((n_queries, N_RESAMPLES), (min(n_queries, 1000), 100 * N_RESAMPLES)):
        yield Comparison(
            f"{n_resamples:,} resamples of {n:,} queries × {N_METRICS} metrics",
            n_resamples * n * N_METRICS,
            n,
            Call("fastrank bootstrap and sign flips: added memory", _memory(n, n_resamples), 1, reports=True),
            None,
            Mark("bytes", 200e6),
            once=True,
        )


def _values(n_queries: int) -> np.ndarray:
    return np.random.default_rng(0).beta(0.5, 2, (N_METRICS, n_queries))


def _resampled(shape: str, values: np.ndarray, ours: Call, other: Call, mark: Mark, **options: Any) -> Comparison:
    """All of our resamples, and few of theirs with the figure of all. The check compiles the kernels of both."""
    timed = Call(other.name, lambda: seconds_of(other.run) * N_RESAMPLES / FEW, 1, reports=True)
    return Comparison(shape, N_RESAMPLES * values.size, values.shape[1], ours, timed, mark, once=True, **options)


def _bootstrap(values: np.ndarray, method: str) -> Callable[[], Any]:
    units = units_of(values, None, None)
    quantities = [Quantity("mean", i) for i in range(len(values))]
    plan = make_plan(method, 0.95, N_RESAMPLES, 0, 1)
    return lambda: intervals(units, quantities, plan)


def _flips(pair: np.ndarray) -> Callable[[], float]:
    differences = pairs_of(units_of(pair, None, None), [(0, 1)])
    return lambda: float(permutation(differences, Chance(0, N_RESAMPLES, 1))[0])


def _bounds_apart(values: np.ndarray, method: str) -> float:
    """How far the bounds of both lie apart, in standard errors. scipy has no studentised ones: the percentile ones stand for them."""
    ours = _bootstrap(values, "bca" if method == "bca" else "percentile")()
    theirs = peers.scipy_bootstrap(values, N_RESAMPLES, "BCa" if method == "bca" else "percentile")()
    return max(max(abs(each.low - low), abs(each.high - high)) / each.standard_error for each, low, high in zip(ours, *theirs, strict=True))


def _memory(n_queries: int, n_resamples: int) -> Callable[[], float]:
    return lambda: float(child("resamples", str(n_queries), str(n_resamples))["added_bytes"])

"""The row of position propensities: harvesting, against the same likelihood maximised with NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting
from fastrank.clicks import ClickLog, propensity

N_RANKS = 10
N_DOCS = 15


def propensities(setting: Setting) -> Iterator[Comparison]:
    """A million rows, in which three rankers showed the documents of a query in orders of their own; one thread, after loading."""
    log = draw_log(max(setting.queries(100_000), 2_000))  # with fewer, some position has no click to tie it to the first

    def run() -> np.ndarray:
        log.__dict__.pop("_cells_0", None)  # counting is part of the estimate
        return propensity(log, threads=1).theta

    ours = Call("fastrank propensity, with its sandwich intervals", run, 1)
    plain = Call("NumPy and SciPy: the same maximum by L-BFGS, without intervals", lambda: harvest(log), 1)
    data = (f"{log.n_sessions:,} sessions × {N_RANKS}", log.n_rows, log.n_sessions)
    yield Comparison(*data, ours, None, Mark("seconds", 0.5))
    yield Comparison(
        *data, ours, plain, difference=lambda: float(np.abs(ours.run() / plain.run() - 1).max()), tolerance=1e-4, once=setting.large
    )


def draw_log(n_sessions: int) -> ClickLog:
    """Clicks of the position-based model, where better documents stand higher: eight sessions a query."""
    rng = np.random.default_rng(0)
    n_queries = max(n_sessions // 8, 1)
    relevant = rng.beta(1, 4, (n_queries, N_DOCS)).astype(np.float32)
    noise = rng.random((3, n_queries, N_DOCS), np.float32)
    orders = np.argsort(-(relevant + np.array([0.1, 0.3, 0.6], np.float32)[:, None, None] * noise), axis=2)[:, :, :N_RANKS]
    query = rng.integers(0, n_queries, n_sessions)
    docs = orders[rng.integers(0, 3, n_sessions), query]
    click = rng.random(docs.shape) < relevant[query[:, None], docs] / np.arange(1, N_RANKS + 1)
    return ClickLog(np.arange(n_sessions + 1) * N_RANKS, docs.ravel(), click.ravel(), query)


def harvest(log: ClickLog) -> np.ndarray:
    """theta as one would write it: cells by sorting, and a general optimiser on log theta."""
    from scipy.optimize import minimize

    key, place = np.unique(log.qd.astype(np.int64) * N_RANKS + log.position - 1, return_inverse=True)
    n, clicks = np.bincount(place).astype(np.float64), np.bincount(place, log.click)
    stratum, position = np.divmod(key, N_RANKS)
    total = np.bincount(stratum, clicks, log.n_pairs)
    says = (np.bincount(stratum, minlength=log.n_pairs) > 1) & (total > 0)
    kept = says[stratum]
    stratum, position, n, clicks = stratum[kept], position[kept], n[kept], clicks[kept]
    at_position = np.bincount(position, clicks, N_RANKS)

    def minus(log_theta: np.ndarray) -> Any:
        theta = np.exp(np.append(0.0, log_theta))
        exposed = n * theta[position]
        sums = np.bincount(stratum, exposed, log.n_pairs)
        value = total[says] @ np.log(sums[says]) - at_position @ np.log(theta)
        slope = np.bincount(position, total[stratum] * exposed / sums[stratum], N_RANKS) - at_position
        return value, slope[1:]

    found = minimize(minus, np.zeros(N_RANKS - 1), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-7 * total.sum()})
    return np.exp(np.append(0.0, found.x))

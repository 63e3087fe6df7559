"""The upper tail of the studentised range: how often the range of k normal means exceeds q standard errors.

With R(w) = k ∫ φ(z) (Φ(z) - Φ(z - w))^(k - 1) dz, the chance that a range of k standard normals is at most w, and f the density of
s = sqrt(chi-square / degrees),

    P(Q > q) = ∫ f(s) (1 - R(q s)) ds

Both integrals are sums at even steps, which for such bells are as exact as doubles allow, over logarithms, which keep small p from
rounding to 0. 1 - R is summed once for all q, from terms that do not cancel: k φ(z) (Φ(z)^(k - 1) - (Φ(z) - Φ(z - w))^(k - 1)).
Source: Tukey 1953; Copenhaver and Holland, Journal of Statistical Computation and Simulation 1988.
"""

from __future__ import annotations

import functools

import numpy as np

# At a range of 60 the chance of a larger one is below 1e-390.
_RANGES = np.linspace(0.0, 60.0, 6001)
_NORMALS = np.linspace(-9.0, 39.0, 385)


def range_tail(q: np.ndarray, k: int, degrees: int) -> np.ndarray:
    """P(Q > q) for each q, float64[n], of k means and so many degrees of freedom: a relative error of 1e-9 at most."""
    from scipy.special import gammaln

    # log s: its density falls by 1e-19 and more towards either end, and large q look at the lower one.
    spread = 1 / np.sqrt(2 * degrees)
    x = np.linspace(-45 / degrees - 30 * spread, 12 * spread, 1201)
    s = np.exp(x)
    log_density = np.log(2) + 0.5 * degrees * np.log(0.5 * degrees) - gammaln(0.5 * degrees) + degrees * (x - 0.5 * s * s)
    ranges = np.multiply.outer(np.asarray(q, dtype=np.float64), s)
    inside = _between(_log_normal_tail(k), np.minimum(ranges, _RANGES[-1])) + log_density
    return (x[1] - x[0]) * np.where(ranges < _RANGES[-1], np.exp(inside), 0.0).sum(axis=-1)


def _between(values: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """The values at `_RANGES`, interpolated by the cubic through the four nearest: scipy.interpolate takes half a second to import."""
    place = ranges * ((len(_RANGES) - 1) / _RANGES[-1])
    i = np.clip(place.astype(np.int64), 1, len(_RANGES) - 3)
    t = place - i
    outer = t * (t - 1) * (t + 1) / 6 * values[i + 2] - t * (t - 1) * (t - 2) / 6 * values[i - 1]
    return outer + (t + 1) * (t - 2) / 2 * ((t - 1) * values[i] - t * values[i + 1])


@functools.lru_cache(maxsize=8)
def _log_normal_tail(k: int) -> np.ndarray:
    """log(1 - R(w)) at each of `_RANGES`."""
    from scipy.special import log_ndtr

    z, below = _NORMALS, log_ndtr(_NORMALS)
    log_weight = np.log(k * (z[1] - z[0])) - 0.5 * z * z - 0.5 * np.log(2 * np.pi) + (k - 1) * below
    with np.errstate(divide="ignore"):
        share = np.minimum(np.exp(log_ndtr(z - _RANGES[:, None]) - below), 1.0)
        terms = log_weight + np.log(-np.expm1((k - 1) * np.log1p(-share)))
    top = terms.max(axis=1, keepdims=True)
    return (top + np.log(np.exp(terms - top).sum(axis=1, keepdims=True))).ravel()

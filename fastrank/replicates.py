"""The Poisson bootstrap of means: sums of resamples that merge, for data that pass by once.

In resample b query q counts Poisson(1) times. That number is a function of the seed, the query's key and b alone, so it is the same in
every batch, process and partition; and the sums are exact, so they are the same in every order and tree of merges.

Sources: Hanley and MacGibbon, Computer Methods and Programs in Biomedicine, 2006 (each unit draws its own Poisson count); Chamandy,
Muralidharan, Najmi and Naidu, Google technical report 2012 (counts from a hash of the unit's id, for data on many machines).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrank._kernel import kernel, map_blocks
from fastrank.errors import InputError

# SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): resample b of a query reads position b of the sequence that its key begins.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)

LEAST, MOST = 100, 10_000
# A float64 is a whole number of 2098 bits times 2^-SCALE: so many limbs of 32 bits, and one for sums beyond them.
LIMBS = 67
# Sums of limbs stay below 2^32 * 2^20 * 12 < 2^56 before their carries are passed on.
_QUERIES = 1 << 20
# Resamples per block, the unit of work of a thread: what it adds to stays in the first-level cache.
_RESAMPLES = 128


def _thresholds() -> np.ndarray:
    """The chances of at most 0, 1, 2, ... draws, in units of 2^-32: a random word counts how many of them it reaches."""
    chances = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(13)])
    made: np.ndarray = np.rint(chances * 2.0**32).astype(np.uint64)
    made = made[made < 1 << 32].astype(np.uint32)
    made.flags.writeable = False
    return made


@kernel
def _draw(key: Any, thresholds: Any, first: Any, last: Any, words: Any, counts: Any) -> None:
    """counts[b - first] = how often a query counts in resample b, for first <= b < last."""
    n = last - first
    for i in range(n):
        z = key + np.uint64(first + i) * _STEP
        z = (z ^ (z >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        words[i] = np.uint32((z ^ (z >> np.uint64(31))) >> np.uint64(32))
        counts[i] = 0
    for t in range(thresholds.shape[0]):
        threshold = thresholds[t]
        for i in range(n):
            counts[i] += np.int64(words[i] >= threshold)


@kernel
def add_resampled(keys: Any, bits: Any, thresholds: Any, first: Any, last: Any, words: Any, counts: Any, sums: Any) -> None:
    """Add to sums[s, :, b] count times the value of every query in column s, for resamples first <= b < last.

    A value is its mantissa shifted by its exponent, which touches three limbs of 32 bits.
    """
    low = np.int64(0xFFFFFFFF)
    for q in range(keys.shape[0]):
        _draw(keys[q], thresholds, first, last, words, counts)
        for s in range(bits.shape[0]):
            word = bits[s, q]
            place = (word >> 52) & 0x7FF
            mantissa = word & 0xFFFFFFFFFFFFF
            if place == 0:
                place = 1  # zero or subnormal
            else:
                mantissa |= 0x10000000000000
            if mantissa == 0:
                continue
            sign = 1 - 2 * np.int64(word < 0)
            limb, shift = (place - 1) >> 5, (place - 1) & 31
            bottom = (mantissa & low) << shift
            top = ((mantissa >> 32) << shift) + (bottom >> 32)
            zero, one, two = sign * (bottom & low), sign * (top & low), sign * (top >> 32)
            for b in range(first, last):
                count = counts[b - first]
                sums[s, limb, b] += count * zero
                sums[s, limb + 1, b] += count * one
                sums[s, limb + 2, b] += count * two


def check_resamples(n_resamples: Any) -> int:
    """A legal number of resamples, or 0 for none."""
    whole = isinstance(n_resamples, int | np.integer) and not isinstance(n_resamples, bool)
    if not whole or (n_resamples and not LEAST <= n_resamples <= MOST):
        raise InputError(f"n_resamples must be 0 (none) or a whole number from {LEAST} to {MOST}, not {n_resamples!r}.")
    return int(n_resamples)


def check_seed(seed: Any) -> int:
    """A legal seed."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 1 << 63:
        raise InputError(f"seed must be a whole number from 0 up to 2^63, not {seed!r}.")
    return int(seed)


class Replicates:
    """Exact sums of Σ w x and Σ w over each resample, for every metric.

    `sums`, int64[2 * n_metrics, LIMBS, n_resamples]: the limbs of Σ w x (w x rounded to a double per query) of each metric, then those
    of Σ w over the queries with a value. Carries are passed on after every addition, so equal sums have equal limbs.

    >>> values, keys = np.array([[1.0], [0.5]]), np.array([1, 2], np.uint64)
    >>> whole = Replicates.of(keys, values, None, 100)
    >>> parts = Replicates.of(keys[1:], values[1:], None, 100) + Replicates.of(keys[:1], values[:1], None, 100)
    >>> bool((whole.sums == parts.sums).all())
    True
    """

    def __init__(self, sums: np.ndarray) -> None:
        self.sums = sums

    @classmethod
    def empty(cls, n_metrics: int, n_resamples: int) -> Replicates:
        """Those of no query."""
        return cls(np.zeros((2 * n_metrics, LIMBS, n_resamples), np.int64))

    @classmethod
    def of(
        cls, keys: np.ndarray, values: np.ndarray, weights: np.ndarray | None, n_resamples: int, seed: int = 0, threads: int | None = None
    ) -> Replicates:
        """Resample queries: their keys, uint64[n_queries], values, float64[n_queries, n_metrics], and weights. NaN counts for nothing."""
        made = cls.empty(values.shape[1], n_resamples)
        start = np.random.SeedSequence(seed).generate_state(1, np.uint64)[0]
        for first in range(0, len(keys), _QUERIES):
            some = slice(first, first + _QUERIES)
            made._add(keys[some] ^ start, values[some].T, None if weights is None else weights[some], threads)
        return made

    def _add(self, keys: np.ndarray, values: np.ndarray, weights: np.ndarray | None, threads: int | None) -> None:
        missing = np.isnan(values)
        size = np.ones(values.shape[1]) if weights is None else np.asarray(weights, np.float64)
        columns = np.concatenate([np.where(missing, 0.0, values * size), np.where(missing, 0.0, size)])
        bits, thresholds, sums = columns.view(np.int64), _thresholds(), self.sums
        bits.flags.writeable = keys.flags.writeable = False

        def work(first: int, last: int) -> None:
            words, counts = np.empty(last - first, np.uint32), np.empty(last - first, np.int64)
            with np.errstate(over="ignore"):  # words wrap around; the kernel as plain Python would complain
                add_resampled(keys, bits, thresholds, first, last, words, counts, sums)

        n_resamples = sums.shape[2]
        map_blocks(work, np.zeros(n_resamples + 1, np.int64), documents=_RESAMPLES, threads=threads)
        self._carry()

    def _carry(self) -> None:
        """Leave 32 bits in each limb but the last, which bears the sign."""
        used = np.flatnonzero(self.sums.any(axis=(0, 2)))
        for limb in range(used[0] if len(used) else LIMBS, LIMBS - 1):
            carry = self.sums[:, limb] >> 32
            if carry.any():
                self.sums[:, limb] &= 0xFFFFFFFF
                self.sums[:, limb + 1] += carry

    def __add__(self, other: Replicates) -> Replicates:
        made = Replicates(self.sums + other.sums)
        made._carry()
        return made

    def means(self) -> np.ndarray:
        """The mean of each metric in each resample, float64[n_resamples, n_metrics], correctly rounded; NaN where nothing was drawn."""
        n_metrics, n_resamples = len(self.sums) // 2, self.sums.shape[2]
        whole = np.zeros((len(self.sums), n_resamples), object)
        for limb in np.flatnonzero(self.sums.any(axis=(0, 2))).tolist():
            whole += self.sums[:, limb].astype(object) << (32 * limb)
        made = np.full((n_resamples, n_metrics), np.nan)
        for metric in range(n_metrics):
            for b, (top, bottom) in enumerate(zip(whole[metric], whole[n_metrics + metric], strict=True)):
                if bottom:
                    made[b, metric] = top / bottom
        return made

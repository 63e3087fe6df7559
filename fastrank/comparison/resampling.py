"""Random numbers and the loops that use them: bootstrap resamples, sign flips and shuffles.

Every random word is a function of a key, the number of the resample and a counter, so a resample is the same whichever thread draws it.
The columns that are summed are whole numbers (`whole`): their sums are exact, hence the same in any order and on any machine, and sums
that are equal compare equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fastrank._kernel import kernel, map_blocks, wide_product
from fastrank.errors import InputError

# SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): position p of the sequence is a hash of key + p * _STEP. Resample b owns the positions
# from b * 2^32 on, so no two resamples share one.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)

MOST_RESAMPLES = 1_000_000
# 2^16 sign patterns are enumerated.
MOST_ENUMERATED = 16
# The least scale is 2^-960: values below it are nothing, and the scale itself stays a normal number.
_FINEST = 960
# Bytes that the sums of all resamples may take at once; further columns are summed in another pass over the same draws.
_ROOM = 1 << 25
# Resamples per block, the unit of work of a thread. Sign patterns share the tables of their block, which cost 2,048 additions.
_RESAMPLES, _PATTERNS, _SHUFFLES = 16, 2048, 16


def check_resamples(n_resamples: Any) -> int:
    """A legal number of resamples."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, int | np.integer) or not 100 <= n_resamples <= MOST_RESAMPLES:
        raise InputError(f"n_resamples must be a whole number from 100 to {MOST_RESAMPLES}, not {n_resamples!r}.")
    return int(n_resamples)


# --- keys -----------------------------------------------------------------------------------------------------------------------


def root_of(seed: Any) -> int:
    """The number that all random words of one call follow from: the seed itself, or one drawn from a numpy.random.Generator."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(1 << 63))
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 up or a numpy.random.Generator, not {seed!r}.")
    return int(seed)


def key_of(root: int, purpose: int) -> np.uint64:
    """The key of one stream of random words; streams of different purposes have nothing to do with each other."""
    return np.random.SeedSequence(root, spawn_key=(purpose,)).generate_state(1, np.uint64)[0]


BOOTSTRAP, FLIPS, SHUFFLES = 0, 1, 2


# --- whole numbers --------------------------------------------------------------------------------------------------------------


class Whole(NamedTuple):
    """Columns as whole numbers, int64[n_columns, n_units]; a column is its whole numbers times its scale, float64[n_columns]."""

    columns: np.ndarray
    scale: np.ndarray


def whole(columns: np.ndarray, terms: int) -> Whole:
    """Round columns, float64[n_columns, n_units], to whole multiples of a power of two, so that sums of `terms` of them fit an int64.

    A value is off by at most 2^-62 * terms times the largest of its column: 3e-15 of it for 10,000 terms.
    """
    largest = np.abs(columns).max(axis=1, initial=0.0)
    exponent = np.minimum(61 - np.frexp(largest)[1] - int(terms).bit_length(), _FINEST)
    exponent[largest == 0] = 0
    return Whole(np.rint(np.ldexp(columns, exponent[:, None])).astype(np.int64), np.ldexp(1.0, -exponent))


# --- the bootstrap --------------------------------------------------------------------------------------------------------------


@kernel
def _word(key: Any, resample: Any, counter: Any) -> Any:
    """The random word at a place of the stream of a resample."""
    z = key + ((np.uint64(resample) << np.uint64(32)) + np.uint64(counter)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@kernel
def _draw(key: Any, resample: Any, n: Any, counts: Any) -> None:
    """Count how often each of n units is drawn in n draws with replacement.

    A half word times n has the unit in its upper 32 bits. The lower ones below `reject` would favour some units: drawn again (Lemire,
    ACM TOMACS 2019). A unit cannot be drawn more than 255 times: the chance is below 1 / 256!.
    """
    size, low, half = np.uint64(n), np.uint64(0xFFFFFFFF), np.uint64(32)
    reject = (np.uint64(1 << 32) - size) % size
    drawn = counter = 0
    while drawn < n:
        word = _word(key, resample, counter)
        counter += 1
        one, other = (word & low) * size, (word >> half) * size
        if (one & low) >= reject:
            counts[one >> half] += np.uint8(1)
            drawn += 1
        if (other & low) >= reject and drawn < n:
            counts[other >> half] += np.uint8(1)
            drawn += 1


@kernel
def resample_sums(key: Any, columns: Any, first: Any, last: Any, counts: Any, out: Any) -> None:
    """Fill out[b, c] with the sum of column c over resample b, for first <= b < last.

    Four resamples are drawn, then summed together: reading the columns from memory is what takes the time.
    """
    n_columns, n = columns.shape
    for b in range(first, last, 4):
        counts[:] = 0
        for i in range(min(4, last - b)):
            _draw(key, b + i, n, counts[i])
        zero, one, two, three = counts[0], counts[1], counts[2], counts[3]
        for c in range(n_columns):
            column = columns[c]
            s = t = u = v = np.int64(0)
            for i in range(n):
                value = column[i]
                s += np.int64(zero[i]) * value
                t += np.int64(one[i]) * value
                u += np.int64(two[i]) * value
                v += np.int64(three[i]) * value
            out[b, c] = s
            if b + 1 < last:
                out[b + 1, c] = t
            if b + 2 < last:
                out[b + 2, c] = u
            if b + 3 < last:
                out[b + 3, c] = v


def resampled_sums(columns: np.ndarray, n_resamples: int, key: np.uint64, threads: int | None) -> np.ndarray:
    """Sums of columns, float64[n_columns, n_units], over resamples of n_units units with replacement: float64[n_resamples, n_columns].

    All columns see the same draws.
    """
    n_columns, n_units = columns.shape
    numbers, scale = whole(columns, n_units)
    sums = np.empty((n_resamples, n_columns))
    step = max(1, _ROOM // (8 * n_resamples))
    for start in range(0, n_columns, step):
        part = numbers[start : start + step]
        out = np.empty((n_resamples, len(part)), dtype=np.int64)

        def work(first: int, last: int, part: np.ndarray = part, out: np.ndarray = out) -> None:
            resample_sums(key, part, first, last, np.empty((4, n_units), dtype=np.uint8), out)

        _in_blocks(work, n_resamples, _RESAMPLES, threads)
        sums[:, start : start + step] = out * scale[start : start + step]
    return sums


# --- sign flips -----------------------------------------------------------------------------------------------------------------


@kernel
def _fill_tables(numbers: Any, start: Any, tables: Any) -> None:
    """tables[g, byte]: the sum of eight numbers from start + 8 * g on, each minus where its bit of the byte is set."""
    n = numbers.shape[0]
    for g in range(8):
        table = tables[g]
        table[0] = 0
        size = 1
        for bit in range(8):
            i = start + 8 * g + bit
            number = numbers[i] if i < n else np.int64(0)
            for j in range(size):
                table[size + j] = table[j] - number
                table[j] += number
            size *= 2


@kernel
def flip_signs(key: Any, columns: Any, bounds: Any, first: Any, last: Any, words: Any, tables: Any, sums: Any, counts: Any) -> None:
    """Add to counts[c] the sign patterns first <= b < last under which the sum of column c is no nearer 0 than bounds[c].

    One random bit a unit, 64 to a word. A byte of it looks up the sum of eight numbers, so 64 flips cost eight additions.
    """
    n_columns, n = columns.shape
    size = last - first
    sums[:, :size] = 0
    eight, low = np.uint64(8), np.uint64(0xFF)
    for start in range(0, n, 64):
        for b in range(size):
            words[b] = _word(key, first + b, start >> 6)
        for c in range(n_columns):
            _fill_tables(columns[c], start, tables)
            for b in range(size):
                word = words[b]
                total = np.int64(0)
                for g in range(8):
                    total += tables[g, word & low]
                    word >>= eight
                sums[c, b] += total
    for c in range(n_columns):
        for b in range(size):
            if abs(sums[c, b]) >= bounds[c]:
                counts[c] += 1


def flipped_share(columns: np.ndarray, slack: np.ndarray, n_resamples: int, key: np.uint64, threads: int | None) -> np.ndarray:
    """The two-sided p-values of sign flips on columns, float64[n_columns, n_units]: how often the sum is as far from 0 as the one seen.

    Columns with at most 16 numbers that are not 0 have at most 2^16 sign patterns, and all are counted; the others
    (count + 1) / (n_resamples + 1) of random ones. Sums within `slack`, float64[n_columns], of the one seen count as equal to it.
    """
    p = np.empty(len(columns))
    moving = np.count_nonzero(columns, axis=1)
    few = moving <= MOST_ENUMERATED
    for c in np.flatnonzero(few):
        p[c] = _enumerated(columns[c][columns[c] != 0], slack[c])
    many = np.flatnonzero(~few)
    # The sums of a block of patterns take 16 kB a column.
    for start in range(0, len(many), 512):
        part = many[start : start + 512]
        p[part] = _sampled(columns[part], slack[part], n_resamples, key, threads)
    return p


def _enumerated(numbers: np.ndarray, slack: float) -> float:
    if not len(numbers):
        return 1.0
    # The first sign may stay: turning all of them changes no distance from 0.
    sums = numbers[:1]
    for number in numbers[1:]:
        sums = np.concatenate([sums + number, sums - number])
    return float(np.mean(np.abs(sums) >= abs(sums[0]) - slack))


def _sampled(columns: np.ndarray, slack: np.ndarray, n_resamples: int, key: np.uint64, threads: int | None) -> np.ndarray:
    numbers, scale = whole(columns, columns.shape[1])
    # Rounding to whole numbers moves a sum by at most half a unit each.
    bounds = np.abs(numbers.sum(axis=1)) - np.ceil(slack / scale).astype(np.int64) - columns.shape[1]
    blocks: list[np.ndarray] = []

    def work(first: int, last: int) -> None:
        size = last - first
        counts = np.zeros(len(numbers), dtype=np.int64)
        words, sums = np.empty(size, dtype=np.uint64), np.empty((len(numbers), size), dtype=np.int64)
        flip_signs(key, numbers, bounds, first, last, words, np.empty((8, 256), dtype=np.int64), sums, counts)
        blocks.append(counts)

    _in_blocks(work, n_resamples, _PATTERNS, threads)
    return (np.sum(blocks, axis=0) + 1) / (n_resamples + 1)


# --- shuffles -------------------------------------------------------------------------------------------------------------------


@kernel
def shuffle_ranges(key: Any, rows: Any, first: Any, last: Any, row: Any, sums: Any, out: Any) -> None:
    """Fill out[b] with the range (largest minus smallest) of the column sums after shuffling each row, for first <= b < last.

    A word is a fraction of 2^64: times k, its whole part is a place below k and what is left over a fraction again. Twelve places can
    be had of it before a bias shows (12! / 2^64 < 3e-11).
    """
    n, k = rows.shape
    for b in range(first, last):
        sums[:] = 0
        counter = 0
        for i in range(n):
            for j in range(k):
                row[j] = rows[i, j]
            word, left = np.uint64(0), 0
            for j in range(k - 1, 0, -1):
                if left == 0:
                    word, left = _word(key, b, counter), 12
                    counter += 1
                left -= 1
                place, word = wide_product(word, np.uint64(j + 1))
                number = row[place]
                row[place] = row[j]
                sums[j] += number
            sums[0] += row[0]
        least = greatest = sums[0]
        for j in range(1, k):
            least, greatest = min(least, sums[j]), max(greatest, sums[j])
        out[b] = greatest - least


def shuffled_ranges(rows: np.ndarray, n_resamples: int, key: np.uint64, threads: int | None) -> np.ndarray:
    """The ranges of the column sums of rows, float64[n_units, n_systems], each row shuffled anew: float64[n_resamples]."""
    numbers, scale = whole(rows.reshape(1, -1), len(rows))
    numbers = numbers.reshape(rows.shape)
    k = rows.shape[1]
    out = np.empty(n_resamples, dtype=np.int64)

    def work(first: int, last: int) -> None:
        shuffle_ranges(key, numbers, first, last, np.empty(k, dtype=np.int64), np.empty(k, dtype=np.int64), out)

    _in_blocks(work, n_resamples, _SHUFFLES, threads)
    return out * scale[0]


def compile_kernels() -> None:
    """Compile each kernel of this file, or load it from the cache, before it is needed."""
    columns = np.ones((1, 2))
    resampled_sums(columns, 100, key_of(0, BOOTSTRAP), 1)
    _sampled(columns, np.zeros(1), 100, key_of(0, FLIPS), 1)
    shuffled_ranges(columns, 100, key_of(0, SHUFFLES), 1)


def _in_blocks(work: Any, n_resamples: int, size: int, threads: int | None) -> None:
    def quiet(first: int, last: int) -> None:
        with np.errstate(over="ignore"):  # words wrap around; the kernels as plain Python would complain
            work(first, last)

    # A block of the pool is cut by documents and queries; a resample is a query without documents here.
    map_blocks(quiet, np.zeros(n_resamples + 1, dtype=np.int64), documents=size, threads=threads)

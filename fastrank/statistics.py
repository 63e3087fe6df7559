"""Exact sums, means and intervals: what a result needs to summarise itself.

Every float64 is a whole multiple of 2^-1074, and every product of two is one of 2^-2148. Sums are kept as those whole numbers, so they
are exact, merge in any order and any tree to the same bits, and are rounded once, when a mean is read.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank._kernel import kernel
from fastrank.errors import InputError

# A value is an integer times 2^-SCALE, a product of two values an integer times 2^-(2 * SCALE).
SCALE = 1074

# A bin takes at most three products of 18-bit limbs (together below 2^38) per value, so after 2^24 values it is below 2^62.
_CHUNK = 1 << 24
# Sums in fixed point take no more values at a time.
_MOST_FIXED = 1 << 21
# Up to here Python's integers cost less than setting up and folding the bins. Both ways give the same integer.
_FEW = 32
# trec_eval's MIN_GEO_MEAN: no smaller value enters a geometric mean.
_LEAST_IN_LOG = 1e-5

# Gamma(a + 1/2) / Gamma(a) = sqrt(a) times this series in 1 / a, to the last bit from _MANY on. Source: Tricomi and Erdelyi, 1951.
_RATIO = (1.0, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)
_MANY = 100.0


# --- exact sums -----------------------------------------------------------------------------------------------------------------


@kernel
def add_values_and_squares(bits: Any, bins: Any) -> None:
    """Add to the row of each value's exponent its mantissa, in two limbs of 32 bits, and the square of it, in limbs of 18 bits."""
    for i in range(bits.shape[0]):
        word = bits[i]
        row = (word >> 52) & 0x7FF
        mantissa = word & 0xFFFFFFFFFFFFF
        if row == 0:
            row = 1  # zero or subnormal: the exponent of the smallest normal number, but no leading bit
        else:
            mantissa |= 0x10000000000000
        sign = word >> 63
        a0, a1, a2 = mantissa & 0x3FFFF, (mantissa >> 18) & 0x3FFFF, mantissa >> 36
        bins[row, 0] += ((mantissa & 0xFFFFFFFF) ^ sign) - sign
        bins[row, 1] += ((mantissa >> 32) ^ sign) - sign
        bins[row, 2] += a0 * a0
        bins[row, 3] += 2 * a0 * a1
        bins[row, 4] += 2 * a0 * a2 + a1 * a1
        bins[row, 5] += 2 * a1 * a2
        bins[row, 6] += a2 * a2


@kernel
def add_products(bits: Any, others: Any, bins: Any) -> None:
    """Add to the row of the two exponents' sum the product of the two mantissas, in limbs of 18 bits."""
    for i in range(bits.shape[0]):
        word = bits[i]
        row = (word >> 52) & 0x7FF
        mantissa = word & 0xFFFFFFFFFFFFF
        if row == 0:
            row = 1
        else:
            mantissa |= 0x10000000000000
        other = others[i]
        other_row = (other >> 52) & 0x7FF
        other_mantissa = other & 0xFFFFFFFFFFFFF
        if other_row == 0:
            other_row = 1
        else:
            other_mantissa |= 0x10000000000000
        row += other_row
        sign = (word ^ other) >> 63
        a0, a1, a2 = mantissa & 0x3FFFF, (mantissa >> 18) & 0x3FFFF, mantissa >> 36
        b0, b1, b2 = other_mantissa & 0x3FFFF, (other_mantissa >> 18) & 0x3FFFF, other_mantissa >> 36
        bins[row, 0] += ((a0 * b0) ^ sign) - sign
        bins[row, 1] += ((a0 * b1 + a1 * b0) ^ sign) - sign
        bins[row, 2] += ((a0 * b2 + a1 * b1 + a2 * b0) ^ sign) - sign
        bins[row, 3] += ((a1 * b2 + a2 * b1) ^ sign) - sign
        bins[row, 4] += ((a2 * b2) ^ sign) - sign


@kernel
def add_fixed(columns: Any, first: int, last: int, sums: Any) -> None:
    """Add to sums[c] whole multiples of 2^-32, what is left in multiples of 2^-74, and whether any value is none or too large.

    Values below 2^10 and metrics of 2^21 queries at most, so that no sum passes 2^63.
    """
    for c in range(columns.shape[0]):
        column = columns[c, first:last]
        high = low = wrong = np.int64(0)
        for i in range(column.shape[0]):  # from 0, so that no place can be negative: several values are then taken at once
            x = column[i] * 4294967296.0
            whole = np.int64(x)
            rest = (x - whole) * 4398046511104.0
            left = np.int64(rest)
            wrong |= np.int64((left != rest) | (abs(x) >= 4398046511104.0))
            high += whole
            low += left
        sums[c, 0] += high
        sums[c, 1] += low
        sums[c, 2] |= wrong


def exact_means(values: np.ndarray) -> list[float | None]:
    """The correctly rounded mean of each column of float64[n_queries, n_metrics]: that of its `Moments`, in a tenth of the time.

    None for a column that holds NaN, a value of 1024 or more, or one with bits below 2^-74: ask its moments. NaN without queries.
    """
    n, columns = len(values), np.ascontiguousarray(values.T, np.float64).view()
    if not n:
        return [math.nan] * values.shape[1]
    columns.flags.writeable = False
    totals, sums = [0] * len(columns), np.zeros((len(columns), 3), np.int64)
    for first in range(0, n, _MOST_FIXED):
        sums[:, :2] = 0
        add_fixed(columns, first, min(first + _MOST_FIXED, n), sums)
        totals = [total + (high << 42) + low for total, (high, low, _) in zip(totals, sums.tolist(), strict=True)]
    return [None if wrong else _divide(total, n << 74) for total, wrong in zip(totals, sums[:, 2].tolist(), strict=True)]


def _bits(values: np.ndarray) -> np.ndarray:
    """The bit patterns of contiguous float64 values, read-only always, so that each kernel compiles once."""
    bits = values.view(np.int64)
    bits.flags.writeable = False
    return bits


def _integer(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator << (SCALE + 1 - denominator.bit_length())


def _sums(values: np.ndarray) -> tuple[int, int]:
    """The exact sum of finite values, times 2^SCALE, and of their squares, times 2^(2 * SCALE)."""
    if len(values) <= _FEW:
        integers = [_integer(value) for value in values.tolist()]
        return sum(integers), sum(integer * integer for integer in integers)
    total = squares = 0
    for start in range(0, len(values), _CHUNK):
        bins = np.zeros((2048, 7), dtype=np.int64)
        add_values_and_squares(_bits(values[start : start + _CHUNK]), bins)
        for row in np.flatnonzero(bins.any(axis=1)).tolist():
            low, high, *limbs = bins[row].tolist()
            # A mantissa of row e is worth 2^(e - 1075).
            total += (low + (high << 32)) << (row - 1)
            squares += _join(limbs) << (2 * row - 2)
    return total, squares


def _sum_of_products(values: np.ndarray, others: np.ndarray) -> int:
    """The exact sum of the products of finite values, times 2^(2 * SCALE)."""
    if len(values) <= _FEW:
        return sum(_integer(value) * _integer(other) for value, other in zip(values.tolist(), others.tolist(), strict=True))
    total = 0
    for start in range(0, len(values), _CHUNK):
        bins = np.zeros((4096, 5), dtype=np.int64)
        add_products(_bits(values[start : start + _CHUNK]), _bits(others[start : start + _CHUNK]), bins)
        for row in np.flatnonzero(bins.any(axis=1)).tolist():
            total += _join(bins[row].tolist()) << (row - 2)
    return total


def _join(limbs: list[int]) -> int:
    return sum(limb << (18 * place) for place, limb in enumerate(limbs))


def _divide(numerator: int, denominator: int) -> float:
    """The correctly rounded quotient; infinite when out of range."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


# --- moments --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moments:
    """Exact sums over the queries of one metric: enough for the mean, its standard error and its interval.

    Moments of parts add up (`+`) to the moments of the whole, bit for bit, in any order and grouping; `Moments()` is the empty part.
    Without weights every weight is 1.

    The mean is Σ w x / Σ w. Its standard error is that of a ratio of two sums,
    sqrt(n / (n - 1) · Σ (w x - w · mean)²) / Σ w, with w x rounded to a double per query so that the sums stay exact; without weights
    this is the sample standard deviation over sqrt(n). Source: Cochran, Sampling Techniques, 3rd ed. 1977, section 2.11.

    Attributes: `n`, the values summed; `n_nan`, NaN values that make the mean NaN; `n_skipped`, NaN values left out; then, as
    whole multiples of 2^-1074 (`sum_w`) or 2^-2148 (the others), the sums of w, w², w·x, w·y, y² with y the rounded w·x, and of
    w·log(max(x, 1e-5)), None where not asked for.

    >>> moments = Moments.of([1.0, 0.5, 0.25, 1.0, 0.0])
    >>> moments.mean == 2.75 / 5
    True
    >>> Moments.of([1.0, 0.5]) + Moments.of([0.25, 1.0, 0.0]) == moments
    True
    """

    n: int = 0
    n_nan: int = 0
    n_skipped: int = 0
    sum_w: int = 0
    sum_ww: int = 0
    sum_wx: int = 0
    sum_wy: int = 0
    sum_yy: int = 0
    sum_w_log: int | None = 0

    @classmethod
    def of(
        cls, values: np.typing.ArrayLike, weights: np.typing.ArrayLike | None = None, *, skip_nan: bool = False, logs: bool = False
    ) -> Moments:
        """Sum `values`, float64[n_queries], with `weights`, float64[n_queries], finite and not negative, or None.

        NaN values make the mean NaN; `skip_nan` leaves them out. `logs` sums the logarithms too, for `geometric_mean`. InputError
        where a value is infinite, or a weight so large that its product with a value is.
        """
        x = np.ascontiguousarray(values, dtype=np.float64)
        w = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        n_nan = 0
        if not np.isfinite(x).all():
            number = ~np.isnan(x)
            n_nan = len(x) - int(np.count_nonzero(number))
            x, w = x[number], None if w is None else w[number]
            if not np.isfinite(x).all():
                raise InputError(f"values must be finite or NaN, but one is {x[~np.isfinite(x)][0]}.")
        n = len(x)
        log = None
        if logs or not n:
            # math.log and not np.log: the same bits wherever a value stands in its batch.
            log = np.fromiter(map(math.log, np.maximum(x, _LEAST_IN_LOG).tolist()), dtype=np.float64, count=n)
        if w is None:
            sum_x, sum_yy = _sums(x)
            sum_w, sum_ww, sum_wx, sum_wy = n << SCALE, n << 2 * SCALE, sum_x << SCALE, sum_x << SCALE
            sum_w_log = None if log is None else _sums(log)[0] << SCALE
        else:
            with np.errstate(over="ignore"):  # complained of in the next line
                y = w * x
            if not np.isfinite(y).all():
                raise InputError(f"weights must be finite and small enough to multiply a value, but one is {w[~np.isfinite(y)][0]}.")
            sum_w, sum_ww = _sums(w)
            sum_wx, sum_wy, sum_yy = _sum_of_products(w, x), _sum_of_products(w, y), _sums(y)[1]
            sum_w_log = None if log is None else _sum_of_products(w, log)
        n_skipped = n_nan if skip_nan else 0
        return cls(n, n_nan - n_skipped, n_skipped, sum_w, sum_ww, sum_wx, sum_wy, sum_yy, sum_w_log)

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        sums: dict[str, Any] = {}
        for name in (field.name for field in dataclasses.fields(self)):
            one, two = getattr(self, name), getattr(other, name)
            sums[name] = None if one is None or two is None else one + two
        return Moments(**sums)

    @property
    def total(self) -> float:
        """Σ w x, correctly rounded; NaN where a value is NaN; 0 without values."""
        return math.nan if self.n_nan else _divide(self.sum_wx, 1 << 2 * SCALE)

    @property
    def mean(self) -> float:
        """Σ w x / Σ w, correctly rounded; NaN without values, without weight, or where a value is NaN."""
        return math.nan if self.n_nan or not self.sum_w else _divide(self.sum_wx, self.sum_w << SCALE)

    @property
    def geometric_mean(self) -> float:
        """The exponential of the weighted mean of log(max(x, 1e-5)); the logarithms must have been asked for. Source: trec_eval, gm_map."""
        if self.sum_w_log is None:
            raise InputError("these moments hold no logarithms: ask for them with logs=True.")
        return math.nan if self.n_nan or not self.sum_w else math.exp(_divide(self.sum_w_log, self.sum_w << SCALE))

    @property
    def variance(self) -> float:
        """The squared standard error times n, correctly rounded; without weights the sample variance (n - 1) of the values.

        NaN for fewer than two values.
        """
        numerator, denominator = self._squared_error()
        return _divide(self.n * numerator, denominator) if denominator else math.nan

    @property
    def standard_error(self) -> float:
        """The standard error of the mean; NaN for fewer than two values."""
        numerator, denominator = self._squared_error()
        if not denominator:
            return math.nan
        # Scaled by a power of 4 to about 1, so that the square of a representable error may be out of range.
        half = (numerator.bit_length() - denominator.bit_length()) // 2
        scaled = numerator / (denominator << 2 * half) if half >= 0 else (numerator << -2 * half) / denominator
        return math.ldexp(math.sqrt(scaled), half)

    def _squared_error(self) -> tuple[int, int]:
        """Numerator and denominator of the squared standard error, exact; the denominator is 0 where there is none."""
        if self.n_nan or self.n < 2 or not self.sum_w:
            return 0, 0
        # mean = top / bottom; Σ (y - w · mean)² · bottom² is a whole number, and not negative.
        top, bottom = self.sum_wx, self.sum_w << SCALE
        deviations = self.sum_yy * bottom * bottom - 2 * top * bottom * self.sum_wy + top * top * self.sum_ww
        return self.n * deviations, (self.n - 1) * (bottom * self.sum_w) ** 2

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Student's t interval of the mean, n - 1 degrees of freedom; NaN for fewer than two values.

        InputError where confidence does not lie strictly between 0 and 1.
        """
        if not 0 < confidence < 1:
            raise InputError(f"confidence must lie strictly between 0 and 1, such as 0.95, not {confidence!r}.")
        if self.n < 2:
            return math.nan, math.nan
        half = t_quantile(float(confidence), self.n - 1) * self.standard_error
        return self.mean - half, self.mean + half

    def to_dict(self) -> dict[str, int | str | None]:
        """The counts, and the sums as hexadecimal text, since JSON readers keep no integers of this size."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value if value is None or name.startswith("n") else hex(value) for name, value in fields.items()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, int | str | None]) -> Moments:
        """The moments that `to_dict` wrote."""
        sums: dict[str, Any] = {name: int(value, 16) if isinstance(value, str) else value for name, value in fields.items()}
        return cls(**sums)


# --- Student's t ----------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def t_quantile(confidence: float, freedom: int) -> float:
    """The t for which a Student's t variable lies between -t and t with probability ``confidence``, strictly between 0 and 1.

    As scipy's stdtrit(freedom, (1 + confidence) / 2), which takes longer to import than most evaluations take.

    Newton's method from below on the probability, which is concave in t, so every step stays below the solution until rounding ends it.
    The probability is I(y; 1/2, n/2) with y = t² / (n + t²) and n = ``freedom``, or, where t² > n, one minus I(1 - y; n/2, 1/2); each as
    its hypergeometric series of positive terms, so nothing cancels. Source: Abramowitz and Stegun, 26.5.4, 26.5.2 and 26.7.1.

    >>> round(t_quantile(0.95, 10), 6)
    2.228139
    """
    n = float(freedom)
    peak = _gamma_ratio(n / 2) / math.sqrt(math.pi * n)  # the density at 0
    t = confidence / (2 * peak)
    while True:
        if t * t <= n:
            density = peak * math.exp(-(n + 1) / 2 * math.log1p(t * t / n))
            missing = confidence - 2 * t * density * _series((n + 1) / 2, 1.5, t * t / (n + t * t))
        else:
            density = peak * (1 + t * t / n) ** (-(n + 1) / 2)
            beyond = 2 * t * density / n * _series((n + 1) / 2, n / 2 + 1, n / (n + t * t))
            missing = beyond - (1 - confidence)
        better = t + missing / (2 * density)
        if not better > t:
            return t
        t = better


def _gamma_ratio(a: float) -> float:
    """Gamma(a + 1/2) / Gamma(a)."""
    if a < _MANY:
        return math.gamma(a + 0.5) / math.gamma(a)
    return math.sqrt(a) * sum(term / a**power for power, term in enumerate(_RATIO))


def _series(a: float, c: float, x: float) -> float:
    """The hypergeometric function F(a, 1; c; x) for 0 <= x <= 1/2, or for terms that fall in the end as fast."""
    total, term, k = 0.0, 1.0, 0
    while total + term > total:
        total += term
        term *= (a + k) / (c + k) * x
        k += 1
    return total

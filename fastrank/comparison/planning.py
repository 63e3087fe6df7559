"""How many queries it takes: the power of the paired t test, which the other tests come close to.

With n queries, a true mean difference d and differences that spread by s, t follows Student's distribution with n - 1 degrees of freedom,
off centre by d / s · sqrt(n); the power is the chance that it is further from 0 than the critical value.
Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2; Sakai, Information Retrieval Journal 2016.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from fastrank.comparison.intervals import check_confidence, t_quantile
from fastrank.errors import InputError

# More queries than anyone has.
MOST_QUERIES = 10**12
# So far off centre the numerator of t counts as fixed.
_FAR = 25.0
# From here on Student's distribution is the normal one to 5 digits, and series for it converge slowly.
_NORMAL_FROM = 100_000


def power(n_queries: int, difference: float, sd: float, *, confidence: float = 0.95) -> float:
    """The chance that a paired, two-sided test on n queries sees a true difference of two means, at the level 1 - confidence.

    Parameters
    ----------
    n_queries
        Queries judged for both systems, 2 or more.
    difference
        The true difference of the means.
    sd
        The standard deviation of the differences over queries.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.

    Examples
    --------
    >>> import fastrank as fr
    >>> round(fr.power(50, 0.05, 0.1), 3)
    0.934
    """
    n = _count(n_queries)
    return _power(n, abs(_number("difference", difference)), _positive("sd", sd), check_confidence(confidence))


def queries_needed(difference: float, sd: float, *, power: float = 0.8, confidence: float = 0.95) -> int:
    """The fewest queries on which a paired test sees a true difference of two means with the given power.

    Parameters
    ----------
    difference
        The true difference of the means, not 0.
    sd
        The standard deviation of the differences over queries.
    power
        The chance of seeing it, below 1.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.

    Examples
    --------
    >>> import fastrank as fr
    >>> fr.queries_needed(0.05, 0.1)
    34
    >>> fr.queries_needed(0.01, 0.1, power=0.9)
    1053
    """
    difference = abs(_number("difference", difference))
    if not difference:
        raise InputError("difference must not be 0: no number of queries shows that nothing is there.")
    sd, power, confidence = _positive("sd", sd), _share("power", power), check_confidence(confidence)
    return fewest(difference, sd, power, confidence)


def smallest_difference(n_queries: int, sd: float, *, power: float = 0.8, confidence: float = 0.95) -> float:
    """The smallest true difference of two means that a paired test on n queries sees with the given power.

    Parameters
    ----------
    n_queries
        Queries judged for both systems, 2 or more.
    sd
        The standard deviation of the differences over queries.
    power
        The chance of seeing it, below 1.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 2.

    Examples
    --------
    >>> import fastrank as fr
    >>> round(fr.smallest_difference(34, 0.1), 4)
    0.0495
    """
    n, sd, power, confidence = _count(n_queries), _positive("sd", sd), _share("power", power), check_confidence(confidence)
    return least(n, sd, power, confidence)


def fewest(difference: float, sd: float, power: float, confidence: float) -> int:
    """`queries_needed` of checked arguments; MOST_QUERIES where even those do not do."""
    if not sd:
        return 2
    guess = _normal_guess(difference / sd, power, confidence)
    if guess >= MOST_QUERIES:
        return MOST_QUERIES
    # The normal guess is a few queries short; where it is not, the search starts from nothing.
    low = max(1, math.floor(guess) - 1)
    if low > 1 and _power(low, difference, sd, confidence) >= power:
        low = 1
    step, high = 1, low + 1
    while _power(high, difference, sd, confidence) < power:
        low, step = high, 2 * step
        high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _power(middle, difference, sd, confidence) >= power else (middle, high)
    return high


def _normal_guess(effect: float, power: float, confidence: float) -> float:
    """The queries it would take if t were normal: ((z of the level + z of the power) / effect)²."""
    from scipy.special import ndtri

    return float(((ndtri((1 + confidence) / 2) + ndtri(power)) / effect) ** 2)


def least(n: int, sd: float, power: float, confidence: float) -> float:
    """`smallest_difference` of checked arguments."""
    return sd * _least_effect(n, power, confidence)


@functools.lru_cache(maxsize=256)
def _least_effect(n: int, power: float, confidence: float) -> float:
    """The smallest difference that n queries show, in standard deviations of the differences."""
    low, high = 0.0, 1 / math.sqrt(n)
    while _power(n, high, 1.0, confidence) < power:
        low, high = high, high * 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _power(n, middle, 1.0, confidence) >= power else (middle, high)
    return high


def power_curve(n_queries: int, difference: float, sd: float, confidence: float) -> list[tuple[int, float]]:
    """Queries and power: from a tenth of those at hand to ten times as many, and on to where a difference would be seen."""
    needed = fewest(difference, sd, 0.95, confidence) if difference else n_queries
    first, last = max(2, min(n_queries // 10, needed // 20)), min(max(10 * n_queries, needed), MOST_QUERIES)
    steps = 60
    sizes = sorted({round(first * (last / first) ** (i / steps)) for i in range(steps + 1)} | {max(2, n_queries)})
    return [(n, _power(n, difference, sd, confidence)) for n in sizes]


def powers(n: int, effects: np.ndarray, confidence: float) -> np.ndarray:
    """The power on n queries for each effect, a difference in standard deviations of the differences, 0 or above."""
    from scipy.special import gammainc, nctdtr, ndtr, ndtri

    off = effects * math.sqrt(n)
    if n > _NORMAL_FROM:
        critical = float(ndtri((1 + confidence) / 2))
        return np.asarray(ndtr(off - critical) + ndtr(-off - critical))
    degrees, critical = n - 1, t_quantile(n - 1, (1 + confidence) / 2)
    near = np.minimum(off, _FAR)
    # The series for the tail on the other side ends in NaN where the tail is too small to matter.
    other = np.nan_to_num(nctdtr(degrees, near, -critical), nan=0.0)
    # Far off centre only the spread in the denominator of t, a root of chi-square over its degrees, can keep it below the critical value.
    far = gammainc(degrees / 2, degrees / 2 * (off / critical) ** 2)
    return np.clip(np.where(off < _FAR, 1 - nctdtr(degrees, near, critical) + other, far), 0.0, 1.0)


def _power(n: int, difference: float, sd: float, confidence: float) -> float:
    effect = difference / sd if sd else (math.inf if difference else 0.0)
    return float(powers(n, np.array([effect]), confidence)[0])


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not math.isfinite(number := float(value)):
        raise InputError(f"{name} must be a finite number, not {value!r}.")
    return number


def _positive(name: str, value: Any) -> float:
    number = _number(name, value)
    if number < 0:
        raise InputError(f"{name} must not be negative, but it is {value!r}.")
    return number


def _share(name: str, value: Any) -> float:
    number = _number(name, value)
    if not 0 < number < 1:
        raise InputError(f"{name} must lie strictly between 0 and 1, such as 0.8, not {value!r}.")
    return number


def _count(value: Any) -> int:
    if isinstance(value, bool) or int(value) != value or value < 2:
        raise InputError(f"n_queries must be a whole number from 2 up, not {value!r}.")
    return int(value)

"""How large an experiment on positions must be."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank.clicks.checks import check_level, normal_quantile
from fastrank.clicks.outcome import Outcome
from fastrank.errors import InputError


@dataclass(frozen=True, repr=False, eq=False)
class SwapSample(Outcome):
    """What it takes to know theta_k to a share of itself.

    Attributes
    ----------
    half_width, level
        The interval theta_k · exp(± half_width) and its confidence.
    clicks
        Clicks needed at each of the two positions if they have as many.
    clicks_at_k
        Clicks needed at position k if those at the anchor are many more.
    sessions
        Sessions needed for each of the two orders, given the click-through rates; NaN without them.
    """

    half_width: float
    level: float
    clicks: int
    clicks_at_k: int
    sessions: float

    def columns(self) -> dict[str, Any]:
        """One row."""
        return {name: np.array([getattr(self, name)]) for name in ("half_width", "level", "clicks", "clicks_at_k", "sessions")}


def swap_sample(half_width: float = 0.1, rates: tuple[float, float] | None = None, level: float = 0.95) -> SwapSample:
    """How many clicks and sessions a swap experiment needs for an interval of theta_k of a given relative half-width.

    The variance of log theta_k is (1 - p_1) / c_1 + (1 - p_k) / c_k, of which 1 / c_1 + 1 / c_k is an upper bound that needs no rates:
    it must be (half_width / z)².

    Parameters
    ----------
    half_width
        0.1 for theta_k known to 10% up and down.
    rates
        The click-through rates at the anchor and at position k, over both orders: then `sessions` is known.
    level
        The confidence of the interval.

    Errors: `InputError`.

    Examples
    --------
    >>> from fastrank.clicks import swap_sample
    >>> needed = swap_sample(0.1, rates=(0.1, 0.035))
    >>> needed.clicks, needed.clicks_at_k, needed.sessions
    (769, 385, 14049.0)
    """
    level = check_level(level)
    if isinstance(half_width, bool) or not isinstance(half_width, int | float | np.number) or not 0 < half_width < math.inf:
        raise InputError(f"half_width must be a number above 0, such as 0.1 for 10%, not {half_width!r}.")
    variance = (float(half_width) / normal_quantile(level)) ** 2
    sessions = math.nan
    if rates is not None:
        if len(rates) != 2 or not all(0 < rate <= 1 for rate in rates):
            raise InputError(f"rates must be two click-through rates above 0 and up to 1, such as (0.1, 0.035), not {rates!r}.")
        sessions = float(math.ceil(sum((1 - rate) / rate for rate in rates) / variance))
    return SwapSample(float(half_width), level, math.ceil(2 / variance), math.ceil(1 / variance), sessions)

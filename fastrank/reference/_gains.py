"""Gain of a label and discount of a rank, by name or by table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrank.errors import InputError
from fastrank.reference._layout import FloatArray

Gain = str | Mapping[Any, float] | ArrayLike
Discount = str | ArrayLike


def gains_of(labels: NDArray[Any], gain: Gain) -> FloatArray:
    """The gain of each label; an unjudged document gains nothing."""
    values = labels.astype(np.float64)
    unjudged = np.flatnonzero(np.isnan(values)) if labels.dtype.kind == "f" else np.empty(0, dtype=np.int64)
    values[unjudged] = 0.0
    if isinstance(gain, str) and ">=" in gain:
        name, _, least = gain.partition(">=")
        gains = np.where(values >= float(least), gains_of(values, name), 0.0)
        gains[unjudged] = 0.0
        return gains
    if isinstance(gain, str):
        if gain == "exp2":
            with np.errstate(over="ignore"):
                np.exp2(values, out=values)
            values -= 1.0
            if values.size and np.isinf(values.max()):
                raise InputError(f"labels must stay below 1024 under gain='exp2': got {np.nanmax(labels)}. Use gain='linear' or a table.")
        elif gain != "linear":
            raise InputError(f"gain must be 'exp2', 'linear', or a table of gains by label: got {gain!r}.")
        return values
    table: dict[Any, Any] = dict(gain) if isinstance(gain, Mapping) else dict(enumerate(np.asarray(gain, dtype=np.float64).tolist()))
    judged = np.delete(values, unjudged)
    others = table.pop("others", None)
    if others is not None:
        table = {label: float(gains_of(np.array([label]), others)[0]) for label in np.unique(judged).tolist()} | table
    # Labels are few: look each up once.
    distinct = np.unique(judged)
    for label in distinct:
        if label not in table:
            raise InputError(f"gain has no entry for label {label:g}: add one, or use gain='exp2' or 'linear'.")
    gain_of_label = np.array([table[label] for label in distinct], dtype=np.float64)
    if len(distinct):
        values = gain_of_label[np.minimum(np.searchsorted(distinct, values), len(distinct) - 1)]
    values[unjudged] = 0.0
    return values


def discounts_of(n_ranks: int, discount: Discount) -> FloatArray:
    """The discounts of ranks 1 ... n_ranks; a table is 0 beyond its end."""
    rank = np.arange(1, n_ranks + 1, dtype=np.float64)
    if not isinstance(discount, str):
        given = np.asarray(discount, dtype=np.float64)[:n_ranks]
        return np.concatenate((given, np.zeros(n_ranks - len(given))))
    name, _, text = discount.partition(":")
    if discount == "log2":
        return 1.0 / np.log2(rank + 1.0)
    if discount == "ln":
        return 1.0 / np.log(rank + 1.0)
    if discount == "zipf":
        return 1.0 / rank
    try:
        parameter = float(text)
    except ValueError:
        parameter = np.nan
    if name == "power" and parameter >= 0:
        return rank**-parameter
    if name == "geometric" and 0 <= parameter <= 1:
        return parameter ** (rank - 1.0)
    if name == "jarvelin" and parameter > 1:
        # Ranks below the base are undiscounted; log_b(b) = 1 joins the two pieces.
        return np.asarray(np.log(parameter) / np.log(np.maximum(rank, parameter)))
    if name == "step" and parameter >= 1:
        return np.where(rank > parameter, 0.0, 1.0)
    known = "log2, ln, zipf, power:B, geometric:P (0 to 1), jarvelin:B (above 1), step:K (from 1) or a table"
    raise InputError(f"discount must be {known}: got {discount!r}.")

"""Gains of labels and discounts of ranks, as tables of numbers.

Kernels see only arrays, so one compiled loop serves every gain and every discount, the user's own included.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastrank.errors import InputError

if TYPE_CHECKING:
    import numpy as np

GAINS = ("exp2", "linear")
DISCOUNTS = ("log2", "ln", "zipf", "power:B", "geometric:P", "jarvelin:B")

# 2^1000 summed over eight million documents is still a finite double.
LARGEST_EXP2_LABEL = 1000


@dataclass(frozen=True)
class GainTable:
    """Gain of each label, as given: a label without an entry is an error."""

    entries: tuple[tuple[float, float], ...]

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{tidy(label)!r}: {tidy(gain)!r}" for label, gain in self.entries) + "}"


@dataclass(frozen=True)
class DiscountTable:
    """Discount of ranks 1, 2, ...; 0 beyond its end."""

    values: tuple[float, ...]

    def __repr__(self) -> str:
        return repr([tidy(value) for value in self.values])


@dataclass(frozen=True)
class Indicator:
    """Gain 1 from a label on, 0 below: binary relevance as a gain."""

    least: float


Gain = str | GainTable | Indicator
Discount = str | DiscountTable


def tidy(number: float) -> float | int:
    """2.0 as 2: numbers print the way people type them."""
    return int(number) if float(number).is_integer() else float(number)


def _numbers(values: Iterable[Any], what: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        raise InputError(f"{what} must hold numbers, not {list(values)!r}.") from None
    for place, number in enumerate(numbers):
        if not math.isfinite(number):
            raise InputError(f"{what} must be finite: entry {place} is {number}.")
    return numbers


def as_gain(value: Any) -> Gain:
    """Read a gain: a name, a table {label: gain}, or a sequence indexed by label."""
    if isinstance(value, GainTable | Indicator) or (isinstance(value, str) and value in GAINS):
        return value
    if isinstance(value, str):
        raise InputError(f"gain {value!r} is not known. Use 'exp2' (2^label - 1), 'linear', or a table such as {{0: 0, 1: 1, 2: 3}}.")
    if isinstance(value, Mapping):
        labels, gains = _numbers(value, "gain labels"), _numbers(value.values(), "gain table")
    elif hasattr(value, "__iter__"):
        gains = _numbers(value, "gain table")
        labels = tuple(float(label) for label in range(len(gains)))
    else:
        raise InputError(f"gain must be a name, a table or a sequence, not {value!r}.")
    if not gains:
        raise InputError("the gain table is empty. Give every label its gain, such as {0: 0, 1: 1}.")
    return GainTable(tuple(sorted(zip(labels, gains, strict=True))))


def as_discount(value: Any) -> Discount:
    """Read a discount: a name, possibly with a number after a colon, or a sequence over ranks 1, 2, ..."""
    if isinstance(value, DiscountTable):
        return value
    if isinstance(value, str):
        _named_discount(value)
        return value
    if not hasattr(value, "__iter__") or isinstance(value, Mapping):
        raise InputError(f"discount must be a name or a sequence over ranks 1, 2, ..., not {value!r}.")
    values = _numbers(value, "discount table")
    if not values:
        raise InputError("the discount table is empty. Give one number a rank, starting with rank 1.")
    return DiscountTable(values)


def _named_discount(name: str) -> tuple[str, float]:
    """Split 'power:0.5' into its rule and its number, both checked."""
    kind, colon, text = name.partition(":")
    if kind in ("log2", "ln", "zipf") and not colon:
        return kind, 0.0
    if kind in ("power", "geometric", "jarvelin") and colon:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        legal = {"power": 0 < number < math.inf, "geometric": 0 < number < 1, "jarvelin": 1 < number < math.inf}
        if legal[kind]:
            return kind, number
        rule = {"power": "a number above 0", "geometric": "a number between 0 and 1", "jarvelin": "a base above 1"}
        raise InputError(f"discount {name!r}: {kind} takes {rule[kind]} after the colon, such as 'power:0.5'.")
    raise InputError(f"discount {name!r} is not known. Use {', '.join(DISCOUNTS)}, or an array over ranks 1, 2, ...")


def gains_of(labels: np.ndarray, gain: Gain) -> np.ndarray:
    """Gain of each label, float64. Labels without an entry in a table gain 0: `check_gain` has named them before."""
    import numpy as np

    if gain == "exp2":
        return np.exp2(labels) - 1.0
    if gain == "linear":
        return labels.astype(np.float64, copy=True)
    if isinstance(gain, Indicator):
        return (labels >= gain.least).astype(np.float64)
    assert isinstance(gain, GainTable)
    known = np.array([label for label, _ in gain.entries])
    values = np.array([value for _, value in gain.entries])
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.where(known[place] == labels, values[place], 0.0)


def gain_of_zero(gain: Gain) -> float:
    """Gain of label 0: when it is not 0, every judged document counts."""
    return next((value for label, value in gain.entries if label == 0), 0.0) if isinstance(gain, GainTable) else 0.0


@functools.cache
def rises(gain: Gain) -> bool:
    """Whether a larger label never gains less, so that ordering by label is ordering by gain. An unjudged document gains 0, as label 0."""
    entries = gain.entries if isinstance(gain, GainTable) else ()
    values = [value for _, value in entries]
    agrees = all(value <= 0 if label < 0 else value >= 0 for label, value in entries)
    return agrees and all(a <= b for a, b in itertools.pairwise(values))


@functools.lru_cache(maxsize=64)
def _discounts(discount: Discount, size: int) -> np.ndarray:
    import numpy as np

    rank = np.arange(1, size + 1, dtype=np.float64)
    if isinstance(discount, DiscountTable):
        table = np.zeros(size)
        kept = min(size, len(discount.values))
        table[:kept] = discount.values[:kept]
    else:
        kind, number = _named_discount(discount)
        if kind == "log2":
            table = 1.0 / np.log2(rank + 1.0)
        elif kind == "ln":
            table = 1.0 / np.log(rank + 1.0)
        elif kind == "zipf":
            table = 1.0 / rank
        elif kind == "power":
            table = rank**-number
        elif kind == "geometric":
            table = number ** (rank - 1.0)
        else:
            table = np.where(rank < number, 1.0, 1.0 / (np.log(np.maximum(rank, number)) / math.log(number)))
    table.setflags(write=False)
    return table


def discounts(discount: Discount, n_ranks: int) -> np.ndarray:
    """Discount of ranks 1 ... at least n_ranks. Sizes are powers of two, so that few tables are made and kept."""
    return _discounts(discount, 1 << max(6, (max(n_ranks, 1) - 1).bit_length()))


def describe_gain(gain: Gain) -> str:
    """The gain as it stands in a formula."""
    return {"exp2": "(2^label - 1)", "linear": "label"}[gain] if isinstance(gain, str) else f"gain {gain!r}[label]"


def describe_discount(discount: Discount) -> str:
    """The discount as it follows the gain in a formula, r the rank."""
    if isinstance(discount, DiscountTable):
        return " * discount[r]"
    kind, number = _named_discount(discount)
    value = tidy(number)
    return {
        "log2": " / log2(r + 1)",
        "ln": " / ln(r + 1)",
        "zipf": " / r",
        "power": f" / r^{value}",
        "geometric": f" * {value}^(r - 1)",
        "jarvelin": f" / max(1, log_{value}(r))",
    }[kind]

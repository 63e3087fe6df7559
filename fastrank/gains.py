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
DISCOUNTS = ("log2", "ln", "zipf", "power:B", "geometric:P", "jarvelin:B", "step:K")

# 2^1000 summed over eight million documents is still a finite double.
LARGEST_EXP2_LABEL = 1000
# Labels that are their own gains, and gains of a table, are held to the same.
LARGEST_NUMBER = 2.0**1000
LARGEST_DISCOUNT = 2.0**20


@dataclass(frozen=True)
class GainTable:
    """Gain of each label, as given. A label without an entry has the gain that `others` names, or is an error (None)."""

    entries: tuple[tuple[float, float], ...]
    others: str | None = None

    def __repr__(self) -> str:
        entries = [f"{tidy(label)!r}: {tidy(gain)!r}" for label, gain in self.entries]
        return "{" + ", ".join([*entries, *([] if self.others is None else [f"'others': {self.others!r}"])]) + "}"


@dataclass(frozen=True)
class DiscountTable:
    """Discount of ranks 1, 2, ...; 0 beyond its end."""

    values: tuple[float, ...]

    def __repr__(self) -> str:
        return repr([tidy(value) for value in self.values])


@dataclass(frozen=True)
class Indicator:
    """Gain 1 from a label on, and below another; 0 elsewhere: binary relevance as a gain."""

    least: float
    below: float = math.inf


@dataclass(frozen=True)
class Scaled:
    """Gain 0 up to a label, 1 from another on, and a straight line between them."""

    low: float
    high: float


Gain = str | GainTable | Indicator | Scaled
Discount = str | DiscountTable


def tidy(number: float) -> float | int:
    """2.0 as 2: numbers print the way people type them."""
    return int(number) if float(number).is_integer() else float(number)


def _numbers(values: Iterable[Any], what: str, most: float = LARGEST_NUMBER) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} must hold numbers, not {list(values)!r}.") from None
    for place, number in enumerate(numbers):
        if not abs(number) <= most:
            raise InputError(f"{what} must be finite, at most {most:g}: entry {place} is {number}.")
    return numbers


def _has_order(value: Any) -> bool:
    """Whether it holds numbers one after the other: bytes are no numbers to the one who writes them, an array of no dimension holds one."""
    return hasattr(value, "__iter__") and not isinstance(value, Mapping | set | frozenset | bytes) and getattr(value, "ndim", 1) > 0


def as_gain(value: Any) -> Gain:
    """Read a gain: a name, a table {label: gain}, or a sequence indexed by label.

    After a name ">=2" takes the gain from labels below 2. A table may say with the key "others" which gain labels without an entry have.
    """
    if isinstance(value, GainTable | Indicator | Scaled):
        return value
    if isinstance(value, str):
        _named_gain(value)
        return value
    others = None
    if isinstance(value, Mapping):
        entries = dict(value)
        if "others" in entries:
            others = str(entries.pop("others"))
            _named_gain(others)
        labels, gains = _numbers(entries, "gain labels"), _numbers(entries.values(), "gain table")
    elif _has_order(value):
        gains = _numbers(value, "gain table")
        labels = tuple(float(label) for label in range(len(gains)))
    else:
        raise InputError(f"gain must be a name, a table or a sequence, not {value!r}.")
    if not gains:
        raise InputError("the gain table is empty. Give every label its gain, such as {0: 0, 1: 1}.")
    return GainTable(tuple(sorted(zip(labels, gains, strict=True))), others)


@functools.cache
def _named_gain(name: str) -> tuple[str, float]:
    """Split 'linear>=2' into the gain's name and the lowest label that has it (-inf without a bound), both checked."""
    kind, sign, text = name.partition(">=")
    try:
        least = float(text) if sign else -math.inf
    except ValueError:
        least = math.nan
    if kind not in GAINS or math.isnan(least):
        examples = "'exp2' (2^label - 1), 'linear', 'linear>=2' (nothing below label 2), or a table such as {0: 0, 1: 1, 2: 3}"
        raise InputError(f"gain {name!r} is not known. Use {examples}.")
    return kind, least


def as_discount(value: Any) -> Discount:
    """Read a discount: a name, possibly with a number after a colon, or a sequence over ranks 1, 2, ..."""
    if isinstance(value, DiscountTable):
        return value
    if isinstance(value, str):
        _named_discount(value)
        return value
    if not _has_order(value):
        cure = " Of a function give the values: fastrank.analysis.discount_table(function, n)." if callable(value) else ""
        raise InputError(f"discount must be a name or a sequence over ranks 1, 2, ..., not {value!r}.{cure}")
    values = _numbers(value, "discount table", LARGEST_DISCOUNT)
    if not values:
        raise InputError("the discount table is empty. Give one number a rank, starting with rank 1.")
    return DiscountTable(values)


def _named_discount(name: str) -> tuple[str, float]:
    """Split 'power:0.5' into its rule and its number, both checked."""
    kind, colon, text = name.partition(":")
    if kind in ("log2", "ln", "zipf") and not colon:
        return kind, 0.0
    if kind in ("power", "geometric", "jarvelin", "step") and colon:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        legal, rule, example = {
            "power": (0 < number < math.inf, "a number above 0", "power:0.5"),
            "geometric": (0 < number < 1, "a number between 0 and 1", "geometric:0.5"),
            "jarvelin": (1 < number < math.inf, "a base above 1", "jarvelin:2"),
            "step": (number >= 1 and number.is_integer(), "a whole number from 1 up", "step:10"),
        }[kind]
        if legal:
            return kind, number
        raise InputError(f"discount {name!r}: {kind} takes {rule} after the colon, such as '{example}'.")
    raise InputError(f"discount {name!r} is not known. Use {', '.join(DISCOUNTS)}, or an array over ranks 1, 2, ...")


def gains_of(labels: np.ndarray, gain: Gain) -> np.ndarray:
    """Gain of each label, float64. Labels without an entry in a table gain 0: `check_gain` has named them before."""
    import numpy as np

    if isinstance(gain, str):
        kind, least = _named_gain(gain)
        gains = np.exp2(labels) - 1.0 if kind == "exp2" else labels.astype(np.float64, copy=True)
        return gains if least == -math.inf else np.where(labels >= least, gains, 0.0)
    if isinstance(gain, Indicator):
        return ((labels >= gain.least) & (labels < gain.below)).astype(np.float64)
    if isinstance(gain, Scaled):
        return (np.clip(labels, gain.low, gain.high) - gain.low) / (gain.high - gain.low)
    known = np.array([label for label, _ in gain.entries])
    values = np.array([value for _, value in gain.entries])
    place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.where(known[place] == labels, values[place], 0.0 if gain.others is None else gains_of(labels, gain.others))


@functools.lru_cache(maxsize=64)
def gain_table(gain: Gain | None, n: int) -> np.ndarray:
    """Gain of labels 0, 1, ... below n; without a gain all are 0."""
    import numpy as np

    table = np.zeros(n) if gain is None else gains_of(np.arange(n, dtype=np.float64), gain)
    table.setflags(write=False)
    return table


def gain_of_zero(gain: Gain) -> float:
    """Gain of label 0: when it is not 0, every judged document counts."""
    return next((value for label, value in gain.entries if label == 0), 0.0) if isinstance(gain, GainTable) else 0.0


@functools.cache
def largest_label(gain: Gain) -> float:
    """The largest label whose gain cannot overflow a sum."""
    names = (gain, gain.others) if isinstance(gain, GainTable) else (gain,)
    return LARGEST_EXP2_LABEL if any(isinstance(name, str) and name.startswith("exp2") for name in names) else LARGEST_NUMBER


@functools.cache
def rises(gain: Gain) -> bool:
    """Whether a larger label never gains less, so that ordering by label is ordering by gain. An unjudged document gains 0, as label 0."""
    if isinstance(gain, GainTable) and gain.others is not None:
        return False  # what stands between the entries could be anything
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
        elif kind == "step":
            table = (rank <= number).astype(np.float64)
        else:
            table = np.where(rank < number, 1.0, 1.0 / (np.log(np.maximum(rank, number)) / math.log(number)))
    table.setflags(write=False)
    return table


@functools.lru_cache(maxsize=64)
def discounts(discount: Discount, n_ranks: int) -> np.ndarray:
    """Discount of ranks 1 ... at least n_ranks. Sizes are powers of two, so that few tables are made and kept."""
    return _discounts(discount, 1 << max(6, (max(n_ranks, 1) - 1).bit_length()))


def describe_gain(gain: Gain) -> str:
    """The gain as it stands in a formula."""
    if isinstance(gain, Scaled):
        return f"min(max(label - {gain.low}, 0) / {tidy(gain.high - gain.low)}, 1)"
    if not isinstance(gain, str):
        return f"gain {gain!r}[label]"
    kind, least = _named_gain(gain)
    formula = {"exp2": "(2^label - 1)", "linear": "label"}[kind]
    return formula if least == -math.inf else f"({formula} if label >= {tidy(least)})"


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
        "step": f" * [r <= {value}]",
    }[kind]

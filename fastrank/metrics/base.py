"""What a metric is: a frozen value that carries its whole formula.

A family is a subclass of `Metric` in one of the files of this package. Defining it registers it: names, help, tables, property tests,
comparisons with the reference and benchmarks all read `families`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from fastrank.convention import NO_RELEVANT_RULES, TIE_RULES, Convention, one_of
from fastrank.errors import InputError
from fastrank.gains import Discount, Gain, tidy
from fastrank.metrics.working import Ranking, Work

if TYPE_CHECKING:
    import numpy as np

    from fastrank.metrics.view import View

Cutoff = int | Fraction | None
Reader = Callable[[str, Any], Any]

# Every family by its canonical name, in the order of definition.
families: dict[str, type[Metric]] = {}


class Request(NamedTuple):
    """What a metric wants from the walk down a query's documents. None: any will do."""

    k: Cutoff
    rel: float | None = None
    gain: Gain | None = None
    discount: Discount | None = None


# No list is so long, and every number up to it is a double.
LARGEST_CUTOFF = 1 << 53
# A share of the list has at most so many decimals: as many as a float just above 0 that anyone would write.
SHARE_DIGITS = 30


# --- parameters -----------------------------------------------------------------------------------------------------------------


def as_cutoff(name: str, value: Any) -> Cutoff:
    """Read a cutoff: a whole number from 1 up, or a share of the list strictly between 0 and 1."""
    cure = f"{name} must be a whole number from 1 up, or a share of the list between 0 and 1 such as 0.2 or '20%', not {value!r}."
    if isinstance(value, bool) or not isinstance(value, str | Number):
        raise InputError(cure)
    share = isinstance(value, str) and value.strip().endswith("%")
    try:
        text = str(value).strip()
        number = Fraction(text[:-1].strip()) / 100 if share else value if isinstance(value, Fraction) else Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(cure) from None
    # 1.0 could be a rank or the whole list: a rank is written as a whole number.
    if 1 <= number <= LARGEST_CUTOFF and (text.isdigit() if isinstance(value, str) else isinstance(value, Integral)):
        return int(number)
    if 0 < number < 1:
        if 10**SHARE_DIGITS % number.denominator:
            raise InputError(f"{name} as a share must be a decimal number such as 0.33 or '33.3%', not {value!r}.")
        return number
    if not share and number.denominator == 1 and 1 < number <= LARGEST_CUTOFF:
        raise InputError(f"{cure} Write {int(number)}.")
    raise InputError(cure + (" For the whole list leave it out." if number == 1 or number <= 0 or number > LARGEST_CUTOFF else ""))


def show_cutoff(k: Cutoff) -> str:
    """A cutoff as it stands in a name."""
    if isinstance(k, Fraction):
        whole, rest = divmod(k * 10**SHARE_DIGITS // 1, 10 ** (SHARE_DIGITS - 2))
        return f"{whole}.{rest:0{SHARE_DIGITS - 2}d}".rstrip("0").rstrip(".") + "%"
    return str(k)


def as_number(name: str, value: Any) -> float:
    """Read a finite number; strings of numbers are the grammar's business, not ours."""
    if isinstance(value, bool | str | bytes):
        raise InputError(f"{name} must be a number, not {value!r}.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, not {value!r}.") from None
    if not abs(number) < math.inf:
        raise InputError(f"{name} must be finite, not {value!r}.")
    return tidy(number)


def _as_rel(name: str, value: Any) -> float | str:
    if isinstance(value, str) and value.startswith(">"):
        try:
            bound = tidy(float(value[1:]))
        except ValueError:
            bound = -1
        if 0 <= bound < math.inf:
            return f">{bound}"
    elif not isinstance(value, str):
        number = as_number(name, value)
        if number > 0:
            return number
    raise InputError(f"rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not {value!r}.")


def as_flag(name: str, value: Any) -> bool | None:
    """Read a switch that is off unless it is given: False reads as not given."""
    if isinstance(value, bool):
        return value or None
    raise InputError(f"{name} must be True or False, not {value!r}.")


def as_share(name: str, value: Any) -> float:
    """Read a number from 0 to 1, possibly out of a name, where it is text."""
    try:
        number = as_number(name, float(value) if isinstance(value, str) else value)
    except ValueError:
        number = -1
    if 0 <= number <= 1:
        return number
    raise InputError(f"{name} must be a number from 0 to 1, not {value!r}.")


def as_whole(name: str, value: Any) -> int:
    """Read a whole number from 1 up."""
    number = as_number(name, value)
    if number >= 1 and float(number).is_integer():
        return int(number)
    raise InputError(f"{name} must be a whole number from 1 up, not {value!r}.")


def between(low: float, high: float = math.inf) -> Reader:
    """A reader of numbers strictly between two bounds."""

    def read(name: str, value: Any) -> float:
        number = as_number(name, value)
        if low < number < high:
            return number
        raise InputError(f"{name} must be above {low}" + (f" and below {high}" if high < math.inf else "") + f", not {value!r}.")

    return read


def word(*known: str) -> Reader:
    """A reader of one of the known words."""
    return lambda name, value: one_of(name, value, known)


def parameter(read: Reader, default: Any = None) -> Any:
    """A parameter of a family: how a given value is read, and its value when neither the name nor the convention sets it."""
    return field(default=None, metadata={"read": read, "default": default})


def rel_parameter() -> Any:
    """The lowest label that counts as relevant."""
    return parameter(_as_rel)


def no_relevant_parameter() -> Any:
    """The value of a query with nothing to find. A family that has it answers `nothing_to_find`."""
    return parameter(word(*NO_RELEVANT_RULES))


# --- the value ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A ranking metric: its family and every parameter that can change its value. None means: as the convention has it.

    Parameters common to all: `k`, the cutoff, a whole number or a share of each list (0.2 or "20%"); `ties`, the order of equal
    scores ("average", "input", "worst", "best", "docid"); `judged_only`, to leave unjudged documents out of the ranking; and, where a
    query may have nothing to find, `no_relevant` ("zero", "one", "nan", "skip").

    `at` is the parameter that stands after @ in a name; those in `own_defaults` keep the family's default under every convention that
    does not speak of the family. Where `has_bounds` is False, neither the best nor the worst order by label need have the greatest or
    the least value. A `grouped` family reads judgements by subtopic or judge.
    """

    family: ClassVar[str]
    title: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    source: ClassVar[str]
    example: ClassVar[str]
    aggregation: ClassVar[str] = "mean"
    higher_is_better: ClassVar[bool] = True
    whole_list_only: ClassVar[bool] = False
    sees_ties: ClassVar[bool] = True
    has_bounds: ClassVar[bool] = True
    grouped: ClassVar[bool] = False
    at: ClassVar[str] = "k"
    own_defaults: ClassVar[tuple[str, ...]] = ()

    k: Cutoff = parameter(as_cutoff)
    ties: str | None = parameter(word(*TIE_RULES))
    judged_only: bool | None = parameter(as_flag)
    spelled: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # The decorator writes a longer one where the class has none of its own.
        cls.__repr__ = Metric.__repr__  # type: ignore[method-assign]
        if "family" in cls.__dict__:
            families[cls.family] = cls

    def __post_init__(self) -> None:
        given = []
        for name in self.parameters():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, self._field(name).metadata["read"](name, value))
                given.append(name)
        if self.k is not None and self.whole_list_only:
            raise InputError(f"{self.family} takes no cutoff: it judges the whole list. Leave out k.")
        if self.spelled is None:
            object.__setattr__(self, "spelled", tuple(given))

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the parameters, the family's own first, the cutoff last."""
        common = ("spelled", "k", "ties", "judged_only", "no_relevant")
        names = [item.name for item in dataclasses.fields(cls) if item.name not in common]
        rule = ["no_relevant"] if cls.has_no_relevant_rule() else []
        ranking = ["ties"] if cls.sees_ties else []
        return (*names, *ranking, *rule, *(["judged_only"] if cls.sees_ties else []), "k")

    @classmethod
    def _field(cls, name: str) -> dataclasses.Field[Any]:
        return cls.__dataclass_fields__[name]

    @classmethod
    @functools.cache
    def has_no_relevant_rule(cls) -> bool:
        """Whether a query can have nothing to find, so that its value is a matter of convention."""
        return any(item.name == "no_relevant" for item in dataclasses.fields(cls))

    def tie_rules(self) -> tuple[str, ...]:
        """The orders of equal scores under which this metric is defined."""
        return TIE_RULES

    def fill(self, convention: Convention) -> Metric:
        """This metric with every unset parameter set by the convention, then by the family's own default."""
        values: dict[str, Any] = {}
        for name in self.parameters():
            value = getattr(self, name)
            if value is None:
                value = convention.parameter(self.family, name, general=name not in self.own_defaults)
            values[name] = self._field(name).metadata["default"] if value is None else value
        filled = dataclasses.replace(self, **values, spelled=self.spelled)
        if filled.sees_ties and filled.ties not in filled.tie_rules():
            filled = dataclasses.replace(filled, ties="worst" if "worst" in filled.tie_rules() else filled.tie_rules()[0])
        return filled

    def __repr__(self) -> str:
        given = {item.name: getattr(self, item.name) for item in dataclasses.fields(self) if item.name != "spelled"}
        return f"{self.family}({', '.join(f'{name}={value!r}' for name, value in given.items() if value is not None)})"

    def __str__(self) -> str:
        return self._named([name for name in self.parameters() if getattr(self, name) is not None])

    @property
    def short_name(self) -> str:
        """The name with the parameters that were spelled, without those that the convention filled in."""
        return self._named([name for name in self.parameters() if name in (self.spelled or ()) and getattr(self, name) is not None])

    def _named(self, shown: list[str]) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown if name != self.at)
        cutoff = f"@{show_cutoff(getattr(self, self.at))}" if self.at in shown else ""
        return self.family + (f"({inside})" if inside else "") + cutoff

    # --- what a family defines -------------------------------------------------------------------------------------------------

    @property
    def formula(self) -> str:
        """The formula with this metric's parameters in it, in plain text."""
        raise AssertionError(f"{type(self).__name__} defines no formula")

    def least_label(self) -> float:
        """Documents with a smaller label (and not below 0) cannot move the value."""
        raise AssertionError(f"{type(self).__name__} defines no least label")

    def requests(self) -> tuple[Request, ...]:
        """Columns wanted from the shared walk."""
        return ()

    def merit(self) -> Gain | None:
        """The gain that must fall down the list for the greatest value; None: the label does as well."""
        return None

    def values(self, view: View) -> np.ndarray:
        """The metric of each query, float64[n_queries], whatever stands for a query with nothing to find."""
        raise AssertionError(f"{type(self).__name__} defines no values")

    def write(self, view: View, out: np.ndarray) -> None:
        """Write the values to float64[n_queries]. A family whose kernel can do so itself defines this and no `values`."""
        out[...] = self.values(view)

    def nothing_to_find(self, view: View) -> np.ndarray:
        """True for queries whose value is the `no_relevant` rule's."""
        raise AssertionError(f"{type(self).__name__} has no rule for queries with nothing to find")

    def work(self, ranking: Ranking) -> Work:
        """The value of one query as a sum that a reader can follow. A family that shows none gets its documents listed."""
        least = self.least_label()
        rows = [ranking.row(block, relevant=block.n_relevant(least)) for block, _ in ranking.within(self.k)]
        return Work(rows, column=None)

    def check_depth(self) -> None:
        """Complain when this metric cannot be read off rankings that were cut with depth=."""

    def check_labels(self, largest: float, distinct: Callable[[], np.ndarray]) -> None:
        """Complain about labels that this metric cannot take; distinct() lists them all, which costs a sort."""


def threshold(rel: float | str | None) -> float:
    """The lowest label that counts as relevant. ">0.5" becomes the next double above 0.5, so one comparison serves both forms."""
    assert rel is not None
    return math.nextafter(float(rel[1:]), math.inf) if isinstance(rel, str) else float(rel)


def show_rel(rel: float | str | None) -> str:
    """The relevance rule as it stands in a formula."""
    return f"label > {rel[1:]}" if isinstance(rel, str) else f"label >= {rel}"


def up_to(k: Cutoff) -> str:
    """The cutoff as it stands in a formula, after the letter r."""
    return "" if k is None else f" <= {show_cutoff(k)}" + (" of the list" if isinstance(k, Fraction) else "")


# The smallest label that can have a gain: anything above 0.
ANY_GAIN = 5e-324

"""Which column of a table is what, and whether it can be."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fastrank.errors import InputError
from fastrank.io.arrow import is_id, is_number, is_text, value_type

IDS = ("query", "doc")
NUMBERS = ("label", "score", "weight")


def columns_named(role: str, given: Any) -> list[str]:
    """The columns that a caller named for a role: one as text, or several."""
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    for name in names:
        if not isinstance(name, str):
            raise InputError(f"{role} must be the name of a column, as text, not {name!r}.")
    return names


@dataclass(frozen=True)
class Roles:
    """Names of columns by what they are, and the rows that are wanted, as an expression of pyarrow.compute, or None for all."""

    query: str
    label: str | None
    scores: tuple[str, ...]
    doc: str | None = None
    weight: str | None = None
    by: tuple[str, ...] = ()
    filter: Any = None

    def __post_init__(self) -> None:
        for role, given in self.asked():
            name: object = given
            if not isinstance(name, str):
                raise InputError(f"{role} must be the name of a column, as text, not {name!r}.")
        for role, names in (("score", self.scores), ("by", self.by)):
            for name in names:
                if names.count(name) > 1:
                    raise InputError(f'{role} names the column "{name}" twice: name each column once.')
        if self.filter is not None and not isinstance(self.filter, pc.Expression):
            example = 'pyarrow.compute.field("locale") == "de"'
            raise InputError(f"filter must be an expression of pyarrow.compute, such as {example}, not {self.filter!r}.")

    def asked(self) -> Iterator[tuple[str, str]]:
        """Role and name of each column, as the caller knows them."""
        yield "query", self.query
        if self.label is not None:
            yield "label", self.label
        yield from (("score", name) for name in self.scores)
        yield from ((role, name) for role, name in (("doc", self.doc), ("weight", self.weight)) if name is not None)
        yield from (("by", name) for name in self.by)

    @property
    def columns(self) -> list[str]:
        """Names of all columns, each once."""
        return list(dict.fromkeys(name for _, name in self.asked()))

    def read(self, names: Sequence[str]) -> list[str]:
        """Which of the columns with these names must be read: those asked for, and those that the filter may look at."""
        return list(dict.fromkeys((*self.columns, *(name for name in self.filtered(names) if names.count(name) == 1))))

    def filtered(self, names: Sequence[str]) -> list[str]:
        """Which of the columns with these names the filter may look at: an expression does not tell, but spells them out."""
        text = "" if self.filter is None else str(self.filter)
        return [name for name in names if name in text]

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Every column must be there, once."""
        for role, name in self.asked():
            count = names.count(name)
            if count > 1:
                raise InputError(f'{role} column "{name}" stands {count} times in {where}: rename or drop all but one.')
            if count == 0:
                raise InputError(f'{role}: there is no column "{name}" in {where}; {_nearest(name, names)}.')

    def check_types(self, schema: pa.Schema, text: Collection[str] = ()) -> None:
        """Every column must be of a type that can play its part. ``text``: columns of a format that knows no other type."""
        for role, name in self.asked():
            of = schema.field(name).type
            values = value_type(of)
            if role in IDS and pa.types.is_floating(values):
                raise InputError(f'{role} column "{name}" is {of}, and floats are not ids: cast it to integer or string.')
            if role in IDS and not is_id(of):
                raise InputError(f'{role} column "{name}" is {of}, which cannot be an id: cast it to integer or string.')
            if role in NUMBERS and not is_number(of) and not (name in text and is_text(values)):
                raise InputError(f'{role} column "{name}" is {of}, not a number: cast it to float64, or name another column.')
            if role == "by" and not (is_id(of) or pa.types.is_floating(values)):
                raise InputError(f'by column "{name}" is {of}, which cannot be a slice: cast it to string.')


def _nearest(name: str, names: Sequence[str]) -> str:
    lower = {present.lower(): present for present in names}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower)]
    shown = ", ".join(f'"{present}"' for present in near or names[:8])
    if near:
        return f"the nearest name is {shown}" if len(near) == 1 else f"the nearest names are {shown}"
    return f"its columns are {shown}{', ...' if len(names) > 8 else ''}" if names else "it has no columns"

"""What is kept between the rounds of a training loop: one entry per data set, found by its object and checked against its content."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

Kept = TypeVar("Kept")

# Data sets that come as bare arrays are told apart by content alone: so many are remembered.
MOST_NAMELESS = 8


class _Entry(NamedTuple):
    content: tuple[np.ndarray | None, ...]
    kept: Any


class Held(Generic[Kept]):
    """A memory of what was worked out from data sets.

    The object that holds the data (a LightGBM Dataset, an XGBoost DMatrix) finds an entry, by a weak reference: it dies with the object.
    The entry serves only if labels, groups and weights are those that it was made from, number by number, so neither another data set at
    the same address nor one whose labels were changed ever gets it. Reading a million labels takes a fraction of a millisecond.
    """

    def __init__(self) -> None:
        self._by_owner: weakref.WeakKeyDictionary[Any, _Entry] = weakref.WeakKeyDictionary()
        self._nameless: list[_Entry] = []

    def find(self, owner: Any, content: Sequence[np.ndarray | None], make: Callable[[], Kept]) -> Kept:
        """What was made from this content before, else what `make` makes of it now. owner: None where only arrays are given."""
        for entry in self._nameless if owner is None else filter(None, [self._by_owner.get(owner)]):
            if all(map(_same, entry.content, content)):
                return entry.kept
        made = _Entry(tuple(None if array is None else array.copy() for array in content), make())
        # No lock, which a process forked meanwhile would wait for: of two threads at once, one loses its entry, and makes it again.
        if owner is None:
            self._nameless = [made, *self._nameless[: MOST_NAMELESS - 1]]
        else:
            self._by_owner[owner] = made
        return made.kept


def _same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and np.array_equal(one, other)

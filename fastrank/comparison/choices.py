"""The choices on which two ways to evaluate one metric differ, and a search for those that separate two sets of values."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation
from fastrank.metrics.base import Metric

# Two values of a query are the same up to a few last bits.
TOLERANCE = 1e-12

# What a convention does to the input before any metric looks at it.
OF_INPUT = ("scores", "labels", "trec")

WORDS = {
    "ties": "order of equal scores",
    "no_relevant": "value of a query with nothing to find",
    "rel": "lowest relevant label",
    "k": "cutoff",
    "above": "scores that count as retrieved",
    "scores": "width of scores",
    "labels": "width of labels",
    "trec": "labels below 0",
}


@dataclass(frozen=True)
class Setting:
    """A metric with every choice made: the parameters of the metric, and what the convention does to the input."""

    metric: Metric
    convention: Convention

    def __getitem__(self, choice: str) -> Any:
        """The value of one choice."""
        return getattr(self.convention if choice in OF_INPUT else self.metric, choice)

    def differing(self, other: Setting) -> tuple[str, ...]:
        """The choices on which another setting of the same family differs, in the order of the metric's parameters."""
        return tuple(choice for choice in (*self.metric.parameters(), *OF_INPUT) if self[choice] != other[choice])

    def switched(self, other: Setting, choices: Sequence[str]) -> Setting:
        """This setting with some of the choices of another. Labels are legal where they are so in either."""
        of_metric = {choice: other[choice] for choice in choices if choice not in OF_INPUT}
        of_input = {choice: other[choice] for choice in choices if choice in OF_INPUT}
        # The metric is filled: what a convention says of single families must not fill it again.
        mixed = dataclasses.replace(
            self.convention, name="mixed", families=(), negative_labels=True, no_negative=(), binary_only=(), **of_input
        )
        return Setting(dataclasses.replace(self.metric, **of_metric), mixed)


class Step(NamedTuple):
    """Choices switched together, after those of the steps before, and the values of each query then."""

    choices: tuple[str, ...]
    values: np.ndarray


Mixture = Callable[[tuple[str, ...]], np.ndarray | None]


def separate(mixture: Mixture, choices: Sequence[str], target: np.ndarray, *, together: int) -> list[Step]:
    """Switch one choice after the other, that which comes nearest to `target` first, until its values are met or nothing comes nearer.

    `mixture` gives the values of each query with some choices switched, or None where these do not go together. Where no single choice
    comes nearer, each pair is tried, and so on up to so many `together`: one may be defined, or show, only beside another.
    """
    steps: list[Step] = []
    start = mixture(())
    assert start is not None
    away = distance(start, target)
    switched: tuple[str, ...] = ()
    while away > 0:
        left = [choice for choice in choices if choice not in switched]
        for size in range(1, together + 1):
            tried = [(more, mixture((*switched, *more))) for more in itertools.combinations(left, size)]
            found = [Step(more, values) for more, values in tried if values is not None]
            best = min(found, key=lambda step: distance(step.values, target), default=None)
            if best is not None and distance(best.values, target) < away:
                break
        else:
            return steps
        steps.append(best)
        switched, away = (*switched, *best.choices), distance(best.values, target)
    return steps


def moved(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which queries have another value. NaN, the value of a query that is left out, is like NaN alone."""
    return gaps(one, other) > 0


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The sum of the differences, query by query; rounding is none, and a value against NaN counts 1."""
    return float(np.sum(gaps(one, other)))


def gaps(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The difference of each query without its sign; 0 for rounding, 1 for a value against NaN."""
    gone, missing = np.isnan(one), np.isnan(other)
    away = np.abs(np.where(gone, 0.0, one) - np.where(missing, 0.0, other))
    away[away <= TOLERANCE * np.maximum(1.0, np.abs(np.where(missing, 0.0, other)))] = 0.0
    return np.where(gone | missing, (gone != missing).astype(np.float64), away)


def mixtures(evaluate: Callable[..., Evaluation], one: Setting, other: Setting) -> Callable[[tuple[str, ...]], Evaluation | None]:
    """A function that evaluates `one` with some choices of `other`, each mixture once; None where the choices do not go together."""
    known: dict[frozenset[str], Evaluation | None] = {}

    def mixture(choices: tuple[str, ...]) -> Evaluation | None:
        key = frozenset(choices)
        if key not in known:
            setting = one.switched(other, choices)
            try:
                known[key] = evaluate(metrics=setting.metric, convention=setting.convention)
            except InputError:
                known[key] = None
        return known[key]

    return mixture


def in_words(choice: str) -> str:
    """A choice as a sentence calls it."""
    return WORDS.get(choice, choice)


def show_choice(choice: str, setting: Mapping[str, Any] | Setting) -> str:
    """The value of a choice as a sentence has it."""
    value = setting[choice]
    if choice == "trec":
        return "in the pool, unjudged" if value else "as given"
    if choice == "above":
        return "all" if value is None else f"above {value}"
    if value is None:
        return {"k": "whole list", "scores": "as given", "labels": "as given"}.get(choice, "none")
    return str(value)

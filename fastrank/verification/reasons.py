"""Why a program's value is not ours: each choice that other programs make otherwise, switched alone and then with one other."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastrank.comparison.choices import OF_INPUT, Setting, in_words, show_choice
from fastrank.convention import TIE_RULES
from fastrank.errors import InputError
from fastrank.verification.query_sets import QuerySet

# What programs are known to choose. A metric without a parameter has no such choice.
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "ties": TIE_RULES,
    "scores": ("float32", "float64"),
    "gain": ("exp2", "linear"),
    "no_relevant": ("zero", "one", "nan"),
    "denominator": ("relevant", "min_k", "min_k_retrieved", "hits", "k", "retrieved"),
    "rel": (1, 2, ">0", ">0.5"),
    "above": (None, 0),
    "k": (None, 32),
    "rounding": ("nearest", "up", "trec_eval9"),
    "trec": (True, False),
}


@dataclass(frozen=True)
class Switch:
    """One choice made otherwise: of the setting, or (`data`) of what is done with judgements and runs before."""

    choice: str
    value: Any
    data: bool = False

    @property
    def words(self) -> str:
        """The choice and its value there."""
        if self.data:
            return str(self.value)
        return f"{in_words(self.choice)}: {show_choice(self.choice, {self.choice: self.value})}"


_OF_DATA = (
    Switch("ids", "order of equal scores: document id, ascending", data=True),
    Switch("clipped", "labels below 0: taken as 0", data=True),
    Switch("judged_only", "unjudged documents: left out", data=True),
    Switch("missing", "queries missing from the run: left out", data=True),
)


def switches(setting: Setting, queries: QuerySet) -> Iterator[Switch]:
    """Every choice that can be made otherwise."""
    parameters = setting.metric.parameters()
    for choice, values in _VALUES.items():
        if choice in parameters or choice in OF_INPUT:
            yield from (Switch(choice, value) for value in values if value != setting[choice])
    if not queries.as_lists:
        yield from _OF_DATA


def switched(setting: Setting, queries: QuerySet, chosen: tuple[Switch, ...]) -> dict[str, float]:
    """Our value of each query with some choices made otherwise. InputError where these do not go together."""
    for switch in chosen:
        if switch.data:
            setting, queries = _with_data(switch, setting, queries)
        elif switch.choice in OF_INPUT:
            setting = dataclasses.replace(setting, convention=dataclasses.replace(setting.convention, **{switch.choice: switch.value}))
        else:
            metric = dataclasses.replace(setting.metric, **{switch.choice: switch.value})
            setting = dataclasses.replace(setting, metric=metric)
    plain = dataclasses.replace(setting.convention, families=(), negative_labels=True, no_negative=(), binary_only=())
    return queries.values(setting.metric, plain)


def _with_data(switch: Switch, setting: Setting, queries: QuerySet) -> tuple[Setting, QuerySet]:
    if switch.choice == "ids":
        names = sorted({name for side in (queries.qrels, queries.run) for documents in side.values() for name in documents}, key=_bytes)
        # The order of these names is the other way round.
        other = {name: f"{len(names) - place:09d}" for place, name in enumerate(names)}
        qrels = {query: {other[name]: label for name, label in labels.items()} for query, labels in queries.qrels.items()}
        run = {query: {other[name]: score for name, score in scores.items()} for query, scores in queries.run.items()}
        metric = dataclasses.replace(setting.metric, ties="docid") if setting.metric.sees_ties else setting.metric
        return dataclasses.replace(setting, metric=metric), dataclasses.replace(queries, qrels=qrels, run=run)
    if switch.choice == "clipped":
        clipped = {query: {name: max(label, 0) for name, label in labels.items()} for query, labels in queries.qrels.items()}
        return setting, dataclasses.replace(queries, qrels=clipped)
    if switch.choice == "judged_only":
        return setting, dataclasses.replace(queries, judged_only=True)
    return setting, dataclasses.replace(queries, skip_missing=True)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def find_reasons(setting: Setting, queries: QuerySet, theirs: Mapping[str, float], tolerance: float) -> dict[str, tuple[Switch, ...]]:
    """Per query the fewest choices that, made otherwise, give its value there; no entry where one or two do not.

    Of several the one that explains the most queries is taken: many meet a single value by chance.
    """
    found: dict[str, tuple[Switch, ...]] = {}
    single = list(switches(setting, queries))
    for n_together in (1, 2):
        left = [query for query in theirs if query not in found]
        part = queries.part(left)
        met: dict[tuple[Switch, ...], set[str]] = {}
        for chosen in itertools.combinations(single, n_together) if left else ():
            if len({switch.choice for switch in chosen}) == n_together:
                with contextlib.suppress(InputError):  # choices that do not go together
                    values = switched(setting, part, chosen)
                    met[chosen] = {query for query in left if is_same(values.get(query, math.nan), theirs[query], tolerance)}
        while met:
            best = max(met, key=lambda chosen: len(met[chosen]))
            if not (explained := met.pop(best) - found.keys()):
                break
            found |= dict.fromkeys(explained, best)
            met = {chosen: members - explained for chosen, members in met.items()}
    return found


def is_same(one: float, other: float, tolerance: float) -> bool:
    """Whether two values are the same but for rounding; NaN is like NaN alone."""
    if one != one or other != other:
        return one != one and other != other
    return abs(one - other) <= tolerance * max(1.0, abs(other))

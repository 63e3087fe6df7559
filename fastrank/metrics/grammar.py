"""Names of metrics: `nDCG(gain='linear')@10`, `RR`, `P.5,10`, `ndcg@5-`. What prints parses back to the same metric.

A name fixes the family and the parameters that it spells. Letters' case never matters. A name that one tool alone uses
(`ndcg_cut_10`) brings that tool's parameters along.
"""

from __future__ import annotations

import ast
import difflib
import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastrank.convention import Convention, as_convention, conventions
from fastrank.errors import InputError
from fastrank.metrics.base import Metric, families
from fastrank.metrics.names import RANX, RANX_SHARED, Meaning, Name, known_names, read_ranx, translate
from fastrank.metrics.trec_names import NICKNAMES, TEXTS, Reading, read_trec

_DOTTED = re.compile(r"(?P<head>.+?)[._](?P<cutoffs>\d+(?:,\d+)*)")
_CUTOFF = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)%?")
# What continues a list after a comma: a number, or a pair such as 2=9.0.
_CONTINUES = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)%?(?:=[^,]*)?(?:-l\d+|-)?\s*(?:,|$)")


@dataclass(frozen=True)
class MetricInfo:
    """What `list_metrics` tells of a family."""

    name: str
    title: str
    aliases: tuple[str, ...]
    parameters: tuple[str, ...]
    formula: str
    source: str
    example: str
    higher_is_better: bool


def parse_metric(name: str | Metric, convention: str | Convention | None = None) -> Metric:
    """Read one metric from its name; with a convention, fill in what the name leaves open.

    Errors: `InputError` for an unknown name (the nearest are listed), parameter or value, or for a name with several cutoffs.
    Example:

    >>> import fastrank as fr
    >>> fr.parse_metric("ndcg@10")
    nDCG(k=10)
    >>> str(fr.parse_metric("ndcg@10", convention="sklearn"))
    "nDCG(gain='linear', discount='log2', ties='average', no_relevant='zero')@10"
    """
    found = parse_metrics(name, convention)
    if len(found) != 1:
        raise InputError(f"{name!r} names {len(found)} metrics, not one. Name one of them, such as {found[0].short_name}.")
    return found[0]


def parse_metrics(names: str | Metric | Iterable[str | Metric], convention: str | Convention | None = None) -> tuple[Metric, ...]:
    """Read several metrics, in order, each once: from a list, or from text in which a comma outside brackets separates.

    A comma before a number continues the cutoffs: `P.5,10` and `nDCG@5,10` are two metrics each. Errors: as `parse_metric`.
    Example:

    >>> import fastrank as fr
    >>> [metric.short_name for metric in fr.parse_metrics("nDCG@10,RR,P.5,10")]
    ['nDCG@10', 'RR', 'P@5', 'P@10']
    """
    filling = None if convention is None else as_convention(convention)
    found: dict[Metric, None] = {}
    for item in as_items(names):
        for metric in (item,) if isinstance(item, Metric) else (each for part in _split(item) for each in _read_all(part)):
            found.setdefault(metric if filling is None else metric.fill(filling))
    if not found:
        raise InputError("no metric is named. Name one, such as nDCG@10.")
    return tuple(found)


def as_items(names: Any) -> tuple[str | Metric, ...]:
    """What was asked for, one by one: names or metrics."""
    if isinstance(names, str | Metric):
        return (names,)
    if not isinstance(names, Iterable) or getattr(names, "ndim", 1) == 0:
        raise InputError(f"metrics are named by text, by a Metric or by several of them, not by {names!r}.")
    items = tuple(names)
    for item in items:
        if not isinstance(item, str | Metric):
            raise InputError(f"a metric is a name or a Metric, not {item!r}.")
    return items


def _split(text: str) -> list[str]:
    """Cut at commas outside brackets and quotes, but not before a number."""
    parts, depth, quote, current = [], 0, "", ""
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0 and not _CONTINUES.match(text, place + 1):
            parts.append(current)
            current = ""
            continue
        current += letter
    parts = [part.strip() for part in (*parts, current)]
    if "" in parts and len(parts) > 1:
        raise InputError(f"metrics {text!r} hold an empty name. Remove the stray comma.")
    return [part for part in parts if part]


def _read_all(text: str) -> list[Metric]:
    """The metrics that a name, a list of cutoffs or a nickname stands for."""
    if text.lower() in NICKNAMES:
        return [_make(reading, text) for name in NICKNAMES[text.lower()] for reading in read_trec(name)]
    known = _names().get(text.lower())
    readings = read_trec(text, bare=known is None or known.trec_only)
    return [_make(reading, text) for reading in readings] or _read(text)


def _make(reading: Reading, text: str) -> Metric:
    try:
        return families[reading.family](**reading.given)
    except InputError as error:
        raise InputError(f"{text!r}: {error}") from None


def _read(text: str) -> list[Metric]:
    rest, rel, persistence = read_ranx(text)
    head, arguments, cutoffs, dash = _take_apart(rest)
    name = _names().get(head.lower())
    if name is None:
        raise _unknown(text, head)
    family, given = translate(name.family, {**name.implied, **arguments})
    metric = families[family]
    if dash:
        given.setdefault("no_relevant", "zero")
        for parameter, value in (("gain", "exp2"), ("discount", "log2")):
            if parameter in metric.parameters():
                given.setdefault(parameter, value)
    given |= _of_ranx(metric, given, rel, persistence)
    for parameter in given:
        if parameter not in metric.parameters():
            near = difflib.get_close_matches(parameter, metric.parameters(), n=1)
            hint = f" Did you mean {near[0]}?" if near else f" It has {', '.join(metric.parameters())}."
            raise InputError(f"{text!r}: {family} has no parameter {parameter!r}.{hint}")
    if cutoffs and metric.at in given:
        raise InputError(f"{text!r} gives its {'cutoff' if metric.at == 'k' else metric.at} twice.")
    try:
        return [metric(**given, **({} if k is None else {metric.at: k})) for k in cutoffs or [None]]
    except InputError as error:
        raise InputError(f"{text!r}: {error}") from None


def _of_ranx(metric: type[Metric], given: dict[str, Any], rel: int | None, persistence: float | None) -> dict[str, Any]:
    """What `-l2` and `rbp.95` say: there gains are labels, and those below the level are none."""
    found: dict[str, Any] = {}
    if persistence is not None:
        found |= {"p": persistence, "gain": "linear"}
    if rel is not None and "gain" in metric.parameters():
        found |= {"gain": f"{found.get('gain', given.get('gain', 'linear'))}>={rel}"}
        if "discount" in metric.parameters():
            found["discount"] = "log2"
    elif rel is not None:
        found["rel"] = rel
    return found


def trec_metrics(text: str) -> tuple[tuple[str, Metric], ...]:
    """What a name means to trec_eval and pytrec_eval alone: the names of its output, each with its metric. `P` is `P_5`, `P_10`, ...

    Errors: `InputError` for a name that trec_eval does not have, or has as a text (runid, relstring).

    >>> [name for name, _ in trec_metrics("success")]
    ['success_1', 'success_5', 'success_10']
    """
    names = NICKNAMES.get(text.lower(), (text,))
    readings = [reading for name in names for reading in read_trec(name)]
    if not readings:
        raise _unknown(text, text)
    return tuple((reading.printed, _make(reading, text)) for reading in readings)


def ranx_metric(text: str) -> Metric:
    """What a name means to ranx: linear gain, `rbp@95` a persistence, and `@0` no cutoff.

    >>> str(ranx_metric("ndcg@10-l2"))
    "nDCG(gain='linear>=2', discount='log2')@10"
    """
    rest, rel, persistence = read_ranx(text, at=True)
    head, _, cutoff = rest.partition("@")
    meaning = {**RANX, **RANX_SHARED, "rbp": Meaning("RBP", {})}.get(head)
    if meaning is None or not (cutoff.isdigit() or not cutoff):
        raise _unknown(text, head)
    metric, given = families[meaning.family], dict(meaning.implied)
    given |= _of_ranx(metric, given, rel, persistence)
    # ranx looks at the whole list for the metrics that take no cutoff, whatever stands there.
    if cutoff.strip("0") and not metric.whole_list_only:
        given["k"] = int(cutoff)
    return metric(**given)


def _take_apart(text: str) -> tuple[str, dict[str, Any], list[Any], bool]:
    """Head, arguments, cutoffs, and whether XGBoost's '-' stands at the end."""
    dash = text.endswith("-")
    body = text[:-1] if dash else text
    arguments: dict[str, Any] = {}
    if "(" in body:
        start, end = body.index("("), body.rfind(")")
        if end < start:
            raise InputError(f"{text!r}: a bracket is not closed.")
        arguments = _arguments(text, body[start + 1 : end])
        head, tail = body[:start], body[end + 1 :].strip()
    else:
        head, at, tail = body.partition("@")
        tail = at + tail
        dotted = _DOTTED.fullmatch(head)
        if not at and dotted and head.lower() not in _names():
            head, tail = dotted["head"], "@" + dotted["cutoffs"]
    if not tail:
        return head.strip(), arguments, [], dash
    cutoffs = [part.strip() for part in tail[1:].split(",")]
    if not tail.startswith("@") or not all(_CUTOFF.fullmatch(part) for part in cutoffs):
        raise InputError(f"{text!r}: after the name comes @ and a cutoff, such as @10 or @20%.")
    return head.strip(), arguments, [int(part) if part.isdigit() else part for part in cutoffs], dash


def _arguments(text: str, inside: str) -> dict[str, Any]:
    """Keyword arguments, literals only."""
    try:
        call = ast.parse(f"metric({inside})", mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)  # and not a call of a call: P(rel=2)(k=5)
        names = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
        if call.args or len(names) < len(call.keywords):
            raise InputError(f"{text!r}: parameters are given by name, such as gain='linear'.")
        if len(set(names)) < len(names):
            raise InputError(f"{text!r} gives {next(name for name in names if names.count(name) > 1)} twice.")
        return {name: ast.literal_eval(keyword.value) for name, keyword in zip(names, call.keywords, strict=True)}
    except (SyntaxError, ValueError, AssertionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{text!r}: the parameters cannot be read. Write them as in nDCG(gain='linear')@10.") from None


@functools.cache
def _names_of(_families: tuple[str, ...]) -> dict[str, Name]:
    return known_names()


def _names() -> dict[str, Name]:
    """Every known name by its small letters; made anew when a family has been added."""
    return _names_of(tuple(families))


def _unknown(text: str, head: str) -> InputError:
    """The error for a name that nothing has, with the nearest ones."""
    if re.split(r"[._]", text.lower())[0] in TEXTS:
        return InputError(f"{text!r} is a text, not a number: fastrank trec_eval prints it.")
    near = difflib.get_close_matches(head.lower(), _names(), n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(_names()[name].spelling for name in near)}?" if near else " See list_metrics() or fastrank metrics."
    return InputError(f"{text!r} is not a known metric.{hint}")


def _aliases(family: str) -> tuple[str, ...]:
    """Every other name of a family, its own aliases first."""
    own = families[family].aliases
    named = [name.spelling for name in _names().values() if name.family == family and name.spelling != family]
    return tuple(dict.fromkeys((*own, *named)))


def list_metrics() -> tuple[MetricInfo, ...]:
    """Every metric family: name, aliases, parameters, formula under the default convention, source and a worked example.

    Example:

    >>> import fastrank as fr
    >>> [info.name for info in fr.list_metrics() if info.title == "Recall"]
    ['R']
    """
    return tuple(
        MetricInfo(
            name=family,
            title=metric.title,
            aliases=_aliases(family),
            parameters=metric.parameters() if not metric.whole_list_only else metric.parameters()[:-1],
            formula=metric().fill(conventions["fastrank"]).formula,
            source=metric.source,
            example=metric.example,
            higher_is_better=metric.higher_is_better,
        )
        for family, metric in families.items()
    )

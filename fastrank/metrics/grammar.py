"""Names of metrics: `nDCG(gain='linear')@10`, `RR`, `P.5,10`, `ndcg@5-`. What prints parses back to the same metric.

A name fixes the family and the parameters that it spells. Letters' case never matters. A name that one tool alone uses
(`ndcg_cut_10`) brings that tool's parameters along.
"""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fastrank.convention import Convention, as_convention, conventions
from fastrank.errors import InputError
from fastrank.metrics.base import Metric, families

# Names that belong to one tool (or fix a parameter by themselves), with what they imply.
_IMPLYING: dict[str, tuple[str, dict[str, Any]]] = {
    "ndcg_cut": ("nDCG", {"gain": "linear", "discount": "log2"}),
    "map_cut": ("AP", {"denominator": "relevant"}),
    "recip_rank": ("RR", {}),
    "ndcg_burges": ("nDCG", {"gain": "exp2", "discount": "log2"}),
    "dcg_burges": ("DCG", {"gain": "exp2", "discount": "log2"}),
    "f1": ("F", {"beta": 1}),
}

_DOTTED = re.compile(r"(?P<head>.+?)[._](?P<cutoffs>\d+(?:,\d+)*)")
_CUTOFF = re.compile(r"\d+(?:\.\d+)?%?")


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


def _known_names() -> dict[str, tuple[str, dict[str, Any]]]:
    """Every name in small letters: its family and what it implies."""
    names: dict[str, tuple[str, dict[str, Any]]] = {}
    for family, metric in families.items():
        for name in (family, *metric.aliases):
            names[name.lower()] = (family, {})
    return names | _IMPLYING


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
        raise InputError(f"{name!r} names {len(found)} metrics, not one. Use parse_metrics for several.")
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
    items: Iterable[Any] = [names] if isinstance(names, str | Metric) else names
    found: dict[Metric, None] = {}
    for item in items:
        if isinstance(item, Metric):
            metrics: Iterable[Metric] = (item,)
        elif isinstance(item, str):
            metrics = (metric for part in _split(item) for metric in _read(part))
        else:
            raise InputError(f"a metric is a name or a Metric, not {item!r}.")
        for metric in metrics:
            found.setdefault(metric if filling is None else metric.fill(filling))
    if not found:
        raise InputError("no metric is named. Name one, such as nDCG@10.")
    return tuple(found)


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
        elif letter == "," and depth == 0 and not text[place + 1 :].lstrip()[:1].isdigit():
            parts.append(current)
            current = ""
            continue
        current += letter
    parts = [part.strip() for part in (*parts, current)]
    if "" in parts and len(parts) > 1:
        raise InputError(f"metrics {text!r} hold an empty name. Remove the stray comma.")
    return [part for part in parts if part]


def _read(text: str) -> list[Metric]:
    head, arguments, cutoffs, dash = _take_apart(text)
    family, implied = _look_up(head, text)
    metric = families[family]
    given = {**implied, **arguments}
    if dash:
        given.setdefault("no_relevant", "zero")
        for name, value in (("gain", "exp2"), ("discount", "log2")):
            if name in metric.parameters():
                given.setdefault(name, value)
    for name in given:
        if name not in metric.parameters():
            near = difflib.get_close_matches(name, metric.parameters(), n=1)
            hint = f" Did you mean {near[0]}?" if near else f" It has {', '.join(metric.parameters())}."
            raise InputError(f"{text!r}: {family} has no parameter {name!r}.{hint}")
    if cutoffs and "k" in given:
        raise InputError(f"{text!r} gives its cutoff twice.")
    try:
        return [metric(**given, **({} if k is None else {"k": k})) for k in cutoffs or [None]]
    except InputError as error:
        raise InputError(f"{text!r}: {error}") from None


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
        if not at and dotted and head.lower() not in _known_names():
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
        if call.args:
            raise InputError(f"{text!r}: parameters are given by name, such as gain='linear'.")
        return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords if keyword.arg is not None}
    except (SyntaxError, ValueError, AssertionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{text!r}: the parameters cannot be read. Write them as in nDCG(gain='linear')@10.") from None


def _look_up(head: str, text: str) -> tuple[str, dict[str, Any]]:
    known = _known_names()
    if head.lower() in known:
        return known[head.lower()]
    names = [name for family, metric in families.items() for name in (family, *metric.aliases)]
    spelled = {name.lower(): name for name in (*names, *_IMPLYING)}
    near = difflib.get_close_matches(head.lower(), spelled, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(spelled[name] for name in near)}?" if near else " See list_metrics()."
    raise InputError(f"{text!r} is not a known metric.{hint}")


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
            aliases=metric.aliases,
            parameters=metric.parameters() if not metric.whole_list_only else metric.parameters()[:-1],
            formula=metric().fill(conventions["fastrank"]).formula,
            source=metric.source,
            example=metric.example,
            higher_is_better=metric.higher_is_better,
        )
        for family, metric in families.items()
    )

"""Names and parameters that metrics have in other tools: one table a tool, and how a parameter there is said here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fastrank.metrics.base import families
from fastrank.metrics.trec_names import MEASURES


class Meaning(NamedTuple):
    """What a name stands for: a family, and the parameters that it implies under every convention."""

    family: str
    implied: Mapping[str, Any]


class Name(NamedTuple):
    """A known name as its tool spells it, and what it stands for. trec_only: no other tool has it."""

    spelling: str
    family: str
    implied: Mapping[str, Any]
    trec_only: bool = False


_EXP = {"gain": "exp2", "discount": "log2"}
_LINEAR = {"gain": "linear", "discount": "log2"}

# ranx's fourteen. What all tools call alike (ndcg, map, precision, ...) implies nothing.
RANX: dict[str, Meaning] = {
    "f1": Meaning("F", {"beta": 1}),
    "dcg_burges": Meaning("DCG", _EXP),
    "ndcg_burges": Meaning("nDCG", _EXP),
}
# What ranx means by the names that it shares with others, for its own interface.
RANX_SHARED: dict[str, Meaning] = {
    "hits": Meaning("NumRelRet", {}),
    "hit_rate": Meaning("Success", {}),
    "precision": Meaning("P", {"denominator": "k"}),
    "recall": Meaning("R", {}),
    "r-precision": Meaning("Rprec", {}),
    "mrr": Meaning("RR", {}),
    "map": Meaning("AP", {"denominator": "relevant"}),
    "dcg": Meaning("DCG", _LINEAR),
    "ndcg": Meaning("nDCG", _LINEAR),
    "bpref": Meaning("Bpref", {}),
}

# ir_measures': those that are no family of ours under the same name.
IR_MEASURES: dict[str, Meaning] = {
    "SetP": Meaning("P", {}),
    "SetR": Meaning("R", {}),
    "SetF": Meaning("F", {}),
}

# ir_measures' words for parameters.
RENAMED = {"cutoff": "k", "min_rel": "min_label", "max_rel": "max_label"}
_DCG_FORMS = {"log2": _LINEAR, "exp-log2": _EXP}
# A family that ir_measures has as a parameter of another.
_PARAMETER_IS_FAMILY = {("P", "relative"): "RelP", ("NumRet", "rel"): "NumRelRet"}


def known_names() -> dict[str, Name]:
    """Every name by its small letters: families, their aliases, and the names of one tool."""
    found: dict[str, Name] = {}
    for family, metric in families.items():
        for spelling in (family, *metric.aliases):
            found[spelling.lower()] = Name(spelling, family, {})
    for spelling, meaning in (IR_MEASURES | RANX).items():
        found.setdefault(spelling.lower(), Name(spelling, *meaning))
    for spelling, measure in MEASURES.items():
        found.setdefault(spelling.lower(), Name(spelling, measure.family, measure.implied, trec_only=True))
    return found


def translate(family: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The family and parameters that ir_measures' words for them mean."""
    said: dict[str, Any] = {}
    for name, value in given.items():
        parameters = families[family].parameters()
        if name not in parameters and (family, name) in _PARAMETER_IS_FAMILY:
            other = _PARAMETER_IS_FAMILY[family, name]
            if value is not False:
                family = other
            if name in families[other].parameters():
                said[name] = value
        elif name in parameters or "gain" not in parameters or name not in ("dcg", "gains"):
            said[RENAMED.get(name, name) if name not in parameters else name] = value
        elif name == "gains":
            said["gain"] = {**value, "others": "linear"} if isinstance(value, dict) and "others" not in value else value
        else:
            said |= _DCG_FORMS.get(value, {"gain": value}) if "discount" in parameters else {"gain": value}
    return family, said


class Suffixed(NamedTuple):
    """A name of ranx without its suffix: the lowest relevant label, and the persistence of RBP."""

    rest: str
    rel: int | None
    p: float | None


def read_ranx(text: str, *, at: bool = False) -> Suffixed:
    """Take apart `map@10-l2` and `rbp.95`. at: ranx's own interface, where `rbp@95` is a persistence as well."""
    rel = None
    if found := re.fullmatch(r"(.+)-l(\d+)", text):
        text, rel = found[1], int(found[2])
    if found := re.fullmatch(r"(rbp)[.@](\d+)" if at else r"(rbp)\.(\d+)", text, re.IGNORECASE):
        return Suffixed(found[1], rel, float(f"0.{found[2]}"))
    return Suffixed(text, rel, None)

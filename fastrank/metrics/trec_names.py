"""trec_eval's names: `ndcg_cut_5,10`, `iprec_at_recall.0.1`, `ndcg.1=3.5,2=9`, `set_F_0.5`, and its nicknames.

A measure that stands for several (`P`, `ndcg_cut`, `iprec_at_recall`, ...) has a list of default parameters there. pytrec_eval's names
are the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fastrank.errors import InputError

_CUTOFFS = ("5", "10", "15", "20", "30", "100", "200", "500", "1000")
_RECALLS = tuple(f"{tenth / 10}" for tenth in range(11))
_MULTIPLES = tuple(f"{fifth / 5}" for fifth in range(1, 11))

_INTEGER, _NUMBER = r"\d+", r"[+-]?(?:\d+\.?\d*|\.\d+)"


class Kind(NamedTuple):
    """What may follow a measure's name: one item of the list, whether each item is a metric of its own, and what it says.

    single: one item, and no list of them.
    """

    item: str
    each: bool
    read: Callable[[str], dict[str, Any]]
    show: Callable[[str], str] = str
    single: bool = False

    @property
    def pattern(self) -> str:
        """The whole list."""
        return self.item if self.single else f"{self.item}(?:,{self.item})*"


def _table(text: str) -> dict[str, Any]:
    pairs = [pair.split("=") for pair in text.split(",")]
    return {"gain": {**{float(label): float(gain) for label, gain in pairs}, "others": "linear"}}


def _persistence(text: str) -> dict[str, Any]:
    return {"p": float(text.partition("=")[2])}


_KINDS = {
    "cutoffs": Kind(_INTEGER, True, lambda text: {"k": int(text)}),
    "recalls": Kind(_NUMBER, True, lambda text: {"recall": float(text)}, lambda text: f"{float(text):.2f}"),
    "multiples": Kind(_NUMBER, True, lambda text: {"multiple": float(text)}, lambda text: f"{float(text):.2f}"),
    "levels": Kind(_NUMBER, False, lambda text: {"recalls": tuple(map(float, text.split(",")))}),
    "weights": Kind(_NUMBER, False, lambda text: {"weights": tuple(map(float, text.split(",")))}),
    # trec_eval's x weighs recall against precision; F's beta is squared.
    "importance": Kind(r"(?:\d+\.?\d*|\.\d+)", False, lambda text: {"beta": math.sqrt(float(text))}, single=True),
    "gains": Kind(rf"[+-]?{_INTEGER}={_NUMBER}", False, _table),
    "persistence": Kind(rf"p={_NUMBER}", False, _persistence, single=True),
}


@dataclass(frozen=True)
class Measure:
    """A measure of trec_eval: our family, the parameters that its name implies, and the kind of list that may follow with its default."""

    family: str
    implied: Mapping[str, Any] = field(default_factory=dict)
    kind: str | None = None
    defaults: tuple[str, ...] = ()


_LINEAR = {"gain": "linear"}
_NDCG = {"gain": "linear", "discount": "log2"}

_AMONG = {"": "all", "_ret": "both_retrieved", "_imp": "any_retrieved"}
_OVER = {"simp": "preferences", "pair": "pairs", "avgjg": "judges"}

# Measures of judgements by judge, which take a format of qrels of their own.
_BY_JUDGE: dict[str, Measure] = {
    "prefs_num_prefs_poss": Measure("NumPrefs"),
    "prefs_num_prefs_ful": Measure("NumPrefsFul", {"among": "all"}),
    "prefs_num_prefs_ful_ret": Measure("NumPrefsFul", {"among": "both_retrieved"}),
    **{
        f"prefs_{kind}{suffix}": Measure(*meaning)
        for suffix, among in _AMONG.items()
        for kind, meaning in (
            *((kind, ("PrefsFul", {"among": among, "over": over})) for kind, over in _OVER.items()),
            ("avgjg_Rnonrel", ("PrefsRnonrel", {"among": among})),
        )
        if (kind, suffix) != ("avgjg_Rnonrel", "_imp")
    },
    "map_avgjg": Measure("AP_avgjg"),
    "P_avgjg": Measure("P_avgjg", {}, "cutoffs", _CUTOFFS),
    "Rprec_mult_avgjg": Measure("Rprec_avgjg", {}, "multiples", _MULTIPLES),
}

# In trec_eval's order, which is that of its output. runid and relstring are texts: see TEXTS.
MEASURES: dict[str, Measure] = {
    "num_q": Measure("NumQ"),
    "num_ret": Measure("NumRet"),
    "num_rel": Measure("NumRel"),
    "num_rel_ret": Measure("NumRelRet"),
    "map": Measure("AP"),
    "gm_map": Measure("GMAP"),
    "Rprec": Measure("Rprec"),
    "bpref": Measure("Bpref"),
    "recip_rank": Measure("RR"),
    "iprec_at_recall": Measure("IPrec", {}, "recalls", _RECALLS),
    "P": Measure("P", {}, "cutoffs", _CUTOFFS),
    "recall": Measure("R", {}, "cutoffs", _CUTOFFS),
    "infAP": Measure("infAP"),
    "gm_bpref": Measure("GMBpref"),
    "Rprec_mult": Measure("Rprec", {}, "multiples", _MULTIPLES),
    "utility": Measure("Utility", {}, "weights"),
    "11pt_avg": Measure("AvgIPrec", {}, "levels"),
    "binG": Measure("binG"),
    "G": Measure("G", _LINEAR, "gains"),
    "dcg": Measure("DCG", _NDCG, "gains"),
    "ideal_dcg": Measure("IDCG", _NDCG, "gains"),
    "ndcg": Measure("nDCG", _NDCG, "gains"),
    "ndcg_rel": Measure("nDCGrel", _LINEAR, "gains"),
    "Rndcg": Measure("Rndcg", _LINEAR, "gains"),
    "ndcg_cut": Measure("nDCG", _NDCG, "cutoffs", _CUTOFFS),
    "map_cut": Measure("AP", {"denominator": "relevant"}, "cutoffs", _CUTOFFS),
    "relative_P": Measure("RelP", {}, "cutoffs", _CUTOFFS),
    "success": Measure("Success", {}, "cutoffs", ("1", "5", "10")),
    "set_P": Measure("P"),
    "set_relative_P": Measure("RelP"),
    "set_recall": Measure("R"),
    "set_map": Measure("SetAP"),
    "set_F": Measure("F", {"beta": 1}, "importance"),
    "num_nonrel_judged_ret": Measure("NumNonRelRet"),
    "yaap": Measure("YAAP"),
    "rbp": Measure("RBP", {"p": 0.9, "gain": "scaled"}, "persistence"),
    "rbp_resid": Measure("RBPResid", {"p": 0.9}, "persistence"),
    "unj": Measure("Unjudged", {}, "cutoffs", ("5", "10", "20")),
    **_BY_JUDGE,
}

# Measures whose value is a text: they have no place among numbers, and nicknames leave them out.
TEXTS = ("runid", "relstring")

_COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret")
_OFFICIAL = (*_COUNTS, "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P")
NICKNAMES: dict[str, tuple[str, ...]] = {
    "official": _OFFICIAL,
    "set": (*_COUNTS, "utility", "set_P", "set_recall", "set_relative_P", "set_map", "set_F"),
    "all_trec": tuple(name for name in MEASURES if name not in ("dcg", "ideal_dcg", "yaap", *_BY_JUDGE)),
    "prefs": ("num_q", *tuple(_BY_JUDGE)[:6]),
    "all_prefs": ("num_q", *(name for name in _BY_JUDGE if name.startswith("prefs_"))),
    "qrels_jg": ("num_q", *(name for name in _BY_JUDGE if name.endswith("avgjg") and not name.startswith("prefs_"))),
}

_BY_SMALL_NAME = {name.lower(): name for name in MEASURES}


class Reading(NamedTuple):
    """One metric that a name stands for: the name in trec_eval's output, our family and its parameters."""

    printed: str
    family: str
    given: dict[str, Any]


def read_trec(text: str, *, bare: bool = True) -> list[Reading]:
    """What a name of trec_eval stands for; nothing when it is none. bare=False: only names with parameters behind them.

    >>> [reading.printed for reading in read_trec("ndcg_cut.5,10")]
    ['ndcg_cut_5', 'ndcg_cut_10']
    >>> read_trec("set_F_0.25")[0].given
    {'beta': 0.5}
    """
    name = _BY_SMALL_NAME.get(text.lower())
    if name is not None:
        return _readings(name, None) if bare else []
    for name, measure in MEASURES.items():
        if measure.kind is not None:
            kind = _KINDS[measure.kind]
            found = re.fullmatch(rf"{re.escape(name)}[._]({kind.pattern})", text, re.IGNORECASE)
            if found:
                return _readings(name, found[1])
            if kind.single and re.fullmatch(rf"{re.escape(name)}[._].*,.*", text, re.IGNORECASE):
                raise InputError(f"{text!r}: {name} takes one parameter, not a list. Name it once for each.")
    return []


def _readings(name: str, parameters: str | None) -> list[Reading]:
    family, implied, kind_name, defaults = (getattr(MEASURES[name], part) for part in ("family", "implied", "kind", "defaults"))
    if kind_name is None or (parameters is None and not defaults):
        return [Reading(name, family, dict(implied))]
    kind = _KINDS[kind_name]
    items = list(defaults) if parameters is None else parameters.split(",") if kind.each else [parameters]
    return [Reading(f"{name}_{kind.show(item)}", family, {**implied, **kind.read(item)}) for item in items]

"""Conventions: every choice on which tools differ, bundled under a name.

A metric's name fixes the family and the parameters it spells. What it leaves open is filled from the convention of the call, so
``ndcg@10`` under ``lightgbm`` is LightGBM's number and under ``sklearn`` scikit-learn's.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from fastrank.errors import InputError
from fastrank.gains import Discount, Gain, as_discount, as_gain

TIE_RULES = ("average", "input", "worst", "best", "docid")
NO_RELEVANT_RULES = ("zero", "one", "nan", "skip")

Choices = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]


def _choices(**families: Mapping[str, Any]) -> Choices:
    return tuple((family, tuple(choices.items())) for family, choices in families.items())


@dataclass(frozen=True)
class Convention:
    """A named bundle of choices. Your own: ``dataclasses.replace(fr.conventions["fastrank"], name="mine", ties="worst")``.

    Attributes: `gain` and `discount` of the cumulative-gain metrics; `ties`, the order of equal scores; `no_relevant`, the value
    of a query without anything to find; `rel`, the lowest relevant label (">0.5": any label above); `scores` and `labels`, the
    float type that the tool converts to first (None: as given); `negative_labels`, whether labels below 0 are legal;
    `no_negative`, metrics that refuse them all the same; `binary_only`, metrics that take labels 0 and 1 only; `trec`, whether
    qrels and runs mean what trec_eval takes them for (labels are whole numbers, those below 0 in the pool but unjudged, and a run
    line may have more than six fields); `families`, what single metrics do otherwise (the cutoff of bare names among it); `source`,
    what it reproduces.
    """

    name: str
    source: str
    gain: Gain = "exp2"
    discount: Discount = "log2"
    ties: str = "average"
    no_relevant: str = "zero"
    rel: float | str = 1
    scores: str | None = None
    labels: str | None = None
    negative_labels: bool = False
    no_negative: tuple[str, ...] = ()
    binary_only: tuple[str, ...] = ()
    trec: bool = False
    families: Choices = ()

    def __post_init__(self) -> None:
        given: Any = self.families  # {"AP": {"k": 32}} is easier to write than what is kept
        families = _choices(**given) if isinstance(given, Mapping) else given
        read = {
            "gain": as_gain(self.gain),
            "discount": as_discount(self.discount),
            "ties": one_of("ties", self.ties, TIE_RULES),
            "no_relevant": one_of("no_relevant", self.no_relevant, NO_RELEVANT_RULES),
            "families": families,
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        for name in ("scores", "labels"):
            if getattr(self, name) is not None:
                one_of(name, getattr(self, name), ("float32", "float64"))

    def parameter(self, family: str, name: str, *, general: bool = True) -> Any:
        """The value that this convention gives an unset parameter of a metric; None when it has no say.

        What it says of the family itself comes first, then, if `general`, what it says of all.
        """
        own = dict(dict(self.families).get(family, ()))
        return own[name] if name in own else getattr(self, name, None) if general else None

    def override(self, *, ties: str | None = None, no_relevant: str | None = None) -> Convention:
        """This convention with choices replaced for one call; they replace what single metrics do as well."""
        changed = self
        if ties is not None:
            changed = dataclasses.replace(changed, ties=one_of("ties", ties, TIE_RULES), families=_without("ties", changed.families))
        if no_relevant is not None:
            rule = one_of("no_relevant", no_relevant, NO_RELEVANT_RULES)
            changed = dataclasses.replace(changed, no_relevant=rule, families=_without("no_relevant", changed.families))
        return changed


def _without(name: str, families: Choices) -> Choices:
    return tuple((family, tuple(pair for pair in choices if pair[0] != name)) for family, choices in families)


def one_of(what: str, value: object, known: tuple[str, ...]) -> str:
    """`value` if it is one of the known words, else an error that names the nearest."""
    if isinstance(value, str) and value in known:
        return value
    near = difflib.get_close_matches(str(value), known, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(f"{what} must be one of {', '.join(map(repr, known))}, not {value!r}.{hint}")


_XGBOOST = _choices(
    nDCG={"no_relevant": "one", "k": 32},
    AP={"no_relevant": "one", "k": 32, "denominator": "min_k"},
    P={"k": 32, "denominator": "retrieved"},
)

# Its preference measures order equal scores by ascending id, all others by descending id.
_PREFERENCES = {family: {"ties": "ascending_docid"} for family in ("NumPrefs", "NumPrefsFul", "PrefsFul", "PrefsRnonrel")}
_TREC_EVAL = _choices(RBP={"p": 0.9, "gain": "scaled"}, RBPResid={"p": 0.9}, **_PREFERENCES)

_ALL = (
    Convention("fastrank", "the default of this library: exponential gain, ties averaged, the cutoff as given"),
    Convention(
        "lightgbm",
        "LightGBM 4.7 metrics ndcg and map",
        ties="input",
        rel=">0.5",
        scores="float64",
        labels="float32",
        families=_choices(
            nDCG={"no_relevant": "one"},
            AP={"no_relevant": "one", "denominator": "min_k_retrieved"},
        ),
    ),
    Convention(
        "xgboost",
        "XGBoost 3.2 metrics ndcg, map and pre: bare names cut at 32; with ndcg_exp_gain=0 give gain='linear'",
        ties="input",
        scores="float32",
        labels="float32",
        negative_labels=True,
        binary_only=("AP", "P"),
        families=_XGBOOST,
    ),
    Convention(
        "xgboost-",
        "XGBoost 3.2 metrics with the suffix '-': a query without relevant documents counts 0",
        ties="input",
        scores="float32",
        labels="float32",
        negative_labels=True,
        binary_only=("AP", "P"),
        families=_without("no_relevant", _XGBOOST),
    ),
    Convention(
        "catboost",
        "CatBoost 1.2 metrics NDCG, DCG, MRR, MAP, PrecisionAt, RecallAt and QueryAUC; for type=Exp give gain='exp2'",
        gain="linear",
        ties="worst",
        rel=">0.5",
        scores="float64",
        labels="float32",
        negative_labels=True,
        families=_choices(
            nDCG={"no_relevant": "one"},
            AP={"denominator": "min_k_retrieved"},
            P={"denominator": "retrieved"},
            R={"no_relevant": "one"},
            # QueryAUC counts a tied pair as one half; everywhere else the lower label stands first.
            AUC={"ties": "average"},
            Concordance={"ties": "average"},
        ),
    ),
    Convention(
        "sklearn",
        "scikit-learn 1.9 functions dcg_score and ndcg_score",
        gain="linear",
        rel=">0",
        scores="float64",
        labels="float64",
        negative_labels=True,
        no_negative=("nDCG",),
    ),
    Convention(
        "torchmetrics",
        "torchmetrics 1.9 retrieval metrics, computed there in float32; its order of equal scores is undefined but in nDCG",
        gain="linear",
        rel=">0",
        scores="float32",
        negative_labels=True,
        no_negative=("AP", "RR", "Success"),
        # It sums the labels where others count documents.
        binary_only=("P", "R", "Rprec"),
        families=_choices(
            AP={"denominator": "hits", "above": 0},
            RR={"above": 0},
            P={"above": 0},
            R={"above": 0},
        ),
    ),
    Convention(
        "rax",
        "rax 0.4 metrics, computed there in float32; for its items of score -inf give null scores",
        ties="input",
        scores="float32",
        labels="float32",
        negative_labels=True,
        families=_choices(
            P={"denominator": "retrieved"},
            Concordance={"ties": "worst"},
        ),
    ),
    Convention(
        "ranx",
        "ranx 0.3.21; its order of equal scores is undefined",
        gain="linear",
        ties="input",
        scores="float64",
        negative_labels=True,
        trec=True,
        families=_choices(RBP={"gain": "linear"}),
    ),
    Convention(
        "trec_eval",
        "trec_eval 10.0: linear gain, equal scores by document id",
        gain="linear",
        ties="docid",
        scores="float64",
        negative_labels=True,
        trec=True,
        families=_TREC_EVAL,
    ),
    Convention(
        "trec_eval9",
        "trec_eval 9.0.8 and pytrec_eval: as trec_eval, but scores are compared as float32, and levels of recall rounded otherwise",
        gain="linear",
        ties="docid",
        scores="float32",
        negative_labels=True,
        trec=True,
        families=(*_TREC_EVAL, *_choices(IPrec={"rounding": "trec_eval9"}, AvgIPrec={"rounding": "trec_eval9"})),
    ),
)


conventions: Mapping[str, Convention] = MappingProxyType({convention.name: convention for convention in _ALL})


def as_convention(value: str | Convention) -> Convention:
    """A convention by its name, or as it is."""
    return value if isinstance(value, Convention) else conventions[one_of("convention", value, tuple(conventions))]

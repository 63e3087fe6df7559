"""One table: each metric family with instances to try, its reference, its slow truth, and the other programs that compute it.

The shared tests and the benchmarks are driven by it. A new family needs a row here; a test fails when one is missing.

A peer is a function of labels, scores and offsets that returns one value per query, or their mean alone where the program gives no more.
Its library is imported when it is asked for; `why_absent` says why it cannot be used, if it cannot.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import brute_force
import numpy as np

from fastrank import metrics as m
from fastrank import reference
from fastrank.convention import conventions
from fastrank.gains import DiscountTable, GainTable
from fastrank.metrics import Metric
from fastrank.metrics.base import show_cutoff, threshold

Values = Callable[[np.ndarray, np.ndarray | None, np.ndarray], np.ndarray | float]


@dataclass(frozen=True)
class Peer:
    """Another program's value of `metric`, which under `convention` and `ties` is ours.

    `untied`: it agrees on lists without equal scores alone. `binary`: it takes labels 0 and 1 alone. `whole_labels`: no fractions.
    `both_classes`: it takes only queries with a relevant and a non-relevant document. `shortest`: it takes no shorter lists.
    """

    library: str
    name: str
    metric: Metric
    values: Values
    convention: str = "fastrank"
    ties: str | None = None
    untied: bool = False
    binary: bool = False
    whole_labels: bool = False
    both_classes: bool = False
    shortest: int = 1
    mean_only: bool = False
    tolerance: float = 1e-12
    program: str | None = None
    behind: str | None = None

    def __str__(self) -> str:
        return f"{self.library} {self.name}"

    def why_absent(self) -> str | None:
        """The reason why this peer cannot be asked; None when it can."""
        if self.program is not None and shutil.which(self.program) is None:
            return f"{self.name} of {self.library} needs {self.program}, which is not installed"
        return why_absent(self.library) or (None if self.behind is None else why_absent(self.behind))


@dataclass(frozen=True)
class Row:
    """A family: instances to try, unfilled; the names of its functions in `fastrank.reference` and in `brute_force`; its peers.

    The slow truth goes through every order of ties: where these have no closed form and no bounds there is none (None).
    """

    reference: str
    truth: str | None
    metrics: tuple[Metric, ...]
    peers: tuple[Peer, ...] = field(default=())


@functools.cache
def why_absent(library: str) -> str | None:
    """Why a library cannot be imported, or None. LightGBM without the system's libgomp raises OSError."""
    try:
        importlib.import_module(library)
    except (ImportError, OSError) as error:
        return f"{library} cannot be loaded: {str(error).splitlines()[0]}"
    return None


# --- our metric in the words of the reference and of the slow truth -------------------------------------------------------------


def options_of(metric: Metric) -> dict[str, Any]:
    """Options of the reference's function: every parameter under its own name. What `judged_only` leaves out, the caller leaves out."""
    given = {name: getattr(metric, name) for name in metric.parameters()}
    options = {name: value for name, value in given.items() if value is not None and name != "judged_only"}
    if isinstance(options.get("k"), Fraction):
        options["k"] = show_cutoff(options["k"])
    if "rel" in options:
        options["rel"] = threshold(options["rel"])
    if isinstance(options.get("gain"), GainTable):
        table = options["gain"]
        options["gain"] = dict(table.entries) | ({} if table.others is None else {"others": table.others})
    if isinstance(options.get("discount"), DiscountTable):
        options["discount"] = list(options["discount"].values)
    return options


def reference_of(metric: Metric, **more: Any) -> Values:
    """The reference's function for a filled metric."""
    return partial(getattr(reference, TABLE[metric.family].reference), **options_of(metric), **more)


def truth_of(metric: Metric, scores: list[float | None]) -> brute_force.Metric:
    """The slow truth of a filled metric for a list with these scores: a function of one strict ranking."""
    n_retrieved = sum(score is not None for score in scores)
    options = {name: value for name, value in options_of(metric).items() if name not in ("ties", "no_relevant")}
    above = options.pop("above", None)
    if isinstance(options.get("k"), str):
        options["k"] = brute_force.share_of(n_retrieved, options["k"])
    if "gain" in options and options["gain"] not in ("binary", "scaled"):
        options["gain"] = partial(_gain, options["gain"])
    if "discount" in options:
        options["discount"] = partial(_discount, options["discount"])
    truth = TABLE[metric.family].truth
    assert truth is not None
    value = partial(getattr(brute_force, truth), **options)
    if above is None:
        return value
    # Those below the bound stand last in any ranking: places without a document that counts, and judged documents that were not found.
    n_above = sum(score is not None and score > above for score in scores)
    return lambda ranked, missing: value(ranked[:n_above] + (None,) * (n_retrieved - n_above), missing + ranked[n_above:])


def _gain(gain: Any, label: float | None) -> float:
    if label is None:
        return 0.0
    if isinstance(gain, dict):
        return gain[label] if label in gain else _gain(gain["others"], label)
    name, _, least = gain.partition(">=")
    if least and label < float(least):
        return 0.0
    return {"exp2": brute_force.exponential_gain, "linear": brute_force.linear_gain}[name](label)


def _discount(discount: Any, rank: int) -> float:
    if not isinstance(discount, str):
        return discount[rank - 1] if rank <= len(discount) else 0.0
    kind, _, text = discount.partition(":")
    return {
        "log2": lambda: 1 / np.log2(rank + 1),
        "ln": lambda: 1 / np.log(rank + 1),
        "zipf": lambda: 1 / rank,
        "power": lambda: rank ** -float(text),
        "geometric": lambda: float(text) ** (rank - 1),
        "jarvelin": lambda: 1.0 if rank < float(text) else np.log(float(text)) / np.log(rank),
    }[kind]()


# --- scikit-learn, a query at a time --------------------------------------------------------------------------------------------


def _queries(labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for start, stop in itertools.pairwise(offsets):
        yield labels[start:stop], scores[start:stop]


def _gains_score(name: str, k: int | None, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    import sklearn.metrics

    score = getattr(sklearn.metrics, name)
    return np.array([score(label[None], score_[None], k=k) for label, score_ in _queries(labels, scores, offsets)])


def _curve_score(name: str, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    import sklearn.metrics

    score = getattr(sklearn.metrics, name)
    return np.array([score(label, score_) for label, score_ in _queries(labels, scores, offsets)])


def _sklearn() -> dict[str, tuple[Peer, ...]]:
    gains = {
        family: tuple(
            Peer("sklearn", f"{name}(k={k})", metric(k=k), partial(_gains_score, name, k), convention="sklearn", shortest=2)
            for k in (None, 3, 20)
        )
        for family, metric, name in (("DCG", m.DCG, "dcg_score"), ("nDCG", m.nDCG, "ndcg_score"))
    }
    area = Peer("sklearn", "roc_auc_score", m.AUC(), partial(_curve_score, "roc_auc_score"), binary=True, both_classes=True)
    average = Peer(
        "sklearn",
        "average_precision_score",
        m.AP(),
        partial(_curve_score, "average_precision_score"),
        binary=True,
        both_classes=True,
        untied=True,
    )
    return {**gains, "AUC": (area,), "AP": (average,)}


# --- LightGBM: its metrics of a model that has not learned anything, over initial scores ----------------------------------------


def _lightgbm_mean(name: str, k: int, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> float:
    import lightgbm

    data = lightgbm.Dataset(np.zeros((len(labels), 1)), labels, group=np.diff(offsets), init_score=scores, params={"verbose": -1})
    settings = {"objective": "lambdarank", "metric": name, "eval_at": k, "num_threads": 1, "verbose": -1}
    ((_, _, value, *_),) = lightgbm.Booster(settings, data).eval_train()
    return float(value)


def _lightgbm(name: str, metric: type[Metric]) -> tuple[Peer, ...]:
    return tuple(
        Peer(
            "lightgbm",
            f"{name}@{k}",
            metric(k=k),
            partial(_lightgbm_mean, name, k),
            convention="lightgbm",
            whole_labels=True,
            mean_only=True,
        )
        for k in (1, 3, 20)
    )


# --- trec_eval through pytrec_eval and ir_measures ------------------------------------------------------------------------------
# Both order equal scores by document id, larger first: ids that fall along the input make that the order of the input.


def _as_dicts(values: np.ndarray, offsets: np.ndarray, kind: type) -> dict[str, dict[str, Any]]:
    found = {}
    for q, (start, stop) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        found[str(q)] = {
            f"d{10**8 - 1 - row}": kind(value) for row, value in zip(range(start, stop), values[start:stop].tolist(), strict=True)
        }
    return found


def _pytrec_eval_values(measure: str, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    import pytrec_eval

    # A new evaluator a call: it changes the list of measures it was given.
    evaluator = pytrec_eval.RelevanceEvaluator(_as_dicts(labels, offsets, int), {measure})
    found = evaluator.evaluate(_as_dicts(scores, offsets, float))
    printed = measure if re.search(r"_\d\.\d+$", measure) else measure.replace(".", "_")
    return np.array([found[str(q)][printed] for q in range(len(offsets) - 1)])


def _ir_measures_values(measure: str, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    import ir_measures

    values = np.zeros(len(offsets) - 1)
    parsed = ir_measures.parse_measure(measure)
    for each in ir_measures.iter_calc([parsed], _as_dicts(labels, offsets, int), _as_dicts(scores, offsets, float)):
        values[int(each.query_id)] = each.value
    return values


def _raised_values(measure: str, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return _ir_measures_values(measure, labels, scores - scores.min(initial=0) + 1, offsets)


def _pytrec_eval(**measures: Metric) -> tuple[Peer, ...]:
    return tuple(
        Peer(
            "pytrec_eval",
            name.replace("__", "."),
            metric,
            partial(_pytrec_eval_values, name.replace("__", ".")),
            ties="input",
            whole_labels=True,
        )
        for name, metric in measures.items()
    )


def _ir_measures(measures: dict[str, Metric], *, library: str | None = None, positive: bool = False, **options: Any) -> tuple[Peer, ...]:
    """library: what ir_measures asks in turn. positive: it takes an unretrieved document for one of score 0, so all scores are raised."""
    values = _raised_values if positive else _ir_measures_values
    return tuple(
        Peer("ir_measures", name, metric, partial(values, name), ties="input", whole_labels=True, behind=library, **options)
        for name, metric in measures.items()
    )


# Metrics of cwl_eval, which ir_measures asks. It takes equal scores in an order of its own.
_CWL: dict[str, Any] = {"untied": True, "library": "cwl"}


# --- the table ------------------------------------------------------------------------------------------------------------------

# A table that does not rise with the label, and one with a loss: every label of `strategies.GRADES` has an entry.
UNEVEN = {0: 0.5, 0.5: 0.1, 1: 3, 1.7: 0.25, 2: 0, 3: 2, 4: 2}
LOSSES = {**UNEVEN, 0: 0, 2: -1}
FEW_RANKS = (1, 0.7, 0.2)


def _cut(metric: type[Metric], *cutoffs: Any, **options: Any) -> tuple[Metric, ...]:
    return tuple(metric(k=k, **options) for k in cutoffs)


def _gain_like(metric: type[Metric]) -> tuple[Metric, ...]:
    return (
        *_cut(metric, None, 1, 3, 1000, "20%"),
        *_cut(metric, None, 3, gain="linear"),
        *_cut(metric, None, 3, "50%", gain=UNEVEN),
        metric(gain="exp2>=1.5"),
        metric(gain={1: 0.5, "others": "linear"}),
        *[metric(discount=discount) for discount in ("ln", "zipf", "power:0.5", "geometric:0.5", "jarvelin:2.5", FEW_RANKS)],
        metric(k=4, gain="linear", discount="jarvelin:2"),
    )


def _with_rules(metric: type[Metric], **options: Any) -> tuple[Metric, ...]:
    return tuple(metric(no_relevant=rule, **options) for rule in ("one", "nan", "skip"))


SKLEARN = _sklearn()

TABLE: dict[str, Row] = {
    "DCG": Row("dcg", "dcg", (*_gain_like(m.DCG), *_cut(m.DCG, None, 2, gain=LOSSES)), SKLEARN["DCG"]),
    "IDCG": Row("idcg", "idcg", (*_gain_like(m.IDCG), *_cut(m.IDCG, None, 2, gain=LOSSES))),
    "nDCG": Row(
        "ndcg",
        "ndcg",
        (*_gain_like(m.nDCG), *_with_rules(m.nDCG), *_with_rules(m.nDCG, k="20%")),
        (
            *SKLEARN["nDCG"],
            *_lightgbm("ndcg", m.nDCG),
            *_pytrec_eval(ndcg=m.nDCG(gain="linear"), ndcg_cut__3=m.nDCG(gain="linear", k=3), ndcg_cut__50=m.nDCG(gain="linear", k=50)),
            *_ir_measures({"nDCG@4": m.nDCG(gain="linear", k=4), "nDCG(gains={0:0,1:1,2:3,3:7,4:15})@4": m.nDCG(k=4)}),
        ),
    ),
    "RR": Row(
        "reciprocal_rank",
        "reciprocal_rank",
        (
            *_cut(m.RR, None, 1, 3, 1000, "30%"),
            *_cut(m.RR, None, 2, rel=2),
            m.RR(rel=">0.5", k=5),
            *_cut(m.RR, None, 2, above=0),
            *_with_rules(m.RR),
        ),
        (*_pytrec_eval(recip_rank=m.RR()), *_ir_measures({"RR": m.RR(), "RR(rel=2)": m.RR(rel=2)})),
    ),
    "AP": Row(
        "average_precision",
        "average_precision",
        (
            *[
                metric
                for below in ("relevant", "min_k", "min_k_retrieved", "hits")
                for metric in _cut(m.AP, None, 1, 3, 1000, "30%", denominator=below)
            ],
            *_cut(m.AP, None, 3, rel=2),
            *[metric for below in ("relevant", "min_k_retrieved", "hits") for metric in _cut(m.AP, None, 3, above=0, denominator=below)],
            *_with_rules(m.AP, k=3, denominator="min_k"),
        ),
        (
            *SKLEARN["AP"],
            *_lightgbm("map", m.AP),
            *_pytrec_eval(map=m.AP(), map_cut__3=m.AP(k=3)),
            *_ir_measures({"AP(rel=2)": m.AP(rel=2), "AP@5": m.AP(k=5)}),
        ),
    ),
    "P": Row(
        "precision",
        "precision",
        (
            *_cut(m.P, None, 1, 3, 1000, "30%"),
            *_cut(m.P, None, 3, 1000, denominator="retrieved"),
            m.P(rel=2, k=2),
            *_cut(m.P, None, 3, above=0.5),
        ),
        (*_pytrec_eval(P__5=m.P(k=5), set_P=m.P()), *_ir_measures({"P(rel=2)@3": m.P(rel=2, k=3), "SetP": m.P()})),
    ),
    "R": Row(
        "recall",
        "recall",
        (*_cut(m.R, None, 1, 3, 1000, "30%"), m.R(rel=2, k=2), *_cut(m.R, None, 3, above=0), *_with_rules(m.R, k=2, above=0)),
        (*_pytrec_eval(recall__5=m.R(k=5), set_recall=m.R()), *_ir_measures({"R(rel=2)@3": m.R(rel=2, k=3)})),
    ),
    "F": Row(
        "f",
        "f",
        (
            *[metric for beta in (1, 2, 0.5) for metric in _cut(m.F, None, 1, 3, 1000, "30%", beta=beta)],
            m.F(rel=2, k=2),
            *_with_rules(m.F, k=2),
        ),
        (*_pytrec_eval(set_F=m.F()), *_ir_measures({"SetF(beta=4.0)": m.F(beta=2)})),
    ),
    "Success": Row(
        "success",
        "success",
        (*_cut(m.Success, None, 1, 3, 1000, "30%"), m.Success(rel=2, k=2), *_with_rules(m.Success, k=2)),
        (*_pytrec_eval(success__5=m.Success(k=5)), *_ir_measures({"Success(rel=2)@3": m.Success(rel=2, k=3)})),
    ),
    "Rprec": Row(
        "r_precision",
        "r_precision",
        (m.Rprec(), m.Rprec(rel=2), *[m.Rprec(multiple=x) for x in (0.2, 0.5, 1.6)], *_with_rules(m.Rprec)),
        (*_pytrec_eval(Rprec=m.Rprec(), **{"Rprec_mult_0.40": m.Rprec(multiple=0.4)}), *_ir_measures({"Rprec(rel=2)": m.Rprec(rel=2)})),
    ),
    "RBP": Row(
        "rbp",
        "rbp",
        (
            *_cut(m.RBP, None, 1, 3, 1000, "30%"),
            m.RBP(p=0.3),
            m.RBP(p=0.95, rel=2, k=2),
            *[m.RBP(gain=gain) for gain in ("scaled", "linear", "linear>=2", UNEVEN)],
            m.RBP(gain="scaled", k="30%", p=0.5),
        ),
        _ir_measures({"RBP(rel=1)": m.RBP(), "RBP(rel=2,p=0.5)": m.RBP(rel=2, p=0.5)}, untied=True, library="cwl"),
    ),
    "RBPResid": Row("rbp_residual", "rbp_residual", (m.RBPResid(), m.RBPResid(p=0.5))),
    "ERR": Row(
        "err",
        "err",
        (*_cut(m.ERR, None, 1, 3, 1000, "30%"), m.ERR(max_label=5.5), *_with_rules(m.ERR, k=2)),
        # The Perl script behind it prints five decimals.
        _ir_measures({"ERR@3": m.ERR(k=3), "ERR@20": m.ERR(k=20)}, tolerance=0.6e-5, program="perl"),
    ),
    "AUC": Row("auc", "auc", (m.AUC(), m.AUC(rel=2), *_with_rules(m.AUC)), SKLEARN["AUC"]),
    "Concordance": Row("concordance", "concordance", (m.Concordance(), *_with_rules(m.Concordance))),
    "PNormPush": Row("p_norm_push", "p_norm_push", (m.PNormPush(), m.PNormPush(p=1), m.PNormPush(p=2.5, rel=2), *_with_rules(m.PNormPush))),
    "Bpref": Row(
        "bpref",
        "bpref",
        (m.Bpref(), m.Bpref(rel=2), *_with_rules(m.Bpref)),
        (*_pytrec_eval(bpref=m.Bpref()), *_ir_measures({"Bpref(rel=2)": m.Bpref(rel=2)})),
    ),
    "Judged": Row("judged", "judged", _cut(m.Judged, None, 1, 3, 1000, "30%"), _ir_measures({"Judged@4": m.Judged(k=4)})),
    "NumRet": Row("num_ret", "num_ret", (m.NumRet(),), (*_pytrec_eval(num_ret=m.NumRet()), *_ir_measures({"NumRet": m.NumRet()}))),
    "NumRel": Row(
        "num_rel", "num_rel", (m.NumRel(), m.NumRel(rel=2)), (*_pytrec_eval(num_rel=m.NumRel()), *_ir_measures({"NumRel": m.NumRel()}))
    ),
    "NumRelRet": Row(
        "num_rel_ret",
        "num_rel_ret",
        (*_cut(m.NumRelRet, None, 1, 3, 1000, "30%"), m.NumRelRet(rel=2, k=2)),
        (*_pytrec_eval(num_rel_ret=m.NumRelRet()), *_ir_measures({"NumRet(rel=1)": m.NumRelRet()})),
    ),
}

TABLE |= {
    "GMAP": Row(
        "average_precision",
        "average_precision",
        (*_cut(m.GMAP, None, 1, 3, "30%"), m.GMAP(rel=2), m.GMAP(k=3, denominator="min_k"), m.GMAP(above=0), *_with_rules(m.GMAP)),
    ),
    "GMBpref": Row("bpref", "bpref", (m.GMBpref(), m.GMBpref(rel=2), *_with_rules(m.GMBpref))),
    "YAAP": Row("yaap", "yaap", (m.YAAP(), m.YAAP(rel=2))),
    "IPrec": Row(
        "interpolated_precision",
        "interpolated_precision",
        (
            *[
                m.IPrec(recall=recall, rounding=rounding)
                for recall in (0, 0.1, 0.25, 0.3, 0.5, 1)
                for rounding in ("nearest", "up", "trec_eval9")
            ],
            m.IPrec(recall=0.4, rel=2),
            *_with_rules(m.IPrec, recall=0.2),
        ),
        (
            *_pytrec_eval(**{f"iprec_at_recall_{x:.2f}": m.IPrec(recall=x, rounding="trec_eval9") for x in (0, 0.3, 1)}),
            *_ir_measures({"IPrec@0.2": m.IPrec(recall=0.2, rounding="trec_eval9")}),
        ),
    ),
    "AvgIPrec": Row(
        "average_interpolated_precision",
        "average_interpolated_precision",
        (
            m.AvgIPrec(),
            m.AvgIPrec(recalls=(0.2, 0.5, 0.8), rounding="up"),
            m.AvgIPrec(rounding="trec_eval9", rel=2),
            *_with_rules(m.AvgIPrec),
        ),
        _pytrec_eval(**{"11pt_avg": m.AvgIPrec(rounding="trec_eval9")}),
    ),
    "infAP": Row(
        "inferred_average_precision",
        None,
        (m.infAP(), m.infAP(rel=2), *_with_rules(m.infAP)),
        (*_pytrec_eval(infAP=m.infAP()), *_ir_measures({"infAP(rel=2)": m.infAP(rel=2)})),
    ),
    "binG": Row("bin_g", "bin_g", (m.binG(), m.binG(rel=2), *_with_rules(m.binG)), _pytrec_eval(binG=m.binG())),
    "G": Row("g", None, (m.G(), m.G(gain="exp2"), m.G(gain=UNEVEN), *_with_rules(m.G)), _pytrec_eval(G=m.G())),
    "nDCGrel": Row(
        "ndcg_rel",
        "ndcg_rel",
        (m.nDCGrel(), m.nDCGrel(gain="exp2"), m.nDCGrel(gain=UNEVEN), *_with_rules(m.nDCGrel)),
        _pytrec_eval(ndcg_rel=m.nDCGrel()),
    ),
    "Rndcg": Row(
        "r_ndcg",
        "r_ndcg",
        (m.Rndcg(), m.Rndcg(gain="exp2", rel=2), m.Rndcg(gain=UNEVEN), *_with_rules(m.Rndcg)),
        _pytrec_eval(Rndcg=m.Rndcg()),
    ),
    "RelP": Row(
        "relative_precision",
        "relative_precision",
        (*_cut(m.RelP, None, 1, 3, 1000, "30%"), m.RelP(rel=2, k=2), *_with_rules(m.RelP, k=2)),
        (*_pytrec_eval(relative_P__5=m.RelP(k=5), set_relative_P=m.RelP()), *_ir_measures({"SetRelP(rel=2)": m.RelP(rel=2)})),
    ),
    "SetAP": Row(
        "set_average_precision",
        "set_average_precision",
        (m.SetAP(), m.SetAP(rel=2), *_with_rules(m.SetAP)),
        (*_pytrec_eval(set_map=m.SetAP()), *_ir_measures({"SetAP(rel=2)": m.SetAP(rel=2)})),
    ),
    "Utility": Row(
        "utility",
        "utility",
        (m.Utility(), m.Utility(rel=2, weights=(2, -0.5, -1, 0.25)), m.Utility(weights=(0, 0, 0, 1), collection=10**6)),
        _pytrec_eval(utility=m.Utility()),
    ),
    "NumQ": Row("num_q", "num_q", (m.NumQ(),), _pytrec_eval(num_q=m.NumQ())),
    "NumNonRelRet": Row(
        "num_non_rel_ret",
        "num_non_rel_ret",
        (m.NumNonRelRet(), m.NumNonRelRet(rel=2)),
        _pytrec_eval(num_nonrel_judged_ret=m.NumNonRelRet()),
    ),
    "Unjudged": Row("unjudged", "unjudged", _cut(m.Unjudged, None, 1, 3, 1000, "30%")),
    "SDCG": Row(
        "sdcg",
        "sdcg",
        (*_cut(m.SDCG, None, 1, 3, 1000, "30%"), *_cut(m.SDCG, None, 5, horizon=3, min_label=1, max_label=3)),
        _ir_measures({"SDCG(max_rel=3)@4": m.SDCG(k=4, max_label=3), "SDCG(min_rel=1,max_rel=4)@9": m.SDCG(k=9, min_label=1)}, **_CWL),
    ),
    "INSQ": Row(
        "insq",
        "insq",
        (m.INSQ(), m.INSQ(T=2.5, max_label=2), m.INSQ(horizon=5, min_label=0.5)),
        _ir_measures({"INSQ(max_rel=4)": m.INSQ(), "INSQ(T=3.,max_rel=2)": m.INSQ(T=3, max_label=2)}, **_CWL),
    ),
    "INST": Row(
        "inst",
        None,
        (m.INST(), m.INST(T=2.5, max_label=2), m.INST(horizon=5, min_label=0.5)),
        _ir_measures({"INST(max_rel=4)": m.INST(), "INST(T=3.,max_rel=2)": m.INST(T=3, max_label=2)}, **_CWL),
    ),
    "BPM": Row(
        "bpm",
        None,
        (*_cut(m.BPM, None, 1, 3, 1000, "30%"), m.BPM(T=2.5, max_label=2, k=5), m.BPM(horizon=4, min_label=0.5)),
        _ir_measures({"BPM(max_rel=4)@4": m.BPM(k=4), "BPM(T=2.,max_rel=2)@7": m.BPM(k=7, T=2, max_label=2)}, **_CWL),
    ),
    **{
        metric.family: Row(
            metric.family.lower(),
            None,
            (*_cut(metric, None, 1, 3, 1000, "30%"), metric(max_label=2, k=5), metric(horizon=4, min_label=0.5)),
            _ir_measures(
                {
                    f"{metric.family}(max_rel=4)@4": metric(k=4),
                    f"{metric.family}(min_rel=1,max_rel=3)@7": metric(k=7, min_label=1, max_label=3),
                },
                **_CWL,
            ),
        )
        for metric in (m.NERR8, m.NERR9)
    },
    "NERR10": Row(
        "nerr10",
        None,
        (m.NERR10(), m.NERR10(p=0.4, max_label=2), m.NERR10(horizon=4, min_label=0.5)),
        _ir_measures({"NERR10(max_rel=4)": m.NERR10(), "NERR10(p=0.5,max_rel=2)": m.NERR10(p=0.5, max_label=2)}, **_CWL),
    ),
    "NERR11": Row(
        "nerr11",
        None,
        (m.NERR11(), m.NERR11(T=2.5, max_label=2), m.NERR11(horizon=4, min_label=0.5)),
        _ir_measures({"NERR11(max_rel=4)": m.NERR11(), "NERR11(T=2.,max_rel=2)": m.NERR11(T=2, max_label=2)}, **_CWL),
    ),
    "Compat": Row(
        "compatibility",
        "compatibility",
        (m.Compat(), m.Compat(p=0.5, normalize=False), m.Compat(p=0.8), *_with_rules(m.Compat)),
        _ir_measures({"Compat": m.Compat(), "Compat(p=0.5,normalize=False)": m.Compat(p=0.5, normalize=False)}, untied=True, positive=True),
    ),
    "Accuracy": Row(
        "accuracy",
        "accuracy",
        (*_cut(m.Accuracy, None, 1, 3, 1000, "30%"), m.Accuracy(rel=2), *_with_rules(m.Accuracy)),
        _ir_measures({"Accuracy": m.Accuracy(), "Accuracy(rel=1)": m.Accuracy(rel=1)}, untied=True, both_classes=True),
    ),
}

PEERS = tuple(peer for row in TABLE.values() for peer in row.peers)


def instances(family: str, ties: str, no_relevant: str | None = None) -> tuple[Metric, ...]:
    """A family's instances under a tie rule, filled, without those that the rule does not fit."""
    convention = conventions["fastrank"].override(ties=ties, no_relevant=no_relevant)
    return tuple(metric.fill(convention) for metric in TABLE[family].metrics if ties in metric.tie_rules())

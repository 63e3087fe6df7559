"""One table: each metric family with instances to try, its reference, its slow truth, and the other programs that compute it.

The shared tests and the benchmarks are driven by it. A new family needs a row here; a test fails when one is missing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import brute_force
import numpy as np
from metric_peers import CWL, Peer, Values, ir_measures_peers, lightgbm_peers, pytrec_eval_peers, sklearn_peers

from fastrank import metrics as m
from fastrank import reference
from fastrank.convention import conventions
from fastrank.gains import DiscountTable, GainTable
from fastrank.metrics import Metric
from fastrank.metrics.base import show_cutoff, threshold


@dataclass(frozen=True)
class Row:
    """A family: instances to try, unfilled; the names of its functions in `fastrank.reference` and in `brute_force`; its peers.

    The slow truth goes through every order of ties: where these have no closed form and no bounds there is none (None).
    """

    reference: str
    truth: str | None
    metrics: tuple[Metric, ...]
    peers: tuple[Peer, ...] = field(default=())


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


SKLEARN = sklearn_peers()

TABLE: dict[str, Row] = {
    "DCG": Row("dcg", "dcg", (*_gain_like(m.DCG), *_cut(m.DCG, None, 2, gain=LOSSES)), SKLEARN["DCG"]),
    "IDCG": Row("idcg", "idcg", (*_gain_like(m.IDCG), *_cut(m.IDCG, None, 2, gain=LOSSES))),
    "nDCG": Row(
        "ndcg",
        "ndcg",
        (*_gain_like(m.nDCG), *_with_rules(m.nDCG), *_with_rules(m.nDCG, k="20%")),
        (
            *SKLEARN["nDCG"],
            *lightgbm_peers("ndcg", m.nDCG),
            *pytrec_eval_peers(
                ndcg=m.nDCG(gain="linear"), ndcg_cut__3=m.nDCG(gain="linear", k=3), ndcg_cut__50=m.nDCG(gain="linear", k=50)
            ),
            *ir_measures_peers({"nDCG@4": m.nDCG(gain="linear", k=4), "nDCG(gains={0:0,1:1,2:3,3:7,4:15})@4": m.nDCG(k=4)}),
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
        (*pytrec_eval_peers(recip_rank=m.RR()), *ir_measures_peers({"RR": m.RR(), "RR(rel=2)": m.RR(rel=2)})),
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
            *lightgbm_peers("map", m.AP),
            *pytrec_eval_peers(map=m.AP(), map_cut__3=m.AP(k=3)),
            *ir_measures_peers({"AP(rel=2)": m.AP(rel=2), "AP@5": m.AP(k=5)}),
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
        (*pytrec_eval_peers(P__5=m.P(k=5), set_P=m.P()), *ir_measures_peers({"P(rel=2)@3": m.P(rel=2, k=3), "SetP": m.P()})),
    ),
    "R": Row(
        "recall",
        "recall",
        (*_cut(m.R, None, 1, 3, 1000, "30%"), m.R(rel=2, k=2), *_cut(m.R, None, 3, above=0), *_with_rules(m.R, k=2, above=0)),
        (*pytrec_eval_peers(recall__5=m.R(k=5), set_recall=m.R()), *ir_measures_peers({"R(rel=2)@3": m.R(rel=2, k=3)})),
    ),
    "F": Row(
        "f",
        "f",
        (
            *[metric for beta in (1, 2, 0.5) for metric in _cut(m.F, None, 1, 3, 1000, "30%", beta=beta)],
            m.F(rel=2, k=2),
            *_with_rules(m.F, k=2),
        ),
        (*pytrec_eval_peers(set_F=m.F()), *ir_measures_peers({"SetF(beta=4.0)": m.F(beta=2)})),
    ),
    "Success": Row(
        "success",
        "success",
        (*_cut(m.Success, None, 1, 3, 1000, "30%"), m.Success(rel=2, k=2), *_with_rules(m.Success, k=2)),
        (*pytrec_eval_peers(success__5=m.Success(k=5)), *ir_measures_peers({"Success(rel=2)@3": m.Success(rel=2, k=3)})),
    ),
    "Rprec": Row(
        "r_precision",
        "r_precision",
        (m.Rprec(), m.Rprec(rel=2), *[m.Rprec(multiple=x) for x in (0.2, 0.5, 1.6)], *_with_rules(m.Rprec)),
        (
            *pytrec_eval_peers(Rprec=m.Rprec(), **{"Rprec_mult_0.40": m.Rprec(multiple=0.4)}),
            *ir_measures_peers({"Rprec(rel=2)": m.Rprec(rel=2)}),
        ),
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
        ir_measures_peers({"RBP(rel=1)": m.RBP(), "RBP(rel=2,p=0.5)": m.RBP(rel=2, p=0.5)}, untied=True, library="cwl"),
    ),
    "RBPResid": Row("rbp_residual", "rbp_residual", (m.RBPResid(), m.RBPResid(p=0.5))),
    "ERR": Row(
        "err",
        "err",
        (*_cut(m.ERR, None, 1, 3, 1000, "30%"), m.ERR(max_label=5.5), *_with_rules(m.ERR, k=2)),
        # The Perl script behind it prints five decimals.
        ir_measures_peers({"ERR@3": m.ERR(k=3), "ERR@20": m.ERR(k=20)}, tolerance=0.6e-5, program="perl"),
    ),
    "AUC": Row("auc", "auc", (m.AUC(), m.AUC(rel=2), *_with_rules(m.AUC)), SKLEARN["AUC"]),
    "Concordance": Row("concordance", "concordance", (m.Concordance(), *_with_rules(m.Concordance))),
    "PNormPush": Row("p_norm_push", "p_norm_push", (m.PNormPush(), m.PNormPush(p=1), m.PNormPush(p=2.5, rel=2), *_with_rules(m.PNormPush))),
    "Bpref": Row(
        "bpref",
        "bpref",
        (m.Bpref(), m.Bpref(rel=2), *_with_rules(m.Bpref)),
        (*pytrec_eval_peers(bpref=m.Bpref()), *ir_measures_peers({"Bpref(rel=2)": m.Bpref(rel=2)})),
    ),
    "Judged": Row("judged", "judged", _cut(m.Judged, None, 1, 3, 1000, "30%"), ir_measures_peers({"Judged@4": m.Judged(k=4)})),
    "NumRet": Row(
        "num_ret", "num_ret", (m.NumRet(),), (*pytrec_eval_peers(num_ret=m.NumRet()), *ir_measures_peers({"NumRet": m.NumRet()}))
    ),
    "NumRel": Row(
        "num_rel",
        "num_rel",
        (m.NumRel(), m.NumRel(rel=2)),
        (*pytrec_eval_peers(num_rel=m.NumRel()), *ir_measures_peers({"NumRel": m.NumRel()})),
    ),
    "NumRelRet": Row(
        "num_rel_ret",
        "num_rel_ret",
        (*_cut(m.NumRelRet, None, 1, 3, 1000, "30%"), m.NumRelRet(rel=2, k=2)),
        (*pytrec_eval_peers(num_rel_ret=m.NumRelRet()), *ir_measures_peers({"NumRet(rel=1)": m.NumRelRet()})),
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
            *pytrec_eval_peers(**{f"iprec_at_recall_{x:.2f}": m.IPrec(recall=x, rounding="trec_eval9") for x in (0, 0.3, 1)}),
            *ir_measures_peers({"IPrec@0.2": m.IPrec(recall=0.2, rounding="trec_eval9")}),
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
        pytrec_eval_peers(**{"11pt_avg": m.AvgIPrec(rounding="trec_eval9")}),
    ),
    "infAP": Row(
        "inferred_average_precision",
        None,
        (m.infAP(), m.infAP(rel=2), *_with_rules(m.infAP)),
        (*pytrec_eval_peers(infAP=m.infAP()), *ir_measures_peers({"infAP(rel=2)": m.infAP(rel=2)})),
    ),
    "binG": Row("bin_g", "bin_g", (m.binG(), m.binG(rel=2), *_with_rules(m.binG)), pytrec_eval_peers(binG=m.binG())),
    "G": Row("g", None, (m.G(), m.G(gain="exp2"), m.G(gain=UNEVEN), *_with_rules(m.G)), pytrec_eval_peers(G=m.G())),
    "nDCGrel": Row(
        "ndcg_rel",
        "ndcg_rel",
        (m.nDCGrel(), m.nDCGrel(gain="exp2"), m.nDCGrel(gain=UNEVEN), *_with_rules(m.nDCGrel)),
        pytrec_eval_peers(ndcg_rel=m.nDCGrel()),
    ),
    "Rndcg": Row(
        "r_ndcg",
        "r_ndcg",
        (m.Rndcg(), m.Rndcg(gain="exp2", rel=2), m.Rndcg(gain=UNEVEN), *_with_rules(m.Rndcg)),
        pytrec_eval_peers(Rndcg=m.Rndcg()),
    ),
    "RelP": Row(
        "relative_precision",
        "relative_precision",
        (*_cut(m.RelP, None, 1, 3, 1000, "30%"), m.RelP(rel=2, k=2), *_with_rules(m.RelP, k=2)),
        (*pytrec_eval_peers(relative_P__5=m.RelP(k=5), set_relative_P=m.RelP()), *ir_measures_peers({"SetRelP(rel=2)": m.RelP(rel=2)})),
    ),
    "SetAP": Row(
        "set_average_precision",
        "set_average_precision",
        (m.SetAP(), m.SetAP(rel=2), *_with_rules(m.SetAP)),
        (*pytrec_eval_peers(set_map=m.SetAP()), *ir_measures_peers({"SetAP(rel=2)": m.SetAP(rel=2)})),
    ),
    "Utility": Row(
        "utility",
        "utility",
        (m.Utility(), m.Utility(rel=2, weights=(2, -0.5, -1, 0.25)), m.Utility(weights=(0, 0, 0, 1), collection=10**6)),
        pytrec_eval_peers(utility=m.Utility()),
    ),
    "NumQ": Row("num_q", "num_q", (m.NumQ(),), pytrec_eval_peers(num_q=m.NumQ())),
    "NumNonRelRet": Row(
        "num_non_rel_ret",
        "num_non_rel_ret",
        (m.NumNonRelRet(), m.NumNonRelRet(rel=2)),
        pytrec_eval_peers(num_nonrel_judged_ret=m.NumNonRelRet()),
    ),
    "Unjudged": Row("unjudged", "unjudged", _cut(m.Unjudged, None, 1, 3, 1000, "30%")),
    "SDCG": Row(
        "sdcg",
        "sdcg",
        (*_cut(m.SDCG, None, 1, 3, 1000, "30%"), *_cut(m.SDCG, None, 5, horizon=3, min_label=1, max_label=3)),
        ir_measures_peers({"SDCG(max_rel=3)@4": m.SDCG(k=4, max_label=3), "SDCG(min_rel=1,max_rel=4)@9": m.SDCG(k=9, min_label=1)}, **CWL),
    ),
    "INSQ": Row(
        "insq",
        "insq",
        (m.INSQ(), m.INSQ(T=2.5, max_label=2), m.INSQ(horizon=5, min_label=0.5)),
        ir_measures_peers({"INSQ(max_rel=4)": m.INSQ(), "INSQ(T=3.,max_rel=2)": m.INSQ(T=3, max_label=2)}, **CWL),
    ),
    "INST": Row(
        "inst",
        None,
        (m.INST(), m.INST(T=2.5, max_label=2), m.INST(horizon=5, min_label=0.5)),
        ir_measures_peers({"INST(max_rel=4)": m.INST(), "INST(T=3.,max_rel=2)": m.INST(T=3, max_label=2)}, **CWL),
    ),
    "BPM": Row(
        "bpm",
        None,
        (*_cut(m.BPM, None, 1, 3, 1000, "30%"), m.BPM(T=2.5, max_label=2, k=5), m.BPM(horizon=4, min_label=0.5)),
        ir_measures_peers({"BPM(max_rel=4)@4": m.BPM(k=4), "BPM(T=2.,max_rel=2)@7": m.BPM(k=7, T=2, max_label=2)}, **CWL),
    ),
    **{
        metric.family: Row(
            metric.family.lower(),
            None,
            (*_cut(metric, None, 1, 3, 1000, "30%"), metric(max_label=2, k=5), metric(horizon=4, min_label=0.5)),
            ir_measures_peers(
                {
                    f"{metric.family}(max_rel=4)@4": metric(k=4),
                    f"{metric.family}(min_rel=1,max_rel=3)@7": metric(k=7, min_label=1, max_label=3),
                },
                **CWL,
            ),
        )
        for metric in (m.NERR8, m.NERR9)
    },
    "NERR10": Row(
        "nerr10",
        None,
        (m.NERR10(), m.NERR10(p=0.4, max_label=2), m.NERR10(horizon=4, min_label=0.5)),
        ir_measures_peers({"NERR10(max_rel=4)": m.NERR10(), "NERR10(p=0.5,max_rel=2)": m.NERR10(p=0.5, max_label=2)}, **CWL),
    ),
    "NERR11": Row(
        "nerr11",
        None,
        (m.NERR11(), m.NERR11(T=2.5, max_label=2), m.NERR11(horizon=4, min_label=0.5)),
        ir_measures_peers({"NERR11(max_rel=4)": m.NERR11(), "NERR11(T=2.,max_rel=2)": m.NERR11(T=2, max_label=2)}, **CWL),
    ),
    "Compat": Row(
        "compatibility",
        "compatibility",
        (m.Compat(), m.Compat(p=0.5, normalize=False), m.Compat(p=0.8), *_with_rules(m.Compat)),
        ir_measures_peers(
            {"Compat": m.Compat(), "Compat(p=0.5,normalize=False)": m.Compat(p=0.5, normalize=False)}, untied=True, positive=True
        ),
    ),
    "Accuracy": Row(
        "accuracy",
        "accuracy",
        (*_cut(m.Accuracy, None, 1, 3, 1000, "30%"), m.Accuracy(rel=2), *_with_rules(m.Accuracy)),
        ir_measures_peers({"Accuracy": m.Accuracy(), "Accuracy(rel=1)": m.Accuracy(rel=1)}, untied=True, both_classes=True),
    ),
}

PEERS = tuple(peer for row in TABLE.values() for peer in row.peers)


def instances(family: str, ties: str, no_relevant: str | None = None) -> tuple[Metric, ...]:
    """A family's instances under a tie rule, filled, without those that the rule does not fit."""
    convention = conventions["fastrank"].override(ties=ties, no_relevant=no_relevant)
    return tuple(metric.fill(convention) for metric in TABLE[family].metrics if ties in metric.tie_rules())

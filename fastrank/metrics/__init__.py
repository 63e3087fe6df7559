"""Metrics as values: one file a family, `fr.metrics.nDCG(k=10)`. Importing this package registers them all."""

from __future__ import annotations

from fastrank.metrics.averages import GMAP, YAAP, GMBpref
from fastrank.metrics.base import Metric, families
from fastrank.metrics.binary import AP, RR, F, P, R, Rprec, Success
from fastrank.metrics.cascade import ERR
from fastrank.metrics.counts import Judged, NumNonRelRet, NumQ, NumRel, NumRelRet, NumRet, Unjudged
from fastrank.metrics.cumulative_gain import DCG, IDCG, nDCG
from fastrank.metrics.diversity import AP_IA, ERR_IA, NRBP, P_IA, StRecall, alpha_DCG, alpha_nDCG, nERR_IA, nNRBP
from fastrank.metrics.gain_at_ranks import G, Rndcg, binG, nDCGrel
from fastrank.metrics.grouped import AP_avgjg, P_avgjg, Rprec_avgjg
from fastrank.metrics.inferred import infAP
from fastrank.metrics.interpolated import AvgIPrec, IPrec
from fastrank.metrics.overlap import Compat
from fastrank.metrics.pairwise import AUC, Accuracy, Concordance, PNormPush
from fastrank.metrics.preference import Bpref
from fastrank.metrics.preferences import NumPrefs, NumPrefsFul, PrefsFul, PrefsRnonrel
from fastrank.metrics.rank_biased import RBP, RBPResid
from fastrank.metrics.setwise import RelP, SetAP, Utility
from fastrank.metrics.user_models import BPM, INSQ, INST, NERR8, NERR9, NERR10, NERR11, SDCG

__all__ = [
    "AP",
    "AP_IA",
    "AUC",
    "BPM",
    "DCG",
    "ERR",
    "ERR_IA",
    "GMAP",
    "IDCG",
    "INSQ",
    "INST",
    "NERR8",
    "NERR9",
    "NERR10",
    "NERR11",
    "NRBP",
    "P_IA",
    "RBP",
    "RR",
    "SDCG",
    "YAAP",
    "AP_avgjg",
    "Accuracy",
    "AvgIPrec",
    "Bpref",
    "Compat",
    "Concordance",
    "F",
    "G",
    "GMBpref",
    "IPrec",
    "Judged",
    "Metric",
    "NumNonRelRet",
    "NumPrefs",
    "NumPrefsFul",
    "NumQ",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "PNormPush",
    "P_avgjg",
    "PrefsFul",
    "PrefsRnonrel",
    "R",
    "RBPResid",
    "RelP",
    "Rndcg",
    "Rprec",
    "Rprec_avgjg",
    "SetAP",
    "StRecall",
    "Success",
    "Unjudged",
    "Utility",
    "alpha_DCG",
    "alpha_nDCG",
    "binG",
    "families",
    "infAP",
    "nDCG",
    "nDCGrel",
    "nERR_IA",
    "nNRBP",
]

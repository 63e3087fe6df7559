"""Metrics as values: one file a family, `fr.metrics.nDCG(k=10)`. Importing this package registers them all."""

from __future__ import annotations

from fastrank.metrics.base import Metric, families
from fastrank.metrics.binary import AP, RBP, RR, F, P, R, Rprec, Success
from fastrank.metrics.cascade import ERR
from fastrank.metrics.counts import Judged, NumRel, NumRelRet, NumRet
from fastrank.metrics.cumulative_gain import DCG, IDCG, nDCG
from fastrank.metrics.pairwise import AUC, Concordance, PNormPush
from fastrank.metrics.preference import Bpref

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "IDCG",
    "RBP",
    "RR",
    "Bpref",
    "Concordance",
    "F",
    "Judged",
    "Metric",
    "NumRel",
    "NumRelRet",
    "NumRet",
    "P",
    "PNormPush",
    "R",
    "Rprec",
    "Success",
    "families",
    "nDCG",
]

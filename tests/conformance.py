"""What other programs really return: the folder beside the repository, and their names for metrics said in ours."""

from __future__ import annotations

import functools
import itertools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrank as fr

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "conformance"

# A few last bits, whatever the size of the number: these programs sum doubles, though not in our order.
TOLERANCE = 1e-12
# Programs that sum in float32.
SINGLE = {"torchmetrics", "rax"}


def require() -> None:
    """Skip the module that calls this where the folder is absent: the repository does not hold it."""
    if not FOLDER.is_dir():
        pytest.skip("no conformance data: ../shared/conformance is not beside this checkout", allow_module_level=True)


@functools.cache
def read_json(name: str) -> Any:
    """One file of the folder."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@functools.cache
def field_reports() -> dict[int, dict[str, Any]]:
    """The entries of field_reports.jsonl by id."""
    lines = (FOLDER / "field_reports.jsonl").read_text(encoding="utf-8").splitlines()
    return {entry["id"]: entry for entry in map(json.loads, lines)}


# --- names -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ours:
    """How another program's metric is asked for here.

    `untied`: equal scores are undefined there, or follow a rule of that program alone, so only queries without them are compared.
    `unweighted`: the program takes query weights and does not use them. `complement`: it returns 1 minus ours.
    """

    metric: str
    convention: str
    untied: bool = False
    unweighted: bool = False
    complement: bool = False

    @property
    def filled(self) -> fr.Metric:
        return fr.parse_metric(self.metric, self.convention)


_NDCG, _NDCG_LINEAR, _NDCG_EXP = r"nDCG@\1", r"nDCG(gain='linear')@\1", r"nDCG(gain='exp2')@\1"
_K = r"@(\d+)"

# Per program: a pattern of its names, and what each is here. A name may be asked for in several ways.
NAMES: dict[str, list[tuple[str, list[Ours]]]] = {
    "lightgbm": [(rf"(?:ndcg|map){_K}", [Ours(r"\g<0>", "lightgbm")])],
    "xgboost": [
        (rf"ndcg_exp_gain=0:ndcg{_K}", [Ours(_NDCG_LINEAR, "xgboost")]),
        (rf"((?:ndcg|map)(?:{_K})?)-", [Ours(r"\g<0>", "xgboost"), Ours(r"\1", "xgboost-")]),
        (rf"pre(?:{_K})?", [Ours(r"\g<0>", "xgboost"), Ours(r"\g<0>", "xgboost-")]),
        (rf"(?:ndcg|map)(?:{_K})?", [Ours(r"\g<0>", "xgboost")]),
    ],
    "catboost": [
        (r"NDCG", [Ours("nDCG", "catboost")]),
        (r"NDCG:top=(\d+);type=Base", [Ours(_NDCG, "catboost")]),
        (r"NDCG:top=(\d+);type=Exp", [Ours(_NDCG_EXP, "catboost")]),
        (r"NDCG:top=(\d+);type=Exp;denominator=Position", [Ours(r"nDCG(gain='exp2', discount='zipf')@\1", "catboost")]),
        (r"DCG:top=(\d+);type=Exp", [Ours(r"DCG(gain='exp2')@\1", "catboost")]),
        (r"MRR:top=(\d+)", [Ours(r"MRR@\1", "catboost")]),
        (r"MAP:top=(\d+)", [Ours(r"MAP@\1", "catboost", unweighted=True)]),
        (r"RecallAt:top=(\d+)", [Ours(r"Recall@\1", "catboost", unweighted=True)]),
        (r"PrecisionAt:top=(\d+)", [Ours(r"Precision@\1", "catboost", unweighted=True)]),
        (r"QueryAUC", [Ours("AUC", "catboost", unweighted=True)]),
        (r"QueryAUC:type=Ranking", [Ours("Concordance", "catboost", unweighted=True)]),
    ],
    "sklearn": [
        (rf"ndcg_score{_K}", [Ours(_NDCG, "sklearn")]),
        (rf"ndcg_score\(2\^y-1\){_K}", [Ours(_NDCG_EXP, "sklearn")]),
        (rf"ndcg_score\(ignore_ties\){_K}", [Ours(r"nDCG(ties='input')@\1", "sklearn", untied=True)]),
        (rf"dcg_score{_K}", [Ours(r"DCG@\1", "sklearn")]),
        # One point of the curve for a whole block of equal scores, which is the value of no order of the documents.
        (r"average_precision_score", [Ours("AP", "sklearn", untied=True)]),
        (r"LRAP", [Ours("AP(no_relevant='one')", "sklearn", untied=True)]),
        (r"label_ranking_loss", [Ours("AUC(ties='worst', no_relevant='one')", "sklearn", complement=True)]),
    ],
    # Its sorts are not stable: only in nDCG, which averages, are equal scores defined. Neither of the two was given weights.
    "torchmetrics": [
        (rf"NormalizedDCG{_K}", [Ours(_NDCG, "torchmetrics", unweighted=True)]),
        (rf"NormalizedDCG\(pos\){_K}", [Ours(r"nDCG(no_relevant='one')@\1", "torchmetrics", unweighted=True)]),
        (rf"NormalizedDCG\(skip\){_K}", [Ours(r"nDCG(no_relevant='skip')@\1", "torchmetrics", unweighted=True)]),
        (rf"(MRR|MAP|Recall|Precision|HitRate){_K}", [Ours(r"\1@\2", "torchmetrics", untied=True, unweighted=True)]),
        (r"RPrecision", [Ours("RPrecision", "torchmetrics", untied=True, unweighted=True)]),
    ],
    "rax": [
        (rf"(ndcg|dcg|ap|recall|precision)_metric{_K}", [Ours(r"\1@\2", "rax", unweighted=True)]),
        (rf"mrr_metric{_K}", [Ours(r"RR@\1", "rax", unweighted=True)]),
        (r"opa_metric", [Ours("Concordance", "rax", unweighted=True)]),
    ],
}

# Metrics that these programs have and fastrank does not.
ABSENT = {
    "PFound": "a user model of CatBoost alone",
    "ERR": "CatBoost's takes the label itself as the probability: labels above 1 give values above 1",
    "FilteredDCG": "CatBoost's DCG of the documents with a score above 0, in the order of the rows",
    "AUROC": "torchmetrics passes scores through a sigmoid in float32, which makes some of them equal",
    "FallOut": "torchmetrics' share of the non-relevant documents that is in the top k",
    "coverage_error": "the depth that finds every relevant document: a rank, which has no place among values up to 1",
}


def ours(program: str, name: str) -> list[Ours]:
    """The ways to ask for another program's metric; none for one that is `ABSENT`. A name nobody knows is an error."""
    for pattern, ways in NAMES[program]:
        if found := re.fullmatch(pattern, name):
            return [Ours(found.expand(way.metric), way.convention, way.untied, way.unweighted, way.complement) for way in ways]
    if name.partition("@")[0] not in ABSENT:
        raise KeyError(f"{program} {name}: neither in NAMES nor in ABSENT")
    return []


# --- values ----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compared:
    """One number of another program beside ours. `where`: the case, then the query or "mean"."""

    where: str
    name: str
    theirs: float
    ours: float

    @property
    def difference(self) -> float:
        """Absolute below 1, relative above; infinite for NaN."""
        away = abs(self.theirs - self.ours) / max(1.0, abs(self.theirs))
        return away if away == away else np.inf


def mean_of(result: fr.Evaluation, way: Ours) -> float:
    """The mean of one metric of a result."""
    value = list(result.mean().values())[result.metrics.index(way.filled)]
    return 1.0 - value if way.complement else value


def values_of(result: fr.Evaluation, way: Ours) -> np.ndarray:
    """The values of one metric of a result, one per query."""
    values = result[way.filled]
    return 1.0 - values if way.complement else values


def has_ties(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Per query: whether two documents have one score."""
    pairs = itertools.pairwise(offsets)
    return np.array([len(np.unique(scores[start:stop])) < stop - start for start, stop in pairs], bool)


def wrong(compared: list[Compared], tolerance: float = TOLERANCE) -> list[Compared]:
    """Those that differ by more than rounding."""
    return [each for each in compared if each.difference > tolerance]


def tell(what: str, compared: list[Compared]) -> str:
    """A line that says how many values were compared and how far apart they were."""
    return f"{what}: {len(compared)} values compared, largest difference {max(each.difference for each in compared):.1e}\n"

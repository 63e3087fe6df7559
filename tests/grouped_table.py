"""One table: each family of judgements by subtopic or judge, with instances to try and its reference; and judgements at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import fastrank as fr
from fastrank import metrics as m
from fastrank import reference
from fastrank.metrics import Metric
from fastrank.metrics.base import show_cutoff, threshold

CUTS: tuple[Any, ...] = (None, 1, 3, 1000, "30%")
AMONG = ("all", "any_retrieved", "both_retrieved")


def _novel(metric: type[Metric]) -> tuple[Metric, ...]:
    cut = () if metric.whole_list_only else tuple(metric(k=k) for k in CUTS[1:])
    rules = tuple(metric(no_relevant=rule) for rule in ("one", "nan", "skip"))
    return (metric(), *cut, *(metric(alpha=alpha) for alpha in (0, 0.2, 1)), metric(rel=2), *rules)


def _counted(metric: type[Metric]) -> tuple[Metric, ...]:
    cut = () if metric.whole_list_only else tuple(metric(k=k) for k in CUTS[1:])
    rules = tuple(metric(no_relevant=rule) for rule in ("one", "nan", "skip")) if metric.has_no_relevant_rule() else ()
    return (metric(), *cut, metric(rel=2), *rules)


# A family's reference and the instances to try, unfilled.
GROUPED: dict[str, tuple[str, tuple[Metric, ...]]] = {
    "alpha_DCG": ("alpha_dcg", _novel(m.alpha_DCG)),
    "alpha_nDCG": ("alpha_ndcg", _novel(m.alpha_nDCG)),
    "ERR_IA": ("err_ia", _novel(m.ERR_IA)),
    "nERR_IA": ("n_err_ia", _novel(m.nERR_IA)),
    "NRBP": ("nrbp", (*_novel(m.NRBP), m.NRBP(beta=0.8))),
    "nNRBP": ("n_nrbp", (*_novel(m.nNRBP), m.nNRBP(beta=0.8))),
    "AP_IA": ("ap_ia", _counted(m.AP_IA)),
    "P_IA": ("p_ia", _counted(m.P_IA)),
    "StRecall": ("st_recall", _counted(m.StRecall)),
    "AP_avgjg": ("ap_avgjg", _counted(m.AP_avgjg)),
    "P_avgjg": ("p_avgjg", _counted(m.P_avgjg)),
    "Rprec_avgjg": ("rprec_avgjg", (*_counted(m.Rprec_avgjg), *(m.Rprec_avgjg(multiple=x) for x in (0.2, 1.6)))),
    "NumPrefs": ("num_prefs", (m.NumPrefs(),)),
    "NumPrefsFul": ("num_prefs_ful", tuple(m.NumPrefsFul(among=among) for among in AMONG)),
    "PrefsFul": (
        "prefs_ful",
        (
            *(m.PrefsFul(among=among, over=over) for among in AMONG for over in ("preferences", "pairs", "judges")),
            *(m.PrefsFul(no_relevant=rule) for rule in ("one", "nan", "skip")),
        ),
    ),
    "PrefsRnonrel": (
        "prefs_r_nonrel",
        (
            *(m.PrefsRnonrel(among=among) for among in ("all", "both_retrieved")),
            *(m.PrefsRnonrel(no_relevant=rule) for rule in ("one", "nan", "skip")),
        ),
    ),
}

EVERY = tuple(metric for _, metrics in GROUPED.values() for metric in metrics)


def expected(metric: Metric, qrels: Mapping[str, Any], run: Mapping[str, Any]) -> np.ndarray:
    """What the reference says of a filled metric."""
    options = {name: value for name in metric.parameters() if (value := getattr(metric, name)) is not None}
    if "k" in options:
        options["k"] = show_cutoff(options["k"]) if not isinstance(options["k"], int) else options["k"]
    if "rel" in options:
        options["rel"] = threshold(options["rel"])
    values: np.ndarray = getattr(reference, GROUPED[metric.family][0])(qrels, run, **options)
    return values


@dataclass(frozen=True)
class Case:
    """Judgements and a run as dicts: {query: {group: {document: label}, or a list of such parts}} and {query: {document: score}}."""

    qrels: dict[str, dict[str, Any]]
    run: dict[str, dict[str, float]]

    def read(self) -> fr.GroupedQrels:
        """The judgements as the engine takes them."""
        rows = [
            (query, group, str(part), name, label)
            for query, groups in self.qrels.items()
            for group, parts in groups.items()
            for part, labels in enumerate(parts if isinstance(parts, list) else [parts])
            for name, label in labels.items()
        ]
        queries, groups, parts, names, labels = ([row[i] for row in rows] for i in range(5))
        return fr.GroupedQrels.from_arrays(queries, groups, names, labels, parts=parts)


def random_case(seed: int, *, parts: bool = False, ties: bool = True) -> Case:
    """A few queries with a few groups each. With parts, a judge compares documents in several, which agree with each other."""
    random = np.random.default_rng(seed)
    names = ["d9", "d10", "é", "z", *(f"doc{i}" for i in range(11))]
    qrels: dict[str, dict[str, Any]] = {}
    run = {}
    for q in range(int(random.integers(1, 6))):
        groups: dict[str, Any] = {}
        for g in range(int(random.integers(1, 5))):
            worth = dict(zip(names, random.integers(0, 4, len(names)).tolist(), strict=True))
            several = [
                {name: worth[name] for name in random.permutation(names)[: random.integers(1, 9)].tolist()}
                for _ in range(int(random.integers(1, 4)) if parts else 1)
            ]
            groups[f"g{g}"] = several if parts else several[0]
        qrels[f"q{q}"] = groups
        ranked = random.permutation([*names, "unjudged", "other"])[: random.integers(0, 14)].tolist()
        scores = random.integers(0, 6, len(ranked)) if ties else random.permutation(len(ranked))
        if ranked or q == 0:
            run[f"q{q}"] = dict(zip(ranked or ["unjudged"], [*map(float, scores), 0.0], strict=False))
    return Case(qrels, run)

"""The other programs that compute a metric, and what each is asked.

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
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from fastrank import metrics as m
from fastrank.metrics import Metric

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


@functools.cache
def why_absent(library: str) -> str | None:
    """Why a library cannot be imported, or None. LightGBM without the system's libgomp raises OSError."""
    try:
        importlib.import_module(library)
    except (ImportError, OSError) as error:
        return f"{library} cannot be loaded: {str(error).splitlines()[0]}"
    return None


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


def sklearn_peers() -> dict[str, tuple[Peer, ...]]:
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


def lightgbm_peers(name: str, metric: type[Metric]) -> tuple[Peer, ...]:
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


def pytrec_eval_peers(**measures: Metric) -> tuple[Peer, ...]:
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


def ir_measures_peers(
    measures: dict[str, Metric], *, library: str | None = None, positive: bool = False, **options: Any
) -> tuple[Peer, ...]:
    """library: what ir_measures asks in turn. positive: it takes an unretrieved document for one of score 0, so all scores are raised."""
    values = _raised_values if positive else _ir_measures_values
    return tuple(
        Peer("ir_measures", name, metric, partial(values, name), ties="input", whole_labels=True, behind=library, **options)
        for name, metric in measures.items()
    )


# Metrics of cwl_eval, which ir_measures asks. It takes equal scores in an order of its own.
CWL: dict[str, Any] = {"untied": True, "library": "cwl"}

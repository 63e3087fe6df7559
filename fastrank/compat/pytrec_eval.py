"""pytrec_eval's interface on this engine: change ``import pytrec_eval`` to ``from fastrank.compat import pytrec_eval``.

For libraries that import it themselves (beir, mteb, pyterrier), before they do::

    import sys, fastrank

    sys.modules["pytrec_eval"] = fastrank.compat.pytrec_eval

Values, keys, types and errors are those of pytrec_eval-terrier 0.5.11, which computes as trec_eval 9.0.8 does: scores compared as
float32, equal ones by document id. What ends the process there, or never ends (a cutoff of 0, parameters that a measure does not have),
is a ValueError here, and so is a score that is NaN. An empty list has ``iprec_at_recall_0.00`` = 0 here, not NaN. Scores may be numbers
of any type here, NumPy's among them.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fastrank.engine.runs import evaluate_run
from fastrank.errors import InputError
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import trec_metrics
from fastrank.metrics.trec_names import MEASURES, NICKNAMES, TEXTS

__all__ = ["RelevanceEvaluator", "compute_aggregated_measure", "parse_qrel", "parse_run", "supported_measures", "supported_nicknames"]

# The release whose values these are: callers ask for it.
__version__ = "0.5.11"

# In the order of trec_eval's output.
_MEASURES = (
    "runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank", "iprec_at_recall", "P",
    "relstring", "recall", "infAP", "gm_bpref", "Rprec_mult", "utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg", "ndcg_cut",
    "map_cut", "relative_P", "success", "set_P", "set_relative_P", "set_recall", "set_map", "set_F", "num_nonrel_judged_ret",
)  # fmt: skip
_PREFERENCES = ("runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret")
_KINDS_OF_PREFERENCES = ("prefs_simp", "prefs_pair", "prefs_avgjg")

supported_measures: set[str] = set(_MEASURES)
# Those of preferences are named here as there; asking for them is an error, as there.
supported_nicknames: dict[str, set[str]] = {
    "official": {"runid", *NICKNAMES["official"]},
    "set": {"runid", *NICKNAMES["set"]},
    "all_trec": set(_MEASURES),
    "all_prefs": {
        *_PREFERENCES,
        *(kind + suffix for kind in _KINDS_OF_PREFERENCES for suffix in ("", "_ret", "_imp")),
        *("prefs_avgjg_Rnonrel", "prefs_avgjg_Rnonrel_ret"),
    },
    "prefs": {*_PREFERENCES, *_KINDS_OF_PREFERENCES},
    "qrels_jg": {"runid", "num_q", "map_avgjg", "P_avgjg", "Rprec_mult_avgjg"},
}

_PARAMETERS = r"[\._]([0-9]+(\.[0-9]+)?(,[0-9]+(\.[0-9]+)?)*)"
_LEAST_VALUE = 1e-5  # what the logarithm of a geometric mean counts as a value of 0


def parse_run(f_run: Iterable[str]) -> dict[str, dict[str, float]]:
    """Read lines ``query Q0 document rank score tag`` to ``{query: {document: score}}``.

    Errors: AssertionError for a document that stands twice in a query, ValueError for a line of another form.

    >>> import fastrank as fr
    >>> dict(fr.compat.pytrec_eval.parse_run(["q1 Q0 d1 1 0.5 bm25"]))
    {'q1': {'d1': 0.5}}
    """
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in f_run:
        query, _, document, _, score, _ = line.split()
        _refuse_twin(run[query], query, document)
        run[query][document] = float(score)
    return run


def parse_qrel(f_qrel: Iterable[str]) -> dict[str, dict[str, int]]:
    """Read lines ``query iteration document label`` to ``{query: {document: label}}``. Errors: as `parse_run`.

    >>> import fastrank as fr
    >>> dict(fr.compat.pytrec_eval.parse_qrel(["q1 0 d1 2"]))
    {'q1': {'d1': 2}}
    """
    qrel: dict[str, dict[str, int]] = defaultdict(dict)
    for line in f_qrel:
        query, _, document, label = line.split()
        _refuse_twin(qrel[query], query, document)
        qrel[query][document] = int(label)
    return qrel


def _refuse_twin(documents: Mapping[str, object], query: str, document: str) -> None:
    if document in documents:
        raise AssertionError(f"document {document!r} stands twice in query {query!r}. Keep one of its lines.")


def compute_aggregated_measure(measure: str, values: list[float]) -> float:
    """The summary of a measure's values: their sum for num_*, exp of their mean for gm_*, else their mean.

    >>> import fastrank as fr
    >>> fr.compat.pytrec_eval.compute_aggregated_measure("num_ret", [1.0, 2.0])
    3.0
    """
    if measure.startswith("num_"):
        return float(np.sum(values))
    if measure.startswith("gm_"):
        return float(np.exp(np.sum(values) / len(values)))
    return float(np.mean(values)) if len(values) else math.nan


class RelevanceEvaluator:
    """Judgements and measures, to evaluate one run after the other.

    Parameters
    ----------
    query_relevance
        ``{query: {document: label}}``; labels are ints. Queries without judgements are left out.
    measures
        Names of trec_eval, with or without parameters (``"map"``, ``"ndcg_cut.5,10"``, ``"P_5"``), or nicknames (``"official"``).
    relevance_level
        The lowest label that counts as relevant.
    judged_docs_only_flag
        Leave unjudged documents out of the rankings.

    Errors: TypeError for arguments of another type, ValueError for a measure that is not supported.

    Examples
    --------
    >>> import fastrank as fr
    >>> evaluator = fr.compat.pytrec_eval.RelevanceEvaluator({"q1": {"d1": 1, "d2": 0}}, {"map", "P.1"})
    >>> evaluator.evaluate({"q1": {"d2": 0.9, "d1": 0.5}})
    {'q1': {'map': 0.5, 'P_1': 0.0}}
    """

    def __init__(
        self,
        query_relevance: Mapping[str, Mapping[str, int]],
        measures: Iterable[str],
        relevance_level: int = 1,
        judged_docs_only_flag: bool = False,
    ) -> None:
        names = _with_parameters(measures)
        qrels = {query: documents for query, documents in query_relevance.items() if len(documents)}
        if not isinstance(relevance_level, int) or not isinstance(judged_docs_only_flag, int):
            raise TypeError("Expected object_relevance_per_qid dictionary and measures set.")
        if relevance_level < 1:
            raise TypeError("Argument relevance_level should be positive.")
        _check_qrels(qrels)
        self._qrels = qrels
        self._judged_only = bool(judged_docs_only_flag)
        self._metrics = {name: _at_level(metric, relevance_level) for name, metric in _readings(names).items()}

    def evaluate(self, scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        """Judge a run, ``{query: {document: score}}``: ``{query: {measure: value}}`` for the queries that have judgements, too.

        Of gm_map and gm_bpref, a query's value is a logarithm. Errors: TypeError for scores of another type.
        """
        if not scores:
            return {}
        _check_run(scores)
        judged = {query: self._qrels[query] for query in scores if query in self._qrels}
        metrics = [metric for metric in self._metrics.values() if metric is not None]
        if not judged or not metrics:
            return {query: dict.fromkeys(self._metrics, 0.0) for query in judged}
        run = {query: scores[query] for query in judged}
        try:
            result = evaluate_run(judged, run, metrics, convention="trec_eval9", missing="skip", judged_only=self._judged_only)
        except InputError:
            _check_documents(run)
            raise
        columns = []
        for name, metric in self._metrics.items():
            if metric is None:  # a text, which is 0 there
                columns.append([0.0] * len(judged))
                continue
            values = result[metric]
            columns.append((np.log(np.maximum(values, _LEAST_VALUE)) if name.startswith("gm_") else values).tolist())
        return {
            query: dict(zip(self._metrics, values, strict=True)) for query, values in zip(judged, zip(*columns, strict=True), strict=True)
        }


# --- names ----------------------------------------------------------------------------------------------------------------------


def _with_parameters(measures: Iterable[str]) -> dict[str, set[str]]:
    """Each measure with the parameters that were asked for; none: its own."""
    expanded = [name for measure in measures for name in supported_nicknames.get(measure, (measure,))]
    found: dict[str, set[str]] = {}
    for measure in expanded:
        if measure in supported_measures:
            found.setdefault(measure, set())
            continue
        matches = ((name, re.match(re.escape(name) + _PARAMETERS, measure)) for name in _MEASURES)
        name, match = next(((name, match) for name, match in matches if match is not None), ("", None))
        if match is None:
            raise ValueError(f"unsupported measure {measure}")
        found.setdefault(name, set()).update(match[1].split(","))
    return found


def _readings(names: Mapping[str, set[str]]) -> dict[str, Metric | None]:
    """The keys of the output in trec_eval's order, each with its metric; None for a text."""
    found: dict[str, Metric | None] = {}
    for name in (name for name in _MEASURES if name in names):
        if name in TEXTS:
            found[name] = None
            continue
        kind, parameters = MEASURES[name].kind, sorted(names[name], key=float)
        if kind == "cutoffs":
            parameters = list(dict.fromkeys(str(int(float(each))) for each in parameters))
        elif kind == "importance":  # of several, the first counts there, as text is sorted
            parameters = sorted(names[name])[:1]
        with_parameters = f"{name}.{','.join(parameters)}" if kind and parameters else name
        metrics = trec_metrics(with_parameters)
        # Where each parameter is a measure of its own, the key says it.
        found |= metrics if MEASURES[name].defaults else {name: metrics[0][1]}
    return found


def _at_level(metric: Metric | None, level: int) -> Metric | None:
    return metric if metric is None or "rel" not in metric.parameters() else dataclasses.replace(metric, rel=level)  # type: ignore[call-arg]


# --- types ----------------------------------------------------------------------------------------------------------------------


def _check_qrels(qrels: Mapping[Any, Any]) -> None:
    for query, documents in qrels.items():
        if not isinstance(query, str):
            raise TypeError("Expected string as key.")
        if not isinstance(documents, dict):
            raise TypeError("Expected dictionary as value.")
        if not all(isinstance(document, str) for document in documents):
            raise TypeError("Expected mapping of document id to query relevance or matching score.")
        if not all(isinstance(label, int) for label in documents.values()):
            raise TypeError("Expected relevance to be integer.")


def _check_run(scores: Any) -> None:
    """That queries are named by text and have dicts, and the first document of each; the others are looked at when they cannot be read."""
    if not isinstance(scores, dict):
        raise TypeError("Argument object scores should be of type dictionary.")
    for query, documents in scores.items():
        if not isinstance(query, str) or not isinstance(documents, dict):
            raise TypeError("Unable to extract query/object scores.")
        if not isinstance(next(iter(documents), ""), str):
            raise TypeError("Unable to extract query/object scores.")


def _check_documents(run: Mapping[str, Mapping[Any, Any]]) -> None:
    for documents in run.values():
        for document, score in documents.items():
            if not isinstance(document, str) or isinstance(score, str | bytes) or not hasattr(score, "__float__"):
                raise TypeError("Unable to extract query/object scores.")

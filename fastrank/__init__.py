"""fastrank: ranking metrics, exact and compiled.

Names are resolved when they are first used: importing the package loads none of its dependencies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastrank._lazy import attributes

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fastrank import analysis as analysis
    from fastrank import clicks as clicks
    from fastrank import compat as compat
    from fastrank import distributed as distributed
    from fastrank import metrics as metrics
    from fastrank import reference as reference
    from fastrank import training as training
    from fastrank.comparison.agreement import kendall_tau as kendall_tau
    from fastrank.comparison.agreement import tau_ap as tau_ap
    from fastrank.comparison.discrimination import discriminative_power as discriminative_power
    from fastrank.comparison.explanation import Explanation as Explanation
    from fastrank.comparison.explanation import explain_difference as explain_difference
    from fastrank.comparison.intervals import Interval as Interval
    from fastrank.comparison.intervals import confidence_interval as confidence_interval
    from fastrank.comparison.outcome import Comparison as Comparison
    from fastrank.comparison.planning import power as power
    from fastrank.comparison.planning import queries_needed as queries_needed
    from fastrank.comparison.planning import smallest_difference as smallest_difference
    from fastrank.comparison.verdict import compare as compare
    from fastrank.convention import Convention as Convention
    from fastrank.convention import conventions as conventions
    from fastrank.engine.calls import LabelledQueries as LabelledQueries
    from fastrank.engine.calls import evaluate as evaluate
    from fastrank.engine.evaluator import Evaluator as Evaluator
    from fastrank.engine.functions import auc as auc
    from fastrank.engine.functions import bpref as bpref
    from fastrank.engine.functions import concordance as concordance
    from fastrank.engine.functions import dcg as dcg
    from fastrank.engine.functions import err as err
    from fastrank.engine.functions import idcg as idcg
    from fastrank.engine.functions import judged as judged
    from fastrank.engine.functions import ndcg as ndcg
    from fastrank.engine.functions import p_norm_push as p_norm_push
    from fastrank.engine.functions import rbp as rbp
    from fastrank.engine.ids import evaluate_ids as evaluate_ids
    from fastrank.engine.relevance_functions import average_precision as average_precision
    from fastrank.engine.relevance_functions import f1 as f1
    from fastrank.engine.relevance_functions import precision as precision
    from fastrank.engine.relevance_functions import r_precision as r_precision
    from fastrank.engine.relevance_functions import recall as recall
    from fastrank.engine.relevance_functions import reciprocal_rank as reciprocal_rank
    from fastrank.engine.relevance_functions import success as success
    from fastrank.engine.runs import evaluate_run as evaluate_run
    from fastrank.engine.tables import evaluate_table as evaluate_table
    from fastrank.engine.worked import Worked as Worked
    from fastrank.engine.worked import explain as explain
    from fastrank.errors import InputError as InputError
    from fastrank.evaluation import Evaluation as Evaluation
    from fastrank.evaluation import Note as Note
    from fastrank.io.grouped import GroupedQrels as GroupedQrels
    from fastrank.io.judgements import Qrels as Qrels
    from fastrank.io.judgements import Run as Run
    from fastrank.io.letor import read_letor as read_letor
    from fastrank.metrics.base import Metric as Metric
    from fastrank.metrics.grammar import list_metrics as list_metrics
    from fastrank.metrics.grammar import parse_metric as parse_metric
    from fastrank.metrics.grammar import parse_metrics as parse_metrics
    from fastrank.report.saved import load as load

# Where each public name is defined. None: the name is a module of the package.
_HOMES: dict[str, str | None] = {
    "analysis": None,
    "clicks": None,
    "compat": None,
    "distributed": None,
    "metrics": None,
    "reference": None,
    "training": None,
    **dict.fromkeys(("kendall_tau", "tau_ap"), "comparison.agreement"),
    "discriminative_power": "comparison.discrimination",
    **dict.fromkeys(("Explanation", "explain_difference"), "comparison.explanation"),
    **dict.fromkeys(("Interval", "confidence_interval"), "comparison.intervals"),
    "Comparison": "comparison.outcome",
    **dict.fromkeys(("power", "queries_needed", "smallest_difference"), "comparison.planning"),
    "compare": "comparison.verdict",
    **dict.fromkeys(("Convention", "conventions"), "convention"),
    **dict.fromkeys(("LabelledQueries", "evaluate"), "engine.calls"),
    "Evaluator": "engine.evaluator",
    **dict.fromkeys(("auc", "bpref", "concordance", "dcg", "err", "idcg", "judged", "ndcg", "p_norm_push", "rbp"), "engine.functions"),
    **dict.fromkeys(("average_precision", "f1", "precision", "r_precision"), "engine.relevance_functions"),
    **dict.fromkeys(("recall", "reciprocal_rank", "success"), "engine.relevance_functions"),
    "evaluate_ids": "engine.ids",
    "evaluate_run": "engine.runs",
    "evaluate_table": "engine.tables",
    **dict.fromkeys(("Worked", "explain"), "engine.worked"),
    "InputError": "errors",
    **dict.fromkeys(("Evaluation", "Note"), "evaluation"),
    "GroupedQrels": "io.grouped",
    **dict.fromkeys(("Qrels", "Run"), "io.judgements"),
    "read_letor": "io.letor",
    "Metric": "metrics.base",
    **dict.fromkeys(("list_metrics", "parse_metric", "parse_metrics"), "metrics.grammar"),
    "load": "report.saved",
}

__all__ = sorted(_HOMES)

__getattr__, __dir__ = attributes(__name__, _HOMES)

"""sentence-transformers: its evaluators for retrieval and reranking, with their formulas computed here.

Change the import, and nothing else::

    from fastrank.training.sentence_transformers import InformationRetrievalEvaluator, CrossEncoderRerankingEvaluator

Names, arguments, keys of results and files written are those of the library. Values are the same but for the rounding of the last bits,
with two exceptions of reranking, where equal scores are averaged over their orders in all three metrics (there by no rule in MRR, and as
one point of a curve in MAP), and where a list of one document has a value (there it is an error).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from fastrank.engine.calls import evaluate
from fastrank.engine.ids import evaluate_ids
from fastrank.metrics import AP, RR, P, R, Success, nDCG

try:
    from sentence_transformers.cross_encoder import evaluation as _reranking
    from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator as _InformationRetrievalEvaluator
except ImportError:
    extra = "pip install 'fastrank-metrics[sentence-transformers]'"
    needs = f"fastrank.training.sentence_transformers needs sentence-transformers, which is not installed: {extra}."
    raise ImportError(needs) from None

__all__ = ["CrossEncoderRerankingEvaluator", "InformationRetrievalEvaluator"]


class InformationRetrievalEvaluator(_InformationRetrievalEvaluator):  # type: ignore[misc]  # not looked into by the type checker
    """sentence-transformers' evaluator of retrieval; all queries are judged in one call.

    Accuracy@k is Success@k, MAP@k divides by min(k, number of relevant documents), and relevance is binary, as there.
    """

    def compute_metrics(self, queries_result_list: list[Any]) -> dict[str, dict[int, float]]:
        """Means of each metric at each of its cutoffs, of ``{"corpus_id", "score"}`` per hit."""
        kinds = {
            "accuracy@k": (Success, self.accuracy_at_k, {}),
            "precision@k": (P, self.precision_recall_at_k, {}),
            "recall@k": (R, self.precision_recall_at_k, {}),
            "ndcg@k": (nDCG, self.ndcg_at_k, {}),
            "mrr@k": (RR, self.mrr_at_k, {}),
            "map@k": (AP, self.map_at_k, {"denominator": "min_k"}),
        }
        metrics = {(name, k): make(k=k, **options) for name, (make, cutoffs, options) in kinds.items() for k in cutoffs}
        ranked = [_ranked(hits) for hits in queries_result_list]
        relevant = [set(self.relevant_docs[query]) for query in self.queries_ids]
        result = evaluate_ids(ranked, relevant, metrics=list(metrics.values()))
        means = dict(zip(result.metrics, result.mean().values(), strict=True))
        filled = dict(zip(metrics, (metric.fill(result.convention) for metric in metrics.values()), strict=True))
        return {name: {k: means[filled[name, k]] for k in cutoffs} for name, (_, cutoffs, _) in kinds.items()}


def _ranked(hits: Iterable[Any]) -> list[Any]:
    """Ids by descending score, equal scores by ascending id: the library's order, in which the hits usually are."""
    return [hit["corpus_id"] for hit in sorted(hits, key=lambda hit: (-hit["score"], hit["corpus_id"]))]


class CrossEncoderRerankingEvaluator(_reranking.CrossEncoderRerankingEvaluator):  # type: ignore[misc]
    """sentence-transformers' evaluator of reranking, without its calls of scikit-learn for each query."""

    def compute_metrics(self, y_true: Any, y_pred: Any) -> tuple[float, float, float]:
        """MRR@k, nDCG@k and MAP of one query."""
        metrics = (RR(k=self.at_k), nDCG(k=self.at_k), AP())
        values = evaluate(np.asarray(y_true), np.asarray(y_pred), metrics=metrics, convention="sklearn", threads=1).values
        assert values is not None
        rr, ndcg, ap = values[0].tolist()
        return rr, ndcg, ap

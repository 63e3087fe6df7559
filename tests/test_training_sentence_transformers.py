"""The evaluators of sentence-transformers with their formulas computed here, beside the library's own, on models that need no download."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")

from sentence_transformers.cross_encoder import evaluation as reranking
from sentence_transformers.sentence_transformer import evaluation as retrieval

from fastrank.training import sentence_transformers as ours

GENERATOR = np.random.default_rng(9)
pytestmark = pytest.mark.slow


class CardData:
    def set_evaluation_metrics(self, *given: Any, **named: Any) -> None:
        """Models keep the last metrics for their cards; this one has none."""


class CrossEncoder:
    """Scores a pair by a number drawn from its text."""

    model_card_data = CardData()

    def predict(self, pairs: Any, **options: Any) -> np.ndarray:
        return np.array([np.random.default_rng(list("".join(pair).encode())).random() for pair in pairs], np.float32)


class Encoder:
    """Embeds a text as a vector drawn from it."""

    model_card_data = CardData()
    similarity_fn_name = "dot"

    @staticmethod
    def similarity(a: Any, b: Any) -> Any:
        return a @ b.T

    def encode_query(self, texts: Any, **options: Any) -> Any:
        import torch

        return torch.stack([torch.from_numpy(np.random.default_rng(list(text.encode())).normal(size=4)) for text in texts])

    encode_document = encode = encode_query


def close(one: dict[str, float], other: dict[str, float]) -> bool:
    return list(one) == list(other) and all(one[name] == pytest.approx(other[name], abs=1e-12) for name in other)


def test_retrieval_is_judged_as_there(tmp_path: Path) -> None:
    queries = {f"q{i}": f"query {i}" for i in range(25)}
    # Each document twice: equal scores, which stand by their id.
    corpus = {f"d{i}": f"document {i // 2}" for i in range(80)}
    relevant = {f"q{i}": {f"d{j}" for j in GENERATOR.choice(80, i % 6, replace=False)} for i in range(25)}
    options: dict[str, Any] = {"ndcg_at_k": [5, 10], "mrr_at_k": [3, 10], "map_at_k": [2, 100], "corpus_chunk_size": 30}
    found, expected = (
        made.InformationRetrievalEvaluator(queries, corpus, relevant, **options)(Encoder(), output_path=str(tmp_path))
        for made in (ours, retrieval)
    )
    assert len(expected) == 4 + 8 + 2 + 2 + 2
    assert close(found, expected)
    header, *rows = (tmp_path / "Information-Retrieval_evaluation_results.csv").read_text().splitlines()
    assert len(rows) == 2
    assert header.count("NDCG") == 2


@pytest.mark.parametrize("kind", ["negative", "documents"])
def test_reranking_is_judged_as_there(kind: str, tmp_path: Path) -> None:
    samples = []
    for i in range(30):
        documents = [f"document {j}" for j in GENERATOR.choice(100, 12, replace=False)]
        positive = documents[: 1 + i % 3]
        samples.append({"query": f"query {i}", "positive": positive, kind: documents[::-1] if kind == "documents" else documents[3:]})
    results = []
    for made in (ours, reranking):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            evaluator = made.CrossEncoderRerankingEvaluator(samples, at_k=5, name="dev")
            results.append(evaluator(CrossEncoder(), output_path=str(tmp_path)))
    assert close(*results)
    assert evaluator.primary_metric in results[0]


def test_a_list_of_one_document_has_a_value() -> None:
    evaluator = ours.CrossEncoderRerankingEvaluator([{"query": "q", "positive": ["a"], "negative": []}], write_csv=False)
    assert set(evaluator(CrossEncoder()).values()) == {1.0}


def test_equal_scores_are_averaged_over_their_orders() -> None:
    evaluator = ours.CrossEncoderRerankingEvaluator([], at_k=5, write_csv=False)
    rr, ndcg, ap = evaluator.compute_metrics([1, 0], np.zeros(2))
    assert (rr, ap) == (3 / 4, 3 / 4)
    assert ndcg == pytest.approx((1 + 1 / np.log2(3)) / 2)


def test_without_the_library_one_sentence_says_how_to_get_it() -> None:
    program = "import sys; sys.modules['sentence_transformers'] = None; import fastrank.training.sentence_transformers"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("which is not installed: pip install 'fastrank-metrics[sentence-transformers]'.")

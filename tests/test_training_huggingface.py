"""`fastrank.training.huggingface.RankingMetrics`: values, batches, and a Trainer that stops by them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.training.huggingface import RankingMetrics

GENERATOR = np.random.default_rng(6)
IDS = np.repeat(np.arange(30), 6)
X = GENERATOR.normal(size=(180, 3)).astype(np.float32)
LABELS = np.clip(np.round(X @ [1.0, -0.5, 0.2]), 0, 3).astype(np.int64)
SCORES = X[:, 0]


def prediction(predictions: Any, *labels: Any) -> Any:
    return SimpleNamespace(predictions=predictions, label_ids=labels if len(labels) > 1 else labels[0])


def test_flat_and_padded_predictions_give_the_value_of_evaluate() -> None:
    metrics = ("nDCG@3", "RR", "NumRelRet@3")
    expected = fr.evaluate(LABELS, SCORES, query_ids=IDS, metrics=metrics).aggregate()
    ours = RankingMetrics(metrics)
    assert ours(prediction(SCORES, LABELS, IDS)) == expected
    assert ours(prediction(SCORES[:, None], LABELS, IDS)) == expected
    wide = np.pad(LABELS.reshape(30, 6), ((0, 0), (0, 2)), constant_values=-100)
    assert ours(prediction(np.pad(SCORES.reshape(30, 6), ((0, 0), (0, 2)), constant_values=9.0), wide)) == expected


def test_batches_that_cut_queries_are_put_together_and_forgotten_after_the_result() -> None:
    ours = RankingMetrics("nDCG@3")
    expected = fr.evaluate(LABELS, SCORES, query_ids=IDS, metrics="nDCG@3").mean()
    for _ in range(2):
        for first in range(0, 180, 50):
            rows = slice(first, first + 50)
            found = ours(prediction(SCORES[rows], LABELS[rows], IDS[rows]), compute_result=first == 150)
        assert found == expected


def test_padded_batches_of_several_lengths_are_put_together() -> None:
    ours = RankingMetrics("RR")
    assert ours(prediction(SCORES[:60].reshape(10, 6), LABELS[:60].reshape(10, 6)), compute_result=False) == {}
    found = ours(prediction(SCORES[60:].reshape(10, 12), LABELS[60:].reshape(10, 12)))
    assert found == fr.evaluate(LABELS, SCORES, sizes=[6] * 10 + [12] * 10, metrics="RR").mean()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (prediction((SCORES, SCORES), LABELS, IDS), "one array of scores, not 2 arrays. Let preprocess_logits_for_metrics"),
        (prediction(np.zeros((180, 2)), LABELS, IDS), r"the shape of the labels, \(180,\), not \(180, 2\)"),
        (prediction(SCORES, LABELS), r"label_names=\[\"labels\", \"query_id\"\]"),
    ],
)
def test_what_does_not_fit_is_refused(given: Any, message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        RankingMetrics()(given)


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True])
def test_a_trainer_stops_early_by_it(batched: bool, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("accelerate", reason="accelerate is not installed")

    class Scorer(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3, 1)

        def forward(self, features: Any, labels: Any = None, query_id: Any = None) -> dict[str, Any]:
            scores = self.layer(features)[:, 0]
            return {"loss": ((scores - labels) ** 2).mean(), "logits": scores}

    rows = [{"features": x, "labels": float(y), "query_id": int(q)} for x, y, q in zip(X, LABELS, IDS, strict=True)]
    arguments = transformers.TrainingArguments(
        str(tmp_path), label_names=["labels", "query_id"], remove_unused_columns=False, num_train_epochs=30, eval_strategy="epoch",
        save_strategy="epoch", save_total_limit=1, learning_rate=0.05, per_device_train_batch_size=32, per_device_eval_batch_size=50,
        metric_for_best_model="nDCG@3", greater_is_better=True, load_best_model_at_end=True, batch_eval_metrics=batched,
        report_to="none", disable_tqdm=True, use_cpu=True, logging_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(
        Scorer(), arguments, train_dataset=rows, eval_dataset=rows, compute_metrics=RankingMetrics("nDCG@3"),
        callbacks=[transformers.EarlyStoppingCallback(early_stopping_patience=2)],
    )  # fmt: skip
    trainer.train()
    values = [entry["eval_nDCG@3"] for entry in trainer.state.log_history if "eval_nDCG@3" in entry]
    assert 3 <= len(values) < 30
    with torch.no_grad():
        best = trainer.model.cpu()(torch.from_numpy(X), torch.zeros(180))["logits"].numpy()
    assert fr.evaluate(LABELS, best, query_ids=IDS, metrics="nDCG@3").mean()["nDCG@3"] == pytest.approx(max(values), abs=1e-12)

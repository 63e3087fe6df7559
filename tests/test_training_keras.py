"""`fastrank.training.keras.RankingCallback`: metrics of held-out lists in the logs, seen by what stands after it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fastrank as fr

keras = pytest.importorskip("keras", reason="keras and a backend are not installed", exc_type=ImportError)

from fastrank.training.keras import RankingCallback  # noqa: E402

GENERATOR = np.random.default_rng(4)
X = GENERATOR.normal(size=(40, 8, 3)).astype(np.float32)
LABELS = np.clip(np.round(X @ [1.0, -0.5, 0.2] + GENERATOR.normal(scale=0.3, size=(40, 8))), 0, 3).astype(int)
MASK = np.arange(8) < GENERATOR.integers(2, 9, 40)[:, None]


def of_documents() -> Any:
    """A model with a row a document."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


def of_lists() -> Any:
    """A model with a padded list a row."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((8, 3)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    return model


class Seen(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps what the logs hold by the time that later callbacks read them."""

    def __init__(self, x: Any) -> None:
        super().__init__()
        self.x = x
        self.logs: list[dict[str, Any]] = []
        self.scores: list[np.ndarray] = []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.logs.append(dict(logs))
        self.scores.append(np.asarray(self.model.predict(self.x, verbose=0)))


def test_each_epoch_holds_the_value_of_evaluate() -> None:
    flat, sizes = X[MASK], MASK.sum(axis=1)
    ours, seen = RankingCallback(flat, LABELS[MASK], sizes=sizes, metrics=("nDCG@5", "RR")), Seen(flat)
    history = of_documents().fit(flat, LABELS[MASK], epochs=3, verbose=0, callbacks=[ours, seen]).history
    for epoch in range(3):
        result = fr.evaluate(LABELS[MASK], seen.scores[epoch].ravel(), sizes=sizes, metrics=("nDCG@5", "RR")).mean()
        assert {name: seen.logs[epoch][f"val_{name}"] for name in result} == result
        assert {name: history[f"val_{name}"][epoch] for name in result} == result


def test_padded_lists_and_a_prefix() -> None:
    ours, seen = RankingCallback(X, LABELS, mask=MASK, metrics="nDCG@5", convention="sklearn", prefix="dev_"), Seen(X)
    of_lists().fit(X, LABELS[:, :, None], epochs=1, verbose=0, callbacks=[ours, seen])
    expected = fr.evaluate(LABELS[MASK], seen.scores[0][..., 0][MASK], sizes=MASK.sum(axis=1), metrics="nDCG@5", convention="sklearn")
    assert seen.logs[0]["dev_nDCG@5"] == expected.mean()["nDCG@5"]


def test_early_stopping_reads_it() -> None:
    flat = X.reshape(-1, 3)
    ours = RankingCallback(flat, LABELS.ravel(), query_ids=np.repeat(np.arange(40), 8), metrics="nDCG@5")
    stop = keras.callbacks.EarlyStopping("val_nDCG@5", mode="max", patience=2, restore_best_weights=True)
    model = of_documents()
    history = model.fit(flat, LABELS.ravel(), epochs=60, verbose=0, callbacks=[ours, stop]).history["val_nDCG@5"]
    assert len(history) < 60
    assert int(np.argmax(history)) == len(history) - 3
    kept = fr.evaluate(LABELS, model.predict(flat, verbose=0).reshape(40, 8), metrics="nDCG@5").mean()["nDCG@5"]
    assert kept == max(history)


def test_bfloat16_predictions_are_compared_as_they_are() -> None:
    class Narrow:
        @staticmethod
        def predict(x: Any, **options: Any) -> Any:
            ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
            return x[:, :1].astype(ml_dtypes.bfloat16)

    ours = RankingCallback(np.array([[1.0], [1.001]]), [1, 0], metrics="RR")  # the same number in bfloat16
    ours.set_model(Narrow())
    logs: dict[str, float] = {}
    ours.on_epoch_end(0, logs)
    assert logs == {"val_RR": 3 / 4}


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(fr.InputError, match="mask goes with labels of two dimensions"):
        RankingCallback(X, LABELS, mask=MASK[0])
    ours = RankingCallback(X, LABELS.ravel(), sizes=[8] * 40)
    ours.set_model(of_lists())
    with pytest.raises(fr.InputError, match=r"one score a document, of shape \(320,\), not \(40, 8, 1\)"):
        ours.on_epoch_end(0, {})


@pytest.mark.parametrize(
    ("setting", "wanted"),
    [
        ("sys.modules['keras'] = None", "needs keras, which is not installed: pip install 'fastrank-metrics[keras]'."),
        (
            "import os; os.environ['KERAS_BACKEND'] = 'tensorflow'; sys.modules['tensorflow'] = None",
            "set KERAS_BACKEND to jax, torch or tensorflow",
        ),
    ],
)
def test_without_keras_or_its_backend_one_sentence_says_how_to_get_it(setting: str, wanted: str) -> None:
    program = f"import sys; {setting}; import fastrank.training.keras"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert wanted in done.stderr.splitlines()[-1]

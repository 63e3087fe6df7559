"""Losses under autograd, and networks trained with them: by hand, in Lightning and in Ignite."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boosting_data import Split, splits

import fastrank as fr

torch = pytest.importorskip("torch", reason="torch is not installed")

from fastrank.training.loss_names import LOSSES, loss_and_gradient  # noqa: E402
from fastrank.training.torch import RankingMetric, ranking_loss  # noqa: E402

torch.set_num_threads(1)  # small matrices: more threads only wait for each other
GENERATOR = np.random.default_rng(2)
SCORES = GENERATOR.normal(size=(12, 6))
LABELS = GENERATOR.integers(0, 4, (12, 6))
OFFSETS = np.arange(0, 73, 6)
MASK = (GENERATOR.random((12, 6)) < 0.7) | (np.arange(6) == 0)


# --- losses ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOSSES)
def test_every_form_of_batch_gives_the_loss_and_gradient_of_the_kernels(name: str) -> None:
    forms = {
        "padded": (SCORES, LABELS, {"mask": MASK}),
        "rectangular": (SCORES, LABELS, {}),
        "flat": (SCORES.ravel(), LABELS.ravel(), {"offsets": OFFSETS}),
        "one query": (SCORES[0], LABELS[0], {}),
    }
    for form, (scores, labels, named) in forms.items():
        there = named.get("mask", np.ones(scores.shape, bool))
        bounds = named.get("offsets", np.append(0, np.atleast_2d(there).sum(axis=1).cumsum()))
        value, by_score = loss_and_gradient(name, labels[there], scores[there], bounds, {})
        preds = torch.from_numpy(scores).requires_grad_()
        loss = ranking_loss(preds, torch.from_numpy(labels), loss=name, **{key: torch.from_numpy(each) for key, each in named.items()})
        loss.backward()
        assert loss.item() == pytest.approx(value.mean(), rel=1e-14), form
        expected = np.zeros(scores.shape)
        expected[there] = by_score / len(value)
        assert np.allclose(preds.grad.numpy(), expected, rtol=1e-14, atol=0), form


@pytest.mark.parametrize("name", LOSSES)
def test_the_backward_pass_multiplies_what_comes_from_above(name: str) -> None:
    upstream = torch.linspace(-1, 2, 12, dtype=torch.float64)
    preds = torch.from_numpy(SCORES).requires_grad_()
    (ranking_loss(2 * preds, torch.from_numpy(LABELS), loss=name, reduction="none") * upstream).sum().backward()
    _, by_score = loss_and_gradient(name, LABELS.ravel(), 2 * SCORES.ravel(), OFFSETS, {})
    assert np.allclose(preds.grad.numpy(), 2 * upstream.numpy()[:, None] * by_score.reshape(12, 6), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("name", ["listnet", "listmle", "approximate_ndcg", "ranknet"])
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    labels = torch.from_numpy(LABELS)
    assert torch.autograd.gradcheck(lambda preds: ranking_loss(preds, labels, loss=name), torch.from_numpy(SCORES).requires_grad_())


def test_reductions_options_and_types() -> None:
    preds, labels = torch.from_numpy(SCORES), torch.from_numpy(LABELS)
    each = ranking_loss(preds, labels, reduction="none", preset="lightgbm")
    assert each.tolist() == fr.training.lambda_gradients(LABELS, SCORES, preset="lightgbm", costs=True).loss.tolist()
    assert ranking_loss(preds, labels, reduction="sum", preset="lightgbm").item() == pytest.approx(each.sum().item(), rel=1e-14)
    narrow = preds.bfloat16().requires_grad_()
    loss = ranking_loss(narrow, labels)
    loss.backward()
    assert (loss.dtype, narrow.grad.dtype) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"loss": "lamda"}, "loss must be one of .* Did you mean 'lambda'"),
        ({"reduction": "average"}, "reduction must be one of"),
        ({"target": torch.zeros(3)}, r"one shape, not \(12, 6\) and \(3,\)"),
        ({"mask": torch.from_numpy(MASK), "offsets": torch.from_numpy(OFFSETS)}, "leave out indexes and offsets"),
        ({"preds": torch.full((12, 6), torch.nan)}, "scores must"),
    ],
)
def test_what_does_not_fit_is_refused(named: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        ranking_loss(**{"preds": torch.from_numpy(SCORES), "target": torch.from_numpy(LABELS), **named})


# --- a network on a real set -------------------------------------------------------------------------------------------------------


def inputs(train: Split, other: Split) -> Any:
    """Features of the other split as a network likes them: logarithms, scaled by the training rows."""
    logs = [np.sign(split.features) * np.log1p(np.abs(split.features)) for split in (train, other)]
    scaled = (logs[1] - logs[0].mean(axis=0)) / (logs[0].std(axis=0) + 1e-6)
    return torch.tensor(scaled.clip(-5, 5), dtype=torch.float32)


def trained(train: Split, valid: Split, loss: str) -> tuple[np.ndarray, list[float]]:
    """Scores of the validation rows at the best epoch of a small network, and its NDCG@10 after each."""
    torch.manual_seed(0)
    x, held_out = inputs(train, train), inputs(train, valid)
    labels, offsets = torch.tensor(train.labels), torch.tensor(train.offsets)
    layers = (torch.nn.Linear(x.shape[1], 64), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(64, 1))
    network = torch.nn.Sequential(torch.nn.Dropout(0.3), *layers)
    steps = torch.optim.Adam(network.parameters(), lr=2e-3, weight_decay=1e-3)
    metric, best, values = RankingMetric("nDCG@10"), np.zeros(0), []
    for _ in range(80):
        network.train()
        steps.zero_grad()
        ranking_loss(network(x)[:, 0], labels, offsets=offsets, loss=loss).backward()
        steps.step()
        network.eval()
        with torch.no_grad():
            scores = network(held_out)[:, 0]
        metric.reset()
        metric.update(scores, torch.tensor(valid.labels), offsets=torch.tensor(valid.offsets))
        values.append(metric.compute().item())
        if values[-1] == max(values):
            best = scores.numpy()
    return best, values


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["lambda", "listnet"])
def test_a_network_reaches_lightgbm_lambdarank_within_noise(loss: str) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    train, valid = splits()
    data = lightgbm.Dataset(train.features, train.labels, group=train.sizes)
    held_out = lightgbm.Dataset(valid.features, valid.labels, group=valid.sizes, reference=data)
    settings = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "learning_rate": 0.05, "verbosity": -1, "num_threads": 1}
    booster = lightgbm.train(settings, data, 200, [held_out], callbacks=[lightgbm.early_stopping(30, verbose=False)])
    scores, values = trained(train, valid, loss)
    assert max(values) > values[0] + 0.03  # it learns
    results = {
        name: fr.evaluate(valid.labels, each, valid.offsets, metrics="nDCG@10")
        for name, each in {"lightgbm": booster.predict(valid.features), "network": scores}.items()
    }
    assert max(values) == results["network"].mean()["nDCG@10"]
    difference = results["network"]["nDCG@10"] - results["lightgbm"]["nDCG@10"]
    interval = fr.confidence_interval(difference)
    assert interval.low < 0 < interval.high
    assert abs(difference.mean()) < 0.03


# --- Lightning and Ignite ----------------------------------------------------------------------------------------------------------


def linear_task() -> tuple[Any, Any]:
    """Lists of 8 documents with 3 features, whose label follows a linear score."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 8, 3, generator=generator)
    merit = x @ torch.tensor([1.0, -0.5, 0.2]) + 0.3 * torch.randn(40, 8, generator=generator)
    return x, merit.round().clip(0, 3).long()


@pytest.mark.slow
def test_lightning_logs_it_and_stops_early(tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning", reason="lightning is not installed")
    x, labels = linear_task()

    class Ranker(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.layer = torch.nn.Linear(3, 1)
            self.ndcg = RankingMetric("nDCG@5")
            self.values: list[float] = []

        def training_step(self, batch: Any, _place: int) -> Any:
            return ranking_loss(self.layer(batch[0])[..., 0], batch[1])

        def validation_step(self, batch: Any, _place: int) -> None:
            self.ndcg.update(self.layer(batch[0])[..., 0], batch[1])
            self.log("val_ndcg", self.ndcg, on_epoch=True)

        def on_validation_epoch_end(self) -> None:
            with torch.no_grad():
                scores = self.layer(x)[..., 0].numpy()
            self.values.append(fr.evaluate(labels.numpy(), scores, metrics="nDCG@5").mean()["nDCG@5"])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.5)

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, labels), batch_size=16)
    stop = lightning.pytorch.callbacks.EarlyStopping("val_ndcg", mode="max", patience=2)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    model = Ranker()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = lightning.Trainer(
            max_epochs=60, accelerator="cpu", callbacks=[stop], num_sanity_val_steps=0, default_root_dir=tmp_path, **quiet
        )
        trainer.fit(model, loader, loader)
    assert 2 < len(model.values) < 60
    assert stop.best_score.item() == pytest.approx(max(model.values), abs=1e-7)  # it keeps float32
    assert trainer.callback_metrics["val_ndcg"].item() == pytest.approx(model.values[-1], abs=1e-7)


def test_ignite_attaches_it() -> None:
    ignite = pytest.importorskip("ignite", reason="pytorch-ignite is not installed")
    from ignite.engine import Engine
    from ignite.metrics import Metric

    class Ranking(Metric):  # type: ignore[misc]
        """A `RankingMetric` attached to an engine; it syncs by itself."""

        def __init__(self, metric: Any) -> None:
            self.metric = metric
            super().__init__()

        def reset(self) -> None:
            self.metric.reset()

        def update(self, output: Any) -> None:
            self.metric.update(*output)

        def compute(self) -> float:
            return self.metric.compute().item()

    x, labels = linear_task()
    layer = torch.nn.Linear(3, 1)

    def judge(_engine: Any, batch: Any) -> Any:
        with torch.no_grad():
            return layer(batch[0])[..., 0], batch[1]

    evaluator = Engine(judge)
    Ranking(RankingMetric("nDCG@5")).attach(evaluator, "ndcg")
    for _ in range(2):
        state = evaluator.run(zip(x.split(16), labels.split(16), strict=True), epoch_length=3)
        with torch.no_grad():
            scores = layer(x)[..., 0].numpy()
        assert state.metrics["ndcg"] == fr.evaluate(labels.numpy(), scores, metrics="nDCG@5").mean()["nDCG@5"], ignite.__version__
        layer.weight.data.neg_()

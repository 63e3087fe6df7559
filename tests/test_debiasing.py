"""Training on clicks: propensities estimated from the log in, a ranker freed from the bias of positions out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank import clicks

N_QUERIES, DEPTH, EXAMINED = 4000, 10, np.arange(1, 11) ** -1.0


class Simulated:
    """Two rankers of old show ten documents of each query; users examine by position and click what is relevant."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.features = rng.normal(size=(N_QUERIES, DEPTH, 5))
        merit = self.features @ [0.2, 1.0, 0.8, 0.5, 0.0] + 0.5 * rng.normal(size=(N_QUERIES, DEPTH))
        self.labels = np.digitize(merit, [0.5, 1.2, 2.0])
        attraction = np.array([0.02, 0.2, 0.5, 0.9])[self.labels]
        shown, self.position, self.click = [], [], []
        # The same queries twice, by two rankers that trust the first or the last feature: documents stand at two positions.
        for feature in (0, 4):
            old = self.features[:, :, feature] + 0.3 * rng.normal(size=(N_QUERIES, DEPTH))
            order = np.argsort(-old, axis=1)
            position = np.argsort(order, axis=1) + 1
            shown.append(order)
            self.position.append(position)
            self.click.append(rng.random((N_QUERIES, DEPTH)) < EXAMINED[position - 1] * attraction)
        self.log = clicks.ClickLog(
            np.arange(2 * N_QUERIES + 1) * DEPTH,
            np.concatenate(shown).ravel(),
            np.concatenate([np.take_along_axis(click, order, 1) for click, order in zip(self.click, shown, strict=True)]).ravel(),
            query=np.tile(np.arange(N_QUERIES), 2),
        )

    def train(self, **debiasing: Any) -> np.ndarray:
        """Scores of a ranker trained on the clicks of all sessions."""
        lgb = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
        rows = np.concatenate([self.features] * 2).reshape(-1, 5)
        labels = np.concatenate(self.click).ravel().astype(float)
        params = {"verbosity": -1, "num_threads": 1, "seed": 1, "learning_rate": 0.1, "num_leaves": 8}
        data = lgb.Dataset(rows, labels, group=np.full(2 * N_QUERIES, DEPTH), params=params)
        booster = lgb.train({**params, "objective": fr.training.lightgbm_objective(**debiasing)}, data, 40)
        return booster.predict(self.features.reshape(-1, 5)).reshape(N_QUERIES, DEPTH)

    def ndcg(self, scores: np.ndarray) -> float:
        """NDCG@5 of the true labels, which no ranker has seen."""
        return float(fr.ndcg(self.labels, scores, k=5).mean())


@pytest.mark.slow
def test_propensities_from_clicks_make_a_better_ranker_than_clicks_alone() -> None:
    pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    world = Simulated(1)
    theta = clicks.propensity(world.log)
    np.testing.assert_allclose(theta.theta, EXAMINED, rtol=0.25)
    positions = np.concatenate(world.position).ravel()
    naive = world.ndcg(world.train())
    debiased = world.ndcg(world.train(propensities=theta, positions=positions))
    assert debiased > naive + 0.01

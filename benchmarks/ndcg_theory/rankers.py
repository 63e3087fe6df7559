"""The three rankers: a linear RankSVM and a ListNet with one hidden layer, trained by the losses of `fastrank.training`, and chance."""

from __future__ import annotations

import numpy as np

from benchmarks.ndcg_theory.streams import Documents
from fastrank import training

RANKSVM, LISTNET, RANDOM = "RankSVM", "ListNet", "random"
HIDDEN = 24
# Steepest descent in the coordinates of Adam: rate, decay of both averages.
RATE, FIRST, SECOND = 0.02, 0.9, 0.999


class _Adam:
    """Steps down a gradient (Kingma and Ba, ICLR 2015)."""

    def __init__(self, parameters: list[np.ndarray]) -> None:
        self.parameters = parameters
        self.first = [np.zeros_like(each) for each in parameters]
        self.second = [np.zeros_like(each) for each in parameters]
        self.steps = 0

    def step(self, gradients: list[np.ndarray]) -> None:
        self.steps += 1
        for parameter, gradient, first, second in zip(self.parameters, gradients, self.first, self.second, strict=True):
            first += (1 - FIRST) * (gradient - first)
            second += (1 - SECOND) * (gradient**2 - second)
            unbiased = first / (1 - FIRST**self.steps)
            parameter -= RATE * unbiased / (np.sqrt(second / (1 - SECOND**self.steps)) + 1e-8)


def rank_svm(documents: Documents, n_steps: int, regularisation: float = 1e-3) -> np.ndarray:
    """Weights of the features that keep pairs of unlike labels a margin apart (Joachims, KDD 2002)."""
    weights = np.zeros(documents.features.shape[1])
    adam = _Adam([weights])
    labels = documents.labels.astype(np.float64)
    n_pairs = sum(
        (len(part) ** 2 - (np.bincount(part.astype(np.int64)) ** 2).sum()) / 2 for part in np.split(labels, documents.offsets[1:-1])
    )
    for _ in range(n_steps):
        found = training.hinge(labels, documents.features @ weights, documents.offsets)
        adam.step([documents.features.T @ found.grad / n_pairs + regularisation * weights])
    return weights


class ListNet:
    """Scores by one hidden layer: tanh(x A + a) · b."""

    def __init__(self, documents: Documents, n_steps: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n_features = documents.features.shape[1]
        self.weights = rng.normal(size=(n_features, HIDDEN)) / np.sqrt(n_features)
        self.shift = rng.normal(size=HIDDEN)
        self.out = rng.normal(size=HIDDEN) / np.sqrt(HIDDEN)
        adam = _Adam([self.weights, self.shift, self.out])
        # Labels further apart make the distribution that is to be met less flat.
        labels = 2.0 * documents.labels
        for _ in range(n_steps):
            hidden = np.tanh(documents.features @ self.weights + self.shift)
            by_score = training.listnet(labels, hidden @ self.out, documents.offsets).grad / documents.n_queries
            by_hidden = np.outer(by_score, self.out) * (1 - hidden**2)
            adam.step([documents.features.T @ by_hidden, by_hidden.sum(axis=0), hidden.T @ by_score])

    def scores(self, features: np.ndarray) -> np.ndarray:
        """A score a document."""
        return np.asarray(np.tanh(features @ self.weights + self.shift) @ self.out)


def trained_scores(learnt: Documents, judged: Documents, n_steps: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Scores of the judged documents by all three rankers, the best first in theory."""
    return {
        LISTNET: ListNet(learnt, n_steps, seed).scores(judged.features),
        RANKSVM: judged.features @ rank_svm(learnt, n_steps),
        RANDOM: np.random.default_rng(seed).random(len(judged.labels)),
    }

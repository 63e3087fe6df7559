"""Ranking data for the tests of boosting libraries: the real set beside the checkout, or one drawn where it is absent."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from conformance import FOLDER

import fastrank as fr


class Split(NamedTuple):
    """Whole queries: features, labels and group sizes."""

    features: np.ndarray
    labels: np.ndarray
    sizes: np.ndarray

    @property
    def offsets(self) -> np.ndarray:
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @property
    def query(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def drawn(n_queries: int, seed: int) -> Split:
    """Queries of 1 to 40 documents whose label follows five noisy features."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 41, n_queries)
    features = rng.normal(size=(int(sizes.sum()), 5)).round(2)
    merit = features @ [1.0, 0.7, 0.4, 0.0, 0.0] + rng.normal(size=len(features))
    return Split(features, np.digitize(merit, [0.8, 1.6, 2.4, 3.2]).astype(float), sizes)


@functools.cache
def splits() -> tuple[Split, Split]:
    """Training and validation queries."""
    if not FOLDER.is_dir():
        return drawn(150, 1), drawn(60, 2)
    from sklearn.datasets import load_svmlight_file

    features, labels = load_svmlight_file(str(FOLDER / "ltr" / "rank.train"))
    sizes = np.loadtxt(FOLDER / "ltr" / "rank.train.query", dtype=np.int64)
    cut = 2 * len(sizes) // 3
    rows = int(sizes[:cut].sum())
    dense = features.toarray()
    return Split(dense[:rows], labels[:rows], sizes[:cut]), Split(dense[rows:], labels[rows:], sizes[cut:])


def mean_ndcg(split: Split, scores: np.ndarray, k: int = 10) -> float:
    """Mean NDCG@k."""
    return float(fr.ndcg(split.labels, scores, split.offsets, k=k).mean())

"""Data of the study: documents with click labels, generated or from a LETOR file, and the streams drawn from them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# Clicks from which a document's label is 1 and 2.
CLICKS = (100, 1_000)
N_FEATURES = 40


@dataclass(frozen=True)
class Documents:
    """Documents of queries: features float64[n, f], labels, offsets."""

    features: np.ndarray
    labels: np.ndarray
    offsets: np.ndarray

    @property
    def n_queries(self) -> int:
        """Queries."""
        return len(self.offsets) - 1

    def part(self, first: int, last: int) -> Documents:
        """Queries first <= q < last."""
        rows = slice(int(self.offsets[first]), int(self.offsets[last]))
        return Documents(self.features[rows], self.labels[rows], self.offsets[first : last + 1] - self.offsets[first])

    def thinned(self, most: int, rng: np.random.Generator) -> Documents:
        """At most so many documents of each query."""
        kept = []
        for start, stop in itertools.pairwise(self.offsets):
            kept.append(np.sort(start + rng.permutation(stop - start)[:most]))
        offsets = np.concatenate(([0], np.cumsum([len(rows) for rows in kept])))
        rows = np.concatenate(kept)
        return Documents(self.features[rows], self.labels[rows], offsets)


def generated(n_queries: int, n_documents: int, seed: int = 0) -> Documents:
    """Documents whose clicks follow from 40 features, in part by a straight line and in part by squares and a product, and from chance.

    The logarithm of the expected number of clicks is normal; clicks are Poisson draws.
    """
    rng = np.random.default_rng(seed)
    n = n_queries * n_documents
    features = rng.normal(size=(n, N_FEATURES))
    straight = features @ _unit(rng.normal(size=N_FEATURES))
    bent = (features[:, 0] ** 2 + features[:, 1] ** 2 - 2) / 4 + features[:, 2] * features[:, 3] / 2
    attraction = 0.4 * straight + 0.6 * bent / bent.std() + 0.7 * rng.normal(size=n)
    clicks = rng.poisson(np.exp(np.log(100.0) + 1.6 * attraction))
    labels = np.searchsorted(CLICKS, clicks, side="right")
    return Documents(features, labels.astype(np.uint8), np.arange(n_queries + 1) * n_documents)


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def letor(folder: Path) -> Documents | None:
    """The real file of the conformance data, or None where it is absent. Features scaled to the standard deviation 1."""
    path, sizes = folder / "rank.train", folder / "rank.train.query"
    if not path.exists() or not sizes.exists():
        return None
    rows = [line.split() for line in path.read_text().splitlines()]
    pairs = [[entry.split(":") for entry in row[1:]] for row in rows]
    features = np.zeros((len(rows), 1 + max(int(column) for row in pairs for column, _ in row)))
    for place, row in enumerate(pairs):
        for column, value in row:
            features[place, int(column)] = float(value)
    spread = features.std(axis=0)
    features = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    offsets = np.concatenate(([0], np.cumsum([int(size) for size in sizes.read_text().split()])))
    return Documents(features, np.array([int(row[0]) for row in rows], np.uint8), offsets)


@dataclass(frozen=True)
class Stream:
    """Documents in the order in which they come, with the scores of each ranker."""

    labels: np.ndarray
    scores: dict[str, np.ndarray]


def streams(documents: Documents, scores: dict[str, np.ndarray], n_orders: int, *, together: bool, seed: int = 0) -> Iterator[Stream]:
    """The documents of each query in so many random orders; `together`: of all queries as one, where lists are short."""
    rng = np.random.default_rng(seed)
    offsets = documents.offsets[[0, -1]] if together else documents.offsets
    for start, stop in itertools.pairwise(offsets):
        for _ in range(n_orders):
            rows = start + rng.permutation(stop - start)
            yield Stream(documents.labels[rows], {name: each[rows] for name, each in scores.items()})

"""Random judgements and runs for comparisons with other libraries: what the interfaces of fastrank.compat are tested on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Drawn(NamedTuple):
    """Dicts of dicts: labels and scores."""

    qrels: dict[str, dict[str, int]]
    run: dict[str, dict[str, float]]


def draw(seed: int, *, n_queries: int = 30, tied: bool = True, complete: bool = False, negative: bool = False) -> Drawn:
    """Up to 60 documents a query, out of 80 of which up to 40 are judged.

    tied: scores are quarters, else no two are alike. complete: every query is in both; else some are in the qrels or the run alone.
    negative: labels from -1 up, but never all of them below 0.
    """
    rng = np.random.default_rng(seed)
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(n_queries):
        judged, ranked = ([f"d{i}" for i in rng.permutation(80)[: rng.integers(1, most)]] for most in (40, 60))
        labels, scores = rng.integers(-1 if negative else 0, 4, len(judged)), rng.permutation(len(ranked)) - len(ranked) / 3
        if complete or q % 7 != 3:
            qrels[f"q{q}"] = {judged[0]: max(0, int(labels[0])), **dict(zip(judged[1:], labels[1:].tolist(), strict=True))}
        if complete or q % 5 != 2:
            run[f"q{q}"] = dict(zip(ranked, (np.round(rng.normal(size=len(ranked)) * 4) / 4 if tied else scores).tolist(), strict=True))
    return Drawn(qrels, run)

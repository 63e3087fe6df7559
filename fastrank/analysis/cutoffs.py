"""`choose_k`: what a cutoff leaves out, and how the verdict between systems hangs on it."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank.analysis.discounting import discount_table
from fastrank.analysis.outcome import Finding
from fastrank.comparison.corrections import CORRECTIONS
from fastrank.comparison.intervals import check_confidence
from fastrank.comparison.paired import Chance
from fastrank.comparison.resampling import check_resamples, root_of
from fastrank.comparison.significance import TESTS, corrected_over, p_values
from fastrank.convention import one_of
from fastrank.engine.calls import evaluate
from fastrank.errors import InputError
from fastrank.gains import as_discount
from fastrank.metrics.base import as_whole
from fastrank.metrics.cumulative_gain import nDCG

KS = (1, 3, 5, 10, 20, 50, 100)


@dataclass(frozen=True, eq=False, repr=False)
class CutoffChoice(Finding):
    """NDCG at several cutoffs.

    Attributes
    ----------
    k
        int64[n_k].
    shorter
        float64[n_k]: the share of lists with fewer than k documents.
    unseen
        float64[n_k]: the share of the discounts of ranks 1 ... k that lies beyond rank `visible`.
    pairs
        (system, other) names.
    difference
        float64[n_k, n_pairs]: mean of the first minus that of the second.
    p
        float64[n_k, n_pairs]: corrected over the pairs of one k.
    visible, confidence
        What the user sees; a difference is told apart where p is at most 1 - confidence.
    """

    k: np.ndarray
    shorter: np.ndarray
    unseen: np.ndarray
    pairs: tuple[tuple[str, str], ...]
    difference: np.ndarray
    p: np.ndarray
    visible: int
    confidence: float

    def verdicts(self) -> list[list[str]]:
        """Per k and pair: the better system where it is told apart, else "open"."""
        return [
            [
                (one if d > 0 else other) if p <= 1 - self.confidence else "open"
                for (one, other), d, p in zip(self.pairs, ds, ps, strict=True)
            ]
            for ds, ps in zip(self.difference.tolist(), self.p.tolist(), strict=True)
        ]

    def columns(self) -> dict[str, Any]:
        """A row per k."""
        rows: dict[str, Any] = {"k": self.k, "shorter": self.shorter, "unseen": self.unseen}
        verdicts = self.verdicts()
        for i, (one, other) in enumerate(self.pairs):
            rows |= {f"{one} - {other}": self.difference[:, i], f"p({one}, {other})": self.p[:, i]}
            rows[f"better({one}, {other})"] = [row[i] for row in verdicts]
        return rows


def choose_k(
    systems: Mapping[str, Any],
    *,
    labels: Any,
    offsets: Any = None,
    sizes: Any = None,
    ks: Sequence[int] = KS,
    visible: int = 3,
    gain: Any = "exp2",
    discount: Any = "log2",
    test: str = "permutation",
    correction: str = "holm",
    confidence: float = 0.95,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    threads: int | None = None,
) -> CutoffChoice:
    """What NDCG@k weighs for each k, and what it says of the systems.

    Parameters
    ----------
    systems
        Scores by name, each of the shape of `labels`; one is enough for the first two questions.
    labels, offsets, sizes
        As `fr.evaluate`.
    ks
        The cutoffs.
    visible
        How many documents a user sees without scrolling.
    gain, discount
        As `fr.ndcg`; the discount also as `discount_table` ("step:K", a function).
    test, correction, confidence, n_resamples, seed, threads
        As `fr.compare`; the correction runs over the pairs of one k, so that cutoffs are judged alike.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> labels = [[3, 2, 0, 1], [1, 0, 0, 2]] * 10
    >>> systems = {"a": [[4, 3, 2, 1]] * 20, "b": [[4, 1, 2, 3]] * 20}
    >>> found = fr.analysis.choose_k(systems, labels=labels, ks=[1, 4, 10])
    >>> found.shorter.tolist(), found.unseen.round(2).tolist()
    ([0.0, 0.0, 1.0], [0.0, 0.17, 0.53])
    """
    if not isinstance(systems, Mapping) or not systems:
        raise InputError("systems must hold one ranker at least: give {name: scores}.")
    one_of("test", test, tuple(TESTS))
    one_of("correction", correction, CORRECTIONS)
    confidence, visible = check_confidence(confidence), as_whole("visible", visible)
    chance = Chance(root_of(seed), check_resamples(n_resamples), threads)
    cutoffs = np.array(sorted({as_whole("ks", k) for k in ks}), np.int64)
    if not len(cutoffs):
        raise InputError("ks must hold a cutoff: give whole numbers from 1 up.")
    table = discount_table(discount, int(cutoffs[-1]))
    named = as_discount(discount if isinstance(discount, str) else table)
    metrics = [nDCG(k=int(k), gain=gain, discount=named) for k in cutoffs]
    found = {
        str(name): evaluate(labels, scores, offsets, sizes=sizes, metrics=["NumRet", *metrics], threads=threads)
        for name, scores in systems.items()
    }
    retrieved = next(iter(found.values()))["NumRet"]
    sums = np.cumsum(table)
    seen = sums[np.minimum(cutoffs, visible) - 1] / sums[cutoffs - 1]
    values = np.stack([evaluation[metric] for evaluation in found.values() for metric in metrics])
    values = values.reshape(len(found), len(metrics), -1)
    pairs = list(itertools.combinations(range(len(found)), 2))
    difference = np.array([[values[i, m].mean() - values[j, m].mean() for i, j in pairs] for m in range(len(metrics))])
    p = np.ones((len(metrics), len(pairs)))
    if pairs:
        raw = p_values(test, values, None, None, pairs, chance)
        p = np.concatenate([corrected_over(raw[m : m + 1], test, correction) for m in range(len(metrics))])
    names = tuple(found)
    shorter = np.array([(retrieved < k).mean() for k in cutoffs])
    return CutoffChoice(
        cutoffs, shorter, 1.0 - seen, tuple((names[i], names[j]) for i, j in pairs), difference, p, visible, confidence
    )  # fmt: skip

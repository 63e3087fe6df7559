"""What the study measures: curves over streams, their order and spread, and limits beside theory. Each claim is checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import fastrank as fr
from benchmarks.ndcg_theory.rankers import LISTNET, RANDOM, RANKSVM, trained_scores
from benchmarks.ndcg_theory.streams import Documents, Stream, generated, letor, streams
from fastrank import analysis

STANDARD, ROOT, FAST, SHARE = "nDCG", "nDCG(discount='power:0.5')", "nDCG(discount='geometric:0.5')", "nDCG@20%"
# The four figures: the metric, its name in words.
FIGURES = {
    STANDARD: "discount 1/log2(1 + r)",
    ROOT: "discount r^-1/2",
    FAST: "discount 2^-r",
    SHARE: "discount 1/log2(1 + r), cut at k = n/5",
}
RANKERS = (LISTNET, RANKSVM, RANDOM)
# Theory speaks of relevant and not relevant: discount and cutoff of each limit.
LIMITS = {"r^-1/2": ("power:0.5", None), "1/r": ("zipf", None), "1/log2(1 + r), k = n/5": ("log2", 0.2), "1/log2(1 + r)": ("log2", None)}
BINS = 100
# A single stream has settled down when its spread is below this part of what it was at a tenth of the documents.
SETTLED = 0.5


@dataclass(frozen=True)
class Setting:
    """How much is drawn. `thinned`: documents per query that rankers learn from; `orders`: random orders of each judged query."""

    n_queries: int = 40
    n_documents: int = 5_000
    thinned: int = 400
    n_steps: int = 200
    orders: int = 5
    n_lists: int = 40


QUICK = Setting(n_documents=3_000, orders=2, n_lists=10)


@dataclass(frozen=True)
class Curves:
    """float64[n_streams, n_rankers, n_figures, n]: NDCG of the first n documents of each stream."""

    name: str
    values: np.ndarray

    @property
    def n_documents(self) -> int:
        """Documents of a stream."""
        return int(self.values.shape[3])

    def of(self, metric: str) -> np.ndarray:
        """float64[n_streams, n_rankers, n] of one figure."""
        return self.values[:, :, list(FIGURES).index(metric)]

    def mean(self, metric: str) -> np.ndarray:
        """float64[n_rankers, n]: the mean over streams."""
        return self.of(metric).mean(axis=0)

    def spread(self, metric: str, n: int) -> np.ndarray:
        """float64[n_rankers]: standard deviation over streams at n."""
        return self.of(metric)[:, :, n - 1].std(axis=0)

    def last_wrong(self, metric: str, better: str, worse: str) -> int:
        """The last n at which, in any stream, the worse ranker is not below the better one; 0: never."""
        values = self.of(metric)
        wrong = (values[:, RANKERS.index(worse)] >= values[:, RANKERS.index(better)]).any(axis=0)
        return int(np.flatnonzero(wrong)[-1]) + 1 if wrong.any() else 0

    def share_wrong(self, metric: str, better: str, worse: str) -> float:
        """The share of streams in which the worse ranker is not below the better one somewhere in their second half."""
        values = self.of(metric)[:, :, self.n_documents // 2 :]
        return float((values[:, RANKERS.index(worse)] >= values[:, RANKERS.index(better)]).any(axis=1).mean())


def measured(name: str, drawn: Iterable[Stream]) -> Curves:
    """The prefix curves of every stream."""
    values = [analysis.prefix_curve(stream.labels, stream.scores, list(FIGURES)).values for stream in drawn]
    return Curves(name, np.stack(values))


@dataclass(frozen=True)
class Row:
    """A line of the table of limits: NDCG of n documents as measured and by simulation of theory, and the limit."""

    ranker: str
    discount: str
    measured: float
    standard_error: float
    simulated: float
    limit: float
    low: float
    high: float


def limits(judged: Documents, scores: dict[str, np.ndarray], setting: Setting) -> list[Row]:
    """Limits beside what is measured, labels from 1 up taken as relevant."""
    binary = (judged.labels >= 1).astype(np.uint8)
    rows = []
    for ranker, given in scores.items():
        curve = analysis.relevance_curve(binary, given, judged.offsets, bins=BINS)
        for words, (discount, share) in LIMITS.items():
            values = fr.ndcg(binary, given, judged.offsets, discount=discount, k=share)
            error = float(values.std(ddof=1) / np.sqrt(len(values)))
            gap = analysis.simulate_gap(discount, curve, [setting.n_documents], k_share=share, n_lists=setting.n_lists)
            found = analysis.limit_interval(discount, curve, share)
            rows.append(Row(ranker, words, float(values.mean()), error, float(gap.mean[0]), found.estimate, found.low, found.high))
    return rows


@dataclass(frozen=True)
class Study:
    """All that was measured."""

    curves: Curves
    rows: list[Row]
    real: Curves | None


def run(setting: Setting, folder: Path) -> Study:
    """Generate, train, measure; the LETOR file of `folder` as well where it is present."""
    documents = generated(setting.n_queries, setting.n_documents)
    half = setting.n_queries // 2
    learnt = documents.part(0, half).thinned(setting.thinned, np.random.default_rng(1))
    judged = documents.part(half, setting.n_queries)
    scores = trained_scores(learnt, judged, setting.n_steps)
    curves = measured("generated documents", streams(judged, scores, setting.orders, together=False))
    real = letor(folder)
    found = None
    if real is not None:
        half = real.n_queries // 2
        judged_real = real.part(half, real.n_queries)
        trained = trained_scores(real.part(0, half), judged_real, 60)
        found = measured("documents of the LETOR file", streams(judged_real, trained, setting.orders * 8, together=True))
    return Study(curves, limits(judged, scores, setting), found)


def claims(curves: Curves) -> dict[str, bool]:
    """What the figures show, said of the numbers behind them."""
    n = curves.n_documents
    early, late = max(n // 10, 1), n
    means = {metric: curves.mean(metric) for metric in FIGURES}
    second_half = {metric: values[:, n // 2 :] for metric, values in means.items()}

    def ordered(metric: str) -> bool:
        return bool((np.diff(second_half[metric], axis=0) < 0).all())

    def settled(metric: str) -> bool:
        return bool((curves.spread(metric, late) < SETTLED * curves.spread(metric, early)).all())

    def apart(metric: str) -> bool:
        # By more than twice what single streams scatter.
        return bool(-np.diff(means[metric][:, -1]).max() > 2 * curves.spread(metric, late).max())

    def moves(metric: str) -> float:
        return float(np.ptp(second_half[metric], axis=1).max())

    standard = means[STANDARD][:, -1]
    return {
        "1: the three curves are near 1": bool(standard.min() > 0.75),
        "1: and closer together than those of figures 2 and 4": bool(
            np.ptp(standard) < 0.6 * min(np.ptp(means[m][:, -1]) for m in (ROOT, SHARE))
        ),
        "1: ordered throughout the second half": ordered(STANDARD),
        "1: single streams settle down": settled(STANDARD),
        "1: the random ranker still rises": bool(means[STANDARD][-1, -1] > means[STANDARD][-1, n // 10] + 0.005),
        "2: three curves apart": apart(ROOT) and ordered(ROOT),
        "2: that have come to rest": moves(ROOT) < 0.02 and settled(ROOT),
        "3: single streams do not settle down": bool((curves.spread(FAST, late) > SETTLED * curves.spread(FAST, early)).all()),
        "3: nor do they keep an order": curves.share_wrong(FAST, LISTNET, RANKSVM) > 0.2,
        "4: three curves apart": apart(SHARE) and ordered(SHARE),
        "4: that have come to rest": moves(SHARE) < 0.02 and settled(SHARE),
        "a random ranker beats a trained one under 2^-r in the second half of some streams": curves.share_wrong(FAST, RANKSVM, RANDOM) > 0,
        "and under the standard discount in none": curves.last_wrong(STANDARD, RANKSVM, RANDOM) < n // 2,
    }

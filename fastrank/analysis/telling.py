"""`distinguish`: which metric, discount and cutoff tells systems apart, from how many documents and from how many queries on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank._kernel import map_blocks
from fastrank.analysis.outcome import Finding
from fastrank.batch import QueryBatch, make_batch
from fastrank.comparison.discrimination import discriminations
from fastrank.comparison.findings import Discrimination
from fastrank.comparison.intervals import check_confidence
from fastrank.comparison.paired import Chance
from fastrank.comparison.resampling import check_resamples, root_of
from fastrank.comparison.significance import TESTS
from fastrank.convention import Convention, as_convention, one_of
from fastrank.engine.calls import Metrics, check_threads, evaluate
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, unique_names

DEFAULT = ("nDCG", "nDCG(discount='power:0.5')", "nDCG(discount='zipf')", "nDCG@20%", "nDCG@10", "AP", "RR", "AUC")
# Queries drawn one after the other, as a multiple of those at hand, and at most so many numbers drawn of one metric and pair.
_TIMES, _MOST_DRAWN = 20, 4_000_000
# Sizes of lists that are tried where none are given, from this one up.
_STEPS, _FIRST = 12, 5


@dataclass(frozen=True, eq=False)
class Distinction:
    """Two systems under one metric.

    Attributes
    ----------
    metric, better, worse
        Which stands above which by the mean over all queries at hand.
    difference
        Of those means; 0 where they are equal, and then nothing below is right.
    right
        The chance that as many queries as are at hand, drawn anew, give the same order.
    from_queries
        The fewest queries from which on, as more are drawn, the order is the same for good in `level` of all draws; None: more than tried.
    right_at, for_good_at
        float64[n_documents]: the share of draws in which lists of so many documents give the same order, and from there on for good.
    from_documents
        The smallest of the tried lengths from which on that is `level`; None: none is.
    """

    metric: str
    better: str
    worse: str
    difference: float
    right: float
    from_queries: int | None
    right_at: np.ndarray
    for_good_at: np.ndarray
    from_documents: int | None


@dataclass(frozen=True, eq=False, repr=False)
class Distinctions(Finding):
    """Which metric tells which systems apart, and from where on.

    Attributes
    ----------
    metrics, systems
        Names.
    pairs
        A `Distinction` per metric and pair.
    power
        A `Discrimination` per metric, as `fr.discriminative_power` finds them.
    documents
        int64[n_documents]: the lengths of lists that were tried.
    n_queries, level
        Queries at hand; the chance that counts as certain.
    """

    metrics: tuple[str, ...]
    systems: tuple[str, ...]
    pairs: tuple[Distinction, ...]
    power: tuple[Discrimination, ...]
    documents: np.ndarray
    n_queries: int
    level: float

    def of(self, metric: str) -> list[Distinction]:
        """The pairs under one metric."""
        if metric not in self.metrics:
            raise InputError(f"metric {metric!r} is not among these: {', '.join(self.metrics)}.")
        return [pair for pair in self.pairs if pair.metric == metric]

    @property
    def best(self) -> tuple[str, ...]:
        """The metrics, that which tells most pairs apart first; among equals that which gives the right order most surely."""

        def merit(metric: str) -> tuple[float, float]:
            found = next(each for each in self.power if each.metric == metric)
            return (-found.n_apart, -float(np.mean([pair.right for pair in self.of(metric)])))

        return tuple(sorted(self.metrics, key=merit))

    def columns(self) -> dict[str, Any]:
        """A row per metric and pair."""
        names = ("metric", "better", "worse", "difference", "right", "from_queries", "from_documents")
        return {name: [getattr(pair, name) for pair in self.pairs] for name in names}

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure: how sure each metric is by documents, and by queries. Errors: `InputError` where matplotlib is missing."""
        from fastrank.report.analysed import distinction_figure

        return distinction_figure(self, dark=dark)


def distinguish(
    systems: Mapping[str, Any],
    metrics: Metrics = DEFAULT,
    *,
    labels: Any,
    offsets: Any = None,
    sizes: Any = None,
    documents: Any = None,
    level: float = 0.95,
    n_streams: int = 100,
    n_resamples: int = 1_000,
    test: str = "permutation",
    convention: str | Convention = "fastrank",
    seed: int | np.random.Generator = 0,
    threads: int | None = None,
) -> Distinctions:
    """Which metric, discount and cutoff to report, given your lists and your number of queries.

    The right order of two systems is that of their means over all queries at hand. Queries are drawn anew, with replacement, one after
    the other: from which number on does the mean keep the right order? Documents likewise: every list is drawn anew from its own
    documents, and judged by its first n: from which n on do the means over all queries keep the right order?

    Parameters
    ----------
    systems
        Scores by name, each of the shape of `labels`.
    metrics
        As `fr.evaluate`; discounts and cutoffs are part of a metric: "nDCG(discount='power:0.5')@20%".
    labels, offsets, sizes
        As `fr.evaluate`.
    documents
        Lengths of lists to try; None: a dozen up to the median list.
    level
        The chance that counts as certain.
    n_streams, n_resamples
        How often documents and queries are drawn anew.
    test
        Of the discriminative power, as `fr.compare`; its level is 1 - `level`, after Holm's correction over the pairs.
    seed
        A whole number or a numpy.random.Generator; the same seed gives the same bits for every `threads`.

    Returns
    -------
    Distinctions
        pairs, power, best; printed, a table; `plot()`, a figure.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: Wang, Wang, Li, He, Chen and Liu, COLT 2013 (consistent distinguishability); Sakai, SIGIR 2006 (discriminative power).

    Examples
    --------
    >>> import fastrank as fr
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 2, (30, 50))
    >>> systems = {"good": labels + rng.normal(size=labels.shape), "bad": labels + 4 * rng.normal(size=labels.shape)}
    >>> found = fr.analysis.distinguish(systems, ["nDCG", "RR"], labels=labels, n_streams=20)
    >>> found.best, found.of("nDCG")[0].better
    (('nDCG', 'RR'), 'good')
    """
    if not isinstance(systems, Mapping) or len(systems) < 2:
        raise InputError("systems must hold two rankers at least: give {name: scores}.")
    level, resamples, streams = check_confidence(level), check_resamples(n_resamples), _count("n_streams", n_streams)
    one_of("test", test, tuple(TESTS))
    root, threads = root_of(seed), check_threads(threads)
    given = {"offsets": offsets, "sizes": sizes}
    found = {
        str(name): evaluate(labels, scores, **given, metrics=metrics, convention=convention, threads=threads)
        for name, scores in systems.items()
    }
    names = tuple(found)
    values = np.stack([_values(name, evaluation) for name, evaluation in found.items()])
    metric_names = unique_names(next(iter(found.values())).metrics)
    power = discriminations(metric_names, values, None, None, test, "holm", level, Chance(root, resamples, threads))
    lists = _Lists.of(labels, systems, offsets, sizes, convention)
    lengths = _lengths(documents, lists.batch)
    by_documents = _drawn_documents(lists, metrics, convention, lengths, streams, root, threads)
    pairs = []
    for m, metric in enumerate(metric_names):
        for one, other in itertools.combinations(range(len(names)), 2):
            # Equal means come in the order given; their difference is 0.
            up, down = (one, other) if values[one, m].mean() >= values[other, m].mean() else (other, one)
            differences = values[up, m] - values[down, m]
            right, from_queries = _drawn_queries(differences, level, resamples, np.random.default_rng((root, m, one, other)))
            at = by_documents[:, :, up, m] > by_documents[:, :, down, m]
            for_good = np.logical_and.accumulate(at[:, ::-1], axis=1)[:, ::-1].mean(axis=0)
            certain = np.flatnonzero(for_good >= level)
            start = int(lengths[certain[0]]) if len(certain) else None
            mean = float(differences.mean())
            pairs.append(Distinction(metric, names[up], names[down], mean, right, from_queries, at.mean(axis=0), for_good, start))
    return Distinctions(metric_names, names, tuple(pairs), power, lengths, values.shape[2], level)


def _count(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} must be a whole number from 1 up, not {value!r}.")
    return int(value)


def _values(name: str, evaluation: Evaluation) -> np.ndarray:
    """float64[n_metrics, n_queries], larger values better."""
    assert evaluation.values is not None
    if evaluation.n_queries < 2:
        raise InputError(f"labels must hold two queries at least, not {evaluation.n_queries}: give offsets or sizes.")
    if np.isnan(evaluation.values).any():
        raise InputError(f"system {name!r} has queries without a value: leave them out, or give no_relevant='zero' in the metric.")
    signs = np.array([1.0 if metric.higher_is_better else -1.0 for metric in evaluation.metrics])
    return np.ascontiguousarray((evaluation.values * signs).T)


def _drawn_queries(differences: np.ndarray, level: float, n_resamples: int, rng: np.random.Generator) -> tuple[float, int | None]:
    """The chance of the right order with the queries at hand drawn anew, and the number of queries from which on it stays."""
    n = len(differences)
    if not differences.mean() > 0:
        return 0.0, None
    length = min(_TIMES * n, max(n, _MOST_DRAWN // n_resamples))
    sums = np.cumsum(differences[rng.integers(n, size=(n_resamples, length))], axis=1)
    wrong = sums <= 0
    # The queries after which the order is right for good: one more than the last wrong one.
    settled = np.where(wrong.any(axis=1), length - np.argmax(wrong[:, ::-1], axis=1) + 1, 1)
    enough = int(np.sort(settled)[int(np.ceil(level * n_resamples)) - 1])
    return float(1.0 - wrong[:, n - 1].mean()), enough if enough <= length else None


# --- documents ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Lists:
    """Checked labels, and the scores of every system."""

    batch: QueryBatch
    scores: tuple[np.ndarray, ...]

    @classmethod
    def of(cls, labels: Any, systems: Mapping[str, Any], offsets: Any, sizes: Any, convention: str | Convention) -> _Lists:
        choices = as_convention(convention)
        batches = [make_batch(labels, scores, offsets, sizes=sizes, convention=choices) for scores in systems.values()]
        if any(batch.unretrieved_labels is not None and len(batch.unretrieved_labels) for batch in batches):
            raise InputError("scores must not be null here: documents are drawn anew from the lists. Leave documents without a score out.")
        return cls(batches[0], tuple(batch.scores for batch in batches if batch.scores is not None))


def _lengths(documents: Any, batch: QueryBatch) -> np.ndarray:
    if documents is None:
        median = max(2, int(np.median(np.diff(batch.offsets))))
        return np.unique(np.geomspace(min(_FIRST, median), median, _STEPS).astype(np.int64))
    given = np.atleast_1d(np.asarray(documents))
    if given.dtype.kind not in "iu" or given.ndim != 1 or len(given) == 0 or given.min() < 1:
        raise InputError(f"documents must be whole numbers from 1 up, lengths of lists, not {documents!r}.")
    return np.unique(given).astype(np.int64)


def _drawn_documents(
    lists: _Lists, metrics: Metrics, convention: str | Convention, lengths: np.ndarray, n_streams: int, root: int, threads: int | None
) -> np.ndarray:
    """float64[n_streams, n_lengths, n_systems, n_metrics]: means over queries whose documents were drawn anew, larger values better."""
    offsets = lists.batch.offsets
    sizes = np.diff(offsets)
    first, filled = offsets[:-1][sizes > 0], sizes[sizes > 0]
    longest = int(lengths[-1])
    parts: list[np.ndarray] = [np.empty(0)] * n_streams

    def work(begin: int, end: int) -> None:
        for stream in range(begin, end):
            rng = np.random.default_rng((root, stream))
            rows = first[:, None] + (rng.random((len(filled), longest)) * filled[:, None]).astype(np.int64)
            parts[stream] = np.array(
                [[_means(lists, rows[:, :n], scores, metrics, convention) for scores in lists.scores] for n in lengths]
            )

    map_blocks(work, np.arange(n_streams + 1), documents=1, threads=threads)
    return np.stack(parts)


def _means(lists: _Lists, rows: np.ndarray, scores: np.ndarray, metrics: Metrics, convention: str | Convention) -> list[float]:
    found = evaluate(lists.batch.labels[rows], scores[rows], metrics=metrics, convention=convention, threads=1)
    return [
        estimate if metric.higher_is_better else -estimate for metric, estimate in zip(found.metrics, found.mean().values(), strict=True)
    ]

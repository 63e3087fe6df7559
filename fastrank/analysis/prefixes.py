"""`prefix_curve`: a metric of the first n documents of one stream, for n = 1 ... N."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import map_blocks
from fastrank.analysis import prefix_kernels as kernels
from fastrank.analysis import whole_kernels
from fastrank.analysis.outcome import Finding
from fastrank.arrays import as_array
from fastrank.batch import QueryBatch, check_scores, make_batch
from fastrank.convention import Convention
from fastrank.engine.calls import Metrics, check_threads, evaluate
from fastrank.engine.plan import FILLS, make_plan
from fastrank.errors import InputError
from fastrank.gains import Discount, discounts, gains_of
from fastrank.metrics.base import Metric
from fastrank.metrics.binary import AP, RR
from fastrank.metrics.cumulative_gain import DCG, nDCG
from fastrank.metrics.pairwise import AUC
from fastrank.metrics.view import share_of_each

if TYPE_CHECKING:
    from fastrank.metrics.base import Cutoff

DEFAULT = ("nDCG",)
# The plain function takes about so many nanoseconds a document, a document that comes in so many, and so many for each one held.
_PLAIN, _ARRIVAL, _HELD = 40, 300, 0.5


@dataclass(frozen=True, eq=False, repr=False)
class PrefixCurve(Finding):
    """Metrics of the first n documents of a stream.

    Attributes
    ----------
    systems, metrics
        Names of the rankers and of the metrics.
    sizes
        int64[n_sizes]: the numbers of documents, ascending.
    values
        float64[n_systems, n_metrics, n_sizes].
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    sizes: np.ndarray
    values: np.ndarray
    convention: str = field(default="fastrank")

    def __getitem__(self, metric: str | Metric) -> np.ndarray:
        """The curves of one metric, float64[n_systems, n_sizes]."""
        name = metric.short_name if isinstance(metric, Metric) else metric
        if name not in self.metrics:
            raise InputError(f"metric {name!r} is not among these curves: {', '.join(self.metrics)}.")
        return np.asarray(self.values[:, self.metrics.index(name)])

    def columns(self) -> dict[str, Any]:
        """A row per system and number of documents, a column per metric."""
        names = np.repeat(np.array(self.systems, dtype=object), len(self.sizes))
        rows = {"system": names, "n": np.tile(self.sizes, len(self.systems))}
        return rows | {name: self.values[:, m].ravel() for m, name in enumerate(self.metrics)}

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure with a panel per metric and a line per system. Errors: `InputError` where matplotlib is missing."""
        from fastrank.report.analysed import prefix_figure

        return prefix_figure(self, dark=dark)


def prefix_curve(
    labels: Any,
    scores: Any,
    metrics: Metrics = DEFAULT,
    sizes: Any = None,
    *,
    convention: str | Convention = "fastrank",
    threads: int | None = None,
) -> PrefixCurve:
    """Metrics of the first n documents of one stream, for n = 1 ... N: each n ranks the first n documents anew.

    value[n] = metric(labels[:n], scores[:n]), as `fr.evaluate` has it, ties, cutoffs and empty lists included. nDCG and DCG with any gain,
    discount and cutoff, AP, RR and AUC are kept up to date as documents come in, in O(N (r + log N)) for r documents with a gain within
    the cutoff. Where few sizes are asked for, and for other metrics, each prefix is evaluated by itself.

    Parameters
    ----------
    labels
        One number a document, in the order of the stream. None may be unjudged.
    scores
        The same length; higher ranks first. Of several rankers: a mapping of name to scores.
    metrics
        As `fr.evaluate`.
    sizes
        Which n, from 1 to N; None: all.
    convention
        What the names leave open.
    threads
        None: every processor. The result has the same bits for any number.

    Returns
    -------
    PrefixCurve
        values, float64[n_systems, n_metrics, n_sizes]; `curve["nDCG"]` is float64[n_systems, n_sizes].

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Wang, Wang, Li, He, Chen and Liu, COLT 2013 (the experiment).

    Examples
    --------
    >>> import fastrank as fr
    >>> curve = fr.analysis.prefix_curve([1, 0, 1, 0], [0.4, 0.9, 0.6, 0.1], ["nDCG", "RR"])
    >>> curve["nDCG"].round(4).tolist()
    [[1.0, 0.6309, 0.6934, 0.6934]]
    >>> curve["RR"].tolist()
    [[1.0, 0.5, 0.5, 0.5]]
    """
    plan = make_plan(metrics, convention)
    batch = make_batch(labels, None, convention=plan.convention)
    if np.ndim(labels) != 1 or batch.n_queries != 1:
        raise InputError(f"labels must be one stream of documents, one dimension, not {np.ndim(labels)}.")
    if batch.labels.dtype.kind == "f" and np.isnan(batch.labels).any():
        raise InputError(
            "labels must not be null: every document of a stream needs a label. Leave unjudged documents out, or label them 0."
        )
    plan.check(batch)
    systems = dict(scores) if isinstance(scores, Mapping) else {"scores": scores}
    if not systems:
        raise InputError("scores must hold one ranker at least: give {name: scores}.")
    rankers = [_ranker(name, each, batch, plan.convention) for name, each in systems.items()]
    wanted = _sizes(sizes, len(batch.labels))
    out = np.empty((len(rankers), len(plan.metrics), len(wanted)))
    jobs = [(s, m) for s in range(len(rankers)) for m in range(len(plan.metrics))]

    def work(first: int, last: int) -> None:
        for s, m in jobs[first:last]:
            metric = plan.metrics[m]
            if _is_kept(metric) and not _is_cheaper_plain(batch, metric, wanted):
                out[s, m] = _filled(metric, *_curve(rankers[s], metric))[wanted - 1]
            else:
                out[s, m] = [_plain(rankers[s], metric, int(n), plan.convention) for n in wanted]

    map_blocks(work, np.arange(len(jobs) + 1), documents=1, threads=check_threads(threads))
    return PrefixCurve(tuple(map(str, systems)), plan.names, wanted, out, plan.convention.name)


# --- what came in ---------------------------------------------------------------------------------------------------------------


class _Ranker:
    """A stream under one ranker: the codes of its scores, 0 for the highest, and where each document comes in."""

    def __init__(self, batch: QueryBatch, scores: np.ndarray) -> None:
        self.label = batch.labels.astype(np.float64)
        self.scores = scores
        distinct, place = np.unique(scores, return_inverse=True)
        self.tied = (len(distinct) - 1 - place).astype(np.int64)
        self.has_ties = len(distinct) < len(scores)

    def codes(self, ties: str) -> np.ndarray:
        """Equal codes tie; under a rule that settles ties all differ."""
        if ties == "average" or not self.has_ties:
            return self.tied
        second = {"input": np.zeros(0), "worst": self.label, "best": -self.label}[ties]
        return _order(self.tied, second)


def _order(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The place of each document by one number, then another where there is one, then the stream."""
    order = np.lexsort((second, first) if len(second) else (first,))
    place = np.empty(len(first), np.int64)
    place[order] = np.arange(len(first))
    return place


def _ranker(name: Any, scores: Any, batch: QueryBatch, convention: Convention) -> _Ranker:
    what = "scores" if name == "scores" else f"scores of {name!r}"
    given, absent = as_array("scores", scores, ordinal=convention.scores is None)
    if absent is not None:
        raise InputError(f"{what} must not be null: every document of a stream is ranked. Leave documents without a score out.")
    if given.shape != batch.labels.shape:
        raise InputError(f"{what} must have one entry a document, {len(batch.labels)}, not shape {given.shape}.")
    return _Ranker(batch, check_scores(batch, given, convention))


def _sizes(sizes: Any, n: int) -> np.ndarray:
    if sizes is None:
        return np.arange(1, n + 1)
    given = np.atleast_1d(np.asarray(sizes))
    if given.dtype.kind not in "iu" or given.ndim != 1 or len(given) == 0 or given.min() < 1 or given.max() > n:
        raise InputError(f"sizes must be whole numbers from 1 to {n}, the length of the stream, not {sizes!r}.")
    return np.unique(given).astype(np.int64)


def _is_kept(metric: Metric) -> bool:
    """Whether a kernel keeps the metric up to date."""
    if not isinstance(metric, DCG | nDCG | AP | RR | AUC) or metric.ties == "docid":
        return False
    return getattr(metric, "above", None) is None and getattr(metric, "denominator", None) != "hits"


def _is_cheaper_plain(batch: QueryBatch, metric: Metric, sizes: np.ndarray) -> bool:
    n = len(batch.labels)
    held: float = np.count_nonzero(batch.labels) / 4
    if isinstance(metric.k, int):
        held = min(held, metric.k)
    return bool(_PLAIN * sizes.sum() < n * (_ARRIVAL + _HELD * held))


def _plain(ranker: _Ranker, metric: Metric, n: int, convention: Convention) -> float:
    return float(evaluate(ranker.label[:n], ranker.scores[:n], metrics=[metric], convention=convention, threads=1)[metric][0])


# --- curves ---------------------------------------------------------------------------------------------------------------------


def _filled(metric: Metric, value: np.ndarray, nothing: np.ndarray | None) -> np.ndarray:
    """The curve with the `no_relevant` rule where there is nothing to find."""
    if nothing is None:
        return value
    fill = FILLS[getattr(metric, "no_relevant")]  # noqa: B009
    return np.where(nothing, fill, value)


def _curve(ranker: _Ranker, metric: Metric) -> tuple[np.ndarray, np.ndarray | None]:
    """The value at every n, and where there is nothing to find (None: there always is something)."""
    assert metric.ties is not None
    codes = ranker.codes(metric.ties)
    if isinstance(metric, DCG | nDCG):
        return _gain_curve(ranker, codes, metric)
    relevant = (ranker.label >= metric.least).astype(np.float64)  # type: ignore[attr-defined]
    n_relevant = np.cumsum(relevant)
    n = len(codes)
    if isinstance(metric, AUC):
        lost = np.empty(n)
        n_codes = int(codes.max(initial=-1)) + 1
        kernels.lost_curve(codes, relevant, np.zeros((2, n_codes), np.int64), np.zeros((2, n_codes + 1), np.int64), lost)
        pairs = n_relevant * (np.arange(1, n + 1) - n_relevant)
        return 1.0 - np.divide(lost, pairs, out=np.ones(n), where=pairs > 0), pairs == 0
    cutoffs = _cutoffs(metric.k, n)
    if isinstance(metric, RR):
        out = np.empty(n)
        counts = np.zeros((2, int(codes.max(initial=-1)) + 1), np.int64)
        kernels.first_curve(codes, _above(codes), relevant, cutoffs, counts, out)
        return out, n_relevant == 0
    assert isinstance(metric, AP)
    below: Any = n_relevant
    if metric.denominator != "relevant" and metric.k is not None:
        below = np.minimum(below, cutoffs)
    if metric.denominator == "min_k_retrieved":
        below = np.minimum(below, np.arange(1, n + 1))
    return _precisions(codes, relevant, cutoffs) / np.maximum(below, 1), n_relevant == 0


def _gain_curve(ranker: _Ranker, codes: np.ndarray, metric: DCG | nDCG) -> tuple[np.ndarray, np.ndarray | None]:
    assert metric.gain is not None
    assert metric.discount is not None
    gains = gains_of(ranker.label, metric.gain)
    cutoffs = _cutoffs(metric.k, len(codes))
    dcg = _discounted(codes, gains, metric.discount, cutoffs)
    if isinstance(metric, DCG):
        return dcg, None
    # The ideal is a ranker whose scores are the gains: of equal gains it does not matter which comes first.
    _, level = np.unique(-gains, return_inverse=True)
    ideal = _discounted(level.astype(np.int64), gains, metric.discount, cutoffs)
    return np.minimum(dcg / np.where(ideal > 0, ideal, np.inf), 1.0), ideal <= 0


def _cutoffs(k: Cutoff, n: int) -> np.ndarray:
    """The cutoff after each document, as places: no more than the documents there are."""
    sizes = np.arange(1, n + 1)
    if k is None:
        return sizes
    return share_of_each(sizes, k) if isinstance(k, Fraction) else np.minimum(sizes, k)


def _above(codes: np.ndarray) -> np.ndarray:
    out = np.empty(len(codes), np.int64)
    kernels.insertion_places(codes, np.zeros(int(codes.max(initial=-1)) + 2, np.int64), out)
    return out


def _is_settled(codes: np.ndarray) -> bool:
    return int(codes.max(initial=-1)) + 1 == len(codes)


def _is_whole(cutoffs: np.ndarray) -> bool:
    """Whether nothing is cut: cutoffs rise by at most one a document."""
    return len(cutoffs) > 0 and int(cutoffs[-1]) == len(cutoffs)


def _room() -> tuple[np.ndarray, np.ndarray]:
    """Scratch of the kernels of whole lists."""
    return np.empty((4, whole_kernels.BLOCK), np.int64), np.empty((4, whole_kernels.BLOCK + 4))


Kernel = Callable[..., Any]


def _discounted(codes: np.ndarray, gains: np.ndarray, discount: Discount, cutoffs: np.ndarray) -> np.ndarray:
    n = len(codes)
    table = discounts(discount, n + 1)[: n + 1]
    whole = _is_whole(cutoffs)
    if _is_settled(codes):
        out, place, value = np.empty(n), np.empty(n, np.int64), np.empty(n)
        step = np.append(np.diff(table, append=0.0), np.zeros(whole_kernels.BLOCK))
        if whole:
            whole_kernels.gain_curve(_above(codes), gains, table, step, place, value, *_room(), out)
        else:
            kernels.gain_curve(_above(codes), gains, table, step, cutoffs, place, value, out)
        return out
    if whole:
        out, held = np.empty(n), np.empty((3, n), np.int64)
        counts = np.zeros(int(codes.max()) + 1, np.int64)
        whole_kernels.tied_gain_curve(codes, _above(codes), gains, table, *_sums(table.tobytes()), counts, held, np.empty((2, n)), out)
        return out
    return _tied(kernels.tied_gain_curve, codes, gains, table, cutoffs, (table,))


def _precisions(codes: np.ndarray, relevant: np.ndarray, cutoffs: np.ndarray) -> np.ndarray:
    n = len(codes)
    inverse = 1.0 / np.arange(1, n + 2)
    if _is_settled(codes):
        out, place, value = np.empty(n), np.empty(n, np.int64), np.empty(n)
        if _is_whole(cutoffs):
            further = 1.0 / np.arange(1, n + 2 + whole_kernels.BLOCK)
            whole_kernels.precision_curve(_above(codes), relevant, further, place, value, *_room(), out)
            return out
        kernels.precision_curve(_above(codes), relevant, inverse, cutoffs, place, value, out)
        return out
    return _tied(kernels.tied_precision_curve, codes, relevant, inverse, cutoffs, ())


def _tied(
    kernel: Kernel, codes: np.ndarray, values: np.ndarray, table: np.ndarray, cutoffs: np.ndarray, tables: tuple[np.ndarray, ...]
) -> np.ndarray:
    n = len(codes)
    high, low = _sums(table.tobytes())
    counts, held, sums, out = np.zeros(int(codes.max()) + 1, np.int64), np.empty((3, n), np.int64), np.empty(n), np.empty(n)
    kernel(codes, _above(codes), values, *tables, high, low, cutoffs, counts, held, sums, out)
    return out


@functools.lru_cache(maxsize=8)
def _sums(table: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Running sums of a table, to twice the digits."""
    values = np.frombuffer(table)
    high, low = np.empty(len(values) + 1), np.empty(len(values) + 1)
    kernels.running_sums(values, high, low)
    return high, low

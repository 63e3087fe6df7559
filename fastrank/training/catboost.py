"""CatBoost: a metric object that knows the groups which CatBoost does not pass. Nothing here needs the library itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.errors import InputError
from fastrank.metrics.base import Metric
from fastrank.training.rounds import RoundMetrics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrank.convention import Convention


class _Groups:
    """Labels of a Pool as CatBoost passes them, and the boundaries of its groups."""

    def __init__(self, labels: np.ndarray, bounds: np.ndarray) -> None:
        self.labels, self.bounds = labels, bounds

    @classmethod
    def of(cls, pool: Any) -> _Groups:
        """Read a Pool."""
        if not hasattr(pool, "get_group_id_hash"):
            raise InputError(f"pools must be catboost.Pool objects, not {type(pool).__name__}: only they hold labels together with groups.")
        ids = np.asarray(pool.get_group_id_hash())
        labels = np.asarray(pool.get_label(), np.float32)
        if len(ids) != len(labels) or len(labels) == 0:
            raise InputError("a Pool without labels or without group_id= cannot be judged: ranking metrics are means over queries.")
        begins = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1])))
        return cls(labels, np.append(begins, len(ids)))


class CatboostMetric(RoundMetrics):
    """What `catboost_metric` returns: CatBoost's protocol of metric objects."""

    # CatBoost compiles the methods of objects without this mark by Numba, where it is installed; they are compiled already.
    no_jit = True

    def __init__(self, metric: str | Metric, groups: Sequence[_Groups], convention: str | Convention, threads: int | None) -> None:
        super().__init__(metric, convention, threads)
        self._groups = tuple(groups)

    def __reduce__(self) -> tuple[Any, ...]:
        return _named, (self.metrics[0], self._groups, self._convention, self._threads)

    def is_max_optimal(self) -> bool:
        """Whether higher is better."""
        return self.metrics[0].higher_is_better

    def evaluate(self, approxes: Any, target: Any, weight: Any) -> tuple[float, float]:
        """The weighted sum over queries and the sum of weights."""
        labels = np.asarray(target, np.float32)
        groups = self._find(labels)
        weights = None if weight is None else np.asarray(weight, np.float64)[groups.bounds[:-1]]
        ((_, mean),) = self.means(groups, groups.labels, groups.bounds, weights, np.asarray(approxes[0]))
        total = float(len(groups.bounds) - 1 if weights is None else weights.sum())
        return mean * total, total

    def get_final_error(self, error: float, weight: float) -> float:
        """The mean over queries."""
        return error / weight if weight else 0.0

    def _find(self, labels: np.ndarray) -> _Groups:
        for groups in self._groups:
            if len(groups.labels) == len(labels) and np.array_equal(groups.labels, labels):
                return groups
        if any(len(groups.labels) == len(labels) for groups in self._groups):
            raise InputError(
                "CatBoost passed the labels of a Pool in another order and no group ids, so no query can be told from the next: ordered "
                "boosting permutes the training rows. Give boosting_type='Plain'."
            )
        raise InputError(
            f"CatBoost passed {len(labels)} labels, and no Pool given has so many: give catboost_metric every Pool that is trained on or "
            "evaluated."
        )


def _named(metric: Metric, groups: Sequence[_Groups], convention: str | Convention, threads: int | None) -> CatboostMetric:
    """An object whose class has the name of the metric: CatBoost shows and records it under that."""
    name = metric.short_name
    return type(name, (CatboostMetric,), {})(metric, groups, convention, threads)


def catboost_metric(
    metric: str | Metric, pools: Any, *, convention: str | Convention = "catboost", threads: int | None = None
) -> CatboostMetric:
    """A metric for ``CatBoost({"loss_function": "YetiRank", "eval_metric": catboost_metric("nDCG@10", [train, valid])})``.

    CatBoost gives a custom metric predictions, labels and weights but never the groups (its issue 1777). So every Pool that is trained on
    or evaluated is given here; the labels passed at each round say which of them it is.

    Parameters
    ----------
    metric
        One name or metric: CatBoost takes one `eval_metric`.
    pools
        A Pool, or a list of them.
    convention
        "catboost" gives CatBoost's own numbers: linear gain, the lower label first among equal scores.
    threads
        None: every processor.

    ``boosting_type="Ordered"`` is refused at its first round: CatBoost then permutes the rows of the training Pool, and which queries they
    belong to is lost. Errors: `InputError`.
    """
    given = pools if isinstance(pools, list | tuple) else [pools]
    groups = [_Groups.of(pool) for pool in given]
    for i, one in enumerate(groups):
        for other in groups[:i]:
            if np.array_equal(one.labels, other.labels) and not np.array_equal(one.bounds, other.bounds):
                raise InputError("two pools have the same labels in other groups, and labels are all that CatBoost passes: leave one out.")
    metrics = RoundMetrics(metric, convention, threads).metrics
    if len(metrics) != 1:
        raise InputError(f"CatBoost takes one metric, not {len(metrics)}: {', '.join(one.short_name for one in metrics)}. Give one.")
    return _named(metrics[0], groups, convention, threads)

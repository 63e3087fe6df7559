"""LightGBM: metrics for `feval` and `eval_metric`, and LambdaRank as a custom objective. Nothing here needs the library itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastrank.training.rounds import RoundGradients, RoundMetrics, bounds_of_sizes, no_groups

if TYPE_CHECKING:
    from fastrank.convention import Convention
    from fastrank.engine.calls import Metrics
    from fastrank.training.options import LambdaChoices


def _read(one: Any, two: Any, weight: Any, group: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray | None, Any]:
    """Owner, labels, boundaries, document weights and predictions, from either order in which LightGBM calls."""
    if hasattr(two, "get_field"):  # lgb.train and lgb.cv: predictions, Dataset
        bounds = two.get_field("group")
        if bounds is None:
            raise no_groups("LightGBM Dataset")
        return two, np.asarray(two.get_label()), bounds, _array(two.get_weight()), one
    if group is None:
        raise no_groups("data of LGBMRanker")
    return None, np.asarray(one), bounds_of_sizes(group), _array(weight), two


def _array(weights: Any) -> np.ndarray | None:
    return None if weights is None else np.asarray(weights)


class LightgbmMetric(RoundMetrics):
    """What `lightgbm_metric` returns."""

    def query_weights(self, weights: np.ndarray, bounds: np.ndarray) -> np.ndarray:
        """The mean weight of each query's documents, added one by one in float32: LightGBM's own, to the bit."""
        sizes = np.diff(bounds).astype(np.float32)
        sums = np.zeros(len(sizes), np.float32)
        np.add.at(sums, np.repeat(np.arange(len(sizes)), np.diff(bounds)), weights.astype(np.float32))
        return np.divide(sums, sizes, out=np.zeros_like(sums), where=sizes > 0)

    def __call__(self, preds: Any, data: Any, weight: Any = None, group: Any = None) -> list[tuple[str, float, bool]]:
        """(name, mean, whether higher is better) of each metric, from (predictions, Dataset) or (labels, predictions, weight, group)."""
        owner, labels, bounds, weights, scores = _read(preds, data, weight, group)
        means = self.means(owner, labels, bounds, weights, scores)
        return [(name, mean, metric.higher_is_better) for (name, mean), metric in zip(means, self.metrics, strict=True)]


class LightgbmObjective(RoundGradients):
    """What `lightgbm_objective` returns."""

    def __call__(self, preds: Any, data: Any, weight: Any = None, group: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Gradients and second derivatives, from (predictions, Dataset) or (labels, predictions, weight, group)."""
        owner, labels, bounds, weights, scores = _read(preds, data, weight, group)
        return self.at(owner, labels, bounds, weights, scores)


def lightgbm_metric(
    metrics: Metrics = "nDCG@10", *, convention: str | Convention = "lightgbm", threads: int | None = None
) -> LightgbmMetric:
    """Metrics for LightGBM, at every boosting round.

    ``lgb.train(params, data, valid_sets=[...], feval=lightgbm_metric("nDCG@10,RR"))``, the same in ``lgb.cv``, and
    ``LGBMRanker().fit(..., eval_metric=lightgbm_metric("nDCG@10"))``. With ``params["metric"] = "None"`` LightGBM leaves out its own.

    Parameters
    ----------
    metrics
        Names or metrics, as in `fastrank.evaluate`; all of them share one ranking.
    convention
        "lightgbm" gives LightGBM's own numbers. It weights the 1 of a query without relevant documents, which LightGBM forgets to do.
    threads
        None: every processor.

    Weights of documents become those of queries as in LightGBM: their mean. What the labels say is worked out at the first round and kept
    for as long as the Dataset lives; it is worked out again should its labels, groups or weights change. Errors: `InputError`.

    >>> import fastrank as fr
    >>> metric = fr.training.lightgbm_metric("nDCG@2,RR")
    >>> metric([1, 0, 0], [0.2, 0.9, 0.1], None, [3])  # labels, predictions, weights and sizes: as LGBMRanker calls it
    [('nDCG@2', 0.6309297535714575, True), ('RR', 0.5, True)]
    """
    return LightgbmMetric(metrics, convention, threads)


def lightgbm_objective(
    *,
    preset: str | None = "lightgbm",
    propensities: Any = None,
    positions: Any = None,
    threads: int | None = None,
    **choices: Unpack[LambdaChoices],
) -> LightgbmObjective:
    """LambdaRank as LightGBM's objective: ``params["objective"] = lightgbm_objective(metric="map")``, or ``LGBMRanker(objective=...)``.

    All choices are those of `fastrank.training.lambda_gradients`; without any, the gradients are those of LightGBM's own `lambdarank`, with
    an exact logistic function in place of its table. `propensities` and `positions` (one a row of the training data) debias clicks.
    LightGBM's weights multiply the gradients. Errors: `InputError`.

    >>> import fastrank as fr
    >>> objective = fr.training.lightgbm_objective()
    >>> grad, hess = objective([1, 0, 0], [0.2, 0.9, 0.1], None, [3])
    >>> [round(float(one), 3) for one in grad]
    [-0.749, 0.285, 0.464]
    """
    return LightgbmObjective(preset, propensities, positions, threads, **choices)

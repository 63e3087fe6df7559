"""Metrics and objectives of boosting rounds, whatever the library: data sets are read once and kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from fastrank.engine.calls import LabelledQueries, Metrics, check_threads
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError
from fastrank.training.gradients import LambdaTargets
from fastrank.training.held import Held
from fastrank.training.options import LambdaChoices, lambda_options

if TYPE_CHECKING:
    from fastrank.convention import Convention


class RoundMetrics:
    """Metrics of the data sets of one training run. One ranking serves all metrics; labels are read at the first round."""

    def __init__(self, metrics: Metrics, convention: str | Convention, threads: int | None) -> None:
        plan = make_plan(metrics, convention)
        self.metrics, self.names = plan.metrics, plan.names
        self._convention, self._threads = convention, check_threads(threads)
        self._held: Held[LabelledQueries] = Held()

    def __deepcopy__(self, memo: dict[int, Any]) -> RoundMetrics:
        """Itself: libraries copy their parameters, and what was worked out should not be worked out again."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.metrics, self._convention, self._threads)

    def query_weights(self, weights: np.ndarray, _bounds: np.ndarray) -> np.ndarray:
        """One weight a query from what the library keeps."""
        return weights

    def means(self, owner: Any, labels: np.ndarray, bounds: np.ndarray, weights: np.ndarray | None, scores: Any) -> list[tuple[str, float]]:
        """Name and mean of each metric at new scores; weights as the library keeps them."""

        def make() -> LabelledQueries:
            of_queries = None if weights is None else self.query_weights(weights, bounds)
            return LabelledQueries(labels, bounds, weights=of_queries, convention=self._convention)

        queries = self._held.find(owner, (labels, bounds, weights), make)
        return list(queries.evaluate(scores, metrics=self.metrics, threads=self._threads).mean().items())


class RoundGradients:
    """Gradients of the training set of one run."""

    def __init__(
        self,
        preset: str | None,
        propensities: Any = None,
        positions: Any = None,
        threads: int | None = None,
        **choices: Unpack[LambdaChoices],
    ) -> None:
        lambda_options(preset, choices)
        self._preset, self._propensities, self._positions, self._choices = preset, propensities, positions, choices
        self._threads = check_threads(threads)
        self._held: Held[LambdaTargets] = Held()

    def __deepcopy__(self, memo: dict[int, Any]) -> RoundGradients:
        """Itself: libraries copy their parameters, and what was worked out should not be worked out again."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), (self._preset, self._propensities, self._positions, self._threads), dict(self._choices))

    def at(
        self, owner: Any, labels: np.ndarray, bounds: np.ndarray, weights: np.ndarray | None, scores: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """First and second derivatives, float32 as both libraries keep them."""

        def make() -> LambdaTargets:
            return LambdaTargets(
                labels,
                bounds,
                weights=weights,
                preset=self._preset,
                propensities=self._propensities,
                positions=self._positions,
                **self._choices,
            )

        targets = self._held.find(owner, (labels, bounds, weights), make)
        grad, hess = np.empty(len(labels), np.float32), np.empty(len(labels), np.float32)
        targets.gradients(scores, out=(grad, hess), threads=self._threads)
        return grad, hess


def _again(kind: type[RoundGradients], arguments: tuple[Any, ...], choices: LambdaChoices) -> RoundGradients:
    return kind(*arguments, **choices)


def bounds_of_sizes(sizes: Any) -> np.ndarray:
    """Offsets from group sizes."""
    return np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))


def no_groups(library: str) -> InputError:
    """The complaint about data without groups."""
    return InputError(f"the {library} has no groups, and ranking metrics are means over queries: give it group= (sizes), in row order.")

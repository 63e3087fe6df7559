"""scikit-learn: a scorer over queries, for `cross_val_score`, `GridSearchCV` and their relatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.convention import Convention
from fastrank.engine.calls import Metrics, check_threads, evaluate
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError

__all__ = ["RankingScorer", "ranking_scorer"]


class RankingScorer:
    """What `ranking_scorer` makes: called with an estimator, rows, labels and groups, it returns the mean of one metric."""

    def __init__(self, plan: Any, query: Any, response: str, threads: int | None) -> None:
        self._plan, self._query, self._response, self._threads = plan, query, response, threads

    def __repr__(self) -> str:
        return f"ranking_scorer({self._plan.names[0]!r}, convention={self._plan.convention.name!r})"

    def __call__(self, estimator: Any, X: Any, y: Any, groups: Any = None) -> float:
        """The mean of the metric over the queries of X."""
        ids = groups if self._query is None else _column(X, self._query)
        if ids is None:
            cure = "cross_val_score(..., params={'groups': ids}) with sklearn.set_config(enable_metadata_routing=True), or query=, a column"
            raise InputError(f"a ranking scorer needs the query of each row: {cure} of X.")
        scores = np.asarray(getattr(estimator, self._response)(X))
        if scores.ndim == 2 and scores.shape[1] == 2:  # of two classes: the second is the relevant one
            scores = scores[:, 1]
        given: dict[str, Any] = {"metrics": self._plan.metrics, "convention": self._plan.convention, "threads": self._threads}
        [value] = evaluate(y, scores.reshape(-1) if scores.size == len(scores) else scores, query_ids=ids, **given).aggregate().values()
        return value

    def get_metadata_routing(self) -> Any:
        """It asks for groups: with metadata routing, the same that `GroupKFold` splits by."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        if self._query is None:
            request.score.add_request(param="groups", alias=True)
        return request


def ranking_scorer(
    metric: Metrics,
    convention: str | Convention = "fastrank",
    *,
    query: str | int | None = None,
    response: str = "predict",
    ties: str | None = None,
    no_relevant: str | None = None,
    threads: int | None = None,
) -> RankingScorer:
    """A scorer of one ranking metric over queries, larger is better.

    Parameters
    ----------
    metric, convention, ties, no_relevant, threads
        As `fr.evaluate`; one metric.
    query
        The column of X with the query of each row, by name (frames) or place. None: the `groups` of the search, which scikit-learn hands
        to scorers only under ``sklearn.set_config(enable_metadata_routing=True)``::

            cross_val_score(model, X, y, cv=GroupKFold(), scoring=ranking_scorer("nDCG@10"), params={"groups": ids})

    response
        The method of the estimator that gives scores: "predict", "decision_function" or "predict_proba".

    Errors: `InputError`.

    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> X, y = np.array([[1.0], [2.0], [3.0], [1.0]]), np.array([0, 1, 1, 0])
    >>> ranking_scorer("RR")(Ridge().fit(X, y), X, y, groups=[7, 7, 8, 8])
    1.0
    """
    plan = make_plan(metric, convention, ties=ties, no_relevant=no_relevant)
    if len(plan.metrics) != 1:
        raise InputError(f"a scorer has one metric, not {len(plan.metrics)}: give a dict of scorers to cross_validate.")
    return RankingScorer(plan, query, response, check_threads(threads))


def _column(X: Any, query: str | int) -> Any:
    """A column of a frame by name, or of anything by place."""
    if isinstance(query, str):
        if not hasattr(X, "columns"):
            raise InputError(f"query={query!r} names a column, but X is {type(X).__name__} without names. Give its place.")
        return X[query]
    column = X.iloc[:, query] if hasattr(X, "iloc") else X[:, query]
    ids = np.asarray(column)
    # Ids among features have become floats.
    return ids.astype(np.int64) if ids.dtype.kind == "f" and (ids == np.trunc(ids)).all() else ids

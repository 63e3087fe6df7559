"""`fastrank.training.sklearn.ranking_scorer`: in cross-validation and searches over groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.training.sklearn import ranking_scorer

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.linear_model import LogisticRegression, Ridge  # noqa: E402
from sklearn.metrics import ndcg_score  # noqa: E402
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate  # noqa: E402

GENERATOR = np.random.default_rng(8)
IDS = np.repeat(np.arange(30), 6)
X = GENERATOR.normal(size=(180, 3))
Y = np.clip(np.round(X @ [1.0, -0.5, 0.2] + GENERATOR.normal(size=180)), 0, 3).astype(int)


@pytest.fixture
def routing() -> Iterator[None]:
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def by_hand(metric: str, **options: Any) -> list[float]:
    """The mean of each fold, from `evaluate`."""
    means = []
    for train, test in GroupKFold(3).split(X, Y, IDS):
        scores = Ridge().fit(X[train], Y[train]).predict(X[test])
        means += fr.evaluate(Y[test], scores, query_ids=IDS[test], metrics=metric, **options).mean().values()
    return means


@pytest.mark.usefixtures("routing")
def test_cross_validation_over_groups_hands_the_scorer_their_ids() -> None:
    scorer = ranking_scorer("nDCG@3", convention="sklearn")
    found = cross_val_score(Ridge(), X, Y, cv=GroupKFold(3), scoring=scorer, params={"groups": IDS})
    assert found.tolist() == by_hand("nDCG@3", convention="sklearn")
    folds = [test for _, test in GroupKFold(3).split(X, Y, IDS)]
    for value, (train, test) in zip(found, GroupKFold(3).split(X, Y, IDS), strict=True):
        scores = Ridge().fit(X[train], Y[train]).predict(X[test])
        assert value == pytest.approx(ndcg_score(Y[test].reshape(-1, 6), scores.reshape(-1, 6), k=3), abs=1e-12)
    assert len(folds) == 3


@pytest.mark.usefixtures("routing")
def test_several_scorers_and_searches() -> None:
    scorers = {name: ranking_scorer(name) for name in ("nDCG@3", "RR")}
    found = cross_validate(Ridge(), X, Y, cv=GroupKFold(3), scoring=scorers, params={"groups": IDS}, error_score="raise")
    assert {name: found[f"test_{name}"].tolist() for name in scorers} == {name: by_hand(name) for name in scorers}
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1e6]}, scoring=ranking_scorer("nDCG@3"), cv=GroupKFold(3))
    assert search.fit(X, Y, groups=IDS).best_score_ >= np.mean(by_hand("nDCG@3"))


@pytest.mark.parametrize("kind", ["array", "frame by name", "frame by place", "text"])
def test_a_column_of_ids_needs_no_routing(kind: str) -> None:
    query: Any = 3
    rows: Any = np.column_stack([X, IDS])
    if kind != "array":
        pandas = pytest.importorskip("pandas", reason="pandas is not installed")
        rows = pandas.DataFrame(X, columns=list("abc")).assign(query=IDS if kind != "text" else [f"q{i:02}" for i in IDS])
        query = 3 if kind == "frame by place" else "query"

    class OfFeatures(Ridge):  # type: ignore[misc]
        def fit(self, rows: Any, y: Any) -> Any:
            return super().fit(np.asarray(rows)[:, :3].astype(float), y)

        def predict(self, rows: Any) -> Any:
            return super().predict(np.asarray(rows)[:, :3].astype(float))

    folds = list(GroupKFold(3).split(X, Y, IDS))
    found = cross_val_score(OfFeatures(), rows, Y, cv=folds, scoring=ranking_scorer("RR", query=query), error_score="raise")
    assert found.tolist() == by_hand("RR")


def test_classifiers_are_scored_by_the_relevant_class() -> None:
    binary = (Y > 1).astype(int)
    model = LogisticRegression().fit(X, binary)
    probabilities = model.predict_proba(X)[:, 1]
    expected = fr.evaluate(binary, probabilities, query_ids=IDS, metrics="AP").mean()["AP"]
    assert ranking_scorer("AP", response="predict_proba")(model, X, binary, groups=IDS) == expected
    assert ranking_scorer("AP", response="decision_function")(model, X, binary, groups=IDS) == pytest.approx(expected)


def test_what_does_not_fit_is_refused() -> None:
    model = Ridge().fit(X, Y)
    with pytest.raises(fr.InputError, match="enable_metadata_routing"):
        ranking_scorer("RR")(model, X, Y)
    with pytest.raises(fr.InputError, match="one metric, not 2"):
        ranking_scorer("RR,AP")
    with pytest.raises(fr.InputError, match="'qid' names a column, but X is ndarray"):
        ranking_scorer("RR", query="qid")(model, X, Y)
    assert repr(ranking_scorer("RR")) == "ranking_scorer('RR', convention='fastrank')"

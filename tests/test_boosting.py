"""Metrics and objectives inside LightGBM, XGBoost and CatBoost: whole training runs, beside the libraries' own numbers."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from boosting_data import Split, mean_ndcg, splits

import fastrank as fr

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
QUIET = {"verbosity": -1, "num_threads": 1, "seed": 1}


def module(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed")


# --- LightGBM --------------------------------------------------------------------------------------------------------------------


def lightgbm_weights(split: Split) -> np.ndarray:
    """Of documents: LightGBM takes their mean in float32. 1 where nothing is relevant: LightGBM adds the 1 of such a query unweighted."""
    weight = np.random.default_rng(0).uniform(0.1, 3, len(split.labels))
    weight[(np.maximum.reduceat(split.labels, split.offsets[:-1]) == 0)[split.query]] = 1.0
    return weight


def lightgbm_sets(weights: bool = False) -> tuple[Any, Any]:
    lgb = module("lightgbm")
    train, valid = splits()
    one, two = (lightgbm_weights(split) if weights else None for split in (train, valid))
    data = lgb.Dataset(train.features, train.labels, group=train.sizes, weight=one, params=QUIET)
    return data, lgb.Dataset(valid.features, valid.labels, group=valid.sizes, weight=two, reference=data)


@pytest.mark.parametrize("weights", [False, True], ids=["unweighted", "weighted"])
def test_lightgbm_reports_its_own_numbers_each_round(weights: bool) -> None:
    lgb = module("lightgbm")
    train, valid = lightgbm_sets(weights)
    told: dict[str, Any] = {}
    metric = fr.training.lightgbm_metric("ndcg@3,ndcg@10,map@10")
    params = {**QUIET, "objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [3, 10]}
    stop = lgb.early_stopping(5, verbose=False)
    booster = lgb.train(params, train, 40, [train, valid], ["t", "v"], feval=metric, callbacks=[lgb.record_evaluation(told), stop])
    assert 0 < booster.best_iteration <= 40
    for data in "tv":
        for ours, theirs in (("nDCG@3", "ndcg@3"), ("nDCG@10", "ndcg@10"), ("AP@10", "map@10")):
            assert len(told[data][ours]) == len(told[data][theirs]) >= booster.best_iteration
            np.testing.assert_allclose(told[data][ours], told[data][theirs], rtol=1e-12)


def test_lightgbm_ranker_and_cross_validation_take_the_metric() -> None:
    lgb = module("lightgbm")
    train, valid = splits()
    ranker = lgb.LGBMRanker(n_estimators=10, verbosity=-1, n_jobs=1)
    sets = {"eval_set": [(valid.features, valid.labels)], "eval_group": [valid.sizes], "eval_at": [10]}
    ranker.fit(train.features, train.labels, group=train.sizes, **sets, eval_metric=fr.training.lightgbm_metric("nDCG@10"))
    (told,) = ranker.evals_result_.values()
    np.testing.assert_allclose(told["nDCG@10"], told["ndcg@10"], rtol=1e-12)
    folds = lgb.cv(
        {**QUIET, "objective": "lambdarank", "eval_at": [10]}, lightgbm_sets()[0], 5, feval=fr.training.lightgbm_metric(), nfold=3
    )
    np.testing.assert_allclose(folds["valid nDCG@10-mean"], folds["valid ndcg@10-mean"], rtol=1e-12)


def test_the_lightgbm_objective_grows_the_trees_of_lambdarank() -> None:
    lgb = module("lightgbm")
    train, valid = splits()
    own = lgb.train({**QUIET, "objective": "lambdarank"}, lightgbm_sets(True)[0], 30)
    ours = lgb.train({**QUIET, "objective": fr.training.lightgbm_objective()}, lightgbm_sets(True)[0], 30)
    # The same but for the error of LightGBM's table of the logistic function, which may turn a split.
    assert abs(mean_ndcg(valid, ours.predict(valid.features)) - mean_ndcg(valid, own.predict(valid.features))) < 0.01
    first = [lgb.train({**QUIET, "objective": o}, lightgbm_sets(True)[0], 1) for o in ("lambdarank", fr.training.lightgbm_objective())]
    np.testing.assert_allclose(first[1].predict(train.features), first[0].predict(train.features), atol=1e-4)
    ranker = lgb.LGBMRanker(objective=fr.training.lightgbm_objective(metric="mrr"), n_estimators=20, verbosity=-1, n_jobs=1)
    ranker.fit(train.features, train.labels, group=train.sizes)
    assert mean_ndcg(valid, ranker.predict(valid.features)) > mean_ndcg(valid, np.zeros(len(valid.labels)))


# --- XGBoost ---------------------------------------------------------------------------------------------------------------------


def xgboost_sets(binary: bool = False, weights: bool = False) -> tuple[Any, Any]:
    xgb = module("xgboost")
    made = []
    for split in splits():
        labels = (split.labels > 0).astype(float) if binary else split.labels
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(split.sizes)) if weights else None
        made.append(xgb.DMatrix(split.features, labels, group=split.sizes, weight=weight))
    return made[0], made[1]


def heard(metric: Any, values: list[list[tuple[str, float]]]) -> Callable[..., Any]:
    """The metric, its values kept as they are: XGBoost writes them down with six decimals."""

    def call(preds: Any, data: Any) -> Any:
        values.append(metric(preds, data))
        return values[-1]

    return call


@pytest.mark.parametrize("weights", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("binary", [False, True], ids=["graded", "binary"])
def test_xgboost_reports_its_own_numbers_each_round(binary: bool, weights: bool) -> None:
    xgb = module("xgboost")
    train, valid = xgboost_sets(binary, weights)
    names = {"nDCG": "ndcg", "nDCG@5": "ndcg@5"} | ({"AP": "map", "P@5": "pre@5"} if binary else {})
    values: list[list[tuple[str, float]]] = []
    metric = heard(fr.training.xgboost_metric(tuple(names.values())), values)
    stop = xgb.callback.EarlyStopping(rounds=5, metric_name="nDCG@5", data_name="v", maximize=True)
    params = {"objective": "rank:ndcg", "eval_metric": list(names.values()), "nthread": 1}
    told: dict[str, Any] = {}
    booster = xgb.train(
        params, train, 30, evals=[(valid, "v")], custom_metric=metric, evals_result=told, callbacks=[stop], verbose_eval=False
    )
    assert 0 <= booster.best_iteration < 30
    for ours, theirs in names.items():
        exact = [dict(each)[ours] for each in values]
        # Their own values pass through text as well: the shortest that gives the double back.
        np.testing.assert_allclose(exact, told["v"][theirs], rtol=1e-12)
        np.testing.assert_allclose(told["v"][ours], exact, atol=5.1e-7)


def test_the_xgboost_objective_grows_the_trees_of_rank_ndcg() -> None:
    xgb = module("xgboost")
    valid = splits()[1]
    params = {"nthread": 1, "base_score": 0.0, "seed": 1}
    train, held = xgboost_sets(weights=True)
    own = xgb.train({**params, "objective": "rank:ndcg"}, train, 20)
    ours = xgb.train(params, train, 20, obj=fr.training.xgboost_objective())
    one, two = (booster.predict(held, output_margin=True) for booster in (own, ours))
    assert abs(mean_ndcg(valid, one) - mean_ndcg(valid, two)) < 0.01
    first = [xgb.train({**params, "objective": "rank:ndcg"}, train, 1), xgb.train(params, train, 1, obj=fr.training.xgboost_objective())]
    np.testing.assert_allclose(first[1].predict(train), first[0].predict(train), atol=1e-5)


def test_xgbranker_is_told_why_and_the_right_path_leads_there(tmp_path: Any) -> None:
    xgb = module("xgboost")
    train, valid = splits()
    ranker = xgb.XGBRanker(eval_metric=fr.training.xgboost_metric("nDCG@10"), n_estimators=2, n_jobs=1)
    fit = {"group": train.sizes, "eval_set": [(valid.features, valid.labels)], "eval_group": [valid.sizes], "verbose": False}
    with pytest.raises(fr.InputError, match=r"weights the mean by the sizes.*xgb\.train"):
        ranker.fit(train.features, train.labels, **fit)
    booster = xgb.train({"objective": "rank:ndcg", "nthread": 1}, xgboost_sets()[0], 5, custom_metric=fr.training.xgboost_metric())
    booster.save_model(tmp_path / "model.json")
    read = xgb.XGBRanker()
    read.load_model(tmp_path / "model.json")
    assert np.array_equal(read.predict(valid.features), booster.predict(xgb.DMatrix(valid.features)))


def test_a_dmatrix_without_groups_is_refused() -> None:
    xgb = module("xgboost")
    with pytest.raises(fr.InputError, match="has no groups"):
        fr.training.xgboost_metric()(np.zeros(3), xgb.DMatrix(np.zeros((3, 1)), [0, 1, 0]))


# --- CatBoost --------------------------------------------------------------------------------------------------------------------


def catboost_pools(weights: bool = False) -> tuple[Any, Any]:
    cb = module("catboost")
    made = []
    for split in splits():
        weight = np.random.default_rng(0).uniform(0.5, 2.0, len(split.sizes))[split.query] if weights else None
        made.append(cb.Pool(split.features, split.labels, group_id=split.query, group_weight=weight))
    return made[0], made[1]


@pytest.mark.parametrize("weights", [False, True], ids=["unweighted", "weighted"])
def test_catboost_reports_its_own_numbers_each_round(weights: bool, tmp_path: Any) -> None:
    cb = module("catboost")
    train, valid = catboost_pools(weights)
    metric = fr.training.catboost_metric("nDCG@10", [train, valid])
    params = {"loss_function": "YetiRank", "iterations": 20, "thread_count": 1, "random_seed": 1, "verbose": False}
    params |= {"boosting_type": "Plain", "train_dir": str(tmp_path), "od_type": "Iter", "od_wait": 5}
    model = cb.CatBoost({**params, "eval_metric": metric, "custom_metric": ["NDCG:top=10;hints=skip_train~false"]})
    told = model.fit(train, eval_set=valid).get_evals_result()
    for data in ("learn", "validation"):
        np.testing.assert_allclose(told[data]["nDCG@10"], told[data]["NDCG:top=10;type=Base"], rtol=1e-12)


def test_ordered_boosting_is_refused_with_the_reason(tmp_path: Any) -> None:
    cb = module("catboost")
    train, valid = catboost_pools()
    metric = fr.training.catboost_metric("nDCG@10", [train, valid])
    params = {"loss_function": "YetiRank", "iterations": 3, "thread_count": 1, "verbose": False, "train_dir": str(tmp_path)}
    with pytest.raises(Exception, match="boosting_type='Plain'"):
        cb.CatBoost({**params, "boosting_type": "Ordered", "eval_metric": metric}).fit(train, eval_set=valid)


def test_pools_that_cannot_be_told_apart_are_refused() -> None:
    cb = module("catboost")
    features = np.arange(8.0).reshape(4, 2)
    one = cb.Pool(features, [0, 1, 0, 1], group_id=[0, 0, 1, 1])
    two = cb.Pool(features, [0, 1, 0, 1], group_id=[0, 1, 1, 1])
    with pytest.raises(fr.InputError, match="same labels in other groups"):
        fr.training.catboost_metric("RR", [one, two])
    with pytest.raises(fr.InputError, match="takes one metric"):
        fr.training.catboost_metric("RR,AP", one)
    with pytest.raises(fr.InputError, match=r"must be catboost\.Pool"):
        fr.training.catboost_metric("RR", [features])
    with pytest.raises(fr.InputError, match=r"no Pool given has so many"):
        fr.training.catboost_metric("RR", one).evaluate([np.zeros(3)], np.zeros(3), None)


# --- what is kept between rounds ---------------------------------------------------------------------------------------------------


class FakeDataset:
    """What a metric sees of a LightGBM Dataset."""

    def __init__(self, split: Split) -> None:
        self.labels, self.bounds = split.labels.astype(np.float32), split.offsets.astype(np.int32)

    def get_label(self) -> np.ndarray:
        return self.labels

    def get_field(self, name: str) -> np.ndarray:
        assert name == "group"
        return self.bounds

    def get_weight(self) -> None:
        return None


def value(metric: Any, scores: np.ndarray, data: Any) -> float:
    ((_, mean, _),) = metric(scores, data)
    return mean


def test_changed_labels_and_groups_are_seen_at_the_same_object() -> None:
    data = FakeDataset(splits()[1])
    metric = fr.training.lightgbm_metric("nDCG@10")
    scores = np.random.default_rng(0).normal(size=len(data.labels))

    def expected() -> float:
        return fr.evaluate(data.labels, scores, data.bounds, metrics="nDCG@10", convention="lightgbm").mean()["nDCG@10"]

    assert value(metric, scores, data) == expected()
    data.labels[:] = data.labels[::-1].copy()  # in place: the same object, the same array, other labels
    assert value(metric, scores, data) == expected()
    data.bounds = np.array([0, len(data.labels)], np.int32)
    assert value(metric, scores, data) == expected()


def test_a_data_set_that_dies_is_forgotten_and_its_address_is_no_key() -> None:
    metric = fr.training.lightgbm_metric("nDCG@10")
    for seed in range(5):
        data = FakeDataset(splits()[1])
        np.random.default_rng(seed).shuffle(data.labels)
        scores = np.arange(len(data.labels), dtype=float)
        plain = fr.evaluate(data.labels, scores, data.bounds, metrics="nDCG@10", convention="lightgbm")
        assert value(metric, scores, data) == plain.mean()["nDCG@10"]
        gone = weakref.ref(data)
        del data
        gc.collect()
        assert gone() is None
    assert len(metric._held._by_owner) == 0


def test_bare_arrays_are_told_apart_by_content() -> None:
    metric = fr.training.lightgbm_metric("RR")
    for labels, expected in (([1, 0], 0.5), ([0, 1], 1.0), ([1, 0], 0.5)):
        assert value(lambda s, y: metric(y, s, None, [2]), np.array([0.1, 0.2]), np.array(labels, np.float32)) == expected
    assert len(metric._held._nameless) == 2


def test_copies_share_what_was_worked_out() -> None:
    for made in (fr.training.lightgbm_metric(), fr.training.xgboost_objective(k=5)):
        assert copy.deepcopy(made) is made
        kind, arguments = made.__reduce__()[:2]
        assert type(kind(*arguments)) is type(made)


def test_data_without_groups_is_refused() -> None:
    with pytest.raises(fr.InputError, match="has no groups"):
        fr.training.lightgbm_metric()(np.zeros(2), np.zeros(2), None, None)
    data = FakeDataset(splits()[1])
    data.get_field = lambda name: None  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(fr.InputError, match="has no groups"):
        fr.training.lightgbm_objective()(np.zeros(2), data)

"""The rows of boosting libraries: a round's evaluation against the built-in one, and LambdaRank's gradients against their objectives.

LightGBM and XGBoost tell nobody how long their objective took. Each is timed as what a round of trees of two leaves takes longer with
LambdaRank than with least squares, on the same rows, one feature and one thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Data, Setting
from fastrank import LabelledQueries
from fastrank.training import LambdaTargets, lightgbm_metric

LENGTH = 20
SHAPES = {"10% relevant": 0.1, "grades 0 to 4": None}
QUIET: dict[str, Any] = {"verbosity": -1, "num_threads": 1, "num_leaves": 2, "metric": "None", "boost_from_average": False}
PLAIN: dict[str, Any] = {"nthread": 1, "max_depth": 1, "base_score": 0.0, "disable_default_eval_metric": True}


def training(setting: Setting) -> Iterator[Comparison]:
    """A million documents in lists of 20: nDCG@10 of a round, then gradients where few documents are relevant and where most are."""
    n_queries = setting.queries(50_000)
    for title, share in SHAPES.items():
        data = _draw(n_queries, share)
        if share is not None:
            yield _evaluation(data, title)
        yield _gradients(data, title, "lightgbm", Mark(must=1.0, aim=1.5))
        yield _gradients(data, title, "xgboost", Mark(must=1.0))
    yield _overhead(_draw(32, None, 100))


def _draw(n_queries: int, share: float | None, length: int = LENGTH) -> Data:
    rng = np.random.default_rng(0)
    n = n_queries * length
    labels = rng.integers(0, 5, n) if share is None else rng.random(n) < share
    return Data(labels.astype(np.float32), rng.normal(size=n), np.arange(n_queries + 1) * length)


def _compare(data: Data, title: str, ours: Call, other: Call | None, mark: Mark, **options: Any) -> Comparison:
    return Comparison(f"{data.title}, {title}", data.n_documents, data.n_queries, ours, other, mark, **options)


# --- evaluation ------------------------------------------------------------------------------------------------------------------


def _evaluation(data: Data, title: str) -> Comparison:
    ours, builtin = "fastrank lightgbm_metric('nDCG@10')", "LightGBM, its ndcg@10"
    if absent := peers.why_absent("lightgbm"):
        return _compare(data, title, Call(ours, lambda: None, 1), Call(builtin, lambda: None, 1), Mark(must=1.0, aim=1.5), absent=absent)
    import lightgbm

    dataset = _lightgbm_set(data)
    quiet = {**QUIET, "objective": "lambdarank"}
    own, silent = lightgbm.Booster({**quiet, "metric": "ndcg", "eval_at": [10]}, dataset), lightgbm.Booster(quiet, dataset)
    metric = lightgbm_metric("nDCG@10", threads=1)

    def difference() -> float:
        return abs(own.eval_train()[0][2] - silent.eval_train(metric)[0][2])

    theirs = Call(builtin, own.eval_train, 1)
    mark = Mark(must=1.0, aim=1.5)
    return _compare(data, title, Call(ours, lambda: silent.eval_train(metric), 1), theirs, mark, difference=difference, tolerance=1e-12)


def _lightgbm_set(data: Data) -> Any:
    import lightgbm

    feature = np.random.default_rng(1).normal(size=(data.n_documents, 1)).astype(np.float32)
    return lightgbm.Dataset(feature, data.labels, group=data.sizes, init_score=data.scores, params=QUIET, free_raw_data=False).construct()


def _overhead(data: Data) -> Comparison:
    """What the metric of LightGBM costs beyond the evaluation of labels that are held."""

    class Held:
        """A Dataset without LightGBM: its own calls are not ours to time."""

        def get_label(self) -> np.ndarray:
            return data.labels

        def get_field(self, _name: str) -> np.ndarray:
            return data.offsets

        def get_weight(self) -> None:
            return None

    held, metric = Held(), lightgbm_metric("nDCG@10", threads=1)
    queries = LabelledQueries(data.labels, data.offsets, convention="lightgbm")
    plain = Call("LabelledQueries.evaluate(...).mean()", lambda: queries.evaluate(data.scores, metrics="nDCG@10", threads=1).mean(), 1)
    ours = Call("fastrank lightgbm_metric, from the call to the mean", lambda: metric(data.scores, held), 1)

    def difference() -> float:
        return abs(ours.run()[0][1] - plain.run()["nDCG@10"])

    return _compare(data, "labels held", ours, plain, Mark("excess", 25e-6), difference=difference)


# --- gradients -------------------------------------------------------------------------------------------------------------------


def _gradients(data: Data, title: str, preset: str, mark: Mark) -> Comparison:
    targets = LambdaTargets(data.labels, data.offsets, preset=preset)
    out = np.empty(data.n_documents, np.float32), np.empty(data.n_documents, np.float32)
    ours = Call(f"fastrank lambda_gradients, preset {preset}, labels held", lambda: targets.gradients(data.scores, out=out, threads=1), 1)
    name = {"lightgbm": "LightGBM lambdarank, less regression", "xgboost": "XGBoost rank:ndcg, less reg:squarederror"}[preset]
    if absent := peers.why_absent(preset):
        return _compare(data, title, ours, Call(name, lambda: None, 1), mark, absent=absent)
    step, seconds = {"lightgbm": _lightgbm, "xgboost": _xgboost}[preset](data)

    def difference() -> float:
        """How far the values of the first tree's two leaves are from those of our gradients, as a share."""
        ours.run()
        leaf, theirs, ridge = step()
        value = -np.bincount(leaf, out[0].astype(float)) / (np.bincount(leaf, out[1].astype(float)) + ridge)
        return float(np.abs(value[leaf] / theirs - 1.0).max())

    return _compare(data, title, ours, Call(name, seconds, 1, reports=True), mark, difference=difference, tolerance=1e-2)


Step = Callable[[], tuple[np.ndarray, np.ndarray, float]]


def _lightgbm(data: Data) -> tuple[Step, Callable[[], float]]:
    import lightgbm

    dataset = _lightgbm_set(data)
    boosters = {name: lightgbm.Booster({**QUIET, "objective": name}, dataset) for name in ("lambdarank", "regression")}

    def step() -> tuple[np.ndarray, np.ndarray, float]:
        params = {**QUIET, "objective": "lambdarank", "learning_rate": 1.0, "min_sum_hessian_in_leaf": 0.0}
        booster = lightgbm.train(params, _lightgbm_set(data), 1)
        feature = np.random.default_rng(1).normal(size=(data.n_documents, 1)).astype(np.float32)
        return booster.predict(feature, pred_leaf=True).astype(int).ravel(), booster.predict(feature), 0.0

    return step, lambda: _longer(*(booster.update for booster in boosters.values()))


def _xgboost(data: Data) -> tuple[Step, Callable[[], float]]:
    import xgboost

    feature = np.random.default_rng(1).normal(size=(data.n_documents, 1)).astype(np.float32)
    matrix = xgboost.DMatrix(feature, data.labels, group=data.sizes, base_margin=data.scores, nthread=1)
    boosters = [xgboost.Booster({**PLAIN, "objective": name}, [matrix]) for name in ("rank:ndcg", "reg:squarederror")]
    rounds = [iter(range(1 << 30)) for _ in boosters]
    updates = [lambda b=b, r=r: b.update(matrix, next(r)) for b, r in zip(boosters, rounds, strict=True)]

    def step() -> tuple[np.ndarray, np.ndarray, float]:
        params = {**PLAIN, "objective": "rank:ndcg", "eta": 1.0, "min_child_weight": 0.0, "lambda": 1.0}
        booster = xgboost.train(params, matrix, 1)
        leaf = booster.predict(matrix, pred_leaf=True).astype(int).ravel()
        return leaf, booster.predict(matrix, output_margin=True).astype(float) - data.scores.astype(np.float32), 1.0

    return step, lambda: _longer(*updates)


def _longer(one: Callable[[], Any], other: Callable[[], Any]) -> float:
    """Seconds by which the first call takes longer."""
    took = []
    for call in (one, other):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return max(took[0] - took[1], 1e-9)

"""LambdaRank's gradients: its definition in plain Python, the values of other libraries, and the laws that hold for all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boosting_data import drawn, splits
from conformance import FOLDER, read_json
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank import reference
from fastrank.training import LambdaTargets, lambda_gradients
from fastrank.training.pairs import COUNTED, METRICS, draw_partners

DATA = drawn(12, 3)
SCORES = np.random.default_rng(3).normal(size=len(DATA.labels)).round(1)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"k": 3, "score_norm": True, "group_norm": "log2"},
    {"sigma": 2.0, "hess_scale": 2.0, "score_norm": True},
    {"gain": "linear", "discount": "zipf", "ideal_k": 2},
    {"gain": {0: 0.5, 1: 1, 2: 1, 3: 4, 4: 9}},
]


def close(ours: fr.training.Gradients, grad: Any, hess: Any) -> None:
    np.testing.assert_allclose(ours.grad, grad, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.hess, hess, rtol=1e-9, atol=1e-12)


# --- the definition ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "+".join(options) or "plain")
def test_it_is_the_definition(metric: str, options: dict[str, Any]) -> None:
    expected = reference.lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric, **options)
    ours = lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric, costs=True, **options)
    close(ours, *expected[:2])
    np.testing.assert_allclose(ours.loss, expected[2], rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_it_is_the_definition_for_whatever_is_drawn(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 7), min_size=1, max_size=4))
    labels = data.draw(st.lists(st.integers(0, 4), min_size=sum(sizes), max_size=sum(sizes)))
    scores = data.draw(st.lists(st.integers(-3, 3).map(float), min_size=sum(sizes), max_size=sum(sizes)))
    metric, k = data.draw(st.sampled_from(METRICS)), data.draw(st.sampled_from([None, 1, 2, 5]))
    expected = reference.lambda_gradients(labels, scores, np.concatenate(([0], np.cumsum(sizes))), metric=metric, k=k, score_norm=True)
    close(lambda_gradients(labels, scores, sizes=sizes, metric=metric, k=k, score_norm=True), *expected[:2])


@pytest.mark.parametrize("metric", METRICS)
def test_lists_that_are_sorted_and_not_counted_are_the_definition(metric: str) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, COUNTED + 15), rng.normal(size=COUNTED + 15).round(1)
    expected = reference.lambda_gradients(labels, scores, [0, len(labels)], metric=metric, k=6, score_norm=True, group_norm="log2")
    close(lambda_gradients(labels, scores, metric=metric, k=6, score_norm=True, group_norm="log2"), *expected[:2])


def test_drawn_pairs_are_the_definition_on_those_pairs() -> None:
    for metric in METRICS:
        targets = LambdaTargets(DATA.labels, DATA.offsets, metric=metric, pairs="sampled", n_pairs=2, seed=5, score_norm=True)
        for round_ in range(2):
            partner = np.empty((len(DATA.labels), 2), np.int64)
            n = int(DATA.sizes.max())
            spare = np.empty(n, np.int64), np.empty(n, np.int64)
            draw_partners(np.uint64(5 + round_), targets.values, DATA.offsets, COUNTED, 0, len(DATA.sizes), *spare, partner)
            pairs = [(d, int(p)) for d, row in enumerate(partner) for p in row if p >= 0]
            assert all(targets.values[d] != targets.values[p] and DATA.query[d] == DATA.query[p] for d, p in pairs)
            expected = reference.lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric, pairs=pairs, score_norm=True)
            ours = targets.gradients(SCORES, costs=True)
            close(ours, *expected[:2])
            np.testing.assert_allclose(ours.loss, expected[2], rtol=1e-9, atol=1e-12)


def test_partners_are_drawn_evenly_from_the_unlike() -> None:
    values = np.array([0.0, 0.0, 1.0, 2.0])
    partner = np.empty((4, 30_000), np.int64)
    draw_partners(np.uint64(1), values, np.array([0, 4]), COUNTED, 0, 1, np.empty(4, np.int64), np.empty(4, np.int64), partner)
    for d, unlike in ((0, [2, 3]), (1, [2, 3]), (2, [0, 1, 3]), (3, [0, 1, 2])):
        counts = np.bincount(partner[d], minlength=4)
        expected = 30_000 / len(unlike)
        assert counts[unlike].sum() == 30_000
        assert np.all(np.abs(counts[unlike] - expected) < 5 * np.sqrt(expected))


def test_sampled_gradients_are_all_pairs_in_the_mean() -> None:
    labels, scores = [1, 0, 0, 0], [0.3, 0.1, 0.9, -0.2]
    whole = lambda_gradients(labels, scores)
    # The relevant document is drawn by each of the three others, and draws each of them once in three times.
    sampled = lambda_gradients(labels, scores, pairs="sampled", n_pairs=20_000, group_norm="mean")
    np.testing.assert_allclose(sampled.grad, whole.grad * (1 + 1 / 3), rtol=0.02)


# --- propensities ------------------------------------------------------------------------------------------------------------------


def test_propensities_divide_each_pair() -> None:
    t_plus, t_minus = 0.9 ** np.arange(40), 0.95 ** np.arange(40)
    positions = np.random.default_rng(1).integers(1, 41, len(DATA.labels))
    for given_positions in (None, positions):
        more: dict[str, Any] = {"propensities": (t_plus, t_minus), "positions": given_positions, "score_norm": True}
        for metric in METRICS:
            expected = reference.lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric, **more)
            close(lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric, **more), *expected[:2])
    one = lambda_gradients(DATA.labels, SCORES, DATA.offsets, propensities=t_plus)
    both = lambda_gradients(DATA.labels, SCORES, DATA.offsets, propensities=(t_plus, np.ones(40)))
    assert np.array_equal(one.grad, both.grad)


def test_costs_by_position_sum_to_the_loss_and_are_free_of_the_other_propensity() -> None:
    t_plus, t_minus = np.array([1.0, 0.5, 0.25]), np.array([1.0, 0.8, 0.6])
    labels, scores = [0, 2, 1], [0.2, -0.1, 0.4]
    plain = lambda_gradients(labels, scores, metric="pairwise", costs=True)
    assert plain.costs is not None
    assert plain.loss is not None
    np.testing.assert_allclose(plain.costs.sum(1), [plain.loss.sum()] * 2)
    debiased = lambda_gradients(labels, scores, metric="pairwise", costs=True, propensities=(t_plus, t_minus))
    loss = {(i, j): np.log1p(np.exp(scores[j] - scores[i])) for i, j in ((1, 0), (1, 2), (2, 0))}
    plus, minus = np.zeros(3), np.zeros(3)
    for (i, j), value in loss.items():
        plus[i] += value / t_minus[j]
        minus[j] += value / t_plus[i]
    np.testing.assert_allclose(debiased.costs, [plus, minus])
    for threads in (1, 2):
        assert np.array_equal(lambda_gradients(labels, scores, metric="pairwise", costs=True, threads=threads).costs, plain.costs)


# --- laws --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", METRICS)
def test_gradients_of_a_query_sum_to_zero_and_relevant_documents_are_pushed_up(metric: str) -> None:
    result = lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric=metric)
    sums = np.add.reduceat(result.grad, DATA.offsets[:-1])
    np.testing.assert_allclose(sums, 0.0, atol=1e-12)
    assert np.all(result.hess >= 0)
    for start, stop in zip(DATA.offsets[:-1], DATA.offsets[1:], strict=True):
        top, low = (DATA.labels[start:stop] == f(DATA.labels[start:stop]) for f in (np.max, np.min))
        if not np.array_equal(top, low):
            assert np.all(result.grad[start:stop][top] <= 1e-15)
            assert np.all(result.grad[start:stop][low] >= -1e-15)


def test_the_pairwise_gradient_is_that_of_its_loss() -> None:
    step = 1e-6

    def loss(scores: np.ndarray) -> float:
        result = lambda_gradients(DATA.labels, scores, DATA.offsets, metric="pairwise", sigma=1.5, costs=True)
        assert result.loss is not None
        return float(result.loss.sum())

    ours = lambda_gradients(DATA.labels, SCORES, DATA.offsets, metric="pairwise", sigma=1.5).grad
    for d in range(0, len(SCORES), 17):
        bump = np.zeros(len(SCORES))
        bump[d] = step
        assert (loss(SCORES + bump) - loss(SCORES - bump)) / (2 * step) == pytest.approx(ours[d], rel=1e-6, abs=1e-8)


@pytest.mark.compiled
def test_any_number_of_threads_gives_the_same_bits() -> None:
    data = drawn(4000, 7)
    scores = np.random.default_rng(7).normal(size=len(data.labels))
    for options in ({"preset": "lightgbm"}, {"pairs": "sampled"}, {"propensities": np.ones(40)}):
        results = [lambda_gradients(data.labels, scores, data.offsets, costs=True, threads=n, **options) for n in (1, 2, 5)]
        for other in results[1:]:
            for name in ("grad", "hess", "loss", "costs"):
                assert np.array_equal(getattr(results[0], name), getattr(other, name)), name


def test_scores_far_apart_stay_exact() -> None:
    labels, scores = [0, 1, 0, 1], [2000.0, 1999.0, -2000.0, -2001.0]
    near = lambda_gradients(labels[:2], scores[:2], metric="pairwise")
    far = lambda_gradients(labels, scores, metric="pairwise")
    # The pairs 4,000 apart have the gradient 1 or 0; the others are those of their small difference.
    np.testing.assert_allclose(far.grad, [near.grad[0] + 1, near.grad[1], near.grad[0], near.grad[1] - 1], rtol=1e-12)
    np.testing.assert_allclose(far.hess, np.tile(near.hess, 2), rtol=1e-12)


def test_weights_multiply_and_xgboost_scales_them_to_the_mean_one() -> None:
    weight = np.random.default_rng(2).uniform(0.1, 3.0, len(DATA.sizes))
    plain = lambda_gradients(DATA.labels, SCORES, DATA.offsets)
    for given_weights in (weight, weight[DATA.query]):
        result = lambda_gradients(DATA.labels, SCORES, DATA.offsets, weights=given_weights)
        close(result, plain.grad * weight[DATA.query], plain.hess * weight[DATA.query])
    scaled = lambda_gradients(DATA.labels, SCORES, DATA.offsets, weights=weight, preset="xgboost")
    same = lambda_gradients(DATA.labels, SCORES, DATA.offsets, weights=weight / weight.mean(), preset="xgboost")
    np.testing.assert_allclose(scaled.grad, same.grad)


def test_results_have_the_shape_of_the_labels_and_fill_what_is_given() -> None:
    labels, scores = np.array([[1, 0, 2], [0, 0, 0]]), np.array([[0.1, 0.2, 0.3], [1, 2, 3]])
    flat = lambda_gradients(labels.ravel(), scores.ravel(), [0, 3, 6])
    assert np.array_equal(lambda_gradients(labels, scores).grad, flat.grad.reshape(2, 3))
    assert np.all(lambda_gradients(labels, scores).grad[1] == 0)
    out = np.full((2, 3), np.nan, np.float32), np.full((2, 3), np.nan, np.float32)
    result = lambda_gradients(labels, scores, out=out)
    assert np.shares_memory(result.grad, out[0])
    assert np.array_equal(out[1], flat.hess.reshape(2, 3).astype(np.float32))
    frozen = labels.copy(), scores.copy()
    for array in frozen:
        array.flags.writeable = False
    assert np.array_equal(lambda_gradients(*frozen).grad, result.grad) or result.grad.dtype == np.float32
    assert lambda_gradients([], [], [0]).grad.shape == (0,)
    assert lambda_gradients([], [], [0, 0]).grad.shape == (0,)


# --- other libraries ---------------------------------------------------------------------------------------------------------------

SAVED: dict[str, dict[str, Any]] = {
    "lightgbm:default(norm,trunc30,sigmoid1)": {"preset": "lightgbm"},
    "lightgbm:norm=false": {"preset": "lightgbm", "score_norm": False, "group_norm": "none"},
    "lightgbm:trunc=2": {"preset": "lightgbm", "k": 2},
    "lightgbm:sigmoid=2,norm=false": {"preset": "lightgbm", "sigma": 2, "score_norm": False, "group_norm": "none"},
    "xgboost:rank:ndcg default": {"preset": "xgboost"},
    "xgboost:rank:ndcg topk=2": {"preset": "xgboost", "k": 2},
    "xgboost:rank:ndcg nonorm": {"preset": "xgboost", "score_norm": False, "group_norm": "none"},
    "xgboost:rank:ndcg exp_gain=0": {"preset": "xgboost", "gain": "linear"},
    "xgboost:rank:pairwise": {"preset": "xgboost", "metric": "pairwise"},
    "xgboost:rank:map": {"preset": "xgboost", "metric": "map"},
}
# LightGBM reads the logistic function from a table; XGBoost computes in float32.
EXACTNESS = {"lightgbm": 2e-5, "xgboost": 2e-7}


@pytest.mark.skipif(not FOLDER.is_dir(), reason="no conformance data: ../shared/conformance is not beside this checkout")
@pytest.mark.parametrize("name", SAVED)
def test_saved_values_of_lightgbm_and_xgboost(name: str) -> None:
    compared = 0
    for case in read_json("training_libraries.json")["lambda_gradients"]:
        if name not in case["results"]:
            continue
        saved = case["results"][name]
        ours = lambda_gradients(case["labels"], np.float32(case["scores"]), sizes=case["groups"], **SAVED[name])
        for key in ("grad", "hess"):
            theirs = np.array([np.nan if x is None else x for x in saved[key]], float)
            known = ~np.isnan(theirs)
            assert np.abs(getattr(ours, key) - theirs)[known].max() < EXACTNESS[name.partition(":")[0]]
            compared += known.sum()
    assert compared > 0


@pytest.mark.parametrize("weighted", [False, True], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("objective", ["ndcg", "pairwise", "map"])
def test_the_installed_xgboost_takes_the_same_step(objective: str, weighted: bool) -> None:
    xgb = pytest.importorskip("xgboost", reason="xgboost is not installed")
    split = splits()[0]
    rng = np.random.default_rng(4)
    labels = np.minimum(split.labels, 1.0) if objective == "map" else split.labels
    scores = rng.normal(size=len(labels)).astype(np.float32)
    weight = rng.uniform(0.5, 3.0, len(split.sizes)) if weighted else None
    data = xgb.DMatrix(split.features, labels, group=split.sizes, base_margin=scores, weight=weight)
    params = {"lambda": 1.0, "eta": 1.0, "max_depth": 4, "min_child_weight": 0.0, "nthread": 1}
    booster = xgb.train({**params, "objective": f"rank:{objective}", "lambdarank_num_pair_per_sample": 6}, data, 1)
    leaf = booster.predict(data, pred_leaf=True).astype(int).ravel()
    ours = lambda_gradients(labels, scores, split.offsets, preset="xgboost", metric=objective, k=6, weights=weight)
    step = -np.bincount(leaf, ours.grad) / (np.bincount(leaf, ours.hess) + 1.0)
    np.testing.assert_allclose(step[leaf], booster.predict(data, output_margin=True) - scores, rtol=1e-4, atol=1e-5)


def test_the_installed_lightgbm_takes_the_same_first_step() -> None:
    lgb = pytest.importorskip("lightgbm", reason="lightgbm is not installed")
    split = splits()[0]
    params = {"verbosity": -1, "num_threads": 1, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0, "learning_rate": 1.0, "num_leaves": 8}
    data = lgb.Dataset(split.features, split.labels, group=split.sizes, params=params)
    booster = lgb.train({**params, "objective": "lambdarank"}, data, 1)
    leaf = booster.predict(split.features, pred_leaf=True).ravel()
    ours = lambda_gradients(split.labels, np.zeros(len(split.labels)), split.offsets, preset="lightgbm")
    step = -np.bincount(leaf, ours.grad) / np.bincount(leaf, ours.hess)
    np.testing.assert_allclose(step[leaf], booster.predict(split.features), rtol=1e-4)


def test_the_cost_by_position_is_what_xgboost_debiases_with() -> None:
    xgb = pytest.importorskip("xgboost", reason="xgboost is not installed")
    import json

    rng = np.random.default_rng(8)
    sizes = np.full(20, 6)
    labels, scores = rng.integers(0, 2, 120), np.zeros(120)
    data = xgb.DMatrix(rng.normal(size=(120, 2)), labels, group=sizes)
    params = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "lambdarank_bias_norm": 1.0, "lambdarank_num_pair_per_sample": 6}
    booster = xgb.train({**params, "nthread": 1, "base_score": 0.0}, data, 1)
    saved = json.loads(booster.save_config())["learner"]["objective"]
    t_plus = np.array(json.loads(saved["ti+"]) if isinstance(saved["ti+"], str) else saved["ti+"], float)
    costs = lambda_gradients(labels, scores, sizes=sizes, preset="xgboost", k=6, costs=True).costs
    assert costs is not None
    np.testing.assert_allclose((costs[0] / costs[0, 0]) ** 0.5, t_plus, rtol=1e-5)


# --- what is refused ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "auc"}, "metric must be one of"),
        ({"k": 0}, "k must be a whole number from 1 up"),
        ({"sigma": 0}, "sigma must be a number above 0"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"pairs": "topk"}, "needs k="),
        ({"pairs": "all", "k": 3}, "nothing under pairs='all'"),
        ({"group_norm": "mean"}, "needs pairs='sampled'"),
        ({"gain": {0: 1, 1: 0, 2: 2}}, "gain must not fall"),
        ({"gain": {0: 0, 1: 1}}, "has no entry in the gain table"),
        ({"metric": "err", "max_label": 1}, "above the largest label of ERR"),
        ({"preset": "catboost"}, "preset must be one of"),
        ({"weights": [1, -1]}, r"weights\[1\]"),
        ({"weights": [1, 1]}, "one entry a query, 1, or a document, 3, not 2"),
        ({"propensities": [1.0, 0.0, 0.5]}, "that of position 2 is 0.0"),
        ({"propensities": [[1.0, 0.5]]}, "one number a position"),
        ({"propensities": ([1.0, 0.5, 0.3], [1.0])}, "equally long, not 3 and 1"),
        ({"propensities": [1.0, 0.5]}, "end at position 2, and row 2 stood at position 3"),
        ({"propensities": [1.0], "positions": [1, 1]}, "positions must have one entry a document, 3, not 2"),
        ({"propensities": [1.0], "positions": [1, 0, 1]}, "positions must be whole numbers from 1 up.*row 1"),
        ({"out": (np.zeros(3), np.zeros(2))}, r"hess must be .* of shape \[3\], not float64\[2\]"),
        ({"out": (np.zeros(3), [0, 0, 0])}, "hess must be .*, not list"),
        ({"out": (np.zeros(3), np.zeros(3, np.float32))}, "of one type"),
        ({"threads": 0}, "threads must be"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        lambda_gradients([2, 0, 1], [0.1, 0.2, 0.3], **options)


def test_missing_values_are_refused() -> None:
    with pytest.raises(fr.InputError, match="labels must not be null"):
        lambda_gradients(np.ma.masked_invalid([1.0, np.nan]), [0.1, 0.2])
    with pytest.raises(fr.InputError, match="scores must not be null"):
        lambda_gradients([1, 0], np.ma.masked_equal([1, 2], 2))
    with pytest.raises(fr.InputError, match="scores must not be NaN"):
        lambda_gradients([1, 0], [np.nan, 0.2])
    with pytest.raises(fr.InputError, match=r"scores must be finite here: row 1 is -inf"):
        lambda_gradients([1, 0], [0.1, -np.inf])
    buffer = np.zeros(2)
    with pytest.raises(fr.InputError, match="share no memory"):
        lambda_gradients([1, 0], [0.1, 0.2], out=(buffer, buffer))
    with pytest.raises(TypeError, match="'steepness' is no option"):
        LambdaTargets([1, 0], steepness=2)  # type: ignore[call-arg]
    assert LambdaTargets([1, 0]).n_queries == 1


def test_positions_beyond_xgboosts_tables_are_left_as_they_are() -> None:
    labels, scores = [1, 0, 1], [0.1, 0.2, 0.3]
    short = lambda_gradients(labels, scores, preset="xgboost", propensities=[0.5])
    long = lambda_gradients(labels, scores, preset="xgboost", propensities=[0.5, 1.0, 1.0])
    assert np.array_equal(short.grad, long.grad)

"""Listwise and pairwise losses: their formulas in plain Python, their gradients by finite differences, and their laws."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from boosting_data import drawn

import fastrank as fr
from fastrank.training import Loss, approximate_ndcg, hinge, listmle, listnet, ranknet

DATA = drawn(15, 11)
SCORES = np.random.default_rng(11).normal(size=len(DATA.labels))


def log_sum(values: list[float]) -> float:
    return max(values) + math.log(sum(math.exp(value - max(values)) for value in values))


def plain_listnet(y: list[float], s: list[float]) -> float:
    return -sum(math.exp(label - log_sum(y)) * (score - log_sum(s)) for label, score in zip(y, s, strict=True))


def plain_listmle(y: list[float], s: list[float]) -> float:
    ranked = [score for _, score in sorted(zip(y, s, strict=True), key=lambda pair: -pair[0])]
    return sum(log_sum(ranked[i:]) - score for i, score in enumerate(ranked))


def plain_ranknet(y: list[float], s: list[float]) -> float:
    pairs = itertools.permutations(range(len(y)), 2)
    return sum(math.log1p(math.exp(-1.5 * (s[i] - s[j]))) for i, j in pairs if y[i] > y[j])


def plain_hinge(y: list[float], s: list[float]) -> float:
    pairs = itertools.permutations(range(len(y)), 2)
    return sum(max(0.0, 0.5 - (s[i] - s[j])) for i, j in pairs if y[i] > y[j])


def plain_approximate_ndcg(y: list[float], s: list[float]) -> float:
    if len(set(y)) < 2:
        return 0.0
    ranks = [1 + sum(1 / (1 + math.exp(5 * (s[i] - s[j]))) for j in range(len(s)) if j != i) for i in range(len(s))]
    ideal = sum((2**label - 1) / math.log2(2 + r) for r, label in enumerate(sorted(y, reverse=True)))
    return 1 - sum((2**label - 1) / math.log2(1 + rank) for label, rank in zip(y, ranks, strict=True)) / ideal


CASES: dict[str, tuple[Callable[..., Loss], Callable[[list[float], list[float]], float]]] = {
    "ListNet": (listnet, plain_listnet),
    "ListMLE": (listmle, plain_listmle),
    "approximate NDCG": (lambda *a, **k: approximate_ndcg(*a, alpha=5, **k), plain_approximate_ndcg),
    "RankNet": (lambda *a, **k: ranknet(*a, sigma=1.5, **k), plain_ranknet),
    "hinge": (lambda *a, **k: hinge(*a, margin=0.5, **k), plain_hinge),
}


@pytest.mark.parametrize("name", CASES)
def test_the_value_is_the_formula(name: str) -> None:
    loss, plain = CASES[name]
    cuts = list(itertools.pairwise(DATA.offsets))
    expected = [plain(DATA.labels[a:b].tolist(), SCORES[a:b].tolist()) for a, b in cuts]
    np.testing.assert_allclose(loss(DATA.labels, SCORES, DATA.offsets).value, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_the_gradient_is_the_slope_of_the_value(name: str) -> None:
    loss, step = CASES[name][0], 1e-6
    grad = loss(DATA.labels, SCORES, DATA.offsets).grad
    for d in range(0, len(SCORES), 7):
        bump = np.zeros(len(SCORES))
        bump[d] = step
        high, low = (loss(DATA.labels, SCORES + sign * bump, DATA.offsets).value.sum() for sign in (1, -1))
        assert (high - low) / (2 * step) == pytest.approx(grad[d], rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("name", CASES)
def test_a_shift_of_all_scores_changes_nothing(name: str) -> None:
    loss = CASES[name][0]
    one, other = loss(DATA.labels, SCORES, DATA.offsets), loss(DATA.labels, SCORES + 1000.0, DATA.offsets)
    np.testing.assert_allclose(one.value, other.value, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.add.reduceat(one.grad, DATA.offsets[:-1]), 0.0, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_scores_far_apart_stay_finite(name: str) -> None:
    result = CASES[name][0]([0, 1, 2, 0], [900.0, -900.0, 5.0, -1e5])
    assert np.isfinite(result.value).all()
    assert np.isfinite(result.grad).all()


@pytest.mark.parametrize("name", CASES)
def test_threads_shapes_and_empty_input(name: str) -> None:
    loss = CASES[name][0]
    data = drawn(3000, 5)
    scores = np.random.default_rng(5).normal(size=len(data.labels))
    one, two = (loss(data.labels, scores, data.offsets, threads=n) for n in (1, 2))
    assert np.array_equal(one.value, two.value)
    assert np.array_equal(one.grad, two.grad)
    assert loss([[1, 0], [0, 1]], [[0.1, 0.2], [0.3, 0.4]]).grad.shape == (2, 2)
    assert loss([], [], sizes=[0, 0]).value.tolist() == [0.0, 0.0]


def test_approximate_ndcg_nears_ndcg_as_it_sharpens() -> None:
    spread = np.round(SCORES, 1) + np.arange(len(SCORES)) * 1e-4
    exact = fr.ndcg(DATA.labels, spread, DATA.offsets)
    near = 1 - approximate_ndcg(DATA.labels, spread, DATA.offsets, alpha=1e6).value
    ordered = np.array([len(set(DATA.labels[a:b])) > 1 for a, b in itertools.pairwise(DATA.offsets)])
    np.testing.assert_allclose(near[ordered], exact[ordered], atol=1e-9)


def test_what_cannot_be_meant_is_refused() -> None:
    for call in (lambda: ranknet([1, 0], [0, 0], sigma=0), lambda: hinge([1, 0], [0, 0], margin=-1)):
        with pytest.raises(fr.InputError, match="must be a number above 0"):
            call()
    with pytest.raises(fr.InputError, match="alpha must be"):
        approximate_ndcg([1, 0], [0, 0], alpha=math.inf)
    with pytest.raises(fr.InputError, match="scores must be finite"):
        listnet([1, 0], [0, math.inf])

"""The worked numbers that every textbook and every page about these metrics shows. Expected values are written as their formulas."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import fastrank as fr

log2 = math.log2


def test_dcg_idcg_and_ndcg_of_one_query_term_by_term() -> None:
    labels = [3, 2, 0, 1, 2]
    dcg = 7 / log2(2) + 3 / log2(3) + 0 / log2(4) + 1 / log2(5) + 3 / log2(6)
    idcg = 7 / log2(2) + 3 / log2(3) + 3 / log2(4) + 1 / log2(5) + 0 / log2(6)
    assert fr.dcg(labels, k=5) == pytest.approx(dcg, abs=1e-12)
    assert fr.idcg(labels, k=5) == pytest.approx(idcg, abs=1e-12)
    assert fr.ndcg(labels, k=5) == pytest.approx(dcg / idcg, abs=1e-12)
    assert [round(value, 3) for value in (dcg, idcg, dcg / idcg)] == [10.484, 10.823, 0.969]


def test_three_metrics_of_one_ranking_disagree() -> None:
    labels = [3, 0, 2, 3, 1]
    dcg = 7 + 3 / 2 + 7 / log2(5) + 1 / log2(6)
    idcg = 7 + 7 / log2(3) + 3 / 2 + 1 / log2(5)
    assert fr.dcg(labels, k=5) == pytest.approx(dcg, abs=1e-12)
    assert fr.idcg(labels, k=5) == pytest.approx(idcg, abs=1e-12)
    assert fr.ndcg(labels, k=5) == pytest.approx(dcg / idcg, abs=1e-12)
    assert fr.reciprocal_rank(labels) == 1.0
    assert fr.average_precision(labels, rel=1) == pytest.approx((1 + 2 / 3 + 3 / 4 + 4 / 5) / 4, abs=1e-12)
    assert [round(value, 4) for value in (dcg, idcg)] == [11.9016, 13.3472]
    assert round(dcg / idcg, 3) == 0.892


def test_swapping_ranks_2_and_4_adds_the_difference_of_two_terms() -> None:
    gained = fr.dcg([3, 3, 2, 0, 1], k=5) - fr.dcg([3, 0, 2, 3, 1], k=5)
    assert gained == pytest.approx(7 / log2(3) - 7 / log2(5), abs=1e-12)
    assert np.round(gained, 3) == 1.402


def test_linear_gain_gives_another_number_for_the_same_list() -> None:
    labels = [3, 0, 2, 3, 1]
    dcg = 3 + 2 / 2 + 3 / log2(5) + 1 / log2(6)
    idcg = 3 + 3 / log2(3) + 2 / 2 + 1 / log2(5)
    assert fr.ndcg(labels, k=5, gain="linear") == pytest.approx(dcg / idcg, abs=1e-12)
    assert abs(fr.ndcg(labels, k=5, gain="linear") - fr.ndcg(labels, k=5)) > 0.005


def test_mrr_of_five_queries_one_of_them_without_an_answer() -> None:
    lists = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert fr.reciprocal_rank(lists).tolist() == [1, 1 / 2, 1 / 4, 1, 0]
    assert fr.evaluate(lists, metrics="RR").mean() == {"RR": 2.75 / 5}


def test_the_original_discount_of_2002_leaves_rank_2_undiscounted() -> None:
    lists = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert fr.ndcg(lists, discount="jarvelin:2").tolist() == pytest.approx([1, 1, 1 / log2(3)], abs=1e-15)
    assert fr.ndcg(lists).tolist() == pytest.approx([1, 1 / log2(3), 1 / 2], abs=1e-15)


def test_the_natural_logarithm_gives_the_same_ndcg() -> None:
    labels = [[3, 0, 2, 3, 1], [0, 1, 2, 0, 4]]
    assert fr.ndcg(labels, discount="ln").tolist() == pytest.approx(fr.ndcg(labels).tolist(), abs=1e-15)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)])
def test_the_exact_sum_keeps_what_double_double_loses(order: tuple[int, ...]) -> None:
    values = [1.0, 2.0**-53, 8 * 2.0**-107]
    total = fr.Evaluator("DCG(gain='linear')")
    for place in order:
        one = fr.Evaluator("DCG(gain='linear')")
        one.update([values[place]], offsets=[0, 1])
        total.merge(one)
    # To the nearest double of the exact mean: double-double gives another one in some orders.
    assert list(total.result().mean().values()) == [float(sum(map(Fraction, values)) / 3)]

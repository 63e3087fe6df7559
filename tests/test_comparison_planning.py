"""Power, the queries it takes, agreement of metrics, and discriminative power."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import fastrank as fr
from fastrank.comparison.planning import MOST_QUERIES, fewest, power_curve, powers
from fastrank.errors import InputError


@pytest.mark.parametrize(("n", "effect"), [(2, 0.5), (5, 1.0), (10, 0.3), (10, 9.0), (50, 0.5), (5000, 0.03), (99_999, 0.005)])
def test_power_equals_statsmodels(n: int, effect: float) -> None:
    theirs = pytest.importorskip("statsmodels.stats.power").TTestPower().power(effect, n, 0.05)
    assert fr.power(n, effect, 1.0) == pytest.approx(theirs, abs=1e-9)
    assert fr.power(n, -3 * effect, 3.0) == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("n", "effect"), [(100_001, 0.005), (1_000_000, 0.002)])
def test_power_of_very_many_queries_is_that_of_the_normal(n: int, effect: float) -> None:
    critical, off = stats.t.ppf(0.975, n - 1), effect * math.sqrt(n)
    theirs = stats.nct.sf(critical, n - 1, off) + stats.nct.cdf(-critical, n - 1, off)
    assert fr.power(n, effect, 1.0) == pytest.approx(theirs, abs=2e-5)


def test_power_far_from_zero_goes_on_where_the_series_ends() -> None:
    # Degrees and level at which a difference 25 errors away is seen every other time: the two forms meet.
    level = 1 - 1e-5
    for off in (24.99, 25.01):
        expected = stats.nct.sf(stats.t.ppf((1 + level) / 2, 4), 4, off)
        assert powers(5, np.array([off / math.sqrt(5)]), level)[0] == pytest.approx(expected, abs=0.01)
    assert fr.power(2, 1e9, 1.0) == pytest.approx(1.0)
    assert fr.power(10, 0.1, 0.0) == 1.0
    assert fr.power(10, 0.0, 0.0) == pytest.approx(0.05)


def test_power_without_a_difference_is_the_level() -> None:
    assert fr.power(30, 0.0, 1.0, confidence=0.9) == pytest.approx(0.1)


@given(st.floats(0.02, 3), st.floats(0.05, 0.99))
@example(0.01, 0.06)  # so little power that the tail on the other side has a share in it
def test_the_queries_needed_are_the_fewest(effect: float, power: float) -> None:
    n = fr.queries_needed(effect, 1.0, power=power)
    assert fr.power(n, effect, 1.0) >= power
    assert n == 2 or fr.power(n - 1, effect, 1.0) < power


@given(st.integers(2, 5000), st.floats(0.1, 0.99))
def test_the_smallest_difference_is_seen_and_one_below_it_is_not(n: int, power: float) -> None:
    least = fr.smallest_difference(n, 0.2, power=power)
    assert fr.power(n, least, 0.2) >= power
    assert fr.power(n, least * (1 - 1e-6), 0.2) < power


def test_differences_too_small_for_anyone_need_the_most_queries() -> None:
    assert fewest(1e-9, 1.0, 0.8, 0.95) == MOST_QUERIES


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("test", ["t", "permutation"])
def test_power_is_as_often_as_a_test_sees_the_difference(test: str) -> None:
    from fastrank.comparison.paired import Chance
    from fastrank.comparison.significance import p_values

    rng = np.random.default_rng(0)
    n, repetitions = 60, 600
    effect = fr.smallest_difference(n, 1.0, power=0.8)
    seen = 0
    for repetition in range(repetitions):
        values = np.stack([np.zeros((1, n)), rng.normal(effect, 1, (1, n))])
        seen += p_values(test, values, None, None, [(0, 1)], Chance(repetition, 400, 1))[0, 0] <= 0.05
    assert seen / repetitions == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / repetitions))


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("test", ["permutation", "t", "wilcoxon", "bootstrap", "tukey"])
def test_p_is_uniform_where_nothing_differs(test: str) -> None:
    from fastrank.comparison.paired import Chance
    from fastrank.comparison.significance import p_values

    rng = np.random.default_rng(1)
    p = [p_values(test, rng.beta(0.5, 2, (2, 1, 80)), None, None, [(0, 1)], Chance(repetition, 300, 1))[0, 0] for repetition in range(500)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_power_curve_rises_and_reaches_those_at_hand() -> None:
    curve = power_curve(200, 0.01, 0.1, 0.95)
    assert 200 in [n for n, _ in curve]
    assert all(earlier[1] <= later[1] for earlier, later in itertools.pairwise(curve))
    assert curve[-1][1] >= 0.95
    assert power_curve(200, 0.0, 0.1, 0.95)[-1][1] == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: fr.queries_needed(0.0, 1.0), "difference must not be 0"),
        (lambda: fr.queries_needed(math.nan, 1.0), "finite"),
        (lambda: fr.queries_needed(0.1, -1.0), "not be negative"),
        (lambda: fr.queries_needed(0.1, 1.0, power=1.0), "power"),
        (lambda: fr.queries_needed(0.1, "1"), "finite number"),
        (lambda: fr.power(1, 0.1, 1.0), "n_queries"),
        (lambda: fr.power(2.5, 0.1, 1.0), "n_queries"),  # type: ignore[arg-type]
        (lambda: fr.power(10, 0.1, 1.0, confidence=5), "confidence"),
        (lambda: fr.smallest_difference(True, 1.0), "n_queries"),
    ],
)
def test_wrong_plans_are_one_line_that_names_the_argument(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


# --- agreement ------------------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=9))
def test_tau_equals_scipy(pairs: list[tuple[int, int]]) -> None:
    x, y = zip(*pairs, strict=True)
    theirs = stats.kendalltau(x, y).statistic
    ours = fr.kendall_tau(x, y)
    assert ours == pytest.approx(theirs, abs=1e-12) or (math.isnan(ours) and math.isnan(theirs))


def tau_ap_of(order: Any, truth: Any) -> float:
    """Yilmaz et al. 2008, equation 2, for an order without ties and the rank of each item in the true one."""
    return 2 / (len(order) - 1) * sum(sum(truth[above] < truth[item] for above in order[:i]) / i for i, item in enumerate(order) if i) - 1


def test_tau_ap_equals_its_definition() -> None:
    truth = (0, 1, 2, 3, 4)
    for order in itertools.permutations(range(5)):
        scores = [-order.index(item) for item in range(5)]
        assert fr.tau_ap(scores, [-rank for rank in truth]) == pytest.approx(tau_ap_of(order, truth))


def test_tau_ap_of_ties_is_the_mean_over_their_orders() -> None:
    scores, truth = [3, 2, 2, 2, 1], [5, 3, 4, 1, 2]
    ranks = [sorted(truth, reverse=True).index(t) for t in truth]
    orders = [(0, *middle, 4) for middle in itertools.permutations((1, 2, 3))]
    assert fr.tau_ap(scores, truth) == pytest.approx(np.mean([tau_ap_of(order, ranks) for order in orders]))
    half = (fr.tau_ap([3, 2, 1], [3, 2, 1.5]) + fr.tau_ap([3, 2, 1], [3, 1.5, 2])) / 2
    assert fr.tau_ap([3, 2, 1], [3, 2, 2]) == pytest.approx(half)


def test_orders_of_nothing_do_not_agree_or_disagree() -> None:
    assert math.isnan(fr.tau_ap([1], [1]))
    assert math.isnan(fr.tau_ap([1, 2], [3, 3]))
    assert math.isnan(fr.kendall_tau([1, 1], [1, 2]))
    for wrong in (([1, 2], [1]), ([[1]], [[1]]), ([1, math.nan], [1, 2])):
        with pytest.raises(InputError, match="scores"):
            fr.tau_ap(*wrong)


# --- discriminative power -------------------------------------------------------------------------------------------------------


def systems(n_queries: int, qualities: dict[str, float], metrics: Any = ("nDCG", "RR", "P@1"), seed: int = 0) -> dict[str, fr.Evaluation]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (n_queries, 12))
    shared = rng.normal(size=labels.shape)
    return {
        name: fr.evaluate(labels, quality * labels + shared + rng.normal(size=labels.shape), metrics=list(metrics))
        for name, quality in qualities.items()
    }


QUALITIES = {"a": 0.2, "b": 0.3, "c": 0.5, "d": 0.9}


def test_discriminative_power_counts_the_pairs_told_apart() -> None:
    evaluations = systems(80, QUALITIES)
    for found in fr.discriminative_power(evaluations, test="t", correction="none"):
        p = [
            stats.ttest_rel(evaluations[i][found.metric], evaluations[j][found.metric]).pvalue for i, j in itertools.combinations("abcd", 2)
        ]
        assert (found.n_apart, found.n_pairs) == (sum(each <= 0.05 for each in p), 6)
        assert found.share == found.n_apart / 6


def test_fine_metrics_tell_more_apart_than_coarse_ones() -> None:
    ndcg, _, p1 = fr.discriminative_power(systems(150, QUALITIES), n_resamples=500)
    assert ndcg.share >= p1.share
    assert ndcg.queries_half is not None
    assert p1.queries_half is not None
    assert ndcg.queries_half < p1.queries_half


def test_each_cutoff_and_discount_has_a_power_of_its_own() -> None:
    metrics = ["nDCG@1", "nDCG@10", "nDCG(discount='zipf')@10"]
    found = fr.discriminative_power(systems(60, QUALITIES, metrics), test="t", correction="none")
    assert [each.metric for each in found] == metrics
    assert len({each.queries_half for each in found}) == 3


@pytest.mark.compiled
@pytest.mark.slow
def test_from_how_many_queries_on_is_borne_out_by_drawing_so_many() -> None:
    evaluations = systems(3000, QUALITIES, ["nDCG"])
    found = fr.discriminative_power(evaluations, test="t", correction="none")[0]
    assert found.queries_half is not None
    rng = np.random.default_rng(0)
    values = np.stack([evaluations[name]["nDCG"] for name in "abcd"])
    shares = []
    for _ in range(200):
        part = values[:, rng.choice(3000, found.queries_half, replace=False)]
        shares.append(np.mean([stats.ttest_rel(part[i], part[j]).pvalue <= 0.05 for i, j in itertools.combinations(range(4), 2)]))
    assert np.mean(shares) == pytest.approx(0.5, abs=0.05)


def test_identical_systems_are_never_told_apart() -> None:
    one = systems(20, {"a": 0.5})["a"]
    found = fr.discriminative_power({"x": one, "y": one}, n_resamples=100)[0]
    assert (found.n_apart, found.queries_half, found.queries_most) == (0, None, None)


def test_discriminative_power_of_a_metric_without_values_is_none() -> None:
    empty = fr.evaluate([[0, 0], [0, 0]], [[1, 2], [2, 1]], metrics=["RR"], no_relevant="skip")
    found = fr.discriminative_power({"x": empty, "y": empty}, n_resamples=100)[0]
    assert (found.n_apart, found.curve) == (0, ())

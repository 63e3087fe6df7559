"""Paired tests, tests of many systems and corrections: equal to enumeration, to scipy and statsmodels, and to published values."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import stdtr

from fastrank.comparison.corrections import CORRECTIONS, corrected
from fastrank.comparison.many import anova_of, anova_tukey, randomised_tukey
from fastrank.comparison.paired import Chance, bootstrap, pairs_of, permutation, standard_errors, student, wilcoxon
from fastrank.comparison.resampling import flipped_share, key_of, shuffled_ranges
from fastrank.comparison.significance import TESTS, corrected_over, p_values
from fastrank.comparison.studentised_range import range_tail
from fastrank.comparison.units import units_of
from fastrank.errors import InputError

# Table 5.1 of Sakai's textbook on the evaluation of information access: three systems on twenty topics. What follows from it is printed
# there, and repeated in the tests of elinor.
TEXTBOOK = np.array(
    [
        [0.7, 0.3, 0.2, 0.6, 0.4, 0.4, 0.0, 0.7, 0.1, 0.3, 0.5, 0.4, 0.0, 0.6, 0.5, 0.3, 0.1, 0.5, 0.2, 0.1],
        [0.5, 0.1, 0.0, 0.2, 0.4, 0.3, 0.0, 0.5, 0.3, 0.3, 0.4, 0.4, 0.1, 0.4, 0.2, 0.1, 0.1, 0.6, 0.3, 0.2],
        [0.0, 0.0, 0.2, 0.1, 0.3, 0.3, 0.1, 0.2, 0.4, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.1, 0.5, 0.4, 0.3],
    ]
)
CHANCE = Chance(0, 10_000, 1)
FEW = Chance(0, 200, 1)


def differences(row: Any, weights: Any = None, clusters: Any = None) -> Any:
    row = np.asarray(row, dtype=float)
    units = units_of(np.array([np.zeros_like(row), row]), weights, clusters)
    return pairs_of(units, [(0, 1)])


def by_enumeration(row: np.ndarray) -> float:
    """The share of all sign patterns with a mean as far from 0 as the one seen."""
    signs = np.array(list(itertools.product((1, -1), repeat=len(row))))
    means = np.abs(signs @ row)
    return float(np.mean(means >= abs(row.sum()) - 1e-12))


# --- sign flips -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
def test_few_sign_flips_are_enumerated(n: int) -> None:
    row = np.random.default_rng(n).integers(-3, 5, n) / 10
    assert permutation(differences(row), CHANCE)[0] == by_enumeration(row)


def test_p_of_a_tenth_twice_and_a_zero_is_one_half() -> None:
    # 4 of the 8 sign patterns of (0.1, 0, 0.1) reach the mean seen.
    assert permutation(differences(np.array([0.5, 0.4, 0.6]) - np.array([0.4, 0.4, 0.5])), CHANCE)[0] == 4 / 8


def test_queries_without_a_difference_change_no_p() -> None:
    row = np.array([0.3, -0.1, 0.25, 0.5])
    padded = np.concatenate([row, np.zeros(10_000)])
    assert permutation(differences(padded), CHANCE)[0] == permutation(differences(row), CHANCE)[0] == by_enumeration(row)


def test_many_sign_flips_come_near_the_enumeration() -> None:
    row = np.random.default_rng(5).normal(0.2, 1, 17)
    exact = by_enumeration(row)
    assert permutation(differences(row), CHANCE)[0] == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 10_000))


def test_sampled_sign_flips_equal_scipy_within_chance() -> None:
    row = np.random.default_rng(6).normal(0.05, 0.4, 200)
    theirs = stats.permutation_test((row,), np.mean, permutation_type="samples", n_resamples=10_000, rng=1).pvalue
    ours = permutation(differences(row), CHANCE)[0]
    assert ours == pytest.approx(theirs, abs=5 * math.sqrt(2 * theirs * (1 - theirs) / 10_000))


@pytest.mark.compiled
def test_sampled_sign_flips_equal_ranx_within_chance() -> None:
    theirs = pytest.importorskip("ranx.statistical_tests.fisher_randomization_test", reason="ranx is not installed")
    row = np.random.default_rng(6).normal(0.05, 0.4, 200)
    p = theirs.fisher_randomization_test(row, np.zeros(200), 10_000, 0.01, 0)[0]
    assert permutation(differences(row), CHANCE)[0] == pytest.approx(p, abs=5 * math.sqrt(2 * p * (1 - p) / 10_000))


def test_p_of_a_sample_is_never_zero() -> None:
    row = np.full(200, 0.5) + np.random.default_rng(0).random(200) / 100
    assert permutation(differences(row), FEW)[0] == 1 / 201


@pytest.mark.compiled
def test_sign_flips_are_fair_coins() -> None:
    # Of 1,001 differences of 1 the sum over random signs has mean 0 and variance 1,001: how often it is far from 0 is known.
    row = np.ones(1001)
    row[:500] = -1  # a sum of 1, which every pattern reaches
    assert permutation(differences(row), CHANCE)[0] == 1.0
    for shift in (20, 40, 80):
        row = np.ones(1001)
        row[: (1001 - shift) // 2] = -1
        seen = abs(row.sum())
        exact = 2 * stats.binom.sf((1001 + seen) / 2 - 1, 1001, 0.5)
        assert permutation(differences(row), CHANCE)[0] == pytest.approx(exact, abs=5 * math.sqrt(exact / 10_000))


@pytest.mark.compiled
def test_equal_sums_count_as_equal_however_they_are_rounded() -> None:
    # Multiples of a tenth have equal sums in thousands of patterns, which doubles tell apart and whole numbers do not.
    row = np.random.default_rng(2).integers(-5, 7, 300)
    assert permutation(differences(row / 10), Chance(0, 2000, 1))[0] == permutation(differences(row), Chance(0, 2000, 1))[0]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_p(threads: int) -> None:
    row = np.random.default_rng(7).normal(0.1, 1, 90)
    units = units_of(np.array([np.zeros(90), row, -row[::-1]]), None, None)
    for test in TESTS.values():
        alone = test.run(units, [(0, 1), (0, 2)], Chance(3, 300, 1))
        assert (test.run(units, [(0, 1), (0, 2)], Chance(3, 300, threads)) == alone).all()


def test_another_seed_gives_another_sample() -> None:
    row = np.random.default_rng(7).normal(0.1, 1, 90)
    assert len({permutation(differences(row), Chance(seed, 300, 1))[0] for seed in range(5)}) > 1


def test_all_columns_see_the_same_signs() -> None:
    row = np.random.default_rng(7).normal(0.1, 1, 90)
    p = flipped_share(np.array([row, row, 3 * row]), np.zeros(3), 300, key_of(0, 1), 1)
    assert p[0] == p[1] == p[2]


# --- all tests ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TESTS)
def test_identical_systems_have_p_one(name: str) -> None:
    values = np.random.default_rng(0).random((2, 1, 40))
    values[1] = values[0]
    assert p_values(name, values, None, None, [(0, 1)], FEW)[0, 0] == 1.0


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("n", [1, 2, 30])
def test_p_lies_above_zero_and_not_above_one(name: str, n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (rng.random((3, 1, n)), np.stack([np.zeros((1, n)), np.ones((1, n)), rng.random((1, n)) + 1e6])):
        p = p_values(name, values, None, None, [(0, 1), (0, 2), (1, 2)], FEW)
        assert ((p > 0) & (p <= 1)).all()


@pytest.mark.parametrize("name", ["t", "bootstrap", "anova"])
def test_differences_without_spread_are_left_to_sign_flips(name: str) -> None:
    values = np.zeros((2, 1, 5))
    values[1] = 0.1 + 0.2  # not a number that doubles hold
    assert p_values(name, values, None, None, [(0, 1)], FEW)[0, 0] == 2 / 2**5


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=10), st.sampled_from(["permutation", "t", "wilcoxon"]))
def test_which_system_comes_first_changes_no_p(row: list[float], name: str) -> None:
    values = np.array([np.zeros(len(row)), row])[:, None]
    forth, back = (p_values(name, values, None, None, [pair], FEW)[0, 0] for pair in ((0, 1), (1, 0)))
    assert forth == pytest.approx(back, rel=1e-12)


def test_queries_without_a_value_are_left_out_of_that_metric() -> None:
    values = np.random.default_rng(0).random((2, 2, 30))
    values[0, 1, :10] = math.nan
    p = p_values("t", values, None, None, [(0, 1)], FEW)
    assert p[0, 0] == pytest.approx(stats.ttest_rel(values[1, 0], values[0, 0]).pvalue)
    assert p[1, 0] == pytest.approx(stats.ttest_rel(values[1, 1, 10:], values[0, 1, 10:]).pvalue)


# --- Student and Wilcoxon -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 50, 1000])
def test_t_equals_scipy(n: int) -> None:
    one, other = np.random.default_rng(n).random((2, n))
    p = student(pairs_of(units_of(np.array([one, other]), None, None), [(0, 1)]), FEW)[0]
    assert p == pytest.approx(stats.ttest_rel(one, other).pvalue, rel=1e-10)


def test_t_equals_the_textbook() -> None:
    units = units_of(TEXTBOOK[:2], None, None)
    found = pairs_of(units, [(1, 0)])
    mean, error = found.rows.mean(), standard_errors(found)[0]
    assert mean == pytest.approx(0.0750, abs=1e-4)
    assert (error * math.sqrt(20)) ** 2 == pytest.approx(0.0251, abs=1e-4)
    assert mean / error == pytest.approx(2.116, abs=1e-3)
    assert mean / (error * math.sqrt(20)) == pytest.approx(0.473, abs=1e-3)
    assert student(found, CHANCE)[0] == pytest.approx(0.048, abs=1e-3)


def test_a_weight_of_two_is_not_two_queries_but_one_that_counts_double() -> None:
    # The t of a ratio of sums, Σ w d / Σ w, by its textbook formula.
    rng = np.random.default_rng(1)
    d, w = rng.normal(0.2, 1, 30), rng.integers(1, 4, 30).astype(float)
    mean = (w * d).sum() / w.sum()
    error = math.sqrt(30 / 29 * ((w * (d - mean)) ** 2).sum()) / w.sum()
    expected = 2 * stats.t.sf(abs(mean / error), 29)
    assert student(differences(d, weights=w), CHANCE)[0] == pytest.approx(expected)


def test_clusters_of_equal_size_are_tested_by_their_means() -> None:
    rng = np.random.default_rng(2)
    effects = rng.normal(0.3, 1, 25)
    d = np.repeat(effects, 4) + rng.normal(0, 0.1, 100)
    clusters = np.repeat(np.arange(25), 4)
    expected = stats.ttest_1samp(d.reshape(25, 4).mean(axis=1), 0).pvalue
    shuffled = rng.permutation(100)
    assert student(differences(d[shuffled], clusters=clusters[shuffled]), CHANCE)[0] == pytest.approx(expected)
    # Taken as 100 independent queries the same differences would look far surer than they are.
    assert student(differences(d), CHANCE)[0] < expected / 10


@pytest.mark.parametrize("n", [1, 5, 20, 50])
def test_signed_ranks_without_ties_equal_scipy_exactly(n: int) -> None:
    row = np.random.default_rng(n).normal(0.3, 1, n)
    assert wilcoxon(differences(row), FEW)[0] == pytest.approx(stats.wilcoxon(row, method="exact").pvalue, rel=1e-10)


def test_signed_ranks_with_ties_equal_their_enumeration() -> None:
    row = np.array([0.1, 0.2, 0.2, -0.1, 0.3, 0.2, -0.3, 0.1, 0.4])
    ranks = stats.rankdata(np.round(np.abs(row), 9))
    assert wilcoxon(differences(row), FEW)[0] == pytest.approx(by_enumeration(np.sign(row) * ranks), rel=1e-12)


def test_many_signed_ranks_equal_scipys_normal_form() -> None:
    rng = np.random.default_rng(3)
    for row in (rng.normal(0.1, 1, 80), rng.integers(-4, 6, 300) / 10):
        theirs = stats.wilcoxon(np.round(row * 10, 9), method="asymptotic").pvalue
        assert wilcoxon(differences(row), FEW)[0] == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("more", [{"weights": np.arange(1.0, 11)}, {"clusters": np.arange(10) // 2}])
def test_signed_ranks_refuse_weights_and_clusters(more: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="permutation"):
        wilcoxon(differences(np.arange(10.0), **more), FEW)


# --- the bootstrap --------------------------------------------------------------------------------------------------------------


@pytest.mark.compiled
def test_the_bootstrap_comes_near_t_on_normal_differences() -> None:
    row = np.random.default_rng(4).normal(0.05, 1, 2000)
    row += 2.0 * row.std(ddof=1) / math.sqrt(2000) - row.mean()
    found = differences(row)
    assert bootstrap(found, CHANCE)[0] == pytest.approx(student(found, CHANCE)[0], abs=0.012)


def test_the_bootstrap_counts_resamples_as_plainly_as_numpy_would() -> None:
    rng = np.random.default_rng(8)
    row = rng.exponential(1, 40) - 0.8
    seen = stats.ttest_1samp(row, 0).statistic
    draws = (row - row.mean())[rng.integers(0, 40, (20_000, 40))]
    far = np.abs(draws.mean(axis=1) / (draws.std(axis=1, ddof=1) / math.sqrt(40))) >= abs(seen)
    p = bootstrap(differences(row), Chance(0, 2000, 1))[0]
    assert p == pytest.approx(far.mean(), abs=5 * math.sqrt(far.mean() / 2000) + 0.003)


def test_the_bootstrap_of_weights_that_are_all_two_is_that_of_none() -> None:
    row = np.random.default_rng(8).normal(0.2, 1, 40)
    plain, doubled = (bootstrap(differences(row, weights=w), FEW)[0] for w in (None, np.full(40, 2.0)))
    assert plain == doubled


# --- many systems ---------------------------------------------------------------------------------------------------------------


def test_randomised_tukey_of_two_systems_is_the_sign_flip_test() -> None:
    units = units_of(TEXTBOOK[:2], None, None)
    assert randomised_tukey(units, [(0, 1)], CHANCE)[0] == permutation(pairs_of(units, [(0, 1)]), CHANCE)[0]


def test_randomised_tukey_equals_all_shuffles_of_three_systems_on_four_queries() -> None:
    values = np.random.default_rng(0).integers(0, 9, (3, 4)) / 8
    ranges = []
    for orders in itertools.product(itertools.permutations(range(3)), repeat=4):
        sums = sum(values[list(order), q] for q, order in enumerate(orders))
        ranges.append(np.ptp(sums))
    pairs = [(0, 1), (0, 2), (1, 2)]
    exact = [float(np.mean(np.array(ranges) >= abs(values[i].sum() - values[j].sum()) - 1e-12)) for i, j in pairs]
    found = randomised_tukey(units_of(values, None, None), pairs, Chance(1, 5000, 1))
    assert found == pytest.approx(exact, abs=5 * 0.5 / math.sqrt(5000))


@pytest.mark.compiled
def test_shuffles_put_each_system_in_each_place_equally_often() -> None:
    # One query whose k-th value is 1 among zeros, and a fixed query that makes place 0 stand out: the range tells where the 1 went.
    k = 20
    rows = np.zeros((1, k))
    rows[0, 7] = 1.0
    assert (shuffled_ranges(rows, 1000, key_of(0, 2), 1) == 1.0).all()
    rows = np.vstack([np.eye(k)[3], np.eye(k)[11]])
    together = np.mean(shuffled_ranges(rows, 20_000, key_of(0, 2), 1) == 2.0)
    assert together == pytest.approx(1 / k, abs=5 * math.sqrt(1 / k / 20_000))


@pytest.mark.compiled
def test_randomised_tukey_keeps_the_level_over_all_pairs() -> None:
    # Five systems that do not differ: some pair of ten has p <= 0.1 in one of ten data sets, not in one of two.
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(5), 2))
    least = [randomised_tukey(units_of(rng.random((5, 20)), None, None), pairs, FEW).min() for _ in range(300)]
    assert np.mean(np.array(least) <= 0.1) == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 300))


def test_analysis_of_variance_equals_the_textbook() -> None:
    found = anova_of(TEXTBOOK, 0.95)
    assert found.systems.sum_of_squares == pytest.approx(0.1083, abs=1e-4)
    assert found.queries.sum_of_squares == pytest.approx(1.0293, abs=1e-4)
    assert found.residual.sum_of_squares == pytest.approx(0.8317, abs=1e-4)
    assert found.systems.mean_square == pytest.approx(0.0542, abs=1e-4)
    assert found.queries.mean_square == pytest.approx(0.0542, abs=1e-4)
    assert found.residual.mean_square == pytest.approx(0.0219, abs=1e-4)
    assert found.systems.f == pytest.approx(2.475, abs=1e-3)
    assert found.systems.p == pytest.approx(0.098, abs=1e-3)
    assert found.queries.p == pytest.approx(0.009, abs=1e-3)
    assert (found.systems.degrees, found.queries.degrees, found.residual.degrees) == (2, 19, 38)


def test_the_margin_of_two_systems_equals_the_textbook() -> None:
    # Half the width of the interval of the paired difference is t sqrt(2 V / n) with V the residual variance: 0.0742 in the book.
    assert anova_of(TEXTBOOK[:2], 0.95).margin * math.sqrt(2) == pytest.approx(0.0742, abs=1e-4)


def test_analysis_of_variance_equals_statsmodels() -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    import pandas as pd
    from statsmodels.stats.anova import anova_lm

    k, n = 4, 12
    values = np.random.default_rng(9).random((k, n))
    data = pd.DataFrame({"x": values.ravel(), "s": np.repeat(np.arange(k), n), "q": np.tile(np.arange(n), k)})
    theirs = anova_lm(smf.ols("x ~ C(s) + C(q)", data).fit())
    ours = anova_of(values, 0.95)
    for row, part in (("C(s)", ours.systems), ("C(q)", ours.queries)):
        assert part.sum_of_squares == pytest.approx(theirs.loc[row, "sum_sq"])
        assert part.f == pytest.approx(theirs.loc[row, "F"])
        assert part.p == pytest.approx(theirs.loc[row, "PR(>F)"])
    assert ours.residual.mean_square == pytest.approx(theirs.loc["Residual", "mean_sq"])


def test_tukeys_hsd_of_two_systems_is_the_paired_t_test() -> None:
    units = units_of(TEXTBOOK[:2], None, None)
    assert anova_tukey(units, [(0, 1)], CHANCE)[0] == pytest.approx(student(pairs_of(units, [(0, 1)]), CHANCE)[0], rel=1e-9)


@pytest.mark.parametrize("degrees", [1, 2, 5, 20, 78, 741, 22_000, 10**6])
def test_the_studentised_range_of_two_is_students_t_far_into_its_tail(degrees: int) -> None:
    q = np.array([0.0, 0.1, 1.0, 3.0, 8.0, 15.0, 30.0])
    assert range_tail(q, 2, degrees) == pytest.approx(2 * stdtr(degrees, -q / math.sqrt(2)), rel=1e-9)
    assert range_tail(np.array([1e9]), 2, 10**6)[0] == 0


@pytest.mark.parametrize("k", [3, 5, 20])
@pytest.mark.parametrize("degrees", [2, 10, 741])
def test_the_studentised_range_equals_scipy(k: int, degrees: int) -> None:
    q = np.array([0.5, 3.5, 7.0])
    assert range_tail(q, k, degrees) == pytest.approx(stats.studentized_range.sf(q, k, degrees), abs=1e-9)


def test_tukeys_hsd_refuses_weights() -> None:
    with pytest.raises(InputError, match="tukey"):
        anova_tukey(units_of(TEXTBOOK, np.arange(1.0, 21), None), [(0, 1)], CHANCE)


def test_an_analysis_of_systems_that_agree_has_p_one_and_one_without_residual_a_small_p() -> None:
    same = np.tile(np.arange(5) / 10, (3, 1))
    assert anova_of(same, 0.95).systems.p == 1.0
    shifted = anova_of(same + np.array([[0.0], [0.1], [0.2]]), 0.95)
    assert 0 < shifted.systems.p < 1e-9
    assert shifted.residual.mean_square == 0.0


# --- corrections ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=15)  # statsmodels collects garbage in each call
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_corrections_equal_statsmodels(p: list[float]) -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    for ours, theirs in (("holm", "holm"), ("bh", "fdr_bh"), ("bonferroni", "bonferroni")):
        assert corrected(p, ours) == pytest.approx(multitest.multipletests(p, method=theirs)[1], abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.sampled_from(CORRECTIONS))
def test_a_correction_keeps_the_order_and_lowers_no_p(p: list[float], method: str) -> None:
    out = corrected(p, method)
    assert (out >= np.array(p)).all()
    assert (out <= 1).all()
    assert (np.diff(out[np.argsort(p, kind="stable")]) >= 0).all()


def test_no_p_values_correct_to_none() -> None:
    assert all(corrected([], method).tolist() == [] for method in CORRECTIONS)


def test_an_unknown_correction_names_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'holm'"):
        corrected([0.5], "holms")


def test_tests_corrected_over_pairs_are_corrected_over_the_metrics_alone() -> None:
    p = np.array([[0.01, 0.2], [0.3, 0.6]])
    assert corrected_over(p, "tukey", "holm").tolist() == [[0.02, 0.4], [0.6, 1.0]]
    assert corrected_over(p, "tukey", "none").tolist() == p.tolist()
    assert corrected_over(p, "permutation", "bonferroni").tolist() == [[0.04, 0.8], [1.0, 1.0]]

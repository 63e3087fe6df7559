"""`compare`: what it decides about two systems, and about many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import METRICS, QUALITIES, compare, kinds, per_query, systems
from scipy import stats

import fastrank as fr
from fastrank.comparison.significance import TESTS
from fastrank.report.compared import comparison_text

# --- what is decided ------------------------------------------------------------------------------------------------------------


def test_the_primary_metric_decides_and_the_others_are_watched() -> None:
    found = compare(systems(), primary="ndcg@10", n_resamples=500)
    decided, *watched = found.differences
    assert (decided.metric, decided.verdict) == ("nDCG@10", "better")
    assert decided.p is not None
    assert decided.p == decided.p_corrected
    assert [(each.p, each.p_corrected, each.verdict) for each in watched] == [(None, None, None)] * 2
    assert found.n_comparisons == 1
    assert "no_primary" not in kinds(found)


def test_without_a_primary_metric_p_is_corrected_over_all_and_the_report_says_so() -> None:
    found = compare(systems(), test="t")
    p = np.array([each.p for each in found.differences])
    expected = sorted(p)
    corrected = np.maximum.accumulate(np.minimum(np.array(expected) * [3, 2, 1], 1))
    assert sorted(each.p_corrected for each in found.differences) == pytest.approx(corrected)
    assert found.n_comparisons == 3
    assert "corrected over 3 metrics" in next(note.message for note in found.notes if note.kind == "no_primary")
    assert "Holm" in found.verdict


def test_one_metric_decides_by_itself() -> None:
    found = compare(systems(metrics=["RR"]))
    assert found.primary == "RR"
    assert found.n_comparisons == 1


def test_numbers_of_a_pair_are_those_of_numpy_and_scipy() -> None:
    evaluations = systems(n_queries=50)
    found = compare(evaluations, primary="nDCG@10", test="t", interval="t").differences[0]
    old, new = evaluations["old"]["nDCG@10"], evaluations["new"]["nDCG@10"]
    test = stats.ttest_rel(new, old)
    assert found.p == pytest.approx(test.pvalue)
    assert (found.difference.low, found.difference.high) == pytest.approx(tuple(test.confidence_interval(0.95)))
    assert found.difference.estimate == pytest.approx((new - old).mean())
    assert found.ratio.estimate == pytest.approx(new.mean() / old.mean())
    assert found.effect_size == pytest.approx((new - old).mean() / (new - old).std(ddof=1))
    assert (found.won, found.tied, found.lost) == ((new > old).sum(), (new == old).sum(), (new < old).sum())
    assert (found.mean_baseline, found.mean_system) == pytest.approx((old.mean(), new.mean()))
    assert found.sd == pytest.approx((new - old).std(ddof=1))


def test_verdicts_follow_the_sign_and_the_level() -> None:
    worse = systems(qualities={"old": 0.6, "new": 0.3})
    assert compare(worse, primary="nDCG@10").differences[0].verdict == "worse"
    same = systems(n_queries=12, qualities={"old": 0.4, "new": 0.42})
    found = compare(same, primary="nDCG@10")
    assert found.differences[0].verdict == "open"
    assert "not told apart" in found.verdict
    assert "power" in found.verdict


def test_fewer_is_better_where_the_metric_says_so() -> None:
    class _FewerIsBetter(fr.metrics.P):
        higher_is_better = False

    evaluations = {}
    for name, each in systems(qualities={"old": 0.1, "new": 0.9}, metrics=["P@1"]).items():
        evaluations[name] = fr.Evaluation(
            [_FewerIsBetter(k=1, rel=1)], each.convention, values=each.values, n_queries=each.n_queries, no_relevant=each.no_relevant
        )
    found = compare(evaluations, n_resamples=500).differences[0]
    assert found.difference.estimate > 0
    assert found.verdict == "worse"
    assert found.lost > found.won


def test_identical_systems_have_p_one_in_words() -> None:
    one = systems()["old"]
    found = compare({"a": one, "b": one}, primary="nDCG@10")
    decided = found.differences[0]
    assert (decided.p, decided.verdict, decided.effect_size) == (1.0, "identical", 0.0)
    assert (decided.difference.low, decided.difference.high) == (0.0, 0.0)
    assert found.verdict == "b and a have the same nDCG@10 on all 60 queries."
    assert found.planning[0].needed is None


@pytest.mark.parametrize("test", ["t", "bootstrap", "anova", "permutation"])
def test_the_same_difference_everywhere_is_said_in_words(test: str) -> None:
    found = compare(per_query([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]), test=test)
    decided = found.differences[0]
    assert decided.p == 2 / 2**6
    assert math.isnan(decided.effect_size)
    assert "no spread" in next(note.message for note in found.notes if note.kind == "no_spread")
    assert found.planning[0].needed is None


@pytest.mark.parametrize("test", TESTS)
def test_every_test_gives_the_same_bits_for_any_number_of_threads(test: str) -> None:
    evaluations = systems(qualities={"a": 0.3, "b": 0.4, "c": 0.5}, by={"part": ["x", "y"] * 30})
    one, other = (compare(evaluations, primary="RR", test=test, n_resamples=200, threads=threads) for threads in (1, 3))
    assert one.to_json() == other.to_json()


def test_a_seed_is_kept_and_a_generator_gives_one() -> None:
    evaluations = systems()
    by_seed = compare(evaluations, primary="RR", seed=5)
    assert by_seed.to_json() == compare(evaluations, primary="RR", seed=5).to_json()
    by_generator = compare(evaluations, primary="RR", seed=np.random.default_rng(5))
    again = compare(evaluations, primary="RR", seed=by_generator.seed)
    assert again.to_json() == by_generator.to_json()
    assert by_seed.to_json() != by_generator.to_json()


def test_intervals_do_not_depend_on_how_many_metrics_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluations = systems()
    whole = compare(evaluations, primary="RR")
    monkeypatch.setattr("fastrank.comparison.verdict._ROOM", 1)
    assert compare(evaluations, primary="RR").to_json() == whole.to_json()


# --- many systems ---------------------------------------------------------------------------------------------------------------


def test_all_pairs_of_many_systems_are_corrected_together() -> None:
    found = compare(systems(qualities=QUALITIES), primary="nDCG@10", test="t")
    decided = [each for each in found.differences if each.metric == "nDCG@10"]
    assert [(each.baseline, each.system) for each in decided] == [
        ("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d"),
    ]  # fmt: skip
    assert found.n_comparisons == 6
    assert found.verdict.startswith("d has the best nDCG@10")
    assert len(found.agreement) == 3
    assert [each.metric for each in found.discrimination] == METRICS


def test_a_baseline_leaves_the_pairs_with_it() -> None:
    found = compare(systems(qualities=QUALITIES), primary="nDCG@10", baseline="b", n_resamples=300)
    assert [(each.baseline, each.system) for each in found.differences[:3]] == [("b", "a"), ("b", "c"), ("b", "d")]
    assert found.n_comparisons == 3
    assert found.verdict.startswith("Against b on nDCG@10")
    assert "better: d" in found.verdict
    assert "worse: a" in found.verdict


def test_tests_of_many_systems_need_no_correction_over_pairs() -> None:
    for test in ("tukey", "anova"):
        found = compare(systems(qualities=QUALITIES), primary="nDCG@10", test=test, n_resamples=300)
        assert found.n_comparisons == 1
        assert all(each.p == each.p_corrected for each in found.differences)
    assert found.anova["nDCG@10"].systems.p < 0.01
    over_metrics = compare(systems(qualities=QUALITIES), test="tukey", n_resamples=300)
    assert over_metrics.n_comparisons == 3
    assert "Bonferroni" in over_metrics.verdict


def test_many_systems_without_a_difference_share_the_best_place() -> None:
    one = systems()["old"]
    found = compare(dict.fromkeys("abc", one), primary="RR")
    assert found.verdict == "a, b and c have the same RR on all 60 queries."
    assert math.isnan(found.agreement[0].tau)


def test_of_very_many_pairs_those_of_the_best_system_are_listed() -> None:
    labels = np.random.default_rng(0).integers(0, 4, (20, 6))
    noise = np.random.default_rng(1)
    part = ["x", "y"] * 10
    evaluations = {
        f"system {i}": fr.evaluate(labels, 0.2 * i * labels + noise.normal(size=labels.shape), metrics=["nDCG", "RR"], by={"part": part})
        for i in range(12)
    }
    found = compare(evaluations, primary="nDCG", test="t", interval="t")
    assert len(found.differences) == 2 * 66
    assert len(found.listed("nDCG")) == 11
    assert "11 of 66 pairs, those of the best system" in repr(found)
    assert "others" in found.verdict
    assert comparison_text(found, "csv").count("\n") > 66 * 2
    assert "11 of 66 pairs" in found.to_html()
    assert len(compare(evaluations, primary="nDCG", test="t", interval="t", baseline="system 3").listed("RR")) == 11

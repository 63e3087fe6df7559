"""Intervals: equal to scipy within chance, exact where formulas are, the same for any number of threads, and covering what they should."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import fastrank as fr
from fastrank.comparison.intervals import METHODS, Quantity, intervals, make_plan
from fastrank.comparison.resampling import (
    compile_kernels,
    flip_signs,
    key_of,
    resample_sums,
    resampled_sums,
    root_of,
    shuffle_ranges,
    whole,
)
from fastrank.comparison.units import units_of
from fastrank.errors import InputError

BOOTSTRAPS = [method for method in METHODS if method != "t"]


def skewed(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).beta(0.5, 2, n)


# --- resamples ------------------------------------------------------------------------------------------------------------------


def test_a_resample_draws_as_many_units_as_there_are() -> None:
    sums = resampled_sums(np.ones((1, 37)), 200, key_of(0, 0), 1)
    assert (sums == 37).all()


def test_each_unit_is_drawn_as_often_as_chance_has_it() -> None:
    n, n_resamples = 12, 400
    counts = resampled_sums(np.eye(n), n_resamples, key_of(0, 0), 1)
    assert counts.sum() == n * n_resamples
    # Binomial: n draws, each with 1 / n.
    seen = np.bincount(counts.astype(int).ravel(), minlength=n + 1)[:5]
    expected = stats.binom.pmf(np.arange(5), n, 1 / n) * n * n_resamples
    assert ((seen - expected) ** 2 / expected).sum() < stats.chi2.ppf(0.9999, 4)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [3, 1000, 65_537, 100_000])
def test_units_are_drawn_evenly(n: int) -> None:
    thirds = np.zeros((3, n))
    for i in range(3):
        thirds[i, i::3] = 1
    share = resampled_sums(thirds, 300, key_of(1, 0), 1).sum(axis=0) / (300 * n)
    assert share == pytest.approx(thirds.mean(axis=1), abs=5 * math.sqrt(2 / 9 / (300 * n)))


def test_all_columns_see_the_same_draws() -> None:
    x = skewed(50)
    sums = resampled_sums(np.array([x, 2 * x, x]), 100, key_of(0, 0), 1)
    assert (sums[:, 1] == 2 * sums[:, 0]).all()
    assert (sums[:, 2] == sums[:, 0]).all()


@pytest.mark.parametrize("n_resamples", [100, 101, 102, 103])
def test_any_number_of_threads_and_columns_gives_the_same_sums(n_resamples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    columns = np.random.default_rng(0).normal(size=(5, 40))
    alone = resampled_sums(columns, n_resamples, key_of(0, 0), 1)
    for threads in (2, 3, 8):
        assert (resampled_sums(columns, n_resamples, key_of(0, 0), threads) == alone).all()
    monkeypatch.setattr("fastrank.comparison.resampling._ROOM", 8 * n_resamples * 2)  # two columns a pass
    assert (resampled_sums(columns, n_resamples, key_of(0, 0), 2) == alone).all()


@given(st.lists(st.floats(-1e6, 1e6).map(lambda x: round(x, 100)), min_size=1, max_size=30))
def test_columns_are_rounded_far_below_their_largest_value(row: list[float]) -> None:
    columns = np.array([row])
    numbers, scale = whole(columns, len(row))
    assert np.abs(numbers * scale[:, None] - columns).max() <= 2.0**-55 * np.abs(columns).max()
    assert np.abs(numbers).max() * len(row) < 2**62


def test_seeds_and_generators() -> None:
    assert root_of(7) == root_of(np.int64(7)) == 7
    assert root_of(np.random.default_rng(7)) == root_of(np.random.default_rng(7))
    one = np.random.default_rng(7)
    assert root_of(one) != root_of(one)
    for wrong in (None, -1, 1.5, True, "0"):
        with pytest.raises(InputError, match="Generator"):
            root_of(wrong)


@pytest.mark.parametrize("wrong", [0, 99, 1_000_001, 1e4, True, None])
def test_an_impossible_number_of_resamples_is_an_error(wrong: Any) -> None:
    with pytest.raises(InputError, match="n_resamples"):
        fr.confidence_interval([0.1, 0.2], n_resamples=wrong)


@pytest.mark.parametrize("confidence", [1e-300, 1 - 1e-16])
@pytest.mark.parametrize("method", ["t", "percentile", "bca", "studentised"])
def test_a_confidence_that_rounds_away_gives_an_interval_all_the_same(method: str, confidence: float) -> None:
    found = fr.confidence_interval([0.1, 0.5, 0.3, 0.9, 0.6], method=method, confidence=confidence, n_resamples=200)
    assert found.low <= found.high  # neither is NaN


# --- against formulas and scipy -------------------------------------------------------------------------------------------------


def test_an_interval_shows_itself_in_one_line() -> None:
    found = fr.confidence_interval([1.0, 0.5, 0.25, 1.0, 0.0], method="t")
    assert repr(found) == "0.55 [-0.005289, 1.1053] (95% interval, t)"


def test_all_kernels_can_be_compiled_ahead() -> None:
    compile_kernels()
    for kernel in (resample_sums, flip_signs, shuffle_ranges):
        assert len(kernel.signatures) <= 1


def test_t_is_students_interval() -> None:
    x = skewed(40)
    found = fr.confidence_interval(x, method="t", confidence=0.9)
    low, high = stats.t.interval(0.9, 39, x.mean(), stats.sem(x))
    assert (found.estimate, found.low, found.high) == pytest.approx((x.mean(), low, high))
    assert found.standard_error == pytest.approx(stats.sem(x))
    assert (found.n_units, found.method, found.confidence) == (40, "t", 0.9)


@pytest.mark.compiled
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("n", [20, 300])
def test_the_bootstrap_of_a_mean_equals_scipy_within_chance(method: str, n: int) -> None:
    x = skewed(n, seed=n)
    name = {"percentile": "percentile", "bca": "BCa"}[method]
    theirs = stats.bootstrap((x,), np.mean, n_resamples=20_000, method=name, rng=1).confidence_interval
    ours = fr.confidence_interval(x, method=method, n_resamples=20_000)
    error = stats.sem(x)
    # A 2.5% point of 20,000 resamples is off by sqrt(0.025 · 0.975 / 20,000) / density, 2% of a standard error; the points that BCa
    # takes of twenty skewed values lie further out, where chance has more room.
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=(0.15 if n == 20 else 0.09) * error)


@pytest.mark.compiled
@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize("of", ["difference", "ratio"])
def test_the_bootstrap_of_two_systems_equals_scipy_within_chance(method: str, of: str) -> None:
    rng = np.random.default_rng(3)
    y = skewed(150) + 0.1
    x = y + rng.normal(0.03, 0.1, 150)

    def statistic(a: Any, b: Any, axis: int = -1) -> Any:
        return a.mean(axis=axis) - b.mean(axis=axis) if of == "difference" else a.mean(axis=axis) / b.mean(axis=axis)

    name = {"percentile": "percentile", "bca": "BCa"}[method]
    theirs = stats.bootstrap((x, y), statistic, paired=True, n_resamples=20_000, method=name, rng=1)
    ours = fr.confidence_interval(x, y, of=of, method=method, n_resamples=20_000)
    assert ours.standard_error == pytest.approx(theirs.standard_error, rel=0.05)
    low, high = theirs.confidence_interval
    assert (ours.low, ours.high) == pytest.approx((low, high), abs=0.09 * ours.standard_error)


@pytest.mark.compiled
def test_the_studentised_interval_equals_its_definition_within_chance() -> None:
    x = skewed(60)
    draws = x[np.random.default_rng(1).integers(0, 60, (50_000, 60))]
    t = (draws.mean(axis=1) - x.mean()) / (draws.std(axis=1, ddof=1) / math.sqrt(60))
    high, low = np.quantile(t, [0.025, 0.975])
    ours = fr.confidence_interval(x, method="studentised", n_resamples=20_000)
    error = stats.sem(x)
    assert (ours.low, ours.high) == pytest.approx((x.mean() - low * error, x.mean() - high * error), abs=0.12 * error)


@pytest.mark.compiled
@pytest.mark.parametrize("method", BOOTSTRAPS)
def test_a_weighted_mean_is_resampled_with_its_weights(method: str) -> None:
    rng = np.random.default_rng(2)
    x, w = skewed(80), rng.integers(1, 5, 80).astype(float)
    picks = rng.integers(0, 80, (20_000, 80))
    means = (x * w)[picks].sum(axis=1) / w[picks].sum(axis=1)
    ours = fr.confidence_interval(x, weights=w, method=method)
    assert ours.estimate == pytest.approx(np.average(x, weights=w))
    assert ours.standard_error == pytest.approx(means.std(), rel=0.04)
    if method == "percentile":
        assert (ours.low, ours.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.12 * means.std())


@pytest.mark.parametrize("method", METHODS)
def test_weights_of_one_and_clusters_of_one_change_nothing(method: str) -> None:
    x = skewed(30)
    plain = fr.confidence_interval(x, method=method, n_resamples=200)
    for more in ({"weights": np.ones(30)}, {"clusters": [f"user {i}" for i in range(30)]}):
        assert fr.confidence_interval(x, method=method, n_resamples=200, **more) == plain
    doubled = fr.confidence_interval(x, method=method, weights=np.full(30, 2.0), n_resamples=200)
    assert (doubled.low, doubled.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_clusters_are_drawn_whole(method: str) -> None:
    # Ten users whose queries are all alike: the interval is that of ten numbers, however many queries each has.
    x = skewed(10)
    many = fr.confidence_interval(np.repeat(x, 30), clusters=np.repeat(np.arange(10), 30), method=method, n_resamples=200)
    ten = fr.confidence_interval(x, method=method, n_resamples=200)
    assert (many.low, many.high, many.standard_error) == pytest.approx((ten.low, ten.high, ten.standard_error), rel=1e-9)
    assert many.n_units == 10


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("of", ["mean", "difference", "ratio"])
def test_any_number_of_threads_gives_the_same_interval(method: str, of: str) -> None:
    x, y = skewed(50), skewed(50, 1) + 0.1
    more = {"baseline": None if of == "mean" else y, "of": of, "method": method, "n_resamples": 150, "weights": np.arange(1.0, 51)}
    assert len({fr.confidence_interval(x, threads=threads, **more) for threads in (1, 2, 7)}) == 1


@pytest.mark.parametrize("method", METHODS)
def test_values_without_spread_have_an_interval_of_no_width(method: str) -> None:
    found = fr.confidence_interval(np.full(30, 0.1 + 0.2), method=method, n_resamples=100)
    assert (found.low, found.high, found.standard_error) == (found.estimate, found.estimate, 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_one_query_has_a_mean_and_no_interval(method: str) -> None:
    found = fr.confidence_interval([0.25], method=method)
    assert found.estimate == 0.25
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_a_ratio_to_nothing_is_not_a_number() -> None:
    found = fr.confidence_interval([0.1, 0.2], [0.0, 0.0], of="ratio", method="t")
    assert math.isnan(found.estimate)
    assert math.isnan(found.low)


@pytest.mark.parametrize("method", BOOTSTRAPS)
def test_a_ratio_to_what_is_rarely_there_may_have_no_end(method: str) -> None:
    # One resample in eight has nothing of the baseline: the ratio is infinite, or, with nothing above it either, not there.
    baseline, values = np.zeros(30), np.zeros(30)
    baseline[:2] = 0.5, 0.7
    values[:4] = 0.5
    found = fr.confidence_interval(values, baseline, of="ratio", method=method, n_resamples=2000)
    assert found.estimate == pytest.approx(2.0 / 1.2)
    assert not math.isnan(found.low)
    assert math.isfinite(found.low) or found.low == -math.inf
    assert found.high > found.estimate or method == "studentised"
    assert not 1e6 < abs(found.high) < math.inf


@pytest.mark.parametrize("method", BOOTSTRAPS)
def test_resamples_without_weight_have_no_mean(method: str) -> None:
    weights = np.zeros(8)
    weights[3:5] = 1.0, 2.0
    found = fr.confidence_interval([0.1] * 4 + [0.4] * 4, weights=weights, method=method, n_resamples=2000)
    assert found.estimate == pytest.approx(0.3)
    assert not math.isnan(found.low)
    alone = fr.confidence_interval([0.1, 0.2, 0.3], [0.0, 0.0, 0.0], of="ratio", method=method, n_resamples=200)
    assert math.isnan(alone.low)


def test_a_studentised_interval_may_have_no_end() -> None:
    # Three values in thirty that are not 0: one resample in 24 has none of them and no spread, so nothing bounds the mean from above.
    x = np.zeros(30)
    x[:3] = 0.5, 0.7, 0.9
    found = fr.confidence_interval(x, method="studentised", n_resamples=2000)
    assert found.high == math.inf
    assert math.isfinite(found.low)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"values": [0.1, math.nan]}, "values[1]"),
        ({"values": [0.1, None]}, "values[1]"),
        ({"values": [[0.1, 0.2]]}, "one dimension"),
        ({"values": []}, "no query"),
        ({"values": [0.1, 0.2], "baseline": [0.1]}, "baseline must have one entry per query"),
        ({"values": [0.1, 0.2], "weights": [1.0]}, "weights must have one entry"),
        ({"values": [0.1, 0.2], "weights": [1.0, -1.0]}, "weights[1] = -1"),
        ({"values": [0.1, 0.2], "weights": [0.0, 0.0]}, "all 0"),
        ({"values": [0.1, 0.2], "clusters": ["a"]}, "clusters must have one entry"),
        ({"values": [0.1, 0.2], "of": "difference"}, "give baseline="),
        ({"values": [0.1, 0.2], "baseline": [0.1, 0.2], "of": "mean"}, "leave it out"),
        ({"values": [0.1, 0.2], "method": "bcaa"}, "Did you mean 'bca'"),
        ({"values": [0.1, 0.2], "confidence": 95}, "strictly between 0 and 1"),
        ({"values": [0.1, 0.2], "confidence": True}, "strictly between 0 and 1"),
    ],
)
def test_wrong_input_is_one_line_that_names_it(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as raised:
        fr.confidence_interval(**options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


# --- summaries ------------------------------------------------------------------------------------------------------------------


def evaluation(n_queries: int = 60, **options: Any) -> fr.Evaluation:
    rng = np.random.default_rng(0)
    return fr.evaluate(rng.integers(0, 3, (n_queries, 8)), rng.random((n_queries, 8)), metrics=["nDCG@5", "RR", "AP"], **options)


@pytest.mark.parametrize("method", METHODS)
def test_a_summary_has_the_intervals_of_the_method_asked_for(method: str) -> None:
    result = evaluation(by={"part": ["a", "b", "b"] * 20})
    summary = result.summary(0.9, method, n_resamples=300, seed=5)
    assert summary.method == method
    for row in summary.rows:
        expected = fr.confidence_interval(result[row.name], method=method, confidence=0.9, n_resamples=300, seed=5)
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
        part = summary.slices["part"]["b"].rows[summary.rows.index(row)]
        chosen = result[row.name][np.array([False, True, True] * 20)]
        expected = fr.confidence_interval(chosen, method=method, confidence=0.9, n_resamples=300, seed=5)
        assert (part.low, part.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_a_summary_shows_its_method() -> None:
    summary = evaluation().summary(method="bca", n_resamples=200)
    assert summary.interval_title == "95% interval (BCa)"
    assert "(BCa)" in repr(summary)
    assert summary.to_dict()["interval"] == "bca"
    assert evaluation().summary().interval_title == "95% interval"


@pytest.mark.parametrize("method", ["t", "studentised"])
def test_a_mean_that_rests_on_few_queries_is_noted(method: str) -> None:
    labels = np.zeros((40, 2))
    labels[:7, 0] = 1
    few, many = (fr.evaluate(labels[:n], metrics=["RR", "P@1"]).summary(method=method, n_resamples=100) for n in (40, 10))
    assert [(note.kind, note.count) for note in few.notes if note.kind == "few_values"] == [("few_values", 7)] * 2
    assert "RR is 0 on all but 7 of 40 queries" in repr(few)
    # So few queries speak for themselves.
    assert not [note for note in many.notes if note.kind == "few_values"]


def test_a_summary_takes_clusters_from_a_column() -> None:
    users = [f"user {i // 3}" for i in range(60)]
    result = evaluation(by={"user": users})
    row = result.summary(method="t", cluster="user").rows[0]
    expected = fr.confidence_interval(result["nDCG@5"], method="t", clusters=users)
    assert (row.low, row.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    with pytest.raises(InputError, match="cluster"):
        result.summary(method="t", cluster="session")


def test_queries_without_a_value_are_left_out_of_an_interval() -> None:
    labels = np.zeros((40, 5), dtype=int)
    labels[::2, 3] = 1
    result = fr.evaluate(labels, metrics=["RR", "P@2"], no_relevant="skip", by={"half": ["found", "none"] * 20})
    summary = result.summary(method="percentile", n_resamples=200)
    assert (summary.rows[0].low, summary.rows[0].high) == (0.25, 0.25)
    assert math.isnan(summary.slices["half"]["none"].rows[0].mean)
    missing = fr.evaluate(labels, metrics=["RR"], no_relevant="nan").summary(method="percentile", n_resamples=200)
    assert math.isnan(missing.rows[0].low)


def test_a_summary_of_means_alone_cannot_be_resampled() -> None:
    evaluator = fr.Evaluator(["RR"], per_query=False)
    evaluator.update([[1, 0], [0, 1]])
    with pytest.raises(InputError, match="per_query=True"):
        evaluator.result().summary(method="bca")


# --- coverage -------------------------------------------------------------------------------------------------------------------

POPULATIONS = {
    "normal": (lambda rng, n: rng.normal(0.05, 0.2, n), 0.05),
    "skewed": (lambda rng, n: rng.beta(0.5, 2, n), 0.2),
    "many zeros": (lambda rng, n: np.where(rng.random(n) < 0.75, 0, rng.beta(2, 2, n)), 0.125),
}


@pytest.mark.slow
@pytest.mark.compiled
@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize("method", METHODS)
def test_intervals_cover_the_mean_as_often_as_they_say(population: str, method: str) -> None:
    draw, mean = POPULATIONS[population]
    rng = np.random.default_rng(11)
    n, repetitions, covered = 200, 400, 0
    for repetition in range(repetitions):
        units = units_of(draw(rng, n)[None], None, None)
        found = intervals(units, [Quantity("mean", 0)], make_plan(method, 0.95, 500, repetition, 1))[0]
        covered += found.low <= mean <= found.high
    # 93 to 97%, widened by what 400 repetitions leave open.
    assert 0.93 - 0.025 <= covered / repetitions <= 0.97 + 0.025


# --- cost -----------------------------------------------------------------------------------------------------------------------

MEMORY = """
import resource, sys
import numpy as np
from fastrank.comparison.resampling import key_of, resampled_sums, flipped_share
from fastrank.comparison.intervals import Quantity, intervals, make_plan
from fastrank.comparison.units import units_of
values = np.random.default_rng(0).random((5, 200))
units = units_of(values, None, None)
intervals(units, [Quantity("mean", i) for i in range(5)], make_plan("bca", 0.95, 100, 0, 1))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
intervals(units, [Quantity("mean", i) for i in range(5)], make_plan("bca", 0.95, 1_000_000, 0, 1))
flipped_share(values, np.zeros(5), 1_000_000, key_of(0, 1), 1)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes on Linux")
def test_a_million_resamples_take_less_than_200_megabytes() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 200

"""`compare`: what it decides, what it refuses, what it warns of, and how it shows itself."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastrank as fr
from fastrank.comparison.documents import Documents, explain_with, from_runs, from_tables
from fastrank.comparison.outcome import about, p_text
from fastrank.comparison.significance import TESTS
from fastrank.comparison.verdict import MOST_SLICES
from fastrank.errors import InputError
from fastrank.report.compared import FORMS, comparison_text

METRICS = ["nDCG@10", "RR", "P@1"]


def labels_and_scores(n_queries: int, qualities: dict[str, float], seed: int = 0, n_documents: int = 12) -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, (n_queries, n_documents))
    shared = rng.normal(size=labels.shape)
    return labels, {name: quality * labels + shared + 0.7 * rng.normal(size=labels.shape) for name, quality in qualities.items()}


def systems(
    n_queries: int = 60, qualities: dict[str, float] | None = None, metrics: Any = METRICS, seed: int = 0, **options: Any
) -> dict[str, fr.Evaluation]:
    labels, scores = labels_and_scores(n_queries, qualities or {"old": 0.3, "new": 0.6}, seed)
    return {name: fr.evaluate(labels, each, metrics=metrics, **options) for name, each in scores.items()}


def per_query(one: list[float], other: list[float], **options: Any) -> dict[str, fr.Evaluation]:
    """Two systems whose P@10 per query is what is asked for, in tenths."""

    def judged(values: list[float]) -> fr.Evaluation:
        lists = [[1] * round(10 * value) + [0] * (10 - round(10 * value)) for value in values]
        return fr.evaluate(np.array(lists), metrics=["P@10"], **options)

    return {"one": judged(one), "other": judged(other)}


def compare(evaluations: Any, **options: Any) -> fr.Comparison:
    """`fr.compare`, with few resamples where none are named: as plain Python the kernels are slow."""
    return fr.compare(evaluations, **({"n_resamples": 200} | options))


def kinds(found: fr.Comparison) -> list[str]:
    return [note.kind for note in found.notes]


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

QUALITIES = {"a": 0.2, "b": 0.35, "c": 0.36, "d": 0.7}


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


# --- queries --------------------------------------------------------------------------------------------------------------------


def of_queries(ids: list[Any], seed: int = 0) -> fr.Evaluation:
    """Each query's rankings follow from its id alone."""
    parts = [labels_and_scores(1, {"s": 0.5}, seed=1000 * seed + int(str(each).removeprefix("q"))) for each in ids]
    labels = np.concatenate([labels[0] for labels, _ in parts])
    scores = np.concatenate([scores["s"][0] for _, scores in parts])
    return fr.evaluate(labels, scores, query_ids=np.repeat(np.array(ids), 12), metrics=["nDCG@10"])


def test_queries_are_matched_by_id_in_any_order() -> None:
    ids = [f"q{i}" for i in range(20)]
    one, other, reversed_other = of_queries(ids), of_queries(ids, 1), of_queries(ids[::-1], 1)
    assert compare({"x": one, "y": other}).to_json() == compare({"x": one, "y": reversed_other}).to_json()


def test_queries_of_one_system_alone_are_counted_and_named_never_filled_in() -> None:
    one, other = of_queries([f"q{i}" for i in range(20)]), of_queries([f"q{i}" for i in range(5, 30)], 1)
    found = compare({"x": one, "y": other})
    assert found.n_queries == 15
    assert found.query_ids.to_pylist() == [f"q{i}" for i in range(5, 20)]
    assert found.left_out["x"].count == 5
    assert found.left_out["y"].examples == ("q20", "q21", "q22")
    message = next(note.message for note in found.notes if note.kind == "left_out")
    assert "5 queries of x left out" in message
    assert "q0, q1, q2, …" in message


def test_numbers_and_their_decimal_text_are_the_same_query() -> None:
    numbers = of_queries(list(range(20)))
    small = fr.Evaluation(
        numbers.metrics, numbers.convention, values=numbers.values, n_queries=20, no_relevant=(0,),
        query_ids=numbers.query_ids.cast("int16"),
    )  # fmt: skip
    text = fr.Evaluation(
        numbers.metrics, numbers.convention, values=numbers.values, n_queries=20, no_relevant=(0,),
        query_ids=numbers.query_ids.cast("string").dictionary_encode(),
    )  # fmt: skip
    for other in (small, text):
        found = compare({"numbers": numbers, "other": other})
        assert found.n_queries == 20
        assert found.differences[0].verdict == "identical"


def test_no_query_in_common_is_an_error_with_one_of_each_side() -> None:
    with pytest.raises(InputError, match=r"no query in common: for instance 'q1' \(.*\) in 'x', 'q2'"):
        compare({"x": of_queries(["q1"]), "y": of_queries(["q2"])})


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        (10, 12, "different numbers of queries (10, 12)"),
        (0, 0, "no query"),
    ],
)
def test_queries_without_ids_are_matched_by_place_if_at_all(one: int, other: int, words: str) -> None:
    evaluations = {name: fr.evaluate(np.ones((n, 3)), metrics=["RR"]) for name, n in (("x", one), ("y", other))}
    with pytest.raises(InputError) as raised:
        compare(evaluations)
    assert words in str(raised.value)


def test_ids_on_one_side_alone_are_an_error() -> None:
    plain = fr.evaluate(np.ones((3, 12)), metrics=["nDCG@10"])
    with pytest.raises(InputError, match="'x' has query ids and 'y' has none"):
        compare({"x": of_queries(["q1", "q2", "q3"]), "y": plain})


def test_an_id_that_stands_twice_is_an_error() -> None:
    one = of_queries(["q1", "q2"])
    twice = fr.Evaluation(
        one.metrics, one.convention, values=one.values, n_queries=2, no_relevant=(0,), query_ids=one.query_ids.take([0, 0])
    )
    with pytest.raises(InputError, match="two queries of one id"):
        compare({"x": one, "y": twice})


def test_an_evaluation_without_any_of_the_queries_is_an_error() -> None:
    one = of_queries(["q1"])
    empty = fr.Evaluation(one.metrics, one.convention, values=np.empty((0, 1)), n_queries=0, no_relevant=(0,), query_ids=one.query_ids[:0])
    with pytest.raises(InputError, match="none in 'y'"):
        compare({"x": one, "y": empty})


# --- formulas that differ -------------------------------------------------------------------------------------------------------


def test_other_formulas_are_an_error_that_names_the_difference() -> None:
    labels, scores = labels_and_scores(10, {"x": 0.5})

    def judged(**options: Any) -> fr.Evaluation:
        return fr.evaluate(labels, scores["x"], **({"metrics": ["nDCG@10", "RR"]} | options))

    for options, words in (
        ({"metrics": ["nDCG(gain='linear')@10", "RR"]}, r"nDCG@10 does not mean the same: gain='exp2' in 'a', gain='linear' in 'b'"),
        ({"ties": "worst"}, r"nDCG@10 does not mean the same: ties='average' in 'a', ties='worst' in 'b'"),
        ({"metrics": ["nDCG@5", "RR"]}, r"nDCG@10 is among the metrics of 'a', but not of 'b'"),
        ({"metrics": ["nDCG@10", "RR", "AP"]}, r"AP is among the metrics of 'b', but not of 'a'"),
        ({"convention": "sklearn", "metrics": ["nDCG(gain='exp2')@10", "RR(rel=1)"]}, r"compares scores as given, 'sklearn' as float64"),
    ):
        with pytest.raises(InputError, match=words):
            compare({"a": judged(), "b": judged(**options)})


def test_the_order_of_metrics_does_not_matter() -> None:
    labels, scores = labels_and_scores(20, {"x": 0.5, "y": 0.6})
    one = fr.evaluate(labels, scores["x"], metrics=["nDCG", "RR"])
    other = fr.evaluate(labels, scores["y"], metrics=["RR", "nDCG"])
    found = compare({"x": one, "y": other}, primary="RR")
    assert found.values[1, 0] == pytest.approx(other["nDCG"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"primary": "AP"}, "primary must be one of the metrics evaluated, nDCG@10, RR, P@1, not 'AP'"),
        ({"primary": "nonsense"}, "nonsense"),
        ({"baseline": "newest"}, "Did you mean 'new'"),
        ({"test": "permutations"}, "Did you mean 'permutation'"),
        ({"correction": "homl"}, "correction must be one of"),
        ({"interval": "BCa"}, "interval must be one of"),
        ({"confidence": 0}, "confidence"),
        ({"cluster": "user"}, "cluster must name a by= column"),
        ({"n_resamples": 10}, "n_resamples"),
        ({"seed": None}, "seed"),
    ],
)
def test_wrong_options_are_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as raised:
        compare(systems(n_queries=5), **options)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("wrong", [{}, None, [1, 2], {"a": 1, "b": 2}])
def test_what_is_no_dict_of_evaluations_is_an_error(wrong: Any) -> None:
    with pytest.raises(InputError, match="systems"):
        compare(wrong)


def test_evaluations_without_queries_cannot_be_compared() -> None:
    evaluator = fr.Evaluator(["RR"], per_query=False)
    evaluator.update([[1, 0]])
    with pytest.raises(InputError, match=r"'a' holds means alone|a holds means alone"):
        compare({"a": evaluator.result(), "b": evaluator.result()})


# --- weights, clusters, slices, queries without a value -------------------------------------------------------------------------


def test_weights_must_agree_and_count() -> None:
    w = np.arange(1.0, 61)
    weighted = systems(weights=w)
    found = compare(weighted, primary="nDCG@10", n_resamples=300)
    d = weighted["new"]["nDCG@10"] - weighted["old"]["nDCG@10"]
    mean = np.average(d, weights=w)
    assert found.differences[0].difference.estimate == pytest.approx(mean)
    assert found.differences[0].effect_size == pytest.approx(mean / math.sqrt(np.average((d - mean) ** 2, weights=w) * 60 / 59))
    with pytest.raises(InputError, match="weigh queries differently"):
        compare({"old": weighted["old"], "new": systems()["new"]})


def test_clusters_are_drawn_and_flipped_whole_and_make_no_slices() -> None:
    users = [f"user {i // 6}" for i in range(60)]
    evaluations = systems(by={"user": users})
    alone, together = (compare(evaluations, primary="RR", cluster=cluster, n_resamples=300) for cluster in (None, "user"))
    assert (alone.n_units, together.n_units) == (60, 10)
    assert together.slices == ()
    assert len(alone.slices) == 10
    assert "few_queries" in kinds(together)
    assert "10 clusters" in next(note.message for note in together.notes if note.kind == "few_queries")
    assert alone.differences[0].effect_size == together.differences[0].effect_size
    assert "clusters by user" in repr(together)


def test_slices_have_their_own_numbers_and_a_correction_over_all_of_them() -> None:
    part = ["x", "y", None] * 20
    size = ["long", "short"] * 30
    evaluations = systems(by={"part": part, "size": size})
    found = compare(evaluations, primary="nDCG@10", test="t", interval="t")
    assert [(each.column, each.value) for each in found.slices] == [
        ("part", "x"), ("part", "y"), ("part", None), ("size", "long"), ("size", "short"),
    ]  # fmt: skip
    old, new = (evaluations[name]["nDCG@10"] for name in ("old", "new"))
    for each, chosen in zip(found.slices, (slice(0, None, 3), slice(1, None, 3), slice(2, None, 3)), strict=False):
        test = stats.ttest_rel(new[chosen], old[chosen])
        assert each.found.p == pytest.approx(test.pvalue)
        assert each.found.difference.low == pytest.approx(test.confidence_interval(0.95).low)
    p = sorted(each.found.p for each in found.slices)
    assert min(each.found.p_corrected for each in found.slices) == pytest.approx(min(1, 5 * p[0]))


def test_slices_must_agree_between_systems() -> None:
    one, other = (systems(by={"part": part})[name] for part, name in ((["x", "y"] * 30, "old"), (["x", "x"] * 30, "new")))
    with pytest.raises(InputError, match="30 queries into different slices of 'part'"):
        compare({"old": one, "new": other})
    mixed = systems(by={"part": [1, 2] * 30})["new"]
    text = systems(by={"part": ["1", "2"] * 30})["old"]
    assert len(compare({"old": text, "new": mixed}, primary="RR", n_resamples=100).slices) == 2
    assert compare({"old": systems()["old"], "new": mixed}, primary="RR", n_resamples=100).slices[0].column == "part"


def test_a_column_of_too_many_values_makes_no_slices_and_a_note() -> None:
    n = MOST_SLICES + 1
    found = compare(systems(n_queries=n, by={"id": list(range(n))}), primary="RR", n_resamples=100)
    assert found.slices == ()
    assert f"id has {n} different values" in next(note.message for note in found.notes if note.kind == "many_slices")


def test_queries_without_a_value_are_left_out_of_a_metric_and_counted() -> None:
    labels, scores = labels_and_scores(40, {"old": 0.3, "new": 0.6})
    labels[:4] = 0
    by = {"part": ["empty"] * 4 + ["full"] * 36}
    skipped = {name: fr.evaluate(labels, each, metrics=["nDCG", "P@1"], no_relevant="skip", by=by) for name, each in scores.items()}
    found = compare(skipped, primary="nDCG")
    assert [each.n_queries for each in found.differences] == [36, 40]
    assert "4 queries without a value" in next(note.message for note in found.notes if note.kind == "skipped")
    assert [each.value for each in found.slices] == ["full"]
    only = compare({name: fr.evaluate(labels[4:], each[4:], metrics=["nDCG"]) for name, each in scores.items()})
    assert found.differences[0].difference == only.differences[0].difference


def test_a_nan_that_counts_is_an_error_with_a_cure() -> None:
    labels, scores = labels_and_scores(10, {"old": 0.3, "new": 0.6})
    labels[0] = 0
    with pytest.raises(InputError, match=r"NaN for 1 queries.*no_relevant='skip'"):
        compare({name: fr.evaluate(labels, each, metrics=["nDCG"], no_relevant="nan") for name, each in scores.items()})
    labels[:] = 0
    with pytest.raises(InputError, match="no query with a value"):
        compare({name: fr.evaluate(labels, each, metrics=["nDCG"], no_relevant="skip") for name, each in scores.items()})


# --- planning -------------------------------------------------------------------------------------------------------------------


def test_planning_says_what_the_public_functions_say() -> None:
    found = compare(systems(qualities=QUALITIES), primary="nDCG@10")
    for plan in found.planning:
        assert plan.level == pytest.approx(0.05 / 6)
        assert plan.needed == fr.queries_needed(plan.difference, plan.sd, confidence=1 - plan.level)
        assert plan.smallest == fr.smallest_difference(plan.n_queries, plan.sd, confidence=1 - plan.level)


def test_a_difference_that_no_one_could_see_needs_no_number_of_queries() -> None:
    found = compare(per_query([0.1, 0.9] * 20, [0.9, 0.1] * 20))
    assert found.planning[0].needed is None
    assert "would show a difference of" in found.verdict


# --- notes ----------------------------------------------------------------------------------------------------------------------


def test_few_queries_are_noted() -> None:
    assert "few_queries" in kinds(compare(systems(n_queries=20), primary="RR", n_resamples=100))
    assert "few_queries" not in kinds(compare(systems(n_queries=60), primary="RR", n_resamples=100))


def test_resamples_too_few_for_the_correction_are_noted() -> None:
    evaluations = systems(qualities=QUALITIES)
    message = next(note.message for note in compare(evaluations).notes if note.kind == "few_resamples")
    assert "n_resamples=360" in message  # 18 comparisons / 0.05
    assert "few_resamples" not in kinds(compare(evaluations, n_resamples=360))
    assert "few_resamples" not in kinds(compare(evaluations, n_resamples=100, test="t", interval="t"))


def test_few_queries_that_differ_are_noted() -> None:
    found = compare(per_query([0.5] * 100, [0.5] * 95 + [0.6] * 5), n_resamples=100)
    assert "differ on 5 queries of 100" in next(note.message for note in found.notes if note.kind == "few_changes")


def test_ties_that_could_turn_the_result_are_noted() -> None:
    labels, _ = labels_and_scores(60, {"x": 0.5})
    flat, ordered = np.zeros(labels.shape), np.round(0.1 * labels + np.random.default_rng(0).normal(size=labels.shape))
    unbounded = {name: fr.evaluate(labels, each, metrics=["nDCG@3"]) for name, each in (("flat", flat), ("rough", ordered))}
    assert "bounds=True" in next(note.message for note in compare(unbounded, n_resamples=100).notes if note.kind == "ties")
    bounded = {name: fr.evaluate(labels, each, metrics=["nDCG@3"], bounds=True) for name, each in (("flat", flat), ("rough", ordered))}
    message = next(note.message for note in compare(bounded, n_resamples=100).notes if note.kind == "ties")
    low = bounded["rough"].bounds.low.mean() - bounded["flat"].bounds.high.mean()
    high = bounded["rough"].bounds.high.mean() - bounded["flat"].bounds.low.mean()
    assert f"between {low:+.4f} and {high:+.4f}" in message


def test_ties_that_cannot_turn_the_result_are_not() -> None:
    evaluations = systems(n_queries=60, qualities={"old": 0.1, "new": 2.0}, bounds=True)
    assert "ties" not in kinds(compare(evaluations, primary="nDCG@10", n_resamples=100))


def test_unjudged_documents_that_could_turn_the_result_are_noted() -> None:
    labels, scores = labels_and_scores(60, {"old": 0.3, "new": 0.5})
    unjudged = np.random.default_rng(1).random(labels.shape) < 0.5
    holes = np.ma.MaskedArray(labels, unjudged)
    bounded = {name: fr.evaluate(holes, each, metrics=["P@3"], bounds=True) for name, each in scores.items()}
    message = next(note.message for note in compare(bounded, n_resamples=100).notes if note.kind == "unjudged")
    filled = {name: fr.evaluate(np.where(unjudged, 3, labels), each, metrics=["P@3"]).mean()["P@3"] for name, each in scores.items()}
    least = bounded["new"].mean()["P@3"] - filled["old"]
    assert f"{least:+.4f}" in message
    shares = {name: fr.evaluate(holes, each, metrics=["P@3", "Judged@3", "Judged@10"]) for name, each in scores.items()}
    messages = [note.message for note in compare(shares, primary="P@3", n_resamples=100).notes if note.kind == "unjudged"]
    assert len(messages) == 2
    assert all("Judged@3" in each for each in messages)


def test_bounds_of_unjudged_documents_are_the_values_of_filled_labels() -> None:
    labels, scores = labels_and_scores(40, {"x": 0.3})
    unjudged = np.random.default_rng(1).random(labels.shape) < 0.4
    labels[5] = 0
    holes = np.ma.MaskedArray(labels, unjudged)
    top = np.maximum(np.where(unjudged, 0, labels).max(axis=1, keepdims=True), 2)
    filled = fr.evaluate(np.where(unjudged, top, labels), scores["x"], metrics=["nDCG@5", "P(rel=2)@3", "AP"])
    result = fr.evaluate(holes, scores["x"], metrics=["nDCG@5", "P(rel=2)@3", "AP"], bounds=True)
    assert (result.bounds.if_relevant == filled.values).all()
    whole = fr.evaluate(labels, scores["x"], metrics=["nDCG@5"], bounds=True)
    assert (whole.bounds.if_relevant == whole.values).all()
    evaluator = fr.Evaluator(["nDCG@5", "P(rel=2)@3", "AP"], bounds=True)
    for rows in (slice(0, 15), slice(15, None)):
        evaluator.update(holes[rows], scores["x"][rows])
    assert (evaluator.result().bounds.if_relevant == filled.values).all()
    assert (fr.Evaluator.from_bytes(evaluator.to_bytes()).result().bounds.if_relevant == filled.values).all()


def test_bounds_of_runs_count_documents_that_the_qrels_lack() -> None:
    qrels, run = {"q": {"d1": 2, "d2": 0}}, {"q": {"d9": 3.0, "d1": 2.0, "d2": 1.0}}
    result = fr.evaluate_run(qrels, run, "P@1,RR", bounds=True)
    assert result.values.tolist() == [[0.0, 0.5]]
    assert result.bounds.if_relevant.tolist() == [[1.0, 1.0]]
    assert fr.evaluate_run(qrels, run, "P@1,RR").values.tolist() == result.values.tolist()


def test_a_cutoff_longer_than_the_lists_is_noted() -> None:
    found = compare(systems(metrics=["nDCG@100", "P@1"]), primary="nDCG@100", n_resamples=100)
    assert "60 of 60 lists are shorter" in next(note.message for note in found.notes if note.kind == "long_cutoff")
    assert "long_cutoff" not in kinds(compare(systems(metrics=["nDCG@100", "P@1"]), primary="P@1", n_resamples=100))


@pytest.mark.parametrize(("metric", "noted"), [("R@1000", True), ("R", True), ("R@10", False), ("nDCG@1000", False)])
def test_recall_at_a_depth_no_user_sees_is_noted(metric: str, noted: bool) -> None:
    assert ("deep_recall" in kinds(compare(systems(metrics=[metric]), n_resamples=100))) is noted


def test_queries_with_nothing_to_find_are_noted() -> None:
    labels, scores = labels_and_scores(40, {"old": 0.3, "new": 0.6})
    labels[:4] = 0
    for rule, word in (("zero", "count as 0"), ("one", "count as 1")):
        evaluations = {name: fr.evaluate(labels, each, metrics=["nDCG"], no_relevant=rule) for name, each in scores.items()}
        message = next(note.message for note in compare(evaluations, n_resamples=100).notes if note.kind == "no_relevant")
        assert word in message
        assert "4 queries" in message


def test_a_saturated_metric_is_noted_and_one_beyond_its_range_is_not_looked_at() -> None:
    found = compare(per_query([1.0] * 40, [1.0] * 39 + [0.9]), n_resamples=100)
    assert "97.5% of the queries" in next(note.message for note in found.notes if note.kind == "saturated")
    assert "saturated" not in kinds(compare(systems(metrics=["DCG"]), n_resamples=100))


# --- out ------------------------------------------------------------------------------------------------------------------------


def test_movers_are_the_queries_that_moved_most() -> None:
    found = compare(per_query([0.5, 0.5, 0.5, 0.5], [0.5, 0.9, 0.2, 0.6]))
    assert [(each.query_id, round(each.difference, 1)) for each in found.movers()] == [(1, 0.4), (2, -0.3), (3, 0.1)]
    assert [each.query_id for each in found.movers(n=1)] == [1]
    assert found.movers("other", "one")[0].difference == pytest.approx(-0.4)
    with pytest.raises(InputError, match="'three' is not among the systems"):
        found.movers("three")
    with pytest.raises(InputError, match="'RR' is not among the metrics"):
        found.movers(metric="RR")


@pytest.fixture(scope="module")
def two() -> fr.Comparison:
    return compare(systems(by={"part": ["x", None] * 30}), primary="nDCG@10", n_resamples=300)


@pytest.fixture(scope="module")
def four() -> fr.Comparison:
    return compare(systems(qualities=QUALITIES, by={"part": ["x", None] * 30}), primary="nDCG@10", test="anova", n_resamples=300)


@pytest.fixture(scope="module")
def untold() -> fr.Comparison:
    return compare(systems(qualities=QUALITIES, by={"part": ["x", None] * 30}), n_resamples=2000)


def test_json_is_strict_and_whole(two: fr.Comparison, four: fr.Comparison) -> None:
    for found in (two, four):
        told = json.loads(found.to_json(), parse_constant=pytest.fail)
        assert told["verdict"] == found.verdict
        assert [each["verdict"] for each in told["differences"]] == [each.verdict for each in found.differences]
        assert [each["watched"] for each in told["metrics"]] == [False, True, True]
        assert told["metrics"][0]["formula"] == found.metrics[0].formula
        assert len(told["slices"]) == len(found.slices)


def test_arrow_holds_a_row_per_difference(two: fr.Comparison) -> None:
    table = two.to_arrow()
    assert table.num_rows == len(two.differences) + len(two.slices)
    assert table.column("difference").to_pylist()[0] == two.differences[0].difference.estimate
    assert table.column("p").to_pylist()[1] is None
    assert json.loads(table.schema.metadata[b"fastrank"])["verdict"] == two.verdict
    plain = compare(systems(), primary="RR", n_resamples=100).to_arrow()
    assert "by" not in plain.column_names


def test_csv_has_every_number_in_full(two: fr.Comparison) -> None:
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = list(csv.DictReader(io.StringIO(comparison_text(two, form)), delimiter=delimiter))
        assert float(rows[0]["difference"]) == two.differences[0].difference.estimate
        assert (rows[1]["p"], rows[1]["verdict"]) == ("", "")
        assert [row["value"] for row in rows[3:]] == ["x", "null"]


@pytest.mark.parametrize("form", [*FORMS, "html"])
def test_every_form_says_the_verdict_or_holds_it(two: fr.Comparison, four: fr.Comparison, untold: fr.Comparison, form: str) -> None:
    for found in (two, four, untold):
        text = comparison_text(found, form)
        assert "better" in text
        assert not text.endswith("\n")


def test_the_table_shows_what_there_is(two: fr.Comparison, four: fr.Comparison, untold: fr.Comparison) -> None:
    shown = repr(two)
    for words in ("nDCG@10 (decides)", "watched", "won / tied /", "by part", "how many queries", "moved most", "permutation test", "dz"):
        assert words in shown
    shown = repr(four)
    for words in ("analysis of variance", "discriminative power", "Kendall's tau", "d − a", "watched: difference"):
        assert words in shown
    assert "Holm's correction, 18 comparisons" in repr(untold)
    assert two._repr_html_().startswith('<div class="fastrank">')


def test_latex_is_booktabs_and_escapes(two: fr.Comparison) -> None:
    text = comparison_text(two, "latex")
    assert r"\toprule" in text
    assert "−" not in text
    assert "5\\%" in text


def test_an_unknown_form_is_an_error(two: fr.Comparison) -> None:
    with pytest.raises(InputError, match="format must be one of"):
        comparison_text(two, "pdf")


def test_numbers_in_words() -> None:
    assert [p_text(p) for p in (1.0, 0.99951, 0.0321, 1e-5, 5e-324)] == ["p = 1", "p = 1", "p = 0.032", "p = 1e-05", "p < 1e-300"]
    assert [about(n) for n in (7, 92, 872, 2798, 123_456)] == ["7", "92", "870", "2,800", "120,000"]


def test_what_has_no_number_is_a_dash_or_an_infinity() -> None:
    from fastrank.report import compared

    assert compared.number(math.nan) == "–"
    assert compared.signed(math.inf) == "∞"
    assert compared.signed(-math.inf) == "−∞"
    assert compared.span(math.nan, 1.0) == "–"
    assert compared.percent(math.nan) == "–"
    assert compared.p_cell(None) == ""


def test_one_query_is_compared_without_an_interval() -> None:
    found = compare(per_query([0.5], [0.6]))
    assert found.differences[0].p == 1.0
    assert math.isnan(found.differences[0].difference.low)
    assert found.planning == ()
    assert json.loads(found.to_json())["differences"][0]["difference"]["low"] is None
    assert repr(found)
    assert compare(per_query([0.5], [0.6]), test="anova").anova == {}


# --- documents ------------------------------------------------------------------------------------------------------------------


def test_documents_of_queries_are_found_again_in_tables(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = ["q1", "q1", "q2", "q2", "q1"]  # q1 stands apart
    columns = {"query_id": ids, "doc_id": list("abcde"), "label": [2, 0, 1, None, 1], "s": [0.5, 0.7, None, 0.1, 0.2], "t": [1.0] * 5}
    path = tmp_path / "predictions.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    sources = {"s": (path, "s"), "t": (path, "t")}
    found = from_tables(sources, ["q1"], query="query_id", label="label", doc="doc_id")
    assert set(found) == {("s", "q1"), ("t", "q1")}
    assert found["s", "q1"] == Documents([2, 0, 1], [0.5, 0.7, 0.2], ["a", "b", "e"])
    whole = from_tables({"s": (path, "s")}, ["q2"], query="query_id", label="label")
    assert whole["s", "q2"].doc_ids is None
    explained = explain_with(found, fr.parse_metric("nDCG@2"), convention="fastrank")
    expected = fr.evaluate([2, 0, 1], [0.5, 0.7, 0.2], metrics=["nDCG@2"]).mean()["nDCG@2"]
    worked = explained("s", "q1")
    assert worked is not None
    assert worked.value == expected
    assert explained("s", "q7") is None


def test_documents_of_queries_are_found_again_in_runs() -> None:
    qrels = fr.Qrels.read(b"1 0 a 2\n1 0 b 1\n2 0 a 1\n")
    run = fr.Run.read(b"1 Q0 c 1 0.9 x\n1 Q0 a 2 0.5 x\n2 Q0 b 1 0.5 x\n")
    found = from_runs(qrels, {"x": run}, [1])
    assert found == {("x", "1"): Documents([None, 2.0, 1.0], [pytest.approx(0.9), pytest.approx(0.5), None], ["c", "a", "b"])}
    explained = explain_with(found, fr.parse_metric("nDCG@5", convention="trec_eval"), convention="trec_eval")
    worked = explained("x", 1)
    assert worked is not None
    assert worked.value == pytest.approx(fr.evaluate_run(qrels, run, "nDCG@5")["nDCG@5"][0])


def test_queries_that_stand_apart_in_a_stream_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    from fastrank.comparison import documents
    from fastrank.io.tables import Scattered, read_columns

    def once_through(*arguments: Any, regroup: bool = False, **roles: Any) -> Any:
        if not regroup:
            raise Scattered
        return read_columns(*arguments, regroup=regroup, **roles)

    monkeypatch.setattr(documents, "read_columns", once_through)
    path = tmp_path / "table.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"query_id": ["a", "b", "a"], "label": [1, 0, 2], "s": [0.1, 0.2, 0.3]}), path)
    found = from_tables({"s": (path, "s")}, ["a"], query="query_id", label="label")
    assert found["s", "a"].labels == [1, 2]


def test_categories_are_slices_by_their_values() -> None:
    import pyarrow as pa

    part = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20), pa.array(["x", "x", "y"]))
    found = compare(systems(by={"part": part}), primary="RR")
    assert [(each.value, each.found.n_queries) for each in found.slices] == [("x", 40), ("y", 20)]

"""`compare`: which queries are compared, by which formulas, weighted, clustered and sliced; and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from comparing import compare, kinds, labels_and_scores, systems
from scipy import stats

import fastrank as fr
from fastrank.comparison.verdict import MOST_SLICES
from fastrank.errors import InputError

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

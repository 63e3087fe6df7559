"""`compare`: what it plans, and what it warns of."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import QUALITIES, compare, kinds, labels_and_scores, per_query, systems

import fastrank as fr

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


def test_a_mean_that_rests_on_few_queries_is_noted() -> None:
    found = compare(per_query([0.0] * 60 + [0.5] * 5, [0.0] * 30 + [0.5] * 35))
    [told] = [note for note in found.notes if note.kind == "few_values"]
    assert told.count == 5
    assert told.message.startswith("P@10 of one is 0 on all but 5 queries of 65: with fewer than 20")
    assert "few_values" not in kinds(compare(per_query([0.0] * 40 + [0.5] * 25, [0.0] * 30 + [0.5] * 35)))


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

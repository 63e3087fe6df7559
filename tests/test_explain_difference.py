"""`explain_difference`: which choice moves a number, by data on which the answer is known beforehand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.cli import run
from fastrank.comparison.choices import gaps, separate

LOG3 = np.log2(3)


def explained(metric: str, between: Any, labels: Any, scores: Any = None, **options: Any) -> fr.Explanation:
    return fr.explain_difference(labels, scores, metric=metric, between=between, **options)


# Each choice on data that show it and nothing else: metric, sides, labels, scores.
SINGLE: dict[str, tuple[str, tuple[str, str], Any, Any]] = {
    "gain": ("nDCG", ("fastrank", "sklearn"), [[2, 1, 3]], [[3, 2, 1]]),
    "ties": ("RR", ("fastrank", "catboost"), [[1, 0]], [[7, 7]]),
    "no_relevant": ("nDCG@5", ("xgboost", "xgboost-"), [[0, 0], [1, 0]], [[2, 1], [1, 2]]),
    "denominator": ("AP@2", ("lightgbm", "rax"), [[1, 1, 1]], [[3, 2, 1]]),
    "rel": ("NumRel", ("fastrank", "catboost"), [[0.7, 1]], [[2, 1]]),
    "k": ("nDCG", ("lightgbm", "xgboost"), [[0] * 40 + [1]], [list(range(41, 0, -1))]),
    "scores": ("RR", ("lightgbm", "xgboost"), [[0, 1]], [[1.0, 1.0 + 2**-30]]),
    "labels": ("DCG", ("fastrank", "lightgbm"), [[0.7]], [[1.0]]),
    "above": ("R", ("fastrank", "torchmetrics"), [[1, 1]], [[1.0, -1.0]]),
    "trec": ("DCG", ("sklearn", "ranx"), [[1, -1]], [[2.0, 1.0]]),
}


@pytest.mark.parametrize("choice", SINGLE)
def test_a_single_choice_takes_all_of_the_difference(choice: str) -> None:
    metric, between, labels, scores = SINGLE[choice]
    found = explained(metric, between, labels, scores)
    sides = [fr.evaluate(labels, scores, metrics=metric, convention=side) for side in between]
    means = [next(iter(side.mean().values())) for side in sides]
    assert found.means == tuple(means)
    assert found.difference == means[1] - means[0] != 0
    assert [share.choices for share in found.shares] == [(choice,)]
    assert found.shares[0].shift == pytest.approx(found.difference, rel=1e-12)
    named = {each.name: each for each in found.choices}
    assert named[choice].alone == found.shares[0].shift
    assert all(each.alone == 0 or each.name == choice for each in found.choices if each.alone is not None)
    assert "all of the difference" in found.sentence
    assert " against ".join(named[choice].values) in found.sentence


def test_the_shares_add_up_to_the_difference_and_name_what_was_changed() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, (200, 15)) * (rng.random((200, 15)) < 0.2)
    scores = np.round(rng.normal(size=(200, 15)))
    for metric, between in (("ndcg@10", ("lightgbm", "sklearn")), ("AP@5", ("torchmetrics", "lightgbm")), ("P@20", ("rax", "fastrank"))):
        found = explained(metric, between, labels, scores)
        assert sum(share.shift for share in found.shares) == pytest.approx(found.difference, abs=1e-12)
        one, other = (fr.evaluate(labels, scores, metrics=metric, convention=side).values[:, 0] for side in between)
        assert found.n_moved == np.count_nonzero(np.abs(one - other) > 1e-12)
        assert [mover.values for mover in found.movers] == [(one[mover.query], other[mover.query]) for mover in found.movers]
        away = [abs(mover.difference) for mover in found.movers]
        assert away == sorted(away, reverse=True)
        assert away[0] == np.max(np.abs(one - other))
    changed = {share.choices for share in explained("ndcg@10", ("lightgbm", "sklearn"), labels, scores).shares}
    assert changed == {("ties",), ("gain",), ("no_relevant",)}


def test_effects_that_cancel_are_told_though_the_means_agree() -> None:
    # One query gains by the gain what another loses by it: DCG 3 + 1 against 2 + 2 per two queries.
    mirrored = fr.explain_difference(
        [[2, 0], [1, 0]],
        [[2, 1], [2, 1]],
        metric="DCG",
        between=(fr.Convention("up", "a test", gain={0: 0, 1: 1, 2: 2}), fr.Convention("down", "a test", gain={0: 0, 1: 2, 2: 1})),
    )
    assert mirrored.difference == 0
    assert mirrored.n_moved == 2
    assert [share.choices for share in mirrored.shares] == [("gain",)]


def test_choices_that_are_defined_only_together_are_switched_together() -> None:
    # AP over its hits has no mean over the orders of equal scores, so neither side can take one of the two choices alone.
    labels, scores = [[1, 0, 1, 1], [0, 1, 0, 0]], [[4, 3, 2, 1], [4, 3, 2, 1]]
    found = explained("AP@2", ("fastrank", "torchmetrics"), labels, scores)
    assert found.shares[0].choices == ("denominator", "ties")
    assert next(each for each in found.choices if each.name == "denominator").alone is None
    assert "switched together" in found.sentence


@pytest.mark.parametrize(("together", "expected"), [(1, []), (2, []), (3, [("a", "b", "c")])])
def test_as_many_choices_are_switched_together_as_it_takes(together: int, expected: list[tuple[str, ...]]) -> None:
    values = {0: 0.0, 1: 0.0, 2: 0.0, 3: 1.0}
    steps = separate(lambda choices: np.array([values[len(choices)]]), ("a", "b", "c"), np.array([1.0]), together=together)
    assert [step.choices for step in steps] == expected


def test_both_sides_alike() -> None:
    same = explained("nDCG@5", ("lightgbm", "lightgbm"), [[1, 0]], [[1, 2]])
    assert same.choices == ()
    assert same.shares == ()
    assert same.sentence == "nDCG@5 is 0.6309 under both lightgbm and lightgbm, which make the same choices."
    silent = explained("nDCG", ("lightgbm", "xgboost"), [[1, 0]], [[1.0, 2.0]])
    assert silent.n_moved == 0
    assert silent.sentence.endswith("they differ in the cutoff and width of scores, none of which moves a query here.")
    alone = explained("nDCG@1", ("xgboost", "xgboost-"), [[1, 0]], [[1.0, 2.0]])
    assert alone.sentence.endswith("they differ in the value of a query with nothing to find, which moves no query here.")


def test_a_query_that_is_left_out_counts_as_moved() -> None:
    skip = fr.conventions["fastrank"].override(no_relevant="skip")
    found = explained("AP", ("fastrank", skip), [[0, 0], [1, 0]], [[2, 1], [2, 1]])
    assert found.means == (0.5, 1.0)
    assert found.n_moved == 1
    assert [share.choices for share in found.shares] == [("no_relevant",)]
    assert np.isnan(found.movers[0].values[1])
    assert gaps(np.array([np.nan, 1.0, 1.0]), np.array([np.nan, np.nan, 1.0 + 1e-14])).tolist() == [0, 1, 0]


def test_weights_and_ids_reach_the_numbers() -> None:
    options = {"offsets": [0, 2, 4], "weights": [3, 1]}
    found = fr.explain_difference([1, 0, 1, 0], [1, 1, 2, 1], metric="RR", between=("fastrank", "catboost"), **options)
    assert found.means == (3 / 4 * 3 / 4 + 1 / 4, 3 / 4 * 1 / 2 + 1 / 4)
    by_id = fr.explain_difference([1, 0], [1, 1], metric="RR", between=("trec_eval", "fastrank"), query_ids=["x", "x"], doc_ids=["a", "b"])
    assert by_id.movers[0].query == "x"
    assert by_id.means == (1 / 2, 3 / 4)


QRELS, RUN = {"q1": {"a": 1, "b": 0}, "q2": {"c": 1}}, {"q1": {"b": 1.0, "a": 1.0 + 2**-30}, "q2": {"c": 2.0}}


def test_qrels_and_a_run(tmp_path: Path) -> None:
    qrels, ranked = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("".join(f"{q} 0 {doc} {label}\n" for q, docs in QRELS.items() for doc, label in docs.items()))
    ranked.write_text("".join(f"{q} Q0 {doc} 0 {score!r} me\n" for q, docs in RUN.items() for doc, score in docs.items()))
    read = fr.Qrels.read(qrels), fr.Run.read(ranked)
    for pair in ((QRELS, RUN), (qrels, ranked), (str(qrels), str(ranked)), read):
        found = explained("recip_rank", ("trec_eval", "trec_eval9"), *pair)
        assert found.means == (1.0, 0.75)
        assert [share.choices for share in found.shares] == [("scores",)]
        assert found.movers[0].query == "q1"


def test_two_evaluations_without_their_data() -> None:
    labels, scores = [[2, 1, 3], [0, 0, 0]], [[3, 2, 1], [3, 2, 1]]
    one, other = (fr.evaluate(labels, scores, metrics="nDCG,RR", convention=name) for name in ("fastrank", "sklearn"))
    found = fr.explain_difference(one, other, metric="nDCG")
    assert {each.name for each in found.choices} == {"gain", "scores", "labels"}
    assert found.shares == ()
    assert "They differ in the gain (exp2 against linear)" in found.sentence
    assert "give labels and scores" in found.sentence
    # With the data, the same two evaluations.
    shown = explained("nDCG", (one, other), labels, scores)
    assert [share.choices for share in shown.shares] == [("gain",)]
    # One choice alone can be nothing else.
    dashed = [fr.evaluate(labels, scores, metrics="nDCG", convention=name) for name in ("xgboost", "xgboost-")]
    single = fr.explain_difference(*dashed)
    assert [share.choices for share in single.shares] == [("no_relevant",)]
    assert single.difference == single.shares[0].shift == pytest.approx(-0.5)
    # No choice at all: the data are other ones.
    elsewhere = [fr.evaluate(labels, s, metrics="nDCG") for s in (scores, [[1, 2, 3], [1, 2, 3]])]
    assert fr.explain_difference(*elsewhere).sentence.endswith("both make the same choices: they saw other data on 1 of 2 queries.")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fr.explain_difference([1, 0], between=("rax", "ranx")), "metric must be the name of one metric"),
        (lambda: fr.explain_difference([1, 0], metric="RR"), "between must be two sides, such as"),
        (lambda: fr.explain_difference([1, 0], metric="RR", between="rax"), "between must be two sides, such as"),
        (lambda: fr.explain_difference([1, 0], metric="RR", between=("rax", "rix")), "convention must be one of"),
        (lambda: fr.explain_difference([2, 0], metric="AP", between=("rax", "xgboost")), "takes labels 0 and 1 only, not 2"),
        (lambda: fr.explain_difference(QRELS, RUN, [0, 2], metric="AP", between=("rax", "ranx")), "leave out offsets, sizes"),
        (lambda: fr.explain_difference(two()[0], [1, 2]), "two evaluations are compared as explain_difference(one, other)"),
        (lambda: fr.explain_difference(*two()), "metric must say which of the metrics is meant: RR, AP."),
        (lambda: fr.explain_difference(*two(), metric="nDCG"), "'nDCG' is not among the metrics: RR, AP. Name one"),
        (lambda: fr.explain_difference(two()[0], two(3)[0], metric="RR"), "the evaluations have other queries, 2 and 3"),
        (lambda: explained("RR", two(), [[1, 0], [0, 1]], [[1, 2], [2, 1]]), "an evaluation in between= has other values"),
        (lambda: explained("RR", two(), [[1, 0]], [[1, 2]]), "an evaluation in between= has other values"),
        (
            lambda: fr.explain_difference(*(fr.evaluate([1, 0], metrics=name) for name in ("RR", "AP"))),
            "RR and AP are two metrics, not one by two formulas",
        ),
    ],
)
def test_what_cannot_be_explained_says_why(call: Any, message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        call()


def two(n: int = 2) -> list[fr.Evaluation]:
    return [fr.evaluate([[1, 0]] * n, [[1, 1]] * n, metrics="RR,AP", convention=name) for name in ("fastrank", "catboost")]


def test_table_dict_and_page_show_the_same_numbers() -> None:
    found = explained("nDCG@2", ("lightgbm", "sklearn"), [[2, 1, 0], [0, 0, 0]], [[1, 2, 3], [3, 2, 1]])
    text = repr(found)
    for part in ("switched", "alone", "in turn", "order of equal scores", "queries that move most, of 2", "gain='exp2'"):
        assert part in " ".join(text.split())
    assert " ".join(text.split()).startswith(found.sentence)
    as_dict = found.to_dict()
    assert json.loads(found.to_json()) == json.loads(json.dumps(as_dict))
    assert as_dict["sentence"] == found.sentence
    assert as_dict["difference"] == found.difference
    assert [each["name"] for each in as_dict["choices"]] == [each.name for each in found.choices]
    assert found.sentence.split(":")[0] in found._repr_html_()
    assert "<table" in found._repr_html_()


# --- the command line ------------------------------------------------------------------------------------------------------------


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["explain", "nDCG@3", "--between", "lightgbm,sklearn"]
    assert run([*command, "--labels", "2,0,3", "--scores", "3,2,1"]) == (0, "")
    out = capsys.readouterr().out
    expected = explained("nDCG@3", ("lightgbm", "sklearn"), [2, 0, 3], [3, 2, 1])
    assert " ".join(out.split()).startswith(expected.sentence)

    table = tmp_path / "table.csv"
    table.write_text("q,y,s\n1,2,3\n1,0,2\n1,3,1\n")
    assert run([*command, str(table), "--query", "q", "--label", "y", "--score", "s"]) == (0, "")
    assert capsys.readouterr().out.replace("1        0.", "0        0.") == out  # the query has a name there

    qrels, ranked = tmp_path / "qrels", tmp_path / "run"
    qrels.write_text("1 0 a 2\n1 0 b 0\n1 0 c 3\n")
    ranked.write_text("1 Q0 a 1 3 me\n1 Q0 b 2 2 me\n1 Q0 c 3 1 me\n")
    assert run([*command, str(ranked), "--qrels", str(qrels)]) == (0, "")
    assert " ".join(capsys.readouterr().out.split()).startswith(expected.sentence)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "RR"], "give --labels"),
        (["explain", "RR", "file.csv"], "a file is explained with --between"),
        (["explain", "RR", "--labels", "1", "--between", "rax"], "--between takes two conventions"),
        (["explain", "RR", "file.csv", "--labels", "1", "--between", "rax,ranx"], "give --labels or a file"),
        (["explain", "RR", "--qrels", "x", "--labels", "1", "--between", "rax,ranx"], "--qrels needs a run"),
        (["explain", "RR", "--labels", "1", "--between", "rax,ranx", "--ties", "best"], "--ties is settled by the two conventions"),
    ],
)
def test_command_line_usage(arguments: list[str], message: str) -> None:
    code, line = run(arguments)
    assert code == 2
    assert message in line

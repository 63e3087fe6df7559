"""Conventions: each choice on which libraries differ, by an input so small that the number can be worked out by hand."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank import metrics as m
from fastrank.convention import Convention

LOG3 = np.log2(3)
ARRAYS = ("fastrank", "lightgbm", "xgboost", "xgboost-", "catboost", "sklearn", "torchmetrics", "rax", "ranx")


def value(convention: str | Convention, metric: Any, labels: Any, scores: Any = None, **options: Any) -> float:
    return float(fr.evaluate(labels, scores, metrics=metric, convention=convention, **options).values[0, 0])


def test_every_convention_is_named_and_says_what_it_reproduces() -> None:
    assert set(ARRAYS) <= set(fr.conventions)
    for name, convention in fr.conventions.items():
        assert convention.name == name
        assert convention.source


def test_the_table_of_conventions_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        fr.conventions["fastrank"] = fr.conventions["sklearn"]  # type: ignore[index]
    with pytest.raises(dataclasses.FrozenInstanceError):
        fr.conventions["fastrank"].gain = "linear"  # type: ignore[misc]


# Each choice: the metric, labels and scores of one query, and its value under each convention.
CHOICES: dict[str, tuple[str, list[float], list[float] | None, dict[str, float]]] = {
    "gain": (
        "DCG",
        [2],
        None,
        {name: 2 if name in ("catboost", "sklearn", "torchmetrics", "ranx") else 3 for name in ARRAYS},
    ),
    "discount": ("DCG", [0, 1], None, dict.fromkeys(ARRAYS, 1 / LOG3)),
    "equal scores": (
        "RR",
        [0, 1, 0],
        [7, 7, 7],
        {
            "fastrank": (1 + 1 / 2 + 1 / 3) / 3,
            "lightgbm": 1 / 2,
            "xgboost": 1 / 2,
            "xgboost-": 1 / 2,
            "catboost": 1 / 3,
            "sklearn": (1 + 1 / 2 + 1 / 3) / 3,
            "torchmetrics": (1 + 1 / 2 + 1 / 3) / 3,
            "rax": 1 / 2,
            "ranx": 1 / 2,
        },
    ),
    "NDCG of nothing": ("nDCG", [0, 0], None, {name: int(name in ("lightgbm", "xgboost", "catboost")) for name in ARRAYS}),
    "AP of nothing": ("AP", [0, 0], None, {name: int(name in ("lightgbm", "xgboost")) for name in ARRAYS if name != "sklearn"}),
    "recall of nothing": ("R", [0, 0], None, {"fastrank": 0, "catboost": 1, "torchmetrics": 0, "rax": 0, "ranx": 0}),
    "RR of nothing": ("RR", [0, 0], None, {"fastrank": 0, "catboost": 0, "torchmetrics": 0, "rax": 0, "ranx": 0}),
    # Three relevant documents, two of them in a list of which k sees two: P = 3, min(P, k) = 2.
    "denominator of AP": (
        "AP@2",
        [1, 1, 1],
        None,
        {"fastrank": 2 / 3, "lightgbm": 1, "xgboost": 1, "xgboost-": 1, "catboost": 1, "torchmetrics": 1, "rax": 2 / 3, "ranx": 2 / 3},
    ),
    # Four relevant documents, one of them in the top two: its precision is 1, and 4, 2 or 1 is the denominator.
    "denominator of AP with one hit": (
        "AP@2",
        [1, 0, 1, 1, 1],
        None,
        {"fastrank": 1 / 4, "lightgbm": 1 / 2, "xgboost": 1 / 2, "catboost": 1 / 2, "torchmetrics": 1, "rax": 1 / 4, "ranx": 1 / 4},
    ),
    "P beyond the list": (
        "P@4",
        [1, 0],
        None,
        {"fastrank": 1 / 4, "xgboost": 1 / 2, "xgboost-": 1 / 2, "catboost": 1 / 2, "torchmetrics": 1 / 4, "rax": 1 / 2, "ranx": 1 / 4},
    ),
    "relevant": (
        "NumRel",
        [0.5, 0.6, 1],
        None,
        {"fastrank": 1, "lightgbm": 2, "catboost": 2, "sklearn": 3, "torchmetrics": 3, "rax": 1, "ranx": 1},
    ),
    "width of scores": (
        "RR",
        [0, 1],
        [1.0, 1.0 + 2**-30],
        {"fastrank": 1, "lightgbm": 1, "xgboost": 1 / 2, "catboost": 1, "sklearn": 1, "torchmetrics": 3 / 4, "rax": 1 / 2, "ranx": 1},
    ),
    # The second hit of three documents has a score below 0.
    "scores from 0 down, AP": ("AP", [1, 0, 1], [2, 0, -1], {"fastrank": 5 / 6, "torchmetrics": 1, "rax": 5 / 6, "ranx": 5 / 6}),
    "scores from 0 down, RR": ("RR", [0, 1, 1], [2, 0, -1], {"fastrank": 1 / 2, "torchmetrics": 0, "rax": 1 / 2, "ranx": 1 / 2}),
    "scores from 0 down, R": ("R", [1, 0, 1], [2, 0, -1], {"fastrank": 1, "torchmetrics": 1 / 2, "rax": 1, "ranx": 1}),
    "scores from 0 down, P": ("P", [1, 0, 1], [2, 0, -1], {"fastrank": 2 / 3, "torchmetrics": 1 / 3, "rax": 2 / 3, "ranx": 2 / 3}),
    "scores from 0 down, success": ("Success", [0, 1], [2, -1], {"fastrank": 1, "torchmetrics": 1, "rax": 1, "ranx": 1}),
    "pairs of equal scores": ("Concordance", [1, 0], [3, 3], {"fastrank": 1 / 2, "catboost": 1 / 2, "sklearn": 1 / 2, "rax": 0}),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_each_choice_of_each_convention(choice: str) -> None:
    metric, labels, scores, expected = CHOICES[choice]
    found = {name: value(name, metric, labels, scores) for name in expected}
    assert found == pytest.approx(expected, rel=1e-15)


def test_min_k_retrieved_counts_the_documents_of_the_list() -> None:
    # Three relevant documents, one retrieved: LightGBM and CatBoost know no others, XGBoost's min(P, k) does not look.
    labels, scores = [1, 1, 1], [5, None, None]
    found = {name: value(name, "AP@2", labels, scores) for name in ("fastrank", "xgboost", "lightgbm", "catboost")}
    assert found == {"fastrank": 1 / 3, "xgboost": 1 / 2, "lightgbm": 1, "catboost": 1}


@pytest.mark.parametrize("name", ["xgboost", "xgboost-"])
def test_bare_names_of_xgboost_are_cut_at_32(name: str) -> None:
    labels = np.zeros(40)
    labels[32] = 1
    for metric in ("nDCG", "AP", "P"):
        assert value(name, metric, labels) == 0
        assert value(name, f"{metric}@33", labels) > 0
        assert value("lightgbm", metric, labels) > 0
    assert str(fr.parse_metric("ndcg", name)).endswith("@32")
    assert value(name, "RR", labels) == 1 / 33  # a metric that XGBoost does not have keeps its whole list


def test_the_suffix_of_xgboost_stands_in_names_too() -> None:
    data = {"labels": [0, 1, 0, 0, 0, 0], "scores": [3, 2, 1, 3, 2, 1], "sizes": [3, 3]}
    metrics = ["ndcg@5", "ndcg@5-", "map@5", "map@5-", "pre@2"] if "pre" in names() else ["ndcg@5", "ndcg@5-", "map@5", "map@5-", "P@2"]
    means = list(fr.evaluate(**data, metrics=metrics, convention="xgboost").mean().values())
    assert means == pytest.approx([(1 / LOG3 + 1) / 2, 1 / LOG3 / 2, (1 / 2 + 1) / 2, 1 / 2 / 2, 1 / 2 / 2], rel=1e-15)


def names() -> set[str]:
    return {alias for info in fr.list_metrics() for alias in (info.name, *info.aliases)}


@pytest.mark.parametrize("name", ["lightgbm", "xgboost", "catboost"])
def test_libraries_that_hold_labels_as_float32_take_gains_of_those(name: str) -> None:
    held = float(np.float32(0.7))
    gain = held if name == "catboost" else 2**held - 1
    assert value(name, "DCG", [0.7]) == gain
    assert value("fastrank", "DCG", [0.7]) == 2**0.7 - 1
    # Whole numbers beyond float32 are rounded as well.
    assert value(name, m.DCG(gain="linear"), np.array([2**24 + 1])) == 2**24
    assert value("fastrank", m.DCG(gain="linear"), np.array([2**24 + 1])) == 2**24 + 1


def test_xgboost_takes_labels_of_two_kinds_alone_for_ap_and_precision() -> None:
    for metric in ("AP", "P@2"):
        for labels in ([1, 2], [0.5, 1]):
            with pytest.raises(
                fr.InputError, match=r"takes? labels 0 and 1 only, not (2|0\.5)\. Binarise the labels, or use another convention"
            ):
                value("xgboost", metric, labels)
    assert value("xgboost", "nDCG", [2, 1]) == 1
    assert value("xgboost", "AP", [0, 1, 0]) == 1 / 2


def test_negative_labels_are_legal_where_the_library_takes_them() -> None:
    ranked = [2.0, -1.0]
    for name in ("xgboost", "catboost", "sklearn", "torchmetrics", "rax"):
        assert value(name, m.DCG(gain="linear"), ranked) == 2 - 1 / LOG3
    assert value("ranx", m.DCG(), ranked) == 2  # a label below 0 gains nothing there
    for name in ("fastrank", "lightgbm"):
        with pytest.raises(fr.InputError, match=f"labels must not be negative under the {name} convention"):
            value(name, "DCG", ranked)
    with pytest.raises(fr.InputError, match="below 0"):
        value("sklearn", "nDCG", ranked)


def test_torchmetrics_refuses_what_is_no_share_of_relevance() -> None:
    """Fractions where it sums labels, labels below 0 where it asks for 0 to 1."""
    for metric in ("P", "R", "Rprec"):
        with pytest.raises(fr.InputError, match=r"labels 0 and 1 only, not 0\.4"):
            value("torchmetrics", metric, [0.4, 1])
    for metric in ("AP", "RR", "HitRate"):
        assert value("torchmetrics", metric, [0.4, 0]) == 1
        with pytest.raises(fr.InputError, match="no labels below 0"):
            value("torchmetrics", metric, [-1, 1])


@pytest.mark.parametrize("ties", ["average", "input", "worst", "best"])
@pytest.mark.parametrize("metric", ["AP", "RR", "P", "R"])
def test_a_score_not_above_the_bound_is_as_good_as_none(metric: str, ties: str) -> None:
    """But for P, which divides by the length of the list without a cutoff, and for the depth of a share of the list."""
    rng = np.random.default_rng(5)
    labels, scores = 2 * (rng.random((40, 12)) < 0.2), rng.integers(-3, 4, (40, 12)).astype(float)
    absent = np.ma.masked_array(scores, scores <= 0)
    for k in ("@1", "@3", "@8", "@100"):
        asked = [f"{metric}(above=0){k}", f"{metric}{k}"]
        bounded = fr.evaluate(labels, scores, metrics=asked, ties=ties, bounds=True)
        without = fr.evaluate(labels, absent, metrics=asked[1], ties=ties, bounds=True)
        assert bounded[asked[0]].tolist() == without[asked[1]].tolist()
        assert bounded.bounds.low[:, 0].tolist() == without.bounds.low[:, 0].tolist()
        assert bounded.bounds.high[:, 0].tolist() == without.bounds.high[:, 0].tolist()
        whole = fr.evaluate(labels, scores, metrics=asked[1], ties=ties)
        assert bounded[asked[1]].tolist() == whole[asked[1]].tolist()
    assert whole[asked[1]].tolist() != without[asked[1]].tolist()
    hits = np.sum((labels >= 1) & (scores > 0), axis=1)
    assert fr.evaluate(labels, scores, metrics="P(above=0)", ties=ties).values[:, 0].tolist() == (hits / 12).tolist()


def test_the_bound_of_scores_holds_in_runs_and_dicts_and_for_unjudged_documents() -> None:
    qrels = {"q": {"a": 1, "b": 0, "c": 1, "d": 1}}
    run = {"q": {"a": 2.0, "x": 1.0, "b": 0.5, "c": 0.0, "y": -1.0}}
    metrics = ["AP(above=0)", "R(above=0)", "P(above=0)", "RR(above=2)", "P(above=0, judged_only=True)"]
    expected = [1 / 3, 1 / 3, 1 / 5, 0, 1 / 3]
    for convention in ("trec_eval", "fastrank"):
        assert fr.evaluate_run(qrels, run, metrics, convention=convention).values[0].tolist() == expected
    text = b"".join(f"q Q0 {doc} 0 {score} me\n".encode() for doc, score in run["q"].items())
    judged = b"".join(f"q 0 {doc} {label}\n".encode() for doc, label in qrels["q"].items())
    assert fr.evaluate_run(judged, text, metrics).values[0].tolist() == expected


@pytest.mark.parametrize("metric", ["AP(above=0)", "RR(above=0)", "R(above=0)@3", "P(above=0)", "RR(above=0, ties='average')@3"])
def test_the_bound_of_scores_is_explained(metric: str) -> None:
    labels, scores = [0, 1, 1, 1, 0], [3, 1, 1, 0, -1]
    worked = fr.explain(metric, labels, scores)
    assert worked.value == pytest.approx(worked.work.sum_of(worked.rows) / (worked.work.divisor.value if worked.work.divisor else 1))
    assert "score > 0" in worked.metric.formula


# --- filling and overriding ------------------------------------------------------------------------------------------------------


def test_what_a_name_spells_no_convention_changes() -> None:
    spelled = m.AP(rel=2, above=-1, denominator="relevant", ties="best", no_relevant="nan", k=7)
    for convention in fr.conventions.values():
        assert spelled.fill(convention) == spelled


def test_a_call_overrides_what_the_convention_says_of_all_and_of_single_metrics() -> None:
    lightgbm, catboost = fr.conventions["lightgbm"], fr.conventions["catboost"]
    assert lightgbm.parameter("nDCG", "no_relevant") == "one"
    assert lightgbm.override(no_relevant="skip").parameter("nDCG", "no_relevant") == "skip"
    assert lightgbm.override(no_relevant="skip").parameter("AP", "denominator") == "min_k_retrieved"
    assert lightgbm.override(ties="worst").parameter("RR", "ties") == "worst"
    assert catboost.parameter("AUC", "ties") == "average"
    assert catboost.override(ties="best").parameter("AUC", "ties") == "best"
    assert lightgbm.override() == lightgbm
    # The convention itself has not changed.
    assert fr.conventions["lightgbm"].parameter("nDCG", "no_relevant") == "one"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ties": "random"}, "ties must be one of 'average', 'input', 'worst', 'best', 'docid', not 'random'."),
        ({"ties": 1}, "ties must be one of "),
        ({"no_relevant": "drop"}, "no_relevant must be one of 'zero', 'one', 'nan', 'skip', not 'drop'."),
    ],
)
def test_an_override_is_one_of_the_known_words(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        fr.conventions["fastrank"].override(**options)


def test_a_trec_eval_convention_without_ids_is_an_error_that_names_ties() -> None:
    for name in ("trec_eval", "trec_eval9"):
        with pytest.raises(fr.InputError, match=r"give doc_ids=, or another rule with ties="):
            value(name, "AP", [1, 0], [1, 1])
        assert value(name, "AP", [1, 0], [1, 1], ties="input") == 1
        assert value(name, "AP", [1, 0], [1, 1], doc_ids=["a", "b"]) == 1 / 2


def test_trec_eval_9_compares_scores_as_float32() -> None:
    labels, scores, doc_ids = [1, 0], [0.9000000002, 0.9000000001], ["h", "z"]
    assert value("trec_eval", "RR", labels, scores, doc_ids=doc_ids) == 1
    assert value("trec_eval9", "RR", labels, scores, doc_ids=doc_ids) == 1 / 2


def test_a_convention_is_a_value_that_may_be_varied() -> None:
    mine = dataclasses.replace(fr.conventions["sklearn"], name="mine", gain={0: 0, 1: 5}, ties="worst")
    assert value(mine, m.DCG(), [1, 0]) == 5
    result = fr.evaluate([1, 0], [1, 1], metrics="nDCG", convention=mine)
    assert result.convention is mine
    assert result.values.tolist() == [[1 / LOG3]]
    assert "mine" in repr(result)
    of_one_family = Convention("own", "AP cut like precision", families={"AP": {"denominator": "min_k", "k": 1}})
    assert value(of_one_family, "AP", [1, 1]) == 1
    assert value(of_one_family, "nDCG", [1, 1]) == 1
    assert hash(of_one_family) == hash(dataclasses.replace(of_one_family))


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"gain": "exp"}, "gain 'exp' is not known."),
        ({"discount": "log"}, "discount 'log' is not known."),
        ({"ties": "random"}, "ties must be one of 'average', 'input', 'worst', 'best', 'docid', not 'random'."),
        ({"no_relevant": "drop"}, "no_relevant must be one of 'zero', 'one', 'nan', 'skip', not 'drop'."),
        ({"scores": "float16"}, "scores must be one of 'float32', 'float64', not 'float16'."),
        ({"labels": "int8"}, "labels must be one of 'float32', 'float64', not 'int8'."),
    ],
)
def test_a_convention_of_your_own_is_checked_when_it_is_made(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        Convention("mine", "a house rule", **choices)

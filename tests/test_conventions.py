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
ARRAYS = ("fastrank", "lightgbm", "xgboost", "xgboost-", "catboost", "sklearn")


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
    "gain": ("DCG", [2], None, {"fastrank": 3, "lightgbm": 3, "xgboost": 3, "xgboost-": 3, "catboost": 2, "sklearn": 2}),
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
        },
    ),
    "NDCG of nothing": ("nDCG", [0, 0], None, {"fastrank": 0, "lightgbm": 1, "xgboost": 1, "xgboost-": 0, "catboost": 1, "sklearn": 0}),
    "AP of nothing": ("AP", [0, 0], None, {"fastrank": 0, "lightgbm": 1, "xgboost": 1, "xgboost-": 0, "catboost": 0}),
    "recall of nothing": ("R", [0, 0], None, {"fastrank": 0, "catboost": 1}),
    "RR of nothing": ("RR", [0, 0], None, {"fastrank": 0, "catboost": 0}),
    # Three relevant documents, two of them in a list of which k sees two: P = 3, min(P, k) = 2.
    "denominator of AP": (
        "AP@2",
        [1, 1, 1],
        None,
        {"fastrank": 2 / 3, "lightgbm": 1, "xgboost": 1, "xgboost-": 1, "catboost": 1},
    ),
    "P beyond the list": ("P@4", [1, 0], None, {"fastrank": 1 / 4, "xgboost": 1 / 2, "xgboost-": 1 / 2, "catboost": 1 / 2}),
    "relevant": ("NumRel", [0.5, 0.6, 1], None, {"fastrank": 1, "lightgbm": 2, "catboost": 2, "sklearn": 3}),
    "width of scores": ("RR", [0, 1], [1.0, 1.0 + 2**-30], {"fastrank": 1, "lightgbm": 1, "xgboost": 1 / 2, "catboost": 1, "sklearn": 1}),
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
    for name in ("xgboost", "catboost", "sklearn"):
        assert value(name, m.DCG(gain="linear"), ranked) == 2 - 1 / LOG3
    for name in ("fastrank", "lightgbm"):
        with pytest.raises(fr.InputError, match=f"labels must not be negative under the {name} convention"):
            value(name, "DCG", ranked)
    with pytest.raises(fr.InputError, match="below 0"):
        value("sklearn", "nDCG", ranked)


# --- filling and overriding ------------------------------------------------------------------------------------------------------


def test_what_a_name_spells_no_convention_changes() -> None:
    spelled = m.AP(rel=2, denominator="relevant", ties="best", no_relevant="nan", k=7)
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

"""Names that other tools use, what they mean here, and values that a parameter does not take."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.errors import InputError
from fastrank.metrics import interpolated, user_models
from fastrank.metrics.grammar import ranx_metric, trec_metrics

SAME = [
    # ir_measures
    ("nDCG(dcg='exp-log2')@10", "nDCG(gain='exp2', discount='log2')@10"),
    ("nDCG(dcg='log2')@10", "nDCG(gain='linear', discount='log2')@10"),
    ("AP(cutoff=5)", "AP@5"),
    ("AP(rel=2)@100", "AP(rel=2)@100"),
    ("SetP(relative=True)", "RelP"),
    ("SetP(relative=False)@5", "P@5"),
    ("NumRet(rel=2)", "NumRelRet(rel=2)"),
    ("nDCG(gains={1: 3})@5", "nDCG(gain={1: 3, 'others': 'linear'})@5"),
    # ranx
    ("map@10-l2", "AP(rel=2)@10"),
    ("ndcg@10-l2", "nDCG(gain='linear>=2', discount='log2')@10"),
    ("rbp.95", "RBP(p=0.95, gain='linear')"),
    # trec_eval
    ("P_5", "P@5"),
    ("recall.10", "R@10"),
    ("ndcg.1=3.5,2=9", "nDCG(gain={1: 3.5, 2: 9, 'others': 'linear'}, discount='log2')"),
    ("rbp.p=0.5", "RBP(p=0.5, gain='scaled')"),
]


@pytest.mark.parametrize(("name", "meaning"), SAME)
def test_a_name_of_another_tool_means_the_metric(name: str, meaning: str) -> None:
    assert fr.parse_metric(name, convention="trec_eval") == fr.parse_metric(meaning, convention="trec_eval")


def test_ranx_reads_its_own_names() -> None:
    assert ranx_metric("map@5-l2") == fr.metrics.AP(k=5, rel=2, denominator="relevant")
    assert ranx_metric("map@0") == fr.metrics.AP(denominator="relevant")
    assert ranx_metric("rbp@95").p == 0.95
    for name in ("nothing@5", "map@five"):
        with pytest.raises(InputError, match="is not a known metric"):
            ranx_metric(name)


def test_trec_evals_own_names_come_with_its_own_cutoffs() -> None:
    assert [name for name, _ in trec_metrics("success")] == ["success_1", "success_5", "success_10"]
    assert "map" in dict(trec_metrics("official"))
    with pytest.raises(InputError, match="is not a known metric"):
        trec_metrics("no_such_measure")
    with pytest.raises(InputError, match="is a text, not a number"):
        trec_metrics("runid")


@pytest.mark.parametrize("name", ["P_0", "Rprec_mult_0.0", "ndcg@10(gain='linear')", "RR(k=5)(rel=2)"])
def test_a_name_with_a_value_that_its_metric_does_not_take_is_shown(name: str) -> None:
    with pytest.raises(InputError, match=re.escape(repr(name))):
        fr.parse_metric(name)


def test_a_share_of_more_digits_than_64_bits_hold_is_exact() -> None:
    # ceil(0.3...3 * 3) = 1 and ceil(0.3...4 * 3) = 2, thirty digits on.
    for share, first in ((f"0.{'3' * 29}", [1.0]), (f"0.{'3' * 28}4", [0.5])):
        assert fr.precision([1, 0, 0], k=share).tolist() == first


def test_an_empty_name_in_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="hold an empty name"):
        fr.parse_metrics("RR,,AP")


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("IPrec", {"recall": 1.5}),
    ("IPrec", {"recall": "half"}),
    ("AvgIPrec", {"recalls": 0.5}),
    ("AvgIPrec", {"recalls": "0.5"}),
    ("AvgIPrec", {"recalls": ()}),
    ("Compat", {"normalize": 1}),
    ("Utility", {"weights": 3}),
    ("Utility", {"weights": (1, 2)}),
    ("Utility", {"collection": -1}),
    ("P", {"k": True}),
    ("P", {"k": "ten"}),
    ("P", {"k": Fraction(1, 3)}),
    ("RBP", {"p": "0.5"}),
    ("RBP", {"p": object()}),
    ("RBP", {"p": float("inf")}),
    ("SDCG", {"horizon": 0}),
    ("SDCG", {"min_label": -1}),
    ("SDCG", {"min_label": 4, "max_label": 2}),
    ("nDCG", {"gain": 7}),
    ("nDCG", {"gain": ["two"]}),
    ("nDCG", {"gain": [float("inf")]}),
    ("nDCG", {"discount": 7}),
    ("nDCG", {"discount": ()}),
    ("nDCG", {"discount": "power:x"}),
    ("nDCG", {"discount": "geometric:2"}),
    ("nDCG", {"gain": "linear>=many"}),
    ("nDCG", {"gain": "square>=2"}),
]


@pytest.mark.parametrize(("family", "given"), WRONG)
def test_a_value_that_a_parameter_does_not_take_is_one_line(family: str, given: dict[str, Any]) -> None:
    metric = fr.metrics.families.get(family)
    if metric is None or not set(given) <= set(metric.parameters()):
        pytest.fail(f"{family} has no {given}; it has {metric and metric.parameters()}")
    with pytest.raises(InputError) as error:
        metric(**given)
    assert "\n" not in str(error.value)


def test_a_family_must_say_its_formula_and_values() -> None:
    metric = fr.metrics.Metric()
    for ask in (lambda: metric.formula, metric.least_label, lambda: metric.values(None), lambda: metric.nothing_to_find(None)):  # type: ignore[arg-type]
        with pytest.raises(AssertionError):
            ask()


def test_a_kind_of_families_leaves_open_what_is_each_ones_own() -> None:
    ranks = np.arange(1, 3)
    for kind, ask in (
        (interpolated._Interpolated, lambda metric: metric._levels),
        (user_models._Static, lambda metric: metric.discount()),
        (user_models._NearlyERR, lambda metric: metric.go_on(ranks)),
        (user_models._NearlyERR, lambda metric: metric._patience),
    ):
        with pytest.raises(AssertionError, match=f"{kind.__name__} has no "):
            ask(kind())  # type: ignore[no-untyped-call]


def test_a_metric_shows_the_parameters_it_was_given() -> None:
    assert repr(fr.metrics.AP(k=5, rel=2)) == "AP(k=5, rel=2)"


def test_bounds_are_refused_where_neither_end_is_extreme() -> None:
    with pytest.raises(InputError, match="infAP has no bounds"):
        fr.evaluate([1, 0], [2, 1], metrics="infAP", bounds=True)


def test_ids_of_mixed_types_are_refused() -> None:
    with pytest.raises(InputError, match="ids of one type"):
        fr.evaluate([1, 0], query_ids=["a", {"b": 1}])


def test_many_blocks_of_held_labels_have_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    labels, scores = generator.integers(0, 3, (40, 6)), generator.random((40, 6))
    whole = fr.LabelledQueries(labels).evaluate(scores).values.tobytes()
    monkeypatch.setattr("fastrank.engine.calls.BLOCK", 50)
    assert fr.LabelledQueries(labels).evaluate(scores, threads=2).values.tobytes() == whole


def test_minus_zero_equals_zero_on_the_way_of_sorting() -> None:
    scores = np.where(np.arange(400) % 2, 0.0, -0.0)
    labels = np.ones(400)
    labels[0] = 0
    # All tied: precision at 1 is the share of relevant documents.
    assert fr.precision(labels, scores, k=1) == pytest.approx(399 / 400, abs=1e-15)

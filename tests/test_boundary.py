"""What the boundary makes of what users really feed in: each policy by inputs whose values are worked out by hand."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from metric_table import TABLE, instances
from strategies import counts, values

import fastrank as fr
from fastrank import metrics as m

LOG3 = np.log2(3)
NAN, INF = float("nan"), float("inf")
EVERY = tuple(metric for family in TABLE for metric in instances(family, "average"))


# --- nothing to find, nothing retrieved ------------------------------------------------------------------------------------------

FINDING = ("nDCG", "RR", "AP", "R", "F", "Success", "Rprec", "ERR", "AUC", "Concordance", "Bpref")
PLAIN = ("DCG", "IDCG", "P", "RBP", "Judged", "NumRet", "NumRel", "NumRelRet")


@pytest.mark.parametrize(("rule", "value"), [("zero", 0.0), ("one", 1.0), ("nan", NAN), ("skip", NAN)])
def test_a_query_with_nothing_to_find_has_the_value_of_the_rule(rule: str, value: float) -> None:
    result = fr.evaluate([1, 0, 0, 0], [4, 3, 2, 1], sizes=[2, 2], metrics=[*FINDING, *PLAIN], no_relevant=rule)
    np.testing.assert_array_equal(result.values[1, : len(FINDING)], [value] * len(FINDING))
    assert result.values[1, len(FINDING) :].tolist() == [0, 0, 0, 0, 1, 2, 0, 0]
    mean = {"zero": 1 / 2, "one": 1, "nan": NAN, "skip": 1}[rule]
    np.testing.assert_array_equal([result.mean()[name] for name in ("RR", "nDCG")], [mean, mean])
    assert result.mean()["NumRet"] == 2
    assert counts(result)["no_relevant"] == 1
    assert [row.n_no_relevant for row in result.summary().rows] == [1] * len(FINDING) + [0] * len(PLAIN)
    assert result.summary().rows[0].n_queries == (1 if rule == "skip" else 2 if rule != "nan" else result.summary().rows[0].n_queries)


def test_auc_and_concordance_find_nothing_where_all_labels_are_alike() -> None:
    assert values([1, 1], metrics=["AUC", "PNormPush", "Concordance", "RR"], no_relevant="one") == [[1, 1, 1, 1]]
    result = fr.evaluate([1, 1], metrics=["AUC", "PNormPush", "Concordance", "RR"], no_relevant="nan")
    np.testing.assert_array_equal(result.values, [[NAN, NAN, NAN, 1]])


def test_the_rule_may_stand_in_the_name_and_in_the_convention() -> None:
    assert values([0], metrics=["RR(no_relevant='one')", "AP"]) == [[1, 0]]
    assert values([0], metrics="nDCG,AP,RR", convention="lightgbm") == [[1, 1, 0]]
    assert values([0], metrics="nDCG,AP,RR", convention="lightgbm", no_relevant="zero") == [[0, 0, 0]]
    assert values([0], metrics="nDCG,AP", convention="xgboost") == [[1, 1]]
    assert values([0], metrics="nDCG,AP", convention="xgboost-") == [[0, 0]]
    assert values([0], metrics="nDCG,AP,R", convention="catboost") == [[1, 0, 1]]


@pytest.mark.parametrize("rule", ["zero", "one", "nan", "skip"])
def test_an_empty_list_counts_zero_where_something_was_to_be_found(rule: str) -> None:
    labels, scores = [1, 0, 1], np.ma.masked_array([1, 1, 1], [True, True, False])
    metrics = (
        "nDCG",
        "nDCG@3",
        "nDCG@20%",
        "RR",
        "AP",
        "AP@2",
        "R",
        "F",
        "Success",
        "Rprec",
        "ERR",
        "Bpref",
        "P",
        "P@3",
        "P@20%",
        "RBP",
        "Judged@5",
        "NumRet",
    )
    result = fr.evaluate(labels, scores, [0, 0, 2, 3], metrics=metrics, no_relevant=rule)
    assert result.values[1].tolist() == [0] * len(metrics)
    nothing = {"zero": 0.0, "one": 1.0}.get(rule, NAN)
    np.testing.assert_array_equal(result.values[0], [nothing] * 12 + [0] * 6)
    np.testing.assert_array_equal(result.values[2], [1] * 10 + [1 / 2**4] + [1] * 2 + [1 / 3, 1, 1 - 0.8, 1, 1])


def test_single_documents_are_legal_lists() -> None:
    assert values([1, 0], [0.2, 0.2], sizes=[1, 1], metrics="nDCG") == [1, 0]
    assert values([1, 0], [0.2, 0.2], sizes=[1, 1], metrics="nDCG", convention="lightgbm") == [1, 1]


def test_the_first_document_is_not_relevant_for_want_of_another() -> None:
    assert values([0, 0, 0], [3, 2, 1]) == [0]


# --- unjudged, not retrieved, negative, fractional and huge labels ----------------------------------------------------------------


def test_an_unjudged_document_is_not_relevant_and_keeps_its_rank() -> None:
    labels = [None, 1, None, 0]
    assert values(labels, metrics=["RR", "nDCG", "Judged@1", "Judged@3", "Judged", "P@2", "NumRel", "NumRet"]) == [
        [1 / 2, 1 / LOG3, 0, 1 / 3, 1 / 2, 1 / 2, 1, 4]
    ]
    assert values(labels, metrics=["RR", "nDCG", "Judged@1", "P@2", "NumRet"], judged_only=True) == [[1, 1, 1, 1 / 2, 2]]


def test_a_document_that_was_not_retrieved_counts_in_the_ideal_and_among_the_relevant() -> None:
    labels, scores = [1, 2, 0, 1], [None, None, 5, 4]
    found = values(labels, scores, metrics=["nDCG@1", "nDCG", "R", "AP", "RR", "NumRet", "NumRel", "NumRelRet", "Rprec"])
    ideal = 3 + 1 / LOG3 + 1 / 2
    np.testing.assert_allclose(found, [[0, 1 / LOG3 / ideal, 1 / 3, 1 / 2 / 3, 1 / 2, 2, 3, 1, 1 / 3]], rtol=1e-15)
    # The ideal is that of all judged documents, however few were returned.
    linear = values([3, 3, 3, 3, 3], [1, None, None, None, None], metrics=m.nDCG(k=10, gain="linear"))
    np.testing.assert_allclose(linear, [1 / np.sum(1 / np.log2(np.arange(2, 7)))], rtol=1e-15)


def test_documents_neither_judged_nor_retrieved_are_no_documents() -> None:
    both = [None, 1, 0], [None, 2, 3]
    assert values(*both, metrics=EVERY) == values([1, 0], [2, 3], metrics=EVERY)


def test_depth_cuts_each_ranking_first() -> None:
    labels, scores = [0, 1, 0, 1], [4, 3, 2, 1]
    assert values(labels, scores, metrics=["NumRet", "AP", "R", "P", "P@4", "NumRel"], depth=2) == [[2, 1 / 4, 1 / 2, 1 / 2, 1 / 4, 2]]
    assert values(labels, scores, metrics="AP", depth=10**30) == values(labels, scores, metrics="AP")
    # Ties across the depth are averaged as across a cutoff.
    assert values(labels, [1, 1, 1, 1], metrics=["R", "AP"], depth=2) == values(labels, [1, 1, 1, 1], metrics=["R@2", "AP@2"])


def test_negative_labels_are_an_error_unless_the_convention_allows_them() -> None:
    message = r"labels must not be negative under the fastrank convention: -1.0 at query 1, document 0 \(row 1\)\. Set it to 0, or mask it"
    with pytest.raises(fr.InputError, match=message):
        fr.evaluate([1.0, -1.0], sizes=[1, 1])
    labels, scores = [-1.0, -0.5, 0.5, 0.25], [0.1, 0.4, 0.7, 0.2]
    ranked = [0.5, -0.5, 0.25, -1.0]
    discount = 1 / np.log2(np.arange(2, 6))
    found = values(labels, scores, metrics=m.DCG(gain="linear"), convention="catboost")
    np.testing.assert_allclose(found, [np.float32(ranked) @ discount], rtol=1e-15)
    clamped = values(np.maximum(labels, 0), scores, metrics=m.nDCG(gain="linear"))
    np.testing.assert_allclose(clamped, [(0.5 + 0.25 / 2) / (0.5 + 0.25 / LOG3)], rtol=1e-15)


def test_fractional_labels_have_gains_and_thresholds_of_their_own() -> None:
    labels = [0.9, 1.9]
    found = values(labels, metrics=[m.nDCG(gain="linear"), "AP", "P@1", "AP(rel=0.5)", "AP(rel='>1.9')", "AP(rel='>1.8')"])
    np.testing.assert_allclose(found, [[(0.9 + 1.9 / LOG3) / (1.9 + 0.9 / LOG3), 1 / 2, 0, 1, 0, 1 / 2]], rtol=1e-15)
    np.testing.assert_allclose(fr.dcg(labels), [2**0.9 - 1 + (2**1.9 - 1) / LOG3], rtol=1e-15)


def test_a_threshold_is_met_by_the_very_label_in_every_float_type() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        label = dtype(0.3)
        assert fr.precision([label], rel=float(label)).tolist() == [1]
        assert fr.precision(np.array([label]), rel=f">{float(label)!r}").tolist() == [0]
        assert fr.precision(np.array([np.nextafter(label, dtype(1))]), rel=f">{float(label)!r}").tolist() == [1]


def test_large_labels_are_exact_doubles_and_never_wrap_around() -> None:
    for label in (62, 63, 64, 65, 1000):
        for dtype in (np.uint8, np.int64, np.float64) if label < 256 else (np.int64, np.float64):
            assert fr.dcg(np.array([label], dtype)).tolist() == [2.0**label - 1]
    assert fr.ndcg([72, 5, 0], [1, 2, 3], gain="linear").tolist() == pytest.approx([(5 / LOG3 + 72 / 2) / (72 + 5 / LOG3)], rel=1e-15)
    assert fr.dcg(np.array([2**62]), gain="linear").tolist() == [2.0**62]


# --- k -------------------------------------------------------------------------------------------------------------------------


def test_k_beyond_the_list_is_legal_and_noted() -> None:
    result = fr.evaluate([1, 0, 1], sizes=[1, 2], metrics="P@5,P@2,nDCG@2")
    np.testing.assert_allclose(result.values, [[1 / 5, 1 / 2, 1], [1 / 5, 1 / 2, 1 / LOG3]], rtol=1e-15)
    assert counts(result)["k_beyond_list"] == 2
    assert "k_beyond_list" not in counts(fr.evaluate([1, 0, 1], sizes=[1, 2], metrics="P@1,P@50%"))


@pytest.mark.parametrize(
    ("k", "n", "cut"),
    [
        (0.07, 100, 7),
        ("7%", 100, 7),
        ("7 %", 100, 7),
        (" 7% ", 100, 7),
        (0.2, 11, 3),
        ("20%", 10, 2),
        ("0.5", 3, 2),
        (np.float64(0.2), 10, 2),
        (np.float32(0.2), 10, 2),
        (Fraction(1, 4), 5, 2),
        (Decimal("0.25"), 5, 2),
        (0.1 + 0.2, 1000, 301),  # the float just above 0.3, whose share is 300.00000000000004
        (1e-20, 1000, 1),
        (3, 10, 3),
        ("3", 10, 3),
        (np.int64(3), 10, 3),
        (np.uint8(3), 10, 3),
        (2**53, 10, 10),
    ],
)
def test_a_cutoff_is_a_whole_number_or_an_exact_share(k: Any, n: int, cut: int) -> None:
    assert values(np.ones(n), metrics=m.NumRelRet(k=k)) == [cut]
    metric = fr.parse_metric(str(m.NumRelRet(k=k)))
    assert metric == m.NumRelRet(k=k)


K = "k must be a whole number from 1 up, or a share of the list between 0 and 1 such as 0.2 or '20%', not "


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (0, f"{K}0. For the whole list leave it out."),
        (-1, f"{K}-1. For the whole list leave it out."),
        (1.0, f"{K}1.0. For the whole list leave it out."),
        (10.0, f"{K}10.0. Write 10."),
        (1.5, f"{K}1.5."),
        ("100%", f"{K}'100%'. For the whole list leave it out."),
        ("0%", f"{K}'0%'. For the whole list leave it out."),
        ("150%", f"{K}'150%'."),
        ("ten", f"{K}'ten'."),
        ("", f"{K}''."),
        (True, f"{K}True."),
        (NAN, f"{K}nan."),
        (INF, f"{K}inf."),
        (2**53 + 1, f"{K}9007199254740993. For the whole list leave it out."),
        (10**30, f"{K}{10**30}. For the whole list leave it out."),
        (Fraction(1, 3), "k as a share must be a decimal number such as 0.33 or '33.3%', not Fraction(1, 3)."),
    ],
)
def test_other_cutoffs_are_an_error_that_says_what_to_write(k: Any, message: str) -> None:
    for call in (lambda: m.P(k=k), lambda: fr.precision([1], k=k), lambda: fr.ndcg([1], k=[1, k])):
        with pytest.raises(fr.InputError, match=re.escape(message) + "$"):
            call()


def test_a_sequence_of_cutoffs_gives_a_column_each_in_the_order_asked() -> None:
    labels = [1, 0, 1, 1]
    for k in ([3, 1, 3, "50%"], (3, 1, 3, "50%"), np.array([3, 1, 3, 2])):
        assert fr.precision(labels, k=k).tolist() == [[2 / 3, 1, 2 / 3, 1 / 2]]
    assert fr.precision([[1, 0], [0, 1]], k=[1]).shape == (2, 1)
    assert (
        fr.average_precision(labels, [4, 3, 2, 1], k=[5, 1], denominator="min_k").tolist()
        == fr.average_precision(labels, k=[5, 1], denominator="min_k").tolist()
    )
    with pytest.raises(fr.InputError, match="k is an empty sequence"):
        fr.precision(labels, k=[])


# --- duplicates ----------------------------------------------------------------------------------------------------------------


def test_a_document_that_stands_twice_in_a_query_is_named_with_both_places() -> None:
    places = r"query 'q', document 0 \(row 1\) and query 'q', document 2 \(row 3\)\. Keep one of them\.$"
    with pytest.raises(fr.InputError, match=r"^document 'a' stands twice in one query: " + places):
        fr.evaluate([1, 1, 0, 1], [4, 3, 2, 1], query_ids=["p", "q", "q", "q"], doc_ids=["a", "a", "b", "a"])
    # Unjudged and unretrieved ones included, and whatever the tie rule.
    for labels, scores in (([None, None], [2, 1]), ([1, 0], [None, None])):
        with pytest.raises(fr.InputError, match="document 7 stands twice"):
            fr.evaluate(labels, scores, doc_ids=[7, 7])
    # The same id in two queries is two documents.
    assert values([0, 1], sizes=[1, 1], doc_ids=["a", "a"]) == [0, 1]


def test_a_duplicate_names_the_rows_of_the_caller_when_rows_were_apart() -> None:
    with pytest.raises(fr.InputError, match=r"\(row 0\) and query 1, document 1 \(row 2\)"):
        fr.evaluate([1, 1, 0], query_ids=[1, 0, 1], doc_ids=["a", "b", "a"])


# --- weights and slices ----------------------------------------------------------------------------------------------------------


def test_weights_and_slices_are_given_per_query_or_per_document() -> None:
    labels = [1, 0, 0, 1]
    for weights, by in (([3, 1], ["x", "y"]), ([3, 3, 1, 1], ["x", "x", "y", "y"])):
        result = fr.evaluate(labels, sizes=[2, 2], weights=weights, by={"part": by}, metrics="RR")
        assert result.mean()["RR"] == (3 * 1 + 1 * 1 / 2) / 4
        assert {value: each.mean()["RR"] for value, each in result.slices["part"].items()} == {"x": 1, "y": 1 / 2}
    weighted = fr.evaluate([0, 0, 1], sizes=[1, 2], weights=[1, 3], metrics="RR")
    assert weighted.mean()["RR"] == (1 * 0 + 3 / 2) / 4  # a query with nothing to find weighs as any other


def test_a_null_slice_is_a_slice_and_an_empty_query_has_none_of_its_own() -> None:
    result = fr.evaluate([1, 0, 1], None, [0, 1, 1, 3], by={"part": pa.array(["x", None, "x"])}, metrics="RR")
    assert [(value, each.n_queries) for value, each in result.slices["part"].items()] == [("x", 2), (None, 1)]
    given = fr.evaluate([1, 0, 1], None, [0, 1, 1, 3], by={"part": ["y", None, None]}, metrics="RR").slices["part"]
    assert {value: each.n_queries for value, each in given.items()} == {"y": 1, None: 2}
    dated = fr.evaluate([1, 0], sizes=[1, 1], by=np.array(["2024-01-02", "2024-01-01"], "M8[D]"), metrics="RR")
    assert len(dated.slices["by"]) == 2
    chunked = fr.evaluate([1, 0], sizes=[1, 1], by=pa.chunked_array([["a"], ["b"]]), metrics="RR")
    assert list(chunked.slices["by"]) == ["a", "b"]


def test_a_number_is_judged_by_its_type_whatever_was_asked_before() -> None:
    """1, 1.0 and True are equal, and only the first is a cutoff."""
    assert fr.ndcg([1, 0], k=1).tolist() == fr.ndcg([1, 0], k=[1]).ravel().tolist() == [1.0]
    for wrong in (1.0, True):
        for k in (wrong, [wrong]):
            with pytest.raises(fr.InputError, match=rf"^k must be a whole number from 1 up, .*, not {wrong}\."):
                fr.ndcg([1, 0], k=k)


@pytest.mark.parametrize("kind", ["bfloat16", "float8_e4m3fn"])
def test_tensors_of_types_that_numpy_does_not_have(kind: str) -> None:
    torch = pytest.importorskip("torch")
    scores = torch.tensor([0.5, 2.5, -1.0]).to(getattr(torch, kind))
    assert fr.ndcg(torch.tensor([0, 1, 2]).to(scores.dtype), scores).tolist() == fr.ndcg([0, 1, 2], [0.5, 2.5, -1.0]).tolist()


def test_arrays_of_jax_in_bfloat16() -> None:
    jnp = pytest.importorskip("jax.numpy")
    scores = jnp.array([0.5, 2.5, -1.0], dtype=jnp.bfloat16)
    assert fr.ndcg([0, 1, 2], scores).tolist() == fr.ndcg([0, 1, 2], [0.5, 2.5, -1.0]).tolist()

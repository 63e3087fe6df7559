"""What users really feed in: every form of a column, every policy of the boundary, and one clear line for what cannot be judged."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from metric_table import TABLE, instances
from strategies import FORMS, Batch, as_batch, masked, random_batch

import fastrank as fr
from fastrank import metrics as m
from fastrank.batch import LIKELY_UNGROUPED

LOG3 = np.log2(3)
NAN, INF = float("nan"), float("inf")
EVERY = tuple(metric for family in TABLE for metric in instances(family, "average"))


def values(*data: Any, metrics: Any = "RR", **options: Any) -> list[Any]:
    """The values of one metric, one a query; of several, a list a query."""
    found = fr.evaluate(*data, metrics=metrics, **options).values
    return found[:, 0].tolist() if found.shape[1] == 1 else found.tolist()


def counts(result: fr.Evaluation) -> dict[str, int]:
    return {note.kind: note.count for note in result.notes}


# --- forms of labels and scores -------------------------------------------------------------------------------------------------


def whole_batch(missing: bool) -> Batch:
    """Labels and scores that are whole numbers 0 ... 4, as every numeric type holds them; ten lists."""
    batch = random_batch(41, 10, 6, grades=(0, 1, 2, 3, 4), n_levels=5, missing=missing)
    return Batch(batch.labels, batch.scores * 4, batch.offsets)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_labels_and_of_scores_means_the_same(form: str, missing: bool) -> None:
    labels, scores, offsets = whole_batch(missing)
    expected = fr.evaluate(masked(labels), masked(scores), offsets, metrics=EVERY).values
    for found in (
        fr.evaluate(FORMS[form](labels), masked(scores), offsets, metrics=EVERY),
        fr.evaluate(masked(labels), FORMS[form](scores), offsets, metrics=EVERY),
    ):
        np.testing.assert_array_equal(found.values, expected)


@pytest.mark.parametrize(
    "truth",
    [
        np.array([False, True, True]),
        [False, True, True],
        pd.Series([False, True, True]),
        pd.Series([False, True, True], dtype="boolean"),
        pd.Series([False, True, True], dtype="bool[pyarrow]"),
        pl.Series([False, True, True]),
        pa.array([False, True, True]),
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__} {getattr(column, 'dtype', '')}",
)
def test_truth_values_are_labels_and_scores(truth: Any) -> None:
    # Ranks 3, 2, 1 hold labels 1, 1, 0; as scores, two documents tie above the third.
    assert values(truth, [3, 2, 1], metrics="AP") == [(1 / 2 + 2 / 3) / 2]
    assert values([1, 0, 0], truth, metrics="RR") == [1 / 3]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([None, True, False], dtype="boolean"),
        pd.Series([None, True, False], dtype="bool[pyarrow]"),
        pd.Series([None, 1, 0], dtype="category"),
        pd.Series([pd.NA, 1, 0], dtype=object),
        pd.Series([None, 1, 0], dtype=object),
        pl.Series([None, True, False]),
        pa.array([None, True, False]),
        pa.array([None, Decimal("1"), Decimal("0")]),
        pa.chunked_array([[None], [1, 0]], pa.int8()),
        np.ma.masked_array([NAN, 1, 0], [True, False, False]),
        [None, 1, 0],
    ],
    ids=lambda column: f"{type(column).__module__}.{type(column).__name__} {getattr(column, 'dtype', getattr(column, 'type', ''))}",
)
def test_a_missing_value_of_any_library_is_unjudged_or_not_retrieved(column: Any) -> None:
    assert values(column, [3, 2, 1], metrics=["Judged@2", "RR", "NumRel"]) == [[1 / 2, 1 / 2, 1]]
    assert values([1, 1, 0], column, metrics=["NumRet", "R", "RR"]) == [[2, 1 / 2, 1]]


def test_columns_of_nothing_but_missing_values() -> None:
    for column in ([None, None], pl.Series([None, None]), pa.nulls(2), pa.nulls(2, pa.decimal128(5)), np.ma.masked_all(2)):
        assert values(column, [2, 1], metrics=["Judged", "NumRet"]) == [[0, 2]]
        assert values([1, 0], column, metrics=["NumRet", "NumRel", "RR"]) == [[0, 1, 0]]


def test_a_tensor_is_taken_off_its_graph_and_device() -> None:
    class Tensor:
        """As torch's: no array protocol while it carries a gradient."""

        def __init__(self, array: np.ndarray) -> None:
            self.array = array

        def detach(self) -> Tensor:
            return self

        def cpu(self) -> Tensor:
            return self

        def numpy(self) -> np.ndarray:
            return self.array

    assert values(Tensor(np.array([0, 1])), Tensor(np.array([0.1, 0.2], np.float32))) == [1.0]


def test_a_frame_is_a_query_a_row() -> None:
    labels, scores = pd.DataFrame([[0, 1], [1, 0]]), pd.DataFrame([[0.2, 0.1], [0.9, 0.05]])
    assert values(labels, scores) == [1 / 2, 1]
    assert values(labels.astype("Int64"), scores.astype("Float64")) == [1 / 2, 1]


@pytest.mark.parametrize("form", ["read-only", "strided", "backwards", "numpy >f4", "numpy f8", "numpy u8"])
def test_nothing_is_written_to_what_the_caller_gave(form: str) -> None:
    labels, scores, offsets = whole_batch(missing=False)
    given = [FORMS[form](labels), FORMS[form](scores), offsets.copy(), np.arange(len(labels)) // 3]
    before = [array.copy() for array in given]
    fr.evaluate(*given[:3], metrics=EVERY, ties="worst")
    fr.evaluate(given[0], given[1], query_ids=given[3], metrics=EVERY)
    for array, copy in zip(given, before, strict=True):
        np.testing.assert_array_equal(array, copy)


# --- scores are compared as given ----------------------------------------------------------------------------------------------

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


@pytest.mark.parametrize(
    "scores",
    [
        np.array([2**53, 2**53 + 1]),
        np.array([LEAST, MOST]),
        np.array([LEAST, LEAST + 1]),
        np.array([2**63 - 1, 2**63], np.uint64),
        np.array([2**64 - 2, 2**64 - 1], np.uint64),
        np.array([0, 255], np.uint8),
        np.array([-128, 127], np.int8),
        np.array([2**24, 2**24 + 1], np.int32),
        np.array([1.0, 1.0 + 2**-52]),
        np.array([0.0, 5e-324]),
        np.array([-INF, -1.7976931348623157e308]),
        np.array([1.0, np.nextafter(np.longdouble(1), np.longdouble(2))]),
        np.array([6.0e-8, 1.2e-7], np.float16),
        [2**64, 2**64 + 1],
        [Fraction(1, 3), Fraction(1, 3) + Fraction(1, 10**30)],
        [Decimal("0.1"), Decimal("0.10000000000000000001")],
        [None, Decimal("0.1"), Decimal("0.10000000000000000001")],
        pa.array([Decimal("0.1"), Decimal("0.10000000000000000001")]),
        pa.array([Decimal("0.1"), None, Decimal("0.10000000000000000001")]),
        pa.array([Decimal("1.5"), Decimal("2.5")], pa.decimal32(4, 1)) if hasattr(pa, "decimal32") else [1, 2],
    ],
    ids=repr,
)
def test_the_smallest_difference_of_scores_is_a_difference(scores: Any) -> None:
    labels = [0] * (len(scores) - 1) + [1]
    assert values(labels, scores) == [1.0]
    assert values([1 - label for label in labels], scores) == [1 / 2]


def test_zero_has_no_sign_and_infinities_tie_with_themselves() -> None:
    assert values([0, 1], [0.0, -0.0]) == [3 / 4]
    assert values([0, 1], np.array([-0.0, 0.0], np.float32)) == [3 / 4]
    assert values([1, 0, 0, 1], [INF, INF, -INF, 0.0], metrics="AP") == [(1 / 2 * (1 + 2 / 3) + 1 / 2 * (1 / 2 + 2 / 3)) / 2]


def test_a_convention_that_converts_scores_ties_what_its_type_cannot_hold() -> None:
    apart = {
        "float64": np.array([2**53, 2**53 + 1]),
        "float32": np.array([2**24, 2**24 + 1]),
    }
    for name, convention in (("float64", "sklearn"), ("float32", "xgboost")):
        tied = {"average": 3 / 4, "input": 1 / 2}[fr.conventions[convention].ties]
        assert values([0, 1], apart[name], convention=convention) == [tied]
        # Unsigned integers are converted as numbers, however they are kept.
        assert values([0, 1], np.array([1, 2], np.uint64), convention=convention) == [1.0]
        assert values([0, 1], np.array([1, 2], np.longdouble), convention=convention) == [1.0]
    beyond = np.array([1e300, 2e300])
    assert values([0, 1], beyond, convention="xgboost") == [1 / 2]  # both infinite as float32
    assert values([0, 1], [Decimal("0.1"), Decimal("0.10000000000000000001")], convention="sklearn") == [3 / 4]


def test_labels_are_read_exactly() -> None:
    third = Decimal("0.3")
    table = {0.3: 1, 0: 0}
    for labels in ([third, Decimal(0)], pa.array([third, Decimal(0)]), pa.array([third, None]), [0.3, 0]):
        np.testing.assert_array_equal(fr.dcg(labels, gain=table), [1.0])


# --- shapes --------------------------------------------------------------------------------------------------------------------


def test_a_matrix_is_a_query_a_row_and_a_flat_array_one_query() -> None:
    assert values([[0, 1], [1, 0]], [[0.2, 0.1], [0.9, 0.05]]) == [1 / 2, 1]
    assert values([0, 1, 1, 0]) == [1 / 2]
    assert fr.ndcg([[0, 1], [1, 0]], [[0.2, 0.1], [0.9, 0.05]]).mean() == pytest.approx((1 / LOG3 + 1) / 2, rel=1e-15)
    assert values(np.empty((0, 5))) == []
    assert values(np.empty((2, 0))) == [0, 0]


def test_offsets_sizes_and_query_ids_say_the_same() -> None:
    labels, scores = [0, 1, 1, 0, 0, 1], [3, 2, 9, 8, 7, 9]
    expected = [1 / 2, 3 / 4]
    for how in ({"offsets": [0, 2, 6]}, {"sizes": [2, 4]}, {"query_ids": ["a", "a", "b", "b", "b", "b"]}):
        assert values(labels, scores, **how) == [1 / 2, 1.0]
        assert values(labels, [3, 2, 9, 8, 9, 0], **how) == expected
    for dtype in (np.uint8, np.int32, np.uint64, np.float64, ">i8"):
        assert values(labels, scores, np.array([0, 2, 6], dtype)) == [1 / 2, 1.0]
        assert values(labels, scores, np.array([0, 9, 2, 9, 6, 9], dtype)[::2]) == [1 / 2, 1.0]


def test_empty_input_is_an_empty_result() -> None:
    for data in (
        ([],),
        ([], [], [0]),
        (np.empty(0, np.uint8), np.empty(0, np.float32), [0]),
        (pa.array([], pa.int8()), pl.Series([], dtype=pl.Float32), [0]),
    ):
        bounded = [metric for metric in EVERY if metric.has_bounds]
        result = fr.evaluate(*data, metrics=bounded, sizes=[] if len(data) == 1 else None, bounds=True)
        assert result.n_queries == len(result) == 0
        assert result.values.shape == result.bounds.low.shape == (0, len(bounded))
        assert all(np.isnan(mean) for mean in result.mean().values())
        assert "0" in repr(result)
        assert result.to_arrow().num_rows == 0
    evaluator = fr.Evaluator(EVERY)
    assert evaluator.result().n_queries == 0


def test_a_long_flat_list_without_groups_is_taken_as_one_query_and_noted() -> None:
    labels = np.zeros(LIKELY_UNGROUPED, np.uint8)
    labels[0] = 1
    result = fr.evaluate(labels, metrics="RR")
    assert result.values.tolist() == [[1.0]]
    assert counts(result)["one_query"] == 1
    assert str(LIKELY_UNGROUPED) in next(note.message for note in result.notes if note.kind == "one_query")
    assert "one_query" not in counts(fr.evaluate(labels, None, [0, LIKELY_UNGROUPED], metrics="RR"))
    assert "one_query" not in counts(fr.evaluate(labels[1:], metrics="RR"))


# --- ids -----------------------------------------------------------------------------------------------------------------------

IDS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "numpy text": np.array,
    "numpy bytes": lambda ids: np.array([name.encode() for name in ids]),
    "numpy objects": lambda ids: np.array(ids, dtype=object),
    "pandas": pd.Series,
    "pandas category": lambda ids: pd.Series(pd.Categorical(ids, categories=["unused", *sorted(set(ids), reverse=True)])),
    "pandas string": lambda ids: pd.Series(ids, dtype="string"),
    "pandas string[pyarrow]": lambda ids: pd.Series(ids, dtype="string[pyarrow]"),
    "polars": pl.Series,
    "polars category": lambda ids: pl.Series(ids, dtype=pl.Categorical),
    "arrow string": pa.array,
    "arrow large_string": lambda ids: pa.array(ids, pa.large_string()),
    "arrow string_view": lambda ids: pa.array(ids, pa.string_view()),
    "arrow binary": lambda ids: pa.array(ids).cast(pa.binary()),
    "arrow dictionary": lambda ids: pa.array(ids).dictionary_encode(),
    "arrow chunked with an empty first chunk": lambda ids: pa.chunked_array([ids[:0], ids[:2], ids[2:]], pa.string()),
    "arrow sliced": lambda ids: pa.array(["b", *ids])[1:],
}


@pytest.mark.parametrize("form", IDS)
def test_ids_of_every_form_group_and_order_documents(form: str) -> None:
    make = IDS[form]
    labels, scores = [0, 1, 1, 0, 1], [1, 1, 5, 5, 5]
    result = fr.evaluate(
        labels,
        scores,
        query_ids=make(["q9", "q9", "q10", "q10", "q10"]),
        doc_ids=make(["d9", "d10", "b", "é", "z"]),
        ties="docid",
        metrics="RR,AP",
    )
    # In order of appearance; by bytes d9 stands above d10, and é above z.
    assert [str(name, "utf8") if isinstance(name, bytes) else name for name in result.query_ids.to_pylist()] == ["q9", "q10"]
    assert result.values.tolist() == [[1 / 2, 1 / 2], [1 / 2, (1 / 2 + 2 / 3) / 2]]


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u1", "u8", ">i4", "M8[D]", "bool"])
def test_numbers_dates_and_truth_values_are_ids(dtype: str) -> None:
    result = fr.evaluate([0, 1, 1, 0], query_ids=np.array([1, 1, 0, 0]).astype(dtype), metrics="RR")
    assert result.values[:, 0].tolist() == [1 / 2, 1]
    assert result.query_ids.to_pylist() == np.array([1, 0]).astype(dtype).tolist()


def test_integer_document_ids_order_by_their_decimal_text() -> None:
    assert values([0, 1, 0], [1, 1, 1], doc_ids=[9, 10, 8], ties="docid") == [1 / 3]
    assert values([0, 1, 0], [1, 1, 1], doc_ids=["9", "10", "8"], ties="docid") == [1 / 3]


def test_document_ids_of_a_matrix_may_be_a_matrix() -> None:
    for ids in (np.array([["a", "b"], ["b", "a"]]), [["a", "b"], ["b", "a"]]):
        assert values([[1, 0], [1, 0]], [[1, 1], [1, 1]], doc_ids=ids, ties="docid") == [1 / 2, 1]


def test_rows_of_one_query_that_are_apart_are_brought_together_and_queries_sorted() -> None:
    labels, scores, ids = [0, 0, 1, 1], [4, 4, 3, 3], [2, 1, 2, 1]
    result = fr.evaluate(
        labels, scores, query_ids=ids, weights=[5, 7, 5, 7], by={"part": ["b", "a", "b", "a"]}, doc_ids=list("wxyz"), metrics="nDCG"
    )
    np.testing.assert_allclose(result.values[:, 0], [1 / LOG3] * 2, rtol=1e-15)
    assert result.query_ids.to_pylist() == [1, 2]
    assert result.weights.tolist() == [7, 5]
    assert result.by["part"].to_pylist() == ["a", "b"]
    assert counts(result)["regrouped"] == 2
    # One row apart is enough; ids whose rows are together come in order of appearance.
    assert fr.evaluate(labels, scores, query_ids=[2, 1, 1, 2]).query_ids.to_pylist() == [1, 2]
    assert fr.evaluate(labels, scores, query_ids=[2, 2, 1, 1]).query_ids.to_pylist() == [2, 1]


def test_a_category_without_rows_is_no_query() -> None:
    ids = pd.Series(pd.Categorical(["q1", "q1", "q3"], categories=["q1", "q2", "q3"]))
    result = fr.evaluate([1, 0, 1], [3, 2, 1], query_ids=ids)
    assert result.query_ids.to_pylist() == ["q1", "q3"]


def test_ids_of_a_matrix_are_one_a_row() -> None:
    assert fr.evaluate([[1, 0], [0, 1]], query_ids=["a", "b"]).query_ids.to_pylist() == ["a", "b"]


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
    with pytest.raises(
        fr.InputError,
        match=r"^document 'a' stands twice in one query: query 'q', document 0 \(row 1\) and query 'q', document 2 \(row 3\)\. Keep one of them\.$",
    ):
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


# --- one line for each error -------------------------------------------------------------------------------------------------------

RIGHT = ([1, 0, 1], [3.0, 2.0, 1.0])
QUEUE: list[tuple[str, Callable[[], Any], str]] = [
    ("lengths", lambda: fr.evaluate([1, 0], [1.0]), "scores must have the shape of labels, (2,), not (1,)."),
    ("shapes", lambda: fr.evaluate([[1, 0]], [1.0, 2.0]), "scores must have the shape of labels, (1, 2), not (2,)."),
    ("two groupings", lambda: fr.evaluate(*RIGHT, [0, 3], sizes=[3]), "give one of offsets, sizes and query_ids, not offsets and sizes."),
    (
        "three groupings",
        lambda: fr.evaluate(*RIGHT, [0, 3], sizes=[3], query_ids=[1, 1, 1]),
        "give one of offsets, sizes and query_ids, not offsets and sizes and query_ids.",
    ),
    ("no dimension", lambda: fr.evaluate(3), "labels must have one dimension, or two (a query a row), not 0."),
    ("three dimensions", lambda: fr.evaluate(np.zeros((1, 1, 1))), "labels must have one dimension, or two (a query a row), not 3."),
    (
        "a grouped matrix",
        lambda: fr.evaluate([[1, 0]], sizes=[2]),
        "labels with two dimensions are a query a row: leave out sizes, or give them flat.",
    ),
    (
        "offsets that decrease",
        lambda: fr.evaluate(np.ones(14), None, [0, 2, 4, 8, 14, 12, 14]),
        "offsets must not decrease: offsets[5] = 12 < offsets[4] = 14. For group sizes use sizes=.",
    ),
    (
        "offsets that begin late",
        lambda: fr.evaluate(*RIGHT, [1, 3]),
        "offsets must begin with 0: offsets[0] = 1. For group sizes use sizes=.",
    ),
    ("offsets that end early", lambda: fr.evaluate(*RIGHT, [0, 2]), "offsets must end with the number of documents, 3: offsets[1] = 2."),
    (
        "no offsets",
        lambda: fr.evaluate([], [], []),
        "offsets must have one entry more than there are queries, the first 0; for no query at all give [0].",
    ),
    ("a matrix of offsets", lambda: fr.evaluate(*RIGHT, [[0, 3]]), "offsets must have one dimension, not 2."),
    ("a null offset", lambda: fr.evaluate(*RIGHT, [0, None]), "offsets must not hold nulls: entry 1 is missing."),
    ("half an offset", lambda: fr.evaluate(*RIGHT, [0, 1.5, 3]), "offsets must be whole numbers: offsets[1] is not."),
    ("an infinite offset", lambda: fr.evaluate(*RIGHT, [0, INF]), "offsets must be whole numbers: offsets[1] is not."),
    ("a NaN size", lambda: fr.evaluate(*RIGHT, sizes=[NAN]), "sizes must be whole numbers: sizes[0] is not."),
    ("sizes that do not sum", lambda: fr.evaluate(*RIGHT, sizes=[1, 1]), "sizes must sum to the number of documents, 3, not 2."),
    (
        "ids for sizes",
        lambda: fr.evaluate(*RIGHT, sizes=[1, 1, 2]),
        "sizes must sum to the number of documents, 3, not 4. These look like query ids: give them as query_ids=.",
    ),
    (
        "sizes beyond 32 bits",
        lambda: fr.evaluate(*RIGHT, sizes=np.array([2**31 - 1, 2], np.int32)),
        "sizes must sum to the number of documents, 3, not 2147483649.",
    ),
    (
        "sizes that wrap around to 0",
        lambda: fr.evaluate([], [], sizes=[2**62] * 4),
        f"sizes must sum to the number of documents, 0, not {2**64}.",
    ),
    (
        "sizes beyond 64 bits",
        lambda: fr.evaluate([], [], sizes=np.array([2**64 - 1], np.uint64)),
        f"sizes must sum to the number of documents, 0, not {2**53}.",
    ),
    ("a negative size", lambda: fr.evaluate(*RIGHT, sizes=[4, -1]), "sizes must not be negative: sizes[1] = -1."),
    ("too few query ids", lambda: fr.evaluate(*RIGHT, query_ids=[1, 2]), "query_ids must have one entry a document, 3, not 2."),
    ("too many ids of rows", lambda: fr.evaluate([[1, 0]], query_ids=[1, 2]), "query_ids must have one entry a row of labels, 1, not 2."),
    (
        "one id for two rows",
        lambda: fr.evaluate([[1], [0], [1]], query_ids=["a", "b", "a"]),
        "query_ids must differ from row to row of labels: 'a' stands at 0 and 2.",
    ),
    (
        "floats as ids",
        lambda: fr.evaluate(*RIGHT, query_ids=[1.0, 1.0, 2.0]),
        "query_ids must be text or integers, not floats: 0.1 + 0.2 is not 0.3. Cast them to integers or text.",
    ),
    ("a null id", lambda: fr.evaluate(*RIGHT, query_ids=["a", None, "b"]), "query_ids must not be null: row 1 is."),
    ("ids of two types", lambda: fr.evaluate(*RIGHT, query_ids=["a", 1, 2]), "query_ids must be ids of one type, text or integers ("),
    ("too few document ids", lambda: fr.evaluate(*RIGHT, doc_ids=["a"]), "doc_ids must have one entry a document, 3, not 1."),
    ("float document ids", lambda: fr.evaluate(*RIGHT, doc_ids=[0.5, 1.5, 2.5]), "doc_ids must be text or integers, not floats"),
    (
        "a NaN score",
        lambda: fr.evaluate([1, 0, 1], [1.0, NAN, 2.0], [0, 1, 3]),
        "scores must not be NaN: query 1, document 0 (row 1). Give every retrieved document a number, or a null (masked) score to a document that was not retrieved.",
    ),
    (
        "a NaN score of a named query",
        lambda: fr.evaluate([1, 0, 1], [1.0, 2.0, NAN], query_ids=["b", "a", "b"]),
        "scores must not be NaN: query 'b', document 1 (row 2). Give every",
    ),
    ("a NaN beside a null score", lambda: fr.evaluate([1, 0], [None, NAN]), "scores must not be NaN: query 0, document 1 (row 1)."),
    (
        "a NaN of 80 bits",
        lambda: fr.evaluate([1, 0], np.array([1, NAN], np.longdouble)),
        "scores must not be NaN: query 0, document 1 (row 1).",
    ),
    (
        "a NaN label",
        lambda: fr.evaluate([1, NAN]),
        "labels must be finite: nan at query 0, document 1 (row 1). For an unjudged document give a null (masked) label.",
    ),
    (
        "an infinite label",
        lambda: fr.evaluate([[1, 0], [0, INF]]),
        "labels must be finite: inf at query 1, document 1 (row 3). For an unjudged",
    ),
    (
        "a NaN beside a null label",
        lambda: fr.evaluate(np.ma.masked_array([NAN, -INF], [True, False])),
        "labels must be finite: -inf at query 0, document 1 (row 1).",
    ),
    ("text as labels", lambda: fr.evaluate(["1", "0"]), "labels must be numbers, not <U1. Convert text to numbers first."),
    ("text among labels", lambda: fr.evaluate([None, "x"]), "labels must be numbers, not 'x'. Convert text to numbers first."),
    ("text as scores", lambda: fr.evaluate([1], pa.array(["0.5"])), "scores must be numbers, not string. Convert text to numbers first."),
    ("text of pandas", lambda: fr.evaluate([1], pd.Series(["0.5"], dtype="string")), "scores must be numbers, not "),
    (
        "dates as scores",
        lambda: fr.evaluate([1], np.array(["2020-01-01"], "M8[D]")),
        "scores must be numbers, not datetime64[D]. Convert it to integers or floats.",
    ),
    ("complex scores", lambda: fr.evaluate([1], [1j]), "scores must be numbers, not complex128. Convert it to integers or floats."),
    (
        "an object as a label",
        lambda: fr.evaluate([1, None, object]),
        "labels must be numbers, not <class 'object'>. Convert it to integers or floats.",
    ),
    ("lists of unequal length", lambda: fr.evaluate([[1], [1, 2]]), "labels is not a regular array ("),
    (
        "arrays among labels",
        lambda: fr.evaluate(np.array([np.ones(1), np.ones(2)], dtype=object)),
        "labels must be numbers, not array([1.]). Give lists of unequal length flat, with offsets= or sizes=.",
    ),
    ("a dict as labels", lambda: fr.evaluate({"a": 1}), "labels must be numbers, not {'a': 1}."),
    ("an integer beyond doubles", lambda: fr.evaluate([10**400]), "labels must be numbers below 1.8e308, and one is not."),
    ("a negative weight", lambda: fr.evaluate(*RIGHT, weights=[-1]), "weights must be finite and not negative: weights[0] = -1.0."),
    ("an infinite weight", lambda: fr.evaluate(*RIGHT, weights=[INF]), "weights must be finite and not negative: weights[0] = inf."),
    (
        "a null weight",
        lambda: fr.evaluate(*RIGHT, sizes=[1, 2], weights=[1, None]),
        "weights must be finite and not negative: weights[1] = null.",
    ),
    ("too many weights", lambda: fr.evaluate(*RIGHT, weights=[1, 2]), "weights must have one entry a query, 1, not 2."),
    (
        "a weight that changes",
        lambda: fr.evaluate(*RIGHT, weights=[1, 1, 2]),
        "weights must be the same for every document of a query: it changes at document 2 in query 0.",
    ),
    (
        "no weight for an empty query",
        lambda: fr.evaluate(*RIGHT, [0, 0, 0, 3, 3], weights=[1, 1, 1]),
        "weights given per document say nothing of a query without documents: give one weight a query.",
    ),
    (
        "a slice that changes",
        lambda: fr.evaluate(*RIGHT, by={"part": ["a", "a", "b"]}),
        "by 'part' must be the same for every document of a query: it changes at document 2 in query 0.",
    ),
    ("too many slices", lambda: fr.evaluate(*RIGHT, by=["a", "b"]), "by 'by' must have one entry a query, 1, not 2."),
    (
        "docid without ids",
        lambda: fr.evaluate(*RIGHT, ties="docid"),
        "ties='docid' orders equal scores by document id: give doc_ids=, or another rule with ties=.",
    ),
    (
        "docid in the functions",
        lambda: fr.ndcg(*RIGHT, ties="docid"),
        "ties='docid' orders equal scores by document id: give doc_ids=, or another rule with ties=.",
    ),
    (
        "an unknown tie rule",
        lambda: fr.evaluate(*RIGHT, ties="averge"),
        "ties must be one of 'average', 'input', 'worst', 'best', 'docid', not 'averge'. Did you mean 'average'?",
    ),
    (
        "an unknown rule",
        lambda: fr.evaluate(*RIGHT, no_relevant="drop"),
        "no_relevant must be one of 'zero', 'one', 'nan', 'skip', not 'drop'.",
    ),
    ("an unknown convention", lambda: fr.evaluate(*RIGHT, convention="lightgmb"), "Did you mean 'lightgbm'?"),
    ("no convention", lambda: fr.evaluate(*RIGHT, convention=None), "convention must be one of 'fastrank'"),
    (
        "a rule that a metric lacks",
        lambda: fr.evaluate(*RIGHT, metrics="AP(denominator='hits')", ties="average"),
        "AP(denominator='hits') is not defined for ties='average'. It takes 'input', 'worst', 'best', 'docid'.",
    ),
    (
        "a rule in the name that it lacks",
        lambda: fr.evaluate(*RIGHT, metrics="AP(denominator='hits', ties='average')"),
        "is not defined for ties='average'.",
    ),
    ("depth 0", lambda: fr.evaluate(*RIGHT, depth=0), "depth must be a whole number from 1 up, not 0."),
    ("a true depth", lambda: fr.evaluate(*RIGHT, depth=True), "depth must be a whole number from 1 up, not True."),
    ("half a depth", lambda: fr.evaluate(*RIGHT, depth=1.5), "depth must be a whole number from 1 up, not 1.5."),
    (
        "AUC of a cut list",
        lambda: fr.evaluate(*RIGHT, metrics="AUC", depth=2),
        "AUC compares all documents of a list, so it takes no depth=. Leave out depth or the metric.",
    ),
    (
        "Concordance of a cut list",
        lambda: fr.evaluate(*RIGHT, metrics="Concordance", depth=2),
        "Concordance compares all documents of a list, so it takes no depth=.",
    ),
    (
        "bpref of a tied cut list",
        lambda: fr.evaluate(*RIGHT, metrics="Bpref", depth=2),
        "Bpref has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.",
    ),
    ("no threads", lambda: fr.evaluate(*RIGHT, threads=0), "threads must be a whole number from 1 up, or None for all "),
    ("a float of threads", lambda: fr.evaluate(*RIGHT, threads=2.0), "threads must be a whole number from 1 up, or None for all "),
    ("no metrics", lambda: fr.evaluate(*RIGHT, metrics=[]), "no metric is named. Name one, such as nDCG@10."),
    (
        "None as metrics",
        lambda: fr.evaluate(*RIGHT, metrics=None),
        "metrics are named by text, by a Metric or by several of them, not by None.",
    ),
    ("a list among metrics", lambda: fr.evaluate(*RIGHT, metrics=[["RR"]]), "a metric is a name or a Metric, not ['RR']."),
    (
        "a huge label",
        lambda: fr.evaluate([2000, 1]),
        "label 2000 is too large for the gain 2^label - 1, which overflows above 1000. Use gain='linear' or a table such as gain={0: 0, 1: 1, ...}.",
    ),
    ("a huge label, not retrieved", lambda: fr.evaluate([2000, 1], [None, 1]), "label 2000 is too large for the gain 2^label - 1"),
    ("a huge linear label", lambda: fr.ndcg([1e308, 1e308], gain="linear"), "label 1e+308 is too large to sum"),
    ("a huge gain", lambda: fr.ndcg([1], gain={1: 1e308}), "gain table must be finite, at most 1.07151e+301: entry 0 is 1e+308."),
    (
        "a label above ERR's",
        lambda: fr.err([5, 1]),
        "label 5 is above the largest label of ERR, max_label=4. Give max_label, such as ERR(max_label=5).",
    ),
    (
        "a label without a gain",
        lambda: fr.ndcg([1, 2.5], gain={1: 1}),
        "label 2.5 has no entry in the gain table {1: 1}. Add one, such as {2.5: 0}.",
    ),
    (
        "a label beyond the gains",
        lambda: fr.ndcg([1, 7], gain=[0, 1]),
        "label 7 has no entry in the gain table {0: 0, 1: 1}. Add one, such as {7: 0}.",
    ),
    ("an unknown gain", lambda: fr.ndcg([1], gain="exp"), "gain 'exp' is not known. Use 'exp2'"),
    ("a gain of no form", lambda: fr.ndcg([1], gain=2), "gain must be a name, a table or a sequence, not 2."),
    ("a set of gains", lambda: fr.ndcg([1], gain={0, 1}), "gain must be a name, a table or a sequence, not {0, 1}."),
    ("no gains", lambda: fr.ndcg([1], gain={}), "the gain table is empty. Give every label its gain, such as {0: 0, 1: 1}."),
    ("gains in words", lambda: fr.ndcg([1], gain={1: "a"}), "gain table must hold numbers, not ['a']."),
    ("an infinite gain", lambda: fr.ndcg([1], gain=[0, INF]), "gain table must be finite, at most 1.07151e+301: entry 1 is inf."),
    (
        "an unknown discount",
        lambda: fr.ndcg([1], discount="log"),
        "discount 'log' is not known. Use log2, ln, zipf, power:B, geometric:P, jarvelin:B, or an array over ranks 1, 2, ...",
    ),
    (
        "a power of none",
        lambda: fr.ndcg([1], discount="power:0"),
        "discount 'power:0': power takes a number above 0 after the colon, such as 'power:0.5'.",
    ),
    (
        "a wide geometric",
        lambda: fr.ndcg([1], discount="geometric:1"),
        "discount 'geometric:1': geometric takes a number between 0 and 1 after the colon",
    ),
    ("a small base", lambda: fr.ndcg([1], discount="jarvelin:1"), "discount 'jarvelin:1': jarvelin takes a base above 1 after the colon"),
    (
        "a base in words",
        lambda: fr.ndcg([1], discount="jarvelin:two"),
        "discount 'jarvelin:two': jarvelin takes a base above 1 after the colon",
    ),
    ("a discount of no form", lambda: fr.ndcg([1], discount=2), "discount must be a name or a sequence over ranks 1, 2, ..., not 2."),
    ("no discounts", lambda: fr.ndcg([1], discount=[]), "the discount table is empty. Give one number a rank, starting with rank 1."),
    ("a huge discount", lambda: fr.ndcg([1], discount=[1e300]), "discount table must be finite, at most 1.04858e+06: entry 0 is 1e+300."),
    (
        "labels that are not binary",
        lambda: fr.evaluate([1, 2, 0], metrics="AP", convention="xgboost"),
        "labels 0 and 1 only, not 2. Binarise the labels, or use another convention.",
    ),
    (
        "a null score later on",
        lambda: fr.LabelledQueries([1, 0]).evaluate([1, None]),
        "scores must not be null here: LabelledQueries keeps one list of documents. Use evaluate().",
    ),
    ("too few scores later on", lambda: fr.LabelledQueries([1, 0]).evaluate([1]), "scores must have one entry a document, 2, not 1."),
    ("a NaN score later on", lambda: fr.LabelledQueries([1, 0]).evaluate([1, NAN]), "scores must not be NaN: query 0, document 1 (row 1)."),
    (
        "rows apart with labels that stay",
        lambda: fr.LabelledQueries([1, 0, 1], query_ids=[1, 2, 1]),
        "query_ids: the rows of a query must stand together here, ",
    ),
]


@pytest.mark.parametrize(("call", "message"), [pytest.param(call, message, id=name) for name, call, message in QUEUE])
def test_an_error_is_one_line_that_names_the_argument_the_rule_the_place_and_the_cure(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rel": 0}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not 0."),
        ({"rel": "1"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '1'."),
        ({"rel": ">x"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '>x'."),
        ({"rel": ">-1"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '>-1'."),
        ({"rel": True}, "rel must be a number, not True."),
        ({"rel": None, "denominator": "n"}, "denominator must be one of 'k', 'retrieved', not 'n'."),
        ({"rel": [1]}, "rel must be a number, not [1]."),
        ({"rel": INF}, "rel must be finite, not inf."),
    ],
)
def test_a_parameter_out_of_its_range_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message) + "$"):
        m.P(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.RBP(p=1), "p must be above 0 and below 1, not 1."),
        (lambda: m.PNormPush(p=0), "p must be above 0, not 0."),
        (lambda: m.F(beta=-1), "beta must be above 0 and below 1e+100, not -1."),
        (lambda: m.F(beta=1e200), "beta must be above 0 and below 1e+100, not 1e+200."),
        (lambda: m.ERR(max_label=1000), "max_label must be above 0 and below 1000, not 1000."),
        (lambda: m.Rprec(k=5), "Rprec takes no cutoff: it judges the whole list. Leave out k."),
        (lambda: fr.f1([1], rel="x"), "rel must be a number above 0"),
    ],
)
def test_parameters_of_single_metrics_are_held_to_their_range(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        call()


# --- streams and held labels ---------------------------------------------------------------------------------------------------


def test_an_evaluator_refuses_to_mix_what_does_not_belong_together() -> None:
    one = fr.Evaluator("RR")
    one.update([1, 0], sizes=[1, 1], query_ids=None)
    with pytest.raises(fr.InputError, match="batches must all have the same of query_ids, weights and by"):
        one.update([1], weights=[2])
    for other, name in (
        (fr.Evaluator("AP"), "metrics"),
        (fr.Evaluator("RR(rel=2)"), "metrics"),
        (fr.Evaluator("RR", "lightgbm"), "metrics"),
        (fr.Evaluator("RR", depth=5), "depth"),
        (fr.Evaluator("RR", judged_only=True), "judged_only"),
        (fr.Evaluator("RR", per_query=False), "per_query"),
    ):
        with pytest.raises(fr.InputError, match=f"these evaluators cannot be merged: {name} is "):
            one.merge(other)
    # On an error nothing was added.
    assert one.result().n_queries == 2
    assert one.result().values[:, 0].tolist() == [1, 0]


def test_a_failed_update_adds_nothing_and_the_evaluator_goes_on() -> None:
    evaluator = fr.Evaluator("RR")
    for labels in ([NAN], ["x"], [-1]):
        with pytest.raises(fr.InputError):
            evaluator.update(labels)
    evaluator.update([0, 1])
    before = evaluator.result()
    evaluator.update([1])
    assert before.values.tolist() == [[1 / 2]]
    assert evaluator.result().values.tolist() == [[1 / 2], [1]]
    assert evaluator.n_queries == 2
    assert repr(evaluator) == "Evaluator(RR; 2 queries so far)"


def test_serialised_evaluators_are_checked() -> None:
    with pytest.raises(fr.InputError, match="these bytes are no serialised Evaluator"):
        fr.Evaluator.from_bytes(b"nothing")
    with pytest.raises(fr.InputError, match="these bytes are no serialised Evaluator"):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema([("a", pa.int8())])) as stream:
            stream.write_table(pa.table({"a": pa.array([1], pa.int8())}))
        fr.Evaluator.from_bytes(bytes(sink.getvalue()))
    data = fr.Evaluator("RR").to_bytes()
    assert data.count(b'"format": 1') == 1
    with pytest.raises(fr.InputError, match="this Evaluator was written in format 9; this version reads format 1"):
        fr.Evaluator.from_bytes(data.replace(b'"format": 1', b'"format": 9'))


def test_an_evaluator_travels_with_ids_weights_slices_bounds_and_notes() -> None:
    evaluator = fr.Evaluator("RR,nDCG@2", bounds=True, no_relevant="skip")
    evaluator.update([1, 0, 0], [1, 1, 2], query_ids=["a", "a", "b"], weights=[2, 3], by={"part": ["x", None]})
    evaluator.update(
        [1, 0], [1, 2], query_ids=pa.array(["c", "c"], pa.large_string()), weights=[1], by={"part": pa.array(["x"], pa.large_string())}
    )
    copy = fr.Evaluator.from_bytes(evaluator.to_bytes())
    one, two = evaluator.result(), copy.result()
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.bounds.low, two.bounds.low)
    np.testing.assert_array_equal(one.bounds.high, two.bounds.high)
    assert one.query_ids.to_pylist() == two.query_ids.to_pylist() == ["a", "b", "c"]
    assert one.weights.tolist() == two.weights.tolist() == [2, 3, 1]
    assert one.by["part"].to_pylist() == two.by["part"].to_pylist() == ["x", None, "x"]
    assert one.notes == two.notes
    assert repr(one) == repr(two)
    # Query ids of several integer types become one type.
    mixed = fr.Evaluator("RR")
    mixed.update([1], query_ids=np.array([1], np.int8))
    mixed.update([1], query_ids=np.array([2**40], np.int64))
    assert mixed.result().query_ids.to_pylist() == [1, 2**40]


def test_a_convention_of_your_own_is_given_again() -> None:
    import dataclasses

    mine = dataclasses.replace(fr.conventions["fastrank"], name="mine", rel=2)
    evaluator = fr.Evaluator("RR", mine)
    evaluator.update([1, 2])
    assert fr.Evaluator.from_bytes(evaluator.to_bytes(), mine).result().values.tolist() == [[1 / 2]]


def test_labelled_queries_take_groups_as_evaluate_does() -> None:
    labels, scores = [0, 1, 1, 0], [4, 3, 2, 1]
    for how in ({"offsets": [0, 2, 4]}, {"sizes": [2, 2]}, {"query_ids": ["b", "b", "a", "a"]}):
        queries = fr.LabelledQueries(labels, **how)
        assert queries.n_queries == 2
        assert queries.evaluate(scores, metrics="RR").values[:, 0].tolist() == [1 / 2, 1]
    matrix = fr.LabelledQueries([[0, 1], [1, 0]])
    assert matrix.evaluate([[4, 3], [2, 1]], metrics="RR").values[:, 0].tolist() == [1 / 2, 1]
    assert matrix.evaluate([4, 3, 2, 1], metrics="RR").values[:, 0].tolist() == [1 / 2, 1]
    unjudged = fr.LabelledQueries([None, 1], doc_ids=["a", "b"])
    assert unjudged.evaluate([1, 1], metrics="RR,Judged", ties="docid").values.tolist() == [[1, 1 / 2]]
    assert repr(unjudged) == "LabelledQueries(1 queries, 2 documents)"
    named = fr.LabelledQueries([0, 1], query_ids=["x", "x"], convention="sklearn")
    assert named.evaluate([1, 1], metrics="nDCG").query_ids.to_pylist() == ["x"]
    with pytest.raises(fr.InputError, match="query 'x', document 1"):
        named.evaluate([1, NAN])


def test_no_copy_of_contiguous_input_is_made_that_a_huge_batch_would_feel() -> None:
    from fastrank.batch import make_batch

    labels, scores, offsets = np.zeros(10, np.uint8), np.zeros(10, np.float32), np.array([0, 10])
    batch = make_batch(labels, scores, offsets, convention=fr.conventions["fastrank"])
    assert np.shares_memory(batch.labels, labels)
    assert np.shares_memory(batch.scores, scores)
    assert not batch.labels.flags.writeable
    assert as_batch([]).n_queries == 0

"""Every form in which labels, scores, groups and ids may be handed over, and that scores are compared as they are given."""

from __future__ import annotations

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
from strategies import FORMS, Batch, counts, masked, random_batch, values

import fastrank as fr
from fastrank.batch import LIKELY_UNGROUPED

LOG3 = np.log2(3)
NAN, INF = float("nan"), float("inf")
EVERY = tuple(metric for family in TABLE for metric in instances(family, "average"))


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
        pa.array([None, Decimal(1), Decimal(0)]),
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

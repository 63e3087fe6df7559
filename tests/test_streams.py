"""`Evaluator` and `LabelledQueries`: what they keep, what they refuse to mix, and how an evaluator travels."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from metric_table import TABLE, instances

import fastrank as fr
from fastrank.batch import make_batch

LOG3 = np.log2(3)
NAN, INF = float("nan"), float("inf")
EVERY = tuple(metric for family in TABLE for metric in instances(family, "average"))


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
    with pytest.raises(fr.InputError, match=r"^merge takes another Evaluator, not Evaluation\.$"):
        one.merge(fr.evaluate([1], metrics="RR"))
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
    sink, table = pa.BufferOutputStream(), pa.table({"a": [1]})
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(fr.InputError, match="these bytes are no serialised Evaluator"):
        fr.Evaluator.from_bytes(bytes(sink.getvalue()))
    data = fr.Evaluator("RR").to_bytes()
    assert data.count(b'"format": 2') == 1
    with pytest.raises(fr.InputError, match="this Evaluator was written in format 9; this version reads format 2"):
        fr.Evaluator.from_bytes(data.replace(b'"format": 2', b'"format": 9'))


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
    labels, scores, offsets = np.zeros(10, np.uint8), np.zeros(10, np.float32), np.array([0, 10])
    batch = make_batch(labels, scores, offsets, convention=fr.conventions["fastrank"])
    assert np.shares_memory(batch.labels, labels)
    assert np.shares_memory(batch.scores, scores)
    assert not batch.labels.flags.writeable

"""Arguments of another kind than asked for are one line that says what, where and the cure; their neighbours of the right kind work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastrank as fr
from fastrank import clicks

LABELS, SCORES = [1, 0, 2], [0.1, 0.2, 0.3]
LOG = clicks.ClickLog([0, 2], doc=["a", "b"], click=[1, 0])
MODEL = clicks.ClickModel("dcm", attr=[0.4, 0.6], cont=[0.7, 0.5], docs=["a", "b"])


def fails(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("function", [fr.ndcg, fr.dcg, fr.precision, fr.err, fr.average_precision, fr.reciprocal_rank])
@pytest.mark.parametrize("k", [np.array(2), np.array(0.5), np.array(True), b"2", [1, [2]], np.array([[1, 2]])])
def test_a_cutoff_is_a_number_or_a_flat_sequence(function: Any, k: Any) -> None:
    fails(lambda: function(LABELS, SCORES, k=k), "^k must be a whole number from 1 up, or a share of the list")
    assert function(LABELS, SCORES, k=np.array([2])).shape == (1, 1)
    assert function(LABELS, SCORES, k=np.int64(2)).tolist() == function(LABELS, SCORES, k=2).tolist()


@pytest.mark.parametrize("table", [np.array(2.0), np.array("exp2"), b"exp2", {0, 1}, 2, pa.scalar(2)])
def test_a_gain_and_a_discount_are_names_or_tables(table: Any) -> None:
    fails(lambda: fr.ndcg(LABELS, SCORES, gain=table), "^gain must be a name, a table or a sequence, not ")
    fails(lambda: fr.ndcg(LABELS, SCORES, discount=table), r"^discount must be a name or a sequence over ranks 1, 2, \.\.\., not ")
    assert fr.ndcg(LABELS, SCORES, gain=np.array([0.0, 1.0, 2.0])).tolist() == fr.ndcg(LABELS, SCORES, gain="linear").tolist()


TOO_LARGE, MIXED, NESTED = [0, 2**70, 1], [1, "a", 2], [[1], [2], [3]]


@pytest.mark.parametrize(
    "values", [TOO_LARGE, [2**64 - 1, 0, 0], MIXED, [True, 2, "x"], [object()] * 3, 3, pa.scalar(1), np.array([1 + 2j] * 3)]
)
def test_ids_and_slices_are_columns_of_one_type(values: Any) -> None:
    offsets = [0, 1, 2, 3]
    fails(lambda: fr.evaluate(LABELS, SCORES, query_ids=values), "^query_ids must be ids of one type, text or integers ")
    fails(lambda: fr.evaluate(LABELS, SCORES, [0, 3], doc_ids=values, ties="docid"), "^doc_ids must be ids of one type, text or integers ")
    for by in (values, {"by": values}):
        fails(
            lambda by=by: fr.evaluate(LABELS, SCORES, offsets, by=by), "^by 'by' must be a column of values of one type, text or numbers "
        )


@pytest.mark.parametrize("values", [NESTED, pa.array(NESTED), pa.chunked_array([NESTED]), [{"a": 1}] * 3])
def test_ids_and_slices_are_flat(values: Any) -> None:
    fails(lambda: fr.evaluate(LABELS, SCORES, query_ids=values), "^query_ids must be ids of one type, text or integers, not ")
    fails(
        lambda: fr.evaluate(LABELS, SCORES, [0, 3], doc_ids=values, ties="docid"),
        "^doc_ids must be ids of one type, text or integers, not ",
    )
    fails(lambda: fr.evaluate(LABELS, SCORES, [0, 1, 2, 3], by=values), "^by 'by' must be a column of text or numbers, not of ")


def test_large_ids_and_slices_that_have_a_type() -> None:
    large = np.array([2**64 - 1, 2**64 - 1, 0], np.uint64)
    assert fr.evaluate(LABELS, SCORES, query_ids=large).query_ids.to_pylist() == [2**64 - 1, 0]
    assert list(fr.evaluate(LABELS, SCORES, [0, 1, 2, 3], by=large).slice_moments["by"]) == [0, 2**64 - 1]
    assert list(fr.evaluate(LABELS, SCORES, [0, 1, 2, 3], by=[1.5, None, 1.5]).slice_moments["by"]) == [1.5, None]


@pytest.mark.parametrize("given", [[], None, "log.parquet", {"click": [1]}, pa.table({"click": [1]}), np.array(1), clicks.ClickLog])
def test_what_is_no_click_log_or_click_model_is_told(given: Any) -> None:
    cure = r"Make one with ClickLog\(\.\.\.\), ClickLog\.from_table or ClickLog\.from_arrow\.$"
    for call in (clicks.fit, lambda log: clicks.score(MODEL, log), lambda log: clicks.probabilities(MODEL, log), MODEL.summary):
        fails(lambda call=call: call(given), f"^log must be a ClickLog, not .*{cure}")
    fails(lambda: clicks.simulate(given, MODEL), f"^log must be a ClickLog, not .*{cure}")
    for call in (
        lambda model: clicks.score(model, LOG),
        lambda model: clicks.probabilities(model, LOG),
        lambda model: clicks.simulate(LOG, model),
    ):
        fails(
            lambda call=call: call(given), r"^model must be a ClickModel, not .*Make one with fit\(log, \.\.\.\) or ClickModel\(\.\.\.\)\.$"
        )


def test_logs_and_models_in_their_places() -> None:
    fails(lambda: clicks.score(LOG, MODEL), "^model must be a ClickModel, not ClickLog")
    fails(lambda: clicks.simulate(MODEL, LOG), "^model must be a ClickModel, not ClickLog")
    assert clicks.score(MODEL, LOG).ll_session < 0
    assert clicks.simulate(LOG, MODEL, seed=1).shape == (2,)
    assert clicks.fit(LOG, "dctr").attr.shape == (2,)


@pytest.mark.parametrize("side", [np.array(1), np.array("x"), 3, object(), pa.scalar(1)])
def test_id_lists_are_lists(side: Any) -> None:
    lists, dicts = np.array([[1, 2], [3, 4]]), {"q": {"d": 1}}
    for given in ((side, lists), (lists, side), (side, dicts), ({"q": side}, dicts)):
        with pytest.raises(fr.InputError) as caught:
            fr.evaluate_ids(*given)
        assert "\n" not in str(caught.value)
    assert fr.evaluate_ids(lists, np.array([[1, -1], [4, -1]]), metrics="RR").mean() == {"RR": 0.75}

"""Inputs that broke tools of this kind: duplicates, types of scores and ids, groups of rows, repeated calls.

One test per entry of field_reports.jsonl, named by its id: input and right value come from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import conformance
import numpy as np
import pyarrow as pa
import pytest
import test_field_reports_numbers  # noqa: F401  (its tests enter TESTED)
from field_reports import LEFT, TESTED, Values, agrees, in_order, joined, judged, masked, report, value

import fastrank as fr

# --- the same document twice -----------------------------------------------------------------------------------------------------------


def once(ranking: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(ranking))


@report(39)
def test_no_ids_are_made_up_for_duplicates(given: Values, right: Values) -> None:
    ranking, [(query, labels)] = given["ranking_with_duplicates"], given["qrels"].items()
    with pytest.raises(fr.InputError, match="'a' stands twice"):
        fr.evaluate(masked(map(labels.get, ranking)), doc_ids=ranking)
    agrees(judged(given["qrels"], {query: in_order(once(ranking))}, ["nDCG@3"])["mean"], {"nDCG@3": right["ndcg_3"]})


@report(81)
def test_a_judgement_given_twice(given: Values, right: Values) -> None:
    users, items = zip(*given["interactions"], strict=True)
    with pytest.raises(fr.InputError, match="'i' stands twice"):
        fr.evaluate([1] * len(items), [2, 2, 1], query_ids=users, doc_ids=items)
    run = {users[0]: in_order(given["recommendation"])}
    found = judged({users[0]: dict.fromkeys(items, 1)}, run, ["AP@2", "R@2"])["mean"]
    agrees(found, {"AP@2": right["AP_2"], "R@2": right["recall_2"]})


@report(155)
def test_duplicates_cannot_lift_a_metric_above_one(given: Values, right: Values) -> None:
    ranking, k = given["ranking_of_chunks_mapped_to_pages"], given["k"]
    [(query, labels)] = given["qrels"].items()
    with pytest.raises(fr.InputError, match="'p' stands twice"):
        fr.evaluate([labels[doc] for doc in ranking], doc_ids=ranking)
    found = judged(given["qrels"], {query: in_order(once(ranking))}, [f"R@{k}", f"nDCG@{k}"])["mean"]
    agrees(found, {f"R@{k}": right["recall_3"], f"nDCG@{k}": right["ndcg_3"]})


# --- scores and dtypes -----------------------------------------------------------------------------------------------------------------


@report(93)
def test_scores_that_are_no_numbers(given: Values, right: Values) -> None:
    case = given["nan_case"]
    scores = np.array(case["scores"], float)
    assert right["labels_case_raise"] == "ValueError"
    with pytest.raises(ValueError, match=r"scores must not be NaN: query 0, document 0 \(row 0\)"):
        fr.evaluate(case["labels"], scores)
    last = np.where(np.isnan(scores), -np.inf, scores)
    agrees({"RR": value("RR", case["labels"], last)}, right["labels_case_nan_last"])
    assert value("RR", case["labels"], np.where(np.isnan(scores), np.inf, scores)) == 1.0
    words = [line.split()[4] for line in given["run_text"].splitlines()]
    with pytest.raises(fr.InputError, match="score"):
        fr.evaluate_table(pa.table({"query_id": ["q", "q"], "label": [1, 0], "score": words}))


@report(95)
def test_scores_below_zero(given: Values, right: Values) -> None:
    agrees(judged(given["qrels"], given["run"], right)["mean"], right)


@report(97)
def test_any_type_of_a_data_frame(given: Values, right: Values) -> None:
    pd = pytest.importorskip("pandas")
    assert right == {"float32_scores_ok": True}
    ids = ["str", "object", "category", "string[pyarrow]", "int64"]
    assert {"category", "string[pyarrow]", "int64"} <= set(re.split(r" \| ", given["df_dtypes"]["q_id"]))
    for kind in ids:
        query = pd.Series([1, 1, 2] if kind == "int64" else ["1", "1", "2"]).astype(kind)
        for score in ("float16", "float32", "float64", "int32", "Float64", "Int64", "float32[pyarrow]", "decimal"):
            numbers = pd.Series([Decimal(n) for n in (1, 2, 3)]) if score == "decimal" else pd.Series([1, 2, 3]).astype(score)
            frame = pd.DataFrame({"q_id": query, "doc_id": ["a", "b", "a"], "score": numbers, "label": [1, 0, 1]})
            result = fr.evaluate_table(frame, "RR", query="q_id", doc="doc_id")
            assert result["RR"].tolist() == [0.5, 1.0], (kind, score)


@report(99)
def test_any_arrow_type_of_ids(given: Values, right: Values) -> None:
    plain, label, score = ["a", "a", "b", "b"], [1, 0, 0, 1], [1.0, 2.0, 2.0, 1.0]
    arrays: dict[str, Any] = {
        "string": pa.array(plain, pa.string()),
        "large_string": pa.array(plain, pa.large_string()),
        "string_view": pa.array(plain, pa.string_view()),
        "dictionary<int32,large_string>": pa.chunked_array(
            [pa.array(part, pa.large_string()).dictionary_encode() for part in (plain[:2], plain[2:])]
        ),
        "chunked with an empty first chunk": pa.chunked_array([pa.array([], pa.string()), pa.array(plain)]),
        "sliced array with offset != 0": pa.array(["z", *plain, "z"])[1:5],
    }
    assert list(arrays) == given["arrow_types"]
    assert right == {}
    for name, ids in arrays.items():
        for result in (
            fr.evaluate_table(pa.table({"query_id": ids, "label": label, "score": score}), "RR"),
            fr.evaluate(label, score, query_ids=ids, metrics="RR"),
        ):
            assert result.query_ids.to_pylist() == ["a", "b"], name
            assert result["RR"].tolist() == [0.5, 0.5], name
        holed = pa.array([None, *plain[1:]])
        with pytest.raises(fr.InputError, match="null"):
            fr.evaluate_table(pa.table({"query_id": holed, "label": label, "score": score}), "RR")


@report(103)
def test_ids_are_never_rounded(given: Values, right: Values) -> None:
    assert "53 bits" in given["idea"]
    assert right == {}
    near = 2**60 + np.arange(3)
    assert len(set(near.astype(np.float64))) == 1
    assert value("RR", [0, 0, 1], [1, 1, 1], doc_ids=near, ties="docid") == 1.0
    assert fr.evaluate([1, 1, 1], query_ids=near, metrics="RR").query_ids.to_pylist() == near.tolist()


@report(149)
def test_descending_order_of_every_integer(given: Values, right: Values) -> None:
    def order(scores: np.ndarray) -> list[int]:
        """Documents by rank, each made the only relevant one in turn."""
        ranks = [value("RR", np.arange(len(scores)) == doc, scores) for doc in range(len(scores))]
        return [int(doc) for doc in np.argsort(ranks)[::-1]]

    assert order(np.array(given["scores_uint8"], np.uint8)) == right["order_uint8_desc"]
    assert order(np.array(given["scores_int64"], np.int64)) == [1, 0]
    assert order(np.array([False, True])) == [1, 0]
    assert order(2**53 + np.arange(3)) == [2, 1, 0]
    assert order(np.array([0, 2**64 - 1], np.uint64)) == [1, 0]


# --- which rows are one query ----------------------------------------------------------------------------------------------------------


@report(101)
def test_categories_without_rows_are_no_queries(given: Values, right: Values) -> None:
    pd = pytest.importorskip("pandas")
    ids = pd.Categorical(given["qid_category_values"], categories=given["categories"])
    frame = pd.DataFrame({"query_id": ids, "label": given["labels"], "score": given["scores"]})
    for result in (fr.evaluate(given["labels"], given["scores"], query_ids=ids), fr.evaluate_table(frame)):
        assert result.query_ids.to_pylist() == [query for query, count in given["value_counts"].items() if count]
    one = value("nDCG@2", given["labels"], given["scores"])
    agrees({"ndcg_2_one_group": one}, right)
    with_empty = fr.evaluate(given["labels"], given["scores"], sizes=given["lightgbm_group"], metrics="nDCG@2", no_relevant="skip")
    agrees(with_empty.mean()["nDCG@2"], one)


@report(105)
def test_rows_of_a_query_need_not_stand_together(given: Values, right: Values) -> None:
    qid, labels, scores = (np.array(given[name]) for name in ("qid", "labels", "scores"))
    together = np.argsort(-qid, kind="stable")
    for order in (np.arange(len(qid)), together, together[::-1]):
        result = fr.evaluate(labels[order], scores[order], query_ids=qid[order], metrics="nDCG")
        agrees({"ndcg_mean": result.mean()["nDCG"]}, right)
        table = pa.table({"query_id": qid[order], "label": labels[order], "score": scores[order]})
        assert fr.evaluate_table(table, "nDCG").mean() == result.mean()


@report(107)
def test_a_forgotten_grouping_is_noted(given: Values, right: Values) -> None:
    labels, scores = given["labels"], given["scores"]
    agrees(fr.evaluate(labels, scores, metrics="nDCG").mean()["nDCG"], right["ndcg_if_one_query"])
    agrees(fr.evaluate(labels, scores, sizes=[2, 2], metrics="nDCG").mean()["nDCG"], right["ndcg_if_two_queries"])
    many = fr.evaluate(labels * 5000, scores * 5000, metrics="nDCG")
    assert [note.kind for note in many.notes if "one query" in note.message]


@report(109)
def test_sizes_offsets_and_ids_are_three_arguments(given: Values, right: Values) -> None:
    labels, ids, sizes = [1, 0, 1, 0], given["group_given"], given["group_sizes_expected"]
    assert len(labels) == given["n_rows"]
    assert right == {}
    with pytest.raises(fr.InputError, match=r"sizes must sum to the number of documents, 4, not 6\. These look like query ids"):
        fr.evaluate(labels, sizes=ids)
    with pytest.raises(fr.InputError, match="offsets must begin with 0"):
        fr.evaluate(labels, offsets=sizes)
    with pytest.raises(fr.InputError, match="give one of offsets, sizes and query_ids"):
        fr.evaluate(labels, sizes=sizes, query_ids=ids)
    assert fr.evaluate(labels, sizes=sizes).values.tobytes() == fr.evaluate(labels, query_ids=ids).values.tobytes()


@report(111)
def test_two_dimensions_are_a_query_a_row(given: Values, right: Values) -> None:
    agrees({"mean_over_rows": fr.ndcg(given["labels"], given["scores"]).mean()}, right)
    agrees({"mean_over_rows": fr.evaluate(given["labels"], given["scores"], metrics="nDCG").mean()["nDCG"]}, right)


@report(113)
def test_sizes_are_summed_in_64_bits(given: Values, right: Values) -> None:
    total = right["offsets"][-1]
    with pytest.raises(fr.InputError, match=f"sizes must sum to the number of documents, 2, not {total}"):
        fr.evaluate([1, 0], sizes=np.array(given["sizes"], np.int32))


@report(115)
def test_a_fold_of_rows_with_the_groups_of_all(given: Values, right: Values) -> None:
    fold = given["bad_fold_rows"]
    labels = np.array(given["labels"])[fold]
    assert right == {}
    with pytest.raises(fr.InputError, match="sizes must sum"):
        fr.evaluate(labels, sizes=given["group"])
    ids = np.repeat(np.arange(len(given["group"])), given["group"])[fold]
    assert np.isfinite(fr.evaluate(labels, query_ids=ids).values).all()


# --- calls -----------------------------------------------------------------------------------------------------------------------------


@report(117)
def test_labels_come_first(given: Values, right: Values) -> None:
    assert fr.ndcg(given["labels"], given["scores"]).item() == right["ndcg"]
    labels, scores = [2, 0, 1], [0.1, 0.9, 0.5]
    agrees(fr.ndcg(labels, scores, gain="linear").item(), (1 / np.log2(3) + 2 / np.log2(4)) / (2 + 1 / np.log2(3)))
    assert fr.ndcg(labels, scores).item() != fr.ndcg(scores, labels).item()


def _both_cutoffs(given: Values, right: Values, metrics: Any) -> None:
    data = joined(given["qrels"], given["run"])
    evaluator = fr.Evaluator(metrics)
    for _ in range(3):
        result = fr.evaluate(**data, metrics=metrics)
        agrees({name: result[name].item() for name in right}, right)
        assert len(result.metrics) == len(right)
        evaluator.update(data["labels"], data["scores"], query_ids=data["query_ids"])
        agrees({name: evaluator.result()[name][-1] for name in right}, right)


@report(131)
def test_a_second_call_has_every_metric(given: Values, right: Values) -> None:
    _both_cutoffs(given, right, given["measures"])


@report(141)
def test_cutoffs_of_one_measure_add_up(given: Values, right: Values) -> None:
    names = re.findall(r"-m (\S+)", given["args"])
    assert len(names) == len(right)
    for metrics in (names, ",".join(names), "ndcg_cut.5,20"):
        _both_cutoffs(given, right, metrics)


def test_every_entry_is_tested_or_left_with_a_reason() -> None:
    assert TESTED.isdisjoint(LEFT)
    assert TESTED | set(LEFT) == set(conformance.field_reports())
    assert len(TESTED) >= 59

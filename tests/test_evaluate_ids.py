"""Ranked ids without scores: every form of lists, against plain Python, labels in rank order, and runs with falling scores."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Sequence
from typing import Any

import conformance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank.errors import InputError

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

METRICS = "nDCG@2,nDCG,AP,RR,P@2,R@2,Success@1,NumRel,NumRet,Judged@2"

RETRIEVED = [[4, 1, 7], [5], [], [9, 8]]
RELEVANT = [[1, 4], [2, 5], [3], []]
EXPECTED = {
    "R@2": [1, 1 / 2, 0, 0],
    "RR": [1, 1, 0, 0],
    "AP": [1, 1 / 2, 0, 0],
    "P@2": [1, 1 / 2, 0, 0],
    "nDCG": [1, 1 / (1 + 1 / math.log2(3)), 0, 0],
    "NumRel": [2, 2, 1, 0],
    "NumRet": [3, 1, 0, 2],
}


def padded(lists: Sequence[Sequence[Any]], filler: Any = -1) -> list[list[Any]]:
    width = max(map(len, lists))
    return [[*ids, *[filler] * (width - len(ids))] for ids in lists]


def flat(lists: Sequence[Sequence[Any]]) -> tuple[list[Any], list[int]]:
    return [each for ids in lists for each in ids], [0, *np.cumsum(list(map(len, lists))).tolist()]


def as_text(ids: Sequence[int]) -> list[str]:
    return list(map(str, ids))


# --- forms ----------------------------------------------------------------------------------------------------------------------

FORMS: dict[str, Callable[[list[list[int]]], Any]] = {
    "lists": list,
    "tuples": lambda lists: [tuple(ids) for ids in lists],
    "text": lambda lists: [list(map(str, ids)) for ids in lists],
    "bytes": lambda lists: [[str(each).encode() for each in ids] for ids in lists],
    "None for nothing": lambda lists: [ids or None for ids in lists],
    "ranges and the like": lambda lists: [dict.fromkeys(ids).keys() for ids in lists],
    "NumPy arrays": lambda lists: [np.array(ids, np.int32) for ids in lists],
    "NumPy integers": lambda lists: [list(map(np.int64, ids)) for ids in lists],
    "Arrow arrays": lambda lists: [pa.array(ids, pa.int64()) for ids in lists],
    "array of objects": lambda lists: np.array([*map(tuple, lists), None], object)[:-1],
    "matrix": lambda lists: np.array(padded(lists)),
    "matrix of int32, columns first": lambda lists: np.asfortranarray(np.array(padded(lists), np.int32)),
    "matrix as lists": padded,
    "matrix with None": lambda lists: np.array(padded(lists, None), object),
    "matrix with NaN": lambda lists: np.array(padded(lists, math.nan), object),
    "matrix of text": lambda lists: np.array([[None if each is None else str(each) for each in ids] for ids in padded(lists, None)]),
    "masked matrix": lambda lists: np.ma.masked_equal(np.array(padded(lists)), -1),
    "masked, unsigned": lambda lists: np.ma.MaskedArray(np.abs(padded(lists)).astype(np.uint8), np.array(padded(lists)) < 0),
    "masked, 64 bits": lambda lists: np.ma.MaskedArray(
        np.array(padded(lists)).astype(np.uint64), np.array(padded(lists)) < 0, fill_value=0
    ),
    "read-only": lambda lists: np.broadcast_to(np.array(padded(lists)), (len(lists), max(map(len, lists)))),
    "list column": lambda lists: pa.array(lists, pa.list_(pa.int64())),
    "large list column": lambda lists: pa.array([["x"], *map(as_text, lists)], pa.large_list(pa.string()))[1:],
    "null lists": lambda lists: pa.array([ids or None for ids in lists], pa.list_(pa.int16())),
    "fixed lists": lambda lists: pa.array(padded(lists, None), pa.list_(pa.int64(), max(map(len, lists)))),
    "chunks": lambda lists: pa.chunked_array([pa.array(ids, pa.list_(pa.int64())) for ids in (lists[:1], lists[1:])]),
    "dictionary-encoded": lambda lists: pa.ListArray.from_arrays(flat(lists)[1], pa.array(as_text(flat(lists)[0])).dictionary_encode()),
    "offsets": flat,
    "offsets, arrays": lambda lists: (np.array(flat(lists)[0]), np.array(flat(lists)[1], np.int32)),
    "offsets, Arrow": lambda lists: (pa.array(flat(lists)[0]), pa.array(flat(lists)[1])),
}


@pytest.mark.parametrize("retrieved", FORMS)
def test_any_form_of_retrieved_ids(retrieved: str) -> None:
    expected = fr.evaluate_ids(RETRIEVED, RELEVANT, METRICS)
    result = fr.evaluate_ids(FORMS[retrieved](RETRIEVED), RELEVANT, METRICS)
    assert result.values.tobytes() == expected.values.tobytes()
    assert (result.query_ids, result.notes) == (None, expected.notes)


@pytest.mark.parametrize("relevant", FORMS)
@pytest.mark.parametrize("retrieved", ["lists", "text", "matrix"])
def test_any_form_of_relevant_ids(relevant: str, retrieved: str) -> None:
    result = fr.evaluate_ids(FORMS[retrieved](RETRIEVED), FORMS[relevant](RELEVANT), list(EXPECTED))
    for name, values in EXPECTED.items():
        assert result[name].tolist() == pytest.approx(values, abs=1e-15), name


@pytest.mark.parametrize("form", [set, frozenset, lambda ids: dict.fromkeys(ids, 1)])
@pytest.mark.parametrize("named", [False, True])
def test_relevant_ids_need_no_order(form: Any, named: bool) -> None:
    relevant: Any = [form(ids) for ids in RELEVANT]
    retrieved: Any = RETRIEVED
    if named:
        retrieved, relevant = (dict(zip("abcd", lists, strict=True)) for lists in (retrieved, relevant))
    result = fr.evaluate_ids(retrieved, relevant, METRICS)
    assert result.values.tobytes() == fr.evaluate_ids(RETRIEVED, RELEVANT, METRICS).values.tobytes()
    assert (result.query_ids and result.query_ids.to_pylist()) == (list("abcd") if named else None)


@pytest.mark.parametrize("library", ["pandas", "polars", "torch"])
def test_other_libraries(library: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    square = padded(RETRIEVED)
    forms = {
        "pandas": lambda: [module.Series(RETRIEVED), module.DataFrame(square), module.DataFrame(padded(RETRIEVED, None)).astype("Int64")],
        "polars": lambda: [module.Series(RETRIEVED), module.Series(RETRIEVED, dtype=module.List(module.Int32))],
        "torch": lambda: [module.tensor(square), module.tensor(square, dtype=module.int32)],
    }[library]()
    for form in forms:
        result = fr.evaluate_ids(form, RELEVANT, METRICS)
        assert result.values.tobytes() == fr.evaluate_ids(RETRIEVED, RELEVANT, METRICS).values.tobytes()


def test_labels_and_padding_in_any_place() -> None:
    result = fr.evaluate_ids([[-1, 7, -1, 3]], [{3: 3, 7: 0, 5: 1, -1: 9}], "DCG,IDCG,RR,NumRet,Judged")
    assert result.values[0].tolist() == pytest.approx([7 / math.log2(3), 7 + 1 / math.log2(3), 1 / 2, 2, 1], abs=1e-15)
    mixed = fr.evaluate_ids([["a", None, "b"], ["c"]], [{"b": 2}, ["c", None]], "DCG")
    assert mixed["DCG"].tolist() == pytest.approx([3 / math.log2(3), 1], abs=1e-15)


def test_nothing_is_written_to_what_was_given() -> None:
    retrieved, relevant = np.array(padded(RETRIEVED)), np.array(padded(RELEVANT))
    before = retrieved.copy(), relevant.copy()
    fr.evaluate_ids(retrieved, relevant)
    assert np.array_equal(retrieved, before[0])
    assert np.array_equal(relevant, before[1])
    assert retrieved.flags.writeable


# --- values ---------------------------------------------------------------------------------------------------------------------


def lists_of(ids: st.SearchStrategy[Any]) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.lists(ids, unique=True, max_size=8), min_size=3, max_size=3)


@given(lists_of(st.integers(0, 12)), st.lists(st.dictionaries(st.integers(0, 12), st.integers(0, 3), max_size=8), min_size=3, max_size=3))
@settings(max_examples=60 if COMPILED else 15, deadline=None)
def test_the_same_as_labels_in_rank_order(retrieved: list[list[int]], relevant: list[dict[int, int]]) -> None:
    labels, scores, sizes = [], [], []
    for ids, known in zip(retrieved, relevant, strict=True):
        rest = [label for each, label in known.items() if each not in ids]
        labels += [*(known.get(each) for each in ids), *rest]
        scores += [*(-float(place) for place in range(len(ids))), *[None] * len(rest)]
        sizes.append(len(ids) + len(rest))
    columns = [np.array([*column, 1.0], object)[:-1] for column in (labels, scores)]
    expected = fr.evaluate(*columns, sizes=sizes, metrics=METRICS)
    for form in (list, FORMS["text"], padded if any(retrieved) else list):
        result = fr.evaluate_ids(form(retrieved), relevant, METRICS)
        assert result.values.tobytes() == expected.values.tobytes()


@given(lists_of(st.text(max_size=3) | st.text("ab", max_size=2)), lists_of(st.text(max_size=3) | st.text("ab", max_size=2)))
@settings(max_examples=60 if COMPILED else 15, deadline=None)
def test_recall_and_reciprocal_rank_are_those_of_sets(retrieved: list[list[str]], relevant: list[list[str]]) -> None:
    result = fr.evaluate_ids(retrieved, list(map(set, relevant)), "R@3,RR")
    for q, (ids, known) in enumerate(zip(retrieved, relevant, strict=True)):
        hits = [place for place, each in enumerate(ids, 1) if each in known]
        assert result["R@3"][q] == (sum(place <= 3 for place in hits) / len(known) if known else 0)
        assert result["RR"][q] == (1 / hits[0] if hits else 0)


def random_lists(seed: int, n_queries: int = 30, width: int = 20) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    draw = random.Random(seed)
    retrieved = {f"q{q}": [f"d{i}" for i in draw.sample(range(60), width)] for q in range(n_queries)}
    relevant = {query: {f"d{i}": draw.choice([0, 1, 1, 2]) for i in draw.sample(range(60), 10)} for query in retrieved}
    del retrieved["q3"], relevant["q5"]
    return retrieved, relevant


@pytest.mark.parametrize("convention", ["fastrank", "trec_eval", "trec_eval9", "lightgbm"])
@pytest.mark.parametrize("options", [{}, {"missing": "skip"}, {"judged_only": True}, {"depth": 4}, {"no_relevant": "one"}])
def test_the_bits_of_a_run_with_falling_scores(convention: str, options: dict[str, Any]) -> None:
    retrieved, relevant = random_lists(1)
    run = {query: {doc: -float(place) for place, doc in enumerate(docs)} for query, docs in retrieved.items()}
    expected = fr.evaluate_run(relevant, run, METRICS, convention=convention, **options)
    numbered = [{query: {int(doc[1:]): label for doc, label in docs.items()} for query, docs in relevant.items()}]
    as_numbers = ({query: [int(doc[1:]) for doc in docs] for query, docs in retrieved.items()}, numbered[0])
    for threads, given_ids in ((1, (retrieved, relevant)), (2, (retrieved, relevant)), (2, as_numbers)):
        result = fr.evaluate_ids(*given_ids, METRICS, convention=convention, threads=threads, **options)
        assert result.values.tobytes() == expected.values.tobytes()
        assert result.query_ids.equals(expected.query_ids)
        assert (result.notes, result.metrics) == (expected.notes, expected.metrics)


def test_pytrec_eval_returns_the_same() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    names = {"map", "ndcg", "ndcg_cut_5", "recip_rank", "P_5", "recall_5"}
    retrieved, relevant = random_lists(2)
    run = {query: {doc: float(100 - place) for place, doc in enumerate(docs)} for query, docs in retrieved.items()}
    theirs = pytrec_eval.RelevanceEvaluator(relevant, names).evaluate(run)
    result = fr.evaluate_ids(retrieved, relevant, names, convention="trec_eval", missing="skip")
    for name in names:
        assert result[name].tolist() == pytest.approx([theirs[query][name] for query in result.query_ids.to_pylist()], abs=1e-12)


def test_queries_are_matched_by_id_as_in_runs() -> None:
    result = fr.evaluate_ids({1: ["7"], 2: ["8"], 9: ["9"]}, {"2": {8}, "1": {7: 2}}, "RR,DCG")
    assert (result.query_ids.to_pylist(), result.values.tolist()) == (["2", "1"], [[1, 1], [1, 3]])
    assert {note.kind: note.count for note in result.notes if "query" in note.kind} == {"unjudged_query": 1}
    qrels = fr.Qrels.read(b"q1 0 d2 1\nq1 0 7 2\n")
    assert fr.evaluate_ids({"q1": ["d1", "d2"]}, qrels, "RR").mean() == {"RR": 0.5}
    assert fr.evaluate_ids({"q1": [3, 7]}, qrels, "RR").mean() == {"RR": 0.5}


@pytest.mark.parametrize("least", [2**60, -(2**63), 2**63, 2**64 - 2, 2**70])
def test_ids_are_never_rounded(least: int) -> None:
    near = [least, least + 1]
    forms: list[Any] = [[near]]
    if -(2**63) <= near[0] < 2**64:
        forms.append(np.array([near], np.int64 if near[0] < 2**63 else np.uint64))
        forms.append(pa.array([near], pa.list_(pa.int64() if near[0] < 2**63 else pa.uint64())))
    for form in forms:
        for place, number in enumerate(near, 1):
            for wanted in (number, str(number)):
                assert fr.evaluate_ids(form, [[wanted]], "RR").mean() == {"RR": 1 / place}


def test_unsigned_and_negative_numbers_of_the_same_bits_differ() -> None:
    assert fr.evaluate_ids(np.array([[2**64 - 2]], np.uint64), [[-2]], "RR").mean() == {"RR": 0.0}
    assert fr.evaluate_ids([["-2", "+2", "2", "02"]], [[2]], "RR").mean() == {"RR": 1 / 3}


def test_empty_input() -> None:
    for retrieved, relevant in (([], []), ({}, {}), (np.empty((0, 5), int), []), (([], [0]), ([], [0]))):
        result = fr.evaluate_ids(retrieved, relevant, "RR")
        assert (result.n_queries, math.isnan(result.mean()["RR"])) == (0, True)
    result = fr.evaluate_ids({}, {"a": [1]}, "RR,NumRel")
    assert (result.values.tolist(), result.query_ids.to_pylist()) == ([[0, 1]], ["a"])
    assert fr.evaluate_ids(np.empty((2, 0), int), [[1], []], "RR").values.tolist() == [[0], [0]]
    assert fr.evaluate_ids([[None, None]], [[1]], "RR,NumRet").values.tolist() == [[0, 0]]


# --- cutoffs --------------------------------------------------------------------------------------------------------------------


def test_k_is_the_cutoff_of_metrics_without_one() -> None:
    names = [metric.short_name for metric in fr.evaluate_ids(RETRIEVED, RELEVANT, "R,nDCG@3,AUC,P(rel=2)", k=[1, 2]).metrics]
    assert names == ["R@1", "R@2", "nDCG@3", "AUC", "P(rel=2)@1", "P(rel=2)@2"]
    assert list(fr.evaluate_ids(RETRIEVED, RELEVANT, k=2).mean()) == ["nDCG@2", "RR@2", "AP@2"]
    assert list(fr.evaluate_ids(RETRIEVED, RELEVANT).mean()) == ["nDCG@10", "RR", "AP"]
    assert fr.evaluate_ids([[1, 2, 3, 4, 5]], [[2, 9]], "R", k="40%").mean() == {"R@40%": 0.5}
    for k in (0, -1, 1.5, "x", True, [1, 0]):
        with pytest.raises(InputError, match=r"^k must be a whole number from 1 up, or a share of the list"):
            fr.evaluate_ids(RETRIEVED, RELEVANT, k=k)


# --- duplicates -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["lists", "text", "matrix", "offsets"])
def test_an_id_twice_is_an_error_with_both_places(form: str) -> None:
    shown = repr("7") if form == "text" else "7"
    told = rf"document {shown} stands twice in query 1 of {{}}: place 2 and place 4\. Keep one of them, or say which with duplicates=\."
    twice = [[1, 2, 3, 4], [9, 7, 8, 7]]
    for unjudged in ([[1], [9]], [[1], [7]]):
        with pytest.raises(InputError, match=rf"^{told.format('retrieved')}$"):
            fr.evaluate_ids(FORMS[form](twice), FORMS[form](unjudged))
    with pytest.raises(InputError, match=rf"^{told.format('relevant')}$"):
        fr.evaluate_ids(FORMS[form]([[1], [5]]), FORMS[form](twice))


@pytest.mark.parametrize("form", ["lists", "text"])
@pytest.mark.parametrize(("rule", "rank"), [("first", 1), ("last", 2), ("max", 1)])
def test_which_of_two_is_kept(form: str, rule: str, rank: int) -> None:
    result = fr.evaluate_ids(FORMS[form]([[7, 8, 7, 9]]), FORMS[form]([[7, 7]]), "RR,NumRet,NumRel", duplicates=rule)
    assert result.values.tolist() == [[1 / rank, 3, 1]]
    assert {note.kind: note.count for note in result.notes}["duplicates"] == 2


@pytest.mark.skipif(not conformance.FOLDER.is_dir(), reason="no conformance data: ../shared/conformance is not beside this checkout")
def test_what_users_met() -> None:
    given, right = conformance.field_reports()[69]["input"], conformance.field_reports()[69]["right"]["values"]
    result = fr.evaluate_ids({"q": given["ranking"]}, given["qrels"], "R", k=range(1, 6))
    assert result.values[0].tolist() == right["recall@1..5"]
    for number, ranking, k in ((39, "ranking_with_duplicates", 3), (155, "ranking_of_chunks_mapped_to_pages", 3)):
        given, right = conformance.field_reports()[number]["input"], conformance.field_reports()[number]["right"]["values"]
        with pytest.raises(InputError, match="stands twice in query 'q' of retrieved: place 1 and place 2"):
            fr.evaluate_ids({"q": given[ranking]}, given["qrels"])
        result = fr.evaluate_ids({"q": given[ranking]}, given["qrels"], "R,nDCG", k=k, duplicates="first")
        assert result[f"nDCG@{k}"][0] == pytest.approx(right["ndcg_3"], abs=1e-15)
        assert result[f"R@{k}"][0] == right.get("recall_3", 0)
    given, right = conformance.field_reports()[81]["input"], conformance.field_reports()[81]["right"]["values"]
    relevant = {"u": [item for _, item in given["interactions"]]}
    with pytest.raises(InputError, match="document 'i' stands twice in query 'u' of relevant: place 1 and place 2"):
        fr.evaluate_ids({"u": given["recommendation"]}, relevant)
    result = fr.evaluate_ids({"u": given["recommendation"]}, relevant, "AP,R", k=given["k"], duplicates="first")
    assert result.values[0].tolist() == [right["AP_2"], right["recall_2"]]


# --- what is wrong ---------------------------------------------------------------------------------------------------------------

BAD: list[tuple[Any, Any, str]] = [
    (5, [[1]], r"retrieved must be a dict {query: ids}, a list of lists, a matrix .*, or a tuple \(ids, offsets\), not int\."),
    ("ab", [[1]], r"retrieved must be a dict .*, not str\."),
    ([[1]], pa.array([1]), r"relevant must be a dict .*, not a column of int64\."),
    (np.arange(3), [[1]], r"retrieved must have two dimensions, a query a row, not 1\. .*"),
    (np.zeros((1, 1, 1), int), [[1]], r"retrieved must have two dimensions, a query a row, not 3\. .*"),
    ([1, 2], [[1], [2]], r"retrieved\[0\] must be a list of ids, not int: 1\. For one query give a list of one list\."),
    (["ab"], [["a"]], r"retrieved\[0\] must be a list of ids, not str: 'ab'\. Give a list with one id in it\."),
    ({"q": "ab"}, {"q": []}, r"retrieved\['q'\] must be a list of ids, not str: 'ab'\. .*"),
    ([[1]], ["a"], r"relevant\[0\] must be a list of ids, not str: 'a'\. .*"),
    ([np.array([[1]])], [[1]], r"retrieved\[0\] must be a list of ids, not an array of 2 dimensions\."),
    ([{1, 2}], [[1]], r"retrieved\[0\] must be ids in rank order, not a set\. Give a list, best first\."),
    ([{1: 0.5}], [[1]], r"retrieved\[0\] must be ids in rank order, not a dict\. For scores use evaluate_run\."),
    (
        [[1.0]],
        [[1]],
        r"retrieved: documents must be named by text, bytes or integers, not 1\.0 \(float\)\. Cast them to integers or text\.",
    ),
    ([[1]], [{1.0}], r"relevant: documents must be named by text, bytes or integers, not 1\.0 \(float\)\. .*"),
    (np.array([[1.0, math.nan]]), [[1]], r"retrieved must hold ids, text or integers, not float64\. Cast them to integers: .*"),
    (pa.array([[0.5]]), [[1]], r"retrieved must hold ids, text or integers, not double\. Cast them to integers: .*"),
    (np.array([[True]]), [[1]], r"retrieved must hold ids, text or integers, not bool\. For a mask of relevant documents use evaluate\."),
    ([[1]], [[True]], r"relevant must hold ids, text or integers, not bool\. .*"),
    (np.array([["2020-01-01"]], "M8[D]"), [[1]], r"retrieved must hold ids, text or integers, not datetime64\[D\]\. Cast them to text\."),
    ([[1, "a"]], [[1]], r"retrieved: documents must be named by ids of one type, not by 1 \(int\) and 'a' \(str\)\. .*"),
    ([[("a",)]], [[1]], r"retrieved: documents must be named by text, bytes or integers, not \('a',\) \(tuple\)\. .*"),
    ([[1]], [[1], [2]], r"retrieved has 1 queries and relevant 2: give one list a query in both\."),
    ([[1]], {"a": [1]}, r"relevant names its queries and retrieved does not: .*"),
    ({"a": [1]}, [[1]], r"retrieved names its queries and relevant does not: .*"),
    ([[1]], fr.Qrels.read(b"q 0 1 1\n"), r"relevant names its queries and retrieved does not: .*"),
    ({"a": [1]}, {"b": [1]}, r"no query is in both: relevant has 'b' \(text\), retrieved has 'a' \(text\)\. .*"),
    ({0.5: [1]}, {"b": [1]}, r"retrieved: queries must be named by text, bytes or integers, not 0\.5 \(float\)\. .*"),
    (
        ([1, 2], [1, 2]),
        [[1]],
        r"retrieved offsets must say where each query's ids begin, ascend from 0, .* 2\. Give a list of lists as a list.*",
    ),
    (([1, 2], [0, 3]), [[1]], r"retrieved offsets must say .*"),
    (([1, 2], [0, 2, 1, 2]), [[1]], r"retrieved offsets must say .*"),
    (([1, 2], [0, 0.5, 2]), [[1]], r"retrieved offsets must say .*"),
    (([1, 2], []), [[1]], r"retrieved offsets must say .*"),
    (([1], [2], [3]), [[1]], r"retrieved as a tuple must be \(ids, offsets\), not 3 entries\. Give a list of lists as a list\."),
    ([[1]], [{1: "x"}], r"relevant: labels must be numbers: 'x' at query 0, document 1\. Convert it to a number\."),
    ([[1]], [{1: None}], r"relevant: labels must be numbers: None at query 0, document 1\. Leave a document out that has none\."),
    ({"q": [1]}, {"q": {1: math.nan}}, r"relevant: labels must not be NaN: nan at query 'q', document 1\. .*"),
    ({"q": [1]}, {"q": {1: math.inf}}, r"relevant: labels must be finite: inf at query 'q', document 1\. .*"),
    ([["a"]], [{"a": -1}], r"relevant: labels must not be negative under the fastrank convention: -1\.0 at query 0, document 'a' .*"),
]


@pytest.mark.parametrize(("retrieved", "relevant", "message"), BAD)
def test_what_cannot_be_evaluated(retrieved: Any, relevant: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^{message}$"):
        fr.evaluate_ids(retrieved, relevant)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "zeros"}, r"missing must be one of 'zero', 'skip', not 'zeros'\. .*"),
        ({"duplicates": "keep"}, r"duplicates must be one of .*"),
        ({"depth": 0}, r"depth must be a whole number from 1 up, not 0\."),
        ({"threads": 0}, r"threads must be a whole number from 1 up, .*"),
        ({"convention": "trec"}, r"convention must be one of .*"),
        ({"metrics": "Recal"}, r".*'Recal'.*"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^{message}$"):
        fr.evaluate_ids(RETRIEVED, RELEVANT, **options)


def test_labels_under_the_trec_eval_convention() -> None:
    assert fr.evaluate_ids([[1, 2]], [{1: -1, 2: 1}], "RR", convention="trec_eval", judged_only=True).mean() == {"RR": 1.0}
    with pytest.raises(
        InputError, match=r"^relevant: labels must be whole numbers under the trec_eval convention: 0\.5 at query 0, document 1 "
    ):
        fr.evaluate_ids([[1]], [{1: 0.5}], convention="trec_eval")

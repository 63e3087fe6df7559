"""A run against qrels: what users really feed in, by the policies for each case, and pytrec_eval on random data."""

from __future__ import annotations

import math
import os
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastrank as fr
from fastrank.errors import InputError
from fastrank.io import join

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

Labels = dict[str, dict[str, int]]
Scores = dict[str, dict[str, float]]

QRELS = b"q1 0 a 1\nq1 0 b 0\nq2 0 a 2\nq2 0 c 1\n"
RUN = b"q1 Q0 b 1 2.5 t\nq1 Q0 a 2 1.5 t\nq1 Q0 x 3 1 t\nq2 Q0 x 1 9 t\nq2 Q0 c 2 8 t\n"


def qrels_text(qrels: Labels) -> bytes:
    return "".join(f"{query} 0 {doc} {label}\n" for query, docs in qrels.items() for doc, label in docs.items()).encode()


def run_text(run: Scores) -> bytes:
    return "".join(f"{query} Q0 {doc} 0 {score!r} t\n" for query, docs in run.items() for doc, score in docs.items()).encode()


def kinds(result: fr.Evaluation) -> dict[str, int]:
    """Notes on what came in: kind and count."""
    known = ("missing_query", "unjudged_query", "duplicates", "extra_fields", "comments", "regrouped")
    return {note.kind: note.count for note in result.notes if note.kind in known}


# --- values ---------------------------------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    result = fr.evaluate_run(QRELS, RUN, "AP,RR,nDCG,P@2,R,NumRelRet")
    assert result.query_ids.to_pylist() == ["q1", "q2"]
    assert result.convention.name == "trec_eval"
    expected = {
        "AP": [1 / 2, (1 / 2) / 2],
        "RR": [1 / 2, 1 / 2],
        "nDCG": [1 / math.log2(3), 1 / math.log2(3) / (2 + 1 / math.log2(3))],
        "P@2": [1 / 2, 1 / 2],
        "R": [1, 1 / 2],
        "NumRelRet": [1, 1],
    }
    for name, values in expected.items():
        assert result[name].tolist() == pytest.approx(values, abs=1e-15)


@pytest.mark.parametrize("convention", ["trec_eval", "trec_eval9"])
def test_equal_scores_stand_by_document_id_in_bytes_the_largest_first(convention: str) -> None:
    for smaller, larger in (("d10", "d9"), ("Z", "a"), ("z", "é"), ("a", "ab"), ("a\x00", "a\x01"), ("é", "😀"), ("\uffff", "😀")):
        for first, second in ((smaller, larger), (larger, smaller)):
            run = {"q": {first: 1.0, second: 1.0}}
            found = [fr.evaluate_run({"q": {doc: 1}}, run_text(run), "RR", convention=convention)["RR"][0] for doc in (larger, smaller)]
            assert found == [1.0, 0.5]


def test_scores_are_compared_as_doubles_or_as_float32() -> None:
    run = b"q Q0 a 1 1.00000001 t\nq Q0 b 2 1 t\n"
    assert fr.evaluate_run(b"q 0 a 1\n", run, "RR").mean() == {"RR": 1.0}
    assert fr.evaluate_run(b"q 0 a 1\n", run, "RR", convention="trec_eval9").mean() == {"RR": 0.5}


def test_a_score_beyond_float32_is_infinite_there() -> None:
    run = b"q Q0 a 1 1e39 t\nq Q0 b 2 1e40 t\nq Q0 c 3 -1e40 t\n"
    assert fr.evaluate_run(b"q 0 b 1\n", run, "RR", convention="trec_eval9").mean() == {"RR": 1.0}
    assert fr.evaluate_run(b"q 0 a 1\n", run, "RR", convention="trec_eval9").mean() == {"RR": 0.5}


def test_infinite_scores_rank_first_and_last() -> None:
    run = b"q Q0 a 1 -inf t\nq Q0 b 2 inf t\nq Q0 c 3 1e308 t\n"
    assert [fr.evaluate_run(b"q 0 %c 1\n" % doc, run, "RR").mean()["RR"] for doc in b"bca"] == [1, 1 / 2, 1 / 3]


def test_a_convention_changes_what_names_leave_open() -> None:
    linear, exponential = (2, 1), (3, 1)
    for convention, (two, one) in (("trec_eval", linear), ("fastrank", exponential)):
        result = fr.evaluate_run(QRELS, RUN, "nDCG", convention=convention)
        assert result["nDCG"][1] == pytest.approx(one / math.log2(3) / (two + one / math.log2(3)), abs=1e-15)
    tied = b"q Q0 a 1 1 t\nq Q0 b 2 1 t\n"
    assert fr.evaluate_run(b"q 0 a 1\n", tied, "RR", convention="fastrank").mean() == {"RR": 0.75}
    assert fr.evaluate_run(b"q 0 a 1\n", tied, "RR", ties="best").mean() == {"RR": 1.0}
    result = fr.evaluate_run(b"q 0 a 1\n", tied, "RR", bounds=True)
    assert (result.bounds.low.tolist(), result.bounds.high.tolist()) == ([[0.5]], [[1.0]])
    assert math.isnan(fr.evaluate_run(b"q 0 a 0\n", tied, "RR", no_relevant="nan").mean()["RR"])


# --- every way in gives the same bits ---------------------------------------------------------------------------------------------


def random_data(seed: int, n_queries: int = 20, longest: int = 60) -> tuple[Labels, Scores]:
    """Judged, unjudged and unretrieved documents, ties, and a query that is in one of the two alone."""
    draw = random.Random(seed)
    qrels: Labels = {}
    run: Scores = {}
    for q in range(n_queries):
        docs = [f"d{i}" for i in draw.sample(range(200), draw.randint(1, longest))]
        qrels[f"q{q}"] = {doc: draw.choice([0, 0, 0, 1, 2, 3]) for doc in docs if draw.random() < 0.5} or {docs[0]: 1}
        run[f"q{q}"] = {doc: draw.randint(-20, 20) / 4 for doc in docs if draw.random() < 0.8} or {docs[0]: 1.0}
    del qrels["q3"], run["q5"]
    return qrels, run


METRICS = "map,ndcg,ndcg_cut_5,10,recip_rank,P_5,recall_5,Rprec,bpref,num_ret,num_rel,num_rel_ret,Judged@5"


def test_every_way_in_gives_the_same_bits(tmp_path: Path) -> None:
    qrels, run = random_data(1)
    (tmp_path / "q").write_bytes(qrels_text(qrels))
    (tmp_path / "r").write_bytes(run_text(run))
    columns = [(query, doc, value) for docs in (qrels, run) for query, values in docs.items() for doc, value in values.items()]
    n = sum(map(len, qrels.values()))
    judged = fr.Qrels.from_arrays(*zip(*columns[:n], strict=True))
    ranked = fr.Run.from_arrays(*(pa.array(column) for column in zip(*columns[n:], strict=True)))
    expected = fr.evaluate_run(qrels_text(qrels), run_text(run), METRICS)
    assert expected.n_queries == 19
    ways: list[tuple[Any, Any]] = [
        (tmp_path / "q", str(tmp_path / "r")),
        (fr.Qrels.read(tmp_path / "q"), fr.Run.read(tmp_path / "r")),
        (qrels, run),
        (judged, ranked),
        (qrels, tmp_path / "r"),
        (tmp_path / "q", ranked),
    ]
    for way in ways:
        for threads in (1, 3):
            result = fr.evaluate_run(*way, METRICS, threads=threads)
            assert result.query_ids.equals(expected.query_ids)
            assert np.array_equal(result.values, expected.values)
            assert kinds(result) == kinds(expected)


def test_any_block_split_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels, run = map(bytes, (qrels_text(random_data(2)[0]), run_text(random_data(2)[1])))
    expected = fr.evaluate_run(qrels, run, METRICS)
    monkeypatch.setattr(join, "BLOCK", 1)
    assert np.array_equal(fr.evaluate_run(qrels, run, METRICS, threads=2).values, expected.values)


def test_read_once_evaluate_many() -> None:
    qrels, run = fr.Qrels.read(QRELS), fr.Run.read(RUN)
    first = fr.evaluate_run(qrels, run)
    for _ in range(2):
        assert np.array_equal(fr.evaluate_run(qrels, run).values, first.values)
    assert fr.evaluate_run(qrels, RUN.replace(b" 8 ", b" 10 "))["RR"].tolist() == [0.5, 1.0]


def test_the_order_of_the_lines_does_not_matter() -> None:
    qrels, run = random_data(3)
    expected = fr.evaluate_run(qrels_text(qrels), run_text(run), METRICS)
    for seed in range(3):
        shuffled = []
        for content in (qrels_text(qrels), run_text(run)):
            lines = content.splitlines(keepends=True)
            random.Random(seed).shuffle(lines)
            shuffled.append(b"".join(lines))
        result = fr.evaluate_run(*shuffled, METRICS)
        order = np.argsort(expected.query_ids.to_pylist())
        assert result.query_ids.to_pylist() == sorted(expected.query_ids.to_pylist())
        assert np.array_equal(result.values, expected.values[order])


# --- pytrec_eval ----------------------------------------------------------------------------------------------------------------

PYTREC = {
    "map", "ndcg", "ndcg_cut_5", "ndcg_cut_10", "recip_rank", "P_5", "recall_5", "Rprec", "bpref", "map_cut_5", "success_5", "set_P",
    "num_ret", "num_rel", "num_rel_ret",
}  # fmt: skip
NAMED_ELSE = {"set_P": "P"}


@pytest.mark.parametrize("seed", range(10 if COMPILED else 2))
@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("level", [1, 2])
def test_pytrec_eval_returns_the_same(seed: int, judged_only: bool, level: int) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    qrels, run = random_data(seed + 100)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, PYTREC, relevance_level=level, judged_docs_only_flag=judged_only)
    theirs = evaluator.evaluate(run)
    graded = {"ndcg", "ndcg_cut_5", "ndcg_cut_10", "num_ret"}
    asked = {name: fr.parse_metric(NAMED_ELSE.get(name, name)) for name in PYTREC}
    leveled = {name: metric if name in graded else type(metric)(k=metric.k, rel=level) for name, metric in asked.items()}
    result = fr.evaluate_run(qrels, run, leveled.values(), convention="trec_eval9", missing="skip", judged_only=judged_only)
    assert sorted(theirs) == sorted(result.query_ids.to_pylist())
    for name, metric in leveled.items():
        told = [theirs[query][name] for query in result.query_ids.to_pylist()]
        assert result[metric.fill(result.convention)].tolist() == pytest.approx(told, abs=1e-12), name


# --- queries in one of the two alone ------------------------------------------------------------------------------------------------


def test_a_query_missing_from_the_run_counts_zero_or_is_left_out() -> None:
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}, "3": {"a": 1}}, {"1": {"a": 2.0}}
    zero = fr.evaluate_run(qrels, run, "AP,num_rel")
    assert (zero.query_ids.to_pylist(), zero["AP"].tolist()) == (["1", "2", "3"], [1.0, 0.0, 0.0])
    assert zero.aggregate() == {"AP": 1 / 3, "NumRel": 3.0}
    skip = fr.evaluate_run(qrels, run, "AP,num_rel", missing="skip")
    assert (skip.query_ids.to_pylist(), skip["AP"].tolist(), skip.n_queries) == (["1"], [1.0], 1)
    assert kinds(zero) == kinds(skip) == {"missing_query": 2}
    messages = [note.message for result in (zero, skip) for note in result.notes if note.kind == "missing_query"]
    assert messages == [
        "2 queries of the qrels not in the run: counted as empty lists; missing: zero.",
        "2 queries of the qrels not in the run: left out; missing: skip.",
    ]


def test_a_query_missing_from_the_qrels_is_left_out() -> None:
    result = fr.evaluate_run({"1": {"a": 1}}, {"9": {"a": 1.0}, "1": {"a": 1.0}}, "AP")
    assert (result.query_ids.to_pylist(), result.mean(), kinds(result)) == (["1"], {"AP": 1.0}, {"unjudged_query": 1})
    assert next(note.message for note in result.notes) == "1 query of the run not in the qrels: left out."


def test_queries_come_in_the_order_of_the_qrels() -> None:
    qrels = b"c 0 x 1\na 0 x 1\nb 0 x 1\n"
    for run in (b"a Q0 x 1 1 t\nb Q0 x 1 1 t\nc Q0 x 1 1 t\n", b"z Q0 x 1 1 t\nb Q0 x 1 1 t\nc Q0 x 1 1 t\n"):
        assert fr.evaluate_run(qrels, run, "AP").query_ids.to_pylist() == ["c", "a", "b"]


def test_scattered_rows_are_noted_and_queries_sorted() -> None:
    run = b"b Q0 x 1 2 t\na Q0 x 1 1 t\nb Q0 y 1 1 t\n"
    result = fr.evaluate_run(b"b 0 x 1\na 0 y 1\n", run, "AP")
    assert (result.query_ids.to_pylist(), result["AP"].tolist(), kinds(result)) == (["a", "b"], [0.0, 1.0], {"regrouped": 1})
    result = fr.evaluate_run(b"b 0 x 1\na 0 x 1\nb 0 y 1\n", b"b Q0 x 1 2 t\na Q0 x 1 1 t\n", "AP")
    assert (result.query_ids.to_pylist(), result["AP"].tolist(), kinds(result)) == (["a", "b"], [1.0, 0.5], {"regrouped": 1})


@pytest.mark.parametrize(
    ("qrels", "run", "told"),
    [
        (b"q1 0 a 1\n", b"1 Q0 a 1 1 t\n", "<bytes> has 'q1' (text), <bytes> has '1' (text)"),
        (b"\xff 0 a 1\n", b"1 Q0 a 1 1 t\n", "<bytes> has b'\\xff' (binary), <bytes> has '1' (text)"),
        ({"q1": {"a": 1}}, {7: {"a": 1.0}}, "qrels has 'q1' (text), run has 7 (int64)"),
    ],
)
def test_no_query_in_common_is_an_error_that_shows_one_of_each(qrels: Any, run: Any, told: str) -> None:
    with pytest.raises(InputError, match=rf"^no query is in both: {re.escape(told)}\. Check that they belong together\.$"):
        fr.evaluate_run(qrels, run)


def test_an_integer_id_is_its_decimal_text() -> None:
    text = fr.evaluate_run(b"1 0 7 1\n2 0 8 1\n", b"1 Q0 7 1 1 t\n2 Q0 9 1 1 t\n", "AP")
    ways = [({1: {7: 1}, 2: {8: 1}}, b"1 Q0 7 1 1 t\n2 Q0 9 1 1 t\n"), (b"1 0 7 1\n2 0 8 1\n", {1: {7: 1.0}, 2: {9: 1.0}})]
    for way in ways:
        assert np.array_equal(fr.evaluate_run(*way, "AP").values, text.values)
    assert fr.evaluate_run({1: {7: 1}}, {1: {7: 1.0}}, "AP").query_ids.to_pylist() == [1]


LONG_IDS = ["x" * 10_000, "x" * 9_999]


@pytest.mark.parametrize("ids", [["007", "7"], ["1e5", "100000"], ["NA", "nan"], ["a", "a\x00"], ["é", "e\u0301"], LONG_IDS])
def test_ids_are_compared_byte_by_byte(ids: list[str]) -> None:
    one, other = ids
    qrels = {one: {one: 1}, other: {other: 1}}
    result = fr.evaluate_run(qrels_text(qrels), run_text({one: {one: 1.0}, other: {one: 1.0}}), "AP")
    assert result["AP"].tolist() == [1.0, 0.0]


# --- nothing there -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nothing", [b"", {}])
def test_empty_input_is_an_empty_result(nothing: Any) -> None:
    for run in (nothing, RUN):
        result = fr.evaluate_run(nothing, run, "AP,nDCG")
        assert (result.n_queries, result.values.shape) == (0, (0, 2))
        assert all(math.isnan(mean) for mean in result.mean().values())
    result = fr.evaluate_run(QRELS, nothing, "AP,num_ret,num_rel")
    assert result.aggregate() == {"AP": 0.0, "NumRet": 0.0, "NumRel": 3.0}
    assert kinds(result) == {"missing_query": 2}
    assert fr.evaluate_run(QRELS, nothing, "AP", missing="skip").n_queries == 0


def test_a_query_without_judgements_or_documents_counts() -> None:
    result = fr.evaluate_run({"1": {}, "2": {"d": 1}}, {"1": {"d": 1.0}, "2": {"d": 1.0}}, "AP")
    assert (result["AP"].tolist(), result.no_relevant) == ([0.0, 1.0], (1,))
    result = fr.evaluate_run({"1": {"d": 1}, "2": {"d": 1}}, {"1": {}, "2": {"d": 1.0}}, "AP", missing="skip")
    assert (result.query_ids.to_pylist(), result["AP"].tolist()) == (["1", "2"], [0.0, 1.0])


# --- duplicates -------------------------------------------------------------------------------------------------------------------

TWICE = b"q Q0 x 1 5 t\nq Q0 a 1 1 t\nq Q0 b 2 2 t\n\nq Q0 a 3 3 t\nq Q0 a 4 2.5 t\n"


def test_a_document_twice_in_the_run_is_an_error_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "my.run"
    for document in (b"a", b"zz"):  # judged, and not
        path.write_bytes(TWICE.replace(b" a ", b" " + document + b" "))
        told = f"document {document.decode()!r} stands twice in query 'q' of {path}: line 2 and line 5. "
        with pytest.raises(InputError, match=rf"^{re.escape(told)}Keep one of them, or say which with duplicates=\.$"):
            fr.evaluate_run(b"q 0 a 1\nq 0 b 1\n", path)


@pytest.mark.parametrize(("rule", "rank"), [("first", 3), ("last", 2), ("max", 2)])
def test_which_of_two_rows_is_kept(rule: str, rank: int) -> None:
    result = fr.evaluate_run(b"q 0 a 1\n", TWICE, "RR,num_ret", duplicates=rule)
    assert result.values.tolist() == [[1 / rank, 3.0]]
    assert kinds(result) == {"duplicates": 2}
    assert "2 rows dropped as duplicates; duplicates: " + rule + "." in [note.message for note in result.notes]
    assert fr.evaluate_run(b"q 0 a 1\n", TWICE, "num_ret", duplicates=rule, depth=2).values.tolist() == [[2.0]]


@pytest.mark.parametrize(("rule", "label"), [("first", 1), ("last", 2), ("max", 3)])
def test_a_judgement_twice(rule: str, label: int) -> None:
    qrels = b"p 0 b 1\nq 0 a 1\nq 0 b 0\nq 0 a 3\nq 0 a 2\n"
    with pytest.raises(InputError, match=r"^document 'a' stands twice in query 'q' of <bytes>: line 2 and line 4\. .*$"):
        fr.evaluate_run(qrels, b"q Q0 b 1 1 t\n")
    read = fr.Qrels.read(qrels)
    for _ in range(2):
        assert fr.evaluate_run(read, b"q Q0 a 1 1 t\n", "DCG,R", duplicates=rule, missing="skip").values.tolist() == [[label, 1.0]]


def test_rows_of_arrays_are_named_in_errors() -> None:
    run = fr.Run.from_arrays(["b", "a", "b", "a"], ["x", "y", "z", "y"], [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(InputError, match=r"^document 'y' stands twice in query 'a' of run: row 1 and row 3\. .*$"):
        fr.evaluate_run({"b": {"x": 1}, "a": {"y": 1}}, run)
    assert fr.evaluate_run({"b": {"x": 1}, "a": {"y": 1}}, run, "num_ret", duplicates="max")["num_ret"].tolist() == [1.0, 2.0]


def test_a_document_twice_in_a_query_that_is_not_judged_does_not_matter() -> None:
    assert fr.evaluate_run(b"p 0 a 1\n", TWICE + b"p Q0 a 1 1 t\n", "AP").mean() == {"AP": 1.0}


ROWS = st.lists(st.tuples(st.sampled_from("pq"), st.sampled_from("abc"), st.integers(0, 3)), max_size=12)


@given(ROWS, st.sampled_from(["first", "last", "max"]))
def test_duplicates_are_dropped_as_a_dict_would(rows: list[tuple[str, str, int]], rule: str) -> None:
    kept: dict[tuple[str, str], int] = {}
    for query, doc, score in rows:
        known = kept.get((query, doc))
        kept[query, doc] = score if known is None or rule == "last" or (rule == "max" and score > known) else known
    content = "".join(f"{query} Q0 {doc} 1 {score} t\n" for query, doc, score in rows).encode()
    run = fr.Run.read(content).without_duplicates(rule)
    query = np.repeat(run.query_ids.to_pylist(), np.diff(run.offsets)) if len(run) else []
    found = [run.document_name(row).split()[1].strip("'") for row in range(run.n_documents)]
    assert dict(zip(zip(query, found, strict=True), run.scores.tolist(), strict=True)) == kept


# --- labels -----------------------------------------------------------------------------------------------------------------------


def test_fractional_labels_are_an_error_under_trec_eval_alone(tmp_path: Path) -> None:
    path = tmp_path / "q"
    path.write_bytes(b"q 0 a 0.9\nq 0 b 1.9\n")
    run = b"q Q0 a 1 2 t\nq Q0 b 2 1 t\n"
    told = rf"^{path}: labels must be whole numbers under the trec_eval9? convention: 0\.9 at query 'q', document 'a' \(line 1\)\. .*$"
    for convention in ("trec_eval", "trec_eval9"):
        with pytest.raises(InputError, match=told):
            fr.evaluate_run(path, run, convention=convention)
    result = fr.evaluate_run(path, run, "nDCG(gain='linear'),AP,P@1", convention="fastrank")
    ideal = 1.9 + 0.9 / math.log2(3)
    assert list(result.mean().values()) == pytest.approx([(0.9 + 1.9 / math.log2(3)) / ideal, 0.5, 0.0], abs=1e-15)


def test_negative_labels_are_unjudged_under_trec_eval_and_an_error_elsewhere() -> None:
    qrels, run = b"q 0 s -2\nq 0 g 1\n", b"q Q0 s 1 2 t\nq Q0 g 2 1 t\n"
    result = fr.evaluate_run(qrels, run, "P@1,nDCG,bpref,num_rel")
    assert list(result.mean().values()) == pytest.approx([0.0, 1 / math.log2(3), 1.0, 1.0], abs=1e-15)
    assert fr.evaluate_run(qrels, run, "P@1", judged_only=True).mean() == {"P@1": 1.0}
    with pytest.raises(InputError, match=r"^<bytes>: labels must not be negative under the fastrank convention: -2\.0 at query 'q', .*$"):
        fr.evaluate_run(qrels, run, convention="fastrank")
    # Where a tool knows negative labels as labels, judged_only keeps them.
    assert fr.evaluate_run(qrels, run, "num_ret", convention="xgboost", judged_only=True).mean() == {"NumRet": 2.0}


def test_judged_only_drops_the_unjudged_before_ranking() -> None:
    result = fr.evaluate_run(QRELS, RUN, "RR,num_ret", judged_only=True)
    assert result.values.tolist() == [[1 / 2, 2.0], [1.0, 1.0]]


def test_labels_that_float32_does_not_hold_stay_doubles() -> None:
    qrels = b"q 0 a 16777217\nq 0 b 16777216\n"
    assert fr.evaluate_run(qrels, b"q Q0 a 1 1 t\n", "DCG").mean() == {"DCG": 16777217.0}
    fraction = fr.evaluate_run(b"q 0 a 0.1\n", b"q Q0 a 1 1 t\n", "DCG(gain='linear')", convention="fastrank")
    assert list(fraction.mean().values()) == [0.1]
    narrow = fr.evaluate_run(b"q 0 a 0.1\n", b"q Q0 a 1 1 t\n", "DCG(gain='linear')", convention="lightgbm")
    assert list(narrow.mean().values()) == [float(np.float32(0.1))]


# --- lines ------------------------------------------------------------------------------------------------------------------------


def test_a_blank_in_a_document_id_is_noted_or_an_error(tmp_path: Path) -> None:
    path = tmp_path / "r"
    path.write_bytes(b"q Q0 other 1 3 t\nq Q0 my doc 1 2.0 t\n")
    result = fr.evaluate_run(b"q 0 my 1\nq 0 other 1\n", path, "AP")
    assert kinds(result) == {"extra_fields": 1}
    told = rf"{path}, line 2: a line of a run has 6 fields under the fastrank convention, as a document id holds no white space: "
    with pytest.raises(InputError, match=rf"^{told}'q Q0 my doc 1 2\.0 t'$"):
        fr.evaluate_run(b"q 0 my 1\n", path, convention="fastrank")


def test_comments_are_noted() -> None:
    result = fr.evaluate_run(b"# judged by hand\n" + QRELS, RUN + b"#1 Q0 a 1 1 t\n", "AP")
    assert [note.message for note in result.notes if note.kind == "comments"] == [
        "1 line of the qrels beginning with #: taken as comments.",
        "1 line of the run beginning with #: taken as comments.",
    ]


def test_malformed_lines_name_the_file(tmp_path: Path) -> None:
    (tmp_path / "q").write_bytes(QRELS)
    (tmp_path / "r").write_bytes(RUN)
    with pytest.raises(InputError, match=rf"^{tmp_path}/r, line 1: a line of qrels has 4 fields .*; qrels come first, then the run: "):
        fr.evaluate_run(tmp_path / "r", tmp_path / "q")


# --- arguments --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": "zeros"}, r"missing must be one of 'zero', 'skip', not 'zeros'\. Did you mean 'zero'\?"),
        ({"duplicates": "keep"}, r"duplicates must be one of 'error', 'first', 'last', 'max', not 'keep'\."),
        ({"depth": 0}, r"depth must be a whole number from 1 up, not 0\."),
        ({"threads": 0}, r"threads must be a whole number from 1 up, .*"),
        ({"convention": "trec"}, r"convention must be one of .*, not 'trec'\..*"),
        ({"qrels": fr.Run.read(RUN)}, r"qrels must be judgements, not a Run: the order is qrels, run\."),
        ({"run": fr.Qrels.read(QRELS)}, r"run must be a ranking, not Qrels: the order is qrels, run\."),
        ({"qrels": "-", "run": "-"}, r"qrels and run cannot both come from standard input: give a path for one of them\."),
        ({"qrels": 3}, r"qrels must be a file \(its path, bytes, or open\), a dict of dicts, a table, or fr\.Qrels, not int\."),
    ],
)
def test_what_cannot_be_evaluated(options: dict[str, Any], message: str) -> None:
    options = {"qrels": QRELS, "run": RUN} | options
    with pytest.raises(InputError, match=rf"^{message}$"):
        fr.evaluate_run(**options)


def test_depth_cuts_each_ranking_first() -> None:
    result = fr.evaluate_run(QRELS, RUN, "RR,num_ret,R", depth=1)
    assert result.values.tolist() == [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]

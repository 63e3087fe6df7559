"""Counts around the scores of the documents that count have the bits of one machine, whoever made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.distributed import rare
from fastrank.distributed.parts import Job, id_range, longest_query, tasks_of

MANY = "nDCG@10,RR,AP,DCG(gain='linear'),ERR@5,P@5,R@20,Rprec,Success@10,RBP,AUC,nDCG,nDCG@20%,F@5,num_ret,num_rel_ret,IPrec@0.1"
OPTIONS = {"ties": None, "no_relevant": None, "depth": None, "judged_only": False, "per_query": True, "n_resamples": 0, "seed": 0}


def rows(n: int = 6000, n_queries: int = 120, seed: int = 0, share: float = 0.04) -> pa.Table:
    """Scattered rows with ties, unjudged documents and documents that were not retrieved."""
    rng = np.random.default_rng(seed)
    query = [f"q{q}" for q in rng.integers(0, n_queries, n)]
    labels = pa.array((rng.random(n) < share) * rng.integers(1, 4, n), mask=rng.random(n) < 0.1)
    scores = pa.array(rng.integers(0, 40, n) / 4, mask=rng.random(n) < 0.03)
    return pa.table({"query_id": query, "label": labels, "score": scores})


def job_of(metrics: str, *, convention: str = "fastrank", **options: Any) -> Job:
    columns = {name: options.pop(name, other) for name, other in (("doc", None), ("weight", None), ("by", ()))}
    return Job("query_id", "label", "score", *columns.values(), metrics, convention, OPTIONS | options)


def relevant_of(table: pa.Table, job: Job) -> rare.Relevant:
    plan = rare.plan_of(job)
    label, score = table["label"], table["score"]
    listed = pc.or_kleene(pc.greater_equal(label, plan.least), pc.and_(pc.is_null(score), pc.is_valid(label)))
    ends = pc.min_max(label).as_py()
    return rare.Relevant.of(table.filter(pc.fill_null(listed, False)), (float(ends["min"]), float(ends["max"])), plan.convention)


def counted(table: pa.Table, job: Job, n_parts: int, rows_at_once: int = 700) -> Any:
    """The evaluation of counts that so many holders of rows have made."""
    counting = rare.RareJob(job, relevant_of(table, job))
    counts = []
    for part in range(n_parts):
        held = table.take(pa.array(np.arange(part, len(table), n_parts))).select(["query_id", "score"])
        counts += list(counting.count(iter(held.to_batches(max_chunksize=500))))
    ascending = pa.Table.from_batches(counts).sort_by("query_id")
    return counting.evaluate(iter(ascending.to_batches(max_chunksize=300)), rows_at_once).result()


def same(result: Any, whole: Any) -> None:
    assert result.query_ids.to_pylist() == whole.query_ids.to_pylist()
    assert {name: result[name].tobytes() for name in whole.names} == {name: whole[name].tobytes() for name in whole.names}
    assert [note for note in whole.notes if note.kind != "regrouped"] == list(result.notes)
    assert result.no_relevant == whole.no_relevant


@pytest.mark.parametrize("n_parts", [1, 7, 64])
def test_any_number_of_holders_gives_the_bits_of_one_machine(n_parts: int) -> None:
    table = rows()
    same(counted(table, job_of(MANY), n_parts), fr.evaluate_table(table, MANY))


@pytest.mark.parametrize(
    "rules",
    [
        {"ties": "worst"},
        {"ties": "best", "depth": 7},
        {"no_relevant": "skip"},
        {"convention": "trec_eval", "ties": "average"},
        {"convention": "catboost"},
        {"convention": "xgboost", "ties": "worst"},
        {"convention": "torchmetrics", "ties": "average"},
    ],
    ids=str,
)
def test_other_rules_and_conventions(rules: dict[str, Any]) -> None:
    table = rows(seed=1)
    metrics = "nDCG@10,nDCG" if "convention" in rules else "nDCG@10,nDCG,AP,RR"
    assert rare.why_not(job_of(metrics, **rules)) is None
    same(counted(table, job_of(metrics, **rules), 3), fr.evaluate_table(table, metrics, **rules))


def test_documents_that_are_not_retrieved_by_score_alone() -> None:
    """torchmetrics takes a score of 0 for none in RR and not in nDCG."""
    table = rows(seed=2)
    table = table.set_column(2, "score", pc.subtract(table["score"], 5.0))
    rules = {"convention": "torchmetrics", "ties": "worst"}
    same(counted(table, job_of("RR@10", **rules), 3), fr.evaluate_table(table, "RR@10", **rules))


@pytest.mark.parametrize("kind", ["int64", "int8", "float32"])
def test_scores_are_compared_as_given(kind: str) -> None:
    """Whole numbers that doubles cannot tell apart, and zeros of both signs."""
    rng = np.random.default_rng(3)
    table = rows(2000, 20, seed=3)
    scores = {"int64": (1 << 60) + rng.integers(0, 50, 2000), "int8": rng.integers(-9, 9, 2000), "float32": rng.integers(-3, 3, 2000) * 0.1}
    values = scores[kind].astype(kind)
    values[values == 0] *= np.array(-1).astype(kind)
    table = table.set_column(2, "score", pa.array(values, mask=rng.random(2000) < 0.02))
    same(counted(table, job_of("nDCG@10,AP,AUC"), 5), fr.evaluate_table(table, "nDCG@10,AP,AUC"))


def test_ids_that_are_numbers_and_labels_that_are_large_or_broken() -> None:
    table = rows(seed=4)
    table = table.set_column(0, "query_id", pa.array([int(query[1:]) - 60 for query in table["query_id"].to_pylist()]))
    for factor in (300, 0.3):
        labels = pc.multiply(table["label"].cast(pa.float64()), factor)
        scaled = table.set_column(1, "label", labels.cast(pa.int64()) if factor == 300 else labels)
        metrics = "DCG(gain='linear')@10,nDCG(gain='linear'),AP(rel=0.5)"
        same(counted(scaled, job_of(metrics), 3), fr.evaluate_table(scaled, metrics))


def test_levels_stand_side_by_side_where_they_are_few() -> None:
    table = pa.table({"q": ["b", "a", "b", "b", "c"], "label": [1, 1, 2, 1, 0], "score": [3, 5, 1, 3, None]})
    relevant = rare.Relevant.of(table, (0.0, 2.0), fr.conventions["fastrank"])
    expected = {"query_id": ["a", "b", "c"], "0": [5, 1, None], "1": [None, 3, None]}
    assert relevant.as_columns(2).to_pydict() == expected
    assert relevant.as_columns(1) is None


def test_nothing_counts_or_nothing_is_there() -> None:
    table = rows(500, 10, share=0.0)
    same(counted(table, job_of("nDCG@10,RR"), 2), fr.evaluate_table(table, "nDCG@10,RR"))
    job = job_of("RR")
    counting = rare.RareJob(job, relevant_of(table, job))
    assert [len(batch) for batch in counting.count(iter([]))] == [0]
    assert counting.evaluate(iter([])).n_queries == 0


def test_queries_are_cut_into_blocks_by_the_documents_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrank.engine import run

    monkeypatch.setattr(run, "BLOCK", 50)
    table = rows(seed=5)
    result = counted(table, job_of("nDCG@10,AP,RR"), 3, rows_at_once=1 << 20)
    monkeypatch.undo()
    same(result, fr.evaluate_table(table, "nDCG@10,AP,RR"))


def test_lots_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rare, "LOT", 1000)
    table = rows(seed=6)
    same(counted(table, job_of("nDCG@10,AP"), 2), fr.evaluate_table(table, "nDCG@10,AP"))


def test_a_file_is_counted_without_its_labels(tmp_path: Path) -> None:
    table, job = rows(seed=7), job_of("nDCG@10,AP")
    pq.write_table(table.drop_columns("label"), tmp_path / "rows.parquet", row_group_size=700)
    counting = rare.RareJob(job, relevant_of(table, job))
    counts = pa.Table.from_batches(list(counting.count_file(str(tmp_path / "rows.parquet")))).sort_by("query_id")
    same(counting.evaluate(iter(counts.to_batches())).result(), fr.evaluate_table(table, "nDCG@10,AP"))


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (job_of("RR", ties="input"), 'ties="input" asks for more than scores'),
        (job_of("RR", convention="lightgbm"), 'ties="input" asks for more than scores'),
        (job_of("RR", doc="d"), "ids of documents, weights and slices stay with their rows"),
        (job_of("RR", by=("b",)), "ids of documents, weights and slices stay with their rows"),
        (job_of("RR,Bpref"), "documents of label 0 count"),
        (job_of("RR", judged_only=True), "documents of label 0 count"),
        (job_of("AP", convention="xgboost", ties="worst"), "AP asks for every label"),
        (job_of("nDCG(gain={0: 0, 1: 2})"), "nDCG"),
        (job_of("RR"), None),
    ],
)
def test_what_asks_for_more_than_ranks_says_so(job: Job, reason: str | None) -> None:
    found = rare.why_not(job)
    assert found == reason or (found is not None and reason == "nDCG" and found.endswith("asks for every label"))


def test_the_longest_query_is_told_by_row_groups_that_hold_nothing_else(tmp_path: Path) -> None:
    ids = ["a"] * 10 + ["b"] * 35 + ["c"] * 5
    for name, part in (("1", ids), ("2", ["b"] * 20 + ["d"] * 3)):
        pq.write_table(pa.table({"q": part}), tmp_path / name, row_group_size=10)
    footers = [id_range(str(tmp_path / name), "q") for name in ("1", "2")]
    assert longest_query(footers) == 30 + 20
    assert longest_query([]) == 0


def test_small_files_share_a_task(tmp_path: Path) -> None:
    for name, n in (("1", 10), ("2", 10), ("3", 50), ("4", 5), ("5", 5), ("6", 20)):
        pq.write_table(pa.table({"q": np.arange(n)}), tmp_path / name)
    footers = [id_range(str(tmp_path / name), "q") for name in "123456"]
    assert tasks_of(footers, 1000) == [slice(0, 6)]
    assert tasks_of(footers, 50) == [slice(0, 3), slice(3, 6)]  # the middle of the third is row 45 of 100
    assert tasks_of(footers, 1) == [slice(place, place + 1) for place in range(6)]
    pq.write_table(pa.table({"q": np.arange(9)}), tmp_path / "untold", write_statistics=False)
    assert tasks_of([id_range(str(tmp_path / "untold"), "q"), *footers], 100) == [slice(0, 1), slice(1, 7)]
    assert tasks_of([], 50) == []

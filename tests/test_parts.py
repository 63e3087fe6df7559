"""What each process of a cluster computes, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.distributed.parts import Job, are_apart, distinct_keys, id_range, told
from fastrank.distributed.runs import RunJob, whole_queries

TABLE = pa.table({"q": ["a", "a", "b", "c", "c"], "y": [0, 1, 1, 0, 0], "s": [0.5, 0.1, 0.2, 0.3, 0.4]})
JOB = Job("q", "y", "s", None, None, (), "RR", "fastrank", {"per_query": True})
RR = {"a": 0.5, "b": 1.0, "c": 0.0}


def values(evaluator: fr.Evaluator) -> dict[Any, float]:
    result = evaluator.result()
    return dict(zip(result.query_ids.to_pylist(), result["RR"].tolist(), strict=True))


def test_sorted_batches_of_any_size_and_files_in_any_order_give_the_same(tmp_path: Path) -> None:
    for size in (1, 2, 5):
        assert values(JOB.evaluate(iter(TABLE.to_batches(max_chunksize=size)))) == RR
    for name, rows in (("sorted", [0, 1, 2, 3, 4]), ("scattered", [0, 2, 3, 1, 4])):
        pq.write_table(TABLE.take(pa.array(rows)), tmp_path / name)
        assert values(JOB.evaluate_file(str(tmp_path / name))) == RR
    assert JOB.evaluate(iter([])).n_queries == 0


def test_a_scattered_query_behind_the_first_batch_of_a_file_is_regrouped(tmp_path: Path) -> None:
    n = 1 << 20
    ids = np.concatenate([np.repeat(np.arange(n // 4), 4), [3, 5]]).astype(np.int32)
    table = pa.table({"q": ids, "y": np.zeros(len(ids), np.int8), "s": np.zeros(len(ids), np.float32)})
    pq.write_table(table, tmp_path / "x")
    assert JOB.evaluate_file(str(tmp_path / "x")).n_queries == n // 4


def test_batches_that_are_not_sorted_are_an_error() -> None:
    batches = TABLE.take(pa.array([3, 4, 0, 1, 2])).to_batches()
    with pytest.raises(fr.InputError, match='a partition of the data frame: query column "q" must ascend: sort by it'):
        JOB.evaluate(iter(batches))
    row = told(7, lambda: JOB.evaluate(iter(batches)).to_bytes()).to_pylist()[0]
    assert (row["part"], row["data"], row["error"][:12]) == (7, None, "a partition ")
    row = told(7, lambda: b"data").to_pylist()[0]
    assert (row["data"], row["error"]) == (b"data", None)


def test_ranges_of_ids_tell_whether_files_share_queries(tmp_path: Path) -> None:
    def written(name: str, ids: list[Any], **options: Any) -> bytes:
        pq.write_table(pa.table({"y": [0] * len(ids), "q": ids}), tmp_path / name, row_group_size=2, **options)
        return id_range(str(tmp_path / name), "q")

    one, two, three = written("1", ["a", "b", "c"]), written("2", ["c", "d"]), written("3", ["cc", "d"])
    assert are_apart([one])
    assert are_apart([one, three])
    assert are_apart([three, one])
    assert not are_apart([one, two])
    assert not are_apart([one, written("4", ["x"], write_statistics=False)])
    assert are_apart([written("5", [-3, 4]), written("6", [10, 11])])
    assert distinct_keys(str(tmp_path / "1"), "q").tolist() != distinct_keys(str(tmp_path / "2"), "q").tolist()
    assert len({*distinct_keys(str(tmp_path / "1"), "q").tolist()} & {*distinct_keys(str(tmp_path / "2"), "q").tolist()}) == 1


def test_a_run_is_evaluated_in_chunks_of_whole_queries() -> None:
    qrels = [("a", "x", 1), ("a", "y", 0), ("b", "x", 1), ("c", "x", 2)]
    run = [("a", "x", 0.5), ("a", "y", 0.9), ("b", "z", 0.1), ("d", "x", 0.3)]
    rows = [(q, d, y, None, True) for q, d, y in qrels] + [(q, d, None, s, False) for q, d, s in run]
    rows.sort(key=lambda row: row[0])
    names = ("query_id", "doc_id", "label", "score", "judged")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    table = pa.table(columns)
    job = RunJob("RR", "trec_eval", "zero", "error", {"per_query": True})
    whole = fr.evaluate_run(
        {q: {d: y for p, d, y in qrels if p == q} for q in "abc"}, {q: {d: s for p, d, s in run if p == q} for q in "abd"}, "RR"
    )
    for rows_at_once in (1, 2, 100):
        result = job.result(job.evaluate(iter(table.to_batches(max_chunksize=1)), rows_at_once))
        assert result.mean() == whole.mean()
        assert result.notes == whole.notes
    assert sum(len(part) for part in whole_queries(iter(table.to_batches(max_chunksize=3)), 2)) == len(table)

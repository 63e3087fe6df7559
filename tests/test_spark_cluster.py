"""Spark with executors of their own: code and results travel between processes, and a lost executor changes nothing."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cluster_rows import METRICS, OPTIONS, TABLE, bits, plan_of
from test_spark import pytestmark as pytestmark
from test_spark import started

import fastrank as fr


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    session = started("local-cluster[2,1,1024]")
    yield session
    session.stop()


def test_a_killed_executor_changes_nothing(cluster: Any, tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(len(TABLE))
    df = cluster.createDataFrame(TABLE.take(pa.array(order))).repartition(4)
    marker = tmp_path / "killed"

    def kill_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        if context.partitionId() == 1 and not marker.exists():
            marker.touch()
            # The worker's parent is Spark's daemon, whose parent is the executor.
            executor = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)
        yield from batches

    result = fr.distributed.spark.evaluate(df.mapInArrow(kill_once, df.schema), METRICS, **OPTIONS)
    assert marker.exists()
    assert "plan shuffle" in plan_of(result)
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, **OPTIONS))


def test_executors_read_files(cluster: Any, tmp_path: Path) -> None:
    cluster.createDataFrame(TABLE).repartition(3, "query_id").write.parquet(str(tmp_path / "data"))
    result = fr.distributed.spark.evaluate(cluster.read.parquet(str(tmp_path / "data")), METRICS, per_query=False)
    assert "plan files" in plan_of(result)
    assert result.moments == fr.evaluate_table(TABLE, METRICS).moments


def long_query(spark: Any, n_rows: int) -> Any:
    """Nearly all rows are of one query, and one in 100,003 is relevant."""
    query = "if(id % 1000 = 7, concat('q', id % 9), 'long') as query_id"
    return spark.range(n_rows).selectExpr(query, "if(id % 100003 = 5, 1, 0) as label", "cast(id * 7919 % 1000003 as double) as score")


def test_a_query_of_millions_of_rows_survives_on_executors_of_one_gigabyte(cluster: Any) -> None:
    ids = np.arange(4_000_000)
    result = fr.distributed.spark.evaluate(long_query(cluster, len(ids)), "nDCG,RR,AP,AUC", per_query=True)
    assert "plan rare labels: 40 of 4,000,000 rows count" in plan_of(result)
    query = np.array([*(f"q{n}" for n in range(9)), "long"])[np.where(ids % 1000 == 7, ids % 9, 9)]
    table = pa.table({"query_id": query, "label": (ids % 100003 == 5).astype(int), "score": (ids * 7919 % 1000003).astype(float)})
    whole = fr.evaluate_table(table, "nDCG,RR,AP,AUC")
    assert result.query_ids.to_pylist() == whole.query_ids.to_pylist()
    assert result.values.tobytes() == whole.values.tobytes()

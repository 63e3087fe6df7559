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
from test_spark import METRICS, OPTIONS, TABLE, bits, plan_of, started
from test_spark import pytestmark as pytestmark

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

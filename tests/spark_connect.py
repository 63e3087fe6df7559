"""Run as a program: a Spark Connect server of its own evaluates data frames. Prints nothing when all has the bits of one machine.

In a process of its own, since Connect and classic Spark do not share one.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cluster_rows import METRICS, OPTIONS, TABLE, bits, judgements, plan_of
from pyspark.sql import SparkSession
from test_rare_labels import rows

import fastrank as fr


def planned(df: Any, metrics: str, kind: str, **options: Any) -> Any:
    """The result, whose plan must be of a kind and be told."""
    written = io.StringIO()
    with contextlib.redirect_stdout(written):
        result = fr.distributed.spark.evaluate(df, metrics, explain=True, **options)
    assert f"plan {kind}:" in plan_of(result), plan_of(result)
    assert written.getvalue().startswith(f"{kind}:")
    return result


def main(folder: Path) -> None:
    """Every plan, a run, and the values of single queries."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "4").getOrCreate()
    assert "connect" in type(spark).__module__
    whole = fr.evaluate_table(TABLE, METRICS, **OPTIONS)
    pq.write_table(TABLE, folder / "whole.parquet")
    read = spark.read.parquet(str(folder / "whole.parquet"))
    for kind, df in (("files", read), ("in place", read.repartition(7, "query_id")), ("shuffle", read.repartition(3))):
        assert bits(planned(df, METRICS, kind, **OPTIONS)) == bits(whole), kind

    few = rows()
    pq.write_table(few, folder / "few.parquet")
    for df in (spark.createDataFrame(few), spark.read.parquet(str(folder / "few.parquet")).where("score is null or score >= 0")):
        found = planned(df, "nDCG@10,AP", "rare labels", per_query=True)
        assert bits(found) == bits(fr.evaluate_table(few, "nDCG@10,AP"))

    values = fr.distributed.spark.evaluate_queries(read, METRICS).orderBy("query_id").toArrow()
    assert values.column("query_id").to_pylist() == whole.query_ids.to_pylist()
    assert all(values.column(name).to_numpy().tobytes() == whole[name].tobytes() for name in whole.names)

    qrels, run = judgements(0)
    found = fr.distributed.spark.evaluate_run(spark.createDataFrame(qrels), spark.createDataFrame(run), "nDCG@10,AP")
    assert found.moments == fr.evaluate_run(qrels, run, "nDCG@10,AP").moments
    with pytest.raises(fr.InputError, match="not a number"):
        fr.distributed.spark.evaluate(read, "RR", label="query_id")
    spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))

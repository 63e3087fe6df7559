"""Rare labels in Spark: few documents count, so executors count where rows stand; the bits are those of one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_rows import bits, plan_of
from test_rare_labels import rows
from test_spark import pytestmark
from test_spark import spark as spark

import fastrank as fr
from fastrank.distributed import spark_plans

pytestmark = pytestmark

TABLE = rows(20_000, 300)
METRICS = "nDCG@10,RR,AP,ERR@5,AUC"
WHOLE = {"per_query": True, "n_resamples": 100}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five files, in each of which most queries have rows."""
    folder = tmp_path_factory.mktemp("scattered")
    for part in range(5):
        pq.write_table(TABLE.slice(part * 4000, 4000), folder / f"{part}.parquet")
    return folder


@pytest.mark.parametrize("most", [0, 100], ids=["by Python", "by SQL"])
def test_rows_are_counted_where_they_stand(
    spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(fr.distributed.spark, "MOST_LEVELS", most)
    result = fr.distributed.spark.evaluate(spark.createDataFrame(TABLE), METRICS, **WHOLE, explain=True)
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, **WHOLE))
    assert plan_of(result).endswith("of 20,000 rows count: executors count where they stand, and no row moves.")
    assert "plan rare labels" in plan_of(result)
    assert capsys.readouterr().out.startswith("rare labels: ")


def test_executors_read_files_that_share_queries(spark: Any, files: Path) -> None:
    result = fr.distributed.spark.evaluate(spark.read.parquet(str(files)), METRICS, ties="worst", **WHOLE)
    assert plan_of(result).endswith("no row moves; they read 5 Parquet files.")
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, ties="worst", **WHOLE))


def test_rows_of_a_cached_or_filtered_table_are_counted(spark: Any, files: Path) -> None:
    read = spark.read.parquet(str(files))
    cached = read.repartition(3).cache()
    for df in (read.where("score is null or score >= 0"), cached):
        result = fr.distributed.spark.evaluate(df, "nDCG@10,nDCG", convention="xgboost", ties="best", **WHOLE)
        assert "plan rare labels" in plan_of(result)
        assert bits(result) == bits(fr.evaluate_table(TABLE, "nDCG@10,nDCG", convention="xgboost", ties="best", **WHOLE))
    cached.unpersist()


def test_why_rows_are_moved_after_all_is_said(spark: Any, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, read = fr.distributed.spark.evaluate, spark.read.parquet(str(files))

    def reason(df: Any, **options: Any) -> str:
        plan = plan_of(evaluate(df, "RR", **options))
        assert 'plan shuffle: one repartition by "query_id" (queries stand in several files; ' in plan or df is not read
        return plan.rpartition("; ")[2]

    computed = read.selectExpr("query_id", "label", "rand(0) as score")
    assert reason(computed) == "its rows would be computed twice to count labels: cache it for that)."
    assert reason(read.repartition(2)) == "its rows would be computed twice to count labels: cache it for that)."
    assert reason(read.selectExpr("query_id", "coalesce(label, 0) + 1 as label", "score")) == "20,000 of 20,000 rows count)."
    assert reason(read.selectExpr("query_id", "label", "cast(score as decimal(9, 3)) as score")) == 'column "score" is decimal(9,3)).'
    assert reason(read, ties="input") == 'ties="input" asks for more than scores).'
    monkeypatch.setattr(spark_plans, "MOST_RELEVANT", 3)
    assert reason(read).endswith("of 20,000 rows count).")


def test_a_long_query_is_counted_even_where_files_are_whole(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_plans, "LONGEST", 3000)
    one = rows(5000, 1)
    pq.write_table(one, tmp_path / "1.parquet", row_group_size=1000)
    df = spark.read.parquet(str(tmp_path))
    result = fr.distributed.spark.evaluate(df, METRICS, **WHOLE)
    assert "plan rare labels" in plan_of(result)
    assert bits(result) == bits(fr.evaluate_table(one, METRICS, **WHOLE))
    asked = fr.distributed.spark.evaluate(df, "Bpref")
    assert "shares a query with another (one query has more than 3,000 rows; documents of label 0 count)" in plan_of(asked)


def test_what_is_wrong_is_told_by_who_meets_the_row(spark: Any) -> None:
    labels, scores = np.zeros(400), np.arange(400.0)
    labels[7], scores[9] = 1.0, np.nan
    table = pa.table({"query_id": ["a"] * 400, "label": labels, "score": scores})
    with pytest.raises(fr.InputError, match="scores must not be NaN: query 'a'"):
        fr.distributed.spark.evaluate(spark.createDataFrame(table), "RR")
    negative = table.set_column(1, "label", pa.array(labels - 1)).set_column(2, "score", pa.array(np.arange(400.0)))
    with pytest.raises(fr.InputError, match="labels must not be negative"):
        fr.distributed.spark.evaluate(spark.createDataFrame(negative), "RR")

"""Spark: our plans against the single machine, an empty `mapInArrow` on the same plan, window functions and mllib. All in one run.

python -m benchmarks.spark_table files|rows [ROWS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastrank as fr

LENGTH, N_FILES, N_PROCESSORS = 20, 8, 2
METRIC = "nDCG(gain='linear')@10"


def write(folder: Path, n_rows: int) -> None:
    """Queries of 20 documents in ascending order of their ids, without ties, in 8 files."""
    random = np.random.default_rng(0)
    for number in range(N_FILES):
        n_queries = n_rows // N_FILES // LENGTH
        query = np.repeat(np.arange(n_queries) + number * n_queries, LENGTH)
        labels = random.choice(np.arange(4, dtype=np.int32), len(query), p=[0.85, 0.07, 0.05, 0.03])
        scores = random.permuted(np.tile(np.arange(LENGTH, dtype=np.float64), (n_queries, 1)), axis=1).ravel()
        table = pa.table({"query_id": pa.array(query), "doc_id": np.tile(np.arange(LENGTH), n_queries), "label": labels, "score": scores})
        pq.write_table(table, folder / f"part-{number}.parquet")


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The least time of some calls, the first of which is left out."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)


def by_windows(df: Any) -> float:
    """The mean NDCG@10 with linear gain in Spark SQL: a rank by score, an ideal rank by label, two sums."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    by_query = Window.partitionBy("query_id")
    ranked = df.withColumn("rank", f.row_number().over(by_query.orderBy(f.desc("score"))))
    ranked = ranked.withColumn("ideal", f.row_number().over(by_query.orderBy(f.desc("label"))))

    def gained(rank: str) -> Any:
        return f.sum(f.when(f.col(rank) <= 10, f.col("label") / f.log2(f.col(rank) + 1)).otherwise(0.0))

    sums = ranked.groupBy("query_id").agg(gained("rank").alias("dcg"), gained("ideal").alias("most"))
    value = f.when(f.col("most") > 0, f.col("dcg") / f.col("most")).otherwise(0.0)
    return float(sums.select(f.avg(value)).first()[0])


def by_mllib(df: Any) -> float:
    """The mean NDCG@10 of mllib, which knows ranked ids, relevant ids and, since Spark 3.4, their labels."""
    from pyspark.mllib.evaluation import RankingMetrics
    from pyspark.sql import functions as f

    lists = df.groupBy("query_id").agg(f.sort_array(f.collect_list(f.struct("score", "doc_id", "label")), asc=False).alias("documents"))
    found = lists.select(f.col("documents.doc_id").cast("array<double>").alias("ids"), f.col("documents.label").alias("labels"))
    relevant = f.expr("transform(filter(arrays_zip(ids, labels), x -> x.labels > 0), x -> x.ids)")
    pairs = found.select("ids", relevant.alias("relevant")).rdd.map(lambda row: (row.ids, row.relevant))
    return float(RankingMetrics(pairs).ndcgAt(10))


def main(what: str, n_rows: int) -> None:
    """Print the table."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{N_PROCESSORS}]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "2g").getOrCreate()
    evaluate = fr.distributed.spark.evaluate
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), n_rows)
        files = spark.read.parquet(folder)
        computed = files.selectExpr("query_id", "doc_id", "label + 0 as label", "score * 1 as score")

        def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            yield pa.record_batch({"n": pa.array([0], pa.int64())})

        def empty() -> None:
            rows = computed.select("query_id", "label", "score").repartition("query_id").sortWithinPartitions("query_id")
            rows.mapInArrow(nothing, "n long").collect()

        whole = fr.evaluate_table(folder, METRIC, per_query=False)
        if what == "files":
            assert evaluate(files, METRIC).moments == whole.moments
            rows: list[tuple[str, Callable[[], Any], int]] = [
                ("one machine, evaluate_table", lambda: fr.evaluate_table(folder, METRIC, per_query=False), 3),
                ("Spark, plan files", lambda: evaluate(files, METRIC), 3),
            ]
        else:
            assert evaluate(computed, METRIC).moments == whole.moments
            (mean,) = whole.mean().values()
            assert abs(by_windows(computed) - mean) < 1e-9
            rows = [
                ("Spark, plan shuffle", lambda: evaluate(computed, METRIC), 2),
                ("empty mapInArrow, same plan", empty, 2),
                ("Spark SQL, window functions", lambda: by_windows(computed), 1),
                ("pyspark.mllib, RankingMetrics", lambda: by_mllib(computed), 1),
            ]
        n = n_rows // (N_FILES * LENGTH) * N_FILES * LENGTH
        print(f"{n:,} rows in queries of {LENGTH}, {N_FILES} files, {N_PROCESSORS} processors, {METRIC}")
        for name, call, repeats in rows:
            best = seconds(call, repeats)
            print(f"{name:32} {best:8.3f} s {n / best / 1e6:8.2f} M rows/s {best / n * 1e9:9.1f} ns a row", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2_000_000)

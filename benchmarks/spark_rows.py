"""Spark on two processors of one machine: our plans against that machine alone, an empty `mapInArrow`, window functions and mllib."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fastrank as fr
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting
from benchmarks.peers import why_absent

N_FILES, N_PROCESSORS = 8, 2
METRIC = "nDCG(gain='linear')@10"
# What mllib computes: a document is relevant or not.
BINARY = "nDCG(gain={0: 0, 1: 1, 2: 1, 3: 1})@10"
TOLD = Mark()
# The number of queries, and of documents of each.
Shape = tuple[int, int]
# Shares of the labels 0 to 3.
OFTEN, RARELY = (0.85, 0.07, 0.05, 0.03), (0.998, 0.001, 0.0006, 0.0004)


def why_no_spark(setting: Setting) -> str | None:
    """Why Spark cannot be asked, or None."""
    java = shutil.which("java") or (os.environ.get("JAVA_HOME") and shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin"))
    if not setting.slow:
        return "left out here: Spark takes ten seconds to start"
    return why_absent("pyspark") or (None if java else "Java is neither on PATH nor named by JAVA_HOME")


def spark(setting: Setting) -> Iterator[Comparison]:
    """Files that executors read, rows that Spark computes, and rows among which few have a label above 0."""
    absent = why_no_spark(setting)
    if absent is not None:
        yield _compare((0, 0), Call("evaluate", float, N_PROCESSORS), Call("Spark", float, N_PROCESSORS), absent=absent)
        return
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{N_PROCESSORS}]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "4").config("spark.driver.memory", "2g")
    session = builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    try:
        for comparisons, n_queries, length, shares in (
            (of_files, 4_000_000, 20, OFTEN),
            (of_rows, 200_000, 20, OFTEN),
            (of_rare_labels, 8_000, 1000, RARELY),
        ):
            with tempfile.TemporaryDirectory() as folder:
                n_queries = write(Path(folder), setting.queries(n_queries), length, shares)
                yield from comparisons(session, folder, (n_queries, length))
    finally:
        session.stop()


def write(folder: Path, n_queries: int, length: int, shares: tuple[float, ...]) -> int:
    """Queries of one length in ascending order of their ids, without ties, in 8 files. Returns the number of queries."""
    random = np.random.default_rng(0)
    size = max(1, n_queries // N_FILES)
    for number in range(N_FILES):
        query = np.repeat(np.arange(size) + number * size, length)
        labels = random.choice(np.arange(4, dtype=np.int32), len(query), p=shares)
        scores = random.permuted(np.tile(np.arange(length, dtype=np.float64), (size, 1)), axis=1).ravel()
        table = pa.table({"query_id": pa.array(query), "doc_id": np.tile(np.arange(length), size), "label": labels, "score": scores})
        pq.write_table(table, folder / f"part-{number}.parquet")
    return N_FILES * size


def of_files(session: Any, folder: str, shape: Shape) -> Iterator[Comparison]:
    """A data frame that only reads files."""
    files = session.read.parquet(folder)
    ours = _ours("evaluate, plan files", "files", files)
    alone = Call("fastrank evaluate_table, per_query=False", lambda: mean(fr.evaluate_table(folder, METRIC, per_query=False)), N_PROCESSORS)
    yield _compare(shape, ours, alone, Mark("share", 1 / 0.6), tolerance=0.0)
    few = session.read.parquet(*(f"{folder}/part-{number}.parquet" for number in range(N_FILES // 4)))
    ours = _ours("evaluate, plan files", "files", few)
    yield _compare((shape[0] // 4, shape[1]), ours, _windows(few), Mark("faster", 5.0), once=True)


def of_rows(session: Any, folder: str, shape: Shape) -> Iterator[Comparison]:
    """A data frame that computes its rows, one in seven with a label above 0."""
    computed = session.read.parquet(folder).selectExpr("query_id", "doc_id", "label + 0 as label", "score * 1 as score")
    ours = _ours("evaluate, plan shuffle", "shuffle", computed)
    nothing = Call("an empty mapInArrow on the same plan", lambda: empty(computed), N_PROCESSORS)
    yield _compare(shape, ours, nothing, Mark("share", 1.25), difference=float)
    yield _compare(shape, ours, _windows(computed))
    theirs = Call("pyspark.mllib RankingMetrics", lambda: by_mllib(computed), N_PROCESSORS)
    yield _compare(shape, _ours("evaluate, plan shuffle", "shuffle", computed, BINARY), theirs, Mark("faster", 5.0), once=True)


def of_rare_labels(session: Any, folder: str, shape: Shape) -> Iterator[Comparison]:
    """The same with one row in five hundred, and lists of 1,000."""
    computed = session.read.parquet(folder).selectExpr("query_id", "doc_id", "label + 0 as label", "score * 1 as score")
    ours = _ours("evaluate, plan rare labels", "rare labels", computed)
    yield _compare(shape, ours, _windows(computed))
    nothing = Call("an empty mapInArrow after a shuffle", lambda: empty(computed), N_PROCESSORS)
    yield _compare(shape, ours, nothing, difference=float)


def _ours(name: str, kind: str, df: Any, metric: str = METRIC) -> Call:
    def run() -> float:
        result = fr.distributed.spark.evaluate(df, metric)
        assert f"plan {kind}:" in result.notes[-1].message, result.notes
        return mean(result)

    return Call(name, run, N_PROCESSORS)


def _windows(df: Any) -> Call:
    return Call("window functions of Spark SQL", lambda: by_windows(df), N_PROCESSORS)


def _compare(shape: Shape, ours: Call, other: Call, mark: Mark = TOLD, **rest: Any) -> Comparison:
    rest = {"difference": lambda: abs(ours.run() - other.run()), **rest}
    n_queries, length = shape
    return Comparison(f"{n_queries:,} × {length}", n_queries * length, n_queries, ours, other, mark, **rest)


def mean(result: Any) -> float:
    """The one mean of a result."""
    (value,) = result.mean().values()
    return float(value)


def empty(df: Any) -> float:
    """Hand the rows over as the plan "shuffle" does, and compute nothing."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield pa.record_batch({"n": pa.array([0], pa.int64())})

    rows = df.select("query_id", "label", "score").repartition("query_id").sortWithinPartitions("query_id")
    rows.mapInArrow(nothing, "n long").collect()
    return 0.0


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
    """The mean NDCG@10 of mllib, which takes ranked ids and relevant ids."""
    from pyspark.mllib.evaluation import RankingMetrics
    from pyspark.sql import functions as f

    lists = df.groupBy("query_id").agg(f.sort_array(f.collect_list(f.struct("score", "doc_id", "label")), asc=False).alias("documents"))
    found = lists.select(f.col("documents.doc_id").cast("array<double>").alias("ids"), f.col("documents.label").alias("labels"))
    relevant = f.expr("transform(filter(arrays_zip(ids, labels), x -> x.labels > 0), x -> x.ids)")
    pairs: Callable[[Any], Any] = lambda row: (row.ids, row.relevant)  # noqa: E731
    return float(RankingMetrics(found.select("ids", relevant.alias("relevant")).rdd.map(pairs)).ndcgAt(10))

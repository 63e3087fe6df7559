"""Evaluation of Spark data frames (pyspark 4, classic and Connect): executors evaluate whole queries, the driver merges exact sums.

How the rows reach the executors is a plan, chosen from the physical plan of the data frame and said in the result's notes:

files        the data frame only reads Parquet files and no query stands in two of them: executors read the files themselves, by Arrow
in place     every partition holds whole queries (it was made by ``repartition(query)``): each is sorted and evaluated where it is
rare labels  few documents count: their scores go to all executors, which count around them; only the counts move
shuffle      anything else: one ``repartition(query)``, then as in place
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastrank.convention import Convention, one_of
from fastrank.distributed.parts import Job, told
from fastrank.distributed.rare import BELOW, ROWS, SLOT, RareJob, plan_of
from fastrank.distributed.runs import DOC, JUDGED, LABEL, QUERY, SCORE, RunJob
from fastrank.distributed.spark_plans import (
    SCHEMA,
    Plan,
    Tasks,
    check_names,
    collected,
    each_file,
    from_files,
    make_plan,
    plan_of_rows,
    quoted,
)
from fastrank.engine.calls import DEFAULT_METRICS, Metrics
from fastrank.engine.evaluator import Evaluator
from fastrank.errors import InputError
from fastrank.evaluation import Note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from fastrank.evaluation import Evaluation

# Queries with no more scores of documents that count are counted by Spark SQL, which compares a row with each of them.
MOST_LEVELS = 16


def evaluate(
    df: DataFrame,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    doc: str | None = None,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    per_query: bool = False,
    n_resamples: int = 0,
    seed: int = 0,
    explain: bool = False,
) -> Evaluation:
    """Judge the rankings in a Spark data frame: one row per document, partitioned in any way.

    The result has the bits of `fr.evaluate_table` on the same rows, for every number of partitions and every order of rows.

    Parameters
    ----------
    df
        A data frame of Spark SQL. It is read once, or, where it must be found out whether files share queries, their ids twice.
    query, label, score, doc, weight, by
        Names of columns, as in `fr.evaluate_table`.
    per_query
        True: bring the values of single queries to the driver, in the order of the files, or sorted by id where rows were moved. For
        more queries than the driver has memory for use `evaluate_queries`.
    n_resamples, seed
        Resamples of a Poisson bootstrap, for ``summary(method="poisson")``: see `fr.Evaluator`.
    explain
        Write the plan to standard output before anything is evaluated, as ``DataFrame.explain`` does.
    metrics, convention, ties, no_relevant, depth, judged_only
        As `fr.evaluate`.

    Errors: `InputError`, one line. fastrank must be installed where the executors run.
    """
    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only}
    options |= {"per_query": per_query, "n_resamples": n_resamples, "seed": seed}
    job = Job(query, label, score, doc, weight, _names(by), metrics, convention, options)
    job.evaluator()  # what is wrong with the options is said before Spark starts anything
    plan = make_plan(df, job)
    if explain:
        sys.stdout.write(f"{plan}\n")
    parts = _parts(df, job, plan)
    merged = _merged(parts, job)
    if plan.kind != "files":
        merged.sort_queries()
    result = merged.result()
    result.notes = (*result.notes, Note("plan", len(parts), f"evaluated by Spark in {len(parts)} parts, plan {plan}"))
    return result


def _names(by: str | Sequence[str] | None) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by or ())


def evaluate_queries(
    df: DataFrame,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    doc: str | None = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
) -> DataFrame:
    """The value of every query as a Spark data frame, computed when Spark needs it: the query id, then a double per metric.

    Parameters: as `evaluate`. Columns bear the keys of ``result.mean()``.

    Errors: those of the options are `InputError`; what is wrong with rows fails the Spark job that meets it, with the same line.
    """
    from pyspark.sql.types import DoubleType, StructField, StructType

    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only}
    job = Job(query, label, score, doc, None, (), metrics, convention, options)
    names = job.evaluator().result().names
    check_names(df, job.columns)
    rows = df.select(*map(quoted, job.columns))
    plan = plan_of_rows(rows, job)
    schema = StructType([rows.schema[query], *(StructField(name, DoubleType()) for name in names)])

    def values(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        result = job.evaluate(batches).result()
        if result.n_queries:
            assert result.values is not None
            yield pa.record_batch([result.query_ids, *(pa.array(column) for column in result.values.T.copy())], names=[query, *names])

    return _together(rows, job, plan).mapInArrow(values, schema)


def evaluate_run(
    qrels: DataFrame,
    run: DataFrame,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: str = "score",
    convention: str | Convention = "trec_eval",
    missing: str = "zero",
    depth: int | None = None,
    duplicates: str = "error",
    judged_only: bool = False,
    ties: str | None = None,
    no_relevant: str | None = None,
    per_query: bool = False,
) -> Evaluation:
    """Judge the ranking of one system against judgements, both Spark data frames, matched by query and document id.

    Both are brought together by query in one shuffle, and matched by executors under the rules of `fr.evaluate_run`, whose bits the result
    has. Queries come sorted by id.

    Parameters
    ----------
    qrels, run
        Data frames with columns `query` and `doc`, and `label` or `score`. Ids of different types are compared by their text.
    duplicates
        "error", or "max": rows have no order in Spark, so "first" and "last" mean nothing.
    per_query
        True: bring the values of single queries to the driver.
    metrics, convention, missing, depth, judged_only, ties, no_relevant
        As `fr.evaluate_run`.

    Errors: `InputError`, one line.
    """
    from pyspark.sql import functions

    one_of("duplicates", duplicates, ("error", "max"))
    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only, "per_query": per_query}
    job = RunJob(metrics, convention, missing, duplicates, options)
    job.evaluator()  # what is wrong with the options is said before Spark starts anything
    check_names(qrels, (query, doc, label))
    check_names(run, (query, doc, score))

    def side(df: DataFrame, is_judged: bool) -> DataFrame:
        ids = []
        for given, name in ((query, QUERY), (doc, DOC)):
            column = functions.col(quoted(given))
            ids.append((column if qrels.schema[given].dataType == run.schema[given].dataType else column.cast("string")).alias(name))
        values = []
        for of, given, name, there in ((qrels, label, LABEL, is_judged), (run, score, SCORE, not is_judged)):
            value = functions.col(quoted(given)) if there else functions.lit(None).cast(of.schema[given].dataType)
            values.append(value.alias(name))
        return df.select(*ids, *values, functions.lit(is_judged).alias(JUDGED))

    together = side(qrels, True).union(side(run, False)).repartition(QUERY).sortWithinPartitions(QUERY)
    return job.result(_merged(_of_partitions(together, job), job))


# --- parts ----------------------------------------------------------------------------------------------------------------------


def _together(rows: DataFrame, job: Job, plan: Plan) -> DataFrame:
    """The rows with whole queries in each partition, one after the other."""
    if plan.kind == "shuffle":
        rows = rows.repartition(quoted(job.query))
    if not plan.is_sorted:
        rows = rows.sortWithinPartitions(quoted(job.query))
    # mapInArrow takes a dot in a name for a path into a structure.
    return rows.toDF(*(f"column_{place}" for place in range(len(job.columns))))


def _parts(df: DataFrame, job: Job, plan: Plan) -> list[Any]:
    """What became of every part, in order."""
    if plan.kind == "files":
        return each_file(df.sparkSession, plan.files, lambda path: job.evaluate_file(path).to_bytes())
    if plan.counting is not None:
        counts = _counts(df, job, plan.files, plan.counting)
        return _of_partitions(counts.repartition(QUERY).sortWithinPartitions(QUERY), plan.counting)
    return _of_partitions(_together(df.select(*map(quoted, job.columns)), job, plan), job)


def _counts(df: DataFrame, job: Job, files: Tasks, counting: RareJob) -> DataFrame:
    """How many rows stand at and between the scores of the documents that count, from each partition or file."""
    from pyspark.sql.types import LongType, StructField, StructType

    of_query = df.schema[job.query].dataType
    schema = StructType([StructField(QUERY, of_query), StructField(SLOT, LongType()), StructField(ROWS, LongType())])
    if files:
        return from_files(df.sparkSession, files, counting.count_file, schema)
    rows = df.select(quoted(job.query), quoted(job.score)).toDF(QUERY, SCORE)
    levels = counting.relevant.as_columns(MOST_LEVELS)
    return rows.mapInArrow(counting.count, schema) if levels is None else _counts_by_sql(rows, levels, plan_of(job).convention)


def _counts_by_sql(rows: DataFrame, levels: pa.Table, convention: Convention) -> DataFrame:
    """The same in Spark SQL, for queries of few levels: to hand a row to Python costs more than to join and count it."""
    from pyspark.sql import functions as f

    score = f.col(SCORE) if convention.scores is None else f.col(SCORE).cast({"float32": "float", "float64": "double"}[convention.scores])
    of_query = rows.sparkSession.createDataFrame(levels).withColumnRenamed(QUERY, LABEL)
    joined = rows.join(f.broadcast(of_query), f.col(QUERY) == f.col(LABEL), "left")
    n_met = n_equal = f.lit(0)
    for name in levels.column_names[1:]:
        n_met = n_met + f.when(f.col(name) <= score, 1).otherwise(0)
        n_equal = n_equal + f.when(f.col(name) == score, 1).otherwise(0)
    slot = f.when(n_met == 0, BELOW).otherwise(2 * n_met - 1 - n_equal).cast("long")
    return joined.groupBy(QUERY, slot.alias(SLOT)).agg(f.count(SCORE).alias(ROWS))


def _of_partitions(sorted_rows: DataFrame, job: Job | RunJob | RareJob) -> list[Any]:
    """What became of every partition."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield told(TaskContext.get().partitionId(), lambda: job.evaluate(batches).to_bytes())

    return collected(sorted_rows.mapInArrow(rows, SCHEMA))


def _merged(parts: list[Any], job: Job | RunJob) -> Evaluator:
    """All parts in one, or the error of the first that has one."""
    for part in parts:
        if part["error"] is not None:
            raise InputError(part["error"])
    merged = job.evaluator()
    for part in parts:
        merged.merge(Evaluator.from_bytes(bytes(part["data"]), merged.convention))
    return merged

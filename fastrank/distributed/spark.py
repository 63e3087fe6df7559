"""Evaluation of Spark data frames (pyspark 4, classic and Connect): executors evaluate whole queries, the driver merges exact sums.

How the rows reach the executors is a plan, chosen from the physical plan of the data frame and said in the result's notes:

files     the data frame only reads Parquet files and no query stands in two of them: executors read the files themselves, by Arrow
in place  every partition holds whole queries (it was made by ``repartition(query)``): each is sorted by query and evaluated where it is
shuffle   anything else: one ``repartition(query)``, then as in place
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastrank.convention import Convention, one_of
from fastrank.distributed.parts import Job, are_apart, distinct_keys, id_range, told
from fastrank.distributed.runs import DOC, JUDGED, LABEL, QUERY, SCORE, RunJob
from fastrank.engine.calls import DEFAULT_METRICS, Metrics
from fastrank.engine.evaluator import Evaluator
from fastrank.errors import InputError
from fastrank.evaluation import Note

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from fastrank.evaluation import Evaluation

SCHEMA = "part long, data binary, error string"

# Nodes of a physical plan that move no row from one partition to another.
STAYING = re.compile(r"(AdaptiveSparkPlan|Project|Filter|Sort|ColumnarToRow|ResultQueryStage|WholeStageCodegen)\b")
# A file's address as Spark writes it, and as Arrow reads it.
SCHEMES = {"s3a://": "s3://", "s3n://": "s3://"}
READABLE = ("file:", "s3://", "gs://", "hdfs://", "abfs://", "abfss://")


@dataclasses.dataclass(frozen=True)
class Plan:
    """How rows reach the executors: `kind` ("files", "in place", "shuffle"), why, the files, and whether partitions are sorted."""

    kind: str
    reason: str
    files: tuple[str, ...] = ()
    is_sorted: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}."


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
    _check_names(df, job.columns)
    rows = df.select(*map(_quoted, job.columns))
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
    _check_names(qrels, (query, doc, label))
    _check_names(run, (query, doc, score))

    def side(df: DataFrame, is_judged: bool) -> DataFrame:
        ids = []
        for given, name in ((query, QUERY), (doc, DOC)):
            column = functions.col(_quoted(given))
            ids.append((column if qrels.schema[given].dataType == run.schema[given].dataType else column.cast("string")).alias(name))
        values = []
        for of, given, name, there in ((qrels, label, LABEL, is_judged), (run, score, SCORE, not is_judged)):
            value = functions.col(_quoted(given)) if there else functions.lit(None).cast(of.schema[given].dataType)
            values.append(value.alias(name))
        return df.select(*ids, *values, functions.lit(is_judged).alias(JUDGED))

    together = side(qrels, True).union(side(run, False)).repartition(QUERY).sortWithinPartitions(QUERY)
    return job.result(_merged(_of_partitions(together, job), job))


# --- plans ----------------------------------------------------------------------------------------------------------------------


def make_plan(df: DataFrame, job: Job) -> Plan:
    """How the rows of a data frame reach the executors."""
    _check_names(df, job.columns)
    rows = df.select(*map(_quoted, job.columns))
    text = _physical(rows)
    why_not = _not_files(text, job)
    if why_not is None:
        files = tuple(sorted(_address(uri) for uri in rows.inputFiles()))
        unread = [path for path in files if not path.startswith(READABLE)]
        why_not = f"Arrow does not read {unread[0]}" if unread else _shared(rows.sparkSession, files, job.query)
        if why_not is None:
            return Plan("files", f"executors read {len(files)} Parquet files, none of which shares a query with another", files)
    plan = plan_of_rows(rows, job)
    return dataclasses.replace(plan, reason=f"{plan.reason} ({why_not})")


def plan_of_rows(rows: DataFrame, job: Job) -> Plan:
    """Whether the partitions hold whole queries as they are."""
    is_sorted = False
    column = re.escape(job.query)
    for node in _nodes(_physical(rows)):
        found = re.match(rf"Exchange hashpartitioning\({column}#(\d+)L?, \d+\)", node)
        if found or re.match("Exchange SinglePartition|Coalesce 1$", node):
            return Plan("in place", f'its partitions hold whole queries of "{job.query}"', is_sorted=is_sorted)
        if not STAYING.match(node) or re.search(rf" AS {column}#", node):
            break
        is_sorted = is_sorted or re.match(rf"Sort \[{column}#\d+L? ASC NULLS FIRST", node) is not None
    return Plan("shuffle", f'one repartition by "{job.query}"')


def _check_names(df: DataFrame, names: Sequence[str]) -> None:
    for name in names:
        if df.columns.count(name) != 1:
            known = ", ".join(f'"{column}"' for column in df.columns[:8])
            raise InputError(f'"{name}" is {df.columns.count(name)} columns of the data frame, not one; its columns are {known}.')


def _quoted(name: str) -> str:
    """A name with dots in it is no path into a structure."""
    return "`" + name.replace("`", "``") + "`"


def _physical(df: DataFrame) -> str:
    """The physical plan as Spark tells it: classic and Connect have no other interface in common."""
    told_plan = io.StringIO()
    with contextlib.redirect_stdout(told_plan):
        df.explain("simple")
    return told_plan.getvalue()


def _nodes(physical: str) -> Iterator[str]:
    """The nodes of a plan from its root down."""
    for line in physical.splitlines():
        node = re.sub(r"^[\s:+-]*(\*\(\d+\) )?", "", line)
        if node and not node.startswith("== "):
            yield node


def _not_files(physical: str, job: Job) -> str | None:
    """Why executors cannot read the files themselves; None where they can."""
    nodes = [node for node in _nodes(physical) if not node.startswith("ColumnarToRow")]
    scan = nodes[-1] if nodes else ""
    if len(nodes) != 1 or not scan.startswith("FileScan parquet"):
        return "its rows are computed" if "FileScan parquet" in physical else "its rows are no Parquet files"
    if "Location: InMemoryFileIndex" not in scan or "PartitionFilters: []" not in scan or "PushedFilters: []" not in scan:
        return "a table format or filter chooses among its rows"
    schema = scan.partition("ReadSchema: struct<")[2]
    folders = [name for name in job.columns if f"{name}:" not in schema]
    return f'column "{folders[0]}" is in the names of folders' if folders else None


def _address(uri: str) -> str:
    for spark, arrow in SCHEMES.items():
        if uri.startswith(spark):
            return arrow + uri[len(spark) :]
    return uri


def _shared(spark: SparkSession, files: tuple[str, ...], query: str) -> str | None:
    """Why files may not be evaluated one by one; None where no query stands in two of them. Executors look at them."""
    found = _each_file(spark, files, lambda path: id_range(path, query), n_tasks=None)
    wrong = next((row["error"] for row in found if row["error"] is not None), None)
    if wrong is not None:
        return f"executors could not read the files: {wrong}"
    if are_apart([bytes(row["data"]) for row in found]):
        return None

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.record_batch([pa.array(distinct_keys(files[number], query))], names=["key"])

    every = spark.range(0, len(files), 1, len(files)).mapInArrow(keys, "key long")
    several = every.groupBy("key").count().where("count > 1").limit(1).count()
    return "queries stand in several files" if several else None


# --- parts ----------------------------------------------------------------------------------------------------------------------


def _each_file(spark: SparkSession, files: tuple[str, ...], work: Callable[[str], bytes], n_tasks: int | None) -> list[Any]:
    """What a function gives for each file, computed by executors in so many tasks; None: one a processor."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield told(number, functools.partial(work, files[number]))

    return _collected(spark.range(0, len(files), 1, n_tasks).mapInArrow(rows, SCHEMA))


def _collected(parts: DataFrame) -> list[Any]:
    return sorted(parts.collect(), key=lambda row: row["part"])


def _together(rows: DataFrame, job: Job, plan: Plan) -> DataFrame:
    """The rows with whole queries in each partition, one after the other."""
    if plan.kind == "shuffle":
        rows = rows.repartition(_quoted(job.query))
    if not plan.is_sorted:
        rows = rows.sortWithinPartitions(_quoted(job.query))
    # mapInArrow takes a dot in a name for a path into a structure.
    return rows.toDF(*(f"column_{place}" for place in range(len(job.columns))))


def _parts(df: DataFrame, job: Job, plan: Plan) -> list[Any]:
    """What became of every part, in order."""
    if plan.kind == "files":
        return _each_file(df.sparkSession, plan.files, lambda path: job.evaluate_file(path).to_bytes(), n_tasks=len(plan.files))

    return _of_partitions(_together(df.select(*map(_quoted, job.columns)), job, plan), job)


def _of_partitions(sorted_rows: DataFrame, job: Job | RunJob) -> list[Any]:
    """What became of every partition."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield told(TaskContext.get().partitionId(), lambda: job.evaluate(batches).to_bytes())

    return _collected(sorted_rows.mapInArrow(rows, SCHEMA))


def _merged(parts: list[Any], job: Job | RunJob) -> Evaluator:
    """All parts in one, or the error of the first that has one."""
    for part in parts:
        if part["error"] is not None:
            raise InputError(part["error"])
    merged = job.evaluator()
    for part in parts:
        merged.merge(Evaluator.from_bytes(bytes(part["data"]), merged.convention))
    return merged

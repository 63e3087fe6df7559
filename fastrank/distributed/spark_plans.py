"""How the rows of a Spark data frame reach the executors: chosen from its physical plan, its files and its labels."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastrank.distributed import rare
from fastrank.distributed.parts import Job, are_apart, distinct_keys, id_range, longest_query, tasks_of, told
from fastrank.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "part long, data binary, error string"

# Nodes of a physical plan that move no row from one partition to another.
STAYING = re.compile(r"(AdaptiveSparkPlan|Project|Filter|Sort|ColumnarToRow|ResultQueryStage|WholeStageCodegen)\b")
# Nodes that cost little more than reading: such rows are read again rather than moved. What stands below a cached table has been done.
READING = re.compile(r"(AdaptiveSparkPlan|Project|Filter|ColumnarToRow|FileScan|BatchScan|LocalTableScan|Range|Union|InMemoryTableScan)\b")
CACHED = "InMemoryTableScan"
# Functions that need not give the same twice, and those of users, that may cost anything.
CHANGING = re.compile(r"\b(rand|randn|uuid|shuffle|randstr|UDF|monotonically_increasing_id|now|current_timestamp)\(", re.IGNORECASE)
# Types of Spark that hold numbers as machines do, and ids.
NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double")
IDS = ("string", "tinyint", "smallint", "int", "bigint", "binary")
# Labels are rare below this share of rows, and few below this number, of which every executor holds a copy: some 30 bytes each.
MOST_OF_ROWS, MOST_RELEVANT = 0.1, 1 << 20
# Files are read by one task up to this number of rows. A task costs Spark 60 ms, which is what 3 million rows take.
OF_A_TASK = 1 << 23
# The driver looks at so few files itself, if it can read them: a job of Spark takes longer.
FEW_FILES = 16
# A query with more rows is too long for one executor: some 30 bytes each.
LONGEST = 1 << 23
# A file's address as Spark writes it, and as Arrow reads it.
SCHEMES = {"s3a://": "s3://", "s3n://": "s3://"}
READABLE = ("file:", "s3://", "gs://", "hdfs://", "abfs://", "abfss://")


# The files that each task reads.
Tasks = tuple[tuple[str, ...], ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """How rows reach the executors: `kind` ("files", "in place", "rare labels", "shuffle"), and why.

    files: those that executors read themselves. is_sorted: partitions are sorted by query. counting: what is counted for rare labels.
    """

    kind: str
    reason: str
    files: Tasks = ()
    is_sorted: bool = False
    counting: rare.RareJob | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}."


def make_plan(df: DataFrame, job: Job) -> Plan:
    """How the rows of a data frame reach the executors."""
    check_names(df, job.columns)
    rows = df.select(*map(quoted, job.columns))
    physical = _physical(rows)
    files: Tasks = ()
    reason, longest = _not_files(physical, job), 0
    if reason is None:
        paths = tuple(sorted(_address(uri) for uri in rows.inputFiles()))
        unread = next((path for path in paths if not path.startswith(READABLE)), None)
        if unread is None:
            reason, longest, files = _look_at_files(rows.sparkSession, paths, job.query)
        else:
            reason = f"Arrow does not read {unread}"
    if reason is None:
        plan = Plan("files", f"executors read {_n_files(files)} Parquet files, none of which shares a query with another", files)
        if longest <= LONGEST:
            return plan
        reason = f"one query has more than {LONGEST:,} rows"
    else:
        plan = plan_of_rows(rows, job)
    if plan.kind != "in place":
        counted = _rare(rows, physical, job, files)
        if isinstance(counted, Plan):
            return counted
        reason = f"{reason}; {counted}"
    return dataclasses.replace(plan, reason=f"{plan.reason} ({reason})")


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


def check_names(df: DataFrame, names: Sequence[str]) -> None:
    """Each of the columns must be there, once."""
    for name in names:
        if df.columns.count(name) != 1:
            known = ", ".join(f'"{column}"' for column in df.columns[:8])
            raise InputError(f'"{name}" is {df.columns.count(name)} columns of the data frame, not one; its columns are {known}.')


def quoted(name: str) -> str:
    """A name with dots in it is no path into a structure."""
    return "`" + name.replace("`", "``") + "`"


# --- the physical plan ------------------------------------------------------------------------------------------------------------


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


def _is_cheap(physical: str) -> bool:
    """Whether rows may be read twice for what it costs to move them once, and are the same both times."""
    for node in _nodes(physical):
        if not READING.match(node):
            return False
        if node.startswith(CACHED):
            return True
        if CHANGING.search(node):
            return False
    return True


# --- files ------------------------------------------------------------------------------------------------------------------------


def _address(uri: str) -> str:
    for spark, arrow in SCHEMES.items():
        if uri.startswith(spark):
            return arrow + uri[len(spark) :]
    return uri


def _n_files(files: Tasks) -> int:
    return sum(map(len, files))


def _look_at_files(spark: SparkSession, paths: tuple[str, ...], query: str) -> tuple[str | None, int, Tasks]:
    """What footers tell of files: why they may not be evaluated one by one (None: no query stands in two), rows of a query, and tasks."""
    each = tuple((path,) for path in paths)
    footers: list[bytes] = []
    if len(paths) <= FEW_FILES:
        with contextlib.suppress(InputError):
            footers = [id_range(path, query) for path in paths]
    if not footers:
        found = each_file(spark, each, lambda path: id_range(path, query), is_light=True)
        wrong = next((row["error"] for row in found if row["error"] is not None), None)
        if wrong is not None:
            return f"executors could not read the files: {wrong}", 0, ()
        footers = [bytes(row["data"]) for row in found]
    tasks = tuple(paths[of_task] for of_task in tasks_of(footers, OF_A_TASK))
    if are_apart(footers):
        return None, longest_query(footers), tasks

    def keys(path: str) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch([pa.array(distinct_keys(path, query))], names=["key"])

    several = from_files(spark, each, keys, "key long").groupBy("key").count().where("count > 1").limit(1).count()
    return "queries stand in several files" if several else None, longest_query(footers), tasks


def from_files(
    spark: SparkSession, files: Tasks, work: Callable[[str], Iterator[pa.RecordBatch]], schema: Any, *, is_light: bool = False
) -> DataFrame:
    """What a function gives for each file, computed by executors; light work in no more tasks than there are processors."""

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                for path in files[task]:
                    yield from work(path)

    return spark.range(0, len(files), 1, None if is_light else max(1, len(files))).mapInArrow(rows, schema)


def each_file(spark: SparkSession, files: Tasks, work: Callable[[str], bytes], *, is_light: bool = False) -> list[Any]:
    """What a function gives for each file, in the order of the files."""
    numbers = {path: number for number, path in enumerate(itertools.chain(*files))}

    def rows(path: str) -> Iterator[pa.RecordBatch]:
        yield told(numbers[path], functools.partial(work, path))

    return collected(from_files(spark, files, rows, SCHEMA, is_light=is_light))


def collected(parts: DataFrame) -> list[Any]:
    """The parts in order."""
    return sorted(parts.collect(), key=lambda row: row["part"])


# --- labels -----------------------------------------------------------------------------------------------------------------------


def _rare(rows: DataFrame, physical: str, job: Job, files: Tasks) -> Plan | str:
    """The plan for rare labels, with the documents that count; or why there is none."""
    from pyspark.sql import functions as f

    if (reason := rare.why_not(job)) is not None:
        return reason
    if not _is_cheap(physical):
        return "its rows would be computed twice to count labels: cache it for that"
    plan, columns = rare.plan_of(job), (job.query, job.label, job.score)
    query, label, score = (f.col(quoted(name)) for name in columns)
    for name, known in zip(columns, (IDS, NUMBERS, NUMBERS), strict=True):
        if (kind := rows.schema[name].dataType.simpleString()) not in known:
            return f'column "{name}" is {kind}'
    if plan.convention.labels == "float32":
        label = label.cast("float")
    counts = label >= f.lit(plan.least)
    listed = counts | (score.isNull() & label.isNotNull())
    nan = f.isnan(score) if rows.schema[job.score].dataType.simpleString() in ("float", "double") else f.lit(False)
    sums = (f.count(f.lit(1)), f.count_if(listed), f.count_if(query.isNull() | nan), f.min(label), f.max(label))
    n_rows, n_listed, n_wrong, smallest, largest = rows.agg(*sums).first()
    smallest, largest = (0.0, 0.0) if smallest is None else (float(smallest), float(largest))
    if n_wrong or not math.isfinite(smallest + largest) or (smallest < 0 and not plan.convention.negative_labels):
        return "something is wrong with its rows"
    share = f"{n_listed:,} of {n_rows:,} rows count"
    if n_listed > min(MOST_RELEVANT, MOST_OF_ROWS * n_rows) or not n_rows:
        return share
    found = rows.where(listed).select(query, label, score).toArrow()
    counting = rare.RareJob(job, rare.Relevant.of(found, (smallest, largest), plan.convention))
    how = f"executors count where they stand, and no row moves{f'; they read {_n_files(files)} Parquet files' if files else ''}"
    return Plan("rare labels", f"{share}: {how}", files, counting=counting)

"""Evaluation by Spark has the bits of one machine, however the rows are partitioned."""

from __future__ import annotations

import doctest
import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster_rows import METRICS, OPTIONS, TABLE, bits, by_id, judgements, plan_of

import fastrank as fr

sql = pytest.importorskip("pyspark.sql", reason="needs pyspark: pip install 'fastrank-metrics[spark]'")
JAVA = shutil.which("java") or (os.environ.get("JAVA_HOME") and shutil.which("java", path=f"{os.environ['JAVA_HOME']}/bin"))

pytestmark = [
    pytest.mark.skipif(not JAVA, reason="needs Java 17 or newer: on PATH or named by JAVA_HOME"),
    pytest.mark.slow,
    pytest.mark.compiled,
]


def started(master: str) -> Any:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master(master).config("spark.ui.enabled", "false").config("spark.sql.shuffle.partitions", "4")
    return builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    session = started("local[2]")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The table as five files, cut between queries."""
    folder = tmp_path_factory.mktemp("files") / "with a space"
    folder.mkdir()
    starts = np.flatnonzero(np.append(True, np.diff(np.unique(TABLE["query_id"].to_numpy(), return_inverse=True)[1]) > 0))
    cuts = [0, *starts[np.linspace(0, len(starts), 6).astype(int)[1:-1]], len(TABLE)]
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        pq.write_table(TABLE.slice(first, last - first), folder / f"part-{number}.parquet", row_group_size=300)
    return folder


def test_executors_read_files_that_share_no_query(spark: Any, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = fr.distributed.spark.evaluate(spark.read.parquet(str(files)), METRICS, **OPTIONS, explain=True)
    assert bits(result) == bits(fr.evaluate_table(str(files), METRICS, **OPTIONS))
    assert "5 parts, plan files: executors read 5 Parquet files, none of which shares a query with another" in plan_of(result)
    assert capsys.readouterr().out.startswith("files: executors read 5 Parquet files")


def test_files_whose_ranges_overlap_are_read_if_no_query_stands_in_two(spark: Any, tmp_path: Path) -> None:
    of_query = np.unique(TABLE["query_id"].to_numpy(), return_inverse=True)[1] % 3
    for part in range(3):
        pq.write_table(TABLE.take(pa.array(np.flatnonzero(of_query == part))), tmp_path / f"{part}.parquet")
    result = fr.distributed.spark.evaluate(spark.read.parquet(str(tmp_path)), METRICS, **OPTIONS)
    assert "plan files" in plan_of(result)
    assert bits(result) == bits(fr.evaluate_table(str(tmp_path), METRICS, **OPTIONS))


def test_a_query_split_over_files_is_brought_together(spark: Any, tmp_path: Path) -> None:
    for part in range(3):
        pq.write_table(TABLE.slice(part * 1334, 1334), tmp_path / f"{part}.parquet")
    result = fr.distributed.spark.evaluate(spark.read.parquet(str(tmp_path)), METRICS, **OPTIONS)
    assert 'plan shuffle: one repartition by "query_id" (queries stand in several files; ' in plan_of(result)
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, **OPTIONS))


@pytest.mark.parametrize("n_partitions", [1, 7, 64])
def test_any_number_of_partitions_of_shuffled_rows_gives_the_same_bits(spark: Any, n_partitions: int) -> None:
    order = np.random.default_rng(n_partitions).permutation(len(TABLE))
    df = spark.createDataFrame(TABLE.take(pa.array(order))).repartition(n_partitions)
    result = fr.distributed.spark.evaluate(df, METRICS, **OPTIONS)
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, **OPTIONS))


@pytest.mark.parametrize("is_sorted", [False, True])
def test_partitions_of_whole_queries_are_evaluated_in_place(spark: Any, is_sorted: bool) -> None:
    df = spark.createDataFrame(TABLE).repartition(64, "query_id")
    if is_sorted:
        df = df.sortWithinPartitions("query_id")
    result = fr.distributed.spark.evaluate(df.where("label < 9 or label is null"), METRICS, **OPTIONS)
    assert "64 parts, plan in place" in plan_of(result)  # most of them, of 802 queries, hold a few, some none
    assert bits(result) == bits(fr.evaluate_table(TABLE, METRICS, **OPTIONS))


def test_partitions_by_something_else_or_by_a_renamed_column_are_not_taken_for_whole(spark: Any) -> None:
    df = spark.createDataFrame(TABLE)
    for other in (
        df.repartition(3, "part"),
        df.repartition(3, "query_id", "label"),
        df.withColumn("another", df.query_id).withColumn("query_id", df.part.cast("string")).repartition(3, "another"),
        df.repartition(3, "query_id").withColumn("query_id", df.part.cast("string")),
    ):
        plan = fr.distributed.spark.evaluate(other, "RR")
        assert "plan shuffle" in plan_of(plan)


def test_empty_frames_and_empty_partitions(spark: Any) -> None:
    df = spark.createDataFrame(TABLE)
    empty = fr.distributed.spark.evaluate(df.where("label > 9"), "RR")
    assert (empty.n_queries, np.isnan(empty.mean()["RR"])) == (0, True)
    few = fr.distributed.spark.evaluate(df.where("query_id < 'q00002'").repartition(64), "RR")
    assert few.mean() == fr.evaluate_table(TABLE.filter(pa.compute.field("query_id") < "q00002"), "RR").mean()


def test_values_of_single_queries_as_a_data_frame(spark: Any, files: Path) -> None:
    df = spark.read.parquet(str(files))
    found = fr.distributed.spark.evaluate_queries(df, METRICS)
    whole = fr.evaluate_table(TABLE, METRICS)
    assert found.columns == ["query_id", *whole.names]
    table = found.orderBy("query_id").toArrow()
    assert table.column("query_id").to_pylist() == whole.query_ids.to_pylist()
    for name in whole.names:
        assert table.column(name).to_numpy().tobytes() == whole[name].tobytes()


def test_ids_of_other_types_and_names_with_dots(spark: Any) -> None:
    numbers = pa.array([int(name[1:]) - 300 for name in TABLE["query_id"].to_pylist()])
    table = TABLE.set_column(0, "the.query `id`", numbers)
    result = fr.distributed.spark.evaluate(spark.createDataFrame(table).repartition(5), METRICS, query="the.query `id`", **OPTIONS)
    assert bits(result) == bits(fr.evaluate_table(table, METRICS, query="the.query `id`", **OPTIONS))


def test_what_is_wrong_is_one_line(spark: Any, files: Path) -> None:
    evaluate, df = fr.distributed.spark.evaluate, spark.read.parquet(str(files))
    with pytest.raises(fr.InputError, match=r'^"labels" is 0 columns of the data frame, not one; its columns are "query_id"'):
        evaluate(df, "RR", label="labels")
    with pytest.raises(fr.InputError, match="'nonsense' is not a known metric"):
        evaluate(df, "nonsense")
    for wrong in (df, spark.createDataFrame(TABLE)):
        with pytest.raises(fr.InputError, match=r'^label column "query_id" is .*string.*, not a number') as caught:
            evaluate(wrong, "RR", label="query_id")
        assert "\n" not in str(caught.value)
    changing = spark.createDataFrame(TABLE).repartition(4)
    with pytest.raises(fr.InputError, match='weight column "score" must be constant within a query'):
        evaluate(changing.fillna(0), "RR", weight="score")


# --- judgements and runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [{}, {"missing": "skip", "judged_only": True}, {"convention": "fastrank", "depth": 5, "ties": "worst"}])
def test_a_run_has_the_bits_of_one_machine(spark: Any, rules: dict[str, Any]) -> None:
    qrels, run = judgements(0)
    if rules.get("convention"):
        qrels = qrels.filter(pa.compute.field("label") >= 0)
    frames = [spark.createDataFrame(table).repartition(3) for table in (qrels, run)]
    found = fr.distributed.spark.evaluate_run(*frames, "nDCG@10,AP,RR,Bpref", per_query=True, **rules)
    whole = fr.evaluate_run(qrels, run, "nDCG@10,AP,RR,Bpref", **rules)
    assert by_id(found) == by_id(whole)
    assert found.query_ids.to_pylist() == sorted(found.query_ids.to_pylist())
    assert found.moments == whole.moments
    assert [n for n in found.notes if n.kind != "regrouped"] == [n for n in whole.notes if n.kind != "regrouped"]


def test_ids_of_two_types_are_compared_by_their_text_and_duplicates_dropped(spark: Any) -> None:
    qrels = spark.createDataFrame([(7, 1, 1), (7, 2, 0), (8, 1, 2)], "query_id int, doc_id int, label int")
    rows = [("7", "2", 0.5), ("7", "1", 0.1), ("7", "1", 0.9), ("8", "3", 1.0)]
    run = spark.createDataFrame(rows, "query_id string, doc_id string, score double")
    with pytest.raises(fr.InputError, match="twice"):
        fr.distributed.spark.evaluate_run(qrels, run, "RR")
    found = fr.distributed.spark.evaluate_run(qrels, run, "RR", duplicates="max")
    assert found.mean() == {"RR": 0.5}
    assert "1 rows dropped as duplicates; duplicates: max." in [note.message for note in found.notes]


def test_sides_that_have_no_query_in_common_and_wrong_rules(spark: Any) -> None:
    qrels = spark.createDataFrame([("a", "x", 1)], "query_id string, doc_id string, label int")
    run = spark.createDataFrame([("b", "x", 1.0)], "query_id string, doc_id string, score double")
    with pytest.raises(fr.InputError, match="no query is in both data frames, qrels and run"):
        fr.distributed.spark.evaluate_run(qrels, run, "RR")
    with pytest.raises(fr.InputError, match="duplicates must be"):
        fr.distributed.spark.evaluate_run(qrels, run, "RR", duplicates="first")
    with pytest.raises(fr.InputError, match='"score" is 0 columns'):
        fr.distributed.spark.evaluate_run(qrels, qrels, "RR")
    nothing = fr.distributed.spark.evaluate_run(qrels.limit(0), run, "RR")
    assert nothing.n_queries == 0


def test_tables_are_cut_between_queries() -> None:
    from fastrank.distributed.runs import whole_queries

    ids = ["a"] * 7 + ["b", "c", "c"] + ["d"] * 3
    batches = pa.table({"query_id": ids}).to_batches(max_chunksize=2)
    found = [table.column("query_id").to_pylist() for table in whole_queries(iter(batches), 3)]
    assert [query for table in found for query in table] == ids
    assert all(len({*one} & {*other}) == 0 for one, other in itertools.pairwise(found))
    assert len(found) >= 3


def test_the_examples_of_the_pages_print_what_they_say(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parent.parent
    monkeypatch.chdir(root)
    found = re.findall(r"^```pycon spark\n(.*?)^```$", (root / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for block in found:
        runner.run(doctest.DocTestParser().get_doctest(block, {"fr": fr, "spark": spark}, "README.md", "README.md", 0))
    assert runner.summarize(verbose=False).failed == 0

"""Evaluation by Ray has the bits of one machine, however the rows are cut into blocks."""

from __future__ import annotations

import doctest
import itertools
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from cluster_rows import METRICS, OPTIONS, TABLE, bits, by_id, judgements, plan_of

import fastrank as fr

ray = pytest.importorskip("ray", reason="needs Ray Data: pip install 'fastrank-metrics[ray]'")
data = pytest.importorskip("ray.data", reason="needs Ray Data: pip install 'fastrank-metrics[ray]'")

pytestmark = [pytest.mark.slow, pytest.mark.compiled]

evaluate, evaluate_run = fr.distributed.ray.evaluate, fr.distributed.ray.evaluate_run
WHOLE = fr.evaluate_table(TABLE, METRICS, **OPTIONS)


@pytest.fixture(scope="module", autouse=True)
def node() -> Iterator[None]:
    """A node of our own, unless there is one; its processes end with these tests."""
    if ray.is_initialized():
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        options = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 200_000_000}
        # A worker that has imported what it needs is kept for the next test.
        kept = {"num_workers_soft_limit": 6, "idle_worker_killing_time_threshold_ms": 60_000}
        ray.init(**options, log_to_driver=False, logging_level="error", _system_config=kept)
        data.DataContext.get_current().enable_progress_bars = False
        yield
        ray.shutdown()


def blocks(table: pa.Table, n: int) -> Any:
    """A dataset of so many blocks, cut anywhere."""
    cuts = np.linspace(0, len(table), n + 1).astype(int)
    return data.from_arrow([table.slice(first, last - first) for first, last in itertools.pairwise(cuts)])


def shuffled(table: pa.Table, seed: int = 0) -> pa.Table:
    return table.take(pa.array(np.random.default_rng(seed).permutation(len(table))))


@pytest.mark.parametrize("n_blocks", [1, 7, 64])
def test_blocks_that_cut_queries_in_two_are_evaluated_where_they_are(n_blocks: int, capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(blocks(TABLE, n_blocks), METRICS, **OPTIONS, explain=True)
    assert bits(result) == bits(WHOLE)
    assert f"evaluated by Ray in {n_blocks} blocks, plan in place" in plan_of(result)
    assert capsys.readouterr().out == "in place: blocks are evaluated as they come, and the queries over their edges joined.\n"


@pytest.mark.parametrize("n_blocks", [1, 7, 64])
def test_any_number_of_blocks_of_shuffled_rows_gives_the_same_bits(n_blocks: int, capsys: pytest.CaptureFixture[str]) -> None:
    result = evaluate(blocks(shuffled(TABLE, n_blocks), n_blocks), METRICS, **OPTIONS, explain=True)
    assert bits(result) == bits(WHOLE)
    if n_blocks > 1:  # one block holds whole queries, in whatever order
        why = 'shuffle: one sort by a hash of "query_id" (a query stands inside several blocks).'
        assert why in plan_of(result)
        assert capsys.readouterr().out.splitlines()[1] == why


def test_queries_in_no_order_that_stand_in_one_block_each_stay_where_they_are() -> None:
    of_block = np.unique(TABLE["query_id"].to_numpy(), return_inverse=True)[1] % 5
    parts = [shuffled(TABLE.take(pa.array(np.flatnonzero(of_block == part)))) for part in range(5)]
    result = evaluate(data.from_arrow(parts), METRICS, **OPTIONS)
    assert "5 blocks, plan in place" in plan_of(result)
    assert bits(result) == bits(WHOLE)


def test_one_query_that_stands_inside_two_blocks_is_found() -> None:
    query = TABLE["query_id"].to_pylist()
    inside = next(row for row in range(100, len(query)) if query[row] == query[row + 1])
    rest = [*range(inside), *range(inside + 1, len(query))]
    moved = TABLE.take(pa.array([*rest[:3500], inside, *rest[3500:]]))
    result = evaluate(blocks(moved, 4), METRICS, **OPTIONS)
    assert "plan shuffle" in plan_of(result)
    assert bits(result) == bits(WHOLE)


def test_a_query_at_the_edges_of_blocks_far_apart_is_joined() -> None:
    first = TABLE["query_id"].to_pylist().count(TABLE["query_id"][0].as_py())
    assert first > 1
    turned = pa.concat_tables([TABLE.slice(1), TABLE.slice(0, 1)])
    result = evaluate(blocks(turned, 4), METRICS, **OPTIONS)
    assert "plan in place" in plan_of(result)
    assert bits(result) == bits(WHOLE)


def test_empty_datasets_and_empty_blocks() -> None:
    empty = evaluate(data.from_arrow(TABLE.slice(0, 0)), "RR")
    assert (empty.n_queries, np.isnan(empty.mean()["RR"])) == (0, True)
    few = TABLE.slice(0, 40)
    with_empty = data.from_arrow([few.slice(0, 0), few.slice(0, 11), few.slice(0, 0), few.slice(11)])
    assert bits(evaluate(with_empty, METRICS, **OPTIONS)) == bits(fr.evaluate_table(few, METRICS, **OPTIONS))
    scattered = data.from_arrow([few.slice(0, 0), shuffled(few).slice(0, 20), shuffled(few).slice(20)])
    assert bits(evaluate(scattered, METRICS, **OPTIONS)) == bits(fr.evaluate_table(few, METRICS, **OPTIONS))
    nothing_left = blocks(TABLE, 3).map_batches(lambda table: table.slice(0, 0), batch_format="pyarrow")
    assert evaluate(nothing_left, "RR").n_queries == 0


def test_files_are_read_for_the_columns_asked_for(tmp_path: Path) -> None:
    for part in range(3):
        pq.write_table(
            TABLE.slice(part * 1334, 1334).append_column("other", pa.nulls(1334, pa.string())[: len(TABLE) - part * 1334]),
            tmp_path / f"{part}.parquet",
        )
    result = evaluate(data.read_parquet(str(tmp_path)), METRICS, **OPTIONS)
    assert bits(result) == bits(WHOLE)
    assert "plan in place" in plan_of(result)


def test_scores_that_are_computed_batch_by_batch_move_no_row() -> None:
    def scored(table: pa.Table) -> pa.Table:
        return table.append_column("score", pc.add(pc.multiply(table.column("label"), 2), table.column("weight")))

    table = TABLE.drop_columns("score")
    result = evaluate(blocks(table, 5).map_batches(scored, batch_size=100, batch_format="pyarrow"), METRICS, **OPTIONS)
    assert "plan in place" in plan_of(result)
    assert bits(result) == bits(fr.evaluate_table(scored(table), METRICS, **OPTIONS))


def test_a_killed_task_is_run_again_and_changes_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def kill_once(table: pa.Table) -> pa.Table:
        if "q00100" in table.column("query_id").to_pylist() and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return table

    for table in (TABLE, shuffled(TABLE)):
        ds = blocks(table, 4).map_batches(kill_once, batch_size=None, batch_format="pyarrow")
        assert bits(evaluate(ds, METRICS, **OPTIONS)) == bits(WHOLE)
        assert marker.exists()
        marker.unlink()


def test_ids_of_other_types_and_blocks_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    numbers = pa.array([int(name[1:]) - 300 for name in TABLE["query_id"].to_pylist()])
    table = TABLE.set_column(0, "the.query `id`", numbers)
    for given in (table, shuffled(table)):
        ds = data.from_pandas([pandas.DataFrame(part.to_pandas()) for part in (given.slice(0, 1500), given.slice(1500))])
        result = evaluate(ds, METRICS, query="the.query `id`", **OPTIONS)
        assert bits(result) == bits(fr.evaluate_table(table, METRICS, query="the.query `id`", **OPTIONS))
    encoded = shuffled(TABLE.set_column(0, "query_id", TABLE["query_id"].dictionary_encode()))
    assert bits(evaluate(blocks(encoded, 3), METRICS, **OPTIONS)) == bits(WHOLE)


def test_values_of_single_queries_as_a_dataset() -> None:
    ds = blocks(shuffled(TABLE), 4)
    found = fr.distributed.ray.evaluate_queries(ds, METRICS).take_all()
    assert list(found[0]) == ["query_id", *WHOLE.names]
    whole = fr.evaluate_table(TABLE, METRICS)
    assert {row["query_id"]: tuple(row[name] for name in whole.names) for row in found} == dict(
        zip(whole.query_ids.to_pylist(), map(tuple, whole.values.tolist()), strict=True)
    )
    assert len(found) == whole.n_queries
    assert fr.distributed.ray.evaluate_queries(data.from_arrow(TABLE.slice(0, 0)), METRICS).count() == 0


def test_what_is_wrong_is_one_line() -> None:
    ds = blocks(TABLE, 2)
    computed = ds.map_batches(lambda table: table, batch_format="pyarrow")
    for given in (ds, computed):
        with pytest.raises(fr.InputError, match=r'^label: there is no column "labels" in the dataset; the nearest name is "label"\.$'):
            evaluate(given, "RR", label="labels")
        with pytest.raises(fr.InputError, match=r'^label column "query_id" is .*string.*, not a number') as caught:
            evaluate(given, "RR", label="query_id")
        assert "\n" not in str(caught.value)
    with pytest.raises(fr.InputError, match="'nonsense' is not a known metric"):
        evaluate(ds, "nonsense")
    with pytest.raises(fr.InputError, match='weight column "score" must be constant within a query'):
        evaluate(blocks(TABLE.set_column(2, "score", pc.fill_null(TABLE["score"], 0)), 2), "RR", weight="score")
    with pytest.raises(fr.InputError, match=r"^ds must be a ray\.data\.Dataset, not pyarrow\.lib\.Table: ray\.data\.from_arrow"):
        evaluate(TABLE, "RR")
    unknown = pa.concat_tables([TABLE, TABLE.slice(0, 1).set_column(0, "query_id", pa.nulls(1, pa.string()))])
    for table in (unknown, shuffled(unknown)):
        with pytest.raises(fr.InputError, match=r'^query column "query_id" must not be null'):
            evaluate(blocks(table, 2), "RR")


def test_a_sort_that_does_not_sort_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        data.Dataset, "sort", lambda ds, key: ds.map_batches(lambda rows: rows.sort_by(key), batch_size=None, batch_format="pyarrow")
    )
    with pytest.raises(fr.InputError, match=r"^Ray's sort left rows of a query apart \(a query stands in several blocks\)"):
        evaluate(blocks(shuffled(TABLE), 2), "RR")


def test_a_missing_library_is_one_sentence_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.data", None)
    needs = r"^fastrank\.distributed\.ray needs Ray Data, which is not installed: pip install 'fastrank-metrics\[ray\]'\.$"
    for call in (lambda: evaluate(TABLE), lambda: evaluate_run(TABLE, TABLE), lambda: fr.distributed.ray.evaluate_queries(TABLE)):
        with pytest.raises(fr.InputError, match=needs):
            call()


# --- judgements and runs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [{}, {"convention": "fastrank", "depth": 5, "ties": "worst"}])
def test_a_run_has_the_bits_of_one_machine(rules: dict[str, Any]) -> None:
    qrels, run = judgements(0)
    if rules.get("convention"):
        qrels = qrels.filter(pc.field("label") >= 0)
    found = evaluate_run(blocks(qrels, 3), blocks(run, 4), "nDCG@10,AP,RR,Bpref", per_query=True, **rules)
    whole = fr.evaluate_run(qrels, run, "nDCG@10,AP,RR,Bpref", **rules)
    assert by_id(found) == by_id(whole)
    assert found.query_ids.to_pylist() == sorted(found.query_ids.to_pylist())
    assert found.moments == whole.moments
    assert [note for note in found.notes if note.kind != "regrouped"] == [note for note in whole.notes if note.kind != "regrouped"]


def test_ids_of_two_types_are_compared_by_their_text_and_duplicates_dropped() -> None:
    qrels = data.from_arrow(pa.table({"query_id": [7, 7, 8], "doc_id": [1, 2, 1], "label": [1, 0, 2]}))
    run = pa.table({"query_id": ["7", "7", "7", "8"], "doc_id": ["2", "1", "1", "3"], "score": [0.5, 0.1, 0.9, 1.0]})
    with pytest.raises(fr.InputError, match="twice"):
        evaluate_run(qrels, data.from_arrow(run), "RR")
    found = evaluate_run(qrels, data.from_arrow(run), "RR", duplicates="max")
    assert found.mean() == {"RR": 0.5}
    assert "1 rows dropped as duplicates; duplicates: max." in [note.message for note in found.notes]


def test_sides_that_have_no_query_in_common_and_wrong_rules() -> None:
    qrels = data.from_arrow(pa.table({"query_id": ["a"], "doc_id": ["x"], "label": [1]}))
    run = data.from_arrow(pa.table({"query_id": ["b"], "doc_id": ["x"], "score": [1.0]}))
    with pytest.raises(fr.InputError, match="no query is in both"):
        evaluate_run(qrels, run, "RR")
    with pytest.raises(fr.InputError, match="duplicates must be"):
        evaluate_run(qrels, run, "RR", duplicates="first")
    with pytest.raises(fr.InputError, match='"score" is 0 columns of run, not one; its columns are "query_id"'):
        evaluate_run(qrels, qrels, "RR")
    with pytest.raises(fr.InputError, match=r"^run is a dataset without blocks, so its columns are not known"):
        evaluate_run(qrels, data.from_items([]), "RR")
    with pytest.raises(fr.InputError, match=r"run must be a ray\.data\.Dataset"):
        evaluate_run(qrels, {}, "RR")
    assert evaluate_run(qrels.filter(lambda row: False), run, "RR").n_queries == 0


def test_the_examples_of_the_page_print_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parent.parent
    monkeypatch.chdir(root)
    found = re.findall(r"^```pycon ray\n(.*?)^```$", (root / "docs" / "scale.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for block in found:
        runner.run(doctest.DocTestParser().get_doctest(block, {"fr": fr}, "docs/scale.md", "docs/scale.md", 0))
    assert runner.summarize(verbose=False).failed == 0

"""Rows of scattered queries regrouped in bounded memory: the same bits as in memory, and nothing left behind."""

from __future__ import annotations

import datetime as dt
import errno
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank import cli
from fastrank.errors import InputError
from fastrank.io.columns import Columns
from fastrank.io.roles import Roles
from fastrank.io.sources import ROW, open_source
from fastrank.io.spill import STARTS, tables_by_query
from fastrank.io.tables import read_columns
from fastrank.io.temporary import TIMES_A_TABLE, TemporaryRows, bytes_in, bytes_of

ROLES = Roles("q", "y", ("s",))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files, which must be empty in the end."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def scattered(n_queries: int = 50, n_rows: int = 2000, seed: int = 1) -> pa.Table:
    """Rows of queries in no order at all."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "q": [f"q{query}" for query in random.integers(0, n_queries, n_rows)],
            "d": [f"d{row}" for row in range(n_rows)],
            "y": random.integers(0, 3, n_rows),
            "s": np.round(random.random(n_rows), 2),
        }
    )


def columns(path: Any, limit: int | None, **options: Any) -> list[Columns]:
    given = {} if limit is None else {"memory_limit": limit}
    return list(read_columns(path, query="q", label="y", scores=["s"], regroup=True, **given, **options))


def rows_of(batches: list[Columns]) -> tuple[list[Any], list[int], list[Any], list[Any], list[int], int]:
    """Everything that batches hold, whatever their bounds."""
    sizes = np.concatenate([np.diff(batch.offsets) for batch in batches])
    return (
        [query for batch in batches for query in batch.query_ids.to_pylist()],
        sizes.tolist(),
        [label for batch in batches for label in batch.labels.tolist()],
        [score for batch in batches for score in batch.scores["s"].tolist()],
        [batch.source_row(row) for batch in batches for row in range(int(batch.offsets[-1]))],
        sum(batch.regrouped for batch in batches),
    )


@settings(max_examples=100, deadline=None)
@given(
    ids=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 60)), min_size=1, max_size=200),
    text=st.booleans(),
    limit=st.integers(1, 20_000),
    row_group=st.integers(1, 50),
    rows_per_batch=st.integers(1, 100),
)
def test_any_limit_gives_what_memory_gives(ids: list[int], text: bool, limit: int, row_group: int, rows_per_batch: int) -> None:
    if len(set(ids)) == sum(a != b for a, b in zip(ids, [None, *ids[:-1]], strict=True)):
        ids = [*ids, -1, ids[0]]  # scattered, as everything that is spilled
    names = [f"q{query}" for query in ids] if text else ids
    table = pa.table({"q": names, "y": range(len(ids)), "s": [row / 2 for row in range(len(ids))]})
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/t.parquet"
        pq.write_table(table, path, row_group_size=row_group)
        assert rows_of(columns(path, limit, rows_per_batch=rows_per_batch)) == rows_of(columns(path, None))


IDS = {
    "bytes": pa.array([b"\xff", b"", b"\x00a"]),
    "dates": pa.array([dt.date(2024, 1, 2), dt.date(1960, 1, 1), dt.date(2024, 1, 1)]),
    "decimals": pa.array([Decimal("1.10"), Decimal("-3.00"), Decimal("1.01")]),
    "booleans": pa.array([True, False, True]),
    "unsigned": pa.array([2**64 - 1, 0, 2**63], pa.uint64()),
    "categories": pa.array(["b", "a", "c"]).dictionary_encode(),
    "views": pa.array(["b", "a", "c"], pa.string_view()),
    "long text": pa.array(["b", "ä", "z"], pa.large_string()),
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_every_type_are_dealt_out_by_value(kind: str, tmp_path: Path) -> None:
    places = np.random.default_rng(2).integers(0, 3, 400)
    ids = pa.chunked_array([IDS[kind]]).combine_chunks()
    taken = pa.concat_arrays([ids.slice(place, 1) for place in places.tolist()])
    table = pa.table({"q": taken, "y": np.arange(400), "s": np.zeros(400)})
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as file:
        file.write_table(table)
    found, expected = columns(tmp_path / "t.arrow", 2000), columns(tmp_path / "t.arrow", None)
    assert rows_of(found) == rows_of(expected)
    assert {batch.query_ids.type for batch in found} == {batch.query_ids.type for batch in expected}


def test_an_evaluation_has_the_bits_and_the_notes_of_memory(tmp_path: Path, temporary: Path) -> None:
    table = scattered()
    path = tmp_path / "t.parquet"
    pq.write_table(table.append_column("w", pc.cast(pc.utf8_length(table["q"]), pa.float64())), path, row_group_size=300)
    options: dict[str, Any] = {"query": "q", "label": "y", "score": "s", "doc": "d", "weight": "w", "by": "w", "ties": "docid"}
    expected = fr.evaluate_table(pq.read_table(path), **options)
    for limit in ("5kB", 20_000, None):
        found = fr.evaluate_table(path, **options, memory_limit=limit)
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.query_ids.equals(expected.query_ids)
        assert found.to_json() == expected.to_json()
        totals = fr.evaluate_table(path, **options, memory_limit=limit, per_query=False)
        assert totals.mean() == expected.mean()
        assert totals.notes == expected.notes
    assert [note.count for note in expected.notes if note.kind == "regrouped"] == [50]


def test_rows_after_a_filter_are_told_by_their_number_in_the_file(tmp_path: Path) -> None:
    table = scattered(5, 300)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    kept = pc.field("y") > 0
    found, expected = columns(tmp_path / "t.parquet", 500, filter=kept), columns(tmp_path / "t.parquet", None, filter=kept)
    assert rows_of(found) == rows_of(expected)
    bad = table.set_column(3, "s", pa.array([float("nan") if row == 277 else 1.0 for row in range(300)]))
    bad = bad.set_column(2, "y", pa.array(np.ones(300)))
    pq.write_table(bad, tmp_path / "bad.parquet", row_group_size=50)
    with pytest.raises(InputError, match=r"row 277"):
        fr.evaluate_table(tmp_path / "bad.parquet", query="q", label="y", score="s", memory_limit=500)


def test_tables_keep_to_the_limit_and_hold_whole_queries_in_order(tmp_path: Path) -> None:
    table = scattered(200, 20_000)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    limit = 80_000
    seen: list[str] = []
    for part in tables_by_query(open_source(tmp_path / "t.parquet", ROLES), "q", limit):
        assert part.nbytes <= limit // TIMES_A_TABLE
        assert np.all(np.diff(part[ROW].to_numpy()) > 0)
        ids = sorted(set(part["q"].to_pylist()))
        assert not seen or ids[0] > seen[-1]
        seen += ids
    assert seen == sorted(set(table["q"].to_pylist()))


def test_what_fits_the_limit_comes_as_it_is(tmp_path: Path) -> None:
    pq.write_table(scattered(), tmp_path / "t.parquet")
    [part] = tables_by_query(open_source(tmp_path / "t.parquet", ROLES), "q", 10**6)
    assert STARTS not in part.schema.names
    pq.write_table(scattered(1, 0), tmp_path / "none.parquet")
    [part] = tables_by_query(open_source(tmp_path / "none.parquet", ROLES), "q", 1)
    assert len(part) == 0


def test_a_query_longer_than_the_limit_is_a_table_of_its_own(tmp_path: Path) -> None:
    ids = ["a", "long", "b"] * 10 + ["long"] * 20_000 + ["c", "a"] * 500
    table = pa.table({"q": ids, "y": np.zeros(len(ids)), "s": np.zeros(len(ids))})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    parts = [set(part["q"].to_pylist()) for part in tables_by_query(open_source(tmp_path / "t.parquet", ROLES), "q", 40_000)]
    assert {"long"} in parts
    assert sorted(query for part in parts for query in part) == ["a", "b", "c", "long"]


def test_memory_does_not_grow_with_a_scattered_file(tmp_path: Path) -> None:
    def most_bytes_held(n_rows: int) -> int:
        random, path = np.random.default_rng(3), tmp_path / f"{n_rows}.parquet"
        with pq.ParquetWriter(path, pa.schema({"q": pa.int64(), "y": pa.int64(), "s": pa.float64()})) as writer:
            for _ in range(0, n_rows, 10_000):
                writer.write_table(pa.table({"q": random.integers(0, n_rows // 10, 10_000), "y": [0] * 10_000, "s": [0.0] * 10_000}))
        before, most = pa.total_allocated_bytes(), 0
        read = read_columns(path, query="q", label="y", scores=["s"], rows_per_batch=5_000, regroup=True, memory_limit=2_000_000)
        for _ in read:
            most = max(most, pa.total_allocated_bytes() - before)
        return most

    assert most_bytes_held(800_000) < 1.2 * most_bytes_held(200_000) < 3_000_000


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("order", ["sorted", "scattered"])
def test_a_stream_longer_than_the_limit_gives_the_same_bits(order: str, encode: bool, temporary: Path) -> None:
    table = scattered() if order == "scattered" else scattered().sort_by("q")
    batches = table.to_batches(max_chunksize=150)
    if encode:  # each batch with a dictionary of its own
        batches = [batch.set_column(0, "q", batch["q"].dictionary_encode()) for batch in batches]
    options: dict[str, Any] = {"query": "q", "label": "y", "score": "s", "filter": pc.field("y") > 0}
    expected = fr.evaluate_table(table, **options)
    for limit in (100, 20_000, None):
        stream = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        found = fr.evaluate_table(stream, **options, memory_limit=limit)
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.query_ids.to_pylist() == expected.query_ids.to_pylist()
        assert found.notes == expected.notes


def test_several_may_read_the_same_temporary_rows() -> None:
    table = scattered().sort_by("q").select(["q", "y"])
    rows = TemporaryRows("rows", table.schema)
    for start in range(0, len(table), 100):
        rows.add(table.slice(start, 100))
    one, other = rows.batches(["q", "y"], 60), rows.batches(["y"], 1000)
    pairs = list(zip(one, other, strict=False))
    assert len(pairs) == 20
    assert pa.Table.from_batches([both[1] for both in pairs])["y"].to_pylist() == table["y"].to_pylist()
    assert pa.Table.from_batches([both[0] for both in pairs])["q"].to_pylist() == table["q"].to_pylist()[:1000]
    assert rows.table() == table


def test_rows_whose_parts_cannot_be_measured_count_whole() -> None:
    class Rows:
        @property
        def nbytes(self) -> int:
            raise pa.ArrowTypeError("no byte ranges")

        def get_total_buffer_size(self) -> int:
            return 7

    assert bytes_in(Rows()) == 7


def test_memory_does_not_grow_with_a_stream() -> None:
    schema = pa.schema({"q": pa.int64(), "y": pa.int64(), "s": pa.float64(), "other": pa.float64()})

    def most_bytes_held(n_batches: int) -> int:
        def batches() -> Iterator[pa.RecordBatch]:
            for number in range(n_batches):
                ids = np.arange(number * 1000, (number + 1) * 1000).repeat(10)
                yield pa.record_batch([ids, np.zeros(10_000, np.int64), np.zeros(10_000), np.zeros(10_000)], schema=schema)

        before, most = pa.total_allocated_bytes(), 0
        stream = pa.RecordBatchReader.from_batches(schema, batches())
        for _ in read_columns(stream, query="q", label="y", scores=["s"], rows_per_batch=5_000, memory_limit=2_000_000):
            most = max(most, pa.total_allocated_bytes() - before)
        return most

    assert most_bytes_held(80) < 1.2 * most_bytes_held(20) < 3_000_000


# --- ways out -------------------------------------------------------------------------------------------------------------------


def spilling(tmp_path: Path) -> Iterator[Columns]:
    pq.write_table(scattered(), tmp_path / "t.parquet", row_group_size=300)
    return read_columns(tmp_path / "t.parquet", query="q", label="y", scores=["s"], regroup=True, memory_limit=5000)


def open_files() -> list[str]:
    """The files of this process that have no name any more."""
    links = [f"/proc/self/fd/{each}" for each in os.listdir("/proc/self/fd")]
    return [os.readlink(link) for link in links if os.path.lexists(link) and "deleted" in os.readlink(link)]


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
@pytest.mark.parametrize("leave", ["close", "error", "end"])
def test_temporary_files_are_given_back_on_every_way_out(leave: str, tmp_path: Path, temporary: Path) -> None:
    before = len(open_files())
    batches = spilling(tmp_path)
    next(batches)
    assert len(open_files()) > before
    assert list(temporary.iterdir()) == []  # they have no name while they are used
    if leave == "close":
        batches.close()
    elif leave == "error":
        with pytest.raises(KeyboardInterrupt):
            batches.throw(KeyboardInterrupt())
    else:
        list(batches)
    assert len(open_files()) == before


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_the_middle_gives_everything_back_before_it_is_caught(threads: int, tmp_path: Path, temporary: Path) -> None:
    pq.write_table(scattered(), tmp_path / "t.parquet", row_group_size=300)
    before = len(open_files())

    def stop(_n_rows: int) -> None:
        assert len(open_files()) > before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        fr.evaluate_table(tmp_path / "t.parquet", query="q", label="y", score="s", memory_limit=5000, progress=stop, threads=threads)
    assert caught.tb is not None  # which holds every frame
    assert len(open_files()) == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fastrank-reader")]


def test_an_error_while_dealing_out_gives_the_files_back(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = []

    def add(self: TemporaryRows, rows: pa.Table) -> None:
        added.append(self)
        if len(added) > 5:
            raise OSError(errno.ENOSPC, "full")

    batches = spilling(tmp_path)
    monkeypatch.setattr(TemporaryRows, "add", add)
    with pytest.raises(InputError, match="No space left on device"):
        list(batches)
    assert all(file._file.closed for file in added)


def test_a_full_disk_is_one_line_with_the_cure(tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_options: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    message = r"temporary file in .*temporary: No space left on device\. Give memory_limit= more, or set TMPDIR"
    with pytest.raises(InputError, match=message):
        list(spilling(tmp_path))


CHILD = """
import sys, time
import fastrank as fr

def wait(_n_rows):
    print("batch", flush=True)
    time.sleep(60)

print("ready", flush=True)
fr.evaluate_table(sys.argv[1], query="q", label="y", score="s", memory_limit=5000, progress=wait)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_file_outlives_a_process_that_is_stopped(ending: str, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    pq.write_table(scattered(), tmp_path / "t.parquet", row_group_size=300)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "t.parquet")]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(folder)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        assert child.stdout.readline() == b"batch\n"  # temporary files are in use now
        child.send_signal(getattr(signal, ending))
        child.communicate(timeout=60)
    assert child.returncode == (1 if ending == "SIGINT" else -getattr(signal, ending)) or child.returncode == -signal.SIGINT
    assert list(folder.iterdir()) == []


# --- limits ---------------------------------------------------------------------------------------------------------------------


def test_a_limit_is_a_number_of_bytes_with_or_without_a_unit() -> None:
    assert bytes_of(None) == 10**9
    assert bytes_of(np.int64(5)) == 5
    for text, size in {"500MB": 500e6, "500 mb": 500e6, "1.5g": 1.5e9, "2GiB": 2**31, "64kib": 2**16, "7": 7, "1TB": 1e12}.items():
        assert bytes_of(text) == size


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "", "much", "0", "500MB/s", "-5MB", b"5"])
def test_what_is_no_limit_is_an_error(wrong: Any) -> None:
    table = pa.table({"query_id": ["q"], "label": [1], "score": [1.0]})
    with pytest.raises(InputError, match=r'memory_limit must be a number of bytes from 1 up, or text such as "500MB", not'):
        fr.evaluate_table(table, memory_limit=wrong)


def test_the_command_takes_a_limit(tmp_path: Path) -> None:
    pq.write_table(scattered().rename_columns(["query_id", "d", "label", "score"]), tmp_path / "t.parquet", row_group_size=300)

    def output(*flags: str) -> str:
        done = CliRunner().invoke(
            cli.commands, ["evaluate", str(tmp_path / "t.parquet"), "--format", "json", *flags], catch_exceptions=False
        )
        return done.output

    assert output("--memory-limit", "5kB") == output()
    code, message = cli.run(["evaluate", str(tmp_path / "t.parquet"), "--memory-limit", "much"])
    assert code == 2
    assert "--memory-limit must be a number of bytes" in message
    code, message = cli.run(["evaluate", "--qrels", "q", "r", "--memory-limit", "5kB"])
    assert (code, "--memory-limit is for tables" in message) == (2, True)

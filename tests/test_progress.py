"""How far a long run has come: told on a terminal, after a second, with the time that is left where the rows are known."""

from __future__ import annotations

import functools
import gzip
import io
import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrank as fr
import fastrank.engine.tables
from fastrank.io.expecting import expected_rows
from fastrank.io.tables import read_columns
from fastrank.report import progress

SAMPLE = Path(__file__).parent.parent / "bench_data" / "sample.parquet"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_appears_on_a_terminal_when_a_run_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.Progress("reading big.parquet") as shown:
        shown.add(1000)
        for _ in range(500):
            if "reading big.parquet" in terminal.getvalue():
                break
            time.sleep(0.01)
        shown.add(2345)
    assert "reading big.parquet" in terminal.getvalue()
    assert "rows" in terminal.getvalue()


def test_the_time_left_is_told_where_the_rows_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    with progress.Progress("reading", expect=lambda: 4000) as shown:
        for _ in range(500):
            if "reading" in terminal.getvalue():
                break
            time.sleep(0.01)
        shown.add(1000)
        time.sleep(0.2)
    assert "25%" in terminal.getvalue()
    assert "1,000 rows" in terminal.getvalue()
    assert "/s" in terminal.getvalue()
    assert "left" in terminal.getvalue()


def test_rows_are_known_before_they_are_read(tmp_path: Path) -> None:
    assert expected_rows(SAMPLE) == pq.read_metadata(SAMPLE).num_rows
    shutil.copy(SAMPLE, tmp_path / "1.parquet")
    shutil.copy(SAMPLE, tmp_path / "2.parquet")
    assert expected_rows(tmp_path) == 2 * expected_rows(SAMPLE)
    lines = b"query_id,label,score\n" + b"q,1,0.125\n" * 300_000  # longer than what is looked at
    (tmp_path / "t.csv").write_bytes(lines)
    assert expected_rows(tmp_path / "t.csv") == pytest.approx(300_001, rel=0.01)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "t.arrow").write_bytes(b"ARROW1")
    (tmp_path / "one line").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe")
    for unknown in ("t.csv.gz", "t.arrow", "one line", "pipe", "missing", "1.parquet/x"):
        assert expected_rows(tmp_path / unknown) is None
    (tmp_path / "broken").write_bytes(b"PAR1")
    assert expected_rows(tmp_path / "broken") is None
    assert expected_rows(sys.stdin) is None


def test_rows_read_twice_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastrank.engine.tables, "read_columns", functools.partial(read_columns, rows_per_batch=20))
    table = pa.table({"query_id": [*range(100), 0], "label": np.ones(101, np.int8), "score": np.zeros(101, np.float32)})
    pq.write_table(table, tmp_path / "t.parquet")
    counts: list[int] = []
    result = fr.evaluate_table(tmp_path / "t.parquet", "RR", progress=counts.append, per_query=False)
    assert sum(counts) == 101
    assert min(counts) < 0
    assert [note.count for note in result.notes if note.kind == "regrouped"] == [1]


@pytest.mark.parametrize(("stream", "hidden"), [(io.StringIO, False), (Terminal, True), (Terminal, False)])
def test_progress_keeps_quiet_otherwise(stream: type[io.StringIO], hidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = stream()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.Progress("reading small.parquet", hidden=hidden) as shown:
        shown.add(1000)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("wrong", [True, False, 5])
def test_progress_is_a_function(wrong: Any) -> None:
    table = pa.table({"query_id": ["a"], "label": [1], "score": [0.5]})
    with pytest.raises(fr.InputError, match=f"^progress must be a function that takes the number of rows of a batch, or None, not {wrong}"):
        fr.evaluate_table(table, "RR", progress=wrong)

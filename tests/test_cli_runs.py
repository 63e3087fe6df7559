"""`fastrank evaluate --qrels`: TREC runs on the command line."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import fastrank as fr
from fastrank.cli import commands

SAMPLE = Path(__file__).parent.parent / "bench_data"
QRELS, RUN = SAMPLE / "sample.qrels", SAMPLE / "sample.run"


def call(*arguments: object) -> Result:
    return CliRunner().invoke(commands, ["evaluate", *map(str, arguments)])


def process(*arguments: object, feed: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "fastrank", "evaluate", *map(str, arguments)], input=feed, capture_output=True, check=False
    )


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    qrels, one, other = tmp_path / "qrels", tmp_path / "one.run", tmp_path / "other.run.gz"
    qrels.write_bytes(b"q1 0 a 1\nq1 0 b 0\nq2 0 a 2\n")
    one.write_bytes(b"q1 Q0 b 1 0.9 t\nq1 Q0 a 2 0.5 t\n")
    other.write_bytes(gzip.compress(b"q1 Q0 a 1 0.9 t\nq2 Q0 a 1 0.5 t\n"))
    return qrels, one, other


def test_the_values_are_those_of_evaluate_run() -> None:
    done = call("--qrels", QRELS, RUN, "-m", "map,ndcg_cut_10", "--format", "json")
    assert done.exit_code == 0, done.output
    shown = [metric["mean"] for metric in json.loads(done.stdout)["metrics"]]
    assert shown == list(fr.evaluate_run(QRELS, RUN, "map,ndcg_cut_10").mean().values())
    assert json.loads(done.stdout)["convention"]["name"] == "trec_eval"


def test_each_run_is_a_column_and_may_be_packed(files: tuple[Path, Path, Path]) -> None:
    qrels, one, other = files
    done = call("--qrels", qrels, one, other, "-m", "RR", "--format", "csv")
    assert done.exit_code == 0, done.output
    # q1: relevant at rank 2, then 1. q2: missing, then rank 1.
    rows = [line.split(",")[:3] for line in done.stdout.splitlines()[1:]]
    assert [(row[0], float(row[2])) for row in rows] == [("one", (1 / 2 + 0) / 2), ("other.run", (1 + 1) / 2)]


def test_missing_queries_count_or_are_left_out(files: tuple[Path, Path, Path]) -> None:
    qrels, one, _ = files
    for rule, mean in (("zero", 1 / 4), ("skip", 1 / 2)):
        done = call("--qrels", qrels, one, "-m", "RR", "--missing", rule, "--format", "json")
        assert json.loads(done.stdout)["metrics"][0]["mean"] == mean
        assert "missing_query" in [note["kind"] for note in json.loads(done.stdout)["notes"]]


def test_standard_input_is_a_run(files: tuple[Path, Path, Path]) -> None:
    qrels, one, _ = files
    done = process("--qrels", qrels, "-", "-m", "RR", "--format", "json", feed=one.read_bytes())
    assert json.loads(done.stdout)["metrics"][0]["mean"] == 1 / 4, done.stderr


def test_per_query_values_are_written(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    qrels, one, _ = files
    out = tmp_path / "out.csv"
    assert call("--qrels", qrels, one, "-m", "RR", "--per-query", out).exit_code == 0
    assert [line.split(",") for line in out.read_text().splitlines()] == [["query_id", "RR"], ["q1", "0.5"], ["q2", "0.0"]]


BAD_LINES = {
    b"q1 Q0 a 1 0.9\n": "line 1",
    b"q1 Q0 a 1 abc t\n": "line 1",
    b"q1 Q0 a 1 0.9 t\nq1 Q0 b 2 nan t\n": "line 2",
    b"q1 Q0 a 1 0.9 t\nq1 Q0 a 2 0.8 t\n": "line 2",
    b"x1 Q0 a 1 0.9 t\n": "no query is in both",
}


@pytest.mark.parametrize("run", BAD_LINES)
def test_a_bad_run_is_one_line_on_stderr_and_code_2(run: bytes, files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "bad.run"
    path.write_bytes(run)
    done = process("--qrels", files[0], path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"fastrank: ")
    assert BAD_LINES[run] in done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--qrels", QRELS, RUN, "--score", "x"), "--score is for tables, not with --qrels"),
        ((SAMPLE / "sample.parquet", "--missing", "skip"), "--missing needs --qrels"),
        (("--qrels", "-", "-"), "standard input (-) can be one file only"),
        (("--qrels", QRELS, RUN, "--missing", "drop"), "'drop' is not one of 'zero', 'skip'"),
    ],
)
def test_flags_of_the_other_kind_of_input_are_refused(arguments: tuple[object, ...], said: str) -> None:
    done = process(*arguments)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert done.stderr.count(b"\n") == 1

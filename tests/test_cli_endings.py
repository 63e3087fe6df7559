"""How the command line ends: exit codes, and what stands on stderr."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import ROOT, SAMPLE, environment, failure, means, process

import fastrank as fr
from fastrank import cli

# --- how a process ends ---------------------------------------------------------------------------------------------------------


def test_success_is_0_and_says_nothing_on_stderr() -> None:
    done = process("evaluate", SAMPLE, "-m", "RR")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("200 queries, convention fastrank\n")
    assert process("--version").stdout == f"fastrank {fr.__version__}\n"


def test_bad_input_is_2_and_one_line_on_stderr() -> None:
    done = process("evaluate", "/nowhere/x.parquet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "fastrank: /nowhere/x.parquet: No such file or directory\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
@pytest.mark.parametrize("arguments", [("evaluate", SAMPLE), ("--help",)])
def test_a_full_disk_is_2_and_one_line(arguments: tuple[object, ...]) -> None:
    with open("/dev/full", "w") as full:
        done = process(*arguments, stdout=full)
    assert (done.returncode, done.stderr) == (2, "fastrank: standard output: No space left on device.\n")


@pytest.mark.parametrize("arguments", [("evaluate", SAMPLE), ("metrics",), ("--help",), ("explain", "--help")])
def test_a_reader_that_goes_away_is_met_with_silence(arguments: tuple[object, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = process(*arguments, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [("evaluate", "-"), ("evaluate", "--qrels", "-", ROOT / "bench_data" / "sample.run")])
def test_a_closed_standard_input_is_2_and_one_line(arguments: tuple[object, ...]) -> None:
    command = [sys.executable, "-m", "fastrank", *map(str, arguments)]
    done = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command], env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    said = "standard input (-) is closed. Give a file, or a pipe to read from. See fastrank evaluate --help."
    assert done.stderr == f"fastrank: {said}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", ""), "Invalid value for 'PREDICTIONS...': the name of the file is empty. See fastrank evaluate --help."),
        (("evaluate", SAMPLE, "--per-query", ""), "Invalid value for '--per-query': the name of the file is empty."),
        (("evaluate", SAMPLE, "--memory-limit", "much"), '--memory-limit must be a number of bytes from 1 up, or text such as "500MB"'),
        (("compare", SAMPLE, "--resamples", "1", "--score", "score", "--score", "weight"), "--resamples must be a whole number from 100"),
        (("evaluate", "no\x1b[31m\nfile"), "no\\x1b[31m\\nfile: no file matches"),
        (("evaluate", SAMPLE, "--\x1b[31m"), "No such option '--\\x1b[31m'"),
    ],
)
def test_messages_name_flags_and_hold_nothing_that_steers_a_terminal(arguments: tuple[object, ...], message: str) -> None:
    code, said = cli.run([str(each) for each in arguments])
    assert code == 2
    assert said.startswith(message)
    assert said.isprintable()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "shift_jis"])
def test_letters_that_an_encoding_does_not_have_end_no_run(encoding: str) -> None:
    env = environment(PYTHONIOENCODING=encoding)
    for arguments, written in {
        ("metrics", "alpha_nDCG"): "Also called {α}_nDCG",
        ("explain", "RR", "--labels", "1,0", "--docs", "é,−"): "{−}",
    }.items():
        done = subprocess.run([sys.executable, "-m", "fastrank", *arguments], env=env, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        # click writes UTF-8 where the encoding is said to be ASCII.
        text = done.stdout.decode("utf-8" if encoding == "ascii" else encoding)
        near = {"α": "alpha", "−": "-"}
        assert any(written.format_map({sign: shown}) in text for sign, plain in near.items() if sign in written for shown in (sign, plain))


@pytest.mark.parametrize("content", [b"", b"# nothing here\n", b"\n"])
def test_a_trec_file_that_holds_nothing_is_2_and_one_line(content: bytes, tmp_path: Path) -> None:
    nothing, qrels, run = tmp_path / "nothing", ROOT / "bench_data" / "sample.qrels", ROOT / "bench_data" / "sample.run"
    nothing.write_bytes(content)
    for command in (["evaluate"], ["compare", run], ["explain", "RR", "--between", "trec_eval,lightgbm"]):
        assert failure(*command, "--qrels", qrels, nothing) == f"{nothing}: the file holds no ranking. Check the step that wrote it."
        assert failure(*command, "--qrels", nothing, run) == f"{nothing}: the file holds no judgements. Check the step that wrote it."
    expected = f"{nothing}: the file holds no judgements. Check the step that wrote it."
    assert failure("evaluate", "-m", "alpha_nDCG", "--qrels", nothing, run) == expected


def test_cures_are_flags_of_the_command(tmp_path: Path) -> None:
    qrels, run, twice = ROOT / "bench_data" / "sample.qrels", ROOT / "bench_data" / "sample.run", tmp_path / "twice.run"
    twice.write_text("q001 Q0 d 1 2 t\nq001 Q0 d 2 1 t\n")
    what = f"document 'd' stands twice in query 'q001' of {twice}: line 1 and line 2. Keep one of them"
    assert failure("evaluate", "--qrels", qrels, twice) == f"{what}, or say which with --duplicates."
    assert failure("compare", "--qrels", qrels, run, twice) == f"{what}, or say which with --duplicates."
    assert failure("explain", "RR", "--between", "trec_eval,lightgbm", "--qrels", qrels, twice) == f"{what}."
    said = "alpha_nDCG reads judgements by subtopic or judge: give a file of them with --qrels."
    assert failure("evaluate", SAMPLE, "-m", "alpha_nDCG") == said


def test_ctrl_c_before_a_command_begins_ends_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: Any, **_options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.commands, "main", interrupted)
    assert cli.run([]) == (130, "interrupted.")


def _opened_for_writing(pipe: Path, reader: subprocess.Popen[str]) -> int:
    while reader.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.01)
    pytest.fail(f"ended before it read {pipe}: {reader.communicate()[1]}")


def test_ctrl_c_in_the_middle_is_130_one_line_and_nothing_written(tmp_path: Path) -> None:
    rows, scores, out = tmp_path / "rows.letor", tmp_path / "scores", tmp_path / "out.parquet"
    rows.write_bytes(b"".join(b"%d qid:%d 1:0.5\n" % (row % 3, row // 100) for row in range(200_000)))
    os.mkfifo(scores)
    command = [sys.executable, "-m", "fastrank", "evaluate", str(rows), "--scores", str(scores), "--per-query", str(out)]
    running = subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    # There is a reader when the process has read the rows and waits for scores: it is in the middle, however fast the machine.
    with open(_opened_for_writing(scores, running), "wb") as feed:
        feed.write(b"0.5\n" * 1000)
        feed.flush()
        running.send_signal(signal.SIGINT)
        stdout, stderr = running.communicate(timeout=60)
    assert (running.returncode, stdout, stderr) == (130, "", "fastrank: interrupted.\n")
    assert sorted(tmp_path.iterdir()) == [rows, scores]


@pytest.mark.compiled
@pytest.mark.slow
def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(tmp_path: Path) -> None:
    # A copy of the package with a file where each cache folder would be: it cannot be written even by root.
    package = tmp_path / "fastrank"
    shutil.copytree(ROOT / "fastrank", package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    nowhere = str(package / "__init__.py" / "cache")
    env = environment(PYTHONPATH=str(tmp_path), NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere, PYTHONDONTWRITEBYTECODE="1")
    done = process("evaluate", SAMPLE, "-m", "P@5", "--format", "json", env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert means(done.stdout) == fr.evaluate_table(SAMPLE, "P@5").mean()


def test_a_bug_is_1_with_its_traceback() -> None:
    broken = "import sys, fastrank.cli as cli, fastrank.engine.worked as worked; worked.explain = None"
    code = f"{broken}; sys.argv[1:] = ['explain', 'RR', '--labels', '1']; cli.main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr

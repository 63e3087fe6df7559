"""The row of commands: judging a run from the shell, whole processes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator

from benchmarks.comparison import Call, Comparison
from benchmarks.data import Setting, TrecFiles, trec_files
from benchmarks.peers import TREC_METRICS, why_absent, why_no_program
from benchmarks.timing import process_seconds, run_python

IR_MEASURES = {"AP": "map", "nDCG": "ndcg", "RR": "recip_rank"}


def commands(setting: Setting) -> Iterator[Comparison]:
    """`fastrank trec_eval` in place of the C program, and of the command of ir_measures: from the shell to the printed means."""
    files = trec_files(setting, "tenth100", setting.queries(20_000))
    flags = [word for name in TREC_METRICS for word in ("-m", name)]
    ours = ["-m", "fastrank", "trec_eval", *flags, str(files.qrels), str(files.run)]
    theirs = ["trec_eval", *flags, str(files.qrels), str(files.run)]
    yield _compare(files, ours, "trec_eval", lambda: _seconds(theirs), lambda: _printed(theirs), why_no_program("trec_eval"))
    module = ["-m", "ir_measures", str(files.qrels), str(files.run), *IR_MEASURES]
    absent = why_absent("ir_measures")
    yield _compare(files, ours, "ir_measures", lambda: process_seconds(*module), lambda: run_python(*module), absent)


def _compare(
    files: TrecFiles, ours: list[str], name: str, seconds: Callable[[], float], printed: Callable[[], str], absent: str | None
) -> Comparison:
    def difference() -> float:
        one, other = _means(run_python(*ours)), _means(printed())
        return max(abs(one[metric] - other[metric]) for metric in TREC_METRICS)

    calls = (
        Call(f"fastrank trec_eval: {', '.join(TREC_METRICS)}, the whole process", lambda: process_seconds(*ours), reports=True),
        Call(f"{name}, the whole process", seconds, reports=True),
    )
    options = {"difference": difference, "tolerance": 1.5e-4}  # both print four decimals
    return Comparison(f"{files.n_lines:,} lines", files.n_lines, files.n_queries, *calls, absent=absent, **options)


def _means(printed: str) -> dict[str, float]:
    """The last field of each line, by the first."""
    fields = [line.split() for line in printed.splitlines()]
    return {IR_MEASURES.get(name, name): float(value) for name, *_, value in fields}


def _printed(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    _printed(command)
    return time.perf_counter() - began

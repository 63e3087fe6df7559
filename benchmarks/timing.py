"""Measuring: equality first, then both sides in turn, medians of several rounds; and the machine that it was done on."""

from __future__ import annotations

import contextlib
import gc
import importlib.metadata
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.comparison import Call, Comparison, Result

ROOT = Path(__file__).parent.parent
BYTE_CODE = ROOT / "bench_data" / "out" / "byte_code"
# A call that is over sooner than this is repeated within one round: the clock and the loop must not be part of the figure.
SHORTEST = 2e-3
MOST_ROUNDS = 101
LIBRARIES = (
    "numpy",
    "numba",
    "pyarrow",
    "lightgbm",
    "xgboost",
    "polars",
    "scikit-learn",
    "torch",
    "torchmetrics",
    "pytrec_eval-terrier",
    "ir_measures",
    "ranx",
    "clax-models",
    "pyspark",
)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector strikes whoever happens to allocate: keep it out of both sides."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def seconds_of(run: Callable[[], Any], number: int = 1) -> float:
    """Wall-clock seconds of one call, as the mean over `number` of them."""
    with _no_collection():
        began = time.perf_counter()
        for _ in range(number):
            run()
        return (time.perf_counter() - began) / number


def medians(calls: list[Call], *, rounds: int, seconds: float) -> tuple[list[float], int]:
    """The median figure of each call, and over how many rounds.

    The calls take turns, so that whatever else the machine does meets all of them. First runs, which compile and fill caches, are not
    counted: calls timed here run twice beforehand, and those that report their figure see to it themselves. There are `rounds` rounds at
    least, and more until `seconds` have passed.
    """
    numbers = [1 if call.reports else _number(call.run) for call in calls]
    figures: list[list[float]] = [[] for _ in calls]
    began = time.perf_counter()
    while len(figures[0]) < rounds or (time.perf_counter() - began < seconds and len(figures[0]) < MOST_ROUNDS):
        for call, number, found in zip(calls, numbers, figures, strict=True):
            found.append(call.run() if call.reports else seconds_of(call.run, number))
    return [statistics.median(found) for found in figures], len(figures[0])


def _number(run: Callable[[], Any]) -> int:
    """How often to repeat a call in one round."""
    run()
    return max(1, math.ceil(SHORTEST / max(seconds_of(run), 1e-9)))


def check(comparison: Comparison) -> Result | None:
    """The result of a comparison that must not be timed: the other side is absent, or both compute different things."""
    if comparison.absent is not None:
        return Result.of(comparison, "not available", comparison.absent)
    difference = comparison.difference()
    if not difference <= comparison.tolerance:  # a NaN is no agreement
        return Result.of(comparison, "unequal", f"the results differ by {difference:g}, more than {comparison.tolerance:g}")
    return None


def measure(comparison: Comparison, *, rounds: int, seconds: float) -> Result:
    """Check a comparison, then time it."""
    if (refused := check(comparison)) is not None:
        return refused
    ours, other, mark = comparison.ours, comparison.other, comparison.mark
    calls = [ours] if other is None else [ours, other]
    if comparison.once:
        figures, n_rounds = [call.run() if call.reports else seconds_of(call.run) for call in calls], 1
    else:
        figures, n_rounds = medians(calls, rounds=rounds, seconds=seconds)
    ours_figure, other_figure = figures[0], None if other is None else figures[1]
    reached = mark.reached(ours_figure, other_figure)
    found: dict[str, Any] = {"ours_figure": ours_figure, "other_figure": other_figure, "reached": reached, "verdict": mark.verdict(reached)}
    return Result.of(comparison, "measured", rounds=n_rounds, **found)


# --- processes of their own ------------------------------------------------------------------------------------------------------


def process_seconds(*arguments: str, kernels: Path | None = None) -> float:
    """Wall-clock seconds of a whole process of this Python, from start to end."""
    began = time.perf_counter()
    run_python(*arguments, kernels=kernels)
    return time.perf_counter() - began


def run_python(*arguments: str, kernels: Path | None = None) -> str:
    """What a process of this Python prints. `kernels`: where compiled kernels are cached.

    Byte code is kept, as that of an installed package is, whatever the environment says.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(BYTE_CODE)
    if kernels is not None:
        environment["NUMBA_CACHE_DIR"] = str(kernels)
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


def child(*arguments: str, kernels: Path | None = None) -> dict[str, Any]:
    """What a task of ``benchmarks.child`` found in a process of its own."""
    found: dict[str, Any] = json.loads(run_python("-m", "benchmarks.child", *arguments, kernels=kernels))
    return found


# --- the machine -----------------------------------------------------------------------------------------------------------------


def facts() -> dict[str, Any]:
    """The machine, the versions, and what else was going on: a loaded machine makes any figure worse than it is."""
    import fastrank

    versions = {"python": platform.python_version(), "fastrank": fastrank.__version__}
    for library in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[library] = importlib.metadata.version(library)
    return {
        "processor": processor(),
        "processors": n_processors(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None,
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": versions,
    }


def n_processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """The processor's name."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()

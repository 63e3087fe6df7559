"""What a command loads before it can begin."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SAMPLE = "bench_data/sample"
# Each takes longer to import than the sample takes to evaluate, and none is needed for it.
NEEDLESS = {"scipy.linalg", "scipy.special", "pandas", "polars", "matplotlib", "sklearn", "torch", "pyarrow.dataset", "pyarrow.orc"}
CHILD = """
import sys
import fastrank.cli

try:
    fastrank.cli.main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


def loaded(*arguments: str) -> set[str]:
    """The modules that a command imports."""
    done = subprocess.run([sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", f"{SAMPLE}.parquet", "-m", "nDCG@10,RR,AP@100"),
        ("evaluate", f"{SAMPLE}.letor", "--scores", f"{SAMPLE}.scores", "--format", "json"),
        ("evaluate", "--qrels", f"{SAMPLE}.qrels", f"{SAMPLE}.run"),
    ],
)
def test_evaluating_one_file_loads_nothing_that_it_does_not_need(arguments: tuple[str, ...]) -> None:
    found = loaded(*arguments)
    assert {"numpy", "numba", "pyarrow"} <= found
    assert NEEDLESS & found == set()


def test_what_was_hidden_from_numba_is_there_for_those_who_need_it() -> None:
    child = "import sys; sys.argv[1:] = ['metrics', 'RR']; import fastrank.cli\ntry: fastrank.cli.main()\nexcept SystemExit: pass\n"
    child += "import numba.np.arraymath, scipy.linalg; print(scipy.linalg.det([[2.0]]))"
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "2.0"

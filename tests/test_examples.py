"""The examples of the Markdown pages run and print what they say.

Those in docstrings are doctests: ``pytest --doctest-modules fastrank``.
"""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
# Pages whose examples need libraries that not every environment of the tests has.
NEEDS = {"docs/networks.md": ("torch", "jax", "lightgbm", "sklearn")}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

pytestmark = pytest.mark.repository


def blocks(page: str, *languages: str) -> Iterator[tuple[int, str]]:
    """Line number and text of each code block in one of the languages."""
    text = (ROOT / page).read_text()
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        if match[1] in languages:
            yield text.count("\n", 0, match.start(2)) + 1, match[2]


def commands(page: str) -> Iterator[tuple[int, str, str | None]]:
    """Line, command and expected output of each call of ``fastrank``.

    Output stands in ``console`` blocks, after a line that begins with ``$``.
    """
    for line, block in blocks(page, "sh", "bash"):
        for place, text in enumerate(block.splitlines()):
            if text.startswith("fastrank "):
                yield line + place, text, None
    for line, block in blocks(page, "console"):
        for match in re.finditer(r"^\$ (fastrank .*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
            yield line + block.count("\n", 0, match.start()), match[1], match[2]


@pytest.mark.parametrize("page", PAGES)
def test_python_examples_run_and_print_what_they_say(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in NEEDS.get(page, ()):
        pytest.importorskip(library, reason=f"{library} is not installed")
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}  # later blocks go on from earlier ones, as a reader would
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for line, block in blocks(page, "pycon"):
        example = doctest.DocTestParser().get_doctest(block, names, page, page, line - 1)
        runner.run(example, clear_globs=False)
        names.update(example.globs)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_python_programs_run(page: str) -> None:
    # In a process of their own: a program may define metrics, which would be known to every later test.
    program = "\n".join(block for _, block in blocks(page, "python"))
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


COMMANDS = [pytest.param(text, output, id=f"{page}:{line}") for page in PAGES for line, text, output in commands(page)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where commands run: the sample is there, and what one command writes the next one may read."""
    place = tmp_path_factory.mktemp("examples")
    (place / "bench_data").symlink_to(ROOT / "bench_data")
    return place


@pytest.mark.parametrize(("text", "expected"), COMMANDS)
def test_command_line_examples_run_and_print_what_they_say(text: str, expected: str | None, folder: Path) -> None:
    call = [sys.executable, "-c", "from fastrank.cli import main; main()", *shlex.split(text, comments=True)[1:]]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    if expected:
        assert doctest.OutputChecker().check_output(expected, done.stdout, FLAGS), done.stdout

"""The command line, run in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from fastrank import cli

ROOT = Path(__file__).parent.parent


SAMPLE = ROOT / "bench_data" / "sample.parquet"


LETOR = ROOT / "bench_data" / "sample.letor"


COMMANDS = ("evaluate", "explain", "metrics", "conventions", "warmup")


def invoke(*arguments: object) -> Result:
    """A command in this process; what it prints."""
    result = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(cli.commands, [str(each) for each in arguments])
    assert result.exit_code == 0, result.exception
    return result


def failure(*arguments: object) -> str:
    """The line on stderr of a command that must end with exit code 2."""
    code, message = cli.run([str(each) for each in arguments])
    assert code == 2
    assert message
    return message


def environment(**changes: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"} | changes


def process(*arguments: object, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "fastrank", *map(str, arguments)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(command, env=env or environment(), text=True, timeout=300, check=False, **streams)


def means(output: str) -> dict[str, float]:
    return {metric["name"]: metric["mean"] for metric in json.loads(output)["metrics"]}

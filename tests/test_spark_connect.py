"""Spark Connect gives the bits that classic Spark gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_spark import pytestmark as pytestmark

HERE = Path(__file__).parent


def test_every_plan_runs_by_spark_connect() -> None:
    for library in ("grpc", "grpc_status", "pandas"):
        pytest.importorskip(library, reason="needs Spark Connect: pip install 'pyspark[connect]'")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])}
    done = subprocess.run([sys.executable, HERE / "spark_connect.py"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == ""

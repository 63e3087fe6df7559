"""Every public name is there, is what it says, and still is after every module of the package has been imported."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastrank as fr

LABELS, SCORES, OFFSETS = [1, 0, 0, 2, 0], [0.3, 0.2, 0.1, 0.5, 0.9], [0, 3, 5]
QRELS, RUN = {"q": {"a": 1, "b": 0}}, {"q": {"a": 0.5, "b": 0.7}}


def results() -> dict[str, fr.Evaluation]:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (60, 8))
    return {name: fr.evaluate(labels, generator.random((60, 8)), metrics="nDCG@5,RR") for name in ("one", "other", "third")}


def saved() -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.parquet"
        fr.evaluate(LABELS, SCORES, OFFSETS).save(path)
        return fr.load(path)


def letor() -> Any:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows"
        path.write_text("1 qid:1 1:0.5\n0 qid:1 1:0.2\n")
        return fr.read_letor(path)


def table() -> pa.Table:
    return pa.table({"query_id": ["a", "a", "b"], "label": [0, 1, 1], "score": [0.7, 0.5, 0.1]})


# One call of each public function and class. A name that is not here is called as a metric of arrays.
CALLS: dict[str, Callable[[], Any]] = {
    "Comparison": lambda: fr.compare(results(), primary="nDCG@5"),
    "Convention": lambda: fr.Convention("own", "this test"),
    "Evaluation": lambda: fr.evaluate(LABELS, SCORES, OFFSETS),
    "Evaluator": lambda: fr.Evaluator("RR").result(),
    "Explanation": lambda: fr.explain_difference(LABELS, SCORES, OFFSETS, metric="nDCG", between=("lightgbm", "sklearn")),
    "GroupedQrels": lambda: fr.GroupedQrels.from_dicts({"q": {"1": {"a": 1}}}),
    "InputError": lambda: fr.InputError("one line"),
    "Interval": lambda: fr.confidence_interval(results()["one"]["RR"]),
    "LabelledQueries": lambda: fr.LabelledQueries(LABELS, OFFSETS).evaluate(SCORES),
    "Metric": lambda: fr.parse_metric("RR"),
    "Note": lambda: fr.Note("kind", 1, "one thing."),
    "Qrels": lambda: fr.Qrels.read(b"q 0 a 1\n"),
    "Run": lambda: fr.Run.read(b"q Q0 a 1 0.5 tag\n"),
    "Worked": lambda: fr.explain("nDCG@2", [1, 0]),
    "compare": lambda: fr.compare(results(), primary="nDCG@5"),
    "confidence_interval": lambda: fr.confidence_interval(results()["one"]["RR"]),
    "discriminative_power": lambda: fr.discriminative_power(results()),
    "evaluate": lambda: fr.evaluate(LABELS, SCORES, OFFSETS),
    "evaluate_ids": lambda: fr.evaluate_ids([["a", "b"]], [{"b"}]),
    "evaluate_run": lambda: fr.evaluate_run(QRELS, RUN),
    "evaluate_table": lambda: fr.evaluate_table(table()),
    "explain_difference": lambda: fr.explain_difference(LABELS, SCORES, OFFSETS, metric="nDCG", between=("lightgbm", "sklearn")),
    "explain": lambda: fr.explain("nDCG@2", [1, 0]),
    "kendall_tau": lambda: fr.kendall_tau([1, 2, 3], [1, 3, 2]),
    "list_metrics": lambda: fr.list_metrics(),
    "load": saved,
    "parse_metric": lambda: fr.parse_metric("nDCG@10"),
    "parse_metrics": lambda: fr.parse_metrics("nDCG@10,RR"),
    "power": lambda: fr.power(100, 0.1, 0.3),
    "queries_needed": lambda: fr.queries_needed(0.1, 0.3),
    "read_letor": letor,
    "smallest_difference": lambda: fr.smallest_difference(100, 0.3),
    "tau_ap": lambda: fr.tau_ap([1, 2, 3], [1, 3, 2]),
}
VALUES = {"analysis", "clicks", "compat", "conventions", "distributed", "metrics", "reference", "training"}


def test_every_name_is_listed_and_defined() -> None:
    assert set(fr.__all__) <= set(dir(fr))
    assert all(getattr(fr, name) is not None for name in fr.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing_of_the_kind'"):
        fr.nothing_of_the_kind  # noqa: B018  (looking it up is the test)


def test_every_function_can_be_called_twice_after_every_module_was_imported() -> None:
    for module in pkgutil.walk_packages(fr.__path__, "fastrank."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:  # a module of an optional library says what to install
                assert "pip install 'fastrank-metrics[" in str(error), module.name  # noqa: PT017
    for name in fr.__all__:
        if name in VALUES:
            continue
        call = CALLS.get(name)
        for _ in range(2):
            made = call() if call else getattr(fr, name)(LABELS, SCORES, OFFSETS)
            assert made is not None, name


def test_importing_the_package_loads_no_module_of_it_but_what_finds_names() -> None:
    program = "import sys, fastrank; print(sorted(name for name in sys.modules if name.startswith('fastrank.')))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['fastrank._lazy']\n"

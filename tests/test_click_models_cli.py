"""`fastrank clicks fit` and `simulate`: what they print, write and refuse."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import click_models
import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from fastrank import cli
from fastrank.cli.click_models import MODELS
from fastrank.clicks import ClickLog, ClickModel, ctr, fit, score, simulate
from fastrank.clicks.models import NEEDS
from fastrank.clicks.simulation import as_table


@pytest.fixture(scope="module")
def log() -> ClickLog:
    """Sessions of up to five documents, whose ids are text."""
    drawn = click_models.draw_log(np.random.default_rng(21), 60, weighted=True)
    docs = [f"d{i}" for i in drawn.docs.take(drawn.pair_doc[drawn.qd]).to_pylist()]
    queries = [f"q{i}" for i in drawn.queries.take(drawn.query).to_pylist()]
    return ClickLog(drawn.offsets, docs, drawn.click, queries, weight=drawn.weights)


@pytest.fixture
def path(log: ClickLog, tmp_path: Path) -> Path:
    """The log as a file."""
    pq.write_table(as_table(log), tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def invoke(*arguments: object) -> str:
    """What a command prints."""
    words = ["clicks", *map(str, arguments), "--weight", "weight"]
    result = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(cli.commands, words)
    assert result.exit_code == 0, result.exception
    return result.output


def failure(*arguments: object) -> str:
    """The line on stderr of a command that must end with exit code 2."""
    code, message = cli.run(["clicks", *map(str, arguments)])
    assert code == 2
    assert "\n" not in message
    return message


def read(path: Path) -> ClickLog:
    """The log that a command reads."""
    return ClickLog.from_table(path, weight="weight")


def test_the_models_of_the_flag_are_those_of_the_library() -> None:
    assert tuple(NEEDS) == MODELS


def test_a_log_written_as_a_table_is_read_as_it_was(path: Path, log: ClickLog) -> None:
    again = read(path)
    kept = np.diff(log.offsets) > 0
    assert np.diff(again.offsets).tolist() == np.diff(log.offsets)[kept].tolist()
    assert again.click.tolist() == log.click.tolist()
    assert again.weights.tolist() == log.weights[kept].tolist()
    assert again.docs.take(again.pair_doc[again.qd]).to_pylist() == log.docs.take(log.pair_doc[log.qd]).to_pylist()
    without = as_table(ClickLog([0, 1], [7], [1]))
    assert without.to_pylist() == [{"session_id": 0, "doc_id": 7, "position": 1, "click": 1}]


@pytest.mark.parametrize("model", MODELS)
def test_fit_prints_what_the_library_finds(path: Path, model: str) -> None:
    found = json.loads(invoke("fit", path, "--model", model, "--format", "json"))
    expected = fit(read(path), model)
    assert found["model"] == model
    assert found["score"]["ll_doc"] == score(expected, read(path)).ll_doc
    assert found["log_posterior"] == expected.objective[-1]
    for kind in ("exam", "cont"):
        values = getattr(expected, kind)
        assert np.array_equal(np.array(found[kind], float), np.array(values, float), equal_nan=True)


def test_fit_shows_tables_with_the_parameters_of_ranks(path: Path) -> None:
    shown = invoke("fit", path, "--model", "ubm")
    assert "click model ubm" in shown
    exam = fit(read(path), "ubm").exam
    assert exam is not None
    assert all(f"{exam[k, k]:.4f}" in shown and f"{exam[k, 0]:.4f}" in shown for k in range(1, 5))
    assert "perplexity given the clicks above" in shown
    assert "iterations" in shown
    assert "not converged" in invoke("fit", path, "--max-iter", "2", "--no-leaps").lower()
    assert "0.7500" in invoke("fit", path, "--model", "dbn", "--gamma", "0.75")
    assert "documents with parameters" not in invoke("fit", path, "--model", "gctr")
    assert "of the rows had a probability outside" in invoke("fit", path, "--model", "cm")


def test_fit_writes_the_model_and_its_ranking_and_scores_another_log(path: Path, tmp_path: Path) -> None:
    model, run, other = (tmp_path / name for name in ("model.parquet", "run.parquet", "other.parquet"))
    lists = ClickLog([0, 2, 3], ["d1", "new", "d2"], [1, 0, 0], ["q1", "q2"], weight=[1, 2])
    pq.write_table(as_table(lists), other)
    words = ("--model", "sdbn", "--prior", 2, 3, "--save", model, "--scores", run, "--test", other, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(invoke("fit", path, *words))))
    expected = fit(read(path), "sdbn", prior=(2, 3))
    assert np.array_equal(ClickModel.load(model).sat, expected.sat)  # type: ignore[arg-type]
    assert pq.read_table(run)["score"].to_pylist() == expected.scores()["score"].to_pylist()
    assert [float(row["cond_ppl"]) for row in rows] == score(expected, lists).cond_ppl_at.tolist()
    assert "the model has no parameter for" in invoke("fit", path, "--test", other)


def test_simulate_prints_rates_and_writes_a_log(path: Path, tmp_path: Path) -> None:
    model, drawn = tmp_path / "model.parquet", tmp_path / "drawn.parquet"
    invoke("fit", path, "--model", "dbn", "--save", model)
    found = json.loads(invoke("simulate", path, "--model", model, "--seed", 5, "--save", drawn, "--format", "json"))
    clicks = simulate(read(path), ClickModel.load(model), 5)
    assert found["clicks"] == ctr(read(path).with_clicks(clicks)).clicks.tolist()
    assert read(drawn).click.tolist() == clicks.tolist()
    assert "click-through rate by position" in invoke("simulate", path, "--model", model)


def test_results_show_themselves(path: Path) -> None:
    log = read(path)
    model = fit(log, "dcm")
    assert "how well the clicks are foretold" in repr(score(model, log))
    assert "<table" in model.summary(log)._repr_html_()
    by_hand = ClickModel("pbm", attr=[0.5], exam=[0.9, 0.8], docs=["d1"]).summary(log)
    assert "log posterior" not in repr(by_hand)
    assert by_hand.to_arrow()["exam"].to_pylist()[:2] == [0.9, 0.8]
    assert np.isnan(by_hand.columns()["exam"][2:]).all()
    assert ClickModel("ubm", attr=[], exam=np.zeros((0, 1)), docs=[]).summary(log).columns()["exam, no click"].size == log.n_positions


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "LOG", "--model", "tcm"), "tcm"),
        (("fit", "LOG", "--gamma", "0.5"), "--gamma is the continuation of dbn"),
        (("fit", "LOG", "--prior", "-1", "1"), "prior must be two pseudo-counts"),
        (("fit", "LOG", "--tol", "2"), "tol must be a number"),
        (("fit", "LOG", "--save", "no/folder/model.parquet"), "there is no directory"),
        (("fit", "LOG", "--model", "gctr", "--scores", "run.parquet"), "gctr has no parameters of documents"),
        (("fit", "nothing.parquet"), "nothing.parquet"),
        (("simulate", "LOG"), "--model"),
        (("simulate", "LOG", "--model", "LOG"), "no saved click model"),
        (("simulate", "LOG", "--model", "LOG", "--save", "no/folder/log.parquet"), "there is no directory"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(path: Path, monkeypatch: Any, words: tuple[str, ...], message: str) -> None:
    monkeypatch.chdir(path.parent)
    assert message in failure(*(str(path) if word == "LOG" else word for word in words))
    assert not (path.parent / "run.parquet").exists()

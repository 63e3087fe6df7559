"""`fastrank clicks` and how results of click logs are shown: tables, JSON, CSV, figures and messages."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.cli import run
from fastrank.clicks import (
    ClickLog,
    ctr,
    evaluate,
    interleave_score,
    propensity,
    rank_in,
    relevance,
    session_metrics,
    swap_sample,
    swap_strata,
)
from fastrank.evaluation import to_json
from fastrank.report.clicked import report_of, text

LISTS = str(Path(__file__).parent.parent / "bench_data" / "clicks.parquet")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A log of a swap experiment and a run, in files."""
    folder = tmp_path_factory.mktemp("clicks")
    generator = np.random.default_rng(0)
    n, theta, relevant = 900, np.array([1, 0.6, 0.3]), np.array([0.5, 0.4, 0.3])
    docs = np.tile(np.arange(3), (n, 1))
    second = np.where(np.arange(n) % 2, 2, 3)
    for s in np.flatnonzero(generator.random(n) < 0.5):
        docs[s, [0, second[s] - 1]] = docs[s, [second[s] - 1, 0]]
    click = generator.random((n, 3)) < relevant[docs] * theta
    session = np.repeat(np.arange(n), 3)
    rows = {
        "session_id": session,
        "query_id": np.char.add("q", (session % 3).astype(str)),
        "doc_id": np.char.add("d", docs.ravel().astype(str)),
        "position": np.tile([1, 2, 3], n),
        "click": click.ravel().astype(int),
        "user": session % 40,
        "first": np.ones(3 * n, int),
        "second": np.repeat(second, 3),
        "device": np.where(session % 3 == 0, "phone", "desk"),
    }
    pq.write_table(pa.table(rows), folder / "log.parquet")
    run_file = folder / "new.run"
    run_file.write_text("".join(f"q{q} Q0 d{d} 0 {d} new\n" for q in range(3) for d in range(3)))
    return {"log": str(folder / "log.parquet"), "run": str(run_file), "folder": str(folder)}


def fastrank(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code, message = run(["clicks", *arguments])
    assert (code, message) == (0, "")
    return capsys.readouterr().out


def log_of(files: dict[str, str], **options: Any) -> ClickLog:
    return ClickLog.from_table(files["log"], **options)


def test_rates(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(files)
    assert fastrank(capsys, "ctr", files["log"]) == text(ctr(log)) + "\n"
    assert json.loads(fastrank(capsys, "ctr", files["log"], "--by", "doc", "--format", "json")) == json.loads(ctr(log, "doc").to_json())
    rows = list(csv.DictReader(io.StringIO(fastrank(capsys, "ctr", files["log"], "--by", "pair", "--format", "csv"))))
    assert [float(row["value"]) for row in rows] == ctr(log, "pair").value.tolist()
    assert {row["query"] for row in rows} == {"q0", "q1", "q2"}
    assert fastrank(capsys, "ctr", files["log"], "--format", "markdown", "--confidence", ".9").startswith(
        "**click-through rate by position**"
    )


def test_propensities_of_an_experiment_and_without_one(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    log = log_of(files, cluster="user", columns=["first", "second", "device"])
    pair = np.stack([log.columns["first"].to_numpy(), log.columns["second"].to_numpy()], axis=1)
    swapped = propensity(log, *swap_strata(log, pair), segment="device")
    printed = fastrank(
        capsys, "propensity", files["log"], "--swap", "first", "second", "--segment", "device", "--cluster", "user", "--format", "json"
    )
    assert json.loads(printed) == json.loads(swapped.to_json())
    harvested = fastrank(capsys, "propensity", files["log"], "--anchor", "2", "--format", "tsv")
    assert float(harvested.splitlines()[2].split("\t")[1]) == 1
    shuffled = fastrank(capsys, "propensity", files["log"], "--shuffled")
    assert "1 stratum, 900 clusters" in shuffled
    assert "Examination falls with the rank about as (1 / rank) **" in shuffled


def test_relevance_by_every_kind_of_propensities(files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = log_of(files)
    saved = tmp_path / "theta.json"
    saved.write_text(fastrank(capsys, "propensity", files["log"], "--format", "json"))
    given = {"1,0.5,0.25": [1, 0.5, 0.25], "eta:1": [1, 1 / 2, 1 / 3], "harvest": propensity(log), str(saved): propensity(log)}
    for word, theta in given.items():
        printed = fastrank(capsys, "relevance", files["log"], "--theta", word, "--prior", "1", "5", "--format", "json")
        assert json.loads(printed) == json.loads(relevance(log, theta, prior=(1, 5)).to_json())
    assert "(sum c + a) / (sum theta + b), a = 1, b = 5" in fastrank(
        capsys, "relevance", files["log"], "--theta", "1", "--extend", "--prior", "1", "5"
    )


def test_the_value_of_a_run(files: dict[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = log_of(files)
    placed = rank_in(log, [0, 3, 6, 9], ["d2", "d1", "d0"] * 3, ["q0", "q1", "q2"], k=2)
    for options in (["--estimator", "snips"], ["--estimator", "dr", "--exposure", "policy"], ["--clip", "0.7", "--metric", "rr_sum"]):
        named = {options[i].lstrip("-"): options[i + 1] for i in range(0, len(options), 2)}
        how: dict[str, Any] = named | ({"clip": float(named["clip"])} if "clip" in named else {})
        expected = evaluate(log, propensity(log), placed, k=2, sweep=(0, 1), **how)
        arguments = ["--theta", "harvest", "--run", files["run"], "-k", "2", "--sweep", "0,1", "--threads", "2", *options]
        assert json.loads(fastrank(capsys, "evaluate", files["log"], *arguments, "--format", "json")) == json.loads(expected.to_json())
        printed = fastrank(capsys, "evaluate", files["log"], *arguments)
        assert printed == text(expected) + "\n"
        assert " ".join(printed.split()).startswith(expected.verdict)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ctr", "nothing.parquet"], "nothing.parquet: "),
        (["ctr", "LOG", "--click", "tap"], 'click: there is no column "tap"'),
        (["ctr", "LOG", "--plot", "curve.txt"], "--plot curve.txt: give the file a name that ends in .png, .svg or .pdf."),
        (["propensity", "LOG", "--swap", "first", "second", "--shuffled"], "--swap and --shuffled are two experiments: give one."),
        (["propensity", "LOG", "--anchor", "9"], "anchor must be a position from 1 to 3"),
        (["relevance", "LOG", "--theta", "curve"], "--theta curve: there is no such file, and these are no numbers."),
        (["relevance", "LOG", "--theta", "eta:x"], "--theta eta:x: there is no such file"),
        (["relevance", "LOG", "--theta", "1"], "take the last one for all below with --extend."),
        (["ctr", "LOG", "--query", "words"], 'query: there is no column "words"'),
        (["ctr", "LOG", "--cluster", "visit"], 'cluster: there is no column "visit"'),
        (["propensity", "LOG", "--swap", "one", "first"], 'column: there is no column "one"'),
        (["ctr", "LISTS", "--query", "words"], 'query: there is no column "words"'),
        (["ctr", "LISTS", "--cluster", "visit"], 'cluster: there is no column "visit"'),
        (["ctr", "LISTS", "--session", "visit"], "--session names a column of tables with a row per document shown"),
        (["ctr", ""], "Invalid value for 'LOG': the name of the file is empty."),
        (["relevance", "LOG", "--theta", "LOG"], "this is not what Propensity.to_json writes"),
        (["evaluate", "LOG", "--theta", "eta:1", "--run", "RUN", "--metric", "mrr"], "mrr cannot be told from clicks"),
        (["evaluate", "LOG", "--theta", "eta:1", "--run", "RUN", "--clip", "-1"], "clip must be a propensity above 0"),
        (["evaluate", "LOG", "--theta", "eta:1"], "Missing option '--run'"),
    ],
)
def test_mistakes_end_with_one_line(files: dict[str, str], arguments: list[str], message: str) -> None:
    code, said = run(["clicks", *({"LOG": files["log"], "RUN": files["run"], "LISTS": LISTS}.get(word, word) for word in arguments)])
    assert code == 2
    assert message in said
    assert "\n" not in said


def test_a_file_of_other_json_is_no_propensities(files: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    code, said = run(["clicks", "relevance", files["log"], "--theta", str(path)])
    assert code == 2
    assert said.startswith(f"{path}: this is not what Propensity.to_json writes: there is no 'theta'. fastrank clicks propensity ")


def test_a_cutoff_beyond_every_list_is_the_whole_list(files: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["evaluate", files["log"], "--theta", "eta:1", "--run", files["run"], "--format", "json", "-k"]
    found = [json.loads(fastrank(capsys, *asked, k)) for k in ("1000000", "9" * 30)]
    assert found[0]["sweep"]["value"] == found[1]["sweep"]["value"]
    assert found[0]["diff"] == found[1]["diff"]


@pytest.mark.parametrize("arguments", [["clicks"], ["clicks", "--help"]])
def test_help_lists_the_commands_in_their_order(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == (0, "")
    printed = capsys.readouterr().out
    places = [printed.index(f"\n  {name} ") for name in ("ctr", "propensity", "relevance", "evaluate")]
    assert places == sorted(places)


# --- results ------------------------------------------------------------------------------------------------------------------------


def results(files: dict[str, str]) -> list[Any]:
    log = log_of(files, columns=["device"])
    placed = rank_in(log, [0, 3], ["d2", "d1", "d0"], ["q0"])
    return [
        ctr(log),
        ctr(log, "doc"),
        ctr(log, "all"),
        propensity(log),
        propensity(log, segment="device"),
        relevance(log, [1, 0.5, 0.3]),
        evaluate(log, [1, 0.5, 0.3], placed),
        evaluate(log, [1, 0.5, 0.3], placed, sweep=()),
        evaluate(log, None, placed, alpha=[1, 0.5, 0.3]),
        interleave_score(log.position % 3, log),
        swap_sample(),
        swap_sample(0.2, (0.1, 0.05)),
    ]


def test_every_result_shows_itself_and_can_be_written_down(files: dict[str, str]) -> None:
    for found in results(files):
        assert len(repr(found).splitlines()) > 2
        assert max(map(len, repr(found).splitlines())) <= 80
        assert found._repr_html_().startswith("<")
        table = found.to_arrow()
        for name, column in found.columns().items():
            values = column.to_pylist() if hasattr(column, "to_pylist") else column.tolist()
            assert to_json(table.column(name).to_pylist()) == to_json(values)
        record = json.loads(found.to_json())
        rest = json.loads(table.schema.metadata[b"fastrank"])
        assert rest == {name: record[name] for name in rest}


def test_long_results_are_cut_and_say_so() -> None:
    log = ClickLog(np.arange(41), [f"d{i}" for i in range(40)], np.arange(40) % 2)
    for found in (ctr(log, "doc"), ctr(log, "pair"), relevance(log, [1])):
        assert "20 of 40" in repr(found)
        assert found.to_arrow().num_rows == 40


def test_nothing_else_has_a_report() -> None:
    with pytest.raises(TypeError, match="no report of int"):
        report_of(3)


def test_figures_show_curves_with_intervals(files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="figures need matplotlib")
    for found in results(files)[:9]:
        if not hasattr(found, "plot"):
            continue
        for dark in (False, True):
            (panel,) = found.plot(dark=dark).axes
            assert panel.collections, "intervals"
            assert panel.get_title(loc="left")
    log = log_of(files)
    (panel,) = propensity(log).plot().axes
    assert panel.lines[0].get_ydata().tolist() == propensity(log).theta.tolist()
    turned = ClickLog([0, 3, 6, 9], list("abcabcabc"), [1, 0, 0, 0, 0, 1, 1, 0, 0])
    found = evaluate(turned, [1, 1 / 2, 1 / 3], [3, 2, 1] * 3)
    (panel,) = found.plot().axes
    assert panel.lines[-1].get_xdata()[0] == found.crossover
    for command, name in (("ctr", "curve.png"), ("propensity", "curve.svg")):
        fastrank(capsys, command, files["log"], "--plot", str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000


def test_the_metrics_of_sessions_go_into_intervals(files: dict[str, str]) -> None:
    log = log_of(files)
    interval = fr.confidence_interval(session_metrics(log)["n_clicks"], method="t")
    assert interval.estimate == pytest.approx(log.click.sum() / log.n_sessions)

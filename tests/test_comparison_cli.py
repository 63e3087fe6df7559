"""`fastrank compare`: runs, tables and per-query files; what it prints, writes and refuses."""

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
from click.testing import CliRunner, Result

import fastrank as fr
from fastrank import cli
from fastrank.cli import comparing
from fastrank.comparison import corrections, intervals, significance
from fastrank.report import compared

# Hundreds of resamples of a table are too many for plain Python.
pytestmark = pytest.mark.compiled
FAST = ("--resamples", "200", "--no-progress")


def invoke(*arguments: object) -> Result:
    """A command in this process; what it prints."""
    result = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(cli.commands, ["compare", *map(str, arguments), *FAST])
    assert result.exit_code == 0, result.exception
    return result


def failure(*arguments: object) -> str:
    """The line on stderr of a command that must end with exit code 2."""
    code, message = cli.run(["compare", *map(str, arguments), *FAST])
    assert code == 2
    assert "\n" not in message
    return message


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same two systems as runs with qrels, as a table and as two tables."""
    place = tmp_path_factory.mktemp("compare")
    rng = np.random.default_rng(0)
    n_queries, n = 40, 12
    labels = rng.integers(0, 3, n_queries * n)
    query, doc = np.repeat(np.arange(n_queries), n), np.tile(np.arange(n), n_queries)
    scores = {"old": 0.2 * labels + rng.normal(size=len(labels)), "new": 0.9 * labels + rng.normal(size=len(labels))}
    (place / "qrels.txt").write_text("".join(f"{q} 0 d{d} {label}\n" for q, d, label in zip(query, doc, labels, strict=True)))
    for name, each in scores.items():
        lines = (f"{q} Q0 d{d} 1 {score!r} {name}\n" for q, d, score in zip(query, doc, each.tolist(), strict=True))
        (place / f"{name}.run").write_text("".join(lines))
    ids = pa.array([f"q{q}" for q in query])
    table = {"query_id": ids, "doc_id": doc, "label": labels, "part": pa.array(["x", "y"]).take(pa.array(query % 2)), "user": query // 4}
    pq.write_table(pa.table(table | scores), place / "both.parquet")
    for name, each in scores.items():
        pq.write_table(pa.table(table | {"score": each}), place / f"{name}.parquet")
    return place


def test_the_choices_are_those_of_the_library() -> None:
    assert set(comparing.TESTS) == set(significance.TESTS)
    assert comparing.CORRECTIONS == corrections.CORRECTIONS
    assert set(comparing.INTERVALS) == set(intervals.METHODS)
    assert comparing.FORMATS == compared.FORMS


def test_runs_are_compared_under_trec_evals_convention(folder: Path) -> None:
    shown = invoke("--qrels", folder / "qrels.txt", folder / "old.run", folder / "new.run", "--primary", "nDCG@10").output
    assert shown.startswith("new is better than old on nDCG@10")
    assert "convention trec_eval" in shown
    assert "gain='linear'" in shown
    told = json.loads(
        invoke("--qrels", folder / "qrels.txt", folder / "old.run", folder / "new.run", "--primary", "P@3", "--format", "json").output
    )
    assert [each["name"] for each in told["metrics"]] == ["P@3", "nDCG@10", "RR", "AP"]
    qrels = fr.Qrels.read(folder / "qrels.txt")
    results = [fr.evaluate_run(qrels, folder / f"{name}.run", "P@3").mean()["P@3"] for name in ("old", "new")]
    assert (told["differences"][0]["mean_baseline"], told["differences"][0]["mean_system"]) == pytest.approx(results)


def test_tables_are_compared_by_file_and_by_column(folder: Path) -> None:
    options = ("--primary", "nDCG@5", "-m", "nDCG@5,RR", "--by", "part", "--format", "json")
    by_file = json.loads(invoke(folder / "old.parquet", folder / "new.parquet", *options).output)
    by_column = json.loads(invoke(folder / "both.parquet", "--score", "old", "--score", "new", *options).output)
    assert by_file == by_column
    assert by_file["systems"] == ["old", "new"]
    assert [each["value"] for each in by_file["slices"]] == ["x", "y"]
    both = json.loads(invoke(folder / "both.parquet", folder / "old.parquet", "--score", "label", "--format", "json", "-m", "RR").output)
    assert both["systems"] == ["both", "old"]


def test_files_with_several_columns_are_named_by_both(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "again.parquet").write_bytes((folder / "both.parquet").read_bytes())
    told = json.loads(
        invoke(
            folder / "both.parquet", tmp_path / "again.parquet", "--score", "old", "--score", "new", "-m", "RR", "--format", "json"
        ).output
    )
    assert told["systems"] == ["both old", "both new", "again old", "again new"]


def test_clusters_and_settings_reach_the_library(folder: Path) -> None:
    options = ("--test", "t", "--interval", "t", "--correction", "bh", "--confidence", "0.9", "--seed", "3", "--baseline", "new")
    shown = invoke(folder / "old.parquet", folder / "new.parquet", "--cluster", "user", *options, "--format", "json")
    told = json.loads(shown.output)
    assert told["cluster"] == "user"
    assert (told["test"], told["interval"], told["correction"], told["confidence"], told["seed"]) == ("t", "t", "bh", 0.9, 3)
    assert told["differences"][0]["baseline"] == "new"
    assert told["slices"] == []


def test_per_query_files_give_the_same_as_their_tables(folder: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        cli.commands,
        ["evaluate", str(folder / "both.parquet"), "--score", "old", "--score", "new", "-m", "nDCG@5,RR", "--by", "part",
         "--per-query", str(tmp_path / "q.parquet")],
    )  # fmt: skip
    assert result.exit_code == 0
    files = (tmp_path / "q.old.parquet", tmp_path / "q.new.parquet")
    told = json.loads(invoke(*files, "--primary", "RR", "--format", "json").output)
    again = json.loads(
        invoke(
            folder / "both.parquet",
            "--score",
            "old",
            "--score",
            "new",
            "-m",
            "nDCG@5,RR",
            "--by",
            "part",
            "--primary",
            "RR",
            "--format",
            "json",
        ).output
    )
    numbers = ("difference", "ratio", "p", "won", "verdict")
    assert [[each[name] for name in numbers] for each in told["differences"]] == [
        [each[name] for name in numbers] for each in again["differences"]
    ]
    assert len(told["slices"]) == len(again["slices"]) == 2
    assert "no column user" in failure(*files, "--cluster", "user").replace("have no column", "no column") or "column user" in failure(
        *files, "--by", "user"
    )
    assert "give it to evaluate" in failure(*files, "-m", "RR")
    assert "is no saved Evaluation" in failure(files[0], folder / "old.parquet")


@pytest.mark.parametrize("form", comparing.FORMATS)
def test_every_format_is_printed(folder: Path, form: str) -> None:
    result = invoke(folder / "old.parquet", folder / "new.parquet", "-m", "RR,nDCG@5", "--format", form)
    assert "better" in result.stdout
    if form == "csv":
        assert {row["metric"] for row in csv.DictReader(io.StringIO(result.stdout))} == {"RR", "nDCG@5"}
        assert "note: No metric was named" in result.stderr


@pytest.mark.parametrize("kind", ["runs", "tables", "per-query"])
def test_a_page_is_written_and_links_to_worked_queries_where_there_are_documents(folder: Path, tmp_path: Path, kind: str) -> None:
    page = tmp_path / "page.html"
    sources: dict[str, tuple[Any, ...]] = {
        "runs": ("--qrels", folder / "qrels.txt", folder / "old.run", folder / "new.run", "--primary", "nDCG@10"),
        "tables": (folder / "old.parquet", folder / "new.parquet", "--primary", "nDCG@10", "--doc", "doc_id"),
        "per-query": (tmp_path / "old.parquet", tmp_path / "new.parquet", "--primary", "RR"),
    }
    for name in ("old", "new"):
        fr.evaluate_table(folder / f"{name}.parquet", "RR").save(tmp_path / f"{name}.parquet")
    invoke(*sources[kind], "--html", page)
    text = page.read_text(encoding="utf-8")
    assert "<h1>new against old</h1>" in text
    assert ("IDCG@10" in text) is (kind != "per-query")
    assert ("<details id='q-" in text) is (kind != "per-query")


def test_metrics_without_bounds_are_compared_all_the_same(folder: Path) -> None:
    assert not fr.metrics.infAP.has_bounds
    assert invoke("--qrels", folder / "qrels.txt", folder / "old.run", folder / "new.run", "-m", "RR,infAP", "--primary", "RR").output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("old.parquet",), "needs two systems"),
        (("old.parquet", "old.parquet"), "given twice"),
        (("old.parquet", "new.parquet", "--missing", "skip"), "--missing belongs to --qrels"),
        (("old.parquet", "new.parquet", "--primary", "nonsense@3"), "nonsense"),
        (("--qrels", "qrels.txt", "old.run", "new.run", "--score", "x"), "--score names a column"),
        (("--qrels", "qrels.txt", "old.run", "new.run", "--by", "x"), "--by and --cluster name a column"),
        (("--qrels", "qrels.txt", "old.run", "absent.run"), "absent.run"),
        (("old.parquet", "new.parquet", "--html", "no/such/folder/page.html"), "no directory"),
        (("old.parquet", "absent.parquet"), "absent.parquet"),
        (("old.parquet", "new.parquet", "--by", "nothing"), "nothing"),
        (("old.parquet", "new.parquet", "--cluster", "label"), "label"),
    ],
)
def test_bad_input_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str) -> None:
    monkeypatch.chdir(folder)
    assert words in failure(*arguments)


def test_a_run_of_coarse_scores_is_told_what_its_ties_could_move(tmp_path: Path) -> None:
    sample = Path(__file__).parent.parent / "bench_data" / "sample"
    coarse = tmp_path / "coarse.run"
    fields = [line.split() for line in sample.with_suffix(".run").read_text().splitlines()]
    coarse.write_text("".join(f"{q} {q0} {doc} {rank} {int(float(score) * 4) / 4} {tag}\n" for q, q0, doc, rank, score, tag in fields))
    files = ("--qrels", sample.with_suffix(".qrels"), coarse, sample.with_suffix(".run"))
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        cli.commands, ["compare", *map(str, files), "--primary", "nDCG@10", "--html", str(tmp_path / "page.html")]
    )
    assert result.exit_code == 0
    assert result.stdout.startswith(
        "sample and coarse are not told apart on nDCG@10: 0.7805 against 0.7717, +0.0088 (95% interval +0.0001 to +0.0187), p = 0.059 by a "
        "permutation test on 200 queries.\n"
        "These queries would show a difference of 0.0132 with 80% power; one of 0.0088 takes about 450 queries."
    )
    assert "by their order alone sample minus coarse in nDCG@10 lies between -0.0199 and +0.0301" in result.stdout
    assert "<h1>sample against coarse</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")

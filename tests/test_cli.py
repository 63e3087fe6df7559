"""The command line: what it prints."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_line import COMMANDS, LETOR, SAMPLE, environment, failure, invoke, means, process

import fastrank as fr
from fastrank import cli
from fastrank.cli.evaluating import FORMATS, file_names
from fastrank.cli.options import complete_convention, complete_metric
from fastrank.report import text


@pytest.fixture
def systems(tmp_path: Path) -> Path:
    """The sample with a second score column, a text column and one text label."""
    table = pq.read_table(SAMPLE)
    noise = np.random.default_rng(0).normal(size=len(table)).astype(np.float32)
    table = table.append_column("noisy", pa.array(table["score"].to_numpy() + noise)).append_column("text", pa.array(["x"] * len(table)))
    path = tmp_path / "two systems.parquet"
    pq.write_table(table, path)
    return path


# --- evaluate -------------------------------------------------------------------------------------------------------------------


def test_evaluate_prints_means_counts_formulas_and_notes() -> None:
    output = invoke("evaluate", SAMPLE, "-m", "nDCG@10,RR", "-m", "AP@100").output
    result = fr.evaluate_table(SAMPLE, "nDCG@10,RR,AP@100")
    for row in result.summary().rows:
        line = next(line for line in output.splitlines() if line.startswith(row.name))
        expected = (f"{row.mean:.4f}", f"[{row.low:.4f},", f"{row.high:.4f}]", str(row.n_queries), str(row.n_no_relevant))
        assert tuple(line.split()[1:]) == expected
    flat = " ".join(output.split())
    assert "(2^label - 1) / log2(r + 1)" in flat
    assert all(f"note: {note.message}" in flat for note in result.notes)
    assert max(map(len, output.splitlines())) <= 80


def test_the_default_metrics_are_those_of_the_library() -> None:
    assert means(invoke("evaluate", SAMPLE, "--format", "json").output) == fr.evaluate_table(SAMPLE).mean()


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        (["--convention", "lightgbm"], {"convention": "lightgbm"}),
        (["--ties", "worst"], {"ties": "worst"}),
        (["--ties", "docid", "--doc", "doc_id"], {"ties": "docid", "doc": "doc_id"}),
        (["--no-relevant", "skip"], {"no_relevant": "skip"}),
        (["--depth", "3"], {"depth": 3}),
        (["--judged-only"], {"judged_only": True}),
        (["--weight", "weight"], {"weight": "weight"}),
        (["--query", "doc_id"], {"query": "doc_id"}),
        (["--label", "score", "--score", "label"], {"label": "score", "score": "label"}),
        (["--threads", "1"], {"threads": 1}),
    ],
)
def test_each_flag_reaches_the_library(flags: list[str], options: dict[str, Any], tmp_path: Path) -> None:
    table = pq.read_table(SAMPLE)
    labels = table["label"].to_pylist()
    unjudged = pa.array([None if place % 7 == 0 else label for place, label in enumerate(labels)], pa.int8())
    positive = pa.array(np.abs(table["score"].to_numpy()))
    table = table.set_column(table.column_names.index("label"), "label", unjudged)
    path = tmp_path / "input.parquet"
    pq.write_table(table.set_column(table.column_names.index("score"), "score", positive), path)
    names = "nDCG(gain='linear')@5,RR"
    assert (
        means(invoke("evaluate", path, "-m", names, "--format", "json", *flags).output) == fr.evaluate_table(path, names, **options).mean()
    )


def test_confidence_widens_the_interval_and_is_named() -> None:
    assert "99% interval" in invoke("evaluate", SAMPLE, "--confidence", "0.99").output


def test_slices_and_bounds_are_shown() -> None:
    output = invoke("evaluate", SAMPLE, "--by", "segment", "--bounds", "-m", "nDCG@10").output
    assert "by segment" in output
    assert "tie bounds" in " ".join(output.split())
    assert {"head", "tail"} <= set(output.split())


def test_the_formats_are_those_of_the_report() -> None:
    assert FORMATS == text.FORMS


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_holds_the_mean_and_the_formula(form: str) -> None:
    result = fr.evaluate_table(SAMPLE, "RR")
    assert invoke("evaluate", SAMPLE, "-m", "RR", "--format", form).stdout.rstrip("\n") == text.table(result, form)


@pytest.mark.parametrize(("form", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_notes_go_to_stderr_where_the_format_has_no_place_for_them(form: str, delimiter: str) -> None:
    result = invoke("evaluate", SAMPLE, "-m", "RR", "--format", form)
    (record,) = csv.DictReader(io.StringIO(result.stdout), delimiter=delimiter)
    evaluation = fr.evaluate_table(SAMPLE, "RR")
    assert float(record["mean"]) == evaluation.mean()["RR"]
    assert result.stderr.splitlines() == [f"note: {note.message}" for note in evaluation.notes]


def test_several_score_columns_stand_side_by_side(systems: Path) -> None:
    output = json.loads(invoke("evaluate", systems, "--score", "score", "--score", "noisy", "--format", "json").output)
    expected = fr.evaluate_table(systems, score=["score", "noisy"])
    assert isinstance(expected, dict)
    assert {name: [row["mean"] for row in each["metrics"]] for name, each in output["systems"].items()} == {
        name: list(each.mean().values()) for name, each in expected.items()
    }


def test_several_files_stand_side_by_side_under_their_names(systems: Path) -> None:
    output = json.loads(invoke("evaluate", SAMPLE, systems, "--format", "json").output)
    assert list(output["systems"]) == ["sample", "two systems"]
    both = json.loads(invoke("evaluate", systems, SAMPLE, "--score", "score", "--score", "label", "--format", "json").output)
    assert list(both["systems"]) == ["two systems score", "two systems label", "sample score", "sample label"]


def test_names_of_files_are_as_short_as_they_can_be() -> None:
    assert file_names(("a/x.parquet", "a/y.parquet")) == ["x", "y"]
    assert file_names(("x.parquet", "x.letor")) == ["x.parquet", "x.letor"]
    assert file_names(("a/x.parquet", "b/x.parquet")) == ["a/x.parquet", "b/x.parquet"]


def test_letor_text_is_judged_with_its_scores() -> None:
    output = invoke("evaluate", LETOR, "--scores", LETOR.with_suffix(".scores"), "--format", "json").output
    assert means(output) == fr.evaluate_table(SAMPLE).mean()


def test_letor_text_without_qid_takes_its_group_sizes(tmp_path: Path) -> None:
    bare = tmp_path / "bare.letor"
    bare.write_text(
        "".join(" ".join(word for word in line.split() if not word.startswith("qid:")) + "\n" for line in LETOR.read_text().splitlines())
    )
    flags = ("--scores", LETOR.with_suffix(".scores"), "--groups", LETOR.with_suffix(".group"), "--format", "json")
    assert means(invoke("evaluate", bare, *flags).output) == fr.evaluate_table(SAMPLE).mean()


# --- values of single queries ---------------------------------------------------------------------------------------------------


def test_the_values_of_single_queries_are_written(tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("something older")
    invoke("evaluate", SAMPLE, "--by", "segment", "-m", "RR,AP", "--per-query", out)
    expected = fr.evaluate_table(SAMPLE, "RR,AP", by="segment")
    assert isinstance(expected, fr.Evaluation)
    written = pq.read_table(out)
    assert written.column_names == ["query_id", "segment", "RR", "AP"]
    assert written["AP"].to_numpy().tobytes() == expected["AP"].tobytes()
    assert json.loads(written.schema.metadata[b"fastrank"])["metrics"][1]["full_name"] == str(expected.metrics[1])
    assert list(tmp_path.iterdir()) == [out]


def test_several_systems_are_written_to_a_file_each(tmp_path: Path, systems: Path) -> None:
    invoke("evaluate", SAMPLE, systems, "--per-query", tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.glob("out*")) == ["out.sample.parquet", "out.two_systems.parquet"]


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (KeyboardInterrupt(), (130, "interrupted.")),
        (OSError(28, "No space left on device"), (2, "out.parquet cannot be written: No space left on device.")),
    ],
)
def test_what_is_written_is_written_whole_or_not_at_all(
    error: BaseException, ending: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_table: pa.Table, file: Any, **_options: Any) -> None:
        file.write(b"half")
        raise error

    out = tmp_path / "out.parquet"
    out.write_text("something older")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pq, "write_table", half)
    assert cli.run(["evaluate", str(SAMPLE), "--per-query", out.name]) == ending
    assert out.read_text() == "something older"
    assert list(tmp_path.iterdir()) == [out]


def test_a_place_that_cannot_be_written_is_named_before_the_run(tmp_path: Path) -> None:
    # The input is missing as well: the output is looked at first.
    assert f"{tmp_path}" in failure("evaluate", "/nowhere/x.parquet", "--per-query", tmp_path / "missing" / "out.parquet")


# --- bad input ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--score", "scor"], 'score: there is no column "scor" in {path}; the nearest names are "score", "noisy".'),
        (["--score", "text"], 'score column "text" is string, not a number: cast it to float64, or name another column.'),
        (["--score", "score", "--score", "score"], "score must name at least one column, each once, not ('score', 'score')."),
        (["--query", "score"], 'query column "score" is float, and floats are not ids: cast it to integer or string.'),
        (["--ties", "docid"], "ties='docid' orders equal scores by document id: give --doc, or another rule with --ties."),
        (["-m", ","], "metrics ',' hold an empty name. Remove the stray comma."),
        (["--scores", "x"], "--scores and --groups belong to LETOR text, and this is none. For a table name its column with --score."),
        (["--depth", "0"], "Invalid value for '--depth': 0 is not in the range x>=1. See fastrank evaluate --help."),
        (["--confidence", "95"], "Invalid value for '--confidence': 95.0 is not in the range 0<x<1. See fastrank evaluate --help."),
        (["{path}"], "{path} is given twice. Give each file once. See fastrank evaluate --help."),
        (
            ["other", "--scores", "x"],
            "--scores belongs to one LETOR file, not to 2. Evaluate them one by one. See fastrank evaluate --help.",
        ),
    ],
)
def test_bad_flags_end_in_one_line(flags: list[str], message: str, systems: Path) -> None:
    said = failure("evaluate", systems, *(flag.format(path=systems) for flag in flags))
    # Near names depend on what else is there: the start is enough.
    expected = message.format(path=systems)
    assert said == expected or (flags == ["--score", "scor"] and said.startswith(expected.partition("; ")[0]) and '"score"' in said)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["evaluate", SAMPLE, "--convention", "lightgmb"], ["convention must be one of", "not 'lightgmb'", "Did you mean 'lightgbm'?"]),
        (["evaluate", SAMPLE, "-m", "ndgc@10"], ["'ndgc@10' is not a known metric. Did you mean nDCG"]),
        (["evaluate", SAMPLE, "--ties", "wurst"], ["ties must be one of", "'wurst'", "Did you mean 'worst'?"]),
        (["evaluate", SAMPLE, "--no-relevant", "nil"], ["--no-relevant must be one of", "'nil'"]),
        (["evaluate", SAMPLE, "--bond"], ["No such option", "--bond", "See fastrank evaluate --help."]),
        (["evaluate"], ["Missing argument 'PREDICTIONS...'"]),
        (["evaluate", "/nowhere/x.parquet"], ["/nowhere/x.parquet", "No such file or directory"]),
        (["evaluate", LETOR], ["holds no scores", "--scores"]),
        (["evaluate", LETOR, "--scores", LETOR.with_suffix(".group")], ["200 scores", "give one score a row"]),
        (["evaluate", LETOR, "--scores", LETOR.with_suffix(".scores"), "--by", "x"], ["LETOR text has no columns to name"]),
        (["evalute"], ["No such command 'evalute'", "See fastrank --help."]),
        (["metrics", "ndgc"], ["'ndgc' is not a known metric", "nDCG"]),
        (["conventions", "xgbost"], ["Did you mean 'xgboost'?"]),
        (["explain", "nDCG", "--labels", "2000,1"], ["label 2000 is too large for the gain 2^label - 1", "gain='linear'"]),
        (["explain", "nDCG", "--labels", "3;2"], ["'3;2' is not a number. Separate numbers by commas"]),
        (["explain", "nDCG", "--labels", "1,0", "--scores", "1"], ["scores must have the shape of labels"]),
        (["explain", "nDCG", "--labels", "1,0", "--scores", "1,1", "--ties", "docid"], ["give --docs, or another rule with --ties."]),
        (["explain", "nDCG"], ["give --labels of one query"]),
    ],
)
def test_bad_input_names_what_where_and_the_cure(arguments: list[object], words: list[str]) -> None:
    message = failure(*arguments)
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_a_directory_without_a_table_is_named(tmp_path: Path) -> None:
    assert str(tmp_path) in failure("evaluate", tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 4, 1000, -1])
def test_a_truncated_file_is_named_with_what_the_reader_said(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "cut.parquet"
    path.write_bytes(SAMPLE.read_bytes()[:kept])
    assert failure("evaluate", path).startswith(f"{path}: ")


def test_group_sizes_that_do_not_sum_are_named_with_both_numbers(tmp_path: Path) -> None:
    bare, groups, scores = (tmp_path / name for name in ("bare", "groups", "scores"))
    bare.write_text("1 1:0.5\n0 1:0.1\n")
    groups.write_text("3\n")
    scores.write_text("1\n2\n")
    assert (
        failure("evaluate", bare, "--scores", scores, "--groups", groups) == f"{groups}: the group sizes sum to 3, but {bare} has 2 rows."
    )


def test_a_label_of_2000_is_named_with_the_cure(tmp_path: Path) -> None:
    path = tmp_path / "huge.parquet"
    pq.write_table(pa.table({"query_id": [1, 1], "label": [2000, 1], "score": [0.1, 0.2]}), path)
    said = failure("evaluate", path, "-m", "nDCG@10")
    assert said.startswith("label 2000 is too large for the gain 2^label - 1")
    assert "gain='linear'" in said
    assert means(invoke("evaluate", path, "-m", "nDCG(gain='linear')", "--format", "json").output)


# --- explain, metrics, conventions, warmup --------------------------------------------------------------------------------------


def test_explain_prints_the_worked_table() -> None:
    lines = invoke("explain", "nDCG@5", "--labels", "3,2,0,1,2").output.splitlines()
    worked = fr.explain("nDCG@5", [3, 2, 0, 1, 2])
    table = [line.split() for line in lines]
    assert all(
        [str(row["rank"]), str(row["label"]), str(row["gain"]), f"{row['discount']:.4f}", f"{row['term']:.4f}"] in table
        for row in worked.rows
    )
    assert lines[-1] == worked.steps[-1]


def test_explain_takes_scores_ids_and_what_is_missing() -> None:
    arguments = ("explain", "AP", "--labels", "1, 0,-,2.5", "--scores", "0.9,0.7,0.7,-", "--docs", "a, b,c,d", "--ties", "docid")
    expected = fr.explain("AP", [1, 0, None, 2.5], [0.9, 0.7, 0.7, None], doc_ids=["a", "b", "c", "d"], ties="docid")
    assert invoke(*arguments).output.splitlines()[-1] == expected.steps[-1]
    assert "AP = 0, for there is nothing to find" in invoke("explain", "AP", "--labels", "").output


def test_conventions_lists_all_and_describes_one() -> None:
    listed = invoke("conventions").output
    assert all(any(line.startswith(name) for line in listed.splitlines()) for name in fr.conventions)
    page = " ".join(invoke("conventions", "xgboost").output.split())
    assert "nDCG: k 32" in page
    assert "relevant label >= 1" in page
    assert "relevant label > 0.5" in " ".join(invoke("conventions", "lightgbm").output.split())


@pytest.mark.compiled
def test_warmup_says_what_it_did_and_where_the_cache_is() -> None:
    output = invoke("warmup").output
    assert "kernels compiled" in output
    assert "The cache lies below" in output or "NUMBA_CACHE_DIR" in output


@pytest.mark.compiled
@pytest.mark.slow
def test_after_warmup_nothing_is_compiled(tmp_path: Path) -> None:
    env = environment(NUMBA_CACHE_DIR=str(tmp_path))
    first = process("warmup", env=env).stdout
    assert " 0 found" not in first or "0 kernels compiled" not in first
    assert str(tmp_path) in first
    files = set(tmp_path.rglob("*.nbc"))
    assert process("evaluate", SAMPLE, "-m", "nDCG@10,ERR,AUC,Bpref,Rprec", "--weight", "weight", "--bounds", env=env).returncode == 0
    assert process("evaluate", LETOR, "--scores", LETOR.with_suffix(".scores"), "--ties", "input", env=env).returncode == 0
    assert set(tmp_path.rglob("*.nbc")) == files
    assert process("warmup", env=env).stdout.startswith("0 kernels compiled")


def test_warmup_without_a_jit_or_a_cache_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastrank.engine import warm

    monkeypatch.setattr(warm, "warm_up", lambda: warm.WarmUp(0, 0, None, 0.1, jit_is_off=True))
    assert invoke("warmup").output.startswith("Nothing to compile")
    monkeypatch.setattr(warm, "warm_up", lambda: warm.WarmUp(7, 0, None, 9.0, jit_is_off=False))
    assert "7 kernels compiled and 0 found in the cache, in 9.0 s." in invoke("warmup").output
    assert "set NUMBA_CACHE_DIR" in invoke("warmup").output


# --- help and completion --------------------------------------------------------------------------------------------------------


def test_help_lists_the_commands_with_the_main_one_first() -> None:
    output = invoke("--help").output
    assert output == invoke().output
    places = [output.index(f"\n  {command} ") for command in COMMANDS]
    assert places == sorted(places)
    assert "_FASTRANK_COMPLETE=bash_source fastrank" in output


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples(command: str) -> None:
    assert f"Examples:\n    fastrank {command}" in invoke(command, "-h").output


def test_names_of_metrics_and_conventions_are_completed() -> None:
    nothing: Any = None
    assert complete_metric(nothing, nothing, "AP,conc") == ["AP,Concordance"]
    assert complete_convention(nothing, nothing, "xg") == ["xgboost", "xgboost-"]


def test_help_does_not_import_numpy() -> None:
    code = "import sys; from fastrank.cli import run; run(['evaluate', '--help']); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), stdout=subprocess.DEVNULL, check=False).returncode == 0

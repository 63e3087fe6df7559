"""`fastrank verify`: other programs asked for the same numbers, and stand-ins whose deviations are known beforehand."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.cli import run
from fastrank.cli.verifying import PEERS as OFFERED
from fastrank.convention import Convention, conventions
from fastrank.verification import peers
from fastrank.verification.differential import PEERS, UNDEFINED_ORDER, Verification, verify
from fastrank.verification.peers import Answers, Peer
from fastrank.verification.query_sets import QuerySet, merged, random_query_set, read_query_set

# Hundreds of small evaluations.
pytestmark = pytest.mark.compiled

METRICS = ("nDCG@5", "AP", "RR", "P@5")
TREC = conventions["trec_eval"]


# --- stand-ins -------------------------------------------------------------------------------------------------------------------


def deviating(
    convention: Convention = TREC, change: Callable[[QuerySet], QuerySet] = lambda queries: queries
) -> Callable[[QuerySet], Answers]:
    """A program that is ours under another convention, or for other data."""

    def ask(queries: QuerySet) -> Answers:
        changed = change(queries)
        answers = {}
        for name in METRICS:
            values = changed.values(fr.parse_metric(name, convention), convention)
            answers[name] = {query: value for query, value in values.items() if query in queries.qrels and value == value}
        return answers

    return ask


def ask_stand_in(monkeypatch: pytest.MonkeyPatch, ask: Callable[[QuerySet], Answers], **traits: Any) -> Verification:
    peer = Peer("stand-in", "1", "trec_eval", {name: name for name in METRICS}, ask, **traits)
    monkeypatch.setitem(PEERS, "ranx", lambda: peer)
    return verify("ranx", n_sets=15, seed=3)


def reasons(found: Verification) -> set[str | None]:
    return {finding.reason for finding in found.findings}


def renamed(queries: QuerySet) -> QuerySet:
    """Ids in the opposite order: a program that puts the smaller id first."""
    names = sorted({name for side in (queries.qrels, queries.run) for each in side.values() for name in each}, key=str.encode, reverse=True)
    other = {name: f"{place:06d}" for place, name in enumerate(names)}

    def turned(side: Any) -> dict[str, dict[str, Any]]:
        return {query: {other[name]: value for name, value in each.items()} for query, each in side.items()}

    return dataclasses.replace(queries, qrels=turned(queries.qrels), run=turned(queries.run))


def clipped(queries: QuerySet) -> QuerySet:
    return dataclasses.replace(queries, qrels={q: {name: max(x, 0) for name, x in each.items()} for q, each in queries.qrels.items()})


DEVIATIONS: dict[str, tuple[Callable[[QuerySet], Answers], set[str]]] = {
    "none": (deviating(), set()),
    "ties": (deviating(TREC.override(ties="worst")), {"order of equal scores: worst"}),
    "width": (deviating(conventions["trec_eval9"]), {"width of scores: float32"}),
    "gain": (deviating(dataclasses.replace(TREC, gain="exp2")), {"gain: exp2"}),
    "nothing": (deviating(TREC.override(no_relevant="one")), {"value of a query with nothing to find: one"}),
    "level": (deviating(dataclasses.replace(TREC, rel=2)), {"lowest relevant label: 2"}),
    "ids": (deviating(change=renamed), {"order of equal scores: document id, ascending"}),
    "unjudged": (deviating(change=lambda queries: dataclasses.replace(queries, judged_only=True)), {"unjudged documents: left out"}),
    "two": (
        deviating(dataclasses.replace(TREC, gain="exp2").override(ties="best")),
        {"gain: exp2", "order of equal scores: best", "order of equal scores: best and gain: exp2"},
    ),
}


@pytest.mark.parametrize("deviation", DEVIATIONS)
def test_a_known_deviation_is_explained_by_its_choice(deviation: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, expected = DEVIATIONS[deviation]
    found = ask_stand_in(monkeypatch, ask)
    assert found.n_unexplained == 0
    # A single value may be met by another choice as well: most values tell.
    by_reason = {reason: sum(each.n_values for each in found.findings if each.reason == reason) for reason in reasons(found)}
    assert sum(by_reason.get(reason, 0) for reason in expected) >= 0.8 * found.n_differing
    assert bool(found.findings) == bool(expected)
    assert found.n_sets == 15
    assert found.n_metrics == len(METRICS)


def test_labels_below_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def bpref(queries: QuerySet) -> Answers:
        return {"Bpref": clipped(queries).values(fr.parse_metric("Bpref", TREC), TREC)}

    peer = Peer("stand-in", "1", "trec_eval", {"Bpref": "Bpref"}, bpref, negative=True)
    monkeypatch.setitem(PEERS, "ranx", lambda: peer)
    assert reasons(verify("ranx", n_sets=40)) == {"labels below 0: taken as 0"}


def test_missing_queries_that_a_program_does_not_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def nan_for_missing(queries: QuerySet) -> Answers:
        return {"RR": {query: value if query in queries.run else np.nan for query, value in deviating()(queries)["RR"].items()}}

    found = ask_stand_in(monkeypatch, nan_for_missing)
    assert reasons(found) == {"queries missing from the run: left out"}
    assert found.notes == ("no values there for nDCG@5, AP, P@5.",)


def test_an_order_of_equal_scores_that_is_undefined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    worst = deviating(TREC.override(ties="worst"))
    peer = Peer("stand-in", "1", "ranx", {"RR": "RR"}, lambda queries: {"RR": worst(queries)["RR"]}, untied=True)
    monkeypatch.setitem(PEERS, "ranx", lambda: peer)
    assert verify("ranx", n_sets=10).findings == ()  # no ties in its random sets
    qrels, ranked = write(tmp_path, {"q": {"b": 1}}, {"q": {"b": 1.0, "a": 1.0}})
    found = verify("ranx", qrels=qrels, run=ranked)
    assert [(finding.reason, finding.example) for finding in found.findings] == [(UNDEFINED_ORDER, ("q", 0.5, 1.0))]
    assert found.source == "the given qrels and run"


def test_what_no_choice_explains_stays_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def wrong(queries: QuerySet) -> Answers:
        return {name: {query: value + 0.0123 for query, value in values.items()} for name, values in deviating()(queries).items()}

    found = ask_stand_in(monkeypatch, wrong)
    assert found.n_unexplained == found.n_differing == found.n_values
    assert all(finding.largest == pytest.approx(0.0123) for finding in found.findings)
    assert "unexplained" in found.sentence
    assert run(["verify", "--against", "ranx", "--cases", "3"]) == (1, "")
    assert "unexplained (" in capsys.readouterr().out


def test_rounded_values_are_compared_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(queries: QuerySet) -> Answers:
        return {name: {query: round(value, 4) for query, value in values.items()} for name, values in deviating()(queries).items()}

    assert ask_stand_in(monkeypatch, rounded, tolerance=0.5e-4 + 1e-9).findings == ()
    assert ask_stand_in(monkeypatch, rounded).n_unexplained > 0
    assert {finding.metric for finding in ask_stand_in(monkeypatch, rounded, rounded={"AP": 1e-4, "RR": 1e-4}).findings} == {"nDCG@5"}


# --- query sets ------------------------------------------------------------------------------------------------------------------


def write(folder: Path, qrels: dict[str, dict[str, int]], ranked: dict[str, dict[str, float]]) -> tuple[Path, Path]:
    paths = folder / "qrels", folder / "run"
    paths[0].write_text("".join(f"{q} 0 {doc} {label}\n" for q, docs in qrels.items() for doc, label in docs.items()))
    paths[1].write_text("".join(f"{q} Q0 {doc} 0 {score!r} me\n" for q, docs in ranked.items() for doc, score in docs.items()))
    return paths


def draw(**traits: bool) -> list[QuerySet]:
    return [random_query_set(0, place, **({"ties": True, "negative": True, "single": False} | traits)) for place in range(150)]


def test_random_query_sets_hold_what_is_hard() -> None:
    whole = merged(draw())
    assert whole.qrels == merged(draw()).qrels
    labels = [label for each in whole.qrels.values() for label in each.values()]
    assert {-2, -1, 0, 1, 2, 3, 4} == set(labels)
    assert all(max(each.values()) >= 0 for each in whole.qrels.values())
    assert any(max(each.values()) == 0 for each in whole.qrels.values())
    assert set(whole.qrels) - set(whole.run)
    assert set(whole.run) - set(whole.qrels)
    both = [query for query in whole.qrels if query in whole.run]
    assert any(set(whole.run[query]) - set(whole.qrels[query]) for query in both)
    assert any(set(whole.qrels[query]) - set(whole.run[query]) for query in both)
    scores = [np.array(list(each.values())) for each in whole.run.values()]
    assert any(len(np.unique(each)) < len(each) for each in scores)
    assert any(len(np.unique(each.astype(np.float32))) < len(np.unique(each)) for each in scores)
    assert any(each.max() <= 0 for each in scores)
    assert max(map(len, scores)) > 100


def test_random_query_sets_leave_out_what_a_program_cannot_take() -> None:
    plain = merged(draw(negative=False, single=True))
    assert min(label for each in plain.qrels.values() for label in each.values()) == 0
    scores = [np.array(list(each.values())) for each in plain.run.values()]
    assert all(len(np.unique(each.astype(np.float32))) == len(np.unique(each)) for each in scores)
    untied = [np.array(list(each.values()), np.float32) for each in merged(draw(ties=False)).run.values()]
    assert all(len(np.unique(each)) == len(each) for each in untied)


def test_files_are_read_as_they_are_evaluated(tmp_path: Path) -> None:
    drawn = random_query_set(1, 0, ties=True, negative=True, single=False)
    qrels, ranked = write(tmp_path, drawn.qrels, drawn.run)
    read = read_query_set(qrels, ranked)
    assert (read.qrels, read.run) == (drawn.qrels, drawn.run)
    qrels.write_text("q 0 a 0.5\n")
    with pytest.raises(fr.InputError, match=r"0\.5"):
        read_query_set(qrels, ranked)


def test_lists_are_what_was_retrieved() -> None:
    queries = QuerySet({"q": {"a": 2, "z": 1}, "gone": {"a": 1}}, {"q": {"b": 0.5, "a": 0.5}, "other": {"a": 1.0}}, as_lists=True)
    assert [(query, labels.tolist(), scores.tolist()) for query, labels, scores in queries.lists()] == [("q", [0, 2], [0.5, 0.5])]
    assert queries.values(fr.parse_metric("R", "lightgbm"), conventions["lightgbm"]) == {"q": 1.0}
    empty = QuerySet({"q": {"a": 1}}, {}, as_lists=True)
    assert empty.values(fr.parse_metric("R"), conventions["fastrank"]) == {}


# --- the programs ----------------------------------------------------------------------------------------------------------------


def installed(name: str) -> Peer:
    try:
        return PEERS[name]()
    except fr.InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name", ["pytrec_eval", "ir_measures", "sklearn", "lightgbm", "xgboost", pytest.param("ranx", marks=pytest.mark.slow)]
)
def test_every_difference_from_an_installed_program_is_explained(name: str) -> None:
    peer = installed(name)
    found = verify(name, n_sets=12, seed=2)
    assert found.n_unexplained == 0, [finding for finding in found.findings if finding.reason is None]
    assert found.n_values > 300
    assert found.version == peer.version
    if name not in ("ir_measures", "ranx"):
        assert found.findings == ()
    # ir_measures mixes orders of equal scores; ranx takes labels below 0 for judged ones in bpref.
    assert {finding.metric for finding in found.findings if name == "ranx"} <= {"bpref"}


def test_ir_measures_with_gains_whatever_the_order_of_hashes() -> None:
    """Under these seeds ir_measures meets nDCG with gains first in a set, and would compute every nDCG with them."""
    installed("ir_measures")
    program = "from fastrank.verification.differential import verify; print(verify('ir_measures', n_sets=3, seed=2).n_unexplained)"
    for seed in ("25", "45"):
        hashes = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", program], env=hashes, capture_output=True, text=True, check=True)
        assert done.stdout == "0\n", seed


def test_pytrec_eval_on_the_files_of_the_sample() -> None:
    installed("pytrec_eval")
    sample = Path(__file__).parent.parent / "bench_data"
    found = verify("pytrec_eval", qrels=sample / "sample.qrels", run=sample / "sample.run")
    assert found.findings == ()
    assert found.n_queries > 10


STAND_IN = """\
#!{python}
# trec_eval's output by pytrec_eval, which wraps its version 9.
import sys
import pytrec_eval

if "-v" in sys.argv:
    sys.exit("trec_eval version 9.0.8")
if "-fail" in open(sys.argv[-1]).read():
    sys.exit("trec_eval: cannot do that")
with open(sys.argv[-2]) as qrels, open(sys.argv[-1]) as run:
    judged, ranked = pytrec_eval.parse_qrel(qrels), pytrec_eval.parse_run(run)
for query in judged:  # -c: a query missing from the run counts as a list of one document that nobody judged
    ranked.setdefault(query, {{"no such document": 0.0}})
found = pytrec_eval.RelevanceEvaluator(judged, pytrec_eval.supported_measures).evaluate(ranked)
for query, values in found.items():
    for name, value in values.items():
        print(f"{{name:22s}}\\t{{query}}\\t{{value:6.4f}}")
print("map                   \\tall\\t0.5")
"""


@pytest.fixture
def trec_eval(tmp_path: Path) -> Path:
    installed("pytrec_eval")
    binary = tmp_path / "bin" / "trec_eval"
    binary.parent.mkdir()
    binary.write_text(STAND_IN.format(python=sys.executable))
    binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
    return binary


def test_the_c_program_is_asked_with_its_flags_and_its_table_is_read(
    trec_eval: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(trec_eval.parent), prepend=":")
    found = verify("trec_eval", n_sets=4)
    assert (found.version, found.convention) == ("9.0.8", "trec_eval9")
    # A list of one unjudged document, which counts as retrieved, is not quite an empty one.
    assert {finding.metric for finding in found.findings} <= {"num_ret", "utility"}
    assert found.n_values > 500
    qrels, ranked = write(tmp_path, {"q": {"a": 1, "b": 0}}, {"q": {"b": 0.7, "a": 0.5}})
    assert run(["verify", "--against", "trec_eval", "--binary", str(trec_eval), str(qrels), str(ranked)]) == (0, "")
    assert "none differs" in " ".join(capsys.readouterr().out.split())
    ranked.write_text("q Q0 -fail 0 1 me\n")
    code, line = run(["verify", "--against", "trec_eval", "--binary", str(trec_eval), str(qrels), str(ranked)])
    assert code == 2
    assert "ends with code 1: trec_eval: cannot do that" in line


def test_version_10_is_the_other_convention(trec_eval: Path) -> None:
    trec_eval.write_text(trec_eval.read_text().replace("9.0.8", "10.0-rc3"))
    peer = peers.trec_eval_peer(str(trec_eval))
    assert (peer.version, peer.convention) == ("10.0-rc3", "trec_eval")
    assert "unj_5" in peer.metrics


def test_a_program_that_is_not_there_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["verify", "--against", "trec_eval"])[0] == 2
    with pytest.raises(fr.InputError, match=r"trec_eval is not on PATH: build it .* --binary\.$"):
        verify("trec_eval")
    with pytest.raises(fr.InputError, match="trec_eval is not at nowhere"):
        verify("trec_eval", binary="nowhere")
    monkeypatch.setitem(sys.modules, "ranx", None)
    code, line = run(["verify", "--against", "ranx"])
    assert (code, line) == (2, "ranx is not installed: pip install ranx.")

    def broken(name: str) -> Any:
        raise OSError("libgomp.so.1: cannot open shared object file\nmore")

    monkeypatch.setattr(peers.importlib, "import_module", broken)
    with pytest.raises(fr.InputError, match=r"lightgbm cannot be loaded: libgomp\.so\.1: cannot open shared object file\."):
        verify("lightgbm")
    with pytest.raises(fr.InputError, match=r"against must be one of 'pytrec_eval', .* Did you mean 'ranx'"):
        verify("rnx")


def test_nothing_to_compare_is_no_agreement(tmp_path: Path) -> None:
    installed("pytrec_eval")
    (tmp_path / "qrels").write_text("q1 0 d1 1\n")
    (tmp_path / "run").write_text("q2 Q0 d1 1 0.5 x\n")
    code, line = run(["verify", "--against", "pytrec_eval", str(tmp_path / "qrels"), str(tmp_path / "run")])
    assert code == 2
    assert line.startswith("pytrec_eval gave no value on the given qrels and run, so that nothing can be compared.")


# --- the command line ------------------------------------------------------------------------------------------------------------


def test_the_command_offers_every_program() -> None:
    assert tuple(PEERS) == OFFERED


def test_the_command_prints_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ask_stand_in(monkeypatch, deviating(TREC.override(ties="worst")))
    assert run(["verify", "--against", "ranx", "--cases", "15", "--seed", "3", "--format", "json"]) == (0, "")
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads(asked.to_json())
    assert told["n_differing"] == sum(finding["n_values"] for finding in told["findings"]) == asked.n_differing


def test_the_command_shows_each_reason_with_its_metrics(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ask_stand_in(monkeypatch, deviating(dataclasses.replace(TREC, gain="exp2")))
    assert run(["verify", "--against", "ranx", "--cases", "15", "--seed", "3"]) == (0, "")
    out = " ".join(capsys.readouterr().out.split())
    assert asked.sentence in out
    assert re.search(r"gain: exp2 \(\d+ values\)", out)
    assert "all explained by" in asked.sentence


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify"], "Missing option '--against'"),
        (["verify", "--against", "trec"], "'trec' is not one of"),
        (["verify", "--against", "ranx", "qrels"], "give both QRELS and RUN"),
        (["verify", "--against", "ranx", "--binary", "x"], "--binary is for --against trec_eval"),
    ],
)
def test_usage(arguments: list[str], message: str) -> None:
    code, line = run(arguments)
    assert code == 2
    assert message in line

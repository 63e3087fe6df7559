"""fastrank.compat.ranx: evaluate, compare, Qrels, Run, Report and the metric functions, against the installed ranx (without ties)."""

from __future__ import annotations

import gzip
import importlib
import json
import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compat_draw import Drawn, draw

import fastrank as fr
from fastrank.compat import ranx as ours
from fastrank.errors import InputError

QRELS = {"q_2": {"d_3": 2, "d_2": 1, "d_5": 3}, "q_1": {"d_1": 1, "d_2": 2}}
RUN = {"q_1": {"d_1": 1.5, "d_2": 2.6}, "q_2": {"d_3": 2.8, "d_2": 1.2, "d_9": 3.1}}

WITH_CUTOFF = ["hits", "hit_rate", "precision", "recall", "f1", "mrr", "map", "dcg", "dcg_burges", "ndcg", "ndcg_burges"]
SUFFIXES = ["", "@1", "@5", "@100", "@0", "-l2", "@5-l2", "@10-l3"]
METRICS = [name + suffix for name in WITH_CUTOFF for suffix in SUFFIXES]
METRICS += ["r-precision", "r-precision-l2", "bpref", "bpref-l2", "rbp.95", "rbp@50", "rbp.80-l2"]


@pytest.fixture(scope="module")
def theirs() -> Any:
    """It compiles for half a minute when it is used for the first time."""
    return pytest.importorskip("ranx", reason="ranx is not installed")


def untied(seed: int) -> Drawn:
    return draw(seed, tied=False, complete=True)


# --- evaluate -------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_values_are_theirs(theirs: Any, seed: int) -> None:
    data = untied(seed)
    run, other = ours.Run(data.run), theirs.Run(data.run)
    found = ours.evaluate(ours.Qrels(data.qrels), run, METRICS, return_mean=False)
    expected = theirs.evaluate(theirs.Qrels(data.qrels), other, METRICS, return_mean=False)
    assert list(found) == list(expected)
    for name, values in expected.items():
        defined = ~np.isnan(values)  # its bpref is NaN where nothing non-relevant was judged
        assert defined.all() or name.startswith("bpref")
        assert type(found[name]) is type(values)
        assert found[name][defined] == pytest.approx(values[defined], rel=1e-12, abs=1e-12), name
    names = [name for name in METRICS if not name.startswith("bpref")]
    assert {name: run.mean_scores[name] for name in names} == pytest.approx({name: other.mean_scores[name] for name in names}, rel=1e-12)
    assert {name: run.scores[name] for name in names} == {name: pytest.approx(other.scores[name]) for name in names}
    assert [list(run.scores[name]) for name in names] == [list(other.scores[name]) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"return_std": True}, {"return_mean": False}, {"return_mean": False, "return_std": True}])
@pytest.mark.parametrize("metrics", ["ndcg@5", ["ndcg@5"], ["map", "mrr@3"]])
def test_what_is_returned_has_their_types(theirs: Any, metrics: Any, options: dict[str, bool]) -> None:
    data = untied(0)
    found, expected = (library.evaluate(library.Qrels(data.qrels), library.Run(data.run), metrics, **options) for library in (ours, theirs))

    def agree(one: Any, other: Any) -> None:
        assert type(one) is type(other)
        if isinstance(one, dict):
            assert list(one) == list(other)
            for key, value in one.items():
                agree(value, other[key])
        else:
            assert one == pytest.approx(other, rel=1e-12)

    agree(found, expected)


def test_means_and_values_are_kept_in_the_run() -> None:
    run = ours.Run(RUN)
    assert ours.evaluate(ours.Qrels(QRELS), run, ["mrr", "hits"], return_std=True)["mrr"] == {"mean": 0.75, "std": 0.25}
    assert run.mean_scores == {"mrr": 0.75, "hits": 2.0}
    assert run.std_scores == {"mrr": 0.25, "hits": 0.0}
    assert run.scores == {"mrr": {"q_1": 1.0, "q_2": 0.5}, "hits": {"q_1": 2.0, "q_2": 2.0}}
    other = ours.Run(RUN)
    ours.evaluate(ours.Qrels(QRELS), other, "mrr", save_results_in_run=False)
    assert (other.mean_scores, other.scores) == ({}, {})


def test_dicts_are_matched_by_their_ids_in_the_order_of_the_qrels() -> None:
    assert ours.evaluate(QRELS, RUN, "mrr", return_mean=False).tolist() == [0.5, 1.0]
    assert ours.evaluate(QRELS, RUN, ["mrr"]) == 0.75
    assert ours.evaluate(ours.Qrels(QRELS), RUN, "mrr", return_mean=False).tolist() == [1.0, 0.5]


def test_arrays_of_ids_and_numbers() -> None:
    qrels = np.array([[[12, 0.5], [25, 0.3]], [[11, 0.4], [2, 0.6]]]) * [1, 10]
    run = np.array([[[12, 0.9], [234, 0.8], [25, 0.7]], [[12, 0.9], [11, 0.8], [25, 0.7]]])
    assert ours.evaluate(qrels, run, "hits@2", return_mean=False).tolist() == [1.0, 1.0]
    ragged = [np.array([[1, 1]]), np.array([[1, 1], [2, 2]])]
    assert ours.evaluate(ragged, [np.array([[1, 0.5], [2, 0.6]]), np.array([[2, 0.5]])], "recall", return_mean=False).tolist() == [1, 0.5]


def test_a_document_that_stands_twice_in_an_array_counts_at_its_first_place() -> None:
    qrels = [np.array([[3, 1], [6, 1], [6, 1]]), np.array([[4, 1]]), np.array([[-(2.0**63), 1], [2.0**63, 1]])]
    run = [np.array([[1, 1], [3, 1], [3, 1], [4, 1]]), np.array([[1, 1], [1, 1], [1, 1], [4, 1]]), np.array([[2.0**63, 1]])]
    assert ours.evaluate(qrels, run, "mrr", return_mean=False).tolist() == [1 / 2, 1 / 4, 1.0]
    assert ours.evaluate(qrels, run, "recall", return_mean=False).tolist() == [1 / 2, 1.0, 1 / 2]


def test_other_queries_are_an_error_or_are_made_comparable() -> None:
    qrels, run = ours.Qrels({**QRELS, "q_3": {"d": 1}}), {**RUN, "q_9": {"d": 1.0}}
    for given in (ours.Run(run), run):
        with pytest.raises(AssertionError, match="query ids do not match"):
            ours.evaluate(qrels, given, "mrr")
    made = ours.Run(run)
    assert ours.evaluate(qrels, made, "mrr", return_mean=False, make_comparable=True).tolist() == [1.0, 0.5, 0.0]
    assert made.get_query_ids() == ["q_1", "q_2", "q_3"]
    assert made["q_3"] == {}
    for judged in (qrels, {**QRELS, "q_3": {"d": 1}}):
        values = ours.evaluate(judged, run, "mrr", return_mean=False, make_comparable=True)
        assert dict(zip(judged.keys(), values.tolist(), strict=True)) == {"q_1": 1.0, "q_2": 0.5, "q_3": 0.0}
    assert "q_9" in run


@pytest.mark.parametrize(
    ("metric", "error", "match"),
    [
        ("nope", ValueError, "Metric nope not supported"),
        ("MRR", ValueError, "Metric MRR not supported"),
        ("rbp", ValueError, "persistence"),
        ("ndcg@-1", AssertionError, "k must be"),
        ("ndcg@x", ValueError, "invalid literal"),
        ("map-l0", InputError, "rel must be"),
        (3, AssertionError, "Metrics error"),
    ],
)
def test_errors_of_names(metric: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ours.evaluate(QRELS, RUN, [metric])


def test_nothing_at_all() -> None:
    assert math.isnan(ours.evaluate(ours.Qrels(), ours.Run(), "mrr"))
    assert ours.evaluate({"q": {"d": 1}}, {"q": {}}, ["mrr", "hits"]) == {"mrr": 0.0, "hits": 0.0}
    empty = ours.Run({}).make_comparable(ours.Qrels(QRELS))
    assert ours.evaluate(ours.Qrels(QRELS), empty, "mrr", return_mean=False).tolist() == [0.0, 0.0]
    assert ours.metrics.hits([], []).tolist() == []


def test_any_thread_may_evaluate_and_the_number_of_threads_changes_nothing() -> None:
    data = untied(1)
    expected, found = ours.evaluate(*data, "ndcg", threads=1), []
    calls = [threading.Thread(target=lambda: found.append(ours.evaluate(*data, "ndcg", threads=2))) for _ in range(4)]
    for call in calls:
        call.start()
    for call in calls:
        call.join()
    assert found == [expected] * 4


def test_equal_scores_keep_their_order_and_bpref_is_never_nan() -> None:
    assert ours.evaluate({"q": {"b": 1}}, {"q": {"a": 1.0, "b": 1.0, "c": 1.0}}, "mrr") == 0.5
    assert ours.evaluate({"q": {"a": 1}}, {"q": {"a": 1.0}}, "bpref") == 1.0


# --- metric functions -----------------------------------------------------------------------------------------------------------

FUNCTIONS = {
    **{name: name for name in ("hits", "hit_rate", "precision", "recall", "f1", "dcg", "dcg_burges", "ndcg", "ndcg_burges", "bpref")},
    "r_precision": "r-precision",
    "reciprocal_rank": "mrr",
    "average_precision": "map",
}


def test_the_fourteen_functions() -> None:
    assert set(ours.metrics.__all__) == {*FUNCTIONS, "rank_biased_precision"}
    data = untied(2)
    qrels, run = ours.Qrels(data.qrels), ours.Run(data.run)
    for function, name in FUNCTIONS.items():
        for k, level in ((0, 1), (5, 1), (3, 2)):
            expected = ours.evaluate(qrels, run, f"{name}@{k}-l{level}", return_mean=False)
            assert getattr(ours.metrics, function)(qrels, run, k, level).tolist() == expected.tolist()
            assert getattr(ours.metrics, function).__name__ == function
    expected = ours.evaluate(qrels, run, "rbp.95-l2", return_mean=False)
    assert ours.metrics.rank_biased_precision(qrels, run, 0.95, 2).tolist() == expected.tolist()
    with pytest.raises(AssertionError, match="k must be"):
        ours.metrics.hits(qrels, run, -1)


@pytest.mark.slow
@pytest.mark.parametrize("function", [*FUNCTIONS, "rank_biased_precision"])
def test_functions_of_arrays_are_theirs(theirs: Any, function: str) -> None:
    metrics = importlib.import_module("ranx.metrics")
    rng = np.random.default_rng(0)
    qrels = np.array([[[document, rng.integers(0, 4)] for document in rng.permutation(40)[:12]] for _ in range(20)], float)
    run = np.array([[[document, 30 - rank] for rank, document in enumerate(rng.permutation(40)[:25])] for _ in range(20)], float)
    qrels = np.array([rows[np.argsort(-rows[:, 1], kind="stable")] for rows in qrels])
    k = 0.9 if function == "rank_biased_precision" else 7
    expected = getattr(metrics, function)(qrels, run, k, 1)
    defined = ~np.isnan(expected)
    assert getattr(ours.metrics, function)(qrels, run, k, 1)[defined] == pytest.approx(expected[defined], rel=1e-12)


# --- Qrels and Run --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_they_hold_is_what_theirs_hold(theirs: Any) -> None:
    for data, name in ((QRELS, "Qrels"), (RUN, "Run")):
        found, expected = getattr(ours, name)(data, name="x"), getattr(theirs, name)(data, name="x")
        assert found.to_dict() == expected.to_dict()
        assert [list(found[query]) for query in found.get_query_ids()] == [list(expected[query]) for query in expected.get_query_ids()]
        assert list(found.keys()) == list(expected.keys()) == found.get_query_ids()
        assert (found.name, len(found), found.size) == (expected.name, len(expected), expected.size)
        assert found.get_doc_ids_and_scores() == [dict(each) for each in expected.get_doc_ids_and_scores()]
        assert found.to_dataframe().equals(expected.to_dataframe())
        assert type(found.to_dict()) is type(expected.to_dict())


def test_documents_are_added() -> None:
    qrels, run = ours.Qrels(), ours.Run(name="own")
    qrels.add_score("q", "a", 1)
    qrels.add("r", ["a", "b"], [1, 2.9])
    run.add_multi(["q", "r"], [["a", "b"], ["b"]], [[1, 2], [0.5]])
    assert ours.evaluate(qrels, run, "mrr", return_mean=False).tolist() == [0.5, 1.0]
    run.add_score("q", "a", 3)
    assert ours.evaluate(qrels, run, "mrr", return_mean=False).tolist() == [1.0, 1.0]
    assert qrels.qrels == {"q": {"a": 1}, "r": {"b": 2, "a": 1}}
    assert run.run == {"q": {"a": 3.0, "b": 2.0}, "r": {"b": 0.5}}
    qrels.set_relevance_level(2)
    assert qrels.qrels == {"q": {"a": 0}, "r": {"b": 1, "a": 0}}
    qrels.sort()
    assert qrels.sorted
    assert (qrels.size, qrels.get_doc_ids_and_scores()) == (2, [{"a": 0}, {"b": 1, "a": 0}])
    assert run.to_dict()["none"] == {}
    assert repr(run) == str(run) == "{'q': {'a': 3.0, 'b': 2.0}, 'r': {'b': 0.5}}"


@pytest.mark.parametrize("name", ["x.json", "x.trec", "x.txt", "x.gz", "x.parquet", "x.parq"])
def test_what_is_saved_is_read_back(tmp_path: Path, name: str) -> None:
    if name.startswith("x.parq"):
        pytest.importorskip("pandas")
    qrels, run = ours.Qrels(QRELS), ours.Run(RUN, name="bm25")
    qrels.save(tmp_path / name)
    read = ours.Qrels.from_file(tmp_path / name)
    assert read.qrels == qrels.qrels
    run.save(tmp_path / name)
    again = ours.Run.from_file(tmp_path / name)
    assert again.run == run.run
    assert again.name == ("bm25" if name in ("x.trec", "x.txt", "x.gz") else None)
    assert ours.Run.from_file(tmp_path / name, name="own").name == "own"
    assert ours.evaluate(read, again, "mrr", return_mean=False).tolist() == [1.0, 0.5]
    assert len(again) == 2


@pytest.mark.parametrize("name", ["x.json", "x.trec", "x.gz", "x.parquet"])
def test_what_goes_wrong_while_saving_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ours.Qrels(QRELS).save(path)
    old = path.read_bytes()
    # A lone surrogate has no bytes in UTF-8, which is noticed when the file is written.
    with pytest.raises(UnicodeEncodeError):
        ours.Qrels({**QRELS, "q_\ud800": {"d": 1}}).save(path)
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written: there is no directory"):
        ours.Qrels(QRELS).save(tmp_path / "none" / name)


def test_a_kind_overrules_the_extension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ours.Run(RUN, "t").save("run", kind="trec")
    assert Path("run").read_text() == "q_1 Q0 d_2 1 2.6 t\nq_1 Q0 d_1 2 1.5 t\nq_2 Q0 d_9 1 3.1 t\nq_2 Q0 d_3 2 2.8 t\nq_2 Q0 d_2 3 1.2 t"
    assert ours.Run.from_file("run", kind="trec").run == ours.Run(RUN).run
    ours.Qrels(QRELS).save()
    assert json.loads(Path("qrels.json").read_text()) == QRELS
    Path("packed").write_bytes(gzip.compress(b"q 0 d 1\nq 0 d 2"))
    assert ours.Qrels.from_file("packed", kind="gz").qrels == {"q": {"d": 2}}
    for method in (ours.Qrels.from_file, ours.Run(RUN).save):
        with pytest.raises(AssertionError, match="kind"):
            method("run.lz4")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x.json", "x.trec"])
def test_their_files_are_read_and_ours_are_theirs(theirs: Any, tmp_path: Path, name: str) -> None:
    for kind, data in (("Qrels", QRELS), ("Run", RUN)):
        for path, library in (("ours", ours), ("theirs", theirs)):
            getattr(library, kind)(data, name="tag").save(str(tmp_path / (path + name)))
        assert (tmp_path / f"ours{name}").read_bytes() == (tmp_path / f"theirs{name}").read_bytes()


def test_frames(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"q": ["b", "a", "b"], "d": ["x", "y", "z"], "s": [1, 2, 0]})
    columns = {"q_id_col": "q", "doc_id_col": "d", "score_col": "s"}
    assert ours.Qrels.from_df(frame, **columns).qrels == {"a": {"y": 2}, "b": {"x": 1, "z": 0}}
    with pytest.raises(AssertionError, match="must be `float`"):
        ours.Run.from_df(frame, **columns)
    scored = frame.assign(s=frame["s"] / 2)
    assert ours.Run.from_df(scored, **columns, name="r").run == {"a": {"y": 1.0}, "b": {"x": 0.5, "z": 0.0}}
    with pytest.raises(AssertionError, match="must be `int`"):
        ours.Qrels.from_df(scored, **columns)
    with pytest.raises(AssertionError, match="Query IDs"):
        ours.Qrels.from_df(frame.assign(q=1), **columns)
    scored.to_parquet(tmp_path / "x")
    assert ours.Run.from_parquet(tmp_path / "x", **columns, pd_kwargs={"columns": ["q", "d", "s"]}).run["b"] == {"x": 0.5, "z": 0.0}
    frame.to_parquet(tmp_path / "x")
    assert ours.Qrels.from_parquet(tmp_path / "x", **columns).qrels["a"] == {"y": 2}
    assert ours.Run(RUN).to_dataframe().columns.tolist() == ["q_id", "doc_id", "score"]


def test_dicts_and_data_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ours.Qrels.from_dict(QRELS).qrels == ours.Qrels(QRELS).qrels
    assert ours.Run.from_dict(RUN, "x").name == "x"
    held = type("DataSet", (), {"qrels_dict": lambda self: QRELS})
    monkeypatch.setitem(__import__("sys").modules, "ir_datasets", type("Module", (), {"load": lambda name: held()}))
    qrels = ours.Qrels.from_ir_datasets("some/set")
    assert (qrels.name, qrels.qrels) == ("some/set", ours.Qrels(QRELS).qrels)


# --- compare --------------------------------------------------------------------------------------------------------------------


def three_runs(data: Drawn) -> dict[str, dict[str, dict[str, float]]]:
    """The better they rank, the higher their number."""
    return {
        f"m_{i}": {
            query: {name: score + 3.3331 * i * data.qrels[query].get(name, 0) for name, score in scores.items()}
            for query, scores in data.run.items()
        }
        for i in range(3)
    }


@pytest.mark.slow
@pytest.mark.parametrize("test", ["student", "tukey", "fisher"])
def test_comparisons_are_theirs(theirs: Any, test: str) -> None:
    data = untied(3)
    found, expected = (
        library.compare(
            library.Qrels(data.qrels),
            [library.Run(run, name=name) for name, run in three_runs(data).items()],
            ["map", "ndcg@5", "mrr-l2", "rbp.50"],
            stat_test=test,
            max_p=0.05,
        )
        for library in (ours, theirs)
    )
    assert str(found).split() == str(expected).split()
    assert found.to_latex() == expected.to_latex()
    told, known = found.to_dict(), expected.to_dict()
    assert list(told) == list(known)
    for name in found.model_names:
        assert told[name]["scores"] == pytest.approx(known[name]["scores"])
        assert told[name]["win_tie_loss"] == known[name]["win_tie_loss"]
        for other, p in known[name]["comparisons"].items():
            # Random permutations: theirs of 1000, which can be 0.
            assert told[name]["comparisons"][other] == pytest.approx(p, rel=1e-6, abs=0.05 if test == "fisher" else 1e-12)
    pytest.importorskip("pandas.testing").assert_frame_equal(found.to_dataframe(), expected.to_dataframe(), rtol=1e-12)
    assert found.results == {name: pytest.approx(values) for name, values in expected.results.items()}


def report(**options: Any) -> ours.Report:
    qrels = {f"q_{i}": {"d_1": 1} for i in range(12)}
    runs = [ours.Run({query: {"d_1": score, "d_2": 0.5} for query in qrels}) for score in (1.0, 0.0)]
    return ours.compare(ours.Qrels(qrels), runs, ["mrr", "map@5-l1"], **options)


def test_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = report(stat_test="fisher")
    assert found.comparisons["run_2", "run_1"]["mrr"] == {"p_value": 2 / 2**12, "significant": True}
    assert found.win_tie_loss["run_1", "run_2"]["mrr"] == {"W": 12, "T": 0, "L": 0}
    assert str(found).splitlines() == [
        "#    Model    MRR     MAP@5-l1",
        "---  -------  ------  ----------",
        "a    run_1    1.000ᵇ  1.000ᵇ",
        "b    run_2    0.500   0.500",
    ]
    assert "\\textbf{1.000}$^{b}$\\hphantom{} &" in found.to_latex()
    found.save(tmp_path / "report.json")
    assert json.loads((tmp_path / "report.json").read_text()) == found.to_dict()
    found.print_results()
    assert json.loads(capsys.readouterr().out) == found.results
    assert len(found.comparisons) == 1
    assert list(found.comparisons) == [frozenset(("run_1", "run_2"))]
    del found.comparisons["run_1", "run_2"]
    assert not found.comparisons


def test_percentages_and_digits() -> None:
    assert "100.00" in str(report(show_percentages=True, rounding_digits=4))
    assert "1.00" in str(report(rounding_digits=2))


def test_a_report_as_a_frame() -> None:
    pytest.importorskip("pandas")
    frame = report().to_dataframe()
    assert frame.to_dict("list") == {"model_names": ["run_1", "run_2"], "mrr": [1.0, 0.5], "map@5-l1": [1.0, 0.5]}


def test_the_seed_alone_decides_and_no_p_is_zero() -> None:
    data = untied(4)
    runs = three_runs(data)

    def p_of(seed: int, threads: int) -> Any:
        held = [ours.Run(run, name=name) for name, run in runs.items()]
        return ours.compare(ours.Qrels(data.qrels), held, "map", stat_test="fisher", random_seed=seed, threads=threads).to_dict()

    assert p_of(1, 1) == p_of(1, 2)
    assert p_of(1, 1)["m_0"]["comparisons"]["m_2"]["map"] >= 1 / 1001


def test_many_systems_and_one() -> None:
    data = untied(5)
    many = ours.compare(ours.Qrels(data.qrels), [ours.Run(data.run, name=f"s{i}") for i in range(28)], "mrr")
    assert str(many).splitlines()[-1].startswith("ab   s27")
    for test in ("student", "fisher", "tukey"):
        one = ours.compare(ours.Qrels(data.qrels), [ours.Run(data.run)], "mrr", stat_test=test)
        assert len(one.comparisons) == 0
        assert len(str(one).splitlines()) == 3
    assert len(str(ours.compare(ours.Qrels(data.qrels), [], "mrr")).splitlines()) == 2


def test_an_unknown_test_is_their_error() -> None:
    with pytest.raises(NotImplementedError, match="Statistical test `nope` not supported"):
        report(stat_test="nope")


def test_it_is_loaded_when_it_is_asked_for() -> None:
    assert fr.compat.ranx is ours

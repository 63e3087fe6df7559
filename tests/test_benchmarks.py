"""The benchmarks: both sides agree on tiny shapes, what differs or is missing is said, and the page is rewritten in place."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import peers, report
from benchmarks.comparison import Call, Comparison, Mark, Result
from benchmarks.data import TINY, Data, Setting, draw, trec_files
from benchmarks.rows import ROWS, Row
from benchmarks.timing import facts, measure, medians

pytestmark = pytest.mark.repository

SLOW = ("start", "parquet")


@pytest.fixture
def console() -> Console:
    return Console(record=True, width=300)


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return dataclasses.replace(TINY, folder=tmp_path)


def never() -> None:
    raise AssertionError("this must not be timed")


def comparison(**changed: Any) -> Comparison:
    known: dict[str, Any] = {
        "shape": "2 × 5",
        "n_documents": 10,
        "n_queries": 2,
        "ours": Call("fastrank", lambda: None, 1),
        "other": Call("another", lambda: None, 2),
    }
    return Comparison(**known | changed)


def row_of(*comparisons: Comparison, name: str = "boosting") -> Row:
    return dataclasses.replace(ROWS[name], comparisons=lambda _: iter(comparisons))


# --- equality first --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in ROWS])
def test_both_sides_of_every_comparison_agree(name: str, setting: Setting, console: Console) -> None:
    assert report.smoke([ROWS[name]], setting, console) == []


@pytest.mark.parametrize("difference", [1e-3, math.nan, math.inf])
def test_what_differs_is_a_failure_and_is_not_timed(difference: float, console: Console) -> None:
    wrong = comparison(ours=Call("fastrank", never), other=Call("another", never), difference=lambda: difference)
    result = measure(wrong, rounds=1, seconds=0)
    assert (result.status, result.reached) == ("unequal", None)
    [line] = report.smoke([row_of(comparison(), wrong)], TINY, console)
    assert f"fastrank / another: unequal, the results differ by {difference:g}" in line
    assert report.unequal({"boosting": report.measure_row(row_of(wrong), TINY, console)}) == [result]


@pytest.mark.parametrize(("difference", "code"), [(0.0, 0), (1.0, 1)])
def test_the_exit_code_says_whether_all_agreed(difference: float, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "boosting", row_of(comparison(difference=lambda: difference)))
    assert command.main(["smoke", "--rows", "boosting"]) == code
    assert command.main(["report", "--quick", "--rows", "boosting"]) == code


# --- nothing is dropped in silence -----------------------------------------------------------------------------------------------


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, setting: Setting, console: Console) -> None:
    monkeypatch.setattr(peers, "why_absent", lambda library: f"{library} cannot be loaded: no such thing")
    measured = report.measure_row(ROWS["boosting"], setting, console)
    results = report.results_of(measured)
    assert [result.status for result in results] == ["not available"] * 2
    reason = "lightgbm cannot be loaded: no such thing"
    assert {result.note for result in results} == {reason}
    assert reason in console.export_text()
    assert report.every_line({"boosting": measured}, []).count(reason) == 2
    assert reason in report.page_region({"boosting": measured}, [], "all.md")


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, setting: Setting) -> None:
    monkeypatch.setenv("PATH", "")
    first, *_ = ROWS["trec"].comparisons(setting)
    assert "trec_eval" in str(measure(first, rounds=1, seconds=0).note)


def test_trec_eval_is_asked_when_it_is_on_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: Setting) -> None:
    program = tmp_path / "trec_eval"
    program.write_text("#!/bin/sh\nfor name in $2 $4 $6; do printf '%-22s\\tall\\t0.1250\\n' $name; done\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert peers.TREC_EVAL.absent() is None
    means = peers.TREC_EVAL.prepare(trec_files(setting, "tenth100", 2))()
    assert means == dict.fromkeys(peers.TREC_METRICS, 0.125)


def test_files_are_made_once_and_hold_a_pool_of_judgements(setting: Setting) -> None:
    files = trec_files(setting, "tenth100", 3)
    run, qrels = files.run.read_text().splitlines(), files.qrels.read_text().splitlines()
    assert len(run) == files.n_lines == 300
    data = draw("tenth100", 3)
    judged = (data.labels > 0) | (np.arange(300) % 8 == 0)
    assert len(qrels) == judged.sum()
    before = files.run.stat()
    assert trec_files(setting, "tenth100", 3).run.stat() == before


def test_the_first_queries_are_whole() -> None:
    data = Data(np.zeros(9, np.uint8), np.zeros(9, np.float32), np.array([0, 4, 6, 9]))
    assert [data.first(documents).n_documents for documents in (1, 4, 5, 6, 8, 9, 100)] == [4, 4, 4, 6, 6, 9, 9]


# --- figures ---------------------------------------------------------------------------------------------------------------------


def test_calls_take_turns_and_the_median_counts() -> None:
    order: list[str] = []

    def reporting(name: str, figures: Iterator[float]) -> Call:
        def run() -> float:
            order.append(name)
            return next(figures)

        return Call(name, run, reports=True)

    found, rounds = medians([reporting("a", iter([9.0, 1.0, 2.0])), reporting("b", iter([5.0, 5.0, 80.0]))], rounds=3, seconds=0)
    assert (found, rounds) == ([2.0, 5.0], 3)
    assert order == ["a", "b"] * 3


@pytest.mark.parametrize(
    ("mark", "ours", "other", "reached", "verdict"),
    [
        (Mark("faster", 2.5, 4.0), 1.0, 2.4, 2.4, "missed"),
        (Mark("faster", 2.5, 4.0), 1.0, 2.5, 2.5, "must"),
        (Mark("faster", 2.5, 4.0), 1.0, 4.0, 4.0, "aim"),
        (Mark("share", 1.25), 5.0, 4.0, 1.25, "must"),
        (Mark("share", 1.25), 6.0, 4.0, 1.5, "missed"),
        (Mark("seconds", 0.5), 0.25, None, 0.25, "must"),
        (Mark("excess", 0.5), 2.0, 1.25, 0.75, "missed"),
        (Mark("bytes", 7e8), 8e8, None, 8e8, "missed"),
        (Mark(), 1.0, 3.0, 3.0, None),
    ],
)
def test_a_figure_is_held_to_its_mark(mark: Mark, ours: float, other: float | None, reached: float, verdict: str | None) -> None:
    assert mark.reached(ours, other) == reached
    assert mark.verdict(reached) == verdict


def test_a_line_of_the_table() -> None:
    figures = {"ours_figure": 25e-9, "other_figure": 200e-9, "reached": 8.0, "verdict": "aim", "rounds": 5}
    result = Result.of(comparison(mark=Mark("faster", 6.0, 8.0)), "measured", **figures)
    assert report.cells(ROWS["scored"], result) == (
        "2 × 5",
        "fastrank (1 thread)",
        "2.50 ns",
        "another (2 threads)",
        "20.0 ns",
        "8.00×",
        "≥ 6×, aim 8×",
        "reached, and the aim",
    )
    assert Result.from_dict(result.to_dict()) == result


@pytest.mark.parametrize(
    ("seconds", "text"), [(12.34, "12.3 s"), (0.03, "30.0 ms"), (2e-5, "20.0 µs"), (4.321e-9, "4.32 ns"), (1234.0, "1,234 s")]
)
def test_seconds_have_a_fitting_unit(seconds: float, text: str) -> None:
    assert report.seconds_text(seconds) == text


# --- what is written -------------------------------------------------------------------------------------------------------------


def measured(*figures: float, name: str = "boosting") -> dict[str, report.Measured]:
    results = [
        Result.of(
            comparison(n_documents=10**5 * (place + 1), mark=Mark("faster", 2.0)),
            "measured",
            ours_figure=figure,
            other_figure=3 * figure,
            reached=3.0,
            verdict="must",
        )
        for place, figure in enumerate(figures)
    ]
    return {
        name: {
            "setting": "full",
            "at": "2024-01-01T00:00:00+00:00",
            "machine": facts(),
            "results": [result.to_dict() for result in results],
        }
    }


def test_the_page_is_rewritten_between_its_marks_alone_and_twice_is_once() -> None:
    page = f"# Title\n\nbefore\n\n{report.BEGIN}\nolder tables\n{report.END}\n\nafter\n"
    region = report.page_region(measured(0.1), [], "all.md")
    once = report.replace_region(page, region)
    assert once.startswith(f"# Title\n\nbefore\n\n{report.BEGIN}\n")
    assert once.endswith(f"{report.END}\n\nafter\n")
    assert "older tables" not in once
    assert "fastrank (1 thread) / another (2 threads) | 2 × 5 | ≥ 2× | **3.00×** |" in once
    assert report.replace_region(once, region) == once


@pytest.mark.parametrize("page", ["", report.BEGIN, f"{report.END} {report.BEGIN}", f"{report.BEGIN} {report.END} {report.BEGIN}"])
def test_a_page_without_its_marks_is_refused(page: str) -> None:
    with pytest.raises(ValueError, match="each once"):
        report.replace_region(page, "new")


def test_the_readme_has_a_place_for_the_tables() -> None:
    text = report.Places().page.read_text()
    assert "new tables" in report.replace_region(text, "new tables")


def test_a_report_of_some_rows_keeps_the_others(tmp_path: Path, console: Console) -> None:
    pytest.importorskip("matplotlib", reason="the plots need matplotlib")
    places = report.Places.inside(tmp_path)
    both = [row_of(comparison(), name=name) for name in ("boosting", "scored")]
    report.run(both, TINY, places, keep=False, console=console)
    first = report.read_report(places.results)
    report.run(both[:1], TINY, places, keep=True, console=console)
    second = report.read_report(places.results)
    assert list(first) == list(second) == ["scored", "boosting"]
    assert first["scored"] == second["scored"]
    report.run(both[:1], TINY, places, keep=False, console=console)
    assert list(report.read_report(places.results)) == ["boosting"]


def test_a_quick_report_leaves_the_repository_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROWS, "boosting", row_of(comparison()))
    monkeypatch.setattr(report, "write_report", never)
    monkeypatch.setattr(report, "write_page", never)
    assert command.main(["report", "--quick", "--rows", "boosting"]) == 0


def test_a_quick_report_is_published_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="the plots need matplotlib")
    monkeypatch.setitem(ROWS, "boosting", row_of(comparison()))
    written: list[Path] = []
    monkeypatch.setattr(report, "write_report", lambda _everything, path: written.append(path))
    monkeypatch.setattr(report, "write_page", lambda _everything, places: written.append(places.page))
    assert command.main(["report", "--quick", "--publish", "--rows", "boosting"]) == 0
    assert written == [report.Places().results, report.Places().page]


def test_what_the_same_calls_came_to_on_several_shapes_is_one_line() -> None:
    wide, narrow = measured(0.1)["boosting"], measured(0.2)["boosting"]
    missed = Result.of(comparison(shape="7 × 7", mark=Mark("faster", 2.0)), "measured", reached=1.5, verdict="missed").to_dict()
    told = Result.of(comparison(ours=Call("untold", never)), "measured", reached=1.5).to_dict()
    region = report.page_region({"boosting": {**wide, "results": [*wide["results"], *narrow["results"], missed, told]}}, [], "all.md")
    assert "| 2 × 5 · 2 × 5 · 7 × 7 | ≥ 2× | **3.00×** · **3.00×** · 1.50× |" in region
    assert "untold" not in region


def test_plots_are_drawn_light_and_dark_and_say_the_slope(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plots need matplotlib")
    places = report.Places.inside(tmp_path)
    everything = measured(0.1, 0.2, 0.3, name="by-documents") | measured(0.1, name="by-length")
    report.write_page(everything, places)
    names = [f"{name}-{theme}.svg" for name in ("time-by-documents", "time-by-length") for theme in ("dark", "light")]
    pictures = {path.name: path.read_bytes() for path in sorted(places.folder.glob("*.svg"))}
    assert list(pictures) == names
    assert b"fastrank; slope 1.00" in pictures["time-by-documents-light.svg"]
    page = places.page.read_text()
    assert all(f"docs/{name}" in page for name in names)
    assert all(f'"{name}"' in places.lines.read_text() for name in names)
    assert "(docs/benchmarks.md)" in page
    report.write_page(everything, places)
    assert places.page.read_text() == page
    assert {path.name: path.read_bytes() for path in places.folder.glob("*.svg")} == pictures

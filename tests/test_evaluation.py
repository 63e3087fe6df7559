"""An Evaluation summarises itself: means, intervals, slices, notes, and the same numbers in every form it is written in."""

from __future__ import annotations

import copy
import csv
import datetime as dt
import io
import json
import math
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fastrank as fr
from fastrank.convention import conventions
from fastrank.errors import InputError
from fastrank.evaluation import Bounds, Evaluation, Note, merge_slices, moments_by_metric, moments_by_slice, to_json
from fastrank.metrics.counts import NumRel
from fastrank.metrics.cumulative_gain import nDCG
from fastrank.report.text import FORMS, table
from fastrank.statistics import Moments

FASTRANK = conventions["fastrank"]
NDCG10, NDCG5, SKIPPING, COUNT = (metric.fill(FASTRANK) for metric in (nDCG(k=10), nDCG(k=5), nDCG(k=3, no_relevant="skip"), NumRel(rel=2)))


@dataclass(frozen=True)
class GeometricMean:
    """A metric whose aggregate is the geometric mean, reduced to what an Evaluation reads of one."""

    short_name: str = "gm_map"
    formula: str = "average precision"
    aggregation: str = "gmean"
    k: None = None

    def __str__(self) -> str:
        return "gm_map(rel=1)"


def evaluation(values: Any, metrics: Any = (NDCG10,), **options: Any) -> Evaluation:
    """An Evaluation of values, one row per query."""
    values = np.array(values, dtype=np.float64).reshape(-1, len(metrics))
    options = {"no_relevant": [0] * len(metrics)} | options
    return Evaluation(metrics, FASTRANK, values=values, n_queries=len(values), **options)


def random_evaluation(n: int = 60, seed: int = 0, metrics: Any = (NDCG10, NDCG5, COUNT), **options: Any) -> Evaluation:
    """An Evaluation with slices, bounds, weights and notes."""
    rng = np.random.default_rng(seed)
    values = rng.random((n, len(metrics)))
    values[:, -1] = rng.integers(0, 9, n)
    settings: dict[str, Any] = {
        "query_ids": pa.array([f"q{i}" for i in range(n)]),
        "by": {"segment": pa.array([("tail", "head", None)[i % 3] for i in range(n)])},
        "notes": [Note("ties", 7, "7 queries have documents with equal scores.")],
        "no_relevant": [2] * len(metrics),
    }
    return evaluation(values, metrics, **settings | options)


# --- values and means -----------------------------------------------------------------------------------------------------------


def test_the_mean_is_that_of_the_values_and_aggregates_are_the_metrics_own() -> None:
    result = evaluation([[1, 0.5, 3, 0.5], [0.5, 1, 4, 0.0]], (NDCG10, NDCG5, COUNT, GeometricMean()))
    assert result.mean() == {"nDCG@10": 0.75, "nDCG@5": 0.75, "NumRel(rel=2)": 3.5, "gm_map": 0.25}
    geometric = math.exp((math.log(0.5) + math.log(1e-5)) / 2)
    assert result.aggregate() == {"nDCG@10": 0.75, "nDCG@5": 0.75, "NumRel(rel=2)": 7.0, "gm_map": pytest.approx(geometric)}
    assert (len(result), result.n_queries) == (2, 2)


def test_weights_make_a_weighted_mean() -> None:
    result = evaluation([1.0, 0.25], weights=np.array([1.0, 3.0]))
    assert result.mean() == {"nDCG@10": (1 + 3 * 0.25) / 4}


def test_nan_values_spoil_the_mean_unless_the_rule_is_to_skip_them() -> None:
    result = evaluation([[math.nan, math.nan], [0.5, 0.5]], (NDCG10, SKIPPING), no_relevant=[1, 1])
    assert math.isnan(result.mean()["nDCG@10"])
    skipping = result.summary().rows[1]
    assert (skipping.mean, skipping.n_queries, skipping.n_no_relevant) == (0.5, 1, 1)


def test_without_queries_the_mean_is_nan_and_every_form_can_be_written() -> None:
    result = evaluation(np.empty((0, 1)), by={"segment": pa.array([], pa.string())})
    assert len(result) == 0
    assert math.isnan(result.mean()["nDCG@10"])
    assert result.slices == {"segment": {}}
    assert result.to_arrow().num_rows == 0
    for form in (*FORMS, "html"):
        assert "nDCG" in table(result, form)


def test_values_cannot_be_changed_behind_the_mean() -> None:
    values = np.array([[0.5], [1.0]])
    result = Evaluation([NDCG10], FASTRANK, values=values, n_queries=2, no_relevant=[0])
    assert result.values is not None
    with pytest.raises(ValueError, match="read-only"):
        result.values[0, 0] = 1.0
    values[0, 0] = 0.5  # what the caller gave stays writable


def test_a_stream_without_values_has_means_and_says_what_it_lacks() -> None:
    whole = random_evaluation()
    stream = Evaluation(
        whole.metrics,
        FASTRANK,
        values=None,
        n_queries=60,
        no_relevant=whole.no_relevant,
        moments=whole.moments,
        slice_moments=whole.slice_moments,
        notes=whole.notes,
    )
    assert stream.mean() == whole.mean()
    assert repr(stream) == repr(whole)
    assert stream.to_json() == whole.to_json()
    for use in (stream.to_arrow, lambda: stream["nDCG@10"]):
        with pytest.raises(InputError, match="the values of single queries were not kept: evaluate with per_query=True"):
            use()


# --- names ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nDCG@5", "ndcg@5", "nDCG(gain='exp2')@5", NDCG5, "NDCG( ties = 'average' )@5"])
def test_a_column_is_found_by_any_spelling(name: Any) -> None:
    result = random_evaluation()
    assert result.values is not None
    np.testing.assert_array_equal(result[name], result.values[:, 1])


@pytest.mark.parametrize("name", ["nDCG@7", "nDCG(gain='linear')@5", "no such metric", ""])
def test_a_metric_that_is_not_there_is_a_key_error_that_lists_what_is(name: str) -> None:
    with pytest.raises(KeyError, match=re.escape("is not among the metrics: nDCG@10, nDCG@5, NumRel(rel=2)")):
        random_evaluation()[name]


def test_metrics_that_share_a_short_name_are_told_apart_by_the_full_one() -> None:
    # The same words under two conventions: the short name is what was spelled.
    linear = nDCG(k=10).fill(conventions["sklearn"])
    result = evaluation([[0.5, 0.25]], (NDCG10, linear))
    assert result.mean() == {str(NDCG10): 0.5, str(linear): 0.25}
    assert str(NDCG10) != str(linear)
    assert result[str(linear)].tolist() == [0.25]
    assert result.to_arrow().column_names == ["query_id", str(NDCG10), str(linear)]


# --- summaries and slices -------------------------------------------------------------------------------------------------------


def test_the_summary_holds_the_interval_and_the_counts() -> None:
    result = random_evaluation()
    assert result.values is not None
    summary = result.summary(confidence=0.9)
    row = summary.rows[0]
    moments = Moments.of(result.values[:, 0])
    assert (row.mean, row.standard_error) == (moments.mean, moments.standard_error)
    assert (row.low, row.high) == moments.interval(0.9)
    assert (row.n_queries, row.n_no_relevant, row.bounds) == (60, 2, None)
    assert (summary.n_queries, summary.confidence, summary.notes) == (60, 0.9, result.notes)


def test_slices_are_the_evaluations_of_their_queries() -> None:
    weights = np.random.default_rng(1).random(60)
    result = random_evaluation(weights=weights)
    assert result.values is not None
    slices = result.slices["segment"]
    assert list(slices) == ["head", "tail", None]
    for place, value in enumerate(("tail", "head", None)):
        alone = evaluation(result.values[place::3], result.metrics, weights=weights[place::3])
        assert slices[value].n_queries == 20
        assert slices[value].mean() == alone.mean()
        assert [(row.low, row.high) for row in slices[value].rows] == [(row.low, row.high) for row in alone.summary().rows]


def test_a_slice_counts_its_skipped_queries() -> None:
    result = evaluation([math.nan, 0.5, 1.0], (SKIPPING,), by={"locale": pa.array(["de", "de", "fr"])}, no_relevant=[1])
    german = result.slices["locale"]["de"]
    assert (german.n_queries, german.rows[0].n_queries, german.mean()) == (2, 1, {"nDCG(no_relevant='skip')@3": 0.5})


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([3, 1, None, 3]), [1, 3, None]),
        (pa.array([True, False, False, None]), [False, True, None]),
        (pa.array([math.nan, 2.0, None, math.nan]), [2.0, math.nan, None]),
        (pa.array([b"b", b"a", b"b", None]), [b"a", b"b", None]),
        (pa.array([dt.date(2024, 1, 2), dt.date(2024, 1, 1)] * 2), [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
        (pa.DictionaryArray.from_arrays([0, 1, 2, 3], ["x", "x", None, "y"]), ["x", "y", None]),
        (pa.array(["0", "b", "a", None, "b"])[1:], ["a", "b", None]),
    ],
)
def test_slices_keep_the_type_of_their_column_and_come_in_order(column: pa.Array, expected: list[Any]) -> None:
    result = evaluation([0.1, 0.2, 0.3, 0.4], by={"group": column})
    assert [str(value) for value in result.slices["group"]] == [str(value) for value in expected]
    assert sum(each.n_queries for each in result.slices["group"].values()) == 4
    json.loads(result.to_json())
    assert "by group" in repr(result)


def test_slices_of_parts_merge_to_those_of_the_whole() -> None:
    whole = random_evaluation()
    assert whole.values is not None
    group = pa.array([(1.0, math.nan, None)[i % 3] for i in range(60)])
    by = {**whole.by, "group": group}

    def sums(start: int, stop: int) -> Any:
        rows = slice(start, stop)
        assert whole.values is not None
        return moments_by_slice(whole.metrics, whole.values[rows], None, {name: array[rows] for name, array in by.items()})

    a, b, c = sums(0, 1), sums(1, 31), sums(31, 60)
    for merged in (
        merge_slices(merge_slices(a, b), c),
        merge_slices(a, merge_slices(c, b)),
        merge_slices({}, merge_slices(c, merge_slices(b, a))),
    ):
        assert merged == sums(0, 60)
    assert moments_by_metric(whole.metrics, whole.values, None) == whole.moments


def test_bounds_are_averaged_like_the_values() -> None:
    low, high = np.array([[0.25], [math.nan]]), np.array([[0.75], [math.nan]])
    bounds = Bounds(low, high, if_relevant=high)
    result = evaluation([0.5, math.nan], (SKIPPING,), bounds=bounds)
    assert result.summary().rows[0].bounds == (0.25, 0.75)
    assert "[0.2500, 0.7500]" in repr(result)
    assert json.loads(result.to_json())["metrics"][0]["bounds"] == [0.25, 0.75]
    assert result.to_arrow().column_names[1:] == [
        "nDCG(no_relevant='skip')@3",
        "nDCG(no_relevant='skip')@3.low",
        "nDCG(no_relevant='skip')@3.high",
        "nDCG(no_relevant='skip')@3.if_relevant",
    ]


# --- out ------------------------------------------------------------------------------------------------------------------------


def test_the_arrow_table_has_a_row_per_query_and_says_what_it_holds() -> None:
    result = random_evaluation(weights=np.linspace(0, 1, 60))
    assert result.values is not None
    out = result.to_arrow()
    assert out.column_names == ["query_id", "segment", "weight", "nDCG@10", "nDCG@5", "NumRel(rel=2)"]
    assert out["query_id"].to_pylist() == [f"q{i}" for i in range(60)]
    assert [out.schema.field(name).type for name in out.column_names[2:]] == [pa.float64()] * 4
    np.testing.assert_array_equal(out["nDCG@5"].to_numpy(), result.values[:, 1])
    about = json.loads(out.schema.metadata[b"fastrank"])
    assert [each["full_name"] for each in about["metrics"]] == [str(metric) for metric in result.metrics]
    assert about["metrics"][0]["formula"] == NDCG10.formula
    assert about["convention"]["name"] == "fastrank"
    assert about["notes"] == [{"kind": "ties", "count": 7, "message": "7 queries have documents with equal scores."}]
    assert about["by"] == {"segment": "segment"}


def test_queries_without_ids_are_numbered() -> None:
    assert evaluation([0.5, 1.0]).to_arrow()["query_id"].to_pylist() == [0, 1]


def test_a_slicing_column_with_a_taken_name_is_renamed_and_the_metadata_says_so() -> None:
    by = {name: pa.array(["a"]) for name in ("query_id", "weight", "nDCG@10")}
    out = evaluation([0.5], by=by, weights=np.ones(1)).to_arrow()
    assert out.column_names == ["query_id", "query_id_", "weight_", "nDCG@10", "weight", "nDCG@10_"]
    about = json.loads(out.schema.metadata[b"fastrank"])
    assert about["by"] == {"query_id": "query_id_", "weight": "weight_", "nDCG@10": "nDCG@10"}
    assert about["metrics"][0]["column"] == "nDCG@10_"


def test_pandas_and_polars_get_the_same_table() -> None:
    result = random_evaluation(weights=np.linspace(0, 1, 60))
    rows = result.to_arrow().to_pylist()
    pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert frame.astype(object).where(frame.notna(), None).to_dict("records") == rows
    pytest.importorskip("polars")
    assert result.to_polars().to_dicts() == rows


def test_json_is_strict_and_complete() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    result = evaluation([[math.nan, 1], [0.5, 2]], (NDCG10, COUNT), by={"day": pa.array([dt.date(2024, 1, 1)] * 2)})
    read = json.loads(result.to_json(confidence=0.9), parse_constant=refuse)
    assert (read["n_queries"], read["confidence"], read["convention"]["gain"]) == (2, 0.9, "exp2")
    first, second = read["metrics"]
    assert (first["mean"], first["low"]) == (None, None)
    assert (second["full_name"], second["formula"], second["mean"], second["aggregate"]) == (str(COUNT), COUNT.formula, 1.5, 3.0)
    assert [second["low"], second["high"]] == pytest.approx(Moments.of([1, 2]).interval(0.9))
    assert read["slices"][0]["value"] == "2024-01-01"
    assert json.loads(to_json({1: [b"\xff", (math.inf,)]})) == {"1": ["\\xff", [None]]}


# --- tables ---------------------------------------------------------------------------------------------------------------------


def test_the_repr_is_a_table_with_formulas_and_notes() -> None:
    result = evaluation([[1.0, 3.0], [0.5, 4.0]], (NDCG10, COUNT), notes=[Note("ties", 1, "1 query has documents with equal scores.")])
    low, high = Moments.of([1.0, 0.5]).interval()
    lines = repr(result).splitlines()
    assert lines[0] == "2 queries, convention fastrank"
    assert lines[1].split("  ")[0] == "metric"
    assert re.split(r"\s{2,}", lines[3]) == ["nDCG@10", "0.7500", f"[{low:.4f}, {high:.4f}]", "2", "0"]
    assert re.split(r"\s{2,}", lines[4])[3:] == ["sum 7", "2", "0"]
    text = " ".join(repr(result).split())
    for row in result.summary().rows:
        assert f"{row.name}: {row.metric}" in text
        assert row.metric.formula in text
    assert "note: 1 query has documents with equal scores." in text
    assert repr(result.summary()) == repr(result)


def test_one_query_has_no_interval_and_says_one_query() -> None:
    lines = repr(evaluation([0.5])).splitlines()
    assert lines[0] == "1 query, convention fastrank"
    assert re.split(r"\s{2,}", lines[3]) == ["nDCG@10", "0.5000", "-", "1", "0"]


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("n_systems", [1, 2, 7])
def test_tables_fit_the_width_and_lose_no_number(width: int, n_systems: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    long = nDCG(k=20, gain={0: 0, 1: 1, 2: 5}, discount="power:0.5").fill(FASTRANK)
    systems = {
        f"runs/system_number_{seed}.parquet": random_evaluation(seed=seed, metrics=(NDCG10, NDCG5, long, COUNT))
        for seed in range(n_systems)
    }
    text = table(systems, stream=io.StringIO())
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    for name, system in systems.items():
        assert name[:16] in text
        for row in system.summary().rows:
            assert f"{row.mean:.4f}" in text
            assert f"[{row.low:.4f}, {row.high:.4f}]" in text


def test_colours_go_to_terminals_alone_and_not_under_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    result = random_evaluation()
    assert "\x1b[" in table(result, stream=Terminal())
    assert "\x1b[" not in table(result, stream=io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    plain = table(result, stream=Terminal())
    assert "\x1b[" not in plain
    monkeypatch.setenv("COLUMNS", "80")
    assert table(result, stream=Terminal()) == repr(result)


def test_markup_in_names_is_text() -> None:
    note = Note("odd", 1, "query [bold]x[/bold] :smile: [/] is odd.")
    result = evaluation([0.5], by={"[red]": pa.array(["[/blue]"])}, notes=[note])
    text = table({"[b]": result})
    for odd in ("[red]", "[/blue]", "[b]", note.message):
        assert odd in text


def test_the_queries_that_enter_each_mean_are_shown_beside_several_systems() -> None:
    skipping = evaluation([math.nan, 0.5, 1.0], (SKIPPING,), no_relevant=[1])
    bounded = evaluation([0.5, 0.5, 1.0], (SKIPPING,), bounds=Bounds(np.zeros((3, 1)), np.ones((3, 1)), np.ones((3, 1))))
    text = table({"a": skipping, "b": bounded})
    assert "n = 2" in text
    assert "ties [0.0000, 1.0000]" in text
    assert re.search(r"^queries\s+3\s+3$", text, re.MULTILINE)


def test_notes_say_whose_they_are_unless_all_share_them() -> None:
    plain, noted = random_evaluation(notes=[]), random_evaluation()
    assert "note: b: 7 queries" in table({"a": plain, "b": noted})
    assert table({"a": noted, "b": noted}).count("7 queries") == 1


def test_systems_judged_by_different_metrics_are_not_put_side_by_side() -> None:
    linear = evaluation([0.5], (replace(NDCG10, gain="linear"),))
    with pytest.raises(InputError, match=r"'a' and 'b' were judged by different metrics: .*'exp2'.*'linear'"):
        table({"a": evaluation([0.5]), "b": linear})
    with pytest.raises(InputError, match="no result to show"):
        table({})
    with pytest.raises(InputError, match=r"format must be one of 'table', 'json'.* not 'pdf'"):
        table(linear, "pdf")


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_separated_values_are_a_record_per_system_slice_and_metric_in_full_precision(form: str) -> None:
    systems = {"a": random_evaluation(), "b": random_evaluation(seed=1)}
    records = list(csv.DictReader(io.StringIO(table(systems, form)), delimiter="," if form == "csv" else "\t"))
    assert len(records) == 2 * 3 * (1 + 3)
    for record in records:
        summary = systems[record["system"]].summary()
        rows = summary.slices[record["by"]][None if record["value"] == "null" else record["value"]].rows if record["by"] else summary.rows
        (row,) = (row for row in rows if row.name == record["metric"])
        assert [float(record[name]) for name in ("mean", "low", "high", "standard_error")] == [
            row.mean,
            row.low,
            row.high,
            row.standard_error,
        ]
        assert (record["full_name"], record["formula"], int(record["n_queries"])) == (str(row.metric), row.metric.formula, row.n_queries)
        assert (record["convention"], record["notes"]) == ("fastrank", "7 queries have documents with equal scores.")


def test_a_single_result_needs_no_system_nor_slice_columns() -> None:
    bounds = Bounds(np.zeros((2, 1)), np.ones((2, 1)), np.ones((2, 1)))
    header, record = csv.reader(io.StringIO(table(evaluation([0.25, 0.75], bounds=bounds), "csv")))
    assert header[:2] == ["metric", "mean"]
    assert dict(zip(header, record, strict=True)) | {"mean": "0.5", "lowest": "0.0", "highest": "1.0"} == dict(
        zip(header, record, strict=True)
    )


def test_json_of_several_systems_names_them() -> None:
    systems = {"a": random_evaluation(), "b": random_evaluation(seed=1)}
    read = json.loads(table(systems, "json"))["systems"]
    assert read == {name: json.loads(system.to_json()) for name, system in systems.items()}
    assert table(systems["a"], "json") == systems["a"].to_json()


def test_markdown_is_a_table_with_formulas_and_notes() -> None:
    result = random_evaluation(by={"a|b": pa.array(["x|y"] * 60)})
    text = table(result, "markdown")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows[:5]} == {7}
    assert r"x\|y" in text
    assert f"`{NDCG10.formula}`" in text.replace("nDCG@10 = ", "")
    assert "> 7 queries have documents with equal scores." in text


def test_latex_escapes_what_it_must_and_uses_booktabs() -> None:
    text = table(random_evaluation(by={"50%_&": pa.array(["a_b^c\\d"] * 60)}), "latex")
    for part in (r"\toprule", r"\midrule", r"\bottomrule", r"by 50\%\_\&", r"a\_b\textasciicircum{}c\textbackslash{}d", r"r $\leq$ 10"):
        assert part in text
    assert text.count("{") == text.count("}")
    assert "7 queries have documents with equal scores." in text


def test_html_is_escaped_and_well_formed() -> None:
    import xml.etree.ElementTree as ET

    result = random_evaluation(by={"<by>": pa.array(["<a>"] * 60)})
    text = result._repr_html_()
    tree = ET.fromstring(text.replace("<br>", "<br/>"))
    assert [caption.text for caption in tree.iter("caption")] == ["60 queries, convention fastrank", "by <by>"]
    assert "<li>7 queries have documents with equal scores.</li>" in text
    assert "<ul>" not in random_evaluation(notes=[])._repr_html_()
    assert result.summary()._repr_html_() == text


def test_a_result_names_each_metric_as_it_was_spelled_in_its_call() -> None:
    for name in ("RR(rel=1)", "RR", "RR(rel=1, ties='average')"):
        assert list(fr.evaluate([1, 0], metrics=[fr.parse_metric(name)]).mean()) == [name]


def test_a_convention_of_the_wrong_type_is_one_line() -> None:
    with pytest.raises(fr.InputError, match="convention must be one of"):
        fr.evaluate([1, 0], convention=[])  # type: ignore[arg-type]


def through_pickle(result: fr.Evaluation) -> fr.Evaluation:
    there: fr.Evaluation = pickle.loads(pickle.dumps(result))  # noqa: S301 - bytes of a line before
    return there


@pytest.mark.parametrize("copied", [through_pickle, copy.deepcopy, copy.copy])
def test_a_result_goes_to_other_processes(copied: Callable[[fr.Evaluation], fr.Evaluation]) -> None:
    result = fr.evaluate([1, 0, 0, 1], [1, 1, 2, 2], [0, 2, 4], by={"x": ["a", "b"]}, weights=[1, 2], bounds=True)
    there = copied(result)
    assert there.to_json() == result.to_json()
    assert there.notes == result.notes != ()
    assert there.values is not None
    assert not there.values.flags.writeable

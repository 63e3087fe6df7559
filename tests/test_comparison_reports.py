"""A comparison shown: movers, every form of the report, and the documents behind single queries."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from comparing import QUALITIES, compare, per_query, systems

import fastrank as fr
from fastrank.comparison.documents import Documents, explain_with, from_runs, from_tables
from fastrank.comparison.outcome import about, p_text
from fastrank.errors import InputError
from fastrank.report.compared import FORMS, comparison_text

# --- out ------------------------------------------------------------------------------------------------------------------------


def test_movers_are_the_queries_that_moved_most() -> None:
    found = compare(per_query([0.5, 0.5, 0.5, 0.5], [0.5, 0.9, 0.2, 0.6]))
    assert [(each.query_id, round(each.difference, 1)) for each in found.movers()] == [(1, 0.4), (2, -0.3), (3, 0.1)]
    assert [each.query_id for each in found.movers(n=1)] == [1]
    assert found.movers("other", "one")[0].difference == pytest.approx(-0.4)
    assert [each.query_id for each in found.movers(only="gains")] == [1, 3]
    assert [each.query_id for each in found.movers(only="losses")] == [2]
    with pytest.raises(InputError, match="only must be"):
        found.movers(only="both")
    with pytest.raises(InputError, match="'three' is not among the systems"):
        found.movers("three")
    with pytest.raises(InputError, match="'RR' is not among the metrics"):
        found.movers(metric="RR")


@pytest.fixture(scope="module")
def two() -> fr.Comparison:
    return compare(systems(by={"part": ["x", None] * 30}), primary="nDCG@10", n_resamples=300)


@pytest.fixture(scope="module")
def four() -> fr.Comparison:
    return compare(systems(qualities=QUALITIES, by={"part": ["x", None] * 30}), primary="nDCG@10", test="anova", n_resamples=300)


@pytest.fixture(scope="module")
def untold() -> fr.Comparison:
    return compare(systems(qualities=QUALITIES, by={"part": ["x", None] * 30}), n_resamples=2000)


def test_json_is_strict_and_whole(two: fr.Comparison, four: fr.Comparison) -> None:
    for found in (two, four):
        told = json.loads(found.to_json(), parse_constant=pytest.fail)
        assert told["verdict"] == found.verdict
        assert [each["verdict"] for each in told["differences"]] == [each.verdict for each in found.differences]
        assert [each["watched"] for each in told["metrics"]] == [False, True, True]
        assert told["metrics"][0]["formula"] == found.metrics[0].formula
        assert len(told["slices"]) == len(found.slices)


def test_arrow_holds_a_row_per_difference(two: fr.Comparison) -> None:
    table = two.to_arrow()
    assert table.num_rows == len(two.differences) + len(two.slices)
    assert table.column("difference").to_pylist()[0] == two.differences[0].difference.estimate
    assert table.column("p").to_pylist()[1] is None
    assert json.loads(table.schema.metadata[b"fastrank"])["verdict"] == two.verdict
    plain = compare(systems(), primary="RR", n_resamples=100).to_arrow()
    assert "by" not in plain.column_names


def test_csv_has_every_number_in_full(two: fr.Comparison) -> None:
    for form, delimiter in (("csv", ","), ("tsv", "\t")):
        rows = list(csv.DictReader(io.StringIO(comparison_text(two, form)), delimiter=delimiter))
        assert float(rows[0]["difference"]) == two.differences[0].difference.estimate
        assert (rows[1]["p"], rows[1]["verdict"]) == ("", "")
        assert [row["value"] for row in rows[3:]] == ["x", "null"]


@pytest.mark.parametrize("form", [*FORMS, "html"])
def test_every_form_says_the_verdict_or_holds_it(two: fr.Comparison, four: fr.Comparison, untold: fr.Comparison, form: str) -> None:
    for found in (two, four, untold):
        text = comparison_text(found, form)
        assert "better" in text
        assert not text.endswith("\n")


def test_the_table_shows_what_there_is(two: fr.Comparison, four: fr.Comparison, untold: fr.Comparison) -> None:
    shown = repr(two)
    for words in ("nDCG@10 (decides)", "watched", "won / tied /", "by part", "how many queries", "moved most", "permutation test", "dz"):
        assert words in shown
    shown = repr(four)
    for words in ("analysis of variance", "discriminative power", "Kendall's tau", "d − a", "watched: difference"):
        assert words in shown
    assert "Holm's correction, 18 comparisons" in repr(untold)
    assert two._repr_html_().startswith('<div class="fastrank">')


def test_latex_is_booktabs_and_escapes(two: fr.Comparison) -> None:
    text = comparison_text(two, "latex")
    assert r"\toprule" in text
    assert "−" not in text
    assert "5\\%" in text


def test_an_unknown_form_is_an_error(two: fr.Comparison) -> None:
    with pytest.raises(InputError, match="format must be one of"):
        comparison_text(two, "pdf")


def test_numbers_in_words() -> None:
    assert [p_text(p) for p in (1.0, 0.99951, 0.0321, 1e-5, 5e-324)] == ["p = 1", "p = 1", "p = 0.032", "p = 1e-05", "p < 1e-300"]
    assert [about(n) for n in (7, 92, 872, 2798, 123_456)] == ["7", "92", "870", "2,800", "120,000"]


def test_what_has_no_number_is_a_dash_or_an_infinity() -> None:
    from fastrank.report import compared

    assert compared.number(math.nan) == "–"
    assert compared.signed(math.inf) == "∞"
    assert compared.signed(-math.inf) == "−∞"
    assert compared.span(math.nan, 1.0) == "–"
    assert compared.percent(math.nan) == "–"
    assert compared.p_cell(None) == ""


def test_one_query_is_compared_without_an_interval() -> None:
    found = compare(per_query([0.5], [0.6]))
    assert found.differences[0].p == 1.0
    assert math.isnan(found.differences[0].difference.low)
    assert found.planning == ()
    assert json.loads(found.to_json())["differences"][0]["difference"]["low"] is None
    assert repr(found)
    assert compare(per_query([0.5], [0.6]), test="anova").anova == {}


# --- documents ------------------------------------------------------------------------------------------------------------------


def test_documents_of_queries_are_found_again_in_tables(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids = ["q1", "q1", "q2", "q2", "q1"]  # q1 stands apart
    columns = {"query_id": ids, "doc_id": list("abcde"), "label": [2, 0, 1, None, 1], "s": [0.5, 0.7, None, 0.1, 0.2], "t": [1.0] * 5}
    path = tmp_path / "predictions.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    sources = {"s": (path, "s"), "t": (path, "t")}
    found = from_tables(sources, ["q1"], query="query_id", label="label", doc="doc_id")
    assert set(found) == {("s", "q1"), ("t", "q1")}
    assert found["s", "q1"] == Documents([2, 0, 1], [0.5, 0.7, 0.2], ["a", "b", "e"])
    whole = from_tables({"s": (path, "s")}, ["q2"], query="query_id", label="label")
    assert whole["s", "q2"].doc_ids is None
    explained = explain_with(found, fr.parse_metric("nDCG@2"), convention="fastrank")
    expected = fr.evaluate([2, 0, 1], [0.5, 0.7, 0.2], metrics=["nDCG@2"]).mean()["nDCG@2"]
    worked = explained("s", "q1")
    assert worked is not None
    assert worked.value == expected
    assert explained("s", "q7") is None


def test_documents_of_queries_are_found_again_in_runs() -> None:
    qrels = fr.Qrels.read(b"1 0 a 2\n1 0 b 1\n2 0 a 1\n")
    run = fr.Run.read(b"1 Q0 c 1 0.9 x\n1 Q0 a 2 0.5 x\n2 Q0 b 1 0.5 x\n")
    found = from_runs(qrels, {"x": run}, [1])
    assert found == {("x", "1"): Documents([None, 2.0, 1.0], [pytest.approx(0.9), pytest.approx(0.5), None], ["c", "a", "b"])}
    explained = explain_with(found, fr.parse_metric("nDCG@5", convention="trec_eval"), convention="trec_eval")
    worked = explained("x", 1)
    assert worked is not None
    assert worked.value == pytest.approx(fr.evaluate_run(qrels, run, "nDCG@5")["nDCG@5"][0])


def test_queries_that_stand_apart_in_a_stream_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    from fastrank.comparison import documents
    from fastrank.io.tables import Scattered, read_columns

    def once_through(*arguments: Any, regroup: bool = False, **roles: Any) -> Any:
        if not regroup:
            raise Scattered(SimpleNamespace(where="table.parquet"))
        return read_columns(*arguments, regroup=regroup, **roles)

    monkeypatch.setattr(documents, "read_columns", once_through)
    path = tmp_path / "table.parquet"
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"query_id": ["a", "b", "a"], "label": [1, 0, 2], "s": [0.1, 0.2, 0.3]}), path)
    found = from_tables({"s": (path, "s")}, ["a"], query="query_id", label="label")
    assert found["s", "a"].labels == [1, 2]


def test_categories_are_slices_by_their_values() -> None:
    import pyarrow as pa

    part = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2] * 20), pa.array(["x", "x", "y"]))
    found = compare(systems(by={"part": part}), primary="RR")
    assert [(each.value, each.found.n_queries) for each in found.slices] == [("x", 40), ("y", 20)]

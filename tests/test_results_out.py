"""Results that travel: saved and loaded to the last bit, in the formats of other programs, and never half-written."""

from __future__ import annotations

import csv
import datetime as dt
import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.convention import Convention, conventions
from fastrank.errors import InputError
from fastrank.evaluation import Bounds, Evaluation, Note
from fastrank.gains import as_gain
from fastrank.report import saved
from fastrank.report.per_query import check_per_query, write_per_query

METRICS = (
    "nDCG@10",
    "nDCG(gain='linear')@10",
    fr.metrics.nDCG(k=5, gain={0: 0, 1: 0.1, 2: 3.5, 3: 1e-17}),
    "nDCG(discount=[1, 0.5, 0.1])@20%",
    "RR",
    "AP",
    "NumRel",
)
N = 40


def example(**options: Any) -> Evaluation:
    """An evaluation with everything in it."""
    rng = np.random.default_rng(2)
    given: dict[str, Any] = {
        "sizes": [6] * N,
        "metrics": METRICS,
        "weights": rng.random(N),
        "by": {"seg": [("head", "tail", None)[i % 3] for i in range(N)], "day": [dt.date(2024, 1, 1 + i % 4) for i in range(N)]},
        "bounds": True,
    }
    given |= options
    return fr.evaluate(rng.integers(0, 4, 6 * N), rng.random(6 * N).round(1), **given)


def travelled(result: Evaluation, folder: Path) -> Evaluation:
    result.save(folder / "r.parquet")
    return fr.load(folder / "r.parquet")


def same(found: Evaluation, result: Evaluation) -> None:
    """Equal in every number, to the last bit."""
    for name in ("metrics", "names", "convention", "n_queries", "no_relevant", "notes", "moments"):
        assert getattr(found, name) == getattr(result, name), name
    assert [metric.short_name for metric in found.metrics] == [metric.short_name for metric in result.metrics]
    for name in ("values", "weights"):
        one, other = getattr(found, name), getattr(result, name)
        assert (one is None) == (other is None)
        assert one is None or (one.tobytes(), one.dtype) == (other.tobytes(), other.dtype)
    if result.bounds is None:
        assert found.bounds is None
    else:
        for side in ("low", "high", "if_relevant"):
            assert getattr(found.bounds, side).tobytes() == getattr(result.bounds, side).tobytes()
    assert (found.query_ids is None) == (result.query_ids is None)
    assert result.query_ids is None or found.query_ids.to_pylist() == result.query_ids.to_pylist()
    # Not equal to itself: NaN.
    assert repr({name: array.to_pylist() for name, array in found.by.items()}) == repr(
        {name: array.to_pylist() for name, array in result.by.items()}
    )
    assert repr(found.slice_moments) == repr(result.slice_moments)
    assert found.to_json() == result.to_json()
    assert repr(found) == repr(result)


# --- save and load --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": None, "by": None, "bounds": False},
        {"metrics": "RR", "no_relevant": "skip"},
        {"no_relevant": "nan", "metrics": "nDCG@3,AP"},
        {"convention": "lightgbm", "metrics": "ndcg@5,map@5", "bounds": False},
        {"convention": "xgboost", "metrics": "ndcg@5", "bounds": False},
        {"ties": "worst", "depth": 3},
    ],
    ids=str,
)
def test_what_is_loaded_is_what_was_saved(options: dict[str, Any], tmp_path: Path) -> None:
    result = example(**options)
    same(travelled(result, tmp_path), result)


def test_a_result_without_queries_travels(tmp_path: Path) -> None:
    result = fr.evaluate([], [], [0], metrics="RR,AP", by={"seg": pa.array([], pa.string())}, weights=[])
    same(travelled(result, tmp_path), result)


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["b", "a", "ü"]),
        pa.array(["b", "a", ""], pa.large_string()),
        pa.array(["b", "a", "longer than twelve"], pa.string_view()),
        pa.array([b"\xff", b"", b"a"]),
        pa.array([3, 1, 2**64 - 1], pa.uint64()),
        pa.array([3, 1, -1], pa.int8()),
        pa.array(["b", "a", "b2"]).dictionary_encode(),
        pa.array([Decimal("1.50"), Decimal(2), Decimal(-3)]),
        pa.array([dt.date(2024, 1, day) for day in (3, 1, 2)]),
        pa.array([0, 1, 2], pa.timestamp("ns", "Europe/Berlin")),
        pa.array(["x", "0", "1", "2", "y"])[1:4],
    ],
    ids=lambda ids: str(ids.type),
)
def test_ids_of_every_type_travel(ids: pa.Array, tmp_path: Path) -> None:
    made = fr.evaluate([[1, 0], [0, 1], [0, 0]], metrics="RR", by={"group": ids})
    result = Evaluation(
        made.metrics, made.convention, values=made.values, n_queries=3, no_relevant=made.no_relevant, query_ids=ids, by={"group": ids}
    )
    found = travelled(result, tmp_path)
    assert found.query_ids.to_pylist() == ids.to_pylist()
    assert list(found.slices["group"]) == list(result.slices["group"])


def test_every_double_travels(tmp_path: Path) -> None:
    values = np.array([[math.nan, 0.0], [-0.0, 5e-324], [1 / 3, np.nextafter(1, 0)], [0.0, 1e308]])
    values.view(np.int64)[0, 0] |= 7  # a NaN of its own
    metrics = fr.evaluate([1], metrics="RR,AP").metrics
    bounds = Bounds(values - 1, values, values + 1)
    result = Evaluation(metrics, conventions["fastrank"], values=values, n_queries=4, no_relevant=(1, 0), bounds=bounds)
    found = travelled(result, tmp_path)
    assert found.values is not None
    assert found.values.tobytes() == values.tobytes()
    assert found.bounds is not None
    assert found.bounds.low.tobytes() == (values - 1).tobytes()


@pytest.mark.parametrize("per_query", [True, False])
def test_a_stream_without_single_queries_travels_as_its_sums(per_query: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = pa.array([dt.date(2024, 1, 1 + i % 3) if i % 5 else None for i in range(N)])
    table = pa.table(
        {
            "query_id": np.repeat(np.arange(N), 6),
            "label": rng.integers(0, 3, 6 * N),
            "score": rng.random(6 * N).round(1),
            "day": days.take(pa.array(np.repeat(np.arange(N), 6))),
            "share": pa.array(np.repeat([math.nan, 0.5], 3 * N)),
            "key": pa.array(np.repeat([b"\xff", b"a"], 3 * N)),
        }
    )
    result = fr.evaluate_table(table, ("nDCG@10", "RR"), by=["day", "share", "key"], per_query=per_query)
    assert isinstance(result, Evaluation)
    assert (result.values is None) is not per_query
    found = travelled(result, tmp_path)
    same(found, result)
    assert found.mean() == result.mean()
    whole = fr.evaluate_table(table, ("nDCG@10", "RR"), by=["day", "share", "key"])
    assert found.to_json() == whole.to_json()


def test_a_convention_of_ones_own_travels_with_all_its_choices(tmp_path: Path) -> None:
    own = replace(
        conventions["xgboost"],
        name="ours",
        gain=as_gain({0: 0, 1: 1, 2: 2, 3: 7.25}),
        source="[made] {here}",
        families=(("nDCG", (("no_relevant", "one"),)),),
    )
    result = example(convention=own, bounds=False, metrics=("ndcg@5", "RR"))
    found = travelled(result, tmp_path)
    assert found.convention == own
    assert found["nDCG@5"].tobytes() == result["nDCG@5"].tobytes()


def test_a_named_convention_that_was_overridden_stays_so(tmp_path: Path) -> None:
    found = travelled(example(ties="best", bounds=False), tmp_path)
    assert (found.convention.name, found.convention.ties) == ("fastrank", "best")
    assert found.convention != conventions["fastrank"]
    assert travelled(example(), tmp_path).convention is conventions["fastrank"]


def test_columns_that_take_the_names_of_others_travel(tmp_path: Path) -> None:
    names = ("query_id", "weight", "RR", "RR.low", "AP.high", "RR_")
    result = example(metrics="RR,AP", by={name: [f"{name} {i % 2}" for i in range(N)] for name in names})
    same(travelled(result, tmp_path), result)


def test_metrics_that_share_a_short_name_travel(tmp_path: Path) -> None:
    one, other = (fr.parse_metric("nDCG@10", name) for name in ("fastrank", "sklearn"))
    result = example(metrics=[one, other], bounds=False)
    assert result.names == (str(one), str(other))
    same(travelled(result, tmp_path), result)


def test_a_saved_file_is_a_table_for_any_reader(tmp_path: Path) -> None:
    result = example()
    result.save(str(tmp_path / "r.parquet"))
    assert pq.read_table(tmp_path / "r.parquet").equals(result.to_arrow())


def test_no_pickle_is_in_a_saved_file(tmp_path: Path) -> None:
    example().save(tmp_path / "r.parquet")
    about = json.loads(pq.read_metadata(tmp_path / "r.parquet").metadata[b"fastrank"])
    assert about["format"] == 1
    assert [each["full_name"] for each in about["metrics"]] == [str(metric) for metric in example().metrics]


# --- what cannot be loaded ------------------------------------------------------------------------------------------------------


def changed(folder: Path, change: Any) -> Path:
    """A saved file whose metadata were changed."""
    example().save(folder / "r.parquet")
    table = pq.read_table(folder / "r.parquet")
    about = json.loads(table.schema.metadata[b"fastrank"])
    change(about)
    pq.write_table(table.replace_schema_metadata({"fastrank": json.dumps(about)}), folder / "r.parquet")
    return folder / "r.parquet"


CHANGES = {
    "a newer format": (lambda about: about.update(format=2), "it was written in format 2, and this version reads format 1. Use a newer"),
    "no format": (lambda about: about.pop("format"), "is damaged: its metadata do not describe it"),
    "no metrics": (lambda about: about.pop("metrics"), "is damaged"),
    "a metric of the future": (
        lambda about: about["metrics"][0].update(full_name="Future@10"),
        "cannot be loaded: 'Future@10' is not a known metric",
    ),
    "another column": (lambda about: about["metrics"][0].update(column="other"), "is damaged"),
    "a choice of the future": (
        lambda about: about["convention"].update(mood="good"),
        "makes choices that this version does not know: mood",
    ),
    "too few rows": (lambda about: about.update(n_queries=99), "it has 40 rows for 99 queries: another program has changed it"),
    "a list": (lambda about: about.update(convention=[1]), "is damaged"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_metadata_that_do_not_fit_are_one_line(what: str, tmp_path: Path) -> None:
    change, message = CHANGES[what]
    path = changed(tmp_path, change)
    with pytest.raises(InputError) as caught:
        fr.load(path)
    assert str(caught.value).startswith(f"{path} ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_no_saved_evaluation_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"query_id": [1]}), path)
    with pytest.raises(InputError, match=rf"^{path} is no saved Evaluation: fastrank has not written it\. To judge .* evaluate_table"):
        fr.load(path)
    pq.write_table(pa.table({"query_id": [1]}, metadata={"fastrank": "no JSON"}), path)
    with pytest.raises(InputError, match="is damaged"):
        fr.load(path)
    example().save(path)
    whole = path.read_bytes()
    for content in (b"", b"query_id,RR\n", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(content)
        with pytest.raises(InputError, match=rf"^{path} cannot be loaded: [^\n]+$"):
            fr.load(path)
    with pytest.raises(InputError, match=r"none\.parquet cannot be loaded: No such file or directory"):
        fr.load(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="cannot be loaded: Is a directory"):
        fr.load(tmp_path)


def test_save_refuses_names_that_promise_another_format(tmp_path: Path) -> None:
    for name in ("r.csv", "r.JSON", "r.pkl", "r.arrow", "r.feather", "r.orc", "r.xlsx"):
        with pytest.raises(InputError, match=r"save writes Parquet, and .* name it \.parquet, or write another format by"):
            example().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


# --- single queries for other programs ------------------------------------------------------------------------------------------


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix in (".csv", ".tsv"):
            return list(csv.DictReader(file, delimiter="," if path.suffix == ".csv" else "\t"))
        return [json.loads(line) for line in file]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".tsv", ".jsonl", ".ndjson"])
def test_single_queries_are_written_in_full_precision(suffix: str, tmp_path: Path) -> None:
    result = example(query_ids=None, no_relevant="nan")
    path = tmp_path / f"out{suffix}"
    assert write_per_query({"": result}, path) == [path]
    rows = rows_of(path)
    assert len(rows) == N
    assert list(rows[0]) == result.to_arrow().column_names
    for name in result.names:
        column = np.array([math.nan if row[name] is None else float(row[name]) for row in rows])
        assert column.tobytes() == result[name].tobytes() or np.isnan(column).any()
    assert [row["seg"] or None for row in rows] == result.by["seg"].to_pylist()
    assert [str(row["day"]) for row in rows] == [str(day) for day in result.by["day"].to_pylist()]


def test_ids_with_anything_in_them_survive_separated_values(tmp_path: Path) -> None:
    ids = ["a,b", 'say "x"', "tab\tbed", "line\nfeed", "ü", " x", ""]
    made = fr.evaluate([[1]] * len(ids), metrics="RR")
    result = Evaluation(made.metrics, made.convention, values=made.values, n_queries=len(ids), no_relevant=(0,), query_ids=pa.array(ids))
    for suffix in (".csv", ".tsv", ".jsonl"):
        write_per_query({"": result}, tmp_path / f"out{suffix}")
        assert [row["query_id"] for row in rows_of(tmp_path / f"out{suffix}")] == ids
    raw = pa.array([f"{i}".encode() + b"\xff" for i in range(len(ids))])
    result = Evaluation(made.metrics, made.convention, values=made.values, n_queries=len(ids), no_relevant=(0,), query_ids=raw)
    write_per_query({"": result}, tmp_path / "out.csv")
    assert rows_of(tmp_path / "out.csv")[3]["query_id"] == "3\\xff"


def test_several_systems_are_files_beside_each_other(tmp_path: Path) -> None:
    systems = {"bm25": example(), "a/b c": example(ties="worst")}
    paths = write_per_query(systems, tmp_path / "out.csv")
    assert [path.name for path in paths] == ["out.bm25.csv", "out.a_b_c.csv"]
    assert all(len(rows_of(path)) == N for path in paths)
    with pytest.raises(InputError, match="would be written for two systems"):
        write_per_query({"a b": example(), "a_b": example()}, tmp_path / "out.csv")


def test_a_name_without_a_known_ending_is_an_error_before_the_work(tmp_path: Path) -> None:
    for name in ("out", "out.xlsx", "out.csv.gz"):
        with pytest.raises(InputError, match=r"the name must end in \.parquet, \.csv, \.tsv, \.jsonl, \.ndjson, which says the format"):
            check_per_query(tmp_path / name)
    check_per_query(tmp_path / "OUT.CSV")
    with pytest.raises(InputError, match="there is no directory"):
        check_per_query(tmp_path / "none" / "out.csv")


# --- summaries ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "csv", "tsv", "markdown", "latex", "html", "table"])
def test_every_form_has_the_slices_the_full_formulas_and_the_notes(form: str) -> None:
    from fastrank.report.text import table

    note = Note("odd", 3, "3 queries are odd.")
    made = example(metrics="nDCG@10,RR", bounds=False)
    result = Evaluation(
        made.metrics,
        made.convention,
        values=made.values,
        n_queries=N,
        no_relevant=made.no_relevant,
        by=made.by,
        weights=made.weights,
        notes=[note],
    )
    text = table(result, form)
    # Line breaks, and what TeX and HTML make of signs, aside.
    bare = "".join(text.split())
    for value in ("head", "tail", "2024-01-04", "3queriesareodd."):
        assert value in bare
    words = {"html": ("nDCG(gain=&#x27;exp2&#x27;",), "latex": (r"nDCG(gain=\textquotesingle{}exp2",)}.get(form, ("nDCG(gain='exp2'",))
    for word in (*words, "divided"):
        assert word in bare
    mean = result.slices["seg"]["head"].rows[0].mean
    assert (repr(mean) if form in ("json", "csv", "tsv") else f"{mean:.4f}") in text


def test_a_row_of_latex_begins_with_nothing_that_the_row_before_would_take() -> None:
    from fastrank.report.text import table

    text = table(fr.evaluate([[1], [1]], metrics="RR", by={"by": ["[a]", "*b"]}), "latex")
    assert "{}[a] & 1" in text
    assert "{}*b & 1" in text


def test_html_brings_no_colours_but_those_of_the_page() -> None:
    text = example()._repr_html_()
    style = text[text.index("<style>") : text.index("</style>")]
    assert "color: inherit" in style
    assert "#" not in style
    assert "prefers-color-scheme" not in style
    assert text.count("scope='row'") == len(METRICS) + 3 + 4


def test_a_convention_can_be_made_of_its_json_fields() -> None:
    for convention in conventions.values():
        fields = json.loads(fr.evaluation.to_json(fr.evaluation.convention_to_dict(convention)))
        assert saved._convention(fields) is convention
    assert isinstance(saved._convention({"name": "x", "source": "y"}), Convention)

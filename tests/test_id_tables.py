"""Judgements and rankings in tables of any format, against the same in dicts."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from dict_pairs import Dicts, outcome, text

import fastrank as fr
from fastrank.errors import InputError
from fastrank.io import formats, recognition

# --- tables ---------------------------------------------------------------------------------------------------------------------


def tables(qrels: Dicts, run: Dicts) -> list[pa.Table]:
    columns = []
    for dicts in (qrels, run):
        rows = [(query, doc, value) for query, documents in dicts.items() for doc, value in documents.items()]
        columns.append(dict(zip(("query_id", "doc_id", "label" if dicts is qrels else "score"), zip(*rows, strict=True), strict=True)))
    return [pa.table({name: list(column) for name, column in each.items()}) for each in columns]


QRELS = {"q1": {"a": 1, "b": 0}, "q2": {"a": 2, "c": 1}}
RUN = {"q1": {"b": 2.5, "a": 1.5, "x": 1.0}, "q2": {"x": 9.0, "c": 8.0}}
LABELS, SCORES = tables(QRELS, RUN)


def rows_as_json(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "x.parquet": lambda table, path: pq.write_table(table, path),
    "parquet": lambda table, path: pq.write_table(table, path),
    "x.feather": lambda table, path: pa.feather.write_feather(table, path),
    "x.orc": lambda table, path: pa.orc.write_table(table, path),
    "x.csv": lambda table, path: pa.csv.write_csv(table, path),
    "tabs.tsv": lambda table, path: path.write_text(table.to_pandas().to_csv(sep="\t", index=False)),
    "csv": lambda table, path: pa.csv.write_csv(table, path),
    "x.jsonl": rows_as_json,
    "lines": rows_as_json,
    "x.csv.gz": lambda table, path: path.write_bytes(gzip.compress(table.to_pandas().to_csv(index=False).encode())),
    "packed": lambda table, path: path.write_bytes(gzip.compress(table.to_pandas().to_csv(index=False).encode())),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_in_any_format_is_known_for_a_table(name: str, tmp_path: Path) -> None:
    if name in ("tabs.tsv", "x.csv.gz", "packed"):
        pytest.importorskip("pandas", reason="pandas is not installed")
    for folder, table in (("qrels", LABELS), ("run", SCORES)):
        (tmp_path / folder).mkdir()
        WRITERS[name](table, tmp_path / folder / name)
    expected = outcome(QRELS, RUN)
    places = [str(tmp_path / folder / name) for folder in ("qrels", "run")]
    assert outcome(*places) == expected
    assert outcome(*map(Path, places)) == expected
    assert outcome([places[0]], str(tmp_path / "run" / "*")) == expected
    assert outcome(f"file://{places[0]}", tmp_path / "run") == expected
    assert outcome(text(QRELS, "0 {} {}"), places[1]) == expected
    assert outcome(QRELS, fr.Run.from_table(places[1])) == expected


def frames() -> dict[str, Any]:
    """Qrels and a run of each make."""
    made: dict[str, Any] = {
        "Table": (LABELS, SCORES),
        "RecordBatchReader": (LABELS.to_reader(), SCORES.to_reader()),
        "RecordBatch": (LABELS.to_batches()[0], SCORES.to_batches()[0]),
        "Dataset": (pa.dataset.dataset(LABELS), pa.dataset.dataset(SCORES)),
        "relevance": (LABELS.rename_columns(["query_id", "doc_id", "relevance"]), SCORES),
        "categories": tuple(table.set_column(0, "query_id", table.column(0).dictionary_encode()) for table in (LABELS, SCORES)),
    }
    return made


@pytest.mark.parametrize("make", frames())
def test_arrow_data(make: str) -> None:
    assert outcome(*frames()[make]) == outcome(QRELS, RUN)


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
@pytest.mark.parametrize("label", ["label", "relevance"])
def test_data_frames(library: str, label: str) -> None:
    module = pytest.importorskip(library, reason=f"{library} is not installed")
    labels = LABELS.rename_columns(["query_id", "doc_id", label])
    if library == "duckdb":
        connection = module.connect()
        connection.register("judged", labels)
        connection.register("ranked", SCORES)
        found = [connection.sql(f"select * from {name}") for name in ("judged", "ranked")]
    else:
        found = [table.to_pandas() if library == "pandas" else module.from_arrow(table) for table in (labels, SCORES)]
    assert outcome(*found) == outcome(QRELS, RUN)


def test_columns_of_other_names() -> None:
    qrels = fr.Qrels.from_table(LABELS.rename_columns(["qid", "docno", "grade"]), query="qid", doc="docno", label="grade")
    run = fr.Run.from_table(SCORES.rename_columns(["qid", "docno", "bm25"]), query="qid", doc="docno", score="bm25")
    assert outcome(qrels, run) == outcome(QRELS, RUN)
    assert (qrels.name, run.n_documents) == ("the table", 5)


def test_nulls_in_tables() -> None:
    labels = LABELS.set_column(2, "label", pa.array([1, None, 2, 1]))
    scores = SCORES.set_column(2, "score", pa.array([2.5, 1.5, None, 9.0, 8.0]))
    expected = outcome({"q1": {"a": 1}, "q2": {"a": 2, "c": 1}}, {"q1": {"b": 2.5, "a": 1.5}, "q2": {"x": 9.0, "c": 8.0}})
    assert outcome(labels, scores) == expected


def test_rows_of_a_query_that_are_apart() -> None:
    order = pa.array([0, 3, 1, 4, 2])
    result = fr.evaluate_run(LABELS, SCORES.take(order), "AP")
    assert result["AP"].tolist() == fr.evaluate_run(QRELS, RUN, "AP")["AP"].tolist()
    assert [note.kind for note in result.notes if note.kind == "regrouped"] == ["regrouped"]


def test_scores_in_a_table_keep_their_order() -> None:
    for values in ([2**53, 2**53 + 1], [Decimal("0.10000000000000000001"), Decimal("0.10000000000000000002")]):
        table = pa.table({"query_id": ["q", "q"], "doc_id": ["a", "b"], "score": values})
        assert fr.evaluate_run({"q": {"b": 1}}, table, "RR", convention="fastrank").mean() == {"RR": 1.0}


@pytest.mark.parametrize("rule", ["first", "last", "max"])
def test_duplicates_in_tables(rule: str) -> None:
    twice = pa.concat_tables([SCORES, SCORES.set_column(2, "score", pa.array([1.0, 3.0, 0.0, 0.0, 10.0]))])
    with pytest.raises(InputError, match=r"document 'b' stands twice in query 'q1' of the table: row 0 and row 5\."):
        fr.evaluate_run(LABELS, twice)
    second = {"q1": {"b": 1.0, "a": 3.0, "x": 0.0}, "q2": {"x": 0.0, "c": 10.0}}
    best = {query: {doc: max(RUN[query][doc], second[query][doc]) for doc in RUN[query]} for query in RUN}
    kept = {"first": RUN, "last": second, "max": best}[rule]
    found = fr.evaluate_run(LABELS, twice, "AP,RR", duplicates=rule)
    assert found.values.tolist() == fr.evaluate_run(QRELS, kept, "AP,RR").values.tolist()


BAD_TABLES = [
    (LABELS.rename_columns(["query", "doc_id", "label"]), r'query: there is no column "query_id" in the table; .*'),
    (LABELS.select(["query_id", "doc_id"]), r'label: there is no column "label" in the table; its columns are "query_id", "doc_id"\.'),
    (LABELS.set_column(1, "doc_id", pa.array([1.0, 2, 3, 4])), r'doc column "doc_id" is double, and floats are not ids: .*'),
    (LABELS.set_column(1, "doc_id", pa.array(["a", None, "c", "d"])), r'doc column "doc_id" must not be null: row 1 is\. .*'),
    (LABELS.set_column(0, "query_id", pa.array([None, "q", "q", "q"])), r'query column "query_id" must not be null: row 0 is\. .*'),
    (LABELS.set_column(2, "label", pa.array(["1", "0", "2", "1"])), r'label column "label" is string, not a number: .*'),
    (
        LABELS.set_column(2, "label", pa.array([1, math.inf, 2, 1])),
        r"the table: labels must be finite: inf at query 'q1', document 'b' \(row 1\)\. .*",
    ),
    (
        LABELS.set_column(2, "label", pa.array([1, 0.5, 2, 1])),
        r"the table: labels must be whole numbers under the trec_eval .*",
    ),
    (pa.table([LABELS[0], LABELS[1], LABELS[2], LABELS[2]], [*LABELS.column_names, "label"]), r'label column "label" stands 2 times in .*'),
    ([1], r"qrels must be a file .*, a dict of dicts, a table, or fr\.Qrels, not list\."),
    (iter(()), r"qrels must be a file .*, a dict of dicts, a table, or fr\.Qrels, not tuple_iterator\."),
]


@pytest.mark.parametrize(("table", "message"), BAD_TABLES)
def test_what_is_wrong_with_a_table(table: Any, message: str) -> None:
    with pytest.raises(InputError, match=rf"^{message}$"):
        fr.evaluate_run(table, RUN)


def test_what_is_wrong_with_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bad.parquet").write_bytes(b"hello")
    Path("no.parquet").write_bytes(b"")
    Path("no.csv").write_text("qid,doc,label\n1,2,3\n")
    Path("text.csv").write_text("query_id,doc_id,label\nq,a,much\n")
    cut = gzip.compress(text(QRELS, "0 {} {}"))[:-6]
    Path("cut.gz").write_bytes(cut)
    for path, message in (
        ("empty", r"empty: a directory without files\."),
        ("*.xyz", r"\*\.xyz: no file matches this pattern\."),
        ("nowhere.parquet", r"nowhere\.parquet: No such file or directory"),
        ("bad.parquet", r"bad\.parquet: .*"),
        ("no.parquet", r"no\.parquet: the file is empty\."),
        ("no.csv", r'query: there is no column "query_id" in no\.csv; .*'),
        ("text.csv", r'label column "label" must hold numbers: row 0 has \'much\'\.'),
        ("cut.gz", r"cut\.gz: .*"),
    ):
        with pytest.raises(InputError, match=rf"^{message}$"):
            fr.evaluate_run(path, RUN)


def test_a_trec_file_is_none(tmp_path: Path) -> None:
    for name, content in (
        ("qrels.tsv", text(QRELS, "0 {} {}").replace(b" ", b"\t")),
        ("{q", b"{q1 0 a 1\n"),
        ("query_id", b"query_id 0 doc_id 1\n"),
        ("comment", b"# query_id, doc_id\nq 0 a 1\n"),
    ):
        (tmp_path / name).write_bytes(content)
        assert not recognition.is_table(tmp_path / name), name
    assert not recognition.is_table(b"PAR1")
    assert not recognition.is_table("-")


def test_the_signs_of_tables_are_those_of_their_readers() -> None:
    assert set(recognition.MAGIC) == set(formats.MAGIC)
    assert set(recognition.DELIMITERS) == set(formats.DELIMITERS)
    for suffix in (*formats.BINARY_SUFFIXES, *formats.JSON_SUFFIXES):
        assert recognition.NAMES.search(f"x{suffix}.gz"), suffix

"""Dicts of dicts and tables as qrels and runs: the short way over dicts has the bits and the notes of the general one."""

from __future__ import annotations

import gzip
import json
import math
import os
import random
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any

import conformance
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank.errors import InputError
from fastrank.io import formats, recognition
from fastrank.io.mapping import join_dicts

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"

Dicts = dict[Any, dict[Any, Any]]

METRICS = "nDCG@3,nDCG,AP,RR,P@2,R,bpref,AUC,ERR,Success@1,Judged@3,nDCG(judged_only=True)@3"
CUT = "nDCG@3,nDCG,AP,RR,P@2,R,Judged@3"


def the_general_way(dicts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The same mapping, but no dict."""
    return MappingProxyType(dicts)


def is_short(qrels: Dicts, run: Dicts, convention: str = "trec_eval") -> bool:
    return join_dicts(qrels, run, fr.conventions[convention], skip_missing=False, judged_only=False) is not None


def outcome(qrels: Any, run: Any, metrics: str = METRICS, **options: Any) -> Any:
    """Everything that a caller sees, but how the ids of queries are encoded."""
    result = fr.evaluate_run(qrels, run, metrics, **options)
    bounds = None if result.bounds is None else (result.bounds.low.tobytes(), result.bounds.high.tobytes())
    return result.values.tobytes(), result.query_ids.to_pylist(), result.notes, result.no_relevant, bounds


# --- the two ways ---------------------------------------------------------------------------------------------------------------

SPELLINGS: dict[str, Callable[[int], Any]] = {"text": str, "integers": int, "bytes": lambda n: str(n).encode()}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Dicts, Dicts, dict[str, Any]]:
    """Qrels and a run with ties, queries on one side alone, unjudged and unretrieved documents; and options for them."""
    convention = draw(st.sampled_from(["trec_eval", "trec_eval9", "fastrank", "lightgbm", "sklearn"]))
    lowest = -1 if convention.startswith("trec") else 0
    whole = st.integers(lowest, 3)
    labels = whole if lowest < 0 else whole | st.sampled_from([0.5, 1.7, Fraction(1, 3), np.float32(0.1)])
    scores = st.sampled_from([0, 1, True, 0.5, -0.0, 2**40, np.float32(0.1), 0.1, Fraction(1, 2), Decimal("0.5"), math.inf, -math.inf])
    query, document = (SPELLINGS[draw(st.sampled_from(sorted(SPELLINGS)))] for _ in range(2))
    sides: list[Dicts] = []
    for values in (labels, scores | st.floats(allow_nan=False)):
        documents = st.dictionaries(st.integers(0, 20).map(document), values, max_size=12)
        sides.append(draw(st.dictionaries(st.integers(8, 12).map(query), documents, max_size=4)))
    options: dict[str, Any] = {
        "convention": convention,
        "missing": draw(st.sampled_from(["zero", "skip"])),
        "judged_only": draw(st.booleans()),
        "ties": draw(st.sampled_from([None, "average", "input", "worst", "best", "docid"])),
        "depth": draw(st.sampled_from([None, None, 1, 3])),
        "threads": draw(st.sampled_from([1, 2])),
    }
    return *sides, options


@given(pairs())
@settings(max_examples=150 if COMPILED else 25, deadline=None)
def test_the_short_way_has_the_bits_and_the_notes_of_the_general_one(pair: tuple[Dicts, Dicts, dict[str, Any]]) -> None:
    qrels, run, options = pair
    metrics = METRICS if options["depth"] is None else CUT
    told = []
    for way in (dict, the_general_way):
        try:
            told.append(outcome(way(qrels), way(run), metrics, **options))
        except InputError as error:
            told.append(str(error))
    assert told[0] == told[1]


def random_pair(seed: int, n_queries: int = 12, longest: int = 300, ties: bool = True) -> tuple[Dicts, Dicts]:
    draw = random.Random(seed)
    qrels: Dicts = {}
    run: Dicts = {}
    for q in range(n_queries):
        docs = [f"d{i}" for i in draw.sample(range(1000), draw.randint(3, longest))]
        qrels[f"q{q}"] = {doc: draw.choice([0, 0, 0, 1, 2, 3]) for doc in docs if draw.random() < 0.3} or {docs[0]: 1}
        run[f"q{q}"] = {doc: draw.randint(-20, 20) / 4 if ties else draw.random() for doc in docs if draw.random() < 0.8} or {docs[0]: 1.0}
    del qrels["q3"], run["q5"]
    return qrels, run


@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("options", [{}, {"missing": "skip"}, {"judged_only": True}, {"ties": "input"}, {"bounds": True}])
def test_long_lists_take_the_short_way(ties: bool, options: dict[str, Any]) -> None:
    qrels, run = random_pair(1, ties=ties, longest=300 if COMPILED else 40)
    assert is_short(qrels, run)
    for threads in (1, 3):
        found = outcome(qrels, run, CUT, threads=threads, **options)
        assert found == outcome(the_general_way(qrels), the_general_way(run), CUT, **options)
        assert found[:3] == outcome(fr.Qrels.read(text(qrels, "0 {} {}")), fr.Run.read(text(run, "Q0 {} 1 {!r} t")), CUT, **options)[:3]


def text(dicts: Dicts, line: str) -> bytes:
    """A TREC file."""
    return "".join(f"{query} {line.format(doc, value)}\n" for query, docs in dicts.items() for doc, value in docs.items()).encode()


REAL = sorted(path.name.removesuffix(".full.json.gz") for path in (conformance.FOLDER / "real").glob("*.full.json.gz"))


@pytest.mark.compiled
@pytest.mark.skipif(not REAL, reason="no conformance data: ../shared/conformance is not beside this checkout")
@pytest.mark.parametrize("convention", ["trec_eval", "trec_eval9"])
@pytest.mark.parametrize("pair", REAL)
def test_real_files_as_dicts_have_the_bits_of_the_files(pair: str, convention: str) -> None:
    folder = conformance.FOLDER / "real"
    names = json.loads(gzip.decompress((folder / f"{pair}.full.json.gz").read_bytes()))["meta"]
    files = [conformance.FOLDER / names[kind] for kind in ("qrels", "run")]
    dicts: list[Dicts] = [{}, {}]
    for path, side, value in zip(files, dicts, (3, 4), strict=True):
        for line in path.read_text(encoding="utf-8").splitlines():
            fields = line.split()
            side.setdefault(fields[0], {})[fields[2]] = float(fields[value])
    assert is_short(*dicts, convention)
    for options in ({}, {"missing": "skip"}, {"judged_only": True}, {"ties": "average"}):
        found, expected = (fr.evaluate_run(*way, CUT, convention=convention, **options) for way in (dicts, files))
        assert found.values.tobytes() == expected.values.tobytes()
        assert found.query_ids.equals(expected.query_ids)


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("seed", range(4 if COMPILED else 1))
def test_pytrec_eval_returns_the_same(seed: int, judged_only: bool) -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    names = {"map", "ndcg", "ndcg_cut_5", "recip_rank", "P_5", "recall_5", "bpref", "num_rel_ret"}
    qrels, run = random_pair(seed, longest=60)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names, judged_docs_only_flag=judged_only).evaluate(run)
    result = fr.evaluate_run(qrels, run, names, convention="trec_eval9", missing="skip", judged_only=judged_only)
    for name in names:
        assert result[name].tolist() == pytest.approx([theirs[query][name] for query in result.query_ids.to_pylist()], abs=1e-12), name


@pytest.mark.parametrize("judged_only", [False, True])
@pytest.mark.parametrize("rule", ["docid", "input"])
def test_equal_scores_stand_by_id_or_in_the_order_of_the_dict(rule: str, judged_only: bool) -> None:
    ids = ["d9", "d10", "é", "z", "😀", "\uffff", "a\x00", "a"]
    draw = random.Random(7)
    for one in ids:
        for _ in range(5):
            draw.shuffle(ids)
            order = ids if rule == "input" else sorted(ids, key=str.encode, reverse=True)
            judged = {ids[0]: 0} | {one: 1} if judged_only else {one: 1}
            ranking = [doc for doc in order if doc in judged] if judged_only else order
            run = {"q": {"first": 2.0} | dict.fromkeys(ids, 1.0)}
            assert is_short({"q": judged}, run)
            found = fr.evaluate_run({"q": judged}, run, "RR", ties=rule, judged_only=judged_only)
            assert found["RR"][0] == 1 / (ranking.index(one) + (1 if judged_only else 2))


# --- numbers --------------------------------------------------------------------------------------------------------------------

NUMBERS = [0, 1, True, 2**62, np.int8(3), np.uint64(7), np.float16(0.5), np.float32(0.1), np.float64(0.1), np.bool_(True)]
NUMBERS += [Fraction(1, 3), Decimal("0.3"), -math.inf, np.array(2.5)]


def test_any_real_number_is_a_score() -> None:
    run = {"q": {str(place): number for place, number in enumerate(NUMBERS)}}
    order = sorted(run["q"], key=lambda doc: (float(run["q"][doc]), doc), reverse=True)
    for doc in run["q"]:
        assert is_short({"q": {doc: 1}}, run)
        assert fr.evaluate_run({"q": {doc: 1}}, run, "RR")["RR"][0] == 1 / (order.index(doc) + 1)


def test_any_real_number_is_a_label() -> None:
    for label in (2, np.int16(2), np.float32(2), Fraction(2), Decimal(2)):
        assert fr.evaluate_run({"q": {"a": label}}, {"q": {"a": 1}}, "DCG").mean() == {"DCG": 2.0}
    third = fr.evaluate_run({"q": {"a": Fraction(1, 3)}}, {"q": {"a": 1}}, "DCG(gain='linear')", convention="fastrank")
    assert third.mean() == {"DCG(gain='linear')": 1 / 3}


BEYOND = [[2**53, 2**53 + 1], [-(2**53) - 1, -(2**53)], [float(2**53), 2**53 + 1], [2**64, 2**64 + 1], [10**400, 10**400 + 1]]
BEYOND += [[-math.inf, -(10**400)], [np.int64(2**53), np.int64(2**53 + 1)], [Fraction(2**60 * 3, 3), Decimal(2**60 + 1)]]


@pytest.mark.parametrize("numbers", BEYOND)
def test_integers_that_are_no_doubles_keep_their_order(numbers: list[Any]) -> None:
    for lower, higher in (("a", "b"), ("b", "a")):
        run = {"q": {lower: numbers[0], higher: numbers[1], "last": -math.inf}}
        assert fr.evaluate_run({"q": {higher: 1}}, run, "RR", convention="fastrank").mean() == {"RR": 1.0}


def test_trec_eval_compares_them_as_doubles() -> None:
    run = {"q": {"a": 2**53 + 1, "b": 2**53, "c": 10**400}}
    assert fr.evaluate_run({"q": {"a": 1}}, run, "RR").mean() == {"RR": 1 / 3}
    near = {"q": {"a": 1.00000001, "b": 1.0}}
    assert fr.evaluate_run({"q": {"a": 1}}, near, "RR").mean() == {"RR": 1.0}
    assert fr.evaluate_run({"q": {"a": 1}}, near, "RR", convention="trec_eval9").mean() == {"RR": 0.5}


NOT_NUMBERS = [
    ("x", "must be numbers: 'x'", "Convert it to a number."),
    ("1.5", "must be numbers: '1.5'", "Convert it to a number."),
    (b"1", "must be numbers: b'1'", "Convert it to a number."),
    (np.str_("1"), "must be numbers: np.str_('1')", "Convert it to a number."),
    (None, "must be numbers: None", "Leave a document out that has none."),
    (1j, "must be numbers: 1j", "Leave a document out that has none."),
    ([1], "must be numbers: [1]", "Leave a document out that has none."),
    (math.nan, "must not be NaN: nan", "Leave a document out that has none."),
    (np.float32("nan"), "must not be NaN: np.float32(nan)", "Leave a document out that has none."),
    (Decimal("NaN"), "must not be NaN: Decimal('NaN')", "Leave a document out that has none."),
]


@pytest.mark.parametrize("way", [dict, the_general_way])
@pytest.mark.parametrize(("value", "rule", "cure"), NOT_NUMBERS)
def test_what_is_no_number_is_named_with_query_and_document(value: Any, rule: str, cure: str, way: Any) -> None:
    where = f"at query 'q2', document 'b'. {cure}"
    good = {"q1": {"a": 1}, "q2": {"a": 1, "c": 0}}
    bad = {"q1": {"a": 1}, "q2": {"a": 1, "b": value}}
    with pytest.raises(InputError) as error:
        fr.evaluate_run(way(good), way(bad))
    assert str(error.value) == f"run: scores {rule} {where}"
    with pytest.raises(InputError) as error:
        fr.evaluate_run(way(bad), way(good))
    assert str(error.value) == f"qrels: labels {rule} {where}"
    # Those of queries that are not judged are looked at, too.
    with pytest.raises(InputError, match="at query 'q2', document 'b'"):
        fr.evaluate_run(way({"q1": {"a": 1}}), way(bad))


def test_labels_that_a_convention_does_not_take() -> None:
    for label, convention, rule in (
        (math.inf, "trec_eval", "qrels: labels must be finite: inf at query 'q', document 'a'"),
        (10**400, "fastrank", "qrels: labels must be finite: 1000"),
        (0.5, "trec_eval", "qrels: labels must be whole numbers under the trec_eval convention: 0.5 at query 'q', document 'a'"),
        (-1, "fastrank", "qrels: labels must not be negative under the fastrank convention: -1.0 at query 'q', document 'a'"),
    ):
        with pytest.raises(InputError, match=rf"^{rule}"):
            fr.evaluate_run({"q": {"a": label}}, {"q": {"a": 1}}, convention=convention)


# --- ids ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("other", SPELLINGS.values(), ids=SPELLINGS)
def test_ids_are_equal_by_their_text(spell: Callable[[int], Any], other: Callable[[int], Any]) -> None:
    qrels = {spell(1): {spell(7): 1, spell(8): 1}, spell(2): {spell(7): 1}}
    run = {other(1): {other(9): 3, other(7): 2}, other(2): {other(7): 1.0}}
    result = fr.evaluate_run(qrels, run, "AP")
    assert result["AP"].tolist() == [1 / 4, 1.0]
    assert result.query_ids.to_pylist() == [spell(1), spell(2)]
    assert is_short(qrels, run) == (spell is other)


@pytest.mark.parametrize("number", [-5, 2**63, 2**70, np.int64(-5), np.uint64(2**63)])
def test_negative_and_long_integers_are_ids(number: Any) -> None:
    for judged, ranked in ((number, number), (number, str(number)), (str(number), number)):
        assert fr.evaluate_run({judged: {judged: 1}}, {ranked: {ranked: 1}}, "RR").mean() == {"RR": 1.0}


@pytest.mark.parametrize(("judged", "twin"), [("7", 7), ("7", b"7"), (b"7", 7), (b"7", "7"), (7, "7"), (7, b"7")])
def test_ids_of_two_types_in_one_dict(judged: Any, twin: Any) -> None:
    first = {str: "x", int: 1, bytes: b"x"}[type(judged)]
    for qrels, run in (({"q": {judged: 1}}, {"q": {first: 1.0, twin: 2.0}}), ({"q": {judged: 1, twin: 1}}, {"q": {first: 1.0}})):
        with pytest.raises(InputError, match=r"(run|qrels): documents must be named by ids of one type, not by .* \(.*\) and .*"):
            fr.evaluate_run(qrels, run)
    with pytest.raises(InputError, match=r"run: queries must be named by ids of one type"):
        fr.evaluate_run({judged: {}}, {first: {}, twin: {}})


@pytest.mark.parametrize("odd", [0.5, 7.0, None, True, ("a", "b")])
def test_what_is_no_id(odd: Any) -> None:
    for qrels, run, what in (
        ({"q": {odd: 1}}, {"q": {"a": 1}}, "qrels: documents"),
        ({"q": {"a": 1}}, {"q": {odd: 1}}, "run: documents"),
        ({"q": {"a": 1}}, {"q": {"a": 1}, odd: {}}, "run: queries"),
    ):
        with pytest.raises(InputError, match=rf"^{what} must be named by text, bytes or integers, not "):
            fr.evaluate_run(qrels, run)


def test_ids_that_nobody_asks_for_are_looked_at_where_scores_are_equal() -> None:
    run = {"q": {"a": 1.0, "b": 1.0, 0.5: 1.0}}
    assert fr.evaluate_run({"q": {"a": 1}}, run, "RR", ties="worst").mean() == {"RR": 1 / 3}
    with pytest.raises(InputError, match=r"^documents of the run must be named by text, bytes or integers, not 0\.5\."):
        fr.evaluate_run({"q": {"a": 1}}, run)


def test_text_that_utf_8_cannot_hold() -> None:
    run = {"q": {"\ud800": 1.0, "b": 2.0}}
    assert fr.evaluate_run({"q": {"\ud800": 1}}, run, "RR").mean() == {"RR": 0.5}
    with pytest.raises(InputError, match=r"^run: documents must be named by text that UTF-8 can hold, not '\\ud800'\. Give it as bytes\."):
        fr.evaluate_run(b"q 0 b 1\n", run)


def test_no_query_in_common() -> None:
    with pytest.raises(InputError, match=r"^no query is in both: qrels has 'q1' \(text\), run has 7 \(int64\)\."):
        fr.evaluate_run({"q1": {"a": 1}}, {7: {"a": 1}})
    with pytest.raises(InputError, match=r"^no query is in both: qrels has 'q1' \(text\), run has 'q2' \(text\)\."):
        fr.evaluate_run({"q1": {"a": 1}}, {"q2": {"a": 1}})


@pytest.mark.parametrize("odd", [[("a", 1)], 0.5, None, "text", {"a"}])
def test_what_is_no_dict_of_dicts(odd: Any) -> None:
    for name, arguments in (("qrels", ({"q": odd}, {"q": {}})), ("run", ({"q": {"a": 1}}, {"q": odd}))):
        value = "label" if name == "qrels" else "score"
        told = rf"^{name} must be {{query: {{document: {value}}}}}, but {name}\['q'\] is no dict \({type(odd).__name__}\): .*\.$"
        with pytest.raises(InputError, match=told):
            fr.evaluate_run(*arguments)


# --- what is there, and what is not -----------------------------------------------------------------------------------------------


def test_kinds_of_dicts() -> None:
    run = {"q": defaultdict(float, a=1.0, b=2.0), "p": OrderedDict(a=1), "o": Counter(a=3)}
    result = fr.evaluate_run(defaultdict(dict, {"q": {"a": 1, "c": 1}, "p": {"a": 1}, "o": {"a": 1}}), run, "RR,R")
    assert result.values.tolist() == [[0.5, 0.5], [1, 1], [1, 1]]
    assert list(run["q"]) == ["a", "b"]  # asking for c has not put it there


def test_empty_dicts() -> None:
    for nothing in ({}, the_general_way({})):
        assert fr.evaluate_run(nothing, {"q": {"a": 1}}).n_queries == 0
        assert fr.evaluate_run({"q": {"a": 1}}, nothing, "RR").mean() == {"RR": 0.0}
    qrels, run = {"1": {}, "2": {"a": 1}, "3": {"a": 1}}, {"1": {"a": 1}, "2": {}, "3": {"a": 1}}
    assert is_short(qrels, run)
    result = fr.evaluate_run(qrels, run, "RR", missing="skip")
    assert (result.query_ids.to_pylist(), result["RR"].tolist(), result.no_relevant) == (["1", "2", "3"], [0.0, 0.0, 1.0], (1,))


def test_queries_of_one_side_are_counted() -> None:
    qrels, run = {"1": {"a": 1}, "2": {"a": 1}, "3": {}}, {"1": {"a": 2.0}, "9": {"a": 1.0}}
    result = fr.evaluate_run(qrels, run, "AP")
    assert (result["AP"].tolist(), {note.kind: note.count for note in result.notes if "query" in note.kind}) == (
        [1.0, 0.0, 0.0],
        {"missing_query": 2, "unjudged_query": 1},
    )
    assert fr.evaluate_run(qrels, run, "AP", missing="skip").query_ids.to_pylist() == ["1"]


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

"""Dicts of dicts and tables as qrels and runs: the short way over dicts has the bits and the notes of the general one."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import conformance
import numpy as np
import pytest
from dict_pairs import COMPILED, CUT, METRICS, Dicts, is_short, outcome, text, the_general_way
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank.errors import InputError

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

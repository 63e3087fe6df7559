"""What cannot be judged is answered in one line: the argument, the rule, the place and the cure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from metric_table import TABLE, instances

import fastrank as fr
from fastrank import metrics as m

LOG3 = np.log2(3)
NAN, INF = float("nan"), float("inf")
EVERY = tuple(metric for family in TABLE for metric in instances(family, "average"))


# --- one line for each error -------------------------------------------------------------------------------------------------------

RIGHT = ([1, 0, 1], [3.0, 2.0, 1.0])
ERRORS: list[tuple[str, Callable[[], Any], str]] = [
    ("lengths", lambda: fr.evaluate([1, 0], [1.0]), "scores must have the shape of labels, (2,), not (1,)."),
    ("shapes", lambda: fr.evaluate([[1, 0]], [1.0, 2.0]), "scores must have the shape of labels, (1, 2), not (2,)."),
    ("two groupings", lambda: fr.evaluate(*RIGHT, [0, 3], sizes=[3]), "give one of offsets, sizes and query_ids, not offsets and sizes."),
    (
        "three groupings",
        lambda: fr.evaluate(*RIGHT, [0, 3], sizes=[3], query_ids=[1, 1, 1]),
        "give one of offsets, sizes and query_ids, not offsets and sizes and query_ids.",
    ),
    ("no dimension", lambda: fr.evaluate(3), "labels must have one dimension, or two (a query a row), not 0."),
    ("three dimensions", lambda: fr.evaluate(np.zeros((1, 1, 1))), "labels must have one dimension, or two (a query a row), not 3."),
    (
        "a grouped matrix",
        lambda: fr.evaluate([[1, 0]], sizes=[2]),
        "labels with two dimensions are a query a row: leave out sizes, or give them flat.",
    ),
    (
        "offsets that decrease",
        lambda: fr.evaluate(np.ones(14), None, [0, 2, 4, 8, 14, 12, 14]),
        "offsets must not decrease: offsets[5] = 12 < offsets[4] = 14. For group sizes use sizes=.",
    ),
    (
        "offsets that begin late",
        lambda: fr.evaluate(*RIGHT, [1, 3]),
        "offsets must begin with 0: offsets[0] = 1. For group sizes use sizes=.",
    ),
    ("offsets that end early", lambda: fr.evaluate(*RIGHT, [0, 2]), "offsets must end with the number of documents, 3: offsets[1] = 2."),
    (
        "no offsets",
        lambda: fr.evaluate([], [], []),
        "offsets must have one entry more than there are queries, the first 0; for no query at all give [0].",
    ),
    ("a matrix of offsets", lambda: fr.evaluate(*RIGHT, [[0, 3]]), "offsets must have one dimension, not 2."),
    ("a null offset", lambda: fr.evaluate(*RIGHT, [0, None]), "offsets must not hold nulls: entry 1 is missing."),
    ("half an offset", lambda: fr.evaluate(*RIGHT, [0, 1.5, 3]), "offsets must be whole numbers: offsets[1] is not."),
    ("an infinite offset", lambda: fr.evaluate(*RIGHT, [0, INF]), "offsets must be whole numbers: offsets[1] is not."),
    ("a NaN size", lambda: fr.evaluate(*RIGHT, sizes=[NAN]), "sizes must be whole numbers: sizes[0] is not."),
    ("sizes that do not sum", lambda: fr.evaluate(*RIGHT, sizes=[1, 1]), "sizes must sum to the number of documents, 3, not 2."),
    (
        "ids for sizes",
        lambda: fr.evaluate(*RIGHT, sizes=[1, 1, 2]),
        "sizes must sum to the number of documents, 3, not 4. These look like query ids: give them as query_ids=.",
    ),
    (
        "sizes beyond 32 bits",
        lambda: fr.evaluate(*RIGHT, sizes=np.array([2**31 - 1, 2], np.int32)),
        "sizes must sum to the number of documents, 3, not 2147483649.",
    ),
    (
        "sizes that wrap around to 0",
        lambda: fr.evaluate([], [], sizes=[2**62] * 4),
        f"sizes must sum to the number of documents, 0, not {2**64}.",
    ),
    (
        "sizes beyond 64 bits",
        lambda: fr.evaluate([], [], sizes=np.array([2**64 - 1], np.uint64)),
        f"sizes must sum to the number of documents, 0, not {2**53}.",
    ),
    ("a negative size", lambda: fr.evaluate(*RIGHT, sizes=[4, -1]), "sizes must not be negative: sizes[1] = -1."),
    ("too few query ids", lambda: fr.evaluate(*RIGHT, query_ids=[1, 2]), "query_ids must have one entry a document, 3, not 2."),
    ("too many ids of rows", lambda: fr.evaluate([[1, 0]], query_ids=[1, 2]), "query_ids must have one entry a row of labels, 1, not 2."),
    (
        "one id for two rows",
        lambda: fr.evaluate([[1], [0], [1]], query_ids=["a", "b", "a"]),
        "query_ids must differ from row to row of labels: 'a' stands at 0 and 2.",
    ),
    (
        "floats as ids",
        lambda: fr.evaluate(*RIGHT, query_ids=[1.0, 1.0, 2.0]),
        "query_ids must be text or integers, not floats: 0.1 + 0.2 is not 0.3. Cast them to integers or text.",
    ),
    ("a null id", lambda: fr.evaluate(*RIGHT, query_ids=["a", None, "b"]), "query_ids must not be null: row 1 is."),
    ("ids of two types", lambda: fr.evaluate(*RIGHT, query_ids=["a", 1, 2]), "query_ids must be ids of one type, text or integers ("),
    ("ids beyond 64 bits", lambda: fr.evaluate(*RIGHT, query_ids=[2**70] * 3), "query_ids must be ids of one type, text or integers ("),
    ("an id that is no text", lambda: fr.evaluate(*RIGHT, doc_ids=["\ud800", "b", "c"]), "doc_ids must be ids of one type, text or"),
    ("a number for ids", lambda: fr.evaluate(*RIGHT, query_ids=3), "query_ids must be ids of one type, text or integers ("),
    (
        "a number for a column",
        lambda: fr.evaluate_table(pa.table({"query_id": [1], "label": [1], "score": [1]}), "RR", query=0),
        "query must be the name of a column, as text, not 0.",
    ),
    (
        "no column of documents",
        lambda: fr.Qrels.from_table(pa.table({"query_id": [1], "label": [1]}), doc=None),
        "doc and label, or score in a run, must be names of columns, not None.",
    ),
    ("no dict of judges", lambda: fr.GroupedQrels.from_dicts([1]), "qrels by group must be {query: {group: {document: label}}}, not list."),
    (
        "a number for two sides",
        lambda: fr.explain_difference([1, 0], metric="RR", between=3),
        "between must be two sides, such as between=('lightgbm', 'sklearn').",
    ),
    ("an array of no names", lambda: fr.evaluate([1], metrics=np.array(3)), "metrics are named by text, by a Metric or by several of them"),
    ("too few document ids", lambda: fr.evaluate(*RIGHT, doc_ids=["a"]), "doc_ids must have one entry a document, 3, not 1."),
    ("float document ids", lambda: fr.evaluate(*RIGHT, doc_ids=[0.5, 1.5, 2.5]), "doc_ids must be text or integers, not floats"),
    (
        "a NaN score",
        lambda: fr.evaluate([1, 0, 1], [1.0, NAN, 2.0], [0, 1, 3]),
        "scores must not be NaN: query 1, document 0 (row 1). Give every retrieved document a number, or a null (masked) score",
    ),
    (
        "a NaN score of a named query",
        lambda: fr.evaluate([1, 0, 1], [1.0, 2.0, NAN], query_ids=["b", "a", "b"]),
        "scores must not be NaN: query 'b', document 1 (row 2). Give every",
    ),
    ("a NaN beside a null score", lambda: fr.evaluate([1, 0], [None, NAN]), "scores must not be NaN: query 0, document 1 (row 1)."),
    (
        "a NaN of 80 bits",
        lambda: fr.evaluate([1, 0], np.array([1, NAN], np.longdouble)),
        "scores must not be NaN: query 0, document 1 (row 1).",
    ),
    (
        "a NaN label",
        lambda: fr.evaluate([1, NAN]),
        "labels must be finite: nan at query 0, document 1 (row 1). For an unjudged document give a null (masked) label.",
    ),
    (
        "an infinite label",
        lambda: fr.evaluate([[1, 0], [0, INF]]),
        "labels must be finite: inf at query 1, document 1 (row 3). For an unjudged",
    ),
    (
        "a NaN beside a null label",
        lambda: fr.evaluate(np.ma.masked_array([NAN, -INF], [True, False])),
        "labels must be finite: -inf at query 0, document 1 (row 1).",
    ),
    ("text as labels", lambda: fr.evaluate(["1", "0"]), "labels must be numbers, not <U1. Convert text to numbers first."),
    ("text among labels", lambda: fr.evaluate([None, "x"]), "labels must be numbers, not 'x'. Convert text to numbers first."),
    ("text as scores", lambda: fr.evaluate([1], pa.array(["0.5"])), "scores must be numbers, not string. Convert text to numbers first."),
    ("text of pandas", lambda: fr.evaluate([1], pd.Series(["0.5"], dtype="string")), "scores must be numbers, not "),
    (
        "dates as scores",
        lambda: fr.evaluate([1], np.array(["2020-01-01"], "M8[D]")),
        "scores must be numbers, not datetime64[D]. Convert it to integers or floats.",
    ),
    ("complex scores", lambda: fr.evaluate([1], [1j]), "scores must be numbers, not complex128. Convert it to integers or floats."),
    (
        "an object as a label",
        lambda: fr.evaluate([1, None, object]),
        "labels must be numbers, not <class 'object'>. Convert it to integers or floats.",
    ),
    ("lists of unequal length", lambda: fr.evaluate([[1], [1, 2]]), "labels is not a regular array ("),
    (
        "arrays among labels",
        lambda: fr.evaluate(np.array([np.ones(1), np.ones(2)], dtype=object)),
        "labels must be numbers, not array([1.]). Give lists of unequal length flat, with offsets= or sizes=.",
    ),
    ("a dict as labels", lambda: fr.evaluate({"a": 1}), "labels must be numbers, not {'a': 1}."),
    ("an integer beyond doubles", lambda: fr.evaluate([10**400]), "labels must be numbers below 1.8e308, and one is not."),
    ("a negative weight", lambda: fr.evaluate(*RIGHT, weights=[-1]), "weights must be finite and not negative: weights[0] = -1.0."),
    ("an infinite weight", lambda: fr.evaluate(*RIGHT, weights=[INF]), "weights must be finite and not negative: weights[0] = inf."),
    (
        "a null weight",
        lambda: fr.evaluate(*RIGHT, sizes=[1, 2], weights=[1, None]),
        "weights must be finite and not negative: weights[1] = null.",
    ),
    ("too many weights", lambda: fr.evaluate(*RIGHT, weights=[1, 2]), "weights must have one entry a query, 1, not 2."),
    (
        "a weight that changes",
        lambda: fr.evaluate(*RIGHT, weights=[1, 1, 2]),
        "weights must be the same for every document of a query: it changes at document 2 in query 0.",
    ),
    (
        "no weight for an empty query",
        lambda: fr.evaluate(*RIGHT, [0, 0, 0, 3, 3], weights=[1, 1, 1]),
        "weights given per document say nothing of a query without documents: give one weight a query.",
    ),
    (
        "a slice that changes",
        lambda: fr.evaluate(*RIGHT, by={"part": ["a", "a", "b"]}),
        "by 'part' must be the same for every document of a query: it changes at document 2 in query 0.",
    ),
    ("too many slices", lambda: fr.evaluate(*RIGHT, by=["a", "b"]), "by 'by' must have one entry a query, 1, not 2."),
    (
        "docid without ids",
        lambda: fr.evaluate(*RIGHT, ties="docid"),
        "ties='docid' orders equal scores by document id: give doc_ids=, or another rule with ties=.",
    ),
    (
        "docid in the functions",
        lambda: fr.ndcg(*RIGHT, ties="docid"),
        "ties='docid' orders equal scores by document id, and there are none here: use evaluate with doc_ids=, or 'average', 'input',",
    ),
    (
        "an unknown tie rule",
        lambda: fr.evaluate(*RIGHT, ties="averge"),
        "ties must be one of 'average', 'input', 'worst', 'best', 'docid', not 'averge'. Did you mean 'average'?",
    ),
    (
        "an unknown rule",
        lambda: fr.evaluate(*RIGHT, no_relevant="drop"),
        "no_relevant must be one of 'zero', 'one', 'nan', 'skip', not 'drop'.",
    ),
    ("an unknown convention", lambda: fr.evaluate(*RIGHT, convention="lightgmb"), "Did you mean 'lightgbm'?"),
    ("no convention", lambda: fr.evaluate(*RIGHT, convention=None), "convention must be one of 'fastrank'"),
    (
        "a rule that a metric lacks",
        lambda: fr.evaluate(*RIGHT, metrics="AP(denominator='hits')", ties="average"),
        "AP(denominator='hits') is not defined for ties='average'. It takes 'input', 'worst', 'best', 'docid'.",
    ),
    (
        "a rule in the name that it lacks",
        lambda: fr.evaluate(*RIGHT, metrics="AP(denominator='hits', ties='average')"),
        "is not defined for ties='average'.",
    ),
    ("depth 0", lambda: fr.evaluate(*RIGHT, depth=0), "depth must be a whole number from 1 up, not 0."),
    ("a true depth", lambda: fr.evaluate(*RIGHT, depth=True), "depth must be a whole number from 1 up, not True."),
    ("half a depth", lambda: fr.evaluate(*RIGHT, depth=1.5), "depth must be a whole number from 1 up, not 1.5."),
    (
        "AUC of a cut list",
        lambda: fr.evaluate(*RIGHT, metrics="AUC", depth=2),
        "AUC compares all documents of a list, so it takes no depth=. Leave out depth or the metric.",
    ),
    (
        "Concordance of a cut list",
        lambda: fr.evaluate(*RIGHT, metrics="Concordance", depth=2),
        "Concordance compares all documents of a list, so it takes no depth=.",
    ),
    (
        "bpref of a tied cut list",
        lambda: fr.evaluate(*RIGHT, metrics="Bpref", depth=2),
        "Bpref has no closed form for ties across depth=. Give ties='worst', 'best', 'input' or 'docid'.",
    ),
    ("no threads", lambda: fr.evaluate(*RIGHT, threads=0), "threads must be a whole number from 1 up, or None for all "),
    ("a float of threads", lambda: fr.evaluate(*RIGHT, threads=2.0), "threads must be a whole number from 1 up, or None for all "),
    ("no metrics", lambda: fr.evaluate(*RIGHT, metrics=[]), "no metric is named. Name one, such as nDCG@10."),
    (
        "None as metrics",
        lambda: fr.evaluate(*RIGHT, metrics=None),
        "metrics are named by text, by a Metric or by several of them, not by None.",
    ),
    ("a list among metrics", lambda: fr.evaluate(*RIGHT, metrics=[["RR"]]), "a metric is a name or a Metric, not ['RR']."),
    (
        "a huge label",
        lambda: fr.evaluate([2000, 1]),
        "label 2000 is too large for the gain 2^label - 1, which overflows above 1000. Use gain='linear' or a table such as",
    ),
    ("a huge label, not retrieved", lambda: fr.evaluate([2000, 1], [None, 1]), "label 2000 is too large for the gain 2^label - 1"),
    ("a huge linear label", lambda: fr.ndcg([1e308, 1e308], gain="linear"), "label 1e+308 is too large to sum"),
    ("a huge gain", lambda: fr.ndcg([1], gain={1: 1e308}), "gain table must be finite, at most 1.07151e+301: entry 0 is 1e+308."),
    (
        "a label above ERR's",
        lambda: fr.err([5, 1]),
        "label 5 is above the largest label of ERR, max_label=4. Give max_label, such as ERR(max_label=5).",
    ),
    (
        "a label without a gain",
        lambda: fr.ndcg([1, 2.5], gain={1: 1}),
        "label 2.5 has no entry in the gain table {1: 1}. Add one, such as {2.5: 0}.",
    ),
    (
        "a label beyond the gains",
        lambda: fr.ndcg([1, 7], gain=[0, 1]),
        "label 7 has no entry in the gain table {0: 0, 1: 1}. Add one, such as {7: 0}.",
    ),
    ("an unknown gain", lambda: fr.ndcg([1], gain="exp"), "gain 'exp' is not known. Use 'exp2'"),
    ("a gain of no form", lambda: fr.ndcg([1], gain=2), "gain must be a name, a table or a sequence, not 2."),
    ("a set of gains", lambda: fr.ndcg([1], gain={0, 1}), "gain must be a name, a table or a sequence, not {0, 1}."),
    ("no gains", lambda: fr.ndcg([1], gain={}), "the gain table is empty. Give every label its gain, such as {0: 0, 1: 1}."),
    ("gains in words", lambda: fr.ndcg([1], gain={1: "a"}), "gain table must hold numbers, not ['a']."),
    ("an infinite gain", lambda: fr.ndcg([1], gain=[0, INF]), "gain table must be finite, at most 1.07151e+301: entry 1 is inf."),
    (
        "an unknown discount",
        lambda: fr.ndcg([1], discount="log"),
        "discount 'log' is not known. Use log2, ln, zipf, power:B, geometric:P, jarvelin:B, step:K, or an array over ranks 1, 2, ...",
    ),
    (
        "a power of none",
        lambda: fr.ndcg([1], discount="power:0"),
        "discount 'power:0': power takes a number above 0 after the colon, such as 'power:0.5'.",
    ),
    (
        "a wide geometric",
        lambda: fr.ndcg([1], discount="geometric:1"),
        "discount 'geometric:1': geometric takes a number between 0 and 1 after the colon",
    ),
    ("a small base", lambda: fr.ndcg([1], discount="jarvelin:1"), "discount 'jarvelin:1': jarvelin takes a base above 1 after the colon"),
    (
        "a base in words",
        lambda: fr.ndcg([1], discount="jarvelin:two"),
        "discount 'jarvelin:two': jarvelin takes a base above 1 after the colon",
    ),
    ("half a step", lambda: fr.ndcg([1], discount="step:1.5"), "discount 'step:1.5': step takes a whole number from 1 up after the colon"),
    (
        "a function of ranks",
        lambda: fr.ndcg([1], discount=abs),
        (
            "discount must be a name or a sequence over ranks 1, 2, ..., not <built-in function abs>. "
            "Of a function give the values: fastrank.analysis.discount_table(function, n)."
        ),
    ),
    ("a discount of no form", lambda: fr.ndcg([1], discount=2), "discount must be a name or a sequence over ranks 1, 2, ..., not 2."),
    ("no discounts", lambda: fr.ndcg([1], discount=[]), "the discount table is empty. Give one number a rank, starting with rank 1."),
    ("a huge discount", lambda: fr.ndcg([1], discount=[1e300]), "discount table must be finite, at most 1.04858e+06: entry 0 is 1e+300."),
    (
        "labels that are not binary",
        lambda: fr.evaluate([1, 2, 0], metrics="AP", convention="xgboost"),
        "labels 0 and 1 only, not 2. Binarise the labels, or use another convention.",
    ),
    (
        "a null score later on",
        lambda: fr.LabelledQueries([1, 0]).evaluate([1, None]),
        "scores must not be null here: LabelledQueries keeps one list of documents. Use evaluate().",
    ),
    ("too few scores later on", lambda: fr.LabelledQueries([1, 0]).evaluate([1]), "scores must have one entry a document, 2, not 1."),
    ("a NaN score later on", lambda: fr.LabelledQueries([1, 0]).evaluate([1, NAN]), "scores must not be NaN: query 0, document 1 (row 1)."),
    (
        "rows apart with labels that stay",
        lambda: fr.LabelledQueries([1, 0, 1], query_ids=[1, 2, 1]),
        "query_ids: the rows of a query must stand together here, ",
    ),
]


def test_what_an_error_quotes_is_printable_and_of_a_length_to_read() -> None:
    said = str(fr.InputError("q\x1b[31m\n\t\udce9 " + "x" * 100_000 + " is wrong"))
    assert said.isprintable()
    assert said.startswith("q\\x1b[31m\\n\\t\\udce9 xxx")
    assert said.endswith("xxx is wrong")
    assert len(said) < 1300
    assert str(fr.InputError("é ✓ 漢")) == "é ✓ 漢"


@pytest.mark.parametrize(("call", "message"), [pytest.param(call, message, id=name) for name, call, message in ERRORS])
def test_an_error_is_one_line_that_names_the_argument_the_rule_the_place_and_the_cure(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rel": 0}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not 0."),
        ({"rel": "1"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '1'."),
        ({"rel": ">x"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '>x'."),
        ({"rel": ">-1"}, "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not '>-1'."),
        ({"rel": True}, "rel must be a number, not True."),
        ({"rel": None, "denominator": "n"}, "denominator must be one of 'k', 'retrieved', not 'n'."),
        ({"rel": [1]}, "rel must be a number, not [1]."),
        ({"rel": INF}, "rel must be finite, not inf."),
    ],
)
def test_a_parameter_out_of_its_range_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message) + "$"):
        m.P(**options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: m.RBP(p=1), "p must be above 0 and below 1, not 1."),
        (lambda: m.PNormPush(p=0), "p must be above 0, not 0."),
        (lambda: m.F(beta=-1), "beta must be above 0 and below 1e+100, not -1."),
        (lambda: m.F(beta=1e200), "beta must be above 0 and below 1e+100, not 1e+200."),
        (lambda: m.ERR(max_label=1000), "max_label must be above 0 and below 1000, not 1000."),
        (lambda: m.Rprec(k=5), "Rprec takes no cutoff: it judges the whole list. Leave out k."),
        (lambda: fr.f1([1], rel="x"), "rel must be a number above 0"),
    ],
)
def test_parameters_of_single_metrics_are_held_to_their_range(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        call()

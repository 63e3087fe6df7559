"""fastrank.compat.pytrec_eval: the interface, against the installed pytrec_eval and as the libraries that import it call it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
from compat_draw import draw

import fastrank as fr
from fastrank.compat import pytrec_eval as ours

QRELS = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q0": {"d1": 1}}
RUN = {"q1": {"d1": 0.5, "d2": 0.9}, "q0": {"d9": 1.0}, "elsewhere": {"d1": 1.0}}

# pytrec_eval divides 0 by 0 in these where judged_docs_only_flag leaves nothing.
NAN_WITHOUT_DOCUMENTS = ("iprec_at_recall", "11pt_avg")
PARAMETERS = [
    *("P.3,7,2000", "P_11", "ndcg_cut_1,4", "map_cut.9", "recall_2", "iprec_at_recall.0.15,0.5", "Rprec_mult_0.3,1.7", "set_F_0.5,1"),
    *("11pt_avg.0.2,0.7", "success_3", "relative_P_4", "map", "map.5", "relstring_4", "gm_map", "ndcg_cut_7x", "P_5.5"),
]


@pytest.fixture
def theirs() -> Any:
    return pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")


def agree(found: dict[str, dict[str, float]], expected: dict[str, dict[str, float]]) -> int:
    """Same queries in the same order, same keys, same values; how many were compared."""
    assert list(found) == list(expected)
    for query, values in expected.items():
        assert set(found[query]) == set(values)
        for name, value in values.items():
            known = 0.0 if math.isnan(value) and name.startswith(NAN_WITHOUT_DOCUMENTS) else value
            assert type(found[query][name]) is float
            assert found[query][name] == pytest.approx(known, rel=1e-12, abs=1e-12), (query, name)
    return sum(map(len, expected.values()))


# --- values ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measures", [{"all_trec"}, PARAMETERS, ["official", "set", "P"]], ids=["all_trec", "parameters", "nicknames"])
@pytest.mark.parametrize("level", [1, 2])
@pytest.mark.parametrize("judged_only", [False, True])
def test_values_keys_and_order_are_theirs(theirs: Any, measures: Any, level: int, judged_only: bool) -> None:
    for seed in range(6):
        data = draw(seed, negative=seed % 2 == 0)
        evaluators = [library.RelevanceEvaluator(data.qrels, measures, level, judged_only) for library in (ours, theirs)]
        assert agree(*(evaluator.evaluate(data.run) for evaluator in evaluators)) > 100


def test_scores_are_compared_as_float32(theirs: Any) -> None:
    run = {"q1": {"d1": 1.0, "d2": 1.00000001, "d3": 1e300, "d4": 1e301}}
    found, expected = (library.RelevanceEvaluator(QRELS, {"map", "recip_rank"}).evaluate(run) for library in (ours, theirs))
    agree(found, expected)


def test_an_evaluator_serves_one_run_after_the_other() -> None:
    evaluator = ours.RelevanceEvaluator(QRELS, {"recip_rank"})
    assert evaluator.evaluate(RUN) == {"q1": {"recip_rank": 1 / 2}, "q0": {"recip_rank": 0.0}}
    assert evaluator.evaluate({"q1": {"d3": 1}}) == {"q1": {"recip_rank": 1.0}}
    assert evaluator.evaluate(RUN)["q1"] == {"recip_rank": 1 / 2}


@pytest.mark.parametrize("run", [{}, None, [], {"elsewhere": {"d1": 1.0}}])
def test_nothing_in_common_is_an_empty_result(run: Any) -> None:
    assert ours.RelevanceEvaluator(QRELS, {"map"}).evaluate(run) == {}


def test_empty_lists_alone_have_every_key(theirs: Any) -> None:
    for nickname in ("all_trec", "set", "official"):
        agree(*(library.RelevanceEvaluator(QRELS, {nickname}).evaluate({"q1": {}, "q0": {}}) for library in (ours, theirs)))


def test_an_empty_list_counts_zero(theirs: Any) -> None:
    measures = {"map", "ndcg", "P.5", "set_P", "bpref", "infAP", "utility", "num_ret", "recip_rank"}
    run: dict[str, dict[str, float]] = {"q1": {}}
    agree(*(library.RelevanceEvaluator(QRELS, measures).evaluate(run) for library in (ours, theirs)))
    assert ours.RelevanceEvaluator(QRELS, {"iprec_at_recall"}).evaluate(run)["q1"]["iprec_at_recall_0.00"] == 0.0


def test_queries_without_judgements_and_texts(theirs: Any) -> None:
    qrels: dict[str, dict[str, int]] = {**QRELS, "q2": {}}
    run = {**RUN, "q2": {"d1": 1.0}}
    for measures in (["runid", "relstring"], [], ["map", "runid"]):
        agree(*(library.RelevanceEvaluator(qrels, measures).evaluate(run) for library in (ours, theirs)))


def test_mappings_and_numbers_of_other_types() -> None:
    plain = ours.RelevanceEvaluator(QRELS, {"map"}).evaluate(RUN)
    assert ours.RelevanceEvaluator(OrderedDict(QRELS), {"map"}).evaluate(defaultdict(dict, RUN)) == plain
    single = {query: {document: np.float32(score) for document, score in scores.items()} for query, scores in RUN.items()}
    assert ours.RelevanceEvaluator(QRELS, {"map"}).evaluate(single) == plain  # theirs is a TypeError


# --- names ----------------------------------------------------------------------------------------------------------------------


def test_names_are_theirs(theirs: Any) -> None:
    assert ours.supported_measures == set(theirs.supported_measures)
    assert ours.supported_nicknames == {name: set(names) for name, names in theirs.supported_nicknames.items()}
    assert set(ours.__all__) - {"compute_aggregated_measure"} == set(theirs.__all__)


@pytest.mark.parametrize("measures", [["nope"], "map", ["dcg"], ["prefs_simp"], ["map", "P_"]])
def test_an_unknown_measure_is_their_error(theirs: Any, measures: Any) -> None:
    messages = []
    for library in (ours, theirs):
        with pytest.raises(ValueError, match="unsupported measure") as caught:
            library.RelevanceEvaluator(QRELS, measures)
        messages.append(str(caught.value))
    assert messages[0] == messages[1] or measures == "map"  # it looks at the letters in any order


@pytest.mark.parametrize("measure", ["P.0", "ndcg.1", "utility_1", "recall_0.5", "prefs", "iprec_at_recall_1.5"])
def test_what_ends_their_process_is_an_error(measure: str) -> None:
    with pytest.raises(ValueError, match=r"must|unsupported|is not"):
        ours.RelevanceEvaluator(QRELS, [measure])


# --- types ----------------------------------------------------------------------------------------------------------------------

WRONG_CONSTRUCTIONS = [
    (None, {"map"}), ([], {"map"}), ({"q1": ["d1"]}, {"map"}), ({1: {"d1": 1}}, {"map"}), ({"q1": {1: 1}}, {"map"}),
    ({"q1": {"d1": 1.0}}, {"map"}), ({"q1": {"d1": np.int64(1)}}, {"map"}), ({"q1": {"d1": "1"}}, {"map"}), (QRELS, [1]), (QRELS, None),
    (QRELS, {"map"}, 0), (QRELS, {"map"}, 1.5), (QRELS, {"map"}, "1"), (QRELS, {"map"}, None), (QRELS, {"map"}, 1, "x"), (), (QRELS,),
]  # fmt: skip


@pytest.mark.parametrize("arguments", WRONG_CONSTRUCTIONS)
def test_errors_of_construction_are_theirs(theirs: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, AttributeError)) as expected:
        theirs.RelevanceEvaluator(*arguments)
    with pytest.raises(expected.type) as found:
        ours.RelevanceEvaluator(*arguments)
    assert str(found.value) == str(expected.value)


WRONG_RUNS = [[1], "q1", {"q1": ["d1"]}, {"q1": None}, {1: {"d1": 1.0}}, {"q1": {1: 1.0}}, {"q1": {"d1": "1"}}, {**RUN, "z": 3}]


@pytest.mark.parametrize("run", WRONG_RUNS, ids=str)
def test_errors_of_evaluation_are_theirs(theirs: Any, run: Any) -> None:
    messages = []
    for library in (ours, theirs):
        with pytest.raises(TypeError) as caught:
            library.RelevanceEvaluator(QRELS, {"map"}).evaluate(run)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("documents", [{"d1": 1.0, "d2": "high"}, {"d1": 1.0, "d2": None}])
def test_a_later_score_of_another_type_is_their_error(theirs: Any, documents: dict[Any, Any]) -> None:
    for library in (ours, theirs):
        with pytest.raises(TypeError, match=r"Unable to extract query/object scores\."):
            library.RelevanceEvaluator(QRELS, {"map"}).evaluate({"q1": documents})


def test_nan_is_no_score() -> None:
    with pytest.raises(ValueError, match="must not be NaN"):
        ours.RelevanceEvaluator(QRELS, {"map"}).evaluate({"q1": {"d1": math.nan}})


# --- files and summaries --------------------------------------------------------------------------------------------------------


def test_files_are_read_as_there(theirs: Any) -> None:
    run, qrels = ["q Q0 d 1 2.5 t\n", "q Q0 e 2 -1e3 t", "r Q0 d 1 7 t"], ["q 0 d 1", "q 0 e -1\n", "r 0 d 0"]
    assert ours.parse_run(run) == theirs.parse_run(run) == {"q": {"d": 2.5, "e": -1000.0}, "r": {"d": 7.0}}
    assert ours.parse_qrel(qrels) == theirs.parse_qrel(qrels) == {"q": {"d": 1, "e": -1}, "r": {"d": 0}}
    assert type(ours.parse_run(run)) is type(theirs.parse_run(run))


@pytest.mark.parametrize(
    ("parse", "lines", "error"),
    [
        (ours.parse_run, ["q 0 d 1 2.0 t"] * 2, AssertionError),
        (ours.parse_qrel, ["q 0 d 1"] * 2, AssertionError),
        (ours.parse_run, ["q 0 d 1 2.0"], ValueError),
        (ours.parse_run, ["q 0 d 1 high t"], ValueError),
        (ours.parse_qrel, ["q 0 d 1.0"], ValueError),
    ],
)
def test_wrong_lines_are_their_errors(parse: Any, lines: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        parse(lines)


def test_summaries() -> None:
    assert ours.compute_aggregated_measure("map", [0.25, 0.75]) == 0.5
    assert ours.compute_aggregated_measure("num_rel", [1.0, 2.0]) == 3.0
    assert ours.compute_aggregated_measure("gm_map", [math.log(0.5), math.log(0.02)]) == pytest.approx(0.1)
    assert math.isnan(ours.compute_aggregated_measure("map", []))


# --- as others call it ----------------------------------------------------------------------------------------------------------

# Run in a process of its own, where nobody has imported pytrec_eval. Each part calls it as the library it names does.
CALLERS = """
import sys
import fastrank
sys.modules["pytrec_eval"] = fastrank.compat.pytrec_eval

import pytrec_eval
from pytrec_eval import RelevanceEvaluator

qrels = {"q1": {"d1": 1, "d2": 0, "d3": 2}, "q2": {"d1": 1}}
results = {"q1": {"d1": 0.5, "d2": 0.9}, "q2": {"d1": 1.0}}
ks = [1, 3]

# beir.retrieval.evaluation.EvaluateRetrieval.evaluate
names = {name: f"{name}." + ",".join(str(k) for k in ks) for name in ("map_cut", "ndcg_cut", "recall", "P")}
evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(names.values()))
scores = evaluator.evaluate(results)
total = {f"{name}@{k}": 0.0 for name in names for k in ks}
for query_id in scores.keys():
    for name in names:
        for k in ks:
            total[f"{name}@{k}"] += scores[query_id][name + "_" + str(k)]
assert round(total["P@1"] / len(scores), 5) == 0.5, total

# mteb: single measures, and recip_rank on lists that were cut
evaluator = RelevanceEvaluator(qrels, {"map_cut.1,3", "recip_rank"})
assert evaluator.evaluate(results)["q1"]["recip_rank"] == 0.5

# pyterrier, by way of ir_measures
try:
    import ir_measures
except ImportError:
    print("without ir_measures")
else:
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ 10, ir_measures.AP(rel=2), ir_measures.P @ 1], qrels, results)
    assert found[ir_measures.P @ 1] == 0.5
    assert ir_measures.pytrec_eval.pytrec_eval is fastrank.compat.pytrec_eval
assert not any("pytrec_eval_ext" in name for name in sys.modules)
print("all answered")
"""


def test_the_libraries_that_import_it_are_answered() -> None:
    found = subprocess.run([sys.executable, "-c", CALLERS], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert found.stdout.endswith("all answered\n")


def test_it_is_loaded_when_it_is_asked_for() -> None:
    assert fr.compat.pytrec_eval is ours
    assert {"ir_measures", "pytrec_eval", "ranx"} <= set(dir(fr.compat))
    with pytest.raises(AttributeError, match="no attribute 'elsewhere'"):
        _ = fr.compat.elsewhere

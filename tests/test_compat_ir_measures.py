"""fastrank.compat.ir_measures: the provider, its pipeline and command line, against the providers of the installed ir_measures."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compat_draw import Drawn, draw

their = pytest.importorskip("ir_measures", reason="ir_measures is not installed")

from fastrank.compat import ir_measures as ours  # noqa: E402  (needs the library)

# Of trec_eval, by way of pytrec_eval, which orders equal scores as we do.
TIED = """P@5 P(rel=2)@3 RR RR(rel=2) RR(judged_only=True) Rprec Rprec(rel=2) AP AP@10 AP(rel=2)@4 AP(judged_only=True) nDCG nDCG@5
    nDCG(judged_only=True)@3 nDCG(gains={1:3,2:7})@5 R@10 R(rel=2)@3 Bpref Bpref(rel=2)
    NumRet NumRet(rel=1) NumQ NumRel NumRelRet SetAP SetF SetF(beta=2.0)
    SetF(rel=2,beta=0.5) SetP SetP(relative=True) SetRelP SetR Success@5 Success(rel=2)@1 IPrec@0.1 IPrec(rel=2)@0.5 infAP"""
# Of other providers, each with an order of its own.
UNTIED = "RR@3 RR(rel=2)@10 Judged@10 Judged Accuracy Accuracy@5 Accuracy(rel=2)@20 Compat Compat(p=0.8) Compat(normalize=False)"
USER_MODELS = """RBP(rel=1) RBP(rel=2,p=0.5) BPM(max_rel=3)@10 BPM(min_rel=1,max_rel=3,T=2.0)@5 SDCG(max_rel=3)@5 INST(max_rel=3)
    INSQ(max_rel=3,T=2.0) NERR8(max_rel=3)@5 NERR9(max_rel=3)@5 NERR10(max_rel=3,p=0.8) NERR11(max_rel=3)"""
DIVERSITY = "alpha_DCG@5 alpha_nDCG@5 alpha_nDCG(alpha=0.3)@10 ERR_IA@5 nERR_IA@10 NRBP nNRBP(alpha=0.4,beta=0.6) AP_IA P_IA@5 StRecall@10"
# gdeval prints five decimals.
ROUNDED = "nDCG(dcg='exp-log2')@5 ERR@10"


def measure(name: str) -> Any:
    return their.parse_measure(name)


def values_of(result: Any) -> dict[str, float]:
    return {each.query_id: each.value for each in result.per_query}


def agree(name: str, qrels: Any, run: Any, *, tolerance: float = 1e-9) -> None:
    """Our values, query by query, and the aggregate, of the same types."""
    asked = measure(name)
    assert ours.provider.supports(asked)
    expected, found = their.calc([asked], qrels, run), ours.calc([asked], qrels, run)
    assert values_of(found) == pytest.approx(values_of(expected), rel=tolerance, abs=tolerance), name
    assert found.aggregated == pytest.approx(expected.aggregated, rel=tolerance, abs=tolerance), name
    assert ours.calc_aggregate([asked], qrels, run) == found.aggregated
    assert {type(each) for each in found.per_query} == {their.Metric}
    assert type(found) is type(expected)


# --- values ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TIED.split())
def test_measures_of_trec_eval_with_equal_scores(name: str) -> None:
    pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    for seed in range(3):
        agree(name, *draw(seed))


def positive(data: Drawn) -> Drawn:
    """Above 0: Compat takes documents that were not retrieved for such of score 0. Ids of queries are numbers, which gdeval needs."""
    run = {query[1:]: {document: score + 60 for document, score in scores.items()} for query, scores in data.run.items()}
    return Drawn({query[1:]: labels for query, labels in data.qrels.items()}, run)


def without_all_relevant(data: Drawn) -> Drawn:
    """Each list ends with a document that is not judged: with relevant ones alone, Accuracy divides by 0 there."""
    return Drawn(data.qrels, {query: {**scores, "unjudged": 0.5, "other": 0.25} for query, scores in data.run.items()})


@pytest.mark.parametrize("name", UNTIED.split())
def test_measures_of_other_providers(name: str) -> None:
    for seed in range(3):
        data = positive(draw(seed, tied=False))
        if name.startswith("Accuracy"):  # whole lists, so that none has only relevant documents
            data = without_all_relevant(data)
            data = Drawn(data.qrels, {query: {"first": 1e6, **scores} for query, scores in data.run.items()})
        agree(name, *data)


@pytest.mark.parametrize("name", USER_MODELS.split())
def test_user_models(name: str) -> None:
    pytest.importorskip("cwl", reason="cwl-eval is not installed")
    for seed in range(2):
        agree(name, *draw(seed, tied=False))


@pytest.mark.parametrize("name", ROUNDED.split())
def test_measures_of_gdeval_to_its_decimals(name: str) -> None:
    if shutil.which("perl") is None:
        pytest.skip("perl is not installed")
    agree(name, *positive(draw(0, tied=False)), tolerance=1e-5)


def subtopics(seed: int) -> tuple[list[Any], dict[str, dict[str, float]]]:
    rng = np.random.default_rng(seed)
    data = draw(seed, n_queries=12, tied=False)
    rows = [
        their.Qrel(query, document, int(rng.integers(0, 2)), str(topic))
        for query, labels in data.qrels.items()
        for document in labels
        for topic in range(1, int(rng.integers(2, 5)))
    ]
    return rows, data.run


@pytest.mark.parametrize("name", DIVERSITY.split())
def test_measures_of_subtopics(name: str) -> None:
    pytest.importorskip("pyndeval", reason="pyndeval is not installed")
    for seed in range(2):
        agree(name, *subtopics(seed))
    pd = pytest.importorskip("pandas")
    rows, run = subtopics(3)
    agree(name, pd.DataFrame(rows), run)


def test_subtopics_of_a_dict_are_one() -> None:
    data = draw(0, tied=False)
    assert ours.calc_aggregate([measure("StRecall@10")], *data) == pytest.approx(
        {measure("StRecall@10"): ours.calc_aggregate([measure("Success@10")], *data)[measure("Success@10")]}
    )


# --- one order of equal scores --------------------------------------------------------------------------------------------------


def test_one_order_of_equal_scores_in_one_call() -> None:
    """RR by pytrec_eval and RR@10 by msmarco order these the one and the other way."""
    qrels, run = {"q": {"d1": 1}}, {"q": {"d1": 1.0, "d2": 1.0}}
    both = [measure("RR"), measure("RR@10")]
    assert list(ours.calc_aggregate(both, qrels, run).values()) == [0.5, 0.5]
    assert "One order of equal scores" in str(ours.__doc__)


# --- what may be given ----------------------------------------------------------------------------------------------------------

MEASURES = [their.nDCG @ 10, their.AP, their.NumRet, their.P(rel=2) @ 3]


def ways(data: Drawn) -> dict[str, tuple[Any, Any]]:
    qrels = [their.Qrel(query, document, label) for query, labels in data.qrels.items() for document, label in labels.items()]
    run = [their.ScoredDoc(query, document, score) for query, scores in data.run.items() for document, score in scores.items()]
    found: dict[str, tuple[Any, Any]] = {"namedtuples": (qrels, run), "mixed": (data.qrels, run), "iterators": (iter(qrels), iter(run))}
    try:
        import pandas as pd
    except ImportError:
        return found
    return found | {"frames": (pd.DataFrame(qrels), pd.DataFrame(run))}


@pytest.mark.parametrize("way", ["namedtuples", "mixed", "iterators", "frames"])
def test_every_kind_of_input_has_the_same_values(way: str) -> None:
    data = draw(5)
    given = ways(data).get(way)
    if given is None:
        pytest.skip("pandas is not installed")
    expected = ours.calc_aggregate(MEASURES, *data)
    assert ours.calc_aggregate(MEASURES, *given) == expected
    assert list(expected) == list(their.calc_aggregate(MEASURES, *data)) or set(expected) == set(MEASURES)


def test_the_last_row_of_a_document_counts() -> None:
    qrels = [their.Qrel("q", "d1", 0), their.Qrel("q", "d1", 1)]
    run = [their.ScoredDoc("q", "d1", 1.0), their.ScoredDoc("q", "d2", 2.0), their.ScoredDoc("q", "d1", 3.0)]
    assert ours.calc_aggregate([their.RR], qrels, run) == their.calc_aggregate([their.RR], qrels, run) == {their.RR: 1.0}


@pytest.mark.parametrize("way", ["evaluator", "calc", "iter_calc"])
def test_every_way_to_ask(way: str) -> None:
    data = draw(6)
    expected = {(each.query_id, each.measure): each.value for each in their.iter_calc(MEASURES, *data)}
    if way == "evaluator":
        held = ours.evaluator(MEASURES, data.qrels)
        found = [list(held.iter_calc(data.run)), list(held.iter_calc(data.run))][1]
    else:
        found = ours.calc(MEASURES, *data).per_query if way == "calc" else list(ours.iter_calc(MEASURES, *data))
    assert {(each.query_id, each.measure): each.value for each in found} == pytest.approx(expected)
    assert len(found) == len(expected)


def test_nothing_in_common_and_nothing_at_all() -> None:
    asked = [their.AP, their.NumRet]
    for qrels, run in (({"q": {"d": 1}}, {"z": {"d": 1.0}}), ({"q": {"d": 1}}, {}), ({"q": {"d": 1}}, [])):
        assert ours.calc_aggregate(asked, qrels, run) == {their.AP: 0.0, their.NumRet: 0.0}
        assert [tuple(each) for each in ours.iter_calc(asked, qrels, run)] == [("q", their.AP, 0.0), ("q", their.NumRet, 0.0)]
    found = ours.calc_aggregate(asked, [], {"q": {"d": 1.0}})
    assert math.isnan(found[their.AP])
    assert found[their.NumRet] == 0


def test_a_measure_of_the_users_own_is_calculated_as_they_defined_it() -> None:
    pytest.importorskip("pandas")
    pairs = their.define_byquery(lambda qrels, run: float(len(run)), name="Pairs")
    data = draw(7, complete=True)
    assert ours.calc_aggregate([pairs, their.NumRet], *data)[pairs] == pytest.approx(np.mean([len(each) for each in data.run.values()]))


@pytest.mark.parametrize(("given", "match"), [(3, "unexpected format"), ([(1, 2)], "not a namedtuple iterator")])
def test_unknown_input_is_their_error(given: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ours.calc_aggregate([their.AP], {"q": {"d": 1}}, given)
    with pytest.raises(ValueError, match=match):
        ours.calc_aggregate([their.AP], given, {"q": {"d": 1.0}})


def test_a_frame_without_a_column_is_their_error() -> None:
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"missing columns: \['score'\]"):
        ours.calc_aggregate([their.AP], {"q": {"d": 1}}, pd.DataFrame({"query_id": ["q"], "doc_id": ["d"]}))


def test_what_the_engine_does_not_have() -> None:
    unknown = type("_Own", (their.Measure,), {"NAME": "Own", "__name__": "Own", "SUPPORTED_PARAMS": {}})()
    trec_alone = type("_Trec", (their.Measure,), {"NAME": "ndcg_cut", "__name__": "ndcg_cut", "SUPPORTED_PARAMS": {}})()
    assert not ours.provider.supports(unknown)
    assert not ours.provider.supports(trec_alone)
    assert not ours.provider.supports(measure("P@0"))
    odd = type("_P", (their.Measure,), {"NAME": "P", "__name__": "P", "SUPPORTED_PARAMS": {"odd": their.ParamInfo(default=1)}})()
    assert not ours.provider.supports(odd)


# --- registration ---------------------------------------------------------------------------------------------------------------


def process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=120)


def test_importing_registers_the_provider_and_leaves_the_defaults_alone() -> None:
    assert their.providers.registry["fastrank"] is ours.provider
    assert ours.provider not in their.DefaultPipeline.providers
    assert ours.nDCG is their.nDCG
    assert {each.NAME for each in ours.provider.SUPPORTED_MEASURES} >= {"P", "nDCG", "ERR", "RBP", "alpha_nDCG", "Compat"}
    assert ours.provider.qrel_inputs([their.AP]) == ["query_id", "doc_id", "relevance"]
    assert ours.provider.qrel_inputs([their.StRecall @ 5]) == ["query_id", "doc_id", "relevance", "iteration"]


def test_install_puts_it_before_the_others() -> None:
    code = """
import ir_measures, fastrank
fastrank.compat.ir_measures.install()
fastrank.compat.ir_measures.install()
assert [each.NAME for each in ir_measures.DefaultPipeline.providers[:3]] == ["runtime", "fastrank", "pytrec_eval"]
evaluator = ir_measures.evaluator([ir_measures.AP, ir_measures.RR @ 10], {"q": {"d": 1}})
assert type(evaluator).__name__ == "FastrankEvaluator", evaluator
print((ir_measures.nDCG @ 5).calc_aggregate({"q": {"d": 1}}, {"q": {"d": 1.0}}))
"""
    done = process("-c", code)
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a 1\nq 0 b 0\nr 0 a 1\n")
    (tmp_path / "run").write_text("q Q0 b 1 2 t\nq Q0 a 2 1 t\n")
    given = [str(tmp_path / "qrels"), str(tmp_path / "run"), "AP", "P@1", "RR@10"]
    expected = process("-m", "ir_measures", *given).stdout
    assert expected == "AP\t0.2500\nP@1\t0.0000\nRR@10\t0.2500\n"
    for flags in ([], ["--provider", "fastrank"]):
        assert process("-m", "fastrank.compat.ir_measures", *given, *flags).stdout == expected
    by_query = process("-m", "fastrank.compat.ir_measures", *given, "-q", "-p", "2").stdout
    # Measures come in any order there.
    assert sorted(by_query.splitlines()[:3]) == ["q\tAP\t0.50", "q\tP@1\t0.00", "q\tRR@10\t0.50"]
    assert sorted(by_query.splitlines()[3:6]) == ["r\tAP\t0.00", "r\tP@1\t0.00", "r\tRR@10\t0.00"]


def test_without_the_library_one_sentence_says_what_to_do() -> None:
    done = process("-c", "import sys; sys.modules['ir_measures'] = None; import fastrank.compat.ir_measures")
    assert done.returncode == 1
    assert done.stderr.strip().endswith("which is not installed: pip install 'fastrank-metrics[ir-measures]'.")

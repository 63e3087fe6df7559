"""Metrics of judgements by subtopic or judge: against the reference, other programs, and by hand."""

from __future__ import annotations

import math
from typing import Any

import conformance
import numpy as np
import pytest
from grouped_table import EVERY, GROUPED, Case, expected, random_case
from metric_peers import why_absent
from metric_table import TABLE

import fastrank as fr
from fastrank import metrics as m
from fastrank.errors import InputError
from fastrank.metrics import Metric, families
from fastrank.metrics.grammar import trec_metrics

CLOSE = {"rtol": 1e-12, "atol": 1e-12}
CASES = [random_case(seed, parts=seed % 2 == 1, ties=seed % 3 > 0) for seed in range(16)]


def evaluate(case: Case, metrics: Any = EVERY, **options: Any) -> fr.Evaluation:
    return fr.evaluate_run(case.read(), case.run, metrics, **options)


def test_every_family_of_groups_has_a_row() -> None:
    assert {family for family, metric in families.items() if metric.grouped} == set(GROUPED)
    assert not set(GROUPED) & set(TABLE)


@pytest.mark.parametrize("family", GROUPED)
def test_every_parameter_is_tried_and_every_name_parses_back(family: str) -> None:
    metrics = GROUPED[family][1]
    for name in set(families[family].parameters()) - {"ties", "judged_only"}:
        if name != "k" or not families[family].whole_list_only:
            assert any(getattr(metric, name) is not None for metric in metrics), name
    for convention in fr.conventions.values():
        for metric in metrics:
            filled = metric.fill(convention)
            assert fr.parse_metric(str(filled)) == filled
            assert fr.parse_metric(str(metric), convention) == filled
            assert filled.formula
            assert "\n" not in filled.formula


# --- the reference --------------------------------------------------------------------------------------------------------------


def assert_is_reference(result: fr.Evaluation, case: Case) -> None:
    assert result.query_ids.to_pylist() == list(case.qrels)
    for metric in result.metrics:
        np.testing.assert_allclose(result[metric], expected(metric, case.qrels, case.run), **CLOSE, err_msg=str(metric))


@pytest.mark.parametrize("ties", ["docid", "input"])
@pytest.mark.parametrize("case", CASES)
def test_the_engine_is_the_reference(case: Case, ties: str) -> None:
    if ties == "docid":
        assert_is_reference(evaluate(case), case)
    else:
        assert_is_reference(evaluate(case, ties=ties), case)


def test_the_reference_refuses_other_orders_of_equal_scores() -> None:
    with pytest.raises(InputError, match="ties must be docid, ascending_docid or input"):
        fr.reference.st_recall({"q": {"1": {"a": 1}}}, {"q": {"a": 1.0}}, ties="worst")


@pytest.mark.parametrize("case", CASES[:8])
def test_judged_only_leaves_out_what_nobody_judged_or_this_judge_did_not(case: Case) -> None:
    some = [metric for metric in EVERY if "judged_only" in metric.parameters()]
    asked = [type(metric)(**{name: getattr(metric, name) for name in metric.spelled or ()}, judged_only=True) for metric in some]
    # Preferences are of judged documents alone.
    asked = [metric for metric in asked if "Pref" not in metric.family]
    assert_is_reference(evaluate(case, asked), case)
    of_call = evaluate(case, judged_only=True, metrics="P_IA@3,PrefsFul")
    judged = {query: {name for labels in flat(groups) for name in labels} for query, groups in case.qrels.items()}
    kept = {query: {name: score for name, score in scores.items() if name in judged[query]} for query, scores in case.run.items()}
    assert_is_reference(of_call, Case(case.qrels, kept))


def flat(groups: dict[str, Any]) -> list[dict[str, float]]:
    return [labels for parts in groups.values() for labels in (parts if isinstance(parts, list) else [parts])]


@pytest.mark.parametrize("case", CASES[:8])
def test_depth_is_a_list_cut_short(case: Case) -> None:
    preferences = [metric for metric in EVERY if "Pref" in metric.family]
    for metrics, reverse, options in ((EVERY, True, {"ties": "docid"}), (preferences, False, {})):
        ranked = {
            query: sorted(sorted(scores, key=str.encode, reverse=reverse), key=lambda name: -scores[name])
            for query, scores in case.run.items()
        }
        for depth in (1, 4):
            cut = {query: {name: case.run[query][name] for name in names[:depth]} for query, names in ranked.items()}
            assert_is_reference(evaluate(case, metrics, depth=depth, **options), Case(case.qrels, cut))


def test_threads_and_blocks_and_order_of_queries_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(
        {f"{seed}{query}": groups for seed in range(8) for query, groups in random_case(seed).qrels.items()},
        {f"{seed}{query}": scores for seed in range(8) for query, scores in random_case(seed).run.items()},
    )
    whole = evaluate(case, threads=1)
    assert_is_reference(whole, case)
    backwards = Case(dict(reversed(case.qrels.items())), case.run)
    assert evaluate(backwards).values[::-1].tobytes() == whole.values.tobytes()
    monkeypatch.setattr("fastrank.engine.run.BLOCK", 20)
    assert evaluate(case, threads=3).values.tobytes() == whole.values.tobytes()


def test_missing_queries_count_as_empty_lists_or_are_left_out() -> None:
    case = Case({"a": {"1": {"x": 1}}, "b": {"1": {"x": 1}}}, {"b": {"x": 1.0}})
    assert evaluate(case, "AP_IA").mean() == {"AP_IA": 0.5}
    skipped = evaluate(case, "AP_IA", missing="skip")
    assert (skipped.mean(), skipped.query_ids.to_pylist()) == ({"AP_IA": 1.0}, ["b"])
    assert [note.kind for note in skipped.notes] == ["missing_query"]


def test_labels_below_0_say_nothing() -> None:
    labels = {"x": 2, "y": 0, "z": -1}
    without = {"x": 2, "y": 0}
    run = {"q": {"z": 3.0, "y": 2.0, "x": 1.0}}
    two = [fr.evaluate_run({"q": {"1": given}}, run, "AP_avgjg,all_prefs,alpha_nDCG@2,P@1").values for given in (labels, without)]
    assert two[0].tobytes() == two[1].tobytes()
    with pytest.raises(InputError, match=r"qrels: labels must not be negative under the fastrank convention: -1 is one"):
        fr.evaluate_run({"q": {"1": labels}}, run, "AP_avgjg", convention="fastrank")


def test_other_metrics_see_the_greatest_label_of_a_document() -> None:
    case = CASES[2]
    greatest = {
        query: {name: max(labels.get(name, -math.inf) for labels in flat(groups)) for labels in flat(groups) for name in labels}
        for query, groups in case.qrels.items()
    }
    metrics = "nDCG@5,AP,RR,Bpref,NumRel,P@3"
    plain = fr.evaluate_run(greatest, case.run, metrics)
    assert evaluate(case, metrics).values.tobytes() == plain.values.tobytes()


# --- laws -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES[:12])
def test_the_greedy_order_has_exactly_1(case: Case) -> None:
    for metric in (m.alpha_nDCG(), m.alpha_nDCG(alpha=0.2, k=4), m.nERR_IA(rel=2), m.nNRBP(beta=0.8)):
        filled: Any = metric.fill(fr.conventions["trec_eval"])
        for query, groups in case.qrels.items():
            subtopics = [
                {name for labels in flat({"": parts}) for name, label in labels.items() if label >= filled.rel} for parts in groups.values()
            ]
            order = greedy_order([documents for documents in subtopics if documents], filled.alpha)
            run = {query: {name: float(-place) for place, name in enumerate(order)} or {"unjudged": 1.0}}
            assert evaluate(Case({query: groups}, run), metric).values[0, 0] == float(bool(order))


def greedy_order(subtopics: list[set[str]], alpha: float) -> list[str]:
    """At each rank the document of the greatest gain; of equal ones that of the greatest id."""
    left, order = sorted(set().union(*subtopics), key=str.encode, reverse=True), list[str]()
    while left:
        gains = [sum((1 - alpha) ** len(documents & set(order)) for documents in subtopics if name in documents) for name in left]
        order.append(left.pop(gains.index(max(gains))))
    return order


def test_one_subtopic_and_one_relevant_document_make_alpha_ndcg_ndcg() -> None:
    for place in range(1, 6):
        run = {"q": {f"d{i}": float(-i) for i in range(1, 6)}}
        values = fr.evaluate_run({"q": {"1": {f"d{place}": 1}}}, run, "alpha_nDCG@5,nDCG@5,nERR_IA@5,RR").values[0]
        assert values[0] == pytest.approx(values[1], abs=1e-15)
        assert values[2] == pytest.approx(values[3], abs=1e-15)


def test_one_judge_is_the_metric_itself() -> None:
    for seed in range(6):
        case = random_case(seed)
        one = {query: {"only": next(iter(groups.values()))} for query, groups in case.qrels.items()}
        values = fr.evaluate_run(
            one, case.run, "AP_avgjg,AP_IA,AP,P_avgjg@4,P_IA@4,P@4,Rprec_avgjg(multiple=1.4),Rprec(multiple=1.4)"
        ).values.T
        for a, b in ((0, 2), (3, 5), (6, 7)):
            np.testing.assert_allclose(values[a], values[b], **CLOSE)
        found = np.array([any(label >= 1 for label in groups["only"].values()) for groups in one.values()])
        np.testing.assert_allclose(values[1], values[2], **CLOSE)
        np.testing.assert_allclose(values[4][found], values[5][found], **CLOSE)


# --- by hand --------------------------------------------------------------------------------------------------------------------

TWO_SUBTOPICS = Case({"q": {"1": {"a": 1, "b": 1}, "2": {"b": 1}}}, {"q": {"a": 2.0, "b": 1.0}})
TWO_JUDGES = Case({"q": {"1": {"b": 1}, "2": {"a": 1, "c": 1}}}, {"q": {"a": 3.0, "b": 2.0, "c": 1.0}})
ONE_JUDGE = Case({"q": {"1": {"a": 2, "b": 1, "c": 0}}}, {"q": {"b": 2.0, "a": 1.0}})
EXAMPLES: dict[str, Case] = {
    **dict.fromkeys(("alpha_DCG", "alpha_nDCG", "ERR_IA", "nERR_IA", "NRBP", "nNRBP", "AP_IA", "P_IA", "StRecall"), TWO_SUBTOPICS),
    **dict.fromkeys(("AP_avgjg", "P_avgjg", "Rprec_avgjg"), TWO_JUDGES),
    **dict.fromkeys(("NumPrefs", "NumPrefsFul", "PrefsFul"), ONE_JUDGE),
    "PrefsRnonrel": Case({"q": {"1": {"a": 1, "b": 1, "c": 0}}}, {"q": {"a": 3.0, "c": 2.0, "b": 1.0}}),
}


@pytest.mark.parametrize("family", GROUPED)
def test_the_worked_example_of_a_family_is_right(family: str) -> None:
    said = families[family].example.partition(f"{family}")
    name, _, rest = (said[1] + said[2]).partition(" = ")
    formula, *result = rest.partition(",")[0].split(" = ")
    value = evaluate(EXAMPLES[family], name).values[0, 0]
    assert value == pytest.approx(eval(formula, {"log2": math.log2}), abs=1e-15)  # noqa: S307  (the text is the package's)
    assert all(value == pytest.approx(float(shown), abs=0.5e-4) for shown in result)


def test_a_cutoff_of_more_terms_than_can_be_summed_is_refused() -> None:
    run = TWO_SUBTOPICS.run
    with pytest.raises(InputError, match=r"alpha_DCG\(alpha=0\)@100000000 sums as many terms as its cutoff"):
        fr.evaluate_run(TWO_SUBTOPICS.qrels, run, "alpha_DCG(alpha=0)@100000000")
    assert evaluate(TWO_SUBTOPICS, "alpha_DCG@100000000").values == evaluate(TWO_SUBTOPICS, "alpha_DCG@200").values


# --- other programs -------------------------------------------------------------------------------------------------------------

NDEVAL = {
    "ERR-IA": "ERR_IA",
    "nERR-IA": "nERR_IA",
    "alpha-DCG": "alpha_DCG",
    "alpha-nDCG": "alpha_nDCG",
    "P-IA": "P_IA",
    "strec": "StRecall",
}


@pytest.mark.skipif(why_absent("pyndeval") is not None, reason=str(why_absent("pyndeval")))
def test_diversity_is_ndevals() -> None:
    import pyndeval

    random = np.random.default_rng(7)
    compared = 0
    for seed in range(120):
        case = random_case(1000 + seed, ties=False)
        alpha, beta, rel = float(random.choice([0.5, 0.25, 0.8, 0, 1])), float(random.choice([0.5, 0.3, 0.9])), int(random.integers(1, 3))
        # Its ERR-IA and alpha-DCG are not normalised at cutoff 1.
        named = [f"{name}@{k}" for name in NDEVAL for k in (1, 2, 5, 20) if k > 1 or name not in ("ERR-IA", "alpha-DCG")]
        named += ["NRBP", "nNRBP", "MAP-IA"]
        rows = [(q, g, name, label) for q, groups in case.qrels.items() for g, labels in groups.items() for name, label in labels.items()]
        run = [(q, name, score) for q, scores in case.run.items() for name, score in scores.items()]
        found = pyndeval.RelevanceEvaluator(rows, named, relevance_level=rel, alpha=alpha, beta=beta).evaluate(run)
        result = evaluate(case, [_as_ndeval_has_it(name, rel, alpha, beta) for name in named])
        for query, values in zip(result.query_ids.to_pylist(), result.values, strict=True):
            if query in found:
                # Divided by an ideal of 0 there.
                theirs = np.nan_to_num([found[query][name] for name in named])
                np.testing.assert_allclose(values, theirs, **CLOSE)
                compared += len(named)
    assert compared > 5_000


def _as_ndeval_has_it(name: str, rel: int, alpha: float, beta: float) -> Metric:
    head, _, k = name.partition("@")
    family = families[NDEVAL.get(head, {"MAP-IA": "AP_IA"}.get(head, head))]
    given = {"rel": rel, "alpha": alpha, "beta": beta, **({"k": int(k)} if k else {})}
    return family(**{parameter: value for parameter, value in given.items() if parameter in family.parameters()})


@pytest.mark.skipif(why_absent("pyndeval") is not None, reason=str(why_absent("pyndeval")))
def test_ir_measures_names_mean_its_numbers() -> None:
    import ir_measures
    from ir_measures.util import Qrel

    names = ("alpha_nDCG@10", "alpha_DCG(alpha=0.3)@5", "ERR_IA@10", "nERR_IA(rel=2)@5", "NRBP(alpha=0.2,beta=0.7)", "nNRBP", "AP_IA",
             "P_IA@5", "StRecall(rel=2)@3")  # fmt: skip
    for seed in range(10):
        case = random_case(2000 + seed, ties=False)
        qrels = [
            Qrel(q, name, label, g) for q, groups in case.qrels.items() for g, labels in groups.items() for name, label in labels.items()
        ]
        result = evaluate(case, names)
        for column, name in enumerate(names):
            theirs = {each.query_id: each.value for each in ir_measures.iter_calc([ir_measures.parse_measure(name)], qrels, case.run)}
            ours = dict(zip(result.query_ids.to_pylist(), result.values[:, column], strict=True))
            for query in ours:
                assert ours[query] == pytest.approx(np.nan_to_num(theirs[query]), abs=1e-12), name


# What trec_eval's own tests expect (test/out.test.qrels_prefs, out.test.prefs): four decimals, in the order of `all_prefs`.
OF_QRELS = {
    "301": (584916, 81605, 7339, 0.1395, 0.1395, 0.1395, 0.1223, 0.5498, 0.5498, 0.5498, 0.1922, 0.4995, 0.4995, 0.4995),
    "302": (75768, 47531, 9031, 0.6273, 0.6273, 0.6273, 0.0700, 0.8440, 0.8440, 0.8440, 0.2180, 0.8645, 0.8645, 0.8645),
    "303": (9020, 8464, 1494, 0.9384, 0.9384, 0.9384, 0.0049, 0.7288, 0.7288, 0.7288, 0.0209, 0.9384, 0.9384, 0.9384),
}
THREE_JUDGES = {"0": (0, 1, 0, 5), "1": (4, 6, 6, 5), "2": (9, 8, 7, 5)}
OF_JUDGES = (16, 9, 4, 0.5625, 0.5833, 0.5333, 0.5616, 0.5714, 0.6111, 0.5, 0.4810, 0.5625, 0.5833, 0.5333)
PREFS = [name for name, _ in trec_metrics("all_prefs")]


def assert_prints(values: np.ndarray, printed: tuple[float, ...]) -> None:
    assert [f"{value:.4f}" for value in values] == [f"{value:.4f}" for value in printed]


@pytest.mark.slow
def test_preferences_in_qrels_are_trec_evals() -> None:
    conformance.require()
    folder = conformance.FOLDER / "real"
    result = fr.evaluate_run(str(folder / "te.qrels.test"), str(folder / "te.results.test"), PREFS[1:], missing="skip")
    assert PREFS[0] == "num_q"
    for query, printed in OF_QRELS.items():
        assert_prints(result.values[result.query_ids.to_pylist().index(query)], printed)


def test_preferences_of_several_judges_are_trec_evals() -> None:
    names = ("d1", "d2", "d3", "d4")
    whole: dict[str, Any] = {judge: dict(zip(names, labels, strict=True)) for judge, labels in THREE_JUDGES.items()}
    # The same preferences once more in a part of its own: those of several parts are counted in another way in one of its measures.
    parts = {judge: [labels, {name: labels[name] for name in ("d1", "d2")}] for judge, labels in whole.items()}
    run = {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}
    for groups, odd_one in ((whole, 0.4810), (parts, 0.6476)):
        assert_prints(evaluate(Case({"q": groups}, run), PREFS[1:]).values[0], (*OF_JUDGES[:10], odd_one, *OF_JUDGES[11:]))


def test_trec_evals_names_say_which_preferences() -> None:
    assert [(name, str(metric)) for name, metric in trec_metrics("prefs_pair_imp")] == [
        ("prefs_pair_imp", "PrefsFul(among='any_retrieved', over='pairs')")
    ]
    assert fr.parse_metric("prefs_avgjg_Rnonrel_ret") == m.PrefsRnonrel(among="both_retrieved")
    assert fr.parse_metric("Rprec_mult_avgjg_0.40") == m.Rprec_avgjg(multiple=0.4)
    assert [name for name, _ in trec_metrics("prefs")][1:] == PREFS[1:7]
    assert [name for name, _ in trec_metrics("qrels_jg")][:3] == ["num_q", "map_avgjg", "P_avgjg_5"]
    assert len(PREFS) == 15
    assert not {metric.family for metric in fr.parse_metrics("all_trec")} & set(GROUPED)

"""Right values for inputs that gave users wrong ones: ties, empty queries, ideals, gains, and what is divided by what.

One test per entry of field_reports.jsonl, named by its id: input and right value come from there.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from field_reports import Values, agrees, check, in_order, joined, judged, mean, report, value

import fastrank as fr

# --- equal scores ------------------------------------------------------------------------------------------------------------------


@report(1)
def test_ties_follow_the_document_id_and_no_rank_column(given: Values, right: Values) -> None:
    for run in ("run_A", "run_B"):
        check(given["qrels"], given[run], right[run])


@report(3)
def test_two_tie_rules_are_three_numbers(given: Values, right: Values) -> None:
    check(given["qrels"], given["run"], right["trec_original"])
    check(given["renamed"]["qrels"], given["renamed"]["run"], right["trec_renamed"])
    for data in (given, given["renamed"]):
        averaged = judged(data["qrels"], data["run"], ["ndcg_cut_4"], ties="average")
        agrees(averaged["mean"]["ndcg_cut_4"], right["tie_averaged"])


@report(5)
def test_constant_scores_know_no_row_order(given: Values, right: Values) -> None:
    [(query, run)] = given["run"].items()
    for order in itertools.permutations(given["insertion_order"]):
        shuffled = {query: {doc: run[doc] for doc in order}}
        check(given["qrels"], shuffled, right)
        averaged = judged(given["qrels"], shuffled, ["map", "recip_rank", "ndcg_cut_10"], ties="average")
        assert averaged == judged(given["qrels"], given["run"], ["map", "recip_rank", "ndcg_cut_10"], ties="average")


@report(7)
def test_labels_do_not_order_equal_scores(given: Values, right: Values) -> None:
    def ndcg(data: Values, ties: str) -> float:
        return fr.ndcg(data["labels"], data["scores"], gain=given["gain"], ties=ties).item()

    agrees(ndcg(given, "average"), right["tie_averaged"])
    agrees(ndcg(given["other"], "average"), right["tie_averaged_partial"])
    agrees(ndcg(given, "worst"), right["worst_case"])
    assert ndcg(given, "best") == right["best_case"]


@report(9)
def test_order_of_ties_does_not_depend_on_the_length(given: Values, right: Values) -> None:
    rules = {"stable_by_position": "input", "docid_desc": "docid", "tie_averaged_RR": "average"}
    found = {name: judged(given["qrels"], given["run"], ["RR"], ties=ties)["mean"]["RR"] for name, ties in rules.items()}
    agrees(found, right)
    for n in range(1, 50):
        labels, scores, ids = [1] + [0] * (n - 1), np.ones(n), [f"d{i:02}" for i in range(n)]
        assert value("RR", labels, scores, ties="input") == 1.0
        assert value("RR", labels, scores, doc_ids=ids, ties="docid") == 1 / n
        agrees(value("RR", labels, scores), sum(1 / r for r in range(1, n + 1)) / n)


@report(11)
def test_scores_are_compared_in_the_width_they_have(given: Values, right: Values) -> None:
    for width, values in right.items():
        agrees(judged(given["qrels"], given["run"], values, dtype=width)["mean"], values)


@report(13)
def test_float32_scores_above_two_to_the_24th(given: Values, right: Values) -> None:
    scores = given["scores"]
    agrees(value("nDCG", given["labels"], scores, sizes=given["group"], ties="input"), right["float64_ndcg"])
    agrees(value("nDCG", given["labels"], np.float32(scores), sizes=given["group"], ties="input"), right["float32_ndcg"])
    agrees(value("ndcg", given["labels"], scores, sizes=given["group"], convention="xgboost"), right["float32_ndcg"])
    agrees(value("ndcg", given["labels"], scores, sizes=given["group"], convention="lightgbm"), right["float64_ndcg"])


@report(15)
def test_ties_across_the_cutoff(given: Values, right: Values) -> None:
    check(given["qrels"], given["run"], right["trec"])
    name = f"P@{given['k']}"
    result = fr.evaluate(**joined(given["qrels"], given["run"]), metrics=name, bounds=True)
    agrees(result[name].item(), right["P2_expected"])
    assert (result.bounds.low.item(), result.bounds.high.item()) == (right["P2_min"], right["P2_max"])


@report(17)
def test_nearly_equal_scores_are_not_equal(given: Values, right: Values) -> None:
    scores = np.array([given["true_score"], *given["candidate_scores"]])
    labels = [1, 0, 0, 0]
    for ties in ("average", "worst", "best", "input"):
        assert value("RR", labels, scores, ties=ties) == right["exact_compare_RR"]
    assert value("RR", labels, np.rint(scores / 1e-9), ties="worst") == right["atol_1e-9_pessimistic_RR"]


@report(147)
def test_one_tie_rule_for_all_metrics_of_a_call(given: Values, right: Values) -> None:
    result = fr.evaluate(given["labels"], given["scores"], metrics="nDCG,RR,AP,P@1")
    agrees(dict(zip(right, result.values[0].tolist(), strict=True)), right)


# --- nothing to find, nothing retrieved ----------------------------------------------------------------------------------------------


@report(19)
def test_xgboost_names_with_a_dash(given: Values, right: Values) -> None:
    result = fr.evaluate(given["labels"], given["scores"], sizes=given["group"], metrics=given["metrics"], convention="xgboost")
    for name, mean_value in right.items():
        agrees(mean(result, name), mean_value)
    assert result["pre@2"].tolist() == [0.5, 0.0]
    plain = fr.evaluate(given["labels"], given["scores"], sizes=given["group"], metrics=["ndcg@5", "ndcg@5-", "ndcg-", "map-"])
    agrees(mean(plain, "ndcg@5"), right["ndcg@5-"])


@report(21)
def test_a_list_of_one_document(given: Values, right: Values) -> None:
    relevant, other = given["cases"]
    for convention in (name for name, choices in fr.conventions.items() if not choices.trec):  # those need document ids
        assert value("nDCG", relevant["labels"], relevant["scores"], convention=convention) == right["relevant"]
    assert value("nDCG", other["labels"], other["scores"]) == right["nonrelevant_trec"]
    assert value("nDCG", other["labels"], other["scores"], convention="lightgbm") == right["nonrelevant_lightgbm"]


@report(23)
def test_a_row_for_every_query(given: Values, right: Values) -> None:
    data = joined(given["qrels"], given["run"])
    for rule in ("zero", "skip"):
        result = fr.evaluate(**data, metrics="RR", no_relevant=rule)
        assert result.mean()["RR"] == right[f"mean_{rule}_policy"]
        assert result.n_queries == len(result.values) == right["n_queries"]
        [row] = result.summary().rows
        assert row.n_no_relevant == right["n_no_relevant"]
        assert [note.count for note in result.notes if note.kind == "no_relevant"] == [right["n_no_relevant"]]
    assert row.n_queries == right["n_queries"] - right["n_no_relevant"]


@report(25)
def test_a_query_without_results_counts(given: Values, right: Values) -> None:
    check(given["qrels"], given["run"], right)


@report(27)
def test_a_query_without_results_is_no_error(given: Values, right: Values) -> None:
    agrees(judged(given["qrels"], given["run"], ["RR"])["mean"], {"RR": right["mrr"]})


@report(33)
def test_reciprocal_rank_of_nothing(given: Values, right: Values) -> None:
    agrees({"RR": fr.reciprocal_rank(given["labels"], given["scores"]).item()}, right)


@report(35)
def test_a_query_without_results_has_a_row(given: Values, right: Values) -> None:
    found = judged(given["qrels"], given["run"], ["ndcg"])
    agrees(found["mean"]["ndcg"], right["mean_ndcg"])
    assert set(found["per_query"]) == set(given["qrels"])


# --- the ideal order -----------------------------------------------------------------------------------------------------------------


@report(37)
def test_ideal_holds_what_was_not_retrieved(given: Values, right: Values) -> None:
    check(given["qrels"], given["run_one_hit"], right["one_hit"])
    check(given["qrels"], given["run_ten_hits"], right["ten_hits"])


@report(41)
def test_ideal_of_all_judged_documents(given: Values, right: Values) -> None:
    check(given["qrels"], given["run"], right)


@report(43)
def test_one_cutoff_does_not_depend_on_others(given: Values, right: Values) -> None:
    for ks in ([3], [5], [3, 5], [5, 3], [1, 3, 5, 3]):
        found = fr.ndcg(given["labels"], given["scores"], k=ks, gain=given["gain"])[0]
        for k, each in zip(ks, found, strict=True):
            if k > 1:
                agrees(each, right[f"ndcg@{k}"])


@report(45)
def test_ideal_with_and_without_a_cutoff(given: Values, right: Values) -> None:
    check(given["qrels"], given["run"], right)


@report(145)
def test_equal_labels_have_ranks_of_their_own_in_the_ideal(given: Values, right: Values) -> None:
    assert value("nDCG", given["labels"], given["scores"]) == right["ndcg"]


# --- gain and discount ---------------------------------------------------------------------------------------------------------------


@report(47)
def test_discount_of_the_first_ranks(given: Values, right: Values) -> None:
    ranks = np.array(given["labels_single_relevant_at_rank"])
    labels = (ranks[:, None] == np.arange(1, 4)).astype(int)
    agrees(fr.ndcg(labels).tolist(), right["ndcg"])
    agrees(fr.ndcg(labels, discount="jarvelin:2").tolist(), right["jarvelin_kekalainen_2002_b2"])


@report(49)
def test_largest_label_of_err_is_a_parameter(given: Values, right: Values) -> None:
    labels = given["grades_in_rank_order"]
    for largest in (5, 8):
        agrees(fr.err(labels, max_label=largest).item(), right[f"max_label_{largest}"])
    assert right["max_label_4"] == "error"
    with pytest.raises(fr.InputError, match=r"label 5 .*max_label=4.*ERR\(max_label=5\)"):
        fr.err(labels)
    assert "max_label=8" in str(fr.metrics.ERR(max_label=8))


@report(51)
def test_gains_are_doubles(given: Values, right: Values) -> None:
    *legal, too_large = given["grades"]
    for label in legal:
        assert fr.dcg(np.array([label], np.int64)).item() == float(2**label - 1)
    assert fr.dcg([64]).item() == right["2**64-1"]
    assert right[f"g={too_large}"] == "ValueError"
    with pytest.raises(ValueError, match=rf"label {too_large} is too large"):
        fr.dcg([too_large])


@report(53)
def test_any_label_has_a_linear_gain(given: Values, right: Values) -> None:
    found = fr.ndcg(given["labels"], given["scores"], sizes=given["group"], gain="linear").item()
    agrees({"ndcg_linear": found}, right)


@report(55)
def test_negative_labels(given: Values, right: Values) -> None:
    labels, scores = np.array(given["labels"]), given["scores"]
    with pytest.raises(fr.InputError, match="must not be negative"):
        fr.ndcg(labels, scores, gain=given["gain"])
    agrees(fr.ndcg(np.maximum(labels, 0), scores, gain=given["gain"]).item(), right["clamped"])
    assert right["sklearn_now"] == "ValueError"
    with pytest.raises(ValueError, match="nDCG under the sklearn convention takes no labels below 0, not -1"):
        fr.evaluate(labels, scores, metrics="nDCG", convention="sklearn")
    agrees(value("DCG", labels, scores, convention="sklearn"), right["dcg_raw"])


@report(57)
def test_documents_judged_negative(given: Values, right: Values) -> None:
    """A negative label says "in the pool, unjudged": an error in an array, whose cure is to mask it."""
    with pytest.raises(fr.InputError, match="mask it when the document is unjudged"):
        judged(given["qrels"], given["run"], ["P_1"])
    qrels = {query: {doc: None if label < 0 else label for doc, label in labels.items()} for query, labels in given["qrels"].items()}
    check(qrels, given["run"], right["no_filter"])
    agrees(judged(qrels, given["run"], ["P_1"], judged_only=True)["mean"], right["trec_J"])


@report(59)
def test_fractional_labels(given: Values, right: Values) -> None:
    agrees(judged(given["qrels"], given["run"], ["ndcg"])["mean"]["ndcg"], right["float_gain_linear"])
    binary = right["binary_threshold_ge_1"]
    agrees(judged(given["qrels"], given["run"], binary)["mean"], binary)


@report(73)
def test_grades_are_not_ones(given: Values, right: Values) -> None:
    name = f"ndcg_cut_{given['k']}"
    agrees(judged(given["qrels"], given["run"], [name])["mean"][name], right["linear"])
    ones = {query: dict.fromkeys(labels, 1) for query, labels in given["qrels"].items()}
    agrees(judged(ones, given["run"], [name])["mean"][name], right["binary"])


@report(143)
def test_ndcg_may_fall_as_k_grows(given: Values, right: Values) -> None:
    found = {name: fr.evaluate(given["labels"], given["scores"], metrics=f"{name}@1,2,3").values[0] for name in ("nDCG", "R", "DCG")}
    agrees(found["nDCG"].tolist(), [right[f"ndcg@{k}"] for k in given["k"]])
    assert found["nDCG"][1] < found["nDCG"][0]
    for name in ("R", "DCG"):
        assert np.all(np.diff(found[name]) >= 0)


# --- which documents are relevant, and what is divided by what ------------------------------------------------------------------------


@report(61)
def test_each_metric_has_a_level_of_its_own(given: Values, right: Values) -> None:
    names = {"map": "AP(rel={})", "recip_rank": "RR(rel={})", "recall_1000": "R(rel={})@1000", "ndcg_cut_10": "nDCG(gain='linear')@10"}
    asked = {level: {name: metric.format(level.removeprefix("level")) for name, metric in names.items()} for level in right}
    result = fr.evaluate(**joined(given["qrels"], given["run"]), metrics=[metric for each in asked.values() for metric in each.values()])
    for level, metrics in asked.items():
        agrees({name: mean(result, metric) for name, metric in metrics.items()}, right[level])


@report(63)
def test_average_precision_falls_when_relevant_documents_are_missed(given: Values, right: Values) -> None:
    denominators = {"trec_map_cut": "relevant", "min_k_R": "min_k", "torchmetrics": "hits"}
    for name, below in denominators.items():
        metric = f"AP(denominator={below!r})@{given['k']}"
        agrees(value(metric, given["labels"], given["scores"]), right[name])


@report(65)
def test_any_list_of_cutoffs(given: Values, right: Values) -> None:
    for ks in [*given["eval_at"], [2, 2, 5, 2]]:
        names = [f"map@{k}" for k in ks]
        result = fr.evaluate(given["labels"], given["scores"], sizes=given["group"], metrics=names, convention="lightgbm")
        for name in set(names) & set(right):
            agrees(result[name].item(), right[name])


@report(67)
def test_precision_divides_by_k(given: Values, right: Values) -> None:
    found = {f"P@{k}": fr.precision(given["labels"], given["scores"], k=k).item() for k in given["k"]}
    agrees(found, {name: right[name] for name in found})
    # With at most k relevant documents the capped recall is the recall.
    agrees(fr.recall(given["labels"], given["scores"], k=5).item(), right["capped_recall@5"])


@report(69)
def test_recall_divides_by_the_relevant(given: Values, right: Values) -> None:
    data = joined(given["qrels"], {"q": in_order(given["ranking"])})
    found = fr.recall(data["labels"], data["scores"], query_ids=data["query_ids"], k=[1, 2, 3, 4, 5])
    agrees(found[0].tolist(), right["recall@1..5"])


@report(71)
def test_reciprocal_rank_with_and_without_a_cutoff(given: Values, right: Values) -> None:
    found = judged(given["qrels"], given["run"], ["RR", "RR@10"])["mean"]
    agrees({"RR": found["RR"], "RR_at_10": found["RR@10"]}, right)


@report(119)
def test_average_precision_of_a_perfect_order(given: Values, right: Values) -> None:
    name = f"map@{given['k']}"
    agrees(value(name, given["labels"], given["scores"]), right["map_cut_2"])
    agrees(value(name, given["labels"], given["scores"], convention="lightgbm"), right["min_k_R"])


@report(151)
def test_the_candidates_are_part_of_the_number(given: Values, right: Values) -> None:
    labels = np.arange(1, given["catalogue"] + 1) == given["full_rank_of_positive"]
    agrees(value("RR", labels), right["RR_full"])
    agrees(value("Success@1", labels), right["HR_1_full"])


@report(153)
def test_condensed_lists_are_asked_for(given: Values, right: Values) -> None:
    agrees(judged(given["qrels"], given["run"], ["ndcg", "Judged@3"])["mean"], {"ndcg": right["full"], "Judged@3": right["judged_at_3"]})
    agrees(judged(given["qrels"], given["run"], ["ndcg"], judged_only=True)["mean"]["ndcg"], right["condensed"])

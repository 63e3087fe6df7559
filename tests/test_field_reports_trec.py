"""Failures that users met with qrels and runs: entries of field_reports.jsonl through TREC text, and through dicts.

One test per entry, named by its id: input and right value come from there.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import conformance
import pytest

import fastrank as fr

conformance.require()

Dicts = Mapping[str, Mapping[str, float]]


def entry(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The input and the right values of an entry."""
    found = conformance.field_reports()[number]
    return found["input"], found["right"].get("values", {})


def qrels_text(qrels: Dicts) -> bytes:
    return "".join(f"{query}\t0\t{doc}\t{label}\n" for query, docs in qrels.items() for doc, label in docs.items()).encode()


def run_text(run: Dicts, rank: Mapping[str, int] | None = None) -> bytes:
    ranks = rank or {}
    lines = (f"{query} Q0 {doc} {ranks.get(doc, 0)} {score!r} t\n" for query, docs in run.items() for doc, score in docs.items())
    return "".join(lines).encode()


def means(qrels: Any, run: Any, names: list[str], **options: Any) -> dict[str, float]:
    """Means by the names asked for."""
    return dict(zip(names, fr.evaluate_run(qrels, run, names, **options).mean().values(), strict=True))


def agrees(found: Mapping[str, float], right: Mapping[str, float]) -> None:
    assert dict(found) == pytest.approx(dict(right), abs=1e-12)


# --- values by query, and means -----------------------------------------------------------------------------------------------------


def by_values() -> dict[str, tuple[Dicts, Dicts, dict[str, Any]]]:
    """Qrels, run and right values of each entry that has them by query."""
    names = {5: "run", 25: "run", 29: "run", 41: "run", 45: "run"}
    found = {str(number): (entry(number)[0]["qrels"], entry(number)[0][name], entry(number)[1]) for number, name in names.items()}
    for number, parts in {
        1: {"run_A": "run_A", "run_B": "run_B"},
        15: {"run": "trec"},
        37: {"run_one_hit": "one_hit", "run_ten_hits": "ten_hits"},
        57: {"run": "no_filter"},
    }.items():
        given, right = entry(number)
        found |= {f"{number} {run}": (given["qrels"], given[run], right[values]) for run, values in parts.items()}
    given, right = entry(3)
    found["3 original"] = (given["qrels"], given["run"], right["trec_original"])
    found["3 renamed"] = (given["renamed"]["qrels"], given["renamed"]["run"], right["trec_renamed"])
    return found


@pytest.mark.parametrize("convention", ["trec_eval", "trec_eval9"])
@pytest.mark.parametrize("name", by_values())
def test_values(name: str, convention: str) -> None:
    qrels, run, right = by_values()[name]
    for way in ((qrels_text(qrels), run_text(run)), (qrels, run)):
        asked = list(right["mean"])
        result = fr.evaluate_run(*way, asked, convention=convention)
        agrees(dict(zip(asked, result.mean().values(), strict=True)), right["mean"])
        assert result.query_ids.to_pylist() == list(right["per_query"])
        for q, values in enumerate(right["per_query"].values()):
            agrees({metric: result[metric][q] for metric in values}, values)


# --- ties and scores ----------------------------------------------------------------------------------------------------------------


def test_1_the_rank_column_is_never_read() -> None:
    given, right = entry(1)
    for run in ("run_A", "run_B"):
        content = run_text(given[run], given["rank_column_in_both_files"])
        agrees(means(qrels_text(given["qrels"]), content, list(right[run]["mean"])), right[run]["mean"])


def test_9_the_order_of_equal_scores_does_not_depend_on_how_many_there_are() -> None:
    given, right = entry(9)
    assert means(qrels_text(given["qrels"]), run_text(given["run"]), ["RR"]) == {"RR": right["docid_desc"]}
    assert means(qrels_text(given["qrels"]), run_text(given["run"]), ["RR"], ties="input") == {"RR": right["stable_by_position"]}
    averaged = means(qrels_text(given["qrels"]), run_text(given["run"]), ["RR"], ties="average")
    agrees(averaged, {"RR": right["tie_averaged_RR"]})


def test_11_scores_that_float32_makes_equal() -> None:
    given, right = entry(11)
    for convention, width in (("trec_eval", "float64"), ("trec_eval9", "float32")):
        agrees(means(qrels_text(given["qrels"]), run_text(given["run"]), list(right[width]), convention=convention), right[width])


def test_15_bounds_of_a_tie_across_the_cutoff() -> None:
    given, right = entry(15)
    result = fr.evaluate_run(qrels_text(given["qrels"]), run_text(given["run"]), "P@2", bounds=True)
    assert (result.bounds.low.item(), result.bounds.high.item()) == (right["P2_min"], right["P2_max"])
    assert means(qrels_text(given["qrels"]), run_text(given["run"]), ["P@2"], ties="average") == {"P@2": right["P2_expected"]}


def test_93_text_and_nan_are_no_scores() -> None:
    given, _ = entry(93)
    told = "<bytes>, line 1: score must be a number: 'q Q0 a 1 abc t'"
    with pytest.raises(fr.InputError, match=f"^{re.escape(told)}$"):
        fr.evaluate_run(given["qrels_text"].encode(), given["run_text"].encode())
    with pytest.raises(fr.InputError, match="line 1: score must be a number"):
        fr.evaluate_run(given["qrels_text"].encode(), given["run_text"].replace("abc", "NaN").encode())


def test_95_scores_are_never_compared_with_zero() -> None:
    given, right = entry(95)
    agrees(means(qrels_text(given["qrels"]), run_text(given["run"]), list(right)), right)


# --- queries and documents in one of the two ----------------------------------------------------------------------------------------


def test_23_a_query_without_judgements_has_nothing_to_find() -> None:
    given, right = entry(23)
    zero = fr.evaluate_run(given["qrels"], given["run"], "AP")
    assert (zero.mean()["AP"], zero.n_queries, zero.no_relevant) == (
        right["mean_zero_policy"],
        right["n_queries"],
        (right["n_no_relevant"],),
    )
    assert means(given["qrels"], given["run"], ["AP"], no_relevant="skip") == {"AP": right["mean_skip_policy"]}


@pytest.mark.parametrize(("number", "metric", "value"), [(27, "RR", "mrr"), (35, "nDCG", "mean_ndcg")])
def test_a_query_that_finds_nothing_counts(number: int, metric: str, value: str) -> None:
    given, right = entry(number)
    result = fr.evaluate_run(qrels_text(given["qrels"]), run_text(given["run"]), metric)
    assert result.mean() == {metric: right[value]}
    assert result.n_queries == len(given["qrels"])
    assert "missing_query" in {note.kind for note in result.notes}


def test_31_what_is_read_can_be_used_again() -> None:
    given, right = entry(31)
    qrels, run = fr.Qrels.read(given["qrels_text"].encode()), fr.Run.read(run_text(given["run"]))
    assert [means(qrels, run, ["RR"])["RR"] for _ in range(given["calls"])] == [right["first"], right["second"]]


def test_57_judged_only_drops_negative_labels_as_well() -> None:
    given, right = entry(57)
    agrees(means(qrels_text(given["qrels"]), run_text(given["run"]), ["P_1"], judged_only=True), right["trec_J"])


def test_153_condensed_lists_are_asked_for_by_name() -> None:
    given, right = entry(153)
    qrels, run = qrels_text(given["qrels"]), run_text(given["run"])
    assert means(qrels, run, ["nDCG", "Judged@3"]) == pytest.approx({"nDCG": right["full"], "Judged@3": right["judged_at_3"]})
    assert means(qrels, run, ["nDCG"], judged_only=True) == {"nDCG": right["condensed"]}


# --- labels and metrics -------------------------------------------------------------------------------------------------------------


def test_59_fractions_are_not_cut() -> None:
    given, right = entry(59)
    qrels, run = qrels_text(given["qrels"]), run_text(given["run"])
    agrees(means(qrels, run, ["nDCG(gain='linear')"], convention="fastrank"), {"nDCG(gain='linear')": right["float_gain_linear"]})
    agrees(means(qrels, run, ["map", "P_1"], convention="fastrank"), right["binary_threshold_ge_1"])
    with pytest.raises(fr.InputError, match=r"labels must be whole numbers under the trec_eval convention: 0\.9 at query 'q', "):
        fr.evaluate_run(qrels, run)


def test_61_each_metric_has_a_level_of_its_own() -> None:
    given, right = entry(61)
    qrels, run = qrels_text(given["qrels"]), run_text(given["run"])
    agrees(means(qrels, run, list(right["level1"])), right["level1"])
    names = ["AP(rel=2)", "RR(rel=2)", "R(rel=2)@1000", "nDCG@10"]
    assert list(means(qrels, run, names).values()) == pytest.approx(list(right["level2"].values()), abs=1e-12)


NAMED = {71: {"RR": "RR", "RR@10": "RR_at_10"}, 73: {"nDCG@10": "linear"}, 131: {"ndcg_cut_5": "ndcg_cut_5", "ndcg_cut_20": "ndcg_cut_20"}}


@pytest.mark.parametrize(("number", "asked"), NAMED.items())
def test_a_metric_by_its_name(number: int, asked: dict[str, str]) -> None:
    given, right = entry(number)
    for _ in range(given.get("calls", 1)):
        found = means(qrels_text(given["qrels"]), run_text(given["run"]), list(asked))
        agrees(found, {name: right[value] for name, value in asked.items()})


def test_141_metrics_that_are_asked_for_twice() -> None:
    given, right = entry(141)
    result = fr.evaluate_run(qrels_text(given["qrels"]), run_text(given["run"]), ["ndcg_cut.5", "ndcg_cut.20", "ndcg_cut.5"])
    assert list(result.mean().values()) == list(right.values())


def test_69_recall_divides_by_the_relevant() -> None:
    given, right = entry(69)
    run = {"q": {doc: -rank for rank, doc in enumerate(given["ranking"])}}
    found = means(qrels_text(given["qrels"]), run_text(run), [f"R@{k}" for k in range(1, 6)])
    assert list(found.values()) == pytest.approx(right["recall@1..5"], abs=1e-15)


# --- duplicates ---------------------------------------------------------------------------------------------------------------------


def test_77_a_document_twice_in_the_run() -> None:
    given, right = entry(77)
    qrels, run = given["qrels_text"].encode(), given["run_text"].encode()
    with pytest.raises(fr.InputError, match=r"^document 'a' stands twice in query 'q' of <bytes>: line 1 and line 3\. "):
        fr.evaluate_run(qrels, run)
    for rule in ("first", "max"):
        agrees(means(qrels, run, list(right["keep_max_or_first"]), duplicates=rule), right["keep_max_or_first"])
    assert means(qrels, run, ["RR"], duplicates="last") == {"RR": 0.5}


def test_79_a_judgement_twice() -> None:
    given, right = entry(79)
    qrels, run = given["qrels_text"].encode(), given["run_text"].encode()
    with pytest.raises(fr.InputError, match=r"^document 'a' stands twice in query 'q' of <bytes>: line 1 and line 2\. "):
        fr.evaluate_run(qrels, run)
    assert means(qrels, run, ["nDCG", "R"], duplicates="first") == {"nDCG": right["ndcg"], "R": 1.0}


CHUNKS = {
    39: ("ranking_with_duplicates", {"nDCG@3": "ndcg_3"}),
    155: ("ranking_of_chunks_mapped_to_pages", {"R@3": "recall_3", "nDCG@3": "ndcg_3"}),
}


@pytest.mark.parametrize("number", CHUNKS)
def test_the_first_of_several_chunks_of_a_document(number: int) -> None:
    (given, right), (ranking, asked) = entry(number), CHUNKS[number]
    lines = "".join(f"q Q0 {doc} 0 {-rank} t\n" for rank, doc in enumerate(given[ranking])).encode()
    for rule in ("first", "max"):
        found = means(qrels_text(given["qrels"]), lines, list(asked), duplicates=rule)
        agrees(found, {name: right[value] for name, value in asked.items()})


# --- files --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [83, 85])
def test_ids_are_text_between_white_space(number: int) -> None:
    given, right = entry(number)
    agrees(means(given["qrels_text"].encode(), given["run_text"].encode(), ["map"]), right)


def test_87_lines_with_too_few_and_too_many_fields() -> None:
    given, right = entry(87)
    qrels, few = given["qrels_text"].encode(), given["run_5_columns"].encode()
    many = given["run_7_columns_from_docid_with_blank"].encode()
    with pytest.raises(fr.InputError, match=r"^<bytes>, line 1: a line of a run has 6 fields .*, not 5: 'q Q0 my 2\.0 t'$"):
        fr.evaluate_run(qrels, few)
    result = fr.evaluate_run(qrels, many, "map")
    assert list(result.mean().values()) == [right["seven_columns_trec_eval"]["map"]]
    assert [(note.kind, note.count) for note in result.notes if note.kind == "extra_fields"] == [("extra_fields", 1)]
    with pytest.raises(fr.InputError, match=r"^<bytes>, line 1: a line of a run has 6 fields under the fastrank convention, "):
        fr.evaluate_run(qrels, many, convention="fastrank")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_89_a_byte_order_mark_is_no_part_of_an_id(pack: Any) -> None:
    given, right = entry(89)
    qrels, run = given["qrels_text"].encode(), given["run_text"].encode()
    assert means(pack(qrels), pack(run), ["map"]) == {"map": right["map_both_queries"]}


def test_91_packed_files_under_any_name(tmp_path: Path) -> None:
    given, right = entry(91)
    path = tmp_path / given["file"]
    for content in (gzip.compress(given["qrels_text"].encode()), given["qrels_text"].encode()):
        path.write_bytes(content)
        agrees(means(path, given["run_text"].encode(), ["map"]), right)

"""The conventions lightgbm, xgboost, catboost and sklearn against what these libraries returned.

Left out, each by its name: errors that a library raises at limits of its own (labels from 31 up or below 0, one document,
fractions as labels); metrics that fastrank does not have (`conformance.ABSENT`); `is_undefined` below; and, for scikit-learn's
ignore_ties, average_precision_score and LRAP, queries with equal scores (`conformance.Ours.untied`).
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conformance
import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from conformance import Compared, Ours, mean_of, ours, values_of, wrong

import fastrank as fr

conformance.require()

CASES = {case["id"]: case for case in conformance.read_json("training_libraries.json")["cases"]}


def is_undefined(program: str, case_id: str, name: str, *, alone: bool = False) -> bool:
    """No contract for a mean over a case, or for one query of it alone.

    LightGBM and XGBoost: NDCG adds the 1.0 of an empty query unweighted and divides by all weights, so that a mean can pass 1.
    torchmetrics: a query whose labels sum to 0, though not all are 0, counts as empty; fractions are summed where others count
    documents. rax: scores so small that float32 has few bits left for them count as 0.
    """
    if program in ("lightgbm", "xgboost"):
        return not alone and case_id == "query_weights_heavy_zero" and name.startswith("ndcg") and not name.endswith("-")
    if program == "torchmetrics":
        sums_labels = name.startswith(("Recall", "Precision"))
        return case_id == "negative_label" or (case_id == "label_0.4_0.6" and sums_labels)
    return program == "rax" and case_id == "denormal"


def tolerance(program: str) -> float:
    return 1e-6 if program in conformance.SINGLE else conformance.TOLERANCE


# --- training_libraries.json ---------------------------------------------------------------------------------------------------


def numbers(values: dict[str, Any] | None) -> dict[str, float]:
    """The metrics that came out as a number, and not as an error."""
    return {name: value for name, value in (values or {}).items() if isinstance(value, float | int)}


def beside_ours(program: str, where: str, case: dict[str, Any], theirs: dict[str, float]) -> list[Compared]:
    """A library's means over the queries of a case, each beside our mean."""
    offsets = np.append(0, np.cumsum(case["groups"]))
    scores = np.array(case["scores"])
    with np.errstate(over="ignore"):
        tied = bool(conformance.has_ties(scores.astype(np.float32) if program in conformance.SINGLE else scores, offsets).any())
    ways = [(name, way) for name in theirs for way in ours(program, name) if not (way.untied and tied)]
    compared = []
    for convention, unweighted in dict.fromkeys((way.convention, way.unweighted) for _, way in ways):
        asked = [(name, way) for name, way in ways if (way.convention, way.unweighted) == (convention, unweighted)]
        result = fr.evaluate(
            case["labels"],
            case["scores"],
            sizes=case["groups"],
            weights=None if unweighted else case["weights"],
            metrics=[way.metric for _, way in asked],
            convention=convention,
            threads=1,
        )
        found = [Compared(where, f"{name} as {way.metric}", theirs[name], mean_of(result, way)) for name, way in asked]
        # torchmetrics' mean over no query at all is 0, ours NaN.
        compared += [each for each in found if not ("skip" in each.name and each.theirs == 0 and np.isnan(each.ours))]
    return compared


def queries_of(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Each query of a case as a case of its own."""
    offsets = np.append(0, np.cumsum(case["groups"]))
    for start, stop in itertools.pairwise(offsets):
        yield {"labels": case["labels"][start:stop], "scores": case["scores"][start:stop], "groups": [stop - start], "weights": None}


@functools.cache
def compared_in_case(program: str, case_id: str) -> list[Compared]:
    """Every value that a library has for a case, of all queries together and of each alone, beside ours."""
    case, found = CASES[case_id], CASES[case_id]["values"][program]
    means = {name: value for name, value in numbers(found.get("all")).items() if not is_undefined(program, case_id, name)}
    compared = beside_ours(program, f"{case_id}, mean", case, means)
    for q, (query, values) in enumerate(zip(queries_of(case), found.get("per_query") or [], strict=False)):
        defined = {name: value for name, value in numbers(values).items() if not is_undefined(program, case_id, name, alone=True)}
        compared += beside_ours(program, f"{case_id}, query {q}", query, defined)
    return compared


@pytest.mark.parametrize("case_id", CASES)
@pytest.mark.parametrize("program", conformance.NAMES)
def test_crafted_case(program: str, case_id: str) -> None:
    assert wrong(compared_in_case(program, case_id), tolerance(program)) == []


# Cases of which a library has no value at all: it refuses their labels, or (sklearn's) one document.
REFUSED = {
    "lightgbm": {"label_0.4_0.6", "negative_label", "label_31"},
    "xgboost": set(),
    "catboost": set(),
    "sklearn": set(),
    "torchmetrics": {"negative_label"},
    "rax": {"denormal"},
}

# How many values there are to compare, so that comparing nothing cannot pass for agreement.
CRAFTED = {"lightgbm": 402, "xgboost": 1453, "catboost": 1830, "sklearn": 1681, "torchmetrics": 1080, "rax": 1311}


@pytest.mark.parametrize("program", conformance.NAMES)
def test_every_value_of_the_crafted_cases_is_compared(program: str) -> None:
    by_case = {case_id: compared_in_case(program, case_id) for case_id in CASES}
    compared = [each for case in by_case.values() for each in case]
    sys.stdout.write(conformance.tell(f"training_libraries.json, {program}", compared))
    assert len(CASES) == 30
    assert {case_id for case_id, case in by_case.items() if not case} == REFUSED[program]
    assert len(compared) >= CRAFTED[program]


def test_catboost_weighs_queries_in_some_metrics_alone() -> None:
    """Its MAP, precision, recall and QueryAUC ignore the weights that its NDCG and MRR use: give none for those."""
    case = CASES["query_weights"]
    theirs = case["values"]["catboost"]["all"]
    options = {"sizes": case["groups"], "convention": "catboost"}
    weighted = fr.evaluate(case["labels"], case["scores"], metrics="RR@3,AP@3", weights=case["weights"], **options).mean()
    unweighted = fr.evaluate(case["labels"], case["scores"], metrics="RR@3,AP@3", **options).mean()
    assert weighted["RR@3"] == pytest.approx(theirs["MRR:top=3"], abs=1e-15)
    assert unweighted["AP@3"] == pytest.approx(theirs["MAP:top=3"], abs=1e-15)
    assert abs(unweighted["RR@3"] - theirs["MRR:top=3"]) > 0.05
    assert abs(weighted["AP@3"] - theirs["MAP:top=3"]) > 0.05


def test_the_mean_that_lightgbm_and_xgboost_get_wrong() -> None:
    """Weights 5 and 1, the first query empty: ours is the weighted mean of 1 and the second query's value."""
    case = CASES["query_weights_heavy_zero"]
    result = fr.evaluate(
        case["labels"], case["scores"], sizes=case["groups"], weights=case["weights"], metrics="ndcg@3", convention="lightgbm"
    )
    second = case["values"]["lightgbm"]["per_query"][1]["ndcg@3"]
    assert result.mean()["nDCG@3"] == pytest.approx((5 * 1 + 1 * second) / 6, abs=1e-15)
    assert case["values"]["lightgbm"]["all"]["ndcg@3"] == pytest.approx((1 + 1 * second) / 6, abs=1e-15)


# --- ltr/ ----------------------------------------------------------------------------------------------------------------------

TABLE = conformance.FOLDER / "ltr" / "train.parquet"
SCORES = ("score_ltr", "score_ltr32", "score_coarse", "score_const", "score_feat")


def ltr_ways(program: str, name: str) -> list[Ours]:
    """Names of expected_train.json in the spelling of training_libraries.json, and from there in ours."""
    if program == "xgboost_lin" and name.startswith("ndcg"):
        none = "no_relevant='zero'" if name.endswith("-") else "no_relevant='one'"
        cutoff = name.strip("ndcg-")
        return [Ours(f"nDCG(gain='linear', {none}){cutoff}", "xgboost")]
    if program.startswith("xgboost"):
        return ours("xgboost", name)
    if program == "lightgbm":
        return ours("lightgbm", name)
    metric, _, option = name.partition("|")
    family, at, k = metric.partition("@")
    if family in ("average_precision", "lrap"):
        return [Ours("AP", "sklearn", untied=True)]
    gain = "(gain='exp2')" if family == "ndcg_exp" else ""
    ties = "(ties='input')" if option else ""
    return [Ours(f"{family.removesuffix('_exp')}{gain}{ties}{at}{k}", "sklearn", untied=bool(option))]


Labels = str  # "graded", or "binary": XGBoost's map was asked with the labels above 0 as 1, since it takes no others
Results = dict[tuple[str, Labels], dict[str, fr.Evaluation]]


def labels_for(way: Ours) -> Labels:
    return "binary" if way.convention.startswith("xgboost") and way.filled.family == "AP" else "graded"


def expected_values() -> Iterator[tuple[str, str, str | int, str, float]]:
    """Every value of expected_train.json: score column, library, "mean" or the query, name, value."""
    expected = conformance.read_json("ltr/expected_train.json")
    for column in SCORES:
        for program, means in expected["mean"][column].items():
            yield from ((column, program, "mean", name, value) for name, value in means.items())
        for q, programs in expected["per_query"][column].items():
            for program, values in programs.items():
                yield from ((column, program, int(q), name, value) for name, value in values.items())


@functools.cache
def ltr_metrics() -> dict[tuple[str, Labels], list[str]]:
    """Every metric of expected_train.json, by convention and kind of labels."""
    asked: dict[tuple[str, Labels], dict[str, None]] = {}
    for program, name in dict.fromkeys((program, name) for _, program, _, name, _ in expected_values()):
        for way in ltr_ways(program, name):
            asked.setdefault((way.convention, labels_for(way)), {})[way.metric] = None
    return {key: list(metrics) for key, metrics in asked.items()}


@functools.cache
def results_of_the_table() -> Results:
    table = pq.read_table(TABLE)
    binary = table.set_column(table.column_names.index("label"), "label", pc.min_element_wise(table["label"], 1))
    return {
        (convention, labels): fr.evaluate_table(
            binary if labels == "binary" else TABLE, metrics, score=list(SCORES), convention=convention, threads=1
        )
        for (convention, labels), metrics in ltr_metrics().items()
    }


# Two libraries have a mean and two have values of the single queries. Of scikit-learn's, those of 200 queries (one has one document)
# and, for its three metrics that leave ties undefined, of the queries without.
LTR = {"lightgbm": 5 * 8 * (1 + 201), "xgboost_exp": 150, "xgboost_lin": 125, "sklearn": 19408}


def test_learning_to_rank_table() -> None:
    results = results_of_the_table()
    table = pq.read_table(TABLE)
    offsets = np.append(0, np.cumsum(np.bincount(table["query_id"].to_numpy())))
    tied = {column: conformance.has_ties(table[column].to_numpy(), offsets) for column in SCORES}
    compared: dict[str, list[Compared]] = {}
    found: dict[Any, Any] = {}
    for column, program, where, name, value in expected_values():
        for way in ltr_ways(program, name):
            if where == "mean" or not (way.untied and tied[column][where]):
                key = (column, way, where == "mean")
                if key not in found:
                    result = results[way.convention, labels_for(way)][column]
                    found[key] = mean_of(result, way) if where == "mean" else values_of(result, way)
                mine = found[key] if where == "mean" else found[key][where]
                compared.setdefault(program, []).append(Compared(f"{column} {where}", str(way), value, mine))
    for program, each in compared.items():
        sys.stdout.write(conformance.tell(f"ltr/train.parquet, {program}", each))
        assert wrong(each) == []
    for program, least in LTR.items():
        assert len(compared[program]) >= least


@pytest.mark.parametrize("column", SCORES)
def test_learning_to_rank_text_and_group_file(column: str, tmp_path: Path) -> None:
    """The same numbers, to the last bit, out of LETOR text, a file of group sizes and a file of scores."""
    folder = conformance.FOLDER / "ltr"
    scores = tmp_path / "scores.txt"
    scores.write_text("".join(f"{score!r}\n" for score in pq.read_table(TABLE)[column].to_pylist()))
    for (convention, labels), metrics in ltr_metrics().items():
        if labels == "graded":
            result = fr.evaluate_table(
                folder / "rank.train", metrics, scores=scores, groups=folder / "rank.train.query", convention=convention, threads=1
            )
            expected = results_of_the_table()[convention, labels][column]
            assert result.n_queries == 201
            assert result.values.tobytes() == expected.values.tobytes()
            assert result.mean() == expected.mean()


def test_read_letor_agrees_with_the_table() -> None:
    folder = conformance.FOLDER / "ltr"
    columns = fr.read_letor(folder / "rank.train", None, folder / "rank.train.query")
    table = pq.read_table(TABLE)
    assert columns.labels.tolist() == table["label"].to_pylist()
    assert np.diff(columns.offsets).tolist() == np.bincount(table["query_id"].to_numpy()).tolist()

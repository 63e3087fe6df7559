"""The conventions trec_eval and trec_eval9 against what trec_eval 10.0, 9.0.8 and pytrec_eval returned for real and for hard files.

Left out, each by its name: trec_eval's further metrics (`FURTHER`), `is_undefined` below, and the files that these programs refuse,
which `REFUSED` names with what fastrank does instead.
"""

from __future__ import annotations

import functools
import gzip
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import conformance
import numpy as np
import pytest
from conformance import FOLDER, Compared

import fastrank as fr

conformance.require()

ENGINES = {"te10full": "trec_eval", "te9full": "trec_eval9", "pytrec": "trec_eval9"}


class Case(NamedTuple):
    """A pair of files, and what the programs made of them: results[engine][variant]."""

    name: str
    qrels: Path
    run: Path
    results: dict[str, dict[str, Any]]


@functools.cache
def cases() -> dict[str, Case]:
    found = {}
    for path in sorted((FOLDER / "real").glob("*.full.json.gz")):
        told = json.loads(gzip.decompress(path.read_bytes()))
        meta = told["meta"]
        found[meta["pair"]] = Case(meta["pair"], FOLDER / meta["qrels"], FOLDER / meta["run"], told["results"])
    for folder in sorted((FOLDER / "hard").iterdir()):
        told = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
        found[told["name"]] = Case(told["name"], folder / "qrels.txt", folder / "run.txt", told["results"])
    return found


# --- names ----------------------------------------------------------------------------------------------------------------------

# Patterns of trec_eval's names, and how each is asked for here; {rel} is the level of relevance that -l sets.
NAMES = {
    r"map": "AP(rel={rel})",
    r"map_cut_(\d+)": r"AP(rel={rel})@\1",
    r"recip_rank": "RR(rel={rel})",
    r"P_(\d+)": r"P(rel={rel})@\1",
    r"recall_(\d+)": r"R(rel={rel})@\1",
    r"success_(\d+)": r"Success(rel={rel})@\1",
    r"Rprec": "Rprec(rel={rel})",
    r"bpref": "Bpref(rel={rel})",
    r"set_P": "P(rel={rel})",
    r"set_recall": "R(rel={rel})",
    r"set_F": "F(rel={rel})",
    # Its parameter is the square of beta.
    r"set_F_0.5": f"F(rel={{rel}}, beta={0.5**0.5!r})",
    r"num_rel": "NumRel(rel={rel})",
    r"num_rel_ret": "NumRelRet(rel={rel})",
    r"num_ret": "NumRet",
    # The level never touches these.
    r"ndcg": "nDCG",
    r"ndcg_cut_(\d+)": r"nDCG@\1",
    r"dcg": "DCG",
    r"ideal_dcg": "IDCG",
}

# What these files hold besides; these names parse to metrics of their own, or are no metrics.
FURTHER = re.compile(
    r"num_q|runid|relstring(_\d+)?|num_nonrel_judged_ret|gm_(map|bpref)|(iprec_at_recall|Rprec_mult)_[\d.]+|11pt_avg(_[\d.,]+)?"
    r"|infAP|set_map|utility(_[-\d.,]+)?|(set_)?relative_P(_\d+)?|binG|G(_[\d.,=]+)?|Rndcg(_[\d.,=]+)?|ndcg_rel(_[\d.,=]+)?|unj_\d+|yaap"
    r"|rbp(_resid)?(_p=[\d.]+)?|ndcg_1=3.5,2=9.0,0=0.5"
)


def ours(name: str, level: int) -> str | None:
    """How a metric of trec_eval is asked for here; None for a further one."""
    for pattern, metric in NAMES.items():
        if found := re.fullmatch(pattern, name):
            return found.expand(metric).format(rel=level)
    assert FURTHER.fullmatch(name), f"{name}: neither in NAMES nor in FURTHER"
    return None


# --- variants -------------------------------------------------------------------------------------------------------------------


def options(engine: str, variant: str) -> tuple[int, dict[str, Any]]:
    """The level of relevance of a variant such as "cl2" or "M100", and its other flags as options of `evaluate_run`."""
    found = re.fullmatch(r"default|params|(c?)(?:l(\d)|M(\d+)|(J))?", variant)
    assert found, variant
    complete, level, depth, judged_only = found.groups()
    # Version 10 ends with an error at a missing query unless -c is given; "params" was asked for with -c.
    missing = "zero" if complete or variant == "params" or engine == "te10full" else "skip"
    return int(level or 1), {
        "missing": missing,
        "depth": int(depth) if depth else None,
        "judged_only": bool(judged_only),
        "convention": ENGINES[engine],
    }


def is_undefined(case: str, variant: str, query: str, name: str) -> bool:
    """Numbers of version 10 that no formula gives.

    With -c and -l the sum of num_rel counts what is relevant at level 1 in missing queries, and so disagrees with the program's own
    values. Where all labels are below 0 (query 4 of one case) there is nothing to gain, but ideal_dcg is 1.
    """
    sum_of_missing = "c" in variant and "l" in variant and name == "num_rel" and query == "mean"
    return sum_of_missing or (case == "h31_one_doc_queries" and name == "ideal_dcg" and query in ("4", "mean"))


def is_nan(value: Any) -> bool:
    """-J with nothing judged: no contract, nan there."""
    return not isinstance(value, float | int) or value != value


@functools.cache
def read(case: str) -> tuple[fr.Qrels, fr.Run]:
    """The files of a case: read once, evaluated by every program's rules."""
    return fr.Qrels.read(cases()[case].qrels), fr.Run.read(cases()[case].run)


@functools.cache
def compared_in_case(case: str, engine: str) -> list[Compared]:
    """Every value that a program has for a case, per query and over all queries, beside ours."""
    return [each for variant in cases()[case].results.get(engine, {}) for each in compared_in_variant(case, engine, variant)]


def compared_in_variant(case: str, engine: str, variant: str) -> Iterator[Compared]:
    theirs = cases()[case].results[engine][variant]
    if not theirs["per_query"]:
        return
    level, flags = options(engine, variant)
    means = theirs["aggregate"] if theirs["rc"] == 0 else {}
    names = sorted({*means, *(name for values in theirs["per_query"].values() for name in values)})
    metrics = {name: metric for name in names if (metric := ours(name, level)) is not None}
    result = fr.evaluate_run(*read(case), list(metrics.values()), **flags)
    place = {query: q for q, query in enumerate(result.query_ids.to_pylist())}
    if theirs["rc"] == 0 and engine != "te9full":  # version 9 does not list missing queries
        assert set(place) == set(theirs["per_query"])
    aggregate = dict(zip(result.metrics, result.aggregate().values(), strict=True))
    for name, metric in metrics.items():
        filled = fr.parse_metric(metric, flags["convention"])
        values, where = result[filled], f"{case}, {engine} {variant}"
        for query, told in theirs["per_query"].items():
            if name in told and not is_nan(told[name]) and not is_undefined(case, variant, query, name):
                yield Compared(f"{where}, {query}", f"{name} as {metric}", told[name], values[place[query]])
        if name in means and not is_nan(means[name]) and not is_undefined(case, variant, "mean", name):
            yield Compared(f"{where}, mean", f"{name} as {metric}", means[name], aggregate[filled])


# Files that a program refuses, so that there is nothing to compare.
REFUSED = {
    "h45_blank_line_qrels": {"te10full", "te9full"},  # blank lines are skipped here
    "h46_comments": {"te9full", "pytrec"},  # comments, too, as version 10 does
    "h49_missing_tag": {"te10full", "te9full"},
    "h51_duplicate_doc_run": {"te10full", "te9full"},
    "h56_empty_run": {"te10full", "te9full", "pytrec"},
}
# pytrec_eval's values come from a reader of its own, which takes lines without a tag and keeps the last of two rows.
REPAIRED = {"h49_missing_tag", "h51_duplicate_doc_run"}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("case", cases())
def test_every_value(case: str, engine: str) -> None:
    if case in REPAIRED:
        with pytest.raises(fr.InputError):
            fr.evaluate_run(*read(case)) if case != "h49_missing_tag" else fr.Run.read(cases()[case].run)
        return
    compared = compared_in_case(case, engine)
    assert (not compared) == (engine in REFUSED.get(case, set()))
    assert conformance.wrong(compared) == []


# How many values there are to compare, so that comparing nothing cannot pass for agreement.
VALUES = {"te10full": 97_052, "te9full": 105_624, "pytrec": 40_750}


@pytest.mark.parametrize("engine", ENGINES)
def test_all_values_are_compared(engine: str) -> None:
    compared = [each for case in cases() if case not in REPAIRED for each in compared_in_case(case, engine)]
    sys.stdout.write(conformance.tell(f"real and hard, {engine}", compared))
    assert len(cases()) == 36
    assert len(compared) >= VALUES[engine]


def test_any_number_of_threads_gives_the_same_bits() -> None:
    case = cases()["wt12_cedr"]
    one, two = (fr.evaluate_run(case.qrels, case.run, ["map", "ndcg", "bpref"], threads=threads) for threads in (1, 2))
    assert np.array_equal(one.values, two.values)

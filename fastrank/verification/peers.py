"""The programs that `verify` asks about judgements and a run: trec_eval, pytrec_eval, ir_measures and ranx."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import importlib.util
import itertools
import logging
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastrank.errors import InputError
from fastrank.metrics.trec_names import NICKNAMES, read_trec
from fastrank.verification.query_sets import QuerySet

# {their name: {query: value}}. A metric or a query without a value is left out.
Answers = dict[str, dict[str, float]]


@dataclass(frozen=True)
class Peer:
    """Another program.

    `metrics`: its names, and how each is asked for here under `convention`. `skip_missing`: it has no value for a query that is not in
    the run. `as_lists`: it takes labels and scores alone. `untied`: it leaves the order of equal scores undefined. `negative`: it takes
    labels below 0. `tolerance`, and for values that it rounds `rounded`. `remarks`: what it is not asked for, and why.
    """

    name: str
    version: str
    convention: str
    metrics: Mapping[str, str]
    ask: Callable[[QuerySet], Answers]
    skip_missing: bool = False
    as_lists: bool = False
    untied: bool = False
    negative: bool = False
    tolerance: float = 1e-9
    rounded: Mapping[str, float] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def library(module: str, distribution: str) -> tuple[Any, str]:
    """A library and its version. InputError with the command that installs it, where it is not there."""
    try:
        return importlib.import_module(module), importlib.metadata.version(distribution)
    except ModuleNotFoundError:
        raise InputError(f"{distribution} is not installed: pip install {distribution}.") from None
    except (ImportError, OSError) as error:
        raise InputError(f"{distribution} cannot be loaded: {str(error).splitlines()[0]}.") from None


# --- trec_eval and pytrec_eval --------------------------------------------------------------------------------------------------

# Texts; logarithms of other values; 1 for every query; a formula on memory that was never written.
_NO_NUMBERS = ("gm_map", "gm_bpref", "num_q", "rbp", "rbp_resid")


def _trec_metrics(*but: str) -> dict[str, str]:
    """Every metric of all_trec that trec_eval prints of a query, by its printed name, which is a name of ours as well."""
    names = [name for name in NICKNAMES["all_trec"] if name not in (*_NO_NUMBERS, *but)]
    return {reading.printed: reading.printed for name in names for reading in read_trec(name)}


def pytrec_eval_peer() -> Peer:
    """pytrec_eval-terrier, which wraps trec_eval 9."""
    pytrec_eval, version = library("pytrec_eval", "pytrec_eval-terrier")
    metrics = _trec_metrics("unj")
    wanted = set(pytrec_eval.supported_measures).intersection(NICKNAMES["all_trec"]).difference(_NO_NUMBERS)

    def ask(queries: QuerySet) -> Answers:
        # A new evaluator a call: it changes the measures that it was given.
        found = pytrec_eval.RelevanceEvaluator(queries.qrels, set(wanted)).evaluate(queries.run)
        return {name: {query: values[name] for query, values in found.items() if name in values} for name in metrics}

    return Peer("pytrec_eval", version, "trec_eval9", metrics, ask, skip_missing=True, negative=True)


def trec_eval_peer(binary: str | None = None) -> Peer:
    """The C program, found on PATH or given; it prints four decimals."""
    found = shutil.which(binary or "trec_eval")
    if found is None:
        where = "on PATH" if binary is None else f"at {binary}"
        raise InputError(f"trec_eval is not {where}: build it from github.com/usnistgov/trec_eval and name it with --binary.")
    told = subprocess.run([found, "-v"], capture_output=True, text=True, check=False)
    version = (re.findall(r"\d+(?:\.\d+)*(?:-\w+)?", told.stdout + told.stderr) or ["unknown"])[0]
    is_old = version.startswith(("8", "9"))
    metrics = _trec_metrics(*(("unj",) if is_old else ()))

    def ask(queries: QuerySet) -> Answers:
        with tempfile.TemporaryDirectory() as folder:
            qrels, run = Path(folder, "qrels"), Path(folder, "run")
            qrels.write_bytes(b"".join(_lines(queries.qrels, "{} 0 {} {}\n")))
            run.write_bytes(b"".join(_lines(queries.run, "{} Q0 {} 0 {!r} run\n")))
            done = subprocess.run([found, "-q", "-c", "-m", "all_trec", qrels, run], capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"{found} ends with code {done.returncode}: {(done.stderr.strip() or 'it says nothing').splitlines()[0]}")
        answers: Answers = {name: {} for name in metrics}
        for line in done.stdout.splitlines():
            name, query, value = line.split("\t")
            if name.strip() in answers and query != "all":
                answers[name.strip()][query] = float(value)
        return answers

    convention = "trec_eval9" if is_old else "trec_eval"
    return Peer("trec_eval", version, convention, metrics, ask, negative=True, tolerance=0.5e-4 + 1e-9)


def _lines(numbers: Mapping[str, Mapping[str, float]], form: str) -> list[bytes]:
    return [
        form.format(query, document, number).encode("utf-8", "surrogateescape")
        for query, documents in numbers.items()
        for document, number in documents.items()
    ]


# --- ir_measures ----------------------------------------------------------------------------------------------------------------

_IR_MEASURES: Sequence[str] = (
    *("AP", "AP@5", "AP(rel=2)", "nDCG", "nDCG@5", "nDCG@20", "nDCG(gains={0:0,1:1,2:3,3:7,4:15})@5", "P@5", "P(rel=2)@10", "R@5", "R@100"),
    *("RR", "RR(rel=2)", "RR@10", "Rprec", "Rprec(rel=2)", "Bpref", "Bpref(rel=2)", "infAP", "IPrec@0.0", "IPrec@0.3", "IPrec@1.0"),
    *("SetP", "SetR", "SetF", "SetAP", "Success@1", "Success(rel=2)@5", "NumRet", "NumRel", "NumRet(rel=1)", "Judged@10"),
)
# What it asks of programs that are not always there: the module, or None for a program of Perl.
_BEHIND: Mapping[str | None, Sequence[str]] = {
    "cwl": ("RBP(rel=1)", "RBP(rel=2,p=0.5)", "SDCG(max_rel=4)@5", "BPM(max_rel=4)@5", "INSQ(max_rel=4)", "NERR8(max_rel=4)@5"),
    None: ("ERR@5", "ERR@20", "nDCG(dcg='exp-log2')@5"),
}
# Its RBP is not that of trec_eval, whose convention it has otherwise.
_RBP = {"RBP(rel=1)": "RBP(rel=1, p=0.8, gain='binary')", "RBP(rel=2,p=0.5)": "RBP(rel=2, p=0.5, gain='binary')"}


def ir_measures_peer() -> Peer:
    """ir_measures, which asks a program of its own for each metric."""
    ir_measures, version = library("ir_measures", "ir_measures")
    names = list(_IR_MEASURES)
    for module, more in _BEHIND.items():
        if importlib.util.find_spec(module) if module else shutil.which("perl"):
            names += more
    measures = {name: ir_measures.parse_measure(name) for name in names}

    def ask(queries: QuerySet) -> Answers:
        answers: Answers = {name: {} for name in names}
        # Several names may be one measure there.
        by_measure: dict[str, list[str]] = {}
        for name, measure in measures.items():
            by_measure.setdefault(str(measure), []).append(name)
        # Together, nDCG with gains of its own and without would be told apart by chance: where the first of a set (in the order of its
        # hashes) has gains, ir_measures computes all nDCG with them, under one name, and answers one.
        together = list(dict.fromkeys(measures.values()))
        with_gains = [measure for measure in together if "gains=" in str(measure)]
        parts = [[measure for measure in together if measure not in with_gains], *([measure] for measure in with_gains)]
        with _silent():
            for found in itertools.chain.from_iterable(ir_measures.iter_calc(part, queries.qrels, queries.run) for part in parts):
                for name in by_measure[str(found.measure)]:
                    if name != "NumRel" or found.query_id in queries.run:
                        answers[name][found.query_id] = float(found.value)
        return answers

    # The Perl script prints five decimals.
    rounded = dict.fromkeys(_BEHIND[None], 0.6e-5)
    ours = {name: _RBP.get(name, name) for name in names}
    remarks = (
        "NumRel of queries missing from the run is left out: it is 0 there, whatever is relevant.",
        "nDCG with gains is asked alone: beside other nDCG it is sometimes 0 there, by the order of Python's hashes.",
    )
    return Peer("ir_measures", version, "trec_eval9", ours, ask, rounded=rounded, remarks=remarks)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """It warns of every set whose largest label is not the scale's."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(level)


# --- ranx -----------------------------------------------------------------------------------------------------------------------

_RANX = ("hit_rate", "precision", "recall", "f1", "mrr", "map", "dcg", "dcg_burges", "ndcg", "ndcg_burges")


def ranx_peer() -> Peer:
    """ranx, whose order of equal scores is undefined."""
    ranx, version = library("ranx", "ranx")
    names = [f"{name}{at}{level}" for name, at, level in itertools.product(_RANX, ("", "@1", "@5", "@20"), ("", "-l2"))]
    metrics = {name: name for name in (*names, "r-precision", "r-precision-l2", "rbp.80", "rbp.95")}
    metrics |= {"hits": "NumRelRet", "hits@5": "NumRelRet@5"}

    def ask(queries: QuerySet) -> Answers:
        # It takes the same queries on both sides, and no list without documents.
        common = [query for query in queries.qrels if queries.run.get(query)]
        both = [query for query in common if len({label >= 1 for label in queries.qrels[query].values()}) == 2]
        return told(queries, common, list(metrics)) | told(queries, both, ["bpref"])

    def told(queries: QuerySet, chosen: list[str], names: list[str]) -> Answers:
        if not chosen:
            return {}
        qrels, run = ({query: dict(side[query]) for query in chosen} for side in (queries.qrels, queries.run))
        with warnings.catch_warnings(action="ignore"):
            # A single metric comes as an array, several as a dict of them.
            found = ranx.evaluate(qrels, run, [*names, "hits"], return_mean=False)
        return {name: dict(zip(chosen, found[name].tolist(), strict=True)) for name in names}

    remark = "bpref of queries without judged documents of both kinds is left out: 0 / 0 there, which leaves 0 for queries behind it."
    metrics_and_bpref = metrics | {"bpref": "bpref"}
    return Peer("ranx", version, "ranx", metrics_and_bpref, ask, skip_missing=True, untied=True, negative=True, remarks=(remark,))

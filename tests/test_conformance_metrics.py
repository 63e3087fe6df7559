"""Every number that trec_eval 10, trec_eval 9 and pytrec_eval return on real and hard data, under every variant: ours to 1e-9."""

from __future__ import annotations

import dataclasses
import functools
import gzip
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import conformance
import numpy as np
import pytest

import fastrank as fr
from fastrank.metrics import Metric
from fastrank.metrics.grammar import trec_metrics

conformance.require()

TOLERANCE = 1e-9
ENGINES = {"te10full": "trec_eval", "te9full": "trec_eval9", "pytrec": "trec_eval9"}
# Values that are texts, and what they are not compared for.
TEXTS = ("runid", "relstring", "relstring_20")


class Source(NamedTuple):
    """Qrels, a run, and what the programs return for them: engine -> variant -> per_query, aggregate."""

    name: str
    qrels: Path
    run: Path
    results: dict[str, dict[str, Any]]


def sources() -> Iterator[Source]:
    for path in sorted((conformance.FOLDER / "real").glob("*.full.json.gz")):
        found = json.loads(gzip.decompress(path.read_bytes()))
        files = (conformance.FOLDER / found["meta"][kind] for kind in ("qrels", "run"))
        yield Source(path.name.split(".")[0], *files, found["results"])
    for folder in sorted((conformance.FOLDER / "hard").iterdir()):
        results = json.loads((folder / "expected.json").read_text())["results"]
        yield Source(folder.name, folder / "qrels.txt", folder / "run.txt", results)


SOURCES = {source.name: source for source in sources()}


class Options(NamedTuple):
    """A variant's flags: -c, -J, -M, -l."""

    missing: str
    judged_only: bool
    depth: int | None
    rel: int


def options_of(variant: str) -> Options:
    """`cM100` is -c -M 100; `params` asks for other metrics, under -c."""
    flags = {"default": "", "params": "c"}.get(variant, variant)
    depth, level = re.search(r"M(\d+)", flags), re.search(r"l(\d+)", flags)
    return Options("zero" if "c" in flags else "skip", "J" in flags, int(depth[1]) if depth else None, int(level[1]) if level else 1)


@functools.cache
def metric_of(name: str) -> Metric:
    """The metric whose value trec_eval prints under a name."""
    base = {"P": "P_5", "recall": "recall_5"}.get(name, name)
    found = dict(trec_metrics(base))
    return next(iter(found.values()))


class Compared(NamedTuple):
    where: str
    name: str
    theirs: float
    ours: float


@functools.cache
def files_of(name: str) -> tuple[fr.Qrels, fr.Run]:
    return fr.Qrels.read(str(SOURCES[name].qrels)), fr.Run.read(str(SOURCES[name].run))


def evaluated(source: Source, engine: str, variant: str, names: list[str]) -> tuple[fr.Evaluation, list[Metric]]:
    options = options_of(variant)
    convention = dataclasses.replace(fr.conventions[ENGINES[engine]], rel=options.rel)
    metrics = [metric_of(name).fill(convention) for name in names]
    result = fr.evaluate_run(
        *files_of(source.name),
        metrics,
        convention=convention,
        missing=options.missing,
        judged_only=options.judged_only,
        depth=options.depth,
        # pytrec_eval takes a dict, in which a document stands once.
        duplicates="last" if engine == "pytrec" else "error",
        threads=1,
    )
    return result, metrics


class Undefined(NamedTuple):
    """What the programs' own numbers are worth nothing for, by query; see `reason`."""

    graded: bool
    missing: bool
    nothing_judged: bool
    close_gains: bool
    pool_only: bool

    def reason(self, name: str, parameters: bool) -> str | None:
        """Why a value is no contract, if it is none."""
        if self.graded and name.startswith("rbp") and "resid" not in name:
            return "rbp on graded judgements reads uninitialised memory"
        if self.missing and (name == "yaap" or (parameters and name.startswith(("utility", "rbp_resid")))):
            return "yaap, utility and rbp_resid of a query missing from the run are what the query before left behind"
        if self.nothing_judged and name.startswith(("iprec", "11pt")):
            return "0 / 0 for a list that -J left empty"
        if self.pool_only and name.startswith("ideal_dcg"):
            return "ideal_dcg of a query without a label from 0 up is read from the query before"
        if self.close_gains and "=" in name and not name.startswith("rbp"):
            return "gains closer than 1 to each other are sorted as if they were equal"
        return None


def gains_named(name: str, labels: set[float]) -> list[float]:
    """Gains of the levels 0 ... the largest label under a name such as ndcg_1=3.5,2=9.0."""
    given = {int(level): float(gain) for level, gain in re.findall(r"(\d+)=([\d.]+)", name)}
    return sorted({**{level: float(level) for level in range(int(max(labels, default=0)) + 1)}, **given}.values())


@functools.cache
def read_labels(name: str) -> dict[str, list[float]]:
    """The labels of each query of the qrels."""
    qrels = files_of(name)[0]
    bounds = itertools.pairwise(qrels.offsets.tolist())
    return {query: qrels.labels[start:stop].tolist() for query, (start, stop) in zip(qrels.query_ids.to_pylist(), bounds, strict=True)}


def compare(source: Source, engine: str, variant: str, skipped: Counter[str]) -> list[Compared]:
    """All numbers of one program, one variant and one pair of files beside ours."""
    theirs = source.results[engine][variant]
    if theirs["rc"] != 0 or not theirs["aggregate"]:
        skipped["the program ends with an error"] += 1
        return []
    per_query = {
        query: {name: value for name, value in values.items() if name not in TEXTS} for query, values in theirs["per_query"].items()
    }
    names = list(dict.fromkeys([*theirs["aggregate"], *(name for values in per_query.values() for name in values)]))
    names = [name for name in dict.fromkeys([*names, "num_ret"]) if name not in TEXTS]
    result, metrics = evaluated(source, engine, variant, names)
    columns = {name: result.metrics.index(metric) for name, metric in zip(names, metrics, strict=True)}
    labels, options = read_labels(source.name), options_of(variant)
    retrieved = result[metric_of("num_ret").fill(result.convention)]
    in_run = set(files_of(source.name)[1].query_ids.to_pylist())
    unsure: Counter[str] = Counter()
    compared = []
    for row, query in enumerate(result.query_ids.to_pylist()):
        judged = {label for label in labels[query] if label >= 0}
        for name in names:
            undefined = Undefined(
                max(judged, default=0) > 1,
                query not in in_run,
                retrieved[row] == 0,
                "=" in name and bool(np.any(np.diff(gains_named(name, judged)) < 1)),
                not judged,
            )
            why = undefined.reason(name, variant == "params")
            if why:
                skipped[why] += 1
                unsure[name] += 1
            elif query in per_query and name in per_query[query]:
                ours = float(result.values[row, columns[name]])
                if engine == "pytrec" and name.startswith("gm_"):
                    ours = math.log(max(ours, 1e-5))
                compared.append(Compared(f"{source.name} {engine} {variant} {query}", name, per_query[query][name], ours))
    aggregates = list(result.aggregate().values())
    for name in names:
        if name in theirs["aggregate"] and not unsure[name]:
            if name == "num_rel" and options.rel > 1 and options.missing == "zero":
                skipped["-c -l: the summary's num_rel counts every label above 0 for missing queries"] += 1
                continue
            compared.append(Compared(f"{source.name} {engine} {variant} all", name, theirs["aggregate"][name], aggregates[columns[name]]))
    return compared


def wrong(compared: list[Compared]) -> list[Compared]:
    return [each for each in compared if not abs(each.theirs - each.ours) <= TOLERANCE * max(1.0, abs(each.theirs))]


# Values of the folder as it stands: fewer would mean that some are no longer compared.
FEWEST = {"te10full": 178_171, "te9full": 192_013, "pytrec": 74_912}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_every_value_of_the_programs_is_ours(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    skipped: Counter[str] = Counter()
    compared = [
        each
        for source in SOURCES.values()
        for variant in source.results.get(engine, {})
        for each in compare(source, engine, variant, skipped)
    ]
    with capsys.disabled():
        print(f"\n{engine}: {len(compared)} values compared, left out: {dict(skipped)}")  # noqa: T201  (the counts are to be seen)
    differing = wrong(compared)
    assert not differing, (len(differing), Counter(each.name for each in differing).most_common(20), differing[:8])
    assert len(compared) >= FEWEST[engine]

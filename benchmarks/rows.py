"""The table: what is measured, on which shapes, against what, and the mark that it is to reach."""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import fastrank as fr
from benchmarks import peers
from benchmarks.boosting_rows import training
from benchmarks.child import METRICS as STREAMED
from benchmarks.child import SAMPLE
from benchmarks.click_rows import N_STEPS, click_models
from benchmarks.command_rows import commands
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Data, Setting, dicts, draw, parquet_file, trec_files
from benchmarks.drop_in_rows import drop_in
from benchmarks.group_rows import subtopics
from benchmarks.network_rows import networks
from benchmarks.peers import TREC_METRICS, ArrayPeer, RunPeer
from benchmarks.prefix_rows import prefixes
from benchmarks.propensity_rows import propensities
from benchmarks.spark_rows import spark
from benchmarks.statistics_rows import statistics
from benchmarks.timing import child, n_processors, process_seconds, run_python
from fastrank import reference

IN_ORDER = ("DCG", "IDCG", "RR", "AP")
FOUR = ("nDCG@10", "RR", "AP", "R@10")
# 1.8 times as fast counts as two threads against one: the rest goes to what both share, memory and the interpreter.
TWO_THREADS = 1.8
TOLD = Mark()


@dataclass(frozen=True)
class Row:
    """One kind of work. `each`: what time is given for, if not for the whole. `plotted`: a curve, not lines of a table."""

    name: str
    title: str
    comparisons: Callable[[Setting], Iterator[Comparison]]
    each: str | None = "document"
    plotted: bool = False


def _absent(*reasons: str | None) -> str | None:
    """The first reason why something cannot be measured, or None."""
    return next((reason for reason in reasons if reason is not None), None)


def _too_few_processors(*calls: Call | None) -> str | None:
    needed = max(call.threads or 1 for call in calls if call is not None)
    return None if needed <= n_processors() else f"{needed} threads need as many processors; there is {n_processors()}"


def _too_slow(setting: Setting) -> str | None:
    return None if setting.slow else "left out here: its first call takes half a minute"


def _means_apart(one: dict[str, float], other: dict[str, float]) -> float:
    """The largest difference of means by name; infinite where the names differ."""
    return max(abs(one[name] - other[name]) for name in one) if set(one) == set(other) else np.inf


# --- arrays ----------------------------------------------------------------------------------------------------------------------


def _in_order(data: Data, threads: int, kind: str = "uint8") -> Call:
    """Four metrics of labels in rank order; per query, as the reference gives them."""
    labels = data.labels.astype(kind)
    name = f"fastrank, labels ({kind}) in rank order: {', '.join(IN_ORDER)}"
    return Call(name, lambda: fr.evaluate(labels, None, data.offsets, metrics=IN_ORDER, threads=threads).values, threads)


def _by_score(data: Data, threads: int, kind: str = "float32") -> Call:
    """Four metrics of labels and scores, and their means: checks and all that Python does included."""
    scores = data.scores.astype(kind)
    name = f"fastrank, labels and scores ({kind}): {', '.join(FOUR)}"
    return Call(name, lambda: fr.evaluate(data.labels, scores, data.offsets, metrics=FOUR, threads=threads).mean(), threads)


def _reference_in_order(data: Data) -> Call:
    functions = (reference.dcg, reference.idcg, reference.reciprocal_rank, reference.average_precision)
    return Call("NumPy reference, labels in rank order", lambda: [function(data.labels, None, data.offsets) for function in functions], 1)


def _reference_by_score(data: Data) -> dict[str, float]:
    values = (
        reference.ndcg(*data, k=10),
        reference.reciprocal_rank(*data),
        reference.average_precision(*data),
        reference.recall(*data, k=10),
    )
    return {name: float(value.mean()) for name, value in zip(FOUR, values, strict=True)}


def _compare(data: Data, ours: Call, other: Call | None, mark: Mark = TOLD, *, absent: str | None = None, **options: Any) -> Comparison:
    absent = _absent(absent, _too_few_processors(ours, other))
    return Comparison(data.title, data.n_documents, data.n_queries, ours, other, mark, absent=absent, **options)


def _against(
    peer: ArrayPeer, data: Data, threads: int, mark: Mark = TOLD, make_ours: Callable[[Data, int], Call] = _by_score
) -> Comparison:
    """Ours against another library's nDCG@10, thread for thread, on as many documents as that library can take."""
    part = data if data.n_documents <= peer.documents else data.first(peer.documents)
    ours = make_ours(part, threads)
    if (absent := peers.why_absent(peer.library)) is not None:
        return _compare(part, ours, Call(peer.name, lambda: None, threads), mark, absent=absent)
    theirs = peer.prepare(part, threads)

    def difference() -> float:
        judged = fr.evaluate(part.labels, part.scores, part.offsets, metrics=peer.metric, convention=peer.convention, ties=peer.ties)
        return float(np.abs(np.array(list(judged.mean().values())) - theirs()).max())

    return _compare(part, ours, Call(peer.name, theirs, threads), mark, difference=difference, tolerance=peer.tolerance)


def rank_order(setting: Setting) -> Iterator[Comparison]:
    """Labels in rank order, four metrics together."""
    shapes = (("tenth20", 1_000_000, 100.0, 153e-9), ("tenth100", 200_000, 200.0, 175e-9), ("tenth1000", 20_000, 100.0, 74e-9))
    for shape, n_queries, must, reference_then in shapes:
        yield from _rank_order(draw(shape, setting.queries(n_queries)), must, reference_then)


def _in_order_against(other: Call, data: Data, mark: Mark = TOLD, threads: int = 1, kind: str = "uint8") -> Comparison:
    ours = _in_order(data, threads, kind)
    return _compare(data, ours, other, mark, difference=lambda: float(np.abs(ours.run() - np.column_stack(other.run())).max()))


def _rank_order(data: Data, must: float, reference_then: float) -> Iterator[Comparison]:
    """reference_then: seconds a document of the reference that the marks were set by. It is faster now: they are shown as times, too."""
    plain, loop = _reference_in_order(data), Call("a plain loop in Numba", peers.numba_loop(data), 1)

    for threads, kind, share in ((1, "uint8", 1.0), (2, "uint8", TWO_THREADS), (1, "int64", 0.5), (1, "float32", 0.5)):
        yield _in_order_against(plain, data, Mark("faster", share * must), threads, kind)
        yield _compare(data, _in_order(data, threads, kind), None, Mark("seconds", data.n_documents * reference_then / (share * must)))
    yield _in_order_against(loop, data)
    arrays = (data.labels, data.offsets, np.zeros((data.n_queries, len(IN_ORDER))))
    targets = [np.empty_like(array) for array in arrays]

    def copy() -> None:
        for target, array in zip(targets, arrays, strict=True):
            np.copyto(target, array)

    yield _compare(data, _in_order(data, 1), Call("merely copying labels, offsets and results", copy, 1), Mark("share"))


def scored(setting: Setting) -> Iterator[Comparison]:
    """Labels and scores: four metrics together, against nDCG@10 alone; and, of torchmetrics, against the same four, too."""
    shapes = (
        ("tenth20", 50_000, 2.5, 4.0),
        ("tenth100", 10_000, 6.0, 8.0),
        ("tenth1000", 1_000, 5.0, 7.0),
        ("five1000", 1_000, 25.0, 35.0),
    )
    for shape, n_queries, must, aim in shapes:
        # It takes a tenth of a millisecond a list, however long: the mark is for short ones. What the mark was set by, 9,100 ns a
        # document, lies between the times of its nDCG alone and of its four metrics: both are shown.
        data = draw(shape, setting.queries(n_queries, small=True))
        slowest = Mark("faster", 1500.0) if shape == "tenth20" else TOLD
        yield from _scored(data, Mark("faster", must, aim), slowest)
        if slowest is not TOLD:
            yield _against(peers.TORCHMETRICS_FOUR, data, 1, slowest)


def _scored(data: Data, mark: Mark, slowest: Mark) -> Iterator[Comparison]:
    ours, plain = _by_score(data, 1), Call("NumPy reference", lambda: _reference_by_score(data), 1)
    yield _compare(data, ours, plain, difference=lambda: _means_apart(ours.run(), plain.run()))
    for threads in (1, 2):
        yield _against(peers.LIGHTGBM, data, threads, mark)
    for threads in (1, 2):
        yield _against(peers.XGBOOST, data, threads)
    yield _against(peers.POLARS, data, n_processors())
    yield _against(peers.SKLEARN, data, 1)
    yield _against(peers.SKLEARN_WITHOUT_TIES, data, 1)
    yield _against(peers.TORCHMETRICS, data, 1, slowest)
    fine, coarse = _by_score(data, 1, "float64"), _by_score(data, 1)
    yield _compare(data, fine, coarse, Mark("faster", 0.6), difference=lambda: _means_apart(fine.run(), coarse.run()))


def boosting(setting: Setting) -> Iterator[Comparison]:
    """The same labels under new scores, as after each round of boosting."""
    data = draw("tenth20", setting.queries(50_000, small=True))
    for convention, kind in (("fastrank", "float32"), ("lightgbm", "float64")):
        yield _boosting(data, convention, kind)


def _boosting(data: Data, convention: str, kind: str) -> Comparison:
    queries, scores = fr.LabelledQueries(data.labels, data.offsets, convention=convention), data.scores.astype(kind)
    name = f"fastrank LabelledQueries.evaluate, {kind} scores, convention {convention}: nDCG@10"
    ours = Call(name, lambda: queries.evaluate(scores, metrics="nDCG@10", threads=1).mean(), 1)
    expected = fr.evaluate(*data, metrics="nDCG@10", convention=convention).mean()
    against = _against(peers.LIGHTGBM, data, 1, Mark("faster", 4.0), lambda _data, _threads: ours)
    return replace(against, difference=lambda: max(against.difference(), _means_apart(ours.run(), expected)))


def small_batch(setting: Setting) -> Iterator[Comparison]:  # noqa: ARG001  (it is small at any setting)
    """One small batch, called as one would call it."""
    data = draw("tenth100", 32)
    queries = fr.LabelledQueries(data.labels, data.offsets)
    held = Call("fastrank LabelledQueries.evaluate: nDCG@10", lambda: queries.evaluate(data.scores, metrics="nDCG@10")["nDCG@10"])
    alone = Call("fastrank ndcg(k=10)", lambda: fr.ndcg(data.labels, data.scores, data.offsets, k=10))
    expected = reference.ndcg(data.labels, data.scores, data.offsets, k=10)

    def apart(call: Call) -> float:
        return float(np.abs(call.run() - expected).max())

    for call, must in ((held, 20e-6), (alone, 50e-6)):
        yield _compare(data, call, None, Mark("seconds", must), difference=functools.partial(apart, call))
    for peer in (peers.TORCHMETRICS, peers.SKLEARN):
        yield _against(peer, data, 1, make_ours=lambda _data, _threads: alone)


def threads(setting: Setting) -> Iterator[Comparison]:
    """Two threads against one, on lists of one length and of very different ones."""
    for shape, n_queries in (
        ("tenth20", 1_000_000),
        ("tenth100", 200_000),
        ("tenth1000", 20_000),
        ("lognormal", 200_000),
        ("zipf", 1_000_000),
    ):
        data = draw(shape, setting.queries(n_queries))
        for call in (_in_order, _by_score):
            yield _two_against_one(data, call)


def _two_against_one(data: Data, call: Callable[[Data, int], Call]) -> Comparison:
    two, one = call(data, 2), call(data, 1)

    def difference() -> float:
        ours, other = two.run(), one.run()
        return _means_apart(ours, other) if isinstance(ours, dict) else float(np.abs(ours - other).max())

    return _compare(data, two, one, Mark("faster", TWO_THREADS), difference=difference, tolerance=0.0)


# --- curves ----------------------------------------------------------------------------------------------------------------------


def by_length(setting: Setting) -> Iterator[Comparison]:
    """A million documents in lists of 10 to 10,000."""
    for length in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000):
        data = draw(f"tenth{length}", setting.queries(1_000_000 // length, small=True))
        for peer in (peers.LIGHTGBM, peers.XGBOOST, peers.SKLEARN):
            yield _against(peer, data, 1)
        yield _in_order_against(_reference_in_order(data), data)


def by_documents(setting: Setting) -> Iterator[Comparison]:
    """Ten thousand documents, ten times as many, and so on, in lists of 100."""
    n_queries = 100
    while 100 * n_queries <= setting.most:
        yield from _by_documents(draw("tenth100", n_queries))
        n_queries *= 10


def _by_documents(data: Data) -> Iterator[Comparison]:
    """The others are left out where their memory or their time would not fit."""
    if data.n_documents <= 10**7:
        yield _against(peers.LIGHTGBM, data, 1)
        yield _in_order_against(_reference_in_order(data), data)
    else:
        yield _compare(data, _by_score(data, 1), None, Mark("seconds"))
        yield _compare(data, _in_order(data, 1), None, Mark("seconds"))


# --- runs with document ids ------------------------------------------------------------------------------------------------------


def _evaluate_run(qrels: Any, run: Any, threads: int) -> Call:
    def means() -> dict[str, float]:
        return dict(zip(TREC_METRICS, fr.evaluate_run(qrels, run, TREC_METRICS, threads=threads).mean().values(), strict=True))

    return Call(f"fastrank evaluate_run: {', '.join(TREC_METRICS)}", means, threads)


@dataclass(frozen=True)
class _Judging:
    """Comparisons of judging one run."""

    shape: str
    n_documents: int
    n_queries: int
    held: Any

    def compare(self, ours: Call, other: Call, mark: Mark, absent: str | None, **options: Any) -> Comparison:
        absent = _absent(absent, _too_few_processors(ours, other))
        return Comparison(self.shape, self.n_documents, self.n_queries, ours, other, mark, absent=absent, **options)

    def against(self, peer: RunPeer, ours: Call, mark: Mark = TOLD, *, left_out: str | None = None, once: bool = False) -> Comparison:
        """Ours against another program's means."""
        if (absent := _absent(peer.absent(), left_out)) is not None:
            return self.compare(ours, Call(peer.name, lambda: None, peer.threads), mark, absent)
        theirs = peer.prepare(self.held)
        apart = {"difference": lambda: _means_apart(ours.run(), theirs()), "tolerance": peer.tolerance}
        return self.compare(ours, Call(peer.name, theirs, peer.threads), mark, None, once=once, **apart)

    def reading(self, ours: Call, other: Call, mark: Mark, absent: str | None = None) -> Comparison:
        """Ours against merely reading the run; `other` counts what it has read."""
        return self.compare(ours, other, mark, absent, difference=lambda: float(abs(other.run() - self.n_documents)), tolerance=0.0)


def trec(setting: Setting) -> Iterator[Comparison]:
    """TREC files, from their paths to the means."""
    files = trec_files(setting, "tenth100", setting.queries(20_000))
    judging = _Judging(f"{files.n_lines:,} lines", files.n_lines, files.n_queries, files)
    one, two = (_evaluate_run(files.qrels, files.run, number) for number in (1, 2))
    for ours, must in ((one, 13.0), (two, 24.0)):
        yield judging.against(peers.TREC_EVAL, ours, Mark("faster", must))
        # The C program is seldom there. The mark was set by its 940 ns a line.
        yield judging.compare(ours, None, Mark("seconds", 940e-9 / must * files.n_lines), None)
    yield judging.against(peers.IR_MEASURES, one)
    yield judging.against(peers.RANX, one, left_out=_too_slow(setting), once=True)
    arrow = Call("pyarrow merely reading the run", lambda: peers.pyarrow_lines(files.run), n_processors())
    polars = Call("polars merely reading the run", lambda: peers.polars_lines(files.run), n_processors())
    yield judging.reading(two, arrow, TOLD)
    yield judging.reading(two, polars, Mark("faster", 1.0), peers.why_absent("polars"))


def of_dicts(setting: Setting) -> Iterator[Comparison]:
    """Dicts of dicts, about a fifth of the documents judged, as pools are; and all of them, where each has to be looked up."""
    qrels, run = held = dicts("tenth1000", setting.queries(2_000))
    n, shape = sum(map(len, run.values())), f"{len(run):,} × {len(next(iter(run.values()))):,}"
    judging = _Judging(shape, n, len(run), held)
    ours = _evaluate_run(qrels, run, 1)
    yield judging.against(peers.PYTREC_EVAL, ours, Mark("faster", 10.0))
    every = {query: dict.fromkeys(documents, 0) | qrels.get(query, {}) for query, documents in run.items()}
    whole = _Judging(f"{shape}, all judged", n, len(run), (every, run))
    yield whole.against(peers.PYTREC_EVAL, _evaluate_run(every, run, 1))
    for peer in (peers.RANX_DICTS, peers.RANX_BUILT):
        yield judging.against(peer, ours, left_out=_too_slow(setting))
    yield judging.reading(ours, Call("np.fromiter over the scores", lambda: peers.read_scores(held), 1), Mark("share"))


# --- files and processes ---------------------------------------------------------------------------------------------------------


def parquet(setting: Setting) -> Iterator[Comparison]:
    """Parquet, streamed: time and memory, for lists of one length and of very different ones."""
    for shape, n_queries in (("fixed100", 200_000), ("lognormal", 200_000), *([("fixed100", 1_000_000)] if setting.large else [])):
        size = setting.queries(n_queries)
        yield from _parquet(parquet_file(setting, shape, size), draw(shape, size))


def _parquet(path: Path, data: Data) -> Iterator[Comparison]:
    peaks: dict[int, list[float]] = {1: [], 2: []}
    expected = fr.evaluate(*data, metrics=STREAMED).mean()

    def stream(threads: int) -> dict[str, Any]:
        found = child("stream", str(path), str(threads))
        peaks[threads].append(found["peak_bytes"])
        return found

    def read() -> dict[str, Any]:
        return child("read", str(path), "2")

    def ours(threads: int) -> Call:
        return Call("fastrank evaluate_table, per_query=False", lambda: stream(threads)["seconds"], threads, reports=True)

    def apart(threads: int) -> float:
        return _means_apart(stream(threads)["mean"], expected)

    reading = Call("pyarrow merely reading the columns", lambda: read()["seconds"], 2, reports=True)
    yield _compare(data, ours(2), reading, Mark("share", 1.3), difference=lambda: apart(2) + abs(read()["n_rows"] - data.n_documents))
    yield _compare(data, ours(2), ours(1), difference=lambda: apart(1), tolerance=0.0)
    for threads in (1, 2):
        held = Call("fastrank evaluate_table, per_query=False: peak memory", functools.partial(max, peaks[threads]), threads, reports=True)
        yield _compare(data, held, None, Mark("bytes", 700e6 + 16 * int(data.sizes.max())))


METRICS = "nDCG@10,RR,AP@100"
EVALUATE = ("-m", "fastrank", "evaluate", SAMPLE, "-m", METRICS, "--no-progress", "--format", "json")


def start(setting: Setting) -> Iterator[Comparison]:
    """From nothing to a number: first calls and imports."""
    data = draw("sample", 200)
    expected = fr.evaluate_table(SAMPLE, METRICS).mean()  # type: ignore[union-attr]  # one score column, one result
    with tempfile.TemporaryDirectory() as folder:
        kernels = Path(folder) / "kernels"

        def cold(call: Callable[[Path], float]) -> float:
            with tempfile.TemporaryDirectory(dir=folder) as empty:
                return call(Path(empty))

        def difference() -> float:
            printed = json.loads(run_python(*EVALUATE, kernels=kernels))
            return _means_apart({row["name"]: row["mean"] for row in printed["metrics"]}, expected)

        def process(name: str, run: Callable[[], float]) -> Call:
            return Call(name, run, reports=True)

        first = process(
            "fastrank evaluate, the whole process, empty cache", lambda: cold(lambda empty: process_seconds(*EVALUATE, kernels=empty))
        )
        yield _compare(data, first, None, Mark("seconds", 8.0), difference=difference)
        again = process("fastrank evaluate, the whole process", lambda: process_seconds(*EVALUATE, kernels=kernels))
        yield _compare(data, again, None, Mark("seconds", 0.9), difference=difference)
        call = process("fastrank.evaluate, first call of a process", lambda: child("first", SAMPLE, kernels=kernels)["seconds"])
        yield _compare(data, call, None, Mark("seconds"))
        sample = [str(Path(SAMPLE).with_suffix(suffix)) for suffix in (".qrels", ".run")]
        ranx = process(
            "ranx, import and first call, empty cache", lambda: cold(lambda empty: child("ranx", *sample, kernels=empty)["seconds"])
        )
        yield _compare(data, first, ranx, absent=_absent(peers.why_absent("ranx"), _too_slow(setting)), once=True)
    imported = process("python -c 'import fastrank'", lambda: process_seconds("-c", "import fastrank"))
    bare = process("python -c 'pass'", lambda: process_seconds("-c", "pass"))
    yield _compare(data, imported, bare, Mark("excess", 30e-3))


ROWS = {
    row.name: row
    for row in (
        Row("rank-order", "Labels in rank order: DCG, IDCG, RR and AP together", rank_order),
        Row("scored", "Labels and scores: nDCG@10, RR, AP and recall@10 together, against nDCG@10 alone", scored),
        Row("boosting", "The same labels under new scores, once a boosting round: nDCG@10", boosting),
        Row("training", "Boosting: a round's nDCG@10 and LambdaRank's gradients, one thread", training),
        Row("networks", "An epoch of a network: update and compute, one thread", networks),
        Row("small-batch", "One small batch, the whole Python call", small_batch, each=None),
        Row("trec", "TREC qrels and run files, from the paths to map, ndcg and recip_rank", trec, each="line"),
        Row("commands", "A run judged from the shell: the whole process, to the printed means", commands, each="line"),
        Row("dicts", "Dicts of dicts", of_dicts),
        Row("drop-in", "Other libraries' interfaces: the same call on both", drop_in),
        Row("subtopics", "Judgements by subtopic: six metrics of diversity, one thread", subtopics),
        Row("parquet", "Parquet, streamed in constant memory", parquet, each="row"),
        Row("spark", "Spark on one machine, local[2]: nDCG@10 of rows in 8 Parquet files", spark, each="row"),
        Row("click-models", f"Click models: {N_STEPS} steps of fitting, one thread", click_models, each="document shown"),
        Row("propensities", "Position propensities by harvesting, one thread", propensities, each="document shown"),
        Row("prefixes", "nDCG of every prefix of a stream, each ranked anew, one thread", prefixes, each="prefix"),
        Row("statistics", "10,000 bootstrap resamples and sign flips, one thread", statistics, each="draw and metric"),
        Row("start", "From nothing to a number", start, each=None),
        Row("threads", "Two threads against one", threads),
        Row("by-length", "Time per document against list length, a million documents, one thread", by_length, plotted=True),
        Row("by-documents", "Time against number of documents, lists of 100, one thread", by_documents, plotted=True),
    )
}

"""Other programs, each as its users call it: what can be prepared once is prepared here, and the rest is what gets timed."""

from __future__ import annotations

import functools
import importlib
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Data, Dicts, TrecFiles

Value = Callable[[], float]
Values = Callable[[], float | np.ndarray]
Means = Callable[[], dict[str, float]]

# One name for us, trec_eval, pytrec_eval and ranx; the others have their own.
TREC_METRICS = ("map", "ndcg", "recip_rank")


@functools.cache
def why_absent(library: str) -> str | None:
    """Why a library cannot be imported, or None. LightGBM without the system's libgomp raises OSError."""
    try:
        importlib.import_module(library)
    except (ImportError, OSError) as error:
        return f"{library} cannot be loaded: {str(error).splitlines()[0]}"
    return None


def why_no_program(program: str) -> str | None:
    """Why a program cannot be run, or None."""
    return None if shutil.which(program) else f"{program} is not on PATH"


# --- arrays: nDCG@10 of labels and scores ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayPeer:
    """A library's mean nDCG@10, or several means, which are ours of `metric` under `convention`.

    `prepare(data, threads)` gives the call to time. `documents`: it is given so many at most, where it is slow.
    """

    name: str
    library: str
    prepare: Callable[[Data, int], Values]
    metric: str = "nDCG@10"
    convention: str = "fastrank"
    ties: str | None = None
    documents: int = 10**9
    tolerance: float = 1e-9


def _lightgbm(data: Data, threads: int) -> Value:
    """Its metric of a model without a tree, over initial scores: ideals are kept between calls, as in training."""
    import lightgbm

    quiet = {"verbose": -1, "num_threads": threads}
    features = np.zeros((data.n_documents, 1))
    dataset = lightgbm.Dataset(features, data.labels, group=data.sizes, init_score=data.scores.astype(np.float64), params=quiet)
    booster = lightgbm.Booster({"objective": "lambdarank", "metric": "ndcg", "eval_at": [10]} | quiet, dataset)
    return lambda: float(booster.eval_train()[0][2])


def _xgboost(data: Data, threads: int) -> Value:
    """The same of XGBoost, over a base margin."""
    import xgboost

    matrix = xgboost.DMatrix(np.zeros((data.n_documents, 1), np.float32), data.labels, nthread=threads)
    matrix.set_group(data.sizes)
    matrix.set_base_margin(data.scores)
    settings = {"objective": "rank:ndcg", "eval_metric": "ndcg@10", "base_score": 0.0, "nthread": threads, "verbosity": 0}
    booster = xgboost.Booster(settings, [matrix])
    return lambda: float(booster.eval(matrix).rpartition(":")[2])


def _polars(data: Data, threads: int) -> Value:  # noqa: ARG001  (its threads are set when it is imported: all processors)
    """The fastest of the expressions tried: rank everything, then look at relevant documents alone."""
    import polars as pl

    frame = pl.DataFrame({"query": data.query_ids, "label": data.labels, "score": data.scores})

    def place(column: str) -> pl.Expr:
        return pl.col(column).rank("ordinal", descending=True).over("query")

    def gained(rank: str) -> pl.Expr:
        return pl.when(pl.col(rank) <= 10).then((2.0 ** pl.col("label") - 1) / (pl.col(rank) + 1).log(2)).otherwise(0.0).sum()

    ranked = frame.lazy().with_columns(rank=place("score")).filter(pl.col("label") > 0).with_columns(best=place("label"))
    mean = ranked.group_by("query").agg(ndcg=gained("rank") / gained("best")).select(pl.col("ndcg").sum() / data.n_queries)
    return lambda: float(mean.collect().item())


def _rectangles(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores with a query a row, for lists of one length."""
    return data.labels.reshape(data.n_queries, -1), data.scores.reshape(data.n_queries, -1)


def _sklearn(data: Data, threads: int) -> Value:  # noqa: ARG001  (it has one)
    from sklearn.metrics import ndcg_score

    labels, scores = _rectangles(data)
    return lambda: float(ndcg_score(labels, scores, k=10))


def _sklearn_without_ties(data: Data, threads: int) -> Value:  # noqa: ARG001
    from sklearn.metrics import ndcg_score

    labels, scores = _rectangles(data)
    return lambda: float(ndcg_score(labels, scores, k=10, ignore_ties=True))


def _torchmetrics(data: Data, threads: int) -> Value:
    import torch
    from torchmetrics.retrieval import RetrievalNormalizedDCG

    torch.set_num_threads(threads)
    scores, labels, queries = (
        torch.from_numpy(data.scores.copy()),
        torch.from_numpy(data.labels.astype(np.int64)),
        torch.from_numpy(data.query_ids),
    )
    metric = RetrievalNormalizedDCG(top_k=10)
    return lambda: float(metric(scores, labels, indexes=queries))


def _torchmetrics_four(data: Data, threads: int) -> Callable[[], np.ndarray]:
    """Three of the four want labels that are 0 or 1."""
    import torch
    from torchmetrics import retrieval

    torch.set_num_threads(threads)
    scores, queries = torch.from_numpy(data.scores.copy()), torch.from_numpy(data.query_ids)
    graded, relevant = (torch.from_numpy(labels.astype(np.int64)) for labels in (data.labels, data.labels > 0))
    metrics = (
        (retrieval.RetrievalNormalizedDCG(top_k=10), graded),
        (retrieval.RetrievalMRR(), relevant),
        (retrieval.RetrievalMAP(), relevant),
        (retrieval.RetrievalRecall(top_k=10), relevant),
    )
    return lambda: np.array([float(metric(scores, labels, indexes=queries)) for metric, labels in metrics])


LIGHTGBM = ArrayPeer("LightGBM ndcg@10", "lightgbm", _lightgbm, convention="lightgbm")
XGBOOST = ArrayPeer("XGBoost ndcg@10", "xgboost", _xgboost, convention="xgboost")
POLARS = ArrayPeer("polars, an expression for nDCG@10", "polars", _polars, ties="input")
SKLEARN = ArrayPeer("scikit-learn ndcg_score", "sklearn", _sklearn, convention="sklearn", documents=200_000)
# It orders equal scores as a sort that is not stable leaves them, which moves a few queries in a thousand.
SKLEARN_WITHOUT_TIES = ArrayPeer(
    "scikit-learn ndcg_score, ignore_ties=True", "sklearn", _sklearn_without_ties, convention="sklearn", documents=200_000, tolerance=1e-3
)
# In float32.
TORCHMETRICS = ArrayPeer(
    "torchmetrics RetrievalNormalizedDCG", "torchmetrics", _torchmetrics, "nDCG(gain='linear')@10", documents=200_000, tolerance=1e-5
)
TORCHMETRICS_FOUR = ArrayPeer(
    "torchmetrics RetrievalNormalizedDCG, MRR, MAP and Recall",
    "torchmetrics",
    _torchmetrics_four,
    # Three of them take a score that is not above 0 for a document that was not retrieved.
    "nDCG(gain='linear')@10,RR(above=0),AP(above=0,denominator='hits'),R(above=0)@10",
    documents=200_000,
    tolerance=1e-5,
)


@functools.cache
def _numba_loop() -> Callable[..., None]:
    import numba

    @numba.njit
    def loop(labels, offsets, gain, discount, dcg_out, idcg_out, rr_out, ap_out):  # type: ignore[no-untyped-def]
        for q in range(len(offsets) - 1):
            counts = np.zeros(len(gain), np.int64)
            dcg = precisions = ideal = reciprocal = 0.0
            hits = 0
            for i in range(offsets[q], offsets[q + 1]):
                label, place = labels[i], i - offsets[q]
                counts[label] += 1
                if label > 0:
                    hits += 1
                    dcg += gain[label] * discount[place]
                    precisions += hits / (place + 1)
                    if hits == 1:
                        reciprocal = 1 / (place + 1)
            place = 0
            for label in range(len(gain) - 1, 0, -1):
                for _ in range(counts[label]):
                    ideal += gain[label] * discount[place]
                    place += 1
            dcg_out[q], idcg_out[q], rr_out[q], ap_out[q] = dcg, ideal, reciprocal, precisions / max(hits, 1)

    return loop


def numba_loop(data: Data) -> Callable[[], list[np.ndarray]]:
    """DCG, IDCG, RR and AP of labels in rank order, in the loop that one would write first."""
    loop, out = _numba_loop(), np.empty((4, data.n_queries))
    gain, discount = 2.0 ** np.arange(5) - 1, 1 / np.log2(np.arange(2, data.sizes.max() + 2))

    def run() -> list[np.ndarray]:
        loop(data.labels, data.offsets, gain, discount, *out)
        return list(out)

    return run


# --- TREC files ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunPeer:
    """A program's means of TREC_METRICS. `absent` says why it cannot be asked; `prepare` gives the call to time."""

    name: str
    absent: Callable[[], str | None]
    prepare: Callable[..., Means]
    threads: int = 1
    tolerance: float = 1e-9


def _trec_eval(files: TrecFiles) -> Means:
    command = ["trec_eval", *(word for name in TREC_METRICS for word in ("-m", name)), str(files.qrels), str(files.run)]

    def run() -> dict[str, float]:
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        return {name: float(value) for name, _, value in map(str.split, lines)}

    return run


def _ir_measures(files: TrecFiles) -> Means:
    import ir_measures

    measures = {ir_measures.AP: "map", ir_measures.nDCG: "ndcg", ir_measures.RR: "recip_rank"}

    def run() -> dict[str, float]:
        qrels, ranked = ir_measures.read_trec_qrels(str(files.qrels)), ir_measures.read_trec_run(str(files.run))
        return {measures[measure]: value for measure, value in ir_measures.calc_aggregate(list(measures), qrels, ranked).items()}

    return run


RANX_NAMES = {"map": "map", "ndcg": "ndcg", "mrr": "recip_rank"}


def _ranx_means(qrels: Any, run: Any) -> dict[str, float]:
    import ranx

    return {RANX_NAMES[name]: float(value) for name, value in ranx.evaluate(qrels, run, list(RANX_NAMES)).items()}


def _ranx(files: TrecFiles) -> Means:
    import ranx

    return lambda: _ranx_means(ranx.Qrels.from_file(str(files.qrels), kind="trec"), ranx.Run.from_file(str(files.run), kind="trec"))


TREC_EVAL = RunPeer("trec_eval", lambda: why_no_program("trec_eval"), _trec_eval, tolerance=0.6e-4)  # it prints four decimals
IR_MEASURES = RunPeer("ir_measures", lambda: why_absent("ir_measures"), _ir_measures)
# ranx orders equal scores in another way.
RANX = RunPeer("ranx", lambda: why_absent("ranx"), _ranx, tolerance=1e-3)

NAMES_OF_FIELDS = ("query_id", "iteration", "doc_id", "rank", "score", "system")


def pyarrow_lines(path: Path) -> int:
    """Read the fields of a run with pyarrow; how many lines there are."""
    import pyarrow.csv

    table = pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=NAMES_OF_FIELDS),
        parse_options=pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
    )
    return int(table.num_rows)


def polars_lines(path: Path) -> int:
    """Read the fields of a run with polars; how many lines there are."""
    import polars as pl

    return pl.read_csv(path, separator=" ", has_header=False, quote_char=None).height


# --- dicts -----------------------------------------------------------------------------------------------------------------------


def _pytrec_eval(data: Dicts) -> Means:
    """Its evaluator is made once for all runs, so making it is not counted."""
    import pytrec_eval

    qrels, run = data
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(TREC_METRICS))

    def evaluate() -> dict[str, float]:
        found = evaluator.evaluate(run)
        return {name: sum(values[name] for values in found.values()) / len(found) for name in TREC_METRICS}

    return evaluate


def _ranx_dicts(data: Dicts) -> Means:
    import ranx

    qrels, run = data
    held = ranx.Qrels(qrels)
    return lambda: _ranx_means(held, ranx.Run(run))


def _ranx_built(data: Dicts) -> Means:
    import ranx

    qrels, run = ranx.Qrels(data[0]), ranx.Run(data[1])
    return lambda: _ranx_means(qrels, run)


PYTREC_EVAL = RunPeer("pytrec_eval", lambda: why_absent("pytrec_eval"), _pytrec_eval)
RANX_DICTS = RunPeer("ranx, its Run built from the dict", lambda: why_absent("ranx"), _ranx_dicts, tolerance=1e-3)
RANX_BUILT = RunPeer("ranx, its Run built beforehand", lambda: why_absent("ranx"), _ranx_built, tolerance=1e-3)


def read_scores(data: Dicts) -> int:
    """Merely copy the scores of a dict of dicts into an array, query by query; how many there are."""
    return sum(len(np.fromiter(documents.values(), np.float64, len(documents))) for documents in data[1].values())


# --- statistics: bootstrap resamples and sign flips ------------------------------------------------------------------------------


@dataclass(frozen=True)
class FlipPeer:
    """A randomisation test. `prepare(values of two systems, float64[2, n_queries], n_resamples)` gives the call, which returns p."""

    name: str
    library: str
    prepare: Callable[[np.ndarray, int], Value]


def scipy_bootstrap(values: np.ndarray, n_resamples: int, method: str = "percentile") -> Callable[[], Any]:
    """scipy's intervals of the mean of each row, vectorised, ten resamples at a time: more need gigabytes."""
    from scipy import stats

    options: Any = {"n_resamples": n_resamples, "batch": 10, "method": method, "vectorized": True, "axis": -1}
    return lambda: stats.bootstrap((values,), np.mean, rng=0, **options).confidence_interval


def _scipy_permutation_test(values: np.ndarray, n_resamples: int) -> Value:
    from scipy import stats

    options: Any = {"n_resamples": n_resamples, "batch": 10, "permutation_type": "samples", "vectorized": True}
    return lambda: float(stats.permutation_test((values[0] - values[1],), np.mean, rng=0, **options).pvalue)


def _ranx_randomization_test(values: np.ndarray, n_resamples: int) -> Value:
    import numba
    from ranx.statistical_tests.fisher_randomization_test import fisher_randomization_test

    def run() -> float:
        before = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            return float(fisher_randomization_test(values[0], values[1], n_resamples, 0.01, 0)[0])
        finally:
            numba.set_num_threads(before)

    run()  # compiled
    return run


SCIPY_FLIPS = FlipPeer("scipy.stats.permutation_test", "scipy", _scipy_permutation_test)
RANX_FLIPS = FlipPeer("ranx fisher_randomization_test", "ranx", _ranx_randomization_test)

"""Conventions of libraries that take labels and scores against the libraries as they are installed here, on seeded random data.

LightGBM and XGBoost judge the scores they are given as initial scores, without a single tree: their own evaluation, no copy of it.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastrank as fr

# Too much data for plain Python.
pytestmark = pytest.mark.compiled

KS = (1, 2, 5, 10, 1000)
SEEDS = range(4)


class Data(NamedTuple):
    labels: np.ndarray
    scores: np.ndarray
    sizes: np.ndarray

    @property
    def query_ids(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def binary(self) -> Data:
        return self._replace(labels=np.minimum(self.labels, 1))


def library(name: str) -> Any:
    """A library, or a skip that says why it cannot be had: absent, or (OSError) in want of a shared library of the system."""
    try:
        return importlib.import_module(name)
    except (ImportError, OSError) as error:
        pytest.skip(f"{name} cannot be imported: {error}")


def draw(seed: int, *, shortest: int = 0, largest_label: int = 4) -> Data:
    """Lists of 0 to 40 documents and one of 500, labels mostly 0, every fifth query without anything relevant, every third full of ties.

    The doubles of every seventh query differ by less than a float32 can tell.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(shortest, 41, 60)
    sizes[0], sizes[1], sizes[2] = 500, shortest, 1 if shortest < 2 else shortest
    query = np.repeat(np.arange(len(sizes)), sizes)
    labels = rng.integers(0, largest_label + 1, len(query)) * (rng.random(len(query)) < 0.4)
    labels[query % 5 == 1] = 0
    scores = rng.normal(size=len(query))
    tied, close = query % 3 == 0, query % 7 == 0
    scores[tied] = np.round(scores[tied])
    scores[close] = 1.0 + scores[close] * 1e-9
    return Data(labels, scores, sizes)


def means(data: Data, metrics: list[str], convention: str, weights: np.ndarray | None = None) -> dict[str, float]:
    """Our means by the names asked for."""
    result = fr.evaluate(data.labels, data.scores, sizes=data.sizes, weights=weights, metrics=metrics, convention=convention, threads=1)
    found = list(result.mean().values())
    return {name: found[result.metrics.index(fr.parse_metric(name, convention))] for name in metrics}


def agrees(ours: dict[str, float], theirs: dict[str, float], tolerance: float = 1e-12) -> None:
    assert set(ours) == set(theirs)
    assert ours == pytest.approx(theirs, rel=tolerance, abs=tolerance)


# Libraries that compute in float32.
SINGLE = 1e-6


def untied(data: Data) -> Data:
    """The same queries without equal scores: no two floats of single precision are alike, about half of them below 0."""
    places = np.random.default_rng(len(data.labels)).permutation(len(data.labels))
    return data._replace(scores=(places - len(places) // 2) / 8.0)


# --- LightGBM --------------------------------------------------------------------------------------------------------------------


def lightgbm_means(data: Data, ks: tuple[int, ...], weights: np.ndarray | None = None) -> dict[str, float]:
    lgb = library("lightgbm")
    quiet = {"verbose": -1, "num_threads": 1}
    rows = None if weights is None else np.repeat(weights, data.sizes)
    features = np.zeros((len(data.labels), 1))
    dataset = lgb.Dataset(features, data.labels, group=data.sizes, init_score=data.scores, weight=rows, params=quiet)
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": list(ks)} | quiet
    return {name: float(value) for _, name, value, *_ in lgb.Booster(settings, dataset).eval_train()}


@pytest.mark.parametrize("seed", SEEDS)
def test_lightgbm(seed: int) -> None:
    data = draw(seed)
    names = [f"{metric}@{k}" for metric in ("ndcg", "map") for k in KS]
    agrees(means(data, names, "lightgbm"), lightgbm_means(data, KS))


def test_lightgbm_query_by_query() -> None:
    data = draw(0)
    result = fr.evaluate(data.labels, data.scores, sizes=data.sizes, metrics="ndcg@5,map@5", convention="lightgbm", threads=1)
    for q, (start, stop) in enumerate(itertools.pairwise(np.append(0, np.cumsum(data.sizes)))):
        if stop > start:
            alone = Data(data.labels[start:stop], data.scores[start:stop], np.array([stop - start]))
            agrees({name: result[name][q] for name in ("ndcg@5", "map@5")}, lightgbm_means(alone, (5,)))


def test_lightgbm_query_weights() -> None:
    """Without empty queries, whose 1.0 its NDCG adds unweighted."""
    data = draw(1, shortest=1)
    full = np.bincount(data.query_ids, data.labels > 0) > 0
    kept = full[data.query_ids]
    data = Data(data.labels[kept], data.scores[kept], data.sizes[full])
    # A quarter is a weight that the mean over a query's documents, in float32, gives back exactly.
    weights = np.random.default_rng(0).integers(1, 20, len(data.sizes)) / 4
    names = [f"{metric}@{k}" for metric in ("ndcg", "map") for k in KS]
    agrees(means(data, names, "lightgbm", weights), lightgbm_means(data, KS, weights))


# --- XGBoost ---------------------------------------------------------------------------------------------------------------------


def xgboost_means(data: Data, names: list[str], weights: np.ndarray | None = None, **settings: Any) -> dict[str, float]:
    xgb = library("xgboost")
    matrix = xgb.DMatrix(np.zeros((len(data.labels), 1)), data.labels, weight=weights)
    matrix.set_group(data.sizes)
    matrix.set_base_margin(data.scores)
    chosen = {"objective": "rank:ndcg", "eval_metric": names, "base_score": 0.0, "nthread": 1, "verbosity": 0} | settings
    line = xgb.Booster(chosen, [matrix]).eval(matrix, "train")
    pairs = [entry.removeprefix("train-").rpartition(":") for entry in line.split("\t")[1:]]
    return {name: float(value) for name, _, value in pairs}


@pytest.mark.parametrize("seed", SEEDS)
def test_xgboost_ndcg(seed: int) -> None:
    data = draw(seed)
    names = ["ndcg", *(f"ndcg@{k}{dash}" for k in KS for dash in ("", "-"))]
    theirs = xgboost_means(data, names)
    agrees(means(data, names, "xgboost"), theirs)
    dashed = {name.removesuffix("-"): value for name, value in theirs.items() if name.endswith("-")}
    agrees(means(data, list(dashed), "xgboost-"), dashed)


@pytest.mark.parametrize("seed", SEEDS)
def test_xgboost_ndcg_with_linear_gain(seed: int) -> None:
    data = draw(seed)
    ours = means(data, [f"nDCG(gain='linear')@{k}" for k in KS], "xgboost")
    theirs = xgboost_means(data, [f"ndcg@{k}" for k in KS], ndcg_exp_gain=False)
    agrees(dict(zip(theirs, ours.values(), strict=True)), theirs)


@pytest.mark.parametrize("seed", SEEDS)
def test_xgboost_binary_metrics(seed: int) -> None:
    """Without lists of no documents, on which its precision divides 0 by 0 and ends the call."""
    data = draw(seed, shortest=1).binary()
    names = ["map", "pre", *(f"{metric}@{k}" for metric in ("map", "pre") for k in KS), *(f"map@{k}-" for k in KS)]
    agrees(means(data, names, "xgboost"), xgboost_means(data, names))


# --- CatBoost --------------------------------------------------------------------------------------------------------------------

CATBOOST: dict[str, tuple[str, Callable[[Data], Data] | None]] = {
    "NDCG:top={};type=Base": ("nDCG@{}", None),
    "NDCG:top={};type=Exp": ("nDCG(gain='exp2')@{}", None),
    "NDCG:top={};type=Exp;denominator=Position": ("nDCG(gain='exp2', discount='zipf')@{}", None),
    "DCG:top={};type=Base": ("DCG@{}", None),
    "DCG:top={};type=Exp": ("DCG(gain='exp2')@{}", None),
    "MRR:top={}": ("MRR@{}", None),
    "MAP:top={}": ("MAP@{}", None),
    "RecallAt:top={}": ("Recall@{}", None),
    "PrecisionAt:top={}": ("Precision@{}", None),
    "NDCG": ("nDCG", None),
    "QueryAUC:type=Ranking": ("Concordance", None),
    "QueryAUC": ("AUC", Data.binary),
}


@pytest.mark.parametrize("theirs", CATBOOST)
@pytest.mark.parametrize("seed", SEEDS)
def test_catboost(seed: int, theirs: str) -> None:
    """Without lists of no documents: its queries are the ids of documents."""
    eval_metric = library("catboost.utils").eval_metric
    ours, prepared = CATBOOST[theirs]
    data = draw(seed, shortest=1)
    data = prepared(data) if prepared else data
    for k in KS if "{}" in theirs else (None,):
        [expected] = eval_metric(data.labels, data.scores, theirs.format(k), group_id=data.query_ids)
        name = ours.format(k)
        agrees(means(data, [name], "catboost"), {name: expected})


def test_ties_of_a_call_replace_those_of_single_metrics() -> None:
    """CatBoost's QueryAUC has a tie rule of its own, which gives way to one that is asked for."""
    options = {"metrics": "AUC,RR", "convention": "catboost"}
    assert fr.evaluate([1, 0], [3, 3], **options).values.tolist() == [[0.5, 0.5]]
    assert fr.evaluate([1, 0], [3, 3], ties="worst", **options).values.tolist() == [[0.0, 0.5]]
    assert fr.evaluate([1, 0], [3, 3], ties="best", **options).values.tolist() == [[1.0, 1.0]]


# --- scikit-learn ----------------------------------------------------------------------------------------------------------------


def sklearn_values(data: Data, function: Callable[..., float], k: int | None, transform: Callable[[np.ndarray], Any]) -> list[float]:
    bounds = itertools.pairwise(np.append(0, np.cumsum(data.sizes)))
    return [function([transform(data.labels[start:stop])], [data.scores[start:stop]], k=k) for start, stop in bounds]


@pytest.mark.parametrize("seed", SEEDS)
def test_sklearn(seed: int) -> None:
    """Lists of two documents and more, as it has it."""
    metrics = library("sklearn.metrics")
    data = draw(seed, shortest=2)
    for k in (*KS, None):
        at = "" if k is None else f"@{k}"
        expected = {
            f"nDCG{at}": sklearn_values(data, metrics.ndcg_score, k, lambda labels: labels),
            f"nDCG(gain='exp2'){at}": sklearn_values(data, metrics.ndcg_score, k, lambda labels: 2.0**labels - 1),
            f"DCG{at}": sklearn_values(data, metrics.dcg_score, k, lambda labels: labels),
        }
        result = fr.evaluate(data.labels, data.scores, sizes=data.sizes, metrics=list(expected), convention="sklearn", threads=1)
        for name, values in expected.items():
            assert result[name] == pytest.approx(values, rel=1e-12, abs=1e-12)


def test_sklearn_labels_below_zero() -> None:
    metrics = library("sklearn.metrics")
    rng = np.random.default_rng(3)
    labels, scores = rng.normal(size=(20, 9)), np.round(rng.normal(size=(20, 9)))
    ours = fr.evaluate(labels, scores, metrics="DCG@4", convention="sklearn").mean()["DCG@4"]
    assert ours == pytest.approx(metrics.dcg_score(labels, scores, k=4), rel=1e-12)
    with pytest.raises(ValueError, match="negative"):
        metrics.ndcg_score(labels, scores)
    with pytest.raises(ValueError, match="below 0"):
        fr.evaluate(labels, scores, metrics="nDCG", convention="sklearn")


# --- torchmetrics ----------------------------------------------------------------------------------------------------------------

TORCHMETRICS = {
    "RetrievalMRR": "MRR",
    "RetrievalMAP": "MAP",
    "RetrievalPrecision": "Precision",
    "RetrievalRecall": "Recall",
    "RetrievalHitRate": "HitRate",
}


def torchmetrics_mean(data: Data, name: str, **options: Any) -> float:
    retrieval, torch = library("torchmetrics.retrieval"), library("torch")
    metric = getattr(retrieval, name)(**options)
    metric.update(torch.tensor(data.scores), torch.tensor(data.labels), indexes=torch.tensor(data.query_ids))
    return float(metric.compute())


@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics_ndcg(seed: int) -> None:
    """Ties among the scores: of its metrics nDCG alone averages them. Without lists of no documents: its queries are ids."""
    data = draw(seed, shortest=1)
    for k in (*KS, None):
        at = "" if k is None else f"@{k}"
        for action, rule in (("neg", "zero"), ("pos", "one"), ("skip", "skip")):
            name = f"nDCG(no_relevant={rule!r}){at}"
            theirs = torchmetrics_mean(data, "RetrievalNormalizedDCG", top_k=k, empty_target_action=action)
            agrees(means(data, [name], "torchmetrics"), {name: theirs}, SINGLE)


@pytest.mark.parametrize("theirs", TORCHMETRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics_binary_metrics(seed: int, theirs: str) -> None:
    """Without ties, whose order it leaves undefined; half the scores are below 0, which it takes for not retrieved in four of these."""
    data = untied(draw(seed, shortest=1).binary())
    for k in (*KS, None):
        name = TORCHMETRICS[theirs] + ("" if k is None else f"@{k}")
        agrees(means(data, [name], "torchmetrics"), {name: torchmetrics_mean(data, theirs, top_k=k)}, SINGLE)


@pytest.mark.parametrize("seed", SEEDS)
def test_torchmetrics_r_precision(seed: int) -> None:
    data = untied(draw(seed, shortest=1).binary())
    agrees(means(data, ["Rprec"], "torchmetrics"), {"Rprec": torchmetrics_mean(data, "RetrievalRPrecision")}, SINGLE)


# --- rax -------------------------------------------------------------------------------------------------------------------------

RAX = {"ndcg": "ndcg", "dcg": "DCG", "mrr": "MRR", "ap": "AP", "recall": "Recall", "precision": "Precision"}


def rax_mean(data: Data, name: str, **options: Any) -> float:
    """Lists of one length, as it has them: where=False fills the shorter ones up."""
    rax, jnp = library("rax"), library("jax.numpy")
    width = int(data.sizes.max())
    there = np.arange(width) < data.sizes[:, None]
    labels, scores = np.zeros((2, *there.shape), np.float32)
    labels[there], scores[there] = data.labels, data.scores
    return float(getattr(rax, f"{name}_metric")(jnp.array(scores), jnp.array(labels), where=jnp.array(there), **options))


@pytest.mark.parametrize("theirs", RAX)
@pytest.mark.parametrize("seed", SEEDS)
def test_rax(seed: int, theirs: str) -> None:
    """Without lists of no documents, which it leaves out of the mean. Lists of 60 at most: its AP takes a matrix for each."""
    data = draw(seed, shortest=1)
    data = Data(data.labels[500:], data.scores[500:], data.sizes[1:])
    for k in (*KS, None):
        name = RAX[theirs] + ("" if k is None else f"@{k}")
        agrees(means(data, [name], "rax"), {name: rax_mean(data, theirs, topn=k)}, SINGLE)


@pytest.mark.parametrize("seed", SEEDS)
def test_rax_pairs(seed: int) -> None:
    data = draw(seed, shortest=1)
    data = Data(data.labels[500:], data.scores[500:], data.sizes[1:])
    agrees(means(data, ["Concordance"], "rax"), {"Concordance": rax_mean(data, "opa")}, SINGLE)


# --- ranx ------------------------------------------------------------------------------------------------------------------------

# Its names, and how each is asked for here where that differs.
RANX = ("hits", "hit_rate", "precision", "recall", "f1", "mrr", "map", "dcg", "dcg_burges", "ndcg", "ndcg_burges", "r-precision", "rbp.80")
RANX_OURS = {"hits": "NumRelRet(rel={rel}){at}"}


def ranx_ways(level: str, rel: int) -> dict[str, str]:
    """Its names with and without a cutoff, beside ours."""
    return {
        f"{name}{at}{level}": RANX_OURS.get(name, f"{name}{at}{level}").format(rel=rel, at=at)
        for name in RANX
        for at in (("",) if name in ("r-precision", "rbp.80") else ("", "@1", "@5", "@1000"))
    }


@pytest.mark.slow  # the first call in a process compiles or loads all of its kernels
@pytest.mark.parametrize(("level", "rel"), [("", 1), ("-l2", 2)])
@pytest.mark.parametrize("seed", SEEDS[:2])
def test_ranx(seed: int, level: str, rel: int) -> None:
    """Without ties, whose order it leaves undefined, and without lists of no documents, which it cannot read."""
    evaluate = library("ranx").evaluate
    data = draw(seed, shortest=1)
    rng = np.random.default_rng(seed)
    scores = rng.permutation(len(data.labels)) / 8.0
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for row, (q, label) in enumerate(zip(data.query_ids.tolist(), data.labels.tolist(), strict=True)):
        # A fifth of the documents is unjudged, a fifth not retrieved; some are in the pool and nobody judged them.
        if row % 5 != 0 or f"q{q}" not in qrels:
            qrels.setdefault(f"q{q}", {})[f"d{row}"] = label if row % 7 else min(label, 1) - 2
        if row % 5 != 1 or f"q{q}" not in run:
            run.setdefault(f"q{q}", {})[f"d{row}"] = float(scores[row])
    ways = ranx_ways(level, rel)
    expected = evaluate(qrels, run, list(ways), return_mean=False)
    result = fr.evaluate_run(qrels, run, list(ways.values()), convention="ranx", threads=1)
    for theirs, ours in ways.items():
        assert result[ours] == pytest.approx(expected[theirs], rel=1e-12, abs=1e-12), theirs

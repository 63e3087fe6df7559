"""ranx's `evaluate` and `compare`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fastrank.comparison.paired import Chance, pairs_of, permutation, student
from fastrank.comparison.units import units_of
from fastrank.compat.ranx.data import Qrels, Run
from fastrank.compat.ranx.metrics import read_metric, values_of
from fastrank.compat.ranx.outcome import PairDict, Report

_DIFFERENT = (
    "Qrels and Run query ids do not match. Pass `make_comparable=True` to add empty results for queries missing from the run and "
    "remove those not appearing in qrels."
)


def evaluate(
    qrels: Any,
    run: Any,
    metrics: Iterable[str] | str,
    return_mean: bool = True,
    return_std: bool = False,
    threads: int = 0,
    save_results_in_run: bool = True,
    make_comparable: bool = False,
) -> Any:
    """Judge one run: the mean of each metric, a dict where there are several.

    Parameters
    ----------
    qrels, run
        `Qrels` and `Run`, dicts of dicts, or for each query rows of document ids and labels, or of ids and scores in rank order.
    metrics
        ranx's names: ``"ndcg@10"``, ``"map@100-l2"`` (labels from 2 up are relevant), ``"rbp.95"``.
    return_mean
        False: float64[n_queries] for each metric instead, queries sorted by id where they come from `Qrels`.
    return_std
        ``{"mean": ..., "std": ...}`` for each metric.
    threads
        0: all processors. The result has the same bits for any number.
    save_results_in_run
        Keep means and values in `run.mean_scores`, `run.std_scores` and `run.scores`.
    make_comparable
        Give the run an empty ranking for queries that it lacks, and remove those that the qrels lack; else both must have the same.

    Errors: AssertionError for other queries in the run, ValueError for an unknown metric.

    Examples
    --------
    >>> from fastrank.compat.ranx import Qrels, Run, evaluate
    >>> qrels, run = Qrels({"q_1": {"d_1": 1, "d_2": 2}}), Run({"q_1": {"d_1": 1.5, "d_2": 2.6, "d_3": 2.0}})
    >>> evaluate(qrels, run, ["map@3", "mrr"]) == {"map@3": (1 / 1 + 2 / 3) / 2, "mrr": 1.0}
    True
    """
    if make_comparable and isinstance(qrels, Qrels | Mapping) and isinstance(run, Run | Mapping):
        run = (run if isinstance(run, Run) else Run(run)).make_comparable(qrels)
    if isinstance(qrels, Qrels | Mapping) and isinstance(run, Run | Mapping) and set(qrels.keys()) != set(run.keys()):
        raise AssertionError(_DIFFERENT)
    names = _names(metrics)
    values = values_of(qrels, run, [read_metric(name) for name in names], threads or None)
    found: dict[str, Any] = dict(zip(names, values, strict=True))
    means = {name: np.mean(each) if len(each) else np.float64(np.nan) for name, each in found.items()}
    deviations = {name: np.std(each) if len(each) else np.float64(np.nan) for name, each in found.items()}
    if isinstance(run, Run) and save_results_in_run:
        run.mean_scores |= means
        run.std_scores |= deviations if return_std and return_mean else {}
        for name, each in found.items():
            run.scores[name] = dict(zip(run.get_query_ids(), each, strict=True))
    if return_mean:
        found = {name: {"mean": means[name], "std": deviations[name]} if return_std else means[name] for name in names}
    return found[names[0]] if len(names) == 1 else found


def _names(metrics: Iterable[str] | str) -> list[str]:
    names = [metrics] if isinstance(metrics, str) else list(metrics)
    if not all(isinstance(name, str) for name in names):
        raise AssertionError("Metrics error")
    return names


def compare(
    qrels: Qrels,
    runs: Sequence[Run],
    metrics: Iterable[str] | str,
    stat_test: str = "student",
    n_permutations: int = 1000,
    max_p: float = 0.01,
    random_seed: int = 42,
    threads: int = 0,
    rounding_digits: int = 3,
    show_percentages: bool = False,
    make_comparable: bool = False,
) -> Report:
    """Judge several runs and test each pair of them for differences.

    Parameters
    ----------
    qrels, runs, metrics, threads, make_comparable
        As `evaluate`. A run without a name is called run_1, run_2, ...
    stat_test
        "student" (paired t, two-sided), "fisher" (sign flips, two-sided: exact for few queries, else of `n_permutations` by `random_seed`,
        p = (count + 1) / (n + 1)), or "tukey" (Tukey's honestly significant difference).
    max_p
        The largest p that counts as a difference. Nothing is corrected for the number of tests: `fr.compare` does.
    rounding_digits, show_percentages
        How the report shows values.

    Errors: NotImplementedError for another test; else as `evaluate`.

    Examples
    --------
    >>> from fastrank.compat.ranx import Qrels, Run, compare
    >>> qrels = Qrels({f"q_{i}": {"d_1": 1} for i in range(9)})
    >>> good, bad = ({q: {"d_1": score, "d_2": 0.5} for q in qrels.keys()} for score in (1.0, 0.0))
    >>> compare(qrels, [Run(good, "good"), Run(bad, "bad")], ["mrr", "precision@1"], stat_test="fisher")
    #    Model    MRR     P@1
    ---  -------  ------  ------
    a    good     1.000ᵇ  1.000ᵇ
    b    bad      0.500   0.000
    """
    names = _names(metrics)
    models = [run.name if run.name is not None else f"run_{i}" for i, run in enumerate(runs, 1)]
    options: dict[str, Any] = {"return_mean": False, "threads": threads, "make_comparable": make_comparable}
    found = [evaluate(qrels, run, names, **options) for run in runs]
    # float64[n_models, n_queries] of each metric.
    values = {name: np.array([each if len(names) == 1 else each[name] for each in found]) for name in names}
    chance = Chance(random_seed, n_permutations, threads or None)
    comparisons = PairDict()
    for name, rows in values.items():
        for (i, j), p in _p_values(rows, stat_test, chance).items():
            told = {"p_value": p, "significant": bool(p <= max_p)}
            comparisons.setdefault((models[i], models[j]), {})[name] = told
    ordered = [(i, j) for i in range(len(models)) for j in range(len(models)) if i != j]
    return Report(
        model_names=models,
        results={model: {name: float(np.mean(values[name][i])) for name in names} for i, model in enumerate(models)},
        comparisons=comparisons,
        metrics=names,
        max_p=max_p,
        win_tie_loss={(models[i], models[j]): {name: _wins(*values[name][[i, j]]) for name in names} for i, j in ordered},
        rounding_digits=rounding_digits,
        show_percentages=show_percentages,
        stat_test=stat_test,
    )


def _p_values(rows: np.ndarray, stat_test: str, chance: Chance) -> dict[tuple[int, int], float]:
    """p of each pair of systems."""
    pairs = [(i, j) for i in range(len(rows)) for j in range(i + 1, len(rows))]
    if stat_test in ("student", "fisher"):
        test = student if stat_test == "student" else permutation
        p = test(pairs_of(units_of(rows, None, None), pairs), chance).tolist() if pairs else []
    elif stat_test == "tukey":
        from scipy.stats import tukey_hsd

        table = tukey_hsd(*rows).pvalue if pairs else np.ones((1, 1))
        p = [float(table[pair]) for pair in pairs]
    else:
        raise NotImplementedError(f"Statistical test `{stat_test}` not supported.")
    return dict(zip(pairs, p, strict=True))


def _wins(one: np.ndarray, other: np.ndarray) -> dict[str, int]:
    """Queries on which the first of two systems is better, as good, and worse."""
    return {key: int(np.count_nonzero(mask)) for key, mask in (("W", one > other), ("T", one == other), ("L", one < other))}

"""Other libraries' interfaces on this engine: the same call on both, the values compared, keys and all."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting, dicts
from benchmarks.peers import why_absent

MARK = Mark("faster", 5.0)
FEW = ("map", "ndcg", "recip_rank")
# What beir asks for.
MANY = tuple(f"{name}.1,3,5,10,100,1000" for name in ("map_cut", "ndcg_cut", "recall", "P"))
Make = Callable[[Any], Callable[[], Any]]
RANX = ("map", "ndcg@10", "mrr", "recall@100")


def drop_in(setting: Setting) -> Iterator[Comparison]:
    """pytrec_eval, ir_measures and ranx, each beside ours in its place."""
    qrels, run = dicts("tenth1000", setting.queries(2_000))
    n = sum(map(len, run.values()))

    def compare(library: str, name: str, make: Make, tolerance: float = 1e-9, left_out: str | None = None) -> Comparison:
        absent, modules = why_absent(library) or left_out, (f"fastrank.compat.{library}", library)
        calls = [(lambda: None) if absent else make(importlib.import_module(module)) for module in modules]
        ours, theirs = (Call(f"{module}: {name}", call) for module, call in zip(modules, calls, strict=True))
        same = {"difference": lambda: _apart(ours.run(), theirs.run()), "tolerance": tolerance, "absent": absent}
        return Comparison(f"{len(run):,} × {n // len(run):,}", n, len(run), ours, theirs, MARK, **same)

    for measures in (FEW, MANY):
        names = ", ".join(measures)
        yield compare("pytrec_eval", f"evaluate, {names}", lambda library, chosen=measures: _pytrec_eval(library, chosen, qrels, run))
    yield compare("ir_measures", "calc_aggregate, nDCG@10, AP, RR, R@100", lambda library: _ir_measures(library, qrels, run))
    slow = None if setting.slow else "left out here: its first call takes half a minute"
    for name, make in (("evaluate, Qrels and Run built beforehand", _ranx_built), ("evaluate, Run built from the dict", _ranx_dicts)):
        # Equal scores come in another order there.
        yield compare("ranx", f"{name}, {', '.join(RANX)}", lambda library, made=make: made(library, qrels, run), 1e-3, slow)


def _apart(one: Any, other: Any) -> float:
    """The largest difference of two results of the same keys; infinite where they are not the same."""
    if isinstance(one, dict):
        return max((_apart(value, other[key]) for key, value in one.items()), default=0.0) if set(one) == set(other) else np.inf
    return abs(float(one) - float(other))


def _pytrec_eval(library: Any, measures: tuple[str, ...], qrels: Any, run: Any) -> Callable[[], Any]:
    evaluator = library.RelevanceEvaluator(qrels, set(measures))
    return lambda: evaluator.evaluate(run)


def _ir_measures(library: Any, qrels: Any, run: Any) -> Callable[[], Any]:
    measures = [library.parse_measure(name) for name in ("nDCG@10", "AP", "RR", "R@100")]
    return lambda: {str(measure): value for measure, value in library.calc_aggregate(measures, qrels, run).items()}


def _ranx_built(library: Any, qrels: Any, run: Any) -> Callable[[], Any]:
    held, ranked = library.Qrels(qrels), library.Run(run)
    return lambda: library.evaluate(held, ranked, list(RANX))


def _ranx_dicts(library: Any, qrels: Any, run: Any) -> Callable[[], Any]:
    held = library.Qrels(qrels)
    return lambda: library.evaluate(held, library.Run(run), list(RANX))

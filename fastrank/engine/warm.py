"""Compiling every kernel ahead of time: `fastrank warmup`."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass

import numpy as np

from fastrank._kernel import Kernel
from fastrank.arrays import LABEL_TYPES
from fastrank.convention import TIE_RULES
from fastrank.engine.calls import LabelledQueries, evaluate
from fastrank.engine.evaluator import Evaluator
from fastrank.engine.runs import evaluate_run
from fastrank.io.judgements import Run
from fastrank.metrics.base import families
from fastrank.metrics.grammar import parse_metrics

SCORE_TYPES = ("float32", "float64", "int64")


@dataclass(frozen=True)
class WarmUp:
    """What a warm-up did: signatures compiled and found in the cache, the cache's folder (None: none can be written), the time."""

    n_compiled: int
    n_loaded: int
    cache: str | None
    seconds: float
    jit_is_off: bool


def warm_up() -> WarmUp:
    """Call every kernel with every type that it can be called with.

    >>> import os
    >>> _ = os.environ.setdefault("NUMBA_DISABLE_JIT", "0")
    >>> done = warm_up()
    >>> done.jit_is_off or done.n_compiled + done.n_loaded > 0
    True
    """
    began = time.perf_counter()
    metrics = parse_metrics([*(metric() for metric in families.values() if not metric.grouped), "nDCG@3", "nDCG@20%"])
    random = np.random.default_rng(0)
    # Two long queries, whose places are found by sorting, and many short ones, by counting.
    sizes = [600, 600] + [5] * 100
    n = sum(sizes)
    labels, scores = random.integers(0, 2, n), random.integers(0, 50, n)
    for label_type in LABEL_TYPES:
        LabelledQueries(labels.astype(label_type), sizes=sizes).evaluate(scores, metrics=metrics)
        evaluate(labels.astype(label_type), sizes=sizes, metrics=metrics)
    for label_type in LABEL_TYPES[1:]:  # no byte holds these
        evaluate(300 * labels.astype(label_type), sizes=sizes, metrics="AP")
    evaluate(np.ma.MaskedArray(labels, mask=labels == 0), sizes=sizes, metrics="AP")
    for score_type in SCORE_TYPES:
        typed = scores.astype(score_type)
        for ties in TIE_RULES:
            defined = [metric for metric in metrics if ties in metric.tie_rules()]
            evaluate(labels, typed, sizes=sizes, metrics=defined, ties=ties, doc_ids=np.arange(n))
    unretrieved = np.ma.MaskedArray(scores, mask=scores == 0)
    result = evaluate(labels, unretrieved, sizes=sizes, metrics=metrics, weights=np.ones(len(sizes)))
    result.summary()
    Evaluator("RR", n_resamples=100).update(labels[:5], query_ids=["a"] * 5)
    # Labels that float32 holds, and labels that it does not; lines that single blanks separate, and others.
    for judgement, ranked in ((b"q 0 a 1\n", b"q Q0 a 1 0.5 t\n"), (b"q 0  a 0.1\n", b"q Q0  a 1 0.5 t\n")):
        evaluate_run(judgement, ranked, "AP", convention="fastrank")
    evaluate_run({"q": {"a": 1}}, Run.from_arrays(["q"], ["a"], [0.5]), "AP")
    evaluate_run({"q": {"a": 1}}, {"q": {"a": 0.5}}, "AP")
    evaluate_run({"q": {"1": {"a": 1}}}, {"q": {"a": 0.5}}, [metric() for metric in families.values() if metric.grouped])
    kernels = {id(each): each for name, module in list(sys.modules.items()) if name.startswith("fastrank.") for each in _kernels_of(module)}
    stats = [each.compiled.stats for each in kernels.values() if hasattr(each.compiled, "stats")]
    return WarmUp(
        n_compiled=sum(sum(each.cache_misses.values()) for each in stats),
        n_loaded=sum(sum(each.cache_hits.values()) for each in stats),
        cache=_common_folder([each.cache_path for each in stats]),
        seconds=time.perf_counter() - began,
        jit_is_off=not stats,
    )


def _kernels_of(module: object) -> list[Kernel]:
    return [each for each in vars(module).values() if isinstance(each, Kernel)]


def _common_folder(paths: list[str | None]) -> str | None:
    known = [path for path in paths if path]
    return os.path.commonpath(known) if known else None

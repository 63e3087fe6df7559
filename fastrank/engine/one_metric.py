"""One metric family over arrays: what the functions of `functions` and `relevance_functions` have in common."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from fastrank.batch import make_batch
from fastrank.convention import TIE_RULES
from fastrank.engine.plan import Plan, make_plan
from fastrank.engine.run import Run, run_blocks
from fastrank.errors import InputError
from fastrank.metrics import Metric

Cutoffs = int | float | str | Sequence[int | float | str] | None
_ONE = (int, float, str, bytes)


def judge(
    metric: type[Metric], k: Cutoffs, parameters: dict[str, Any], labels: Any, scores: Any, offsets: Any, sizes: Any, query_ids: Any
) -> np.ndarray:
    """A metric family over arrays, at each cutoff asked for: float64[n_queries], or a column a cutoff for a sequence of them."""
    several = k is not None and not isinstance(k, _ONE) and isinstance(k, Sequence | np.ndarray) and getattr(k, "ndim", 1) > 0
    given: Any = k
    ks = tuple(given) if several else (given,)
    if not ks:
        raise InputError("k is an empty sequence. Give at least one cutoff, or None for the whole list.")
    family: Any = metric  # a class, and as such a key: the checker of types takes it for one of its metrics
    try:
        plan, places = _plan(family, *ks, **parameters)
    except TypeError:  # a gain or discount given as a table cannot be looked up
        plan, places = _plan.__wrapped__(family, *ks, **parameters)
    batch = make_batch(labels, scores, offsets, sizes=sizes, query_ids=query_ids, convention=plan.convention)
    plan.check(batch)
    work = Run(plan, batch, batch.scores)
    run_blocks(work, None)
    return work.columns[places].T if several else work.columns[0]


@functools.lru_cache(maxsize=256, typed=True)  # 1, 1.0 and True are equal, but only the first is a cutoff
def _plan(metric: type[Metric], *ks: Any, **parameters: Any) -> tuple[Plan, list[int]]:
    """The plan of a call, and which of its metrics stands at each cutoff: the same cutoff may be asked for twice."""
    if parameters.get("ties") == "docid":
        rules = ", ".join(repr(rule) for rule in TIE_RULES if rule != "docid")
        raise InputError(
            f"ties='docid' orders equal scores by document id, and there are none here: use evaluate with doc_ids=, or {rules}."
        )
    metrics = [metric(k=k, **parameters) for k in ks]
    plan = make_plan(metrics, "fastrank")
    return plan, [plan.metrics.index(each.fill(plan.convention)) for each in metrics]

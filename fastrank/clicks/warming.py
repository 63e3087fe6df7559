"""Compiling the kernels of click logs ahead of time."""

from __future__ import annotations

import numpy as np

from fastrank.clicks.counterfactual import evaluate
from fastrank.clicks.fitting import fit
from fastrank.clicks.interleaving import METHODS, interleave_score
from fastrank.clicks.likelihood import score
from fastrank.clicks.log import ClickLog
from fastrank.clicks.models import NEEDS
from fastrank.clicks.placement import rank_in
from fastrank.clicks.propensities import propensity
from fastrank.clicks.rates import session_metrics
from fastrank.clicks.simulation import simulate


def compile_kernels() -> None:
    """Compile each kernel of this room, or load it from the cache, before it is needed."""
    log = ClickLog([0, 3, 6], doc=np.array([0, 1, 2, 2, 1, 0]), click=[0, 1, 0, 0, 0, 0])
    for name in NEEDS:
        model = fit(log, name, max_iter=1)
        score(model, log)
        simulate(log, model)
    weighed = ClickLog([0, 2, 4], np.array([0, 1, 1, 0]), [1, 1, 1, 1], ["q", "q"], weight=[1, 2])
    evaluate(weighed, propensity(weighed), rank_in(weighed, [0, 2], [0, 1], ["q"]))
    session_metrics(weighed)
    for method in METHODS:
        interleave_score(weighed.position % 3 if method == "team_draft" else (weighed.position, weighed.position), weighed, method=method)

"""Compiling the kernels of click models ahead of time."""

from __future__ import annotations

import numpy as np

from fastrank.clicks.fitting import fit
from fastrank.clicks.likelihood import score
from fastrank.clicks.log import ClickLog
from fastrank.clicks.models import NEEDS
from fastrank.clicks.simulation import simulate


def compile_kernels() -> None:
    """Compile each kernel of the click models, or load it from the cache, before it is needed."""
    log = ClickLog([0, 3, 6], doc=np.array([0, 1, 2, 2, 1, 0]), click=[0, 1, 0, 0, 0, 0])
    for name in NEEDS:
        model = fit(log, name, max_iter=1)
        score(model, log)
        simulate(log, model)

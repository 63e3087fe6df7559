"""Run as a program: `RankingMetric` in two processes under gloo; prints the value of each. Arguments: a folder, then the kinds to try."""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, multiprocessing

WAYS = ("whole", "cut", "one-sided")
METRICS = ("nDCG@5", "RR", "NumRelRet@3", "GMAP")


def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, labels and query ids of 60 lists of 7."""
    generator = np.random.default_rng(5)
    ids = np.repeat(np.arange(60), 7)
    return generator.normal(size=ids.size), generator.integers(0, 3, ids.size), ids


def without_torchmetrics() -> Any:
    """The module as it is where torchmetrics is not installed."""
    spec = importlib.util.spec_from_file_location("plain_torch", find_spec("fastrank.training.torch").origin)
    module = importlib.util.module_from_spec(spec)
    held = sys.modules.get("torchmetrics")
    sys.modules["torchmetrics"] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["torchmetrics"]
        if held is not None:
            sys.modules["torchmetrics"] = held
    return module


def values(metric: Any) -> dict[str, float]:
    """What a metric says now."""
    return {name: value.item() for name, value in metric.compute().items()}


def evaluate_share(metric: Any, way: str, place: int) -> list[dict[str, float]]:
    """Add this process's share of the rows, batch by batch, and say what it sees; then one query more; then that query alone."""
    # Cut inside queries, and unevenly; in "one-sided" the second process sees nothing at all.
    cut = {"whole": 140, "cut": 100, "one-sided": 420}[way]
    columns = [torch.from_numpy(column)[slice(cut) if place == 0 else slice(cut, None)] for column in drawn()]
    for first in range(0, len(columns[0]), 70):
        metric.update(*(column[first : first + 70] for column in columns))
    found = [values(metric)]
    # The states of the process are its own again: more can be added, and computed anew.
    metric.update(torch.tensor([[0.5, 0.1]]), torch.tensor([[0, 1]]))
    found.append(values(metric))
    metric.reset()
    metric.update(torch.tensor([[0.5, 0.1]]), torch.tensor([[0, 1]]))
    return [*found, values(metric)]


def in_process(place: int, folder: str, kinds: list[str]) -> None:
    """One of two processes."""
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=place, world_size=2)
    found = {}
    for kind in kinds:
        module = without_torchmetrics() if kind == "plain" else importlib.import_module("fastrank.training.torch")
        for way in WAYS:
            metric = module.RankingMetric(METRICS, whole_queries=way == "whole", threads=1)
            found[f"{kind} {way}"] = evaluate_share(metric, way, place)
    distributed.destroy_process_group()
    Path(folder, f"{place}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    multiprocessing.spawn(in_process, (sys.argv[1], sys.argv[2:]), nprocs=2)

"""Beyond one machine: partitions are evaluated where they lie, and what they give is merged, to the bits of a single machine.

Each module needs its engine (``pip install 'fastrank-metrics[spark]'``, or ``[ray]``) and loads it when it is first called. For engines
without a module, and for plain processes, `fastrank.Evaluator` is the unit that travels: update, to_bytes, from_bytes, merge.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["ray", "spark"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fastrank.distributed' has no attribute {name!r}")
    return importlib.import_module(f"fastrank.distributed.{name}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]

"""Beyond one machine: partitions are evaluated where they lie, and what they give is merged, to the bits of a single machine.

Each module needs its engine (``pip install 'fastrank-metrics[spark]'``, or ``[ray]``) and loads it when it is first called. For engines
without a module, and for plain processes, `fastrank.Evaluator` is the unit that travels: update, to_bytes, from_bytes, merge.
"""

from __future__ import annotations

from fastrank._lazy import attributes

__all__ = ["ray", "spark"]

__getattr__, __dir__ = attributes(__name__, dict.fromkeys(__all__))

"""Other libraries' interfaces on this engine: `fr.compat.pytrec_eval`, `fr.compat.ir_measures` and `fr.compat.ranx`.

Each is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["ir_measures", "pytrec_eval", "ranx"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'fastrank.compat' has no attribute {name!r}")
    return importlib.import_module(f"fastrank.compat.{name}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]

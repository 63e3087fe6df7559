"""Click logs: rates, position propensities, relevance and the value of a new ranker, from what users clicked.

Names are resolved when they are first used, as in the package itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog as ClickLog

# Where each public name is defined.
_HOMES: dict[str, str] = {
    "ClickLog": "log",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fastrank.clicks' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fastrank.clicks.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

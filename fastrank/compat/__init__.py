"""Other libraries' interfaces on this engine: `fr.compat.pytrec_eval`, `fr.compat.ir_measures` and `fr.compat.ranx`.

Each is loaded when it is first asked for.
"""

from __future__ import annotations

from fastrank._lazy import attributes

__all__ = ["ir_measures", "pytrec_eval", "ranx"]

__getattr__, __dir__ = attributes(__name__, dict.fromkeys(__all__))

"""The lock of compilation, and forks that wait for it.

A forked child has one thread, and every lock as it was: had another thread of the parent held one, the child would wait for ever.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

# Two threads may make a first call at once: one compiles, the other waits.
compiling = threading.RLock()
_numba: Any = None


def _before() -> None:
    """Wait until nothing is being compiled, here or by Numba for anyone else."""
    global _numba
    compiling.acquire()
    _numba = getattr(sys.modules.get("numba.core.compiler_lock"), "global_compiler_lock", None)  # None: Numba is not loaded
    if _numba is not None:
        _numba.acquire()


def _after() -> None:
    if _numba is not None:
        _numba.release()
    compiling.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)

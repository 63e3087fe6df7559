"""How far a long run has come, on a terminal."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

# A run that is over sooner shows nothing.
PATIENCE = 1.0


class Progress:
    """Shows on stderr how many rows (or what ``unit`` says) are done, from the first second on and only on a terminal; leaves no trace.

    ``expect`` tells how many there will be, or None: it is asked once, when there is something to show, and then the share that is
    done and the time that is left are shown too.

    >>> with Progress("reading file") as progress:
    ...     progress.add(1000)
    """

    def __init__(self, what: str, unit: str = "rows", *, expect: Callable[[], int | None] | None = None, hidden: bool = False) -> None:
        self._shown: Any = None
        self._timer: threading.Timer | None = None
        if hidden or sys.stderr is None or not sys.stderr.isatty():
            return
        # A timer of its own, since the first report may come late: a long text file is read in one go.
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._what, self._unit, self._expect, self._n_done = what, unit, expect, 0
        self._began = time.perf_counter()

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        if self._shown is not None:
            self._shown.stop()

    def add(self, n: int) -> None:
        """Tell that so many more are done."""
        if self._timer is None:
            return
        self._n_done += n
        if self._shown is not None:
            self._shown.update(0, completed=self._n_done, rate=self._rate())

    def _rate(self) -> float:
        return self._n_done / max(time.perf_counter() - self._began, 1e-9)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        total = None if self._expect is None else self._expect()
        done = TextColumn(f"{{task.completed:,.0f}} {self._unit}"), TextColumn("{task.fields[rate]:,.0f}/s")
        known = () if total is None else (BarColumn(), TextColumn("{task.percentage:.0f}%"))
        left = () if total is None else (TextColumn("left"), TimeRemainingColumn(elapsed_when_finished=False))
        bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            *known,
            *done,
            TimeElapsedColumn(),
            *left,
            console=Console(stderr=True),
            transient=True,
        )
        bar.add_task(self._what, total=total, completed=self._n_done, rate=self._rate())
        self._shown = bar
        bar.start()

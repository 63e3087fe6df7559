"""How far a long run has come, on a terminal."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Any, Self

# A run that is over sooner shows nothing.
PATIENCE = 1.0


class Progress:
    """Shows the rows read so far on stderr, from the first second on and only on a terminal; leaves nothing behind.

    >>> with Progress("reading file") as progress:
    ...     progress.add(1000)
    """

    def __init__(self, what: str, *, hidden: bool = False) -> None:
        self._shown: Any = None
        self._timer: threading.Timer | None = None
        if hidden or sys.stderr is None or not sys.stderr.isatty():
            return
        # A timer of its own, since the first report may come late: a long text file is read in one go.
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        self._what, self._n_rows = what, 0

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

    def add(self, n_rows: int) -> None:
        """Tell that so many more rows are done."""
        if self._timer is None:
            return
        self._n_rows += n_rows
        if self._shown is not None:
            self._shown.update(0, rows=self._n_rows)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as Bar
        from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

        bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TextColumn("{task.fields[rows]:,} rows"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        bar.add_task(self._what, total=None, rows=self._n_rows)
        self._shown = bar
        bar.start()

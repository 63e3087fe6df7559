"""Checkpoints: what a long evaluation of files has done so far, in a directory, to go on from after it was stopped.

The directory holds ``call.json``, which says of what call and of what files the checkpoint is, and numbered parts, each the evaluators of
the rows since the part before. Every file appears whole or not at all, so a kill at any moment leaves a state to go on from.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastrank.engine.evaluator import Evaluator
from fastrank.errors import InputError
from fastrank.io.arrow import UNREADABLE
from fastrank.io.atomic import Path, write_file, write_text

if TYPE_CHECKING:
    from fastrank.io.columns import Columns

# Written into every checkpoint; a reader refuses what it does not know.
FORMAT = 1
# A part costs a forced write to the disk: no more than one in so many seconds, or a fast disk would be the slowest thing in a run.
SECONDS = 2.0

CALL = "call.json"
PART = re.compile(r"part-([0-9]{9})\.arrow")
# What `write_files` was writing when the process was killed.
DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp")

Evaluators = dict[str, Evaluator]


class Checkpoint:
    """The state of one call in a directory.

    `evaluators` have what is in the directory, `since` takes the next rows. `row`, the first row that is not in them; None: all are.
    `scattered`: the rows of a query stand in several places, so that all must be read at once.
    """

    def __init__(self, folder: Path, call: dict[str, Any], files: dict[str, list[int | None]], fresh: Callable[[], Evaluators]) -> None:
        self.folder, self._fresh = os.fsdecode(folder), fresh
        self.evaluators, self.since = fresh(), fresh()
        self.row: int | None = 0
        self.scattered = False
        self._n_parts, self._reached, self._written = 0, 0, time.monotonic()
        names = self._names()
        for name in filter(DRAFT.fullmatch, names):
            os.unlink(os.path.join(self.folder, name))
        mine = {"format": FORMAT, "call": {"fastrank": sys.modules["fastrank"].__version__, **call}, "files": files}
        if CALL in names:
            self._check(mine)
            for number, name in enumerate(sorted(filter(PART.fullmatch, names)), 1):
                self._read(name, number)
        elif any(not DRAFT.fullmatch(name) for name in names):
            raise InputError(f"{self.folder} is no checkpoint, but holds other files: give checkpoint= a directory of its own.")
        else:
            write_text(os.path.join(self.folder, CALL), json.dumps(mine, indent=1))

    def _names(self) -> list[str]:
        try:
            os.makedirs(self.folder, exist_ok=True)
            return os.listdir(self.folder)
        except OSError as error:
            raise InputError(f"checkpoint {self.folder} cannot be used: {error.strerror}.") from error

    def _check(self, mine: dict[str, Any]) -> None:
        """Whether what was begun is what goes on."""
        again = f"To start again give another directory, or delete {self.folder}"
        try:
            with open(os.path.join(self.folder, CALL), encoding="utf-8") as file:
                theirs = json.load(file)
            format_, call, files = (theirs[name] for name in ("format", "call", "files"))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{self.folder}/{CALL} is damaged ({type(error).__name__}: {error}). {again}.") from error
        if format_ != FORMAT:
            raise InputError(f"{self.folder} was written in format {format_}; this version reads format {FORMAT}. {again}.")
        here = json.loads(json.dumps(mine))
        for name, value in here["call"].items():
            if call.get(name) != value:
                difference = f"{name} is {value} here and {call.get(name)} there"
                raise InputError(f"{self.folder} is the checkpoint of another call: {difference}. {again}.")
        for where in (*files, *here["files"]):
            if files.get(where) != here["files"].get(where):
                fate = "is new" if where not in files else "is gone" if where not in here["files"] else "has changed"
                raise InputError(f"{where} {fate} since the checkpoint {self.folder} was begun. {again}.")

    def _read(self, name: str, number: int) -> None:
        path = os.path.join(self.folder, name)
        try:
            with open(path, "rb") as source, pa.ipc.open_file(source) as file:
                table = file.read_all()
            about = json.loads(table.schema.metadata[b"fastrank"])
            if PART.fullmatch(name)[1] != f"{number:09d}" or about["first_row"] != self._reached:  # type: ignore[index]
                raise InputError("it does not go on from the part before: two processes have written here, or a part is gone")
            for key, data in zip(*(table.column(column).to_pylist() for column in ("score", "evaluator")), strict=True):
                self.evaluators[key].merge(Evaluator.from_bytes(data, self.evaluators[key].convention))
        except (*UNREADABLE, KeyError, TypeError, ValueError) as error:
            again = f"To start again delete {self.folder}"
            raise InputError(f"{path} cannot be gone on from: {' '.join(str(error).split())}. {again}.") from error
        self._n_parts, self.scattered = number, about["scattered"]
        self._reached = about["row"]
        self.row = None if about["complete"] else about["row"]

    def add(self, columns: Columns) -> None:
        """Rows have been evaluated by `since`: keep that, if the last time was long enough ago."""
        n_rows = int(columns.offsets[-1])
        if n_rows:
            self.row = columns.source_row(n_rows - 1) + 1
            if time.monotonic() - self._written >= SECONDS:
                self._write(complete=False)

    def found_scattered(self) -> None:
        """Forget all: the rows of a query stand in several places, and every call must regroup them."""
        for number in range(self._n_parts, 0, -1):  # from the last, so that those that are left go on from one another
            os.unlink(os.path.join(self.folder, f"part-{number:09d}.arrow"))
        self.evaluators = self._fresh()
        self.since.update(self._fresh())
        self._n_parts, self._reached, self.row, self.scattered = 0, 0, 0, True
        self._write(complete=False)

    def complete(self) -> Evaluators:
        """All rows have been evaluated: the evaluators of all."""
        self._write(complete=True)
        return self.evaluators

    def _write(self, *, complete: bool) -> None:
        about = {"first_row": self._reached, "row": self.row, "complete": complete, "scattered": self.scattered}
        held = pa.array([each.to_bytes() for each in self.since.values()], pa.large_binary())
        table = pa.table({"score": list(self.since), "evaluator": held}, metadata={"fastrank": json.dumps(about)})

        def fill(file: Any) -> None:
            with pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)

        self._n_parts += 1
        write_file(os.path.join(self.folder, f"part-{self._n_parts:09d}.arrow"), fill)
        for name, each in self.since.items():
            self.evaluators[name].merge(each)
        self.since.update(self._fresh())
        self._reached, self._written = about["row"], time.monotonic()  # type: ignore[assignment]

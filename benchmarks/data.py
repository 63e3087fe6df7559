"""What is measured on: seeded arrays and files of ``bench_data/make.py``, the files made once and kept."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench_data import make

FOLDER = Path(make.__file__).parent / "out"
# The pool of judgements: what is relevant, and every eighth document.
POOL_STEP = 8


@dataclass(frozen=True)
class Setting:
    """How much is measured: the marks hold for whole shapes, of which a setting may take a part.

    That is one in `divisor`, or, of shapes of a million documents, one in `divisor_of_small`.
    `rounds`, `seconds`: how often each comparison is timed, at least. `most`: documents at the end of the curve over their number.
    `large`: files of the largest size, too. `slow`: others' first calls that take half a minute, too. `folder`: where files are kept.
    """

    name: str
    divisor: int = 1
    divisor_of_small: int = 1
    rounds: int = 5
    seconds: float = 3.0
    most: int = 10**7
    large: bool = False
    slow: bool = True
    folder: Path = FOLDER

    def queries(self, whole: int, *, small: bool = False) -> int:
        """How many queries to take of a shape."""
        return max(2, whole // (self.divisor_of_small if small else self.divisor))


FULL = Setting("full")
QUICK = Setting("quick", divisor=4, rounds=3, seconds=0.2)
TINY = Setting("tiny", divisor=2000, divisor_of_small=2000, rounds=1, seconds=0.0, most=10**4, slow=False)


class Data(NamedTuple):
    """Labels, scores and offsets, the scores float32 and the labels uint8 from 0 to 4."""

    labels: np.ndarray
    scores: np.ndarray
    offsets: np.ndarray

    @property
    def n_queries(self) -> int:
        """How many queries."""
        return len(self.offsets) - 1

    @property
    def n_documents(self) -> int:
        """How many documents."""
        return len(self.labels)

    @property
    def sizes(self) -> np.ndarray:
        """The length of each list."""
        return np.diff(self.offsets)

    @property
    def query_ids(self) -> np.ndarray:
        """The query of each document, as a number."""
        return np.repeat(np.arange(self.n_queries), self.sizes)

    @property
    def title(self) -> str:
        """Queries times list length."""
        shortest, longest = int(self.sizes.min()), int(self.sizes.max())
        return f"{self.n_queries:,} × {shortest:,}" + (f" to {longest:,}" if longest > shortest else "")

    def first(self, documents: int) -> Data:
        """The first queries, of so many documents together at most, but one at least."""
        n_queries = max(1, int(np.searchsorted(self.offsets, documents, side="right")) - 1)
        stop = int(self.offsets[n_queries])
        return Data(self.labels[:stop], self.scores[:stop], self.offsets[: n_queries + 1])


@functools.lru_cache(maxsize=1)
def draw(shape: str, n_queries: int) -> Data:
    """The arrays of a shape; the last ones are kept, since they may fill a good part of memory."""
    return Data(*make.generate(shape, n_queries))


# --- files -----------------------------------------------------------------------------------------------------------------------


def _kept(folder: Path, name: str, fill: Callable[[Path], None]) -> Path:
    """A folder of files that belong together: made when it is not there yet, or when the program that makes it has changed."""
    home = folder / f"{name}-{zlib.crc32(Path(make.__file__).read_bytes()):08x}"
    if not home.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder))
        try:
            fill(unfinished)
            unfinished.rename(home)
        except BaseException:
            shutil.rmtree(unfinished)
            raise
    return home


def parquet_file(setting: Setting, shape: str, n_queries: int) -> Path:
    """A shape as a Parquet file."""

    def fill(out: Path) -> None:
        # In a process of its own: its memory is given back, and does not count as ours.
        subprocess.run([sys.executable, make.__file__, shape, "--out", out, "--queries", str(n_queries)], check=True, capture_output=True)

    return _kept(setting.folder, f"parquet-{shape}-{n_queries}", fill) / f"{shape}.parquet"


class TrecFiles(NamedTuple):
    """A run, and judgements of a part of its documents, which is what real ones are."""

    qrels: Path
    run: Path
    n_lines: int
    n_queries: int


def trec_files(setting: Setting, shape: str, n_queries: int) -> TrecFiles:
    """A shape as TREC files."""

    def fill(out: Path) -> None:
        tables = list(make.tables(make.generate(shape, n_queries)))
        make.write_trec(tables, out / "all")
        make.write_trec([table.filter(_in_pool(table)) for table in tables], out / "pool")
        (out / "all.qrels").unlink()
        (out / "pool.run").unlink()

    home = _kept(setting.folder, f"trec-{shape}-{n_queries}", fill)
    run = home / "all.run"
    return TrecFiles(home / "pool.qrels", run, run.read_bytes().count(b"\n"), n_queries)


def _in_pool(table: pa.Table) -> pa.Array:
    return pc.or_(pc.greater(table["label"], 0), pa.array(np.arange(table.num_rows) % POOL_STEP == 0))


Dicts = tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]


@functools.lru_cache(maxsize=1)
def dicts(shape: str, n_queries: int) -> Dicts:
    """A shape as dicts of dicts: the judgements of a pool, and the run."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    row = 0
    for table in make.tables(make.generate(shape, n_queries)):
        columns = (table[name].to_pylist() for name in ("query_id", "doc_id", "label", "score"))
        for query, doc, label, score in zip(*columns, strict=True):
            run.setdefault(query, {})[doc] = score
            if label > 0 or row % POOL_STEP == 0:
                qrels.setdefault(query, {})[doc] = label
            row += 1
    return qrels, run

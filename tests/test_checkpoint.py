"""Checkpoints: a run over files that was killed goes on where it was, and ends with the same bits."""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import fastrank as fr
from fastrank.engine import checkpoint, tables
from fastrank.evaluation import Evaluation
from fastrank.io.tables import read_columns

METRICS = "nDCG@10,RR"
N_ROWS = 40_000


def rows(seed: int = 0) -> pa.Table:
    """Queries of 0 to 19 documents one after the other, with weights and slices."""
    rng = np.random.default_rng(seed)
    query = np.repeat(np.arange(N_ROWS), rng.integers(0, 20, N_ROWS))[:N_ROWS]
    names = np.char.add("q", np.char.zfill(query.astype(str), 6))
    labels, scores = rng.integers(0, 3, N_ROWS), rng.integers(0, 9, N_ROWS).astype(np.float32)
    return pa.table({"query_id": names, "label": labels, "score": scores, "other": -scores, "weight": 1 + query % 3, "part": query % 5})


def write(folder: Path, table: pa.Table, n_files: int = 3) -> str:
    folder.mkdir()
    cuts = np.linspace(0, len(table), n_files + 1).astype(int)
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):  # a query may go on in the next file
        pq.write_table(table.slice(first, last - first), folder / f"{number}.parquet", row_group_size=3000)
    return str(folder)


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part after every batch, and small batches."""
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(tables, "read_columns", functools.partial(read_columns, rows_per_batch=2000))


def bits(result: Evaluation) -> tuple[Any, ...]:
    values = None if result.values is None else result.values.tobytes()
    ids = None if result.query_ids is None else result.query_ids.to_pylist()
    return result.n_queries, values, ids, result.moments, result.slice_moments, result.notes, result.no_relevant


class StopError(Exception):
    pass


def stop_after(n_batches: int) -> Any:
    """A progress function that ends the run, as an error would."""
    seen = []

    def progress(n_rows: int) -> None:
        seen.append(n_rows)
        if len(seen) > n_batches:
            raise StopError

    return progress


OPTIONS: list[dict[str, Any]] = [
    {},
    {"per_query": False, "n_resamples": 100},
    {"weight": "weight", "by": "part", "filter": pc.field("part") != 2},
    {"score": ["score", "other"], "threads": 1},
    {"filter": pc.field("query_id") > "q002000"},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_run_stopped_again_and_again_ends_with_the_bits_of_one_run(options: dict[str, Any], tmp_path: Path) -> None:
    data = write(tmp_path / "data", rows())
    whole = fr.evaluate_table(data, METRICS, **options)
    stops = 0
    while True:
        try:
            result = fr.evaluate_table(data, METRICS, checkpoint=tmp_path / "kept", progress=stop_after(3), **options)
            break
        except StopError:
            stops += 1
    assert stops >= 3
    again = fr.evaluate_table(data, METRICS, checkpoint=tmp_path / "kept", **options)
    if isinstance(whole, dict):
        for name in whole:
            assert bits(result[name]) == bits(again[name]) == bits(whole[name])
    else:
        assert bits(result) == bits(again) == bits(whole)


def test_rows_that_were_done_are_not_read_again(tmp_path: Path) -> None:
    data = write(tmp_path / "data", rows())
    with pytest.raises(StopError):
        fr.evaluate_table(data, METRICS, checkpoint=tmp_path / "kept", progress=stop_after(10))
    (tmp_path / "kept" / ".0123456789abcdef.tmp").write_bytes(b"what was being written at a kill")
    told: list[int] = []
    fr.evaluate_table(data, METRICS, checkpoint=tmp_path / "kept", progress=told.append)
    assert [path.name for path in (tmp_path / "kept").glob(".*")] == []
    assert told[0] > N_ROWS / 3  # beyond the first file
    assert sum(told) == N_ROWS
    told.clear()
    fr.evaluate_table(data, METRICS, checkpoint=tmp_path / "kept", progress=told.append)
    assert told == []


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_text_goes_on_at_its_row(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrank.io.formats.BLOCK", 1 << 15)
    monkeypatch.setattr("fastrank.io.formats.PIECE", 1 << 16)
    table, path = rows(), tmp_path / f"data{suffix}"
    if suffix == ".csv":
        pa.csv.write_csv(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    whole = fr.evaluate_table(str(path), METRICS)
    with pytest.raises(StopError):
        fr.evaluate_table(str(path), METRICS, checkpoint=tmp_path / "kept", progress=stop_after(8))
    assert bits(fr.evaluate_table(str(path), METRICS, checkpoint=tmp_path / "kept")) == bits(whole)


def test_ids_that_do_not_ascend_and_queries_in_several_places(tmp_path: Path) -> None:
    table, rng = rows(), np.random.default_rng(1)
    runs = table.to_pandas().groupby("query_id", sort=False).indices
    order = np.concatenate([runs[name] for name in rng.permutation(list(runs))])
    scattered = np.concatenate([np.arange(N_ROWS // 2), rng.permutation(np.arange(N_ROWS // 2, N_ROWS))])
    for name, rearranged in (("together", order), ("scattered", scattered)):
        data = write(tmp_path / name, table.take(pa.array(rearranged)))
        whole = fr.evaluate_table(data, METRICS)
        for n_batches in (2, 3, 14, 100):
            try:
                result = fr.evaluate_table(data, METRICS, checkpoint=tmp_path / f"{name} kept", progress=stop_after(n_batches))
            except StopError:
                continue
        assert bits(result) == bits(whole)


def test_what_has_changed_is_named(tmp_path: Path) -> None:
    table = rows()
    data, kept = write(tmp_path / "data", table), tmp_path / "kept"

    def run(metrics: str = METRICS, **options: Any) -> Any:
        return fr.evaluate_table(data, metrics, checkpoint=kept, **options)

    with pytest.raises(StopError):
        run(progress=stop_after(4))
    with pytest.raises(fr.InputError, match=r"kept is the checkpoint of another call: metrics is .*AP.* here and .*nDCG"):
        run("AP")
    with pytest.raises(fr.InputError, match="another call: weight is weight here and None there"):
        run(weight="weight")
    second = tmp_path / "data" / "1.parquet"
    content, times = second.read_bytes(), os.stat(second)
    os.utime(second, ns=(times.st_atime_ns, times.st_mtime_ns + 1000))
    with pytest.raises(fr.InputError, match=r"data/1\.parquet has changed since the checkpoint .*kept was begun"):
        run()
    second.unlink()
    with pytest.raises(fr.InputError, match=r"data/1\.parquet is gone since the checkpoint"):
        run()
    second.write_bytes(content)
    os.utime(second, ns=(times.st_atime_ns, times.st_mtime_ns))
    (tmp_path / "data" / "3.parquet").write_bytes(content)
    with pytest.raises(fr.InputError, match=r"data/3\.parquet is new since the checkpoint"):
        run()
    (tmp_path / "data" / "3.parquet").unlink()
    assert bits(run()) == bits(fr.evaluate_table(data, METRICS))


def test_a_damaged_checkpoint_is_an_error_of_one_line(tmp_path: Path) -> None:
    data, kept = write(tmp_path / "data", rows()), tmp_path / "kept"
    with pytest.raises(StopError):
        fr.evaluate_table(data, METRICS, checkpoint=kept, progress=stop_after(5))
    first, second = sorted(kept.glob("part-*"))[:2]
    content = second.read_bytes()
    for wrong in (first.read_bytes(), content[:100]):
        second.write_bytes(wrong)
        with pytest.raises(fr.InputError, match=r"part-000000002\.arrow cannot be gone on from: ") as caught:
            fr.evaluate_table(data, METRICS, checkpoint=kept)
        assert "\n" not in str(caught.value)
    second.unlink()
    with pytest.raises(fr.InputError, match="two processes have written here, or a part is gone"):
        fr.evaluate_table(data, METRICS, checkpoint=kept)
    call = (kept / "call.json").read_text()
    for text, message in (("{", "is damaged"), (call.replace('"format": 1', '"format": 9'), "was written in format 9")):
        (kept / "call.json").write_text(text)
        with pytest.raises(fr.InputError, match=message):
            fr.evaluate_table(data, METRICS, checkpoint=kept)
    with pytest.raises(fr.InputError, match="data is no checkpoint, but holds other files"):
        fr.evaluate_table(data, METRICS, checkpoint=data)
    with pytest.raises(fr.InputError, match=r"0.parquet cannot be used: "):
        fr.evaluate_table(data, METRICS, checkpoint=f"{data}/0.parquet")


def test_only_files_that_can_be_read_again_have_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(fr.InputError, match="checkpoint= needs files"):
        fr.evaluate_table(rows(), METRICS, checkpoint=tmp_path / "kept")
    with pytest.raises(fr.InputError, match="this can be read once only"):
        fr.evaluate_table(io.BytesIO(b"query_id,label,score\na,1,1\n"), METRICS, checkpoint=tmp_path / "kept")
    (tmp_path / "letor.txt").write_text("1 qid:1 1:0.5\n")
    with pytest.raises(fr.InputError, match="this is LETOR text"):
        fr.evaluate_table(tmp_path / "letor.txt", METRICS, checkpoint=tmp_path / "kept")


PROGRAM = """
import functools, sys
from fastrank.engine import checkpoint, tables
from fastrank.io.tables import read_columns
import fastrank as fr
checkpoint.SECONDS = 0.0
tables.read_columns = functools.partial(read_columns, rows_per_batch=500)
print("begun", flush=True)
fr.evaluate_table(sys.argv[1], "nDCG@10,RR", checkpoint=sys.argv[2], threads=1)
"""


@pytest.mark.slow
@pytest.mark.compiled
def test_twenty_kills_at_random_moments_leave_the_result_as_it_is(tmp_path: Path) -> None:
    data, rng = write(tmp_path / "data", rows()), np.random.default_rng(0)
    whole = bits(fr.evaluate_table(data, METRICS))

    def begin(kept: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, data, str(kept)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        return process

    began = time.monotonic()
    process = begin(tmp_path / "unharmed")
    first = time.monotonic()
    assert process.wait() == 0
    seconds, killed = time.monotonic() - max(began, first), 0
    for number in range(20):
        kept = tmp_path / f"kept {number // 4}"  # killed four times each
        process = begin(kept)
        time.sleep(seconds * rng.random() / 2)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        assert process.stdout is not None
        process.stdout.close()
        copy = tmp_path / f"copy {number}"
        if kept.exists():
            shutil.copytree(kept, copy)
        assert bits(fr.evaluate_table(data, METRICS, checkpoint=copy)) == whole
        assert {name.name for name in copy.iterdir() if not name.name.startswith("part-")} == {"call.json"}
    assert killed >= 15

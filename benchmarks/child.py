"""Tasks for processes of their own: a first call, and the time and memory of a stream. Each prints one line of JSON.

python -m benchmarks.child first SAMPLE              seconds of the first call of a process
python -m benchmarks.child ranx QRELS RUN            the same for ranx
python -m benchmarks.child stream FILE THREADS       `evaluate_table` on a Parquet file
python -m benchmarks.child read FILE THREADS         pyarrow merely reading the columns it needs
python -m benchmarks.child resamples QUERIES N       the bootstrap and the sign flips of five metrics
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

METRICS = "nDCG@10,RR,AP"
COLUMNS = ["query_id", "label", "score"]
SAMPLE = str(Path(__file__).parent.parent / "bench_data" / "sample.parquet")


def peak_bytes() -> int:
    """The most memory this process has held.

    On Linux, getrusage also remembers the process that started this one, as it was before the new program took its place.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def first(path: str) -> dict[str, Any]:
    """The first call of `evaluate` in this process, whose imports are done."""
    import pyarrow.parquet

    import fastrank as fr

    table = pyarrow.parquet.read_table(path)
    query_ids, labels, scores = (table[name].combine_chunks() for name in COLUMNS)
    began = time.perf_counter()
    mean = fr.evaluate(labels, scores, query_ids=query_ids, metrics=METRICS).mean()
    return {"seconds": time.perf_counter() - began, "mean": mean}


def ranx(qrels: str, run: str) -> dict[str, Any]:
    """ranx's first evaluation in this process, its import included, as its kernels compile."""
    began = time.perf_counter()
    import ranx

    mean = ranx.evaluate(ranx.Qrels.from_file(qrels, kind="trec"), ranx.Run.from_file(run, kind="trec"), ["ndcg@10", "mrr", "map"])
    return {"seconds": time.perf_counter() - began, "mean": {name: float(value) for name, value in mean.items()}}


def stream(path: str, threads: str) -> dict[str, Any]:
    """Evaluate a Parquet file of any size without keeping single queries: the second time, when all kernels are loaded."""
    import fastrank as fr

    for _ in range(2):
        began = time.perf_counter()
        result = fr.evaluate_table(path, METRICS, per_query=False, threads=int(threads))
        mean = result.mean()  # type: ignore[union-attr]  # one score column, one result
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "mean": mean, "peak_bytes": peak_bytes()}


def read(path: str, threads: str) -> dict[str, Any]:
    """Read the same columns, batch by batch, and do nothing with them: the second time, too."""
    import pyarrow as pa
    import pyarrow.parquet

    pa.set_cpu_count(int(threads))
    for _ in range(2):
        began = time.perf_counter()
        with pyarrow.parquet.ParquetFile(path) as file:
            n_rows = sum(batch.num_rows for batch in file.iter_batches(1 << 20, columns=COLUMNS, use_threads=int(threads) > 1))
        seconds = time.perf_counter() - began
    return {"seconds": seconds, "n_rows": n_rows}


def resamples(n_queries: str, n_resamples: str) -> dict[str, Any]:
    """The memory that resamples add to that of the process and its values, once all kernels are loaded."""
    import numpy as np

    from fastrank.comparison.intervals import Quantity, intervals, make_plan
    from fastrank.comparison.paired import Chance, pairs_of, permutation
    from fastrank.comparison.units import units_of

    values = np.random.default_rng(0).beta(0.5, 2, (5, int(n_queries)))
    quantities = [Quantity("mean", i) for i in range(len(values))]

    def run(columns: np.ndarray, n: int) -> None:
        units = units_of(columns, None, None)
        intervals(units, quantities, make_plan("bca", 0.95, n, 0, 1))
        permutation(pairs_of(units, [(0, 1)]), Chance(0, n, 1))

    run(values[:, :20], 100)
    before = peak_bytes()
    run(values, int(n_resamples))
    return {"added_bytes": peak_bytes() - before}


TASKS = {task.__name__: task for task in (first, ranx, stream, read, resamples)}

if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](*sys.argv[2:])))

"""The values of single queries as files for other programs: Parquet, CSV, TSV or JSON lines, by the name of the file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, to_json
from fastrank.io.atomic import check_target, write_files

if TYPE_CHECKING:
    import pyarrow as pa

Writer = Callable[[BinaryIO], object]

# Rows that are turned into Python objects at a time.
ROWS = 1 << 14


def write_per_query(systems: Mapping[str, Evaluation], path: Path) -> list[Path]:
    """Write a row per query: one system to `path`, several to files beside it that bear their names.

    ``out.parquet`` becomes ``out.bm25.parquet`` and ``out.dense.parquet``. Parquet can be read back by `fastrank.load`; CSV, TSV and
    JSON lines hold the columns of `Evaluation.to_arrow` in full precision. Either all files are written or, when one cannot be, none
    is changed: `InputError`.
    """
    write = _writer_of(path)
    paths = [path] if len(systems) == 1 else [path.with_name(f"{path.stem}.{_in_a_name(name)}{path.suffix}") for name in systems]
    if len(set(paths)) < len(paths):
        twice = next(each for each in paths if paths.count(each) > 1)
        raise InputError(f"{twice} would be written for two systems: give them names that differ in letters and digits.")
    write_files({each: write(evaluation) for each, evaluation in zip(paths, systems.values(), strict=True)})
    return paths


def check_per_query(path: Path) -> None:
    """Complain of a name that `write_per_query` cannot write to: before a long run, not after it."""
    _writer_of(path)
    check_target(path)


def _writer_of(path: Path) -> Callable[[Evaluation], Writer]:
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{path}: the name must end in {', '.join(_WRITERS)}, which says the format.")
    return writer


def _in_a_name(system: str) -> str:
    return system.replace(os.sep, "_").replace(" ", "_")


# --- formats --------------------------------------------------------------------------------------------------------------------


def _parquet(evaluation: Evaluation) -> Writer:
    from fastrank.report.saved import parquet_writer

    return parquet_writer(evaluation)


def _separated(delimiter: str) -> Callable[[Evaluation], Writer]:
    def writer(evaluation: Evaluation) -> Writer:
        def write(file: BinaryIO) -> None:
            table = evaluation.to_arrow()
            text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
            rows = csv.writer(text, delimiter=delimiter, lineterminator="\n")
            rows.writerow(table.column_names)
            for part in _rows(table):
                rows.writerows(part)
            text.detach()

        return write

    return writer


def _json_lines(evaluation: Evaluation) -> Writer:
    def write(file: BinaryIO) -> None:
        table = evaluation.to_arrow()
        for part in _rows(table):
            lines = [to_json(dict(zip(table.column_names, row, strict=True)), indent=None) for row in part]
            file.write("".join(line + "\n" for line in lines).encode())

    return write


def _rows(table: pa.Table) -> Iterator[list[tuple[Any, ...]]]:
    """Rows as Python objects, some thousand at a time; bytes as the text they are, or nearly are."""
    for batch in table.to_batches(ROWS):
        columns = [column.to_pylist() for column in batch.columns]
        yield list(zip(*([_text(value) for value in column] for column in columns), strict=True))


def _text(value: Any) -> Any:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


_WRITERS: dict[str, Callable[[Evaluation], Writer]] = {
    ".parquet": _parquet,
    ".csv": _separated(","),
    ".tsv": _separated("\t"),
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
}

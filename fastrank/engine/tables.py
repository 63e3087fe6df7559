"""`evaluate_table`: metrics of files in many formats, Arrow data, data frames and LETOR text, in batches of whole queries."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fastrank.batch import QueryBatch, make_batch
from fastrank.convention import Convention
from fastrank.engine.calls import DEFAULT_METRICS, Metrics
from fastrank.engine.checkpoint import Checkpoint
from fastrank.engine.evaluator import Evaluator
from fastrank.errors import InputError
from fastrank.io.ahead import one_ahead
from fastrank.io.roles import columns_named
from fastrank.io.sources import is_one_file, stamps
from fastrank.io.tables import Scattered, read_columns
from fastrank.io.temporary import bytes_of

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation
    from fastrank.io.columns import Columns

Progress = Callable[[int], None]


def evaluate_table(
    table: Any,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    label: str = "label",
    score: str | Sequence[str] = "score",
    doc: str | None = None,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    filter: Any = None,  # noqa: A002 - pyarrow's word
    scores: str | os.PathLike[str] | None = None,
    groups: str | os.PathLike[str] | None = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    bounds: bool = False,
    per_query: bool = True,
    n_resamples: int = 0,
    seed: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
) -> Evaluation | dict[str, Evaluation]:
    """Judge the rankings in a table: one row per document, read in batches of whole queries.

    Parameters
    ----------
    table
        Path, list of paths, pattern (``runs/*.parquet``), directory or URI (``s3://...``) of files in Parquet, CSV or TSV, JSON
        lines, Arrow IPC (Feather) or ORC, plain or compressed by gzip, zstd, bz2 or lz4; path of LETOR / SVMlight text; a binary file
        object; a pyarrow Table, RecordBatch, RecordBatchReader or Dataset; or anything with ``__arrow_c_stream__`` (polars, pandas,
        duckdb). What a file is its first bytes tell, then its name. Folders named ``key=value`` are columns of text. In CSV ids are
        the text that is written ("007" is no number), and an empty field without quotes is null.
    query, label, score
        Names of columns. A null label is unjudged, a null score judged but not retrieved. Several score columns are judged in one
        pass: then the result is a dict of evaluations, one per column.
    doc, weight, by
        Names of columns: document ids (for ``ties="docid"``), query weights, slices. The last two are constant within a query.
    filter
        An expression of ``pyarrow.compute``, such as ``pc.field("locale") == "de"``: rows for which it is not true are left out. It
        may look at any column.
    scores, groups
        LETOR text only: a file with one score a line; a file of group sizes, one a line, for text without ``qid:``.
    per_query
        False: keep no single queries, so that memory stays constant for a file of any size.
    n_resamples, seed
        Resamples of a Poisson bootstrap, for ``summary(method="poisson")`` in one pass: see `Evaluator`.
    checkpoint
        A directory of its own, made if it is not there, in which a long run over files keeps what it has done. The same call after a
        kill goes on from there, at the file and row group it had reached, and gives the same bits; after the end it gives the result
        at once. A file that has changed meanwhile is an error. Where the rows of a query stand in several places, and in LETOR text,
        there is no going on: such files are read again from the start.
    progress
        Called after each batch with its number of rows, and with minus their sum where a file must be read again from its start.
    memory_limit
        About how much memory rows may take, in bytes or as text such as "500MB" (None: 1 GB): when queries are scattered through files,
        or Arrow data is a stream. Beyond it they go through temporary files, in the folder that TMPDIR names. The result has the same
        bits.
    metrics, convention, ties, no_relevant, depth, judged_only, bounds, threads
        As `evaluate`.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr, pyarrow as pa
    >>> table = pa.table({"query_id": ["a", "a", "b"], "label": [0, 1, 1], "score": [0.7, 0.5, 0.1]})
    >>> fr.evaluate_table(table, "RR").mean()
    {'RR': 0.75}
    """
    names, slices = columns_named("score", score), columns_named("by", () if by is None else by)
    columns_named("label", [label])
    if not names or len(set(names)) < len(names):
        raise InputError(f"score must name at least one column, each once, not {score!r}.")
    if progress is not None and not callable(progress):
        raise InputError(f"progress must be a function that takes the number of rows of a batch, or None, not {progress!r}.")
    options: dict[str, Any] = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only, "bounds": bounds}
    options |= {"n_resamples": n_resamples, "seed": seed}

    def fresh() -> dict[str, Evaluator]:
        return {name: Evaluator(metrics, convention, **options, per_query=per_query, threads=threads) for name in names}

    evaluators = fresh()
    roles: dict[str, Any] = {"query": query, "label": label, "scores": names, "doc": doc, "weight": weight, "by": slices, "filter": filter}
    if is_one_file(table) and _is_letor(table):
        _check_letor_roles(names, doc, weight, by, filter)
        if checkpoint is not None:
            raise InputError("checkpoint= is for tables, and this is LETOR text, which is read as a whole: leave it out.")
        feed(evaluators, _letor(table, scores, groups), progress)
    elif scores is not None or groups is not None:
        raise InputError("scores= and groups= belong to LETOR text, and this is none. For a table name its column with score=.")
    elif checkpoint is not None:
        call = {**{name: str(value) for name, value in roles.items()}, **evaluators[names[0]].identity()}
        kept = Checkpoint(checkpoint, call, stamps(table), fresh)
        evaluators = _evaluate_on(kept, table, {**roles, "memory_limit": bytes_of(memory_limit)}, threads, _Count(progress))
    else:
        roles["memory_limit"] = bytes_of(memory_limit)
        count = _Count(progress)
        try:
            feed(evaluators, _read(table, roles, threads), count)
        except Scattered as scattered:
            count.again()
            evaluators = fresh()
            feed(evaluators, _read(scattered.source, {**roles, "regroup": True}, threads), count)
    results = {name: evaluator.result() for name, evaluator in evaluators.items()}
    return results[names[0]] if isinstance(score, str) else results


class _Count:
    """Tells the caller of rows, and takes them back where they are read again."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._n_rows = progress, 0

    def __call__(self, n_rows: int) -> None:
        self._n_rows += n_rows
        if self._progress is not None:
            self._progress(n_rows)

    def again(self) -> None:
        self(-self._n_rows)


def _evaluate_on(kept: Checkpoint, table: Any, roles: dict[str, Any], threads: int | None, count: _Count) -> dict[str, Evaluator]:
    """Evaluate the rows that a checkpoint does not have yet."""
    if kept.row is None:
        return kept.evaluators
    if kept.row:
        count(kept.row)
    try:
        if not kept.scattered:
            feed(kept.since, _read(table, {**roles, "start": kept.row}, threads), count, kept.add)
            return kept.complete()
    except Scattered:
        count.again()
        kept.found_scattered()
    feed(kept.since, _read(table, {**roles, "regroup": True}, threads), count)
    return kept.complete()


def _read(table: Any, roles: dict[str, Any], threads: int | None) -> Iterator[Columns]:
    """Batches, the next one read on a thread of its own while the others compute the last one."""
    if threads == 1:
        return read_columns(table, **roles)
    stop = threading.Event()
    return one_ahead(read_columns(table, **roles, stop=stop), stop)


def feed(
    evaluators: dict[str, Evaluator],
    batches: Iterator[Columns],
    progress: Progress | None,
    then: Callable[[Columns], None] | None = None,
) -> None:
    """Compute every batch. Whatever ends it, what the reader holds is given back at once."""
    with contextlib.closing(batches):  # type: ignore[type-var]  # a generator
        for columns in batches:
            for name, evaluator in evaluators.items():
                evaluator.update_batch(_batch_of(columns, name, evaluator))
            if progress is not None:
                progress(int(columns.offsets[-1]))
            if then is not None:
                then(columns)


def _batch_of(columns: Columns, score: str, evaluator: Evaluator) -> QueryBatch:
    return make_batch(
        columns.labels,
        columns.scores.get(score),
        columns.offsets,
        doc_ids=columns.doc_ids,
        weights=columns.weights,
        by=columns.by or None,
        names=columns.query_ids,
        source_row=columns.source_row,
        convention=evaluator.convention,
        judged_only=evaluator.judged_only,
        regrouped=columns.regrouped,
    )


def _is_letor(path: Any) -> bool:
    from fastrank.io.letor import is_letor

    return is_letor(path)


def _letor(path: Any, scores: Any, groups: Any) -> Iterator[Columns]:
    from fastrank.io.letor import read_letor

    if scores is None:
        raise InputError(f"{os.fsdecode(path)} is LETOR text, which holds no scores: give a file of them, one a line, with scores=.")
    yield read_letor(path, scores, groups)


def _check_letor_roles(names: list[str], *others: Any) -> None:
    if names != ["score"] or any(other is not None for other in others):
        unused = "leave out score, doc, weight, by and filter"
        raise InputError(f"LETOR text has no columns to name: {unused}, and give the scores' file with scores=.")

"""Qrels and a run become one `QueryBatch`: every retrieved document with its label, and the judged ones that were not retrieved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank._kernel import map_blocks
from fastrank.arrays import frozen
from fastrank.batch import DocIds, QueryBatch
from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.io import matching
from fastrank.io.judgements import Qrels, Run

# Documents matched in turn, as many as keep a thread busy for a millisecond.
BLOCK = 1 << 17


@dataclass(frozen=True)
class Joined:
    """The batch, and how many queries were in the qrels alone and in the run alone."""

    batch: QueryBatch
    n_missing: int
    n_unjudged: int


def join(qrels: Qrels, run: Run, convention: Convention, *, skip_missing: bool, judged_only: bool, threads: int | None) -> Joined:
    """Match documents by id, query by query.

    Queries are those of the qrels, in their order, or sorted by id when the rows of one, here or there, were not together. The
    documents of the qrels must be distinct within a query. Errors: an `InputError` when no query is in both, or when a document of
    the run stands twice.
    """
    in_run = _queries_of_run(qrels, run)
    missing = in_run < 0
    queries = np.flatnonzero(~missing) if skip_missing else np.arange(len(qrels))
    if run.regrouped and not qrels.regrouped:
        queries = queries[pc.sort_indices(qrels.query_ids.take(pa.array(queries))).to_numpy()]
    rows = _Selection(run.offsets, in_run[queries])
    ids, code = run.doc_ids, rows.of(run.code)
    ids = DocIds(ids.text, rows.of(ids.start), rows.of(ids.stop))
    judged = _Selection(qrels.offsets, queries)
    labels = qrels.float32_labels if convention.labels == "float32" else qrels.narrow_labels
    label, retrieved = _match(qrels, labels, judged, run, rows, ids, code, threads)
    scores, offsets = rows.of(run.scores), rows.offsets
    if judged_only:
        kept = ~np.isnan(label) & ((label >= 0) | (not convention.trec))
        label, scores, offsets = label[kept], scores[kept], np.append(0, np.cumsum(kept))[offsets]
        ids = DocIds(ids.text, frozen(ids.start[kept], np.int64), frozen(ids.stop[kept], np.int64))
    if convention.scores is not None:
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, as in C
            scores = scores.astype(convention.scores, copy=False)
    met = judged.of(retrieved)
    smallest, largest = qrels.extremes
    batch = QueryBatch(
        frozen(label, label.dtype),
        frozen(scores, scores.dtype),
        frozen(offsets, np.int64),
        unretrieved_labels=frozen(judged.of(labels)[~met], label.dtype),
        unretrieved_offsets=frozen(np.append(0, np.cumsum(~met))[judged.offsets], np.int64),
        doc_ids=ids,
        query_ids=qrels.query_ids if len(queries) == len(qrels) and not run.regrouped else qrels.query_ids.take(pa.array(queries)),
        smallest_label=smallest,
        largest_label=largest,
        pooled=convention.trec,
        regrouped=qrels.regrouped + run.regrouped,
    )
    return Joined(batch, int(np.count_nonzero(missing)), len(run) - int(np.count_nonzero(~missing)))


def _queries_of_run(qrels: Qrels, run: Run) -> np.ndarray:
    """For each query of the qrels its place in the run, -1 where it is not there."""
    if qrels.query_ids is run.query_ids:
        return np.arange(len(qrels))
    found = pc.index_in(qrels.query_keys, value_set=run.query_keys).fill_null(-1).to_numpy()
    if len(qrels) and len(run) and np.all(found < 0):
        here, there = (f"{pairs.query_ids[0].as_py()!r} ({pairs.id_type})" for pairs in (qrels, run))
        raise InputError(f"no query is in both: {qrels.name} has {here}, {run.name} has {there}. Check that they belong together.")
    return found.astype(np.int64)


class _Selection:
    """The rows of some queries, one after the other: query i has offsets[i] ... offsets[i + 1]. A negative query has no rows."""

    def __init__(self, offsets: np.ndarray, queries: np.ndarray) -> None:
        there = queries >= 0
        self.first = np.where(there, offsets[queries], 0) if len(offsets) > 1 else np.zeros(len(queries), np.int64)
        self.last = np.where(there, offsets[queries + there], self.first)
        sizes = self.last - self.first
        self.offsets = frozen(np.append(0, np.cumsum(sizes)), np.int64)
        self.is_whole = self.offsets[-1] == offsets[-1] and np.array_equal(self.first[sizes > 0], self.offsets[:-1][sizes > 0])
        self._rows = None if self.is_whole else np.repeat(self.first - self.offsets[:-1], sizes) + np.arange(self.offsets[-1])

    def of(self, column: np.ndarray) -> np.ndarray:
        """The entries of a column in these rows; the column itself where they are all its rows in order."""
        return column if self._rows is None else frozen(column[self._rows], column.dtype)

    def row(self, row: int) -> int:
        """The row of the whole that a row here is."""
        return row if self._rows is None else int(self._rows[row])


def _match(
    qrels: Qrels, labels: np.ndarray, judged: _Selection, run: Run, rows: _Selection, ids: DocIds, code: np.ndarray, threads: int | None
) -> tuple[np.ndarray, np.ndarray]:
    """The label of each retrieved document, and which judgements were met."""
    label, retrieved = np.empty(len(code), labels.dtype), np.zeros(len(labels), bool)
    found: list[np.ndarray] = []

    def block(first: int, last: int) -> None:
        twins = np.full(2, -1)
        matching.match_documents(
            ids.text, ids.start, ids.stop, code, rows.offsets,
            qrels.doc_ids.text, qrels.doc_ids.start, qrels.doc_ids.stop, qrels.code, labels, judged.first, judged.last,
            first, last, matching.table_for(rows.offsets, first, last), label, retrieved, twins,
        )  # fmt: skip
        if twins[1] >= 0:
            found.append(twins)

    map_blocks(block, rows.offsets, documents=BLOCK, threads=threads)
    if found:
        run.refuse_twins(*(rows.row(int(row)) for row in min(found, key=lambda twins: twins[1])))
    return label, retrieved

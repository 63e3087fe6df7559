"""Rare labels: where few documents count, their places are counted by whoever holds the rows, and no row moves.

The documents that count are few, so every process may know the scores of all of them. It counts, for each query, how many of its own
rows have such a score and how many lie between one and the next (a level and the gap above it). The counts of all processes add up to the
rank of each document that counts, and to the number of documents that share its score: all that a metric asks for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank._kernel import kernel
from fastrank.arrays import as_array, frozen, label_array, label_codes
from fastrank.batch import QueryBatch
from fastrank.convention import Convention
from fastrank.distributed.parts import Job
from fastrank.distributed.runs import QUERY, whole_queries
from fastrank.engine.evaluator import Evaluator
from fastrank.engine.plan import Plan, make_plan
from fastrank.gains import GainTable
from fastrank.io.arrow import decoded, joined
from fastrank.io.roles import Roles
from fastrank.io.sources import open_source

# Columns of counts: the query, which of its levels or gaps (BELOW: the gap under all of them), and how many rows.
SLOT, ROWS = "slot", "rows"
BELOW = -1
# Rows that are counted in turn: looking up the queries of each lot costs a pass over all that have documents that count.
LOT = 1 << 21
# Rules that place a document by its score, its label and the number of documents that share its score, and by nothing else.
RULES = ("average", "best", "worst")


def plan_of(job: Job) -> Plan:
    """What is to be computed."""
    options = {name: job.options[name] for name in ("ties", "no_relevant", "depth", "judged_only")}
    return make_plan(job.metrics, job.convention, **options)


def why_not(job: Job) -> str | None:
    """Why a rank and the number of documents that share a score are not all that is asked for; None where they are."""
    plan = plan_of(job)
    rule = next((group.rule for group in plan.groups if group.rule not in RULES), None)
    if rule is not None:
        return f'ties="{rule}" asks for more than scores'
    if job.doc is not None or job.weight is not None or job.by:
        return "ids of documents, weights and slices stay with their rows"
    if plan.least <= 0 or job.options["judged_only"]:
        return "documents of label 0 count"
    for metric in plan.metrics:
        if metric.grouped or metric.family in plan.convention.binary_only or isinstance(getattr(metric, "gain", None), GainTable):
            return f"{metric.short_name} asks for every label"
    return None


@dataclass(frozen=True)
class Relevant:
    """The documents that count, by query, ordered by score; unretrieved ones come first. Ids are distinct and ascend.

    Query q's documents begin at starts[q]: label, and level, the place of their score in `levels`, -1 without one. levels: the distinct
    scores of each query, ascending; query q's begin at level_starts[q]. extremes: the smallest and the largest label that any row has.
    """

    query_ids: pa.Array
    starts: np.ndarray
    label: np.ndarray
    level: np.ndarray
    level_starts: np.ndarray
    levels: np.ndarray
    extremes: tuple[float, float]

    @classmethod
    def of(cls, rows: pa.Table, extremes: tuple[float, float], convention: Convention) -> Relevant:
        """Of a table of a query id, a label and a score a row. Judged documents without a score may have any label."""
        encoded = joined([decoded(chunk) for chunk in rows.column(0).chunks] or [pa.array([], rows.schema.types[0])]).dictionary_encode()
        ascending = pc.sort_indices(encoded.dictionary)
        place = np.empty(len(ascending), np.int64)
        place[ascending.to_numpy()] = np.arange(len(place))
        query = place[encoded.indices.to_numpy()]
        score, absent = comparable(rows.column(2), convention)
        order = np.lexsort((score, ~absent, query))
        query, score, absent = query[order], score[order], absent[order]
        n_queries = len(place)
        opens = ~absent
        opens[1:] &= (query[1:] != query[:-1]) | absent[:-1] | (score[1:] != score[:-1])
        label = label_array(as_array("labels", rows.column(1))[0][order])
        return cls(
            encoded.dictionary.take(ascending),
            np.searchsorted(query, np.arange(n_queries + 1)),
            label if (codes := label_codes(label) if len(label) else None) is None else codes[0],
            np.where(absent, -1, np.cumsum(opens) - 1),
            np.searchsorted(query[opens], np.arange(n_queries + 1)),
            frozen(score[opens], score.dtype),
            extremes,
        )

    def as_columns(self, most: int) -> pa.Table | None:
        """The levels of each query side by side, null beyond its last: columns QUERY, "0", "1", ...; None where any has more than that."""
        sizes = np.diff(self.level_starts)
        widest = int(sizes.max(initial=0))
        if widest > most:
            return None
        columns = {QUERY: self.query_ids}
        for place in range(widest):
            there = np.flatnonzero(place < sizes)
            levels = np.zeros(len(sizes), self.levels.dtype)
            levels[there] = self.levels[self.level_starts[there] + place]
            columns[str(place)] = pa.array(levels, mask=place >= sizes)
        return pa.table(columns)


def comparable(column: pa.Array | pa.ChunkedArray, convention: Convention) -> tuple[np.ndarray, np.ndarray]:
    """Scores as the convention compares them, int64 or float64, and where there is none."""
    score, absent = as_array("scores", column)
    if convention.scores is not None:
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, as everywhere
            score = score.astype(convention.scores)
    kind = np.int64 if score.dtype.kind in "iu" else np.float64
    return frozen(score, kind), frozen(np.zeros(len(score), bool) if absent is None else absent, bool)


@kernel
def count_levels(code: Any, score: Any, absent: Any, place: Any, starts: Any, levels: Any, below: Any, slots: Any) -> None:
    """Add rows to the counts: slots[2 j] of those with the score levels[j], slots[2 j + 1] of those above it and below the next level.

    below[code]: those of a query below all its levels. place[code]: the query among those with levels, or -1.
    """
    for i in range(code.shape[0]):
        if absent[i]:
            continue
        q = place[code[i]]
        first = starts[max(q, 0)]
        low, high = first, starts[q + 1] if q >= 0 else first
        while low < high:
            middle = (low + high) // 2
            if levels[middle] <= score[i]:
                low = middle + 1
            else:
                high = middle
        if low > first:
            slots[2 * (low - 1) + (levels[low - 1] < score[i])] += 1
        else:
            below[code[i]] += 1


@dataclass(frozen=True)
class RareJob:
    """What every process computes, in two steps: counts of the rows it holds, and metrics of all counts of some queries."""

    job: Job
    relevant: Relevant

    def evaluator(self) -> Evaluator:
        """An empty one."""
        return self.job.evaluator()

    def count_file(self, path: str) -> Iterator[pa.RecordBatch]:
        """Counts of the rows of a Parquet file."""
        columns = [self.job.query, self.job.score]
        return self.count(open_source(path, Roles(self.job.query, None, (self.job.score,))).batches(columns, LOT))

    def count(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Counts of rows of a query id and a score: columns QUERY, SLOT and ROWS."""
        of = self.relevant
        slots = np.zeros(2 * len(of.levels), np.int64)
        starts, levels = frozen(of.level_starts, np.int64), frozen(of.levels, of.levels.dtype)  # what has travelled can be written to
        for lot in _lots(batches):
            encoded = joined([decoded(batch.column(0)) for batch in lot]).dictionary_encode()
            ids = encoded.dictionary
            score, absent = comparable(pa.chunked_array([batch.column(1) for batch in lot]), plan_of(self.job).convention)
            below = np.zeros(len(ids), np.int64)
            count_levels(encoded.indices.to_numpy(), score, absent, self._places(ids), starts, levels, below, slots)
            yield _counts(ids.cast(of.query_ids.type), np.full(len(ids), BELOW), below)
        met = np.flatnonzero(slots)
        query = np.searchsorted(of.level_starts, met // 2, "right") - 1
        yield _counts(of.query_ids.take(query), met - 2 * of.level_starts[query], slots[met])

    def _places(self, ids: pa.Array) -> np.ndarray:
        """Of each id the place among the queries with documents that count, -1 where it is none of them."""
        of = self.relevant.query_ids
        return pc.index_in(ids.cast(of.type), value_set=of).fill_null(-1).to_numpy().astype(np.int64)

    def evaluate(self, batches: Iterator[pa.RecordBatch], rows_at_once: int = 1 << 20) -> Evaluator:
        """Evaluate counts of whole queries, sorted by query."""
        made = self.evaluator()
        for table in whole_queries(batches, rows_at_once):
            made.update_batch(self._batch(table))
        return made

    def _batch(self, table: pa.Table) -> QueryBatch:
        """The queries of a table of counts, with the documents that count."""
        of = self.relevant
        runs = pc.run_end_encode(joined([decoded(chunk) for chunk in table.column(QUERY).chunks]))
        query_ids = runs.values
        query = np.repeat(np.arange(len(query_ids)), np.diff(runs.run_ends.to_numpy(), prepend=0))
        slot, rows = (table.column(name).to_numpy() for name in (SLOT, ROWS))
        listed, inside = np.zeros(len(query_ids), np.int64), slot != BELOW
        np.add.at(listed, query, rows)
        place = self._places(query_ids)
        slots = np.zeros(2 * len(of.levels), np.int64)
        np.add.at(slots, 2 * of.level_starts[place[query[inside]]] + slot[inside], rows[inside])
        # Documents of the query in a level or gap before each, counted from the lowest.
        before = np.append(0, np.cumsum(slots))
        chosen = place[place >= 0]
        document = _ranges(of.starts[chosen], of.starts[chosen + 1])
        owner = np.repeat(np.flatnonzero(place >= 0), of.starts[chosen + 1] - of.starts[chosen])
        level, label = of.level[document], of.label[document]
        found = level >= 0
        mine, top = level[found], 2 * of.level_starts[place[owner[found]] + 1]
        scores = frozen(of.levels[mine], of.levels.dtype)

        def offsets(of_owner: np.ndarray) -> np.ndarray:
            return frozen(np.searchsorted(of_owner, np.arange(len(query_ids) + 1)), np.int64)

        first, together = before[top] - before[2 * mine + 1] + 1, slots[2 * mine]
        batch = QueryBatch(
            frozen(label[found], label.dtype),
            scores,
            frozen(np.append(0, np.cumsum(listed)), np.int64),
            found_scores=scores,
            found_offsets=offsets(owner[found]),
            found_ranks=(first, together),
            unretrieved_labels=frozen(label[~found], label.dtype),
            unretrieved_offsets=offsets(owner[~found]),
            query_ids=query_ids,
            smallest_label=of.extremes[0],
            largest_label=of.extremes[1],
            pooled=plan_of(self.job).convention.trec,
        )
        # Discounts are asked for no rank beyond the last document that counts, however long the list is.
        lowest, most = (first + together - 1).max(initial=0), np.diff(np.searchsorted(owner, np.arange(len(query_ids) + 1))).max(initial=0)
        batch.__dict__["longest"] = int(max(lowest, most))
        return batch


def _lots(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches, as many together as have LOT rows."""
    held: list[pa.RecordBatch] = []
    n_held = 0
    for batch in batches:
        held.append(batch)
        n_held += len(batch)
        if n_held >= LOT:
            yield held
            held, n_held = [], 0
    if n_held:
        yield held


def _counts(ids: pa.Array, slot: np.ndarray, rows: np.ndarray) -> pa.RecordBatch:
    return pa.record_batch([ids, pa.array(slot, pa.int64()), pa.array(rows, pa.int64())], names=[QUERY, SLOT, ROWS])


def _ranges(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The numbers from each first to before its last, one range after the other."""
    sizes = last - first
    ends = np.cumsum(sizes)
    return np.repeat(first - (ends - sizes), sizes) + np.arange(ends[-1] if len(ends) else 0)

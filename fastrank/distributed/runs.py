"""Judgements and a ranking that come as one sorted table: the part of `evaluate_run` that each process computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fastrank.convention import Convention, one_of
from fastrank.engine.evaluator import Evaluator
from fastrank.engine.runs import MISSING_RULES, join_distinct, notes_of_queries
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, Note
from fastrank.io.judgements import DUPLICATE_RULES, Qrels, Run

# What the columns are called between the two tables and the processes. `judged`: the row is of the judgements.
QUERY, DOC, LABEL, SCORE, JUDGED = "query_id", "doc_id", "label", "score", "judged"
# Counted on the way.
MISSING, UNJUDGED, JUDGED_QUERIES, DUPLICATES = "missing_query", "unjudged_query", "judged_query", "duplicates"


@dataclass(frozen=True)
class RunJob:
    """What every part computes: the rules of `fr.evaluate_run`, and the options of its `Evaluator`."""

    metrics: Any
    convention: str | Convention
    missing: str
    duplicates: str
    options: dict[str, Any]

    def evaluator(self) -> Evaluator:
        """An empty one."""
        one_of("missing", self.missing, MISSING_RULES)
        one_of("duplicates", self.duplicates, DUPLICATE_RULES)
        return Evaluator(self.metrics, self.convention, **self.options, threads=1)

    def evaluate(self, batches: Iterator[pa.RecordBatch], rows_at_once: int = 1 << 20) -> Evaluator:
        """Evaluate rows of both tables, sorted by query."""
        made = self.evaluator()
        for table in whole_queries(batches, rows_at_once):
            self._add(made, table)
        return made

    @property
    def query(self) -> str:
        """The column of query ids."""
        return QUERY

    def select(self, table: pa.Table) -> pa.Table:
        """The columns that are read."""
        return table.select([QUERY, DOC, LABEL, SCORE, JUDGED])

    def evaluate_rows(self, table: pa.Table) -> Evaluator:
        """Evaluate all rows of each of some queries, in any order."""
        return self.evaluate(iter(table.sort_by(QUERY).to_batches()))

    def _add(self, made: Evaluator, table: pa.Table) -> None:
        is_judged = table.column(JUDGED)
        qrels, run = (table.filter(side).drop_columns(other) for side, other in ((is_judged, SCORE), (pc.invert(is_judged), LABEL)))
        judged, ranked = pc.unique(qrels.column(QUERY)), pc.unique(run.column(QUERY))
        in_both = pc.sum(pc.is_in(ranked, judged)).as_py() or 0
        made.count(UNJUDGED, len(ranked) - in_both)
        made.count(JUDGED_QUERIES, len(judged))
        if not len(judged):
            return
        run = run.filter(pc.is_in(run.column(QUERY), judged))
        names = {"query": QUERY, "doc": DOC}
        judgements, ranking = Qrels.from_table(qrels, label=LABEL, **names), Run.from_table(run, score=SCORE, **names)
        rules = {"skip_missing": self.missing == "skip", "judged_only": made.judged_only}
        joined, notes = join_distinct(judgements, ranking, made.convention, self.duplicates, 1, **rules)
        made.count(MISSING, joined.n_missing)
        for note in notes:
            made.count(note.kind, note.count)
        made.update_batch(joined.batch)

    def result(self, merged: Evaluator) -> Evaluation:
        """The result of all parts, with the notes of `fr.evaluate_run`."""
        n_missing, n_unjudged, n_dropped = (merged.counted(kind) for kind in (MISSING, UNJUDGED, DUPLICATES))
        if n_unjudged and n_missing == merged.counted(JUDGED_QUERIES) > 0:
            raise InputError("no query is in both data frames, qrels and run. Check that they belong together.")
        merged.sort_queries()
        result = merged.result()
        notes = list(notes_of_queries(n_missing, n_unjudged, self.missing))
        if n_dropped:
            notes.append(Note(DUPLICATES, n_dropped, f"{n_dropped} rows dropped as duplicates; duplicates: {self.duplicates}."))
        result.notes = (*result.notes, *notes)
        return result


def whole_queries(batches: Iterator[pa.RecordBatch], rows_at_once: int) -> Iterator[pa.Table]:
    """Rows sorted by query as tables of about so many rows, cut between queries; a longer query is a table of its own."""
    held: list[pa.RecordBatch] = []
    n_held, enough = 0, rows_at_once
    for batch in batches:
        held.append(batch)
        n_held += len(batch)
        if n_held < enough:
            continue
        ids = held[-1].column(QUERY)
        table = pa.Table.from_batches(held)
        last = pc.index(table.column(QUERY), ids[-1]).as_py()
        if last == 0:
            enough = 2 * n_held  # looking again only when there is twice as much keeps the work linear
            continue
        yield table.slice(0, last)
        held = table.slice(last).to_batches()
        n_held, enough = n_held - last, rows_at_once
    if held:
        yield pa.Table.from_batches(held)

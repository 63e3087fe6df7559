"""Running a plan over a batch: rank, walk, and read the formulas, a block of queries at a time."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from fastrank._kernel import available_threads, map_blocks
from fastrank.arrays import frozen
from fastrank.evaluation import Bounds, Evaluation, Note
from fastrank.gains import Gain
from fastrank.metrics.base import threshold
from fastrank.metrics.view import View
from fastrank.ranking.standing import Judged, JudgedRanks, Scores, only_above, stand, without_unjudged

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch
    from fastrank.engine.plan import Plan
    from fastrank.metrics.base import Metric

# Documents ranked and walked in turn: what passes between the kernels stays in the second-level cache.
BLOCK = 262_144
# Queries in turn where documents do not matter: a few columns each, and the next block is Python's work, one thread at a time.
QUERIES = 131_072


class Run:
    """The values of one plan over one batch, block by block; blocks are independent and may run at once."""

    def __init__(self, plan: Plan, batch: QueryBatch, scores: np.ndarray | None) -> None:
        self.plan, self.batch, self.scores = plan, batch, scores
        self.n_queries = len(batch.offsets) - 1  # what the property would take a call to say
        shape = (len(plan.metrics), self.n_queries)
        # A metric a row: what a block writes, and what a mean reads, then lies together.
        self.columns = self.low = self.high = self.if_relevant = np.empty(shape)
        self.filled = None
        if plan.bounds:
            self.low, self.high, self.filled = np.empty(shape), np.empty(shape), with_unjudged_relevant(plan, batch)
            self.if_relevant = self.columns if self.filled is None else np.empty(shape)
        # Per block, for the notes: queries with ties, and per metric those with nothing to find.
        self.tied: list[int] = []
        self.nothing: list[tuple[int, ...]] = []

    def block(self, judged: Judged) -> None:
        """Compute the queries of one block."""
        n_tied, plan, columns = 0, self.plan, self.columns
        if judged.n_queries < self.n_queries:
            columns = columns[:, judged.first : judged.last]
        for group in plan.groups:
            ranks = None
            if self.scores is not None or group.judged_only:
                ranks = self._stand(judged, group.rule, group.judged_only, group.above)
                if ranks.n_tied > n_tied:  # max() takes twice the time
                    n_tied = ranks.n_tied
            view = View(judged, ranks, group.answers, plan.depth, judged.longest)
            for column in group.columns:
                self._settle(column, view, columns[column])
        if plan.bounds:
            self._bound(judged)
        kept = judged.kept
        nothing = kept.get("counts")
        if nothing is None:
            nothing = kept["counts"] = tuple([len(kept.get(("settled", column), ())) for column in range(len(plan.metrics))])
        self.tied.append(n_tied)
        self.nothing.append(nothing)

    def _stand(self, judged: Judged, rule: str, judged_only: bool, above: float | None, gain: Gain | None = None) -> JudgedRanks:
        scores = None if self.scores is None else self._scores_of(judged, self.scores)
        ranks = stand(judged, scores, rule, gain)
        if judged_only:
            ranks = without_unjudged(ranks)
        return ranks if above is None or scores is None else only_above(ranks, scores, above)

    def _scores_of(self, judged: Judged, scores: np.ndarray) -> Scores:
        batch = self.batch
        if batch.found_ranks is not None:
            listed = slice(judged.found_base, judged.found_base + judged.n_listed)
            first, together = batch.found_ranks
            return Scores(scores[listed], ranks=(first[listed], together[listed]))
        if judged.n_documents == len(scores):  # one block
            return Scores(scores, batch.doc_ids, batch.found_scores, batch.settle)
        rows = slice(judged.base, judged.base + judged.n_documents)
        doc_ids = None if batch.doc_ids is None else batch.doc_ids.rows(rows)
        found = None
        if batch.found_scores is not None:
            found = batch.found_scores[judged.found_base : judged.found_base + judged.n_listed]
        return Scores(scores[rows], doc_ids, found, batch.settle)

    def _settle(self, column: int, view: View, out: np.ndarray) -> None:
        """Write a metric of each query, the rule for queries with nothing to find applied."""
        metric, fill = self.plan.metrics[column], self.plan.fills[column]
        metric.write(view, out)
        if fill is not None:
            kept = view.judged.kept
            rows = kept.get(("settled", column))
            if rows is None:
                rows = kept["settled", column] = metric.nothing_to_find(view).nonzero()[0]
            if len(rows):
                out[rows] = fill

    def _bound(self, judged: Judged) -> None:
        """Least and greatest value over the orders of equal scores: every block at its worst and at its best."""
        views: dict[tuple[object, ...], View] = {}
        answers = {request: answer for group in self.plan.groups for request, answer in group.answers.items()}
        ends = np.empty((2, judged.n_queries))
        for column, metric in enumerate(self.plan.metrics):
            kind = (bool(metric.judged_only), getattr(metric, "above", None), metric.merit())
            for end, rule in zip(ends, ("worst", "best"), strict=True):
                if (rule, *kind) not in views:
                    views[rule, *kind] = View(judged, self._stand(judged, rule, *kind), answers, self.plan.depth, self.batch.longest)
                self._settle(column, views[rule, *kind], end)
            rows = slice(judged.first, judged.last)
            self.low[column, rows], self.high[column, rows] = np.fmin(*ends), np.fmax(*ends)
        if self.filled is not None:
            self._fill(Judged(self.filled, judged.first, judged.last, self.plan.least))

    def _fill(self, filled: Judged) -> None:
        """The values if all unjudged documents were relevant."""
        for group in self.plan.groups:
            ranks = self._stand(filled, group.rule, group.judged_only, group.above)
            view = View(filled, ranks, group.answers, self.plan.depth, self.batch.longest)
            for column in group.columns:
                self._settle(column, view, self.if_relevant[column, filled.first : filled.last])

    def _beyond_list(self, k: object) -> int:
        """Lists that are shorter than the cutoff. A list that `depth` cuts is as short as that."""
        if not isinstance(k, int):
            return 0
        if self.plan.depth is not None and self.plan.depth < k:
            return self.batch.n_queries
        return int(np.count_nonzero(np.diff(self.batch.offsets) < k))

    def totals(self) -> Counter[tuple[str, int]]:
        """What was counted on the way: (kind, column) -> number."""
        total: Counter[tuple[str, int]] = Counter()
        total["ties", 0] += sum(self.tied)
        for column, (metric, nothing) in enumerate(zip(self.plan.metrics, self.no_relevant(), strict=True)):
            total["no_relevant", column] += nothing
            total["k_beyond_list", column] += self._beyond_list(metric.k)
        total["regrouped", 0] += self.batch.regrouped
        total["one_query", 0] += int(self.batch.offsets[-1]) if self.batch.ungrouped else 0
        return total

    def no_relevant(self) -> tuple[int, ...]:
        """Per metric the queries with nothing to find."""
        if len(self.nothing) == 1:
            return self.nothing[0]
        return tuple(map(sum, zip(*self.nothing, strict=True))) or (0,) * len(self.plan.metrics)

    def result(self) -> Evaluation:
        """The evaluation of all blocks."""
        batch, plan = self.batch, self.plan
        return Evaluation(
            plan.metrics,
            plan.convention,
            values=self.columns.T,
            n_queries=self.n_queries,
            query_ids=batch.query_ids,
            weights=batch.weights,
            by=batch.by,
            names=plan.names,
            no_relevant=self.no_relevant(),
            notes=lambda: notes_of(plan, self.totals()),
            bounds=Bounds(self.low.T, self.high.T, self.if_relevant.T) if plan.bounds else None,
        )


def with_unjudged_relevant(plan: Plan, batch: QueryBatch) -> QueryBatch | None:
    """The batch with a label for every retrieved document; None where nothing is unjudged.

    It is the largest label of the query, and no smaller than what the metrics of the plan call relevant.
    """
    unjudged = np.isnan(batch.labels) if batch.labels.dtype.kind == "f" else np.zeros(0, bool)
    if not unjudged.any():
        return None
    least = max((threshold(rel) for metric in plan.metrics if (rel := getattr(metric, "rel", None)) is not None), default=1.0)
    top = np.full(batch.n_queries, max(least, 1.0))
    for labels, offsets in ((batch.labels, batch.offsets), (batch.unretrieved_labels, batch.unretrieved_offsets)):
        if labels is not None and offsets is not None:
            query = np.repeat(np.arange(batch.n_queries), np.diff(offsets))
            np.fmax.at(top, query, labels)
    labels = np.where(unjudged, np.repeat(top, np.diff(batch.offsets)), batch.labels)
    largest = max(batch.largest_label, float(top.max()))
    return dataclasses.replace(batch, labels=frozen(labels.astype(batch.labels.dtype), batch.labels.dtype), largest_label=largest)


def run_blocks(work: Run, threads: int | None) -> None:
    """Compute every block of a batch that the plan has checked."""
    batch, n_queries, least = work.batch, work.n_queries, work.plan.least
    # What costs time is the documents that are here.
    offsets = batch.offsets if batch.found_ranks is None or batch.found_offsets is None else batch.found_offsets
    n_documents = offsets.item(-1)
    if 0 < n_queries <= BLOCK - n_documents:  # one block for any number of threads
        work.block(Judged(batch, 0, n_queries, least))
        return

    def block(first: int, last: int) -> None:
        work.block(Judged(batch, first, last, least))

    size = threads or available_threads()
    # The fewer blocks the less Python, as long as every thread has some and what passes between kernels stays near. Without scores that
    # is a few columns a query and nothing of a document's size.
    each, most = (4, 2 * BLOCK) if work.scores is not None else (2, QUERIES * (n_documents // max(n_queries, 1)))
    documents = max(BLOCK, min(-(-(n_documents + n_queries) // (each * size)), most))
    map_blocks(block, offsets, documents=documents, threads=threads)


def run(plan: Plan, batch: QueryBatch, threads: int | None) -> Evaluation:
    """Evaluate a whole batch."""
    plan.check(batch)
    work = Run(plan, batch, batch.scores)
    run_blocks(work, threads)
    return work.result()


def notes_of(plan: Plan, total: Counter[tuple[str, int]]) -> tuple[Note, ...]:
    """What a reader of the numbers must know, as records with counts."""
    notes = []

    def note(kind: str, count: int, message: str) -> None:
        if count:
            notes.append(Note(kind, count, message))

    def most(kind: str) -> tuple[int, Metric]:
        column = max(range(len(plan.metrics)), key=lambda column: total[kind, column])
        return total[kind, column], plan.metrics[column]

    n_tied = total["ties", 0]
    rules = " and ".join(dict.fromkeys(group.rule for group in plan.groups))
    note("ties", n_tied, f"{_plural(n_tied, 'query has', 'queries have')} equal scores at documents that count; ties: {rules}.")
    count, metric = most("no_relevant")
    rule = getattr(metric, "no_relevant", None)
    note("no_relevant", count, f"{_plural(count, 'query has', 'queries have')} nothing to find; {metric.short_name} there: {rule}.")
    count, metric = most("k_beyond_list")
    note("k_beyond_list", count, f"{_plural(count, 'list is', 'lists are')} shorter than the cutoff of {metric.short_name}.")
    count = total["regrouped", 0]
    note("regrouped", count, f"{_plural(count, 'query', 'queries')} had rows apart; queries come out sorted by id.")
    count = total["one_query", 0]
    note("one_query", 1 if count else 0, f"all {count} documents were taken as one query; for more give offsets=, sizes= or query_ids=.")
    return tuple(notes)


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"

"""Running a plan over a batch: rank, walk, and read the formulas, a block of queries at a time."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from fastrank._kernel import map_blocks
from fastrank.evaluation import Bounds, Evaluation, Note
from fastrank.gains import Gain
from fastrank.metrics.base import Metric
from fastrank.metrics.view import View
from fastrank.ranking.standing import Judged, JudgedRanks, stand

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch
    from fastrank.engine.plan import Plan, TieGroup

# Documents ranked and walked in turn: what passes between the kernels stays in the second-level cache.
BLOCK = 262_144

_FILL = {"zero": 0.0, "one": 1.0, "nan": np.nan, "skip": np.nan}


class Run:
    """The values of one plan over one batch, block by block; blocks are independent and may run at once."""

    def __init__(self, plan: Plan, batch: QueryBatch, scores: np.ndarray | None) -> None:
        self.plan, self.batch, self.scores = plan, batch, scores
        shape = (batch.n_queries, len(plan.metrics))
        self.values = np.empty(shape)
        self.low, self.high = (np.empty(shape), np.empty(shape)) if plan.bounds else (self.values, self.values)
        self.counts: list[Counter[tuple[str, int]]] = []

    def block(self, judged: Judged) -> None:
        """Compute the queries of one block."""
        counts: Counter[tuple[str, int]] = Counter()
        for group in self.plan.groups:
            ranks = self._stand(judged, group.rule)
            counts["ties", 0] = max(counts["ties", 0], ranks.n_tied)
            self._fill(judged, ranks, group, counts)
        self._count_cutoffs(judged, counts)
        if self.plan.bounds:
            self._bound(judged)
        self.counts.append(counts)

    def _stand(self, judged: Judged, rule: str, gain: Gain | None = None) -> JudgedRanks:
        rows = slice(judged.base, judged.base + judged.n_documents)
        doc_ids = self.batch.doc_ids
        scores = None if self.scores is None else self.scores[rows]
        return stand(judged, scores, rule, doc_ids=None if doc_ids is None else doc_ids.rows(rows), gain=gain)

    def _fill(self, judged: Judged, ranks: JudgedRanks, group: TieGroup, counts: Counter[tuple[str, int]]) -> None:
        view = View(ranks, group.answers, self.plan.depth, self.batch.longest)
        out = self.values[judged.first : judged.last]
        for column in group.columns:
            metric = self.plan.metrics[column]
            out[:, column], n_nothing = value_of(metric, view)
            counts["no_relevant", column] += n_nothing

    def _bound(self, judged: Judged) -> None:
        """Least and greatest value over the orders of equal scores: every block at its worst and at its best."""
        views: dict[tuple[str, object], View] = {}
        answers = {request: answer for group in self.plan.groups for request, answer in group.answers.items()}
        for column, metric in enumerate(self.plan.metrics):
            gain = metric.merit()
            ends = []
            for rule in ("worst", "best"):
                if (rule, gain) not in views:
                    views[rule, gain] = View(self._stand(judged, rule, gain), answers, self.plan.depth, self.batch.longest)
                ends.append(value_of(metric, views[rule, gain])[0])
            rows = slice(judged.first, judged.last)
            self.low[rows, column], self.high[rows, column] = np.fmin(*ends), np.fmax(*ends)

    def _count_cutoffs(self, judged: Judged, counts: Counter[tuple[str, int]]) -> None:
        sizes = judged.list_size if self.plan.depth is None else np.minimum(judged.list_size, self.plan.depth)
        for column, metric in enumerate(self.plan.metrics):
            if metric.k is not None and not isinstance(metric.k, Fraction):
                counts["k_beyond_list", column] += int(np.count_nonzero(sizes < metric.k))

    def totals(self) -> Counter[tuple[str, int]]:
        """What was counted on the way: (kind, column) -> number."""
        total: Counter[tuple[str, int]] = Counter()
        for counts in self.counts:
            total.update(counts)
        total["regrouped", 0] += self.batch.regrouped
        total["one_query", 0] += int(self.batch.offsets[-1]) if self.batch.ungrouped else 0
        return total

    def result(self) -> Evaluation:
        """The evaluation of all blocks."""
        batch, plan, total = self.batch, self.plan, self.totals()
        return Evaluation(
            plan.metrics,
            plan.convention,
            values=self.values,
            n_queries=batch.n_queries,
            query_ids=batch.query_ids,
            weights=batch.weights,
            by=batch.by,
            no_relevant=tuple(total["no_relevant", column] for column in range(len(plan.metrics))),
            notes=notes_of(plan, self.totals()),
            bounds=Bounds(self.low, self.high) if plan.bounds else None,
        )


def value_of(metric: Metric, view: View) -> tuple[np.ndarray, int]:
    """A metric of each query, its rule for queries with nothing to find applied, and how many those are."""
    values = metric.values(view)
    if not metric.has_no_relevant_rule():
        return values, 0
    nothing = metric.nothing_to_find(view)
    n_nothing = int(np.count_nonzero(nothing))
    if n_nothing:
        values = np.where(nothing, _FILL[getattr(metric, "no_relevant")], values)  # noqa: B009  (families with the rule have it)
    return values, n_nothing


def run_blocks(work: Run, threads: int | None) -> None:
    """Compute every block of a batch that the plan has checked."""

    def block(first: int, last: int) -> None:
        work.block(Judged(work.batch, first, last, work.plan.least))

    map_blocks(block, work.batch.offsets, documents=BLOCK, threads=threads)


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

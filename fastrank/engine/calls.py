"""`evaluate` and `LabelledQueries`: metrics of arrays in one call, or of one set of labels under scores that change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import available_threads, map_blocks, query_blocks
from fastrank.arrays import as_array
from fastrank.batch import check_scores, make_batch
from fastrank.convention import Convention, as_convention
from fastrank.engine.plan import Plan, make_plan
from fastrank.engine.run import BLOCK, Run, run
from fastrank.errors import InputError
from fastrank.metrics.base import Metric
from fastrank.ranking.standing import Judged

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation

DEFAULT_METRICS = ("nDCG@10", "RR", "AP")

Metrics = str | Metric | Iterable[str | Metric]


def evaluate(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    metrics: Metrics = DEFAULT_METRICS,
    sizes: Any = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    weights: Any = None,
    by: Any = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    bounds: bool = False,
    threads: int | None = None,
) -> Evaluation:
    """Judge the rankings of many queries by several metrics at once.

    Parameters
    ----------
    labels
        Graded relevance, any numeric dtype: flat, or two-dimensional with a query a row. Masked or null: unjudged.
    scores
        The same shape; higher ranks first. None: labels already stand in rank order. Masked or null: judged, but not retrieved.
    offsets, sizes, query_ids
        At most one: where each query begins (n_queries + 1 numbers, the first 0), how many documents it has, or the query of each
        document. Without one, flat labels are one query. Rows of a query that are not together are brought together.
    metrics
        Names or metrics, such as ``"nDCG@10,RR"`` or ``[fr.metrics.nDCG(k=10)]``.
    doc_ids
        One per document; needed for ``ties="docid"``, and checked for duplicates within a query.
    weights, by
        One per query (or per document, constant within a query): the weight in the mean; slices, an array or ``{name: array}``.
    convention
        What the names leave open: ``fr.conventions``.
    ties, no_relevant
        Override the convention: the order of equal scores; the value of a query with nothing to find.
    depth
        Cut every ranking to its first `depth` documents.
    judged_only
        Leave unjudged documents out of the rankings.
    bounds
        Keep, per query, the least and the greatest value over the orders of equal scores.
    threads
        None: every processor. The result has the same bits for any number.

    Returns
    -------
    Evaluation
        values, float64[n_queries, n_metrics], with means, intervals, slices and notes.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> result = fr.evaluate([3, 2, 0, 1, 2, 0, 1], offsets=[0, 5, 7], metrics="nDCG@5,RR")
    >>> {name: round(mean, 4) for name, mean in result.mean().items()}
    {'nDCG@5': 0.7998, 'RR': 0.75}
    """
    threads = check_threads(threads)
    plan = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant, depth=depth, judged_only=judged_only, bounds=bounds)
    batch = make_batch(
        labels,
        scores,
        offsets,
        sizes=sizes,
        query_ids=query_ids,
        doc_ids=doc_ids,
        weights=weights,
        by=by,
        convention=plan.convention,
        judged_only=judged_only,
        threads=threads,
    )
    return run(plan, batch, threads)


def check_threads(threads: int | None) -> int | None:
    """None, or a whole number from 1 up."""
    if threads is None:
        return None
    given: object = threads
    if isinstance(given, int | np.integer) and not isinstance(given, bool) and given >= 1:
        return int(given)
    raise InputError(f"threads must be a whole number from 1 up, or None for all {available_threads()} processors, not {threads!r}.")


class LabelledQueries:
    """Labels that stay while scores change: what depends on the labels alone is kept between calls.

    The fast path of a training loop. Which documents count, the ideal rankings and the numbers of relevant documents are found at the
    first `evaluate` and reused as long as the metrics look at the same labels.

    Parameters: as `evaluate`; rows of one query must stand together.

    >>> import fastrank as fr
    >>> queries = fr.LabelledQueries([1, 0, 0, 2], [0, 2, 4])
    >>> queries.evaluate([0.1, 0.9, 0.3, 0.7], metrics="RR").mean()
    {'RR': 0.75}
    >>> queries.evaluate([0.9, 0.1, 0.3, 0.7], metrics="RR").mean()
    {'RR': 1.0}
    """

    def __init__(
        self,
        labels: Any,
        offsets: Any = None,
        *,
        sizes: Any = None,
        query_ids: Any = None,
        doc_ids: Any = None,
        weights: Any = None,
        by: Any = None,
        convention: str | Convention = "fastrank",
    ) -> None:
        self.convention = as_convention(convention)
        given: dict[str, Any] = {"sizes": sizes, "query_ids": query_ids, "doc_ids": doc_ids, "weights": weights, "by": by}
        self._batch = make_batch(labels, None, offsets, **given, convention=self.convention)
        if self._batch.regrouped:
            raise InputError("query_ids: the rows of a query must stand together here, as scores come in the same order. Sort by query.")
        self._named = convention  # a name is found faster among the plans made before than a whole convention
        self._kept: dict[Plan, list[Judged]] = {}

    def __repr__(self) -> str:
        return f"LabelledQueries({self.n_queries} queries, {int(self._batch.offsets[-1])} documents)"

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return self._batch.n_queries

    def evaluate(
        self,
        scores: Any,
        *,
        metrics: Metrics = DEFAULT_METRICS,
        ties: str | None = None,
        no_relevant: str | None = None,
        depth: int | None = None,
        bounds: bool = False,
        threads: int | None = None,
    ) -> Evaluation:
        """Judge these labels under new scores, one per document in the order of the labels. Options and errors as `fr.evaluate`."""
        threads = threads if threads is None else check_threads(threads)
        plan = make_plan(metrics, self._named, ties=ties, no_relevant=no_relevant, depth=depth, bounds=bounds)
        score, absent = as_array("scores", scores, ordinal=self.convention.scores is None)
        if absent is not None:
            raise InputError("scores must not be null here: LabelledQueries keeps one list of documents. Use evaluate().")
        blocks = self._kept.get(plan) or self._blocks(plan)
        work = Run(plan, self._batch, check_scores(self._batch, score, plan.convention, threads))
        if len(blocks) == 1:
            work.block(blocks[0])
            return work.result()

        def compute(first: int, last: int) -> None:
            for judged in blocks[first:last]:
                work.block(judged)

        map_blocks(compute, np.arange(len(blocks) + 1), documents=1, threads=threads)
        return work.result()

    def _blocks(self, plan: Plan) -> list[Judged]:
        """What the labels say under a plan, found at its first use."""
        plan.check(self._batch)
        blocks = [Judged(self._batch, first, last, plan.least) for first, last in query_blocks(self._batch.offsets, BLOCK)]
        return self._kept.setdefault(plan, blocks)

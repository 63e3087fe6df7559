"""`evaluate_ids`: metrics of ranked ids without scores, as recommenders and nearest-neighbour indexes return them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fastrank.convention import Convention, one_of
from fastrank.engine.calls import Metrics, check_threads
from fastrank.engine.plan import make_plan
from fastrank.engine.run import run as run_plan
from fastrank.engine.runs import MISSING_RULES, join_distinct, notes_of_queries
from fastrank.errors import InputError
from fastrank.io.id_lists import IdLists, pair_up, read_lists
from fastrank.io.judgements import DUPLICATE_RULES, Qrels
from fastrank.metrics.base import Metric, as_cutoff
from fastrank.metrics.grammar import parse_metrics

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation

Cutoffs = int | float | str | Iterable[int | float | str]

# With k= at that cutoff.
FAMILIES = ("nDCG", "RR", "AP")
DEFAULT = ("nDCG@10", "RR", "AP")


def evaluate_ids(
    retrieved: Any,
    relevant: Any,
    metrics: Metrics | None = None,
    *,
    k: Cutoffs | None = None,
    convention: str | Convention = "fastrank",
    missing: str = "zero",
    depth: int | None = None,
    duplicates: str = "error",
    judged_only: bool = False,
    no_relevant: str | None = None,
    threads: int | None = None,
) -> Evaluation:
    """Judge ranked ids, best first, against the ids that are relevant.

    Parameters
    ----------
    retrieved
        The ids of each query in rank order: a dict ``{query: ids}``, a list of lists, an id matrix of shape [n_queries, width] (NumPy,
        masked, a tensor, a data frame), a list column (Arrow, polars), or flat ids with offsets, as a tuple ``(ids, offsets)``. Ids are
        integers, text or bytes, compared by value. An integer -1, None, NA or a masked place is padding: no document.
    relevant
        The same, with sets and dicts ``{id: label}`` besides; or `fr.Qrels`. An id without a label has the label 1; every other
        document is unjudged. Queries are matched by their ids where both sides are dicts (or qrels), and by place otherwise.
    metrics
        Names or metrics, such as ``"R@10,RR"``. By default nDCG, RR and AP at k, or without k nDCG@10, RR and AP.
    k
        The cutoff, or several, of metrics that are named without one (those that judge whole lists stay as they are).
    convention
        What the names leave open. There are no scores and so no ties: the order is the one given.
    missing
        A query of `relevant` that is not in `retrieved`: "zero" counts it, as an empty list; "skip" leaves it out.
    duplicates
        An id that stands twice in one list: "error", or keep the "first", the "last" or that of the greatest label ("max"; of what was
        retrieved the first). Applied before any cut.
    depth, judged_only, no_relevant, threads
        As `evaluate_run`.

    Returns
    -------
    Evaluation
        A value per query and metric, in the order of `relevant`. Queries of `retrieved` that are not there are left out. The notes count
        all of these.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> fr.evaluate_ids({"u1": ["a", "b", "c"], "u2": ["b", "d"]}, {"u1": {"b", "x"}, "u2": {"b": 3, "d": 1}}, "R,RR", k=2).mean()
    {'R@2': 0.75, 'RR@2': 0.75}
    >>> neighbours = [[4, 1, 7], [5, -1, -1]]  # -1: fewer were found
    >>> fr.evaluate_ids(neighbours, [[1, 4], [2, 5]], "R@3").mean()
    {'R@3': 0.75}
    """
    threads = check_threads(threads)
    one_of("missing", missing, MISSING_RULES)
    one_of("duplicates", duplicates, DUPLICATE_RULES)
    asked = (DEFAULT if k is None else FAMILIES) if metrics is None else metrics
    cut = asked if k is None else _with_cutoffs(asked, k)
    plan = make_plan(cut, convention, no_relevant=no_relevant, depth=depth, judged_only=judged_only)
    lists = read_lists("retrieved", retrieved, ranked=True)
    found = relevant if isinstance(relevant, Qrels) else read_lists("relevant", relevant, ranked=False)
    _check_alike(lists, found)
    judged, ranked = pair_up(lists, found)
    rules = {"skip_missing": missing == "skip", "judged_only": judged_only}
    joined, notes = join_distinct(judged, ranked, plan.convention, duplicates, threads, **rules)
    query_ids = None if lists.query_ids is None else joined.batch.query_ids
    result = run_plan(plan, replace(joined.batch, scores=None, query_ids=query_ids), threads)
    result.notes = (*result.notes, *notes_of_queries(joined.n_missing, joined.n_unjudged, missing), *notes)
    return result


def _with_cutoffs(metrics: Metrics, k: Cutoffs) -> list[Metric]:
    """Each metric at each cutoff, unless it has one or takes none."""
    listed = [k] if isinstance(k, int | float | str) or not hasattr(k, "__iter__") else k
    cutoffs = [as_cutoff("k", cutoff) for cutoff in listed]
    cut = []
    for metric in parse_metrics(metrics):
        if metric.k is not None or metric.whole_list_only or metric.at != "k":
            cut.append(metric)
        else:
            cut += [replace(metric, k=cutoff, spelled=(*(metric.spelled or ()), "k")) for cutoff in cutoffs]
    return cut


def _check_alike(retrieved: IdLists, relevant: IdLists | Qrels) -> None:
    """Both sides name their queries, or neither does and they have as many."""
    is_named = retrieved.query_ids is not None
    if is_named != (relevant.query_ids is not None):
        named, other = ("retrieved", "relevant") if is_named else ("relevant", "retrieved")
        raise InputError(f"{named} names its queries and {other} does not: give both by query id, as dicts, or both by place.")
    if not is_named and len(retrieved) != len(relevant):
        raise InputError(f"retrieved has {len(retrieved)} queries and relevant {len(relevant)}: give one list a query in both.")

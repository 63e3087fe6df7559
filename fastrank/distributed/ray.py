"""Evaluation of Ray Data datasets: tasks evaluate the queries of each block, the driver merges exact sums.

How the rows reach the tasks is a plan, found out while blocks are evaluated and said in the result's notes:

in place  queries follow one another, cut into blocks anywhere, or each stands in one block: blocks are evaluated as they come, and the
          few queries that stand over the edges of blocks are joined by the driver
shuffle   anything else, which the first two blocks mostly tell: one ``sort`` by a hash of the query id, then block by block
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fastrank.convention import Convention, one_of
from fastrank.distributed.blocks import KEY, Gathered, Work, evaluate_block, one_side, query_values, with_keys
from fastrank.distributed.parts import Job
from fastrank.distributed.runs import DOC, JUDGED, LABEL, QUERY, SCORE, RunJob
from fastrank.engine.calls import DEFAULT_METRICS, Metrics
from fastrank.errors import InputError
from fastrank.evaluation import Note
from fastrank.io.arrow import value_type
from fastrank.io.roles import columns_named

if TYPE_CHECKING:
    from ray.data import Dataset

    from fastrank.evaluation import Evaluation

IN_PLACE = "in place: blocks are evaluated as they come, and the queries over their edges joined"


def evaluate(
    ds: Dataset,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    doc: str | None = None,
    weight: str | None = None,
    by: str | Sequence[str] | None = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    per_query: bool = False,
    n_resamples: int = 0,
    seed: int = 0,
    explain: bool = False,
) -> Evaluation:
    """Judge the rankings in a Ray dataset: one row per document, in blocks cut in any way.

    The result has the bits of `fr.evaluate_table` on the same rows, for every number of blocks and every order of rows.

    Parameters
    ----------
    ds
        A dataset of Ray Data. It is executed once, as a stream, where queries follow one another; where their rows are scattered over
        blocks its first blocks are computed twice. Costly steps before this one are best kept by ``ds.materialize()``.
    query, label, score, doc, weight, by
        Names of columns, as in `fr.evaluate_table`.
    per_query
        True: bring the values of single queries to the driver, sorted by id. For more queries than it has memory for use
        `evaluate_queries`.
    n_resamples, seed
        Resamples of a Poisson bootstrap, for ``summary(method="poisson")``: see `fr.Evaluator`.
    explain
        Write the plan to standard output before anything is evaluated, and again where another one is taken.
    metrics, convention, ties, no_relevant, depth, judged_only
        As `fr.evaluate`.

    Errors: `InputError`, one line. fastrank must be installed where the tasks run. What Ray itself has to say it says in its own way.
    """
    _check_dataset("ds", ds)
    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only}
    options |= {"per_query": per_query, "n_resamples": n_resamples, "seed": seed}
    slices = tuple(columns_named("by", () if by is None else by))
    job = Job(query, label, score, doc, weight, slices, metrics, convention, options)
    job.evaluator()  # what is wrong with the options is said before Ray starts anything
    rows = _columns(ds, job)
    plan = IN_PLACE
    _tell(plan, explain)
    gathered, why_not = _gathered(rows, job)
    if why_not is not None:
        plan = f'shuffle: one sort by a hash of "{query}" ({why_not})'
        _tell(plan, explain)
        gathered = _of_whole_blocks(rows, job)
    result = gathered.merged().result()
    result.notes = (*result.notes, Note("plan", len(gathered), f"evaluated by Ray in {len(gathered)} blocks, plan {plan}."))
    return result


def evaluate_queries(
    ds: Dataset,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    label: str = "label",
    score: str = "score",
    doc: str | None = None,
    convention: str | Convention = "fastrank",
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
) -> Dataset:
    """The value of every query as a Ray dataset, computed when Ray needs it: the query id, then a double per metric.

    Parameters: as `evaluate`. Columns bear the keys of ``result.mean()``; rows come in no order.

    Errors: those of the options are `InputError`; what is wrong with rows fails the Ray task that meets it, with the same line.
    """
    _check_dataset("ds", ds)
    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only, "per_query": True}
    job = Job(query, label, score, doc, None, (), metrics, convention, options)
    job.evaluator()
    return _sorted(_columns(ds, job), job).map_batches(query_values, fn_kwargs={"job": job}, batch_size=None, batch_format="pyarrow")


def evaluate_run(
    qrels: Dataset,
    run: Dataset,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    query: str = "query_id",
    doc: str = "doc_id",
    label: str = "label",
    score: str = "score",
    convention: str | Convention = "trec_eval",
    missing: str = "zero",
    depth: int | None = None,
    duplicates: str = "error",
    judged_only: bool = False,
    ties: str | None = None,
    no_relevant: str | None = None,
    per_query: bool = False,
) -> Evaluation:
    """Judge the ranking of one system against judgements, both Ray datasets, matched by query and document id.

    Both are brought together by query in one sort, and matched by tasks under the rules of `fr.evaluate_run`, whose bits the result has.
    Queries come sorted by id.

    Parameters
    ----------
    qrels, run
        Datasets with columns `query` and `doc`, and `label` or `score`. Ids of different types are compared by their text.
    duplicates
        "error", or "max": rows have no order in Ray, so "first" and "last" mean nothing.
    per_query
        True: bring the values of single queries to the driver.
    metrics, convention, missing, depth, judged_only, ties, no_relevant
        As `fr.evaluate_run`.

    Errors: `InputError`, one line.
    """
    one_of("duplicates", duplicates, ("error", "max"))
    options = {"ties": ties, "no_relevant": no_relevant, "depth": depth, "judged_only": judged_only, "per_query": per_query}
    job = RunJob(metrics, convention, missing, duplicates, options)
    job.evaluator()  # what is wrong with the options is said before Ray starts anything
    judged = _types("qrels", qrels, {QUERY: query, DOC: doc, LABEL: label})
    ranked = _types("run", run, {QUERY: query, DOC: doc, SCORE: score})
    of_ids = {name: judged[name] if judged[name] == ranked[name] else pa.string() for name in (QUERY, DOC)}
    schema = pa.schema([*of_ids.items(), (LABEL, judged[LABEL]), (SCORE, ranked[SCORE]), (JUDGED, pa.bool_())])
    sides = []
    for ds, names in ((qrels, {QUERY: query, DOC: doc, LABEL: label}), (run, {QUERY: query, DOC: doc, SCORE: score})):
        kwargs = {"names": names, "schema": schema}
        rows = ds.select_columns(list(dict.fromkeys(names.values())))
        sides.append(rows.map_batches(one_side, fn_kwargs=kwargs, batch_size=None, batch_format="pyarrow"))
    return job.result(_of_whole_blocks(sides[0].union(sides[1]), job).merged())


# --- rows -----------------------------------------------------------------------------------------------------------------------


def _check_dataset(role: str, given: Any) -> None:
    try:
        from ray.data import Dataset
    except ImportError:
        needs = "fastrank.distributed.ray needs Ray Data, which is not installed: pip install 'fastrank-metrics[ray]'."
        raise InputError(needs) from None
    if not isinstance(given, Dataset):
        kind = f"{type(given).__module__}.{type(given).__qualname__}"
        raise InputError(f"{role} must be a ray.data.Dataset, not {kind}: ray.data.from_arrow or ray.data.read_parquet makes one.")


def _columns(ds: Dataset, job: Job) -> Dataset:
    """The columns that are asked for, so that files are read no further. What computed blocks hold is not known before they are there."""
    schema = ds.schema(fetch_if_missing=False)
    if schema is None:
        return ds
    job.roles.check_names(schema.names, "the dataset")
    return ds.select_columns(job.columns)


def _types(role: str, ds: Dataset, names: dict[str, str]) -> dict[str, pa.DataType]:
    """The type of each column that is asked for, without dictionaries."""
    _check_dataset(role, ds)
    schema = ds.schema()
    if schema is None:
        raise InputError(f"{role} is a dataset without blocks, so its columns are not known: make it of an empty table that has them.")
    for name in names.values():
        if schema.names.count(name) != 1:
            known = ", ".join(f'"{column}"' for column in schema.names[:8])
            raise InputError(f'"{name}" is {schema.names.count(name)} columns of {role}, not one; its columns are {known}.')
    types = dict(zip(schema.names, schema.types, strict=True))
    return {column: value_type(types[name]) for column, name in names.items()}


# --- blocks ---------------------------------------------------------------------------------------------------------------------


def _tell(plan: str, explain: bool) -> None:
    if explain:
        sys.stdout.write(f"{plan}.\n")


def _sorted(rows: Dataset, work: Work) -> Dataset:
    """Rows and keys, those of a query in one block, one after the other. Ray spills to disk what the object store cannot hold."""
    keyed = rows.map_batches(functools.partial(with_keys, work=work), batch_size=None, batch_format="pyarrow")
    return keyed.sort(KEY)


def _of_whole_blocks(rows: Dataset, work: Work) -> Gathered:
    gathered, why_not = _gathered(_sorted(rows, work), work, is_whole=True)
    if why_not is not None:
        raise InputError(f"Ray's sort left rows of a query apart ({why_not}): this version of Ray Data cannot be used.")
    return gathered


def _gathered(rows: Dataset, work: Work, *, is_whole: bool = False) -> tuple[Gathered, str | None]:
    """What all blocks gave; or why they cannot be evaluated as they are, as soon as that is known: no further blocks are computed."""
    gathered = Gathered(work)
    for row in _each(
        rows.map_batches(functools.partial(evaluate_block, work=work, is_whole=is_whole), batch_size=None, batch_format="pyarrow")
    ):
        why_not = gathered.add(row)
        if why_not is not None:
            return gathered, why_not
    return gathered, gathered.split()


def _each(parts: Dataset) -> Iterator[dict[str, Any]]:
    with contextlib.closing(iter(parts.iter_batches(batch_size=None, batch_format="pyarrow"))) as batches:
        for batch in batches:
            yield from batch.to_pylist()

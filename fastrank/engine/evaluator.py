"""`Evaluator`: metrics of a stream. Batches in any order, merged in any tree, give the bits of one call."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank.batch import QueryBatch, make_batch
from fastrank.convention import Convention
from fastrank.engine.calls import DEFAULT_METRICS, Metrics, check_threads
from fastrank.engine.plan import make_plan
from fastrank.engine.run import Run, notes_of, run_blocks
from fastrank.errors import InputError
from fastrank.evaluation import Bounds, Evaluation, SliceMoments, merge_slices, moments_by_metric, moments_by_slice
from fastrank.metrics.grammar import parse_metric
from fastrank.replicates import Replicates, check_resamples, check_seed
from fastrank.statistics import Moments

if TYPE_CHECKING:
    import pyarrow as pa


# Written into every serialised evaluator; a reader refuses what it does not know.
FORMAT = 2

_SIDES = ("low", "high", "if_relevant")


class _Part(NamedTuple):
    """The per-query results of one batch."""

    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    if_relevant: np.ndarray
    query_ids: pa.Array | None
    weights: np.ndarray | None
    by: dict[str, pa.Array]

    def shape(self) -> tuple[bool, bool, tuple[str, ...]]:
        """What every batch of a stream must have alike: query ids, weights, and the names of slices."""
        return self.query_ids is not None, self.weights is not None, tuple(self.by)


class Evaluator:
    """Collects batches of whole queries and sums them exactly.

    Means, variances and intervals have the same bits for every split into batches, every order and every tree of merges. Per-query
    values are kept in the order of the updates; with ``per_query=False`` memory stays constant.

    Parameters: `metrics`, `convention` and the other options as `fr.evaluate`, and

    n_resamples, seed
        Resamples of a Poisson bootstrap to keep sums of, 0 (none) or from 100 to 10,000: ``result().summary(method="poisson")`` has the
        intervals, without the values of single queries. A query counts in a resample by its id and the seed alone, so every split and
        tree of merges gives the same bits. Batches must have query ids. A query takes about 2 ns for each metric and resample.

    >>> import fastrank as fr
    >>> one, two = fr.Evaluator("RR"), fr.Evaluator("RR")
    >>> one.update([0, 1, 0], offsets=[0, 3])
    >>> two.update([1, 0, 0], offsets=[0, 3])
    >>> one.merge(two)
    >>> one.result().mean()
    {'RR': 0.75}
    """

    def __init__(
        self,
        metrics: Metrics = DEFAULT_METRICS,
        convention: str | Convention = "fastrank",
        *,
        ties: str | None = None,
        no_relevant: str | None = None,
        depth: int | None = None,
        judged_only: bool = False,
        bounds: bool = False,
        per_query: bool = True,
        n_resamples: int = 0,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self._plan = make_plan(
            metrics, convention, ties=ties, no_relevant=no_relevant, depth=depth, judged_only=judged_only, bounds=bounds and per_query
        )
        self.metrics, self.convention = self._plan.metrics, self._plan.convention
        self.judged_only, self.per_query = judged_only, per_query
        self.n_resamples, self.seed = check_resamples(n_resamples), check_seed(seed)
        self._threads = check_threads(threads)
        self.n_queries = 0
        self._moments = tuple(Moments() for _ in self.metrics)
        self._slices: SliceMoments = {}
        self._counts: Counter[tuple[str, int]] = Counter()
        self._parts: list[_Part] = []
        self._replicates = Replicates.empty(len(self.metrics), self.n_resamples)

    def __repr__(self) -> str:
        names = ", ".join(metric.short_name for metric in self.metrics)
        return f"Evaluator({names}; {self.n_queries} queries so far)"

    def update(
        self,
        labels: Any,
        scores: Any = None,
        offsets: Any = None,
        *,
        sizes: Any = None,
        query_ids: Any = None,
        doc_ids: Any = None,
        weights: Any = None,
        by: Any = None,
    ) -> None:
        """Add whole queries, given as to `fr.evaluate`. On an error nothing is added."""
        given: dict[str, Any] = {"sizes": sizes, "query_ids": query_ids, "doc_ids": doc_ids, "weights": weights, "by": by}
        convention, judged_only = self._plan.convention, self._plan.judged_only
        self.update_batch(make_batch(labels, scores, offsets, **given, convention=convention, judged_only=judged_only))

    def update_batch(self, batch: QueryBatch) -> None:
        """Add a batch that has passed the boundary."""
        self._plan.check(batch)
        if self.n_resamples and batch.query_ids is None:
            raise InputError("n_resamples= draws each query by its id, and this batch has none: give query_ids=.")
        work = Run(self._plan, batch, batch.scores)
        run_blocks(work, self._threads)
        moments = moments_by_metric(self.metrics, work.columns.T, batch.weights)
        slices = moments_by_slice(self.metrics, work.columns.T, batch.weights, batch.by) if batch.by else {}
        sides = work.columns.T, work.low.T, work.high.T, work.if_relevant.T
        part = _Part(*sides, batch.query_ids, batch.weights, dict(batch.by or {}))
        self._check_alike([part])
        self._add(batch.n_queries, moments, slices, work.totals(), [part] if self.per_query else [])
        if self.n_resamples:
            from fastrank.io.keys import query_keys

            keys, values = query_keys(batch.query_ids), np.ascontiguousarray(work.columns.T)
            self._replicates += Replicates.of(keys, values, batch.weights, self.n_resamples, self.seed, self._threads)

    def merge(self, other: Evaluator) -> None:
        """Add what another evaluator of the same metrics and convention has collected."""
        if not isinstance(other, Evaluator):
            raise InputError(f"merge takes another Evaluator, not {type(other).__name__}.")
        mine, theirs = self.identity(), other.identity()
        if mine != theirs:
            name = next(name for name in mine if mine[name] != theirs[name])
            raise InputError(f"these evaluators cannot be merged: {name} is {mine[name]} here and {theirs[name]} there.")
        self._check_alike(other._parts)
        self._add(other.n_queries, other._moments, other._slices, other._counts, other._parts)
        self._replicates += other._replicates

    def identity(self) -> dict[str, Any]:
        """What two evaluators must have alike to be merged, by name."""
        plan = self._plan
        return {
            "metrics": [str(metric) for metric in plan.metrics],
            "convention": plan.convention.name,
            "depth": plan.depth,
            "judged_only": plan.judged_only,
            "bounds": plan.bounds,
            "per_query": self.per_query,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
        }

    def _check_alike(self, parts: list[_Part]) -> None:
        for part in parts:
            if self._parts and part.shape() != self._parts[0].shape():
                mine, theirs = self._parts[0].shape(), part.shape()
                raise InputError(f"batches must all have the same of query_ids, weights and by: {theirs} after {mine}.")

    def _add(
        self, n_queries: int, moments: tuple[Moments, ...], slices: SliceMoments, counts: Counter[tuple[str, int]], parts: list[_Part]
    ) -> None:
        self.n_queries += n_queries
        self._moments = tuple(a + b for a, b in zip(self._moments, moments, strict=True))
        self._slices = merge_slices(self._slices, slices)
        self._counts = self._counts + counts
        self._parts = [*self._parts, *parts]

    def count(self, kind: str, n: int) -> None:
        """Count something that no batch tells of, such as queries of a run that have no judgements. Counts add up when merged."""
        self._counts[kind, 0] += n

    def counted(self, kind: str) -> int:
        """How often something was counted."""
        return self._counts[kind, 0]

    def result(self) -> Evaluation:
        """What has been collected so far. The evaluator goes on: later updates do not change this result."""
        parts = self._parts
        kept = bool(parts)
        values = np.concatenate([part.values for part in parts]) if kept else np.empty((0, len(self.metrics)))
        weights = [part.weights for part in parts if part.weights is not None]
        bounds = None
        if self._plan.bounds:
            bounds = Bounds(*(np.concatenate([getattr(part, side) for part in parts]) if kept else values for side in _SIDES))
        return Evaluation(
            self.metrics,
            self.convention,
            values=values if self.per_query else None,
            n_queries=self.n_queries,
            moments=self._moments,
            slice_moments=self._slices,
            query_ids=_joined([part.query_ids for part in parts]),
            weights=np.concatenate(weights) if weights else None,
            by={name: _joined([part.by[name] for part in parts]) for name in (parts[0].by if kept else ())},
            no_relevant=tuple(self._counts["no_relevant", column] for column in range(len(self.metrics))),
            notes=notes_of(self._plan, self._counts),
            bounds=bounds,
            replicates=self._replicates.means() if self.n_resamples else None,
        )

    def sort_queries(self) -> None:
        """Put the values of single queries in the order of their ids, whatever the order of updates and merges was."""
        if self._parts and self._parts[0].query_ids is not None:
            import pyarrow.compute as pc

            table = self._table()
            shape = {"metrics": self.metrics, "bounds": self._plan.bounds, "by": list(self._parts[0].by)}
            self._parts = [_part_of(table.take(pc.sort_indices(table.column("query_ids"))), shape)]

    # --- travelling ------------------------------------------------------------------------------------------------------------

    def to_bytes(self) -> bytes:
        """Everything collected, as Arrow streams one after another: the queries, the sums of each slicing column, those of resamples.

        Read back with `Evaluator.from_bytes`; nothing in it is ever run.
        """
        import pyarrow as pa

        head = {
            "format": FORMAT,
            **self.identity(),
            "spelled": [metric.spelled for metric in self.metrics],
            "n_queries": self.n_queries,
            "moments": [sums.to_dict() for sums in self._moments],
            "counts": [[kind, column, count] for (kind, column), count in self._counts.items()],
            "slices": list(self._slices),
            "by": list(self._parts[0].by) if self._parts else [],
        }
        sink = pa.BufferOutputStream()
        _write(sink, self._table().replace_schema_metadata({"fastrank": json.dumps(head)}))
        for values in self._slices.values():
            sums = [json.dumps([each.to_dict() for each in moments]) for moments in values.values()]
            _write(sink, pa.table({"value": pa.array(list(values)), "moments": pa.array(sums, pa.string())}))
        if self.n_resamples:
            used = np.flatnonzero(self._replicates.sums.any(axis=(0, 2)))
            _write(sink, pa.table({str(limb): self._replicates.sums[:, limb].ravel() for limb in used.tolist()}))
        return bytes(sink.getvalue())

    def _table(self) -> pa.Table:
        import pyarrow as pa

        if not self._parts:
            return pa.table({})
        columns: dict[str, Any] = {}
        for place in range(len(self.metrics)):
            for side in ("values", *_SIDES) if self._plan.bounds else ("values",):
                columns[f"{side} {place}"] = np.concatenate([getattr(part, side)[:, place] for part in self._parts])
        first = self._parts[0]
        if first.query_ids is not None:
            columns["query_ids"] = _joined([part.query_ids for part in self._parts])
        if first.weights is not None:
            columns["weights"] = np.concatenate([part.weights for part in self._parts if part.weights is not None])
        for name in first.by:
            columns[f"by {name}"] = _joined([part.by[name] for part in self._parts])
        return pa.table(columns)

    @classmethod
    def from_bytes(cls, data: bytes, convention: Convention | None = None) -> Evaluator:
        """The evaluator that `to_bytes` wrote. A convention of your own must be given again; it travels by its name."""
        import pyarrow as pa

        source = pa.BufferReader(data)
        try:
            table = pa.ipc.open_stream(source).read_all()
            head = json.loads((table.schema.metadata or {})[b"fastrank"])
        except (pa.ArrowInvalid, KeyError, ValueError) as error:
            raise InputError(f"these bytes are no serialised Evaluator ({str(error).splitlines()[0]}).") from None
        if head["format"] != FORMAT:
            raise InputError(f"this Evaluator was written in format {head['format']}; this version reads format {FORMAT}.")
        options = {name: head[name] for name in ("depth", "judged_only", "bounds", "per_query", "n_resamples", "seed")}
        # A short name shows what was spelled, so that a result has the same keys wherever it is read.
        named = zip(head["metrics"], head["spelled"], strict=True)
        metrics = [dataclasses.replace(parse_metric(name), spelled=tuple(spelled)) for name, spelled in named]
        made = cls(metrics, convention or head["convention"], **options)
        slices: SliceMoments = {}
        for column in head["slices"]:
            rows = pa.ipc.open_stream(source).read_all().to_pylist()
            slices[column] = {row["value"]: tuple(Moments.from_dict(sums) for sums in json.loads(row["moments"])) for row in rows}
        counts = Counter({(kind, column): count for kind, column, count in head["counts"]})
        parts = [_part_of(table, head)] if table.num_columns else []
        made._add(head["n_queries"], tuple(Moments.from_dict(sums) for sums in head["moments"]), slices, counts, parts)
        if made.n_resamples:
            table = pa.ipc.open_stream(source).read_all()
            for limb in table.column_names:
                made._replicates.sums[:, int(limb)] = table.column(limb).to_numpy().reshape(-1, made.n_resamples)
        return made


def _part_of(table: pa.Table, head: dict[str, Any]) -> _Part:
    def matrix(side: str) -> np.ndarray:
        return np.column_stack([table.column(f"{side} {place}").to_numpy() for place in range(len(head["metrics"]))])

    values = matrix("values")
    low, high, if_relevant = (matrix(side) if head["bounds"] else values for side in _SIDES)
    names = table.column_names
    query_ids = table.column("query_ids").combine_chunks() if "query_ids" in names else None
    weights = table.column("weights").to_numpy() if "weights" in names else None
    by = {name: table.column(f"by {name}").combine_chunks() for name in head["by"]}
    return _Part(values, low, high, if_relevant, query_ids, weights, by)


def _write(sink: pa.NativeFile, table: pa.Table) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _joined(arrays: list[Any]) -> Any:
    """Arrow arrays end to end; None where there are none. Types that differ between batches are unified."""
    import pyarrow as pa

    if not arrays or arrays[0] is None:
        return None
    types = {array.type for array in arrays}
    if len(types) > 1:
        target = pa.unify_schemas([pa.schema([("ids", kind)]) for kind in types], promote_options="permissive").field(0).type
        arrays = [array.cast(target) for array in arrays]
    return pa.concat_arrays(arrays)

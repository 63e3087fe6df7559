"""`Evaluation`: what every call returns. The values of each query, their means and intervals, slices, and notes on what happened."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._cached import cached_property
from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.statistics import Moments, exact_means

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from fastrank.metrics.base import Metric

# Per by-column and value (None: null), the moments of each metric.
SliceMoments = dict[str, dict[Any, tuple[Moments, ...]]]

# With fewer values that are not 0 intervals may miss their confidence; what they achieve is simulated in docs/coverage.md.
FEW_VALUES = 20
ACHIEVED = "simulated, 95% intervals of so few cover 85 to 98%, by method"


@dataclass(frozen=True)
class Note:
    """Something a reader of the numbers should know: what was tied, missing, cut or skipped, and how often.

    `kind` is a word for programs ("ties", "no_relevant", ...), `message` one sentence for people with the count in it.
    """

    kind: str
    count: int
    message: str


@dataclass(frozen=True)
class Bounds:
    """What the value of each query and metric could be, float64[n_queries, n_metrics].

    `low` and `high`: the least and the greatest over the orders of equal scores. `if_relevant`: the value if every retrieved document
    that nobody judged were as relevant as the best judged one of its query.
    """

    low: np.ndarray
    high: np.ndarray
    if_relevant: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """The mean of one metric with its t interval. `n_queries` counts the queries that enter the mean."""

    name: str
    metric: Metric
    mean: float
    low: float
    high: float
    standard_error: float
    n_queries: int


@dataclass(frozen=True)
class SummaryRow(Estimate):
    """The estimate over all queries, with the metric's own aggregate, the queries with nothing to find, and the mean bounds."""

    aggregate: float
    n_no_relevant: int
    bounds: tuple[float, float] | None


@dataclass(frozen=True)
class Slice:
    """The queries that share one value of a `by` column; `value` is None for those where it is null."""

    column: str
    value: Any
    n_queries: int
    rows: tuple[Estimate, ...]

    def mean(self) -> dict[str, float]:
        """The mean of each metric over the queries of this slice."""
        return {row.name: row.mean for row in self.rows}


@dataclass(frozen=True, repr=False)
class Summary:
    """Means, intervals, slices and notes: a table without the single queries."""

    convention: Convention
    confidence: float
    n_queries: int
    rows: tuple[SummaryRow, ...]
    slices: dict[str, dict[Any, Slice]]
    notes: tuple[Note, ...]
    method: str = "t"

    @property
    def interval_title(self) -> str:
        """What tables call the intervals: "95% interval (BCa)"; Student's t goes without saying."""
        title = {"t": "", "bca": " (BCa)", "poisson": " (Poisson bootstrap)"}.get(self.method, f" ({self.method})")
        return f"{100 * self.confidence:g}% interval{title}"

    def __repr__(self) -> str:
        from fastrank.report.text import table

        return table(self)

    def _repr_html_(self) -> str:
        from fastrank.report.text import table

        return table(self, "html")

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts and lists: full names, formulas, convention, means, intervals, counts, slices, notes."""
        return {
            "convention": convention_to_dict(self.convention),
            "n_queries": self.n_queries,
            "confidence": self.confidence,
            "interval": self.method,
            "metrics": [
                metric_to_dict(row.name, row.metric)
                | _estimate_to_dict(row)
                | {"aggregate": row.aggregate, "n_no_relevant": row.n_no_relevant}
                | ({} if row.bounds is None else {"bounds": list(row.bounds)})
                for row in self.rows
            ],
            "slices": [
                {
                    "by": each.column,
                    "value": each.value,
                    "n_queries": each.n_queries,
                    "metrics": [{"name": row.name} | _estimate_to_dict(row) for row in each.rows],
                }
                for values in self.slices.values()
                for each in values.values()
            ],
            "notes": [dataclasses.asdict(note) for note in self.notes],
        }


class Evaluation:
    """Metric values of a set of queries.

    Attributes: `metrics`, filled by the convention; `convention`; `n_queries`; `names`, the key of each metric; `query_ids`, an Arrow
    array, or None for 0 ... n - 1; `values`, float64[n_queries, n_metrics], read-only, or None when single queries were not kept;
    `weights`, float64[n_queries] or None; `by`, one Arrow array per slicing column; `notes`; `bounds`, when asked for.

    A metric's key in `mean()` and its column in tables is its short name, or its full name where two metrics share the short one.
    """

    def __init__(
        self,
        metrics: Sequence[Metric],
        convention: Convention,
        *,
        values: np.ndarray | None,
        n_queries: int,
        no_relevant: Sequence[int],
        moments: Sequence[Moments] | None = None,
        query_ids: pa.Array | None = None,
        weights: np.ndarray | None = None,
        by: Mapping[str, pa.Array] | None = None,
        slice_moments: SliceMoments | None = None,
        notes: Sequence[Note] | Callable[[], Sequence[Note]] = (),
        bounds: Bounds | None = None,
        replicates: np.ndarray | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        self.metrics = tuple(metrics)
        # The key of each metric.
        self.names = unique_names(self.metrics) if names is None else names
        self.convention = convention
        self.n_queries = n_queries
        self.no_relevant = tuple(no_relevant)
        self.query_ids = query_ids
        self.weights = weights
        self.by = dict(by) if by else {}
        self._notes = notes
        self.bounds = bounds
        # The mean of each metric in each resample of a Poisson bootstrap, float64[n_resamples, n_metrics].
        self.replicates = replicates
        self.values = values
        if values is not None:
            # Means are computed once: a value changed behind them would go unseen.
            self.values = values.view()
            self.values.setflags(False)  # type: ignore[call-arg]  # `write`; by its name it takes twice the time
        self._given_moments = None if moments is None else tuple(moments)
        self._given_slice_moments = slice_moments

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the notes in words, since what words them does not travel."""
        return self.__dict__ | {"_notes": self.notes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.values is not None:
            self.values.setflags(write=False)  # which NumPy does not keep

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What was skipped, tied, missing or cut. Put into words when first read: a training loop never does."""
        return tuple(self._notes() if callable(self._notes) else self._notes)

    @cached_property
    def moments(self) -> tuple[Moments, ...]:
        """The exact sums of each metric."""
        if self._given_moments is not None:
            return self._given_moments
        return moments_by_metric(self.metrics, self._kept("moments="), self.weights)

    @cached_property
    def slice_moments(self) -> SliceMoments:
        """The exact sums of each metric in each slice, values ascending and null last."""
        sums = self._given_slice_moments
        if sums is None:
            sums = moments_by_slice(self.metrics, self._kept("slice_moments="), self.weights, self.by) if self.by else {}
        return {column: dict(sorted(values.items(), key=_place)) for column, values in sums.items()}

    def _kept(self, otherwise: str) -> np.ndarray:
        if self.values is None:
            raise InputError(f"the values of single queries were not kept: evaluate with per_query=True, or use {otherwise}.")
        return self.values

    def __len__(self) -> int:
        return self.n_queries

    def __getitem__(self, name: str | Metric) -> np.ndarray:
        """The values of one metric, float64[n_queries], by any spelling of its name. KeyError where it is not among `metrics`."""
        values: np.ndarray = self._kept("mean()")[:, self._index(name)]
        return values

    def _index(self, name: Any) -> int:
        if name in self.names:
            return self.names.index(name)
        if name in self.metrics:
            return self.metrics.index(name)
        from fastrank.metrics.grammar import parse_metric

        try:
            return self.metrics.index(parse_metric(name, self.convention))
        except ValueError as error:  # an InputError for a name that is none, else "not in tuple"
            reason = f" ({error})" if isinstance(error, InputError) else ""
            raise KeyError(f"{name!r} is not among the metrics: {', '.join(self.names)}{reason}") from None

    def mean(self) -> dict[str, float]:
        """The (weighted) mean over queries, whatever the metric; NaN values propagate except under no_relevant="skip"."""
        if self.weights is not None or self.values is None or self._given_moments is not None or "moments" in self.__dict__:
            return {name: sums.mean for name, sums in zip(self.names, self.moments, strict=True)}
        found = exact_means(self.values)
        return {name: self.moments[i].mean if mean is None else mean for i, (name, mean) in enumerate(zip(self.names, found, strict=True))}

    def aggregate(self) -> dict[str, float]:
        """Each metric's own aggregate: the mean, the sum for counts, exp of the mean of log(max(x, 1e-5)) for geometric means."""
        return {name: _aggregate(metric, sums) for name, metric, sums in zip(self.names, self.metrics, self.moments, strict=True)}

    def summary(
        self,
        confidence: float = 0.95,
        method: str = "t",
        *,
        cluster: str | None = None,
        n_resamples: int = 10_000,
        seed: int | np.random.Generator = 0,
        threads: int | None = None,
    ) -> Summary:
        """Mean, interval, counts and slices: a table to print or, by `to_dict`, to keep.

        `method` is "t" (Student), or the bootstrap over queries: "percentile", "bca" or "studentised". `cluster` names the `by` column of
        queries that belong together (a user, a session), which are then drawn whole. The bootstrap and clusters need the values of single
        queries; the same `seed` gives the same bits for every `threads`. "poisson" needs none: it reads the resamples that an `Evaluator`
        with ``n_resamples=`` has kept, and gives percentiles of them; slices keep Student's t. Errors: `InputError`.
        """
        if method == "poisson":
            from fastrank.comparison.intervals import summary_of_replicates

            return summary_of_replicates(self, confidence, cluster)
        if method != "t" or cluster is not None:
            from fastrank.comparison.intervals import summary_with

            return summary_with(
                self, confidence=confidence, method=method, cluster=cluster, n_resamples=n_resamples, seed=seed, threads=threads
            )
        rows = [
            SummaryRow(
                **vars(_estimate(name, metric, sums, confidence)),
                aggregate=_aggregate(metric, sums),
                n_no_relevant=self.no_relevant[i],
                bounds=self._mean_bounds(i),
            )
            for i, (name, metric, sums) in enumerate(zip(self.names, self.metrics, self.moments, strict=True))
        ]
        notes = (*self.notes, *self._few_values())
        return Summary(self.convention, confidence, self.n_queries, tuple(rows), self._slices(confidence), notes)

    def _few_values(self) -> Iterator[Note]:
        """Which means rest on so few queries that no interval can be trusted."""
        if self.values is None:
            return
        for name, values in zip(self.names, self.values.T, strict=True):
            filled = int(np.count_nonzero(np.nan_to_num(values)))
            if 0 < filled < FEW_VALUES <= self.n_queries:
                yield Note(
                    "few_values",
                    filled,
                    f"{name} is 0 on all but {filled} of {self.n_queries:,} queries: the interval may be too narrow ({ACHIEVED}).",
                )

    @property
    def slices(self) -> dict[str, dict[Any, Slice]]:
        """Per `by` column and value: the number of queries, and mean and 95% interval of each metric. Null is a slice of its own."""
        return self._slices(0.95)

    def _slices(self, confidence: float) -> dict[str, dict[Any, Slice]]:
        slices: dict[str, dict[Any, Slice]] = {}
        for column, values in self.slice_moments.items():
            slices[column] = {}
            for value, moments in values.items():
                rows = tuple(
                    _estimate(name, metric, sums, confidence) for name, metric, sums in zip(self.names, self.metrics, moments, strict=True)
                )
                n_queries = max((sums.n + sums.n_nan + sums.n_skipped for sums in moments), default=0)
                slices[column][value] = Slice(column, value, n_queries, rows)
        return slices

    def _mean_bounds(self, i: int) -> tuple[float, float] | None:
        if self.bounds is None:
            return None
        skip = _skips_nan(self.metrics[i])
        low, high = (Moments.of(side[:, i], self.weights, skip_nan=skip).mean for side in (self.bounds.low, self.bounds.high))
        return low, high

    # --- out --------------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a Parquet file, from which `fastrank.load` gives it back bit for bit.

        Its rows are those of `to_arrow`, so any reader of Parquet can use them; with per_query=False it holds the exact sums. The file
        appears whole or not at all. Errors: `InputError` where it cannot be written.
        """
        from fastrank.report.saved import save

        save(self, path)

    def to_arrow(self) -> pa.Table:
        """One row per query: query_id, the `by` columns, weight, then a float64 column per metric (and three for its bounds).

        The schema's metadata holds, under "fastrank", JSON with full names, formulas, convention and notes.
        """
        from fastrank.report.saved import to_table

        return to_table(self)

    def to_pandas(self) -> pd.DataFrame:
        """The table of `to_arrow` as a pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """The table of `to_arrow` as a polars DataFrame."""
        import polars as pl

        return pl.DataFrame(self.to_arrow())

    def to_json(self, confidence: float = 0.95) -> str:
        """The summary as strict JSON: full names, formulas, convention, means, intervals, counts, slices, notes. NaN is null."""
        return to_json(self.summary(confidence).to_dict())

    def plot(self, *, confidence: float = 0.95, dark: bool = False) -> Any:
        """A matplotlib figure: each metric's mean with its interval, and how its values are distributed over queries.

        `dark` draws it for a dark background. Needs matplotlib (`pip install 'fastrank-metrics[plot]'`); InputError where it is missing.
        """
        from fastrank.report.plots import evaluation_figure

        return evaluation_figure(self, confidence=confidence, dark=dark)

    def __repr__(self) -> str:
        return repr(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


# --- sums of parts --------------------------------------------------------------------------------------------------------------


def moments_by_metric(metrics: Sequence[Metric], values: np.ndarray, weights: np.ndarray | None) -> tuple[Moments, ...]:
    """The exact sums of values, float64[n_queries, n_metrics], one per metric."""
    return tuple(
        Moments.of(values[:, i], weights, skip_nan=_skips_nan(metric), logs=metric.aggregation == "gmean")
        for i, metric in enumerate(metrics)
    )


def moments_by_slice(metrics: Sequence[Metric], values: np.ndarray, weights: np.ndarray | None, by: Mapping[str, pa.Array]) -> SliceMoments:
    """The exact sums of values per by-column and value."""
    import pyarrow as pa

    sums: SliceMoments = {}
    for column, array in by.items():
        if pa.types.is_dictionary(array.type):  # an Arrow dictionary may hold a value twice, or null
            array = array.cast(array.type.value_type)
        encoded = array.dictionary_encode()
        keys = [*encoded.dictionary.to_pylist(), None]
        codes = encoded.indices.fill_null(len(keys) - 1).to_numpy(zero_copy_only=False)
        order = np.argsort(codes, kind="stable")
        groups = np.split(order, np.cumsum(np.bincount(codes, minlength=len(keys)))[:-1])
        sums[column] = {
            # One NaN object, so that NaN of two parts is the same key.
            math.nan if key != key else key: moments_by_metric(metrics, values[rows], None if weights is None else weights[rows])
            for key, rows in zip(keys, groups, strict=True)
            if len(rows)
        }
    return sums


def merge_slices(one: SliceMoments, other: SliceMoments) -> SliceMoments:
    """The sums of two sets of queries taken together."""
    merged = {column: dict(values) for column, values in one.items()}
    for column, values in other.items():
        into = merged.setdefault(column, {})
        for value, moments in values.items():
            into[value] = tuple(a + b for a, b in zip(into[value], moments, strict=True)) if value in into else moments
    return merged


def _skips_nan(metric: Metric) -> bool:
    return getattr(metric, "no_relevant", None) == "skip"


def _aggregate(metric: Metric, sums: Moments) -> float:
    if metric.aggregation == "sum":
        return sums.total
    return sums.geometric_mean if metric.aggregation == "gmean" else sums.mean


def _estimate(name: str, metric: Metric, sums: Moments, confidence: float) -> Estimate:
    low, high = sums.interval(confidence)
    return Estimate(name, metric, sums.mean, low, high, sums.standard_error, sums.n + sums.n_nan)


def _place(item: tuple[Any, Any]) -> tuple[bool, bool, Any]:
    value = item[0]
    return value is None, value != value, value


# --- names and JSON -------------------------------------------------------------------------------------------------------------


def unique_names(metrics: Sequence[Metric]) -> tuple[str, ...]:
    """Short names, or full names where two metrics share the short one."""
    short = [metric.short_name for metric in metrics]
    return tuple(name if short.count(name) == 1 else str(metric) for name, metric in zip(short, metrics, strict=True))


def metric_to_dict(name: str, metric: Metric) -> dict[str, Any]:
    """What a file says of a metric: the name used in it, the full name that parses back, the formula, the aggregate."""
    return {"name": name, "full_name": str(metric), "formula": metric.formula, "aggregation": metric.aggregation}


def convention_to_dict(convention: Convention) -> dict[str, Any]:
    """Every choice of a convention by name."""
    return {field.name: getattr(convention, field.name) for field in dataclasses.fields(convention)}


def _estimate_to_dict(row: Estimate) -> dict[str, Any]:
    fields = ("mean", "low", "high", "standard_error", "n_queries")
    return {name: getattr(row, name) for name in fields}


def to_json(value: Any, indent: int | None = 2) -> str:
    """Strict JSON: NaN and infinities become null, and what JSON has no form for (dates, bytes, decimals) its text."""
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if value is None or isinstance(value, str | int) else str(value)

"""ir_measures on this engine: change ``import ir_measures`` to ``from fastrank.compat import ir_measures``.

Everything of ir_measures is here, and what calculates runs on this engine. For code that imports ir_measures itself, one line before::

    fastrank.compat.ir_measures.install()

Its command line: ``python -m fastrank.compat.ir_measures QRELS RUN nDCG@10 ...``, with its flags; ``--provider fastrank`` refuses what this
engine does not have, where otherwise another provider is asked.

Importing this module registers the provider "fastrank". **One order of equal scores holds for all measures of a call**: by document id,
descending, scores compared as float32, as its provider pytrec_eval does for most measures; in ir_measures each provider has its own.
Labels are whole numbers. A document that stands twice in a query counts once, the last row of it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from fastrank.convention import conventions
from fastrank.engine.runs import evaluate_run
from fastrank.errors import InputError
from fastrank.io.grouped import GroupedQrels
from fastrank.io.judgements import Pairs, Qrels, Run
from fastrank.metrics.base import Metric, families
from fastrank.metrics.binary import Success
from fastrank.metrics.names import known_names, translate
from fastrank.metrics.pairwise import Accuracy

try:
    import ir_measures as _library
    from ir_measures import providers as _providers
    from ir_measures.measures import registry as _measures
except ImportError:
    needs = "fastrank.compat.ir_measures needs ir_measures, which is not installed: pip install 'fastrank-metrics[ir-measures]'."
    raise ImportError(needs) from None

__all__ = ["FastrankEvaluator", "FastrankProvider", "calc", "calc_aggregate", "evaluator", "install", "iter_calc"]

_CONVENTION = "trec_eval9"
# The namedtuples of ir_measures have these; an iteration only where there are subtopics.
_QREL, _SCORED = ("query_id", "doc_id", "relevance"), ("query_id", "doc_id", "score")
_ITERATION, _NO_ITERATION = "iteration", "0"
# Measures without a value for a query that has nothing to compare; their mean is over the others.
_PARTIAL = ("Accuracy",)


# --- measures -------------------------------------------------------------------------------------------------------------------


def metric_of(measure: Any) -> Metric:
    """Our metric of one of its measures, all of its parameters set as they are there. Errors: `InputError` where there is none.

    >>> import ir_measures
    >>> str(metric_of(ir_measures.AP(rel=2) @ 5))
    'AP(rel=2)@5'
    """
    known = known_names().get(measure.NAME.lower())
    if known is None or known.trec_only:
        raise InputError(f"{measure} is none of this engine's metrics.")
    values = {name: measure[name] for name in measure.SUPPORTED_PARAMS}
    given = {name: value for name, value in values.items() if value is not _providers.base.NOT_PROVIDED}
    if measure.NAME == "SetF":
        given["beta"] = math.sqrt(given["beta"])  # it is handed on to trec_eval, whose parameter is the square
    family, parameters = translate(known.family, {**known.implied, **given})
    if family == "RBP":
        parameters["gain"] = "binary"
    if family == "SDCG":
        parameters.pop("dcg", None)  # it has one form alone
    if family in _PARTIAL:
        parameters["no_relevant"] = "skip"
    wrong = [name for name in parameters if name not in families[family].parameters()]
    if wrong:
        raise InputError(f"{measure}: {family} has no parameter {wrong[0]!r}.")
    return families[family](**parameters)


@functools.cache
def _is_supported(measure: Any) -> bool:
    try:
        metric_of(measure).fill(conventions[_CONVENTION])
    except InputError:
        return False
    return True


# --- what is given --------------------------------------------------------------------------------------------------------------


def _columns(name: str, rows: Any, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """The columns of a data frame or of namedtuples, and the iteration of each row, if there is one."""
    if hasattr(rows, "itertuples"):
        missing = [field for field in fields if field not in rows.columns]
        if missing:
            raise ValueError(f"unknown {name} format: DataFrame missing columns: {missing} (found {list(rows.columns)})")
        return (*(rows[field] for field in fields), rows[_ITERATION] if _ITERATION in rows.columns else None)
    if not isinstance(rows, Iterable):
        raise ValueError(f"unknown {name} format: unexpected format; please provide namedtuples with fields {fields}, a pandas DataFrame with such columns, or a dict-of-dict")  # fmt: skip  # noqa: E501
    rows = list(rows)
    if not rows:
        return (*([] for _ in fields), None)
    names = getattr(rows[0], "_fields", ())
    if not set(fields) <= set(names):
        raise ValueError(f"unknown {name} format: iterable not a namedtuple iterator with fields {fields}")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return (*(columns[field] for field in fields), columns.get(_ITERATION))


def _read_qrels(qrels: Any, *, grouped: bool) -> Any:
    """Judgements as `evaluate_run` takes them."""
    if isinstance(qrels, Mapping):
        if not grouped:
            return qrels
        return {query: {_NO_ITERATION: documents} for query, documents in qrels.items()}
    query_ids, doc_ids, labels, iterations = _columns("qrels", qrels, _QREL)
    if not grouped:
        return _distinct(Qrels.from_arrays(query_ids, doc_ids, labels))
    iterations = [_NO_ITERATION] * len(query_ids) if iterations is None else iterations
    return GroupedQrels.from_arrays(query_ids, iterations, doc_ids, labels)


def _read_run(run: Any) -> Any:
    return run if isinstance(run, Mapping) else _distinct(Run.from_arrays(*_columns("run", run, _SCORED)[:3]))


def _distinct(pairs: Pairs) -> Pairs:
    return pairs.without_duplicates("last")


def _queries(source: Any) -> list[str]:
    """Ids of the queries, in their order."""
    return list(source) if isinstance(source, Mapping) else [str(query) for query in source.query_ids.to_pylist()]


# --- the provider ---------------------------------------------------------------------------------------------------------------


class FastrankEvaluator(_providers.Evaluator):
    """Measures and judgements, to evaluate one run after the other. Equal scores stand in one order for all measures."""

    def __init__(self, measures: Iterable[Any], qrels: Any) -> None:
        measures = list(measures)
        self._metrics = [metric_of(measure) for measure in measures]
        self._qrels = _read_qrels(qrels, grouped=any(metric.grouped for metric in self._metrics))
        self._queries = set(_queries(self._qrels))
        super().__init__(measures, self._queries)

    def _values(self, run: Any) -> tuple[list[str], list[list[float]]]:
        """The queries that the run has, and for each measure their values."""
        read = _read_run(run)
        if self._queries.isdisjoint(_queries(read)) or not self._metrics:
            return [], [[] for _ in self.measures]
        met = {metric: Success(rel=metric.rel, k=metric.k) for metric in self._metrics if isinstance(metric, Accuracy)}
        result = evaluate_run(self._qrels, read, [*self._metrics, *met.values()], convention=_CONVENTION, missing="skip")
        assert result.query_ids is not None
        # Where the documents up to the cutoff hold nothing relevant, there is nothing to compare.
        columns = [np.where(result[met[each]] == 0, np.nan, result[each]) if each in met else result[each] for each in self._metrics]
        return list(map(str, result.query_ids.to_pylist())), [column.tolist() for column in columns]

    def _defaults(self, queries: Iterable[str]) -> Iterator[Any]:
        """What measures are where the run does not have a query."""
        missing = sorted(self._queries.difference(queries))
        for measure in sorted(self.measures, key=str):
            for query in missing if measure.NAME not in _PARTIAL else []:
                yield _library.Metric(query_id=query, measure=measure, value=measure.DEFAULT)

    def _each(self, queries: list[str], columns: list[list[float]]) -> Iterator[Any]:
        for query, values in zip(queries, zip(*columns, strict=True), strict=True):
            for measure, value in zip(self.measures, values, strict=True):
                if value == value:
                    yield _library.Metric(query_id=query, measure=measure, value=value)
        yield from self._defaults(queries)

    def iter_calc(self, run: Any) -> Iterator[Any]:
        """Yield the value of each measure and query."""
        yield from self._each(*self._values(run))

    def _aggregated(self, columns: list[list[float]]) -> dict[Any, float]:
        found = {}
        for measure, given in zip(self.measures, columns, strict=True):
            partial = measure.NAME in _PARTIAL
            values = [value for value in given if value == value] if partial else given
            n_queries = len(values) if partial else len(self._queries)
            total = sum(values) + measure.DEFAULT * (n_queries - len(values))
            is_sum = isinstance(measure.aggregator(), _library.SumAgg)
            found[measure] = total if is_sum else total / n_queries if n_queries else math.nan
        return found

    def calc_aggregate(self, run: Any) -> dict[Any, float]:
        """The aggregate of each measure."""
        return self._aggregated(self._values(run)[1])

    def calc(self, run: Any) -> Any:
        """Aggregates, and the value of each measure and query."""
        queries, columns = self._values(run)
        return _library.CalcResults(self._aggregated(columns), list(self._each(queries, columns)))


class FastrankProvider(_providers.Provider):
    """Every measure of ir_measures that this engine has, with one order of equal scores in one call."""

    NAME = "fastrank"

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def supports(self, measure: Any) -> bool:
        """Whether a measure with its parameters is one of ours."""
        measure.validate_params()
        return _is_supported(measure)

    def _evaluator(self, measures: Iterable[Any], qrels: Any) -> FastrankEvaluator:
        return FastrankEvaluator(measures, qrels)

    def qrel_inputs(self, measures: Iterable[Any]) -> list[str]:
        """Columns that the judgements must have."""
        return [*_QREL, *([_ITERATION] if any(metric_of(measure).grouped for measure in measures) else [])]


FastrankProvider.SUPPORTED_MEASURES = [
    measure(**{name: _providers.base.Any() for name in measure.SUPPORTED_PARAMS})
    for name, measure in _measures.items()
    if name == measure.NAME and name.lower() in known_names()
]

provider = _providers.register(FastrankProvider())

_pipeline = _providers.FallbackProvider(
    [_library.runtime, provider, *(other for other in _library.DefaultPipeline.providers if other is not _library.runtime)]
)
evaluator, iter_calc, calc_aggregate, calc = _pipeline.evaluator, _pipeline.iter_calc, _pipeline.calc_aggregate, _pipeline.calc


def install() -> None:
    """Let ir_measures itself calculate on this engine, in this process: measures that users defined come first, others after ours."""
    order = _library.DefaultPipeline.providers
    if provider not in order:
        order.insert(order.index(_library.runtime) + 1, provider)


def __getattr__(name: str) -> Any:
    return getattr(_library, name)


def main() -> None:
    """Its command line, on this engine."""
    from ir_measures.__main__ import main_cli

    install()
    main_cli()


if __name__ == "__main__":
    main()

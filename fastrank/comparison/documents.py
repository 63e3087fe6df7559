"""The documents of single queries, found again in the files that were judged, so that their values can be worked out in a report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fastrank.engine.worked import Worked, explain
from fastrank.io.tables import Scattered, read_columns

if TYPE_CHECKING:
    from fastrank.io.judgements import Qrels, Run
    from fastrank.metrics.base import Metric

# From the names of a system and a query to the query's worked value.
Explain = Callable[[str, Any], Worked | None]


@dataclass(frozen=True)
class Documents:
    """The documents of one query in one system: labels (None: unjudged), scores (None: not retrieved), ids (None: they have none)."""

    labels: Sequence[float | None]
    scores: Sequence[float | None]
    doc_ids: Sequence[Any] | None


def explain_with(documents: Mapping[tuple[str, str], Documents], metric: Metric, **options: Any) -> Explain:
    """A function that works out a metric of the queries whose documents are at hand, by system and text of the query's id."""

    def explained(system: str, query: Any) -> Worked | None:
        found = documents.get((system, str(query)))
        if found is None or not len(found.labels):
            return None
        return explain(metric, found.labels, found.scores, doc_ids=found.doc_ids, **options)

    return explained


def from_tables(sources: Mapping[str, tuple[Any, str]], queries: Collection[Any], **roles: Any) -> dict[tuple[str, str], Documents]:
    """Documents of some queries from prediction tables; `sources` has the table and the score column of each system.

    `roles` names the columns: query, label and doc. Each table is read once, as a stream, whatever the number of its systems.
    """
    wanted = {str(query) for query in queries}
    found: dict[tuple[str, str], Documents] = {}
    for table in dict.fromkeys(table for table, _ in sources.values()):
        columns = {system: column for system, (own, column) in sources.items() if own == table}
        scores = list(dict.fromkeys(columns.values()))
        try:
            found |= _picked(read_columns(table, scores=scores, **roles), columns, wanted)
        except Scattered:
            found |= _picked(read_columns(table, scores=scores, **roles, regroup=True), columns, wanted)
    return found


def _picked(batches: Any, columns: Mapping[str, str], wanted: Collection[str]) -> dict[tuple[str, str], Documents]:
    found = {}
    for batch in batches:
        for q, query in enumerate(map(str, batch.query_ids.to_pylist())):
            if query in wanted:
                rows = slice(int(batch.offsets[q]), int(batch.offsets[q + 1]))
                ids = None if batch.doc_ids is None else batch.doc_ids[rows].to_pylist()
                for system, column in columns.items():
                    # A masked value becomes None.
                    found[system, query] = Documents(batch.labels[rows].tolist(), batch.scores[column][rows].tolist(), ids)
    return found


def from_runs(qrels: Qrels, runs: Mapping[str, Run], queries: Collection[Any]) -> dict[tuple[str, str], Documents]:
    """Documents of some queries from judgements and runs: those retrieved, then those judged that were not."""
    found = {}
    judged = _by_document(qrels, queries)
    for system, run in runs.items():
        ranked = _by_document(run, queries)
        for query, labels in judged.items():
            scores = ranked.get(query, {})
            ids = [*scores, *(each for each in labels if each not in scores)]
            found[system, query] = Documents([labels.get(each) for each in ids], [scores.get(each) for each in ids], ids)
    return found


def _by_document(pairs: Qrels | Run, queries: Collection[Any]) -> dict[str, dict[str, float]]:
    wanted = {str(query) for query in queries}
    found = {}
    for q, query in enumerate(map(str, pairs.query_ids.to_pylist())):
        if query in wanted:
            rows = range(int(pairs.offsets[q]), int(pairs.offsets[q + 1]))
            text, start, stop = pairs.doc_ids.text, pairs.doc_ids.start, pairs.doc_ids.stop
            names = (text[start[row] : stop[row]].tobytes().decode("utf-8", "replace") for row in rows)
            found[query] = dict(zip(names, pairs.values[rows.start : rows.stop].tolist(), strict=True))
    return found

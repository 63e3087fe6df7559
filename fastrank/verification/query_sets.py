"""What another program and ours are asked about: qrels and a run as dicts, random or given, and the lists that they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fastrank.convention import Convention
from fastrank.engine.calls import evaluate
from fastrank.engine.runs import evaluate_run
from fastrank.evaluation import Evaluation
from fastrank.io.judgements import Pairs, Qrels, Run
from fastrank.metrics.base import Metric

Numbers = Mapping[str, Mapping[str, float]]

# Where orders by byte, by number, by letter and by UTF-16 unit differ.
_ODD_IDS = ("Z", "a", "é", "z", "\uff5e", "\U0001f600", "d#1", "10", "9")
_SCORES = ("plain", "rounded", "constant", "close", "negative", "huge", "tiny")


@dataclass(frozen=True)
class QuerySet:
    """Judgements and a run, ``{query: {document: label or score}}``.

    as_lists: only what was retrieved is looked at, in the order of the run and unjudged documents as label 0: all that a library of
    labels and scores can be told. judged_only and skip_missing are the options of `evaluate_run`.
    """

    qrels: Mapping[str, Mapping[str, int]]
    run: Numbers
    as_lists: bool = False
    judged_only: bool = False
    skip_missing: bool = False

    @property
    def queries(self) -> list[str]:
        """The queries that have a value: those of the qrels; of lists, those that hold documents as well."""
        return [query for query in self.qrels if self.run.get(query)] if self.as_lists else list(self.qrels)

    def part(self, queries: Collection[str]) -> Self:
        """Some of the queries alone."""
        return replace(
            self,
            qrels={query: labels for query, labels in self.qrels.items() if query in queries},
            run={query: scores for query, scores in self.run.items() if query in queries},
        )

    def lists(self) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Labels and scores of what was retrieved, per query that has both judgements and documents."""
        for query in self.queries:
            labels, scores = self.qrels[query], self.run.get(query, {})
            if scores:
                yield query, np.array([labels.get(document, 0) for document in scores]), np.array(list(scores.values()), np.float64)

    def evaluate(self, metrics: list[Metric], convention: Convention, *, bounds: bool = False) -> Evaluation:
        """Our values, with a query for each of `queries` in their order."""
        if not self.as_lists:
            return evaluate_run(
                self.qrels, self.run, metrics, convention=convention, judged_only=self.judged_only, bounds=bounds, threads=1
            )
        lists = list(self.lists())
        labels, scores = (np.concatenate([each[column] for each in lists]) if lists else np.zeros(0) for column in (1, 2))
        sizes = [len(each[1]) for each in lists]
        return evaluate(labels, scores, sizes=sizes, metrics=metrics, convention=convention, bounds=bounds, threads=1)

    def values(self, metric: Metric, convention: Convention) -> dict[str, float]:
        """Our value of one metric for each query; NaN for one that is left out."""
        result = self.evaluate([metric], convention)
        values = dict(zip(self.queries, result[result.metrics[0]].tolist(), strict=True))
        return {query: np.nan if self.skip_missing and query not in self.run else value for query, value in values.items()}


def merged(sets: list[QuerySet]) -> QuerySet:
    """Query sets of different queries as one."""
    qrels = {query: labels for each in sets for query, labels in each.qrels.items()}
    return replace(sets[0], qrels=qrels, run={query: scores for each in sets for query, scores in each.run.items()})


def read_query_set(qrels: Any, run: Any) -> QuerySet:
    """Judgements and a run from TREC files, as dicts."""
    judged, ranked = Qrels.read(qrels).without_duplicates("error"), Run.read(run).without_duplicates("error")
    judged.check_whole("trec_eval")
    return QuerySet(
        {query: {name: int(label) for name, label in labels.items()} for query, labels in _as_dict(judged).items()}, _as_dict(ranked)
    )


def _as_dict(pairs: Pairs) -> dict[str, dict[str, float]]:
    ids = pairs.doc_ids
    names = [ids.text[start:stop].tobytes().decode("utf-8", "surrogateescape") for start, stop in zip(ids.start, ids.stop, strict=True)]
    values = pairs.values.tolist()
    queries = [str(query) for query in pairs.query_ids.to_pylist()]
    bounds = pairs.offsets.tolist()
    return {
        query: dict(zip(names[start:stop], values[start:stop], strict=True))
        for query, start, stop in zip(queries, bounds[:-1], bounds[1:], strict=True)
    }


# --- random ---------------------------------------------------------------------------------------------------------------------


def random_query_set(seed: int, place: int, *, ties: bool, negative: bool, single: bool) -> QuerySet:
    """The judgements and the run of two to six queries, the same for the same seed and place.

    Documents unjudged, judged and not retrieved, in the pool but unjudged (labels below 0, where `negative`); queries with nothing
    relevant, missing from the run, or in the run alone; scores equal, constant, negative, huge, tiny, and, unless `single`, so close
    that float32 cannot tell them apart; ids in which orders by byte, number and letter differ. Without `ties`, no two scores of a query
    are equal, as float32 either.
    """
    rng = np.random.default_rng([seed, place])
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    n_queries = int(rng.integers(2, 7))
    for q in range(n_queries):
        # Digits alone: a script behind one program takes no others.
        query = str(1 + place * 10 + q)
        n = 300 if rng.random() < 0.02 else int(rng.integers(2, 41))
        documents = [f"d{i}" for i in range(n)] + [name for name in _ODD_IDS if rng.random() < 0.3]
        labels = _random_labels(rng, len(documents), negative=negative)
        judged = rng.random(len(documents)) < rng.choice([0.3, 0.7, 1.0])
        # Every query has a judgement, and one that is no mark of the pool.
        if not np.any(judged & (labels >= 0)):
            judged[0], labels[0] = True, max(labels[0], 0)
        qrels[query] = {document: int(labels[i]) for i, document in enumerate(documents) if judged[i]}
        retrieved = rng.random(len(documents)) < rng.choice([0.2, 0.8, 1.0])
        retrieved[rng.integers(len(documents))] = True
        scores = _random_scores(rng, len(documents), ties=ties, single=single)
        ranked = {document: float(scores[i]) for i, document in enumerate(documents) if retrieved[i]}
        if q == 0 or rng.random() < 0.85:
            run[query] = ranked
    if rng.random() < 0.3:
        run[str(10 + place * 10)] = {"d1": 1.0}
    return QuerySet(qrels, run)


def _random_labels(rng: np.random.Generator, n: int, *, negative: bool) -> np.ndarray:
    labels = rng.integers(0, 5, n) * (rng.random(n) < rng.choice([0.0, 0.2, 0.5, 1.0], p=[0.15, 0.4, 0.4, 0.05]))
    if negative and rng.random() < 0.3:
        labels[rng.random(n) < 0.2] = -int(rng.integers(1, 3))
    return labels


def _random_scores(rng: np.random.Generator, n: int, *, ties: bool, single: bool) -> np.ndarray:
    if not ties:
        return (rng.permutation(n) - n // 2) * 0.375
    kinds: dict[str, Callable[[], np.ndarray]] = {
        "plain": lambda: rng.normal(size=n).astype(np.float32),
        "rounded": lambda: np.round(rng.normal(size=n)),
        "constant": lambda: np.full(n, rng.normal()).astype(np.float32),
        "close": lambda: 1.0 + rng.normal(size=n) * 1e-9,
        "negative": lambda: -np.round(np.abs(rng.normal(size=n)), 1).astype(np.float32),
        "huge": lambda: (rng.normal(size=n) * 1e30).astype(np.float32),
        "tiny": lambda: (rng.normal(size=n) * 1e-30).astype(np.float32),
    }
    chosen = [kind for kind in _SCORES if not (single and kind == "close")]
    return kinds[chosen[int(rng.integers(len(chosen)))]]().astype(np.float64)

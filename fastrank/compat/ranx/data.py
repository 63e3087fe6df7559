"""ranx's `Qrels` and `Run`: dicts of dicts with a name, read from anywhere and written back."""

from __future__ import annotations

import abc
import json
import os
from collections import defaultdict
from collections.abc import Iterable, KeysView, Mapping
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np

import fastrank.io.judgements as judgements
from fastrank.io.atomic import write_file, write_text
from fastrank.io.mapping import qrels_of, run_of

Dicts = dict[str, dict[str, Any]]

_KINDS = ("json", "trec", "gz", "parquet")
_EXTENSIONS = {"txt": "trec", "parq": "parquet"}
_COLUMNS = ("q_id", "doc_id", "score")
_LARGEST_ID = 2.0**63 - 2.0**10


class _Scored(abc.ABC):
    """Documents of queries and a number for each; queries sorted by id, the documents of each by their number, the largest first."""

    what: ClassVar[str]
    number: ClassVar[type[int | float]]
    dtype: ClassVar[str]

    def __init__(self, given: Mapping[str, Mapping[str, Any]] | None = None, name: str | None = None) -> None:
        self.name = name
        self._given: Dicts | None = {} if given is None else {query: dict(documents) for query, documents in given.items()}
        self._pairs: Any = None
        self._sorted: Dicts | None = None

    # --- what is held -----------------------------------------------------------------------------------------------------------

    @property
    def _dicts(self) -> Dicts:
        """The documents as they were given, or read."""
        if self._given is None:
            pairs = self._pairs
            ids, offsets, values = pairs.doc_ids, pairs.offsets.tolist(), pairs.values.astype(self.dtype).tolist()
            text, starts, stops = ids.text.tobytes(), ids.start.tolist(), ids.stop.tolist()
            names = [text[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]
            queries = map(str, pairs.query_ids.to_pylist())
            rows = zip(queries, offsets[:-1], offsets[1:], strict=True)
            self._given = {query: dict(zip(names[start:stop], values[start:stop], strict=True)) for query, start, stop in rows}
        return self._given

    def _held(self) -> Dicts:
        """Sorted, each number of its type."""
        if self._sorted is None:
            self._sorted = {
                query: dict(sorted(zip(documents, map(self.number, documents.values()), strict=True), key=itemgetter(1), reverse=True))
                for query, documents in sorted(self._dicts.items())
            }
        return self._sorted

    @property
    @abc.abstractmethod
    def pairs(self) -> Any:
        """The same for the engine: read once, evaluated many times."""

    def _changed(self) -> None:
        self._pairs = self._sorted = None

    @property
    def sorted(self) -> bool:
        """Whether it is in order: always, as it is put in order when it is looked at."""
        return True

    def sort(self) -> None:
        """Put it in order."""
        self._held()

    # --- as ranx has it ---------------------------------------------------------------------------------------------------------

    def keys(self) -> KeysView[Any]:
        """Ids of the queries."""
        return dict.fromkeys(self.get_query_ids()).keys()

    def get_query_ids(self) -> list[str]:
        """Ids of the queries, sorted."""
        return sorted(self._dicts if self._pairs is None else map(str, self._pairs.query_ids.to_pylist()))

    def get_doc_ids_and_scores(self) -> list[dict[str, Any]]:
        """The documents of each query with their numbers."""
        return list(self._held().values())

    def add_score(self, q_id: str, doc_id: str, score: float) -> None:
        """Add one document, or change its number."""
        self._dicts.setdefault(q_id, {})[doc_id] = self.number(score)
        self._changed()

    def add(self, q_id: str, doc_ids: Iterable[str], scores: Iterable[float]) -> None:
        """Add a query with its documents, or replace them."""
        self.add_multi([q_id], [doc_ids], [scores])

    def add_multi(self, q_ids: Iterable[str], doc_ids: Iterable[Iterable[str]], scores: Iterable[Iterable[float]]) -> None:
        """Add several queries, or replace their documents."""
        for query, names, numbers in zip(q_ids, doc_ids, scores, strict=True):
            self._dicts[query] = dict(zip(names, map(self.number, numbers), strict=True))
        self._changed()

    def to_dict(self) -> Dicts:
        """A dict of dicts."""
        return defaultdict(dict, {query: dict(documents) for query, documents in self._held().items()})

    def _table(self) -> dict[str, list[Any]]:
        held = self._held()
        queries = [query for query, documents in held.items() for _ in documents]
        return {
            "q_id": queries,
            "doc_id": [document for documents in held.values() for document in documents],
            "score": [score for documents in held.values() for score in documents.values()],
        }

    def to_dataframe(self) -> Any:
        """A pandas DataFrame with columns q_id, doc_id and score."""
        import pandas as pd

        return pd.DataFrame(self._table())

    def save(self, path: str | os.PathLike[str] | None = None, kind: str | None = None) -> None:
        """Write it as JSON, TREC text or Parquet: by the extension (.json; .trec, .txt; .parquet, .parq), or as `kind` says.

        The file is written whole or not at all. One that cannot be written is an `InputError`.
        """
        path = f"{self.what}.json" if path is None else path
        kind = _kind_of(path, kind)
        if kind == "parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            write_file(path, lambda file: pq.write_table(pa.table(self._table()), file))
        elif kind == "json":
            write_text(path, json.dumps(self._held(), indent=2, ensure_ascii=False))
        elif kind == "gz":
            import gzip

            write_file(path, lambda file: file.write(gzip.compress("\n".join(self._lines()).encode())))
        else:
            write_text(path, "\n".join(self._lines()))

    @abc.abstractmethod
    def _lines(self) -> Iterable[str]:
        """The lines of a TREC file."""

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self)

    def __len__(self) -> int:
        return len(self._dicts if self._pairs is None else self._pairs)

    def __getitem__(self, q_id: str) -> dict[str, Any]:
        return dict(self._held()[q_id])

    def __repr__(self) -> str:
        return repr(self._held())

    # --- ways in ----------------------------------------------------------------------------------------------------------------

    @classmethod
    def _from_pairs(cls, pairs: Any, name: str | None) -> Self:
        made = cls(name=name)
        made._pairs, made._given = pairs.without_duplicates("last"), None
        return made

    @classmethod
    def _read(cls, path: str | os.PathLike[str], kind: str | None, name: str | None, reader: Any) -> Self:
        kind = _kind_of(path, kind)
        if kind == "json":
            with open(path, encoding="utf-8") as file:
                return cls(json.load(file), name)
        if kind == "parquet":
            return cls._read_parquet(path, _COLUMNS, None, name)
        pairs = reader.read(path)
        return cls._from_pairs(pairs, getattr(pairs, "tag", None) if name is None else name)

    @classmethod
    def _read_parquet(cls, path: Any, columns: tuple[str, ...], options: Mapping[str, Any] | None, name: str | None) -> Self:
        import pandas as pd

        return cls._of_frame(pd.read_parquet(path, **(options or {})), columns, name)

    @classmethod
    def _of_frame(cls, frame: Any, columns: tuple[str, ...], name: str | None) -> Self:
        queries, documents, numbers = (frame[column] for column in columns)
        for column, what in ((queries, "Query IDs"), (documents, "Document IDs")):
            if column.dtype.kind not in "OTU" and str(column.dtype) not in ("str", "string"):
                raise AssertionError(f"DataFrame {what} column dtype must be `object` (string)")
        if numbers.dtype != np.dtype(cls.dtype):
            raise AssertionError(f"DataFrame scores column dtype must be `{cls.number.__name__}`")
        found: Dicts = {}
        for query, document, number in zip(queries.tolist(), documents.tolist(), numbers.tolist(), strict=True):
            found.setdefault(query, {})[document] = number
        return cls(found, name)


def _kind_of(path: Any, kind: str | None) -> str:
    if kind is None:
        kind = os.path.splitext(path)[1][1:]
        kind = _EXTENSIONS.get(kind, kind)
    if kind not in _KINDS:
        raise AssertionError("Error `kind` must be 'json', 'trec', 'gz', or 'parquet'")
    return kind


class Qrels(_Scored):
    """Judgements: whole numbers, ``{query: {document: label}}``.

    >>> from fastrank.compat.ranx import Qrels
    >>> Qrels({"q_2": {"d_1": 1}, "q_1": {"d_1": 1, "d_2": 2}})
    {'q_1': {'d_2': 2, 'd_1': 1}, 'q_2': {'d_1': 1}}
    """

    what, number, dtype = "qrels", int, "int64"

    def __init__(self, qrels: Mapping[str, Mapping[str, int]] | None = None, name: str | None = None) -> None:
        super().__init__(qrels, name)

    @property
    def qrels(self) -> Dicts:
        """The judgements as a dict of dicts."""
        return self._held()

    @property
    def pairs(self) -> judgements.Qrels:
        """The same for the engine."""
        if self._pairs is None:
            self._pairs = qrels_of(self._held())
        found: judgements.Qrels = self._pairs
        return found

    def set_relevance_level(self, rel_lvl: int = 1) -> None:
        """Lower every label by rel_lvl - 1, so that those from rel_lvl up are relevant."""
        held = self._held()
        self._given = {query: {name: label - (rel_lvl - 1) for name, label in documents.items()} for query, documents in held.items()}
        self._changed()

    def _lines(self) -> Iterable[str]:
        return (f"{query} 0 {document} {label}" for query, documents in self._held().items() for document, label in documents.items())

    @classmethod
    def from_dict(cls, d: Mapping[str, Mapping[str, int]]) -> Self:
        """From a dict of dicts."""
        return cls(d)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], kind: str | None = None) -> Self:
        """From JSON, TREC text, packed or not, or Parquet, as the extension or `kind` says."""
        return cls._read(path, kind, None, judgements.Qrels)

    @classmethod
    def from_df(cls, df: Any, q_id_col: str = "q_id", doc_id_col: str = "doc_id", score_col: str = "score") -> Self:
        """From a pandas DataFrame: ids are text, labels int64 (else AssertionError)."""
        return cls._of_frame(df, (q_id_col, doc_id_col, score_col), None)

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        pd_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """From a Parquet file; `pd_kwargs` go to `pandas.read_parquet`."""
        return cls._read_parquet(path, (q_id_col, doc_id_col, score_col), pd_kwargs, None)

    @classmethod
    def from_ir_datasets(cls, dataset_id: str) -> Self:
        """From the judgements of a data set of the library ir_datasets."""
        import ir_datasets

        return cls(ir_datasets.load(dataset_id).qrels_dict(), dataset_id)


class Run(_Scored):
    """The ranking of one system, ``{query: {document: score}}``.

    After `evaluate`, `mean_scores` has the mean of each metric, `scores` the value of each query, `std_scores` deviations if asked for.

    >>> from fastrank.compat.ranx import Run
    >>> Run({"q_1": {"d_1": 1.5, "d_2": 2.6}}, name="bm25")
    {'q_1': {'d_2': 2.6, 'd_1': 1.5}}
    """

    what, number, dtype = "run", float, "float64"

    def __init__(self, run: Mapping[str, Mapping[str, float]] | None = None, name: str | None = None) -> None:
        super().__init__(run, name)
        self.metadata: dict[str, Any] = {}
        self.scores: dict[str, dict[str, float]] = defaultdict(dict)
        self.mean_scores: dict[str, float] = {}
        self.std_scores: dict[str, float] = {}

    @property
    def run(self) -> Dicts:
        """The ranking as a dict of dicts."""
        return self._held()

    @property
    def pairs(self) -> judgements.Run:
        """The same for the engine."""
        if self._pairs is None:
            self._pairs = run_of(dict(sorted(self._dicts.items())), exact=False)
        found: judgements.Run = self._pairs
        return found

    def make_comparable(self, qrels: Qrels | Mapping[str, Any]) -> Self:
        """Add an empty ranking for queries that the qrels alone have, and remove those that they do not have."""
        known = qrels.keys()
        self._given = {query: self._dicts.get(query, {}) for query in known}
        self._changed()
        return self

    def _lines(self) -> Iterable[str]:
        return (
            f"{query} Q0 {document} {rank} {score} {self.name}"
            for query, documents in self._held().items()
            for rank, (document, score) in enumerate(documents.items(), 1)
        )

    @classmethod
    def from_dict(cls, d: Mapping[str, Mapping[str, float]], name: str | None = None) -> Self:
        """From a dict of dicts."""
        return cls(d, name)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], kind: str | None = None, name: str | None = None) -> Self:
        """From JSON, TREC text, packed or not, or Parquet, as the extension or `kind` says; TREC text names it by its tag."""
        return cls._read(path, kind, name, judgements.Run)

    @classmethod
    def from_df(
        cls, df: Any, q_id_col: str = "q_id", doc_id_col: str = "doc_id", score_col: str = "score", name: str | None = None
    ) -> Self:
        """From a pandas DataFrame: ids are text, scores float64 (else AssertionError)."""
        return cls._of_frame(df, (q_id_col, doc_id_col, score_col), name)

    @classmethod
    def from_parquet(
        cls,
        path: Any,
        q_id_col: str = "q_id",
        doc_id_col: str = "doc_id",
        score_col: str = "score",
        pd_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """From a Parquet file; `pd_kwargs` go to `pandas.read_parquet`."""
        return cls._read_parquet(path, (q_id_col, doc_id_col, score_col), pd_kwargs, name)


# --- other input ----------------------------------------------------------------------------------------------------------------


def as_qrels(given: Any) -> judgements.Qrels:
    """Judgements out of `Qrels`, a dict of dicts, or rows of ids and labels per query."""
    if isinstance(given, Qrels):
        return given.pairs
    if isinstance(given, Mapping):
        return qrels_of({query: {name: int(label) for name, label in documents.items()} for query, documents in given.items()})
    query_ids, doc_ids, labels, offsets = _of_rows(given)
    return judgements.Qrels.from_arrays(query_ids, doc_ids, np.trunc(labels), offsets=offsets).without_duplicates("last")


def as_run(given: Any) -> judgements.Run:
    """A ranking out of `Run`, a dict of dicts, or rows of ids and scores per query, which are in order."""
    if isinstance(given, Run):
        return given.pairs
    if isinstance(given, Mapping):
        return run_of(given, exact=False)
    query_ids, doc_ids, scores, offsets = _of_rows(given)
    places = np.arange(len(scores), dtype=np.float64)
    return judgements.Run.from_arrays(query_ids, _each_once(doc_ids, offsets), -places, offsets=offsets)


def _each_once(doc_ids: np.ndarray, offsets: np.ndarray) -> Any:
    """Ids of which none stands twice in a query: the first place of a document is its own, at others stands one that nobody judged."""
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    order = np.lexsort((doc_ids, query))
    again = np.zeros(len(doc_ids), bool)
    again[order[1:]] = (np.diff(doc_ids[order]) == 0) & (np.diff(query[order]) == 0)
    if not again.any():
        return doc_ids
    return [
        f"{doc_id} again at {row}" if twin else str(doc_id)
        for row, (doc_id, twin) in enumerate(zip(doc_ids.tolist(), again.tolist(), strict=True))
    ]


def _of_rows(given: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    arrays = [np.asarray(rows, np.float64).reshape(-1, 2) for rows in given]
    whole = np.concatenate(arrays) if arrays else np.empty((0, 2))
    offsets = np.append(0, np.cumsum([len(rows) for rows in arrays], dtype=np.int64))
    # Hashes as doubles may be 2^63, which no integer is.
    ids = np.clip(whole[:, 0], -_LARGEST_ID, _LARGEST_ID).astype(np.int64)
    return np.arange(len(arrays)), ids, whole[:, 1], offsets

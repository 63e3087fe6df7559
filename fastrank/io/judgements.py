"""`Qrels` and `Run`: documents of queries with their labels or scores, read once and evaluated many times."""

from __future__ import annotations

import abc
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank._cached import cached_property
from fastrank._kernel import map_blocks
from fastrank.arrays import as_array, frozen, score_array
from fastrank.batch import DocIds, id_array
from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.io import lines, matching
from fastrank.io.grouping import Runs, differs, find_runs, group
from fastrank.io.text import open_text
from fastrank.io.trec import QRELS, RUN, Fields, Form, Line, ids_of, read_fields

# Documents looked up in turn.
BLOCK = 1 << 17

DUPLICATE_RULES = ("error", "first", "last", "max")


@dataclass(frozen=True, eq=False, repr=False)
class Pairs(abc.ABC):
    """Documents of queries and a number for each. Query q's are rows offsets[q] ... offsets[q + 1] - 1.

    Attributes: `query_ids`, an Arrow array, in order of appearance, or sorted when the rows of one stood apart (`regrouped` of them);
    `doc_ids`, bytes; `code`, a hash of each; `values`; `name`, where they come from; `n_comments`.
    """

    value_name: ClassVar[str]
    form: ClassVar[Form]

    name: str
    query_ids: pa.Array
    offsets: np.ndarray
    doc_ids: DocIds
    code: np.ndarray
    values: np.ndarray
    regrouped: int = 0
    rows: np.ndarray | None = None
    skips: np.ndarray | None = None
    n_comments: int = 0

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def n_documents(self) -> int:
        """Rows: documents of all queries."""
        return len(self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} queries, {self.n_documents} documents, from {self.name})"

    @cached_property
    def query_keys(self) -> pa.Array:
        """The ids of the queries as bytes, numbers by their decimal text: what is compared."""
        ids = self.query_ids
        is_bytes = pa.types.is_binary(ids.type) or pa.types.is_large_binary(ids.type)
        return (ids if is_bytes else ids.cast(pa.large_string())).cast(pa.large_binary())

    @property
    def id_type(self) -> str:
        """What kind of ids the queries have."""
        of = self.query_ids.type
        return "text" if pa.types.is_string(of) or pa.types.is_large_string(of) else str(of)

    def query_name(self, q: int) -> str:
        """Query q as messages show it."""
        return f"query {self.query_ids[q].as_py()!r}"

    def document_name(self, row: int) -> str:
        """A document as messages show it."""
        ids = self.doc_ids
        return f"document {ids.text[ids.start[row] : ids.stop[row]].tobytes().decode('utf-8', 'replace')!r}"

    def place(self, row: int) -> str:
        """Where a row was: its line or its row, from 0, in what was given."""
        given = row if self.rows is None else int(self.rows[row])
        # Lines are counted from 1, and some before this one may have been no rows.
        return f"row {given}" if self.skips is None else f"line {given + 1 + np.searchsorted(self.skips, given, side='right')}"

    def query_of(self, row: int) -> int:
        """The query that a row belongs to."""
        return int(np.searchsorted(self.offsets, row, side="right")) - 1

    # --- ways in ----------------------------------------------------------------------------------------------------------------

    @classmethod
    def read(cls, source: Any, *, threads: int | None = None) -> Self:
        """Read a TREC file, given as a path ("-": standard input), bytes or a file open for reading bytes; packed or not.

        Errors: `InputError` with the file, the line number and the text of a line that cannot be read.
        """
        return cls._of_fields(read_fields(open_text(source), cls.form, threads))

    @classmethod
    def _of_fields(cls, fields: Fields) -> Self:
        ids = ids_of(fields.ids, fields.names, fields.name_stops)
        # Each part of the text began with a query of its own.
        new = np.append(True, differs(ids[:-1], ids[1:])) if len(ids) else np.zeros(0, bool)
        groups = group(Runs(fields.turns[new], ids.filter(pa.array(new)), len(fields.value)))

        def ordered(array: np.ndarray) -> np.ndarray:
            return array if groups.order is None else frozen(array[groups.order], array.dtype)

        return cls(
            fields.source,
            groups.query_ids,
            frozen(groups.offsets, np.int64),
            DocIds(fields.ids, ordered(fields.start), ordered(fields.stop)),
            ordered(fields.code),
            ordered(fields.value),
            regrouped=int(np.count_nonzero(groups.scattered)),
            rows=groups.order,
            skips=fields.skips,
            n_comments=fields.n_comments,
        )

    @classmethod
    def _of_arrays(cls, query_ids: Any, doc_ids: Any, values: Any, offsets: Any, name: str) -> Self:
        """Columns with one entry a row, or with offsets one query id a query. Rows without a value (null) say nothing and are left out."""
        queries, documents = _text_if_empty(id_array("query_ids", query_ids)), id_array("doc_ids", doc_ids)
        value, missing = as_array(cls.value_name, values)
        n_rows = len(documents)
        if value.shape != (n_rows,):
            raise InputError(f"{cls.value_name} must have one entry a document, {n_rows}, not {'x'.join(map(str, value.shape))}.")
        ids = DocIds.of(documents)
        # Whole words are read from the text: there must be some beyond its last byte.
        text = frozen(np.append(ids.text, np.zeros(lines.PADDING, np.uint8)), np.uint8)
        start, stop, rows = ids.start, ids.stop, None
        if offsets is None:
            groups = group(find_runs(pa.chunked_array([queries])))
            if len(queries) != n_rows:
                raise InputError(f"query_ids must have one entry a document, {n_rows}, not {len(queries)}.")
            queries, bounds, rows = groups.query_ids, groups.offsets, groups.order
            regrouped = int(np.count_nonzero(groups.scattered))
        else:
            bounds, regrouped = _checked_offsets(offsets, len(queries), n_rows), 0
            _check_each_once(queries, name)
        if missing is not None:
            kept = ~missing if rows is None else ~missing[rows]
            rows = np.flatnonzero(kept) if rows is None else rows[kept]
            bounds = np.append(0, np.cumsum(kept))[bounds]
        if rows is not None:
            value, start, stop = value[rows], start[rows], stop[rows]
        code = np.empty(len(value), np.uint64)
        start, stop = frozen(start, np.int64), frozen(stop, np.int64)
        lines.hash_ids(text, start, stop, code)
        ids = DocIds(text, start, stop)
        made = cls(name, queries, frozen(bounds, np.int64), ids, frozen(code, np.uint64), value, regrouped=regrouped, rows=rows)
        return replace(made, values=made._checked_values())

    @abc.abstractmethod
    def _checked_values(self) -> np.ndarray:
        """The values as they are kept; or an `InputError`."""

    def _refuse(self, wrong: np.ndarray, rule: str, cure: str) -> None:
        """Complain about the first row that is wrong, if any is."""
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            where = f"{self.query_name(self.query_of(row))}, {self.document_name(row)} ({self.place(row)})"
            raise InputError(f"{self.name}: {self.value_name} {rule}: {self.values[row]} at {where}. {cure}")

    # --- duplicates -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> dict[str, Any]:
        """What has been found out about duplicates."""
        return {}

    def _twins(self, threads: int | None) -> np.ndarray | None:
        """For each row the first row of its query with the same document; None when no document stands twice."""
        if "twins" in self._known:
            found: np.ndarray | None = self._known["twins"]
            return found
        first_of, ids = np.arange(self.n_documents), self.doc_ids

        def block(first: int, last: int) -> None:
            table = matching.table_for(self.offsets, first, last)
            matching.find_twins(ids.text, ids.start, ids.stop, self.code, self.offsets, first, last, table, first_of)

        map_blocks(block, self.offsets, documents=BLOCK, threads=threads)
        self._known["twins"] = None if np.array_equal(first_of, np.arange(self.n_documents)) else first_of
        return self._twins(threads)

    def without_duplicates(self, rule: str, threads: int | None = None) -> Self:
        """These rows with each document once in a query: the first, the last or that of the greatest value; or an error naming two."""
        one_of("duplicates", rule, DUPLICATE_RULES)
        first_of = self._twins(threads)
        if first_of is None:
            return self
        rows = np.flatnonzero(first_of != np.arange(self.n_documents))
        if rule == "error":
            self.refuse_twins(int(first_of[rows[0]]), int(rows[0]))
        if rule not in self._known:
            chosen = np.arange(self.n_documents)
            rows = np.union1d(rows, first_of[rows])
            # Of several assignments to one place the last one stands.
            order = {"first": rows[::-1], "last": rows, "max": rows[np.lexsort((-rows, self.values[rows]))]}[rule]
            chosen[first_of[order]] = order
            kept = np.zeros(self.n_documents, bool)
            kept[chosen[first_of]] = True
            self._known[rule] = self.take(kept)
        unique: Self = self._known[rule]
        return unique

    def refuse_twins(self, one: int, other: int) -> None:
        """The error about a document that stands twice."""
        what = f"{self.document_name(other)} stands twice in {self.query_name(self.query_of(other))} of {self.name}"
        raise InputError(f"{what}: {self.place(one)} and {self.place(other)}. Keep one of them, or say which with duplicates=.")

    def take(self, kept: np.ndarray) -> Self:
        """Some of the rows."""
        ids = DocIds(self.doc_ids.text, frozen(self.doc_ids.start[kept], np.int64), frozen(self.doc_ids.stop[kept], np.int64))
        return replace(
            self,
            offsets=frozen(np.append(0, np.cumsum(kept))[self.offsets], np.int64),
            doc_ids=ids,
            code=frozen(self.code[kept], np.uint64),
            values=frozen(self.values[kept], self.values.dtype),
            rows=np.flatnonzero(kept) if self.rows is None else self.rows[kept],
        )


class Qrels(Pairs):
    """Judgements: a label for each judged document of each query.

    Made by `Qrels.read` from a file of lines ``query iteration document label``, or by `Qrels.from_arrays`. `len` is the number of
    queries; `query_ids`, `offsets` and `labels` are their ids, bounds and labels.

    >>> import fastrank as fr
    >>> qrels = fr.Qrels.read(b"q1 0 d1 1\\nq1 0 d2 0\\nq2 0 d1 2\\n")
    >>> qrels
    Qrels(2 queries, 3 documents, from <bytes>)
    >>> qrels.query_ids.to_pylist(), qrels.offsets.tolist(), qrels.labels.tolist()
    (['q1', 'q2'], [0, 2, 3], [1.0, 0.0, 2.0])
    """

    value_name = "labels"
    form = QRELS

    @property
    def labels(self) -> np.ndarray:
        """float64[n_documents]."""
        return self.values

    @classmethod
    def from_arrays(cls, query_ids: Any, doc_ids: Any, labels: Any, *, offsets: Any = None, name: str = "qrels") -> Self:
        """Judgements from columns: one entry a row, or, with offsets, query_ids with one entry a query.

        Ids are text, bytes or integers (compared by their decimal text) in any form that Arrow, NumPy, pandas or polars have; labels are
        finite numbers; a row with a null label says nothing. Errors: `InputError`.

        >>> import fastrank as fr
        >>> fr.Qrels.from_arrays([1, 1, 2], ["a", "b", "a"], [1, 0, 2]).offsets.tolist()
        [0, 2, 3]
        """
        return cls._of_arrays(query_ids, doc_ids, labels, offsets, name)

    @classmethod
    def from_table(cls, table: Any, *, query: str = "query_id", doc: str = "doc_id", label: str = "label") -> Self:
        """Judgements from a table with these columns: a file, several, Arrow data or a data frame, as `evaluate_table` takes.

        A row with a null label says nothing. Errors: `InputError`.

        >>> import fastrank as fr, pyarrow as pa
        >>> table = pa.table({"query_id": ["q1", "q1"], "doc_id": ["a", "b"], "relevance": [1, 0]})
        >>> fr.Qrels.from_table(table, label="relevance")
        Qrels(1 queries, 2 documents, from the table)
        """
        from fastrank.io.id_tables import read_id_rows
        from fastrank.io.roles import Roles

        name, query_ids, doc_ids, labels = read_id_rows(table, Roles(query, label, (), doc))
        return cls.from_arrays(query_ids, doc_ids, labels, name=name)

    def _checked_values(self) -> np.ndarray:
        self._refuse(~np.isfinite(self.values), "must be finite", "For an unjudged document give a null label, or leave it out.")
        return frozen(self.values, np.float64)

    def check_whole(self, convention: str) -> None:
        """Complain about a label that is not a whole number."""
        cure = "Round them, or use another convention, such as fastrank with gain='linear'."
        self._refuse(self.values != np.trunc(self.values), f"must be whole numbers under the {convention} convention", cure)

    def check_not_negative(self, convention: str) -> None:
        """Complain about a label below 0."""
        cure = "Set it to 0, or leave the document out when it is unjudged."
        self._refuse(self.values < 0, f"must not be negative under the {convention} convention", cure)

    @cached_property
    def float32_labels(self) -> np.ndarray:
        """The labels as float32."""
        return frozen(self.values.astype(np.float32), np.float32)

    @cached_property
    def narrow_labels(self) -> np.ndarray:
        """The labels as float32 where that changes none: half the memory to go through."""
        return self.float32_labels if np.array_equal(self.float32_labels, self.values) else self.values

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest label."""
        return (float(self.values.min()), float(self.values.max())) if len(self.values) else (0.0, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Run(Pairs):
    """The ranking of one system: a score for each document that it retrieved for each query.

    Made by `Run.read` from a file of lines ``query Q0 document rank score tag`` (the rank is not looked at), or by `Run.from_arrays`.
    `len` is the number of queries; `query_ids`, `offsets` and `scores` are their ids, bounds and scores; `tag` and `last_tag` are the first
    and the last line's.

    >>> import fastrank as fr
    >>> run = fr.Run.read(b"q1 Q0 d2 1 0.9 bm25\\nq1 Q0 d1 2 0.5 bm25\\n")
    >>> run
    Run(1 queries, 2 documents, from <bytes>)
    >>> run.tag, run.scores.tolist()
    ('bm25', [0.9, 0.5])
    """

    value_name = "scores"
    form = RUN

    tag: str | None = None
    last_tag: str | None = None
    n_longer: int = 0
    first_longer: Line | None = None

    @property
    def scores(self) -> np.ndarray:
        """float64[n_documents], or float32 or int64 as they were given."""
        return self.values

    @classmethod
    def _of_fields(cls, fields: Fields) -> Self:
        run = super()._of_fields(fields)
        return replace(run, tag=fields.tag, last_tag=fields.last_tag, n_longer=fields.n_longer, first_longer=fields.first_longer)

    @classmethod
    def from_arrays(cls, query_ids: Any, doc_ids: Any, scores: Any, *, offsets: Any = None, name: str = "run") -> Self:
        """A ranking from columns: one entry a row, or, with offsets, query_ids with one entry a query.

        Ids as for `Qrels.from_arrays`; higher scores rank first; a row with a null score was not retrieved. Errors: `InputError`.

        >>> import fastrank as fr
        >>> fr.Run.from_arrays(["q", "q"], ["a", "b"], [0.5, 0.25])
        Run(1 queries, 2 documents, from run)
        """
        return cls._of_arrays(query_ids, doc_ids, scores, offsets, name)

    @classmethod
    def from_table(cls, table: Any, *, query: str = "query_id", doc: str = "doc_id", score: str = "score") -> Self:
        """A ranking from a table with these columns: a file, several, Arrow data or a data frame, as `evaluate_table` takes.

        A row with a null score was not retrieved. Errors: `InputError`.

        >>> import fastrank as fr, pyarrow as pa
        >>> fr.Run.from_table(pa.table({"query_id": ["q1"], "doc_id": ["a"], "bm25": [0.5]}), score="bm25")
        Run(1 queries, 1 documents, from the table)
        """
        from fastrank.io.id_tables import read_id_rows
        from fastrank.io.roles import Roles

        name, query_ids, doc_ids, scores = read_id_rows(table, Roles(query, None, (score,), doc))
        return cls.from_arrays(query_ids, doc_ids, scores, name=name)

    def _checked_values(self) -> np.ndarray:
        if self.values.dtype.kind == "f":
            self._refuse(np.isnan(self.values), "must not be NaN", "Give every retrieved document a number, or a null score to others.")
        return score_array(self.values)

    def refuse_longer(self, convention: str) -> None:
        """Complain about lines with more fields than six."""
        if self.first_longer is not None:
            rule = f"a line of a run has {RUN.n_fields} fields under the {convention} convention, as a document id holds no white space"
            raise self.first_longer.malformed(rule)


def _checked_offsets(offsets: Any, n_queries: int, n_rows: int) -> np.ndarray:
    array, _ = as_array("offsets", offsets)
    bounds = array.astype(np.int64)
    if bounds.shape != (n_queries + 1,) or bounds[0] != 0 or bounds[-1] != n_rows or np.any(np.diff(bounds) < 0):
        raise InputError(f"offsets must be {n_queries + 1} numbers that ascend from 0 to {n_rows}, one more than there are query_ids.")
    return bounds


def _text_if_empty(ids: pa.Array) -> pa.Array:
    return ids.cast(pa.string()) if pa.types.is_null(ids.type) else ids


def _check_each_once(query_ids: pa.Array, name: str) -> None:
    if pc.count_distinct(query_ids).as_py() != len(query_ids):
        counted = pc.value_counts(query_ids)
        twice = counted.filter(pc.greater(counted.field("counts"), 1))[0]["values"].as_py()
        raise InputError(f"query_ids with offsets must name each query of the {name} once: {twice!r} stands there twice.")

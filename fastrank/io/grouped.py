"""`GroupedQrels`: judgements by subtopic or by judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.arrays import as_array, frozen
from fastrank.batch import QueryBatch, id_array
from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.groups import Groups
from fastrank.io.grouping import find_runs, group
from fastrank.io.judgements import Qrels
from fastrank.io.mapping import id_column
from fastrank.io.text import Text, open_text
from fastrank.io.trec import Line, number

_FIELDS = {4: "query, group, document and label", 5: "query, group, part, document and label"}


class GroupedQrels:
    """Judgements in groups: the subtopics of a query (for alpha_nDCG and others), or its judges (for AP_avgjg, PrefsFul and others).

    Made by `GroupedQrels.read` from a file of lines ``query group document label``, or ``query group part document label`` where a judge
    compared documents in parts, or by `GroupedQrels.from_arrays`. To other metrics the label of a document is its greatest.

    >>> import fastrank as fr
    >>> qrels = fr.GroupedQrels.read(b"q1 1 d1 1\\nq1 1 d2 0\\nq1 2 d2 1\\n")
    >>> qrels
    GroupedQrels(1 queries, 2 groups, 2 documents, from <bytes>)
    >>> run = {"q1": {"d1": 0.5, "d2": 0.9, "d3": 0.1}}
    >>> fr.evaluate_run(qrels, run, "StRecall@1,P@1").mean()
    {'StRecall@1': 0.5, 'P@1': 1.0}
    """

    def __init__(self, numbered: Qrels, labels: np.ndarray, groups: Groups) -> None:
        # The documents of all groups with their numbers for labels: a join leaves in the batch which document is where. That of one
        # with a label below 0 is the complement.
        self.numbered, self.labels, self.groups = numbered, labels, groups

    def __len__(self) -> int:
        return len(self.numbered)

    def __repr__(self) -> str:
        counts = f"{len(self)} queries, {len(self.groups.starts) - 1} groups, {len(self.labels)} documents"
        return f"GroupedQrels({counts}, from {self.numbered.name})"

    @property
    def n_documents(self) -> int:
        """Documents that are judged, each once for its query."""
        return len(self.labels)

    @property
    def query_ids(self) -> pa.Array:
        """The ids of the queries, in order of appearance, or sorted when the rows of one stood apart."""
        return self.numbered.query_ids

    @classmethod
    def read(cls, source: Any) -> Self:
        """Read a file given as a path ("-": standard input), bytes or a file open for reading bytes; packed or not.

        Its lines have four fields, as subtopic qrels and trec_eval's qrels_jg and qrels_prefs, or five, as its prefs. Errors: `InputError`
        with the file, the line number and the text of a line that cannot be read.
        """
        text = open_text(source)
        lines = text.read(text.begin, text.end).split(b"\n")
        words = list(map(bytes.split, lines))
        rows = [row for row in words if row and not row[0].startswith(b"#")]
        n_fields = len(rows[0]) if rows else 4
        if n_fields not in _FIELDS or any(len(row) != n_fields for row in rows):
            expected = " or ".join(f"{n} fields ({fields})" for n, fields in _FIELDS.items())
            wrong = next(row for row in rows if len(row) not in _FIELDS or len(row) != n_fields)
            raise _line(text, lines, words, wrong).malformed(f"lines of judgements by group all have {expected}, not {len(wrong)}")
        columns = list(zip(*rows, strict=True)) or [()] * n_fields
        # Few labels are written in many lines.
        value = {word: number(word) for word in set(columns[-1])}
        if not np.isfinite(list(value.values())).all():
            wrong = next(row for row in rows if not np.isfinite(value[row[-1]]))
            raise _line(text, lines, words, wrong).malformed("label must be a finite number")
        labels = [value[word] for word in columns[-1]]
        ids = [pa.array(column, pa.large_binary()) for column in columns[:-1]]
        try:
            ids[0] = ids[0].cast(pa.large_string()).cast(pa.string())
        except pa.ArrowInvalid:
            ids[0] = ids[0].cast(pa.binary())
        parts = ids[2] if len(ids) == 4 else None
        return cls.from_arrays(ids[0], ids[1], ids[-1], labels, parts=parts, name=text.name)

    @classmethod
    def from_arrays(cls, query_ids: Any, group_ids: Any, doc_ids: Any, labels: Any, *, parts: Any = None, name: str = "qrels") -> Self:
        """Judgements from columns, one entry a row.

        Ids as for `Qrels.from_arrays`; labels are finite numbers. With `parts`, the labels of a group are compared within a part, and
        what is preferred to a document in one part to all that the document is preferred to in others. Errors: `InputError`.

        >>> import fastrank as fr
        >>> fr.GroupedQrels.from_arrays(["q", "q"], ["judge 1", "judge 2"], ["a", "a"], [1, 0])
        GroupedQrels(1 queries, 2 groups, 1 documents, from qrels)
        """
        queries = id_array("query_ids", query_ids)
        label, missing = as_array("labels", labels)
        n = len(queries)
        for kind, column in (("group_ids", group_ids), ("doc_ids", doc_ids), ("labels", label), ("parts", parts)):
            if column is not None and len(column) != n:
                raise InputError(f"{kind} must have one entry a row, {n}, not {len(column)}.")
        label = label.astype(np.float64)
        if missing is not None or not np.all(np.isfinite(label)):
            raise InputError(f"{name}: labels must be finite numbers. Leave out a row that says nothing.")
        by_query = group(find_runs(pa.chunked_array([queries])))
        rows = np.arange(n) if by_query.order is None else by_query.order
        query = np.repeat(np.arange(len(by_query.query_ids)), np.diff(by_query.offsets))
        document_ids, document = _codes("doc_ids", doc_ids, by_length=False)
        own_ids, own = _codes("group_ids", group_ids, by_length=True)
        part = np.zeros(n, np.int64) if parts is None else _codes("parts", parts, by_length=True)[1]
        order = np.lexsort((-document[rows], part[rows], own[rows], query))
        label, document, own, part = (column[rows[order]] for column in (label, document, own, part))
        table = _Table(name, by_query.query_ids, own_ids, document_ids, query[order], own, part, document, label)
        groups, docs, greatest = table.arranged()
        numbers = np.arange(len(greatest))
        numbered = Qrels.from_arrays(
            by_query.query_ids,
            document_ids.take(pa.array(docs)),
            np.where(greatest < 0, -1 - numbers, numbers),
            offsets=groups.document_offsets,
            name=name,
        )
        return cls(dataclasses.replace(numbered, regrouped=int(np.count_nonzero(by_query.scattered))), greatest, groups)

    @classmethod
    def from_dicts(cls, queries: Mapping[Any, Any]) -> Self:
        """Judgements from a dict ``{query: {group: {document: label}}}``. Errors: `InputError`.

        >>> import fastrank as fr
        >>> fr.GroupedQrels.from_dicts({"q": {"north": {"a": 1, "b": 0}, "south": {"b": 2}}})
        GroupedQrels(1 queries, 2 groups, 2 documents, from qrels)
        """
        given: object = queries
        if not isinstance(given, Mapping):
            raise InputError(f"qrels by group must be {{query: {{group: {{document: label}}}}}}, not {type(given).__name__}.")
        rows = []
        for query, groups in queries.items():
            for group_id, documents in groups.items() if isinstance(groups, Mapping) else [(None, None)]:
                if not isinstance(documents, Mapping):
                    raise InputError(f"qrels by group must be {{query: {{group: {{document: label}}}}}}, but qrels[{query!r}] is none.")
                rows += [(query, group_id, document, label) for document, label in documents.items()]
        query_ids, group_ids, doc_ids, labels = ([row[i] for row in rows] for i in range(4))
        return cls.from_arrays(
            id_column("qrels: queries", query_ids), id_column("qrels: groups", group_ids), id_column("qrels: documents", doc_ids), labels
        )

    def check(self, convention: Convention) -> None:
        """Complain about labels that a convention does not take."""
        if not convention.negative_labels and np.any(self.labels < 0):
            least = self.labels.min()
            rule = f"labels must not be negative under the {convention.name} convention: {least:g} is one"
            raise InputError(f"{self.numbered.name}: {rule}. Set them to 0, or leave unjudged documents out.")

    def fill(self, batch: QueryBatch) -> QueryBatch:
        """A batch of `numbered` documents with their labels in place of the numbers, and the groups beside them."""
        place = np.where(batch.labels < 0, -1 - batch.labels, batch.labels)
        judged = np.flatnonzero(~np.isnan(place))
        found = place[judged].astype(np.int64)
        label = np.full(len(place), np.nan)
        label[judged] = self.labels[found]
        row = np.full(len(self.labels), -1)
        row[found] = judged
        left = batch.unretrieved_labels
        assert left is not None
        assert batch.query_ids is not None
        left = np.where(left < 0, -1 - left, left).astype(np.int64)
        queries = pc.index_in(batch.query_ids, value_set=self.query_ids).to_numpy().astype(np.int64)
        return dataclasses.replace(
            batch,
            labels=frozen(label, np.float64),
            unretrieved_labels=frozen(self.labels[left], np.float64),
            smallest_label=float(self.labels.min(initial=0.0)),
            largest_label=float(self.labels.max(initial=0.0)),
            groups=dataclasses.replace(self.groups, row=row).take(queries),
        )


def _line(text: Text, lines: list[bytes], words: list[list[bytes]], row: list[bytes]) -> Line:
    """The line that a row was read from."""
    place = next(i for i, each in enumerate(words) if each is row)
    return Line(text.name, place + 1, lines[place].strip())


def _codes(name: str, ids: Any, *, by_length: bool) -> tuple[pa.Array, np.ndarray]:
    """The distinct ids as bytes, in order, numbers by value (by_length) or by text; and the place of each id among them."""
    array = id_array(name, ids)
    if not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type)):
        array = array.cast(pa.large_string())
    encoded = array.cast(pa.large_binary()).dictionary_encode()
    distinct = encoded.dictionary
    keys = [("length", "ascending")] if by_length else []
    order = pc.sort_indices(
        pa.table({"length": pc.binary_length(distinct), "id": distinct}), sort_keys=[*keys, ("id", "ascending")]
    ).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return distinct.take(pa.array(order)), place[encoded.indices.to_numpy()]


@dataclasses.dataclass(frozen=True)
class _Table:
    """The columns, by query, group, part and falling document id; ids by their places among the distinct ones."""

    name: str
    query_ids: pa.Array
    group_ids: pa.Array
    doc_ids: pa.Array
    query: np.ndarray
    group: np.ndarray
    part: np.ndarray
    document: np.ndarray
    label: np.ndarray

    def arranged(self) -> tuple[Groups, np.ndarray, np.ndarray]:
        """The groups, and of their documents the ids, by place, and the greatest labels."""
        n_queries, n_ids = len(self.query_ids), max(len(self.doc_ids), 1)
        self._check_once()
        # One number for each document of each query, so that they ascend by query and falling id.
        keys, number = np.unique(self.query * n_ids + (n_ids - 1 - self.document), return_inverse=True)
        greatest = np.full(len(keys), -np.inf)
        np.maximum.at(greatest, number, self.label)
        new = _changes(self.query, self.group)
        starts = np.append(np.flatnonzero(new), len(new))
        queries = np.arange(n_queries + 1)
        groups = Groups(
            np.searchsorted(self.query[new], queries),
            np.searchsorted(keys // n_ids, queries),
            np.full(len(keys), -1),
            starts,
            number.astype(np.int64),
            self.part,
            self.label,
        )
        self._check_parts(groups)
        return groups, n_ids - 1 - keys % n_ids, greatest

    def _check_once(self) -> None:
        """Complain about a document that stands twice."""
        twice = np.flatnonzero(~_changes(self.query, self.group, self.part, self.document))
        if len(twice):
            raise self._error(int(twice[0]), "stands twice. Keep one of the two rows.")

    def _check_parts(self, groups: Groups) -> None:
        """Complain about parts of a group that contradict each other."""
        goes_on = _changes(self.query, self.group, self.part) & ~_changes(self.query, self.group)
        for g in np.unique(groups.group[goes_on]):
            rows = slice(groups.starts[g], groups.starts[g + 1])
            documents, document = np.unique(self.document[rows], return_inverse=True)
            label, part, n = self.label[rows], self.part[rows], len(documents)
            no, yes = (np.isin(np.arange(n), document[kind]) for kind in (label == 0, label > 0))
            first, second = np.nonzero((label[:, None] > label) & (label >= 0) & (part[:, None] == part))
            before = np.zeros((n, n), bool)
            before[document[first], document[second]] = True
            for c in range(n):
                before |= np.logical_and.outer(before[:, c], before[c])
            for wrong, what in (
                (no & yes, "has the label 0, for what is not relevant, and another."),
                (before.diagonal(), "is preferred to itself, through others."),
            ):
                if wrong.any():
                    raise self._error(int(rows.start + np.flatnonzero(wrong[document])[0]), what)

    def _error(self, row: int, what: str) -> InputError:
        of_group, of_document = (
            ids[int(place[row])].as_py() for ids, place in ((self.group_ids, self.group), (self.doc_ids, self.document))
        )
        group, document = (repr(text.decode("utf-8", "replace")) for text in (of_group, of_document))
        query = self.query_ids[int(self.query[row])].as_py()
        return InputError(f"{self.name}: in query {query!r}, group {group}, document {document} {what}")


def _changes(*columns: np.ndarray) -> np.ndarray:
    """Where a row differs from the one before in any of the columns; the first does."""
    new = np.zeros(len(columns[0]), bool)
    new[:1] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new

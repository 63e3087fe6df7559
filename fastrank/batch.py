"""`QueryBatch`: the one boundary. What passes it is whole queries in flat arrays of known types; nothing after it checks again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank._cached import cached_property
from fastrank.arrays import INT64, as_array, frozen, has_nan, label_array, label_codes, score_array, sizes_between
from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.groups import Groups
from fastrank.per_query import plain, slices_of_queries, weights_of_queries

if TYPE_CHECKING:
    import pyarrow as pa

# From this many documents on, a list given without offsets is more likely a forgotten grouping than one long query.
LIKELY_UNGROUPED = 10_000
# No list is so long: numbers beyond it are as wrong as this one.
_FAR = 2.0**53
# Labels below this are looked up in tables.
MOST_CODES = 64


# Given a query, listed documents of it that share their score with others, and a tie rule ("input" or "docid"): how many documents of
# the same score stand before each.
Settle = Callable[[int, np.ndarray, str], np.ndarray]


@dataclass(frozen=True)
class DocIds:
    """Document ids as bytes: row d's is text[start[d]:stop[d]]. They are compared where scores are equal and nowhere else."""

    text: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    def rows(self, rows: slice) -> DocIds:
        """The ids of some rows."""
        return DocIds(self.text, self.start[rows], self.stop[rows])

    @classmethod
    def of(cls, ids: pa.Array) -> DocIds:
        """Ids from an Arrow array without nulls: text and bytes as they are, anything else by its text, as in run files."""
        import pyarrow as pa

        if not (pa.types.is_binary(ids.type) or pa.types.is_large_binary(ids.type)):
            ids = ids.cast(pa.large_string())
        ids = ids.cast(pa.large_binary())
        _, offsets, text = ids.buffers()
        bounds = np.frombuffer(offsets, np.int64)[ids.offset : ids.offset + len(ids) + 1] if len(ids) else np.zeros(1, np.int64)
        data = np.frombuffer(text, np.uint8) if text is not None else np.zeros(0, np.uint8)
        return cls(frozen(data, np.uint8), frozen(bounds[:-1], np.int64), frozen(bounds[1:], np.int64))


@dataclass(eq=False)  # frozen it would take longer to make than a small batch to rank
class QueryBatch:
    """Whole queries, never changed. Query q's retrieved documents are rows offsets[q] ... offsets[q + 1] of labels and scores.

    labels: one of the label types; NaN for an unjudged document. scores: float32, float64 or int64, or None when the labels already
    stand in rank order. unretrieved_labels: judged documents without a score, with offsets of their own. doc_ids order
    equal scores under ties="docid". Where only the judged documents are known by place, labels lists those alone, query q's from
    found_offsets[q] on, found_scores has their scores, and settle places them among equal scores. Where even the other scores are not
    here, found_ranks says where those documents stand: the first rank of their score and how many share it; scores is found_scores then.
    query_ids, weights and by: one value per query. pooled: a label below 0 marks a document in the pool that nobody judged; it gains
    nothing. groups: judgements by subtopic or judge, of which labels has each document's greatest.
    """

    labels: np.ndarray
    scores: np.ndarray | None
    offsets: np.ndarray
    found_scores: np.ndarray | None = None
    found_offsets: np.ndarray | None = None
    settle: Settle | None = None
    found_ranks: tuple[np.ndarray, np.ndarray] | None = None
    unretrieved_labels: np.ndarray | None = None
    unretrieved_offsets: np.ndarray | None = None
    doc_ids: DocIds | None = None
    query_ids: pa.Array | None = None
    weights: np.ndarray | None = None
    by: Mapping[str, pa.Array] | None = None
    smallest_label: float = 0.0
    largest_label: float = 0.0
    pooled: bool = False
    groups: Groups | None = None
    regrouped: int = 0
    ungrouped: bool = False

    @property
    def n_queries(self) -> int:
        """Queries in the batch."""
        return len(self.offsets) - 1

    @cached_property
    def label_codes(self) -> int:
        """One more than the largest label when labels are whole numbers small enough to index a table, else 0."""
        if not 0 <= self.smallest_label <= self.largest_label < MOST_CODES or not _are_whole(self.labels):
            return 0
        return int(self.largest_label) + 1 if self.unretrieved_labels is None or _are_whole(self.unretrieved_labels) else 0

    @cached_property
    def longest(self) -> int:
        """Most documents that any query has, unretrieved ones included."""
        if self.unretrieved_offsets is None:
            return sizes_between(frozen(self.offsets, INT64))[1]
        return int((np.diff(self.offsets) + np.diff(self.unretrieved_offsets)).max(initial=0))

    @cached_property
    def distinct_labels(self) -> np.ndarray:
        """Every label that occurs, ascending, float64. Finding them costs a sort."""
        labels = np.unique(self.labels[~np.isnan(self.labels)] if self.labels.dtype.kind == "f" else self.labels)
        extra = self.unretrieved_labels
        return labels.astype(np.float64) if extra is None else np.union1d(labels, extra[~np.isnan(extra)]).astype(np.float64)


def _are_whole(labels: np.ndarray) -> bool:
    """Whether all labels are whole numbers; those of unjudged documents (NaN) do not matter."""
    return labels.dtype.kind in "iu" or bool(np.all((labels == np.trunc(labels)) | np.isnan(labels)))


def make_batch(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    sizes: Any = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    weights: Any = None,
    by: Any = None,
    convention: Convention,
    judged_only: bool = False,
    names: pa.Array | None = None,
    source_row: Callable[[int], int] | None = None,
    regrouped: int = 0,
    threads: int | None = 1,
) -> QueryBatch:
    """Check everything that a caller may give and lay it out, on that many threads. Errors are `InputError`s of one line.

    A reader that has grouped the rows itself gives offsets with `names`, the id of each query, and `source_row`, for messages.
    """
    label, unjudged = as_array("labels", labels)
    score, absent = (None, None) if scores is None else as_array("scores", scores, ordinal=convention.scores is None)
    if score is not None and score.shape != label.shape:
        raise InputError(f"scores must have the shape of labels, {label.shape}, not {score.shape}.")
    n_given = (offsets is not None) + (sizes is not None) + (query_ids is not None)
    if n_given > 1:
        given = [name for name, value in (("offsets", offsets), ("sizes", sizes), ("query_ids", query_ids)) if value is not None]
        raise InputError(f"give one of offsets, sizes and query_ids, not {' and '.join(given)}.")
    if label.ndim > 2 or label.ndim == 0:
        raise InputError(f"labels must have one dimension, or two (a query a row), not {label.ndim}.")
    n, n_rows = label.size, len(label)
    ids = names
    order: np.ndarray | None = None
    longest: int | None = None
    if label.ndim == 2:
        if n_given and query_ids is None:
            cause = "offsets" if sizes is None else "sizes"
            raise InputError(f"labels with two dimensions are a query a row: leave out {cause}, or give them flat.")
        longest = label.shape[1] if n else 0
        bounds = frozen(np.arange(0, n + 1, longest) if n else np.zeros(n_rows + 1, INT64), INT64)
        ids = None if query_ids is None else _one_id_a_row(query_ids, n_rows)
        if doc_ids is not None and np.shape(doc_ids) == label.shape:
            doc_ids = np.asarray(doc_ids, dtype=object).ravel()
    elif query_ids is not None:
        ids, bounds, order, regrouped = group_ids(query_ids, n)
        bounds = frozen(bounds, INT64)
    else:
        bounds, longest = _bounds(offsets, sizes, n)
    ungrouped = n >= LIKELY_UNGROUPED and label.ndim == 1 and not n_given
    if label.ndim > 1 or order is not None:
        label, unjudged, score, absent = _flat(label, order), _flat(unjudged, order), _flat(score, order), _flat(absent, order)
    return _lay_out(
        _Rows(label, unjudged, score, absent),
        bounds,
        lambda: _Place(bounds, ids, order, source_row),
        convention,
        judged_only,
        doc_ids,
        longest,
        threads,
        query_ids=ids,
        weights=None if weights is None else weights_of_queries(weights, bounds, order),
        by=None if by is None else slices_of_queries(by, bounds, order),
        regrouped=regrouped,
        ungrouped=ungrouped,
    )


def _flat(column: Any, order: np.ndarray | None) -> Any:
    """A column in the order of its queries."""
    return column if column is None else column.ravel() if order is None else column.ravel()[order]


class _Rows(NamedTuple):
    """The columns as given, flat, in the order of their queries."""

    label: np.ndarray
    unjudged: np.ndarray | None
    score: np.ndarray | None
    absent: np.ndarray | None


class _Place(NamedTuple):
    """Says where a row is, in the caller's words."""

    bounds: np.ndarray
    ids: pa.Array | None
    order: np.ndarray | None = None
    source_row: Callable[[int], int] | None = None

    def query(self, row: int) -> str:
        """The query that a row belongs to."""
        q = int(np.searchsorted(self.bounds, row, side="right")) - 1
        return f"query {self.ids[q].as_py()!r}" if self.ids is not None else f"query {q}"

    def __call__(self, row: int) -> str:
        q = int(np.searchsorted(self.bounds, row, side="right")) - 1
        given = row if self.order is None else int(self.order[row])
        given = given if self.source_row is None else self.source_row(given)
        return f"{self.query(row)}, document {row - int(self.bounds[q])} (row {given})"


def _lay_out(
    rows: _Rows,
    bounds: np.ndarray,
    place: Callable[[], _Place],
    convention: Convention,
    judged_only: bool,
    doc_ids: Any,
    longest: int | None,
    threads: int | None,
    **per_query: Any,
) -> QueryBatch:
    """Check labels and scores, drop what does not take part, and put judged documents without a score aside.

    longest: the length of the longest list, if it is known.
    """
    label, smallest, largest = _checked_labels(rows, place, convention, threads)
    score = None if rows.score is None else _checked_scores(rows.score, rows.absent, convention, place, threads)
    ids = None if doc_ids is None else _checked_ids(doc_ids, bounds, place())
    per_query |= {"smallest_label": smallest, "largest_label": largest, "pooled": convention.trec}
    pool_only = judged_only and convention.trec and smallest < 0
    if rows.absent is not None or (judged_only and rows.unjudged is not None) or pool_only:
        return _set_aside(label, score, bounds, ids, rows, judged_only, pool_only, per_query)
    batch = QueryBatch(label, score, bounds, doc_ids=None if ids is None else DocIds.of(ids), **per_query)
    if longest is not None:
        batch.longest = longest  # read off the offsets when they were checked
    return batch


def _set_aside(
    label: np.ndarray,
    score: np.ndarray | None,
    bounds: np.ndarray,
    ids: pa.Array | None,
    rows: _Rows,
    judged_only: bool,
    pool_only: bool,
    fields: dict[str, Any],
) -> QueryBatch:
    """A batch of the documents that were retrieved (with judged_only: and judged), with the judged ones that were not beside it."""
    judged = np.ones(len(label), bool) if rows.unjudged is None else ~rows.unjudged
    retrieved = np.ones(len(label), bool) if rows.absent is None else ~rows.absent
    aside = judged & ~retrieved
    kept = retrieved & judged & (label >= 0 if pool_only else True) if judged_only else retrieved
    return QueryBatch(
        frozen(label[kept], label.dtype),
        None if score is None else frozen(score[kept], score.dtype),
        frozen(_bounds_of_kept(kept, bounds), INT64),
        unretrieved_labels=frozen(label[aside], label.dtype),
        unretrieved_offsets=frozen(_bounds_of_kept(aside, bounds), INT64),
        doc_ids=None if ids is None else DocIds.of(ids.take(np.flatnonzero(kept))),
        **fields,
    )


def _bounds_of_kept(kept: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(kept)))[bounds]


# --- labels and scores ----------------------------------------------------------------------------------------------------------


def _checked_labels(
    rows: _Rows, place: Callable[[], _Place], convention: Convention, threads: int | None
) -> tuple[np.ndarray, float, float]:
    label = label_array(rows.label)
    if rows.unjudged is None and len(label) and (found := label_codes(label, threads)) is not None:
        return found
    judged = label if rows.unjudged is None else label[~rows.unjudged]
    smallest, largest = (float(judged.min()), float(judged.max())) if judged.size else (0.0, 0.0)
    if judged.size:
        if not (np.isfinite(smallest) and np.isfinite(largest)):
            row = _first(~np.isfinite(label), rows.unjudged)
            raise InputError(f"labels must be finite: {label[row]} at {place()(row)}. For an unjudged document give a null (masked) label.")
        if smallest < 0 and not convention.negative_labels:
            row = _first(label < 0, rows.unjudged)
            cure = "Set it to 0, or mask it when the document is unjudged."
            raise InputError(f"labels must not be negative under the {convention.name} convention: {label[row]} at {place()(row)}. {cure}")
    if convention.labels == "float32" and label.dtype.itemsize > 2 and label.dtype != np.float32:
        label = label.astype(np.float32)
    if rows.unjudged is not None:
        label = np.where(rows.unjudged, np.nan, label.astype(np.float64))
    return frozen(label, label.dtype), smallest, largest


def _checked_scores(
    given: np.ndarray, absent: np.ndarray | None, convention: Convention, place: Callable[[], _Place], threads: int | None
) -> np.ndarray:
    score = score_array(given)
    if score.dtype.kind == "f" and score.size and has_nan(score, threads):
        wrong = np.isnan(score)
        if absent is None or np.any(wrong & ~absent):
            where = place()(_first(wrong, absent))
            cure = "Give every retrieved document a number, or a null (masked) score to a document that was not retrieved."
            raise InputError(f"scores must not be NaN: {where}. {cure}")
    if convention.scores == "float32" or (convention.scores == "float64" and score.dtype == np.int64):
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite there as well
            score = frozen(given.astype(convention.scores), convention.scores)
    return score


def _first(wrong: np.ndarray, masked: np.ndarray | None) -> int:
    return int(np.flatnonzero(wrong if masked is None else wrong & ~masked)[0])


# --- queries --------------------------------------------------------------------------------------------------------------------


def _bounds(offsets: Any, sizes: Any, n: int) -> tuple[np.ndarray, int | None]:
    """The offsets, and the length of the longest list where that is known."""
    if offsets is None and sizes is None:
        return frozen(np.array([0, n]), INT64), n
    name = "offsets" if sizes is None else "sizes"
    array, missing = as_array(name, offsets if sizes is None else sizes)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, not {array.ndim}.")
    if missing is not None:
        raise InputError(f"{name} must not hold nulls: entry {int(np.flatnonzero(missing)[0])} is missing.")
    if array.dtype.kind != "i":
        array = array.astype(np.float64)
        wrong = ~np.isfinite(array) | (array != np.trunc(array))
        if wrong.any():
            raise InputError(f"{name} must be whole numbers: {name}[{_first(wrong, None)}] is not.")
        array = np.clip(array, -_FAR, _FAR)
    counts = frozen(array, INT64)
    if sizes is not None:
        if np.any(counts < 0):
            place = _first(counts < 0, None)
            raise InputError(f"sizes must not be negative: sizes[{place}] = {counts[place]}.")
        bounds = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        if bounds[-1] != n or np.any(counts > n):  # a sum of 64 bits can come round to n
            hint = " These look like query ids: give them as query_ids=." if counts.size == n else ""
            raise InputError(f"sizes must sum to the number of documents, {n}, not {sum(counts.tolist())}.{hint}")
        return frozen(bounds, INT64), None
    if counts.size == 0:
        raise InputError("offsets must have one entry more than there are queries, the first 0; for no query at all give [0].")
    least, most = sizes_between(counts)
    if least < 0:
        i = _first(counts[1:] < counts[:-1], None) + 1
        where = f"offsets[{i}] = {counts[i]} < offsets[{i - 1}] = {counts[i - 1]}"
        raise InputError(f"offsets must not decrease: {where}. For group sizes use sizes=.")
    if counts.item(0) != 0:
        raise InputError(f"offsets must begin with 0: offsets[0] = {counts[0]}. For group sizes use sizes=.")
    if counts.item(-1) != n:
        raise InputError(f"offsets must end with the number of documents, {n}: offsets[{counts.size - 1}] = {counts[-1]}.")
    return counts, most


def group_ids(query_ids: Any, n: int) -> tuple[pa.Array, np.ndarray, np.ndarray | None, int]:
    """Ids of the queries, their offsets, the order that brings their rows together (None: they are), and how many were scattered.

    Queries come in order of appearance, or sorted by id when rows had to be brought together.
    """
    import pyarrow.compute as pc

    ids = id_array("query_ids", query_ids)
    if len(ids) != n:
        raise InputError(f"query_ids must have one entry a document, {n}, not {len(ids)}.")
    runs = pc.run_end_encode(ids)
    values, ends = runs.values, runs.run_ends.to_numpy(zero_copy_only=False).astype(np.int64)
    encoded = values.dictionary_encode()
    codes = encoded.indices.to_numpy()
    n_queries = len(encoded.dictionary)
    if n_queries == len(values):
        return values, np.concatenate(([0], ends)), None, 0
    by_id = pc.sort_indices(encoded.dictionary).to_numpy()
    place = np.empty(n_queries, np.int64)
    place[by_id] = np.arange(n_queries)
    code = place[np.repeat(codes, np.diff(np.concatenate(([0], ends))))]
    order = np.argsort(code, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(code, minlength=n_queries))))
    scattered = int(np.count_nonzero(np.bincount(codes, minlength=n_queries) > 1))
    return encoded.dictionary.take(by_id), bounds, order, scattered


def id_array(name: str, value: Any) -> pa.Array:
    """Ids as an Arrow array without nulls: text, bytes, integers, dates or booleans; categories by their values."""
    import pyarrow as pa

    if isinstance(value, pa.ChunkedArray):
        ids = value.combine_chunks()
    elif isinstance(value, pa.Array):
        ids = value
    else:
        try:
            ids = pa.array(value if hasattr(value, "__arrow_array__") or hasattr(value, "__arrow_c_array__") else plain(value))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, TypeError, OverflowError, UnicodeError) as error:
            raise InputError(f"{name} must be ids of one type, text or integers ({str(error).splitlines()[0]}).") from None
    if isinstance(ids, pa.ChunkedArray):
        ids = ids.combine_chunks()
    if pa.types.is_dictionary(ids.type):
        ids = ids.cast(ids.type.value_type)
    if pa.types.is_string_view(ids.type):
        ids = ids.cast(pa.large_string())
    if pa.types.is_nested(ids.type):
        raise InputError(f"{name} must be ids of one type, text or integers, not {ids.type}: give one id an entry.")
    if pa.types.is_floating(ids.type):
        raise InputError(f"{name} must be text or integers, not floats: 0.1 + 0.2 is not 0.3. Cast them to integers or text.")
    if ids.null_count:
        row = int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(f"{name} must not be null: row {row} is.")
    return ids


def _one_id_a_row(query_ids: Any, n_rows: int) -> pa.Array:
    ids = id_array("query_ids", query_ids)
    if len(ids) != n_rows:
        raise InputError(f"query_ids must have one entry a row of labels, {n_rows}, not {len(ids)}.")
    if len(ids.unique()) < n_rows:
        names = ids.to_pylist()
        row = next(row for row in range(n_rows) if names[row] in names[:row])
        raise InputError(f"query_ids must differ from row to row of labels: {names[row]!r} stands at {names.index(names[row])} and {row}.")
    return ids


def _checked_ids(doc_ids: Any, bounds: np.ndarray, place: _Place) -> pa.Array:
    """Document ids in the order of the rows here, none twice in one query."""
    import pyarrow as pa

    ids = id_array("doc_ids", doc_ids)
    n = int(bounds[-1])
    if len(ids) != n:
        raise InputError(f"doc_ids must have one entry a document, {n}, not {len(ids)}.")
    if place.order is not None:
        ids = ids.take(pa.array(place.order))
    encoded = ids.dictionary_encode()
    query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    pair = query * np.int64(len(encoded.dictionary)) + encoded.indices.to_numpy()
    order = np.argsort(pair, kind="stable")
    same = np.flatnonzero(pair[order][1:] == pair[order][:-1])
    if same.size:
        one, two = int(order[same[0]]), int(order[same[0] + 1])
        raise InputError(f"document {ids[one].as_py()!r} stands twice in one query: {place(one)} and {place(two)}. Keep one of them.")
    return ids


def check_scores(batch: QueryBatch, score: np.ndarray, convention: Convention, threads: int | None = 1) -> np.ndarray:
    """Other scores for the documents of a batch, checked and frozen."""
    n_documents = batch.offsets.item(-1)
    if score.size != n_documents:
        raise InputError(f"scores must have one entry a document, {n_documents}, not {score.size}.")
    flat = score if score.ndim == 1 else score.ravel()
    return _checked_scores(flat, None, convention, lambda: _Place(batch.offsets, batch.query_ids), threads)

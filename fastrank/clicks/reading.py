"""Click logs from tables: a session per row with list columns, or a document shown per row."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.errors import InputError
from fastrank.io.arrow import first_null, is_id, is_number, is_text, numbers, reading, single, valid
from fastrank.io.columns import Columns
from fastrank.io.formats import open_rows
from fastrank.io.judgements import Run
from fastrank.io.recognition import is_table
from fastrank.io.roles import Roles
from fastrank.io.sources import THE_TABLE, open_source, readable_again
from fastrank.io.tables import Scattered, read_columns

ROWS_PER_BATCH = 1 << 20
# What the reader of tables calls the columns of a long table, and what they are called here.
WORDS = {"query": "session", "label": "click", "score": "position", "by": "value"}


@dataclass(frozen=True)
class Names:
    """The columns of a log by what they hold; `columns`: further values that a session has once."""

    doc: str
    click: str
    session: str = ""
    query: str | None = None
    position: str | None = None
    cluster: str | None = None
    weight: str | None = None
    columns: Sequence[str] = ()

    def __post_init__(self) -> None:
        given: object = self.columns
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
            raise InputError(f"columns must be a list of names, such as ['device'], not {given!r}.")

    @property
    def values(self) -> dict[str, str]:
        """The role of each column of what a session has once."""
        roles = (*(("column", name) for name in self.columns), ("cluster", self.cluster), ("query", self.query))
        return {name: role for role, name in roles if name is not None}


# --- a session per row ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ListRoles(Roles):
    """Columns of a table with a session per row; `lists` hold a list, `values` (all of `by`) what a session has once."""

    lists: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str], ...] = ()

    def asked(self) -> Iterator[tuple[str, str]]:
        """The lists, then the values of a session."""
        yield from self.lists
        yield from ((role, name) for role, name in (("weight", self.weight),) if name is not None)
        yield from self.values

    def check_types(self, schema: pa.Schema, text: Any = ()) -> None:
        """Lists where there must be lists, of ids or numbers."""
        for role, name in self.lists:
            of = schema.field(name).type
            if not hasattr(of, "value_type") or pa.types.is_dictionary(of) or pa.types.is_run_end_encoded(of):
                raise InputError(
                    f'{role} column "{name}" is {of}, not a list. Of a table with a row per document shown use ClickLog.from_table.'
                )
            inner = of.value_type
            fits = {"docs": is_id(inner), "clicks": is_number(inner) or is_text(inner), "positions": is_number(inner)}[role]
            if not fits:
                raise InputError(
                    f'{role} column "{name}" is {of}: cast its values to {"integers or text" if role == "docs" else "integers"}.'
                )
        if self.weight is not None and self.weight not in text and not is_number(schema.field(self.weight).type):
            raise InputError(f'weight column "{self.weight}" is {schema.field(self.weight).type}, not a number: cast it to float64.')


def read_lists(table: Any, names: Names) -> dict[str, Any]:
    """The arguments of a `ClickLog`, from a table with a session per row."""
    by = tuple(names.values)
    lists = (("docs", names.doc), ("clicks", names.click), *((("positions", names.position),) if names.position else ()))
    values = tuple((role, name) for name, role in names.values.items())
    roles = _ListRoles("", None, (), weight=names.weight, by=by, lists=lists, values=values)
    source = open_source(table, roles)
    where = THE_TABLE if isinstance(source, pa.Table) else source.where
    batches = source.to_batches() if isinstance(source, pa.Table) else source.batches(roles.columns, ROWS_PER_BATCH >> 4)
    parts = _Parts(where)
    with reading(where):
        for batch in batches:
            parts.add_lists(batch, names.doc, names.click, names.position)
            parts.add_values(batch, names.weight, by)
    return parts.arguments(names, source.schema)


class _Parts:
    """What was read so far, batch by batch. Ids are numbered at once: text repeats, and would fill the memory."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.doc: list[pa.Array] = []
        self.click: list[np.ndarray] = []
        self.position: list[np.ndarray] = []
        self.sizes: list[np.ndarray] = [np.zeros(1, np.int64)]
        self.values: dict[str, list[pa.Array]] = {}
        self.weight: list[np.ndarray] = []
        self.n_sessions = 0

    def add_lists(self, batch: pa.RecordBatch, docs: str, clicks: str, position: str | None) -> None:
        """The lists of a batch of sessions. A null list is an empty one."""
        ids, sizes = self.add_docs(batch.column(docs), docs)
        clicked = batch.column(clicks)
        inner = single(pa.chunked_array([clicked.flatten()]))
        if is_text(inner.type):
            flags = self._flags(ids, sizes, inner, _sizes(clicked), clicks)
        else:
            self._check_sizes("clicks", clicks, sizes, _sizes(clicked))
            flags = self._whole(f'clicks column "{clicks}"', inner, sizes)
        if position is not None:
            ranks = batch.column(position)
            self._check_sizes("positions", position, sizes, _sizes(ranks))
            self.position.append(self._whole(f'positions column "{position}"', single(pa.chunked_array([ranks.flatten()])), sizes))
        self.click.append(flags)
        self.n_sessions += len(batch)

    def add_docs(self, shown: pa.Array, name: str) -> tuple[pa.Array, np.ndarray]:
        """A list column of documents: their ids, and how many there are in each list."""
        sizes = _sizes(shown)
        ids = valid(single(pa.chunked_array([shown.flatten()])))
        if (null := first_null(ids)) is not None:
            self._refuse(f'docs column "{name}" must not hold nulls', sizes, null, "Leave the document out, or name it")
        self.doc.append(ids.dictionary_encode())
        self.sizes.append(sizes)
        return ids, sizes

    def add_values(self, batch: pa.RecordBatch, weight: str | None, by: Sequence[str]) -> None:
        """What each session has once."""
        for name in by:
            self.values.setdefault(name, []).append(valid(single(pa.chunked_array([batch.column(name)]))).dictionary_encode())
        if weight is not None:
            given = numbers(pa.chunked_array([batch.column(weight)]))
            if np.ma.isMaskedArray(given) and given.mask.any():
                raise InputError(f'weight column "{weight}" must not be null: row {int(np.flatnonzero(given.mask)[0])} of a batch is.')
            self.weight.append(np.asarray(given, np.float64))

    def arguments(self, names: Names, schema: pa.Schema) -> dict[str, Any]:
        """All of it, as `ClickLog` takes it."""
        values = {name: _whole_column(self.values.get(name, []), schema, name) for name in names.values}
        return {
            "offsets": np.cumsum(np.concatenate(self.sizes)),
            "doc": _joined_codes(self.doc) if self.doc else pa.nulls(0, pa.string()),
            "click": np.concatenate(self.click) if self.click else np.zeros(0, np.uint8),
            "query": None if names.query is None else values[names.query],
            "position": np.concatenate(self.position) if self.position else None,
            "cluster": None if names.cluster is None else values[names.cluster],
            "weight": None if names.weight is None else np.concatenate([*self.weight, np.zeros(0)]),
            "columns": {name: values[name].dictionary_decode() for name in names.columns},
        }

    def _whole(self, what: str, values: pa.Array, sizes: np.ndarray) -> np.ndarray:
        if (null := first_null(values)) is not None:
            self._refuse(f"{what} must not hold nulls", sizes, null, "Fill it, or leave the session out")
        return np.asarray(numbers(pa.chunked_array([values])))

    def _flags(self, ids: pa.Array, sizes: np.ndarray, clicked: pa.Array, n_clicked: np.ndarray, clicks: str) -> np.ndarray:
        """Which documents of each session stand in its list of clicked ids."""
        if (null := first_null(clicked)) is not None:
            self._refuse(f'clicks column "{clicks}" must not hold nulls', n_clicked, null, "Leave it out of the list")
        known = pa.concat_arrays([ids.cast(pa.large_string()), clicked.cast(pa.large_string())]).dictionary_encode().indices.to_numpy()
        session = np.repeat(np.arange(len(sizes)), sizes)
        n_known = int(known.max(initial=0)) + 1
        shown = session * n_known + known[: len(ids)]
        hit = np.repeat(np.arange(len(n_clicked)), n_clicked) * n_known + known[len(ids) :]
        stray = np.flatnonzero(~np.isin(hit, shown))
        if len(stray):
            at = int(stray[0])
            self._refuse(
                f'clicks column "{clicks}" names {clicked[at].as_py()!r}, which the session does not show',
                n_clicked,
                at,
                "Show it or leave it out",
            )
        return np.isin(shown, hit).astype(np.uint8)

    def _check_sizes(self, role: str, name: str, sizes: np.ndarray, others: np.ndarray) -> None:
        wrong = np.flatnonzero(sizes != others)
        if len(wrong):
            at = int(wrong[0])
            raise InputError(
                f'{role} column "{name}" must have an entry per document shown: in {self.where} row {self.n_sessions + at} has '
                f"{others[at]} of {sizes[at]}. Write 0 for a document without a click."
            )

    def _refuse(self, rule: str, sizes: np.ndarray, at: int, cure: str) -> None:
        row = self.n_sessions + int(np.searchsorted(np.cumsum(sizes), at, side="right"))
        raise InputError(f"{rule}: in {self.where} row {row} does. {cure}.")


def _sizes(lists: pa.Array) -> np.ndarray:
    sizes: np.ndarray = pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    return sizes


def _joined_codes(parts: Sequence[pa.Array]) -> pa.Array:
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


def _whole_column(parts: Sequence[pa.Array], schema: pa.Schema, name: str) -> pa.Array:
    return _joined_codes(parts) if parts else single(pa.chunked_array([], schema.field(name).type)).dictionary_encode()


# --- a document shown per row ---------------------------------------------------------------------------------------------------


def read_rows(table: Any, names: Names) -> dict[str, Any]:
    """The arguments of a `ClickLog`, from a table with a row per document shown, in any order of rows where positions are given."""
    try:
        return _gather(table, names, regroup=False)
    except Scattered:
        return _gather(table, names, regroup=True)


def _gather(table: Any, names: Names, *, regroup: bool) -> dict[str, Any]:
    parts, by, position = _Parts("the table"), tuple(names.values), names.position

    def read() -> Iterator[Columns]:
        return read_columns(
            table,
            query=names.session,
            label=names.click,
            scores=[] if position is None else [position],
            doc=names.doc,
            weight=names.weight,
            by=by,
            rows_per_batch=ROWS_PER_BATCH,
            regroup=regroup,
        )

    batches = _in_our_words(read, names.values)
    types: dict[str, pa.DataType] = {}
    for batch in batches:
        order: Any = slice(None)
        for role, name, values in (("click", names.click, batch.labels), ("position", position, batch.scores.get(position or ""))):
            if values is not None and np.ma.isMaskedArray(values) and np.ma.getmaskarray(values).any():
                row = batch.source_row(int(np.flatnonzero(np.ma.getmaskarray(values))[0]))
                raise InputError(f'{role} column "{name}" must not be null: row {row} is. Fill it or filter the row out.')
        if position is not None:
            ranks = np.asarray(batch.scores[position])
            owner = np.repeat(np.arange(len(batch.offsets) - 1), np.diff(batch.offsets))
            order = np.lexsort((ranks, owner))
            parts.position.append(ranks[order])
        assert batch.doc_ids is not None
        ids = batch.doc_ids if position is None else batch.doc_ids.take(pa.array(order))
        parts.doc.append(ids.dictionary_encode())
        parts.click.append(np.asarray(batch.labels)[order])
        parts.sizes.append(np.diff(batch.offsets))
        for name in by:
            types[name] = batch.by[name].type
            if (role := names.values[name]) != "column" and (null := first_null(batch.by[name])) is not None:
                row = batch.source_row(int(batch.offsets[null]))
                raise InputError(f'{role} column "{name}" must not be null: row {row} is. Fill it.')
            parts.values.setdefault(name, []).append(batch.by[name].dictionary_encode())
        if batch.weights is not None:
            parts.weight.append(batch.weights)
    return parts.arguments(names, pa.schema(list(types.items())))


def _in_our_words(read: Callable[[], Iterator[Columns]], values: dict[str, str]) -> Iterator[Columns]:
    """Batches of the reader of tables, whose messages then call columns what they are here; values: the roles of `by` columns."""
    try:
        yield from read()
    except InputError as error:
        role = re.match(r"by(?=(?:: there is no)? column \"(.*?)\")", str(error))
        if role is not None and role[1] in values:
            words = values[role[1]] + str(error)[role.end() :]
        else:
            words = re.sub(
                r"^(.*?\b)?(query|label|score|by)(?= column \"|: there is no column| names the column)", _word, str(error), count=1
            )
        raise InputError(words.replace("within a query: in query", "within a session: in session")) from None


def _word(found: re.Match[str]) -> str:
    return (found[1] or "") + WORDS[found[2]]


# --- whatever is there ----------------------------------------------------------------------------------------------------------

# Usual names of columns, looked for where none is given.
USUAL = {
    "docs": ("docs", "ranking", "doc_ids", "documents"),
    "session": ("session_id", "session"),
    "doc": ("doc_id", "doc"),
    "click": ("click", "clicked"),
    "clicks": ("clicks", "click"),
    "query": ("query_id", "qid", "query"),
    "position": ("position", "rank"),
    "score": ("score",),
}


def read_log(table: Any, given: dict[str, str | None], columns: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments of a `ClickLog`, from a table of either shape. given: columns by role; None: the usual one, if it is there."""
    schema = _schema_of(table)
    found = {role: given.get(role) or _usual(role, schema) for role in ("session", "doc", "click", "query", "position")}
    cluster, weight = given.get("cluster"), given.get("weight")
    docs = given.get("doc") or _usual("docs", schema)
    if docs is not None and _is_list(schema, docs):
        if given.get("session") is not None:
            raise InputError(
                f'session= names a column of tables with a row per document shown, and column "{docs}" holds lists: leave it out.'
            )
        clicks = given.get("click") or _usual("clicks", schema) or "clicks"
        return read_lists(table, Names(docs, clicks, "", found["query"], given.get("position"), cluster, weight, columns))
    session, doc, click = (found[role] or USUAL[role][0] for role in ("session", "doc", "click"))
    return read_rows(table, Names(doc, click, session, found["query"], found["position"], cluster, weight, columns))


def read_ranking(
    table: Any, query: str | None = None, doc: str | None = None, score: str | None = None
) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """A ranker's lists as `rank_in` takes them: offsets, documents and queries; from a TREC run, or a table of either shape."""
    if not is_table(table):
        return _of_run(Run.read(table))
    schema = _schema_of(table)
    docs = doc or _usual("docs", schema)
    query = query or _usual("query", schema) or USUAL["query"][0]
    if docs is not None and _is_list(schema, docs):
        parts = _Parts("the run")
        roles = _ListRoles("", None, (), by=(query,), lists=(("docs", docs),), values=(("query", query),))
        source = open_source(table, roles)
        for batch in source.to_batches() if isinstance(source, pa.Table) else source.batches(roles.columns, ROWS_PER_BATCH):
            parts.add_docs(batch.column(docs), docs)
            parts.add_values(batch, None, (query,))
        offsets = np.cumsum(np.concatenate(parts.sizes))
        return offsets, _joined_codes(parts.doc).dictionary_decode(), _joined_codes(parts.values[query]).dictionary_decode()
    return _of_run(Run.from_table(table, query=query, doc=doc or _usual("doc", schema) or "doc_id", score=score or "score"))


def _of_run(run: Run) -> tuple[np.ndarray, pa.Array, pa.Array]:
    """The documents of each query by score, those of equal score by id, the last first, as trec_eval has them."""
    ids = run.doc_ids
    names = pa.array(
        [ids.text[a:b].tobytes().decode("utf-8", "replace") for a, b in zip(ids.start.tolist(), ids.stop.tolist(), strict=True)],
        pa.string(),
    )
    place = pc.rank(names, tiebreaker="dense").to_numpy() if len(names) else np.zeros(0, np.int64)
    owner = np.repeat(np.arange(len(run)), np.diff(run.offsets))
    order = np.lexsort((-place.astype(np.int64), -run.scores.astype(np.float64), owner))
    return run.offsets, names.take(pa.array(order)), run.query_ids


def _schema_of(table: Any) -> pa.Schema:
    """Names and types of columns, without reading a row where that can be."""
    if isinstance(table, str | os.PathLike | list | tuple):
        place = readable_again(table)[0]
        with reading(place.where):
            return open_rows(place, Roles("", None, ())).schema
    return table.schema


def _usual(role: str, schema: pa.Schema) -> str | None:
    return next((name for name in USUAL[role] if name in schema.names), None)


def _is_list(schema: pa.Schema, name: str) -> bool:
    of = schema.field(name).type if schema.names.count(name) == 1 else pa.null()
    return pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of)

"""`ClickLog`: what was shown to users and what they clicked, in flat arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._cached import cached_property
from fastrank._kernel import map_blocks
from fastrank.arrays import frozen
from fastrank.batch import id_array
from fastrank.clicks.cells import Cells, add_up
from fastrank.clicks.checks import click_flags, coded, flat, place, positions, session_offsets, session_weights
from fastrank.clicks.pairing import fill_positions, number_pairs
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 16


@dataclass(frozen=True, init=False, repr=False, eq=False)
class ClickLog:
    """Sessions: lists of documents as they were shown, with what was clicked.

    Session s shows rows offsets[s] to offsets[s + 1], from the top down. Everything is checked here, once.

    Parameters
    ----------
    offsets
        int64[n_sessions + 1]: where each session begins. A session may be empty.
    doc
        One document id per row: integers, text or an Arrow array of either. No document twice in a session.
    click
        0 or 1 per row.
    query
        One query id per session. None: a document id stands for a query and its document, or the log has one query.
    position
        The rank of each row, from 1, ascending within a session, gaps allowed. None: 1, 2, ... in each session.
    cluster
        What each session belongs to (a user, a query), for intervals. None: sessions are independent.
    weight
        How many times each session counts. None: once.
    columns
        Further values of each session by name, such as the ranker or the device: strata and segments may name them.

    Attributes
    ----------
    offsets, click, position
        int64[n_sessions + 1], uint8[n_rows], int32[n_rows].
    qd, pair_doc, pair_offsets
        int32[n_rows]: the pair of query and document that each row shows, numbered query by query. int32[n_pairs]: the document of each
        pair, an index of `docs`. int64[n_queries + 1]: query q has the pairs pair_offsets[q] to pair_offsets[q + 1].
    query, queries, docs
        int32[n_sessions], an index of `queries` (zeros where no query was given, and queries is None); distinct ids as Arrow arrays.
    cluster, weight
        int32[n_sessions] and float64[n_sessions], or None.
    columns
        {name: Arrow array[n_sessions]}.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog
    >>> log = ClickLog([0, 3, 5], doc=["a", "b", "c", "b", "a"], click=[0, 1, 0, 1, 0], query=["shoes", "shoes"])
    >>> log
    ClickLog(2 sessions, 5 documents shown, 2 clicks, 1 query, 3 pairs of query and document, positions 1 to 3)
    >>> log.qd.tolist(), log.position.tolist()
    ([0, 1, 2, 1, 0], [1, 2, 3, 1, 2])
    """

    offsets: np.ndarray
    click: np.ndarray
    qd: np.ndarray
    query: np.ndarray
    cluster: np.ndarray | None
    weight: np.ndarray | None
    docs: pa.Array
    queries: pa.Array | None
    pair_doc: np.ndarray
    pair_offsets: np.ndarray
    columns: Mapping[str, pa.Array]

    def __init__(
        self,
        offsets: Any,
        doc: Any,
        click: Any,
        query: Any = None,
        position: Any = None,
        cluster: Any = None,
        weight: Any = None,
        *,
        columns: Mapping[str, Any] | None = None,
    ) -> None:
        n_rows = len(doc)
        bounds = session_offsets(offsets, n_rows)
        n = len(bounds) - 1
        codes, docs = coded("doc", doc, n_rows, "document shown")
        clicked = click_flags(click, bounds, n_rows)
        queries_of, queries = (np.zeros(n, np.int32), None) if query is None else coded("query", query, n, "session")
        qd, pair_doc, pair_offsets = _pairs(bounds, queries_of, 1 if queries is None else len(queries), codes, docs)
        fields: dict[str, Any] = {
            "offsets": bounds,
            "click": clicked,
            "qd": qd,
            "query": frozen(queries_of, np.int32),
            "cluster": None if cluster is None else coded("cluster", cluster, n, "session")[0],
            "weight": None if weight is None else session_weights(weight, n),
            "docs": docs,
            "queries": queries,
            "pair_doc": pair_doc,
            "pair_offsets": pair_offsets,
            "columns": {name: _column(name, value, n) for name, value in (columns or {}).items()},
        }
        if position is not None:
            fields["position"] = positions(position, bounds, n_rows)
        self.__dict__.update(fields)

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        docs: str = "docs",
        clicks: str = "clicks",
        query: str | None = "qid",
        position: str | None = None,
        cluster: str | None = None,
        weight: str | None = None,
        *,
        columns: Sequence[str] = (),
    ) -> ClickLog:
        """A log from a table with a session per row, whose documents and clicks are list columns.

        `table` is a path, several, a pattern or a URI (Parquet, Arrow IPC, ORC, JSON lines), Arrow data of any make or a data frame;
        files are read as a stream. The arguments name its columns, of which `docs`, `clicks` and `position` hold a list per session.
        Clicks are 0 or 1 per document, or, as text, the ids of the documents that were clicked. Errors: `InputError`.

        >>> import pyarrow as pa
        >>> from fastrank.clicks import ClickLog
        >>> table = pa.table({"qid": ["shoes", "hats"], "docs": [["a", "b"], ["c"]], "clicks": [[0, 1], [0]]})
        >>> ClickLog.from_arrow(table)
        ClickLog(2 sessions, 3 documents shown, 1 click, 2 queries, 3 pairs of query and document, positions 1 to 2)
        """
        from fastrank.clicks.reading import Names, read_lists

        return cls(**read_lists(table, Names(docs, clicks, "", query, position, cluster, weight, columns)))

    @classmethod
    def from_table(
        cls,
        table: Any,
        session: str = "session_id",
        doc: str = "doc_id",
        click: str = "click",
        query: str | None = "query_id",
        position: str | None = "position",
        cluster: str | None = None,
        weight: str | None = None,
        *,
        columns: Sequence[str] = (),
    ) -> ClickLog:
        """A log from a table with a row per document shown; what a session has once stands in each of its rows.

        `table` as `evaluate_table` takes it: files in any format, read as a stream, Arrow data or a data frame. The rows of a session
        may stand anywhere and in any order, unless position=None: then each stands below the one before it. Errors: `InputError`.

        >>> import pyarrow as pa
        >>> from fastrank.clicks import ClickLog
        >>> rows = {"session_id": [7, 7, 8], "query_id": ["shoes", "shoes", "hats"], "doc_id": ["b", "a", "c"]}
        >>> ClickLog.from_table(pa.table(rows | {"position": [2, 1, 1], "click": [1, 0, 0]}))
        ClickLog(2 sessions, 3 documents shown, 1 click, 2 queries, 3 pairs of query and document, positions 1 to 2)
        """
        from fastrank.clicks.reading import Names, read_rows

        return cls(**read_rows(table, Names(doc, click, session, query, position, cluster, weight, columns)))

    # --- sizes -------------------------------------------------------------------------------------------------------------------

    @property
    def n_sessions(self) -> int:
        """Sessions, empty ones included."""
        return len(self.offsets) - 1

    @property
    def n_rows(self) -> int:
        """Documents shown, over all sessions."""
        return len(self.click)

    @property
    def n_pairs(self) -> int:
        """Distinct pairs of a query and a document."""
        return len(self.pair_doc)

    @cached_property
    def n_positions(self) -> int:
        """The deepest position shown."""
        if "position" in self.__dict__:
            return int(self.position.max(initial=0))
        return int(np.diff(self.offsets).max(initial=0))

    @cached_property
    def position(self) -> np.ndarray:
        """int32[n_rows]: the rank at which each row was shown, from 1."""
        ranks = np.empty(self.n_rows, np.int32)
        map_blocks(lambda first, last: fill_positions(self.offsets, first, last, ranks), self.offsets, documents=BLOCK, threads=1)
        return frozen(ranks, np.int32)

    @property
    def in_order(self) -> bool:
        """Whether every session shows the positions 1, 2, ... without a gap."""
        return "position" not in self.__dict__ or bool(np.array_equal(self.position, _ranks(self.offsets)))

    @cached_property
    def pair_query(self) -> np.ndarray:
        """int32[n_pairs]: the query of each pair, an index of `queries`."""
        return frozen(np.repeat(np.arange(len(self.pair_offsets) - 1, dtype=np.int32), np.diff(self.pair_offsets)), np.int32)

    @cached_property
    def weights(self) -> np.ndarray:
        """float64[n_sessions]: the weights, 1 where none were given."""
        return frozen(np.ones(self.n_sessions), np.float64) if self.weight is None else self.weight

    def cells(self, order: int = 0, *, threads: int | None = None) -> Cells:
        """Rows added up by pair and position (order 0), and by the position clicked last before (order 1). Kept once made."""
        if order not in (0, 1):
            raise InputError(f"order must be 0 (by position) or 1 (by position and the click before), not {order!r}.")
        name = f"_cells_{order}"
        if name not in self.__dict__:
            made = add_up(self.qd, self.n_pairs, self.offsets, self.position, self.click, self.weight, order=order, threads=threads)
            self.__dict__[name] = made
        cells: Cells = self.__dict__[name]
        return cells

    def with_clicks(self, click: Any) -> ClickLog:
        """The same lists with other clicks, 0 or 1 per row, such as those that `simulate` draws.

        >>> from fastrank.clicks import ClickLog
        >>> ClickLog([0, 2], doc=["a", "b"], click=[0, 0]).with_clicks([1, 1])
        ClickLog(1 session, 2 documents shown, 2 clicks, 2 documents, positions 1 to 2)
        """
        other = object.__new__(ClickLog)
        # What begins with an underscore was counted from the clicks.
        other.__dict__.update({name: value for name, value in self.__dict__.items() if not name.startswith("_")})
        other.__dict__["click"] = click_flags(click, self.offsets, self.n_rows)
        return other

    def __repr__(self) -> str:
        def counted(n: int, one: str, many: str) -> str:
            return f"{n} {one if n == 1 else many}"

        parts = [
            counted(self.n_sessions, "session", "sessions"),
            counted(self.n_rows, "document shown", "documents shown"),
            counted(int(np.count_nonzero(self.click)), "click", "clicks"),
        ]
        if self.queries is not None:
            parts.append(counted(len(self.queries), "query", "queries"))
            parts.append(counted(self.n_pairs, "pair", "pairs") + " of query and document")
        else:
            parts.append(counted(self.n_pairs, "document", "documents"))
        if self.n_positions:
            parts.append(f"positions 1 to {self.n_positions}")
        return f"ClickLog({', '.join(parts)})"


def _ranks(offsets: np.ndarray) -> np.ndarray:
    return np.arange(1, int(offsets[-1]) + 1) - np.repeat(offsets[:-1], np.diff(offsets))


def _pairs(
    offsets: np.ndarray, query: np.ndarray, n_queries: int, doc: np.ndarray, docs: pa.Array
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The pair of each row, the document of each pair and the first pair of each query."""
    from fastrank.io.grouping import stable_order

    n_docs = len(docs)
    order = stable_order(query.astype(np.int64), n_queries)
    qd, pair_doc = np.empty(len(doc), np.int32), np.empty(len(doc), np.int32)
    found = np.zeros(n_queries + 2, np.int64)
    found[-1] = -1
    seen, shown, code = np.zeros(n_docs, np.int32), np.zeros(n_docs, np.int64), np.zeros(n_docs, np.int32)
    number_pairs(frozen(order, np.int64), offsets, frozen(query, np.int32), doc, seen, shown, code, qd, pair_doc, found)
    if found[-1] >= 0:
        row = int(found[-1])
        raise InputError(
            f"doc must not show a document twice in a session: {docs[int(doc[row])].as_py()!r} is shown again at {place(offsets, row)}. "
            "Keep the first place at which it was shown."
        )
    n_pairs = int(found[0])
    return frozen(qd, np.int32), frozen(pair_doc[:n_pairs].copy(), np.int32), frozen(np.append(0, np.cumsum(found[1:-1])), np.int64)


def _column(name: str, value: Any, n: int) -> pa.Array:
    import pyarrow as pa

    array = value if isinstance(value, pa.Array | pa.ChunkedArray) else None
    if array is None:
        numbers = isinstance(value, np.ndarray) and value.dtype.kind == "f"
        array = pa.array(flat(name, value, n, "session")) if numbers else id_array(name, value)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if len(array) != n:
        raise InputError(f"column {name!r} must have one entry per session, {n}, not {len(array)}.")
    return array

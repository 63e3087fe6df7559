"""Where a new ranker would put the documents that were shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank._kernel import kernel
from fastrank.arrays import frozen
from fastrank.batch import id_array
from fastrank.clicks.checks import check_log, flat, whole
from fastrank.clicks.rates import check_cutoff
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.clicks.log import ClickLog


class Placement(NamedTuple):
    """The ranks of a new ranker: int32[n_rows], that of each document shown, 0 where it drops it; and what nobody can tell.

    unsupported: float64[n_queries], the share of its top k whose documents were never shown for the query; NaN for a query that it does
    not rank.
    """

    new_position: np.ndarray
    unsupported: np.ndarray


@kernel
def place_pairs(
    query: Any, offsets: Any, doc: Any, pair_offsets: Any, pair_doc: Any, k: Any, seen: Any, code: Any, rank: Any, unknown: Any, found: Any
) -> None:
    """Rank the pairs by the runs of their queries. unknown: per query the documents of the top k that are no pair of it.

    seen, code: per document the query (+ 1) that had it last, and its pair; a document seen in a run is marked below 0. found[0]: a row of
    the run that names a document again, or -1.
    """
    for r in range(query.shape[0]):
        q = query[r]
        if q < 0:
            continue
        for p in range(pair_offsets[q], pair_offsets[q + 1]):
            seen[pair_doc[p]] = q + 1
            code[pair_doc[p]] = p
        missing = 0
        for i in range(offsets[r], offsets[r + 1]):
            d = doc[i]
            if seen[d] == -q - 1 and found[0] < 0:
                found[0] = i
            if seen[d] == q + 1:
                rank[code[d]] = i - offsets[r] + 1
            elif i - offsets[r] < k:
                missing += 1
            seen[d] = -q - 1
        depth = min(k, offsets[r + 1] - offsets[r])
        unknown[q] = missing / depth if depth > 0 else 0.0


def rank_in(log: ClickLog, run_offsets: Any, run_doc: Any, run_query: Any, k: int = 10) -> Placement:
    """Where another ranker puts the documents that the log shows: the `new_position` of `evaluate`.

    Parameters
    ----------
    run_offsets
        int64[n_run_queries + 1]: query r of the run has the documents run_offsets[r] to run_offsets[r + 1], the best first.
    run_doc
        Their ids, of the log's kind.
    run_query
        The id of each query of the run, each once. Queries that the log does not have are left out.
    k
        The depth for which `unsupported` is counted.

    A document that the run does not have has rank 0, and so have all of a query that it does not rank. Errors: `InputError`.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, rank_in
    >>> log = ClickLog([0, 3], doc=["a", "b", "c"], click=[0, 0, 1], query=["shoes"])
    >>> placed = rank_in(log, [0, 4], ["c", "z", "a", "y"], ["shoes"], k=4)
    >>> placed.new_position.tolist(), placed.unsupported.tolist()
    ([3, 0, 1], [0.5])
    """
    check_log(log)
    k = check_cutoff(k)
    if log.queries is None:
        raise InputError("rank_in matches documents query by query, and the log has no queries. Give query= to ClickLog.")
    query_ids, doc_ids = id_array("run_query", run_query), id_array("run_doc", run_doc)
    bounds = whole("run_offsets", flat("run_offsets", run_offsets, len(query_ids) + 1, "query of the run, and one more"))
    if bounds[0] != 0 or bounds[-1] != len(doc_ids) or np.any(bounds[1:] < bounds[:-1]):
        raise InputError(f"run_offsets must ascend from 0 to the number of documents of the run, {len(doc_ids)}.")
    if len(query_ids.unique()) < len(query_ids):
        names = query_ids.to_pylist()
        again = next(name for i, name in enumerate(names) if name in names[:i])
        raise InputError(f"run_query must name each query once, and {again!r} is there again. Bring its documents together.")
    queries, docs = _codes(query_ids, log.queries), _codes(doc_ids, log.docs, keep_others=True)
    if len(queries) and (queries < 0).all():
        one, other = (ids[0].as_py() if len(ids) else None for ids in (query_ids, log.queries))
        raise InputError(
            f"the run and the log have no query in common: such as {one!r} there and {other!r} here. Name queries alike in both."
        )
    n_docs = max(len(log.docs), int(docs.max(initial=-1)) + 1)
    rank, unknown, found = np.zeros(log.n_pairs, np.int32), np.full(len(log.queries), np.nan), np.full(1, -1, np.int64)
    seen, code = np.zeros(n_docs, np.int64), np.zeros(n_docs, np.int32)
    place_pairs(queries, frozen(bounds, np.int64), docs, log.pair_offsets, log.pair_doc, k, seen, code, rank, unknown, found)
    if found[0] >= 0:
        at = int(found[0])
        r = int(np.searchsorted(bounds, at, side="right")) - 1
        raise InputError(
            f"run_doc must name a document once per query: {doc_ids[at].as_py()!r} is there again for {query_ids[r].as_py()!r}."
        )
    return Placement(frozen(rank[log.qd], np.int32), frozen(unknown, np.float64))


def _codes(ids: pa.Array, known: pa.Array, *, keep_others: bool = False) -> np.ndarray:
    """The place of each id among the known ones; -1 for others, or, to tell them apart, numbers beyond. Integers equal their text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if ids.type != known.type:
        ids, known = (each.cast(pa.large_string()) for each in (ids, known))
    places = pc.index_in(ids, value_set=known)
    codes: np.ndarray = places.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    if keep_others and places.null_count:
        other = codes < 0
        codes[other] = len(known) + ids.filter(pa.array(other)).dictionary_encode().indices.to_numpy()
    return frozen(codes, np.int32)

"""Dicts of dicts, ``{query: {document: label}}`` and ``{query: {document: score}}``.

Two dicts are joined by asking the run for the documents that were judged, which are few; of the many that it holds, only the scores
are read. Whatever is out of the ordinary (ids of two types, integers that no double holds, values that are no numbers, no query in
common) takes the general way over columns instead, which has the same bits and says what is wrong.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, compress, repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastrank.arrays import frozen
from fastrank.batch import QueryBatch
from fastrank.convention import Convention
from fastrank.errors import InputError
from fastrank.io.arrow import MOST_EXACT
from fastrank.io.dicts import read_numbers
from fastrank.io.join import Joined
from fastrank.io.judgements import Qrels, Run

Dicts = Mapping[Any, Any]

_NOTHING: dict[Any, Any] = {}
_TABLES = {dict, defaultdict, Counter}


def doubles(values: Iterable[Any], n: int) -> np.ndarray | None:
    """n real numbers of any type as doubles; None when one is text, nothing, no real number, or too large.

    Packing is faster than NumPy, and stricter: NumPy reads numbers out of text and takes None for NaN.
    """
    return _packed("d", np.empty(n), values)


def integers(values: Iterable[Any], n: int) -> np.ndarray | None:
    """n integers of any type as 64-bit integers; None when one is none, or too large: NumPy would cut off a fraction."""
    return _packed("q", np.empty(n, np.int64), values)


def _packed(kind: str, out: np.ndarray, values: Iterable[Any]) -> np.ndarray | None:
    """Fill an array with numbers; None when one is no such."""
    try:
        struct.pack_into(f"{len(out)}{kind}", out.data, 0, *values)
    except struct.error:
        return None
    return out


# --- two dicts ------------------------------------------------------------------------------------------------------------------


def join_dicts(qrels: Dicts, run: Dicts, convention: Convention, *, skip_missing: bool, judged_only: bool) -> Joined | None:
    """Match documents by id, query by query, as `join` does; None when the general way must be taken."""
    pair = _Pair.of(qrels, run, convention)
    if pair is None:
        return None
    queries = np.flatnonzero(pair.met) if skip_missing else np.arange(len(pair.met))
    chosen = np.repeat(pair.met | (not skip_missing), np.diff(pair.listed))
    absent = chosen & np.isnan(pair.found)
    kept = chosen & ~absent
    if judged_only and convention.trec:
        kept &= pair.labels >= 0

    all_kept = bool(kept.all())  # the usual case, which takes no copies

    def take(column: np.ndarray) -> np.ndarray:
        return frozen(column if all_kept else column[kept], column.dtype)

    def offsets(rows: np.ndarray) -> np.ndarray:
        return frozen(np.searchsorted(np.flatnonzero(rows), np.append(pair.listed[queries], pair.listed[-1])), np.int64)

    labels = pair.labels.astype(np.float32)
    if convention.labels != "float32" and not np.array_equal(labels, pair.labels):
        labels = pair.labels
    found_scores, found_offsets = take(pair.found), offsets(kept)
    batch = QueryBatch(
        take(labels),
        found_scores if judged_only else frozen(pair.scores, pair.scores.dtype),
        found_offsets if judged_only else frozen(np.append(pair.offsets[queries], pair.offsets[-1]), np.int64),
        found_scores=found_scores,
        found_offsets=found_offsets,
        settle=_Ties(pair, queries, np.flatnonzero(kept), found_offsets if judged_only else None),
        unretrieved_labels=frozen(labels[absent], labels.dtype),
        unretrieved_offsets=offsets(absent),
        query_ids=id_column("qrels: queries", [pair.queries[q] for q in queries.tolist()]),
        smallest_label=float(pair.labels.min()) if len(labels) else 0.0,
        largest_label=float(pair.labels.max()) if len(labels) else 0.0,
        pooled=convention.trec,
    )
    n_met = int(np.count_nonzero(pair.met))
    return Joined(batch, len(qrels) - n_met, len(run) - n_met)


class _Pair(NamedTuple):
    """What was read of two dicts, query by query in the order of the qrels.

    labels and found are of the judged documents: their labels, and their scores, NaN where the run does not have them; query q's begin
    at listed[q]. scores are of all documents of the run, from offsets[q] on. judged and ranked are the dicts themselves, ranked empty
    for the queries that the run does not have: `met` is False there.
    """

    queries: list[Any]
    met: np.ndarray
    judged: list[dict[Any, Any]]
    labels: np.ndarray
    found: np.ndarray
    listed: np.ndarray
    ranked: list[dict[Any, Any]]
    scores: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, qrels: Any, run: Any, convention: Convention) -> _Pair | None:
        """Read both; None when anything in them is out of the ordinary."""
        if not _are_plain(qrels, run):
            return None
        met = np.fromiter(map(run.__contains__, qrels), bool, len(qrels))
        judged, ranked = [_as_plain(each) for each in qrels.values()], [_as_plain(run.get(query, _NOTHING)) for query in qrels]
        others = [_as_plain(run[query]) for query in run.keys() - qrels.keys()]
        kind = _kind_of_ids([*judged, *ranked, *others])
        if kind is None or not met.any():
            return None
        listed, offsets, further = map(_begins, (judged, ranked, others))
        read = read_numbers(judged, ranked, listed, offsets)
        unjudged = read_numbers([_NOTHING] * len(others), others, np.zeros(len(others) + 1, np.int64), further)
        if read is None or unjudged is None or not _are_legal(read.labels, convention):
            return None
        most = MOST_EXACT if convention.scores is None else math.inf
        if any(numbers.has_nan or numbers.largest >= most for numbers in (read, unjudged)):
            return None
        scores, found = read.scores, read.found
        if convention.scores == "float32" or read.is_single:  # single precision is compared twice as fast
            with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, as in C
                scores, found = scores.astype(np.float32), found.astype(np.float32)
        pair = cls(list(qrels), met, judged, read.labels, found, listed, ranked, scores, offsets)
        return pair if pair.names_alike(read.all_text, _OTHERWISE[kind]) else None

    def names_alike(self, all_text: np.ndarray, otherwise: Callable[[list[Any]], Iterator[Any]]) -> bool:
        """Whether no judged document that was not found is in the run after all, under a name of another type."""
        absent = np.isnan(self.found)
        queries = np.unique(np.searchsorted(self.listed, np.flatnonzero(absent), "right") - 1)
        for q in queries[~all_text[queries]].tolist():
            names = compress(self.judged[q], absent[self.listed[q] : self.listed[q + 1]].tolist())
            try:
                if self.ranked[q] and not self.ranked[q].keys().isdisjoint(otherwise(list(names))):
                    return False
            except (TypeError, ValueError):  # an id of another type, or one that cannot be written in another
                return False
        return True


def _as_plain(documents: dict[Any, Any]) -> dict[Any, Any]:
    """The same items in a dict that is nothing but its table: others may have an order of their own."""
    return documents if type(documents) in _TABLES else dict(documents)


def _begins(dicts: list[dict[Any, Any]]) -> np.ndarray:
    """Where the documents of each begin when they are listed one after another."""
    return np.append(0, np.cumsum(list(map(len, dicts)), dtype=np.int64))


def _are_plain(qrels: Any, run: Any) -> bool:
    """Whether these are dicts of dicts whose queries are all named by text, or all by integers, or all by bytes."""
    if not isinstance(qrels, dict) or not isinstance(run, dict):
        return False
    kinds = set(map(type, chain(qrels, run)))
    return len(kinds) == 1 and kinds <= _OTHERWISE.keys() and all(isinstance(each, dict) for each in chain(qrels.values(), run.values()))


def _kind_of_ids(dicts: list[dict[Any, Any]]) -> type | None:
    """The type of the first id in each dict; None when there are several. Of ids that are not found, every one is looked at later."""
    kinds = {type(next(iter(documents))) for documents in dicts if documents}
    return kinds.pop() if len(kinds) == 1 and kinds <= _OTHERWISE.keys() else None


def _are_legal(labels: np.ndarray, convention: Convention) -> bool:
    whole = not convention.trec or np.array_equal(labels, np.trunc(labels))
    return bool(np.isfinite(labels).all()) and whole and (convention.negative_labels or not np.any(labels < 0))


def _keep_their_order(scores: np.ndarray) -> bool:
    """Whether no integer is beyond the last that doubles tell apart. NaN is none."""
    return not np.any((np.abs(scores) >= MOST_EXACT) & np.isfinite(scores))


# --- ids in other words ---------------------------------------------------------------------------------------------------------


def _of_text(ids: list[str]) -> Iterator[Any]:
    return chain(map(str.encode, ids), map(int, filter(str.isdecimal, ids)))


def _of_bytes(ids: list[bytes]) -> Iterator[Any]:
    texts = list(map(bytes.decode, ids, repeat("utf-8"), repeat("replace")))
    return chain(texts, map(int, filter(str.isdecimal, texts)))


def _of_integers(ids: list[int]) -> Iterator[Any]:
    texts = list(map(int.__repr__, ids))
    return chain(texts, map(str.encode, texts))


# The types of ids, and how the same ids are written in the others.
_OTHERWISE: dict[type, Callable[[list[Any]], Iterator[Any]]] = {str: _of_text, bytes: _of_bytes, int: _of_integers}


def _spelling(name: Any) -> bytes:
    """An id as it is written in files."""
    if isinstance(name, bytes):
        return name
    if isinstance(name, str | int):
        return str(name).encode("utf-8", "surrogatepass")
    raise InputError(f"documents of the run must be named by text, bytes or integers, not {name!r}.")


# --- equal scores ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Ties:
    """Places judged documents among all of the same score: called only where some share one.

    queries[q] is query q's place in the pair, places[row] that of a judged document; among: where query q's rows begin when only
    they stand in the ranking.
    """

    pair: _Pair
    queries: np.ndarray
    places: np.ndarray
    among: np.ndarray | None

    def __call__(self, query: int, rows: np.ndarray, rule: str) -> np.ndarray:
        """How many documents of the same score stand before each."""
        pair, q = self.pair, int(self.queries[query])
        names, scores = list(pair.ranked[q]), pair.scores[pair.offsets[q] : pair.offsets[q + 1]]
        if self.among is not None:
            kept = set(self._names(q, np.arange(*self.among[query : query + 2])))
            there = np.fromiter(map(kept.__contains__, names), bool, len(names))
            names, scores = list(compress(names, there.tolist())), scores[there]
        levels, own_level = np.unique(pair.found[self.places[rows]], return_inverse=True)
        level = np.minimum(np.searchsorted(levels, scores), len(levels) - 1)
        tied: list[list[Any]] = [[] for _ in levels]
        for name, place in compress(zip(names, level.tolist(), strict=True), (levels[level] == scores).tolist()):
            tied[place].append(name)
        mine: list[list[int]] = [[] for _ in levels]
        for row, place in enumerate(own_level.tolist()):
            mine[place].append(row)
        own, before = self._names(q, rows), np.empty(len(rows), np.int64)
        for group, here in zip(tied, mine, strict=True):
            before[here] = (_larger_ids if rule == "docid" else _earlier)(group, [own[row] for row in here])
        return before

    def _names(self, q: int, rows: np.ndarray) -> list[Any]:
        judged = list(self.pair.judged[q])
        return [judged[place] for place in (self.places[rows] - self.pair.listed[q]).tolist()]


def _earlier(names: list[Any], some: list[Any]) -> list[int]:
    """The place of some names among all."""
    return list(map(dict(zip(names, range(len(names)), strict=True)).__getitem__, some))


def _larger_ids(names: list[Any], some: list[Any]) -> list[int]:
    """How many names are larger in bytes than each of some."""
    if set(map(type, names)) != {str}:  # Python orders text by code points, as UTF-8 does
        names, some = list(map(_spelling, names)), list(map(_spelling, some))
    names.sort()
    return [len(names) - bisect_right(names, name) for name in some]


# --- one dict, in general -------------------------------------------------------------------------------------------------------


def qrels_of(queries: Dicts) -> Qrels:
    """Judgements from a dict of dicts."""
    query_ids, doc_ids, given, offsets = _columns("qrels", "label", queries)
    labels = doubles(given, len(given))
    if labels is None or not np.isfinite(labels).all():
        labels = read_each("qrels", "labels", queries, math.isfinite)
    return Qrels.from_arrays(query_ids, doc_ids, labels, offsets=offsets)


def run_of(queries: Dicts, *, exact: bool) -> Run:
    """A ranking from a dict of dicts; exact: integers that are no doubles keep their order, and so does what stands beside them."""
    query_ids, doc_ids, given, offsets = _columns("run", "score", queries)
    scores = doubles(given, len(given))
    is_beyond = scores is None
    if scores is None or np.isnan(scores).any():
        scores = read_each("run", "scores", queries, lambda score: score == score)
    if exact and (is_beyond or not _keep_their_order(scores)):
        # Python compares numbers of all types exactly.
        plain = [value.item() if isinstance(value, np.generic) else value for value in given]
        place_of = {value: place for place, value in enumerate(sorted(set(plain)))}
        scores = np.array([place_of[value] for value in plain], np.int64)
    return Run.from_arrays(query_ids, doc_ids, scores, offsets=offsets)


def _columns(name: str, value_name: str, queries: Dicts) -> tuple[pa.Array, pa.Array, list[Any], np.ndarray]:
    """Queries, documents, numbers, and where each query begins."""
    for query, documents in queries.items():
        if not isinstance(documents, Mapping):
            shape = f"{{query: {{document: {value_name}}}}}"
            raise InputError(f"{name} must be {shape}, but {name}[{query!r}] is no dict ({type(documents).__name__}): {documents!r:.60}.")
    query_ids = id_column(f"{name}: queries", list(queries))
    doc_ids = id_column(f"{name}: documents", [document for documents in queries.values() for document in documents])
    values = [value for documents in queries.values() for value in documents.values()]
    return query_ids, doc_ids, values, np.append(0, np.cumsum([len(documents) for documents in queries.values()], dtype=np.int64))


def id_column(what: str, ids: list[Any]) -> pa.Array:
    """Ids in a list as an Arrow array: all text, all bytes, or all integers, those beyond 64 bits as text."""
    known = {kind: _plain_type(kind) for kind in dict.fromkeys(map(type, ids))}
    if None in known.values():
        odd = next(each for each in ids if known[type(each)] is None)
        cure = "Cast them to integers or text" if isinstance(odd, float) else "Name them by their text"
        raise InputError(f"{what} must be named by text, bytes or integers, not {odd!r} ({type(odd).__name__}). {cure}.")
    if len(set(known.values())) > 1:
        shown = " and ".join(f"{next(each for each in ids if type(each) is kind)!r} ({kind.__name__})" for kind in known)
        raise InputError(f"{what} must be named by ids of one type, not by {shown}. Write all of them as text.")
    try:
        return pa.array(list(map(int, ids)) if any(issubclass(kind, np.integer) for kind in known) else ids)
    except OverflowError:
        return pa.array(list(map(str, ids)))
    except UnicodeEncodeError as error:
        raise InputError(f"{what} must be named by text that UTF-8 can hold, not {error.object!r}. Give it as bytes.") from None


def _plain_type(kind: type) -> type | None:
    """The type of ids that a type is one of; True is no 1 here."""
    if issubclass(kind, np.integer):
        return int
    return None if kind is bool else next((known for known in _OTHERWISE if issubclass(kind, known)), None)


def read_each(name: str, value_name: str, queries: Dicts, is_legal: Callable[[float], bool]) -> np.ndarray:
    """Numbers one by one, those beyond all doubles as infinite; or an error that says which is none."""
    found = []
    for query, documents in queries.items():
        for document, value in documents.items():
            number = _double(value)
            if number is None or not is_legal(number):
                rule = "must be numbers" if number is None else "must not be NaN" if math.isnan(number) else "must be finite"
                cure = "Convert it to a number." if isinstance(value, str | bytes) else "Leave a document out that has none."
                raise InputError(f"{name}: {value_name} {rule}: {value!r:.60} at query {query!r}, document {document!r}. {cure}")
            found.append(number)
    return np.array(found, np.float64)


def _double(value: Any) -> float | None:
    """The nearest double; None for what is no real number, and for text."""
    if isinstance(value, str | bytes | bytearray):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None

"""`Judged`: the documents of a block of queries that count; `JudgedRanks`: where they stand."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank._cached import cached_property
from fastrank.arrays import INT64, frozen, sizes_between
from fastrank.gains import Gain, gain_table, gains_of, rises
from fastrank.ranking import count, scan, sort, ties

if TYPE_CHECKING:
    from fastrank.batch import DocIds, QueryBatch, Settle

# Ranks are below WHOLE, the cutoff of a metric that judges the whole list; judged documents that were not retrieved lie beyond it.
WHOLE = 1 << 61
UNRETRIEVED = 1 << 62
# A tie rule that trec_eval has in its preference measures alone.
ASCENDING = "ascending_docid"

# Counting costs about 0.06 ns a document and counted document, sorting about 10 ns a document: they meet near here.
MOST_COUNTED = 192


def own_lines(n: int, dtype: Any = np.float64) -> np.ndarray:
    """Zeros that share no line of the cache with anything else: two threads that write to one line wait for each other."""
    return np.zeros(n + 32, dtype)[16 : 16 + n]


class _Listed:
    """An attribute of the listing, which is made when any is first asked for: a walk down labels in rank order never asks."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, judged: Judged, owner: type) -> Any:
        judged.list_documents()
        return getattr(judged, self.name)


class Judged:
    """What the labels alone say of queries first ... last - 1. Kept between calls when only the scores change.

    row and label list the retrieved documents that count, query q's from starts[q] to starts[q + 1]; rows are relative to the block
    (where the judged documents are listed apart from the lists: places in that listing).
    all_labels and all_starts list the unretrieved ones too: the ideal and the number of relevant documents come from them. groups:
    judgements by subtopic or judge. `kept` holds whatever metrics work out from these alone.
    """

    row, label, starts, all_labels, all_starts = _Listed(), _Listed(), _Listed(), _Listed(), _Listed()
    unretrieved_label, unretrieved_starts = _Listed(), _Listed()

    def __init__(self, batch: QueryBatch, first: int, last: int, least: float) -> None:
        self.first, self.last, self._batch, self.least = first, last, batch, least
        self.n_queries = last - first
        offsets = batch.offsets[first : last + 1]
        self.base = offsets.item(0)
        self.offsets = frozen(offsets - self.base, INT64) if self.base else offsets
        self.n_documents = self.offsets.item(-1)
        self._listed, self.found_base, self.n_listed = self.offsets, self.base, self.n_documents
        if batch.found_offsets is not None:
            self.found_base = int(batch.found_offsets[first])
            self._listed = frozen(batch.found_offsets[first : last + 1] - self.found_base, INT64)
            self.n_listed = int(self._listed[-1])
        self.labels = batch.labels[self.found_base : self.found_base + self.n_listed]
        self.codes, self.smallest, self.pooled, self.longest = batch.label_codes, batch.smallest_label, batch.pooled, batch.longest
        self.kept: dict[object, Any] = {}
        self.groups = None if batch.groups is None else batch.groups.block(first, last, self.base)

    def list_documents(self) -> None:
        """List the documents that count: `row`, `label`, `starts`, and the same with the unretrieved ones."""
        batch = self._batch
        row, label, starts = _gather(self.labels, self._listed, self.least)
        every, every_start, unretrieved, unretrieved_starts = label, starts, None, None
        if batch.unretrieved_labels is not None and batch.unretrieved_offsets is not None:
            outer = batch.unretrieved_offsets[self.first : self.last + 1]
            _, other, other_starts = _gather(batch.unretrieved_labels[outer[0] : outer[-1]], frozen(outer - outer[0], INT64), self.least)
            if len(other):
                sort.sort_queries(other, other_starts, np.empty_like(other))
                every, every_start = interleave(label, starts, other, other_starts)
                unretrieved, unretrieved_starts = other, other_starts
        self.row, self.label, self.starts, self.all_labels, self.all_starts = row, label, starts, every, every_start
        self.unretrieved_label, self.unretrieved_starts = unretrieved, unretrieved_starts

    @cached_property
    def most_counted(self) -> int:
        """Most documents of a list that count."""
        return sizes_between(frozen(self.starts, INT64))[1]

    @cached_property
    def list_size(self) -> np.ndarray:
        """Documents of each list."""
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def n_unretrieved(self) -> np.ndarray:
        """Judged documents of each query that were not retrieved."""
        outer = self._batch.unretrieved_offsets
        return np.zeros(self.n_queries, np.int64) if outer is None else np.diff(outer[self.first : self.last + 1])

    @property
    def all_retrieved(self) -> bool:
        """Whether the judged documents are those of the lists, place by place."""
        return self._batch.unretrieved_labels is None and self._batch.found_offsets is None

    @cached_property
    def bound(self) -> np.generic | None:
        """The smallest label that counts, as one of the labels' type; None where none can."""
        return _bound(self.least, self.labels.dtype.char)

    def n_relevant(self, threshold: float) -> np.ndarray:
        """Documents of each query, retrieved or not, whose label is at least the threshold."""
        key = ("relevant", threshold)
        if key not in self.kept:
            if self.every_label_reaches(threshold):
                self.kept[key] = self.all_starts[1:] - self.all_starts[:-1]
            else:
                met = np.concatenate(([0], np.cumsum(self.all_labels >= threshold)))
                self.kept[key] = met[self.all_starts[1:]] - met[self.all_starts[:-1]]
        return self.kept[key]

    def nothing_reaches(self, threshold: float) -> np.ndarray:
        """Whether a query has no document whose label is at least the threshold."""
        key = ("nothing", threshold)
        if key not in self.kept:
            self.kept[key] = self.n_relevant(threshold) == 0
        return self.kept[key]

    def every_label_reaches(self, threshold: float) -> bool:
        """Whether all counted labels are known to be at least the threshold: whole labels above 0 are at least 1."""
        return self.smallest >= 0 and (threshold <= self.least or (self.codes > 0 and self.least > 0 and threshold <= 1))

    def ideal_gains(self, gain: Gain) -> np.ndarray:
        """Gains in the best order, per query from all_starts[q] on."""
        key = ("ideal", gain)
        if key not in self.kept:
            labels, out = self.all_labels, np.empty(len(self.all_labels))
            if self.codes and rises(gain):
                sort.rank_labels(
                    labels.astype(np.int64), self.all_starts, gain_table(gain, self.codes), np.zeros(self.codes, np.int64), out
                )
            else:
                out = self.gains(labels, gain)
                sort.sort_queries(out, self.all_starts, np.empty_like(out))
            self.kept[key] = out
        return self.kept[key]

    def gains(self, labels: np.ndarray, gain: Gain) -> np.ndarray:
        """Gain of each label; by a table where labels are small whole numbers, since a look-up is cheaper than a power."""
        if self.pooled and self.smallest < 0:
            return np.where(labels < 0, 0.0, gains_of(labels, gain))
        if not self.codes:
            return gains_of(labels, gain)
        return gain_table(gain, self.codes)[labels.astype(np.int64)]


@dataclass(eq=False)
class JudgedRanks:
    """Where the counted documents of a block stand, per query in rank order.

    rank is 1-based; span is the number of documents that share the score (1 when a rule has placed them). Unretrieved documents come
    last, at rank UNRETRIEVED, as one block. row is relative to the block, -1 for an unretrieved document. n_tied counts the queries
    in which a counted document shares its score; `shared` says whether any still does. size: documents of each list, where it is not
    all that were retrieved.
    """

    judged: Judged
    rank: np.ndarray
    span: np.ndarray
    label: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    n_tied: int = 0
    shared: bool = False
    size: np.ndarray | None = None

    @property
    def list_size(self) -> np.ndarray:
        """Documents in the ranking, per query."""
        return self.judged.list_size if self.size is None else self.size


class Scores(NamedTuple):
    """The scores of a block's documents, with what places equal ones.

    Where the batch lists only the judged documents apart from the lists (`QueryBatch.found_offsets`), `found` has their scores and
    `settle` says how many documents of the same score stand before each; or `ranks` has where they stand, first rank and span.
    """

    all: np.ndarray
    doc_ids: DocIds | None = None
    found: np.ndarray | None = None
    settle: Settle | None = None
    ranks: tuple[np.ndarray, np.ndarray] | None = None


def stand(judged: Judged, scores: Scores | None, rule: str, gain: Gain | None = None) -> JudgedRanks:
    """Put the counted documents of a block in rank order under a tie rule; with a gain, best and worst go by it and not by the label.

    scores None: they already stand in rank order.
    """
    if scores is None:
        rank = judged.row - np.repeat(judged.offsets[:-1], np.diff(judged.starts)) + 1
        ranks = JudgedRanks(judged, rank, np.ones_like(rank), judged.label, judged.row, judged.starts)
    elif rule == ASCENDING:
        ranks = _by_ascending_id(judged, scores)
    else:
        ranks = _by_score(judged, scores, rule) if scores.ranks is None else _as_counted(judged, *scores.ranks)
        if ranks.n_tied and rule in ("best", "worst"):
            ranks = _settle(ranks if gain is None else _ordered_by_gain(ranks, gain), rule, gain)
    return ranks if judged.unretrieved_label is None else _with_unretrieved(ranks)


def _as_counted(judged: Judged, first: np.ndarray, together: np.ndarray) -> JudgedRanks:
    """Documents whose place somebody else has counted."""
    query = np.repeat(np.arange(judged.n_queries), np.diff(judged.starts))
    order = np.lexsort((-judged.label, first[judged.row], query))
    row = judged.row[order]
    span = together[row]
    n_tied = len(np.unique(query[span > 1]))
    return JudgedRanks(judged, first[row], span, judged.label[order], row, judged.starts, n_tied, shared=n_tied > 0)


def _by_ascending_id(judged: Judged, scores: Scores) -> JudgedRanks:
    """The order of "docid", backwards among equal scores."""
    shared, falling = (_by_score(judged, scores, rule) for rule in ("average", "docid"))
    first, span = np.empty((2, judged.n_documents), np.int64)
    first[shared.row], span[shared.row] = shared.rank, shared.span
    rank = 2 * first[falling.row] + span[falling.row] - 1 - falling.rank
    query = np.repeat(np.arange(judged.n_queries), np.diff(judged.starts))
    order = np.lexsort((rank, query))
    return replace(falling, rank=rank[order], label=falling.label[order], row=falling.row[order])


def only_above(ranks: JudgedRanks, scores: Scores, bound: float) -> JudgedRanks:
    """Put documents whose score is not above the bound out of every cutoff's reach. The list keeps its length."""
    of_rows = scores.all if scores.found is None else scores.found
    retrieved = np.flatnonzero(ranks.row >= 0)
    low = retrieved[of_rows[ranks.row[retrieved]] <= bound]
    rank = ranks.rank.copy()
    rank[low] = UNRETRIEVED
    return replace(ranks, rank=rank)


def without_unjudged(ranks: JudgedRanks) -> JudgedRanks:
    """The same order of the judged documents alone. All of them must count; those in the pool that nobody judged are left out, too."""
    judged, starts, counted = ranks.judged, ranks.starts, len(ranks.rank)
    if judged.pooled and judged.smallest < 0:
        kept = np.flatnonzero(ranks.label >= 0)
        starts, counted = np.searchsorted(kept, starts), len(kept)
        ranks = replace(ranks, rank=ranks.rank[kept], span=ranks.span[kept], label=ranks.label[kept], row=ranks.row[kept])
    place = np.arange(counted)
    opens = np.zeros(counted + 1, bool)
    opens[starts] = True
    opens[1:-1] |= ranks.rank[1:] != ranks.rank[:-1]
    first = np.maximum.accumulate(np.where(opens[:-1], place, 0))
    bounds = np.flatnonzero(opens)
    together = np.repeat(np.diff(bounds), np.diff(bounds))
    retrieved = ranks.rank != UNRETRIEVED
    rank = np.where(retrieved, first - np.repeat(starts[:-1], np.diff(starts)) + 1, UNRETRIEVED)
    size = np.diff(np.append(0, np.cumsum(retrieved))[starts])
    return replace(ranks, rank=rank, span=np.where(retrieved, together, ranks.span), starts=starts, size=size)


def _by_score(judged: Judged, scores: Scores, rule: str) -> JudgedRanks:
    listed, mine, most = scores.all, scores.all, MOST_COUNTED
    if scores.found is not None:
        mine, most = scores.found, max(judged.most_counted, 1)
    starts, n, longest = judged.starts, len(judged.row), judged.longest
    placed, label = np.empty((3, n), INT64), np.empty(n)
    tied = np.empty(1, INT64)
    count.rank_by_count(listed, mine, judged.offsets, starts, longest, most, judged.row, judged.label, placed, label, tied)
    n_tied = tied.item()
    rank, span, row = placed[0], placed[1], placed[2]  # a third of the time that taking it apart takes
    if longest > most < judged.most_counted:
        for q in (np.diff(judged.starts) > most).nonzero()[0].tolist():
            n_tied += _by_sorting(judged, q, scores, rule, rank, span, label, row)
    ranks = JudgedRanks(judged, rank, span, label, row, starts, n_tied, n_tied > 0)
    if not n_tied or rule not in ("input", "docid"):
        return ranks
    if scores.settle is not None:
        return _settled_elsewhere(ranks, scores.settle, rule)
    ranks.shared, shown = False, (listed, judged.offsets, starts, most, placed, label)
    if rule == "input":
        ties.place_input(*shown)
    else:
        assert scores.doc_ids is not None
        ties.place_docid(*shown, scores.doc_ids.text, scores.doc_ids.start, scores.doc_ids.stop)
    return ranks


def _settled_elsewhere(ranks: JudgedRanks, settle: Settle, rule: str) -> JudgedRanks:
    """Ask the owner of the ids where tied documents stand among those of their score: only the tied ones are asked for."""
    rank, order = ranks.rank.copy(), np.arange(len(ranks.rank))
    tied = np.flatnonzero(ranks.span > 1)
    query = np.searchsorted(ranks.starts, tied, "right") - 1
    firsts = np.flatnonzero(np.diff(query, prepend=-1))
    for q, here in zip(query[firsts].tolist(), np.split(tied, firsts[1:]), strict=True):
        rank[here] += settle(ranks.judged.first + q, ranks.row[here] + ranks.judged.found_base, rule)
        order[here] = here[np.argsort(rank[here])]  # those of one score stand together: nobody else changes places
    return replace(ranks, rank=rank[order], span=np.ones_like(rank), label=ranks.label[order], row=ranks.row[order], shared=False)


def _by_sorting(
    judged: Judged, q: int, scores: Scores, rule: str, rank: np.ndarray, span: np.ndarray, label: np.ndarray, row: np.ndarray
) -> bool:
    """Write the documents of a query that has too many to compare each with all. Tells whether any shares its score.

    All scores are sorted, without the documents that they belong to (NumPy does that at full vector width), and those that count are
    looked up in falling order.
    """
    start, stop = judged.offsets[q : q + 2].tolist()
    mine = slice(*judged.starts[q : q + 2].tolist())
    listed, rows, labels = scores.all[start:stop], judged.row[mine] - start, judged.label[mine]
    order = np.argsort(listed[rows])[::-1]
    ordered, own = np.sort(listed), listed[rows[order]]
    below, not_above = np.searchsorted(ordered, own, "left"), np.searchsorted(ordered, own, "right")
    above, equal = stop - start - not_above, not_above - below
    tied = bool((equal > 1).any())
    if tied:
        if rule in ("input", "docid"):
            visit = _in_order_of_ties(stop - start, scores.doc_ids if rule == "docid" else None, slice(start, stop))
            place = np.empty_like(visit)
            place[visit[np.argsort(listed[visit], kind="stable")]] = np.arange(stop - start)
            above += place[rows[order]] - below
            equal = np.ones_like(equal)
        again = np.lexsort((order, -labels[order], above))
        order, above, equal = order[again], above[again], equal[again]
    rank[mine], span[mine], label[mine], row[mine] = above + 1, equal, labels[order], rows[order] + start
    return tied


def _in_order_of_ties(n: int, doc_ids: DocIds | None, rows: slice) -> np.ndarray:
    """The documents of a list in the order in which equal scores stand: as given, or by document id."""
    visit = np.arange(n)
    if doc_ids is not None:
        ids = doc_ids.rows(rows)
        sort.sort_ids(visit, ids.text, ids.start, ids.stop, np.empty_like(visit))
    return visit


def _ordered_by_gain(ranks: JudgedRanks, gain: Gain) -> JudgedRanks:
    """Order the documents of one rank by gain, for tables that do not rise with the label."""
    query = np.repeat(np.arange(ranks.judged.n_queries), np.diff(ranks.starts))
    order = np.lexsort((-ranks.judged.gains(ranks.label, gain), ranks.rank, query))
    return replace(ranks, span=ranks.span[order], label=ranks.label[order], row=ranks.row[order])


def _settle(ranks: JudgedRanks, rule: str, gain: Gain | None) -> JudgedRanks:
    """Give tied documents the places of the best or the worst order."""
    key = ranks.label if gain is None else ranks.judged.gains(ranks.label, gain)
    rank, order = np.empty_like(ranks.rank), np.arange(len(ranks.rank))
    if rule == "best":
        ties.place_best(ranks.rank, ranks.span, key, ranks.starts, rank)
    else:
        ties.place_worst(ranks.rank, ranks.span, key, ranks.starts, rank, order)
    return replace(ranks, rank=rank, span=np.ones_like(rank), label=ranks.label[order], row=ranks.row[order], shared=False)


def _with_unretrieved(ranks: JudgedRanks) -> JudgedRanks:
    """Append the judged documents that were not retrieved, as one block beyond every cutoff."""
    judged = ranks.judged
    assert judged.unretrieved_label is not None
    starts, n = judged.unretrieved_starts, len(judged.unretrieved_label)
    extra = (np.full(n, UNRETRIEVED), np.repeat(judged.n_unretrieved, np.diff(starts)), judged.unretrieved_label, np.full(n, -1))
    columns = (ranks.rank, ranks.span, ranks.label, ranks.row)
    rank, span, label, row = (interleave(a, judged.starts, b, starts)[0] for a, b in zip(columns, extra, strict=True))
    return JudgedRanks(judged, rank, span, label, row, judged.all_starts, ranks.n_tied, ranks.shared)


def _gather(labels: np.ndarray, offsets: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows and labels of the documents that count, and where each query's begin."""
    bound = _bound(least, labels.dtype.char)
    if bound is None:
        return np.empty(0, np.int64), np.empty(0), np.zeros(len(offsets), np.int64)
    # Most lists have few documents that count, and all of them have a label other than 0.
    most = np.count_nonzero(labels) if least > 0 else len(labels)
    row, label, starts = np.empty(most, INT64), np.empty(most), np.empty(len(offsets), INT64)
    scan.list_counted(labels, offsets, bound, row, label, starts)
    n = starts.item(-1)
    return (row, label, starts) if n == most else (row[:n].copy(), label[:n].copy(), starts)


@functools.cache
def _bound(least: float, char: str) -> np.generic | None:
    """The smallest label of a type that is not below `least`; None when there is none. The type's character is found faster than it."""
    kind = np.dtype(char)
    if kind.kind == "f":
        bound = kind.type(least)
        return bound if float(bound) >= least else np.nextafter(bound, kind.type(np.inf))
    limits = np.iinfo(kind)
    if least > limits.max:
        return None
    return kind.type(max(math.ceil(least), int(limits.min)))


def interleave(a: np.ndarray, a_starts: np.ndarray, b: np.ndarray, b_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query the values of a, then those of b; and where each query's begin."""
    merged = np.empty(len(a) + len(b), a.dtype)
    merged[np.arange(len(a)) + np.repeat(b_starts[:-1], np.diff(a_starts))] = a
    merged[np.arange(len(b)) + np.repeat(a_starts[1:], np.diff(b_starts))] = b
    return merged, a_starts + b_starts

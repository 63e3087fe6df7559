"""`Judged`: the documents of a block of queries that count; `JudgedRanks`: where they stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank.gains import Gain, gains_of
from fastrank.ranking import count, scan, sort, ties

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch

# Ranks are below WHOLE, the cutoff of a metric that judges the whole list; judged documents that were not retrieved lie beyond it.
WHOLE = 1 << 61
UNRETRIEVED = 1 << 62

# Counting costs about 0.15 ns a document and counted document, placing about 3 + 1.5 log2(r) ns a document: they meet near r = 90.
MOST_COUNTED = 96


class Judged:
    """What the labels alone say of queries first ... last - 1. Kept between calls when only the scores change.

    row and label list the retrieved documents that count, query q's from starts[q] to starts[q + 1]; rows are relative to the block.
    all_labels and all_starts list the unretrieved ones too: the ideal and the number of relevant documents come from them.
    """

    def __init__(self, batch: QueryBatch, first: int, last: int, least: float) -> None:
        self.first, self.last = first, last
        self.base = int(batch.offsets[first])
        self.offsets = batch.offsets[first : last + 1] - self.base
        self.row, self.label, self.starts = _gather(batch.labels[self.base : self.base + int(self.offsets[-1])], self.offsets, least)
        self.list_size = np.diff(self.offsets)
        self.n_unretrieved = np.zeros(last - first, np.int64)
        self.unretrieved_label: np.ndarray | None = None
        self.all_labels, self.all_starts = self.label, self.starts
        if batch.unretrieved_labels is not None and batch.unretrieved_offsets is not None:
            outer = batch.unretrieved_offsets[first : last + 1]
            local = outer - outer[0]
            _, label, starts = _gather(batch.unretrieved_labels[outer[0] : outer[-1]], local, least)
            if len(label):
                self.unretrieved_label, self.unretrieved_starts = label, starts
                self.all_labels, self.all_starts = interleave(self.label, self.starts, label, starts)
            self.n_unretrieved = np.diff(local)
        self.kept: dict[object, np.ndarray] = {}
        self._ideal: dict[Gain, np.ndarray] = {}
        self._n_relevant: dict[float, np.ndarray] = {}

    @property
    def n_queries(self) -> int:
        """Queries of the block."""
        return self.last - self.first

    def n_relevant(self, threshold: float) -> np.ndarray:
        """Documents of each query, retrieved or not, whose label is at least the threshold."""
        if threshold not in self._n_relevant:
            met = np.concatenate(([0], np.cumsum(self.all_labels >= threshold)))
            self._n_relevant[threshold] = met[self.all_starts[1:]] - met[self.all_starts[:-1]]
        return self._n_relevant[threshold]

    def ideal_gains(self, gain: Gain) -> np.ndarray:
        """Gains in the best order, per query from all_starts[q] on."""
        if gain not in self._ideal:
            values = gains_of(self.all_labels, gain)
            sort.sort_queries(values, self.all_starts, np.empty_like(values))
            self._ideal[gain] = values
        return self._ideal[gain]


@dataclass(frozen=True)
class JudgedRanks:
    """Where the counted documents of a block stand, per query in rank order.

    rank is 1-based; span is the number of documents that share the score (1 when a rule has placed them). Unretrieved documents come
    last, at rank UNRETRIEVED, as one block. row is relative to the block, -1 for an unretrieved document.
    """

    judged: Judged
    rank: np.ndarray
    span: np.ndarray
    label: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    tied: bool

    @property
    def list_size(self) -> np.ndarray:
        """Documents retrieved, per query."""
        return self.judged.list_size


@dataclass(frozen=True)
class Placed:
    """Counted documents with the number of documents above them, in no order yet; equal counts the documents with their score."""

    above: np.ndarray
    equal: np.ndarray
    label: np.ndarray
    row: np.ndarray
    starts: np.ndarray
    in_order: bool


def ordered_keys(scores: np.ndarray) -> np.ndarray:
    """Scores as integers of the same order. Adding 0 makes -0.0 equal 0.0."""
    if scores.dtype.kind == "f":
        bits = np.add(scores, scores.dtype.type(0)).view(np.int32 if scores.dtype.itemsize == 4 else np.int64)
        bits ^= (bits >> (bits.dtype.itemsize * 8 - 1)) & np.iinfo(bits.dtype).max
    else:
        bits = scores.view()
    bits.setflags(write=False)
    return bits


def place(judged: Judged, batch: QueryBatch, rule: str) -> Placed:
    """Count the documents above each counted one. Under "input" and "docid" equal scores are placed; otherwise they share."""
    if batch.scores is None:
        before = np.repeat(judged.offsets[:-1], np.diff(judged.starts))
        placed = Placed(judged.row - before, np.ones_like(judged.row), judged.label, judged.row, judged.starts, in_order=True)
    else:
        scores = batch.scores[judged.base : judged.base + int(judged.offsets[-1])]
        placed = _place_by_score(judged, batch, ordered_keys(scores), rule)
    if judged.unretrieved_label is None:
        return placed
    n_last = np.repeat(judged.n_unretrieved, np.diff(judged.unretrieved_starts))
    label = judged.unretrieved_label
    extra = (np.full(len(label), UNRETRIEVED - 1), n_last, label, np.full(len(label), -1))
    columns = (placed.above, placed.equal, placed.label, placed.row)
    merged = [interleave(a, judged.starts, b, judged.unretrieved_starts)[0] for a, b in zip(columns, extra, strict=True)]
    return Placed(*merged, starts=judged.all_starts, in_order=False)


def _place_by_score(judged: Judged, batch: QueryBatch, keys: np.ndarray, rule: str) -> Placed:
    above, equal = np.empty(len(judged.row), np.int64), np.empty(len(judged.row), np.int64)
    doc_order = None
    if rule == "docid":
        assert batch.doc_order is not None
        doc_order = batch.doc_order[judged.base : judged.base + len(keys)]
    by_sort = np.diff(judged.starts) > MOST_COUNTED
    by_count = ~by_sort
    if by_count.any():
        arguments = (judged.offsets, judged.starts, judged.row, by_count, above, equal)
        if rule == "docid":
            count.count_docid(keys, doc_order, *arguments)
        elif rule == "input":
            count.count_input(keys, *arguments)
        else:
            count.count_average(keys, *arguments)
    if by_sort.any():
        _place_by_sorting(judged, keys, rule, doc_order, by_sort, above, equal)
    return Placed(above, equal, judged.label, judged.row, judged.starts, in_order=False)


def _place_by_sorting(
    judged: Judged, keys: np.ndarray, rule: str, doc_order: np.ndarray | None, chosen: np.ndarray, above: np.ndarray, equal: np.ndarray
) -> None:
    n_counted = len(judged.row)
    visit = np.arange(len(keys))
    if doc_order is not None:
        visit = np.lexsort((doc_order, np.repeat(np.arange(judged.n_queries), judged.list_size)))
    slot = np.full(len(keys), -1)
    slot[judged.row] = np.arange(n_counted)
    sorted_keys = np.empty(n_counted, keys.dtype)
    n_larger, n_equal, earlier = (np.zeros(n_counted, np.int64) for _ in range(3))
    sort.sort_chosen(keys, judged.starts, judged.row, chosen, sorted_keys, np.empty_like(sorted_keys))
    sort.place_counted(keys, visit, judged.offsets, judged.starts, chosen, sorted_keys, slot, n_larger, n_equal, earlier)
    sort.read_places(keys, judged.starts, judged.row, chosen, sorted_keys, n_larger, n_equal, above, equal)
    if rule in ("input", "docid"):
        above += earlier  # queries not chosen have earlier = 0


def stand(judged: Judged, placed: Placed, rule: str, key: np.ndarray | None = None) -> JudgedRanks:
    """Put the counted documents in rank order under a tie rule. key orders the documents of a block instead of the label."""
    label, row, starts = placed.label, placed.row, placed.starts
    rank, span = placed.above + 1, placed.equal
    key = label if key is None else key
    if not placed.in_order:
        order = np.empty(len(rank), np.int64)
        ties.arrange(placed.above, key, starts, order, np.empty_like(order))
        rank, span, label, row, key = rank[order], span[order], label[order], row[order], key[order]
    tied = bool(len(span)) and bool(np.any((span > 1) & (rank < UNRETRIEVED)))
    if rule in ("input", "docid"):
        span = np.where(rank < UNRETRIEVED, 1, span)
    elif rule == "best" and tied:
        best = np.empty_like(rank)
        ties.place_best(rank, span, key, starts, UNRETRIEVED, best)
        rank, span = best, np.where(best < UNRETRIEVED, 1, span)
    elif rule == "worst" and tied:
        worst, order = np.empty_like(rank), np.empty_like(rank)
        ties.place_worst(rank, span, key, starts, UNRETRIEVED, worst, order)
        rank, label, row = worst, label[order], row[order]
        span = np.where(worst < UNRETRIEVED, 1, span)
    return JudgedRanks(judged, rank, span, label, row, starts, tied and rule == "average")


def n_tied_queries(placed: Placed) -> int:
    """Queries in which a counted document shares its score with another."""
    tied = np.concatenate(([0], np.cumsum((placed.equal > 1) & (placed.above < UNRETRIEVED - 1))))
    return int(np.count_nonzero(tied[placed.starts[1:]] > tied[placed.starts[:-1]]))


def _gather(labels: np.ndarray, offsets: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    row, label, starts = np.empty(len(labels), np.int64), np.empty(len(labels)), np.empty(len(offsets), np.int64)
    scan.gather_counted(labels, offsets, least, row, label, starts)
    n = int(starts[-1])
    return row[:n], label[:n], starts


def interleave(a: np.ndarray, a_starts: np.ndarray, b: np.ndarray, b_starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per query the values of a, then those of b; and where each query's begin."""
    merged = np.empty(len(a) + len(b), a.dtype)
    merged[np.arange(len(a)) + np.repeat(b_starts[:-1], np.diff(a_starts))] = a
    merged[np.arange(len(b)) + np.repeat(a_starts[1:], np.diff(b_starts))] = b
    return merged, a_starts + b_starts

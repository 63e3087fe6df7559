"""Ranked queries as flat arrays: who stands where, who is tied with whom, and sums by query.

Nothing here knows a metric. A ranking holds each query's documents in rank order with the unretrieved ones last; documents of
equal score form a block, and the unretrieved documents of a query form one block of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastrank.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Cutoff = int | float | str | None

TIE_RULES = ("average", "input", "worst", "best", "docid")
NO_RELEVANT = {"zero": 0.0, "one": 1.0, "nan": np.nan, "skip": np.nan}


@dataclass(frozen=True)
class Ranking:
    """Every query's documents in rank order, the unretrieved ones last."""

    labels: NDArray[Any]
    offsets: IntArray
    n_retrieved: IntArray
    blocks: IntArray | None
    """Where each block starts, and the end; None where every block is one retrieved document."""
    scores: NDArray[Any] | None = None

    @property
    def starts(self) -> IntArray:
        return self.offsets[:-1]

    @property
    def sizes(self) -> IntArray:
        return np.diff(self.offsets)

    def block_edges(self) -> IntArray:
        """The block boundaries, spelt out where every document is its own block."""
        return np.arange(len(self.labels) + 1) if self.blocks is None else self.blocks

    def block_around(self, edge: IntArray) -> tuple[IntArray, IntArray]:
        """Start and stop of the block that the position ``edge`` cuts; both are ``edge`` where it falls between two blocks."""
        if self.blocks is None:
            return edge, edge
        start = self.blocks[np.searchsorted(self.blocks, edge, side="right") - 1]
        stop = self.blocks[np.searchsorted(self.blocks, edge, side="left")]
        return start, stop


@dataclass(frozen=True)
class HeldBlocks:
    """The blocks that hold at least one marked document, in rank order."""

    above: IntArray
    """Documents of the query above the block: its first rank less one."""
    size: IntArray
    n_marked: IntArray
    n_before: IntArray
    """Marked documents of the query above the block."""
    bounds: IntArray
    """The blocks of query q are ``[bounds[q], bounds[q + 1])``."""

    @property
    def per_query(self) -> IntArray:
        return np.diff(self.bounds)


def rank(labels: ArrayLike, scores: ArrayLike | None, offsets: ArrayLike | None, ties: str, doc_ids: ArrayLike | None) -> Ranking:
    """Put each query's documents in rank order and find the blocks of equal scores that the tie rule leaves open."""
    if ties not in TIE_RULES:
        raise InputError(f"ties must be one of {', '.join(TIE_RULES)}: got {ties!r}.")
    label = np.asarray(labels)
    bounds = _offsets(label, offsets)
    label = label.ravel()
    if label.dtype.kind == "b":
        label = label.view(np.uint8)
    if scores is None:
        return Ranking(label, bounds, np.diff(bounds), None)
    score = np.asarray(scores).ravel()
    if len(score) != len(label):
        raise InputError(f"scores must hold one number per label: {len(score)} scores for {len(label)} labels.")
    order = _rank_order(label, score, bounds, ties, doc_ids)
    score = score[order]
    missing = np.isnan(score) if score.dtype.kind == "f" else np.zeros(len(score), dtype=np.bool_)
    # A block goes on where the score is that of the document before: both missing, or, with ties left open, equal.
    goes_on = missing[1:] & missing[:-1]
    if ties == "average":
        goes_on |= score[1:] == score[:-1]
    opens = np.ones(len(score) + 1, dtype=np.bool_)
    opens[1:-1] = ~goes_on
    opens[bounds] = True
    untied = bool(opens.all()) and not missing.any()
    n_retrieved = np.diff(bounds) - count_by_query(np.flatnonzero(missing), bounds)
    return Ranking(label[order], bounds, n_retrieved, None if untied else np.flatnonzero(opens), score)


def rank_strictly(labels: ArrayLike, scores: ArrayLike | None, offsets: ArrayLike | None, ties: str, doc_ids: ArrayLike | None) -> Ranking:
    """As ``rank``, for metrics whose mean over the orders of equal scores has no closed form."""
    if ties == "average":
        raise InputError("ties='average' has no closed form for this metric: choose input, worst, best or docid.")
    return rank(labels, scores, offsets, ties, doc_ids)


def _offsets(labels: NDArray[Any], offsets: ArrayLike | None) -> IntArray:
    """The caller's offsets; without them one query, or one query a row."""
    if offsets is None:
        n_queries, width = np.atleast_2d(labels).shape
        return np.asarray(np.arange(n_queries + 1) * width, dtype=np.int64)
    bounds = np.asarray(offsets, dtype=np.int64)
    if bounds.ndim != 1 or len(bounds) == 0 or bounds[0] != 0 or bounds[-1] != labels.size or (np.diff(bounds) < 0).any():
        ends = f"{bounds[0]} ... {bounds[-1]}" if bounds.ndim == 1 and len(bounds) else f"shape {bounds.shape}"
        raise InputError(f"offsets must be flat and rise from 0 to the number of labels, {labels.size}: got {ends}.")
    return bounds


def _rank_order(labels: NDArray[Any], scores: NDArray[Any], offsets: IntArray, ties: str, doc_ids: ArrayLike | None) -> IntArray:
    """Rows of the documents in rank order: scores descending, NaN last, equal scores as the tie rule has them."""
    # ~x reverses the order of integers without the overflow of -x at the smallest one.
    falling = ~scores if scores.dtype.kind in "iub" else -scores
    keys: list[NDArray[Any]] = []
    if ties == "docid":
        if doc_ids is None:
            raise InputError("ties='docid' needs one document id per label: pass doc_ids=, or choose another rule with ties=.")
        keys.append(-np.unique(np.asarray(doc_ids).ravel(), return_inverse=True)[1])
    elif ties in ("worst", "best"):
        sign = 1.0 if ties == "worst" else -1.0
        # An unjudged document counts as label 0, and as less than a document judged so.
        unjudged = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), dtype=np.bool_)
        keys += [-sign * unjudged, sign * np.where(unjudged, 0, labels)]
    order = np.empty(len(scores), dtype=np.int64)
    for row, inside in _rows_by_length(offsets):
        if keys:
            place = np.lexsort([key[row] for key in [*keys, falling]])
        else:
            place = np.argsort(falling[row], axis=1, kind="stable" if ties == "input" else None)
        # Padding stands in the last columns, wherever sorting put it.
        kept = np.take_along_axis(inside, place, axis=1)
        order[row[inside]] = np.take_along_axis(row, place, axis=1)[kept]
    return order


def sort_descending(values: FloatArray, offsets: IntArray) -> FloatArray:
    """The values of each query, greatest first."""
    sizes = np.diff(offsets)
    if len(sizes) and (sizes == sizes[0]).all():
        return np.asarray(-np.sort(-values.reshape(len(sizes), sizes[0]), axis=1)).ravel()
    result = np.empty_like(values)
    for row, inside in _rows_by_length(offsets):
        falling = -values[row]
        falling[~inside] = np.inf
        falling.sort(axis=1)
        result[row[inside]] = -falling[inside]
    return result


def _rows_by_length(offsets: IntArray) -> Iterator[tuple[IntArray, BoolArray]]:
    """Queries as rows of a matrix of document numbers, with a mask of the places in use: one matrix per power of two of the length.

    Sorting along rows is several times faster than one lexsort of all documents; classes by length keep the padding below one half.
    """
    sizes = np.diff(offsets)
    length_class = np.frexp(sizes)[1]
    for exponent in np.unique(length_class[sizes > 0]):
        chosen = np.flatnonzero(length_class == exponent)
        column = np.arange(sizes[chosen].max())
        inside = column < sizes[chosen, None]
        yield offsets[chosen, None] + np.where(inside, column, 0), inside


# --- ragged arithmetic ---------------------------------------------------------------------------------------------------------


def running_count(counts: IntArray) -> IntArray:
    """Offsets of segments of these sizes: 0, then the running sum."""
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


def places(counts: IntArray) -> IntArray:
    """0, 1, ... count - 1 for each count in turn."""
    bounds = running_count(counts)
    return np.arange(bounds[-1]) - np.repeat(bounds[:-1], counts)


def spans(starts: IntArray, counts: IntArray) -> IntArray:
    """start, start + 1, ... start + count - 1 for each segment in turn."""
    bounds = running_count(counts)
    return np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], counts)


def reduce_by(ufunc: np.ufunc, values: NDArray[Any], bounds: IntArray, empty: float = 0.0) -> FloatArray:
    """``ufunc.reduce`` over each segment, ``empty`` for a segment without values (where ``reduceat`` alone would take a neighbour)."""
    result = np.full(len(bounds) - 1, empty)
    filled = np.flatnonzero(np.diff(bounds))
    if len(filled):
        result[filled] = ufunc.reduceat(values, bounds[:-1][filled])
    return result


def scan(ufunc: np.ufunc, values: FloatArray, place: IntArray) -> FloatArray:
    """Running product (or sum) of each segment, by doubling: step after step each value takes in the one 1, 2, 4, ... places before.

    One running sum over everything and differences of it would mix the segments' rounding errors, and a running product underflow.
    """
    result = values.copy()
    step = 1
    reached = np.flatnonzero(place >= step)
    while len(reached):
        result[reached] = ufunc(result[reached], result[reached - step])
        step *= 2
        reached = reached[place[reached] >= step]
    return result


def ratio(numerator: NDArray[Any], denominator: NDArray[Any]) -> FloatArray:
    """Quotient, 0 where the denominator is 0."""
    quotient = np.zeros(len(numerator))
    np.divide(numerator, denominator, out=quotient, where=denominator != 0)
    return quotient


class Query(NamedTuple):
    """One query of a ranking: labels in rank order, those of the documents that were not retrieved, and where each block begins."""

    ranked: NDArray[Any]
    missing: NDArray[Any]
    blocks: IntArray
    """Bounds of the blocks of equal scores among the retrieved documents, 0 first and their number last."""


def each_query(ranking: Ranking) -> Iterator[Query]:
    """The queries one by one, for metrics that are plainer in words of one list than of all at once."""
    edges = ranking.block_edges()
    for start, stop, n in zip(ranking.starts, ranking.offsets[1:], ranking.n_retrieved, strict=True):
        own = edges[np.searchsorted(edges, start) : np.searchsorted(edges, start + n) + 1] - start
        yield Query(ranking.labels[start : start + n], ranking.labels[start + n : stop], np.append(own[own < n], n))


# --- marked documents ----------------------------------------------------------------------------------------------------------


def count_by_query(marked: IntArray, offsets: IntArray) -> IntArray:
    """How many of the marked positions (ascending) fall into each query."""
    return np.diff(np.searchsorted(marked, offsets))


def expected_hits(ranking: Ranking, marked: IntArray, depth: IntArray) -> FloatArray:
    """Expected number of marked documents in the first ``depth`` ranks: whole blocks, and the share of the block that depth cuts."""
    edge = ranking.starts + depth
    start, stop = ranking.block_around(edge)
    before = np.searchsorted(marked, start)
    whole = before - np.searchsorted(marked, ranking.starts)
    cut = (np.searchsorted(marked, stop) - before) * (edge - start) / np.maximum(stop - start, 1)
    return np.asarray(whole + cut, dtype=np.float64)


def held_blocks(ranking: Ranking, marked: IntArray) -> HeldBlocks:
    """The blocks in which the marked positions (ascending) stand."""
    if ranking.blocks is None:
        start, first = marked, np.arange(len(marked))
        size = n_marked = np.broadcast_to(np.int64(1), len(marked))
    else:
        block = np.searchsorted(ranking.blocks, marked, side="right") - 1
        first = np.flatnonzero(np.diff(block, prepend=-1))
        n_marked = np.diff(first, append=len(marked))
        start = ranking.blocks[block[first]]
        size = ranking.blocks[block[first] + 1] - start
    bounds = np.searchsorted(start, ranking.offsets)
    per_query = np.diff(bounds)
    n_before = first - np.repeat(np.searchsorted(marked, ranking.starts), per_query)
    return HeldBlocks(start - np.repeat(ranking.starts, per_query), size, n_marked, n_before, bounds)


# --- options -------------------------------------------------------------------------------------------------------------------


def cutoffs(k: Cutoff, n_retrieved: IntArray) -> IntArray:
    """The cutoff of each query: k itself, the ceiling of an exact decimal share of the list (1 at least), or the length of the list."""
    if k is None:
        return n_retrieved
    if not isinstance(k, (str, float, np.floating)):
        if isinstance(k, bool) or k < 1:
            raise InputError(f"k must be at least 1: got {k}. Leave it out for the whole list.")
        return np.full(len(n_retrieved), k, dtype=np.int64)
    try:
        text = str(k)
        share = Fraction(Decimal(text.removesuffix("%"))) / (100 if text.endswith("%") else 1)
    except (InvalidOperation, ValueError, OverflowError):
        raise InputError(f"k must be a whole number or a share such as 0.2 or '20%': got {k!r}.") from None
    if not 0 < share < 1:
        raise InputError(f"k as a share must lie strictly between 0 and 1: got {k!r}. Write a whole number for a rank.")
    # Python integers: the product may pass 64 bits. -(-a // b) is the ceiling.
    ceiling = -(-n_retrieved.astype(object) * share.numerator // share.denominator)
    return np.maximum(ceiling.astype(np.int64), 1)


def settle(values: FloatArray, nothing: BoolArray, no_relevant: str) -> FloatArray:
    """The value that a query with nothing to find gets by rule, the computed one elsewhere."""
    if no_relevant not in NO_RELEVANT:
        raise InputError(f"no_relevant must be one of {', '.join(NO_RELEVANT)}: got {no_relevant!r}.")
    return np.where(nothing, NO_RELEVANT[no_relevant], values)

"""Metrics of pairs of documents: AUC, graded concordance, P-norm push, and bpref."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fastrank.errors import InputError
from fastrank.reference._layout import (
    FloatArray,
    IntArray,
    count_by_query,
    held_blocks,
    places,
    rank,
    ratio,
    reduce_by,
    running_count,
    settle,
)


def auc(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Area under the ROC curve: the share of pairs (relevant, non-relevant) in which the relevant document ranks first; a tie counts 1/2.

    Unretrieved documents are tied below all others, whatever the tie rule. Nothing to find: no relevant or no non-relevant document.
    Source: Hanley and McNeil, Radiology 1982.

    >>> auc([1, 0, 1, 0])  # three of four pairs
    array([0.75])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    held = held_blocks(ranking, np.flatnonzero(ranking.labels >= rel))
    n_relevant = count_by_query(np.flatnonzero(ranking.labels >= rel), ranking.offsets)
    n_other = ranking.sizes - n_relevant
    tied = held.size - held.n_marked
    below = np.repeat(n_other, held.per_query) - (held.above - held.n_before) - tied
    # Twice the count of pairs: whole numbers, exact.
    pairs = _whole_sums(held.n_marked * (2 * below + tied), held.bounds)
    n_pairs = n_relevant * n_other
    return settle(ratio(pairs, 2 * n_pairs), n_pairs == 0, no_relevant)


def concordance(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Concordance: the share of pairs with different labels in which the greater label ranks first; a tie counts 1/2.

    An unjudged document counts as label 0; unretrieved ones are tied below all others. Nothing to find: no pair with different labels.
    Source: Harrell, Califf, Pryor, Lee and Rosati, JAMA 1982 (the C index).

    >>> concordance([2, 0, 1])  # (2, 0) and (2, 1) right, (1, 0) wrong
    array([0.66666667])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    label = ranking.labels
    if label.dtype.kind == "f":
        label = np.where(np.isnan(label), 0.0, label)
    level = np.searchsorted(np.unique(label), label)
    blocks = ranking.block_edges()
    block = np.repeat(np.arange(len(blocks) - 1), np.diff(blocks))
    group = np.repeat(np.arange(len(ranking.sizes)), ranking.sizes)
    # A pair of different levels first differs at one bit, high to low: there, among documents with the same higher bits, it is
    # a pair (1, 0). So each bit is an AUC within groups, and splitting the groups by the bit prepares the next.
    right = np.zeros(len(ranking.sizes), dtype=np.int64)
    n_pairs = right.copy()
    for bit in reversed(range(int(level.max(initial=0)).bit_length())):
        one = (level >> bit) & 1
        new_group = np.diff(group, prepend=-1, append=-1) != 0
        group_edges = np.flatnonzero(new_group)
        run_edges = np.flatnonzero(new_group | (np.diff(block, prepend=-1, append=-1) != 0))
        ones = running_count(one)
        group_size = np.diff(group_edges)
        zeros_left = np.repeat((group_edges - ones[group_edges])[1:], np.diff(np.searchsorted(run_edges, group_edges)))
        run_ones, run_zeros = np.diff(ones[run_edges]), np.diff(run_edges - ones[run_edges])
        zeros_below = zeros_left - (run_edges - ones[run_edges])[1:]
        right += np.diff(running_count(run_ones * (2 * zeros_below + run_zeros))[np.searchsorted(run_edges, ranking.offsets)])
        group_ones = np.diff(ones[group_edges])
        pairs = group_ones * (group_size - group_ones)
        n_pairs += np.diff(running_count(pairs)[np.searchsorted(group_edges, ranking.offsets)])
        # Stable split of every group: zeros keep their order in front, ones behind.
        zeros_in_group = np.repeat(group_size - group_ones, group_size)
        ones_before = ones[:-1] - np.repeat(ones[group_edges[:-1]], group_size)
        place = places(group_size)
        target = np.repeat(group_edges[:-1], group_size) + np.where(one, zeros_in_group + ones_before, place - ones_before)
        order = np.empty_like(target)
        order[target] = np.arange(len(target))
        group, level, block = 2 * group[order] + one[order], level[order], block[order]
    return settle(ratio(right, 2 * n_pairs), n_pairs == 0, no_relevant)


def p_norm_push(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    p: float = 4,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """P-norm push, lower is better: the mean over non-relevant documents of (share of the relevant ones ranked below it)^p.

    Rudin's sum without its outer root and divided by the counts, so that ties have an exact mean: the number of relevant documents of
    its block below a given non-relevant one is uniform on 0 ... r. With p = 1 it is 1 - AUC. Nothing to find: as AUC.
    Source: Rudin, JMLR 2009.

    >>> p_norm_push([0, 1, 0, 1], p=2)  # (1^2 + (1/2)^2) / 2
    array([0.625])
    """
    if not p > 0:
        raise InputError(f"p of P-norm push must be above 0: got {p}.")
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    held = held_blocks(ranking, np.flatnonzero(~(ranking.labels >= rel)))
    n_relevant = ranking.sizes - count_by_query(np.flatnonzero(~(ranking.labels >= rel)), ranking.offsets)
    n_other = ranking.sizes - n_relevant
    total = np.repeat(n_relevant, held.per_query)
    tied = held.size - held.n_marked
    below = total - (held.above - held.n_before) - tied
    n_cases = tied + 1
    share = (np.repeat(below, n_cases) + places(n_cases)) / np.repeat(np.maximum(total, 1), n_cases)
    mean = reduce_by(np.add, share**p, running_count(n_cases)) / n_cases
    values = ratio(reduce_by(np.add, held.n_marked * mean, held.bounds), n_other)
    return settle(np.minimum(values, 1.0), n_relevant * n_other == 0, no_relevant)


def bpref(
    labels: ArrayLike,
    scores: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    rel: float = 1,
    ties: str = "average",
    doc_ids: ArrayLike | None = None,
    no_relevant: str = "zero",
) -> FloatArray:
    """Binary preference: (1 / R) * sum over retrieved relevant documents of 1 - min(non-relevant above it, R) / min(N, R).

    Only judged documents count: R of label >= rel, N with 0 <= label < rel, unretrieved ones included in both numbers; a document with a
    negative label is neither. In a block with m non-relevant documents, the number above a given relevant one is uniform on 0 ... m.
    Source: Buckley and Voorhees, SIGIR 2004, as trec_eval computes it.

    >>> bpref([1, 0, 1, 0])  # R = N = 2: (1 + (1 - 1/2)) / 2
    array([0.75])
    """
    ranking = rank(labels, scores, offsets, ties, doc_ids)
    relevant = np.flatnonzero(ranking.labels >= rel)
    other = np.flatnonzero((ranking.labels >= 0) & (ranking.labels < rel))
    n_relevant = count_by_query(relevant, ranking.offsets)
    n_other = count_by_query(other, ranking.offsets)
    held = held_blocks(ranking, relevant)
    query_start, at_most, least = (np.repeat(x, held.per_query) for x in (ranking.starts, n_relevant, np.minimum(n_relevant, n_other)))
    start = query_start + held.above
    before_block = np.searchsorted(other, start)
    tied = np.searchsorted(other, start + held.size) - before_block
    above = before_block - np.searchsorted(other, query_start)
    # The mean of min(above + u, R) over u = 0 ... tied: the first few u below R, R itself for the rest.
    n_below = np.clip(at_most - above, 0, tied + 1)
    total = n_below * above + n_below * (n_below - 1) // 2 + (tied + 1 - n_below) * at_most
    term = 1.0 - ratio(total, (tied + 1) * least)
    retrieved = held.above < np.repeat(ranking.n_retrieved, held.per_query)
    values = ratio(reduce_by(np.add, np.where(retrieved, held.n_marked * term, 0.0), held.bounds), n_relevant)
    return settle(values, n_relevant == 0, no_relevant)


def _whole_sums(values: IntArray, bounds: IntArray) -> IntArray:
    """Sums of whole numbers by segment: differences of one running sum are exact."""
    return np.diff(running_count(values)[bounds])

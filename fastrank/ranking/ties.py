"""Equal scores: placing tied documents by a rule.

A block is a run of counted documents with one score: they share the rank of the block's first place and the span of the block. Inside
a block they stand by key (the label), largest first, so that no result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel, pointer


@kernel
def place_best(rank: Any, span: Any, key: Any, starts: Any, out: Any) -> None:
    """Ranks when every block stands in the best order: keys descending, documents that do not count at key 0."""
    for q in range(starts.shape[0] - 1):
        i = starts[q]
        while i < starts[q + 1]:
            j = i
            while j < starts[q + 1] and rank[j] == rank[i]:
                out[j] = rank[i] + j - i
                j += 1
            for e in range(i, j):
                if key[e] < 0:
                    out[e] = rank[i] + span[i] - (j - e)
            i = j


@kernel
def place_worst(rank: Any, span: Any, key: Any, starts: Any, out: Any, order: Any) -> None:
    """Ranks when every block stands in the worst order: keys ascending. order[i] = the document that now comes i-th."""
    for q in range(starts.shape[0] - 1):
        i = starts[q]
        while i < starts[q + 1]:
            j = i
            while j < starts[q + 1] and rank[j] == rank[i]:
                j += 1
            for e in range(i, j):
                place = i + j - 1 - e
                order[place] = e
                out[place] = rank[i] + (span[i] - 1 - (e - i) if key[e] >= 0 else j - 1 - e)
            i = j


@kernel
def place_input(scores: Any, offsets: Any, starts: Any, most: int, placed: Any, label: Any) -> None:
    """Put the documents of each block where they stand in the input; placed: rank, span and row of each.

    Queries with more than `most` counted documents are left alone.
    """
    rank, span, row = placed[0], placed[1], placed[2]
    for q in range(starts.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low > most:
            continue
        moved = False
        for i in range(low, high):
            if span[i] > 1:
                x = scores[row[i]]
                n_before = np.int64(0)
                for d in range(offsets[q], row[i]):
                    n_before += scores[d] == x
                rank[i] += n_before
                span[i] = 1
                moved = True
        if moved:
            _order_by_rank(rank, row, label, low, high)


@kernel
def place_docid(
    scores: Any, offsets: Any, starts: Any, most: int, placed: Any, label: Any, text: Any, id_start: Any, id_stop: Any
) -> None:  # fmt: skip
    """As `place_input`, but by document id, the larger in bytes first. Only ids of equal scores are compared."""
    rank, span, row, ids = placed[0], placed[1], placed[2], pointer(text)
    for q in range(starts.shape[0] - 1):
        low, high = starts[q], starts[q + 1]
        if high - low > most:
            continue
        moved = False
        for i in range(low, high):
            if span[i] > 1:
                own = row[i]
                n_before = np.int64(0)
                for d in range(offsets[q], offsets[q + 1]):
                    if scores[d] == scores[own]:
                        n_before += _larger_id(ids, id_start[d], id_stop[d], id_start[own], id_stop[own])
                rank[i] += n_before
                span[i] = 1
                moved = True
        if moved:
            _order_by_rank(rank, row, label, low, high)


@kernel
def _order_by_rank(rank: Any, row: Any, label: Any, low: int, high: int) -> None:
    """Let documents change places until their ranks ascend: only those of one block do."""
    for i in range(low + 1, high):
        place, d, y = rank[i], row[i], label[i]
        j = i
        while j > low and rank[j - 1] > place:
            rank[j], row[j], label[j] = rank[j - 1], row[j - 1], label[j - 1]
            j -= 1
        rank[j], row[j], label[j] = place, d, y


@kernel
def _larger_id(text: Any, a: int, a_stop: int, b: int, b_stop: int) -> Any:
    """Whether text[a:a_stop] is larger than text[b:b_stop], byte by byte; a longer id is larger than its own beginning."""
    while a < a_stop and b < b_stop:
        if text[a] != text[b]:
            return text[a] > text[b]
        a += 1
        b += 1
    return a < a_stop

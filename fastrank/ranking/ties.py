"""Equal scores: putting the counted documents in rank order, and placing tied ones by a rule.

A block is a run of counted documents with one score: they share the rank of the block's first place and the span of the block. Inside
a block they stand by key (the label), largest first, so that no result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def arrange(above: Any, key: Any, starts: Any, order: Any, scratch: Any) -> None:
    """order = the counted documents of each query by rank, equal ranks by key, largest first: insertion, then merging bottom up."""
    for q in range(starts.shape[0] - 1):
        start, stop = starts[q], starts[q + 1]
        for low in range(start, stop, 16):
            order[low] = low
            for i in range(low + 1, min(low + 16, stop)):
                j = i
                while j > low and _before(above, key, i, order[j - 1]):
                    order[j] = order[j - 1]
                    j -= 1
                order[j] = i
        width = 16
        while width < stop - start:
            for low in range(start, stop, 2 * width):
                middle = min(low + width, stop)
                high = min(low + 2 * width, stop)
                i = low
                j = middle
                for out in range(low, high):
                    if i < middle and (j >= high or not _before(above, key, order[j], order[i])):
                        scratch[out] = order[i]
                        i += 1
                    else:
                        scratch[out] = order[j]
                        j += 1
            order[start:stop] = scratch[start:stop]
            width *= 2


@kernel
def _before(above: Any, key: Any, i: int, j: int) -> Any:
    return above[i] < above[j] or (above[i] == above[j] and key[i] > key[j])


@kernel
def place_best(rank: Any, span: Any, key: Any, starts: Any, unretrieved: int, out: Any) -> None:
    """Ranks when every block stands in the best order: keys descending, documents that do not count at key 0."""
    for q in range(starts.shape[0] - 1):
        i = starts[q]
        while i < starts[q + 1] and rank[i] < unretrieved:
            j = i
            while j < starts[q + 1] and rank[j] == rank[i]:
                out[j] = rank[i] + j - i
                j += 1
            for e in range(i, j):
                if key[e] < 0:
                    out[e] = rank[i] + span[i] - (j - e)
            i = j
        out[i : starts[q + 1]] = unretrieved


@kernel
def place_worst(rank: Any, span: Any, key: Any, starts: Any, unretrieved: int, out: Any, order: Any) -> None:
    """Ranks when every block stands in the worst order: keys ascending. order[i] = the document that now comes i-th."""
    for q in range(starts.shape[0] - 1):
        i = starts[q]
        while i < starts[q + 1] and rank[i] < unretrieved:
            j = i
            while j < starts[q + 1] and rank[j] == rank[i]:
                j += 1
            for e in range(i, j):
                place = i + j - 1 - e
                order[place] = e
                out[place] = rank[i] + (span[i] - 1 - (e - i) if key[e] > 0 else j - 1 - e)
            i = j
        for e in range(i, starts[q + 1]):
            order[e] = e
            out[e] = unretrieved

"""Equal scores: placing tied documents by a rule.

A block is a run of counted documents with one score: they share the rank of the block's first place and the span of the block. Inside
a block they stand by key (the label), largest first, so that no result depends on the order of the rows.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


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

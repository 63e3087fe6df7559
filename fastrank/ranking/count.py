"""Ranking by counting: the rank of a document is one plus the number of larger scores.

Best for short lists and for few counted documents: it reads each score once per counted document and sorts nothing. Scores arrive as
ordered integers (`judged.ordered_keys`), so that one compiled loop serves the floats and the integers of a width.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def count_average(keys: Any, offsets: Any, starts: Any, row: Any, chosen: Any, above: Any, equal: Any) -> None:
    """above[i] = documents of the query with a larger score than counted document i, equal[i] = with the same, itself included."""
    for q in range(offsets.shape[0] - 1):
        if not chosen[q]:
            continue
        for i in range(starts[q], starts[q + 1]):
            x = keys[row[i]]
            n_larger = 0
            n_not_less = 0
            for d in range(offsets[q], offsets[q + 1]):
                n_larger += keys[d] > x
                n_not_less += keys[d] >= x
            above[i] = n_larger
            equal[i] = n_not_less - n_larger


@kernel
def count_input(keys: Any, offsets: Any, starts: Any, row: Any, chosen: Any, above: Any, equal: Any) -> None:
    """As `count_average`, but equal scores that stand earlier in the input are above."""
    for q in range(offsets.shape[0] - 1):
        if not chosen[q]:
            continue
        for i in range(starts[q], starts[q + 1]):
            x = keys[row[i]]
            n_larger = 0
            n_earlier = 0
            n_later = 0
            for d in range(offsets[q], row[i]):
                n_larger += keys[d] > x
                n_earlier += keys[d] == x
            for d in range(row[i], offsets[q + 1]):
                n_larger += keys[d] > x
                n_later += keys[d] == x
            above[i] = n_larger + n_earlier
            equal[i] = n_earlier + n_later


@kernel
def count_docid(keys: Any, doc_order: Any, offsets: Any, starts: Any, row: Any, chosen: Any, above: Any, equal: Any) -> None:
    """As `count_average`, but equal scores with a smaller doc_order are above."""
    for q in range(offsets.shape[0] - 1):
        if not chosen[q]:
            continue
        for i in range(starts[q], starts[q + 1]):
            x = keys[row[i]]
            place = doc_order[row[i]]
            n_above = 0
            n_equal = 0
            for d in range(offsets[q], offsets[q + 1]):
                same = keys[d] == x
                n_above += (keys[d] > x) | (same & (doc_order[d] < place))
                n_equal += same
            above[i] = n_above
            equal[i] = n_equal

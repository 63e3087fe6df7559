"""Finding documents by their ids: a table of hashes per query, hits confirmed by the bytes.

The table of a query has at least four slots for each of its rows. A slot holds 0, or one more than the place of a row in its query.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel, leading_zeros, load_word, pointer


def table_for(offsets: np.ndarray, first: int, last: int) -> np.ndarray:
    """A table that serves each of some queries in turn."""
    longest = int(np.diff(offsets[first : last + 1]).max(initial=0))
    return np.empty(1 << (4 * longest).bit_length(), np.int32)


@kernel
def _clear(table: Any, n: int) -> Any:
    """Empty as much of the table as n rows need, and give the mask of its slots."""
    size = 1 << (64 - np.int64(leading_zeros(np.uint64(4 * n))))
    for slot in range(size):
        table[slot] = 0
    return size - 1


@kernel
def _same_bytes(text: Any, a: int, other: Any, b: int, n: int) -> Any:
    """Whether text[a:a + n] and other[b:b + n] are equal."""
    while n >= 8:
        if load_word(text, a) != load_word(other, b):
            return False
        a += 8
        b += 8
        n -= 8
    return n == 0 or (load_word(text, a) ^ load_word(other, b)) << np.uint64(64 - 8 * n) == 0


@kernel
def _slot(
    table: Any, mask: int, base: int, text: Any, start: Any, stop: Any, code: Any, other: Any, a: int, a_stop: int, wanted: Any
) -> Any:
    """The slot of the row with the id other[a:a_stop], whose hash is `wanted`, or the empty slot where it would go."""
    slot = np.int64(wanted & np.uint64(mask))
    while table[slot] != 0:
        d = base + table[slot] - 1
        if code[d] == wanted and stop[d] - start[d] == a_stop - a and _same_bytes(text, start[d], other, a, a_stop - a):
            return slot
        slot = (slot + 1) & mask
    return slot


@kernel
def find_twins(data: Any, starts: Any, stops: Any, codes: Any, offsets: Any, first: int, last: int, tables: Any, first_of: Any) -> None:
    """first_of[d] = the first row with the document of row d in its query, for the rows of queries first ... last - 1."""
    text, start, stop, code, table = pointer(data), pointer(starts), pointer(stops), pointer(codes), pointer(tables)
    for q in range(first, last):
        base, after = offsets[q], offsets[q + 1]
        mask = _clear(table, after - base)
        for d in range(base, after):
            slot = _slot(table, mask, base, text, start, stop, code, text, start[d], stop[d], code[d])
            if table[slot] == 0:
                table[slot] = d - base + 1
            first_of[d] = base + table[slot] - 1


@kernel
def match_documents(
    data: Any, starts: Any, stops: Any, codes: Any, offsets: Any, judged_data: Any, judged_start: Any, judged_stop: Any, judged_code: Any,
    judged_label: Any, judged_first: Any, judged_last: Any, first: int, last: int, tables: Any, label: Any, retrieved: Any, twins: Any,
) -> None:  # fmt: skip
    """Give each retrieved document its label, NaN where it has none, and mark the judgements that were met.

    Query q's documents are rows offsets[q] ... offsets[q + 1] - 1, its judgements judged_first[q] ... judged_last[q] - 1, each of
    another document. When a document stands twice, both its rows are written to twins and nothing more is done.
    """
    text, start, stop, code, table = pointer(data), pointer(starts), pointer(stops), pointer(codes), pointer(tables)
    other = pointer(judged_data)
    for q in range(first, last):
        base, after = offsets[q], offsets[q + 1]
        mask = _clear(table, after - base)
        for d in range(base, after):
            slot = _slot(table, mask, base, text, start, stop, code, text, start[d], stop[d], code[d])
            if table[slot] != 0:
                twins[0], twins[1] = base + table[slot] - 1, d
                return
            table[slot] = d - base + 1
            label[d] = np.nan
        for j in range(judged_first[q], judged_last[q]):
            slot = _slot(table, mask, base, text, start, stop, code, other, judged_start[j], judged_stop[j], judged_code[j])
            if table[slot] != 0:
                label[base + table[slot] - 1] = judged_label[j]
                retrieved[j] = True

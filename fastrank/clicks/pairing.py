"""Kernels that number the pairs of query and document, and count what happened to each at each position."""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def fill_positions(offsets: Any, first: Any, last: Any, out: Any) -> None:
    """The rank of each row within its session, from 1."""
    for s in range(first, last):
        start = offsets[s]
        for i in range(start, offsets[s + 1]):
            out[i] = i - start + 1


@kernel
def number_pairs(
    order: Any, offsets: Any, query: Any, doc: Any, seen: Any, shown: Any, code: Any, qd: Any, pair_doc: Any, found: Any
) -> None:
    """Number the documents of each query in the order in which its sessions show them; `order` brings a query's sessions together.

    seen, shown, code: per document the query and the session (+ 1) that had it last, and its number there; 0 to begin with.
    found[0] becomes the number of pairs, found[1 + q] that of query q, and found[-1] a row that shows a document
    of its session again, or -1.
    """
    n_pairs = 0
    for at in range(order.shape[0]):
        s = order[at]
        q = query[s]
        for i in range(offsets[s], offsets[s + 1]):
            d = doc[i]
            if seen[d] != q + 1:
                seen[d] = q + 1
                code[d] = n_pairs
                pair_doc[n_pairs] = d
                n_pairs += 1
                found[1 + q] += 1
            if shown[d] == s + 1 and found[found.shape[0] - 1] < 0:
                found[found.shape[0] - 1] = i
            shown[d] = s + 1
            qd[i] = code[d]
    found[0] = n_pairs

"""Which documents count: one scan of the labels.

A metric depends on where a few documents stand. The scan gathers them per query, in the order given; for labels that already stand
in rank order their place is their rank and nothing is left to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import bits_at_least, kernel, pointer, set_bits, trailing_zeros


@kernel
def list_counted(labels: Any, offsets: Any, least: Any, row: Any, label: Any, starts: Any) -> None:
    """row, label = the documents with label >= least or label < 0, in order; starts[q] = where those of query q begin.

    A missing label (NaN) fails both comparisons, so unjudged documents are never listed. least has the type of the labels and is not
    below 0: 64 bytes are compared by one instruction. The documents found are visited one after the other: one branch that the processor
    cannot foresee per 64 documents, instead of one per document that counts or per query. row and label have room for all that count.
    """
    n_documents = labels.shape[0]
    n_words = (n_documents + 63) // 64
    word, before = np.empty(n_words, np.uint64), np.empty(n_words, np.int64)
    i = np.int64(0)
    for w in range(n_words):
        bits = _marked(labels, 64 * w, n_documents, least)
        word[w], before[w] = bits, i
        while bits != 0:
            d = 64 * w + np.int64(trailing_zeros(bits))
            row[i] = d
            label[i] = labels[d]
            bits &= bits - np.uint64(1)
            i += 1
    for q in range(offsets.shape[0]):
        w = offsets[q] >> 6
        starts[q] = i
        if w < n_words:
            below = (np.uint64(1) << np.uint64(offsets[q] & 63)) - np.uint64(1)
            starts[q] = before[w] + np.int64(set_bits(word[w] & below))


@kernel
def _marked(labels: Any, first: int, n_documents: int, least: Any) -> Any:
    """A word with bit j set where document first + j counts."""
    if first + 64 <= n_documents:
        return bits_at_least(pointer(labels), first, least)
    bits = np.uint64(0)
    for d in range(first, n_documents):
        y = labels[d]
        bits |= np.uint64((y >= least) | (y < 0)) << np.uint64(d - first)
    return bits

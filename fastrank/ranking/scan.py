"""Which documents count: one scan of the labels.

A metric depends on where a few documents stand. The scan gathers them per query, in the order given; for labels that already stand
in rank order their place is their rank and nothing is left to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel, trailing_zeros


@kernel
def gather_counted(labels: Any, offsets: Any, least: Any, row: Any, label: Any, starts: Any) -> None:
    """List the documents with label >= least or label < 0: row[i], label[i], and starts[q] where query q's begin.

    64 labels become the bits of one word, whose set bits are then visited: one branch that the processor cannot foresee per 64
    documents instead of one per document that counts. A missing label (NaN) fails both comparisons, so unjudged documents are never
    listed. least has the type of the labels: comparing bytes as bytes is eight times as fast as comparing them as doubles.
    """
    n_documents = offsets[-1]
    n = 0
    q = 0
    starts[0] = 0
    for base in range(0, n_documents, 64):
        if base + 64 <= n_documents:
            word = _word(labels, base, 64, least)
        else:
            word = _word(labels, base, n_documents - base, least)
        while word != 0:
            d = base + np.int64(trailing_zeros(word))
            word &= word - np.uint64(1)
            while d >= offsets[q + 1]:
                q += 1
                starts[q] = n
            row[n] = d
            label[n] = labels[d]
            n += 1
    starts[q + 1 :] = n


@kernel
def _word(labels: Any, base: int, width: int, least: Any) -> Any:
    word = np.uint64(0)
    for j in range(width):
        y = labels[base + j]
        word |= np.uint64((y >= least) | (y < 0)) << np.uint64(j)
    return word

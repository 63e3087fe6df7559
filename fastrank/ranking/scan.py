"""Which documents count: one scan of the labels.

A metric depends on where a few documents stand. The scan gathers them per query, in the order given; for labels that already stand
in rank order their place is their rank and nothing is left to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import bits_at_least, kernel, pointer, set_bits, trailing_zeros


@kernel
def mark_counted(labels: Any, least: Any, word: Any, before: Any) -> None:
    """word[w] = bit j set where document 64 w + j has label >= least or label < 0; before[w] = how many are set in earlier words.

    A missing label (NaN) fails both comparisons, so unjudged documents are never marked. least has the type of the labels and is not
    below 0: 64 bytes are compared by one instruction.
    """
    n = np.int64(0)
    n_documents = labels.shape[0]
    given = pointer(labels)
    for w in range(word.shape[0]):
        first = 64 * w
        bits = np.uint64(0)
        if first + 64 <= n_documents:
            bits = bits_at_least(given, first, least)
        else:
            for j in range(n_documents - first):
                y = labels[first + j]
                bits |= np.uint64((y >= least) | (y < 0)) << np.uint64(j)
        word[w] = bits
        before[w] = n
        n += np.int64(set_bits(bits))


@kernel
def list_counted(labels: Any, offsets: Any, word: Any, before: Any, row: Any, label: Any, starts: Any) -> None:
    """row, label = the marked documents in order; starts[q] = where those of query q begin.

    The set bits of a word are visited one after the other: one branch that the processor cannot foresee per 64 documents, instead of
    one per document that counts or per query.
    """
    i = 0
    for w in range(word.shape[0]):
        bits = word[w]
        while bits != 0:
            d = 64 * w + np.int64(trailing_zeros(bits))
            row[i] = d
            label[i] = labels[d]
            bits &= bits - np.uint64(1)
            i += 1
    n_words = word.shape[0]
    for q in range(offsets.shape[0]):
        w = offsets[q] >> 6
        if w < n_words:
            below = (np.uint64(1) << np.uint64(offsets[q] & 63)) - np.uint64(1)
            starts[q] = before[w] + np.int64(set_bits(word[w] & below))
        else:
            starts[q] = i

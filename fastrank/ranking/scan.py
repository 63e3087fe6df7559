"""Which documents count: one scan of the labels.

A metric depends on where a few documents stand. The scan gathers them per query, in the order given; for labels that already stand
in rank order their place is their rank and nothing is left to do.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def gather_counted(labels: Any, offsets: Any, least: float, row: Any, label: Any, starts: Any) -> None:
    """List the documents with label >= least or label < 0: row[i], label[i], and starts[q] where query q's begin.

    A missing label (NaN) fails both comparisons, so unjudged documents are never listed.
    """
    n = 0
    starts[0] = 0
    for q in range(offsets.shape[0] - 1):
        for d in range(offsets[q], offsets[q + 1]):
            y = labels[d]
            if y >= least or y < 0:
                row[n] = d
                label[n] = y
                n += 1
        starts[q + 1] = n

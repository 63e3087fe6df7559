"""Sums over blocks of rows that have the same bits for every number of threads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastrank._kernel import map_blocks, query_blocks

# Rows per block, and the most blocks that a sum is cut into: each holds a sum of its own.
BLOCK = 1 << 16
MOST_BLOCKS = 32


def summed(offsets: np.ndarray, shape: tuple[int, ...], work: Callable[[int, int, np.ndarray], None], threads: int | None) -> np.ndarray:
    """The sum of what each block adds to an array of zeros, in the order of the blocks."""
    size = max(BLOCK, (int(offsets[-1]) + len(offsets)) // MOST_BLOCKS)
    number = {first: b for b, (first, _) in enumerate(query_blocks(offsets, size))}
    parts = np.zeros((len(number), *shape))
    map_blocks(lambda first, last: work(first, last, parts[number[first]]), offsets, documents=size, threads=threads)
    return parts.sum(axis=0) if len(parts) != 1 else parts[0]

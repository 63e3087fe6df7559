"""Keys of query ids: a hash of each, by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fastrank.arrays import frozen
from fastrank.batch import DocIds
from fastrank.io.arrow import decoded
from fastrank.io.lines import hash_ids

if TYPE_CHECKING:
    import pyarrow as pa


def query_keys(ids: pa.Array) -> np.ndarray:
    """uint64, the hash of each id's bytes. Numbers count by their decimal text, so that 7 and "7" have the same key.

    >>> import pyarrow as pa
    >>> bool((query_keys(pa.array([7, 8])) == query_keys(pa.array(["7", "8"]))).all())
    True
    """
    found = DocIds.of(decoded(ids))
    begin, end = (int(found.start[0]), int(found.stop[-1])) if len(ids) else (0, 0)
    # The hash reads eight bytes at a time.
    text = np.zeros(end - begin + 8, np.uint8)
    text[: end - begin] = found.text[begin:end]
    keys = np.empty(len(ids), np.uint64)
    hash_ids(frozen(text, np.uint8), frozen(found.start - begin, np.int64), frozen(found.stop - begin, np.int64), keys)
    return keys

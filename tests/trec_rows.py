"""Small TREC files, and the rows of what was read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from fastrank.io.judgements import Pairs

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


QRELS = b"1 0 a 1\n1 0 b 0\n2 0 a 2\n"


RUN = b"1 Q0 a 1 2.5 t\n1 Q0 b 2 1.5 t\n2 Q0 a 1 -1 t\n"


def rows(pairs: Pairs) -> list[tuple[Any, bytes, float]]:
    """Query, document and number of each row."""
    ids, query = pairs.doc_ids, np.repeat(np.arange(len(pairs)), np.diff(pairs.offsets))
    slices = zip(ids.start, ids.stop, strict=True)
    documents = [ids.text[start:stop].tobytes() for start, stop in slices]
    queries = pairs.query_ids.to_pylist()
    return list(zip([queries[q] for q in query], documents, pairs.values.tolist(), strict=True))

"""Dicts of dicts, and what a caller sees of an evaluation of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import fastrank as fr
from fastrank.io.mapping import join_dicts

COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") == "0"


Dicts = dict[Any, dict[Any, Any]]


METRICS = "nDCG@3,nDCG,AP,RR,P@2,R,bpref,AUC,ERR,Success@1,Judged@3,nDCG(judged_only=True)@3"


CUT = "nDCG@3,nDCG,AP,RR,P@2,R,Judged@3"


def the_general_way(dicts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """The same mapping, but no dict."""
    return MappingProxyType(dicts)


def is_short(qrels: Dicts, run: Dicts, convention: str = "trec_eval") -> bool:
    return join_dicts(qrels, run, fr.conventions[convention], skip_missing=False, judged_only=False) is not None


def outcome(qrels: Any, run: Any, metrics: str = METRICS, **options: Any) -> Any:
    """Everything that a caller sees, but how the ids of queries are encoded."""
    result = fr.evaluate_run(qrels, run, metrics, **options)
    bounds = None if result.bounds is None else (result.bounds.low.tobytes(), result.bounds.high.tobytes())
    return result.values.tobytes(), result.query_ids.to_pylist(), result.notes, result.no_relevant, bounds


def text(dicts: Dicts, line: str) -> bytes:
    """A TREC file."""
    return "".join(f"{query} {line.format(doc, value)}\n" for query, docs in dicts.items() for doc, value in docs.items()).encode()

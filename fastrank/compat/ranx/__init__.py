"""ranx's interface on this engine: change ``from ranx import ...`` to ``from fastrank.compat.ranx import ...``.

Signatures, types and values are those of ranx 0.3.21 for what evaluates and compares; its fusions, normalisations and downloads are not
here. What it gets wrong is right here: equal scores keep the order in which they were given (there, any order), bpref has a value where
nothing non-relevant was judged (there, NaN), dicts are matched by query id and not by place, permutation tests depend on their seed alone
and their p is never 0, an evaluation may run in any thread, and nothing is compiled anew. In bpref, labels below 0 count as unjudged.
"""

from __future__ import annotations

from fastrank.compat.ranx import metrics
from fastrank.compat.ranx.data import Qrels, Run
from fastrank.compat.ranx.outcome import Report
from fastrank.compat.ranx.scoring import compare, evaluate

__all__ = ["Qrels", "Report", "Run", "compare", "evaluate", "metrics"]

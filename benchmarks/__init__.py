"""How fast fastrank is, against other programs and against what the machine can do.

``pytest benchmarks`` runs the suites of ``bench_*.py``; ``python -m benchmarks report`` measures the table of ``rows.py``.
"""

from __future__ import annotations

"""`python -m fastrank`: the command line."""

from __future__ import annotations

from fastrank.cli import main

main()

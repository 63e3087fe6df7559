"""Dask merges evaluators as the page says."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import fastrank as fr

pytest.importorskip("dask.bag", reason="needs dask: pip install dask")

pytestmark = [pytest.mark.slow, pytest.mark.compiled]


def test_the_examples_of_the_page_print_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parent.parent
    monkeypatch.chdir(root)
    found = re.findall(r"^```pycon dask\n(.*?)^```$", (root / "docs" / "scale.md").read_text(), re.MULTILINE | re.DOTALL)
    assert found
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for block in found:
        runner.run(doctest.DocTestParser().get_doctest(block, {"fr": fr}, "docs/scale.md", "docs/scale.md", 0))
    assert runner.summarize(verbose=False).failed == 0

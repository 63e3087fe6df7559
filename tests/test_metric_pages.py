"""`fastrank metrics`, and the page of all metrics that it writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import fastrank as fr
from fastrank import cli

PAGE = Path(__file__).parent.parent / "docs" / "metrics.md"


def page(*arguments: str) -> str:
    """What `fastrank metrics` prints."""
    result = CliRunner(env={"COLUMNS": "80", "NO_COLOR": "1"}).invoke(cli.commands, ["metrics", *arguments])
    assert result.exit_code == 0, result.exception
    return result.output


def test_metrics_lists_every_family_and_describes_one() -> None:
    listed = page()
    assert all(any(line.startswith(info.name) for line in listed.splitlines()) for info in fr.list_metrics())
    of_map = " ".join(page("map@10", "--convention", "lightgbm").split())
    assert fr.parse_metric("AP@10", "lightgbm").formula in of_map
    assert "Also called MAP." in of_map
    assert all(name in of_map for name in fr.conventions)
    assert "whole list" in page("AP")
    assert "Lower is better" in page("PNormPush")


@pytest.mark.parametrize("name", list(fr.metrics.families))
def test_every_metric_has_a_page(name: str) -> None:
    assert fr.metrics.families[name].example.split()[0] in page(name)


@pytest.mark.repository
def test_the_page_of_all_metrics_is_up_to_date() -> None:
    # Written anew by: fastrank metrics --markdown > docs/metrics.md
    assert page("--markdown") == PAGE.read_text(encoding="utf-8")


def test_the_page_of_all_metrics_is_of_no_single_one() -> None:
    code, message = cli.run(["metrics", "AP", "--markdown"])
    assert (code, "Leave out NAME or --markdown" in message) == (2, True)

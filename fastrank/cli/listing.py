"""`fastrank metrics` and `fastrank conventions`: what there is to choose from."""

from __future__ import annotations

import sys

import click

from fastrank.cli.options import complete_convention, complete_metric, convention_option


@click.command(
    short_help="List all metrics, or describe one.",
    epilog="""\b
Examples:
  fastrank metrics
  fastrank metrics ndcg@10
  fastrank metrics map@10 --convention lightgbm
  fastrank metrics --markdown > docs/metrics.md""",
)
@click.argument("name", required=False, shell_complete=complete_metric)
@convention_option()
@click.option("--markdown", is_flag=True, help="All metrics in full, as a page in Markdown.")
def metrics(name: str | None, convention: str, *, markdown: bool) -> None:
    """List all metrics, or describe the one called NAME with its formula, parameters and source."""
    from fastrank.report.catalogue import metric_page, metrics_markdown, metrics_page

    if markdown and name is not None:
        raise click.UsageError("--markdown is of all metrics. Leave out NAME or --markdown.", click.get_current_context())
    if markdown:
        click.echo(metrics_markdown(), nl=False)
    else:
        click.echo(metrics_page(sys.stdout) if name is None else metric_page(name, convention, sys.stdout))


@click.command(
    short_help="List all conventions, or every choice of one.",
    epilog="""\b
Examples:
  fastrank conventions
  fastrank conventions xgboost""",
)
@click.argument("name", required=False, shell_complete=complete_convention)
def conventions(name: str | None) -> None:
    """List all conventions, or every choice of the one called NAME."""
    from fastrank.report.catalogue import convention_page, conventions_page

    click.echo(conventions_page(sys.stdout) if name is None else convention_page(name, sys.stdout))

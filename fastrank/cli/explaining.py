"""`fastrank explain`."""

from __future__ import annotations

from typing import Any

import click

from fastrank.cli.options import complete_metric, convention_option, depth_option, judged_only_option, no_relevant_option, ties_option


class Numbers(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """Numbers separated by commas; "-" stands for a missing one."""

    name = "list"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[float | None]:
        return [self._number(word.strip(), param, ctx) for word in value.split(",")] if value.strip() else []

    def _number(self, word: str, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        if word == "-":
            return None
        try:
            return int(word)
        except ValueError:
            pass
        try:
            return float(word)
        except ValueError:
            self.fail(f"{word!r} is not a number. Separate numbers by commas, such as 3,2,0,1,2.", param, ctx)


@click.command(
    short_help="Work out a metric for one query, term by term.",
    epilog="""\b
Examples:
  fastrank explain nDCG@5 --labels 3,2,0,1,2
  fastrank explain AP --labels 1,0,1,1 --scores 0.9,0.7,0.7,0.2
  fastrank explain ndcg@3 --labels 3,0,2 --convention lightgbm
  fastrank explain Bpref --labels 1,0,-,1""",
)
@click.argument("metric", shell_complete=complete_metric)
@click.option("--labels", type=Numbers(), required=True, metavar="L1,L2,...", help="Labels of the documents; - is unjudged.")
@click.option(
    "--scores", type=Numbers(), metavar="S1,S2,...", help="Their scores; - is judged, but not retrieved. Default: labels are in rank order."
)
@click.option("--docs", "doc_ids", metavar="D1,D2,...", help="Their ids, to show, and for --ties docid.")
@convention_option()
@ties_option()
@no_relevant_option()
@depth_option()
@judged_only_option()
def explain(metric: str, labels: list[float | None], doc_ids: str | None, **options: Any) -> None:
    """Work out METRIC for one query, term by term.

    Prints rank, label, gain, discount and term of each document, the same for the ideal order, and the quotient; for other metrics
    what they are made of.
    """
    import sys

    from fastrank.engine.worked import explain as worked_out
    from fastrank.report.worked import worked_table

    ids = None if doc_ids is None else [word.strip() for word in doc_ids.split(",")]
    click.echo(worked_table(worked_out(metric, labels, doc_ids=ids, **options), sys.stdout))

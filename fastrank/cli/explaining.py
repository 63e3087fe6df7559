"""`fastrank explain`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fastrank.cli.options import (
    FileName,
    complete_metric,
    convention_option,
    depth_option,
    judged_only_option,
    no_relevant_option,
    ties_option,
)

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation


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
  fastrank explain Bpref --labels 1,0,-,1
  fastrank explain ndcg@10 --between lightgbm,sklearn predictions.parquet
  fastrank explain recip_rank --between trec_eval,trec_eval9 --qrels qrels.txt bm25.run""",
)
@click.argument("metric", shell_complete=complete_metric)
@click.argument("file", required=False, type=FileName())
@click.option("--labels", type=Numbers(), metavar="L1,L2,...", help="Labels of the documents; - is unjudged.")
@click.option(
    "--scores", type=Numbers(), metavar="S1,S2,...", help="Their scores; - is judged, but not retrieved. Default: labels are in rank order."
)
@click.option("--docs", "doc_ids", metavar="D1,D2,...", help="Their ids, to show, and for --ties docid.")
@click.option("--between", metavar="A,B", help="Two conventions: say which of their choices separates the two values.")
@click.option("--query", default="query_id", show_default=True, metavar="C", help="FILE: column of query ids.")
@click.option("--label", default="label", show_default=True, metavar="C", help="FILE: column of labels.")
@click.option("--score", default="score", show_default=True, metavar="C", help="FILE: column of scores.")
@click.option("--qrels", type=FileName(), metavar="QRELS", help="TREC judgements: FILE is then a TREC run.")
@convention_option()
@ties_option()
@no_relevant_option()
@depth_option()
@judged_only_option()
def explain(
    metric: str,
    file: str | None,
    labels: list[float | None] | None,
    scores: list[float | None] | None,
    doc_ids: str | None,
    between: str | None,
    query: str,
    label: str,
    score: str,
    qrels: str | None,
    **options: Any,
) -> None:
    """Work out METRIC for one query, term by term.

    Prints rank, label, gain, discount and term of each document, the same for the ideal order, and the quotient; for other metrics
    what they are made of. With --between, prints which choices of two conventions make the difference, for --labels, for the queries of
    FILE (a table as fastrank evaluate takes it) or for those of QRELS and the run FILE.
    """
    from fastrank.engine.worked import explain as worked_out
    from fastrank.report.worked import worked_table

    ids = None if doc_ids is None else [word.strip() for word in doc_ids.split(",")]
    if between is not None:
        columns = {"query": query, "label": label, "score": score}
        _explain_between(metric, between, file, qrels, columns, {"labels": labels, "scores": scores, "doc_ids": ids})
        return
    if labels is None or file is not None or qrels is not None:
        given = "a file is explained with --between two conventions" if labels is None and (file or qrels) else "give --labels of one query"
        raise click.UsageError(f"{given}.", click.get_current_context())
    click.echo(worked_table(worked_out(metric, labels, scores, doc_ids=ids, **options), sys.stdout))


def _explain_between(
    metric: str, between: str, file: str | None, qrels: str | None, columns: dict[str, Any], one_query: dict[str, Any]
) -> None:
    """Print what separates two conventions, on one of the three kinds of data."""
    from fastrank.comparison.explanation import explain_difference, explain_with
    from fastrank.engine.runs import read_judgements, read_ranking
    from fastrank.engine.tables import evaluate_table
    from fastrank.report.explained import explanation_text

    context = click.get_current_context()
    sides = tuple(name.strip() for name in between.split(","))
    if len(sides) != 2:
        raise click.UsageError(f"--between takes two conventions, such as lightgbm,sklearn, not {between!r}.", context)
    for name in ("convention", "ties", "no_relevant", "depth", "judged_only"):
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name.replace('_', '-')} is settled by the two conventions of --between. Leave it out.", context)
    if qrels is not None and (file is None or one_query["labels"] is not None):
        raise click.UsageError("--qrels needs a run, FILE, and no --labels.", context)
    if (file is None) == (one_query["labels"] is None):
        raise click.UsageError("give --labels or a file, one of them.", context)
    if qrels is not None:
        read = read_judgements(qrels, metric, sides[0]), read_ranking(file or "", sides[0])
        found = explain_difference(*read, metric=metric, between=sides)
    elif file is not None:

        def source(**asked: Any) -> Evaluation:
            result = evaluate_table(file, **columns, **asked)
            assert not isinstance(result, dict)  # one column of scores
            return result

        found = explain_with(source, metric, sides)
    else:
        found = explain_difference(**one_query, metric=metric, between=sides)
    click.echo(explanation_text(found, stream=sys.stdout))

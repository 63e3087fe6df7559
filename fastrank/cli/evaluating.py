"""`fastrank evaluate`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastrank.cli.options import (
    FileName,
    complete_metric,
    convention_option,
    depth_option,
    judged_only_option,
    no_relevant_option,
    standard_input,
    ties_option,
)

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation

FORMATS = ("table", "json", "csv", "tsv", "markdown", "latex")
PATH = FileName(path_type=Path)
# Flags that only one of the two kinds of input has.
TABLE_FLAGS = ("query", "label", "score", "doc_ids", "weight", "by", "scores", "groups", "memory_limit")
RUN_FLAGS = ("missing", "duplicates")


@click.command(
    short_help="Judge the rankings in tables, LETOR text and TREC runs.",
    epilog="""\b
Examples:
  fastrank evaluate predictions.parquet -m nDCG@10,RR -m P@5,10
  fastrank evaluate predictions.parquet --score bm25 --score dense --by locale
  fastrank evaluate old.parquet new.parquet -m ndcg@10 --convention lightgbm --format markdown
  fastrank evaluate "runs/*.csv.gz" --per-query out.csv
  zcat scores.jsonl.gz | fastrank evaluate - -m RR
  fastrank evaluate test.letor --scores test.scores --per-query out.parquet
  fastrank evaluate rank.test --groups rank.test.query --scores predicted.txt
  fastrank evaluate --qrels qrels.txt bm25.run dense.run.gz -m ndcg_cut_10,recip_rank
  zcat dense.run.gz | fastrank evaluate --qrels qrels.txt -""",
)
@click.argument("predictions", nargs=-1, required=True, type=FileName(allow_dash=True))
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAMES",
    shell_complete=complete_metric,
    help="Metrics, separated by commas; may repeat. Default: nDCG@10,RR,AP.",
)
@click.option("--query", default="query_id", show_default=True, metavar="C", help="Column of query ids.")
@click.option("--label", default="label", show_default=True, metavar="C", help="Column of labels; null is unjudged.")
@click.option(
    "--score",
    multiple=True,
    default=("score",),
    show_default=True,
    metavar="C",
    help="Column of scores; null is not retrieved. Repeat it for several systems.",
)
@click.option("--doc", "doc_ids", metavar="C", help="Column of document ids, for --ties docid.")
@click.option("--weight", metavar="C", help="Column of query weights.")
@click.option("--by", multiple=True, metavar="C", help="Column to show slices by; may repeat.")
@click.option("--scores", type=PATH, metavar="FILE", help="LETOR: scores of its rows, one a line.")
@click.option("--groups", type=PATH, metavar="FILE", help="LETOR without qid: sizes of its groups, one a line.")
@click.option("--qrels", type=FileName(allow_dash=True), metavar="QRELS", help="TREC judgements: PREDICTIONS are then TREC runs.")
@click.option(
    "--missing",
    type=click.Choice(("zero", "skip")),
    default="zero",
    show_default=True,
    help="A query of the qrels that is not in a run: counts as an empty list, or is left out.",
)
@click.option(
    "--duplicates",
    type=click.Choice(("error", "first", "last", "max")),
    default="error",
    show_default=True,
    help="A document that stands twice in one query of the qrels or a run: which row to keep.",
)
@convention_option(None, "Default: trec_eval with --qrels, else fastrank.")
@ties_option()
@no_relevant_option()
@depth_option()
@judged_only_option()
@click.option("--bounds", is_flag=True, help="Show the least and greatest mean over the orders of equal scores.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    metavar="SHARE",
    help="Of the intervals.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print the result.")
@click.option(
    "--per-query",
    type=PATH,
    metavar="FILE",
    help="Also write the value of each query: to .parquet, .csv, .tsv or .jsonl; one file a system, named after it.",
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a bit of the result.")
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Memory for rows of scattered queries, such as 500MB, before they go through temporary files. Default: 1GB.",
)
@click.option("--no-progress", is_flag=True, help="Do not show how far a long run has come.")
def evaluate(
    predictions: tuple[str, ...],
    confidence: float,
    form: str,
    per_query: Path | None,
    qrels: str | None,
    convention: str | None,
    **options: Any,
) -> None:
    """Judge the rankings in PREDICTIONS, which have a row per document.

    Each is a file in Parquet, CSV, TSV, JSON lines, Arrow IPC or ORC, plain or compressed, or LETOR text; a directory of such files, a
    quoted pattern or a URI; or - for standard input. With --qrels each is a TREC run, plain or compressed. Several are several
    systems, shown side by side.
    """
    from fastrank.report.text import notes, table

    _refuse_flags(RUN_FLAGS if qrels is None else TABLE_FLAGS, "needs --qrels" if qrels is None else "is for tables, not with --qrels")
    if per_query is not None:
        from fastrank.report.per_query import check_per_query, write_per_query

        check_per_query(per_query)
    if qrels is None:
        systems = _tables(predictions, per_query=per_query is not None, convention=convention or "fastrank", **options)
    else:
        systems = _runs(qrels, predictions, convention=convention or "trec_eval", **options)
    if per_query is not None:
        write_per_query(systems, per_query)
    shown: Any = next(iter(systems.values())) if len(systems) == 1 else systems
    click.echo(table(shown, form, confidence=confidence, stream=sys.stdout))
    if form in ("csv", "tsv"):
        for note in notes(shown, confidence=confidence):
            click.echo(f"note: {note}", err=True)


def _refuse_flags(flags: tuple[str, ...], why: str) -> None:
    """Flags of the other kind of input would be passed over in silence."""
    context = click.get_current_context()
    for parameter in context.command.params:
        if parameter.name in flags and context.get_parameter_source(parameter.name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[0]} {why}. Leave it out." if "not" in why else f"{parameter.opts[0]} {why}.", context)


def _tables(
    predictions: tuple[str, ...],
    *,
    per_query: bool,
    metrics: tuple[str, ...],
    score: tuple[str, ...],
    doc_ids: str | None,
    by: tuple[str, ...],
    bounds: bool,
    no_progress: bool,
    missing: str,
    duplicates: str,
    **options: Any,
) -> dict[str, Evaluation]:
    """One system a file and score column."""
    from fastrank.engine.calls import DEFAULT_METRICS
    from fastrank.engine.tables import evaluate_table
    from fastrank.io.expecting import expected_rows
    from fastrank.report.progress import Progress

    del missing, duplicates  # refused above where they were given
    if options["scores"] is not None and len(predictions) > 1:
        raise click.UsageError(
            f"--scores belongs to one LETOR file, not to {len(predictions)}. Evaluate them one by one.", click.get_current_context()
        )
    systems: dict[str, Evaluation] = {}
    for name, path in zip(file_names(predictions), predictions, strict=True):
        with Progress(f"reading {path}", expect=partial(expected_rows, path), hidden=no_progress) as progress:
            results = evaluate_table(
                standard_input() if path == "-" else path,
                metrics or DEFAULT_METRICS,
                score=score,
                doc=doc_ids,
                by=by or None,
                bounds=bounds,
                # Memory stays constant where no single query is asked for.
                per_query=bounds or per_query,
                progress=progress.add,
                **options,
            )
        assert isinstance(results, dict)
        systems |= {_system(name, column, len(predictions), len(score)): result for column, result in results.items()}
    return systems


def _runs(qrels: str, runs: tuple[str, ...], *, metrics: tuple[str, ...], **options: Any) -> dict[str, Evaluation]:
    """One system a run. The qrels are read once."""
    from fastrank.engine.calls import DEFAULT_METRICS
    from fastrank.engine.runs import evaluate_run, read_judgements, read_ranking

    if (qrels, *runs).count("-") > 1:
        raise click.UsageError("standard input (-) can be one file only. Give paths for the others.", click.get_current_context())
    if "-" in (qrels, *runs):
        standard_input()  # there must be one
    convention, threads = options["convention"], options["threads"]
    judged = read_judgements(qrels, metrics or DEFAULT_METRICS, convention, threads=threads)
    given = {
        name: options[name] for name in ("convention", "missing", "duplicates", "depth", "judged_only", "ties", "no_relevant", "bounds")
    }
    names = file_names(runs)
    return {
        name: evaluate_run(judged, read_ranking(run, convention, threads=threads), metrics or DEFAULT_METRICS, threads=threads, **given)
        for name, run in zip(names, runs, strict=True)
    }


def _system(file: str, column: str, n_files: int, n_columns: int) -> str:
    """What tells a system from the others: its file, its column, or both."""
    return column if n_files == 1 and n_columns > 1 else file if n_columns == 1 else f"{file} {column}"


def file_names(paths: tuple[str, ...]) -> list[str]:
    """Short names of files that tell them apart: without folder and suffix where that is enough."""
    for names in ([Path(path).stem for path in paths], [Path(path).name for path in paths], list(paths)):
        if len(set(names)) == len(names):
            return names
    twice = next(path for path in paths if paths.count(path) > 1)
    raise click.UsageError(f"{twice} is given twice. Give each file once.", click.get_current_context())

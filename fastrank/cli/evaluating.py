"""`fastrank evaluate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastrank.cli.options import complete_metric, convention_option, depth_option, judged_only_option, no_relevant_option, ties_option

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation

FORMATS = ("table", "json", "csv", "tsv", "markdown", "latex")
PATH = click.Path(path_type=Path)


@click.command(
    short_help="Judge the rankings in tables and LETOR text.",
    epilog="""\b
Examples:
  fastrank evaluate predictions.parquet -m nDCG@10,RR -m P@5,10
  fastrank evaluate predictions.parquet --score bm25 --score dense --by locale
  fastrank evaluate old.parquet new.parquet -m ndcg@10 --convention lightgbm --format markdown
  fastrank evaluate "runs/*.csv.gz" --per-query out.csv
  zcat scores.jsonl.gz | fastrank evaluate - -m RR
  fastrank evaluate test.letor --scores test.scores --per-query out.parquet
  fastrank evaluate rank.test --groups rank.test.query --scores predicted.txt""",
)
@click.argument("predictions", nargs=-1, required=True, type=click.Path(allow_dash=True))
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
@convention_option()
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
@click.option("--no-progress", is_flag=True, help="Do not show how far a long run has come.")
def evaluate(
    predictions: tuple[str, ...],
    metrics: tuple[str, ...],
    score: tuple[str, ...],
    doc_ids: str | None,
    by: tuple[str, ...],
    bounds: bool,
    confidence: float,
    form: str,
    per_query: Path | None,
    no_progress: bool,
    **options: Any,
) -> None:
    """Judge the rankings in PREDICTIONS, which have a row per document.

    Each is a file in Parquet, CSV, TSV, JSON lines, Arrow IPC or ORC, plain or compressed, or LETOR text; a directory of such files, a
    quoted pattern or a URI; or - for standard input. Several are several systems, shown side by side.
    """
    from fastrank.engine.calls import DEFAULT_METRICS
    from fastrank.engine.tables import evaluate_table
    from fastrank.report.progress import Progress
    from fastrank.report.text import notes, table

    if options["scores"] is not None and len(predictions) > 1:
        raise click.UsageError(
            f"--scores belongs to one LETOR file, not to {len(predictions)}. Evaluate them one by one.", click.get_current_context()
        )
    if per_query is not None:
        from fastrank.report.per_query import check_per_query, write_per_query

        check_per_query(per_query)
    systems: dict[str, Evaluation] = {}
    for name, path in zip(file_names(predictions), predictions, strict=True):
        with Progress(f"reading {path}", hidden=no_progress) as progress:
            results = evaluate_table(
                sys.stdin.buffer if path == "-" else path,
                metrics or DEFAULT_METRICS,
                score=score,
                doc=doc_ids,
                by=by or None,
                bounds=bounds,
                # Memory stays constant where no single query is asked for.
                per_query=bounds or per_query is not None,
                progress=progress.add,
                **options,
            )
        assert isinstance(results, dict)
        systems |= {_system(name, column, len(predictions), len(score)): result for column, result in results.items()}
    if per_query is not None:
        write_per_query(systems, per_query)
    shown: Any = next(iter(systems.values())) if len(systems) == 1 else systems
    click.echo(table(shown, form, confidence=confidence, stream=sys.stdout))
    if form in ("csv", "tsv"):
        for note in notes(shown, confidence=confidence):
            click.echo(f"note: {note}", err=True)


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

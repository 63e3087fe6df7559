"""`fastrank verify`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fastrank.cli.options import FileName

# As `fastrank.verification.differential.PEERS`, which need not be imported for the help.
PEERS = ("pytrec_eval", "ir_measures", "ranx", "sklearn", "lightgbm", "xgboost", "trec_eval")
UNEXPLAINED = 1


@click.command(
    short_help="Compare every number with another program's.",
    epilog="""\b
Examples:
  fastrank verify --against pytrec_eval
  fastrank verify --against ranx --cases 500 --seed 7
  fastrank verify --against ir_measures qrels.txt bm25.run
  fastrank verify --against trec_eval --binary ./trec_eval qrels.txt bm25.run""",
)
@click.argument("qrels", required=False, type=FileName(path_type=Path))
@click.argument("run", required=False, type=FileName(path_type=Path))
@click.option("--against", required=True, type=click.Choice(PEERS), help="The program to ask. It must be installed.")
@click.option("--cases", type=click.IntRange(min=1), default=100, show_default=True, metavar="N", help="How many random query sets.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="S", help="Which random query sets.")
@click.option("--binary", metavar="FILE", help="Where trec_eval is, if not on PATH.")
@click.option("--format", "form", type=click.Choice(("table", "json")), default="table", show_default=True, help="How to print the result.")
@click.option("--no-progress", is_flag=True, help="Do not show how far a long run has come.")
def verify(
    qrels: Path | None, run: Path | None, against: str, cases: int, seed: int, binary: str | None, form: str, *, no_progress: bool
) -> int:
    """Ask another program for the metrics that it has and compare, on random query sets or on QRELS and RUN.

    Prints how many values were compared, how many differ and by how much, and for each kind of difference the choice that explains it.
    Exit code 1 where one stays unexplained.
    """
    from fastrank.report.progress import Progress
    from fastrank.report.verified import verification_text
    from fastrank.verification.differential import verify as compared

    context = click.get_current_context()
    if (qrels is None) != (run is None):
        raise click.UsageError("give both QRELS and RUN, or neither for random query sets.", context)
    if binary is not None and against != "trec_eval":
        raise click.UsageError("--binary is for --against trec_eval. Leave it out.", context)
    with Progress(f"asking {against}", "values", hidden=no_progress) as progress:
        found = compared(against, n_sets=cases, seed=seed, qrels=qrels, run=run, binary=binary, progress=progress.add)
    click.echo(found.to_json() if form == "json" else verification_text(found, stream=sys.stdout))
    return UNEXPLAINED if found.n_unexplained else 0

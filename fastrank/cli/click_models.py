"""`fastrank clicks fit` and `fastrank clicks simulate`."""

from __future__ import annotations

from typing import Any

import click

from fastrank.cli.clicking import log_options, read, show
from fastrank.cli.options import FileName

# As `fastrank.clicks.models.NEEDS`, which need not be imported for the help.
MODELS = ("gctr", "rctr", "dctr", "pbm", "cm", "dcm", "sdbn", "dbn", "ubm", "ccm")


@click.command(
    short_help="Fit a click model, and say how well it foretells.",
    epilog="""\b
Examples:
  fastrank clicks fit log.parquet --model dbn --save dbn.parquet
  fastrank clicks fit january.parquet --model ubm --test february.parquet --format json""",
)
@log_options
@click.option("--model", type=click.Choice(MODELS), default="pbm", show_default=True, help="How a click depends on rank and other clicks.")
@click.option("--test", type=FileName(), metavar="LOG", help="Score the model on this log, with the same columns. Default: on LOG itself.")
@click.option("--save", type=FileName(), metavar="FILE", help="Write the model as Parquet (or .npz), for simulate and ClickModel.load.")
@click.option("--scores", type=FileName(), metavar="FILE", help="Write what it makes of each document as Parquet: a run for evaluate.")
@click.option("--prior", nargs=2, type=float, default=(1.0, 1.0), show_default=True, metavar="YES NO", help="Pseudo-counts of a parameter.")
@click.option("--gamma", type=float, metavar="SHARE", help="dbn: hold continuation at this value.")
@click.option("--max-iter", type=click.IntRange(min=1), default=500, show_default=True, metavar="N", help="Passes over the data, at most.")
@click.option("--tol", type=float, default=1e-6, show_default=True, metavar="STEP", help="Stop when no parameter moves by more.")
@click.option("--no-leaps", is_flag=True, help="Plain steps of expectation and maximisation.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a bit of the result.")
@click.option("--no-progress", is_flag=True, help="Do not show how far a long fit has come.")
def fit(
    log: str,
    model: str,
    test: str | None,
    save: str | None,
    scores: str | None,
    form: str,
    threads: int | None,
    *,
    no_leaps: bool,
    no_progress: bool,
    **options: Any,
) -> None:
    """Fit a click model to a log: print its parameters by rank, likelihood and perplexity.

    The examination that pbm finds is a parameter of that model and no estimate of position bias: for that see propensity.
    """
    from fastrank.clicks.fitting import fit as fitted
    from fastrank.io.atomic import check_target, write_file
    from fastrank.report.progress import Progress

    for target in (save, scores):
        if target is not None:
            check_target(target)
    tested = dict(options)
    fields = {name: options.pop(name) for name in ("prior", "gamma", "max_iter", "tol")}
    read_in = read(log, options)
    with Progress(f"fitting {model}", "passes", hidden=no_progress) as progress:
        found = fitted(read_in, model, **fields, accelerate=not no_leaps, threads=threads, report=lambda _n, _value: progress.add(1))
    if save is not None:
        found.save(save)
    if scores is not None:
        import pyarrow.parquet as pq

        table = found.scores()
        write_file(scores, lambda file: pq.write_table(table, file))
    show(found.summary(read_in if test is None else read(test, tested), threads=threads), form)


@click.command(
    short_help="Draw clicks from a fitted model.",
    epilog="""\b
Example:
  fastrank clicks simulate log.parquet --model dbn.parquet --seed 1 --save drawn.parquet""",
)
@log_options
@click.option("--model", required=True, type=FileName(), metavar="FILE", help="A model that fit --save wrote.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="The same seed, the same clicks.")
@click.option("--save", type=FileName(), metavar="FILE", help="Write the log with these clicks as Parquet, a row per document shown.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a click.")
def simulate(log: str, model: str, seed: int, save: str | None, form: str, threads: int | None, **options: Any) -> None:
    """Draw clicks on the lists of a log, whose own clicks play no part, and print their rates by position."""
    import pyarrow.parquet as pq

    from fastrank.clicks.models import ClickModel
    from fastrank.clicks.rates import ctr
    from fastrank.clicks.simulation import as_table
    from fastrank.clicks.simulation import simulate as drawn
    from fastrank.io.atomic import check_target, write_file

    if save is not None:
        check_target(save)
    fitted = ClickModel.load(model)
    read_in = read(log, options)
    found = read_in.with_clicks(drawn(read_in, fitted, seed, threads=threads))
    if save is not None:
        table = as_table(found)
        write_file(save, lambda file: pq.write_table(table, file))
    show(ctr(found), form)

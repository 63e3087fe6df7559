"""`fastrank clicks`: what a click log says, and what it does not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from fastrank.cli.explaining import Numbers
from fastrank.cli.options import Decorator, FileName, in_flags
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog
    from fastrank.clicks.outcome import Outcome

FORMATS = ("table", "json", "csv", "tsv", "markdown")
METRICS = ("dcg", "recall", "rr_sum", "precision")
THETA = (
    "Propensities: numbers from position 1 on (1,0.5,0.3); eta:0.8 for (1 / rank) ** 0.8; harvest, to estimate them from this log; "
    "or a file that propensity --format json printed."
)


class _Clicks(click.Group):
    """The group of commands on click logs. Messages name flags where the library names arguments."""

    def invoke(self, context: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(context)
        except InputError as error:
            raise InputError(in_flags(str(error), self.commands.get(context.invoked_subcommand or ""))) from error

    def list_commands(self, _context: click.Context) -> list[str]:
        """As they were added."""
        return list(self.commands)


@click.group(
    cls=_Clicks,
    invoke_without_command=True,
    short_help="Click logs: rates, propensities, relevance, and what a new ranker would be worth.",
    epilog="""\b
Examples:
  fastrank clicks ctr log.parquet --plot curve.png
  fastrank clicks propensity log.parquet --format json > theta.json
  fastrank clicks evaluate log.parquet --theta theta.json --run new.run

\b
LOG is a table (Parquet, CSV, JSON lines, Arrow, ORC) with a row per document shown (columns session_id, query_id, doc_id, position,
click), or with a row per session and lists (qid, docs, clicks: 0 or 1 per document, or the clicked ids).""",
)
@click.pass_context
def clicks(context: click.Context) -> None:
    """What a click log says: rates, position propensities, relevance, and the value of a ranker that did not make it."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


# --- options --------------------------------------------------------------------------------------------------------------------


def log_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which columns of the log are what, and how the result is printed."""
    for option in (
        click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print the result."),
        click.option("--weight", metavar="C", help="Column of how often a session counts."),
        click.option("--cluster", metavar="C", help="Column of what sessions belong to, such as the user, for intervals."),
        click.option("--position", metavar="C", help="Column of ranks, from 1. Default: position, or the order of the rows."),
        click.option("--click", "clicked", metavar="C", help="Column of clicks, 0 or 1. Default: click (lists: clicks)."),
        click.option("--doc", metavar="C", help="Column of document ids. Default: doc_id (lists: docs)."),
        click.option("--query", metavar="C", help="Column of query ids. Default: query_id or qid, if there is one."),
        click.option("--session", metavar="C", help="Column of session ids. Default: session_id."),
        click.argument("log", type=FileName()),
    ):
        command = option(command)
    return command


def level_option() -> Decorator:
    """The confidence of intervals."""
    return click.option(
        "--confidence",
        "level",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
        metavar="SHARE",
        help="Of the intervals.",
    )


def plot_option() -> Decorator:
    """A figure beside the table."""
    return click.option("--plot", type=FileName(), metavar="FILE", help="Also draw it: .png, .svg or .pdf. Needs matplotlib.")


def read(log: str, options: dict[str, Any], columns: tuple[str, ...] = ()) -> ClickLog:
    """The log with the columns that the options name; takes them out of the options."""
    from fastrank.clicks.log import ClickLog
    from fastrank.clicks.reading import read_log

    given = {role: options.pop(role) for role in ("session", "query", "doc", "position", "cluster", "weight")}
    given["click"] = options.pop("clicked")
    return ClickLog(**read_log(log, given, columns))


def show(found: Outcome, form: str, plot: str | None = None) -> None:
    """Print a result, and draw it."""
    from fastrank.report.clicked import text
    from fastrank.report.drawing import separated

    if plot is not None:
        _draw(found, plot)
    if form == "json":
        click.echo(found.to_json())
    elif form in ("csv", "tsv"):
        click.echo(separated(found.to_arrow().to_pylist(), "," if form == "csv" else "\t").rstrip("\n"))
    else:
        click.echo(text(found, form, stream=sys.stdout))


def _draw(found: Any, plot: str) -> None:
    from fastrank.io.atomic import write_file

    kind = os.path.splitext(plot)[1].lstrip(".").lower()
    if kind not in ("png", "svg", "pdf"):
        raise click.UsageError(f"--plot {plot}: give the file a name that ends in .png, .svg or .pdf.", click.get_current_context())
    figure = found.plot()
    write_file(plot, lambda file: figure.savefig(file, format=kind, dpi=150))


def _theta(word: str, log: ClickLog, threads: int | None = None) -> Any:
    """Propensities as --theta names them."""
    from fastrank.clicks.propensities import Propensity, propensity

    if word == "harvest":
        try:
            return propensity(log, threads=threads)
        except InputError as error:
            cure = "Estimate them by fastrank clicks propensity --anchor K --format json, and give that file."
            raise InputError(str(error).replace("Name another anchor=.", cure)) from error
    if os.path.isfile(word):
        with open(word, "rb") as file:
            text = file.read()
        try:
            return Propensity.from_json(text)
        except InputError as error:
            raise InputError(f"{word}: {error} fastrank clicks propensity --format json writes such a file.") from error
    name, colon, strength = word.partition(":")
    context = click.get_current_context()
    try:
        if name == "eta" and colon:
            return [(1 / k) ** float(strength) for k in range(1, max(log.n_positions, 1) + 1)]
        return [float(each) for each in word.split(",")]
    except ValueError:
        raise click.UsageError(f"--theta {word}: there is no such file, and these are no numbers. {THETA}", context) from None


# --- commands -------------------------------------------------------------------------------------------------------------------


@clicks.command(short_help="Click-through rates with intervals.")
@log_options
@click.option(
    "--by", type=click.Choice(("position", "doc", "query", "pair", "all")), default="position", show_default=True, help="A row for each."
)
@level_option()
@plot_option()
def ctr(log: str, by: str, level: float, form: str, plot: str | None, **options: Any) -> None:
    """Clicks over impressions with Wilson intervals, by position, document, query or pair of both."""
    from fastrank.clicks.rates import ctr as rates

    show(rates(read(log, options), by, level), form, plot)


@clicks.command(short_help="How likely each position is examined.")
@log_options
@click.option("--swap", nargs=2, metavar="C C", help="Columns of the two positions that were swapped at random in a session, 0 0 for none.")
@click.option("--shuffled", is_flag=True, help="The log is of an experiment that showed all documents in random order.")
@click.option("--segment", metavar="C", help="Column whose values get a curve each, such as the device.")
@click.option("--anchor", type=click.IntRange(min=1), default=1, show_default=True, metavar="K", help="The position that is 1.")
@level_option()
@plot_option()
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a bit of the result.")
def propensity(
    log: str, swap: tuple[str, str] | None, shuffled: bool, segment: str | None, form: str, plot: str | None, **options: Any
) -> None:
    """Position propensities from an experiment (--swap, --shuffled) or, without one, from documents that rankers moved.

    Without an experiment, documents must have moved for other reasons than their clicks. --format json is what --theta reads.
    """
    from fastrank.clicks.propensities import propensity as estimated
    from fastrank.clicks.propensities import swap_strata

    if swap and shuffled:
        raise click.UsageError("--swap and --shuffled are two experiments: give one.", click.get_current_context())
    columns = tuple(dict.fromkeys([*(swap or ()), *([segment] if segment else [])]))
    read_in = read(log, options, columns)
    strata: Any = "all" if shuffled else "doc"
    rows = None
    if swap:
        pair = [read_in.columns[name].to_pylist() for name in swap]
        strata, rows = swap_strata(read_in, list(zip(*pair, strict=True)))
    show(estimated(read_in, strata, rows, segment, **options), form, plot)


@clicks.command(short_help="Relevance of documents, corrected for where they were shown.")
@log_options
@click.option("--theta", required=True, metavar="WHAT", help=THETA)
@click.option("--prior", nargs=2, type=float, default=(0.0, 0.0), metavar="CLICKS EXPOSURE", help="Added to every pair. Default: 0 0.")
@level_option()
@click.option("--extend", is_flag=True, help="Deeper positions than --theta has take its last value.")
def relevance(log: str, theta: str, prior: tuple[float, float], level: float, extend: bool, form: str, **options: Any) -> None:
    """Clicks over exposure, per query and document, with exact intervals."""
    from fastrank.clicks.relevances import relevance as estimated

    read_in = read(log, options)
    show(estimated(read_in, _theta(theta, read_in), prior=prior, level=level, extend=extend), form)


@clicks.command(short_help="What a new ranker would have been worth.")
@log_options
@click.option("--theta", required=True, metavar="WHAT", help=THETA)
@click.option("--run", "run", required=True, type=FileName(), metavar="RUN", help="The new ranker's lists: a TREC run, or a table.")
@click.option("--metric", default="dcg", show_default=True, metavar="NAME", help=f"{', '.join(METRICS)}.")
@click.option("-k", type=click.IntRange(min=1), default=10, show_default=True, metavar="K", help="Depth of the metric.")
@click.option("--estimator", type=click.Choice(("ips", "snips", "dr")), default="ips", show_default=True, help="How clicks are weighed.")
@click.option(
    "--exposure", type=click.Choice(("row", "policy")), default="row", show_default=True, help="policy: mean over a query's sessions."
)
@click.option("--clip", type=float, metavar="THETA", help="Raise smaller exposures to this.")
@click.option("--sweep", type=Numbers(), default="0,0.5,1,1.5,2", show_default=True, metavar="T,T", help="Strengths of the bias to try.")
@level_option()
@click.option("--extend", is_flag=True, help="Deeper positions than --theta has take its last value.")
@plot_option()
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a bit of the result.")
def evaluate(log: str, theta: str, run: str, k: int, form: str, plot: str | None, threads: int | None, **options: Any) -> None:
    """The value of a new ranker from the clicks on another's lists, the difference of the two, and what it rests on.

    A document that was never shown cannot be valued: the table says how much of the new ranker's top that is.
    """
    from fastrank.clicks.counterfactual import evaluate as valued
    from fastrank.clicks.placement import rank_in
    from fastrank.clicks.reading import read_ranking

    doc, query = options["doc"], options["query"]
    read_in = read(log, options)
    placed = rank_in(read_in, *read_ranking(run, query, doc), k=k)
    show(valued(read_in, _theta(theta, read_in, threads), placed, k=k, threads=threads, **options), form, plot)

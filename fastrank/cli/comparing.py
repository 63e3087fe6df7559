"""`fastrank compare`."""

from __future__ import annotations

import abc
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fastrank.cli.evaluating import file_names
from fastrank.cli.options import (
    FileName,
    complete_convention,
    complete_metric,
    depth_option,
    judged_only_option,
    no_relevant_option,
    ties_option,
)

if TYPE_CHECKING:
    from fastrank.comparison.documents import Explain
    from fastrank.comparison.outcome import Comparison
    from fastrank.evaluation import Evaluation
    from fastrank.metrics.base import Metric

FORMATS = ("table", "json", "csv", "tsv", "markdown", "latex")
TESTS = ("permutation", "t", "wilcoxon", "bootstrap", "tukey", "anova")
CORRECTIONS = ("holm", "bh", "bonferroni", "none")
INTERVALS = ("bca", "percentile", "studentised", "t")
# Options of the rankings, which per-query files have behind them.
RANKING = (
    *("metrics", "query", "label", "score", "doc", "weight", "convention"),
    *("ties", "no_relevant", "depth", "judged_only", "missing", "duplicates"),
)


@click.command(
    short_help="Say which system is better, by how much, how sure, and where.",
    epilog="""\b
Examples:
  fastrank compare --qrels qrels.txt bm25.run dense.run --primary nDCG@10 --html page.html
  fastrank compare old.parquet new.parquet -m nDCG@10,RR --primary nDCG@10 --by locale
  fastrank compare predictions.parquet --score bm25 --score dense --score hybrid --primary RR
  fastrank compare bm25.per-query.parquet dense.per-query.parquet --format markdown

\b
Per-query files are written by: fastrank evaluate ... --per-query FILE.parquet""",
)
@click.argument("files", nargs=-1, required=True, type=FileName())
@click.option("--qrels", type=FileName(), metavar="QRELS", help="Judgements: FILES are then TREC runs.")
@click.option("--primary", metavar="NAME", shell_complete=complete_metric, help="The metric that decides; name it before you look.")
@click.option("--baseline", metavar="SYSTEM", help="Hold the others against this system. Default: all pairs.")
@click.option("--test", type=click.Choice(TESTS), default="permutation", show_default=True, help="Of the differences.")
@click.option("--correction", type=click.Choice(CORRECTIONS), default="holm", show_default=True, help="Over all comparisons.")
@click.option("--interval", type=click.Choice(INTERVALS), default="bca", show_default=True, help="Of means and differences.")
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    metavar="SHARE",
    help="Of the intervals; a difference counts from p = 1 - SHARE down.",
)
@click.option("--cluster", metavar="C", help="Column that says which queries belong together, such as the user.")
@click.option("--resamples", "n_resamples", type=int, default=10_000, show_default=True, metavar="N", help="Of the bootstrap and the test.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="The same seed, the same numbers.")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAMES", shell_complete=complete_metric, help="Metrics to evaluate by.")
@click.option("--query", metavar="C", help="Tables: column of query ids. Default: query_id.")
@click.option("--label", metavar="C", help="Tables: column of labels. Default: label.")
@click.option("--score", multiple=True, metavar="C", help="Tables: column of scores; repeat it for several systems. Default: score.")
@click.option("--doc", metavar="C", help="Tables: column of document ids.")
@click.option("--weight", metavar="C", help="Tables: column of query weights.")
@click.option("--by", multiple=True, metavar="C", help="Tables: column to compare slices by; may repeat.")
@click.option(
    "--convention",
    metavar="NAME",
    shell_complete=complete_convention,
    help="Whose formulas the names mean. Default: trec_eval with --qrels, else fastrank.",
)
@ties_option()
@no_relevant_option()
@depth_option()
@judged_only_option()
@click.option("--missing", metavar="RULE", help="With --qrels: a query that a run lacks counts as an empty list (zero) or not (skip).")
@click.option(
    "--duplicates",
    type=click.Choice(("error", "first", "last", "max")),
    help="With --qrels: which row to keep of a document that stands twice in a query. Default: error.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print the result.")
@click.option("--html", type=FileName(path_type=Path), metavar="FILE", help="Also write a page with plots, movers and worked queries.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Default: all processors. Never changes a bit of the result.")
@click.option("--no-progress", is_flag=True, help="Do not show how far a long run has come.")
def compare(
    files: tuple[str, ...],
    qrels: str | None,
    primary: str | None,
    by: tuple[str, ...],
    cluster: str | None,
    form: str,
    html: Path | None,
    threads: int | None,
    no_progress: bool,
    **options: Any,
) -> None:
    """Compare systems on the same queries: which is better, by how much, how sure, where, and how many more queries it would take.

    FILES are TREC runs (with --qrels), tables with a row per document, or per-query files of evaluate; one a system, in which the first
    is what the others are held against.
    """
    from fastrank.comparison.verdict import compare as compared
    from fastrank.io.atomic import check_target
    from fastrank.report.compared import comparison_text
    from fastrank.report.saved import is_saved

    if html is not None:
        check_target(html)
    ranking = {name: options.pop(name) for name in RANKING}
    by = tuple(dict.fromkeys([*by, *([cluster] if cluster else [])]))
    if qrels is not None:
        source: _Source = _Runs(files, qrels, ranking, by)
    elif any(map(is_saved, files)):
        source = _Saved(files, ranking, by)
    else:
        source = _Tables(files, ranking, by)
    systems = source.evaluations(primary, threads=threads, hidden=no_progress)
    if len(systems) < 2:
        raise click.UsageError("compare needs two systems or more: give another file, or --score twice.", click.get_current_context())
    comparison = compared(systems, primary=primary, cluster=cluster, threads=threads, **options)
    if html is not None:
        comparison.save_html(html, source.explain(comparison))
    click.echo(comparison_text(comparison, form, stream=sys.stdout))
    if form in ("csv", "tsv"):
        for note in comparison.notes:
            click.echo(f"note: {note.message}", err=True)


class _Source(abc.ABC):
    """Files of one kind: what they evaluate to, and the documents behind single queries."""

    def __init__(self, files: tuple[str, ...], ranking: dict[str, Any], by: tuple[str, ...]) -> None:
        self.files, self.ranking, self.by = files, ranking, by

    @abc.abstractmethod
    def evaluations(self, primary: str | None, *, threads: int | None, hidden: bool) -> dict[str, Evaluation]:
        """The systems; `hidden` shows no progress."""

    @abc.abstractmethod
    def explain(self, comparison: Comparison) -> Explain | None:
        """A function that works out the queries which a page lists, or None."""

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Complain about options that say nothing here."""
        for name in names:
            if self.ranking.get(name):
                flag = {"metrics": "-m", "no_relevant": "--no-relevant", "judged_only": "--judged-only"}.get(name, f"--{name}")
                raise click.UsageError(f"{flag} {why}", click.get_current_context())

    def metrics(self, primary: str | None, convention: str) -> Any:
        """The metrics asked for, and among them the one that decides."""
        from fastrank.engine.calls import DEFAULT_METRICS
        from fastrank.metrics.grammar import parse_metric, parse_metrics

        listed = parse_metrics(self.ranking["metrics"] or DEFAULT_METRICS, convention)
        if primary is None:
            return listed
        first = parse_metric(primary, convention)
        return listed if first in listed else (first, *listed)

    def rules(self, *names: str) -> dict[str, Any]:
        """Those of the options that were given."""
        return {name: self.ranking[name] for name in names if self.ranking[name]}


class _Saved(_Source):
    """Per-query files."""

    def evaluations(self, primary: str | None, *, threads: int | None, hidden: bool) -> dict[str, Evaluation]:
        from fastrank.report.saved import load

        self.refuse(RANKING, "belongs to rankings, and these files hold the values of queries: give it to evaluate.")
        systems = {name: load(path) for name, path in zip(file_names(self.files), self.files, strict=True)}
        for column in self.by:
            if not all(column in each.by for each in systems.values()):
                words = f"not all of these files have a column {column}: they bring the slices that evaluate --by gave them."
                raise click.UsageError(words, click.get_current_context())
        return systems

    def explain(self, comparison: Comparison) -> None:
        return None


class _Runs(_Source):
    """TREC runs and their judgements."""

    def __init__(self, files: tuple[str, ...], qrels: str, ranking: dict[str, Any], by: tuple[str, ...]) -> None:
        super().__init__(files, ranking, by)
        self.path = qrels

    def evaluations(self, primary: str | None, *, threads: int | None, hidden: bool) -> dict[str, Evaluation]:
        from fastrank.engine.runs import evaluate_run, read_judgements, read_ranking
        from fastrank.report.progress import Progress

        self.refuse(("query", "label", "score", "doc", "weight"), "names a column, and TREC files have none.")
        if self.by:
            raise click.UsageError("--by and --cluster name a column, and TREC files have none.", click.get_current_context())
        convention = self.ranking["convention"] or "trec_eval"
        metrics = self.metrics(primary, convention)
        rules = self.rules("ties", "no_relevant", "depth", "judged_only", "missing", "duplicates")
        systems = {}
        self.runs = {}
        with Progress(f"reading {self.path}", hidden=hidden) as progress:
            self.qrels = read_judgements(self.path, metrics, convention, threads=threads)
            progress.add(self.qrels.n_documents)
        for name, path in zip(file_names(self.files), self.files, strict=True):
            with Progress(f"reading {path}", hidden=hidden) as progress:
                self.runs[name] = read_ranking(path, convention, threads=threads)
                progress.add(self.runs[name].n_documents)
                systems[name] = evaluate_run(
                    self.qrels, self.runs[name], metrics, convention=convention, bounds=_have_bounds(metrics), threads=threads, **rules
                )
        return systems

    def explain(self, comparison: Comparison) -> Explain | None:
        from fastrank.comparison.documents import explain_with, from_runs
        from fastrank.io.judgements import Qrels
        from fastrank.report.page import queries_shown

        if not isinstance(self.qrels, Qrels):  # by group: no label of a document explains the value
            return None
        qrels, runs = self.qrels, self.runs
        if rule := self.ranking["duplicates"]:
            qrels, runs = qrels.without_duplicates(rule), {name: run.without_duplicates(rule) for name, run in runs.items()}
        documents = from_runs(qrels, runs, queries_shown(comparison))
        return explain_with(documents, comparison.deciding, convention=comparison.conventions[0], **self.rules("depth", "judged_only"))


class _Tables(_Source):
    """Prediction tables."""

    def evaluations(self, primary: str | None, *, threads: int | None, hidden: bool) -> dict[str, Evaluation]:
        from fastrank.engine.tables import evaluate_table
        from fastrank.report.progress import Progress

        self.refuse(("missing", "duplicates"), "belongs to --qrels.")
        convention = self.ranking["convention"] or "fastrank"
        metrics = self.metrics(primary, convention)
        scores = self.ranking["score"] or ("score",)
        roles = self.rules("query", "label", "doc")
        rules = self.rules("weight", "ties", "no_relevant", "depth", "judged_only")
        systems: dict[str, Evaluation] = {}
        self.sources: dict[str, tuple[str, str]] = {}
        for name, path in zip(file_names(self.files), self.files, strict=True):
            with Progress(f"reading {path}", hidden=hidden) as progress:
                results = evaluate_table(
                    path,
                    metrics,
                    score=scores,
                    by=self.by or None,
                    convention=convention,
                    bounds=_have_bounds(metrics),
                    progress=progress.add,
                    threads=threads,
                    **roles,
                    **rules,
                )
            assert isinstance(results, dict)
            for column, result in results.items():
                system = column if len(self.files) == 1 else name if len(scores) == 1 else f"{name} {column}"
                systems[system] = result
                self.sources[system] = (path, column)
        return systems

    def explain(self, comparison: Comparison) -> Explain:
        from fastrank.comparison.documents import explain_with, from_tables
        from fastrank.report.page import queries_shown

        roles = {"query": "query_id", "label": "label", "doc": None} | self.rules("query", "label", "doc")
        documents = from_tables(self.sources, queries_shown(comparison), **roles)
        return explain_with(documents, comparison.deciding, convention=comparison.conventions[0], **self.rules("depth", "judged_only"))


def _have_bounds(metrics: Iterable[Metric]) -> bool:
    """Whether all metrics can say what equal scores and unjudged documents could change."""
    return all(metric.has_bounds for metric in metrics)

"""`evaluate_run`: metrics of a ranking with document ids, against judgements."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from fastrank.convention import Convention, as_convention, one_of
from fastrank.engine.calls import DEFAULT_METRICS, Metrics, check_threads
from fastrank.engine.plan import make_plan
from fastrank.engine.run import run as run_plan
from fastrank.errors import InputError
from fastrank.evaluation import Note
from fastrank.io.grouped import GroupedQrels
from fastrank.io.join import Joined, join
from fastrank.io.judgements import DUPLICATE_RULES, Pairs, Qrels, Run
from fastrank.io.mapping import join_dicts, qrels_of, run_of
from fastrank.io.recognition import is_table

if TYPE_CHECKING:
    from fastrank.evaluation import Evaluation

MISSING_RULES = ("zero", "skip")


def evaluate_run(
    qrels: Any,
    run: Any,
    metrics: Metrics = DEFAULT_METRICS,
    *,
    convention: str | Convention = "trec_eval",
    missing: str = "zero",
    depth: int | None = None,
    duplicates: str = "error",
    judged_only: bool = False,
    ties: str | None = None,
    no_relevant: str | None = None,
    bounds: bool = False,
    threads: int | None = None,
) -> Evaluation:
    """Judge the ranking of one system against judgements, matched by query and document id.

    Parameters
    ----------
    qrels, run
        A path to a TREC file ("-": standard input), its bytes or an open file, packed or not; an `fr.Qrels` or `fr.Run`, which can be
        used again and again; a dict ``{query: {document: label or score}}``; or a table, as `evaluate_table` takes (a Parquet, Arrow,
        ORC, JSON lines or CSV file, several, Arrow data, a data frame), with columns query_id, doc_id, and label (or relevance) or
        score. For other names: `fr.Qrels.from_table`, `fr.Run.from_table`. For metrics of subtopics or judges (alpha_nDCG, AP_avgjg,
        PrefsFul, ...) qrels is a file of judgements by group, a dict ``{query: {group: {document: label}}}`` or an `fr.GroupedQrels`.
    metrics
        Names or metrics, such as ``"nDCG@10,RR"``.
    convention
        What the names leave open. "trec_eval" is version 10, "trec_eval9" version 9, which compares scores as float32.
    missing
        A query of the qrels that is not in the run: "zero" counts it, as an empty list (``trec_eval -c``); "skip" leaves it out.
    depth
        Cut every ranking to its first `depth` documents (``trec_eval -M``).
    duplicates
        A document that stands twice in one query, in the qrels or the run: "error", or keep the "first", the "last" or that of the
        greatest label or score ("max"). Applied before any cut.
    judged_only
        Leave unjudged documents out of the rankings (``trec_eval -J``): under a trec_eval convention those with a label below 0, too.
    ties, no_relevant
        Override the convention: the order of equal scores; the value of a query with nothing to find.
    bounds
        Keep, per query, the least and the greatest value over the orders of equal scores, and the value if all unjudged documents
        were relevant.
    threads
        None: every processor. The result has the same bits for any number.

    Returns
    -------
    Evaluation
        A value per query and metric. Queries come in the order of the qrels; sorted by id when the rows of one were not together.
        Queries of the run that are not in the qrels are left out. The notes count all of these. Judgements without a query, from an
        empty file as well, give no query and the mean NaN.

    Errors: `InputError`, one line that says what, where (file and line) and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> qrels = {"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 2}}
    >>> run = {"q1": {"d1": 0.5, "d2": 0.9, "d3": 0.1}}
    >>> fr.evaluate_run(qrels, run, "RR,AP").mean()
    {'RR': 0.25, 'AP': 0.25}
    >>> fr.evaluate_run(qrels, run, "RR,AP", missing="skip").mean()
    {'RR': 0.5, 'AP': 0.5}
    """
    threads = check_threads(threads)
    one_of("missing", missing, MISSING_RULES)
    one_of("duplicates", duplicates, DUPLICATE_RULES)
    plan = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant, depth=depth, judged_only=judged_only, bounds=bounds)
    if all(isinstance(source, str) and source == "-" for source in (qrels, run)):
        raise InputError("qrels and run cannot both come from standard input: give a path for one of them.")
    rules = {"skip_missing": missing == "skip", "judged_only": judged_only}
    # Bounds ask for the documents that nobody judged, which the short way of dicts leaves out.
    grouped = plan.grouped is not None or isinstance(qrels, GroupedQrels)
    joined = None if bounds or grouped else join_dicts(qrels, run, plan.convention, **rules)
    notes: tuple[Note, ...] = ()
    if grouped:
        by_group, ranked = _as_grouped(qrels), _as_run(run, plan.convention, threads)
        joined, notes = _join_grouped(by_group, ranked, plan.convention, duplicates, threads, **rules)
    elif joined is None:
        judged, ranked = _as_qrels(qrels, threads), _as_run(run, plan.convention, threads)
        joined, notes = join_distinct(judged, ranked, plan.convention, duplicates, threads, **rules)
    result = run_plan(plan, joined.batch, threads)
    result.notes = (*result.notes, *notes_of_queries(joined.n_missing, joined.n_unjudged, missing), *notes)
    return result


def read_judgements(path: str, metrics: Metrics, convention: str | Convention, *, threads: int | None = None) -> Qrels | GroupedQrels:
    """Read a file of judgements once for several calls of `evaluate_run`: with their groups where a metric asks for them.

    For command lines, on which a file that holds nothing is an earlier step that failed: `InputError`.
    """
    qrels = Qrels.read(path, threads=threads) if make_plan(metrics, convention).grouped is None else GroupedQrels.read(path)
    if not len(qrels):
        name = (qrels.numbered if isinstance(qrels, GroupedQrels) else qrels).name
        raise InputError(f"{name}: the file holds no judgements. Check the step that wrote it.")
    return qrels


def read_ranking(path: str, convention: str | Convention, *, threads: int | None = None) -> Run:
    """Read the file of a run, for command lines: as `read_judgements`."""
    run = _as_run(path, as_convention(convention), threads)
    if not len(run):
        raise InputError(f"{run.name}: the file holds no ranking. Check the step that wrote it.")
    return run


def join_distinct(
    qrels: Qrels, run: Run, convention: Convention, duplicates: str, threads: int | None, *, skip_missing: bool, judged_only: bool
) -> tuple[Joined, tuple[Note, ...]]:
    """Check the rows of both, drop duplicates by the rule, and match the others; with notes on what was dropped or ignored."""
    _check(qrels, run, convention)
    distinct = qrels.without_duplicates(duplicates, threads)
    unique = run if duplicates == "error" else run.without_duplicates(duplicates, threads)
    joined = join(distinct, unique, convention, skip_missing=skip_missing, judged_only=judged_only, threads=threads)
    n_dropped = qrels.n_documents - distinct.n_documents + run.n_documents - unique.n_documents
    return joined, tuple(_notes_of_rows(qrels, run, n_dropped, duplicates))


def _join_grouped(
    qrels: GroupedQrels, run: Run, convention: Convention, duplicates: str, threads: int | None, *, skip_missing: bool, judged_only: bool
) -> tuple[Joined, tuple[Note, ...]]:
    """As `join_distinct`, with the groups of the judgements beside the batch."""
    qrels.check(convention)
    # The numbers of documents are no labels, whatever a convention has labels be.
    plain = dataclasses.replace(convention, labels=None, negative_labels=True)
    joined, notes = join_distinct(qrels.numbered, run, plain, duplicates, threads, skip_missing=skip_missing, judged_only=judged_only)
    return dataclasses.replace(joined, batch=qrels.fill(joined.batch)), notes


def _as_grouped(source: Any) -> GroupedQrels:
    if isinstance(source, GroupedQrels):
        return source
    if isinstance(source, Mapping):
        return GroupedQrels.from_dicts(source)
    if isinstance(source, Qrels | Run) or is_table(source):
        raise InputError("metrics of subtopics or judges need to know the group of each judgement: read them with fr.GroupedQrels.")
    return GroupedQrels.read(_readable("qrels", source))


def _as_qrels(source: Any, threads: int | None) -> Qrels:
    if isinstance(source, Qrels):
        return source
    if isinstance(source, Run):
        raise InputError("qrels must be judgements, not a Run: the order is qrels, run.")
    if isinstance(source, Mapping):
        return qrels_of(source)
    if is_table(source):
        from fastrank.io.id_tables import label_column

        return Qrels.from_table(source, label=label_column(source))
    return Qrels.read(_readable("qrels", source), threads=threads)


def _as_run(source: Any, convention: Convention, threads: int | None) -> Run:
    if isinstance(source, Run):
        return source
    if isinstance(source, Qrels):
        raise InputError("run must be a ranking, not Qrels: the order is qrels, run.")
    if isinstance(source, Mapping):
        return run_of(source, exact=convention.scores is None)
    if is_table(source):
        return Run.from_table(source)
    return Run.read(_readable("run", source), threads=threads)


def _readable(name: str, source: Any) -> Any:
    """What may be a TREC file."""
    if isinstance(source, str | os.PathLike | bytes | bytearray | memoryview) or hasattr(source, "read"):
        return source
    known = f"a file (its path, bytes, or open), a dict of dicts, a table, or fr.{name.capitalize()}"
    raise InputError(f"{name} must be {known}, not {type(source).__name__}.")


def _check(qrels: Qrels, run: Run, convention: Convention) -> None:
    """What a convention does not take."""
    if convention.trec:
        qrels.check_whole(convention.name)
    else:
        run.refuse_longer(convention.name)
    if not convention.negative_labels:
        qrels.check_not_negative(convention.name)


def notes_of_queries(n_missing: int, n_unjudged: int, missing: str) -> Iterator[Note]:
    """Queries that only one side has."""
    n = n_missing
    if n:
        fate = "counted as empty lists" if missing == "zero" else "left out"
        yield Note("missing_query", n, f"{_plural(n, 'query', 'queries')} of the qrels not in the run: {fate}; missing: {missing}.")
    n = n_unjudged
    if n:
        yield Note("unjudged_query", n, f"{_plural(n, 'query', 'queries')} of the run not in the qrels: left out.")


def _notes_of_rows(qrels: Qrels, run: Run, n_dropped: int, duplicates: str) -> Iterator[Note]:
    """What was ignored or dropped on the way in."""
    if n_dropped:
        yield Note("duplicates", n_dropped, f"{_plural(n_dropped, 'row', 'rows')} dropped as duplicates; duplicates: {duplicates}.")
    n = run.n_longer
    if n:
        yield Note("extra_fields", n, f"{_plural(n, 'line', 'lines')} of the run with more than six fields: the rest was not looked at.")
    for pairs in (qrels, run):
        n = pairs.n_comments
        if n:
            yield Note("comments", n, f"{_plural(n, 'line', 'lines')} of {_source_name(pairs)} beginning with #: taken as comments.")


def _source_name(pairs: Pairs) -> str:
    return "the qrels" if isinstance(pairs, Qrels) else "the run"


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"

"""What trec_eval prints: version 10's lines, in its order, with its exit codes.

Where the C program has a defect, the right number stands here, and a note on stderr says so.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.arrays import frozen
from fastrank.compat.trec_help import help_text
from fastrank.compat.trec_options import (
    CALCULATION_ERROR,
    INPUT_ERROR,
    NOTHING_TO_EVALUATE,
    Asked,
    Ending,
    Options,
    asked_lines,
    read_options,
)
from fastrank.convention import conventions
from fastrank.engine.runs import evaluate_run, join_distinct
from fastrank.errors import InputError
from fastrank.gains import GainTable
from fastrank.io.grouped import GroupedQrels
from fastrank.io.judgements import Qrels, Run
from fastrank.io.text import open_text
from fastrank.metrics.binary import P, R

Say = Callable[[str], Any]
Write = Callable[[bytes], Any]

_SUMMARY = b"all"
# Values that the C program prints as whole numbers; all are sums over the queries, but for the number of queries itself.
_COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret", "prefs_num_prefs_poss", "prefs_num_prefs_ful",
           "prefs_num_prefs_ful_ret")  # fmt: skip
_SUMMARY_ONLY = ("runid", "num_q", "gm_map", "gm_bpref")
_PER_QUERY_ONLY = ("relstring",)
# The value that a geometric mean counts for 0, and what is printed where no mean and deviation are known.
_LEAST_VALUE, _NO_ZSCORE = 1e-5, -1_000_000.0
_RANKED_WITHOUT_RELEVANCE = ("runid", "num_q")


class Column(NamedTuple):
    """A line of the output for every query: what was asked, and its values; a text where `values` are bytes."""

    asked: Asked
    values: Any


def main(arguments: Sequence[str], write: Write, say: Say) -> int:
    """Run the command: results go to `write`, what there is to say of them to `say`. Returns the exit code."""
    try:
        options = read_options(arguments)
        if options.help:
            write(help_text(options).encode())
            return 0
        if options.version:
            say(f"trec_eval version 10.0 (fastrank {sys.modules['fastrank'].__version__})\n")
            return 0
        write(_output(options, lambda note: say(f"note: {note}\n")))
    except Ending as ending:
        say(str(ending))
        return ending.code
    return 0


def _output(options: Options, note: Say) -> bytes:
    asked, notes = asked_lines(options)
    qrels, run = _read(options, note)
    for each in notes:
        note(each)
    _check_formats(asked, options)
    n_topics, n_missing, run = _common_queries(qrels, run, options, note)
    columns, keys = _evaluated(asked, qrels, run, options)
    _note_defects(asked, qrels, options, n_missing, note)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    if options.query is not None:
        order = [q for q in order if keys[q] == options.query.encode()]
    if not order:
        raise Ending(NOTHING_TO_EVALUATE, "trec_eval: No queries with both results and relevance info\n")
    keys = [keys[q] for q in order]
    columns = [column._replace(values=column.values[order]) for column in columns]
    if options.zscores is not None:
        columns = list(_as_zscores(columns, keys, _read_zscores(options.zscores)))
    n_queries = n_topics if options.complete else len(keys)
    lines = list(_query_lines(columns, keys)) if options.per_query else []
    lines += _summary_lines(columns, len(keys), n_queries, run) if options.summary else []
    return b"".join(lines)


# --- input ----------------------------------------------------------------------------------------------------------------------


def _read(options: Options, note: Say) -> tuple[Qrels | GroupedQrels, Run]:
    qrels_path, run_path = options.files
    if qrels_path == run_path == "-":
        raise Ending(INPUT_ERROR, "trec_eval: qrels and results cannot both come from standard input\n")
    qrels: Qrels | GroupedQrels = _opened(Qrels.read if options.rel_format == "qrels" else GroupedQrels.read, qrels_path)
    run = _opened(Run.read, run_path)
    for pairs, path in ((qrels, qrels_path), (run, run_path)):
        if not len(pairs):
            raise Ending(INPUT_ERROR, f"trec_eval: Quit in file '{path}': it holds no lines\n")
    if isinstance(qrels, Qrels):
        whole = np.trunc(qrels.labels) + 0.0
        n_changed = int(np.count_nonzero(whole != qrels.labels))
        if n_changed:
            first = int(np.flatnonzero(whole != qrels.labels)[0])
            what = f"{n_changed} labels of the qrels are no whole numbers, the first in {qrels.place(first)}"
            note(f"{what}: their fractions were cut off, as trec_eval does without a word.")
            qrels = dataclasses.replace(qrels, values=frozen(whole, np.float64))
    return qrels, run


def _opened(read: Callable[[str], Any], path: str) -> Any:
    try:
        return read(path)
    except (InputError, OSError) as error:
        raise Ending(INPUT_ERROR, f"trec_eval: Quit in file '{path}': {error}\n") from None


def _check_formats(asked: list[Asked], options: Options) -> None:
    """Measures of judges take a format of their own, the others take qrels."""
    grouped = options.rel_format != "qrels"
    for each in asked:
        if each.measure not in _RANKED_WITHOUT_RELEVANCE and (each.metric is not None and each.metric.grouped) != grouped:
            what = f"trec_eval: Can't calculate measure '{each.measure}': it is not defined for qrels of format '{options.rel_format}'"
            raise Ending(CALCULATION_ERROR, f"{what}. Choose a format with -R, or measures with -m.\n")


def _common_queries(qrels: Qrels | GroupedQrels, run: Run, options: Options, note: Say) -> tuple[int, int, Run]:
    """How many topics the qrels have, how many of them the run has not, and the run: an empty one where it has none of them."""
    keys = (qrels.numbered if isinstance(qrels, GroupedQrels) else qrels).query_keys
    n_missing = pc.index_in(keys, value_set=run.query_keys).null_count
    if n_missing and not options.complete:
        what = f"{n_missing} of {len(keys)} topics of the qrels are not in the results"
        note(f"{what}: left out. trec_eval 10 ends at the first of them (exit code 4); -c counts them as 0.")
    if n_missing == len(keys):
        if not options.complete:
            raise Ending(NOTHING_TO_EVALUATE, "trec_eval: No queries with both results and relevance info\n")
        run = dataclasses.replace(Run.from_arrays([], [], []), last_tag=run.last_tag)
    return len(keys), n_missing, run


# --- values ---------------------------------------------------------------------------------------------------------------------


def _evaluated(asked: list[Asked], qrels: Qrels | GroupedQrels, run: Run, options: Options) -> tuple[list[Column], list[bytes]]:
    """Every column with its values, and the queries' ids."""
    rules: dict[str, Any] = {"missing": "zero" if options.complete else "skip", "judged_only": options.judged_only}
    metrics = [_with_flags(each.metric, options) for each in asked if each.metric is not None]
    of_sets = [_with_flags(metric, options) for metric in (P(), R())] if any(each.measure == "set_F" for each in asked) else []
    try:
        result = evaluate_run(qrels, run, [*metrics, *of_sets] or ["num_q"], convention="trec_eval", depth=options.depth, **rules)
        texts = [_relevance_texts(each.length, qrels, run, options) for each in asked if each.measure == "relstring"]
    except InputError as error:
        raise Ending(CALCULATION_ERROR, f"trec_eval: {error}\n") from None
    assert result.query_ids is not None
    keys = _keys(result.query_ids)
    columns = []
    for each in asked:
        if each.measure == "set_F":
            columns.append(Column(each, _weighted_mean(each.metric, *(result[metric] for metric in of_sets))))
        elif each.metric is not None:
            columns.append(Column(each, result[_with_flags(each.metric, options)]))
        else:
            columns.append(Column(each, texts[0] if each.measure == "relstring" else np.full(len(keys), b"", object)))
    return columns, keys


def _weighted_mean(metric: Any, precision: np.ndarray, recall: np.ndarray) -> np.ndarray:
    """F in the operations of the C program: where the exact value lies halfway between two that are printed, they decide."""
    weight = 1.0 if metric.beta is None else round(metric.beta**2, 12)
    above, below = (weight + 1.0) * precision * recall, weight * precision + recall
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


def _with_flags(metric: Any, options: Options) -> Any:
    changes = {"rel": options.level, "collection": options.collection}
    return dataclasses.replace(metric, **{name: value for name, value in changes.items() if name in metric.parameters()})


def _keys(ids: pa.Array) -> list[bytes]:
    is_bytes = pa.types.is_binary(ids.type) or pa.types.is_large_binary(ids.type)
    found: list[bytes] = (ids if is_bytes else ids.cast(pa.string()).cast(pa.binary())).to_pylist()
    return found


def _relevance_texts(length: int, qrels: Any, run: Run, options: Options) -> np.ndarray:
    """The labels of the first documents of each query, a letter each."""
    convention, skip = conventions["trec_eval"], not options.complete
    joined, _ = join_distinct(qrels, run, convention, "error", None, skip_missing=skip, judged_only=options.judged_only)
    batch, length = joined.batch, length if options.depth is None else min(length, options.depth)
    assert batch.scores is not None
    assert batch.doc_ids is not None
    found = np.empty(batch.n_queries, object)
    for q, (start, stop) in enumerate(zip(batch.offsets[:-1].tolist(), batch.offsets[1:].tolist(), strict=True)):
        scores, ids = batch.scores[start:stop], batch.doc_ids
        rows = np.arange(stop - start)
        if 0 < length < stop - start:  # those that can be among the first
            rows = np.flatnonzero(scores >= np.partition(scores, stop - start - length)[stop - start - length])
        names = [ids.text[ids.start[start + row] : ids.stop[start + row]].tobytes() for row in rows.tolist()]
        ranked = sorted(zip(scores[rows].tolist(), names, batch.labels[start:stop][rows].tolist(), strict=True), reverse=True)
        found[q] = b"".join(_letter(label) for _, _, label in ranked[:length])
    return found


def _letter(label: float) -> bytes:
    """Not in the pool, in the pool and not judged, a label of one digit, or a larger one."""
    return b"-" if label != label else b"." if label < 0 else b">" if label > 9 else b"%d" % label


def _note_defects(asked: list[Asked], qrels: Any, options: Options, n_missing: int, note: Say) -> None:
    """What the C program would print otherwise."""
    measures = {each.measure for each in asked}
    if isinstance(qrels, Qrels) and (n_negative := int(np.count_nonzero(np.maximum.reduceat(qrels.labels, qrels.offsets[:-1]) < 0))):
        note(
            f"{n_negative} topics of the qrels have labels below 0 alone: they count 0; trec_eval may end there, or give an ideal_dcg of 1."
        )
    for each in asked if n_missing and options.complete else []:
        if each.printed != each.measure and each.measure in ("relstring", "utility", "rbp_resid"):
            note(f"{each.printed}: a topic without results has an empty list; trec_eval -c counts a document there that is not judged.")
    if options.complete and options.level > 1 and "num_rel" in measures:
        note("num_rel counts what is relevant at this level; for topics without results, trec_eval -c counts it at level 1.")
    if options.judged_only:
        note("-J: a topic left without documents counts 0; trec_eval prints nan for some measures there.")
    if "rbp" in measures and float(max(qrels.labels, default=0)) > 1:
        note("rbp: labels are scaled to the range from 0 to 1; trec_eval scales graded ones by uninitialised memory.")
    for each in asked:
        gains = sorted({0.0, *_own_gains(each.metric)})
        if any(0 < larger - smaller < 1 for smaller, larger in itertools.pairwise(gains)):
            note(f"{each.printed}: trec_eval takes gains less than 1 apart for equal, and prints another number.")
    if options.debug:
        note("-D: measures leave no trace of their calculation here.")


def _own_gains(metric: Any) -> list[float]:
    gain = getattr(metric, "gain", None)
    return [own for _, own in gain.entries] if isinstance(gain, GainTable) else []


# --- z-scores -------------------------------------------------------------------------------------------------------------------


def _read_zscores(path: str) -> dict[tuple[bytes, bytes], tuple[float, float]]:
    """Lines ``query measure mean deviation``."""
    text = _opened(open_text, path)
    found: dict[tuple[bytes, bytes], tuple[float, float]] = {}
    for number, line in enumerate(text.read(text.begin, text.end).rstrip(b"\n\0").split(b"\n"), 1):
        try:
            query, measure, mean, deviation = line.split()
            found[query, measure] = float(mean), float(deviation)
        except ValueError:
            fields = "query, measure, mean and standard deviation"
            raise Ending(INPUT_ERROR, f"trec_eval.get_zscores: Malformed line {number} of '{path}': it must hold {fields}\n") from None
    return found


def _as_zscores(columns: list[Column], keys: list[bytes], known: dict[tuple[bytes, bytes], tuple[float, float]]) -> Iterator[Column]:
    for column in columns:
        if column.asked.metric is None:
            yield column
            continue
        values, name = _as_accumulated(column), column.asked.printed.encode()
        yield column._replace(values=np.array([_zscore(value, known.get((key, name))) for value, key in zip(values, keys, strict=True)]))


def _zscore(value: float, known: tuple[float, float] | None) -> float:
    if known is None:
        return _NO_ZSCORE
    mean, deviation = known
    if deviation == 0:
        return 0.0 if value == mean else _NO_ZSCORE
    return (value - mean) / deviation


def _as_accumulated(column: Column) -> np.ndarray:
    """What is added up over the queries: of geometric means, logarithms."""
    return np.log(np.maximum(column.values, _LEAST_VALUE)) if column.asked.measure.startswith("gm_") else column.values


# --- lines ----------------------------------------------------------------------------------------------------------------------


def _line(name: str, query: bytes, value: bytes) -> bytes:
    return b"%-22s\t%s\t%s\n" % (name.encode(), query, value)


def _shown(measure: str, value: float) -> bytes:
    return b"%d" % int(value) if measure in _COUNTS else b"%6.4f" % value


def _query_lines(columns: list[Column], keys: list[bytes]) -> Iterator[bytes]:
    shown = [column for column in columns if column.asked.measure not in _SUMMARY_ONLY]
    values = [column.values.tolist() for column in shown]
    for q, key in enumerate(keys):
        for column, each in zip(shown, values, strict=True):
            asked = column.asked
            yield _line(asked.printed, key, b"'%s'" % each[q] if asked.metric is None else _shown(asked.measure, each[q]))


def _summary_lines(columns: list[Column], n_here: int, n_queries: int, run: Run) -> Iterator[bytes]:
    """Totals over the queries, which are added up one by one as there: the last digit may depend on it."""
    for asked, values in columns:
        if asked.measure == "runid":
            yield _line(asked.printed, _SUMMARY, (run.last_tag or "").encode("utf-8", "surrogateescape"))
        elif asked.measure == "num_q":
            yield _line(asked.printed, _SUMMARY, b"%d" % n_here)
        elif asked.measure not in _PER_QUERY_ONLY:
            total = float(np.cumsum(_as_accumulated(Column(asked, values)))[-1])
            mean = total if asked.measure in _COUNTS else total / n_queries
            yield _line(asked.printed, _SUMMARY, _shown(asked.measure, float(np.exp(mean)) if asked.measure.startswith("gm_") else mean))

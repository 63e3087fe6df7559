"""Metrics of judgements by subtopic or judge, a query at a time, from dicts of what was judged and what was retrieved.

``qrels`` is ``{query: {group: {document: label}}}``, where a judge who compared documents in several parts has a list of dicts, and
``run`` is ``{query: {document: score}}``. Documents are text. A query of the qrels that is not in the run has an empty list.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastrank.errors import InputError
from fastrank.reference._layout import Cutoff, FloatArray, cutoffs, settle

Qrels = Mapping[str, Mapping[str, Any]]
Run = Mapping[str, Mapping[str, float]]


class _Query(NamedTuple):
    """The documents in rank order, and the judgements of each group, of which each is a list of parts."""

    ranked: list[str]
    groups: list[list[dict[str, float]]]

    def relevant(self, rel: float) -> list[set[str]]:
        """The relevant documents of each group."""
        return [{name for part in parts for name, label in part.items() if label >= rel} for parts in self.groups]


def _queries(qrels: Qrels, run: Run, ties: str, judged_only: bool = False) -> Iterator[_Query]:
    for query, groups in qrels.items():
        parts = [[dict(each)] if isinstance(each, Mapping) else [dict(part) for part in each] for each in groups.values()]
        ranked = _ranked(run.get(query, {}), ties)
        if judged_only:
            judged = {name for group in parts for part in group for name in part}
            ranked = [name for name in ranked if name in judged]
        yield _Query(ranked, parts)


def _ranked(scores: Mapping[str, float], ties: str) -> list[str]:
    if ties not in ("docid", "ascending_docid", "input"):
        raise InputError(f"ties must be docid, ascending_docid or input for metrics of judgements by group: got {ties!r}.")
    names = list(scores) if ties == "input" else sorted(scores, key=str.encode, reverse=ties == "docid")
    return sorted(names, key=lambda name: -scores[name])


def _limit(query: _Query, k: Cutoff) -> int:
    return int(cutoffs(k, np.array([len(query.ranked)]))[0])


# --- diversity ------------------------------------------------------------------------------------------------------------------


def _novel_gains(ranked: Sequence[str], subtopics: Sequence[set[str]], alpha: float) -> FloatArray:
    """The novel gain at each rank."""
    left, gains = [1.0] * len(subtopics), []
    for name in ranked:
        here = [s for s, documents in enumerate(subtopics) if name in documents]
        gains.append(sum(left[s] for s in here))
        for s in here:
            left[s] *= 1.0 - alpha
    return np.array(gains, np.float64)


def _greedy(subtopics: Sequence[set[str]], alpha: float) -> list[str]:
    """The relevant documents, at each rank the one of the greatest novel gain, of equal ones that of the greatest id."""
    names = sorted(set().union(*subtopics), key=str.encode, reverse=True)
    ranked: list[str] = []
    while names:
        gains = [_novel_gains([*ranked, name], subtopics, alpha)[-1] for name in names]
        ranked.append(names.pop(int(np.argmax(gains))))
    return ranked


def _novelty(
    discount: Callable[[FloatArray], FloatArray], ideal: bool, endless: Callable[[float], float] | None = None
) -> Callable[..., FloatArray]:
    def values(
        qrels: Qrels, run: Run, k: Cutoff, rel: float, alpha: float, ties: str, no_relevant: str, judged_only: bool = False
    ) -> FloatArray:
        found, nothing = [], []
        for query in _queries(qrels, run, ties, judged_only):
            subtopics = [documents for documents in query.relevant(rel) if documents]
            limit = _limit(query, k)

            def total(ranked: Sequence[str], limit: int | None, subtopics: Sequence[set[str]] = subtopics) -> float:
                gains = _novel_gains(ranked, subtopics, alpha)[:limit]
                return float(np.sum(gains * discount(np.arange(1.0, len(gains) + 1))))

            value = total(query.ranked, limit)
            if subtopics and ideal:
                value /= total(_greedy(subtopics, alpha), limit if k is not None else None)
            elif subtopics:
                ranks = np.arange(1.0, max(limit, 1) + 1)
                everything = np.sum((1.0 - alpha) ** (ranks - 1) * discount(ranks)) if endless is None else endless(alpha)
                value /= len(subtopics) * everything
            found.append(value)
            nothing.append(not subtopics)
        return settle(np.array(found, np.float64), np.array(nothing, np.bool_), no_relevant)

    return values


def _log2(ranks: FloatArray) -> FloatArray:
    return np.asarray(1.0 / np.log2(ranks + 1.0))


def _zipf(ranks: FloatArray) -> FloatArray:
    return np.asarray(1.0 / ranks)


def alpha_dcg(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, alpha: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Discounted novel gain over that of documents which are all relevant to every subtopic."""
    return _novelty(_log2, False)(qrels, run, k, rel, alpha, ties, no_relevant, judged_only)


def alpha_ndcg(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, alpha: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Discounted novel gain over that of the greedy order."""
    return _novelty(_log2, True)(qrels, run, k, rel, alpha, ties, no_relevant, judged_only)


def err_ia(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, alpha: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Novel gain / rank over that of documents which are all relevant to every subtopic."""
    return _novelty(_zipf, False)(qrels, run, k, rel, alpha, ties, no_relevant, judged_only)


def n_err_ia(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, alpha: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Novel gain / rank over that of the greedy order."""
    return _novelty(_zipf, True)(qrels, run, k, rel, alpha, ties, no_relevant, judged_only)


def nrbp(
    qrels: Qrels, run: Run, *, rel: float = 1, alpha: float = 0.5, beta: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Novel gain * beta^(rank - 1) over that of an endless list of documents which are all relevant to every subtopic."""
    values = _novelty(lambda ranks: np.asarray(beta ** (ranks - 1)), False, lambda alpha: 1.0 / (1.0 - (1.0 - alpha) * beta))
    return values(qrels, run, None, rel, alpha, ties, no_relevant, judged_only)


def n_nrbp(
    qrels: Qrels, run: Run, *, rel: float = 1, alpha: float = 0.5, beta: float = 0.5, ties: str = "docid", no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:  # fmt: skip
    """Novel gain * beta^(rank - 1) over that of the greedy order."""
    values = _novelty(lambda ranks: np.asarray(beta ** (ranks - 1)), True)
    return values(qrels, run, None, rel, alpha, ties, no_relevant, judged_only)


def _over_groups(
    qrels: Qrels,
    run: Run,
    value: Callable[[list[str], set[str]], float],
    rel: float,
    ties: str,
    no_relevant: str,
    *,
    only_with_relevant: bool,
    judged_only: bool,
) -> FloatArray:
    """The mean over groups of a metric of a ranking and its relevant documents; judged_only: by the whole query, or by each judge."""
    found, nothing = [], []
    for query in _queries(qrels, run, ties, judged_only):
        values = []
        for documents, parts in zip(query.relevant(rel), query.groups, strict=True):
            own = {name for part in parts for name, label in part.items() if label >= 0}
            drops = judged_only and not only_with_relevant
            if documents or not only_with_relevant:
                values.append(value([name for name in query.ranked if not drops or name in own], documents))
        found.append(math.fsum(values) / max(len(values), 1))
        nothing.append(not any(query.relevant(rel)))
    return settle(np.array(found, np.float64), np.array(nothing, np.bool_), no_relevant)


def _average_precision(ranked: list[str], documents: set[str]) -> float:
    hits = np.array([name in documents for name in ranked], np.float64)
    return float(np.sum(hits * np.cumsum(hits) / np.arange(1, len(hits) + 1))) / max(len(documents), 1)


def ap_ia(
    qrels: Qrels, run: Run, *, rel: float = 1, ties: str = "docid", no_relevant: str = "zero", judged_only: bool = False
) -> FloatArray:
    """Mean over subtopics with a relevant document of average precision."""
    return _over_groups(qrels, run, _average_precision, rel, ties, no_relevant, only_with_relevant=True, judged_only=judged_only)


def ap_avgjg(
    qrels: Qrels, run: Run, *, rel: float = 1, ties: str = "docid", no_relevant: str = "zero", judged_only: bool = False
) -> FloatArray:
    """Mean over judges of average precision."""
    return _over_groups(qrels, run, _average_precision, rel, ties, no_relevant, only_with_relevant=False, judged_only=judged_only)


def _mean_precision(
    qrels: Qrels, run: Run, k: Cutoff, rel: float, ties: str, no_relevant: str, *, subtopics: bool, judged_only: bool
) -> FloatArray:
    # The cutoff is the query's, whatever a judge has judged: one query at a time.
    limits = [max(_limit(query, k), 1) for query in _queries(qrels, run, ties, judged_only)]
    found = []
    for (query, groups), limit in zip(qrels.items(), limits, strict=True):
        value = functools.partial(_hits_over, limit)
        given = {"only_with_relevant": subtopics, "judged_only": judged_only}
        found.append(_over_groups({query: groups}, run, value, rel, ties, no_relevant, **given)[0])
    return np.array(found, np.float64)


def _hits_over(limit: int, ranked: list[str], documents: set[str]) -> float:
    return sum(name in documents for name in ranked[:limit]) / limit


def p_ia(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, ties: str = "docid", no_relevant: str = "zero", judged_only: bool = False
) -> FloatArray:
    """Mean over subtopics with a relevant document of precision."""
    return _mean_precision(qrels, run, k, rel, ties, no_relevant, subtopics=True, judged_only=judged_only)


def p_avgjg(qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, ties: str = "docid", judged_only: bool = False) -> FloatArray:
    """Mean over judges of precision."""
    return _mean_precision(qrels, run, k, rel, ties, "zero", subtopics=False, judged_only=judged_only)


def rprec_avgjg(
    qrels: Qrels,
    run: Run,
    *,
    multiple: float = 1,
    rel: float = 1,
    ties: str = "docid",
    no_relevant: str = "zero",
    judged_only: bool = False,
) -> FloatArray:
    """Mean over judges of precision at int(multiple * P + 0.9)."""

    def value(ranked: list[str], documents: set[str]) -> float:
        limit = int(multiple * len(documents) + 0.9)
        return sum(name in documents for name in ranked[:limit]) / max(limit, 1)

    return _over_groups(qrels, run, value, rel, ties, no_relevant, only_with_relevant=False, judged_only=judged_only)


def st_recall(
    qrels: Qrels, run: Run, *, k: Cutoff = None, rel: float = 1, ties: str = "docid", no_relevant: str = "zero", judged_only: bool = False
) -> FloatArray:
    """Share of the subtopics with a relevant document that have one in the top k."""
    found, nothing = [], []
    for query in _queries(qrels, run, ties, judged_only):
        subtopics = [documents for documents in query.relevant(rel) if documents]
        top = set(query.ranked[: _limit(query, k)])
        found.append(sum(bool(documents & top) for documents in subtopics) / max(len(subtopics), 1))
        nothing.append(not subtopics)
    return settle(np.array(found, np.float64), np.array(nothing, np.bool_), no_relevant)


# --- preferences ----------------------------------------------------------------------------------------------------------------


def _preferences(parts: Sequence[Mapping[str, float]]) -> set[tuple[str, str]]:
    """Every (better, worse) of a judge; what follows from several parts included."""
    found = {
        (a, b) for part in parts for (a, x), (b, y) in itertools.permutations(part.items(), 2) if x > y >= 0
    }  # fmt: skip
    while True:
        more = {(a, d) for a, b in found for c, d in found if b == c} - found
        if not more or len(parts) == 1:
            return found
        found |= more


def _counts(pairs: set[tuple[str, str]], place: Mapping[str, int], among: str) -> tuple[int, int]:
    """Fulfilled and possible preferences; place: of retrieved documents."""
    least = {"all": 0, "any_retrieved": 1, "both_retrieved": 2}[among]
    chosen = [(a, b) for a, b in pairs if (a in place) + (b in place) >= least]
    return sum(a in place and place[a] < place.get(b, math.inf) for a, b in chosen), len(chosen)


def num_prefs(qrels: Qrels, run: Run, *, ties: str = "docid") -> FloatArray:
    """Preferences of all judges."""
    return np.array([sum(len(_preferences(parts)) for parts in query.groups) for query in _queries(qrels, run, ties)], np.float64)


def num_prefs_ful(qrels: Qrels, run: Run, *, among: str = "all", ties: str = "docid") -> FloatArray:
    """Fulfilled preferences of all judges."""
    found = []
    for query in _queries(qrels, run, ties):
        place = {name: rank for rank, name in enumerate(query.ranked)}
        found.append(sum(_counts(_preferences(parts), place, among)[0] for parts in query.groups))
    return np.array(found, np.float64)


def prefs_ful(
    qrels: Qrels, run: Run, *, among: str = "all", over: str = "preferences", ties: str = "docid", no_relevant: str = "zero"
) -> FloatArray:
    """Share of fulfilled preferences: of all, or the mean over pairs of documents or judges."""
    found, nothing = [], []
    for query in _queries(qrels, run, ties):
        place = {name: rank for rank, name in enumerate(query.ranked)}
        judges = [_preferences(parts) for parts in query.groups]
        counts = [_counts(pairs, place, among) for pairs in judges]
        if over == "pairs":
            between = {frozenset(pair) for pairs in judges for pair in pairs}
            counts = [
                tuple(np.sum([_counts({pair for pair in pairs if set(pair) == both}, place, among) for pairs in judges], axis=0))
                for both in between
            ]
            counts = [each for each in counts if each[1]]
        if over == "preferences":
            counts = [(sum(ful for ful, _ in counts), sum(possible for _, possible in counts))]
        shares = [ful / possible if possible else 0.0 for ful, possible in counts]
        found.append(math.fsum(shares) / max(len(shares), 1))
        nothing.append(not any(judges))
    return settle(np.array(found, np.float64), np.array(nothing, np.bool_), no_relevant)


def prefs_r_nonrel(qrels: Qrels, run: Run, *, among: str = "all", ties: str = "docid", no_relevant: str = "zero") -> FloatArray:
    """Mean over judges of the share of fulfilled preferences, with as many non-relevant documents as relevant ones, as trec_eval has it."""
    found, nothing = [], []
    for query in _queries(qrels, run, ties):
        shares, any_at_all = [], False
        for parts in query.groups:
            ful, possible = _balanced(query, parts, among)
            any_at_all |= _balanced(query, parts, "all")[1] > 0
            shares.append(ful / possible if possible else 0.0)
        found.append(math.fsum(shares) / len(shares))
        nothing.append(not any_at_all)
    return settle(np.array(found, np.float64), np.array(nothing, np.bool_), no_relevant)


def _balanced(query: _Query, parts: Sequence[Mapping[str, float]], among: str) -> tuple[int, int]:
    place = {name: rank for rank, name in enumerate(query.ranked)}
    labels = {name: label for part in parts for name, label in part.items()}
    last = sorted(
        (name for name in {name for group in query.groups for part in group for name in part} if name not in place), key=str.encode
    )
    order = [*query.ranked, *last]
    relevant = [name for name in order if labels.get(name, -1) > 0]
    others = [name for name in order if labels.get(name, -1) == 0]
    retrieved = [name for name in relevant if name in place]
    here, others_here = len(relevant), list(others)
    if among == "both_retrieved":
        here, others_here = len(retrieved), [name for name in others if name in place]
    pairs = _preferences(parts)
    if here >= len(others_here):
        ful, possible = _counts(pairs, place, among)
        missing = here - len(others_here)
        return ful + len(retrieved) * missing, possible + len(relevant) * missing
    n_kept = here if len(parts) == 1 else len(relevant)
    dropped = set(others[n_kept:])
    ful, possible = _counts({(a, b) for a, b in pairs if not {a, b} & dropped}, place, among)
    if len(parts) == 1:
        for a, b in itertools.product(others_here, others[:n_kept]):
            ful += a in place and order.index(a) < order.index(b)
            possible += 1
    return ful, possible

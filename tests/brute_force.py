"""The slow truth: each metric from its textbook definition, one query and one strict ranking at a time, in plain Python.

A ranking is two tuples of labels: the retrieved documents from rank 1 on, and those that were judged and not retrieved. The label
``None`` is an unjudged document. A metric returns ``None`` for a query with nothing to find. What ties do is no part of a metric:
``expectation`` and ``extremes`` go through every order that the scores allow.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

Label = float | None
Labels = tuple[Label, ...]
Metric = Callable[[Labels, Labels], float | None]


# --- orders --------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _orders(labels: Labels, scores: tuple[float | None, ...]) -> Counter[tuple[Labels, Labels]]:
    """Every ranking the scores allow, with the number of ways it comes about. Unretrieved documents (score None) have no order either."""
    levels = sorted({score for score in scores if score is not None}, reverse=True)
    blocks = [[label for label, score in zip(labels, scores, strict=True) if score == level] for level in [*levels, None]]
    found: Counter[tuple[Labels, Labels]] = Counter()
    for arrangement in itertools.product(*(Counter(itertools.permutations(block)).items() for block in blocks)):
        *retrieved, missing = [order for order, _ in arrangement]
        found[tuple(itertools.chain(*retrieved)), missing] += math.prod(ways for _, ways in arrangement)
    return found


def expectation(metric: Metric, labels: Sequence[Label], scores: Sequence[float | None]) -> float | None:
    """Mean of the metric over all permutations of documents that the scores allow. For lists up to 7."""
    terms = []
    orders = _orders(tuple(labels), tuple(scores))
    for (ranked, missing), ways in orders.items():
        value = metric(ranked, missing)
        if value is None:
            return None
        terms.append(ways * value)
    return math.fsum(terms) / orders.total()


def extremes(metric: Metric, labels: Sequence[Label], scores: Sequence[float | None]) -> tuple[float, float] | None:
    """Least and greatest value of the metric over all orders of equal scores; unretrieved documents count by their mean."""
    retrieved = [place for place, score in enumerate(scores) if score is not None]
    missing = [label for label, score in zip(labels, scores, strict=True) if score is None]
    values = []
    for ranked, _ in _orders(tuple(labels[place] for place in retrieved), tuple(scores[place] for place in retrieved)):
        strict = [float(-place) for place in range(len(ranked))]
        values.append(expectation(metric, [*ranked, *missing], [*strict, *[None] * len(missing)]))
    found = [value for value in values if value is not None]
    return (min(found), max(found)) if found else None


def share_of(n: int, share: str) -> int:
    """The whole number of places that a share such as "30%" or "0.3" of n places comes to, rounded up; 1 at least."""
    fraction = Fraction(share[:-1]) / 100 if share.endswith("%") else Fraction(share)
    return max(1, math.ceil(fraction * n))


# --- graded labels -------------------------------------------------------------------------------------------------------------


def exponential_gain(label: Label) -> float:
    return 0.0 if label is None else 2.0**label - 1


def linear_gain(label: Label) -> float:
    return 0.0 if label is None else label


def log_discount(rank: int) -> float:
    return 1 / math.log2(rank + 1)


def _top(ranked: Sequence[Any], k: int | None) -> Sequence[Any]:
    return ranked if k is None else ranked[:k]


def dcg(
    ranked: Labels,
    missing: Labels,
    *,
    k: int | None = None,
    gain: Callable[[Label], float] = exponential_gain,
    discount: Callable[[int], float] = log_discount,
) -> float:
    return sum(gain(label) * discount(rank) for rank, label in enumerate(_top(ranked, k), 1))


def idcg(
    ranked: Labels,
    missing: Labels,
    *,
    k: int | None = None,
    gain: Callable[[Label], float] = exponential_gain,
    discount: Callable[[int], float] = log_discount,
) -> float:
    best = sorted((gain(label) for label in ranked + missing), reverse=True)
    return sum(value * discount(rank) for rank, value in enumerate(_top(best, k), 1))


def ndcg(ranked: Labels, missing: Labels, **options: Any) -> float | None:
    ideal = idcg(ranked, missing, **options)
    return dcg(ranked, missing, **options) / ideal if ideal > 0 else None


def err(ranked: Labels, missing: Labels, *, k: int | None = None, max_label: float = 4) -> float | None:
    if not any(label is not None and label > 0 for label in ranked + missing):
        return None
    value, still_reading = 0.0, 1.0
    for rank, label in enumerate(_top(ranked, k), 1):
        stops = (2.0**label - 1) / 2.0**max_label if label is not None and label > 0 else 0.0
        value += still_reading * stops / rank
        still_reading *= 1 - stops
    return value


# --- relevant documents --------------------------------------------------------------------------------------------------------


def _is_relevant(label: Label, rel: float) -> bool:
    return label is not None and label >= rel


def _hits(labels: Sequence[Label], rel: float) -> int:
    return sum(_is_relevant(label, rel) for label in labels)


def reciprocal_rank(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float | None:
    if not _hits(ranked + missing, rel):
        return None
    for rank, label in enumerate(_top(ranked, k), 1):
        if _is_relevant(label, rel):
            return 1 / rank
    return 0.0


def average_precision(
    ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1, denominator: str = "relevant"
) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    if n_relevant == 0:
        return None
    top = _top(ranked, k)
    total = sum(_hits(top[:rank], rel) / rank for rank, label in enumerate(top, 1) if _is_relevant(label, rel))
    limit = {
        "relevant": n_relevant,
        "min_k": n_relevant if k is None else min(n_relevant, k),
        "min_k_retrieved": min(n_relevant, len(top)),
        "hits": _hits(top, rel),
    }[denominator]
    return total / limit if limit else 0.0


def precision(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1, denominator: str = "k") -> float:
    places = k if k is not None and denominator == "k" else len(_top(ranked, k))
    return _hits(_top(ranked, k), rel) / places if places else 0.0


def recall(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    return _hits(_top(ranked, k), rel) / n_relevant if n_relevant else None


def f(ranked: Labels, missing: Labels, *, beta: float = 1, k: int | None = None, rel: float = 1) -> float | None:
    """The weighted harmonic mean of precision and recall, as van Rijsbergen has it."""
    p, r = precision(ranked, missing, k=k, rel=rel), recall(ranked, missing, k=k, rel=rel)
    if r is None:
        return None
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p and r else 0.0


def success(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float | None:
    return float(_hits(_top(ranked, k), rel) > 0) if _hits(ranked + missing, rel) else None


def r_precision(ranked: Labels, missing: Labels, *, rel: float = 1) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    return precision(ranked, missing, k=n_relevant, rel=rel) if n_relevant else None


def rbp(ranked: Labels, missing: Labels, *, p: float = 0.8, rel: float = 1, k: int | None = None) -> float:
    return (1 - p) * sum(p ** (rank - 1) for rank, label in enumerate(_top(ranked, k), 1) if _is_relevant(label, rel))


def judged(ranked: Labels, missing: Labels, *, k: int | None = None) -> float:
    top = _top(ranked, k)
    return sum(label is not None for label in top) / len(top) if top else 0.0


def num_ret(ranked: Labels, missing: Labels) -> float:
    return len(ranked)


def num_rel(ranked: Labels, missing: Labels, *, rel: float = 1) -> float:
    return _hits(ranked + missing, rel)


def num_rel_ret(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float:
    return _hits(_top(ranked, k), rel)


# --- pairs ---------------------------------------------------------------------------------------------------------------------


def auc(ranked: Labels, missing: Labels, *, rel: float = 1) -> float | None:
    pairs = [(_is_relevant(above, rel), _is_relevant(below, rel)) for above, below in itertools.combinations(ranked + missing, 2)]
    right, wrong = pairs.count((True, False)), pairs.count((False, True))
    return right / (right + wrong) if right + wrong else None


def concordance(ranked: Labels, missing: Labels) -> float | None:
    pairs = [(above or 0, below or 0) for above, below in itertools.combinations(ranked + missing, 2)]
    right, wrong = sum(above > below for above, below in pairs), sum(above < below for above, below in pairs)
    return right / (right + wrong) if right + wrong else None


def p_norm_push(ranked: Labels, missing: Labels, *, p: float = 4, rel: float = 1) -> float | None:
    order = ranked + missing
    n_relevant = _hits(order, rel)
    below = [_hits(order[place + 1 :], rel) for place, label in enumerate(order) if not _is_relevant(label, rel)]
    return sum((n / n_relevant) ** p for n in below) / len(below) if n_relevant and below else None


def bpref(ranked: Labels, missing: Labels, *, rel: float = 1) -> float | None:
    def is_other(label: Label) -> bool:
        return label is not None and 0 <= label < rel

    n_relevant = _hits(ranked + missing, rel)
    n_other = sum(is_other(label) for label in ranked + missing)
    if n_relevant == 0:
        return None
    total = 0.0
    for place, label in enumerate(ranked):
        if _is_relevant(label, rel):
            above = sum(is_other(other) for other in ranked[:place])
            total += 1 - min(above, n_relevant) / min(n_other, n_relevant) if above else 1
    return total / n_relevant

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


def r_precision(ranked: Labels, missing: Labels, *, rel: float = 1, multiple: float = 1) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    depth = int(multiple * n_relevant + 0.9)
    return precision(ranked, missing, k=depth, rel=rel) if n_relevant and depth else 0.0 if n_relevant else None


def rbp(ranked: Labels, missing: Labels, *, p: float = 0.8, gain: Any = "binary", rel: float = 1, k: int | None = None) -> float:
    largest = max([1.0, *(label for label in ranked + missing if label is not None)]) if gain == "scaled" else 1.0
    gains = {"binary": lambda label: float(_is_relevant(label, rel)), "scaled": lambda label: linear_gain(label) / largest}
    worth = gains[gain] if isinstance(gain, str) else gain
    return (1 - p) * sum(p ** (rank - 1) * worth(label) for rank, label in enumerate(_top(ranked, k), 1))


def rbp_residual(ranked: Labels, missing: Labels, *, p: float = 0.8) -> float:
    unjudged = [rank for rank, label in enumerate(ranked, 1) if label is None or label < 0]
    return (1 - p) * sum(p ** (rank - 1) for rank in unjudged) + p ** len(ranked) if unjudged else 0.0


def judged(ranked: Labels, missing: Labels, *, k: int | None = None) -> float:
    top = _top(ranked, k)
    return sum(label is not None for label in top) / len(top) if top else 0.0


def num_ret(ranked: Labels, missing: Labels) -> float:
    return len(ranked)


def num_rel(ranked: Labels, missing: Labels, *, rel: float = 1) -> float:
    return _hits(ranked + missing, rel)


def num_rel_ret(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float:
    return _hits(_top(ranked, k), rel)


def num_q(ranked: Labels, missing: Labels) -> float:
    return 1.0


def num_non_rel_ret(ranked: Labels, missing: Labels, *, rel: float = 1) -> float:
    return sum(label is not None and 0 <= label < rel for label in ranked)


def unjudged(ranked: Labels, missing: Labels, *, k: int | None = None) -> float:
    places = len(ranked) if k is None else k
    return sum(label is None or label < 0 for label in _top(ranked, k)) / places if places else 0.0


# --- sets ----------------------------------------------------------------------------------------------------------------------


def relative_precision(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    possible = min(len(ranked) if k is None else k, n_relevant)
    return _hits(_top(ranked, k), rel) / possible if possible else 0.0 if n_relevant else None


def set_average_precision(ranked: Labels, missing: Labels, *, rel: float = 1) -> float | None:
    found = recall(ranked, missing, rel=rel)
    return None if found is None else precision(ranked, missing, rel=rel) * found


def utility(ranked: Labels, missing: Labels, *, weights: Sequence[float] = (1, -1, 0, 0), collection: float = 0, rel: float = 1) -> float:
    found, lost = _hits(ranked, rel), _hits(missing, rel)
    return weights[0] * found + weights[1] * (len(ranked) - found) + weights[2] * lost + weights[3] * (collection - len(ranked) - lost)


# --- precision along the ranks -------------------------------------------------------------------------------------------------


def _precisions(ranked: Labels, rel: float) -> list[float]:
    """Precision at each relevant document."""
    return [_hits(ranked[:rank], rel) / rank for rank, label in enumerate(ranked, 1) if _is_relevant(label, rel)]


def yaap(ranked: Labels, missing: Labels, *, rel: float = 1) -> float:
    total = sum(_precisions(ranked, rel))
    return math.log((1 + total) / (1 + _hits(ranked + missing, rel) - total))


def average_interpolated_precision(
    ranked: Labels,
    missing: Labels,
    *,
    recalls: Sequence[float] = tuple(x / 10 for x in range(11)),
    rounding: str = "nearest",
    rel: float = 1,
) -> float | None:
    n_relevant = _hits(ranked + missing, rel)
    if n_relevant == 0:
        return None
    precisions, found = _precisions(ranked, rel), []
    for recall_ in recalls:
        # trec_eval rounds in doubles: 0.7 * 3 + 0.9 is a little less than 3 there.
        wanted, exact = recall_ * n_relevant, Fraction(str(recall_)) * n_relevant
        needed = {"nearest": math.floor(wanted + 0.5), "up": math.ceil(exact), "trec_eval9": math.floor(wanted + 0.9)}[rounding]
        found.append(max(precisions[max(needed, 1) - 1 :], default=0.0))
    return sum(found) / len(found)


def interpolated_precision(ranked: Labels, missing: Labels, *, recall: float = 0, **options: Any) -> float | None:
    return average_interpolated_precision(ranked, missing, recalls=(recall,), **options)


# --- gains at ranks ------------------------------------------------------------------------------------------------------------


def _positive(labels: Labels, gain: Callable[[Label], float]) -> list[float]:
    return sorted((gain(label) for label in labels if gain(label) > 0), reverse=True)


def bin_g(ranked: Labels, missing: Labels, *, rel: float = 1) -> float | None:
    total, others = 0.0, 0
    for label in ranked:
        if _is_relevant(label, rel):
            total += 1 / math.log2(2 + others)
        else:
            others += 1
    n_relevant = _hits(ranked + missing, rel)
    return total / n_relevant if n_relevant else None


def _ndcg_at(ranked: Labels, missing: Labels, gain: Callable[[Label], float], rank: int) -> float:
    ideal = sum(value * log_discount(place) for place, value in enumerate(_positive(ranked + missing, gain)[:rank], 1))
    return dcg(ranked, missing, k=rank, gain=gain) / ideal


def ndcg_rel(ranked: Labels, missing: Labels, *, gain: Callable[[Label], float] = linear_gain) -> float | None:
    n_relevant = len(_positive(ranked + missing, gain))
    if n_relevant == 0:
        return None
    at = [rank for rank, label in enumerate(ranked, 1) if gain(label) > 0]
    beyond = len(ranked) + len(missing)
    return sum(_ndcg_at(ranked, missing, gain, rank) for rank in at + [beyond] * (n_relevant - len(at))) / n_relevant


def r_ndcg(ranked: Labels, missing: Labels, *, gain: Callable[[Label], float] = linear_gain, rel: float = 1) -> float | None:
    ideal = _positive(ranked + missing, gain)
    points = [rank for rank in range(1, len(ideal) + 1) if rank == len(ideal) or ideal[rank] != ideal[rank - 1]]
    if not points or not _hits(ranked + missing, rel):
        return None
    if len(ranked) > len(ideal) + 1:
        points.append(len(ranked))
    return sum(_ndcg_at(ranked, missing, gain, rank) for rank in points) / len(points)


# --- readers -------------------------------------------------------------------------------------------------------------------


@lru_cache
def _chances(patience: Callable[[int, float], float], T: float, last: int) -> tuple[float, ...]:
    """How likely a reader looks at ranks 1 ... last, going on from a rank with a given chance."""
    return tuple(itertools.accumulate((patience(rank, T) for rank in range(1, last)), lambda chance, on: chance * on, initial=1.0))


def _rate(
    ranked: Labels, patience: Callable[[int, float], float], T: float, k: int | None, min_label: float, max_label: float, horizon: int
) -> float:
    """Gain per document of such a reader."""
    chances = _chances(patience, T, horizon if k is None else min(k, horizon))
    gains = [min(max(((label or 0) - min_label) / (max_label - min_label), 0), 1) for label in ranked]
    return sum(chance * gain for chance, gain in zip(chances, gains, strict=False)) / math.fsum(chances)


def _of_log(rank: int, T: float) -> float:
    return math.log2(rank + 1) / math.log2(rank + 2)


def _of_square(rank: int, T: float) -> float:
    return ((rank + 2 * T - 1) / (rank + 2 * T)) ** 2


def sdcg(
    ranked: Labels, missing: Labels, *, k: int | None = None, min_label: float = 0, max_label: float = 4, horizon: int = 1000
) -> float:
    return _rate(ranked, _of_log, 1, k, min_label, max_label, horizon)


def insq(ranked: Labels, missing: Labels, *, T: float = 1, min_label: float = 0, max_label: float = 4, horizon: int = 1000) -> float:
    return _rate(ranked, _of_square, T, None, min_label, max_label, horizon)


# --- overlap -------------------------------------------------------------------------------------------------------------------


def compatibility(ranked: Labels, missing: Labels, *, p: float = 0.95, normalize: bool = True) -> float | None:
    labels = [label or 0 for label in ranked + missing]
    ideal = sorted((place for place, label in enumerate(labels) if label > 0), key=lambda place: -labels[place])
    if not ideal:
        return None
    listed = list(range(len(ranked)))
    depths = range(1, max(len(listed), len(ideal)) + 1)

    def overlap(one: list[int], other: list[int]) -> float:
        return sum(p ** (depth - 1) * len({*one[:depth]} & {*other[:depth]}) / depth for depth in depths)

    return overlap(listed, ideal) / (overlap(ideal, ideal) if normalize else sum(p ** (depth - 1) for depth in depths))


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


def accuracy(ranked: Labels, missing: Labels, *, k: int | None = None, rel: float = 1) -> float | None:
    if _hits(ranked, rel) in (0, len(ranked)):
        return None
    top = tuple(_top(ranked, k))
    found = auc(top, (), rel=rel)
    return found if found is not None else float(_hits(top, rel) > 0)

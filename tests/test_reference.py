"""The NumPy reference is the definition of every metric: it agrees with the slow truth on every order of ties, and obeys the laws."""

from __future__ import annotations

import doctest
import importlib
import math
import random
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

import brute_force as truth
import numpy as np
import pytest

from fastrank import reference
from fastrank.errors import InputError

NAN = float("nan")
# Those of one ranking by labels; judgements by group and gradients have tests of their own.
OTHERS = ("fastrank.reference._grouped", "fastrank.reference._lambda_rank")
METRICS = [name for name in reference.__all__ if getattr(reference, name).__module__ not in OTHERS]
# Metrics whose value does not depend on what there is to find, those that order has no part in, and those that can pass 1 or fall below 0.
PLAIN = [name for name in METRICS if "no_relevant" not in signature(getattr(reference, name)).parameters]
UNORDERED = ("num_ret", "num_rel", "num_q")
UNBOUNDED = ("dcg", "idcg", "num_ret", "num_rel", "num_rel_ret", "num_non_rel_ret", "utility", "yaap")
# Metrics whose mean over the orders of equal scores has no closed form.
STRICT = [
    name for name in sorted(set(METRICS) - set(UNORDERED)) if signature(getattr(reference, name)).parameters["ties"].default == "worst"
]
TIE_RULES = ("average", "input", "worst", "best", "docid")


class Case(NamedTuple):
    """One metric with one set of options, as both sides take them."""

    name: str
    options: dict[str, Any]
    true_options: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{key}={value}' for key, value in self.options.items())})"

    def truth(self, n_retrieved: int) -> truth.Metric:
        options = dict(self.true_options)
        if isinstance(options.get("k"), str):
            options["k"] = truth.share_of(n_retrieved, options["k"])
        return partial(getattr(truth, self.name), **options)


def _case(name: str, true: dict[str, Any] | None = None, **options: Any) -> Case:
    return Case(name, options, {**options, **(true or {})})


# Tables that do not rise with the label, one of them with a loss.
TABLE = {0: 0.5, 0.5: 0.1, 1: 3, 2: 0, 3: 2}
LOSSES = {**TABLE, 2: -1}


def _lookup(table: dict[float, float], label: float | None) -> float:
    return 0 if label is None else table[label]


GAINS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"gain": "linear"}, {"gain": truth.linear_gain}),
    ({"gain": TABLE}, {"gain": partial(_lookup, TABLE)}),
]
DISCOUNTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"discount": "ln"}, {"discount": lambda r: 1 / math.log(r + 1)}),
    ({"discount": "zipf"}, {"discount": lambda r: 1 / r}),
    ({"discount": "power:0.5"}, {"discount": lambda r: r**-0.5}),
    ({"discount": "geometric:0.5"}, {"discount": lambda r: 0.5 ** (r - 1)}),
    ({"discount": "step:2"}, {"discount": lambda r: 1 if r <= 2 else 0}),
    ({"discount": "jarvelin:2.5"}, {"discount": lambda r: 1 if r < 2.5 else 1 / math.log(r, 2.5)}),
    ({"discount": [1, 0.7, 0.2]}, {"discount": lambda r: [1, 0.7, 0.2][r - 1] if r <= 3 else 0}),
]
CUTS: list[dict[str, Any]] = [{}, {"k": 1}, {"k": 3}, {"k": 10}, {"k": "30%"}]

CASES = [
    *[_case(name, g_true, **g, **k) for name in ("dcg", "idcg", "ndcg") for g, g_true in GAINS for k in CUTS],
    *[_case(name, {"gain": partial(_lookup, LOSSES)}, gain=LOSSES, **k) for name in ("dcg", "idcg") for k in CUTS],
    *[_case("ndcg", d_true, **d, **k) for d, d_true in DISCOUNTS for k in ({}, {"k": 4})],
    *[_case(name, **k, rel=rel) for name in ("reciprocal_rank", "recall", "success", "num_rel_ret") for rel in (1, 2) for k in CUTS],
    *[
        _case("average_precision", **k, denominator=denominator)
        for denominator in ("relevant", "min_k", "min_k_retrieved", "hits")
        for k in CUTS
    ],
    *[_case("precision", **k, denominator=denominator) for denominator in ("k", "retrieved") for k in CUTS],
    *[_case("f", **k, beta=beta) for beta in (1, 2, 0.5) for k in CUTS],
    *[_case("rbp", **k, p=p) for p in (0.8, 0.3) for k in CUTS],
    *[_case("err", **k, max_label=max_label) for max_label in (3, 4) for k in CUTS],
    *[_case("judged", **k) for k in CUTS],
    *[_case(name, rel=rel) for name in ("r_precision", "auc", "bpref") for rel in (1, 2)],
    *[_case("p_norm_push", p=p) for p in (1, 2.5, 4)],
    _case("concordance"),
]
# Moving a greater label up never lowers these values (never raises P-norm push). It can lower AP by hits: one more hit, low down, lowers
# the mean precision of the hits.
MONOTONE = [
    case
    for case in CASES
    if case.name != "judged" and case.options.get("gain") not in (TABLE, LOSSES) and case.options.get("denominator") != "hits"
]


class Query(NamedTuple):
    labels: list[float | None]
    scores: list[float | None]
    doc_ids: list[bytes]


def _queries(seed: int, n_queries: int, longest: int, unjudged: bool = True) -> list[Query]:
    """Short lists with many ties; some empty, some with unretrieved or unjudged documents (never both in one document)."""
    draw = random.Random(seed)
    queries = [Query([], [], [])]
    for q in range(n_queries):
        n = draw.randint(1, longest)
        levels = draw.choice([1, 2, 3, 10])
        retrieved = draw.choice([1.0, 0.7])
        labels: list[float | None] = [draw.choice([0, 0, 0, 0, 1, 1, 2, 3, 0.5] if q % 5 else [0, 0, 1]) for _ in range(n)]
        scores: list[float | None] = [draw.randrange(levels) / 4 if draw.random() < retrieved else None for _ in range(n)]
        if unjudged:
            labels = [None if score is not None and draw.random() < 0.15 else label for label, score in zip(labels, scores, strict=True)]
        queries.append(Query(labels, scores, draw.sample([b"d9", b"d10", b"D1", b"\xc3\xa9", b"z", b"a", b"d1"], n)))
    return [*queries, Query([], [], [])]


QUERIES = [*_queries(1, 80, 4), *_queries(2, 40, 6), *_queries(3, 25, 7)]


def _flat(queries: list[Query]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    labels = np.array([NAN if y is None else y for query in queries for y in query.labels], dtype=np.float64)
    scores = np.array([NAN if s is None else s for query in queries for s in query.scores], dtype=np.float64)
    offsets = np.cumsum([0, *[len(query.labels) for query in queries]])
    return labels, scores, offsets, np.array([name for query in queries for name in query.doc_ids])


def _call(case: Case, queries: list[Query], ties: str, **more: Any) -> np.ndarray:
    labels, scores, offsets, doc_ids = _flat(queries)
    return getattr(reference, case.name)(labels, scores, offsets, ties=ties, doc_ids=doc_ids, **case.options, **more)


def _strict(query: Query, ties: str) -> tuple[list[float | None], list[float | None]]:
    """Labels in the order of the tie rule, with scores that leave no tie among the retrieved."""
    rule: dict[str, Callable[[int], Any]] = {
        "input": lambda i: -i,
        "worst": lambda i: (-(query.labels[i] or 0), query.labels[i] is None),
        "best": lambda i: (query.labels[i] or 0, query.labels[i] is not None),
        "docid": lambda i: query.doc_ids[i],
    }
    found = [i for i, score in enumerate(query.scores) if score is not None]
    found.sort(key=lambda i: (query.scores[i], rule[ties](i)), reverse=True)
    missing = [i for i, score in enumerate(query.scores) if score is None]
    return [query.labels[i] for i in [*found, *missing]], [*[float(-r) for r in range(len(found))], *[None] * len(missing)]


def _n_retrieved(query: Query) -> int:
    return sum(score is not None for score in query.scores)


# --- against the slow truth ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", TIE_RULES)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_metric_is_its_definition_under_every_tie_rule(case: Case, ties: str) -> None:
    expected = []
    for query in QUERIES:
        labels, scores = (query.labels, query.scores) if ties == "average" else _strict(query, ties)
        value = truth.expectation(case.truth(_n_retrieved(query)), labels, scores)
        expected.append(0.0 if value is None else value)
    np.testing.assert_allclose(_call(case, QUERIES, ties), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", MONOTONE, ids=str)
def test_worst_and_best_bound_every_order_of_ties(case: Case) -> None:
    queries = [query for query in QUERIES if None not in query.labels]
    bounds = [truth.extremes(case.truth(_n_retrieved(query)), query.labels, query.scores) or (0.0, 0.0) for query in queries]
    least, greatest = np.array(bounds).T
    worst, best = _call(case, queries, "worst"), _call(case, queries, "best")
    if case.name == "p_norm_push":
        worst, best = best, worst
    np.testing.assert_allclose(worst, least, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(best, greatest, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if not isinstance(case.options.get("k"), str)], ids=str)
def test_labels_in_rank_order_need_no_scores(case: Case) -> None:
    queries = _queries(4, 80, 7, unjudged=True)
    labels, _, offsets, _ = _flat(queries)
    expected = [truth.expectation(case.truth(len(q.labels)), q.labels, [float(-r) for r in range(len(q.labels))]) or 0.0 for q in queries]
    values = getattr(reference, case.name)(labels, None, offsets, **case.options)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("rule", ["zero", "one", "nan", "skip"])
@pytest.mark.parametrize(
    "name",
    [name for name in METRICS if name not in PLAIN and hasattr(truth, name)],
)
def test_a_query_with_nothing_to_find_gets_the_value_of_its_rule(name: str, rule: str) -> None:
    queries = _queries(5, 60, 5)
    expected = []
    for query in queries:
        labels, scores = _strict(query, "worst") if name in STRICT else (query.labels, query.scores)
        value = truth.expectation(getattr(truth, name), labels, scores)
        expected.append({"zero": 0.0, "one": 1.0}.get(rule, NAN) if value is None else value)
    values = _call(_case(name), queries, "worst" if name in STRICT else "average", no_relevant=rule)
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-12)


def test_counts_are_counts() -> None:
    labels, scores, offsets, _ = _flat(QUERIES)
    for name in ("num_ret", "num_rel"):
        expected = [truth.expectation(getattr(truth, name), query.labels, query.scores) for query in QUERIES]
        assert getattr(reference, name)(labels, scores, offsets).tolist() == expected


def test_bpref_passes_over_negative_labels() -> None:
    draw = random.Random(6)
    for _ in range(50):
        labels = [draw.choice([-1, -2, 0, 0, 1, 2, None]) for _ in range(6)]
        scores = [draw.choice([1.0, 2.0, 3.0]) for _ in range(6)]
        expected = truth.expectation(truth.bpref, labels, scores) or 0.0
        values = reference.bpref([NAN if y is None else y for y in labels], scores)
        np.testing.assert_allclose(values, [expected], rtol=1e-12)


# --- numbers worked by hand ----------------------------------------------------------------------------------------------------


def test_five_labels_worked_by_hand() -> None:
    log3, log5, log6 = math.log2(3), math.log2(5), math.log2(6)
    labels = [3, 2, 0, 1, 2]
    actual, ideal = 7 + 3 / log3 + 1 / log5 + 3 / log6, 7 + 3 / log3 + 3 / 2 + 1 / log5
    np.testing.assert_allclose(reference.dcg(labels, k=5), [actual], rtol=1e-15)
    np.testing.assert_allclose(reference.idcg(labels, k=5), [ideal], rtol=1e-15)
    np.testing.assert_allclose(reference.ndcg(labels, k=5), [actual / ideal], rtol=1e-15)
    assert [round(x, 3) for x in (actual, ideal, actual / ideal)] == [10.484, 10.823, 0.969]


def test_a_second_list_worked_by_hand() -> None:
    log3, log5, log6 = math.log2(3), math.log2(5), math.log2(6)
    labels, swapped = [3, 0, 2, 3, 1], [3, 3, 2, 0, 1]
    actual, ideal = 7 + 3 / 2 + 7 / log5 + 1 / log6, 7 + 7 / log3 + 3 / 2 + 1 / log5
    np.testing.assert_allclose(reference.dcg(labels, k=5), [actual], rtol=1e-15)
    np.testing.assert_allclose(reference.ndcg(labels, k=5), [actual / ideal], rtol=1e-15)
    assert reference.reciprocal_rank(labels).tolist() == [1.0]
    np.testing.assert_allclose(reference.average_precision(labels), [(1 + 2 / 3 + 3 / 4 + 4 / 5) / 4], rtol=1e-15)
    np.testing.assert_allclose(reference.dcg(swapped) - reference.dcg(labels), [7 / log3 - 7 / log5], rtol=1e-14)
    linear = (3 + 2 / 2 + 3 / log5 + 1 / log6) / (3 + 3 / log3 + 2 / 2 + 1 / log5)
    np.testing.assert_allclose(reference.ndcg(labels, gain="linear"), [linear], rtol=1e-15)
    assert [round(x, 4) for x in (actual, ideal, actual / ideal)] == [11.9016, 13.3472, 0.8917]


def test_first_relevant_at_ranks_1_2_4_1_and_never() -> None:
    labels = [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]]
    values = reference.reciprocal_rank(labels)
    assert values.tolist() == [1, 1 / 2, 1 / 4, 1, 0]
    assert values.mean() == 2.75 / 5


# --- laws ----------------------------------------------------------------------------------------------------------------------


def _batch(seed: int, n_queries: int = 3000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(draw.integers(0, 40, n_queries))))
    labels = draw.choice([0, 0.1, 0.3, 1, 1.7, 2, 3, 4], offsets[-1])
    return labels, draw.integers(0, 12, offsets[-1]).astype(np.float64), offsets


@pytest.mark.parametrize("gain", ["exp2", "linear"])
@pytest.mark.parametrize("k", [None, 10, 0.5])
def test_ndcg_is_exactly_one_for_the_ideal_order_and_never_more(gain: str, k: float | None) -> None:
    labels, scores, offsets = _batch(7)
    # Scores that follow the labels, ties and all; documents without gain are not retrieved half the time.
    ideal = np.where((labels == 0) & (scores > 5), NAN, labels)
    values = reference.ndcg(labels, ideal, offsets, k=k, gain=gain)
    found = reference.idcg(labels, ideal, offsets, k=k, gain=gain) > 0
    assert set(values[found]) == {1.0}
    for ties in ("average", "best", "worst", "input"):
        assert reference.ndcg(labels, scores, offsets, k=k, gain=gain, ties=ties).max() <= 1.0


@pytest.mark.parametrize("name", STRICT)
def test_a_metric_without_a_closed_form_refuses_the_average(name: str) -> None:
    with pytest.raises(InputError, match="no closed form"):
        getattr(reference, name)([0, 1], [1, 1], ties="average")


@pytest.mark.parametrize("name", [name for name in METRICS if name not in UNBOUNDED])
def test_no_value_passes_one(name: str) -> None:
    labels, scores, offsets = _batch(8)
    for used in (scores, -labels, labels, np.zeros_like(scores), None):
        values = getattr(reference, name)(labels, used, offsets)
        assert 0.0 <= values.min() <= values.max() <= 1.0


@pytest.mark.parametrize("name", [name for name in METRICS if name not in UNORDERED])
def test_a_rising_transform_of_the_scores_changes_no_bit(name: str) -> None:
    labels, scores, offsets = _batch(9, 500)
    for ties in ("average", "worst")[name in STRICT :]:
        values = getattr(reference, name)(labels, scores, offsets, ties=ties)
        assert values.tolist() == getattr(reference, name)(labels, np.exp(scores) - 7, offsets, ties=ties).tolist()


def test_p_norm_push_with_power_one_is_the_complement_of_auc() -> None:
    labels, scores, offsets = _batch(10)
    push, area = (metric(labels, scores, offsets, no_relevant="nan") for metric in (partial(reference.p_norm_push, p=1), reference.auc))
    np.testing.assert_allclose(push, 1 - area, atol=1e-14)


def test_concordance_of_two_labels_is_auc() -> None:
    labels, scores, offsets = _batch(11)
    binary = (labels >= 1).astype(np.int64)
    assert reference.concordance(binary, scores, offsets).tolist() == reference.auc(binary, scores, offsets).tolist()


def test_concordance_counts_pairs_of_real_labels_in_a_long_list() -> None:
    draw = np.random.default_rng(12)
    labels, scores = draw.normal(size=700), draw.integers(0, 50, 700)
    above = labels[:, None] > labels
    right = (above * ((scores[:, None] > scores) + 0.5 * (scores[:, None] == scores))).sum()
    assert reference.concordance(labels, scores).tolist() == [right / above.sum()]


# Blocks so long that factorials and binomials of doubles overflow; the chances in exact fractions.
N_TIED, N_RELEVANT, N_ABOVE, CUT = 1500, 3, 2, 700


def _long_block() -> tuple[np.ndarray, np.ndarray]:
    labels = np.zeros(N_ABOVE + N_TIED + 5)
    labels[[1, N_ABOVE + 100, N_ABOVE + 200, N_ABOVE + 900]] = 2
    return labels, np.repeat([3.0, 2.0, 1.0, 0.0], [1, 1, N_TIED, 5])


def test_reciprocal_rank_and_success_of_a_long_block() -> None:
    labels, scores = _long_block()
    labels[1] = 0
    first_at = [Fraction(math.comb(N_TIED - i, N_RELEVANT - 1), math.comb(N_TIED, N_RELEVANT)) for i in range(1, N_TIED - N_RELEVANT + 2)]
    within = first_at[: CUT - N_ABOVE]
    expected = float(sum(chance / (N_ABOVE + i) for i, chance in enumerate(within, 1)))
    np.testing.assert_allclose(reference.reciprocal_rank(labels, scores, k=CUT), [expected], rtol=1e-13)
    np.testing.assert_allclose(reference.success(labels, scores, k=CUT), [float(sum(within))], rtol=1e-12)
    assert reference.success(labels, scores).tolist() == [1.0]


def _hypergeometric(m: int, t: int) -> Fraction:
    return Fraction(math.comb(N_RELEVANT, t) * math.comb(N_TIED - N_RELEVANT, m - t), math.comb(N_TIED, m))


def test_expected_reciprocal_rank_of_a_long_block() -> None:
    labels, scores = _long_block()
    q = Fraction(13, 16)
    passed = [sum(_hypergeometric(m, t) * q**t for t in range(min(m, N_RELEVANT) + 1)) for m in range(CUT - N_ABOVE + 1)]
    inside = sum((passed[i - 1] - passed[i]) / (N_ABOVE + i) for i in range(1, len(passed)))
    np.testing.assert_allclose(reference.err(labels, scores, k=CUT), [float((1 - q) / 2 + q * inside)], rtol=1e-12)


def test_average_precision_by_hits_of_a_long_block_that_k_cuts() -> None:
    labels, scores = _long_block()
    m = CUT - N_ABOVE
    flat = sum(Fraction(1, N_ABOVE + i) for i in range(1, m + 1))
    rising = sum(Fraction(i - 1, N_ABOVE + i) for i in range(1, m + 1))
    # One hit at rank 2 before the block; given h hits in its m places, those stand anywhere.
    means = [(Fraction(1, 2) + Fraction(h, m) * (2 * flat + Fraction(h - 1, m - 1) * rising)) / (1 + h) for h in range(N_RELEVANT + 1)]
    expected = float(sum(_hypergeometric(m, h) * mean for h, mean in enumerate(means)))
    np.testing.assert_allclose(reference.average_precision(labels, scores, k=CUT, denominator="hits"), [expected], rtol=1e-12)


# --- input ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in METRICS if name != "num_q"])
def test_no_queries_and_empty_lists_are_legal(name: str) -> None:
    metric = getattr(reference, name)
    for scores in (None, np.empty(0)):
        assert metric(np.empty(0), scores, [0]).tolist() == []
        assert metric(np.empty(0), scores, [0, 0, 0]).tolist() == [0.0, 0.0]


def test_a_matrix_is_one_query_a_row_and_a_flat_array_one_query() -> None:
    assert reference.reciprocal_rank([[0, 1], [1, 0]], [[1, 2], [1, 2]]).tolist() == [1.0, 0.5]
    assert reference.num_ret([0, 1, 1]).tolist() == [3.0]


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int8, np.float16, ">f4", ">i8"])
def test_labels_of_every_kind_mean_the_same(kind: Any) -> None:
    draw = np.random.default_rng(13)
    labels, scores = draw.integers(0, 2, 30), draw.integers(0, 9, 30)
    for name in set(METRICS) - set(UNORDERED):
        for ties in ("average", "worst")[name in STRICT :]:
            metric = partial(getattr(reference, name), ties=ties)
            assert metric(labels.astype(kind), scores).tolist() == metric(labels, scores).tolist()


def test_scores_are_compared_as_given() -> None:
    labels = [0, 1]
    big = np.array([2**53, 2**53 + 1])
    assert reference.reciprocal_rank(labels, big).tolist() == [1.0]
    assert reference.reciprocal_rank(labels, big.astype(np.float64)).tolist() == [0.75]
    assert reference.reciprocal_rank(labels, np.array([-(2**63), 2**63 - 1])).tolist() == [1.0]
    assert reference.reciprocal_rank(labels, np.array([1.0, 1.00000001], dtype=np.float32)).tolist() == [0.75]
    assert reference.reciprocal_rank(labels, [-math.inf, 0.0]).tolist() == [1.0]
    assert reference.reciprocal_rank(labels, [math.inf, math.inf]).tolist() == [0.75]
    assert reference.reciprocal_rank(labels, [0.0, -0.0]).tolist() == [0.75]
    assert reference.reciprocal_rank(labels, np.array([False, True])).tolist() == [1.0]


@pytest.mark.parametrize("doc_ids", [["d10", "d9"], [b"z", b"\xc3\xa9"], [9, 10], np.array(["d10", "d9"], dtype=object), ["z", "é"]])
def test_the_greater_document_id_ranks_first(doc_ids: Any) -> None:
    assert reference.reciprocal_rank([0, 1], [5, 5], ties="docid", doc_ids=doc_ids).tolist() == [1.0]


@pytest.mark.parametrize(
    ("share", "n", "expected"), [("7%", 100, 7), (0.07, 100, 7), (0.2, 11, 3), (np.float64(0.2), 10, 2), ("0.5", 3, 2)]
)
def test_a_share_is_an_exact_decimal_rounded_up(share: Any, n: int, expected: int) -> None:
    assert reference.num_rel_ret(np.ones(n), k=share).tolist() == [expected]


def test_an_empty_list_with_something_to_find_is_zero_for_a_share_of_it_too() -> None:
    assert reference.ndcg([1, 0], [NAN, NAN], k="20%", no_relevant="one").tolist() == [0.0]
    assert reference.precision([1, 0], [NAN, NAN], k="20%").tolist() == [0.0]


def test_negative_gains_rank_last_in_the_ideal_with_zeros_between() -> None:
    log3 = math.log2(3)
    np.testing.assert_allclose(reference.idcg([-1, 0, 2, NAN], gain="linear"), [2 + 0 / log3 + 0 / 2 - 1 / math.log2(5)], rtol=1e-15)
    np.testing.assert_allclose(reference.dcg([-1, 2]), [(2**-1 - 1) + 3 / log3], rtol=1e-15)
    assert np.isnan(reference.ndcg([-1, -2], gain="linear", no_relevant="nan")).all()
    # Leaving a loss out of the run is better than the ideal order of all documents, and still 1.
    assert reference.ndcg([2, -1], [1, NAN], gain="linear").tolist() == [1.0]


def test_a_gain_table_gives_the_unjudged_nothing() -> None:
    assert reference.dcg([NAN, NAN], gain={0: 5}).tolist() == [0.0]
    assert reference.dcg([1, 0], gain=[0.25, 8]).tolist() == [8 + 0.25 / math.log2(3)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reference.ndcg([1], [1], ties="random"), "ties must be one of average, input, worst, best, docid: got 'random'"),
        (lambda: reference.ndcg([1], [1], ties="docid"), "ties='docid' needs one document id per label"),
        (lambda: reference.ndcg([1], [1, 2]), "scores must hold one number per label: 2 scores for 1 labels"),
        (lambda: reference.ndcg([1, 1], None, [0, 3, 2]), "offsets must be flat and rise from 0 to the number of labels, 2: got 0 ... 2"),
        (lambda: reference.ndcg([1], None, [[0, 1]]), "offsets must be flat and rise from 0 to the number of labels, 1: got shape (1, 2)"),
        (lambda: reference.ndcg([1], no_relevant="none"), "no_relevant must be one of zero, one, nan, skip: got 'none'"),
        (lambda: reference.ndcg([1], k=0), "k must be at least 1: got 0"),
        (lambda: reference.ndcg([1], k=True), "k must be at least 1: got True"),
        (lambda: reference.ndcg([1], k=1.0), "k as a share must lie strictly between 0 and 1: got 1.0"),
        (lambda: reference.ndcg([1], k="100%"), "k as a share must lie strictly between 0 and 1: got '100%'"),
        (lambda: reference.ndcg([1], k="ten"), "k must be a whole number or a share such as 0.2 or '20%': got 'ten'"),
        (lambda: reference.ndcg([1], k=NAN), "k must be a whole number or a share such as 0.2 or '20%': got nan"),
        (lambda: reference.ndcg([1], gain="exp"), "gain must be 'exp2', 'linear', or a table of gains by label: got 'exp'"),
        (lambda: reference.ndcg([1, 2.5], gain={1: 1}), "gain has no entry for label 2.5"),
        (lambda: reference.ndcg([1, 7], gain=[0, 1]), "gain has no entry for label 7"),
        (lambda: reference.ndcg([2000]), "labels must stay below 1024 under gain='exp2': got 2000"),
        (lambda: reference.ndcg([1], discount="log"), "discount must be log2, ln, zipf"),
        (lambda: reference.ndcg([1], discount="jarvelin:1"), "discount must be log2, ln, zipf"),
        (lambda: reference.err([5, 1]), "labels must not exceed max_label = 4 in ERR: got 5"),
        (
            lambda: reference.average_precision([1], denominator="k"),
            "denominator of AP must be one of relevant, min_k, min_k_retrieved, hits",
        ),
        (lambda: reference.precision([1], denominator="n"), "denominator of P must be one of k, retrieved"),
        (lambda: reference.rbp([1], p=1), "p of RBP must lie strictly between 0 and 1: got 1"),
        (lambda: reference.p_norm_push([1], p=0), "p of P-norm push must be above 0: got 0"),
    ],
)
def test_an_error_names_the_argument_the_rule_and_what_was_given(call: Callable[[], np.ndarray], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("module", ["_binary", "_graded", "_pairs"])
def test_the_examples_in_the_docstrings_print_what_they_say(module: str) -> None:
    result = doctest.testmod(importlib.import_module(f"fastrank.reference.{module}"))
    assert result.attempted > 0
    assert result.failed == 0

"""Discounts and their critical point, limits in closed form, y(s) from data, and the gap of finite lists."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastrank as fr
from fastrank.analysis import check_discount, discount_table, limit, limit_interval, relevance_curve, simulate_gap


def ybar(s: float) -> float:
    return 0.1 + 0.6 * s


# --- discounts ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("discount", "formula"),
    [
        ("log2", lambda r: 1 / math.log2(r + 1)),
        ("ln", lambda r: 1 / math.log(r + 1)),
        ("zipf", lambda r: 1 / r),
        ("power:0.3", lambda r: r**-0.3),
        ("geometric:0.5", lambda r: 0.5 ** (r - 1)),
        ("step:3", lambda r: float(r <= 3)),
        ([1, 0.5], lambda r: (1.0, 0.5)[r - 1] if r <= 2 else 0.0),
        (lambda r: r**-0.3, lambda r: r**-0.3),
        (lambda _: 1.0, lambda _: 1.0),
    ],
)
def test_tables_hold_the_formula(discount: object, formula: object) -> None:
    assert callable(formula)
    assert discount_table(discount, 6).tolist() == pytest.approx([formula(rank) for rank in range(1, 7)], rel=1e-15)


@pytest.mark.parametrize(
    ("discount", "side", "exponent", "log_exponent"),
    [
        ("log2", "feasible", 0, 1),
        ("jarvelin:2", "feasible", 0, 1),
        (lambda r: 1 / np.log(r + 1), "feasible", 0, 1),
        (lambda r: r**-0.95, "feasible", 0.95, 0),
        (lambda r: r**-0.5 / np.log(r + 1) ** 2, "feasible", 0.5, 2),
        ("zipf", "critical", 1, 0),
        (lambda r: 1 / r, "critical", 1, 0),
        (lambda r: 1 / (r * np.log(r + 2)), "critical", 1, 1),
        (lambda r: 1 / (r * np.log(r + 2) ** 2), "too fast", 1, 2),
        ("power:1.1", "too fast", 1.1, 0),
        ("power:1.001", "too fast", 1.001, 0),
        ("power:1", "critical", 1, 0),
        ("power:0.999", "feasible", 0.999, 0),
        ("power:0.001", "feasible", 0.001, 0),
        (lambda r: r**-1.1, "too fast", 1.1, 0),
        (lambda r: r**-2.0, "too fast", 2, 0),
        ("geometric:0.5", "too fast", math.inf, 0),
        (lambda r: np.exp(-np.sqrt(r)), "too fast", math.inf, 0),
        (lambda r: 0.9**r, "too fast", math.inf, 0),
        ("step:10", "too fast", math.inf, 0),
        ([1, 0.5, 0.25], "too fast", math.inf, 0),
        (lambda _: 1.0, "constant", 0, 0),
    ],
)
def test_a_discount_is_on_its_side_of_the_critical_point(discount: object, side: str, exponent: float, log_exponent: float) -> None:
    found = check_discount(discount)
    assert found.side == side
    assert found.finite_sum == (side == "too fast")
    assert found.exponent == pytest.approx(exponent, abs=0.01)
    assert found.log_exponent == pytest.approx(log_exponent, abs=0.05)


def test_half_of_the_weight_of_the_standard_discount_is_nearly_half_way_down() -> None:
    sums = np.cumsum(1 / np.log2(np.arange(2, 1_002)))
    assert check_discount("log2", ranks=1_000).first_half == int(np.argmax(sums >= sums[-1] / 2)) + 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: discount_table("log", 3), "discount 'log' is not known. Use log2, ln, .* step:K"),
        (lambda: discount_table("step:0", 3), "step takes a whole number from 1 up"),
        (lambda: discount_table("log2", 0), "n must be a whole number from 1 up"),
        (lambda: discount_table(lambda r: r[:2], 3), "must return one number a rank, 3"),
        (lambda: discount_table(lambda r: np.where(r == 2, np.inf, 1.0), 3), "must be finite: at rank 2"),
        (lambda: check_discount(lambda r: r), "must not rise down the list: that of rank 2"),
        (lambda: check_discount(lambda r: 1.5 - r), "must not be negative"),
        (lambda: check_discount("log2", ranks=10), "ranks must be a whole number from 1,000 up"),
    ],
)
def test_wrong_discounts_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(fr.InputError, match=message), np.errstate(all="ignore"):
        call()


# --- limits ---------------------------------------------------------------------------------------------------------------------


def power_limit(beta: float, share: float = 1.0) -> float:
    """(1 - b) × integral of (0.7 - 0.6 x) x^-b from 0 to c, over min(c, 0.4)^(1 - b), by hand."""
    integral = 0.7 * share ** (1 - beta) / (1 - beta) - 0.6 * share ** (2 - beta) / (2 - beta)
    return (1 - beta) * integral / min(share, 0.4) ** (1 - beta)


@pytest.mark.parametrize(
    ("discount", "share", "expected"),
    [
        ("power:0.5", None, power_limit(0.5)),
        ("power:0.9", None, power_limit(0.9)),
        ("power:0.99", None, power_limit(0.99)),
        (lambda r: r**-0.25, None, power_limit(0.25)),
        ("power:0.5", 0.3, power_limit(0.5, 0.3)),
        ("log2", 0.2, power_limit(0.0, 0.2)),
        ("ln", 0.7, power_limit(0.0, 0.7)),
        ("log2", None, 1.0),
        (lambda _: 1.0, None, 1.0),
        ("zipf", None, 0.7),
        ("zipf", 0.2, 0.7),
    ],
)
def test_limits_are_the_closed_forms(discount: object, share: float | None, expected: float) -> None:
    assert limit(discount, ybar, k_share=share) == pytest.approx(expected, abs=1e-5 if callable(discount) else 1e-9)


def test_limits_of_the_published_example() -> None:
    assert limit("power:0.5", ybar, 0.4) == pytest.approx(0.790569, abs=5e-7)
    assert limit("log2", ybar, 0.4, 0.2) == pytest.approx(0.64, abs=1e-9)


@pytest.mark.parametrize("discount", ["geometric:0.5", "step:10", "power:1.5", [1, 0.5]])
def test_what_falls_too_fast_has_no_limit(discount: object) -> None:
    assert math.isnan(limit(discount, ybar))
    assert math.isnan(limit(discount, ybar, k_share=0.2))


def test_a_jump_in_ybar_is_integrated() -> None:
    # A ranker that puts all relevant documents, a share 0.3, on top.
    def perfect(s: float) -> float:
        return float(s >= 0.7)

    assert limit("power:0.5", perfect) == pytest.approx(1.0, abs=1e-6)
    assert limit("log2", perfect, k_share=0.6) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limit("log2", 0.5), "ybar must be a function of the quantile"),
        (lambda: limit("log2", lambda s: 2 * s, k_share=0.2), "ybar must be a chance, from 0 to 1"),
        (lambda: limit("power:0.5", lambda _: 0.0), "ybar must not be 0 throughout"),
        (lambda: limit("log2", ybar, k_share=1.5), "k_share must be a share"),
        (lambda: limit("log2", ybar, 0), "p must be a share"),
        (lambda: limit_interval("log2", ybar), "curve must be a RelevanceCurve"),
        (lambda: simulate_gap("log2", ybar, n_lists=1), "n_lists must be a whole number from 2 up"),
        (lambda: simulate_gap("log2", ybar, [1]), "sizes must be whole numbers from 2 up"),
        (lambda: relevance_curve([1], [1], bins=0), "bins must be a whole number from 1 up"),
        (lambda: relevance_curve([1, 0], [1, 2], bins=9), "bins: 9 are too many"),
        (lambda: relevance_curve([1, 0]), "scores"),
        (lambda: relevance_curve([1, 0], None), "scores must be given"),
        (lambda: relevance_curve(np.ma.array([1, 0], mask=True), [1, 2]), "labels must hold a judged document"),
    ],
)
def test_wrong_limits_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises((fr.InputError, TypeError), match=message):
        call()


# --- y(s) from data -------------------------------------------------------------------------------------------------------------


def test_bins_hold_the_shares_of_relevant_documents_by_quantile() -> None:
    rng = np.random.default_rng(0)
    sizes = [7, 30, 1, 12]
    labels, scores = rng.integers(0, 3, 50), rng.integers(0, 6, 50)
    found = relevance_curve(labels, scores, sizes=sizes, bins=3, rel=2)
    hits, n = np.zeros(3), np.zeros(3)
    start = 0
    for size in sizes:
        for d in range(start, start + size):
            block = scores[start : start + size]
            mean_rank = (block > scores[d]).sum() + ((block == scores[d]).sum() + 1) / 2
            place = min(int((1 - (mean_rank - 0.5) / size) * 3), 2)
            n[place] += 1
            hits[place] += labels[d] >= 2
        start += size
    assert found.n.tolist() == n.tolist()
    assert found.value == pytest.approx(hits / n)
    assert found.p == pytest.approx((labels >= 2).mean())
    assert ((found.low <= found.value) & (found.value <= found.high)).all()


def test_between_the_bins_runs_a_straight_line() -> None:
    labels = np.repeat([1, 0, 1, 1, 0, 0, 0, 0], 1)
    found = relevance_curve(labels, np.arange(8, 0, -1), bins=2)  # 3 of 4 above, 0 of 4 below
    assert found([0.25, 0.5, 0.75, 1.0]).tolist() == pytest.approx([0.0, 0.375, 0.75, 1.0])
    assert found(0.0) == 0.0
    assert relevance_curve(labels, np.arange(8), bins=1)(0.9) == pytest.approx(3 / 8)


@pytest.mark.parametrize(("discount", "share"), [("power:0.5", None), ("log2", 0.2)])
def test_the_interval_of_an_estimated_limit_holds_the_true_one_as_often_as_it_says(discount: str, share: float | None) -> None:
    truth, held = limit(discount, ybar, k_share=share), 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        s = rng.random(4_000)
        curve = relevance_curve(rng.random(4_000) < ybar(s), s, bins=10)
        found = limit_interval(discount, curve, share, seed=seed)
        held += found.low <= truth <= found.high
    assert held >= 24  # of 30 at 95%: fewer has a chance below 1 in 1,000


# --- finite lists ---------------------------------------------------------------------------------------------------------------


def test_simulated_lists_have_the_ndcg_of_the_plain_function() -> None:
    # All documents relevant with certainty: NDCG is 1. Only the upper half: the ideal order, 1 again.
    assert simulate_gap("log2", lambda _: 1.0, [50], n_lists=3).mean.tolist() == pytest.approx([1.0])
    perfect = simulate_gap("power:0.5", lambda s: (s > 0.5) * 1.0, [400], n_lists=5)
    assert perfect.mean.tolist() == pytest.approx([1.0])
    rng = np.random.default_rng(0)
    values = [fr.ndcg(rng.random(300) < ybar(np.sort(rng.random(300))[::-1]), discount="zipf")[0] for _ in range(500)]
    found = simulate_gap("zipf", ybar, [300], n_lists=500)
    assert abs(found.mean[0] - np.mean(values)) < 4 * math.hypot(found.standard_error[0], np.std(values) / math.sqrt(500))


def test_nothing_relevant_counts_zero() -> None:
    assert simulate_gap("log2", lambda s: (s > 0.5) * 1e-9, [10], n_lists=2).mean.tolist() == [0.0]


@pytest.mark.parametrize(
    ("discount", "share", "rate"), [("log2", 0.2, "1/log n"), ("zipf", None, "1/log n"), ("power:0.5", None, "n^-0.5")]
)
def test_the_fit_of_gaps_by_the_rate_of_theory_misses_by_no_more_than_chance(discount: str, share: float | None, rate: str) -> None:
    found = simulate_gap(discount, ybar, [10_000, 30_000, 100_000], k_share=share, n_lists=40, seed=1)
    assert found.rate == rate
    theory = 1 / np.log(found.sizes) if rate == "1/log n" else found.sizes**-0.5
    missed = ((found.gap - found.slope * theory) / found.standard_error) ** 2
    assert missed.sum() < 13.8  # chi-square of 2 degrees: 1 in 1,000


def test_the_standard_discount_nears_one_as_one_over_log_n() -> None:
    found = simulate_gap("log2", ybar, [1_000, 10_000, 100_000], n_lists=20)
    assert found.slope < 0
    assert found.explained > 0.999


def test_without_a_limit_there_is_no_fit() -> None:
    found = simulate_gap("geometric:0.5", ybar, [100, 1_000], n_lists=5)
    assert found.rate == "none"
    assert math.isnan(found.slope)
    assert np.isnan(found.gap).all()


@pytest.mark.slow
@pytest.mark.parametrize(("discount", "share", "expected"), [("power:0.5", None, 0.790602), ("log2", 0.2, 0.642451)])
def test_ten_million_documents_are_within_three_standard_errors_of_the_exact_expectation(
    discount: str, share: float | None, expected: float
) -> None:
    found = simulate_gap(discount, ybar, [10_000_000], k_share=share, n_lists=4)
    assert abs(found.mean[0] - expected) < 3 * max(found.standard_error[0], {0.790602: 0.00047, 0.642451: 0.00034}[expected] / 2)

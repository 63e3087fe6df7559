"""Sums are exact, so that neither order nor split nor merge tree can be told from the result."""

from __future__ import annotations

import doctest
import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from fastrank import statistics
from fastrank.errors import InputError
from fastrank.statistics import SCALE, Moments, t_quantile

FINITE = st.floats(allow_nan=False, allow_infinity=False)
SHARES = st.floats(0, 1)
# Straddles the length up to which Python's integers do the work.
LENGTHS = [0, 1, 2, 32, 33, 200]


def of_every_exponent(n: int, seed: int, largest: int = 2046) -> np.ndarray:
    """Random bit patterns of finite doubles: all exponents up to `largest`, subnormals, zeros, both signs."""
    rng = np.random.default_rng(seed)
    sign, exponent, mantissa = rng.integers(0, 2, n), rng.integers(0, largest + 1, n), rng.integers(0, 1 << 52, n)
    exponent[: n // 4] = 0
    mantissa[: n // 8] = 0
    return rng.permutation((sign << 63) | (exponent << 52) | mantissa).view(np.float64)


def exactly(values: np.ndarray) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


def squared_error(x: np.ndarray, w: np.ndarray) -> Fraction:
    """n / (n - 1) · Σ (y - w · mean)² / (Σ w)², y = w · x rounded to a double, in rational numbers."""
    xs, ws, ys = exactly(x), exactly(w), exactly(w * x)
    mean = sum(a * b for a, b in zip(xs, ws, strict=True)) / sum(ws)
    deviations = sum((y - weight * mean) ** 2 for y, weight in zip(ys, ws, strict=True))
    return Fraction(len(x), len(x) - 1) * deviations / sum(ws) ** 2


# --- sums -----------------------------------------------------------------------------------------------------------------------


def test_an_order_that_defeats_double_double_arithmetic_changes_nothing() -> None:
    values = [1.0, 2.0**-53, 8 * 2.0**-107]
    expected = float(sum(map(Fraction, values)))
    assert {Moments.of(order).total for order in itertools.permutations(values)} == {expected}
    parts = [Moments.of([value]) for value in values]
    assert {(a + b + c).total for a, b, c in itertools.permutations(parts)} == {expected}
    assert {(a + (b + c)).total for a, b, c in itertools.permutations(parts)} == {expected}


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("seed", [0, 1])
def test_sums_equal_rational_arithmetic_for_every_exponent(n: int, seed: int) -> None:
    x = of_every_exponent(n, seed)
    moments = Moments.of(x)
    assert Fraction(moments.sum_wx, 1 << 2 * SCALE) == sum(exactly(x))
    assert Fraction(moments.sum_yy, 1 << 2 * SCALE) == sum(value * value for value in exactly(x))


@pytest.mark.parametrize("n", LENGTHS)
def test_weighted_sums_equal_rational_arithmetic_for_every_exponent(n: int) -> None:
    x, w = of_every_exponent(n, 2, largest=1500), np.abs(of_every_exponent(n, 3, largest=1500))
    xs, ws, ys = exactly(x), exactly(w), exactly(w * x)
    moments = Moments.of(x, w)
    assert Fraction(moments.sum_w, 1 << SCALE) == sum(ws)
    for found, factors in (
        (moments.sum_ww, (ws, ws)),
        (moments.sum_wx, (ws, xs)),
        (moments.sum_wy, (ws, ys)),
        (moments.sum_yy, (ys, ys)),
    ):
        assert Fraction(found, 1 << 2 * SCALE) == sum(a * b for a, b in zip(*factors, strict=True))


@given(st.lists(FINITE, max_size=80), st.data())
def test_any_split_and_order_gives_the_same_sums(values: list[float], data: st.DataObject) -> None:
    whole = Moments.of(values)
    order = data.draw(st.permutations(values))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
    parts = [Moments.of(order[start:stop]) for start, stop in itertools.pairwise([0, *cuts, len(values)])]
    assert sum(data.draw(st.permutations(parts)), Moments()) == whole


@given(st.lists(st.tuples(SHARES, st.floats(0, 1e6)), min_size=2, max_size=60))
def test_any_merge_tree_gives_the_same_weighted_moments(pairs: list[tuple[float, float]]) -> None:
    whole = Moments.of(*zip(*pairs, strict=True))
    trees = [Moments.of([x], [w]) for x, w in pairs]
    while len(trees) > 1:
        trees = [sum(pair, Moments()) for pair in itertools.zip_longest(trees[::2], trees[1::2], fillvalue=Moments())]
    assert trees == [whole]


def test_a_long_input_is_summed_in_chunks_to_the_same_integer(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = of_every_exponent(100, 4, largest=1500), np.abs(of_every_exponent(100, 5, largest=1500))
    whole = Moments.of(x), Moments.of(x, w)
    monkeypatch.setattr(statistics, "_CHUNK", 33)
    assert (Moments.of(x), Moments.of(x, w)) == whole


@pytest.mark.compiled
@pytest.mark.parametrize("value", [math.nextafter(2, 0), -math.nextafter(2, 0)])
def test_no_bin_overflows_within_a_chunk(value: float) -> None:
    n = statistics._CHUNK
    moments = Moments.of(np.full(n, value))
    assert Fraction(moments.sum_wx, 1 << 2 * SCALE) == n * Fraction(value)
    assert Fraction(moments.sum_yy, 1 << 2 * SCALE) == n * Fraction(value) ** 2
    products = statistics._sum_of_products(np.full(n, value), np.full(n, 1 / 3))
    assert Fraction(products, 1 << 2 * SCALE) == n * Fraction(value) * Fraction(1 / 3)


@pytest.mark.compiled
def test_each_kernel_compiles_once_whatever_the_caller_holds() -> None:
    x = np.linspace(0, 1, 200)
    frozen = x.copy()
    frozen.flags.writeable = False
    layouts = [x, frozen, np.repeat(x, 2)[::2], x.astype(">f8"), x[::-1][::-1], x.tolist(), np.asfortranarray(np.c_[x, x])[:, 0]]
    assert len({Moments.of(layout, layout) for layout in layouts}) == 1
    assert frozen.flags.writeable is False
    assert x.flags.writeable is True
    assert len(statistics.add_values_and_squares.signatures) == 1
    assert len(statistics.add_products.signatures) == 1


# --- means and errors -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=50))
def test_mean_and_variance_are_the_rounded_rational_ones(values: list[float]) -> None:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    variance = sum((value - mean) ** 2 for value in exact) / (len(exact) - 1)
    moments = Moments.of(values)
    assert moments.mean == float(mean)
    assert moments.variance == float(variance)


@pytest.mark.parametrize("n", [2, 7, 100])
def test_weighted_mean_and_its_error_are_the_rounded_rational_ones(n: int) -> None:
    rng = np.random.default_rng(n)
    x, w = rng.random(n), rng.exponential(size=n)
    moments = Moments.of(x, w)
    assert moments.mean == float(sum(a * b for a, b in zip(exactly(x), exactly(w), strict=True)) / sum(exactly(w)))
    assert moments.variance == float(n * squared_error(x, w))
    assert moments.standard_error == pytest.approx(math.sqrt(squared_error(x, w)), rel=3e-16)


def test_without_weights_the_error_is_the_deviation_over_the_root_of_n() -> None:
    x = np.random.default_rng(0).random(1000)
    moments = Moments.of(x)
    assert moments.mean == math.fsum(x) / 1000
    assert moments.variance == pytest.approx(np.var(x, ddof=1), rel=1e-13)
    assert moments.standard_error == pytest.approx(np.std(x, ddof=1) / math.sqrt(1000), rel=1e-13)


def test_unit_weights_are_no_weights() -> None:
    x = np.random.default_rng(1).random(100)
    assert Moments.of(x, np.ones(100)) == Moments.of(x)


def test_the_unit_of_the_weights_changes_no_bit() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.random(100), rng.random(100)
    one, other = Moments.of(x, w), Moments.of(x, w * 2.0**40)
    assert (one.mean, one.standard_error, one.interval()) == (other.mean, other.standard_error, other.interval())


def test_a_mean_of_equal_values_is_that_value_and_has_no_error() -> None:
    for n in (2, 3, 10, 100):
        moments = Moments.of([0.1] * n)
        assert (moments.mean, moments.variance, moments.interval()) == (0.1, 0.0, (0.1, 0.1))
        assert Moments.of([0.1] * n, np.random.default_rng(n).random(n)).mean == 0.1


def test_a_large_offset_does_not_cancel_the_variance_away() -> None:
    # The textbook formula Σx² - (Σx)²/n in doubles gives 0 or worse here.
    assert Moments.of([1e15 + 1, 1e15 + 2, 1e15 + 3]).variance == 1.0


def test_errors_stay_in_range_where_their_squares_do_not() -> None:
    assert Moments.of([0.0, 1e200]).standard_error == pytest.approx(1e200 / 2, rel=3e-16)
    assert Moments.of([0.0, 1e200]).variance == math.inf
    assert Moments.of([0.0, 1e-200]).standard_error == pytest.approx(1e-200 / 2, rel=3e-16)
    assert Moments.of([1e308] * 4).total == math.inf
    assert Moments.of([-1e308] * 4).total == -math.inf
    assert Moments.of([1e308] * 4).mean == 1e308


# With one degree of freedom three quarters lie below 1. Old versions of scipy have ten of its digits.
to_the_last_digit = pytest.mark.skipif(
    abs(special.stdtrit(1, 0.75) - 1) > 1e-14, reason="the quantile of this scipy is right to ten digits alone"
)


@to_the_last_digit
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("n", [2, 5, 400])
def test_the_interval_is_students(n: int, confidence: float) -> None:
    from scipy import stats

    x = np.random.default_rng(n).random(n)
    expected = stats.t.interval(confidence, n - 1, loc=np.mean(x), scale=stats.sem(x))
    assert Moments.of(x).interval(confidence) == pytest.approx(expected, rel=1e-12)


def test_the_quantile_has_the_closed_forms_of_few_degrees_of_freedom() -> None:
    for confidence in (1e-12, 0.001, 0.3, 0.5, 0.95, 0.999, 1 - 2.0**-30, 1 - 2.0**-50):
        beyond = 1 - confidence
        for_two = confidence * math.sqrt(2 / (beyond * (1 + confidence)))
        for_one = math.tan(math.pi * confidence / 2) if confidence < 0.5 else 1 / math.tan(math.pi * beyond / 2)
        assert t_quantile(confidence, 2) == pytest.approx(for_two, rel=3e-15)
        assert t_quantile(confidence, 1) == pytest.approx(for_one, rel=3e-15)


@to_the_last_digit
@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 20, 199, 200, 201, 5000, 10**6, 10**9])
def test_the_quantile_is_scipys(freedom: int) -> None:
    for confidence in (0.3, 0.5, 0.8, 0.9, 0.95, 0.99):
        assert t_quantile(confidence, freedom) == pytest.approx(special.stdtrit(freedom, (1 + confidence) / 2), rel=3e-14)
    for beyond in (2.0**-10, 2.0**-20, 2.0**-30):  # as far as double precision of the confidence tells it
        assert 2 * special.stdtr(freedom, -t_quantile(1 - beyond, freedom)) == pytest.approx(beyond, rel=1e-15 / beyond)


def test_the_quantile_of_many_degrees_of_freedom_is_the_normal_one() -> None:
    for confidence in (0.5, 0.95, 0.999):
        assert t_quantile(confidence, 10**15) == pytest.approx(special.ndtri((1 + confidence) / 2), rel=1e-13)


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.1, math.nan])
def test_a_confidence_that_is_no_share_is_named(confidence: float) -> None:
    with pytest.raises(InputError, match=r"confidence must lie strictly between 0 and 1, such as 0\.95, not"):
        Moments.of([1.0, 2.0]).interval(confidence)


# --- what is missing ------------------------------------------------------------------------------------------------------------


def test_no_values_have_no_mean() -> None:
    for moments in (Moments(), Moments.of([]), Moments.of([], []), Moments.of([0.5], [0.0])):
        assert all(map(math.isnan, (moments.mean, moments.variance, moments.standard_error, *moments.interval())))
        assert moments.total == 0.0
    assert Moments.of([]) == Moments()


def test_one_value_has_a_mean_and_no_error() -> None:
    moments = Moments.of([0.25])
    assert moments.mean == 0.25
    assert all(map(math.isnan, (moments.variance, moments.standard_error, *moments.interval())))


def test_nan_makes_the_mean_nan_or_is_left_out() -> None:
    x, w = np.array([0.25, math.nan, 0.75]), np.array([1.0, 5.0, 3.0])
    spoilt = Moments.of(x)
    assert (spoilt.n, spoilt.n_nan, spoilt.n_skipped) == (2, 1, 0)
    assert all(map(math.isnan, (spoilt.mean, spoilt.total, spoilt.standard_error, *spoilt.interval())))
    left_out = Moments.of(x, skip_nan=True)
    assert (left_out.n, left_out.n_nan, left_out.n_skipped) == (2, 0, 1)
    assert left_out.mean == 0.5
    assert Moments.of(x, w, skip_nan=True).mean == (0.25 + 3 * 0.75) / 4
    assert math.isnan((spoilt + left_out).mean)


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_an_infinite_value_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"values must be finite or NaN, but one is -?inf"):
        Moments.of([0.5, value, math.nan])


def test_a_weight_that_overflows_is_refused() -> None:
    with pytest.raises(InputError, match=r"weights must be finite .* but one is 1e\+308"):
        Moments.of([0.5, 100.0], [1.0, 1e308])


# --- logarithms, merging, writing -------------------------------------------------------------------------------------------------


def test_the_geometric_mean_floors_values_as_trec_eval_does() -> None:
    values = [0.5, 0.0, 0.25, 1e-7]
    expected = math.exp((math.log(0.5) + math.log(0.25) + 2 * math.log(1e-5)) / 4)
    assert Moments.of(values, logs=True).geometric_mean == pytest.approx(expected, rel=1e-15)
    assert Moments.of(values, [2.0] * 4, logs=True).geometric_mean == Moments.of(values, logs=True).geometric_mean
    assert math.isnan(Moments.of([math.nan, 0.5], logs=True).geometric_mean)


def test_logarithms_merge_like_every_sum() -> None:
    values = np.random.default_rng(3).random(100)
    whole = Moments.of(values, logs=True)
    assert Moments.of(values[:40], logs=True) + Moments() + Moments.of(values[40:], logs=True) + Moments.of([]) == whole
    partial = Moments.of(values[:40], logs=True) + Moments.of(values[40:])
    with pytest.raises(InputError, match="ask for them with logs=True"):
        _ = partial.geometric_mean


def test_moments_add_to_moments_alone() -> None:
    with pytest.raises(TypeError):
        _ = Moments() + 1  # type: ignore[operator]


@pytest.mark.parametrize("logs", [True, False])
def test_moments_survive_json(logs: bool) -> None:
    x = of_every_exponent(50, 6, largest=1500)
    moments = Moments.of(np.append(x, math.nan), np.append(np.abs(x), 1.0) if not logs else None, skip_nan=True, logs=logs)
    assert Moments.from_dict(json.loads(json.dumps(moments.to_dict()))) == moments


def test_examples() -> None:
    assert doctest.testmod(statistics).failed == 0

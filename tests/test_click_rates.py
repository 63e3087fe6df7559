"""Rates and relevance of click logs: worked examples, plain loops, and what is refused."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from click_logs import cells_log, random_log, rows_of
from scipy.stats import chi2, gamma

import fastrank as fr
from fastrank.clicks import ClickLog, ctr, evaluate, relevance, session_metrics

Z = 1.959963984540054
SEED = [("A", 1, 1000, 100), ("B", 2, 1000, 35)]


# --- rates ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["position", "doc", "query", "pair", "all"])
def test_rates_are_clicks_over_impressions(by: str) -> None:
    log = random_log(0, weighted=True, gaps=True)
    counts: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for row in rows_of(log):
        key = {
            "position": row["position"] - 1,
            "doc": int(log.pair_doc[row["pair"]]),
            "query": row["query"],
            "pair": row["pair"],
            "all": 0,
        }[by]
        counts[key][0] += row["weight"]
        counts[key][1] += row["weight"] * row["click"]
    found = ctr(log, by)
    assert {i: [found.n[i], found.clicks[i]] for i in range(len(found.n)) if found.n[i]} == {i: v for i, v in counts.items() if v[0]}
    shown = found.n > 0
    p, n = found.value[shown], found.n[shown]
    assert p.tolist() == (found.clicks[shown] / n).tolist()
    # Both ends of Wilson's interval solve (p - x)² = z² x (1 - x) / n.
    for end in (found.lo[shown], found.hi[shown]):
        assert (p - end) ** 2 == pytest.approx(Z * Z * end * (1 - end) / n, abs=1e-12)
    assert found.se[shown] == pytest.approx(np.sqrt(p * (1 - p) / n))
    assert all(len(column) == len(found.n) for column in found.keys.values())


def test_what_was_never_shown_has_no_rate() -> None:
    found = ctr(ClickLog([0, 1], ["a"], [1], position=[3]))
    assert found.n.tolist() == [0, 0, 1]
    assert np.isnan(found.value).tolist() == np.isnan(found.lo).tolist() == np.isnan(found.hi).tolist() == [True, True, False]
    assert (found.value[2], found.hi[2]) == (1, 1)


def test_the_seed_example_over_examination() -> None:
    found = ctr(cells_log(SEED), "doc")
    assert (found.lo[0], found.hi[0]) == pytest.approx((0.0829, 0.1202), abs=5e-5)
    assert (found.lo[1] / 0.35, found.hi[1] / 0.35) == pytest.approx((0.0722, 0.1380), abs=5e-5)


def test_rates_by_query_need_queries() -> None:
    with pytest.raises(fr.InputError, match="by='query' needs to know the query"):
        ctr(ClickLog([0, 1], ["a"], [1]), "query")
    with pytest.raises(fr.InputError, match="by must be"):
        ctr(ClickLog([0, 1], ["a"], [1]), "docs")


def test_what_the_clicks_of_each_session_say() -> None:
    log = random_log(1, gaps=True)
    found = session_metrics(log, k=3)
    for s in range(log.n_sessions):
        ranks = [row["position"] for row in rows_of(log) if row["session"] == s and row["click"]]
        expected = {
            "any_click": float(bool(ranks)),
            "n_clicks": len(ranks),
            "first_click_rank": min(ranks, default=math.nan),
            "last_click_rank": max(ranks, default=math.nan),
            "rr_first": 1 / min(ranks) if ranks else 0.0,
            "clicks@3": sum(rank <= 3 for rank in ranks),
            "abandonment": float(not ranks),
        }
        assert {name: column[s] for name, column in found.items()} == pytest.approx(expected, nan_ok=True)
    with pytest.raises(fr.InputError, match="k must be a whole number from 1 up"):
        session_metrics(log, 0)


# --- relevance ----------------------------------------------------------------------------------------------------------------------


def test_equal_points_and_unequal_certainty() -> None:
    found = relevance(cells_log(SEED), [1, 0.35])
    assert found.value == pytest.approx([0.1, 0.1], abs=1e-12)
    assert found.se == pytest.approx([math.sqrt(0.1 * 0.9 / 1000), math.sqrt(0.035 * 0.965 / 1000) / 0.35], rel=1e-9)
    pooled = relevance(cells_log([("A", 1, 1000, 100), ("A", 2, 1000, 35)]), [1, 0.35])
    assert pooled.value.tolist() == pytest.approx([135 / 1350])


def test_relevance_is_the_sum_of_clicks_over_the_sum_of_exposures() -> None:
    log = random_log(2, weighted=True)
    theta = 1 / np.arange(1, 7) ** 0.7
    clicks, exposure = np.zeros(log.n_pairs), np.zeros(log.n_pairs)
    for row in rows_of(log):
        clicks[row["pair"]] += row["weight"] * row["click"]
        exposure[row["pair"]] += row["weight"] * theta[row["position"] - 1]
    found = relevance(log, theta)
    shown = exposure > 0
    assert found.clicks == pytest.approx(clicks)
    assert found.exposure == pytest.approx(exposure)
    assert found.value[shown] == pytest.approx(clicks[shown] / exposure[shown])
    some = shown & (clicks > 0)
    assert found.lo[some] == pytest.approx(chi2.ppf(0.025, 2 * clicks[some]) / 2 / exposure[some])
    assert found.hi[shown] == pytest.approx(chi2.ppf(0.975, 2 * clicks[shown] + 2) / 2 / exposure[shown])
    assert (found.lo[shown & (clicks == 0)] == 0).all()
    assert np.isnan(found.value[~shown]).all()
    assert np.isnan(found.hi[~shown]).all()
    assert found.n_above_one == np.count_nonzero(found.value > 1) > 0
    assert found.notes[0].kind == "above_one"
    a, b = 2.0, 20.0
    with_prior = relevance(log, theta, prior=(a, b), level=0.9)
    assert with_prior.value == pytest.approx((clicks + a) / (exposure + b))
    assert with_prior.lo == pytest.approx(gamma.ppf(0.05, clicks + a, scale=1 / (exposure + b)))
    assert with_prior.hi == pytest.approx(gamma.ppf(0.95, clicks + a, scale=1 / (exposure + b)))


def test_no_click_has_the_upper_limit_of_a_count_of_0() -> None:
    found = relevance(cells_log([("a", 1, 10, 0)]), [0.5])
    assert (found.value[0], found.lo[0]) == (0, 0)
    assert found.hi[0] == pytest.approx(3.689 / 5, rel=1e-3)


def test_trust_takes_the_clicks_on_nothing_away() -> None:
    log = cells_log([("a", 1, 1000, 720), ("b", 1, 1000, 600)])
    found = relevance(log, [0.35], beta=[0.65])
    assert found.value == pytest.approx([(720 - 650) / 350, (600 - 650) / 350])
    assert (found.lo < found.value).all()
    assert (found.value < found.hi).all()


def test_positions_nobody_looks_at_leave_no_number() -> None:
    log = cells_log([("a", 1, 10, 2), ("b", 2, 10, 0), ("a", 3, 5, 0)])
    found = relevance(log, [1, 0, math.nan])
    assert found.exposure.tolist() == [10, 0]
    assert math.isnan(found.value[1])
    assert math.isnan(found.se[1])
    assert {note.kind for note in found.notes} == {"not_exposed", "no_propensity"}


THETA_ERRORS = {
    "0 where there are clicks": ([1, 0], "theta must be above 0 where there are clicks: at position 2, which has 4, it is 0"),
    "NaN where there are clicks": ([1, math.nan], "theta must be above 0 where there are clicks: at position 2"),
    "null where there are clicks": ([1, None], "theta must be above 0 where there are clicks: at position 2"),
    "too short": ([1], r"theta has 1 positions, and the log shows documents down to position 2.*extend=True"),
    "empty": ([], "theta has 0 positions"),
    "below 0": ([1, -0.1], "theta must be a number from 0 up at every position: at position 2 it is -0.1"),
    "infinite": ([1, math.inf], "theta must be a number from 0 up"),
    "two dimensions": ([[1, 1]], "theta must have one number per position"),
    "text": (["1", "2"], "theta must be numbers"),
}


@pytest.mark.parametrize("name", THETA_ERRORS)
def test_propensities_that_cannot_be_divided_by_are_named(name: str) -> None:
    log = cells_log([("a", 1, 10, 2), ("b", 2, 10, 4)])
    theta, message = THETA_ERRORS[name]
    with pytest.raises(fr.InputError, match=message):
        relevance(log, theta)
    with pytest.raises(fr.InputError, match=message):
        evaluate(log, theta, log.position)


def test_the_last_propensity_goes_on_where_asked() -> None:
    log = cells_log([("a", 1, 10, 2), ("b", 4, 10, 4)])
    assert relevance(log, [1, 0.5], extend=True).exposure.tolist() == [10, 5]


@pytest.mark.parametrize("prior", [(1,), (1, -1), (math.nan, 1), 3, ("a", "b")])
def test_a_prior_is_two_numbers(prior: Any) -> None:
    with pytest.raises(fr.InputError, match=r"prior must be .clicks, exposure."):
        relevance(random_log(0), np.ones(6), prior=prior)

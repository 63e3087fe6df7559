"""Position propensities: worked values, the maximum and its spread against plain loops, what is refused, and recovery."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click_logs import cells_log, random_log, rows_of, shown_in_two_orders
from scipy.optimize import minimize

import fastrank as fr
from fastrank.clicks import ClickLog, Propensity, propensity, swap_sample, swap_strata

SWAP = [("x", 1, 10_000, 1_000), ("y", 3, 10_000, 350)]


def sessions(lists: list[tuple[str, str]], **options: Any) -> ClickLog:
    """Sessions as (documents, clicks), a letter and a digit each."""
    offsets = np.append(0, np.cumsum([len(docs) for docs, _ in lists]))
    return ClickLog(offsets, list("".join(docs for docs, _ in lists)), [int(c) for _, clicks in lists for c in clicks], **options)


# --- worked values ----------------------------------------------------------------------------------------------------------------


def test_a_swap_is_the_ratio_of_rates_with_the_delta_interval() -> None:
    found = propensity(cells_log(SWAP), "all")
    se = math.sqrt(0.9 / 1000 + 0.965 / 350)
    assert found.theta[2] == pytest.approx(0.35, abs=1e-12)
    assert found.se_log[2] == pytest.approx(se, abs=1e-12)
    z = 1.959963984540054
    assert (found.lo[2], found.hi[2]) == pytest.approx((0.35 * math.exp(-z * se), 0.35 * math.exp(z * se)), rel=1e-12)
    assert (found.theta[0], found.lo[0], found.hi[0]) == (1, 1, 1)
    assert found.connected.tolist() == [True, False, True]
    assert found.n_clicks.tolist() == [1000, 0, 350]
    assert math.isnan(found.theta[1])
    assert found.eta == pytest.approx(-math.log(0.35) / math.log(3))


def test_harvesting_two_documents_is_the_mantel_haenszel_ratio() -> None:
    log = cells_log([("x", 1, 100, 20), ("x", 2, 100, 10), ("y", 1, 50, 5), ("y", 2, 200, 10)])
    assert propensity(log).theta.tolist() == pytest.approx([1, 0.5], abs=1e-12)


def test_a_shuffled_top_is_the_ratio_of_click_through_rates() -> None:
    rates = [0.3, 0.2, 0.11, 0.05]
    log = cells_log([("any", k, 1000, round(1000 * p)) for k, p in enumerate(rates, 1)])
    assert propensity(log, "all").theta == pytest.approx(np.array(rates) / rates[0], abs=1e-12)


def test_adjacent_swaps_are_the_product_of_ratios() -> None:
    # Pair (k, k + 1) of its own documents: clicks at either position, of 1,000 each.
    clicks = [(200, 150), (120, 90), (80, 20)]
    cells = [(f"{k}", k + side, 1000, both[side]) for k, both in enumerate(clicks, 1) for side in (0, 1)]
    found = propensity(cells_log(cells))
    assert found.theta == pytest.approx(np.cumprod([1, 150 / 200, 90 / 120, 20 / 80]), rel=1e-11)
    assert found.se_log[1:] ** 2 == pytest.approx(np.cumsum([(1 - c / 1000) / c + (1 - d / 1000) / d for c, d in clicks]), rel=1e-2)


def test_the_size_of_an_experiment() -> None:
    needed = swap_sample(0.1)
    assert needed.clicks == math.ceil(2 * (1.959963984540054 / 0.1) ** 2) == 769
    assert needed.clicks_at_k == math.ceil((1.959963984540054 / 0.1) ** 2) == 385
    assert math.isnan(needed.sessions)
    n = swap_sample(0.1, (0.2, 0.05)).sessions
    reached = propensity(cells_log([("x", 1, int(n), round(n * 0.2)), ("x", 2, int(n), round(n * 0.05))])).se_log[1]
    assert 1.959963984540054 * reached == pytest.approx(0.1, rel=1e-2)
    with pytest.raises(fr.InputError, match="half_width must be a number above 0"):
        swap_sample(0)
    with pytest.raises(fr.InputError, match="rates must be two click-through rates"):
        swap_sample(0.1, (0.1, 0))
    with pytest.raises(fr.InputError, match="level must lie strictly between 0 and 1"):
        swap_sample(0.1, level=1)


# --- the maximum and its spread, by plain loops -------------------------------------------------------------------------------------


def strata_of(log: ClickLog, group: np.ndarray) -> dict[int, tuple[dict[int, float], dict[int, float]]]:
    """Impressions and clicks by position, of each stratum that says something."""
    cells: dict[int, tuple[dict[int, float], dict[int, float]]] = defaultdict(lambda: (defaultdict(float), defaultdict(float)))
    for row in rows_of(log):
        g = int(group[row["row"]])
        cells[g][0][row["position"]] += row["weight"]
        cells[g][1][row["position"]] += row["weight"] * row["click"]
    return {g: (n, c) for g, (n, c) in cells.items() if sum(size > 0 for size in n.values()) > 1 and sum(c.values()) > 0}


def minus_likelihood(log_theta: np.ndarray, strata: dict[int, Any]) -> float:
    theta = np.exp(np.append(0, log_theta))
    total = 0.0
    for n, c in strata.values():
        exposed = sum(size * theta[k - 1] for k, size in n.items())
        total -= sum(clicks * math.log(n[k] * theta[k - 1] / exposed) for k, clicks in c.items() if clicks)
    return total


def sandwich(log: ClickLog, group: np.ndarray, strata: dict[int, Any], theta: np.ndarray) -> np.ndarray:
    """Covariance of log theta as the documentation has it, one cluster and stratum after the other."""
    size = len(theta)
    share, rate, total, curvature = {}, {}, {}, np.zeros((size, size))
    for g, (n, c) in strata.items():
        w = np.array([n.get(k, 0.0) * theta[k - 1] for k in range(1, size + 1)])
        total[g], clicked = w.sum(), sum(c.values())
        share[g], rate[g] = w / w.sum(), clicked / w.sum()
        curvature += clicked * (np.diag(share[g]) - np.outer(share[g], share[g]))
    held: dict[int, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(log):
        if int(group[row["row"]]) in strata:
            held[row["cluster"]][int(group[row["row"]])].append(row)
    squares = np.zeros((size, size))
    for of_cluster in held.values():
        score, scale = np.zeros(size), 1.0
        for g, rows in of_cluster.items():
            times = [row["weight"] if log.cluster is not None else 1.0 for row in rows]
            scale = 1.0 if log.cluster is not None else rows[0]["weight"]
            clicks = sum(t * row["click"] for t, row in zip(times, rows, strict=True))
            exposed = np.zeros(size)
            for t, row in zip(times, rows, strict=True):
                exposed[row["position"] - 1] += t * theta[row["position"] - 1]
                score[row["position"] - 1] += t * row["click"]
            gap, part = clicks - rate[g] * exposed.sum(), exposed.sum() / total[g]
            gap = 0.0 if part > 1 - 1e-9 else gap / math.sqrt(1 - part) if part > 0.01 else gap
            if exposed.sum() > 0:
                score += exposed / exposed.sum() * (gap - clicks) - gap * share[g]
        squares += scale * np.outer(score, score)
    inverse = np.linalg.inv(curvature[1:, 1:])
    return inverse @ squares[1:, 1:] @ inverse


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("clustered", [False, True])
@pytest.mark.parametrize("strata", ["doc", "all", "numbers"])
def test_the_maximum_and_its_sandwich_are_those_of_plain_loops(weighted: bool, clustered: bool, strata: str) -> None:
    log = random_log(4, 150, longest=4, n_docs=5, weighted=weighted, clustered=clustered)
    group = {"doc": log.qd, "all": np.zeros(log.n_rows, int), "numbers": 7 * (log.qd % 3) - 5}[strata]
    found = propensity(log, strata if strata != "numbers" else group)
    assert found.connected.all()
    plain = strata_of(log, group)
    assert found.n_strata == len(plain)
    best = minimize(minus_likelihood, np.zeros(log.n_positions - 1), (plain,), method="BFGS", options={"gtol": 1e-9})
    assert np.log(found.theta[1:]) == pytest.approx(best.x, abs=1e-6)
    assert found.log_likelihood == pytest.approx(-best.fun, rel=1e-12)
    assert found.cov_log == pytest.approx(sandwich(log, group, plain, found.theta), rel=1e-9)


def test_a_cluster_that_holds_all_of_every_stratum_has_the_plain_score() -> None:
    log = random_log(4, 150, longest=4, n_docs=5)
    by_query = ClickLog(log.offsets, log.pair_doc[log.qd], log.click, log.query, cluster=log.query)
    found = propensity(by_query)
    scores: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(4))
    curvature = np.zeros((4, 4))
    for g, (n, c) in strata_of(log, log.qd).items():
        w = np.array([n.get(k, 0.0) * found.theta[k - 1] for k in range(1, 5)])
        w /= w.sum()
        curvature += sum(c.values()) * (np.diag(w) - np.outer(w, w))
        scores[int(log.pair_query[g])] += [c.get(k, 0.0) - sum(c.values()) * w[k - 1] for k in range(1, 5)]
    squares = np.array(sum(np.outer(score, score) for score in scores.values()))
    inverse = np.linalg.inv(curvature[1:, 1:])
    assert found.n_clusters == 4
    assert found.cov_log == pytest.approx(inverse @ squares[1:, 1:] @ inverse, rel=1e-8, abs=1e-12)


def test_a_weight_is_so_many_sessions() -> None:
    log = random_log(5, 120, longest=4, n_docs=5, weighted=True)
    times = log.weights.astype(int)
    which = np.repeat(np.arange(log.n_sessions), times)
    rows = np.concatenate([np.arange(log.offsets[s], log.offsets[s + 1]) for s in which])
    offsets = np.append(0, np.cumsum(np.diff(log.offsets)[which]))
    again = ClickLog(offsets, log.pair_doc[log.qd][rows], log.click[rows], log.query[which])
    one, other = propensity(log), propensity(again)
    assert one.theta == pytest.approx(other.theta, rel=1e-11)
    assert one.se_log == pytest.approx(other.se_log, rel=1e-9)


def test_the_anchor_changes_the_scale_alone() -> None:
    log = random_log(6, 200, longest=4, n_docs=5)
    first, third = propensity(log), propensity(log, anchor=3)
    assert third.theta == pytest.approx(first.theta / first.theta[2], rel=1e-10)
    assert third.theta[2] == 1
    assert third.se_log[0] == pytest.approx(first.se_log[2], rel=1e-8)


def test_any_number_of_threads_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrank.clicks.blocks.BLOCK", 1 << 8)
    monkeypatch.setattr("fastrank.clicks.cells.BLOCK", 1 << 8)
    _, log = shown_in_two_orders(0, 2000, 40)
    log = ClickLog(log.offsets, log.pair_doc[log.qd], log.click, log.query, cluster=np.arange(2000) % 300)
    group = log.qd.astype(np.int64)
    results = [propensity(log, group, threads=threads) for threads in (1, 2, 8)]
    for other in results[1:]:
        assert other.to_json() == results[0].to_json()
        assert other.cov_log.tobytes() == results[0].cov_log.tobytes()


def test_eta_is_the_exponent_of_a_power_of_the_rank() -> None:
    log = cells_log([("x", k, 1000, round(1000 * 0.5 * k**-0.5)) for k in (1, 4)])
    found = propensity(log)
    assert found.eta == pytest.approx(0.5, abs=1e-9)
    assert found.eta_se == pytest.approx(found.se_log[3] / math.log(4))


def test_steps_that_overshoot_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrank.clicks.curve_fitting.MM_STEPS", 0)
    found = propensity(cells_log([("x", 1, 2000, 1), ("x", 2, 2, 1)]))
    assert found.theta[1] == pytest.approx(1000, rel=1e-9)
    assert found.n_steps > 5


# --- positions that cannot be known ---------------------------------------------------------------------------------------------


def test_a_position_that_shares_no_stratum_with_the_anchor_is_nan() -> None:
    log = cells_log([("x", 1, 10, 5), ("x", 2, 10, 3), ("y", 3, 10, 5), ("y", 4, 10, 3)])
    found = propensity(log)
    assert found.connected.tolist() == [True, True, False, False]
    assert np.isnan(found.theta).tolist() == np.isnan(found.lo).tolist() == [False, False, True, True]
    assert np.isnan(found.cov_log[1:]).all()
    assert "positions 3, 4 are not tied to the anchor" in found.notes[0].message


def test_a_position_without_a_click_is_nan_and_not_0() -> None:
    found = propensity(cells_log([("x", 1, 10, 5), ("x", 2, 10, 0)]))
    assert found.connected.tolist() == [True, False]
    assert math.isnan(found.theta[1])
    assert math.isnan(found.eta)
    assert "position 2 is not tied to the anchor" in found.notes[0].message


def test_odds_that_run_off_to_infinity_are_nan() -> None:
    # Nothing at 2 was clicked where 1 is shown, though 2 and 3 are tied to each other.
    found = propensity(cells_log([("x", 1, 10, 5), ("x", 2, 10, 0), ("y", 2, 10, 4), ("y", 3, 10, 3)]))
    assert found.connected.tolist() == [True, False, False]


def test_positions_off_the_chain_do_not_move_the_others() -> None:
    tied = [("x", 1, 100, 50), ("x", 2, 100, 20), ("y", 1, 100, 30), ("y", 2, 200, 33)]
    loose = [("x", 3, 100, 0), ("z", 4, 10, 2), ("z", 5, 10, 2)]
    assert propensity(cells_log(tied + loose)).theta[:2] == pytest.approx(propensity(cells_log(tied)).theta, rel=1e-10)


def test_an_anchor_without_clicks_is_an_error() -> None:
    log = cells_log([("x", 1, 10, 0), ("x", 2, 10, 4), ("y", 2, 10, 4), ("y", 3, 10, 4)])
    with pytest.raises(fr.InputError, match=r"position 1 has no click in the rows that enter.*anchor="):
        propensity(log)
    assert propensity(log, anchor=2).connected.tolist() == [False, True, True]


def test_documents_seen_at_one_position_are_counted_and_not_used() -> None:
    base = [("x", 1, 100, 50), ("x", 2, 100, 20)]
    found = propensity(cells_log([*base, ("y", 1, 100, 30)]))
    assert found.theta[1] == pytest.approx(0.4)
    assert found.n_clicks.tolist() == [50, 20]
    assert [note.kind for note in found.notes] == ["unused_clicks"]
    assert "30 of 100 clicks say nothing" in found.notes[0].message


def test_few_clusters_are_told() -> None:
    log = cells_log([("x", 1, 100, 50), ("x", 2, 100, 20)], cluster=[i % 7 for i in range(200)])
    found = propensity(log)
    assert found.n_clusters == 7
    assert [note.kind for note in found.notes] == ["few_clusters"]


# --- experiments --------------------------------------------------------------------------------------------------------------------


def test_only_rows_at_the_swapped_positions_of_randomised_sessions_enter() -> None:
    log = sessions([("abc", "100"), ("cba", "001"), ("abc", "010"), ("abc", "100")])
    found = swap_strata(log, [[1, 3], [3, 1], [2, 3], [0, 0]])
    assert found.rows.tolist() == [True, False, True, True, False, True, False, True, True, False, False, False]
    strata = found.strata[found.rows].tolist()
    assert strata[0] == strata[1] == strata[2] == strata[3] != strata[4] == strata[5]


def test_swaps_of_pairs_of_positions_measure_the_truth() -> None:
    generator = np.random.default_rng(1)
    n, theta = 40_000, np.array([1.0, 0.6, 0.4, 0.2])
    relevant = np.array([0.6, 0.4, 0.3, 0.2])
    first = generator.integers(1, 4, n)
    docs = np.tile(np.arange(4), (n, 1))
    swapped = np.flatnonzero(generator.random(n) < 0.5)
    a, b = first[swapped] - 1, first[swapped]
    docs[swapped, a], docs[swapped, b] = docs[swapped, b], docs[swapped, a].copy()
    click = generator.random((n, 4)) < relevant[docs] * theta
    log = ClickLog(np.arange(n + 1) * 4, docs.ravel(), click.ravel())
    found = propensity(log, *swap_strata(log, np.stack([first, first + 1], axis=1)))
    assert (np.abs(np.log(found.theta[1:] / theta[1:])) < 4 * found.se_log[1:]).all()
    naive = click.mean(axis=0) / click.mean(axis=0)[0]
    assert np.abs(naive[3] / theta[3] - 1) > 0.3


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ([[1, 2]], r"pair must have two positions per session, shape \(2, 2\)"),
        ([[1, 1], [0, 0]], r"pair must name two positions from 1 up, or 0, 0: pair\[0\] is \[1, 1\]"),
        ([[0, 0], [0, 2]], r"pair must name two positions.*pair\[1\]"),
        ([[-1, 2], [0, 0]], r"pair must name two positions"),
        ([[1, 2], [1, 3]], r"pair must name positions that its session shows: pair\[1\] is \[1, 3\]"),
        ([[1, 2.5], [0, 0]], "pair must be whole numbers"),
    ],
)
def test_pairs_that_cannot_be_are_refused(pair: Any, message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        swap_strata(sessions([("ab", "10"), ("ab", "00")]), pair)


# --- segments and arguments -----------------------------------------------------------------------------------------------------------


def test_each_segment_has_the_curve_of_its_sessions_alone() -> None:
    log = random_log(8, 300, longest=4, n_docs=5)
    device = np.where(np.arange(300) % 3 == 0, "phone", "desk")
    columns = {"device": pa.array(device)}
    named = ClickLog(log.offsets, log.pair_doc[log.qd], log.click, log.query, columns=columns)
    found = propensity(named, segment="device")
    assert set(found.segments) == {"phone", "desk"}
    assert found.theta == pytest.approx(propensity(log).theta)
    for value, part in found.segments.items():
        rows = np.repeat(device == value, np.diff(log.offsets))
        assert part.theta == pytest.approx(propensity(log, rows=rows).theta, rel=1e-11)
    assert propensity(log, segment=device).segments["phone"].theta == pytest.approx(found.segments["phone"].theta)
    again = Propensity.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert repr(again) == repr(found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strata": "query"}, "strata must be 'doc', 'all' or a number per document shown"),
        ({"strata": [1]}, "strata must have one entry per document shown"),
        ({"rows": [1, 0, 1, 1]}, "rows must be true or false"),
        ({"rows": [True]}, "rows must have one entry per document shown"),
        ({"segment": "device"}, "segment must name a column of the log .it has none., not 'device'. Read it with columns="),
        ({"anchor": 0}, "anchor must be a position from 1 to 2"),
        ({"anchor": 3}, "anchor must be a position from 1 to 2"),
        ({"anchor": True}, "anchor must be a position"),
        ({"level": 95}, "level must lie strictly between 0 and 1"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        propensity(sessions([("ab", "10"), ("ba", "10")]), **options)


def test_an_unknown_segment_lists_the_columns() -> None:
    log = ClickLog([0, 1], ["a"], [1], columns={"ranker": ["new"]})
    with pytest.raises(fr.InputError, match="it has 'ranker'"):
        propensity(log, segment="device")


@pytest.mark.parametrize("level", [1e-300, 1 - 1e-16])
def test_a_level_that_rounds_away_gives_an_interval_all_the_same(level: float) -> None:
    found = propensity(sessions([("ab", "10"), ("ba", "10"), ("ab", "01")]), level=level)
    assert np.isfinite(found.lo).all()
    assert np.isfinite(found.hi).all()
    assert (found.lo <= found.theta).all()
    assert (found.theta <= found.hi).all()


def test_an_empty_log_says_nothing_about_positions() -> None:
    with pytest.raises(fr.InputError, match="the log shows no document"):
        propensity(ClickLog([0, 0], [], []))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"theta": 1}', "null", "[" * 100_000])
def test_json_of_something_else_is_refused(text: str) -> None:
    with pytest.raises(fr.InputError, match=r"not what Propensity.to_json writes"):
        Propensity.from_json(text)


def test_one_position_alone_is_the_anchor() -> None:
    found = propensity(ClickLog([0, 1], ["a"], [1]))
    assert found.theta.tolist() == [1.0]
    assert found.cov_log.shape == (0, 0)
    assert Propensity.from_json(found.to_json()).to_json() == found.to_json()


# --- recovery -------------------------------------------------------------------------------------------------------------------------


def test_harvesting_recovers_what_raw_rates_miss() -> None:
    theta, log = shown_in_two_orders(0)
    found = propensity(log)
    assert (np.abs(np.log(found.theta[1:] / theta[1:])) < 4 * found.se_log[1:]).all()
    raw = fr.clicks.ctr(log).value
    assert raw[-1] / raw[0] / theta[-1] < 0.8


@pytest.mark.slow
def test_intervals_cover_the_truth() -> None:
    hits = []
    for seed in range(80):
        theta, log = shown_in_two_orders(100 + seed, 4000, 1000)
        found = propensity(log)
        hits.append((found.lo <= theta) & (theta <= found.hi))
    share = np.mean(np.array(hits)[:, 1:])
    # 320 draws, in clumps of 4: three standard errors of 0.95 are 0.05.
    assert 0.90 < share < 0.99

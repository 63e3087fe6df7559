"""Counterfactual values: plain loops, worked examples, what is refused, and recovery."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from click_logs import cells_log, random_log, rows_of, shown_in_two_orders

import fastrank as fr
from fastrank.clicks import ClickLog, evaluate, propensity, rank_in

Z = 1.959963984540054


# --- values, by plain loops -----------------------------------------------------------------------------------------------------------

GAINS = {
    "dcg": lambda rank, k: 1 / math.log2(1 + rank),
    "recall": lambda rank, k: 1.0,
    "precision": lambda rank, k: 1 / k,
    "rr_sum": lambda rank, k: 1 / rank,
}


def gain(metric: str, rank: int, k: int) -> float:
    """Down to rank k; reciprocal ranks of every rank."""
    return GAINS[metric](rank, k) if rank > 0 and (rank <= k or metric == "rr_sum") else 0.0


def plain_values(log: ClickLog, theta: np.ndarray, new: np.ndarray, metric: str, k: int, **how: Any) -> dict[str, Any]:
    """Estimates as the documentation has them, row after row."""
    rows = rows_of(log)
    beta, guess, weight = how.get("beta", np.zeros(len(theta))), how.get("rhat"), how.get("weight")
    shown, mean_gain = defaultdict(float), defaultdict(float)
    for row in rows:
        mean_gain[row["pair"]] += row["weight"] * gain(metric, row["position"], k)
        shown[row["pair"]] += row["weight"] * theta[row["position"] - 1]
    sessions = np.bincount(log.query, log.weights)
    x, y, w = np.zeros(log.n_sessions), np.zeros(log.n_sessions), np.zeros(log.n_sessions)
    for row in rows:
        i, at, pair = row["row"], row["position"] - 1, row["pair"]
        exposure = shown[pair] / sessions[row["query"]] if how.get("exposure") == "policy" else theta[at]
        value = row["click"] - beta[at] - (0.0 if guess is None else theta[at] * guess[pair])
        if value:
            value *= (1.0 if weight is None else weight[i]) / max(exposure, how.get("clip", 0.0))
        s = row["session"]
        policy = how.get("exposure") == "policy"
        logged_gain = mean_gain[pair] / sessions[row["query"]] if policy and value else gain(metric, row["position"], k)
        x[s] += gain(metric, int(new[i]), k) * value
        y[s] += logged_gain * value
        w[s] += value
        if guess is not None and not policy:
            y[s] += gain(metric, row["position"], k) * guess[pair]
    if guess is not None:
        rank = dict(zip(log.qd.tolist(), new.tolist(), strict=True))
        for s in range(log.n_sessions):
            pairs = np.flatnonzero(log.pair_query == log.query[s])
            x[s] += sum(gain(metric, rank[p], k) * guess[p] for p in pairs.tolist())
            if how.get("exposure") == "policy" and sessions[log.query[s]]:
                y[s] += sum(mean_gain[p] / sessions[log.query[s]] * guess[p] for p in pairs.tolist())
    m = log.weights
    bottom = float(m @ w) if how.get("estimator") == "snips" else float(m.sum())
    found: dict[str, Any] = {"per_session": x}
    for name, column in (("value", x), ("logged", y), ("diff", x - y)):
        value = float(m @ column) / bottom
        left = column - value * (w if how.get("estimator") == "snips" else 1.0)
        if log.cluster is None:
            variance = m.sum() / (m.sum() - 1) * float(m @ left**2)
        else:
            sums = np.array([float((m * left)[log.cluster == u].sum()) for u in np.unique(log.cluster)])
            variance = len(sums) / (len(sums) - 1) * float(sums @ sums)
        found |= {name: value, f"{name}_se": math.sqrt(variance) / abs(bottom)}
    return found


def same_ranks(log: ClickLog, seed: int = 0) -> np.ndarray:
    """A new rank for each pair, some 0."""
    return np.random.default_rng(seed).integers(0, 8, log.n_pairs)[log.qd]


HOWS: dict[str, dict[str, Any]] = {
    "ips": {},
    "clipped": {"clip": 0.4},
    "snips": {"estimator": "snips"},
    "policy": {"exposure": "policy"},
    "policy, clipped, snips": {"exposure": "policy", "clip": 0.2, "estimator": "snips"},
    "affine": {"beta": 0.05 * np.ones(6)},
    "dr": {"estimator": "dr", "exposure": "policy", "rhat": 0.3},
    "dr, clipped": {"estimator": "dr", "clip": 0.4, "rhat": 0.3},
    "weighed rows": {"weight": 1.0},
    "weighed rows, dr": {"weight": 1.0, "estimator": "dr", "exposure": "policy", "rhat": 0.3},
}


@pytest.mark.parametrize("metric", list(GAINS))
@pytest.mark.parametrize("name", HOWS)
def test_values_and_intervals_are_those_of_plain_loops(name: str, metric: str) -> None:
    for clustered, weighted in ((False, False), (True, True), (False, True)):
        log = random_log(3, 80, clustered=clustered, weighted=weighted)
        how = dict(HOWS[name])
        generator = np.random.default_rng(7)
        if "rhat" in how:
            how["rhat"] = generator.random(log.n_pairs)
        if "weight" in how:
            how["weight"] = generator.random(log.n_rows)
        theta, new = 1 / np.arange(1, 7) ** 0.8, same_ranks(log)
        expected = plain_values(log, theta, new, metric, 4, **how)
        found = evaluate(log, theta, new, metric, 4, **how)
        assert found.per_session == pytest.approx(expected["per_session"], abs=1e-12)
        assert (found.value, found.logged, found.diff) == pytest.approx(tuple(expected[n] for n in ("value", "logged", "diff")), abs=1e-11)
        assert found.hi - found.value == pytest.approx(Z * expected["value_se"], rel=1e-9)
        assert found.diff_hi - found.diff == pytest.approx(Z * expected["diff_se"], rel=1e-9)
        assert found.diff - found.diff_lo == pytest.approx(found.diff_hi - found.diff)


@pytest.mark.parametrize("name", [name for name in HOWS if name != "affine"])
def test_the_interval_carries_what_is_not_known_of_the_propensities(name: str) -> None:
    log = random_log(4, 150, longest=4, n_docs=5, weighted=True)
    known = propensity(log)
    how = dict(HOWS[name])
    if "rhat" in how:
        how["rhat"] = np.random.default_rng(7).random(log.n_pairs)
    if "weight" in how:
        how["weight"] = np.random.default_rng(7).random(log.n_rows)
    new = same_ranks(log)
    found, fixed = (evaluate(log, theta, new, k=3, **how) for theta in (known, known.theta))
    slopes = []
    for k in range(1, log.n_positions):
        step = np.where(np.arange(log.n_positions) == k, 1e-6, 0.0)
        up, down = (evaluate(log, known.theta * np.exp(sign * step), new, k=3, **how) for sign in (1, -1))
        slopes.append([(up.value - down.value) / 2e-6, (up.diff - down.diff) / 2e-6])
    for i, (low, high) in enumerate((("lo", "hi"), ("diff_lo", "diff_hi"))):
        slope = np.array(slopes)[:, i]
        more = [(getattr(each, high) - getattr(each, low)) / 2 / Z for each in (found, fixed)]
        assert more[0] ** 2 - more[1] ** 2 == pytest.approx(slope @ known.cov_log @ slope, rel=1e-4, abs=1e-12)


# --- values, worked ---------------------------------------------------------------------------------------------------------------------


def test_propensities_belong_to_the_logged_position() -> None:
    log = ClickLog([0, 3], list("abc"), [0, 0, 1])
    found = evaluate(log, [1, 1 / 2, 1 / 3], [2, 3, 1])
    assert found.value == pytest.approx(3.0, abs=1e-12)
    assert found.naive == 1.0


def test_the_effective_sample_of_weights_1_and_2() -> None:
    log = ClickLog([0, 2], ["a", "b"], [1, 1])
    found = evaluate(log, [1, 0.5], log.position)
    assert found.ess == pytest.approx(9 / 5)
    assert found.max_share == pytest.approx(2 / 3)


def test_trust_by_alpha_and_beta_has_the_mean_of_the_relevance() -> None:
    alpha, beta, clicks = 0.35, 0.65, 720
    log = cells_log([("a", 1, 1000, clicks)])
    found = evaluate(log, None, np.ones(1000, int), "recall", 1, alpha=[alpha], beta=[beta])
    assert found.value == pytest.approx((clicks / 1000 - beta) / alpha)
    single = [evaluate(ClickLog([0, 1], ["a"], [c]), None, [1], "recall", 1, alpha=[alpha], beta=[beta]).value for c in (1, 0)]
    assert single == pytest.approx([1.0, -0.65 / 0.35])
    assert len(found.sweep["strength"]) == 0
    assert math.isnan(found.crossover)


def test_doubly_robust_is_ips_where_one_list_was_always_shown() -> None:
    generator = np.random.default_rng(0)
    query = generator.integers(0, 5, 200)
    doc = (query[:, None] * 10 + np.arange(4)).ravel()
    log = ClickLog(np.arange(201) * 4, doc, generator.random(800) < 0.3, query)
    theta, new = 1 / np.arange(1, 5), same_ranks(log)
    ips = evaluate(log, theta, new)
    for how in ({"exposure": "policy"}, {"exposure": "row"}, {"rhat": generator.random(log.n_pairs)}):
        dr = evaluate(log, theta, new, estimator="dr", **how)
        assert (dr.value, dr.diff) == pytest.approx((ips.value, ips.diff), abs=1e-12)
        assert dr.per_session == pytest.approx(ips.per_session, abs=1e-11)
    assert evaluate(log, theta, new, exposure="policy").value == pytest.approx(ips.value, abs=1e-12)
    assert [note.kind for note in evaluate(log, theta, new, estimator="dr").notes] == ["clicked_missing", "only_a_guess"]


def test_recall_by_snips_times_what_is_relevant_is_ips() -> None:
    log = random_log(6)
    theta, new = 1 / np.arange(1, 7), same_ranks(log)
    snips, ips = (evaluate(log, theta, new, "recall", 3, how) for how in ("snips", "ips"))
    assert snips.value * ips.relevant_per_session == pytest.approx(ips.value)
    assert 0 < snips.value < 1


def test_policy_aware_exposure_values_what_was_sometimes_left_out() -> None:
    generator = np.random.default_rng(5)
    n, shown, n_docs = 20_000, 3, 6
    relevant = np.array([0.6, 0.5, 0.4, 0.3, 0.5, 0.4])
    theta = 1 / np.arange(1, shown + 1)
    docs = np.argsort(generator.random((n, n_docs)) - 0.5 * (np.arange(n_docs) < 3), axis=1)[:, :shown]
    log = ClickLog(np.arange(n + 1) * shown, docs.ravel(), (generator.random((n, shown)) < relevant[docs] * theta).ravel(), ["q"] * n)
    best = np.argsort(-relevant, kind="stable")
    placed = rank_in(log, [0, n_docs], best, ["q"], k=6)
    truth = sum(relevant[d] / math.log2(2 + r) for r, d in enumerate(best))
    policy, row = (evaluate(log, theta, placed, k=6, exposure=exposure) for exposure in ("policy", "row"))
    shown_value = float((relevant[docs] / np.log2(2 + np.arange(shown))).sum(axis=1).mean())
    assert policy.logged == pytest.approx(shown_value, rel=0.02)
    assert row.logged == pytest.approx(shown_value, rel=0.02)
    assert policy.diff_lo < truth - shown_value < policy.diff_hi
    assert policy.lo < truth < policy.hi
    assert row.hi < truth
    assert [note.kind for note in row.notes] == ["left_out"]
    assert policy.unsupported == 0


def test_the_sweep_raises_propensities_to_a_power_and_finds_where_the_sign_turns() -> None:
    log = ClickLog([0, 3, 6], list("abcabc"), [1, 0, 0, 0, 0, 1])
    theta, new = np.array([1, 1 / 2, 1 / 3]), [3, 2, 1, 3, 2, 1]
    found = evaluate(log, theta, new, sweep=(2, 0, 1, 1))
    assert found.sweep["strength"].tolist() == [0, 1, 2]
    # One click at 1 that falls to 3, one at 3 that rises to 1: (3^t - 1) (1 - 1 / log2 4) / 2.
    assert found.sweep["diff"] == pytest.approx([(3**t - 1) / 4 for t in (0, 1, 2)], abs=1e-12)
    for i, strength in enumerate((0, 1, 2)):
        again = evaluate(log, theta**strength, new, sweep=())
        assert found.sweep["value"][i] == pytest.approx(again.value)
        assert found.sweep["diff_lo"][i] == pytest.approx(again.diff_lo)
    assert math.isnan(found.crossover)
    # Now two at the top lose as much as c gains where 3^t = 2.
    more = ClickLog([0, 3, 6, 9], list("abcabcabc"), [1, 0, 0, 0, 0, 1, 1, 0, 0])
    for estimator in ("ips", "snips", "dr"):
        turned = evaluate(more, theta, [3, 2, 1] * 3, estimator=estimator, rhat=np.zeros(3) if estimator == "dr" else None)
        assert turned.crossover == pytest.approx(math.log(2) / math.log(3), abs=5e-5)
    assert "changes at 0.631 times the strength used. The new ranker leads above that" in evaluate(more, theta, [3, 2, 1] * 3).verdict


def test_clipping_is_counted_and_told() -> None:
    log = cells_log([("a", 1, 20, 10), ("b", 2, 20, 5)])
    found = evaluate(log, [1, 0.1], log.position, clip=0.5)
    assert found.clipped == 5
    assert found.clipped_mass == pytest.approx(1 - (10 + 5 * 2) / (10 + 5 * 10))
    assert found.notes[0].kind == "clipped"
    assert "5 clicks were clipped, which takes away 66.7%" in found.notes[0].message


def test_what_the_new_ranker_drops_is_counted() -> None:
    log = cells_log([("a", 1, 20, 10), ("b", 2, 20, 5)])
    found = evaluate(log, [1, 0.5], (log.qd == 0).astype(int))
    assert found.clicked_missing == pytest.approx(10 / 20)
    assert any("drops documents that hold 50.0% of the clicks' weight" in note.message for note in found.notes)


@pytest.mark.parametrize(
    ("clicks", "words"),
    [
        (([0, 1] * 60), "The new ranker is better on dcg@10 by ips.*holds for every strength"),
        (([1, 0] * 60), "The new ranker is worse on dcg@10 by ips.*holds for every strength"),
        (([1, 0, 0, 1] * 30), "The rankers are not told apart"),
        ([1, 0], "too few sessions to tell"),
    ],
)
def test_the_verdict_says_what_is_supported(clicks: list[int], words: str) -> None:
    n = len(clicks) // 2
    log = ClickLog(np.arange(n + 1) * 2, ["a", "b"] * n, clicks)
    assert re.search(words, evaluate(log, [1, 0.9], [2, 1] * n).verdict.replace("\n", " "))


def test_a_sign_that_is_sure_at_some_strengths_only_is_told() -> None:
    log = cells_log([("a", 1, 300, 90), ("b", 2, 300, 100)])
    found = evaluate(log, [1, 0.8], 3 - log.position)
    assert math.isnan(found.crossover)
    assert "the interval keeps off 0 at" in found.verdict


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_any_number_of_threads_gives_the_same_bits(estimator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrank.clicks.weighing.BLOCK", 64)
    log = random_log(9, 400, weighted=True, clustered=True)
    theta, new = propensity(log), same_ranks(log)
    one, two, eight = (
        evaluate(log, theta, new, estimator=estimator, exposure="policy", threads=threads).to_json() for threads in (1, 2, 8)
    )
    assert one == two == eight


def test_no_sessions_and_no_clicks_have_values() -> None:
    nothing = evaluate(ClickLog([0], [], []), [1], [])
    assert math.isnan(nothing.value)
    assert math.isnan(nothing.naive)
    silent = evaluate(ClickLog([0, 1, 1], ["a"], [0], ["p", "q"]), [1], [1])
    assert (silent.value, silent.diff, silent.ess) == (0, 0, 0)
    assert math.isnan(silent.max_share)
    assert math.isnan(evaluate(ClickLog([0, 1], ["a"], [0]), [1], [1], estimator="snips").value)


# --- refused ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "mrr"}, "mrr cannot be told from clicks: the rank of the first relevant document.*rr_sum"),
        ({"metric": "RR"}, "RR cannot be told from clicks"),
        ({"metric": "nDCG"}, "nDCG cannot be told from clicks: its ideal needs every relevant document"),
        ({"metric": "nDCG@10"}, "nDCG@10 cannot be told from clicks"),
        ({"metric": "map"}, "map cannot be told from clicks"),
        ({"metric": "err"}, "metric must be"),
        ({"k": 0}, "k must be a whole number"),
        ({"estimator": "dm"}, "estimator must be"),
        ({"exposure": "list"}, "exposure must be"),
        ({"exposure": "policy"}, "exposure='policy' is a mean over the sessions of a query, and the log has no queries"),
        ({"clip": 0}, "clip must be a propensity above 0"),
        ({"clip": "low"}, "clip must be a propensity above 0"),
        ({"theta": None}, "theta must be given, or alpha= and beta="),
        ({"theta": None, "alpha": [1, 0]}, "alpha must be above 0 wherever documents are shown: at position 2"),
        ({"theta": [1, 0], "beta": [0, 0]}, "theta must be above 0 wherever documents are shown"),
        ({"theta": [1, 0], "estimator": "dr"}, "theta must be above 0 wherever documents are shown"),
        ({"new_position": [1]}, "new_position must have one entry per document shown"),
        ({"new_position": [1, -1]}, "new_position must be a rank from 1 up, or 0 for none: row 1"),
        ({"new_position": [1, 1.5]}, "new_position must be whole numbers"),
        ({"weight": [1, 2, 3]}, "weight must have one entry per session, 1, or per document shown, 2"),
        ({"weight": [1, math.nan]}, r"weight must be finite and not negative: weight\[1\] is nan"),
        ({"estimator": "dr", "rhat": [0.1]}, "rhat must have one entry per pair"),
        ({"estimator": "dr", "rhat": [0.1, math.inf]}, r"rhat must be finite: rhat\[1\] is inf"),
        ({"sweep": (0, math.nan)}, "sweep must be finite strengths"),
        ({"level": 1.0}, "level must lie strictly between 0 and 1"),
    ],
)
def test_arguments_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    log = ClickLog([0, 2], ["a", "b"], [1, 0])
    with pytest.raises(fr.InputError, match=message) as error:
        evaluate(log, **{"theta": [1, 0.5], "new_position": [2, 1]} | options)
    assert "\n" not in str(error.value)


def test_a_weight_per_session_is_that_of_its_rows() -> None:
    log = random_log(3)
    theta, new, weight = 1 / np.arange(1, 7), same_ranks(log), np.random.default_rng(0).random(log.n_sessions)
    one, other = (evaluate(log, theta, new, weight=each) for each in (weight, np.repeat(weight, np.diff(log.offsets))))
    assert one.to_json() == other.to_json()


# --- the new ranker's lists -----------------------------------------------------------------------------------------------------------


def test_ranks_are_those_of_the_run_by_query_and_document() -> None:
    log = random_log(11, n_docs=12)
    generator = np.random.default_rng(1)
    runs = {int(q): generator.permutation(15)[:9].tolist() for q in log.queries.to_pylist()[:-1]}
    docs = [d for run in runs.values() for d in run]
    found = rank_in(log, np.arange(len(runs) + 1) * 9, docs, list(runs), k=4)
    names = log.docs.to_pylist()
    for row in rows_of(log):
        query, doc = log.queries[row["query"]].as_py(), names[log.pair_doc[row["pair"]]]
        run = runs.get(query, [])
        assert found.new_position[row["row"]] == (run.index(doc) + 1 if doc in run else 0)
    for q, query in enumerate(log.queries.to_pylist()):
        known = {names[d] for d in log.pair_doc[log.pair_offsets[q] : log.pair_offsets[q + 1]]}
        expected = sum(doc not in known for doc in runs[query][:4]) / 4 if query in runs else math.nan
        assert found.unsupported[q] == pytest.approx(expected, nan_ok=True)
    evaluated = evaluate(log, np.ones(6), found, k=4)
    share = found.unsupported[log.query]
    assert evaluated.unsupported == pytest.approx(np.nanmean(share))


def test_ids_of_two_types_are_compared_by_their_text() -> None:
    log = ClickLog([0, 2], [10, 11], [1, 0], [7])
    assert rank_in(log, [0, 3, 3], ["11", "x", "10"], ["7", "8"]).new_position.tolist() == [3, 1]


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (([0, 2], ["a", "a"], ["q"]), "run_doc must name a document once per query: 'a' is there again for 'q'"),
        (([0, 2], ["z", "z"], ["q"]), "run_doc must name a document once per query: 'z' is there again for 'q'"),
        (([0, 1, 2], ["a", "b"], ["q", "q"]), "run_query must name each query once, and 'q' is there again"),
        (([0, 1], ["a", "b"], ["q"]), "run_offsets must ascend from 0 to the number of documents of the run, 2"),
        (([0, 1], ["a"], ["q", "p"]), "run_offsets must have one entry per query of the run, and one more, 3, not 2"),
        (([0, 1], ["a"], ["p"]), "no query in common: such as 'p' there and 'q' here"),
        (([0, 1], [0.5], ["q"]), "run_doc must be text or integers, not floats"),
    ],
)
def test_runs_that_cannot_be_are_refused(run: Any, message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        rank_in(ClickLog([0, 2], ["a", "b"], [1, 0], ["q"]), *run)


def test_ranks_need_queries() -> None:
    with pytest.raises(fr.InputError, match="the log has no queries"):
        rank_in(ClickLog([0, 2], ["a", "b"], [1, 0]), [0, 1], ["a"], ["q"])


# --- recovery -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_intervals_of_the_value_cover_the_truth() -> None:
    hits = []
    for seed in range(80):
        theta, log = shown_in_two_orders(500 + seed, 1500, 300, n_docs=5)
        generator = np.random.default_rng(500 + seed)
        relevant = generator.beta(1, 4, (300, 5))
        # All five documents are shown in every session, so that the truth is the relevance at the new ranks.
        new = (log.qd * 7 + 3) % 5 + 1
        query = np.array(log.queries.to_pylist())[log.query]
        doc = np.array(log.docs.to_pylist())[log.pair_doc[log.qd]]
        chance = relevant[np.repeat(query, 5), doc]
        truth = (chance / np.log2(1 + new)).sum() / log.n_sessions
        found = evaluate(log, theta, new)
        hits.append(found.lo <= truth <= found.hi)
    # 80 draws: three standard errors of 0.95 are 0.07.
    assert np.mean(hits) > 0.88

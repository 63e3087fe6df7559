"""Interleaving: whose clicks they are, by plain loops over all assignments."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import fastrank as fr
from fastrank.clicks import ClickLog, interleave_score


def interleaved(seed: int, n: int = 60, length: int = 5, n_docs: int = 7, **options: Any) -> tuple[ClickLog, np.ndarray, np.ndarray]:
    """Lists of documents with their ranks in two rankings, 0 where a ranking of 6 does not have them."""
    generator = np.random.default_rng(seed)
    docs = np.array([generator.permutation(n_docs)[:length] for _ in range(n)])
    ranks = [np.array([generator.permutation(n_docs)[docs[s]] for s in range(n)]) % n_docs for _ in range(2)]
    a, b = (np.where(rank == 6, 0, rank + 1).ravel() for rank in ranks)
    log = ClickLog(np.arange(n + 1) * length, docs.ravel(), generator.random(n * length) < 0.4, **options)
    return log, a, b


def sessions_of(log: ClickLog) -> list[range]:
    return [range(*bounds) for bounds in itertools.pairwise(log.offsets.tolist())]


def test_team_draft_counts_the_clicks_of_either_team() -> None:
    log, a, _ = interleaved(0)
    team = a % 3
    found = interleave_score(team, log)
    for s, rows in enumerate(sessions_of(log)):
        assert found.credit_a[s] == sum(log.click[i] and team[i] == 1 for i in rows)
        assert found.credit_b[s] == sum(log.click[i] and team[i] == 2 for i in rows)
    assert found.wins_a == np.count_nonzero(found.credit_a > found.credit_b)
    assert found.wins_b == np.count_nonzero(found.credit_a < found.credit_b)
    assert found.wins_a + found.wins_b + found.ties == log.n_sessions
    assert found.delta == pytest.approx((found.wins_a + found.ties / 2) / log.n_sessions - 0.5)
    assert found.p == pytest.approx(binomtest(found.wins_a, found.wins_a + found.wins_b).pvalue)
    outcome = np.sign(found.credit_a - found.credit_b)
    half = 1.959963984540054 * outcome.std(ddof=1) / math.sqrt(log.n_sessions) / 2
    assert (found.lo, found.hi) == pytest.approx((found.delta - half, found.delta + half))


def test_balanced_compares_the_tops_down_to_the_lowest_click() -> None:
    log, a, b = interleaved(1)
    found = interleave_score((a, b), log, method="balanced")
    for s, rows in enumerate(sessions_of(log)):
        clicked = [i for i in rows if log.click[i]]
        ranks = [rank for rank in ((a[clicked[-1]], b[clicked[-1]]) if clicked else ()) if rank]
        k = min(ranks, default=0)
        assert found.credit_a[s] == sum(0 < a[i] <= k for i in clicked)
        assert found.credit_b[s] == sum(0 < b[i] <= k for i in clicked)


def test_probabilistic_credit_is_the_mean_over_all_assignments() -> None:
    log, a, b = interleaved(2)
    found = interleave_score((a, b), log, method="probabilistic", depth=6)
    for s, rows in enumerate(sessions_of(log)):
        totals = [sum(r**-3.0 for r in range(1, 7))] * 2
        chances = []
        for i in rows:
            p, q = ((ranks[i] ** -3.0 if ranks[i] else 0.0) / total for ranks, total in zip((a, b), totals, strict=True))
            totals = [total - (ranks[i] ** -3.0 if ranks[i] else 0.0) for ranks, total in zip((a, b), totals, strict=True)]
            if log.click[i] and p + q > 0:
                chances.append(p / (p + q))
        credit = outcome = 0.0
        for teams in itertools.product((True, False), repeat=len(chances)):
            weight = math.prod(p if team else 1 - p for p, team in zip(chances, teams, strict=True))
            credit += weight * sum(teams)
            outcome += weight * np.sign(2 * sum(teams) - len(teams))
        assert found.credit_a[s] == pytest.approx(credit, abs=1e-7)
        assert found.credit_b[s] == pytest.approx(len(chances) - credit, abs=1e-7)
        assert found.outcome[s] == pytest.approx(outcome, abs=1e-7)
    assert found.delta == pytest.approx(found.outcome.mean() / 2)


def test_equal_rankings_tie() -> None:
    log, a, _ = interleaved(3)
    for method in ("balanced", "probabilistic"):
        found = interleave_score((a, a), log, method=method)
        assert (found.wins_a, found.wins_b, found.delta, found.p) == (0, 0, 0, 1)


def test_a_cluster_wins_as_a_whole() -> None:
    log, a, b = interleaved(4, cluster=np.arange(60) % 7, weight=np.arange(60) % 3)
    found = interleave_score(a % 3, log)
    total = np.bincount(log.cluster, log.weights * (found.credit_a - found.credit_b))
    assert found.outcome.tolist() == np.sign(total).tolist()
    assert found.wins_a + found.wins_b + found.ties == 7
    chance = interleave_score((a, b), log, method="probabilistic")
    assert (np.abs(chance.outcome) <= 1).all()
    assert len(chance.outcome) == 7


def test_a_weight_is_so_many_sessions() -> None:
    log = ClickLog([0, 2, 4], ["a", "b"] * 2, [1, 0, 0, 1], weight=[3, 1])
    found = interleave_score([1, 2] * 2, log)
    assert (found.wins_a, found.wins_b) == (3, 1)
    assert found.delta == pytest.approx(0.25)


def test_nothing_shown_is_no_winner() -> None:
    found = interleave_score([], ClickLog([0], [], []))
    assert (found.wins_a, found.wins_b, found.ties, found.p) == (0, 0, 0, 1)
    assert math.isnan(found.delta)
    assert "interleaving, team draft" in repr(found)
    assert found.to_arrow().num_rows == 0


@pytest.mark.parametrize(
    ("team", "options", "message"),
    [
        ([3, 0], {}, r"team must be 1 .A., 2 .B. or 0 .neither.: row 0"),
        ([1], {}, "team must have one entry per document shown"),
        ([1, 2], {"method": "balanced"}, "rank_a must have one dimension|must be .rank_a, rank_b."),
        ([1, 2, 3], {"method": "balanced"}, "team must be .rank_a, rank_b. for this method"),
        (([1, -2], [1, 2]), {"method": "probabilistic"}, "rank_a must be a rank from 1 up, or 0 for none: row 1"),
        (
            ([1, 2], [1, 3]),
            {"method": "probabilistic", "depth": 2},
            "depth must be a whole number, and no less than the deepest rank given, 3",
        ),
        ([1, 2], {"method": "multileave"}, "method must be"),
        ([1, 2], {"level": 0}, "level must lie strictly"),
    ],
)
def test_what_cannot_be_scored_is_refused(team: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=message):
        interleave_score(team, ClickLog([0, 2], ["a", "b"], [1, 0]), **options)

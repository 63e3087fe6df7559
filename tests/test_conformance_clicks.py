"""Worked values of click logs, and a log and two runs with the estimates that another program has of them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from click_logs import cells_log
from conformance import FOLDER, read_json, require

from fastrank.clicks import ClickLog, Placement, evaluate, interleave_score, propensity, rank_in, relevance
from fastrank.clicks.reading import read_ranking

require()
TINY = read_json("clicks/expected.json")["tiny"]
EXAMPLES = read_json("clicks/expected.json")["rankkit_examples"]
EXACT = 1e-9


def logged() -> ClickLog:
    return ClickLog.from_arrow(FOLDER / "clicks" / "clicks.jsonl", docs="ranking")


def placed(log: ClickLog, run: str = "run_b") -> Placement:
    return rank_in(log, *read_ranking(FOLDER / "clicks" / f"{run}.jsonl"))


def test_the_seed_example() -> None:
    groups = [TINY["seed"][name] for name in "AB"]
    log = cells_log([(name, k, group["impr"], group["clicks"]) for k, (name, group) in enumerate(zip("AB", groups, strict=True), 1)])
    found = relevance(log, [group["theta"] for group in groups])
    assert found.value == pytest.approx([group["rel"] for group in groups], abs=EXACT)
    assert found.se == pytest.approx([group["se"] for group in groups], abs=EXACT)


def test_the_swap() -> None:
    swap = TINY["swap"]
    found = propensity(cells_log([("x", 1, swap["n1"], swap["c1"]), ("x", 2, swap["nk"], swap["ck"])]), "all")
    assert found.theta[1] == pytest.approx(swap["ratio"], abs=EXACT)
    assert found.se_log[1] == pytest.approx(swap["se_log"], abs=EXACT)
    assert (found.lo[1], found.hi[1]) == pytest.approx(swap["ci95"], abs=EXACT)


def test_harvesting_two_documents() -> None:
    expected = TINY["harvest_two_docs"]
    found = propensity(cells_log([tuple(cell) for cell in expected["cells(doc,pos,n,c)"]]))
    assert found.theta[1] == pytest.approx(expected["ppml"], abs=EXACT)


def test_the_pinned_value() -> None:
    pinned = TINY["ips_pinned(rankkit)"]
    log = ClickLog([0, 3], pinned["shown"], [doc in pinned["clicked"] for doc in pinned["shown"]], ["q"])
    found = evaluate(log, pinned["theta"], rank_in(log, [0, 3], pinned["new"], ["q"]))
    assert (found.value, found.naive) == pytest.approx((pinned["ips_dcg"], pinned["naive_dcg"]), abs=EXACT)


def test_the_effective_sample() -> None:
    log = ClickLog([0, 2], ["a", "b"], [1, 1])
    found = evaluate(log, 1 / np.array(TINY["ess"]["weights"]), log.position)
    assert (found.ess, found.max_share) == pytest.approx((TINY["ess"]["ess"], TINY["ess"]["max_share"]), abs=EXACT)


def test_affine_trust() -> None:
    affine = TINY["affine"]
    values = [
        evaluate(ClickLog([0, 1], ["a"], [c]), None, [1], "recall", alpha=[affine["alpha"]], beta=[affine["beta"]]).value for c in (1, 0)
    ]
    assert values == pytest.approx([affine["c1"], affine["c0"]], abs=EXACT)
    chance = affine["alpha"] * 0.2 + affine["beta"]
    assert chance * values[0] + (1 - chance) * values[1] == pytest.approx(affine["mean_at_r=.2"], abs=EXACT)


def test_team_draft_interleaving() -> None:
    tdi = TINY["tdi"]
    wins = [1] * tdi["wins_a"] + [2] * tdi["wins_b"] + [0] * tdi["ties"]
    log = ClickLog(np.arange(len(wins) + 1) * 2, ["a", "b"] * len(wins), [c for win in wins for c in (win == 1, win == 2)])
    found = interleave_score([1, 2] * len(wins), log)
    assert (found.wins_a, found.wins_b, found.ties) == (tdi["wins_a"], tdi["wins_b"], tdi["ties"])
    assert (found.delta, found.p) == pytest.approx((tdi["delta"], tdi["binom_p_two_sided_no_ties"]), abs=EXACT)


@pytest.mark.parametrize("eta", [0, 0.5, 1, 1.5, 2])
@pytest.mark.parametrize(("metric", "theirs", "k"), [("dcg", "dcg", 12), ("recall", "recall", 10), ("rr_sum", "rr", 10)])
@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_values_of_another_program(eta: float, metric: str, theirs: str, k: int, estimator: str) -> None:
    # It cuts recall at 10 and the others not at all: the lists have 12 documents. No k cuts rr_sum.
    log = logged()
    expected: Any = EXAMPLES[f"{theirs}@eta{eta:g}"]
    found = evaluate(log, (1 / np.arange(1, 13)) ** eta, placed(log), metric, k, estimator)
    assert found.value == pytest.approx(expected["cand"][estimator], abs=EXACT)
    assert found.logged == pytest.approx(expected["logged"][estimator], abs=EXACT)
    assert found.naive == pytest.approx(expected["cand"]["naive"], abs=EXACT)


def test_diagnostics_of_another_program() -> None:
    log = logged()
    found = evaluate(log, 1 / np.arange(1, 13), placed(log), k=12)
    expected = EXAMPLES["diag"]
    assert (log.n_sessions, int(log.click.sum())) == (expected["n_queries"], expected["n_clicks"])
    assert found.ess == pytest.approx(expected["ess"], abs=EXACT)
    assert found.max_share == pytest.approx(expected["max_weight_share"], abs=EXACT)
    assert found.clipped == expected["clipped"]
    assert found.relevant_per_session == pytest.approx(expected["relevant_per_query"], abs=EXACT)
    assert found.crossover == pytest.approx(EXAMPLES["crossover"], abs=EXACT)


def test_the_ranker_that_made_the_log_differs_by_nothing_from_itself() -> None:
    log = logged()
    found = evaluate(log, 1 / np.arange(1, 13), placed(log, "run_a"))
    assert (found.diff, found.diff_lo, found.diff_hi) == (0, 0, 0)


def test_the_log_is_what_its_lines_say() -> None:
    lines = [json.loads(line) for line in (FOLDER / "clicks" / "clicks.jsonl").read_text(encoding="utf-8").splitlines()]
    log = logged()
    assert log.n_sessions == len(lines)
    names = log.docs.to_pylist()
    for s, line in enumerate(lines):
        rows = range(log.offsets[s], log.offsets[s + 1])
        assert [names[log.pair_doc[log.qd[i]]] for i in rows] == line["ranking"]
        assert [line["ranking"][i - rows.start] for i in rows if log.click[i]] == [d for d in line["ranking"] if d in line["clicks"]]

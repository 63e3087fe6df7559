"""Fitting click models: counts, steps held to a sum over rows and over hidden courses, and the climb."""

from __future__ import annotations

import dataclasses
from typing import Any

import click_models
import numpy as np
import pytest

from fastrank.clicks import ClickLog, ClickModel, cells, fit, score, simulate
from fastrank.clicks.counting import count_tails
from fastrank.clicks.fitting import maximise
from fastrank.errors import InputError

COUNTED = ("gctr", "rctr", "dctr", "cm", "dcm", "sdbn")
HIDDEN = ("pbm", "ubm", "dbn", "ccm")


@pytest.fixture(scope="module")
def log() -> ClickLog:
    """Ragged sessions, some without clicks, some empty, that count 0 to 3 times."""
    return click_models.draw_log(np.random.default_rng(3), 50, n_docs=5, longest=4, weighted=True)


def parameters(model: ClickModel) -> np.ndarray:
    """All of them in one vector."""
    return np.concatenate([np.ravel(array) for array in (model.attr, model.sat, model.exam, model.cont) if array is not None])


# --- counts ---------------------------------------------------------------------------------------------------------------------


def counted_by_rows(name: str, log: ClickLog, prior: tuple[float, float]) -> dict[Any, float]:
    """Estimates by the rules of the papers, row by row."""
    counts = click_models.Counts(prior)
    for pairs, ranks, clicks, w in click_models.sessions(log):
        n = len(pairs)
        at = [i for i in range(n) if clicks[i]]
        depth = {"cm": at[0] + 1 if at else n}.get(name, at[-1] + 1 if at else n)
        for i in range(n if name in ("gctr", "rctr", "dctr") else depth):
            parameter = {"gctr": ("exam", 1), "rctr": ("exam", ranks[i])}.get(name, ("attr", pairs[i]))
            counts.add(parameter, w * clicks[i], w)
            if clicks[i] and name == "dcm":
                counts.add(("cont", ranks[i]), w * (i != at[-1]), w)
            if clicks[i] and name == "sdbn":
                counts.add(("sat", pairs[i]), w * (i == at[-1]), w)
    kinds = {"gctr": [("exam", 1)], "rctr": [("exam", log.n_positions)], "dcm": [("attr", log.n_pairs), ("cont", log.n_positions)]}
    kinds["sdbn"] = [("attr", log.n_pairs), ("sat", log.n_pairs)]
    wanted = [(kind, i + (kind in ("exam", "cont"))) for kind, n in kinds.get(name, [("attr", log.n_pairs)]) for i in range(n)]
    return {parameter: counts.estimate(parameter) for parameter in wanted}


@pytest.mark.parametrize("prior", [(1, 1), (0, 0), (0.5, 3)])
@pytest.mark.parametrize("name", COUNTED)
def test_counted_models_are_the_shares_of_the_rows_that_the_papers_count(log: ClickLog, name: str, prior: tuple[float, float]) -> None:
    model = fit(log, name, prior=prior)
    assert parameters(model) == pytest.approx(list(counted_by_rows(name, log, prior).values()), abs=1e-14)
    assert (model.converged, model.n_iterations, len(model.objective)) == (True, 0, 1)


@pytest.mark.parametrize("name", ["gctr", "rctr", "dctr", "cm"])
def test_the_objective_of_exact_counts_is_the_log_posterior(name: str) -> None:
    # The cascade model calls a click below the first one impossible: clicks that it drew.
    log = click_models.draw_log(np.random.default_rng(4), 50)
    ids = {"docs": log.docs.take(log.pair_doc), "queries": log.queries.take(log.pair_query)}
    truth = click_models.draw_model("cm", np.random.default_rng(4), ids["docs"], 5, ids["queries"])
    log = click_models.with_clicks(log, simulate(log, truth, 1))
    model = fit(log, name)
    p = parameters(model)
    likelihood = 0.0
    for pairs, ranks, clicks, _ in click_models.sessions(log):
        chances = click_models.conditional(model, pairs, ranks, clicks)
        likelihood += sum(np.log(q if c else 1 - q) for q, c in zip(chances, clicks, strict=True))
    assert model.objective[-1] == pytest.approx(likelihood + (np.log(p) + np.log(1 - p)).sum(), rel=1e-12)


# --- steps ----------------------------------------------------------------------------------------------------------------------


def start_of(name: str, log: ClickLog) -> dict[Any, float]:
    """Every parameter at 1/2, in the order of a fitted model's arrays."""
    pairs, ranks = range(log.n_pairs), range(1, log.n_positions + 1)
    rest: dict[str, list[Any]] = {
        "pbm": [("exam", k, 0) for k in ranks],
        "ubm": [("exam", k, j) for k in ranks for j in range(k)],
        "dbn": [*(("sat", p) for p in pairs), ("cont", 0)],
        "ccm": [("cont", i) for i in range(3)],
    }
    return dict.fromkeys([*(("attr", p) for p in pairs), *rest[name]], 0.5)


@pytest.mark.parametrize("prior", [(1, 1), (0.3, 2)])
@pytest.mark.parametrize("name", HIDDEN)
def test_steps_over_cells_and_tails_are_those_over_rows_and_hidden_courses(log: ClickLog, name: str, prior: tuple[float, float]) -> None:
    n_steps = 4
    model = fit(log, name, prior=prior, max_iter=n_steps, tol=0, accelerate=False)
    now, path = start_of(name, log), []
    for _ in range(n_steps):
        if name in ("pbm", "ubm"):
            now = click_models.step_by_rows(log, now, prior, by_click=name == "ubm")
        else:
            now, objective = click_models.step_by_histories(log, now, prior, name)
            path.append(objective)
    found = parameters(model)
    assert found[~np.isnan(found)] == pytest.approx(list(now.values()), abs=1e-10)
    assert (model.n_iterations, model.converged, len(model.objective)) == (n_steps, False, n_steps + 1)
    if path:
        assert model.objective[:-1] == pytest.approx(path, rel=1e-12)


@pytest.mark.parametrize("name", ["pbm", "ubm", "dbn"])
def test_steps_on_lists_of_up_to_three_hundred_documents_are_those_over_rows(name: str) -> None:
    rng = np.random.default_rng(17)
    sizes = np.array([1, 300, 0, *rng.integers(1, 301, 12)])
    doc = np.concatenate([rng.permutation(320)[:size] for size in sizes])
    log = ClickLog(np.append(0, np.cumsum(sizes)), doc, rng.random(len(doc)) < 0.01, rng.integers(0, 3, len(sizes)))
    model, now = fit(log, name, max_iter=3, tol=0, accelerate=False), start_of(name, log)
    for _ in range(3):
        if name == "dbn":
            now = click_models.step_by_recursion(log, now, (1, 1))
        else:
            now = click_models.step_by_rows(log, now, (1, 1), by_click=name == "ubm")
    found = parameters(model)
    assert found[~np.isnan(found)] == pytest.approx(list(now.values()), abs=1e-10)


@pytest.mark.parametrize("name", HIDDEN)
def test_the_objective_is_the_log_posterior_and_never_falls(log: ClickLog, name: str) -> None:
    for accelerate in (False, True):
        model = fit(log, name, accelerate=accelerate, max_iter=2000)
        assert model.converged
        assert (np.diff(model.objective) >= -1e-12 * np.abs(model.objective[1:])).all()
        p = parameters(model)
        p = p[~np.isnan(p)]
        likelihood = 0.0
        for pairs, ranks, clicks, w in click_models.sessions(log):
            chances = click_models.conditional(model, pairs, ranks, clicks)
            likelihood += w * sum(np.log(q if c else 1 - q) for q, c in zip(chances, clicks, strict=True))
        assert model.objective[-1] == pytest.approx(likelihood + (np.log(p) + np.log(1 - p)).sum(), rel=1e-12)


@pytest.mark.parametrize("name", HIDDEN)
def test_leaps_reach_the_maximum_of_plain_steps_in_fewer(log: ClickLog, name: str) -> None:
    plain = fit(log, name, tol=1e-9, max_iter=20_000, accelerate=False)
    leaping = fit(log, name, tol=1e-9, max_iter=20_000)
    assert leaping.objective[-1] == pytest.approx(plain.objective[-1], rel=1e-9)
    assert leaping.n_iterations < plain.n_iterations
    assert np.nanmax(np.abs(parameters(leaping) - parameters(plain))) < 1e-4


def test_gamma_is_held_where_it_is_given(log: ClickLog) -> None:
    model = fit(log, "dbn", gamma=0.8)
    assert model.cont is not None
    assert model.cont.tolist() == [0.8]
    assert model.converged
    assert (np.diff(model.objective) >= -1e-12 * np.abs(model.objective[1:])).all()
    # Beside the one that is fitted, any other is worse; what is held has no prior.
    free = fit(log, "dbn", tol=1e-10, max_iter=5000)
    assert free.cont is not None
    for near in (free.cont[0] - 0.02, free.cont[0] + 0.02):
        held = fit(log, "dbn", gamma=near, tol=1e-10, max_iter=5000)
        assert held.objective[-1] + np.log(near) + np.log(1 - near) < free.objective[-1]
    assert fit(log, "dbn", gamma=1).cont == [1]


def test_the_mean_centred_prior_pulls_attraction_to_the_clicks_at_rank_one(log: ClickLog) -> None:
    first = log.position == 1
    weights = np.repeat(log.weights, np.diff(log.offsets))[first]
    m = float(np.average(log.click[first], weights=weights))
    model, same = fit(log, "sdbn", prior=4), fit(log, "sdbn", prior=(4 * m, 4 * (1 - m)))
    assert np.array_equal(model.attr, same.attr)  # type: ignore[arg-type]
    assert np.array_equal(model.sat, fit(log, "sdbn").sat)  # type: ignore[arg-type]
    assert model.unseen == pytest.approx((m, 0.5))
    assert fit(log, "pbm", prior=1e9).attr == pytest.approx(np.full(log.n_pairs, m), abs=1e-6)


@pytest.mark.parametrize("name", click_models.NAMES)
def test_a_session_of_weight_three_is_three_sessions(name: str) -> None:
    rng = np.random.default_rng(8)
    once = click_models.draw_log(rng, 20, longest=4)
    weight = rng.integers(0, 4, 20)
    weighted = click_models.with_clicks(once, once.click, weight)
    rows = [(once.offsets[s], once.offsets[s + 1]) for s in range(20) for _ in range(weight[s])]
    index = np.concatenate([np.arange(*span) for span in rows])
    sizes = [stop - start for start, stop in rows]
    query = once.queries.take(np.repeat(once.query, weight))  # type: ignore[union-attr]
    repeated = ClickLog(np.append(0, np.cumsum(sizes)), once.docs.take(once.pair_doc[once.qd[index]]), once.click[index], query)
    one, other = (fit(each, name, max_iter=30, tol=0, accelerate=False) for each in (weighted, repeated))
    assert score(one, repeated).ll_doc == pytest.approx(score(other, repeated).ll_doc, rel=1e-10)
    assert score(one, weighted).ll_session == pytest.approx(score(one, repeated).ll_session, rel=1e-12)


@pytest.mark.parametrize("name", click_models.NAMES)
def test_logs_without_sessions_rows_or_clicks_are_logs(name: str) -> None:
    for offsets, docs in (([0], []), ([0, 0, 0], []), ([0, 0, 2], ["a", "b"])):
        log = ClickLog(offsets, np.array(docs, object) if docs else np.zeros(0, np.int64), np.zeros(len(docs)))
        model = fit(log, name)
        assert model.converged
        found = score(model, log)
        assert np.isnan(found.ll_doc) if not docs else found.ll_doc < 0
        assert len(simulate(log, model, 0)) == len(docs)


def test_without_a_prior_what_was_never_tried_is_one_half() -> None:
    log = ClickLog([0, 2, 4], ["a", "b", "a", "b"], [0, 0, 0, 0])
    assert fit(log, "sdbn", prior=(0, 0)).sat.tolist() == [0.5, 0.5]  # type: ignore[union-attr]
    assert fit(log, "dctr", prior=(0, 0)).attr.tolist() == [0, 0]  # type: ignore[union-attr]
    browsing = fit(log, "ubm", prior=(0, 0), max_iter=20)
    assert browsing.exam[1, 1] == 0.5  # type: ignore[index]
    assert browsing.unseen == (0.5, 0.5)
    assert np.isfinite(browsing.objective).all()


@pytest.mark.parametrize("order", [0, 1])
def test_cells_are_the_same_in_however_many_parts_rows_are_brought_together(log: ClickLog, monkeypatch: Any, order: int) -> None:
    whole = log.cells(order)
    monkeypatch.setattr(cells, "PART", 7)
    parts = cells.add_up(log.qd, log.n_pairs, log.offsets, log.position, log.click, log.weight, order=order)
    for field in dataclasses.fields(whole):
        assert np.array_equal(getattr(parts, field.name), getattr(whole, field.name)), field.name


def test_equal_tails_of_sessions_are_one() -> None:
    docs = [list("abc"), list("abc"), list("bac"), list("abc"), list("abc"), [], ["a"]]
    clicks = [[0, 0, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1], [], [0]]
    flat = [doc for each in docs for doc in each]
    log = ClickLog(np.append(0, np.cumsum([len(each) for each in docs])), flat, [click for each in clicks for click in each])
    tails = count_tails(log)
    a, b, c = 0, 1, 2
    found = [
        (int(tails.head[t]), tails.pairs[tails.offsets[t] : tails.offsets[t + 1]].tolist(), tails.weight[t]) for t in range(len(tails.head))
    ]
    assert sorted(found) == [(-1, [a], 1), (-1, [a, b, c], 2), (a, [b, c], 1), (a, [c], 1)]
    assert tails.at_end.tolist() == [0, 0, 1]


@pytest.mark.compiled
@pytest.mark.parametrize("name", click_models.NAMES)
@pytest.mark.parametrize("prior", [(1, 1), (1, 0), (0, 0)])
def test_lists_of_thousands_without_clicks_give_numbers(name: str, prior: tuple[float, float]) -> None:
    n = 2000
    doc = np.concatenate([np.arange(n)] * 3)
    log = ClickLog([0, n, 2 * n, 3 * n], doc, np.isin(np.arange(3 * n), (0, 5, 2 * n + 1500)))
    for gamma in (None, 1) if name == "dbn" else (None,):
        model = fit(log, name, prior=prior, gamma=gamma, max_iter=20 if name == "ubm" else 300)
        assert np.isfinite(model.objective).all()
        assert np.isfinite([*parameters(model)[~np.isnan(parameters(model))], score(model, log).ll_doc]).all()


def test_with_gamma_one_a_list_without_clicks_was_seen_to_its_end(log: ClickLog) -> None:
    sure, almost = (fit(log, "dbn", gamma=gamma, tol=1e-10, max_iter=5000) for gamma in (1, 1 - 1e-12))
    assert sure.objective[-1] == pytest.approx(almost.objective[-1], rel=1e-9)
    assert sure.attr == pytest.approx(almost.attr, abs=1e-6)
    assert sure.sat == pytest.approx(almost.sat, abs=1e-6)


# --- the climb ------------------------------------------------------------------------------------------------------------------


def test_a_leap_that_falls_is_taken_back() -> None:
    # A step that moves on by less and less, on a path whose extrapolation overshoots the maximum at 0.9 into worse ground.
    def step(x: np.ndarray) -> tuple[np.ndarray, float]:
        return np.minimum(x + 0.1, 0.9), float(-np.abs(x - 0.9).sum()) if x[0] <= 0.9 else -5.0

    seen: list[tuple[int, float]] = []
    found = maximise(step, np.array([0.1]), max_iter=50, tol=0, accelerate=True, report=lambda n, value: seen.append((n, value)))
    assert found.x.tolist() == [0.9]
    assert found.converged
    assert (np.diff(found.objective) >= 0).all()
    assert [n for n, _ in seen] == list(range(1, found.n_steps + 1))


@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 5])
def test_no_more_passes_are_made_than_allowed(log: ClickLog, max_iter: int) -> None:
    model = fit(log, "pbm", max_iter=max_iter, tol=0)
    assert model.n_iterations == max_iter
    assert not model.converged


# --- size and threads -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ragged() -> ClickLog:
    """A log of many blocks: sessions of 1 to 300 documents."""
    rng = np.random.default_rng(9)
    sizes = rng.integers(1, 301, 1500)
    doc = np.concatenate([rng.permutation(400)[:size] for size in sizes])
    return ClickLog(np.append(0, np.cumsum(sizes)), doc, rng.random(int(sizes.sum())) < 0.02, rng.integers(0, 40, 1500))


@pytest.mark.compiled
@pytest.mark.parametrize("name", click_models.NAMES)
def test_any_number_of_threads_gives_the_same_bits(ragged: ClickLog, name: str) -> None:
    one, two, eight = (fit(ragged, name, max_iter=6, tol=0, threads=n) for n in (1, 2, 8))
    for other in (two, eight):
        assert np.array_equal(parameters(one), parameters(other), equal_nan=True)
        assert np.array_equal(one.objective, other.objective)
    assert np.isfinite(one.objective).all()


# --- bad arguments --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "tcm"}, "model must be one of"),
        ({"gamma": 0.5}, "gamma= is the continuation of dbn"),
        ({"model": "dbn", "gamma": 0}, "gamma must be a probability above 0"),
        ({"model": "dbn", "gamma": True}, "gamma must be a probability above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number from 1 up"),
        ({"tol": -1}, "tol must be a number from 0 up"),
        ({"prior": (1, -1)}, "prior must be two pseudo-counts"),
        ({"prior": (1, 1, 1)}, "prior must be two pseudo-counts"),
        ({"prior": "mean"}, "prior must be two pseudo-counts"),
        ({"threads": 0}, "threads must be a whole number"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(log: ClickLog, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit(log, **arguments)


def test_ubm_refuses_lists_with_too_many_pairs_of_ranks() -> None:
    log = ClickLog([0, 1], ["a"], [1], position=[2049])
    with pytest.raises(InputError, match="too many for lists of 2049 rows"):
        fit(log, "ubm")
    assert fit(log, "pbm", max_iter=2).exam is not None

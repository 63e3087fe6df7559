"""Likelihood and perplexity of click models, and clicks drawn from them."""

from __future__ import annotations

from typing import Any

import click_models
import numpy as np
import pyarrow as pa
import pytest

from fastrank._kernel import Kernel
from fastrank.clicks import ClickLog, ClickModel, counting, expectation, fit, likelihood, probabilities, score, simulate, simulation
from fastrank.clicks.warming import compile_kernels
from fastrank.errors import InputError

EPS = 1e-6


def model_of(log: ClickLog, name: str, seed: int) -> ClickModel:
    """A model of the documents and ranks of a log."""
    queries = None if log.queries is None else log.queries.take(log.pair_query)
    return click_models.draw_model(name, np.random.default_rng(seed), log.docs.take(log.pair_doc), max(log.n_positions, 1), queries)


@pytest.mark.compiled
def test_each_kernel_is_compiled_for_one_kind_of_arrays_and_ahead_of_time_on_request() -> None:
    compile_kernels()
    for weighted in (False, True):
        drawn = click_models.draw_log(np.random.default_rng(1), 30, weighted=weighted)
        bare = ClickLog(drawn.offsets, drawn.docs.take(drawn.pair_doc[drawn.qd]), drawn.click, position=2 * drawn.position)
        for log in (drawn, bare):
            for name in click_models.NAMES:
                model = fit(log, name)
                score(model, log)
                probabilities(model, log)
                simulate(log, model, 3)
    modules = (counting, expectation, likelihood, simulation)
    kernels = [value for module in modules for value in vars(module).values() if isinstance(value, Kernel)]
    kernels = [each for each in kernels if not each.__name__.startswith("_")]
    assert len(kernels) == 14
    assert {each.__name__: len(each.signatures) for each in kernels} == dict.fromkeys((each.__name__ for each in kernels), 1)


# --- scores ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", click_models.NAMES)
def test_scores_are_means_of_logarithms_over_rows_sessions_and_ranks(name: str, weighted: bool) -> None:
    log = click_models.draw_log(np.random.default_rng(1), 80, weighted=weighted)
    model = model_of(log, name, 2)
    given, full = (np.clip(p, EPS, 1 - EPS) for p in probabilities(model, log))
    w = np.repeat(log.weights, np.diff(log.offsets))
    logs = [w * np.log(np.where(log.click, p, 1 - p)) for p in (given, full)]
    found = score(model, log)
    assert found.ll_doc == pytest.approx(logs[0].sum() / w.sum(), rel=1e-12)
    assert found.ll_session == pytest.approx(logs[0].sum() / log.weights.sum(), rel=1e-12)
    ranks = range(1, log.n_positions + 1)
    for at, values in ((found.cond_ppl_at, logs[0]), (found.ppl_at, logs[1])):
        assert at == pytest.approx([2 ** -(values[log.position == k].sum() / np.log(2) / w[log.position == k].sum()) for k in ranks])
    assert (found.cond_ppl, found.ppl) == pytest.approx((found.cond_ppl_at.mean(), found.ppl_at.mean()))
    assert found.n_at == pytest.approx([w[log.position == k].sum() for k in ranks])
    chance = probabilities(model, log).given
    assert found.clipped == pytest.approx(w[(chance < EPS) | (chance > 1 - EPS)].sum() / w.sum())
    assert found.unseen == 0


def test_ranks_that_no_session_reaches_have_no_perplexity() -> None:
    log = ClickLog([0, 2], ["a", "b"], [1, 0], position=[1, 3])
    found = score(ClickModel("gctr", exam=0.5), log)
    assert np.isnan(found.ppl_at).tolist() == [False, True, False]
    assert found.ppl == pytest.approx(2)
    assert found.n_at.tolist() == [1, 0, 1]


def test_the_cascade_model_is_clipped_below_the_first_click() -> None:
    log = ClickLog([0, 3], ["a", "b", "c"], [1, 0, 1])
    found = score(ClickModel("cm", attr=[0.4, 0.6, 0.5], docs=["a", "b", "c"]), log)
    assert found.clipped == pytest.approx(2 / 3)
    assert found.ll_session == pytest.approx(np.log(0.4) + np.log(1 - EPS) + np.log(EPS))


@pytest.mark.compiled
@pytest.mark.parametrize("name", click_models.NAMES)
def test_any_number_of_threads_gives_the_same_bits(name: str) -> None:
    rng = np.random.default_rng(3)
    sizes = rng.integers(0, 301, 1500)
    doc = np.concatenate([rng.permutation(400)[:size] for size in sizes])
    log = ClickLog(np.append(0, np.cumsum(sizes)), doc, rng.random(int(sizes.sum())) < 0.1)
    model = model_of(log, name, 4)
    one, two, eight = (score(model, log, threads=n) for n in (1, 2, 8))
    for other in (two, eight):
        assert other.ll_doc == one.ll_doc
        assert np.array_equal(other.ppl_at, one.ppl_at)
        assert np.array_equal(other.cond_ppl_at, one.cond_ppl_at)
    drawn = [simulate(log, model, 5, threads=n) for n in (1, 2, 8)]
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])
    full = [probabilities(model, log, threads=n).full for n in (1, 2, 8)]
    assert np.array_equal(full[0], full[1])
    assert np.array_equal(full[0], full[2])


# --- simulation -----------------------------------------------------------------------------------------------------------------


def lists(n_sessions: int, docs: list[Any]) -> ClickLog:
    """The same list, shown to many."""
    n = len(docs)
    return ClickLog(np.arange(n_sessions + 1) * n, pa.array(docs * n_sessions), np.zeros(n * n_sessions))


@pytest.mark.compiled
@pytest.mark.parametrize("name", click_models.NAMES)
def test_click_vectors_are_drawn_as_often_as_the_model_says(name: str) -> None:
    stats = pytest.importorskip("scipy.stats")
    n, length = 200_000, 4
    log = lists(n, list("abcd"))
    model = model_of(log, name, 6)
    codes = simulate(log, model, seed=7).reshape(n, length) @ (1 << np.arange(length))
    vectors = np.array([[code >> i & 1 for i in range(length)] for code in range(1 << length)], np.uint8)
    every = ClickLog(np.arange(len(vectors) + 1) * length, list("abcd") * len(vectors), vectors.ravel())
    given = probabilities(model, every).given.reshape(vectors.shape)
    chance = np.where(vectors, given, 1 - given).prod(axis=1)
    seen = np.bincount(codes, minlength=1 << length)
    assert seen[chance == 0].sum() == 0
    possible = chance > 0
    assert stats.chisquare(seen[possible], n * chance[possible]).pvalue > 1e-3


def test_a_session_keeps_its_clicks_whatever_follows_and_each_seed_has_its_own() -> None:
    long, short = lists(400, list("abc")), lists(100, list("abc"))
    model = model_of(long, "dbn", 1)
    clicks = simulate(long, model, 11)
    assert np.array_equal(simulate(short, model, 11), clicks[:300])
    assert np.array_equal(simulate(long, model, 11), clicks)
    assert not np.array_equal(simulate(long, model, 12), clicks)
    first, second = clicks[:600].reshape(-1, 3), clicks[600:].reshape(-1, 3)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "a"])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    log = lists(1, ["a"])
    with pytest.raises(InputError, match="seed must be a whole number"):
        simulate(log, ClickModel("gctr", exam=0.5), seed)


# --- simulate, then recover -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shown() -> ClickLog:
    """Lists of 6 out of 8 documents for 5 queries, in every order."""
    rng = np.random.default_rng(2)
    n = 60_000
    doc = np.argsort(rng.random((n, 8)), axis=1)[:, :6].ravel()
    return ClickLog(np.arange(n + 1) * 6, doc, np.zeros(6 * n), rng.integers(0, 5, n))


@pytest.mark.compiled
@pytest.mark.slow
@pytest.mark.parametrize("name", click_models.NAMES)
def test_a_fit_recovers_the_model_that_the_clicks_were_drawn_from(shown: ClickLog, name: str) -> None:
    truth = model_of(shown, name, 12)
    log = click_models.with_clicks(shown, simulate(shown, truth, 13))
    model = fit(log, name, tol=1e-8, max_iter=3000)
    # On clicks that it has not seen, it is as good as the truth, up to the parameters' noise: half of their number, in nats.
    fresh = click_models.with_clicks(shown, simulate(shown, truth, 14))
    n_parameters = sum(getattr(model, kind).size for kind in ("attr", "sat", "exam", "cont") if getattr(model, kind) is not None)
    lost = (score(truth, fresh).ll_session - score(model, fresh).ll_session) * fresh.n_sessions
    if name in ("dcm", "sdbn"):  # counts by a convention: not the maximum of the likelihood
        assert lost / fresh.n_rows < 0.02
    else:
        assert -5 < lost < 2 * n_parameters
        # Attraction up to the scale that pbm and ubm leave open.
        for kind in ("attr", "cont"):
            ours, theirs = getattr(model, kind), getattr(truth, kind)
            if ours is not None:
                scale = theirs.mean() / ours.mean() if name in ("pbm", "ubm") else 1.0
                assert np.abs(scale * ours - theirs).max() < 0.06, kind

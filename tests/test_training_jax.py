"""`fastrank.training.jax`: metrics and losses inside compiled functions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import fastrank as fr

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

from fastrank.training import jax as ours  # noqa: E402
from fastrank.training.loss_names import LOSSES, loss_and_gradient  # noqa: E402

GENERATOR = np.random.default_rng(2)
SCORES = GENERATOR.normal(size=(12, 6)).astype(np.float32)
LABELS = GENERATOR.integers(0, 4, (12, 6))
OFFSETS = np.arange(0, 73, 6)
MASK = GENERATOR.random((12, 6)) < 0.7
WHOLE = MASK.any(axis=1)[:, None] | MASK


def as_floats(values: dict[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def as_float32(values: dict[str, float]) -> dict[str, float]:
    return {name: float(np.float32(value)) for name, value in values.items()}


@pytest.mark.parametrize("compiled", [False, True])
def test_every_form_of_batch_gives_the_values_of_evaluate(compiled: bool) -> None:
    metrics = ("nDCG@3", "RR", "NumRelRet@3")
    metric = ours.ranking_metric(metrics)
    call = jax.jit(metric) if compiled else metric
    whole = as_float32(fr.evaluate(LABELS, SCORES, metrics=metrics).aggregate())
    assert as_floats(call(jnp.asarray(LABELS), jnp.asarray(SCORES))) == whole
    assert as_floats(call(jnp.asarray(LABELS.ravel()), jnp.asarray(SCORES.ravel()), jnp.asarray(OFFSETS))) == whole
    there = fr.evaluate(LABELS[MASK], SCORES[MASK], sizes=MASK.sum(axis=1), metrics=metrics)
    assert as_floats(call(jnp.asarray(LABELS), jnp.asarray(SCORES), mask=jnp.asarray(MASK))) == as_float32(there.aggregate())
    one = fr.evaluate(LABELS[0], SCORES[0], metrics=metrics)
    assert as_floats(call(jnp.asarray(LABELS[0]), jnp.asarray(SCORES[0]))) == as_float32(one.aggregate())


def test_it_runs_under_vmap_and_scan_and_on_bfloat16() -> None:
    metric = ours.ranking_metric("RR")
    each = jax.vmap(metric)(jnp.asarray(LABELS), jnp.asarray(SCORES))
    assert each.tolist() == fr.reciprocal_rank(LABELS, SCORES).astype(np.float32).tolist()
    _, scanned = jax.lax.scan(lambda carry, row: (carry, metric(*row)), 0, (jnp.asarray(LABELS), jnp.asarray(SCORES)))
    assert scanned.tolist() == each.tolist()
    narrow = jnp.asarray(SCORES, jnp.bfloat16)
    assert float(metric(jnp.asarray(LABELS, jnp.bfloat16), narrow)) == np.float32(
        fr.reciprocal_rank(LABELS, np.asarray(narrow, np.float32)).mean()
    )


def test_doubles_where_jax_has_them() -> None:
    with jax.enable_x64(True):
        value = ours.ranking_metric("nDCG@3")(jnp.asarray(LABELS), jnp.asarray(SCORES))
    assert value.dtype == np.float64
    assert float(value) == fr.evaluate(LABELS, SCORES, metrics="nDCG@3").mean()["nDCG@3"]


def test_a_metric_carries_no_gradient() -> None:
    grad = jax.grad(lambda scores: ours.ranking_metric("RR")(jnp.asarray(LABELS), scores) + scores.sum())(jnp.asarray(SCORES))
    assert (grad == 1).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_are_those_of_the_kernels_times_what_stands_above(name: str, compiled: bool) -> None:
    upstream = np.linspace(-1, 2, 12).astype(np.float32)

    def objective(scores: Any) -> Any:
        return (ours.ranking_loss(jnp.asarray(LABELS), scores, mask=jnp.asarray(WHOLE), loss=name, reduction="none") * upstream).sum()

    call = jax.value_and_grad(objective)
    found, grad = (jax.jit(call) if compiled else call)(jnp.asarray(SCORES))
    value, by_score = loss_and_gradient(name, LABELS[WHOLE], SCORES[WHOLE], np.append(0, WHOLE.sum(axis=1).cumsum()), {})
    expected = np.zeros_like(SCORES)
    expected[WHOLE] = by_score * np.repeat(upstream, WHOLE.sum(axis=1))
    assert float(found) == pytest.approx(float((value * upstream).sum()), rel=1e-5, abs=1e-5)
    assert np.allclose(grad, expected, rtol=1e-5, atol=1e-7)


def test_reductions_and_options() -> None:
    labels, scores, offsets = jnp.asarray(LABELS.ravel()), jnp.asarray(SCORES.ravel()), jnp.asarray(OFFSETS)
    each = ours.ranking_loss(labels, scores, offsets, reduction="none", preset="lightgbm")
    expected = fr.training.lambda_gradients(LABELS, SCORES, preset="lightgbm", costs=True).loss
    assert np.allclose(each, expected, rtol=1e-6)
    assert float(ours.ranking_loss(labels, scores, offsets, preset="lightgbm")) == pytest.approx(float(each.mean()), rel=1e-6)
    total = ours.ranking_loss(labels, scores, offsets, reduction="sum", preset="lightgbm")
    assert float(total) == pytest.approx(float(each.sum()), rel=1e-6)
    lists = ours.ranking_loss(LABELS.tolist(), SCORES.tolist(), reduction="none", preset="lightgbm")
    assert lists.tolist() == each.tolist()


@pytest.mark.parametrize(
    ("arrays", "named", "message"),
    [
        ((LABELS, SCORES[:, :5]), {}, "of one shape"),
        ((LABELS, SCORES, OFFSETS), {}, "offsets go with flat"),
        ((LABELS[0], SCORES[0]), {"mask": MASK[0]}, "mask goes with a query a row"),
    ],
)
def test_what_does_not_fit_is_refused(arrays: Any, named: dict[str, Any], message: str) -> None:
    with pytest.raises(Exception, match=message):
        ours.ranking_metric("RR")(*map(jnp.asarray, arrays), **named).block_until_ready()


def test_unknown_losses_are_refused() -> None:
    with pytest.raises(fr.InputError, match="loss must be one of"):
        ours.ranking_loss(LABELS, SCORES, loss="lamda")


def test_without_jax_one_sentence_says_how_to_get_it() -> None:
    program = "import sys; sys.modules['jax'] = None; import fastrank.training.jax"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    wanted = "ImportError: fastrank.training.jax needs jax, which is not installed: pip install 'fastrank-metrics[jax]'."
    assert done.stderr.splitlines()[-1] == wanted

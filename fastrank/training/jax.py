"""JAX: metrics inside compiled functions, and LambdaRank and listwise losses that `jax.grad` can differentiate.

>>> import jax
>>> import jax.numpy as jnp
>>> from fastrank.training.jax import ranking_metric
>>> rr = jax.jit(ranking_metric("RR"))
>>> print(rr(jnp.array([[0, 1, 0], [1, 0, 0]]), jnp.array([[0.9, 0.7, 0.1], [0.9, 0.3, 0.4]])))
0.75
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fastrank.convention import Convention, one_of
from fastrank.engine.calls import DEFAULT_METRICS, Metrics, check_threads, evaluate
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError
from fastrank.training.loss_names import LOSSES, REDUCTIONS, loss_and_gradient

try:
    import jax
except ImportError:
    needs = "fastrank.training.jax needs jax, which is not installed: pip install 'fastrank-metrics[jax]'."
    raise ImportError(needs) from None

__all__ = ["ranking_loss", "ranking_metric"]


def ranking_metric(
    metrics: Metrics = DEFAULT_METRICS,
    convention: str | Convention = "fastrank",
    *,
    ties: str | None = None,
    no_relevant: str | None = None,
    threads: int | None = None,
) -> Callable[..., Any]:
    """A function of labels and scores that gives the metrics of a batch, inside `jax.jit` and `jax.vmap` too.

    Parameters: as `fr.evaluate`. The function returned is called as ``metric(labels, scores, offsets=None, *, mask=None)``: arrays of one
    shape, two-dimensional with a query a row (with `mask`, True for documents and False for padding), or flat with `offsets` (one query
    without). It returns a scalar of JAX's float type for one metric, for several a dict of them by name: the mean over queries (for counts
    the sum). It is computed on the host, through `jax.pure_callback`, so each call costs some 0.2 ms besides; it has no gradient.

    Errors: `InputError`; from within compiled functions JAX's runtime error that quotes it.
    """
    plan, threads = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant), check_threads(threads)

    def on_host(labels: Any, scores: Any, offsets: Any, mask: Any) -> Any:
        flat, score, bounds = _flat(labels, scores, offsets, mask)
        result = evaluate(flat, score, bounds, metrics=plan.metrics, convention=plan.convention, threads=threads)
        return {name: np.asarray(value, _real()) for name, value in zip(plan.names, result.aggregate().values(), strict=True)}

    def metric(labels: Any, scores: Any, offsets: Any = None, *, mask: Any = None) -> Any:
        """The metrics of one batch."""
        shape = {name: jax.ShapeDtypeStruct((), _real()) for name in plan.names}
        arrays = labels, jax.lax.stop_gradient(scores), offsets, mask
        values = jax.pure_callback(on_host, shape, *arrays, vmap_method="sequential")
        return values[plan.names[0]] if len(plan.names) == 1 else values

    return metric


def ranking_loss(
    labels: Any, scores: Any, offsets: Any = None, *, mask: Any = None, loss: str = "lambda", reduction: str = "mean", **options: Any
) -> Any:
    """A loss over lists to be minimised, with its gradient by `scores`: for `jax.grad`, compiled or not.

    Parameters
    ----------
    labels, scores, offsets, mask
        As the function of `ranking_metric`.
    loss
        "lambda" (LambdaRank, whose gradient is `fr.training.lambda_gradients`), "listnet", "listmle", "approximate_ndcg", "ranknet" or
        "hinge", the functions of those names in `fr.training`.
    reduction
        "mean" over queries, "sum", or "none": one value a query.
    options
        Keyword arguments of that function, such as ``metric="map"``; they must be hashable.

    Computed on the host in double precision. First order only, and in reverse mode: a second derivative is an error. Errors: `InputError`;
    from within compiled functions JAX's runtime error that quotes it.

    >>> import jax.numpy as jnp
    >>> print(jax.grad(lambda scores: ranking_loss(jnp.array([1, 0]), scores, loss="ranknet"))(jnp.zeros(2)))
    [-0.5  0.5]
    """
    one_of("loss", loss, LOSSES)
    one_of("reduction", reduction, REDUCTIONS)
    values = _loss((loss, tuple(sorted(options.items()))), jax.numpy.asarray(scores), labels, offsets, mask)
    return values if reduction == "none" else values.sum() if reduction == "sum" else values.mean()


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _loss(choice: tuple[str, Any], scores: Any, labels: Any, offsets: Any, mask: Any) -> Any:
    return _call(choice, scores, labels, offsets, mask)[0]


def _call(choice: tuple[str, Any], scores: Any, labels: Any, offsets: Any, mask: Any) -> Any:
    """The loss of each query, the gradient in the shape of the scores, and the query of each score."""
    n_queries = len(offsets) - 1 if offsets is not None else scores.shape[0] if scores.ndim == 2 else 1
    kind = np.promote_types(np.float32, scores.dtype) if scores.dtype in (np.float32, np.float64) else np.dtype(np.float32)
    shape = jax.ShapeDtypeStruct((n_queries,), kind), jax.ShapeDtypeStruct(scores.shape, kind), jax.ShapeDtypeStruct(scores.shape, np.int32)
    work = functools.partial(_on_host, choice, kind)
    return jax.pure_callback(work, shape, labels, scores, offsets, mask, vmap_method="sequential")


def _on_host(choice: tuple[str, Any], kind: Any, labels: Any, scores: Any, offsets: Any, mask: Any) -> Any:
    name, options = choice
    flat, score, bounds = _flat(labels, scores, offsets, mask)
    value, by_score = loss_and_gradient(name, flat, score, bounds, dict(options))
    there = np.ones(scores.shape, bool) if mask is None else np.asarray(mask, bool)
    grad, query = np.zeros(scores.shape, kind), np.zeros(scores.shape, np.int32)
    grad[there], query[there] = by_score, np.repeat(np.arange(len(value)), np.diff(bounds))
    return value.astype(kind), grad, query


def _forward(choice: tuple[str, Any], scores: Any, labels: Any, offsets: Any, mask: Any) -> Any:
    value, grad, query = _call(choice, scores, labels, offsets, mask)
    return value, (grad.astype(scores.dtype), query)


def _backward(_choice: tuple[str, Any], kept: Any, upstream: Any) -> Any:
    grad, query = kept
    return (upstream[query] * grad).astype(grad.dtype), None, None, None


_loss.defvjp(_forward, _backward)


def _real() -> Any:
    """float64 where JAX was told to have it, else float32."""
    return jax.dtypes.canonicalize_dtype(np.float64)


def _flat(labels: Any, scores: Any, offsets: Any, mask: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and offsets of the documents; NumPy reads JAX's arrays on the host without a copy."""
    label, score = np.asarray(labels), np.asarray(scores)
    if label.dtype.kind not in "biuf":  # narrow floats that NumPy does not have
        label = label.astype(np.float32)
    if score.dtype not in (np.float32, np.float64):
        score = score.astype(np.float32)
    if label.shape != score.shape or score.ndim not in (1, 2):
        raise InputError(f"labels and scores must be flat, or a query a row, and of one shape, not {label.shape} and {score.shape}.")
    if mask is not None:
        there = np.asarray(mask, bool)
        if score.ndim != 2 or there.shape != score.shape or offsets is not None:
            raise InputError(f"mask goes with a query a row and without offsets: its shape is {there.shape}, that of scores {score.shape}.")
        return label[there], score[there], np.concatenate(([0], np.cumsum(there.sum(axis=1))))
    if offsets is not None:
        if score.ndim != 1:
            raise InputError("offsets go with flat labels and scores; those with two dimensions are a query a row.")
        return label, score, np.asarray(offsets)
    n_rows, length = score.shape if score.ndim == 2 else (1, score.size)
    return label.ravel(), score.ravel(), np.arange(n_rows + 1) * length

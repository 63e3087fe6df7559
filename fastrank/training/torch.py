"""PyTorch: a metric for evaluation loops of one process or many, and LambdaRank and listwise losses for training loops.

>>> import torch
>>> from fastrank.training.torch import RankingMetric
>>> metric = RankingMetric("nDCG@10")
>>> metric.update(torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.3, 0.4]]), torch.tensor([[0, 1, 0], [0, 0, 2]]))
>>> metric.update(torch.tensor([[0.6, 0.5, 0.0]]), torch.tensor([[0, 1, 0]]), mask=torch.tensor([[True, True, False]]))
>>> round(metric.compute().item(), 4)
0.754
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from fastrank.convention import Convention, one_of
from fastrank.engine.calls import DEFAULT_METRICS, Metrics, check_threads, evaluate
from fastrank.engine.plan import make_plan
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation
from fastrank.training.loss_names import REDUCTIONS, loss_and_gradient
from fastrank.training.totals import WIDTH, aggregates, totals_of

try:
    import torch
except ImportError:
    needs = "fastrank.training.torch needs torch, which is not installed: pip install 'fastrank-metrics[torch]'."
    raise ImportError(needs) from None
try:
    from torchmetrics import Metric as _Base
except ImportError:
    from fastrank.training.states import StateMetric as _Base

__all__ = ["RankingMetric", "ranking_loss"]

# Types that NumPy does not have, or has without kernels here; float32 holds all of their numbers.
_NARROW = tuple(getattr(torch, name) for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2") if hasattr(torch, name))


class RankingMetric(_Base):  # type: ignore[misc]  # the type checker does not look into these libraries
    """Ranking metrics of a model in an evaluation loop: `update` with each batch, `compute` at the end, `reset` before the next.

    A `torchmetrics.Metric` where torchmetrics is installed, so it logs itself in Lightning, joins a `MetricCollection` and syncs over
    processes; without torchmetrics it does the same under `torch.distributed`.

    Whole queries (padded lists, flat lists with offsets, or ``whole_queries=True``) are judged at once and only their exact sums are kept
    and exchanged: 568 bytes per metric, whatever the data, and the same bits for every number of processes and order of batches. With
    `indexes` whose queries may be spread over batches and processes, the rows are kept, 24 bytes each, and exchanged by `compute`.

    Parameters
    ----------
    metrics
        One or several, as for `fr.evaluate`.
    convention, ties, no_relevant, threads
        As `fr.evaluate`. ``convention="torchmetrics"`` gives that library's values.
    whole_queries
        No query of `indexes` is split between two updates, and none comes twice.
    torchmetrics_options
        Keyword arguments of `torchmetrics.Metric`, such as `process_group`, `sync_on_compute` or `dist_sync_on_step`; without torchmetrics
        the first two.

    `compute` returns a float64 tensor without dimensions for one metric, for several a dict of them by name: the mean over queries (for
    counts the sum, for geometric means that). NaN before the first query.
    """

    rows: Any
    full_state_update = False
    is_differentiable = False
    higher_is_better = True

    def __init__(
        self,
        metrics: Metrics = DEFAULT_METRICS,
        convention: str | Convention = "fastrank",
        *,
        ties: str | None = None,
        no_relevant: str | None = None,
        whole_queries: bool = False,
        threads: int | None = None,
        **torchmetrics_options: Any,
    ) -> None:
        super().__init__(**torchmetrics_options)
        plan = make_plan(metrics, convention, ties=ties, no_relevant=no_relevant)
        self.metrics, self.convention, self.whole_queries = plan.metrics, plan.convention, whole_queries
        self._names, self._threads = plan.names, check_threads(threads)
        # A MetricCollection takes metrics whose states have equal names and values for one and the same. These differ by what they sum.
        spelled = repr((list(map(str, plan.metrics)), plan.convention))
        self._state = f"totals_{hashlib.sha256(spelled.encode()).hexdigest()[:16]}"
        self.add_state(self._state, torch.zeros((len(plan.metrics), WIDTH), dtype=torch.int64), dist_reduce_fx="sum")
        if not whole_queries:
            self.add_state("rows", [], dist_reduce_fx="cat")

    def update(self, preds: Any, target: Any, indexes: Any = None, *, mask: Any = None, offsets: Any = None) -> None:
        """Add a batch: scores first, as torchmetrics has it.

        Parameters
        ----------
        preds, target
            Scores and labels of one shape: two-dimensional with a query a row, or flat. On any device; each is moved once.
        indexes
            Flat: the query of each document, whole numbers. Without it and offsets, a flat batch is one query.
        mask
            The shape of `preds`: True for documents, False for padding.
        offsets
            Flat: where each query begins (n_queries + 1 numbers, the first 0).

        Errors: `InputError`, one line that says what, where and the cure; nothing is then added.
        """
        scores, labels = host_array(preds), host_array(target)
        bounds, ids = None if offsets is None else host_array(offsets), None if indexes is None else host_array(indexes)
        if ids is not None and bounds is not None:
            raise InputError("give one of indexes and offsets, not both.")
        if mask is not None:
            there = host_array(mask).astype(bool)
            bounds = _bounds(scores.shape, labels.shape, there, alone=ids is None and bounds is None)
            scores, labels = scores[there], labels[there]
        if ids is None or self.whole_queries:
            self._add(self._evaluate(labels, scores, bounds, ids))
        else:
            self.rows.append(_packed(scores, labels, ids))

    def _evaluate(self, labels: np.ndarray, scores: np.ndarray, offsets: Any, query_ids: Any) -> Evaluation:
        given: dict[str, Any] = {"metrics": self.metrics, "convention": self.convention, "threads": self._threads}
        return evaluate(labels, scores, offsets, query_ids=query_ids, **given)

    def _add(self, evaluation: Evaluation) -> None:
        # Not in place: an evaluation under inference_mode makes tensors that must not be changed outside.
        state = getattr(self, self._state)
        setattr(self, self._state, state + torch.from_numpy(totals_of(evaluation)).to(state.device))

    def compute(self) -> Any:
        """The metrics of all batches so far, of all processes."""
        totals = host_array(getattr(self, self._state))
        rows = [] if self.whole_queries else self.rows
        rows = _unpacked([host_array(block) for block in (rows if isinstance(rows, list) else [rows])])
        if rows:
            totals = totals + totals_of(self._of_rows(rows))
        kind = torch.float32 if self.device.type == "mps" else torch.float64  # that device has no doubles
        values = [torch.tensor(value, dtype=kind, device=self.device) for value in aggregates(self.metrics, totals)]
        return values[0] if len(values) == 1 else dict(zip(self._names, values, strict=True))

    def _of_rows(self, rows: list[np.ndarray]) -> Evaluation:
        """The evaluation of rows kept. As most loaders give them, ids ascend, and their queries are found at a glance."""
        scores, labels, ids = (np.concatenate(columns) for columns in zip(*rows, strict=True))
        labels, scores = labels.view(np.float64), scores.view(np.float64)
        if not len(ids) or (ids[1:] < ids[:-1]).any():
            return self._evaluate(labels, scores, None, ids)
        return self._evaluate(labels, scores, np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1, [len(ids)])), None)

    def sync(self, *arguments: Any, **options: Any) -> None:
        """Bring the states of all processes together; a process that saw no rows sends none. `compute` calls this."""
        if not self.whole_queries:
            none = torch.zeros(0, dtype=torch.int64)
            self.rows = [torch.cat([none, *(rows.cpu() for rows in self.rows)]).to(self.device)]
        super().sync(*arguments, **options)


def host_array(values: Any) -> np.ndarray:
    """A tensor as an array, moved from its device at most once; anything else as NumPy takes it."""
    if not isinstance(values, torch.Tensor):
        return np.asarray(values)
    values = values.detach()
    if values.dtype in _NARROW:
        values = values.float()
    return values.cpu().numpy()


def _bounds(shape: tuple[int, ...], labels: tuple[int, ...], there: np.ndarray, *, alone: bool) -> np.ndarray:
    """Where each list of a padded batch begins once the padding is left out."""
    if len(shape) != 2 or labels != shape or there.shape != shape:
        shapes = f"{shape}, {labels} and {there.shape}"
        raise InputError(f"mask goes with two-dimensional preds and target of its own shape, a query a row; the shapes are {shapes}.")
    if not alone:
        raise InputError("mask says where the lists of a padded batch end: leave out indexes and offsets, or give the batch flat.")
    return np.concatenate(([0], np.cumsum(there.sum(axis=1))))


# --- rows that travel ------------------------------------------------------------------------------------------------------------


def _packed(scores: np.ndarray, labels: np.ndarray, ids: np.ndarray) -> Any:
    """int64: the number of documents, then the bits of their scores and labels as doubles, then the ids.

    One tensor, of one type in every process, and blocks put end to end can be told apart.
    """
    if scores.shape != labels.shape or scores.shape != ids.shape:
        raise InputError(f"preds, target and indexes must have one shape, not {scores.shape}, {labels.shape} and {ids.shape}.")
    if scores.dtype.kind != "f":
        raise InputError(f"preds must be floats where indexes are given, not {scores.dtype}. Convert them, or give whole_queries=True.")
    if ids.dtype.kind not in "iu":
        raise InputError(f"indexes must be whole numbers, the query of each document, not {ids.dtype}.")
    if np.isnan(scores).any():
        raise InputError(f"preds must be numbers: preds[{int(np.isnan(scores).ravel().argmax())}] is NaN.")
    columns = scores.astype(np.float64).view(np.int64), labels.astype(np.float64).view(np.int64), ids
    return torch.from_numpy(np.concatenate([np.array([ids.size]), *(column.ravel() for column in columns)], dtype=np.int64))


def _unpacked(blocks: list[np.ndarray]) -> list[np.ndarray]:
    """int64[3, n] of each packed block, itself perhaps several end to end."""
    rows = []
    for block in blocks:
        place = 0
        while place < len(block):
            first, place = place + 1, place + 1 + 3 * int(block[place])
            rows.append(block[first:place].reshape(3, -1))
    return rows


# --- losses ----------------------------------------------------------------------------------------------------------------------


class _Given(torch.autograd.Function):  # type: ignore[misc]
    """Values of queries whose gradient by the scores is known already."""

    @staticmethod
    def forward(ctx: Any, _scores: Any, value: Any, grad: Any, query: Any) -> Any:
        ctx.save_for_backward(grad, query)
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, upstream: Any) -> Any:
        grad, query = ctx.saved_tensors
        return upstream[query] * grad, None, None, None


def ranking_loss(
    preds: Any,
    target: Any,
    *,
    loss: str = "lambda",
    mask: Any = None,
    offsets: Any = None,
    reduction: str = "mean",
    **options: Any,
) -> Any:
    """A loss over lists to be minimised, with its gradient.

    Parameters
    ----------
    preds, target, mask, offsets
        As `RankingMetric.update`; a flat batch without `offsets` is one query. Labels and masks carry no gradient.
    loss
        "lambda" (LambdaRank, whose gradient is `fr.training.lambda_gradients`), "listnet", "listmle", "approximate_ndcg", "ranknet" or
        "hinge", the functions of those names in `fr.training`.
    reduction
        "mean" over queries, "sum", or "none": one value a query.
    options
        Keyword arguments of that function, such as ``metric="map"`` or ``preset="lightgbm"`` of LambdaRank.

    Values and gradients are computed in double precision on the CPU, and returned in the type (float32 at least) and on the device of
    `preds`. They are of first order: differentiating twice is an error. Errors: `InputError`.

    >>> import torch
    >>> scores = torch.zeros(1, 2, requires_grad=True)
    >>> ranking_loss(scores, torch.tensor([[1, 0]]), loss="ranknet").backward()
    >>> scores.grad
    tensor([[-0.5000,  0.5000]])
    """
    one_of("reduction", reduction, REDUCTIONS)
    bounds = None if offsets is None else host_array(offsets)
    if mask is not None:
        there = torch.as_tensor(mask, dtype=torch.bool, device=preds.device)
        bounds = _bounds(tuple(preds.shape), tuple(target.shape), host_array(there), alone=bounds is None)
        flat, labels = preds[there], host_array(target)[host_array(there)]
    else:
        flat, labels = preds.reshape(-1), host_array(target)
        if labels.shape != tuple(preds.shape):
            raise InputError(f"preds and target must have one shape, not {tuple(preds.shape)} and {labels.shape}.")
        if bounds is None:
            n_rows, length = preds.shape if preds.ndim == 2 else (1, preds.numel())
            bounds = np.arange(n_rows + 1) * length
        labels = labels.ravel()
    value, grad = loss_and_gradient(loss, labels, host_array(flat), bounds, options)
    kind = torch.float32 if preds.dtype in _NARROW else preds.dtype
    query = torch.from_numpy(np.repeat(np.arange(len(value)), np.diff(bounds)))
    columns = torch.from_numpy(value).to(kind), torch.from_numpy(grad).to(kind), query
    values = _Given.apply(flat.to(kind), *(column.to(preds.device) for column in columns))
    return values if reduction == "none" else values.sum() if reduction == "sum" else values.mean()

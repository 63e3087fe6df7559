"""The row of click models: fifty steps of fitting, against the same steps over rows in NumPy, and against clax."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import peers
from benchmarks.comparison import Call, Comparison, Mark
from benchmarks.data import Setting
from fastrank.clicks import ClickLog, ClickModel, fit, probabilities, simulate

N_STEPS = 50
N_RANKS = 10
MARKS = {"pbm": Mark("seconds", 0.05), "ubm": Mark("seconds", 0.1), "dbn": Mark("seconds", 0.6)}


def click_models(setting: Setting) -> Iterator[Comparison]:
    """Fifty steps on 80,000 sessions of ten documents, one thread, after loading; ten times a thousand as many where asked for."""
    log = draw_log(setting.queries(80_000))
    for name, mark in MARKS.items():
        rows = _Rows(log)
        ours, plain = _fit(log, name), Call("NumPy over rows, the same steps", lambda name=name, rows=rows: rows.fit(name), 1)
        yield _compare(log, ours, None, mark)
        yield _compare(
            log,
            ours,
            plain,
            difference=lambda ours=ours, plain=plain: float(np.abs(_parameters(ours.run()) - plain.run()).max()),
            once=True,
        )
        yield _against_clax(log, name, ours)
    if setting.large:
        large = draw_log(10_000_000)
        yield _compare(large, _fit(large, "pbm"), None, Mark("seconds", 90.0), once=True)


def draw_log(n_sessions: int) -> ClickLog:
    """Clicks of a dynamic Bayesian network: queries as frequent as words are, each shown in four orders of 15 documents, cut at ten."""
    rng = np.random.default_rng(0)
    n_queries = max(n_sessions // 8, 1)
    query = np.minimum(rng.zipf(1.2, n_sessions) - 1, n_queries - 1)
    orders = np.argsort(rng.random((4 * n_queries, 15)), axis=1)[:, :N_RANKS]
    offsets, doc = np.arange(n_sessions + 1) * N_RANKS, orders[4 * query + rng.integers(0, 4, n_sessions)].ravel()
    lists = ClickLog(offsets, doc, np.zeros(len(doc), np.uint8), query)
    shares = {"attr": rng.beta(1, 3, lists.n_pairs), "sat": rng.beta(2, 2, lists.n_pairs), "cont": 0.85}
    truth = ClickModel("dbn", **shares, docs=lists.docs.take(lists.pair_doc), queries=lists.queries.take(lists.pair_query))
    return ClickLog(offsets, doc, simulate(lists, truth, seed=0), query)


def _fit(log: ClickLog, name: str) -> Call:
    """The cells are counted anew each time: that is part of the fit, and not of loading."""

    def run() -> ClickModel:
        for kept in [field for field in log.__dict__ if field.startswith("_cells")]:
            del log.__dict__[kept]
        return fit(log, name, max_iter=N_STEPS, tol=0, accelerate=False, threads=1)

    return Call(f"fastrank fit, {name}, {N_STEPS} steps", run, 1)


def _parameters(model: ClickModel) -> np.ndarray:
    arrays = [np.ravel(array) for array in (model.attr, model.sat, model.exam, model.cont) if array is not None]
    found = np.concatenate(arrays)
    return found[~np.isnan(found)]


def _compare(log: ClickLog, ours: Call, other: Call | None, mark: Mark = Mark(), **options: Any) -> Comparison:  # noqa: B008  (frozen)
    return Comparison(f"{log.n_sessions:,} sessions × {N_RANKS}", log.n_rows, log.n_sessions, ours, other, mark, **options)


# --- the same steps over rows ---------------------------------------------------------------------------------------------------


class _Rows:
    """Expectation and maximisation in NumPy, as one would write it from the papers. Lists have one length."""

    def __init__(self, log: ClickLog) -> None:
        self.qd, self.n_pairs = log.qd.reshape(log.n_sessions, -1), log.n_pairs
        self.click = log.click.reshape(log.n_sessions, -1).astype(np.float64)
        rank = np.arange(1, self.qd.shape[1] + 1)
        clicked = np.maximum.accumulate(self.click.astype(np.int64) * rank, axis=1)
        previous = np.hstack([np.zeros((len(clicked), 1), np.int64), clicked[:, :-1]])
        self.exam = {"pbm": np.broadcast_to(rank - 1, self.qd.shape), "ubm": rank * (rank - 1) // 2 + previous}

    def fit(self, name: str) -> np.ndarray:
        """The parameters after all steps, every one of which was 1/2 in the beginning."""
        return (
            self._chain() if name == "dbn" else self._product(self.exam[name], N_RANKS if name == "pbm" else N_RANKS * (N_RANKS + 1) // 2)
        )

    def _sum(self, index: np.ndarray, weights: np.ndarray, n: int) -> np.ndarray:
        return np.bincount(index.ravel(), weights.ravel(), n)

    def _product(self, of: np.ndarray, n: int) -> np.ndarray:
        attr, exam = np.full(self.n_pairs, 0.5), np.full(n, 0.5)
        shown, tried = (self._sum(index, np.ones(index.shape), size) for index, size in ((self.qd, self.n_pairs), (of, n)))
        for _ in range(N_STEPS):
            a, e = attr[self.qd], exam[of]
            none = (1 - self.click) / (1 - a * e)
            attr = (1 + self._sum(self.qd, self.click + none * (1 - e) * a, self.n_pairs)) / (2 + shown)
            exam = (1 + self._sum(of, self.click + none * (1 - a) * e, n)) / (2 + tried)
        return np.concatenate([attr, exam])

    def _chain(self) -> np.ndarray:
        qd, click, (n_sessions, n) = self.qd, self.click, self.qd.shape
        attr, sat, gamma = np.full(self.n_pairs, 0.5), np.full(self.n_pairs, 0.5), 0.5
        shown, clicked = self._sum(qd, np.ones(qd.shape), self.n_pairs), self._sum(qd, click, self.n_pairs)
        none = np.hstack([np.cumsum(click[:, ::-1], axis=1)[:, ::-1] == 0, np.ones((n_sessions, 1), bool)]).astype(float)
        for _ in range(N_STEPS):
            a, s = attr[qd], sat[qd]
            ahead, forward = np.ones((n_sessions, n + 1)), np.ones((n_sessions, n + 1))
            for k in range(n - 1, -1, -1):
                on = np.where(click[:, k] == 1, (1 - s[:, k]) * gamma, gamma)
                ahead[:, k] = np.where(click[:, k] == 1, a[:, k], 1 - a[:, k]) * (on * ahead[:, k + 1] + (1 - on) * none[:, k + 1])
            for k in range(n):
                forward[:, k + 1] = forward[:, k] * np.where(click[:, k] == 1, a[:, k] * (1 - s[:, k]), 1 - a[:, k]) * gamma
            share = forward[:, :n] / ahead[:, :1]
            examined = share * ahead[:, :n]
            stay = share[:, :-1] * np.where(click == 1, a * (1 - s), 1 - a)[:, :-1]
            on, off = gamma * (stay * ahead[:, 1:-1]).sum(), (1 - gamma) * (stay * none[:, 1:-1]).sum()
            content = click * share * a * s * none[:, 1:]
            attr = (1 + self._sum(qd, click + (1 - click) * (1 - examined) * a, self.n_pairs)) / (2 + shown)
            sat = (1 + self._sum(qd, content, self.n_pairs)) / (2 + clicked)
            gamma = (1 + on) / (2 + on + off)
        return np.concatenate([attr, sat, [gamma]])


# --- clax -----------------------------------------------------------------------------------------------------------------------


def _against_clax(log: ClickLog, name: str, ours: Call) -> Comparison:
    """Its fit is by gradients, and no step of it is one of ours: the probabilities of its parameters are held to ours of the same."""
    title = f"clax, {name}, {N_STEPS} epochs by AdamW in batches of 1,024"
    if (absent := peers.why_absent("clax")) is not None:
        return _compare(log, ours, Call(title, lambda: None, 1), absent=absent)
    batches = [_batch(log, first, min(first + 1024, log.n_sessions)) for first in range(0, log.n_sessions, 1024)]
    theirs = _clax(log, name)

    def difference() -> float:
        model, _ = theirs(batches[:1], 1)
        found = np.exp(np.asarray(model.predict_conditional_clicks(batches[0]))).ravel()
        return float(np.abs(probabilities(_as_ours(log, name, model), log).given[: len(found)] - found).max())

    return _compare(log, ours, Call(title, lambda: theirs(batches, N_STEPS), None), difference=difference, tolerance=1e-5, once=True)


def _batch(log: ClickLog, first: int, last: int) -> dict[str, np.ndarray]:
    rows = slice(first * N_RANKS, last * N_RANKS)
    columns = {"query_doc_ids": log.qd, "positions": log.position, "clicks": log.click.astype(np.float32)}
    batch = {name: np.array(column[rows]).reshape(last - first, -1) for name, column in columns.items()}
    return batch | {"mask": np.ones((last - first, N_RANKS), bool)}


def _clax(log: ClickLog, name: str) -> Callable[[list[dict[str, np.ndarray]], int], tuple[Any, Any]]:
    import clax
    from flax import nnx
    from flax.training.early_stopping import EarlyStopping
    from optax import adamw

    def train(batches: list[dict[str, np.ndarray]], epochs: int) -> tuple[Any, Any]:
        sizes: dict[str, int] = {"query_doc_pairs": log.n_pairs, "positions": N_RANKS + 1}
        make = {"pbm": clax.PositionBasedModel, "ubm": clax.UserBrowsingModel, "dbn": clax.DynamicBayesianNetwork}[name]
        model = make(**{size: n for size, n in sizes.items() if size != "positions" or name != "dbn"}, rngs=nnx.Rngs(0))
        trainer = clax.Trainer(adamw(0.003), epochs, EarlyStopping(patience=epochs))
        with contextlib.redirect_stdout(io.StringIO()):  # it draws a table; its check after each epoch gets one batch
            told = trainer.train(model, batches, batches[:1])
        return model, told

    return train


def _as_ours(log: ClickLog, name: str, model: Any) -> ClickModel:
    """A model of clax as one of ours."""
    pairs = {"query_doc_ids": np.arange(log.n_pairs)}
    ids = {"docs": log.docs.take(log.pair_doc), "queries": log.queries.take(log.pair_query), "attr": _column(model.attraction.prob(pairs))}
    ranks = np.arange(1, N_RANKS + 1)
    if name == "pbm":
        return ClickModel("pbm", exam=_column(model.examination.prob({"positions": ranks})), **ids)
    if name == "dbn":
        return ClickModel("dbn", sat=_column(model.satisfaction.prob(pairs)), cont=_column(model.continuation.prob()), **ids)
    k, j = (grid.ravel() for grid in np.meshgrid(ranks, np.arange(N_RANKS + 1), indexing="ij"))
    exam = _column(model.examination.prob(model._examination_parameters(k, j))).reshape(N_RANKS, -1)
    return ClickModel("ubm", exam=np.where(j.reshape(exam.shape) < k.reshape(exam.shape), exam, np.nan), **ids)


def _column(values: Any) -> np.ndarray:
    return np.clip(np.asarray(values, np.float64).ravel(), 0, 1)

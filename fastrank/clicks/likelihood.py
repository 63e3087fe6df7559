"""Probabilities of clicks under a model, and how well they foretell a log: `probabilities` and `score`.

Given the clicks above, three kernels serve all models: a product of attraction and examination, the same with the last clicked rank, and a
chain in which the chance that a document is examined moves from rank to rank.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank._kernel import kernel, map_blocks
from fastrank.clicks.blocks import summed
from fastrank.clicks.checks import check_log
from fastrank.clicks.models import ClickModel, find_pairs
from fastrank.clicks.outcome import Outcome
from fastrank.engine.calls import check_threads
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

BLOCK = 1 << 16
# Probabilities are moved into [EPS, 1 - EPS] before their logarithm is taken.
EPS = 1e-6


# --- models as tables -----------------------------------------------------------------------------------------------------------


class Product(NamedTuple):
    """attr[pair] · exam[rank - 1]."""

    attr: np.ndarray
    exam: np.ndarray


class LastClick(NamedTuple):
    """attr[pair] · exam[rank - 1, last clicked rank]."""

    attr: np.ndarray
    exam: np.ndarray


class Chain(NamedTuple):
    """attr[pair] · e; e becomes go_pair[pair] · go_rank[rank - 1] after a click, e · skip · (1 - attr) / (1 - attr · e) after a skip."""

    attr: np.ndarray
    go_pair: np.ndarray
    go_rank: np.ndarray
    skip: float


class Tables(NamedTuple):
    """The parameters of each pair and rank of a log, and which of these the model has: bool[n_pairs], and up to which rank."""

    rule: Product | LastClick | Chain
    seen: np.ndarray
    deepest: int


def tables_of(model: ClickModel, log: ClickLog) -> Tables:
    """The parameters of a model for the documents and ranks of a log."""
    if not isinstance(model, ClickModel):
        raise InputError(f"model must be a ClickModel, not {type(model).__name__}. Make one with fit(log, ...) or ClickModel(...).")
    check_log(log)
    n_ranks = max(log.n_positions, 1)
    unseen_attr, unseen = model.unseen
    seen = np.ones(log.n_pairs, bool)
    attr, sat = np.ones(log.n_pairs), np.zeros(log.n_pairs)
    if model.attr is not None:
        places = find_pairs(model, log)
        seen = places >= 0
        attr = np.where(seen, model.attr[places], unseen_attr) if len(model.attr) else np.full(log.n_pairs, unseen_attr)
        if model.sat is not None:
            sat = np.where(seen, model.sat[places], unseen) if len(model.sat) else np.full(log.n_pairs, unseen)
    ones = np.ones(n_ranks)
    if model.name in ("gctr", "dctr"):
        return Tables(Product(attr, ones if model.exam is None else ones * model.exam[0]), seen, n_ranks)
    if model.name in ("rctr", "pbm"):
        assert model.exam is not None
        return Tables(Product(attr, _up_to(n_ranks, model.exam, unseen)), seen, len(model.exam))
    if model.name == "ubm":
        assert model.exam is not None
        exam = np.full((n_ranks, n_ranks + 1), unseen)
        k = min(n_ranks, len(model.exam))
        exam[:k, : k + 1] = np.where(np.isnan(model.exam[:k, : k + 1]), unseen, model.exam[:k, : k + 1])
        return Tables(LastClick(attr, exam), seen, len(model.exam))
    if model.cont is None:  # cm, sdbn
        return Tables(Chain(attr, 1 - sat if model.name == "sdbn" else np.zeros(log.n_pairs), ones, 1.0), seen, n_ranks)
    if model.name == "dcm":
        return Tables(Chain(attr, np.ones(log.n_pairs), _up_to(n_ranks, model.cont, unseen), 1.0), seen, len(model.cont))
    go = model.cont[0] * (1 - sat) if model.name == "dbn" else model.cont[1] * (1 - attr) + model.cont[2] * attr
    return Tables(Chain(attr, go, ones, float(model.cont[0])), seen, n_ranks)


def _up_to(n_ranks: int, values: np.ndarray, unseen: float) -> np.ndarray:
    """Values by rank, as many as are needed."""
    return np.concatenate([values[:n_ranks], np.full(max(n_ranks - len(values), 0), unseen)])


# --- kernels --------------------------------------------------------------------------------------------------------------------


@kernel
def product_probabilities(
    qd: Any, position: Any, offsets: Any, attr: Any, exam: Any, first: Any, last: Any, base: Any, given: Any, full: Any
) -> None:
    """P(click) of each row of sessions first <= s < last, whatever was clicked above; row i goes to i - base."""
    for i in range(offsets[first], offsets[last]):
        given[i - base] = full[i - base] = attr[qd[i]] * exam[position[i] - 1]


@kernel
def last_click_probabilities(
    qd: Any, position: Any, click: Any, offsets: Any, attr: Any, exam: Any, first: Any, last: Any, base: Any, chance: Any, given: Any,
    full: Any,
) -> None:  # fmt: skip
    """P(click) of each row given the clicks above, and given nothing: a sum over which row was clicked last.

    chance[m] is the probability that the last click so far is on row m of the session, counted from 1; 0 stands for none.
    """
    for s in range(first, last):
        start = offsets[s]
        chance[0] = 1.0
        clicked = 0
        for i in range(start, offsets[s + 1]):
            a, k, n = attr[qd[i]], position[i] - 1, i - start
            given[i - base] = a * exam[k, clicked]
            total = 0.0
            for m in range(n + 1):
                here = chance[m] * a * exam[k, 0 if m == 0 else position[start + m - 1]]
                chance[m] -= here
                total += here
            chance[n + 1] = total
            full[i - base] = total
            if click[i]:
                clicked = position[i]


@kernel
def chain_probabilities(
    qd: Any, position: Any, click: Any, offsets: Any, attr: Any, go_pair: Any, go_rank: Any, skip: Any, first: Any, last: Any, base: Any,
    given: Any, full: Any,
) -> None:  # fmt: skip
    """P(click) of each row given the clicks above, and given nothing, in a chain."""
    for s in range(first, last):
        e = u = 1.0
        for i in range(offsets[s], offsets[s + 1]):
            a = attr[qd[i]]
            go = go_pair[qd[i]] * go_rank[position[i] - 1]
            given[i - base] = a * e
            full[i - base] = a * u
            u *= a * go + (1.0 - a) * skip
            if click[i]:
                e = go
            elif a * e < 1.0:
                e *= skip * (1.0 - a) / (1.0 - a * e)
            else:  # a click was certain and did not come
                e = 0.0


@kernel
def add_logarithms(
    qd: Any, position: Any, click: Any, offsets: Any, weights: Any, seen: Any, deepest: Any, given: Any, full: Any, eps: Any, first: Any,
    last: Any, sums: Any, counts: Any,
) -> None:  # fmt: skip
    """Add up, by rank, sums[k] = weight, log P(what happened given the clicks above), log P(what happened); given and full begin at 0.

    counts: the weight of rows that the model has not seen, and of those whose probability was moved away from 0 or 1.
    """
    base = offsets[first]
    for s in range(first, last):
        w = weights[s]
        for i in range(offsets[s], offsets[s + 1]):
            k = position[i] - 1
            p, q = given[i - base], full[i - base]
            if not seen[qd[i]] or k >= deepest:
                counts[0] += w
            if p < eps or p > 1.0 - eps:
                counts[1] += w
            p, q = min(max(p, eps), 1.0 - eps), min(max(q, eps), 1.0 - eps)
            sums[k, 0] += w
            sums[k, 1] += w * math.log(p if click[i] else 1.0 - p)
            sums[k, 2] += w * math.log(q if click[i] else 1.0 - q)


class Rows(NamedTuple):
    """The arrays of a log that kernels walk. Made before threads start: a log numbers its positions when they are first asked for."""

    qd: np.ndarray
    position: np.ndarray
    click: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, log: ClickLog) -> Rows:
        """The rows of a log."""
        return cls(log.qd, log.position, log.click, log.offsets)


def fill_probabilities(rule: Product | LastClick | Chain, rows: Rows, first: int, last: int, given: np.ndarray, full: np.ndarray) -> None:
    """Probabilities of the rows of sessions first <= s < last, the first of them at 0."""
    base = int(rows.offsets[first])
    if isinstance(rule, Product):
        product_probabilities(rows.qd, rows.position, rows.offsets, *rule, first, last, base, given, full)
    elif isinstance(rule, LastClick):
        chance = np.empty(int(np.diff(rows.offsets[first : last + 1]).max(initial=0)) + 1)
        last_click_probabilities(*rows, *rule, first, last, base, chance, given, full)
    else:
        chain_probabilities(*rows, *rule, first, last, base, given, full)


# --- what is public -------------------------------------------------------------------------------------------------------------


class Probabilities(NamedTuple):
    """P(click) of each row of a log, float64[n_rows]: given the clicks above it in its session, and given nothing but the list."""

    given: np.ndarray
    full: np.ndarray


def probabilities(model: ClickModel, log: ClickLog, *, threads: int | None = None) -> Probabilities:
    """The probability of a click on each row of a log: P(C_k = 1 | C_1 … C_k-1) and P(C_k = 1).

    The second is the first averaged over all that might have been clicked above; `ClickModel` has the formulas. A document or a rank that
    the model has no parameter for gets `model.unseen`. threads: None is every processor; the bits are the same for any number.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: those of `ClickModel`.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, ClickModel, probabilities
    >>> log = ClickLog([0, 2], doc=["a", "b"], click=[1, 0])
    >>> dcm = ClickModel("dcm", attr=[0.4, 0.6], cont=[0.7, 0.5], docs=["a", "b"])
    >>> given, full = probabilities(dcm, log)
    >>> given.round(3).tolist(), full.round(3).tolist()
    ([0.4, 0.42], [0.4, 0.528])
    """
    threads = check_threads(threads)
    rule, rows = tables_of(model, log).rule, Rows.of(log)
    found = Probabilities(np.empty(log.n_rows), np.empty(log.n_rows))

    def work(first: int, last: int) -> None:
        span = slice(int(rows.offsets[first]), int(rows.offsets[last]))
        fill_probabilities(rule, rows, first, last, found.given[span], found.full[span])

    map_blocks(work, log.offsets, documents=BLOCK, threads=threads)
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Score(Outcome):
    """How well a model foretells the clicks of a log. NaN where there is nothing to judge.

    Attributes
    ----------
    ll_doc, ll_session
        Log-likelihood of the clicks, each given those above it: mean over the documents shown, and mean over sessions of their sums. In
        nats; 0 is best.
    ppl, cond_ppl
        Perplexity: the mean over ranks of ppl_at and cond_ppl_at. 1 is best, 2 that of a coin.
    ppl_at, cond_ppl_at
        float64[n_ranks]: 2 to the power of minus the mean of log2 P(what happened at the rank), over the sessions that reach it; with the
        probability given nothing but the list, and given the clicks above.
    n_at
        float64[n_ranks]: the weight of these sessions, their number where the log has no weights.
    unseen
        Share of the rows whose document or rank the model has no parameter for.
    clipped
        Share of the rows whose probability given the clicks above lay outside 1e-6 … 1 - 1e-6 and was moved there. The cascade model says 0
        to every document below the first click.
    """

    ll_doc: float
    ll_session: float
    ppl: float
    ppl_at: np.ndarray
    cond_ppl: float
    cond_ppl_at: np.ndarray
    n_at: np.ndarray
    unseen: float
    clipped: float

    def columns(self) -> dict[str, Any]:
        """Perplexity by position, and the weight of the sessions that reach it."""
        positions = np.arange(1, len(self.n_at) + 1, dtype=np.int32)
        return {"position": positions, "n": self.n_at, "ppl": self.ppl_at, "cond_ppl": self.cond_ppl_at}


def score(model: ClickModel, log: ClickLog, *, threads: int | None = None) -> Score:
    """Log-likelihood and perplexity of a log under a model, best one that it was not fitted to.

    threads: None is every processor; the bits are the same for any number. A model with perplexity B in place of A gains
    (A - B) / (A - 1).

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Chuklin, Markov and de Rijke, Click Models for Web Search, 2015, chapter 5.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, ClickModel, score
    >>> log = ClickLog([0, 2], doc=["a", "b"], click=[1, 0])
    >>> found = score(ClickModel("pbm", attr=[0.4, 0.6], exam=[1, 0.5], docs=["a", "b"]), log)
    >>> round(found.ll_session, 6), round(found.ppl, 6)
    (-1.272966, 1.964286)
    """
    threads = check_threads(threads)
    rule, seen, deepest = tables_of(model, log)
    rows, weights = Rows.of(log), log.weights

    def work(first: int, last: int, sums: np.ndarray) -> None:
        n = int(log.offsets[last] - log.offsets[first])
        given, full = np.empty(n), np.empty(n)
        fill_probabilities(rule, rows, first, last, given, full)
        add_logarithms(*rows, weights, seen, deepest, given, full, EPS, first, last, sums[:-1], sums[-1])

    sums = summed(log.offsets, (log.n_positions + 1, 3), work, threads)
    n_at, given_at, full_at = sums[:-1].T.copy()
    n_rows, likelihood = float(n_at.sum()), float(given_at.sum())
    with np.errstate(invalid="ignore", divide="ignore"):
        ppl_at, cond_ppl_at = np.exp(-full_at / n_at), np.exp(-given_at / n_at)
        ll_doc, ll_session = (float(np.float64(likelihood) / n) for n in (n_rows, weights.sum()))
        unseen, clipped = (sums[-1, :2] / n_rows).tolist()
    reached = n_at > 0
    ppl, cond_ppl = (float(at[reached].mean()) if reached.any() else math.nan for at in (ppl_at, cond_ppl_at))
    return Score(ll_doc, ll_session, ppl, ppl_at, cond_ppl, cond_ppl_at, n_at, unseen, clipped)

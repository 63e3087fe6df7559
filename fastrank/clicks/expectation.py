"""One step of expectation and maximisation for the click models with hidden states: pbm, ubm, dbn and ccm.

A step takes the parameters as one vector and gives the next one, and the log posterior of the one it took. What is certain was counted
once; only skips are walked. Blocks of pairs or queries are fixed by the data and their sums are added in order, so the bits do not depend
on the number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import kernel
from fastrank.clicks.blocks import summed
from fastrank.clicks.counting import count_kinds

if TYPE_CHECKING:
    from fastrank.clicks.cells import Cells
    from fastrank.clicks.counting import Tails

# Pseudo-counts (yes, no); of the attraction, and of all other parameters.
Prior = tuple[float, float]
Priors = tuple[Prior, Prior]


class Trials:
    """Probabilities of one kind: how often each came true and how often it was tried, pseudo-counts (yes, no) included.

    times: for how many parameters with the same counts each stands.
    """

    def __init__(self, yes: np.ndarray, total: np.ndarray, prior: Prior, times: np.ndarray | float = 1.0) -> None:
        yes, total = yes + prior[0], total + (prior[0] + prior[1])
        # What was never tried is 1/2.
        self._dividend, self._divisor = np.where(total > 0, yes, 0.5), np.where(total > 0, total, 1.0)
        self._yes, self._no = times * yes, times * prior[1]

    def estimate(self, hidden: np.ndarray | float = 0.0) -> np.ndarray:
        """The share that came true, what is expected of hidden trials included."""
        return (self._dividend + hidden) / self._divisor

    def log_sum(self, p: np.ndarray) -> float:
        """The log probability of what came true, and of the pseudo-counts of no."""
        return log_sum(self._yes, p) + log_sum(self._no, 1.0 - p)


def log_sum(counts: np.ndarray | float, p: np.ndarray) -> float:
    """The sum of counts times log p, where a count of 0 is worth 0."""
    if isinstance(counts, float):
        return counts * float(np.log(p).sum()) if counts else 0.0
    if counts.min(initial=1.0) > 0:
        return float(np.einsum("i,i->", counts, np.log(p)))
    used = counts > 0
    return float(np.einsum("i,i->", counts[used], np.log(p[used])))


# --- pbm and ubm ----------------------------------------------------------------------------------------------------------------


@kernel
def skip_expectations(
    offsets: Any, exam_of: Any, skips: Any, times: Any, attr: Any, exam: Any, first: Any, last: Any, base: Any, chances: Any, attr_out: Any,
    exam_out: Any,
) -> None:  # fmt: skip
    """Expected attractions behind the skips of kinds first <= p < last of pairs, and examinations; chances[c - base]: of a skip in cell c.

    P(attractive | skip) = attr (1 - exam) / (1 - attr · exam), and alike for examined. exam_out is to be multiplied by exam.
    """
    for p in range(first, last):
        a = attr[p]
        attractive, unattractive = 0.0, times[p] * (1.0 - a)
        for c in range(offsets[p], offsets[p + 1]):
            e = exam[exam_of[c]]
            chance = 1.0 - a * e
            chances[c - base] = chance
            z = skips[c] / chance
            attractive += z * (1.0 - e)
            exam_out[exam_of[c]] += z * unattractive
        attr_out[p] = attractive * a


class CellSteps:
    """Steps for attraction times examination, over the cells of a log: what one pair got under one examination parameter.

    The vector holds the attraction of each kind of pairs, then the examination parameters: of rank k, or, for cells with the rank clicked
    last before, of k and j at k (k - 1) / 2 + j.
    """

    def __init__(self, cells: Cells, n_ranks: int, priors: Priors, threads: int | None) -> None:
        rank, n_exam = cells.position.astype(np.int64), n_ranks
        parameter = rank - 1
        if cells.previous is not None:
            parameter, n_exam = rank * (rank - 1) // 2 + cells.previous, n_ranks * (n_ranks + 1) // 2
        self.n_ranks, self.n_exam, self.by_click = n_ranks, n_exam, cells.previous is not None
        self.exam = Trials(np.bincount(parameter, cells.clicks, n_exam), np.bincount(parameter, cells.n, n_exam), priors[1])
        self.kinds = count_kinds(cells.start, parameter, cells.n, cells.clicks)
        clicks, rows = (np.bincount(cells.group, of, len(self.kinds.of))[self.kinds.pair] for of in (cells.clicks, cells.n))
        self.attr = Trials(clicks, rows, priors[0], self.kinds.times)
        # A click says all there is to say; skips leave something open.
        sizes = np.diff(cells.start)[self.kinds.pair]
        mine = np.repeat(cells.start[self.kinds.pair] - np.cumsum(sizes) + sizes, sizes) + np.arange(sizes.sum())
        skips = (cells.n - cells.clicks)[mine]
        left = skips > 0
        self._offsets = np.append(0, np.cumsum(left))[np.append(0, np.cumsum(sizes))]
        self._cells = self._offsets, parameter[mine][left].astype(np.int32), skips[left], self.kinds.times
        self._weights = (skips * np.repeat(self.kinds.times, sizes))[left]
        self._threads = threads

    def start(self) -> np.ndarray:
        """Every probability 1/2."""
        return np.full(len(self.kinds.pair) + self.n_exam, 0.5)

    def step(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The next parameters, and the log posterior of these."""
        n_kinds = len(self.kinds.pair)
        attr, exam = x[:n_kinds], x[n_kinds:]
        attractive = np.empty(n_kinds)

        def work(first: int, last: int, sums: np.ndarray) -> None:
            base, stop = int(self._offsets[first]), int(self._offsets[last])
            chances = np.empty(stop - base)
            skip_expectations(*self._cells, attr, exam, first, last, base, chances, attractive, sums)
            sums[-1] = log_sum(self._weights[base:stop], chances)

        sums = summed(self._offsets, (self.n_exam + 1,), work, self._threads)
        objective = float(sums[-1]) + self.attr.log_sum(attr) + self.exam.log_sum(exam)
        return np.concatenate([self.attr.estimate(attractive), self.exam.estimate(sums[:-1] * exam)]), objective

    def parameters(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters by name."""
        n_kinds, k = len(self.kinds.pair), self.n_ranks
        attr, exam = x[:n_kinds][self.kinds.of], x[n_kinds:]
        if self.by_click:
            table = np.full((k, k + 1), np.nan)
            table[np.tri(k, k + 1) > 0] = exam
            exam = table
        return {"attr": attr, "exam": exam}


# --- dbn and ccm ----------------------------------------------------------------------------------------------------------------


@kernel
def tail_expectations(
    offsets: Any, pairs: Any, head: Any, weight: Any, attr: Any, go: Any, skip: Any, first: Any, last: Any, ahead: Any, unseen: Any,
    went_on: Any, stopped: Any, sums: Any,
) -> None:  # fmt: skip
    """Forward and backward through the tails first <= t < last.

    ahead[j] is the chance of the skips from the j-th on, if it is examined: b = (1 - attr) (skip · b' + 1 - skip). f is the chance that it
    is examined and all above it were skipped. After the click above, the user goes on with chance go.
    unseen[p]: the expected number of skips of pair p that were not examined. went_on[p] · go and stopped[p] · (1 - go): what the user did
    after a last click on p. sums[0] · skip and sums[1] · (1 - skip): the same after skips. sums[2]: log-likelihood.
    """
    for t in range(first, last):
        start, stop, w, clicked = offsets[t], offsets[t + 1], weight[t], head[t]
        b = 1.0
        for i in range(stop - 1, start - 1, -1):
            b = (1.0 - attr[pairs[i]]) * (skip * b + (1.0 - skip))
            ahead[i - start] = b
        f, likelihood = 1.0, b
        if clicked >= 0:
            f = go[clicked]
            likelihood = f * b + (1.0 - f)
        share = w / likelihood
        if clicked >= 0:
            went_on[clicked] += share * b
            stopped[clicked] += share
        sums[2] += w * math.log(likelihood)
        for i in range(start, stop):
            unseen[pairs[i]] += w - share * f * ahead[i - start]
            f *= 1.0 - attr[pairs[i]]
            if i + 1 < stop:  # nobody saw what lies below the last row
                sums[0] += share * f * ahead[i + 1 - start]
                sums[1] += share * f
            f *= skip


@dataclass(frozen=True, eq=False)
class Places:
    """Per pair: skips above the last click, clicks above the last one, last clicks, and the other skips."""

    passed: np.ndarray
    clicked: np.ndarray
    last: np.ndarray
    below: np.ndarray


@dataclass(frozen=True, eq=False)
class _Seen:
    """What one pass over the tails expects; see `tail_expectations`."""

    attractive: np.ndarray
    went_on: np.ndarray
    stopped: np.ndarray
    skip_on: float
    skip_stop: float
    likelihood: float


class _TailSteps:
    """What the chains share: the vector begins with the attraction of each pair."""

    def __init__(self, tails: Tails, places: Places, priors: Priors, threads: int | None) -> None:
        self.tails, self.places, self.priors = tails, places, priors
        self.n_pairs = len(places.last)
        self.clicks = places.clicked + places.last
        self.rows = self.clicks + places.passed + places.below
        self.n_passed = float(places.passed.sum())
        # Clicks with a row below them.
        self.followed = self.clicks - tails.at_end
        self._by_query, self._threads = tails.offsets[tails.by_query], threads
        self._longest = int(np.diff(tails.offsets).max(initial=0))

    def pass_over(self, attr: np.ndarray, go: np.ndarray, skip: float) -> _Seen:
        """Expectations, and the log-likelihood of all clicks."""
        tails, places = self.tails, self.places
        unseen, went_on, stopped = np.zeros((3, self.n_pairs))

        def work(first: int, last: int, sums: np.ndarray) -> None:
            rows = (tails.offsets, tails.pairs, tails.head, tails.weight, attr, go, skip)
            span = int(tails.by_query[first]), int(tails.by_query[last])
            tail_expectations(*rows, *span, np.empty(self._longest), unseen, went_on, stopped, sums)

        skip_on, skip_stop, hidden = summed(self._by_query, (3,), work, self._threads).tolist()
        counted = log_sum(self.clicks, attr) + log_sum(places.passed, 1.0 - attr) + log_sum(places.clicked, go)
        passed = self.n_passed * math.log(skip) if self.n_passed else 0.0
        return _Seen(unseen * attr, went_on, stopped, skip_on * skip, skip_stop * (1.0 - skip), hidden + counted + passed)


class DbnSteps(_TailSteps):
    """Steps for the dynamic Bayesian network: attraction and satisfaction of each pair, and continuation unless it is given."""

    def __init__(self, *arguments: Any, gamma: float | None) -> None:
        super().__init__(*arguments)
        self.gamma = gamma
        self.attr = Trials(self.clicks, self.rows, self.priors[0])
        self.sat = Trials(np.zeros(self.n_pairs), self.clicks, self.priors[1])

    def start(self) -> np.ndarray:
        """Every probability 1/2."""
        return np.full(2 * self.n_pairs + (self.gamma is None), 0.5)

    def step(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The next parameters, and the log posterior of these."""
        n = self.n_pairs
        attr, sat, gamma = x[:n], x[n : 2 * n], float(x[-1]) if self.gamma is None else self.gamma
        seen = self.pass_over(attr, gamma * (1.0 - sat), gamma)
        content = sat * (seen.stopped + self.tails.at_end)
        objective = seen.likelihood + log_prior(attr, self.priors[0]) + log_prior(sat, self.priors[1])
        parts = [self.attr.estimate(seen.attractive), self.sat.estimate(content)]
        if self.gamma is None:
            objective += log_prior(x[-1:], self.priors[1])
            on = self.n_passed + float(self.places.clicked.sum()) + gamma * float(((1.0 - sat) * seen.went_on).sum()) + seen.skip_on
            off = (1.0 - gamma) * float(((1.0 - sat) * seen.stopped).sum()) + seen.skip_stop
            parts.append(_continuation(np.array([on]), np.array([off]), self.priors[1]))
        return np.concatenate(parts), objective

    def parameters(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters by name."""
        n = self.n_pairs
        return {"attr": x[:n], "sat": x[n : 2 * n], "cont": x[2 * n :] if self.gamma is None else np.array([self.gamma])}


class CcmSteps(_TailSteps):
    """Steps for the click chain model: the attraction of each pair, then the three continuations.

    Whether a click satisfied is one more trial of the attraction, which the user's going on tells of; a click on the last row has none.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.attr = Trials(self.clicks, self.rows + self.followed, self.priors[0])

    def start(self) -> np.ndarray:
        """Every probability 1/2."""
        return np.full(self.n_pairs + 3, 0.5)

    def step(self, x: np.ndarray) -> tuple[np.ndarray, float]:
        """The next parameters, and the log posterior of these."""
        attr, (skip, on, on_content) = x[:-3], x[-3:].tolist()
        content, other = attr * on_content, (1.0 - attr) * on
        go = content + other
        seen = self.pass_over(attr, go, skip)
        # Per pair, how often the user went on after a click, for one unit of content + other.
        went_on = seen.went_on + np.divide(self.places.clicked, go, out=np.zeros(self.n_pairs), where=self.places.clicked > 0)
        stayed, left = content * went_on, attr * (1.0 - on_content) * seen.stopped
        moved, gone = other * went_on, (1.0 - attr) * (1.0 - on) * seen.stopped
        yes = np.array([self.n_passed + seen.skip_on, float(moved.sum()), float(stayed.sum())])
        no = np.array([seen.skip_stop, float(gone.sum()), float(left.sum())])
        objective = seen.likelihood + log_prior(attr, self.priors[0]) + log_prior(x[-3:], self.priors[1])
        attraction = self.attr.estimate(seen.attractive + stayed + left)
        return np.concatenate([attraction, _continuation(yes, no, self.priors[1])]), objective

    def parameters(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters by name."""
        return {"attr": x[:-3], "cont": x[-3:]}


def _continuation(yes: np.ndarray, no: np.ndarray, prior: Prior) -> np.ndarray:
    """How often users went on. Never quite 1, which would leave a long list without clicks without any explanation."""
    return np.minimum(Trials(yes, yes + no, prior).estimate(), 1.0 - 2.0**-53)


def log_prior(p: np.ndarray, prior: Prior) -> float:
    """The log density of pseudo-counts, without its constant."""
    return log_sum(prior[0], p) + log_sum(prior[1], 1.0 - p)

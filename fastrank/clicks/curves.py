"""Kernels of the conditional-Poisson estimate of position propensities.

Cells (stratum g, position k, shown n, clicked c), of which stratum g has start[g] to start[g + 1]; theta per
position; w_k = n_k theta_k / T, with T = Σ n_j theta_j over the stratum.
"""

from __future__ import annotations

import math
from typing import Any

from fastrank._kernel import kernel


@kernel
def link_positions(start: Any, position: Any, clicks: Any, first: Any, last: Any, out: Any) -> None:
    """out[j, i] becomes 1 where a stratum shows j and has a click at i: the odds of i to j are then above 0."""
    for g in range(first, last):
        for a in range(start[g], start[g + 1]):
            if clicks[a] > 0:
                for b in range(start[g], start[g + 1]):
                    out[position[b], position[a]] = 1


@kernel
def expected_shares(start: Any, position: Any, n: Any, clicks: Any, theta: Any, first: Any, last: Any, out: Any) -> None:
    """Add to out[k] the denominator of the MM step: Σ over strata of C n_k / T, where C is the stratum's number of clicks."""
    for g in range(first, last):
        total = clicked = 0.0
        for a in range(start[g], start[g + 1]):
            total += n[a] * theta[position[a]]
            clicked += clicks[a]
        for a in range(start[g], start[g + 1]):
            out[position[a]] += clicked * n[a] / total


@kernel
def likelihood_of(start: Any, position: Any, n: Any, clicks: Any, theta: Any, first: Any, last: Any, out: Any) -> None:
    """Add the log-likelihood Σ c log w to out[0]."""
    for g in range(first, last):
        total = 0.0
        for a in range(start[g], start[g + 1]):
            total += n[a] * theta[position[a]]
        for a in range(start[g], start[g + 1]):
            if clicks[a] > 0:
                out[0] += clicks[a] * math.log(n[a] * theta[position[a]] / total)


@kernel
def slopes_of(start: Any, position: Any, n: Any, clicks: Any, theta: Any, first: Any, last: Any, slope: Any, curvature: Any) -> None:
    """Add the gradient in log theta, Σ c - C w, and its negative derivative, Σ C (diag w - w w')."""
    for g in range(first, last):
        total = clicked = 0.0
        for a in range(start[g], start[g + 1]):
            total += n[a] * theta[position[a]]
            clicked += clicks[a]
        for a in range(start[g], start[g + 1]):
            k = position[a]
            w = n[a] * theta[k] / total
            slope[k] += clicks[a] - clicked * w
            curvature[k, k] += clicked * w
            for b in range(start[g], start[g + 1]):
                curvature[k, position[b]] -= clicked * w * n[b] * theta[position[b]] / total


@kernel
def square_scores(
    order: Any, bounds: Any, offsets: Any, stratum: Any, position: Any, click: Any, weight: Any, scale: Any, theta: Any, start: Any,
    cell: Any, share: Any, total: Any, rate: Any, mark: Any, held: Any, touched: Any, score: Any, first: Any, last: Any, out: Any,
) -> None:  # fmt: skip
    """Add the outer products of the clusters' scores. Cluster u has the sessions order[bounds[u]] to order[bounds[u + 1]].

    Within cluster u and stratum g let C and T be the clicks and the exposure Σ theta, e the exposure of each position over T, and r the
    stratum's rate. The score is Σ c (position) - C e, the contrast within the cluster, plus (C - r T) (e - w). The stratum's rate follows
    its own clusters, which shrinks C - r T: `_widened` undoes that.
    held[0], held[1]: C and T per stratum; mark: the cluster (+ 1) they are of, negative once its shares were taken off; touched: positions.
    """
    for u in range(first, last):
        for at in range(bounds[u], bounds[u + 1]):
            _add_exposure(offsets, order[at], stratum, position, click, weight, theta, mark, held, u + 1)
        n_touched = 0
        for at in range(bounds[u], bounds[u + 1]):
            s = order[at]
            for i in range(offsets[s], offsets[s + 1]):
                g, k = stratum[i], position[i]
                if g < 0:
                    continue
                gap = _widened(held[0, g] - rate[g] * held[1, g], held[1, g] / total[g])
                n_touched = _add_score(score, touched, n_touched, k, weight[s] * (click[i] + theta[k] / held[1, g] * (gap - held[0, g])))
                if mark[g] > 0:
                    mark[g] = -mark[g]
                    for a in range(start[g], start[g + 1]):
                        n_touched = _add_score(score, touched, n_touched, cell[a], -gap * share[a])
        for x in range(n_touched):
            for y in range(n_touched):
                out[touched[x], touched[y]] += scale[u] * score[0, touched[x]] * score[0, touched[y]]
        for x in range(n_touched):
            score[0, touched[x]] = score[1, touched[x]] = 0.0


@kernel
def _add_exposure(
    offsets: Any, s: Any, stratum: Any, position: Any, click: Any, weight: Any, theta: Any, mark: Any, held: Any, u: Any
) -> None:
    """Add the clicks and the exposure of a session's rows to their strata."""
    for i in range(offsets[s], offsets[s + 1]):
        g = stratum[i]
        if g < 0:
            continue
        if mark[g] != u:
            mark[g] = u
            held[0, g] = held[1, g] = 0.0
        held[0, g] += weight[s] * click[i]
        held[1, g] += weight[s] * theta[position[i]]


@kernel
def _add_score(score: Any, touched: Any, n_touched: Any, k: Any, value: Any) -> Any:
    """Add to the score of a position and list it when it is new; returns how many are listed."""
    score[0, k] += value
    if score[1, k] == 0.0:
        score[1, k] = 1.0
        touched[n_touched] = k
        n_touched += 1
    return n_touched


@kernel
def _widened(gap: Any, part: Any) -> Any:
    """A residual over the root of 1 - its cluster's part of the stratum, as its variance shrank by that; below one percent as it is.

    A cluster that is all of its stratum has no residual.
    """
    if part > 1.0 - 1e-9:
        return 0.0
    return gap / math.sqrt(1.0 - part) if part > 0.01 else gap

"""Kernels of LambdaRank: each query's documents in rank order, then the pairs of unlike value, a row of them at a time.

A row is one document, the source, against all of smaller value that it meets: |change of the metric| first, then gradients. Its loops
run over neighbouring memory without branches, so they run in vector registers; and a query with few relevant documents has few rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrank._kernel import kernel

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)

# Up to this many documents ranks are counted, each document against those before it; a longer list is sorted.
COUNTED = 96
# Rows of the scratch space of `pair_gradients`, each as long as the longest list.
SCRATCH = 10
# Places in this row are what kernels know a metric by.
METRICS = ("ndcg", "pairwise", "map", "mrr", "err")


@kernel
def _order(scores: Any, start: int, n: int, counted: int, order: Any, rank: Any) -> None:
    """order[r] = the document at rank r, counted from 0: scores descending, equal ones as they stand. rank is scratch."""
    if n <= counted:
        for i in range(n):
            rank[i] = 0
        for i in range(1, n):
            x = scores[start + i]
            above = 0
            for j in range(i):
                before: Any = np.int64(scores[start + j] >= x)
                above += before
                rank[j] += 1 - before
            rank[i] = above
        for i in range(n):
            order[rank[i]] = i
        return
    for i in range(n):
        order[i] = i
    width = 1
    while width < n:
        for low in range(0, n, 2 * width):
            middle, high = min(low + width, n), min(low + 2 * width, n)
            i, j = low, middle
            for out in range(low, high):
                if i < middle and (j >= high or scores[start + order[i]] >= scores[start + order[j]]):
                    rank[out] = order[i]
                    i += 1
                else:
                    rank[out] = order[j]
                    j += 1
        order[:n] = rank[:n]
        width *= 2


@kernel
def _prepare(metric: int, n: int, value: Any, one: Any, two: Any) -> None:
    """What the change of a metric is looked up in. AP: sum of 1 / rank over the relevant, and their number, down to each rank.

    RR: the first and the second relevant rank, from 0. ERR: the chance to come to each rank.
    """
    if metric == 2:
        total, met = 0.0, 0.0
        for r in range(n):
            total += value[r] / (r + 1.0)
            met += value[r]
            one[r], two[r] = total, met
    elif metric == 3:
        one[0], two[0] = n, n
        for r in range(n - 1, -1, -1):
            if value[r] > 0.0:
                two[0], one[0] = one[0], r
    elif metric == 4:
        there = 1.0
        for r in range(n):
            one[r] = there
            there *= 1.0 - value[r]


@kernel
def _gain_row(i: int, stop: int, inverse: float, value: Any, discount: Any, change: Any) -> None:
    """|Change of NDCG| as document i and one of smaller gain exchange their ranks: difference of gains x of discounts / ideal."""
    x, d = value[i], discount[i]
    for b in range(stop):
        change[b] = max(x - value[b], 0.0) * abs(d - discount[b]) * inverse


@kernel
def _precision_row(i: int, stop: int, inverse: float, value: Any, sums: Any, met: Any, change: Any) -> None:
    """|Change of AP|: the two precisions at the ranks exchanged, and 1 / rank for every relevant document between."""
    for b in range(stop):
        between = sums[i - 1] - sums[b] if b < i else sums[max(b - 1, i)] - sums[i]
        here = met[i] / (i + 1.0)
        there = (met[b] + 1.0) / (b + 1.0) if b < i else met[b] / (b + 1.0)
        moved = there + between - here if b < i else here - there + between
        change[b] = abs(moved) * inverse if value[b] < value[i] else 0.0


@kernel
def _first_row(i: int, stop: int, value: Any, first: float, second: float, change: Any) -> None:
    """|Change of RR|: the first relevant rank moves up, or down to the next one."""
    for b in range(stop):
        moved = 0.0
        if b < first:
            moved = 1.0 / (b + 1.0) - 1.0 / (first + 1.0)
        elif i == first:
            moved = 1.0 / (first + 1.0) - 1.0 / (min(float(b), second) + 1.0)
        change[b] = moved if value[b] < value[i] else 0.0


@kernel
def _cascade_row(i: int, stop: int, value: Any, reached: Any, change: Any) -> None:
    """|Change of ERR|: reached(a) |p_a - p_b| (1/a - what is gained between them - the chance to come from a to b / b), a above b."""
    gained, passed = 0.0, 1.0
    for b in range(i + 1, stop):
        moved = reached[i] * (1.0 / (i + 1.0) - gained - passed / (b + 1.0))
        change[b] = max(value[i] - value[b], 0.0) * abs(moved)
        gained += passed * value[b] / (b + 1.0)
        passed *= 1.0 - value[b]
    gained, passed = 0.0, 1.0
    for a in range(i - 1, -1, -1):
        if a < stop:
            moved = reached[a] * (1.0 / (a + 1.0) - gained - passed / (i + 1.0))
            change[a] = max(value[i] - value[a], 0.0) * abs(moved)
        gained = value[a] / (a + 1.0) + (1.0 - value[a]) * gained
        passed *= 1.0 - value[a]


@kernel
def _change_row(metric: int, i: int, stop: int, inverse: float, value: Any, discount: Any, one: Any, two: Any, change: Any) -> None:
    """change[b] = |change of the metric| as document i and document b exchange their ranks; 0 where b's value is not smaller."""
    if metric == 0:
        _gain_row(i, stop, inverse, value, discount, change)
    elif metric == 1:
        for b in range(stop):
            change[b] = 1.0 if value[b] < value[i] else 0.0
    elif metric == 2:
        _precision_row(i, stop, inverse, value, one, two, change)
    elif metric == 3:
        _first_row(i, stop, value, one[0], two[0], change)
    else:
        _cascade_row(i, stop, value, one, change)
    if i < stop:
        change[i] = 0.0


@kernel
def _near_row(i: int, stop: int, level: float, slope: float, floor: float, score: Any, power: Any, change: Any, grad: Any, hess: Any,
              x: Any, y: Any) -> None:  # fmt: skip
    """Add a row to the documents of smaller value and leave its terms in x and y. power = exp(sigma x score), so rho is a quotient.

    One division a pair: w = 1 / ((e_i + e_b) (level + slope |s_i - s_b|)) gives both 1 / (e_i + e_b) and the score norm.
    """
    s, e = score[i], power[i]
    for b in range(stop):
        apart = level + slope * abs(s - score[b])
        both = e + power[b]
        w = 1.0 / (both * apart)
        rho = power[b] * w * apart
        size = change[b] * w * both
        x[b] = rho * size
        y[b] = max(rho * (e * w * apart), floor) * size
        grad[b] += x[b]
        hess[b] += y[b]


@kernel
def _near_gain_row(i: int, stop: int, inverse: float, level: float, slope: float, floor: float, value: Any, discount: Any, score: Any,
                   power: Any, grad: Any, hess: Any, x: Any, y: Any) -> None:  # fmt: skip
    """`_gain_row` and `_near_row` in one loop."""
    v, d, s, e = value[i], discount[i], score[i], power[i]
    for b in range(stop):
        apart = level + slope * abs(s - score[b])
        both = e + power[b]
        w = 1.0 / (both * apart)
        rho = power[b] * w * apart
        size = max(v - value[b], 0.0) * abs(d - discount[b]) * inverse * w * both
        x[b] = rho * size
        y[b] = max(rho * (e * w * apart), floor) * size
        grad[b] += x[b]
        hess[b] += y[b]


@kernel
def _far_row(i: int, stop: int, sigma: float, level: float, slope: float, floor: float, score: Any, change: Any, grad: Any, hess: Any,
             x: Any, y: Any) -> None:  # fmt: skip
    """`_near_row` for scores so far apart that their powers are no doubles."""
    for b in range(stop):
        apart = score[i] - score[b]
        small = math.exp(-abs(sigma * apart))
        rho = small / (1.0 + small) if apart > 0.0 else 1.0 / (1.0 + small)
        size = change[b] / (level + slope * abs(apart))
        x[b] = rho * size
        y[b] = max(small / ((1.0 + small) * (1.0 + small)), floor) * size
        grad[b] += x[b]
        hess[b] += y[b]


@kernel
def _sum(x: Any, stop: int) -> Any:
    """The sum of the first numbers of an array, in eight chains, so that additions need not wait for one another."""
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    whole = stop - stop % 8
    for i in range(0, whole, 8):
        a, b, c, d = a + x[i], b + x[i + 1], c + x[i + 2], d + x[i + 3]
        e, f, g, h = e + x[i + 4], f + x[i + 5], g + x[i + 6], h + x[i + 7]
    for i in range(whole, stop):
        a += x[i]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@kernel
def _cost(z: float, size: float, by: float, here: int, there: int, plus: Any, minus: Any, costs: Any) -> Any:
    """The loss size x log(1 + exp(z)) / by of a pair, and its share at the positions of both, each rid of the other's propensity."""
    cost = (max(z, 0.0) + math.log1p(math.exp(-abs(z)))) * size / by
    costs[0, here] += cost * minus[there]
    costs[1, there] += cost * plus[here]
    return cost * plus[here] * minus[there]


@kernel
def _cost_row(i: int, stop: int, slope_of_cost: float, level: float, slope: float, score: Any, change: Any, order: Any, start: int,
              position: Any, plus: Any, minus: Any, costs: Any) -> Any:  # fmt: skip
    """The loss of a row, pair by pair."""
    loss = 0.0
    for b in range(stop):
        if change[b] > 0.0:
            apart = score[i] - score[b]
            here, there = position[start + order[i]], position[start + order[b]]
            loss += _cost(slope_of_cost * apart, change[b], level + slope * abs(apart), here, there, plus, minus, costs)
    return loss


@kernel
def _unbias_row(i: int, stop: int, order: Any, start: int, position: Any, plus: Any, minus: Any, change: Any) -> None:
    """Divide by the propensities of the two positions (given as their inverses)."""
    weight = plus[position[start + order[i]]]
    for b in range(stop):
        change[b] *= weight * minus[position[start + order[b]]]


@kernel
def _fill(scores: Any, values: Any, start: int, n: int, sigma: float, order: Any, value: Any, score: Any, power: Any, grad: Any,
          hess: Any) -> Any:  # fmt: skip
    """Lay a query out in rank order. Returns the smallest value."""
    for r in range(n):
        value[r], score[r] = values[start + order[r]], scores[start + order[r]]
        grad[r], hess[r] = 0.0, 0.0
    middle = score[0] + 0.5 * (score[n - 1] - score[0])
    lowest = value[0]
    for r in range(n):
        power[r] = np.exp(sigma * (score[r] - middle))  # infinite where far apart, and then not used
        lowest = min(lowest, value[r])
    return lowest


@kernel
def _write(start: int, n: int, order: Any, grad: Any, hess: Any, total: float, sigma: float, log_norm: bool, plain_norm: float,
           hess_scale: float, out_grad: Any, out_hess: Any) -> None:  # fmt: skip
    """Put gradients back where their documents stand, times the norm of the query: by total, the sum of its pulls, or plain_norm."""
    pulled = total * (2.0 * sigma)
    norm = math.log2(1.0 + pulled) / pulled if log_norm and pulled > 0.0 else plain_norm
    steep, curved = sigma * norm, sigma * sigma * hess_scale * norm
    for r in range(n):
        d = start + order[r]
        out_grad[d], out_hess[d] = grad[r] * steep, hess[r] * curved


@kernel
def _gain_rows(top: int, bottom: int, stop: int, lowest: float, near: bool, inverse: float, sigma: float, level: float, slope: float,
               floor: float, value: Any, discount: Any, score: Any, power: Any, change: Any, grad: Any, hess: Any, x: Any,
               y: Any) -> Any:  # fmt: skip
    """Add the rows of sources from top to bottom. That they all stop at one place lets the compiler check once that arrays lie apart."""
    total = 0.0
    for i in range(top, bottom):
        if value[i] == lowest:
            continue
        if near:
            _near_gain_row(i, stop, inverse, level, slope, floor, value, discount, score, power, grad, hess, x, y)
        else:
            _gain_row(i, stop, inverse, value, discount, change)
            _far_row(i, stop, sigma, level, slope, floor, score, change, grad, hess, x, y)
        row = _sum(x, stop)
        grad[i] -= row
        hess[i] += _sum(y, stop)
        total += row
    return total


@kernel
def gain_gradients(
    scores: Any, values: Any, inverse: Any, offsets: Any, discount: Any, truncation: int, sigma: float, slope: float, floor: float,
    log_norm: bool, hess_scale: float, counted: int, first: int, last: int, order: Any, spare: Any, scratch: Any,
    out_grad: Any, out_hess: Any,
) -> None:  # fmt: skip
    """`pair_gradients` of NDCG without propensities and costs: most of all training, and half the time."""
    value, score, power, grad, hess, change, x, y = (
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[8], scratch[9]
    )  # fmt: skip
    for q in range(first, last):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        if inverse[q] == 0.0:
            out_grad[start : start + n] = out_hess[start : start + n] = 0.0
            continue
        _order(scores, start, n, counted, order, spare)
        lowest = _fill(scores, values, start, n, sigma, order, value, score, power, grad, hess)
        apart = score[0] - score[n - 1]
        level, steep = (0.01, slope) if slope > 0.0 and apart > 0.0 else (1.0, 0.0)
        near = sigma * apart <= 1200.0  # exp(600) times what else there may be is still a double
        met = min(truncation, n)
        total = _gain_rows(
            0, met, n, lowest, near, inverse[q], sigma, level, steep, floor, value, discount, score, power, change, grad, hess, x, y
        )  # fmt: skip
        total += _gain_rows(
            met, n, met, lowest, near, inverse[q], sigma, level, steep, floor, value, discount, score, power, change, grad, hess, x, y
        )  # fmt: skip
        _write(start, n, order, grad, hess, total, sigma, log_norm, 1.0, hess_scale, out_grad, out_hess)


@kernel
def pair_gradients(
    scores: Any, values: Any, inverse: Any, offsets: Any, metric: int, discount: Any, truncation: int, sigma: float, slope: float,
    floor: float, log_norm: bool, hess_scale: float, position: Any, plus: Any, minus: Any, cost_slope: float, counted: int,
    first: int, last: int, order: Any, spare: Any, scratch: Any, out_grad: Any, out_hess: Any, costs: Any, loss: Any,
) -> None:  # fmt: skip
    """Fill the gradients of queries first <= q < last. inverse[q] = 0 leaves a query out. position is empty without propensities."""
    value, score, power, grad, hess, change, one, two, x, y = (
        scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[5], scratch[6], scratch[7], scratch[8], scratch[9]
    )  # fmt: skip
    for q in range(first, last):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        if inverse[q] == 0.0:
            out_grad[start : start + n] = out_hess[start : start + n] = 0.0
            continue
        _order(scores, start, n, counted, order, spare)
        lowest = _fill(scores, values, start, n, sigma, order, value, score, power, grad, hess)
        _prepare(metric, n, value, one, two)
        apart = score[0] - score[n - 1]
        level, steep = (0.01, slope) if slope > 0.0 and apart > 0.0 else (1.0, 0.0)
        total = 0.0
        for i in range(n):
            if value[i] == lowest:
                continue
            stop = n if i < truncation else min(truncation, n)
            _change_row(metric, i, stop, inverse[q], value, discount, one, two, change)
            if costs.shape[1] > 0:
                loss[q] += _cost_row(i, stop, cost_slope, level, steep, score, change, order, start, position, plus, minus, costs)
            if position.shape[0] > 0:
                _unbias_row(i, stop, order, start, position, plus, minus, change)
            if sigma * apart <= 1200.0:  # exp(600) times what else there may be is still a double
                _near_row(i, stop, level, steep, floor, score, power, change, grad, hess, x, y)
            else:
                _far_row(i, stop, sigma, level, steep, floor, score, change, grad, hess, x, y)
            row = _sum(x, stop)
            grad[i] -= row
            hess[i] += _sum(y, stop)
            total += row
        _write(start, n, order, grad, hess, total, sigma, log_norm, 1.0, hess_scale, out_grad, out_hess)


@kernel
def ideal_sums(
    values: Any, offsets: Any, discount: Any, cutoff: int, counted: int, first: int, last: int, order: Any, spare: Any, out: Any
) -> None:
    """out[q] = sum of values x discounts of the first ranks in the best order; 0 where all values of a query are the same."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        total = 0.0
        same = True
        for i in range(start + 1, stop):
            same &= values[i] == values[start]
        if not same and stop - start <= counted:
            for i in range(start, stop):
                x = values[i]
                if x != 0.0:
                    above = 0
                    for j in range(start, stop):
                        above += values[j] > x
                    for j in range(start, i):
                        above += values[j] == x
                    total += x * discount[above] if above < cutoff else 0.0
        elif not same:
            _order(values, start, stop - start, counted, order, spare)
            for r in range(min(cutoff, stop - start)):
                total += values[start + order[r]] * discount[r]
        out[q] = total


@kernel
def _uniform(key: Any, row: Any, draw: Any) -> Any:
    """A number from 0 up to 1: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at a place that the row and the draw name."""
    z = key + ((np.uint64(row) << np.uint64(16)) + np.uint64(draw) + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def draw_partners(key: Any, values: Any, offsets: Any, counted: int, first: int, last: int, order: Any, spare: Any, partner: Any) -> None:
    """partner[d, t] = a row of d's query whose value is unlike d's, each as likely as another; -1 where there is none."""
    for q in range(first, last):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        _order(values, start, n, counted, order, spare)
        low = 0
        while low < n:
            high = low
            while high < n and values[start + order[high]] == values[start + order[low]]:
                high += 1
            for p in range(low, high):
                d = start + order[p]
                for t in range(partner.shape[1]):
                    u = np.int64(_uniform(key, d, t) * (n - (high - low)))
                    partner[d, t] = -1 if high - low == n else start + order[u if u < low else u + high - low]
            low = high


@kernel
def _change_of_pair(metric: int, hi: int, lo: int, inverse: float, value: Any, discount: Any, one: Any, two: Any) -> Any:
    """`_change_row` for one pair of ranks, from 0: the larger value stands at hi."""
    if metric == 0:
        return (value[hi] - value[lo]) * abs(discount[hi] - discount[lo]) * inverse
    if metric == 1:
        return 1.0
    a, b = min(hi, lo), max(hi, lo)
    if metric == 2:
        between = one[b - 1] - one[a]
        below = two[b] / (b + 1.0)
        return (two[a] / (a + 1.0) - below + between if hi < lo else (two[a] + 1.0) / (a + 1.0) + between - below) * inverse
    if metric == 3:
        if lo < one[0]:
            return 1.0 / (lo + 1.0) - 1.0 / (one[0] + 1.0)
        return 1.0 / (hi + 1.0) - 1.0 / (min(float(lo), two[0]) + 1.0) if hi == one[0] else 0.0
    gained, passed = 0.0, 1.0
    for r in range(a + 1, b):
        gained += passed * value[r] / (r + 1.0)
        passed *= 1.0 - value[r]
    return (value[hi] - value[lo]) * abs(one[a] * (1.0 / (a + 1.0) - gained - passed / (b + 1.0)))


@kernel
def sampled_gradients(
    scores: Any, values: Any, inverse: Any, offsets: Any, partner: Any, metric: int, discount: Any, sigma: float, slope: float,
    floor: float, log_norm: bool, mean: float, hess_scale: float, position: Any, plus: Any, minus: Any,
    cost_slope: float, counted: int, first: int, last: int, order: Any, rank: Any, scratch: Any, out_grad: Any, out_hess: Any,
    costs: Any, loss: Any,
) -> None:  # fmt: skip
    """`pair_gradients` over the pairs that were drawn. mean multiplies every gradient."""
    value, score, power, grad, hess, one, two = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4], scratch[6], scratch[7]
    for q in range(first, last):
        start, n = offsets[q], offsets[q + 1] - offsets[q]
        if inverse[q] == 0.0:
            out_grad[start : start + n] = out_hess[start : start + n] = 0.0
            continue
        _order(scores, start, n, counted, order, rank)
        _fill(scores, values, start, n, sigma, order, value, score, power, grad, hess)
        _prepare(metric, n, value, one, two)
        for r in range(n):
            rank[order[r]] = r
        level, steep = (0.01, slope) if slope > 0.0 and score[0] > score[n - 1] else (1.0, 0.0)
        total = 0.0
        for d in range(start, start + n):
            for t in range(partner.shape[1]):
                other = partner[d, t]
                i, j = (d, other) if values[d] > values[other] else (other, d)
                hi, lo = rank[i - start], rank[j - start]
                apart = score[hi] - score[lo]
                size = _change_of_pair(metric, hi, lo, inverse[q], value, discount, one, two) / (level + steep * abs(apart))
                if costs.shape[1] > 0:
                    loss[q] += _cost(cost_slope * apart, size, 1.0, position[i], position[j], plus, minus, costs)
                if position.shape[0] > 0:
                    size *= plus[position[i]] * minus[position[j]]
                small = math.exp(-abs(sigma * apart))
                pull = (small / (1.0 + small) if apart > 0.0 else 1.0 / (1.0 + small)) * size
                bend = max(small / ((1.0 + small) * (1.0 + small)), floor) * size
                grad[hi], grad[lo] = grad[hi] - pull, grad[lo] + pull
                hess[hi], hess[lo] = hess[hi] + bend, hess[lo] + bend
                total += pull
        _write(start, n, order, grad, hess, total, sigma, log_norm, mean, hess_scale, out_grad, out_hess)

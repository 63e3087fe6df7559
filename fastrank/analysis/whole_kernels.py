"""Kernels of prefix curves over whole lists: what `prefix_kernels` does for any cutoff, several times as fast without one.

Where no score ties, documents come in by blocks of 16. Between two of a block's places all held documents lie below the same of its
documents: one pass over them gives the sums after each arrival, reading neighbouring discounts, and they move down once. Where scores tie,
only the levels below a document change as it comes in. Running sums are formed anew every few hundred documents.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank._kernel import kernel, pointer

# Documents that come in together. Tables and room for documents are this much longer than the stream.
BLOCK = 16
# Documents after which a running sum is formed anew: rounding stays below this many units in the last place.
RENEWED = 256


# --- without ties ---------------------------------------------------------------------------------------------------------------


@kernel
def _enter(above: Any, begin: int, m: int, place: Any, n_held: int, now: Any, low: Any, order: Any) -> None:
    """low[t] = the held documents above document t of the block; order: the block from the top down.

    now[t] = the place of document t, at first among those that came before it, in the end at the end of the block.
    """
    for t in range(m):
        new = above[begin + t]
        before = new
        for s in range(t):
            if now[s] < new:
                before -= 1
            else:
                now[s] += 1
        now[t] = new
        low[t] = np.searchsorted(place[:n_held], before)
        at = t
        while at > 0 and low[order[at - 1]] > low[t]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = t


@kernel
def _stretch(k: int, m: int, n_held: int, low: Any, order: Any, times: Any) -> Any:
    """The held documents below k + 1 documents of the block and above the others; times: those k + 1 as they come in."""
    at = k
    while at > 0 and times[at - 1] > order[k]:
        times[at] = times[at - 1]
        at -= 1
    times[at] = order[k]
    return low[order[k]], low[order[k + 1]] if k + 1 < m else n_held


@kernel
def _four_sums(place: Any, value: Any, table: Any, c: int, first: int, last: int) -> Any:
    """The sums of value x table[place + c], + c + 1, + c + 2 and + c + 3 over documents first ... last - 1."""
    x, y, t = pointer(place), pointer(value), pointer(table)
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for j in range(first, last):
        at, v = x[j] + c, y[j]
        p += v * t[at]
        q += v * t[at + 1]
        r += v * t[at + 2]
        s += v * t[at + 3]
    return p, q, r, s


@kernel
def _move_gains(place: Any, value: Any, step: Any, n_held: int, m: int, low: Any, order: Any, times: Any, sums: Any, moved: Any) -> None:
    """Move held documents below the block's down. moved[t] = what the sum of their discounted gains gains as document t comes in."""
    moved[:m] = 0.0
    for k in range(m):
        first, last = _stretch(k, m, n_held, low, order, times)
        if first == last:
            continue
        for c in range(0, k + 1, 4):
            sums[c], sums[c + 1], sums[c + 2], sums[c + 3] = _four_sums(place, value, step, c, first, last)
        for c in range(k + 1):
            moved[times[c]] += sums[c]
        place[first:last] += k + 1


@kernel
def _merge(place: Any, value: Any, n_held: int, m: int, now: Any, fresh: Any) -> Any:
    """The block's documents of a value other than 0 join those held, in rank order. Returns how many are held then."""
    n_new = 0
    for t in range(m):
        n_new += fresh[t] != 0.0
    j, n_held = n_held - 1, n_held + n_new
    for rest in range(n_new - 1, -1, -1):
        lowest = -1
        for t in range(m):
            if fresh[t] != 0.0 and (lowest < 0 or now[t] > now[lowest]):
                lowest = t
        while j >= 0 and place[j] > now[lowest]:
            place[j + rest + 1], value[j + rest + 1] = place[j], value[j]
            j -= 1
        place[j + rest + 1], value[j + rest + 1] = now[lowest], fresh[lowest]
        fresh[lowest] = 0.0
    return n_held


@kernel
def gain_curve(above: Any, gains: Any, discount: Any, step: Any, place: Any, value: Any, spots: Any, room: Any, out: Any) -> None:
    """out[i] = discounted gain of the first i + 1 documents.

    above: `insertion_places`. step[p] = discount[p + 1] - discount[p]. place, value, spots int64[4, BLOCK] and room [3, BLOCK + 4] are
    scratch; place and value hold the documents with a gain in rank order.
    """
    now, low, order, sums, moved, fresh = spots[0], spots[1], spots[2], room[0], room[1], room[2]
    n_held, total = 0, 0.0
    for begin in range(0, above.shape[0], BLOCK):
        m = min(BLOCK, above.shape[0] - begin)
        _enter(above, begin, m, place, n_held, now, low, order)
        _move_gains(place, value, step, n_held, m, low, order, spots[3], sums, moved)
        own = 0.0
        for t in range(m):
            now[t], fresh[t] = above[begin + t], gains[begin + t]
            own = fresh[t] * discount[now[t]]
            for s in range(t):
                if now[s] >= now[t]:
                    now[s] += 1
                own += fresh[s] * discount[now[s]]
            total += moved[t]
            out[begin + t] = total + own
        n_held = _merge(place, value, n_held, m, now, fresh)
        total += own
        if begin % RENEWED == 0:
            total = 0.0
            for j in range(n_held):
                total += value[j] * discount[place[j]]


@kernel
def _four_pairs(place: Any, met: Any, inverse: Any, c: int, first: int, last: int) -> Any:
    """As `_four_sums`, and the sums of inverse alone."""
    x, y, t = pointer(place), pointer(met), pointer(inverse)
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    a, b, d, e = 0.0, 0.0, 0.0, 0.0
    for j in range(first, last):
        at, v = x[j] + c, y[j]
        a, b, d, e = a + t[at], b + t[at + 1], d + t[at + 2], e + t[at + 3]
        p, q, r, s = p + v * t[at], q + v * t[at + 1], r + v * t[at + 2], s + v * t[at + 3]
    return p, q, r, s, a, b, d, e


@kernel
def _move_precisions(place: Any, met: Any, inverse: Any, fresh: Any, n_held: int, m: int, low: Any, order: Any, times: Any, sums: Any,
                     alone: Any, moved: Any) -> None:  # fmt: skip
    """As `_move_gains` for the sum of precisions: met[j] of the relevant documents, down to document j, grow with the relevant above."""
    moved[:m] = 0.0
    for k in range(m):
        first, last = _stretch(k, m, n_held, low, order, times)
        if first == last:
            continue
        for c in range(0, k + 2, 4):
            p, q, r, s, a, b, d, e = _four_pairs(place, met, inverse, c, first, last)
            sums[c], sums[c + 1], sums[c + 2], sums[c + 3] = p, q, r, s
            alone[c], alone[c + 1], alone[c + 2], alone[c + 3] = a, b, d, e
        more = 0.0
        for c in range(k + 1):
            change = sums[c + 1] - sums[c] - more * alone[c]
            more += fresh[times[c]]
            moved[times[c]] += change + more * alone[c + 1]
        place[first:last] += k + 1
        met[first:last] += more


@kernel
def precision_curve(above: Any, relevant: Any, inverse: Any, place: Any, met: Any, spots: Any, room: Any, out: Any) -> None:
    """out[i] = the sum of precisions at the relevant documents among the first i + 1. As `gain_curve`; room is [4, BLOCK + 4]."""
    now, low, order, sums, moved, fresh, alone = spots[0], spots[1], spots[2], room[0], room[1], room[2], room[3]
    n_held, total = 0, 0.0
    for begin in range(0, above.shape[0], BLOCK):
        m = min(BLOCK, above.shape[0] - begin)
        _enter(above, begin, m, place, n_held, now, low, order)
        fresh[:m] = relevant[begin : begin + m]
        _move_precisions(place, met, inverse, fresh, n_held, m, low, order, spots[3], sums, alone, moved)
        own = 0.0
        for t in range(m):
            now[t], sums[t], own = above[begin + t], fresh[t] * (low[t] + 1.0), 0.0
            for s in range(t):
                if now[s] >= now[t]:
                    now[s] += 1
                    sums[s] += fresh[t] * fresh[s]
                else:
                    sums[t] += fresh[s] * fresh[t]
            for s in range(t + 1):
                own += sums[s] * inverse[now[s]]
            total += moved[t]
            out[begin + t] = total + own
        fresh[:m] = sums[:m]
        n_held = _merge(place, met, n_held, m, now, fresh)
        total += own
        if begin % RENEWED == 0:
            total = 0.0
            for j in range(n_held):
                total += met[j] * inverse[place[j]]


# --- with ties ------------------------------------------------------------------------------------------------------------------


@kernel
def _make_room(e: int, n_held: int, numbers: Any, sums: Any) -> Any:
    """Levels from e on move one further along. Returns how many are held then."""
    for j in range(n_held, e, -1):
        for row in range(numbers.shape[0]):
            numbers[row, j] = numbers[row, j - 1]
        for row in range(sums.shape[0]):
            sums[row, j] = sums[row, j - 1]
    return n_held + 1


@kernel
def _range_sum(high: Any, low: Any, start: int, stop: int) -> Any:
    """The sum of a table over places start ... stop - 1."""
    return (high[stop] - high[start]) + (low[stop] - low[start])


@kernel
def tied_gain_curve(codes: Any, above: Any, gains: Any, discount: Any, high: Any, low: Any, counts: Any, held: Any, sums: Any, out: Any
                    ) -> None:  # fmt: skip
    """As `gain_curve`, in expectation over the orders of equal scores: documents of one code tie.

    high, low: `running_sums` of the discounts. counts (zero, one a code), held int64[3, n] and sums [2, n] are scratch. Levels with a gain
    are held in rank order: code, documents above, documents; the sum of gains and their mean.
    """
    level, start, span, mean = held[0], held[1], held[2], sums[1]
    n_held, total = 0, 0.0
    for i in range(codes.shape[0]):
        code, gain = codes[i], gains[i]
        counts[code] += 1
        e = np.searchsorted(level[:n_held], code)
        own = e < n_held and level[e] == code
        if own:
            total -= mean[e] * _range_sum(high, low, start[e], start[e] + span[e])
        elif gain != 0.0:
            n_held = _make_room(e, n_held, held, sums)
            level[e], start[e], span[e], sums[0, e] = code, above[i], counts[code] - 1, 0.0
            own = True
        if own:
            span[e] += 1
            sums[0, e] += gain
            mean[e] = sums[0, e] / span[e]
            total += mean[e] * _range_sum(high, low, start[e], start[e] + span[e])
        change = 0.0
        for j in range(e + 1 if own else e, n_held):
            change += mean[j] * (discount[start[j] + span[j]] - discount[start[j]])
            start[j] += 1
        total += change
        if i % RENEWED == 0:
            total = 0.0
            for j in range(n_held):
                total += mean[j] * _range_sum(high, low, start[j], start[j] + span[j])
        out[i] = total

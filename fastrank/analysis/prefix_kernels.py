"""Kernels of prefix curves: a metric of the first n documents of a stream, for every n, as documents come in one by one.

Places count from 0 here. A document that comes in moves those below it down by one place, so that a sum over r relevant documents changes
in at most r terms. Sums that are kept up to date are formed anew every few hundred documents, which bounds their rounding.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel, pointer

# Documents after which a running sum is formed anew: rounding stays below this many units in the last place.
RENEWED = 256
# What a chance below this could add to a value, no double near 1 shows.
NEGLIGIBLE = 2.0**-60


@kernel
def insertion_places(codes: Any, tree: Any, out: Any) -> None:
    """out[i] = how many of the documents before i in the stream have a smaller code. tree is zero, one longer than there are codes."""
    for i in range(codes.shape[0]):
        out[i] = _count_below(tree, codes[i])
        _add(tree, codes[i], 1)


@kernel
def _count_below(tree: Any, code: int) -> Any:
    """The sum of a Fenwick tree over codes below one."""
    total = tree[0]
    at = code
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


@kernel
def _add(tree: Any, code: int, amount: int) -> None:
    at = code + 1
    while at < tree.shape[0]:
        tree[at] += amount
        at += at & -at


@kernel
def running_sums(values: Any, high: Any, low: Any) -> None:
    """high[i] + low[i] = the sum of the first i values, to twice a double's digits: differences of such sums do not cancel."""
    total, rest = 0.0, 0.0
    high[0] = low[0] = 0.0
    for i in range(values.shape[0]):
        new = total + values[i]
        part = new - total
        rest += (total - (new - part)) + (values[i] - part)
        total = new
        high[i + 1] = total
        low[i + 1] = rest


@kernel
def _first_from(held: Any, n_held: int, least: int) -> Any:
    """The first of the ascending numbers that is not below `least`."""
    low, high = 0, n_held
    while low < high:
        middle = (low + high) >> 1
        if held[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low


# --- without ties ---------------------------------------------------------------------------------------------------------------


@kernel
def _move_down(place: Any, value: Any, n_held: int, lo: int, new: int, gain: float) -> Any:
    """Documents from lo on move down by one; a document with a gain takes the free place. Returns how many are held."""
    if gain == 0.0:
        for j in range(lo, n_held):
            place[j] += 1
        return n_held
    for j in range(n_held, lo, -1):
        place[j] = place[j - 1] + 1
        value[j] = value[j - 1]
    place[lo] = new
    value[lo] = gain
    return n_held + 1


@kernel
def _discounted(place: Any, value: Any, table: Any, first: int, last: int) -> Any:
    """The sum of value × table[place] over documents first ... last - 1, in four sums side by side."""
    x, y, t = pointer(place), pointer(value), pointer(table)
    a = b = c = d = 0.0
    j = first
    while j + 4 <= last:
        a += y[j] * t[x[j]]
        b += y[j + 1] * t[x[j + 1]]
        c += y[j + 2] * t[x[j + 2]]
        d += y[j + 3] * t[x[j + 3]]
        j += 4
    while j < last:
        a += y[j] * t[x[j]]
        j += 1
    return (a + b) + (c + d)


@kernel
def gain_curve(above: Any, gains: Any, discount: Any, step: Any, cutoffs: Any, place: Any, value: Any, out: Any) -> None:
    """out[i] = discounted gain of the first i + 1 documents down to cutoffs[i], which rise by at most one a document.

    above: `insertion_places`. step[p] = discount[p + 1] - discount[p], exact in doubles where neighbours are close. place and value are
    scratch; they hold the documents with a gain in rank order, `edge` of them within the cutoff.
    """
    n = above.shape[0]
    last_cutoff = cutoffs[n - 1]
    n_held = edge = cutoff = 0
    total = 0.0
    for i in range(n):
        new = above[i]
        lo = _first_from(place, n_held, new)
        total += _discounted(place, value, step, lo, edge)
        if lo < edge and place[edge - 1] == cutoff - 1:
            edge -= 1
            total -= value[edge] * discount[cutoff]
        n_held = _move_down(place, value, n_held, lo, new, gains[i])
        if gains[i] != 0.0 and new < cutoff:
            total += gains[i] * discount[new]
            edge += 1
        cutoff = cutoffs[i]
        while edge < n_held and place[edge] < cutoff:
            total += value[edge] * discount[place[edge]]
            edge += 1
        while n_held > 0 and place[n_held - 1] >= last_cutoff:
            n_held -= 1
        if i % RENEWED == 0:
            total = _discounted(place, value, discount, 0, edge)
        out[i] = total


@kernel
def _precisions_moved(place: Any, inverse: Any, first: int, last: int, more: int) -> Any:
    """What the sum of precisions gains when documents first ... last - 1 move down by one and `more` documents join those before."""
    x, t = pointer(place), pointer(inverse)
    a = b = 0.0
    j = first
    while j + 2 <= last:
        a += (j + 1 + more) * t[x[j] + 1] - (j + 1) * t[x[j]]
        b += (j + 2 + more) * t[x[j + 1] + 1] - (j + 2) * t[x[j + 1]]
        j += 2
    if j < last:
        a += (j + 1 + more) * t[x[j] + 1] - (j + 1) * t[x[j]]
    return a + b


@kernel
def precision_curve(above: Any, relevant: Any, inverse: Any, cutoffs: Any, place: Any, value: Any, out: Any) -> None:
    """out[i] = the sum of precisions at the relevant documents among the first i + 1, down to cutoffs[i]. As `gain_curve`.

    inverse[p] = 1 / (p + 1): divisions would take most of the time.
    """
    n = above.shape[0]
    last_cutoff = cutoffs[n - 1]
    n_held = edge = cutoff = 0
    total = 0.0
    for i in range(n):
        new, more = above[i], 1 if relevant[i] != 0.0 else 0
        lo = _first_from(place, n_held, new)
        leaves = lo < edge and place[edge - 1] == cutoff - 1
        total += _precisions_moved(place, inverse, lo, edge, more)
        if leaves:
            total -= (edge + more) * inverse[cutoff]
            edge -= 1
        n_held = _move_down(place, value, n_held, lo, new, relevant[i])
        if more == 1 and new < cutoff:
            total += (lo + 1) * inverse[new]
            edge += 1
        cutoff = cutoffs[i]
        while edge < n_held and place[edge] < cutoff:
            total += (edge + 1) * inverse[place[edge]]
            edge += 1
        while n_held > 0 and place[n_held - 1] >= last_cutoff:
            n_held -= 1
        if i % RENEWED == 0:
            total = 0.0
            for j in range(edge):
                total += (j + 1) * inverse[place[j]]
        out[i] = total


# --- with ties ------------------------------------------------------------------------------------------------------------------


@kernel
def _join(
    code: int, gain: float, above: int, count: int, last_cutoff: int, n_held: int, codes: Any, starts: Any, spans: Any, sums: Any
) -> Any:  # fmt: skip
    """A document comes into its block of equal scores, which has `count` documents with it. Returns how many blocks are held.

    Blocks with a gain are held in rank order: code, documents above, documents, sum of gains.
    """
    e = _first_from(codes, n_held, code)
    below = e
    if e < n_held and codes[e] == code:
        spans[e] += 1
        sums[e] += gain
        below = e + 1
    elif gain != 0.0:
        for j in range(n_held, e, -1):
            codes[j], starts[j], spans[j], sums[j] = codes[j - 1], starts[j - 1], spans[j - 1], sums[j - 1]
        codes[e], starts[e], spans[e], sums[e] = code, above, count, gain
        n_held += 1
        below = e + 1
    for j in range(below, n_held):
        starts[j] += 1
    while n_held > 0 and starts[n_held - 1] >= last_cutoff:
        n_held -= 1
    return n_held


@kernel
def tied_gain_curve(
    codes: Any, above: Any, gains: Any, discount: Any, high: Any, low: Any, cutoffs: Any, counts: Any, held: Any, sums: Any, out: Any
) -> None:
    """As `gain_curve`, in expectation over the orders of equal scores: documents of one code tie.

    high, low: `running_sums` of the discounts. counts (zero, one a code), held int64[3, n] and sums are scratch.
    """
    n = codes.shape[0]
    starts, spans = held[1], held[2]
    n_held = 0
    for i in range(n):
        counts[codes[i]] += 1
        n_held = _join(codes[i], gains[i], above[i], counts[codes[i]], cutoffs[n - 1], n_held, held[0], starts, spans, sums)
        cutoff = cutoffs[i]
        total = 0.0
        for j in range(n_held):
            start = starts[j]
            if start >= cutoff:
                break
            if spans[j] == 1:
                total += sums[j] * discount[start]
            else:
                stop = min(start + spans[j], cutoff)
                total += sums[j] / spans[j] * ((high[stop] - high[start]) + (low[stop] - low[start]))
        out[i] = total


@kernel
def tied_precision_curve(
    codes: Any, above: Any, relevant: Any, high: Any, low: Any, cutoffs: Any, counts: Any, held: Any, sums: Any, out: Any
) -> None:
    """As `precision_curve`, in expectation over the orders of equal scores. high, low: `running_sums` of 1 / rank.

    A block of n documents, r relevant, after s documents, R relevant: the sum over its ranks s + i within the cutoff of
    r/n × (R + 1 + (i - 1)(r - 1)/(n - 1)) / (s + i), where (i - 1) / (s + i) sums up to m - (s + 1) × the sum of 1 / (s + i) for m ranks.
    """
    n = codes.shape[0]
    starts, spans = held[1], held[2]
    n_held = 0
    for i in range(n):
        counts[codes[i]] += 1
        n_held = _join(codes[i], relevant[i], above[i], counts[codes[i]], cutoffs[n - 1], n_held, held[0], starts, spans, sums)
        before, total = 0.0, 0.0
        for j in range(n_held):
            start, span, r = starts[j], spans[j], sums[j]
            if start >= cutoffs[i]:
                break
            if span == 1:
                total += (before + 1.0) / (start + 1)
            else:
                stop = min(start + span, cutoffs[i])
                inverses = (high[stop] - high[start]) + (low[stop] - low[start])
                further = (stop - start) - (start + 1) * inverses
                total += r / span * ((before + 1.0) * inverses + (r - 1.0) / (span - 1) * further)
            before += r
        out[i] = total


# --- the first relevant document, pairs -----------------------------------------------------------------------------------------


@kernel
def first_curve(codes: Any, above: Any, relevant: Any, cutoffs: Any, counts: Any, out: Any) -> None:
    """out[i] = expected 1 / rank of the first relevant document of the first i + 1, 0 beyond cutoffs[i]. Documents of one code tie.

    above: `insertion_places`. counts, int64[2, n_codes], zero: documents and relevant documents of each code.
    """
    top = counts.shape[1]
    before, value = 0, 0.0
    for i in range(codes.shape[0]):
        code = codes[i]
        is_cut = top < counts.shape[1] and i > 0 and cutoffs[i - 1] < before + counts[0, top]
        counts[0, code] += 1
        if relevant[i] != 0.0:
            counts[1, code] += 1
        if relevant[i] != 0.0 and code < top:
            top = code
            before = above[i]
        elif code < top:
            before += 1
        # Documents below the block of the first relevant one change nothing, unless the cutoff runs through it.
        if top < counts.shape[1] and (code <= top or is_cut):
            value = _expected_first(before, counts[0, top], counts[1, top], cutoffs[i])
        out[i] = value


@kernel
def _expected_first(above: int, n: int, r: int, cutoff: int) -> Any:
    """The expected 1 / rank of the first of r documents among n that tie after `above` others, ranks within the cutoff."""
    total, unmet = 0.0, 1.0
    j = 1
    while j <= n - r + 1 and above + j <= cutoff and unmet > NEGLIGIBLE:
        total += unmet * (r / (n - j + 1)) / (above + j)
        unmet = unmet * (n - r - (j - 1)) / (n - (j - 1))
        j += 1
    return total


@kernel
def lost_curve(codes: Any, relevant: Any, counts: Any, trees: Any, out: Any) -> None:
    """out[i] = pairs of a relevant and another document among the first i + 1 that stand the wrong way round, ties as halves.

    counts int64[2, n_codes] and trees int64[2, n_codes + 1], zero: other and relevant documents by code.
    """
    lost, n_relevant = 0.0, 0
    for i in range(codes.shape[0]):
        code = codes[i]
        if relevant[i] != 0.0:
            lost += _count_below(trees[0], code) + 0.5 * counts[0, code]
            n_relevant += 1
            counts[1, code] += 1
            _add(trees[1], code, 1)
        else:
            lost += n_relevant - _count_below(trees[1], code) - 0.5 * counts[1, code]
            counts[0, code] += 1
            _add(trees[0], code, 1)
        out[i] = lost

"""Kernels of the losses of whole lists and of pairs: value and gradient of each query in one pass."""

from __future__ import annotations

import math
from typing import Any

from fastrank._kernel import kernel


@kernel
def list_net(labels: Any, scores: Any, offsets: Any, first: int, last: int, out_loss: Any, grad: Any) -> None:
    """ListNet of queries first <= q < last."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        out_loss[q] = 0.0
        if start == stop:
            continue
        top_label, top_score = labels[start], scores[start]
        for d in range(start, stop):
            top_label, top_score = max(top_label, labels[d]), max(top_score, scores[d])
        of_labels, of_scores = 0.0, 0.0
        for d in range(start, stop):
            of_labels += math.exp(labels[d] - top_label)
            of_scores += math.exp(scores[d] - top_score)
        log_sum = top_score + math.log(of_scores)
        total = 0.0
        for d in range(start, stop):
            wanted = math.exp(labels[d] - top_label) / of_labels
            total += wanted * (log_sum - scores[d])
            grad[d] = math.exp(scores[d] - top_score) / of_scores - wanted
        out_loss[q] = total


@kernel
def list_mle(order: Any, scores: Any, offsets: Any, first: int, last: int, rest: Any, out_loss: Any, grad: Any) -> None:
    """ListMLE of queries first <= q < last; order lists the rows of each query, the largest label first. rest is scratch.

    log Z_i, of the documents from i on, is kept with its largest score apart, so that no difference of scores overflows.
    """
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        top, tail, total = -math.inf, 0.0, 0.0
        for i in range(stop - 1, start - 1, -1):
            s = scores[order[i]]
            if s > top:
                tail, top = tail * math.exp(top - s) + 1.0, s
            else:
                tail += math.exp(s - top)
            rest[i] = top + math.log(tail)
            total += rest[i] - s
        out_loss[q] = total
        # Documents down to i are chosen from Z_m, m <= i: sum of exp(s_i - log Z_m), as exp(s_i - base) x sum of exp(base - log Z_m).
        base, met = 0.0, 0.0
        for i in range(start, stop):
            if i == start or rest[i] < base:
                met = met * math.exp(rest[i] - base) if i > start else 0.0
                base = rest[i]
            met += math.exp(base - rest[i])
            grad[order[i]] = math.exp(scores[order[i]] - base) * met - 1.0


@kernel
def approximate_ndcg(
    gains: Any, inverse: Any, scores: Any, offsets: Any, alpha: float, first: int, last: int, steep: Any, out_loss: Any, grad: Any
) -> None:
    """1 - NDCG at ranks made smooth, of queries first <= q < last. inverse = 1 / ideal, 0 to leave a query out. steep is scratch."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        grad[start:stop] = 0.0
        out_loss[q] = 0.0
        if inverse[q] == 0.0:
            continue
        total = 0.0
        for i in range(start, stop):
            if gains[i] == 0.0:
                continue
            rank, slopes = 1.0, 0.0
            for j in range(start, stop):
                z = alpha * (scores[i] - scores[j])
                small = math.exp(-abs(z))
                behind = small / (1.0 + small) if z > 0.0 else 1.0 / (1.0 + small)
                counts = 1.0 if j != i else 0.0
                rank += behind * counts
                steep[j - start] = small / ((1.0 + small) * (1.0 + small)) * counts
                slopes += steep[j - start]
            bits = math.log2(1.0 + rank)
            total += gains[i] * inverse[q] / bits
            turn = alpha * gains[i] * inverse[q] / (math.log(2.0) * (1.0 + rank) * bits * bits)
            grad[i] -= turn * slopes
            for j in range(start, stop):
                grad[j] += turn * steep[j - start]
        out_loss[q] = 1.0 - total


@kernel
def logistic_pairs(labels: Any, scores: Any, offsets: Any, sigma: float, first: int, last: int, out_loss: Any, grad: Any) -> None:
    """RankNet: the sum of log(1 + exp(-sigma (s_i - s_j))) over pairs of larger label i and smaller label j."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        grad[start:stop] = 0.0
        total = 0.0
        for i in range(start, stop):
            for j in range(start, stop):
                if labels[j] < labels[i]:
                    z = sigma * (scores[i] - scores[j])
                    small = math.exp(-abs(z))
                    total += max(-z, 0.0) + math.log1p(small)
                    pull = sigma * (small / (1.0 + small) if z > 0.0 else 1.0 / (1.0 + small))
                    grad[i] -= pull
                    grad[j] += pull
        out_loss[q] = total


@kernel
def hinge_pairs(labels: Any, scores: Any, offsets: Any, margin: float, first: int, last: int, out_loss: Any, grad: Any) -> None:
    """RankSVM: the sum of max(0, margin - (s_i - s_j)) over pairs of larger label i and smaller label j."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        grad[start:stop] = 0.0
        total = 0.0
        for i in range(start, stop):
            pulls = 0.0
            for j in range(start, stop):
                lacks = margin - (scores[i] - scores[j])
                if labels[j] < labels[i] and lacks > 0.0:
                    total += lacks
                    pulls += 1.0
                    grad[j] += 1.0
            grad[i] -= pulls
        out_loss[q] = total

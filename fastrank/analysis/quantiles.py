"""How relevant a ranker's documents are by where it puts them: y(s), the chance that a document at quantile s is relevant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fastrank.analysis.outcome import Finding
from fastrank.batch import make_batch
from fastrank.clicks.rates import wilson
from fastrank.comparison.intervals import check_confidence
from fastrank.convention import conventions
from fastrank.errors import InputError
from fastrank.metrics.base import as_number


@dataclass(frozen=True, eq=False, repr=False)
class RelevanceCurve(Finding):
    """The share of relevant documents by quantile; call it for y(s).

    Attributes
    ----------
    edges
        float64[n_bins + 1]: quantiles, 0 the bottom of the list, 1 the top.
    value, low, high
        float64[n_bins]: the share of relevant documents in each bin, with its Wilson interval (documents taken as independent).
    n
        int64[n_bins]: documents.
    p
        The share of relevant documents of all.
    confidence
        Of the intervals.
    """

    edges: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n: np.ndarray
    p: float
    confidence: float

    def __call__(self, s: Any) -> Any:
        """y(s) by straight lines between the middles of the bins, carried on to both ends and kept within 0 and 1."""
        return line_through(self.edges, self.value, s)

    def columns(self) -> dict[str, Any]:
        """A row per bin."""
        bins = {"from": self.edges[:-1], "to": self.edges[1:], "documents": self.n}
        return bins | {"relevant": self.value, "low": self.low, "high": self.high}

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure of the curve with its intervals. Errors: `InputError` where matplotlib is missing."""
        from fastrank.report.analysed import relevance_figure

        return relevance_figure(self, dark=dark)


def line_through(edges: np.ndarray, value: np.ndarray, s: Any) -> Any:
    """Straight lines through (middle of the bin, value), carried on beyond the first and the last middle."""
    at = np.asarray(s, dtype=np.float64)
    middle = (edges[:-1] + edges[1:]) / 2
    if len(middle) == 1:
        return np.full(at.shape, value[0])[()]
    place = np.clip(np.searchsorted(middle, at) - 1, 0, len(middle) - 2)
    slope = np.diff(value) / np.diff(middle)
    return np.clip(value[place] + slope[place] * (at - middle[place]), 0.0, 1.0)[()]


def relevance_curve(
    labels: Any,
    scores: Any,
    offsets: Any = None,
    *,
    sizes: Any = None,
    bins: int = 20,
    rel: float = 1,
    confidence: float = 0.95,
) -> RelevanceCurve:
    """Estimate y(s) of a ranker: the share of relevant documents by the quantile at which it puts them, all queries taken together.

    The document at rank r of n stands at quantile 1 - (r - 1/2) / n; documents of one score share their mean rank.

    Parameters
    ----------
    labels, scores, offsets, sizes
        As `fr.evaluate`; unjudged documents are left out.
    bins
        How many, equally wide.
    rel
        The lowest label that counts as relevant.
    confidence
        Of the intervals.

    Errors: `InputError`, one line that says what, where and the cure.

    Source: Wang, Wang, Li, He, Chen and Liu, COLT 2013 (y(s), the canonical version of a ranker).

    Examples
    --------
    >>> import fastrank as fr
    >>> curve = fr.analysis.relevance_curve([1, 1, 0, 1, 0, 0, 0, 0], [8, 7, 6, 5, 4, 3, 2, 1], bins=2)
    >>> curve.value.tolist(), curve.p
    ([0.0, 0.75], 0.375)
    """
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise InputError(f"bins must be a whole number from 1 up, not {bins!r}.")
    confidence, rel = check_confidence(confidence), as_number("rel", rel)
    batch = make_batch(labels, scores, offsets, sizes=sizes, convention=conventions["fastrank"])
    label = batch.labels
    if batch.scores is None:
        raise InputError("scores must be given: they say where the ranker puts each document.")
    quantile = _quantiles(batch.scores, batch.offsets)
    judged = ~np.isnan(label) if label.dtype.kind == "f" else np.ones(len(label), bool)
    if not judged.any():
        raise InputError("labels must hold a judged document: there is nothing to estimate from.")
    edges = np.linspace(0.0, 1.0, int(bins) + 1)
    place = np.minimum((quantile[judged] * bins).astype(np.int64), bins - 1)
    relevant = label[judged] >= rel
    n = np.bincount(place, minlength=bins)
    if not n.all():
        raise InputError(
            f"bins: {bins} are too many: no document falls between quantiles {edges[np.argmin(n)]:g} and {edges[np.argmin(n) + 1]:g}."
        )
    value, low, high = wilson(n, np.bincount(place, relevant, minlength=bins), confidence)[:3]
    return RelevanceCurve(edges, value, low, high, n, float(relevant.mean()), confidence)


def _quantiles(scores: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """1 - (rank - 1/2) / n of every document, ties at their mean rank."""
    size = np.diff(offsets)
    query = np.repeat(np.arange(len(size)), size)
    order = np.lexsort((scores, query))[::-1]  # the last query first, each from its highest score down
    ranked, of = scores[order], query[order]
    begins = np.concatenate(([True], (ranked[1:] != ranked[:-1]) | (of[1:] != of[:-1])))[: len(order)]
    block = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    span = np.diff(first, append=len(order))
    start = (offsets[-1] - offsets[1:])[of[first]] if len(first) else first
    mean_place = first - start + span / 2
    out = np.empty(len(order))
    out[order] = 1.0 - mean_place[block] / size[of]
    return out

"""How often what was shown was clicked: rates with intervals, and the clicks of each session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import kernel, map_blocks
from fastrank.clicks.checks import DEEPEST, check_level, check_log, normal_quantile
from fastrank.clicks.outcome import Outcome
from fastrank.convention import one_of
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

BY = ("position", "doc", "query", "pair", "all")
BLOCK = 1 << 16


@dataclass(frozen=True, repr=False, eq=False)
class Rate(Outcome):
    """Click-through rates, a row per position, document, query or pair of both.

    Attributes
    ----------
    by, keys
        What the rows are; {name: values} of each row: positions, or ids as Arrow arrays.
    n, clicks
        float64[n_rows]: how often it was shown, how often clicked, by the weights of the sessions.
    value, lo, hi
        clicks / n and its Wilson interval; NaN where nothing was shown.
    se
        Standard error sqrt(value (1 - value) / n).
    level
        The confidence of the interval.
    """

    by: str
    keys: dict[str, Any]
    n: np.ndarray
    clicks: np.ndarray
    value: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    se: np.ndarray
    level: float

    def columns(self) -> dict[str, Any]:
        """Keys, counts, rate, interval and standard error."""
        return self.keys | {name: getattr(self, name) for name in ("n", "clicks", "value", "lo", "hi", "se")}

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure: rates with their intervals; for rows by position the curve.

        Needs matplotlib (`pip install 'fastrank-metrics[plot]'`); InputError where it is missing.
        """
        from fastrank.report.clicked import rate_figure

        return rate_figure(self, dark=dark)


def ctr(log: ClickLog, by: str = "position", level: float = 0.95) -> Rate:
    """Click-through rate C / N with its Wilson interval, per position, document, query or pair of both, or over all.

    Parameters
    ----------
    by
        "position" (a row per position from 1 to the deepest), "doc", "query", "pair" (query and document), or "all" (one row).
    level
        The confidence of the interval.

    The interval takes single impressions as independent. What was never shown has the rate NaN, not 0.

    Errors: `InputError`. Source: Wilson, JASA 1927.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, ctr
    >>> log = ClickLog([0, 2, 4, 6], doc=["a", "b", "a", "b", "b", "a"], click=[1, 0, 1, 0, 0, 1])
    >>> ctr(log).value.round(3).tolist(), ctr(log, by="doc").clicks.tolist()
    ([0.667, 0.333], [3.0, 0.0])
    """
    check_log(log)
    one_of("by", by, BY)
    level = check_level(level)
    cells = log.cells()
    keys: dict[str, Any] = {}
    if by == "position":
        group, n_groups = cells.position - 1, log.n_positions
        keys["position"] = np.arange(1, n_groups + 1, dtype=np.int32)
    elif by == "doc":
        group, n_groups = log.pair_doc[cells.group], len(log.docs)
        keys["doc"] = log.docs
    elif by == "query":
        if log.queries is None:
            raise InputError("by='query' needs to know the query of each session. Give query= to ClickLog.")
        group, n_groups = log.pair_query[cells.group], len(log.queries)
        keys["query"] = log.queries
    elif by == "pair":
        group, n_groups = cells.group, log.n_pairs
        keys = pair_keys(log)
    else:
        group, n_groups = np.zeros(len(cells), np.int32), 1
    n, clicks = np.bincount(group, cells.n, n_groups), np.bincount(group, cells.clicks, n_groups)
    return Rate(by, keys, n, clicks, *wilson(n, clicks, level), level)


def pair_keys(log: ClickLog) -> dict[str, Any]:
    """The query, where there is one, and the document of each pair."""
    keys = {} if log.queries is None else {"query": log.queries.take(log.pair_query)}
    return keys | {"doc": log.docs.take(log.pair_doc)}


def wilson(n: np.ndarray, clicks: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rate, both ends of its Wilson interval, and standard error."""
    z = normal_quantile(level)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = clicks / n
        half = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        middle, scale = p + z * z / (2 * n), 1 + z * z / n
        # Nothing clicked, or all of it: the end is that of the scale, and what is left of the difference is rounding.
        low = np.where(clicks == 0, np.where(n > 0, 0.0, np.nan), (middle - half) / scale)
        high = np.where((clicks == n) & (n > 0), 1.0, (middle + half) / scale)
        return p, low, high, np.sqrt(p * (1 - p) / n)


# --- sessions -------------------------------------------------------------------------------------------------------------------


@kernel
def click_ranks(offsets: Any, position: Any, click: Any, k: Any, first: Any, last: Any, n: Any, top: Any, lowest: Any, upper: Any) -> None:
    """Per session: its clicks, those down to position k, and the positions of the first and the last click (0: none)."""
    for s in range(first, last):
        clicks, above, begin, end = 0, 0, 0, 0
        for i in range(offsets[s], offsets[s + 1]):
            if click[i]:
                clicks += 1
                end = position[i]
                if begin == 0:
                    begin = end
                if end <= k:
                    above += 1
        n[s], top[s], upper[s], lowest[s] = clicks, above, begin, end


def session_metrics(log: ClickLog, k: int = 10) -> dict[str, np.ndarray]:
    """What each session's clicks say, for an A/B test: a dict of float64[n_sessions].

    any_click (0 or 1), n_clicks, first_click_rank and last_click_rank (NaN where nothing was clicked), rr_first = 1 / first_click_rank (0
    where nothing was clicked), clicks@k (clicks at positions down to k) and abandonment = 1 - any_click. Hand them to
    `fr.confidence_interval`, with the users as clusters.

    Errors: `InputError`.

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, session_metrics
    >>> metrics = session_metrics(ClickLog([0, 3, 5], doc=["a", "b", "c", "b", "a"], click=[0, 1, 1, 0, 0]), k=2)
    >>> metrics["n_clicks"].tolist(), metrics["clicks@2"].tolist(), metrics["rr_first"].tolist()
    ([2.0, 0.0], [1.0, 0.0], [0.5, 0.0])
    """
    check_log(log)
    k = check_cutoff(k)
    n, top, lowest, upper = (np.zeros(log.n_sessions) for _ in range(4))
    position = log.position

    def work(first: int, last: int) -> None:
        click_ranks(log.offsets, position, log.click, k, first, last, n, top, lowest, upper)

    map_blocks(work, log.offsets, documents=BLOCK, threads=None)
    clicked = n > 0
    return {
        "any_click": clicked.astype(np.float64),
        "n_clicks": n,
        "first_click_rank": np.where(clicked, upper, np.nan),
        "last_click_rank": np.where(clicked, lowest, np.nan),
        "rr_first": np.divide(1.0, upper, out=np.zeros(len(n)), where=clicked),
        f"clicks@{k}": top,
        "abandonment": 1.0 - clicked,
    }


def check_cutoff(k: Any) -> int:
    """A cutoff in positions."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"k must be a whole number from 1 up, not {k!r}.")
    return min(int(k), DEEPEST)  # no list is longer

"""Position propensities by one concave conditional-Poisson estimator, for experiments and for rankers that changed."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.clicks.cells import Cells, add_up
from fastrank.clicks.checks import check_level, check_log, coded, flat, normal_quantile, whole
from fastrank.clicks.curve_fitting import CurveFit, Strata, squared_scores, strength, tied_to
from fastrank.clicks.outcome import Outcome
from fastrank.errors import InputError
from fastrank.evaluation import Note

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

FEW_CLUSTERS = 30


@dataclass(frozen=True, repr=False, eq=False)
class Propensity(Outcome):
    """How likely each position is to be examined, relative to the anchor.

    Attributes
    ----------
    theta, lo, hi
        float64[n_positions]: propensities, 1 at the anchor, and their intervals; NaN at positions that are not connected.
    cov_log
        float64[n_positions - 1, n_positions - 1]: covariance of log theta over the positions other than the anchor.
    n_clicks
        int64[n_positions]: clicks that the estimate rests on.
    connected
        bool[n_positions]: whether clicks tie the position to the anchor in both directions. If not there is no finite estimate.
    eta, eta_se
        Strength of the bias in theta = (1 / k) ** eta, by weighted least squares of log theta on -log k: a summary, not a model.
    anchor, level
        The position whose theta is 1; the confidence of the intervals.
    n_strata, n_clusters, log_likelihood, n_steps
        Strata and clusters that say something; the objective Σ c log w at the estimate; steps of Newton's method.
    notes
        What to know before using it.
    segments
        {value: Propensity} of each segment, {} where none were asked for.
    """

    theta: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    cov_log: np.ndarray
    n_clicks: np.ndarray
    connected: np.ndarray
    eta: float
    eta_se: float
    anchor: int
    level: float
    n_strata: int
    n_clusters: int
    log_likelihood: float
    n_steps: int
    notes: tuple[Note, ...]
    segments: dict[Any, Propensity]

    @property
    def se_log(self) -> np.ndarray:
        """float64[n_positions]: standard errors of log theta, 0 at the anchor."""
        return np.insert(np.sqrt(np.diag(self.cov_log)), self.anchor - 1, 0.0)

    @classmethod
    def from_json(cls, text: str | bytes) -> Propensity:
        """What `to_json` wrote. InputError where the text is something else."""
        try:
            return cls._of(json.loads(text))
        except json.JSONDecodeError as error:
            raise InputError(f"this is not what Propensity.to_json writes, for it is no JSON: {error}.") from None
        except KeyError as error:
            raise InputError(f"this is not what Propensity.to_json writes: there is no {error}.") from None
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise InputError("this is not what Propensity.to_json writes.") from None

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Propensity:
        made: dict[str, Any] = {name: frozen(np.array(fields[name], np.float64), np.float64) for name in ("theta", "lo", "hi")}
        others = len(made["theta"]) - 1
        made["cov_log"] = frozen(np.array(fields["cov_log"], np.float64).reshape(others, others), np.float64)
        made |= {name: math.nan if fields[name] is None else float(fields[name]) for name in ("eta", "eta_se", "log_likelihood")}
        made |= {name: int(fields[name]) for name in ("anchor", "n_strata", "n_clusters", "n_steps")}
        made["n_clicks"] = frozen(np.array(fields["n_clicks"]), np.int64)
        made["connected"] = frozen(np.array(fields["connected"]), np.bool_)
        made["notes"] = tuple(Note(**note) for note in fields["notes"])
        made["segments"] = {value: cls._of(part) for value, part in fields["segments"].items()}
        return cls(**made, level=float(fields["level"]))

    def columns(self) -> dict[str, Any]:
        """A row per position."""
        ranks = {"position": np.arange(1, len(self.theta) + 1, dtype=np.int32)}
        return ranks | {name: getattr(self, name) for name in ("theta", "lo", "hi", "se_log", "n_clicks", "connected")}

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure: the position curve with its intervals, one per segment where there are any.

        Needs matplotlib (`pip install 'fastrank-metrics[plot]'`); InputError where it is missing.
        """
        from fastrank.report.clicked import propensity_figure

        return propensity_figure(self, dark=dark)


class SwapStrata(NamedTuple):
    """What `propensity` needs to know of an experiment: the stratum of each row, int64[n_rows], and which rows are of it, bool[n_rows]."""

    strata: np.ndarray
    rows: np.ndarray


def swap_strata(log: ClickLog, pair: Any) -> SwapStrata:
    """The strata of an experiment that swaps two positions at random, for `propensity(log, *swap_strata(log, pair))`.

    Parameters
    ----------
    pair
        int[n_sessions, 2]: the two positions of each session whose documents were swapped or, by the same coin, were not; (0, 0) for a
        session that was not randomised. One pair for all, neighbours, or any pairs.

    Only the rows at the two positions of randomised sessions enter, both arms of them. Errors: `InputError`.

    Source: Joachims, Swaminathan and Schnabel, WSDM 2017; Wang et al., SIGIR 2016 (RandPair).

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, swap_strata
    >>> log = ClickLog([0, 3, 6], doc=list("abcbac"), click=[1, 0, 0, 0, 0, 0])
    >>> swap_strata(log, [[1, 2], [0, 0]]).rows.tolist()
    [True, True, False, False, False, False]
    """
    check_log(log)
    array, missing = as_array("pair", pair)
    if array.shape != (log.n_sessions, 2) or missing is not None:
        raise InputError(f"pair must have two positions per session, shape ({log.n_sessions}, 2), not {array.shape}. Write 0, 0 for none.")
    pairs = np.sort(whole("pair", array.reshape(-1)).reshape(-1, 2), axis=1)
    low, high = pairs[:, 0], pairs[:, 1]
    wrong = (low < 0) | ((low == 0) & (high > 0)) | ((low == high) & (low > 0))
    if wrong.any():
        s = int(np.flatnonzero(wrong)[0])
        raise InputError(f"pair must name two positions from 1 up, or 0, 0: pair[{s}] is {array[s].tolist()}.")
    sizes = np.diff(log.offsets)
    here_low, here_high = np.repeat(low, sizes), np.repeat(high, sizes)
    rows = (log.position == here_low) | (log.position == here_high)
    met = np.bincount(np.repeat(np.arange(log.n_sessions), sizes)[rows], minlength=log.n_sessions)
    short = (high > 0) & (met < 2)
    if short.any():
        s = int(np.flatnonzero(short)[0])
        raise InputError(
            f"pair must name positions that its session shows: pair[{s}] is {array[s].tolist()}. Write 0, 0 where none was swapped."
        )
    return SwapStrata(here_low * (log.n_positions + 1) + here_high, rows)


def propensity(
    log: ClickLog,
    strata: Any = "doc",
    rows: Any = None,
    segment: Any = None,
    anchor: int = 1,
    level: float = 0.95,
    *,
    threads: int | None = None,
) -> Propensity:
    """Position propensities theta_k, P(click at k) = theta_k · P(relevant), from rows whose position changed for other reasons than clicks.

    Within a stratum g the expected clicks are n_gk theta_k r_g. Given the stratum's number of clicks the unknown r_g drops out, and

        l(theta) = Σ_g Σ_k c_gk log(n_gk theta_k / Σ_j n_gj theta_j),    theta_anchor = 1

    is concave in log theta. A few MM steps, then Newton's. Intervals: theta exp(± z se) with the cluster sandwich on log theta, clusters
    being those of the log, or its sessions.

    Parameters
    ----------
    strata
        Which rows are alike but for their position. "doc": those of one query and document (rankers that changed: harvesting). "all": all
        (the top was shuffled). int[n_rows]: numbers, such as those of `swap_strata`.
    rows
        bool[n_rows]: the rows that enter. None: all.
    segment
        The name of a column of the log, or a value per session: the curve of each is estimated too, and is in `segments`.
    anchor
        The position whose theta is 1.
    level
        The confidence of the intervals.
    threads
        None: all processors. Never changes a bit of the result.

    A position that clicks do not tie to the anchor is NaN and not `connected`. The estimate takes for granted that examination depends on
    the position alone, that a document's relevance did not change in the window, and that documents were not moved because of their clicks.

    Errors: `InputError`, one line that says what, where and the cure; an anchor without clicks is one.

    Source: Agarwal et al., WSDM 2019 (harvesting); Joachims, Swaminathan and Schnabel, WSDM 2017 (swaps); Hausman, Hall and Griliches,
    Econometrica 1984 (conditional Poisson).

    Examples
    --------
    Rankers put x and y at position 1 and at 2. Their clicks by impressions are 20 / 100 and 10 / 100 for x, 5 / 50 and 10 / 200 for y:

    >>> from fastrank.clicks import ClickLog, propensity
    >>> cells = [("x", 1, 100, 20), ("x", 2, 100, 10), ("y", 1, 50, 5), ("y", 2, 200, 10)]
    >>> doc, position, click = zip(*[(d, k, i < c) for d, k, n, c in cells for i in range(n)])
    >>> log = ClickLog(range(451), doc, click, position=position)
    >>> propensity(log).theta.round(9).tolist()
    [1.0, 0.5]
    """
    check_log(log)
    level = check_level(level)
    if isinstance(anchor, bool) or not isinstance(anchor, int | np.integer) or not 1 <= anchor <= max(log.n_positions, 1):
        raise InputError(f"anchor must be a position from 1 to {log.n_positions}, the deepest of the log, not {anchor!r}.")
    if not log.n_rows:
        raise InputError("the log shows no document, so that it says nothing about positions. Give one with sessions that are not empty.")
    group, n_groups = _strata(log, strata)
    if rows is not None:
        kept = flat("rows", rows, log.n_rows, "document shown")
        if kept.dtype.kind != "b":
            raise InputError(f"rows must be true or false per document shown, not {kept.dtype}.")
        group = np.where(kept, group, np.int32(-1))
    segments = {}
    if segment is not None:
        codes, values = coded("segment", _segment(log, segment), log.n_sessions, "session")
        of_row = np.repeat(codes, np.diff(log.offsets))
        for i, value in enumerate(values.to_pylist()):
            part = frozen(np.where(of_row == i, group, np.int32(-1)), np.int32)
            segments[value] = _estimate(log, part, n_groups, int(anchor), level, threads, {}, f"in segment {value!r} ")
    return _estimate(log, frozen(group, np.int32), n_groups, int(anchor), level, threads, segments, "")


def _strata(log: ClickLog, strata: Any) -> tuple[np.ndarray, int]:
    """The number of each row's stratum, and how many there are."""
    if isinstance(strata, str):
        if strata == "doc":
            return log.qd, log.n_pairs
        if strata == "all":
            return np.zeros(log.n_rows, np.int32), 1
        raise InputError(f"strata must be 'doc', 'all' or a number per document shown, not {strata!r}.")
    numbers = whole("strata", flat("strata", strata, log.n_rows, "document shown"))
    codes, values = coded("strata", numbers, log.n_rows, "document shown")
    return codes, len(values)


def _segment(log: ClickLog, segment: Any) -> Any:
    if not isinstance(segment, str):
        return segment
    if segment not in log.columns:
        known = f"it has {', '.join(map(repr, log.columns))}" if log.columns else "it has none"
        raise InputError(f"segment must name a column of the log ({known}), not {segment!r}. Read it with columns=[{segment!r}].")
    return log.columns[segment]


# --- the estimate ---------------------------------------------------------------------------------------------------------------


def _estimate(
    log: ClickLog,
    group: np.ndarray,
    n_groups: int,
    anchor: int,
    level: float,
    threads: int | None,
    segments: dict[Any, Propensity],
    where: str,
) -> Propensity:
    all_cells = group is log.qd
    cells = log.cells() if all_cells else add_up(group, n_groups, log.offsets, log.position, log.click, log.weight, threads=threads)
    n_positions, a = log.n_positions, anchor - 1
    at_anchor = float(cells.clicks[cells.position == anchor].sum())
    if at_anchor == 0:
        raise InputError(
            f"position {anchor} has no click {where}in the rows that enter, so that nothing can be measured by it. Name another anchor=."
        )
    strata = Strata.of(cells, np.ones(n_positions, bool))
    tied = tied_to(strata, n_positions, a)
    strata = Strata.of(cells, tied)
    free = np.flatnonzero(tied & (np.arange(n_positions) != a))
    log_theta, curvature, likelihood, n_steps = CurveFit(strata, n_positions, a, free, threads).maximise()
    theta = np.where(tied, np.exp(log_theta), np.nan)
    squares, n_clusters = squared_scores(log, group, n_groups, strata, theta, threads)
    covariance = np.full((n_positions, n_positions), np.nan)
    inverse = np.linalg.inv(curvature) if len(free) else curvature
    covariance[np.ix_(free, free)] = inverse @ squares[np.ix_(free, free)] @ inverse
    z, se = normal_quantile(level), np.sqrt(np.diag(covariance))
    se[a] = 0.0
    others = np.delete(np.arange(n_positions), a)
    counts = np.bincount(strata.position, strata.clicks, n_positions)
    eta, eta_se = strength(log_theta[free], covariance[np.ix_(free, free)], (free + 1) / anchor)
    return Propensity(
        theta=frozen(theta, np.float64),
        lo=frozen(theta * np.exp(-z * se), np.float64),
        hi=frozen(theta * np.exp(z * se), np.float64),
        cov_log=frozen(covariance[np.ix_(others, others)], np.float64),
        n_clicks=frozen(np.rint(counts).astype(np.int64), np.int64),
        connected=frozen(tied, np.bool_),
        eta=eta,
        eta_se=eta_se,
        anchor=anchor,
        level=level,
        n_strata=len(strata.groups),
        n_clusters=n_clusters,
        log_likelihood=likelihood,
        n_steps=n_steps,
        notes=tuple(_notes(cells, tied, strata, n_clusters)),
        segments=segments,
    )


def _notes(cells: Cells, tied: np.ndarray, strata: Strata, n_clusters: int) -> list[Note]:
    notes = []
    loose = [k + 1 for k in np.flatnonzero(~tied).tolist()]
    if loose:
        listed = ", ".join(map(str, loose[:10])) + (", ..." if len(loose) > 10 else "")
        one = len(loose) == 1
        words = f"position {listed} is" if one else f"positions {listed} are"
        notes.append(Note("not_connected", len(loose), f"{words} not tied to the anchor by clicks in shared strata: NaN, not a number."))
    shown = float(cells.clicks.sum())
    used = float(strata.clicks.sum())
    if used < shown:
        message = f"{shown - used:g} of {shown:g} clicks say nothing about positions: they stand in strata seen at one position alone."
        notes.append(Note("unused_clicks", round(shown - used), message))
    if 0 < n_clusters < FEW_CLUSTERS:
        notes.append(Note("few_clusters", n_clusters, f"{n_clusters} clusters are few: the intervals are too short."))
    return notes

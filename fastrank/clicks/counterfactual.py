"""What a new ranker would have been worth to the users whose clicks were logged under another one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import frozen
from fastrank.clicks.checks import DEEPEST, check_level, check_log, flat, place, whole
from fastrank.clicks.outcome import Outcome
from fastrank.clicks.placement import Placement
from fastrank.clicks.propensities import Propensity
from fastrank.clicks.rates import check_cutoff
from fastrank.clicks.relevances import position_table
from fastrank.clicks.weighing import Replay, Values
from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.evaluation import Note

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

METRICS = ("dcg", "recall", "rr_sum", "precision")
ESTIMATORS = ("ips", "snips", "dr")
EXPOSURES = ("row", "policy")
REFUSED = {
    "mrr": "the rank of the first relevant document is no sum over documents, and clicks do not say which others are relevant. "
    "metric='rr_sum' adds up the reciprocal ranks of all.",
    "ndcg": "its ideal needs every relevant document, and clicks know only those that were shown. metric='dcg' needs no ideal.",
    "map": "the precision at one document depends on all above it, and the clicks do not say which of them are relevant. Use 'dcg'.",
}
REFUSED |= {"rr": REFUSED["mrr"], "ap": REFUSED["map"]}
# The crossover is known to half of this. Propensities are not known half as well.
CROSSOVER_WIDTH = 1e-4
LITTLE = 100


@dataclass(frozen=True, repr=False, eq=False)
class Counterfactual(Outcome):
    """The value of a new ranker per session, and its difference to the logged one.

    Attributes
    ----------
    value, lo, hi
        The new ranker's estimate and its interval.
    logged
        The same estimate for the ranker that made the log.
    diff, diff_lo, diff_hi
        value - logged, with an interval of the paired differences. It carries the uncertainty of propensities that come with one.
    naive
        The new ranker's value if every position were examined: clicks as they are.
    per_session
        float64[n_sessions]: the new ranker's estimate in each session (the numerator of "snips").
    ess, max_share
        (Σ w)² / Σ w² over clicks, how many evenly weighed clicks would be as certain; the largest weight over their sum.
    ess_new, ess_logged
        The same for the weights times the discounts at the ranks of either ranker: what the estimates rest on.
    clipped, clipped_mass
        Clicks whose exposure was raised to `clip`; the share of all weight that this cost.
    clicked_missing
        Share of the weight of clicked documents that the new ranker drops.
    unsupported
        Share of the new ranker's top k that was never shown, on the average over sessions; NaN where `rank_in` was not asked.
    relevant_per_session
        Σ w per session: how many relevant documents users would have found had they looked at all that were shown.
    sweep
        {"strength", "value", "logged", "diff", "diff_lo", "diff_hi"}: the same with propensities theta ** strength.
    crossover
        The strength at which diff changes its sign, nearest to 1 and to within 5e-5; NaN where it does not within the sweep.
    metric, k, estimator, exposure, clip, level, n_sessions, n_clusters
        What was asked; how many sessions (by their weights) and clusters the intervals rest on.
    notes
        What to know before believing it.
    """

    value: float
    lo: float
    hi: float
    logged: float
    diff: float
    diff_lo: float
    diff_hi: float
    naive: float
    per_session: np.ndarray = field(repr=False)
    ess: float
    max_share: float
    ess_new: float
    ess_logged: float
    clipped: int
    clipped_mass: float
    clicked_missing: float
    unsupported: float
    relevant_per_session: float
    sweep: dict[str, np.ndarray]
    crossover: float
    metric: str
    k: int
    estimator: str
    exposure: str
    clip: float | None
    level: float
    n_sessions: float
    n_clusters: int
    notes: tuple[Note, ...]

    def columns(self) -> dict[str, Any]:
        """A row per strength of the sweep."""
        return self.sweep

    @property
    def name(self) -> str:
        """The metric with its cutoff; rr_sum has none."""
        return self.metric if self.metric == "rr_sum" else f"{self.metric}@{self.k}"

    @property
    def verdict(self) -> str:
        """What the estimate and its sweep support, in words."""
        how = f"{self.name} by {self.estimator}"
        interval = f"{self.diff:+.4f} ({100 * self.level:g}% interval {self.diff_lo:+.4f} to {self.diff_hi:+.4f})"
        if math.isnan(self.diff_lo):
            return f"There are too few sessions to tell the rankers apart on {how}: {self.diff:+.4f} per session."
        if self.diff_lo <= 0 <= self.diff_hi:
            finding = f"The rankers are not told apart on {how}: {interval} per session."
        else:
            finding = f"The new ranker is {'better' if self.diff > 0 else 'worse'} on {how}: {interval} per session."
        return f"{finding} {self._robustness()}".rstrip()

    def _robustness(self) -> str:
        strength = self.sweep["strength"]
        if not len(strength):
            return ""
        low, high = f"{strength.min():g}", f"{strength.max():g}"
        if not math.isnan(self.crossover):
            leads_above = (self.diff > 0) == (self.crossover < 1)
            return (
                f"The sign rests on the strength of the position bias: it changes at {self.crossover:.3f} times the strength used. The "
                f"{'new' if leads_above else 'logged'} ranker leads above that, the {'logged' if leads_above else 'new'} one below."
            )
        clear = (self.sweep["diff_lo"] > 0) | (self.sweep["diff_hi"] < 0)
        if clear.all():
            return f"That holds for every strength of the position bias from {low} to {high} times the one used."
        return (
            f"The sign is the same for every strength of the position bias from {low} to {high} times the one used, and the interval keeps "
            f"off 0 at {np.count_nonzero(clear)} of {len(clear)} of them."
        )

    def plot(self, *, dark: bool = False) -> Any:
        """A matplotlib figure: the difference over the strength of the position bias, with its intervals and the crossover.

        Needs matplotlib (`pip install 'fastrank-metrics[plot]'`); InputError where it is missing.
        """
        from fastrank.report.clicked import counterfactual_figure

        return counterfactual_figure(self, dark=dark)


def evaluate(
    log: ClickLog,
    theta: Any,
    new_position: Any,
    metric: str = "dcg",
    k: int = 10,
    estimator: str = "ips",
    exposure: str = "row",
    clip: float | None = None,
    alpha: Any = None,
    beta: Any = None,
    weight: Any = None,
    sweep: Sequence[float] = (0, 0.5, 1, 1.5, 2),
    level: float = 0.95,
    *,
    rhat: Any = None,
    extend: bool = False,
    threads: int | None = None,
) -> Counterfactual:
    """The value of a new ranker from another one's clicks: V = (1 / S) Σ_sessions Σ_shown λ(new rank) · c / theta(logged position).

    Parameters
    ----------
    theta
        float64[n_positions], theta[k - 1] the propensity of position k, or what `propensity` returns: then its uncertainty is in the
        intervals, by the delta method.
    new_position
        int[n_rows]: the new ranker's rank of each document shown, 0 where it drops it; or what `rank_in` returns.
    metric
        λ: "dcg" 1 / log2(1 + rank), "recall" 1, "precision" 1 / k, each down to rank k; "rr_sum" 1 / rank at every rank, whatever k.
        Relevance counts as 0 or 1.
    estimator
        "ips"; "snips", over Σ c / theta (with "recall" the share of what is relevant that stands in the top k); "dr", doubly robust,
        which adds `rhat` for every document of the query and weighs clicks minus theta · rhat.
    exposure
        "row": theta of the position in this session. "policy": its mean over all sessions of the query, 0 where it was not shown; needed
        where a document was sometimes left out, or the new ranker is underestimated. Equals "row" where a query's list never changed.
    clip
        Exposures below are raised to it: less variance, biased down.
    alpha, beta
        float64[n_positions]: trust, P(click) = alpha_k r + beta_k. Then (c - beta_k) / alpha_k of every row shown takes the place of
        c / theta; without alpha, theta is it.
    weight
        float64[n_sessions] or [n_rows]: further factors, such as the ratio of two policies' probabilities of a list.
    sweep
        Strengths of the bias to try, theta ** strength.
    level
        The confidence of the intervals: normal, over the log's clusters, or sessions.
    rhat
        float64[n_pairs]: relevance that "dr" takes for granted. None: `relevance` of this log.
    extend
        Whether positions deeper than theta take its last value. Otherwise they are an error.
    threads
        None: all processors. Never changes a bit of the result.

    Documents that were never shown cannot be valued: `unsupported` counts them. MRR and nDCG are refused, as clicks do not determine them.

    Errors: `InputError`; a propensity that is 0, NaN or missing at a position with a click is one.

    Sources: Joachims, Swaminathan and Schnabel, WSDM 2017 (IPS); Oosterhuis and de Rijke, SIGIR 2020 (policy-aware); Vardasbi, Oosterhuis
    and de Rijke, CIKM 2020 (trust); Oosterhuis, TOIS 2023 (doubly robust).

    Examples
    --------
    The third of three documents was clicked, where one user in three looks, and the new ranker puts it first:

    >>> from fastrank.clicks import ClickLog, evaluate
    >>> log = ClickLog([0, 3], doc=["a", "b", "c"], click=[0, 0, 1])
    >>> found = evaluate(log, theta=[1, 1 / 2, 1 / 3], new_position=[2, 3, 1])
    >>> round(found.value, 9), found.naive, round(found.logged, 9)
    (3.0, 1.0, 1.5)
    """
    one_of("metric", _metric(metric), METRICS)
    one_of("estimator", estimator, ESTIMATORS)
    one_of("exposure", exposure, EXPOSURES)
    check_log(log)
    k, level = check_cutoff(k), check_level(level)
    ranks, unsupported = _ranks(log, new_position)
    affine = alpha is not None or beta is not None
    if theta is None and alpha is None:
        raise InputError("theta must be given, or alpha= and beta= in its place.")
    name, given = ("theta", theta) if alpha is None else ("alpha", alpha)
    table = position_table(log, name, given, extend=extend, clicked=True)
    if affine or estimator == "dr":
        _check_all_shown(log, name, table)
    if exposure == "policy" and log.queries is None:
        raise InputError("exposure='policy' is a mean over the sessions of a query, and the log has no queries. Give query= to ClickLog.")
    replay = Replay(
        log=log,
        new_position=ranks,
        gain=_gains(metric, k, max(log.n_positions, int(ranks.max(initial=0)))),
        theta=table,
        noise=position_table(log, "beta", beta, extend=extend, clicked=False) if beta is not None else np.zeros(len(table)),
        policy=exposure == "policy",
        snips=estimator == "snips",
        guess=_guess(log, rhat) if estimator == "dr" else None,
        guesses=estimator == "dr",
        clip=_clip(clip),
        weight=None if weight is None else _weight(log, weight),
        covariance=_covariance(theta) if alpha is None else None,
        level=level,
        threads=threads,
    )
    at_one = replay.values(1.0)
    strengths = [] if affine else _strengths(sweep)
    swept = [replay.values(strength) for strength in strengths]
    spread = replay.spread()
    return Counterfactual(
        value=at_one.new.estimate,
        lo=at_one.new.low,
        hi=at_one.new.high,
        logged=at_one.logged,
        diff=at_one.diff.estimate,
        diff_lo=at_one.diff.low,
        diff_hi=at_one.diff.high,
        naive=replay.naive(),
        per_session=frozen(at_one.per_session, np.float64),
        **spread,
        unsupported=_mass(log, unsupported),
        sweep=_table(strengths, swept),
        crossover=_crossover(replay, strengths, swept),
        metric=metric,
        k=k,
        estimator=estimator,
        exposure=exposure,
        clip=replay.clip or None,
        level=level,
        n_sessions=float(log.weights.sum()),
        n_clusters=replay.n_clusters,
        notes=tuple(_notes(replay, estimator, exposure, spread)),
    )


# --- arguments ------------------------------------------------------------------------------------------------------------------


def _metric(metric: Any) -> Any:
    family = metric.lower().partition("@")[0] if isinstance(metric, str) else ""
    if family in REFUSED:
        raise InputError(f"{metric} cannot be told from clicks: {REFUSED[family]}")
    return metric


def _ranks(log: ClickLog, given: Any) -> tuple[np.ndarray, np.ndarray | None]:
    unsupported = None
    if isinstance(given, Placement):
        given, unsupported = given
    ranks = whole("new_position", flat("new_position", given, log.n_rows, "document shown"))
    if (ranks < 0).any():
        row = int(np.flatnonzero(ranks < 0)[0])
        raise InputError(f"new_position must be a rank from 1 up, or 0 for none: {place(log.offsets, row)} has {ranks[row]}.")
    return frozen(np.minimum(ranks, 1 << 30), np.int32), unsupported


def _gains(metric: str, k: int, deepest: int) -> np.ndarray:
    """λ by rank, 0 at rank 0 and from the last entry on."""
    # Reciprocal ranks are not cut at k; from a millionth on they are 0.
    depth = min(deepest, DEEPEST if metric == "rr_sum" else k)
    rank = np.arange(1, depth + 1)
    value = {"dcg": 1 / np.log2(1 + rank), "rr_sum": 1 / rank, "recall": np.ones(depth), "precision": np.full(depth, 1 / k)}[metric]
    return frozen(np.concatenate([[0.0], value, [0.0]]), np.float64)


def _check_all_shown(log: ClickLog, name: str, table: np.ndarray) -> None:
    """Where rows without a click count too, every position shown needs a propensity."""
    shown = np.unique(log.cells().position)
    wrong = shown[~(table[shown] > 0)]
    if len(wrong):
        k = int(wrong[0])
        raise InputError(
            f"{name} must be above 0 wherever documents are shown: at position {k} it is {table[k]:g}. Cut the sessions above it."
        )


def _guess(log: ClickLog, rhat: Any) -> np.ndarray | None:
    if rhat is None:
        return None
    guess = flat("rhat", rhat, log.n_pairs, "pair of query and document").astype(np.float64)
    if not np.isfinite(guess).all():
        p = int(np.flatnonzero(~np.isfinite(guess))[0])
        raise InputError(f"rhat must be finite: rhat[{p}] is {guess[p]}. Give pairs that nothing is known of a prior, or 0.")
    return guess


def _clip(clip: Any) -> float:
    if clip is None:
        return 0.0
    if isinstance(clip, bool) or not isinstance(clip, int | float | np.number) or not 0 < clip < math.inf:
        raise InputError(f"clip must be a propensity above 0, such as 0.1, not {clip!r}.")
    return float(clip)


def _weight(log: ClickLog, weight: Any) -> np.ndarray:
    array = flat("weight", weight, None, "session or document shown").astype(np.float64)
    if len(array) not in (log.n_sessions, log.n_rows):
        raise InputError(
            f"weight must have one entry per session, {log.n_sessions}, or per document shown, {log.n_rows}, not {len(array)}."
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        i = int(np.flatnonzero(~(np.isfinite(array) & (array >= 0)))[0])
        raise InputError(f"weight must be finite and not negative: weight[{i}] is {array[i]}.")
    return array if len(array) == log.n_rows and log.n_rows != log.n_sessions else np.repeat(array, np.diff(log.offsets))


def _covariance(theta: Any) -> np.ndarray | None:
    """The covariance of log theta over all positions, 0 at the anchor."""
    if not isinstance(theta, Propensity):
        return None
    at = theta.anchor - 1
    whole_matrix = np.insert(np.insert(theta.cov_log, at, 0.0, axis=0), at, 0.0, axis=1)
    return np.nan_to_num(whole_matrix, nan=0.0)


def _strengths(sweep: Any) -> list[float]:
    strengths = flat("sweep", sweep, None, "strength").astype(np.float64)
    if not np.isfinite(strengths).all():
        raise InputError(f"sweep must be finite strengths of the position bias, such as 0, 0.5, 1, not {list(sweep)!r}.")
    return sorted(set(strengths.tolist()))


# --- results --------------------------------------------------------------------------------------------------------------------


def _table(strengths: list[float], swept: list[Values]) -> dict[str, np.ndarray]:
    columns = {
        "strength": strengths,
        "value": [each.new.estimate for each in swept],
        "logged": [each.logged for each in swept],
        "diff": [each.diff.estimate for each in swept],
        "diff_lo": [each.diff.low for each in swept],
        "diff_hi": [each.diff.high for each in swept],
    }
    return {name: np.array(column, np.float64) for name, column in columns.items()}


def _crossover(replay: Replay, strengths: list[float], swept: list[Values]) -> float:
    """Where the difference changes its sign, by bisection between neighbours of the sweep."""
    found = []
    for i in range(len(strengths) - 1):
        low, high = strengths[i], strengths[i + 1]
        at_low, at_high = swept[i].diff.estimate, swept[i + 1].diff.estimate
        if not at_low * at_high < 0:
            continue
        while high - low > CROSSOVER_WIDTH:
            middle = (low + high) / 2
            low, high = (middle, high) if (replay.difference(middle) < 0) == (at_low < 0) else (low, middle)
        found.append((low + high) / 2)
    return min(found, key=lambda strength: abs(strength - 1), default=math.nan)


def _mass(log: ClickLog, unsupported: np.ndarray | None) -> float:
    if unsupported is None:
        return math.nan
    share = unsupported[log.query]
    known = ~np.isnan(share)
    total = float(log.weights[known].sum())
    return float((share[known] * log.weights[known]).sum() / total) if total else math.nan


def _notes(replay: Replay, estimator: str, exposure: str, spread: dict[str, Any]) -> list[Note]:
    notes = []
    if spread["clipped"]:
        share = 100 * spread["clipped_mass"]
        message = f"{spread['clipped']} clicks were clipped, which takes away {share:.1f}% of their weight and biases the values down."
        notes.append(Note("clipped", spread["clipped"], message))
    if spread["ess"] < LITTLE:
        message = f"the clicks weigh as much as {spread['ess']:.1f} evenly weighed ones: the interval may be too short."
        notes.append(Note("few_clicks", round(spread["ess"]), message))
    if spread["clicked_missing"] > 0:
        message = f"the new ranker drops documents that hold {100 * spread['clicked_missing']:.1f}% of the clicks' weight."
        notes.append(Note("clicked_missing", replay.n_dropped, message))
    if exposure == "row" and replay.n_left_out:
        message = (
            f"{replay.n_left_out} clicked pairs were not shown in every session of their query: exposure='row' underestimates a ranker "
            "that shows them. exposure='policy' does not."
        )
        notes.append(Note("left_out", replay.n_left_out, message))
    if estimator == "dr" and exposure == "row" and not replay.clip:
        message = "without clip= or exposure='policy' the doubly robust estimate is that of IPS on what was shown, and a guess on the rest."
        notes.append(Note("only_a_guess", 1, message))
    return notes

"""Two rankers in one list: whose documents users click."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import kernel, map_blocks
from fastrank.arrays import frozen
from fastrank.clicks.checks import check_level, check_log, flat, normal_quantile, place, whole
from fastrank.clicks.outcome import Outcome
from fastrank.convention import one_of
from fastrank.errors import InputError

if TYPE_CHECKING:
    from fastrank.clicks.log import ClickLog

METHODS = ("team_draft", "balanced", "probabilistic")
BLOCK = 1 << 16
# The chance that a ranker picks a document falls with this power of its rank.
STEEPNESS = 3.0
# Outcomes this close to 0 are ties: sums of chances that cancel.
TIE = 1e-12


@dataclass(frozen=True, repr=False, eq=False)
class Interleaving(Outcome):
    """Ranker A against ranker B.

    Attributes
    ----------
    wins_a, wins_b, ties
        Units (clusters of the log, or sessions) whose clicks favour A, B or neither; sessions without a click are ties.
    delta, lo, hi
        (wins_a + ties / 2) / n - 1 / 2 and its normal interval: above 0, A is better. "probabilistic": half the mean outcome.
    p
        Two-sided sign test, ties left out; 1 without a win.
    credit_a, credit_b
        float64[n_sessions]: clicks credited to each ranker; expected ones for "probabilistic".
    outcome
        float64[n_units]: 1 where A won, -1 where B won, 0 for a tie; for "probabilistic" the expectation of that.
    method, level
        How clicks were credited; the confidence of the interval.
    """

    wins_a: int
    wins_b: int
    ties: int
    delta: float
    lo: float
    hi: float
    p: float
    credit_a: np.ndarray = field(repr=False)
    credit_b: np.ndarray = field(repr=False)
    outcome: np.ndarray = field(repr=False)
    method: str
    level: float

    def columns(self) -> dict[str, Any]:
        """A row per session."""
        return {"credit_a": self.credit_a, "credit_b": self.credit_b}


@kernel
def credit_teams(offsets: Any, team: Any, click: Any, first: Any, last: Any, a: Any, b: Any) -> None:
    """Clicks per session on documents that team 1 placed, and team 2."""
    for s in range(first, last):
        for i in range(offsets[s], offsets[s + 1]):
            if click[i]:
                a[s] += team[i] == 1
                b[s] += team[i] == 2


@kernel
def credit_tops(offsets: Any, rank_a: Any, rank_b: Any, click: Any, first: Any, last: Any, a: Any, b: Any) -> None:
    """Clicks per session on the top k of each ranker, k the better of the two ranks of the lowest click."""
    for s in range(first, last):
        k = 0
        for i in range(offsets[s], offsets[s + 1]):
            if click[i]:
                k = rank_a[i] if rank_b[i] == 0 or (0 < rank_a[i] < rank_b[i]) else rank_b[i]
        for i in range(offsets[s], offsets[s + 1]):
            if click[i]:
                a[s] += 0 < rank_a[i] <= k
                b[s] += 0 < rank_b[i] <= k


@kernel
def credit_chances(
    offsets: Any,
    chance_a: Any,
    chance_b: Any,
    total_a: Any,
    total_b: Any,
    click: Any,
    chance: Any,
    first: Any,
    last: Any,
    a: Any,
    b: Any,
    out: Any,
) -> None:
    """Expected credits per session, and P(A has more) - P(B has more).

    chance_a, chance_b: of each row to be picked first, before division by the totals; what was picked above is gone. chance: scratch for
    the distribution of A's credit, as long as the longest session and one more.
    """
    for s in range(first, last):
        left_a, left_b, n = total_a, total_b, 0
        chance[0] = 1.0
        for i in range(offsets[s], offsets[s + 1]):
            p, q = chance_a[i] / left_a, chance_b[i] / left_b
            left_a, left_b = left_a - chance_a[i], left_b - chance_b[i]
            if click[i] and p + q > 0:
                p /= p + q
                a[s] += p
                b[s] += 1.0 - p
                chance[n + 1] = 0.0
                for x in range(n + 1, 0, -1):
                    chance[x] = chance[x] * (1.0 - p) + chance[x - 1] * p
                chance[0] *= 1.0 - p
                n += 1
        out[s] = 0.0
        for x in range(n + 1):
            if 2 * x != n:
                out[s] += chance[x] if 2 * x > n else -chance[x]


def interleave_score(
    team: Any, log: ClickLog, *, method: str = "team_draft", depth: int | None = None, level: float = 0.95
) -> Interleaving:
    """Which of two rankers, A and B, won an interleaving experiment.

    Parameters
    ----------
    team
        "team_draft": int[n_rows], 1 for a document that A placed, 2 for B's, 0 for neither's. "balanced" and "probabilistic":
        (rank_a, rank_b), int[n_rows] each, the rank of each document shown in either ranking, 0 where it is absent.
    method
        "team_draft": a click counts for the team. "balanced": with k the better rank of the lowest click, clicks among the top k of each.
        "probabilistic": each click is divided by the chances of either ranker to have picked the document, softmax of rank ** -3 over
        what was left, and a session's outcome is averaged over all assignments.
    depth
        "probabilistic": how many documents each ranking has. None: as many as the deepest rank given.
    level
        The confidence of the interval.

    Where the log has clusters, such as users, a cluster wins or loses as a whole. Errors: `InputError`.

    Sources: Radlinski, Kurup and Joachims, CIKM 2008 (team draft); Joachims, KDD 2002 (balanced); Hofmann, Whiteson and de Rijke, CIKM
    2011 (probabilistic).

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, interleave_score
    >>> log = ClickLog([0, 2, 4, 6], doc=["a", "b"] * 3, click=[1, 0, 0, 1, 1, 0])
    >>> found = interleave_score([1, 2, 1, 2, 1, 2], log)
    >>> found.wins_a, found.wins_b, found.ties, round(found.delta, 4), found.p
    (2, 1, 0, 0.1667, 1.0)
    """
    one_of("method", method, METHODS)
    check_log(log)
    level = check_level(level)
    a, b, outcome = np.zeros(log.n_sessions), np.zeros(log.n_sessions), np.zeros(log.n_sessions)
    if method == "team_draft":
        teams = _numbers("team", team, log, 2)
        map_blocks(
            lambda first, last: credit_teams(log.offsets, teams, log.click, first, last, a, b), log.offsets, documents=BLOCK, threads=None
        )
        outcome = np.sign(a - b)
    else:
        rank_a, rank_b = _two(team, log)
        if method == "balanced":
            map_blocks(
                lambda first, last: credit_tops(log.offsets, rank_a, rank_b, log.click, first, last, a, b),
                log.offsets,
                documents=BLOCK,
                threads=None,
            )
            outcome = np.sign(a - b)
        else:
            _credit_by_chance(log, rank_a, rank_b, _depth(depth, rank_a, rank_b), a, b, outcome)
    return _result(log, a, b, outcome, method, level)


def _numbers(name: str, value: Any, log: ClickLog, most: int) -> np.ndarray:
    numbers = whole(name, flat(name, value, log.n_rows, "document shown"))
    wrong = (numbers < 0) | (numbers > most)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        rule = "1 (A), 2 (B) or 0 (neither)" if most == 2 else "a rank from 1 up, or 0 for none"
        raise InputError(f"{name} must be {rule}: {place(log.offsets, row)} has {numbers[row]}.")
    return frozen(numbers, np.int32)


def _two(team: Any, log: ClickLog) -> tuple[np.ndarray, np.ndarray]:
    if not isinstance(team, tuple | list) or len(team) != 2:
        raise InputError("team must be (rank_a, rank_b) for this method: the rank of each document shown in either ranking.")
    return _numbers("rank_a", team[0], log, 1 << 30), _numbers("rank_b", team[1], log, 1 << 30)


def _depth(depth: Any, rank_a: np.ndarray, rank_b: np.ndarray) -> int:
    deepest = max(int(rank_a.max(initial=0)), int(rank_b.max(initial=0)), 1)
    if depth is None:
        return deepest
    if isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < deepest:
        raise InputError(f"depth must be a whole number, and no less than the deepest rank given, {deepest}, not {depth!r}.")
    return int(depth)


def _credit_by_chance(
    log: ClickLog, rank_a: np.ndarray, rank_b: np.ndarray, depth: int, a: np.ndarray, b: np.ndarray, outcome: np.ndarray
) -> None:
    with np.errstate(divide="ignore"):
        chances = [
            frozen(np.where(ranks > 0, ranks**-STEEPNESS, 0.0), np.float64) for ranks in (rank_a.astype(float), rank_b.astype(float))
        ]
    # What is left of the total must never round to less than a document that is still to come.
    total = float((np.arange(1, depth + 1, dtype=np.float64) ** -STEEPNESS).sum()) * (1 + 1e-9)
    longest = int(np.diff(log.offsets).max(initial=0))

    def work(first: int, last: int) -> None:
        credit_chances(log.offsets, *chances, total, total, log.click, np.zeros(longest + 2), first, last, a, b, outcome)

    map_blocks(work, log.offsets, documents=BLOCK, threads=None)
    outcome[np.abs(outcome) < TIE] = 0.0


def _result(log: ClickLog, a: np.ndarray, b: np.ndarray, outcome: np.ndarray, method: str, level: float) -> Interleaving:
    from scipy.special import bdtr

    times = log.weights
    if log.cluster is not None:
        credit = outcome if method == "probabilistic" else a - b
        total = np.bincount(log.cluster, times * credit)
        size = np.bincount(log.cluster, times)
        outcome, times = (
            (total / np.maximum(size, 1e-300) if method == "probabilistic" else np.sign(total))[size > 0],
            np.ones(int((size > 0).sum())),
        )
    n = float(times.sum())
    wins_a, wins_b = (round(float(times[side].sum())) for side in (outcome > TIE, outcome < -TIE))
    mean = float(times @ outcome) / n if n else math.nan
    squares = float(times @ (outcome - mean) ** 2) if n else math.nan
    half = normal_quantile(level) * math.sqrt(squares / (n - 1) / n) / 2 if n > 1 else math.nan
    decided = wins_a + wins_b
    p = min(1.0, 2 * float(bdtr(min(wins_a, wins_b), decided, 0.5))) if decided else 1.0
    return Interleaving(
        wins_a=wins_a,
        wins_b=wins_b,
        ties=round(n) - decided,
        delta=mean / 2,
        lo=mean / 2 - half,
        hi=mean / 2 + half,
        p=p,
        credit_a=frozen(a, np.float64),
        credit_b=frozen(b, np.float64),
        outcome=frozen(outcome, np.float64),
        method=method,
        level=level,
    )

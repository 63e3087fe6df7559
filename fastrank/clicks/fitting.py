"""`fit`: the parameters of a click model from a log, by counting or by expectation and maximisation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastrank.clicks.checks import check_log
from fastrank.clicks.counting import FIRST, LAST, MIDDLE, ONLY, SKIP_ABOVE, SKIP_ALONE, SKIP_BELOW, SKIP_BETWEEN, count_places, count_tails
from fastrank.clicks.expectation import CcmSteps, CellSteps, DbnSteps, Places, Prior, Priors, Trials, log_sum
from fastrank.clicks.models import DEEPEST_OF_UBM, NEEDS, ClickModel, check_name
from fastrank.engine.calls import check_threads
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.clicks.log import ClickLog

Report = Callable[[int, float], object]
CLICKS, SKIPS = (FIRST, MIDDLE, LAST, ONLY), (SKIP_ABOVE, SKIP_BETWEEN, SKIP_BELOW, SKIP_ALONE)
LAST_CLICKS, EARLIER_CLICKS = (LAST, ONLY), (FIRST, MIDDLE)
# What dcm and sdbn take to be examined: all above the last click, and the whole list where nothing was clicked.
EXAMINED_SKIPS = (SKIP_ABOVE, SKIP_BETWEEN, SKIP_ALONE)


def fit(
    log: ClickLog,
    model: str = "pbm",
    prior: tuple[float, float] | float = (1, 1),
    gamma: float | None = None,
    max_iter: int = 500,
    tol: float = 1e-6,
    accelerate: bool = True,
    *,
    threads: int | None = None,
    report: Report | None = None,
) -> ClickModel:
    """Fit a click model to a log.

    gctr, rctr, dctr and cm are counts, and the exact maximum. dcm and sdbn are counts under the papers' convention that a list is examined
    down to its last click, and wholly where nothing was clicked. pbm, ubm, dbn and ccm maximise the exact posterior by expectation and
    maximisation; dbn and ccm with the forward and backward recursion over each list.

    Parameters
    ----------
    log
        What was shown and clicked. Sessions without clicks count, empty ones say nothing.
    model
        "gctr", "rctr", "dctr", "pbm", "cm", "dcm", "sdbn", "dbn", "ubm" or "ccm": see `ClickModel`.
    prior
        Pseudo-counts (a, b) of every parameter: an estimate is (yes + a) / (trials + a + b), and (a + 0) / (a + b) without data. (0, 0):
        none, and 1/2 without data. One number s: the attraction has (s m, s (1 - m)), where m is the click-through rate at rank 1, which
        suits small logs; the other parameters keep (1, 1).
    gamma
        dbn alone: hold continuation at this value. It and satisfaction are told apart weakly.
    max_iter
        Passes over the data, at most.
    tol
        Stop when a step moves no parameter by more than this.
    accelerate
        Leap ahead on the path of the last two steps (SQUAREM), and step back where the posterior would fall: the same maximum in about a
        tenth of the passes. False: plain steps.
    threads
        None: every processor. The bits are the same for any number.
    report
        Called with the number of passes and the log posterior after each.

    Returns
    -------
    ClickModel
        With `objective`, the log posterior after each step, which never falls; `n_iterations`, the passes, those of leaps taken back
        included; `converged`. For the models that are counts the objective is the log posterior of what was counted.

    The examination of pbm is a parameter of this model and no estimate of position bias: documents that are shown high are better, and a
    finite log cannot part the two. For that use `propensity`.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: those of `ClickModel`; Varadhan and Roland, Scandinavian Journal of Statistics 35, 2008 (SQUAREM).

    Examples
    --------
    >>> from fastrank.clicks import ClickLog, fit
    >>> log = ClickLog([0, 2, 4, 6], doc=["a", "b", "b", "a", "a", "b"], click=[1, 0, 0, 1, 1, 0], query=["q", "q", "q"])
    >>> fit(log, "dctr").attr.tolist()
    [0.8, 0.2]
    >>> model = fit(log, "pbm", tol=1e-8)
    >>> model.converged, model.attr.round(3).tolist(), model.exam.round(3).tolist()
    (True, [0.8, 0.267], [0.734, 0.616])
    """
    check_log(log)
    name, threads = check_name(model), check_threads(threads)
    _check_limits(max_iter, tol)
    if gamma is not None and name != "dbn":
        raise InputError(f"gamma= is the continuation of dbn, and {name} has none to hold: leave it out.")
    if gamma is not None and (isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma <= 1):
        raise InputError(f"gamma must be a probability above 0, not {gamma!r}.")
    priors = _priors(prior, log)
    if name in _COUNTED:
        return _COUNTED[name](log, priors)
    steps = _steps(name, log, priors, None if gamma is None else float(gamma), threads)
    found = maximise(steps.step, steps.start(), max_iter=max_iter, tol=tol, accelerate=accelerate, report=report)
    told = {"objective": found.objective, "n_iterations": found.n_steps, "converged": found.converged}
    return _model(name, log, priors, **steps.parameters(found.x), **told)


# --- the boundary ---------------------------------------------------------------------------------------------------------------


def _check_limits(max_iter: Any, tol: Any) -> None:
    if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
        raise InputError(f"max_iter must be a whole number from 1 up, not {max_iter!r}.")
    if isinstance(tol, bool) or not isinstance(tol, int | float | np.number) or not 0 <= tol < 1:
        raise InputError(f"tol must be a number from 0 up and below 1, not {tol!r}.")


def _priors(prior: Any, log: ClickLog) -> Priors:
    """Pseudo-counts (yes, no) of the attraction, and of all else."""
    numbers = prior if isinstance(prior, tuple | list) else (prior,)
    legal = all(isinstance(x, int | float | np.number) and not isinstance(x, bool) and 0 <= x < np.inf for x in numbers)
    if len(numbers) not in (1, 2) or not legal:
        raise InputError(f"prior must be two pseudo-counts (a, b), or one number, the strength of a mean-centred prior, not {prior!r}.")
    if len(numbers) == 2:
        pair = float(numbers[0]), float(numbers[1])
        return pair, pair
    yes, no = count_places(log, "rank", CLICKS, SKIPS)[:, 0].tolist() if log.n_positions else (0.0, 0.0)
    m = yes / (yes + no) if yes + no else 0.5
    return (numbers[0] * m, numbers[0] * (1 - m)), (1.0, 1.0)


def _mean(prior: Prior) -> float:
    return prior[0] / (prior[0] + prior[1]) if sum(prior) else 0.5


# --- counts ---------------------------------------------------------------------------------------------------------------------


def _model(name: str, log: ClickLog, priors: Priors, **fields: Any) -> ClickModel:
    """A model of the documents of a log."""
    if "attr" in NEEDS[name]:
        fields |= _ids(log)
    return ClickModel(name, unseen=(_mean(priors[0]), _mean(priors[1])), **fields)


def _ids(log: ClickLog) -> dict[str, pa.Array | None]:
    import pyarrow as pa

    def of(codes: np.ndarray, values: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes), values)

    return {"docs": of(log.pair_doc, log.docs), "queries": None if log.queries is None else of(log.pair_query, log.queries)}


def _counted(name: str, log: ClickLog, priors: Priors, **kinds: tuple[np.ndarray, np.ndarray]) -> ClickModel:
    """A model whose parameters are shares: per kind (yes, no)."""
    fields, objective = {}, 0.0
    for kind, (yes, no) in kinds.items():
        prior = priors[0] if kind == "attr" else priors[1]
        fields[kind] = Trials(yes, yes + no, prior).estimate()
        objective += log_sum(yes + prior[0], fields[kind]) + log_sum(no + prior[1], 1.0 - fields[kind])
    return _model(name, log, priors, objective=[objective], **fields)


def _gctr(log: ClickLog, priors: Priors) -> ClickModel:
    yes, no = count_places(log, "rank", CLICKS, SKIPS).sum(axis=1, keepdims=True)
    return _counted("gctr", log, priors, exam=(yes, no))


def _rctr(log: ClickLog, priors: Priors) -> ClickModel:
    yes, no = count_places(log, "rank", CLICKS, SKIPS)
    return _counted("rctr", log, priors, exam=(yes, no))


def _dctr(log: ClickLog, priors: Priors) -> ClickModel:
    yes, no = count_places(log, "pair", CLICKS, SKIPS)
    return _counted("dctr", log, priors, attr=(yes, no))


def _cm(log: ClickLog, priors: Priors) -> ClickModel:
    """Rows down to the first click."""
    yes, no = count_places(log, "pair", (FIRST, ONLY), (SKIP_ABOVE, SKIP_ALONE))
    return _counted("cm", log, priors, attr=(yes, no))


def _dcm(log: ClickLog, priors: Priors) -> ClickModel:
    yes, no = count_places(log, "pair", CLICKS, EXAMINED_SKIPS)
    on, off = count_places(log, "rank", EARLIER_CLICKS, LAST_CLICKS)
    return _counted("dcm", log, priors, attr=(yes, no), cont=(on, off))


def _sdbn(log: ClickLog, priors: Priors) -> ClickModel:
    earlier, last, no = count_places(log, "pair", EARLIER_CLICKS, LAST_CLICKS, EXAMINED_SKIPS)
    return _counted("sdbn", log, priors, attr=(earlier + last, no), sat=(last, earlier))


_COUNTED = {"gctr": _gctr, "rctr": _rctr, "dctr": _dctr, "cm": _cm, "dcm": _dcm, "sdbn": _sdbn}


# --- hidden states --------------------------------------------------------------------------------------------------------------


def _steps(name: str, log: ClickLog, priors: Priors, gamma: float | None, threads: int | None) -> CellSteps | DbnSteps | CcmSteps:
    if name == "ubm" and log.n_positions > DEEPEST_OF_UBM:
        cure = f"Cut the lists at {DEEPEST_OF_UBM} rows, or fit pbm."
        raise InputError(f"ubm has a parameter for every two ranks, too many for lists of {log.n_positions} rows. {cure}")
    if name in ("pbm", "ubm"):
        return CellSteps(log.cells(int(name == "ubm"), threads=threads), log.n_positions, priors, threads)
    # A user who never leaves but content has seen all of a list without clicks.
    sure = gamma == 1.0
    passed, below = (EXAMINED_SKIPS, (SKIP_BELOW,)) if sure else ((SKIP_ABOVE, SKIP_BETWEEN), (SKIP_BELOW, SKIP_ALONE))
    places = Places(*count_places(log, "pair", passed, EARLIER_CLICKS, LAST_CLICKS, below))
    data = count_tails(log, alone=not sure), places, priors, threads
    return CcmSteps(*data) if name == "ccm" else DbnSteps(*data, gamma=gamma)


class Maximum(NamedTuple):
    """Where a climb ended: the parameters, the objective on the way (the last is theirs), and how many steps were computed."""

    x: np.ndarray
    objective: list[float]
    n_steps: int
    converged: bool


def maximise(
    step: Callable[[np.ndarray], tuple[np.ndarray, float]],
    x: np.ndarray,
    *,
    max_iter: int,
    tol: float,
    accelerate: bool,
    report: Report | None = None,
) -> Maximum:
    """Repeat a step that never lowers the objective, until it moves no parameter by more than tol.

    step(x) gives the next parameters and the objective of x. With `accelerate`, two steps r = x1 - x0 and v = (x2 - x1) - r are followed by
    a leap to x0 + 2 s r + s² v, s = |r| / |v|, from which the next step is taken; where the objective is lower there than at x1, x2 is kept
    instead. A parameter that would leave the open interval (0, 1) stays at x2.
    """
    path: list[float] = []
    n_steps = 0

    def go(x: np.ndarray, least: float = -np.inf) -> tuple[np.ndarray, bool, bool]:
        """The next parameters, whether the objective of these is good enough, and whether this step was too short to go on."""
        nonlocal n_steps
        after, objective = step(x)
        n_steps += 1
        good = objective >= least
        if good:
            path.append(objective)
        if report is not None:
            report(n_steps, path[-1])
        return after, good, bool(np.abs(after - x).max(initial=0.0) <= tol)

    converged = False
    while not converged and n_steps < max_iter:
        before = x
        x, _, converged = go(before)
        if not accelerate or converged or n_steps == max_iter:
            continue
        r = x - before
        x1 = x
        x, _, converged = go(x1)
        if converged or n_steps == max_iter:
            continue
        v = (x - x1) - r
        bend = _norm(v)
        if bend == 0:
            continue
        s = _norm(r) / bend
        leap = before + (2 * s) * r + (s * s) * v
        leap = np.where((leap > 0) & (leap < 1), leap, x)
        after, good, short = go(leap, path[-1])
        if good:
            x, converged = after, short
    path.append(step(x)[1])
    return Maximum(x, path, n_steps, converged)


def _norm(x: np.ndarray) -> float:
    """The length of a vector; not by BLAS, whose sums depend on its threads."""
    return float(np.sqrt(np.einsum("i,i->", x, x)))

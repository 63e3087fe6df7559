"""The formulas of click models again, one row and one hidden state at a time, and logs to try them on."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from fastrank.clicks import ClickLog, ClickModel

NAMES = ("gctr", "rctr", "dctr", "pbm", "cm", "dcm", "sdbn", "dbn", "ubm", "ccm")


def draw_model(name: str, rng: np.random.Generator, docs: Any, n_ranks: int, queries: Any = None) -> ClickModel:
    """A model with parameters drawn between 0.1 and 0.9."""
    n = len(docs)

    def draw(*shape: int) -> np.ndarray:
        return rng.uniform(0.1, 0.9, shape)

    pairs = {"attr": draw(n), "docs": docs, "queries": queries}
    browsing = np.where(np.tri(n_ranks, n_ranks + 1) > 0, draw(n_ranks, n_ranks + 1), np.nan)
    parameters: dict[str, dict[str, Any]] = {
        "gctr": {"exam": draw(1)},
        "rctr": {"exam": draw(n_ranks)},
        "dctr": pairs,
        "pbm": pairs | {"exam": draw(n_ranks)},
        "cm": pairs,
        "dcm": pairs | {"cont": draw(n_ranks)},
        "sdbn": pairs | {"sat": draw(n)},
        "dbn": pairs | {"sat": draw(n), "cont": draw(1)},
        "ubm": pairs | {"exam": browsing},
        "ccm": pairs | {"cont": draw(3)},
    }
    return ClickModel(name, **parameters[name])


def draw_log(
    rng: np.random.Generator, n_sessions: int, *, n_queries: int = 3, n_docs: int = 6, longest: int = 5, weighted: bool = False
) -> ClickLog:
    """Sessions of 0 to `longest` documents, some without clicks, each of one of some queries."""
    sizes = rng.integers(0, longest + 1, n_sessions)
    docs = [rng.permutation(n_docs)[:size] for size in sizes]
    click = rng.random(int(sizes.sum())) < 0.3
    weight = rng.integers(0, 4, n_sessions) if weighted else None
    doc = np.concatenate([np.zeros(0, np.int64), *docs])
    return ClickLog(np.append(0, np.cumsum(sizes)), doc, click, rng.integers(0, n_queries, n_sessions), weight=weight)


def with_clicks(log: ClickLog, click: Any, weight: Any = None) -> ClickLog:
    """The same lists with other clicks."""
    query = None if log.queries is None else log.queries.take(log.query)
    return ClickLog(log.offsets, log.docs.take(log.pair_doc[log.qd]), click, query, log.position, weight=weight)


def sessions(log: ClickLog) -> Iterator[tuple[list[int], list[int], list[int], float]]:
    """The pairs, ranks, clicks and weight of each session."""
    for s, (start, stop) in enumerate(itertools.pairwise(log.offsets.tolist())):
        span = slice(start, stop)
        yield log.qd[span].tolist(), log.position[span].tolist(), log.click[span].tolist(), float(log.weights[s])


# --- conditional probabilities --------------------------------------------------------------------------------------------------


def conditional(model: ClickModel, pairs: list[int], ranks: list[int], clicks: list[int]) -> list[float]:
    """P(click | clicks above) of each row of a session, whose pairs are places in the model."""
    found: list[float] = []
    examined = 1.0
    clicked = 0
    for p, k, click in zip(pairs, ranks, clicks, strict=True):
        a: Any = None if model.attr is None else model.attr[p]
        exam: Any = model.exam
        cont: Any = model.cont
        match model.name:
            case "gctr":
                chance = exam[0]
            case "rctr":
                chance = exam[k - 1]
            case "dctr":
                chance = a
            case "pbm":
                chance = a * exam[k - 1]
            case "ubm":
                chance = a * exam[k - 1, clicked]
            case _:
                chance = a * examined
        found.append(float(chance))
        clicked = k if click else clicked
        skipped = (1 - a) * examined / (1 - a * examined) if a is not None else 0.0
        match model.name:
            case "cm":
                examined = 0.0 if click else 1.0 if clicked == 0 else 0.0
            case "dcm":
                examined = cont[k - 1] if click else skipped
            case "sdbn":
                examined = 1 - model.sat[p] if click else skipped  # type: ignore[index]
            case "dbn":
                examined = cont[0] * (1 - model.sat[p] if click else skipped)  # type: ignore[index]
            case "ccm":
                examined = cont[1] * (1 - a) + cont[2] * a if click else cont[0] * skipped
    return found


# --- expectation and maximisation, row by row -----------------------------------------------------------------------------------


class Counts:
    """How often each parameter came true and was tried; pseudo-counts included when it is read."""

    def __init__(self, prior: tuple[float, float]) -> None:
        self.yes: dict[Any, float] = defaultdict(float)
        self.total: dict[Any, float] = defaultdict(float)
        self.prior = prior

    def add(self, parameter: Any, yes: float, total: float) -> None:
        self.yes[parameter] += yes
        self.total[parameter] += total

    def estimate(self, parameter: Any) -> float:
        a, b = self.prior
        return (self.yes[parameter] + a) / (self.total[parameter] + a + b) if self.total[parameter] + a + b else 0.5


def step_by_rows(log: ClickLog, now: dict[Any, float], prior: tuple[float, float], *, by_click: bool) -> dict[Any, float]:
    """One step for pbm or ubm. `now`: parameters by ("attr", pair) and ("exam", rank, last clicked rank)."""
    counts = Counts(prior)
    for pairs, ranks, clicks, w in sessions(log):
        clicked = 0
        for p, k, click in zip(pairs, ranks, clicks, strict=True):
            attr, exam = ("attr", p), ("exam", k, clicked if by_click else 0)
            a, e = now[attr], now[exam]
            counts.add(attr, w * (1.0 if click else (1 - e) * a / (1 - a * e)), w)
            counts.add(exam, w * (1.0 if click else (1 - a) * e / (1 - a * e)), w)
            clicked = k if click else clicked
    return {parameter: counts.estimate(parameter) for parameter in now}


def _histories(name: str, now: dict[Any, float], pairs: list[int], clicks: list[int]) -> Iterator[tuple[float, list[tuple[Any, int]]]]:
    """Every hidden course of a session that its clicks allow: its probability, and the trials in it with their outcomes."""

    def go(i: int, examined: bool) -> Iterator[tuple[float, list[tuple[Any, int]]]]:
        if i == len(pairs):
            yield 1.0, []
            return
        for attractive in (0, 1):
            if (examined and attractive) != bool(clicks[i]):
                continue
            here = [(("attr", pairs[i]), attractive)]
            for more in endings(i, examined, bool(clicks[i])):
                chance = np.prod([now[parameter] if yes else 1 - now[parameter] for parameter, yes in here + more[0]])
                for rest, trials in go(i + 1, more[1]):
                    yield float(chance) * rest, here + more[0] + trials

    def endings(i: int, examined: bool, click: bool) -> Iterator[tuple[list[tuple[Any, int]], bool]]:
        """Trials after a row, and whether the next one is examined. Below the last row nothing is tried but dbn's satisfaction."""
        last = i == len(pairs) - 1
        if not examined:
            yield [], False
        elif not click:
            yield from ([([], False)] if last else [([(("cont", 0), on)], bool(on)) for on in (0, 1)])
        else:
            parameter = ("sat", pairs[i]) if name == "dbn" else ("attr", pairs[i])
            if last and name == "ccm":
                yield [], False
                return
            for content in (0, 1):
                if last or (name == "dbn" and content):
                    yield [(parameter, content)], False
                    continue
                on = ("cont", 0 if name == "dbn" else 2 if content else 1)
                yield from (([(parameter, content), (on, moved)], bool(moved)) for moved in (0, 1))

    return go(0, True)


def step_by_histories(log: ClickLog, now: dict[Any, float], prior: tuple[float, float], name: str) -> tuple[dict[Any, float], float]:
    """One step for dbn or ccm by summing over hidden courses, and the log posterior of `now`."""
    counts, objective = Counts(prior), sum(prior[0] * np.log(p) + prior[1] * np.log(1 - p) for p in now.values())
    for pairs, _, clicks, w in sessions(log):
        courses = list(_histories(name, now, pairs, clicks))
        total = sum(chance for chance, _ in courses)
        objective += w * np.log(total)
        for chance, trials in courses:
            for parameter, yes in trials:
                counts.add(parameter, w * chance / total * yes, w * chance / total)
    return {parameter: counts.estimate(parameter) for parameter in now}, float(objective)


def step_by_recursion(log: ClickLog, now: dict[Any, float], prior: tuple[float, float]) -> dict[Any, float]:
    """One step for dbn, forward and backward over every row of every list."""
    counts, gamma = Counts(prior), now["cont", 0]
    for pairs, _, clicks, w in sessions(log):
        n = len(pairs)
        ahead, none, forward = [1.0] * (n + 1), [1.0] * (n + 1), [1.0] * (n + 1)
        for k in range(n - 1, -1, -1):
            a, s = now["attr", pairs[k]], now["sat", pairs[k]]
            if clicks[k]:
                ahead[k] = a * ((1 - s) * gamma * ahead[k + 1] + (s + (1 - s) * (1 - gamma)) * none[k + 1])
            else:
                ahead[k] = (1 - a) * (gamma * ahead[k + 1] + (1 - gamma) * none[k + 1])
            none[k] = 0.0 if clicks[k] else none[k + 1]
        for k in range(n):
            a, s = now["attr", pairs[k]], now["sat", pairs[k]]
            forward[k + 1] = forward[k] * (a * (1 - s) * gamma if clicks[k] else (1 - a) * gamma)
            examined, share = forward[k] * ahead[k] / ahead[0], forward[k] / ahead[0]
            counts.add(("attr", pairs[k]), w * (1.0 if clicks[k] else (1 - examined) * a), w)
            if clicks[k]:
                counts.add(("sat", pairs[k]), w * share * a * s * none[k + 1], w)
            if k < n - 1:
                stay = share * (a * (1 - s) if clicks[k] else 1 - a)
                on, off = stay * gamma * ahead[k + 1], stay * (1 - gamma) * none[k + 1]
                counts.add(("cont", 0), w * on, w * (on + off))
    return {parameter: counts.estimate(parameter) for parameter in now}

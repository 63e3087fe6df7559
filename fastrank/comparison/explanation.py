"""`explain_difference`: which choice moves a number."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fastrank.comparison.choices import Setting, gaps, in_words, mixtures, moved, separate, show_choice
from fastrank.convention import Convention, as_convention
from fastrank.engine.calls import evaluate
from fastrank.engine.runs import evaluate_run
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, to_json
from fastrank.io.grouped import GroupedQrels
from fastrank.io.judgements import Qrels, Run
from fastrank.metrics.base import Metric
from fastrank.metrics.grammar import parse_metric

N_MOVERS = 5

Side = str | Convention | Evaluation


class Choice(NamedTuple):
    """A choice on which both sides differ.

    `alone`: what switching it, and nothing else, adds to the mean of the first side, and for how many queries; None where it does not
    go together with the other choices there, or where there are no data to try it on.
    """

    name: str
    values: tuple[str, str]
    alone: float | None
    n_moved: int | None


class Share(NamedTuple):
    """What a choice adds to the mean when it is switched after those before it; several that had to be switched together."""

    choices: tuple[str, ...]
    shift: float
    n_moved: int


class Moved(NamedTuple):
    """A query and its value on both sides."""

    query: Any
    values: tuple[float, float]

    @property
    def difference(self) -> float:
        """The second value less the first."""
        return self.values[1] - self.values[0]


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why one metric has two values.

    Attributes: `metrics`, filled on both sides; `sides`, their names; `means`; `n_queries`, and `n_moved`, those whose value differs;
    `choices`, all on which the sides differ; `shares`, those that separate the values, in the order in which they were switched;
    `movers`, the queries that move most. `sentence` says it.
    """

    metrics: tuple[Metric, Metric]
    sides: tuple[str, str]
    means: tuple[float, float]
    n_queries: int
    n_moved: int
    choices: tuple[Choice, ...]
    shares: tuple[Share, ...]
    movers: tuple[Moved, ...]

    @property
    def difference(self) -> float:
        """The mean of the second side less that of the first."""
        return self.means[1] - self.means[0]

    @property
    def name(self) -> str:
        """The metric as it was asked for."""
        return self.metrics[0].short_name

    @property
    def sentence(self) -> str:
        """The explanation in words."""
        one, two = self.sides
        if not self.n_moved:
            same = f"{self.name} is {_number(self.means[0])} under both {one} and {two}"
            if not self.choices:
                return f"{same}, which make the same choices."
            names = _listed([in_words(each.name) for each in self.choices])
            none = "none of which moves a query" if len(self.choices) > 1 else "which moves no query"
            return f"{same}: they differ in the {names}, {none} here."
        begin = f"{self.name} is {_number(self.means[0])} under {one} and {_number(self.means[1])} under {two}"
        where = f"on {self.n_moved} of {self.n_queries} {'query' if self.n_queries == 1 else 'queries'}"
        if not self.choices:
            return f"{begin}, though both make the same choices: they saw other data {where}."
        if not self.shares:
            names = _listed([self._choice(each.name) for each in self.choices])
            return f"{begin}, {where}. They differ in the {names}; give labels and scores to see what each adds."
        if len(self.shares) == 1:
            return f"{begin}: all of the difference, {_signed(self.difference)} {where}, comes from {self._share(self.shares[0])}."
        parts = [f"{_signed(share.shift)} from {self._share(share)}" for share in self.shares]
        return f"{begin}: of the difference, {_signed(self.difference)} {where}, {_listed(parts)}."

    def _share(self, share: Share) -> str:
        named = [f"the {self._choice(name)}" for name in share.choices]
        return _listed(named) + (", switched together" if len(named) > 1 else "")

    def _choice(self, name: str) -> str:
        found = next(each for each in self.choices if each.name == name)
        return f"{in_words(name)} ({found.values[0]} against {found.values[1]})"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts and lists."""
        return {
            "metric": self.name,
            "sides": [
                {"name": side, "full_name": str(metric), "formula": metric.formula, "mean": mean}
                for side, metric, mean in zip(self.sides, self.metrics, self.means, strict=True)
            ],
            "difference": self.difference,
            "n_queries": self.n_queries,
            "n_moved": self.n_moved,
            "sentence": self.sentence,
            "choices": [each._asdict() | {"values": list(each.values)} for each in self.choices],
            "shares": [share._asdict() | {"choices": list(share.choices)} for share in self.shares],
            "movers": [{"query": each.query, "values": list(each.values), "difference": each.difference} for each in self.movers],
        }

    def to_json(self) -> str:
        """`to_dict` as strict JSON; NaN is null."""
        return to_json(self.to_dict())

    def __repr__(self) -> str:
        from fastrank.report.explained import explanation_text

        return explanation_text(self)

    def _repr_html_(self) -> str:
        from fastrank.report.explained import explanation_text

        return explanation_text(self, "html")


def explain_difference(
    labels: Any,
    scores: Any = None,
    offsets: Any = None,
    *,
    metric: str | Metric | None = None,
    between: Sequence[Side] | None = None,
    sizes: Any = None,
    query_ids: Any = None,
    doc_ids: Any = None,
    weights: Any = None,
    threads: int | None = None,
) -> Explanation:
    """Find which choices separate two values of one metric, and say it in a sentence.

    Each choice on which both sides differ (gain, order of equal scores, value of a query with nothing to find, denominator, ...) is
    switched from the first side to the second alone; then one after the other, that which brings the values of the queries nearest
    to those of the second side first, until they are met. Two or more are switched together where no single choice comes nearer.

    Parameters
    ----------
    labels, scores, offsets, sizes, query_ids, doc_ids, weights, threads
        As `fr.evaluate`. Or judgements and a run in the place of labels and scores, as `fr.evaluate_run` takes them. Or two
        evaluations of the same queries: then their choices are set side by side, and which of several separates them is open.
    metric
        One metric, by name or as a value. It may be left out where the evaluations have one.
    between
        The two sides: names of conventions, conventions, or evaluations of these data.

    Returns
    -------
    Explanation
        sentence, means, choices, shares and movers; printed, a table.

    Errors: `InputError`, one line that says what, where and the cure.

    Examples
    --------
    >>> import fastrank as fr
    >>> labels, scores = [[2, 0, 1], [0, 0, 0]], [[0.3, 0.9, 0.1], [0.2, 0.1, 0.3]]
    >>> found = fr.explain_difference(labels, scores, metric="ndcg", between=("lightgbm", "sklearn"))
    >>> found.sentence
    'nDCG is 0.8295 under lightgbm and 0.3348 under sklearn: of the difference, -0.4947 on 2 of 2 queries, -0.5000 from the value of a
    query with nothing to find (one against zero) and +0.0053 from the gain (exp2 against linear).'
    """
    if isinstance(labels, Evaluation):
        if not isinstance(scores, Evaluation) or between is not None:
            raise InputError("two evaluations are compared as explain_difference(one, other); between= belongs to labels and scores.")
        return _of_results(labels, scores, metric)
    if metric is None:
        raise InputError("metric must be the name of one metric, such as metric='nDCG@10'.")
    if isinstance(labels, Qrels | GroupedQrels | Mapping | str | bytes | os.PathLike):
        if any(given is not None for given in (offsets, sizes, query_ids, doc_ids, weights)):
            raise InputError("qrels and a run bring their queries and ids along: leave out offsets, sizes, query_ids, doc_ids and weights.")
        qrels = Qrels.read(labels, threads=threads) if isinstance(labels, str | bytes | os.PathLike) else labels
        run = Run.read(scores, threads=threads) if isinstance(scores, str | bytes | os.PathLike) else scores
        return explain_with(functools.partial(evaluate_run, qrels, run, threads=threads), metric, between)
    given = {"sizes": sizes, "query_ids": query_ids, "doc_ids": doc_ids, "weights": weights, "threads": threads}
    return explain_with(functools.partial(evaluate, labels, scores, offsets, **given), metric, between)


def explain_with(source: Callable[..., Evaluation], metric: str | Metric, between: Sequence[Side] | None) -> Explanation:
    """Explain with any function that evaluates one metric under one convention on the same data."""
    if not isinstance(between, Sequence) or isinstance(between, str) or len(between) != 2:
        raise InputError("between must be two sides, such as between=('lightgbm', 'sklearn').")
    settings = _setting(between[0], metric), _setting(between[1], metric)
    _check_family(settings[0].metric, settings[1].metric)
    ends = [source(metrics=each.metric, convention=each.convention) for each in settings]
    for side, end in zip(between, ends, strict=True):
        if isinstance(side, Evaluation) and not _is_of(side, end):
            raise InputError("an evaluation in between= has other values than these data give: give what it was computed from.")
    mixture = mixtures(source, *settings)
    names = settings[0].differing(settings[1])
    one, other = (_values(end) for end in ends)

    def alone(name: str) -> Choice:
        result = mixture((name,))
        shown = show_choice(name, settings[0]), show_choice(name, settings[1])
        if result is None:
            return Choice(name, shown, None, None)
        return Choice(name, shown, _mean(result) - _mean(ends[0]), int(np.count_nonzero(moved(one, _values(result)))))

    def values(choices: tuple[str, ...]) -> np.ndarray | None:
        result = mixture(choices)
        return None if result is None else _values(result)

    shares: list[Share] = []
    switched: tuple[str, ...] = ()
    before, mean = one, _mean(ends[0])
    for choices, _ in separate(values, names, other, together=len(names)):
        switched = (*switched, *choices)
        result = mixture(switched)
        assert result is not None
        shares.append(Share(choices, _mean(result) - mean, int(np.count_nonzero(moved(before, _values(result))))))
        before, mean = _values(result), _mean(result)
    sides = _side_name(between[0], settings[0]), _side_name(between[1], settings[1])
    return _explanation(settings, sides, ends, tuple(map(alone, names)), tuple(shares))


def _of_results(one: Evaluation, other: Evaluation, metric: str | Metric | None) -> Explanation:
    """Two evaluations side by side: without the data no choice can be switched."""
    if metric is None and (len(one.metrics) > 1 or len(other.metrics) > 1):
        raise InputError(f"metric must say which of the metrics is meant: {', '.join(one.names)}.")
    settings = [Setting(each.metrics[0], each.convention) if metric is None else _setting(each, metric) for each in (one, other)]
    _check_family(settings[0].metric, settings[1].metric)
    same_ids = one.query_ids is None or other.query_ids is None or one.query_ids.to_pylist() == other.query_ids.to_pylist()
    if one.n_queries != other.n_queries or not same_ids:
        raise InputError(f"the evaluations have other queries, {one.n_queries} and {other.n_queries}: evaluate both on the same ones.")
    ends = [
        Evaluation(
            (setting.metric,),
            setting.convention,
            values=each[setting.metric][:, None],
            n_queries=each.n_queries,
            no_relevant=(0,),
            query_ids=each.query_ids,
            weights=each.weights,
        )
        for setting, each in zip(settings, (one, other), strict=True)
    ]
    shown = [(name, (show_choice(name, settings[0]), show_choice(name, settings[1]))) for name in settings[0].differing(settings[1])]
    n_moved = int(np.count_nonzero(moved(_values(ends[0]), _values(ends[1]))))
    choices = tuple(Choice(name, values, None, None) for name, values in shown)
    shares = (Share((choices[0].name,), _mean(ends[1]) - _mean(ends[0]), n_moved),) if len(choices) == 1 and n_moved else ()
    names = [setting.convention.name for setting in settings]
    sides = (names[0], names[1]) if names[0] != names[1] else ("one", "the other")
    return _explanation((settings[0], settings[1]), sides, ends, choices, shares)


def _explanation(
    settings: tuple[Setting, Setting],
    sides: tuple[str, str],
    ends: Sequence[Evaluation],
    choices: tuple[Choice, ...],
    shares: tuple[Share, ...],
) -> Explanation:
    one, other = _values(ends[0]), _values(ends[1])
    away = gaps(one, other)
    most = [row for row in np.argsort(-away, kind="stable")[:N_MOVERS].tolist() if away[row]]
    ids = ends[0].query_ids
    movers = tuple(Moved(row if ids is None else ids[row].as_py(), (float(one[row]), float(other[row]))) for row in most)
    means = _mean(ends[0]), _mean(ends[1])
    metrics = settings[0].metric, settings[1].metric
    return Explanation(metrics, sides, means, len(one), int(np.count_nonzero(away)), choices, shares, movers)


# --- sides ----------------------------------------------------------------------------------------------------------------------


def _setting(side: Side, metric: str | Metric) -> Setting:
    if isinstance(side, Evaluation):
        try:
            side[metric]
        except KeyError as error:
            raise InputError(f"{error.args[0]}. Name one that the evaluation has.") from None
        return Setting(parse_metric(metric, side.convention), side.convention)
    convention = as_convention(side)
    return Setting(parse_metric(metric, convention), convention)


def _side_name(side: Side, setting: Setting) -> str:
    return setting.convention.name if not isinstance(side, str) else side


def _check_family(one: Metric, other: Metric) -> None:
    if one.family != other.family:
        raise InputError(f"{one.short_name} and {other.short_name} are two metrics, not one by two formulas.")


def _is_of(given: Evaluation, computed: Evaluation) -> bool:
    """Whether an evaluation has the values that were computed anew."""
    if given.values is None or given.n_queries != computed.n_queries:
        return False
    return not moved(given[computed.metrics[0]], _values(computed)).any()


def _values(result: Evaluation) -> np.ndarray:
    assert result.values is not None
    return result.values[:, 0]


def _mean(result: Evaluation) -> float:
    return next(iter(result.mean().values()))


# --- words ----------------------------------------------------------------------------------------------------------------------


def _number(value: float) -> str:
    return f"{value:.4f}"


def _signed(value: float) -> str:
    return f"{value:+.4f}" if value == 0 or abs(value) >= 5e-5 else f"{value:+.1e}"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

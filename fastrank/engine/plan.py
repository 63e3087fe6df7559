"""A plan: the metrics of a call, filled by the convention, and what must be computed for them."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fastrank._cached import cached_property
from fastrank.convention import TIE_RULES, Convention, as_convention, one_of
from fastrank.errors import InputError
from fastrank.evaluation import unique_names
from fastrank.metrics import Metric
from fastrank.metrics.base import LARGEST_CUTOFF
from fastrank.metrics.grammar import as_items, parse_metrics
from fastrank.metrics.view import Answers, plan_walks

if TYPE_CHECKING:
    from fastrank.batch import QueryBatch


FILLS = {"zero": 0.0, "one": 1.0, "nan": np.nan, "skip": np.nan}


@dataclass(frozen=True, eq=False)
class TieGroup:
    """Metrics that order equal scores alike, and the same documents: one ranking serves them.

    above: documents whose score is not above it are not retrieved; None: all are.
    """

    rule: str
    judged_only: bool
    above: float | None
    columns: tuple[int, ...]
    answers: Answers


@dataclass(frozen=True, eq=False)
class Plan:
    """What to compute. `least` is the smallest label that any of the metrics looks at."""

    metrics: tuple[Metric, ...]
    convention: Convention
    groups: tuple[TieGroup, ...]
    least: float
    depth: int | None
    judged_only: bool
    bounds: bool

    @cached_property
    def fills(self) -> tuple[float | None, ...]:
        """The value of a query with nothing to find, per metric; None where there always is something."""
        return tuple(FILLS[getattr(metric, "no_relevant")] if metric.has_no_relevant_rule() else None for metric in self.metrics)  # noqa: B009

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The key of each metric in a result."""
        return unique_names(self.metrics)

    @cached_property
    def grouped(self) -> Metric | None:
        """The first metric that reads judgements by subtopic or judge."""
        return next((metric for metric in self.metrics if metric.grouped), None)

    def check(self, batch: QueryBatch) -> None:
        """Complain about what the boundary could not know: labels that a metric cannot take, ids that a tie rule needs."""
        if self.grouped is not None and batch.groups is None:
            cure = "call evaluate_run with a file of them or fr.GroupedQrels"
            raise InputError(f"{self.grouped.short_name} reads judgements by subtopic or judge: {cure}.")
        for group in self.groups:
            if group.rule == "docid" and batch.doc_ids is None and batch.settle is None:
                raise InputError("ties='docid' orders equal scores by document id: give doc_ids=, or another rule with ties=.")

        def distinct() -> np.ndarray:
            return batch.distinct_labels

        for metric in self.metrics:
            metric.check_labels(batch.largest_label, distinct)
            if metric.family in self.convention.no_negative and batch.smallest_label < 0:
                cure = "Set them to 0, or mask the labels of unjudged documents."
                raise InputError(f"{self._takes(metric)} no labels below 0, not {batch.smallest_label:g}. {cure}")
            if metric.family in self.convention.binary_only and not np.isin(distinct(), (0.0, 1.0)).all():
                wrong = distinct()[~np.isin(distinct(), (0.0, 1.0))][0]
                cure = "Binarise the labels, or use another convention."
                raise InputError(f"{self._takes(metric)} labels 0 and 1 only, not {wrong:g}. {cure}")

    def _takes(self, metric: Metric) -> str:
        return f"{metric.family} under the {self.convention.name} convention takes"


def make_plan(
    metrics: str | Metric | Iterable[str | Metric],
    convention: str | Convention,
    *,
    ties: str | None = None,
    no_relevant: str | None = None,
    depth: int | None = None,
    judged_only: bool = False,
    bounds: bool = False,
) -> Plan:
    """Fill the metrics and group them. The same call again costs a look-up: training loops ask a thousand times."""
    if type(metrics) is str and type(convention) is str and depth is None:  # what a training loop asks a thousand times
        return _make_plan((metrics,), (), convention, ties, no_relevant, None, bool(judged_only), bool(bounds))
    if depth is not None and (isinstance(depth, bool) or not isinstance(depth, int | np.integer) or depth < 1):
        raise InputError(f"depth must be a whole number from 1 up, not {depth!r}.")
    if not isinstance(convention, Convention):
        as_convention(convention)  # which says what is wrong with it, before the cache asks for its hash
    asked = as_items(metrics)
    # Metrics are equal by meaning, and a result names each as it was spelled: the spelling, too, tells one call from another.
    spelled = tuple(each.spelled for each in asked if isinstance(each, Metric))
    cut = None if depth is None else min(int(depth), LARGEST_CUTOFF)
    return _make_plan(asked, spelled, convention, ties, no_relevant, cut, bool(judged_only), bool(bounds))


@functools.lru_cache(maxsize=256)
def _make_plan(
    metrics: tuple[str | Metric, ...],
    _spelled: tuple[tuple[str, ...] | None, ...],
    convention: str | Convention,
    ties: str | None,
    no_relevant: str | None,
    depth: int | None,
    judged_only: bool,
    bounds: bool,
) -> Plan:
    choices = as_convention(convention).override(ties=ties, no_relevant=no_relevant)
    filled = tuple(dict.fromkeys(_fill(metric, choices, ties) for metric in parse_metrics(metrics)))
    for metric in filled:
        if depth is not None:
            metric.check_depth()
        if bounds and not metric.has_bounds:
            cure = "Leave out bounds= or the metric."
            raise InputError(f"{metric.family} has no bounds: neither the best nor the worst order by label need be its extreme. {cure}")
    groups = []
    kinds = [(metric.ties or choices.ties, bool(metric.judged_only), getattr(metric, "above", None)) for metric in filled]
    for kind in dict.fromkeys(kinds):
        columns = tuple(place for place in range(len(filled)) if kinds[place] == kind)
        requests = [request for place in columns for request in filled[place].requests()]
        groups.append(TieGroup(*kind, columns, plan_walks(requests)))
    # A rank among the judged documents is known where all of them count.
    least = min(min(metric.least_label(), 0.0) if metric.judged_only else metric.least_label() for metric in filled)
    return Plan(filled, choices, tuple(groups), least, depth, judged_only, bounds)


def _fill(metric: Metric, convention: Convention, asked: str | None) -> Metric:
    """Fill a metric; a tie rule that was asked for, in the name or in the call, must be one that the metric has."""
    filled = metric.fill(convention)
    wanted = (metric.ties or asked) if metric.sees_ties else None
    if wanted is not None and wanted != filled.ties:
        rules = ", ".join(repr(rule) for rule in filled.tie_rules())
        one_of("ties", wanted, TIE_RULES)
        raise InputError(f"{metric.short_name} is not defined for ties={wanted!r}. It takes {rules}.")
    return filled

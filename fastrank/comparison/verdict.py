"""`compare`: two or more systems on the same queries, one metric that decides, and what may be concluded."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from fastrank.comparison.agreement import kendall_tau, tau_ap
from fastrank.comparison.alignment import Aligned, align
from fastrank.comparison.cautions import Cautions, Setting
from fastrank.comparison.corrections import CORRECTIONS
from fastrank.comparison.discrimination import discriminations
from fastrank.comparison.findings import BETTER, IDENTICAL, OPEN, WORSE, Agreement, Difference, Planning, SliceDifference
from fastrank.comparison.intervals import Interval, Plan, Quantity, intervals, make_plan
from fastrank.comparison.many import anova_of
from fastrank.comparison.outcome import Comparison
from fastrank.comparison.paired import Chance
from fastrank.comparison.planning import MOST_QUERIES, fewest, least
from fastrank.comparison.resampling import root_of
from fastrank.comparison.significance import TESTS, corrected_over, n_corrected, p_values
from fastrank.comparison.units import alike, cluster_codes, codes_of, part, units_of
from fastrank.convention import one_of
from fastrank.errors import InputError
from fastrank.evaluation import Evaluation, Note
from fastrank.metrics.grammar import parse_metric

# A column with more values has no slices but single cases.
MOST_SLICES = 50
POWER = 0.8
# Resampled sums of so many bytes are held at once.
_ROOM = 1 << 26


def compare(
    systems: Mapping[str, Evaluation],
    *,
    primary: str | None = None,
    baseline: str | None = None,
    test: str = "permutation",
    correction: str = "holm",
    interval: str = "bca",
    confidence: float = 0.95,
    cluster: str | None = None,
    n_resamples: int = 10_000,
    seed: int | np.random.Generator = 0,
    threads: int | None = None,
) -> Comparison:
    """Compare systems on the same queries: which is better, by how much, how sure, where, and how many more queries it would take.

    Name the metric that decides as `primary` before you look. The others are then watched: shown with their movement and without a
    verdict. Without a primary metric all are tested, and the correction runs over all of them.

    Parameters
    ----------
    systems
        Evaluations by name, by the same metrics. Queries that not all systems have are left out, counted and named.
    primary
        The metric that decides, in any spelling.
    baseline
        The system that the others are held against. Default: all pairs of systems, later ones against earlier ones.
    test
        "permutation" (sign flips: exact where at most 16 queries differ, else by `n_resamples` random ones), "t" (paired), "wilcoxon",
        "bootstrap" (studentised), or, for many systems at once, "tukey" (randomised Tukey HSD) or "anova" (two-way, with Tukey's HSD).
    correction
        Of the p-values over all comparisons: "holm", "bh" (Benjamini and Hochberg), "bonferroni" or "none".
    interval
        Of the means, differences and ratios: "bca", "percentile", "studentised" (bootstrap) or "t".
    confidence
        Of the intervals; a difference is seen where the corrected p is at most 1 - confidence.
    cluster
        The `by` column of the evaluations that says what queries belong together (a user, a session): they are drawn and flipped as one.
    n_resamples, seed
        Resamples of the bootstrap and of the tests; a whole number or a numpy.random.Generator. The same seed gives the same bits for
        every `threads`.

    Returns
    -------
    Comparison
        differences, slices, planning, agreement, discrimination, notes, verdict; printed, a table.

    Errors: `InputError`, one line that says what, where and the cure: metrics that differ in their formula, no query in common.

    Sources: Smucker, Allan and Carterette, CIKM 2007; Carterette, TOIS 2012; Sakai, Laboratory Experiments in Information Retrieval, 2018.

    Examples
    --------
    >>> import fastrank as fr
    >>> labels = [[3, 2, 0], [1, 0, 0], [0, 2, 1], [1, 1, 0]] * 10
    >>> old = fr.evaluate(labels, [[1, 2, 3]] * 40, metrics=["nDCG", "RR"])
    >>> new = fr.evaluate(labels, [[2, 3, 1]] * 40, metrics=["nDCG", "RR"])
    >>> found = fr.compare({"old": old, "new": new}, primary="nDCG")
    >>> found.differences[0].verdict, round(found.differences[0].difference.estimate, 4)
    ('better', 0.2081)
    """
    one_of("test", test, tuple(TESTS))
    one_of("correction", correction, CORRECTIONS)
    root = root_of(seed)
    plan = make_plan(interval, confidence, n_resamples, root, threads)
    aligned = align(systems)
    return _Work(aligned, primary, baseline, test, correction, plan, cluster, root).result()


class _Work:
    """One comparison in the making."""

    def __init__(
        self,
        aligned: Aligned,
        primary: str | None,
        baseline: str | None,
        test: str,
        correction: str,
        plan: Plan,
        cluster: str | None,
        root: int,
    ) -> None:
        self.aligned, self.test, self.correction, self.plan, self.root = aligned, test, correction, plan, root
        self.cluster, self.codes = cluster, cluster_codes(aligned.by, cluster)
        self.chance = Chance(root, plan.n_resamples, plan.threads)
        self.primary = self._primary(primary)
        self.pairs = self._pairs(baseline)
        self.baseline = baseline
        self.tested = range(len(aligned.metrics)) if self.primary is None else [self.primary]
        self.notes: list[Note] = []
        for m, name in enumerate(aligned.metric_names):
            self._check_values(m, name)

    def _primary(self, primary: str | None) -> int | None:
        aligned = self.aligned
        if primary is None:
            return 0 if len(aligned.metrics) == 1 else None
        if primary in aligned.metric_names:
            return aligned.metric_names.index(primary)
        metric = parse_metric(primary, aligned.evaluations[0].convention)
        if metric not in aligned.metrics:
            raise InputError(f"primary must be one of the metrics evaluated, {', '.join(aligned.metric_names)}, not {primary!r}.")
        return aligned.metrics.index(metric)

    def _pairs(self, baseline: str | None) -> list[tuple[int, int]]:
        names = self.aligned.names
        if baseline is None:
            return list(combinations(range(len(names)), 2))
        one_of("baseline", baseline, names)
        first = names.index(baseline)
        return [(first, other) for other in range(len(names)) if other != first]

    def _check_values(self, m: int, name: str) -> None:
        """A NaN that counts makes a mean NaN, and there is nothing to compare."""
        metric = self.aligned.metrics[m]
        rule = getattr(metric, "no_relevant", None)
        missing = np.isnan(self.aligned.values[:, m])
        if rule != "skip" and missing.any():
            system = self.aligned.names[int(missing.any(axis=1).argmax())]
            raise InputError(
                f"{name} of {system!r} is NaN for {int(missing.sum(axis=1).max())} queries, so there is no mean to compare "
                f"(no_relevant={rule!r}). Evaluate with no_relevant='skip' or 'zero'."
            )
        if missing.all(axis=1).any() or missing.any(axis=0).all():
            raise InputError(f"{name} has no query with a value in every system, so there is nothing to compare.")

    # --- the parts ---------------------------------------------------------------------------------------------------------------

    def result(self) -> Comparison:
        """Everything."""
        aligned = self.aligned
        everywhere = np.arange(aligned.n_queries)
        means, differences = self._found(everywhere, range(len(aligned.metrics)))
        differences = self._judged(differences, everywhere)
        slices = tuple(self._slices())
        planning = tuple(self._planning(differences))
        many = len(aligned.names) > 2
        n_comparisons = n_corrected((len(self.tested), len(self.pairs)), self.test, self.correction)
        setting = Setting(
            tested=self.tested,
            named=self.primary is not None,
            family=self.family(),
            n_comparisons=n_comparisons,
            n_units=self.n_units(),
            sampled=TESTS[self.test].sampled,
            n_resamples=self.plan.n_resamples,
            level=1 - self.plan.confidence,
        )
        notes = Cautions(aligned, setting, differences).notes() + self.notes
        return Comparison(
            systems=aligned.names,
            metrics=aligned.metrics,
            names=aligned.metric_names,
            conventions=tuple(each.convention for each in aligned.evaluations),
            primary=None if self.primary is None else aligned.metric_names[self.primary],
            baseline=self.baseline,
            test=self.test,
            correction=self.correction,
            n_comparisons=n_comparisons,
            interval=self.plan.method,
            confidence=self.plan.confidence,
            n_resamples=self.plan.n_resamples,
            seed=self.root,
            cluster=self.cluster,
            n_queries=aligned.n_queries,
            n_units=self.n_units(),
            left_out=aligned.left_out,
            means=means,
            differences=differences,
            slices=slices,
            planning=planning,
            anova=self._anova() if self.test == "anova" else {},
            agreement=tuple(self._agreement(means)) if many and len(aligned.metrics) > 1 else (),
            discrimination=self._discrimination() if many else (),
            notes=tuple(notes),
            query_ids=aligned.query_ids,
            values=aligned.values,
            weights=aligned.weights,
        )

    def n_units(self) -> int:
        """What is drawn: queries or clusters."""
        return self.aligned.n_queries if self.codes is None else len(np.unique(self.codes))

    def family(self) -> str:
        """Over what the correction runs, for the note that says so."""
        n_metrics, n_pairs = len(self.tested), len(self.pairs)
        return f"{n_metrics} metrics" + (f" × {n_pairs} pairs of systems" if n_pairs > 1 else "")

    def _found(self, rows: np.ndarray, metrics: Any) -> tuple[dict[str, dict[str, Interval]], tuple[Difference, ...]]:
        """Means of the systems and differences of the pairs on some queries, not yet tested."""
        aligned, k = self.aligned, len(self.aligned.names)
        values = aligned.values[:, :, rows]
        weights, codes = part(aligned.weights, rows), part(self.codes, rows)
        means: dict[int, dict[str, Interval]] = {}
        differences: dict[int, list[Difference]] = {}
        listed = list(metrics)
        for places, mask in alike([~np.isnan(values[:, m]).any(axis=0) for m in listed]):
            for group in self._groups([listed[place] for place in places]):
                columns = values[:, group][:, :, mask].transpose(1, 0, 2).reshape(len(group) * k, -1)
                units = units_of(columns, part(weights, mask), part(codes, mask))
                firsts = range(0, len(columns), k)
                quantities = [Quantity("mean", first + i) for first in firsts for i in range(k)]
                quantities += [
                    Quantity(kind, first + j, first + i) for first in firsts for i, j in self.pairs for kind in ("difference", "ratio")
                ]
                found = iter(intervals(units, quantities, self.plan))
                for m in group:
                    means[m] = {name: next(found) for name in aligned.names}
                for m in group:
                    own = values[:, m][:, mask], part(weights, mask)
                    differences[m] = [self._difference(m, pair, *own, means[m], next(found), next(found)) for pair in self.pairs]
        ordered = tuple(each for m in listed for each in differences[m])
        return {aligned.metric_names[m]: means[m] for m in listed}, ordered

    def _groups(self, metrics: list[int]) -> Iterator[list[int]]:
        """Metrics that are resampled in one pass: as many as the memory has room for."""
        step = max(1, _ROOM // (8 * self.plan.n_resamples * len(self.aligned.names)))
        for start in range(0, len(metrics), step):
            yield metrics[start : start + step]

    def _difference(
        self,
        m: int,
        pair: tuple[int, int],
        values: np.ndarray,
        weights: np.ndarray | None,
        means: dict[str, Interval],
        difference: Interval,
        ratio: Interval,
    ) -> Difference:
        aligned, (i, j) = self.aligned, pair
        one, other = values[i], values[j]
        moved = other - one
        tied = np.abs(moved) <= 2.0**-50 * np.maximum(np.abs(one), np.abs(other))
        up = moved > 0 if aligned.metrics[m].higher_is_better else moved < 0
        n = len(moved)
        if tied.all():
            difference = dataclasses.replace(difference, estimate=0.0, low=0.0, high=0.0, standard_error=0.0)
        return Difference(
            aligned.metric_names[m],
            aligned.names[i],
            aligned.names[j],
            n,
            means[aligned.names[i]].estimate,
            means[aligned.names[j]].estimate,
            difference,
            ratio,
            0.0 if tied.all() else _effect_size(moved, weights) if difference.standard_error > 0 else math.nan,
            int(np.count_nonzero(up & ~tied)),
            int(np.count_nonzero(tied)),
            int(np.count_nonzero(~up & ~tied)),
        )

    def _judged(self, differences: tuple[Difference, ...], rows: np.ndarray) -> tuple[Difference, ...]:
        """The differences with p and verdict where the metric is tested."""
        aligned = self.aligned
        tested = list(self.tested)
        p = self._p(tested, rows)
        corrected = corrected_over(p, self.test, self.correction)
        # As in `differences`: metric by metric, and the pairs of each in order.
        found = {
            (aligned.metric_names[m], *(aligned.names[side] for side in pair)): (p[row, column], corrected[row, column])
            for row, m in enumerate(tested)
            for column, pair in enumerate(self.pairs)
        }
        places = [(each.metric, each.baseline, each.system) for each in differences]
        return tuple(
            self._decided(each, *found[place]) if place in found else each for each, place in zip(differences, places, strict=True)
        )

    def _p(self, metrics: list[int], rows: np.ndarray) -> np.ndarray:
        """p of each metric and pair on some queries."""
        aligned = self.aligned
        values = aligned.values[:, metrics][:, :, rows]
        return p_values(self.test, values, part(aligned.weights, rows), part(self.codes, rows), self.pairs, self.chance)

    def _decided(self, found: Difference, p: float, p_corrected: float) -> Difference:
        metric = self.aligned.metrics[self.aligned.metric_names.index(found.metric)]
        if not found.won and not found.lost:
            verdict = IDENTICAL
        elif p_corrected > 1 - self.plan.confidence:
            verdict = OPEN
        else:
            verdict = BETTER if (found.difference.estimate > 0) == metric.higher_is_better else WORSE
        return dataclasses.replace(found, p=float(p), p_corrected=float(p_corrected), verdict=verdict)

    def _slices(self) -> Iterator[SliceDifference]:
        """Differences of the tested metrics on the queries of each slice; p is corrected over all slices of all columns."""
        for_metric: list[tuple[str, Any, tuple[Difference, ...], np.ndarray]] = []
        for column, array in self.aligned.by.items():
            if column == self.cluster:
                continue
            codes, listed = codes_of(array), array.to_pylist()
            found, firsts = np.unique(codes, return_index=True)
            if len(found) > MOST_SLICES:
                message = f"{column} has {len(found)} different values: too many to be shown as slices (more than {MOST_SLICES})."
                self.notes.append(Note("many_slices", len(found), message))
                continue
            for code, first in sorted(zip(found, firsts, strict=True), key=lambda pair: _sortable(listed[pair[1]])):
                rows = np.flatnonzero(codes == code)
                # A slice may hold only queries without a value.
                metrics = [m for m in self.tested if not np.isnan(self.aligned.values[:, m][:, rows]).any(axis=0).all()]
                if metrics:
                    _, differences = self._found(rows, metrics)
                    for_metric.append((column, listed[first], differences, self._p(metrics, rows).ravel()))
        if not for_metric:
            return
        p = np.concatenate([each[3] for each in for_metric])
        # The pairs of one slice may be corrected already; slices overlap and are a family of their own.
        corrected = iter(corrected_over(p[None], "permutation", self.correction)[0])
        for column, value, differences, own in for_metric:
            for difference, raw in zip(differences, own, strict=True):
                yield SliceDifference(column, value, self._decided(difference, raw, next(corrected)))

    def _planning(self, differences: tuple[Difference, ...]) -> Iterator[Planning]:
        n_comparisons = n_corrected((len(self.tested), len(self.pairs)), self.test, self.correction)
        if TESTS[self.test].over_pairs and self.correction != "none":
            n_comparisons *= len(self.pairs)  # what the maximum over all pairs costs, at most
        level = (1 - self.plan.confidence) / n_comparisons
        for found in differences:
            if found.verdict is None or found.n_queries < 2:
                continue
            d, sd = abs(found.difference.estimate), found.sd
            spread = sd > 0
            needed = fewest(d, sd, POWER, 1 - level) if d and spread else None
            yield Planning(
                found.metric,
                found.baseline,
                found.system,
                found.n_queries,
                found.difference.estimate,
                sd,
                POWER,
                level,
                None if needed == MOST_QUERIES else needed,
                least(found.n_queries, sd, POWER, 1 - level) if spread else math.nan,
            )

    def _anova(self) -> dict[str, Any]:
        tables = {}
        for m in self.tested:
            values = self.aligned.values[:, m]
            values = values[:, ~np.isnan(values).any(axis=0)]
            if values.shape[1] > 1:
                tables[self.aligned.metric_names[m]] = anova_of(values, self.plan.confidence)
        return tables

    def _agreement(self, means: dict[str, dict[str, Interval]]) -> Iterator[Agreement]:
        aligned = self.aligned
        signs = {name: 1 if metric.higher_is_better else -1 for name, metric in zip(aligned.metric_names, aligned.metrics, strict=True)}
        scores = {name: [signs[name] * each.estimate for each in by_system.values()] for name, by_system in means.items()}
        for one, other in combinations(scores, 2):
            top = (tau_ap(scores[one], scores[other]) + tau_ap(scores[other], scores[one])) / 2
            yield Agreement(one, other, kendall_tau(scores[one], scores[other]), top)

    def _discrimination(self) -> Any:
        aligned = self.aligned
        return discriminations(
            aligned.metric_names, aligned.values, aligned.weights, self.codes, self.test, self.correction, self.plan.confidence, self.chance
        )


def _effect_size(moved: np.ndarray, weights: np.ndarray | None) -> float:
    """Cohen's dz: the mean difference in standard deviations of the differences, whatever clusters the queries come in."""
    n, mean = len(moved), np.average(moved, weights=weights)
    variance = np.average((moved - mean) ** 2, weights=weights) * n / (n - 1)
    return float(mean / math.sqrt(variance)) if variance > 0 else math.nan


def _sortable(value: Any) -> tuple[bool, str, Any]:
    return value is None, type(value).__name__, value

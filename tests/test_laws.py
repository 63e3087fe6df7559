"""Laws that every metric obeys: of the ideal order, of ties, of cutoffs, and of the same bits however the work is divided."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_table import LOSSES, TABLE, UNEVEN, instances
from strategies import CUTOFFS, SIGNED_GRADES, Batch, batches, random_batch

import fastrank as fr
from fastrank import metrics as m
from fastrank.convention import Convention
from fastrank.engine import calls as engine_calls
from fastrank.engine import run as engine_run
from fastrank.gains import GainTable, as_gain
from fastrank.metrics import Metric, families

# Every instance of every family, by tie rule: one call for each law.
EVERY = {ties: tuple(metric for family in TABLE for metric in instances(family, ties)) for ties in ("average", "input", "worst", "best")}
BOUNDED = {ties: tuple(metric for metric in metrics if metric.has_bounds) for ties, metrics in EVERY.items()}
# Sums and counts, not shares of what there is.
UNBOUNDED = ("DCG", "IDCG", "NumRet", "NumRel", "NumRelRet", "NumNonRelRet", "Utility", "YAAP")


def bits(values: Any) -> bytes:
    """Numbers as bytes: equal only when every bit is, NaN included."""
    return np.ascontiguousarray(values, dtype=np.float64).tobytes()


def assert_same_bits(one: np.ndarray, two: np.ndarray, metrics: Iterable[Metric]) -> None:
    if bits(one) != bits(two):
        different = [str(metric) for column, metric in enumerate(metrics) if bits(one[:, column]) != bits(two[:, column])]
        pytest.fail(f"bits differ in {different}")


def has_table(metric: Metric) -> bool:
    return isinstance(getattr(metric, "gain", None), GainTable)


# --- the ideal order -----------------------------------------------------------------------------------------------------------

GAINS: dict[str, Any] = {
    "exp2": "exp2",
    "linear": "linear",
    "rising table": {0: 0, 0.5: 0.1, 1: 0.3, 1.7: 0.3, 2: 0.7, 3: 1.1, 4: 10},
    "uneven table": UNEVEN,
    "table with a loss": LOSSES,
}
DISCOUNTS = ("log2", "ln", "zipf", "power:0.3", "geometric:0.9", "jarvelin:3", "step:3", (0.9, 0.7, 0.1))


def gains_of(gain: Any, labels: np.ndarray) -> np.ndarray:
    if gain == "exp2":
        return np.exp2(labels) - 1
    return labels if gain == "linear" else np.array([gain[label] for label in labels.tolist()])


@pytest.mark.parametrize("gain", GAINS)
def test_ndcg_is_exactly_one_for_the_ideal_order(gain: str) -> None:
    batch = random_batch(31, 300, 30)
    metrics = [m.nDCG(gain=GAINS[gain], discount=discount, k=k) for discount in DISCOUNTS for k in (None, 1, 7, "50%")]
    # Scores that rise with the gain: documents of one gain tie, whatever their labels.
    scores = gains_of(GAINS[gain], batch.labels)
    result = fr.evaluate(batch.labels, scores, batch.offsets, metrics=metrics, no_relevant="one")
    assert set(result.values.ravel().tolist()) == {1.0}


@pytest.mark.parametrize("scored", [True, False])
def test_ndcg_is_exactly_one_for_real_labels_in_the_ideal_order(scored: bool) -> None:
    labels = -np.sort(-4 * np.random.default_rng(32).random((200, 40)), axis=1)
    metrics = [m.nDCG(gain=gain, k=k) for gain in ("exp2", "linear") for k in (None, 10)]
    result = fr.evaluate(labels, 3 * labels - 7 if scored else None, metrics=metrics)
    assert set(result.values.ravel().tolist()) == {1.0}


def is_share(metric: Metric) -> bool:
    """Whether the greatest value is 1: gains of an unbounded scale are divided by an ideal, or are no gains."""
    return metric.family.startswith("nDCG") or getattr(metric, "gain", None) in (None, "scaled")


@pytest.mark.parametrize("family", [family for family in TABLE if family not in UNBOUNDED])
def test_no_value_exceeds_one_or_falls_below_zero(family: str) -> None:
    batch = random_batch(33, 120, 25, missing=True)
    labels, scores, offsets = batch.arguments()
    against = np.ma.masked_array(-np.nan_to_num(batch.labels), np.isnan(batch.scores))
    for ties in EVERY:
        metrics = [
            metric
            for metric in TABLE[family].metrics
            if ties in metric.tie_rules() and getattr(metric, "no_relevant", None) is None and is_share(metric)
        ]
        if not metrics:
            continue
        for used in (scores, against, np.zeros(len(batch.labels))):
            values = fr.evaluate(labels, used, offsets, metrics=metrics, ties=ties).values
            assert 0.0 <= values.min() <= values.max() <= 1.0


def test_ndcg_is_at_most_one_when_gains_are_a_rounding_apart() -> None:
    labels = np.array([1.0, np.nextafter(1, 2), np.nextafter(1, 0)] * 5)
    for ties in ("average", "worst", "best", "input"):
        assert fr.ndcg(labels, np.zeros(15), ties=ties, gain="linear").max() <= 1.0


# --- only the order of the scores counts ---------------------------------------------------------------------------------------

RISING: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "scaled and moved": lambda x: 3 * x - 1e6,
    "all negative": lambda x: x - 1000,
    "float32": lambda x: x.astype(np.float32),
    "float16": lambda x: x.astype(np.float16),
    "ranks": lambda x: np.unique(x, return_inverse=True)[1],
    "infinite ends": lambda x: np.where(x == x.max(), np.inf, np.where(x == x.min(), -np.inf, x)),
    "subnormal": lambda x: x * 4 * 5e-324,
}


@pytest.mark.parametrize("transform", RISING)
@pytest.mark.parametrize("ties", EVERY)
def test_a_strictly_increasing_transform_of_the_scores_changes_no_bit(transform: str, ties: str) -> None:
    batch = random_batch(34, 60, 20)
    # A bound on scores is on the scores as they are.
    metrics = [metric for metric in EVERY[ties] if getattr(metric, "above", None) is None]
    one = fr.evaluate(*batch, metrics=metrics).values
    two = fr.evaluate(batch.labels, RISING[transform](batch.scores), batch.offsets, metrics=metrics).values
    assert_same_bits(one, two, metrics)


@pytest.mark.parametrize("ties", ["average", "worst", "best"])
@given(batch=batches(), seed=st.integers(0, 99))
def test_the_order_of_the_rows_changes_no_bit(ties: str, batch: Batch, seed: int) -> None:
    one = fr.evaluate(*batch.arguments(), metrics=EVERY[ties]).values
    two = fr.evaluate(*batch.shuffled(seed).arguments(), metrics=EVERY[ties]).values
    assert_same_bits(one, two, EVERY[ties])


# --- ties ----------------------------------------------------------------------------------------------------------------------

SIGNED = Convention("signed", "the default, with labels below 0", negative_labels=True)
# Average precision by hits has no bounds: it can rise when a relevant document leaves the top k.
WITH_BOUNDS = tuple(metric for metric in EVERY["average"] if metric.has_bounds and getattr(metric, "no_relevant", None) in ("zero", None))


@given(batch=batches(grades=SIGNED_GRADES, long=False))
def test_worst_is_at_most_average_and_average_at_most_best(batch: Batch) -> None:
    # Judged and a table of gains need not rise with the label, by which worst and best go.
    metrics = [dataclasses.replace(metric, ties=None) if metric.sees_ties else metric for metric in WITH_BOUNDS if not has_table(metric)]
    metrics = [metric for metric in metrics if metric.family != "Judged"]
    found = {ties: fr.evaluate(*batch.arguments(), metrics=metrics, ties=ties, convention=SIGNED).values for ties in EVERY}
    for column, metric in enumerate(metrics):
        worst, average, best = (found[ties][:, column] for ties in ("worst", "average", "best"))
        least, most = (worst, best) if metric.higher_is_better else (best, worst)
        assert (least <= average + 1e-12).all(), metric
        assert (average <= most + 1e-12).all(), metric
        assert (least <= found["input"][:, column] + 1e-12).all(), metric
        assert (found["input"][:, column] <= most + 1e-12).all(), metric


@pytest.mark.parametrize("signed", [False, True])
@given(data=st.data(), ties=st.sampled_from(list(EVERY)))
def test_bounds_enclose_the_value_under_every_rule(signed: bool, data: st.DataObject, ties: str) -> None:
    batch = data.draw(batches(grades=SIGNED_GRADES, long=False) if signed else batches())
    open_rule = [
        dataclasses.replace(metric, ties=None) if metric.sees_ties else metric
        for metric in WITH_BOUNDS
        if not (signed and has_table(metric))
    ]
    result = fr.evaluate(*batch.arguments(), metrics=open_rule, ties=ties, bounds=True, convention=SIGNED)
    outside = (result.values < result.bounds.low - 1e-12) | (result.values > result.bounds.high + 1e-12)
    assert not outside.any(), [str(result.metrics[column]) for column in np.flatnonzero(outside.any(axis=0))]


@pytest.mark.parametrize("table", [[-1, 1], [0.5, 1], {-1: 0.5, 0: 0.5, 1: 1}])
def test_bounds_go_by_the_gain_where_an_unjudged_document_stands_between(table: Any) -> None:
    labels = np.ma.masked_array([0, 1, 9], [False, False, True])
    result = fr.evaluate(labels, np.zeros(3), metrics=[m.DCG(gain=table)], bounds=True, convention=SIGNED)
    gains = sorted([table[0], table[1], 0])
    discount = 1 / np.log2([2, 3, 4])
    np.testing.assert_allclose(result.bounds.low, [[gains @ discount]], rtol=1e-15)
    np.testing.assert_allclose(result.bounds.high, [[gains[::-1] @ discount]], rtol=1e-15)


# --- the same bits, however the work is divided --------------------------------------------------------------------------------

# A few metrics of every family: enough for what is summed after the values are there.
SUMMED = EVERY["average"][::11]

BIG = random_batch(7, 90, 25, missing=True)
WEIGHTS = np.random.default_rng(8).choice([0.0, 0.5, 1.0, 3.7], BIG.n_queries)
GROUPS = np.random.default_rng(9).choice(["head", "tail", "body"], BIG.n_queries)
PER_QUERY = {"weights": WEIGHTS, "by": {"part": GROUPS}}


def summary_bits(result: fr.Evaluation) -> list[Any]:
    """Every number that summarises an evaluation, as bytes."""
    summary = result.summary()
    numbers = ("mean", "low", "high", "standard_error", "n_queries")
    rows: list[Any] = [
        (str(row.metric), bits([*(getattr(row, name) for name in numbers), row.aggregate, row.n_no_relevant])) for row in summary.rows
    ]
    for column, slices in summary.slices.items():
        for value, each in slices.items():
            rows += [(column, value, row.name, bits([getattr(row, name) for name in numbers])) for row in each.rows]
    return [*rows, *((note.kind, note.count) for note in summary.notes)]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    def set_size(documents: int) -> None:
        monkeypatch.setattr(engine_run, "BLOCK", documents)
        monkeypatch.setattr(engine_calls, "BLOCK", documents)

    return set_size


@pytest.mark.compiled
@pytest.mark.parametrize("ties", EVERY)
def test_every_number_of_threads_and_block_size_gives_the_same_bits(ties: str, small_blocks: Callable[[int], None]) -> None:
    one = fr.evaluate(*BIG.arguments(), metrics=BOUNDED[ties], threads=1, bounds=True)
    every = fr.evaluate(*BIG.arguments(), metrics=EVERY[ties], threads=1).values
    summed = fr.evaluate(*BIG.arguments(), metrics=SUMMED, threads=1, **PER_QUERY)
    for documents, threads in ((20, 3), (300, 8)):
        small_blocks(documents)
        assert_same_bits(every, fr.evaluate(*BIG.arguments(), metrics=EVERY[ties], threads=threads).values, EVERY[ties])
        two = fr.evaluate(*BIG.arguments(), metrics=BOUNDED[ties], threads=threads, bounds=True)
        assert_same_bits(one.values, two.values, one.metrics)
        assert_same_bits(one.bounds.low, two.bounds.low, one.metrics)
        assert_same_bits(one.bounds.high, two.bounds.high, one.metrics)
    again = fr.evaluate(*BIG.arguments(), metrics=SUMMED, threads=threads, **PER_QUERY)
    assert summary_bits(summed) == summary_bits(again)


def part_of(order: np.ndarray) -> dict[str, Any]:
    """Some of BIG's queries, in some order, as `update` takes them."""
    rows = np.concatenate([np.empty(0, int), *(np.arange(BIG.offsets[q], BIG.offsets[q + 1]) for q in order)])
    labels, scores, _ = BIG.arguments()
    return {
        "labels": labels[rows],
        "scores": scores[rows],
        "sizes": np.diff(BIG.offsets)[order],
        "weights": WEIGHTS[order],
        "by": {"part": pa.array(GROUPS[order], pa.string())},
    }


@functools.cache
def the_whole() -> fr.Evaluation:
    return fr.evaluate(*BIG.arguments(), metrics=SUMMED, **PER_QUERY)


@given(data=st.data(), per_query=st.booleans(), travels=st.booleans())
def test_every_split_order_and_tree_of_merges_gives_the_bits_of_one_call(data: st.DataObject, per_query: bool, travels: bool) -> None:
    whole = the_whole()
    order = np.random.default_rng(data.draw(st.integers(0, 9))).permutation(BIG.n_queries)
    cuts = sorted(data.draw(st.lists(st.integers(0, BIG.n_queries), max_size=6)))
    waiting = []
    for part in np.split(order, cuts):
        evaluator = fr.Evaluator(SUMMED, per_query=per_query)
        evaluator.update(**part_of(part))
        waiting.append((part, evaluator))
    while len(waiting) > 1:
        into = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        other = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        sent = fr.Evaluator.from_bytes(other[1].to_bytes()) if travels else other[1]
        into[1].merge(sent)
        waiting.append((np.concatenate([into[0], other[0]]), into[1]))
    ((queries, evaluator),) = waiting
    result = evaluator.result()
    assert summary_bits(result) == summary_bits(whole)
    if per_query:
        assert_same_bits(result.values, whole.values[queries], SUMMED)
        assert result.weights.tolist() == WEIGHTS[queries].tolist()
    else:
        assert result.values is None


def test_metrics_asked_for_together_have_the_bits_that_each_has_alone() -> None:
    batch = random_batch(38, 12, 12, missing=True)
    for metrics in EVERY.values():
        together = fr.evaluate(*batch.arguments(), metrics=metrics)
        for metric in metrics:
            alone = fr.evaluate(*batch.arguments(), metrics=metric).values[:, 0]
            assert bits(together[metric]) == bits(alone), metric


@pytest.mark.parametrize("ties", EVERY)
def test_labelled_queries_give_the_bits_of_evaluate(ties: str, small_blocks: Callable[[int], None]) -> None:
    small_blocks(100)
    labels, scores, offsets = random_batch(36, 12, 12)
    more = {"weights": WEIGHTS[:12], "by": {"part": GROUPS[:12]}}
    queries = fr.LabelledQueries(labels, offsets, **more)
    for seed in (1, 2):
        new = np.random.default_rng(seed).permutation(scores)
        for metrics in (BOUNDED[ties], ("AP", "nDCG@5"), "Bpref"):
            for threads in (1, 2):
                kept = queries.evaluate(new, metrics=metrics, threads=threads, bounds=True)
                made = fr.evaluate(labels, new, offsets, metrics=metrics, bounds=True, **more)
                assert_same_bits(kept.values, made.values, made.metrics)
                assert_same_bits(kept.bounds.low, made.bounds.low, made.metrics)
            assert summary_bits(queries.evaluate(new, metrics=("AP", "ERR"))) == summary_bits(
                fr.evaluate(labels, new, offsets, metrics=("AP", "ERR"), **more)
            )


@given(batch=batches(missing=False))
def test_labelled_queries_take_every_shape_of_batch(batch: Batch) -> None:
    queries = fr.LabelledQueries(batch.labels, batch.offsets)
    kept = queries.evaluate(batch.scores, metrics=EVERY["average"])
    assert_same_bits(kept.values, fr.evaluate(*batch, metrics=EVERY["average"]).values, kept.metrics)


# --- cutoffs -------------------------------------------------------------------------------------------------------------------

WITH_CUTOFF = [family for family, metric in families.items() if not metric.whole_list_only and not metric.grouped]


@given(family=st.sampled_from(WITH_CUTOFF), batch=batches(long=False), asked=st.lists(st.sampled_from(CUTOFFS), min_size=1, max_size=5))
def test_the_value_at_one_cutoff_does_not_depend_on_the_others(family: str, batch: Batch, asked: list[Any]) -> None:
    together = fr.evaluate(*batch.arguments(), metrics=[families[family](k=k) for k in asked])
    for k in asked:
        alone = fr.evaluate(*batch.arguments(), metrics=families[family](k=k)).values[:, 0]
        assert bits(together[families[family](k=k).fill(together.convention)]) == bits(alone)


@pytest.mark.parametrize("ties", ["average", "worst"])
@given(batch=batches(long=False))
def test_recall_and_its_kin_never_fall_as_the_cutoff_grows(ties: str, batch: Batch) -> None:
    rising = ("R", "Success", "RR", "DCG", "IDCG", "ERR", "RBP", "NumRelRet")
    cutoffs = (1, 2, 3, 4, 5, 6, 7, 8, 20, None)
    result = fr.evaluate(*batch.arguments(), metrics=[families[family](k=k) for family in rising for k in cutoffs], ties=ties)
    values = result.values.reshape(batch.n_queries, len(rising), len(cutoffs))
    assert (np.diff(values, axis=2) >= -1e-15).all()
    assert bits(values[:, :, -2]) == bits(values[:, :, -1])


def test_ndcg_may_fall_as_the_cutoff_grows() -> None:
    log3 = np.log2(3)
    expected = [1, 1 / (1 + 1 / log3), 1.5 / (1 + 1 / log3)]
    np.testing.assert_allclose(fr.ndcg([1, 0, 1], k=[1, 2, 3]), [expected], rtol=1e-15)


@given(batch=batches(long=False, most=1))
def test_a_share_of_the_list_is_the_cutoff_that_it_comes_to(batch: Batch) -> None:
    n = int(np.sum(~np.isnan(batch.scores)))
    k = max(1, -(-3 * n // 10))
    metrics = [families[family](k=cutoff) for cutoff in ("30%", k) for family in WITH_CUTOFF]
    by_share, by_number = np.hsplit(fr.evaluate(*batch.arguments(), metrics=metrics).values, 2)
    assert_same_bits(by_share, by_number, metrics)


def test_depth_is_a_list_cut_short() -> None:
    for depth in (1, 5):
        kept = BIG.scores.copy()
        for q in range(BIG.n_queries):
            rows = slice(BIG.offsets[q], BIG.offsets[q + 1])
            order = np.argsort(-BIG.scores[rows], kind="stable")
            kept[rows][order[depth:]] = np.nan
        # What a cut leaves out and nobody judged is in no list any more.
        stays = ~(np.isnan(kept) & np.isnan(BIG.labels))
        offsets = np.concatenate(([0], np.cumsum(stays)))[BIG.offsets]
        short = Batch(BIG.labels[stays], kept[stays], offsets)
        # Where a gain is a loss, unjudged documents stand between in the ideal.
        metrics = [
            x for x in EVERY["input"] if x.family not in ("AUC", "Concordance", "PNormPush") and getattr(x, "gain", None) != as_gain(LOSSES)
        ]
        one = fr.evaluate(*BIG.arguments(), metrics=metrics, depth=depth)
        two = fr.evaluate(*short.arguments(), metrics=metrics)
        assert_same_bits(one.values, two.values, metrics)

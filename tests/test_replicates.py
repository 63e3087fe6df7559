"""The Poisson bootstrap: the same resamples for every split and merge, and the intervals of its theory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import fastrank as fr
from fastrank.io.keys import query_keys
from fastrank.replicates import LIMBS, Replicates

METRICS = "RR,nDCG@3,DCG(gain='linear')@5"


def queries(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Labels in rank order of n queries of five documents, with an id each."""
    labels = np.random.default_rng(seed).integers(0, 3, 5 * n)
    return {"labels": labels, "query_ids": np.repeat([f"query {q}" for q in range(n)], 5)}


def part(data: dict[str, np.ndarray], chosen: np.ndarray) -> dict[str, np.ndarray]:
    return {name: values.reshape(-1, 5)[chosen].ravel() for name, values in data.items()}


def words(keys: np.ndarray, seed: int, b: int) -> np.ndarray:
    """SplitMix64 in Python's integers: the upper half of the word at place b of each key's sequence."""
    mask, start = (1 << 64) - 1, int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])
    found = []
    for key in keys.tolist():
        z = ((key ^ start) + b * 0x9E3779B97F4A7C15) & mask
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
        found.append((z ^ (z >> 31)) >> 32)
    return np.array(found)


def poisson_counts(keys: np.ndarray, seed: int, b: int) -> np.ndarray:
    """Poisson(1) by inversion: how many values of the distribution function a uniform number reaches."""
    chances = np.cumsum([math.exp(-1) / math.factorial(count) for count in range(20)])
    return (words(keys, seed, b)[:, None] * 2.0**-32 >= chances[None] - 2.0**-34).sum(axis=1)


def test_each_resample_has_the_mean_of_queries_drawn_by_poisson_counts() -> None:
    rng = np.random.default_rng(5)
    values = rng.random((50, 2)) * 10.0 ** rng.integers(-200, 200, (50, 2))
    values[:3] = [[0.0, 5e-324], [-1.5, 2.0**1000], [np.nan, -3e-310]]
    keys, weights = rng.integers(0, 1 << 63, 50).astype(np.uint64), rng.integers(1, 8, 50) / 4
    for w in (None, weights):
        found = Replicates.of(keys, values, w, 130, seed=3).means()
        size = np.ones(50) if w is None else w
        for b in (0, 1, 127, 128, 129):
            counts = poisson_counts(keys, 3, b)
            for metric in range(2):
                known = ~np.isnan(values[:, metric])
                top = math.fsum((counts * size * values[:, metric])[known])
                assert found[b, metric] == pytest.approx(top / (counts * size)[known].sum(), rel=1e-12)


@pytest.mark.compiled
def test_counts_are_poisson_with_mean_and_variance_one() -> None:
    n, resamples = 4000, 200
    keys = np.random.default_rng(1).integers(0, 1 << 63, n).astype(np.uint64)
    sums = Replicates.of(keys, np.ones((n, 1)), None, resamples).sums
    drawn = sum(sums[1, limb].astype(object) << (32 * limb) for limb in range(LIMBS)) // (1 << 1074)
    totals = drawn.astype(np.float64)
    # A total has mean n and variance n; the mean of 200 lies within 4 standard errors, their variance within 4 of its own.
    assert abs(totals.mean() - n) < 4 * math.sqrt(n / resamples)
    assert abs(totals.var(ddof=1) / n - 1) < 4 * math.sqrt(2 / resamples)


@pytest.mark.compiled
@pytest.mark.parametrize("travels", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_and_tree_of_merges_gives_the_same_resamples(travels: bool, weighted: bool) -> None:
    data, rng = queries(400), np.random.default_rng(9)
    weights = rng.random(400)

    def evaluated(chosen: np.ndarray) -> fr.Evaluator:
        made = fr.Evaluator(METRICS, per_query=False, n_resamples=150, seed=4)
        made.update(**part(data, chosen), weights=weights[chosen] if weighted else None)
        return made

    whole = evaluated(np.arange(400)).result()
    for cuts in ([], [7], [1, 1, 50, 200, 399]):
        waiting = [evaluated(chosen) for chosen in np.split(rng.permutation(400), cuts)]
        while len(waiting) > 1:
            other = waiting.pop(int(rng.integers(len(waiting))))
            into = waiting[int(rng.integers(len(waiting)))]
            into.merge(fr.Evaluator.from_bytes(other.to_bytes()) if travels else other)
        assert waiting[0].result().replicates.tobytes() == whole.replicates.tobytes()
        assert waiting[0].result().summary(method="poisson").rows == whole.summary(method="poisson").rows


@pytest.mark.compiled
def test_threads_and_types_of_ids_change_nothing() -> None:
    labels, numbers = queries(300)["labels"], np.repeat(np.arange(300), 5)
    found = []
    for ids, threads in ((numbers, 1), (numbers.astype(str), 2), (pa.array(numbers.astype(str)).dictionary_encode(), 2)):
        evaluator = fr.Evaluator("RR", n_resamples=400, threads=threads)
        evaluator.update(labels, query_ids=ids)
        found.append(evaluator.result().replicates.tobytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.compiled
def test_intervals_agree_with_students_t_where_both_hold() -> None:
    evaluator = fr.Evaluator(METRICS, n_resamples=4000)
    evaluator.update(**queries(5000))
    poisson, student = (evaluator.result().summary(method=method) for method in ("poisson", "t"))
    assert poisson.interval_title == "95% interval (Poisson bootstrap)"
    for one, other in zip(poisson.rows, student.rows, strict=True):
        assert one.mean == other.mean
        # 4,000 resamples give a standard error to 1.1% and a 2.5% quantile to 3%.
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.05)
        assert [one.low, one.high] == pytest.approx([other.low, other.high], abs=0.15 * other.standard_error)


def test_left_out_queries_leave_every_resample_and_nan_leaves_no_interval() -> None:
    data = queries(200)
    data["labels"][:50] = 0
    kept = part(data, np.arange(10, 200))
    found = []
    for arguments in (data, kept):
        evaluator = fr.Evaluator("RR", no_relevant="skip", n_resamples=100)
        evaluator.update(**arguments)
        found.append(evaluator.result().summary(method="poisson").rows[0])
    assert (found[0].low, found[0].high, found[0].mean) == (found[1].low, found[1].high, found[1].mean)
    evaluator = fr.Evaluator("RR", no_relevant="nan", n_resamples=100)
    evaluator.update(**data)
    assert math.isnan(evaluator.result().summary(method="poisson").rows[0].low)
    empty = fr.Evaluator("RR", n_resamples=100).result()
    assert math.isnan(empty.summary(method="poisson").rows[0].low)


def test_slices_keep_students_t_and_say_so() -> None:
    evaluator = fr.Evaluator("RR", n_resamples=100)
    evaluator.update(**queries(4), by={"part": ["a", "a", "b", "b"]})
    summary = evaluator.result().summary(method="poisson")
    assert [note.message for note in summary.notes if note.kind == "slice_intervals"] == ["the intervals of slices are Student's t."]


def test_saving_keeps_the_resamples(tmp_path: Path) -> None:
    evaluator = fr.Evaluator("RR", per_query=False, n_resamples=100)
    evaluator.update(**queries(30))
    evaluator.result().save(tmp_path / "result.parquet")
    assert fr.load(tmp_path / "result.parquet").replicates.tobytes() == evaluator.result().replicates.tobytes()


def test_a_table_has_the_interval_in_one_pass() -> None:
    data = queries(50)
    table = pa.table({"query_id": data["query_ids"], "label": data["labels"], "score": np.tile(np.arange(5.0, 0, -1), 50)})
    evaluator = fr.Evaluator("RR", n_resamples=100, seed=2)
    evaluator.update(**data)
    result = fr.evaluate_table(table, "RR", per_query=False, n_resamples=100, seed=2)
    assert result.summary(method="poisson").rows == evaluator.result().summary(method="poisson").rows


def test_what_cannot_be_resampled_is_said() -> None:
    for n in (-1, 5, 10_001, 1.5, True):
        with pytest.raises(fr.InputError, match=r"n_resamples must be 0 \(none\) or a whole number from 100 to 10000, not"):
            fr.Evaluator("RR", n_resamples=n)
    for seed in (-1, "x", True, 1 << 63):
        with pytest.raises(fr.InputError, match="seed must be a whole number from 0 up to 2"):
            fr.Evaluator("RR", seed=seed)
    with pytest.raises(fr.InputError, match="n_resamples= draws each query by its id, and this batch has none: give query_ids="):
        fr.Evaluator("RR", n_resamples=100).update([1])
    evaluator = fr.Evaluator("RR")
    with pytest.raises(fr.InputError, match="none were kept: evaluate with n_resamples=1000"):
        evaluator.result().summary(method="poisson")
    with pytest.raises(fr.InputError, match="n_resamples is 0 here and 100 there"):
        evaluator.merge(fr.Evaluator("RR", n_resamples=100))
    with pytest.raises(fr.InputError, match="leave out cluster="):
        fr.Evaluator("RR", n_resamples=100).result().summary(method="poisson", cluster="user")


def test_keys_are_those_of_the_ids_values() -> None:
    ids = pa.array(["", "a", "eight by", "nine byte", "ü"])
    keys = query_keys(ids)
    assert len(set(keys.tolist())) == 5
    for other in (ids.cast(pa.binary()), ids.dictionary_encode(), pa.concat_arrays([pa.array(["x"]), ids]).slice(1)):
        assert query_keys(other).tolist() == keys.tolist()
    assert query_keys(pa.array([], pa.string())).tolist() == []

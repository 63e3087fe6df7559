"""The short cuts of the arrays' path: each gives the bits of the long way."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import fastrank as fr
from fastrank import arrays
from fastrank._kernel import bits_at_least, copy_narrowed, count_above, count_at_least, kernel, map_blocks, narrow_bytes, pointer
from fastrank.metrics.in_order import FEW, FEW_CODES, few_ideals
from fastrank.ranking import standing
from fastrank.statistics import Moments, exact_means

TYPES = ("uint8", "int32", "int64", "float32", "float64")
WALKED = "nDCG@10,nDCG@3,DCG,IDCG,RR,RR@2,AP,AP(rel=3)@7,R@10,P@5,Success@1,nDCG(gain='linear')@4,DCG(discount='zipf')"


def lists(seed: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels 0 ... 4 of lists of 0 to 200 documents, the last one ending anywhere in a word of 64."""
    generator = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(generator.integers(0, 200, 60)))
    return generator.integers(0, 5, offsets[-1]) * (generator.random(offsets[-1]) < share), offsets


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
def test_labels_in_rank_order_have_the_bits_of_scores_that_fall(seed: int, share: float) -> None:
    labels, offsets = lists(seed, share)
    in_order = fr.evaluate(labels, None, offsets, metrics=WALKED)
    by_score = fr.evaluate(labels, -np.arange(len(labels)), offsets, metrics=WALKED)
    assert in_order.values.tobytes() == by_score.values.tobytes()
    assert in_order.no_relevant == by_score.no_relevant


@pytest.mark.parametrize("top", [1, 2, 7, 8])
def test_every_short_list_has_the_bits_of_scores_that_fall(top: int) -> None:
    """All lists of six documents with three labels, so with none to six that count, and lists whose last 64 places hold others' labels."""
    labels = np.array(list(itertools.product((0, 1, top), repeat=6))).ravel()
    sizes = np.append(np.full(len(labels) // 6, 6), [1, 0, 64, 65, 2])
    labels = np.append(labels, np.arange(132) % (top + 1))
    falling = -np.arange(len(labels))
    for metrics in (WALKED, "nDCG@1,nDCG@2,nDCG@3,nDCG@4,nDCG@5,AP(rel=2)@3,RR(rel=2)", "IDCG(gain='linear>=2'),P@2", "AP,RR,Success@2"):
        in_order = fr.evaluate(labels, None, sizes=sizes, metrics=metrics)
        by_score = fr.evaluate(labels, falling, sizes=sizes, metrics=metrics)
        assert in_order.values.tobytes() == by_score.values.tobytes()
        assert in_order.no_relevant == by_score.no_relevant


def test_the_table_of_ideals_is_the_sum_over_falling_labels() -> None:
    ideals = few_ideals("exp2", "log2", FEW_CODES).reshape(FEW, -1)
    for labels in itertools.product(range(FEW_CODES), repeat=FEW):
        place = sum(label << 3 * i for i, label in enumerate(labels))
        for k in range(1, FEW + 1):
            expected = 0.0
            for rank, label in enumerate(sorted(labels, reverse=True)[:k], 1):
                expected += (2.0**label - 1) * (1 / np.log2(rank + 1))
            assert ideals[k - 1, place] == expected


def test_an_ideal_asked_for_before_any_walk_is_that_of_the_walk() -> None:
    labels, offsets = lists(0, 0.2)
    both = fr.evaluate(labels, None, offsets, metrics="IDCG@10,nDCG@10,DCG@10")
    assert both["IDCG@10"].tobytes() == fr.idcg(labels, None, offsets, k=10).tobytes()
    assert both["DCG@10"].tobytes() == fr.dcg(labels, None, offsets, k=10).tobytes()


@pytest.mark.parametrize(("kind", "top"), [(kind, top) for kind in TYPES for top in (4, 63, 200, 300) if (kind, top) != ("uint8", 300)])
def test_whole_labels_of_any_type_give_the_same_bits(kind: str, top: int) -> None:
    labels, offsets = lists(1, 0.3)
    labels = np.where(labels == 4, top, labels)
    expected = fr.evaluate(labels.astype("float64") + 0.0, None, offsets, metrics="nDCG(gain='linear')@10,AP,RR").values
    assert fr.evaluate(labels.astype(kind), None, offsets, metrics="nDCG(gain='linear')@10,AP,RR").values.tobytes() == expected.tobytes()


@pytest.mark.parametrize("wrong", [-1.0, 0.5, 256.0, 2.0**32 + 1024])
def test_labels_that_no_byte_holds_keep_their_value(wrong: float) -> None:
    labels = np.array([1.0, wrong, 0.0, 2.0])
    found = fr.evaluate(labels, [4, 3, 2, 1], metrics="DCG(gain='linear')", convention="xgboost").values.item()
    assert found == pytest.approx(sum(y / math.log2(rank + 1) for rank, y in enumerate(labels, 1)), rel=1e-15)


# --- scores ---------------------------------------------------------------------------------------------------------------------


def ranks_of(scores: np.ndarray) -> list[int]:
    """The rank of each document, read off one list a document in which it alone is relevant; equal scores in the order of input."""
    n = len(scores)
    reciprocal = fr.reciprocal_rank(np.eye(n, dtype=np.uint8), np.tile(scores, (n, 1)), ties="input")
    return [round(1 / value) for value in reciprocal.tolist()]


@pytest.mark.parametrize(
    "scores",
    [
        np.array([1.0, 1.0 + 2**-40, 1.0 - 2**-40, 1.0]),
        np.array([1e300, 1e301, -1e300, -1e301, math.inf, -math.inf, 0.0, -0.0, 1e-300]),
        np.array([2**53 + 1, 2**53, 2**53 + 2, -(2**62), 2**62, 2**62 + 1]),
        np.array([16_777_217, 16_777_216, 16_777_218, 16_777_217]),
        np.array([0.0, -0.0, -math.inf, math.inf, -math.inf], np.float32),
    ],
    ids=["close", "far", "large whole numbers", "beyond float32", "float32"],
)
def test_scores_are_ranked_as_given_though_they_are_compared_as_float32_first(scores: np.ndarray) -> None:
    order = sorted(range(len(scores)), key=lambda d: (-Fraction(scores[d].item()) if math.isfinite(scores[d]) else -scores[d].item(), d))
    place = {d: rank for rank, d in enumerate(order, 1)}
    assert ranks_of(scores) == [place[d] for d in range(len(scores))]


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 33, 300])
def test_every_length_of_list_ranks_as_a_sort_does(kind: str, n: int) -> None:
    scores = np.random.default_rng(n).permutation(n).astype(kind)
    assert ranks_of(scores) == (n - scores).astype(int).tolist()


@pytest.mark.parametrize("ties", ["average", "worst", "best", "input"])
def test_scores_of_eight_bytes_tie_where_they_are_equal_and_nowhere_else(ties: str) -> None:
    labels, offsets = lists(3, 0.3)
    coarse = np.random.default_rng(3).integers(0, 9, len(labels))
    expected = fr.evaluate(labels, coarse.astype("float32"), offsets, metrics="nDCG@10,AP,RR", ties=ties)
    close = 1.0 + coarse * 2.0**-50  # all are 1 in float32
    assert fr.evaluate(labels, close, offsets, metrics="nDCG@10,AP,RR", ties=ties).values.tobytes() == expected.values.tobytes()


@pytest.mark.parametrize("kind", ["float32", "float64", "int64"])
@pytest.mark.parametrize("ties", ["average", "worst", "best", "input", "docid"])
def test_counting_and_sorting_rank_alike(ties: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, offsets = lists(4, 0.7)
    generator = np.random.default_rng(4)
    ids = generator.permutation(len(labels)).astype(str)
    for scores in (generator.integers(0, 30, len(labels)), generator.permutation(len(labels)), np.zeros(len(labels))):
        found = []
        for most in (10_000, 0):
            monkeypatch.setattr(standing, "MOST_COUNTED", most)
            result = fr.evaluate(labels, scores.astype(kind), offsets, metrics="nDCG@10,AP,RR,P@5", ties=ties, doc_ids=ids)
            found.append((result.values.tobytes(), [note.count for note in result.notes]))
        assert found[0] == found[1]


def test_an_index_error_in_a_block_is_not_taken_for_the_end_of_the_blocks() -> None:
    def work(first: int, last: int) -> None:
        raise IndexError(first, last)

    with pytest.raises(IndexError):
        map_blocks(work, np.arange(9), documents=1, threads=2)


# --- instructions ---------------------------------------------------------------------------------------------------------------


@kernel
def vector_words(values, least, x, target, codes, found):  # type: ignore[no-untyped-def]
    given, narrowed = pointer(values), pointer(target)
    found[0] = bits_at_least(given, 3, least)
    copy_narrowed(given, 3, narrowed, 2, 5)
    found[1] = count_above(narrowed, 2, x)
    found[2] = count_at_least(narrowed, 2, x)
    found[3] = narrow_bytes(given, 3, pointer(codes), 4)


@pytest.mark.parametrize("kind", TYPES)
def test_vector_instructions_do_what_they_say(kind: str) -> None:
    values = np.random.default_rng(0).integers(0, 5, 80).astype(kind)
    if kind != "uint8":
        values[7] = -3
    least, x, target = values.dtype.type(2), np.float32(2), np.full(20, 9, np.float32)
    found = np.zeros(4, np.uint64)
    if kind == "uint8":
        values = values.astype("int64")  # scores are never bytes; labels of bytes go through every other test
        least = values.dtype.type(2)
    values[40] += 256
    codes = np.zeros(80, np.uint8)
    vector_words(values, least, x, target, codes, found)
    met = (values[3:67] >= 2) | (values[3:67] < 0)
    assert int(found[0]) == sum(1 << place for place, bit in enumerate(met.tolist()) if bit)
    copied = [*values[3:8].astype(float).tolist(), *[-math.inf] * 11]
    assert target.tolist() == [9, 9, *copied, 9, 9]
    assert found[1:3].tolist() == [sum(y > 2 for y in copied), sum(y >= 2 for y in copied)]
    wrong = {37} if kind == "uint8" else {4, 37}  # -3, and 256 or more
    assert int(found[3]) == sum(1 << place for place in wrong)
    assert [code for place, code in enumerate(codes[4:68].tolist()) if place not in wrong] == [
        y for place, y in enumerate(values[3:67].tolist()) if place not in wrong
    ]


# --- means ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1000.0, 1e-3, 2.0**-21])
@pytest.mark.parametrize("n", [1, 2, 31, 1000])
def test_means_in_fixed_point_are_the_correctly_rounded_ones(scale: float, n: int) -> None:
    values = np.random.default_rng(n).random((n, 3)) * scale * (np.random.default_rng(1).random((n, 3)) < 0.8)
    exact = [float(sum(map(Fraction, values[:, i].tolist())) / n) for i in range(3)]
    for mean, column, rounded in zip(exact_means(values), values.T, exact, strict=True):
        assert mean in (None, rounded)
        assert Moments.of(column).mean == rounded
    assert scale < 1.0 or None not in exact_means(values)


@pytest.mark.parametrize("hard", [math.nan, 1024.0, 1e300, 1e-30, -1e-30, 5e-324])
def test_a_value_that_fixed_point_does_not_hold_is_left_to_the_moments(hard: float) -> None:
    values = np.array([[0.5, 0.5], [0.25, hard]])
    assert exact_means(values) == [0.375, None]


def test_the_mean_is_the_same_before_and_after_the_moments_are_known() -> None:
    labels, offsets = lists(2, 0.1)
    result = fr.evaluate(labels, None, offsets, metrics="nDCG@10,DCG(gain='linear')@10,RR", no_relevant="skip")
    first = result.mean()
    assert repr(first) == repr({name: sums.mean for name, sums in zip(result.names, result.moments, strict=True)})
    assert repr(first) == repr(result.mean())


def test_no_queries_have_no_mean() -> None:
    assert all(math.isnan(mean) for mean in fr.evaluate([], [], offsets=[0]).mean().values())


def test_lists_of_any_length_after_one_another_and_at_once_have_their_own_bits() -> None:
    generator = np.random.default_rng(5)
    sizes = [3, 40, 16_389, 7, 2000]
    asked = [(generator.integers(0, 3, n) * (generator.random(n) < 0.1), generator.integers(0, 50, n)) for n in sizes]

    def values(labels: np.ndarray, scores: np.ndarray) -> bytes:
        return fr.ndcg(labels, scores, k=10).tobytes()

    alone = []
    for labels, scores in asked:
        with ThreadPoolExecutor(1) as fresh:  # a thread that has ranked nothing yet
            alone.append(fresh.submit(values, labels, scores).result())
    assert [values(*each) for each in asked] == alone
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: values(*each), asked * 20)) == alone * 20


@pytest.mark.parametrize("n_queries", [1, 4000])
def test_labelled_queries_refuse_threads_for_any_number_of_blocks(n_queries: int) -> None:
    queries = fr.LabelledQueries(np.tile([1, 0], n_queries * 50), sizes=np.full(n_queries, 100))
    with pytest.raises(fr.InputError, match="threads must be a whole number from 1 up"):
        queries.evaluate(np.zeros(n_queries * 100), threads=0)


def test_a_run_in_many_blocks_has_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(6)
    names = [f"d{i}" for i in range(30)]
    qrels = {f"q{q}": dict(zip(names[::2], generator.integers(0, 3, 15).tolist(), strict=True)) for q in range(40)}
    run = {q: dict(zip(names, generator.integers(0, 9, 30).astype(float).tolist(), strict=True)) for q in qrels}
    whole = fr.evaluate_run(qrels, run, metrics=["nDCG@10", "AP", "RR"])
    monkeypatch.setattr("fastrank.engine.run.BLOCK", 64)
    parts = fr.evaluate_run(qrels, run, metrics=["nDCG@10", "AP", "RR"], threads=2)
    assert parts.values.tobytes() == whole.values.tobytes()
    assert parts.notes == whole.notes


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", TYPES)
def test_labels_read_in_parts_are_those_read_at_once(kind: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "PART", 100)
    labels = (np.arange(1000) % 7 + 1).astype(kind)
    labels[950] = 200
    found = arrays.label_codes(labels, threads)
    assert found is not None
    assert (found[0].tolist(), found[1:]) == (labels.tolist(), (1, 200))
    if kind != "uint8":
        for wrong in (-1, 256, *([0.5, math.nan, math.inf] if kind.startswith("float") else [])):
            for place in (0, 63, 64, 555, 999):
                others = labels.copy()
                others[place] = wrong
                assert arrays.label_codes(others, threads) is None


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("small", [0, 2000])
def test_a_nan_among_scores_is_found_wherever_it_stands(small: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "PART", 100)
    monkeypatch.setattr(arrays, "SMALL", small)
    scores = np.arange(1000, dtype=np.float32) - 500
    scores[[1, 2]] = math.inf, -math.inf
    assert not arrays.has_nan(scores, threads)
    for place in (0, 99, 100, 999):
        others = scores.copy()
        others[place] = math.nan
        assert arrays.has_nan(others, threads)

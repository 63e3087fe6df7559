"""Prefix curves: at every n what the plain function says of the first n documents."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastrank as fr
from fastrank.analysis import prefix_curve

CUTOFFS = ("", "@4", "@33.3%")
GAINED = [f"{family}{parameters}{k}" for family in ("nDCG", "DCG") for parameters in ("", "(gain='linear')") for k in CUTOFFS]
DISCOUNTED = [
    f"nDCG(discount={discount}){k}"
    for discount in ("'ln'", "'zipf'", "'power:0.5'", "'geometric:0.5'", "'jarvelin:3'", "'step:4'", "[1, 0.5, 0.2]")
    for k in ("", "@5", "@50%")
]
TABLES = [
    "nDCG(gain={0: -1, 1: 0, 2: 5, 3: 2})",
    "DCG(gain={0: 1, 1: 0, 2: 5, 3: 2})@3",
    "nDCG(no_relevant='one')",
    "nDCG(no_relevant='nan')",
]
BINARY = [f"{family}{k}" for family in ("AP", "AP(rel=2)", "RR", "RR(rel=2)", "AP(denominator='min_k')") for k in CUTOFFS]
BINARY += ["AP(denominator='min_k_retrieved')@4", "AUC", "AUC(rel=2, no_relevant='one')"]
SETTLED = [f"{family}(ties='{rule}'){k}" for family in ("nDCG", "AP", "RR") for rule in ("input", "worst", "best") for k in ("", "@3")]
SETTLED += ["AUC(ties='worst')", "AUC(ties='best')", "nDCG(gain={0: 0, 1: 3, 2: 1, 3: 2}, ties='worst')"]
PLAIN = ["P@5", "RBP", "AP(denominator='hits', ties='worst')@3", "RR(above=2)"]
EVERY = [*GAINED, *DISCOUNTED, *TABLES, *BINARY, *SETTLED, *PLAIN]


def plain(labels: np.ndarray, scores: np.ndarray, n: int) -> np.ndarray:
    values = fr.evaluate(labels[:n], scores[:n], metrics=EVERY).values
    assert values is not None
    return values[0]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 24), st.sampled_from([1, 3, 8, 1000]))
def test_at_every_n_the_curve_is_the_plain_function(seed: int, n: int, n_scores: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n) * (rng.random(n) < rng.random())
    scores = rng.integers(0, n_scores, n).astype(rng.choice(["int64", "float32", "float64"]))
    curve = prefix_curve(labels, scores, EVERY)
    assert curve.sizes.tolist() == list(range(1, n + 1))
    expected = np.array([plain(labels, scores, size) for size in curve.sizes]).T
    np.testing.assert_allclose(curve.values[0], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.compiled
@pytest.mark.parametrize("n_scores", [10**9, 1000, 5])
def test_sums_kept_over_long_streams_do_not_drift(n_scores: int) -> None:
    rng = np.random.default_rng(n_scores)
    n = 4_000
    labels, scores = rng.integers(0, 3, n), rng.integers(0, n_scores, n)
    sizes = [1, 2, 255, 256, 257, 258, 1023, 2048, 3071, 3839, n]
    names = ["nDCG", "nDCG@20%", "DCG(discount='power:0.5')", "AP", "AP@10%", "AUC", "RR", "nDCG@7"]
    curve = prefix_curve(labels, scores, names)
    for size in sizes:
        expected = fr.evaluate(labels[:size], scores[:size], metrics=names).values
        assert expected is not None
        np.testing.assert_allclose(curve.values[0, :, size - 1], expected[0], rtol=1e-12)


def test_fractional_labels_are_gains_of_their_own() -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.random(200), rng.random(200)
    curve = prefix_curve(labels, scores, "nDCG(gain='linear')")
    expected = [fr.ndcg(labels[:n], scores[:n], gain="linear")[0] for n in curve.sizes]
    np.testing.assert_allclose(curve.values[0, 0], expected, rtol=1e-12)


def test_a_rising_transform_of_the_scores_changes_no_bit() -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, 500), rng.integers(0, 100, 500)
    names = ["nDCG", "nDCG(discount='zipf')@30%", "AP", "RR", "AUC"]
    first = prefix_curve(labels, scores, names)
    second = prefix_curve(labels, np.exp(scores / 10.0) - 7, names)
    assert first.values.tobytes() == second.values.tobytes()


@pytest.mark.parametrize("sizes", [[3, 1, 3], 7, np.array([10, 20, 30])])
def test_few_sizes_are_those_of_the_whole_curve(sizes: object) -> None:
    rng = np.random.default_rng(0)
    labels, scores = rng.integers(0, 3, 30), rng.random(30)
    few, whole = prefix_curve(labels, scores, ["nDCG", "P@3"], sizes), prefix_curve(labels, scores, ["nDCG", "P@3"])
    assert few.sizes.tolist() == sorted(set(np.atleast_1d(sizes).tolist()))
    np.testing.assert_allclose(few.values, whole.values[:, :, few.sizes - 1], rtol=1e-12)


def test_rankers_and_threads_stand_side_by_side() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    scores = {"a": rng.random(300), "b": rng.integers(0, 9, 300)}
    both = prefix_curve(labels, scores, ["nDCG", "AP"], threads=2)
    assert both.systems == ("a", "b")
    for place, (name, each) in enumerate(scores.items()):
        alone = prefix_curve(labels, {name: each}, ["nDCG", "AP"], threads=1)
        assert alone.values[0].tobytes() == both.values[place].tobytes()
    assert both["AP"].tobytes() == both[fr.parse_metric("AP")].tobytes() == both.values[:, 1].tobytes()
    assert both.to_arrow().column_names == ["system", "n", "nDCG", "AP"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prefix_curve([[1, 0]], [[1, 2]]), "labels must be one stream of documents"),
        (lambda: prefix_curve(np.ma.array([1, 0], mask=[0, 1]), [1, 2]), "labels must not be null"),
        (lambda: prefix_curve([1, 0], np.ma.array([1, 0], mask=[0, 1])), "scores must not be null"),
        (lambda: prefix_curve([1, 0], {"a": [1, 2, 3]}), "scores of 'a' must have one entry a document, 2"),
        (lambda: prefix_curve([1, 0], {}), "scores must hold one ranker at least"),
        (lambda: prefix_curve([1, 0], [1, np.nan]), "scores must not be NaN"),
        (lambda: prefix_curve([1, 0], [1, 2], sizes=[0]), "sizes must be whole numbers from 1 to 2"),
        (lambda: prefix_curve([1, 0], [1, 2], sizes=[1.5]), "sizes must be whole numbers from 1 to 2"),
        (lambda: prefix_curve([1, 0], [1, 2], "nDCG(ties='docid')"), "give doc_ids="),
        (lambda: prefix_curve([1, 0], [1, 2])["AP"], "metric 'AP' is not among these curves: nDCG"),
    ],
)
def test_wrong_streams_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(fr.InputError, match=message):
        call()

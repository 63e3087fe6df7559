"""Which metric tells systems apart, and what a cutoff leaves out; findings as text and figures."""

from __future__ import annotations

import numpy as np
import pytest

import fastrank as fr
from fastrank import analysis
from fastrank.analysis import choose_k, distinguish

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 3, (30, 40))
SYSTEMS = {
    "bad": LABELS + 8.0 * RNG.normal(size=LABELS.shape),
    "good": LABELS + RNG.normal(size=LABELS.shape),
    "middling": LABELS + 2.5 * RNG.normal(size=LABELS.shape),
}
METRICS = ["nDCG", "nDCG(discount='power:0.5')@20%", "RR", "AUC"]


@pytest.fixture(scope="module")
def found() -> analysis.Distinctions:
    return distinguish(SYSTEMS, METRICS, labels=LABELS, n_streams=30, n_resamples=300)


def test_the_order_is_that_of_the_means(found: analysis.Distinctions) -> None:
    means = {name: fr.evaluate(LABELS, scores, metrics=METRICS).mean() for name, scores in SYSTEMS.items()}
    assert len(found.pairs) == 3 * len(METRICS)
    for pair in found.pairs:
        assert pair.difference == pytest.approx(means[pair.better][pair.metric] - means[pair.worse][pair.metric])
        assert pair.difference >= 0


def test_the_power_is_that_of_compare(found: analysis.Distinctions) -> None:
    evaluations = {name: fr.evaluate(LABELS, scores, metrics=METRICS) for name, scores in SYSTEMS.items()}
    assert found.power == fr.discriminative_power(evaluations, n_resamples=300)


def test_the_chance_of_the_right_order_is_that_of_the_bootstrap(found: analysis.Distinctions) -> None:
    rng = np.random.default_rng(1)
    values = {name: fr.evaluate(LABELS, scores, metrics="RR")["RR"] for name, scores in SYSTEMS.items()}
    for pair in found.of("RR"):
        differences = values[pair.better] - values[pair.worse]
        drawn = differences[rng.integers(30, size=(20_000, 30))].mean(axis=1) > 0
        assert pair.right == pytest.approx(drawn.mean(), abs=4 * np.sqrt(drawn.var() / 300) + 0.002)


def test_for_good_is_never_likelier_than_at_one_length(found: analysis.Distinctions) -> None:
    for pair in found.pairs:
        assert (pair.for_good_at <= pair.right_at).all()
        assert (np.diff(pair.for_good_at) >= 0).all()
        certain = found.documents[pair.for_good_at >= 0.95]
        assert pair.from_documents == (int(certain[0]) if len(certain) else None)


def test_a_wider_gap_takes_fewer_queries(found: analysis.Distinctions) -> None:
    pairs = {(pair.better, pair.worse): pair.from_queries for pair in found.of("nDCG")}
    assert pairs["good", "bad"] is not None
    assert pairs["middling", "bad"] is not None
    assert pairs["good", "bad"] <= pairs["middling", "bad"]
    assert found.best[-1] == "RR"


def test_a_system_that_wins_every_query_is_told_from_the_first_on() -> None:
    labels = [[1, 0, 0]] * 5
    systems = {"up": [[3, 2, 1]] * 5, "down": [[1, 2, 3]] * 5}
    found = distinguish(systems, "RR", labels=labels, n_streams=3, n_resamples=100)
    assert (found.pairs[0].right, found.pairs[0].from_queries) == (1.0, 1)


def test_equal_systems_are_never_told_apart() -> None:
    found = distinguish({"a": LABELS, "b": 2 * LABELS}, "nDCG,NumRet", labels=LABELS, n_streams=2, n_resamples=100, documents=[3, 40])
    for pair in found.pairs:
        assert (pair.difference, pair.right, pair.from_queries, pair.from_documents) == (0.0, 0.0, None, None)


def test_lists_of_all_lengths_and_any_number_of_threads() -> None:
    sizes = [3, 0, 20, 7]
    labels = np.concatenate([LABELS[0], LABELS[1]])[:30]
    systems = {"a": labels + np.arange(30) % 3, "b": -labels.astype(float)}
    one = distinguish(systems, ["nDCG"], labels=labels, sizes=sizes, n_streams=4, n_resamples=100, threads=1)
    two = distinguish(systems, ["nDCG"], labels=labels, sizes=sizes, n_streams=4, n_resamples=100, threads=2)
    assert one.to_json() == two.to_json()
    assert one.documents.tolist() == [5]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: distinguish({"a": LABELS}, labels=LABELS), "systems must hold two rankers at least"),
        (lambda: distinguish(SYSTEMS, labels=LABELS, level=1), "confidence must lie"),
        (lambda: distinguish(SYSTEMS, labels=LABELS, n_streams=0), "n_streams must be a whole number"),
        (lambda: distinguish(SYSTEMS, labels=LABELS, documents=[0]), "documents must be whole numbers from 1 up"),
        (lambda: distinguish({"a": [1, 2], "b": [2, 1]}, "RR", labels=[1, 0]), "labels must hold two queries at least"),
        (lambda: distinguish({"a": [[1], [1]], "b": [[1], [1]]}, "nDCG(no_relevant='nan')", labels=[[0], [1]]), "without a value"),
        (
            lambda: distinguish({"a": np.ma.masked_equal([[1, 2], [3, 4]], 4), "b": [[1, 2], [3, 4]]}, "RR", labels=[[1, 0], [1, 0]]),
            "scores must not be null here",
        ),
        (lambda: choose_k({}, labels=LABELS), "systems must hold one ranker at least"),
        (lambda: choose_k(SYSTEMS, labels=LABELS, ks=[]), "ks must hold a cutoff"),
        (lambda: choose_k(SYSTEMS, labels=LABELS, ks=[0]), "ks must be a whole number from 1 up"),
    ],
)
def test_wrong_questions_are_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(fr.InputError, match=message):
        call()


# --- cutoffs --------------------------------------------------------------------------------------------------------------------


def test_what_a_cutoff_leaves_out() -> None:
    labels, sizes = np.tile([1, 0, 2], 10), [5, 10, 15]
    systems = {"a": np.arange(30.0), "b": -np.arange(30.0)}
    found = choose_k(systems, labels=labels, sizes=sizes, ks=[2, 10, 12], visible=2, n_resamples=100)
    weight = 1 / np.log2(np.arange(2, 14))
    assert found.shorter.tolist() == pytest.approx([0, 1 / 3, 2 / 3])
    assert found.unseen.tolist() == pytest.approx([1 - weight[:2].sum() / weight[:k].sum() for k in (2, 10, 12)])
    for place, k in enumerate((2, 10, 12)):
        one, other = (fr.ndcg(labels, scores, sizes=sizes, k=k).mean() for scores in systems.values())
        assert found.difference[place, 0] == pytest.approx(one - other)


def test_the_verdict_at_each_cutoff_is_that_of_compare() -> None:
    found = choose_k(SYSTEMS, labels=LABELS, ks=[1, 5, 40], test="t")
    for place, k in enumerate((1, 5, 40)):
        evaluations = {name: fr.evaluate(LABELS, scores, metrics=fr.metrics.nDCG(k=k)) for name, scores in SYSTEMS.items()}
        compared = fr.compare(evaluations, test="t", interval="t")
        p = {frozenset((each.system, each.baseline)): each.p_corrected for each in compared.differences}
        assert [p[frozenset(pair)] for pair in found.pairs] == pytest.approx(found.p[place].tolist())
    assert found.verdicts()[-1] == ["good", "middling", "good"]


def test_one_system_has_no_verdicts_and_a_step_weighs_only_what_is_seen() -> None:
    found = choose_k({"a": LABELS}, labels=LABELS, ks=[3, 40], discount="step:3")
    assert found.pairs == ()
    assert found.unseen.tolist() == [0.0, 0.0]
    assert "better" not in repr(found)


# --- text and figures -----------------------------------------------------------------------------------------------------------


def findings(found: analysis.Distinctions) -> list[object]:
    curve = analysis.relevance_curve(LABELS, SYSTEMS["good"], bins=4)
    return [
        found,
        choose_k(SYSTEMS, labels=LABELS, ks=[1, 5], n_resamples=100),
        analysis.check_discount("geometric:0.5", ranks=1_000),
        curve,
        analysis.simulate_gap("log2", curve, [10, 100], k_share=0.2, n_lists=3),
        analysis.simulate_gap("step:3", curve, [10], n_lists=3),
        analysis.prefix_curve(LABELS[0], {name: scores[0] for name, scores in SYSTEMS.items()}, METRICS),
    ]


def test_findings_show_themselves_and_can_be_written_down(found: analysis.Distinctions) -> None:
    shown = []
    for each in findings(found):
        assert each.to_arrow().num_rows >= 1  # type: ignore[attr-defined]
        assert each.to_json().startswith("{")  # type: ignore[attr-defined]
        assert "<table" in each._repr_html_()  # type: ignore[attr-defined]
        shown.append(repr(each))
    assert shown[0].startswith(f"Report {found.best[0]}: on these 30 queries it tells")
    assert "Too fast: NDCG has no limit" in shown[2]
    assert "explains" in shown[4]
    assert "explains" not in shown[5]
    assert "of 40 sizes are shown" in shown[6]


def test_figures_have_a_line_for_each_system_or_metric(found: analysis.Distinctions) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    drawn = [each for each in findings(found) if hasattr(each, "plot")]
    for dark in (False, True):
        figures = [each.plot(dark=dark) for each in drawn]
        names = [[text.get_text() for text in figure.axes[0].get_legend().get_texts()] for figure in (figures[0], figures[2])]
        assert names == [list(found.metrics), list(SYSTEMS)]
        assert len(figures[2].axes) == len(METRICS)
        assert figures[1].axes[0].get_xlabel() == "quantile, 1 is the top"


def test_what_is_not_there_is_named(found: analysis.Distinctions) -> None:
    from fastrank.report.analysed import report_of

    with pytest.raises(fr.InputError, match="metric 'AP' is not among these: nDCG"):
        found.of("AP")
    with pytest.raises(TypeError, match="no report of int"):
        report_of(1)


def test_names_are_resolved_when_they_are_used() -> None:
    assert set(analysis.__all__) <= set(dir(analysis))
    assert all(callable(getattr(analysis, name)) for name in analysis.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = analysis.nothing

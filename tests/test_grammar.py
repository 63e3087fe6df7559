"""Names of metrics: what prints parses back, case and aliases never change a meaning, and a wrong name is answered with the near ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_table import TABLE

import fastrank as fr
from fastrank import metrics as m
from fastrank.convention import NO_RELEVANT_RULES, TIE_RULES, Convention
from fastrank.metrics import Metric, families

parse, parse_all = fr.parse_metric, fr.parse_metrics
EVERY = tuple(metric for row in TABLE.values() for metric in row.metrics)


# --- what prints parses back ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", TABLE)
def test_every_name_parses_back_to_an_equal_metric(family: str) -> None:
    for metric in TABLE[family].metrics:
        again = parse(str(metric))
        assert again == metric
        assert hash(again) == hash(metric)
        assert str(again) == str(metric)
        for convention in fr.conventions.values():
            filled = metric.fill(convention)
            assert parse(str(filled)) == filled
            assert filled.fill(convention) == filled
            # The name as typed means the same under the same convention.
            assert parse(filled.short_name, convention) == filled
            assert parse(str(metric), convention.name) == filled


NUMBERS = st.one_of(st.integers(1, 10**6), st.floats(1e-3, 1e6, allow_nan=False)).map(lambda x: x)
GAINS = st.one_of(
    st.sampled_from(["exp2", "linear"]),
    st.dictionaries(st.one_of(st.integers(0, 9), st.floats(0, 9)), st.floats(-9, 9), min_size=1, max_size=4),
    st.lists(st.integers(0, 20), min_size=1, max_size=4),
)
DISCOUNTS = st.one_of(
    st.sampled_from(["log2", "ln", "zipf", "power:0.5", "power:2", "geometric:0.25", "jarvelin:10", "jarvelin:2.5", "step:3"]),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
)
SHARES = st.one_of(
    st.integers(1, 99).map(lambda percent: f"{percent}%"),
    st.floats(0, 1, exclude_min=True, exclude_max=True).filter(lambda share: share > 1e-12),
    st.decimals("0.0001", "0.9999", places=6).map(str),
)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.one_of(st.integers(1, 2**53), SHARES),
    "ties": st.sampled_from(TIE_RULES),
    "no_relevant": st.sampled_from(NO_RELEVANT_RULES),
    "gain": GAINS,
    "discount": DISCOUNTS,
    "rel": st.one_of(NUMBERS, st.floats(0, 100).map(lambda bound: f">{bound!r}")),
    "beta": NUMBERS,
    "p": st.floats(0.001, 0.999),
    "max_label": st.one_of(st.integers(1, 999), st.floats(0.1, 999)),
    "judged_only": st.just(True),
}
CORE = (
    "DCG",
    "IDCG",
    "nDCG",
    "RR",
    "AP",
    "P",
    "R",
    "F",
    "Success",
    "Rprec",
    "ERR",
    "RBP",
    "AUC",
    "Concordance",
    "PNormPush",
    "Bpref",
    "Judged",
)


@given(family=st.sampled_from(CORE), data=st.data())
def test_any_parameters_survive_printing(family: str, data: st.DataObject) -> None:
    kind = families[family]
    names = [name for name in kind.parameters() if name in VALUES and not (name == "k" and kind.whole_list_only)]
    chosen = data.draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    metric = kind(**{name: data.draw(VALUES[name], label=name) for name in chosen})
    again = parse(str(metric))
    assert again == metric
    assert str(again) == str(metric)
    # Among others in a list it is still one metric.
    assert parse_all(f"RR@7,{metric},AP@9") == tuple(dict.fromkeys((m.RR(k=7), metric, m.AP(k=9))))


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("nDCG@10", m.nDCG(k=10)),
        ("nDCG(gain='linear')@10", m.nDCG(gain="linear", k=10)),
        ('nDCG(gain="linear")@10', m.nDCG(gain="linear", k=10)),
        ("nDCG( gain = 'linear' , discount='zipf' )@10", m.nDCG(gain="linear", discount="zipf", k=10)),
        ("nDCG(discount='zipf')", m.nDCG(discount="zipf")),
        ("nDCG(gain={0: 0, 1: 1, 2: 5})", m.nDCG(gain=[0, 1, 5])),
        ("nDCG(gain=[0, 1, 5])@3", m.nDCG(gain={2: 5, 1: 1, 0: 0}, k=3)),
        ("nDCG(discount=[1, 0.5])", m.nDCG(discount=(1, 0.5))),
        ("nDCG@20%", m.nDCG(k=0.2)),
        ("nDCG@0.2", m.nDCG(k="20%")),
        ("nDCG@12.5%", m.nDCG(k=Fraction(1, 8))),
        ("nDCG@.5", m.nDCG(k="50%")),
        ("nDCG(k=10)", m.nDCG(k=10)),
        ("nDCG(k='20%')", m.nDCG(k=0.2)),
        ("AP(rel=2)@100", m.AP(rel=2, k=100)),
        ("AP(rel='>0.5')", m.AP(rel=">0.5")),
        ("RR@10", m.RR(k=10)),
        ("RBP(p=0.8)", m.RBP(p=0.8)),
        ("F(beta=2)@5", m.F(beta=2, k=5)),
        ("P@5", m.P(k=5)),
        ("P.5", m.P(k=5)),
        ("P_5", m.P(k=5)),
        ("  RR  ", m.RR()),
        ("ERR(max_label=8)@20", m.ERR(max_label=8, k=20)),
    ],
)
def test_a_name_is_a_value(name: str, metric: Metric) -> None:
    assert parse(name) == metric


def test_the_full_name_spells_every_parameter_that_can_change_the_number() -> None:
    assert str(parse("ndcg@10", "fastrank")) == "nDCG(gain='exp2', discount='log2', ties='average', no_relevant='zero')@10"
    assert str(parse("map", "lightgbm")) == "AP(rel='>0.5', denominator='min_k_retrieved', ties='input', no_relevant='one')"
    assert str(parse("NumRet", "fastrank")) == "NumRet"
    for metric in EVERY:
        filled = metric.fill(fr.conventions["fastrank"])
        missing = {name for name in filled.parameters() if getattr(filled, name) is None}
        assert missing <= {"k", "judged_only"} | {
            name for name in missing if families[filled.family].__dataclass_fields__[name].metadata["default"] is None
        }


def test_the_short_name_is_what_was_spelled() -> None:
    filled = parse("ndcg(gain='linear')@10", "lightgbm")
    assert filled.short_name == "nDCG(gain='linear')@10"
    assert parse("map@5", "xgboost").short_name == "AP@5"
    # A cutoff that the convention gives is no part of the short name, and of the full name it is.
    assert parse("map", "xgboost").short_name == "AP"
    assert str(parse("map", "xgboost")).endswith("@32")


# --- equal by meaning ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (m.nDCG(k=10), m.nDCG(k=np.int32(10))),
        (m.nDCG(k=0.07), m.nDCG(k="7%")),
        (m.AP(rel=1), m.AP(rel=1.0)),
        (m.AP(rel=">0.50"), m.AP(rel=">0.5")),
        (m.F(beta=2), m.F(beta=np.float64(2))),
        (m.nDCG(gain={1: 3, 0: 0}), m.nDCG(gain={0.0: 0.0, 1.0: 3.0})),
        (m.nDCG(gain=np.array([0, 3])), m.nDCG(gain=(0, 3))),
        (m.nDCG(discount=np.array([1.0, 0.5])), m.nDCG(discount=[1, 0.5])),
        (parse("ndcg@10", "fastrank"), parse("nDCG(gain='exp2', discount='log2', ties='average', no_relevant='zero')@10")),
    ],
)
def test_metrics_are_equal_by_meaning(one: Metric, other: Metric) -> None:
    assert one == other
    assert hash(one) == hash(other)
    assert str(one) == str(other)


def test_metrics_differ_where_any_parameter_does() -> None:
    different = {
        m.nDCG(),
        m.nDCG(k=1),
        m.nDCG(gain="linear"),
        m.nDCG(ties="worst"),
        m.nDCG(no_relevant="one"),
        m.DCG(),
        m.nDCG(discount="zipf"),
    }
    assert len(different) == 7
    assert m.P() != m.R()
    assert len({metric.fill(fr.conventions["fastrank"]) for metric in EVERY}) >= len(
        {str(metric.fill(fr.conventions["fastrank"])) for metric in EVERY}
    )


def test_a_metric_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        m.nDCG(k=10).k = 5  # type: ignore[misc]


@pytest.mark.parametrize("family", TABLE)
def test_the_formula_says_what_the_parameters_do(family: str) -> None:
    filled = {metric.fill(fr.conventions["fastrank"]) for metric in TABLE[family].metrics}
    shown = {(metric.formula, getattr(metric, "ties", None), getattr(metric, "no_relevant", None)): metric for metric in filled}
    assert all(formula and "\n" not in formula for formula, *_ in shown)
    for metric in filled:
        other = shown[metric.formula, getattr(metric, "ties", None), getattr(metric, "no_relevant", None)]
        # Without a cutoff some denominators come to the same.
        assert metric == other or (metric.k is None and other.k is None and getattr(metric, "denominator", None) is not None)


# --- case, aliases, the names of other tools -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", families)
def test_case_never_changes_a_meaning_and_aliases_are_the_same_metric(family: str) -> None:
    info = next(info for info in fr.list_metrics() if info.name == family)
    for name in (family, *families[family].aliases):
        assert type(parse(name)) is families[family]
        assert parse(name.lower()) == parse(name.upper()) == parse(name)
    assert set(families[family].aliases) <= set(info.aliases)


@pytest.mark.parametrize(
    ("names", "metric"),
    [
        (["ndcg@10", "NDCG@10", "nDCG@10", "Ndcg@10", "ndcg.10"], m.nDCG(k=10)),
        (["map@5", "MAP@5", "AP@5", "ap@5"], m.AP(k=5)),
        (["mrr@10", "MRR@10", "RR@10", "rr@10"], m.RR(k=10)),
        (["recall@5", "Recall@5", "R@5"], m.R(k=5)),
        (["precision@5", "P@5", "p@5"], m.P(k=5)),
        (["hit_rate@5", "HitRate@5", "success@5", "Success@5"], m.Success(k=5)),
        (["f1@5", "F1@5", "F(beta=1)@5"], m.F(beta=1, k=5)),
        (["Rprec", "RPrec", "rprec"], m.Rprec()),
    ],
)
def test_the_usual_names_mean_one_metric(names: list[str], metric: Metric) -> None:
    assert {parse(name) for name in names} == {metric}


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("ndcg_cut_10", m.nDCG(gain="linear", discount="log2", k=10)),
        ("ndcg_cut.10", m.nDCG(gain="linear", discount="log2", k=10)),
        ("map_cut_5", m.AP(denominator="relevant", k=5)),
        ("recip_rank", m.RR()),
        ("ndcg_burges@10", m.nDCG(gain="exp2", discount="log2", k=10)),
        ("ndcg@5-", m.nDCG(gain="exp2", discount="log2", no_relevant="zero", k=5)),
        ("map@5-", m.AP(no_relevant="zero", k=5)),
    ],
)
def test_a_name_of_one_tool_brings_its_parameters_along_under_any_convention(name: str, metric: Metric) -> None:
    found = parse(name)
    for parameter in metric.parameters():
        if getattr(metric, parameter) is not None:
            assert getattr(found, parameter) == getattr(metric, parameter), parameter
    for convention in fr.conventions.values():
        filled = parse(name, convention)
        for parameter in metric.parameters():
            if getattr(metric, parameter) is not None:
                assert getattr(filled, parameter) == getattr(metric, parameter), parameter
        # Ties always come from the convention, where the metric has its rule.
        assert filled.ties == (convention.ties if convention.ties in filled.tie_rules() else "worst")


def test_a_bare_name_is_filled_by_the_convention_whatever_its_case() -> None:
    gains = {"fastrank": "exp2", "lightgbm": "exp2", "xgboost": "exp2", "catboost": "linear", "sklearn": "linear", "trec_eval": "linear"}
    for name, gain in gains.items():
        assert {parse(text, name).gain for text in ("ndcg@10", "nDCG@10", "NDCG@10")} == {gain}


# --- lists -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("nDCG@10,RR,P.5,10", (m.nDCG(k=10), m.RR(), m.P(k=5), m.P(k=10))),
        ("nDCG@5,10", (m.nDCG(k=5), m.nDCG(k=10))),
        ("P@1,20%,3", (m.P(k=1), m.P(k=0.2), m.P(k=3))),
        (" nDCG@5 , 10 , AP ", (m.nDCG(k=5), m.nDCG(k=10), m.AP())),
        ("nDCG(gain={0: 0, 1: 1})@3,RR", (m.nDCG(gain={0: 0, 1: 1}, k=3), m.RR())),
        ("nDCG(gain='linear', discount='zipf'),RR", (m.nDCG(gain="linear", discount="zipf"), m.RR())),
        (["RR", m.AP(k=5), "P@1,2"], (m.RR(), m.AP(k=5), m.P(k=1), m.P(k=2))),
        (("RR", "rr", "MRR"), (m.RR(),)),
        ((name for name in ("RR", "AP")), (m.RR(), m.AP())),
        (m.RR(), (m.RR(),)),
        ("ndcg_cut.5,20", (parse("ndcg_cut_5"), parse("ndcg_cut_20"))),
    ],
)
def test_several_names_are_several_metrics_in_order_each_once(names: Any, found: tuple[Metric, ...]) -> None:
    assert parse_all(names) == found


def test_every_cutoff_asked_for_comes_back_under_its_name() -> None:
    result = fr.evaluate([1, 0, 1, 1], [4, 3, 2, 1], metrics="map@5,1,3,1")
    assert list(result.mean()) == ["AP@5", "AP@1", "AP@3"]
    again = fr.evaluate([1, 0, 1, 1], [4, 3, 2, 1], metrics="map@3")
    assert result["map@3"].tolist() == again["AP@3"].tolist() == result["AP(rel=1)@3"].tolist()


def test_a_result_is_read_by_any_spelling_under_its_own_convention() -> None:
    result = fr.evaluate([1, 0], [1, 2], metrics="ndcg@10", convention="sklearn")
    expected = [1 / np.log2(3)]
    for name in ("ndcg@10", "nDCG@10", "nDCG(gain='linear')@10", "ndcg_cut_10", m.nDCG(k=10).fill(fr.conventions["sklearn"])):
        assert result[name].tolist() == expected
    for name in ("nDCG(gain='exp2')@10", "nDCG@5", "nope"):
        with pytest.raises(KeyError, match="nDCG@10"):
            result[name]


# --- errors ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ndgc@10", "'ndgc@10' is not a known metric. Did you mean nDCG"),
        ("recal@5", "'recal@5' is not a known metric. Did you mean "),
        ("zzz", "'zzz' is not a known metric. See list_metrics() or fastrank metrics."),
        ("", "no metric is named. Name one, such as nDCG@10."),
        (",", "metrics ',' hold an empty name. Remove the stray comma."),
        ("RR,,AP", "metrics 'RR,,AP' hold an empty name. Remove the stray comma."),
        ("RR,", "metrics 'RR,' hold an empty name. Remove the stray comma."),
        ("nDCG@", "'nDCG@': after the name comes @ and a cutoff, such as @10 or @20%."),
        ("nDCG@ten", "'nDCG@ten': after the name comes @ and a cutoff, such as @10 or @20%."),
        ("nDCG@-5", "'nDCG@-5': after the name comes @ and a cutoff, such as @10 or @20%."),
        ("nDCG@0", "'nDCG@0': k must be a whole number from 1 up"),
        ("nDCG@1.0", "'nDCG@1.0': k must be a whole number from 1 up"),
        ("nDCG@10.0", "not '10.0'. Write 10."),
        ("nDCG@100%", "not '100%'. For the whole list leave it out."),
        ("nDCG(gain='linear')10", "after the name comes @ and a cutoff"),
        ("nDCG(gain='linear'", "a bracket is not closed."),
        ("nDCG)gain='linear'(", "a bracket is not closed."),
        ("nDCG(gian='linear')", "nDCG has no parameter 'gian'. Did you mean gain?"),
        ("nDCG(zzz=1)", "nDCG has no parameter 'zzz'. It has gain, discount, ties, no_relevant, judged_only, k."),
        ("nDCG('linear')", "parameters are given by name, such as gain='linear'."),
        ("nDCG(**{'gain': 'linear'})", "parameters are given by name, such as gain='linear'."),
        ("nDCG(gain='linear', gain='exp2')", "gives gain twice."),
        ("nDCG(gain='linear')(k=3)", "the parameters cannot be read. Write them as in nDCG(gain='linear')@10."),
        ("nDCG(gain=linear)", "the parameters cannot be read. Write them as in nDCG(gain='linear')@10."),
        ("nDCG(gain=open('x'))", "the parameters cannot be read. Write them as in nDCG(gain='linear')@10."),
        ("nDCG(k=5)@10", "'nDCG(k=5)@10' gives its cutoff twice."),
        ("P(rel=0)", "'P(rel=0)': rel must be a number above 0"),
        ("P(rel='x')", "rel must be a number above 0 (the lowest relevant label) or a bound such as '>0.5', not 'x'."),
        ("RBP(p=2)", "'RBP(p=2)': p must be above 0 and below 1, not 2."),
        ("AP(denominator='k')", "denominator must be one of 'relevant', 'min_k', 'min_k_retrieved', 'hits', not 'k'."),
        ("nDCG(ties='avrage')", "ties must be one of 'average', 'input', 'worst', 'best', 'docid', not 'avrage'. Did you mean 'average'?"),
        ("nDCG(judged_only=1)", "judged_only must be True or False, not 1."),
        ("Rprec@5", "Rprec takes no cutoff: it judges the whole list. Leave out k."),
        ("nDCG(gain={})", "the gain table is empty."),
        ("RR(gain='linear')", "RR has no parameter 'gain'."),
    ],
)
def test_a_wrong_name_is_one_line_that_says_what_is_wrong_and_what_to_write(name: str, message: str) -> None:
    for read in (parse, parse_all, lambda text: fr.evaluate([1], metrics=text)):
        with pytest.raises(fr.InputError, match=re.escape(message)) as caught:
            read(name)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: parse("P@5,10"), "'P@5,10' names 2 metrics, not one. Name one of them, such as P@5."),
        (lambda: parse(5), "metrics are named by text, by a Metric or by several of them, not by 5."),
        (lambda: parse_all([5]), "a metric is a name or a Metric, not 5."),
        (lambda: parse("RR", "lightgmb"), "Did you mean 'lightgbm'?"),
    ],
)
def test_what_is_no_name_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.InputError, match=re.escape(message)):
        call()


def test_a_name_runs_nothing() -> None:
    for text in ("nDCG(gain=__import__('os').system('true'))", "nDCG(gain=(lambda: 1)())", "P(k=1+1)", "P(k=-1)", "P(k=[x for x in [1]])"):
        with pytest.raises(fr.InputError):
            parse(text)


# --- what is listed ----------------------------------------------------------------------------------------------------------------


def test_every_family_is_listed_with_all_that_a_reader_needs() -> None:
    listed = {info.name: info for info in fr.list_metrics()}
    assert list(listed) == list(families)
    for info in listed.values():
        assert all((info.title, info.formula, info.source, info.example)), info.name
        kind = families[info.name]
        assert set(info.parameters) == set(kind.parameters()) - ({"k"} if kind.whole_list_only else set())
        assert kind.__doc__


def test_no_two_families_share_a_name() -> None:
    owners: dict[str, str] = {}
    for family, metric in families.items():
        for name in (family, *metric.aliases):
            assert owners.setdefault(name.lower(), family) == family, name


def test_a_new_family_is_known_at_once() -> None:
    @dataclass(frozen=True, kw_only=True)
    class OwnPrecision(m.P):
        family: ClassVar[str] = "OwnPrecision"
        title: ClassVar[str] = "Precision under another name"
        aliases: ClassVar[tuple[str, ...]] = ("own_p",)

    try:
        assert parse("own_p@2") == OwnPrecision(k=2)
        assert fr.evaluate([1, 0], metrics="OwnPrecision@1").mean() == {"OwnPrecision@1": 1}
    finally:
        del families["OwnPrecision"]
    with pytest.raises(fr.InputError, match="is not a known metric"):
        parse("own_p")


def test_a_convention_of_your_own_fills_what_is_left_open() -> None:
    mine = Convention("mine", "a house rule", gain="linear", ties="worst", rel=3, no_relevant="skip")
    assert parse("nDCG@5", mine) == m.nDCG(k=5, gain="linear", discount="log2", ties="worst", no_relevant="skip")
    assert parse("AP(rel=2)", mine).rel == 2

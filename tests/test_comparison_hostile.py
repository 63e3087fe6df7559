"""Comparisons of what users really feed in: a right value, or one clear line."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

import numpy as np
import pytest
from comparing import compare, kinds, per_query, systems

import fastrank as fr
from fastrank.comparison.cautions import MOST_TOLD
from fastrank.comparison.significance import TESTS
from fastrank.errors import InputError
from fastrank.report.compared import FORMS, comparison_text

# Whole pages of many resamples are too much for plain Python.
pytestmark = pytest.mark.compiled


def every_form(found: fr.Comparison) -> dict[str, str]:
    """All that a comparison can be written as."""
    return {form: comparison_text(found, form) for form in (*FORMS, "html")} | {"page": found.to_html(), "repr": repr(found)}


def nothing_relevant(rule: str, seed: int) -> fr.Evaluation:
    return fr.evaluate(np.zeros((20, 4)), np.random.default_rng(seed).random((20, 4)), metrics=["nDCG@5", "RR"], no_relevant=rule)


# --- few queries, none, or none of a value ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("interval", ["bca", "studentised"])
@pytest.mark.parametrize("qualities", [{"a": 0.2, "b": 0.9}, {"a": 0.2, "b": 0.5, "c": 0.9}], ids=["two", "three"])
@pytest.mark.parametrize("n_queries", [1, 2])
def test_one_or_two_queries_decide_nothing_and_are_told_all_the_same(
    n_queries: int, qualities: dict[str, float], interval: str, test: str
) -> None:
    found = compare(systems(n_queries=n_queries, qualities=qualities), test=test, interval=interval, correction="none")
    assert "few_queries" in kinds(found)
    for each in found.differences:
        assert each.p is not None
        assert 0 < each.p <= 1
        if n_queries == 1:
            assert (each.p, each.verdict) in ((1.0, "open"), (1.0, "identical"))
    assert not any(re.search(r"\bnan\b", text.lower()) for form, text in every_form(found).items() if form not in ("csv", "tsv"))


def test_one_query_is_named_as_one_and_has_no_interval() -> None:
    found = compare(per_query([0.2], [0.7]))
    assert "+0.5000 (no interval), p = 1 by a permutation test on 1 query." in found.verdict
    assert "power" not in found.verdict
    assert [note.message for note in found.notes if note.kind == "few_queries"] == [
        "One query has no spread: there is no interval, and no difference can be seen."
    ]
    same = compare(per_query([0.2], [0.2]))
    assert same.verdict == "other and one have the same P@10 on the one query."


def test_a_single_cluster_is_no_spread_and_is_not_called_the_same_on_every_query() -> None:
    found = compare(systems(by={"user": ["u"] * 60}), cluster="user", primary="RR")
    assert found.n_units == 1
    assert found.differences[0].p is None
    assert kinds(found).count("few_queries") == 1
    assert "no_spread" not in kinds(found)
    assert "One cluster" in next(note.message for note in found.notes if note.kind == "few_queries")


def test_a_weight_on_one_query_alone_leaves_no_spread() -> None:
    found = compare(systems(metrics=["nDCG@10"], weights=np.eye(60)[0]))
    decided = found.differences[0]
    assert decided.p == 1.0
    assert decided.difference.standard_error == 0
    assert math.isnan(found.planning[0].smallest)
    assert "on every query of any weight" in next(note.message for note in found.notes if note.kind == "no_spread")


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("n_systems", [2, 3])
def test_a_metric_that_is_zero_everywhere_has_p_one(test: str, n_systems: int) -> None:
    found = compare({f"s{i}": nothing_relevant("zero", i) for i in range(n_systems)}, test=test)
    assert all((each.p, each.verdict, each.difference.estimate) == (1.0, "identical", 0.0) for each in found.differences)
    assert all(math.isnan(each.ratio.estimate) for each in found.differences)
    every_form(found)


@pytest.mark.parametrize(("rule", "words"), [("nan", r"nDCG@5 of 'a' is NaN for 20 queries"), ("skip", "no query with a value")])
def test_values_that_are_not_there_are_one_line(rule: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        compare({"a": nothing_relevant(rule, 0), "b": nothing_relevant(rule, 1)})


def test_means_alone_cannot_be_compared() -> None:
    stream = fr.Evaluator("RR", per_query=False)
    stream.update([[1, 0], [0, 1]])
    with pytest.raises(InputError, match=r"'a' holds means alone.*per_query=True"):
        compare({"a": stream.result(), "b": stream.result()})


# --- many queries, many systems -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_queries_are_compared_and_shown() -> None:
    rng = np.random.default_rng(0)
    worse = rng.random(1_000_000) < 0.5
    labels = np.zeros((1_000_000, 2), dtype=np.int8)
    labels[:, 0] = 1
    found = compare(
        {
            "a": fr.evaluate(labels, np.column_stack([np.ones(len(worse)), 2.0 * worse]), metrics=["RR"]),
            "b": fr.evaluate(labels, np.column_stack([np.ones(len(worse)), 2.0 * np.roll(worse, 1)]), metrics=["RR"]),
        },
        n_resamples=100,
    )
    # The same values in another order: no difference at all.
    assert found.differences[0].difference.estimate == pytest.approx(0, abs=1e-12)
    assert found.differences[0].p == 1.0
    assert "1,000,000 queries" in found.verdict
    assert len(found.to_html()) < 200_000


def test_notes_on_very_many_pairs_are_counted_after_the_first() -> None:
    one = systems(metrics=["RR"])["old"]
    found = compare({f"s{i}": one for i in range(20)})
    told = [note for note in found.notes if note.kind == "identical"]
    assert len(told) == MOST_TOLD + 1
    assert told[-1].count == 20 * 19 // 2 - MOST_TOLD
    assert told[-1].message == "The same holds of 187 further pairs of systems in RR."
    assert found.verdict == "s0, s1, s2, s3, s4 and 15 others have the same RR on all 60 queries."


def test_twenty_systems_with_weights_and_clusters_are_told_apart_where_they_differ() -> None:
    rng = np.random.default_rng(0)
    options: dict[str, Any] = {"weights": rng.lognormal(0, 1, 120), "by": {"user": np.arange(120) // 4}}
    qualities = {f"s{i}": 0.1 + (1.5 if i >= 10 else 0.0) for i in range(20)}
    found = compare(
        systems(n_queries=120, qualities=qualities, **options), primary="nDCG@10", test="tukey", cluster="user", n_resamples=500
    )
    assert found.n_units == 30
    decided = {(each.baseline, each.system): each.verdict for each in found.differences if each.metric == "nDCG@10"}
    groups = {name: i >= 10 for i, name in enumerate(qualities)}
    assert all((verdict == "better") == (groups[a] != groups[b]) for (a, b), verdict in decided.items())
    every_form(found)


# --- names --------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "  ", "two\nlines", "\x1b[31mred", "nul\x00"])
def test_names_that_cannot_be_printed_are_one_line(name: str) -> None:
    one, other = systems(n_queries=5).values()
    with pytest.raises(InputError, match="names of printable characters") as refused:
        compare({"a": one, name: other})
    assert str(refused.value).isprintable()


def test_names_that_become_the_same_text_are_one_line() -> None:
    one, other = systems(n_queries=5).values()
    with pytest.raises(InputError, match="two are called '1'"):
        compare({1: one, "1": other})


HOSTILE = ("<script>alert(1)</script>", "a|b & c% \\ $x_1$ #{}~^", "=cmd()", "@SUM(1)", "+1+2", "-a", "`x` *y* [l](http://x)", "é 日本")


@pytest.fixture(scope="module")
def hostile() -> fr.Comparison:
    values = [*HOSTILE, "\x1b[2J", "two\nlines"]
    evaluations = systems(by={"<b>|&": [values[i % len(values)] for i in range(60)]})
    return compare(dict(zip(("<script>alert(1)</script>|", "=cmd()&lt;*x*"), evaluations.values(), strict=True)), primary="RR")


def test_names_in_html_are_text(hostile: fr.Comparison) -> None:
    for text in (hostile.to_html(), comparison_text(hostile, "html")):
        assert "<script>alert" not in text
        assert "<b>|" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;|" in text
        assert "\x1b" not in text


def test_names_in_markdown_are_text_and_leave_the_table_whole(hostile: fr.Comparison) -> None:
    text = comparison_text(hostile, "markdown")
    without_code = re.sub(r"`[^`\n]*`(?=\n|$)", "", text)
    assert not re.search(r"(?<!\\)<", without_code)
    assert r"\<script>alert(1)\</script>\|" in text
    assert r"=cmd()\&lt;\*x\*" in text
    assert r"\`x\` \*y\* [l\](http://x)" in text
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_names_in_latex_are_text(hostile: fr.Comparison) -> None:
    text = comparison_text(hostile, "latex")
    assert r"a$|$b \& c\% \textbackslash{} \$x\_1\$ \#\{\}\textasciitilde{}\textasciicircum{}" in text
    for row in re.findall(r"^.*\\\\$", text, re.MULTILINE):
        assert not re.search(r"(?<!\\)[%#]", row)


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_text_in_tables_for_spreadsheets_is_no_formula(hostile: fr.Comparison, form: str) -> None:
    rows = list(csv.DictReader(io.StringIO(comparison_text(hostile, form)), delimiter="," if form == "csv" else "\t"))
    assert {row["system"] for row in rows} == {"'=cmd()&lt;*x*"}
    values = {row["value"] for row in rows}
    assert values >= {"'=cmd()", "'@SUM(1)", "'+1+2", "'-a", "é 日本", HOSTILE[0], "two\nlines"}
    # A number keeps its sign.
    assert any(float(row["difference_low"]) < 0 for row in rows)


def test_a_signed_number_in_text_is_no_formula() -> None:
    found = compare(systems(by={"part": ["-1", "+2.5"] * 30}), primary="RR")
    values = {row["value"] for row in csv.DictReader(io.StringIO(comparison_text(found, "csv")))}
    assert values == {"", "-1", "+2.5"}


def test_control_characters_reach_no_terminal(hostile: fr.Comparison) -> None:
    text = comparison_text(hostile, "table")
    assert "\x1b" not in text
    assert r"\x1b[2J" in text
    assert repr(hostile).replace("\n", "").isprintable()


# --- slices -------------------------------------------------------------------------------------------------------------------------


def test_slices_without_a_value_are_the_same_in_both_systems() -> None:
    for values in ([math.nan, 1.0] * 30, [None, "x"] * 30):
        found = compare(systems(by={"part": values}), primary="RR")
        assert len(found.slices) == 2
        assert {each.found.n_queries for each in found.slices} == {30}

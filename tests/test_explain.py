"""`explain`: what is shown adds up to what `evaluate` says."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import fastrank as fr
from fastrank.convention import TIE_RULES
from fastrank.metrics.base import families
from fastrank.metrics.working import Ranking, Work
from fastrank.report.worked import worked_table

# Every family as it comes, and the parameters that change what its table shows.
VARIANTS = (
    "nDCG@3",
    "nDCG@40%",
    "nDCG(gain='linear', discount='zipf')",
    "nDCG(gain={0: 1, 1: 3, 2: 2, 3: 0.5})@4",
    "DCG(discount=[1, 0.5, 0.25])",
    "IDCG@2",
    "RR@2",
    "AP(rel=2)@3",
    "AP(denominator='min_k')@3",
    "AP(denominator='min_k')",
    "AP(denominator='min_k_retrieved')@3",
    "AP(denominator='hits', ties='worst')@3",
    "P@4",
    "P(denominator='retrieved')@6",
    "P@50%",
    "R@3",
    "F(beta=2)@3",
    "Success@2",
    "ERR@3",
    "RBP(p=0.5, rel=2)@4",
    "PNormPush(p=1.5)",
    "Judged@3",
    "NumRelRet@3",
)
# Judgements by group are no labels of one query.
NAMES = (*(family for family, metric in families.items() if not metric.grouped), *VARIANTS)


def shown_value(worked: fr.Worked) -> float:
    """The value as a reader of the table would work it out."""
    work = worked.work
    total = math.fsum(row[work.column] for row in worked.rows if row[work.column] is not None)
    factor = 1.0 if work.factor is None else work.factor.value
    divisor = 1.0 if work.divisor is None else work.divisor.value
    return factor * total / divisor if divisor else 0.0


def nothing_to_find(worked: fr.Worked) -> bool:
    return any("nothing to find" in step for step in worked.steps)


# --- by hand --------------------------------------------------------------------------------------------------------------------


def test_ndcg_is_worked_out_as_in_a_textbook() -> None:
    worked = fr.explain("nDCG@5", [3, 2, 0, 1, 2])
    assert [row["rank"] for row in worked.rows] == [1, 2, 3, 4, 5]
    assert [row["label"] for row in worked.rows] == [3, 2, 0, 1, 2]
    assert [row["gain"] for row in worked.rows] == [2**label - 1 for label in (3, 2, 0, 1, 2)]
    assert [row["discount"] for row in worked.rows] == pytest.approx([1 / math.log2(rank + 1) for rank in range(1, 6)], abs=1e-15)
    assert math.fsum(row["term"] for row in worked.rows) == pytest.approx(
        7 + 3 / math.log2(3) + 1 / math.log2(5) + 3 / math.log2(6), abs=1e-12
    )
    assert [row["label"] for row in worked.ideal_rows] == [3, 2, 2, 1, 0]
    assert math.fsum(row["term"] for row in worked.ideal_rows) == pytest.approx(7 + 3 / math.log2(3) + 3 / 2 + 1 / math.log2(5), abs=1e-12)
    assert worked.steps[-1] == "nDCG@5 = DCG@5 / IDCG@5 = 10.484 / 10.8235 = 0.9686"


def test_average_precision_shows_the_precision_at_each_relevant_rank() -> None:
    worked = fr.explain("AP", [3, 0, 2, 3, 1])
    assert [row["precision"] for row in worked.rows] == [1, None, 2 / 3, 3 / 4, 4 / 5]
    assert worked.steps[0] == "sum = 1/1 + 2/3 + 3/4 + 4/5 = 3.2167"
    assert worked.steps[-1] == "AP = sum / P = 3.2167 / 4 = 0.8042"
    assert worked.value == pytest.approx((1 + 2 / 3 + 3 / 4 + 4 / 5) / 4, abs=1e-15)


def test_reciprocal_rank_ends_at_the_first_relevant_document() -> None:
    worked = fr.explain("RR", [0, 0, 0, 1, 1])
    assert [row["rank"] for row in worked.rows] == [1, 2, 3, 4]
    assert worked.steps == ("RR = 1/4 = 0.25",)


def test_tied_documents_stand_in_one_line() -> None:
    first, block, last = fr.explain("DCG", [3, 0, 2, 1, 1], [9, 5, 5, 5, 1]).rows
    assert (first["rank"], block["rank"], last["rank"]) == (1, "2-4", 5)
    assert block["label"] == (2, 1, 0)
    assert block["gain"] == pytest.approx((3 + 1 + 0) / 3, abs=1e-15)
    assert block["discount"] == pytest.approx(sum(1 / math.log2(rank + 1) for rank in (2, 3, 4)), abs=1e-15)


def test_a_block_of_ties_counts_as_far_as_the_cutoff_reaches() -> None:
    worked = fr.explain("DCG@3", [3, 0, 2, 1, 1], [9, 5, 5, 5, 1])
    assert worked.rows[1]["discount"] == pytest.approx(1 / math.log2(3) + 1 / math.log2(4), abs=1e-15)
    assert worked.steps[-1] == "The list has 5 documents; those below rank 3 do not count, nor do places of a tie below it."


@pytest.mark.parametrize(
    ("ties", "order"), [("input", ["d9", "é", "z", "d10"]), ("worst", ["z", "d9", "d10", "é"]), ("best", ["é", "d10", "d9", "z"])]
)
def test_tie_rules_put_single_documents_in_order(ties: str, order: list[str]) -> None:
    worked = fr.explain("DCG", [1, 3, 0, 2], [7, 7, 7, 7], doc_ids=["d9", "é", "z", "d10"], ties=ties)
    assert [row["document"] for row in worked.rows] == order
    assert [row["rank"] for row in worked.rows] == [1, 2, 3, 4]


@pytest.mark.parametrize("encode", [str, str.encode])
def test_ties_by_document_id_put_the_larger_bytes_first(encode: Any) -> None:
    names = [encode(name) for name in ("d9", "é", "z", "d10")]
    worked = fr.explain("DCG", [1, 3, 0, 2], [7, 7, 7, 7], doc_ids=names, ties="docid")
    assert [row["document"] for row in worked.rows] == sorted(
        names, key=lambda name: ["é", "z", "d9", "d10"].index(name if isinstance(name, str) else name.decode())
    )


def test_documents_that_were_not_retrieved_belong_to_the_ideal_and_to_pairs() -> None:
    labels, scores = [1, 3, 0], [0.5, None, 0.7]
    ideal = fr.explain("nDCG", labels, scores)
    assert [row["label"] for row in ideal.rows] == [0, 1]
    assert [row["label"] for row in ideal.ideal_rows] == [3, 1, 0]
    pairs = fr.explain("AUC", labels, scores)
    assert [row["rank"] for row in pairs.rows] == [1, 2, None]
    assert pairs.value == 0.0
    assert "A rank - stands for documents that were judged, but not retrieved." in pairs.steps


def test_err_shows_who_reaches_a_document_and_stops() -> None:
    first, second, third = fr.explain("ERR", [4, 0, 1]).rows
    assert (first["reaches"], first["stops"], first["term"]) == (1, 15 / 16, 15 / 16)
    assert (second["reaches"], second["stops"]) == (1 / 16, 0)
    assert third["term"] == pytest.approx(1 / 3 * 1 / 16 * 1 / 16, abs=1e-15)


def test_bpref_and_the_push_show_what_stands_above_and_below() -> None:
    assert [row["worse_above"] for row in fr.explain("Bpref", [1, 0, None, 1]).rows] == [0, None, None, 1]
    assert [row["relevant_below"] for row in fr.explain("PNormPush", [0, 1, 0]).rows] == [1, None, 0]


def test_a_sum_of_many_terms_and_a_long_table_are_cut_in_the_middle() -> None:
    worked = fr.explain("P", [1] * 200, np.r_[np.zeros(100), np.arange(1, 101)])
    assert worked.steps[0] == "hits = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + ... (101 terms) + 100 = 200"
    lines = repr(worked).splitlines()
    assert len(lines) < 80
    assert any(line.split()[:1] == ["..."] for line in lines)
    assert "1, 1, 1, 1, 1, 1, ... (100)" in repr(worked)


# --- the law --------------------------------------------------------------------------------------------------------------------


def takes_depth(name: str, ties: str | None) -> bool:
    try:
        fr.parse_metric(name, fr.conventions["fastrank"].override(ties=ties)).check_depth()
    except fr.InputError:
        return False
    return True


def cases(name: str, n: int) -> list[tuple[list[int | None], list[float | None] | None, list[str], dict[str, Any]]]:
    """Lists of up to 8 documents, many of them tied, unjudged or not retrieved, under every option."""
    draw = random.Random(name)
    rules = [rule for rule in ("average", *TIE_RULES) if rule in fr.parse_metric(name).tie_rules()]
    made = []
    for _ in range(n):
        size = draw.randrange(9)
        levels = draw.choice(((0, 0, 1, 2, 3), (0, 0, 1, 2, 3, None), (0,)))
        places = draw.choice(((0.1, 0.2, 0.3), (0.1, 0.2, 0.3, None), None))
        options: dict[str, Any] = {"judged_only": draw.random() < 0.2}
        if "ties" not in name:
            options["ties"] = draw.choice(rules)
        if draw.random() < 0.3 and takes_depth(name, options.get("ties")):
            options["depth"] = draw.randrange(1, 7)
        names = [f"d{place}" for place in range(size)]
        draw.shuffle(names)
        scores = None if places is None else [draw.choice(places) for _ in range(size)]
        made.append(([draw.choice(levels) for _ in range(size)], scores, names, options))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_the_terms_shown_add_up_to_the_value(name: str) -> None:
    n_checked = 0
    for labels, scores, names, options in cases(name, 60):
        worked = fr.explain(name, labels, scores, doc_ids=names, **options)
        by_engine = fr.evaluate(labels, scores, metrics=name, doc_ids=names, **options)
        assert worked.value == by_engine.mean()[worked.metric.short_name]
        if worked.work.column is not None and not nothing_to_find(worked):
            assert shown_value(worked) == pytest.approx(worked.value, abs=1e-12), (labels, scores, names, options)
            n_checked += 1
    assert n_checked > 10 or fr.explain(name, [1, 0]).work.column is None


@pytest.mark.parametrize("convention", list(fr.conventions))
@pytest.mark.parametrize("name", ["nDCG@3", "AP@3", "P@5", "RR", "AUC"])
def test_the_terms_add_up_under_every_convention(name: str, convention: str) -> None:
    draw, chosen = random.Random(name + convention), fr.conventions[convention]
    for _ in range(20):
        size = draw.randrange(1, 8)
        # Close enough to be one score in float32, and labels that float32 rounds.
        scores = [draw.choice((1.0, 1.00000001, 0.5)) for _ in range(size)]
        levels = (0, 1) if chosen.binary_only or chosen.trec else (0, 0.3, 1, 2.7)
        labels = [draw.choice(levels) for _ in range(size)]
        worked = fr.explain(name, labels, scores, convention=chosen, doc_ids=range(size))
        if not nothing_to_find(worked):
            assert shown_value(worked) == pytest.approx(worked.value, abs=1e-12)


@pytest.mark.parametrize("rule", ["zero", "one", "nan", "skip"])
def test_a_query_with_nothing_to_find_says_which_rule_gave_its_value(rule: str) -> None:
    worked = fr.explain("nDCG", [0, 0], no_relevant=rule)
    assert worked.steps[-1] == f"nDCG = {worked.value:g}, for there is nothing to find, and no_relevant={rule!r}."


def test_an_empty_list_is_said_to_be_empty() -> None:
    worked = fr.explain("P", [])
    assert (worked.rows, worked.value) == ([], 0.0)
    assert "No document was retrieved." in worked.steps
    assert worked.steps[-1] == "P = hits / retrieved = 0 / 0 = 0, by definition."


# --- a family of one's own ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Silent(fr.metrics.RR):
    """A metric that does not say what it is made of."""

    def work(self, ranking: Ranking) -> Work:
        return fr.Metric.work(self, ranking)


def test_a_family_that_shows_nothing_gets_its_documents_listed() -> None:
    worked = fr.explain(Silent(k=2), [0, 2, 1])
    assert worked.rows == [{"rank": 1, "label": 0, "relevant": 0}, {"rank": 2, "label": 2, "relevant": 1}]
    assert worked.steps == ("RR@2 = 0.5",)
    assert "1 / rank of the first document" in repr(worked)
    assert "<table>" in worked._repr_html_()


# --- text -----------------------------------------------------------------------------------------------------------------------


def test_repr_is_a_plain_table() -> None:
    assert repr(fr.explain("DCG@3", [2, 0, 1], [3.0, 2.0, 2.0])).splitlines() == [
        "DCG(gain='exp2', discount='log2', ties='average')@3",
        "sum over ranks r <= 3 of (2^label - 1) / log2(r + 1)",
        "",
        "ranking",
        " rank  score  label    gain  discount    term",
        "---------------------------------------------",
        "    1    3.0      2  3.0000    1.0000  3.0000",
        "  2-3    2.0   1, 0  0.5000    1.1309  0.5655",
        "---------------------------------------------",
        "DCG@3                                  3.5655",
        "",
        "DCG@3 = 3 + 0.5655 = 3.5655",
        "Scores are equal at ranks 2-3: terms there are means over all orders of these documents.",
    ]


def test_numbers_too_large_or_small_for_decimals_are_written_as_powers_of_ten() -> None:
    assert fr.explain("DCG", [100, 0]).steps[0] == f"DCG = {2.0**100:.4g}"
    assert fr.explain("RBP(p=0.01)", [1, 0, 0, 1]).steps[0] == "sum = 1 + 1e-06 = 1"


@pytest.mark.parametrize("name", NAMES)
def test_every_table_can_be_drawn(name: str) -> None:
    worked = fr.explain(name, [1, 0, 2, None, 1], [0.5, 0.4, 0.4, 0.3, None])
    for text in (repr(worked), worked_table(worked)):
        assert str(worked.metric) in " ".join(text.split())
        assert worked.steps[-1] in " ".join(text.split())
    assert max(map(len, worked_table(worked).splitlines())) <= 80
    assert worked._repr_html_().count("<table>") == len(worked.worksheets())


def test_html_escapes_what_a_document_is_called() -> None:
    assert "&lt;b&gt;" in fr.explain("P@1", [1], doc_ids=["<b>"])._repr_html_()


# --- bad input ------------------------------------------------------------------------------------------------------------------


def test_one_query_at_a_time() -> None:
    with pytest.raises(fr.InputError, match="explain works out one query, and labels hold 2"):
        fr.explain("RR", [[1, 0], [0, 1]])


def test_one_metric_at_a_time() -> None:
    with pytest.raises(fr.InputError, match="names 2 metrics, not one"):
        fr.explain("RR,AP", [1, 0])


def test_errors_are_those_of_evaluate() -> None:
    with pytest.raises(fr.InputError, match="label 2000 is too large for the gain"):
        fr.explain("nDCG", [2000, 0])
    with pytest.raises(fr.InputError, match="give doc_ids="):
        fr.explain("nDCG", [1, 0], [1, 1], ties="docid")

"""Judgements by group: their files, their other ways in, and what is wrong with them."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import fastrank as fr
from fastrank.cli import commands
from fastrank.errors import InputError

SUBTOPICS = b"q1 1 a 1\nq1 1 b 1\nq1 2 b 1\n"
PREFS = b"q1 ann 1 a 2\nq1 ann 1 b 1\nq1 ann 2 b 5\nq1 ann 2 c 4\n"
RUN = {"q1": {"a": 2.0, "b": 1.0}}


def mean(qrels: Any, metrics: str = "StRecall@1,alpha_nDCG@2", **options: Any) -> dict[str, float]:
    return fr.evaluate_run(qrels, RUN, metrics, **options).mean()


def test_every_way_in_gives_the_same_numbers(tmp_path: Path) -> None:
    path, packed = tmp_path / "subtopics.qrels", tmp_path / "subtopics.qrels.gz"
    path.write_bytes(SUBTOPICS)
    packed.write_bytes(gzip.compress(SUBTOPICS))
    expected = mean(SUBTOPICS)
    columns = [line.split() for line in SUBTOPICS.decode().splitlines()]
    queries, groups, documents, labels = ([row[i] for row in columns] for i in range(4))
    numbered = {"a": 10, "b": 11}
    assert expected["StRecall@1"] == 0.5
    for qrels in (
        str(path),
        path,
        str(packed),
        fr.GroupedQrels.read(str(path)),
        {"q1": {"1": {"a": 1, "b": 1}, "2": {"b": 1}}},
        {"q1": {1: {"a": 1, "b": 1}, 2: {"b": 1}}},
        fr.GroupedQrels.from_arrays(queries, groups, documents, list(map(int, labels))),
    ):
        assert mean(qrels) == expected
    by_number = fr.GroupedQrels.from_arrays(queries, groups, [numbered[name] for name in documents], list(map(int, labels)))
    run = {"q1": {number: RUN["q1"][name] for name, number in numbered.items()}}
    assert fr.evaluate_run(by_number, run, "StRecall@1,alpha_nDCG@2").mean() == expected


def test_qrels_by_group_can_be_read_once_and_used_again() -> None:
    qrels = fr.GroupedQrels.read(SUBTOPICS)
    assert repr(qrels) == "GroupedQrels(1 queries, 2 groups, 2 documents, from <bytes>)"
    assert (len(qrels), qrels.query_ids.to_pylist()) == (1, ["q1"])
    first, other = (fr.evaluate_run(qrels, {"q1": {name: 1.0}}, "AP_IA").mean()["AP_IA"] for name in "ab")
    assert (first, other) == (0.25, 0.75)


def test_five_fields_are_parts_and_what_follows_from_them_counts() -> None:
    # a > b and b > c make a > c.
    assert mean(PREFS, "NumPrefs") == {"NumPrefs": 3.0}
    assert mean(PREFS.replace(b"ann 2", b"ben 1"), "NumPrefs") == {"NumPrefs": 2.0}


def test_comments_blank_lines_and_the_order_of_lines_do_not_matter() -> None:
    untidy = b"\xef\xbb\xbf# head\n" + b"\n".join(reversed(SUBTOPICS.splitlines())).replace(b" ", b" \t") + b"\r\n\n#"
    assert mean(untidy) == mean(SUBTOPICS)


def test_rows_of_a_query_may_stand_apart() -> None:
    apart = b"q2 1 x 1\nq1 1 a 1\nq2 2 y 1\nq1 1 b 1\nq1 2 b 1\n"
    result = fr.evaluate_run(apart, RUN, "StRecall@1,alpha_nDCG@2", missing="skip")
    assert result.mean() == mean(SUBTOPICS)
    assert {note.kind for note in result.notes} == {"missing_query", "regrouped"}


def test_ids_that_are_no_text_are_bytes() -> None:
    result = fr.evaluate_run(b"q\xff 1 \xfe 1\n", b"q\xff Q0 \xfe 1 0.5 t\n", "AP_IA")
    assert (result.query_ids.to_pylist(), result.mean()) == ([b"q\xff"], {"AP_IA": 1.0})


def test_an_empty_file_has_no_query() -> None:
    result = fr.evaluate_run(b"", b"", "alpha_nDCG@5,PrefsFul")
    assert result.n_queries == 0


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        (b"q 1 a\n", r"<bytes>, line 1: lines of judgements by group all have 4 fields .* or 5 fields .*, not 3: 'q 1 a'"),
        (b"q 1 a 1\nq 1 1 b 1\n", r"<bytes>, line 2: lines of judgements by group .*, not 5: 'q 1 1 b 1'"),
        (b"q 1 a yes\n", r"<bytes>, line 1: label must be a finite number: 'q 1 a yes'"),
        (b"q 1 a inf\n", r"<bytes>, line 1: label must be a finite number"),
        (b"q 1 a 1\nq 1 a 0\n", r"<bytes>: in query 'q', group '1', document 'a' stands twice. Keep one of the two rows."),
        (
            b"q j 1 a 1\nq j 1 b 0\nq j 2 b 1\n",
            r"in query 'q', group 'j', document 'b' has the label 0, for what is not relevant, and another",
        ),
        (b"q j 1 a 2\nq j 1 b 1\nq j 2 b 2\nq j 2 a 1\n", r"document '[ab]' is preferred to itself, through others"),
    ],
)
def test_a_file_that_cannot_be_read_names_the_place(qrels: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mean(qrels, "PrefsFul")


@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({"q1": {"a": 1}}, r"qrels by group must be \{query: \{group: \{document: label\}\}\}, but qrels\['q1'\] is none"),
        ({"q1": 1}, r"qrels by group must be .*, but qrels\['q1'\] is none"),
        (fr.Qrels.read(b"q1 0 a 1\n"), r"need to know the group of each judgement: read them with fr\.GroupedQrels"),
        (7, r"qrels must be a file .*, not int"),
    ],
)
def test_judgements_without_groups_are_refused(qrels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        mean(qrels)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ((["q"], ["1", "2"], ["a"], [1]), r"group_ids must have one entry a row, 1, not 2"),
        ((["q"], ["1"], ["a"], [1, 2]), r"labels must have one entry a row, 1, not 2"),
        ((["q"], ["1"], ["a"], [float("nan")]), r"qrels: labels must be finite numbers\. Leave out a row that says nothing"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fr.GroupedQrels.from_arrays(*columns)


def test_arrays_have_no_groups() -> None:
    message = r"alpha_nDCG@5 reads judgements by subtopic or judge: call evaluate_run with a file of them or fr\.GroupedQrels"
    with pytest.raises(InputError, match=message):
        fr.evaluate([1, 0], metrics="alpha_nDCG@5")
    with pytest.raises(InputError, match=message):
        fr.LabelledQueries([1, 0]).evaluate([1, 2], metrics="alpha_nDCG@5")
    with pytest.raises(InputError, match=message):
        fr.explain("alpha_nDCG@5", [1, 0])


def test_ties_and_bounds_that_no_order_has_are_refused() -> None:
    with pytest.raises(InputError, match=r"StRecall@1 is not defined for ties='worst'\. It takes 'docid', 'input'"):
        mean(SUBTOPICS, "StRecall@1", ties="worst")
    with pytest.raises(InputError, match=r"StRecall has no bounds"):
        mean(SUBTOPICS, "StRecall@1", bounds=True)
    # The default under a convention without ids is the order by id as well: there are some.
    assert str(fr.parse_metric("StRecall@1", convention="fastrank")) == "StRecall(rel=1, ties='docid', no_relevant='zero')@1"


def test_the_command_line_reads_groups_when_a_metric_asks_for_them(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels", tmp_path / "run.txt"
    qrels.write_bytes(SUBTOPICS)
    run.write_text("q1 Q0 a 1 2.0 t\nq1 Q0 b 2 1.0 t\n")
    done = CliRunner().invoke(commands, ["evaluate", "--qrels", str(qrels), str(run), "-m", "StRecall@1", "--format", "csv"])
    assert (done.exit_code, "0.5" in done.output) == (0, True), done.output


def test_runs_are_compared_by_a_metric_of_groups(tmp_path: Path) -> None:
    qrels, page = tmp_path / "qrels", tmp_path / "page.html"
    qrels.write_bytes(b"".join(SUBTOPICS.replace(b"q1", b"q%d" % q) for q in range(8)))
    for name, (a, b) in {"one": (2, 1), "other": (1, 2)}.items():
        (tmp_path / name).write_text("".join(f"q{q} Q0 a 1 {a} t\nq{q} Q0 b 2 {b if q else 3 - b} t\n" for q in range(8)))
    files = ["--qrels", str(qrels), str(tmp_path / "one"), str(tmp_path / "other")]
    done = CliRunner().invoke(commands, ["compare", *files, "--primary", "alpha_nDCG@2", "--html", str(page)])
    assert done.exit_code == 0, done.output
    assert "alpha_nDCG@2" in done.output
    assert "alpha_nDCG@2" in page.read_text()
    qrels_read = fr.GroupedQrels.read(SUBTOPICS)
    assert qrels_read.n_documents == 2


def test_a_difference_of_a_metric_of_subtopics_is_explained() -> None:
    """The rule of queries with nothing to find separates them: 0 against 1."""
    qrels = fr.GroupedQrels.from_dicts({"q": {"car": {"d1": 1}}, "r": {"car": {"d1": 0}}})
    run = {"q": {"d1": 1.0}, "r": {"d1": 1.0}}
    ours = fr.conventions["fastrank"]
    other = dataclasses.replace(ours, name="other", no_relevant="one")
    found = fr.explain_difference(qrels, run, metric="alpha_nDCG@3", between=(ours, other))
    assert "is 0.5000 under fastrank and 1.0000 under other" in found.sentence

"""The edges of TREC text, from the file to the value: each gives trec_eval's number, or an error that names the line.

Numbers that trec_eval gives are asked of pytrec_eval, its version 9, as well, where it is installed and its own reader has no opinion.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastrank as fr

# Relevant: b at rank 2 of q1, a at rank 1 of q2.
QRELS = b"q1 0 a 0\nq1 0 b 1\nq2 0 a 1\n"
RUN = b"q1 Q0 a 1 0.9 t\nq1 Q0 b 2 0.5 t\nq2 Q0 a 1 0.5 t\n"
PLAIN = [1 / 2, 1.0]

LONG = b"d" * 10_240
NBSP, BOM = b"\xc2\xa0", b"\xef\xbb\xbf"


def files(folder: Path, qrels: bytes, run: bytes) -> tuple[Path, Path]:
    paths = folder / "some.qrels", folder / "some.run"
    for path, content in zip(paths, (qrels, run), strict=True):
        path.write_bytes(content)
    return paths


def reciprocal_ranks(qrels: Path, run: Path, **options: Any) -> list[float]:
    return fr.evaluate_run(qrels, run, "recip_rank", **options).values[:, 0].tolist()


def both(*changes: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """QRELS and RUN with something written otherwise in both."""
    qrels, run = QRELS, RUN
    for old, new in changes:
        qrels, run = qrels.replace(old, new), run.replace(old, new)
    return qrels, run


# Texts that say the same as QRELS and RUN.
SAME: dict[str, tuple[bytes, bytes]] = {
    "as they are": (QRELS, RUN),
    "interleaved queries in the run": (QRELS, b"q1 Q0 a 1 0.9 t\nq2 Q0 a 1 0.5 t\nq1 Q0 b 2 0.5 t\n"),
    "interleaved queries in the qrels": (b"q1 0 a 0\nq2 0 a 1\nq1 0 b 1\n", RUN),
    "interleaved queries in both": (
        b"q2 0 a 1\nq1 0 a 0\nq2 0 z 0\nq1 0 b 1\n",
        b"q1 Q0 b 2 0.5 t\nq2 Q0 a 1 0.5 t\nq1 Q0 a 1 0.9 t\n",
    ),
    "no final newline": (QRELS[:-1], RUN[:-1]),
    "ids of 10 kB": both((b" b ", b" " + LONG + b" ")),
    "query ids of 10 kB": both((b"q2", b"q2" + LONG)),
    "ids of 10 kB that differ in the last byte": both((b" a ", b" " + LONG + b"a "), (b" b ", b" " + LONG + b"b ")),
    "ids that begin with #": both((b" b ", b" #b ")),
    "ids with # in them": both((b"q1", b"q#1")),
    "comments": (b"# judged by us\n" + QRELS, RUN.replace(b"q2", b"#q2 Q0 x 1 9 t\nq2", 1)),
    "ids with a no-break space": both((b" b ", b" " + NBSP + b"b "), (b"q2", b"q" + NBSP)),
    "a byte order mark at the head": (BOM + QRELS, BOM + RUN),
    "ids with a byte order mark inside": both((b" b ", b" b" + BOM + b" ")),
    "tabs, runs of blanks and carriage returns": both((b" ", b"\t  "), (b"\n", b" \r\n")),
    "blank lines": (b"\n" + QRELS.replace(b"\n", b"\n \n"), b"\r\n" + RUN.replace(b"\n", b"\n\n")),
}


@pytest.mark.parametrize("edge", SAME)
def test_texts_that_say_the_same(edge: str, tmp_path: Path) -> None:
    qrels, run = SAME[edge]
    paths = files(tmp_path, qrels, run)
    for convention in ("trec_eval", "trec_eval9"):
        assert sorted(reciprocal_ranks(*paths, convention=convention)) == PLAIN
    # What is read once is what is read on the way.
    assert sorted(reciprocal_ranks(fr.Qrels.read(paths[0]), fr.Run.read(paths[1]))) == PLAIN  # type: ignore[arg-type]


@pytest.mark.parametrize("edge", SAME)
def test_texts_that_say_the_same_to_pytrec_eval(edge: str) -> None:
    """The dicts that its users make of such texts, by the plainest reader."""
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")
    qrels, run = (
        [line.split() for line in text.removeprefix(BOM).split(b"\n") if line.split() and not line.startswith(b"#")] for text in SAME[edge]
    )
    judged: dict[str, dict[str, int]] = {}
    ranked: dict[str, dict[str, float]] = {}
    for query, _, document, label in qrels:
        judged.setdefault(query.decode(), {})[document.decode()] = int(label)
    for query, _, document, _, score, _ in run:
        ranked.setdefault(query.decode(), {})[document.decode()] = float(score)
    found = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(ranked)
    assert sorted(values["recip_rank"] for values in found.values()) == PLAIN


# A score as it is written, the double that C reads, and how that stands to 0 and to 1.
NUMBERS: dict[bytes, float] = {
    b"1e-400": 0.0,
    b"-1e-400": -0.0,
    b"4.9e-324": 5e-324,
    b"+.5": 0.5,
    b"5.": 5.0,
    b"0x1p3": 8.0,
    b"-0X1.8p1": -3.0,
    b"inf": np.inf,
    b"-Infinity": -np.inf,
    b"1e400": np.inf,
    b"00012": 12.0,
    b"1E2": 100.0,
}


@pytest.mark.parametrize("word", NUMBERS, ids=bytes.decode)
@pytest.mark.parametrize("other", [b"0", b"1"], ids=bytes.decode)
def test_numbers_as_c_reads_them(word: bytes, other: bytes, tmp_path: Path) -> None:
    # The relevant document has the smaller id: a tie puts it second.
    paths = files(tmp_path, b"q 0 a 1\n", b"q Q0 a 0 " + word + b" t\nq Q0 b 0 " + other + b" t\n")
    assert reciprocal_ranks(*paths) == [1.0 if NUMBERS[word] > float(other) else 1 / 2]
    # Version 9 holds scores as float32.
    single = np.float32(NUMBERS[word]) > np.float32(float(other))
    assert reciprocal_ranks(*paths, convention="trec_eval9") == [1.0 if single else 1 / 2]


@pytest.mark.parametrize("word", [b"nan", b"-NaN", b"abc", b"1_0", b"1,5", b"0x", b"--1", b"1e", "½".encode(), b"1\x00"], ids=repr)
def test_what_is_no_number_names_its_line(word: bytes, tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS, RUN.replace(b"q2 Q0 a 1 0.5", b"\nq2 Q0 a 1 " + word))
    with pytest.raises(fr.InputError, match=re.escape(f"{run}, line 4: score must be a number")):
        fr.evaluate_run(qrels, run)


@pytest.mark.parametrize("word", [b"nan", b"inf", b"x", b"1,0", b""], ids=repr)
def test_a_label_that_is_none_names_its_line(word: bytes, tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS + b"q2 0 b " + word + b"\n", RUN)
    rule = "label must be a finite number" if word else "a line of qrels has 4 fields"
    with pytest.raises(fr.InputError, match=re.escape(f"{qrels}, line 4: {rule}")):
        fr.evaluate_run(qrels, run)


def test_a_fraction_as_a_label_is_no_whole_number(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS.replace(b"q1 0 b 1", b"q1 0 b 0.5"), RUN)
    with pytest.raises(fr.InputError, match=r"some\.qrels.*0\.5.*line 2"):
        fr.evaluate_run(qrels, run)
    assert reciprocal_ranks(qrels, run, convention="fastrank") == [0.0, 1.0]


@pytest.mark.parametrize(
    ("line", "n_fields"), [(b"q1 Q0 b 2 0.5", 5), (b"q1 b 0.5", 3), (b"q1", 1), (b"q1 0 b 1", 4)], ids=["five", "three", "one", "of qrels"]
)
def test_a_run_line_with_too_few_fields_names_itself(line: bytes, n_fields: int, tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS, RUN.replace(b"q1 Q0 b 2 0.5 t", line))
    with pytest.raises(fr.InputError, match=re.escape(f"{run}, line 2: a line of a run has 6 fields") + f".*not {n_fields}"):
        fr.evaluate_run(qrels, run)


@pytest.mark.parametrize("line", [b"q1 0 b", b"q1 b 1 1 1", b"q1 Q0 b 2 0.5 t"], ids=["three", "five", "of a run"])
def test_a_line_of_qrels_with_other_fields_names_itself(line: bytes, tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS.replace(b"q1 0 b 1", line), RUN)
    with pytest.raises(fr.InputError, match=re.escape(f"{qrels}, line 2: a line of qrels has 4 fields")):
        fr.evaluate_run(qrels, run)


def test_more_than_six_fields_are_read_as_trec_eval_reads_them(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS, RUN.replace(b" t\n", b" t 0.1 more\n"))
    assert reciprocal_ranks(qrels, run) == PLAIN
    with pytest.raises(fr.InputError, match=re.escape(f"{run}, line 1: a line of a run has 6 fields under the fastrank convention")):
        fr.evaluate_run(qrels, run, convention="fastrank")


def test_empty_files(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty"
    full.mkdir(), empty.mkdir()
    qrels, run = files(full, QRELS, RUN)
    nothing, no_run = files(empty, b"", b"")
    assert reciprocal_ranks(qrels, no_run) == [0.0, 0.0]
    assert reciprocal_ranks(qrels, no_run, missing="skip") == []
    assert reciprocal_ranks(nothing, run) == []
    assert np.isnan(fr.evaluate_run(nothing, no_run, "AP").mean()["AP"])


# The document d stands at ranks 1 and 4 of the run; a at 2 and b at 3.
TWICE = b"q Q0 d 1 9 t\nq Q0 a 2 8 t\nq Q0 b 3 7 t\nq Q0 d 4 1 t\n"


@pytest.mark.parametrize("depth", [None, 1, 3, 4])
@pytest.mark.parametrize("metric", ["P_1", "P_3", "map_cut_2", "map"])
def test_a_document_twice_is_an_error_above_and_below_the_cutoff(metric: str, depth: int | None, tmp_path: Path) -> None:
    qrels, run = files(tmp_path, b"q 0 a 1\nq 0 d 1\n", TWICE)
    with pytest.raises(fr.InputError, match=r"document 'd' stands twice in query 'q' of .*some\.run: line 1 and line 4\."):
        fr.evaluate_run(qrels, run, metric, depth=depth)


def test_duplicates_are_dropped_before_any_cut(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, b"q 0 a 1\nq 0 d 1\n", TWICE)
    hits = {"first": [1.0, 1.0], "max": [1.0, 1.0], "last": [1.0, 1 / 2]}  # "last": a, b, d
    for rule, expected in hits.items():
        values = [fr.evaluate_run(qrels, run, f"P_{k}", duplicates=rule, depth=k).values[0, 0] for k in (1, 2)]
        assert values == expected


def test_an_unjudged_document_twice_is_an_error_as_well(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, b"q 0 a 1\n", TWICE)
    with pytest.raises(fr.InputError, match=r"document 'd' stands twice .*line 1 and line 4\."):
        fr.evaluate_run(qrels, run, "P_1")


def test_a_judgement_twice_names_both_lines(tmp_path: Path) -> None:
    qrels, run = files(tmp_path, QRELS + b"q1 0 a 1\n", RUN)
    with pytest.raises(fr.InputError, match=r"document 'a' stands twice in query 'q1' of .*some\.qrels: line 1 and line 4\."):
        fr.evaluate_run(qrels, run)

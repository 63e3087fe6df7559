"""`fastrank trec_eval`: flags, output, exit codes and notes, byte for byte what the C program prints for well-formed files."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

import fastrank as fr
from fastrank import cli
from fastrank.compat.trec_options import USAGE
from fastrank.compat.trec_output import main

QRELS = b"q2 0 d1 1\nq2 0 d2 0\nq10 0 d1 2\nq10 0 d3 -1\nq10 0 d4 1\n"
RUN = b"q2 Q0 d2 1 3 first\nq2 Q0 d1 2 3 first\nq2 Q0 d9 3 1 first\nq10 Q0 d3 1 9 x\nq10 Q0 d1 2 8 x\nq10 Q0 d8 3 7 last\n"


class Ended(NamedTuple):
    code: int
    output: str
    said: str


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return write(tmp_path, QRELS, RUN)


def write(folder: Path, qrels: bytes, run: bytes) -> tuple[str, str]:
    (folder / "qrels").write_bytes(qrels)
    (folder / "run").write_bytes(run)
    return str(folder / "qrels"), str(folder / "run")


def call(*arguments: str) -> Ended:
    output: list[bytes] = []
    said: list[str] = []
    return Ended(main(arguments, output.append, said.append), b"".join(output).decode(), "".join(said))


def lines(*rows: tuple[str, str, str]) -> str:
    return "".join(f"{name:<22}\t{query}\t{value}\n" for name, query, value in rows)


# --- output ---------------------------------------------------------------------------------------------------------------------


def test_the_official_summary_in_its_order(files: tuple[str, str]) -> None:
    found = call(*files)
    # q10: the first document is in the pool, but not judged. q2: equal scores by id, descending.
    levels = [f"iprec_at_recall_{tenth / 10:.2f}" for tenth in range(11)]
    at = [0.5 if tenth <= 7 else 0.25 for tenth in range(11)]  # lround(0.7 * 2) = 1
    reciprocal = 1 / 2
    expected = [
        ("runid", "all", "last"), ("num_q", "all", "2"), ("num_ret", "all", "6"), ("num_rel", "all", "3"), ("num_rel_ret", "all", "2"),
        ("map", "all", f"{(1 / 4 + 1 / 2) / 2:.4f}"), ("gm_map", "all", f"{math.sqrt(1 / 4 * 1 / 2):.4f}"),
        ("Rprec", "all", f"{(0 + 1 / 2) / 2:.4f}"), ("bpref", "all", f"{(1 / 2 + 0) / 2:.4f}"), ("recip_rank", "all", f"{reciprocal:.4f}"),
        *((level, "all", f"{value:.4f}") for level, value in zip(levels, at, strict=True)),
        *((f"P_{k}", "all", f"{1 / k:.4f}") for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)),
    ]  # fmt: skip
    assert found == Ended(0, lines(*expected), "")


def test_topics_come_in_the_order_of_their_bytes_and_before_the_summary(files: tuple[str, str]) -> None:
    found = call("-q", "-m", "num_q", "-m", "runid", "-m", "gm_map", "-m", "recip_rank", "-m", "relstring", *files)
    expected = [
        ("recip_rank", "q10", "0.5000"), ("relstring", "q10", "'.2-'"), ("recip_rank", "q2", "0.5000"), ("relstring", "q2", "'01-'"),
        ("runid", "all", "last"), ("num_q", "all", "2"), ("gm_map", "all", f"{math.sqrt(1 / 4 * 1 / 2):.4f}"),
        ("recip_rank", "all", "0.5000"),
    ]  # fmt: skip
    assert found.output == lines(*expected)
    assert call("-q", "-n", "-m", "recip_rank", *files).output == lines(("recip_rank", "q10", "0.5000"), ("recip_rank", "q2", "0.5000"))
    assert call("-n", *files) == Ended(0, "", "")


def test_measures_come_in_the_programs_order_and_cutoffs_ascend(files: tuple[str, str]) -> None:
    found = call("-m", "P.3,1", "-m", "set", "-m", "map.7", "-m", "ndcg.1=2,2=5", "-m", "set_F.0.25", "-m", "utility.1,-1,0,0", *files)
    names = [line.split()[0] for line in found.output.splitlines()]
    assert names == [
        *("runid", "num_q", "num_ret", "num_rel", "num_rel_ret", "map", "P_1", "P_3", "utility_1,-1,0,0", "ndcg_1=2,2=5", "set_P"),
        *("set_relative_P", "set_recall", "set_map", "set_F_0.25"),
    ]


@pytest.mark.parametrize(
    ("flags", "name", "value"),
    [
        (["-l2"], "num_rel", "1"),
        (["--level_for_rel", "2"], "map", f"{(1 / 2 + 0) / 2:.4f}"),
        (["-M", "1"], "num_ret", "2"),
        (["-M2", "-m", "relstring"], "map", f"{(1 / 4 + 1 / 2) / 2:.4f}"),
        (["-J"], "num_ret", "3"),
        (["-N100", "-m", "utility.0,0,0,1"], "utility_0,0,0,1", f"{((100 + 1 - 3 - 1) + (100 + 1 - 3 - 2)) / 2:.4f}"),
        (["-D", "0.q2"], "num_q", "1"),
        (["-o", "--nosummary", "--query_eval_wanted", "-m", "num_ret"], "num_ret", "3"),
        (["-m", "relstring.2", "-q", "-n"], "relstring_2", "'.2'"),
    ],
)
def test_flags(files: tuple[str, str], flags: list[str], name: str, value: str) -> None:
    wanted = [] if "-m" in flags and name not in ("map", "num_ret") else ["-m", name]
    found = call(*flags, *wanted, *files)
    assert found.code == 0
    assert re.search(rf"^{re.escape(name)} *\t\S+\t{re.escape(value)}$", found.output, re.MULTILINE)


def test_a_topic_without_results_counts_zero_with_c_and_is_left_out_with_a_note_without(files: tuple[str, str]) -> None:
    qrels, run = files
    Path(run).write_bytes(RUN.partition(b"q10")[0])
    found = call("-q", "-c", "-m", "num_ret", "-m", "num_q", "-m", "map", "-m", "relstring", "-m", "gm_map", qrels, run)
    expected = [
        ("num_ret", "q10", "0"), ("map", "q10", "0.0000"), ("relstring", "q10", "''"), ("num_ret", "q2", "3"), ("map", "q2", "0.5000"),
        ("relstring", "q2", "'01-'"), ("num_q", "all", "2"), ("num_ret", "all", "3"), ("map", "all", "0.2500"),
        ("gm_map", "all", f"{math.sqrt(0.5 * 1e-5):.4f}"),
    ]  # fmt: skip
    assert found == Ended(0, lines(*expected), "")
    left_out = call("-m", "num_q", "-m", "map", qrels, run)
    assert left_out.output == lines(("num_q", "all", "1"), ("map", "all", "0.5000"))
    assert left_out.said.startswith("note: 1 of 2 topics of the qrels are not in the results: left out.")


def test_zscores(files: tuple[str, str], tmp_path: Path) -> None:
    known = tmp_path / "z"
    known.write_text("q2 map 0.25 0.5\nq10 map 0.25 0\nq2 num_ret 1 0.5\nq2 gm_map 0 1\n")
    found = call("-q", "-Z", str(known), "-m", "map", "-m", "num_ret", "-m", "gm_map", *files)
    expected = [
        ("num_ret", "q10", "-1000000"), ("map", "q10", "0.0000"), ("num_ret", "q2", "4"), ("map", "q2", "0.5000"),
        ("num_ret", "all", "-999996"), ("map", "all", "0.2500"), ("gm_map", "all", "0.0000"),
    ]  # fmt: skip
    assert found == Ended(0, lines(*expected), "")
    known.write_text("q2 map 0.25 0\nq10 map 0.25 0.1")
    assert lines(("map", "q2", "-1000000.0000")) in call("-q", "-Z", str(known), "-m", "map", *files).output
    assert call("-q", "-Z", str(known), "-m", "map", "-m", "relstring", "-m", "runid", *files).output.count("relstring") == 2
    known.write_text("q2 map 0.25\n")
    assert call("-Z", str(known), *files).code == 2


def test_measures_of_judges(tmp_path: Path) -> None:
    prefs = write(tmp_path, b"1 a s d1 2\n1 a s d2 1\n1 a s d3 0\n", b"1 Q0 d2 0 3 t\n1 Q0 d1 0 2 t\n1 Q0 d3 0 1 t\n")
    found = call("-R", "prefs", "-m", "prefs", *prefs)
    names = [line.split()[0] for line in found.output.splitlines()]
    assert names[:5] == ["runid", "num_q", "prefs_num_prefs_poss", "prefs_num_prefs_ful", "prefs_num_prefs_ful_ret"]
    assert lines(("prefs_num_prefs_poss", "all", "3"), ("prefs_num_prefs_ful", "all", "2")) in found.output
    judges = write(tmp_path, b"1 a d1 1\n1 b d2 1\n", b"1 Q0 d2 0 3 t\n1 Q0 d1 0 2 t\n")
    assert lines(("map_avgjg", "all", f"{(1 / 2 + 1) / 2:.4f}")) in call("-R", "qrels_jg", "-m", "qrels_jg", *judges).output
    assert call("-R", "qrels_jg", *judges).code == 4  # the official measures take qrels
    assert call("-m", "prefs_simp", *judges).code == 4


def test_ids_and_tags_that_are_no_utf8_keep_their_bytes(tmp_path: Path) -> None:
    output: list[bytes] = []
    files = write(tmp_path, b"q\xff 0 d 1\n", b"q\xff Q0 d 1 1 t\xfe\n")
    assert main(["-q", "-m", "runid", "-m", "num_ret", *files], output.append, print) == 0
    assert output[0].split() == [b"num_ret", b"q\xff", b"1", b"runid", b"all", b"t\xfe", b"num_ret", b"all", b"1"]


def test_standard_input_and_packed_files(files: tuple[str, str]) -> None:
    qrels = files[0]
    Path(qrels).write_bytes(gzip.compress(QRELS))
    found = CliRunner().invoke(cli.commands, ["trec_eval", "-m", "map", qrels, "-"], input=RUN)
    assert (found.exit_code, found.stdout) == (0, lines(("map", "all", "0.3750")))
    assert call("-", "-").code == 2


# --- endings --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [[], ["a"], ["a", "b", "c"], ["-x", "a", "b"], ["-l"], ["--measure"]])
def test_wrong_usage_ends_with_1_and_the_usage(arguments: list[str]) -> None:
    found = call(*arguments)
    assert (found.code, found.output) == (1, "")
    assert found.said.endswith(USAGE)


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["-m", "nope"], 1, "illegal measure 'nope'"),
        (["-m", "ndcg_cut_10"], 1, "illegal measure 'ndcg_cut_10'"),
        (["-m", "P."], 1, "improper measure in parameter 'P'"),
        (["-l", "0"], 1, "-l and -M must be 1 or more"),
        (["-M", "x"], 1, "-l and -M must be 1 or more"),
        (["-m", "P.0"], 2, "Cannot initialize measure 'P'"),
        (["-m", "P.5,5"], 2, "duplicate cutoffs"),
        (["-m", "recall.x"], 2, "Cannot initialize measure 'recall': 'x' must be numbers separated by commas, as in recall.5,10"),
        (["-m", "utility.1,2"], 2, "Cannot initialize measure 'utility'"),
        (["-m", "ndcg.1"], 2, "Cannot initialize measure 'ndcg'"),
        (["-R", "nope"], 2, "Illegal rel_format 'nope'"),
        (["-T", "nope"], 2, "Illegal retrieval results format 'nope'"),
        (["-D", "0.nope"], 7, "No queries with both results and relevance info"),
    ],
)
def test_endings_of_flags(files: tuple[str, str], flags: list[str], code: int, said: str) -> None:
    found = call(*flags, *files)
    assert (found.code, found.output) == (code, "")
    assert said in found.said


@pytest.mark.parametrize(
    ("qrels", "run", "code"),
    [
        (b"q2 0 d1\n", RUN, 2),
        (QRELS, b"q2 Q0 d1 1 1\n", 2),
        (QRELS, b"", 2),
        (b"", RUN, 2),
        (QRELS, RUN + RUN, 4),
        (QRELS + QRELS, RUN, 4),
        (QRELS, b"z Q0 d1 1 1 t\n", 7),
    ],
)
def test_endings_of_files(tmp_path: Path, qrels: bytes, run: bytes, code: int) -> None:
    found = call(*write(tmp_path, qrels, run))
    assert (found.code, found.output) == (code, "")
    assert found.said.startswith(("trec_eval: ", "note: "))


def test_a_missing_file_is_named(files: tuple[str, str]) -> None:
    found = call(files[0], "nowhere")
    assert found.code == 2
    assert "Quit in file 'nowhere'" in found.said


def test_no_topic_in_common_is_all_zeros_with_c(files: tuple[str, str]) -> None:
    Path(files[1]).write_bytes(b"z Q0 d1 1 1 t\n")
    found = call("-c", "-m", "map", "-m", "runid", "-m", "num_q", *files)
    assert found == Ended(0, lines(("runid", "all", "t"), ("num_q", "all", "2"), ("map", "all", "0.0000")), "")


def test_help_and_version(files: tuple[str, str]) -> None:
    plain = call("-h")
    assert (plain.code, plain.said) == (0, "")
    assert "-- No measures indicated." in plain.output
    told = call("-h", "-m", "all_trec", "-m", "prefs", "-R", "prefs", "-T", "elsewhere").output
    assert "trec_results'\nLines" not in told
    assert "'prefs', preferences between documents" in told
    assert "Default usage:  -m success.1,5,10" in told
    assert "relstring\n    The labels of the first N documents" in told
    assert call("-v", *files) == Ended(0, "", f"trec_eval version 10.0 (fastrank {fr.__version__})\n")
    shown = CliRunner().invoke(cli.commands, ["trec_eval", "-h"])
    assert (shown.exit_code, shown.stdout) == (0, plain.output)
    assert CliRunner().invoke(cli.commands, ["trec_eval"], standalone_mode=False).return_value == 1


# --- notes ----------------------------------------------------------------------------------------------------------------------


def test_fractions_of_labels_are_cut_off_with_a_note(tmp_path: Path) -> None:
    files = write(tmp_path, b"q2 0 d1 0.5\nq2 0 d2 1.9\n", RUN)
    found = call("-m", "num_rel", *files)
    assert found.output == lines(("num_rel", "all", "1"))
    assert found.said.startswith("note: 2 labels of the qrels are no whole numbers, the first in line 1: their fractions were cut off")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-m", "P.5", "-m", "P.10"], "-m P was given 2 times: all of their parameters count"),
        (["-m", "ndcg.1=5", "-m", "ndcg.1=9"], "-m ndcg was given 2 times: the first one counts"),
        (["-c", "-l2", "-m", "num_rel"], "num_rel counts what is relevant at this level"),
        (["-J"], "-J: a topic left without documents counts 0"),
        (["-m", "rbp"], "rbp: labels are scaled"),
        (["-m", "ndcg.1=1.5,2=2"], "ndcg_1=1.5,2=2: trec_eval takes gains less than 1 apart for equal"),
        (["-D3"], "-D: measures leave no trace"),
    ],
)
def test_where_the_c_program_is_wrong_a_note_says_so(files: tuple[str, str], flags: list[str], said: str) -> None:
    found = call(*flags, *files)
    assert found.code == 0
    assert f"note: {said}" in found.said


def test_repeated_measures_print_all_their_cutoffs(files: tuple[str, str]) -> None:
    assert call("-m", "P.1", "-m", "P.3,1", *files).output == lines(("P_1", "all", "0.0000"), ("P_3", "all", f"{1 / 3:.4f}"))


def test_topics_without_anything_judged_and_lists_that_c_makes_up(tmp_path: Path) -> None:
    files = write(tmp_path, b"q2 0 d1 -1\nq3 0 d1 1\n", RUN)
    found = call("-c", "-q", "-m", "relstring.20", "-m", "map", *files)
    assert "1 topics of the qrels have labels below 0 alone" in found.said
    assert "relstring_20: a topic without results has an empty list" in found.said
    assert lines(("relstring_20", "q3", "''")) in found.output


# --- other texts ----------------------------------------------------------------------------------------------------------------


def test_relevance_texts_rank_by_score_and_then_by_bytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names, scores, labels = [f"d{i}" for i in range(40)], rng.integers(0, 6, 40).tolist(), rng.integers(-1, 12, 30).tolist()
    known = dict(zip(names, labels, strict=False))
    ranked = [name for _, name in sorted(zip(scores, names, strict=True), reverse=True)]
    letters = ["-" if name not in known else "." if known[name] < 0 else ">" if known[name] > 9 else str(known[name]) for name in ranked]
    qrels = "".join(f"1 0 {name} {label}\n" for name, label in known.items())
    run = "".join(f"1 Q0 {name} 0 {score} t\n" for name, score in zip(names, scores, strict=True))
    files = write(tmp_path, qrels.encode(), run.encode())
    for length in (0, 1, 7, 39, 40, 41):
        found = call("-q", "-n", "-m", f"relstring.{length}", *files)
        assert found.output == lines((f"relstring_{length}", "1", f"'{''.join(letters[:length])}'"))

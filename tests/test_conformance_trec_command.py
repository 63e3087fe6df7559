"""`fastrank trec_eval` against what trec_eval 10.0 returned for real and hard files: the same lines in the same order, to the last byte.

Its values are known as doubles, and printed here as C prints them. `is_otherwise` names the lines of its defects.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import conformance
import pytest

from fastrank.compat.trec_output import main

conformance.require()

from test_conformance_trec import cases  # noqa: E402  (needs the folder)

COUNTS = ("num_q", "num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")
WITH_CUTOFFS = r"(iprec_at_recall|P|recall|Rprec_mult|relative_P|success|ndcg_cut|map_cut|unj)_([\d.]+)"
# Of these the C program prints other numbers for lists of nothing, for -c, or for gains that it takes for equal.
DEFECTS = {
    "num_rel": ("cl",),
    "ideal_dcg": ("h31",),
    "ndcg_1=3.5,2=9.0,0=0.5": ("params",),
    "utility_1,-0.5,-1,0": ("params",),
    "rbp_resid_p=0.8": ("params",),
    "relstring_20": ("params",),
    # 0.37305, of which it prints the one or the other neighbour by its rounding errors.
    "rbp_resid": ("h24",),
}


def printed(name: str, value: Any) -> str:
    """A value as C prints it."""
    if isinstance(value, str):
        return f"'{value.strip(chr(39))}'" if name.startswith("relstring") else value
    return str(int(value)) if name in COUNTS else f"{value:6.4f}"


def is_otherwise(where: str, name: str, value: str) -> bool:
    return value == "nan" or any(part in where for part in DEFECTS.get(name, ()))


def flags(variant: str, names: list[str]) -> list[str]:
    """The command line of a variant."""
    found = re.fullmatch(r"(?:default|params)|(c?)(?:l(\d)|M(\d+)|(J))?", variant)
    assert found is not None
    complete, level, depth, judged_only = found.groups()
    given = [*(["-c"] if complete or variant == "params" else []), *(["-l", level] if level else []), *(["-M", depth] if depth else [])]
    if variant != "params":
        return [
            *given,
            *(["-J"] if judged_only else []),
            *itertools.chain(*(("-m", name) for name in ("all_trec", "dcg", "ideal_dcg", "yaap"))),
        ]
    measures: dict[str, list[str]] = defaultdict(list)
    for name in names:
        parts = re.fullmatch(WITH_CUTOFFS, name) or re.fullmatch(r"(.*?)_([-\d.p].*)", name)
        measures[parts[1] if parts else name] += [parts[2]] if parts else []
    return [*given, *itertools.chain(*(("-m", ".".join([name, *([",".join(cuts)] if cuts else [])])) for name, cuts in measures.items()))]


def expected_lines(told: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    for query in sorted(told["per_query"], key=str.encode):
        yield from ((name, query, printed(name, value)) for name, value in told["per_query"][query].items())
    yield from ((name, "all", printed(name, value)) for name, value in told["aggregate"].items())


def compared(case: str, variant: str) -> int:
    """How many lines are the same."""
    told = cases()[case].results["te10full"][variant]
    output: list[bytes] = []
    said: list[str] = []
    names = list(dict.fromkeys(name for values in (*told["per_query"].values(), told["aggregate"]) for name in values))
    code = main(["-q", *flags(variant, names), str(cases()[case].qrels), str(cases()[case].run)], output.append, said.append)
    if told["rc"] != 0:
        # A topic without results ends the C program; blank lines of qrels are skipped here.
        mended = "not found in qrels" in told["stderr"] or case == "h45_blank_line_qrels"
        assert code == (0 if mended else told["rc"]), told["stderr"]
        assert not mended or case == "h45_blank_line_qrels" or "left out" in said[0]
        return 0
    found = [tuple(line.split("\t")) for line in b"".join(output).decode("utf-8", "surrogateescape").split("\n")[:-1]]
    expected = [(f"{name:<22}", query, value) for name, query, value in expected_lines(told)]
    assert [line[:2] for line in found] == [line[:2] for line in expected]
    pairs = list(zip(found, expected, strict=True))
    for ours, theirs in pairs:
        # A mean over values of which one is nan is nan there.
        assert ours == theirs or is_otherwise(f"{case} {variant}", theirs[0].strip(), theirs[2]), (case, variant)
    return sum(ours == theirs for ours, theirs in pairs)


@pytest.mark.parametrize("case", cases())
def test_every_line(case: str) -> None:
    same = sum(compared(case, variant) for variant in cases()[case].results.get("te10full", {}))
    sys.stdout.write(f"{case}: {same} lines are the same\n")

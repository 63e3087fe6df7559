"""Numbers of dicts read where they stand: by a kernel over Python's own tables, and by its twin in plain Python."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
import threading
from collections import Counter, OrderedDict, defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dict_pairs import is_short, outcome, the_general_way
from hypothesis import given
from hypothesis import strategies as st

import fastrank as fr
from fastrank._objects import double_of, error_occurred, integer_of, item_of, next_item
from fastrank.io import dicts
from fastrank.io.dicts import Numbers, read_numbers

ROOT = Path(__file__).parent.parent


def read(*pairs: tuple[dict[Any, Any], dict[Any, Any]]) -> Numbers | None:
    judged, ranked = [list(side) for side in zip(*pairs, strict=True)]
    return read_numbers(judged, ranked, *(np.append(0, np.cumsum(list(map(len, side)))) for side in (judged, ranked)))


numbers = st.integers(-(2**53), 2**53) | st.floats() | st.booleans() | st.fractions() | st.sampled_from([Decimal("0.1"), np.float32(0.1)])
tables = st.dictionaries(st.integers(0, 30) | st.text(max_size=2), numbers, max_size=20)


@given(st.lists(st.tuples(tables, tables), min_size=1, max_size=4))
def test_what_is_read_is_what_the_dicts_hold(pairs: list[tuple[dict[Any, Any], dict[Any, Any]]]) -> None:
    found = read(*pairs)
    assert found is not None
    scores = [float(score) for _, ranked in pairs for score in ranked.values()]
    np.testing.assert_array_equal(found.labels, [float(label) for judged, _ in pairs for label in judged.values()])
    np.testing.assert_array_equal(found.scores, scores)
    np.testing.assert_array_equal(found.found, [float(ranked.get(name, math.nan)) for judged, ranked in pairs for name in judged])
    assert not any(found.all_text[q] and {*map(type, [*judged, *ranked])} - {str} for q, (judged, ranked) in enumerate(pairs))
    assert found.has_nan == any(map(math.isnan, scores))
    assert found.largest == max(map(abs, filter(math.isfinite, scores)), default=0.0)
    with np.errstate(over="ignore"):
        assert found.is_single == all(float(np.float32(score)) == score for score in scores)


@pytest.mark.parametrize("bad", ["x", "1", b"1", None, 1j, [1], 10**400, Decimal("sNaN"), object()], ids=repr)
def test_what_is_no_double_is_told_and_leaves_no_exception(bad: Any) -> None:
    good = {"a": 1, "b": -1, "c": -1.0}
    assert read((good, good)) is not None
    for judged, ranked in ((good, {"a": 1, "x": bad}), ({"a": 1, "x": bad}, good)):
        assert read((good, good), (judged, ranked), (good, good)) is None
        assert not error_occurred()


def test_labels_are_integers_until_one_is_none() -> None:
    found = read(({"a": 2**53 + 1, "b": 0.5, "c": 2**64}, {}), ({"d": -1}, {}))
    assert found is not None
    assert found.labels.tolist() == [float(2**53), 0.5, 2.0**64, -1.0]


class Emptying:
    """A number that takes its dict apart when it is read."""

    def __init__(self, table: dict[Any, Any]) -> None:
        self.table = table

    def __float__(self) -> float:
        for name in [name for name, value in self.table.items() if value is not self]:
            del self.table[name]
        return 1.0


@pytest.mark.parametrize("side", [0, 1])
def test_a_dict_that_changes_meanwhile_is_no_dict_to_read(side: int) -> None:
    table: dict[str, Any] = {}
    table |= {"first": Emptying(table), "second": 2, "third": 3}
    assert read(({}, table) if side else (table, {})) is None


def test_keys_that_do_not_compare_are_in_no_dict() -> None:
    class Odd(str):
        __slots__ = ()

        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            raise RuntimeError("not to be compared")

    found = read(({Odd("a"): 1}, {"a": 2}))
    assert found is not None
    assert np.isnan(found.found).tolist() == [True]


def test_names_are_looked_at_where_many_documents_are_absent() -> None:
    run: dict[Any, Any] = {f"d{d}": d for d in range(100)}
    for n_absent, judged, ranked, all_text in (
        (50, {}, run, True),
        (1, {}, run, False),  # not worth looking at
        (50, {7: 1}, run, False),
        (50, {}, run | {b"d3": 1}, False),
    ):
        found = read(({f"x{d}": 1 for d in range(n_absent)} | judged, ranked))
        assert found is not None
        assert found.all_text.tolist() == [all_text]
        assert not error_occurred()


@pytest.mark.parametrize("n_absent", [1, 50])
@pytest.mark.parametrize("twins", [("7", 7), ("7", b"7"), (7, "7"), (b"7", "7")])
def test_a_document_under_another_type_of_name_is_found_however_many_are_absent(n_absent: int, twins: tuple[Any, Any]) -> None:
    """An id of another type than the first is an error, and no document that the run does not have."""
    for absent in ({}, {f"x{d}": 0 for d in range(n_absent)}):
        qrels = {"q": absent | {twins[0]: 1}}
        run = {"q": {f"d{d}": d for d in range(100)} | {twins[1]: 1}}
        assert not is_short(qrels, run)


def test_nothing_is_held_on_to() -> None:
    values = [1234.5, 67.25, 10**6]
    judged, ranked = {"one": values[2], "two": 0}, {"one": values[0], "two": values[1]}
    counts = [sys.getrefcount(each) for each in (*values, judged, ranked, "one")]
    for _ in range(50):
        read((judged, ranked))
    assert [sys.getrefcount(each) for each in (*values, judged, ranked, "one")] == counts


def test_dicts_with_an_order_of_their_own_keep_it() -> None:
    moved = OrderedDict(a=1.0, b=1.0, c=0.0)
    moved.move_to_end("a")

    class Backwards(dict[str, float]):
        def __iter__(self) -> Any:
            return reversed(list(super().__iter__()))

        def keys(self) -> Any:
            return list(self)

    for run, first in ((moved, "b"), (Backwards(a=1.0, b=1.0), "b"), (defaultdict(float, a=1.0, b=1.0), "a"), (Counter(a=1, b=1), "a")):
        assert is_short({"q": {first: 1}}, {"q": run})
        assert fr.evaluate_run({"q": {first: 1}}, {"q": run}, "RR", ties="input").mean() == {"RR": 1.0}


def test_long_work_is_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = {f"q{q}": {f"d{d}": d % 3 for d in range(0, 9, 2)} for q in range(20)}
    run = {f"q{q}": {f"d{d}": d * q % 7 for d in range(8)} for q in range(20)}
    whole = outcome(qrels, run)
    parts = []
    monkeypatch.setattr(dicts, "AT_ONCE", 20)
    monkeypatch.setattr(dicts, "read_dicts", lambda *given, call=dicts.read_dicts: parts.append(given[4:6]) or call(*given))
    assert outcome(qrels, run) == whole == outcome(the_general_way(qrels), the_general_way(run))
    assert len(parts) > 5
    assert [first for first, _ in parts[1:]] == [last for _, last in parts[:-1]]


def test_several_threads_read_at_once() -> None:
    pairs = [({f"d{d}": d % 2 for d in range(0, 200, 3)}, {f"d{d}": float(d * (n + 1) % 101) for d in range(200)}) for n in range(4)]
    found: dict[int, bool] = {}

    def work(n: int) -> None:
        judged, ranked = pairs[n]
        read_all = [read((judged, ranked)) for _ in range(20)]
        found[n] = all(each is not None and each.scores.tolist() == list(ranked.values()) for each in read_all)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(range(4), True)


def test_twins_say_what_the_c_functions_do() -> None:
    table = {"a": 1.5, "b": 7}
    room = np.zeros(3, np.intp)
    items = []
    while next_item(id(table), room[0:1], room[1:2], room[2:3]):
        items.append((int(room[1]), int(room[2])))
    assert items == [(id(name), id(value)) for name, value in table.items()]
    assert item_of(id(table), id("b")) == id(table["b"])
    missing = "not there"
    assert item_of(id(table), id(missing)) == 0
    assert (double_of(id(table["a"])), double_of(id(table["b"])), integer_of(id(table["b"]))) == (1.5, 7.0, 7)


@pytest.mark.compiled
@pytest.mark.slow
def test_a_new_process_finds_the_kernel_compiled(tmp_path: Path) -> None:
    program = """
        import fastrank as fr
        from fastrank.io.dicts import read_dicts
        assert fr.evaluate_run({"q": {"a": 1}}, {"q": {"b": 2.0, "a": 1.0}}, "RR").mean() == {"RR": 0.5}
        print(sum(read_dicts.compiled.stats.cache_hits.values()), len(read_dicts.signatures))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    environment = {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path), "PATH": ""}
    told = [subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert told == ["0 1\n", "1 1\n"]

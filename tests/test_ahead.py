"""Reading ahead: the same items in the same order, and everything given back on every way out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastrank.io.ahead import one_ahead
from fastrank.io.roles import Roles
from fastrank.io.sources import Stoppable, Stopped, open_source
from fastrank.io.tables import read_columns


class Source:
    """Counts what has been made, notes the thread and whether it was closed."""

    def __init__(self, n: int, error: BaseException | None = None) -> None:
        self.n, self.error = n, error
        self.made, self.closed = 0, False
        self.threads: set[str] = set()

    def items(self) -> Iterator[int]:
        try:
            for i in range(self.n):
                self.made += 1
                self.threads.add(threading.current_thread().name)
                yield i
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


@pytest.mark.parametrize("n", [0, 1, 2, 50])
def test_items_come_in_order_from_another_thread(n: int) -> None:
    source = Source(n)
    assert list(one_ahead(source.items())) == list(range(n))
    assert source.closed
    assert threading.current_thread().name not in source.threads


def test_one_item_at_most_is_made_before_it_is_asked_for() -> None:
    source = Source(10)
    for i in one_ahead(source.items()):
        assert source.made <= i + 2


def test_an_error_comes_at_its_place() -> None:
    source, seen = Source(3, ValueError("broken")), []
    with pytest.raises(ValueError, match="broken"):
        seen.extend(one_ahead(source.items()))
    assert source.closed
    items = one_ahead(Source(3, KeyboardInterrupt()).items())
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyboardInterrupt):
        next(items)


def test_leaving_early_closes_the_source() -> None:
    for leave in ("close", "error"):
        source = Source(10)
        items = one_ahead(source.items())
        assert next(items) == 0
        if leave == "close":
            items.close()
        else:
            with pytest.raises(RuntimeError, match="stop"):
                items.throw(RuntimeError("stop"))
        assert source.closed
        assert source.made <= 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("fastrank-reader")]


def test_what_is_no_generator_needs_no_closing() -> None:
    assert list(one_ahead(iter([1, 2]))) == [1, 2]


def test_leaving_early_stops_a_reader_in_the_middle_of_a_long_item(tmp_path: Path) -> None:
    table = pa.table({"q": ["a", "b"] * 50_000, "y": [1, 0] * 50_000, "s": [0.5] * 100_000})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1000)
    stop, begun = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 0
        source = Stoppable(open_source(tmp_path / "t.parquet", Roles("q", "y", ("s",))), stop)
        for _ in source.batches(["q"], 10):
            begun.set()
            assert stop.wait(60)
        yield 1

    batches = one_ahead(items(), stop)
    assert next(batches) == 0
    assert begun.wait(60)
    batches.close()
    with pytest.raises(Stopped):
        list(read_columns(tmp_path / "t.parquet", query="q", label="y", scores=["s"], stop=stop))

"""Arrow data and Parquet files as batches of whole queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from table_rows import by_query, columns, definition, only, read_whatever_comes, small

from fastrank.errors import InputError
from fastrank.io.grouping import stable_order
from fastrank.io.tables import Scattered

# --- whole queries --------------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    ids=st.lists(st.integers(-3, 3), max_size=40).flatmap(lambda ids: st.sampled_from([ids, sorted(ids)])),
    text=st.booleans(),
    chunk=st.integers(1, 9),
    rows_per_batch=st.integers(1, 12),
    from_file=st.booleans(),
)
def test_any_chunks_and_batches_give_each_query_its_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, ids: list[int], text: bool, chunk: int, rows_per_batch: int, from_file: bool
) -> None:
    values = [f"q{query}" for query in ids] if text else ids
    table = small(pa.array(values, pa.string() if text else pa.int16()))
    source: Any = pa.Table.from_batches(table.to_batches(max_chunksize=chunk), table.schema)
    if from_file:
        source = tmp_path_factory.getbasetemp() / "any.parquet"
        pq.write_table(table, source, row_group_size=chunk)
    batches = read_whatever_comes(source, rows_per_batch=rows_per_batch)
    queries, scattered = definition(values)
    assert by_query(batches) == queries
    assert sum(batch.regrouped for batch in batches) == scattered


def test_batches_have_about_the_rows_asked_for(tmp_path: Path) -> None:
    table = small(np.repeat(np.arange(1000), 10))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=300)
    for source in (table, tmp_path / "t.parquet"):
        sizes = [len(batch.labels) for batch in columns(source, rows_per_batch=1000)]
        assert sum(sizes) == 10_000
        assert max(sizes) <= 2 * 1000
        assert min(sizes[:-1]) >= 1000 / 2


def test_a_query_longer_than_a_batch_is_one_batch(tmp_path: Path) -> None:
    ids = [1] * 3 + [2] * 100 + [3] * 2
    pq.write_table(small(ids), tmp_path / "t.parquet", row_group_size=7)
    for source in (small(ids), tmp_path / "t.parquet"):
        batches = list(columns(source, rows_per_batch=5))
        assert by_query(batches) == definition(ids)[0]
        assert 100 in [len(batch.labels) for batch in batches if len(batch.query_ids) == 1]


def test_a_query_may_go_on_in_the_next_row_group(tmp_path: Path) -> None:
    pq.write_table(small(["a", "a", "a", "b", "b"]), tmp_path / "t.parquet", row_group_size=2)
    assert by_query(list(columns(tmp_path / "t.parquet", rows_per_batch=2))) == [("a", [0, 1, 2]), ("b", [3, 4])]


def test_no_rows_give_one_batch_without_queries(tmp_path: Path) -> None:
    empty = small(pa.array([], pa.string()), w=pa.array([], pa.float32()), b=pa.array([], pa.int8()), d=pa.array([], pa.string()))
    pq.write_table(empty, tmp_path / "t.parquet")
    without_types = pa.table({name: pa.nulls(0) for name in "qyswbd"})
    pq.write_table(without_types, tmp_path / "u.parquet")
    no_chunks = pa.Table.from_batches([], empty.schema)
    for source in (empty, no_chunks, without_types, tmp_path / "t.parquet", tmp_path / "u.parquet"):
        batch = only(source, weight="w", by=["b"], doc="d")
        assert batch.offsets.tolist() == [0]
        assert [len(part) for part in (batch.labels, batch.scores["s"], batch.query_ids, batch.doc_ids, batch.weights, batch.by["b"])] == [
            0
        ] * 6
        assert (batch.first_row, batch.regrouped) == (0, 0)


def test_memory_does_not_grow_with_a_sorted_file(tmp_path: Path) -> None:
    def most_bytes_held(n_queries: int) -> int:
        path = tmp_path / f"{n_queries}.parquet"
        with pq.ParquetWriter(path, pa.schema({"q": pa.string(), "y": pa.int64(), "s": pa.float64()})) as writer:
            for first in range(0, n_queries, 1000):
                ids = [f"{query:09d}" for query in range(first, first + 1000) for _ in range(10)]
                scores = np.random.default_rng(first).random(10_000)  # which do not compress: a reader may keep the bytes of the file
                writer.write_table(pa.table({"q": ids, "y": [0] * 10_000, "s": scores}))
        before = pa.total_allocated_bytes()
        return max(pa.total_allocated_bytes() - before for _ in columns(path, rows_per_batch=10_000))

    few, many = most_bytes_held(5_000), most_bytes_held(25_000)
    assert many < 1.2 * few


# --- scattered rows -------------------------------------------------------------------------------------------------------------


def test_interleaved_queries_come_sorted_with_their_rows_in_order(tmp_path: Path) -> None:
    table = small(["b", "a", "b", "c", "a", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        batch = only(source)
        assert by_query([batch]) == [("a", [1, 4, 5]), ("b", [0, 2]), ("c", [3])]
        assert batch.regrouped == 2
        assert batch.first_row == 1
        assert batch.rows.tolist() == [1, 4, 5, 0, 2, 3]


def test_queries_together_in_any_order_are_not_regrouped(tmp_path: Path) -> None:
    ids = [f"q{query}" for query in (3, 1, 10, 2, 20, 0) for _ in range(4)]
    pq.write_table(small(ids), tmp_path / "t.parquet")
    for source in (small(ids), tmp_path / "t.parquet"):
        batches = list(columns(source, rows_per_batch=5))
        assert len(batches) > 2
        assert by_query(batches) == definition(ids)[0]
        assert all(batch.rows is None for batch in batches)


def test_a_file_that_turns_out_scattered_says_so_and_can_be_read_again(tmp_path: Path) -> None:
    ids = [query for _ in range(2) for query in range(10) for _ in range(3)]  # two sorted parts, one after the other
    pq.write_table(small(ids), tmp_path / "t.parquet")
    batches = columns(tmp_path / "t.parquet", rows_per_batch=8)
    seen = [next(batches)]
    with pytest.raises(Scattered, match=r"t\.parquet: a query's rows stand in several places"):
        seen += batches
    again = list(columns(tmp_path / "t.parquet", rows_per_batch=8, regroup=True))
    assert by_query(again) == definition(ids)[0]
    assert sum(batch.regrouped for batch in again) == 10


def test_a_query_that_comes_back_much_later_is_found(tmp_path: Path) -> None:
    ids = [*range(1000), 500]
    pq.write_table(small(ids), tmp_path / "t.parquet", row_group_size=50)
    with pytest.raises(Scattered):
        list(columns(tmp_path / "t.parquet", rows_per_batch=50))
    assert sum(batch.regrouped for batch in columns(small(ids), rows_per_batch=50)) == 1


def test_regrouping_a_file_that_needs_none_changes_nothing(tmp_path: Path) -> None:
    pq.write_table(small(["b", "b", "a"]), tmp_path / "t.parquet")
    batch = only(tmp_path / "t.parquet", regroup=True)
    assert by_query([batch]) == [("b", [0, 1]), ("a", [2])]
    assert batch.rows is None


def test_slices_weights_and_documents_follow_their_rows() -> None:
    table = small(
        ["b", "a", "b", "a"],
        d=["d0", "d1", "d2", "d3"],
        w=[2.0, 1.0, 2.0, 1.0],
        seg=pa.array(["tail", None, "tail", None]).dictionary_encode(),
    )
    batch = only(table, doc="d", weight="w", by=["seg"])
    assert batch.query_ids.to_pylist() == ["a", "b"]
    assert batch.doc_ids.to_pylist() == ["d1", "d3", "d0", "d2"]
    assert batch.weights.tolist() == [1.0, 2.0]
    assert batch.by["seg"].to_pylist() == [None, "tail"]


def test_stable_order_is_the_stable_argsort_also_when_key_and_place_need_more_than_63_bits() -> None:
    keys = np.random.default_rng(7).integers(0, 5, 200)
    for n_keys in (5, 2**60):
        assert stable_order(keys, n_keys).tolist() == np.argsort(keys, kind="stable").tolist()
    assert stable_order(np.zeros(0, np.int64), 0).tolist() == []


# --- names ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"query": "query"}, r'query: there is no column "query" in .*; the nearest name is "query_id"'),
        ({"label": "LABELS"}, r'label: there is no column "LABELS" in .*; the nearest name is "label"'),
        ({"scores": ("score_a", "scroe_b")}, r'score: there is no column "scroe_b" in .*; the nearest names are "score_b", "score_a"'),
        ({"doc": "zzz"}, r'doc: there is no column "zzz" in .*; its columns are "query_id", "label", "score_a", "score_b"\.'),
        ({"weight": "zzz"}, r'weight: there is no column "zzz"'),
        ({"by": ("zzz",)}, r'by: there is no column "zzz"'),
    ],
)
def test_a_missing_column_is_named_with_the_nearest_ones(asked: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = pa.table({"query_id": [1], "label": [1], "score_a": [1.0], "score_b": [1.0]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", table.to_reader(), table.to_batches()[0]):
        with pytest.raises(InputError, match=message):
            columns(source, **{"query": "query_id", "label": "label", "scores": ("score_a",), **asked})


def test_a_table_without_columns_says_so() -> None:
    with pytest.raises(InputError, match=r"it has no columns"):
        columns(pa.table({}))


def test_a_column_that_stands_twice_is_an_error_only_when_it_is_asked_for(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([0.5]), pa.array([0.7])], names=["q", "y", "s", "s"])
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", table.to_reader()):
        with pytest.raises(InputError, match=r'score column "s" stands 2 times in .*: rename or drop all but one'):
            columns(source)
    for source in (table, tmp_path / "t.parquet", table.to_reader()):
        assert list(only(source, scores=()).scores) == []


def test_a_column_asked_for_twice_in_one_part_is_an_error() -> None:
    with pytest.raises(InputError, match='score names the column "s" twice'):
        columns(small(["a"]), scores=("s", "s"))
    with pytest.raises(InputError, match='by names the column "y" twice'):
        columns(small(["a"]), by=["y", "y"])


def test_names_with_dots_are_plain_names(tmp_path: Path) -> None:
    table = pa.table({"a": ["x", "x"], "a.b": [1, 0], "a.c": [0.5, 0.7], "a.b.c": ["u", "u"]})
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet"):
        batch = only(source, query="a", label="a.b", scores=("a.c",), by=["a.b.c"])
        assert (batch.labels.tolist(), batch.scores["a.c"].tolist(), batch.by["a.b.c"].to_pylist()) == ([1, 0], [0.5, 0.7], ["u"])


# --- sources --------------------------------------------------------------------------------------------------------------------


class Stream:
    """Nothing but the capsule, as libraries that pyarrow does not know hand it over; can be read once."""

    def __init__(self, table: pa.Table) -> None:
        self.reader = table.to_reader()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader.__arrow_c_stream__(requested_schema)


class Batch:
    """One record batch as a capsule."""

    def __init__(self, table: pa.Table) -> None:
        self.batch = table.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


def pandas_frame(table: pa.Table) -> Any:
    return pytest.importorskip("pandas") and table.to_pandas()


def polars_frame(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def duckdb_relation(table: pa.Table) -> Any:
    return pytest.importorskip("duckdb").from_arrow(table)


SOURCES = {
    "table": lambda table: table,
    "record batch": lambda table: table.combine_chunks().to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=2),
    "stream capsule": Stream,
    "array capsule": Batch,
    "pandas": pandas_frame,
    "pandas, categories": lambda table: pandas_frame(table).astype({"q": "category"}),
    "pandas, nullable": lambda table: pandas_frame(table).convert_dtypes(),
    "pandas, ids in the index": lambda table: pandas_frame(table).set_index("q"),
    "polars": polars_frame,
    "polars, categories": lambda table: polars_frame(table).cast({"q": pytest.importorskip("polars").Categorical}),
    "duckdb": duckdb_relation,
}


@pytest.mark.parametrize("ids", [["b", "b", "a", "c", "c", "c"], ["b", "a", "b", "c", "a", "c"], [3, 3, 1, 2, 2, 2]], ids=str)
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_batches(source: str, ids: list[Any]) -> None:
    table = small(ids, note=["unused"] * 6)
    if "polars, categories" in source and isinstance(ids[0], int):
        pytest.skip("categories of polars are text")
    batches = list(columns(SOURCES[source](table), rows_per_batch=2))
    queries, scattered = definition(ids)
    assert by_query(batches) == queries
    assert sum(batch.regrouped for batch in batches) == scattered


def test_a_left_join_in_pandas_gives_documents_that_were_not_retrieved() -> None:
    frame = pandas_frame(small(["a", "a"]))
    frame["s"] = [0.5, float("nan")]
    assert only(frame).scores["s"].tolist() == [0.5, None]


def test_columns_that_arrow_cannot_hold_do_no_harm_unless_asked_for() -> None:
    frame = pandas_frame(small(["a", "a"]))
    frame["mixed"] = ["text", 7]
    assert by_query([only(frame)]) == [("a", [0, 1])]
    with pytest.raises(InputError, match=r"the table: .*mixed"):
        columns(frame, doc="mixed")


def test_a_data_frame_with_a_name_twice_is_an_error() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([["a", 1, 0.5, 0.7]], columns=["q", "y", "s", "s"])
    with pytest.raises(InputError, match=r'score column "s" stands 2 times in the table'):
        columns(frame)
    with pytest.raises(InputError, match=r'query column "q" stands 2 times in the table'):
        columns(frame.set_index("q", drop=False), scores=())


def test_data_frames_name_the_nearest_columns_too() -> None:
    for frame in (pandas_frame(small(["a"])), polars_frame(small(["a"]))):
        with pytest.raises(InputError, match=r'label: there is no column "Y2" in the table; the nearest name is "y"'):
            columns(frame, label="Y2")


@pytest.mark.parametrize("wrong", [[1, 2], {"q": [1]}, 7, None, np.zeros(3), "lazy"])
def test_what_is_no_table_is_an_error_that_says_what_is(wrong: Any) -> None:
    if isinstance(wrong, str):
        wrong = polars_frame(small(["a"])).lazy()
    with pytest.raises(InputError, match=r"table must be a path, pattern or URI, a list of paths, Arrow data, or a data frame .*, not \w+"):
        columns(wrong)


@pytest.mark.parametrize("wrong", [pa.array([1]), pa.chunked_array([[1]])])
def test_a_single_column_is_no_table(wrong: Any) -> None:
    with pytest.raises(InputError, match="the table: "):
        columns(wrong)


# --- files ----------------------------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_parquet_file_is_one_line(tmp_path: Path) -> None:
    for content in (b"", b"0 qid:1 1:0.5\n", b"PAR1", b"\x00" * 1000):
        (tmp_path / "t.parquet").write_bytes(content)
        with pytest.raises(InputError, match=r"^\S*t\.parquet: \S.+$") as caught:
            columns(tmp_path / "t.parquet")
        assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_directory_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^\S*none\.parquet: No such file or directory$"):
        columns(tmp_path / "none.parquet")
    with pytest.raises(InputError, match=rf"^{tmp_path}: .*directory[^\n]*$"):
        columns(str(tmp_path))


def test_a_parquet_file_cut_anywhere_is_an_error_and_never_a_result(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(small([f"q{query}" for query in range(300)]), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"t\.parquet: "):
            columns(path)


def test_a_damaged_page_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(small(list(range(3000))), path, use_dictionary=False, compression="zstd")
    broken = bytearray(path.read_bytes())
    broken[100:2000] = b"\xff" * 1900
    path.write_bytes(broken)
    with pytest.raises(InputError, match=r"^\S*t\.parquet: [^\n]+$"):
        list(columns(path))


def test_text_that_is_not_utf8_is_an_error_before_it_is_shown(tmp_path: Path) -> None:
    buffers = pa.array([b"a", b"\xff", b"b"]).buffers()
    wrong = pa.Array.from_buffers(pa.string(), 3, buffers)
    pq.write_table(small(wrong), tmp_path / "t.parquet")
    for role in ({}, {"query": "y", "doc": "q"}, {"query": "y", "by": ["q"]}):
        for source, where in ((small(wrong), "the table"), (tmp_path / "t.parquet", r"\S*t\.parquet")):
            with pytest.raises(InputError, match=rf"^{where}: [^\n]*UTF8[^\n]*$"):
                list(columns(source, **role))


def test_an_index_beyond_its_dictionary_is_an_error_that_names_the_table() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 7]), pa.array(["a"]), safe=False)
    with pytest.raises(InputError, match=r"^the table: .*7.*$"):
        list(columns(small(ids)))


def test_only_the_columns_named_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(small(list(range(3000)), z=[str(row) * 9 for row in range(3000)]), path, use_dictionary=False, compression="zstd")
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(3)
    broken = bytearray(path.read_bytes())
    start = chunk.data_page_offset
    broken[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(broken)
    assert len(only(path).labels) == 3000
    with pytest.raises(InputError):
        list(columns(path, doc="z"))

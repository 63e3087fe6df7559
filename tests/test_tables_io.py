"""Arrow data and Parquet files as batches of whole queries."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrank.errors import InputError
from fastrank.io import arrow
from fastrank.io.columns import Columns
from fastrank.io.grouping import SHORT_CHUNK, differs, find_runs, stable_order
from fastrank.io.tables import Scattered, read_columns


def columns(table: Any, *, query: str = "q", label: str = "y", scores: tuple[str, ...] = ("s",), **options: Any) -> Iterator[Columns]:
    return read_columns(table, query=query, label=label, scores=scores, **options)


def only(table: Any, **options: Any) -> Columns:
    [batch] = columns(table, **options)
    return batch


def small(ids: Any, **others: Any) -> pa.Table:
    """A table of these ids whose labels count the rows and whose scores are half of that."""
    rows = range(len(ids))
    return pa.table({"q": ids, "y": list(rows), "s": [row / 2 for row in rows], **others})


def by_query(batches: list[Columns]) -> list[tuple[Any, list[int]]]:
    """Each query with its labels, which are row numbers in ``small``, in the order they came."""
    found = []
    for batch in batches:
        found += [
            (query, batch.labels[start:stop].tolist())
            for query, start, stop in zip(batch.query_ids.to_pylist(), batch.offsets[:-1], batch.offsets[1:], strict=True)
        ]
        assert batch.offsets.dtype == np.int64
        assert batch.offsets[0] == 0
        assert batch.offsets[-1] == len(batch.labels)
        assert batch.scores["s"].tolist() == [label / 2 for label in batch.labels.tolist()]
        assert [batch.source_row(row) for row in range(len(batch.labels))] == batch.labels.tolist()
    return found


def definition(ids: list[Any]) -> tuple[list[tuple[Any, list[int]]], int]:
    """What must come out for these ids, and how many queries are scattered: one row at a time, from the words of the docstring."""
    rows: dict[Any, list[int]] = {}
    for row, query in enumerate(ids):
        rows.setdefault(query, []).append(row)
    scattered = sum(own != list(range(own[0], own[-1] + 1)) for own in rows.values())
    return (sorted(rows.items()) if scattered else list(rows.items())), scattered


def read_whatever_comes(table: Any, **options: Any) -> list[Columns]:
    """What the engine does: start over when a file turns out to be scattered."""
    try:
        return list(columns(table, **options))
    except Scattered:
        return list(columns(table, regroup=True, **options))


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
                writer.write_table(pa.table({"q": ids, "y": [0] * 10_000, "s": [0.0] * 10_000}))
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


# --- ids ------------------------------------------------------------------------------------------------------------------------

DAY = dt.date(2024, 2, 29)
ID_ARRAYS = {
    "string": (pa.array(["a", "a", "b", "ü"]), pa.string()),
    "large_string": (pa.array(["a", "a", "b", "ü"], pa.large_string()), pa.large_string()),
    "string_view": (pa.array(["a", "a", "b", "longer than twelve bytes"], pa.string_view()), pa.large_string()),
    "binary": (pa.array([b"a", b"a", b"\x00", b"\xff"], pa.binary()), pa.binary()),
    "large_binary": (pa.array([b"a", b"a", b"", b"\xff"], pa.large_binary()), pa.large_binary()),
    "binary_view": (pa.array([b"a", b"a", b"b", b"\xff" * 20], pa.binary_view()), pa.large_binary()),
    "fixed_size_binary": (pa.array([b"ab", b"ab", b"ac", b"\xff\x00"], pa.binary(2)), pa.binary(2)),
    **{
        str(of): (pa.array([0, 0, 1, 2 ** (of.bit_width - 1) - 1], of), of)
        for of in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
    },
    "uint64": (pa.array([0, 0, 1, 2**64 - 1], pa.uint64()), pa.uint64()),
    "close int64": (pa.array([2**53, 2**53, 2**53 + 1, 2**53 + 2]), pa.int64()),
    "bool": (pa.array([False, False, False, True]), pa.bool_()),
    "date": (pa.array([DAY, DAY, DAY + dt.timedelta(1), DAY + dt.timedelta(2)]), pa.date32()),
    "timestamp": (pa.array([0, 0, 1, 2], pa.timestamp("ns", "UTC")), pa.timestamp("ns", "UTC")),
    "decimal": (pa.array([Decimal(0), Decimal(0), Decimal(1), Decimal(10**37)], pa.decimal128(38, 0)), pa.decimal128(38, 0)),
    "dictionary": (pa.array(["a", "a", "b", "c"]).dictionary_encode(), pa.string()),
    "dictionary of integers": (pa.array([5, 5, 7, 9]).dictionary_encode(), pa.int64()),
    "dictionary of views": (
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 2], pa.uint8()), pa.array(["a", "b", "c"], pa.string_view())),
        pa.large_string(),
    ),
    "run_end_encoded": (pc.run_end_encode(pa.array(["a", "a", "b", "c"])), pa.string()),
}


class Tag(pa.ExtensionType):
    """A name with a meaning of its own, stored as text."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "test.tag")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Tag:
        return cls()


ID_ARRAYS["extension"] = (pa.ExtensionArray.from_storage(Tag(), pa.array(["a", "a", "b", "c"])), pa.string())


@pytest.mark.parametrize("kind", ID_ARRAYS)
def test_ids_of_every_type_are_compared_and_sorted_by_value(kind: str) -> None:
    ids, expected = ID_ARRAYS[kind]
    values = arrow.decoded(ids).to_pylist()
    together = only(small(ids))
    assert together.query_ids.type == expected
    assert by_query([together]) == definition(values)[0]
    scattered_values = values[::-1] + values  # each query's rows in two places, the last one's in one
    column = pa.chunked_array([arrow.decoded(ids).take(pa.array([3, 2, 1, 0])).cast(expected), arrow.decoded(ids)])
    scattered = only(small(column))
    assert by_query([scattered]) == definition(scattered_values)[0]
    assert scattered.regrouped == definition(scattered_values)[1]


@pytest.mark.parametrize("kind", [kind for kind in ID_ARRAYS if kind not in {"run_end_encoded", "extension", "dictionary of views"}])
def test_ids_of_every_type_that_parquet_holds_are_read(kind: str, tmp_path: Path) -> None:
    ids, _ = ID_ARRAYS[kind]
    values = arrow.decoded(ids).to_pylist()
    try:
        pq.write_table(small(pa.chunked_array([ids, ids])), tmp_path / "t.parquet", row_group_size=4)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(str(error))
    assert by_query(read_whatever_comes(tmp_path / "t.parquet", rows_per_batch=4)) == definition(values * 2)[0]


def test_each_chunk_may_have_a_dictionary_of_its_own() -> None:
    chunks = [pa.array(part).dictionary_encode() for part in (["a", "b"], ["b", "c"], ["d", "a"])]
    batch = only(small(pa.chunked_array(chunks)))
    assert by_query([batch]) == [("a", [0, 5]), ("b", [1, 2]), ("c", [3]), ("d", [4])]
    assert batch.regrouped == 1


def test_long_chunks_with_their_own_dictionaries_are_compared_by_value() -> None:
    n = SHORT_CHUNK
    chunks = [pa.array(["a"] * (n - 1) + ["b"]).dictionary_encode(), pa.array(["b"] * n).dictionary_encode()]
    runs = find_runs(pa.chunked_array(chunks))
    assert runs.values.to_pylist() == ["a", "b"]
    assert runs.offsets.tolist() == [0, n - 1, 2 * n]


def test_a_value_that_stands_twice_in_a_dictionary_is_one_query() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 1]), pa.array(["a", "a", "b"]))
    assert by_query([only(small(ids))]) == [("a", [0, 1, 3]), ("b", [2])]


def test_categories_that_no_row_has_are_no_queries() -> None:
    ids = pa.DictionaryArray.from_arrays(pa.array([0, 0, 2]), pa.array(["q1", "q2", "q3"]))
    assert by_query([only(small(ids))]) == [("q1", [0, 1]), ("q3", [2])]


def test_sliced_arrays_keep_to_their_rows() -> None:
    table = small(
        pa.array(list("xaabbbx")).dictionary_encode(), y=pa.array([9, 0, 1, 2, 3, 4, 9]), s=pa.array([9, 0.0, 0.5, 1, None, 2, 9])
    )
    batch = only(table.slice(1, 5))
    assert batch.query_ids.to_pylist() == ["a", "b"]
    assert batch.labels.tolist() == [0, 1, 2, 3, 4]
    assert batch.scores["s"].tolist() == [0.0, 0.5, 1.0, None, 2.0]


def test_empty_chunks_change_nothing() -> None:
    def column(values: list[Any]) -> pa.ChunkedArray:
        parts = [pa.array(part, pa.array(values).type) for part in ([], values[:2], [], values[2:], [])]
        return pa.chunked_array(parts)

    table = pa.table({"q": column(["a", "a", "a", "b"]), "y": column([0, 1, 2, 3]), "s": column([0.0, 0.5, 1.0, 1.5])})
    assert by_query([only(table)]) == [("a", [0, 1, 2]), ("b", [3])]


@pytest.mark.parametrize("role", ["query", "doc"])
def test_floats_are_not_ids(role: str, tmp_path: Path) -> None:
    table = small(["a"], f=[1.0])
    pq.write_table(table, tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", table.set_column(3, "f", table["f"].dictionary_encode())):
        with pytest.raises(InputError, match=rf'{role} column "f" is .*double.*floats are not ids: cast it to integer or string'):
            columns(source, **{"query": "q", role: "f"})


def test_lists_are_not_ids_nor_slices() -> None:
    table = small(["a"], nested=[[1]])
    for role in ("query", "doc"):
        with pytest.raises(InputError, match=rf'{role} column "nested" is list<.*> ?, which cannot be an id: cast it to integer or string'):
            columns(table, **{"query": "q", role: "nested"})
    with pytest.raises(InputError, match=r'by column "nested" is list<.*> ?, which cannot be a slice: cast it to string'):
        columns(table, by=["nested"])


@pytest.mark.parametrize(
    "ids",
    [
        pa.array(["a", "a", None, "b"]),
        pa.array([1, 1, None, None]),
        pa.array(["a", "a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 1, 0]), pa.array(["a", None])),
    ],
)
def test_a_null_id_is_an_error_that_names_the_row(ids: pa.Array) -> None:
    for role in ("query", "doc"):
        with pytest.raises(InputError, match=rf'{role} column "i" must not be null: row 2 is\. Fill it or filter the row out\.'):
            list(columns(small(list("xxyz"), i=ids), **{"query": "q", role: "i"}))


def test_a_null_id_far_down_a_file_is_named_by_its_row_in_the_file(tmp_path: Path) -> None:
    ids = [*np.repeat(np.arange(50), 2).tolist(), None]
    pq.write_table(small(pa.array(ids)), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="row 100 is"):
        list(columns(tmp_path / "t.parquet", rows_per_batch=10))
    pq.write_table(small(pa.array(range(101)), i=pa.array(ids)), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="row 100 is"):
        list(columns(tmp_path / "t.parquet", rows_per_batch=10, doc="i"))
    scattered = small([1, 0, 1], i=["x", None, "y"])
    with pytest.raises(InputError, match="row 1 is"):
        list(columns(scattered, doc="i"))


def test_a_column_of_nulls_without_a_type_has_no_ids() -> None:
    with pytest.raises(InputError, match="row 0 is"):
        list(columns(small(pa.nulls(3))))


def test_text_beyond_32_bit_offsets_gets_longer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "SMALL_TEXT", 4)
    for values, expected in ((["aa", "bb"], pa.large_string()), ([b"aa", b"bb"], pa.large_binary())):
        part = pa.array(values)
        joined = arrow.joined([part, part])
        assert joined.type == expected
        assert joined.to_pylist() == values * 2


# --- numbers --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (pa.array([-128, 0, 127], pa.int8()), np.int8),
        (pa.array([0, 1, 65535], pa.uint16()), np.uint16),
        (pa.array([2**53, 2**53 + 1, -(2**63)], pa.int64()), np.int64),
        (pa.array([2**53, 2**53 + 1, 2**64 - 1], pa.uint64()), np.uint64),
        (pa.array(np.array([0.5, -0.0, 65504], np.float16)), np.float16),
        (pa.array([0.5, float("inf"), -1.0], pa.float32()), np.float32),
        (pa.array([0.1, 1e-308, -1e308]), np.float64),
        (pa.array([True, False, True]), np.bool_),
        (pa.array([3, 3, 7], pa.int32()).dictionary_encode(), np.int32),
        (pc.run_end_encode(pa.array([3, 3, 7], pa.int32())), np.int32),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_numbers_keep_their_type_and_their_bits_also_beside_nulls(values: pa.Array, dtype: type) -> None:
    plain = arrow.decoded(values)
    with_null = pa.concat_arrays([plain, pa.nulls(1, plain.type)])
    for array in (values, plain, with_null, with_null.slice(1)):
        batch = only(small(["a"] * len(array), y=array, s=array))
        for found in (batch.labels, batch.scores["s"]):
            assert found.dtype == dtype
            assert found.tolist() == array.to_pylist()
            assert isinstance(found, np.ma.MaskedArray) == (array.null_count > 0)


def test_nothing_but_nulls_is_unjudged_and_not_retrieved() -> None:
    for nulls in (pa.nulls(2), pa.nulls(2, pa.float32()), pa.nulls(2, pa.decimal128(5, 1))):
        batch = only(small(["a", "a"], y=nulls, s=nulls))
        assert batch.labels.mask.tolist() == batch.scores["s"].mask.tolist() == [True, True]


def test_no_decimals_are_no_numbers() -> None:
    for of in (pa.decimal128(5, 1), pa.decimal256(50, 1)):
        assert only(small(pa.array([], pa.string()), y=pa.array([], of))).labels.shape == (0,)


def test_several_scores_come_in_the_order_asked_for() -> None:
    batch = only(small(["a"], t=[7], u=[8.5]), scores=("u", "s", "t", "y"))
    assert [(name, score.tolist()) for name, score in batch.scores.items()] == [("u", [8.5]), ("s", [0.0]), ("t", [7]), ("y", [0])]


@pytest.mark.parametrize("of", [pa.decimal128(5, 1), pa.decimal128(38, 1), pa.decimal256(50, 1)], ids=str)
def test_decimals_are_the_nearest_doubles(of: pa.DataType) -> None:
    tenths = range(-999, 1000)
    column = pa.array([Decimal(tenth) / 10 for tenth in tenths], of)
    batch = only(small(["a"] * len(column), y=column, s=column).slice(1))
    expected = [tenth / 10 for tenth in tenths][1:]
    assert batch.labels.tolist() == expected
    assert batch.scores["s"].tolist() == expected
    assert batch.labels.dtype == np.float64


def test_narrow_decimals_are_numbers_too() -> None:
    if not hasattr(pa, "decimal64"):
        pytest.skip("this pyarrow has no decimal64")
    column = pa.array([Decimal("0.3"), None, Decimal("-7.1")], pa.decimal64(10, 1))
    assert only(small(["a", "a", "b"], y=column)).labels.tolist() == [0.3, None, -7.1]


@pytest.mark.parametrize("of", [pa.decimal128(38, 19), pa.decimal256(76, 40)], ids=str)
def test_decimals_that_doubles_would_make_equal_keep_their_order(of: pa.DataType) -> None:
    one, step = Decimal(1), Decimal(1).scaleb(-of.scale)
    values = [one + 2 * step, one, one + step, Decimal(0), None, one, Decimal(10) ** (of.precision - of.scale - 1)]
    score = only(small(["a"] * 7, s=pa.array(values, of))).scores["s"]
    assert score.mask.tolist() == [value is None for value in values]
    for i, left in enumerate(values):
        for j, right in enumerate(values):
            if left is not None and right is not None:
                assert (score[i] < score[j], score[i] == score[j]) == (left < right, left == right)


def test_long_decimals_as_labels_are_the_nearest_doubles() -> None:
    values = [Decimal("1.1000000000000000001"), Decimal("0.1"), Decimal("12345678901234567.9")]
    labels = only(small(["a"] * 3, y=pa.array(values, pa.decimal128(38, 19)))).labels
    assert labels.tolist() == [float(value) for value in values]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (pa.array(["0.5"]), "string"),
        (pa.array(["0.5"]).dictionary_encode(), "dictionary<.*string.*>"),
        (pa.array([DAY]), "date32.*"),
        (pa.array([[0.5]]), "list<.*"),
    ],
)
@pytest.mark.parametrize("role", ["label", "score", "weight"])
def test_what_is_no_number_is_an_error_at_the_call(role: str, values: pa.Array, named: str, tmp_path: Path) -> None:
    table = small(["a"], bm25=values)
    pq.write_table(table, tmp_path / "t.parquet")
    asked = {"label": {"label": "bm25"}, "score": {"scores": ("s", "bm25")}, "weight": {"weight": "bm25"}}[role]
    for source in (table, tmp_path / "t.parquet"):
        with pytest.raises(InputError, match=rf'{role} column "bm25" is {named}, not a number: cast it to float64'):
            columns(source, **asked)


# --- weights and slices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [[2, 2, 3], pa.array([2, 2, 3], pa.float32()), pa.array([Decimal(2), Decimal(2), Decimal(3)])])
def test_weights_are_one_double_per_query(weights: Any) -> None:
    found = only(small(["a", "a", "b"], w=weights), weight="w").weights
    assert found.tolist() == [2.0, 3.0]
    assert found.dtype == np.float64


def test_a_weight_that_changes_within_a_query_is_an_error_that_names_it(tmp_path: Path) -> None:
    table = small(["a", "a", "b", "b"], w=[1.0, 1.0, 2.0, 3.0])
    pq.write_table(table, tmp_path / "t.parquet")
    message = r'weight column "w" must be constant within a query: in query \'b\' row 2 has 2\.0 and row 3 has 3\.0'
    for source in (table, tmp_path / "t.parquet"):
        with pytest.raises(InputError, match=message):
            list(columns(source, weight="w", rows_per_batch=2))
    with pytest.raises(InputError, match=r"in query 'b' row 0 has 1\.0 and row 2 has 3\.0"):
        list(columns(small(["b", "a", "b"], w=[1.0, 2.0, 3.0]), weight="w"))


def test_a_null_weight_is_an_error_that_names_the_query() -> None:
    for weights in (pa.array([1.0, None, None]), pa.array([1, None, None]).dictionary_encode()):
        with pytest.raises(InputError, match=r"weight column \"w\" must not be null: query 'b' has none \(row 1\)"):
            list(columns(small(["a", "b", "b"], w=weights), weight="w"))
    with pytest.raises(InputError, match=r"in query 'b' row 1 has None and row 2 has 2\.0"):
        list(columns(small(["a", "b", "b"], w=[1.0, None, 2.0]), weight="w"))


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["head", "head", None, "tail"]),
        pa.array(["head", "head", None, "tail"]).dictionary_encode(),
        pa.array([1, 1, None, 2], pa.int8()),
        pa.array([True, True, None, False]),
        pa.array([DAY, DAY, None, DAY]),
        pa.array([0.5, 0.5, None, 0.25]),
        pa.array(np.array([0.5, 0.5, 0.25, 1], np.float16)),
        pa.nulls(4),
    ],
    ids=lambda values: str(values.type),
)
def test_a_slice_has_one_value_of_its_own_type_per_query(values: pa.Array) -> None:
    found = only(small(["a", "a", "b", "c"], seg=values), by=["seg"]).by["seg"]
    assert found.type == arrow.value_type(values.type)
    assert found.to_pylist() == values.take(pa.array([0, 2, 3])).to_pylist()


def test_nan_is_a_slice_like_any_other() -> None:
    found = only(small(["a", "a", "b"], seg=pa.array([float("nan"), float("nan"), 1.0])), by=["seg"]).by["seg"]
    assert np.isnan(found[0].as_py())
    assert found[1].as_py() == 1.0


@pytest.mark.parametrize(("one", "other"), [("head", "tail"), ("head", None), (None, "tail")])
def test_a_slice_that_changes_within_a_query_is_an_error_that_names_it(one: str | None, other: str | None) -> None:
    for encode in (False, True):
        values = pa.array([None, one, other])
        table = small(["a", "b", "b"], seg=values.dictionary_encode() if encode else values)
        with pytest.raises(
            InputError, match=rf'by column "seg" must be constant .* in query \'b\' row 1 has {one!r} and row 2 has {other!r}'
        ):
            list(columns(table, by=["seg"]))


def test_a_slice_may_change_between_queries_only_or_not_at_all() -> None:
    batch = only(small([1, 1, 2, 3, 3], one=["x"] * 5, two=[1, 1, 1, 2, 2]), by=["one", "two"])
    assert batch.by["one"].to_pylist() == ["x", "x", "x"]
    assert batch.by["two"].to_pylist() == [1, 1, 2]


def test_differs_treats_null_as_a_value() -> None:
    left, right = pa.array([1, None, None, 2]), pa.array([1, None, 3, None])
    assert differs(left, right).tolist() == [False, False, True, True]


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

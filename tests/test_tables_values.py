"""What the columns of a table hold: ids, numbers, weights and slices of every type."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from table_rows import by_query, columns, definition, only, read_whatever_comes, small

from fastrank.errors import InputError
from fastrank.io import arrow
from fastrank.io.grouping import SHORT_CHUNK, differs, find_runs

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

"""Reading what a caller calls an array: any library's column as one contiguous NumPy array and a mask of its missing values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import available_threads, kernel, map_blocks, narrow_bytes, pointer
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# Widths that kernels are compiled for; every other numeric type is widened without loss.
LABEL_TYPES = ("uint8", "int32", "int64", "float32", "float64")
# Bytes whose reading takes longer than waking a thread, and so few values that a call costs more than they.
PART, SMALL = 1 << 22, 1 << 12
# Bytes that stay in the first-level cache; a multiple of 64.
CHUNK = 1 << 14
# Compared with an array's own, a type is cheaper than its name.
UINT8, INT32, INT64, FLOAT32, FLOAT64 = map(np.dtype, LABEL_TYPES)


# NumPy's flags of an array that is contiguous and aligned, and of one that may be written to.
_STRAIGHT, _WRITEABLE = 0x0101, 0x0400


def as_array(name: str, value: Any, *, ordinal: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
    """A numeric array and its missing values (None: none are). NaN is not missing: only null, None, NA and masked values are.

    ordinal: only the order of the values matters. Numbers of no machine type (decimals, huge integers) then come as their ranks and
    not rounded to doubles, which could make some of them equal.
    """
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value, None
    if isinstance(value, np.ma.MaskedArray) and value.dtype.kind == "O":
        value = np.where(np.ma.getmaskarray(value), np.array(None, object), value.data)  # filled(None) would fill in "?"
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value)
        return _numeric(name, np.asarray(value.data)), mask if mask.any() else None
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return _numeric(name, value), None
    if hasattr(value, "isna") and hasattr(value, "to_numpy"):
        return _from_pandas(name, value, ordinal)
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        return _from_arrow(name, value, ordinal)
    if hasattr(value, "detach"):  # a tensor that may carry a gradient or lie on another device
        value = value.detach().cpu()
        try:
            value = value.numpy()
        except TypeError:  # a type that NumPy does not have, such as bfloat16: each of its numbers is a float32
            value = value.float().numpy()
        return _numeric(name, value), None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a regular array ({error}). Give lists of unequal length flat, with offsets= or sizes=.") from None
    if array.dtype.kind == "O":
        return _from_objects(name, array, ordinal)
    if array.size == 0:
        array = array.astype(np.float64)
    return _numeric(name, array), None


def _numeric(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.name == "bfloat16":  # of ml_dtypes, as JAX has it
        return array.astype(np.float32)
    hint = "Convert text to numbers first." if array.dtype.kind in "USOT" else "Convert it to integers or floats."
    raise InputError(f"{name} must be numbers, not {array.dtype}. {hint}")


def _from_pandas(name: str, value: Any, ordinal: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """A NumPy-backed column, or a frame, as its array; for other columns NA is a missing value."""
    if isinstance(getattr(value, "dtype", None), np.dtype) or not hasattr(value, "dtype"):
        array = value.to_numpy()
        return _from_objects(name, array, ordinal) if array.dtype.kind == "O" else (_numeric(name, array), None)
    mask = np.asarray(value.isna(), bool)
    if not mask.any():
        array = np.asarray(value.to_numpy())
        return _from_objects(name, array, ordinal) if array.dtype.kind == "O" else (_numeric(name, array), None)
    if hasattr(value, "cat"):  # 0 need not be one of the categories
        array = np.array(value, dtype=object)
        array[mask] = None
        return _from_objects(name, array, ordinal)
    return _numeric(name, np.asarray(value.fillna(False if value.dtype.kind == "b" else 0).to_numpy())), mask


def _from_arrow(name: str, value: Any, ordinal: bool) -> tuple[np.ndarray, np.ndarray | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = value if isinstance(value, pa.Array | pa.ChunkedArray) else pa.chunked_array(value)
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    mask = np.asarray(column.is_null().to_numpy(zero_copy_only=False)) if column.null_count else None
    if pa.types.is_decimal(column.type):
        return _from_decimals(column, ordinal), mask
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
    if not is_number:
        raise InputError(f"{name} must be numbers, not {column.type}. Convert text to numbers first.")
    if mask is not None and not pa.types.is_floating(column.type):
        column = pc.fill_null(column, False if pa.types.is_boolean(column.type) else 0)
    return np.asarray(column.to_numpy(zero_copy_only=False)), mask


def _from_decimals(column: pa.Array, ordinal: bool) -> np.ndarray:
    """Decimals as the nearest doubles (Arrow's own cast is not exact), or as their ranks. Missing ones get any value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wide = column.cast(pa.decimal256(76, column.type.scale)) if column.type.bit_width < 128 else column
    encoded = wide.dictionary_encode()
    if ordinal:
        values = np.empty(len(encoded.dictionary), np.int64)
        values[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(values))
    else:
        values = np.array([float(number) for number in encoded.dictionary.to_pylist()], np.float64)
    places = pc.fill_null(encoded.indices, 0).to_numpy()
    return values[places] if len(values) else np.zeros(len(column))


def _from_objects(name: str, array: np.ndarray, ordinal: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Python numbers in an object array, None or pandas' NA for a missing one."""
    items = array.ravel().tolist()
    mask = np.array([item is None or type(item).__name__ == "NAType" for item in items], bool)
    for item in items:
        if isinstance(item, str | bytes):
            raise InputError(f"{name} must be numbers, not {item!r}. Convert text to numbers first.")
    try:
        values = np.array([0 if missing else item for item, missing in zip(items, mask, strict=True)])
        if values.dtype.kind == "O":
            doubles = values.astype(np.float64)
            values = np.unique(values, return_inverse=True)[1] if ordinal and not np.isnan(doubles).any() else doubles
    except OverflowError:
        raise InputError(f"{name} must be numbers below 1.8e308, and one is not.") from None
    except (TypeError, ValueError):
        of_length = (item for item in items if hasattr(item, "__len__"))
        bad = next(of_length, next((item for item in items if item is not None and not hasattr(item, "__float__")), items[0]))
        flat, plain = "Give lists of unequal length flat, with offsets= or sizes=.", "Convert it to integers or floats."
        cure = flat if hasattr(bad, "__len__") else plain
        raise InputError(f"{name} must be numbers, not {bad!r}. {cure}") from None
    return _numeric(name, values.reshape(array.shape)), mask.reshape(array.shape) if mask.any() else None


def label_array(array: np.ndarray) -> np.ndarray:
    """Labels in one of the widths that kernels know, contiguous and in the machine's byte order."""
    if array.dtype is UINT8:
        return frozen(array, UINT8)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        target = UINT8
    elif kind == "f":
        target = FLOAT32 if size <= 4 else FLOAT64
    elif kind == "u":
        target = UINT8 if size == 1 else INT32 if size == 2 else INT64 if size == 4 else FLOAT64
    else:
        target = INT32 if size <= 4 else INT64
    return frozen(array, target)


@kernel
def narrow(labels: Any, codes: Any, found: Any) -> None:
    """codes = labels as bytes; found = the lowest, the highest, and whether any label is no whole number from 0 to 255."""
    given, written = pointer(labels), pointer(codes)
    wrong, lowest, highest = np.uint64(0), np.uint8(255), np.uint8(0)
    for first in range(0, labels.shape[0], CHUNK):
        last = min(first + CHUNK, labels.shape[0])
        n_at_once = last & -64
        for i in range(first, n_at_once, 64):
            wrong |= narrow_bytes(given, i, written, i)
        for i in range(n_at_once, last):
            codes[i] = np.uint8(np.int32(labels[i]))
            wrong |= np.uint64(codes[i] != labels[i])
        low, high = _byte_range(codes[first:last])
        lowest, highest = min(lowest, low), max(highest, high)
    found[0], found[1] = lowest, highest
    found[2] = wrong != 0


@kernel
def byte_range(labels: Any, found: Any) -> None:
    """found = the lowest and the highest of at least one byte, in one pass."""
    found[0], found[1] = _byte_range(labels)


@kernel
def _byte_range(codes: Any) -> Any:
    low = high = codes[0]
    for i in range(codes.shape[0]):
        low, high = min(low, codes[i]), max(high, codes[i])
    return low, high


@kernel
def size_range(offsets: Any, found: Any) -> None:
    """found = the least and the greatest step from one offset to the next; zero without steps."""
    least = most = np.int64(0) if offsets.shape[0] < 2 else offsets[1] - offsets[0]
    for i in range(offsets.shape[0] - 1):
        size = offsets[i + 1] - offsets[i]
        least, most = min(least, size), max(most, size)
    found[0], found[1] = least, most


def sizes_between(offsets: np.ndarray) -> tuple[int, int]:
    """The least and the greatest size that offsets leave between them, read once. They must be frozen."""
    found = np.empty(2, INT64)
    size_range(offsets, found)
    least, most = found.tolist()
    return least, most


def label_codes(label: np.ndarray, threads: int | None = 1) -> tuple[np.ndarray, float, float] | None:
    """Frozen labels as bytes, with the lowest and the highest, read once; None where any is no whole number from 0 to 255.

    There must be a label.
    """
    codes = label if label.dtype == UINT8 else np.empty(len(label), UINT8)
    if label.nbytes <= PART:
        found = np.zeros(3, INT64)
        _read_codes(label, codes, found)
        low, high, wrong = found.tolist()
    else:
        parts: list[np.ndarray] = []

        def read(first: int, last: int) -> None:
            of_part = np.zeros(3, INT64)
            _read_codes(label[first:last], codes[first:last], of_part)
            parts.append(of_part)

        in_parts(read, label, threads)
        (low, _, _), (_, high, wrong) = np.min(parts, axis=0), np.max(parts, axis=0)
    return None if wrong else (codes if codes is label else frozen(codes, UINT8), float(low), float(high))


def _read_codes(label: np.ndarray, codes: np.ndarray, found: np.ndarray) -> None:
    if label.dtype == UINT8:
        byte_range(label, found)
    else:
        narrow(label, codes, found)


def has_nan(values: np.ndarray, threads: int | None = 1) -> bool:
    """Whether any float is NaN. There must be one."""
    if len(values) <= SMALL:
        return math.isnan(values.item(values.argmax()))  # where NaN counts as the largest: one call, but slow a value
    found = []

    def read(first: int, last: int) -> None:
        if math.isnan(np.minimum.reduce(values[first:last])):
            found.append(first)

    in_parts(read, values, threads)
    return bool(found)


def in_parts(read: Callable[[int, int], None], values: np.ndarray, threads: int | None) -> None:
    """Call read(first, last) for parts of the values; threads, if there is more than one, take one after the other."""
    n, size = len(values), 1 if values.nbytes <= PART else threads or available_threads()
    part = n if size == 1 else max(PART // values.itemsize, -(-n // (4 * size)))
    parts = np.arange(-(-n // part) + 1)
    map_blocks(lambda first, last: read(first * part, min(last * part, n)), parts, documents=1, threads=size)


def score_array(array: np.ndarray) -> np.ndarray:
    """Scores as float32, float64 or int64 in exactly the order that they were given in."""
    if array.dtype is FLOAT32 or array.dtype is FLOAT64:
        return frozen(array, array.dtype)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size > 8:
        # Wider than a double: only the order matters, so let the places of the distinct values stand for them.
        if np.isnan(array).any():
            return frozen(array, FLOAT64)
        return frozen(np.unique(array, return_inverse=True)[1].reshape(array.shape), INT64)
    if kind == "f":
        return frozen(array, FLOAT32 if size <= 4 else FLOAT64)
    if kind == "u" and size == 8 and array.size and array.max() >= 1 << 63:
        return frozen((array.astype(np.uint64) ^ np.uint64(1 << 63)).view(np.int64), INT64)
    return frozen(array, FLOAT32 if size <= 2 else INT64)


def frozen(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A contiguous, aligned, read-only view or copy of one dtype: one array kind, so one compiled signature."""
    flags = array.flags.num
    if (array.dtype is not dtype and array.dtype != dtype) or flags & _STRAIGHT != _STRAIGHT:
        array = np.require(array, dtype, ["C", "A"])
    elif not flags & _WRITEABLE and type(array) is np.ndarray:
        return array
    view = array.view() if type(array) is np.ndarray else array.view(np.ndarray)
    view.setflags(False)  # type: ignore[call-arg]  # `write`; by its name it takes twice the time
    return view

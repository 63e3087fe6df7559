"""Reading what a caller calls an array: any library's column as one contiguous NumPy array and a mask of its missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastrank.errors import InputError

# Widths that kernels are compiled for; every other numeric type is widened without loss.
LABEL_TYPES = ("uint8", "int32", "int64", "float32", "float64")


def as_array(name: str, value: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A numeric array and its missing values (None: none are). NaN is not missing: only null, None and masked values are."""
    if isinstance(value, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(value)
        return _numeric(name, np.asarray(value.data)), mask if mask.any() else None
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return _numeric(name, value), None
    if hasattr(value, "isna") and hasattr(value, "to_numpy"):
        return _from_pandas(name, value)
    if hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__"):
        return _from_arrow(name, value)
    if hasattr(value, "detach"):  # a tensor that may carry a gradient or lie on another device
        value = value.detach().cpu().numpy()
        return _numeric(name, value), None
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name} is not a regular array ({error}). Give lists of unequal length flat, with offsets= or sizes=.") from None
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    if array.size == 0:
        array = array.astype(np.float64)
    return _numeric(name, array), None


def _numeric(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "biuf":
        return array
    hint = "Convert text to numbers first." if array.dtype.kind in "USOT" else "Convert it to integers or floats."
    raise InputError(f"{name} must be numbers, not {array.dtype}. {hint}")


def _from_pandas(name: str, value: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """A NumPy-backed column as its array; for the others NA is a missing value."""
    if isinstance(value.dtype, np.dtype):
        array = value.to_numpy()
        return _from_objects(name, array) if array.dtype.kind == "O" else (_numeric(name, array), None)
    mask = np.asarray(value.isna(), bool)
    array = np.asarray((value.fillna(0) if mask.any() else value).to_numpy())
    return _numeric(name, array), mask if mask.any() else None


def _from_arrow(name: str, value: Any) -> tuple[np.ndarray, np.ndarray | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = value if isinstance(value, pa.Array | pa.ChunkedArray) else pa.chunked_array(value)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_null(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64(), safe=False)
    is_number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)
    if not is_number:
        raise InputError(f"{name} must be numbers, not {column.type}. Convert text to numbers first.")
    mask = None
    if column.null_count:
        mask = np.asarray(column.is_null().to_numpy(zero_copy_only=False)) if isinstance(column, pa.Array) else column.is_null().to_numpy()
        column = pc.fill_null(column, False if pa.types.is_boolean(column.type) else 0)
    array = column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    return np.asarray(array), mask


def _from_objects(name: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Python numbers in an object array, None for a missing one."""
    mask = np.array([item is None for item in array.ravel()], bool).reshape(array.shape)
    try:
        if any(isinstance(item, str | bytes) for item in array.ravel()):
            raise TypeError("text")
        values = np.array([0 if item is None else item for item in array.ravel()])
        if values.dtype.kind == "O":
            values = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        bad = next((item for item in array.ravel() if isinstance(item, str | bytes | list | tuple | np.ndarray)), array.ravel()[0])
        flat, text = "Give lists of unequal length flat, with offsets= or sizes=.", "Convert text to numbers first."
        cure = text if isinstance(bad, str | bytes) else flat
        raise InputError(f"{name} must be numbers, not {bad!r}. {cure}") from None
    return _numeric(name, values.reshape(array.shape)), mask if mask.any() else None


def label_array(array: np.ndarray) -> np.ndarray:
    """Labels in one of the widths that kernels know, contiguous and in the machine's byte order."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        target = "uint8"
    elif kind == "f":
        target = "float32" if size <= 4 else "float64"
    elif kind == "u":
        target = "uint8" if size == 1 else "int32" if size == 2 else "int64" if size == 4 else "float64"
    else:
        target = "int32" if size <= 4 else "int64"
    return frozen(array, target)


def score_array(array: np.ndarray) -> np.ndarray:
    """Scores as float32, float64 or int64 in exactly the order that they were given in."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size > 8:
        # Wider than a double: only the order matters, so let the places of the distinct values stand for them.
        if np.isnan(array).any():
            return frozen(array, "float64")
        return frozen(np.unique(array, return_inverse=True)[1].reshape(array.shape), "int64")
    if kind == "f":
        return frozen(array, "float32" if size <= 4 else "float64")
    if kind == "u" and size == 8:
        return frozen((array.astype(np.uint64) ^ np.uint64(1 << 63)).view(np.int64), "int64")
    return frozen(array, "float32" if size <= 2 else "int64")


def frozen(array: np.ndarray, dtype: Any) -> np.ndarray:
    """A contiguous, aligned, read-only view or copy of one dtype: one array kind, so one compiled signature."""
    # carray: contiguous, aligned and writeable; NumPy's own `require` costs more than a small batch.
    view = array.view() if array.dtype == dtype and array.flags.carray else np.require(array, dtype, ["C", "A"]).view()
    view.flags.writeable = False
    return view

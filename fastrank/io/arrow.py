"""Arrow arrays of any encoding as plain Arrow arrays and NumPy numbers, without losing a bit."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastrank.errors import InputError

# Bytes of text that the 32-bit offsets of string and binary arrays can address.
SMALL_TEXT = 2**31 - 1
# Decimals of up to 15 digits keep their order, and are equal only when they were, once rounded to doubles.
EXACT_DECIMAL = 10**15
# The largest power of ten that is a double.
EXACT_SCALE = 22

# From here on not every integer is a double.
MOST_EXACT = 2**53
# Words that stand for a number in text, and such as say that there is none.
TRUTH = {"true": 1.0, "false": 0.0}
NO_NUMBER = ("", "na", "n/a", "null", "none")

FROM_ARROW = (pa.ArrowInvalid, pa.ArrowIndexError, pa.ArrowNotImplementedError, pa.ArrowTypeError)
UNREADABLE = (*FROM_ARROW, OSError, EOFError, zlib.error, UnicodeDecodeError)


@contextlib.contextmanager
def reading(where: str) -> Iterator[None]:
    """Turn what a reader says about a file or a stream into one line that begins with ``where``."""
    try:
        yield
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno:
            reason = os.strerror(error.errno)
        else:
            # Arrow says of a pandas column in two arguments what is wrong and where.
            parts = error.args if all(isinstance(part, str) for part in error.args) else (str(error),)
            reason = " ".join(": ".join(parts).split())
            reason += ". Save it as UTF-8." if "invalid UTF8" in reason else ""
        raise InputError(f"{where}: {reason}") from error


# --- types ----------------------------------------------------------------------------------------------------------------------


def value_type(of: pa.DataType) -> pa.DataType:
    """The type of the values themselves, below dictionary, run-end and extension types."""
    if isinstance(of, pa.BaseExtensionType):
        return value_type(of.storage_type)
    if pa.types.is_dictionary(of) or pa.types.is_run_end_encoded(of):
        return value_type(of.value_type)
    return of


def is_number(of: pa.DataType) -> bool:
    """Whether values of this type can be labels, scores or weights. A column of nothing but nulls can."""
    types = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_floating, pa.types.is_null)
    return any(is_type(value_type(of)) for is_type in types)


def is_text(of: pa.DataType) -> bool:
    """Whether values of this type are strings or bytes of any length."""
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    binaries = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
    return any(is_type(of) for is_type in (*strings, *binaries))


def is_id(of: pa.DataType) -> bool:
    """Whether values of this type can name queries and documents: compared exactly and put in order."""
    of = value_type(of)
    if pa.types.is_floating(of) or pa.types.is_interval(of):
        return False
    return is_number(of) or is_text(of) or any(is_type(of) for is_type in (pa.types.is_fixed_size_binary, pa.types.is_temporal))


# --- encodings ------------------------------------------------------------------------------------------------------------------


def normal(array: pa.Array) -> pa.Array:
    """The same values in a type that every Arrow function takes. Dictionaries stay: their indices are fast to compare."""
    of = array.type
    if isinstance(of, pa.BaseExtensionType):
        return normal(array.storage)
    if pa.types.is_run_end_encoded(of):
        return normal(pc.run_end_decode(array))
    if pa.types.is_dictionary(of):
        dictionary = normal(array.dictionary)
        return array if dictionary.type == of.value_type else pa.DictionaryArray.from_arrays(array.indices, dictionary, safe=False)
    if pa.types.is_string_view(of):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(of):
        return array.cast(pa.large_binary())
    if pa.types.is_decimal(of) and of.bit_width < 128:
        return array.cast(pa.decimal128(of.precision, of.scale))
    return array


def decoded(array: pa.Array) -> pa.Array:
    """Values instead of a dictionary and indices."""
    array = normal(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Arrays of one type, one after the other; text too long for its offsets in the type with longer ones."""
    if len(arrays) == 1:
        return arrays[0]
    of = arrays[0].type
    if pa.types.is_dictionary(of) and any(array.dictionary.null_count for array in arrays):
        return joined([decoded(array) for array in arrays])  # Arrow does not unify such dictionaries
    if is_text(of) and sum(array.nbytes for array in arrays) > SMALL_TEXT:
        large = pa.large_string() if pa.types.is_string(of) or pa.types.is_large_string(of) else pa.large_binary()
        arrays = [array.cast(large) for array in arrays]
    return pa.concat_arrays(arrays)


def single(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array of decoded values."""
    return joined([decoded(chunk) for chunk in column.chunks] or [decoded(pa.nulls(0, column.type))])


def valid(array: pa.Array) -> pa.Array:
    """The array, unless its text is not UTF-8, as in a damaged file: then Arrow's exception."""
    array.validate(full=True)
    return array


def first_null(array: pa.Array) -> int | None:
    """Place of the first null."""
    return pc.index(array.is_null(), pa.scalar(True)).as_py() if array.null_count else None


# --- numbers --------------------------------------------------------------------------------------------------------------------


def numbers(column: pa.ChunkedArray, *, ordinal: bool = False) -> np.ndarray:
    """A numeric column as NumPy has it: integers and floats of every width as they are, decimals as float64; masked where null.

    ``ordinal``: only the order of the values matters. Decimals that doubles would make equal then come as their ranks.
    """
    array = single(column)
    if pa.types.is_null(array.type):
        return np.ma.MaskedArray(np.zeros(len(array)), mask=True)
    null = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if null is not None and not pa.types.is_floating(array.type):
        array = array.fill_null(False if pa.types.is_boolean(array.type) else 0)
    values: np.ndarray = _decimals(array, ordinal=ordinal) if pa.types.is_decimal(array.type) else array.to_numpy(zero_copy_only=False)
    return values if null is None else np.ma.MaskedArray(values, mask=null)


def _decimals(array: pa.Array, *, ordinal: bool) -> np.ndarray:
    """Correctly rounded doubles (Arrow's own cast is not: it multiplies by a rounded power of ten), or ranks."""
    scale = array.type.scale
    unscaled = _unscaled(array)
    if unscaled is not None and 0 <= scale <= EXACT_SCALE:
        exact: np.ndarray = np.divide(unscaled, float(10**scale), dtype=np.float64)
        return exact
    encoded = array.dictionary_encode()
    if ordinal:
        value = np.empty(len(encoded.dictionary), np.int64)
        value[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(value))
    else:
        value = np.array([float(number) for number in encoded.dictionary.to_pylist()], np.float64)
    each: np.ndarray = value[encoded.indices.to_numpy()]
    return each


def _unscaled(array: pa.Array) -> np.ndarray | None:
    """The integers that decimals are stored as, or None when one of them has more than 15 digits."""
    if array.type.bit_width > 128:
        try:
            array = array.cast(pa.decimal128(38, array.type.scale))
        except pa.ArrowInvalid:
            return None
    if not len(array):
        return np.zeros(0, np.int64)
    words = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = words[:, 0], words[:, 1]
    small = (high == low >> 63) & (low < EXACT_DECIMAL) & (low > -EXACT_DECIMAL)
    return low if small.all() else None


# --- numbers in text ------------------------------------------------------------------------------------------------------------


class NotANumber(ValueError):  # noqa: N818 - who knows the column makes an error of it
    """A text that is no number."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def numbers_of_text(text: pa.Array) -> pa.Array:
    """The nearest doubles; 64-bit integers where all are such and doubles would make some of them equal.

    Null where nothing, NA, N/A, null or none is written; true is 1 and false 0. Anything else is `NotANumber`.
    """
    try:
        values = text.cast(pa.float64())
    except pa.ArrowInvalid:
        values = _odd_numbers(text)
    largest = pc.max(pc.abs(values)).as_py()
    if largest is not None and largest >= MOST_EXACT:
        with contextlib.suppress(pa.ArrowInvalid):
            return text.cast(pa.int64())
    return values


def _odd_numbers(text: pa.Array) -> pa.Array:
    """Numbers as Python reads them, each distinct text once."""
    coded = text.dictionary_encode()
    values = pa.array([_odd_number(word) for word in coded.dictionary.to_pylist()], pa.float64())
    return values.take(coded.indices)


def _odd_number(text: str) -> float | None:
    word = text.strip().lower()
    if word in NO_NUMBER:
        return None
    if word in TRUTH:
        return TRUTH[word]
    try:
        if "_" in word:
            raise ValueError(word)
        return float(word)
    except ValueError:
        raise NotANumber(text) from None

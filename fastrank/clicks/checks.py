"""The boundary of click logs: every array that a caller gives is judged here, and nowhere after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank.arrays import as_array, frozen
from fastrank.batch import id_array
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# No list is so long; what stands beyond it is a timestamp or an id.
DEEPEST = 1_000_000


def place(offsets: np.ndarray, row: int) -> str:
    """Where a row stands, as messages say it."""
    session = int(np.searchsorted(offsets, row, side="right")) - 1
    return f"row {row} (session {session}, its document {row - int(offsets[session]) + 1})"


def flat(name: str, value: Any, n: int | None, of: str) -> np.ndarray:
    """A one-dimensional numeric array without missing values, of n entries."""
    array, missing = as_array(name, value)
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, not {array.ndim}.")
    if n is not None and len(array) != n:
        raise InputError(f"{name} must have one entry per {of}, {n}, not {len(array)}.")
    if missing is not None:
        raise InputError(f"{name} must not hold nulls: entry {int(np.flatnonzero(missing)[0])} is missing. Fill it or leave the {of} out.")
    return array


def whole(name: str, array: np.ndarray) -> np.ndarray:
    """Integers as int64; floats where all are whole."""
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array) | (array != np.trunc(array)) | (np.abs(array) > 2.0**53)
    else:
        wrong = array > np.iinfo(np.int64).max if array.dtype == np.uint64 else np.zeros(0, bool)
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise InputError(f"{name} must be whole numbers: {name}[{i}] is {array[i]}.")
    return array.astype(np.int64, copy=False)


def session_offsets(value: Any, n_rows: int) -> np.ndarray:
    """Where each session begins: int64[n_sessions + 1], from 0 to the number of rows."""
    offsets = whole("offsets", flat("offsets", value, None, "session"))
    if not len(offsets):
        raise InputError("offsets must have one entry more than there are sessions, the first 0; for no session at all give [0].")
    down = np.flatnonzero(offsets[1:] < offsets[:-1])
    if len(down):
        i = int(down[0]) + 1
        raise InputError(f"offsets must not decrease: offsets[{i}] = {offsets[i]} < offsets[{i - 1}] = {offsets[i - 1]}.")
    if offsets[0] != 0:
        raise InputError(f"offsets must begin with 0: offsets[0] = {offsets[0]}. Of the lengths of sessions give numpy.cumsum, after a 0.")
    if offsets[-1] != n_rows:
        raise InputError(f"offsets must end with the number of documents shown, {n_rows}: offsets[{len(offsets) - 1}] = {offsets[-1]}.")
    return frozen(offsets, np.int64)


def click_flags(value: Any, offsets: np.ndarray, n_rows: int) -> np.ndarray:
    """Clicks as bytes, 0 or 1."""
    array = flat("click", value, n_rows, "document shown")
    if array.dtype.kind != "b":
        wrong = ~((array == 0) | (array == 1))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"click must be 0 or 1: {place(offsets, row)} has {array[row]}. A document clicked several times counts once: write 1."
            )
    return frozen(array.astype(np.uint8, copy=False), np.uint8)


def positions(value: Any, offsets: np.ndarray, n_rows: int) -> np.ndarray:
    """Ranks from 1 that ascend within each session, int32."""
    array = whole("position", flat("position", value, n_rows, "document shown"))
    wrong = (array < 1) | (array > DEEPEST)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        cure = "Positions are counted from 1: add 1 to all of them." if array[row] == 0 else "Give the rank in the list."
        raise InputError(f"position must be a rank from 1 to {DEEPEST}: {place(offsets, row)} has {array[row]}. {cure}")
    ascends = np.append(True, array[1:] > array[:-1])[:n_rows]
    ascends[offsets[:-1][np.diff(offsets) > 0]] = True
    if not ascends.all():
        row = int(np.flatnonzero(~ascends)[0])
        raise InputError(
            f"position must ascend within a session: {place(offsets, row)} has {array[row]} after {array[row - 1]}. "
            "Sort the rows by session and position, and show one document per position."
        )
    return frozen(array, np.int32)


def coded(name: str, value: Any, n: int, of: str) -> tuple[np.ndarray, pa.Array]:
    """Ids as numbers, int32[n], and the distinct values that these count, in order of appearance."""
    import pyarrow as pa

    array = value.combine_chunks() if isinstance(value, pa.ChunkedArray) else value
    if isinstance(array, pa.DictionaryArray) and not array.null_count and not array.dictionary.null_count:
        again = array.dictionary.dictionary_encode()
        codes = array.indices.to_numpy(zero_copy_only=False)
        if len(again.dictionary) < len(again):  # an Arrow dictionary may hold a value twice
            codes = again.indices.to_numpy()[codes]
        values = id_array(name, again.dictionary)
    else:
        encoded = id_array(name, array).dictionary_encode()
        codes, values = encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary
    if len(codes) != n:
        raise InputError(f"{name} must have one entry per {of}, {n}, not {len(codes)}.")
    return frozen(codes, np.int32), values


def session_weights(value: Any, n_sessions: int) -> np.ndarray:
    """How many times each session counts."""
    array = flat("weight", value, n_sessions, "session").astype(np.float64)
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        i = int(np.flatnonzero(wrong)[0])
        raise InputError(f"weight must be finite and not negative: weight[{i}] is {array[i]}.")
    return frozen(array, np.float64)


def check_log(log: Any) -> None:
    """What is a log, for those who hand over the table it is read from."""
    from fastrank.clicks.log import ClickLog

    if not isinstance(log, ClickLog):
        cure = "Make one with ClickLog(...), ClickLog.from_table or ClickLog.from_arrow."
        raise InputError(f"log must be a ClickLog, not {type(log).__name__}. {cure}")


def check_level(level: Any) -> float:
    """The confidence of an interval."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, such as 0.95, not {level!r}.")
    return min(max(float(level), 1e-12), 1 - 1e-12)  # beyond, all rounds away in (1 + level) / 2


def normal_quantile(level: float) -> float:
    """How many standard errors a two-sided interval of the normal distribution reaches to each side."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))

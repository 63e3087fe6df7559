"""Two dicts of dicts, read where they stand: their numbers, and the scores of the documents that were judged.

To list a dict's values, to pack them and to look up a key each cost Python about ten nanoseconds, most of it on the way. A kernel
that asks the dict itself does all three in a third of the time.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fastrank._kernel import kernel, pointer, query_blocks
from fastrank._objects import clear_error, double_of, error_occurred, integer_of, item_of, next_item, object_kernel, text_length

# Documents read in one go, in a few milliseconds: Ctrl-C and other threads wait for as long.
AT_ONCE = 262_144

# To look at every name of a run costs as much as spelling one in so many anew.
NAMES = 32

# Places in what a kernel tells of the numbers: failures, labels that are no integers, NaNs, numbers that no float32 holds.
FAILED, NOT_WHOLE, NOT_NUMBERS, NOT_SINGLE = 0, 1, 2, 3


class Numbers(NamedTuple):
    """Numbers of dicts, one query's after another.

    labels and found are of the judged documents: their labels, and their scores, NaN where the run does not have them; scores are of
    all documents of the run. all_text: whether a query's documents are known to have names of text on both sides; only where many are
    absent is that looked at. has_nan and largest (the largest finite size) and is_single (float32 holds each) tell of `scores`.
    """

    labels: np.ndarray
    found: np.ndarray
    scores: np.ndarray
    all_text: np.ndarray
    has_nan: bool
    largest: float
    is_single: bool


def read_numbers(judged: list[dict[Any, Any]], ranked: list[dict[Any, Any]], listed: np.ndarray, offsets: np.ndarray) -> Numbers | None:
    """Read the labels and scores of some queries; None where one is no number that a double holds.

    Query q's judgements go to listed[q] and on, its scores to offsets[q] and on. The dicts must iterate as plain ones do.
    """
    addresses = [np.fromiter(map(id, dicts), np.intp, len(dicts)) for dicts in (judged, ranked)]
    columns = np.empty(int(listed[-1])), np.empty(int(listed[-1])), np.empty(int(offsets[-1])), np.zeros(len(judged), bool)
    room, told, largest = np.zeros(3, np.intp), np.zeros(4, np.int64), np.zeros(1)
    for first, last in query_blocks(offsets, AT_ONCE):
        read_dicts(*addresses, listed, offsets, first, last, room, *columns, told, largest)
        if told[FAILED]:
            return None
    return Numbers(*columns, bool(told[NOT_NUMBERS]), float(largest[0]), not told[NOT_SINGLE])


@object_kernel
def read_dicts(
    judged: Any, ranked: Any, listed: Any, offsets: Any, first: int, last: int,
    room: Any, labels: Any, found: Any, scores: Any, all_text: Any, told: Any, largest: Any,
) -> None:  # fmt: skip
    """Read queries first ... last - 1, given the addresses of their dicts.

    A query's ranking is gone through first: its entries are in the processor's cache when single ones are looked up.
    """
    for q in range(first, last):
        _read_ranking(ranked[q], offsets[q], offsets[q + 1], room, scores, told, largest)
        _read_judgements(judged[q], ranked[q], listed[q], listed[q + 1], room, labels, found, told)
        if told[FAILED]:
            return
        absent = 0
        for i in range(listed[q], listed[q + 1]):
            absent += np.isnan(found[i])
        if NAMES * absent > offsets[q + 1] - offsets[q]:
            all_text[q] = _are_text(judged[q], room) and _are_text(ranked[q], room)


@kernel
def _read_ranking(ranked: int, start: int, stop: int, room: Any, scores: Any, told: Any, largest: Any) -> None:
    position, key, value, failed = pointer(room[0:1]), pointer(room[1:2]), pointer(room[2:3]), pointer(told)
    room[0] = 0
    i, most, n_nan, n_fine = start, largest[0], 0, 0
    while next_item(ranked, position, key, value) and i < stop:
        score = _double(room[2], failed)
        scores[i] = score
        i += 1
        most = abs(score) if most < abs(score) < math.inf else most
        n_nan += score != score
        n_fine += np.float64(np.float32(score)) != score
    largest[0] = most
    told[NOT_NUMBERS] += n_nan
    told[NOT_SINGLE] += n_fine
    if i < stop:  # a number's own conversion has changed the dict
        told[FAILED] = 1


@kernel
def _read_judgements(judged: int, ranked: int, start: int, stop: int, room: Any, labels: Any, found: Any, told: Any) -> None:
    position, key, value = pointer(room[0:1]), pointer(room[1:2]), pointer(room[2:3])
    failed, not_whole = pointer(told), pointer(told[NOT_WHOLE:])
    room[0] = 0
    i = start
    while next_item(judged, position, key, value) and i < stop:
        if not told[NOT_WHOLE]:  # most labels are integers, which are read faster as such
            labels[i] = _integer(room[2], not_whole)
        if told[NOT_WHOLE]:
            labels[i] = _double(room[2], failed)
        score = item_of(ranked, room[1])
        found[i] = _double(score, failed) if score else math.nan
        i += 1
    if i < stop:
        told[FAILED] = 1


@kernel
def _are_text(table: int, room: Any) -> Any:
    position, key, value = pointer(room[0:1]), pointer(room[1:2]), pointer(room[2:3])
    room[0] = 0
    while next_item(table, position, key, value):
        if text_length(room[1]) < 0:
            clear_error()
            return False
    return True


@kernel
def _double(address: int, failed: Any) -> Any:
    value = double_of(address)
    if value == -1 and error_occurred():
        clear_error()
        failed[0] = 1
    return value


@kernel
def _integer(address: int, failed: Any) -> Any:
    value = integer_of(address)
    if value == -1 and error_occurred():
        clear_error()
        failed[0] = 1
    return value

"""Fields of qrels and runs, found 64 bytes at a time and read eight at a time.

Text is whole lines, followed by `PADDING` bytes that may be anything. Fields are separated by ASCII white space, as C's isspace has it;
every other byte belongs to a field, NUL and those that are no UTF-8 included.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrank._kernel import bits_of_bytes, kernel, leading_zeros, load_word, pointer, set_bits, store_word, trailing_zeros, wide_product

PADDING = 128

# What reading lines leaves off with, one number each: the place it has come to and the field end it takes next; rows, changes of
# query and bytes of ids written; odd numbers and lines without a row noted; comments; lines with more fields than six, and where the
# first of them begins; and where a line begins that is wrong (-1: none).
PLACE, FIELD, ROWS, TURNS, FILLED, ODD, SKIPPED, COMMENTS, LONGER, FIRST_LONGER, WRONG = range(11)

_FEED, _COMMENT = 10, 35

# Eight bytes at once.
_TOP_BITS, _LOW_BITS = np.uint64(0x8080808080808080), np.uint64(0x7F7F7F7F7F7F7F7F)
_DIGIT_ZEROS = np.uint64(0x3030303030303030)
_PAST_NINE = np.uint64(0x7676767676767676)  # added to seven bits, sets the top bit from 10 on
# What eight digits become when neighbours are joined: pairs, fours, and the number.
_PAIRS, _FOURS, _EIGHTS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00000000FFFFFFFF)
_POINTS, _BYTES = np.uint64(0x2E2E2E2E2E2E2E2E), np.uint64(0x0101010101010101)
_EACH_OTHER_PAIR = np.uint64(0x000000FF000000FF)
_FIRST_PAIRS, _LAST_PAIRS = np.uint64((10**6 << 32) + 100), np.uint64((10**4 << 32) + 1)
_TENS = np.array([10**n for n in range(20)], np.uint64)

_NONE, _ONE, _THREE, _LAST_NINE, _ALL = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(511), np.uint64(0xFFFFFFFFFFFFFFFF)
_SEED, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xA0761D6478BD642F)

# Powers of ten that are doubles, and the greatest exponent that powers of five are tabled for: with 19 digits, no result is subnormal.
N_EXACT, MOST = 23, 280


# --- bytes ----------------------------------------------------------------------------------------------------------------------


@kernel
def find_field_ends(data: Any, first: int, last: int, ends: Any, counts: Any) -> None:
    """Where the fields of text[first:last], whole lines, end: counts[0] places, and then six more that end in no field.

    counts[1] and counts[2] are the numbers of blanks and of line feeds. Twelve places are written per 64 bytes before it is known how
    many there are: seldom more, so that no branch is mispredicted.
    """
    text, end = pointer(data), pointer(ends)
    n: Any = 0
    n_blanks: Any = 0
    n_feeds: Any = 0
    before, part = _ONE, _ALL
    for base in range(first, last, 64):
        if base + 64 > last:
            part = (_ONE << np.uint64(last - base)) - _ONE
        blanks = (bits_of_bytes(text, base, 32, 1) | bits_of_bytes(text, base, 9, 5)) & part
        stops = blanks & ~(blanks << _ONE | before)
        before = blanks >> np.uint64(63)
        n_here = np.int64(set_bits(stops))
        n_blanks += np.int64(set_bits(blanks))
        n_feeds += np.int64(set_bits(bits_of_bytes(text, base, 10, 1) & part))
        for j in range(12):
            end[n + j] = base + np.int64(trailing_zeros(stops))
            stops &= stops - _ONE
        for j in range(12, n_here):
            end[n + j] = base + np.int64(trailing_zeros(stops))
            stops &= stops - _ONE
        n += n_here
    counts[0], counts[1], counts[2] = n, n_blanks, n_feeds
    for j in range(6):
        end[n + j] = last - 1


@kernel
def _is_blank(byte: Any) -> Any:
    return byte == 32 or 9 <= byte <= 13


@kernel
def _next_field(text: Any, i: int) -> Any:
    """Place of the first byte from i on that is no white space, or is a line feed."""
    while text[i] != _FEED and _is_blank(text[i]):
        i += 1
    return i


@kernel
def _line_end(text: Any, i: int) -> Any:
    while text[i] != _FEED:
        i += 1
    return i


@kernel
def _same_bytes(text: Any, a: int, other: Any, b: int, n: int) -> Any:
    """Whether text[a:a + n] and other[b:b + n] are equal."""
    while n >= 8:
        if load_word(text, a) != load_word(other, b):
            return False
        a += 8
        b += 8
        n -= 8
    return n == 0 or (load_word(text, a) ^ load_word(other, b)) << np.uint64(64 - 8 * n) == 0


@kernel
def _hash(text: Any, i: int, stop: int) -> Any:
    """A 64-bit hash of text[i:stop] and its length."""
    state = _SEED ^ np.uint64(stop - i)
    while stop - i > 8:
        high, low = wide_product(state ^ load_word(text, i), _MIX)
        state = high ^ low
        i += 8
    word = load_word(text, i) << np.uint64(64 - 8 * (stop - i)) if stop > i else _NONE
    high, low = wide_product(state ^ word, _MIX)
    return high ^ low


@kernel
def hash_ids(data: Any, start: Any, stop: Any, out: Any) -> None:
    """out[d] = hash of text[start[d]:stop[d]]."""
    text = pointer(data)
    for d in range(start.shape[0]):
        out[d] = _hash(text, start[d], stop[d])


# --- numbers --------------------------------------------------------------------------------------------------------------------


@kernel
def _digits(text: Any, i: int) -> Any:
    """How many of the eight bytes from i on are digits, up to the first that is none, and the number that they write."""
    digits = load_word(text, i) ^ _DIGIT_ZEROS
    other = (((digits & _LOW_BITS) + _PAST_NINE) | digits) & _TOP_BITS
    n = np.int64(trailing_zeros(other)) >> 3
    # The first digit has the highest weight and the lowest byte: after the shift, the bytes before it are zero.
    digits <<= np.uint64((64 - 8 * n) & 63)
    pairs = (digits * _TENS[1] + (digits >> np.uint64(8))) & _PAIRS
    fours = (pairs * _TENS[2] + (pairs >> np.uint64(16))) & _FOURS
    eight = (fours * _TENS[4] + (fours >> np.uint64(32))) & _EIGHTS
    return n, eight if n > 0 else _NONE


@kernel
def _number(text: Any, i: Any, stop: Any, tens: Any, fives: Any) -> Any:
    """The nearest double to the decimal number text[i:stop]; NaN for what is none or has more than 19 digits, to be read otherwise.

    At most sixteen digits, at most seven of them before a point or, without one, eight in all, are the quick way: the bytes around the
    point are joined to two words of eight digits, moved up until their last digit is the highest byte.
    """
    negative = text[i] == 45
    i += negative or text[i] == 43
    size, head = stop - i, load_word(text, i)
    other = head ^ _POINTS
    n_before = min(np.int64(trailing_zeros((other - _BYTES) & ~other & _TOP_BITS)) >> 3, size)
    n = size - (n_before < size)
    n_low = min(max(n - 8, 0), 8)
    kept = _shifted(_ONE, n_before) - _ONE
    high = _shifted(((head & kept) | (load_word(text, i + 1) & ~kept)) ^ _DIGIT_ZEROS, 8 - min(n, 8))
    low = _shifted(load_word(text, i + 9) ^ _DIGIT_ZEROS, 8 - n_low)
    wrong = ((high + _PAST_NINE) | high | (low + _PAST_NINE) | low) & _TOP_BITS
    mantissa = _eight_digits(high) * _TENS[n_low] + _eight_digits(low)
    if wrong == 0 and 0 < n <= 16 and (n_before < 8 or size <= 8) and mantissa >> np.uint64(53) == 0:
        value = mantissa / tens[n - n_before]
    else:
        value = _any_number(text, i, stop, tens, fives)
    return -value if negative else value


@kernel
def _shifted(word: Any, n_bytes: int) -> Any:
    """A word moved up by 0 to 8 bytes."""
    return (word << np.uint64(4 * n_bytes)) << np.uint64(4 * n_bytes)


@kernel
def _eight_digits(digits: Any) -> Any:
    """The number that eight bytes from 0 to 9 write, the lowest the first digit: neighbours are joined, then the pairs."""
    pairs = digits * _TENS[1] + (digits >> np.uint64(8))
    return ((pairs & _EACH_OTHER_PAIR) * _FIRST_PAIRS + ((pairs >> np.uint64(16)) & _EACH_OTHER_PAIR) * _LAST_PAIRS) >> np.uint64(32)


@kernel
def _any_number(text: Any, i: int, stop: int, tens: Any, fives: Any) -> Any:
    """The same for a number without its sign, in any form."""
    mantissa, n_digits, point, n = _NONE, 0, -1, 8
    while n == 8 or (text[i] == 46 and point < 0):
        if n < 8:
            point = n_digits
            i += 1
        n, value = _digits(text, i)
        n_digits += n
        if n_digits > 19:
            return math.nan
        mantissa = mantissa * _TENS[n] + value
        i += n
    exponent = point - n_digits if point >= 0 else 0
    if i < stop:
        i, power = _exponent(text, i)
        exponent += power
    return _scaled(mantissa, exponent, tens, fives) if i == stop and n_digits > 0 else math.nan


@kernel
def _exponent(text: Any, i: int) -> Any:
    """Read e+N or E+N: where it ends (-1: it is none) and N."""
    if text[i] != 101 and text[i] != 69:
        return -1, 0
    i += 1
    negative = text[i] == 45
    i += negative or text[i] == 43
    n, value = _digits(text, i)
    if n == 0 or n > 4:
        return -1, 0
    return i + n, -np.int64(value) if negative else np.int64(value)


@kernel
def _scaled(mantissa: Any, exponent: int, tens: Any, fives: Any) -> Any:
    """mantissa * 10^exponent, rounded once; NaN for exponents that are not tabled.

    Where both sides are doubles, one operation rounds once. Else Lemire, Number Parsing at a Gigabyte per Second, 2021: the product
    with the first 128 bits of 5^exponent (in fives, as two halves) decides the rounding of any mantissa below 2^64.
    """
    if mantissa == 0:
        return 0.0
    if mantissa >> np.uint64(53) == 0 and -N_EXACT < exponent < N_EXACT:
        return mantissa / tens[-exponent] if exponent < 0 else mantissa * tens[exponent]
    if not -MOST <= exponent <= MOST:
        return math.nan
    zeros = np.int64(leading_zeros(mantissa))
    normal = mantissa << np.uint64(zeros)
    high, low = wide_product(normal, fives[2 * (MOST + exponent)])
    if high & _LAST_NINE == _LAST_NINE:
        more, _ = wide_product(normal, fives[2 * (MOST + exponent) + 1])
        carries = low > _ALL - more
        low = low - (_ALL - more) - _ONE if carries else low + more
        high += np.uint64(carries)
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    bits = high >> shift
    if low <= 1 and -4 <= exponent <= 23 and bits & _THREE == 1 and bits << shift == high:
        bits -= _ONE  # halfway between two doubles: to the even one
    bits = (bits + (bits & _ONE)) >> _ONE
    return math.ldexp(float(bits), int(((217706 * exponent) >> 16) + np.int64(top) - zeros + 11))


# --- lines ----------------------------------------------------------------------------------------------------------------------


@kernel
def read_plain_lines(
    data: Any, first: int, ends: Any, n_ends: int, width: int, numbered: int, base: int, progress: Any, exact: Any, powers: Any,
    id_bytes: Any, starts: Any, stops: Any, codes: Any, values: Any, turns: Any, names: Any, name_stops: Any,
) -> None:  # fmt: skip
    """As `read_run_lines` or `read_qrels_lines`, for text without a blank that ends no field and with a line feed for each `width` fields.

    Field `numbered` (from 0) is the number. Nothing in progress changes when a line is a comment, has another number of fields, or a
    number that `_number` does not read.
    """
    text, end, state, ids = pointer(data), pointer(ends), pointer(progress), pointer(id_bytes)
    start, stop, code, value, turn, name, name_stop, tens, fives = (
        pointer(starts), pointer(stops), pointer(codes), pointer(values),
        pointer(turns), pointer(names), pointer(name_stops), pointer(exact), pointer(powers),
    )  # fmt: skip
    i, row, t, filled = first, base + state[ROWS], base + state[TURNS], state[FILLED]
    known, size = (name[t - 1], name_stop[t - 1] - name[t - 1]) if t > base else (0, -1)
    n_wrong = 0
    for f in range(0, n_ends, width):
        if end[f] - i != size or not _same_bytes(ids, known, text, i, size):
            known, size = filled, end[f] - i
            filled = _copy(text, i, end[f], ids, filled)
            turn[t], name[t], name_stop[t] = row - base, known, filled
            t += 1
        doc, after = end[f + 1] + 1, end[f + 2]
        start[row], code[row] = filled, _hash(text, doc, after)
        filled = _copy(text, doc, after, ids, filled)
        number = _number(text, end[f + numbered - 1] + 1, end[f + numbered], tens, fives)
        stop[row], value[row] = filled, number
        feed = end[f + width - 1]
        n_wrong += (text[i] == _COMMENT) | (text[feed] != _FEED) | (number != number)
        i = feed + 1
        row += 1
    if n_wrong == 0:
        state[ROWS], state[TURNS], state[FILLED], state[PLACE] = row - base, t - base, filled, i


@kernel
def read_run_lines(
    data: Any, ends: Any, n_ends: int, last: int, base: int, progress: Any, exact: Any, powers: Any, id_bytes: Any,
    start: Any, stop: Any, code: Any, score: Any, turns: Any, names: Any, name_stops: Any, odds: Any, skips: Any, most: int,
) -> None:  # fmt: skip
    """Read the lines of a run that begin before `last`, from progress[PLACE] on, until one is wrong or `most` of them were noted.

    Row r goes to base + r: id_bytes[start:stop] is the document and `code` its hash. turns[base + t] is a row where the query changes,
    id_bytes[names:name_stops] its id. odds[4 * j] = row, line, start and stop in the text of a score that `_number` does not read.
    skips[j] is the number of rows before a line without one.
    """
    text, end, state, odd, skip = pointer(data), pointer(ends), pointer(progress), pointer(odds), pointer(skips)
    ids, turn, name, name_stop, tens, fives = (
        pointer(id_bytes), pointer(turns), pointer(names), pointer(name_stops), pointer(exact), pointer(powers)
    )  # fmt: skip
    while state[PLACE] < last and state[ODD] < most and state[SKIPPED] < most:
        i, f, row = _next_field(text, state[PLACE]), state[FIELD], base + state[ROWS]
        if text[i] == _FEED or text[i] == _COMMENT:
            _no_row(text, i, end, n_ends, state, skip)
            continue
        iteration, doc, rank = _next_field(text, end[f]), _next_field(text, end[f + 1]), _next_field(text, end[f + 2])
        number, tag = _next_field(text, end[f + 3]), _next_field(text, end[f + 4])
        if text[iteration] == _FEED or text[doc] == _FEED or text[rank] == _FEED or text[number] == _FEED or text[tag] == _FEED:
            state[WRONG] = state[PLACE]
            return
        _turn(text, i, end[f], base, state, ids, turn, name, name_stop)
        start[row], code[row] = state[FILLED], _hash(text, doc, end[f + 2])
        stop[row] = _keep(text, doc, end[f + 2], ids, state)
        score[row] = _number(text, number, end[f + 4], tens, fives)
        if score[row] != score[row]:
            _note_odd(row, number, end[f + 4], state, odd)
        i = _next_field(text, end[f + 5])
        state[FIELD] = f + 6
        if text[i] != _FEED:
            i = _longer(text, i, end, n_ends, state)
        state[ROWS] = state[ROWS] + 1
        state[PLACE] = i + 1


@kernel
def read_qrels_lines(
    data: Any, ends: Any, n_ends: int, last: int, base: int, progress: Any, exact: Any, powers: Any, id_bytes: Any,
    start: Any, stop: Any, code: Any, label: Any, turns: Any, names: Any, name_stops: Any, odds: Any, skips: Any, most: int,
) -> None:  # fmt: skip
    """As `read_run_lines`, for lines of four fields: query, iteration, document, label."""
    text, end, state, odd, skip = pointer(data), pointer(ends), pointer(progress), pointer(odds), pointer(skips)
    ids, turn, name, name_stop, tens, fives = (
        pointer(id_bytes), pointer(turns), pointer(names), pointer(name_stops), pointer(exact), pointer(powers)
    )  # fmt: skip
    while state[PLACE] < last and state[ODD] < most and state[SKIPPED] < most:
        i, f, row = _next_field(text, state[PLACE]), state[FIELD], base + state[ROWS]
        if text[i] == _FEED or text[i] == _COMMENT:
            _no_row(text, i, end, n_ends, state, skip)
            continue
        iteration, doc, number = _next_field(text, end[f]), _next_field(text, end[f + 1]), _next_field(text, end[f + 2])
        after = _next_field(text, end[f + 3])
        if text[iteration] == _FEED or text[doc] == _FEED or text[number] == _FEED or text[after] != _FEED:
            state[WRONG] = state[PLACE]
            return
        _turn(text, i, end[f], base, state, ids, turn, name, name_stop)
        start[row], code[row] = state[FILLED], _hash(text, doc, end[f + 2])
        stop[row] = _keep(text, doc, end[f + 2], ids, state)
        label[row] = _number(text, number, end[f + 3], tens, fives)
        if label[row] != label[row]:
            _note_odd(row, number, end[f + 3], state, odd)
        state[FIELD] = f + 4
        state[ROWS] = state[ROWS] + 1
        state[PLACE] = after + 1


@kernel
def _no_row(text: Any, i: int, end: Any, n_ends: int, state: Any, skip: Any) -> None:
    """Go beyond a line without fields, or a comment."""
    skip[state[SKIPPED]] = state[ROWS]
    state[SKIPPED] = state[SKIPPED] + 1
    if text[i] == _COMMENT:
        state[COMMENTS] = state[COMMENTS] + 1
        i = _line_end(text, i)
        _pass_fields(i, end, n_ends, state)
    state[PLACE] = i + 1


@kernel
def _pass_fields(i: int, end: Any, n_ends: int, state: Any) -> None:
    f = state[FIELD]
    while f < n_ends and end[f] <= i:
        f += 1
    state[FIELD] = f


@kernel
def _keep(text: Any, i: int, stop: int, ids: Any, state: Any) -> Any:
    """Copy text[i:stop] behind the ids kept so far, and tell where it ends there."""
    state[FILLED] = _copy(text, i, stop, ids, state[FILLED])
    return state[FILLED]


@kernel
def _copy(text: Any, i: int, stop: int, ids: Any, place: int) -> Any:
    """Copy text[i:stop] to a place (whole words: there must be room), and tell where it ends there."""
    after = place + stop - i
    store_word(ids, place, load_word(text, i))
    while stop - i > 8:
        i += 8
        place += 8
        store_word(ids, place, load_word(text, i))
    return after


@kernel
def _turn(text: Any, i: int, stop: int, base: int, state: Any, ids: Any, turn: Any, name: Any, name_stop: Any) -> None:
    """Keep the query's id where it is not that of the row before."""
    t = base + state[TURNS]
    if state[TURNS] > 0:
        known = name[t - 1]
        if stop - i == name_stop[t - 1] - known and _same_bytes(ids, known, text, i, stop - i):
            return
    turn[t], name[t] = state[ROWS], state[FILLED]
    name_stop[t] = _keep(text, i, stop, ids, state)
    state[TURNS] = state[TURNS] + 1


@kernel
def _note_odd(row: int, start: int, stop: int, state: Any, odd: Any) -> None:
    n = 4 * state[ODD]
    odd[n], odd[n + 1], odd[n + 2], odd[n + 3] = row, state[PLACE], start, stop
    state[ODD] = state[ODD] + 1


@kernel
def _longer(text: Any, i: int, end: Any, n_ends: int, state: Any) -> Any:
    """Count a line with more fields than six, and go to its end."""
    if state[LONGER] == 0:
        state[FIRST_LONGER] = state[PLACE]
    state[LONGER] = state[LONGER] + 1
    i = _line_end(text, i)
    _pass_fields(i, end, n_ends, state)
    return i


@kernel
def gather_bytes(data: Any, start: Any, offsets: Any, out: Any) -> None:
    """Copy slices of a text, one after the other: slice s from start[s] on to out[offsets[s]:offsets[s + 1]]."""
    text = pointer(data)
    for s in range(start.shape[0]):
        for i in range(offsets[s + 1] - offsets[s]):
            out[offsets[s] + i] = text[start[s] + i]

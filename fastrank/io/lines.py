"""Lines of qrels and runs: one pass over their bytes, eight at a time.

Text is an array of bytes that ends in a line feed and goes on with at least eight more bytes. Fields are separated by ASCII white
space; every other byte belongs to a field, NUL and those that are no UTF-8 included.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastrank._kernel import kernel, leading_zeros, load_word, pointer, trailing_zeros, wide_product

# What the kernels leave off with, one number each: the place they have come to, lines and changes of query written, slots of `odd`
# used, comments, lines with more fields than six and the first of them, and the line that cannot be read. Places are -1 for none.
PLACE, LINES, TURNS, ODD, COMMENTS, LONGER, FIRST_LONGER, WRONG = range(8)

_FEED, _COMMENT = 10, 35
_TOP_BITS = np.uint64(0x8080808080808080)
_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_EXCLAMATIONS = np.uint64(0x2121212121212121)
_ZEROS = np.uint64(0x3030303030303030)
_PAST_NINE = np.uint64(0x7676767676767676)
_PAIRS = np.uint64(0x00FF00FF00FF00FF)
_FOURS = np.uint64(0x0000FFFF0000FFFF)
_EIGHTS = np.uint64(0x00000000FFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_SEED, _MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xA0761D6478BD642F)
_NONE, _ONE, _THREE, _SIXTY_FOUR = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(64)
MIDDLE, EXACT = 280, 23
_LAST_NINE = np.uint64(0x1FF)
_TENS = np.array([10**n for n in range(20)], np.uint64)


# --- fields ---------------------------------------------------------------------------------------------------------------------


@kernel
def _is_blank(byte: Any) -> Any:
    return byte == 32 or 9 <= byte <= 13


@kernel
def _field_end(text: Any, i: int) -> Any:
    """Place of the first white space from i on."""
    while True:
        word = load_word(text, i)
        # The top bit of each byte that is below "!" and is ASCII.
        low = ~(((word | _TOP_BITS) - _EXCLAMATIONS) | word) & _TOP_BITS
        i += np.int64(trailing_zeros(low)) >> 3
        if low != 0:
            if _is_blank(text[i]):
                return i
            i += 1  # a control character: part of the field


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
def _same_bytes(text: Any, a: int, b: int, n: int, other: Any) -> Any:
    """Whether text[a:a + n] and other[b:b + n] are equal."""
    while n >= 8:
        if load_word(text, a) != load_word(other, b):
            return False
        a += 8
        b += 8
        n -= 8
    return n == 0 or (load_word(text, a) ^ load_word(other, b)) << np.uint64(64 - 8 * n) == 0


@kernel
def hash_bytes(text: Any, i: int, stop: int) -> Any:
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
def hash_fields(text: Any, start: Any, stop: Any, out: Any) -> None:
    """out[d] = hash of text[start[d]:stop[d]]."""
    for d in range(start.shape[0]):
        out[d] = hash_bytes(pointer(text), start[d], stop[d])


@kernel
def count_feeds(text: Any, first: int, last: int, out: Any) -> None:
    """Add the number of line feeds in text[first:last] to out[0]."""
    while first < last:
        n = min(last - first, 255)
        few = np.uint8(0)
        for i in range(first, first + n):
            few += np.uint8(text[i] == _FEED)
        out[0] += few
        first += n


# --- numbers --------------------------------------------------------------------------------------------------------------------


@kernel
def _digits(text: Any, i: int, stop: int) -> Any:
    """How many of the next eight bytes are leading digits (below stop), and their value."""
    digits = load_word(text, i) ^ _ZEROS
    other = (((digits & _LOW_BITS) + _PAST_NINE) | digits) & _TOP_BITS
    n = min(np.int64(trailing_zeros(other)) >> 3, stop - i)
    if n == 0:
        return n, _NONE
    # The first digit has the highest weight and the lowest byte: after the shift, bytes before it are zero.
    digits <<= np.uint64(64 - 8 * n)
    pairs = (digits * _TENS[1] + (digits >> np.uint64(8))) & _PAIRS
    fours = (pairs * _TENS[2] + (pairs >> np.uint64(16))) & _FOURS
    return n, (fours * _TENS[4] + (fours >> np.uint64(32))) & _EIGHTS


@kernel
def _number(text: Any, i: int, stop: int, exact: Any, powers: Any) -> Any:
    """The nearest double to a decimal number of at most 19 digits; NaN for anything else, which is then read otherwise."""
    negative = text[i] == 45
    i += negative or text[i] == 43
    mantissa, n_digits, point = _NONE, 0, -1
    while i < stop:
        n, value = _digits(text, i, stop)
        n_digits += n
        if n_digits > 19:
            return math.nan
        mantissa = mantissa * _TENS[n] + value
        i += n
        if n < 8:
            if i >= stop or text[i] != 46 or point >= 0:
                break
            point = n_digits
            i += 1
    exponent = point - n_digits if point >= 0 else 0
    if i < stop:
        i, tail = _exponent(text, i, stop)
        exponent += tail
    if i != stop or n_digits == 0:
        return math.nan
    value = _scaled(mantissa, exponent, exact, powers)
    return -value if negative else value


@kernel
def _exponent(text: Any, i: int, stop: int) -> Any:
    """Read e+N or E+N: where it ends (beyond stop when it is none) and N."""
    if text[i] != 101 and text[i] != 69:
        return stop + 1, 0
    i += 1
    negative = text[i] == 45
    i += negative or text[i] == 43
    n, value = _digits(text, i, stop) if i < stop else (0, _NONE)
    if n == 0 or n > 4:
        return stop + 1, 0
    return i + n, -np.int64(value) if negative else np.int64(value)


@kernel
def _scaled(mantissa: Any, exponent: int, exact: Any, powers: Any) -> Any:
    """mantissa * 10^exponent, rounded once; NaN where this cannot be told here.

    Both exact as doubles: one operation rounds once. Else Lemire, Number Parsing at a Gigabyte per Second, 2021: the product with
    the first 128 bits of 5^exponent decides the rounding. Numbers near the ends of the range are left to others.
    """
    if mantissa == 0:
        return 0.0
    if mantissa >> np.uint64(53) == 0 and -EXACT < exponent < EXACT:
        return mantissa / exact[-exponent] if exponent < 0 else mantissa * exact[exponent]
    if not -MIDDLE <= exponent <= MIDDLE:
        return math.nan
    zeros = leading_zeros(mantissa)
    normal = mantissa << np.uint64(zeros)
    high, low = wide_product(normal, powers[2 * (MIDDLE + exponent)])
    if high & _LAST_NINE == _LAST_NINE:
        more, _ = wide_product(normal, powers[2 * (MIDDLE + exponent) + 1])
        carries = low > _ALL - more
        low = low - (_ALL - more) - _ONE if carries else low + more
        high += np.uint64(carries)
    top = high >> np.uint64(63)
    shift = top + np.uint64(9)
    bits = high >> shift
    if low <= 1 and -4 <= exponent <= 23 and bits & _THREE == 1 and bits << shift == high:
        bits -= _ONE  # halfway: to even
    bits = (bits + (bits & _ONE)) >> _ONE
    return math.ldexp(np.float64(bits), ((217706 * exponent) >> 16) + np.int64(top) - np.int64(zeros) + 11)


# --- lines ----------------------------------------------------------------------------------------------------------------------


@kernel
def read_run_lines(
    data: Any, last: int, base: int, progress: Any, exact_powers: Any, split_powers: Any, start: Any, stop: Any, code: Any, score: Any, turns: Any, names: Any,
    name_stops: Any, odds: Any, most: int
) -> None:  # fmt: skip
    """Read the lines of a run that begin before `last`, from state[PLACE] on, until one is wrong or `odd` is full.

    Line n of them goes to row base + n: text[start:stop] is the document, `code` its hash. turn[t] is the row where the query
    changes, text[name[t]:name_stop[t]] its id. odd[j] = row, start and stop of a score that `_number` cannot read.
    """
    text, state, odd = pointer(data), pointer(progress), pointer(odds)
    turn, name, name_stop = pointer(turns), pointer(names), pointer(name_stops)
    exact, powers = pointer(exact_powers), pointer(split_powers)
    while state[PLACE] < last and state[ODD] < most:
        line = state[PLACE]
        i = _next_field(text, line)
        if text[i] == _FEED or text[line] == _COMMENT:
            state[COMMENTS] = state[COMMENTS] + text[line] == _COMMENT
            state[PLACE] = _line_end(text, i) + 1
            continue
        row = base + state[LINES]
        i = _next_field(text, _query(text, i, row, base, state, turn, name, name_stop))
        doc = _next_field(text, _field_end(text, i))
        doc_stop = _field_end(text, doc)
        rank = _next_field(text, doc_stop)
        number = _next_field(text, _field_end(text, rank))
        number_stop = _field_end(text, number)
        tag = _next_field(text, number_stop)
        i = _field_end(text, tag)
        if i == tag:
            state[WRONG] = line
            return
        start[row], stop[row], code[row] = doc, doc_stop, hash_bytes(text, doc, doc_stop)
        score[row] = _number(text, number, number_stop, exact, powers)
        if score[row] != score[row]:
            _note_odd(row, number, number_stop, state, odd)
        state[LINES] = state[LINES] + 1
        i = _next_field(text, i)
        if text[i] != _FEED:
            i = _longer(text, i, line, state)
        state[PLACE] = i + 1


@kernel
def read_qrels_lines(
    data: Any, last: int, base: int, progress: Any, exact_powers: Any, split_powers: Any, start: Any, stop: Any, code: Any, label: Any, turns: Any, names: Any,
    name_stops: Any, odds: Any, most: int
) -> None:  # fmt: skip
    """As `read_run_lines`, for lines of four fields: query, iteration, document, label."""
    text, state, odd = pointer(data), pointer(progress), pointer(odds)
    turn, name, name_stop = pointer(turns), pointer(names), pointer(name_stops)
    exact, powers = pointer(exact_powers), pointer(split_powers)
    while state[PLACE] < last and state[ODD] < most:
        line = state[PLACE]
        i = _next_field(text, line)
        if text[i] == _FEED or text[line] == _COMMENT:
            state[COMMENTS] = state[COMMENTS] + text[line] == _COMMENT
            state[PLACE] = _line_end(text, i) + 1
            continue
        row = base + state[LINES]
        i = _next_field(text, _query(text, i, row, base, state, turn, name, name_stop))
        doc = _next_field(text, _field_end(text, i))
        doc_stop = _field_end(text, doc)
        number = _next_field(text, doc_stop)
        number_stop = _field_end(text, number)
        i = _next_field(text, number_stop)
        if number == number_stop or text[i] != _FEED:
            state[WRONG] = line
            return
        start[row], stop[row], code[row] = doc, doc_stop, hash_bytes(text, doc, doc_stop)
        label[row] = _number(text, number, number_stop, exact, powers)
        if label[row] != label[row]:
            _note_odd(row, number, number_stop, state, odd)
        state[LINES] = state[LINES] + 1
        state[PLACE] = i + 1


@kernel
def _query(text: Any, i: int, row: int, base: int, state: Any, turn: Any, name: Any, name_stop: Any) -> Any:
    """Where the query's id ends; a turn is written where it is not the id of the line before."""
    t = base + state[TURNS]
    if state[TURNS] > 0:
        known = name[t - 1]
        n = name_stop[t - 1] - known
        if _same_bytes(text, known, i, n, text) and _is_blank(text[i + n]):
            return i + n
    end = _field_end(text, i)
    turn[t], name[t], name_stop[t] = row, i, end
    state[TURNS] = state[TURNS] + 1
    return end


@kernel
def _note_odd(row: int, start: int, stop: int, state: Any, odd: Any) -> None:
    n = state[ODD]
    odd[3 * n], odd[3 * n + 1], odd[3 * n + 2] = row, start, stop
    state[ODD] = state[ODD] + 1


@kernel
def _longer(text: Any, i: int, line: int, state: Any) -> Any:
    """Count a line with more fields than six, and go to its end."""
    if state[LONGER] == 0:
        state[FIRST_LONGER] = line
    state[LONGER] = state[LONGER] + 1
    return _line_end(text, i)

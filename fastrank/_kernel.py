"""Compiled kernels and the pool that runs them: the only module that imports numba.

A kernel is a plain Python loop over arrays, marked ``@kernel``. Numba is imported at the first call and not before, so reading
metric names or printing help costs nothing. With ``NUMBA_DISABLE_JIT=1`` the plain function runs instead, which is how the suite
measures coverage.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from fastrank._cached import cached_property
from fastrank._fork import compiling

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger("fastrank")

# Numba's cache looks at a kernel's own file alone. Raise this when an intrinsic below changes, so that kernels are compiled anew.
INTRINSICS = 4

Decorator = Callable[[Callable[..., Any]], Any]


class Intrinsic:
    """One machine instruction that Python has no operator for: `twin` says what it does and runs when the JIT is off.

    `build` makes it of llvmlite's `ir` and numba's `types` and `intrinsic`, which are imported when it is first needed.
    """

    def __init__(self, twin: Callable[..., Any], build: Callable[[Any, Any, Decorator], Any]) -> None:
        functools.update_wrapper(self, twin)
        self.twin = twin
        self._build = build

    def __call__(self, *arguments: Any) -> Any:
        return self.twin(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """What numba inlines, or the twin when the JIT is off."""
        from numba import config, types

        if getattr(config, "DISABLE_JIT", False):
            return self.twin
        from llvmlite import ir
        from numba.extending import intrinsic

        return self._build(ir, types, intrinsic)


class Kernel:
    """A function compiled on its first call. Helpers of the same file may be kernels too."""

    __slots__ = ("__call__", "__dict__")  # once the slot holds what was compiled, a call costs no frame of Python
    __call__: Callable[..., Any]

    def __init__(self, function: Callable[..., None], *, nogil: bool = True) -> None:
        functools.update_wrapper(self, function)
        self.function, self.nogil = function, nogil
        self.__call__ = lambda *arguments: self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The numba dispatcher, or the plain function when the JIT is off."""
        with compiling:
            if "compiled" not in self.__dict__:  # else another thread was first
                self.__dict__["compiled"] = self.__call__ = self._compile()
            return self.__call__

    def _compile(self) -> Callable[..., Any]:
        from numba import config, njit

        scope = self.function.__globals__
        for name in self.function.__code__.co_names:
            helper = scope.get(name)
            if isinstance(helper, Kernel | Intrinsic):
                scope[name] = helper.compiled
        if getattr(config, "DISABLE_JIT", False):
            return self._as_plain_python()
        self.function.__qualname__ = f"{self.function.__name__}.{INTRINSICS}"  # part of the cache's file names
        if self.function.__name__.startswith("_"):
            # A helper: LLVM passes an array as seven numbers, so a call that it does not inline costs more than a short loop.
            return njit(nogil=self.nogil, error_model="numpy", forceinline=True)(self.function)
        try:
            compiled = njit(nogil=self.nogil, cache=True, error_model="numpy")(self.function)
        except RuntimeError as error:  # numba: "cannot cache function ...: no locator available"
            logger.debug("kernels are compiled anew in this process: %s", error)
            compiled = njit(nogil=self.nogil, error_model="numpy")(self.function)
        _forgive_unwritable_cache(compiled)
        return compiled

    def _as_plain_python(self) -> Callable[..., Any]:
        if self.function.__name__.startswith("_"):
            return self.function
        import numpy as np

        # Machine numbers wrap around and divide by zero in silence; NumPy's scalars would warn.
        return np.errstate(all="ignore")(self.function)

    @property
    def signatures(self) -> list[Any]:
        """The argument types compiled so far; empty when the JIT is off."""
        return list(getattr(self.compiled, "signatures", ()))


def kernel(function: Callable[..., None]) -> Kernel:
    """Mark a loop to be compiled: serial, without the GIL, cached where a cache can be written."""
    return Kernel(function)


def _bit_operation(types: Any, intrinsic: Decorator, emit_word: Callable[[Any, Any], Any]) -> Any:
    """An intrinsic from a 64-bit word to a 64-bit word."""

    @intrinsic
    def operation(_typing: Any, _word: Any) -> Any:
        return types.uint64(types.uint64), lambda _context, builder, _signature, arguments: emit_word(builder, arguments[0])

    return operation


def _build_trailing_zeros(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    return _bit_operation(types, intrinsic, lambda builder, word: builder.cttz(word, ir.Constant(ir.IntType(1), 0)))


def _trailing_zeros(word: Any) -> int:
    """The place of the lowest set bit of a 64-bit word; 64 for 0."""
    word = int(word)
    return (word & -word).bit_length() - 1 if word else 64


def _build_set_bits(_ir: Any, types: Any, intrinsic: Decorator) -> Any:
    return _bit_operation(types, intrinsic, lambda builder, word: builder.ctpop(word))


def _set_bits(word: Any) -> int:
    """The number of bits set in a 64-bit word."""
    return int(word).bit_count()


def _build_leading_zeros(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    return _bit_operation(types, intrinsic, lambda builder, word: builder.ctlz(word, ir.Constant(ir.IntType(1), 0)))


def _leading_zeros(word: Any) -> int:
    """The number of zeros above the highest set bit of a 64-bit word; 64 for 0."""
    return 64 - int(word).bit_length()


def _build_pointer(_ir: Any, types: Any, intrinsic: Decorator) -> Any:
    from numba.np.arrayobj import make_array

    @intrinsic
    def pointer(_typing: Any, array: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return make_array(signature.args[0])(context, builder, arguments[0]).data

        return types.CPointer(array.dtype)(array), emit

    return pointer


def _pointer(array: Any) -> Any:
    """A flat array for helpers that run once a line or more: an array costs each call two atomic operations, a pointer nothing.

    Indices are not checked and must not be negative. The array must outlive the call.
    """
    return array


def _build_load_word(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def load_word(_typing: Any, text: Any, _place: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            word = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
            return builder.load(word, align=1)

        return types.uint64(text, types.int64), emit

    return load_word


def _load_word(text: Any, place: Any) -> Any:
    """The eight bytes from a place on, the first the lowest, given a pointer to bytes. They must be there: nothing checks."""
    return text[place : place + 8].copy().view("<u8")[0]


def _build_store_word(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def store_word(_typing: Any, text: Any, _place: Any, _word: Any) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            place = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
            builder.store(arguments[2], place, align=1)
            return context.get_dummy_value()

        return types.none(text, types.int64, types.uint64), emit

    return store_word


def _store_word(text: Any, place: Any, word: Any) -> None:
    """Write eight bytes from a place on, the lowest first, given a pointer to bytes. There must be room: nothing checks."""
    text[place : place + 8] = word.reshape(1).view(text.dtype)


def _build_bits_of_bytes(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def bits_of_bytes(_typing: Any, text: Any, _place: Any, _lowest: Any, _n: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            text, place, lowest, n = arguments
            first, width = (_in_all_lanes(builder, builder.trunc(value, ir.IntType(8)), 64) for value in (lowest, n))
            met = builder.icmp_unsigned("<", builder.sub(_lanes(builder, text, place, 64), first), width)
            return builder.bitcast(met, ir.IntType(64))

        return types.uint64(text, types.int64, types.int64, types.int64), emit

    return bits_of_bytes


def _bits_of_bytes(text: Any, place: Any, lowest: Any, n: Any) -> Any:
    """A word whose bits tell of 64 bytes, from a place on, which are among the n values from `lowest` up; given a pointer to bytes."""
    import numpy as np

    met = text[place : place + 64] - np.uint8(lowest) < n
    return np.packbits(met, bitorder="little").view("<u8")[0]


def _build_bits_at_least(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def bits_at_least(_typing: Any, values: Any, _place: Any, _least: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            read, least = _lanes(builder, arguments[0], arguments[1], 64), _in_all_lanes(builder, arguments[2], 64)
            if isinstance(values.dtype, types.Float):
                zero = ir.Constant(read.type, [0.0] * 64)
                met = builder.or_(builder.fcmp_ordered(">=", read, least), builder.fcmp_ordered("<", read, zero))
            else:  # seen without its sign, a number below 0 is larger than any least
                met = builder.icmp_unsigned(">=", read, least)
            return builder.bitcast(met, ir.IntType(64))

        return types.uint64(values, types.int64, values.dtype), emit

    return bits_at_least


def _bits_at_least(values: Any, place: Any, least: Any) -> Any:
    """A word whose bits tell of 64 values, from a place on, which are at least `least` (itself not below 0) or below 0; given a pointer."""
    import numpy as np

    read = values[place : place + 64]
    return np.packbits((read >= least) | (read < 0), bitorder="little").view("<u8")[0]


def _build_narrow_bytes(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def narrow_bytes(_typing: Any, values: Any, _place: Any, target: Any, _at: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            read, narrow = _lanes(builder, arguments[0], arguments[1], 64), ir.VectorType(ir.IntType(8), 64)
            if isinstance(values.dtype, types.Float):
                codes = builder.trunc(builder.fptosi(read, ir.VectorType(ir.IntType(32), 64)), narrow)
                wrong = builder.fcmp_unordered("!=", builder.uitofp(codes, read.type), read)
            else:
                codes = builder.trunc(read, narrow)
                wrong = builder.icmp_unsigned("!=", builder.zext(codes, read.type), read)
            builder.store(codes, builder.bitcast(builder.gep(arguments[2], [arguments[3]]), narrow.as_pointer()), align=1)
            return builder.bitcast(wrong, ir.IntType(64))

        return types.uint64(values, types.int64, target, types.int64), emit

    return narrow_bytes


def _narrow_bytes(values: Any, place: Any, target: Any, at: Any) -> Any:
    """Write 64 numbers, from a place on, as bytes to another; a word whose bits tell which are no bytes; given pointers."""
    import numpy as np

    read, written = values[place : place + 64], target[at : at + 64]
    written[:] = read.astype(np.int32).astype(np.uint8)
    return np.packbits(written != read, bitorder="little").view("<u8")[0]


LANES = 16  # 32-bit numbers in a register of the widest machines; elsewhere one step takes two or four


def _lanes(builder: Any, pointed: Any, place: Any, n: int) -> Any:
    """Load n numbers, from a place on, that need not be aligned."""
    from llvmlite import ir

    element = pointed.type.pointee
    return builder.load(builder.bitcast(builder.gep(pointed, [place]), ir.VectorType(element, n).as_pointer()), align=1)


def _in_all_lanes(builder: Any, value: Any, n: int) -> Any:
    from llvmlite import ir

    unknown, places = ir.Constant(ir.VectorType(value.type, n), ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), n), [0] * n)
    return builder.shuffle_vector(builder.insert_element(unknown, value, ir.Constant(ir.IntType(32), 0)), unknown, places)


def _build_count(comparison: str, ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def count_lanes(_typing: Any, values: Any, _place: Any, _x: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            read, x = _lanes(builder, arguments[0], arguments[1], LANES), _in_all_lanes(builder, arguments[2], LANES)
            compare = builder.fcmp_ordered if isinstance(values.dtype, types.Float) else builder.icmp_signed
            met = builder.bitcast(compare(comparison, read, x), ir.IntType(LANES))
            return builder.zext(builder.ctpop(met), ir.IntType(64))

        return types.int64(values, types.int64, values.dtype), emit

    return count_lanes


def _count_above(values: Any, place: Any, x: Any) -> int:
    """How many of 16 numbers, from a place on, are larger than x; given a pointer. They must be there: nothing checks."""
    return int((values[place : place + LANES] > x).sum())


def _count_at_least(values: Any, place: Any, x: Any) -> int:
    """How many of 16 numbers, from a place on, are x or larger; given a pointer. They must be there: nothing checks."""
    return int((values[place : place + LANES] >= x).sum())


def _build_copy_narrowed(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def copy_narrowed(_typing: Any, source: Any, _place: Any, target: Any, _at: Any, _n: Any) -> Any:
        def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            given, place, target, at, n = arguments
            read, narrow, word = _lanes(builder, given, place, LANES), ir.VectorType(ir.FloatType(), LANES), ir.IntType(32)
            if isinstance(source.dtype, types.Integer):
                read = builder.sitofp(read, narrow)
            elif source.dtype.bitwidth > 32:
                read = builder.fptrunc(read, narrow)
            lane = ir.Constant(ir.VectorType(word, LANES), list(range(LANES)))
            there = builder.icmp_signed("<", lane, _in_all_lanes(builder, builder.trunc(n, word), LANES))
            kept = builder.select(there, read, ir.Constant(narrow, [float("-inf")] * LANES))
            builder.store(kept, builder.bitcast(builder.gep(target, [at]), narrow.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.none(source, types.int64, target, types.int64, types.int64), emit

    return copy_narrowed


def _copy_narrowed(source: Any, place: Any, target: Any, at: Any, n: Any) -> None:
    """Write 16 numbers, from a place on, as float32 to another, -inf for all but the first n; given pointers.

    There must be 16 of them, and room for as many: nothing checks.
    """
    target[at : at + LANES] = source[place : place + LANES]
    target[at + max(n, 0) : at + LANES] = float("-inf")


def _build_wide_product(ir: Any, types: Any, intrinsic: Decorator) -> Any:
    @intrinsic
    def wide_product(_typing: Any, _a: Any, _b: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide = ir.IntType(128)
            product = builder.mul(*(builder.zext(word, wide) for word in arguments))
            halves = builder.lshr(product, ir.Constant(wide, 64)), product
            return context.make_tuple(builder, signature.return_type, [builder.trunc(half, ir.IntType(64)) for half in halves])

        return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), emit

    return wide_product


def _wide_product(a: Any, b: Any) -> tuple[Any, Any]:
    """The high and the low half of the product of two 64-bit words."""
    word = type(a)
    product = int(a) * int(b)
    return word(product >> 64), word(product & (1 << 64) - 1)


trailing_zeros = Intrinsic(_trailing_zeros, _build_trailing_zeros)
leading_zeros = Intrinsic(_leading_zeros, _build_leading_zeros)
pointer = Intrinsic(_pointer, _build_pointer)
load_word = Intrinsic(_load_word, _build_load_word)
store_word = Intrinsic(_store_word, _build_store_word)
bits_of_bytes = Intrinsic(_bits_of_bytes, _build_bits_of_bytes)
wide_product = Intrinsic(_wide_product, _build_wide_product)
narrow_bytes = Intrinsic(_narrow_bytes, _build_narrow_bytes)
bits_at_least = Intrinsic(_bits_at_least, _build_bits_at_least)
count_above = Intrinsic(_count_above, functools.partial(_build_count, ">"))
count_at_least = Intrinsic(_count_at_least, functools.partial(_build_count, ">="))
copy_narrowed = Intrinsic(_copy_narrowed, _build_copy_narrowed)
set_bits = Intrinsic(_set_bits, _build_set_bits)


def _forgive_unwritable_cache(compiled: Any) -> None:
    """A full disk or a directory that vanished must cost the cache entry, not the call."""
    cache: Any = getattr(compiled, "_cache", None)
    if cache is None or not hasattr(cache, "save_overload"):
        return
    save = cache.save_overload

    def save_or_log(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            logger.debug("the compiled kernel was not cached: %s", error)

    cache.save_overload = save_or_log


# --- threads -------------------------------------------------------------------------------------------------------------------

_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _drop_pool() -> None:
    """A forked child inherits the pool's bookkeeping without its threads: forget it."""
    global _pool, _pool_size
    _pool, _pool_size = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_pool)


def available_threads() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _shared_pool(size: int) -> ThreadPoolExecutor:
    global _pool, _pool_size
    if _pool is None or _pool_size < size:
        # The smaller pool is left to finish what other callers gave it; its threads end when it is collected.
        _pool, _pool_size = ThreadPoolExecutor(size, thread_name_prefix="fastrank"), size
    return _pool


def map_blocks(work: Callable[[int, int], None], offsets: np.ndarray, *, documents: int, threads: int | None) -> None:
    """Call ``work(first, last)`` for consecutive blocks of queries that hold about ``documents`` documents each.

    Each query's result depends on that query alone, so any split and any number of threads gives the same bits.
    The first exception raised in a block reaches the caller after the blocks already running have ended.
    """
    blocks = list(query_blocks(offsets, documents))
    size = min(threads or available_threads(), len(blocks))
    if size <= 1:
        for first, last in blocks:
            work(first, last)
        return
    pool = _shared_pool(size - 1)  # the caller's thread takes blocks, too
    waiting, pending = deque(blocks), list[Future[None]]()

    def run() -> None:
        while waiting:  # not a share of the blocks each: lists of very different lengths keep all threads busy to the end
            try:
                first, last = waiting.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                work(first, last)
            except BaseException:
                waiting.clear()
                raise

    try:
        pending.extend(pool.submit(run) for _ in range(size - 1))
        run()
        for future in pending:
            future.result()
    finally:
        for future in pending:
            future.cancel()
        for future in pending:
            with contextlib.suppress(BaseException):
                future.exception()


def query_blocks(offsets: np.ndarray, documents: int) -> Iterator[tuple[int, int]]:
    """Cut the queries into runs of about ``documents`` documents, a longer query alone."""
    n_queries = len(offsets) - 1
    if n_queries <= 0:
        return
    # An empty list is work too: count each query as one more document, or a million of them would be one block.
    first = 0
    while first < n_queries:
        target = int(offsets[first]) + first + documents
        low, high = first + 1, n_queries
        while low < high:
            middle = (low + high + 1) // 2
            if int(offsets[middle]) + middle <= target:
                low = middle
            else:
                high = middle - 1
        yield first, low
        first = low

"""Python's own numbers and dicts for kernels: functions of its C interface, as an extension module calls them.

A kernel is given the address of an object (``id``), whose caller holds a reference until the kernel is done, and is marked
``@object_kernel``: it runs with the GIL. Addresses of a dict's keys and values hold until Python code runs again. What is called here
is linked by its name when a kernel is loaded, so these are cached as any other.

As in C, a conversion that fails returns -1 and leaves an exception, which must be cleared before anything else is called.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any

from fastrank._kernel import Intrinsic, Kernel


def object_kernel(function: Callable[..., None]) -> Kernel:
    """Mark a loop over Python objects: as `kernel`, but with the GIL. Long work is given in parts, since no signal comes between."""
    return Kernel(function, nogil=False)


def _build(name: str, result: str, arguments: str, _ir: Any, types: Any, _intrinsic: Any) -> Any:
    """A function of the C interface. A place is a pointer to an address or an index."""
    kinds = {"address": types.intp, "place": types.CPointer(types.intp), "int": types.intc, "int64": types.int64}
    kinds |= {"double": types.float64, "nothing": types.void}
    return types.ExternalFunction(name, kinds[result](*[kinds[each] for each in arguments.split()]))


# What they do, in Python.

_occurred = False


def _object(address: Any) -> Any:
    return ctypes.cast(int(address), ctypes.py_object).value


def _next_item(mapping: Any, position: Any, key: Any, value: Any) -> Any:
    """Write the addresses of the key and the value of a dict's next item, given pointers, and move the position on; 0 at the end.

    The position is 0 at first. The order is that of the table, which a subclass may not keep to.
    """
    places = (mapping, *(place.ctypes.data for place in (position, key, value)))
    return ctypes.pythonapi.PyDict_Next(*[ctypes.c_void_p(int(place)) for place in places])


def _item_of(mapping: Any, key: Any) -> int:
    """The address of a dict's value for a key; 0 when there is none, and when comparing keys raises."""
    try:
        value = dict.get(_object(mapping), _object(key), _object)
    except Exception:  # noqa: BLE001  (the C function forgets it)
        return 0
    return 0 if value is _object else id(value)


def _packed(kind: str, address: Any) -> Any:
    global _occurred
    try:
        return struct.unpack(kind, struct.pack(kind, _object(address)))[0]
    except struct.error:
        _occurred = True
        return -1


def _double_of(address: Any) -> Any:
    """A number as a double; an error when it is none, or too large for one."""
    return _packed("d", address)


def _integer_of(address: Any) -> Any:
    """An integer of 64 bits; an error when it is none."""
    return _packed("q", address)


def _text_length(address: Any) -> int:
    """The length of a text; an error when it is none."""
    global _occurred
    text = _object(address)
    _occurred |= not isinstance(text, str)
    return len(text) if isinstance(text, str) else -1


def _error_occurred() -> int:
    """Whether there is an exception (its type's address), 0 when there is none."""
    return int(_occurred)


def _clear_error() -> None:
    """Forget the exception."""
    global _occurred
    _occurred = False


next_item = Intrinsic(_next_item, functools.partial(_build, "PyDict_Next", "int", "address place place place"))
item_of = Intrinsic(_item_of, functools.partial(_build, "PyDict_GetItem", "address", "address address"))
double_of = Intrinsic(_double_of, functools.partial(_build, "PyFloat_AsDouble", "double", "address"))
integer_of = Intrinsic(_integer_of, functools.partial(_build, "PyLong_AsLongLong", "int64", "address"))
text_length = Intrinsic(_text_length, functools.partial(_build, "PyUnicode_GetLength", "address", "address"))
error_occurred = Intrinsic(_error_occurred, functools.partial(_build, "PyErr_Occurred", "address", ""))
clear_error = Intrinsic(_clear_error, functools.partial(_build, "PyErr_Clear", "nothing", ""))

"""A property that is worked out once, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 - reads as the decorator of the standard library
    """What `functools.cached_property` is from Python 3.12 on, in every version.

    That of 3.11 holds a lock, one for the property of all objects, while it works the value out. Threads that read different objects wait
    for one another there, and a process forked meanwhile, such as a worker of a data loader, inherits a lock that nobody will release: it
    hangs at its first read. Here two threads that read at once may both work the value out; all get the one that was kept first.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[Value] | Value:
        """The value, from now on an attribute of the instance, which Python finds before this."""
        if instance is None:
            return self
        kept: Value = instance.__dict__.setdefault(self.name, self.compute(instance))
        return kept

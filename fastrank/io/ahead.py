"""Making the next item of an iterator on a thread of its own, while the last one is used."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def one_ahead(items: Iterator[T], stop: threading.Event | None = None) -> Generator[T, None, None]:
    """The same items in the same order, and what making one raises when its turn comes.

    One item at most is made before it is asked for. Leaving early, by an exception or by ``close``, sets ``stop``, waits for the item
    in the making and then closes ``items``, so that what they hold (open files, temporary ones) is given back.

    >>> list(one_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="fastrank-reader") as reader:
        try:
            coming = reader.submit(next, items, end)
            while (item := coming.result()) is not end:
                coming = reader.submit(next, items, end)
                yield item  # type: ignore[misc]  # not the end
        finally:
            if stop is not None:
                stop.set()
            reader.shutdown(cancel_futures=True)
            if isinstance(items, Generator):
                items.close()

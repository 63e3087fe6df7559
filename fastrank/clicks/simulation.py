"""`simulate`: clicks drawn from a model.

Each row draws one number, a function of the seed, its session and its place there: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) at the
position session · 2^32 + place of the sequence that the key begins. So a session's clicks are the same whichever thread draws them, and
whatever comes before or after it in the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastrank._kernel import kernel, map_blocks
from fastrank.clicks.likelihood import LastClick, Product, tables_of
from fastrank.engine.calls import check_threads
from fastrank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from fastrank.clicks.log import ClickLog
    from fastrank.clicks.models import ClickModel

BLOCK = 1 << 16
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@kernel
def _uniform(key: Any, session: Any, place: Any) -> Any:
    """A number from 0 up to 1, in steps of 2^-53."""
    z = key + ((np.uint64(session) << np.uint64(32)) + np.uint64(place)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 2.0**-53


@kernel
def draw_products(key: Any, qd: Any, position: Any, offsets: Any, attr: Any, exam: Any, first: Any, last: Any, click: Any) -> None:
    """Fill the clicks of sessions first <= s < last."""
    for s in range(first, last):
        start = offsets[s]
        for i in range(start, offsets[s + 1]):
            click[i] = _uniform(key, s, i - start) < attr[qd[i]] * exam[position[i] - 1]


@kernel
def draw_last_clicks(key: Any, qd: Any, position: Any, offsets: Any, attr: Any, exam: Any, first: Any, last: Any, click: Any) -> None:
    """Fill the clicks of sessions first <= s < last, where examination depends on the last clicked rank."""
    for s in range(first, last):
        start = offsets[s]
        clicked = 0
        for i in range(start, offsets[s + 1]):
            click[i] = _uniform(key, s, i - start) < attr[qd[i]] * exam[position[i] - 1, clicked]
            if click[i]:
                clicked = position[i]


@kernel
def draw_chains(
    key: Any, qd: Any, position: Any, offsets: Any, attr: Any, go_pair: Any, go_rank: Any, skip: Any, first: Any, last: Any, click: Any
) -> None:
    """Fill the clicks of sessions first <= s < last, where examination is a chain."""
    for s in range(first, last):
        start = offsets[s]
        e = 1.0
        for i in range(start, offsets[s + 1]):
            a = attr[qd[i]]
            click[i] = _uniform(key, s, i - start) < a * e
            if click[i]:
                e = go_pair[qd[i]] * go_rank[position[i] - 1]
            else:  # a * e is below 1, or the number drawn would be, too
                e *= skip * (1.0 - a) / (1.0 - a * e)


def simulate(log: ClickLog, model: ClickModel, seed: int = 0, *, threads: int | None = None) -> np.ndarray:
    """Draw clicks on the lists of a log: uint8[n_rows].

    The log's own clicks play no part: for lists that nobody has seen yet, give zeros. A document or a rank that the model has no
    parameter for gets `model.unseen`.

    Parameters
    ----------
    log
        The lists: which documents, at which positions, in which sessions.
    model
        A fitted model, or one written by hand.
    seed
        A whole number from 0 up. The same seed gives the same clicks, for any number of threads.
    threads
        None: every processor.

    Errors: `InputError`, one line that says what, where and the cure.

    Sources: those of `ClickModel`; Steele, Lea and Flood, OOPSLA 2014 (SplitMix64, which each row's number is drawn by).

    Examples
    --------
    >>> import numpy as np
    >>> from fastrank.clicks import ClickLog, ClickModel, simulate
    >>> lists = ClickLog(np.arange(0, 200_001, 2), doc=["a", "b"] * 100_000, click=np.zeros(200_000))
    >>> clicks = simulate(lists, ClickModel("pbm", attr=[0.4, 0.6], exam=[1, 0.5], docs=["a", "b"]), seed=1)
    >>> clicks.reshape(-1, 2).mean(axis=0).round(2).tolist()
    [0.4, 0.3]
    """
    threads = check_threads(threads)
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number from 0 up, not {seed!r}.")
    rule = tables_of(model, log).rule
    key = np.random.SeedSequence(int(seed)).generate_state(1, np.uint64)[0]
    draw = draw_products if isinstance(rule, Product) else draw_last_clicks if isinstance(rule, LastClick) else draw_chains
    position, click = log.position, np.empty(log.n_rows, np.uint8)
    map_blocks(
        lambda first, last: draw(key, log.qd, position, log.offsets, *rule, first, last, click),
        log.offsets,
        documents=BLOCK,
        threads=threads,
    )
    return click


def as_table(log: ClickLog) -> pa.Table:
    """A log with a row per document shown, as `ClickLog.from_table` reads it.

    Columns session_id (numbers from 0), query_id (where there are queries), doc_id, position, click, and weight (where sessions have any).
    Empty sessions leave no row.
    """
    import pyarrow as pa

    session = np.repeat(np.arange(log.n_sessions), np.diff(log.offsets))
    columns: dict[str, Any] = {"session_id": session}
    if log.queries is not None:
        columns["query_id"] = pa.DictionaryArray.from_arrays(pa.array(log.query[session]), log.queries)
    columns |= {"doc_id": pa.DictionaryArray.from_arrays(pa.array(log.pair_doc[log.qd]), log.docs), "position": log.position}
    columns["click"] = log.click
    if log.weight is not None:
        columns["weight"] = log.weight[session]
    return pa.table(columns)

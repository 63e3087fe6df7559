"""Kernels and sums of counterfactual values: clicks weighed by the inverse of the exposure that they had.

Arguments that go together come as tuples. rows: offsets, position, new_position, click, qd and slot, which is the position or the pair.
expected: noise and exposure per position, guess per pair, and its step (0: the same for all). weight: per row, and its step. gains: per
rank, 0 at rank 0 and at its last entry; and, for the logged ranks, per slot.
"""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def _surplus(rows: Any, expected: Any, i: Any) -> Any:
    """click - noise - exposure · guess of a row."""
    position, click, qd = rows[1], rows[3], rows[4]
    noise, exposure, guess, step = expected
    k = position[i]
    return click[i] - noise[k] - exposure[k] * guess[qd[i] * step]


@kernel
def weigh_sessions(
    rows: Any, expected: Any, weight: Any, gains: Any, inverse: Any, first: Any, last: Any, new: Any, logged: Any, mass: Any
) -> None:
    """Per session Σ gain · surplus / exposure under the new ranks and under the logged ones, and Σ surplus / exposure.

    inverse: 1 / exposure per slot.
    """
    offsets, new_position, slot = rows[0], rows[2], rows[5]
    times, step = weight
    gain, logged_gain = gains
    deepest = gain.shape[0] - 1
    for s in range(first, last):
        new[s] = logged[s] = mass[s] = 0.0
        for i in range(offsets[s], offsets[s + 1]):
            v = _surplus(rows, expected, i)
            if v != 0.0:
                x = v * inverse[slot[i]] * times[i * step]
                new[s] += gain[min(new_position[i], deepest)] * x
                logged[s] += logged_gain[slot[i]] * x
                mass[s] += x


@kernel
def weigh_slots(rows: Any, expected: Any, weight: Any, gains: Any, sessions: Any, first: Any, last: Any, out: Any) -> None:
    """Add to out[:, slot] what its exposure divides: Σ gain · surplus under the new and the logged ranks, and Σ surplus.

    sessions: how often each session counts.
    """
    offsets, new_position, slot = rows[0], rows[2], rows[5]
    times, step = weight
    gain, logged_gain = gains
    deepest = gain.shape[0] - 1
    for s in range(first, last):
        for i in range(offsets[s], offsets[s + 1]):
            v = _surplus(rows, expected, i)
            if v != 0.0:
                x = v * sessions[s] * times[i * step]
                out[0, slot[i]] += gain[min(new_position[i], deepest)] * x
                out[1, slot[i]] += logged_gain[slot[i]] * x
                out[2, slot[i]] += x

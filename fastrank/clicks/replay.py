"""Kernels and sums of counterfactual values: clicks weighed by the inverse of the exposure that they had."""

from __future__ import annotations

from typing import Any

from fastrank._kernel import kernel


@kernel
def weigh_sessions(
    offsets: Any,
    position: Any,
    new_position: Any,
    click: Any,
    qd: Any,
    noise: Any,
    exposure: Any,
    guess: Any,
    step: Any,
    slot: Any,
    inverse: Any,
    weight: Any,
    weight_step: Any,
    gain: Any,
    logged_gain: Any,
    first: Any,
    last: Any,
    new: Any,
    logged: Any,
    mass: Any,
) -> None:
    """Per session Σ gain · v / exposure under the new ranks and under the logged ones, and Σ v / exposure.

    v = click - noise - exposure · guess, of which noise and exposure go by position and guess by pair (step 0: the same for all).
    inverse: 1 / exposure per slot, which is the position or the pair. gain: per rank, 0 at rank 0 and at its last entry;
    logged_gain: per slot.
    """
    deepest = gain.shape[0] - 1
    for s in range(first, last):
        new[s] = logged[s] = mass[s] = 0.0
        for i in range(offsets[s], offsets[s + 1]):
            k = position[i]
            v = click[i] - noise[k] - exposure[k] * guess[qd[i] * step]
            if v != 0.0:
                x = v * inverse[slot[i]] * weight[i * weight_step]
                new[s] += gain[min(new_position[i], deepest)] * x
                logged[s] += logged_gain[slot[i]] * x
                mass[s] += x


@kernel
def weigh_slots(
    offsets: Any,
    position: Any,
    new_position: Any,
    click: Any,
    qd: Any,
    noise: Any,
    exposure: Any,
    guess: Any,
    step: Any,
    slot: Any,
    times: Any,
    weight: Any,
    weight_step: Any,
    gain: Any,
    logged_gain: Any,
    first: Any,
    last: Any,
    out: Any,
) -> None:
    """Add to out[:, slot] what its exposure divides: Σ gain · v under the new and the logged ranks, and Σ v. times: of each session."""
    deepest = gain.shape[0] - 1
    for s in range(first, last):
        for i in range(offsets[s], offsets[s + 1]):
            k = position[i]
            v = click[i] - noise[k] - exposure[k] * guess[qd[i] * step]
            if v != 0.0:
                x = v * times[s] * weight[i * weight_step]
                out[0, slot[i]] += gain[min(new_position[i], deepest)] * x
                out[1, slot[i]] += logged_gain[slot[i]] * x
                out[2, slot[i]] += x

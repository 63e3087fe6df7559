"""A few seeded inputs for every parser: `fuzz_parsers` says what must hold, and keeps at it for longer."""

from __future__ import annotations

import random

import pytest
from fuzz_parsers import SEEDS, TARGETS, TOKENS, mutated
from hypothesis import given
from hypothesis import strategies as st

FRAGMENTS = st.one_of(st.sampled_from(TOKENS), st.binary(max_size=6), st.sampled_from([b"q1", b"d1", b"1", b"0.5", b" ", b"\n"]))


@pytest.mark.parametrize("name", TARGETS)
def test_the_seeds_are_read(name: str) -> None:
    for seed in SEEDS[TARGETS[name]]:
        TARGETS[name](seed)


@pytest.mark.parametrize("name", TARGETS)
@given(parts=st.lists(FRAGMENTS, max_size=30))
def test_any_bytes_give_a_value_or_an_error_of_one_line(name: str, parts: list[bytes]) -> None:
    TARGETS[name](b"".join(parts))


@pytest.mark.parametrize("name", TARGETS)
def test_any_mutation_gives_a_value_or_an_error_of_one_line(name: str) -> None:
    rng = random.Random(name)
    for seed in SEEDS[TARGETS[name]]:
        for _ in range(100):
            TARGETS[name](mutated(seed, rng))


# Inputs that once broke a parser.
FOUND: dict[str, list[bytes]] = {
    "table": [b'"q1 0 d 1\n, "label"\n: 1,"score": 0.5}\n{"query_id":: \nnull,0re",: 0.5}\n'],
    "metric_names": [b"set_F_0.,5", b"set_F.0.5,1", b"set_F_-1", b"rbp.p=0.5,p=0.6"],
}


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, found in FOUND.items() for data in found])
def test_what_was_found_once(name: str, data: bytes) -> None:
    TARGETS[name](data)

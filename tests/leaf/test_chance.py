"""Numbers that follow from a key: the published ones, evenly spread, a function of the key."""

from __future__ import annotations

import math

import pytest

from leaf.chance import GAMMA, MASK, KeyedRandom, key_of, mixed

DRAWS = 20_000
KOLMOGOROV = 1.95
"""The largest distance between a sample's distribution and its law, times the root of the
sample's size, is above this in one sample of a thousand."""


def test_it_is_the_published_generator() -> None:
    """The first numbers of SplitMix64 from the state 1234567, as its implementations give them."""
    states = [(1234567 + step * GAMMA) & MASK for step in range(1, 6)]
    assert [mixed(state) for state in states] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_a_key_begins_the_same_numbers_again() -> None:
    """Whatever was drawn before; and another key begins others."""
    random = KeyedRandom()
    random.begin(7)
    first = [random.lognormvariate(0.0, 1.0), random.randrange(1000), random.random()]
    random.begin(8)
    other = [random.lognormvariate(0.0, 1.0), random.randrange(1000), random.random()]
    random.begin(7)
    assert [random.lognormvariate(0.0, 1.0), random.randrange(1000), random.random()] == first
    assert other != first


def test_the_first_numbers_of_neighbouring_keys_are_spread_evenly() -> None:
    """As if one generator had drawn them all: keys are counted upwards, and few are drawn of."""
    random = KeyedRandom()
    drawn: list[float] = []
    for number in range(DRAWS):
        random.begin(key_of(1, number))
        drawn.append(random.random())
    assert 0.0 <= min(drawn) < max(drawn) < 1.0
    distance = max(abs(x - (rank + 0.5) / DRAWS) for rank, x in enumerate(sorted(drawn)))
    assert distance * math.sqrt(DRAWS) < KOLMOGOROV


@pytest.mark.parametrize(
    ("one", "other"), [((1, 2), (2, 1)), ((1,), (1, 0)), ((0,), ()), ((-1,), (1,))]
)
def test_other_integers_are_another_key(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    """Their order and their number count."""
    assert key_of(*one) != key_of(*other)


def test_a_key_can_be_built_on() -> None:
    """What is common to many keys need be worked out once."""
    assert key_of(3, 4, beginning=key_of(1, 2)) == key_of(1, 2, 3, 4)

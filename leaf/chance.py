"""Chance that is a function of a key: the same integers always give the same numbers.

Python's own generator takes ten microseconds to be seeded, which for each rule and each leg
would be the greatest trouble of all. This is SplitMix64 (G. Steele, D. Lea, C. Flood, Fast
splittable pseudorandom number generators, OOPSLA 2014), which begins anywhere for nothing.
"""

from __future__ import annotations

from random import Random
from typing import Final

MASK: Final = 2**64 - 1
GAMMA: Final = 0x9E3779B97F4A7C15
"""An odd number near 2**64 over the golden ratio: the step from one state to the next."""


def mixed(state: int) -> int:
    """Return 64 bits, each of which depends on all 64 of ``state``."""
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB & MASK
    return state ^ (state >> 31)


def key_of(*parts: int, beginning: int = 0) -> int:
    """Return a key for these integers in this order, with those before them in ``beginning``."""
    key = beginning
    for part in parts:
        key = mixed((key ^ (part & MASK)) + GAMMA & MASK)
    return key


class KeyedRandom(Random):
    """A generator without chance of its own: call ``begin`` with a key first."""

    def __init__(self) -> None:
        super().__init__(0)  # what this seeds is never used
        self._state = 0

    def begin(self, key: int) -> None:
        """Begin the numbers of a key."""
        self._state = key

    def random(self) -> float:
        """Return the next number, from 0 up to and without 1."""
        self._state = state = (self._state + GAMMA) & MASK
        return float((mixed(state) >> 11) * 2.0**-53)

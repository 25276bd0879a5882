"""What simulated leaves with queues are, and what befalls them: spells of slowness, crashes.

Spells and crashes come at random, each leaf by itself, and are drawn from the seed and the
leaf's name alone: every policy meets the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

NEVER_S: Final = math.inf

Episode = tuple[float, float]
"""From when to when something lasts, in seconds."""


@dataclass(frozen=True, slots=True)
class Machines:
    """The parameters. Times in seconds, shares from 0 to 1.

    Between two spells, and between two crashes, pass ``..._every_s`` on average.
    """

    workers: int
    """Legs that a leaf works on at once; others wait, first come, first served."""
    queue_legs: int
    """Legs that may wait; more are refused as busy."""
    utilisation: float
    """Share of the time that workers are busy without any extra attempt."""
    spell_every_s: float = NEVER_S
    spell_s: float = 1.0
    """How long a spell lasts on average."""
    spell_factor: float = 1.0
    """In a spell all work takes so many times as long."""
    crash_every_s: float = NEVER_S
    down_s: float = 1.0
    """How long a leaf stays away on average."""
    error_share: float = 0.0
    """So many legs fail when they have been worked on."""

    def __post_init__(self) -> None:
        """Raise ValueError, naming the parameter, for a value out of range."""
        for name, low, high in (
            ("workers", 1, 1000),
            ("queue_legs", 0, 1_000_000),
            ("utilisation", 0.001, 10.0),
            ("error_share", 0.0, 1.0),
            ("spell_factor", 1.0, 1e6),
            ("spell_s", 1e-6, 1e6),
            ("down_s", 1e-6, 1e6),
            ("spell_every_s", 1e-6, NEVER_S),
            ("crash_every_s", 1e-6, NEVER_S),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high}, not {getattr(self, name)}")

    @property
    def stretch(self) -> float:
        """By what factor spells make work longer on average."""
        slow = self.spell_s / (self.spell_s + self.spell_every_s)
        return 1.0 / (1.0 - slow + slow / self.spell_factor)


def episodes(random: Random, every_s: float, length_s: float) -> Iterator[Episode]:
    """Random episodes, in order and without end; none without a rate."""
    now = 0.0
    while every_s < NEVER_S:
        begins_s = now + random.expovariate(1.0 / every_s)
        now = begins_s + random.expovariate(1.0 / length_s)
        yield begins_s, now


class Speed:
    """How fast a leaf works: spells slow down whatever is worked on in them."""

    __slots__ = ("_factor", "_spells", "_upcoming")

    def __init__(self, factor: float, spells: Iterator[Episode]) -> None:
        """``spells`` in order; they are drawn as time goes on."""
        self._factor = factor
        self._spells = spells
        self._upcoming: list[Episode] = []

    def end_of(self, work_s: float, now: float) -> float:
        """When work that begins now is done. ``now`` must never go back."""
        upcoming = self._upcoming
        while upcoming and upcoming[0][1] <= now:
            del upcoming[0]
        place = 0
        while True:
            if place == len(upcoming):
                upcoming.append(next(self._spells, (NEVER_S, NEVER_S)))
            begins_s, ends_s = upcoming[place]
            if now + work_s <= begins_s:
                return now + work_s
            work_s -= max(0.0, begins_s - now)
            now = max(now, begins_s)
            if now + work_s * self._factor <= ends_s:
                return now + work_s * self._factor
            work_s -= (ends_s - now) / self._factor
            now = ends_s
            place += 1

"""Background work of simulated leaves: again and again, for a while, a leaf does nothing else.

All leaves do as much of it; only when differs. At random, each has a phase of its own; in step,
all begin at the same instant, up to what their clocks differ by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Background:
    """``lasts_s`` of background work every ``period_s``. Raises ValueError, naming the field."""

    period_s: float
    lasts_s: float
    in_step: bool
    skew_s: float = 0.002
    """By how much clocks that are kept by NTP may differ within a data centre."""

    def __post_init__(self) -> None:
        """Refuse what leaves no time for queries."""
        if not 0.001 <= self.period_s <= 3600.0:
            raise ValueError(f"period_s must be from 0.001 to 3600, not {self.period_s}")
        if not 0.0 < self.lasts_s < self.period_s:
            raise ValueError(f"lasts_s must be above 0 and below period_s, not {self.lasts_s}")
        if not 0.0 <= self.skew_s < self.period_s:
            raise ValueError(f"skew_s must be from 0 to below period_s, not {self.skew_s}")

    def of(self, random: Random) -> Pauses:
        """Draw when one leaf pauses."""
        begins_s = random.uniform(0.0, self.skew_s if self.in_step else self.period_s)
        return Pauses(begins_s, self.period_s, self.lasts_s)


class Pauses:
    """When one leaf does its background work: from ``begins_s`` on, every period."""

    __slots__ = ("_begins_s", "_lasts_s", "_period_s")

    def __init__(self, begins_s: float, period_s: float, lasts_s: float) -> None:
        self._begins_s = begins_s
        self._period_s = period_s
        self._lasts_s = lasts_s

    def took_s(self, work_s: float, now: float) -> float:
        """Return how long work takes that begins now: as long as it is, and the pauses in it."""
        since_s = (now - self._begins_s) % self._period_s
        waited_s = max(0.0, self._lasts_s - since_s)
        undisturbed_s = self._period_s - max(since_s, self._lasts_s)
        if work_s <= undisturbed_s:
            return waited_s + work_s
        more = math.ceil((work_s - undisturbed_s) / (self._period_s - self._lasts_s))
        return waited_s + work_s + more * self._lasts_s

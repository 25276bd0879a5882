"""What a budget should have said, from what was seen: answers that earned, attempts that cost.

The promise (``root.budget``) is about every window of time: with w its length in seconds and n
the legs answered in it,

    extra attempts <= n * max_extra_load + w * floor_per_s + burst

There are as many windows as pairs of instants, but one pass is enough. With

    p(t) = extra attempts so far - legs answered so far * max_extra_load - t * floor_per_s

the promise is p(after t) - p(before s) <= burst for all s <= t, so only the least p so far
matters. Of what happens at one instant the order is not known: the promise is judged in the
order that is best for the budget, and whether it was empty in the order that is worst for it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from root.budget import BudgetTerms, burst_for

ROUNDING: Final = 1e-6
"""Of a token: sums of shares in floating point."""


class Spending:
    """The ledger of one budget over a whole run."""

    def __init__(
        self,
        terms: BudgetTerms,
        shards: int,
        earned: Iterable[tuple[float, int]],
        spent: Iterable[float],
    ) -> None:
        """``earned`` are (second, legs answered), ``spent`` the seconds of extra attempts."""
        load = terms.max_extra_load
        burst = burst_for(shards) if terms.burst is None else terms.burst
        self._burst = burst if load else 0.0
        self._floor_per_s = terms.floor_per_s if load else 0.0
        changes: dict[float, list[float]] = {}
        for second, legs in earned:
            changes.setdefault(second, [0.0, 0.0])[0] += legs * load
        for second in spent:
            changes.setdefault(second, [0.0, 0.0])[1] += 1.0
        self._instants = sorted(changes)
        self.overdrawn_s = self._overdrawn(changes)
        self._levels = self._least_levels(changes)

    def _overdrawn(self, changes: dict[float, list[float]]) -> list[tuple[float, float]]:
        """Return (second, tokens too many) of every instant at which the promise was broken."""
        overdrawn = []
        least = math.inf
        above_floor = 0.0
        for second in self._instants:
            earned, spent = changes[second]
            least = min(least, above_floor - second * self._floor_per_s)
            above_floor += spent - earned
            excess = above_floor - second * self._floor_per_s - least - self._burst
            if spent and excess > ROUNDING:
                overdrawn.append((second, excess))
        return overdrawn

    def _least_levels(self, changes: dict[float, list[float]]) -> list[tuple[float, float]]:
        """Return, by instant, the least the bucket may have held at and after it."""
        levels = []
        level, at_s = self._burst, 0.0
        for second in self._instants:
            earned, spent = changes[second]
            level = min(self._burst, level + (second - at_s) * self._floor_per_s)
            at_least = max(0.0, level - spent)
            level = max(0.0, min(self._burst, level + earned) - spent)
            levels.append((min(at_least, level), level))
            at_s = second
        return levels

    def may_be_empty(self, second: float, lent: int = 0) -> bool:
        """Whether there may have been less than a token at an instant; the places of so many that
        were ``lent`` are kept free.
        """
        at = bisect_left(self._instants, second)
        if at < len(self._instants) and self._instants[at] == second:
            least = self._levels[at][0]
        elif at == 0:
            least = self._burst
        else:
            since_s = second - self._instants[at - 1]
            least = min(self._burst, self._levels[at - 1][1] + since_s * self._floor_per_s)
        return least - lent < 1.0 + ROUNDING

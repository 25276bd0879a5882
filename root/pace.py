"""What an extra attempt costs: the price at which hedging spends the budget, and no more.

The budget says how many extra attempts there may be, not which. ``adaptive`` asks of each
that it pay: that the query have waited, in silence, a price for it. The price is learned, one
for each class of queries: after every query it rises if more was spent than wanted and falls
if less,

    log price += gain * (spent - wanted) / max(1, earned)
    earned = answered legs * max_extra_load
    wanted = earned * (1 + (2 * level / burst - 1) ** 3)

so that in the long run the bucket is neither full nor empty: there is always a token for a leg
that is worth it, and none is thrown away because the bucket is full. The level is chance while
it is about a half, and the cube leaves it at that: a price that followed it closely would be
twice as restless, and too low or too high by as much. An empty bucket (a storm, or failovers
that had to be paid) wants nothing and raises the price before anything is denied; a full one
wants twice what is earned.

This is the dual method for one constraint: the price is its multiplier.
"""

from __future__ import annotations

import math
from typing import Final

from root.budget import Budget
from root.latency import Latency

GAIN: Final = 0.01
"""How fast the price follows: it settles within a few hundred queries, and the luck of single
queries moves it by a tenth."""

GAIN_FIRST: Final = 0.1
"""At first it follows faster, by 1/n as a mean does, since the first guess is only a guess."""

FIRST_GUESS_Q: Final = 0.95
"""Of the history: a leg alone should wait about so long. Any guess is put right by learning."""

PRICE_MIN_S: Final = 1e-7
PRICE_MAX_S: Final = 1e4
"""Where nothing can be spent, or earned, for long, the price must stay a number from which it
finds back."""


class Pace:
    """The price of one class of queries, in seconds; None before there is any history."""

    __slots__ = ("_gain", "price_s")

    def __init__(self) -> None:
        """Start without a price: until there is one, nothing is worth an extra attempt."""
        self.price_s: float | None = None
        self._gain = GAIN_FIRST

    def settle(self, answered: int, spent: int, budget: Budget, history: Latency) -> None:
        """Learn from a query of which ``answered`` legs cost ``spent`` extra attempts."""
        if self.price_s is None:
            self.price_s = history.quantile(FIRST_GUESS_Q)
            return
        earned = answered * budget.terms.max_extra_load
        wanted = earned * (1.0 + (2.0 * budget.fullness - 1.0) ** 3)
        step = self._gain * (spent - wanted) / max(1.0, earned)
        self.price_s = min(PRICE_MAX_S, max(PRICE_MIN_S, self.price_s * math.exp(step)))
        self._gain = max(GAIN, self._gain / (1.0 + self._gain))

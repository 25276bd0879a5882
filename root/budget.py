"""How much extra load hedges and failovers may cause: a token bucket filled by successes.

Every answered leg earns ``max_extra_load`` tokens; every hedge, every probe of a leaf on
probation, and every failover after an error or a refusal, spends one. A small floor per second
lets a quiet system hedge at all (at one request a second, five per cent of it would come to one
hedge in twenty seconds), and ``burst`` bounds what can be saved up. So in any window of w
seconds with n answered legs

    extra attempts <= n * max_extra_load + w * floor_per_s + burst

which is what keeps a sick replica, or a slowdown of everything, from doubling the load.
Push-back (a leaf that says it is busy) stops hedging for a while: see ``push_back``.

The same mechanism, as a retry budget: Finagle's RetryBudget and BackupRequestFilter.
"""

from __future__ import annotations

from dataclasses import dataclass

PUSH_BACK_S = 1.0
"""How long hedging rests after a leaf said busy: long against a queue of milliseconds,
short against a person's patience. Every further busy prolongs it."""


@dataclass(frozen=True, slots=True)
class BudgetTerms:
    """The operator's limits. ``max_extra_load`` is a share: 0.05 is one attempt in twenty."""

    max_extra_load: float = 0.05
    floor_per_s: float = 1.0
    burst: float = 100.0

    def __post_init__(self) -> None:
        """Raise ValueError, naming the term, where a limit is out of range."""
        if not 0.0 <= self.max_extra_load <= 1.0:
            raise ValueError(f"max_extra_load must be from 0 to 1, not {self.max_extra_load}")
        if not 0.0 <= self.floor_per_s <= 1000.0:
            raise ValueError(f"floor_per_s must be from 0 to 1000, not {self.floor_per_s}")
        if not 0.0 <= self.burst <= 100_000.0:
            raise ValueError(f"burst must be from 0 to 100000, not {self.burst}")
        if 0.0 < self.burst < 1.0:
            raise ValueError(f"burst must be 0 or at least 1, a whole token, not {self.burst}")


class Budget:
    """The bucket. Not thread-safe; owned by one loop."""

    __slots__ = ("_at_s", "_pushed_back_until_s", "_tokens", "terms")

    def __init__(self, terms: BudgetTerms, now: float) -> None:
        """Start with a full bucket if anything may be spent at all."""
        self.terms = terms
        self._tokens = terms.burst if terms.max_extra_load > 0.0 else 0.0
        self._at_s = now
        self._pushed_back_until_s = now

    def earn(self, answered_legs: int) -> None:
        """Add what ``answered_legs`` successes are worth."""
        terms = self.terms
        self._tokens = min(terms.burst, self._tokens + answered_legs * terms.max_extra_load)

    def level(self, now: float) -> float:
        """Tokens in the bucket."""
        terms = self.terms
        if terms.max_extra_load > 0.0 and now > self._at_s:
            self._tokens = min(terms.burst, self._tokens + (now - self._at_s) * terms.floor_per_s)
        self._at_s = max(self._at_s, now)
        return self._tokens

    @property
    def allows_any(self) -> bool:
        """Whether the operator accepts any extra attempt at all."""
        return self.terms.max_extra_load > 0.0 and self.terms.burst > 0.0

    @property
    def fullness(self) -> float:
        """The level when it was last changed, as a share of the burst, from 0 to 1."""
        return self._tokens / self.terms.burst if self.terms.burst else 0.0

    def spend(self, now: float) -> bool:
        """Take one token for an extra attempt; False, and nothing taken, if there is none."""
        if self.level(now) < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def push_back(self, now: float) -> None:
        """Note that a leaf is busy: hedging rests, failovers do not."""
        self._pushed_back_until_s = max(self._pushed_back_until_s, now + PUSH_BACK_S)

    def resting(self, now: float) -> bool:
        """Whether hedging rests because of push-back."""
        return now < self._pushed_back_until_s

"""What is counted of attempts: in all, for metrics, and of one gather, for its answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from root.conduct import CONDUCT, FailureReason

Kind = Literal["primary", "hedge", "failover", "tied", "probe"]
Fate = Literal["in_flight", "won", "lost", "cancelled", "failed"]

KINDS: Final[tuple[Kind, ...]] = ("primary", "hedge", "failover", "tied", "probe")
FIRST_ATTEMPTS: Final[tuple[Kind, ...]] = ("primary", "failover")
"""The kinds of which a race has one in flight at most: what there would be without hedging."""

SECOND_ATTEMPTS: Final[tuple[Kind, ...]] = ("hedge", "tied")
"""The kinds that are sent while another attempt is at work."""

FATES: Final[tuple[Fate, ...]] = ("won", "lost", "cancelled", "failed")


@dataclass(slots=True)
class Ledger:
    """Every attempt ever sent, by kind and fate: plain counters, exported as metrics."""

    sent: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    ended: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(FATES, 0))
    hedge_wins: int = 0
    failures: dict[FailureReason, int] = field(default_factory=lambda: dict.fromkeys(CONDUCT, 0))
    denied: int = 0
    no_candidate: int = 0
    crowded: int = 0
    """Hedges not sent because their shard had too many."""
    tied_dropped: int = 0
    """Tied copies that left the queue because the other one had begun."""
    tied_duplicates: int = 0
    """Tied copies that were worked on although the other one was."""
    wasted_service_us: int = 0
    saved_s: float = 0.0
    """Time that hedges saved: from a hedge's answer to the end of the attempt it beat, which is
    no later than that would have answered."""

    @property
    def in_flight(self) -> int:
        """Attempts that have not ended."""
        return sum(self.sent.values()) - sum(self.ended.values())


@dataclass(slots=True)
class Tally:
    """Attempts of one gather, as its answer reports them."""

    sent: int = 0
    hedged: int = 0
    hedge_wins: int = 0
    failed_over: int = 0
    cancelled: int = 0
    denied: int = 0

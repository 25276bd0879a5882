"""One shard of one query: replicas race, the first acceptable answer wins.

Rules, in the order in which they decide:

1. A race starts with one attempt on the best replica; with no connected replica it is lost
   at once (``no_replica``).
2. The first answer wins. Exactly one answer is ever kept; every other attempt in flight is
   cancelled then.
3. A hedge is a further attempt while one is in flight; only the gather asks for one. It never
   goes to a replica that this race has tried.
4. When an attempt fails and nothing else is in flight, the next replica is tried at once.
   The table ``CONDUCT`` says for which failures, whether that draws on the budget, and
   whether the leaf is to blame. Where nothing can be started, the race is lost.
5. A decided race accepts late events; they change the attempt and the statistics, not the
   result.

An attempt ends once, with one fate:

    in_flight --answer, race open----> won
    in_flight --answer, race decided-> lost        (the cancel came too late)
    in_flight --cancel sent, then a refusal, a failure or the leaf's loss--> cancelled
    in_flight --failure or refusal---> failed

so that sent = won + lost + cancelled + failed once nothing is in flight. An event for an
attempt that has ended raises ``IllegalEvent`` and changes nothing.

Plain synchronous code: no clock, no loop, no randomness of its own. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal, NamedTuple

import msgspec

from leaf.protocol import RefusalReason
from root.budget import Budget
from root.latency import Latency
from root.pace import Pace
from root.ranking import Leaf, choose

Kind = Literal["primary", "hedge", "failover"]
Fate = Literal["in_flight", "won", "lost", "cancelled", "failed"]
FailureReason = RefusalReason | Literal["gone", "garbage"]
MissingReason = Literal["timeout", "no_replica", "error", "refused"]

KINDS: Final[tuple[Kind, ...]] = ("primary", "hedge", "failover")
FATES: Final[tuple[Fate, ...]] = ("won", "lost", "cancelled", "failed")


class Conduct(NamedTuple):
    """What follows from a failure."""

    next_replica: bool
    """Whether another replica may succeed where this one did not."""
    budgeted: bool
    """Whether trying it costs a token. Not where the leaf is gone: nobody does that work now."""
    blame: bool
    """Whether the leaf looks worse for it."""
    missing: MissingReason
    """What the answer says of the shard, if nothing else answers."""


CONDUCT: Final[dict[FailureReason, Conduct]] = {
    "gone": Conduct(next_replica=True, budgeted=False, blame=False, missing="no_replica"),
    "garbage": Conduct(next_replica=True, budgeted=True, blame=True, missing="error"),
    "error": Conduct(next_replica=True, budgeted=True, blame=True, missing="error"),
    "busy": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "unknown_shard": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "unknown_generation": Conduct(next_replica=True, budgeted=True, blame=False, missing="refused"),
    "cancelled": Conduct(next_replica=True, budgeted=True, blame=True, missing="error"),
    "expired": Conduct(next_replica=True, budgeted=True, blame=False, missing="timeout"),
    "bad_query": Conduct(next_replica=False, budgeted=False, blame=False, missing="refused"),
}


class IllegalEvent(Exception):
    """An event that cannot happen to this attempt: a fault in the driver or the transport."""


class Attempt(msgspec.Struct, gc=False):
    """One leg sent to one leaf. ``leg`` is the transport's own number for it."""

    number: int
    slot: int
    shard: int
    leaf: Leaf
    kind: Kind
    sent_s: float
    fate: Fate = "in_flight"
    cancel_sent: bool = False
    ended_s: float = 0.0
    leg: int = -1
    queue_us: int = 0
    service_us: int = 0
    reason: FailureReason | None = None


@dataclass(slots=True)
class Ledger:
    """Every attempt ever sent, by kind and fate: plain counters, exported as metrics."""

    sent: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    ended: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(FATES, 0))
    hedge_wins: int = 0
    failures: dict[FailureReason, int] = field(default_factory=lambda: dict.fromkeys(CONDUCT, 0))
    denied: int = 0
    no_candidate: int = 0
    wasted_service_us: int = 0

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


@dataclass(slots=True)
class Terms:
    """What the races of one gather have in common."""

    random: Random
    budget: Budget
    ledger: Ledger
    history: Latency
    attempts_max: int = 2
    pace: Pace = field(default_factory=Pace)
    tally: Tally = field(default_factory=Tally)


class Race(msgspec.Struct, gc=False):
    """One shard: its replicas, its attempts, its one answer. ``slot`` is its place in the
    gather. (A struct because a query makes one for every shard.)
    """

    slot: int
    shard: int
    replicas: Sequence[Leaf]
    attempts: list[Attempt] = []
    in_flight: int = 0
    reply: Any = None
    missing: MissingReason | None = None
    detail: str = ""
    denied: bool = False

    @property
    def decided(self) -> bool:
        """Whether there is an answer or the certainty that none will come."""
        return self.reply is not None or self.missing is not None

    def start(self, number: int, terms: Terms, now: float) -> Attempt | None:
        """Send to the best replica; None, and the race lost, where there is none."""
        leaf = choose(self.replicas, (), terms.random, now)
        if leaf is None:
            self.missing = "no_replica"
            return None
        return self._send(number, leaf, "primary", terms, now)

    def hedge(
        self, number: int, terms: Terms, now: float
    ) -> Attempt | Literal["no_candidate", "denied"]:
        """Send a copy to a replica not tried yet, if there is one and a token for it."""
        leaf = choose(self.replicas, [a.leaf for a in self.attempts], terms.random, now)
        if leaf is None:
            terms.ledger.no_candidate += 1
            return "no_candidate"
        if not self._afford(terms, now):
            return "denied"
        terms.tally.hedged += 1
        return self._send(number, leaf, "hedge", terms, now)

    def may_hedge(self, terms: Terms) -> bool:
        """Whether rule 3 and the limit of attempts allow one more."""
        most = terms.attempts_max
        return (
            self.in_flight > 0
            and self.reply is None
            and self.missing is None
            # Asked after every frame, and most races have one attempt: nothing to count.
            and (len(self.attempts) < most or self._counted_attempts() < most)
        )

    def replied(self, attempt: Attempt, reply: Any, terms: Terms, now: float) -> Sequence[Attempt]:
        """Take an answer; return the attempts to cancel."""
        took_s = now - attempt.sent_s
        if self.reply is not None or self.missing is not None:
            self._end(attempt, "lost", terms, now)
            attempt.leaf.answered(took_s)
            terms.ledger.wasted_service_us += attempt.service_us
            return ()
        self._end(attempt, "won", terms, now)
        attempt.leaf.answered(took_s)
        terms.history.finished(took_s)
        if attempt.kind == "hedge":
            terms.ledger.hedge_wins += 1
            terms.tally.hedge_wins += 1
        self.reply = reply
        return self._cancel_rest(terms, now) if self.in_flight else ()

    @property
    def longest_in_flight(self) -> Attempt:
        """The attempt that has waited longest; only while one is in flight."""
        return next(a for a in self.attempts if a.fate == "in_flight")

    def failed(
        self,
        attempt: Attempt,
        reason: FailureReason,
        number: int,
        terms: Terms,
        now: float,
        *,
        too_late: bool = False,
    ) -> Attempt | None:
        """Take a failure or a refusal; return the attempt to send next, if any.

        ``too_late``: the deadline has come, so nothing is sent any more.
        """
        if attempt.cancel_sent:
            self._end(attempt, "cancelled", terms, now)
            terms.ledger.wasted_service_us += attempt.service_us
            return None
        self._end(attempt, "failed", terms, now)
        attempt.reason = reason
        terms.ledger.failures[reason] += 1
        conduct = CONDUCT[reason]
        if conduct.blame:
            attempt.leaf.failed(now)
        if reason == "busy":
            terms.budget.push_back(now)
        if self.decided or self.in_flight:
            return None
        leaf = None if too_late else self._next_replica(conduct, terms, now)
        if leaf is None:
            self.missing = conduct.missing
            return None
        terms.tally.failed_over += 1
        return self._send(number, leaf, "failover", terms, now)

    def give_up(self, missing: MissingReason, terms: Terms, now: float) -> Sequence[Attempt]:
        """Decide without an answer; return the attempts to cancel."""
        self.missing = missing
        return self._cancel_rest(terms, now)

    def _next_replica(self, conduct: Conduct, terms: Terms, now: float) -> Leaf | None:
        if not conduct.next_replica:
            return None
        if conduct.budgeted and self._counted_attempts() >= terms.attempts_max:
            return None
        leaf = choose(self.replicas, [a.leaf for a in self.attempts], terms.random, now)
        if leaf is None:
            terms.ledger.no_candidate += 1
            return None
        return leaf if not conduct.budgeted or self._afford(terms, now) else None

    def _afford(self, terms: Terms, now: float) -> bool:
        """Spend a token; a race that is denied one counts once, however often it asks."""
        if terms.budget.spend(now):
            return True
        if not self.denied:
            self.denied = True
            terms.ledger.denied += 1
            terms.tally.denied += 1
        return False

    def _counted_attempts(self) -> int:
        """Attempts that somebody is doing or has done: those on lost leaves cost nobody."""
        return sum(a.reason != "gone" for a in self.attempts)

    def _send(self, number: int, leaf: Leaf, kind: Kind, terms: Terms, now: float) -> Attempt:
        attempt = Attempt(number, self.slot, self.shard, leaf, kind, now)
        self.attempts.append(attempt)
        self.in_flight += 1
        leaf.chosen(now)
        terms.ledger.sent[kind] += 1
        return attempt

    def _end(self, attempt: Attempt, fate: Fate, terms: Terms, now: float) -> None:
        if attempt.fate != "in_flight":
            raise IllegalEvent(f"attempt {attempt.number} has already {attempt.fate}, not {fate}")
        attempt.fate = fate
        attempt.ended_s = now
        attempt.leaf.outstanding -= 1
        terms.ledger.ended[fate] += 1
        if not attempt.cancel_sent:
            self.in_flight -= 1

    def _cancel_rest(self, terms: Terms, now: float) -> Sequence[Attempt]:
        """Mark what is in flight as cancelled; the losers are censored samples."""
        cancelled = [a for a in self.attempts if a.fate == "in_flight" and not a.cancel_sent]
        for attempt in cancelled:
            attempt.cancel_sent = True
            waited_s = now - attempt.sent_s
            terms.history.at_least(waited_s)
            attempt.leaf.took_at_least(waited_s)
        self.in_flight = 0
        terms.tally.cancelled += len(cancelled)
        return cancelled

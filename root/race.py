"""One shard of one query: replicas race, the first acceptable answer wins.

Rules, in the order in which they decide:

1. A race starts with one attempt on the best replica; with no connected replica it is lost
   at once (``no_replica``).
2. The first answer wins. Exactly one answer is ever kept; every other attempt in flight is
   cancelled then.
3. A hedge is a further attempt while one is in flight; only the gather asks for one. It never
   goes to a replica that this race has tried.
4. When an attempt fails and nothing else is in flight, the next replica is tried at once.
   The table ``root.conduct`` says for which failures, whether that draws on the budget, and
   whether the leaf is to blame. Where nothing can be started, the race is lost. So it is
   when more leaves than ``losses_max`` were lost under it: it may be what ends them.
5. A decided race accepts late events; they change the attempt and the statistics, not the
   result.
6. A probe is sent beside the first attempt to measure a leaf on probation. Nobody waits for it
   while another attempt is in flight or can be sent, and no limit of attempts counts it. It is
   measured to its end: another attempt's win does not cancel it, only the end of the whole
   query does. An answer is an answer, though: where it comes first it wins, and where nothing
   else is left it is waited for, since the replica that has it is no candidate any more.
7. A first attempt may name a ``twin``: the leaf that a tied copy is to go to. The leaf that
   begins has the other drop its copy. A copy that was dropped is no failure while its twin is
   in flight, and no attempt: its leaf may be tried again, should the twin's fail. Its token
   goes back. Where both begin, the first answer wins as ever, and the duplicate is counted.

An attempt ends once, with one fate:

    in_flight --answer, race open----> won
    in_flight --answer, race decided-> lost        (the cancel came too late)
    in_flight --cancel sent, then a refusal, a failure or the leaf's loss--> cancelled
    in_flight --its twin has begun---> cancelled
    in_flight --failure or refusal---> failed

so that sent = won + lost + cancelled + failed once nothing is in flight. An event for an
attempt that has ended raises ``IllegalEvent`` and changes nothing.

Plain synchronous code: no clock, no loop, no randomness of its own. Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Literal

import msgspec

from root.budget import Budget
from root.conduct import CONDUCT, LOST, Conduct, FailureReason, MissingReason
from root.latency import Latency
from root.ledger import FIRST_ATTEMPTS, SECOND_ATTEMPTS, Fate, Kind, Ledger, Tally
from root.pace import Pace
from root.probation import Probation
from root.ranking import Leaf, choose

LOSSES_MAX: Final = 1
"""Leaves that may be lost under one race before it is given up: a coincidence of two is rare,
and a query that ends leaves must not get a third."""


class IllegalEvent(Exception):
    """An event that cannot happen to this attempt: a fault in the driver or the transport."""


class Attempt(msgspec.Struct, gc=False):
    """One leg, the transport's ``leg``, sent to one leaf; ``retry_ms`` is its hint if busy."""

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
    retry_ms: int = 0
    leaf_gone: bool = False
    """Whether it ended with its leaf's connection, whatever its fate."""
    twin: Leaf | None = None

    @property
    def dropped(self) -> bool:
        """Whether it never began because its twin had."""
        return self.fate == "cancelled" and self.reason == "twin_began"

    @property
    def done_for_nothing(self) -> bool:
        """Whether it has ended and cost its leaf no work."""
        return self.fate == "cancelled" and not self.service_us


@dataclass(slots=True)
class Terms:
    """What the races of one gather have in common. With ``probation`` it probes its leaves."""

    random: Random
    budget: Budget
    ledger: Ledger
    history: Latency
    attempts_max: int = 2
    pace: Pace = field(default_factory=Pace)
    tally: Tally = field(default_factory=Tally)
    probation: Probation | None = None
    losses_max: int = LOSSES_MAX
    collection: str = ""


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

    def start(self, number: int, terms: Terms, now: float, *, tied: bool = False) -> Attempt | None:
        """Send to the best replica; None, and the race lost, where there is none.

        ``tied``: it names a twin, if there is a second replica.
        """
        leaf = choose(self.replicas, (), terms.random, now)
        if leaf is None:
            self.missing = "no_replica"
            return None
        primary = self._send(number, leaf, "primary", terms, now)
        if tied:
            primary.twin = choose(self.replicas, [leaf], terms.random, now)
        return primary

    def hedge(
        self, number: int, terms: Terms, now: float, tied_to: Attempt | None = None
    ) -> Attempt | Literal["no_candidate", "denied"]:
        """Send a copy to a replica not tried yet, if there is one, and a token for it, and the
        shard has not had too many (of tied copies, of those that were done twice).

        ``tied_to`` has named the only one that will do.
        """
        twin = tied_to and tied_to.twin
        leaf = choose([twin] if twin else self.replicas, self._tried(), terms.random, now)
        if leaf is None:
            terms.ledger.no_candidate += 1
            return "no_candidate"
        if terms.budget.crowded(self.shard, terms.collection):
            terms.ledger.crowded += 1
            return "no_candidate"
        if not self._afford(terms, now, needed=False, lent=tied_to is not None):
            return "denied"
        terms.tally.hedged += 1
        if tied_to is None:
            terms.budget.hedged(self.shard, terms.collection)
            return self._send(number, leaf, "hedge", terms, now)
        copy = self._send(number, leaf, "tied", terms, now)
        copy.twin = tied_to.leaf
        return copy

    def may_probe(self, leaf: Leaf) -> bool:
        """Whether ``leaf`` is a replica that this race has not tried."""
        return leaf in self.replicas and all(a.leaf is not leaf for a in self.attempts)

    def probe(self, number: int, leaf: Leaf, terms: Terms, now: float) -> Attempt:
        """Send a probe to ``leaf``, which is on probation; the token for it has been spent."""
        attempt = self._send(number, leaf, "probe", terms, now)
        leaf.probed_by(attempt, now)
        return attempt

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
            self._end_late(attempt, "lost", terms, now)
            _took(attempt, took_s)
            return ()
        self._end(attempt, "won", terms, now)
        if attempt.kind == "probe":
            attempt.leaf.probe_took(took_s)
        else:
            attempt.leaf.answered(took_s)
            terms.history.finished(took_s)
            if attempt.kind in SECOND_ATTEMPTS:
                terms.ledger.hedge_wins += 1
                terms.tally.hedge_wins += 1
        self.reply = reply
        return self._cancel_rest(terms, now, probes_too=False) if self.in_flight else ()

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
            self._end_late(attempt, "cancelled", terms, now)
            attempt.leaf_gone = reason == "gone"
            if reason == "cancelled" and attempt.service_us:
                # The work had begun and was done: the wait was cancelled, not the measurement.
                _took(attempt, now - attempt.sent_s)
            return None
        conduct = CONDUCT[reason]
        if reason == "twin_began" and attempt.twin is not None:
            self._drop(attempt, terms, now)
        else:
            self._fail(attempt, reason, conduct, terms, now)
        if self.decided or (self.in_flight and self._is_waited_for()):
            return None
        leaf = None if too_late else self._next_replica(conduct, terms, now)
        if leaf is None:
            if not (self.in_flight and conduct.next_replica):
                self.missing = conduct.missing
            return None
        terms.tally.failed_over += 1
        return self._send(number, leaf, "failover", terms, now)

    def give_up(self, missing: MissingReason, terms: Terms, now: float) -> Sequence[Attempt]:
        """End the query for this race, without an answer if there is none; return what to
        cancel: with the query's end nothing is waited for any more, not even probes.
        """
        if not self.decided:
            self.missing = missing
        return self._cancel_rest(terms, now, probes_too=True) if self.in_flight else ()

    def _drop(self, attempt: Attempt, terms: Terms, now: float) -> None:
        """End a tied copy whose twin has begun: it waited, and cost nothing."""
        self._end(attempt, "cancelled", terms, now)
        attempt.reason = "twin_began"
        terms.ledger.tied_dropped += 1
        waited_s = now - attempt.sent_s
        terms.history.at_least(waited_s)
        attempt.leaf.took_at_least(waited_s)

    def _fail(
        self, attempt: Attempt, reason: FailureReason, conduct: Conduct, terms: Terms, now: float
    ) -> None:
        """End an attempt that has failed, and tell whom it concerns."""
        self._end(attempt, "failed", terms, now)
        attempt.leaf_gone = reason == "gone"
        attempt.reason = reason
        terms.ledger.failures[reason] += 1
        if conduct.blame:
            attempt.leaf.failed(now)
            terms.budget.failed(now)
        if reason == "busy":
            terms.budget.push_back(now)
            attempt.leaf.full(attempt.retry_ms / 1000.0, now)
        if reason == "expired" and attempt.kind == "probe":
            attempt.leaf.probe_took_at_least(now - attempt.sent_s)

    def _tried(self) -> list[Leaf]:
        """Leaves that have the leg, or have had it for more than a place in the queue."""
        return [a.leaf for a in self.attempts if not a.dropped]

    def _next_replica(self, conduct: Conduct, terms: Terms, now: float) -> Leaf | None:
        lost = sum(a.reason in LOST for a in self.attempts)
        enough = lost > terms.losses_max or self._counted_attempts() >= terms.attempts_max
        if not conduct.next_replica or enough:
            return None
        leaf = choose(self.replicas, self._tried(), terms.random, now)
        if leaf is None:
            terms.ledger.no_candidate += 1
            return None
        return leaf if not conduct.budgeted or self._afford(terms, now, needed=True) else None

    def _afford(self, terms: Terms, now: float, *, needed: bool, lent: bool = False) -> bool:
        """Spend a token; a race that is denied one counts once, however often it asks."""
        if terms.budget.lend(now) if lent else terms.budget.spend(now, needed=needed):
            return True
        if not self.denied:
            self.denied = True
            terms.ledger.denied += 1
            terms.tally.denied += 1
        return False

    def _counted_attempts(self) -> int:
        """Attempts made for the answer, that somebody is doing or has done: those on lost leaves
        cost nobody.
        """
        return sum(
            a.reason not in LOST and a.kind != "probe" and not a.dropped for a in self.attempts
        )

    def _is_waited_for(self) -> bool:
        """Whether an attempt is in flight that is not a mere probe."""
        return any(
            a.fate == "in_flight" and not a.cancel_sent and a.kind != "probe" for a in self.attempts
        )

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
        if attempt.twin is not None:
            self._settle_tie(attempt, terms)

    def _settle_tie(self, attempt: Attempt, terms: Terms) -> None:
        """Give the token back if one copy of two was never begun; count them if both were."""
        other = next((a for a in self.attempts if a.twin is not None and a is not attempt), None)
        if other is None or other.done_for_nothing:
            return
        if attempt.done_for_nothing:
            terms.budget.give_back()
        elif other.fate != "in_flight":
            terms.budget.keep()
            if attempt.service_us and other.service_us:
                terms.ledger.tied_duplicates += 1
                terms.budget.hedged(self.shard, terms.collection)

    def _end_late(self, attempt: Attempt, fate: Fate, terms: Terms, now: float) -> None:
        """End an attempt that nobody waits for: what it cost, and what waiting would have."""
        self._end(attempt, fate, terms, now)
        terms.ledger.wasted_service_us += attempt.service_us
        winner = next((a for a in self.attempts if a.fate == "won"), None)
        if winner is not None and winner.kind == "hedge" and attempt.kind in FIRST_ATTEMPTS:
            terms.ledger.saved_s += now - winner.ended_s

    def _cancel_rest(self, terms: Terms, now: float, *, probes_too: bool) -> Sequence[Attempt]:
        """Mark what is in flight as cancelled; the losers are censored samples.

        A probe's time is none of the history's: that is what attempts on leaves with traffic
        take, and decides when those are late.
        """
        cancelled = [
            a
            for a in self.attempts
            if a.fate == "in_flight" and not a.cancel_sent and (probes_too or a.kind != "probe")
        ]
        for attempt in cancelled:
            attempt.cancel_sent = True
            waited_s = now - attempt.sent_s
            if attempt.kind == "probe":
                attempt.leaf.probe_took_at_least(waited_s)
            else:
                terms.history.at_least(waited_s)
                attempt.leaf.took_at_least(waited_s)
        self.in_flight -= len(cancelled)
        terms.tally.cancelled += len(cancelled)
        return cancelled


def _took(attempt: Attempt, seconds: float) -> None:
    """Tell the leaf how long it took."""
    if attempt.kind == "probe":
        attempt.leaf.probe_took(seconds)
    else:
        attempt.leaf.answered(seconds)

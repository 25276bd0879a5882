"""One phase of a query over all its shards: a gather owns one race per shard.

Life of a gather:

    start(now)          -> one SendAttempt per shard that has a replica, and due probes
    handle(event, now)  -> what follows: SendAttempt, CancelAttempt, or nothing
    wakeup              the next instant at which it wants AlarmRang, or None
    outcome             None until decided; never changes after

It is decided when every race is, at its deadline, or when it has searched enough and waiting
for the rest does not pay (``root.enough``); what is open then is given up as ``timeout``.
Nothing is sent from the deadline on, even where the alarm for it is late.
After that, events are still accepted: they end attempts and feed the statistics.

At an alarm every leg that is late by the policy is hedged, longest waiting first, unless

- there is too little history to know what late is,
- less time is left than an answer typically takes (a hedge could not help),
- a leaf has pushed back lately, or too many attempts fail, or
- the budget is empty: then none is tried for a moment, and the leg keeps its attempt.

Plain synchronous code; the driver is ``root.scatter``. Times are seconds on one clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

import msgspec

from root.conduct import FailureReason, MissingReason
from root.enough import Enough
from root.hedging import HEARD_KEPT, MIN_SAMPLES, NEVER_S, Policy, Tied
from root.ledger import Tally
from root.race import Attempt, Race, Terms
from root.ranking import Leaf

PAUSE_S: Final = 0.005
"""How long to leave hedging alone where it was not possible: a system of 1,000 legs a second
earns a token in 20 ms at five per cent, so a quarter of that is soon enough and cheap."""


# --- events: facts -----------------------------------------------------------------------


class AttemptsReplied(msgspec.Struct, frozen=True, gc=False):
    """A leaf has answered: what came in one frame, as (attempt, reply). Replies are kept as
    they are.
    """

    replies: Sequence[tuple[Attempt, Any]]


class AttemptFailed(msgspec.Struct, frozen=True, gc=False):
    """A leaf has refused the leg or failed, or its connection is lost (``gone``)."""

    attempt: Attempt
    reason: FailureReason
    detail: str = ""


class AlarmRang(msgspec.Struct, frozen=True, gc=False):
    """The instant named by ``wakeup`` has come."""


class CallerLeft(msgspec.Struct, frozen=True, gc=False):
    """Nobody waits for the answer any more."""


Event = AttemptsReplied | AttemptFailed | AlarmRang | CallerLeft


# --- actions: orders ---------------------------------------------------------------------


class SendAttempt(msgspec.Struct, frozen=True, gc=False):
    """Send this leg to ``attempt.leaf``."""

    attempt: Attempt


class CancelAttempt(msgspec.Struct, frozen=True, gc=False):
    """Tell ``attempt.leaf`` that the leg is not wanted any more."""

    attempt: Attempt


Action = SendAttempt | CancelAttempt
NOTHING: Final[tuple[Action, ...]] = ()


# --- result ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query got: ``replies`` as (shard, reply), ``missing`` by shard, both in order.

    ``details`` has a leaf's own words, where it gave any, for a missing shard.
    """

    replies: list[tuple[int, Any]]
    missing: dict[int, MissingReason]
    details: dict[int, str]
    decided_s: float


class Gather:
    """The races of one query. See the module's text."""

    __slots__ = (
        "_delay_s",
        "_end_s",
        "_enough",
        "_late_queue",
        "_no_hedge_before_s",
        "_races",
        "_started_s",
        "_ties",
        "answered",
        "attempts",
        "deadline_s",
        "heard_s",
        "latest_s",
        "open_legs",
        "outcome",
        "policy",
        "quorum_s",
        "terms",
    )

    def __init__(
        self,
        shards: Iterable[tuple[int, Sequence[Leaf]]],
        policy: Policy,
        terms: Terms,
        deadline_s: float,
        enough: Enough | None = None,
    ) -> None:
        """``shards`` pairs each shard with its replicas; the order is the order of sending.

        ``enough``: how many of them will do; without it, all are wanted.
        """
        self.policy = policy
        self.terms = terms
        self.deadline_s = deadline_s
        self._end_s = deadline_s
        self._enough = enough
        self.outcome: Outcome | None = None
        self.attempts: list[Attempt] = []
        self.answered = 0
        self.heard_s = 0.0
        self.latest_s = 0.0
        self.quorum_s: float | None = None
        self._started_s = 0.0
        self._races = [Race(slot, *pair) for slot, pair in enumerate(shards)]
        self.open_legs = len(self._races)
        self._late_queue: deque[Attempt] = deque()
        self._delay_s = NEVER_S
        self._no_hedge_before_s = 0.0
        self._ties = isinstance(policy, Tied) and terms.attempts_max > 1

    @property
    def tally(self) -> Tally:
        """What the attempts came to, once decided."""
        return self.terms.tally

    @property
    def legs(self) -> int:
        """How many shards the query asks."""
        return len(self._races)

    @property
    def leaves(self) -> int:
        """How many leaves have been asked."""
        return len({attempt.leaf for attempt in self.attempts})

    @property
    def round_trip_s(self) -> float:
        """Seconds to the farthest leaf that may be asked and back."""
        replicas = (leaf for race in self._races for leaf in race.replicas)
        return max((leaf.round_trip_s for leaf in replicas if leaf.connected), default=0.0)

    @property
    def price_s(self) -> float | None:
        """What an extra attempt costs, in seconds, as learned for this class of queries."""
        return self.terms.pace.price_s

    def start(self, now: float) -> list[SendAttempt]:
        """Start every race; none, where the deadline has come before."""
        if now >= self.deadline_s:
            self._give_up(now)
            return []
        terms, attempts = self.terms, self.attempts
        terms.history.rotate(now)
        self._started_s = now
        tied = self._ties and self._hedging_makes_sense(now)
        for race in self._races:
            attempt = race.start(len(attempts), terms, now, tied=tied)
            if attempt is not None:
                attempts.append(attempt)
            elif self._enough is not None:
                self._enough.decided(race.slot, 0.0, answered=False)
        self.open_legs = len(attempts)
        self._late_queue.extend(a for a in attempts if a.twin or not self._ties)
        self._delay_s = self.policy.delay_s(terms.history, self)
        if not self.open_legs:
            self._decide(now)
        elif terms.probation is not None and terms.probation.leaves:
            self._probe(terms.probation.due(now), now)
        return [SendAttempt(attempt) for attempt in attempts]

    def _probe(self, due: Sequence[tuple[Leaf, int]], now: float) -> None:
        """Send each leaf a probe, if it holds a shard and there is a token: another shard each
        time, as shards differ.
        """
        races, attempts = self._races, self.attempts
        for leaf, turn in due:
            order = [races[(turn + i) % len(races)] for i in range(len(races))]
            race = next((race for race in order if race.may_probe(leaf)), None)
            if race is not None and self.terms.budget.spend(now, needed=False):
                attempts.append(race.probe(len(attempts), leaf, self.terms, now))

    def handle(self, event: Event, now: float) -> Sequence[Action]:
        """Take a fact; return what is to be done about it."""
        match event:
            case AttemptsReplied():
                return self._replied(event.replies, now)
            case AttemptFailed():
                return self._failed(event, now)
            case AlarmRang():
                return self._rang(now)
            case CallerLeft():
                return self._give_up(now) if self.outcome is None else NOTHING
            case _:
                assert_never(event)

    @property
    def wakeup(self) -> float | None:
        """The next instant, in seconds, at which AlarmRang is due; None once decided."""
        if self.outcome is not None:
            return None
        late = self._longest_waiting()
        if late is None:
            return self._end_s
        return min(max(late.sent_s + self._delay_s, self._no_hedge_before_s), self._end_s)

    def _replied(self, replies: Sequence[tuple[Attempt, Any]], now: float) -> Sequence[Action]:
        races, terms = self._races, self.terms
        losers: list[Attempt] = []
        won = 0
        for attempt, reply in replies:
            race = races[attempt.slot]
            if race.reply is None and race.missing is None:
                won += 1
            losers += race.replied(attempt, reply, terms, now)
        if won:
            self.open_legs -= won
            if self._enough is not None:
                slots = [attempt.slot for attempt, _ in replies if attempt.fate == "won"]
                self._see_whether_enough(self._enough, slots, now, answered=True)
            if self.open_legs == 0:
                self._decide(now)
            elif self.policy.watches_siblings:
                self._watch(won, now)
        return [CancelAttempt(loser) for loser in losers] if losers else NOTHING

    def _watch(self, answers: int, now: float) -> None:
        """See what the answers that have just come say about the legs that are open."""
        policy = self.policy
        elapsed_s = self.latest_s = now - self._started_s
        self.heard_s = elapsed_s - (elapsed_s - self.heard_s) * HEARD_KEPT**answers
        self.answered += answers
        if self.quorum_s is None and self.answered >= policy.quorum * len(self._races):
            self.quorum_s = elapsed_s
        self._delay_s = policy.delay_s(self.terms.history, self)

    def _failed(self, event: AttemptFailed, now: float) -> Sequence[Action]:
        race = self._races[event.attempt.slot]
        was_open = not race.decided
        too_late = now >= self.deadline_s
        failover = race.failed(
            event.attempt, event.reason, len(self.attempts), self.terms, now, too_late=too_late
        )
        if failover is not None:
            return (self._send(failover),)
        if not race.decided:
            self._hedge_again(race, event.attempt)
        elif was_open:
            race.detail = event.detail
            self.open_legs -= 1
            if self._enough is not None:
                self._see_whether_enough(self._enough, [race.slot], now, answered=False)
            if self.open_legs == 0:
                self._decide(now)
            elif self.policy.watches_siblings:
                self._delay_s = self.policy.delay_s(self.terms.history, self)
        return NOTHING

    def _see_whether_enough(
        self, enough: Enough, slots: Sequence[int], now: float, *, answered: bool
    ) -> None:
        """See how long to wait for the rest, now that these shards are decided."""
        for slot in slots:
            enough.decided(slot, now - self._started_s, answered=answered)
        end_s = self._started_s + enough.patience_s(self.terms.history)
        self._end_s = min(self.deadline_s, end_s)

    def _hedge_again(self, race: Race, failed: Attempt) -> None:
        """Let the attempt that ``failed`` was to help ask for help once more: it is late still."""
        if failed.kind == "hedge":
            self._late_queue.appendleft(race.longest_in_flight)

    def _rang(self, now: float) -> Sequence[Action]:
        if self.outcome is not None:
            return NOTHING
        if now >= self._end_s:
            return self._give_up(now)
        if self._longest_late(now) is None:
            return NOTHING
        if not self._hedging_makes_sense(now):
            self._no_hedge_before_s = now + PAUSE_S
            return NOTHING
        return self._hedge_what_is_late(now)

    def _hedging_makes_sense(self, now: float) -> bool:
        terms = self.terms
        if terms.history.samples < MIN_SAMPLES or terms.budget.resting(now):
            return False
        typical_s = terms.history.quantile(0.5)
        return typical_s is not None and self.deadline_s - now > typical_s

    def _hedge_what_is_late(self, now: float) -> Sequence[Action]:
        actions: list[Action] = []
        while (late := self._longest_late(now)) is not None:
            race = self._races[late.slot]
            tied_to = late if self._ties else None
            match race.hedge(len(self.attempts), self.terms, now, tied_to):
                case Attempt() as hedge:
                    self._late_queue.popleft()
                    actions.append(self._send(hedge))
                case "no_candidate":
                    self._late_queue.popleft()
                case "denied":
                    self._no_hedge_before_s = now + PAUSE_S
                    break
                case _ as unknown:
                    assert_never(unknown)
        return actions

    def _longest_late(self, now: float) -> Attempt | None:
        """Return the attempt that has waited longest, if it is late."""
        longest = self._longest_waiting()
        return None if longest is None or now < longest.sent_s + self._delay_s else longest

    def _longest_waiting(self) -> Attempt | None:
        """Return the attempt that has waited longest of those whose race may be hedged."""
        queue = self._late_queue
        while queue:
            first = queue[0]
            if first.fate == "in_flight" and self._races[first.slot].may_hedge(self.terms):
                return first
            queue.popleft()
        return None

    def _send(self, attempt: Attempt) -> SendAttempt:
        self.attempts.append(attempt)
        if not self._ties:  # then only two copies that know of each other are in flight
            self._late_queue.append(attempt)
        return SendAttempt(attempt)

    def _give_up(self, now: float) -> list[Action]:
        losers: list[Attempt] = []
        for race in self._races:
            losers.extend(race.give_up("timeout", self.terms, now))
        self.open_legs = 0
        self._decide(now)
        return [CancelAttempt(loser) for loser in losers]

    def _decide(self, now: float) -> None:
        replies: list[tuple[int, Any]] = []
        missing: dict[int, MissingReason] = {}
        details: dict[int, str] = {}
        for race in self._races:
            if race.missing is None:
                replies.append((race.shard, race.reply))
            else:
                missing[race.shard] = race.missing
                if race.detail:
                    details[race.shard] = race.detail
        self.terms.tally.sent = len(self.attempts)
        self.outcome = Outcome(replies, missing, details, now)
        terms = self.terms
        terms.budget.earn(len(replies), now, terms.collection)
        if self.policy.paced:
            terms.pace.settle(len(replies), terms.tally.hedged, terms.budget, terms.history)
        self._late_queue.clear()

"""What hedging would have done: the policy ``shadow`` sends nothing and keeps account.

Requests run without hedging. When one is done, what every leg of it took is known, and the
gather is played again, in memory, once for each budget under trial (an *arm*): the same
decisions (``root.gather``, ``root.hedging``), with a history, a price and a bucket of the
arm's own, against legs that take what they took. What a copy would have taken nobody knows;
it is drawn

- from the other legs of the same query, where it has at least ``SIBLINGS_MIN``: copies do the
  same work as their siblings and meet the same stalls, so a query that is slow everywhere
  stays so;
- else from the arm's history, which cannot tell a slow query from a slow leaf and so promises
  too much where queries differ widely.

Extra load is free here: what it costs a fleet that is nearly full is not foreseen. Requests in
which a shard is missing are left out. At most ``LEGS_PER_S`` legs are played again a second, so
that a busy root rehearses some of its requests only.

Plain synchronous code. Times are seconds unless named otherwise.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, NamedTuple

from hdrh.histogram import HdrHistogram

from root.budget import Budget, BudgetTerms
from root.gather import Action, AlarmRang, AttemptsReplied, Gather, SendAttempt
from root.hedging import Adaptive, Policy
from root.latency import Latency
from root.ledger import Ledger
from root.pace import Pace
from root.pursuit import Phase, Pursuit
from root.race import Attempt, Terms
from root.ranking import Leaf
from root.topology import View

EXTRA_LOADS: Final = (0.01, 0.02, 0.05, 0.1)
"""Budgets under trial, beside the operator's own."""

SIBLINGS_MIN: Final = 8
"""Of fewer legs the slowest is too large a part for the others to speak for a copy."""

LEGS_PER_S: Final = 10_000.0
"""To play a leg again costs 3 to 7 µs: at most a fifteenth of a core."""

REQUESTS_MIN: Final = 1000
"""Ten of them are slower than the 99th percentile: with fewer it says nothing."""

WORTH_WHILE: Final = 0.95
"""Hedging must bring the 99th percentile below this share of what it is, or it is not worth it."""

NEARLY: Final = 0.8
"""The least budget is recommended that gains this share of what the best one tried does: the
first copies gain most, and every further one costs as much."""

PERCENTILES: Final = {"p50": 50.0, "p95": 95.0, "p99": 99.0, "p99.9": 99.9}
TIME_US_MAX: Final = 600 * 1_000_000


class Times:
    """What requests took, to a thousandth, in constant memory."""

    def __init__(self) -> None:
        """Start empty."""
        self._histogram = HdrHistogram(1, TIME_US_MAX, 3)

    def record(self, seconds: float) -> None:
        """Add one."""
        self._histogram.record_value(min(TIME_US_MAX, max(1, round(seconds * 1e6))))

    def quantile_ms(self, percentile: float) -> float:
        """Return what so many per cent do not exceed, in milliseconds; 0 without any."""
        return float(self._histogram.get_value_at_percentile(percentile)) / 1000.0

    def row(self) -> dict[str, float]:
        """Return the usual percentiles by name, in milliseconds."""
        return {name: self.quantile_ms(percentile) for name, percentile in PERCENTILES.items()}


class Leg(NamedTuple):
    """A shard of a phase that is done: on how many leaves it is, and what its answer took."""

    shard: int
    replicas: int
    took_s: float


class Arm:
    """One budget under trial."""

    def __init__(self, policy: Policy, budget: BudgetTerms, random: Random, now: float) -> None:
        """Start without any history."""
        self.policy = policy
        self.max_extra_load = budget.max_extra_load
        self.times = Times()
        self.ledger = Ledger()
        self._budget = Budget(budget, now)
        self._random = random
        self._learned: dict[tuple[str, str], tuple[Latency, Pace]] = {}

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{self.policy.name}@{self.max_extra_load:g}"

    @property
    def extra(self) -> int:
        """Attempts beyond the first that it would have sent."""
        return self.ledger.sent["hedge"]

    @property
    def extra_load(self) -> float:
        """The same as a share of first attempts."""
        return self.extra / max(1, self.ledger.sent["primary"])

    def fit(self, view: View) -> None:
        """Let its bucket be that of a fleet that has this too."""
        self._budget.fit(len(view.replicas), view.collection)

    def saved_s(self, phase: Phase, legs: Sequence[Leg], collection: str) -> float:
        """Play a phase of these legs again; return how much earlier it would have ended."""
        began_s = phase.started_s
        legs_s = [leg.took_s for leg in legs]
        learned = (collection, phase.query_class)
        if learned not in self._learned:
            self._learned[learned] = (Latency(began_s), Pace())
        history, pace = self._learned[learned]
        terms = Terms(
            *(self._random, self._budget, self.ledger, history), pace=pace, collection=collection
        )
        twins = (Leaf("first", -math.inf), Leaf("second", -math.inf))
        shards = [(leg.shard, twins[: leg.replicas]) for leg in legs]
        stage = _Stage(Gather(shards, self.policy, terms, math.inf), began_s)
        ended_s = stage.play(legs_s, lambda slot: self._copy_s(slot, legs_s, history))
        return max(legs_s) - (ended_s - began_s)

    def _copy_s(self, slot: int, legs_s: Sequence[float], history: Latency) -> float:
        """Draw what a copy of that leg would take."""
        if len(legs_s) >= SIBLINGS_MIN:
            other = self._random.randrange(len(legs_s) - 1)
            return legs_s[other if other < slot else other + 1]
        drawn_s = history.quantile(self._random.random())
        return legs_s[slot] if drawn_s is None else drawn_s


class _Stage:
    """Legs on their way, in order of their end."""

    def __init__(self, gather: Gather, now: float) -> None:
        self._gather = gather
        self._now = now
        self._legs: list[tuple[float, int, Attempt]] = []

    def play(self, legs_s: Sequence[float], copy_s: Callable[[int], float]) -> float:
        """Run the gather to its end, and return when that is."""
        gather = self._gather
        for attempt in _sent(gather.start(self._now)):
            self._send(attempt, legs_s[attempt.slot])
        while (wakeup_s := gather.wakeup) is not None:
            if wakeup_s < self._legs[0][0]:
                self._now = max(self._now, wakeup_s)
                for attempt in _sent(gather.handle(AlarmRang(), self._now)):
                    self._send(attempt, copy_s(attempt.slot))
            else:
                replies = self._arrived()
                gather.handle(AttemptsReplied(replies), self._now)
        return self._now

    def _send(self, attempt: Attempt, takes_s: float) -> None:
        heapq.heappush(self._legs, (self._now + takes_s, attempt.number, attempt))

    def _arrived(self) -> list[tuple[Attempt, Any]]:
        """Take what comes next, with all that comes at the same instant."""
        self._now = self._legs[0][0]
        replies: list[tuple[Attempt, Any]] = []
        while self._legs and self._legs[0][0] <= self._now:
            replies.append((heapq.heappop(self._legs)[2], True))
        return replies


class Rehearsal:
    """All budgets under trial, and what requests took without any."""

    def __init__(
        self, budget: BudgetTerms, random: Random, now: float, legs_per_s: float = LEGS_PER_S
    ) -> None:
        """``budget`` is the operator's: floor and burst are every arm's. ``random`` draws what
        copies would take.
        """
        loads = sorted({*EXTRA_LOADS, budget.max_extra_load} - {0.0})
        self.arms = [
            Arm(Adaptive(), replace(budget, max_extra_load=load), random, now) for load in loads
        ]
        self.requests = 0
        self.unhedged = Times()
        self._legs_per_s = legs_per_s
        self._next_s = now
        self._takes_s = 0.0

    def admits(self, now: float) -> bool:
        """Say whether a request that arrives now is to be rehearsed, by ``observe``.

        Decided here and not when it is done: then the slow ones would be the first to go.
        """
        if now < self._next_s:
            return False
        self._next_s = now + self._takes_s
        return True

    def observe(self, pursuit: Pursuit) -> None:
        """Learn from a request that was admitted, ran unhedged and is done."""
        if pursuit.missing:
            return
        phases = pursuit.phases
        began_s, ended_s = phases[0].started_s, phases[-1].outcome.decided_s
        # A canary goes alone, whatever the policy.
        hedged = [phase for phase in phases if phase.name != "canary"]
        view = pursuit.view
        played = [(phase, _legs(phase, view)) for phase in hedged]
        self.requests += 1
        self.unhedged.record(ended_s - began_s)
        for arm in self.arms:
            arm.fit(view)
            saved_s = sum(arm.saved_s(phase, legs, view.collection) for phase, legs in played)
            arm.times.record(ended_s - began_s - saved_s)
        legs_played = len(self.arms) * sum(len(legs) for _, legs in played)
        self._takes_s = legs_played / self._legs_per_s

    def report(self) -> dict[str, Any]:
        """Return what ``GET /hedging`` says; times in milliseconds."""
        hedge, max_extra_load, why = self._advice()
        return {
            "requests": self.requests,
            "off": self.unhedged.row(),
            "arms": {
                arm.name: {"extra_load": round(arm.extra_load, 6), **arm.times.row()}
                for arm in self.arms
            },
            "recommendation": {"hedge": hedge, "max_extra_load": max_extra_load, "why": why},
        }

    def _advice(self) -> tuple[str | None, float | None, str]:
        """The least budget that gains nearly as much as any; off, where none gains enough."""
        if self.requests < REQUESTS_MIN:
            return None, None, f"{self.requests} requests seen; {REQUESTS_MIN} are the least"
        off_ms = self.unhedged.quantile_ms(99.0)
        p99_ms = {arm: arm.times.quantile_ms(99.0) for arm in self.arms}
        best_ms = min(p99_ms.values())
        if best_ms > WORTH_WHILE * off_ms:
            return "off", 0.0, f"no budget brings p99 of {off_ms:.1f} ms down by five per cent"
        most_ms = off_ms - best_ms
        arm = next(arm for arm in self.arms if off_ms - p99_ms[arm] >= NEARLY * most_ms)
        gain = f"p99 of {p99_ms[arm]:.1f} instead of {off_ms:.1f} ms"
        share = (off_ms - p99_ms[arm]) / most_ms
        why = f"{gain} for {arm.extra_load:.1%} more attempts: {share:.0%} of what any budget gains"
        return arm.policy.name, arm.max_extra_load, why


def _legs(phase: Phase, view: View) -> list[Leg]:
    """Return the legs of a phase that is complete."""
    return [
        Leg(a.shard, len(view.replicas[a.shard]), a.ended_s - phase.started_s)
        for a in phase.attempts
        if a.fate == "won"
    ]


def _sent(actions: Sequence[Action]) -> list[Attempt]:
    return [action.attempt for action in actions if isinstance(action, SendAttempt)]

"""Which replica gets an attempt: the better of two random candidates.

Candidates are the connected leaves that the race has not tried: those that are not on
probation, if there are any, and of these those in a domain that the race has not tried
either, if there are any. What fails together should not be tried in succession; a leaf on
probation (``root.probation``) serves only where nobody else can.

The cost of a leaf is (outstanding + 1) x smoothed latency, raised by its recent failures and
while it is new:

    cost = (outstanding + 1) * latency_s * unreliable * slow_start * full * forgiven
    unreliable = (1 + FAILURE_WEIGHT * failing) / (1 - failing)

``full`` is ``FULL_FACTOR`` for as long as the leaf, when it was busy, said that it would be. It
is chosen then where every other candidate is as full.

It rises with each of queue, latency and failures, and falls with age and with idleness: a
leaf never looks better for being worse, and none is written off for ever. Two random
candidates, not the global best, so that roots that do not know of each other do not all pick
the same leaf (M. Mitzenmacher, The Power of Two Choices in Randomized Load Balancing, IEEE
TPDS 12(10), 2001).

``outstanding`` counts legs that the leaf has not yet ended, cancelled ones included: a leaf
that does not even answer cancels, because it is stopped, soon looks as busy as it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from random import Random
from typing import Protocol

SMOOTHING = 0.05
"""Weight of one leg in the smoothed latency: about the last twenty legs count."""

FAILURE_WEIGHT = 50.0
"""A leaf that fails everything must look worse than one fifty times slower."""
SUCCEEDING_MIN = 0.001
"""A leaf is dearer by the number of attempts that one success takes, as well: however long its
peers' queues are, one that fails everything, and so never has a queue, is no better choice. Up to
a thousand attempts, for it must be found out when it is mended."""
FAILURE_SMOOTHING = 0.2
FAILURE_HALF_LIFE_S = 3.0
FAILURES_FORGOTTEN_S = 30.0
"""Failures fade with time, and after ten half-lives count no more: a leaf that flapped once
must be tried again."""

SLOW_START_S = 5.0
SLOW_START_FACTOR = 4.0
"""A leaf that has just joined looks this much dearer at first, and evenly less for five
seconds: its caches are cold, and being unknown must not make it everyone's first choice."""

FULL_FACTOR = 1e6
"""More than latency, queue and failures together come to: what a full leaf is sent, it refuses."""

IDLE_S = 1.0
FORGIVEN_HALF_LIFE_S = 2.0
"""A leaf that nobody has chosen for a second looks half as slow every two seconds after it:
what is known of it grows old, and it must be tried again to be known."""

FAIR = 0.5

UNKNOWN_LATENCY_S = 0.005
"""Where there is no measurement at all, anywhere. Only ratios between leaves matter."""

ROUND_TRIP_START_S = 0.001
"""What a message there and back takes, before it was measured: no less than on one machine."""
ROUND_TRIP_SMOOTHING = 0.2
"""Weight of one ping: five a second make the last second count."""

PROBES = 8
"""A leaf on probation is judged by the mean of so many probes, the last ones: at five a second
that takes under two seconds, and one stall among them keeps it waiting for no longer."""


class Probe(Protocol):
    """An attempt that measures a leaf on probation."""

    @property
    def fate(self) -> str:
        """``in_flight`` until it has ended."""
        ...


class Trial:
    """What a leaf on probation has shown so far. ``probed_s`` is when the last probe was sent,
    or the probation began; ``sent`` counts probes.
    """

    __slots__ = ("_took_s", "probed_s", "sent")

    def __init__(self, now: float) -> None:
        """Start without a probe."""
        self.probed_s = now
        self.sent = 0
        self._took_s: deque[float] = deque(maxlen=PROBES)

    def took(self, seconds: float) -> None:
        """Add the time of a probe."""
        self._took_s.append(seconds)

    @property
    def latency_s(self) -> float | None:
        """Mean of the last probes, in seconds; None before there are enough."""
        return sum(self._took_s) / PROBES if len(self._took_s) == PROBES else None


class Leaf:
    """A leaf as the root sees it: what it owes, how fast and how reliable it has been.

    ``domain`` names what fails together with it; ``preferred`` says that it is connected and
    not on probation; ``trial`` is there while it is on probation; ``probe`` is the last one.
    """

    __slots__ = (
        "_connected",
        "_failed_at_s",
        "_failing",
        "_outdated",
        "domain",
        "full_until_s",
        "idle_from_s",
        "joined_s",
        "latency_s",
        "name",
        "outstanding",
        "penalized_until_s",
        "preferred",
        "probe",
        "round_trip_s",
        "trial",
    )

    def __init__(self, name: str, now: float, latency_s: float = UNKNOWN_LATENCY_S) -> None:
        """``latency_s`` is what to assume before the first answer: its peers' average."""
        self.name = name
        self.domain = name
        self.trial: Trial | None = None
        self.probe: Probe | None = None
        self.connected = True
        self.joined_s = now
        self.latency_s = latency_s
        self.round_trip_s = ROUND_TRIP_START_S
        self.outstanding = 0
        self.penalized_until_s = now + SLOW_START_S
        self.full_until_s = now
        self.idle_from_s = now + IDLE_S
        self._failing = 0.0
        self._failed_at_s = now
        self._outdated = False

    @property
    def connected(self) -> bool:
        """Whether anything can be sent to it."""
        return self._connected

    @connected.setter
    def connected(self, connected: bool) -> None:
        """A lost connection ends probation: who comes back is new."""
        self._connected = connected
        if not connected:
            self.trial = None
        self.preferred = connected and self.trial is None

    def chosen(self, now: float) -> None:
        """Take one more attempt. After idleness it is judged afresh, by what comes of it."""
        self.outstanding += 1
        if now > self.idle_from_s:
            self._outdated = True
        self.idle_from_s = now + IDLE_S

    def answered(self, seconds: float) -> None:
        """Learn from an answer that took ``seconds`` from its own send."""
        if self._outdated:
            self._outdated = False
            self.latency_s = seconds
        self.latency_s += SMOOTHING * (seconds - self.latency_s)
        if self._failing:
            self._failing *= 1.0 - FAILURE_SMOOTHING

    def ponged(self, seconds: float) -> None:
        """Learn from a ping that came back after ``seconds``: no worker was in its way."""
        self.round_trip_s += ROUND_TRIP_SMOOTHING * (seconds - self.round_trip_s)

    def took_at_least(self, seconds: float) -> None:
        """Learn from an attempt given up after ``seconds``: it can only speak for slower."""
        if seconds > self.latency_s:
            self.latency_s += SMOOTHING * (seconds - self.latency_s)

    def failed(self, now: float) -> None:
        """Learn from an error; how quickly it came says nothing."""
        self._failing = self.failing(now)
        self._failing += FAILURE_SMOOTHING * (1.0 - self._failing)
        self._failed_at_s = now
        self.penalized_until_s = max(self.penalized_until_s, now + FAILURES_FORGOTTEN_S)

    def full(self, seconds: float, now: float) -> None:
        """Take it that its queue is full for so long."""
        self.full_until_s = max(self.full_until_s, now + seconds)
        self.penalized_until_s = max(self.penalized_until_s, self.full_until_s)

    def failing(self, now: float) -> float:
        """Share of recent attempts that failed, from 0 to 1, fading with time."""
        age_s = now - self._failed_at_s
        if self._failing == 0.0 or age_s >= FAILURES_FORGOTTEN_S:
            return 0.0
        return float(self._failing * 0.5 ** (age_s / FAILURE_HALF_LIFE_S))

    def penalty(self, now: float) -> float:
        """By what factor failures, being new and being full make it dearer: 1 or more."""
        failing = self.failing(now)
        factor = (1.0 + FAILURE_WEIGHT * failing) / max(SUCCEEDING_MIN, 1.0 - failing)
        age_s = now - self.joined_s
        if age_s < SLOW_START_S:
            factor *= 1.0 + (SLOW_START_FACTOR - 1.0) * (1.0 - age_s / SLOW_START_S)
        if now < self.full_until_s:
            factor *= FULL_FACTOR
        return factor

    def cost(self, now: float) -> float:
        """What an attempt here is expected to cost; only comparisons have a meaning."""
        cost = (self.outstanding + 1) * self.latency_s
        if now < self.penalized_until_s:
            cost *= self.penalty(now)
        if now > self.idle_from_s:
            cost *= self._forgiven(now)
        return cost

    def _forgiven(self, now: float) -> float:
        return float(0.5 ** ((now - self.idle_from_s) / FORGIVEN_HALF_LIFE_S))

    def put_on_probation(self, now: float) -> None:
        """Take part in no race that others can run, but for probes."""
        self.trial = Trial(now)
        self.preferred = False

    def probed_by(self, probe: Probe, now: float) -> None:
        """Take a probe, if still on probation; a race has chosen it."""
        self.probe = probe
        if self.trial is not None:
            self.trial.probed_s = now
            self.trial.sent += 1

    def probe_took(self, seconds: float) -> None:
        """Learn from a probe that was answered after ``seconds``."""
        self.answered(seconds)
        if self.trial is not None:
            self.trial.took(seconds)

    def probe_took_at_least(self, seconds: float) -> None:
        """Learn from a probe without an answer: it is no sign of being faster than known."""
        self.took_at_least(seconds)
        if self.trial is not None:
            self.trial.took(max(seconds, self.latency_s))

    def rejoin(self, now: float, latency_s: float) -> None:
        """Come back after a lost connection or from probation, as a new leaf would."""
        self.trial = None
        self.connected = True
        self.joined_s = now
        self.latency_s = latency_s
        self.penalized_until_s = max(self.penalized_until_s, now + SLOW_START_S)
        self.idle_from_s = now + IDLE_S


def choose(
    replicas: Sequence[Leaf], tried: Sequence[Leaf], random: Random, now: float
) -> Leaf | None:
    """Return the replica for the next attempt, or None if none is left.

    Never one that is in ``tried`` or not connected. Equal costs are decided by lot.
    """
    if len(replicas) == 2 and not tried and replicas[0].preferred and replicas[1].preferred:
        first, second = replicas
    else:
        candidates = [leaf for leaf in replicas if leaf.preferred and leaf not in tried]
        if not candidates or (tried and len(candidates) > 1):
            candidates = _second_best(replicas, tried, candidates)
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        first, second = random.sample(candidates, 2)
    # ``Leaf.cost`` written out where nothing but queue and latency counts: every leg of every
    # query comes by here.
    first_cost = (first.outstanding + 1) * first.latency_s
    if not first.penalized_until_s <= now <= first.idle_from_s:
        first_cost = first.cost(now)
    second_cost = (second.outstanding + 1) * second.latency_s
    if not second.penalized_until_s <= now <= second.idle_from_s:
        second_cost = second.cost(now)
    if first_cost == second_cost:
        return first if random.random() < FAIR else second
    return first if first_cost < second_cost else second


def _second_best(
    replicas: Sequence[Leaf], tried: Sequence[Leaf], preferred: list[Leaf]
) -> list[Leaf]:
    """Return whom to choose from where not simply any of the ``preferred`` will do: there is
    none, or a domain has been tried.
    """
    untried = preferred or [leaf for leaf in replicas if leaf.connected and leaf not in tried]
    domains = [leaf.domain for leaf in tried]
    return [leaf for leaf in untried if leaf.domain not in domains] or untried

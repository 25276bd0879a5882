"""Simulated leaves: a ``LeafTransport`` that answers each leg after the time it has drawn.

Made for many legs: a query in flight is on the agenda once, for the next instant at which a
leg of it ends, and keeps the others in a sorted list. A cancelled leg is finished and its
answer dropped, as a leaf does with work it has begun. For leaves with queues see ``queued``.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable
from typing import Final

import msgspec

from bench.simulation.agenda import Agenda
from bench.simulation.profiles import Draws
from bench.virtual_time import running_loop
from leaf.protocol import Hits
from root.race import Attempt
from root.ranking import Leaf
from root.scatter import Ask, Flight

ANSWER: Final = Hits(
    leg=0, queue_us=0, service_us=0, total=0, best=0.0, ranked=msgspec.Raw(b"[[],[]]")
)
"""What every leg is answered with: only when is of interest."""

FAN_OUT: Final = "search"
ALONE: Final = "lookup"
"""The kinds of request: to all shards, and to one leaf alone."""

LONG_AGO_S: Final = -1000.0
"""When leaves joined: none is new any more."""


def ask(kind: str, query: int, deadline_s: float, copy: int = 0) -> Ask:
    """What simulated leaves are asked. It takes as long as the query's number decides, and its
    first attempts as the copies of that number.
    """
    return Ask(kind, "simulated", b"%d %d" % (query, copy), deadline_s)


def asked(flight: Flight) -> tuple[int, int]:
    """The query and the copy that a flight asks for."""
    query, copy = flight.ask.body.split()
    return int(query), int(copy)


class Lengths:
    """How long the attempts of one flight take, in seconds, as drawn."""

    __slots__ = ("_copies", "_copy", "_draws", "_legs_s", "_query")

    def __init__(self, flight: Flight, draws: Draws) -> None:
        """For what the flight asks."""
        self._query, self._copy = asked(flight)
        self._draws = draws
        self._legs_s = None if flight.ask.kind == ALONE else draws.legs_s(self._query, self._copy)
        self._copies: dict[int, int] = {}

    def of(self, attempt: Attempt) -> float:
        """Every further attempt on a shard is another copy."""
        shard, copy, legs_s = attempt.shard, self._copy, self._legs_s
        if attempt.kind != "primary":
            copy = self._copies[shard] = self._copies.get(shard, copy) + 1
            legs_s = legs_s and self._draws.legs_s(self._query, copy)
        return legs_s[shard] if legs_s else self._draws.alone_s(self._query, copy)


class SimulatedFleet:
    """Replicas of as many shards as ``draws`` has legs; every leaf holds one shard."""

    def __init__(self, draws: Draws, replicas: int) -> None:
        """To be made on a loop in virtual time."""
        self.sent = 0
        self._draws = draws
        self._replicas = replicas
        self._agenda = Agenda()
        self._trips: dict[Flight, _Trip] = {}

    def connect(self) -> list[list[Leaf]]:
        """The replicas of every shard as one more root sees them, connected for long."""
        return [
            [Leaf(f"leaf-{shard}-{replica}", LONG_AGO_S) for replica in range(self._replicas)]
            for shard in range(self._draws.legs)
        ]

    def utilisation(self, _: float) -> None:
        """Nothing: there are no workers."""

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Take a leg; it ends after the time drawn for it."""
        trip = self._trips.get(flight)
        if trip is None:
            trip = self._trips[flight] = _Trip(flight, self._draws, self._agenda, self._forget)
        self.sent += 1
        trip.send(attempt)

    def cancel(self, attempt: Attempt) -> None:
        """Nothing: the attempt knows, and its leg ends when it would have."""

    def _forget(self, flight: Flight) -> None:
        del self._trips[flight]


class _Trip:
    """The legs of one flight that have not ended: on the agenda when the next of them does."""

    __slots__ = (
        "_agenda",
        "_draws",
        "_ended",
        "_flight",
        "_legs",
        "_lengths",
        "_loop",
        "_next_s",
        "_on_end",
        "_sorted",
    )

    def __init__(
        self, flight: Flight, draws: Draws, agenda: Agenda, on_end: Callable[[Flight], None]
    ) -> None:
        self._flight = flight
        self._agenda = agenda
        self._on_end = on_end
        self._loop = running_loop()
        self._draws = draws
        self._lengths = Lengths(flight, draws)
        self._legs: list[tuple[float, int, Attempt]] = []
        self._ended = 0
        self._sorted = False
        self._next_s = self._loop.time()
        agenda.enter(self._next_s, self)

    def send(self, attempt: Attempt) -> None:
        # There is no queue: the first of two tied copies has begun when the second arrives, and
        # the second is dropped.
        work_s = 0.0 if attempt.kind == "tied" else self._lengths.of(attempt)
        took_s = self._draws.took_s(attempt.leaf.name, work_s, attempt.sent_s)
        attempt.service_us = int(took_s * 1e6)
        leg = (attempt.sent_s + took_s, attempt.number, attempt)
        if not self._sorted:
            self._legs.append(leg)
            return
        insort(self._legs, leg, lo=self._ended)
        if leg[0] < self._next_s:
            self._next_s = leg[0]
            self._agenda.enter(leg[0], self)

    def happen(self, when: float) -> None:
        """Deliver what ends now. What was entered before an earlier leg came is no news."""
        if when != self._next_s:
            return
        if not self._sorted:
            self._legs.sort()
            self._sorted = True
        self._next_s = -math.inf
        legs, flight, ended, now = self._legs, self._flight, self._ended, self._loop.time()
        while ended < len(legs) and legs[ended][0] <= now:
            attempt = legs[ended][2]
            ended += 1
            if attempt.cancel_sent:
                flight.failed(attempt, "cancelled", "")
            elif attempt.kind == "tied":
                flight.failed(attempt, "twin_began", "")
            else:
                flight.replied(attempt, ANSWER)
        self._ended = ended
        flight.settle()
        if self._ended == len(self._legs):
            self._on_end(flight)
        else:
            self._next_s = self._legs[self._ended][0]
            self._agenda.enter(self._next_s, self)

"""Simulated leaves: a ``LeafTransport`` that answers each leg after the time it has drawn.

Made for many legs: a query in flight has one timer, at the next instant at which a leg of it
ends, and keeps the others in a sorted list. A cancelled leg is finished and its answer
dropped, as a leaf does with work it has begun.
"""

from __future__ import annotations

import asyncio
from bisect import insort
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

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


def ask(kind: str, query: int, deadline_s: float) -> Ask:
    """What a simulated leaf is asked: ``query`` is the number that decides how long it takes."""
    return Ask(kind, "simulated", b"%d" % query, deadline_s)


class SimulatedFleet:
    """``shards[i]`` are the replicas of shard i; every leaf holds one shard."""

    def __init__(self, draws: Draws, replicas: int) -> None:
        """All leaves are connected and have been for long."""
        self.shards = [
            [Leaf(f"leaf-{shard}-{replica}", -1000.0) for replica in range(replicas)]
            for shard in range(draws.legs)
        ]
        self.sent = 0
        self._draws = draws
        self._trips: dict[Flight, _Trip] = {}

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Take a leg; it ends after the time drawn for it."""
        trip = self._trips.get(flight)
        if trip is None:
            trip = self._trips[flight] = self._depart(flight)
        self.sent += 1
        trip.send(attempt)

    def cancel(self, attempt: Attempt) -> None:
        """Nothing: the attempt knows, and its leg ends when it would have."""

    def _depart(self, flight: Flight) -> _Trip:
        query = int(flight.ask.body)
        draw = self._draws.alone_s if flight.ask.kind == ALONE else self._draws.legs_s
        return _Trip(flight, lambda copy: draw(query, copy), self._forget)

    def _forget(self, flight: Flight) -> None:
        del self._trips[flight]


class _Trip:
    """The legs of one flight that have not ended."""

    __slots__ = (
        "_copies",
        "_ended",
        "_first_s",
        "_flight",
        "_legs",
        "_loop",
        "_on_end",
        "_sorted",
        "_timer",
        "_times_s",
    )

    def __init__(
        self,
        flight: Flight,
        times_s: Callable[[int], Sequence[float]],
        on_end: Callable[[Flight], None],
    ) -> None:
        self._flight = flight
        self._times_s = times_s
        self._on_end = on_end
        self._loop = running_loop()
        self._first_s = times_s(0)
        self._copies: dict[int, int] = {}
        self._legs: list[tuple[float, int, Attempt]] = []
        self._ended = 0
        self._sorted = False
        self._timer: asyncio.Handle = self._loop.call_soon(self._set_out)

    def send(self, attempt: Attempt) -> None:
        slot, sent_s = attempt.slot, attempt.sent_s
        if attempt.kind == "primary":
            took_s = self._first_s[slot]
        else:
            copy = self._copies[slot] = self._copies.get(slot, 0) + 1
            took_s = self._times_s(copy)[slot]
        attempt.service_us = int(took_s * 1e6)
        leg = (sent_s + took_s, attempt.number, attempt)
        if not self._sorted:
            self._legs.append(leg)
            return
        insort(self._legs, leg, lo=self._ended)
        if self._legs[self._ended] is leg:
            self._timer.cancel()
            self._timer = self._loop.call_at(leg[0], self._arrive)

    def _set_out(self) -> None:
        self._legs.sort()
        self._sorted = True
        self._timer = self._loop.call_at(self._legs[0][0], self._arrive)

    def _arrive(self) -> None:
        legs, flight, loop = self._legs, self._flight, self._loop
        while True:
            now = max(loop.time(), legs[self._ended][0])
            self._deliver(now)
            flight.settle()
            if self._ended == len(legs):
                self._on_end(flight)
                return
            next_s = legs[self._ended][0]
            if not loop.skip_to(next_s):
                self._timer = loop.call_at(next_s, self._arrive)
                return

    def _deliver(self, now: float) -> None:
        """Hand over what has ended by now."""
        legs, flight, ended = self._legs, self._flight, self._ended
        while ended < len(legs) and legs[ended][0] <= now:
            attempt = legs[ended][2]
            ended += 1
            if attempt.cancel_sent:
                flight.failed(attempt, "cancelled", "")
            else:
                flight.replied(attempt, ANSWER)
        self._ended = ended

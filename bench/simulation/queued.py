"""Simulated leaves with queues and workers, where every attempt costs others time.

A leg waits, is worked on for the time drawn for it, and ends. Cancelled, it leaves the queue;
one that is worked on is finished and its answer dropped. Both are acknowledged. A leg whose
time is over when its turn comes is refused as expired, one that finds the queue full as busy.
What a leaf owes when it crashes is gone. Messages take no time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from statistics import fmean

from bench.simulation.agenda import Agenda
from bench.simulation.fleet import ANSWER, LONG_AGO_S, Lengths
from bench.simulation.machines import Episode, Machines, Speed, episodes
from bench.simulation.profiles import Draws
from bench.virtual_time import running_loop
from root.conduct import FailureReason
from root.race import Attempt
from root.ranking import Leaf
from root.scatter import Flight


class QueuedFleet:
    """Replicas of as many shards as ``draws`` has legs; every leaf holds one shard."""

    def __init__(
        self,
        draws: Draws,
        machines: Machines,
        replicas: int,
        seed: int,
        spells: Mapping[int, Episode] | None = None,
    ) -> None:
        """To be made on a loop in virtual time. ``spells``: where all replicas of a shard are to
        be slow at the same time, instead of each at random.
        """
        self.sent = 0
        self._draws = draws
        self._machines = machines
        self._seed = seed
        self._agenda = Agenda()
        self._errors = Random(f"{seed}:errors")
        self._leaves = [
            [
                self._leaf(f"leaf-{shard}-{replica}", (spells or {}).get(shard))
                for replica in range(replicas)
            ]
            for shard in range(draws.legs)
        ]
        self._by_view: dict[Leaf, _QueuedLeaf] = {}
        self._parties: dict[Flight, _Party] = {}

    def _leaf(self, name: str, spell: Episode | None) -> _QueuedLeaf:
        machines = self._machines
        every_s, lasts_s = machines.spell_every_s, machines.spell_s
        drawn = episodes(Random(f"{self._seed}:{name}:spells"), every_s, lasts_s)
        speed = Speed(machines.spell_factor, iter([spell]) if spell else drawn)
        crashes = Random(f"{self._seed}:{name}:crashes")
        outages = episodes(crashes, machines.crash_every_s, machines.down_s)
        return _QueuedLeaf(name, machines, speed, outages, self._agenda, self._errors)

    def connect(self) -> list[list[Leaf]]:
        """The replicas of every shard as one more root sees them, connected for long."""
        shards = []
        for replicas in self._leaves:
            views = [Leaf(leaf.name, LONG_AGO_S) for leaf in replicas]
            for view, leaf in zip(views, replicas, strict=True):
                leaf.views.append((view, views))
                self._by_view[view] = leaf
            shards.append(views)
        return shards

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Take a leg to its leaf."""
        party = self._parties.get(flight)
        if party is None:
            party = self._parties[flight] = _Party(flight, self._draws, self._forget)
        self.sent += 1
        attempt.leg = self.sent
        leaf = self._by_view[attempt.leaf]
        leaf.take(_Leg(attempt, party, leaf))

    def cancel(self, attempt: Attempt) -> None:
        """Take a cancel to its leaf."""
        self._by_view[attempt.leaf].cancel(attempt)

    def utilisation(self, now: float) -> float:
        """Share of their time so far for which workers have worked."""
        leaves = [leaf for replicas in self._leaves for leaf in replicas]
        return sum(leaf.worked_s for leaf in leaves) / (now * self._machines.workers * len(leaves))

    def _forget(self, flight: Flight) -> None:
        del self._parties[flight]


class _Party:
    """The legs of one flight that have not ended."""

    __slots__ = ("_flight", "_lengths", "_on_end", "_open", "deadline_s")

    def __init__(self, flight: Flight, draws: Draws, on_end: Callable[[Flight], None]) -> None:
        self._flight = flight
        self._lengths = Lengths(flight, draws)
        self._on_end = on_end
        self._open = 0
        self.deadline_s = flight.ask.deadline_s

    def join(self, attempt: Attempt) -> float:
        """Add a leg; return the seconds of work it is."""
        self._open += 1
        return self._lengths.of(attempt)

    def leave(self, attempt: Attempt, failure: FailureReason | None) -> None:
        """Tell the root how a leg has ended. That may send others."""
        if failure is None:
            self._flight.replied(attempt, ANSWER)
        else:
            self._flight.failed(attempt, failure, "")
        self._flight.settle()
        self._open -= 1
        if not self._open:
            self._on_end(self._flight)


class _Leg:
    """An attempt as its leaf sees it: on the agenda when it ends."""

    __slots__ = ("_leaf", "attempt", "came_s", "party", "refused", "started_s", "work_s")

    def __init__(self, attempt: Attempt, party: _Party, leaf: _QueuedLeaf) -> None:
        self._leaf = leaf
        self.attempt = attempt
        self.party = party
        self.work_s = party.join(attempt)
        self.came_s = attempt.sent_s
        self.started_s = math.nan
        self.refused: FailureReason | None = None

    def happen(self, when: float) -> None:
        self._leaf.end(self, when)


class _QueuedLeaf:
    """One leaf. ``views``: how roots see it, with all replicas of its shard as they do."""

    def __init__(
        self,
        name: str,
        machines: Machines,
        speed: Speed,
        outages: Iterator[Episode],
        agenda: Agenda,
        errors: Random,
    ) -> None:
        self.name = name
        self.views: list[tuple[Leaf, Sequence[Leaf]]] = []
        self.worked_s = 0.0
        self._machines = machines
        self._agenda = agenda
        self._errors = errors
        self._loop = running_loop()
        self._speed = speed
        self._outages = outages
        self._back_s = -math.inf
        self._forget()
        self._expect_outage()

    def _forget(self) -> None:
        self._owed: dict[int, _Leg] = {}
        self._queue: deque[_Leg] = deque()
        self._working = 0

    def take(self, leg: _Leg) -> None:
        self._owed[leg.attempt.leg] = leg
        if self._working < self._machines.workers:
            self._start(leg, leg.came_s)
        elif len(self._queue) < self._machines.queue_legs:
            self._queue.append(leg)
        else:
            self._refuse(leg, "busy", leg.came_s)

    def cancel(self, attempt: Attempt) -> None:
        """Work that has begun is not stopped; that the attempt is cancelled, it knows."""
        leg = self._owed.get(attempt.leg)
        if leg is not None and math.isnan(leg.started_s) and leg.refused is None:
            self._queue.remove(leg)
            self._refuse(leg, "cancelled", self._loop.time())

    def end(self, leg: _Leg, now: float) -> None:
        if self._owed.pop(leg.attempt.leg, None) is None:
            return  # it went with a crash
        failure = leg.refused
        if failure is None:
            failure = self._stop_working(leg, now)
            self._start_next(now)
        leg.party.leave(leg.attempt, failure)

    def _stop_working(self, leg: _Leg, now: float) -> FailureReason | None:
        attempt, share = leg.attempt, self._machines.error_share
        self._working -= 1
        self.worked_s += now - leg.started_s
        attempt.queue_us = int((leg.started_s - leg.came_s) * 1e6)
        attempt.service_us = int((now - leg.started_s) * 1e6)
        if attempt.cancel_sent:
            return "cancelled"
        return "error" if share and self._errors.random() < share else None

    def _start_next(self, now: float) -> None:
        while self._queue and self._working < self._machines.workers:
            leg = self._queue.popleft()
            if now > leg.party.deadline_s:
                self._refuse(leg, "expired", now)
            else:
                self._start(leg, now)

    def _start(self, leg: _Leg, now: float) -> None:
        self._working += 1
        leg.started_s = now
        self._agenda.enter(self._speed.end_of(leg.work_s, now), leg)

    def _refuse(self, leg: _Leg, reason: FailureReason, now: float) -> None:
        leg.refused = reason
        self._agenda.enter(now, leg)

    # --- crashes: the leaf itself is on the agenda for the next crash or return ---

    def _expect_outage(self) -> None:
        for crash_s, back_s in self._outages:
            self._back_s = back_s
            self._agenda.enter(crash_s, self)
            return

    def happen(self, when: float) -> None:
        if when == self._back_s:
            for view, replicas in self.views:
                view.rejoin(when, fmean(replica.latency_s for replica in replicas))
            self._expect_outage()
        else:
            self._crash(when)
            self._agenda.enter(self._back_s, self)

    def _crash(self, now: float) -> None:
        for view, _ in self.views:
            view.connected = False
        owed = self._owed.values()
        self.worked_s += sum(now - leg.started_s for leg in owed if leg.started_s <= now)
        self._forget()
        for leg in owed:
            leg.party.leave(leg.attempt, "gone")

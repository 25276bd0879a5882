"""Roots within this process, without HTTP: many that do not know of each other, on one fleet.

A root here is the product's driver, races, budget and statistics over connections of its own;
what is left out is HTTP, query parsing and the second phase. The fleet is real or simulated,
and nothing here knows which.

    async with linked(urls, 10) as fleets:      or      fleets = simulated(plan, seed, ...)
        crowds = {policy.name: Crowd(fleets, policy, ...) for policy in (Off(), Tied())}
        await in_turns(crowds, schedules)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from random import Random
from typing import Final

import msgspec

from bench.confidence import Curve, Estimate
from bench.recorder import Fate, Recorder, Summary
from bench.simulation.injected import inject
from bench.simulation.scripted import WORKERS, takes
from bench.simulation.scripted_fleet import BareRoot, ScriptedFleet, card, dealt
from bench.workload import Schedule, closed_loop, open_loop
from leaf.interference import Plan
from leaf.protocol import SearchBody, Word
from root.budget import BudgetTerms
from root.discovery import Fleet
from root.hedging import Policy
from root.ledger import Ledger

BODY: Final = msgspec.json.encode(SearchBody(Word("a"), 1))
"""What is asked; the leaves' answers are canned."""

TIMEOUT_S: Final = 20.0
"""Longer than any wait of these experiments: what is to be compared is whole distributions."""

READY_S: Final = 20.0
PINGS_S: Final = 3.0
"""In so long pings have told what a round trip takes."""

QUIET_S: Final = 0.02
"""How often to look whether all attempts have ended."""


@contextlib.asynccontextmanager
async def linked(urls: Sequence[str], count: int) -> AsyncIterator[list[Fleet]]:
    """So many roots' connections to running leaves; each has measured its round trips."""
    # The header of a benchmark says what is injected; every root would say it of every leaf.
    log = logging.getLogger("root.channel")
    level = log.level
    log.setLevel(logging.ERROR)
    fleets = [Fleet(urls, f"bench-{number}") for number in range(count)]
    running = [asyncio.create_task(fleet.run()) for fleet in fleets]
    try:
        async with asyncio.timeout(READY_S):
            for fleet in fleets:
                await fleet.ready.wait()
                while not all(channel.leaf.connected for channel in fleet.channels.values()):
                    await asyncio.sleep(QUIET_S)
        await asyncio.sleep(PINGS_S)
        yield list(fleets)
    finally:
        log.setLevel(level)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def simulated(
    plan: Plan,
    seed: int,
    *,
    leaves: int,
    roots: int,
    workers: int = WORKERS,
    shards: int = 1,
    replicas: int | None = None,
) -> list[Fleet]:
    """Shards on so many simulated leaves, as each root sees them; each on all of them, where not
    said otherwise.
    """
    holdings = dealt(shards, leaves=leaves, replicas=replicas or leaves)
    fleets = [
        ScriptedFleet(card(shards), holdings, takes(0.0), workers=workers) for _ in range(roots)
    ]
    inject(fleets[0], plan, seed)
    for fleet in fleets[1:]:
        fleet.join(fleets[0])
    return list(fleets)


class Crowd:
    """Roots under one policy. Each request comes to one of them at random."""

    def __init__(
        self,
        fleets: Sequence[Fleet],
        policy: Policy,
        *,
        seed: int,
        budget: BudgetTerms | None = None,
        attempts_max: int = 2,
        learned_s: Sequence[float] = (),
    ) -> None:
        """``learned_s``: times of attempts that every root has seen before."""
        self.recorder = Recorder()
        self._roots = [
            BareRoot(
                *(fleet, policy, budget),
                timeout_s=TIMEOUT_S,
                attempts_max=attempts_max,
                seed=seed * len(fleets) + number,
            )
            for number, fleet in enumerate(fleets)
        ]
        for root in self._roots:
            for took_s in learned_s:
                root.history.finished(took_s)
        self._chance = Random(f"{seed}:who is asked")

    async def ask(self, number: int) -> Fate:
        """Let one of the roots answer the request with this number."""
        root = self._roots[self._chance.randrange(len(self._roots))]
        seen = await root.query(body=BODY, number=number)
        return "complete" if seen.complete else "timeout"

    async def quiet(self) -> None:
        """Wait until every attempt has ended: no turn disturbs the next."""
        while any(ledger.in_flight for ledger in self.ledgers):
            await asyncio.sleep(QUIET_S)

    @property
    def ledgers(self) -> list[Ledger]:
        """What the roots have counted."""
        return [root.ledger for root in self._roots]

    @property
    def legs(self) -> int:
        """First attempts: what there is to do."""
        return sum(ledger.sent["primary"] for ledger in self.ledgers)

    @property
    def duplicates(self) -> int:
        """Tied copies that were done twice."""
        return sum(ledger.tied_duplicates for ledger in self.ledgers)

    @property
    def extra(self) -> int:
        """Attempts beyond the first that cost a leaf work: of tied ones, those done twice."""
        sent = [ledger.sent for ledger in self.ledgers]
        return self.duplicates + sum(one["hedge"] + one["failover"] for one in sent)


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """What a crowd measured and what that cost. ``figures_ms`` by percentile, as ``p99.9``.

    ``extra_load``: attempts beyond the first that cost a leaf work, per first attempt; of them
    ``duplicates`` are tied copies that were both done. ``mean_ms`` is over all requests.
    """

    summary: Summary
    mean_ms: float
    figures_ms: dict[str, Estimate]
    extra_load: float
    duplicates: float
    denied: int
    curve_ms: Curve

    @classmethod
    def of(cls, crowd: Crowd, percentiles: Sequence[float]) -> Arm:
        """The crowd so far, in figures."""
        recorder, legs = crowd.recorder, max(crowd.legs, 1)
        return cls(
            summary=recorder.summary(),
            mean_ms=recorder.mean_ms(),
            figures_ms={f"p{p:g}": recorder.estimate_ms(p) for p in percentiles},
            extra_load=crowd.extra / legs,
            duplicates=crowd.duplicates / legs,
            denied=sum(ledger.denied for ledger in crowd.ledgers),
            curve_ms=recorder.curve_ms(),
        )

    def gain(self, over: Arm, figure: str) -> float:
        """By what share a percentile is lower than another arm's."""
        return 1.0 - self.figures_ms[figure].value / over.figures_ms[figure].value


def round_trip_s(fleets: Sequence[Fleet]) -> float:
    """What a message to a leaf and back takes, in seconds: the mean over all connections."""
    trips = [c.leaf.round_trip_s for fleet in fleets for c in fleet.channels.values()]
    return sum(trips) / len(trips)


async def in_turns(crowds: Mapping[str, Crowd], turns: Sequence[Schedule]) -> None:
    """Let every crowd go through each schedule, one after the other: the same requests at the
    same instants, and neither queues of one another.
    """
    names = list(crowds)
    first = 0
    for turn, schedule in enumerate(turns):
        for place in range(len(names)):
            crowd = crowds[names[(turn + place) % len(names)]]

            async def ask(number: int, crowd: Crowd = crowd, first: int = first) -> Fate:
                return await crowd.ask(first + number)

            await open_loop(schedule, ask, crowd.recorder)
            await crowd.quiet()
        first += len(schedule.send_at_s)


async def at_once(crowds: Mapping[str, Crowd], schedule: Schedule, first: int) -> None:
    """Let every crowd go through a schedule at the same time: where what is injected occupies
    nobody, none is in another's way. ``first`` is the number of the first request.
    """

    async def one(crowd: Crowd) -> None:
        async def ask(number: int) -> Fate:
            return await crowd.ask(first + number)

        await open_loop(schedule, ask, crowd.recorder)
        await crowd.quiet()

    await asyncio.gather(*(one(crowd) for crowd in crowds.values()))


async def closed_in_turns(
    crowds: Mapping[str, Crowd], clients: int, requests: int, turns: int
) -> dict[str, float]:
    """Let every crowd answer so many requests in turns, of so many clients that each send as
    soon as they are answered; return requests a second of each.
    """
    names = list(crowds)
    took_s = dict.fromkeys(names, 0.0)
    a_turn = max(1, requests // turns)
    for turn in range(turns):
        for place in range(len(names)):
            name = names[(turn + place) % len(names)]
            crowd, first = crowds[name], turn * a_turn

            async def ask(number: int, crowd: Crowd = crowd, first: int = first) -> Fate:
                return await crowd.ask(first + number)

            rate_per_s = await closed_loop(clients, a_turn, ask, crowd.recorder)
            took_s[name] += a_turn / rate_per_s
            await crowd.quiet()
    return {name: turns * a_turn / took_s[name] for name in names}

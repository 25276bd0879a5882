"""A fleet of scripted leaves, and as much of a root as the driver needs.

    fleet = ScriptedFleet(card(4), dealt(4, leaves=3, replicas=2), takes(0.005))
    root = BareRoot(fleet, Quantile())
    seen = await root.query()
    everything = await root.open_loop(constant(200.0, 10.0))

The fleet is a ``root.discovery.Fleet`` without connections: topology, choice of replicas and
the driver are the product's own, in simulation as alive.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from bench.simulation.scripted import TRAVEL_S, WORKERS, Answer, Script, ScriptedLeaf, one_hit
from bench.workload import Schedule
from index_data.manifest import Field, GenerationCard
from leaf.protocol import PROTOCOL_VERSION, LeafHello
from root.budget import Budget, BudgetTerms
from root.channel import Channel
from root.conduct import FailureReason
from root.discovery import Fleet
from root.gather import Gather, Outcome
from root.hedging import Policy
from root.latency import Latency
from root.ledger import Ledger
from root.pace import Pace
from root.probation import Probation
from root.race import Attempt, Terms
from root.ranking import Leaf
from root.scatter import Ask, Flight, scatter
from root.topology import Held

GENERATION: Final = "20300101-000000-0000"
FIELDS: Final = (Field("title", "text", weight=2.0), Field("body", "text"), Field("tag", "keyword"))


def card(shards: int, documents: int = 10, generation: str = GENERATION) -> GenerationCard:
    """A generation of so many shards, each of so many documents."""
    return GenerationCard(generation, (documents,) * shards, FIELDS, length_deviation=0.01)


def dealt(shards: int, *, leaves: int, replicas: int) -> list[list[int]]:
    """Which shards each leaf holds: shard s on leaves s, s + 1, ... round the fleet."""
    held: list[list[int]] = [[] for _ in range(leaves)]
    for shard in range(shards):
        for replica in range(replicas):
            held[(shard + replica) % leaves].append(shard)
    return held


def _account(channel: Channel, attempt: Attempt) -> None:
    """Add up what a leg took, as seen here and as reported."""
    channel.seen_s += asyncio.get_running_loop().time() - attempt.sent_s
    channel.reported_us += attempt.queue_us + attempt.service_us
    channel.answered += 1


class ScriptedFleet(Fleet):
    """``holdings[i]`` are the shards of leaf i. All leaves are connected from the start."""

    def __init__(
        self,
        generation: GenerationCard,
        holdings: Sequence[Sequence[int]],
        script: Script,
        *,
        answer: Answer = one_hit,
        workers: int = WORKERS,
        domains: Sequence[str] = (),
    ) -> None:
        """Every leaf begins with the same script, in a domain of its own unless told."""
        super().__init__([f"http://leaf-{i}" for i in range(len(holdings))], "root")
        self._generation = generation
        self._holdings = holdings
        self._domains = domains or [f"leaf-{i}" for i in range(len(holdings))]
        self._channels = list(self.channels.values())
        self.leaves = [ScriptedLeaf(c.leaf, script, answer, workers) for c in self._channels]
        self._by_url = dict(zip(self.channels, self.leaves, strict=True))
        for leaf in self.leaves:
            leaf.peers = self._by_url
            leaf.leaf.round_trip_s = 2.0 * TRAVEL_S
        for channel, leaf in zip(self._channels, self.leaves, strict=True):
            leaf.answered = partial(_account, channel)
        self._legs = itertools.count(1)
        for number in range(len(holdings)):
            self.come_back(number)

    def join(self, other: ScriptedFleet) -> None:
        """Reach the very leaves of another fleet, as one more root does, before anything is sent.

        Only the other one can lose them.
        """
        self.leaves, self._by_url, self._legs = other.leaves, other._by_url, other._legs

    async def run(self) -> None:
        """Do nothing until cancelled: there is nothing to connect to."""
        await asyncio.Event().wait()

    def __getitem__(self, number: int) -> ScriptedLeaf:
        return self.leaves[number]

    @property
    def received(self) -> int:
        """Legs that leaves have received."""
        return sum(len(leaf.received) for leaf in self.leaves)

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Send a leg; legs are numbered through the whole fleet."""
        self._by_url[attempt.leaf.name].send(attempt, flight, next(self._legs))

    def cancel(self, attempt: Attempt) -> None:
        """Cancel a leg."""
        self._by_url[attempt.leaf.name].cancel(attempt)

    def heard_s(self, leaf: Leaf) -> float:
        """Now, as if pings took no time, unless the leaf is stopped or lost."""
        quiet_from_s = self._by_url[leaf.name].quiet_from_s
        return min(quiet_from_s, asyncio.get_running_loop().time())

    def held_by(self, leaf: Leaf, number: int) -> list[Held]:
        """Return what a leaf says it holds."""
        return [Held(leaf, self._generation, self._holdings[number])]

    def disconnect(self, number: int, reason: FailureReason = "gone") -> None:
        """Lose the connection to a leaf: what it owes fails, and it is asked no more."""
        channel = self._channels[number]
        channel.leaf.connected = False
        channel.hello = None
        channel.problem = "the connection was closed"
        self._changed(channel)
        self.leaves[number].disconnect(reason)

    def come_back(self, number: int, *, empty_handed: bool = False) -> None:
        """Connect to a leaf, which says hello and what it holds: its shards, or nothing."""
        channel = self._channels[number]
        self.leaves[number].quiet_from_s = math.inf
        name, domain = f"leaf-{number}", self._domains[number]
        channel.hello = LeafHello(PROTOCOL_VERSION, name, domain, pid=1, collections={}, workers=1)
        held = self.held_by(channel.leaf, number)
        channel.collections = tuple(dict.fromkeys(each.collection for each in held))
        channel.held = [] if empty_handed else held
        self.leaves[number].empty_handed = empty_handed
        channel.problem = ""
        self._changed(channel)


@dataclass(frozen=True, slots=True)
class Seen:
    """One query as its caller saw it, with the gather that ran it."""

    started_s: float
    took_s: float
    outcome: Outcome
    gather: Gather

    @property
    def complete(self) -> bool:
        """Whether every shard has answered."""
        return not self.outcome.missing

    @property
    def extra(self) -> int:
        """Attempts beyond the first of each shard."""
        return sum(attempt.kind != "primary" for attempt in self.gather.attempts)


class BareRoot:
    """What a root keeps across queries, and queries of one gather each."""

    def __init__(
        self,
        fleet: Fleet,
        policy: Policy,
        budget: BudgetTerms | None = None,
        *,
        timeout_s: float = 1.0,
        attempts_max: int = 2,
        seed: int = 0,
    ) -> None:
        """``seed`` is of the choice of replicas; roots with the same leaves need different ones."""
        now = asyncio.get_running_loop().time()
        self.fleet = fleet
        self.policy = policy
        self.timeout_s = timeout_s
        self.attempts_max = attempts_max
        self.budget = Budget(budget or BudgetTerms(), now)
        self.ledger = Ledger()
        self.history = Latency(now)
        self.pace = Pace()
        self.probation = Probation(self.budget, now)
        self.seed = seed
        self._ties = 0
        self._random = Random(f"{seed}:replicas")
        self._view = fleet.view()

    async def query(
        self, timeout_s: float | None = None, body: bytes = b"{}", number: int | None = None
    ) -> Seen:
        """Ask every shard once; with every leaf lost, as if one had been lost just now.

        ``number`` decides what injected trouble the query meets.
        """
        now = asyncio.get_running_loop().time()
        deadline_s = now + (timeout_s or self.timeout_s)
        terms = Terms(
            *(self._random, self.budget, self.ledger, self.history, self.attempts_max, self.pace),
            probation=self.probation,
        )
        self._view = self.fleet.view() or self._view
        assert self._view is not None  # noqa: S101 (a fleet has all its leaves when it is made)
        self.budget.fit(len(self._view.replicas))
        self.probation.look(self._view.replicas, now)
        gather = Gather(self._view.shard_replicas(), self.policy, terms, deadline_s)
        self._ties += 1
        generation, tie = self._view.card.generation, f"{self.seed}:{self._ties}"
        ask = Ask("search", generation, body, deadline_s, query=number, tie=tie)
        outcome = await scatter(gather, ask, self.fleet)
        return Seen(now, asyncio.get_running_loop().time() - now, outcome, gather)

    async def open_loop(self, schedule: Schedule) -> list[Seen]:
        """Query on schedule, whatever the answers do; return all in the order of sending."""
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        async with asyncio.TaskGroup() as group:
            queries = []
            for offset_s in schedule.send_at_s:
                await asyncio.sleep(start_s + offset_s - loop.time())
                queries.append(group.create_task(self.query()))
        return [query.result() for query in queries]

    @property
    def accounted(self) -> bool:
        """Whether every attempt has ended, once, and no leaf is thought to owe anything."""
        idle = all(channel.leaf.outstanding == 0 for channel in self.fleet.channels.values())
        return self.ledger.in_flight == 0 and idle


def at(delay_s: float, step: Callable[[], object]) -> None:
    """Do something so many seconds from now."""
    asyncio.get_running_loop().call_later(delay_s, step)


def prefer(fleet: ScriptedFleet, number: int) -> None:
    """Make the root believe that one leaf is far faster than the others: it is asked first."""
    for leaf in fleet.leaves:
        leaf.leaf.latency_s = 1e-6 if leaf is fleet[number] else 1.0


def quantile_s(seen: Iterable[Seen], q: float) -> float:
    """The q-quantile of what callers waited."""
    times_s = sorted(query.took_s for query in seen)
    return times_s[min(len(times_s) - 1, int(q * len(times_s)))]


def extra_in_windows(seen: Iterable[Seen], width_s: float) -> list[tuple[int, int]]:
    """Per window of the time of sending: (first attempts, extra attempts) sent in it."""
    windows: dict[int, list[int]] = {}
    for query in seen:
        for attempt in query.gather.attempts:
            window = windows.setdefault(int(attempt.sent_s / width_s), [0, 0])
            window[attempt.kind != "primary"] += 1
    return [(primary, extra) for _, (primary, extra) in sorted(windows.items())]

"""Roots over simulated leaves: one over all of them, or a tree of two levels.

    top root ── leg ──> mid-level root 1 ── leg ──> leaves of shard 1, 2, ...
                        mid-level root 2 ── leg ──> ...

Every root of a tree is the product's own: gathers, races, a driver, a budget, a history and
a price of its own. A mid-level root has as many replicas as a leaf; all of them ask the same
leaves, each by its own view of them. To the top root a mid-level root is a leaf: it can be
hedged, and a cancel travels down through it. What a hop costs is left out, as is the work of
the roots themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final, Protocol

from bench.simulation.fleet import ANSWER, FAN_OUT, LONG_AGO_S, ask, asked
from root.budget import Budget, BudgetTerms, burst_for
from root.conduct import FailureReason, MissingReason
from root.gather import Gather, Outcome
from root.hedging import Policy
from root.latency import Latency
from root.pace import Pace
from root.race import Attempt, Ledger, Terms
from root.ranking import Leaf
from root.scatter import Flight, LeafTransport, scatter

COPIES_MAX: Final = 10
"""Attempts that one gather sends on one shard at most: as many as there may be replicas."""

FAILS_AS: Final[dict[MissingReason, FailureReason]] = {
    "timeout": "expired",
    "no_replica": "error",
    "error": "error",
    "refused": "busy",
}
"""What a mid-level root without one of its shards tells the root above it."""

Shards = Sequence[tuple[int, Sequence[Leaf]]]


def limited(max_extra_load: float, legs: int) -> BudgetTerms:
    """A budget of exactly this share, for queries of so many legs: no floor."""
    return BudgetTerms(max_extra_load, floor_per_s=0.0, burst=burst_for(legs))


class Leaves(LeafTransport, Protocol):
    """Simulated leaves that any number of roots can ask."""

    @property
    def sent(self) -> int:
        """Legs that have been sent to them."""
        ...

    def connect(self) -> list[list[Leaf]]:
        """The replicas of every shard as one more root sees them."""
        ...

    def utilisation(self, now: float) -> float | None:
        """Share of their time so far for which workers have worked, if leaves have any."""
        ...


class Root:
    """What a root keeps across queries."""

    def __init__(self, policy: Policy, budget: BudgetTerms, replicas: int, random: Random) -> None:
        """``replicas`` is how many attempts a shard may cost."""
        self.ledger = Ledger()
        self._policy = policy
        self._budget = Budget(budget, 0.0)
        self._replicas = replicas
        self._random = random
        self._history: dict[str, Latency] = {}
        self._pace: dict[str, Pace] = {}

    def gather(self, kind: str, shards: Shards, deadline_s: float) -> Gather:
        """One query of a kind, to be scattered. Every kind has a history of its own."""
        terms = Terms(
            self._random,
            self._budget,
            self.ledger,
            self._history.setdefault(kind, Latency(0.0)),
            self._replicas,
            pace=self._pace.setdefault(kind, Pace()),
        )
        return Gather(shards, self._policy, terms, deadline_s)

    @property
    def extra(self) -> int:
        """Attempts beyond the first of each leg."""
        return self.ledger.sent["hedge"] + self.ledger.sent["failover"]


class MidRoots:
    """The mid-level of a tree, as leaves of the root above it."""

    def __init__(
        self,
        leaves: Leaves,
        count: int,
        replicas: int,
        policy: Policy,
        max_extra_load: float,
        seed: int,
    ) -> None:
        """Divide the shards among so many mid-level roots, each of so many replicas."""
        self._sent = 0
        self.roots: dict[Leaf, _MidRoot] = {}
        self._serving: dict[int, asyncio.Task[Outcome]] = {}
        self._shards: list[list[Leaf]] = [[] for _ in range(count)]
        for replica in range(replicas):
            shards = list(enumerate(leaves.connect()))
            for number, views in enumerate(self._shards):
                own = shards[number * len(shards) // count : (number + 1) * len(shards) // count]
                name = f"root-{number}-{replica}"
                root = Root(
                    policy,
                    limited(max_extra_load, len(own)),
                    replicas,
                    Random(f"{seed}:{name}:replicas"),
                )
                view = Leaf(name, LONG_AGO_S)
                views.append(view)
                self.roots[view] = _MidRoot(root, own, leaves)

    def connect(self) -> list[list[Leaf]]:
        """The replicas of every mid-level root, as the root above sees them."""
        return self._shards

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Let a mid-level root ask its leaves."""
        self._sent += 1
        attempt.leg = self._sent
        query, _ = asked(flight)
        copy = sum(other.slot == attempt.slot for other in flight.gather.attempts) - 1
        serving = asyncio.get_running_loop().create_task(
            self.roots[attempt.leaf].query(query, flight.ask.deadline_s, copy * COPIES_MAX)
        )
        self._serving[attempt.leg] = serving
        serving.add_done_callback(lambda served: self._end(attempt, flight, served))

    def cancel(self, attempt: Attempt) -> None:
        """Leave the query: the mid-level root cancels its own legs."""
        self._serving[attempt.leg].cancel()

    @property
    def extra(self) -> int:
        """Attempts beyond the first of each leg that mid-level roots have sent."""
        return sum(mid.root.extra for mid in self.roots.values())

    def _end(self, attempt: Attempt, flight: Flight, served: asyncio.Task[Outcome]) -> None:
        del self._serving[attempt.leg]
        if served.cancelled():
            flight.failed(attempt, "cancelled", "")
        elif missing := served.result().missing:
            flight.failed(attempt, FAILS_AS[next(iter(missing.values()))], "")
        else:
            flight.replied(attempt, ANSWER)
        flight.settle()


class _MidRoot:
    """One replica of a mid-level root, and its part of the leaves as it sees them."""

    __slots__ = ("_leaves", "_shards", "root")

    def __init__(self, root: Root, shards: Shards, leaves: Leaves) -> None:
        self.root = root
        self._shards = shards
        self._leaves = leaves

    async def query(self, query: int, deadline_s: float, copy: int) -> Outcome:
        """Ask all of them; ``copy`` keeps apart what a hedge of the root above asks again."""
        gather = self.root.gather(FAN_OUT, self._shards, deadline_s)
        return await scatter(gather, ask(FAN_OUT, query, deadline_s, copy), self._leaves)

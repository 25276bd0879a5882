"""Queries over simulated leaves, driven by the product's own driver, and what they took.

Queries come at random instants, whatever the answers do. With each goes a request to one leaf
alone. The first ``warm_up`` queries teach the root its history and are not counted.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from bench.simulation.fleet import ALONE, FAN_OUT, SimulatedFleet, ask
from bench.simulation.profiles import Draws
from bench.virtual_time import run
from root.budget import Budget, BudgetTerms, burst_for
from root.gather import Gather
from root.hedging import Policy
from root.latency import Latency
from root.ledger import Ledger
from root.pace import Pace
from root.race import Terms
from root.ranking import Leaf
from root.scatter import scatter

RATE_PER_S: Final = 100.0
"""Queries a second. There are no queues here, so it decides only how fast history grows old
and how many queries learn from each other late."""

TIMEOUT_S: Final = 10.0
"""Of a query: longer than all but one stall in a hundred of the worst profile. What has not
ended by then counts as having taken so long."""

MOST: Final = 0.95
PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)

COLLECT_EVERY: Final = 1000
"""Queries between collections of garbage: at 100 legs each they hold a few megabytes."""

UNLIMITED: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


def limited(max_extra_load: float, legs: int) -> BudgetTerms:
    """A budget of exactly this share, for queries of so many legs: no floor."""
    return BudgetTerms(max_extra_load, floor_per_s=0.0, burst=burst_for(legs))


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated. Raises ValueError, naming the field, for a number out of range."""

    profile: str
    leaves: int = 100
    replicas: int = 2
    queries: int = 20_000
    seed: int = 1

    def __post_init__(self) -> None:
        """Check every number."""
        for name, low, high in (
            ("leaves", 1, 100_000),
            ("replicas", 1, 10),
            ("queries", 1, 10_000_000),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high}, not {getattr(self, name)}")

    @property
    def warm_up(self) -> int:
        """Queries before the first that counts."""
        return min(1000, self.queries)


class Row(msgspec.Struct, frozen=True):
    """Percentiles in milliseconds."""

    p50: float
    p95: float
    p99: float
    p99_9: float = msgspec.field(name="p99.9")


@dataclass(slots=True)
class Times:
    """What queries took, in seconds, in the order in which they ended."""

    one_leaf_s: list[float] = field(default_factory=list)
    most_s: list[float] = field(default_factory=list)
    all_s: list[float] = field(default_factory=list)
    legs: int = 0
    extra: int = 0
    hedge_wins: int = 0


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One policy's run. ``extra_load``: attempts beyond the first, per leg."""

    extra_load: float
    hedge_wins: float
    """Share of the extra attempts that won."""
    all_leaves: Row = msgspec.field(name="100_percent")
    most_leaves: Row = msgspec.field(name="95_percent")
    one_leaf: Row | None = None


def row(times_s: Sequence[float]) -> Row:
    """Percentiles of times: the smallest that so many do not exceed."""
    in_order = sorted(times_s)
    last = len(in_order) - 1
    ranks = [min(last, math.ceil(len(in_order) * p / 100.0) - 1) for p in PERCENTILES]
    return Row(*(round(in_order[max(0, rank)] * 1000.0, 4) for rank in ranks))


def arm(times: Times) -> Arm:
    """Return a run in figures."""
    return Arm(
        extra_load=round(times.extra / times.legs, 6),
        hedge_wins=round(times.hedge_wins / times.extra, 4) if times.extra else 0.0,
        all_leaves=row(times.all_s),
        most_leaves=row(times.most_s),
        one_leaf=row(times.one_leaf_s) if times.one_leaf_s else None,
    )


def simulate(plan: Plan, draws: Draws, policy: Policy, budget: BudgetTerms) -> Times:
    """Run all queries of the plan under a policy, in virtual time."""
    with _without_collector():
        return run(_Study(plan, draws, policy, budget).run)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Collect garbage by the count of queries: the collector takes a third of the time, to find
    next to nothing.
    """
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


class _Study:
    """What a root keeps across queries, and the queries."""

    def __init__(self, plan: Plan, draws: Draws, policy: Policy, budget: BudgetTerms) -> None:
        self.times = Times()
        self._plan = plan
        self._policy = policy
        self._fleet = SimulatedFleet(draws, plan.replicas)
        self._shards = list(enumerate(self._fleet.shards))
        self._budget = Budget(budget, 0.0)
        self._ledger = Ledger()
        self._random = Random(f"{plan.seed}:replicas")
        self._history = {kind: Latency(0.0) for kind in (FAN_OUT, ALONE)}
        self._pace = {kind: Pace() for kind in (FAN_OUT, ALONE)}

    async def run(self) -> Times:
        loop = asyncio.get_running_loop()
        arrivals = Random(f"{self._plan.seed}:arrivals")
        async with asyncio.TaskGroup() as group:
            for query in range(-self._plan.warm_up, self._plan.queries):
                if query % COLLECT_EVERY == 0:
                    gc.collect()
                await asyncio.sleep(arrivals.expovariate(RATE_PER_S))
                group.create_task(self._query(query, loop.time()))
        return self.times

    async def _query(self, query: int, now: float) -> None:
        whole = await self._gather(FAN_OUT, self._shards, query, now)
        alone_at_s = asyncio.get_running_loop().time()
        shard = self._shards[query % len(self._shards)]
        alone = await self._gather(ALONE, [shard], query, alone_at_s)
        if query >= 0:
            self._count(whole, alone, now, alone_at_s)

    async def _gather(
        self, kind: str, shards: Sequence[tuple[int, Sequence[Leaf]]], query: int, now: float
    ) -> Gather:
        terms = Terms(
            self._random,
            self._budget,
            self._ledger,
            self._history[kind],
            self._plan.replicas,
            pace=self._pace[kind],
        )
        gather = Gather(shards, self._policy, terms, now + TIMEOUT_S)
        await scatter(gather, ask(kind, query, now + TIMEOUT_S), self._fleet)
        return gather

    def _count(self, whole: Gather, alone: Gather, now: float, alone_at_s: float) -> None:
        times, legs = self.times, whole.legs
        assert whole.outcome is not None  # noqa: S101 (both have been awaited)
        assert alone.outcome is not None  # noqa: S101
        decided_s = whole.outcome.decided_s
        ended_s = sorted([a.ended_s for a in whole.attempts if a.fate == "won"])
        most = math.ceil(legs * MOST)
        times.all_s.append(decided_s - now)
        times.most_s.append((ended_s[most - 1] if len(ended_s) >= most else decided_s) - now)
        times.one_leaf_s.append(alone.outcome.decided_s - alone_at_s)
        times.legs += legs
        times.extra += len(whole.attempts) - legs
        times.hedge_wins += whole.tally.hedge_wins

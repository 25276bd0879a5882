"""Queries over simulated leaves, driven by the product's own driver, and what they took.

Queries come at random instants, whatever the answers do. With each goes a request to one leaf
alone. The first ``warm_up`` queries teach the root its history and are not counted.
"""

from __future__ import annotations

import asyncio
import gc
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

import msgspec

from bench.simulation.fleet import ALONE, FAN_OUT, SimulatedFleet, ask
from bench.simulation.profiles import Draws
from bench.simulation.queued import QueuedFleet
from bench.simulation.roots import Leaves, MidRoots, Root, Shards
from bench.virtual_time import run
from root.budget import BudgetTerms
from root.gather import Gather
from root.hedging import Policy
from root.scatter import scatter

TIMEOUT_S: Final = 10.0
"""Of a query: longer than all but one stall in a hundred of the worst profile. What has not
ended by then counts as having taken so long."""

MOST: Final = 0.95
PERCENTILES: Final = (50.0, 95.0, 99.0, 99.9)

COLLECT_EVERY: Final = 1000
"""Queries between collections of garbage: at 100 legs each they hold a few megabytes."""

UNLIMITED: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What is simulated. Raises ValueError, naming the field, for a number out of range."""

    profile: str
    leaves: int = 100
    replicas: int = 2
    queries: int = 20_000
    seed: int = 1
    tree: int = 0
    """Mid-level roots between the root and the leaves; 0 for none."""

    def __post_init__(self) -> None:
        """Check every number."""
        for name, low, high in (
            ("leaves", 1, 100_000),
            ("replicas", 1, 10),
            ("queries", 1, 10_000_000),
            ("tree", 0, self.leaves),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name} must be from {low} to {high}, not {getattr(self, name)}")

    @property
    def fan_out(self) -> int:
        """Legs of a query at the root."""
        return self.tree or self.leaves

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
    """What queries took, in seconds, in the order in which they ended, and what they cost."""

    one_leaf_s: list[float] = field(default_factory=list)
    most_s: list[float] = field(default_factory=list)
    all_s: list[float] = field(default_factory=list)
    legs: int = 0
    extra: int = 0
    hedge_wins: int = 0
    incomplete: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    utilisation: float | None = None
    mid_extra_load: float | None = None
    leaf_extra_load: float | None = None
    sent: int = 0
    """Attempts that leaves got, in the whole run with its warm-up."""


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One policy's run. ``extra_load``: attempts beyond the first, per leg."""

    extra_load: float
    hedge_wins: float
    """Share of the extra attempts that won."""
    complete: float
    """Share of the queries that got every shard."""
    failures: dict[str, int]
    """Attempts that failed, by reason, in the whole run with its warm-up."""
    utilisation: float | None
    """Share of the time for which workers worked, where leaves have queues."""
    mid_extra_load: float | None
    """In a tree: attempts beyond the first that mid-level roots sent, per leg of theirs."""
    leaf_extra_load: float | None
    """In a tree: attempts that leaves got beyond one a query, for whatever reason, per leaf."""
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
        complete=round(1.0 - times.incomplete / len(times.all_s), 6),
        failures=dict(sorted(times.failures.items())),
        utilisation=_rounded(times.utilisation),
        mid_extra_load=_rounded(times.mid_extra_load),
        leaf_extra_load=_rounded(times.leaf_extra_load),
        all_leaves=row(times.all_s),
        most_leaves=row(times.most_s),
        one_leaf=row(times.one_leaf_s) if times.one_leaf_s else None,
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


Watcher = Callable[[Gather, float], None]
"""Is told of each query that counts, when it is decided: its gather and when it began."""


def simulate(
    plan: Plan,
    draws: Draws,
    policy: Policy,
    budget: BudgetTerms,
    watch: Watcher = lambda *_: None,
) -> Times:
    """Run all queries of the plan under a policy, in virtual time."""
    with _without_collector():
        return run(lambda: _run(plan, draws, policy, budget, watch))


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


async def _run(
    plan: Plan, draws: Draws, policy: Policy, budget: BudgetTerms, watch: Watcher
) -> Times:
    return await _Study(plan, draws, policy, budget, watch).run()


class _Study:
    """A fleet, its root or roots, and the queries."""

    def __init__(
        self, plan: Plan, draws: Draws, policy: Policy, budget: BudgetTerms, watch: Watcher
    ) -> None:
        self.times = Times()
        self._watch = watch
        self._plan = plan
        self._rate_per_s = draws.profile.rate_per_s(plan.leaves, plan.replicas)
        # After a fan-out no leaf pauses that pauses with all others: who asks one leaf then does
        # not ask at a random moment.
        background = draws.profile.background
        self._apart_s = background.period_s if background else 0.0
        self._apart = Random(f"{plan.seed}:apart")
        random = Random(f"{plan.seed}:replicas")
        self._root = Root(policy, budget, plan.replicas, random)
        self._leaves: Leaves
        if draws.profile.machines is None:
            self._leaves = SimulatedFleet(draws, plan.replicas)
        else:
            self._leaves = QueuedFleet(draws, draws.profile.machines, plan.replicas, plan.seed)
        self._mids: MidRoots | None = None
        if plan.tree:
            share = budget.max_extra_load
            self._mids = MidRoots(self._leaves, plan.tree, plan.replicas, policy, share, plan.seed)
        self._asked = self._mids or self._leaves
        self._shards = list(enumerate(self._asked.connect()))

    async def run(self) -> Times:
        loop = asyncio.get_running_loop()
        arrivals = Random(f"{self._plan.seed}:arrivals")
        async with asyncio.TaskGroup() as group:
            for query in range(-self._plan.warm_up, self._plan.queries):
                if query % COLLECT_EVERY == 0:
                    gc.collect()
                await asyncio.sleep(arrivals.expovariate(self._rate_per_s))
                group.create_task(self._query(query, loop.time()))
        self._account(loop.time())
        return self.times

    async def _query(self, query: int, now: float) -> None:
        whole = await self._gather(FAN_OUT, self._shards, query, now)
        if query >= 0:
            self._count(whole, now)
            self._watch(whole, now)
        if self._mids is None:
            await self._query_one(query)

    async def _query_one(self, query: int) -> None:
        """Ask one leaf alone, as it may take longer inside a fan-out."""
        if self._apart_s:
            await asyncio.sleep(self._apart.uniform(0.0, self._apart_s))
        now = asyncio.get_running_loop().time()
        shard = self._shards[query % len(self._shards)]
        alone = await self._gather(ALONE, [shard], query, now)
        if query >= 0:
            assert alone.outcome is not None  # noqa: S101 (it has been awaited)
            self.times.one_leaf_s.append(alone.outcome.decided_s - now)

    async def _gather(self, kind: str, shards: Shards, query: int, now: float) -> Gather:
        gather = self._root.gather(kind, shards, now + TIMEOUT_S)
        await scatter(gather, ask(kind, query, now + TIMEOUT_S), self._asked)
        return gather

    def _count(self, whole: Gather, now: float) -> None:
        times, legs = self.times, whole.legs
        assert whole.outcome is not None  # noqa: S101 (it has been awaited)
        decided_s = whole.outcome.decided_s
        ended_s = sorted([a.ended_s for a in whole.attempts if a.fate == "won"])
        most = math.ceil(legs * MOST)
        times.all_s.append(decided_s - now)
        times.most_s.append((ended_s[most - 1] if len(ended_s) >= most else decided_s) - now)
        times.legs += legs
        times.extra += whole.tally.hedged + whole.tally.failed_over
        times.hedge_wins += whole.tally.hedge_wins
        times.incomplete += bool(whole.outcome.missing)

    def _account(self, now: float) -> None:
        """Add up what was not counted query by query."""
        times, leaves, mids = self.times, self._leaves, self._mids
        times.sent = leaves.sent
        times.utilisation = leaves.utilisation(now)
        ledgers = [self._root.ledger]
        if mids is not None:
            ledgers += [mid.root.ledger for mid in mids.roots.values()]
            asked = self._plan.leaves * (self._plan.warm_up + self._plan.queries)
            times.mid_extra_load = mids.extra / (leaves.sent - mids.extra)
            times.leaf_extra_load = leaves.sent / asked - 1.0
        for ledger in ledgers:
            times.failures.update({r: n for r, n in ledger.failures.items() if n})

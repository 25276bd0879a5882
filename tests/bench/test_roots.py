"""A tree of roots over simulated leaves."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from bench.simulation.fleet import FAN_OUT, SimulatedFleet, ask
from bench.simulation.machines import Machines
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.queued import QueuedFleet
from bench.simulation.roots import MidRoots, Root, limited
from bench.simulation.study import UNLIMITED, Plan, arm, simulate
from bench.virtual_time import run
from root.budget import BudgetTerms
from root.hedging import Adaptive, Off, Together
from root.race import Attempt
from root.scatter import Flight, scatter

PLAN = Plan("tail-at-scale", leaves=20, queries=100, tree=4)


def draws(plan: Plan = PLAN) -> Draws:
    return Draws(PROFILES[plan.profile], plan.leaves, plan.seed, keep=True)


@pytest.mark.parametrize("tree", [1, 3, 4, 20])
def test_without_hedging_a_tree_is_as_fast_as_its_slowest_leaf(tree: int) -> None:
    """As one root over all: every leaf is asked once, by one mid-level root, however divided."""
    plan = replace(PLAN, tree=tree)
    given = draws()
    times = simulate(plan, given, Off(), UNLIMITED)
    slowest = sorted(max(given.legs_s(query, 0)) for query in range(plan.queries))
    assert sorted(times.all_s) == pytest.approx(slowest)
    assert (times.legs, times.extra, times.mid_extra_load) == (tree * plan.queries, 0, 0.0)
    assert times.leaf_extra_load == pytest.approx(0.0)


def test_both_levels_hedge_and_every_copy_is_another() -> None:
    """Two at once on both levels: four copies of every leg, and the fastest of them counts."""
    given = draws()
    times = simulate(PLAN, given, Together(), UNLIMITED)
    copies = [[given.legs_s(query, copy) for copy in (0, 1, 10, 11)] for query in range(100)]
    assert times.extra == times.legs
    assert times.leaf_extra_load is not None
    assert times.leaf_extra_load > 2.0, "all but the first few, before there is a history"
    # A mid-level root answers when all its shards have: the faster of the two, shard by shard,
    # within a replica; of its replicas the one that is through first.
    expected = []
    for one, two, three, four in copies:
        first = [min(pair) for pair in zip(one, two, strict=True)]
        second = [min(pair) for pair in zip(three, four, strict=True)]
        parts = [slice(i, i + 5) for i in range(0, 20, 5)]
        expected.append(max(min(max(first[part]), max(second[part])) for part in parts))
    # A mid-level root that loses earns nothing for the legs it is spared, so some are denied.
    assert sum(expected) <= sum(times.all_s) < 1.1 * sum(expected)


def test_each_level_keeps_its_budget() -> None:
    """The share at the top, and the share of every mid-level root below it."""
    plan = Plan("tail-at-scale", leaves=100, queries=1000, tree=5)
    one = arm(simulate(plan, draws(plan), Adaptive(), limited(0.05, plan.fan_out)))
    assert one.mid_extra_load is not None
    assert one.leaf_extra_load is not None
    assert 0.0 < one.extra_load < 0.05 + 100 / 5000
    assert 0.03 < one.mid_extra_load < 0.06
    both = (1.0 + one.extra_load) * (1.0 + one.mid_extra_load) - 1.0
    assert one.leaf_extra_load == pytest.approx(both, abs=0.02)


class Listening(SimulatedFleet):
    """Leaves that note the cancels they get."""

    def __init__(self, given: Draws, replicas: int) -> None:
        super().__init__(given, replicas)
        self.cancelled: Counter[int] = Counter()

    def cancel(self, attempt: Attempt) -> None:
        self.cancelled[attempt.shard] += 1


def test_a_cancel_travels_down() -> None:
    """A caller that leaves the top root takes every open leg of every level along."""

    async def main() -> None:
        leaves = Listening(draws(), 2)
        mids = MidRoots(leaves, 4, 2, Off(), 0.05, seed=1)
        root = Root(Off(), BudgetTerms(), 2, Random("replicas"))
        gather = root.gather(FAN_OUT, list(enumerate(mids.connect())), 10.0)
        query = asyncio.ensure_future(scatter(gather, ask(FAN_OUT, 0, 10.0), mids))
        await asyncio.sleep(0.0001)
        query.cancel()
        await asyncio.sleep(0.0001)
        answered = sum(leg_s <= 0.0001 for leg_s in draws().legs_s(0, 0))
        assert sum(leaves.cancelled.values()) == 20 - answered
        assert root.ledger.ended["cancelled"] == 4
        await asyncio.sleep(10.0)
        ledgers = [root.ledger, *(mid.root.ledger for mid in mids.roots.values())]
        assert [ledger.in_flight for ledger in ledgers] == [0] * 9

    run(main)


def test_a_mid_level_root_cancelled_before_it_began_ends_its_leg() -> None:
    """In the very tick in which it was sent."""

    async def main() -> None:
        mids = MidRoots(SimulatedFleet(draws(), 2), 4, 2, Off(), 0.05, seed=1)
        root = Root(Off(), BudgetTerms(), 2, Random("replicas"))
        gather = root.gather(FAN_OUT, list(enumerate(mids.connect())), 10.0)
        flight = Flight(gather, ask(FAN_OUT, 0, 10.0), mids)
        for order in gather.start(0.0):
            mids.send(order.attempt, flight)
            order.attempt.cancel_sent = True
            mids.cancel(order.attempt)
        await asyncio.sleep(0.0)
        await asyncio.sleep(0.0)
        assert [attempt.fate for attempt in gather.attempts] == ["cancelled"] * 4

    run(main)


def test_a_mid_level_root_without_a_shard_fails_over() -> None:
    """What it lacks it says; its replica lacks it too; the top root is told why."""

    async def main() -> None:
        machines = Machines(1, 0, 0.5)
        leaves = QueuedFleet(draws(), machines, 1, seed=1)
        mids = MidRoots(leaves, 4, 2, Off(), 0.05, seed=1)
        shards = list(enumerate(mids.connect()))
        root = Root(Off(), BudgetTerms(), 2, Random("replicas"))
        gathers = [root.gather(FAN_OUT, shards, 10.0) for _ in range(2)]
        outcomes = await asyncio.gather(
            *(scatter(one, ask(FAN_OUT, 0, 10.0), mids) for one in gathers)
        )
        assert not outcomes[0].missing
        assert set(outcomes[1].missing.values()) == {"refused"}
        assert [attempt.kind for attempt in gathers[1].attempts].count("failover") > 0

    run(main)

"""Simulated leaves with queues."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

import pytest

from bench.simulation.fleet import FAN_OUT, ask
from bench.simulation.machines import Machines, episodes
from bench.simulation.profiles import Draws, Profile
from bench.simulation.queued import QueuedFleet
from bench.simulation.roots import Root
from bench.virtual_time import run
from root.budget import BudgetTerms
from root.gather import Gather
from root.hedging import MIN_SAMPLES, Fixed, Off, Policy
from root.scatter import scatter

QUIET = Profile(10.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 2.0)
"""Every leg is 10 ms of work."""

GENEROUS = BudgetTerms(1.0, 1000.0, 1000.0)


@dataclass
class Stage:
    """One fleet and a root over it."""

    fleet: QueuedFleet
    root: Root

    async def query(self, timeout_s: float = 1.0, query: int = 0) -> Gather:
        """Ask every shard once."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        gather = self.root.gather(FAN_OUT, self.shards, deadline_s)
        await scatter(gather, ask(FAN_OUT, query, deadline_s), self.fleet)
        return gather

    def __post_init__(self) -> None:
        self.shards = list(enumerate(self.fleet.connect()))


def play(
    scene: Callable[[Stage], Awaitable[None]],
    machines: Machines,
    *,
    legs: int = 1,
    replicas: int = 1,
    policy: Policy | None = None,
) -> None:
    """Play a scene on a fresh fleet, in virtual time."""

    async def main() -> None:
        fleet = QueuedFleet(Draws(QUIET, legs, 1), machines, replicas, seed=1)
        root = Root(policy or Off(), GENEROUS, replicas, Random("replicas"))
        await scene(Stage(fleet, root))

    run(main)


def took_ms(gather: Gather) -> float:
    """From sending to the outcome, to a tenth."""
    assert gather.outcome is not None
    return round((gather.outcome.decided_s - gather.attempts[0].sent_s) * 1000.0, 1)


def test_legs_wait_for_a_worker_in_order() -> None:
    """Five at once on two workers: two, two and one, each as it came, with its waiting told."""

    async def scene(stage: Stage) -> None:
        gathers = await asyncio.gather(*(stage.query() for _ in range(5)))
        assert [took_ms(one) for one in gathers] == [10.0, 10.0, 20.0, 20.0, 30.0]
        waits = [round(one.attempts[0].queue_us, -2) for one in gathers]
        assert waits == [0, 0, 10_000, 10_000, 20_000]
        assert stage.fleet.utilisation(0.030) == pytest.approx(5 / 6)

    play(scene, Machines(2, 100, 0.5))


def test_a_full_queue_answers_busy() -> None:
    """One at work, one waiting, the third refused at once."""

    async def scene(stage: Stage) -> None:
        gathers = await asyncio.gather(*(stage.query() for _ in range(3)))
        assert [took_ms(one) for one in gathers] == [10.0, 20.0, 0.0]
        assert gathers[2].attempts[0].reason == "busy"

    play(scene, Machines(1, 1, 0.5))


def test_what_has_expired_is_not_begun() -> None:
    """A leg whose deadline has passed in the queue costs no work and ends."""

    async def scene(stage: Stage) -> None:
        first, second = await asyncio.gather(stage.query(), stage.query(timeout_s=0.005))
        await asyncio.sleep(1.0)
        assert took_ms(second) == 5.0
        assert [a.fate for one in (first, second) for a in one.attempts] == ["won", "cancelled"]
        assert stage.fleet.utilisation(1.0) == pytest.approx(0.010)
        assert all(leaf.outstanding == 0 for _, leaves in stage.shards for leaf in leaves)

    play(scene, Machines(1, 10, 0.5))


def test_a_cancel_leaves_the_queue_and_never_stops_work() -> None:
    """A caller that leaves costs what is at work, not what waits; the next comes on sooner."""

    async def scene(stage: Stage) -> None:
        queries = [asyncio.ensure_future(stage.query()) for _ in range(3)]
        await asyncio.sleep(0.001)
        queries[0].cancel()
        queries[1].cancel()
        assert took_ms(await queries[2]) == 20.0
        assert stage.fleet.utilisation(0.020) == pytest.approx(1.0)
        assert stage.root.ledger.ended["cancelled"] == 2
        assert stage.root.ledger.in_flight == 0

    play(scene, Machines(1, 10, 0.5))


def test_a_hedge_occupies_a_worker() -> None:
    """Both replicas work on the leg; a query that comes meanwhile waits for one of them."""

    async def scene(stage: Stage) -> None:
        for _ in range(MIN_SAMPLES):
            await stage.query()
        hedged = asyncio.ensure_future(stage.query())
        await asyncio.sleep(0.006)
        other = await stage.query()
        assert len((await hedged).attempts) == 2
        assert took_ms(other) > 10.0

    play(scene, Machines(1, 10, 0.5), replicas=2, policy=Fixed(0.005))


def test_a_crash_loses_what_is_owed_until_the_leaf_is_back() -> None:
    """What is at work and what waits is gone at that instant; then no leaf is connected."""
    machines = Machines(1, 1000, 0.5, crash_every_s=20.0, down_s=1.0)
    crash_s, back_s = next(episodes(Random("1:leaf-0-0:crashes"), 20.0, 1.0))

    async def scene(stage: Stage) -> None:
        await asyncio.sleep(crash_s - 0.005)
        lost = await asyncio.gather(stage.query(), stage.query())
        assert [took_ms(one) for one in lost] == [5.0, 5.0]
        assert {one.attempts[0].reason for one in lost} == {"gone"}
        assert (await stage.query()).attempts == []
        await asyncio.sleep(back_s - crash_s)
        assert took_ms(await stage.query()) == 10.0
        assert stage.root.ledger.in_flight == 0

    play(scene, machines)


def test_a_share_of_legs_fails_after_the_work() -> None:
    """An error comes when the answer would have."""

    async def scene(stage: Stage) -> None:
        gathers = [await stage.query() for _ in range(400)]
        failed = [one for one in gathers if one.attempts[0].reason == "error"]
        assert 60 < len(failed) < 140
        assert {took_ms(one) for one in gathers} == {10.0}

    play(scene, Machines(1, 10, 0.5, error_share=0.25))

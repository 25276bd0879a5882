"""Tied requests on leaves with queues, in virtual time: what they gain, and what they cost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import pytest

from bench.published import TIED_IDLE
from bench.simulation.scripted import TRAVEL_S, Script, fails, takes, takes_about
from bench.simulation.scripted_fleet import (
    BareRoot,
    ScriptedFleet,
    Seen,
    at,
    card,
    dealt,
    prefer,
    quantile_s,
)
from bench.virtual_time import run
from bench.workload import poisson
from root.hedging import MIN_SAMPLES, TIED_ROUND_TRIPS, Off, Policy, Tied
from root.race import Attempt

LEAVES: Final = 3
READ_S: Final = 0.0148
READ_SIGMA: Final = 0.4
"""Reads from a disk that is otherwise idle: the profile ``disk-queue``."""
MEAN_READ_S: Final = 0.016
READS: Final = 6000

ROOTS: Final = 20
"""So many that what one of them knows of the queues says little."""

PUBLISHED: Final = [
    TIED_IDLE.rows["tied"][p] / TIED_IDLE.rows["off"][p] for p in ("p50", "p90", "p99")
]
"""Tied over untied on a cluster that is otherwise idle."""

SECOND_S: Final = 2.0 * TIED_ROUND_TRIPS * TRAVEL_S
"""When the second copy is sent."""

Body = Callable[[ScriptedFleet, BareRoot], Awaitable[None]]


def on_disks(
    body: Body, script: Script, policy: Policy | None = None, leaves: int = LEAVES
) -> None:
    """Run a test's body with one shard on leaves of one worker, and a root with a history."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), dealt(1, leaves=leaves, replicas=leaves), script, workers=1)
        root = BareRoot(fleet, policy or Tied())
        for _ in range(MIN_SAMPLES):
            root.history.finished(MEAN_READ_S)
        await body(fleet, root)
        await asyncio.sleep(10.0)
        assert root.accounted

    run(main)


def busy_disks(load: float, policy: Policy) -> tuple[list[Seen], BareRoot]:
    """What readers see who keep the disks busy for that share of the time."""
    seen: list[Seen] = []
    roots: list[BareRoot] = []

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        roots.append(root)
        rate_per_s = LEAVES * load / MEAN_READ_S
        arrivals = poisson(rate_per_s, READS / rate_per_s, Random("arrivals"))
        seen.extend(await root.open_loop(arrivals))

    on_disks(body, takes_about(READ_S, READ_SIGMA, Random("reads")), policy)
    return seen, roots[0]


def attempts(seen: Seen) -> dict[str, Attempt]:
    """The attempts of a query of one shard, by kind."""
    return {attempt.kind: attempt for attempt in seen.gather.attempts}


@pytest.mark.parametrize(("load", "p99_share"), [(0.3, 0.95), (0.5, 0.9), (0.7, 0.87)])
def test_waiting_in_two_queues_is_shorter(load: float, p99_share: float) -> None:
    """At every percentile, the more so the fuller and the farther out; less than one leg in a
    hundred is done twice, and the budget is as full as ever.
    """
    off, _ = busy_disks(load, Off())
    tied, root = busy_disks(load, Tied())
    for q in (0.5, 0.9, 0.99, 0.999):
        assert quantile_s(tied, q) < quantile_s(off, q)
    assert quantile_s(tied, 0.99) < p99_share * quantile_s(off, 0.99)
    assert all(query.complete for query in tied)
    ledger = root.ledger
    assert ledger.sent["tied"] == ledger.sent["primary"] == len(tied)
    assert 0 < ledger.tied_duplicates < 0.01 * len(tied)
    assert ledger.tied_dropped == len(tied) - ledger.tied_duplicates
    assert (ledger.denied, root.budget.fullness) == (0, 1.0)


def of_many_roots(load: float, policy: Policy) -> tuple[list[Seen], list[BareRoot]]:
    """What readers see where none of the roots knows what the others have sent."""

    async def main() -> tuple[list[Seen], list[BareRoot]]:
        script = takes_about(READ_S, READ_SIGMA, Random("reads"))
        roots: list[BareRoot] = []
        for number in range(ROOTS):
            generation, held = card(1), dealt(1, leaves=LEAVES, replicas=LEAVES)
            fleet = ScriptedFleet(generation, held, script, workers=1)
            if roots:
                assert isinstance(roots[0].fleet, ScriptedFleet)
                fleet.join(roots[0].fleet)
            root = BareRoot(fleet, policy, timeout_s=5.0, seed=number)
            for _ in range(10 * MIN_SAMPLES):
                root.history.finished(MEAN_READ_S)
            roots.append(root)
        rate_per_s = LEAVES * load / MEAN_READ_S
        schedules = [
            poisson(rate_per_s / ROOTS, READS / rate_per_s, Random(f"arrivals {number}"))
            for number in range(ROOTS)
        ]
        reads = zip(roots, schedules, strict=True)
        seen = await asyncio.gather(*(root.open_loop(schedule) for root, schedule in reads))
        await asyncio.sleep(10.0)
        assert all(root.accounted for root in roots)
        return [query for queries in seen for query in queries], roots

    return run(main)


@pytest.mark.parametrize(
    ("load", "shares_max"),
    [(0.3, [0.95, 0.85, 0.75]), (0.5, PUBLISHED), (0.7, PUBLISHED)],
)
def test_many_roots_gain_most(load: float, shares_max: list[float]) -> None:
    """None of them can send to the shorter queue. At half load and above, reads take no larger a
    share of what they take untied than was published.
    """
    off, _ = of_many_roots(load, Off())
    tied, roots = of_many_roots(load, Tied())
    for q, share_max in zip((0.5, 0.9, 0.99), shares_max, strict=True):
        assert quantile_s(tied, q) <= share_max * quantile_s(off, q)
    assert quantile_s(tied, 0.999) < quantile_s(off, 0.999)
    assert sum(root.ledger.tied_duplicates for root in roots) < 0.01 * len(tied)
    assert sum(root.ledger.denied for root in roots) == 0


def test_on_an_idle_fleet_the_second_copy_is_dropped_as_it_arrives() -> None:
    """The first has begun by then, and said so: nothing is done twice."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        seen = await root.query()
        assert seen.took_s == pytest.approx(0.015 + 2 * TRAVEL_S)
        second = attempts(seen)["tied"]
        assert second.sent_s - seen.started_s == pytest.approx(SECOND_S)
        assert second.ended_s - second.sent_s == pytest.approx(2 * TRAVEL_S)
        assert (second.dropped, second.service_us) == (True, 0)
        assert sum(leaf.counts.worked_s for leaf in fleet.leaves) == pytest.approx(0.015)

    on_disks(body, takes(0.015))


def test_the_shorter_of_two_queues_decides() -> None:
    """The first copy's leaf is busy for a second: the other one answers, and the first copy is
    dropped there before its turn comes.
    """

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        root.policy = Off()
        fleet[0].script = takes(1.0)
        prefer(fleet, 0)
        long = asyncio.create_task(root.query(timeout_s=3.0))
        await asyncio.sleep(0.001)
        root.policy = Tied()
        prefer(fleet, 0)
        seen = await root.query()
        assert seen.took_s == pytest.approx(0.015 + SECOND_S + 2 * TRAVEL_S)
        by_kind = attempts(seen)
        assert (by_kind["primary"].leaf, by_kind["primary"].dropped) == (fleet[0].leaf, True)
        assert by_kind["tied"].fate == "won"
        await long
        assert fleet[0].counts.worked_s == 1.0

    on_disks(body, takes(0.015), leaves=2)


def test_lost_messages_cost_work_and_no_answer() -> None:
    """Both copies are done: one answer is merged, and the duplicates are counted."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        for leaf in fleet.leaves:
            leaf.tells_peers = False
        for _ in range(10):
            seen = await root.query()
            assert (seen.complete, len(seen.outcome.replies)) == (True, 1)
            await asyncio.sleep(0.1)
        assert (root.ledger.tied_duplicates, root.ledger.tied_dropped) == (10, 0)
        assert sum(leaf.counts.worked_s for leaf in fleet.leaves) == pytest.approx(20 * 0.015)

    on_disks(body, takes(0.015))


def test_two_leaves_that_begin_at_once_both_go_on() -> None:
    """Each hears of the other when it has begun; the first answer is merged."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        root.policy = Off()
        for number, work_s in ((0, 0.050), (1, 0.050 - SECOND_S / 10)):
            fleet[number].script = takes(work_s)
            prefer(fleet, number)
            asyncio.get_running_loop().create_task(root.query())
            await asyncio.sleep(SECOND_S / 10)
        root.policy = Tied()
        fleet[0].script = fleet[1].script = takes(0.015)
        seen = await root.query()
        await asyncio.sleep(1.0)
        assert len(seen.outcome.replies) == 1
        assert sorted(a.fate for a in seen.gather.attempts) == ["lost", "won"]
        assert (root.ledger.tied_duplicates, root.ledger.tied_dropped) == (1, 0)

    on_disks(body, takes(0.015), leaves=2)


@pytest.mark.parametrize("death", ["lost", "error"])
def test_where_the_leaf_that_began_fails_the_other_does_it_after_all(death: str) -> None:
    """It has dropped its copy, and is asked again: also where there is nobody else."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        prefer(fleet, 0)
        if death == "lost":
            at(0.010, lambda: fleet.disconnect(0))
        else:
            fleet[0].script = fails("error", after_s=0.010)
        seen = await root.query()
        assert seen.complete
        assert seen.took_s < 0.010 + 0.015 + 6 * TRAVEL_S
        kinds = [(a.kind, a.leaf is fleet[1].leaf, a.fate) for a in seen.gather.attempts]
        assert kinds == [
            ("primary", False, "failed"),
            ("tied", True, "cancelled"),
            ("failover", True, "won"),
        ]

    on_disks(body, takes(0.015), leaves=2)


def test_one_leaf_alone_answers_alone() -> None:
    """With one replica, or with the others lost, legs are plain ones."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        seen = await root.query()
        assert [(a.kind, a.twin, a.fate) for a in seen.gather.attempts] == [
            ("primary", None, "won")
        ]

    on_disks(body, takes(0.015), leaves=1)


def test_a_query_ends_at_its_deadline_whatever_its_copies_wait_for() -> None:
    """Both are cancelled in their queues, and cost neither work nor a token."""

    async def body(fleet: ScriptedFleet, root: BareRoot) -> None:
        root.policy = Off()
        for number in range(2):
            fleet[number].script = takes(1.0)
            prefer(fleet, number)
            asyncio.get_running_loop().create_task(root.query(timeout_s=5.0))
            await asyncio.sleep(0.001)
        root.policy = Tied()
        seen = await root.query(timeout_s=0.1)
        assert seen.took_s == pytest.approx(0.1)
        assert seen.outcome.missing == {0: "timeout"}
        assert Counter(a.kind for a in seen.gather.attempts) == {"primary": 1, "tied": 1}
        await asyncio.sleep(2.0)
        assert all(a.done_for_nothing for a in seen.gather.attempts)
        assert root.budget.fullness == 1.0
        assert sum(leaf.counts.worked_s for leaf in fleet.leaves) == pytest.approx(2.0)

    on_disks(body, takes(0.015), leaves=2)


def test_no_leaf_has_two_copies_at_once() -> None:
    """Nor is any query answered twice, on leaves that are busy most of the time."""
    seen, _ = busy_disks(0.9, Tied())
    for query in seen:
        first, second = query.gather.attempts
        assert first.leaf is not second.leaf
        assert (first.twin, second.twin) == (second.leaf, first.leaf)
        assert len(query.outcome.replies) == 1

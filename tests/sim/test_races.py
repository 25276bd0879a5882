"""Races to the end: who wins, who is cancelled, what is counted, what is left behind."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from bench.simulation.scripted import (
    TRAVEL_S,
    Deed,
    Leg,
    by_shard,
    fails,
    hangs,
    takes,
    takes_about,
)
from bench.simulation.scripted_fleet import BareRoot, ScriptedFleet, at, card, dealt, prefer
from bench.virtual_time import run, running_loop
from bench.workload import constant
from root.budget import Budget, BudgetTerms
from root.conduct import FailureReason
from root.gather import AlarmRang, AttemptsReplied, Gather, SendAttempt
from root.hedging import MIN_SAMPLES, Fixed, Off, Policy, Quantile
from root.latency import Latency
from root.race import Ledger, Terms
from root.ranking import Leaf

PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)
ROUND_TRIP_S = 2 * TRAVEL_S


async def warmed_up(fleet: ScriptedFleet, delay_s: float = 0.01, attempts_max: int = 2) -> BareRoot:
    """A root with a history, and tokens enough, that hedges after a fixed delay."""
    root = BareRoot(fleet, Off(), PLENTY, attempts_max=attempts_max)
    await root.open_loop(constant(100.0, 2.0))
    root.policy = Fixed(delay_s)
    return root


def test_the_hedge_answers_for_a_leaf_that_hears_nothing() -> None:
    """The first leaf is stopped, cancels and all: the hedge's answer ends the query."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = await warmed_up(fleet)
        prefer(fleet, 0)
        fleet[0].stop()
        seen = await root.query()
        assert seen.complete
        assert seen.took_s == pytest.approx(0.01 + 0.005 + ROUND_TRIP_S)
        assert seen.gather.tally.hedge_wins == 1
        fleet[0].resume()
        await asyncio.sleep(1.0)
        assert root.accounted
        assert root.ledger.ended["cancelled"] == 1

    run(main)


def test_an_answer_that_crosses_its_cancel_is_lost() -> None:
    """A loser that answers after all is lost, one that acknowledges is cancelled; neither is a
    failure, of the attempt or of its leaf.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(card(1), [[0], [0]], takes_about(0.005, 0.03, random))
        root = await warmed_up(fleet, delay_s=TRAVEL_S)
        for _ in range(500):
            assert (await root.query()).complete
        await asyncio.sleep(1.0)
        assert root.accounted
        assert root.ledger.sent["hedge"] == 500
        assert root.ledger.ended["lost"] + root.ledger.ended["cancelled"] == 500
        assert min(root.ledger.ended["lost"], root.ledger.ended["cancelled"]) > 100
        assert root.ledger.ended["failed"] == 0
        assert not any(root.ledger.failures.values())
        now = asyncio.get_running_loop().time()
        assert not any(leaf.leaf.failing(now) for leaf in fleet.leaves)
        assert not root.budget.resting(now)

    run(main)


def test_a_failure_starts_the_next_attempt_at_once() -> None:
    """Not when the hedge delay has passed."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = await warmed_up(fleet, delay_s=0.3)
        prefer(fleet, 0)
        fleet[0].script = fails("error", after_s=0.002)
        seen = await root.query()
        assert seen.complete
        assert seen.took_s == pytest.approx(0.002 + 0.005 + 2 * ROUND_TRIP_S)
        assert [a.kind for a in seen.gather.attempts] == ["primary", "failover"]

    run(main)


@pytest.mark.parametrize("reason", ["error", "garbage", "unknown_shard", "busy"])
def test_a_failover_that_hangs_does_not_outlive_the_deadline(reason: FailureReason) -> None:
    """All time runs out while a replacement is under way: the query ends at its deadline."""

    async def main() -> None:
        fleet = ScriptedFleet(card(2), [[0, 1], [0, 1]], takes(0.005))
        root = await warmed_up(fleet)
        prefer(fleet, 0)
        fleet[0].script = by_shard({0: fails(reason, 0.099)}, takes(0.005))
        fleet[1].script = hangs()
        root.policy = Off()
        seen = await root.query(timeout_s=0.1)
        assert seen.took_s == pytest.approx(0.1)
        assert seen.outcome.missing == {0: "timeout"}
        assert [shard for shard, _ in seen.outcome.replies] == [1]

    run(main)


def test_a_failure_in_the_instant_of_the_deadline_ends_once() -> None:
    """Failures, losses and answers that come with the alarm leave one outcome."""

    async def main() -> None:
        fleet = ScriptedFleet(card(3), [[0, 1, 2], [0, 1, 2]], takes(0.005))
        root = await warmed_up(fleet)
        exact_s = 0.1 - ROUND_TRIP_S
        for leaf in fleet.leaves:
            leaf.script = by_shard({0: fails("error", exact_s), 1: takes(exact_s)}, takes(0.005))
        at(0.1, lambda: fleet.disconnect(1))
        seen = await root.query(timeout_s=0.1)
        assert seen.took_s == pytest.approx(0.1)
        assert 2 not in seen.outcome.missing
        fleet.come_back(1)
        await asyncio.sleep(1.0)
        assert root.accounted

    run(main)


def test_two_answers_at_once_are_one_answer() -> None:
    """Both replicas answer in the same instant, twenty thousand times: each shard is merged
    once, so the total is what one index would say.
    """
    shards = 100

    async def main() -> None:
        def script(leg: Leg) -> Deed:
            return Deed(0.01 if leg.attempt.kind == "primary" else 0.01 - 0.005)

        fleet = ScriptedFleet(card(shards), dealt(shards, leaves=2, replicas=2), takes(0.01))
        root = await warmed_up(fleet, delay_s=0.005)
        for leaf in fleet.leaves:
            leaf.script = script
        for _ in range(200):
            seen = await root.query()
            assert seen.gather.tally.hedged == shards
            assert [shard for shard, _ in seen.outcome.replies] == list(range(shards))
            assert sum(hits.total for _, hits in seen.outcome.replies) == shards
        await asyncio.sleep(1.0)
        assert root.accounted
        assert root.ledger.ended["won"] == root.ledger.sent["primary"]

    run(main)


def test_in_a_million_races_every_shard_is_merged_once() -> None:
    """Both replicas answer in the same instant, in any order, in one frame or in two: of a
    thousand documents a query finds a thousand. (Without the driver, which would take minutes.)
    """
    shards, queries = 1000, 1000
    random = Random("order")
    replicas = [Leaf("a", -1000.0), Leaf("b", -1000.0)]
    budget, ledger, history = Budget(PLENTY, 0.0), Ledger(), Latency(0.0)
    for _ in range(MIN_SAMPLES):
        history.finished(0.01)
    for query in range(queries):
        now = float(query)
        terms = Terms(random, budget, ledger, history)
        gather = Gather(((s, replicas) for s in range(shards)), Fixed(0.01), terms, now + 1.0)
        sent = [action.attempt for action in gather.start(now)]
        hedges = gather.handle(AlarmRang(), now + 0.01)
        sent += [action.attempt for action in hedges if isinstance(action, SendAttempt)]
        random.shuffle(sent)
        cut = random.randrange(2 * shards + 1)
        for frame in (sent[:cut], sent[cut:]):
            replies = [(attempt, {attempt.shard}) for attempt in frame]
            gather.handle(AttemptsReplied(replies), now + 0.02)
        assert gather.outcome is not None
        assert gather.outcome.replies == [(shard, {shard}) for shard in range(shards)]
    assert ledger.ended == {"won": 1_000_000, "lost": 1_000_000, "cancelled": 0, "failed": 0}
    assert 400_000 < ledger.hedge_wins < 600_000
    assert [leaf.outstanding for leaf in replicas] == [0, 0]


def test_what_hedges_are_said_to_save_is_what_they_save() -> None:
    """The same queries with and without: the difference in what their callers waited."""

    async def main(policy: Policy) -> tuple[float, float]:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = await warmed_up(fleet)
        root.policy = policy
        fleet[0].script = takes(0.2)
        waited_s = 0.0
        for _ in range(10):
            prefer(fleet, 0)
            waited_s += (await root.query()).took_s
            await asyncio.sleep(1.0)
        return waited_s, root.ledger.saved_s

    without_s, nothing = run(lambda: main(Off()))
    with_s, saved_s = run(lambda: main(Fixed(0.01)))
    assert nothing == 0.0
    assert saved_s == pytest.approx(without_s - with_s)
    assert saved_s > 1.5


def test_cancelled_legs_leave_the_queue_and_cost_nothing() -> None:
    """A loser that still waits at its leaf is never worked on."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005), workers=1)
        root = await warmed_up(fleet)
        fleet[0].script = takes(0.2)
        prefer(fleet, 0)
        before = fleet[0].counts
        blocker = asyncio.create_task(root.query())
        await asyncio.sleep(0.005)
        seen = await root.query()
        await blocker
        await asyncio.sleep(1.0)
        assert seen.gather.tally.hedge_wins == 1
        assert fleet[0].counts.dropped - before.dropped == 2
        assert fleet[0].counts.worked_s - before.worked_s == pytest.approx(0.2)
        assert root.ledger.wasted_service_us == pytest.approx(200_000, abs=10)
        # The leg at work is known to have lasted, of the one in the queue hardly anything is.
        assert root.ledger.saved_s == pytest.approx(0.2 - 0.01 - 0.005, abs=0.001)

    run(main)


def test_a_query_leaves_nothing_behind() -> None:
    """After answers, timeouts, failures, losses and callers that left: no task, no timer, no
    leg anywhere.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(8), dealt(8, leaves=4, replicas=2), takes_about(0.01, 1.0, random), workers=2
        )
        root = await warmed_up(fleet)
        fleet[0].script = fails("error", after_s=0.001)
        at(0.5, lambda: fleet.disconnect(1))
        at(1.0, lambda: fleet.come_back(1))
        for number in range(100):
            query = asyncio.create_task(root.query(timeout_s=0.02 + 0.001 * number))
            if number % 3 == 0:
                at(random.random() * 0.05, query.cancel)
            await asyncio.wait([query])
        await asyncio.sleep(5.0)
        assert root.accounted
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert running_loop().timers == []

    run(main)


def test_a_caller_that_leaves_takes_its_query_along() -> None:
    """A cancelled query cancels every leg in flight, and all are accounted for."""

    async def main() -> None:
        fleet = ScriptedFleet(card(8), dealt(8, leaves=4, replicas=2), takes(0.5), workers=1)
        root = BareRoot(fleet, Quantile())
        query = asyncio.create_task(root.query())
        await asyncio.sleep(0.1)
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        await asyncio.sleep(1.0)
        assert root.accounted
        assert root.ledger.ended["cancelled"] == 8
        assert sum(leaf.counts.worked_s for leaf in fleet.leaves) == pytest.approx(4 * 0.5)

    run(main)


def test_a_replica_that_comes_back_in_time_is_used() -> None:
    """A query that started without it fails over to it, once its only other leaf is gone."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = BareRoot(fleet, Off(), timeout_s=6.0)
        fleet.disconnect(1)
        fleet[0].script = hangs()
        query = asyncio.create_task(root.query())
        at(0.4, lambda: fleet.come_back(1))
        at(0.8, lambda: fleet.disconnect(0))
        seen = await query
        assert seen.complete
        assert seen.took_s < 0.9
        assert [a.leaf for a in seen.gather.attempts] == [fleet[0].leaf, fleet[1].leaf]

    run(main)

"""Trouble everywhere at once: what hedging must not make worse."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from bench.simulation.scripted import Deed, Leg, Script, by_shard, fails, takes, takes_about
from bench.simulation.scripted_fleet import (
    BareRoot,
    ScriptedFleet,
    at,
    card,
    dealt,
    extra_in_windows,
    quantile_s,
)
from bench.virtual_time import run
from bench.workload import constant, poisson
from root.budget import BudgetTerms
from root.hedging import Adaptive, Fixed, Policy, Quantile, Sibling

HEDGING = pytest.mark.parametrize(
    "policy", [Fixed(0.02), Quantile(), Sibling(), Adaptive()], ids=lambda p: str(p.name)
)

SLOW = b'"slow"'
"""The body of a query that a script tells from the others."""


@HEDGING
def test_a_slow_shard_is_not_pushed_over_the_edge(policy: Policy) -> None:
    """All replicas of a shard 30 % slower at 70 % load: traffic stays within the budget, and
    within ten seconds of healing queries are as fast as before.

    Six leaves of one worker, two replicas, six shards: a query is one leg a leaf on average.
    """

    async def main() -> None:
        random = Random("legs")
        usual, slower = takes_about(0.005, 0.2, random), takes_about(0.0065, 0.2, random)
        fleet = ScriptedFleet(card(6), dealt(6, leaves=6, replicas=2), usual, workers=1)
        terms = BudgetTerms(max_extra_load=0.05, floor_per_s=1.0, burst=20.0)
        root = BareRoot(fleet, policy, terms, timeout_s=2.0)
        rate_per_s = 0.7 / 0.0051
        before = await root.open_loop(poisson(rate_per_s, 10.0, Random("before")))
        fleet[0].script = fleet[1].script = by_shard({0: slower}, usual)
        during = await root.open_loop(poisson(rate_per_s, 10.0, Random("during")))
        fleet[0].script = fleet[1].script = usual
        await root.open_loop(poisson(rate_per_s, 10.0, Random("healing")))
        after = await root.open_loop(poisson(rate_per_s, 10.0, Random("after")))
        legs = 6 * len(during)
        assert sum(query.extra for query in during) <= legs * 0.05 + 10.0 * 1.0 + 20.0
        assert quantile_s(after, 0.95) < 1.3 * quantile_s(before, 0.95)
        assert all(query.complete for query in before + during + after)

    run(main)


@HEDGING
def test_a_slowdown_of_everything_is_hedged_within_the_budget(policy: Policy) -> None:
    """Every leaf is five times slower at once: no second sees more than the budget's extra."""

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(8), dealt(8, leaves=4, replicas=2), takes_about(0.01, 0.3, random)
        )
        terms = BudgetTerms(max_extra_load=0.05, floor_per_s=1.0, burst=5.0)
        root = BareRoot(fleet, policy, terms)

        def slow_down() -> None:
            for leaf in fleet.leaves:
                leaf.script = takes_about(0.05, 0.3, random)

        at(10.0, slow_down)
        seen = await root.open_loop(constant(50.0, 20.0))
        assert sum(query.extra for query in seen) > 100
        for primaries, extra in extra_in_windows(seen, 1.0):
            # What is answered within a second was sent in it or just before.
            assert extra <= (primaries + 8 * 5) * 0.05 + 1.0 + 5.0

    run(main)


@pytest.mark.parametrize(
    ("policy", "queries", "per_s"),
    [
        (Sibling(), 20, 1.0),
        (Fixed(0.02), 1000, 10.0),
        (Quantile(), 1000, 10.0),
        (Adaptive(), 1000, 10.0),
    ],
    ids=lambda p: str(getattr(p, "name", p)),
)
def test_queries_that_are_slow_by_nature_are_not_done_twice(
    policy: Policy, queries: int, per_s: float
) -> None:
    """Three seconds of work on whichever leaf: the leaves work a tenth more at most.

    To ``sibling`` no leg is late, whatever the budget. The others spend on them what has been
    saved up, so it holds once they are so many that this is little.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(card(10), dealt(10, leaves=4, replicas=2), takes(0.005))
        root = BareRoot(fleet, policy, timeout_s=10.0)
        await root.open_loop(constant(50.0, 5.0))
        for leaf in fleet.leaves:
            leaf.script = takes_about(3.0, 0.05, random)
        before_s = sum(leaf.counts.worked_s for leaf in fleet.leaves)
        seen = await root.open_loop(constant(per_s, queries / per_s))
        await asyncio.sleep(10.0)
        worked_s = sum(leaf.counts.worked_s for leaf in fleet.leaves) - before_s
        assert all(query.complete for query in seen)
        assert worked_s <= 1.1 * 3.0 * 10 * len(seen)

    run(main)


@pytest.mark.parametrize("policy", [Sibling(), Adaptive()], ids=lambda p: str(p.name))
def test_a_rare_query_that_is_slow_by_nature_is_not_done_twice(policy: Policy) -> None:
    """Among fast ones there are tokens enough for every leg of it, and a silence of seconds;
    the leaves work a tenth more at most.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(10), dealt(10, leaves=4, replicas=2), takes_about(0.005, 0.3, random)
        )
        root = BareRoot(fleet, policy, timeout_s=10.0)
        await root.open_loop(constant(50.0, 10.0))
        for leaf in fleet.leaves:
            leaf.script = takes_about(3.0, 0.05, random)
        before_s = sum(leaf.counts.worked_s for leaf in fleet.leaves)
        slow_one = await root.query()
        await asyncio.sleep(10.0)
        worked_s = sum(leaf.counts.worked_s for leaf in fleet.leaves) - before_s
        assert slow_one.complete
        assert root.ledger.sent["hedge"] > 50
        assert worked_s <= 1.1 * 3.0 * 10

    run(main)


@HEDGING
def test_an_empty_budget_ends_no_attempt(policy: Policy) -> None:
    """Without a token to spend, every query still gets its first attempts' answers."""

    async def main() -> None:
        fleet = ScriptedFleet(card(10), dealt(10, leaves=4, replicas=2), takes(0.005))
        root = BareRoot(fleet, policy, BudgetTerms(max_extra_load=0.0))
        await root.open_loop(constant(100.0, 1.0))
        for number, leaf in enumerate(fleet.leaves):
            leaf.script = takes(0.5 if number < 2 else 0.1)
        seen = await root.open_loop(constant(50.0, 2.0))
        assert all(query.complete and not query.extra for query in seen)
        assert root.ledger.ended["won"] == root.ledger.sent["primary"]
        assert root.ledger.denied > 0

    run(main)


def test_a_refused_hedge_leaves_nothing_hanging() -> None:
    """With no token left, a leg whose only attempt fails ends there, not at the deadline."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = BareRoot(fleet, Fixed(0.01), BudgetTerms(max_extra_load=0.0))
        await root.open_loop(constant(100.0, 2.0))
        fleet[0].script = fleet[1].script = fails("error", after_s=0.05, detail="disk")
        seen = await root.query()
        assert root.ledger.denied == 1
        assert seen.took_s == pytest.approx(0.05, abs=0.001)
        assert seen.outcome.missing == {0: "error"}
        assert seen.outcome.details == {0: "disk"}

    run(main)


def test_a_lost_leaf_needs_no_token() -> None:
    """With no token left, the legs of a leaf that is gone are done elsewhere at once."""

    async def main() -> None:
        fleet = ScriptedFleet(card(2), [[0, 1], [0, 1]], takes(0.01))
        root = BareRoot(fleet, Fixed(0.1), BudgetTerms(max_extra_load=0.0))
        at(0.005, lambda: fleet.disconnect(0))
        seen = await root.query()
        assert seen.complete
        assert seen.took_s < 0.02

    run(main)


def test_a_full_queue_is_no_death() -> None:
    """Every leaf says busy: one more attempt a leg at most, nobody is thrown out, and hedging
    rests; the moment they have room again everything is answered.
    """

    async def main() -> None:
        fleet = ScriptedFleet(card(6), dealt(6, leaves=3, replicas=3), takes(0.005))
        root = BareRoot(fleet, Quantile())
        await root.open_loop(constant(100.0, 2.0))
        for leaf in fleet.leaves:
            leaf.script = fails("busy")
        refused = await root.open_loop(constant(20.0, 1.0))
        for query in refused:
            assert set(query.outcome.missing.values()) == {"refused"}
            assert query.gather.tally.sent <= 2 * query.gather.legs
        assert all(leaf.leaf.connected for leaf in fleet.leaves)
        random = Random("legs")
        for leaf in fleet.leaves:
            leaf.script = takes_about(0.005, 1.0, random)
        hedged_before = root.ledger.sent["hedge"]
        healed = await root.open_loop(constant(100.0, 0.8))
        assert all(query.complete for query in healed)
        assert root.ledger.sent["hedge"] == hedged_before

    run(main)


def now_and_then_slow(random: Random, failing: float = 0.0) -> Script:
    """One leg in twenty-five stalls; a share fails at once."""

    def script(_: Leg) -> Deed:
        if random.random() < failing:
            return Deed(0.001, "error")
        return Deed(0.1 if random.random() < 0.04 else 0.005)

    return script


@HEDGING
def test_hedging_rests_while_much_fails_and_comes_back_by_itself(policy: Policy) -> None:
    """Two leaves of four fail everything at once, and with them every replica of a shard: there
    are no hedges while that lasts, no more extra attempts than the budget has, and a second after
    they heal there are hedges again.
    """

    async def main() -> None:
        usual = now_and_then_slow(Random("legs"))
        fleet = ScriptedFleet(card(4), dealt(4, leaves=4, replicas=2), usual)
        terms = BudgetTerms(max_extra_load=0.05, floor_per_s=1.0, burst=20.0)
        root = BareRoot(fleet, policy, terms)
        await root.open_loop(constant(50.0, 10.0))
        fleet[0].script = fleet[1].script = fails("error", after_s=0.001)
        turning = await root.open_loop(constant(50.0, 1.0))
        sick = await root.open_loop(constant(50.0, 10.0))
        assert all(set(query.outcome.missing) == {0} for query in turning + sick)
        assert sum(query.gather.tally.hedged for query in sick) == 0
        assert sum(query.extra for query in turning + sick) <= 550 * 4 * 0.05 + 11.0 + 20.0
        fleet[0].script = fleet[1].script = usual
        await root.open_loop(constant(50.0, 1.0))
        healed = await root.open_loop(constant(50.0, 10.0))
        assert all(query.complete for query in healed)
        assert sum(query.gather.tally.hedged for query in healed) > 50

    run(main)


@HEDGING
def test_an_error_now_and_then_does_not_rest_hedging(policy: Policy) -> None:
    """One attempt in a hundred fails: as much is hedged as ever, and callers see nothing."""

    async def main(failing: float) -> tuple[int, int]:
        script = now_and_then_slow(Random("legs"), failing)
        fleet = ScriptedFleet(card(4), dealt(4, leaves=4, replicas=2), script)
        terms = BudgetTerms(max_extra_load=0.2, floor_per_s=1.0, burst=20.0)
        root = BareRoot(fleet, policy, terms)
        await root.open_loop(constant(50.0, 5.0))
        seen = await root.open_loop(constant(50.0, 30.0))
        return (
            sum(query.gather.tally.hedged for query in seen),
            sum(not query.complete for query in seen),
        )

    usual, usually_missing = run(lambda: main(0.0))
    hedged, missing = run(lambda: main(0.01))
    assert usual > 200
    assert hedged > 0.8 * usual
    assert usually_missing == 0
    assert missing <= 3


def test_work_is_finished_where_it_has_begun_and_no_more() -> None:
    """After a query is given up, a leaf works on what it had begun and on nothing else."""
    work_s = 0.05

    async def main() -> None:
        begun: list[Leg] = []

        def script(leg: Leg) -> Deed:
            begun.append(leg)
            return Deed(work_s)

        fleet = ScriptedFleet(card(8), [list(range(8))], script, workers=1)
        root = BareRoot(fleet, Fixed(0.01), timeout_s=0.12)
        first = await root.query()
        assert len(first.outcome.replies) == 2
        second = await root.query(timeout_s=0.2)
        # The third leg was at work when the first query ended; the second begins after it.
        assert len(second.outcome.replies) == 3
        assert fleet[0].counts.dropped == 6

    run(main)

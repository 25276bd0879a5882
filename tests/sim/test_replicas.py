"""Which leaf gets a leg: spread, failure, slowness, coming and going."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from random import Random

import pytest

from bench.simulation.scripted import ScriptedLeaf, fails, hangs, takes, takes_about
from bench.simulation.scripted_fleet import BareRoot, ScriptedFleet, Seen, at, card, dealt, prefer
from bench.virtual_time import run
from bench.workload import constant
from root.budget import BudgetTerms
from root.hedging import Fixed, Off, Quantile

PLENTY = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


def share(seen: Iterable[Seen], leaf: ScriptedLeaf) -> float:
    """Share of first attempts that went to a leaf."""
    went = [
        attempt.leaf is leaf.leaf
        for query in seen
        for attempt in query.gather.attempts
        if attempt.kind == "primary"
    ]
    return sum(went) / len(went)


def test_a_hedge_never_goes_where_the_leg_is_already() -> None:
    """Of ten thousand hedges with two replicas, each is the other replica's."""

    async def main() -> None:
        fleet = ScriptedFleet(card(50), dealt(50, leaves=5, replicas=2), takes(0.01))
        root = BareRoot(fleet, Fixed(0.005), PLENTY)
        hedges = 0
        for _ in range(210):
            seen = await root.query()
            for tried in _leaves_by_shard(seen).values():
                assert len(set(tried)) == len(tried)
            hedges += seen.gather.tally.hedged
        assert hedges > 10_000

    run(main)


def _leaves_by_shard(seen: Seen) -> dict[int, list[str]]:
    tried: dict[int, list[str]] = {}
    for attempt in seen.gather.attempts:
        tried.setdefault(attempt.shard, []).append(attempt.leaf.name)
    return tried


def test_a_second_attempt_goes_to_another_failure_domain() -> None:
    """Of three replicas two share a domain: a hedge never goes from one of them to the other,
    and where the other domain is lost, it does.
    """

    async def main() -> None:
        fleet = ScriptedFleet(
            card(30), [list(range(30))] * 3, takes(0.01), domains=["rack 1", "rack 1", "rack 2"]
        )
        root = BareRoot(fleet, Fixed(0.005), PLENTY)
        await root.open_loop(constant(20.0, 1.0))  # without a history nothing is hedged
        pairs = [await _hedged_pairs(root) for _ in range(50)]
        assert all(pair != {"leaf-0", "leaf-1"} for query in pairs for pair in query)
        assert sum(map(len, pairs)) == 50 * 30
        fleet.disconnect(2)
        assert await _hedged_pairs(root) == [{"leaf-0", "leaf-1"}] * 30

    run(main)


async def _hedged_pairs(root: BareRoot) -> list[set[str]]:
    tried = _leaves_by_shard(await root.query()).values()
    return [{name.removeprefix("http://") for name in names} for names in tried]


@pytest.mark.parametrize("replicas", [1, 2], ids=["one replica", "the other is down"])
def test_a_slow_only_replica_is_waited_for(replicas: int) -> None:
    """With nobody to hedge to, the slow answer is the answer, and the lack is counted."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0]] * replicas, takes(0.005))
        root = BareRoot(fleet, Fixed(0.02))
        await root.open_loop(constant(100.0, 2.0))
        fleet[0].script = takes(0.5)
        if replicas == 2:
            fleet.disconnect(1)
        seen = await root.query()
        assert seen.complete
        assert seen.took_s == pytest.approx(0.5, abs=0.001)
        assert root.ledger.no_candidate == 1
        assert seen.gather.tally.hedged == 0

    run(main)


def test_a_hedge_that_fails_leaves_the_first_attempt_alone() -> None:
    """The hedge's error is nobody's answer while the first attempt is alive."""

    async def main() -> None:
        fleet = ScriptedFleet(card(1), [[0], [0]], takes(0.005))
        root = BareRoot(fleet, Fixed(0.02))
        await root.open_loop(constant(100.0, 2.0))
        slow = fleet[0]
        slow.script, fleet[1].script = takes(0.5), fails("error", after_s=0.001)
        prefer(fleet, 0)
        seen = await root.query()
        assert [attempt.leaf for attempt in seen.gather.attempts] == [
            slow.leaf,
            fleet[1].leaf,
        ]
        assert seen.complete
        assert seen.took_s == pytest.approx(0.5, abs=0.001)

    run(main)


def test_an_untried_replica_comes_before_a_second_try() -> None:
    """Of three replicas two are busy: the third is asked, and none twice."""

    async def main() -> None:
        fleet = ScriptedFleet(card(4), [list(range(4))] * 3, fails("busy"))
        fleet[2].script = takes(0.005)
        root = BareRoot(fleet, Off(), PLENTY, attempts_max=3)
        for _ in range(50):
            seen = await root.query()
            assert seen.complete
            for tried in _leaves_by_shard(seen).values():
                assert len(set(tried)) == len(tried)

    run(main)


def test_a_leaf_that_fails_fast_does_not_look_fast() -> None:
    """A replica of three that fails in a millisecond loses its share; callers see nothing."""

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(6), dealt(6, leaves=3, replicas=3), takes_about(0.01, 0.2, random)
        )
        root = BareRoot(fleet, Quantile())
        await root.open_loop(constant(50.0, 10.0))
        fleet[0].script = fails("error", after_s=0.001)
        seen = await root.open_loop(constant(50.0, 60.0))
        assert share(seen, fleet[0]) < 0.05
        legs = sum(query.gather.legs for query in seen)
        assert sum(len(query.outcome.replies) for query in seen) >= 0.999 * legs

    run(main)


def test_a_leaf_that_is_always_beaten_is_found_out() -> None:
    """A slow replica whose legs are all won by hedges is never seen to finish; its estimate
    rises all the same, and it loses first attempts.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(card(6), [list(range(6))] * 2, takes_about(0.01, 0.2, random))
        root = BareRoot(fleet, Fixed(0.02), PLENTY)
        before = await root.open_loop(constant(50.0, 10.0))
        fleet[0].script = takes(0.5)
        await root.open_loop(constant(50.0, 5.0))
        beaten = await root.open_loop(constant(50.0, 10.0))
        assert root.ledger.ended["lost"] == 0
        assert fleet[0].leaf.latency_s > 1.5 * fleet[1].leaf.latency_s
        assert share(before, fleet[0]) > 0.45
        assert share(beaten, fleet[0]) < 0.35

    run(main)


def test_a_leaf_that_failed_is_asked_again() -> None:
    """A leaf that has flapped gets its share back."""

    async def main() -> None:
        random = Random("legs")
        usual = takes_about(0.01, 0.2, random)
        fleet = ScriptedFleet(card(6), dealt(6, leaves=3, replicas=3), usual)
        root = BareRoot(fleet, Quantile())
        fleet[0].script = fails("error", after_s=0.001)
        await root.open_loop(constant(50.0, 5.0))
        fleet[0].script = usual
        await root.open_loop(constant(50.0, 20.0))
        healed = await root.open_loop(constant(50.0, 10.0))
        assert 0.25 < share(healed, fleet[0]) < 0.42

    run(main)


def test_timeouts_and_cancels_release_a_leaf() -> None:
    """After a thousand timeouts and a thousand cancels the leaf owes nothing in anyone's
    books, and its share of the traffic comes back.
    """

    async def main() -> None:
        random = Random("legs")
        usual = takes_about(0.01, 0.2, random)
        fleet = ScriptedFleet(card(10), dealt(10, leaves=3, replicas=3), usual)
        root = BareRoot(fleet, Off(), PLENTY)
        for leaf in fleet.leaves:
            leaf.script = takes(0.2)
        await root.query()
        for _ in range(100):
            await root.query(timeout_s=0.02)
        assert root.ledger.ended["cancelled"] + root.ledger.in_flight >= 1000
        root.policy = Fixed(0.002)
        for _ in range(200):
            await root.query()
        for leaf in fleet.leaves:
            leaf.script = usual
        await root.open_loop(constant(100.0, 5.0))
        seen = await root.open_loop(constant(100.0, 5.0))
        await asyncio.sleep(1.0)  # what is still being worked on comes to its end
        assert root.ledger.ended["cancelled"] > 2000
        assert root.accounted
        assert all(0.2 < share(seen, leaf) < 0.5 for leaf in fleet.leaves)

    run(main)


def test_a_hanging_leaf_comes_back_to_its_share() -> None:
    """What a leaf owed when it hung and was lost does not count against it afterwards."""

    async def main() -> None:
        random = Random("legs")
        usual = takes_about(0.01, 0.2, random)
        fleet = ScriptedFleet(card(6), dealt(6, leaves=3, replicas=3), usual)
        root = BareRoot(fleet, Quantile())
        await root.open_loop(constant(50.0, 5.0))
        fleet[0].script = hangs()
        hung = await root.open_loop(constant(50.0, 5.0))
        assert share(hung, fleet[0]) < 0.1
        fleet.disconnect(0)
        assert fleet[0].leaf.outstanding == 0
        fleet[0].script = usual
        fleet.come_back(0)
        await root.open_loop(constant(50.0, 10.0))
        healed = await root.open_loop(constant(50.0, 5.0))
        assert 0.25 < share(healed, fleet[0]) < 0.42

    run(main)


def test_a_new_leaf_is_not_flooded() -> None:
    """A leaf of three gets at most half again its share in its first five seconds, and less
    than its share in the very first.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(6), dealt(6, leaves=3, replicas=3), takes_about(0.01, 0.2, random)
        )
        fleet.disconnect(0)
        root = BareRoot(fleet, Quantile())
        await root.open_loop(constant(100.0, 5.0))
        fleet.come_back(0)
        first = await root.open_loop(constant(100.0, 5.0))
        assert 0.01 < share(first, fleet[0]) <= 1.5 / 3
        assert share(first[:100], fleet[0]) < 0.2

    run(main)


def test_the_last_replicas_of_a_shard_are_never_given_up() -> None:
    """All replicas of a shard fail for a minute: they are asked all the same, and the first
    query after they heal is complete.
    """

    async def main() -> None:
        fleet = ScriptedFleet(card(3), dealt(3, leaves=3, replicas=2), takes(0.005))
        root = BareRoot(fleet, Quantile())
        sick = [fleet[0], fleet[1]]
        for leaf in sick:
            leaf.script = fails("error", after_s=0.001)
        seen = await root.open_loop(constant(20.0, 60.0))
        assert all(0 in query.outcome.missing for query in seen)
        asked = Counter(a.shard for query in seen for a in query.gather.attempts)
        assert asked[0] >= len(seen)
        for leaf in sick:
            leaf.script = takes(0.005)
        assert (await root.query()).complete

    run(main)


def test_a_leaf_known_to_be_gone_is_asked_by_nobody() -> None:
    """From the moment its connection is lost, and until it is back."""

    async def main() -> None:
        fleet = ScriptedFleet(card(3), dealt(3, leaves=3, replicas=2), takes(0.005))
        root = BareRoot(fleet, Quantile())
        fleet.disconnect(1)
        at(1.0, lambda: fleet.come_back(1))
        away = await root.open_loop(constant(50.0, 0.9))
        assert all(query.complete for query in away)
        assert fleet[1].counts.received == 0
        await root.open_loop(constant(50.0, 10.0))
        assert fleet[1].counts.received > 0

    run(main)

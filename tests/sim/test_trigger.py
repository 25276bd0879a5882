"""When hedges start: the learned trigger over minutes of traffic, and before there is any."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable
from random import Random

import pytest

from bench.simulation.corpus import Corpus
from bench.simulation.scripted import (
    Deed,
    Leg,
    Script,
    ScriptedLeaf,
    takes,
    takes_about,
)
from bench.simulation.scripted_fleet import (
    BareRoot,
    ScriptedFleet,
    Seen,
    at,
    card,
    dealt,
    quantile_s,
)
from bench.virtual_time import run
from bench.workload import constant
from root.budget import BudgetTerms
from root.config import Settings
from root.hedging import (
    MIN_SAMPLES,
    Adaptive,
    Fixed,
    Off,
    Policy,
    Quantile,
    Sibling,
    Together,
)
from root.requests import SearchRequest
from root.search import Searches


def now_and_then(slow_every: int, slow_s: float, otherwise_s: float) -> Script:
    """Every so manieth leg is slow, whichever leaf it comes to."""
    legs = 0

    def script(_: Leg) -> Deed:
        nonlocal legs
        legs += 1
        return Deed(otherwise_s if legs % slow_every else slow_s)

    return script


@pytest.mark.parametrize(("where", "p99_s"), [("one replica", 0.030), ("anywhere", 0.040)])
def test_slow_legs_do_not_drag_the_trigger_along(where: str, p99_s: float) -> None:
    """For five minutes one replica takes 100 ms instead of 10, or three legs in a hundred do,
    whichever they come to: hedges go on, and so does speed.

    Times of hedged legs fed back into the trigger would make it climb until nothing is hedged;
    losers left out would pull it down until everything is.
    """

    async def main() -> None:
        random = Random("legs")
        usual, slow = takes_about(0.01, 0.3, random), takes_about(0.1, 0.3, random)

        def now_and_then_slow(leg: Leg) -> Deed:
            return slow(leg) if random.random() < 0.03 else usual(leg)

        fleet = ScriptedFleet(card(4), dealt(4, leaves=4, replicas=2), usual)
        root = BareRoot(fleet, Quantile(0.95))
        await root.open_loop(constant(30.0, 30.0))
        healthy_s = root.history.quantile(0.95)
        assert healthy_s is not None
        if where == "one replica":
            fleet[1].script = slow
        else:
            for leaf in fleet.leaves:
                leaf.script = now_and_then_slow
        for _ in range(5):
            minute = await root.open_loop(constant(30.0, 60.0))
            trigger_s = root.history.quantile(0.95)
            assert trigger_s is not None
            assert healthy_s / 2 < trigger_s < healthy_s * 2
            assert sum(query.gather.tally.hedged for query in minute) > 50
            assert quantile_s(minute, 0.99) < p99_s

    run(main)


@pytest.mark.parametrize("policy", [Quantile(), Sibling(), Adaptive()], ids=lambda p: str(p.name))
@pytest.mark.parametrize("noticed", [False, True], ids=["connected", "given up"])
def test_a_stopped_leaf_stops_nobody(policy: Policy, noticed: bool) -> None:
    """A leaf is frozen, connection and all: whether or not it is given up as silent, every query
    of every second is answered; the leaf is asked hardly anything after the first, and what is
    known of how long attempts take stays as it was.
    """

    async def main() -> None:
        random = Random("legs")
        fleet = ScriptedFleet(
            card(8), dealt(8, leaves=4, replicas=2), takes_about(0.01, 0.3, random)
        )
        root = BareRoot(fleet, policy)
        await root.open_loop(constant(50.0, 20.0))
        healthy_s = root.history.quantile(0.95)
        assert healthy_s is not None
        fleet[1].stop()
        if noticed:
            at(0.75, lambda: fleet.disconnect(1))
        for second in range(60):
            seen = await root.open_loop(constant(50.0, 1.0))
            assert all(query.complete for query in seen)
            assert second == 0 or quantile_s(seen, 0.9) < 2 * healthy_s
            assert second == 0 or primaries(seen, fleet[1]) <= 0.02 * 8 * len(seen)
            assert root.history.quantile(0.95) == pytest.approx(healthy_s, rel=0.15)
        fleet[1].resume()
        await asyncio.sleep(1.0)
        assert noticed or root.accounted

    run(main)


def primaries(seen: Iterable[Seen], leaf: ScriptedLeaf) -> int:
    """How many first attempts went to a leaf."""
    attempts = [attempt for query in seen for attempt in query.gather.attempts]
    return sum(a.kind == "primary" and a.leaf is leaf.leaf for a in attempts)


@pytest.mark.parametrize("policy", ["quantile", "adaptive"])
def test_cheap_and_dear_queries_are_hedged_alike(policy: str) -> None:
    """Words take 2 ms and phrases 400, in turn: of either, about as many legs are hedged as the
    operator accepts. With one statistic for both, the dear would take all and the cheap nothing.
    """

    async def main() -> None:
        random = Random("legs")
        cheap, dear = takes_about(0.002, 0.5, random), takes_about(0.4, 0.2, random)

        def script(leg: Leg) -> Deed:
            ask = leg.flight.ask
            return dear(leg) if ask.kind == "search" and b"dear" in ask.body else cheap(leg)

        corpus, loop = Corpus(400, 8), asyncio.get_running_loop()
        holdings = dealt(8, leaves=4, replicas=2)
        fleet = ScriptedFleet(corpus.card, holdings, script, answer=corpus.answer)
        searches = Searches(fleet, Settings(hedge=policy), loop.time())

        asking = []
        for number in range(1200):
            request = SearchRequest(q=('"dear words"', "cheap")[number % 2], trace=True)
            asking.append(asyncio.create_task(searches.search(request, loop.time())))
            await asyncio.sleep(0.025)
        bodies = (await asyncio.gather(*asking))[200:]  # by then there is a history
        target = searches.settings.budget.max_extra_load
        for of_a_kind in (bodies[::2], bodies[1::2]):
            legs = [a for body in of_a_kind for a in body["trace"][0]["attempts"]]
            hedges = sum(a["kind"] == "hedge" for a in legs)
            assert hedges / (len(legs) - hedges) == pytest.approx(target, rel=0.3)

    run(main)


def test_what_is_learned_is_true_while_losers_are_cancelled() -> None:
    """One leg in seven takes 100 ms wherever it goes, and every slow one is beaten by a hedge
    long before: the 95th percentile is still known to be 100 ms.

    Losers left out would make it that of the fast ones, losers taken as finished the time at
    which hedges win.
    """

    async def main() -> None:
        random = Random("legs")
        slow, fast = takes_about(0.1, 0.05, random), takes_about(0.01, 0.05, random)
        fleet = ScriptedFleet(
            card(8),
            dealt(8, leaves=4, replicas=2),
            lambda leg: slow(leg) if random.random() < 1 / 7 else fast(leg),
        )
        plenty = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=1000.0)
        root = BareRoot(fleet, Fixed(0.015), plenty)
        seen = await root.open_loop(constant(50.0, 40.0))
        assert quantile_s(seen, 0.5) < 0.03
        seventh, twentieth = root.history.quantile(0.8), root.history.quantile(0.95)
        assert seventh == pytest.approx(0.0105, rel=0.1)
        assert twentieth == pytest.approx(0.1, rel=0.15)

    run(main)


@pytest.mark.parametrize("shards", [1, 3, 16])
@pytest.mark.parametrize(
    ("policy", "terms"),
    [
        (Quantile(0.8), BudgetTerms()),
        (Quantile(0.8), BudgetTerms(max_extra_load=0.001, floor_per_s=0.5, burst=1.0)),
        (Adaptive(), BudgetTerms()),
    ],
    ids=["quantile", "quantile by the floor", "adaptive"],
)
def test_a_quiet_system_hedges_too(policy: Policy, terms: BudgetTerms, shards: int) -> None:
    """At one query a second, of however few legs, some legs are hedged, and no more than the
    budget's floor allows.
    """

    async def main() -> None:
        fleet = ScriptedFleet(
            card(shards), dealt(shards, leaves=4, replicas=2), now_and_then(10, 0.2, 0.005)
        )
        root = BareRoot(fleet, policy, terms)
        duration_s = 300.0
        seen = await root.open_loop(constant(1.0, duration_s))
        legs = sum(query.gather.legs for query in seen)
        extra = sum(query.extra for query in seen)
        allowed = legs * terms.max_extra_load + duration_s * terms.floor_per_s + root.budget.burst
        assert 20 <= extra <= allowed

    run(main)


@pytest.mark.parametrize(
    "policy",
    [Off(), Fixed(0.01), Quantile(), Sibling(), Adaptive(), Together()],
    ids=lambda p: str(p.name),
)
def test_a_slow_start_is_no_storm(policy: Policy) -> None:
    """Where the first queries of all are slow, they end, and nothing is hedged on no history."""

    async def main() -> None:
        fleet = ScriptedFleet(card(10), dealt(10, leaves=4, replicas=2), takes(0.4))
        root = BareRoot(fleet, policy)
        seen = await root.open_loop(constant(MIN_SAMPLES / 10 / 0.4, 0.4))
        assert all(query.complete for query in seen)
        assert not any(query.extra for query in seen)

    run(main)


@pytest.mark.parametrize(
    "policy", [Fixed(0.01), Quantile(), Sibling(), Adaptive()], ids=lambda p: str(p.name)
)
@pytest.mark.parametrize("work_s", [math.inf, 0.25], ids=["hanging", "slow"])
def test_a_start_into_a_sick_fleet_is_no_storm(policy: Policy, work_s: float) -> None:
    """Nothing ever answers, so that there is never a quantile, or hardly in time: every query
    ends, and the budget holds.
    """

    async def main() -> None:
        fleet = ScriptedFleet(card(10), dealt(10, leaves=4, replicas=2), takes(work_s))
        root = BareRoot(fleet, policy, BudgetTerms(burst=5.0), timeout_s=0.3)
        seen = await root.open_loop(constant(50.0, 10.0))
        assert max(query.took_s for query in seen) <= 0.3 + 1e-9
        assert all(query.complete == (work_s < 0.3) for query in seen)
        answered = sum(len(query.outcome.replies) for query in seen)
        assert sum(query.extra for query in seen) <= 0.05 * answered + 10.0 * 1.0 + 5.0

    run(main)

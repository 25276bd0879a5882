"""Time that runs out, and clocks that disagree."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from bench.simulation.scripted import TRAVEL_S, Deed, Leg, Script, takes_about
from bench.simulation.scripted_fleet import BareRoot, ScriptedFleet, Seen, card, dealt
from bench.virtual_time import run
from bench.workload import constant, poisson
from root.budget import BudgetTerms
from root.conduct import FailureReason
from root.hedging import Fixed, Quantile

SKEW_S: Final = 600.0
FAILURES: Final[tuple[FailureReason, ...]] = ("error", "busy")


def unreliable(random: Random) -> Script:
    """Slow, broken and fast legs as they come."""

    def script(_: Leg) -> Deed:
        reason = random.choices([None, *FAILURES], [0.8, 0.15, 0.05])[0]
        return Deed(random.expovariate(1 / 0.03), reason or "answer")

    return script


def test_nothing_is_sent_after_the_deadline() -> None:
    """No leaf receives a leg later than its query's deadline and one way there."""

    async def main() -> None:
        fleet = ScriptedFleet(
            card(6), dealt(6, leaves=3, replicas=2), unreliable(Random("legs")), workers=4
        )
        plenty = BudgetTerms(max_extra_load=1.0, floor_per_s=100.0, burst=1000.0)
        root = BareRoot(fleet, Fixed(0.02), plenty, timeout_s=0.06)
        seen = await root.open_loop(poisson(50.0, 40.0, Random("arrivals")))
        await asyncio.sleep(5.0)
        assert sum(query.extra for query in seen) > 1000
        assert sum(not query.complete for query in seen) > 100
        for leaf in fleet.leaves:
            for leg in leaf.received:
                assert leg.arrived_s <= leg.flight.ask.deadline_s + TRAVEL_S + 1e-9
                assert leg.attempt.sent_s < leg.flight.ask.deadline_s
        assert root.accounted

    run(main)


def test_every_query_ends_by_its_deadline() -> None:
    """Whatever the leaves do."""

    async def main() -> None:
        fleet = ScriptedFleet(
            card(6), dealt(6, leaves=3, replicas=2), unreliable(Random("legs")), workers=1
        )
        root = BareRoot(fleet, Quantile(), timeout_s=0.1)
        seen = await root.open_loop(poisson(50.0, 20.0, Random("arrivals")))
        assert max(query.took_s for query in seen) <= 0.1 + 1e-9

    run(main)


def test_ten_minutes_of_skew_change_nothing() -> None:
    """Leaves whose clocks are ten minutes ahead or behind expire no leg and answer the same."""

    async def main(skew_s: float) -> tuple[list[tuple[float, ...]], int]:
        fleet = ScriptedFleet(
            card(4), dealt(4, leaves=4, replicas=2), takes_about(0.01, 0.5, Random("legs"))
        )
        for number, leaf in enumerate(fleet.leaves):
            leaf.skew_s = skew_s * (-1) ** number
        root = BareRoot(fleet, Quantile(), timeout_s=0.3)
        seen = await root.open_loop(constant(50.0, 5.0))
        return [times(query) for query in seen], root.ledger.failures["expired"]

    straight, skewed = run(main(0.0)), run(main(SKEW_S))
    assert straight == skewed
    assert straight[1] == 0


def times(query: Seen) -> tuple[float, ...]:
    """When each attempt was sent and ended."""
    return tuple(t for a in query.gather.attempts for t in (a.sent_s, a.ended_s))

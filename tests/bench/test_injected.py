"""Simulated leaves draw the trouble that real leaves would draw, and hold answers back."""

from __future__ import annotations

import asyncio

import pytest

from bench.direct import Crowd, simulated
from bench.plans import as_file, scaled, without
from bench.simulation.injected import draws_s, injected
from bench.virtual_time import run
from leaf.interference import Arrival, Interference
from leaf.plans import load, profile
from root.hedging import Off

SLEEP = profile("uniform-sleep")
DISK = profile("disk-queue")


def test_a_leg_takes_what_a_real_leaf_would_draw() -> None:
    """By ordinal, seed and query, to the last digit."""

    async def main() -> float:
        crowd = Crowd(simulated(SLEEP, 7, leaves=1, roots=1), Off(), seed=1)
        await crowd.ask(3)
        await crowd.quiet()
        return crowd.ledgers[0].sent["primary"]

    assert run(main) == 1
    met = Interference(SLEEP, leaf=0, seed=7, began_s=0.0).meet(Arrival("search", (0,), 3), 0.0)
    assert draws_s(SLEEP, 7, 4)[3] == met[0].transit_s


def test_what_is_held_back_occupies_nobody_and_what_is_worked_on_does() -> None:
    """Of legs sent together to a leaf of one worker, those in transit end as drawn; reads wait."""

    async def took_s(plan: str) -> float:
        fleets = simulated(profile(plan), 1, leaves=1, roots=1, workers=1)
        crowd = Crowd(fleets, Off(), seed=1)
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        await asyncio.gather(*(crowd.ask(number) for number in range(20)))
        return loop.time() - begun_s

    assert run(took_s("uniform-sleep")) == pytest.approx(4.0, abs=0.001)
    assert run(took_s("disk-queue")) == pytest.approx(sum(draws_s(DISK, 1, 20)), rel=0.01)


def test_a_rule_without_a_script_is_refused() -> None:
    """A blocked loop would be silently left out."""

    async def main() -> None:
        with pytest.raises(ValueError, match="no rule 'block'"):
            injected(profile("blocked-loop"), 0, 1)

    run(main)


def test_a_plan_runs_faster_as_a_whole() -> None:
    """Laws and schedules; what is a share or a shape stays."""
    whole = profile("mirrored-disk-pressure")
    fast = scaled(whole, 0.1)
    assert fast.rules[1].when.every_s == pytest.approx(1.0)
    assert draws_s(scaled(SLEEP, 0.1), 1, 50) == pytest.approx(
        [0.1 * second for second in draws_s(SLEEP, 1, 50)]
    )
    assert fast.rules[0].where == whole.rules[0].where


def test_a_rule_can_be_left_out() -> None:
    """By its name, and only one that is there."""
    whole = profile("mirrored-disk-pressure")
    assert [rule.name for rule in without(whole, "pressure").rules] == ["read"]
    with pytest.raises(ValueError, match="no rule 'presure'"):
        without(whole, "presure")


def test_a_plan_in_a_file_is_the_plan() -> None:
    """As a leaf reads it; afterwards the file is gone."""
    with as_file(DISK) as file:
        assert load(file) == DISK
    with pytest.raises(Exception, match="cannot be read"):
        load(file)

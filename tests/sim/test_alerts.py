"""Each alert fires in the trouble it is for, and in no other, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from prometheus_client import generate_latest

from bench.simulation.scripted import fails, takes
from bench.virtual_time import run
from leaf.admission import Depth
from leaf.pulse import Pulse
from leaf.telemetry import Ledger, registry_of
from root.config import Settings
from tests.sim.scrapes import RULES, SCRAPE_S, Scrapes, firing
from tests.sim.serving import WORK_S, Served, served

ALERTS: Final = (
    "HedgerowShardUncovered",
    "HedgerowAnswersFail",
    "HedgerowAnswersSlow",
    "HedgerowLoadRefused",
    "HedgerowLoopBlocked",
    "HedgerowWaitUnseen",
)

BEFORE_S: Final = 180.0
TROUBLE_S: Final = 300.0
AFTER_S: Final = 420.0
"""Longer than the longest window that a rule looks back over, and what it waits besides."""

QUERY_EVERY_S: Final = 0.5

Trouble = Callable[[Served], Awaitable[None]]
"""Brings trouble about for ``TROUBLE_S``, and ends it."""


def recorded(trouble: Trouble, settings: Settings | None = None) -> Scrapes:
    """The metrics of a root with steady traffic before, in and after trouble."""
    scrapes = Scrapes("root:8080")

    async def body(serving: Served) -> None:
        async def exposition() -> str:
            return (await serving.client.get("/metrics")).body.decode()

        async def ask() -> None:
            while True:
                asking.append(asyncio.create_task(serving.client.get("/search?q=a")))
                await asyncio.sleep(QUERY_EVERY_S)

        asking: list[asyncio.Task[object]] = []
        under_way = [
            asyncio.create_task(scrapes.every_so_often(exposition)),
            asyncio.create_task(ask()),
        ]
        await asyncio.sleep(BEFORE_S)
        await trouble(serving)
        await asyncio.sleep(AFTER_S)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, *asking, return_exceptions=True)

    served(body, settings or Settings(canary=False))
    return scrapes


def fires_in_its_time(fired: list[int]) -> bool:
    """Whether an alert fired during trouble, and neither before nor at the end."""
    at_s = [number * SCRAPE_S for number in fired]
    last_s = BEFORE_S + TROUBLE_S + AFTER_S - SCRAPE_S
    return bool(at_s) and BEFORE_S < at_s[0] < BEFORE_S + TROUBLE_S and at_s[-1] < last_s


async def nothing(_: Served) -> None:
    """All is well."""
    await asyncio.sleep(TROUBLE_S)


async def a_shard_loses_its_leaves(serving: Served) -> None:
    """Both of them, and they come back."""
    for number in (0, 1):
        serving.fleet.disconnect(number)
    await asyncio.sleep(TROUBLE_S)
    for number in (0, 1):
        serving.fleet.come_back(number)


async def leaves_fail(serving: Served) -> None:
    """Every leg ends in an error."""
    for leaf in serving.fleet.leaves:
        leaf.script = fails("error", after_s=WORK_S)
    await asyncio.sleep(TROUBLE_S)
    for leaf in serving.fleet.leaves:
        leaf.script = takes(WORK_S)


async def everything_is_slow(serving: Served) -> None:
    """Both phases come to 1.4 s: in time, but no user would call it that."""
    for leaf in serving.fleet.leaves:
        leaf.script = takes(0.7)
    await asyncio.sleep(TROUBLE_S)
    for leaf in serving.fleet.leaves:
        leaf.script = takes(WORK_S)


async def leaves_push_back(serving: Served) -> None:
    """All of them are full."""
    for leaf in serving.fleet.leaves:
        leaf.script = fails("busy", after_s=WORK_S)
    await asyncio.sleep(TROUBLE_S)
    for leaf in serving.fleet.leaves:
        leaf.script = takes(WORK_S)


async def loops_of_all_leaves_stand_still(serving: Served) -> None:
    """For 300 of every 350 ms they hear nothing; what they then do takes no longer than ever."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + TROUBLE_S
    while loop.time() < until_s:
        for leaf in serving.fleet.leaves:
            leaf.stop()
        await asyncio.sleep(0.300)
        for leaf in serving.fleet.leaves:
            leaf.resume()
        await asyncio.sleep(0.050)


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (nothing, ()),
        (a_shard_loses_its_leaves, ("HedgerowShardUncovered", "HedgerowAnswersFail")),
        (leaves_fail, ("HedgerowAnswersFail",)),
        (everything_is_slow, ("HedgerowAnswersSlow",)),
        (leaves_push_back, ("HedgerowLoadRefused",)),
        (loops_of_all_leaves_stand_still, ("HedgerowWaitUnseen",)),
    ],
)
def test_alerts_fire_in_their_trouble_and_in_no_other(
    trouble: Trouble, expected: tuple[str, ...], tmp_path: Path
) -> None:
    """By Prometheus' own account, on what the root exported of it."""
    fired = firing([recorded(trouble)], ALERTS, tmp_path)
    assert {alert for alert, at in fired.items() if at} == set(expected)
    for alert in expected:
        assert fires_in_its_time(fired[alert]), (alert, fired[alert])


class IdleGauges:
    """A leaf that has nothing to do."""

    def depth(self) -> Depth:
        """Return that nothing waits."""
        return Depth(0, 0, 0)

    def connections(self) -> int:
        """Return that one root is there."""
        return 1

    def troubled(self) -> bool:
        """Return that no trouble is injected: this one is real."""
        return False

    def held(self) -> list[tuple[str, str, int, int, int]]:
        """Return that nothing is held."""
        return []


@pytest.mark.parametrize("blocked", [True, False])
def test_a_leaf_whose_loop_stands_still_is_told_of_by_itself(blocked: bool, tmp_path: Path) -> None:
    """A loop that is held up 300 ms again and again; one that is late by 50 ms is not."""
    scrapes = Scrapes("leaf0:8081")
    late_s = 0.3 if blocked else 0.05

    async def main() -> None:
        loop = asyncio.get_running_loop()
        pulse = Pulse(clock=loop.time)
        registry = registry_of(Ledger(pulse), IdleGauges())

        async def exposition() -> str:
            return generate_latest(registry).decode()

        async def beat() -> None:
            while True:
                pulse.expect(0.05)
                in_trouble = BEFORE_S <= loop.time() < BEFORE_S + TROUBLE_S
                await asyncio.sleep(0.05 + late_s * in_trouble)
                pulse.beat()

        tasks = [
            asyncio.create_task(scrapes.every_so_often(exposition)),
            asyncio.create_task(beat()),
        ]
        await asyncio.sleep(BEFORE_S + TROUBLE_S + AFTER_S)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
    fired = firing([scrapes], ALERTS, tmp_path)["HedgerowLoopBlocked"]
    assert fires_in_its_time(fired) if blocked else not fired


def test_every_alert_has_been_seen_to_fire() -> None:
    """The alerts of the file are those of these tests."""
    text = RULES.read_text(encoding="utf-8")
    assert [line.split()[-1] for line in text.splitlines() if "- alert:" in line] == list(ALERTS)

"""Each alert fires in the trouble it is for, and in no other, and ends with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
import pytest
from prometheus_client import generate_latest

from bench.simulation.scripted import fails, takes
from bench.virtual_time import run, running_loop
from leaf.admission import AdmissionQueue, Depth
from leaf.asks import Finished, Task
from leaf.canned import CannedGeneration
from leaf.injection import InjectingWorkers
from leaf.interference import Interference
from leaf.plans import profile
from leaf.protocol import Kind
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


class Heard(list[Finished]):
    """What a leaf answers, where nobody listens."""

    put = list.append


@pytest.mark.parametrize("kind", ["lookup", "search"])
def test_a_leaf_whose_loop_stands_still_is_told_of_by_itself(kind: Kind, tmp_path: Path) -> None:
    """The trouble of ``python -m bench blind-spot``: with the profile ``blocked-loop`` in force
    look-ups hold up the loop for 300 ms each. Searches, as many, do not.
    """
    scrapes = Scrapes("leaf0:8081")

    async def main() -> None:
        loop = running_loop()
        pulse = Pulse(clock=loop.time)
        registry = registry_of(Ledger(pulse), IdleGauges())
        queue = AdmissionQueue[Task](workers=1, legs_max=10_000)
        workers = InjectingWorkers(queue, loop.time, sleep=loop.suspend)
        workers.interfere(Interference(profile("blocked-loop"), leaf=0, seed=1, began_s=0.0))

        async def exposition() -> str:
            return generate_latest(registry).decode()

        async def beat() -> None:
            while True:
                pulse.expect(0.05)
                await asyncio.sleep(0.05)
                pulse.beat()

        async def ask() -> None:
            await asyncio.sleep(BEFORE_S)
            for number in count():
                if loop.time() >= BEFORE_S + TROUBLE_S:
                    return
                workers.offer(
                    Task(
                        sink=Heard(),
                        channel=1,
                        kind=kind,
                        generation=CannedGeneration(1, [0]),
                        body=msgspec.Raw(b"{}"),
                        first=number,
                        shards=[0],
                        arrived_s=loop.time(),
                        budget_s=1.0,
                    )
                )
                await asyncio.sleep(0.05)

        tasks = [
            asyncio.create_task(scrapes.every_so_often(exposition)),
            asyncio.create_task(beat()),
            asyncio.create_task(ask()),
        ]
        await asyncio.sleep(BEFORE_S + TROUBLE_S + AFTER_S - loop.time())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(main())
    fired = firing([scrapes], ALERTS, tmp_path)["HedgerowLoopBlocked"]
    assert fires_in_its_time(fired) if kind == "lookup" else not fired


def test_every_alert_has_been_seen_to_fire() -> None:
    """The alerts of the file are those of these tests."""
    text = RULES.read_text(encoding="utf-8")
    assert [line.split()[-1] for line in text.splitlines() if "- alert:" in line] == list(ALERTS)

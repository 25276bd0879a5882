"""What watching costs: the same searches with and without everything that operators look at.

Two fleets over the same index, in turn within one run, so that what else the machine does hits
them alike:

    off      nothing is counted, timed or kept, by root or leaves (``--no-watch``)
    shipped  as it comes: metrics, the last minute, the slow queries, the look at the loop
    viewed   the same fleet, while so many live views are open

A round asks each arm the same queries, from so many clients at once, each as soon as it is
answered; which arm begins moves on from round to round. Judged is the ratio of two arms within a
round: its median over all rounds, with an interval that needs no assumption about the noise.

Throughput on a shared machine is noisy. What the processors spent on a query, root and leaves
together, is hit less by what else runs, and stands beside it.

Counters that answers or decisions need (attempts by kind and fate, latencies of leaves) are kept
in every arm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import msgspec
from rich.console import Console

from bench import report, workload
from bench.client import Client, connected
from bench.comparison import interval
from bench.confidence import Estimate, estimate
from bench.fleet import Fleet
from bench.progress import progress
from bench.recorder import Fate, Recorder
from root.viewers import EVENTS

UNWATCHED: Final = ("--no-watch",)
"""The option of root and leaves that leaves everything out."""

ARMS: Final = ("off", "shipped", "viewed")

WARM_UP: Final = 200
"""Queries of each fleet before the first round."""


class Bar(msgspec.Struct, frozen=True):
    """The throughput of ``arm`` is to be at least this share of that of ``of``."""

    arm: str
    of: str
    least: float


BARS: Final = (Bar("shipped", "off", 0.97), Bar("viewed", "shipped", 0.98))
"""Watching costs at most 3 %, and being looked at by twenty at most 2 % more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``rounds`` times ``requests`` of each arm, from ``clients`` at once; ``viewers`` look on."""

    rounds: int = 30
    requests: int = 300
    clients: int = 8
    viewers: int = 20

    def __post_init__(self) -> None:
        if min(self.rounds, self.requests, self.clients, self.viewers) < 1:
            raise ValueError("rounds, requests, clients and viewers must be positive")


class Ratio(msgspec.Struct, frozen=True):
    """One arm over another, a ratio a round: their median with its interval."""

    bar: Bar
    throughput: Estimate
    cpu: Estimate

    @property
    def missed(self) -> bool:
        """Whether even the upper end of the interval is below the bar."""
        return self.throughput.high is not None and self.throughput.high < self.bar.least

    @property
    def verdict(self) -> str:
        """In words."""
        if self.missed:
            return "missed"
        return "met" if self.throughput.low >= self.bar.least else "within the noise"


class Arm(msgspec.Struct, frozen=True):
    """One arm: medians over the rounds. ``events``: what viewers got, in all rounds."""

    queries_per_s: float
    cpu_ms_per_query: float
    fates: dict[str, int]
    events: int = 0


class Result(msgspec.Struct, frozen=True):
    """All arms, and the ratios that are judged."""

    rounds: int
    requests: int
    viewers: int
    arms: dict[str, Arm]
    ratios: list[Ratio]

    @property
    def missed(self) -> bool:
        """Whether watching costs more than it may, beyond the noise."""
        return any(ratio.missed for ratio in self.ratios)


@dataclass(slots=True)
class _Rounds:
    """An arm while it runs: a figure a round."""

    per_s: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)
    recorder: Recorder = field(default_factory=Recorder)
    events: int = 0


async def run(off: Fleet, shipped: Fleet, queries: Sequence[str], plan: Plan, seed: int) -> Result:
    """Run the arms in turn, ``plan.rounds`` times."""
    rounds = {name: _Rounds() for name in ARMS}
    order = random.Random(f"{seed}:order")
    fleets = {"off": off, "shipped": shipped, "viewed": shipped}
    async with connected(off.root_url) as one, connected(shipped.root_url) as other:
        clients = {"off": one, "shipped": other, "viewed": other}
        for client in (one, other):
            await _ask(client, queries, WARM_UP, plan.clients, Recorder())
        with progress("watching", plan.rounds) as told:
            for number in range(plan.rounds):
                asked = _turned(queries, number * plan.requests)
                for name in order.sample(ARMS, len(ARMS)):
                    watching = plan.viewers if name == "viewed" else 0
                    await _round(fleets[name], clients[name], asked, plan, rounds[name], watching)
                told(1)
    return _result(rounds, plan)


async def _round(
    fleet: Fleet,
    client: Client,
    queries: Sequence[str],
    plan: Plan,
    arm: _Rounds,
    viewers: int,
) -> None:
    async with _viewed(fleet.root_url, viewers) as seen:
        before_s = cpu_s(fleet.pids)
        per_s = await _ask(client, queries, plan.requests, plan.clients, arm.recorder)
        spent_s = cpu_s(fleet.pids) - before_s
    arm.per_s.append(per_s)
    arm.cpu_ms.append(spent_s * 1e3 / plan.requests)
    arm.events += len(seen)


async def _ask(
    client: Client, queries: Sequence[str], requests: int, clients: int, recorder: Recorder
) -> float:
    async def send(number: int) -> Fate:
        return (await client.search(queries[number % len(queries)])).fate

    return await workload.closed_loop(clients, requests, send, recorder)


def _turned(queries: Sequence[str], by: int) -> Sequence[str]:
    by %= len(queries)
    return [*queries[by:], *queries[:by]]


@contextlib.asynccontextmanager
async def _viewed(url: str, viewers: int) -> AsyncIterator[list[int]]:
    """So many live views are open meanwhile; yields the lengths of what they are sent, in bytes.

    All of them have had their first event before this goes on.
    """
    seen: list[int] = []
    if not viewers:
        yield seen
        return
    begun = [asyncio.Event() for _ in range(viewers)]
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(url, connector=connector, timeout=timeout) as session:

        async def view(started: asyncio.Event) -> None:
            async with session.get("/live", headers={"accept": EVENTS}) as response:
                async for line in response.content:
                    if line.startswith(b"data:"):
                        seen.append(len(line))
                        started.set()

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(view(started)) for started in begun]
            await asyncio.gather(*(started.wait() for started in begun))
            yield seen
            for task in tasks:
                task.cancel()
    await asyncio.sleep(0)  # aiohttp closes its sockets one tick later


def cpu_s(pids: Mapping[str, int]) -> float:
    """Processor time that processes have taken since their start, in user and kernel."""
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    return sum(_ticks(Path(f"/proc/{pid}/stat").read_text()) for pid in pids.values()) * tick_s


def _ticks(stat: str) -> int:
    """From proc(5): fields 14 and 15, counted after the name, which may hold anything."""
    after_name = stat.rpartition(")")[2].split()
    return int(after_name[11]) + int(after_name[12])


def _result(rounds: Mapping[str, _Rounds], plan: Plan) -> Result:
    arms = {
        name: Arm(
            estimate(arm.per_s, 50).value,
            estimate(arm.cpu_ms, 50).value,
            arm.recorder.summary().fates,
            arm.events,
        )
        for name, arm in rounds.items()
    }
    ratios = [
        Ratio(
            bar,
            _ratio(rounds[bar.arm].per_s, rounds[bar.of].per_s),
            _ratio(rounds[bar.arm].cpu_ms, rounds[bar.of].cpu_ms),
        )
        for bar in BARS
    ]
    return Result(plan.rounds, plan.requests, plan.viewers, arms, ratios)


def _ratio(arm: Sequence[float], of: Sequence[float]) -> Estimate:
    """The median of the ratios of pairs."""
    return estimate([a / b for a, b in zip(arm, of, strict=True) if b], 50)


def show(result: Result, console: Console) -> None:
    """Print a line an arm, and a line a bar."""
    rows = [
        [name, arm.queries_per_s, arm.cpu_ms_per_query, arm.events, _fates(arm)]
        for name, arm in result.arms.items()
    ]
    columns = ["arm", "queries/s", "CPU ms a query", "events sent", "fates"]
    title = f"{result.rounds} rounds of {result.requests} queries; {result.viewers} live views"
    report.show_table(title, columns, rows, console)
    compared = [
        [
            f"{ratio.bar.arm} / {ratio.bar.of}",
            f"{ratio.throughput.value:.3f}",
            interval(ratio.throughput.low, ratio.throughput.high),
            f"{ratio.bar.least:.2f}",
            ratio.verdict,
            f"{ratio.cpu.value:.3f}",
            interval(ratio.cpu.low, ratio.cpu.high),
        ]
        for ratio in result.ratios
    ]
    columns = ["", "throughput", "95 % interval", "at least", "", "CPU a query", "95 % interval"]
    report.show_table("one arm over another, within a round", columns, compared, console)


def _fates(arm: Arm) -> str:
    return ", ".join(f"{count} {fate}" for fate, count in arm.fates.items())

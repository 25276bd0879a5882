"""What short queries of one leaf suffer from long ones, and interactive ones from batch.

A leaf process of its own, real searches, one driver. *Long* queries ask for any of a hundred
frequent words. Two comparisons, each of two arms that take turns of a few seconds, and in which
the queries that are timed come at the same rate or make the leaf equally busy:

- ``mix``: 95 % short and 5 % long queries, beside short ones alone that keep the leaf equally
  busy;
- ``batch``: short queries, beside the same arrivals while there is always batch work to do.

Times are of whole queries to one leaf, from the intended send to the last leg's answer.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench import report
from bench.driver import Call, Driver, Tally, drive
from bench.experiments.saturation import AHEAD_S, arrivals, closed, percentile_ms

LONG_SHARE: Final = 0.05
BATCH_ASKS: Final = 64
"""Batch asks under way: whenever a worker looks, there is some."""

BUDGET_S: Final = 5.0
"""No query of these arms is to end by its deadline."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``busy`` is the share of its time for which interactive work keeps the leaf busy."""

    busy: float = 0.5
    rounds: int = 8
    turn_s: float = 2.5
    closed_s: float = 0.7


class Arm(msgspec.Struct, frozen=True):
    """The short queries of one arm: how many, and how long they took, in milliseconds."""

    queries: int
    p50_ms: float
    p99_ms: float


class Comparison(msgspec.Struct, frozen=True):
    """``ratio`` of the two p99 is the median over rounds, for the machine is not the same in
    all of them.
    """

    alone: Arm
    beside: Arm
    ratio: float


class Result(msgspec.Struct, frozen=True):
    """``dearness``: a long query costs so many times what a short one does."""

    capacity: float
    dearness: float
    comparisons: dict[str, Comparison]


class _Driven:
    """The arms on one leaf. Rates in queries a second."""

    def __init__(
        self,
        driver: Driver,
        short: Sequence[bytes],
        long: Sequence[bytes],
        plan: Plan,
        rng: random.Random,
    ) -> None:
        self._driver = driver
        self._short = short
        self._long = long
        self._plan = plan
        self._rng = rng
        self._short_rate = self._long_rate = 0.0

    async def measure_work(self) -> None:
        """Find out what the leaf can do: it is not the same throughout, where others work too."""
        driver, plan = self._driver, self._plan
        self._short_rate = await closed(driver, self._short, plan.closed_s) / driver.shards
        self._long_rate = await closed(driver, self._long, plan.closed_s) / driver.shards

    @property
    def capacity(self) -> float:
        return self._short_rate * self._driver.shards

    @property
    def dearness(self) -> float:
        return self._short_rate / self._long_rate

    async def alone(self, rng: random.Random) -> list[float]:
        return await self._turn(self._plan.busy * self._short_rate, 0.0, rng)

    async def mixed(self, rng: random.Random) -> list[float]:
        work_s = (1 - LONG_SHARE) / self._short_rate + LONG_SHARE / self._long_rate
        return await self._turn(self._plan.busy / work_s, LONG_SHARE, rng)

    async def with_batch(self, rng: random.Random) -> list[float]:
        driver, plan, draw = self._driver, self._plan, self._rng
        end_s = time.monotonic() + plan.turn_s + AHEAD_S

        def another(ended: Call | None = None) -> None:
            if (ended is None or ended.priority == "batch") and time.monotonic() < end_s:
                body = draw.choice(self._long if draw.random() < LONG_SHARE else self._short)
                driver.ask(Call(body, time.monotonic(), BUDGET_S, None, priority="batch"))

        driver.ended = another
        for _ in range(BATCH_ASKS):
            another()
        taken = await self.alone(rng)
        driver.ended = None
        return taken

    async def _turn(self, rate: float, long_share: float, rng: random.Random) -> list[float]:
        tally, start_s = Tally(), time.monotonic() + AHEAD_S
        calls = []
        for at_s in arrivals(rate, self._plan.turn_s, rng):
            long = rng.random() < long_share
            body = rng.choice(self._long if long else self._short)
            calls.append(Call(body, start_s + at_s, BUDGET_S, None if long else tally))
        gc.collect()
        await self._driver.keep_to(calls)
        await self._driver.settled()
        return list(tally.latencies_s)


async def run(
    url: str, short: Sequence[bytes], long: Sequence[bytes], plan: Plan, seed: int
) -> Result:
    """Measure both comparisons on the leaf at ``url``, which does nothing else."""
    driver = await drive(url)
    driven = _Driven(driver, short, long, plan, random.Random(f"{seed}:batch"))
    arms = {"alone": driven.alone, "mix": driven.mixed, "batch": driven.with_batch}
    taken: dict[str, list[list[float]]] = {name: [] for name in arms}
    try:
        gc.disable()
        await driven.measure_work()  # and warm the caches
        with Progress(transient=True) as progress:
            task = progress.add_task("classes", total=plan.rounds * len(arms))
            for number in range(plan.rounds):
                await driven.measure_work()
                for name in sorted(arms, reverse=number % 2 == 1):
                    rng = random.Random(f"{seed}:classes:{number}")
                    taken[name].append(await arms[name](rng))
                    progress.advance(task)
    finally:
        gc.enable()
        driver.close()
    return Result(
        driven.capacity,
        driven.dearness,
        {name: _compared(taken["alone"], taken[name]) for name in ("mix", "batch")},
    )


def _compared(alone: Sequence[list[float]], beside: Sequence[list[float]]) -> Comparison:
    ratios = [
        percentile_ms(b, 99) / max(percentile_ms(a, 99), 1e-3)
        for a, b in zip(alone, beside, strict=True)
    ]
    return Comparison(_arm(alone), _arm(beside), median(ratios))


def _arm(rounds: Sequence[list[float]]) -> Arm:
    taken = [s for one in rounds for s in one]
    return Arm(len(taken), percentile_ms(taken, 50), percentile_ms(taken, 99))


def show(result: Result, console: Console) -> None:
    """Print both comparisons."""
    title = f"short queries alone and in company; a long one is worth {result.dearness:.0f} of them"
    found = result.comparisons.items()
    rows = [[name, *_row(c.alone), *_row(c.beside), c.ratio] for name, c in found]
    columns = ["beside", "alone", "p50 ms", "p99 ms", "in company", "p50 ms", "p99 ms", "p99 ratio"]
    report.show_table(title, columns, rows, console)


def _row(arm: Arm) -> tuple[int, float, float]:
    return arm.queries, arm.p50_ms, arm.p99_ms

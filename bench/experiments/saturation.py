"""One leaf that is given more than it can do: what it still answers, and how soon it says no.

A leaf process of its own, real searches, and a driver in this process (`bench.driver`) that
sends on a schedule fixed beforehand: asks for all of the leaf's shards with the deadline that a
root would set, one in five cancelled on the way as hedging cancels losers. *Capacity* is what
the leaf answers when it always has enough to do (a closed run, once a round). Then turns at
multiples of it, round after round, so that a machine that slows down does so for all.

*Goodput* counts legs whose answer came within their deadline and before any cancel. All times
are the driver's, from the moment of sending; beside them stands how late the driver was itself,
and how late a process was that does nothing (`bench.idle`).
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench import idle, report
from bench.driver import Call, Driver, Tally, drive
from bench.leaf_metrics import LeafMetrics, read_leaf

GOODPUT_WANTED: Final = 0.9
REFUSAL_MS_WANTED: Final = 5.0
LAG_MS_WANTED: Final = 5.0
UNWANTED_WANTED: Final = 0.05
"""What a leaf with more to do than it can must keep to."""

CLOSED_ASKS: Final = 16
"""Asks under way in a closed run: plenty for every worker, and no long queue."""

LOSER_S: Final = 0.02
"""When a loser is cancelled, on average: the other replica, which is not saturated, answers
within some tens of milliseconds."""

AHEAD_S: Final = 0.05
"""A turn's schedule begins this long after it is made."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the leaf is driven. ``loads`` in capacities; times in seconds; ``cancelled`` is the
    share of losers. Of every turn the first ``settle_s`` fill the queue and are not counted.
    """

    loads: tuple[float, ...] = (1.0, 2.0, 4.0)
    budgets_s: tuple[float, ...] = (1.6, 0.1)
    cancelled: float = 0.2
    rounds: int = 4
    turn_s: float = 3.0
    settle_s: float = 1.0
    closed_s: float = 1.0


class Load(msgspec.Struct, frozen=True):
    """All turns at one load. Rates in legs a second (medians of turns), times in milliseconds
    (of all turns together); ``unwanted_share`` is the share of work that was done on legs
    cancelled by then, as the driver sees it, ``wasted_share`` as the leaf exports it.
    """

    load: float
    offered: float
    goodput: float
    of_peak: float
    legs: dict[str, int]
    busy_ms_p99: float
    busy_ms_max: float
    driver_lag_ms_p99: float
    driver_lag_ms_max: float
    loop_lag_ms_p99: float
    unwanted_share: float
    wasted_share: float

    @property
    def kept(self) -> bool:
        """Whether the leaf did what it must."""
        return (
            (self.of_peak >= GOODPUT_WANTED or self.load <= 1.0)
            and self.busy_ms_p99 <= REFUSAL_MS_WANTED
            and self.loop_lag_ms_p99 < LAG_MS_WANTED
            and self.unwanted_share <= UNWANTED_WANTED
        )


class Result(msgspec.Struct, frozen=True):
    """One budget. ``capacity`` is of closed runs, ``peak`` the highest goodput at any load."""

    capacity: float
    peak: float
    machine_lag_ms_p99: float
    loads: dict[str, Load]


class _Turn(msgspec.Struct, frozen=True):
    """What was seen of one turn."""

    load: float
    tally: Tally
    leaf: LeafMetrics
    lags_s: list[float]


async def run(url: str, bodies: Sequence[bytes], plan: Plan, seed: int) -> dict[str, Result]:
    """Drive the leaf at ``url``, which does nothing else, with these search bodies."""
    results = {}
    with Progress(transient=True) as progress:
        turns = len(plan.budgets_s) * plan.rounds * len(plan.loads)
        task = progress.add_task("saturation", total=turns)
        for budget_s in plan.budgets_s:
            rng = random.Random(f"{seed}:saturation:{budget_s}")
            driven = _Driven(await drive(url), url, bodies, plan, budget_s, rng)
            with idle.watched() as lags_s:
                capacity, seen = await driven.run(lambda: progress.advance(task))
            results[f"{budget_s * 1e3:g}"] = _result(capacity, plan, seen, lags_s)
    return results


class _Driven:
    """A leaf under one budget."""

    def __init__(
        self,
        driver: Driver,
        url: str,
        bodies: Sequence[bytes],
        plan: Plan,
        budget_s: float,
        rng: random.Random,
    ) -> None:
        self._driver = driver
        self._url = url
        self._bodies = bodies
        self._plan = plan
        self._budget_s = budget_s
        self._rng = rng

    async def run(self, advance: Callable[[], None]) -> tuple[float, list[_Turn]]:
        plan, capacities, turns = self._plan, [], []
        try:
            gc.disable()
            await closed(self._driver, self._bodies, plan.closed_s)  # caches warm
            for number in range(plan.rounds):
                capacity = await closed(self._driver, self._bodies, plan.closed_s)
                capacities.append(capacity)
                at = number % len(plan.loads)
                for load in (*plan.loads[at:], *plan.loads[:at]):
                    gc.collect()
                    turns.append(await self._turn(load, load * capacity / self._driver.shards))
                    advance()
        finally:
            gc.enable()
            self._driver.close()
        return median(capacities), turns

    async def _turn(self, load: float, rate: float) -> _Turn:
        plan, rng, tally = self._plan, self._rng, Tally()
        start_s = time.monotonic() + AHEAD_S
        calls = []
        for at_s in arrivals(rate, plan.turn_s, rng):
            loser = rng.random() < plan.cancelled
            calls.append(
                Call(
                    self._bodies[rng.randrange(len(self._bodies))],
                    start_s + at_s,
                    self._budget_s,
                    tally if at_s >= plan.settle_s else None,
                    cancel_s=start_s + at_s + rng.expovariate(1 / LOSER_S) if loser else None,
                )
            )
        before = await read_leaf(self._url)
        del self._driver.lags_s[:]
        await self._driver.keep_to(calls)
        await self._driver.settled()
        after = await read_leaf(self._url)
        return _Turn(load, tally, after.since(before), list(self._driver.lags_s))


async def closed(driver: Driver, bodies: Sequence[bytes], duration_s: float) -> float:
    """Return the legs a second that the leaf answers while it always has some to do."""
    tally, sent = Tally(), 0
    start_s = time.monotonic()

    def another(_: Call | None = None) -> None:
        nonlocal sent
        now = time.monotonic()
        if now - start_s < duration_s:
            driver.ask(Call(bodies[sent % len(bodies)], now, 2 * duration_s, tally))
            sent += 1

    driver.ended = another
    for _ in range(CLOSED_ASKS):
        another()
    await asyncio.sleep(duration_s)
    took_s, answered = time.monotonic() - start_s, tally.legs["good"]
    await driver.settled()
    driver.ended = None
    return answered / took_s


def arrivals(rate: float, duration_s: float, rng: random.Random) -> Iterator[float]:
    """Yield the times of independent asks in seconds from 0, ``rate`` a second."""
    at_s = rng.expovariate(rate)
    while at_s < duration_s:
        yield at_s
        at_s += rng.expovariate(rate)


def percentile_ms(seconds: Sequence[float], percentile: float) -> float:
    """Return a percentile of times in seconds as milliseconds; 0 of none."""
    if not seconds:
        return 0.0
    ranked = sorted(seconds)
    return ranked[min(int(len(ranked) * percentile / 100), len(ranked) - 1)] * 1e3


def _result(
    capacity: float, plan: Plan, turns: Sequence[_Turn], idle_lags_s: Sequence[float]
) -> Result:
    by_load = {load: [turn for turn in turns if turn.load == load] for load in plan.loads}
    counted_s = plan.turn_s - plan.settle_s
    goodput = {
        load: median(turn.tally.legs["good"] / counted_s for turn in of_load)
        for load, of_load in by_load.items()
    }
    peak = max(goodput.values())
    return Result(
        capacity,
        peak,
        percentile_ms(idle_lags_s, 99),
        {
            f"{load:g}x": _load(of_load, goodput[load], goodput[load] / peak, counted_s)
            for load, of_load in by_load.items()
        },
    )


def _load(turns: Sequence[_Turn], goodput: float, of_peak: float, counted_s: float) -> Load:
    tallies = [turn.tally for turn in turns]
    legs = sum((tally.legs for tally in tallies), Counter[str]())
    busy_s = [s for tally in tallies for s in tally.busy_s]
    lags_s = [s for turn in turns for s in turn.lags_s]
    leaf = sum((turn.leaf for turn in turns), LeafMetrics())
    return Load(
        load=turns[0].load,
        offered=median(tally.legs["offered"] / counted_s for tally in tallies),
        goodput=goodput,
        of_peak=of_peak,
        legs=dict(sorted(legs.items())),
        busy_ms_p99=percentile_ms(busy_s, 99),
        busy_ms_max=percentile_ms(busy_s, 100),
        driver_lag_ms_p99=percentile_ms(lags_s, 99),
        driver_lag_ms_max=percentile_ms(lags_s, 100),
        loop_lag_ms_p99=leaf.loop_lag_ms(99),
        unwanted_share=sum(t.unwanted_us for t in tallies)
        / max(sum(t.service_us for t in tallies), 1),
        wasted_share=leaf.wasted_s / max(leaf.service_s, 1e-9),
    )


def show(results: dict[str, Result], console: Console) -> None:
    """Print a table for each budget."""
    columns = ["load", "offered", "goodput", "of peak", "busy p99", "max", "driver lag", "max"]
    columns += ["loop lag", "unwanted"]
    for budget_ms, result in results.items():
        title = f"budget {budget_ms} ms: capacity {result.capacity:,.0f} legs/s; an idle process "
        title += f"is late by {result.machine_lag_ms_p99:.1f} ms at p99"
        rows = [_row(name, load) for name, load in result.loads.items()]
        report.show_table(title, columns, rows, console)
        for name, x in result.loads.items():
            fates = ", ".join(f"{count} {fate}" for fate, count in x.legs.items())
            console.print(f"{name}: {fates}", highlight=False)


def _row(name: str, load: Load) -> list[object]:
    of_peak, unwanted = f"{load.of_peak:.1%}", f"{load.unwanted_share:.2%}"
    figures = [name, load.offered, load.goodput, of_peak, load.busy_ms_p99, load.busy_ms_max]
    lags = [load.driver_lag_ms_p99, load.driver_lag_ms_max, load.loop_lag_ms_p99]
    return [*figures, *lags, unwanted]

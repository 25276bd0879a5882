"""Throughput against latency, from a tenth of what a fleet can do to more than it can: hedging off
and on, and at which load hedging stops paying.

A hedge is a copy of work, and work is what a busy fleet has no time for. Every leg keeps a worker
busy for some milliseconds, and one in a few hundred for much longer: a stall, from which another
replica would save the query. *Capacity* is what the fleet answers when it always has enough to do
(a closed run, hedging off). Then both arms, ``off`` and ``adaptive``, go through the same requests
at every multiple of it, by turns, round after round. Latency is from the intended send time.

Hedging *pays* at a load where it lowers the 99th percentile by more than a twentieth. Where it
stops is where the line between two measured loads crosses that, the first time: past capacity
the 99th percentile is that of a queue which grows, and says nothing of hedging.

Simulated, the same requests meet the same law in virtual time, on leaves with queues and workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from rich.console import Console

from bench import plots, report
from bench.direct import Arm, Crowd, linked, simulated
from bench.fleet import Shape, running
from bench.plans import as_file
from bench.progress import progress
from bench.recorder import Fate, Recorder
from bench.simulation.injected import draws_s
from bench.virtual_time import run as run_in_virtual_time
from bench.workload import Schedule, closed_loop, open_loop, poisson
from leaf.interference import Busy, Scope
from leaf.interference import Plan as Trouble
from leaf.laws import LogNormal, Pareto
from root.discovery import Fleet
from root.hedging import Adaptive, Off, Policy

LOADS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
"""In capacities."""

POLICIES: Final[tuple[Policy, ...]] = (Off(), Adaptive())
FIGURES: Final = ("p50", "p95", "p99")
PERCENTILES: Final = (50.0, 95.0, 99.0)

PAYS: Final = 0.05
"""By so much is the 99th percentile lower where hedging pays: what it costs by default."""

SHARDS: Final = 8
LEAVES: Final = 4
REPLICAS: Final = 2
WORKERS: Final = 2

CLIENTS: Final = 32
"""Of the closed run: four times as many legs as there are workers to take them."""

LEARNED: Final = 400
"""Legs of which every root has seen the times before: whole rounds would go for that."""

SEARCHES: Final = Scope(kinds=("search",))
TROUBLE: Final = Trouble(
    about="Legs of some 8 ms, of which one in 250 takes 80 ms or more",
    rules=(
        Busy(name="work", takes=LogNormal(median_ms=8.0, sigma=0.4), where=SEARCHES),
        Busy(
            name="stall",
            probability=0.004,
            takes=Pareto(least_ms=80.0, alpha=3.1),
            where=SEARCHES,
        ),
    ),
)
"""Three queries in a hundred meet a stall: the 99th percentile is made of them, up to where it is
made of queues."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Every arm has ``rounds`` turns of ``turn_s`` seconds at every load."""

    loads: tuple[float, ...] = LOADS
    rounds: int = 2
    turn_s: float = 3.0
    closed: int = 200
    """Requests of the closed run."""
    seed: int = 1


SIMULATED: Final = Plan(rounds=4, turn_s=10.0, closed=2000)
LIVE: Final = Plan()


class Load(msgspec.Struct, frozen=True):
    """All turns at one load, in capacities. Rates in requests a second: what was ``offered``, and
    what each arm answered completely, from the first request to the last answer.
    """

    load: float
    offered_per_s: float
    answered_per_s: dict[str, float]
    arms: dict[str, Arm]

    @property
    def gain(self) -> float:
        """By what share the 99th percentile is lower with hedging."""
        return self.arms["adaptive"].gain(self.arms["off"], "p99")


class Result(msgspec.Struct, frozen=True):
    """``capacity_per_s`` in requests a second. ``stops_at``: the load at which hedging stops
    paying; None where it pays at every one.
    """

    simulated: bool
    capacity_per_s: float
    loads: list[Load]
    stops_at: float | None


def stops_paying(gains: Sequence[tuple[float, float]]) -> float | None:
    """The load at which hedging stops paying, of (load, gain) in ascending loads: where the line
    from the last load before which it always pays to the next crosses ``PAYS``. The lowest load
    where it does not even pay there, None where it pays at every one.
    """
    if gains[0][1] <= PAYS:
        return gains[0][0]
    for (load, gain), (next_load, next_gain) in pairwise(gains):
        if next_gain <= PAYS:
            return load + (next_load - load) * (gain - PAYS) / (gain - next_gain)
    return None


# --- what is done -------------------------------------------------------------------------


def simulate(plan: Plan) -> Result:
    """Run it in virtual time."""
    return run_in_virtual_time(partial(_simulated, plan))


async def _simulated(plan: Plan) -> Result:
    # Arms take turns with the same leaves, each by connections of its own.
    fleets = simulated(
        TROUBLE,
        plan.seed,
        leaves=LEAVES,
        roots=len(POLICIES),
        workers=WORKERS,
        shards=SHARDS,
        replicas=REPLICAS,
    )
    return await _measured([[fleet] for fleet in fleets], plan, simulated=True)


async def live(plan: Plan) -> Result:
    """Run it on real leaves."""
    with as_file(TROUBLE) as file:
        options = ("--workers", str(WORKERS), "--interference", file, "--seed", str(plan.seed))
        shape = Shape(
            canned=SHARDS, root=False, leaves=LEAVES, replicas=REPLICAS, leaf_options=options
        )
        with running(shape) as processes:
            async with AsyncExitStack() as stack:
                links = [linked(processes.leaf_urls, 1) for _ in POLICIES]
                fleets = [await stack.enter_async_context(link) for link in links]
                return await _measured(fleets, plan, simulated=False)


async def _measured(fleets: Sequence[Sequence[Fleet]], plan: Plan, *, simulated: bool) -> Result:
    learned_s = draws_s(TROUBLE, plan.seed + 1, LEARNED)

    def crowd(policy: Policy, own: Sequence[Fleet]) -> Crowd:
        return Crowd(own, policy, seed=plan.seed, learned_s=learned_s)

    capacity_per_s, number = await _capacity(crowd(POLICIES[0], fleets[0]), plan)
    loads = []
    with progress("capacity", len(plan.loads) * plan.rounds) as advance:
        for load in plan.loads:
            crowds = {
                policy.name: crowd(policy, own)
                for policy, own in zip(POLICIES, fleets, strict=True)
            }
            turns = [
                poisson(load * capacity_per_s, plan.turn_s, Random(f"{plan.seed}:{load}:{turn}"))
                for turn in range(plan.rounds)
            ]
            answered_per_s = await _by_turns(crowds, turns, number, advance)
            number += sum(len(turn.send_at_s) for turn in turns)
            arms = {name: Arm.of(one, PERCENTILES) for name, one in crowds.items()}
            loads.append(Load(load, load * capacity_per_s, answered_per_s, arms))
    gains = [(one.load, one.gain) for one in loads]
    return Result(simulated, capacity_per_s, loads, stops_paying(gains))


async def _capacity(crowd: Crowd, plan: Plan) -> tuple[float, int]:
    """Requests a second when there is always enough to do, and how many it took to know."""
    await closed_loop(CLIENTS, CLIENTS, crowd.ask, Recorder())
    per_s = await closed_loop(CLIENTS, plan.closed, crowd.ask, Recorder())
    await crowd.quiet()
    return per_s, plan.closed


async def _by_turns(
    crowds: Mapping[str, Crowd],
    turns: Sequence[Schedule],
    first: int,
    advance: Callable[[float], None],
) -> dict[str, float]:
    """Let every arm go through each turn; return what each has answered a second."""
    loop, names = asyncio.get_running_loop(), list(crowds)
    took_s = dict.fromkeys(names, 0.0)
    for number, turn in enumerate(turns):
        for place in range(len(names)):
            name = names[(number + place) % len(names)]
            crowd = crowds[name]

            async def ask(request: int, crowd: Crowd = crowd, first: int = first) -> Fate:
                return await crowd.ask(first + request)

            began_s = loop.time()
            await open_loop(turn, ask, crowd.recorder)
            took_s[name] += loop.time() - began_s
            await crowd.quiet()
        first += len(turn.send_at_s)
        advance(1)
    return {
        name: crowd.recorder.summary().fates.get("complete", 0) / took_s[name]
        for name, crowd in crowds.items()
    }


def conditions(plan: Plan, *, simulated: bool) -> report.Conditions:
    """What is asked, injected and real."""
    real = "the decisions of root and leaf; messages take 0.1 ms, work sleeps in virtual time"
    if not simulated:
        real = "leaf processes, their queues and workers, connections; roots without HTTP in one "
        real += "process"
    return report.Conditions(
        load=f"Poisson, {plan.loads[0]:.0%} to {plan.loads[-1]:.0%} of capacity, "
        f"{plan.rounds} x {plan.turn_s:g} s of each arm at each load",
        injected=f"work: {TROUBLE.about[0].lower()}{TROUBLE.about[1:]}",
        real=f"{real}; {SHARDS} shards, {LEAVES} leaves of {WORKERS} workers, {REPLICAS} replicas",
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print a line a load, and where hedging stops paying."""
    rows: list[list[object]] = []
    for one in result.loads:
        off, adaptive = (one.arms[policy.name] for policy in POLICIES)
        pairs = [
            f"{report.figure(off.figures_ms[f].value)} / "
            f"{report.figure(adaptive.figures_ms[f].value)}"
            for f in FIGURES
        ]
        answered = " / ".join(report.figure(per_s) for per_s in one.answered_per_s.values())
        spent = f"{adaptive.extra_load:.1%}"
        rows.append(
            [f"{one.load:.0%}", one.offered_per_s, answered, *pairs, f"{one.gain:.0%}", spent]
        )
    if result.stops_at is not None:
        blank = [""] * (len(FIGURES) + 2)
        rows.append([f"{result.stops_at:.0%}", *blank, f"{PAYS:.0%}", "stops paying"])
    columns = ["load", "offered/s", "answered/s", *(f"{f}, ms" for f in FIGURES)]
    columns += ["p99 lower by", "extra load"]
    title = f"capacity {result.capacity_per_s:.0f} requests/s; off / adaptive"
    report.show_table(title, columns, rows, console)
    console.print(verdict(result), highlight=False, soft_wrap=True)
    runs = {
        f"{one.load:.0%}, {name}": arm.summary
        for one in result.loads
        for name, arm in one.arms.items()
    }
    report.show_validity(runs, console)


def verdict(result: Result) -> str:
    """Where hedging stops paying, in words."""
    if result.stops_at is None:
        return f"hedging pays up to {result.loads[-1].load:.0%} of capacity"
    return (
        f"hedging stops paying at {result.stops_at:.0%} of capacity: there it lowers the 99th "
        f"percentile by no more than {PAYS:.0%}"
    )


def draw(result: Result, path: Path, caption: str) -> None:
    """Latency and throughput over load, with a line where hedging stops paying."""
    with plots.page(path, "Capacity", caption, (1, 2)) as (latency, throughput):
        names = [policy.name for policy in POLICIES]
        waits = {
            f"{name}@{figure}": [
                (one.load * 100.0, one.arms[name].figures_ms[figure].value) for one in result.loads
            ]
            for figure in ("p50", "p99")
            for name in names
        }
        across = "offered, % of capacity"
        plots.lines(latency, waits, "latency", across, "ms", log="y")
        answered = {
            name: [(one.load * 100.0, one.answered_per_s[name]) for one in result.loads]
            for name in names
        }
        plots.lines(throughput, answered, "throughput", across, "answered/s")
        if result.stops_at is None:
            return
        for panel in (latency, throughput):
            panel.axvline(result.stops_at * 100.0, color=plots.BLACK, linewidth=1.0, linestyle="--")
        latency.annotate(
            f"hedging stops paying: {result.stops_at:.0%}",
            (result.stops_at * 100.0, 0.97),
            (-5, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=9,
        )

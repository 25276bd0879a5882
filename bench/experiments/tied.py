"""Tied requests on disks: the eight figures of table 2 of *The Tail at Scale*.

A leaf is a disk with one worker: uncached reads, three replicas, first come, first served. Each
read is one leg, and comes to one of many roots that know nothing of each other, so that which
disk it goes to first is left to chance, as it is for many clients. Idle disks, and disks that
something else sorts on; at the published load, and at others.

``tied`` is held against ``off`` and against what there is to gain: reads of the same length that
never have to wait (``unqueued``). No policy takes less than that, so where waiting is a smaller
part of the time than was published, the published gain is not to be had by anybody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final, NamedTuple

import msgspec
from rich.console import Console

from bench import plots, report
from bench.comparison import Comparison, show_comparison
from bench.confidence import Curve, estimate
from bench.direct import Arm, Crowd, in_turns, linked, round_trip_s, simulated
from bench.fleet import Shape, running
from bench.published import TIED_BESIDE_A_SORT, TIED_EXTRA_WORK_MAX, TIED_IDLE, Published
from bench.simulation.injected import draws_s
from bench.virtual_time import run as run_in_virtual_time
from bench.workload import Schedule, poisson
from leaf.plans import profile
from root.budget import BudgetTerms
from root.discovery import Fleet
from root.hedging import Adaptive, Off, Policy, Tied

REPLICAS: Final = 3
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
FIGURES: Final = ("p50", "p90", "p99", "p99.9")
POLICIES: Final[tuple[Policy, ...]] = (Off(), Tied(), Adaptive())

READS_PER_S: Final = 25.0
"""For each disk, at the published load: fitted with the profiles, see ``bench fit-disks``."""

BUDGET: Final = BudgetTerms(floor_per_s=0.0, burst=10.0)
"""Of each root. What many roots have saved up before the first read would count for much."""

DRAWN: Final = 20_000
"""Reads drawn to know what they take by themselves."""

LEARNED: Final = 200
"""Reads that each root has seen before: twice what it needs for a history."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Disks of one kind: the interference profile of a leaf, and what was published of it."""

    profile: str
    published: Published


ENVIRONMENTS: Final = {
    "idle": Environment("disk-queue", TIED_IDLE),
    "with_background_sort": Environment("disk-queue-with-background-sort", TIED_BESIDE_A_SORT),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much: ``reads`` of every arm at every load, in turns of ``turn_s`` seconds.

    ``loads``: shares of the time that disks are busy, besides the published load.
    """

    reads: int = 20_000
    turn_s: float = 20.0
    roots: int = 20
    loads: tuple[float, ...] = (0.3, 0.5, 0.7)
    seed: int = 1


SIMULATED: Final = Plan()
LIVE: Final = Plan(reads=1500, turn_s=5.0, roots=10)
"""Ten roots, because each has connections of its own, and pings on each of them."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One environment at one load. ``gains`` of tied over off and ``gains_max``, what reads that
    never wait would gain, by percentile; ``unqueued_ms`` are those reads.
    """

    environment: str
    load: float
    reads_per_s: float
    as_published: bool
    round_trip_ms: float
    arms: dict[str, Arm]
    unqueued_ms: dict[str, float]
    gains: dict[str, float]
    gains_max: dict[str, float]


class Result(msgspec.Struct, frozen=True):
    """Every setting; ``simulated`` says whether time was virtual."""

    simulated: bool
    roots: int
    settings: list[Setting]

    @property
    def runs(self) -> dict[str, Arm]:
        """Every arm by what it is."""
        return {
            f"{s.environment} at {s.load:.0%}, {name}": arm
            for s in self.settings
            for name, arm in s.arms.items()
        }


class Measured(NamedTuple):
    """One environment at one load, as it was measured."""

    crowds: Mapping[str, Crowd]
    reads_per_s: float
    round_trip_s: float


class _Disks:
    """One environment: how long its reads take, and how many make a load."""

    def __init__(self, name: str, plan: Plan) -> None:
        self.name = name
        self.environment = ENVIRONMENTS[name]
        self.rules = profile(self.environment.profile)
        self.reads_s = draws_s(self.rules, plan.seed, DRAWN)
        self._plan = plan

    def rates(self) -> list[float]:
        """Reads a second of each disk, the published load first."""
        return [READS_PER_S, *(load / fmean(self.reads_s) for load in self._plan.loads)]

    def turns(self, reads_per_s: float) -> list[Schedule]:
        """When to read."""
        rate_per_s, plan = REPLICAS * reads_per_s, self._plan
        duration_s = plan.reads / rate_per_s
        turns = max(1, round(duration_s / plan.turn_s))
        return [
            poisson(rate_per_s, duration_s / turns, Random(f"{plan.seed}:{self.name}:{turn}"))
            for turn in range(turns)
        ]

    async def measure(self, fleets: Sequence[Fleet], reads_per_s: float) -> Measured:
        """Let every policy read from the same disks, in turns."""
        crowds = {
            policy.name: Crowd(
                fleets,
                policy,
                seed=self._plan.seed,
                budget=BUDGET,
                learned_s=self.reads_s[:LEARNED],
            )
            for policy in POLICIES
        }
        await in_turns(crowds, self.turns(reads_per_s))
        return Measured(crowds, reads_per_s, round_trip_s(fleets))

    def setting(self, measured: Measured) -> Setting:
        """What was measured, in figures. It takes a while, in which nothing can be measured."""
        arms = {name: Arm.of(crowd, PERCENTILES) for name, crowd in measured.crowds.items()}
        reads_per_s = measured.reads_per_s
        off = arms["off"]
        in_order = sorted(self.reads_s)
        unqueued_ms = {
            f"p{p:g}": estimate(in_order, p, ordered=True).value * 1e3 for p in PERCENTILES
        }
        return Setting(
            environment=self.name,
            load=reads_per_s * fmean(self.reads_s),
            reads_per_s=reads_per_s,
            as_published=reads_per_s == READS_PER_S,
            round_trip_ms=measured.round_trip_s * 1e3,
            arms=arms,
            unqueued_ms=unqueued_ms,
            gains={figure: arms["tied"].gain(off, figure) for figure in FIGURES},
            gains_max={f: 1.0 - unqueued_ms[f] / off.figures_ms[f].value for f in FIGURES},
        )


def simulate(plan: Plan) -> Result:
    """Run every setting in virtual time, one after the other."""
    settings = [
        disks.setting(run_in_virtual_time(partial(_simulated, disks, reads_per_s, plan)))
        for disks in (_Disks(name, plan) for name in ENVIRONMENTS)
        for reads_per_s in disks.rates()
    ]
    return Result(True, plan.roots, settings)


async def _simulated(disks: _Disks, reads_per_s: float, plan: Plan) -> Measured:
    fleets = simulated(disks.rules, plan.seed, leaves=REPLICAS, roots=plan.roots, workers=1)
    return await disks.measure(fleets, reads_per_s)


async def live(plan: Plan) -> Result:
    """Run every setting on real leaves; both environments at the same time."""
    both = [_Disks(name, plan) for name in ENVIRONMENTS]
    with ExitStack() as stack:
        # All are started first: waiting for a process holds up the loop that measures.
        fleets = [stack.enter_context(running(_shape(disks, plan))) for disks in both]
        found = await asyncio.gather(
            *(_live(disks, one.leaf_urls, plan) for disks, one in zip(both, fleets, strict=True))
        )
    settings = [
        disks.setting(measured)
        for disks, of_disks in zip(both, found, strict=True)
        for measured in of_disks
    ]
    return Result(False, plan.roots, settings)


async def _live(disks: _Disks, urls: Sequence[str], plan: Plan) -> list[Measured]:
    async with linked(urls, plan.roots) as fleets:
        return [await disks.measure(fleets, rate) for rate in disks.rates()]


def _shape(disks: _Disks, plan: Plan) -> Shape:
    options = ("--workers", "1", "--interference", disks.environment.profile)
    return Shape(
        canned=1,
        root=False,
        leaves=REPLICAS,
        replicas=REPLICAS,
        leaf_options=(*options, "--seed", str(plan.seed)),
    )


def conditions(plan: Plan, *, simulated: bool) -> report.Conditions:
    """What is asked, injected and real."""
    real = "the decisions of root and leaf; messages take 0.1 ms, reads sleep in virtual time"
    if not simulated:
        real = "leaf processes, their queues and workers, connections, roots without HTTP in one"
        real += " process; both environments at once"
    load = f"{READS_PER_S:g} reads/s for each of {REPLICAS} disks"
    if plan.loads:
        busy = ", ".join(f"{load:.0%}" for load in plan.loads)
        load += f", and so many that they are busy {busy} of the time"
    return report.Conditions(
        load=f"{load}; open loop; {plan.roots} roots",
        injected="reads that keep a worker busy: profiles "
        + ", ".join(environment.profile for environment in ENVIRONMENTS.values()),
        real=real,
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print the eight figures beside the published ones, then the gains at every load."""
    for setting in result.settings:
        if setting.as_published:
            published = ENVIRONMENTS[setting.environment].published
            title = f"{setting.environment}, {setting.reads_per_s:g} reads/s a disk"
            show_comparison(title, comparisons(setting), console, source=published.source)
    columns = ["", "busy", *FIGURES, "done twice", "extra load", "reads"]
    for name, environment in ENVIRONMENTS.items():
        rows: list[list[object]] = []
        for setting in result.settings:
            if setting.environment == name:
                rows += _rows(setting)
        gains = [f"{gain:.0%}" for gain in published_gains(environment.published).values()]
        most = f"< {TIED_EXTRA_WORK_MAX:.0%}"
        rows.append(["published gain of tied", "", *gains, most, "", ""])
        report.show_table(f"{name}: milliseconds, and what tied gains", columns, rows, console)
    trips = ", ".join(f"{s.round_trip_ms:.2f}" for s in result.settings)
    console.print(f"round trip between root and leaf, ms: {trips}", highlight=False, soft_wrap=True)
    for line in verdicts(result):
        console.print(line, highlight=False, soft_wrap=True)
    report.show_validity({name: arm.summary for name, arm in result.runs.items()}, console)


def comparisons(setting: Setting) -> list[Comparison]:
    """The published figures of a setting, with what was measured."""
    published = ENVIRONMENTS[setting.environment].published
    return [
        Comparison.of(figure, published.figure(name, figure), arm.figures_ms[figure], arm=name)
        for figure in FIGURES
        for name, arm in setting.arms.items()
    ]


def published_gains(published: Published) -> dict[str, float]:
    """By what share tied reads were published to be shorter."""
    tied, off = published.rows["tied"], published.rows["off"]
    return {figure: 1.0 - tied[figure] / off[figure] for figure in FIGURES}


def _rows(setting: Setting) -> list[list[object]]:
    busy = f"{setting.load:.0%}"
    rows: list[list[object]] = [
        [
            name,
            busy,
            *(arm.figures_ms[figure].value for figure in FIGURES),
            f"{arm.duplicates:.2%}",
            f"{arm.extra_load:.2%}",
            arm.summary.requests,
        ]
        for name, arm in setting.arms.items()
    ]
    rows.append(["unqueued", busy, *setting.unqueued_ms.values(), "", "", DRAWN])
    for name, gains in (("gain of tied", setting.gains), ("all there is", setting.gains_max)):
        rows.append([name, busy, *(f"{gain:.0%}" for gain in gains.values()), "", "", ""])
    return rows


def verdicts(result: Result) -> list[str]:
    """Where tied falls short of what was published, in words; one line where it does nowhere."""
    lines = []
    for setting in result.settings:
        where = f"{setting.environment} at {setting.load:.0%}"
        published = ENVIRONMENTS[setting.environment].published
        for figure, wanted in published_gains(published).items():
            gain = setting.gains[figure]
            if gain < wanted:
                why = ""
                if setting.gains_max[figure] < wanted:
                    why = f", but all there is to gain is {setting.gains_max[figure]:.1%}"
                elif gain >= least_gain(published, figure):
                    why = ", which is as much to the precision of whole milliseconds"
                lines.append(f"{where}: {figure} {gain:.1%} lower, published {wanted:.1%}{why}")
        if setting.arms["tied"].duplicates >= TIED_EXTRA_WORK_MAX:
            lines.append(f"{where}: {setting.arms['tied'].duplicates:.2%} are done twice")
    return lines or ["every gain is at least the published one, under 1 % done twice"]


def least_gain(published: Published, figure: str) -> float:
    """The least gain that rounds to the published milliseconds."""
    return 1.0 - (published.rows["tied"][figure] + 0.5) / (published.rows["off"][figure] - 0.5)


def draw(result: Result, path: Path, caption: str) -> None:
    """Distributions at the published load, beside the published points as bars."""
    shown = [setting for setting in result.settings if setting.as_published]
    with plots.page(path, "Tied requests on disks", caption, (2, len(shown))) as axes:
        for place, setting in enumerate(shown):
            curves: Mapping[str, Curve] = {name: arm.curve_ms for name, arm in setting.arms.items()}
            plots.tail(axes[place], curves, setting.environment.replace("_", " "))
            figures = [one for one in comparisons(setting) if one.arm != "adaptive"]
            named = [
                msgspec.structs.replace(one, name=f"{one.name} {one.arm}", arm="")
                for one in sorted(figures, key=lambda one: one.arm)
            ]
            plots.bars(axes[len(shown) + place], named, "published and measured")

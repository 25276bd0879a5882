"""Reads from a mirrored pair of disks, plain and hedged: the six rows of a RAID1 experiment.

A leaf is a disk with one worker. The driver of a mirror goes to the disk whose head is near, not
to the one with fewer reads to do; so here each reader has a root of its own, which knows of its
own read alone. (One root for all of them sees both queues and avoids a slow disk by itself:
``--roots 1`` shows what is left for hedging then.) One reader at a time; sixteen in flight; and
sixteen while one of the disks is read by others for a tenth of the time. The load is a closed
loop, as published: a reader reads again as soon as it has been answered, so the rate is a result.

Published is what a real pair of disks did; the profile is fitted to its first row alone. There
sixteen readers came to hardly more reads a second than one, as if the pair were one disk; here two
disks do twice as much. So what is to be compared is by what share hedging changes each figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench import plots, report
from bench.comparison import Comparison, show_comparison
from bench.direct import Arm, Crowd, closed_in_turns, linked, simulated
from bench.fleet import Shape, running
from bench.plans import as_file, scaled, without
from bench.published import MIRRORED_READS
from bench.virtual_time import run as run_in_virtual_time
from leaf.interference import Plan as Trouble
from leaf.plans import profile
from root.budget import BudgetTerms
from root.discovery import Fleet
from root.hedging import Adaptive, Off

PROFILE: Final = "mirrored-disk-pressure"
PRESSURE: Final = "pressure"
"""The rule of the profile that only the last rows meet."""

DISKS: Final = 2
PERCENTILES: Final = (80.0, 95.0, 99.0, 99.95, 99.99)
FIGURES: Final = ("rate_per_s", "p80", "p95", "p99", "p99.95", "p99.99")
WARM_UP: Final = 200
"""Reads before the first that counts: the root has a history then."""

ROWS: Final = {"one_reader": (1, False), "sixteen": (16, False), "pressure": (16, True)}
"""Readers, and whether there is pressure."""

BUDGET: Final = BudgetTerms(floor_per_s=0.0, burst=10.0)
"""Of each root. What many roots have saved up before the first read would count for much."""

GAINS_WANTED: Final = {"p99": 0.18, "p99.99": 0.27}
"""With pressure, as published."""

RATE_CHANGE_MAX: Final = 0.05


@dataclass(frozen=True, slots=True)
class Plan:
    """``reads`` of each row and arm in so many turns; ``scale``: how long a second takes;
    ``roots``: among how many the readers are divided, each with its own unless told.
    """

    reads: int = 100_000
    turns: int = 1
    scale: float = 1.0
    seed: int = 1
    roots: int | None = None

    def roots_of(self, row: str) -> int:
        """How many roots a row has."""
        readers, _ = ROWS[row]
        return min(readers, self.roots or readers)


SIMULATED: Final = Plan()
LIVE: Final = Plan(reads=4000, turns=4, scale=0.5)


class Row(msgspec.Struct, frozen=True):
    """One row, in the times of what was published. ``arm`` has them as they were measured."""

    figures: dict[str, float]
    arm: Arm


class Result(msgspec.Struct, frozen=True):
    """Rows by their published names. ``changes``: hedged over plain less one, by row."""

    simulated: bool
    scale: float
    rows: dict[str, Row]
    changes: dict[str, dict[str, float]]
    published_changes: dict[str, dict[str, float]]


def simulate(plan: Plan) -> Result:
    """Run all rows in virtual time; each arm has disks of its own that meet the same."""
    rows: dict[str, Row] = {}
    for name in ROWS:
        for hedged in (False, True):
            rows |= run_in_virtual_time(partial(_simulated, name, plan, hedged=hedged))
    return _result(plan, rows, simulated=True)


async def _simulated(name: str, plan: Plan, *, hedged: bool) -> dict[str, Row]:
    trouble = trouble_of(name, plan)
    fleets = simulated(trouble, plan.seed, leaves=DISKS, roots=plan.roots_of(name), workers=1)
    return await _measured(fleets, name, plan, [hedged])


async def live(plan: Plan) -> Result:
    """Run all rows on real leaves, plain and hedged in turns."""
    rows: dict[str, Row] = {}
    for name in ROWS:
        with as_file(trouble_of(name, plan)) as file:
            options = ("--workers", "1", "--interference", file, "--seed", str(plan.seed))
            shape = Shape(canned=1, root=False, leaves=DISKS, replicas=DISKS, leaf_options=options)
            with running(shape) as processes:
                async with linked(processes.leaf_urls, plan.roots_of(name)) as fleets:
                    rows |= await _measured(fleets, name, plan, [False, True])
    return _result(plan, rows, simulated=False)


def trouble_of(name: str, plan: Plan) -> Trouble:
    """What the disks of a row meet."""
    whole = profile(PROFILE)
    _, pressed = ROWS[name]
    return scaled(whole if pressed else without(whole, PRESSURE), plan.scale)


async def _measured(
    fleets: Sequence[Fleet], name: str, plan: Plan, arms: Sequence[bool]
) -> dict[str, Row]:
    clients, _ = ROWS[name]
    warm = {str(hedged): Crowd(fleets, Off(), seed=plan.seed) for hedged in arms}
    await closed_in_turns(warm, clients, WARM_UP, 1)
    learned_s = [warm[str(arms[0])].recorder.latency_ms(p) / 1e3 for p in range(1, 100)] * 2
    crowds = {
        f"{name}_hedged" if hedged else name: Crowd(
            fleets,
            Adaptive() if hedged else Off(),
            seed=plan.seed,
            budget=BUDGET,
            learned_s=learned_s,
        )
        for hedged in arms
    }
    rates = await closed_in_turns(crowds, clients, plan.reads, plan.turns)
    return {
        row: _row(Arm.of(crowd, PERCENTILES), rates[row], plan.scale)
        for row, crowd in crowds.items()
    }


def _row(arm: Arm, rate_per_s: float, scale: float) -> Row:
    figures = {"rate_per_s": rate_per_s * scale}
    figures |= {name: one.value / scale for name, one in arm.figures_ms.items()}
    return Row(figures, arm)


def _result(plan: Plan, rows: dict[str, Row], *, simulated: bool) -> Result:
    measured = {name: row.figures for name, row in rows.items()}
    published = {name: dict(row) for name, row in MIRRORED_READS.rows.items()}
    return Result(simulated, plan.scale, rows, _changes(measured), _changes(published))


def _changes(rows: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    return {
        name: {f: rows[f"{name}_hedged"][f] / rows[name][f] - 1.0 for f in FIGURES} for name in ROWS
    }


def conditions(plan: Plan, *, simulated: bool) -> report.Conditions:
    """What is asked, injected and real."""
    scale = "" if plan.scale == 1.0 else f"; a second takes {plan.scale:g} s, figures are as if not"
    real = "the decisions of root and leaf; messages take 0.1 ms, reads sleep in virtual time"
    if not simulated:
        real = "leaf processes, their queues and workers, connections; a root without HTTP"
    return report.Conditions(
        load=f"closed loop of 1 and 16 readers, {plan.reads} reads a row{scale}",
        injected=f"profile {PROFILE}: reads that keep a worker busy",
        real=real,
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print the six rows beside the published ones, then what hedging changes."""
    title = "reads from a mirrored pair"
    show_comparison(title, comparisons(result), console, source=MIRRORED_READS.source)
    rows: list[list[object]] = []
    for name in ROWS:
        for whose, changes in (
            ("published", result.published_changes[name]),
            ("measured", result.changes[name]),
        ):
            extra = result.rows[f"{name}_hedged"].arm.extra_load
            cost = f"{extra:.1%}" if whose == "measured" else ""
            rows.append([f"{name}, {whose}", *(f"{changes[f]:+.1%}" for f in FIGURES), cost])
    report.show_table("hedged over plain", ["", *FIGURES, "extra load"], rows, console)
    for line in verdicts(result):
        console.print(line, highlight=False, soft_wrap=True)


def comparisons(result: Result) -> list[Comparison]:
    """Every published figure with what was measured."""
    found = []
    for name, row in result.rows.items():
        for figure in FIGURES:
            published = MIRRORED_READS.figure(name, figure)
            if figure == "rate_per_s":
                one = Comparison(name, published, row.figures[figure], unit="reads/s")
            else:
                scaled_back = row.arm.figures_ms[figure].times(1.0 / result.scale)
                one = Comparison.of(f"{name} {figure}", published, scaled_back)
            found.append(one)
    return found


def verdicts(result: Result) -> list[str]:
    """Where hedging under pressure changes less than was published, in words."""
    changes = result.changes["pressure"]
    lines = [
        f"pressure: {figure} is {-changes[figure]:.0%} lower, published {gain:.0%}"
        for figure, gain in GAINS_WANTED.items()
        if -changes[figure] < gain
    ]
    lines += [
        f"{name}: the rate changes by {result.changes[name]['rate_per_s']:+.1%}"
        for name in ROWS
        if result.changes[name]["rate_per_s"] < -RATE_CHANGE_MAX
    ]
    return lines or ["with pressure the gains are at least the published ones, at the same rate"]


def draw(result: Result, path: Path, caption: str) -> None:
    """A distribution a pair of rows."""
    with plots.page(path, "Reads from a mirrored pair of disks", caption, (1, len(ROWS))) as axes:
        for panel, name in zip(axes, ROWS, strict=True):
            curves = {
                label: [(p, ms / result.scale) for p, ms in result.rows[row].arm.curve_ms]
                for label, row in (("off", name), ("adaptive", f"{name}_hedged"))
            }
            plots.tail(panel, curves, name.replace("_", " "))

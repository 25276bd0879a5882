"""Reading 1,000 keys spread over 100 servers, with a second request after 10 ms.

A query reads its keys with one leg a server, ten keys each: a hundred legs, done when all are.
Arms: ``off``; ``fixed``, the published policy, whose hedges nothing bounds; ``adaptive`` within
less than ``fixed`` costs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench import live_arms, plots, report
from bench.comparison import Comparison, show_comparison
from bench.confidence import Estimate
from bench.experiments.table import ArmCells, added_by_the_system, of_measured
from bench.published import BIGTABLE, BIGTABLE_HEDGE_MS
from bench.rows import PERCENTILES, Cells
from bench.simulation import arms as simulated_arms
from bench.simulation.arms import Arm, medians
from bench.simulation.study import Plan
from root.hedging import Adaptive, Fixed, Off

EXTRA_LOAD: Final = 0.015
SEEDS: Final = 3
ROW: Final = "100_percent"

SIMULATED: Final = {
    "off": Arm(Off()),
    "fixed": Arm(Fixed(BIGTABLE_HEDGE_MS / 1000.0)),
    "adaptive": Arm(Adaptive(), EXTRA_LOAD),
}
LIVE: Final = {
    "off": ("--hedge", "off"),
    "fixed": (
        *("--hedge", "fixed", "--hedge-delay-ms", f"{BIGTABLE_HEDGE_MS:g}"),
        *("--max-extra-load", "1"),
    ),
    "adaptive": ("--hedge", "adaptive", "--max-extra-load", str(EXTRA_LOAD)),
}

REDUCTION_MIN: Final = 24.0
EXTRA_LOAD_MAX: Final = 0.02
"""What the published experiment came to."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``reductions``: by how much each arm lowers the 99.9th percentile of ``off``."""

    how: str
    leaves: int
    seeds: int
    arms: dict[str, ArmCells]
    reductions: dict[str, float]
    added: dict[str, dict[str, float]] = {}


def simulate(plan: Plan, told: Callable[[float], None], seeds: int = SEEDS) -> Result:
    """All arms in virtual time."""
    runs = simulated_arms.every(plan, SIMULATED, seeds, told)
    arms = {}
    for name, ones in runs.items():
        cells = Cells.of(medians(ones))
        arms[name] = ArmCells(
            extra_load=round(sum(one.extra_load for one in ones) / len(ones), 6),
            queries=sum(len(one.rows.times_ms[ROW]) for one in ones),
            incomplete=sum(one.incomplete for one in ones),
            rows=cells.rows,
            intervals=cells.intervals,
            curve=ones[0].rows.curve(ROW),
        )
    return _result("simulated", plan.leaves, seeds, arms)


def run(plan: live_arms.Plan, told: Callable[[float], None]) -> Result:
    """All arms on real processes."""
    measured = live_arms.run(plan, LIVE, told)
    arms = {name: of_measured(one) for name, one in measured.items()}
    found = _result("live", plan.shards, 1, arms)
    return msgspec.structs.replace(found, added=added_by_the_system(measured["off"]))


def _result(how: str, leaves: int, seeds: int, arms: dict[str, ArmCells]) -> Result:
    off = arms["off"].rows[ROW]["p99.9"]
    reductions = {name: round(off / arm.rows[ROW]["p99.9"], 1) for name, arm in arms.items()}
    return Result(how=how, leaves=leaves, seeds=seeds, arms=arms, reductions=reductions)


def conditions(result: Result) -> report.Conditions:
    """What was asked, what was injected, what was real."""
    virtual = result.how == "simulated"
    queries = ", ".join(f"{one.queries} {name}" for name, one in result.arms.items())
    return report.Conditions(
        load=f"reads of 1,000 keys on {result.leaves} servers, a leg a server; {queries}",
        injected=f"profile bigtable{': all times, in virtual time' if virtual else ', in transit'}",
        real="the root's decisions and its driver"
        if virtual
        else "root and leaf processes, channels, sockets, timers; a server is a shard here",
    )


def comparisons(result: Result) -> list[Comparison]:
    """Percentiles of every arm; the published one is the last."""
    return [
        Comparison.of(
            name,
            BIGTABLE.figure(arm, name),
            Estimate(cells.rows[ROW][name], *cells.intervals[ROW][name]),
            arm=arm,
        )
        for name in PERCENTILES
        for arm, cells in result.arms.items()
    ]


def show(result: Result, console: Console) -> None:
    """Print the percentiles, and what the reduction cost."""
    title = f"until all keys are read, {result.how}"
    show_comparison(
        title, comparisons(result), console, source=f"{BIGTABLE.source}; {BIGTABLE.note}"
    )
    rows: list[list[object]] = [
        [name, f"{result.reductions[name]:.1f}x", f"{arm.extra_load:.2%}", arm.incomplete]
        for name, arm in result.arms.items()
    ]
    columns = ["", "p99.9 lower by", "more requests", "incomplete"]
    report.show_table("what it costs", columns, rows, console)
    for sentence in verdict(result):
        console.print(sentence, highlight=False, soft_wrap=True)
    runs = {name: arm.run for name, arm in result.arms.items() if arm.run is not None}
    if runs:
        report.show_validity(runs, console)


def verdict(result: Result) -> list[str]:
    """Whether the published gain was reached, and what the learned policy makes of it."""
    fixed, adaptive = result.arms["fixed"], result.arms["adaptive"]
    reached = result.reductions["fixed"] >= REDUCTION_MIN and fixed.extra_load <= EXTRA_LOAD_MAX
    published = f"published: {REDUCTION_MIN:g}x for {EXTRA_LOAD_MAX:.0%}"
    sentences = [
        f"{name}: {result.reductions[name]:g}x lower for {arm.extra_load:.2%}{said}"
        for name, arm, said in (
            ("fixed", fixed, f", {'as' if reached else 'NOT as'} {published}"),
            ("adaptive", adaptive, ""),
        )
    ]
    if fixed.intervals[ROW]["p99.9"][1] is None:
        sentences.append(
            f"{fixed.queries} queries are too few for a 99.9th percentile: it may be higher"
        )
    return sentences


def draw(result: Result, path: Path, caption: str) -> None:
    """Distributions, and the 99.9th percentile beside the published one."""
    with plots.page(path, f"1,000 keys on 100 servers ({result.how})", caption, (1, 2)) as axes:
        curves = {name: arm.curve for name, arm in result.arms.items()}
        plots.tail(axes[0], curves, "until all keys are read")
        last = [one for one in comparisons(result) if one.name == "p99.9"]
        bars = [
            msgspec.structs.replace(one, name=f"{one.arm}\n{one.name}", arm="measured")
            for one in last
        ]
        plots.bars(axes[1], bars, "the slowest query in a thousand")

"""The table of The Tail at Scale out of a running system, and what hedging makes of it.

Arms: ``off`` is the reproduction, ``adaptive`` and ``tied`` are the point, at 5 % extra load.
``clairvoyant`` is what nobody can beat: it knows what every attempt will take. It is simulated
only. See ``bench.live_arms`` for how real processes are measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench import live_arms, plots, report
from bench.comparison import Comparison, show_comparison
from bench.confidence import Curve, Estimate, estimate
from bench.published import LEAVES_IN_A_FAN_OUT
from bench.recorder import Summary
from bench.rows import PERCENTILES, ROWS, Cells
from bench.simulation import arms as simulated_arms
from bench.simulation.arms import CLAIRVOYANT, Arm, medians
from bench.simulation.study import Plan
from root.hedging import Adaptive, Off, Tied

EXTRA_LOAD: Final = 0.05
SEEDS: Final = 3
SHOWN: Final = ("p50", "p95", "p99")

SIMULATED: Final = {
    "off": Arm(Off()),
    "adaptive": Arm(Adaptive(), EXTRA_LOAD),
    "tied": Arm(Tied(), EXTRA_LOAD),
    CLAIRVOYANT: Arm(None, EXTRA_LOAD),
}
LIVE_SHARE: Final = 0.045
"""The rest of the 5 % is what roots have saved up when they start: of a run of minutes it is half
a per cent."""

LIVE: Final = {
    name: ("--hedge", name, "--max-extra-load", str(LIVE_SHARE), "--budget-floor", "0")
    for name in ("off", "adaptive", "tied")
}

NEAR_SIMULATED: Final = {"p50": 0.10, "p95": 0.10, "p99": 0.10}
NEAR_LIVE: Final = {"p50": 0.15, "p95": 0.15, "p99": 0.25}
"""By how large a share a cell may be off the published figure and still count as reproduced."""

OF_OFF_MAX: Final = {"p50": 0.60, "p95": 0.62, "p99": 0.75}
"""What ``adaptive`` leaves of the last row of ``off`` at most."""


class ArmCells(msgspec.Struct, frozen=True, kw_only=True):
    """One arm. ``injected`` are the rows of what was injected alone, where that is known."""

    extra_load: float
    queries: int
    incomplete: int
    rows: dict[str, dict[str, float]]
    intervals: dict[str, dict[str, tuple[float, float | None]]]
    injected: dict[str, dict[str, float]] | None = None
    run: Summary | None = None
    curve: Curve = ()
    """The distribution of the row of all leaves."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """``how``: live, simulated, or real for live without injected trouble. ``added``: what the
    live system adds to a leg, in ms, alone and in a fan-out.
    """

    how: str
    leaves: int
    replicas: int
    seeds: int
    arms: dict[str, ArmCells]
    added: dict[str, dict[str, float]] = {}
    mistaken: int = 0
    waterfall: live_arms.Waterfall | None = None

    @property
    def compares(self) -> bool:
        """Whether the published environment was there to be compared with."""
        return self.how != "real"


def simulate(plan: Plan, told: Callable[[float], None], seeds: int = SEEDS) -> Result:
    """All arms in virtual time."""
    runs = simulated_arms.every(plan, SIMULATED, seeds, told)
    found = {}
    for name, ones in runs.items():
        cells = Cells.of(medians(ones))
        found[name] = ArmCells(
            extra_load=round(sum(one.extra_load for one in ones) / len(ones), 6),
            queries=sum(len(one.rows.times_ms["100_percent"]) for one in ones),
            incomplete=sum(one.incomplete for one in ones),
            rows=cells.rows,
            intervals=cells.intervals,
            curve=ones[0].rows.curve("100_percent"),
        )
    return Result(
        how="simulated", leaves=plan.leaves, replicas=plan.replicas, seeds=seeds, arms=found
    )


def run(plan: live_arms.Plan, told: Callable[[float], None]) -> Result:
    """The arms that there are on real processes."""
    measured = live_arms.run(plan, LIVE, told)
    return Result(
        how="live" if plan.profile else "real",
        leaves=plan.shards,
        replicas=2,
        seeds=1,
        arms={name: of_measured(one) for name, one in measured.items()},
        added=added_by_the_system(measured["off"]),
        mistaken=measured["off"].mistaken,
        waterfall=live_arms.slow_query(measured, ("off", "adaptive")),
    )


def of_measured(measured: live_arms.Measured) -> ArmCells:
    """An arm of real processes, in figures."""
    cells = Cells.of(measured.rows.estimates())
    injected = Cells.of(measured.injected.estimates()).rows
    return ArmCells(
        extra_load=round(measured.extra_load, 6),
        queries=len(measured.rows.times_ms["100_percent"]),
        incomplete=measured.incomplete,
        rows=cells.rows,
        intervals=cells.intervals,
        injected=injected or None,
        run=measured.recorder.summary(),
        curve=measured.rows.curve("100_percent"),
    )


def added_by_the_system(off: live_arms.Measured) -> dict[str, dict[str, float]]:
    """What a leg took beyond what was injected into it: ms, without hedging."""
    return {
        name: {which: round(estimate(values, at).value, 3) for which, at in PERCENTILES.items()}
        for name, values in (("alone", off.added_alone_ms), ("in_fan_out", off.added_ms))
        if values
    }


# --- in words -----------------------------------------------------------------------------


def comparisons(result: Result, arm: str) -> list[Comparison]:
    """Every cell of an arm, beside the published one where there is one."""
    cells = result.arms[arm]
    return [
        Comparison.of(
            f"{ROWS[row]}, {name}",
            LEAVES_IN_A_FAN_OUT.figure(row, name) if result.compares else None,
            Estimate(cells.rows[row][name], *cells.intervals[row][name]),
            arm=arm,
        )
        for row in ROWS
        if row in cells.rows
        for name in SHOWN
    ]


def conditions(result: Result) -> report.Conditions:
    """What was asked, what was injected, what was real."""
    queries = ", ".join(f"{one.queries} {name}" for name, one in result.arms.items())
    if result.how == "simulated":
        return report.Conditions(
            load=f"fan-outs to {result.leaves} leaves x {result.replicas} at 100/s, each with a "
            f"request to one leaf; {queries}; {result.seeds} seeds, of which the median",
            injected="profile tail-at-scale: all times, in virtual time",
            real="the root's decisions and its driver; clairvoyant is a bound, not a policy",
        )
    return report.Conditions(
        load=f"fan-outs to {result.leaves} shards x {result.replicas}, each with a fetch of one "
        f"document from one leaf; a root an arm, in turn over the same leaves; {queries}",
        injected="profile tail-at-scale, in transit" if result.compares else "nothing",
        real="root and leaf processes, channels, sockets, timers; searching is left out (canned "
        "answers), and a leaf of the table is a shard on one of a few leaf processes",
    )


def show(result: Result, console: Console) -> None:
    """Print a table an arm, what hedging leaves of ``off``, and what the live system adds."""
    for name, arm in result.arms.items():
        title = f"{name}, {result.how}: {arm.extra_load:.2%} extra load, {arm.queries} queries"
        source = f"{LEAVES_IN_A_FAN_OUT.source}; {LEAVES_IN_A_FAN_OUT.note}"
        show_comparison(title, comparisons(result, name), console, source=source)
        if arm.incomplete:
            console.print(f"{arm.incomplete} queries were incomplete")
    _show_of_off(result, console)
    if result.added:
        _show_added(result, console)
    if result.compares:
        for sentence in verdict(result):
            console.print(sentence, highlight=False, soft_wrap=True)
    runs = {name: arm.run for name, arm in result.arms.items() if arm.run is not None}
    if runs:
        report.show_validity(runs, console)


def _show_of_off(result: Result, console: Console) -> None:
    off = result.arms["off"].rows
    lines: list[list[object]] = [
        [
            ROWS[row],
            name,
            *(f"{arm.rows[row][which] / off[row][which]:.2f}" for which in SHOWN),
            f"{arm.extra_load:.2%}",
        ]
        for row in ("95_percent", "100_percent")
        for name, arm in result.arms.items()
    ]
    columns = ["as a share of off", "arm", *SHOWN, "extra load"]
    report.show_table("what hedging leaves", columns, lines, console)


def _show_added(result: Result, console: Console) -> None:
    columns = ["ms", *PERCENTILES]
    rows: list[list[object]] = [
        [f"a leg {name.replace('_', ' ')}", *cells.values()] for name, cells in result.added.items()
    ]
    title = "what the live system adds to what is injected (arm off)"
    report.show_table(title, columns, rows, console)
    injected = result.arms["off"].injected or {}
    lines: list[list[object]] = [
        [
            f"{ROWS[row]}, {name}",
            LEAVES_IN_A_FAN_OUT.figure(row, name) or "",
            injected[row][name],
            result.arms["off"].rows[row][name],
        ]
        for row in ROWS
        for name in SHOWN
    ]
    columns = ["ms", "published", "injected", "measured"]
    report.show_table("of the same legs, what was injected alone", columns, lines, console)


def off_by(rows: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """By how large a share each published cell is missed."""
    return {
        f"{row} {name}": rows[row][name] / figure - 1.0
        for row, figures in LEAVES_IN_A_FAN_OUT.rows.items()
        for name, figure in figures.items()
    }


def missed(rows: Mapping[str, Mapping[str, float]], near: Mapping[str, float]) -> list[str]:
    """The published cells that are off by more than is allowed, in words."""
    return [
        f"{name} by {share:+.0%}"
        for name, share in off_by(rows).items()
        if abs(share) > near[name.rpartition(" ")[2]]
    ]


def verdict(result: Result) -> list[str]:
    """Whether the table was reproduced, and what hedging is worth, in sentences."""
    off, adaptive = result.arms["off"], result.arms["adaptive"]
    near = NEAR_SIMULATED if result.how == "simulated" else NEAR_LIVE
    bars = "/".join(f"{share:.0%}" for share in near.values())
    sentences = [_reproduced(f"measured, within {bars}", missed(off.rows, near))]
    if off.injected:
        sentences.append(_reproduced(f"injected alone, within {bars}", missed(off.injected, near)))
    left = [adaptive.rows["100_percent"][n] / off.rows["100_percent"][n] for n in SHOWN]
    sentences.append(
        f"adaptive leaves {'/'.join(f'{share:.2f}' for share in left)} of the row of all leaves "
        f"at {adaptive.extra_load:.2%} extra load (to be at most "
        f"{'/'.join(f'{share:.2f}' for share in OF_OFF_MAX.values())})"
    )
    return sentences


def _reproduced(what: str, missing: list[str]) -> str:
    cells = sum(len(row) for row in LEAVES_IN_A_FAN_OUT.rows.values())
    said = f": off are {', '.join(missing)}" if missing else ""
    return f"off, {what}: {cells - len(missing)} of {cells} cells{said}"


# --- pictures -----------------------------------------------------------------------------


def draw(result: Result, path: Path, caption: str) -> None:
    """Distributions, bars beside the published ones, and one slow query in two arms."""
    waterfall = result.waterfall
    panels = (2, 2) if waterfall is not None else (1, 2)
    title = f"How long until all of {result.leaves} leaves have answered ({result.how})"
    with plots.page(path, title, caption, panels) as axes:
        curves = {name: arm.curve for name, arm in result.arms.items()}
        plots.tail(axes[0], curves, "until all leaves have finished")
        bars = [
            one_named(one)
            for arm in ("off", "adaptive")
            for one in comparisons(result, arm)
            if one.name.startswith(("one leaf", "95 %", "100 %"))
        ]
        plots.bars(axes[1], bars, "the table, beside the published one")
        if waterfall is not None:
            for axis, (arm, phase) in zip(axes[2:], waterfall.phases.items(), strict=True):
                spans = plots.spans(phase)
                plots.waterfall(axis, spans, f"query {waterfall.number}, {arm}")
            end_ms = max(axis.get_xlim()[1] for axis in axes[2:])
            for axis in axes[2:]:
                axis.set_xlim(0.0, end_ms)


def one_named(one: Comparison) -> Comparison:
    """The same with a name short enough to stand under a bar."""
    row, _, name = one.name.rpartition(", ")
    short = {"one leaf finishes": "one leaf", "95 % of leaves finish": "95 %"}
    return msgspec.structs.replace(one, name=f"{short.get(row, '100 %')}\n{name}")

"""The share of slow requests against the number of leaves, measured beside the arithmetic.

Where one leg in a hundred is slow and legs know nothing of each other, a query that waits for
n of them is slow with probability 1 - (1 - p)^n. Here that is not computed but measured, without
hedging and with `adaptive`: up to LIVE_LEAVES on real processes, through real roots, and past
that in virtual time with the root's own driver.

A leg takes about 2 ms, and with probability p at least 100 ms more; a query is slow past 50. A
leaf is a shard where it is real (``bench.live_arms``): what a machine adds to a leg comes on top.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench import confidence, live_arms, plots, report
from bench.comparison import Comparison, show_comparison
from bench.experiments import table
from bench.progress import progress
from bench.published import FAN_OUT
from bench.simulation.profiles import Draws, Profile
from bench.simulation.roots import limited
from bench.simulation.study import UNLIMITED, Plan, simulate
from root.hedging import Adaptive, Off

LEAVES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

LIVE_LEAVES: Final = 200
"""So many are measured on real processes: a fan-out as wide takes two small processors a third
of the 50 ms that are slow."""

ARMS: Final = ("off", "adaptive")

LIVE_LEGS_PER_S: Final = 2400.0
"""Of all arms together: what leaves two small processors half idle."""

LIVE_QUERIES_PER_S: Final = 100.0

PROCESSES: Final = 4

SHARES: Final = (0.01, 0.0001)
"""Of legs that are slow, as published."""

SLOW_S: Final = 0.05
STALL_MS: Final = 100.0

LEGS: Final = 80_000
QUERIES_MIN: Final = 200
QUERIES_MAX: Final = 4_000
"""Of each point: so many legs, within these bounds."""

MAX_EXTRA_LOAD: Final = 0.05


TROUBLE: Final = """about = "A leg takes 2 ms, or a tenth of a second more"
[[rules]]
name = "base"
kind = "transit"
takes = {{ law = "log-normal", median_ms = 2.0, sigma = 0.2 }}

[[rules]]
name = "stall"
kind = "transit"
probability = {probability}
takes = {{ law = "pareto", least_ms = {least_ms}, alpha = 3.0 }}
where = {{ kinds = ["search"] }}
"""
"""The plan of the leaves; the simulated ones have the same."""


class Point(msgspec.Struct, frozen=True):
    """Queries over so many leaves. ``expected``: by arithmetic, without hedging. ``lag_ms_p99``:
    how late the generator was, where there is one.
    """

    leaves: int
    leg_slow: float
    queries: int
    expected: float
    slow: float
    low: float
    high: float | None
    hedged_slow: float
    extra_load: float
    live: bool = False
    lag_ms_p99: float = 0.0
    valid: bool = True


class Result(msgspec.Struct, frozen=True):
    """Points by share of slow legs, then by number of leaves."""

    points: list[Point]


def run(
    seed: int,
    leaves: Sequence[int] = LEAVES,
    legs: int = LEGS,
    *,
    live_leaves: int = LIVE_LEAVES,
    seconds: float,
) -> Result:
    """Measure every point, one after the other: those of up to ``live_leaves`` for so many seconds
    each, the others in virtual time.
    """
    with progress("fan-out", len(leaves) * len(SHARES)) as advance:
        points = []
        for leg_slow in SHARES:
            for count in leaves:
                if count <= live_leaves:
                    points.append(_live(count, leg_slow, seconds, seed))
                else:
                    queries = min(QUERIES_MAX, max(QUERIES_MIN, legs // count))
                    points.append(_simulated(count, leg_slow, min(queries, legs), seed))
                advance(1)
    return Result(points)


def _live(leaves: int, leg_slow: float, seconds: float, seed: int) -> Point:
    rate_per_s = min(LIVE_QUERIES_PER_S, LIVE_LEGS_PER_S / leaves)
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(TROUBLE.format(probability=leg_slow, least_ms=STALL_MS))
        file.flush()
        plan = live_arms.Plan(file.name, leaves, PROCESSES, rate_per_s, seconds, seed)
        measured = live_arms.run(plan, {name: table.LIVE[name] for name in ARMS}, lambda _: None)
    plain, hedged = (measured[name].rows.times_ms["100_percent"] for name in ARMS)
    share = confidence.share(_slow(plain), len(plain))
    summaries = [one.recorder.summary() for one in measured.values()]
    return Point(
        leaves,
        leg_slow,
        len(plain),
        1.0 - (1.0 - leg_slow) ** leaves,
        share.value,
        share.low,
        share.high,
        _slow(hedged) / len(hedged),
        measured["adaptive"].extra_load,
        live=True,
        lag_ms_p99=max(one.lag_ms_p99 for one in summaries),
        valid=all(one.valid for one in summaries),
    )


def _slow(times_ms: Sequence[float]) -> int:
    return sum(took_ms > SLOW_S * 1e3 for took_ms in times_ms)


def _simulated(leaves: int, leg_slow: float, queries: int, seed: int) -> Point:
    profile = Profile(2.0, 0.2, 0.0, 0.0, 0.0, 1.0, 1.0, leg_slow, STALL_MS, 3.0)
    plan = Plan("one leg in many slow", leaves, 2, queries, seed)
    draws = Draws(profile, leaves, seed)
    plain = simulate(plan, draws, Off(), UNLIMITED)
    hedged = simulate(plan, draws, Adaptive(), limited(MAX_EXTRA_LOAD, leaves))
    share = confidence.share(sum(s > SLOW_S for s in plain.all_s), queries)
    return Point(
        leaves,
        leg_slow,
        queries,
        1.0 - (1.0 - leg_slow) ** leaves,
        share.value,
        share.low,
        share.high,
        sum(s > SLOW_S for s in hedged.all_s) / queries,
        hedged.extra / hedged.legs,
    )


def show(result: Result, console: Console) -> None:
    """Print a line a point, and the published ones."""
    rows = [
        [
            f"{point.leaves}, {point.leg_slow:.2%}{', live' if point.live else ''}",
            f"{point.expected:.2%}",
            f"{point.slow:.2%}",
            f"{point.low:.2%} to {point.high:.2%}",
            f"{point.hedged_slow:.2%}",
            f"{point.extra_load:.2%}",
            point.queries,
        ]
        for point in result.points
    ]
    columns = [
        "leaves, slow legs",
        "1 - (1 - p)^n",
        "slow",
        "95 % interval",
        "adaptive",
        "extra load",
        "queries",
    ]
    report.show_table("queries slowed down by one leg or more", columns, rows, console)
    live = [point for point in result.points if point.live]
    if live:
        latest_ms = max(point.lag_ms_p99 for point in live)
        late = [f"{point.leaves} leaves" for point in live if not point.valid]
        report.show_lateness(latest_ms, late, console)
    compared = [
        Comparison(
            f"{point.leaves} leaves", row["slow"], point.slow, point.low, point.high, unit=""
        )
        for point in result.points
        if (row := FAN_OUT.rows.get(str(point.leaves))) and row["leg_slow"] == point.leg_slow
    ]
    show_comparison("share of slow queries", compared, console, source=FAN_OUT.source)


def draw(result: Result, path: Path, caption: str) -> None:
    """A panel for each share of slow legs."""
    with plots.page(path, "One slow leg makes a slow query", caption, (1, 2)) as panels:
        for axes, leg_slow in zip(panels, SHARES, strict=True):
            of = [point for point in result.points if point.leg_slow == leg_slow]
            row = [
                (float(n), one["slow"])
                for n, one in FAN_OUT.rows.items()
                if one["leg_slow"] == leg_slow
            ]
            plots.lines(
                axes,
                {
                    "1 - (1 - p)^n": [(point.leaves, point.expected) for point in of],
                    "off": [(point.leaves, point.slow) for point in of],
                    "adaptive": [(point.leaves, point.hedged_slow) for point in of],
                    "published": row,
                },
                f"{leg_slow:.2%} of legs are slow",
                "leaves",
                "share of slow queries",
                log="x",
            )

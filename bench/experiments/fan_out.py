"""The share of slow requests against the number of leaves, measured beside the arithmetic.

Where one leg in a hundred is slow and legs know nothing of each other, a query that waits for
n of them is slow with probability 1 - (1 - p)^n. Here that is not computed but measured, in
virtual time, with the root's own driver: without hedging, and with `adaptive`.

A leg takes about 2 ms, and with probability p at least 100 ms more; a query is slow past 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench import confidence, plots, report
from bench.comparison import Comparison, show_comparison
from bench.progress import progress
from bench.published import FAN_OUT
from bench.simulation.profiles import Draws, Profile
from bench.simulation.roots import limited
from bench.simulation.study import UNLIMITED, Plan, simulate
from root.hedging import Adaptive, Off

LEAVES: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)

SHARES: Final = (0.01, 0.0001)
"""Of legs that are slow, as published."""

SLOW_S: Final = 0.05
STALL_MS: Final = 100.0

LEGS: Final = 80_000
QUERIES_MIN: Final = 200
QUERIES_MAX: Final = 4_000
"""Of each point: so many legs, within these bounds."""

MAX_EXTRA_LOAD: Final = 0.05


class Point(msgspec.Struct, frozen=True):
    """Queries over so many leaves. ``expected``: by arithmetic, without hedging."""

    leaves: int
    leg_slow: float
    queries: int
    expected: float
    slow: float
    low: float
    high: float | None
    hedged_slow: float
    extra_load: float


class Result(msgspec.Struct, frozen=True):
    """Points by share of slow legs, then by number of leaves."""

    points: list[Point]


def run(seed: int, leaves: Sequence[int] = LEAVES, legs: int = LEGS) -> Result:
    """Measure every point, one after the other."""
    with progress("fan-out", len(leaves) * len(SHARES)) as advance:
        points = []
        for leg_slow in SHARES:
            for count in leaves:
                queries = min(QUERIES_MAX, max(QUERIES_MIN, legs // count))
                points.append(_measured(count, leg_slow, min(queries, legs), seed))
                advance(1)
    return Result(points)


def _measured(leaves: int, leg_slow: float, queries: int, seed: int) -> Point:
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
            f"{point.leaves} leaves, {point.leg_slow:.2%} of legs",
            f"{point.expected:.2%}",
            f"{point.slow:.2%}",
            f"{point.low:.2%} to {point.high:.2%}",
            f"{point.hedged_slow:.2%}",
            f"{point.extra_load:.2%}",
            point.queries,
        ]
        for point in result.points
    ]
    columns = ["", "1 - (1 - p)^n", "slow", "95 % interval", "adaptive", "extra load", "queries"]
    report.show_table("queries slowed down by one leg or more", columns, rows, console)
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

"""What ``shadow`` says hedging would do, beside what hedging then does.

The same queries over the same simulated leaves, once unhedged with every query rehearsed
(``root.rehearsal``), once hedged by each budget that the rehearsal has tried. The leaves answer
alike in all runs, so what differs is the forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import msgspec
from rich.console import Console

from bench import report
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.scripted_fleet import card
from bench.simulation.study import UNLIMITED, Arm, Plan, arm, simulate
from root.gather import Gather
from root.hedging import Adaptive, Shadow
from root.pursuit import Phase, Pursuit
from root.rehearsal import Rehearsal
from root.requests import SearchRequest
from root.topology import View

EVERY_LEG: Final = 1e12
"""Legs to rehearse a second: here it need not be cheap."""

OPERATOR: Final = 0.05
"""The budget that the root has; the rehearsal tries others besides."""


class Result(msgspec.Struct, frozen=True):
    """``forecast`` is the report of the rehearsal, ``arms`` what hedging did, by budget."""

    profile: str
    leaves: int
    queries: int
    forecast: Mapping[str, Any]
    arms: dict[str, Arm]


def run(plan: Plan) -> Result:
    """Rehearse, then hedge."""
    draws = Draws(PROFILES[plan.profile], plan.leaves, plan.seed)
    rehearsal = Rehearsal(
        limited(OPERATOR, plan.leaves), Random(f"{plan.seed}:copies"), 0.0, EVERY_LEG
    )
    generation = card(plan.leaves)

    def watch(gather: Gather, began_s: float) -> None:
        assert gather.outcome is not None  # noqa: S101 (it has been decided)
        replicas = tuple((attempt.leaf,) * plan.replicas for attempt in gather.attempts)
        pursuit = Pursuit(
            View(generation, replicas), began_s, gather.deadline_s, SearchRequest(q="simulated")
        )
        pursuit.note(
            Phase("search", "search", gather.outcome, gather.attempts, began_s, gather.tally)
        )
        rehearsal.observe(pursuit)

    arms = {"off": arm(simulate(plan, draws, Shadow(), UNLIMITED, watch))}
    for tried in rehearsal.arms:
        budget = limited(tried.max_extra_load, plan.leaves)
        arms[tried.name] = arm(simulate(plan, draws, Adaptive(), budget))
    return Result(plan.profile, plan.leaves, plan.queries, rehearsal.report(), arms)


def show(result: Result, console: Console) -> None:
    """Print forecast and truth side by side, and what the forecast recommends."""
    columns = ["", "extra load", "then", *("p50, ms", "then", "p95", "then", "p99", "then")]
    rows: list[list[object]] = []
    for name, one in result.arms.items():
        said = result.forecast["arms"].get(name, {"extra_load": 0.0, **result.forecast["off"]})
        did = {"p50": one.all_leaves.p50, "p95": one.all_leaves.p95, "p99": one.all_leaves.p99}
        row: list[object] = [name, f"{said['extra_load']:.2%}", f"{one.extra_load:.2%}"]
        for percentile, did_ms in did.items():
            row += [f"{said[percentile]:.1f}", f"{did_ms:.1f}"]
        rows.append(row)
    what = f"{result.profile}: {result.leaves} leaves, {result.queries} queries"
    report.show_table(f"forecast and truth on {what}", columns, rows, console)
    advice = result.forecast["recommendation"]
    console.print(f"recommended: {advice['hedge']}, {advice['why']}", highlight=False)

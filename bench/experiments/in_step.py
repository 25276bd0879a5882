"""Background work of all leaves at random moments, and the same amount at the same moments.

Equal queries meet equal leaves; what differs is when these do something else. Unhedged, and
hedged within a budget: a hedge helps where the other replica does not pause too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import msgspec
from rich.console import Console

from bench import report
from bench.simulation.background import Background
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.study import Arm, Plan, arm, simulate
from root.hedging import Adaptive, Off, Policy

MAX_EXTRA_LOAD: Final = 0.05

MOMENTS: Final = ("none", "at random", "in step")


class Result(msgspec.Struct, frozen=True):
    """``arms`` by policy and by when leaves do their background work."""

    profile: str
    leaves: int
    replicas: int
    queries: int
    period_ms: float
    lasts_ms: float
    arms: dict[str, dict[str, Arm]]


def run(plan: Plan, period_ms: float, lasts_ms: float) -> Result:
    """Simulate every arm. Raises ValueError for a time out of range."""
    random, in_step = (
        Background(period_ms / 1000.0, lasts_ms / 1000.0, in_step) for in_step in (False, True)
    )
    policies: tuple[Policy, ...] = (Off(), Adaptive())
    arms = {
        policy.name: {
            name: _arm(plan, policy, background)
            for name, background in zip(MOMENTS, (None, random, in_step), strict=True)
        }
        for policy in policies
    }
    return Result(plan.profile, plan.leaves, plan.replicas, plan.queries, period_ms, lasts_ms, arms)


def _arm(plan: Plan, policy: Policy, background: Background | None) -> Arm:
    profile = replace(PROFILES[plan.profile], background=background)
    draws = Draws(profile, plan.leaves, plan.seed)
    return arm(simulate(plan, draws, policy, limited(MAX_EXTRA_LOAD, plan.leaves)))


def show(result: Result, console: Console) -> None:
    """Print the three rows of every arm, in milliseconds."""
    rows: list[list[object]] = []
    for policy, arms in result.arms.items():
        for moments, one in arms.items():
            named = (("1 leaf", one.one_leaf), ("95 %", one.most_leaves), ("100 %", one.all_leaves))
            rows += [
                [f"{policy}, {moments}", share, *(f"{ms:.1f}" for ms in (r.p50, r.p95, r.p99))]
                for share, r in named
                if r is not None
            ]
    title = (
        f"{result.lasts_ms:g} ms of background work every {result.period_ms:g} ms on "
        f"{result.profile}, ms: {result.leaves} leaves x {result.replicas}, "
        f"{result.queries} queries"
    )
    report.show_table(title, ["", "finish", "p50", "p95", "p99"], rows, console)

"""One policy on simulated leaves: the rows of the table of The Tail at Scale, and their cost."""

from __future__ import annotations

import msgspec
from rich.console import Console

from bench import report
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.study import Arm, Plan, arm, limited, simulate
from root.hedging import Policy


class Result(msgspec.Struct, frozen=True):
    """One run."""

    profile: str
    leaves: int
    replicas: int
    queries: int
    policy: str
    max_extra_load: float
    arm: Arm


def run(plan: Plan, policy: Policy, max_extra_load: float) -> Result:
    """Simulate the plan's queries within the budget."""
    draws = Draws(PROFILES[plan.profile], plan.leaves, plan.seed)
    times = simulate(plan, draws, policy, limited(max_extra_load, plan.leaves))
    return Result(
        plan.profile,
        plan.leaves,
        plan.replicas,
        plan.queries,
        policy.name,
        max_extra_load,
        arm(times),
    )


def show(result: Result, console: Console) -> None:
    """Print the rows, in milliseconds, and what they cost."""
    rows: list[list[object]] = [
        [name, *(f"{value:.1f}" for value in (row.p50, row.p95, row.p99, row.p99_9))]
        for name, row in (
            ("one leaf finishes", result.arm.one_leaf),
            ("95 % of leaves finish", result.arm.most_leaves),
            ("100 % of leaves finish", result.arm.all_leaves),
        )
        if row is not None
    ]
    title = (
        f"{result.policy} on {result.profile}, ms: {result.leaves} leaves x {result.replicas}, "
        f"{result.queries} queries"
    )
    report.show_table(title, ["", "p50", "p95", "p99", "p99.9"], rows, console)
    console.print(
        f"extra load {result.arm.extra_load:.2%} of at most {result.max_extra_load:.2%}; "
        f"{result.arm.hedge_wins:.0%} of the extra attempts won",
        highlight=False,
    )

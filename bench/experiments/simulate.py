"""One policy on simulated leaves: the rows of the table of The Tail at Scale, and their cost."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec
from rich.console import Console

from bench import report
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.study import Arm, Plan, arm, simulate
from root.hedging import Policy


class Result(msgspec.Struct, frozen=True):
    """One run."""

    profile: str
    leaves: int
    replicas: int
    queries: int
    tree: int
    """Mid-level roots; 0 for one root over all leaves."""
    policy: str
    max_extra_load: float
    arm: Arm


def run(plan: Plan, policy: Policy, max_extra_load: float) -> tuple[Result, str]:
    """Simulate the plan's queries within the budget; say also how fast that went."""
    draws = Draws(PROFILES[plan.profile], plan.leaves, plan.seed)
    began_s = time.process_time()
    times = simulate(plan, draws, policy, limited(max_extra_load, plan.fan_out))
    took_s = time.process_time() - began_s
    result = Result(
        plan.profile,
        plan.leaves,
        plan.replicas,
        plan.queries,
        plan.tree,
        policy.name,
        max_extra_load,
        arm(times),
    )
    speed = (
        f"{times.sent / took_s:,.0f} legs a second of one core: {times.sent:,} in {took_s:.1f} s"
    )
    return result, speed


def show(result: Result, console: Console) -> None:
    """Print the rows, in milliseconds, and what they cost."""
    asked = "mid-level roots" if result.tree else "leaves"
    rows: list[list[object]] = [
        [name, *(f"{value:.1f}" for value in (row.p50, row.p95, row.p99, row.p99_9))]
        for name, row in (
            ("one leaf finishes", result.arm.one_leaf),
            (f"95 % of {asked} finish", result.arm.most_leaves),
            (f"100 % of {asked} finish", result.arm.all_leaves),
        )
        if row is not None
    ]
    over = f"{result.tree} x {result.replicas} mid-level roots over " if result.tree else ""
    title = (
        f"{result.policy} on {result.profile}, ms: {over}{result.leaves} leaves x "
        f"{result.replicas}, {result.queries} queries"
    )
    report.show_table(title, ["", "p50", "p95", "p99", "p99.9"], rows, console)
    for sentence in _account(result):
        console.print(sentence, highlight=False, soft_wrap=True)


def _account(result: Result) -> Iterator[str]:
    """What the run cost and what it met, in sentences."""
    one = result.arm
    yield (
        f"extra load {one.extra_load:.2%} of at most {result.max_extra_load:.2%}; "
        f"{one.hedge_wins:.0%} of the extra attempts won"
    )
    if one.mid_extra_load is not None and one.leaf_extra_load is not None:
        yield (
            f"mid-level roots sent {one.mid_extra_load:.2%} more; "
            f"leaves got {one.leaf_extra_load:.2%} more in all"
        )
    if one.utilisation is not None:
        failed = ", ".join(f"{count} {reason}" for reason, count in one.failures.items())
        yield (
            f"{one.complete:.3%} of queries complete; workers busy {one.utilisation:.1%} "
            f"of the time; failed attempts: {failed or 'none'}"
        )

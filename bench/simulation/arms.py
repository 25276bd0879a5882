"""The arms of a comparison in virtual time, several at once on the processors there are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from statistics import median
from typing import Final, NamedTuple

from bench.confidence import Estimate
from bench.rows import Rows
from bench.simulation import bounds
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.study import UNLIMITED, Plan, simulate
from root.gather import Gather
from root.hedging import Policy

CLAIRVOYANT: Final = "clairvoyant"


class Arm(NamedTuple):
    """A policy and its budget; without a policy, the bound that nobody beats with that budget.
    Without a budget, it spends what it wants.
    """

    policy: Policy | None
    max_extra_load: float | None = None


class Simulated(NamedTuple):
    """What came of an arm under one seed."""

    rows: Rows
    extra_load: float
    incomplete: int


def one(plan: Plan, arm: Arm) -> Simulated:
    """Run one arm under one seed."""
    rows = Rows(plan.seed)
    draws = Draws(PROFILES[plan.profile], plan.leaves, plan.seed, keep=arm.policy is None)
    if arm.policy is None:
        share = arm.max_extra_load or 0.0
        times = bounds.clairvoyant(plan, draws, share, lambda s: rows.fan_out([t * 1e3 for t in s]))
        return Simulated(rows, times.extra / times.legs, 0)

    # Without queues every tied copy is dropped unstarted, and has cost nothing.
    dropped = 0

    def watch(whole: Gather, began_s: float) -> None:
        nonlocal dropped
        dropped += sum(a.kind == "tied" for a in whole.attempts)
        assert whole.outcome is not None  # noqa: S101 (it has been decided)
        waited_ms = (whole.outcome.decided_s - began_s) * 1e3
        won = [(a.ended_s - began_s) * 1e3 for a in whole.attempts if a.fate == "won"]
        rows.fan_out(won + [waited_ms] * (whole.legs - len(won)))

    budget = limited(arm.max_extra_load, plan.leaves) if arm.max_extra_load else UNLIMITED
    times = simulate(plan, draws, arm.policy, budget, watch)
    for took_s in times.one_leaf_s:
        rows.alone(took_s * 1e3)
    return Simulated(rows, (times.extra - dropped) / times.legs, times.incomplete)


def every(
    plan: Plan, arms: Mapping[str, Arm], seeds: int, told: Callable[[float], None]
) -> dict[str, list[Simulated]]:
    """Run all arms under so many seeds from the plan's on; ``told`` hears of each that is done."""
    plans = [replace(plan, seed=plan.seed + number) for number in range(seeds)]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        running = {name: [pool.submit(one, p, arm) for p in plans] for name, arm in arms.items()}
        for _ in as_completed([future for futures in running.values() for future in futures]):
            told(1)
        return {name: [future.result() for future in futures] for name, futures in running.items()}


def medians(runs: list[Simulated]) -> dict[str, dict[str, Estimate]]:
    """Each cell: the median over the seeds, with the interval of all queries together."""
    together = Rows(0)
    for run in runs:
        together.extend(run.rows)
    single = [run.rows.estimates() for run in runs]
    return {
        row: {
            name: Estimate(median(cells[row][name].value for cells in single), all_.low, all_.high)
            for name, all_ in cells_of_all.items()
        }
        for row, cells_of_all in together.estimates().items()
    }

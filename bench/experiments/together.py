"""Three copies at once, against none and against ``adaptive``.

The service sleeps for max(a, b) units, a and b uniform on {0, 1, 2, 3, 4}; a unit is a second as
published, and ``scale`` seconds here. Sleeping occupies nobody. Load rises from 5 to 50 requests
in a published second within 30 of them, and stays there for 30 more. Three replicas, one root an
arm; requests of the arms come at the same instants and meet the same sleeps.

What can be had for less: 36 of 100 requests sleep for 4 units, so the 95th percentile is below 4
only where all but five of them have been spared. A copy spares one at most. ``bound`` is what the
clairvoyant reaches who sends, for a share of the requests, the copy that helps most, at once: it
shows whether any policy could come there for that cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Final

import msgspec
from rich.console import Console

from bench import plots, report
from bench.confidence import Curve, estimate
from bench.direct import Arm, Crowd, at_once, linked, simulated
from bench.fleet import Shape, running
from bench.plans import as_file, scaled
from bench.published import TOGETHER
from bench.simulation.injected import draws_s
from bench.virtual_time import run as run_in_virtual_time
from bench.workload import Schedule
from leaf.interference import Plan as Trouble
from leaf.plans import profile
from root.budget import BudgetTerms
from root.discovery import Fleet
from root.hedging import Adaptive, Off, Together

PROFILE: Final = "uniform-sleep"
COPIES: Final = 3
FROM_PER_S, TO_PER_S, RAMP_S, STEADY_S = 5.0, 50.0, 30.0, 30.0
"""Requests in a published second, and how many of those."""

EXTRA_LOAD: Final = 0.15
"""What ``adaptive`` may cost, where three copies cost 2."""

PERCENTILES: Final = (50.0, 95.0, 99.0)
LEARNED: Final = 200
"""Requests that each root has seen before: twice what it needs for a history."""

UNLIMITED: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)
BUDGET: Final = BudgetTerms(EXTRA_LOAD, floor_per_s=0.0, burst=10.0)

LONGEST_SHOWN_S: Final = 5.0

ABOVE_P95: Final = 0.05
"""What may take longer than the 95th percentile."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``scale``: how many seconds a published one takes. ``runs`` of the whole ramp."""

    scale: float = 1.0
    runs: int = 10
    part: float = 1.0
    """How much of the ramp: 1 is all of it."""
    seed: int = 1


SIMULATED: Final = Plan()
LIVE: Final = Plan(scale=0.5, runs=1)


class Bound(msgspec.Struct, frozen=True):
    """Of 20,000 requests, in published seconds: what a clairvoyant makes of so much extra load,
    and the least that takes the 95th percentile a unit down.
    """

    extra_load: float
    mean_s: float
    p95_s: float
    extra_load_needed: float


class Result(msgspec.Struct, frozen=True):
    """Arms in published seconds beside ``Arm``'s own times. ``gains`` over off."""

    simulated: bool
    scale: float
    requests: int
    mean_s: dict[str, float]
    p95_s: dict[str, float]
    gains: dict[str, dict[str, float]]
    arms: dict[str, Arm]
    bound: Bound


def simulate(plan: Plan) -> Result:
    """Run it in virtual time."""
    return run_in_virtual_time(partial(_simulated, plan))


async def _simulated(plan: Plan) -> Result:
    trouble = trouble_of(plan)
    arms = [simulated(trouble, plan.seed, leaves=COPIES, roots=1) for _ in range(3)]
    return await _measured(arms, trouble, plan, simulated=True)


async def live(plan: Plan) -> Result:
    """Run it on real leaves, the arms at the same time: sleeping occupies nobody."""
    trouble = trouble_of(plan)
    with as_file(trouble) as file:
        options = ("--interference", file, "--seed", str(plan.seed))
        shape = Shape(canned=1, root=False, leaves=COPIES, replicas=COPIES, leaf_options=options)
        with running(shape) as processes:
            async with AsyncExitStack() as stack:
                links = [linked(processes.leaf_urls, 1) for _ in range(3)]
                arms = [await stack.enter_async_context(link) for link in links]
                return await _measured(arms, trouble, plan, simulated=False)


def trouble_of(plan: Plan) -> Trouble:
    """How the service sleeps."""
    return scaled(profile(PROFILE), plan.scale)


def arrivals(plan: Plan, random: Random) -> Schedule:
    """One ramp and what follows it: Poisson, by thinning the highest rate."""
    end_s, at_s = (RAMP_S + STEADY_S) * plan.part, 0.0
    send_at_s: list[float] = []
    while (at_s := at_s + random.expovariate(TO_PER_S)) < end_s:
        rate_per_s = FROM_PER_S + (TO_PER_S - FROM_PER_S) * min(at_s / RAMP_S, 1.0)
        if random.random() * TO_PER_S < rate_per_s:
            send_at_s.append(at_s * plan.scale)
    return Schedule(tuple(send_at_s))


async def _measured(
    arms: Sequence[Sequence[Fleet]], trouble: Trouble, plan: Plan, *, simulated: bool
) -> Result:
    learned_s = draws_s(trouble, plan.seed + 1, LEARNED)
    off, together, adaptive = arms
    crowds = {
        "off": Crowd(off, Off(), seed=plan.seed, learned_s=learned_s),
        "together": Crowd(
            together,
            Together(),
            seed=plan.seed,
            budget=UNLIMITED,
            attempts_max=COPIES,
            learned_s=learned_s,
        ),
        "adaptive": Crowd(adaptive, Adaptive(), seed=plan.seed, budget=BUDGET, learned_s=learned_s),
    }
    random = Random(f"{plan.seed}:arrivals")
    requests = 0
    for _ in range(plan.runs):
        schedule = arrivals(plan, random)
        await at_once(crowds, schedule, requests)
        requests += len(schedule.send_at_s)
    found = {name: Arm.of(crowd, PERCENTILES) for name, crowd in crowds.items()}
    return _result(found, requests, plan, simulated=simulated)


def _result(arms: dict[str, Arm], requests: int, plan: Plan, *, simulated: bool) -> Result:
    mean_s = {name: arm.mean_ms / 1e3 / plan.scale for name, arm in arms.items()}
    p95_s = {name: arm.figures_ms["p95"].value / 1e3 / plan.scale for name, arm in arms.items()}
    gains = {
        name: {"mean": 1.0 - mean_s[name] / mean_s["off"], "p95": 1.0 - p95_s[name] / p95_s["off"]}
        for name in arms
        if name != "off"
    }
    bound = clairvoyant(plan.seed)
    return Result(simulated, plan.scale, requests, mean_s, p95_s, gains, arms, bound)


def clairvoyant(seed: int, extra_load: float = EXTRA_LOAD, requests: int = 20_000) -> Bound:
    """Send copies at once of those requests that gain most by theirs, as many as may be."""
    rules = profile(PROFILE)
    first_s, copy_s = (draws_s(rules, seed + leaf, requests) for leaf in range(2))
    pairs = sorted(zip(first_s, copy_s, strict=True), key=lambda pair: min(pair) - pair[0])
    copies = int(extra_load * requests)
    took_s = [min(pair) for pair in pairs[:copies]] + [first for first, _ in pairs[copies:]]
    slowest_s = max(first_s)
    too_slow = sum(time_s == slowest_s for time_s in first_s)
    return Bound(
        extra_load,
        fmean(took_s),
        estimate(took_s, 95.0).value,
        extra_load_needed=max(0.0, too_slow / requests - ABOVE_P95),
    )


def conditions(plan: Plan, *, simulated: bool) -> report.Conditions:
    """What is asked, injected and real."""
    real = "the root's decisions; messages take 0.1 ms, the service sleeps in virtual time"
    if not simulated:
        real = "leaf processes, connections; roots without HTTP in one process"
    return report.Conditions(
        load=f"Poisson, {FROM_PER_S:g} to {TO_PER_S:g} requests/s in {RAMP_S:g} s, then "
        f"{STEADY_S:g} s; a published second takes {plan.scale:g} s",
        injected=f"profile {PROFILE}",
        real=real,
    )


# --- what is shown ------------------------------------------------------------------------


def show(result: Result, console: Console) -> None:
    """Print the arms beside what was published, and what is possible."""
    off, together = TOGETHER.rows["off"], TOGETHER.rows["together"]
    rows: list[list[object]] = [
        ["off, published", f"{off['mean_s_min']:g} to {off['mean_s_max']:g}", off["p95_s"]],
        ["together, published", f"{together['mean_s_min']:g} to {together['mean_s_max']:g}", ""],
    ]
    rows[0] += ["", "", ""]
    rows[1] += [f"{together['improvement']:.0%}", "", f"{COPIES - 1:.0%}"]
    for name, arm in result.arms.items():
        gain = result.gains.get(name, {"mean": 0.0, "p95": 0.0})
        rows.append(
            [
                name,
                f"{result.mean_s[name]:.2f}",
                f"{result.p95_s[name]:.2f}",
                f"{gain['mean']:.0%}",
                f"{gain['p95']:.0%}",
                f"{arm.extra_load:.1%}",
            ]
        )
    bound = result.bound
    least = [f"{bound.mean_s:.2f}", f"{bound.p95_s:.2f}"]
    rows.append(["clairvoyant", *least, "", "", f"{bound.extra_load:.1%}"])
    columns = ["", "mean, s", "p95, s", "mean lower by", "p95 lower by", "extra work"]
    report.show_table(f"{result.requests} requests, in published seconds", columns, rows, console)
    console.print(f"published: {TOGETHER.source}", highlight=False, soft_wrap=True)
    for line in verdicts(result):
        console.print(line, highlight=False, soft_wrap=True)
    report.show_validity({name: arm.summary for name, arm in result.arms.items()}, console)


def verdicts(result: Result) -> list[str]:
    """What holds of what was published, and why what does not, does not."""
    wanted = TOGETHER.rows["together"]["improvement"]
    gains, bound = result.gains, result.bound
    lines = []
    if gains["together"]["mean"] < wanted:
        lines.append(f"three copies gain {gains['together']['mean']:.1%}, published {wanted:.0%}")
    if gains["adaptive"]["p95"] < gains["together"]["p95"]:
        lines.append(
            f"p95: {gains['adaptive']['p95']:.0%} lower with adaptive, "
            f"{gains['together']['p95']:.0%} with three copies. To take it below 4 s, whoever knew "
            f"every sleep beforehand would need {bound.extra_load_needed:.0%} extra work"
        )
    return lines or ["three copies gain what was published, and adaptive as much at p95"]


def draw(result: Result, path: Path, caption: str) -> None:
    """The distributions of the arms."""
    with plots.page(path, "Three copies at once", caption) as (axes,):
        curves: Mapping[str, Curve] = {
            name: [(p, ms / 1e3 / result.scale) for p, ms in arm.curve_ms]
            for name, arm in result.arms.items()
        }
        plots.tail(axes, curves, "a service that sleeps for 0 to 4 s", "published seconds")
        axes.set_xscale("linear")  # some sleep for no time at all
        axes.set_xlim(0.0, LONGEST_SHOWN_S)
        axes.legend(loc="upper left")

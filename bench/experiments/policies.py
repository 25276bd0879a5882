"""All policies side by side at equal cost, in virtual time, and what no policy could beat.

Every arm meets the same legs: what each takes is decided by the seed. See
``bench.simulation.profiles`` for the model, ``bounds`` for the last arms.

In a storm (a profile with dear queries) there are arms for those who did not see it coming:
``fixed-as-set`` and ``quantile-as-set`` keep what would have spent the share on the same
traffic without the dear queries, and the table shows what that spends now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
from rich.console import Console

from bench import report
from bench.simulation import bounds, tuning
from bench.simulation.profiles import PROFILES, Draws
from bench.simulation.roots import limited
from bench.simulation.study import UNLIMITED, Arm, Plan, Row, Times, arm, simulate
from root.hedging import Adaptive, Off, Together

EXTRA_LOADS: Final = (0.01, 0.02, 0.05)

_Run = tuple[str, Times, str]
"""An arm's name, what came of it, and what was set, in words."""


class Result(msgspec.Struct, frozen=True):
    """Arms by name; a policy that spends a share is named ``policy@share``."""

    profile: str
    leaves: int
    replicas: int
    queries: int
    parameters: dict[str, str]
    """What was tuned: by arm, in words."""
    arms: dict[str, Arm]


def run(plan: Plan, extra_loads: Sequence[float] = EXTRA_LOADS) -> Result:
    """Run every arm, one after the other."""
    draws = Draws(PROFILES[plan.profile], plan.leaves, plan.seed, keep=True)
    parameters: dict[str, str] = {}
    arms = {"off": arm(simulate(plan, draws, Off(), UNLIMITED))}
    calm = draws.calm()
    for extra_load in extra_loads:
        runs = [_at(plan, draws, extra_load)]
        if calm is not None:
            runs.append(_as_set(plan, draws, calm, extra_load))
        for name, times, words in chain.from_iterable(runs):
            arms[f"{name}@{extra_load:g}"] = arm(times)
            if words:
                parameters[f"{name}@{extra_load:g}"] = words
    arms["together"] = arm(simulate(plan, draws, Together(), UNLIMITED))
    arms["fastest"] = arm(bounds.fastest(plan, draws))
    return Result(plan.profile, plan.leaves, plan.replicas, plan.queries, parameters, arms)


def _at(plan: Plan, draws: Draws, extra_load: float) -> Iterator[_Run]:
    """Every policy at one cost."""
    fixed = tuning.fixed(plan, draws, extra_load)
    yield "fixed", simulate(plan, draws, fixed, UNLIMITED), f"after {fixed.after_s * 1000:.4g} ms"
    quantile = tuning.quantile(plan, draws, extra_load)
    yield "quantile", simulate(plan, draws, quantile, UNLIMITED), f"q {quantile.q:.4f}"
    sibling = tuning.sibling(plan, draws, extra_load)
    if sibling is not None:
        words = f"quorum {sibling.quorum:g}, factor {sibling.factor:.3g}"
        yield "sibling", simulate(plan, draws, sibling, UNLIMITED), words
    budget = limited(extra_load, plan.leaves)
    yield "adaptive", simulate(plan, draws, Adaptive(), budget), ""
    yield "clairvoyant", bounds.clairvoyant(plan, draws, extra_load), ""


def _as_set(plan: Plan, draws: Draws, calm: Draws, extra_load: float) -> Iterator[_Run]:
    """The policies that are set once and for all, as set for calm traffic."""
    fixed = tuning.fixed(plan, calm, extra_load)
    times = simulate(plan, draws, fixed, UNLIMITED)
    yield "fixed-as-set", times, f"after {fixed.after_s * 1000:.4g} ms"
    quantile = tuning.quantile(plan, calm, extra_load)
    yield "quantile-as-set", simulate(plan, draws, quantile, UNLIMITED), f"q {quantile.q:.4f}"


def show(result: Result, console: Console) -> None:
    """Print both rows of every arm, relative to ``off`` beside."""
    what = f"{result.profile}: {result.leaves} leaves x {result.replicas}, {result.queries} queries"
    columns = ["", "extra load", "won", *("p50", "p95", "p99", "p99.9"), "of off", "", ""]
    off = result.arms["off"]
    for share, pick in _ROWS.items():
        rows = []
        for name, one in result.arms.items():
            row, base = pick(one), pick(off)
            ratios = [
                f"{here / there:.3f}"
                for here, there in zip(
                    (row.p50, row.p95, row.p99), (base.p50, base.p95, base.p99), strict=True
                )
            ]
            ms = [f"{value:.1f}" for value in (row.p50, row.p95, row.p99, row.p99_9)]
            rows.append([name, f"{one.extra_load:.2%}", f"{one.hedge_wins:.0%}", *ms, *ratios])
        report.show_table(f"{share} of leaves have answered, ms ({what})", columns, rows, console)
    for name, words in result.parameters.items():
        console.print(f"{name}: {words}", highlight=False)


_ROWS: Final[dict[str, Callable[[Arm], Row]]] = {
    "100 %": lambda one: one.all_leaves,
    "95 %": lambda one: one.most_leaves,
}

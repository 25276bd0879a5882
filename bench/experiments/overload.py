"""More to do than the fleet can, for a while: how long it takes to recover, hedging on and off.

See ``bench.simulation.overload`` for hypothesis and model.
"""

from __future__ import annotations

from typing import Final

import msgspec
from rich.console import Console

from bench import report
from bench.simulation.overload import RECOVERED, SCENARIOS, Course, Recovery, overload
from root.hedging import Adaptive, Off, Policy, Quantile

POLICIES: Final[tuple[Policy, ...]] = (Off(), Quantile(), Adaptive())


class Result(msgspec.Struct, frozen=True):
    """By scenario and policy."""

    leaves: int
    replicas: int
    max_extra_load: float
    trouble_s: float
    scenarios: dict[str, dict[str, Recovery]]


def run(course: Course) -> Result:
    """Run every policy through every scenario."""
    return Result(
        course.leaves,
        course.replicas,
        course.max_extra_load,
        course.trouble_s,
        {
            scenario: {policy.name: overload(scenario, policy, course) for policy in POLICIES}
            for scenario in SCENARIOS
        },
    )


def show(result: Result, console: Console) -> None:
    """Print a table a scenario."""
    what = {
        "load": "all load raised from 70 to 110 %",
        "shard": "one shard slow, so that it would need 110 %",
    }
    columns = ["", "p95 before, ms", "meanwhile", "complete", "coverage", "extra load", "as before"]
    for scenario, spells in result.scenarios.items():
        rows: list[list[object]] = [
            [
                name,
                f"{one.before_p95_ms:.0f}",
                f"{one.trouble_p95_ms:.0f}",
                f"{one.trouble_complete:.1%}",
                f"{one.trouble_coverage:.2%}",
                f"{one.trouble_extra_load:.2%}",
                "not yet" if one.recovered_s is None else f"after {one.recovered_s:.0f} s",
            ]
            for name, one in spells.items()
        ]
        title = (
            f"{what[scenario]} for {result.trouble_s:g} s: {result.leaves} leaves x "
            f"{result.replicas}"
        )
        report.show_table(title, columns, rows, console)
    console.print(
        f"As before: the 95th percentile of a second is within {RECOVERED:g} times that of before.",
        highlight=False,
        soft_wrap=True,
    )

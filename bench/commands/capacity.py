"""What a fleet can do, and what hedging costs then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bench import realtime
from bench.commands.copies import published_options
from bench.experiments import capacity
from bench.fleet import FleetError
from bench.options import Refused, publish


@click.command("capacity")
@published_options
@click.option(
    "--load",
    "loads",
    type=click.FloatRange(0.01, 2.0),
    multiple=True,
    help="In capacities; repeat it. [default: 0.1, 0.2, ... 1.2]",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600.0),
    help="Of a turn; each arm has several at each load. [default: 3, simulated 10]",
)
def capacity_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    loads: tuple[float, ...],
    seconds: float | None,
) -> None:
    """Throughput against latency from 10 to 120 % of capacity: where hedging stops paying."""
    plan = capacity.SIMULATED if simulate else capacity.LIVE
    loads = tuple(sorted(set(loads))) or plan.loads
    plan = replace(plan, seed=seed, loads=loads, turn_s=seconds or plan.turn_s)
    if quick:
        plan = replace(plan, loads=(0.2, 0.7, 1.2), rounds=1, turn_s=0.5, closed=100)
    try:
        result = capacity.simulate(plan) if simulate else realtime.run(capacity.live(plan))
    except FleetError as error:
        raise Refused(str(error)) from error
    publish(
        "capacity",
        seed,
        json_path,
        result,
        capacity.show,
        conditions=capacity.conditions(plan, simulated=simulate),
        draw=capacity.draw,
        plot_path=plot_path,
    )


COMMANDS = (capacity_command,)
"""In the order of the help."""

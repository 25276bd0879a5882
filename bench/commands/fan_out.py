"""The arithmetic of fanning out, measured."""

from __future__ import annotations

from pathlib import Path

import click

from bench.commands.table import simulate_option
from bench.experiments import fan_out
from bench.fleet import FleetError
from bench.options import Refused, common_options, plot_option, publish
from bench.report import Conditions


@click.command("fan-out")
@common_options
@plot_option
@simulate_option
@click.option("--seconds", type=click.FloatRange(1.0, 3600.0), default=8.0, show_default=True)
def fan_out_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    seconds: float,
) -> None:
    """The share of slow queries against the number of leaves: real up to 200, simulated past it."""
    live_leaves = 0 if simulate else fan_out.LIVE_LEAVES
    try:
        if quick:
            leaves = (1, 10, 100) if simulate else (1, 20, 500)
            result = fan_out.run(seed, leaves, 4000, live_leaves=live_leaves, seconds=3.0)
        else:
            result = fan_out.run(seed, live_leaves=live_leaves, seconds=seconds)
    except FleetError as error:
        raise Refused(str(error)) from error
    conditions = Conditions(
        load="at most 100 queries/s, whatever the answers do",
        injected="one leg in 100, or in 10,000, takes at least 100 ms more",
        real="the root's driver and policies; leaves and time are simulated"
        if simulate
        else f"up to {fan_out.LIVE_LEAVES} leaves roots, channels and leaves, a leaf being a shard"
        " of a few processes; past that the root's driver alone",
    )
    publish(
        "fan-out",
        seed,
        json_path,
        result,
        fan_out.show,
        conditions=conditions,
        draw=fan_out.draw,
        plot_path=plot_path,
    )


COMMANDS = (fan_out_command,)
"""In the order of the help."""

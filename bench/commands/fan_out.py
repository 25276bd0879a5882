"""The arithmetic of fanning out, measured."""

from __future__ import annotations

from pathlib import Path

import click

from bench.experiments import fan_out
from bench.options import common_options, plot_option, publish
from bench.report import Conditions


@click.command("fan-out")
@common_options
@plot_option
def fan_out_command(seed: int, quick: bool, json_path: Path | None, plot_path: Path | None) -> None:
    """The share of slow queries against the number of leaves, in virtual time."""
    result = fan_out.run(seed, (1, 10, 100), 4000) if quick else fan_out.run(seed)
    conditions = Conditions(
        load="100 queries/s, whatever the answers do",
        injected="one leg in 100, or in 10,000, takes at least 100 ms more",
        real="the root's driver and policies; leaves and time are simulated",
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

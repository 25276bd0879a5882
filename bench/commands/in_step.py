"""The experiment on background work."""

from __future__ import annotations

from pathlib import Path

import click

from bench.commands.simulated import QUICK_QUERIES, plan_options, profile_option
from bench.experiments import in_step
from bench.options import Refused, common_options, publish
from bench.simulation.profiles import PROFILES
from bench.simulation.study import Plan


@click.command("in-step")
@common_options
@plan_options
@profile_option([name for name, profile in PROFILES.items() if profile.machines is None], "calm")
@click.option("--period-ms", default=1000.0, show_default=True, help="How often leaves pause.")
@click.option("--lasts-ms", default=20.0, show_default=True, help="How long a pause lasts.")
def in_step_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    leaves: int,
    replicas: int,
    profile: str,
    queries: int,
    period_ms: float,
    lasts_ms: float,
) -> None:
    """Background work at random moments, and the same amount at the same moments."""
    try:
        queries = min(queries, QUICK_QUERIES) if quick else queries
        result = in_step.run(Plan(profile, leaves, replicas, queries, seed), period_ms, lasts_ms)
    except ValueError as error:
        raise Refused(str(error)) from error
    publish("in-step", seed, json_path, result, in_step.show)


COMMANDS = (in_step_command,)

"""Experiments in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import click

from bench.experiments import overload, policies, shadow, simulate, swarm
from bench.options import Command, Refused, common_options, json_option, publish
from bench.simulation.overload import Course
from bench.simulation.profiles import PROFILES
from bench.simulation.study import Plan
from root.config import Settings

QUICK_QUERIES = 200
"""Simulated queries of a tiny run."""


def plan_options(command: Command) -> Command:
    """What every simulation takes."""
    for option in (
        click.option(
            "--queries", type=click.IntRange(1, 10_000_000), default=20_000, show_default=True
        ),
        click.option(
            "--replicas", type=click.IntRange(1, 10), default=2, help="Leaves that hold a shard."
        ),
        click.option(
            "--leaves", type=click.IntRange(1, 100_000), default=100, help="Legs of a query."
        ),
    ):
        command = option(command)
    return command


def profile_option(
    names: Sequence[str], default: str = "tail-at-scale"
) -> Callable[[Command], Command]:
    """How long simulated leaves take: one of the named."""
    return click.option(
        "--profile",
        type=click.Choice(names),
        default=default,
        show_default=True,
        help="How long simulated leaves take.",
    )


@click.command("simulate")
@common_options
@plan_options
@profile_option(list(PROFILES))
@click.option(
    "--tree",
    type=click.IntRange(min=0),
    default=0,
    help="So many mid-level roots between the root and the leaves; 0 for none.",
)
@click.option("--policy", default="adaptive", show_default=True, help="As --hedge of a root.")
@click.option("--max-extra-load", default=0.05, show_default=True, help="The budget.")
def simulate_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    policy: str,
    max_extra_load: float,
    tree: int,
    leaves: int,
    replicas: int,
    profile: str,
    queries: int,
) -> None:
    """One policy on simulated leaves, in virtual time."""
    queries = min(queries, QUICK_QUERIES) if quick else queries
    try:
        plan = Plan(profile, leaves, replicas, queries, seed, tree)
        result, speed = simulate.run(plan, Settings().policy(policy), max_extra_load)
    except ValueError as error:
        raise Refused(str(error)) from error
    publish("simulate", seed, json_path, result, simulate.show, speed)


@click.command("policies")
@common_options
@plan_options
@profile_option([name for name, profile in PROFILES.items() if profile.machines is None])
def policies_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    leaves: int,
    replicas: int,
    profile: str,
    queries: int,
) -> None:
    """Every policy at equal cost on simulated leaves, beside what no policy could beat."""
    plan = Plan(profile, leaves, replicas, min(queries, QUICK_QUERIES) if quick else queries, seed)
    publish("policies", seed, json_path, policies.run(plan), policies.show)


@click.command("shadow")
@common_options
@plan_options
@profile_option([name for name, profile in PROFILES.items() if profile.machines is None])
def shadow_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    leaves: int,
    replicas: int,
    profile: str,
    queries: int,
) -> None:
    """What the policy shadow says that hedging would do, beside what hedging then does."""
    plan = Plan(profile, leaves, replicas, min(queries, QUICK_QUERIES) if quick else queries, seed)
    publish("shadow", seed, json_path, shadow.run(plan), shadow.show)


@click.command("swarm")
@click.option("--seeds", default="0..1999", show_default=True, help="As 7, or 0..1999 inclusive.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, help="Processes at once.")
@click.option("--trace", is_flag=True, help="Tell the whole story of the one seed.")
@json_option
def swarm_command(seeds: str, jobs: int, trace: bool, json_path: Path | None) -> None:
    """Small fleets in all kinds of trouble, a seed each, and whether all held that must."""
    try:
        chosen = swarm.seeds_in(seeds)
    except ValueError as error:
        raise Refused(str(error)) from error
    if trace and len(chosen) > 1:
        raise Refused(f"--trace tells the story of one seed, not of {len(chosen)}")
    judged = swarm.replayed(chosen[0]) if trace else swarm.watched(chosen, jobs)
    result = swarm.summed_up(chosen, judged)
    publish("swarm", chosen[0], json_path, result, swarm.show)
    if result.failures:
        sys.exit(1)


@click.command("overload")
@common_options
@click.option("--leaves", type=click.IntRange(1, 1000), default=50, show_default=True)
@click.option("--max-extra-load", default=0.05, show_default=True, help="The budget.")
def overload_command(
    seed: int, quick: bool, json_path: Path | None, leaves: int, max_extra_load: float
) -> None:
    """More to do than simulated leaves can, for a while: how long until it is as before."""
    course = Course(leaves=leaves, max_extra_load=max_extra_load, seed=seed)
    if quick:
        course = replace(course, before_s=3.0, trouble_s=2.0, after_s=3.0, leaves=min(leaves, 5))
    try:
        result = overload.run(course)
    except ValueError as error:
        raise Refused(str(error)) from error
    publish("overload", seed, json_path, result, overload.show)


COMMANDS = (
    simulate_command,
    policies_command,
    shadow_command,
    swarm_command,
    overload_command,
)
"""In the order of the help."""

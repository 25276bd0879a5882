"""The command ``python -m bench``: one subcommand an experiment."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec
import uvloop
from rich.console import Console

from bench import corpus, report
from bench.client import connected
from bench.experiments import (
    agree,
    chaos,
    fanout,
    overload,
    policies,
    search,
    shadow,
    simulate,
    swarm,
)
from bench.fleet import Fleet, FleetError, Shape, running
from bench.queries import mixed, vocabulary
from bench.reference import Reference
from bench.simulation.overload import Course
from bench.simulation.profiles import PROFILES
from bench.simulation.study import Plan
from index_data.manifest import IndexDataError
from root.config import Settings

Command = TypeVar("Command", bound=Callable[..., None])

EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


QUICK_QUERIES = 200
"""Simulated queries of a tiny run."""


class Refused(click.ClickException):
    """The experiment cannot run as asked; one sentence."""

    exit_code = 2


def in_a_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file in a folder that does not exist: after hours of work it would be too late."""
    if path is not None and not path.parent.is_dir():
        raise click.BadParameter(f"the folder {path.parent} does not exist")
    return path


def json_option(command: Command) -> Command:
    """Where the result goes besides the terminal."""
    return click.option(
        "--json",
        "json_path",
        type=NEW_FILE,
        callback=in_a_folder,
        help="Write the result there as well.",
    )(command)


def common_options(command: Command) -> Command:
    """What every experiment takes."""
    for option in (
        json_option,
        click.option(
            "--quick", is_flag=True, help="A tiny run: shows that it works, not how well."
        ),
        click.option(
            "--seed", type=int, default=1, show_default=True, help="Decides the workload."
        ),
    ):
        command = option(command)
    return command


def index_option(command: Command) -> Command:
    """What every experiment on an index takes."""
    return click.option(
        "--index", type=EXISTING_FOLDER, help="Use this index instead of building pydocs."
    )(command)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure what Hedgerow claims."""


@main.command("fanout")
@common_options
@click.option("--shards", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--leaves", type=click.IntRange(1, 64), default=4, show_default=True)
def fanout_command(
    seed: int, quick: bool, json_path: Path | None, shards: int, leaves: int
) -> None:
    """The cost of a leg: the whole path, a POST a leg, and bare sockets."""
    plan = fanout.Plan(rounds=2, legs=200, warm_up_legs=100) if quick else fanout.Plan()
    growth = () if quick else fanout.GROWTH
    try:
        results = uvloop.run(fanout.run(shards, growth, leaves, plan, seed))
    except FleetError as error:
        raise Refused(str(error)) from error
    publish("fanout", seed, json_path, results, fanout.show)


@main.command("search")
@common_options
@index_option
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=100, show_default=True)
def search_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, rate: float
) -> None:
    """Queries a second and latencies of the whole system, beside one index in process."""
    plan = search.Plan(rate_per_s=rate)
    if quick:
        plan = search.Plan(rounds=1, requests=50, clients=4, rate_per_s=50, open_s=1)
    with fleet_on(index) as (fleet, folder):
        queries = uvloop.run(draw(fleet, folder, seed, 50 if quick else 1000))
        reference = Reference(folder)
        result = uvloop.run(search.run(fleet, queries, reference, plan, seed))
    publish("search", seed, json_path, result, search.show)


@main.command("agree")
@common_options
@index_option
@click.option("--queries", type=click.IntRange(min=1), default=500, show_default=True)
def agree_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, queries: int
) -> None:
    """How often the root's first page is the one of a single big index."""
    with fleet_on(index) as (fleet, folder):
        drawn = uvloop.run(draw(fleet, folder, seed, 50 if quick else queries))
        result = uvloop.run(agree.run(fleet, drawn, Reference(folder)))
    publish("agree", seed, json_path, result, agree.show)
    if result.share_equal < agree.SHARE_WANTED:
        sys.exit(1)


@main.command("chaos")
@common_options
@index_option
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=200, show_default=True)
def chaos_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, rate: float
) -> None:
    """Kill one leaf and freeze another under load."""
    plan = chaos.Plan(rate_per_s=rate)
    if quick:
        plan = chaos.Plan(rate_per_s=50, duration_s=3, kill_at_s=1, stop_at_s=2)
    with fleet_on(index) as (fleet, folder):
        queries = uvloop.run(draw(fleet, folder, seed, 20 if quick else 200))
        result = uvloop.run(chaos.run(fleet, queries, plan, seed))
    publish("chaos", seed, json_path, result, chaos.show)
    if not (result.unharmed and result.account.balanced):
        sys.exit(1)


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


def profile_option(names: Sequence[str]) -> Callable[[Command], Command]:
    """How long simulated leaves take: one of the named."""
    return click.option(
        "--profile",
        type=click.Choice(names),
        default="tail-at-scale",
        show_default=True,
        help="How long simulated leaves take.",
    )


@main.command("simulate")
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


@main.command("policies")
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


@main.command("shadow")
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


@main.command("swarm")
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


@main.command("overload")
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


@contextmanager
def fleet_on(index: Path | None) -> Iterator[tuple[Fleet, Path]]:
    """A running fleet of the usual shape, and its index directory."""
    try:
        with corpus.prepared(index) as folder, running(Shape(folder)) as fleet:
            yield fleet, folder
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error


async def draw(fleet: Fleet, index: Path, seed: int, count: int) -> list[str]:
    """Mixed queries about what the fleet serves."""
    fields = corpus.query_fields(corpus.manifest_of(index))
    async with connected(fleet.root_url) as client:
        texts = await client.texts(fields[1])
    return mixed(vocabulary(texts, fields), random.Random(f"{seed}:queries"), count)


def publish(
    experiment: str,
    seed: int,
    json_path: Path | None,
    result: Any,
    show: Callable[[Any, Console], None],
    speed: str = "",
) -> None:
    """Print header and tables, and write the JSON if asked to."""
    console = report.wide_console()
    head = report.header(experiment, seed, speed)
    report.show_header(head, console)
    show(result, console)
    if json_path is not None:
        report.write_json(json_path, head, msgspec.to_builtins(result))


if __name__ == "__main__":
    main(prog_name="python -m bench")

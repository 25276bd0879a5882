"""The table of how long leaves take, what its profile is fitted to, and its relatives."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import click

from bench import live_arms
from bench.experiments import bigtable, table
from bench.fleet import FleetError
from bench.options import Command, Refused, common_options, plot_option, publish
from bench.progress import progress
from bench.simulation.study import Plan

QUICK_FIT_QUERIES = 1000
"""Of a tiny fit: the slowest query in a hundred is then one of ten."""

QUICK_QUERIES = 150
"""Of a tiny simulation."""


def tiny(plan: live_arms.Plan) -> live_arms.Plan:
    """The same so small that it only shows that it works."""
    return replace(plan, shards=20, processes=2, rate_per_s=30.0, lasts_s=3.0)


def simulate_option(command: Command) -> Command:
    """Virtual time instead of real processes."""
    return click.option("--simulate", is_flag=True, help="Simulated leaves, in virtual time.")(
        command
    )


@click.command("fit")
@common_options
@click.option("--queries", type=click.IntRange(100, 1_000_000), default=20_000, show_default=True)
def fit_command(seed: int, quick: bool, json_path: Path | None, queries: int) -> None:
    """The parameters of the profiles from the published figures, and what is left over."""
    if importlib.util.find_spec("numpy") is None:
        raise Refused("the fit needs numpy: pip install 'hedgerow[bench]'")
    from bench.experiments import fit  # noqa: PLC0415 (an extra: only who fits needs it)
    from bench.fitting import ROUNDS_MAX  # noqa: PLC0415

    queries = min(queries, QUICK_FIT_QUERIES) if quick else queries
    with progress("fit", ROUNDS_MAX) as advance:
        result = fit.run(queries, seed, lambda _: advance(1))
    publish("fit", seed, json_path, result, fit.show)


@click.command("table")
@common_options
@plot_option
@simulate_option
@click.option("--real", is_flag=True, help="Inject nothing: what this machine gives.")
@click.option("--queries", type=click.IntRange(1, 10_000_000), default=20_000, show_default=True)
@click.option("--seconds", type=click.FloatRange(1.0, 86_400.0), default=170.0, show_default=True)
@click.option("--rate", type=click.FloatRange(1.0, 1000.0), default=24.0, show_default=True)
def table_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    real: bool,
    queries: int,
    seconds: float,
    rate: float,
) -> None:
    """How long one leaf, 95 % and 100 % of a hundred leaves take, unhedged and hedged."""
    if simulate and real:
        raise Refused("--real is about real processes: not with --simulate")
    if simulate:
        plan = Plan("tail-at-scale", queries=QUICK_QUERIES if quick else queries, seed=seed)
        seeds = 1 if quick else table.SEEDS
        with progress("table", seeds * len(table.SIMULATED)) as told:
            result = table.simulate(plan, told, seeds)
    else:
        profile = None if real else "tail-at-scale"
        live = live_arms.Plan(profile, rate_per_s=rate, lasts_s=seconds, seed=seed)
        live = tiny(live) if quick else live
        try:
            with progress("table", live.rate_per_s * live.lasts_s) as told:
                result = table.run(live, told)
        except FleetError as error:
            raise Refused(str(error)) from error
    publish(
        *("table", seed, json_path, result, table.show),
        conditions=table.conditions(result),
        draw=table.draw,
        plot_path=plot_path,
    )


@click.command("bigtable")
@common_options
@plot_option
@simulate_option
@click.option("--queries", type=click.IntRange(1, 10_000_000), default=20_000, show_default=True)
@click.option("--seconds", type=click.FloatRange(1.0, 86_400.0), default=170.0, show_default=True)
@click.option("--rate", type=click.FloatRange(1.0, 1000.0), default=30.0, show_default=True)
def bigtable_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    queries: int,
    seconds: float,
    rate: float,
) -> None:
    """A thousand keys on a hundred servers: a second request after 10 ms, or by what is learned."""
    if simulate:
        plan = Plan("bigtable", queries=QUICK_QUERIES if quick else queries, seed=seed)
        seeds = 1 if quick else bigtable.SEEDS
        with progress("bigtable", seeds * len(bigtable.SIMULATED)) as told:
            result = bigtable.simulate(plan, told, seeds)
    else:
        live = live_arms.Plan("bigtable", rate_per_s=rate, lasts_s=seconds, seed=seed)
        live = tiny(live) if quick else live
        try:
            with progress("bigtable", live.rate_per_s * live.lasts_s) as told:
                result = bigtable.run(live, told)
        except FleetError as error:
            raise Refused(str(error)) from error
    publish(
        *("bigtable", seed, json_path, result, bigtable.show),
        conditions=bigtable.conditions(result),
        draw=bigtable.draw,
        plot_path=plot_path,
    )


COMMANDS = (fit_command, table_command, bigtable_command)
"""In the order of the help."""

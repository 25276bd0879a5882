"""Experiments about copies of requests that others have published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from bench import corpus, realtime
from bench.commands.live import draw, index_option
from bench.experiments import fit_disks, mirrored_reads, pressure, tied, together
from bench.fleet import FleetError, Shape, running
from bench.options import Command, Refused, common_options, plot_option, publish
from index_data.manifest import IndexDataError

SIMULATE = click.option("--simulate", is_flag=True, help="In virtual time, on simulated leaves.")


def published_options(command: Command) -> Command:
    """What every experiment of this family takes."""
    return common_options(plot_option(SIMULATE(command)))


@click.command("tied")
@published_options
@click.option(
    "--load",
    "loads",
    type=click.FloatRange(0.01, 0.95),
    multiple=True,
    help="How busy disks are, besides the published load; repeat it. [default: 0.3, 0.5, 0.7]",
)
@click.option(
    "--reads",
    type=click.IntRange(20, 10_000_000),
    help="Of every arm at every load. [default: 1500, simulated 20000]",
)
def tied_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    loads: tuple[float, ...],
    reads: int | None,
) -> None:
    """Tied requests on disks: table 2 of The Tail at Scale, idle and beside a sort."""
    plan = tied.SIMULATED if simulate else tied.LIVE
    plan = replace(plan, seed=seed, reads=reads or plan.reads, loads=loads or plan.loads)
    if quick:
        plan = replace(plan, reads=min(plan.reads, 60), loads=(), roots=3, turn_s=1.0)
    try:
        result = tied.simulate(plan) if simulate else realtime.run(tied.live(plan))
    except FleetError as error:
        raise Refused(str(error)) from error
    publish(
        "tied",
        seed,
        json_path,
        result,
        tied.show,
        conditions=tied.conditions(plan, simulated=simulate),
        draw=tied.draw,
        plot_path=plot_path,
    )


@click.command("mirrored-reads")
@published_options
@click.option(
    "--reads",
    type=click.IntRange(100, 10_000_000),
    help="Of every row. [default: 4000, simulated 100000]",
)
@click.option("--roots", type=click.IntRange(1, 16), help="[default: one for each reader]")
def mirrored_reads_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    reads: int | None,
    roots: int | None,
) -> None:
    """Reads from a mirrored pair of disks, one of them under pressure: plain and hedged."""
    plan = mirrored_reads.SIMULATED if simulate else mirrored_reads.LIVE
    plan = replace(plan, seed=seed, reads=reads or plan.reads, roots=roots)
    if quick:
        plan = replace(plan, reads=min(plan.reads, 150), turns=1, scale=0.2)
    try:
        result = (
            mirrored_reads.simulate(plan) if simulate else realtime.run(mirrored_reads.live(plan))
        )
    except FleetError as error:
        raise Refused(str(error)) from error
    publish(
        "mirrored-reads",
        seed,
        json_path,
        result,
        mirrored_reads.show,
        conditions=mirrored_reads.conditions(plan, simulated=simulate),
        draw=mirrored_reads.draw,
        plot_path=plot_path,
    )


@click.command("together")
@published_options
@click.option(
    "--scale",
    type=click.FloatRange(0.01, 10.0),
    help="How many seconds a published one takes. [default: 0.5, simulated 1]",
)
def together_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    simulate: bool,
    scale: float | None,
) -> None:
    """Three copies at once, against none and against adaptive."""
    plan = together.SIMULATED if simulate else together.LIVE
    plan = replace(plan, seed=seed, scale=scale or plan.scale)
    if quick:
        plan = replace(plan, runs=1, part=0.3, scale=0.1)
    try:
        result = together.simulate(plan) if simulate else realtime.run(together.live(plan))
    except FleetError as error:
        raise Refused(str(error)) from error
    publish(
        "together",
        seed,
        json_path,
        result,
        together.show,
        conditions=together.conditions(plan, simulated=simulate),
        draw=together.draw,
        plot_path=plot_path,
    )


@click.command("pressure")
@common_options
@plot_option
@index_option
@click.option(
    "--seconds",
    type=click.FloatRange(min=1.0),
    default=20.0,
    show_default=True,
    help="Of each kind of trouble.",
)
@click.option("--rate", type=click.FloatRange(min=1.0), default=40.0, show_default=True)
def pressure_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    index: Path | None,
    seconds: float,
    rate: float,
) -> None:
    """Real queries while one leaf is stopped, squeezed or cold: off against adaptive."""
    if not pressure.possible():
        raise Refused("this system has no way to pin processes and to drop pages")
    plan = pressure.Plan(
        seconds=min(seconds, 2.0) if quick else seconds, rate_per_s=rate, seed=seed
    )
    try:
        with corpus.prepared(index) as folder:
            shape = Shape(folder, own_index=True, root_options=("--hedge", "off"))
            with running(shape) as fleet:
                queries = realtime.run(draw(fleet, folder, seed, 50 if quick else 1000))
                result = realtime.run(pressure.run(fleet, shape.leaves, queries, plan))
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error
    publish(
        "pressure",
        seed,
        json_path,
        result,
        pressure.show,
        conditions=pressure.conditions(plan, shape.leaves),
        draw=pressure.draw,
        plot_path=plot_path,
    )


@click.command("fit-disks")
@common_options
def fit_disks_command(seed: int, quick: bool, json_path: Path | None) -> None:
    """How the disk profiles are fitted to what was published, and what is left over."""
    result = fit_disks.run(seed, 2000) if quick else fit_disks.run(seed)
    publish("fit-disks", seed, json_path, result, fit_disks.show)


COMMANDS = (
    tied_command,
    mirrored_reads_command,
    together_command,
    pressure_command,
    fit_disks_command,
)
"""In the order of the help."""

"""What a leaf cannot see of itself."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from bench import corpus, omission, realtime
from bench.commands.live import draw, index_option
from bench.experiments import blind_spot
from bench.fleet import FleetError, Shape, running
from bench.options import Refused, common_options, plot_option, publish
from index_data.manifest import IndexDataError

QUICK_S = 3.0
"""Of each part of a tiny run."""


@click.command("blind-spot")
@common_options
@plot_option
@index_option
@click.option(
    "--seconds",
    type=click.FloatRange(2.0, 3600.0),
    default=13.0,
    show_default=True,
    help="Of each of four parts: before and in trouble, quiet and with a stall.",
)
@click.option("--rate", type=click.FloatRange(1.0, 10_000.0), default=25.0, show_default=True)
def blind_spot_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    plot_path: Path | None,
    index: Path | None,
    seconds: float,
    rate: float,
) -> None:
    """A leaf whose event loop is blocked: what it reports, what users see, what tells."""
    seconds = min(seconds, QUICK_S) if quick else seconds
    plan = blind_spot.Plan(seconds=seconds, rate_per_s=rate, seed=seed)
    try:
        with corpus.prepared(index) as folder:
            alone = Shape(folder, leaves=1, replicas=1, leaf_options=blind_spot.LEAF_OPTIONS)
            with running(alone) as fleet:
                queries = realtime.run(draw(fleet, folder, seed, 50 if quick else 1000))
                result = realtime.run(blind_spot.blocked(fleet, queries, plan))
            with running(Shape(folder)) as fleet:
                both = realtime.run(omission.omitted(fleet, queries, plan.seconds))
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error
    result = msgspec.structs.replace(result, omission=both)
    publish(
        "blind-spot",
        seed,
        json_path,
        result,
        blind_spot.show,
        conditions=blind_spot.conditions(plan),
        draw=blind_spot.draw,
        plot_path=plot_path,
    )
    if result.failures:
        sys.exit(1)


COMMANDS = (blind_spot_command,)
"""In the order of the help."""

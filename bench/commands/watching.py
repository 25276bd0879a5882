"""What it costs to be watched."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from bench import corpus, realtime
from bench.commands.live import draw, index_option
from bench.experiments import watching
from bench.fleet import FleetError, Shape, running
from bench.options import Refused, common_options, publish
from index_data.manifest import IndexDataError


@click.command("watching")
@common_options
@index_option
@click.option("--rounds", type=click.IntRange(1, 10_000), default=30, show_default=True)
@click.option("--viewers", type=click.IntRange(1, 100), default=20, show_default=True)
def watching_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, rounds: int, viewers: int
) -> None:
    """What metrics, slow queries and open live views cost, beside a fleet without any of it."""
    plan = watching.Plan(rounds=rounds, viewers=viewers)
    if quick:
        plan = watching.Plan(rounds=2, requests=40, clients=4, viewers=3)
    try:
        with corpus.prepared(index) as folder:
            shape = Shape(folder)
            bare = replace(shape, leaf_options=watching.UNWATCHED, root_options=watching.UNWATCHED)
            with running(bare) as off, running(shape) as shipped:
                queries = realtime.run(draw(shipped, folder, seed, 50 if quick else 1000))
                result = realtime.run(watching.run(off, shipped, queries, plan, seed))
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error
    publish("watching", seed, json_path, result, watching.show)
    if result.missed:
        sys.exit(1)


COMMANDS = (watching_command,)
"""In the order of the help."""

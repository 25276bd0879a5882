"""The table of how long leaves take, what its profile is fitted to, and its relatives."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import click

from bench.options import Refused, common_options, publish
from bench.progress import progress

QUICK_FIT_QUERIES = 1000
"""Of a tiny fit: the slowest query in a hundred is then one of ten."""


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


COMMANDS = (fit_command,)
"""In the order of the help."""

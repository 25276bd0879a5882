"""Experiments on one real leaf."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from bench import corpus, realtime
from bench.commands.live import draw, index_option
from bench.experiments import classes, saturation
from bench.fleet import FleetError, Shape, running
from bench.options import Refused, common_options, publish
from bench.queries import WORD
from bench.report import Conditions
from index_data.manifest import IndexDataError
from leaf.protocol import Bool, SearchBody, Word
from root.language import parse

DEPTH: Final = 14
"""Hits asked of each shard: a page, and what the root asks for beyond it."""

CONDITIONS: Final = Conditions(
    load="one, two and four times what the leaf can do, open loop; then half of it",
    injected="nothing; a fifth of the queries is cancelled on the way",
    real="searches, leaf process, channel; the driver stands for the root",
)

QUERIES: Final = 1000
LONG_QUERIES: Final = 8
LONG_WORDS: Final = 100
"""A long query asks for any of so many of the most frequent words of the others."""


class Result(msgspec.Struct, frozen=True):
    """Both experiments; budgets are named in milliseconds."""

    workers: int
    budgets: dict[str, saturation.Result]
    classes: classes.Result


@click.command("saturation")
@common_options
@index_option
@click.option("--workers", type=click.IntRange(1, 256), default=1, show_default=True)
def saturation_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, workers: int
) -> None:
    """One leaf with up to four times as much to do as it can, and with work of two classes."""
    overload, company = saturation.Plan(), classes.Plan()
    if quick:
        overload = saturation.Plan(rounds=1, turn_s=0.6, settle_s=0.2, closed_s=0.2)
        company = classes.Plan(rounds=1, turn_s=0.4, closed_s=0.2)
    shape_options = ("--workers", str(workers))
    try:
        with corpus.prepared(index) as folder:
            short, long = bodies(folder, seed)
            shape = Shape(folder, leaves=1, replicas=1, root=False, leaf_options=shape_options)
            with running(shape) as fleet:
                (url,) = fleet.leaf_urls
                budgets = realtime.run(saturation.run(url, short, overload, seed))
                shared = realtime.run(classes.run(url, short, long, company, seed))
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error
    result = Result(workers, budgets, shared)
    publish("saturation", seed, json_path, result, show, conditions=CONDITIONS)


def bodies(index: Path, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Short and long searches about what an index holds, as a root sends them."""
    fields = {field.name: field for field in corpus.manifest_of(index).fields}
    with running(Shape(index, leaves=1, replicas=1)) as fleet:
        queries = realtime.run(draw(fleet, index, seed, QUERIES))
    counts = Counter(word for q in queries for word in WORD.findall(q) if word not in fields)
    frequent = [word for word, _ in counts.most_common(2 * LONG_WORDS)]
    rng = random.Random(f"{seed}:long")
    many = min(LONG_WORDS, len(frequent))
    long = [
        Bool(should=tuple(Word(word) for word in rng.sample(frequent, many)))
        for _ in range(LONG_QUERIES)
    ]
    short = [parse(q, fields).query for q in queries]
    written = msgspec.json.encode
    return (
        [written(SearchBody(query, DEPTH)) for query in short],
        [written(SearchBody(query, DEPTH)) for query in long],
    )


def show(result: Result, console: Console) -> None:
    """Print the tables of both."""
    saturation.show(result.budgets, console)
    classes.show(result.classes, console)


COMMANDS = (saturation_command,)
"""In the order of the help."""

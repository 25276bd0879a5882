"""Experiments on real processes."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from bench import corpus, realtime
from bench.client import connected
from bench.experiments import agree, chaos, leg_cost, search
from bench.fleet import Fleet, FleetError, Shape, running
from bench.options import Command, Refused, common_options, publish
from bench.queries import begun, every_kind, mixed, vocabulary
from bench.reference import Reference
from index_data.manifest import IndexDataError

EXISTING_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def index_option(command: Command) -> Command:
    """What every experiment on an index takes."""
    return click.option(
        "--index", type=EXISTING_FOLDER, help="Use this index instead of building pydocs."
    )(command)


@click.command("leg-cost")
@common_options
@click.option("--shards", type=click.IntRange(1, 10_000), default=100, show_default=True)
@click.option("--leaves", type=click.IntRange(1, 64), default=4, show_default=True)
def leg_cost_command(
    seed: int, quick: bool, json_path: Path | None, shards: int, leaves: int
) -> None:
    """The cost of a leg: the whole path, a POST a leg, and bare sockets."""
    plan = leg_cost.Plan(rounds=2, legs=200, warm_up_legs=100) if quick else leg_cost.Plan()
    growth = () if quick else leg_cost.GROWTH
    try:
        results = realtime.run(leg_cost.run(shards, growth, leaves, plan, seed))
    except FleetError as error:
        raise Refused(str(error)) from error
    publish("leg-cost", seed, json_path, results, leg_cost.show)


@click.command("search")
@common_options
@index_option
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), default=100, show_default=True)
@click.option(
    "--documents",
    type=click.IntRange(1000, 10_000_000),
    help="Build an index of so many short documents instead of pydocs.",
)
@click.option("--facets", is_flag=True, help="Filter and count as well; needs --documents.")
def search_command(
    seed: int,
    quick: bool,
    json_path: Path | None,
    index: Path | None,
    rate: float,
    documents: int | None,
    facets: bool,
) -> None:
    """Queries a second and latencies of the whole system, beside one index in process."""
    if index is not None and documents is not None:
        raise Refused("--documents builds an index: not with --index")
    if facets and documents is None:
        raise Refused("--facets counts fields that only the index of --documents has")
    plan = search.Plan(rate_per_s=rate)
    if quick:
        plan = search.Plan(rounds=1, requests=50, clients=4, rate_per_s=50, open_s=1)
    with _short_documents(documents, seed) as made, fleet_on(made or index) as (fleet, folder):
        queries = realtime.run(draw(fleet, folder, seed, 50 if quick else 1000))
        selection = search.COUNTED if facets else None
        run = search.run(fleet, queries, Reference(folder), plan, seed, selection)
        result = realtime.run(run)
    publish("search", seed, json_path, result, search.show)


@click.command("agree")
@common_options
@click.option(
    "--index",
    type=EXISTING_FOLDER,
    help="Ask this index as it is, instead of two collections that are changed.",
)
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    default=2000,
    show_default=True,
    help="Of both collections together; and a tenth as many words that are only begun.",
)
def agree_command(
    seed: int, quick: bool, json_path: Path | None, index: Path | None, queries: int
) -> None:
    """How often the root's answer is the one of a single big index, after documents changed."""
    count = 60 if quick else queries
    if index is not None:
        results = [agreement_on(index, seed, count, change=False)]
    else:
        results, share = [], -(-count // len(corpus.SOURCES))
        for source in corpus.SOURCES:
            with corpus.made(source, seed) as folder:
                results.append(agreement_on(folder, seed, share, change=True))
    result = agree.Results(tuple(results))
    publish("agree", seed, json_path, result, agree.show)
    if not result.good:
        sys.exit(1)


def agreement_on(index: Path, seed: int, count: int, *, change: bool) -> agree.Result:
    """Ask a fleet on an index, whose documents change while it runs, and one big index."""
    with fleet_on(index) as (fleet, _):
        if change:
            documents = Reference(index).documents()
            corpus.change(index, documents, random.Random(f"{seed}:changes"))
        reference = Reference(index)
        words = corpus.words_of(reference.manifest, reference.documents())
        rng = random.Random(f"{seed}:queries")
        queries, texts = every_kind(words, rng, count), begun(words, rng, count // 10)
        return realtime.run(agree.run(fleet, queries, texts, reference))


@click.command("chaos")
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
        queries = realtime.run(draw(fleet, folder, seed, 20 if quick else 200))
        result = realtime.run(chaos.run(fleet, queries, plan, seed))
    publish("chaos", seed, json_path, result, chaos.show)
    if not (result.unharmed and result.account.balanced):
        sys.exit(1)


@contextmanager
def _short_documents(count: int | None, seed: int) -> Iterator[Path | None]:
    """An index of so many, if any."""
    if count is None:
        yield None
        return
    try:
        with corpus.short_documents(count, seed) as folder:
            yield folder
    except (IndexDataError, FleetError) as error:
        raise Refused(str(error)) from error


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
        words = vocabulary(await client.texts(fields[1]), fields)
    return mixed(words, random.Random(f"{seed}:queries"), count)


COMMANDS = (leg_cost_command, search_command, agree_command, chaos_command)
"""In the order of the help."""

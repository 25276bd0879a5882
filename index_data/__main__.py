"""The command ``python -m index_data``: build an index, show it, ask its reference."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from index_data import balancing
from index_data.build import Built, build, no_progress
from index_data.build import Progress as Report
from index_data.manifest import (
    Manifest,
    generations,
    latest_generation,
    read_manifest,
)
from index_data.oracle import Oracle, words
from index_data.pydocs import pydocs
from index_data.query import BadQuery
from index_data.refusals import Refused, one_sentence
from index_data.sources import BadSource, Collection, fields_of, jsonl
from index_data.spool import BAD_LINES_KEPT

_REPORT_EVERY_S = 0.1
"""Ten times a second is as fast as a progress bar can be read."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Build the data that leaves serve, and look at it."""


_DIRECTORY = click.Path(path_type=Path, file_okay=False)


@main.command("build")
@click.option("--source", required=True, help="pydocs, or the path of a .jsonl file.")
@click.option("--out", "directory", required=True, type=_DIRECTORY, help="The index directory.")
@click.option("--shards", type=int, default=16, show_default=True)
@click.option("--id-field", default="id", show_default=True, help="JSONL: the member that names.")
@click.option("--text-fields", default="", help="JSONL: searched, by comma; title^3 weighs 3.")
@click.option("--keyword-fields", default="", help="JSONL: matched as a whole, by comma.")
@click.option("--strict", is_flag=True, help="Stop at the first bad line.")
@click.option("--progress/--no-progress", default=None, help="Default: if someone is watching.")
def build_command(
    source: str,
    directory: Path,
    shards: int,
    id_field: str,
    text_fields: str,
    keyword_fields: str,
    strict: bool,
    progress: bool | None,
) -> None:
    """Build a new generation; the ones that are there stay."""
    started = time.monotonic()
    shown = sys.stderr.isatty() if progress is None else progress
    with one_sentence():
        collection = _collection(source, id_field, text_fields, keyword_fields)
        with _reporting(shown=shown) as report:
            built = build(collection, directory, shards, strict=strict, progress=report)
    _tell_bad_lines(built)
    click.echo(f"Built {_summary(built.manifest)} in {time.monotonic() - started:.1f} s.")
    click.echo(str(built.folder))


def _collection(source: str, id_field: str, text: str, keyword: str) -> Collection:
    if source == "pydocs":
        if text or keyword:
            raise BadSource("The source pydocs has its own fields: leave --text-fields out.")
        return pydocs()
    if not source.endswith((".jsonl", ".ndjson")):
        raise BadSource(f"The source must be pydocs or a .jsonl file, not {source!r}.")
    return jsonl(Path(source), id_field, fields_of(_names(text), _names(keyword)))


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


@contextlib.contextmanager
def _reporting(*, shown: bool) -> Iterator[Report]:
    """Yield a report that draws a progress bar on stderr, or draws nothing."""
    if not shown:
        yield no_progress
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("reading", total=None)
        drawn = ("", 0.0)

        def report(phase: str, done: int, of: int | None) -> None:
            nonlocal drawn
            now = time.monotonic()
            if phase != drawn[0] or done == of or now - drawn[1] >= _REPORT_EVERY_S:
                drawn = (phase, now)
                bar.update(task, description=phase, completed=done, total=of)

        yield report


def _tell_bad_lines(built: Built) -> None:
    bad = built.manifest.source.bad
    if not bad:
        return
    reasons = ", ".join(f"{count} {reason}" for reason, count in bad.items())
    click.echo(f"{sum(bad.values())} bad, left out: {reasons}.", err=True)
    for line in built.bad_lines:
        click.echo(f"  {line.where}: {line.reason}: {line.detail}", err=True)
    if sum(bad.values()) > BAD_LINES_KEPT:
        click.echo(f"  ... the first {BAD_LINES_KEPT} are shown.", err=True)


def _summary(manifest: Manifest) -> str:
    size_mb = sum(shard.bytes for shard in manifest.shards) / 1e6
    return (
        f"{manifest.generation}: {manifest.documents} documents of {manifest.source.name} "
        f"in {len(manifest.shards)} shards, {size_mb:.1f} MB"
    )


@main.command()
@click.argument("directory", type=_DIRECTORY)
def show(directory: Path) -> None:
    """Print what an index directory holds."""
    with one_sentence():
        newest = read_manifest(latest_generation(directory))
        for name in generations(directory)[:-1]:
            click.echo(f"older   {_summary(read_manifest(directory / name))}")
    click.echo(f"newest  {_summary(newest)}")
    click.echo(f"source  {newest.source.kind}, left out: {newest.source.bad or 'nothing'}")
    click.echo(
        f"lengths of shards differ from the whole's by {newest.length_deviation:.4%} at most"
    )
    for field in newest.fields:
        tokens = sum(shard.tokens[field.name] for shard in newest.shards)
        default = ", default" if field.default else ""
        click.echo(
            f"field   {field.name}: {field.type}, weight {field.weight:g}{default}, {tokens} tokens"
        )
    for number, shard in enumerate(newest.shards):
        click.echo(f"shard   {number}: {shard.documents} documents, {shard.bytes} bytes")


@main.command()
@click.argument("directory", type=_DIRECTORY)
@click.option("--query", "tree", help="A query tree as JSON.")
@click.option("-q", "text", help="Plain words, any of them.")
@click.option("-k", type=click.IntRange(1, 10_000), default=10, show_default=True)
def oracle(directory: Path, tree: str | None, text: str | None, k: int) -> None:
    """Answer a query from one single index over the same documents."""
    if (tree is None) == (text is None):
        raise Refused("Give either --query or -q.")
    with one_sentence():
        query = words(text) if text is not None else _parsed(tree or "")
        total, hits = Oracle.open(latest_generation(directory)).search(query, k)
    answer = {"total": total, "hits": [{"id": name, "score": score} for name, score in hits]}
    click.echo(json.dumps(answer, indent=1))


def _parsed(tree: str) -> dict[str, Any]:
    try:
        value = json.loads(tree)
    except (ValueError, RecursionError) as error:
        raise BadQuery("--query", f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadQuery("--query", "must be a JSON object")
    return value


for command in (balancing.load_command, balancing.rebalance_command):
    main.add_command(command)


if __name__ == "__main__":
    main(prog_name="python -m index_data")

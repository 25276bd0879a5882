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
from index_data.files import file_collection, guessed_fields
from index_data.manifest import (
    Field,
    Manifest,
    generations,
    latest_generation,
    read_manifest,
)
from index_data.oracle import Oracle, words
from index_data.pruning import KEEP_MIN, prune
from index_data.pydocs import pydocs
from index_data.query import BadQuery
from index_data.refusals import Refused, one_sentence
from index_data.schema_file import DEFAULT_ID, SchemaFile, read_schema, written
from index_data.sources import BadSource, Collection, fields_of
from index_data.spool import BAD_LINES_KEPT
from index_data.update import missing_said, read_ids, update

_REPORT_EVERY_S = 0.1
"""Ten times a second is as fast as a progress bar can be read."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Build the data that leaves serve, and look at it."""


_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_FILE = click.Path(path_type=Path, dir_okay=False)
_SOURCE_HELP = "pydocs, or the path of a .jsonl, .csv or .parquet file."


@main.command("build")
@click.option("--source", required=True, help=_SOURCE_HELP)
@click.option("--out", "directory", required=True, type=_DIRECTORY, help="The index directory.")
@click.option("--shards", type=int, default=16, show_default=True)
@click.option("--schema", type=_FILE, help="What fields there are, as TOML; else it is guessed.")
@click.option("--id-field", help="The member that names a document; id by default.")
@click.option("--text-fields", default="", help="No schema: searched, by comma; title^3 weighs 3.")
@click.option("--keyword-fields", default="", help="No schema: matched as a whole, by comma.")
@click.option("--strict", is_flag=True, help="Stop at the first bad line.")
@click.option("--progress/--no-progress", default=None, help="Default: if someone is watching.")
def build_command(
    source: str,
    directory: Path,
    shards: int,
    schema: Path | None,
    id_field: str | None,
    text_fields: str,
    keyword_fields: str,
    strict: bool,
    progress: bool | None,
) -> None:
    """Build a new generation; the ones that are there stay."""
    started = time.monotonic()
    with one_sentence():
        said = _said(source, schema, id_field, text_fields, keyword_fields)
        collection = _collection(source, said)
        with _reporting(shown=_is_shown(progress)) as report:
            built = build(collection, directory, shards, strict=strict, progress=report)
    _tell_bad_lines(built)
    _tell_built(built, started)


def _said(
    source: str, schema: Path | None, id_field: str | None, text: str, keyword: str
) -> SchemaFile | None:
    """Return the schema of a file: given, named in options, or else guessed and shown."""
    by_options = bool(text or keyword)
    if source == "pydocs":
        if by_options or schema is not None or id_field is not None:
            raise BadSource("The source pydocs has its own fields: leave them and --schema out.")
        return None
    if schema is not None:
        if by_options or id_field is not None:
            raise BadSource("Give either --schema or the fields in options, not both.")
        return read_schema(schema)
    identity = id_field or DEFAULT_ID
    if by_options:
        return SchemaFile(identity, fields_of(_names(text), _names(keyword)))
    guessed = _guessed(source, identity)
    click.echo(f"The schema was guessed from the first documents:\n\n{written(guessed)}", err=True)
    return guessed


def _guessed(source: str, identity: str) -> SchemaFile:
    """Return the schema that a file seems to have, and say what speaks against it."""
    guess = guessed_fields(Path(source), identity)
    for doubt in guess.doubts:
        click.echo(doubt, err=True)
    return SchemaFile(identity, guess.fields)


def _collection(source: str, said: SchemaFile | None) -> Collection:
    if said is None:
        return pydocs()
    return file_collection(Path(source), said.id_field, said.fields)


@main.command("update")
@click.argument("directory", type=_DIRECTORY)
@click.option("--source", type=_FILE, help="A file of documents to replace or to add.")
@click.option("--id-field", help="The member that names a document; as built by default.")
@click.option("--delete", "listed", type=_FILE, help="A file of ids to delete, one a line.")
@click.option("--delete-id", "ids", multiple=True, help="An id to delete; may be given again.")
@click.option("--shards", type=int, help="As many as there are by default.")
@click.option("--strict", is_flag=True, help="Refuse an id to delete that is not there.")
@click.option("--progress/--no-progress", default=None, help="Default: if someone is watching.")
def update_command(
    directory: Path,
    source: Path | None,
    id_field: str | None,
    listed: Path | None,
    ids: tuple[str, ...],
    shards: int | None,
    strict: bool,
    progress: bool | None,
) -> None:
    """Build a new generation from the newest: documents replaced, added and deleted."""
    started = time.monotonic()

    def documents(manifest: Manifest) -> Collection:
        identity = id_field or manifest.source.id_field
        return file_collection(source or Path(), identity, manifest.fields)

    with one_sentence():
        unwanted = [*ids, *(read_ids(listed) if listed else ())]
        with _reporting(shown=_is_shown(progress)) as report:
            updated = update(
                directory,
                documents if source else None,
                unwanted,
                shards=shards,
                strict=strict,
                progress=report,
            )
    if updated.missing:
        click.echo(f"{missing_said(updated.missing)}.", err=True)
    click.echo(
        f"{updated.replaced} documents replaced, {updated.added} added, {updated.deleted} deleted."
    )
    _tell_built(updated.built, started)


@main.command("prune")
@click.argument("directory", type=_DIRECTORY)
@click.option("--keep", type=int, default=KEEP_MIN, show_default=True, help="How many stay.")
def prune_command(directory: Path, keep: int) -> None:
    """Remove all generations but the newest."""
    with one_sentence():
        removed = prune(directory, keep)
    for name in removed:
        click.echo(f"Removed {name}.")
    if not removed:
        click.echo(f"Nothing to remove: {keep} or fewer generations are there.")


@main.command("schema")
@click.option("--source", required=True, help="The path of a .jsonl, .csv or .parquet file.")
@click.option("--id-field", default=DEFAULT_ID, show_default=True)
def schema_command(source: str, id_field: str) -> None:
    """Guess the schema of a file from its first documents and print it as TOML, to be edited."""
    with one_sentence():
        guessed = _guessed(source, id_field)
    click.echo(written(guessed), nl=False)


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _is_shown(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


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


def _tell_built(built: Built, started: float) -> None:
    click.echo(f"Built {_summary(built.manifest)} in {time.monotonic() - started:.1f} s.")
    click.echo(str(built.folder))


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
    updates = f", updated {newest.source.updates} times" if newest.source.updates else ""
    left_out = newest.source.bad or "nothing"
    click.echo(f"source  {newest.source.kind}{updates}, left out: {left_out}")
    click.echo(
        f"lengths of shards differ from the whole's by {newest.length_deviation:.4%} at most"
    )
    for field in newest.fields:
        click.echo(f"field   {_described(field, newest)}")
    for number, shard in enumerate(newest.shards):
        click.echo(f"shard   {number}: {shard.documents} documents, {shard.bytes} bytes")


def _described(field: Field, manifest: Manifest) -> str:
    tokens = sum(shard.tokens[field.name] for shard in manifest.shards)
    several = ", several values" if field.multiple else ""
    if not field.scored:
        return f"{field.name}: {field.type}{several}, {tokens} values"
    default = ", default" if field.default else ""
    if field.type == "text":
        several += f", {field.analysis.language}"
    return f"{field.name}: {field.type}{several}, weight {field.weight:g}{default}, {tokens} tokens"


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

"""The commands ``load`` and ``rebalance``: measure what shards cost, and place them by it."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec

from index_data.load import LOAD_BYTES_MAX, BadLoadFile, LeafLoad, LoadFile, measured, read_load
from index_data.manifest import (
    IndexDataError,
    Manifest,
    generations,
    read_manifest,
    replace_whole,
)
from index_data.placement import BY_THE_RULE, BadPlacement, holders
from index_data.placement_file import FORMAT_VERSION, PlacementFile, read_placement, write_placement
from index_data.rebalance import RATIO, Load, Proposal, Table, chosen_of, propose
from index_data.refusals import one_sentence

ANSWER_S: Final = 10.0
"""A leaf that has not answered by then is not there."""


@click.command("load")
@click.argument("urls", metavar="URL...", nargs=-1, required=True)
@click.option(
    "--seconds",
    type=click.FloatRange(0.0, 86_400.0),
    default=60.0,
    show_default=True,
    help="How long to measure; 0: since the leaves started.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="The file to write.",
)
@click.option("--collection", help="Of which collection; of the first unless given.")
def load_command(urls: tuple[str, ...], seconds: float, out: Path, collection: str | None) -> None:
    """Measure what each shard costs: URL of every leaf of the fleet."""
    with one_sentence():
        if not out.parent.is_dir():  # before the measuring, not after it
            raise BadLoadFile(f"The folder {out.parent} does not exist.")
        before = [_ask(url) for url in urls] if seconds else []
        time.sleep(seconds)
        load = measured(before, [_ask(url) for url in urls], collection)
        replace_whole(out, msgspec.json.format(msgspec.json.encode(load), indent=1) + b"\n")
    click.echo(
        f"{sum(load.work_s.values()):.3g} s of work on {len(load.work_s)} shards of "
        f"{load.generation}: {out}"
    )


def _ask(url: str) -> LeafLoad:
    if not url.startswith(("http://", "https://")):
        raise BadLoadFile(f"{url} is not the URL of a leaf.")
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/load", timeout=ANSWER_S) as answer:  # noqa: S310 - checked above
            return msgspec.json.decode(answer.read(LOAD_BYTES_MAX), type=LeafLoad)
    except (OSError, http.client.HTTPException) as error:
        raise BadLoadFile(f"The leaf at {url} does not say its load: {error}.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLoadFile(f"{url} is not a leaf: {error}.") from error


@click.command("rebalance")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--load",
    "load_file",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    help="What shards cost, as the command load writes it.",
)
@click.option(
    "--ratio",
    type=float,
    default=RATIO,
    show_default=True,
    help="No leaf is to carry more than so many times the mean.",
)
@click.option("--write", is_flag=True, help="Write the placement; leaves follow it.")
def rebalance_command(directory: Path, load_file: Path, ratio: float, write: bool) -> None:  # noqa: FBT001 - click passes it by name
    """Propose which shards to copy or move, from measured load."""
    with one_sentence():
        given = read_load(load_file)
        manifest = _manifest_of(directory, given)
        rule = _table(given, manifest, BY_THE_RULE)
        load = _load_of(given, manifest, load_file)
        folder = directory / manifest.generation
        placement = read_placement(folder, len(manifest.shards))
        chosen = placement.for_fleet(given.leaves, given.replicas) if placement else BY_THE_RULE
        now = _table(given, manifest, chosen)
        proposal = propose(load, now, replicas=given.replicas, ratio=ratio)
        _show(proposal, load, ratio)
        if not proposal.changes:
            click.echo("nothing to change")
        elif write:
            changed = chosen_of(proposal.after, rule)
            write_placement(folder, _file(given, changed))
            click.echo(f"written; leaves that serve {given.generation} follow within seconds")
        else:
            click.echo("nothing is written without --write")


def _manifest_of(directory: Path, given: LoadFile) -> Manifest:
    if given.generation not in generations(directory):
        raise IndexDataError(
            f"generation: there is no {given.generation[:100]!r} in {directory}; measure again."
        )
    return read_manifest(directory / given.generation)


def _load_of(given: LoadFile, manifest: Manifest, path: Path) -> Load:
    shards = len(manifest.shards)
    for shard in given.work_s:
        if not 0 <= shard < shards:
            raise BadLoadFile(f"{path}: work_s: there is no shard {shard}, but {shards} from 0.")
    work_s = [given.work_s.get(shard, 0.0) for shard in range(shards)]
    sizes = [entry.bytes for entry in manifest.shards]
    return Load(work_s, sizes, given.leaves, given.domains)


def _table(given: LoadFile, manifest: Manifest, chosen: Mapping[int, Sequence[int]]) -> Table:
    try:
        return holders(
            shards=len(manifest.shards),
            leaves=given.leaves,
            replicas=given.replicas,
            chosen=chosen,
        )
    except BadPlacement as error:
        raise BadLoadFile(f"The load: {error}.") from error


def _file(given: LoadFile, chosen: Mapping[int, tuple[int, ...]]) -> PlacementFile:
    return PlacementFile(
        FORMAT_VERSION, given.generation, given.leaves, given.replicas, dict(chosen)
    )


def _show(proposal: Proposal, load: Load, ratio: float) -> None:
    """Print what every leaf carries before and after, and what becomes of which shard."""
    mean = sum(load.work_s) / load.leaves
    before, after = (load.of_leaves(table) for table in (proposal.before, proposal.after))
    click.echo("leaf    before     after   (load over the mean)")
    for leaf, (old, new) in enumerate(zip(before, after, strict=True)):
        click.echo(f"{leaf:<6}  {_over(old, mean):>6}    {_over(new, mean):>6}")
    for change in proposal.changes:
        held, keep = proposal.before[change.shard], proposal.after[change.shard]
        words = [
            f"{verb} {', '.join(f'leaf {leaf}' for leaf in leaves)}"
            for verb, leaves in (("to", change.added), ("off", change.removed))
            if leaves
        ]
        click.echo(
            f"shard {change.shard}: {' '.join(words)}; "
            f"{len(held)} -> {len(keep)} replicas, {load.work_s[change.shard]:.3g} s of work"
        )
    moved = sum(load.size_bytes[change.shard] * len(change.added) for change in proposal.changes)
    click.echo(
        f"fullest leaf over the mean: {load.ratio(proposal.before):.2f} -> "
        f"{load.ratio(proposal.after):.2f} (wanted: {ratio:g}"
        f"{'' if proposal.reached else ', not reached'}); "
        f"{sum(map(len, proposal.before))} -> {sum(map(len, proposal.after))} copies; "
        f"{moved} bytes to take over"
    )


def _over(carried: float, mean: float) -> str:
    return f"{carried / mean:.2f}" if mean else "-"

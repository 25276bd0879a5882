"""Building a generation: read once, deal, write each shard, rename into place.

    .building-<pid>/     everything is written here ...
        spool            the accepted sources, one after the other, as JSON
        shard-00000/ ...
    <generation>/        ... and renamed to this when it is complete

A build that fails or is killed leaves the generations beside it as they are. What a killed
one left behind is removed by the next.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from index_data.analysis import ANALYSER
from index_data.manifest import (
    BUILDING_PREFIX,
    FORMAT_VERSION,
    STATISTICS_FILE,
    Field,
    IndexDataError,
    Manifest,
    ShardEntry,
    Source,
    encode,
    generations,
    sha256_of,
    shard_folder,
    write_manifest,
)
from index_data.partition import RULE, deal, length_deviation
from index_data.schema import tantivy_schema
from index_data.segment import frequencies_of, open_segment, write_segment
from index_data.sources import BadLine, Collection, Document, nothing_found
from index_data.spool import Spool
from index_data.statistics import write_statistics

SHARDS_MAX: Final = 100_000
"""As many as placement deals with."""

FLOAT32_MARGIN: Final = 1e-6
"""tantivy adds scores up in 32 bits; the promised bound covers that too."""

_SPOOL_FILE: Final = "spool"
_NAME_FORMAT: Final = "%Y%m%d-%H%M%S"

Progress = Callable[[str, int, int | None], None]
"""Told (what is being done, how many are done, of how many if known), often."""


class BuildRefused(IndexDataError):
    """The build cannot be done as asked; nothing is left behind."""


class BadLineFound(IndexDataError):
    """A strict build met a bad line; nothing is left behind."""


class Built(msgspec.Struct, frozen=True):
    """A finished build: the folder, its manifest, and the first of the bad lines."""

    folder: Path
    manifest: Manifest
    bad_lines: tuple[BadLine, ...]


def no_progress(phase: str, done: int, of: int | None) -> None:
    """Show nothing."""


def build(
    collection: Collection,
    directory: Path,
    shards: int,
    *,
    strict: bool = False,
    after: str | None = None,
    progress: Progress = no_progress,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Built:
    """Build a generation of an index directory and return it.

    ``after`` names the generation that has to be the newest still when this one is published.
    Raises BuildRefused, BadLineFound, TooLarge, BadSource.
    """
    _check_shards(shards)
    is_new = not directory.exists()
    building = begin(directory)
    try:
        spool = _gather(collection, building / _SPOOL_FILE, progress, strict=strict)
        entries = _write_shards(spool, building, shards, progress)
        spool.path.unlink()
        manifest = _describe(collection, spool, entries, building)
        _check_fields(collection, manifest)
        with _only_one(directory):
            _check_newest(directory, after)
            folder = directory / _name(manifest, directory, now())
            manifest = msgspec.structs.replace(manifest, generation=folder.name)
            write_manifest(building, manifest)
            _publish(building, folder)
    except BaseException:
        shutil.rmtree(building, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):  # it is not empty: another build is under way
                directory.rmdir()
        raise
    return Built(folder, manifest, tuple(spool.bad_lines))


def _check_shards(shards: int) -> None:
    if not 1 <= shards <= SHARDS_MAX:
        raise BuildRefused(f"The number of shards must be from 1 to {SHARDS_MAX}, not {shards}.")


def _check_fields(collection: Collection, manifest: Manifest) -> None:
    """Refuse a field in which nothing can ever be found, where it may be a slip of the pen."""
    for field in manifest.fields if collection.fields_by_hand else ():
        if not any(entry.tokens[field.name] for entry in manifest.shards):
            raise BuildRefused(f"No document has anything to search in a field {field.name!r}.")


def _check_newest(directory: Path, after: str | None) -> None:
    """Refuse to supersede what was published meanwhile, and would be lost."""
    newest = generations(directory)[-1:]
    if after is not None and newest != [after]:
        raise BuildRefused(
            f"{''.join(newest) or 'Nothing'} is the newest generation now, and not {after}: "
            "do it once more."
        )


# --- beside, then into place -------------------------------------------------------------


@contextlib.contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Let one process after the other name and publish; the lock ends with its process."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def begin(directory: Path) -> Path:
    """Return a new folder of this process's in an index directory, removing those of processes
    that died. No generation has its name. Raises BuildRefused.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for leftover in directory.glob(f"{BUILDING_PREFIX}*"):
            if not _is_running(leftover.name.removeprefix(BUILDING_PREFIX)):
                shutil.rmtree(leftover, ignore_errors=True)
        building = directory / f"{BUILDING_PREFIX}{os.getpid()}"
        building.mkdir()
    except OSError as error:
        raise BuildRefused(f"Cannot build in {directory}: {error.strerror}.") from error
    return building


def _is_running(pid_text: str) -> bool:
    """Whether a build's process, other than this one, is still there."""
    if not pid_text.isdecimal() or int(pid_text) == os.getpid():
        return False
    try:
        os.kill(int(pid_text), 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _publish(building: Path, folder: Path) -> None:
    _sync(building)
    building.rename(folder)
    _sync(folder.parent)


def _sync(folder: Path) -> None:
    """Wait until a folder's entries are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems cannot; the rename still holds
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _name(manifest: Manifest, directory: Path, now: datetime) -> str:
    """Return a name that sorts after every generation there is, even if clocks went back."""
    digest = hashlib.sha256(encode(manifest)).hexdigest()[:4]
    latest = generations(directory)[-1:]
    if latest:
        newest = datetime.strptime(latest[0][:15], _NAME_FORMAT).replace(tzinfo=UTC)
        now = max(now, newest + timedelta(seconds=1))
    return f"{now:{_NAME_FORMAT}}-{digest}"


# --- reading the source ------------------------------------------------------------------


def _gather(collection: Collection, path: Path, progress: Progress, *, strict: bool) -> Spool:
    """Read the whole source. Raises BadLineFound and BuildRefused."""
    spool = Spool(path, collection.fields)
    with path.open("wb") as file:
        for number, found in enumerate(collection.read(), start=1):
            _take(found, spool, file, strict=strict)
            progress("reading", number, None)
    if not spool.ids:
        first = spool.bad_lines[0] if spool.bad_lines else None
        raise BuildRefused(nothing_found(collection.name, sum(spool.bad.values()), first))
    spool.sort()
    return spool


def _take(found: Document | BadLine, spool: Spool, file: BinaryIO, *, strict: bool) -> None:
    if isinstance(found, Document) and spool.has(found.id):
        found = BadLine(found.where, "duplicate id", found.id)
    if isinstance(found, Document):
        spool.add(found, file)
        return
    if strict:
        raise BadLineFound(f"{found.where}: {found.reason}: {found.detail}.")
    spool.reject(found)


# --- writing -----------------------------------------------------------------------------


def _write_shards(
    spool: Spool, building: Path, shards: int, progress: Progress
) -> tuple[ShardEntry, ...]:
    if shards > len(spool.ids):
        raise BuildRefused(f"{shards} shards need more documents than {len(spool.ids)}.")
    progress("dealing", 0, None)
    dealt: list[list[int]] = [[] for _ in range(shards)]
    for ordinal, shard in enumerate(deal(spool.scored_lengths, len(spool.ids), shards)):
        dealt[shard].append(ordinal)
    schema = tantivy_schema(spool.fields)
    entries = []
    for shard, ordinals in enumerate(dealt):
        progress("writing shards", shard, shards)
        folder = building / shard_folder(shard)
        files = write_segment(folder, schema, spool.fields, spool.rows(ordinals))
        entries.append(_entry(spool, ordinals, folder, files))
    progress("writing shards", shards, shards)
    return tuple(entries)


def _entry(spool: Spool, ordinals: list[int], folder: Path, files: dict[str, str]) -> ShardEntry:
    return ShardEntry(
        documents=len(ordinals),
        tokens={
            field.name: sum(lengths[ordinal] for ordinal in ordinals)
            for field, lengths in zip(spool.fields, spool.lengths, strict=True)
        },
        bytes=sum((folder / name).stat().st_size for name in files),
        files=files,
    )


def _describe(
    collection: Collection, spool: Spool, entries: tuple[ShardEntry, ...], building: Path
) -> Manifest:
    """Write the statistics and return the manifest, its generation not yet named."""
    path = building / STATISTICS_FILE
    tokens = {
        field.name: sum(lengths) for field, lengths in zip(spool.fields, spool.lengths, strict=True)
    }
    frequencies = _frequencies(building, len(entries), spool.fields)
    write_statistics(path, len(spool.ids), tokens, frequencies)
    names = [field.name for field in spool.fields if field.scored]
    per_shard = [[entry.tokens[name] for entry in entries] for name in names]
    deviation = length_deviation(per_shard, [entry.documents for entry in entries])
    return Manifest(
        format=FORMAT_VERSION,
        generation="",
        source=_source(collection, spool),
        fields=spool.fields,
        analyser=ANALYSER,
        partition=RULE,
        length_deviation=deviation + FLOAT32_MARGIN,
        documents=len(spool.ids),
        statistics_sha256=sha256_of(path),
        shards=entries,
    )


def _source(collection: Collection, spool: Spool) -> Source:
    bad = Counter(collection.bad) + Counter(spool.bad)
    return Source(
        collection.kind,
        collection.name,
        dict(sorted(bad.items())),
        collection.id_field,
        collection.updates,
    )


def _frequencies(
    building: Path, shards: int, fields: tuple[Field, ...]
) -> dict[str, dict[str, int]]:
    """Add up the document frequencies of all shards, by field and token."""
    totals: dict[str, dict[str, int]] = {field.name: {} for field in fields if field.scored}
    for shard in range(shards):
        searcher = open_segment(building / shard_folder(shard))
        for field, total in totals.items():
            for token, count in frequencies_of(searcher, field):
                total[token] = total.get(token, 0) + count
    return totals

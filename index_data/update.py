"""A generation from another one: documents replaced, added and deleted, all else as it was.

The documents of a source take the place of those with their ids, or are new; those that are
deleted are gone. What comes of it is what a build of the same documents would be, byte for
byte: shards are dealt anew, and all statistics are counted anew. The schema stays.

It is done as a whole or not at all. A source that has one bad line is refused: the document
that it was to replace would stay as it was, and nobody would know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import msgspec
import orjson

from index_data.build import Built, Progress, build, no_progress
from index_data.manifest import (
    IndexDataError,
    Manifest,
    latest_generation,
    read_manifest,
    shard_folder,
    verify_shard,
)
from index_data.segment import rows_of
from index_data.sources import BadLine, BadSource, Collection, Document
from index_data.values import KEYWORD_BYTES_MAX, keyword_of

MISSING_SHOWN: Final = 5
"""Enough to see whether ids were written in another way."""


class UpdateRefused(IndexDataError):
    """The documents cannot be changed as asked; nothing is left behind."""


class Updated(msgspec.Struct, frozen=True):
    """A finished update: what was built, and how many documents were replaced, added, deleted.

    ``missing`` are the ids that were to be deleted and are not there, ascending.
    """

    built: Built
    replaced: int
    added: int
    deleted: int
    missing: tuple[str, ...]


class _Changed:
    """The documents of a generation as they are after a change; counts once they are read."""

    def __init__(
        self, generation: Path, manifest: Manifest, source: Collection | None, deleted: set[str]
    ) -> None:
        self._generation = generation
        self._shards = len(manifest.shards)
        self._source = source
        self._deleted = deleted
        self.given: set[str] = set()
        self.replaced = self.stay = 0
        self.found: set[str] = set()

    def read(self) -> Iterator[Document | BadLine]:
        """Yield the documents of the source, then those of the generation that stay."""
        self.given, self.replaced, self.stay, self.found = set(), 0, 0, set()
        for document in self._source.read() if self._source else ():
            if isinstance(document, Document):
                self._check(document)
                self.given.add(document.id)
            yield document
        for shard in range(self._shards):
            for _, identity, source in rows_of(self._generation / shard_folder(shard)):
                if identity in self._deleted:
                    self.found.add(identity)
                elif identity in self.given:
                    self.replaced += 1
                else:
                    self.stay += 1
                    yield Document(identity, orjson.loads(source))

    def _check(self, document: Document) -> None:
        if document.id in self._deleted:
            raise UpdateRefused(
                f"{document.where}: the document {document.id!r:.80} is to be deleted as well."
            )


def update(
    directory: Path,
    source: Callable[[Manifest], Collection] | None,
    deleted: Iterable[str] = (),
    *,
    shards: int | None = None,
    strict: bool = False,
    progress: Progress = no_progress,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Updated:
    """Build a generation from the newest one of an index directory and return it.

    ``source`` makes the collection of new documents for the schema in a manifest. ``deleted``
    are ids; with ``strict`` one that is not there is refused. ``shards`` None: as many as there
    are. Raises UpdateRefused, and what ``build`` and ``latest_generation`` raise; Damaged where
    the newest generation is.
    """
    generation = latest_generation(directory)
    manifest = read_manifest(generation)
    for shard, entry in enumerate(manifest.shards):
        verify_shard(generation, shard, entry)
    unwanted = set(deleted)
    if source is None and not unwanted:
        raise UpdateRefused("Nothing is to be changed: name a source, or ids to delete.")
    changed = _Changed(generation, manifest, source(manifest) if source else None, unwanted)

    def read() -> Iterator[Document | BadLine]:
        yield from changed.read()
        if strict and (missing := sorted(unwanted - changed.found)):
            raise UpdateRefused(f"{missing_said(missing)}.")
        if not changed.given and not changed.stay:
            raise UpdateRefused("No document would be left: build another index instead.")

    was = manifest.source
    documents = Collection(
        was.kind,
        was.name,
        manifest.fields,
        read,
        id_field=was.id_field,
        updates=was.updates + 1,
        bad=was.bad,
    )
    built = build(
        documents,
        directory,
        shards or len(manifest.shards),
        strict=True,
        after=generation.name,
        progress=progress,
        now=now,
    )
    return Updated(
        built,
        replaced=changed.replaced,
        added=len(changed.given) - changed.replaced,
        deleted=len(changed.found),
        missing=tuple(sorted(unwanted - changed.found)),
    )


def missing_said(missing: Iterable[str]) -> str:
    """Return a sentence, without its full stop, about ids that are not there."""
    ids = list(missing)
    first = ", ".join(repr(identity)[:80] for identity in islice(ids, MISSING_SHOWN))
    more = ", ..." if len(ids) > MISSING_SHOWN else ""
    return f"{len(ids)} of the ids to delete are not there: {first}{more}"


# --- ids in a file -----------------------------------------------------------------------


def read_ids(path: Path) -> Iterator[str]:
    """Yield the ids in a file of one id a line; blank lines are skipped. Raises BadSource."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(_lines(file), start=1):
                if line:
                    yield _id_in(line, f"{path.name}, line {number}")
    except OSError as error:
        raise BadSource(f"The ids in {path} cannot be read: {error.strerror}.") from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines without their ends, what is far too long for an id cut."""
    most = 2 * KEYWORD_BYTES_MAX
    while line := file.readline(most):
        yield line.rstrip(b"\r\n")
        while len(line) == most and not line.endswith(b"\n"):
            line = file.readline(most)


def _id_in(line: bytes, where: str) -> str:
    try:
        identity = keyword_of(line.decode())
    except UnicodeDecodeError as error:
        raise BadSource(f"{where}: an id is UTF-8, and byte {error.start} is not.") from error
    if identity is None:
        raise BadSource(f"{where}: an id has at most {KEYWORD_BYTES_MAX} bytes.")
    return identity

"""What a generation consists of: the one description that builder, leaf and root share.

A generation is an immutable folder inside an index directory:

    DIR/20261130-104500-3f2a/
        manifest.json      everything below, written last
        statistics.bin     term statistics of the whole (``index_data.statistics``)
        shard-00000/       one tantivy index of one segment
        shard-00001/ ...

It is written as ``.building-<pid>`` beside and renamed into place, so a folder with a
generation's name is complete. This module reads and writes the manifest and knows nothing
of tantivy.

    IndexDataError          the operator can act on it; one sentence
    +-- NoIndex             nothing has been built here
    +-- HalfBuilt           a build began here and none was ever finished
    +-- BadManifest         a manifest that cannot be read, or not by this version
    +-- Damaged             bytes on disk are not the ones that were written
    +-- BadSource           documents cannot be read from there (``sources``)
    +-- BadSchema           a schema file does not say what fields there are (``schema_file``)
    +-- BuildRefused        a build cannot be done as asked (``build``)
    +-- UpdateRefused       documents cannot be changed as asked (``update``)
    +-- PruneRefused        old generations cannot be removed as asked (``pruning``)
    +-- BadLineFound        a strict build met a bad line (``build``)
    +-- TooLarge            a shard would not fit in one segment (``segment``)

What a caller got wrong is a ValueError of its own: ``query.BadQuery``,
``placement.BadPlacement``.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec

FORMAT_VERSION: Final = 2
MANIFEST_FILE: Final = "manifest.json"
STATISTICS_FILE: Final = "statistics.bin"
BUILDING_PREFIX: Final = ".building-"

MANIFEST_BYTES_MAX: Final = 64 * 1024 * 1024
"""A thousand shards need about 1 MiB; anything near this is not a manifest."""

_GENERATION_NAME: Final = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_HASH_CHUNK_BYTES: Final = 1 << 20


class IndexDataError(Exception):
    """Built data cannot be made or used as asked; the message is one sentence for people."""


class NoIndex(IndexDataError):
    """The directory holds no generation."""


class HalfBuilt(IndexDataError):
    """A build was begun in the directory and no generation is complete."""


class BadManifest(IndexDataError):
    """The manifest is missing, unreadable, or of another format version."""


class Damaged(IndexDataError):
    """A file is missing or its checksum differs from the manifest's."""


FieldType = Literal["text", "keyword", "integer", "float", "date", "boolean"]
FIELD_TYPES: Final[tuple[FieldType, ...]] = get_args(FieldType)


class Analysis(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How the text of a field becomes tokens, beyond what is done to all text.

    ``language`` names the stemmer and the list of stop words, or is ``none``.
    """

    language: str = "english"
    stop_words: bool = False
    """Whether the commonest words of the language are left out."""
    fold_accents: bool = True


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field of the schema. ``weight`` multiplies its score when a query names no field.

    ``analysis`` is that of a text field and says nothing of others.
    """

    name: str
    type: FieldType
    weight: float = 1.0
    default: bool = True
    """Whether a query that names no field looks here, if its values are scored."""
    multiple: bool = False
    """Whether a document may have a list of values."""
    analysis: Analysis = Analysis()

    @property
    def scored(self) -> bool:
        """Whether its values are terms with statistics: text and keywords."""
        return self.type in {"text", "keyword"}


class GenerationCard(msgspec.Struct, frozen=True):
    """What a root has to know of a generation; every leaf that holds it says the same.

    ``documents[i]`` counts the documents of shard i. ``length_deviation`` bounds how far the
    average field length of any shard is from the whole's, relatively: with global term
    statistics a phase-one score is within that factor of the final one.
    """

    generation: str
    documents: tuple[int, ...]
    fields: tuple[Field, ...]
    length_deviation: float


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the documents came from. ``name`` says which, without the path it had."""

    kind: str
    name: str
    bad: dict[str, int] = {}
    """Inputs of the build that became no document: how many, by reason."""
    id_field: str = "id"
    """The member that names a document in its source."""
    updates: int = 0
    """How many times the documents have been changed since they were built."""


class ShardEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One shard: its documents, tokens by field, bytes on disk, and SHA-256 by file name.

    A value that is no text is one token.
    """

    documents: int
    tokens: dict[str, int]
    bytes: int
    files: dict[str, str]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole description. Equal input gives equal bytes apart from ``generation``."""

    format: int
    generation: str
    source: Source
    fields: tuple[Field, ...]
    analyser: str
    partition: str
    length_deviation: float
    documents: int
    statistics_sha256: str
    shards: tuple[ShardEntry, ...]

    def __post_init__(self) -> None:
        """Refuse what no build writes."""
        if not self.shards:
            raise ValueError("it has no shards")
        if sum(shard.documents for shard in self.shards) != self.documents:
            raise ValueError("the documents of its shards do not add up")
        if not 0.0 <= self.length_deviation < float("inf"):
            raise ValueError("length_deviation is out of range")

    def card(self) -> GenerationCard:
        """Return what a root needs of it."""
        return GenerationCard(
            generation=self.generation,
            documents=tuple(shard.documents for shard in self.shards),
            fields=self.fields,
            length_deviation=self.length_deviation,
        )


def shard_folder(shard: int) -> str:
    """Return the name of a shard's folder inside its generation."""
    return f"shard-{shard:05d}"


def encode(manifest: Manifest) -> bytes:
    """Return the manifest's bytes: JSON, sorted keys, for people to read and diff."""
    return msgspec.json.format(msgspec.json.encode(manifest, order="deterministic"), indent=1)


def write_manifest(generation: Path, manifest: Manifest) -> None:
    """Write the manifest through to the disk."""
    write_through(generation / MANIFEST_FILE, encode(manifest) + b"\n")


def read_manifest(generation: Path) -> Manifest:
    """Read a generation's manifest.

    Raises BadManifest.
    """
    path = generation / MANIFEST_FILE
    try:
        if path.stat().st_size > MANIFEST_BYTES_MAX:
            raise BadManifest(f"The manifest of {generation} is too large to be one.")
        raw = path.read_bytes()
    except OSError as error:
        raise BadManifest(
            f"The manifest of {generation} cannot be read: {error.strerror}."
        ) from error
    manifest = _decode(raw, generation)
    if manifest.generation != generation.name:
        raise BadManifest(f"The manifest of {generation} belongs to {manifest.generation}.")
    return manifest


def _decode(raw: bytes, generation: Path) -> Manifest:
    try:
        version = msgspec.json.decode(raw, type=_Version).format
        if version != FORMAT_VERSION:
            raise BadManifest(
                f"The manifest of {generation} has format {version}; "
                f"this version reads format {FORMAT_VERSION}: build the index again."
            )
        return msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadManifest(f"The manifest of {generation} is not valid: {error}.") from error


class _Version(msgspec.Struct):
    format: int


def generations(directory: Path) -> list[str]:
    """Return the names of the complete generations of an index directory, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(
        entry.name
        for entry in directory.iterdir()
        if is_generation_name(entry.name) and (entry / MANIFEST_FILE).is_file()
    )


def is_generation_name(name: str) -> bool:
    """Whether a folder of this name is a generation."""
    return _GENERATION_NAME.fullmatch(name) is not None


def latest_generation(directory: Path) -> Path:
    """Return the folder of the newest complete generation.

    Raises NoIndex or HalfBuilt.
    """
    complete = generations(directory)
    if complete:
        return directory / complete[-1]
    if directory.is_dir() and any(_is_begun(entry.name) for entry in directory.iterdir()):
        raise HalfBuilt(
            f"The index in {directory} is half built: wait for its build, or build it again."
        )
    raise NoIndex(f"There is no index in {directory}: build one with `python -m index_data build`.")


def _is_begun(name: str) -> bool:
    return name.startswith(BUILDING_PREFIX) or is_generation_name(name)


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal.

    Raises Damaged when it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_HASH_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise Damaged(f"{path.name} cannot be read: {error.strerror}.") from error
    return digest.hexdigest()


def verify(path: Path, sha256: str) -> None:
    """Raise Damaged unless the file has this checksum."""
    if sha256_of(path) != sha256:
        raise Damaged(f"{path.name} has a wrong checksum.")


def verify_shard(generation: Path, shard: int, entry: ShardEntry) -> None:
    """Raise Damaged unless every file of a shard is the one that was written."""
    for name, sha256 in sorted(entry.files.items()):
        verify(generation / shard_folder(shard) / name, sha256)


def write_through(path: Path, data: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_whole(path: Path, data: bytes) -> None:
    """Write a file beside and rename it into place: whoever reads sees the old or the new one."""
    beside = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        write_through(beside, data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)

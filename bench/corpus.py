"""The index an experiment runs on: a given one, or one built for it and removed after."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import orjson

from bench import many_scripts
from bench.fleet import FleetError
from bench.queries import Vocabulary, vocabulary
from bench.selections import typed
from index_data.manifest import Manifest, latest_generation, read_manifest

LETTERS: Final = "abcdefghiklmnoprstuvw"
WORDS: Final = 20_000
"""Of a made-up language: the n-th is n times as rare as the first (G. K. Zipf)."""

LENGTHS: Final = (5, 20)
"""Words of a short document, from and to."""

TITLE_WORDS: Final = 4
KINDS: Final = 50
"""The lower its number, the commoner a kind."""

YEARS: Final = (1970, 2024)

BUILD_S_MAX: Final = 300
"""Building the documentation of a large environment takes a tenth of this."""


CHANGED: Final = 0.05
"""Share of documents that a change deletes, and that it replaces."""

TEXTS_MAX: Final = 10_000
"""Documents whose words queries are made of."""

SOURCES: Final = ("pydocs", "scripts")
"""What can be built here without a file: documentation, and what ``bench.many_scripts`` makes."""

SCRIPTS_DOCUMENTS: Final = 5000


@contextlib.contextmanager
def prepared(
    index: Path | None, source: str = "pydocs", shards: int = 16, options: Sequence[str] = ()
) -> Iterator[Path]:
    """An index directory: ``index`` itself, or a fresh build of ``source``."""
    if index is not None:
        latest_generation(index)
        yield index
        return
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        build(Path(folder), source, shards, *options)
        yield Path(folder)


@contextlib.contextmanager
def short_documents(count: int, seed: int, shards: int = 16) -> Iterator[Path]:
    """An index of so many short documents that the seed decides: two texts, one that says of
    which of some KINDS it is, a price and a year.
    """
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        source = Path(folder, "documents.jsonl")
        with source.open("wb") as file:
            for document in _drawn(count, random.Random(f"{seed}:documents")):
                file.write(orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE))
        with prepared(None, str(source), shards, ("--id-field", "id")) as index:
            yield index


def _drawn(count: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    words = ["".join(rng.choices(LETTERS, k=rng.randint(3, 9))) for _ in range(WORDS)]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for number in range(count):
        text = rng.choices(words, cum_weights=weights, k=rng.randint(*LENGTHS))
        yield {
            "id": f"d{number:08d}",
            "title": " ".join(text[:TITLE_WORDS]),
            "body": " ".join(text[TITLE_WORDS:]),
            "kind": f"kind {int(KINDS * rng.random() ** 2):02d}",
            "price": round(rng.random() * 1000, 2),
            "year": rng.randint(*YEARS),
        }


@contextlib.contextmanager
def made(source: str, seed: int, shards: int = 16) -> Iterator[Path]:
    """An index directory with a fresh build of one of SOURCES; gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        index = Path(folder) / "index"
        if source == "scripts":
            file, schema = many_scripts.write(Path(folder), SCRIPTS_DOCUMENTS, seed)
            build(index, str(file), shards, "--schema", str(schema))
        else:
            build(index, source, shards)
        yield index


def change(
    index: Path, documents: Sequence[tuple[str, Mapping[str, Any]]], rng: random.Random
) -> None:
    """Delete and replace a share of the documents of an index, as a person would."""
    replaced, deleted = changes(documents, rng)
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        source, gone = write_changes(Path(folder), replaced, deleted)
        _run("update", str(index), "--source", str(source), "--delete", str(gone), "--strict")


def changes(
    documents: Sequence[tuple[str, Mapping[str, Any]]], rng: random.Random
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return what becomes of some documents, the source of another, and the ids of some that go."""
    count = round(CHANGED * len(documents))
    drawn = rng.sample(range(len(documents)), 3 * count)
    replaced = [
        {**documents[other][1], "id": documents[one][0]}
        for one, other in zip(drawn[:count], drawn[count : 2 * count], strict=True)
    ]
    return replaced, [documents[one][0] for one in drawn[2 * count :]]


def write_changes(
    folder: Path, replaced: Sequence[Mapping[str, Any]], deleted: Sequence[str]
) -> tuple[Path, Path]:
    """Write changes into a folder, as files that an update reads."""
    source, gone = folder / "changed.jsonl", folder / "gone.txt"
    source.write_text("".join(f"{json.dumps(one)}\n" for one in replaced), encoding="utf-8")
    gone.write_text("".join(f"{identity}\n" for identity in deleted), encoding="utf-8")
    return source, gone


def build(out: Path, source: str, shards: int, *options: str) -> None:
    """Run the build as a person would; its complaint is in the error if it fails."""
    _run("build", "--source", source, "--out", str(out), "--shards", str(shards), *options)


def _run(*command: str) -> None:
    command = (sys.executable, "-m", "index_data", *command, "--no-progress")
    done = subprocess.run(command, capture_output=True, timeout=BUILD_S_MAX, check=False)
    if done.returncode:
        raise FleetError(f"the index could not be built: {done.stderr.decode(errors='replace')}")


def manifest_of(index: Path) -> Manifest:
    """The manifest of the newest generation of an index directory."""
    return read_manifest(latest_generation(index))


def query_fields(manifest: Manifest) -> tuple[str, str]:
    """The two text fields that queries name: the heaviest, and the one with most text."""
    texts = [field for field in manifest.fields if field.type == "text"]
    heaviest = max(texts, key=lambda field: field.weight)
    others = [field for field in texts if field is not heaviest] or texts
    most = max(others, key=lambda field: sum(shard.tokens[field.name] for shard in manifest.shards))
    return heaviest.name, most.name


def words_of(manifest: Manifest, documents: Sequence[tuple[str, Mapping[str, Any]]]) -> Vocabulary:
    """What queries about an index are made of, whichever collection it is of."""
    sources = [source for _, source in documents]
    values = typed(manifest.fields, sources)
    fields = query_fields(manifest)
    if manifest.source.name == many_scripts.NAME:
        return Vocabulary(*many_scripts.words(), many_scripts.QUERY_FIELDS, values)
    found = vocabulary((str(one.get(fields[1], "")) for one in sources[:TEXTS_MAX]), fields)
    return replace(found, typed=values)

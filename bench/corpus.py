"""The index an experiment runs on: a given one, or one built for it and removed after."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import orjson

from bench.fleet import FleetError
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


def build(out: Path, source: str, shards: int, *options: str) -> None:
    """Run the build as a person would; its complaint is in the error if it fails."""
    command = [sys.executable, "-m", "index_data", "build", "--source", source]
    command += ["--out", str(out), "--shards", str(shards), "--no-progress", *options]
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

"""An index for tests of real processes: small, synthetic, the same every time."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from bench import corpus
from bench.fleet import Fleet, Shape, running

DOCUMENTS: Final = 2000
WORDS: Final = 3000
SHARDS: Final = 16


def documents() -> Iterator[dict[str, object]]:
    """Texts of words whose frequencies fall as in a language."""
    rng = random.Random("live")
    letters = "abcdefghiklmnoprstuvw"
    words = ["".join(rng.choices(letters, k=rng.randint(3, 9))) for _ in range(WORDS)]
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    for number in range(DOCUMENTS):
        title = rng.choices(words, weights, k=rng.randint(1, 5))
        body = rng.choices(words, weights, k=rng.randint(5, 80))
        yield {"id": f"d{number:05d}", "title": " ".join(title), "body": " ".join(body)}


@pytest.fixture(scope="session")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index directory with one generation of SHARDS shards."""
    folder = tmp_path_factory.mktemp("index")
    source = folder / "documents.jsonl"
    lines = (json.dumps(document) + "\n" for document in documents())
    source.write_text("".join(lines), encoding="utf-8")
    out = folder / "shards"
    corpus.build(out, str(source), SHARDS, "--id-field", "id", "--text-fields", "title^2,body")
    return out


@pytest.fixture(scope="session")
def fleet(index: Path) -> Iterator[Fleet]:
    """Four leaves with two replicas of each shard, and a root; whole again after each test."""
    with running(Shape(index)) as running_fleet:
        yield running_fleet

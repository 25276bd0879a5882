"""A small library of real documents behind scripted leaves, which do what leaves do with an ask.

Its fields are those that the examples of the API's documents name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, cast

import msgspec
import orjson

from bench.simulation.scripted import Leg
from index_data.build import build
from index_data.manifest import Field, GenerationCard
from index_data.sources import BadLine, Collection, Document
from leaf.asks import Performer, Task
from leaf.lines import Bite
from leaf.protocol import DOCUMENT_KINDS, Documents, Hits, Kind, Refusal
from leaf.shard import Generation

SHARDS: Final = 4
FIELDS: Final = (
    Field("name", "text", weight=2.0),
    Field("title", "keyword", default=False),
    Field("body", "text"),
    Field("kind", "keyword", default=False),
    Field("tags", "keyword", default=False, multiple=True),
    Field("year", "integer", default=False),
    Field("rate", "float", default=False),
    Field("price", "float", default=False),
    Field("published", "date", default=False),
    Field("day", "date", default=False),
)
WORDS: Final = ("json", "parse", "parsing", "xml", "csv", "file", "like", "object", "two", "words")
DOCUMENTS: Final = 60


def library() -> Collection:
    """Sixty documents; ``json.dumps`` is the first."""
    rng = Random("library")
    names = ["json.dumps", *(f"module.function_{i}" for i in range(DOCUMENTS - 1))]
    made = [Document(name, _source(rng, name)) for name in names]

    def read() -> Iterator[Document | BadLine]:
        yield from made

    return Collection("library", "library", FIELDS, read)


def _source(rng: Random, name: str) -> dict[str, Any]:
    year = rng.randint(1998, 2015)
    return {
        "name": name.replace("_", " "),
        "title": name,
        "body": "json parse file like object " + " ".join(rng.choices(WORDS, k=8)),
        "kind": rng.choice(["book", "class", "function"]),
        "tags": rng.sample(["a", "b", "old", "new"], rng.randint(0, 3)),
        "year": year,
        "rate": round(rng.random(), 3),
        "price": round(rng.uniform(0, 50), 2),
        "published": f"{year}-06-30T12:{rng.randint(0, 59):02d}:00Z",
        "day": f"{year}-12-31",
    }


class Library:
    """The built library, and what a leaf answers of it."""

    def __init__(self, folder: Path) -> None:
        """Build it in a folder."""
        built = build(library(), folder, SHARDS)
        self.generation = Generation.open(built.folder, range(SHARDS))
        self._performer = Performer(lambda: 0.0)

    @property
    def card(self) -> GenerationCard:
        """The generation."""
        return self.generation.card

    def answer(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents | Refusal:
        """Reply as a leaf does."""
        ask, number = leg.flight.ask, leg.attempt.leg
        task = Task(
            sink=_Nowhere(),
            channel=0,
            kind=cast("Kind", ask.kind),
            generation=self.generation,
            body=msgspec.Raw(ask.body),
            first=number,
            shards=[leg.shard],
            arrived_s=0.0,
            budget_s=1.0,
            ordinals=[ask.ordinals[leg.shard]] if ask.ordinals else [],
        )
        done = self._performer.perform(Bite(task, [0]))
        for _, _, _, reason, *detail in done.refusals:
            return Refusal(number, queue_us, service_us, reason, *detail)
        _, _, _, *rest = done.answers[0]
        sent = orjson.dumps([number, queue_us, service_us, *rest])
        if ask.kind in DOCUMENT_KINDS:
            return msgspec.json.decode(sent, type=Documents)
        return msgspec.json.decode(sent, type=Hits)


class _Nowhere:
    def put(self, finished: Any) -> None:
        """Take nothing: the answer is what ``perform`` returns."""

"""Real shards behind scripted leaves: whole searches over an index, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import orjson

from bench.simulation.scripted import takes_about
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from index_data.build import Built, build
from index_data.manifest import Field, GenerationCard
from index_data.oracle import Oracle
from index_data.sources import BadLine, Collection, Document
from leaf.shard import Generation
from root.budget import BudgetTerms
from root.config import Settings
from root.requests import search_from_json
from root.search import Searches
from tests.sim.shards import Shards

SHARDS: Final = 7
FIELDS: Final = (
    Field("body", "text"),
    Field("kind", "keyword", default=False),
    Field("tags", "keyword", default=False, multiple=True),
    Field("year", "integer", default=False),
    Field("big", "integer", default=False),
    Field("price", "float", default=False),
    Field("sizes", "float", default=False, multiple=True),
    Field("at", "date", default=False),
    Field("ok", "boolean", default=False),
)
WORDS: Final = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")
KINDS: Final = ("book", "Book", "film", "Ünï", "東京")
PLENTY: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


def source(rng: Random) -> dict[str, Any]:
    """A document of every type, with most values missing now and then."""
    fields: dict[str, Any] = {
        "body": " ".join(rng.choices(WORDS, k=rng.randint(3, 12))),
        "kind": rng.choice(KINDS),
        "tags": rng.sample(["a", "b", "c", "d", 2**63], rng.randint(0, 4)),
        "year": rng.randint(1990, 2005),
        "big": 2**63 - 1 - rng.randint(0, 3),
        "price": rng.choice([0.0, -0.5, 0.1, 1e300, rng.uniform(-5, 50)]),
        "sizes": [rng.randint(-3, 3) for _ in range(rng.randint(0, 3))],
        "at": f"{rng.randint(1960, 1975)}-{rng.randint(1, 12):02d}-{rng.randint(1, 28):02d}"
        f"T{rng.randint(0, 23):02d}:00:{rng.choice(['00', '59.999999'])}Z",
        "ok": rng.random() < 0.5,
    }
    return {name: v for name, v in fields.items() if name == "body" or rng.random() < 0.8}


def collection(size: int, seed: str) -> Collection:
    """So many documents, with ids whose order is not the order in which they come."""
    rng = Random(seed)
    made = [Document(f"d{(i * 7919) % 100_003:06d}", source(rng)) for i in range(size)]

    def read() -> Iterator[Document | BadLine]:
        yield from made

    return Collection("made", seed, FIELDS, read)


class RealIndex:
    """A built index with its reference."""

    def __init__(self, built: Built) -> None:
        self.generation = Generation.open(built.folder, range(SHARDS))
        self.oracle = Oracle.open(built.folder)
        self.answer = Shards(self.generation).answer

    @classmethod
    def of(cls, folder: Any, size: int, seed: str) -> RealIndex:
        """Build it."""
        return cls(build(collection(size, seed), folder, SHARDS))

    @property
    def card(self) -> GenerationCard:
        """The generation."""
        return self.generation.card


class Asking:
    """A root over four leaves of a real index, two replicas a shard. Made on a running loop."""

    def __init__(self, index: RealIndex, seed: int = 0) -> None:
        self.index = index
        fleet = ScriptedFleet(
            index.generation.card,
            dealt(SHARDS, leaves=4, replicas=2),
            takes_about(0.002, 0.5, Random(f"{seed}:work")),
            answer=index.answer,
        )
        settings = Settings(budget=PLENTY, timeout_ms=60_000.0, seed=seed)
        self.searches = Searches(fleet, settings, asyncio.get_running_loop().time())

    async def search(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request in its JSON form."""
        asked = search_from_json(orjson.dumps(request))
        return await self.searches.search(asked, asyncio.get_running_loop().time())

"""A fleet that serves two collections whose documents have the same ids and nothing else in common.

Whatever is answered says where it is from: every document has its collection's own field.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from bench.simulation.corpus import Corpus, document_id
from bench.simulation.scripted import Leg, Script, takes
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run
from index_data.manifest import Field, GenerationCard
from leaf.protocol import Documents, FetchedDocument, Hits, Query
from leaf.pulse import Pulse
from root.app import Root
from root.config import Settings
from root.ranking import Leaf
from root.topology import Held
from tests.sim.serving import PLENTY, WORK_S, Client

LEAVES: Final = 4


class Shelf(Corpus):
    """The documents of one collection, in one generation."""

    def __init__(self, name: str, generation: str, size: int, shards: int, field: str) -> None:
        """``field`` is the text field that its documents have, and those of no other."""
        super().__init__(size, shards, score=lambda ordinal: 1.0 + (ordinal * len(name)) % 7)
        self.name = name
        self.generation = generation
        self.field = field

    @property
    def card(self) -> GenerationCard:
        """The generation that they are."""
        fields = (Field(self.field, "text"), Field(f"{self.field}_tag", "keyword", default=False))
        return GenerationCard(self.generation, super().card.documents, fields, 0.01)

    def _document(self, query: Query | None, ordinal: int) -> FetchedDocument:
        name = document_id(ordinal)
        fields = {self.field: f"{name} of {self.name} in {self.generation}"}
        return FetchedDocument(ordinal, self.score_in(query, ordinal), name, fields, {})

    def is_of(self, hit: Mapping[str, Any]) -> bool:
        """Whether a hit, or a document, is one of these."""
        wanted = f"{hit['id']} of {self.name} in {self.generation}"
        return bool(hit["fields"] == {self.field: wanted})


DOCS: Final = Shelf("docs", "20300101-000000-aaaa", 90, 4, "body")
ARTICLES: Final = Shelf("articles", "20300101-000000-bbbb", 55, 3, "abstract")
NEWER: Final = Shelf("articles", "20300102-000000-cccc", 70, 3, "abstract")


class ShelvesFleet(ScriptedFleet):
    """``shelves[i]`` are the collections of leaf i, each with the shards that are there."""

    def __init__(
        self, shelves: Sequence[Sequence[tuple[Shelf, Sequence[int]]]], script: Script
    ) -> None:
        self.shelves = [[*held] for held in shelves]
        super().__init__(DOCS.card, [()] * len(shelves), script, answer=self.answered)

    def held_by(self, leaf: Leaf, number: int) -> list[Held]:
        """Return what a leaf says it holds."""
        return [
            Held(leaf, shelf.card, shards, collection=shelf.name)
            for shelf, shards in self.shelves[number]
        ]

    def answered(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        """Reply of the generation that is asked for: a leaf goes by nothing else."""
        number = [*self.channels].index(leg.attempt.leaf.name)
        held = {shelf.generation: shelf for shelf, _ in self.shelves[number]}
        return held[leg.flight.ask.generation].answer(leg, queue_us, service_us)


def on_all_leaves(*shelves: Shelf) -> list[list[tuple[Shelf, Sequence[int]]]]:
    """Every shard of every collection on two of four leaves."""
    dealt_of = {s: dealt(s.shards, leaves=LEAVES, replicas=2) for s in shelves}
    return [[(s, dealt_of[s][number]) for s in shelves] for number in range(LEAVES)]


class Serving:
    """A root of such a fleet, and a client of it."""

    def __init__(self, fleet: ShelvesFleet, root: Root) -> None:
        self.fleet = fleet
        self.root = root
        self.client = Client(root.app())


def serving(
    body: Callable[[Serving], Awaitable[None]],
    shelves: Sequence[Sequence[tuple[Shelf, Sequence[int]]]] | None = None,
    settings: Settings | None = None,
    script: Script | None = None,
) -> None:
    """Run a test's body with a root that serves, in virtual time."""

    async def main() -> None:
        held = on_all_leaves(DOCS, ARTICLES) if shelves is None else shelves
        fleet = ShelvesFleet(held, script or takes(WORK_S))
        chosen = settings or Settings(budget=PLENTY)
        await body(Serving(fleet, Root(fleet, chosen, lambda _: None, Pulse(chosen.blocked_ms))))

    run(main)

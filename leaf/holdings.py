"""What a leaf holds: generations by name, and when each was last asked for.

Here stands also all that the server needs of an index. `leaf.shard` fulfils it with
tantivy, `leaf.canned` with constants, tests with a few lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, Self

from index_data.manifest import GenerationCard
from leaf.errors import BadSetting
from leaf.protocol import FetchedDocument, Query
from leaf.selection import Selection
from leaf.suggestion import SuggestBody

UNUSED_S: Final = 60.0
"""A superseded generation goes after this long without an ask: a query that started on it
has ended long before, for no deadline is that generous. So does a shard that is to be given up,
where the leaf was asked for others of its generation meanwhile: who asks for those and not for
this one has it from somebody else."""


class HeldShard(Protocol):
    """One shard. Called from several threads at once; raises whatever it likes."""

    @property
    def documents(self) -> int:
        """How many documents it has."""

    def search(self, prepared: Any, k: int, /) -> tuple[int, list[float], list[int]]:
        """Return the total, and scores and ordinals of the best ``k``, best first."""

    def select(self, prepared: Any, selected: Any, k: int, /) -> tuple[Any, ...]:
        """Return total, best, ranked and facets, as Hits has them, of a selection."""

    def fetch(
        self,
        prepared: Any | None,
        ordinals: Sequence[int],
        fields: Sequence[str] | None,
        highlight: Sequence[str],
        /,
    ) -> Sequence[FetchedDocument]:
        """Return these documents, in this order."""

    def explain(
        self, prepared: Any, ordinals: Sequence[int], /
    ) -> Sequence[list[tuple[str, str, float]]]:
        """Return what the scores of these documents are made of, as FetchedDocument has it."""

    def lookup(self, document_id: str, /) -> list[int]:
        """Return the ordinals of the documents with this id: one or none."""


class HeldGeneration(Protocol):
    """The shards of one generation that this leaf holds."""

    @property
    def collection(self) -> str:
        """The name of the collection that it is a generation of."""

    @property
    def card(self) -> GenerationCard:
        """What every leaf says of this generation."""

    @property
    def shards(self) -> Mapping[int, HeldShard]:
        """The shards served, by number."""

    @property
    def refused(self) -> Mapping[int, str]:
        """The shards that should be held but are damaged, and how."""

    @property
    def leaving(self) -> Mapping[int, int]:
        """The shards to give up, and how many other leaves are to hold each."""

    def prepare(self, query: Query, /) -> Any:
        """Do once what all shards need of a query. Raises BadQuery."""

    def selected(self, selection: Selection, /) -> Any:
        """Do once what all shards need of a selection. Raises BadQuery."""

    def suggest(self, body: SuggestBody, shard: Any, /) -> Sequence[FetchedDocument]:
        """Return words to search for instead, as people spell them in a shard."""

    def without(self, shards: Iterable[int], /) -> Self:
        """Return the same without some shards. Whoever has this one keeps them."""


class Supply(Protocol):
    """Where generations come from."""

    def changes(
        self, held: Mapping[str, HeldGeneration], /
    ) -> Iterator[HeldGeneration | BadSetting]:
        """Open what should be held and is not; yield each generation that is to be held or to
        replace the one of its name, oldest first, or why it cannot be opened. May take long.
        """


class Holdings:
    """The generations of one leaf, of each collection the newest last. Changed on the event loop
    alone.
    """

    def __init__(self) -> None:
        self._held: dict[str, HeldGeneration] = {}
        self._used_s: dict[str, float] = {}
        self._asked_s: dict[str, float] = {}
        self._last_asked_s: dict[tuple[str, int], float] = {}
        """Of shards that are to be given up: when they were asked for, or it was so decided."""

    def __iter__(self) -> Iterator[HeldGeneration]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    def newest(self, collection: str) -> HeldGeneration | None:
        """Return the generation that new queries of a collection should use; None before any is
        loaded.
        """
        held = reversed(self._held.values())
        return next((one for one in held if one.collection == collection), None)

    def by_name(self) -> dict[str, HeldGeneration]:
        """Return what is held at this moment. May be called on any thread."""
        return self._held.copy()

    def add(self, generation: HeldGeneration, now: float) -> None:
        """Serve one more generation, from now on the newest of its collection; or one that is
        held, as it is now.

        What it supersedes has been in use until now, asked for or not: other leaves may take a
        while to have the new one, and until then roots go on with the old.
        """
        name = generation.card.generation
        if name not in self._held:
            for known_name, held in self._held.items():
                if held.collection == generation.collection:
                    self._used_s[known_name] = now
            self._used_s[name] = now
        self._held[name] = generation
        known = self._last_asked_s
        since_s = {(name, s): known.get((name, s), now) for s in generation.leaving}
        self._forget(name)
        known.update(since_s)

    def use(self, name: str, now: float) -> HeldGeneration | None:
        """Return the generation of this name, and remember that it was asked for."""
        generation = self._held.get(name)
        if generation is not None:
            self._used_s[name] = now
        return generation

    def asked(self, generation: HeldGeneration, shards: Sequence[int], now: float) -> None:
        """Remember for which shards of a generation a root has asked."""
        name, leaving = generation.card.generation, generation.leaving
        self._asked_s[name] = now
        if leaving:
            for shard in shards:
                if (name, shard) in self._last_asked_s:
                    self._last_asked_s[name, shard] = now

    def retire(self, now: float) -> list[str]:
        """Let go of superseded generations that nobody asks for, and return their names."""
        newest = {held.collection: name for name, held in self._held.items()}
        gone = [
            name
            for name, held in self._held.items()
            if name != newest[held.collection] and now - self._used_s[name] >= UNUSED_S
        ]
        for name in gone:
            del self._held[name], self._used_s[name]
            self._asked_s.pop(name, None)
            self._forget(name)
        return gone

    def give_up(self) -> dict[str, list[int]]:
        """Let go of shards that others serve now; return them by generation."""
        gone: dict[str, list[int]] = {}
        for (name, shard), last_s in self._last_asked_s.items():
            if self._asked_s.get(name, last_s) - last_s >= UNUSED_S:
                gone.setdefault(name, []).append(shard)
        for name, shards in gone.items():
            self._held[name] = self._held[name].without(shards)
            for shard in shards:
                del self._last_asked_s[name, shard]
        return gone

    def _forget(self, name: str) -> None:
        for key in [key for key in self._last_asked_s if key[0] == name]:
            del self._last_asked_s[key]

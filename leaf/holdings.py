"""What a leaf holds: generations by name, and when each was last asked for.

Here stands also all that the server needs of an index. `leaf.shard` fulfils it with
tantivy, `leaf.canned` with constants, tests with a few lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from index_data.manifest import GenerationCard
from leaf.protocol import FetchedDocument, Query

UNUSED_S: Final = 60.0
"""A superseded generation goes after this long without an ask: a query that started on it
has ended long before, for no deadline is that generous."""


class HeldShard(Protocol):
    """One shard. Called from several threads at once; raises whatever it likes."""

    @property
    def documents(self) -> int:
        """How many documents it has."""

    def search(self, prepared: Any, k: int, /) -> tuple[int, list[float], list[int]]:
        """Return the total, and scores and ordinals of the best ``k``, best first."""

    def fetch(
        self,
        prepared: Any | None,
        ordinals: Sequence[int],
        fields: Sequence[str] | None,
        highlight: Sequence[str],
        /,
    ) -> Sequence[FetchedDocument]:
        """Return these documents, in this order."""

    def lookup(self, document_id: str, /) -> list[int]:
        """Return the ordinals of the documents with this id: one or none."""


class HeldGeneration(Protocol):
    """The shards of one generation that this leaf holds."""

    @property
    def card(self) -> GenerationCard:
        """What every leaf says of this generation."""

    @property
    def shards(self) -> Mapping[int, HeldShard]:
        """The shards served, by number."""

    @property
    def refused(self) -> Mapping[int, str]:
        """The shards that should be held but are damaged, and how."""

    def prepare(self, query: Query, /) -> Any:
        """Do once what all shards need of a query. Raises BadQuery."""


class Supply(Protocol):
    """Where generations come from."""

    def newer(self, than: str | None, /) -> HeldGeneration | None:
        """Open the newest generation if it is newer than this one. May take long.

        Raises BadSetting.
        """


class Holdings:
    """The generations of one leaf, the newest last. Used on the event loop alone."""

    def __init__(self) -> None:
        self._held: dict[str, HeldGeneration] = {}
        self._used_s: dict[str, float] = {}

    def __iter__(self) -> Iterator[HeldGeneration]:
        return iter(self._held.values())

    def __len__(self) -> int:
        return len(self._held)

    @property
    def newest(self) -> HeldGeneration | None:
        """The generation that new queries should use; None before anything is loaded."""
        return next(reversed(self._held.values()), None)

    def add(self, generation: HeldGeneration, now: float) -> None:
        """Serve one more generation, from now on the newest.

        What it supersedes has been in use until now, asked for or not: other leaves may take a
        while to have the new one, and until then roots go on with the old.
        """
        for held in self._used_s:
            self._used_s[held] = now
        name = generation.card.generation
        self._held.pop(name, None)
        self._held[name] = generation
        self._used_s[name] = now

    def use(self, name: str, now: float) -> HeldGeneration | None:
        """Return the generation of this name, and remember that it was asked for."""
        generation = self._held.get(name)
        if generation is not None:
            self._used_s[name] = now
        return generation

    def retire(self, now: float) -> list[str]:
        """Let go of superseded generations that nobody asks for, and return their names."""
        newest = self.newest
        gone = [
            name
            for name, generation in self._held.items()
            if generation is not newest and now - self._used_s[name] >= UNUSED_S
        ]
        for name in gone:
            del self._held[name], self._used_s[name]
        return gone

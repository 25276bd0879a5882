"""Shards that answer without searching: ten constant hits each.

For measuring what everything around a search costs. Only the search is left out: a canned
leg passes through the same queue, worker, channel and counters as a real one. A leaf that
serves canned answers says so in its ``hello`` and its log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self

from index_data.manifest import Field, GenerationCard
from leaf.config import Place
from leaf.errors import BadQuery
from leaf.holdings import HeldGeneration
from leaf.protocol import DEFAULT_COLLECTION, FetchedDocument, Query
from leaf.selection import Selection
from leaf.suggestion import SuggestBody

HITS: Final = 10
"""Hits of each shard: a page."""

GENERATION: Final = "canned"

NOTICE: Final = "CANNED ANSWERS: ten constant hits a shard, nothing is searched"

SCORE_MAX: Final = 20.0
SCORE_STEP: Final = 0.7310585786300049
SPREAD: Final = 7919
"""Scores look like real ones: as many digits, falling within a shard, and another best score
in each shard (a prime apart), so that merging sees neither ties nor an order it could know."""


class CannedShard:
    """Ten documents; hit ``rank`` of shard s among S has ordinal ``rank * S + s``.

    So no two shards share a document, and their hits interleave when they are merged.
    """

    documents = HITS

    def __init__(self, shard: int, shards: int) -> None:
        best = SCORE_MAX - (shard * SPREAD % shards) / shards
        self._scores = [best - rank * SCORE_STEP for rank in range(HITS)]
        self._ordinals = [rank * shards + shard for rank in range(HITS)]

    def search(self, prepared: Any, k: int, /) -> tuple[int, list[float], list[int]]:  # noqa: ARG002
        """Return the same hits, whatever the query."""
        if k < HITS:
            return HITS, self._scores[:k], self._ordinals[:k]
        return HITS, self._scores, self._ordinals

    def select(self, prepared: Any, selected: Any, k: int, /) -> tuple[Any, ...]:  # noqa: ARG002
        """Select nothing: no selection is ever prepared."""
        return 0, 0.0, ([], []), []

    def fetch(
        self,
        prepared: Any | None,  # noqa: ARG002
        ordinals: Sequence[int],
        fields: Sequence[str] | None,  # noqa: ARG002
        highlight: Sequence[str],  # noqa: ARG002
        /,
    ) -> list[FetchedDocument]:
        """Return a document a name long for each ordinal."""
        return [self._document(ordinal) for ordinal in ordinals]

    def explain(
        self,
        prepared: Any,  # noqa: ARG002
        ordinals: Sequence[int],
        /,
    ) -> list[list[tuple[str, str, float]]]:
        """Explain nothing: no score has a reason."""
        return [[] for _ in ordinals]

    def lookup(self, document_id: str, /) -> list[int]:
        """Return the ordinal that the id spells, where this shard has it."""
        number = document_id.removeprefix("canned-")
        ordinal = int(number) if number.isascii() and number.isdigit() else -1
        return [ordinal] if ordinal in self._ordinals else []

    def _document(self, ordinal: int) -> FetchedDocument:
        score = self._scores[self._ordinals.index(ordinal)]
        identity = f"canned-{ordinal:07d}"
        return FetchedDocument(ordinal, score, identity, {"name": identity}, {})


class CannedGeneration:
    """A generation of canned shards, of which this leaf holds some."""

    def __init__(self, shards: int, held: Sequence[int]) -> None:
        self.collection = DEFAULT_COLLECTION
        self.card = GenerationCard(
            generation=GENERATION,
            documents=(HITS,) * shards,
            fields=(Field(name="name", type="text"),),
            length_deviation=0.0,
        )
        self.shards: Mapping[int, CannedShard] = {
            shard: CannedShard(shard, shards) for shard in held
        }
        self.refused: Mapping[int, str] = {}
        self.leaving: Mapping[int, int] = {}

    def prepare(self, query: Query, /) -> None:
        """Have nothing to prepare."""

    def selected(self, selection: Selection, /) -> None:  # noqa: ARG002
        """Refuse: there is nothing to filter, sort or count by. Raises BadQuery."""
        raise BadQuery("canned answers cannot be filtered, sorted or counted")

    def suggest(self, body: SuggestBody, shard: CannedShard, /) -> list[FetchedDocument]:  # noqa: ARG002
        """Suggest nothing: there are no words."""
        return []

    def without(self, shards: Iterable[int], /) -> Self:  # noqa: ARG002
        """Return the same: no placement is chosen for canned shards, and none is given up."""
        return self


class CannedSupply:
    """Gives the one canned generation, once."""

    def __init__(self, shards: int, place: Place) -> None:
        self._shards = shards
        self._held = place.shards(shards)

    def changes(self, held: Mapping[str, HeldGeneration], /) -> Iterator[CannedGeneration]:
        """Yield the generation when nothing is held yet."""
        if not held:
            yield CannedGeneration(self._shards, self._held)

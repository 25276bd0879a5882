"""Documents for scripted leaves: enough to search, fetch and look up, with scores by rule."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from bench.simulation.answers import hits
from bench.simulation.scripted import Leg
from bench.simulation.scripted_fleet import FIELDS, GENERATION
from index_data.manifest import GenerationCard
from leaf.protocol import Documents, FetchedDocument, Hits, LookupBody, SearchBody

Score = Callable[[int], float]
"""The score of a document, from its ordinal, for every query."""


def all_equal(_: int) -> float:
    """Every document is as good as any other."""
    return 1.0


@lru_cache(maxsize=64)
def _k(body: bytes) -> int:
    return msgspec.json.decode(body, type=SearchBody).k


class Corpus:
    """``size`` documents, dealt round ``shards``; document i has the id ``doc-0000i``."""

    def __init__(self, size: int, shards: int, score: Score = all_equal) -> None:
        """Every query finds every document."""
        self.score: Final = score
        self.oracle: Final = sorted(range(size), key=lambda i: (-score(i), i))
        self._by_shard = [[i for i in self.oracle if i % shards == s] for s in range(shards)]

    @property
    def card(self) -> GenerationCard:
        """The generation that they are."""
        counts = tuple(len(ordinals) for ordinals in self._by_shard)
        return GenerationCard(GENERATION, counts, FIELDS, length_deviation=0.01)

    def ids(self, offset: int, k: int) -> list[str]:
        """A page as one big index would give it."""
        return [document_id(ordinal) for ordinal in self.oracle[offset : offset + k]]

    def answer(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        """Reply as an honest leaf does."""
        ask, number, ordinals = leg.flight.ask, leg.attempt.leg, self._by_shard[leg.shard]
        match ask.kind:
            case "search":
                best = ordinals[: _k(ask.body)]
                scores = [self.score(i) for i in best]
                return hits(
                    number, scores, best, len(ordinals), queue_us=queue_us, service_us=service_us
                )
            case "lookup":
                wanted = msgspec.json.decode(ask.body, type=LookupBody).id
                found = [i for i in ordinals if document_id(i) == wanted]
                scores = [0.0] * len(found)
                return hits(number, scores, found, queue_us=queue_us, service_us=service_us)
            case _:
                assert ask.ordinals is not None
                documents = [self._document(i) for i in ask.ordinals[leg.shard]]
                return Documents(number, queue_us, service_us, documents)

    def _document(self, ordinal: int) -> FetchedDocument:
        name = document_id(ordinal)
        return FetchedDocument(ordinal, self.score(ordinal), name, {"title": name}, {})


def document_id(ordinal: int) -> str:
    """The id of a document: ids sort as ordinals do."""
    return f"doc-{ordinal:05d}"

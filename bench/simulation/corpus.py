"""Documents for scripted leaves: enough to search, fetch and look up, with scores by rule.

The word ``every-3`` finds every third document, any other word and ``*`` find all of them, so
that what one big index would answer is known without searching.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from bench.simulation.answers import hits
from bench.simulation.scripted import Leg
from bench.simulation.scripted_fleet import FIELDS, GENERATION
from index_data.manifest import GenerationCard
from leaf.protocol import (
    Documents,
    FetchBody,
    FetchedDocument,
    Hits,
    LookupBody,
    Phrase,
    Query,
    SearchBody,
    Word,
)

Score = Callable[[int], float]
"""The score of a document, from its ordinal, for every query."""

LENGTH_DEVIATION: Final = 0.01
"""What the card says of how far phase-one scores may be off, as a share."""

EVERY: Final = "every-"


def all_equal(_: int) -> float:
    """Every document is as good as any other."""
    return 1.0


def step(query: Query | None) -> int:
    """A query finds every so manieth document."""
    match query:
        case Word(text=text) | Phrase(text=text) if text.startswith(EVERY):
            return int(text.removeprefix(EVERY))
        case _:
            return 1


def is_scored(query: Query | None) -> bool:
    """Whether a query's documents have scores by rule: ``*`` gives each 1."""
    return isinstance(query, Word | Phrase)


@lru_cache(maxsize=64)
def _search(body: bytes) -> SearchBody:
    return msgspec.json.decode(body, type=SearchBody)


@lru_cache(maxsize=64)
def _fetch(body: bytes) -> FetchBody:
    return msgspec.json.decode(body, type=FetchBody)


class Found(NamedTuple):
    """What a query finds, best first: ids and scores, and the ordinals of each shard."""

    ranked: list[tuple[str, float]]
    by_shard: list[list[int]]


class Corpus:
    """``size`` documents, dealt round ``shards``; document i has the id ``doc-0000i``.

    ``blurred``: phase-one scores are off by as much as the card allows, on each shard otherwise.
    """

    def __init__(
        self, size: int, shards: int, score: Score = all_equal, *, blurred: bool = False
    ) -> None:
        """``score`` is for words; see the module's text for what they find."""
        self.size: Final = size
        self.shards: Final = shards
        self.score: Final = score
        self.oracle: Final = sorted(range(size), key=lambda i: (-score(i), i))
        self._blur = [1.0 + blurred * LENGTH_DEVIATION * (shard % 3 - 1) for shard in range(shards)]
        self._found: dict[Query, Found] = {}

    @property
    def card(self) -> GenerationCard:
        """The generation that they are."""
        counts = tuple(len(range(shard, self.size, self.shards)) for shard in range(self.shards))
        return GenerationCard(GENERATION, counts, FIELDS, length_deviation=LENGTH_DEVIATION)

    def ids(self, offset: int, k: int) -> list[str]:
        """A page of all documents as one big index would give it."""
        return [document_id(ordinal) for ordinal in self.oracle[offset : offset + k]]

    def ranked(self, query: Query) -> list[tuple[str, float]]:
        """All that a query finds, as one big index would rank it: (id, score)."""
        return self._find(query).ranked

    def score_in(self, query: Query | None, ordinal: int) -> float:
        """The exact score of a document."""
        return self.score(ordinal) if is_scored(query) else 1.0

    def shard_of(self, identity: str) -> int:
        """The shard that holds a document."""
        return int(identity.removeprefix("doc-")) % self.shards

    def answer(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        """Reply as an honest leaf does."""
        ask, number, shard = leg.flight.ask, leg.attempt.leg, leg.shard
        match ask.kind:
            case "search":
                wanted = _search(ask.body)
                found = self._find(wanted.query).by_shard[shard]
                best = found[: wanted.k]
                blur = self._blur[shard] if is_scored(wanted.query) else 1.0
                scores = [self.score_in(wanted.query, i) * blur for i in best]
                return hits(
                    number, scores, best, len(found), queue_us=queue_us, service_us=service_us
                )
            case "lookup":
                identity = msgspec.json.decode(ask.body, type=LookupBody).id
                held = [
                    i for i in range(shard, self.size, self.shards) if document_id(i) == identity
                ]
                scores = [0.0] * len(held)
                return hits(number, scores, held, queue_us=queue_us, service_us=service_us)
            case "suggest":
                return Documents(number, queue_us, service_us, [])
            case _:
                assert ask.ordinals is not None  # noqa: S101 (a fetch names its documents)
                query = _fetch(ask.body).query
                documents = [self._document(query, i) for i in ask.ordinals[shard]]
                return Documents(number, queue_us, service_us, documents)

    def _find(self, query: Query) -> Found:
        found = self._found.get(query)
        if found is None:
            order = self.oracle if is_scored(query) else range(self.size)
            ordinals = [i for i in order if i % step(query) == 0]
            by_shard: list[list[int]] = [[] for _ in range(self.shards)]
            for ordinal in ordinals:
                by_shard[ordinal % self.shards].append(ordinal)
            ranked = [(document_id(i), self.score_in(query, i)) for i in ordinals]
            found = self._found[query] = Found(ranked, by_shard)
        return found

    def _document(self, query: Query | None, ordinal: int) -> FetchedDocument:
        name = document_id(ordinal)
        return FetchedDocument(ordinal, self.score_in(query, ordinal), name, {"title": name}, {})


def document_id(ordinal: int) -> str:
    """The id of a document: ids sort as ordinals do."""
    return f"doc-{ordinal:05d}"

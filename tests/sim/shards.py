"""Leaves that search real shards, in the loop of the test: what a root asks is answered at once."""

from __future__ import annotations

from typing import Final

import msgspec

from bench.simulation.answers import hits
from bench.simulation.scripted import Leg
from leaf.protocol import Documents, FetchBody, Hits, SearchBody
from leaf.shard import Generation
from leaf.suggestion import SuggestBody

_SEARCH: Final = msgspec.json.Decoder(SearchBody)
_FETCH: Final = msgspec.json.Decoder(FetchBody)


class Shards:
    """Answers the legs of all leaves from one generation that is open in this process."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def answer(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents:
        """Do what a leaf would do."""
        ask, number = leg.flight.ask, leg.attempt.leg
        shard = self._generation.shards[leg.shard]
        if ask.kind == "search":
            body = _SEARCH.decode(ask.body)
            prepared = self._generation.prepare(body.query)
            total, scores, ordinals = shard.search(prepared, body.k)
            return hits(number, scores, ordinals, total, queue_us=queue_us, service_us=service_us)
        if ask.kind == "suggest":
            wanted = msgspec.json.decode(ask.body, type=SuggestBody)
            return Documents(number, queue_us, service_us, self._generation.suggest(wanted, shard))
        fetch = _FETCH.decode(ask.body)
        assert ask.ordinals is not None
        assert fetch.query is not None
        prepared = self._generation.prepare(fetch.query)
        named = ask.ordinals[leg.shard]
        documents = shard.fetch(prepared, named, fetch.fields, fetch.highlight)
        return Documents(number, queue_us, service_us, documents)

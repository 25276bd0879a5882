"""Leaves that search real shards, in the loop of the test: what a root asks is answered at once."""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

from bench.simulation.scripted import Leg
from leaf.protocol import Documents, FetchBody, Hits, LookupBody, SearchBody
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
        times = (number, queue_us, service_us)
        match ask.kind:
            case "search":
                body = _SEARCH.decode(ask.body)
                prepared = self._generation.prepare(body.query)
                if body.selection is None:
                    total, scores, ordinals = shard.search(prepared, body.k)
                    best = scores[0] if scores else 0.0
                    return Hits(*times, total, best, _raw((scores, ordinals)))
                chosen = self._generation.selected(body.selection)
                total, best, columns, facets = shard.select(prepared, chosen, body.k)
                return Hits(*times, total, best, _raw(columns), _raw(facets))
            case "lookup":
                found = shard.lookup(msgspec.json.decode(ask.body, type=LookupBody).id)
                return Hits(*times, len(found), 0.0, _raw(([0.0] * len(found), found)))
            case "suggest":
                wanted_words = msgspec.json.decode(ask.body, type=SuggestBody)
                return Documents(*times, self._generation.suggest(wanted_words, shard))
            case _:
                fetch = _FETCH.decode(ask.body)
                scored = self._generation.prepare(fetch.query) if fetch.query else None
                assert ask.ordinals is not None
                named = ask.ordinals[leg.shard]
                documents = shard.fetch(scored, named, fetch.fields, fetch.highlight)
                return Documents(*times, documents)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(orjson.dumps(value))

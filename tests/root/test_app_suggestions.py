"""Suggestions over HTTP."""

from __future__ import annotations

from bench.simulation.scripted import fails
from tests.sim.serving import Served, is_problem, served


def test_suggestions_are_asked_of_one_leaf() -> None:
    """One leg, whatever the number of shards; what is wrong with a request is named."""

    async def body(serving: Served) -> None:
        found = await serving.client.get("/suggest?prefix=any&k=3")
        assert (found.status, found.json["suggestions"]) == (200, [])
        assert found.json["generation"] == serving.corpus.card.generation
        assert serving.fleet.received == 1
        for query, field in (
            ("k=3", "prefix"),
            ("prefix=", "prefix"),
            ("prefix=a&k=0", "k"),
            ("prefix=a&q=b", "q"),
            ("prefix=%00", "prefix"),
        ):
            problem = is_problem(await serving.client.get(f"/suggest?{query}"), 400)
            assert problem["field"] == field, query

    served(body)


def test_suggestions_fail_as_searches_do() -> None:
    """503 where no leaf can answer."""

    async def body(serving: Served) -> None:
        is_problem(await serving.client.get("/suggest?prefix=a"), 503)

    served(body, script=fails("error"))

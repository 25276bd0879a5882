"""A search with a selection, over the wire: what it is answered with, and what is refused."""

from __future__ import annotations

import asyncio
from typing import Any

SELECTION = {
    "filters": [{"type": "present", "field": "n"}],
    "sort": [["n", True]],
    "facets": [{"type": "terms", "field": "n"}],
}


def asked(first: int, selection: Any) -> dict[str, Any]:
    """An ask of one leg with this selection."""
    body = {"query": {"type": "all"}, "k": 10, "selection": selection}
    return {
        "kind": "search",
        "generation": "g1",
        "body": body,
        "budget_ms": 60_000.0,
        "first": first,
        "shards": [3],
    }


def test_a_selection_is_answered_with_what_was_counted(staged: Any) -> None:
    """Facets travel beside the hits; a selection that is none is refused in words."""

    async def scene() -> None:
        async with staged() as stage:
            root = await stage.greeted()
            root.says(asks=[asked(0, SELECTION)])
            (hits,) = (await root.hears_legs(1)).hits
            assert (hits.total, hits.read()) == (1, ([1.5], [300]))
            assert hits.read_facets() == [[1]]
            root.says(asks=[asked(1, SELECTION | {"sort": [["n"]] * 9})])
            (refusal,) = (await root.hears_legs(1)).refusals
            assert refusal.reason == "bad_query"

    asyncio.run(scene())


def test_a_score_that_is_no_number_refuses_the_leg(staged: Any) -> None:
    """JSON has no word for it, with a selection or without."""

    async def scene() -> None:
        async with staged() as stage:
            stage.generation.shards[3].score = float("nan")
            root = await stage.greeted()
            root.says(asks=[asked(0, SELECTION)])
            (refusal,) = (await root.hears_legs(1)).refusals
            assert refusal.reason == "error"

    asyncio.run(scene())

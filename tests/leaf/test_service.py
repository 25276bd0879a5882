"""The leaf as roots come to know it: what it is to give up, it serves until nobody asks."""

from __future__ import annotations

import asyncio
from typing import Any

from leaf.app import readiness
from leaf.holdings import UNUSED_S


def ask(first: int, shards: list[int]) -> dict[str, Any]:
    """A search of some shards of generation g1."""
    body = {"query": {"type": "all"}, "k": 1}
    asked = {"kind": "search", "generation": "g1", "body": body, "budget_ms": 60_000.0}
    return asked | {"first": first, "shards": shards}


def test_a_leaving_shard_goes_when_roots_ask_somebody_else_for_it(staged: Any) -> None:
    """The leaf says that it is to go and for how many; it answers for it as before; and it says
    so when it has let go, a minute after roots asked for it and others for the last time.
    """
    now_s = 1000.0

    async def scene() -> None:
        nonlocal now_s
        async with staged(clock=lambda: now_s) as stage:
            root = await stage.greeted()
            stage.leaf.hold(stage.generation.with_shards(range(10), {3: 2}))
            said = (await root.hears()).hello.holdings[0]
            assert (said.shards, said.leaving) == (tuple(range(10)), {3: 2})

            root.says(asks=[ask(0, [2, 3])])
            assert len((await root.hears_legs(2)).hits) == 2
            now_s += UNUSED_S
            stage.leaf.let_go()
            assert await root.is_left_alone(), "nobody has asked for anything since"
            root.says(asks=[ask(2, [2, 3])])
            assert len((await root.hears_legs(2)).hits) == 2
            stage.leaf.let_go()
            assert await root.is_left_alone(), "somebody still asks for it"

            now_s += UNUSED_S
            root.says(asks=[ask(4, [2])])
            assert len((await root.hears_legs(1)).hits) == 1
            stage.leaf.let_go()
            said = (await root.hears()).hello.holdings[0]
            assert said.shards == (0, 1, 2, 4, 5, 6, 7, 8, 9)
            assert said.leaving == {}
            root.says(asks=[ask(5, [3])])
            assert [r.reason for r in (await root.hears_legs(1)).refusals] == ["unknown_shard"]

    asyncio.run(scene())


def test_a_retired_generation_is_told_and_forgotten(staged: Any) -> None:
    """Roots hear which generations are left, and nothing is counted for the one that went."""
    now_s = 1000.0

    async def scene() -> None:
        nonlocal now_s
        async with staged(clock=lambda: now_s) as stage:
            root = await stage.greeted()
            root.says(asks=[ask(0, [2])])
            await root.hears_legs(1)
            stage.leaf.hold(stage.another_generation("g2", 10))
            assert len((await root.hears()).hello.holdings) == 2
            assert list(stage.leaf.workers.work_s("g1")) == [2]
            now_s += UNUSED_S
            stage.leaf.let_go()
            (left,) = (await root.hears()).hello.holdings
            assert b'"g2"' in bytes(left.card)
            assert stage.leaf.workers.work_s("g1") == {}

    asyncio.run(scene())


def test_a_hello_names_every_collection_in_order(staged: Any, generation_named: Any) -> None:
    """Those of which nothing is loaded yet, too; and readiness is something of each."""

    async def scene() -> None:
        async with staged() as stage:
            stage.leaf.collections = ("docs", "default", "articles")
            root = await stage.greeted()
            assert not readiness(stage.leaf)["ready"]
            for name, collection in (("g7", "articles"), ("g8", "docs"), ("g9", "docs")):
                stage.leaf.hold(generation_named(name, collection=collection))
                said = (await root.hears()).hello.collections
            assert [*said] == ["docs", "default", "articles"]
            assert [len(holdings) for holdings in said.values()] == [2, 1, 1]
            ready = readiness(stage.leaf)
            assert ready["ready"]
            assert ready["generations"]["g7"]["collection"] == "articles"

    asyncio.run(scene())

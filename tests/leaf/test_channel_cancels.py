"""What a leaf still works on when its root has lost interest."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from leaf.admission import Depth

ALL_SHARDS = list(range(10))
PATIENCE_S = 10.0


@pytest.mark.parametrize("how", ["cancels", "hangs up"])
def test_after_a_cancel_a_worker_finishes_its_unit_and_no_more(staged: Any, how: str) -> None:
    """Of ten legs the first is in hand when all are cancelled, or the root is gone: it is
    finished, its time counts as wasted, and no other shard is searched.
    """

    async def scene() -> None:
        async with staged(workers=1) as stage:
            shards = stage.generation.shards
            shards[0].gate.clear()
            root = await stage.greeted()
            body = {"query": {"type": "all"}, "k": 10}
            ask = {"kind": "search", "generation": "g1", "body": body, "budget_ms": 60_000.0}
            root.says(asks=[ask | {"first": 0, "shards": ALL_SHARDS}])
            await asyncio.to_thread(shards[0].entered.wait)
            if how == "cancels":
                root.says(cancels=ALL_SHARDS)
            else:
                root.hangs_up()
                await root.connection_ends()
            shards[0].gate.set()
            if how == "cancels":
                await root.hears_legs(len(ALL_SHARDS))
            # A second root's leg has its turn when the first one's are out of the way.
            other = await stage.greeted()
            other.says(asks=[ask | {"first": 0, "shards": [9]}])
            assert len((await other.hears_legs(1)).hits) == 1
            searches = [shard.searches for shard in shards.values()]
            assert searches == ([1] + [0] * 8 + [1])
            ledger = stage.leaf.ledger
            began = ledger.legs["search", "cancelled_running"]
            assert began + ledger.legs["search", "abandoned_running"] == 1
            assert 0 < ledger.wasted_us <= ledger.service.sum_us
            async with asyncio.timeout(PATIENCE_S):
                # The worker notes its last leg when it looks for more; nothing announces it.
                while stage.leaf.depth() != Depth(0, 0, 0):  # noqa: ASYNC110
                    await asyncio.sleep(0)

    asyncio.run(scene())

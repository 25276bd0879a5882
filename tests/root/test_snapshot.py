"""What an operator sees at a glance: that it is what is the case."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bench.simulation.scripted import takes
from root.config import Settings
from tests.sim.serving import PLENTY, SHARDS, WORK_S, Served, served

WITHOUT_CANARY = Settings(budget=PLENTY, canary=False)


async def seen(serving: Served) -> Any:
    """What ``GET /live`` says to others than browsers."""
    answer = await serving.client.get("/live")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    return answer.json


def test_a_root_at_rest_has_a_snapshot() -> None:
    """Everything is named, and what was not measured is null."""

    async def body(serving: Served) -> None:
        now = await seen(serving)
        (collection,) = now["collections"]
        assert (collection["collection"], collection["uncovered"]) == ("default", [])
        assert (collection["shards"], collection["documents"]) == (SHARDS, 100)
        assert now["minute"]["requests"] == {"count": 0, "p50": None, "p95": None, "p99": None}
        assert now["hedging"]["policy"] == "adaptive"
        assert now["hedging"]["tokens"] == now["hedging"]["burst"]
        assert now["hedging"]["resting"] is None
        assert now["trouble"] is None
        assert [leaf["state"] for leaf in now["leaves"]] == ["well"] * 4
        assert [leaf["shards"] for leaf in now["leaves"]] == [2] * 4

    served(body, WITHOUT_CANARY)


def test_a_snapshot_has_what_happened_in_the_last_minute() -> None:
    """Requests from their arrival, fan-outs from their start; who is refused is not timed."""

    async def body(serving: Served) -> None:
        for _ in range(10):
            assert (await serving.client.get("/search?q=a")).status == 200
        assert (await serving.client.get("/search?q=a&k=0")).status == 400
        await asyncio.sleep(1.0)
        minute = (await seen(serving))["minute"]
        assert minute["requests"]["count"] == 10
        assert minute["requests"]["p50"] == pytest.approx(2 * (WORK_S * 1000 + 0.2), rel=0.03)
        for row in minute["fan_outs"].values():
            assert row["p99"] == pytest.approx(WORK_S * 1000 + 0.2, rel=0.03)
        assert minute["attempts"]["first"] == 2 * 10 * SHARDS
        await asyncio.sleep(70.0)
        assert (await seen(serving))["minute"]["requests"]["count"] == 0

    served(body, WITHOUT_CANARY)


def test_a_slow_leaf_stands_out() -> None:
    """Its time is many times its peers', and on probation it is what its probes say."""

    async def body(serving: Served) -> None:
        serving.fleet.leaves[2].script = takes(0.1)
        for _ in range(300):
            await serving.client.get("/search?q=a")
            await asyncio.sleep(0.05)
        leaves = (await seen(serving))["leaves"]
        assert [leaf["state"] for leaf in leaves] == ["well", "well", "probation", "well"]
        assert leaves[2]["latency_ms"] == pytest.approx(100.2, rel=0.01)
        assert leaves[2]["latency_ms"] > 10 * max(leaves[i]["latency_ms"] for i in (0, 1, 3))

    served(body, WITHOUT_CANARY)


def test_a_lost_leaf_has_no_time() -> None:
    """It is named as lost, and shards that nobody else has are uncovered."""

    async def body(serving: Served) -> None:
        for channel in list(serving.fleet.channels.values())[:2]:
            channel.leaf.connected = False
        now = await seen(serving)
        assert [leaf["state"] for leaf in now["leaves"]] == ["lost", "lost", "well", "well"]
        assert now["leaves"][0]["latency_ms"] is None
        assert now["collections"][0]["uncovered"] == [0]

    served(body, WITHOUT_CANARY)


def test_why_hedging_rests_is_said() -> None:
    """Push-back first, then errors."""

    async def body(serving: Served) -> None:
        budget, loop = serving.root.searches.budget, asyncio.get_running_loop()
        for _ in range(30):
            budget.failed(loop.time())
        assert (await seen(serving))["hedging"]["resting"] == "errors"
        budget.push_back(loop.time())
        assert (await seen(serving))["hedging"]["resting"] == "push_back"

    served(body, WITHOUT_CANARY)


def test_a_root_without_leaves_has_a_snapshot_too() -> None:
    """Nothing is known, and nothing fails."""

    async def body(serving: Served) -> None:
        serving.fleet.in_use.clear()
        (collection,) = (await seen(serving))["collections"]
        assert (collection["generation"], collection["shards"]) == (None, 0)
        assert collection["uncovered"] == []

    served(body, WITHOUT_CANARY)

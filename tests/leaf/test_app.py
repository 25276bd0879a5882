"""The leaf's other routes: whether it lives, whether it is ready, what it counts."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from leaf.holdings import Holdings

WORD = b'{"query":{"type":"word","text":"parse"}}'


def test_a_leaf_is_ready_once_it_holds_something(staged: Any) -> None:
    """Before the index is loaded the leaf lives and is not ready; searches are told so."""

    async def scene() -> None:
        async with staged() as stage:
            assert (await stage.requests("GET", "/readyz"))[0] == 200
            stage.leaf.holdings = Holdings()
            assert (await stage.requests("GET", "/healthz"))[0] == 200
            assert (await stage.requests("GET", "/readyz"))[0] == 503
            status, headers, _ = await stage.requests("POST", "/shards/0/search", WORD)
            assert (status, headers["retry-after"]) == (503, "1")

    asyncio.run(scene())


def test_refused_shards_are_named(staged: Any) -> None:
    """A shard whose bytes are damaged is named, and the rest is served."""

    async def scene() -> None:
        async with staged() as stage:
            stage.generation.refused = {12: "data.fast has a wrong checksum"}
            status, _, body = await stage.requests("GET", "/readyz")
            assert status == 200
            held = json.loads(body)["generations"]["g1"]
            assert held["shards"] == list(range(10))
            assert held["refused"] == {"12": "data.fast has a wrong checksum"}

    asyncio.run(scene())


def test_metrics_tell_what_happened(staged: Any) -> None:
    """Legs by kind and outcome, and the state of the leaf, in the format of Prometheus."""

    async def scene() -> None:
        async with staged() as stage:
            root = await stage.greeted()
            await stage.requests("POST", "/shards/0/search", WORD)
            _, headers, body = await stage.requests("GET", "/metrics")
            assert headers["content-type"].startswith("text/plain")
            lines = body.decode().splitlines()
            for line in (
                'hedgerow_leaf_legs_total{kind="search",outcome="answered"} 1.0',
                "hedgerow_leaf_connections 1.0",
                "hedgerow_leaf_interference 0.0",
                'hedgerow_leaf_frames_total{direction="in"} 1.0',
                'hedgerow_leaf_shards{collection="default",generation="g1",state="served"} 10.0',
                'hedgerow_leaf_documents{collection="default",generation="g1"} 1000.0',
                "hedgerow_leaf_service_seconds_count 1.0",
                'hedgerow_leaf_queue_legs{priority="interactive"} 0.0',
            ):
                assert line in lines
            root.hangs_up()

    asyncio.run(scene())


def test_a_leaf_says_what_its_shards_have_cost(staged: Any) -> None:
    """Seconds of work by generation and shard, the leaf's place, and no shard nobody asked for."""

    async def scene() -> None:
        async with staged() as stage:
            for shard in (0, 0, 3):
                await stage.requests("POST", f"/shards/{shard}/search", WORD)
            load = json.loads((await stage.requests("GET", "/load"))[2])
            assert (load["leaf"], load["ordinal"], load["leaves"]) == ("leaf0", 0, 1)
            assert (load["replicas"], load["domain"]) == (1, "rack")
            assert list(load["work_s"]["default"]) == ["g1"]
            assert sorted(load["work_s"]["default"]["g1"]) == ["0", "3"]
            assert all(spent_s > 0 for spent_s in load["work_s"]["default"]["g1"].values())
            stage.leaf.workers.forget("g1")
            load = json.loads((await stage.requests("GET", "/load"))[2])
            assert load["work_s"] == {"default": {"g1": {}}}

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/shards/0/search", 405), ("POST", "/healthz", 405)],
)
def test_other_paths_are_problems_too(staged: Any, method: str, path: str, status: int) -> None:
    """Every error has the same form."""

    async def scene() -> None:
        async with staged() as stage:
            got, headers, body = await stage.requests(method, path)
            assert got == status
            assert headers["content-type"] == "application/problem+json"
            assert json.loads(body)["status"] == status

    asyncio.run(scene())


def test_a_leaf_that_is_not_watched_has_no_metrics(staged: Any) -> None:
    """It answers as ever, and there is nothing to read."""

    async def scene() -> None:
        async with staged(watch=False) as stage:
            assert (await stage.requests("POST", "/shards/0/search", WORD))[0] == 200
            assert (await stage.requests("GET", "/metrics"))[0] == 404
            assert not stage.leaf.ledger.legs

    asyncio.run(scene())

"""Plain HTTP: one search of one shard, and every way to ask for it wrongly."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from leaf.errors import field_of
from leaf.plain import BODY_BYTES_MAX, Problem, refused

PATH = "/shards/3/search"
WORD = b'{"query":{"type":"word","text":"parse"}'


def test_a_shard_is_searched(staged: Any) -> None:
    """The answer has the hits of the shard and the leaf's own times."""

    async def scene() -> None:
        async with staged() as stage:
            status, headers, body = await stage.requests("POST", PATH, [WORD, b',"k":5}'])
            assert (status, headers["content-type"]) == (200, "application/json")
            answer = json.loads(body)
            assert answer.pop("queue_us") >= 0
            assert answer.pop("service_us") >= 1
            hits = [{"ordinal": 300, "score": 1.5}]
            assert answer == {"shard": 3, "generation": "g1", "total": 1, "hits": hits}
            assert stage.leaf.ledger.legs == {("search", "answered"): 1}

    asyncio.run(scene())


BAD_REQUESTS: dict[str, tuple[str, bytes, int, str]] = {
    "empty": (PATH, b"", 400, "body"),
    "no JSON": (PATH, b"hello", 400, "body"),
    "null": (PATH, b"null", 400, "body"),
    "invalid UTF-8": (PATH, b'{"query":{"type":"word","text":"\xff"}}', 400, "body"),
    "overlong": (PATH, b'{"query":{"type":"word","text":"\xc0\xaf"}}', 400, "body"),
    "lone surrogate": (PATH, b'{"query":{"type":"word","text":"\\ud800"}}', 400, "body"),
    "a NUL": (PATH, b'{"query":{"type":"word","text":"a\\u0000"}}', 400, "query"),
    "nested deep": (PATH, b'{"query":' + b'{"type":"bool","must":[' * 2_000, 400, "body"),
    "nested deep lists": (PATH, b"[" * 60_000, 400, "body"),
    "no query": (PATH, b"{}", 400, "query"),
    "no text": (PATH, b'{"query":{"type":"word"}}', 400, "query.text"),
    "unknown kind": (PATH, b'{"query":{"type":"regex"}}', 400, "query.type"),
    "unknown member": (PATH, WORD + b',"size":3}', 400, "size"),
    "unknown field": (PATH, WORD[:-1] + b',"field":"nowhere"}}', 400, "query"),
    "k negative": (PATH, WORD + b',"k":-1}', 400, "k"),
    "k zero": (PATH, WORD + b',"k":0}', 400, "k"),
    "k huge": (PATH, WORD + b',"k":9223372036854775808}', 400, "k"),
    "k enormous": (PATH, WORD + b',"k":1e400}', 400, "k"),
    "k text": (PATH, WORD + b',"k":"10"}', 400, "k"),
    "k true": (PATH, WORD + b',"k":true}', 400, "k"),
    "k null": (PATH, WORD + b',"k":null}', 400, "k"),
    "no time": (PATH, WORD + b',"timeout_ms":0}', 400, "timeout_ms"),
    "endless": (PATH, WORD + b',"timeout_ms":1e300}', 400, "timeout_ms"),
    "other generation": (PATH, WORD + b',"generation":"g0"}', 404, "generation"),
    "other shard": ("/shards/77/search", WORD + b"}", 404, "shard"),
    "no shard": ("/shards/-1/search", WORD + b"}", 404, "shard"),
    "shard in Arabic": ("/shards/\u0663/search", WORD + b"}", 404, "shard"),
    "enormous shard": (f"/shards/{'9' * 5000}/search", WORD + b"}", 404, "shard"),
    "too large": (PATH, b" " * (BODY_BYTES_MAX + 1), 413, "body"),
}


@pytest.mark.parametrize("request_and_answer", BAD_REQUESTS.values(), ids=BAD_REQUESTS.keys())
def test_a_bad_request_names_its_field(
    staged: Any, request_and_answer: tuple[str, bytes, int, str]
) -> None:
    """What is wrong is a problem document that names the field; the shard is not searched."""
    path, body, status, field = request_and_answer

    async def scene() -> None:
        async with staged() as stage:
            got, headers, answer = await stage.requests("POST", path, body)
            problem = json.loads(answer)
            assert (got, problem["status"], problem["field"]) == (status, status, field)
            assert headers["content-type"] == "application/problem+json"
            assert 0 < len(problem["detail"]) < 500
            assert stage.generation.shards[3].searches == 0

    asyncio.run(scene())


def test_a_full_queue_is_429(staged: Any) -> None:
    """Overload has a status of its own and says when to come back."""

    async def scene() -> None:
        async with staged(workers=1, queue_legs=1) as stage:
            blocked = stage.generation.shards[3]
            blocked.gate.clear()
            first = asyncio.create_task(stage.requests("POST", PATH, WORD + b"}"))
            await asyncio.to_thread(blocked.entered.wait)
            second = asyncio.create_task(stage.requests("POST", PATH, WORD + b"}"))
            while not stage.leaf.depth().interactive:  # noqa: ASYNC110 - no event tells of it
                await asyncio.sleep(0)
            status, headers, _ = await stage.requests("POST", PATH, WORD + b"}")
            assert (status, headers["retry-after"]) == (429, "1")
            blocked.gate.set()
            assert [(await task)[0] for task in (first, second)] == [200, 200]

    asyncio.run(scene())


def test_a_search_that_is_stuck_is_504(staged: Any) -> None:
    """The deadline holds even when the worker cannot be interrupted; its work is wasted."""

    async def scene() -> None:
        async with staged(workers=1) as stage:
            blocked = stage.generation.shards[3]
            blocked.gate.clear()
            status, _, _ = await stage.requests("POST", PATH, WORD + b',"timeout_ms":1}')
            assert status == 504
            blocked.gate.set()
            assert (await stage.requests("POST", PATH, WORD + b"}"))[0] == 200

    asyncio.run(scene())


def test_a_failing_shard_is_500(staged: Any) -> None:
    """A failure of ours is not the caller's fault, and the next request is served."""

    async def scene() -> None:
        async with staged() as stage:
            stage.generation.shards[3].error = RuntimeError("broken")
            status, _, body = await stage.requests("POST", PATH, WORD + b"}")
            assert status == 500
            assert "broken" in json.loads(body)["detail"]
            assert (await stage.requests("POST", "/shards/4/search", WORD + b"}"))[0] == 200

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("complaint", "field"),
    [
        ("Expected `int`, got `str` - at `$.k`", "k"),
        ("Object contains unknown field `size`", "size"),
        ("Object missing required field `text` - at `$.query.must[0]`", "query.must[0].text"),
        ("Expected `object`, got `null`", "body"),
    ],
)
def test_the_field_is_found_in_the_complaint(complaint: str, field: str) -> None:
    """Decoders say where they stopped; the problem says it in one member."""
    assert field_of(complaint) == field


@pytest.mark.parametrize(
    ("reason", "status"),
    [("busy", 429), ("expired", 504), ("unknown_shard", 404), ("bad_query", 400), ("error", 500)],
)
def test_every_refusal_has_a_status(reason: str, status: int) -> None:
    """What is a refusal on the channel is a status over HTTP."""
    assert refused((0, 1, 2, reason)).status == status
    assert refused((0, 1, 2, reason, "why", 1500)).headers()[-1] == (b"retry-after", b"2")


def test_a_problem_without_a_field_has_none() -> None:
    """The member is left out rather than empty."""
    assert "field" not in json.loads(Problem(503, "not yet").body())

"""Switching trouble at run time: with the token alone, in a plan that can be read, and loudly."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from leaf.admin import InterferenceRoute, Switch
from leaf.app import create_app
from leaf.injection import InjectingWorkers
from leaf.plans import SeededPlan, profile
from leaf.service import WARN_S
from tests.leaf.channel_scenes import run

TOKEN = "correct horse battery staple"
AUTHORIZED = {"authorization": f"Bearer {TOKEN}"}
WORD = {"query": {"type": "word", "text": "parse"}, "k": 10}
REFUSING = b'about = "no entry"\n[[rules]]\nkind = "refuse"\n'


@asynccontextmanager
async def switchable(
    staged: Any, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[Any]:
    """A stage whose trouble can be switched by whoever has the token."""
    async with staged(make=InjectingWorkers, clock=clock) as stage:
        switch = Switch(stage.leaf, stage.leaf.workers, 0)
        stage.app = create_app(stage.leaf, interference=InterferenceRoute(switch, TOKEN, 5))
        yield stage


async def put(stage: Any, body: bytes, path: str = "/interference") -> tuple[int, Any]:
    """Switch trouble on; return status and what is said."""
    status, _, said = await stage.requests("PUT", path, body, AUTHORIZED)
    return status, json.loads(said)


@run
async def test_without_a_configured_token_there_is_no_such_route(staged: Any) -> None:
    """Nobody can switch on what the operator has not made possible."""
    async with staged() as stage:
        for method in ("GET", "PUT", "DELETE"):
            status, _, _ = await stage.requests(method, "/interference", b"", AUTHORIZED)
            assert status == 404


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("", 401),
        (f"Basic {TOKEN}", 401),
        (TOKEN, 401),
        ("Bearer", 403),
        ("Bearer wrong", 403),
        (f"Bearer {TOKEN}!", 403),
        ("Bearer \xfc", 403),
    ],
)
def test_nothing_is_done_or_shown_without_the_token(
    staged: Any, method: str, authorization: str | None, status: int
) -> None:
    """Without any it is 401 and said how, with a wrong one 403."""

    async def scene() -> None:
        async with switchable(staged) as stage:
            headers = {} if authorization is None else {"authorization": authorization}
            got, said, body = await stage.requests(method, "/interference", REFUSING, headers)
            assert got == status
            assert said["content-type"] == "application/problem+json"
            assert (said.get("www-authenticate") == "Bearer") is (status == 401)
            assert TOKEN.encode() not in body
            assert stage.leaf.notice == ""

    asyncio.run(scene())


@run
async def test_a_profile_is_switched_on_and_off_and_every_root_hears_of_it(staged: Any) -> None:
    """The hello comes again with a notice, and again without; health and readiness say it."""
    async with switchable(staged) as stage:
        root = await stage.greeted()
        status, said = await put(stage, b"flapping")
        assert (status, said["name"], said["seed"]) == (200, "flapping", 5)
        assert said["plan"]["rules"][0]["kind"] == "refuse"
        hello = (await root.hears()).hello
        assert hello.notice.startswith("INTERFERENCE flapping, seed 5: ")
        assert said["notice"] == hello.notice
        for path in ("/healthz", "/readyz"):
            assert json.loads((await stage.requests("GET", path))[2])["notice"] == hello.notice
        metrics = (await stage.requests("GET", "/metrics"))[2]
        assert b"hedgerow_leaf_interference 1.0\n" in metrics
        ask = {"kind": "search", "generation": "g1", "body": WORD, "budget_ms": 60_000.0}
        root.says(asks=[{**ask, "first": 0, "shards": [1]}])
        assert [r.detail for r in (await root.hears_legs(1)).refusals] == ["injected trouble"]
        status, _, body = await stage.requests("DELETE", "/interference", b"", AUTHORIZED)
        assert (status, json.loads(body)) == (200, {"notice": None, "plan": None})
        assert (await root.hears()).hello.notice == ""
        root.says(asks=[{**ask, "first": 1, "shards": [1]}])
        assert len((await root.hears_legs(1)).hits) == 1


@run
async def test_what_is_in_force_can_be_asked_for(staged: Any) -> None:
    """GET shows what PUT has said, and changes nothing."""
    async with switchable(staged) as stage:
        _, said = await put(stage, b"bigtable", "/interference?seed=-3")
        assert said["seed"] == -3
        for _ in range(2):
            body = (await stage.requests("GET", "/interference", b"", AUTHORIZED))[2]
            assert json.loads(body) == said


@pytest.mark.parametrize("body", [REFUSING, b'{"about": "x", "rules": [{"kind": "refuse"}]}'])
def test_a_plan_of_ones_own_may_be_sent(staged: Any, body: bytes) -> None:
    """As TOML or as JSON, without a name."""

    async def scene() -> None:
        async with switchable(staged) as stage:
            status, said = await put(stage, body)
            assert (status, said["name"]) == (200, "of its own")
            search = json.dumps(WORD).encode()
            assert (await stage.requests("POST", "/shards/0/search", search))[0] == 429

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("path", "body", "status", "complaint"),
    [
        ("", b"calm", 400, "there is no interference profile 'calm'"),
        ("", b"", 400, "there is no interference profile ''"),
        ("", b"../profiles/flapping.toml", 400, "there is no interference profile '../"),
        ("", b"\xff", 400, "body: is no text in UTF-8"),
        ("", b"{", 400, "body: is neither TOML nor JSON"),
        ("", REFUSING + b"x = 1", 400, "body: rule 1, x: Object contains unknown field"),
        ("", b" " * 70_000, 413, "the body is over"),
        ("?seed=x", b"flapping", 400, "seed must be a whole number, not 'x'"),
    ],
)
def test_what_cannot_be_put_in_force_is_told_and_changes_nothing(
    staged: Any, path: str, body: bytes, status: int, complaint: str
) -> None:
    """One sentence; what was in force stays."""

    async def scene() -> None:
        async with switchable(staged) as stage:
            await put(stage, b"bigtable")
            notice = stage.leaf.notice
            got, said = await put(stage, body, f"/interference{path}")
            assert got == status
            assert complaint in said["detail"]
            assert stage.leaf.notice == notice

    asyncio.run(scene())


def test_the_log_repeats_that_trouble_is_injected(
    staged: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, then each minute for as long as it is in force, and once at its end."""
    now = 0.0

    async def scene() -> None:
        nonlocal now
        async with switchable(staged, lambda: now) as stage:
            leaf = stage.leaf
            leaf.warn_again()
            switch = Switch(leaf, leaf.workers, 0)
            switch.turn_on(SeededPlan("flapping", profile("flapping"), 1))
            for _ in range(30):
                now += WARN_S / 10
                leaf.warn_again()
            switch.turn_off()
            now += WARN_S
            leaf.warn_again()

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    said = [record.getMessage() for record in caplog.records]
    assert [words.partition(",")[0] for words in said] == [
        "INTERFERENCE flapping",
        *["still: INTERFERENCE flapping"] * 3,
        "no trouble is injected any more",
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)

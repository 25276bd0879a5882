"""The channel: every leg is answered once, whatever else happens."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from leaf.protocol import PROTOCOL_VERSION, Refusal
from tests.leaf.channel_scenes import WORD, ask, at_work, reasons, run


@run
async def test_a_leaf_says_what_it_holds(staged: Any) -> None:
    """The hello names protocol, leaf, domain and the shards of each generation."""
    async with staged() as stage:
        root = await stage.connects()
        root.says(hello={"protocol": PROTOCOL_VERSION, "root": "r"})
        hello = (await root.hears()).hello
        assert hello is not None
        assert (hello.protocol, hello.workers) == (PROTOCOL_VERSION, 2)
        assert (hello.leaf, hello.domain) == ("leaf0", "rack")
        assert [holding.shards for holding in hello.holdings] == [tuple(range(10))]
        assert b'"generation":"g1"' in bytes(hello.holdings[0].card)


@run
async def test_each_leg_is_answered(staged: Any) -> None:
    """Hits carry the leg's number, its shard's answer and the leaf's own times."""
    async with staged() as stage:
        root = await stage.greeted()
        root.says(asks=[ask(0, [3, 1]), ask(7, [9])])
        heard = await root.hears_legs(3)
        assert {hits.leg: hits.read()[1] for hits in heard.hits} == {0: [300], 1: [100], 7: [900]}
        assert all(hits.queue_us >= 0 and hits.service_us >= 1 for hits in heard.hits)
        assert await root.is_left_alone()
        assert stage.leaf.ledger.legs == {("search", "answered"): 3}


@run
async def test_an_ask_is_prepared_once(staged: Any) -> None:
    """The query is analysed once for all legs that one worker does."""
    async with staged(workers=1) as stage:
        root = await stage.greeted()
        root.says(asks=[ask(0, list(range(10)))])
        await root.hears_legs(10)
        assert stage.generation.prepared == 1


@run
async def test_words_are_suggested(staged: Any) -> None:
    """They come as documents."""
    async with staged() as stage:
        root = await stage.greeted()
        root.says(asks=[ask(0, [3], kind="suggest", body={"prefix": "pars"})])
        (reply,) = (await root.hears_legs(1)).documents
        assert [(word.id, word.score) for word in reply.documents] == [("parsing", 7.0)]


@run
async def test_documents_are_fetched_and_looked_up(staged: Any) -> None:
    """Fetch answers with documents in the order asked for, lookup with hits of score 0."""
    async with staged() as stage:
        root = await stage.greeted()
        fetch: dict[str, Any] = {"query": None, "fields": None, "highlight": []}
        root.says(
            asks=[
                ask(0, [1, 2], kind="fetch", body=fetch, ordinals=[[105, 101], []]),
                ask(2, [1, 2], kind="lookup", body={"id": "d200"}),
            ]
        )
        heard = await root.hears_legs(4)
        fetched = {one.leg: [d.id for d in one.documents] for one in heard.documents}
        assert fetched == {0: ["d105", "d101"], 1: []}
        assert {h.leg: (h.total, h.read()[1]) for h in heard.hits} == {2: (0, []), 3: (1, [200])}


@run
async def test_one_failing_shard_is_one_refusal(staged: Any) -> None:
    """An exception, a panic, a score that is no number: the other legs are answered."""
    async with staged() as stage:
        shards = stage.generation.shards
        shards[1].error = RuntimeError("broken \ud800" + "x" * 10_000)
        shards[2].error = BaseException("a panic of the search library is no Exception")
        shards[3].score = float("nan")
        shards[4].score = float("-inf")
        root = await stage.greeted()
        root.says(asks=[ask(0, list(range(6)))])
        heard = await root.hears_legs(6)
        assert reasons(heard) == dict.fromkeys((1, 2, 3, 4), "error")
        assert [hits.leg for hits in heard.hits] == [0, 5]
        assert all(len(refusal.detail) < 400 for refusal in heard.refusals)
        root.says(asks=[ask(6, [0] * 20)])
        assert len((await root.hears_legs(20)).hits) == 20


@run
async def test_what_cannot_be_written_is_one_refusal(staged: Any) -> None:
    """A field that JSON has no word for spoils its own leg, not the frame."""
    async with staged() as stage:
        stage.generation.shards[1].fields = {"name": "\ud800"}
        root = await stage.greeted()
        fetch: dict[str, Any] = {"query": None}
        root.says(asks=[ask(0, [0, 1, 2], kind="fetch", body=fetch, ordinals=[[1], [2], [3]])])
        heard = await root.hears_legs(3)
        assert reasons(heard) == {1: "error"}
        assert sorted(one.leg for one in heard.documents) == [0, 2]


BAD_BODIES: dict[str, tuple[str, Any]] = {
    "k is 0": ("search", {**WORD, "k": 0}),
    "k is too large": ("search", {**WORD, "k": 2**31}),
    "k is no number": ("search", {**WORD, "k": "10"}),
    "unknown member": ("search", {**WORD, "size": 10}),
    "no query": ("search", {"k": 10}),
    "unknown field": (
        "search",
        {"query": {"type": "word", "text": "a", "field": "nowhere"}, "k": 1},
    ),
    "negative boost": ("search", {"query": {"type": "word", "text": "a", "boost": -1}, "k": 1}),
    "too long": ("search", {"query": {"type": "word", "text": "é" * 2100}, "k": 1}),
    "a NUL": ("search", {"query": {"type": "phrase", "text": "a\0b"}, "k": 1}),
    "too many parts": (
        "search",
        {"query": {"type": "bool", "must": [{"type": "all"}] * 256}, "k": 1},
    ),
    "not an object": ("fetch", [1, 2]),
    "lookup of a number": ("lookup", {"id": 5}),
}


@pytest.mark.parametrize("kind_and_body", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_a_bad_body_is_refused(staged: Any, kind_and_body: tuple[str, Any]) -> None:
    """No replica could answer it, so every leg of the ask is refused as a bad query."""
    kind, body = kind_and_body

    async def scene() -> None:
        async with staged() as stage:
            root = await stage.greeted()
            root.says(asks=[ask(0, [0, 1], kind=kind, body=body, ordinals=[[], []])])
            heard = await root.hears_legs(2)
            assert reasons(heard) == {0: "bad_query", 1: "bad_query"}
            assert all(refusal.detail for refusal in heard.refusals)

    asyncio.run(scene())


@run
async def test_a_query_nested_too_deep_is_refused(staged: Any) -> None:
    """Depth is bounded by the contract before it is bounded by the stack."""
    async with staged() as stage:
        query: dict[str, Any] = {"type": "all"}
        for _ in range(16):
            query = {"type": "bool", "must": [query]}
        root = await stage.greeted()
        root.says(asks=[ask(0, [0], body={"query": query, "k": 1})])
        assert reasons(await root.hears_legs(1)) == {0: "bad_query"}


@run
async def test_unknown_shards_and_generations_are_refused(staged: Any) -> None:
    """A leaf that lacks something says so; the others of the ask are answered."""
    async with staged() as stage:
        root = await stage.greeted()
        root.says(asks=[ask(0, [5, 77]), ask(2, [0, 1], generation="g0")])
        heard = await root.hears_legs(4)
        wanted = {1: "unknown_shard", 2: "unknown_generation", 3: "unknown_generation"}
        assert reasons(heard) == wanted


@run
async def test_a_budget_that_is_gone_is_expired(staged: Any) -> None:
    """A leg without time left is refused and its shard never searched."""
    async with staged() as stage:
        root = await stage.greeted()
        root.says(asks=[ask(0, [0], budget_ms=0.0), ask(1, [1], budget_ms=-5.0)])
        assert reasons(await root.hears_legs(2)) == {0: "expired", 1: "expired"}
        assert stage.generation.shards[0].searches == 0


@run
async def test_what_waits_can_expire_while_every_worker_is_busy(staged: Any) -> None:
    """The leaf's upkeep answers legs past their deadline, even when no worker comes by."""
    async with staged(workers=1) as stage:
        root, blocked = await at_work(stage, 0)
        root.says(asks=[ask(1, [1], budget_ms=0.0)])
        assert await root.is_left_alone()
        stage.leaf.workers.expire()
        assert reasons(await root.hears_legs(1)) == {1: "expired"}
        blocked.gate.set()
        assert [hits.leg for hits in (await root.hears_legs(1)).hits] == [0]


@run
async def test_a_full_queue_is_said_at_once(staged: Any) -> None:
    """Legs beyond the bound are busy, with a hint when to come back."""
    async with staged(workers=1, queue_legs=3) as stage:
        root, blocked = await at_work(stage, 0)
        root.says(asks=[ask(1, [1, 2, 3, 4, 5])])
        heard = await root.hears_legs(2)
        assert reasons(heard) == {4: "busy", 5: "busy"}
        assert all(refusal.retry_ms >= 1 for refusal in heard.refusals)
        blocked.gate.set()
        assert len((await root.hears_legs(4)).hits) == 4


@run
async def test_a_cancelled_leg_is_answered(staged: Any) -> None:
    """In the queue it is removed at once; at work it is finished, and says what it cost."""
    async with staged(workers=1) as stage:
        root, blocked = await at_work(stage, 0, 1, 2)
        root.says(cancels=[0, 2, 2, 99], ping=1)
        blocked_frames = [await root.hears(), await root.hears()]
        queued: list[Refusal] = [r for frame in blocked_frames for r in frame.refusals]
        blocked.gate.set()
        heard = await root.hears_legs(3 - len(queued))
        cancelled = {r.leg: r for r in [*queued, *heard.refusals]}
        assert {r.reason for r in cancelled.values()} == {"cancelled"}
        assert cancelled.keys() == {0, 2}
        assert cancelled[0].service_us > 0
        assert cancelled[2].service_us == 0
        assert stage.generation.shards[2].searches == 0
        assert [hits.leg for hits in heard.hits] == [1]
        legs = stage.leaf.ledger.legs
        assert legs["search", "cancelled_running"] == legs["search", "cancelled"] == 1
        assert stage.leaf.ledger.wasted_us > 0


@run
async def test_a_ping_is_answered_while_every_worker_is_busy(staged: Any) -> None:
    """Pongs come from the event loop: a busy leaf is not a dead one."""
    async with staged(workers=1) as stage:
        root, _ = await at_work(stage, 0)
        root.says(ping=-(2**63))
        assert (await root.hears()).pong == -(2**63)


@run
async def test_a_lost_connection_takes_its_legs_along(staged: Any) -> None:
    """What waited is never searched; what was running is counted as wasted."""
    async with staged(workers=1) as stage:
        root, blocked = await at_work(stage, 0)
        root.says(asks=[ask(1, [1, 2])])
        root.hangs_up()
        await root.connection_ends()
        assert stage.leaf.connections() == 0
        blocked.gate.set()
        other = await stage.greeted()
        other.says(asks=[ask(0, [3])])
        await other.hears_legs(1)
        assert stage.generation.shards[1].searches == 0
        legs = stage.leaf.ledger.legs
        assert legs["search", "abandoned_queued"] == 2
        assert legs["search", "abandoned_running"] == 1
        assert stage.leaf.ledger.wasted_us > 0


@run
async def test_a_root_that_does_not_read_is_dropped(staged: Any) -> None:
    """Answers are not buffered without end: past the bound the connection ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leaf.wire.OUTGOING_BYTES_MAX", 5_000)
        async with staged() as stage:
            root = await stage.greeted()
            root.reads(reads=False)
            for first in range(0, 1_000, 10):
                root.says(asks=[ask(first, list(range(10)))])
            await root.connection_ends()
            assert stage.leaf.ledger.dropped_channels == 1
            assert stage.leaf.connections() == 0


@run
async def test_roots_hear_of_a_new_generation(staged: Any) -> None:
    """The hello comes again when what the leaf holds changes; both generations are served."""
    async with staged() as stage:
        root = await stage.greeted()
        stage.leaf.hold(stage.another_generation("g2", shards=3))
        hello = (await root.hears()).hello
        assert hello is not None
        assert [len(holding.shards) for holding in hello.holdings] == [10, 3]
        root.says(asks=[ask(0, [1]), ask(1, [1], generation="g2")])
        assert len((await root.hears_legs(2)).hits) == 2


ASK_OF_3 = b'{"kind":"search","generation":"g1","body":{},"budget_ms":1,"first":3,"shards":[1,2]}'

MALFORMED: dict[str, Any] = {
    "no JSON": b"\x00\xff",
    "invalid UTF-8": b'{"ping":1,"x":"\xff"}',
    "unknown member": b'{"pong":1}',
    "a number too large": b'{"ping":1e400}',
    "a ping too large": b'{"ping":9223372036854775808}',
    "nested too deep": b'{"asks":' + b"[" * 100_000,
    "text": '{"ping":1}',
    "a second hello": b'{"hello":{"protocol":%d,"root":"r"}}' % PROTOCOL_VERSION,
    "not numbered upwards": b'{"asks":[%s,%s]}'
    % (
        (b'{"kind":"search","generation":"g1","body":{},"budget_ms":1,"first":3,"shards":[1,2]}',)
        * 2
    ),
    "fetch without ordinals": b'{"asks":[{"kind":"fetch","generation":"g1","body":{},'
    b'"budget_ms":1,"first":0,"shards":[1]}]}',
    "negative leg": b'{"asks":[{"kind":"search","generation":"g1","body":{},'
    b'"budget_ms":1,"first":-1,"shards":[1]}]}',
}


@pytest.mark.parametrize("frame", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_frame_is_refused_in_words(staged: Any, frame: Any) -> None:
    """The connection ends and says why; the leaf goes on serving others."""

    async def scene() -> None:
        async with staged() as stage:
            root = await stage.greeted()
            root.says(frame)
            while (heard := await root.hears()).refused is None:
                pass
            assert heard.refused.startswith("malformed frame: ")
            assert await root.close_code() == 4002
            await root.connection_ends()
            other = await stage.greeted()
            other.says(asks=[ask(0, [3])])
            assert len((await other.hears_legs(1)).hits) == 1

    asyncio.run(scene())


@pytest.mark.parametrize("frame", [{"ping": 1}, {"asks": [ask(0, [1])]}, {}])
def test_the_first_frame_must_be_a_hello(staged: Any, frame: dict[str, Any]) -> None:
    """Whoever does not say hello is no root."""

    async def scene() -> None:
        async with staged() as stage:
            root = await stage.connects()
            root.says(**frame)
            assert "hello" in ((await root.hears()).refused or "")
            assert await root.close_code() == 4002

    asyncio.run(scene())


@run
async def test_another_protocol_is_refused_in_words(staged: Any) -> None:
    """Both versions are named, and the close code is the one for versions."""
    async with staged() as stage:
        root = await stage.connects()
        root.says(hello={"protocol": PROTOCOL_VERSION + 1, "root": "r"})
        refused = f"this leaf speaks protocol {PROTOCOL_VERSION}, not {PROTOCOL_VERSION + 1}"
        assert (await root.hears()).refused == refused
        assert await root.close_code() == 4001

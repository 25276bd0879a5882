"""Each kind of trouble from end to end: asked by a root, met by a leaf, heard by the root.

Time stands still but for the sleeping that is injected, and what a test adds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import orjson
import pytest
from websockets.frames import Opcode

from leaf.asks import Task
from leaf.broken import BrokenAnswer
from leaf.injection import InjectingWorkers, arrival_of, words_of
from leaf.interference import Interference, Plan
from leaf.protocol import LeafFrame
from tests.leaf.channel_scenes import reasons, run

WORD = {"query": {"type": "word", "text": "parse"}, "k": 10}


@dataclass
class Time:
    """A clock that only sleeping moves. ``meanwhile`` happens during the next sleep."""

    now: float = 1000.0
    slept: list[tuple[str, float]] = field(default_factory=list)
    meanwhile: Callable[[], None] | None = None

    def clock(self) -> float:
        return self.now

    def sleep(self, duration_s: float) -> None:
        self.slept.append((threading.current_thread().name, duration_s))
        if self.meanwhile is not None:
            self.meanwhile()
        self.now += duration_s


@dataclass
class Scene:
    """A leaf with a plan in force, a root that is connected to it, and their time."""

    stage: Any
    root: Any
    time: Time
    workers: InjectingWorkers

    def passes(self, duration_s: float) -> None:
        """Let time pass."""
        self.time.now += duration_s
        self.workers.courier.look()
        self.workers.expire()

    def asks(self, shards: list[int], **members: Any) -> None:
        """Ask for shards; the first leg is 0."""
        asked = {"kind": "search", "generation": "g1", "body": WORD, "budget_ms": 60_000.0}
        self.root.says(asks=[{**asked, "first": 0, "shards": shards, **members}])

    async def hears(self, legs: int) -> LeafFrame:
        """Hear the answers to so many legs, and nothing more."""
        heard: LeafFrame = await self.root.hears_legs(legs)
        assert await self.root.is_left_alone()
        return heard


def plan(*rules: dict[str, Any]) -> Plan:
    return msgspec.convert({"about": "a test", "rules": rules}, Plan)


@asynccontextmanager
async def troubled(staged: Any, *rules: dict[str, Any]) -> AsyncIterator[Scene]:
    time = Time()
    make = partial(InjectingWorkers, sleep=time.sleep)
    async with staged(workers=1, make=make, clock=time.clock) as stage:
        workers = stage.leaf.workers
        workers.interfere(Interference(plan(*rules), leaf=0, seed=1, began_s=time.now))
        yield Scene(stage, await stage.greeted(), time, workers)


def lasts(ms: float) -> dict[str, Any]:
    return {"law": "constant", "ms": ms}


# --- trouble that takes time ---------------------------------------------------------------


@run
async def test_transit_holds_an_answer_back_and_occupies_nobody(staged: Any) -> None:
    """The worker goes on at once; the answer leaves when its time has come, and reports none
    of it: the leaf did not see it.
    """
    slow = {"kind": "transit", "takes": lasts(5000), "where": {"shards": [1]}}
    async with troubled(staged, slow) as scene:
        scene.asks([1, 0])
        assert [hits.leg for hits in (await scene.hears(1)).hits] == [1]
        scene.passes(4.9)
        assert await scene.root.is_left_alone()
        scene.passes(0.1)
        (late,) = (await scene.hears(1)).hits
        assert (late.leg, late.read()[1]) == (0, [100])
        assert (late.queue_us, late.service_us) == (0, 1)
        assert scene.time.slept == []


@run
async def test_transit_holds_refusals_back_too(staged: Any) -> None:
    """What is on its way is held up, whatever it says."""
    slow = {"kind": "transit", "takes": lasts(100)}
    async with troubled(staged, slow, {"kind": "refuse", "reason": "error"}) as scene:
        scene.asks([0])
        assert await scene.root.is_left_alone()
        scene.passes(0.1)
        assert reasons(await scene.hears(1)) == {0: "error"}


@run
async def test_busy_occupies_a_worker_so_that_others_queue(staged: Any) -> None:
    """The leg is served for so long, and whoever comes after it has waited for so long."""
    slow = {"kind": "busy", "takes": lasts(50), "where": {"shards": [4]}}
    async with troubled(staged, slow) as scene:
        scene.asks([4, 5])
        first, second = (await scene.hears(2)).hits
        assert first.service_us == pytest.approx(50_000, abs=1)
        assert second.queue_us == pytest.approx(50_000, abs=1)
        assert scene.time.slept == [("worker-0", 0.05)]


@run
async def test_a_cancelled_leg_is_dropped_at_the_next_unit(staged: Any) -> None:
    """As with real work: what has begun is finished and dropped, what has not never begins."""
    async with troubled(staged, {"kind": "busy", "takes": lasts(50)}) as scene:
        scene.time.meanwhile = lambda: scene.workers.cancel(1, [0, 1])
        scene.asks([4, 5])
        heard = await scene.hears(2)
        assert reasons(heard) == {0: "cancelled", 1: "cancelled"}
        served = {refusal.leg: refusal.service_us for refusal in heard.refusals}
        assert served == {0: pytest.approx(50_000, abs=1), 1: 0}
        assert len(scene.time.slept) == 1


@run
async def test_block_stops_the_event_loop_once_an_ask(staged: Any) -> None:
    """It is the loop's own thread that sleeps, for the longest that one of the legs draws; the
    leaf's own clock does not see it.
    """
    rule = {"kind": "block", "takes": lasts(100)}
    longer = {"kind": "block", "takes": lasts(200), "where": {"shards": [2]}}
    async with troubled(staged, rule, longer) as scene:
        scene.asks([1, 2, 3])
        assert [hit.queue_us for hit in (await scene.hears(3)).hits] == [0, 0, 0]
        ((thread, slept_s),) = scene.time.slept
        assert (thread, round(slept_s, 9)) == (threading.main_thread().name, 0.3)


# --- trouble that ends a leg -----------------------------------------------------------------


@run
async def test_failing_occupies_a_worker_and_no_shard(staged: Any) -> None:
    """The worker has been busy before it refuses, and the shard was not searched."""
    busy = {"kind": "busy", "takes": lasts(20)}
    async with troubled(staged, busy, {"kind": "fail", "reason": "error"}) as scene:
        scene.asks([3])
        (refusal,) = (await scene.hears(1)).refusals
        assert (refusal.reason, refusal.detail) == ("error", "injected trouble")
        assert refusal.service_us == pytest.approx(20_000, abs=1)
        assert scene.stage.generation.shards[3].searches == 0


def test_injected_failures_are_not_logged_as_faults(
    staged: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback for what was ordered would hide those that were not."""

    async def act() -> None:
        async with troubled(staged, {"kind": "fail"}) as scene:
            scene.asks([3])
            await scene.hears(1)

    asyncio.run(act())
    assert "failed" not in caplog.text


@run
async def test_a_shard_that_fails_by_itself_is_still_a_fault(staged: Any) -> None:
    """Trouble that is injected does not cover up what is not."""
    async with troubled(staged, {"kind": "busy", "takes": lasts(1)}) as scene:
        scene.stage.generation.shards[3].error = RuntimeError("broken")
        scene.asks([3])
        (refusal,) = (await scene.hears(1)).refusals
        assert (refusal.reason, refusal.detail) == ("error", "RuntimeError: broken")


@run
async def test_refused_legs_never_reach_the_queue(staged: Any) -> None:
    """They are refused with the hint they are given; the legs around them are answered."""
    rule = {"kind": "refuse", "retry_ms": 30, "where": {"shards": [2, 4, 5]}}
    async with troubled(staged, rule) as scene:
        scene.asks([0, 1, 2, 3, 4, 5, 6])
        heard = await scene.hears(7)
        assert {hits.leg: hits.read()[1] for hits in heard.hits} == {
            leg: [leg * 100] for leg in (0, 1, 3, 6)
        }
        told = {
            refusal.leg: (refusal.reason, refusal.retry_ms, refusal.service_us)
            for refusal in heard.refusals
        }
        assert told == dict.fromkeys((2, 4, 5), ("busy", 30, 0))
        assert [scene.stage.generation.shards[shard].searches for shard in (2, 4, 5)] == [0] * 3


@run
async def test_parts_of_a_fetch_keep_their_documents(staged: Any) -> None:
    """A fetch with a refused leg in its middle answers the others with what they asked for."""
    async with troubled(staged, {"kind": "refuse", "where": {"shards": [2]}}) as scene:
        body: dict[str, Any] = {"query": None}
        scene.asks([1, 2, 3], kind="fetch", body=body, ordinals=[[105], [201], [307, 301]])
        heard = await scene.hears(3)
        fetched = {one.leg: [d.ordinal for d in one.documents] for one in heard.documents}
        assert fetched == {0: [105], 2: [307, 301]}


@run
async def test_a_hanging_leg_ends_when_it_is_cancelled(staged: Any) -> None:
    """Until then nothing is heard of it, and no worker waits for it."""
    async with troubled(staged, {"kind": "hang", "where": {"shards": [1]}}) as scene:
        scene.asks([1, 0, 1])
        assert [hits.leg for hits in (await scene.hears(1)).hits] == [1]
        scene.root.says(cancels=[0])
        assert reasons(await scene.hears(1)) == {0: "cancelled"}


@run
async def test_a_hanging_leg_ends_at_its_deadline(staged: Any) -> None:
    """Every leg is answered once: this one as expired."""
    async with troubled(staged, {"kind": "hang"}) as scene:
        scene.asks([1], budget_ms=500)
        scene.passes(0.4)
        assert await scene.root.is_left_alone()
        scene.passes(0.2)
        assert reasons(await scene.hears(1)) == {0: "expired"}


@run
async def test_a_hanging_leg_ends_with_its_connection(staged: Any) -> None:
    """It is counted with what else was abandoned."""
    async with troubled(staged, {"kind": "hang"}) as scene:
        scene.asks([1, 2])
        scene.root.hangs_up()
        await scene.root.connection_ends()
        assert scene.stage.leaf.ledger.legs == {("search", "abandoned_queued"): 2}


@pytest.mark.parametrize("kind", ["search", "fetch", "lookup"])
def test_garbage_may_be_no_frame(staged: Any, kind: str) -> None:
    """What comes is no JSON, whatever was asked for."""

    async def act() -> None:
        async with troubled(staged, {"kind": "garbage", "what": "frame"}) as scene:
            bodies: dict[str, Any] = {"search": WORD, "fetch": {"query": None}}
            body = bodies.get(kind, {"id": "d100"})
            more = {"ordinals": [[105]]} if kind == "fetch" else {}
            scene.asks([1], kind=kind, body=body, **more)
            data = await scene.root.frame(Opcode.BINARY)
            with pytest.raises(orjson.JSONDecodeError):
                orjson.loads(data)

    asyncio.run(act())


@run
async def test_garbage_may_be_hits_without_sense(staged: Any) -> None:
    """The frame can be read, the hits cannot; the legs beside them are as ever."""
    async with troubled(staged, {"kind": "garbage", "where": {"shards": [1]}}) as scene:
        scene.asks([0, 1])
        good, bad = (await scene.hears(2)).hits
        assert good.read()[1] == [0]
        with pytest.raises(BrokenAnswer):
            bad.read()


@run
async def test_documents_without_sense_break_the_contract(staged: Any) -> None:
    """A fetch has no part that is read later: its garbage is found at once."""
    async with troubled(staged, {"kind": "garbage"}) as scene:
        body: dict[str, Any] = {"query": None}
        scene.asks([1], kind="fetch", body=body, ordinals=[[105]])
        data = await scene.root.frame(Opcode.BINARY)
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(data, type=LeafFrame)


# --- over HTTP, and without a plan -----------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ({"kind": "refuse"}, 429),
        ({"kind": "fail"}, 500),
        ({"kind": "fail", "where": {"alone": False}}, 200),
        ({"kind": "garbage"}, 200),
    ],
)
def test_trouble_strikes_plain_http_too(staged: Any, rule: dict[str, Any], status: int) -> None:
    """A request to one leaf alone meets what the plan has for such."""

    async def act() -> None:
        async with troubled(staged, rule) as scene:
            body = orjson.dumps(WORD)
            got, _, said = await scene.stage.requests("POST", "/shards/0/search", body)
            assert got == status
            assert (b'"score":null' in said) is (rule["kind"] == "garbage")

    asyncio.run(act())


@run
async def test_what_has_arrived_meets_what_it_was_to_meet(staged: Any) -> None:
    """Ending the plan changes nothing for it, and everything for what comes after."""
    async with troubled(staged, {"kind": "transit", "takes": lasts(100)}) as scene:
        scene.asks([1])
        assert await scene.root.is_left_alone()
        scene.workers.interfere(None)
        scene.asks([2], first=1)
        assert [hits.leg for hits in (await scene.hears(1)).hits] == [1]
        scene.passes(0.1)
        assert [hits.leg for hits in (await scene.hears(1)).hits] == [0]


@run
async def test_a_query_that_is_none_is_refused_as_ever(staged: Any) -> None:
    """What the caller did wrong is told, and costs no worker its time."""
    async with troubled(staged, {"kind": "busy", "takes": lasts(50)}) as scene:
        scene.asks([1], body={"query": {"type": "word", "text": "x", "field": "nowhere"}, "k": 1})
        assert reasons(await scene.hears(1)) == {0: "bad_query"}
        assert scene.time.slept == []


# --- what the rules see ----------------------------------------------------------------------


def test_words_are_found_wherever_a_query_has_them() -> None:
    """In phrases and in branches, in lower case; an id is a word; nothing in what is no query."""
    query = {
        "type": "bool",
        "must": [{"type": "word", "text": "JSON"}],
        "should": [{"type": "phrase", "text": "file like Object"}, {"type": "all"}],
        "must_not": [{"type": "bool", "must_not": [{"type": "word", "text": "xml"}]}],
    }
    body = msgspec.Raw(orjson.dumps({"query": query, "k": 10}))
    assert words_of(body) == {"json", "file", "like", "object", "xml"}
    assert words_of(msgspec.Raw(b'{"id": "json.Dumps"}')) == {"json.dumps"}
    assert words_of(msgspec.Raw(b'{"query": 7}')) == frozenset()


def test_leaves_see_the_same_of_one_query(generation_named: Any) -> None:
    """Its number and its body are common to all legs."""

    def arrival(body: bytes, query: int, shards: list[int]) -> Any:
        task = Task(
            sink=msgspec.UNSET,  # type: ignore[arg-type]
            channel=1,
            kind="search",
            generation=generation_named("g1"),
            body=msgspec.Raw(body),
            first=0,
            shards=shards,
            arrived_s=0.0,
            budget_s=1.0,
            query=query,
        )
        return arrival_of(task, words=False)._replace(shards=())

    assert arrival(b'{"k":1}', 7, [1, 2]) == arrival(b'{"k":1}', 7, [3])
    assert arrival(b'{"k":1}', 7, [1]) != arrival(b'{"k":2}', 7, [1])
    assert arrival(b'{"k":1}', 7, [1]) != arrival(b'{"k":1}', 8, [1])

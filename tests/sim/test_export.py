"""Exports: everything that matches once, as its client reads it, and an end that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from starlette.types import Message

from bench.simulation.scripted import fails
from root import export, export_pages
from root.config import Settings
from tests.sim.contract import Contract
from tests.sim.real_index import RealIndex
from tests.sim.serving import PLENTY, Answer, Exchange, Served, is_problem, served

SIZE = 300
EVERYTHING: dict[str, Any] = {"query": {"type": "all"}}
EXPORTS = 4
"""At once."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> RealIndex:
    """Three hundred documents in seven shards."""
    return RealIndex.of(tmp_path_factory.mktemp("export"), SIZE, "export")


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few documents are many pages: 7, and then 40 at a time, each in several pieces."""
    monkeypatch.setattr(export_pages, "FIRST_HITS", 7)
    monkeypatch.setattr(export_pages, "PAGE_HITS_MAX", 40)
    monkeypatch.setattr(export_pages, "PIECE_BYTES", 2_000)


def lines_of(answer: Answer) -> list[dict[str, Any]]:
    """What an export has sent, line by line."""
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.body.endswith(b"\n")
    return [orjson.loads(line) for line in answer.body.splitlines()]


@dataclass(slots=True)
class Reader(Exchange):
    """A client that reads only while it may."""

    reads: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, message: Message) -> None:
        """Take a message once it may be read."""
        await self.reads.wait()
        self.sent.append(message)


def reader() -> Reader:
    """Somebody who has asked for everything."""
    return Reader([orjson.dumps(EVERYTHING)])


def searched(serving: Served) -> int:
    """Legs that leaves have received."""
    return serving.fleet.received


async def is_over(serving: Served) -> None:
    """Assert that nothing is left of any export: no place held, no leg in flight."""
    await asyncio.sleep(1.0)
    assert await serving.metric("hedgerow_attempts_in_flight") == 0.0
    again = await asyncio.gather(
        *(serving.client.post("/export", EVERYTHING) for _ in range(EXPORTS))
    )
    assert [answer.status for answer in again] == [200] * EXPORTS


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"filter": [{"field": "year", "gte": 1995}, {"field": "kind", "equals": "book"}]},
        {"query": {"type": "word", "text": "alpha"}, "sort": ["-_id"]},
        {"query": {"type": "word", "text": "alpha"}, "sort": ["_score"]},
        {"sort": ["-kind", "price"], "filter": [{"field": "ok", "exists": True}]},
        {"query": {"type": "word", "text": "nowhere"}},
    ],
    ids=range(6),
)
def test_all_that_matches_is_exported_once_in_its_order(
    index: RealIndex, asked: dict[str, Any]
) -> None:
    """As one index that is looked through, and the last line says how many there were."""
    asked = EVERYTHING | asked
    in_order = {"sort": ["_id"], "k": 10_000} | asked
    wanted = index.oracle.select(asked["query"], in_order)["hits"]

    async def body(serving: Served) -> None:
        answer = await serving.client.post("/export", asked)
        *hits, last = lines_of(answer)
        assert [hit["id"] for hit in hits] == [identity for identity, _ in wanted]
        scores = [score for _, score in wanted]
        assert [hit["score"] for hit in hits] == pytest.approx(scores, rel=1e-3)
        assert last == {
            "end": {
                "documents": len(wanted),
                "generation": index.card.generation,
                "complete": True,
            }
        }
        Contract((await serving.client.get("/openapi.json")).json).check("post", "/export", answer)
        assert await serving.metric("hedgerow_root_requests_total", route="export") == 1.0
        priorities = {
            leg.flight.ask.priority for leaf in serving.fleet.leaves for leg in leaf.received
        }
        assert priorities == {"batch"}

    served(body, Settings(budget=PLENTY, canary=False), index=index)


def test_fields_are_those_that_were_asked_for(index: RealIndex) -> None:
    """And highlights none, unless they are."""

    async def body(serving: Served) -> None:
        asked = {"q": "alpha", "fields": ["kind"]}
        *hits, _ = lines_of(await serving.client.post("/export", asked))
        assert hits
        assert all(hit["fields"].keys() <= {"kind"} and not hit["highlights"] for hit in hits)
        *hits, _ = lines_of(await serving.client.post("/export", asked | {"highlight": ["body"]}))
        assert all("<em>" in hit["highlights"]["body"] for hit in hits)

    served(body, index=index)


def test_an_export_goes_no_faster_than_it_is_read(index: RealIndex) -> None:
    """Nothing is asked of any leaf while the client does not read, and all comes when it does."""

    async def body(serving: Served) -> None:
        client = reader()
        running = asyncio.ensure_future(serving.client.run("POST", "/export", client))
        await asyncio.sleep(5.0)
        first_page = searched(serving)
        assert first_page > 0
        await asyncio.sleep(30.0)
        assert searched(serving) == first_page
        for _ in range(3):
            client.reads.set()
            await asyncio.sleep(0.0)
            client.reads.clear()
            await asyncio.sleep(20.0)
        assert not running.done()
        sent = b"".join(message.get("body", b"") for message in client.sent)
        assert 0 < sent.count(b"\n") < SIZE
        client.reads.set()
        await running
        *hits, last = lines_of(client.answer())
        assert len({hit["id"] for hit in hits}) == len(hits) == SIZE
        assert last["end"]["documents"] == SIZE
        assert max(len(message.get("body", b"")) for message in client.sent) < 4_000

    served(body, index=index)


@pytest.mark.parametrize("reads", [0, 1, 5])
def test_who_reads_nothing_for_a_minute_loses_the_place(index: RealIndex, reads: int) -> None:
    """Else four who have gone to lunch would stop all exports."""

    async def body(serving: Served) -> None:
        client = reader()
        running = asyncio.ensure_future(serving.client.run("POST", "/export", client))
        client.reads.set()
        await asyncio.sleep(0.003)
        client.reads.clear()
        await asyncio.sleep(export.WRITE_S - 1.0)
        assert not running.done()
        await asyncio.sleep(2.0)
        assert running.done()
        await running
        assert await serving.metric("hedgerow_root_requests_total", status="499") == 1.0
        await is_over(serving)

    served(body, index=index)


@pytest.mark.parametrize("after_s", [0.0, 0.0005, 0.003, 0.011, 0.02])
def test_a_client_that_leaves_ends_its_export(index: RealIndex, after_s: float) -> None:
    """Before the first page, between pages or in the midst of one: no task is left, no leg."""

    async def body(serving: Served) -> None:
        client = Exchange([orjson.dumps(EVERYTHING)])
        asyncio.get_running_loop().call_later(after_s, client.leaves.set)
        await serving.client.run("POST", "/export", client)
        sent = b"".join(message.get("body", b"") for message in client.sent)
        assert b'"end"' not in sent
        await asyncio.sleep(0.1)
        legs = searched(serving)
        await asyncio.sleep(10.0)
        assert searched(serving) == legs
        assert await serving.metric("hedgerow_root_requests_total", status="499") == 1.0
        await is_over(serving)

    served(body, index=index)


def test_a_connection_that_breaks_ends_the_export(index: RealIndex) -> None:
    """A server may say so by failing to send."""

    class Broken(Exchange):
        async def send(self, message: Message) -> None:
            if len(self.sent) == 3:
                raise OSError("connection lost")
            await super().send(message)

    async def body(serving: Served) -> None:
        await serving.client.run("POST", "/export", Broken([orjson.dumps(EVERYTHING)]))
        assert await serving.metric("hedgerow_root_requests_total", status="499") == 1.0
        await is_over(serving)

    served(body, index=index)


def test_a_generation_that_goes_away_is_the_last_line(index: RealIndex) -> None:
    """410 with its reason, in place of an end: the status was sent long ago."""

    async def body(serving: Served) -> None:
        client = reader()
        running = asyncio.ensure_future(serving.client.run("POST", "/export", client))
        await asyncio.sleep(1.0)
        serving.fleet.views.clear()
        client.reads.set()
        await running
        *hits, last = lines_of(client.answer())
        assert len(hits) == 7
        assert last["error"]["status"] == 410
        assert index.card.generation in last["error"]["detail"]
        assert set(last) == {"error"}
        rejected = await serving.metric("hedgerow_root_rejections_total", route="export")
        assert rejected == 1.0

    served(body, index=index)


def lose(serving: Served) -> None:
    """Lose two leaves of four that are neighbours: the shards that only they hold are gone."""
    for number in (0, 1):
        serving.fleet.disconnect(number)


def test_a_shard_that_is_missing_from_the_first_page_is_a_problem(index: RealIndex) -> None:
    """Before anything was sent an error is an error, without half a page."""

    async def body(serving: Served) -> None:
        lose(serving)
        answer = await serving.client.post("/export", EVERYTHING)
        assert set(is_problem(answer, 504)) == {"type", "title", "status", "detail"}

    served(body, index=index)


def test_a_shard_that_is_missing_later_is_the_last_line(index: RealIndex) -> None:
    """What was sent is right, and is not everything."""

    async def body(serving: Served) -> None:
        client = reader()
        running = asyncio.ensure_future(serving.client.run("POST", "/export", client))
        await asyncio.sleep(1.0)
        lose(serving)
        client.reads.set()
        await running
        *hits, last = lines_of(client.answer())
        assert len(hits) == 7
        assert last["error"]["status"] == 504
        assert "hits" not in last["error"]

    served(body, index=index)


@dataclass
class Witness(Exchange):
    """A client in whose presence something happens, once it has so many lines."""

    lines: int = 0
    happens: Callable[[], None] = lambda: None

    async def send(self, message: Message) -> None:
        """Take a message."""
        await super().send(message)
        before, self.lines = self.lines, self.lines - message.get("body", b"").count(b"\n")
        if self.lines <= 0 < before:
            self.happens()


@pytest.mark.parametrize("lines", [7, 200])
def test_less_may_be_searched_where_less_is_asked_for(index: RealIndex, lines: int) -> None:
    """All of the other shards comes, however little of it is left, and the end says that it is
    not complete.
    """
    gone = [index.generation.shards[shard] for shard in (0, 4)]
    all_ids = [identity for identity, _ in index.oracle.search({"type": "all"}, SIZE)[1]]
    others = {identity for identity in all_ids if not any(s.lookup(identity) for s in gone)}
    assert 0 < len(others) < SIZE

    async def body(serving: Served) -> None:
        asked = orjson.dumps(EVERYTHING | {"min_coverage": 0.3})
        client = Witness([asked], lines=lines, happens=lambda: lose(serving))
        await serving.client.run("POST", "/export", client)
        *hits, last = lines_of(client.answer())
        ids = [hit["id"] for hit in hits]
        assert ids == sorted(set(ids))
        assert others <= set(ids)
        assert len(ids) < SIZE
        assert last["end"]["documents"] == len(ids)
        assert last["end"]["complete"] is False
        assert await serving.metric("hedgerow_root_partial_answers_total") == 1.0

    served(body, index=index)


def test_there_are_only_so_many_exports_at_once(index: RealIndex) -> None:
    """One more is told when to try again, and finds a place when one has ended."""

    async def body(serving: Served) -> None:
        clients = [reader() for _ in range(EXPORTS)]
        running = [
            asyncio.ensure_future(serving.client.run("POST", "/export", client))
            for client in clients
        ]
        await asyncio.sleep(1.0)
        answer = await serving.client.post("/export", EVERYTHING)
        assert "exports are running" in is_problem(answer, 429)["detail"]
        assert int(answer.headers["retry-after"]) > 0
        clients[0].reads.set()
        await running[0]
        assert (await serving.client.post("/export", EVERYTHING)).status == 200
        for client in clients:
            client.reads.set()
        await asyncio.gather(*running)
        assert all(lines_of(c.answer())[-1]["end"]["documents"] == SIZE for c in clients)

    served(body, index=index)


def test_what_is_wrong_with_a_request_is_a_problem(index: RealIndex) -> None:
    """With the field that is at fault; nothing is sent to any leaf."""

    async def body(serving: Served) -> None:
        for target, asked, name in (
            ("/export", {"q": "a", "k": 3}, "k"),
            ("/export", {"q": "a", "sort": ["nowhere"]}, "sort[0]"),
            ("/export", {}, "q"),
            ("/export?q=a", EVERYTHING, "q"),
        ):
            assert is_problem(await serving.client.post(target, asked), 400)["field"] == name
        assert is_problem(await serving.client.get("/export?q=a"), 405)
        assert searched(serving) == 0

    served(body, index=index)


def test_leaves_that_fail_are_a_problem_before_and_a_line_after(index: RealIndex) -> None:
    """And so is what nobody has thought of."""

    async def body(serving: Served) -> None:
        client = reader()
        running = asyncio.ensure_future(serving.client.run("POST", "/export", client))
        await asyncio.sleep(1.0)
        for leaf in serving.fleet.leaves:
            leaf.script = fails("error")
        client.reads.set()
        await running
        assert lines_of(client.answer())[-1]["error"]["status"] == 503
        is_problem(await serving.client.post("/export", EVERYTHING), 503)

    served(body, index=index)


def test_a_fault_of_the_root_is_told_as_one(
    index: RealIndex, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """500, and the log says what it was."""

    async def body(serving: Served) -> None:
        monkeypatch.setattr(serving.root.searches, "_query", lambda *_: 1 / 0)
        is_problem(await serving.client.post("/export", EVERYTHING), 500)
        assert "ZeroDivisionError" in caplog.text

    served(body, index=index)

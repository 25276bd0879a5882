"""Who watches is told once a second; who does not read is dropped; who is nobody costs nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.types import Message

from bench.virtual_time import run
from root.viewers import EVERY_S, VIEWERS_MAX, WRITE_S, Viewers
from tests.sim.serving import Exchange, Served, is_problem, served

Send = Callable[[Message], Awaitable[None]]


class Browser:
    """A viewer that reads, or does not: then nothing ends a write."""

    def __init__(self, *, reads: bool = True) -> None:
        self.events: list[Any] = []
        self.left = asyncio.Event()
        self._reads = reads

    async def receive(self) -> Message:
        """Wait until it leaves."""
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take an event, or never."""
        if not self._reads:
            await asyncio.Event().wait()
        assert message["more_body"]
        body = message["body"]
        assert body.startswith(b"data: ")
        assert body.endswith(b"\n\n")
        self.events.append(orjson.loads(body[6:]))


class Told:
    """Viewers of a snapshot that counts how often it is made."""

    def __init__(self) -> None:
        self.made = 0
        self.viewers = Viewers(self.snapshot)

    def snapshot(self) -> dict[str, Any]:
        """Make one."""
        self.made += 1
        return {"made": self.made}

    def join(self, browser: Browser) -> asyncio.Task[None]:
        """Let a browser watch."""
        return asyncio.create_task(self.viewers.stream(browser.receive, browser.send))


def test_a_snapshot_is_made_once_a_second_for_all_who_watch() -> None:
    """One for each who comes, and then one for all; none where nobody is."""

    async def main() -> None:
        told = Told()
        told.viewers.tell()
        assert told.made == 0
        browsers = [Browser() for _ in range(3)]
        tasks = [told.join(browser) for browser in browsers]
        await asyncio.sleep(EVERY_S)
        assert (told.made, told.viewers.watching) == (3, 3)
        for _ in range(5):
            told.viewers.tell()
            await asyncio.sleep(EVERY_S)
        assert told.made == 8
        for i, browser in enumerate(browsers, 1):
            assert [event["made"] for event in browser.events] == [i, 4, 5, 6, 7, 8]
            browser.left.set()
        await asyncio.gather(*tasks)
        told.viewers.tell()
        assert (told.made, told.viewers.watching) == (8, 0)

    run(main)


def test_a_viewer_that_stops_reading_is_dropped() -> None:
    """After the time for a write, and nobody else waits for it."""

    async def main() -> None:
        told = Told()
        asleep, awake = Browser(reads=False), Browser()
        tasks = [told.join(browser) for browser in (asleep, awake)]
        await asyncio.sleep(EVERY_S / 2)
        for _ in range(int(WRITE_S / EVERY_S)):
            assert told.viewers.watching == 2
            told.viewers.tell()
            await asyncio.sleep(EVERY_S)
        assert len(awake.events) > WRITE_S / EVERY_S
        assert told.viewers.watching == 1
        assert tasks[0].done()
        awake.left.set()
        await tasks[1]

    run(main)


def test_a_root_that_ends_sends_its_viewers_away() -> None:
    """At once, with a response that is whole."""

    async def body(serving: Served) -> None:
        exchange = Exchange([])
        headers = [(b"accept", b"text/event-stream")]
        watching = asyncio.create_task(serving.client.run("GET", "/live", exchange, headers))
        await asyncio.sleep(0.1)
        serving.root.viewers.end()
        await watching
        assert asyncio.get_running_loop().time() < EVERY_S
        assert exchange.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}

    served(body)


def test_a_slow_viewer_gets_the_latest_and_no_backlog() -> None:
    """What it had no time for is not kept."""

    async def main() -> None:
        told, browser = Told(), Browser()

        async def slowly(message: Message) -> None:
            await asyncio.sleep(3.5 * EVERY_S)
            await browser.send(message)

        task = asyncio.create_task(told.viewers.stream(browser.receive, slowly))
        for _ in range(8):
            await asyncio.sleep(EVERY_S)
            told.viewers.tell()
        browser.left.set()
        await task
        assert len(browser.events) <= 3

    run(main)


def test_a_browser_gets_a_stream_of_events() -> None:
    """By the type that it asks for; each event is a snapshot."""

    async def body(serving: Served) -> None:
        exchange = Exchange([])
        headers = [(b"accept", b"text/event-stream")]
        watching = asyncio.create_task(serving.client.run("GET", "/live", exchange, headers))
        await asyncio.sleep(3.5)
        assert serving.root.viewers.watching == 1
        exchange.leaves.set()
        await watching
        answer = exchange.answer()
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        events = answer.body.split(b"\n\n")
        assert events.pop() == b""
        assert len(events) == 4
        assert all(orjson.loads(event[6:])["collections"][0]["shards"] == 4 for event in events)

    served(body)


def test_too_many_viewers_are_told_to_come_back() -> None:
    """503 with a time; those who are there stay."""

    async def body(serving: Served) -> None:
        serving.root.viewers.watching = VIEWERS_MAX
        exchange = Exchange([])
        await serving.client.run("GET", "/live", exchange, [(b"accept", b"text/event-stream")])
        answer = exchange.answer()
        is_problem(answer, 503)
        assert int(answer.headers["retry-after"]) >= 1

    served(body)

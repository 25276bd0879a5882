"""A root's end of one channel, for driving a leaf as hard as a benchmark likes.

It speaks ``leaf.protocol`` and has nothing of a root's wisdom: it sends what it is told when it
is told, cancels what it is told, and accounts for every leg. What is due at one moment leaves
in one frame, as a root's would. No task and no timer an ask, so that it keeps up with a leaf
that is given four times what it can do.

A leg is *good* when its answer came before its deadline and nobody had cancelled it.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import msgspec
import orjson
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from bench.fleet import FleetError
from leaf.protocol import (
    CHANNEL_PATH,
    FRAME_BYTES_MAX,
    PROTOCOL_VERSION,
    Hits,
    LeafFrame,
    LeafHello,
    Priority,
    Refusal,
)

GREETING_S_MAX: Final = 5.0
"""A leaf that is ready says hello within milliseconds."""

END_S_MAX: Final = 30.0
"""Past every deadline the leaf has ended every leg."""

PING_EVERY_S: Final = 0.2
"""As a root does."""

_FRAMES: Final = msgspec.json.Decoder(LeafFrame)


class Tally:
    """What became of the legs of one kind of ask. Times of refusals are seconds from the send."""

    def __init__(self) -> None:
        self.asks = 0
        self.legs: Counter[str] = Counter()
        self.busy_s = array("d")
        self.latencies_s = array("d")
        self.service_us = 0
        self.unwanted_us = 0


class Call:
    """One ask on its way: when it is meant to leave, and what it is to be counted under.

    Times in seconds of the monotonic clock (a loop's own may tell milliseconds only). Without a
    ``tally`` it is load, and not counted. ``cancel_s``: when the driver loses interest in the
    legs that have not ended by then.
    """

    __slots__ = (
        "body",
        "cancel_s",
        "cancelled",
        "deadline_s",
        "failed",
        "first",
        "intended_s",
        "open",
        "priority",
        "sent_s",
        "tally",
    )

    def __init__(
        self,
        body: bytes,
        intended_s: float,
        budget_s: float,
        tally: Tally | None,
        *,
        cancel_s: float | None = None,
        priority: Priority = "interactive",
    ) -> None:
        self.body = body
        self.intended_s = intended_s
        self.deadline_s = intended_s + budget_s
        self.tally = tally
        self.cancel_s = cancel_s
        self.priority: Priority = priority
        self.cancelled = False
        self.failed = False
        self.first = -1
        self.open: set[int] = set()
        self.sent_s = 0.0


class Driver(asyncio.Protocol):
    """One connection to one leaf; made by ``drive``. Every ask goes to all of its shards."""

    def __init__(self, url: str) -> None:
        self.hello: asyncio.Future[LeafHello] = asyncio.get_running_loop().create_future()
        self.lags_s = array("d")
        self.ended: Callable[[Call], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._websocket = ClientProtocol(
            parse_uri(f"ws{url.removeprefix('http')}{CHANNEL_PATH}"), max_size=FRAME_BYTES_MAX
        )
        self._transport: asyncio.Transport
        self._generation = ""
        self._shards: tuple[int, ...] = ()
        self._open: dict[int, Call] = {}
        self._next_leg = 0
        self._asks: list[Call] = []
        self._cancels: list[int] = []
        self._flush_due = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._pings = 0

    # --- the connection ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the WebSocket."""
        self._transport = cast("asyncio.Transport", transport)
        self._websocket.send_request(self._websocket.connect())
        self._write()

    def data_received(self, data: bytes) -> None:
        """Take what the leaf has sent."""
        now = time.monotonic()
        self._websocket.receive_data(data)
        for event in self._websocket.events_received():
            if isinstance(event, Response):
                hello = {"protocol": PROTOCOL_VERSION, "root": "driver"}
                self._send({"hello": hello})
            elif isinstance(event, Frame) and event.opcode is Opcode.BINARY:
                self._take(_FRAMES.decode(event.data), now)
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits is told that nothing more will come."""
        if not self.hello.done():
            self.hello.set_exception(FleetError(f"the leaf hung up: {exc}"))
        self._idle.set()

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def greet(self, hello: LeafHello) -> None:
        """Ask from now on for the shards of the leaf's newest generation."""
        newest = hello.holdings[-1]
        self._generation = msgspec.json.decode(newest.card)["generation"]
        self._shards = newest.shards

    @property
    def shards(self) -> int:
        """Legs of every ask."""
        return len(self._shards)

    # --- sending -------------------------------------------------------------------------

    def ask(self, call: Call) -> None:
        """Send an ask with all else that is due now."""
        call.first = self._next_leg
        self._next_leg += len(self._shards)
        call.open = set(range(call.first, self._next_leg))
        self._open.update(dict.fromkeys(call.open, call))
        self._asks.append(call)
        self._idle.clear()
        self._flush_soon()
        if call.tally is not None:
            call.tally.asks += 1
            call.tally.legs["offered"] += len(call.open)

    def cancel(self, call: Call) -> None:
        """Lose interest in what has not ended of an ask."""
        call.cancelled = True
        if call.open:
            self._cancels += sorted(call.open)
            self._flush_soon()

    def ping(self) -> None:
        """Ask whether the leaf's loop is there, as roots do."""
        self._pings += 1
        self._send({"ping": self._pings})
        self._write()

    async def keep_to(self, calls: Sequence[Call]) -> None:
        """Send calls, and their cancels, at the times they name, whatever the leaf does."""
        plan = [(call.intended_s, 0, number) for number, call in enumerate(calls)]
        plan += [(c.cancel_s, 1, n) for n, c in enumerate(calls) if c.cancel_s is not None]
        ping_s = time.monotonic()
        for at_s, is_cancel, number in sorted(plan):
            if (wait_s := at_s - time.monotonic()) > 0.0:
                await asyncio.sleep(wait_s)
            now, call = time.monotonic(), calls[number]
            if now >= ping_s:
                ping_s = now + PING_EVERY_S
                self.ping()
            if is_cancel:
                self.cancel(call)
            else:
                self.ask(call)
                self.lags_s.append(now - at_s)

    async def settled(self) -> None:
        """Wait until the leaf has ended every leg."""
        async with asyncio.timeout(END_S_MAX):
            await self._idle.wait()
        if self._open:
            raise FleetError("the leaf hung up with legs in hand")

    def _flush_soon(self) -> None:
        if not self._flush_due:
            self._flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_due = False
        now = time.monotonic()
        asks, self._asks = self._asks, []
        cancels, self._cancels = self._cancels, []
        self._send({"asks": [self._written(call, now) for call in asks], "cancels": cancels})
        self._write()

    def _written(self, call: Call, now: float) -> dict[str, Any]:
        call.sent_s = now
        return {
            "kind": "search",
            "generation": self._generation,
            "body": orjson.Fragment(call.body),
            "budget_ms": max(0.0, call.deadline_s - now) * 1e3,
            "first": call.first,
            "shards": self._shards,
            "priority": call.priority,
        }

    def _send(self, frame: dict[str, Any]) -> None:
        self._websocket.send_binary(orjson.dumps(frame))

    def _write(self) -> None:
        for data in self._websocket.data_to_send():
            if data and not self._transport.is_closing():
                self._transport.write(data)

    # --- receiving -----------------------------------------------------------------------

    def _take(self, frame: LeafFrame, now: float) -> None:
        if frame.hello is not None and not self.hello.done():
            self.greet(frame.hello)
            self.hello.set_result(frame.hello)
        for hits in frame.hits:
            self._answered(hits, now)
        for refusal in frame.refusals:
            self._refused(refusal, now)
        if not self._open:
            self._idle.set()

    def _answered(self, hits: Hits, now: float) -> None:
        call = self._open.pop(hits.leg)
        tally = call.tally
        if tally is not None:
            tally.service_us += hits.service_us
            if call.cancelled:
                tally.unwanted_us += hits.service_us
                tally.legs["unwanted"] += 1
            else:
                tally.legs["good" if now <= call.deadline_s else "late"] += 1
        self._end(call, hits.leg, now)

    def _refused(self, refusal: Refusal, now: float) -> None:
        call = self._open.pop(refusal.leg)
        call.failed = True
        tally = call.tally
        if tally is not None:
            tally.legs[refusal.reason] += 1
            tally.service_us += refusal.service_us
            if refusal.reason == "busy":
                tally.busy_s.append(now - call.sent_s)
            elif refusal.reason == "cancelled":
                tally.unwanted_us += refusal.service_us
        self._end(call, refusal.leg, now)

    def _end(self, call: Call, leg: int, now: float) -> None:
        call.open.remove(leg)
        if call.open:
            return
        if call.tally is not None and not (call.failed or call.cancelled):
            call.tally.latencies_s.append(now - call.intended_s)
        if self.ended is not None:
            self.ended(call)


async def drive(url: str) -> Driver:
    """Return a driver that has exchanged hellos with the leaf at ``url``."""
    loop = asyncio.get_running_loop()
    host, _, port = url.removeprefix("http://").partition(":")
    _, driver = await loop.create_connection(lambda: Driver(url), host, int(port))
    async with asyncio.timeout(GREETING_S_MAX):
        await driver.hello
    return driver

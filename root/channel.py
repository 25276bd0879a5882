"""One connection to one leaf: batching, cancelling, liveness. See ``leaf.protocol``.

Everything that one tick of the loop sends to the leaf leaves in one frame, written by the
channel's writer task; answers come in frames too, and a query they concern is looked at once
a frame, not once a leg.

A leaf is *gone* when its connection closes, when it breaks the protocol, or when it has been
silent for ``SILENCE_S`` though it was pinged: the event loop of a leaf answers pings even
when all its workers are busy, so a leaf that does not is stopped, unreachable or stuck. All
legs it owes then fail at once, and their races move on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from itertools import chain
from typing import Any, Final

import aiohttp
import orjson

from leaf.protocol import (
    CHANNEL_PATH,
    FRAME_BYTES_MAX,
    PROTOCOL_VERSION,
    Documents,
    Hits,
    LeafFrame,
    LeafHello,
    Refusal,
)
from root.conduct import FailureReason
from root.frames import (
    BrokenProtocol,
    ChannelLost,
    Group,
    how_many_fit,
    read_frame,
    read_holdings,
    written_ask,
)
from root.race import Attempt
from root.ranking import Leaf
from root.scatter import Ask, Flight
from root.topology import Held

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S: Final = 2.0
HELLO_TIMEOUT_S: Final = 2.0
CLOSE_TIMEOUT_S: Final = 0.2
CLOSE_REFUSED: Final = 4000
CLOSE_BYTES_MAX: Final = 123
"""Why a root leaves, it says in the close frame: a code of ours, and what fits (RFC 6455, 5.5)."""
RETRY_S: Final = (*[0.05] * 10, *[0.1] * 50, 0.5)
"""Pauses between attempts to connect; the last one repeats. A leaf that is restarted is away
for less than a second, and in a rolling restart its neighbour goes next: it must be back."""

DETAIL_CHARS_MAX: Final = 300
"""Of a leaf's words so much is kept: hundreds of shards may be refused at once, at length."""

RETRY_MS_MAX: Final = 60_000
"""For no longer than a request may take is a leaf believed that it will be busy."""

PING_EVERY_S: Final = 0.2
SILENCE_S: Final = 0.75
"""Three pings unanswered: far beyond any garbage collection or scheduling delay of a leaf,
and soon enough that a query of a second still ends well."""


class Channel:
    """The root's end of a channel. ``run`` keeps it connected until cancelled."""

    def __init__(
        self,
        url: str,
        root_name: str,
        leaf: Leaf,
        changed: Callable[[Channel], None],
    ) -> None:
        """``changed`` is called whenever ``held`` has changed; it may raise ChannelLost."""
        self.url = url
        self.leaf = leaf
        self.hello: LeafHello | None = None
        self.collections: tuple[str, ...] = ()
        self.held: list[Held] = []
        self.problem = "not connected yet"
        self.seen_s = 0.0
        self.reported_us = 0
        self.answered = 0
        self.leaving = False
        self.frames_sent = 0
        self.frames_received = 0
        self._root_name = root_name
        self._changed = changed
        self._waiting: dict[int, tuple[Flight, Attempt]] = {}
        self._next_leg = 0
        self._groups: list[Group] = []
        self._open_ask: Ask | None = None
        self._open_shards: list[int] = []
        self._open_twins: dict[int, str] = {}
        self._cancels: list[int] = []
        self._ping: int | None = None
        self._pinged_s: float | None = None
        self._wanted = asyncio.Event()
        self.heard_s = 0.0
        self._failures = 0
        self._last_name = ""
        self._last_pid: int | None = None

    @property
    def name(self) -> str:
        """What the leaf calls itself; its address as long as that is not known."""
        return self.hello.leaf if self.hello else self._last_name or self.url

    @property
    def label(self) -> str:
        """Name and address, for the log."""
        return f"{self._last_name} at {self.url}" if self._last_name else f"at {self.url}"

    # --- sending: called by flights, many times a tick ---

    def send(self, attempt: Attempt, flight: Flight) -> None:
        """Add a leg to the frame of this tick."""
        leg = self._next_leg
        self._next_leg = leg + 1
        attempt.leg = leg
        self._waiting[leg] = (flight, attempt)
        ask = flight.ask
        if ask is self._open_ask:
            self._open_shards.append(attempt.shard)
        else:
            self._open_ask = ask
            self._open_shards = [attempt.shard]
            self._open_twins = {}
            self._groups.append((ask, leg, self._open_shards, self._open_twins))
            self._wanted.set()
        if attempt.twin is not None:
            self._open_twins[len(self._open_shards) - 1] = attempt.twin.name

    def cancel(self, attempt: Attempt) -> None:
        """Add a cancel to the frame of this tick, if the leaf still owes the leg."""
        if attempt.leg in self._waiting:
            self._cancels.append(attempt.leg)
            self._wanted.set()

    @property
    def owed(self) -> int:
        """Legs that the leaf has not ended."""
        return len(self._waiting)

    def described(self) -> dict[str, Any]:
        """Return what an operator wants to know of the leaf and its connection."""
        hello = self.hello
        return {
            "leaf": self.name,
            "url": self.url,
            "connected": self.leaf.connected,
            "probation": self.leaf.trial is not None,
            "problem": self.problem or None,
            "pid": self._last_pid,
            "domain": hello.domain if hello else None,
            "workers": hello.workers if hello else None,
            "notice": (hello.notice or None) if hello else None,
            "outstanding": self.owed,
            "latency_ms": round(self.leaf.latency_s * 1000.0, 3),
        }

    # --- the connection ---

    async def run(self, session: aiohttp.ClientSession) -> None:
        """Connect, serve, and connect again, until cancelled."""
        while True:
            try:
                await self._serve_once(session)
            except ChannelLost as lost:
                self._say(str(lost))
            except aiohttp.ClientConnectorError as error:
                self._say(f"cannot be reached: {error.os_error.strerror or error.os_error}")
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                self._say(str(error) or "no answer in time")
            except Exception as error:  # a fault of ours must not end the channel for ever
                log.exception("the channel to %s failed", self.url)
                self.problem = f"the root failed: {type(error).__name__}"
            await asyncio.sleep(RETRY_S[min(self._failures, len(RETRY_S) - 1)])
            self._failures += 1

    async def _serve_once(self, session: aiohttp.ClientSession) -> None:
        timeout = aiohttp.ClientWSTimeout(ws_close=CLOSE_TIMEOUT_S)
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            socket = await session.ws_connect(
                self.url + CHANNEL_PATH, max_msg_size=FRAME_BYTES_MAX, timeout=timeout
            )
        try:
            await self._greet(socket)
            await _first_to_end(self._read(socket), self._write(socket), self._watch())
        except ChannelLost as lost:
            self._say(str(lost))
            self._lose("garbage" if lost.broke_protocol else "gone")
            await socket.close(code=CLOSE_REFUSED, message=str(lost).encode()[:CLOSE_BYTES_MAX])
        finally:
            self._lose("gone")
            await socket.close()

    async def _greet(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        hello = {"hello": {"protocol": PROTOCOL_VERSION, "root": self._root_name}}
        await socket.send_bytes(orjson.dumps(hello))
        async with asyncio.timeout(HELLO_TIMEOUT_S):
            frame = read_frame(await socket.receive())
        if frame.hello is None:
            raise BrokenProtocol("the leaf did not say hello first")
        self._take_hello(frame.hello)

    def _take_hello(self, hello: LeafHello) -> None:
        if hello.protocol != PROTOCOL_VERSION:
            raise ChannelLost(
                f"the leaf speaks protocol {hello.protocol}, this root {PROTOCOL_VERSION}"
            )
        self.held = read_holdings(self.leaf, hello)
        self.collections = tuple(hello.collections)
        self._last_name, self._last_pid = hello.leaf, hello.pid
        if hello.notice != (self.hello.notice if self.hello else ""):
            log.warning("leaf %s: %s", self.label, hello.notice or "its notice is withdrawn")
        if self.hello is None:
            log.info("leaf %s is connected", self.label)
        self.hello = hello
        self.problem = "" if self.held else "holds nothing so far"
        self._failures = 0
        self.heard_s = asyncio.get_running_loop().time()
        self._changed(self)

    async def _write(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            frame = self._take_frame(asyncio.get_running_loop().time())
            self.frames_sent += 1
            await socket.send_bytes(frame)

    def _take_frame(self, now: float) -> bytes:
        frame: dict[str, Any] = {}
        if self._groups:
            groups = self._groups[: how_many_fit(self._groups)]
            frame["asks"] = [written_ask(group, now) for group in groups]
            del self._groups[: len(groups)]
            self._open_ask = None
            if self._groups:
                self._wanted.set()
        if self._cancels:
            frame["cancels"] = self._cancels
            self._cancels = []
        if self._ping is not None:
            frame["ping"] = self._ping
            self._ping = None
            self._pinged_s = now
        return orjson.dumps(frame)

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        ping = 0
        while True:
            due_s = loop.time() + PING_EVERY_S
            await asyncio.sleep(PING_EVERY_S)
            now = loop.time()
            overslept = now - due_s > PING_EVERY_S
            if now - self.heard_s > SILENCE_S and not overslept:
                raise ChannelLost(f"the leaf has been silent for {SILENCE_S} s")
            ping += 1
            self._ping = ping
            self._wanted.set()

    # --- receiving ---

    async def _read(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        loop = asyncio.get_running_loop()
        while True:
            frame = read_frame(await socket.receive())
            now = loop.time()
            self.heard_s = now
            self.frames_received += 1
            if frame.hello is not None:
                self._take_hello(frame.hello)
            if frame.pong is not None and self._pinged_s is not None:
                self.leaf.ponged(now - self._pinged_s)
                self._pinged_s = None
            self._deliver(frame, now)

    def _deliver(self, frame: LeafFrame, now: float) -> None:
        """Hand out what a frame ends; a query that it decides hears so even if the rest of
        the frame breaks the protocol.
        """
        touched: list[Flight] = []
        try:
            self._hand_out_answers(frame, now, touched)
            self._hand_out_refusals(frame.refusals, touched)
        finally:
            for flight in touched:
                flight.settle()

    def _hand_out_answers(self, frame: LeafFrame, now: float, touched: list[Flight]) -> None:
        owed = self._waiting.pop
        flight: Flight | None = None
        seen_s = 0.0
        reported_us = 0
        replies: Iterable[Hits | Documents] = chain(frame.hits, frame.documents)
        for reply in replies:
            entry = owed(reply.leg, None)
            if entry is None:
                raise BrokenProtocol(f"the leaf answered leg {reply.leg}, which it does not owe")
            if entry[0] is not flight:
                flight = entry[0]
                touched.append(flight)
            attempt = entry[1]
            if type(reply) is not flight.reply_type or (
                flight.ask.ordinals is not None and not flight.ask.answered_by(attempt, reply)
            ):
                self._waiting[reply.leg] = entry
                raise BrokenProtocol("the leaf answered with something else than was asked")
            attempt.queue_us = queue_us = reply.queue_us
            attempt.service_us = service_us = reply.service_us
            seen_s += now - attempt.sent_s
            reported_us += queue_us + service_us
            flight.replied(attempt, reply)
        self.answered += len(frame.hits) + len(frame.documents)
        self.seen_s += seen_s
        self.reported_us += reported_us

    def _hand_out_refusals(self, refusals: list[Refusal], touched: list[Flight]) -> None:
        for refusal in refusals:
            entry = self._waiting.pop(refusal.leg, None)
            if entry is None:
                raise BrokenProtocol(f"the leaf refused leg {refusal.leg}, which it does not owe")
            flight, attempt = entry
            attempt.queue_us = refusal.queue_us
            attempt.service_us = refusal.service_us
            attempt.retry_ms = min(max(refusal.retry_ms, 0), RETRY_MS_MAX)
            flight.failed(attempt, refusal.reason, refusal.detail[:DETAIL_CHARS_MAX])
            touched.append(flight)

    # --- losing the leaf ---

    def _say(self, problem: str) -> None:
        """Note what is wrong; tell the operator what is news to him."""
        if problem != self.problem and not self.leaving:
            # A leaf that has not been there yet is on its way up, as a rule.
            level = logging.WARNING if self._last_name else logging.INFO
            log.log(level, "leaf %s: %s", self.label, problem)
        self.problem = problem

    def _lose(self, reason: FailureReason) -> None:
        """Fail all that the leaf owes; the leaf is no primary for anyone from here on."""
        self.leaf.connected = False
        if self.hello is not None:
            self.hello = None
            self._changed(self)
        owed, self._waiting = self._waiting, {}
        self._groups, self._open_ask, self._cancels, self._ping = [], None, [], None
        self._pinged_s = None
        self._wanted.clear()
        for flight, attempt in owed.values():
            flight.failed(attempt, reason, self.problem)
        for flight, _ in owed.values():
            flight.settle()


async def _first_to_end(*coroutines: Coroutine[Any, Any, None]) -> None:
    """Run all until one ends, by whatever exception; the others are cancelled first."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()

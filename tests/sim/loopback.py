"""A leaf on a real connection that says what a test dictates, in the loop of the test.

    async with LeafServer(holding(card(4), range(4))) as leaf, connected(leaf) as fleet:
        query = asyncio.create_task(root.query())
        asked = await leaf.frame()              # what the root has sent, decoded
        await leaf.send(hits=answers(asked))

Pings are answered and not shown, until ``deaf`` is set. What the root sends is checked
against the wire contract: a frame that breaks it fails the test.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import msgspec
import orjson
from aiohttp import WSMsgType, web

from bench.simulation.answers import hits
from bench.simulation.scripted_fleet import BareRoot, Seen
from index_data.manifest import GenerationCard
from leaf.protocol import (
    CHANNEL_PATH,
    DEFAULT_COLLECTION,
    PROTOCOL_VERSION,
    Ask,
    Hits,
    Holding,
    LeafFrame,
    LeafHello,
    RootFrame,
)
from root.channel import Channel
from root.discovery import Fleet

PATIENCE_S: Final = 10.0
"""Only a failing test waits this long."""

_frames: Final = msgspec.json.Decoder(RootFrame, strict=True)


def hello(*holdings: Holding, name: str = "leaf-0", protocol: int = PROTOCOL_VERSION) -> LeafHello:
    """What a leaf says first."""
    held = {DEFAULT_COLLECTION: holdings}
    return LeafHello(protocol, name, "here", pid=1, collections=held, workers=1)


def holding(generation: GenerationCard, shards: Iterable[int]) -> Holding:
    """A generation as a leaf holds it."""
    return Holding(msgspec.Raw(msgspec.json.encode(generation)), tuple(shards))


class LeafServer:
    """See the module's text. ``greeting`` is the frame that answers the root's hello."""

    def __init__(self, *holdings: Holding, name: str = "leaf-0") -> None:
        """Nothing listens before ``async with``."""
        self.greeting: LeafFrame | bytes | None = LeafFrame(hello=hello(*holdings, name=name))
        self.greeted: list[RootFrame] = []
        self.pings = 0
        self.deaf = False
        self.url = ""
        self._socket: web.WebSocketResponse | None = None
        self._frames: asyncio.Queue[RootFrame] = asyncio.Queue()
        self._connections = 0
        self._counted = asyncio.Condition()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get(CHANNEL_PATH, self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = site.name
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        first = await socket.receive()
        if first.type is not WSMsgType.BINARY:
            return socket
        self.greeted.append(_frames.decode(first.data))
        self._socket = socket
        self._frames = asyncio.Queue()
        if self.greeting is not None:
            await self.send_raw(self.greeting)
        async with self._counted:
            self._connections += 1
            self._counted.notify_all()
        async for message in socket:
            await self._hear(_frames.decode(message.data))
        return socket

    async def _hear(self, frame: RootFrame) -> None:
        if frame.ping is not None:
            self.pings += 1
            if not self.deaf:
                await self.send(pong=frame.ping)
        if frame.asks or frame.cancels:
            self._frames.put_nowait(frame)

    # --- what a test does ---

    async def frame(self) -> RootFrame:
        """Return the next frame with asks or cancels."""
        async with asyncio.timeout(PATIENCE_S):
            return await self._frames.get()

    @property
    def waiting(self) -> bool:
        """Whether there is a next frame already."""
        return not self._frames.empty()

    async def connection(self, number: int) -> None:
        """Wait until the root has connected so many times, the first being 1."""
        async with asyncio.timeout(PATIENCE_S), self._counted:
            await self._counted.wait_for(lambda: self._connections >= number)

    async def send(self, **members: Any) -> None:
        """Send a frame of these members."""
        await self.send_raw(LeafFrame(**members))

    async def send_raw(self, frame: LeafFrame | bytes) -> None:
        """Send these bytes as a frame."""
        assert self._socket is not None
        data = frame if isinstance(frame, bytes) else msgspec.json.encode(frame)
        await self._socket.send_bytes(data)

    async def send_text(self, text: str) -> None:
        """Send a frame of the kind that the protocol does not have."""
        assert self._socket is not None
        await self._socket.send_str(text)

    async def close(self) -> None:
        """Close the connection; the server goes on listening."""
        assert self._socket is not None
        await self._socket.close()


def legs(frame: RootFrame) -> list[tuple[Ask, int, int]]:
    """Every (ask, leg, shard) of a frame, in the order sent."""
    return [(ask, ask.first + i, shard) for ask in frame.asks for i, shard in enumerate(ask.shards)]


def answers(frame: RootFrame) -> list[Hits]:
    """Honest answers to all asks of a frame: one document a shard, of the shard's number."""
    return [hits(leg, [1.0], [shard], queue_us=5, service_us=7) for _, leg, shard in legs(frame)]


async def until(holds: Callable[[], object]) -> None:
    """Let the loop run until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 (nothing of the product's announces it)
            await asyncio.sleep(0.001)


@asynccontextmanager
async def reaching(*urls: str) -> AsyncIterator[Fleet]:
    """A fleet that tries to reach these leaves, until the block ends."""
    fleet = Fleet(urls, "root")
    running = asyncio.create_task(fleet.run())
    try:
        yield fleet
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def connected(*leaves: LeafServer) -> AsyncIterator[Fleet]:
    """A fleet with a connection to each of these leaves."""
    async with reaching(*(leaf.url for leaf in leaves)) as fleet:
        await until(lambda: all(c.leaf.connected for c in fleet.channels.values()))
        yield fleet


def written(frame: Any) -> bytes:
    """A frame by hand, for what the contract's types would not let through."""
    return orjson.dumps(frame)


def only(fleet: Fleet) -> Channel:
    """The channel of a fleet of one."""
    (channel,) = fleet.channels.values()
    return channel


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run on a real loop; nothing may be left on it afterwards."""

    async def all_of_it() -> None:
        await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(all_of_it())


async def answered(leaf: LeafServer, a_root: BareRoot) -> Seen:
    """A query that this leaf answers."""
    query = asyncio.create_task(a_root.query())
    await leaf.send(hits=answers(await leaf.frame()))
    return await query

"""A leaf without sockets: the real application and workers, an index of a few lines."""

from __future__ import annotations

import asyncio
import copy
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Self

import msgspec
import orjson
import pytest
from starlette.applications import Starlette
from uvicorn.server import ServerState
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.uri import parse_uri

from index_data.manifest import Field, GenerationCard
from leaf.admission import AdmissionQueue
from leaf.app import create_app
from leaf.errors import BadQuery
from leaf.protocol import (
    DEFAULT_COLLECTION,
    PROTOCOL_VERSION,
    FetchedDocument,
    LeafFrame,
    Query,
    Word,
)
from leaf.selection import Selection
from leaf.service import Leaf
from leaf.suggestion import SuggestBody
from leaf.wire import Wire
from leaf.workers import Clock, Workers

ANSWER_S = 10.0
"""An answer that takes this long will never come; no test waits for it when all is well."""


class FakeShard:
    """Finds one document in each shard, and whatever the test puts into it."""

    def __init__(self, shard: int) -> None:
        self.documents = 100
        self.ordinal = shard * 100
        self.score = 1.5
        self.fields: dict[str, Any] = {"name": f"document {shard}"}
        self.error: BaseException | None = None
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.searches = 0

    def search(self, prepared: Any, k: int, /) -> tuple[int, list[float], list[int]]:
        self.searches += 1
        self.entered.set()
        assert self.gate.wait(ANSWER_S)
        if self.error is not None:
            raise self.error
        return 1, [self.score], [self.ordinal]

    def select(self, prepared: Any, selected: Any, k: int, /) -> tuple[Any, ...]:
        return 1, self.score, ([self.score], [self.ordinal]), [[selected]]

    def fetch(
        self,
        prepared: Any | None,
        ordinals: Sequence[int],
        fields: Sequence[str] | None,
        highlight: Sequence[str],
        /,
    ) -> list[FetchedDocument]:
        return [FetchedDocument(o, self.score, f"d{o}", self.fields, {}) for o in ordinals]

    def explain(
        self, prepared: Any, ordinals: Sequence[int], /
    ) -> list[list[tuple[str, str, float]]]:
        return [[("name", "document", self.score)] for _ in ordinals]

    def lookup(self, document_id: str, /) -> list[int]:
        return [self.ordinal] if document_id == f"d{self.ordinal}" else []


class FakeGeneration:
    """Shards 0 to 9 of a generation."""

    def __init__(
        self, name: str = "g1", shards: int = 10, collection: str = DEFAULT_COLLECTION
    ) -> None:
        self.collection = collection
        self.card = GenerationCard(name, (100,) * shards, (Field("name", "text"),), 0.01)
        self.shards: Mapping[int, FakeShard] = {s: FakeShard(s) for s in range(shards)}
        self.refused: Mapping[int, str] = {}
        self.leaving: Mapping[int, int] = {}
        self.prepared = 0

    def prepare(self, query: Query, /) -> Any:
        self.prepared += 1
        if isinstance(query, Word) and query.field == "nowhere":
            raise BadQuery("field 'nowhere' is unknown")
        return query

    def suggest(self, body: SuggestBody, shard: Any, /) -> list[FetchedDocument]:
        return [FetchedDocument(0, 7.0, f"{body.prefix}ing", {}, {})]

    def selected(self, selection: Selection, /) -> Any:
        return len(selection.facets)

    def with_shards(self, shards: Iterable[int], leaving: Mapping[int, int]) -> Self:
        """Return the same as another placement has it."""
        other = copy.copy(self)
        other.shards = {s: self.shards.get(s) or FakeShard(s) for s in shards}
        other.leaving = leaving
        return other

    def without(self, shards: Iterable[int], /) -> Self:
        gone = set(shards)
        staying = {s: n for s, n in self.leaving.items() if s not in gone}
        return self.with_shards(self.shards.keys() - gone, staying)


class FakeTransport(asyncio.Transport):
    """What lies between a leaf's connection and a root, without a socket.

    The root takes what is written at once, unless it does not read.
    """

    def __init__(self, protocol: asyncio.Protocol, deliver: Callable[[bytes], None]) -> None:
        super().__init__()
        self.protocol = protocol
        self.lost = asyncio.Event()
        self.unread = b""
        self._deliver = deliver
        self._reads = True
        self._closing = False

    def reads(self, *, reads: bool) -> None:
        """Let the root read, or stop it."""
        self._reads = reads
        if reads:
            unread, self.unread = self.unread, b""
            self._deliver(unread)
            if self._closing:
                self.abort()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        assert not self._closing, "nothing is written after the end"
        if self._reads:
            self._deliver(bytes(data))
        else:
            self.unread += data

    def get_write_buffer_size(self) -> int:
        return len(self.unread)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        if not self.unread:
            self.abort()

    def abort(self) -> None:
        self._closing = True
        if not self.lost.is_set():
            self.lost.set()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)


class FakeRoot:
    """A root at the other end of a connection: a WebSocket client without a socket."""

    def __init__(
        self, leaf: Leaf, server_state: ServerState, path: str, headers: Mapping[str, str]
    ) -> None:
        self.client = ClientProtocol(parse_uri(f"ws://leaf{path}"))
        wire = Wire(leaf, config=None, server_state=server_state, app_state={})
        self.transport = FakeTransport(wire, self._takes)
        self.events: asyncio.Queue[Response | Frame] = asyncio.Queue()
        wire.connection_made(self.transport)
        request = self.client.connect()
        for name, value in headers.items():
            request.headers.pop(name, None)
            request.headers[name] = value
        self.client.send_request(request)
        self.sends()

    def sends(self) -> None:
        """Hand over what the client has to send, as one piece."""
        data = b"".join(self.client.data_to_send())
        if data and not self.transport.is_closing():
            self.transport.protocol.data_received(data)

    def _takes(self, data: bytes) -> None:
        self.client.receive_data(data)
        for event in self.client.events_received():
            assert isinstance(event, Response | Frame)
            self.events.put_nowait(event)
        # What a client answers of itself, to a ping or a close, arrives a moment later.
        asyncio.get_running_loop().call_soon(self.sends)

    def says(self, frame: Any = None, /, **members: Any) -> None:
        """Send a frame: bytes as they are, text as text, members as JSON."""
        if isinstance(frame, str):
            self.client.send_text(frame.encode())
        else:
            self.client.send_binary(orjson.dumps(members) if frame is None else frame)
        self.sends()

    def hangs_up(self) -> None:
        """Be gone without a word."""
        self.transport.abort()

    def reads(self, *, reads: bool) -> None:
        """Read what the leaf writes, or stop reading."""
        self.transport.reads(reads=reads)

    async def event(self) -> Response | Frame:
        """The next thing that the leaf has sent: its answer to the handshake, or a frame."""
        return await asyncio.wait_for(self.events.get(), ANSWER_S)

    async def response(self) -> Response:
        """The leaf's answer to the handshake."""
        response = await self.event()
        assert isinstance(response, Response)
        return response

    async def frame(self, opcode: Opcode) -> bytes:
        """What the next frame carries, which is one of this kind."""
        frame = await self.event()
        assert isinstance(frame, Frame)
        assert frame.opcode is opcode, frame
        return bytes(frame.data)

    async def close_code(self) -> int:
        """The code with which the leaf closes the connection now."""
        return int.from_bytes((await self.frame(Opcode.CLOSE))[:2], "big")

    async def hears(self) -> LeafFrame:
        """The next frame of the leaf, as a root reads it."""
        return msgspec.json.decode(await self.frame(Opcode.BINARY), type=LeafFrame)

    async def hears_legs(self, legs: int) -> LeafFrame:
        """Frames until this many legs are answered, as one; fails when there are more."""
        heard = LeafFrame(hits=[], documents=[], refusals=[])
        while legs > 0:
            frame = await self.hears()
            heard.hits += frame.hits
            heard.documents += frame.documents
            heard.refusals += frame.refusals
            legs -= len(frame.hits) + len(frame.documents) + len(frame.refusals)
        assert legs == 0
        return heard

    async def is_left_alone(self) -> bool:
        """Whether nothing more comes, up to a ping that the leaf answers in between."""
        self.says(ping=424242)
        return (await self.hears()).pong == 424242

    async def connection_ends(self) -> None:
        """Wait until the leaf has let go of the connection."""
        await asyncio.wait_for(self.transport.lost.wait(), ANSWER_S)
        await asyncio.sleep(0)


@dataclass
class Stage:
    """One leaf, its application, and what stands behind it."""

    leaf: Leaf
    app: Starlette
    generation: FakeGeneration
    server_state: ServerState = field(default_factory=ServerState)
    _roots: list[FakeRoot] = field(default_factory=list)

    def another_generation(self, name: str, shards: int) -> FakeGeneration:
        """Return one more generation, not yet held."""
        return FakeGeneration(name, shards)

    def asked_for(self, path: str, headers: Mapping[str, str] | None = None) -> FakeRoot:
        """Return a new root that has asked for a WebSocket at this path, with these headers."""
        root = FakeRoot(self.leaf, self.server_state, path, headers or {})
        self._roots.append(root)
        return root

    async def connects(self) -> FakeRoot:
        """Return a new root that the leaf has accepted."""
        root = self.asked_for("/channel")
        assert (await root.response()).status_code == HTTPStatus.SWITCHING_PROTOCOLS
        return root

    async def greeted(self) -> FakeRoot:
        """Return a root that has exchanged hellos with the leaf."""
        root = await self.connects()
        root.says(hello={"protocol": PROTOCOL_VERSION, "root": "root"})
        assert (await root.hears()).hello is not None
        return root

    def hang_up(self) -> None:
        """End every connection that is left."""
        for root in self._roots:
            root.hangs_up()

    async def requests(
        self,
        method: str,
        path: str,
        body: bytes | list[bytes] = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """Make one HTTP request; return status, headers and body."""
        chunks = body if isinstance(body, list) else [body]
        last = len(chunks) - 1
        parts: Iterator[dict[str, Any]] = iter(
            {"type": "http.request", "body": chunk, "more_body": number < last}
            for number, chunk in enumerate(chunks)
        )
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return next(parts)

        async def send(message: Any) -> None:
            sent.append(message)

        path, _, query = path.partition("?")
        given = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": given}
        scope |= {"query_string": query.encode(), "server": ("leaf", 80), "scheme": "http"}
        serving: Any = self.app(scope, receive, send)
        await asyncio.wait_for(serving, ANSWER_S)
        said = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], said, b"".join(m.get("body", b"") for m in sent[1:])


StageMaker = Callable[..., Any]


@contextmanager
def working(workers: Workers, generation: FakeGeneration) -> Iterator[None]:
    """Run the threads; open every gate at the end, so that none is left behind."""
    workers.start()
    try:
        yield
    finally:
        for shard in generation.shards.values():
            shard.gate.set()
        assert workers.stop(ANSWER_S)


@asynccontextmanager
async def staged(
    *,
    workers: int = 2,
    queue_legs: int = 1000,
    make: Callable[..., Workers] = Workers,
    clock: Clock = time.monotonic,
    watch: bool = True,
) -> AsyncIterator[Stage]:
    """A leaf that holds generation g1; its connections and threads are gone at the end."""
    threads = make(AdmissionQueue(workers=workers, legs_max=queue_legs), clock)
    leaf = Leaf(name="leaf0", domain="rack", workers=threads, clock=clock, watch=watch)
    generation = FakeGeneration()
    leaf.hold(generation)
    stage = Stage(leaf, create_app(leaf), generation)
    with working(threads, generation):
        try:
            yield stage
        finally:
            stage.hang_up()
            await asyncio.sleep(0)


@pytest.fixture(name="staged")
def staged_fixture() -> StageMaker:
    """Return the maker of stages: ``async with staged() as stage``."""
    return staged


@pytest.fixture(name="generation_named")
def generation_named_fixture() -> type[FakeGeneration]:
    """Return the maker of generations."""
    return FakeGeneration

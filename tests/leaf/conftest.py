"""A leaf without sockets: the real application and workers, an index of a few lines."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
import orjson
import pytest
from starlette.applications import Starlette

from index_data.manifest import Field, GenerationCard
from leaf.admission import AdmissionQueue
from leaf.app import create_app
from leaf.errors import BadQuery
from leaf.protocol import FetchedDocument, LeafFrame, Query, Word
from leaf.service import Leaf
from leaf.workers import Workers

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

    def fetch(
        self,
        prepared: Any | None,
        ordinals: Sequence[int],
        fields: Sequence[str] | None,
        highlight: Sequence[str],
        /,
    ) -> list[FetchedDocument]:
        return [FetchedDocument(o, self.score, f"d{o}", self.fields, {}) for o in ordinals]

    def lookup(self, document_id: str, /) -> list[int]:
        return [self.ordinal] if document_id == f"d{self.ordinal}" else []


class FakeGeneration:
    """Shards 0 to 9 of a generation."""

    def __init__(self, name: str = "g1", shards: int = 10) -> None:
        self.card = GenerationCard(name, (100,) * shards, (Field("name", "text"),), 0.01)
        self.shards: Mapping[int, FakeShard] = {s: FakeShard(s) for s in range(shards)}
        self.refused: Mapping[int, str] = {}
        self.prepared = 0

    def prepare(self, query: Query, /) -> Any:
        self.prepared += 1
        if isinstance(query, Word) and query.field == "nowhere":
            raise BadQuery("field 'nowhere' is unknown")
        return query


class FakeRoot:
    """A root at the other end of the channel: speaks ASGI, so there is no socket."""

    def __init__(self) -> None:
        self._to_leaf: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._from_leaf: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict[str, Any]:
        return await self._to_leaf.get()

    async def send(self, message: Any) -> None:
        await self.reads.wait()
        self._from_leaf.put_nowait(dict(message))

    def says(self, frame: Any = None, /, **members: Any) -> None:
        """Send a frame: bytes as they are, text as text, members as JSON."""
        if isinstance(frame, str):
            self._to_leaf.put_nowait({"type": "websocket.receive", "text": frame})
        else:
            data = orjson.dumps(members) if frame is None else frame
            self._to_leaf.put_nowait({"type": "websocket.receive", "bytes": data})

    def hangs_up(self) -> None:
        self._to_leaf.put_nowait({"type": "websocket.disconnect", "code": 1006})

    async def message(self) -> dict[str, Any]:
        """The next message of the leaf."""
        return await asyncio.wait_for(self._from_leaf.get(), ANSWER_S)

    async def hears(self) -> LeafFrame:
        """The next frame of the leaf, as a root reads it."""
        message = await self.message()
        assert message["type"] == "websocket.send", message
        return msgspec.json.decode(message["bytes"], type=LeafFrame)

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


@dataclass
class Stage:
    """One leaf, its application, and what stands behind it."""

    leaf: Leaf
    app: Starlette
    generation: FakeGeneration
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def another_generation(self, name: str, shards: int) -> FakeGeneration:
        """Return one more generation, not yet held."""
        return FakeGeneration(name, shards)

    def connects(self) -> FakeRoot:
        """Return a new root whose handshake is done."""
        root = FakeRoot()
        root._to_leaf.put_nowait({"type": "websocket.connect"})
        scope = {"type": "websocket", "path": "/channel", "headers": [], "query_string": b""}
        serving: Any = self.app(scope, root.receive, root.send)
        self._tasks.append(asyncio.create_task(serving))
        return root

    async def greeted(self) -> FakeRoot:
        """Return a root that has exchanged hellos with the leaf."""
        root = self.connects()
        assert (await root.message())["type"] == "websocket.accept"
        root.says(hello={"protocol": 1, "root": "root"})
        assert (await root.hears()).hello is not None
        return root

    async def connections_end(self) -> None:
        """Wait until the leaf has let go of every connection."""
        await asyncio.wait_for(asyncio.gather(*self._tasks), ANSWER_S)

    async def requests(
        self, method: str, path: str, body: bytes | list[bytes] = b""
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

        scope: dict[str, Any] = {"type": "http", "method": method, "path": path, "headers": []}
        scope |= {"query_string": b"", "server": ("leaf", 80), "scheme": "http"}
        serving: Any = self.app(scope, receive, send)
        await asyncio.wait_for(serving, ANSWER_S)
        headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(m.get("body", b"") for m in sent[1:])


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
async def staged(*, workers: int = 2, queue_legs: int = 1000) -> AsyncIterator[Stage]:
    """A leaf that holds generation g1; its connections and threads are gone at the end."""
    threads = Workers(AdmissionQueue(workers=workers, legs_max=queue_legs))
    leaf = Leaf(name="leaf0", domain="rack", workers=threads, clock=time.monotonic)
    generation = FakeGeneration()
    leaf.hold(generation)
    stage = Stage(leaf, create_app(leaf), generation)
    with working(threads, generation):
        try:
            yield stage
        finally:
            for task in stage._tasks:
                task.cancel()
            await asyncio.gather(*stage._tasks, return_exceptions=True)


@pytest.fixture(name="staged")
def staged_fixture() -> StageMaker:
    """Return the maker of stages: ``async with staged() as stage``."""
    return staged


@pytest.fixture(name="generation_named")
def generation_named_fixture() -> Callable[[str], FakeGeneration]:
    """Return the maker of generations."""
    return FakeGeneration

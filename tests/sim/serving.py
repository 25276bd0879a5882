"""A root that serves, and a client that calls it directly: no sockets, so time may be virtual.

async def body(serving: Served) -> None:
    answer = await serving.client.get("/search?q=anything")

served(body)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import orjson
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp, Message

from bench.simulation.corpus import Corpus
from bench.simulation.scripted import Leg, Script, takes
from bench.simulation.scripted_fleet import ScriptedFleet, dealt
from bench.virtual_time import run
from index_data.manifest import GenerationCard
from leaf.protocol import Documents, Hits, Refusal
from leaf.pulse import Pulse
from root.app import Root
from root.budget import BudgetTerms
from root.config import Settings

SHARDS: Final = 4
DOCUMENTS: Final = 100
WORK_S: Final = 0.002
PLENTY: Final = BudgetTerms(max_extra_load=1.0, floor_per_s=1000.0, burst=100_000.0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, whole."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return orjson.loads(self.body)


@dataclass(slots=True)
class Exchange:
    """One request under way. The client goes away when ``leaves`` is set.

    With ``stalls`` there is more to come after the last part, and it never comes.
    """

    parts: Sequence[bytes]
    stalls: bool = False
    leaves: asyncio.Event = field(default_factory=asyncio.Event)
    sent: list[Message] = field(default_factory=list)
    received: int = 0

    async def receive(self) -> Message:
        """Give the application the next part of the body, then nothing, then the parting."""
        if self.received < len(self.parts):
            self.received += 1
            more = self.stalls or self.received < len(self.parts)
            part = self.parts[self.received - 1]
            return {"type": "http.request", "body": part, "more_body": more}
        await self.leaves.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Take a message from the application."""
        self.sent.append(message)

    def answer(self) -> Answer:
        """What the application has sent in all."""
        start, *bodies = self.sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(part["body"] for part in bodies))


class Client:
    """Requests to one application."""

    def __init__(self, app: ASGIApp) -> None:
        """The application's lifespan is the test's business."""
        self._app = app

    async def get(self, target: str | bytes) -> Answer:
        """GET a path with its query string."""
        return await self.request("GET", target)

    async def post(self, target: str | bytes, body: Any) -> Answer:
        """POST a body: bytes as they are, parts in a list, anything else as JSON."""
        match body:
            case bytes():
                parts = [body]
            case [bytes(), *_]:
                parts = body
            case _:
                parts = [orjson.dumps(body)]
        return await self.request("POST", target, parts)

    async def request(
        self,
        method: str,
        target: str | bytes,
        parts: Sequence[bytes] = (b"",),
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> Answer:
        """Send a request and wait for the whole answer."""
        exchange = Exchange(parts)
        await self.run(method, target, exchange, headers)
        return exchange.answer()

    async def run(
        self,
        method: str,
        target: str | bytes,
        exchange: Exchange,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        """Let the application work on an exchange that the test holds in its hands."""
        raw = target.encode() if isinstance(target, str) else target
        path, _, query = raw.partition(b"?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path.decode(),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [*headers, (b"host", b"root")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        await self._app(scope, exchange.receive, exchange.send)


Body = Callable[["Served"], Awaitable[None]]


class Index(Protocol):
    """What the leaves of a scripted fleet hold."""

    @property
    def card(self) -> GenerationCard:
        """The generation."""
        ...

    def answer(self, leg: Leg, queue_us: int, service_us: int) -> Hits | Documents | Refusal:
        """Reply to a leg."""
        ...


class Served:
    """A root with a scripted fleet of four leaves, two replicas a shard, and a client of it."""

    def __init__(self, settings: Settings, script: Script, index: Index | None = None) -> None:
        """Must be made on a running loop. Without an index, a corpus is served."""
        self.corpus = Corpus(DOCUMENTS, SHARDS, score=lambda ordinal: 1.0 + ordinal % 7)
        index = index or self.corpus
        holdings = dealt(len(index.card.documents), leaves=4, replicas=2)
        self.fleet = ScriptedFleet(index.card, holdings, script, answer=index.answer)
        self.announced: list[object] = []
        pulse = Pulse(settings.blocked_ms, asyncio.get_running_loop().time)
        self.root = Root(self.fleet, settings, self.announced.append, pulse)
        self.app = self.root.app()
        self.client = Client(self.app)

    @property
    def now_s(self) -> float:
        """The root's clock."""
        return asyncio.get_running_loop().time()

    async def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of a name that have these labels."""
        text = (await self.client.get("/metrics")).body.decode()
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )


def served(
    body: Body,
    settings: Settings | None = None,
    script: Script | None = None,
    index: Index | None = None,
) -> None:
    """Run a test's body with a root that serves, in virtual time."""

    async def main() -> None:
        serving = Served(settings or Settings(budget=PLENTY), script or takes(WORK_S), index)
        async with serving.app.router.lifespan_context(serving.app):
            await body(serving)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)


def is_problem(answer: Answer, status: int) -> dict[str, Any]:
    """Check the form that every error has; return its members."""
    assert answer.status == status
    assert answer.headers["content-type"] == "application/problem+json"
    members: dict[str, Any] = answer.json
    assert members["status"] == status
    assert members["type"] == "about:blank"
    assert members["title"]
    assert members["detail"]
    return members

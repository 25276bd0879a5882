"""Plain HTTP beside the channel: one search of one shard a request.

It goes through the same queue and the same workers. Errors are problem+json (RFC 9457)
and name the field at fault. Written straight on ASGI: this route is what the channel is
compared with, and should not lose by a framework's overhead.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import orjson
from starlette.types import Message, Receive, Scope, Send

from leaf.asks import Finished, Reply, Task, check_search
from leaf.errors import BadQuery, field_of
from leaf.holdings import HeldGeneration
from leaf.protocol import Query, SearchBody
from leaf.service import BUDGET_MS_MAX, Leaf

BODY_BYTES_MAX: Final = 64 * 1024
"""A query within the limits of the protocol is far smaller."""

SHARD_DIGITS_MAX: Final = 9
"""No index has a billion shards, and Python refuses to read numbers of thousands of digits."""

TITLES: Final = {
    400: "Bad request",
    401: "No token",
    403: "Wrong token",
    404: "Not found",
    405: "Method not allowed",
    413: "Body too large",
    429: "Too busy",
    500: "The leaf failed",
    503: "Not ready",
    504: "Out of time",
}

REFUSED_AS: Final = {
    "busy": 429,
    "expired": 504,
    "cancelled": 503,
    "unknown_shard": 404,
    "unknown_generation": 404,
    "bad_query": 400,
    "error": 500,
}


class ShardSearchRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of ``POST /shards/{shard}/search`` on a leaf."""

    query: Query
    k: int = 10
    generation: str | None = None
    timeout_ms: float = 1000.0


_REQUEST: Final = msgspec.json.Decoder(ShardSearchRequest)


class Problem(Exception):
    """A request that is not answered as asked, as it goes to the client."""

    def __init__(
        self, status: int, detail: str, *, field: str | None = None, retry_s: float | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.retry_s = retry_s

    def body(self) -> bytes:
        """Return the problem as JSON."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": TITLES[self.status],
            "status": self.status,
            "detail": self.detail,
        }
        if self.field is not None:
            document["field"] = self.field
        return orjson.dumps(document)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that go with it."""
        headers = [(b"content-type", b"application/problem+json")]
        if self.retry_s is not None:
            headers.append((b"retry-after", b"%d" % max(1, math.ceil(self.retry_s))))
        return headers


class OneAnswer:
    """A sink for the single leg of one request."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[Finished] = self._loop.create_future()

    def put(self, finished: Finished) -> None:
        """Take the answer from any thread."""
        self._loop.call_soon_threadsafe(self._resolve, finished)

    def _resolve(self, finished: Finished) -> None:
        kind, answers, refusals = finished
        heard = not self.finished.done()
        self._leaf.ledger.answered(kind, answers, heard=heard)
        self._leaf.ledger.refused(kind, refusals)
        if heard:
            self.finished.set_result(finished)


class SearchRoute:
    """``POST /shards/{shard}/search`` as an ASGI application."""

    def __init__(self, leaf: Leaf) -> None:
        self._leaf = leaf

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await self._search(scope["path_params"]["shard"], await read_body(receive))
            await respond(send, 200, [(b"content-type", b"application/json")], body)
        except Problem as problem:
            await respond(send, problem.status, problem.headers(), problem.body())

    async def _search(self, shard_text: str, body: bytes) -> bytes:
        request = read_request(body)
        shard = read_shard(shard_text)
        generation = self._generation(request.generation)
        if shard not in generation.shards:
            raise Problem(404, f"this leaf does not hold shard {shard}", field="shard")
        answer = OneAnswer(self._leaf)
        task = Task(
            sink=answer,
            channel=self._leaf.next_channel(),
            kind="search",
            generation=generation,
            body=SearchBody(request.query, request.k),
            first=0,
            shards=(shard,),
            arrived_s=self._leaf.clock(),
            budget_s=request.timeout_ms / 1e3,
            alone=True,
        )
        self._leaf.offer(task)
        self._leaf.ring()
        try:
            # A worker that is stuck in a search does not look at deadlines.
            async with asyncio.timeout(task.deadline_s - task.arrived_s):
                _, answers, refusals = await answer.finished
        except TimeoutError as error:
            raise Problem(504, "expired: begun, and not done in time") from error
        if refusals:
            raise refused(refusals[0])
        return write_answer(shard, generation.card.generation, answers)

    def _generation(self, name: str | None) -> HeldGeneration:
        holdings = self._leaf.holdings
        newest = holdings.newest(self._leaf.collections[0])
        if name is None and newest is not None:
            name = newest.card.generation
        if name is None or not len(holdings):
            raise Problem(503, "nothing is loaded yet", retry_s=1.0)
        generation = holdings.use(name, self._leaf.clock())
        if generation is None:
            raise Problem(404, f"this leaf does not hold {name[:100]!r}", field="generation")
        return generation


def read_request(body: bytes) -> ShardSearchRequest:
    """Read and check a body. Raises Problem."""
    try:
        request = _REQUEST.decode(body)
        check_search(SearchBody(request.query, request.k))
    except BadQuery as error:
        raise Problem(400, str(error), field=error.field) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Problem(400, str(error), field=field_of(str(error))) from error
    if not 0 < request.timeout_ms <= BUDGET_MS_MAX:
        detail = f"timeout_ms must be above 0 and at most {BUDGET_MS_MAX:g}"
        raise Problem(400, detail, field="timeout_ms")
    return request


def read_shard(text: str) -> int:
    """Read a shard's number. Raises Problem."""
    if not (text.isascii() and text.isdigit() and len(text) <= SHARD_DIGITS_MAX):
        raise Problem(404, "shards are numbered from 0", field="shard")
    return int(text)


def refused(reply: Reply) -> Problem:
    """Return what a refusal is over HTTP."""
    _, _, _, reason, detail, *hint = reply if len(reply) > 4 else (*reply, "")
    field = "query" if reason == "bad_query" else None
    retry_s = hint[0] / 1e3 if hint else None
    words = f"{reason}: {detail}" if detail else reason
    return Problem(REFUSED_AS[reason], words, field=field, retry_s=retry_s)


def write_answer(shard: int, generation: str, answers: Sequence[Reply]) -> bytes:
    """Return the body of an answer."""
    _, queue_us, service_us, total, _, (scores, ordinals) = answers[0]
    return orjson.dumps(
        {
            "shard": shard,
            "generation": generation,
            "total": total,
            "hits": [
                {"ordinal": ordinal, "score": score}
                for ordinal, score in zip(ordinals, scores, strict=True)
            ],
            "queue_us": queue_us,
            "service_us": service_us,
        }
    )


async def read_body(receive: Receive) -> bytes:
    """Read a request's body, up to the limit. Raises Problem."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the request ended early", field="body")
        chunk: bytes = message.get("body", b"")
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise Problem(413, f"the body is over {BODY_BYTES_MAX} bytes", field="body")
        if not message.get("more_body"):
            return body


async def respond(
    send: Send, status: int, headers: Sequence[tuple[bytes, bytes]], body: bytes
) -> None:
    """Write one response."""
    length = (b"content-length", b"%d" % len(body))
    start: Message = {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers, length],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})

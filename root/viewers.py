"""Telling those who watch, once a second, over server-sent events.

A snapshot is made once a second for all viewers, and only while there are any. Each of them
waits for the next one and sends it; who has not taken it when the next is there gets that
instead, so nothing piles up, and who takes nothing for ``WRITE_S`` is dropped.

The format is that of server-sent events (HTML Living Standard, 9.2).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

log = logging.getLogger(__name__)

EVERY_S: Final = 1.0

VIEWERS_MAX: Final = 100
"""Enough for a team and its screens on the wall; each holds a connection."""

WRITE_S: Final = 5.0
"""A viewer that has room for nothing for so long does not read any more."""

RETRY_AFTER_S: Final = 10

EVENTS: Final = "text/event-stream"
HEADERS: Final = {
    "content-type": EVENTS,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-accel-buffering": "no",  # a proxy that collects a page first would never show any
}

GOODBYE: Final = b""

Snapshot = Callable[[], dict[str, Any]]


class Viewers:
    """Everybody who watches one root. Owned by its loop."""

    def __init__(self, snapshot: Snapshot, viewers_max: int = VIEWERS_MAX) -> None:
        """``snapshot`` is called once a second while anybody watches, and once for each who comes.

        Must be made on the loop.
        """
        self._snapshot = snapshot
        self._viewers_max = viewers_max
        self._next: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.watching = 0

    def tell(self) -> None:
        """Send everybody the state of now; nothing is made where there is nobody."""
        if self.watching:
            self._next.set_result(self.event())
            self._next = asyncio.get_running_loop().create_future()

    def end(self) -> None:
        """Let everybody go: the root is to end, and would wait for them."""
        self._next.set_result(GOODBYE)
        self._next = asyncio.get_running_loop().create_future()

    def event(self) -> bytes:
        """Return the state of now as one event."""
        return b"data: " + orjson.dumps(self._snapshot()) + b"\n\n"

    async def live(self, request: Request) -> Response:
        """Answer ``GET /live``: a stream of events, or to others than browsers one snapshot."""
        if EVENTS not in request.headers.get("accept", ""):
            return Response(orjson.dumps(self._snapshot()), media_type="application/json")
        if self.watching >= self._viewers_max:
            detail = f"{self._viewers_max} views are open already"
            raise HTTPException(503, detail, {"retry-after": str(RETRY_AFTER_S)})
        return _Stream(self)

    async def stream(self, receive: Receive, send: Send) -> None:
        """Send events until the viewer leaves or takes no more."""
        self.watching += 1
        left = asyncio.ensure_future(_left(receive))
        try:
            event = self.event()
            while not left.done():
                coming, more = self._next, event != GOODBYE
                async with asyncio.timeout(WRITE_S):
                    await send({"type": "http.response.body", "body": event, "more_body": more})
                if not more:
                    return
                await asyncio.wait((left, coming), return_when=asyncio.FIRST_COMPLETED)
                if coming.done():
                    event = coming.result()
        except TimeoutError:
            log.info("a viewer has taken nothing for %g s and is dropped", WRITE_S)
        finally:
            self.watching -= 1
            left.cancel()


class _Stream(Response):
    """A response that goes on for as long as somebody watches."""

    def __init__(self, viewers: Viewers) -> None:
        super().__init__(headers=HEADERS)
        self._viewers = viewers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        """Send the head, then events."""
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})
        await self._viewers.stream(receive, send)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

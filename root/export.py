"""``POST /export``: everything that matches, one hit a line, for as long as it takes.

An export is a chain of searches, each for the page after the one before. It is made as its
client reads: the next page is asked for when the last one is on its way, so that one page is in
memory and never more. Its cursor holds it to one generation.

The status is sent before anybody knows how it ends, so the last line says it: ``end``, or
``error`` with the problem. A stream without either was cut off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from root.asking import posted, refuse_parameters, while_connected
from root.bodies import Problem
from root.catalogue import NDJSON
from root.errors import CallerError, FleetError, TooManyRequests
from root.export_pages import export_from_json, lines_of, page_after, pieces
from root.problems import PROBLEM, problem_of
from root.requests import SearchRequest
from root.telemetry import Telemetry

log = logging.getLogger(__name__)

EXPORTS_MAX: Final = 4
"""At once. Each keeps some leaf busy all the time; more would take the fleet from those who
search, however politely they wait."""

RETRY_AFTER_S: Final = 10
"""Exports last: asking again each second would be for nothing."""

WRITE_S: Final = 60.0
"""A client that takes nothing for so long has forgotten its export, which holds a place."""

ROUTE: Final = "export"
CLIENT_LEFT: Final = 499

HEADERS: Final = (
    (b"content-type", NDJSON.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)

Search = Callable[[SearchRequest, float, str | None], Awaitable[dict[str, Any]]]


class _Failed(FleetError):
    """Nobody knows what to call it."""

    status = 500
    title = "Internal error"
    reason = "failed"


class Exports:
    """The exports of one root, an application of its own. Owned by its loop."""

    def __init__(self, search: Search, telemetry: Telemetry) -> None:
        """``search`` is given a request, the loop's time and a collection, if one is named, and
        returns an answer's body.
        """
        self._search = search
        self._telemetry = telemetry
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer ``POST /export``."""
        request, status = Request(scope, receive), CLIENT_LEFT
        sent = await posted(request)
        try:
            status = await while_connected(request, self._answered(request, sent, send))
        except ClientDisconnect:
            log.debug("the client of an export has left")
        finally:
            self._telemetry.ended(ROUTE, status)

    async def _answered(self, request: Request, sent: Callable[[], bytes], send: Send) -> int:
        """Send an export, or why there is none; return the status. Raises ClientDisconnect."""
        try:
            refuse_parameters(request)
            wanted = export_from_json(sent())
            collection = request.path_params.get("collection")
            with self._place():
                page = await self._page(wanted, collection)
                await self._streamed(wanted, collection, page, send)
        except (CallerError, FleetError) as error:
            body, headers = self._told(error)
            answer = Response(orjson.dumps(body), body["status"], headers, PROBLEM)
            await answer(request.scope, request.receive, send)
            return answer.status_code
        return 200

    @contextmanager
    def _place(self) -> Iterator[None]:
        """Hold one of the places there are. Raises TooManyRequests."""
        if self._running >= EXPORTS_MAX:
            raise TooManyRequests(f"{EXPORTS_MAX} exports are running already", RETRY_AFTER_S)
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    async def _streamed(
        self, wanted: SearchRequest, collection: str | None, page: dict[str, Any], send: Send
    ) -> None:
        """Send everything, from a first page on. Raises ClientDisconnect."""
        start: Message = {"type": "http.response.start", "status": 200, "headers": [*HEADERS]}
        await _taken(start, send)
        documents, complete = 0, True
        while True:
            hits, size = await _lines(page.pop("hits"), send)
            documents += hits
            complete = complete and page["coverage"]["complete"]
            if page["next"] is None:
                end = {"documents": documents, "generation": page["generation"]}
                last = {"end": {**end, "complete": complete}}
                break
            try:
                page = await self._page(page_after(wanted, page["next"], hits, size), collection)
            except (CallerError, FleetError) as error:
                last = {"error": self._told(error)[0]}
                break
        if not complete:
            self._telemetry.answered_in_part()
        await _written(orjson.dumps(last, option=orjson.OPT_APPEND_NEWLINE), send, more=False)

    async def _page(self, wanted: SearchRequest, collection: str | None) -> dict[str, Any]:
        """Return an answer's body. Raises CallerError or FleetError, whatever goes wrong."""
        try:
            now = asyncio.get_running_loop().time()
            return await self._search(wanted, now, collection)
        except (CallerError, FleetError):
            raise
        except Exception:
            log.exception("a page of an export failed")
            raise _Failed("the root failed; its log says how") from None

    def _told(self, error: CallerError | FleetError) -> tuple[dict[str, Any], Mapping[str, str]]:
        """Count an error, and return its problem and headers, without what there is of a page:
        no line of that was sent, and none is to be taken for one.
        """
        self._telemetry.rejected(ROUTE, error.reason)
        _, body, headers = problem_of(error)
        return {name: body[name] for name in Problem.__struct_fields__ if name in body}, headers


async def _lines(hits: Sequence[Mapping[str, Any]], send: Send) -> tuple[int, int]:
    """Send hits; return how many and how many bytes."""
    lines = lines_of(hits)
    for piece in pieces(lines):
        await _written(piece, send)
    return len(lines), sum(map(len, lines))


async def _written(piece: bytes, send: Send, *, more: bool = True) -> None:
    await _taken({"type": "http.response.body", "body": piece, "more_body": more}, send)


async def _taken(message: Message, send: Send) -> None:
    """Send a message, once the client has room for it. Raises ClientDisconnect where it takes
    nothing for ``WRITE_S``, or is gone.
    """
    try:
        async with asyncio.timeout(WRITE_S):
            await send(message)
    except OSError as error:  # a TimeoutError is one
        log.info("an export ends: its client has gone, or has taken nothing for %g s", WRITE_S)
        raise ClientDisconnect from error

"""Taking a request off the wire: its body within limits, and whether its client is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect, Request

from root.errors import BadRequest, BodyTooLarge, BodyTooSlow, CallerError
from root.requests import BODY_BYTES_MAX, parameters

BODY_S_MAX: Final = 10.0
"""A body comes through the slowest line in that time."""


_Done = TypeVar("_Done")


def refuse_parameters(request: Request) -> None:
    """Refuse a query string where none is read: what it asks for would be ignored."""
    for name in parameters(request.scope["query_string"]):
        raise BadRequest(name, "is not read here: there are no parameters in the query string")


async def left(request: Request) -> None:
    """Wait until the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def while_connected(request: Request, work: Awaitable[_Done]) -> _Done:
    """Await ``work``, but drop it when the client goes away. Raises ClientDisconnect then."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(left(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def posted(request: Request, bytes_max: int = BODY_BYTES_MAX) -> Callable[[], bytes]:
    """Wait for the body, and return what gives it or raises what was wrong with it.

    Before it is there the request has not arrived: it holds no place among those in work.
    """
    try:
        async with asyncio.timeout(BODY_S_MAX):
            body = await _whole(request, bytes_max)
    except (CallerError, ClientDisconnect) as error:
        return partial(_raise, error)
    except TimeoutError:
        return partial(_raise, BodyTooSlow("body", f"was not there in {BODY_S_MAX:g} s"))
    return lambda: body


def _raise(error: Exception) -> bytes:
    raise error


async def _whole(request: Request, bytes_max: int) -> bytes:
    """Return the whole body; BodyTooLarge as soon as it is known to be over the limit."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > bytes_max:
            raise BodyTooLarge("body", f"is over {bytes_max} bytes")
    return bytes(body)

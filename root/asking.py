"""Taking a request off the wire: its body within limits, and whether its client is still there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from starlette.requests import ClientDisconnect, Request

from root.errors import BadRequest, BodyTooLarge, BodyTooSlow, CallerError
from root.requests import parameters

BODY_BYTES_MAX: Final = 64 * 1024
"""A query tree of the largest size allowed, written out; not a way to fill memory."""

BODY_S_MAX: Final = 10.0
"""A body of 64 KiB comes through the slowest line in that time."""


def refuse_parameters(request: Request) -> None:
    """Refuse a query string where none is read: what it asks for would be ignored."""
    for name in parameters(request.scope["query_string"]):
        raise BadRequest(name, "is not read here: there are no parameters in the query string")


async def left(request: Request) -> None:
    """Wait until the client goes away."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def posted(request: Request) -> Callable[[], bytes]:
    """Wait for the body, and return what gives it or raises what was wrong with it.

    Before it is there the request has not arrived: it holds no place among those in work.
    """
    try:
        async with asyncio.timeout(BODY_S_MAX):
            body = await _whole(request)
    except (CallerError, ClientDisconnect) as error:
        return partial(_raise, error)
    except TimeoutError:
        return partial(_raise, BodyTooSlow("body", f"was not there in {BODY_S_MAX:g} s"))
    return lambda: body


def _raise(error: Exception) -> bytes:
    raise error


async def _whole(request: Request) -> bytes:
    """Return the whole body; BodyTooLarge as soon as it is known to be over the limit."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise BodyTooLarge("body", f"is over {BODY_BYTES_MAX} bytes")
    return bytes(body)
